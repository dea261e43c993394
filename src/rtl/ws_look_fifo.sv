// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A short queue that shows its two oldest entries: a shift register, the oldest entry first.
//
// Twin:        an input queue of src/fabric/wires/queue.rs, and `behind_head` of src/fabric/wires/io.rs.
// Parameters:  Width  bits of an entry
//              Depth  entries, 2 or more
// Latency:     what is pushed in cycle t is there in t + 1
// Limitations: the one who pushes counts the places: nothing is pushed into a full queue that is not popped in the same cycle
module ws_look_fifo #(
  parameter int unsigned Width = 1,
  parameter int unsigned Depth = 2,
  localparam int unsigned LenBits = $clog2(Depth + 1)
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               push_i,
  input  logic [Width-1:0]   data_i,
  input  logic               pop_i,
  output logic [LenBits-1:0] len_o,
  output logic [Width-1:0]   head_o,
  output logic [Width-1:0]   second_o
);

  logic [Width-1:0]   data_q [Depth];
  logic [LenBits-1:0] len_q, kept;

  assign kept = len_q - LenBits'(pop_i);
  assign len_o = len_q;
  assign head_o = data_q[0];
  assign second_o = data_q[1];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      len_q <= '0;
      for (int unsigned k = 0; k < Depth; k++) data_q[k] <= '0;
    end else begin
      len_q <= kept + LenBits'(push_i);
      for (int unsigned k = 0; k < Depth; k++) begin
        if (push_i && 32'(kept) == k) data_q[k] <= data_i;
        else if (pop_i && k + 1 < Depth) data_q[k] <= data_q[(k + 1) % Depth];
      end
    end
  end

endmodule
