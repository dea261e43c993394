// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// One port of a switch or an engine, on the side of its link: credits for what left the input queues, credits that are spent,
// and the registers behind the crossbar.
//
//   pop   -> register -> credit to the sender         grant -> Post + 1 registers -> link
//   grant -> + spent - <- credit from the receiver
//
// Twin:        the credits of src/fabric/ports.rs, and the pipeline behind switch allocation of src/fabric/pipeline.rs.
// Parameters:  First     number of the first channel
//              Channels  channels of the port that are counted here
//              Post      cycles of the pipeline behind switch allocation (0, 1, ...)
// Latency:     a flit is on the link Post + 1 cycles after its grant; a credit leaves in the cycle after the pop, and one that comes
//              in cycle t counts in t + 1
// Limitations: a flit a cycle; flits of other channels than these are passed on, and not counted
module ws_link_port
  import ws_pkg::*;
#(
  parameter int unsigned First = 0,
  parameter int unsigned Channels = 2,
  parameter int unsigned Post = 0
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [Channels-1:0] pop_i,
  input  logic                sent_i,
  input  flit_t               sent_flit_i,
  output logic [15:0]         spent_o [Channels],
  output logic [Channels-1:0] credit_o,
  input  logic [Channels-1:0] credit_i,
  output logic                out_valid_o,
  output flit_t               out_flit_o
);

  logic [Channels-1:0] credit_q;
  logic [15:0]         spent_q [Channels];
  logic                sent_q [Post+1];
  flit_t               sent_flit_q [Post+1];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      credit_q <= '0;
      for (int unsigned vc = 0; vc < Channels; vc++) spent_q[vc] <= '0;
      for (int unsigned s = 0; s <= Post; s++) begin
        sent_q[s] <= 1'b0;
        sent_flit_q[s] <= '0;
      end
    end else begin
      credit_q <= pop_i;
      for (int unsigned vc = 0; vc < Channels; vc++) begin
        spent_q[vc] <= spent_q[vc] + 16'(sent_i && 32'(sent_flit_i.tag.vc) == First + vc) - 16'(credit_i[vc]);
      end
      sent_q[0] <= sent_i;
      if (sent_i) sent_flit_q[0] <= sent_flit_i;
      for (int unsigned s = 1; s <= Post; s++) begin
        sent_q[s] <= sent_q[s-1];
        if (sent_q[s-1]) sent_flit_q[s] <= sent_flit_q[s-1];
      end
    end
  end

  assign spent_o = spent_q;
  assign credit_o = credit_q;
  assign out_valid_o = sent_q[Post];
  assign out_flit_o = sent_flit_q[Post];

endmodule
