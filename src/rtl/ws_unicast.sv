// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The point-to-point channels of a switch: packets of any number of flits, routed by their destination, wormhole.
//
//   link -> queue per channel -> RC: an output port -> VA: a channel of it -> SA, crossbar -> link
//                 <- credits, one a flit and channel --------------------------- <- credits
//
// Twin:        src/fabric/unicast.rs; the allocators are ws_vc_alloc and ws_switch_alloc.
// Parameters:  Ports     external ports
//              Set       channels of set-routed packets, whose numbers come first; they are ws_coll_switch's
//              Channels  point-to-point channels
//              Depth     flits of an input queue, the largest of all ports
//              Ends      end points that a head flit may name, in bits 63:40 of its word
//              Route     cycles of route computation before the others, 0 or 1
//              VcAlloc   cycles of channel allocation before switch allocation, 0 or 1
//              Post      cycles of the pipeline behind switch allocation (0, 1, ...)
//              VcAllocator, SwitchAllocator, Rounds   see ws_vc_alloc and ws_switch_alloc
// Latency:     a head flit that comes in cycle t can be granted in t + 1 + Route + VcAlloc, others in t + 1; a flit is on the link
//              Post + 1 cycles after its grant. A credit leaves in the cycle after the grant.
// Allocation:  a channel that a tail has left can be given away in the next cycle
// Limitations: round-robin, one crossbar input a port; links that take a flit a cycle; no adaptive routes, no classes; inputs and
//              outputs that set-routed packets take in a cycle are not available in it
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
  parameter int unsigned VcAllocator = 0,
  parameter int unsigned SwitchAllocator = 0,
  parameter int unsigned Rounds = 1,
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
  localparam int unsigned QueueBits = Queues > 1 ? $clog2(Queues) : 1;
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

  logic [Queues-1:0]      given;
  logic [Channels-1:0]    allowed [Queues];
  logic [ChannelBits-1:0] channel_given [Queues];

  for (genvar q = 0; q < Queues; q++) begin : gen_allowed
    assign allowed[q] = allowed_i[q % Channels];
  end

  ws_vc_alloc #(
    .Ports(Ports),
    .Channels(Channels),
    .Set(Set),
    .Allocator(VcAllocator),
    .Rounds(Rounds)
  ) u_vc_alloc (
    .clk_i,
    .rst_ni,
    .asks_i(asks),
    .out_i(out_d),
    .allowed_i(allowed),
    .held_i(held_q),
    .given_o(given),
    .channel_o(channel_given),
    .held_o(held_given)
  );

  always_comb begin
    for (int unsigned q = 0; q < Queues; q++) begin
      phase_given[q] = given[q] ? PhaseActive : phase_routed[q];
      channel_d[q] = given[q] ? channel_given[q] : channel_q[q];
    end
  end

  ///////////////////////
  // Switch allocation //
  ///////////////////////

  logic [Queues-1:0]    can;
  logic [Ports-1:0]     sent;
  logic [QueueBits-1:0] from [Ports];
  flit_t                sent_flit [Ports];

  always_comb begin
    logic                active;
    logic [PortBits-1:0] out;

    can = '0;
    for (int unsigned n = 0; n < Queues; n++) begin
      active = VcAlloc == 0 ? phase_given[n] == PhaseActive : phase_q[n] == PhaseActive;
      out = out_d[n];
      can[n] = active && present[n] && !taken_in_i[PortBits'(n / Channels)] && !taken_out_i[out] &&
               spent[out][channel_d[n]] < credits_at_reset_i[out];
    end
  end

  ws_switch_alloc #(
    .Ports(Ports),
    .Channels(Channels),
    .Allocator(SwitchAllocator),
    .Rounds(Rounds)
  ) u_switch_alloc (
    .clk_i,
    .rst_ni,
    .can_i(can),
    .out_i(out_d),
    .sent_o(sent),
    .from_o(from)
  );

  always_comb begin
    logic [QueueBits-1:0] q;

    phase_d = phase_given;
    held_d = held_given;
    q = '0;
    for (int unsigned n = 0; n < Queues; n++) pop[n] = 1'b0;
    for (int unsigned n = 0; n < Ports; n++) begin
      q = from[n];
      sent_flit[n] = '0;
      if (sent[n]) begin
        sent_flit[n] = head[q];
        sent_flit[n].tag.vc = 5'(Set) + 5'(channel_d[q]);
        pop[q] = 1'b1;
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
      for (int unsigned n = 0; n < Ports; n++) held_q[n] <= '0;
    end else begin
      phase_q <= phase_d;
      out_q <= out_d;
      channel_q <= channel_d;
      held_q <= held_d;
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
