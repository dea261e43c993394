// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Reproducible sum, segment 2: four adders that wrap, with no carry between them.
//
// Twin:        `add` of src/arith/repsum.rs.
// Latency:     none, combinational
module ws_rep_add
  import ws_pkg::*;
(
  input  rep_aligned_t aligned_i,
  output quad_t        quad_o
);

  always_comb begin
    logic [63:0] sum;
    logic        wrapped, overflowed;
    overflowed = aligned_i.overflowed;
    quad_o = '0;
    quad_o.m = aligned_i.m;
    quad_o.oflow_id = aligned_i.oflow_id;
    for (int unsigned k = 0; k < 4; k++) begin
      sum = aligned_i.larger[k] + aligned_i.smaller[k];
      wrapped = aligned_i.larger[k][63] == aligned_i.smaller[k][63] && sum[63] != aligned_i.larger[k][63];
      quad_o.word[k] = sum;
      // The most significant word that wrapped is named.
      if (wrapped && (!overflowed || quad_o.oflow_id < 2'(k))) quad_o.oflow_id = 2'(k);
      overflowed |= wrapped;
    end
    quad_o.code = overflowed ? climb(aligned_i.code, CodeIntOverflow) : aligned_i.code;
  end

endmodule
