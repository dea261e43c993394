// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Multiplier, segment 2: add the partial products.
//
// Twin:        `multiplier::sum` of src/arith/multiplier.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_mul_sum
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  partials_t partials_i,
  output product_t  product_o
);

  localparam int unsigned Precision = fraction_bits(Dtype) + 1;
  localparam int unsigned Split = (Precision + 1) / 2;
  localparam int unsigned Width = 2 * Precision;

  logic [Width-1:0] product;

  assign product = Width'(partials_i.lower[Precision+Split-1:0]) +
                   (Width'(partials_i.upper[Precision+Split-1:0]) << Split);

  always_comb begin
    product_o = '0;
    product_o.special = partials_i.special;
    product_o.sign = partials_i.sign;
    product_o.invalid = partials_i.invalid;
    product_o.exponent = partials_i.exponent;
    product_o.product = partials_i.special == SpecialNumber ? 106'(product) : 106'(partials_i.lower);
  end

  logic unused;

  assign unused = ^partials_i;

endmodule
