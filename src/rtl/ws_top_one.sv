// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Position of the highest bit that is set, as a tree of multiplexers.
//
// Twin:        `leading_zeros` where src/arith uses it.
// Parameters:  Width  bits of the input
// Latency:     none, combinational: ceil(log2 Width) levels
module ws_top_one #(
  parameter int unsigned Width = 8,
  localparam int unsigned Levels = Width > 1 ? $clog2(Width) : 1
) (
  input  logic [Width-1:0]  data_i,
  output logic [Levels-1:0] position_o,
  output logic              any_o
);

  localparam int unsigned Leaves = 1 << Levels;

  // Node n has the children 2n and 2n + 1; the root is node 1, the leaves are the input's bits.
  logic [2*Leaves-1:0]             any_at   /* verilator split_var */;
  logic [2*Leaves-1:0][Levels-1:0] place_at /* verilator split_var */;

  assign any_at[0] = 1'b0;
  assign place_at[0] = '0;

  for (genvar leaf = 0; leaf < Leaves; leaf++) begin : gen_leaf
    if (leaf < Width) begin : gen_bit
      assign any_at[Leaves + leaf] = data_i[leaf];
    end else begin : gen_none
      assign any_at[Leaves + leaf] = 1'b0;
    end
    assign place_at[Leaves + leaf] = Levels'(leaf);
  end

  for (genvar node = 1; node < Leaves; node++) begin : gen_node
    assign any_at[node] = any_at[2*node + 1] | any_at[2*node];
    assign place_at[node] = any_at[2*node + 1] ? place_at[2*node + 1] : place_at[2*node];
  end

  logic unused;

  assign unused = ^{any_at[0], place_at[0]};
  assign any_o = any_at[1];
  assign position_o = place_at[1];

endmodule
