// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Integer unit, segment 0: extend to 64 bits; a signed multiplication takes magnitudes.
//
// Twin:        `integer::extend` of src/arith/integer.rs.
// Parameters:  Dtype  integer type of the lane
// Latency:     none, combinational
module ws_int_extend
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtI32
) (
  input  fn_e         fn_i,
  input  logic [63:0] a_i,
  input  logic [63:0] b_i,
  output extended_t   extended_o
);

  localparam int unsigned LaneBits = lane_bits(Dtype);

  logic [63:0] a, b;

  assign a = is_signed(Dtype) ? 64'($signed(a_i[LaneBits-1:0])) : 64'(a_i[LaneBits-1:0]);
  assign b = is_signed(Dtype) ? 64'($signed(b_i[LaneBits-1:0])) : 64'(b_i[LaneBits-1:0]);

  always_comb begin
    extended_o.negative = 1'b0;
    extended_o.a = a;
    extended_o.b = b;
    if (fn_i == FnMul && is_signed(Dtype)) begin
      extended_o.negative = a[63] ^ b[63];
      extended_o.a = a[63] ? -a : a;
      extended_o.b = b[63] ? -b : b;
    end
  end

  logic unused;

  assign unused = ^{a_i, b_i};

endmodule
