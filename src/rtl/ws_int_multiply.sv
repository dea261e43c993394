// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Integer unit, segment 1: a times each half of b; what is no multiplication holds its operands.
//
// Twin:        `integer::multiply` of src/arith/integer.rs.
// Latency:     none, combinational
module ws_int_multiply
  import ws_pkg::*;
(
  input  fn_e           fn_i,
  input  extended_t     extended_i,
  output int_partials_t partials_o
);

  always_comb begin
    partials_o.negative = extended_i.negative;
    if (fn_i == FnMul) begin
      partials_o.lower = 96'(extended_i.a) * 96'(extended_i.b[31:0]);
      partials_o.upper = 96'(extended_i.a) * 96'(extended_i.b[63:32]);
    end else begin
      partials_o.lower = 96'(extended_i.a);
      partials_o.upper = 96'(extended_i.b);
    end
  end

endmodule
