// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What the modules of a packet engine share: messages, what an engine stores of a context, and what a context does by itself.
//
// Twin:        src/pbv/interface/packet.rs (names and numbers), src/pbv/interface/packet/records.rs, src/pbv/tracking.rs, src/pbv/context.rs; the functions
//              are those of src/pbv/ce/answer.rs and src/pbv/ce/recovery.rs.
// Numbers:     an enumeration has the numbers of frames and of waves.
// Limitations: rounding and flushing are all of a mode that a frame carries; lists of devices are the business of who makes frames
package ws_pbv_pkg;
  import ws_pkg::*;

  // No device.
  localparam logic [15:0] NoDevice = '1;

  // What is done to an entry of a tracking store.
  typedef enum logic [1:0] {
    TrackNone  = 2'd0,
    TrackLoad  = 2'd1,
    TrackClear = 2'd2,
    TrackBegin = 2'd3
  } track_op_e;

  // The outcome.
  typedef enum logic [2:0] {
    VerdictNone      = 3'd0,
    VerdictAccepted  = 3'd1,
    VerdictSatisfied = 3'd2,
    VerdictDuplicate = 3'd3,
    VerdictCountZero = 3'd4
  } verdict_e;

  // Where a value came from that an operation changed: the store, what was written while it read, or the operation ahead.
  typedef enum logic [1:0] {
    ForwardNone    = 2'd0,
    ForwardThrough = 2'd1,
    ForwardAhead   = 2'd2
  } forward_e;

  // An entry of a tracking store: participants that have not answered, and how many they are.
  typedef struct packed {
    logic [127:0] pbv;
    logic [15:0]  p_count;
  } track_t;

  // What a frame is. A collective engine takes and sends those from 5 to 14.
  typedef enum logic [3:0] {
    MessageNone           = 4'd0,
    MessageWrite          = 4'd1,
    MessageRead           = 4'd2,
    MessageReadReply      = 4'd3,
    MessageConfiguration  = 4'd4,
    MessageInitialisation = 4'd5,
    MessageControl        = 4'd6,
    MessageCommand        = 4'd7,
    MessageContribution   = 4'd8,
    MessagePartial        = 4'd9,
    MessageSatisfied      = 4'd10,
    MessageError          = 4'd11,
    MessageRetry          = 4'd12,
    MessageFailure        = 4'd13,
    MessageMulticast      = 4'd14,
    MessageReport         = 4'd15
  } message_e;

  // What a control message asks of a context.
  typedef enum logic [3:0] {
    ControlStart      = 4'd0,
    ControlPause      = 4'd1,
    ControlRestart    = 4'd2,
    ControlStop       = 4'd3,
    ControlReset      = 4'd4,
    ControlActivate   = 4'd5,
    ControlInactivate = 4'd6,
    ControlRemove     = 4'd7,
    ControlClose      = 4'd8
  } control_e;

  // What becomes of a message.
  typedef enum logic [3:0] {
    StatusOk             = 4'd0,
    StatusDuplicate      = 4'd1,
    StatusCountZero      = 4'd2,
    StatusUnknownContext = 4'd3,
    StatusUnknownDevice  = 4'd4,
    StatusWrongType      = 4'd5,
    StatusPoisoned       = 4'd6,
    StatusBadLength      = 4'd7,
    StatusStoreFull      = 4'd8,
    StatusInactive       = 4'd9,
    StatusTimedOut       = 4'd10,
    StatusMismatch       = 4'd11,
    StatusBadAddress     = 4'd12,
    StatusFailed         = 4'd13,
    StatusDamaged        = 4'd14
  } status_e;

  // State of a context.
  typedef enum logic [2:0] {
    ContextAbsent   = 3'd0,
    ContextInactive = 3'd1,
    ContextActive   = 3'd2,
    ContextPaused   = 3'd3,
    ContextWaiting  = 3'd4,
    ContextDone     = 3'd5
  } context_state_e;

  // The header of a message, and how many words it has.
  typedef struct packed {
    message_e    message;
    control_e    control;       // of a control message
    logic        engines_only;
    logic        lists;         // an error that lists devices
    logic [13:0] pass;          // traffic class and three fields that mean nothing here
    logic [13:0] tag;
    logic [15:0] device;        // to whom
    logic [15:0] offset;
    logic [11:0] cc_id;
    logic [31:0] run;
    logic [15:0] requester;     // from whom
    logic [15:0] dmu_id;
    logic [6:0]  p_id;
    logic [15:0] p_count;
    logic        posted;
    logic        poisoned;
    logic        error;
    status_e     status;
    flags_t      flags;
    op_e         op;
    dtype_e      dtype;
    mode_t       mode;
    logic [15:0] words;
  } message_t;

  // What an initialisation stores for an engine.
  typedef struct packed {
    track_t       track;          // participants
    logic [127:0] down;           // entries that messages go down to
    logic [15:0]  words;
    logic         pbv_order;
    logic         rearm;          // armed again when satisfied
    logic         answer_source;  // the master also answers the source
    logic         master;
    logic         to_source;      // responses are handed to the source
    logic         groups;         // a group of an inter-group barrier
    logic [15:0]  first;          // number of the first group's context
    logic [7:0]   count;          // groups
    logic         initial_valid;
    logic [63:0]  initial_word;
    logic [15:0]  above;
    logic [15:0]  collector;
  } record_t;

  // A context. What a device that sent its command is called stands in `like`.
  typedef struct packed {
    context_state_e state;
    logic [11:0]    cc_id;
    message_t       like;         // the command, or the initialisation
    record_t        stored;
    track_t         track;        // as of the last message whose verdict is known
    logic [15:0]    initialiser;
    flags_t         flags;
    status_e        error;
    logic [15:0]    generation;
    logic           satisfied;
    logic           early;        // the source's contribution was here before the command of this run
    logic           commanded;
    logic           arrived;      // of a group, at the master: a run in which all of it have arrived
    logic [31:0]    arrived_run;
    logic [7:0]     complete;     // which of the eight runs up to that one were complete: bit k is that of k runs before
    logic           release_valid;  // of a group: it may go on, and with which status
    status_e        release_status;
    logic           deadline_valid;
    logic [47:0]    deadline;
    logic [7:0]     retries;
    logic           result;       // words that came from above are kept
    logic [15:0]    result_words;
    logic [15:0]    cast_words;   // words of the multicast under way
    logic [7:0]     handed;       // responses that were handed to the source
    logic           last_valid;   // armed again: the answer of the run before
    message_t       last;
  } context_t;

  // Which words go with a message.
  typedef enum logic [2:0] {
    WordsNone    = 3'd0,
    WordsMessage = 3'd1,  // those of the message that is looked at
    WordsSum     = 3'd2,  // accumulators
    WordsResult  = 3'd3,  // what came from above
    WordsCast    = 3'd4,  // data of a multicast
    WordsLast    = 3'd5,  // the answer of the run before
    WordsHanded  = 3'd6,  // all that was handed to the source, one message each: head.words says how many
    WordsMissing = 3'd7   // a list of missing devices, with pbv
  } words_e;

  // A message that leaves: to the device in its header, or a copy to each of these entries of the PBV table, but not to one device.
  typedef struct packed {
    logic         valid;
    logic         to_entries;
    logic [127:0] pbv;
    logic [15:0]  skip;
    words_e       from;
    message_t     head;
  } send_t;

  // The engine's own name, the present cycle, and the time-out of its table.
  typedef struct packed {
    logic [15:0] device;
    logic [13:0] tag;
    logic [47:0] now;
    logic [31:0] timeout;
`ifdef WS_FAULTS
    logic [3:0]  fault;  // which of the planted faults acts
`endif
  } self_t;

  // A tracking entry that is to be loaded anew: of a context that was armed again, in this run.
  typedef struct packed {
    logic        valid;
    logic [11:0] slot;
    logic [15:0] generation;
    logic [31:0] run;
  } load_t;

  // Bits of what goes with a word through the reduction unit: generation, slot, run, context, number of the word.
  typedef struct packed {
    logic [15:0] generation;
    logic [11:0] slot;
    logic [31:0] run;
    logic [11:0] cc_id;
    logic [15:0] word;
  } word_tag_t;

  // A message that waits to leave, with the words that its frame has behind the header.
  typedef struct packed {
    send_t      send;
    logic       counts;  // of those that one message is split into, the first one does
    logic [9:0] words;
  } leaving_t;

  // What a configuration sets: settings, and how many entries of the table.
  typedef struct packed {
    logic [31:0]  timeout;
    logic [7:0]   retries;
    logic         errors;     // error messages are sent
    logic         validate;   // messages are checked against the table
    logic [31:0]  window;     // of congestion metrics, in cycles
    logic [63:0]  isl_ports;
    logic [127:0] engines;    // entries that are engines
    logic [31:0]  levels;     // of congestion reports: threshold and relief
    logic [31:0]  queues;
    logic [31:0]  collector;
    logic [7:0]   entries;
  } config_t;

  // The CRC of a frame, a word further: 24 bits, generator 0x864cfb, the highest bit first.
  /* verilator lint_off UNUSEDPARAM */
  localparam logic [23:0] CrcStart = 24'hb704ce;
  /* verilator lint_on UNUSEDPARAM */

  function automatic logic [23:0] crc24(logic [23:0] crc, logic [63:0] word);
    crc24 = crc;
    for (int unsigned k = 0; k < 64; k++) begin
      crc24 = {crc24[22:0], 1'b0} ^ (crc24[23] ^ word[63-k] ? 24'h864cfb : '0);
    end
  endfunction

  // The Type field of a message.
  function automatic logic [7:0] type_of(message_e message);
    unique case (message)
      MessageWrite:     type_of = 8'h40;
      MessageRead:      type_of = 8'h03;
      MessageReadReply: type_of = 8'h4a;
      default:          type_of = 8'h74;
    endcase
  endfunction

  // A function takes a whole context, header or frame, and looks at a part of it.
  /* verilator lint_off UNUSEDSIGNAL */

  // The four words of a header, without the CRC, of a frame with this many words behind it.
  function automatic logic [3:0][63:0] header_words(message_t head, logic [9:0] words);
    logic [7:0] operation;

    operation = head.message == MessageControl ? 8'(head.control) : 8'(head.op);
    header_words[0] = {type_of(head.message), head.pass, {words[8:0], 1'b0}, head.requester, head.poisoned, 1'b0, head.tag};
    header_words[1] = {head.device, head.offset, 4'd0, head.message, operation, 4'd1, head.posted, head.error,
                       head.engines_only, 1'b0, 4'd0, head.status};
    header_words[2] = {head.cc_id, head.dtype, head.mode.round, head.mode.flush_to_zero, 6'd0, head.p_id, head.dmu_id,
                       head.p_count};
    header_words[3] = {head.run, 1'b0, head.flags, 24'd0};
  endfunction

  // A header from its words; `lists` and the number of words are up to who knows the length.
  function automatic message_t header_of(logic [3:0][63:0] word);
    header_of = '0;
    header_of.pass = word[0][55:42];
    header_of.requester = word[0][31:16];
    header_of.poisoned = word[0][15];
    header_of.tag = word[0][13:0];
    header_of.device = word[1][63:48];
    header_of.offset = word[1][47:32];
    header_of.message = message_e'(word[1][27:24]);
    header_of.control = header_of.message == MessageControl ? control_e'(word[1][19:16]) : ControlStart;
    header_of.op = header_of.message == MessageControl ? OpBarrier : op_e'(word[1][19:16]);
    header_of.posted = word[1][11];
    header_of.error = word[1][10];
    header_of.engines_only = word[1][9];
    header_of.status = status_e'(word[1][3:0]);
    header_of.cc_id = word[2][63:52];
    header_of.dtype = dtype_e'(word[2][51:48]);
    header_of.mode.round = round_e'(word[2][47:46]);
    header_of.mode.flush_to_zero = word[2][45];
    header_of.p_id = word[2][38:32];
    header_of.dmu_id = word[2][31:16];
    header_of.p_count = word[2][15:0];
    header_of.run = word[3][63:32];
    header_of.flags = flags_t'(word[3][30:24]);
  endfunction

  // Whether a header is one: codes that are assigned, zeros where nothing is.
  function automatic logic is_header(logic [3:0][63:0] word);
    logic [7:0] message, operation, most;

    message = word[1][31:24];
    operation = word[1][23:16];
    most = message == 8'(MessageControl) ? 8'(ControlClose) : 8'(OpBarrier);
    is_header = message != '0 && message <= 8'(MessageReport) && word[0][63:56] == type_of(message_e'(message[3:0])) &&
                operation <= most && word[1][15:12] == 4'd1 && word[1][7:0] <= 8'(StatusDamaged) &&
                word[2][51:48] <= 4'(DtE5m2) && word[3][31] == 1'b0 && word[3][27] == 1'b0 && word[0][14] == 1'b0 &&
                word[1][8] == 1'b0 && word[2][44:39] == '0;
  endfunction

  // A bit vector of 128 entries from its two words: 32 entries a half, the lowest ones first.
  function automatic logic [127:0] pbv_of(logic [63:0] low, logic [63:0] high);
    pbv_of = {high[31:0], high[63:32], low[31:0], low[63:32]};
  endfunction

  // What is refused, for those who only count: an error without a list.
  function automatic logic is_refusal(message_t head);
    is_refusal = head.message == MessageError && !head.lists;
  endfunction

  // Whether the payload is more than words: parts of one message follow each other.
  function automatic logic has_parts(message_t head);
    has_parts = head.lists || head.message == MessageInitialisation || head.message == MessageConfiguration;
  endfunction

  // Where answers to a message go in its sender's space: the registers of an engine, or 0 at an end point.
  function automatic logic [15:0] reply_offset(logic [13:0] tag);
    reply_offset = tag[13] ? 16'hc000 + {2'b0, tag[11:8], 10'b0} : '0;
  endfunction

  function automatic logic is_multicast(context_t it);
    is_multicast = it.like.message == MessageMulticast;
  endfunction

  // Whether its responses go on to the source as they are.
  function automatic logic hands_to_source(context_t it);
    hands_to_source = it.stored.to_source && it.stored.master && !is_multicast(it);
  endfunction

  // Whether the receiver of its answer is known.
  function automatic logic knows_requester(context_t it);
    knows_requester = it.stored.master || it.like.requester != it.like.dmu_id;
  endfunction

  function automatic logic is_answered(context_t it);
    is_answered = it.stored.groups ? it.release_valid : it.state == ContextDone;
  endfunction

  function automatic logic is_untouched(context_t it);
    is_untouched = it.track == it.stored.track;
  endfunction

  // What went wrong is noted; the first of several stays.
  function automatic status_e failed(status_e error, status_e status);
    failed = error != StatusOk ? error : status == StatusOk ? StatusTimedOut : status;
  endfunction

  // A message of the engine itself.
  function automatic message_t fresh(message_e message, self_t me, logic [15:0] device, logic [15:0] offset);
    fresh = '0;
    fresh.message = message;
    fresh.requester = me.device;
    fresh.tag = me.tag;
    fresh.device = device;
    fresh.offset = offset;
    fresh.op = OpBarrier;
    fresh.dtype = DtU64;
  endfunction

  // What a refused message is answered with.
  function automatic message_t error_to(message_t head, status_e status, self_t me);
    error_to = fresh(MessageError, me, head.requester, reply_offset(head.tag));
    error_to.status = status;
    error_to.cc_id = head.cc_id;
    error_to.pass[13:11] = head.pass[13:11];
    error_to.p_id = head.p_id;
    error_to.run = head.run;
    error_to.p_count = 16'(head.message);
    error_to.dmu_id = head.dmu_id;
  endfunction

  // Who is missing: to who commanded.
  function automatic send_t missing_of(context_t it, self_t me);
    missing_of = '0;
    missing_of.valid = 1'b1;
    missing_of.pbv = it.track.pbv;
    missing_of.from = WordsMissing;
    missing_of.head = fresh(MessageError, me, it.like.requester, reply_offset(it.like.tag));
    missing_of.head.lists = 1'b1;
    missing_of.head.pass[13:11] = it.like.pass[13:11];
    missing_of.head.status = it.error;
    missing_of.head.cc_id = it.cc_id;
    missing_of.head.run = it.like.run;
    missing_of.head.dmu_id = it.like.dmu_id;
    missing_of.head.p_id = it.like.p_id;
  endfunction

  // A response, to who commanded. Its words are the accumulators, if all of them are there.
  function automatic message_t response(context_t it, message_e message, logic whole, self_t me);
    response = it.like;
    response.message = message;
    response.requester = me.device;
    response.tag = me.tag;
    response.posted = 1'b0;
    response.device = it.like.requester;
    response.offset = reply_offset(it.like.tag);
    response.flags = it.flags;
    // A member that may go on is told of the failures of other groups, not of its own.
    response.status = message == MessageSatisfied && it.release_valid ? it.release_status : it.error;
    response.error = response.status != StatusOk;
    response.p_count = it.stored.track.p_count;
    response.words = whole && it.like.op != OpBarrier && !is_multicast(it) ? it.stored.words : '0;
  endfunction

  // A message to the device in its header.
  function automatic send_t to_header(message_t head, words_e from);
    to_header = '{valid: 1'b1, to_entries: 1'b0, pbv: '0, skip: NoDevice, from: from, head: head};
  endfunction

  // A message to entries of the PBV table.
  function automatic send_t to_entries(message_t head, words_e from, logic [127:0] pbv, logic [15:0] skip);
    to_entries = '{valid: 1'b1, to_entries: 1'b1, pbv: pbv, skip: skip, from: from, head: head};
  endfunction

  // A context begins anew.
  function automatic context_t renewed(context_t it, logic [15:0] generation);
    renewed = it;
    renewed.flags = '0;
    renewed.error = StatusOk;
    renewed.result = 1'b0;
    renewed.result_words = '0;
    renewed.cast_words = '0;
    renewed.handed = '0;
    renewed.satisfied = 1'b0;
    renewed.early = 1'b0;
    renewed.commanded = 1'b0;
    renewed.release_valid = 1'b0;
    renewed.release_status = StatusOk;
    renewed.retries = '0;
    renewed.deadline_valid = 1'b0;
    renewed.generation = generation;
  endfunction

  // It is armed again, and keeps what it answered.
  function automatic context_t rearmed(context_t it, message_t last, logic [15:0] generation);
    rearmed = renewed(it, generation);
    rearmed.last_valid = 1'b1;
    rearmed.last = last;
    rearmed.state = ContextActive;
    rearmed.like.run = it.like.run + 32'd1;
    rearmed.track = it.stored.track;
  endfunction

  // Its tracking entry is to be loaded anew.
  function automatic load_t load_of(context_t it, logic [11:0] slot);
    load_of = '{valid: 1'b1, slot: slot, generation: it.generation, run: it.like.run};
  endfunction

  // Whether a context has a watchdog.
  function automatic logic is_guarded(context_t it, self_t me);
    is_guarded = me.timeout != '0 && it.stored.track.pbv != '0;
  endfunction

  // When a watchdog that is set now ends. Who waits for the final result waits for the tasks of all participants.
  function automatic logic [47:0] deadline_of(logic waiting, self_t me);
    deadline_of = me.now + (waiting ? {11'd0, me.timeout, 5'd0} : {16'd0, me.timeout});
  endfunction

  // Its watchdog is set.
  function automatic context_t guarded(context_t it, self_t me);
    guarded = it;
    if (is_guarded(it, me)) begin
      guarded.deadline_valid = 1'b1;
      guarded.deadline = deadline_of(it.state == ContextWaiting, me);
    end
  endfunction

  // What a context comes to that may be complete.
  typedef struct packed {
    context_t it;
    send_t    missing;  // who is missing goes ahead of the data
    send_t    source;   // a copy for the source
    send_t    main;     // up, or at the master down
    logic     arrived;  // a group is complete
    logic     rearms;   // with `last` as the answer of the run before
    message_t last;
    logic     waits;    // its watchdog is set for the final result
  } finish_t;

  // It answers if all participants have answered and every word is written.
  function automatic finish_t finish(context_t it, logic idle, logic whole, self_t me);
    logic [31:0] since;

    since = it.like.run - it.arrived_run;
    finish = '0;
    finish.it = it;
    if (it.satisfied && idle && it.state == ContextActive && knows_requester(it)) begin
      finish.it.deadline_valid = 1'b0;
      if (it.error != StatusOk) finish.missing = missing_of(it, me);
      if (hands_to_source(it)) begin
        finish.it.state = ContextWaiting;
        finish.it.retries = '0;
        finish.waits = is_guarded(it, me);
        finish.it = guarded(finish.it, me);
      end else if (it.stored.master && it.stored.groups) begin
        finish.it.complete = it.arrived && since < 32'd8 ? it.complete << since[2:0] : '0;
        finish.it.complete[0] = it.error == StatusOk;
        finish.it.arrived = 1'b1;
        finish.it.arrived_run = it.like.run;
        finish.it.state = it.release_valid ? ContextDone : ContextWaiting;
        finish.main = to_header(response(it, MessagePartial, whole, me), WordsSum);
        finish.arrived = 1'b1;
      end else if (it.stored.master) begin
        finish.it.state = ContextDone;
        finish.last = response(it, MessageSatisfied, whole, me);
        if (it.stored.answer_source) begin
          finish.source = to_header(finish.last, WordsSum);
          finish.source.head.device = it.like.dmu_id;
          finish.source.head.offset = '0;
        end
        // A multicast is over when it was received: its receivers wait for nothing.
        if (!is_multicast(it)) finish.main = to_entries(finish.last, WordsSum, it.stored.down, NoDevice);
        finish.rearms = it.stored.rearm;
      end else begin
        finish.main = to_header(response(it, MessagePartial, whole, me), WordsSum);
        finish.it.retries = '0;
        if (it.release_valid || is_multicast(it)) begin
          // Nothing comes down any more.
          finish.it.state = ContextDone;
        end else begin
          finish.it.state = ContextWaiting;
          finish.waits = is_guarded(it, me);
          finish.it = guarded(finish.it, me);
        end
      end
    end
  endfunction

  // No device above answers, or ever commanded the run: all devices below are told that there is no result.
  function automatic context_t forsaken(context_t it);
    forsaken = it;
    forsaken.error = StatusTimedOut;
    forsaken.state = ContextDone;
    forsaken.deadline_valid = 1'b0;
    forsaken.satisfied = 1'b1;
    forsaken.release_valid = it.stored.groups;
    forsaken.release_status = StatusTimedOut;
    forsaken.result = 1'b1;
    forsaken.result_words = '0;
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

endpackage
