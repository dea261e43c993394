// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// One 64-bit lane of a quad unit: the segments of adder, comparators, integer unit and gates, without registers.
//
// Twin:        `QuadPath::Lanes` of src/arith/quad.rs: a `Unit` of src/arith/unit.rs for f64, i64 or u64.
// Latency:     none, combinational: registers lie outside, between the segments
module ws_quad_lane
  import ws_pkg::*;
(
  // What segments 0 to 5 work on.
  input  quad_ctrl_t    ctrl_i [Segments],
  input  logic [63:0]   a_i,
  input  logic [63:0]   b_i,
  output compared_t     compared_o,
  output keys_t         keys_o,
  output extended_t     extended_o,
  input  compared_t     compared_i,
  input  keys_t         keys_i,
  input  extended_t     extended_i,
  output aligned_t      aligned_o,
  output ordered_t      ordered_o,
  output int_partials_t int_partials_o,
  input  aligned_t      aligned_i,
  input  ordered_t      ordered_i,
  input  int_partials_t int_partials_i,
  output summed_t       summed_o,
  output done_t         compared_done_o,  // of the comparators, after segment 2
  output done_t         integer_done_o,   // of the integer unit and the gates, after segment 2
  input  summed_t       summed_i,
  output normalised_t   normalised_o,
  input  normalised_t   normalised_i,
  output rounded_t      rounded_o,
  input  rounded_t      rounded_i,
  output done_t         added_done_o      // of the adder, after segment 5
);

  fn_e   fn_0, fn_1, fn_2;

  assign fn_0 = fn_of(ctrl_i[0].op);
  assign fn_1 = fn_of(ctrl_i[1].op);
  assign fn_2 = fn_of(ctrl_i[2].op);

  // The adder.
  ws_fp_add_compare #(.Dtype(DtF64)) u_compare (
    .mode_i(ctrl_i[0].mode),
    .negate_b_i(1'b0),
    .a_i,
    .b_i,
    .compared_o
  );
  ws_fp_add_align #(.Dtype(DtF64)) u_align (.compared_i, .aligned_o);
  ws_fp_add_add #(.Dtype(DtF64)) u_add (.mode_i(ctrl_i[2].mode), .aligned_i, .summed_o);
  ws_fp_add_normalise #(.Dtype(DtF64)) u_normalise (.summed_i, .normalised_o);
  ws_fp_round #(.Dtype(DtF64)) u_round (.mode_i(ctrl_i[4].mode), .normalised_i, .rounded_o);
  ws_fp_pack #(.Dtype(DtF64)) u_pack (.mode_i(ctrl_i[5].mode), .rounded_i, .done_o(added_done_o));

  // Comparators.
  keys_t float_keys, signed_keys;

  ws_fp_keys #(.Dtype(DtF64)) u_float_keys (.mode_i(ctrl_i[0].mode), .fn_i(fn_0), .a_i, .b_i, .keys_o(float_keys));
  ws_int_keys #(.Dtype(DtI64)) u_signed_keys (.a_i, .b_i, .keys_o(signed_keys));

  assign keys_o = is_float(ctrl_i[0].dtype) ? float_keys : signed_keys;

  ws_cmp_order u_order (.keys_i, .ordered_o);
  ws_cmp_select u_select (.fn_i(fn_2), .ordered_i, .done_o(compared_done_o));

  // The integer unit and the gates, which need no other type: sums are signed.
  ws_int_extend #(.Dtype(DtI64)) u_extend (.fn_i(fn_0), .a_i, .b_i, .extended_o);
  ws_int_multiply u_int_multiply (.fn_i(fn_1), .extended_i, .partials_o(int_partials_o));
  ws_int_finish #(.Dtype(DtI64)) u_finish (.fn_i(fn_2), .partials_i(int_partials_i), .done_o(integer_done_o));

  logic unused;

  always_comb begin
    unused = 1'b0;
    for (int unsigned k = 0; k < Segments; k++) unused ^= ^ctrl_i[k];
  end

endmodule
