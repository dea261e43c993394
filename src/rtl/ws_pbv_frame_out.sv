// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Puts frames of a packet engine together: messages that leave, one place each however many copies they have, and the copy that is on
// its way out, a word a cycle.
//
//   messages --> queue --> by class: the next copy, with the device of its PBV entry --> header, payload, CRC --> words
//
// Twin:        src/pbv/output.rs; `inject` and `next_word` in src/pbv/engine.rs; `Packet::encode` in src/pbv/interface/packet.rs.
// Parameters:  Places         messages that may wait, refusals included (`output` and 64)
//              Refusals       refusals that may wait; what is beyond is not sent
//              Participants   entries of the PBV table
//              Payload        words behind a header, at most
//              Early, Late    messages that may come in a cycle before the next copy is looked up, and behind that
// Latency:     an early message of cycle t can send its first word in t; a late one in t + 1
// Limitations: the CRC is made from all words at once, for the word in which it lies goes before the payload; who sends knows that
//              there is room, and that there is a route to every device; a word of 64 bits a cycle
module ws_pbv_frame_out
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Places = 16,
  parameter int unsigned Refusals = 8,
  parameter int unsigned Participants = 8,
  parameter int unsigned Payload = 4,
  parameter int unsigned Contexts = 4,
  parameter int unsigned Early = 4,
  parameter int unsigned Late = 2,
  localparam int unsigned LenBits = $clog2(Places + 2),
  localparam int unsigned PlaceBits = Places > 1 ? $clog2(Places) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
`ifdef WS_FAULTS
  input  logic [3:0]          fault_i,
`endif
  input  logic [15:0]         base_i,     // the engine's offset in its switch's space
  input  logic [15:0]         device_i [Participants],
  input  logic [Participants-1:0] engines_i,
  input  logic [7:0]          bound_i,
  input  logic                closed_i,   // the table is being written: no copy is looked up
  input  leaving_t            early_i [Early],
  input  logic [63:0]         early_word_i [Early][Payload],
  input  leaving_t            late_i [Late],
  input  logic [63:0]         late_word_i [Late][Payload],
  // A word of a frame, and whether the link takes it.
  output logic                valid_o,
  output logic [63:0]         word_o,
  output logic                head_o,
  output logic                tail_o,
  output logic [31:0]         address_o,
  input  logic                free_i,
  // Messages that wait, the one on its way out included; those that count; and whether messages of a context wait.
  output logic [LenBits-1:0]  len_o,
  output logic [LenBits-1:0]  counted_o,
  input  logic [11:0]         cc_id_i [Contexts],
  output logic [Contexts-1:0] leaving_o
);

  leaving_t           place_q [Places];
  leaving_t           place_came [Places];
  leaving_t           place_left [Places];
  leaving_t           place_d [Places];
  logic [63:0]        word_q [Places][Payload];
  logic [63:0]        word_came [Places][Payload];
  logic [63:0]        word_left [Places][Payload];
  logic [63:0]        word_d [Places][Payload];
  logic [LenBits-1:0] len_q, len_came, len_left, len_d;
  logic [LenBits-1:0] refusals_q, refusals_came, refusals_left, refusals_d;
  logic [7:0]         passed_q, passed_d;

  // The copy on its way out.
  logic               copy_q, copy;
  message_t           head_q, head;
  logic [9:0]         words_q, words, sent_q, sent;
  logic [63:0]        payload_q [Payload];
  logic [63:0]        payload [Payload];

  //////////////////
  // What is held //
  //////////////////

  always_comb begin
    counted_o = '0;
    for (int unsigned c = 0; c < Contexts; c++) leaving_o[c] = copy_q && head_q.cc_id == cc_id_i[c];
    for (int unsigned k = 0; k < Places; k++) begin
      if (k < 32'(len_q) && !is_refusal(place_q[k].send.head)) begin
        counted_o = counted_o + LenBits'(place_q[k].counts);
        for (int unsigned c = 0; c < Contexts; c++) begin
          if (place_q[k].send.head.cc_id == cc_id_i[c]) leaving_o[c] = 1'b1;
        end
      end
    end
    len_o = len_q + LenBits'(copy_q);
  end

  ////////////////////////
  // Messages that come //
  ////////////////////////

  ws_pbv_join #(
    .Places(Places),
    .Refusals(Refusals),
    .Payload(Payload),
    .Messages(Early)
  ) u_early (
    .place_i(place_q),
    .word_i(word_q),
    .len_i(len_q),
    .refusals_i(refusals_q),
    .message_i(early_i),
    .message_word_i(early_word_i),
    .place_o(place_came),
    .word_o(word_came),
    .len_o(len_came),
    .refusals_o(refusals_came)
  );

  ///////////////////
  // The next copy //
  ///////////////////

  // Entries of the PBV table that still get a copy, by place; a message that has none left goes without one when it is its turn.
  logic [Participants-1:0] wanted [Places];
  logic [Places-1:0]       ready;
  logic [2:0]              of_class [Places];
  logic                    any;
  logic [PlaceBits-1:0]    at;

  always_comb begin
    for (int unsigned k = 0; k < Places; k++) begin
      of_class[k] = place_came[k].send.head.pass[13:11];
      for (int unsigned p = 0; p < Participants; p++) begin
        wanted[k][p] = place_came[k].send.pbv[p] && device_i[p] != NoDevice && device_i[p] != place_came[k].send.skip;
      end
      ready[k] = k < 32'(len_came) && (!place_came[k].send.to_entries || wanted[k] != '0);
    end
  end

  ws_pbv_picker #(.Places(Places)) u_picker (
    .waits_i(ready),
    .class_i(of_class),
    .bound_i,
    .passed_i(passed_q),
    .any_o(any),
    .at_o(at)
  );

  leaving_t          place_looked [Places];
  logic [Places-1:0] goes;                    // places that are given back

  always_comb begin
    logic oldest, looks, found, older;

    looks = !copy_q && !closed_i;
    found = 1'b0;
    oldest = bound_i != '0 && passed_q >= bound_i;
    copy = copy_q;
    head = head_q;
    words = words_q;
    sent = sent_q;
    payload = payload_q;
    passed_d = passed_q;
    place_looked = place_came;
    refusals_left = refusals_came;
    goes = '0;
    older = 1'b0;
    for (int unsigned k = 0; k < Places; k++) begin
      // Without copies left, and ahead of the one that goes.
      if (looks && k < 32'(len_came) && !ready[k]) begin
        goes[k] = !any || (oldest ? k < 32'(at) : of_class[k] > of_class[at] || (of_class[k] == of_class[at] && k < 32'(at)));
      end
      if (k < 32'(at) && !goes[k]) older = 1'b1;
    end
    if (looks && any) begin
      copy = 1'b1;
      head = place_came[at].send.head;
      words = place_came[at].words;
      sent = '0;
      for (int unsigned k = 0; k < Payload; k++) payload[k] = word_came[at][k];
      passed_d = !older ? '0 : passed_q == '1 ? passed_q : passed_q + 8'd1;
      if (place_came[at].send.to_entries) begin
        for (int unsigned p = 0; p < Participants; p++) begin
          if (wanted[at][p] && !found) begin
            found = 1'b1;
            place_looked[at].send.pbv[p] = 1'b0;
`ifdef WS_FAULTS
            // All copies have the entry of the first participant.
            if (fault_i != 4'd10) head.p_id = 7'(p);
`else
            head.p_id = 7'(p);
`endif
            head.device = device_i[p];
            head.offset = engines_i[p] ? base_i : '0;
          end
        end
      end else begin
        goes[at] = 1'b1;
        refusals_left = refusals_came - LenBits'(is_refusal(head));
      end
    end
  end

  // Places behind those that are given back move up. What a message was split into counts for it.
  always_comb begin
    logic counts;

    place_left = place_looked;
    word_left = word_came;
    len_left = '0;
    counts = 1'b0;
    for (int unsigned k = 0; k < Places; k++) begin
      if (k < 32'(len_came)) begin
        counts = counts && !place_came[k].counts;
        if (goes[k]) begin
          counts = counts || place_came[k].counts;
        end else begin
          place_left[len_left[PlaceBits-1:0]] = place_looked[k];
          place_left[len_left[PlaceBits-1:0]].counts = place_came[k].counts || counts;
          for (int unsigned n = 0; n < Payload; n++) word_left[len_left[PlaceBits-1:0]][n] = word_came[k][n];
          len_left = len_left + LenBits'(1);
          counts = 1'b0;
        end
      end
    end
  end

  ///////////
  // Words //
  ///////////

  logic last;

  assign valid_o = copy;
  assign head_o = sent == '0;
  assign tail_o = last;
  assign address_o = {head.device, head.offset};
  assign last = sent == words + 10'd3;

  always_comb begin
    logic [3:0][63:0] header;
    logic [23:0]      crc;

    header = header_words(head, words);
    word_o = header[sent[1:0]];
    crc = CrcStart;
    if (sent >= 10'd4) begin
      word_o = '0;
      for (int unsigned k = 0; k < Payload; k++) begin
        if (sent == 10'(k + 4)) word_o = payload[k];
      end
    end else if (sent == 10'd3) begin
      for (int unsigned k = 0; k < 4; k++) crc = crc24(crc, header[k]);
      for (int unsigned k = 0; k < Payload; k++) begin
        if (k < 32'(words)) crc = crc24(crc, payload[k]);
      end
      word_o[23:0] = crc;
    end
  end

  ws_pbv_join #(
    .Places(Places),
    .Refusals(Refusals),
    .Payload(Payload),
    .Messages(Late)
  ) u_late (
    .place_i(place_left),
    .word_i(word_left),
    .len_i(len_left),
    .refusals_i(refusals_left),
    .message_i(late_i),
    .message_word_i(late_word_i),
    .place_o(place_d),
    .word_o(word_d),
    .len_o(len_d),
    .refusals_o(refusals_d)
  );

  logic goes_on;

`ifdef WS_FAULTS
  // A word goes that the link did not take.
  assign goes_on = copy && (free_i || (fault_i == 4'd11 && sent == 10'd3));
`else
  assign goes_on = copy && free_i;
`endif

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned k = 0; k < Places; k++) begin
        place_q[k] <= '0;
        for (int unsigned n = 0; n < Payload; n++) word_q[k][n] <= '0;
      end
      len_q <= '0;
      refusals_q <= '0;
      passed_q <= '0;
      copy_q <= 1'b0;
      head_q <= '0;
      words_q <= '0;
      sent_q <= '0;
      for (int unsigned n = 0; n < Payload; n++) payload_q[n] <= '0;
    end else begin
      place_q <= place_d;
      word_q <= word_d;
      len_q <= len_d;
      refusals_q <= refusals_d;
      passed_q <= passed_d;
      copy_q <= copy && !(goes_on && last);
      head_q <= head;
      words_q <= words;
      sent_q <= goes_on ? sent + 10'd1 : sent;
      payload_q <= payload;
    end
  end

endmodule
