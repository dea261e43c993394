// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The descriptors of a reduction engine: write-back, arming, expiry and the match stage, in this order, over one memory.
//
//   out of the quad unit --> write-back --+
//   frames that descended --> arming -----+--> descriptors --> match --> into the quad unit
//   deadlines --> expiry -----------------+         |            +-----> passed up, dropped
//                                                   +--> results, partial results --> exit
//
// Twin:        `Engine::step` of src/armed/engine.rs with src/armed/admission.rs.
// Parameters:  Descriptors   active reductions it can hold (`descriptors`), 0 and up
//              ExitFrames    places of the exit (`exit_frames`)
//              MemoryPorts   accesses to descriptors in a cycle (`memory_ports`), 1 to 4: write-backs first, then a frame that
//                            waits to arm, expiries, a frame that came in this cycle, the match
//              Interlock     1: a frame waits for a descriptor that is being written (`hazard = "interlock"`); 0: it does not
//              PipeBits      bits of the number of operations in the quad unit
// Latency:     none between a frame at the match stage and the quad unit; what is written in a cycle is read in the same one
// Limitations: all descriptors are flip-flops beside comparators; at most one frame waits to arm, for frames are longer than the
//              pipeline
module ws_armed_table
  import ws_pkg::*;
#(
  parameter int unsigned Descriptors = 8,
  parameter int unsigned ExitFrames = 4,
  parameter int unsigned MemoryPorts = 2,
  parameter bit          Interlock = 1'b1,
  parameter int unsigned PipeBits = 3,
  localparam int unsigned Pushes = MemoryPorts + 1,
  localparam int unsigned PushBits = $clog2(Pushes + 1),
  localparam int unsigned LenBits = $clog2(ExitFrames + 1)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [47:0]         now_i,
  // Time-outs in units of 1024 cycles, and the largest wait count of the first three.
  input  logic [23:0]         timeout_i [4],
  input  logic [19:0]         threshold_i [3],
  // NaN and signalling-NaN policy.
  input  mode_t               mode_i,
  // Out of the quad unit.
  input  logic                done_i,
  input  merge_t              done_merge_i,
  input  quad_t               done_quad_i,
  // Operations that stay in it.
  input  logic [PipeBits-1:0] in_pipe_i,
  // A frame that descended and is this engine's business, and the entry of its tree.
  input  logic                down_i,
  input  frame_t              down_frame_i,
  output logic [12:0]         down_id_o,
  input  entry_t              down_entry_i,
  // The frame at the match stage.
  input  logic                front_i,
  input  frame_t              front_frame_i,
  output logic                front_pop_o,
  // Into the quad unit.
  output logic                issue_o,
  output logic                joined_o,
  output select_t             select_o,
  output merge_t              merge_o,
  output quad_t               a_o,
  output quad_t               b_o,
  // Into the exit.
  input  logic [LenBits-1:0]  exit_len_i,
  output logic [PushBits-1:0] pushes_o,
  output frame_t              push_o [Pushes],
  output logic [15:0]         active_o,
  output armed_events_t       events_o
);

  // A table of none has one that is never taken.
  localparam int unsigned Places = Descriptors > 0 ? Descriptors : 1;
  localparam int unsigned AtBits = Places > 1 ? $clog2(Places) : 1;

  descriptor_t descriptor_q [Places];
  descriptor_t descriptor_d [Places];

  // A frame that descended and waits for a port of the memory.
  logic   waits_q, waits_d;
  frame_t waiting_q, down_frame;

  assign down_frame = waits_q ? waiting_q : down_frame_i;
  assign down_id_o = down_frame.address.multicast_id;

  function automatic logic [47:0] timeout(logic [19:0] wait_count);
    logic [23:0] units;
    if (wait_count <= threshold_i[0]) units = timeout_i[0];
    else if (wait_count <= threshold_i[1]) units = timeout_i[1];
    else if (wait_count <= threshold_i[2]) units = timeout_i[2];
    else units = timeout_i[3];
    timeout = {14'd0, units, 10'd0};
  endfunction

  // Free, with what it held known for as long as its time-out is.
  function automatic descriptor_t freed(descriptor_t was, logic [47:0] until_cycle);
    freed = was;
    freed.active = 1'b0;
    freed.busy = 1'b0;
    freed.generation = was.generation + 8'd1;
    freed.count = '0;
    freed.first_valid = 1'b0;
    freed.known_until = until_cycle;
  endfunction

  // What a descriptor has, as a frame: not all of it is needed.
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic frame_t result(descriptor_t of_it);
    result.address = of_it.address;
    result.source = of_it.first.source;
    result.vni = of_it.vni;
    result.target = of_it.first.target;
    result.request = of_it.first.request;
    result.initiator = of_it.first.initiator;
    result.rank = of_it.first.rank;
    result.cookie = of_it.cookie;
    result.retry = 1'b0;
    result.arm = 1'b0;
    result.op = of_it.first.op;
    result.seqno = of_it.seqno;
    result.resno = of_it.seqno;
    result.count = of_it.count;
    result.quad = of_it.quad;
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  opcode_t           opcode;
  logic [AtBits-1:0] done_at;

  assign opcode = opcode_of(front_frame_i.op);
  assign done_at = done_merge_i.descriptor[AtBits-1:0];

  // The order of the statements is the order in which the model does this in a cycle.
  always_comb begin
    logic [2:0]        ports;
    logic              refused;
    logic [AtBits-1:0] at, free, old;
    logic              known, active, same, found, has_free, has_old, room;
    logic              older, equal;
    logic [20:0]       sum;
    logic [31:0]       taken;
    descriptor_t       it;

    descriptor_d = descriptor_q;
    waits_d = 1'b0;
    front_pop_o = 1'b0;
    issue_o = 1'b0;
    joined_o = 1'b0;
    merge_o = '0;
    a_o = '0;
    b_o = '0;
    pushes_o = '0;
    for (int unsigned n = 0; n < Pushes; n++) push_o[n] = '0;
    events_o = '0;
    ports = 3'(MemoryPorts);
    refused = 1'b0;
    at = '0;
    free = '0;
    old = '0;
    known = 1'b0;
    active = 1'b0;
    same = 1'b0;
    found = 1'b0;
    has_free = 1'b0;
    has_old = 1'b0;
    room = 1'b0;
    older = 1'b0;
    equal = 1'b0;
    sum = '0;
    taken = '0;

    // Write-back. Nobody is before it.
    it = descriptor_q[done_at];
`ifdef WS_FAULT_GENERATION
    // What was in the pipeline for an earlier arming is written all the same.
    if (done_i && it.active) begin
`else
    if (done_i && it.active && it.generation == done_merge_i.generation) begin
`endif
      ports = ports - 3'd1;
      it.busy = 1'b0;
      it.quad = done_quad_i;
      if (!it.first_valid) it.first = done_merge_i.first;
      it.first_valid = 1'b1;
      it.count = done_merge_i.count;
      if (it.count > it.wait_count) begin
        it.quad.code = climb(it.quad.code, CodeContrOverflow);
        events_o.overflows = 1'b1;
      end
      if (it.count >= it.wait_count) begin
        events_o.completed = 1'b1;
        push_o[0] = result(it);
        pushes_o = PushBits'(1);
        it = freed(it, now_i + timeout(it.wait_count));
      end
      descriptor_d[done_at] = it;
    end

    // A frame that waits to arm comes before expiries, one that came in this cycle behind them.
    for (int unsigned phase = 0; phase < 2; phase++) begin
      if (phase == 1) begin
        // Once a port was refused nobody behind is asked.
        found = 1'b0;
        for (int unsigned k = 0; k < Places; k++) begin
          taken = 32'(exit_len_i) + 32'(pushes_o) + 32'(in_pipe_i);
          if (!found && descriptor_d[k].active && !descriptor_d[k].busy && descriptor_d[k].deadline <= now_i &&
              (descriptor_d[k].count == '0 || taken < ExitFrames)) begin
            if (ports == '0) begin
              refused = 1'b1;
              found = 1'b1;
            end else begin
              ports = ports - 3'd1;
              if (descriptor_d[k].count == '0) begin
                events_o.expired_empty = events_o.expired_empty + 3'd1;
              end else begin
                events_o.expired = events_o.expired + 3'd1;
                push_o[pushes_o] = result(descriptor_d[k]);
                pushes_o = pushes_o + PushBits'(1);
              end
              descriptor_d[k] = freed(descriptor_d[k], now_i + timeout(descriptor_d[k].wait_count));
            end
          end
        end
      end
      if (phase == 0 ? waits_q : down_i && !waits_q) begin
        if (ports == '0) begin
          refused = 1'b1;
          waits_d = 1'b1;
        end else begin
          ports = ports - 3'd1;
          known = 1'b0;
          has_free = 1'b0;
          has_old = 1'b0;
          at = '0;
          free = '0;
          old = '0;
          for (int unsigned k = 0; k < Places; k++) begin
            if (!known && descriptor_d[k].address == down_frame.address &&
                (descriptor_d[k].active || now_i < descriptor_d[k].known_until)) begin
              known = 1'b1;
              at = AtBits'(k);
            end
            // What still knows a reduction is taken last.
            if (Descriptors > 0 && !descriptor_d[k].active) begin
              if (now_i < descriptor_d[k].known_until) begin
                if (!has_old) old = AtBits'(k);
                has_old = 1'b1;
              end else begin
                if (!has_free) free = AtBits'(k);
                has_free = 1'b1;
              end
            end
          end
          active = known && descriptor_d[at].active;
          // Under other keys it was another job's tree that had this address.
          same = known && descriptor_d[at].vni == down_entry_i.vni && descriptor_d[at].cookie == down_entry_i.cookie;
          older = same && is_older(down_frame.seqno, descriptor_d[at].seqno);
          equal = same && down_frame.seqno == descriptor_d[at].seqno;
          if (!down_entry_i.valid) begin
            // The tree is gone.
          end else if (down_frame.retry && !down_frame.arm) begin
            events_o.wrong_kind = 2'd1;
            events_o.down_refused = 1'b1;
          end else if (down_frame.source != down_entry_i.root || down_frame.rank != '0) begin
            events_o.wrong_sender = 1'b1;
            events_o.down_refused = 1'b1;
          end else if (down_frame.vni != down_entry_i.vni) begin
            events_o.wrong_vni = 2'd1;
            events_o.down_refused = 1'b1;
          end else if (down_frame.cookie != down_entry_i.cookie) begin
            events_o.wrong_cookie = 2'd1;
            events_o.down_refused = 1'b1;
          end else if (older || (equal && down_frame.arm)) begin
            events_o.stale = 2'd1;
            events_o.down_refused = 1'b1;
          end else if (!down_frame.arm) begin
            if (active) begin
              descriptor_d[at] = freed(descriptor_d[at], now_i + timeout(down_entry_i.wait_count));
              events_o.released = 1'b1;
            end
          end else begin
            if (active) begin
              descriptor_d[at] = freed(descriptor_d[at], descriptor_d[at].known_until);
              events_o.rearmed_active = 1'b1;
            end
            if (!known) at = has_free ? free : old;
            if (known || has_free || has_old) begin
              descriptor_d[at].active = 1'b1;
              descriptor_d[at].address = down_frame.address;
              descriptor_d[at].vni = down_frame.vni;
              descriptor_d[at].cookie = down_frame.cookie;
              descriptor_d[at].seqno = down_frame.seqno;
              descriptor_d[at].wait_count = down_entry_i.wait_count;
              descriptor_d[at].deadline = now_i + timeout(down_entry_i.wait_count);
              events_o.armed = 1'b1;
            end else begin
              events_o.no_descriptor = 1'b1;
            end
          end
        end
      end
    end

    // The match stage. Every operation in the pipeline may end as a frame in the exit, and so may this one.
    room = 32'(exit_len_i) + 32'(pushes_o) + 32'(in_pipe_i) < ExitFrames;
    select_o = opcode.select;
    select_o.mode.nan_propagate = mode_i.nan_propagate;
    select_o.mode.signal_ieee = mode_i.signal_ieee;
    found = 1'b0;
    at = '0;
    for (int unsigned k = 0; k < Places; k++) begin
      if (!found && descriptor_d[k].active && descriptor_d[k].address == front_frame_i.address) begin
        found = 1'b1;
        at = AtBits'(k);
      end
    end
    it = descriptor_d[at];
    if (front_i && room) begin
      if (front_frame_i.arm || front_frame_i.retry ||
          (front_frame_i.resno != '1 && front_frame_i.resno != front_frame_i.seqno)) begin
        events_o.wrong_kind = events_o.wrong_kind + 2'd1;
        front_pop_o = 1'b1;
      end else if (found && it.vni != front_frame_i.vni) begin
        events_o.wrong_vni = events_o.wrong_vni + 2'd1;
        front_pop_o = 1'b1;
      end else if (found && it.cookie != front_frame_i.cookie) begin
        events_o.wrong_cookie = events_o.wrong_cookie + 2'd1;
        front_pop_o = 1'b1;
      end else if (found && is_older(front_frame_i.seqno, it.seqno)) begin
        events_o.stale = events_o.stale + 2'd1;
        front_pop_o = 1'b1;
      end else if (!found || front_frame_i.seqno != it.seqno) begin
        // No descriptor, or a newer number: this engine missed an arming.
        events_o.passed = 1'b1;
        front_pop_o = 1'b1;
        push_o[pushes_o] = front_frame_i;
        pushes_o = pushes_o + PushBits'(1);
`ifdef WS_FAULT_INTERLOCK
      end else if (1'b0) begin
        // A descriptor that is being written is read all the same.
`else
      end else if (Interlock && it.busy) begin
`endif
        events_o.interlock = 1'b1;
      end else if (ports == '0) begin
        refused = 1'b1;
      end else begin
        front_pop_o = 1'b1;
        issue_o = 1'b1;
        events_o.merged = 1'b1;
        descriptor_d[at].busy = 1'b1;
        merge_o.multicast_id = front_frame_i.address.multicast_id;
        merge_o.reduction_id = front_frame_i.address.reduction_id;
        merge_o.seqno = front_frame_i.seqno;
        merge_o.descriptor = 16'(at);
        merge_o.generation = it.generation;
        sum = {1'b0, it.count} + {1'b0, front_frame_i.count};
        merge_o.count = sum[20] ? '1 : sum[19:0];
        merge_o.first = it.first;
        a_o = front_frame_i.quad;
        b_o = front_frame_i.quad;
        if (!it.first_valid) begin
          merge_o.first = '{source: front_frame_i.source, target: front_frame_i.target, request: front_frame_i.request,
                            initiator: front_frame_i.initiator, rank: front_frame_i.rank, op: front_frame_i.op};
        end else if (it.quad.code == CodeOpMismatch) begin
          a_o = it.quad;
          events_o.mismatches = it.first.op != front_frame_i.op;
        end else if (front_frame_i.quad.code == CodeOpMismatch) begin
          events_o.mismatches = it.first.op != front_frame_i.op;
        end else if (it.first.op != front_frame_i.op) begin
          // No arithmetic: the first lane names the two that did not agree.
          a_o = '0;
          a_o.code = CodeOpMismatch;
          a_o.word[0] = {it.first.source, front_frame_i.source};
          events_o.mismatches = 1'b1;
        end else begin
          joined_o = 1'b1;
          a_o = it.quad;
        end
      end
    end
    events_o.port_wait = refused;
  end

  always_comb begin
    active_o = '0;
    for (int unsigned k = 0; k < Places; k++) active_o = active_o + 16'(descriptor_q[k].active);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned k = 0; k < Places; k++) descriptor_q[k] <= '0;
      waits_q <= 1'b0;
      waiting_q <= '0;
    end else begin
      descriptor_q <= descriptor_d;
      waits_q <= waits_d;
      if (waits_d) waiting_q <= down_frame;
    end
  end

  logic unused;

  assign unused = ^{done_merge_i, mode_i, down_entry_i, opcode};

endmodule
