// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Adder, segment 3: count leading zeros and normalise; the shift to the left stops at the smallest exponent.
//
// Twin:        `adder::normalise` of src/arith/adder.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
// Note:        the count starts at the carry, so that a carry is a shift by nothing; the result is then taken one place lower
module ws_fp_add_normalise
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  summed_t     summed_i,
  output normalised_t normalised_o
);

  localparam int unsigned ExponentBits = exponent_bits(Dtype) + 2;
  localparam int unsigned Width = fraction_bits(Dtype) + 5;
  localparam int unsigned PlaceBits = $clog2(Width);

  logic [Width-1:0]        sum, shifted;
  logic [PlaceBits-1:0]    top, zeros, shift;
  logic [ExponentBits-1:0] room, exponent;
  logic                    any;

  assign sum = summed_i.sum[Width-1:0];
  assign room = summed_i.exponent[ExponentBits-1:0];

  ws_top_one #(.Width(Width)) u_top (.data_i(sum), .position_o(top), .any_o(any));

  assign zeros = PlaceBits'(Width - 1) - top;
  // A zero needs no shift, and its exponent is set below.
  assign shift = 13'(zeros) < 13'(room) ? zeros : PlaceBits'(room);
  assign shifted = sum << shift;
  assign exponent = any ? room + ExponentBits'(1) - ExponentBits'(shift) : ExponentBits'(1);

  always_comb begin
    normalised_o = '0;
    normalised_o.special = summed_i.special;
    normalised_o.sign = summed_i.sign;
    normalised_o.invalid = summed_i.invalid;
    normalised_o.exponent = summed_i.special == SpecialNumber ? 13'(exponent) : summed_i.exponent;
    normalised_o.significand = summed_i.special == SpecialNumber ?
                               64'({shifted[Width-1:2], shifted[1] | shifted[0]}) : summed_i.sum;
  end

  logic unused;

  assign unused = ^summed_i;

endmodule
