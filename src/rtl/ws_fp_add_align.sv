// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Adder, segment 1: move the smaller significand under the larger one, keeping guard, round and sticky.
//
// Twin:        `adder::align` of src/arith/adder.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_add_align
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  compared_t compared_i,
  output aligned_t  aligned_o
);

  // Significand with hidden bit, guard, round and sticky.
  localparam int unsigned Width = fraction_bits(Dtype) + 4;
  localparam int unsigned DistanceBits = exponent_bits(Dtype);

  logic [2*Width-1:0] shifted;
  logic [Width-1:0]   kept;
  logic               sticky;

  // What leaves the upper half falls into the lower one, and from there out: then only the sticky bit is left of it.
  assign shifted = {compared_i.smaller[Width-4:0], {(Width+3){1'b0}}} >> compared_i.distance[DistanceBits-1:0];
  assign kept = shifted[2*Width-1:Width];
`ifdef WS_FAULT_STICKY
  assign sticky = 1'b0;
`else
  assign sticky = |shifted[Width-1:0] ||
                  (32'(compared_i.distance) >= Width && compared_i.smaller != '0);
`endif

  always_comb begin
    aligned_o = '0;
    aligned_o.special = compared_i.special;
    aligned_o.sign = compared_i.sign;
    aligned_o.subtract = compared_i.subtract;
    aligned_o.invalid = compared_i.invalid;
    aligned_o.exponent = compared_i.exponent;
    aligned_o.larger = compared_i.special == SpecialNumber ? 64'({compared_i.larger[Width-4:0], 3'b000}) : compared_i.larger;
    aligned_o.smaller = 56'({kept[Width-1:1], kept[0] | sticky});
  end

`ifdef WS_FAULT_STICKY
  logic unused_fault;

  assign unused_fault = ^shifted[Width-1:0];
`endif

  logic unused;

  assign unused = ^compared_i;

endmodule
