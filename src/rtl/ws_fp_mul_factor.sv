// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Multiplier, segment 0: unpack, add the exponents, find the special cases.
//
// Twin:        `multiplier::factor` of src/arith/multiplier.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_mul_factor
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  mode_t       mode_i,
  input  logic [63:0] a_i,
  input  logic [63:0] b_i,
  output factored_t   factored_o
);

  localparam int unsigned ExponentBits = exponent_bits(Dtype) + 2;
  localparam int unsigned FractionBits = fraction_bits(Dtype);
  localparam logic [ExponentBits-1:0] Bias = ExponentBits'((1 << (ExponentBits - 3)) - 1);

  unpacked_t               a, b;
  logic                    sign;
  logic [62:0]             nan;
  logic                    nan_invalid;
  logic [ExponentBits-1:0] exponent;

  ws_fp_unpack #(.Dtype(Dtype)) u_unpack_a (.lane_i(a_i), .unpacked_o(a));
  ws_fp_unpack #(.Dtype(Dtype)) u_unpack_b (.lane_i(b_i), .unpacked_o(b));

  ws_fp_nan_pair #(.Dtype(Dtype)) u_nan (
    .a_i(a),
    .b_i(b),
    .propagate_i(mode_i.nan_propagate),
    .magnitude_o(nan),
    .invalid_o(nan_invalid)
  );

  assign sign = a.sign ^ b.sign;
  assign exponent = ExponentBits'(a.exponent) + ExponentBits'(b.exponent) - Bias;

  always_comb begin
    factored_o = '0;
    factored_o.exponent = 13'd1;
    if (a.is_nan || b.is_nan) begin
      factored_o.special = SpecialNan;
      factored_o.invalid = nan_invalid;
      factored_o.a = 64'(nan);
    end else if (a.is_infinite || b.is_infinite) begin
      if ((!a.is_infinite && a.significand == '0) || (!b.is_infinite && b.significand == '0)) begin
        // Zero times infinity: the default NaN.
        factored_o.special = SpecialNan;
        factored_o.invalid = 1'b1;
        factored_o.a = 64'({{(ExponentBits-1){1'b1}}, {(FractionBits-1){1'b0}}});
      end else begin
        factored_o.special = SpecialInfinity;
        factored_o.sign = sign;
      end
    end else begin
      factored_o.sign = sign;
      factored_o.exponent = 13'(exponent);
      factored_o.a = 64'(a.significand);
      factored_o.b = b.significand;
    end
  end

  logic unused;

  assign unused = ^{mode_i, a, b};

endmodule
