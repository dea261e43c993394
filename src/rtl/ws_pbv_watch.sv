// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The watchdog of a context that a scan of the store has come to. Combinational.
//
//   context --> due? --> still sending: later
//                    --> a participant is missing: asked again, up to the retries; then the run ends with what is there
//                    --> the final result is missing: asked for, up to the retries; then all below are told that there is none
//
// Twin:        the loop of `Ce::watch`, `Ce::watch_waiting`, `Ce::expire` and `Ce::forsake` in src/pbv/ce/recovery.rs
// Parameters:  Contexts, Groups   see ws_pbv_ce
// Order        of send_o: participants or the engine above are asked, or all below are told; satisfied once more, of a group; who is
//              missing, the copy for the source, and the response of a context that is complete; those of groups that go on
module ws_pbv_watch
  import ws_pkg::*;
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Contexts = 4,
  parameter int unsigned Groups = 2,
  localparam int unsigned SlotBits = Contexts > 1 ? $clog2(Contexts) : 1,
  localparam int unsigned Sends = 5 + Groups,
  localparam int unsigned Rearms = 1 + Groups
) (
  input  self_t               me_i,
  input  logic [7:0]          retries_i,
  // Which context is looked at.
  input  logic                valid_i,
  input  logic [SlotBits-1:0] at_i,
  // Messages of it wait to leave; words of it are under way, or kept; its accumulators all have values.
  input  logic                leaving_i,
  input  logic                under_way_i,
  input  logic                kept_i,
  input  logic                whole_i,
  input  context_t            context_i [Contexts],
  input  logic [15:0]         generation_i,
  output context_t            context_o [Contexts],
  output logic [15:0]         generation_o,
  // Kept words go into the reduction unit; accumulators begin anew, and are or are not the answer of the run before.
  output logic                release_o,
  output logic                renew_o,
  output logic                last_sum_o,
  output logic                waits_o,
  output load_t               rearm_o [Rearms],
  output send_t               send_o [Sends]
);

  context_t            context_a [Contexts];
  logic [15:0]         generation_a;
  finish_t             done;
  logic                rearms, asks_above;
  send_t               first, second;
  send_t               others [Groups];
  load_t               load_a;
  load_t               load_group [Groups];

  always_comb begin
    context_t it;
    message_t answer;
    logic     forsakes, expires;

    context_a = context_i;
    generation_a = generation_i;
    it = context_i[at_i];
    answer = '0;
    forsakes = 1'b0;
    expires = 1'b0;
    rearms = 1'b0;
    asks_above = 1'b0;
    first = '0;
    second = '0;
    if (valid_i && it.state != ContextAbsent && it.deadline_valid && it.deadline <= me_i.now) begin
      if ((it.state == ContextActive || it.state == ContextWaiting) && leaving_i) begin
        // Nobody can have answered what has not left.
        it.deadline = deadline_of(1'b0, me_i);
      end else if (it.state == ContextWaiting) begin
        it.deadline_valid = 1'b0;
        if (it.stored.master && !hands_to_source(it)) begin
          // The other groups have watchdogs of their own.
        end else if (it.retries <= retries_i) begin
          it.retries = it.retries + 8'd1;
          answer = response(it, MessageRetry, 1'b0, me_i);
          answer.words = '0;
          answer.status = StatusTimedOut;
          first = to_header(answer, WordsNone);
          asks_above = is_guarded(it, me_i);
          it = guarded(it, me_i);
        end else begin
          forsakes = 1'b1;
        end
      end else if (it.state != ContextActive) begin
        it.deadline_valid = 1'b0;
      end else if (it.satisfied && under_way_i) begin
        // All have answered, or were reported: what is left is to add their words.
        it.deadline = deadline_of(1'b0, me_i);
`ifdef WS_FAULTS
      // Once more than allowed.
      end else if (it.retries < retries_i || (me_i.fault == 4'd1 && it.retries == retries_i)) begin
`else
      end else if (it.retries < retries_i) begin
`endif
        it.retries = it.retries + 8'd1;
        it.deadline = deadline_of(1'b0, me_i);
        answer = it.like;
        answer.requester = me_i.device;
        answer.tag = me_i.tag;
        // Who has not acknowledged a multicast may not have it: its data goes out again.
        answer.words = is_multicast(it) ? it.cast_words : '0;
        if (!is_multicast(it)) begin
          answer.message = MessageRetry;
          answer.status = StatusTimedOut;
        end
        first = to_entries(answer, is_multicast(it) ? WordsCast : WordsNone, it.track.pbv, NoDevice);
        if (it.release_valid) begin
          // Who lost the command could not use the satisfied message that came behind it.
          second = to_entries(response(it, MessageSatisfied, whole_i, me_i), WordsSum, it.track.pbv, NoDevice);
        end
      end else if (knows_requester(it)) begin
        expires = 1'b1;
        it.deadline_valid = 1'b0;
        it.error = StatusTimedOut;
        it.satisfied = 1'b1;
      end else begin
        forsakes = 1'b1;
      end
    end
    if (forsakes) begin
      it = forsaken(it);
      answer = response(it, MessageSatisfied, 1'b0, me_i);
      answer.words = '0;
      if (!is_multicast(it)) first = to_entries(answer, WordsNone, it.stored.down, NoDevice);
      rearms = it.stored.rearm;
    end
    release_o = expires;
    done = finish(it, expires && !under_way_i && !kept_i, whole_i, me_i);
    it = done.it;
    last_sum_o = done.rearms;
    renew_o = rearms || done.rearms;
    waits_o = done.waits || asks_above;
    if (renew_o) begin
      generation_a = generation_i + 16'd1;
      it = rearmed(it, done.rearms ? done.last : answer, generation_a);
    end
    load_a = load_of(it, 12'(at_i));
    load_a.valid = renew_o;
    if (valid_i) context_a[at_i] = it;
  end

  ws_pbv_release #(
    .Contexts(Contexts),
    .Groups(Groups)
  ) u_release (
    .me_i,
    .all_i(done.arrived),
    .one_i(1'b0),
    .at_i,
    .context_i(context_a),
    .generation_i(generation_a),
    .context_o,
    .generation_o,
    .send_o(others),
    .load_o(load_group)
  );

  always_comb begin
    send_o[0] = first;
    send_o[1] = second;
    send_o[2] = done.missing;
    send_o[3] = done.source;
    send_o[4] = done.main;
    rearm_o[0] = load_a;
    for (int unsigned g = 0; g < Groups; g++) begin
      send_o[5+g] = others[g];
      rearm_o[1+g] = load_group[g];
    end
  end

endmodule
