// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A two-input unit of a reduction tree: the lanes of a word, or a lone operand that passes.
//
// Twin:        `UnitStages<Unit>` of src/arith/stages/mod.rs.
// Parameters:  Stages    1 to 6 clock stages
//              Units     datapaths it has
//              TagWidth  bits that come out with the result
// Latency:     Stages cycles, for every operation and type
// Registers:   every one but valid loads with a valid input only, else holds; all are zero after reset
// Limitations: operations of four words an operand are not for this unit
module ws_unit
  import ws_pkg::*;
#(
  parameter int unsigned Stages = 3,
  parameter units_t      Units = '1,
  parameter int unsigned TagWidth = 64
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  op_e                 op_i,
  input  dtype_e              dtype_i,
  input  mode_t               mode_i,
  input  logic [TagWidth-1:0] tag_i,
  input  logic                a_valid_i,
  input  logic [63:0]         a_i,
  input  logic                b_valid_i,
  input  logic [63:0]         b_i,
  output logic                valid_o,
  output logic [63:0]         word_o,
  output flags_t              flags_o   // of this unit alone
);

  localparam int unsigned MaxLanes = 8;
  localparam int unsigned Lanes = lanes_in_use(Units);

  // Registers behind each clock stage.
  logic                valid_q [Stages];
  logic                joined_q [Stages];
  op_e                 op_q [Stages];
  dtype_e              dtype_q [Stages];
  mode_t               mode_q [Stages];
  logic [TagWidth-1:0] tag_q [Stages];
  logic [63:0]         passed_q [Stages];

  // What enters each clock stage.
  logic                valid [Stages];
  logic                joined [Stages];
  op_e                 op [Stages];
  dtype_e              dtype [Stages];
  mode_t               mode [Stages];
  logic [TagWidth-1:0] tag [Stages];
  logic [63:0]         passed [Stages];
  ctrl_t               ctrl [Stages];

  for (genvar s = 0; s < Stages; s++) begin : gen_stage
    if (s == 0) begin : gen_door
      assign valid[s] = a_valid_i || b_valid_i;
      assign joined[s] = a_valid_i && b_valid_i;
      assign op[s] = op_i;
      assign dtype[s] = dtype_i;
      assign mode[s] = mode_i;
      assign tag[s] = tag_i;
      assign passed[s] = a_valid_i ? a_i : b_i;
    end else begin : gen_next
      assign valid[s] = valid_q[s-1];
      assign joined[s] = joined_q[s-1];
      assign op[s] = op_q[s-1];
      assign dtype[s] = dtype_q[s-1];
      assign mode[s] = mode_q[s-1];
      assign tag[s] = tag_q[s-1];
      assign passed[s] = passed_q[s-1];
    end

    assign ctrl[s] = '{
      valid: valid[s] && joined[s],
      fn: fn_of(op[s]),
      dtype: dtype_of(op[s], dtype[s]),
      mode: mode[s]
    };

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        valid_q[s] <= 1'b0;
        joined_q[s] <= 1'b0;
        op_q[s] <= OpSum;
        dtype_q[s] <= DtI32;
        mode_q[s] <= '0;
        tag_q[s] <= '0;
        passed_q[s] <= '0;
      end else begin
        valid_q[s] <= valid[s];
        if (valid[s]) begin
          joined_q[s] <= joined[s];
          op_q[s] <= op[s];
          dtype_q[s] <= dtype[s];
          mode_q[s] <= mode[s];
          tag_q[s] <= tag[s];
          if (!joined[s]) passed_q[s] <= passed[s];
        end
      end
    end
  end

  done_t done [MaxLanes];

  for (genvar k = 0; k < MaxLanes; k++) begin : gen_lane
    if (k < Lanes) begin : gen_there
      logic [63:0] a, b;

      // The lane, right-justified.
      always_comb begin
        unique case (lane_bits(ctrl[0].dtype))
          64:      {a, b} = {a_i, b_i};
          32:      {a, b} = {64'(a_i[(32*k)%64 +: 32]), 64'(b_i[(32*k)%64 +: 32])};
          16:      {a, b} = {64'(a_i[(16*k)%64 +: 16]), 64'(b_i[(16*k)%64 +: 16])};
          default: {a, b} = {64'(a_i[8*k +: 8]), 64'(b_i[8*k +: 8])};
        endcase
      end

      ws_lane #(
        .Stages(Stages),
        .Units(Units),
        .Lane(k)
      ) u_lane (
        .clk_i,
        .rst_ni,
        .ctrl_i(ctrl),
        .a_i(a),
        .b_i(b),
        .done_o(done[k])
      );
    end else begin : gen_none
      assign done[k] = '0;
    end
  end

  // Lanes side by side again.
  dtype_e last_dtype;

  assign last_dtype = dtype_of(op_q[Stages-1], dtype_q[Stages-1]);
  assign valid_o = valid_q[Stages-1];

  always_comb begin
    word_o = passed_q[Stages-1];
    flags_o = '0;
    if (joined_q[Stages-1]) begin
      unique case (lane_bits(last_dtype))
        64:      word_o = done[0].lane;
        32:      word_o = {done[1].lane[31:0], done[0].lane[31:0]};
        16:      word_o = {done[3].lane[15:0], done[2].lane[15:0], done[1].lane[15:0], done[0].lane[15:0]};
        default: word_o = {done[7].lane[7:0], done[6].lane[7:0], done[5].lane[7:0], done[4].lane[7:0],
                           done[3].lane[7:0], done[2].lane[7:0], done[1].lane[7:0], done[0].lane[7:0]};
      endcase
      for (int unsigned k = 0; k < MaxLanes; k++) begin
        if ((k + 1) * lane_bits(last_dtype) <= 64) flags_o |= done[k].flags;
      end
    end
  end

  // The last stage's tag and mode are for who looks at the registers.
  logic unused;

  assign unused = ^{tag_q[Stages-1], mode_q[Stages-1]};

endmodule
