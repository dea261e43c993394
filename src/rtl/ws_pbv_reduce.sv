// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Accumulation in a collective engine: words of messages through reduction units into the accumulators of contexts, in the order
// of arrival or, kept until all have answered, in that of PBV entries.
//
//   words of a message --+--> feeds --+--> reduction units --> accumulators --+--> answers
//                        |            |     ^  a line of words     |          |
//                        +--> kept ---+     +----------------------+----------+
//
// Twin:        `Ce::reduce` of src/pbv/ce/reduction.rs with src/pbv/ce/memory.rs; each unit is ws_reduce_tree of two ports.
// Parameters:  Contexts     contexts of the store (`contexts`)
//              Participants PBV entries whose words can be kept
//              Words        words of a context, at most
//              Stages       cycles of a reduction unit, 1 to 6 (`unit_stages`)
//              Units        datapaths of each unit
//              UnitCount    reduction units side by side, from 1 (`units`): words enter in lines of as many, a line a cycle, and
//                           accumulators and kept words are stored in such lines
//              Feeds        messages with words that wait, from which on the engine takes nothing (`feeds`)
//              MemoryPorts  accesses to the accumulators in a cycle, 1 to 4 (`memory_ports`): a line out of the units goes first
// Latency:     a line that enters the units in t is written in t + Stages; a line a cycle, but the same line of the same context only
//              when the one before is written
// Limitations: accumulators and kept words are flip-flops; a feed holds the words of a message side by side
module ws_pbv_reduce
  import ws_pkg::*;
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Contexts = 4,
  parameter int unsigned Participants = 8,
  parameter int unsigned Words = 4,
  parameter int unsigned Stages = 4,
  parameter units_t      Units = '1,
  parameter int unsigned UnitCount = 1,
  parameter int unsigned Feeds = 2,
  parameter int unsigned MemoryPorts = 2,
  localparam int unsigned SlotBits = Contexts > 1 ? $clog2(Contexts) : 1,
  localparam int unsigned EntryBits = Participants > 1 ? $clog2(Participants) : 1,
  // What comes when a context begins anew, or is over, behind this cycle's words.
  localparam int unsigned Late = 2 + MemoryPorts,
  localparam int unsigned Places = Feeds + 6 + Contexts,
  localparam int unsigned LenBits = $clog2(Places + 1)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  // A context begins anew: by the message that came, by the verdict.
  input  logic [1:0]          renew_i,
  input  logic [SlotBits-1:0] renew_at_i [2],
  // A run is closed by the message that came: the kept words of that context go into the unit.
  input  logic                close_i,
  input  logic [SlotBits-1:0] close_at_i,
  // Contexts as they are when this cycle's message and verdict have been looked at.
  input  context_t            context_i [Contexts],
  // Words of a message that was accepted: into the unit, or kept for their PBV entry.
  input  logic                push_i,
  input  logic                keep_i,
  input  logic [SlotBits-1:0] push_at_i,
  input  logic [EntryBits-1:0] push_entry_i,
  input  logic [15:0]         push_count_i,
  input  logic [63:0]         push_word_i [Words],
  // All participants have answered: the kept words of that context go into the unit.
  input  logic                release_i,
  // Behind what is written: a context was armed again (kept words and a word that was written, then watchdogs), or a watchdog ended
  // its run, so that its kept words go into the unit.
  input  logic [Late-1:0]     renew_late_i,
  input  logic [Late-1:0]     release_late_i,
  input  logic [SlotBits-1:0] late_at_i [Late],
  // Messages with words that wait, at the start of the cycle.
  output logic [LenBits-1:0]  feeds_o,
  // Whether words of a context wait or are in the unit, and whether some are in the unit.
  output logic [Contexts-1:0] under_way_o,
  output logic [Contexts-1:0] in_unit_o,
  // Whether words of a context are kept, or are on their way there: at the start of the cycle, and behind what is written.
  output logic [Contexts-1:0] kept_o,
  output logic [Contexts-1:0] kept_late_o,
  output logic [Contexts-1:0] under_way_late_o,
  // The words that were kept of a context are all in the unit; whether nothing else of it is under way.
  output logic                over_o,
  output logic [SlotBits-1:0] over_at_o,
  output logic                over_idle_o,
  // A line is written, with flags; whether nothing of its context is under way any more.
  output logic                written_o,
  output logic [SlotBits-1:0] written_at_o,
  output logic                written_idle_o,
  output flags_t              written_flags_o,
  // Accumulators at the start of the cycle, and behind what is written.
  output logic [Words-1:0]    there_o [Contexts],
  output logic [63:0]         word_o [Contexts][Words],
  output logic [Words-1:0]    there_late_o [Contexts],
  output logic [63:0]         word_late_o [Contexts][Words]
);

  localparam int unsigned WordBits = Words > 1 ? $clog2(Words) : 1;
  localparam int unsigned CountBits = 16;
  localparam int unsigned AtBits = $clog2(Places);

  typedef enum logic [1:0] {
    WayUnit    = 2'd0,
    WayKeep    = 2'd1,
    WayRelease = 2'd2
  } way_e;

  typedef struct packed {
    way_e                   way;
    logic [SlotBits-1:0]    slot;
    logic [15:0]            generation;
    logic [EntryBits-1:0]   entry;
    logic [15:0]            count;  // words; of a release 0 if it has none at hand
    logic [15:0]            next;
    logic [Words-1:0][63:0] word;
  } feed_t;

  // A line, by its first word.
  typedef struct packed {
    logic                valid;
    logic [SlotBits-1:0] slot;
    logic [15:0]         word;
  } place_t;

  typedef struct packed {
    logic [SlotBits-1:0] slot;
    logic [15:0]         left;  // words
  } clear_t;

  // Messages whose words wait.
  feed_t                  feed_q [Places];
  feed_t                  feed_late [Places];
  feed_t                  feed_d [Places];
  logic [LenBits-1:0]     feeds_q, feeds_late, feeds_d;
  // What is in the units, the oldest last.
  place_t                 unit_q [Stages];
  place_t                 entering;
  // Accumulators, words that are kept, and how many words of each context are under way.
  logic [Words-1:0]       there_q [Contexts];
  logic [Words-1:0]       there [Contexts];
  logic [Words-1:0]       there_late [Contexts];
  logic [Words-1:0]       there_d [Contexts];
  logic [63:0]            word_q [Contexts][Words];
  logic [63:0]            word [Contexts][Words];
  logic [63:0]            word_late [Contexts][Words];
  logic [63:0]            word_d [Contexts][Words];
  logic [Participants-1:0] kept_q [Contexts];
  logic [Participants-1:0] kept_late [Contexts];
  logic [Participants-1:0] kept_d [Contexts];
  logic [15:0]            kept_count_q [Contexts][Participants];
  logic [Words-1:0][63:0] kept_word_q [Contexts][Participants];
  logic [CountBits-1:0]   under_way_q [Contexts];
  logic [CountBits-1:0]   under_way [Contexts];
  logic [CountBits-1:0]   under_way_late [Contexts];
  logic [CountBits-1:0]   under_way_d [Contexts];
  // Contexts whose accumulators are being cleared, in order.
  clear_t                 clear_q [Contexts];
  clear_t                 clear_late [Contexts];
  clear_t                 clear_d [Contexts];
  logic [SlotBits:0]      clears_q, clears_late, clears_d;

  // Into the units and out of them; the first of them has a word of every line.
  logic [UnitCount-1:0]   enters, there_a;
  logic [63:0]            operand_a [UnitCount];
  logic [63:0]            operand_b [UnitCount];
  select_t                select;
  word_tag_t              tag [UnitCount];
  word_tag_t              left_tag [UnitCount];
  logic [UnitCount-1:0]   left_valid, writes;
  logic [63:0]            left_value [UnitCount];
  flags_t                 left_flags [UnitCount];
  // Words that are kept in this cycle.
  logic                   keeps;
  feed_t                  kept;

  // The order of the statements is the order in which the model does this in a cycle; what is written comes last.
  always_comb begin
    feed_t               it;
    clear_t              clearing;
    logic [LenBits-1:0]  at;
    logic [SlotBits:0]   clear_at;
    logic [2:0]          ports;
    logic [WordBits-1:0] word_at;
    logic                found, more, same, is_clearing, pops;
    logic [SlotBits-1:0] slot;

    feed_late = feed_q;
    feeds_late = feeds_q;
    there = there_q;
    word = word_q;
    kept_late = kept_q;
    under_way = under_way_q;
    clear_late = clear_q;
    clears_late = clears_q;
    it = '0;
    clearing = '0;
    at = '0;
    clear_at = '0;
    word_at = '0;
    more = 1'b0;
    same = 1'b0;
    is_clearing = 1'b0;
    pops = 1'b0;
    slot = '0;
    enters = '0;
    entering = '0;
    there_a = '0;
    select = '0;
    for (int unsigned u = 0; u < UnitCount; u++) begin
      operand_a[u] = '0;
      operand_b[u] = '0;
      tag[u] = '0;
    end
    keeps = 1'b0;
    kept = '0;
    over_o = 1'b0;
    over_at_o = '0;
    over_idle_o = 1'b0;

    // Contexts begin anew: at the master with their first value.
    for (int unsigned n = 0; n < 2; n++) begin
      slot = renew_at_i[n];
      if (renew_i[n]) begin
        there[slot] = context_i[slot].stored.initial_valid && context_i[slot].stored.master ? '1 : '0;
        for (int unsigned k = 0; k < Words; k++) word[slot][k] = context_i[slot].stored.initial_word;
        kept_late[slot] = '0;
        under_way[slot] = '0;
        // It is cleared behind the others, and once.
        clear_at = '0;
        for (int unsigned k = 0; k < Contexts; k++) begin
          if (k < 32'(clears_late) && clear_late[k].slot != slot) begin
            clear_late[clear_at[SlotBits-1:0]] = clear_late[k];
            clear_at = clear_at + (SlotBits+1)'(1);
          end
        end
        clears_late = clear_at;
        if (context_i[slot].stored.words != '0) begin
          clear_late[clear_at[SlotBits-1:0]] = '{slot: slot, left: context_i[slot].stored.words};
          clears_late = clear_at + (SlotBits+1)'(1);
        end
      end
      // The run that is closed comes between the two.
      if (n == 0 && close_i) begin
        more = |kept_late[close_at_i];
        for (int unsigned k = 0; k < Places; k++) begin
          if (k < 32'(feeds_late) && feed_late[k].slot == close_at_i && feed_late[k].way == WayKeep) more = 1'b1;
        end
        if (more) begin
          it.way = WayRelease;
          it.slot = close_at_i;
          it.generation = context_i[close_at_i].generation;
          feed_late[AtBits'(feeds_late)] = it;
          feeds_late = feeds_late + LenBits'(1);
          under_way[close_at_i] = under_way[close_at_i] + CountBits'(1);
        end
      end
    end

    // What was accepted.
    it.slot = push_at_i;
    it.generation = context_i[push_at_i].generation;
    if (push_i) begin
      it.way = keep_i ? WayKeep : WayUnit;
      it.entry = push_entry_i;
      it.count = push_count_i;
      it.next = '0;
      for (int unsigned k = 0; k < Words; k++) it.word[k] = push_word_i[k];
      feed_late[AtBits'(feeds_late)] = it;
      feeds_late = feeds_late + LenBits'(1);
      under_way[push_at_i] = under_way[push_at_i] + (keep_i ? CountBits'(1) : push_count_i);
    end
    more = |kept_late[push_at_i];
    for (int unsigned k = 0; k < Places; k++) begin
      if (k < 32'(feeds_late) && feed_late[k].slot == push_at_i && feed_late[k].way == WayKeep) more = 1'b1;
    end
    if (release_i && more) begin
      it.way = WayRelease;
      it.entry = '0;
      it.count = '0;
      it.next = '0;
      feed_late[AtBits'(feeds_late)] = it;
      feeds_late = feeds_late + LenBits'(1);
      under_way[push_at_i] = under_way[push_at_i] + CountBits'(1);
    end

    // What leaves the units is written in any case.
    ports = 3'(MemoryPorts) - 3'(unit_q[Stages-1].valid);

    // Words whose context was begun anew while they waited are for nobody.
    found = 1'b0;
    for (int unsigned k = 0; k < Places; k++) begin
      if (!found && k < 32'(feeds_late)) begin
        if (feed_late[k].generation == context_i[feed_late[k].slot].generation) found = 1'b1;
        else at = at + LenBits'(1);
      end
    end
    for (int unsigned k = 0; k < Places; k++) begin
      if (k + 32'(at) < Places) feed_late[k] = feed_late[AtBits'(LenBits'(k) + at)];
    end
    feeds_late = feeds_late - at;

    it = feed_late[0];
    slot = it.slot;
    if (found && it.way == WayKeep) begin
      it.next = it.next + 16'(MemoryPorts * UnitCount);
      if (it.next >= it.count) begin
        keeps = 1'b1;
        kept = it;
        kept_late[slot][it.entry] = 1'b1;
        under_way[slot] = under_way[slot] - CountBits'(1);
        pops = 1'b1;
      end
    end else if (found) begin
      more = 1'b1;
      if (it.way == WayRelease && it.count == '0) begin
        // The next entry that has words.
        more = 1'b0;
        for (int unsigned k = 0; k < Participants; k++) begin
          if (!more && k >= 32'(it.entry) && kept_late[slot][k]) begin
            more = 1'b1;
            it.entry = EntryBits'(k);
          end
        end
        if (more) begin
          it.count = kept_count_q[slot][it.entry];
          it.word = kept_word_q[slot][it.entry];
          it.next = '0;
          kept_late[slot][it.entry] = 1'b0;
          under_way[slot] = under_way[slot] + it.count;
        end else begin
          under_way[slot] = under_way[slot] - CountBits'(1);
          over_o = 1'b1;
          over_at_o = slot;
          pops = 1'b1;
        end
      end
      for (int unsigned k = 0; k < Stages; k++) begin
        if (unit_q[k].valid && unit_q[k].slot == slot && unit_q[k].word == it.next) same = 1'b1;
      end
`ifdef WS_FAULT_WORD
      // That the same line is in the units is overlooked.
      same = 1'b0;
`endif
      for (int unsigned k = 0; k < Contexts; k++) begin
        if (k < 32'(clears_late) && clear_late[k].slot == slot) is_clearing = 1'b1;
      end
      if (more && ports != '0 && !is_clearing && !same) begin
        ports = ports - 3'd1;
        entering = '{valid: 1'b1, slot: slot, word: it.next};
        select = '{op: context_i[slot].like.op, dtype: context_i[slot].like.dtype,
                   mode: context_i[slot].like.mode};
        // The last line may have fewer words.
        for (int unsigned u = 0; u < UnitCount; u++) begin
`ifdef WS_FAULT_LINE
          // It has as many as any other.
          if (u < Words) begin
`else
          if (16'(u) < it.count - it.next) begin
`endif
            word_at = it.next[WordBits-1:0] + WordBits'(u);
            enters[u] = 1'b1;
            there_a[u] = there[slot][word_at];
            operand_a[u] = word[slot][word_at];
            operand_b[u] = it.word[word_at];
            tag[u] = '{generation: it.generation, slot: 12'(slot), run: context_i[slot].like.run, cc_id: context_i[slot].cc_id,
                       word: it.next + 16'(u)};
          end
        end
        it.next = it.next + 16'(UnitCount);
        if (it.next >= it.count) begin
          it.count = '0;
          if (it.way == WayUnit) pops = 1'b1;
        end
      end
    end
    feed_late[0] = it;
    if (pops) begin
      for (int unsigned k = 0; k + 1 < Places; k++) feed_late[k] = feed_late[k+1];
      feeds_late = feeds_late - LenBits'(1);
    end

    // Clearing takes the ports that are left, a line each.
    clear_at = '0;
    for (int unsigned k = 0; k < Contexts; k++) begin
      if (k < 32'(clears_late)) begin
        clearing = clear_late[k];
        for (int unsigned p = 0; p < MemoryPorts; p++) begin
          if (ports != '0 && clearing.left != '0) begin
            clearing.left = clearing.left > 16'(UnitCount) ? clearing.left - 16'(UnitCount) : '0;
            ports = ports - 3'd1;
          end
        end
        if (clearing.left != '0) begin
          clear_late[clear_at[SlotBits-1:0]] = clearing;
          clear_at = clear_at + (SlotBits+1)'(1);
        end
      end
    end
    clears_late = clear_at;
    over_idle_o = under_way[over_at_o] == '0;

  end

  // A line is written, if it is still of the present run.
  always_comb begin
    there_late = there;
    word_late = word;
    under_way_late = under_way;
    written_at_o = left_tag[0].slot[SlotBits-1:0];
    written_flags_o = '0;
    for (int unsigned u = 0; u < UnitCount; u++) begin
      writes[u] = left_valid[u] && left_tag[u].generation == context_i[written_at_o].generation &&
                  context_i[written_at_o].state != ContextAbsent && left_tag[u].word < context_i[written_at_o].stored.words;
      if (writes[u]) begin
        there_late[written_at_o][left_tag[u].word[WordBits-1:0]] = 1'b1;
        word_late[written_at_o][left_tag[u].word[WordBits-1:0]] = left_value[u];
        under_way_late[written_at_o] = under_way_late[written_at_o] - CountBits'(1);
        written_flags_o |= left_flags[u];
      end
    end
    written_o = |writes;
    written_idle_o = under_way_late[written_at_o] == '0;
    for (int unsigned c = 0; c < Contexts; c++) begin
      under_way_late_o[c] = under_way_late[c] != '0;
      kept_late_o[c] = |kept_late[c];
    end
    for (int unsigned k = 0; k < Places; k++) begin
      if (k < 32'(feeds_late) && feed_late[k].way == WayKeep) kept_late_o[feed_late[k].slot] = 1'b1;
    end
  end

  // Contexts that are armed again, and those whose time is over.
  always_comb begin
    feed_t               it;
    logic [SlotBits:0]   clear_at;
    logic [SlotBits-1:0] slot;

    feed_d = feed_late;
    feeds_d = feeds_late;
    there_d = there_late;
    word_d = word_late;
    kept_d = kept_late;
    under_way_d = under_way_late;
    clear_d = clear_late;
    clears_d = clears_late;
    it = '0;
    clear_at = '0;
    for (int unsigned n = 0; n < Late; n++) begin
      slot = late_at_i[n];
      if (release_late_i[n] && kept_late_o[slot]) begin
        it.way = WayRelease;
        it.slot = slot;
        it.generation = context_i[slot].generation;
        feed_d[AtBits'(feeds_d)] = it;
        feeds_d = feeds_d + LenBits'(1);
        under_way_d[slot] = under_way_d[slot] + CountBits'(1);
      end
      if (renew_late_i[n]) begin
        there_d[slot] = context_i[slot].stored.initial_valid && context_i[slot].stored.master ? '1 : '0;
        for (int unsigned k = 0; k < Words; k++) word_d[slot][k] = context_i[slot].stored.initial_word;
        kept_d[slot] = '0;
        under_way_d[slot] = '0;
        clear_at = '0;
        for (int unsigned k = 0; k < Contexts; k++) begin
          if (k < 32'(clears_d) && clear_d[k].slot != slot) begin
            clear_d[clear_at[SlotBits-1:0]] = clear_d[k];
            clear_at = clear_at + (SlotBits+1)'(1);
          end
        end
        clears_d = clear_at;
        if (context_i[slot].stored.words != '0) begin
          clear_d[clear_at[SlotBits-1:0]] = '{slot: slot, left: context_i[slot].stored.words};
          clears_d = clear_at + (SlotBits+1)'(1);
        end
      end
    end
  end

  for (genvar u = 0; u < UnitCount; u++) begin : gen_unit
    logic [63:0] operand [2];

    assign operand[0] = operand_a[u];
    assign operand[1] = operand_b[u];

    ws_reduce_tree #(
      .Radix(2),
      .UnitStages(Stages),
      .Units(Units),
      .TagWidth($bits(word_tag_t))
    ) u_tree (
      .clk_i,
      .rst_ni,
      .valid_i(enters[u]),
      .op_i(select.op),
      .dtype_i(select.dtype),
      .mode_i(select.mode),
      .flags_i('0),
      .tag_i(tag[u]),
      .present_i({1'b1, there_a[u]}),
      .word_i(operand),
      .valid_o(left_valid[u]),
      .value_o(left_value[u]),
      .flags_o(left_flags[u]),
      .tag_o(left_tag[u])
    );
  end

  always_comb begin
    under_way_o = '0;
    in_unit_o = '0;
    for (int unsigned c = 0; c < Contexts; c++) begin
      under_way_o[c] = under_way_q[c] != '0;
      kept_o[c] = |kept_q[c];
    end
    for (int unsigned k = 0; k < Places; k++) begin
      if (k < 32'(feeds_q) && feed_q[k].way == WayKeep) kept_o[feed_q[k].slot] = 1'b1;
    end
    for (int unsigned s = 0; s < Stages; s++) begin
      if (unit_q[s].valid) in_unit_o[unit_q[s].slot] = 1'b1;
    end
  end

  assign feeds_o = feeds_q;
  assign there_o = there_q;
  assign word_o = word_q;
  assign there_late_o = there_late;
  assign word_late_o = word_late;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned k = 0; k < Places; k++) feed_q[k] <= '0;
      feeds_q <= '0;
      for (int unsigned k = 0; k < Stages; k++) unit_q[k] <= '0;
      for (int unsigned c = 0; c < Contexts; c++) begin
        there_q[c] <= '0;
        kept_q[c] <= '0;
        under_way_q[c] <= '0;
        clear_q[c] <= '0;
        for (int unsigned k = 0; k < Words; k++) word_q[c][k] <= '0;
        for (int unsigned k = 0; k < Participants; k++) begin
          kept_count_q[c][k] <= '0;
          kept_word_q[c][k] <= '0;
        end
      end
      clears_q <= '0;
    end else begin
      feed_q <= feed_d;
      feeds_q <= feeds_d;
      unit_q[0] <= entering;
      for (int unsigned k = 1; k < Stages; k++) unit_q[k] <= unit_q[k-1];
      there_q <= there_d;
      word_q <= word_d;
      kept_q <= kept_d;
      under_way_q <= under_way_d;
      clear_q <= clear_d;
      clears_q <= clears_d;
      if (keeps) begin
        kept_count_q[kept.slot][kept.entry] <= kept.count;
        kept_word_q[kept.slot][kept.entry] <= kept.word;
      end
    end
  end

  // Fields that only some steps look at.
  logic unused;

  always_comb begin
    unused = ^kept;
    for (int unsigned u = 0; u < UnitCount; u++) unused ^= ^left_tag[u];
    for (int unsigned c = 0; c < Contexts; c++) unused ^= ^context_i[c];
  end

endmodule
