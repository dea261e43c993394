// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Locator, segment 1 of one half: compare the keys, and the indices.
//
// Twin:        `half_order` of src/arith/locator.rs.
// Latency:     none, combinational
module ws_loc_order
  import ws_pkg::*;
(
  input  loc_keys_t    keys_i,
  output loc_ordered_t ordered_o
);

  ordered_t ordered;

  ws_cmp_order u_order (.keys_i(keys_i.keys), .ordered_o(ordered));

  always_comb begin
    ordered_o.ordered = ordered;
    ordered_o.a_index = keys_i.a_index;
    ordered_o.b_index = keys_i.b_index;
    ordered_o.a_first = keys_i.a_index <= keys_i.b_index;
  end

endmodule
