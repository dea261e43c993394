// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Adder, segment 0: unpack both operands, sort them by magnitude, find the alignment distance and the special cases.
//
// Twin:        `adder::compare` of src/arith/adder.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_add_compare
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  mode_t       mode_i,
  input  logic        negate_b_i,
  input  logic [63:0] a_i,
  input  logic [63:0] b_i,
  output compared_t   compared_o
);

  localparam int unsigned ExponentBits = exponent_bits(Dtype);
  localparam int unsigned FractionBits = fraction_bits(Dtype);

  unpacked_t   a, b, larger, smaller;
  logic        b_sign, subtract, swap;
  logic [62:0] nan;
  logic        nan_invalid;

  ws_fp_unpack #(.Dtype(Dtype)) u_unpack_a (.lane_i(a_i), .unpacked_o(a));
  ws_fp_unpack #(.Dtype(Dtype)) u_unpack_b (.lane_i(b_i), .unpacked_o(b));

  ws_fp_nan_pair #(.Dtype(Dtype)) u_nan (
    .a_i(a),
    .b_i(b),
    .propagate_i(mode_i.nan_propagate),
    .magnitude_o(nan),
    .invalid_o(nan_invalid)
  );

  assign b_sign = b.sign ^ negate_b_i;
  assign subtract = a.sign ^ b_sign;
  assign swap = {a.exponent[ExponentBits-1:0], a.significand[FractionBits:0]} <
                {b.exponent[ExponentBits-1:0], b.significand[FractionBits:0]};

  assign larger = swap ? b : a;
  assign smaller = swap ? a : b;

  always_comb begin
    compared_o = '0;
    compared_o.exponent = 13'd1;
    if (a.is_nan || b.is_nan) begin
      compared_o.special = SpecialNan;
      compared_o.invalid = nan_invalid;
      compared_o.larger = 64'(nan);
    end else if (a.is_infinite && b.is_infinite && subtract) begin
      // Infinity minus infinity: the default NaN.
      compared_o.special = SpecialNan;
      compared_o.invalid = 1'b1;
      compared_o.larger = 64'({{(ExponentBits+1){1'b1}}, {(FractionBits-1){1'b0}}});
    end else if (a.is_infinite || b.is_infinite) begin
      compared_o.special = SpecialInfinity;
      compared_o.sign = a.is_infinite ? a.sign : b_sign;
    end else begin
      // The larger magnitude is the minuend, so that a difference is never negative.
      compared_o.sign = swap ? b_sign : a.sign;
      compared_o.subtract = subtract;
      compared_o.exponent = 13'(larger.exponent);
      compared_o.distance = larger.exponent - smaller.exponent;
      compared_o.larger = 64'(larger.significand);
      compared_o.smaller = smaller.significand;
    end
  end

  logic unused;

  assign unused = ^{mode_i, a, b, larger, smaller};

endmodule
