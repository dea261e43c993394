// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A single pipelined unit: one pair of lanes in, one lane out, every cycle.
//
// Twin:        `Pipe` of src/arith/pipe.rs.
// Parameters:  Stages    1 to 6 clock stages
//              Units     datapaths it has
//              TagWidth  bits that come out with the result
// Latency:     Stages cycles in which en_i is high; with en_i low every register holds
// Limitations: one lane; ws_unit does the lanes of a word
module ws_pipe
  import ws_pkg::*;
#(
  parameter int unsigned Stages = 3,
  parameter units_t      Units = '1,
  parameter int unsigned TagWidth = 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                en_i,
  input  logic                valid_i,
  input  fn_e                 fn_i,
  input  dtype_e              dtype_i,
  input  mode_t               mode_i,
  input  logic [TagWidth-1:0] tag_i,
  input  logic [63:0]         a_i,
  input  logic [63:0]         b_i,
  output logic                valid_o,
  output logic [TagWidth-1:0] tag_o,
  output done_t               done_o
);

  ctrl_t               ctrl_q [Stages];
  logic [TagWidth-1:0] tag_q [Stages];
  ctrl_t               ctrl [Stages];
  logic [TagWidth-1:0] tag [Stages];
  ctrl_t               load [Stages];

  for (genvar s = 0; s < Stages; s++) begin : gen_stage
    if (s == 0) begin : gen_door
      assign ctrl[s] = '{valid: valid_i, fn: fn_i, dtype: dtype_i, mode: mode_i};
      assign tag[s] = tag_i;
    end else begin : gen_next
      assign ctrl[s] = ctrl_q[s-1];
      assign tag[s] = tag_q[s-1];
    end

    always_comb begin
      load[s] = ctrl[s];
      load[s].valid = ctrl[s].valid && en_i;
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        ctrl_q[s] <= '0;
        tag_q[s] <= '0;
      end else if (en_i) begin
        ctrl_q[s].valid <= ctrl[s].valid;
        if (ctrl[s].valid) begin
          ctrl_q[s] <= ctrl[s];
          tag_q[s] <= tag[s];
        end
      end
    end
  end

  ws_lane #(
    .Stages(Stages),
    .Units(Units),
    .Lane(0)
  ) u_lane (
    .clk_i,
    .rst_ni,
    .ctrl_i(load),
    .a_i,
    .b_i,
    .done_o
  );

  assign valid_o = ctrl_q[Stages-1].valid && en_i;
  assign tag_o = tag_q[Stages-1];

  // The last stage tells no segment what to do.
  logic unused;

  assign unused = ^ctrl_q[Stages-1];

endmodule
