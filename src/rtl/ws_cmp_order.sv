// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Comparator, segment 1: compare the keys.
//
// Twin:        `comparator::order` of src/arith/comparator.rs.
// Latency:     none, combinational
module ws_cmp_order
  import ws_pkg::*;
(
  input  keys_t    keys_i,
  output ordered_t ordered_o
);

  always_comb begin
    ordered_o.unordered = keys_i.unordered;
    ordered_o.invalid = keys_i.invalid;
    ordered_o.less = $signed(keys_i.a_key) < $signed(keys_i.b_key);
    ordered_o.equal = keys_i.a_key == keys_i.b_key;
    ordered_o.a = keys_i.a;
    ordered_o.b = keys_i.b;
  end

endmodule
