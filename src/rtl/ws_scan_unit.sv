// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The scan unit beside the tree of an engine: prefix scans in rank order.
//
//   operands, in rank order --> chain of units --+--> total ------------------------> request, on its way up
//                                                +--> prefix of each input: kept
//                                                                             |
//   response from above: all that is before this subtree --> combine <--------+
//                                                               +--> one response an input, in rank order
//
// Twin:        src/piuma/scan.rs with src/piuma/scan_stages.rs.
// Parameters:  Inputs       inputs that a scan may have, 2 to 15
//              UnitStages   cycles of a unit, 1 to 6
//              Units        datapaths of every unit
//              ScanSlots    elements between their total and their response (`scan_slots`)
//              ResultSlots  results that wait, see `begin_scan` and `scan` of src/piuma/ceng.rs
//              AboveSlots   responses from above that wait (`operand_slots`)
//              Ids          collective ids
//              Post         cycles of the switch behind switch allocation
// Latency:     with k inputs a total leaves (k - 1) x UnitStages cycles after they were taken, and at least 1; responses leave from
//              UnitStages cycles after the one from above is there, or at the root after the total would be; one a cycle
// Order:       in a cycle an element is taken, a response from above meets its element, a result leaves: responses first
// Limitations: elements and their prefixes are flip-flops; a response whose element is not there is lost
module ws_scan_unit
  import ws_pkg::*;
#(
  parameter int unsigned Inputs = 10,
  parameter int unsigned UnitStages = 3,
  parameter units_t      Units = '1,
  parameter int unsigned ScanSlots = 8,
  parameter int unsigned ResultSlots = 15,
  parameter int unsigned AboveSlots = 2,
  parameter int unsigned Ids = 4,
  parameter int unsigned Post = 0,
  localparam int unsigned AboveBits = $clog2(AboveSlots + 1)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  // What is done for each id.
  input  select_t              select_i [Ids],
  // An element: its operands in rank order, how many, their ports. At the root they turn round at once.
  input  logic                 take_i,
  input  logic                 root_i,
  input  logic [3:0]           count_i,
  input  logic [3:0]           port_i [Inputs],
  input  flit_t                operand_i [Inputs],
  // Whether one could be taken, at the root or elsewhere; totals that are on their way up.
  output logic                 takes_o,
  output logic                 takes_root_o,
  output logic [15:0]          going_up_o,
  // Responses from above, the oldest first, and how many may come.
  input  logic [AboveBits-1:0] above_i,
  input  flit_t                above_flit_i [AboveSlots],
  output logic [AboveBits-1:0] above_room_o,
  // A result may leave, and does.
  input  logic                 may_leave_i,
  output logic                 leaves_o,
  output flit_t                result_o,
  // Something is in it, at the start of the cycle and at its end.
  output logic                 busy_o,
  output logic                 stays_busy_o
);

  localparam int unsigned Chain = Inputs - 1;
  // Elements whose responses are made: each of them has one at least that waits.
  localparam int unsigned Turns = 2 * ResultSlots + 2;
  localparam int unsigned Elements = ScanSlots + Turns;
  localparam int unsigned AtBits = $clog2(Elements);
  localparam int unsigned TurnBits = $clog2(Turns + 1);
  localparam int unsigned PlaceBits = $clog2(Turns);
  localparam int unsigned UpBits = $clog2(ResultSlots + 1);
  localparam int unsigned IdBits = Ids > 1 ? $clog2(Ids) : 1;
  // Cycles until responses are made, and since.
  localparam int unsigned MostWait = Chain * UnitStages;
  localparam int unsigned MostAge = Inputs + UnitStages;
  localparam int unsigned WaitBits = $clog2(MostWait + 2);
  localparam int unsigned AgeBits = $clog2(MostAge + 1);
  // The number of an element, below the port and what says that nothing is before it.
  localparam int unsigned SeqBits = 30;

  // An element: prefixes by the number of their input; behind them the total. In the end they are the responses.
  typedef struct packed {
    logic                    there;
    logic                    kept;   // it waits for the response from above
    logic                    done;   // its total is there
    logic [11:0]             id;
    logic [35:0]             seq;
    logic [3:0]              count;
    logic [Inputs-1:0][3:0]  port;
    logic [Inputs:0][63:0]   word;
    logic [Inputs:0][6:0]    flags;
  } element_t;

  // An element whose responses are made.
  typedef struct packed {
    logic [AtBits-1:0]   at;
    logic                has_before;  // something is before it
    logic [63:0]         word;
    flags_t              flags;
    logic [WaitBits-1:0] waits;   // cycles until the first one may enter the combining unit
    logic [AgeBits-1:0]  age;     // cycles since
    logic [3:0]          count;
    logic [3:0]          enter;   // inputs whose responses have entered the unit, or need not
    logic [3:0]          leave;   // inputs whose responses have left
  } turn_t;

  // What goes with a value through the chain, and the operands that are to be joined with it.
  typedef struct packed {
    logic                  valid;
    logic [3:0]            used;   // units of the chain that it needs
    logic [AtBits-1:0]     at;
    select_t               select;
    tag_t                  tag;
    flags_t                flags;  // of the operands that are joined
    logic [Chain-1:0][63:0] word;
    logic [Chain-1:0][6:0] raised;
  } link_t;

  // What goes with a value through the combining unit.
  typedef struct packed {
    logic              valid;
    logic [AtBits-1:0] at;
    logic [3:0]        input_at;
    flags_t            flags;
  } turning_t;

  element_t            element_q [Elements];
  turn_t               turn_q [Turns];
  turn_t               turn_d [Turns];
  logic [TurnBits-1:0] turns_q, turns_d;
  logic [AtBits-1:0]   up_q [ResultSlots];
  logic [AtBits-1:0]   up_d [ResultSlots];
  logic [UpBits-1:0]   ups_q, ups_d;
  logic [15:0]         kept_q, kept_d;
  logic [15:0]         waiting_q, waiting_d;

  ////////////////////////
  // An element is taken //
  ////////////////////////

  logic              begins, begins_root;
  logic [AtBits-1:0] free;
  logic [3:0]        used;
  flit_t             first;
  tag_t              chain_tag;

  assign first = operand_i[0];
  assign takes_o = 32'(kept_q) < ScanSlots;
  assign takes_root_o = takes_o && 32'(waiting_q) <= ResultSlots;
  assign begins = take_i;
  assign begins_root = take_i && root_i;
  assign going_up_o = 16'(ups_q);

  always_comb begin
    free = '0;
    for (int unsigned e = Elements; e > 0; e--) begin
      if (!element_q[e-1].there) free = AtBits'(e - 1);
    end
    // At the root nobody needs the total.
    used = root_i ? (count_i > 4'd1 ? count_i - 4'd2 : '0) : count_i - 4'd1;
    chain_tag = '0;
    chain_tag.head = 1'b1;
    chain_tag.tail = 1'b1;
    chain_tag.id = first.tag.id;
    chain_tag.seq = first.tag.seq;
  end

  // The chain: unit j joins the sum of j + 1 inputs with the next one.
  link_t              into [Chain+1];
  logic [63:0]        sum [Chain+1];
  logic [Chain:0]     summed;
  flags_t             sum_flags [Chain+1];
  logic [AtBits-1:0]  sum_at [Chain+1];

  assign sum[0] = first.word;
  assign summed[0] = begins;
  assign sum_flags[0] = first.tag.flags[6:0];
  assign sum_at[0] = free;

  always_comb begin
    into[0] = '0;
    into[0].valid = begins;
    into[0].used = used;
    into[0].at = free;
    into[0].select = select_i[first.tag.id[IdBits-1:0]];
    into[0].tag = chain_tag;
    into[0].flags = first.tag.flags[6:0];
    for (int unsigned k = 0; k < Chain; k++) begin
      into[0].word[k] = operand_i[k+1].word;
      into[0].raised[k] = operand_i[k+1].tag.flags[6:0];
    end
  end

  for (genvar j = 0; j < Chain; j++) begin : gen_chain
    link_t       behind_q [UnitStages];
    logic        enters;
    logic [63:0] joined;
    flags_t      raised;
    logic        unused_valid;

    assign enters = into[j].valid && 32'(into[j].used) > j;

    ws_unit #(
      .Stages(UnitStages),
      .Units(Units),
      .TagWidth($bits(tag_t))
    ) u_unit (
      .clk_i,
      .rst_ni,
      .op_i(into[j].select.op),
      .dtype_i(into[j].select.dtype),
      .mode_i(into[j].select.mode),
      .tag_i(into[j].tag),
      .a_valid_i(enters),
      .a_i(sum[j]),
      .b_valid_i(enters),
      .b_i(into[j].word[j]),
      .valid_o(unused_valid),
      .word_o(joined),
      .flags_o(raised)
    );

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        for (int unsigned s = 0; s < UnitStages; s++) behind_q[s] <= '0;
      end else begin
        behind_q[0] <= into[j];
        behind_q[0].valid <= enters;
        behind_q[0].flags <= into[j].flags | into[j].raised[j];
        for (int unsigned s = 1; s < UnitStages; s++) behind_q[s] <= behind_q[s-1];
      end
    end

    assign summed[j+1] = behind_q[UnitStages-1].valid;
    assign sum[j+1] = joined;
    assign sum_at[j+1] = behind_q[UnitStages-1].at;
    assign sum_flags[j+1] = behind_q[UnitStages-1].flags | raised;

    always_comb begin
      into[j+1] = behind_q[UnitStages-1];
      into[j+1].flags = sum_flags[j+1];
    end
  end

  //////////////////////////
  // Responses from above //
  //////////////////////////

  localparam int unsigned VisibleBits = Post > 0 ? $clog2(Post + 1) : 1;

  flit_t                  above_q [AboveSlots];
  flit_t                  above_d [AboveSlots];
  logic [VisibleBits-1:0] hidden_q [AboveSlots];
  logic [VisibleBits-1:0] hidden_d [AboveSlots];
  logic [AboveBits-1:0]   aboves_q, aboves_d;
  logic                   meets, met;
  logic [AtBits-1:0]      met_at;

  assign above_room_o = AboveBits'(AboveSlots) - aboves_q + AboveBits'(meets);

  always_comb begin
    logic [15:0] waiting;

    // Responses have places of their own, so that totals that wait for the parent never stop them.
    waiting = waiting_q;
    if (begins) waiting = waiting + (root_i ? 16'(count_i) : 16'd1);
    meets = aboves_q != '0 && hidden_q[0] == '0 && 32'(waiting) <= 2 * ResultSlots;
    met = 1'b0;
    met_at = '0;
    for (int unsigned e = 0; e < Elements; e++) begin
      if (element_q[e].kept && element_q[e].id == above_q[0].tag.id &&
          element_q[e].seq == 36'(above_q[0].tag.seq[SeqBits-1:0])) begin
        met = meets;
        met_at = AtBits'(e);
      end
    end
  end

  always_comb begin
    logic [AboveBits-1:0] at;

    for (int unsigned k = 0; k < AboveSlots; k++) begin
      above_d[k] = meets && k + 1 < AboveSlots ? above_q[(k + 1) % AboveSlots] : above_q[k];
      hidden_d[k] = meets && k + 1 < AboveSlots ? hidden_q[(k + 1) % AboveSlots] : hidden_q[k];
      if (hidden_d[k] != '0) hidden_d[k] = hidden_d[k] - VisibleBits'(1);
    end
    at = aboves_q - AboveBits'(meets);
    for (int unsigned n = 0; n < AboveSlots; n++) begin
      for (int unsigned k = 0; k < AboveSlots; k++) begin
        if (n < 32'(above_i) && 32'(at) + n == k) begin
          above_d[k] = above_flit_i[n];
          hidden_d[k] = VisibleBits'(Post);
        end
      end
    end
    aboves_d = at + above_i;
  end

  ////////////////////////////////
  // Responses, one for an input //
  ////////////////////////////////

  // Into the combining unit and out of it.
  logic                first_valid, second_valid, combined_valid;
  logic [63:0]         first_word, second_word, combined;
  select_t             combine_select;
  tag_t                combine_tag;
  turning_t            turning, combined_of;
  turning_t            turning_q [UnitStages];
  flags_t              combine_flags, combined_flags;
  // What leaves.
  logic                ends, up_leaves;
  logic [AtBits-1:0]   ended;

  assign combined_of = turning_q[UnitStages-1];
  assign combined_flags = combined_of.flags | combine_flags;

  // The tag of a response: for which input, and whether nothing is before it.
  function automatic tag_t response_tag(logic [11:0] id, logic [35:0] seq, logic [3:0] port, logic nothing);
    response_tag = '0;
    response_tag.head = 1'b1;
    response_tag.tail = 1'b1;
    response_tag.vc = 5'd1;
    response_tag.id = id;
    response_tag.seq = seq | {2'b0, port, 30'b0};
    response_tag.seq[34] = nothing;
  endfunction

  // The order of the statements is the order in which the model does this in a cycle.
  always_comb begin
    turn_t               it;
    // It is looked at in parts.
    /* verilator lint_off UNUSEDSIGNAL */
    element_t            of;
    /* verilator lint_on UNUSEDSIGNAL */
    logic                found, nothing;
    logic [PlaceBits-1:0] at;

    turn_d = turn_q;
    turns_d = turns_q;
    waiting_d = waiting_q;
    it = '0;
    of = '0;
    at = '0;
    found = 1'b0;
    nothing = 1'b0;

    // At the root an element turns round when its total would be there.
    if (begins_root) begin
      it.at = free;
      it.count = count_i;
      it.waits = count_i > 4'd1 ? WaitBits'((32'(count_i) - 1) * UnitStages) : WaitBits'(1);
      it.enter = 4'd1;
      turn_d[turns_d[PlaceBits-1:0]] = it;
      turns_d = turns_d + TurnBits'(1);
      waiting_d = waiting_d + 16'(count_i);
    end else if (begins) begin
      waiting_d = waiting_d + 16'd1;
    end
    if (met) begin
      it = '0;
      it.at = met_at;
      it.count = element_q[met_at].count;
      it.has_before = !above_q[0].tag.seq[34];
      it.word = above_q[0].word;
      it.flags = above_q[0].tag.flags[6:0];
      it.enter = it.has_before ? '0 : 4'd1;
      turn_d[turns_d[PlaceBits-1:0]] = it;
      turns_d = turns_d + TurnBits'(1);
      waiting_d = waiting_d + 16'(it.count);
    end

    // The oldest that has not entered the combining unit does, when it is time.
    first_valid = 1'b0;
    first_word = '0;
    second_valid = 1'b0;
    second_word = '0;
    combine_select = '0;
    combine_tag = '0;
    turning = '0;
    for (int unsigned k = 0; k < Turns; k++) begin
      if (!found && k < 32'(turns_d) && turn_d[k].enter < turn_d[k].count) begin
        found = 1'b1;
        at = PlaceBits'(k);
      end
    end
    it = turn_d[at];
    of = element_q[it.at];
    if (found && it.waits == '0 && 32'(it.age) >= 32'(it.enter)) begin
      first_valid = 1'b1;
      first_word = it.has_before ? it.word : of.word[it.enter];
      second_valid = it.has_before && it.enter != '0;
      second_word = of.word[it.enter];
      combine_select = select_i[of.id[IdBits-1:0]];
      combine_tag = response_tag(of.id, of.seq, of.port[it.enter], 1'b0);
      turning.valid = 1'b1;
      turning.at = it.at;
      turning.input_at = it.enter;
      turning.flags = (it.has_before ? it.flags : '0) | (it.enter != '0 ? of.flags[it.enter] : '0);
      turn_d[at].enter = it.enter + 4'd1;
    end

    // A result leaves: the oldest response, or else the oldest total.
    leaves_o = 1'b0;
    result_o = '0;
    ends = 1'b0;
    ended = turn_d[0].at;
    up_leaves = 1'b0;
    it = turn_d[0];
    of = element_q[it.at];
    nothing = it.leave == '0 && !it.has_before;
    if (may_leave_i && turns_d != '0 && it.waits == '0 && 32'(it.age) >= 32'(it.leave) + UnitStages) begin
      leaves_o = 1'b1;
      result_o.tag = response_tag(of.id, of.seq, of.port[it.leave], nothing);
      if (combined_of.valid && combined_of.at == it.at && combined_of.input_at == it.leave) begin
        result_o.word = combined;
        result_o.tag.flags = 8'(combined_flags);
      end else if (!nothing) begin
        result_o.word = of.word[it.leave];
        result_o.tag.flags = 8'(of.flags[it.leave]);
      end
      turn_d[0].leave = it.leave + 4'd1;
      ends = turn_d[0].leave == it.count;
      waiting_d = waiting_d - 16'd1;
    end else if (may_leave_i && ups_q != '0) begin
      of = element_q[up_q[0]];
      result_o.tag.head = 1'b1;
      result_o.tag.tail = 1'b1;
      result_o.tag.id = of.id;
      result_o.tag.seq = of.seq;
      result_o.tag.flags = 8'(of.flags[of.count]);
      result_o.word = of.word[of.count];
      up_leaves = of.done;
      for (int unsigned j = 1; j <= Chain; j++) begin
        // It comes out of the chain in this cycle.
        if (summed[j] && sum_at[j] == up_q[0] && 32'(of.count) == j + 1) begin
          up_leaves = 1'b1;
          result_o.word = sum[j];
          result_o.tag.flags = 8'(sum_flags[j]);
        end
      end
      leaves_o = up_leaves;
      if (up_leaves) waiting_d = waiting_d - 16'd1;
    end
    if (ends) begin
      for (int unsigned k = 0; k + 1 < Turns; k++) turn_d[k] = turn_d[k+1];
      turns_d = turns_d - TurnBits'(1);
    end
    for (int unsigned k = 0; k < Turns; k++) begin
      if (turn_d[k].waits != '0) turn_d[k].waits = turn_d[k].waits - WaitBits'(1);
      else if (32'(turn_d[k].age) < MostAge) turn_d[k].age = turn_d[k].age + AgeBits'(1);
    end
  end

  // Totals on their way up.
  always_comb begin
    for (int unsigned k = 0; k < ResultSlots; k++) begin
      up_d[k] = up_leaves && k + 1 < ResultSlots ? up_q[(k + 1) % ResultSlots] : up_q[k];
      if (begins && !root_i && 32'(ups_q) - 32'(up_leaves) == k) up_d[k] = free;
    end
    ups_d = ups_q - UpBits'(up_leaves) + UpBits'(begins && !root_i);
    kept_d = kept_q - 16'(met) + 16'(begins && !root_i);
  end

  ws_unit #(
    .Stages(UnitStages),
    .Units(Units),
    .TagWidth($bits(tag_t))
  ) u_combine (
    .clk_i,
    .rst_ni,
    .op_i(combine_select.op),
    .dtype_i(combine_select.dtype),
    .mode_i(combine_select.mode),
    .tag_i(combine_tag),
    .a_valid_i(first_valid),
    .a_i(first_word),
    .b_valid_i(second_valid),
    .b_i(second_word),
    .valid_o(combined_valid),
    .word_o(combined),
    .flags_o(combine_flags)
  );

  assign busy_o = kept_q != '0 || ups_q != '0 || turns_q != '0 || aboves_q != '0;
  assign stays_busy_o = kept_d != '0 || ups_d != '0 || turns_d != '0 || aboves_q != AboveBits'(meets);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned e = 0; e < Elements; e++) element_q[e] <= '0;
      for (int unsigned k = 0; k < Turns; k++) turn_q[k] <= '0;
      for (int unsigned k = 0; k < ResultSlots; k++) up_q[k] <= '0;
      for (int unsigned k = 0; k < AboveSlots; k++) begin
        above_q[k] <= '0;
        hidden_q[k] <= '0;
      end
      for (int unsigned s = 0; s < UnitStages; s++) turning_q[s] <= '0;
      turns_q <= '0;
      ups_q <= '0;
      kept_q <= '0;
      waiting_q <= '0;
      aboves_q <= '0;
    end else begin
      turn_q <= turn_d;
      turns_q <= turns_d;
      up_q <= up_d;
      ups_q <= ups_d;
      kept_q <= kept_d;
      waiting_q <= waiting_d;
      above_q <= above_d;
      hidden_q <= hidden_d;
      aboves_q <= aboves_d;
      turning_q[0] <= turning;
      for (int unsigned s = 1; s < UnitStages; s++) turning_q[s] <= turning_q[s-1];
      if (begins) begin
        element_q[free].there <= 1'b1;
        element_q[free].kept <= !root_i;
        element_q[free].done <= count_i == 4'd1;
        element_q[free].id <= first.tag.id;
        element_q[free].seq <= first.tag.seq;
        element_q[free].count <= count_i;
        for (int unsigned k = 0; k < Inputs; k++) element_q[free].port[k] <= port_i[k];
        // The prefix of the second input, or the total of one.
        element_q[free].word[1] <= first.word;
        element_q[free].flags[1] <= first.tag.flags[6:0];
      end
      for (int unsigned j = 1; j <= Chain; j++) begin
        if (summed[j]) begin
`ifdef WS_FAULT_PREFIX
          // The prefix of an input has this input in it.
          element_q[sum_at[j]].word[j] <= sum[j];
`endif
          element_q[sum_at[j]].word[j+1] <= sum[j];
          element_q[sum_at[j]].flags[j+1] <= sum_flags[j];
          if (32'(element_q[sum_at[j]].count) == j + 1) element_q[sum_at[j]].done <= 1'b1;
        end
      end
      if (met) element_q[met_at].kept <= 1'b0;
      if (combined_valid) begin
        element_q[combined_of.at].word[combined_of.input_at] <= combined;
        element_q[combined_of.at].flags[combined_of.input_at] <= combined_flags;
      end
      if (ends) element_q[ended].there <= 1'b0;
    end
  end

  // What nobody behind the chain needs.
  logic unused;

  always_comb begin
    unused = ^{into[Chain], summed[0], sum_at[0], combined_of};
    for (int unsigned k = 0; k < Inputs; k++) unused ^= ^operand_i[k];
    for (int unsigned k = 0; k < AboveSlots; k++) unused ^= ^above_q[k];
    for (int unsigned e = 0; e < Elements; e++) unused ^= ^element_q[e];
  end

endmodule
