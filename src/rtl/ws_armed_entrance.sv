// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The entrance of a reduction engine: puts the flits of a frame together and checks CRC, length and contents at the tail.
//
// Twin:        `Assembly` of src/armed/engine.rs; src/armed/interface/frame.rs and src/armed/interface/header.rs.
// Latency:     none: the frame stands at the output in the cycle in which its tail is taken
// Limitations: one frame at a time; a packet of more than 15 flits counts as one of 15
module ws_armed_entrance
  import ws_pkg::*;
(
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       take_i,
  input  flit_t      flit_i,
  output logic       whole_o,      // a tail is taken
  output logic       damaged_o,    // and the CRC or the length is wrong
  output logic       malformed_o,  // or that is right and the contents are not those of a reduction frame
  output frame_t     frame_o,
  output logic [3:0] flits_o       // flits that are there
);

  localparam int unsigned Last = 10;

  logic [63:0] word_q [Last];
  logic [31:0] crc_q, crc_before, crc;
  logic [3:0]  flits_q, at;

  assign at = flit_i.tag.head ? '0 : flits_q;
  assign crc_before = at == '0 ? '1 : crc_q;

  ws_crc32 u_crc (.crc_i(crc_before), .word_i(flit_i.word), .crc_o(crc));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned k = 0; k < Last; k++) word_q[k] <= '0;
      crc_q <= '0;
      flits_q <= '0;
    end else if (take_i) begin
      if (at < 4'(Last)) word_q[at] <= flit_i.word;
      crc_q <= crc;
      flits_q <= flit_i.tag.tail ? '0 : at == '1 ? at : at + 4'd1;
    end
  end

  // Where everything lies: see the table of src/armed/interface/frame.rs.
  logic [31:0] destination;
  logic [95:0] header;
  logic        address_ok, portals_ok, header_ok;
  opcode_t     opcode;

  assign destination = word_q[0][63:32];
  assign header = {word_q[4][31:0], word_q[5]};
  assign opcode = opcode_of(header[16:11]);
  assign address_ok = destination[31:23] == '1 && destination[2:0] == '1 && destination[22:21] == '0 &&
                      destination[17:16] == '0;
  // Length, unused bytes, command, payload length, pad.
  assign portals_ok = word_q[1][47:32] == 16'd84 && word_q[1][31:0] == '0 && word_q[2][63:32] == '0 &&
                      word_q[2][31:24] == 8'h52 && word_q[3][23:8] == 16'd49 && word_q[3][7:0] == '0;
  assign header_ok = opcode.valid && is_code(header[50:47]) && header[63:62] == '0;

  assign whole_o = take_i && flit_i.tag.tail;
  assign damaged_o = whole_o && (at != 4'(Last) || flit_i.word[63:32] != ~crc_q);
  assign malformed_o = whole_o && !damaged_o && !(address_ok && portals_ok && header_ok);
  assign flits_o = flits_q;

  always_comb begin
    frame_o.address = '{multicast_id: destination[15:3], reduction_id: destination[20:18]};
    frame_o.source = word_q[0][31:0];
    frame_o.vni = word_q[1][63:48];
    frame_o.target = word_q[2][23:8];
    frame_o.request = {word_q[2][7:0], word_q[3][63:40]};
    frame_o.initiator = word_q[3][39:24];
    frame_o.rank = word_q[4][63:32];
    frame_o.cookie = header[95:64];
    frame_o.retry = header[61];
    frame_o.arm = header[10];
    frame_o.op = header[16:11];
    frame_o.seqno = header[9:0];
    frame_o.resno = header[46:37];
    frame_o.count = header[36:17];
    frame_o.quad.code = code_e'(header[50:47]);
    frame_o.quad.m = header[58:51];
    frame_o.quad.oflow_id = header[60:59];
    for (int unsigned k = 0; k < 4; k++) frame_o.quad.word[k] = word_q[6 + k];
  end

  logic unused;

  assign unused = ^{flit_i.tag, opcode};

endmodule
