// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The pipelined reduction tree: up to 64 words in fixed port order, one word out, a wave of operands every cycle.
//
//   port   0   1   2   3   4   5   6   7   8   9            Radix 10, four levels
//          \   /   \   /   \   /   \   /   \   /
//  level 0  (0)     (1)     (2)     (3)     (4)            each node: UnitStages registers
//             \     /         \     /        |
//  level 1      (0)             (1)         (2)            a node without partner passes its word on
//                  \           /             |
//  level 2              (0)                 (1)
//                          \               /
//  level 3                        (0) -------------------> value, flags, tag
//
// Twin:        `TreeStages` of src/arith/stages/tree.rs, the registers of `Tree` of src/arith/tree.rs.
// Parameters:  Radix       leaves, 2 to 64
//              UnitStages  cycles a level takes, 1 to 6
//              Units       datapaths of every node
//              TagWidth    bits that come out with the result
// Latency:     ceil(log2 Radix) x UnitStages cycles, for every operation, type and set of ports
// Limitations: never stops: who starts a wave keeps a place for its result. Absent ports leave their node to the other operand;
//              no operand, or a barrier, gives a zero word
module ws_reduce_tree
  import ws_pkg::*;
#(
  parameter int unsigned Radix = 10,
  parameter int unsigned UnitStages = 3,
  parameter units_t      Units = '1,
  parameter int unsigned TagWidth = 64
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                valid_i,
  input  op_e                 op_i,
  input  dtype_e              dtype_i,
  input  mode_t               mode_i,
  input  flags_t              flags_i,    // union of those that came with the operands
  input  logic [TagWidth-1:0] tag_i,
  input  logic [Radix-1:0]    present_i,  // ports that bring a word
  input  logic [63:0]         word_i [Radix],
  output logic                valid_o,
  output logic [63:0]         value_o,
  output flags_t              flags_o,
  output logic [TagWidth-1:0] tag_o
);

  localparam int unsigned Levels = $clog2(Radix);

  // What goes with a wave of operands, whatever its units do.
  typedef struct packed {
    logic                valid;
    op_e                 op;
    dtype_e              dtype;
    mode_t               mode;
    logic [TagWidth-1:0] tag;
    flags_t              flags;
  } control_t;

  // What enters each level: its control, and the words of its nodes' inputs.
  control_t    into [Levels+1];
  logic        present [Levels+1][Radix+1];
  logic [63:0] word [Levels+1][Radix+1];

  assign into[0] = '{valid: valid_i, op: op_i, dtype: dtype_i, mode: mode_i, tag: tag_i, flags: flags_i};

  for (genvar port = 0; port <= Radix; port++) begin : gen_port
    if (port < Radix) begin : gen_there
      // A barrier has no data.
      assign present[0][port] = valid_i && has_data(op_i) && present_i[port];
      assign word[0][port] = word_i[port];
    end else begin : gen_none
      assign present[0][port] = 1'b0;
      assign word[0][port] = '0;
    end
  end

  for (genvar l = 0; l < Levels; l++) begin : gen_level
    localparam int unsigned Nodes = (Radix + (2 << l) - 1) / (2 << l);

    control_t control_q [UnitStages];
    flags_t   raised [Nodes];
    flags_t   flags;

    for (genvar s = 0; s < UnitStages; s++) begin : gen_stage
      control_t control;

      if (s == 0) begin : gen_door
        assign control = into[l];
      end else begin : gen_next
        assign control = control_q[s-1];
      end

      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) begin
          control_q[s] <= '0;
        end else begin
          control_q[s].valid <= control.valid;
          if (control.valid) control_q[s] <= control;
        end
      end
    end

    for (genvar n = 0; n < Nodes; n++) begin : gen_unit
      flags_t own;

      ws_unit #(
        .Stages(UnitStages),
        .Units(Units),
        .TagWidth(TagWidth)
      ) u_unit (
        .clk_i,
        .rst_ni,
        .op_i(into[l].op),
        .dtype_i(into[l].dtype),
        .mode_i(into[l].mode),
        .tag_i(into[l].tag),
        .a_valid_i(present[l][2*n]),
        .a_i(word[l][2*n]),
        .b_valid_i(present[l][2*n + 1]),
        .b_i(word[l][2*n + 1]),
        .valid_o(present[l+1][n]),
        .word_o(word[l+1][n]),
        .flags_o(own)
      );

      assign raised[n] = present[l+1][n] ? own : '0;
    end

    // The last node of an odd number has no partner above.
    for (genvar n = Nodes; n <= Radix; n++) begin : gen_none
      assign present[l+1][n] = 1'b0;
      assign word[l+1][n] = '0;
    end

    always_comb begin
      flags = control_q[UnitStages-1].flags;
      for (int unsigned n = 0; n < Nodes; n++) flags |= raised[n];
      into[l+1] = control_q[UnitStages-1];
      into[l+1].flags = flags;
    end
  end

  assign valid_o = into[Levels].valid;
  assign value_o = present[Levels][0] ? word[Levels][0] : '0;
  assign flags_o = into[Levels].flags;
  assign tag_o = into[Levels].tag;

  // Who takes the result knows its operation.
  logic unused;

  assign unused = ^into[Levels];

endmodule
