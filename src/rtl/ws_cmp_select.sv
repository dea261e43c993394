// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Comparator, segment 2: choose. Equal operands give a.
//
// Twin:        `comparator::select` of src/arith/comparator.rs.
// Latency:     none, combinational
module ws_cmp_select
  import ws_pkg::*;
(
  input  fn_e      fn_i,
  input  ordered_t ordered_i,
  output done_t    done_o
);

  logic not_above, ordered;

  assign ordered = !ordered_i.unordered;
  assign not_above = ordered_i.less || ordered_i.equal;

  always_comb begin
    done_o = '0;
    done_o.flags.invalid = ordered_i.invalid;
    unique case (fn_i)
      FnMin, FnMinNum: done_o.lane = ordered_i.unordered || not_above ? ordered_i.a : ordered_i.b;
      FnMax, FnMaxNum: done_o.lane = ordered_i.unordered || !ordered_i.less ? ordered_i.a : ordered_i.b;
      FnEqual:         done_o.lane = 64'(ordered && ordered_i.equal);
      FnLessOrEqual:   done_o.lane = 64'(ordered && not_above);
      default:         done_o.lane = 64'(ordered && ordered_i.less);
    endcase
  end

endmodule
