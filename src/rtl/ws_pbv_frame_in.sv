// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Takes frames of a packet engine apart: a word a cycle goes in, and with the last one the frame is checked and led to its unit.
//
//   words --> CRC, header, records, lists: looked at as they come --> with the last word: collective engine, registers, or refused
//
// Twin:        src/pbv/checker.rs; `Packet::decode` in src/pbv/interface/packet.rs, `take` in src/pbv/interface/packet/records.rs.
// Parameters:  Words    words of a message that are kept, at most; of a longer one the number is right
//              Levels   engines above each other that one initialisation sets up, at most, the lowest left out
// Latency:     none: the message stands at the output in the cycle in which its last word is taken
// Limitations: a word of 64 bits a cycle. Of initialisations only the record of this engine is kept, of configurations nothing; both
//              are checked. Of lists of devices it is said that they are there
module ws_pbv_frame_in
  import ws_pkg::*;
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Words = 4,
  parameter int unsigned Levels = 8
) (
  input  logic        clk_i,
  input  logic        rst_ni,
`ifdef WS_FAULTS
  input  logic [3:0]  fault_i,
`endif
  input  logic [15:0] device_i,    // the engine's address
  input  logic [15:0] base_i,
  input  logic        take_i,
  input  logic [63:0] word_i,
  input  logic        tail_i,
  // A whole frame is there: for the collective engine, for the registers, or refused. Who sent it is known if it could be read.
  output logic        message_o,
  output logic        registers_o,
  output logic        refused_o,
  output logic        readable_o,
  output status_e     status_o,
  output message_t    head_o,
  output logic        own_o,       // of an initialisation: it has a record of this engine
  output record_t     record_o,
  output logic [63:0] word_o [Words]
);

  localparam int unsigned DepthBits = $clog2(Levels + 1);
  localparam int unsigned LevelBits = Levels > 1 ? $clog2(Levels) : 1;
  localparam logic [9:0] Most = 10'd1023;

  logic [9:0]           at_q, at_d;            // words that are there
  logic [3:0][63:0]     header_q, header_d;
  logic [23:0]          crc_q, crc_d;
  logic                 wrong_q, wrong_d;      // the payload cannot be what it says
  logic [63:0]          word_q [Words];
  logic [63:0]          word_d [Words];

  // The record that words belong to: how many of them are there, how many it has, and words that are looked at again.
  logic [7:0]           in_q, in_d, length_q, length_d;
  logic [63:0]          part_q [7];
  logic [63:0]          part_d [7];
  // Records before, and where those below the ones around end.
  logic [9:0]           record_q, record_d;
  logic [16:0]          end_q [Levels];
  logic [16:0]          end_d [Levels];
  logic [DepthBits-1:0] depth_q, depth_d;
  logic [16:0]          last_q, last_d;        // where those that have none around end
  logic                 own_q, own_d;
  record_t              own_record_q, own_record_d;
  // Padding behind a list of devices.
  logic [2:0]           pads_q, pads_d;

  message_t             head;
  logic                 is_list;
  // The record as it is with this word.
  record_t              this_record;
  logic                 second, told;
  logic [15:0]          entries;

  assign head = header_of(header_d);
  assign is_list = head.message == MessageError || head.message == MessageFailure;

  // Fields of records, as the words have brought them.
  assign second = part_d[2][60];
  assign told = part_d[1][50];
  assign entries = part_d[1][47:32];

  always_comb begin
    this_record = '0;
    this_record.track.pbv = pbv_of(part_d[3], part_d[4]);
    this_record.track.p_count = part_d[0][47:32];
    this_record.down = second ? pbv_of(part_d[5], part_d[6]) : this_record.track.pbv;
    this_record.words = part_d[0][31:16];
    this_record.initial_valid = part_d[2][56];
    this_record.initial_word = part_d[1];
    this_record.pbv_order = part_d[2][57];
    this_record.rearm = part_d[2][58];
    this_record.answer_source = part_d[2][59];
    this_record.master = part_d[2][61];
    this_record.to_source = part_d[2][62];
    this_record.count = part_d[2][55:48];
    this_record.groups = this_record.count != '0;
    this_record.first = part_d[2][47:32];
    this_record.above = part_d[2][31:16];
    this_record.collector = part_d[2][15:0];
  end

  logic                 payload;
  logic [9:0]           of_payload;

  assign payload = take_i && at_q >= 10'd4;
  assign of_payload = at_q - 10'd4;

  // What comes in this cycle, apart from what it means.
  always_comb begin
    at_d = at_q == Most ? Most : at_q + 10'd1;
    header_d = header_q;
    if (at_q < 10'd4) header_d[at_q[1:0]] = word_i;
    crc_d = crc24(at_q == '0 ? CrcStart : crc_q, at_q == 10'd3 ? {word_i[63:24], 24'd0} : word_i);
`ifdef WS_FAULTS
    // The upper half of the last word of a header does not count.
    if (fault_i == 4'd8 && at_q == 10'd3) crc_d = crc24(crc_q, {32'd0, word_i[31:24], 24'd0});
`endif
    word_d = word_q;
    for (int unsigned k = 0; k < Words; k++) begin
      if (payload && of_payload == 10'(k)) word_d[k] = word_i;
    end
    part_d = part_q;
    if (payload && in_q < 8'd7) part_d[in_q[2:0]] = word_i;
  end

  // What it means.
  always_comb begin
    logic [16:0]          ends, around;
    logic [DepthBits-1:0] depth;
    logic [15:0]          bytes;
    logic                 over;

    wrong_d = at_q == '0 ? 1'b0 : wrong_q;
    in_d = '0;
    length_d = length_q;
    record_d = at_q == '0 ? '0 : record_q;
    end_d = end_q;
    depth_d = at_q == '0 ? '0 : depth_q;
    last_d = at_q == '0 ? '0 : last_q;
    own_d = at_q == '0 ? 1'b0 : own_q;
    own_record_d = own_record_q;
    pads_d = at_q == '0 ? '0 : pads_q;
    ends = 17'(record_q) + 17'd1 + 17'(word_i[15:0]);
    around = '1;
    depth = '0;
    bytes = '0;
    over = 1'b0;
    if (payload && head.message == MessageInitialisation) begin
      if (in_q == '0) begin
        // Those around that are not over.
        for (int unsigned n = 0; n < Levels; n++) begin
          if (n < 32'(depth_q) && end_q[n] > 17'(record_q)) begin
            depth = DepthBits'(n + 1);
            around = end_q[n];
          end
        end
        if (ends > around) wrong_d = 1'b1;
        if (depth == '0 && ends > last_q) last_d = ends;
        if (word_i[15:0] != '0) begin
          if (32'(depth) == Levels) begin
            wrong_d = 1'b1;
          end else begin
            end_d[depth[LevelBits-1:0]] = ends;
            depth = depth + DepthBits'(1);
          end
        end
        depth_d = depth;
        length_d = 8'd5;
      end
      if (in_q == 8'd2) length_d = second ? 8'd7 : 8'd5;
      over = in_q + 8'd1 == length_d;
      if (over) begin
        if (part_d[2][63] || (!part_d[2][56] && part_d[1] != '0) || this_record.count == 8'd1 ||
            (this_record.count == '0 && this_record.first != '0) ||
            17'(this_record.first) + 17'(this_record.count) > 17'd4096 ||
            this_record.track.p_count != 16'($countones(this_record.track.pbv)) ||
            (second && this_record.down == this_record.track.pbv)) wrong_d = 1'b1;
        if (!own_q && part_d[0][63:48] == device_i) begin
          own_d = 1'b1;
          own_record_d = this_record;
        end
        record_d = record_q + 10'd1;
      end
      in_d = over ? '0 : in_q + 8'd1;
    end else if (payload && head.message == MessageConfiguration) begin
      if (in_q == '0) length_d = 8'd5;
      if (in_q == 8'd1) begin
        length_d = (told ? 8'd7 : 8'd5) + 8'((entries + 16'd3) >> 2);
        bytes = part_q[0][47:32];
        if (entries > 16'd128 || part_d[1][55:48] > 8'd7 || bytes != {5'd0, length_d, 3'd0}) wrong_d = 1'b1;
      end
      if (in_q == 8'd4 && entries < 16'd128 && (this_record.track.pbv >> entries[6:0]) != '0) wrong_d = 1'b1;
      if (in_q == 8'd6 && told && word_i[31:0] != '0) wrong_d = 1'b1;
      // Behind the last entry there are zeros.
      if (in_q >= (told ? 8'd7 : 8'd5)) begin
        for (int unsigned k = 0; k < 4; k++) begin
          if (16'({in_q - (told ? 8'd7 : 8'd5), 2'd0}) + 16'(k) >= entries && word_i[63-16*k -: 16] != '0) wrong_d = 1'b1;
        end
      end
      over = in_q + 8'd1 == length_d;
      in_d = over ? '0 : in_q + 8'd1;
    end else if (payload && is_list) begin
      in_d = in_q == 8'd2 ? in_q : in_q + 8'd1;
      if (in_q == 8'd2) begin
        for (int unsigned k = 0; k < 4; k++) begin
          if (word_i[63-16*k -: 16] == NoDevice) pads_d = pads_d == '1 ? pads_d : pads_d + 3'd1;
          else if (pads_d != '0) wrong_d = 1'b1;
        end
        if (pads_d > 3'd3) wrong_d = 1'b1;
      end
    end
  end

  // The end.
  logic short, damaged, malformed, broken;

  always_comb begin
    logic [15:0] beyond;

    short = at_q < 10'd3;
    damaged = !short && crc_d != header_d[3][23:0];
    broken = 1'b0;
    unique case (head.message)
      MessageInitialisation:        broken = in_d != '0 || last_d > 17'(record_d);
      MessageConfiguration:         broken = in_d != '0;
      MessageError, MessageFailure: broken = in_d == 8'd1;
      default: ;
    endcase
    // Length counts halves of words.
    malformed = short || header_d[0][41:32] != {at_d[8:0] - 9'd4, 1'b0} || header_d[0][41:32] > 10'd1020 || at_d > 10'd514 ||
                !is_header(header_d) || wrong_d || broken;
    head_o = head;
    head_o.lists = is_list && at_d != 10'd4;
    head_o.words = head_o.lists || head.message == MessageInitialisation || head.message == MessageConfiguration
                   ? '0 : 16'(at_d - 10'd4);
    beyond = head.offset - base_i;
    readable_o = !damaged && !malformed;
    status_o = StatusOk;
    if (damaged) status_o = StatusDamaged;
    else if (malformed) status_o = StatusBadLength;
    else if (head.device != device_i) status_o = StatusUnknownDevice;
    else if (beyond >= 16'h400) status_o = StatusBadAddress;
    else if (head.poisoned) status_o = StatusPoisoned;
    else if (head.message == MessageReadReply || head.message == MessageReport) status_o = StatusWrongType;
  end

  logic whole, for_registers;

  assign whole = take_i && tail_i;
  assign for_registers = head.message == MessageWrite || head.message == MessageRead || head.message == MessageConfiguration;
  assign refused_o = whole && status_o != StatusOk;
  assign registers_o = whole && status_o == StatusOk && for_registers;
  assign message_o = whole && status_o == StatusOk && !for_registers;
  assign own_o = own_d;
  assign record_o = own_record_d;
  assign word_o = word_d;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      at_q <= '0;
      header_q <= '0;
      crc_q <= '0;
      wrong_q <= 1'b0;
      for (int unsigned k = 0; k < Words; k++) word_q[k] <= '0;
      in_q <= '0;
      length_q <= '0;
      for (int unsigned k = 0; k < 7; k++) part_q[k] <= '0;
      record_q <= '0;
      for (int unsigned n = 0; n < Levels; n++) end_q[n] <= '0;
      depth_q <= '0;
      last_q <= '0;
      own_q <= 1'b0;
      own_record_q <= '0;
      pads_q <= '0;
    end else if (take_i) begin
      at_q <= tail_i ? '0 : at_d;
      header_q <= header_d;
      crc_q <= crc_d;
      wrong_q <= wrong_d;
      word_q <= word_d;
      in_q <= tail_i ? '0 : in_d;
      length_q <= length_d;
      part_q <= part_d;
      record_q <= record_d;
      end_q <= end_d;
      depth_q <= depth_d;
      last_q <= last_d;
      own_q <= own_d;
      own_record_q <= own_record_d;
      pads_q <= pads_d;
    end
  end

endmodule
