// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Comparator, segment 0 of integer lanes: keys in signed order.
//
// Twin:        `comparator::integer_keys` of src/arith/comparator.rs.
// Parameters:  Dtype  integer type of the lane
// Latency:     none, combinational
module ws_int_keys
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtI32
) (
  input  logic [63:0] a_i,
  input  logic [63:0] b_i,
  output keys_t       keys_o
);

  localparam int unsigned LaneBits = lane_bits(Dtype);

  // An unsigned lane goes to the top with its first bit inverted, which turns unsigned order into signed order.
  function automatic logic [63:0] key(logic [63:0] lane);
    if (is_signed(Dtype)) key = 64'($signed(lane[LaneBits-1:0]));
    else key = (lane << (64 - LaneBits)) ^ (64'd1 << 63);
  endfunction

  always_comb begin
    keys_o = '0;
    keys_o.a_key = key(a_i);
    keys_o.b_key = key(b_i);
    keys_o.a = 64'(a_i[LaneBits-1:0]);
    keys_o.b = 64'(b_i[LaneBits-1:0]);
  end

  logic unused;

  assign unused = ^{a_i, b_i};

endmodule
