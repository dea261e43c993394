// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Multiplier, segment 3: count leading zeros, normalise, and move right what is below the smallest exponent.
//
// Twin:        `multiplier::normalise` of src/arith/multiplier.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
// Note:        operands that are denormals come as they are; the count covers the whole product
module ws_fp_mul_normalise
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  product_t    product_i,
  output normalised_t normalised_o
);

  localparam int unsigned ExponentBits = exponent_bits(Dtype) + 2;
  localparam int unsigned FractionBits = fraction_bits(Dtype);
  localparam int unsigned Width = 2 * (FractionBits + 1);
  localparam int unsigned PlaceBits = $clog2(Width);
  // Where the hidden bit goes: guard, round and sticky lie below it.
  localparam int unsigned Target = FractionBits + 3;
  // The product with as many zeros below it: every shift is one to the right.
  localparam int unsigned Based = Width + Target;
  // One bit more than exponents have, and enough for the places of a product.
  localparam int unsigned Arith = ExponentBits + 1 > PlaceBits + 2 ? ExponentBits + 1 : PlaceBits + 2;

  logic [Width-1:0]        product;
  logic [PlaceBits-1:0]    top;
  logic                    any, sticky;
  logic signed [Arith-1:0] scale, below, exponent;
  logic [Arith-1:0]        amount;
  logic [2*Based-1:0]      shifted;
  logic [Based-1:0]        significand;

  assign product = product_i.product[Width-1:0];

  ws_top_one #(.Width(Width)) u_top (.data_i(product), .position_o(top), .any_o(any));

  // The product of two hidden bits lies at 2 x FractionBits: that is where the exponent points.
  assign scale = Arith'($signed(product_i.exponent[ExponentBits-1:0])) + $signed(Arith'(top)) -
                 $signed(Arith'(2 * FractionBits));
  assign below = scale < $signed(Arith'(1)) ? $signed(Arith'(1)) - scale : '0;
  assign amount = Arith'(top) + $unsigned(below);

  // What leaves the upper half falls into the lower one, and from there out: then only the sticky bit is left of it.
  assign shifted = {product, {(Target + Based){1'b0}}} >> amount;
  assign exponent = scale + below;
  assign sticky = |shifted[Based-1:0] || 32'(amount) >= Based;
  assign significand = {shifted[2*Based-1:Based+1], shifted[Based] | sticky};

  always_comb begin
    normalised_o = '0;
    normalised_o.special = product_i.special;
    normalised_o.sign = product_i.sign;
    normalised_o.invalid = product_i.invalid;
    normalised_o.exponent = 13'd1;
    if (product_i.special != SpecialNumber) begin
      normalised_o.significand = product_i.product[63:0];
    end else if (any) begin
      normalised_o.exponent = 13'(exponent[ExponentBits-1:0]);
      normalised_o.significand = 64'(significand);
    end
  end

  logic unused;

  assign unused = ^{product_i, exponent, significand};

endmodule
