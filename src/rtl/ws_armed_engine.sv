// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The reduction engine of the armed family: a bump in the wire on the output side of a link that climbs.
//
//                 +----------------------- engine of one port -------------------------+
//                 |     entrance (flits, CRC)          +- pass: no descriptor -+       |
//   climbing  --> | 0 -> [flit 0 .. 10] -> frames -> match                     +> exit | 1 -> climbing
//                 |                              |     +-> quad unit -> write -+       |
//                 |                         descriptors <-------------------+          |
//                 |                              ^ arm at the tail, if the CRC is right|
//   descending <- | 0 <-------- cut through <----+---------------------------------- 1 | <- descending
//                 +--------------------------------------------------------------------+
//
// Twin:        src/armed/engine.rs between the links of src/fabric/wires; `pass_through` of src/fabric/join.rs.
// Parameters:  Descriptors     active reductions it can hold (`descriptors`)
//              Stages          cycles of the quad unit, 1 to 6 (`stages`)
//              EntranceFrames  frames behind the one that is put together (`entrance_frames`)
//              ExitFrames      frames that wait for the link (`exit_frames`)
//              MemoryPorts     accesses to descriptors in a cycle, 1 to 4 (`memory_ports`)
//              Interlock       1: frames wait for a descriptor that is being written (`hazard = "interlock"`)
//              SetChannels     set-routed channels: 0 climbs, 1 descends, 2 is the management agent's if there is one
//              Unicast         point-to-point channels behind them, 0 and up
//              Depth           flits of an input queue, the largest of all
//              Entries         trees over this port that it can know
// Latency:     a climbing frame whose tail leaves its queue in t is matched in t + 1 and written back in t + 1 + Stages; a result's
//              head is granted in t + 2 + Stages, a frame that passes in t + 2. A descending flit is granted in the cycle in which it is
//              at the head of its queue. Links are registered: what is granted in t is on out_valid_o in t + 1.
// Priority:    of a link: set-routed channels, the highest first, then what the engine makes, point-to-point ones in turn
// Registers:   now_i is the cycle counter of the chip; entries are written one a cycle and count from the next cycle on
// Limitations: links that take a flit a cycle; tags of what it sends carry no number (only the model's checks look at them). The
//              entries of its port are a memory of its own that is searched; of the switch's table it knows nothing.
module ws_armed_engine
  import ws_pkg::*;
#(
  parameter int unsigned Descriptors = 8,
  parameter int unsigned Stages = 3,
  parameter int unsigned EntranceFrames = 2,
  parameter int unsigned ExitFrames = 4,
  parameter int unsigned MemoryPorts = 2,
  parameter bit          Interlock = 1'b1,
  parameter int unsigned SetChannels = 2,
  parameter int unsigned Unicast = 1,
  parameter int unsigned Depth = 8,
  parameter int unsigned Entries = 4,
  localparam int unsigned Channels = SetChannels + Unicast,
  localparam int unsigned EntryBits = Entries > 1 ? $clog2(Entries) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [47:0]          now_i,
  // Configuration: time-outs in units of 1024 cycles, wait counts up to which the first three hold, NaN policies.
  input  logic [23:0]          timeout_i [4],
  input  logic [19:0]          threshold_i [3],
  input  mode_t                mode_i,
  // Flits in the far buffers: the credits at reset, by port and channel. Constant.
  input  logic [15:0]          credits_at_reset_i [2][Channels],
  // Writes an entry.
  input  logic                 entry_write_i,
  input  logic [EntryBits-1:0] entry_at_i,
  input  entry_t               entry_i,
  // Links: port 0 faces the switch, port 1 the parent.
  input  logic [1:0]           in_valid_i,
  input  flit_t                in_flit_i [2],
  output logic [Channels-1:0]  credit_o [2],
  output logic [1:0]           out_valid_o,
  output flit_t                out_flit_o [2],
  input  logic [Channels-1:0]  credit_i [2],
  output armed_counts_t        counts_o
);

  localparam int unsigned Up = 0;
  localparam int unsigned Down = 1;
  localparam int unsigned DepthBits = $clog2(Depth + 1);
  localparam int unsigned FrameBits = $clog2(EntranceFrames + 1);
  localparam int unsigned ExitBits = $clog2(ExitFrames + 1);
  localparam int unsigned Pushes = MemoryPorts + 1;
  localparam int unsigned PushBits = $clog2(Pushes + 1);
  localparam int unsigned PipeBits = 3;
  localparam int unsigned Turns = Unicast > 0 ? Unicast : 1;

  //////////////////
  // Input queues //
  //////////////////

  logic [DepthBits-1:0] len [2][Channels];
  logic                 there [2][Channels];
  flit_t                head [2][Channels];
  logic                 pop [2][Channels];

  for (genvar port = 0; port < 2; port++) begin : gen_input
    for (genvar vc = 0; vc < Channels; vc++) begin : gen_channel
      logic unused_ready;

      ws_delay_fifo #(
        .Width($bits(flit_t)),
        .Depth(Depth),
        .Wait(0)
      ) u_queue (
        .clk_i,
        .rst_ni,
        .push_i(in_valid_i[port] && 32'(in_flit_i[port].tag.vc) == vc),
        .data_i(in_flit_i[port]),
        .pop_i(pop[port][vc]),
        .len_o(len[port][vc]),
        .present_o(there[port][vc]),
        .ready_o(unused_ready),
        .head_o(head[port][vc])
      );
    end
  end

  //////////////////////////
  // What passes, and how //
  //////////////////////////

  logic [15:0]         spent [2][Channels];
  logic                has_credit [2][Channels];
  logic [1:0]          passes;       // by the port it comes in at
  logic [4:0]          pass_vc [2];
  logic                exit_valid, exit_send, climbs;
  flit_t               exit_flit;
  logic [1:0]          sent;
  flit_t               sent_flit [2];
  logic [FrameBits-1:0] frames_len;
  logic                front_pop;

  for (genvar port = 0; port < 2; port++) begin : gen_credit
    for (genvar vc = 0; vc < Channels; vc++) begin : gen_channel
      assign has_credit[port][vc] = spent[port][vc] < credits_at_reset_i[port][vc];
    end
  end

  always_comb begin
    int unsigned vc;
    for (int unsigned port = 0; port < 2; port++) begin
      passes[port] = 1'b0;
      pass_vc[port] = '0;
      for (int unsigned k = 0; k < Channels; k++) begin
        // Which point-to-point channel goes first changes from cycle to cycle.
        vc = k < SetChannels ? SetChannels - 1 - k :
             SetChannels + (32'(now_i % 48'(Turns)) + k - SetChannels) % Turns;
        // What climbs is not passed on: it is the entrance's. Traffic waits for a frame of the engine's own that can leave.
        if (!passes[port] && there[port][vc] && has_credit[1-port][vc] && !(port == 0 && vc == Up) &&
            !(port == 0 && vc >= SetChannels && exit_valid && has_credit[1][Up])) begin
          passes[port] = 1'b1;
          pass_vc[port] = 5'(vc);
        end
      end
    end
  end

  // The tail moves a frame out of the assembly registers: there must be a place for it.
  assign climbs = there[0][Up] &&
                  !(head[0][Up].tag.tail && 32'(frames_len) - 32'(front_pop) >= EntranceFrames);
  assign exit_send = !passes[0] && has_credit[1][Up];

  always_comb begin
    for (int unsigned port = 0; port < 2; port++) begin
      for (int unsigned vc = 0; vc < Channels; vc++) begin
        pop[port][vc] = passes[port] && 32'(pass_vc[port]) == vc;
      end
    end
    if (climbs) pop[0][Up] = 1'b1;
    sent[0] = passes[1];
    sent_flit[0] = head[1][32'(pass_vc[1]) % Channels];
    sent[1] = passes[0] || (exit_valid && exit_send);
    sent_flit[1] = passes[0] ? head[0][32'(pass_vc[0]) % Channels] : exit_flit;
  end

  ///////////////////////////////
  // Frames in, and their tree //
  ///////////////////////////////

  logic       up_whole, up_damaged, up_malformed, down_whole, down_damaged, down_malformed;
  frame_t     up_frame, down_frame, front_frame;
  logic       front_there;
  logic [3:0] entrance_flits, passing_flits;

  ws_armed_entrance u_entrance (
    .clk_i,
    .rst_ni,
    .take_i(climbs),
    .flit_i(head[0][Up]),
    .whole_o(up_whole),
    .damaged_o(up_damaged),
    .malformed_o(up_malformed),
    .frame_o(up_frame),
    .flits_o(entrance_flits)
  );

  ws_armed_entrance u_passing (
    .clk_i,
    .rst_ni,
    .take_i(passes[1] && 32'(pass_vc[1]) == Down),
    .flit_i(head[1][Down]),
    .whole_o(down_whole),
    .damaged_o(down_damaged),
    .malformed_o(down_malformed),
    .frame_o(down_frame),
    .flits_o(passing_flits)
  );

  logic unused_front_ready;

  ws_delay_fifo #(
    .Width($bits(frame_t)),
    .Depth(EntranceFrames),
    .Wait(0)
  ) u_frames (
    .clk_i,
    .rst_ni,
    .push_i(up_whole && !up_damaged && !up_malformed),
    .data_i(up_frame),
    .pop_i(front_pop),
    .len_o(frames_len),
    .present_o(front_there),
    .ready_o(unused_front_ready),
    .head_o(front_frame)
  );

  entry_t      entry_q [Entries];
  entry_t      entry;
  logic [12:0] looked_up;
  logic        concerns;

  always_comb begin
    entry = '0;
    concerns = 1'b0;
    for (int unsigned k = 0; k < Entries; k++) begin
      if (entry_q[k].valid && entry_q[k].multicast_id == looked_up) entry = entry_q[k];
      // A wait count of 0 is a plain multicast.
      if (entry_q[k].valid && entry_q[k].multicast_id == down_frame.address.multicast_id && entry_q[k].wait_count != '0) begin
        concerns = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned k = 0; k < Entries; k++) entry_q[k] <= '0;
    end else if (entry_write_i) begin
      entry_q[entry_at_i] <= entry_i;
    end
  end

  ///////////////////////////////////////////////
  // Descriptors, the quad unit, and the exit //
  ///////////////////////////////////////////////

  logic                issue, joined, done;
  select_t             select;
  merge_t              merge, done_merge;
  quad_t               a, b, done_quad;
  logic [Stages-1:0]   busy;
  logic [PipeBits-1:0] in_pipe, pipeline;
  logic [ExitBits-1:0] exit_held, exit_len;
  logic [PushBits-1:0] pushes;
  frame_t              push [Pushes];
  logic [15:0]         active;
  armed_events_t       events;

  // All operations, and those that are still in the unit when this cycle's has left.
  always_comb begin
    pipeline = '0;
    for (int unsigned s = 0; s < Stages; s++) pipeline = pipeline + PipeBits'(busy[s]);
    in_pipe = pipeline - PipeBits'(busy[Stages-1]);
  end

  ws_armed_table #(
    .Descriptors(Descriptors),
    .ExitFrames(ExitFrames),
    .MemoryPorts(MemoryPorts),
    .Interlock(Interlock),
    .PipeBits(PipeBits)
  ) u_table (
    .clk_i,
    .rst_ni,
    .now_i,
    .timeout_i,
    .threshold_i,
    .mode_i,
    .done_i(done),
    .done_merge_i(done_merge),
    .done_quad_i(done_quad),
    .in_pipe_i(in_pipe),
    .down_i(down_whole && !down_damaged && !down_malformed && concerns),
    .down_frame_i(down_frame),
    .down_id_o(looked_up),
    .down_entry_i(entry),
    .front_i(front_there),
    .front_frame_i(front_frame),
    .front_pop_o(front_pop),
    .issue_o(issue),
    .joined_o(joined),
    .select_o(select),
    .merge_o(merge),
    .a_o(a),
    .b_o(b),
    .exit_len_i(exit_len),
    .pushes_o(pushes),
    .push_o(push),
    .active_o(active),
    .events_o(events)
  );

  ws_quad_unit #(
    .Stages(Stages),
    .TagWidth($bits(merge_t))
  ) u_unit (
    .clk_i,
    .rst_ni,
    .valid_i(issue),
    .joined_i(joined),
    .op_i(select.op),
    .dtype_i(select.dtype),
    .mode_i(select.mode),
    .tag_i(merge),
    .a_i(a),
    .b_i(b),
    .valid_o(done),
    .tag_o(done_merge),
    .quad_o(done_quad),
    .busy_o(busy)
  );

  ws_armed_exit #(
    .Frames(ExitFrames),
    .Pushes(Pushes)
  ) u_exit (
    .clk_i,
    .rst_ni,
    .pushes_i(pushes),
    .push_i(push),
    .send_i(exit_send),
    .valid_o(exit_valid),
    .flit_o(exit_flit),
    .held_o(exit_held),
    .len_o(exit_len)
  );

  ////////////////////////
  // Credits, and links //
  ////////////////////////

  for (genvar n = 0; n < 2; n++) begin : gen_output
    logic [Channels-1:0] pops;

    for (genvar vc = 0; vc < Channels; vc++) begin : gen_pops
      assign pops[vc] = pop[n][vc];
    end

    ws_link_port #(
      .Channels(Channels)
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

  //////////////
  // Counters //
  //////////////

  armed_counts_t counts_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      counts_q <= '0;
    end else begin
      counts_q.armed <= counts_q.armed + 32'(events.armed);
      counts_q.no_descriptor <= counts_q.no_descriptor + 32'(events.no_descriptor);
      counts_q.down_refused <= counts_q.down_refused + 32'(events.down_refused) + 32'(down_damaged || down_malformed);
      counts_q.rearmed_active <= counts_q.rearmed_active + 32'(events.rearmed_active);
      counts_q.released <= counts_q.released + 32'(events.released);
      counts_q.merged <= counts_q.merged + 32'(events.merged);
      counts_q.passed <= counts_q.passed + 32'(events.passed);
      counts_q.damaged <= counts_q.damaged + 32'(up_damaged) + 32'(down_damaged);
      counts_q.malformed <= counts_q.malformed + 32'(up_malformed) + 32'(down_malformed);
      counts_q.wrong_kind <= counts_q.wrong_kind + 32'(events.wrong_kind);
      counts_q.wrong_sender <= counts_q.wrong_sender + 32'(events.wrong_sender);
      counts_q.wrong_vni <= counts_q.wrong_vni + 32'(events.wrong_vni);
      counts_q.wrong_cookie <= counts_q.wrong_cookie + 32'(events.wrong_cookie);
      counts_q.stale <= counts_q.stale + 32'(events.stale);
      counts_q.mismatches <= counts_q.mismatches + 32'(events.mismatches);
      counts_q.overflows <= counts_q.overflows + 32'(events.overflows);
      counts_q.completed <= counts_q.completed + 32'(events.completed);
      counts_q.expired <= counts_q.expired + 32'(events.expired);
      counts_q.expired_empty <= counts_q.expired_empty + 32'(events.expired_empty);
      counts_q.interlock <= counts_q.interlock + 32'(events.interlock);
      counts_q.port_wait <= counts_q.port_wait + 32'(events.port_wait);
    end
  end

  assign counts_o = counts_q;

  // What only waves show.
  logic unused;

  always_comb begin
    unused = ^{entrance_flits, passing_flits, pipeline, exit_held, active};
    for (int unsigned port = 0; port < 2; port++) begin
      for (int unsigned vc = 0; vc < Channels; vc++) unused ^= ^{len[port][vc], head[port][vc]};
    end
  end

endmodule
