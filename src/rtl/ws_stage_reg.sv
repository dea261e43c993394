// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A register that may or may not be there: what lies between two segments of a unit.
//
// Twin:        the place behind a segment in src/arith/stages/mod.rs.
// Parameters:  Width    bits
//              Present  1: a register that loads when load_i is high, else holds, and is zero after reset; 0: a wire
// Latency:     Present cycles
module ws_stage_reg #(
  parameter int unsigned Width = 1,
  parameter bit Present = 1'b1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             load_i,
  input  logic [Width-1:0] d_i,
  output logic [Width-1:0] q_o
);

  if (Present) begin : gen_reg
    logic [Width-1:0] data_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        data_q <= '0;
      end else if (load_i) begin
        data_q <= d_i;
      end
    end

    assign q_o = data_q;
  end else begin : gen_wire
    logic unused;

    assign unused = ^{clk_i, rst_ni, load_i};
    assign q_o = d_i;
  end

endmodule
