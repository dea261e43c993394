// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The data path of a packet engine: a bump in the wire between a switch (port 0) and what lies behind it (port 1).
//
//   0 --> queues --+--------------- passes ----------------+--> 1        the same from 1 to 0
//                  +-- whose frame is it? its words --> checker
//                                    frames that leave, by 0 or 1 <-- output queue
//
// Twin:        `Interposer`, `wants` and `inject` of src/pbv/engine.rs, between the links of src/fabric/wires.
// Parameters:  First     number of the channel of frames; those of other traffic follow it
//              Channels  channels, that of frames included
//              Depth     flits of an input queue, the largest of all, 2 or more
// Latency:     a frame is known by its second flit: its head is granted, or its first word taken, in the cycle in which that flit is in
//              the queue. Links are registered: what is granted in t is on out_valid_o in t + 1
// Priority:    at an output a frame and other traffic take turns, flit by flit; channels of other traffic take turns by the cycle. A
//              frame that passes and one that leaves take turns, frame by frame
// Limitations: links that take a flit a cycle, flits of a word; a channel may be used again before the credits of its last packet are
//              back. Who has which address, and by which port it is reached, is known outside. Tags of frames that leave have no id
//              and number (labels of waves)
module ws_pbv_interposer
  import ws_pkg::*;
#(
  parameter int unsigned First = 0,
  parameter int unsigned Channels = 1,
  parameter int unsigned Depth = 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,
`ifdef WS_FAULTS
  input  logic [3:0]          fault_i,
`endif
  input  logic [47:0]         now_i,
  input  logic [15:0]         device_i,  // the engine's address
  input  logic [15:0]         base_i,
  // Flits in the far buffers: the credits at reset, by port and channel. Constant.
  input  logic [15:0]         credits_at_reset_i [2][Channels],
  // Words that may still come to wait, those of frames under way not counted.
  input  logic [15:0]         room_i,
  // Words that may wait in all, as many as the longest frame has or more. Constant.
  input  logic [15:0]         inbox_i,
  // The address of the frame at the head of each queue, and whether anybody has it.
  output logic [31:0]         address_o [2],
  input  logic [1:0]          known_i,
  // Links.
  input  logic [1:0]          in_valid_i,
  input  flit_t               in_flit_i [2],
  output logic [Channels-1:0] credit_o [2],
  output logic [1:0]          out_valid_o,
  output flit_t               out_flit_o [2],
  input  logic [Channels-1:0] credit_i [2],
  // Words of frames for this engine.
  output logic [1:0]          take_o,
  output logic [63:0]         word_o [2],
  output logic [1:0]          tail_o,
  // The word of a frame that leaves, by which port, and whether it goes.
  input  logic                valid_i,
  input  logic [63:0]         word_i,
  input  logic                head_i,
  input  logic                tail_i,
  input  logic                side_i,
  output logic                free_o,
  // Flits in the queues.
  output logic [15:0]         level_o [2][Channels]
);

  localparam int unsigned LenBits = $clog2(Depth + 1);
  localparam int unsigned Traffic = Channels > 1 ? Channels - 1 : 1;
  localparam int unsigned ChannelBits = Channels > 1 ? $clog2(Channels) : 1;

  // What the channel of frames is in the middle of.
  typedef enum logic [1:0] {
    WayBetween   = 2'd0,
    WayPasses    = 2'd1,
    WayExtracted = 2'd2
  } way_e;

  // Who had an output last lets the other go first.
  typedef enum logic {
    TurnFrames  = 1'b0,
    TurnTraffic = 1'b1
  } turn_e;

  //////////////////
  // Input queues //
  //////////////////

  logic [LenBits-1:0]  len [2][Channels];
  flit_t               head [2][Channels];
  flit_t               second [2];
  logic [Channels-1:0] there [2];
  logic [Channels-1:0] pop [2];
  logic [15:0]         spent [2][Channels];
  logic [Channels-1:0] credit [2];

  for (genvar p = 0; p < 2; p++) begin : gen_input
    ws_look_fifo #(
      .Width($bits(flit_t)),
      .Depth(Depth)
    ) u_frames (
      .clk_i,
      .rst_ni,
      .push_i(in_valid_i[p] && 32'(in_flit_i[p].tag.vc) == First),
      .data_i(in_flit_i[p]),
      .pop_i(pop[p][0]),
      .len_o(len[p][0]),
      .head_o(head[p][0]),
      .second_o(second[p])
    );

    for (genvar c = 1; c < Channels; c++) begin : gen_channel
      logic unused_present, unused_ready;

      ws_delay_fifo #(
        .Width($bits(flit_t)),
        .Depth(Depth),
        .Wait(0)
      ) u_queue (
        .clk_i,
        .rst_ni,
        .push_i(in_valid_i[p] && 32'(in_flit_i[p].tag.vc) == First + c),
        .data_i(in_flit_i[p]),
        .pop_i(pop[p][c]),
        .len_o(len[p][c]),
        .present_o(unused_present),
        .ready_o(unused_ready),
        .head_o(head[p][c])
      );
    end

    for (genvar c = 0; c < Channels; c++) begin : gen_level
      assign there[p][c] = len[p][c] != '0;
      assign credit[p][c] = spent[p][c] < credits_at_reset_i[p][c];
      assign level_o[p][c] = 16'(len[p][c]);
    end

    assign address_o[p] = second[p].word[63:32];
    assign word_o[p] = head[p][0].word;
  end

  ///////////////////////////
  // Whose frames they are //
  ///////////////////////////

  way_e        way_q [2];
  way_e        way_d [2];
  turn_e       turn_q [2];
  turn_e       turn_d [2];
  logic [9:0]  reserved_q [2];   // of the frame that is being taken
  logic [9:0]  reserved_d [2];
  logic [9:0]  length [2];
  logic [1:0]  mine;
  logic [1:0]  passing_q, passing_d;  // by output: in the middle of a frame that passes
  logic [1:0]  yields_q, yields_d;    // by output: one that leaves has waited for it
  // The copy as the cycle before left it.
  logic        stands_q, begun_q, side_q;

  always_comb begin
    for (int unsigned p = 0; p < 2; p++) begin
      logic [15:0] beyond;

      beyond = address_o[p][15:0] - base_i;
      mine[p] = (address_o[p][31:16] == device_i && beyond < 16'h400) || !known_i[p];
      // Length is the lowest field of the first double word, and counts double words.
      length[p] = 10'd4 + {1'b0, head[p][0].word[41:33]};
      if (length[p] > 10'd514) length[p] = 10'd514;
      // A damaged length may be more than any frame has: what is longer than all that may wait has that to itself.
      if (32'(length[p]) > 32'(inbox_i)) length[p] = inbox_i[9:0];
    end
  end

  logic [1:0]             wants;
  logic [1:0]             passes, takes;     // by the port it comes in at
  logic [ChannelBits-1:0] at [2];
  logic                   free;

  always_comb begin
    int unsigned c, first;
    logic        frames_first, between, starts;

    way_d = way_q;
    turn_d = turn_q;
    reserved_d = reserved_q;
    passing_d = passing_q;
    c = 0;
    between = 1'b0;
    starts = 1'b0;
    first = 32'(now_i % 48'(Traffic));
    for (int unsigned p = 0; p < 2; p++) begin
      wants[p] = stands_q && 32'(side_q) == p && turn_q[p] == TurnFrames && credit[p][0] && (begun_q || !passing_q[p]);
    end
    for (int unsigned p = 0; p < 2; p++) begin
      passes[p] = 1'b0;
      takes[p] = 1'b0;
      at[p] = '0;
      frames_first = turn_q[1-p] == TurnFrames || wants[1-p];
      for (int unsigned k = 0; k < Channels; k++) begin
        c = frames_first ? (k == 0 ? 0 : 1 + (first + k - 1) % Traffic) : (k == Channels - 1 ? 0 : 1 + (first + k) % Traffic);
        if (c != 0) begin
          if (there[p][c] && credit[1-p][c] && !wants[1-p] && !passes[p]) begin
            passes[p] = 1'b1;
            at[p] = ChannelBits'(c);
            turn_d[1-p] = TurnFrames;
          end
        end else begin
          between = way_q[p] == WayBetween;
          starts = between && len[p][0] > LenBits'(1);
          if (starts && mine[p]) begin
`ifdef WS_FAULTS
            // What the frame at the other port will take is overlooked.
            if (32'(room_i) >= 32'(length[p]) + (fault_i == 4'd13 ? '0 : 32'(reserved_d[0]) + 32'(reserved_d[1]))) begin
`else
            if (32'(room_i) >= 32'(length[p]) + 32'(reserved_d[0]) + 32'(reserved_d[1])) begin
`endif
              takes[p] = 1'b1;
              way_d[p] = WayExtracted;
              reserved_d[p] = length[p];
            end
          end else if (way_q[p] == WayExtracted) begin
            takes[p] = there[p][0];
          end else if ((starts || way_q[p] == WayPasses) && there[p][0] && credit[1-p][0] && !passes[p] &&
                       !(starts && (yields_q[1-p] || (stands_q && begun_q && 32'(side_q) == 1 - p)))) begin
            passes[p] = 1'b1;
            at[p] = '0;
            turn_d[1-p] = TurnTraffic;
            way_d[p] = head[p][0].tag.tail ? WayBetween : WayPasses;
            passing_d[1-p] = !head[p][0].tag.tail;
          end
          if (takes[p] && head[p][0].tag.tail) begin
            way_d[p] = WayBetween;
            reserved_d[p] = '0;
          end
        end
      end
    end

    // A frame that leaves has what is left of its output.
    free = credit[side_i][0] && !passes[1-side_i] && (!head_i || !passing_d[side_i]);
`ifdef WS_FAULTS
    // It begins in the middle of another.
    if (fault_i == 4'd12) free = credit[side_i][0] && !passes[1-side_i];
`endif
    yields_d = yields_q;
    if (valid_i) yields_d[side_i] = head_i && !free;
    if (valid_i && free) turn_d[side_i] = TurnTraffic;
  end

  assign take_o = takes;
  assign tail_o = {head[1][0].tag.tail, head[0][0].tag.tail};
  assign free_o = free;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned p = 0; p < 2; p++) begin
        way_q[p] <= WayBetween;
        turn_q[p] <= TurnFrames;
        reserved_q[p] <= '0;
      end
      passing_q <= '0;
      yields_q <= '0;
      stands_q <= 1'b0;
      begun_q <= 1'b0;
      side_q <= 1'b0;
    end else begin
      way_q <= way_d;
      turn_q <= turn_d;
      reserved_q <= reserved_d;
      passing_q <= passing_d;
      yields_q <= yields_d;
      stands_q <= valid_i && !(free && tail_i);
      begun_q <= !head_i || free;
      side_q <= side_i;
    end
  end

  ////////////////////////
  // Credits, and links //
  ////////////////////////

  logic [1:0] sent;
  flit_t      sent_flit [2];

  always_comb begin
    for (int unsigned p = 0; p < 2; p++) begin
      pop[p] = '0;
      if (passes[p]) pop[p][at[p]] = 1'b1;
      if (takes[p]) pop[p][0] = 1'b1;
    end
    for (int unsigned p = 0; p < 2; p++) begin
      sent[p] = passes[1-p];
      sent_flit[p] = head[1-p][at[1-p]];
      if (valid_i && free && 32'(side_i) == p) begin
        sent[p] = 1'b1;
        sent_flit[p] = '0;
        sent_flit[p].tag.vc = 5'(First);
        sent_flit[p].tag.head = head_i;
        sent_flit[p].tag.tail = tail_i;
        sent_flit[p].word = word_i;
      end
    end
  end

  for (genvar p = 0; p < 2; p++) begin : gen_output
    ws_link_port #(
      .First(First),
      .Channels(Channels)
    ) u_port (
      .clk_i,
      .rst_ni,
      .pop_i(pop[p]),
      .sent_i(sent[p]),
      .sent_flit_i(sent_flit[p]),
      .spent_o(spent[p]),
      .credit_o(credit_o[p]),
      .credit_i(credit_i[p]),
      .out_valid_o(out_valid_o[p]),
      .out_flit_o(out_flit_o[p])
    );
  end

  // Of the second flit the address is looked at.
  logic unused;

  assign unused = ^{second[0].tag, second[0].word[31:0], second[1].tag, second[1].word[31:0]};

endmodule
