// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The exit of a reduction engine: frames that wait for the link, and the one that leaves flit by flit.
//
// Twin:        `exit` and `leaving` of src/armed/engine.rs; `Frame::to_words` of src/armed/interface/frame.rs.
// Parameters:  Frames   frames that wait (`exit_frames`)
//              Pushes   frames that may come in a cycle
// Latency:     a frame that comes in cycle t can send its head in t + 1; one flit a cycle
// Limitations: who pushes counts the places; tags carry no number of a flit, which only the model's checks look at
module ws_armed_exit
  import ws_pkg::*;
#(
  parameter int unsigned Frames = 4,
  parameter int unsigned Pushes = 3,
  localparam int unsigned LenBits = $clog2(Frames + 1),
  localparam int unsigned PushBits = $clog2(Pushes + 1)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [PushBits-1:0] pushes_i,
  input  frame_t              push_i [Pushes],
  input  logic                send_i,    // the link can take a flit
  output logic                valid_o,   // there is one
  output flit_t               flit_o,
  output logic [LenBits-1:0]  held_o,    // frames that wait
  output logic [LenBits-1:0]  len_o      // those that stay in this cycle
);

  localparam logic [3:0] Last = 4'd10;

  frame_t             data_q [Frames];
  frame_t             data_d [Frames];
  logic [LenBits-1:0] len_q, kept;
  logic               pop;

  frame_t             leaving_q, leaving;
  logic               leaves_q;
  logic [3:0]         at_q, at;
  logic [31:0]        crc_q, crc_before, crc;
  logic [63:0]        word;
  logic               go;

  assign valid_o = leaves_q || len_q != '0;
  assign go = valid_o && send_i;
  assign pop = go && !leaves_q;
  assign kept = len_q - LenBits'(pop);
  assign held_o = len_q;
  assign len_o = kept;
  assign leaving = leaves_q ? leaving_q : data_q[0];
  assign at = leaves_q ? at_q : '0;

  always_comb begin
    for (int unsigned k = 0; k < Frames; k++) begin
      data_d[k] = pop && k + 1 < Frames ? data_q[(k + 1) % Frames] : data_q[k];
      for (int unsigned n = 0; n < Pushes; n++) begin
        if (n < 32'(pushes_i) && 32'(kept) + n == k) data_d[k] = push_i[n];
      end
    end
  end

  // The words of the frame that leaves.
  assign crc_before = at == '0 ? '1 : crc_q;

  ws_crc32 u_crc (.crc_i(crc_before), .word_i(word), .crc_o(crc));

  always_comb begin
    unique case (at)
      4'd0:    word = {9'h1ff, 2'd0, leaving.address.reduction_id, 2'd0, leaving.address.multicast_id, 3'd7, leaving.source};
      4'd1:    word = {leaving.vni, 16'd84, 32'd0};
      4'd2:    word = {32'd0, 8'h52, leaving.target, leaving.request[31:24]};
      4'd3:    word = {leaving.request[23:0], leaving.initiator, 16'd49, 8'd0};
      4'd4:    word = {leaving.rank, leaving.cookie};
      4'd5:    word = {2'd0, leaving.retry, leaving.quad.oflow_id, leaving.quad.m, leaving.quad.code, leaving.resno,
                       leaving.count, leaving.op, leaving.arm, leaving.seqno};
      4'd6:    word = leaving.quad.word[0];
      4'd7:    word = leaving.quad.word[1];
      4'd8:    word = leaving.quad.word[2];
      4'd9:    word = leaving.quad.word[3];
      default: word = {~crc_q, 32'd0};
    endcase
  end

  always_comb begin
    flit_o = '0;
    flit_o.tag.head = at == '0;
    flit_o.tag.tail = at == Last;
    flit_o.tag.id = leaving.address.multicast_id[11:0];
    flit_o.word = word;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      len_q <= '0;
      for (int unsigned k = 0; k < Frames; k++) data_q[k] <= '0;
      leaving_q <= '0;
      leaves_q <= 1'b0;
      at_q <= '0;
      crc_q <= '0;
    end else begin
      len_q <= kept + LenBits'(pushes_i);
      data_q <= data_d;
      if (pop) leaving_q <= data_q[0];
      if (go) begin
        leaves_q <= at != Last;
        at_q <= at + 4'd1;
        crc_q <= crc;
      end
    end
  end

endmodule
