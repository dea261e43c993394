// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A message comes to a collective engine: is it admitted, what does it change, what is sent at once, and what is done to the tracking
// store. Combinational.
//
//   message --> admitted? --> change of its context --> a group goes on --> complete? --> other groups go on
//                  |                 |                        |                 |                |
//                  +-- error         +-- copies down          +-----------------+----------------+--> messages
//
// Twin:        `Ce::take` and what it calls in src/pbv/ce.rs, src/pbv/ce/{admission,set_up,forward,recovery,answer,unmerged}.rs
// Parameters:  Contexts, Participants, Groups   see ws_pbv_ce
// Order        of send_o: what answers or passes the message on, two of them; the message of a group that goes on; a response once
//              more; who is missing, the copy for the source, and the response of a context that is complete; those of groups; that of its
//              own group behind a pause
// Limitations: which record of an initialisation is the engine's own, and the slices for those below, are the business of who takes
//              frames apart and makes them
module ws_pbv_take
  import ws_pkg::*;
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Contexts = 4,
  parameter int unsigned Participants = 8,
  parameter int unsigned Groups = 2,
  localparam int unsigned SlotBits = Contexts > 1 ? $clog2(Contexts) : 1,
  localparam int unsigned EntryBits = Participants > 1 ? $clog2(Participants) : 1,
  localparam int unsigned Sends = 8 + Groups,
  localparam int unsigned Rearms = 1 + 3 * Groups
) (
  input  self_t                   me_i,
  // The PBV table: devices, which of them are engines, whether senders are looked up, whether errors are sent.
  input  logic [15:0]             device_i [Participants],
  input  logic [Participants-1:0] engines_i,
  input  logic                    validate_i,
  input  logic                    errors_i,
  // The message, what it stores, and whether its sender may initialise that context.
  input  logic                    valid_i,
  input  message_t                message_i,
  input  record_t                 record_i,
  input  logic                    owned_i,
  // Contexts, and of each: words are under way, words are kept, all accumulators have values.
  input  context_t                context_i [Contexts],
  input  logic [15:0]             generation_i,
  input  logic [Contexts-1:0]     under_way_i,
  input  logic [Contexts-1:0]     kept_i,
  input  logic [Contexts-1:0]     whole_i,
  // Its context and whether there is one.
  input  logic                    found_i,
  input  logic [SlotBits-1:0]     slot_i,
  output context_t                context_o [Contexts],
  output logic [15:0]             generation_o,
  output logic [SlotBits-1:0]     at_o,
  // The message as it goes on to the tracking store, and what it does there.
  output message_t                head_o,
  output logic                    track_o,
  output track_op_e               track_op_o,
  output track_t                  load_o,
  output logic                    refused_o,
  output status_e                 status_o,
  // Its accumulators begin anew; its kept words are added.
  output logic                    renew_o,
  output logic                    release_o,
  // The message's words are the result, or the data of a multicast; the answer of the run before is the accumulators, or those words.
  output logic                    result_o,
  output logic                    cast_o,
  output logic                    last_sum_o,
  output logic                    last_message_o,
  // A watchdog was set, for participants or for the final result.
  output logic                    guards_o,
  output logic                    waits_o,
  // Tracking entries that are to be loaded anew.
  output load_t                   rearm_o [Rearms],
  output send_t                   send_o [Sends]
);

  logic                found, has_free;
  logic [SlotBits-1:0] free;

  always_comb begin
    has_free = 1'b0;
    free = '0;
    for (int unsigned c = Contexts; c > 0; c--) begin
      if (context_i[c-1].state == ContextAbsent) begin
        has_free = 1'b1;
        free = SlotBits'(c - 1);
      end
    end
  end

  assign found = found_i;
  assign at_o = message_i.message == MessageInitialisation && !found ? free : slot_i;

  // Whether one of these entries is this device's, and the first one.
  function automatic logic [7:0] seat(logic [15:0] device, logic [127:0] among);
    seat = '0;
    for (int unsigned k = 0; k < Participants; k++) begin
      if (!seat[7] && device_i[k] == device && device != NoDevice && among[k]) seat = {1'b1, 7'(k)};
    end
  endfunction

  function automatic logic [15:0] device_of(logic [6:0] entry);
    device_of = 32'(entry) < Participants ? device_i[entry[EntryBits-1:0]] : NoDevice;
  endfunction

  function automatic logic [15:0] ones(logic [127:0] pbv);
    ones = '0;
    for (int unsigned k = 0; k < 128; k++) ones = ones + 16'(pbv[k]);
  endfunction

  //////////////////////////
  // What the message does //
  //////////////////////////

  context_t    context_a [Contexts];
  logic [15:0] generation_a;
  send_t       first, second;
  // What follows: its group goes on; its response is sent once more; it may be complete; its group goes on behind that.
  logic        lets_go, once_more, completes, lets_go_behind;
  // It was armed again.
  logic        rearm_a, renews_a;
  // A command comes late, to a context that waits for the final result.
  logic        waits_a;
  // It comes from where it may, as far as that is not looked at with the store.
  logic        above, below, hands_on, expected;
  logic [6:0]  expected_entry;
  logic [127:0] engines;

  assign engines = 128'(engines_i);

  always_comb begin
    context_t    it;
    message_t    head, answer;
    logic [7:0]  place;
    logic        unknown, early, begins, is_fresh, contributes, commands, again, closes, renews, sent, over,
                  passes, descends, rearms, guards, acts;
    logic [31:0] behind, ahead;
    logic [15:0] wanted;
    logic [127:0] pbv;
    status_e     status;

    context_a = context_i;
    generation_a = generation_i;
    it = context_i[at_o];
    head = message_i;
    answer = '0;
    place = '0;
    unknown = 1'b0;
    early = 1'b0;
    begins = 1'b0;
    is_fresh = 1'b0;
    contributes = 1'b0;
    commands = 1'b0;
    again = 1'b0;
    closes = 1'b0;
    renews = 1'b0;
    sent = 1'b0;
    over = 1'b0;
    behind = it.like.run - message_i.run;
    ahead = message_i.run - it.like.run;
    wanted = '0;
    pbv = '0;
    status = StatusOk;
    track_o = 1'b0;
    track_op_o = TrackNone;
    load_o = '0;
    passes = 1'b0;
    descends = 1'b0;
    rearms = 1'b0;
    guards = 1'b0;
    first = '0;
    second = '0;
    lets_go = 1'b0;
    once_more = 1'b0;
    completes = 1'b0;
    lets_go_behind = 1'b0;

    // Who it is, as seen from the context.
    above = message_i.requester == it.stored.above || message_i.requester == it.stored.collector;
    pbv = it.stored.track.pbv | it.stored.down;
    below = device_of(message_i.p_id) == message_i.requester && message_i.requester != NoDevice && pbv[message_i.p_id];
    pbv = it.stored.down & ~it.stored.track.pbv & engines;
    hands_on = pbv[message_i.p_id];
    place = seat(message_i.requester, it.stored.track.pbv & ~it.stored.down);
    expected = place[7];
    expected_entry = place[6:0];

    if (message_i.poisoned) begin
      status = StatusPoisoned;
    end else if (message_i.message == MessageInitialisation) begin
      for (int unsigned k = 0; k < 128; k++) begin
        if ((record_i.track.pbv[k] || record_i.down[k]) && device_of(7'(k)) == NoDevice) unknown = 1'b1;
      end
      if (!owned_i || (found && message_i.requester != it.stored.above && message_i.requester != it.initialiser) ||
          unknown) begin
        status = StatusUnknownDevice;
      end else if (message_i.op != OpBarrier && record_i.words == '0) begin
        status = StatusBadLength;
      end else if (record_i.groups && (message_i.op != OpBarrier || 16'(message_i.cc_id) < record_i.first ||
                                       16'(message_i.cc_id) >= record_i.first + 16'(record_i.count))) begin
        status = StatusMismatch;
      end else if (record_i.master && record_i.rearm && record_i.track.pbv == '0) begin
        // Its multicast would be over at once: armed again by that, it would answer for ever.
        status = StatusMismatch;
      end else if (!found && !has_free) begin
        status = StatusStoreFull;
      end else begin
        it = '0;
        it.state = ContextActive;
        it.cc_id = message_i.cc_id;
        it.stored = record_i;
        if (record_i.above == NoDevice) it.stored.above = message_i.requester;
        if (record_i.collector == NoDevice) it.stored.collector = message_i.requester;
        it.track = record_i.track;
        it.initialiser = message_i.requester;
        it.like = message_i;
        it.like.engines_only = 1'b0;
        renews = 1'b1;
        track_o = 1'b1;
        track_op_o = TrackLoad;
        load_o = record_i.track;
        // The initialisation is the command too.
        guards = message_i.run != '0;
      end
    end else if (!found) begin
      status = StatusUnknownContext;
    end else begin
      // What is allowed, and what a message comes to.
      unique case (message_i.message)
        MessageControl: begin
          closes = message_i.control == ControlClose;
          if (message_i.requester != it.stored.above) begin
            status = StatusUnknownDevice;
          end else if (closes && (message_i.run != it.like.run || it.satisfied ||
                                  !(it.state == ContextActive || it.state == ContextPaused))) begin
            status = StatusDuplicate;
          end
        end
        MessageCommand, MessageMulticast: begin
          commands = 1'b1;
          if (!above) status = StatusUnknownDevice;
        end
        MessageContribution, MessagePartial, MessageFailure: begin
          contributes = 1'b1;
          if (message_i.message == MessageFailure) begin
            // An end point that cannot contribute answers with nothing.
            head.error = 1'b1;
            head.lists = 1'b0;
            head.words = '0;
            if (head.status == StatusOk) head.status = StatusFailed;
          end
        end
        MessageSatisfied: begin
          if (message_i.requester != it.stored.above) status = StatusUnknownDevice;
        end
        MessageError: begin
          if (!above && !below && !hands_on && !expected) status = StatusUnknownDevice;
        end
        MessageRetry: begin
          over = it.stored.groups || is_multicast(it);
          sent = it.state == ContextWaiting || (it.state == ContextDone && over);
          if (!above && !below && !hands_on && !expected) begin
            status = StatusUnknownDevice;
          end else if (it.stored.master || !above) begin
            again = 1'b1;
          end else if (ahead == '0 && sent) begin
            first = to_header(response(it, MessagePartial, whole_i[at_o], me_i), WordsSum);
          end else if ((ahead != '0 && !ahead[31]) || (ahead == '0 && !it.commanded)) begin
            // A command was lost.
            commands = 1'b1;
            head.message = MessageCommand;
            head.status = StatusOk;
            head.words = '0;
          end
        end
        default: status = StatusWrongType;
      endcase

      if (status == StatusOk && message_i.message == MessageControl) begin
        renews = !closes && message_i.control != ControlPause && message_i.control != ControlRestart;
        if (closes) begin
          // The source gives the run up: it ends as if its time were over.
          it.state = ContextActive;
          it.deadline_valid = 1'b0;
          it.error = message_i.status == StatusOk ? StatusTimedOut : message_i.status;
          it.satisfied = 1'b1;
          completes = 1'b1;
        end else begin
          unique case (message_i.control)
            ControlStart, ControlReset, ControlActivate: begin
              it.state = ContextActive;
              it.like.run = message_i.run;
              track_o = 1'b1;
              track_op_o = TrackLoad;
              load_o = it.stored.track;
            end
            ControlPause: if (it.state == ContextActive) it.state = ContextPaused;
            ControlRestart: begin
              if (it.state == ContextPaused) it.state = ContextActive;
              completes = 1'b1;
              lets_go_behind = 1'b1;
            end
            ControlStop, ControlInactivate: it.state = ContextInactive;
            ControlRemove: it.state = ContextAbsent;
            default: ;
          endcase
`ifdef WS_FAULTS
          // A pause is overlooked.
          if (me_i.fault == 4'd3 && message_i.control == ControlPause) it.state = context_i[at_o].state;
`endif
          answer = message_i;
          answer.requester = me_i.device;
          answer.tag = me_i.tag;
          answer.words = '0;
          first = to_entries(answer, WordsNone, message_i.engines_only ? it.stored.down & engines : it.stored.down,
                             message_i.dmu_id);
        end
      end

      if (status == StatusOk && commands) begin
        early = it.early && it.like.run == head.run;
        if (it.state == ContextInactive) begin
          status = StatusInactive;
        end else if (head.message != MessageMulticast && (head.op != it.like.op || head.dtype != it.like.dtype)) begin
          status = StatusMismatch;
        end else if (!head.posted && (it.commanded || it.last_valid) && it.like.message == head.message &&
                     behind != '0 && !behind[31]) begin
          // Armed again, a context has had its command, whose sender may not have the answer.
          if (it.last_valid && it.last.run == head.run) again = 1'b1;
          else status = StatusDuplicate;
        end else if (!head.posted && it.commanded && it.like.message == head.message && behind == '0) begin
          again = 1'b1;
        end else begin
          if (early) begin
            it.early = 1'b0;
            it.commanded = 1'b1;
            it.retries = '0;
            it.like = head;
            guards = 1'b1;
            once_more = 1'b1;
            completes = 1'b1;
          end else if (!head.posted) begin
            it.like = head;
            it.state = ContextActive;
            renews = 1'b1;
            track_o = 1'b1;
            track_op_o = TrackLoad;
            pbv = it.stored.track.pbv;
            // The source of a multicast has the data: it has nothing to acknowledge.
            place = seat(head.dmu_id, '1);
`ifdef WS_FAULTS
            // It has to, all the same.
            if (me_i.fault == 4'd2) place[7] = 1'b0;
`endif
            if (head.message == MessageMulticast && place[7]) pbv[place[6:0]] = 1'b0;
            load_o = '{pbv: pbv, p_count: ones(pbv)};
            guards = 1'b1;
          end
          answer = head;
          answer.requester = me_i.device;
          answer.tag = me_i.tag;
          first = to_entries(answer, WordsMessage, it.stored.down, head.dmu_id);
          lets_go = 1'b1;
        end
      end

      if (contributes) begin
        if (expected) head.p_id = expected_entry;
        is_fresh = it.state == ContextDone || (it.state == ContextActive && is_untouched(it));
        begins = message_i.run == it.like.run + 32'd1 && message_i.requester == message_i.dmu_id && is_fresh;
        wanted = it.like.op == OpBarrier || is_multicast(it) ? '0 : it.stored.words;
        if (!expected && hands_on) begin
          contributes = 1'b0;
          passes = 1'b1;
        end else if (it.state == ContextInactive) begin
          status = StatusInactive;
        end else if ((validate_i && (device_of(head.p_id) == NoDevice || device_of(head.p_id) != head.requester)) ||
                     !it.stored.track.pbv[head.p_id]) begin
          status = StatusUnknownDevice;
        end else if (validate_i && engines[head.p_id] != (head.message == MessagePartial)) begin
          status = StatusWrongType;
        end else if (!is_multicast(it) && (head.op != it.like.op || head.dtype != it.like.dtype)) begin
          status = StatusMismatch;
        end else if (head.words != wanted && !(head.error && head.words == '0)) begin
          status = StatusBadLength;
        end else if (!begins && (head.run != it.like.run || it.state == ContextWaiting || it.state == ContextDone)) begin
          status = StatusDuplicate;
        end else begin
          track_o = 1'b1;
          track_op_o = begins ? TrackBegin : TrackClear;
          load_o = it.stored.track;
          guards = begins || !it.deadline_valid;
          if (begins) begin
            it.state = ContextActive;
            it.like.run = head.run;
            renews = 1'b1;
          end
        end
      end

      if (status == StatusOk && message_i.message == MessageSatisfied) begin
        // A group may go on before all of it are there; a run that has ended with an error above is over here too.
        over = message_i.error || it.stored.groups || it.stored.track.pbv == '0;
        if (it.stored.groups && is_answered(it) && it.like.run == message_i.run) begin
          // Once more, behind a retry.
        end else if (it.like.run != message_i.run ||
                     !(it.state == ContextWaiting ||
                       (over && (it.state == ContextActive || it.state == ContextPaused)))) begin
          status = StatusDuplicate;
        end else begin
          if (it.state == ContextWaiting || it.stored.track.pbv == '0 || !it.stored.groups) begin
            it.state = ContextDone;
            it.deadline_valid = 1'b0;
          end
          if (it.stored.groups) begin
            it.release_valid = 1'b1;
            it.release_status = message_i.status;
          end else begin
            it.flags = message_i.flags;
            it.error = message_i.status;
          end
          it.result = 1'b1;
          it.result_words = message_i.words;
          descends = 1'b1;
          answer = message_i;
          answer.requester = me_i.device;
          answer.tag = me_i.tag;
          answer.p_count = it.stored.track.p_count;
          if (!is_multicast(it)) first = to_entries(answer, WordsMessage, it.stored.down, NoDevice);
          if (it.stored.rearm) begin
            rearms = 1'b1;
            renews = 1'b1;
          end
        end
      end

      if (status == StatusOk && message_i.message == MessageError) begin
        if ((message_i.status == StatusUnknownContext || message_i.status == StatusStoreFull ||
             (message_i.status == StatusUnknownDevice && message_i.p_count == 16'(MessageInitialisation)))) begin
          // An engine below is not set up: the source is told.
          answer = fresh(MessageError, me_i, it.like.requester, reply_offset(it.like.tag));
          answer.lists = 1'b1;
          answer.pass[13:11] = message_i.pass[13:11];
          answer.status = message_i.status;
          answer.cc_id = it.cc_id;
          answer.run = message_i.run;
          answer.dmu_id = it.like.dmu_id;
          answer.p_id = it.like.p_id;
          answer.p_count = message_i.p_count;
          if (below && engines[message_i.p_id]) first = to_header(answer, WordsMissing);
        end else if (message_i.lists && hands_on && !expected) begin
          passes = 1'b1;
        end else if (message_i.lists) begin
          // It does not answer for the engine that sends it: that one answers next.
          if (!expected && !below) begin
            status = StatusUnknownDevice;
          end else if (message_i.status == StatusOk) begin
            status = StatusMismatch;
          end else if (message_i.run != it.like.run || it.satisfied ||
                       !it.track.pbv[expected ? expected_entry : message_i.p_id] ||
                       !(it.state == ContextActive || it.state == ContextPaused)) begin
            status = StatusDuplicate;
          end else begin
            it.error = failed(it.error, message_i.status);
          end
        end
      end

      if (passes) begin
        // A message of an engine below goes on as it is.
        if (it.state == ContextInactive) status = StatusInactive;
        else if (message_i.run != it.like.run) status = StatusDuplicate;
        answer = head;
        answer.device = it.like.requester;
        answer.offset = reply_offset(it.like.tag);
        answer.p_id = it.like.p_id;
`ifdef WS_FAULTS
        // It keeps the entry that its sender has at another engine.
        if (me_i.fault == 4'd7) answer.p_id = head.p_id;
`endif
        first = to_header(answer, WordsMessage);
      end

      if (status == StatusOk && again) begin
        // Who asks has not got the answer of a run that is over.
        place = seat(head.requester, it.stored.track.pbv | it.stored.down);
        if (it.last_valid && it.last.run == head.run) begin
          first = to_header(it.last, WordsLast);
          first.head.device = head.requester;
          first.head.offset = reply_offset(head.tag);
          first.to_entries = place[7];
          first.pbv[place[6:0]] = place[7];
        end else if (it.like.run != head.run) begin
          first = '0;
        end else if (hands_to_source(it) && head.requester == it.like.requester) begin
          if (it.result) begin
            first = to_header(response(it, MessageSatisfied, 1'b0, me_i), WordsResult);
            first.head.words = it.result_words;
          end else if (it.handed != '0) begin
            first = to_header('0, WordsHanded);
            first.head.words = 16'(it.handed);
          end
          if (it.state == ContextWaiting && it.error != StatusOk) second = missing_of(it, me_i);
        end else if (is_multicast(it) && !it.stored.master) begin
          // A sender that repeats the data has no acknowledgement.
          if (it.state == ContextDone) first = to_header(response(it, MessagePartial, 1'b0, me_i), WordsNone);
        end else begin
          // The source of a group asks whether all of it have arrived.
          if (head.message == MessageCommand && it.arrived && it.arrived_run == head.run) begin
            first = to_header(response(it, MessagePartial, whole_i[at_o], me_i), WordsSum);
          end
          if (is_answered(it)) begin
            second = to_header(response(it, MessageSatisfied, whole_i[at_o], me_i), it.result ? WordsResult : WordsSum);
            if (it.result) second.head.words = it.result_words;
            second.head.device = head.requester;
            second.head.offset = reply_offset(head.tag);
            second.to_entries = place[7];
            second.pbv[place[6:0]] = place[7];
          end
        end
      end
    end

    if (status != StatusOk) begin
      first = '0;
      second = '0;
      if (errors_i && !head.posted && head.message != MessageError) begin
        first = to_header(error_to(head, status, me_i), WordsNone);
      end
      track_o = 1'b0;
    end else begin
      if (renews) begin
        generation_a = generation_i + 16'd1;
        it = rearms ? rearmed(it, answer, generation_a) : renewed(it, generation_a);
      end
      if (commands && renews) begin
        it.commanded = 1'b1;
        if (head.message == MessageMulticast) it.cast_words = head.words;
      end
      if (contributes && renews) it.early = 1'b1;
      if (guards) it = guarded(it, me_i);
    end
    // What is not offered changes nothing.
    acts = valid_i && status == StatusOk;
    if (acts) context_a[at_o] = it;
    else generation_a = generation_i;
    first.valid = first.valid && valid_i;
    second.valid = second.valid && valid_i;
    track_o = track_o && valid_i;
    renews_a = acts && renews;
    release_o = acts && closes;
    result_o = acts && descends;
    cast_o = acts && commands && renews && head.message == MessageMulticast;
    last_message_o = acts && rearms;
    guards_o = acts && guards && is_guarded(it, me_i) && it.state != ContextWaiting;
    waits_a = acts && guards && is_guarded(it, me_i) && it.state == ContextWaiting;
    rearm_a = acts && rearms;
    lets_go = lets_go && acts;
    once_more = once_more && acts;
    completes = completes && acts;
    lets_go_behind = lets_go_behind && acts;
    head_o = head;
    status_o = status;
    refused_o = valid_i && status != StatusOk;
  end

  ////////////////////////////////////////////////////////////
  // Its group goes on, it may be complete, other groups go on //
  ////////////////////////////////////////////////////////////

  context_t            context_b [Contexts];
  context_t            context_c [Contexts];
  context_t            context_e [Contexts];
  logic [15:0]         generation_b, generation_c, generation_e;
  send_t               own_send [Groups];
  send_t               other_send [Groups];
  send_t               last_send [Groups];
  load_t               load_before [Groups];
  load_t               load_behind [Groups];
  load_t               load_last [Groups];
  load_t               load_c;
  finish_t             done;
  send_t               third;

  ws_pbv_release #(
    .Contexts(Contexts),
    .Groups(Groups)
  ) u_before (
    .me_i,
    .all_i(1'b0),
    .one_i(lets_go),
    .at_i(at_o),
    .context_i(context_a),
    .generation_i(generation_a),
    .context_o(context_b),
    .generation_o(generation_b),
    .send_o(own_send),
    .load_o(load_before)
  );

  always_comb begin
    context_t it;

    context_c = context_b;
    generation_c = generation_b;
    it = context_b[at_o];
    third = '0;
    if (once_more && (it.state == ContextWaiting || it.state == ContextDone)) begin
      // Its time was over before the command came, whose sender may not know the response.
      third = to_header(response(it, MessagePartial, whole_i[at_o], me_i), WordsSum);
    end
    done = finish(it, completes && !under_way_i[at_o] && !(release_o && kept_i[at_o]), whole_i[at_o], me_i);
    it = done.it;
    last_sum_o = done.rearms;
    renew_o = renews_a || done.rearms;
    waits_o = waits_a || done.waits;
    if (done.rearms) begin
      generation_c = generation_b + 16'd1;
      it = rearmed(it, done.last, generation_c);
    end
    load_c = load_of(it, 12'(at_o));
    load_c.valid = rearm_a || done.rearms;
    if (completes) context_c[at_o] = it;
  end

  ws_pbv_release #(
    .Contexts(Contexts),
    .Groups(Groups)
  ) u_behind (
    .me_i,
    .all_i(done.arrived),
    .one_i(1'b0),
    .at_i(at_o),
    .context_i(context_c),
    .generation_i(generation_c),
    .context_o(context_e),
    .generation_o(generation_e),
    .send_o(other_send),
    .load_o(load_behind)
  );

  // A group that was armed again may find that the others are ahead of it.
  ws_pbv_release #(
    .Contexts(Contexts),
    .Groups(Groups)
  ) u_last (
    .me_i,
    .all_i(1'b0),
    .one_i(lets_go_behind),
    .at_i(at_o),
    .context_i(context_e),
    .generation_i(generation_e),
    .context_o,
    .generation_o,
    .send_o(last_send),
    .load_o(load_last)
  );

  always_comb begin
    send_o[0] = first;
    send_o[1] = second;
    send_o[2] = '0;
    send_o[7+Groups] = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      if (own_send[g].valid) send_o[2] = own_send[g];
      send_o[7+g] = other_send[g];
      rearm_o[g] = load_before[g];
      if (last_send[g].valid) send_o[7+Groups] = last_send[g];
      rearm_o[Groups+1+g] = load_behind[g];
      rearm_o[2*Groups+1+g] = load_last[g];
    end
    rearm_o[Groups] = load_c;
    send_o[3] = third;
    send_o[4] = done.missing;
    send_o[5] = done.source;
    send_o[6] = done.main;
  end

endmodule
