// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Segment 5 of adder and multiplier: overflow, flush-to-zero, NaN and infinity, and the fields joined.
//
// Twin:        `round::pack` of src/arith/round.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_pack
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  mode_t    mode_i,
  input  rounded_t rounded_i,
  output done_t    done_o
);

  localparam int unsigned ExponentBits = exponent_bits(Dtype);
  localparam int unsigned FractionBits = fraction_bits(Dtype);
  localparam int unsigned PadBits = pad_bits(Dtype);
  localparam int unsigned Width = ExponentBits + FractionBits;
  // Exponent and fraction of the largest finite number, and of infinity (E4M3: of its NaN).
  localparam logic [Width-1:0] Largest = nan_only(Dtype) ? {{(Width-1){1'b1}}, 1'b0} :
                                         {{(ExponentBits-1){1'b1}}, 1'b0, {FractionBits{1'b1}}};
  localparam logic [Width-1:0] Infinity = nan_only(Dtype) ? '1 : {{ExponentBits{1'b1}}, {FractionBits{1'b0}}};

  logic                    normal, overflows, away, flushed, sign;
  logic [FractionBits-1:0] fraction;
  logic [Width+1:0]        magnitude;
  logic [Width-1:0]        packed_bits;

  assign normal = rounded_i.significand[FractionBits];
  assign fraction = rounded_i.significand[FractionBits-1:0];
  assign magnitude = {normal ? rounded_i.exponent[ExponentBits+1:0] : (ExponentBits+2)'(0), fraction};
  assign overflows = magnitude > {2'b00, Largest};
  assign flushed = mode_i.flush_to_zero && !normal && fraction != '0;

  always_comb begin
    unique case (mode_i.round)
      RoundNearestEven: away = 1'b1;
      RoundUp:          away = !rounded_i.sign;
      RoundDown:        away = rounded_i.sign;
      default:          away = 1'b0;
    endcase
  end

  always_comb begin
    done_o = '0;
    done_o.flags.invalid = rounded_i.invalid;
    sign = rounded_i.sign;
    packed_bits = magnitude[Width-1:0];
    unique case (rounded_i.special)
      SpecialNan: begin
        sign = 1'b0;
        packed_bits = rounded_i.significand[Width-1:0];
      end
      SpecialInfinity: packed_bits = Infinity;
      default: begin
        if (overflows) begin
          done_o.flags.overflow = 1'b1;
          done_o.flags.inexact = 1'b1;
          packed_bits = away ? Infinity : Largest;
          // A NaN has sign 0 wherever it comes from.
          if (away && nan_only(Dtype)) sign = 1'b0;
        end else if (flushed) begin
          done_o.flags.underflow = 1'b1;
          done_o.flags.inexact = 1'b1;
          packed_bits = '0;
        end else begin
          done_o.flags.inexact = rounded_i.inexact;
          done_o.flags.underflow = rounded_i.tiny && rounded_i.inexact;
        end
      end
    endcase
    done_o.lane = 64'({sign, packed_bits}) << PadBits;
  end

  logic unused;

  assign unused = ^{mode_i, rounded_i};

endmodule
