// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Floating-point multiplier, for one type of lane.
//
// Twin:        src/arith/multiplier.rs; pipelined as src/arith/pipe.rs.
// Parameters:  Dtype     format: F16, BF16, TF32, F32, F64, E4M3 or E5M2
//              Stages    1 to 6 clock stages, cut as `cut` of src/arith/unit.rs says
//              TagWidth  bits that come out with the result
// Latency:     Stages cycles in which en_i is high, one pair a cycle; with en_i low every register holds
// Limitations: operands and result are right-justified lanes
module ws_fp_mul
  import ws_pkg::*;
#(
  parameter dtype_e      Dtype = DtF32,
  parameter int unsigned Stages = 3,
  parameter int unsigned TagWidth = 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                en_i,
  input  logic                valid_i,
  input  mode_t               mode_i,
  input  logic [TagWidth-1:0] tag_i,
  input  logic [63:0]         a_i,
  input  logic [63:0]         b_i,
  output logic                valid_o,
  output logic [TagWidth-1:0] tag_o,
  output logic [63:0]         result_o,
  output flags_t              flags_o
);

  localparam units_t Units = units_t'(1) << (32'(PathMul) * NumDtypes + 32'(Dtype));

  done_t done;

  ws_pipe #(
    .Stages(Stages),
    .Units(Units),
    .TagWidth(TagWidth)
  ) u_pipe (
    .clk_i,
    .rst_ni,
    .en_i,
    .valid_i,
    .fn_i(FnMul),
    .dtype_i(Dtype),
    .mode_i,
    .tag_i,
    .a_i,
    .b_i,
    .valid_o,
    .tag_o,
    .done_o(done)
  );

  assign result_o = done.lane;
  assign flags_o = done.flags;

endmodule
