// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Reproducible sum, segment 0: the operand with the larger exponent index first.
//
// Twin:        `compare` of src/arith/repsum.rs.
// Latency:     none, combinational
module ws_rep_compare
  import ws_pkg::*;
(
  input  quad_t         a_i,
  input  quad_t         b_i,
  output rep_compared_t compared_o
);

  logic       swap;
  logic [8:0] distance;

  assign swap = $signed(a_i.m) < $signed(b_i.m);
  assign distance = swap ? {b_i.m[7], b_i.m} - {a_i.m[7], a_i.m} : {a_i.m[7], a_i.m} - {b_i.m[7], b_i.m};

  always_comb begin
    compared_o.larger = swap ? b_i : a_i;
    compared_o.smaller = swap ? a_i : b_i;
    compared_o.m = swap ? b_i.m : a_i.m;
    compared_o.distance = distance < 9'd4 ? distance[2:0] : 3'd4;
  end

endmodule
