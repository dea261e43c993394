// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Reproducible sum, segment 1: words of the smaller operand move down to their windows; those that fall out are lost.
//
// Twin:        `align` of src/arith/repsum.rs.
// Latency:     none, combinational
// Choices:     an overflow that came with a word that is dropped is dropped with it
module ws_rep_align
  import ws_pkg::*;
(
  input  rep_compared_t compared_i,
  output rep_aligned_t  aligned_o
);

  logic       dropped, larger_had, smaller_had, smaller_has;
  logic [1:0] larger_id, smaller_id;
  code_e      smaller_code;

  assign larger_had = compared_i.larger.code == CodeIntOverflow;
  assign smaller_had = compared_i.smaller.code == CodeIntOverflow;
  assign smaller_has = smaller_had && {1'b0, compared_i.smaller.oflow_id} >= compared_i.distance;
  assign smaller_code = smaller_had && !smaller_has ? CodeRepInexact : compared_i.smaller.code;
  assign larger_id = larger_had ? compared_i.larger.oflow_id : 2'd0;
  assign smaller_id = smaller_has ? compared_i.smaller.oflow_id - compared_i.distance[1:0] : 2'd0;

  always_comb begin
    dropped = 1'b0;
    aligned_o = '0;
    for (int unsigned k = 0; k < 4; k++) begin
      if (k < 32'(compared_i.distance)) dropped |= |compared_i.smaller.word[k];
      else aligned_o.smaller[2'(k - 32'(compared_i.distance))] = compared_i.smaller.word[k];
    end
    aligned_o.m = compared_i.m;
    aligned_o.larger = compared_i.larger.word;
    aligned_o.code = climb(climb(compared_i.larger.code, smaller_code), dropped ? CodeRepInexact : CodeOk);
    aligned_o.overflowed = larger_had || smaller_has;
    aligned_o.oflow_id = larger_id < smaller_id ? smaller_id : larger_id;
  end

  logic unused;

  assign unused = ^compared_i;

endmodule
