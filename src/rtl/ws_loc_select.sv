// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Locator, segment 2 of one half: choose value and index. Equal values give the lower index.
//
// Twin:        `half_select` of src/arith/locator.rs.
// Latency:     none, combinational
module ws_loc_select
  import ws_pkg::*;
(
  input  fn_e          fn_i,      // FnMin, FnMax, FnMinNum, FnMaxNum
  input  loc_ordered_t ordered_i,
  output done_t        value_o,
  output logic [63:0]  index_o
);

  logic tie, is_min, a_wins;

  ws_cmp_select u_select (.fn_i, .ordered_i(ordered_i.ordered), .done_o(value_o));

  assign tie = ordered_i.ordered.unordered || ordered_i.ordered.equal;
  assign is_min = fn_i == FnMin || fn_i == FnMinNum;
  assign a_wins = tie ? ordered_i.a_first : ordered_i.ordered.less == is_min;
  assign index_o = a_wins ? ordered_i.a_index : ordered_i.b_index;

endmodule
