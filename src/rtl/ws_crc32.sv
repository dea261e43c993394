// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// CRC-32 as Ethernet has it (polynomial 0x04c11db7, reflected), over the eight bytes of a word, the highest one first.
//
// Twin:        src/fabric/crc.rs.
// Latency:     none, combinational
// Limitations: whole words; the register starts with all ones and is inverted at the end, which is the user's business
module ws_crc32 (
  input  logic [31:0] crc_i,
  input  logic [63:0] word_i,
  output logic [31:0] crc_o
);

  always_comb begin
    crc_o = crc_i;
    for (int unsigned k = 0; k < 8; k++) begin
      crc_o ^= {24'd0, word_i[63 - 8*k -: 8]};
      for (int unsigned bit_at = 0; bit_at < 8; bit_at++) begin
        crc_o = (crc_o >> 1) ^ (crc_o[0] ? 32'hedb8_8320 : 32'd0);
      end
    end
  end

endmodule
