// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The collective engine of a packet engine: contexts, who has answered, the reduction, and what is done when a participant does not answer.
//
//   message --> look-up --> tracking store: clear, decrement --> verdict --> words --> reduction --> complete? --> messages
//                 |                 ^                               |                     |             ^
//              contexts <-----------+-------------------------------+---------------------+----- watchdogs
//
// Twin:        src/pbv/ce.rs with src/pbv/context.rs and src/pbv/ce/*. A message that comes is ws_pbv_take, the store ws_pbv_tracker,
//              what is behind the verdict ws_pbv_reduce, groups of barriers ws_pbv_release, a context of the scan ws_pbv_watch.
// Parameters:  Contexts      contexts stored at once (`contexts`)
//              Participants  entries of the PBV table, up to 128
//              Words         words of a message, at most
//              Groups        groups of an inter-group barrier, at most
//              Forward       1: `hazard = "forward"`; 0: `hazard = "interlock"`
//              Stages, Units, UnitCount, Feeds, MemoryPorts   see ws_pbv_reduce; a scan of the watchdogs looks at MemoryPorts contexts a cycle
// Latency:     a message that is taken in t has its verdict in t + 2, where its words may enter the reduction units, a line a cycle; who is
//              satisfied answers in the cycle in which the last line is written, without data in t + 2
// Order:       in a cycle the message that comes, the verdict, kept words that ended, a line that was written, watchdogs; messages of
//              send_o leave in this order
// Limitations: messages are whole, with their words side by side. Copies of messages, lists of devices, the slices of initialisations,
//              and responses that were handed to a source and are sent again are the business of who makes frames: send_o says what
//              they are about. Numbers of generations have 16 bits
module ws_pbv_ce
  import ws_pkg::*;
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Contexts = 4,
  parameter int unsigned Participants = 8,
  parameter int unsigned Words = 4,
  parameter int unsigned Groups = 2,
  parameter bit          Forward = 1'b1,
  parameter int unsigned Stages = 4,
  parameter units_t      Units = '1,
  parameter int unsigned UnitCount = 1,
  parameter int unsigned Feeds = 2,
  parameter int unsigned MemoryPorts = 2,
  localparam int unsigned TakeSends = 8 + Groups,
  localparam int unsigned JudgeSends = 4 + Groups,
  localparam int unsigned WatchSends = 5 + Groups,
  localparam int unsigned Sends = TakeSends + JudgeSends + 6 + MemoryPorts * WatchSends
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  // The engine's device and tag, the present cycle, and the time-out.
  input  self_t                   me_i,
  // The PBV table: devices, which of them are engines, whether senders are looked up, whether errors are sent, how often is asked again.
  input  logic [15:0]             device_i [Participants],
  input  logic [Participants-1:0] engines_i,
  input  logic                    validate_i,
  input  logic                    errors_i,
  input  logic [7:0]              retries_i,
  // A message; what it stores if it is an initialisation, and whether its sender may. Nothing is offered without ready_o.
  input  logic                    valid_i,
  input  message_t                message_i,
  input  record_t                 record_i,
  input  logic                    owned_i,
  input  logic [63:0]             word_i [Words],
  output logic                    ready_o,
  // Watchdogs wait for room; messages of these contexts wait to leave.
  input  logic                    full_i,
  input  logic [Contexts-1:0]     leaving_i,
  // The message that came, and the one whose verdict is known, may be refused.
  output logic [1:0]              refused_o,
  output status_e                 status_o [2],
  // Messages, with their words.
  output send_t                   send_o [Sends],
  output logic [63:0]             send_word_o [Sends][Words],
  // Messages that may still come of what is under way, and whose the contexts are.
  output logic [15:0]             owes_o,
  output logic [11:0]             cc_id_o [Contexts]
);

  localparam int unsigned SlotBits = Contexts > 1 ? $clog2(Contexts) : 1;
  localparam int unsigned EntryBits = Participants > 1 ? $clog2(Participants) : 1;
  localparam int unsigned FeedBits = $clog2(Feeds + Contexts + 7);
  localparam int unsigned Late = 2 + MemoryPorts;
  localparam int unsigned TakeRearms = 1 + 3 * Groups;
  localparam int unsigned WatchRearms = 1 + Groups;
  // Loads of the tracking store that wait: one a context, and as many of groups that go on twice.
  localparam int unsigned Loads = 2 * Contexts + 2;
  localparam int unsigned LoadBits = $clog2(Loads + 1);

  // What waits for its verdict goes along with the operation; what waves show of it lies below.
  typedef struct packed {
    logic [Words-1:0][63:0] word;
    message_t               head;
    logic [15:0]            generation;
    logic [7:0]             message;
    logic [11:0]            cc_id;
    logic [31:0]            run;
  } label_t;

  context_t    context_q [Contexts];
  context_t    context_taken [Contexts];    // when the message has been looked at
  context_t    context_verdict [Contexts];  // and the verdict
  context_t    context_judged [Contexts];   // and groups that it completed
  context_t    context_written [Contexts];  // and what was written
  context_t    context_d [Contexts];        // and the watchdogs
  logic [15:0] generation_q, generation_taken, generation_verdict, generation_judged, generation_written, generation_d;

  // Words that are kept beside the accumulators: what came from above, data of a multicast, the answer of the run before.
  logic [63:0] result_word_q [Contexts][Words];
  logic [63:0] cast_word_q [Contexts][Words];
  logic [63:0] last_word_q [Contexts][Words];

  /////////////
  // Look-up //
  /////////////

  logic                found;
  logic [SlotBits-1:0] slot;

  always_comb begin
    found = 1'b0;
    slot = '0;
    for (int unsigned c = 0; c < Contexts; c++) begin
      if (context_q[c].state != ContextAbsent && context_q[c].cc_id == message_i.cc_id) begin
        found = 1'b1;
        slot = SlotBits'(c);
      end
    end
  end

  logic [FeedBits-1:0] feeds;
  logic [LoadBits-1:0] loads_q, loads_d;
  logic [Contexts-1:0] under_way, in_unit, kept, whole, under_way_late, kept_late, whole_late;
  logic                tracker_ready, tracker_holds, judged, answers, has_port;
  logic [1:0]          awaited;

  assign answers = (message_i.message == MessageContribution || message_i.message == MessagePartial ||
                    message_i.message == MessageFailure) && context_q[slot].like.run == message_i.run;
  assign has_port = MemoryPorts > 1 || !judged;

  // Whatever is no answer of a participant to the present run meets none of its context in either pipeline.
  assign ready_o = 32'(feeds) < Feeds && loads_q == '0 && has_port &&
                   (!found || (answers ? tracker_ready : !tracker_holds && !under_way[slot] && !in_unit[slot]));

  //////////////////////////
  // The message that came //
  //////////////////////////

  message_t              head;
  logic                  track, renew_taken, close, result, cast, last_sum_taken, last_message, guards, waits_taken;
  track_op_e             track_op;
  track_t                track_load;
  logic [SlotBits-1:0]   at;
  load_t                 rearm_taken [TakeRearms];
  send_t                 send_taken [TakeSends];

  ws_pbv_take #(
    .Contexts(Contexts),
    .Participants(Participants),
    .Groups(Groups)
  ) u_take (
    .me_i,
    .device_i,
    .engines_i,
    .validate_i,
    .errors_i,
    .valid_i,
    .message_i,
    .record_i,
    .owned_i,
    .context_i(context_q),
    .generation_i(generation_q),
    .under_way_i(under_way),
    .kept_i(kept),
    .whole_i(whole),
    .found_i(found),
    .slot_i(slot),
    .context_o(context_taken),
    .generation_o(generation_taken),
    .at_o(at),
    .head_o(head),
    .track_o(track),
    .track_op_o(track_op),
    .load_o(track_load),
    .refused_o(refused_o[0]),
    .status_o(status_o[0]),
    .renew_o(renew_taken),
    .release_o(close),
    .result_o(result),
    .cast_o(cast),
    .last_sum_o(last_sum_taken),
    .last_message_o(last_message),
    .guards_o(guards),
    .waits_o(waits_taken),
    .rearm_o(rearm_taken),
    .send_o(send_taken)
  );

  ////////////////////////
  // The tracking store //
  ////////////////////////

  // Loads that wait, by context: of those that were armed again.
  load_t               load_q [Loads];
  load_t               load_taken [Loads];
  logic [LoadBits-1:0] loads_taken;
  logic                loads_now;
  load_t               load_now;

  always_comb begin
    load_taken = load_q;
    loads_taken = loads_q;
    for (int unsigned n = 0; n < TakeRearms; n++) begin
      if (rearm_taken[n].valid) begin
        load_taken[loads_taken] = rearm_taken[n];
        loads_taken = loads_taken + LoadBits'(1);
      end
    end
    load_now = load_taken[0];
    loads_now = !track && has_port && load_now.valid;
    if (loads_now) begin
      for (int unsigned k = 0; k + 1 < Loads; k++) load_taken[k] = load_taken[k+1];
      load_taken[Loads-1] = '0;
      loads_taken = loads_taken - LoadBits'(1);
    end
  end

  label_t              tag;
  track_op_e           judged_op;
  logic [SlotBits-1:0] judged_at, track_at;
  label_t              judged_tag;
  track_t              judged_track;
  verdict_e            verdict;

  assign track_at = loads_now ? load_now.slot[SlotBits-1:0] : at;

  always_comb begin
    for (int unsigned k = 0; k < Words; k++) tag.word[k] = word_i[k];
    tag.head = head;
    tag.generation = loads_now ? load_now.generation : context_taken[track_at].generation;
    tag.message = loads_now ? '0 : 8'(head.message);
    tag.cc_id = context_taken[track_at].cc_id;
    tag.run = loads_now ? load_now.run : context_taken[track_at].like.run;
  end

  ws_pbv_tracker #(
    .Contexts(Contexts),
    .Forward(Forward),
    .LabelBits($bits(label_t))
  ) u_tracker (
    .clk_i,
    .rst_ni,
    .valid_i(track || loads_now),
    .op_i(loads_now ? TrackLoad : track_op),
    .slot_i(track_at),
    .responder_i(head.p_id),
    .load_i(loads_now ? context_taken[track_at].stored.track : track_load),
    .label_i(tag),
    .asked_i(slot),
    .ready_o(tracker_ready),
    .holds_o(tracker_holds),
    .awaited_o(awaited),
    .valid_o(judged),
    .op_o(judged_op),
    .slot_o(judged_at),
    .label_o(judged_tag),
    .track_o(judged_track),
    .verdict_o(verdict)
  );

  /////////////////
  // The verdict //
  /////////////////

  logic                push, keep, release_kept;
  logic [63:0]         push_word [Words];
  finish_t             done_judged;
  send_t               first_judged;
  send_t               group_judged [Groups];
  load_t               load_judged;
  load_t               load_groups [Groups];

  always_comb begin
    context_t it;
    message_t answer;
    logic     accepted, present, completes;

    context_verdict = context_taken;
    generation_verdict = generation_taken;
    it = context_taken[judged_at];
    answer = judged_tag.head;
    present = judged && it.state != ContextAbsent && it.generation == judged_tag.generation;
    accepted = present && judged_op != TrackLoad && (verdict == VerdictAccepted || verdict == VerdictSatisfied) &&
               !it.satisfied;
    completes = 1'b0;
    push = 1'b0;
    keep = it.stored.pbv_order;
    release_kept = 1'b0;
    first_judged = '0;
    refused_o[1] = judged && judged_op != TrackLoad && !accepted;
    // Its run ended while the message was being tracked, or it had answered.
    status_o[1] = StatusDuplicate;
    if (present && verdict == VerdictCountZero) status_o[1] = StatusCountZero;
    if (present && it.satisfied && (verdict == VerdictAccepted || verdict == VerdictSatisfied)) status_o[1] = StatusTimedOut;
    if (refused_o[1] && errors_i && !judged_tag.head.posted) begin
      first_judged = to_header(error_to(judged_tag.head, status_o[1], me_i), WordsNone);
    end

    if (present) it.track = judged_track;
    if (present && judged_op == TrackLoad && verdict == VerdictSatisfied && is_multicast(it) &&
        (it.stored.track.pbv != '0 || it.stored.master)) begin
      // A multicast whose only receiver would be its source is over at once.
      it.satisfied = 1'b1;
      completes = 1'b1;
    end
    if (accepted) begin
      it.flags |= judged_tag.head.flags;
      if (judged_tag.head.error) it.error = failed(it.error, judged_tag.head.status);
      it.satisfied = verdict == VerdictSatisfied;
      completes = 1'b1;
`ifdef WS_FAULTS
      // It is merged if others would have to be put in order.
      if (hands_to_source(it) && !(me_i.fault == 4'd6 && it.stored.pbv_order)) begin
`else
      if (hands_to_source(it)) begin
`endif
        answer.requester = me_i.device;
        answer.tag = me_i.tag;
        answer.device = it.like.requester;
        answer.offset = reply_offset(it.like.tag);
        first_judged = to_header(answer, WordsMessage);
        it.handed = it.handed + 8'd1;
      end else begin
        push = judged_tag.head.words != '0;
        release_kept = it.satisfied;
      end
    end
    done_judged = finish(it, completes && !push && !under_way[judged_at] && !(release_kept && kept[judged_at]),
                         whole[judged_at], me_i);
    it = done_judged.it;
    if (done_judged.rearms) begin
      generation_verdict = generation_taken + 16'd1;
      it = rearmed(it, done_judged.last, generation_verdict);
    end
    load_judged = load_of(it, 12'(judged_at));
    load_judged.valid = done_judged.rearms;
    if (present) context_verdict[judged_at] = it;
    for (int unsigned k = 0; k < Words; k++) push_word[k] = judged_tag.word[k];
  end

  ws_pbv_release #(
    .Contexts(Contexts),
    .Groups(Groups)
  ) u_release (
    .me_i,
    .all_i(done_judged.arrived),
    .one_i(1'b0),
    .at_i(judged_at),
    .context_i(context_verdict),
    .generation_i(generation_verdict),
    .context_o(context_judged),
    .generation_o(generation_judged),
    .send_o(group_judged),
    .load_o(load_groups)
  );

  ///////////////////
  // The reduction //
  ///////////////////

  logic                over, over_idle, written, written_idle;
  logic [SlotBits-1:0] over_at, written_at;
  flags_t              written_flags;
  logic [1:0]          renew;
  logic [SlotBits-1:0] renew_at [2];
  logic [Late-1:0]     renew_late, release_late;
  logic [SlotBits-1:0] late_at [Late];
  logic [Words-1:0]    there [Contexts];
  logic [Words-1:0]    there_late [Contexts];
  logic [63:0]         word [Contexts][Words];
  logic [63:0]         word_late [Contexts][Words];

  assign renew = {done_judged.rearms, renew_taken};
  assign renew_at[0] = at;
  assign renew_at[1] = judged_at;

  ws_pbv_reduce #(
    .Contexts(Contexts),
    .Participants(Participants),
    .Words(Words),
    .Stages(Stages),
    .Units(Units),
    .UnitCount(UnitCount),
    .Feeds(Feeds),
    .MemoryPorts(MemoryPorts)
  ) u_reduce (
    .clk_i,
    .rst_ni,
    .renew_i(renew),
    .renew_at_i(renew_at),
    .close_i(close),
    .close_at_i(at),
    .context_i(context_judged),
    .push_i(push),
    .keep_i(keep),
    .push_at_i(judged_at),
    .push_entry_i(judged_tag.head.p_id[EntryBits-1:0]),
    .push_count_i(judged_tag.head.words),
    .push_word_i(push_word),
    .release_i(release_kept),
    .renew_late_i(renew_late),
    .release_late_i(release_late),
    .late_at_i(late_at),
    .feeds_o(feeds),
    .under_way_o(under_way),
    .in_unit_o(in_unit),
    .kept_o(kept),
    .kept_late_o(kept_late),
    .under_way_late_o(under_way_late),
    .over_o(over),
    .over_at_o(over_at),
    .over_idle_o(over_idle),
    .written_o(written),
    .written_at_o(written_at),
    .written_idle_o(written_idle),
    .written_flags_o(written_flags),
    .there_o(there),
    .word_o(word),
    .there_late_o(there_late),
    .word_late_o(word_late)
  );

  always_comb begin
    for (int unsigned c = 0; c < Contexts; c++) begin
      whole[c] = 1'b1;
      whole_late[c] = 1'b1;
      for (int unsigned k = 0; k < Words; k++) begin
        if (k < 32'(context_q[c].stored.words) && !there[c][k]) whole[c] = 1'b0;
        if (k < 32'(context_judged[c].stored.words) && !there_late[c][k]) whole_late[c] = 1'b0;
      end
    end
  end

  finish_t done_over, done_written;
  load_t   load_over, load_written;

  always_comb begin
    context_written = context_judged;
    generation_written = generation_judged;
    if (written) context_written[written_at].flags |= written_flags;
    done_over = finish(context_written[over_at], over && over_idle, whole_late[over_at], me_i);
    if (over) begin
      context_written[over_at] = done_over.it;
      if (done_over.rearms) begin
        generation_written = generation_written + 16'd1;
        context_written[over_at] = rearmed(done_over.it, done_over.last, generation_written);
      end
    end
    load_over = load_of(context_written[over_at], 12'(over_at));
    load_over.valid = done_over.rearms;
    done_written = finish(context_written[written_at], written && written_idle, whole_late[written_at], me_i);
    if (written) begin
      context_written[written_at] = done_written.it;
      if (done_written.rearms) begin
        generation_written = generation_written + 16'd1;
        context_written[written_at] = rearmed(done_written.it, done_written.last, generation_written);
      end
    end
    load_written = load_of(context_written[written_at], 12'(written_at));
    load_written.valid = done_written.rearms;
  end

  ///////////////
  // Watchdogs //
  ///////////////

  // No watchdog is due before; where a scan of them goes on.
  logic                alarm_valid_q, alarm_valid_d;
  logic [47:0]         alarm_q, alarm_d;
  logic [Contexts-1:0] deadlines;
  logic                scan_valid_q, scan_valid_d, scans, scan_ends;
  logic [15:0]         scan_q, scan_d, from;
  logic [MemoryPorts-1:0] watch_waits, watch_last_sum;
  logic [SlotBits-1:0] watch_at [MemoryPorts];
  load_t               watch_rearm [MemoryPorts][WatchRearms];
  send_t               watch_send [MemoryPorts][WatchSends];

  assign from = scan_valid_q ? scan_q : '0;
  assign scans = (scan_valid_q || (alarm_valid_q && me_i.now >= alarm_q)) && !full_i;
  assign scan_ends = scans && 32'(from) + MemoryPorts >= Contexts;
  assign context_d = gen_watch[MemoryPorts-1].context_left;
  assign generation_d = gen_watch[MemoryPorts-1].generation_left;

  for (genvar p = 0; p < MemoryPorts; p++) begin : gen_watch
    logic        looks;
    context_t    context_found [Contexts];
    context_t    context_left [Contexts];
    logic [15:0] generation_found, generation_left;

    // One after the other.
    if (p == 0) begin : gen_first
      assign context_found = context_written;
      assign generation_found = generation_written;
    end else begin : gen_next
      assign context_found = gen_watch[p-1].context_left;
      assign generation_found = gen_watch[p-1].generation_left;
    end

    assign looks = scans && 32'(from) + p < Contexts;
    assign watch_at[p] = looks ? SlotBits'(from + 16'(p)) : '0;
    assign late_at[2+p] = watch_at[p];

    ws_pbv_watch #(
      .Contexts(Contexts),
      .Groups(Groups)
    ) u_watch (
      .me_i,
      .retries_i,
      .valid_i(looks),
      .at_i(watch_at[p]),
      .leaving_i(leaving_i[watch_at[p]]),
      .under_way_i(under_way_late[watch_at[p]]),
      .kept_i(kept_late[watch_at[p]]),
      .whole_i(whole_late[watch_at[p]]),
      .context_i(context_found),
      .generation_i(generation_found),
      .context_o(context_left),
      .generation_o(generation_left),
      .release_o(release_late[2+p]),
      .renew_o(renew_late[2+p]),
      .last_sum_o(watch_last_sum[p]),
      .waits_o(watch_waits[p]),
      .rearm_o(watch_rearm[p]),
      .send_o(watch_send[p])
    );
  end

  assign renew_late[1:0] = {done_written.rearms, done_over.rearms};
  assign release_late[1:0] = '0;
  assign late_at[0] = over_at;
  assign late_at[1] = written_at;

  always_comb begin
    logic [47:0] deadline;

    scan_valid_d = scan_valid_q || (alarm_valid_q && me_i.now >= alarm_q);
    scan_d = from;
    if (scans) begin
      scan_valid_d = !scan_ends;
      scan_d = from + 16'(MemoryPorts);
    end
    alarm_valid_d = alarm_valid_q;
    alarm_d = alarm_q;
    deadline = deadline_of(!guards, me_i);
    if ((guards || waits_taken || done_judged.waits || done_over.waits || done_written.waits || watch_waits != '0) &&
        (!alarm_valid_q || deadline < alarm_q)) begin
      alarm_valid_d = 1'b1;
      alarm_d = deadline;
    end
    // The earliest deadline is looked for at the end of a scan; without any deadline the alarm stops.
    deadlines = '0;
    for (int unsigned c = 0; c < Contexts; c++) begin
      deadlines[c] = context_d[c].state != ContextAbsent && context_d[c].deadline_valid;
    end
    if (deadlines == '0) alarm_valid_d = 1'b0;
    if (scan_ends) begin
      alarm_valid_d = 1'b0;
      for (int unsigned c = 0; c < Contexts; c++) begin
        if (deadlines[c] && (!alarm_valid_d || context_d[c].deadline < alarm_d)) begin
          alarm_valid_d = 1'b1;
          alarm_d = context_d[c].deadline;
        end
      end
    end
  end

  // Loads of what was armed again behind the message that came.
  load_t load_d [Loads];
  load_t load_late [2];

  assign load_late[0] = load_over;
  assign load_late[1] = load_written;

  always_comb begin
    load_d = load_taken;
    loads_d = loads_taken;
    if (load_judged.valid) begin
      load_d[loads_d] = load_judged;
      loads_d = loads_d + LoadBits'(1);
    end
    for (int unsigned g = 0; g < Groups; g++) begin
      if (load_groups[g].valid) begin
        load_d[loads_d] = load_groups[g];
        loads_d = loads_d + LoadBits'(1);
      end
    end
    for (int unsigned n = 0; n < 2; n++) begin
`ifdef WS_FAULTS
      // The entry is not loaded again.
      if (load_late[n].valid && me_i.fault != 4'd4) begin
`else
      if (load_late[n].valid) begin
`endif
        load_d[loads_d] = load_late[n];
        loads_d = loads_d + LoadBits'(1);
      end
    end
    for (int unsigned p = 0; p < MemoryPorts; p++) begin
      for (int unsigned n = 0; n < WatchRearms; n++) begin
        if (watch_rearm[p][n].valid) begin
          load_d[loads_d] = watch_rearm[p][n];
          loads_d = loads_d + LoadBits'(1);
        end
      end
    end
  end

  //////////////
  // Messages //
  //////////////

  // Words of messages: of the one that came or of that whose verdict is known, accumulators before or after this cycle's word, and what
  // is kept.
  always_comb begin
    logic                late, came;
    logic [SlotBits-1:0] of;

    for (int unsigned n = 0; n < Sends; n++) begin
      late = 1'b1;
      came = 1'b0;
      if (n < TakeSends) begin
        send_o[n] = send_taken[n];
        of = at;
        late = 1'b0;
        came = 1'b1;
      end else if (n < TakeSends + JudgeSends) begin
        unique case (n - TakeSends)
          0:       send_o[n] = first_judged;
          1:       send_o[n] = done_judged.missing;
          2:       send_o[n] = done_judged.source;
          3:       send_o[n] = done_judged.main;
          default: send_o[n] = group_judged[(n - TakeSends - 4) % Groups];
        endcase
        of = judged_at;
        late = 1'b0;
      end else if (n < TakeSends + JudgeSends + 6) begin
        unique case (n - TakeSends - JudgeSends)
          0:       send_o[n] = done_over.missing;
          1:       send_o[n] = done_over.source;
          2:       send_o[n] = done_over.main;
          3:       send_o[n] = done_written.missing;
          4:       send_o[n] = done_written.source;
          default: send_o[n] = done_written.main;
        endcase
        of = n < TakeSends + JudgeSends + 3 ? over_at : written_at;
      end else begin
        send_o[n] = watch_send[(n - TakeSends - JudgeSends - 6) / WatchSends][(n - TakeSends - JudgeSends - 6) % WatchSends];
        of = watch_at[(n - TakeSends - JudgeSends - 6) / WatchSends];
      end
      for (int unsigned k = 0; k < Words; k++) begin
        unique case (send_o[n].from)
          WordsMessage: send_word_o[n][k] = came ? word_i[k] : judged_tag.word[k];
          WordsSum:     send_word_o[n][k] = late ? word_late[of][k] : word[of][k];
          WordsResult:  send_word_o[n][k] = result_word_q[of][k];
          WordsCast:    send_word_o[n][k] = cast_word_q[of][k];
          WordsLast:    send_word_o[n][k] = last_word_q[of][k];
          default:      send_word_o[n][k] = '0;
        endcase
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned c = 0; c < Contexts; c++) begin
        context_q[c] <= '0;
        for (int unsigned k = 0; k < Words; k++) begin
          result_word_q[c][k] <= '0;
          cast_word_q[c][k] <= '0;
          last_word_q[c][k] <= '0;
        end
      end
      generation_q <= '0;
      for (int unsigned k = 0; k < Loads; k++) load_q[k] <= '0;
      loads_q <= '0;
      alarm_valid_q <= 1'b0;
      alarm_q <= '0;
      scan_valid_q <= 1'b0;
      scan_q <= '0;
    end else begin
      context_q <= context_d;
      generation_q <= generation_d;
      load_q <= load_d;
      loads_q <= loads_d;
      alarm_valid_q <= alarm_valid_d;
      alarm_q <= alarm_d;
      scan_valid_q <= scan_valid_d;
      scan_q <= scan_d;
      for (int unsigned k = 0; k < Words; k++) begin
        if (result) result_word_q[at][k] <= word_i[k];
        if (cast) cast_word_q[at][k] <= word_i[k];
        if (last_message) last_word_q[at][k] <= word_i[k];
        if (last_sum_taken) last_word_q[at][k] <= word[at][k];
        if (done_judged.rearms) last_word_q[judged_at][k] <= word[judged_at][k];
        if (done_over.rearms) last_word_q[over_at][k] <= word_late[over_at][k];
        if (done_written.rearms) last_word_q[written_at][k] <= word_late[written_at][k];
        for (int unsigned p = 0; p < MemoryPorts; p++) begin
          if (watch_last_sum[p]) last_word_q[watch_at[p]][k] <= word_late[watch_at[p]][k];
        end
      end
    end
  end

  // Three messages may come of each: who is missing, the answer to the source, and that to all others.
  assign owes_o = 16'd3 * (16'(feeds) + 16'(awaited) + 16'(1 + MemoryPorts));

  always_comb for (int unsigned c = 0; c < Contexts; c++) cc_id_o[c] = context_q[c].cc_id;

  // What only frames and waves look at.
  logic unused;

  assign unused = ^{judged_tag, done_over.arrived, done_written.arrived};

endmodule
