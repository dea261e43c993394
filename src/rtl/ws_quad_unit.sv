// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The quad unit: one two-input unit over the four 64-bit words of a frame, or a lone operand that passes.
//
//                       +--> four lanes (adder, comparators, integer unit, gates) --+
//   a: 4 words, code -->|                                                           |--> 4 words
//      m, oflow_id      +--> locator: two comparators of values and indices --------+--> code, m, oflow_id
//   b: 4 words, code -->|                                                           |
//      m, oflow_id      +--> reproducible sum --------------------------------------+
//
//   segment 0      1            2            3             4         5
//   add     compare | align      | add       | normalise   | round   | pack
//   others  keys ...| order ...  | done      | (hold)      | (hold)  | (hold)
//   barrier done    | (hold)     | (hold)    | (hold)      | (hold)  | (hold)
//
// Twin:        src/arith/quad.rs; its registers are those of `UnitStages<QuadUnit>` of src/arith/stages/mod.rs.
// Parameters:  Stages    1 to 6 clock stages
//              TagWidth  bits that come out with the result
// Latency:     Stages cycles, one pair a cycle
// Registers:   every one but valid loads with a valid input of its datapath only, else holds; all are zero after reset
// Limitations: the operations of the armed family: sums of i64 and f64, min and max of both, gates, barrier, the four-word ones
module ws_quad_unit
  import ws_pkg::*;
#(
  parameter int unsigned Stages = 3,
  parameter int unsigned TagWidth = 64
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                valid_i,
  input  logic                joined_i,  // both operands; else a passes
  input  op_e                 op_i,
  input  dtype_e              dtype_i,
  input  mode_t               mode_i,
  input  logic [TagWidth-1:0] tag_i,
  input  quad_t               a_i,
  input  quad_t               b_i,
  output logic                valid_o,
  output logic [TagWidth-1:0] tag_o,
  output quad_t               quad_o,
  output logic [Stages-1:0]   busy_o     // which stages have an operation
);

  localparam logic [Segments-1:0] Cut = cut(Stages);

  // Registers behind each clock stage.
  logic                valid_q [Stages];
  logic                joined_q [Stages];
  op_e                 op_q [Stages];
  dtype_e              dtype_q [Stages];
  mode_t               mode_q [Stages];
  logic [TagWidth-1:0] tag_q [Stages];
  quad_t               passed_q [Stages];

  // What enters each clock stage.
  logic                valid [Stages];
  logic                joined [Stages];
  op_e                 op [Stages];
  dtype_e              dtype [Stages];
  mode_t               mode [Stages];
  logic [TagWidth-1:0] tag [Stages];
  quad_t               passed [Stages];
  quad_ctrl_t          stage_ctrl [Stages];

  for (genvar s = 0; s < Stages; s++) begin : gen_stage
    if (s == 0) begin : gen_door
      assign valid[s] = valid_i;
      assign joined[s] = joined_i;
      assign op[s] = op_i;
      assign dtype[s] = dtype_i;
      assign mode[s] = mode_i;
      assign tag[s] = tag_i;
      assign passed[s] = a_i;
    end else begin : gen_next
      assign valid[s] = valid_q[s-1];
      assign joined[s] = joined_q[s-1];
      assign op[s] = op_q[s-1];
      assign dtype[s] = dtype_q[s-1];
      assign mode[s] = mode_q[s-1];
      assign tag[s] = tag_q[s-1];
      assign passed[s] = passed_q[s-1];
    end

    assign stage_ctrl[s] = '{valid: valid[s] && joined[s], op: op[s], dtype: dtype[s], mode: mode[s]};
    assign busy_o[s] = valid_q[s];

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        valid_q[s] <= 1'b0;
        joined_q[s] <= 1'b0;
        op_q[s] <= OpSum;
        dtype_q[s] <= DtI32;
        mode_q[s] <= '0;
        tag_q[s] <= '0;
        passed_q[s] <= '0;
      end else begin
        valid_q[s] <= valid[s];
        if (valid[s]) begin
          joined_q[s] <= joined[s];
          op_q[s] <= op[s];
          dtype_q[s] <= dtype[s];
          mode_q[s] <= mode[s];
          tag_q[s] <= tag[s];
          if (!joined[s]) passed_q[s] <= passed[s];
        end
      end
    end
  end

  // What each segment works on, and which datapath that takes.
  quad_ctrl_t ctrl [Segments];
  quad_path_e path [Segments];

  for (genvar k = 0; k < Segments; k++) begin : gen_segment
    assign ctrl[k] = stage_ctrl[stage_of(Stages, k)];
    assign path[k] = quad_path_of(ctrl[k].op, ctrl[k].dtype);
  end

  // Registers of the four lanes, each with the larger code of the operands.
  typedef struct packed { code_e code; compared_t [3:0] lane; } compared_4_t;
  typedef struct packed { code_e code; aligned_t [3:0] lane; } aligned_4_t;
  typedef struct packed { code_e code; summed_t [3:0] lane; } summed_4_t;
  typedef struct packed { code_e code; normalised_t [3:0] lane; } normalised_4_t;
  typedef struct packed { code_e code; rounded_t [3:0] lane; } rounded_4_t;
  typedef struct packed { code_e code; keys_t [3:0] lane; } keys_4_t;
  typedef struct packed { code_e code; ordered_t [3:0] lane; } ordered_4_t;
  typedef struct packed { code_e code; extended_t [3:0] lane; } extended_4_t;
  typedef struct packed { code_e code; int_partials_t [3:0] lane; } int_partials_4_t;
  typedef struct packed { code_e code; loc_keys_t [1:0] half; } loc_keys_2_t;
  typedef struct packed { code_e code; loc_ordered_t [1:0] half; } loc_ordered_2_t;

  compared_4_t     compared_d, compared;
  aligned_4_t      aligned_d, aligned;
  summed_4_t       summed_d, summed;
  normalised_4_t   normalised_d, normalised;
  rounded_4_t      rounded_d, rounded;
  keys_4_t         keys_d, keys;
  ordered_4_t      ordered_d, ordered;
  extended_4_t     extended_d, extended;
  int_partials_4_t int_partials_d, int_partials;
  loc_keys_2_t     loc_keys_d, loc_keys;
  loc_ordered_2_t  loc_ordered_d, loc_ordered;
  rep_compared_t   rep_compared_d, rep_compared;
  rep_aligned_t    rep_aligned_d, rep_aligned;
  quad_t           done_0_d, done_2_d, done_5_d, done_0, done_1, done_2, done_3, done_4, done_5;

  code_e code;

  assign code = climb(a_i.code, b_i.code);
  assign compared_d.code = code;
  assign keys_d.code = code;
  assign extended_d.code = code;
  assign loc_keys_d.code = code;
  assign aligned_d.code = compared.code;
  assign ordered_d.code = keys.code;
  assign int_partials_d.code = extended.code;
  assign loc_ordered_d.code = loc_keys.code;
  assign summed_d.code = aligned.code;
  assign normalised_d.code = summed.code;
  assign rounded_d.code = normalised.code;

  done_t compared_done [4];
  done_t integer_done [4];
  done_t added_done [4];

  for (genvar k = 0; k < 4; k++) begin : gen_lane
    ws_quad_lane u_lane (
      .ctrl_i(ctrl),
      .a_i(a_i.word[k]),
      .b_i(b_i.word[k]),
      .compared_o(compared_d.lane[k]),
      .keys_o(keys_d.lane[k]),
      .extended_o(extended_d.lane[k]),
      .compared_i(compared.lane[k]),
      .keys_i(keys.lane[k]),
      .extended_i(extended.lane[k]),
      .aligned_o(aligned_d.lane[k]),
      .ordered_o(ordered_d.lane[k]),
      .int_partials_o(int_partials_d.lane[k]),
      .aligned_i(aligned.lane[k]),
      .ordered_i(ordered.lane[k]),
      .int_partials_i(int_partials.lane[k]),
      .summed_o(summed_d.lane[k]),
      .compared_done_o(compared_done[k]),
      .integer_done_o(integer_done[k]),
      .summed_i(summed.lane[k]),
      .normalised_o(normalised_d.lane[k]),
      .normalised_i(normalised.lane[k]),
      .rounded_o(rounded_d.lane[k]),
      .rounded_i(rounded.lane[k]),
      .added_done_o(added_done[k])
    );
  end

  // The locator: minimum and its index in the lower two words, maximum and its index in the upper ones.
  fn_e         loc_fn_0 [2];
  fn_e         loc_fn_2 [2];
  done_t       located [2];
  logic [63:0] located_index [2];

  assign loc_fn_0[0] = ctrl[0].op == OpMinMaxNumLoc ? FnMinNum : FnMin;
  assign loc_fn_0[1] = ctrl[0].op == OpMinMaxNumLoc ? FnMaxNum : FnMax;
  assign loc_fn_2[0] = ctrl[2].op == OpMinMaxNumLoc ? FnMinNum : FnMin;
  assign loc_fn_2[1] = ctrl[2].op == OpMinMaxNumLoc ? FnMaxNum : FnMax;

  for (genvar h = 0; h < 2; h++) begin : gen_half
    ws_loc_keys u_keys (
      .dtype_i(ctrl[0].dtype),
      .mode_i(ctrl[0].mode),
      .fn_i(loc_fn_0[h]),
      .a_i(a_i.word[2*h]),
      .a_index_i(a_i.word[2*h + 1]),
      .b_i(b_i.word[2*h]),
      .b_index_i(b_i.word[2*h + 1]),
      .keys_o(loc_keys_d.half[h])
    );
    ws_loc_order u_order (.keys_i(loc_keys.half[h]), .ordered_o(loc_ordered_d.half[h]));
    ws_loc_select u_select (
      .fn_i(loc_fn_2[h]),
      .ordered_i(loc_ordered.half[h]),
      .value_o(located[h]),
      .index_o(located_index[h])
    );
  end

  // The reproducible sum.
  quad_t rep_done;

  ws_rep_compare u_rep_compare (.a_i, .b_i, .compared_o(rep_compared_d));
  ws_rep_align u_rep_align (.compared_i(rep_compared), .aligned_o(rep_aligned_d));
  ws_rep_add u_rep_add (.aligned_i(rep_aligned), .quad_o(rep_done));

  // What is done after segments 0, 2 and 5.
  always_comb begin
    done_0_d = '0;
    done_0_d.code = code;
  end

  always_comb begin
    flags_t flags;
    flags = '0;
    done_2_d = '0;
    unique case (path[2])
      QuadCmp: begin
        for (int unsigned k = 0; k < 4; k++) begin
          done_2_d.word[k] = compared_done[k].lane;
          flags |= compared_done[k].flags;
        end
        done_2_d.code = climb(ordered.code, code_of(flags));
      end
      QuadInt: begin
        for (int unsigned k = 0; k < 4; k++) begin
          done_2_d.word[k] = integer_done[k].lane;
          flags |= integer_done[k].flags;
        end
        done_2_d.code = climb(int_partials.code, code_of(flags));
      end
      QuadLoc: begin
        for (int unsigned h = 0; h < 2; h++) begin
          done_2_d.word[2*h] = located[h].lane;
          done_2_d.word[2*h + 1] = located_index[h];
          flags |= located[h].flags;
        end
        done_2_d.code = climb(loc_ordered.code, code_of(flags));
      end
      QuadRep: done_2_d = rep_done;
      default: done_2_d = done_1;
    endcase
  end

  always_comb begin
    flags_t flags;
    flags = '0;
    done_5_d = done_4;
    if (path[5] == QuadAdd) begin
      done_5_d = '0;
      for (int unsigned k = 0; k < 4; k++) begin
        done_5_d.word[k] = added_done[k].lane;
        flags |= added_done[k].flags;
      end
      done_5_d.code = climb(rounded.code, code_of(flags));
    end
  end

  // Registers where the unit is cut.
  ws_stage_reg #(.Width($bits(compared_4_t)), .Present(Cut[0])) u_compared (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[0].valid && path[0] == QuadAdd),
    .d_i(compared_d),
    .q_o(compared)
  );
  ws_stage_reg #(.Width($bits(keys_4_t)), .Present(Cut[0])) u_keys (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[0].valid && path[0] == QuadCmp),
    .d_i(keys_d),
    .q_o(keys)
  );
  ws_stage_reg #(.Width($bits(extended_4_t)), .Present(Cut[0])) u_extended (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[0].valid && path[0] == QuadInt),
    .d_i(extended_d),
    .q_o(extended)
  );
  ws_stage_reg #(.Width($bits(loc_keys_2_t)), .Present(Cut[0])) u_loc_keys (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[0].valid && path[0] == QuadLoc),
    .d_i(loc_keys_d),
    .q_o(loc_keys)
  );
  ws_stage_reg #(.Width($bits(rep_compared_t)), .Present(Cut[0])) u_rep_compared (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[0].valid && path[0] == QuadRep),
    .d_i(rep_compared_d),
    .q_o(rep_compared)
  );
  ws_stage_reg #(.Width($bits(aligned_4_t)), .Present(Cut[1])) u_aligned (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[1].valid && path[1] == QuadAdd),
    .d_i(aligned_d),
    .q_o(aligned)
  );
  ws_stage_reg #(.Width($bits(ordered_4_t)), .Present(Cut[1])) u_ordered (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[1].valid && path[1] == QuadCmp),
    .d_i(ordered_d),
    .q_o(ordered)
  );
  ws_stage_reg #(.Width($bits(int_partials_4_t)), .Present(Cut[1])) u_int_partials (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[1].valid && path[1] == QuadInt),
    .d_i(int_partials_d),
    .q_o(int_partials)
  );
  ws_stage_reg #(.Width($bits(loc_ordered_2_t)), .Present(Cut[1])) u_loc_ordered (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[1].valid && path[1] == QuadLoc),
    .d_i(loc_ordered_d),
    .q_o(loc_ordered)
  );
  ws_stage_reg #(.Width($bits(rep_aligned_t)), .Present(Cut[1])) u_rep_aligned (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[1].valid && path[1] == QuadRep),
    .d_i(rep_aligned_d),
    .q_o(rep_aligned)
  );
  ws_stage_reg #(.Width($bits(summed_4_t)), .Present(Cut[2])) u_summed (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[2].valid && path[2] == QuadAdd),
    .d_i(summed_d),
    .q_o(summed)
  );
  ws_stage_reg #(.Width($bits(normalised_4_t)), .Present(Cut[3])) u_normalised (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[3].valid && path[3] == QuadAdd),
    .d_i(normalised_d),
    .q_o(normalised)
  );
  ws_stage_reg #(.Width($bits(rounded_4_t)), .Present(Cut[4])) u_rounded (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[4].valid && path[4] == QuadAdd),
    .d_i(rounded_d),
    .q_o(rounded)
  );
  ws_stage_reg #(.Width($bits(quad_t)), .Present(Cut[0])) u_done_0 (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[0].valid && path[0] == QuadBarrier),
    .d_i(done_0_d),
    .q_o(done_0)
  );
  ws_stage_reg #(.Width($bits(quad_t)), .Present(Cut[1])) u_done_1 (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[1].valid && path[1] == QuadBarrier),
    .d_i(done_0),
    .q_o(done_1)
  );
  ws_stage_reg #(.Width($bits(quad_t)), .Present(Cut[2])) u_done_2 (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[2].valid && path[2] != QuadAdd),
    .d_i(done_2_d),
    .q_o(done_2)
  );
  ws_stage_reg #(.Width($bits(quad_t)), .Present(Cut[3])) u_done_3 (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[3].valid && path[3] != QuadAdd),
    .d_i(done_2),
    .q_o(done_3)
  );
  ws_stage_reg #(.Width($bits(quad_t)), .Present(Cut[4])) u_done_4 (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[4].valid && path[4] != QuadAdd),
    .d_i(done_3),
    .q_o(done_4)
  );
  ws_stage_reg #(.Width($bits(quad_t)), .Present(1'b1)) u_done_5 (
    .clk_i,
    .rst_ni,
    .load_i(ctrl[5].valid),
    .d_i(done_5_d),
    .q_o(done_5)
  );

  assign valid_o = valid_q[Stages-1];
  assign tag_o = tag_q[Stages-1];
  assign quad_o = joined_q[Stages-1] ? done_5 : passed_q[Stages-1];

  // The last stage's operation is for who looks at the registers.
  logic unused;

  assign unused = ^{op_q[Stages-1], dtype_q[Stages-1], mode_q[Stages-1], rounded, done_0};

endmodule
