// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Multiplier, segment 1: a times each half of b.
//
// Twin:        `multiplier::multiply` of src/arith/multiplier.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_mul_multiply
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  factored_t factored_i,
  output partials_t partials_o
);

  localparam int unsigned Precision = fraction_bits(Dtype) + 1;
  // The lower half of b has the larger part of an odd number of bits.
  localparam int unsigned Split = (Precision + 1) / 2;
  localparam int unsigned Width = Precision + Split;

  logic [Width-1:0] lower, upper;

  assign lower = Width'(factored_i.a[Precision-1:0]) * Width'(factored_i.b[Split-1:0]);
  assign upper = Width'(factored_i.a[Precision-1:0]) * Width'(factored_i.b[Precision-1:Split]);

  always_comb begin
    partials_o = '0;
    partials_o.special = factored_i.special;
    partials_o.sign = factored_i.sign;
    partials_o.invalid = factored_i.invalid;
    partials_o.exponent = factored_i.exponent;
    if (factored_i.special == SpecialNumber) begin
      partials_o.lower = 80'(lower);
      partials_o.upper = 80'(upper);
    end else begin
      partials_o.lower = 80'(factored_i.a);
    end
  end

  logic unused;

  assign unused = ^factored_i;

endmodule
