// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Integer unit, segment 2: the wrapped result, and whether the exact one fits.
//
// Twin:        `integer::finish` of src/arith/integer.rs.
// Parameters:  Dtype  integer type of the lane
// Latency:     none, combinational
module ws_int_finish
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtI32
) (
  input  fn_e           fn_i,
  input  int_partials_t partials_i,
  output done_t         done_o
);

  localparam int unsigned LaneBits = lane_bits(Dtype);
  localparam logic [127:0] MostPositive = (128'd1 << (LaneBits - 1)) - 128'd1;

  logic [63:0]         a, b, result;
  logic [LaneBits+1:0] wide_a, wide_b, exact;
  logic [127:0]        magnitude, limit;
  logic                sum_fits;

  assign a = partials_i.lower[63:0];
  assign b = partials_i.upper[63:0];

  // Two bits more than the lane: a carry, and the sign of a difference.
  assign wide_a = {{2{is_signed(Dtype) && a[LaneBits-1]}}, a[LaneBits-1:0]};
  assign wide_b = {{2{is_signed(Dtype) && b[LaneBits-1]}}, b[LaneBits-1:0]};
  assign exact = fn_i == FnSub ? wide_a - wide_b : wide_a + wide_b;
  assign sum_fits = is_signed(Dtype) ? &exact[LaneBits+1:LaneBits-1] || !(|exact[LaneBits+1:LaneBits-1]) :
                                       !(|exact[LaneBits+1:LaneBits]);

  assign magnitude = 128'(partials_i.lower) + (128'(partials_i.upper) << 32);
  assign limit = is_signed(Dtype) ? MostPositive + 128'(partials_i.negative) : 128'({LaneBits{1'b1}});

  always_comb begin
    done_o = '0;
    unique case (fn_i)
      FnAnd:  result = a & b;
      FnOr:   result = a | b;
      FnXor:  result = a ^ b;
      FnNand: result = ~(a & b);
      FnNor:  result = ~(a | b);
      FnXnor: result = ~(a ^ b);
      FnMul: begin
        result = partials_i.negative ? -magnitude[63:0] : magnitude[63:0];
        done_o.flags.int_overflow = magnitude > limit;
      end
      default: begin
        result = 64'(exact[LaneBits-1:0]);
        done_o.flags.int_overflow = !sum_fits;
      end
    endcase
    done_o.lane = 64'(result[LaneBits-1:0]);
  end

  logic unused;

  assign unused = ^{partials_i, result};

endmodule
