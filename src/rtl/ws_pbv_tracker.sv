// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The tracking store of a packet engine: who has not answered, and the read-modify-write pipeline over it.
//
//   operation --> read PBV, p_count --> clear, decrement --> write --> verdict
//                        ^   +------ forwarding ------+        |
//                        +----------- tracking store <---------+
//
// Twin:        src/pbv/tracking.rs.
// Parameters:  Contexts   entries of the store, 1 to 4095 (`contexts`)
//              Forward    1: what is about to be written is used in place of what was read (`hazard = "forward"`); 0: who issues
//                         waits until ready_o (`hazard = "interlock"`)
//              LabelBits  what goes with an operation and means nothing here: type of message, context, run, generation
// Latency:     an operation that is offered in cycle t reads the store in t, is changed in t + 1 and written in t + 2, where its
//              verdict is there too; one operation a cycle
// Registers:   data of a stage load with a valid operation only, else hold; the whole store is zero after reset
// Limitations: the store is flip-flops with one read and one write port; a reset of an entry is a load
module ws_pbv_tracker
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Contexts = 64,
  parameter bit          Forward = 1'b1,
  parameter int unsigned LabelBits = 84,
  localparam int unsigned SlotBits = Contexts > 1 ? $clog2(Contexts) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 valid_i,
  input  track_op_e            op_i,
  input  logic [SlotBits-1:0]  slot_i,
  input  logic [6:0]           responder_i,  // of a clear or a begin
  input  track_t               load_i,       // of a load or a begin
  input  logic [LabelBits-1:0] label_i,
  // The entry that ready_o and holds_o are about.
  input  logic [SlotBits-1:0]  asked_i,
  // Whether an operation on this entry can be taken in this cycle.
  output logic                 ready_o,
  // Whether an operation on this entry is in the pipeline.
  output logic                 holds_o,
  // Messages whose verdict is awaited.
  output logic [1:0]           awaited_o,
  // What was offered two cycles ago.
  output logic                 valid_o,
  output track_op_e            op_o,
  output logic [SlotBits-1:0]  slot_o,
  output logic [LabelBits-1:0] label_o,
  output track_t               track_o,      // the entry as it is written
  output verdict_e             verdict_o
);

  typedef struct packed {
    track_op_e            op;
    logic [SlotBits-1:0]  slot;
    logic [6:0]           responder;
    track_t               load;
    logic [LabelBits-1:0] tag;
  } request_t;

  track_t store_q [Contexts];

  // What was read, and is changed in this cycle.
  logic     read_valid_q;
  request_t read_request_q;
  track_t   read_track_q;
  forward_e read_forward_q;

  // What was changed, and is written in this cycle.
  logic     write_valid_q;
  request_t write_request_q;
  track_t   write_read_q;
  track_t   write_used_q;
  track_t   write_track_q;
  forward_e write_forward_q;
  verdict_e write_verdict_q;

  // Read.
  request_t request;
  logic     through;
  track_t   read;

  assign request = '{op: op_i, slot: slot_i, responder: responder_i, load: load_i, tag: label_i};
  assign through = Forward && write_valid_q && write_request_q.slot == slot_i;
  assign read = through ? write_track_q : store_q[slot_i];

  // Change.
  logic     ahead;
  track_t   used, old, changed;
  verdict_e verdict;
  logic     there;

`ifdef WS_FAULT_HAZARD
  // What the operation ahead is writing is overlooked.
  assign ahead = 1'b0;
`else
  assign ahead = Forward && write_valid_q && write_request_q.slot == read_request_q.slot;
`endif
  assign used = ahead ? write_track_q : read_track_q;
  assign old = read_request_q.op == TrackClear ? used : read_request_q.load;
  assign there = old.pbv[read_request_q.responder];

  always_comb begin
    changed = old;
    verdict = VerdictAccepted;
    if (read_request_q.op == TrackLoad) begin
      if (old.pbv == '0) verdict = VerdictSatisfied;
    end else if (!there) begin
      verdict = VerdictDuplicate;
    end else if (old.p_count == '0) begin
      verdict = VerdictCountZero;
    end else begin
      changed.pbv[read_request_q.responder] = 1'b0;
      changed.p_count = old.p_count - 16'd1;
      if (changed == '0) verdict = VerdictSatisfied;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_valid_q <= 1'b0;
      read_request_q <= '0;
      read_track_q <= '0;
      read_forward_q <= ForwardNone;
      write_valid_q <= 1'b0;
      write_request_q <= '0;
      write_read_q <= '0;
      write_used_q <= '0;
      write_track_q <= '0;
      write_forward_q <= ForwardNone;
      write_verdict_q <= VerdictNone;
      for (int unsigned k = 0; k < Contexts; k++) store_q[k] <= '0;
    end else begin
      read_valid_q <= valid_i;
      if (valid_i) begin
        read_request_q <= request;
        read_track_q <= read;
        read_forward_q <= through ? ForwardThrough : ForwardNone;
      end
      write_valid_q <= read_valid_q;
      if (read_valid_q) begin
        write_request_q <= read_request_q;
        write_read_q <= read_track_q;
        write_used_q <= used;
        write_track_q <= changed;
        write_forward_q <= ahead ? ForwardAhead : read_forward_q;
        write_verdict_q <= verdict;
      end
      if (write_valid_q) store_q[write_request_q.slot] <= write_track_q;
    end
  end

  // Without forwarding nothing enters whose entry is in the pipeline.
  assign holds_o = (read_valid_q && read_request_q.slot == asked_i) || (write_valid_q && write_request_q.slot == asked_i);
  assign ready_o = Forward || !holds_o;
  assign awaited_o = 2'(read_valid_q && read_request_q.op != TrackLoad) + 2'(write_valid_q && write_request_q.op != TrackLoad);
  assign valid_o = write_valid_q;
  assign op_o = write_request_q.op;
  assign slot_o = write_request_q.slot;
  assign label_o = write_request_q.tag;
  assign track_o = write_track_q;
  assign verdict_o = write_verdict_q;

  // What only waves show.
  logic unused;

  assign unused = ^{write_request_q, write_read_q, write_used_q, write_forward_q};

endmodule
