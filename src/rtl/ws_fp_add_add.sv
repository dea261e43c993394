// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Adder, segment 2: add or subtract; an exact zero difference gets its sign here.
//
// Twin:        `adder::add` of src/arith/adder.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_add_add
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  mode_t    mode_i,
  input  aligned_t aligned_i,
  output summed_t  summed_o
);

  // A carry, the significand with hidden bit, guard, round and sticky.
  localparam int unsigned Width = fraction_bits(Dtype) + 5;

  logic [Width-1:0] larger, smaller, sum;

  assign larger = {1'b0, aligned_i.larger[Width-2:0]};
  assign smaller = {1'b0, aligned_i.smaller[Width-2:0]};
  assign sum = aligned_i.subtract ? larger - smaller : larger + smaller;

  always_comb begin
    summed_o = '0;
    summed_o.special = aligned_i.special;
    summed_o.sign = aligned_i.subtract && sum == '0 ? mode_i.round == RoundDown : aligned_i.sign;
    summed_o.invalid = aligned_i.invalid;
    summed_o.exponent = aligned_i.exponent;
    // Around the significand path there is nothing to add.
    summed_o.sum = aligned_i.special == SpecialNumber ? 64'(sum) : aligned_i.larger;
  end

  logic unused;

  assign unused = ^{mode_i, aligned_i};

endmodule
