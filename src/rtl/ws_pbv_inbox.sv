// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Messages that were checked and wait for the collective engine, in the order of their traffic class.
//
// Twin:        `inbox` and `picker` of src/pbv/engine.rs; src/pbv/priority.rs.
// Parameters:  Messages   how many may wait (`inbox` counts their flits)
//              Words      words of a message, at most
//              Ports      messages that may come in a cycle, the first port's first
// Latency:     what comes in cycle t can be taken in t + 1
// Limitations: who takes frames off the link counts their flits: a message that finds no place is lost
module ws_pbv_inbox
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Messages = 8,
  parameter int unsigned Words = 4,
  parameter int unsigned Ports = 2,
  localparam int unsigned LenBits = $clog2(Messages + 1),
  localparam int unsigned PlaceBits = Messages > 1 ? $clog2(Messages) : 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
`ifdef WS_FAULTS
  input  logic [3:0]         fault_i,
`endif
  input  logic [7:0]         bound_i,
  input  logic [Ports-1:0]   push_i,
  input  message_t           head_i [Ports],
  input  record_t            record_i [Ports],
  input  logic [Ports-1:0]   own_i,
  input  logic [63:0]        word_i [Ports][Words],
  // What would go next, and that it goes.
  output logic               any_o,
  output message_t           head_o,
  output record_t            record_o,
  output logic               own_o,
  output logic [63:0]        word_o [Words],
  input  logic               pop_i,
  output logic [LenBits-1:0] len_o
);

  typedef struct packed {
    logic [Words-1:0][63:0] word;
    logic                   own;
    record_t                stored;
    message_t               head;
  } place_t;

  place_t               place_q [Messages];
  place_t               place_d [Messages];
  logic [LenBits-1:0]   len_q, len_d;
  logic [7:0]           passed_q;
  logic [Messages-1:0]  waits;
  logic [2:0]           of_class [Messages];
  logic [PlaceBits-1:0] at;
  place_t               next;

  always_comb begin
    for (int unsigned k = 0; k < Messages; k++) begin
      waits[k] = k < 32'(len_q);
      of_class[k] = place_q[k].head.pass[13:11];
    end
  end

  ws_pbv_picker #(.Places(Messages)) u_picker (
    .waits_i(waits),
    .class_i(of_class),
`ifdef WS_FAULTS
    // The oldest waits as long as others come.
    .bound_i(fault_i == 4'd9 ? '0 : bound_i),
`else
    .bound_i,
`endif
    .passed_i(passed_q),
    .any_o,
    .at_o(at)
  );

  assign next = place_q[at];
  assign head_o = next.head;
  assign record_o = next.stored;
  assign own_o = next.own;
  assign len_o = len_q;

  always_comb for (int unsigned k = 0; k < Words; k++) word_o[k] = next.word[k];

  always_comb begin
    len_d = len_q - LenBits'(pop_i);
    for (int unsigned k = 0; k < Messages; k++) begin
      place_d[k] = pop_i && k >= 32'(at) && k + 1 < Messages ? place_q[(k + 1) % Messages] : place_q[k];
    end
    for (int unsigned p = 0; p < Ports; p++) begin
      if (push_i[p] && 32'(len_d) < Messages) begin
        for (int unsigned k = 0; k < Messages; k++) begin
          if (k == 32'(len_d)) begin
            for (int unsigned n = 0; n < Words; n++) place_d[k].word[n] = word_i[p][n];
            place_d[k].own = own_i[p];
            place_d[k].stored = record_i[p];
            place_d[k].head = head_i[p];
          end
        end
        len_d = len_d + LenBits'(1);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned k = 0; k < Messages; k++) place_q[k] <= '0;
      len_q <= '0;
      passed_q <= '0;
    end else begin
      place_q <= place_d;
      len_q <= len_d;
      if (pop_i) passed_q <= at == '0 ? '0 : passed_q == '1 ? passed_q : passed_q + 8'd1;
    end
  end

endmodule
