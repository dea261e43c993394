// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// One lane of a two-input unit: all datapaths side by side, six segments, registers where the unit is cut.
//
//   segment      0            1            2            3             4          5
//   add, sub   compare  |   align    |   add      |  normalise  |   round   |  pack
//   mul        factor   |   multiply |   sum      |  normalise  |   round   |  pack
//   min .. lt  keys     |   order    |   select   |  (hold)     |   (hold)  |  (hold)
//   integer    extend   |   multiply |   finish   |  (hold)     |   (hold)  |  (hold)
//
// Twin:        `Unit` of src/arith/unit.rs; its registers are those of a lane in src/arith/stages/mod.rs.
// Parameters:  Stages  1 to 6 clock stages
//              Units   datapaths it has; a register is there if one of them uses it
//              Lane    number of the lane: types with fewer lanes have no datapath here
// Latency:     Stages cycles, one pair of lanes a cycle
// Registers:   load when an operation that takes their datapath is in their stage, else hold; zero after reset
// Limitations: what the datapaths of different formats share is the register, not the logic
module ws_lane
  import ws_pkg::*;
#(
  parameter int unsigned Stages = 3,
  parameter units_t      Units = '1,
  parameter int unsigned Lane = 0
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  // What enters each clock stage in this cycle; valid stands for two operands and the clock enable.
  input  ctrl_t       ctrl_i [Stages],
  input  logic [63:0] a_i,
  input  logic [63:0] b_i,
  // What is behind the last register.
  output done_t       done_o
);

  localparam logic [Segments-1:0] Cut = cut(Stages);

  localparam bit HasAdd = has_path(Units, PathAdd);
  localparam bit HasMul = has_path(Units, PathMul);
  localparam bit HasCmp = has_path(Units, PathCmp);
  localparam bit HasInt = has_path(Units, PathInt);
  localparam bit HasFp = HasAdd || HasMul;
  localparam bit HasEarly = HasCmp || HasInt;

  // What each segment works on, and which datapath that takes.
  ctrl_t ctrl_0, ctrl_1, ctrl_2, ctrl_3, ctrl_4, ctrl_5;
  path_e path_0, path_1, path_2, path_3, path_4, path_5;
  logic  there_0, there_1, there_2, there_3, there_4, there_5;

  assign ctrl_0 = ctrl_i[stage_of(Stages, 0)];
  assign ctrl_1 = ctrl_i[stage_of(Stages, 1)];
  assign ctrl_2 = ctrl_i[stage_of(Stages, 2)];
  assign ctrl_3 = ctrl_i[stage_of(Stages, 3)];
  assign ctrl_4 = ctrl_i[stage_of(Stages, 4)];
  assign ctrl_5 = ctrl_i[stage_of(Stages, 5)];
  assign path_0 = path_of(ctrl_0.fn, ctrl_0.dtype);
  assign path_1 = path_of(ctrl_1.fn, ctrl_1.dtype);
  assign path_2 = path_of(ctrl_2.fn, ctrl_2.dtype);
  assign path_3 = path_of(ctrl_3.fn, ctrl_3.dtype);
  assign path_4 = path_of(ctrl_4.fn, ctrl_4.dtype);
  assign path_5 = path_of(ctrl_5.fn, ctrl_5.dtype);

  // A type with fewer lanes than this one's number is not there.
  function automatic logic there(logic is_valid, dtype_e of_type);
    there = is_valid && (Lane + 1) * lane_bits(of_type) <= 64;
  endfunction

  assign there_0 = there(ctrl_0.valid, ctrl_0.dtype);
  assign there_1 = there(ctrl_1.valid, ctrl_1.dtype);
  assign there_2 = there(ctrl_2.valid, ctrl_2.dtype);
  assign there_3 = there(ctrl_3.valid, ctrl_3.dtype);
  assign there_4 = there(ctrl_4.valid, ctrl_4.dtype);
  assign there_5 = there(ctrl_5.valid, ctrl_5.dtype);

  // Behind each segment: what every type computes, what goes into the register, what is behind it.
  compared_t     compared_of [16];
  aligned_t      aligned_of [16];
  summed_t       summed_of [16];
  factored_t     factored_of [16];
  partials_t     partials_of [16];
  product_t      product_of [16];
  normalised_t   added_of [16];
  normalised_t   multiplied_of [16];
  rounded_t      rounded_of [16];
  done_t         packed_of [16];
  keys_t         keys_of [16];
  extended_t     extended_of [16];
  done_t         finished_of [16];

  compared_t     compared;
  aligned_t      aligned;
  summed_t       summed;
  factored_t     factored;
  partials_t     partials;
  product_t      product;
  normalised_t   normalised_d, normalised;
  rounded_t      rounded;
  keys_t         keys;
  ordered_t      ordered_d, ordered;
  extended_t     extended;
  int_partials_t int_partials_d, int_partials;
  done_t         selected, done_2_d, done_2, done_3, done_4, done_5_d;

  for (genvar t = 0; t < 16; t++) begin : gen_type
    localparam bit Fits = t < NumDtypes && (Lane + 1) * lane_bits(dtype_e'(t)) <= 64;
    localparam bit IsFloat = Fits && t >= FirstFloat;
    localparam bit IsInt = Fits && t < FirstFloat;

    if (IsFloat && has_unit(Units, PathAdd, t)) begin : gen_add
      ws_fp_add_compare #(.Dtype(dtype_e'(t))) u_compare (
        .mode_i(ctrl_0.mode),
        .negate_b_i(ctrl_0.fn == FnSub),
        .a_i,
        .b_i,
        .compared_o(compared_of[t])
      );
      ws_fp_add_align #(.Dtype(dtype_e'(t))) u_align (.compared_i(compared), .aligned_o(aligned_of[t]));
      ws_fp_add_add #(.Dtype(dtype_e'(t))) u_add (
        .mode_i(ctrl_2.mode),
        .aligned_i(aligned),
        .summed_o(summed_of[t])
      );
      ws_fp_add_normalise #(.Dtype(dtype_e'(t))) u_normalise (.summed_i(summed), .normalised_o(added_of[t]));
    end else begin : gen_no_add
      assign compared_of[t] = '0;
      assign aligned_of[t] = '0;
      assign summed_of[t] = '0;
      assign added_of[t] = '0;
    end

    if (IsFloat && has_unit(Units, PathMul, t)) begin : gen_mul
      ws_fp_mul_factor #(.Dtype(dtype_e'(t))) u_factor (
        .mode_i(ctrl_0.mode),
        .a_i,
        .b_i,
        .factored_o(factored_of[t])
      );
      ws_fp_mul_multiply #(.Dtype(dtype_e'(t))) u_multiply (.factored_i(factored), .partials_o(partials_of[t]));
      ws_fp_mul_sum #(.Dtype(dtype_e'(t))) u_sum (.partials_i(partials), .product_o(product_of[t]));
      ws_fp_mul_normalise #(.Dtype(dtype_e'(t))) u_normalise (
        .product_i(product),
        .normalised_o(multiplied_of[t])
      );
    end else begin : gen_no_mul
      assign factored_of[t] = '0;
      assign partials_of[t] = '0;
      assign product_of[t] = '0;
      assign multiplied_of[t] = '0;
    end

    if (IsFloat && (has_unit(Units, PathAdd, t) || has_unit(Units, PathMul, t))) begin : gen_tail
      ws_fp_round #(.Dtype(dtype_e'(t))) u_round (
        .mode_i(ctrl_4.mode),
        .normalised_i(normalised),
        .rounded_o(rounded_of[t])
      );
      ws_fp_pack #(.Dtype(dtype_e'(t))) u_pack (
        .mode_i(ctrl_5.mode),
        .rounded_i(rounded),
        .done_o(packed_of[t])
      );
    end else begin : gen_no_tail
      assign rounded_of[t] = '0;
      assign packed_of[t] = '0;
    end

    if (IsFloat && has_unit(Units, PathCmp, t)) begin : gen_keys
      ws_fp_keys #(.Dtype(dtype_e'(t))) u_keys (
        .mode_i(ctrl_0.mode),
        .fn_i(ctrl_0.fn),
        .a_i,
        .b_i,
        .keys_o(keys_of[t])
      );
    end else if (IsInt && has_unit(Units, PathCmp, t)) begin : gen_int_keys
      ws_int_keys #(.Dtype(dtype_e'(t))) u_keys (.a_i, .b_i, .keys_o(keys_of[t]));
    end else begin : gen_no_keys
      assign keys_of[t] = '0;
    end

    if (IsInt && has_unit(Units, PathInt, t)) begin : gen_int
      ws_int_extend #(.Dtype(dtype_e'(t))) u_extend (
        .fn_i(ctrl_0.fn),
        .a_i,
        .b_i,
        .extended_o(extended_of[t])
      );
      ws_int_finish #(.Dtype(dtype_e'(t))) u_finish (
        .fn_i(ctrl_2.fn),
        .partials_i(int_partials),
        .done_o(finished_of[t])
      );
    end else begin : gen_no_int
      assign extended_of[t] = '0;
      assign finished_of[t] = '0;
    end
  end

  // Segment 0.
  ws_stage_reg #(.Width($bits(compared_t)), .Present(Cut[0] && HasAdd)) u_compared (
    .clk_i,
    .rst_ni,
    .load_i(there_0 && path_0 == PathAdd),
    .d_i(compared_of[ctrl_0.dtype]),
    .q_o(compared)
  );
  ws_stage_reg #(.Width($bits(factored_t)), .Present(Cut[0] && HasMul)) u_factored (
    .clk_i,
    .rst_ni,
    .load_i(there_0 && path_0 == PathMul),
    .d_i(factored_of[ctrl_0.dtype]),
    .q_o(factored)
  );
  ws_stage_reg #(.Width($bits(keys_t)), .Present(Cut[0] && HasCmp)) u_keys (
    .clk_i,
    .rst_ni,
    .load_i(there_0 && path_0 == PathCmp),
    .d_i(keys_of[ctrl_0.dtype]),
    .q_o(keys)
  );
  ws_stage_reg #(.Width($bits(extended_t)), .Present(Cut[0] && HasInt)) u_extended (
    .clk_i,
    .rst_ni,
    .load_i(there_0 && path_0 == PathInt),
    .d_i(extended_of[ctrl_0.dtype]),
    .q_o(extended)
  );

  // Segment 1.
  ws_cmp_order u_order (.keys_i(keys), .ordered_o(ordered_d));
  ws_int_multiply u_int_multiply (.fn_i(ctrl_1.fn), .extended_i(extended), .partials_o(int_partials_d));

  ws_stage_reg #(.Width($bits(aligned_t)), .Present(Cut[1] && HasAdd)) u_aligned (
    .clk_i,
    .rst_ni,
    .load_i(there_1 && path_1 == PathAdd),
    .d_i(aligned_of[ctrl_1.dtype]),
    .q_o(aligned)
  );
  ws_stage_reg #(.Width($bits(partials_t)), .Present(Cut[1] && HasMul)) u_partials (
    .clk_i,
    .rst_ni,
    .load_i(there_1 && path_1 == PathMul),
    .d_i(partials_of[ctrl_1.dtype]),
    .q_o(partials)
  );
  ws_stage_reg #(.Width($bits(ordered_t)), .Present(Cut[1] && HasCmp)) u_ordered (
    .clk_i,
    .rst_ni,
    .load_i(there_1 && path_1 == PathCmp),
    .d_i(ordered_d),
    .q_o(ordered)
  );
  ws_stage_reg #(.Width($bits(int_partials_t)), .Present(Cut[1] && HasInt)) u_int_partials (
    .clk_i,
    .rst_ni,
    .load_i(there_1 && path_1 == PathInt),
    .d_i(int_partials_d),
    .q_o(int_partials)
  );

  // Segment 2; comparators and integer units are done.
  ws_cmp_select u_select (.fn_i(ctrl_2.fn), .ordered_i(ordered), .done_o(selected));

  assign done_2_d = path_2 == PathCmp ? selected : finished_of[ctrl_2.dtype];

  ws_stage_reg #(.Width($bits(summed_t)), .Present(Cut[2] && HasAdd)) u_summed (
    .clk_i,
    .rst_ni,
    .load_i(there_2 && path_2 == PathAdd),
    .d_i(summed_of[ctrl_2.dtype]),
    .q_o(summed)
  );
  ws_stage_reg #(.Width($bits(product_t)), .Present(Cut[2] && HasMul)) u_product (
    .clk_i,
    .rst_ni,
    .load_i(there_2 && path_2 == PathMul),
    .d_i(product_of[ctrl_2.dtype]),
    .q_o(product)
  );
  ws_stage_reg #(.Width($bits(done_t)), .Present(Cut[2] && HasEarly)) u_done_2 (
    .clk_i,
    .rst_ni,
    .load_i(there_2 && (path_2 == PathCmp || path_2 == PathInt)),
    .d_i(done_2_d),
    .q_o(done_2)
  );

  // Segment 3: from here on adder and multiplier are one.
  assign normalised_d = path_3 == PathAdd ? added_of[ctrl_3.dtype] : multiplied_of[ctrl_3.dtype];

  ws_stage_reg #(.Width($bits(normalised_t)), .Present(Cut[3] && HasFp)) u_normalised (
    .clk_i,
    .rst_ni,
    .load_i(there_3 && (path_3 == PathAdd || path_3 == PathMul)),
    .d_i(normalised_d),
    .q_o(normalised)
  );
  ws_stage_reg #(.Width($bits(done_t)), .Present(Cut[3] && HasEarly)) u_done_3 (
    .clk_i,
    .rst_ni,
    .load_i(there_3 && (path_3 == PathCmp || path_3 == PathInt)),
    .d_i(done_2),
    .q_o(done_3)
  );

  // Segment 4.
`ifdef WS_FAULT_STAGE
  // A register dropped: what a unit of six stages holds after rounding.
  localparam bit RoundedPresent = 1'b0;
`else
  localparam bit RoundedPresent = Cut[4] && HasFp;
`endif

  ws_stage_reg #(.Width($bits(rounded_t)), .Present(RoundedPresent)) u_rounded (
    .clk_i,
    .rst_ni,
    .load_i(there_4 && (path_4 == PathAdd || path_4 == PathMul)),
    .d_i(rounded_of[ctrl_4.dtype]),
    .q_o(rounded)
  );
  ws_stage_reg #(.Width($bits(done_t)), .Present(Cut[4] && HasEarly)) u_done_4 (
    .clk_i,
    .rst_ni,
    .load_i(there_4 && (path_4 == PathCmp || path_4 == PathInt)),
    .d_i(done_3),
    .q_o(done_4)
  );

  // Segment 5; the last register is always there.
  assign done_5_d = path_5 == PathCmp || path_5 == PathInt ? done_4 : packed_of[ctrl_5.dtype];

  ws_stage_reg #(.Width($bits(done_t)), .Present(1'b1)) u_done_5 (
    .clk_i,
    .rst_ni,
    .load_i(there_5),
    .d_i(done_5_d),
    .q_o(done_o)
  );

  // What no segment of the datapaths in use looks at.
  logic unused;

  assign unused = ^{ctrl_0, ctrl_1, ctrl_2, ctrl_3, ctrl_4, ctrl_5, a_i, b_i, compared, aligned, summed, factored, partials,
                    product, normalised, rounded, keys, ordered, extended, int_partials};

endmodule
