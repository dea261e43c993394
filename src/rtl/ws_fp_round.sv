// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Segment 4 of adder and multiplier: round; carries go into the exponent; tininess is detected after rounding.
//
// Twin:        `round::round` of src/arith/round.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_round
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  mode_t       mode_i,
  input  normalised_t normalised_i,
  output rounded_t    rounded_o
);

  localparam int unsigned Precision = fraction_bits(Dtype) + 1;
  localparam int unsigned ExponentBits = exponent_bits(Dtype) + 2;

  logic [Precision-1:0]    kept;
  logic                    guard, below, sticky, up, rounds_out;
  logic [Precision:0]      sum;
  logic [Precision-1:0]    significand;
  logic [ExponentBits-1:0] exponent;

  assign {kept, guard, below, sticky} = normalised_i.significand[Precision+2:0];
  assign up = increments(mode_i.round, normalised_i.sign, kept[0], guard, below | sticky);
  assign sum = {1'b0, kept} + (Precision+1)'(up);
  assign significand = sum[Precision] ? sum[Precision:1] : sum[Precision-1:0];
  assign exponent = normalised_i.exponent[ExponentBits-1:0] + ExponentBits'(sum[Precision]);

  // Directly under the smallest normal number, and the same value rounded one place further down carries into it.
  assign rounds_out = !kept[Precision-1] && &kept[Precision-2:0] && guard &&
                      increments(mode_i.round, normalised_i.sign, 1'b1, below, sticky);

  always_comb begin
    rounded_o = '0;
    rounded_o.special = normalised_i.special;
    rounded_o.sign = normalised_i.sign;
    rounded_o.invalid = normalised_i.invalid;
    if (normalised_i.special == SpecialNumber) begin
      rounded_o.exponent = 13'(exponent);
      rounded_o.significand = 64'(significand);
      rounded_o.inexact = guard | below | sticky;
      rounded_o.tiny = !kept[Precision-1] && !rounds_out;
    end else begin
      rounded_o.exponent = normalised_i.exponent;
      rounded_o.significand = normalised_i.significand;
    end
  end

  logic unused;

  assign unused = ^{mode_i, normalised_i};

endmodule
