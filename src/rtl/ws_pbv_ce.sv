// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The collective engine of a packet engine: contexts, who has answered, and the reduction.
//
//   message --> look-up --> tracking store: clear, decrement --> verdict --> words --> reduction --> answer
//                 |                                                |
//              contexts <------------------------------------------+
//
// Twin:        src/pbv/ce.rs with src/pbv/context.rs and src/pbv/ce/admission.rs; the store is ws_pbv_tracker, what is behind the
//              verdict ws_pbv_reduce.
// Parameters:  Contexts      contexts stored at once (`contexts`)
//              Participants  entries of the PBV table, up to 128
//              Words         words of a message, at most
//              Forward       1: `hazard = "forward"`; 0: `hazard = "interlock"`
//              Stages, Units, Feeds, MemoryPorts   see ws_pbv_reduce
// Latency:     a message that is taken in t has its verdict in t + 2, where its words may enter the reduction unit one a cycle; who is
//              satisfied answers in the cycle in which the last word is written, without data in t + 2
// Order:       in a cycle the message that comes, the verdict, the reduction; each may end in an answer
// Limitations: messages are whole, with their words side by side. Initialisation, commands, contributions, partial and final results
//              of reductions and barriers are taken; control, multicasts, retries, errors and failures are not, nor are watchdogs,
//              contexts that are armed again, groups, and responses that are handed on unmerged. Copies of messages, lists of who is
//              missing and error messages are the business of who makes frames: refused_o and answer_o say what they are about.
module ws_pbv_ce
  import ws_pkg::*;
#(
  parameter int unsigned Contexts = 4,
  parameter int unsigned Participants = 8,
  parameter int unsigned Words = 4,
  parameter bit          Forward = 1'b1,
  parameter int unsigned Stages = 4,
  parameter units_t      Units = '1,
  parameter int unsigned Feeds = 2,
  parameter int unsigned MemoryPorts = 2
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  // The PBV table: devices, which of them are engines, whether senders are looked up.
  input  logic [15:0]             device_i [Participants],
  input  logic [Participants-1:0] engines_i,
  input  logic                    validate_i,
  // A message; what it stores if it is an initialisation. Nothing is offered without ready_o.
  input  logic                    valid_i,
  input  message_t                message_i,
  input  record_t                 record_i,
  input  logic [63:0]             word_i [Words],
  output logic                    ready_o,
  // The message that came, and the one whose verdict is known, may be refused.
  output logic [1:0]              refused_o,
  output status_e                 status_o [2],
  // Answers: of the message that came, of the verdict, of kept words that ended, of a word that was written.
  output answer_t                 answer_o [4],
  // Their words, if all of them are there.
  output logic                    whole_o [4],
  output logic [63:0]             answer_word_o [4][Words]
);

  localparam int unsigned SlotBits = Contexts > 1 ? $clog2(Contexts) : 1;
  localparam int unsigned EntryBits = Participants > 1 ? $clog2(Participants) : 1;
  localparam int unsigned FeedBits = $clog2(Feeds + 7);
  localparam logic [15:0] NoDevice = '1;

  // What waits for its verdict goes along with the operation; what waves show of it lies below.
  typedef struct packed {
    logic [Words-1:0][63:0] word;
    logic [15:0]            count;
    logic                   error;
    status_e                status;
    flags_t                 flags;
    logic [15:0]            generation;
    logic [7:0]             message;
    logic [11:0]            cc_id;
    logic [31:0]            run;
  } label_t;

  context_t    context_q [Contexts];
  context_t    context_taken [Contexts];   // when the message has been looked at
  context_t    context_judged [Contexts];  // and the verdict
  context_t    context_d [Contexts];       // and what was written
  logic [15:0] generation_q, generation_d;

  /////////////
  // Look-up //
  /////////////

  logic                found, has_free;
  logic [SlotBits-1:0] slot, free;

  always_comb begin
    found = 1'b0;
    slot = '0;
    has_free = 1'b0;
    free = '0;
    for (int unsigned c = 0; c < Contexts; c++) begin
      if (context_q[c].state == ContextAbsent) begin
        if (!has_free) free = SlotBits'(c);
        has_free = 1'b1;
      end else if (context_q[c].cc_id == message_i.cc_id) begin
        found = 1'b1;
        slot = SlotBits'(c);
      end
    end
  end

  logic [FeedBits-1:0] feeds;
  logic [Contexts-1:0] under_way, in_unit, kept;
  logic                tracker_ready, tracker_holds, judged, answers;

  assign answers = (message_i.message == MessageContribution || message_i.message == MessagePartial) &&
                   context_q[slot].run == message_i.run;

  // Whatever is no answer of a participant to the present run meets none of its context in either pipeline.
  assign ready_o = 32'(feeds) < Feeds && (MemoryPorts > 1 || !judged) &&
                   (!found || (answers ? tracker_ready : !tracker_holds && !under_way[slot] && !in_unit[slot]));

  //////////////////////////
  // The message that came //
  //////////////////////////

  logic                track;
  track_op_e           track_op;
  track_t              track_load;
  logic [SlotBits-1:0] at;
  label_t              tag;
  logic                renew;

  // The sender's place in the table: an entry that is not there has no device.
  logic [15:0] sender;
  logic        sender_is_engine;

  assign sender = 32'(message_i.p_id) < Participants ? device_i[message_i.p_id[EntryBits-1:0]] : NoDevice;
  assign sender_is_engine = 32'(message_i.p_id) < Participants && engines_i[message_i.p_id[EntryBits-1:0]];

  function automatic logic [15:0] ones(logic [127:0] pbv);
    ones = '0;
    for (int unsigned k = 0; k < 128; k++) ones = ones + 16'(pbv[k]);
  endfunction

  // An answer to who is above, or below.
  function automatic answer_t response(logic is_satisfied, logic [11:0] cc_id, logic [31:0] run, logic [15:0] device,
                                       flags_t flags, status_e status);
    response = '{valid: 1'b1, satisfied: is_satisfied, cc_id: cc_id, run: run, device: device, flags: flags, status: status};
  endfunction

  // Whether a context whose words are all written answers.
  function automatic logic answers_now(logic satisfied, context_state_e state, logic master, logic knows);
    answers_now = satisfied && state == ContextActive && (master || knows);
  endfunction

  answer_t answer_taken, answer_judged, answer_over, answer_written;

  always_comb begin
    context_t    it;
    logic        unknown, early, begins, fresh;
    logic [31:0] behind;
    logic [15:0] wanted;
    status_e     status;

    context_taken = context_q;
    generation_d = generation_q;
    at = message_i.message == MessageInitialisation && !found ? free : slot;
    it = context_q[at];
    unknown = 1'b0;
    early = 1'b0;
    begins = 1'b0;
    fresh = 1'b0;
    behind = it.run - message_i.run;
    wanted = '0;
    status = StatusOk;
    track = 1'b0;
    track_op = TrackNone;
    track_load = '0;
    renew = 1'b0;
    answer_taken = '0;

    if (message_i.poisoned) begin
      status = StatusPoisoned;
    end else if (message_i.message == MessageInitialisation) begin
      for (int unsigned k = 0; k < 128; k++) begin
        if ((record_i.track.pbv[k] || record_i.down[k]) &&
            (k >= Participants || device_i[EntryBits'(k % Participants)] == NoDevice)) begin
          unknown = 1'b1;
        end
      end
      if (found && message_i.requester != it.stored.above && message_i.requester != it.initialiser) begin
        status = StatusUnknownDevice;
      end else if (unknown) begin
        status = StatusUnknownDevice;
      end else if (message_i.op != OpBarrier && record_i.words == '0) begin
        status = StatusBadLength;
      end else if (!found && !has_free) begin
        status = StatusStoreFull;
      end else begin
        renew = 1'b1;
        it = '0;
        it.state = ContextActive;
        it.cc_id = message_i.cc_id;
        it.stored = record_i;
        if (record_i.above == NoDevice) it.stored.above = message_i.requester;
        if (record_i.collector == NoDevice) it.stored.collector = message_i.requester;
        it.track = record_i.track;
        it.initialiser = message_i.requester;
        track = 1'b1;
        track_op = TrackLoad;
        track_load = record_i.track;
      end
    end else if (!found) begin
      status = StatusUnknownContext;
    end else begin
      unique case (message_i.message)
        MessageCommand: begin
          early = it.early && it.run == message_i.run;
          if (message_i.requester != it.stored.above && message_i.requester != it.stored.collector) begin
            status = StatusUnknownDevice;
          end else if (message_i.op != it.op || message_i.dtype != it.dtype) begin
            status = StatusMismatch;
          end else if (!message_i.posted && it.commanded && it.like_command && !behind[31] && behind != '0) begin
            status = StatusDuplicate;
          end else if (!message_i.posted && it.commanded && it.like_command && behind == '0) begin
            // Once more: who sends it has not got the answer.
            if (it.state == ContextDone) begin
              answer_taken = response(1'b1, it.cc_id, it.run, message_i.requester, it.flags, it.error);
            end
          end else if (early) begin
            it.early = 1'b0;
            it.commanded = 1'b1;
            it.like_command = 1'b1;
            it.mode = message_i.mode;
            it.requester = message_i.requester;
            it.dmu_id = message_i.dmu_id;
            if (it.state == ContextWaiting || it.state == ContextDone) begin
              answer_taken = response(1'b0, it.cc_id, it.run, it.requester, it.flags, it.error);
            end else if (!under_way[at] &&
                         answers_now(it.satisfied, it.state, it.stored.master, it.requester != it.dmu_id)) begin
              // What was there before was everything.
              answer_taken = response(it.stored.master, it.cc_id, it.run, it.requester, it.flags, it.error);
              it.state = it.stored.master ? ContextDone : ContextWaiting;
            end
          end else if (!message_i.posted) begin
            renew = 1'b1;
            it.state = ContextActive;
            it.flags = '0;
            it.error = StatusOk;
            it.satisfied = 1'b0;
            it.early = 1'b0;
            it.commanded = 1'b1;
            track = 1'b1;
            track_op = TrackLoad;
            track_load = '{pbv: it.stored.track.pbv, p_count: ones(it.stored.track.pbv)};
          end
        end
        MessageContribution, MessagePartial: begin
          fresh = it.state == ContextDone || (it.state == ContextActive && it.track == it.stored.track);
          begins = message_i.run == it.run + 32'd1 && message_i.requester == message_i.dmu_id && fresh;
          wanted = it.op == OpBarrier ? '0 : it.stored.words;
          if ((validate_i && (sender == NoDevice || sender != message_i.requester)) ||
              !it.stored.track.pbv[message_i.p_id]) begin
            status = StatusUnknownDevice;
          end else if (validate_i && sender_is_engine != (message_i.message == MessagePartial)) begin
            status = StatusWrongType;
          end else if (message_i.op != it.op || message_i.dtype != it.dtype) begin
            status = StatusMismatch;
          end else if (message_i.words != wanted && !(message_i.error && message_i.words == '0)) begin
            status = StatusBadLength;
          end else if (!begins && (message_i.run != it.run || it.state == ContextWaiting || it.state == ContextDone)) begin
            status = StatusDuplicate;
          end else begin
            track = 1'b1;
            track_op = begins ? TrackBegin : TrackClear;
            track_load = it.stored.track;
            if (begins) begin
              renew = 1'b1;
              it.state = ContextActive;
              it.flags = '0;
              it.error = StatusOk;
              it.satisfied = 1'b0;
              it.commanded = 1'b0;
              it.early = 1'b1;
              it.run = message_i.run;
            end
          end
        end
        MessageSatisfied: begin
          if (message_i.requester != it.stored.above) begin
            status = StatusUnknownDevice;
          end else if (message_i.run != it.run ||
                       !(it.state == ContextWaiting ||
                         (it.state == ContextActive && (message_i.error || it.stored.track.pbv == '0)))) begin
            status = StatusDuplicate;
          end else begin
            it.state = ContextDone;
            it.flags = message_i.flags;
            it.error = message_i.status;
            answer_taken = response(1'b1, it.cc_id, it.run, '0, it.flags, it.error);
          end
        end
        default: status = StatusWrongType;
      endcase
    end
    // A run that begins by an initialisation or a command is as their header says.
    if (renew) begin
      generation_d = generation_q + 16'd1;
      it.generation = generation_d;
      if (track_op == TrackLoad) begin
        it.run = message_i.run;
        it.op = message_i.op;
        it.dtype = message_i.dtype;
        it.mode = message_i.mode;
        it.requester = message_i.requester;
        it.dmu_id = message_i.dmu_id;
        it.like_command = message_i.message == MessageCommand;
      end
    end
    if (valid_i && status == StatusOk) context_taken[at] = it;
    if (!valid_i) generation_d = generation_q;
    renew = renew && valid_i;
    track = track && valid_i;
    answer_taken.valid = answer_taken.valid && valid_i;
    refused_o[0] = valid_i && status != StatusOk;
    status_o[0] = status;
  end

  always_comb begin
    for (int unsigned k = 0; k < Words; k++) tag.word[k] = word_i[k];
    tag.count = message_i.words;
    tag.error = message_i.error;
    tag.status = message_i.status;
    tag.flags = message_i.flags;
    tag.generation = context_taken[at].generation;
    tag.message = 8'(message_i.message);
    tag.cc_id = message_i.cc_id;
    tag.run = context_taken[at].run;
  end

  /////////////////
  // The verdict //
  /////////////////

  track_op_e           judged_op;
  logic [SlotBits-1:0] judged_at;
  label_t              judged_tag;
  track_t              judged_track;
  verdict_e            verdict;

  ws_pbv_tracker #(
    .Contexts(Contexts),
    .Forward(Forward),
    .LabelBits($bits(label_t))
  ) u_tracker (
    .clk_i,
    .rst_ni,
    .valid_i(track),
    .op_i(track_op),
    .slot_i(at),
    .responder_i(message_i.p_id),
    .load_i(track_load),
    .label_i(tag),
    .ready_o(tracker_ready),
    .holds_o(tracker_holds),
    .valid_o(judged),
    .op_o(judged_op),
    .slot_o(judged_at),
    .label_o(judged_tag),
    .track_o(judged_track),
    .verdict_o(verdict)
  );

  // Whose entry it is travels with the operation, for words that are kept.
  logic [EntryBits-1:0] entry_q [2];
  logic                 push, keep, release_kept;
  logic [63:0]          push_word [Words];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      entry_q[0] <= '0;
      entry_q[1] <= '0;
    end else begin
      entry_q[0] <= message_i.p_id[EntryBits-1:0];
      entry_q[1] <= entry_q[0];
    end
  end

  always_comb begin
    context_t it;
    logic     accepted, present;

    context_judged = context_taken;
    it = context_taken[judged_at];
    present = judged && it.generation == judged_tag.generation;
    accepted = present && judged_op != TrackLoad && (verdict == VerdictAccepted || verdict == VerdictSatisfied) &&
               !it.satisfied;
    push = 1'b0;
    keep = it.stored.pbv_order;
    release_kept = 1'b0;
    answer_judged = '0;
    refused_o[1] = judged && judged_op != TrackLoad && !accepted;
    // Its run ended while the message was being tracked, or it had answered.
    status_o[1] = StatusDuplicate;
    if (present && verdict == VerdictCountZero) status_o[1] = StatusCountZero;
    if (present && it.satisfied && (verdict == VerdictAccepted || verdict == VerdictSatisfied)) status_o[1] = StatusTimedOut;

    if (present) it.track = judged_track;
    if (accepted) begin
      it.flags |= judged_tag.flags;
      if (judged_tag.error && it.error == StatusOk) begin
        it.error = judged_tag.status == StatusOk ? StatusTimedOut : judged_tag.status;
      end
      it.satisfied = verdict == VerdictSatisfied;
      push = judged_tag.count != '0;
      release_kept = it.satisfied;
      if (!push && !under_way[judged_at] && !kept[judged_at] &&
          answers_now(it.satisfied, it.state, it.stored.master, it.requester != it.dmu_id)) begin
        answer_judged = response(it.stored.master, it.cc_id, it.run, it.requester, it.flags, it.error);
        it.state = it.stored.master ? ContextDone : ContextWaiting;
      end
    end
    if (present) context_judged[judged_at] = it;
    for (int unsigned k = 0; k < Words; k++) push_word[k] = judged_tag.word[k];
  end

  ///////////////////
  // The reduction //
  ///////////////////

  logic                over, over_idle, written, written_idle;
  logic [SlotBits-1:0] over_at, written_at;
  flags_t              written_flags;
  logic [Words-1:0]    there [Contexts];
  logic [63:0]         word [Contexts][Words];

  ws_pbv_reduce #(
    .Contexts(Contexts),
    .Participants(Participants),
    .Words(Words),
    .Stages(Stages),
    .Units(Units),
    .Feeds(Feeds),
    .MemoryPorts(MemoryPorts)
  ) u_reduce (
    .clk_i,
    .rst_ni,
    .renew_i(renew),
    .renew_at_i(at),
    .context_i(context_judged),
    .push_i(push),
    .keep_i(keep),
    .push_at_i(judged_at),
    .push_entry_i(entry_q[1]),
    .push_count_i(judged_tag.count),
    .push_word_i(push_word),
    .release_i(release_kept),
    .feeds_o(feeds),
    .under_way_o(under_way),
    .in_unit_o(in_unit),
    .kept_o(kept),
    .over_o(over),
    .over_at_o(over_at),
    .over_idle_o(over_idle),
    .written_o(written),
    .written_at_o(written_at),
    .written_idle_o(written_idle),
    .written_flags_o(written_flags),
    .there_o(there),
    .word_o(word)
  );

  always_comb begin
    context_d = context_judged;
    answer_over = '0;
    answer_written = '0;
    if (over && over_idle &&
        answers_now(context_d[over_at].satisfied, context_d[over_at].state, context_d[over_at].stored.master,
                    context_d[over_at].requester != context_d[over_at].dmu_id)) begin
      answer_over = response(context_d[over_at].stored.master, context_d[over_at].cc_id, context_d[over_at].run,
                             context_d[over_at].requester, context_d[over_at].flags, context_d[over_at].error);
      context_d[over_at].state = context_d[over_at].stored.master ? ContextDone : ContextWaiting;
    end
    if (written) context_d[written_at].flags |= written_flags;
    if (written && written_idle &&
        answers_now(context_d[written_at].satisfied, context_d[written_at].state, context_d[written_at].stored.master,
                    context_d[written_at].requester != context_d[written_at].dmu_id)) begin
      answer_written = response(context_d[written_at].stored.master, context_d[written_at].cc_id, context_d[written_at].run,
                                context_d[written_at].requester, context_d[written_at].flags, context_d[written_at].error);
      context_d[written_at].state = context_d[written_at].stored.master ? ContextDone : ContextWaiting;
    end
  end

  always_comb begin
    logic [SlotBits-1:0] of [4];
    answer_o[0] = answer_taken;
    answer_o[1] = answer_judged;
    answer_o[2] = answer_over;
    answer_o[3] = answer_written;
    of[0] = at;
    of[1] = judged_at;
    of[2] = over_at;
    of[3] = written_at;
    for (int unsigned n = 0; n < 4; n++) begin
      whole_o[n] = context_d[of[n]].op != OpBarrier;
      for (int unsigned k = 0; k < Words; k++) begin
        if (k < 32'(context_d[of[n]].stored.words) && !there[of[n]][k]) whole_o[n] = 1'b0;
        answer_word_o[n][k] = word[of[n]][k];
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned c = 0; c < Contexts; c++) context_q[c] <= '0;
      generation_q <= '0;
    end else begin
      context_q <= context_d;
      generation_q <= generation_d;
    end
  end

  // What only frames and waves look at.
  logic unused;

  assign unused = ^judged_tag;

endmodule
