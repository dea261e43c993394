// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The collective part of a switch: configuration registers, request and response channels, credits, the collective engine.
//
//                   +------------------- switch -----------------------------------------+
//   link -> in 0 -->| queue per channel -+- register of (id, port) -> set of outputs ----+--> out 0 -> link
//   link -> in 1 -->| queue per channel -+     all at once, or not at all                +--> out 1 -> link
//      ...          |        ...         |                                               |      ...
//                   |                    +-> operand slots -> CENG -> queue -> (input 10)+
//                   +---------- <- credits, one a flit and channel ----------------------+
//
// Twin:        src/fabric/forward.rs and src/fabric/switch.rs with src/piuma/registers.rs as its tables; the engine is ws_ceng.
// Parameters:  Ports         external ports; the engine's port has the number behind the last
//              Ids           collective ids (`collective_ids`)
//              Planes        pairs of a request and a response channel; channel 2p is plane p's request, 2p + 1 its response
//              Depth         flits of an input queue (`collective_buffer_flits`), the largest of all ports
//              Front, Post   cycles of the pipeline before and behind switch allocation (0, 1, ...)
//              Slowest       cycles that any of its links takes for a flit, at most (`cycles_per_flit`)
//              UnitStages, Units, OperandSlots, ResultSlots, ScanSlots   of the engine, see ws_ceng
// Latency:     a flit that comes in cycle t is in its queue in t + 1, can be granted from t + 1 + Front on, and is on the link
//              (out_valid_o) Post + 1 cycles after its grant. A credit leaves in the cycle after the grant.
// Priority:    the highest channel first, so responses before requests; inputs of a channel in turn (round-robin)
// Registers:   one store or load a cycle; a store acts from the next cycle on. Addresses and codes are those of
//              src/piuma/registers.rs, without the number of the switch: id in bits 23:12, offset in bits 11:0
// Scans:       a response of a scan goes from the engine to the port that it names, and to the engine if it comes from where the
//              scan's totals go; ScanSlots = 0: no prefix scans, their register is refused
// Limitations: flits of one packet each; round-robin arbiters; point-to-point channels, which come after all of these, are ws_unicast,
//              and have links that take a flit a cycle
module ws_coll_switch
  import ws_pkg::*;
#(
  parameter int unsigned Ports = 10,
  parameter int unsigned Ids = 4,
  parameter int unsigned Planes = 1,
  parameter int unsigned Depth = 8,
  parameter int unsigned Front = 0,
  parameter int unsigned Post = 0,
  parameter int unsigned Slowest = 1,
  parameter int unsigned UnitStages = 3,
  parameter units_t      Units = '1,
  parameter int unsigned OperandSlots = 2,
  parameter int unsigned ResultSlots = 15,
  parameter int unsigned ScanSlots = 0,
  localparam int unsigned Channels = 2 * Planes
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  // Flits in the far buffer of each link: the credits at reset. Constant.
  input  logic [15:0]         credits_at_reset_i [Ports],
  // Cycles that each link takes for a flit. Constant; without meaning where Slowest is 1.
  input  logic [7:0]          flit_cycles_i [Ports],
  // Loads and stores of configuration registers.
  input  logic                cfg_store_i,
  input  logic [23:0]         cfg_address_i,
  input  logic [63:0]         cfg_data_i,
  output logic [63:0]         cfg_data_o,
  output logic                cfg_error_o,
  // Links.
  input  logic [Ports-1:0]    in_valid_i,
  input  flit_t               in_flit_i [Ports],
  output logic [Channels-1:0] credit_o [Ports],
  output logic [Ports-1:0]    out_valid_o,
  output flit_t               out_flit_o [Ports],
  input  logic [Channels-1:0] credit_i [Ports],
  // Ports that are taken in this cycle: point-to-point channels have the others.
  output logic [Ports-1:0]    taken_in_o,
  output logic [Ports-1:0]    taken_out_o
);

  // Inputs and outputs of the crossbar: the engine is the last of both.
  localparam int unsigned Engine = Ports;
  localparam int unsigned All = Ports + 1;
  localparam int unsigned IdBits = Ids > 1 ? $clog2(Ids) : 1;
  localparam int unsigned PortBits = $clog2(All + 1);
  // Results behind the engine: those of scans may be twice as many and one.
  localparam int unsigned Results = ScanSlots > 0 ? 2 * ResultSlots + 1 : ResultSlots;
  localparam int unsigned LenBits = $clog2((Depth > Results ? Depth : Results) + 1);
  localparam int unsigned AboveBits = $clog2(OperandSlots + 1);

  /////////////////////////////
  // Configuration registers //
  /////////////////////////////

  logic [All-1:0]    vector_q [2][Ids][All];
  select_t           select_q [Ids];
  logic [63:0]       order [Ids];

  logic [11:0]       cfg_id, cfg_offset;
  logic [6:0]        cfg_port;
  logic [IdBits-1:0] cfg_at;
  logic              cfg_vector, cfg_select, cfg_order, cfg_refused, order_refused;

  assign cfg_id = cfg_address_i[23:12];
  assign cfg_offset = cfg_address_i[11:0];
  assign cfg_at = cfg_id[IdBits-1:0];
  assign cfg_port = cfg_offset[9:3];
  assign cfg_vector = 32'(cfg_id) < Ids && !cfg_offset[11] && cfg_offset[2:0] == '0 && 32'(cfg_port) < All;
  assign cfg_select = 32'(cfg_id) < Ids && cfg_offset == 12'h800;
  assign cfg_order = ScanSlots > 0 && 32'(cfg_id) < Ids && cfg_offset == 12'h808;
  // A port that the switch does not have; an operation or a type that is none.
  assign cfg_refused = cfg_vector ? cfg_data_i[63:All] != '0 :
                       cfg_order ? order_refused :
                       cfg_data_i[63:19] != '0 || cfg_data_i[7:0] > 8'(OpBarrier) || cfg_data_i[15:8] > 8'(DtE5m2);
  assign cfg_error_o = !(cfg_vector || cfg_select || cfg_order) || (cfg_store_i && cfg_refused);

  always_comb begin
    logic ends;

    order_refused = 1'b0;
    ends = 1'b0;
    for (int unsigned k = 0; k < 16; k++) begin
      if (cfg_data_i[4*k +: 4] == '0) ends = 1'b1;
      if (!ends && 32'(cfg_data_i[4*k +: 4]) > Ports) order_refused = 1'b1;
    end
  end

  always_comb begin
    cfg_data_o = '0;
    if (cfg_vector) begin
      cfg_data_o[All-1:0] = vector_q[cfg_offset[10]][cfg_at][cfg_port[PortBits-1:0]];
    end else if (cfg_select) begin
      cfg_data_o[7:0] = 8'(select_q[cfg_at].op);
      cfg_data_o[15:8] = 8'(select_q[cfg_at].dtype);
      cfg_data_o[17:16] = select_q[cfg_at].mode.round;
      cfg_data_o[18] = select_q[cfg_at].mode.flush_to_zero;
    end else if (cfg_order) begin
      cfg_data_o = order[cfg_at];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned id = 0; id < Ids; id++) begin
        select_q[id] <= '{op: OpSum, dtype: DtF64, mode: '0};
        for (int unsigned port = 0; port < All; port++) begin
          vector_q[0][id][port] <= '0;
          vector_q[1][id][port] <= '0;
        end
      end
    end else if (cfg_store_i && !cfg_error_o) begin
      if (cfg_vector) begin
        vector_q[cfg_offset[10]][cfg_at][cfg_port[PortBits-1:0]] <= cfg_data_i[All-1:0];
      end else if (cfg_select) begin
        select_q[cfg_at].op <= op_e'(cfg_data_i[3:0]);
        select_q[cfg_at].dtype <= dtype_e'(cfg_data_i[11:8]);
        select_q[cfg_at].mode.round <= round_e'(cfg_data_i[17:16]);
        select_q[cfg_at].mode.flush_to_zero <= cfg_data_i[18];
      end
    end
  end

  if (ScanSlots > 0) begin : gen_order
    logic [63:0] order_q [Ids];

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        for (int unsigned id = 0; id < Ids; id++) order_q[id] <= '0;
      end else if (cfg_store_i && !cfg_error_o && cfg_order) begin
        order_q[cfg_at] <= cfg_data_i;
      end
    end

    assign order = order_q;
  end else begin : gen_no_order
    for (genvar id = 0; id < Ids; id++) begin : gen_id
      assign order[id] = '0;
    end
  end

  // What the engine reads of them.
  logic [Ports-1:0] engine_inputs [Ids];
  logic             engine_root [Ids];

  for (genvar id = 0; id < Ids; id++) begin : gen_id
    for (genvar port = 0; port < Ports; port++) begin : gen_port
      assign engine_inputs[id][port] = vector_q[0][id][port][Engine];
    end
    assign engine_root[id] = vector_q[0][id][Engine] == '0 && vector_q[1][id][Engine] != '0;
  end

  //////////////////
  // Input queues //
  //////////////////

  logic               result_valid;
  flit_t              result;
  logic [LenBits-1:0] len [All][Channels];
  logic               ready [All][Channels];
  flit_t              head [All][Channels];
  logic               pop [All][Channels];

  for (genvar port = 0; port < Ports; port++) begin : gen_input
    for (genvar vc = 0; vc < Channels; vc++) begin : gen_channel
      logic [$clog2(Depth+1)-1:0] length;
      logic                       unused_present;

      ws_delay_fifo #(
        .Width($bits(flit_t)),
        .Depth(Depth),
        .Wait(Front)
      ) u_queue (
        .clk_i,
        .rst_ni,
        .push_i(in_valid_i[port] && 32'(in_flit_i[port].tag.vc) == vc),
        .data_i(in_flit_i[port]),
        .pop_i(pop[port][vc]),
        .len_o(length),
        .present_o(unused_present),
        .ready_o(ready[port][vc]),
        .head_o(head[port][vc])
      );

      assign len[port][vc] = LenBits'(length);
    end
  end

  // What the engine makes: it may be granted in the cycle in which it comes if there is no stage before switch allocation.
  for (genvar vc = 0; vc < Channels; vc++) begin : gen_result
    localparam int unsigned ResultWait = Front > 0 ? Front - 1 : 0;

    logic [$clog2(Results+1)-1:0]     length;
    logic                             there, waits, comes;
    flit_t                            oldest;

    assign comes = result_valid && 32'(result.tag.vc) == vc;

    ws_delay_fifo #(
      .Width($bits(flit_t)),
      .Depth(Results),
      .Wait(ResultWait)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .push_i(comes && !(pop[Engine][vc] && !there)),
      .data_i(result),
      .pop_i(pop[Engine][vc] && there),
      .len_o(length),
      .present_o(there),
      .ready_o(waits),
      .head_o(oldest)
    );

    assign len[Engine][vc] = LenBits'(length);
    assign ready[Engine][vc] = there ? waits : comes && Front == 0;
    assign head[Engine][vc] = there ? oldest : result;
  end

  ///////////////////////
  // Switch allocation //
  ///////////////////////

  logic [PortBits-1:0] cursor_q [Channels];
  logic [PortBits-1:0] cursor_d [Channels];
  logic [15:0]         spent [Ports][Channels];
  logic [Ports-1:0]    room [Planes];
  logic [Ports-1:0]    put;
  flit_t               put_flit [Ports];
  logic [Ports-1:0]    sent;
  flit_t               sent_flit [Ports];
  // Links that still carry the flit before.
  logic [Ports-1:0]    busy;
  // Responses of scans for the engine.
  logic [AboveBits-1:0] above, above_room;
  flit_t               above_flit [OperandSlots];

  always_comb begin
    logic [All-1:0]      taken_in, taken_out, targets;
    logic [PortBits-1:0] port;
    logic                moves, first, scans;
    logic [11:0]         id;
    logic [3:0]          input_port;

    taken_in = '0;
    taken_out = All'(busy);
    put = '0;
    sent = '0;
    port = '0;
    targets = '0;
    moves = 1'b0;
    first = 1'b0;
    scans = 1'b0;
    id = '0;
    input_port = '0;
    above = '0;
    for (int unsigned k = 0; k < OperandSlots; k++) above_flit[k] = '0;
    for (int unsigned n = 0; n < Ports; n++) begin
      put_flit[n] = '0;
      sent_flit[n] = '0;
    end
    for (int unsigned n = 0; n < All; n++) begin
      for (int unsigned vc = 0; vc < Channels; vc++) pop[n][vc] = 1'b0;
    end
    // The highest channel first; of its inputs the one at the cursor first.
    for (int unsigned turn = 0; turn < Channels; turn++) begin
      cursor_d[Channels-1-turn] = cursor_q[Channels-1-turn];
      first = 1'b1;
      for (int unsigned k = 0; k < All; k++) begin
        port = PortBits'((32'(cursor_q[Channels-1-turn]) + k) % All);
        targets = '0;
        id = head[port][Channels-1-turn].tag.id;
        input_port = head[port][Channels-1-turn].tag.seq[33:30];
        scans = 1'b0;
        if (32'(id) < Ids) begin
          targets = vector_q[(Channels-1-turn) % 2][id[IdBits-1:0]][port];
          scans = (Channels-1-turn) % 2 == 1 && order[id[IdBits-1:0]] != '0;
          if (scans && 32'(port) == Engine) begin
            targets = '0;
            for (int unsigned n = 0; n < Ports; n++) targets[n] = 32'(input_port) == n;
          end else if (scans && vector_q[0][id[IdBits-1:0]][Engine][port]) begin
            targets = '0;
            targets[Engine] = 1'b1;
          end
        end
        // All outputs can take it, or none does.
        moves = ready[port][Channels-1-turn] && !taken_in[port] && targets != '0 && (targets & taken_out) == '0;
        for (int unsigned n = 0; n < Ports; n++) begin
          if (targets[n] && spent[n][Channels-1-turn] >= credits_at_reset_i[n]) moves = 1'b0;
        end
        if (targets[Engine]) begin
          if (32'(port) == Engine) moves = 1'b0;
          else if ((Channels-1-turn) % 2 == 1) begin
            if (!scans || above == above_room) moves = 1'b0;
          end else if (!room[(Channels-1-turn) / 2][port]) moves = 1'b0;
        end
        if (moves) begin
          pop[port][Channels-1-turn] = 1'b1;
          taken_in[port] = 1'b1;
          for (int unsigned n = 0; n < Ports; n++) begin
            if (targets[n]) begin
              taken_out[n] = 1'b1;
              sent[n] = 1'b1;
              sent_flit[n] = head[port][Channels-1-turn];
            end
          end
          if (targets[Engine] && (Channels-1-turn) % 2 == 1) begin
            for (int unsigned n = 0; n < OperandSlots; n++) begin
              if (32'(above) == n) above_flit[n] = head[port][Channels-1-turn];
            end
            above = above + AboveBits'(1);
          end else if (targets[Engine]) begin
            put[port] = 1'b1;
            put_flit[port] = head[port][Channels-1-turn];
          end
          // The cursor moves behind the first winner.
          if (first) cursor_d[Channels-1-turn] = port + PortBits'(1);
          first = 1'b0;
        end
      end
    end
    taken_in_o = taken_in[Ports-1:0];
    taken_out_o = taken_out[Ports-1:0];
  end

  ////////////////////////
  // Credits, and links //
  ////////////////////////

  if (Slowest > 1) begin : gen_busy
    logic [7:0] left_q [Ports];

    for (genvar n = 0; n < Ports; n++) begin : gen_port
      assign busy[n] = left_q[n] != '0;
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        for (int unsigned n = 0; n < Ports; n++) left_q[n] <= '0;
      end else begin
        for (int unsigned n = 0; n < Ports; n++) begin
          if (sent[n]) left_q[n] <= flit_cycles_i[n] - 8'd1;
          else if (busy[n]) left_q[n] <= left_q[n] - 8'd1;
        end
      end
    end
  end else begin : gen_free
    logic unused_cycles;

    assign busy = '0;

    always_comb begin
      unused_cycles = 1'b0;
      for (int unsigned n = 0; n < Ports; n++) unused_cycles ^= ^flit_cycles_i[n];
    end
  end

  for (genvar n = 0; n < Ports; n++) begin : gen_output
    logic [Channels-1:0] pops;

    for (genvar vc = 0; vc < Channels; vc++) begin : gen_pops
`ifdef WS_FAULT_CREDIT
      // A credit returned twice.
      assign pops[vc] = pop[n][vc] || (credit_o[n][vc] && len[n][vc] == '0);
`else
      assign pops[vc] = pop[n][vc];
`endif
    end

    ws_link_port #(
      .Channels(Channels),
      .Post(Post)
    ) u_port (
      .clk_i,
      .rst_ni,
      .pop_i(pops),
      .sent_i(sent[n]),
      .sent_flit_i(sent_flit[n]),
      .spent_o(spent[n]),
      .credit_o(credit_o[n]),
      .credit_i(credit_i[n]),
      .out_valid_o(out_valid_o[n]),
      .out_flit_o(out_flit_o[n])
    );
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned vc = 0; vc < Channels; vc++) cursor_q[vc] <= '0;
    end else begin
      cursor_q <= cursor_d;
    end
  end

  ////////////////
  // The engine //
  ////////////////

  logic [15:0] queued [Planes];

  for (genvar p = 0; p < Planes; p++) begin : gen_queued
    assign queued[p] = 16'(len[Engine][2*p]) + 16'(len[Engine][2*p + 1]);
  end

  ws_ceng #(
    .Radix(Ports),
    .UnitStages(UnitStages),
    .Units(Units),
    .OperandSlots(OperandSlots),
    .ResultSlots(ResultSlots),
    .Ids(Ids),
    .Planes(Planes),
    .Post(Post),
    .ScanSlots(ScanSlots)
  ) u_ceng (
    .clk_i,
    .rst_ni,
    .inputs_i(engine_inputs),
    .select_i(select_q),
    .root_i(engine_root),
    .order_i(order),
    .put_i(put),
    .put_flit_i(put_flit),
    .room_o(room),
    .above_i(above),
    .above_flit_i(above_flit),
    .above_room_o(above_room),
    .queued_i(queued),
    .result_valid_o(result_valid),
    .result_o(result)
  );

  logic unused;

  always_comb begin
    unused = ^cfg_address_i;
    for (int unsigned n = 0; n < Ports; n++) unused ^= ^sent_flit[n];
  end

endmodule
