// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Messages that join the output queue of a packet engine, one behind the other.
//
// Twin:        `OutputQueue::push` in src/pbv/output.rs.
// Parameters:  Places     messages that may wait, refusals included
//              Refusals   refusals that may wait; what is beyond is not sent
//              Payload    words behind a header, at most
//              Messages   that may join in a cycle
// Latency:     none
// Limitations: who sends knows that there is room
module ws_pbv_join
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Places = 16,
  parameter int unsigned Refusals = 8,
  parameter int unsigned Payload = 4,
  parameter int unsigned Messages = 2,
  localparam int unsigned LenBits = $clog2(Places + 2),
  localparam int unsigned PlaceBits = Places > 1 ? $clog2(Places) : 1
) (
  input  leaving_t           place_i [Places],
  input  logic [63:0]        word_i [Places][Payload],
  input  logic [LenBits-1:0] len_i,
  input  logic [LenBits-1:0] refusals_i,
  input  leaving_t           message_i [Messages],
  input  logic [63:0]        message_word_i [Messages][Payload],
  output leaving_t           place_o [Places],
  output logic [63:0]        word_o [Places][Payload],
  output logic [LenBits-1:0] len_o,
  output logic [LenBits-1:0] refusals_o
);

  always_comb begin
    place_o = place_i;
    word_o = word_i;
    len_o = len_i;
    refusals_o = refusals_i;
    for (int unsigned n = 0; n < Messages; n++) begin
      if (message_i[n].send.valid && 32'(len_o) < Places &&
          !(is_refusal(message_i[n].send.head) && 32'(refusals_o) >= Refusals)) begin
        place_o[len_o[PlaceBits-1:0]] = message_i[n];
        place_o[len_o[PlaceBits-1:0]].counts = 1'b1;
        // A part of a message that was split counts with the part before it.
        if (len_o != '0 && has_parts(message_i[n].send.head) &&
            place_o[PlaceBits'(len_o - LenBits'(1))].send.head.message == message_i[n].send.head.message &&
            place_o[PlaceBits'(len_o - LenBits'(1))].send.head.cc_id == message_i[n].send.head.cc_id) begin
          place_o[len_o[PlaceBits-1:0]].counts = 1'b0;
        end
        for (int unsigned k = 0; k < Payload; k++) word_o[len_o[PlaceBits-1:0]][k] = message_word_i[n][k];
        refusals_o = refusals_o + LenBits'(is_refusal(message_i[n].send.head));
        len_o = len_o + LenBits'(1);
      end
    end
  end

endmodule
