// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A short queue whose entries may leave only some cycles after they came: a shift register, the oldest entry first.
//
// Twin:        an input queue of src/fabric/wires/queue.rs with `ready` of its entries; an operand slot of src/piuma/ceng.rs.
// Parameters:  Width  bits of an entry
//              Depth  entries
//              Wait   cycles that an entry waits before it is ready, from the one in which it is first there
// Latency:     what is pushed in cycle t is there in t + 1, and ready in t + 1 + Wait
// Limitations: the one who pushes counts the places: nothing is pushed into a full queue that is not popped in the same cycle
module ws_delay_fifo #(
  parameter int unsigned Width = 1,
  parameter int unsigned Depth = 2,
  parameter int unsigned Wait = 0,
  localparam int unsigned LenBits = $clog2(Depth + 1)
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               push_i,
  input  logic [Width-1:0]   data_i,
  input  logic               pop_i,
  output logic [LenBits-1:0] len_o,
  output logic               present_o,  // there is an entry
  output logic               ready_o,    // the oldest one may leave
  output logic [Width-1:0]   head_o
);

  localparam int unsigned WaitBits = Wait > 0 ? $clog2(Wait + 1) : 1;

  logic [Width-1:0]    data_q [Depth];
  logic [Width-1:0]    data_d [Depth];
  logic [WaitBits-1:0] wait_q [Depth];
  logic [WaitBits-1:0] wait_d [Depth];
  logic [LenBits-1:0]  len_q, len_d, kept;

  assign kept = len_q - LenBits'(pop_i);

  always_comb begin
    for (int unsigned k = 0; k < Depth; k++) begin
      // What stays moves up when the oldest leaves.
      data_d[k] = pop_i && k + 1 < Depth ? data_q[(k + 1) % Depth] : data_q[k];
      wait_d[k] = pop_i && k + 1 < Depth ? wait_q[(k + 1) % Depth] : wait_q[k];
      if (wait_d[k] != '0) wait_d[k] = wait_d[k] - WaitBits'(1);
      if (push_i && 32'(kept) == k) begin
        data_d[k] = data_i;
        wait_d[k] = WaitBits'(Wait);
      end
    end
    len_d = kept + LenBits'(push_i);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      len_q <= '0;
      for (int unsigned k = 0; k < Depth; k++) begin
        data_q[k] <= '0;
        wait_q[k] <= '0;
      end
    end else begin
      len_q <= len_d;
      data_q <= data_d;
      wait_q <= wait_d;
    end
  end

  assign len_o = len_q;
  assign present_o = len_q != '0;
  assign ready_o = len_q != '0 && wait_q[0] == '0;
  assign head_o = data_q[0];

endmodule
