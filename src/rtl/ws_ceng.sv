// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The collective engine (CENG) of a switch: operand slots, a reduction tree, results for the crossbar.
//
//             +--------------------------- CENG ---------------------------+
//   from I0 ->| slot 0 -+                                                  |
//   from I1 ->| slot 1 -+-> all ports with the engine's bit -> tree of     |
//      ...    |   ...   |   in the register of this id         two-input   +-> crossbar input: request,
//   from I9 ->| slot 9 -+   have an operand                    units       |   or at the root response
//   from above ------------------------> scan unit ------------------------+   (of a scan one for each input)
//             +------------------------------------------------------------+
//
// Twin:        src/piuma/ceng.rs.
// Parameters:  Radix         ports with a slot (`tree.radix`)
//              UnitStages    cycles a level of the tree takes, 1 to 6 (`tree.unit_stages`)
//              Units         datapaths of the tree
//              OperandSlots  operands a port and plane can hold (`operand_slots`)
//              ResultSlots   results of a plane in the tree and in the queue behind it (`result_slots`)
//              Ids           collective ids
//              Planes        pairs of a request and a response channel, 1 to 8
//              Post          cycles of the switch behind switch allocation
//              ScanSlots     elements of scans between total and response (`scan_slots`); 0: no prefix scans
// Latency:     an operand put in cycle t is visible in t + Post + 1; operands that are complete in cycle t give a result in
//              t + ceil(log2 Radix) x UnitStages; one reduction a cycle
// Order:       among several ids the one at the lowest port; planes take turns. A slot that is emptied in a cycle may be
//              filled in the same cycle. A result reserves its place when its operands are taken. Results of scans leave
//              when the tree has none.
// Limitations: scans are on plane 0, see ws_scan_unit; one operand a flit; a register of an id does not change while the id is at work; operands of
//              different elements at one id (a broken stream) are not detected
module ws_ceng
  import ws_pkg::*;
#(
  parameter int unsigned Radix = 10,
  parameter int unsigned UnitStages = 3,
  parameter units_t      Units = '1,
  parameter int unsigned OperandSlots = 2,
  parameter int unsigned ResultSlots = 15,
  parameter int unsigned Ids = 4,
  parameter int unsigned Planes = 1,
  parameter int unsigned Post = 0,
  parameter int unsigned ScanSlots = 0,
  localparam int unsigned SlotBits = $clog2(OperandSlots + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // Configuration by id: ports whose requests are joined, what is done, whether this switch is the root.
  input  logic [Radix-1:0]  inputs_i [Ids],
  input  select_t           select_i [Ids],
  input  logic              root_i [Ids],
  // Of a scan: its input ports in rank order, four bits each, the first one lowest, as port + 1.
  input  logic [63:0]       order_i [Ids],
  // Requests that switch allocation grants to the engine, one a port.
  input  logic [Radix-1:0]  put_i,
  input  flit_t             put_flit_i [Radix],
  // Whether a port's slot of a plane can take one in this cycle.
  output logic [Radix-1:0]  room_o [Planes],
  // Responses of scans from above, the oldest first, and how many may come in this cycle.
  input  logic [SlotBits-1:0] above_i,
  input  flit_t             above_flit_i [OperandSlots],
  output logic [SlotBits-1:0] above_room_o,
  // Results that stand behind the engine, request and response channel of a plane together.
  input  logic [15:0]       queued_i [Planes],
  output logic              result_valid_o,
  output flit_t             result_o
);

  localparam int unsigned PlaneBits = Planes > 1 ? $clog2(Planes) : 1;
  localparam int unsigned PortBits = $clog2(Radix);
  localparam int unsigned IdBits = Ids > 1 ? $clog2(Ids) : 1;

  // Operand slots of each plane and port.
  logic [SlotBits-1:0] slot_len [Planes][Radix];
  logic                slot_present [Planes][Radix];
  logic                slot_visible [Planes][Radix];
  flit_t               slot_head [Planes][Radix];
  logic [Radix-1:0]    take [Planes];

  for (genvar p = 0; p < Planes; p++) begin : gen_plane
    for (genvar n = 0; n < Radix; n++) begin : gen_slot
      logic put;

      assign put = put_i[n] && 32'(put_flit_i[n].tag.vc) / 2 == p;

`ifdef WS_FAULT_SLOT
      // A slot overwritten: a second operand takes the place of the first.
      logic overwrite;

      assign overwrite = put && slot_len[p][n] == SlotBits'(1) && !take[p][n];
`endif

      ws_delay_fifo #(
        .Width($bits(flit_t)),
        .Depth(OperandSlots),
        .Wait(Post)
      ) u_slot (
        .clk_i,
        .rst_ni,
        .push_i(put),
        .data_i(put_flit_i[n]),
`ifdef WS_FAULT_SLOT
        .pop_i(take[p][n] || overwrite),
`else
        .pop_i(take[p][n]),
`endif
        .len_o(slot_len[p][n]),
        .present_o(slot_present[p][n]),
        .ready_o(slot_visible[p][n]),
        .head_o(slot_head[p][n])
      );

      assign room_o[p][n] = 32'(slot_len[p][n]) - 32'(take[p][n]) < OperandSlots;
    end
  end

  // The id whose operands are all there on each plane: the lowest port decides among several.
  logic                complete [Planes];
  logic [PortBits-1:0] leader [Planes];

  always_comb begin
    logic [Radix-1:0] there;
    for (int unsigned p = 0; p < Planes; p++) begin
      complete[p] = 1'b0;
      leader[p] = '0;
      for (int unsigned n = 0; n < Radix; n++) begin
        for (int unsigned k = 0; k < Radix; k++) begin
          there[k] = slot_visible[p][k] && slot_head[p][k].tag.id == slot_head[p][n].tag.id;
        end
        if (!complete[p] && slot_visible[p][n] && 32'(slot_head[p][n].tag.id) < Ids &&
            (inputs_i[slot_head[p][n].tag.id[IdBits-1:0]] & ~there) == '0) begin
          complete[p] = 1'b1;
          leader[p] = PortBits'(n);
        end
      end
    end
  end

  // The plane whose turn it is, and which may start a reduction.
  logic [3:0]           turn_q, turn_d;
  logic [7:0]           flying_q [Planes];
  logic [7:0]           flying_d [Planes];
  logic                 start, start_scan;
  logic [PlaneBits-1:0] plane;
  // Elements of scans that can be taken, at the root or elsewhere, and totals that are on their way up.
  logic                 scan_takes, scan_takes_root;
  logic [15:0]          going_up;

  always_comb begin
    logic [PlaneBits-1:0] candidate;
    logic [IdBits-1:0]    of;
    logic                 scans;
    logic [15:0]          reserved;
    start = 1'b0;
    start_scan = 1'b0;
    plane = '0;
    for (int unsigned k = 0; k < Planes; k++) begin
      candidate = PlaneBits'((32'(turn_q) + k) % Planes);
      of = slot_head[candidate][leader[candidate]].tag.id[IdBits-1:0];
      scans = ScanSlots > 0 && order_i[of] != '0;
      reserved = 16'(flying_q[candidate]) + queued_i[candidate] + (32'(candidate) == 0 ? going_up : '0);
      // A place for the result, in the tree and behind it.
      if (!start && !start_scan && complete[candidate] && 32'(reserved) < ResultSlots &&
          (!scans || (root_i[of] ? scan_takes_root : scan_takes))) begin
        start = !scans;
        start_scan = scans;
        plane = candidate;
      end
    end
  end

  // The operands of the id are taken together.
  flit_t             first;
  logic [IdBits-1:0] id;
  logic [Radix-1:0]  needed, listed;
  flags_t            flags;
  tag_t              tag;
  logic [63:0]       word [Radix];

  assign first = slot_head[plane][leader[plane]];
  assign id = first.tag.id[IdBits-1:0];
  assign needed = inputs_i[id];

  always_comb begin
    flags = '0;
    for (int unsigned n = 0; n < Radix; n++) begin
      word[n] = slot_head[plane][n].word;
      if (needed[n]) flags |= slot_head[plane][n].tag.flags[6:0];
    end
    for (int unsigned p = 0; p < Planes; p++) begin
      take[p] = '0;
      if (start && p == 32'(plane)) take[p] = needed;
      if (start_scan && p == 32'(plane)) take[p] = listed;
    end
    tag = '0;
    tag.head = 1'b1;
    tag.tail = 1'b1;
    tag.vc = 5'(plane) << 1;
    tag.id = first.tag.id;
    tag.seq = first.tag.seq;
  end

  logic        left_valid;
  logic [63:0] left_value;
  flags_t      left_flags;
  tag_t        left_tag;

  ws_reduce_tree #(
    .Radix(Radix),
    .UnitStages(UnitStages),
    .Units(Units),
    .TagWidth($bits(tag_t))
  ) u_tree (
    .clk_i,
    .rst_ni,
    .valid_i(start),
    .op_i(select_i[id].op),
    .dtype_i(select_i[id].dtype),
    .mode_i(select_i[id].mode),
    .flags_i(flags),
    .tag_i(tag),
    .present_i(needed),
    .word_i(word),
    .valid_o(left_valid),
    .value_o(left_value),
    .flags_o(left_flags),
    .tag_o(left_tag)
  );

  // A scan's operands in rank order go to the scan unit.
  localparam int unsigned Inputs = Radix > 15 ? 15 : Radix;

  logic       scan_leaves, scan_busy, scan_stays_busy;
  flit_t      scan_result;
  logic [3:0] scan_count;
  logic [3:0] scan_port [Inputs];
  flit_t      scan_operand [Inputs];

  if (ScanSlots > 0) begin : gen_scan
    logic [15:0] queued;

    always_comb begin
      logic [PortBits-1:0] port;
      logic                ends;

      listed = '0;
      scan_count = '0;
      ends = 1'b0;
      port = '0;
      for (int unsigned k = 0; k < Inputs; k++) begin
        scan_port[k] = '0;
        scan_operand[k] = '0;
      end
      for (int unsigned k = 0; k < 16; k++) begin
        if (order_i[id][4*k +: 4] == '0) ends = 1'b1;
        port = PortBits'(order_i[id][4*k +: 4] - 4'd1);
        if (!ends && needed[port] && 32'(scan_count) < Inputs) begin
          listed[port] = 1'b1;
          for (int unsigned n = 0; n < Inputs; n++) begin
            if (32'(scan_count) == n) begin
              scan_port[n] = 4'(port);
              scan_operand[n] = slot_head[0][port];
            end
          end
          scan_count = scan_count + 4'd1;
        end
      end
      queued = '0;
      for (int unsigned p = 0; p < Planes; p++) queued = queued + queued_i[p];
    end

    ws_scan_unit #(
      .Inputs(Inputs),
      .UnitStages(UnitStages),
      .Units(Units),
      .ScanSlots(ScanSlots),
      .ResultSlots(ResultSlots),
      .AboveSlots(OperandSlots),
      .Ids(Ids),
      .Post(Post)
    ) u_scan (
      .clk_i,
      .rst_ni,
      .select_i,
      .take_i(start_scan),
      .root_i(root_i[id]),
      .count_i(scan_count),
      .port_i(scan_port),
      .operand_i(scan_operand),
      .takes_o(scan_takes),
      .takes_root_o(scan_takes_root),
      .going_up_o(going_up),
      .above_i,
      .above_flit_i,
      .above_room_o,
      .may_leave_i(!left_valid && 32'(queued) <= 2 * ResultSlots),
      .leaves_o(scan_leaves),
      .result_o(scan_result),
      .busy_o(scan_busy),
      .stays_busy_o(scan_stays_busy)
    );
  end else begin : gen_no_scan
    logic unused_above;

    assign listed = '0;
    assign scan_takes = 1'b0;
    assign scan_takes_root = 1'b0;
    assign going_up = '0;
    assign above_room_o = '0;
    assign scan_leaves = 1'b0;
    assign scan_result = '0;
    assign scan_count = '0;
    assign scan_busy = 1'b0;
    assign scan_stays_busy = 1'b0;

    for (genvar k = 0; k < Inputs; k++) begin : gen_operand
      assign scan_port[k] = '0;
      assign scan_operand[k] = '0;
    end

    always_comb begin
      unused_above = ^above_i;
      for (int unsigned k = 0; k < OperandSlots; k++) unused_above ^= ^above_flit_i[k];
    end
  end

  // A request on its way up, a response at the root.
  assign result_valid_o = left_valid || scan_leaves;

  always_comb begin
    result_o.tag = left_tag;
    result_o.tag.flags = 8'(left_flags);
    result_o.tag.vc = left_tag.vc | 5'(root_i[left_tag.id[IdBits-1:0]]);
    result_o.word = left_value;
    if (scan_leaves) result_o = scan_result;
  end

  // Reductions in the tree, by plane, and together; operands in the slots.
  logic [7:0]  in_flight_q;
  logic        empty;

  always_comb begin
    empty = !start && in_flight_q == 8'(left_valid) && !scan_stays_busy;
    for (int unsigned p = 0; p < Planes; p++) begin
      flying_d[p] = flying_q[p] + 8'(start && 32'(plane) == p) - 8'(left_valid && 32'(left_tag.vc) / 2 == p);
      for (int unsigned n = 0; n < Radix; n++) begin
        if (32'(slot_len[p][n]) != 32'(take[p][n])) empty = 1'b0;
      end
    end
    // An engine that is empty begins with the first plane.
    turn_d = turn_q;
    if (start || start_scan) turn_d = 32'(plane) + 1 < Planes ? 4'(plane) + 4'd1 : '0;
    if (empty) turn_d = '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      turn_q <= '0;
      in_flight_q <= '0;
      for (int unsigned p = 0; p < Planes; p++) flying_q[p] <= '0;
    end else begin
      turn_q <= turn_d;
      in_flight_q <= in_flight_q + 8'(start) - 8'(left_valid);
      flying_q <= flying_d;
    end
  end

  // What a wave shows of the slots; fields that nothing here looks at.
  logic unused;

  always_comb begin
    unused = ^{first, left_tag, scan_busy, scan_count};
    for (int unsigned k = 0; k < Inputs; k++) unused ^= ^{scan_port[k], scan_operand[k]};
    for (int unsigned k = 0; k < Ids; k++) unused ^= ^order_i[k];
    for (int unsigned p = 0; p < Planes; p++) begin
      for (int unsigned n = 0; n < Radix; n++) unused ^= ^{slot_present[p][n], slot_head[p][n]};
    end
    for (int unsigned n = 0; n < Radix; n++) unused ^= ^put_flit_i[n];
  end

endmodule
