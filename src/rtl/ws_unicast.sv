// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The point-to-point channels of a switch: packets of any number of flits, routed by their destination, wormhole.
//
//   link -> queue per channel -> RC: an output port -> VA: a channel of it -> SA, crossbar -> link
//                 <- credits, one a flit and channel --------------------------- <- credits
//
// Twin:        src/fabric/unicast.rs, with `ordered` of src/fabric/vc_alloc.rs and `separable` of src/fabric/switch_alloc.rs.
// Parameters:  Ports     external ports
//              Set       channels of set-routed packets, whose numbers come first; they are ws_coll_switch's
//              Channels  point-to-point channels
//              Depth     flits of an input queue, the largest of all ports
//              Ends      end points that a head flit may name, in bits 63:40 of its word
//              Route     cycles of route computation before the others, 0 or 1
//              VcAlloc   cycles of channel allocation before switch allocation, 0 or 1
//              Post      cycles of the pipeline behind switch allocation (0, 1, ...)
// Latency:     a head flit that comes in cycle t can be granted in t + 1 + Route + VcAlloc, others in t + 1; a flit is on the link
//              Post + 1 cycles after its grant. A credit leaves in the cycle after the grant.
// Allocation:  VA: an output goes through those that ask, in turn, and gives each the lowest free channel that it may use. SA: each
//              input picks a channel in turn, then each output picks an input in turn. A channel that a tail has left can be given
//              away in the next cycle.
// Limitations: the allocators `ordered` and `separable`, round-robin, one crossbar input a port; links that take a flit a cycle; no
//              adaptive routes, no classes; inputs and outputs that set-routed packets take in a cycle are not available in it
module ws_unicast
  import ws_pkg::*;
#(
  parameter int unsigned Ports = 10,
  parameter int unsigned Set = 2,
  parameter int unsigned Channels = 2,
  parameter int unsigned Depth = 8,
  parameter int unsigned Ends = 8,
  parameter int unsigned Route = 0,
  parameter int unsigned VcAlloc = 0,
  parameter int unsigned Post = 0,
  localparam int unsigned PortBits = Ports > 1 ? $clog2(Ports) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  // Flits in the far buffer of each link: the credits at reset. Constant.
  input  logic [15:0]         credits_at_reset_i [Ports],
  // The output port towards each end point, and the channels that a packet may go on by, by the one that it came by. Constant.
  input  logic [PortBits-1:0] route_i [Ends],
  input  logic [Channels-1:0] allowed_i [Channels],
  // What set-routed packets take in this cycle.
  input  logic [Ports-1:0]    taken_in_i,
  input  logic [Ports-1:0]    taken_out_i,
  // Links.
  input  logic [Ports-1:0]    in_valid_i,
  input  flit_t               in_flit_i [Ports],
  output logic [Channels-1:0] credit_o [Ports],
  output logic [Ports-1:0]    out_valid_o,
  output flit_t               out_flit_o [Ports],
  input  logic [Channels-1:0] credit_i [Ports]
);

  localparam int unsigned Queues = Ports * Channels;
  localparam int unsigned QueueBits = $clog2(Queues + 1);
  localparam int unsigned ChannelBits = Channels > 1 ? $clog2(Channels) : 1;
  localparam int unsigned LenBits = $clog2(Depth + 1);
  localparam int unsigned EndBits = Ends > 1 ? $clog2(Ends) : 1;

  // How far the packet at the head of a queue is.
  typedef enum logic [1:0] {
    PhaseIdle   = 2'd0,
    PhaseRouted = 2'd1,
    PhaseActive = 2'd2
  } phase_e;

  // Queues by number: port x Channels + channel.
  phase_e                 phase_q [Queues];
  phase_e                 phase_routed [Queues];  // when routes have been computed
  phase_e                 phase_given [Queues];   // and channels given
  phase_e                 phase_d [Queues];       // and flits have left
  logic [PortBits-1:0]    out_q [Queues];
  logic [PortBits-1:0]    out_d [Queues];
  logic [ChannelBits-1:0] channel_q [Queues];
  logic [ChannelBits-1:0] channel_d [Queues];
  // By output: who holds a channel, and how many credits are spent.
  logic [Channels-1:0]    held_q [Ports];
  logic [Channels-1:0]    held_given [Ports];
  logic [Channels-1:0]    held_d [Ports];
  logic [15:0]            spent [Ports][Channels];
  // Behind who was served last.
  logic [QueueBits-1:0]   given_q [Ports];
  logic [QueueBits-1:0]   given_d [Ports];
  logic [ChannelBits:0]   picked_q [Ports];
  logic [ChannelBits:0]   picked_d [Ports];
  logic [PortBits:0]      crossed_q [Ports];
  logic [PortBits:0]      crossed_d [Ports];

  // The k-th of `all` requesters, in turn from one of them on, or from behind the last one.
  function automatic int unsigned in_turn(int unsigned from, int unsigned k, int unsigned all);
    in_turn = from + k >= all ? from + k - all : from + k;
  endfunction

  //////////////////
  // Input queues //
  //////////////////

  logic [LenBits-1:0] len [Queues];
  logic               present [Queues];
  flit_t              head [Queues];
  logic               pop [Queues];

  for (genvar port = 0; port < Ports; port++) begin : gen_input
    for (genvar vc = 0; vc < Channels; vc++) begin : gen_channel
      logic unused_ready;

      ws_delay_fifo #(
        .Width($bits(flit_t)),
        .Depth(Depth)
      ) u_queue (
        .clk_i,
        .rst_ni,
        .push_i(in_valid_i[port] && 32'(in_flit_i[port].tag.vc) == Set + vc),
        .data_i(in_flit_i[port]),
        .pop_i(pop[port*Channels + vc]),
        .len_o(len[port*Channels + vc]),
        .present_o(present[port*Channels + vc]),
        .ready_o(unused_ready),
        .head_o(head[port*Channels + vc])
      );
    end
  end

  ///////////////////////
  // Route computation //
  ///////////////////////

  logic [Queues-1:0] asks;

  always_comb begin
    for (int unsigned q = 0; q < Queues; q++) begin
      phase_routed[q] = phase_q[q];
      out_d[q] = out_q[q];
      if (phase_q[q] == PhaseIdle && present[q]) begin
        phase_routed[q] = PhaseRouted;
        out_d[q] = route_i[head[q].word[40 +: EndBits]];
      end
      asks[q] = Route == 0 ? phase_routed[q] == PhaseRouted : phase_q[q] == PhaseRouted;
    end
  end

  ////////////////////////
  // Channel allocation //
  ////////////////////////

  logic [Channels-1:0] allowed [Queues];

  for (genvar q = 0; q < Queues; q++) begin : gen_allowed
    assign allowed[q] = allowed_i[q % Channels];
  end

  always_comb begin
    logic [QueueBits-1:0] q;
    logic [Channels-1:0]  usable;
    logic                 found;

    phase_given = phase_routed;
    channel_d = channel_q;
    held_given = held_q;
    given_d = given_q;
    q = '0;
    usable = '0;
    found = 1'b0;
    for (int unsigned out = 0; out < Ports; out++) begin
      for (int unsigned k = 0; k < Queues; k++) begin
        q = QueueBits'(in_turn(32'(given_q[out]), k, Queues));
        usable = allowed[q] & ~held_given[out];
        if (asks[q] && 32'(out_d[q]) == out && usable != '0) begin
          found = 1'b0;
          for (int unsigned vc = 0; vc < Channels; vc++) begin
            if (!found && usable[vc]) begin
              found = 1'b1;
              channel_d[q] = ChannelBits'(vc);
              held_given[out][vc] = 1'b1;
            end
          end
          phase_given[q] = PhaseActive;
          given_d[out] = q + QueueBits'(1);
        end
      end
    end
  end

  ///////////////////////
  // Switch allocation //
  ///////////////////////

  logic [Ports-1:0] sent;
  flit_t            sent_flit [Ports];

  always_comb begin
    logic [Queues-1:0]      can;
    logic [Ports-1:0]       chosen;
    logic [ChannelBits-1:0] choice [Ports];
    logic [ChannelBits-1:0] vc;
    logic [PortBits-1:0]    port, out;
    logic [QueueBits-1:0]   q;
    logic                   active;

    phase_d = phase_given;
    held_d = held_given;
    picked_d = picked_q;
    crossed_d = crossed_q;
    can = '0;
    chosen = '0;
    sent = '0;
    vc = '0;
    port = '0;
    out = '0;
    q = '0;
    active = 1'b0;
    for (int unsigned n = 0; n < Queues; n++) begin
      pop[n] = 1'b0;
      active = VcAlloc == 0 ? phase_given[n] == PhaseActive : phase_q[n] == PhaseActive;
      out = out_d[n];
      can[n] = active && present[n] && !taken_in_i[PortBits'(n / Channels)] && !taken_out_i[out] &&
               spent[out][channel_d[n]] < credits_at_reset_i[out];
    end
    // Each input picks one of its channels.
    for (int unsigned n = 0; n < Ports; n++) begin
      choice[n] = '0;
      sent_flit[n] = '0;
      for (int unsigned k = 0; k < Channels; k++) begin
        vc = ChannelBits'(in_turn(32'(picked_q[n]), k, Channels));
        if (!chosen[n] && can[QueueBits'(n*Channels + 32'(vc))]) begin
          chosen[n] = 1'b1;
          choice[n] = vc;
        end
      end
    end
    // Each output picks one of these inputs.
    for (int unsigned n = 0; n < Ports; n++) begin
      for (int unsigned k = 0; k < Ports; k++) begin
        port = PortBits'(in_turn(32'(crossed_q[n]), k, Ports));
        q = QueueBits'(32'(port) * Channels + 32'(choice[port]));
        if (!sent[n] && chosen[port] && 32'(out_d[q]) == n) begin
          sent[n] = 1'b1;
          sent_flit[n] = head[q];
          sent_flit[n].tag.vc = 5'(Set) + 5'(channel_d[q]);
          pop[q] = 1'b1;
          picked_d[port] = (ChannelBits+1)'(choice[port]) + (ChannelBits+1)'(1);
          crossed_d[n] = (PortBits+1)'(port) + (PortBits+1)'(1);
`ifdef WS_FAULT_CHANNEL
          // A channel is free again before its packet has left.
          held_d[n][channel_d[q]] = 1'b0;
`endif
          if (head[q].tag.tail) begin
            phase_d[q] = PhaseIdle;
            held_d[n][channel_d[q]] = 1'b0;
          end
        end
      end
    end
  end

  ////////////////////////
  // Credits, and links //
  ////////////////////////

  for (genvar n = 0; n < Ports; n++) begin : gen_output
    logic [Channels-1:0] pops;

    for (genvar vc = 0; vc < Channels; vc++) begin : gen_pops
      assign pops[vc] = pop[n*Channels + vc];
    end

    ws_link_port #(
      .First(Set),
      .Channels(Channels),
      .Post(Post)
    ) u_port (
      .clk_i,
      .rst_ni,
      .pop_i(pops),
      .sent_i(sent[n]),
      .sent_flit_i(sent_flit[n]),
      .spent_o(spent[n]),
      .credit_o(credit_o[n]),
      .credit_i(credit_i[n]),
      .out_valid_o(out_valid_o[n]),
      .out_flit_o(out_flit_o[n])
    );
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned q = 0; q < Queues; q++) begin
        phase_q[q] <= PhaseIdle;
        out_q[q] <= '0;
        channel_q[q] <= '0;
      end
      for (int unsigned n = 0; n < Ports; n++) begin
        held_q[n] <= '0;
        given_q[n] <= '0;
        picked_q[n] <= '0;
        crossed_q[n] <= '0;
      end
    end else begin
      phase_q <= phase_d;
      out_q <= out_d;
      channel_q <= channel_d;
      held_q <= held_d;
      given_q <= given_d;
      picked_q <= picked_d;
      crossed_q <= crossed_d;
    end
  end

  // What waves show of the queues; fields that nothing here looks at.
  logic unused;

  always_comb begin
    unused = 1'b0;
    for (int unsigned q = 0; q < Queues; q++) unused ^= ^{len[q], head[q]};
    for (int unsigned n = 0; n < Ports; n++) unused ^= ^sent_flit[n];
  end

endmodule
