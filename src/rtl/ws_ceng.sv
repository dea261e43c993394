// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The collective engine (CENG) of a switch: operand slots, a reduction tree, results for the crossbar.
//
//             +--------------------------- CENG ---------------------------+
//   from I0 ->| slot 0 -+                                                  |
//   from I1 ->| slot 1 -+-> all ports with the engine's bit -> tree of     |
//      ...    |   ...   |   in the register of this id         two-input   +-> crossbar input: request,
//   from I9 ->| slot 9 -+   have an operand                    units       |   or at the root response
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
// Latency:     an operand put in cycle t is visible in t + Post + 1; operands that are complete in cycle t give a result in
//              t + ceil(log2 Radix) x UnitStages; one reduction a cycle
// Order:       among several ids the one at the lowest port; planes take turns. A slot that is emptied in a cycle may be
//              filled in the same cycle. A result reserves its place when its operands are taken.
// Limitations: no prefix scans; one operand a flit; a register of an id does not change while the id is at work; operands of
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
  localparam int unsigned SlotBits = $clog2(OperandSlots + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // Configuration by id: ports whose requests are joined, what is done, whether this switch is the root.
  input  logic [Radix-1:0]  inputs_i [Ids],
  input  select_t           select_i [Ids],
  input  logic              root_i [Ids],
  // Requests that switch allocation grants to the engine, one a port.
  input  logic [Radix-1:0]  put_i,
  input  flit_t             put_flit_i [Radix],
  // Whether a port's slot of a plane can take one in this cycle.
  output logic [Radix-1:0]  room_o [Planes],
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
  logic                 start;
  logic [PlaneBits-1:0] plane;

  always_comb begin
    logic [PlaneBits-1:0] candidate;
    start = 1'b0;
    plane = '0;
    for (int unsigned k = 0; k < Planes; k++) begin
      candidate = PlaneBits'((32'(turn_q) + k) % Planes);
      // A place for the result, in the tree and behind it.
      if (!start && complete[candidate] &&
          32'(flying_q[candidate]) + 32'(queued_i[candidate]) < ResultSlots) begin
        start = 1'b1;
        plane = PlaneBits'(candidate);
      end
    end
  end

  // The operands of the id are taken together.
  flit_t             first;
  logic [IdBits-1:0] id;
  logic [Radix-1:0]  needed;
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
      take[p] = start && p == 32'(plane) ? needed : '0;
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

  // A request on its way up, a response at the root.
  assign result_valid_o = left_valid;

  always_comb begin
    result_o.tag = left_tag;
    result_o.tag.flags = 8'(left_flags);
    result_o.tag.vc = left_tag.vc | 5'(root_i[left_tag.id[IdBits-1:0]]);
    result_o.word = left_value;
  end

  // Reductions in the tree, by plane, and together; operands in the slots.
  logic [7:0]  in_flight_q;
  logic        empty;

  always_comb begin
    empty = !start && in_flight_q == 8'(left_valid);
    for (int unsigned p = 0; p < Planes; p++) begin
      flying_d[p] = flying_q[p] + 8'(start && 32'(plane) == p) - 8'(left_valid && 32'(left_tag.vc) / 2 == p);
      for (int unsigned n = 0; n < Radix; n++) begin
        if (32'(slot_len[p][n]) != 32'(take[p][n])) empty = 1'b0;
      end
    end
    // An engine that is empty begins with the first plane.
    turn_d = turn_q;
    if (start) turn_d = 32'(plane) + 1 < Planes ? 4'(plane) + 4'd1 : '0;
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
    unused = ^{first, left_tag};
    for (int unsigned p = 0; p < Planes; p++) begin
      for (int unsigned n = 0; n < Radix; n++) unused ^= ^{slot_present[p][n], slot_head[p][n]};
    end
    for (int unsigned n = 0; n < Radix; n++) unused ^= ^put_flit_i[n];
  end

endmodule
