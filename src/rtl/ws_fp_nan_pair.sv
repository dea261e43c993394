// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The NaN that two operands give of which at least one is a NaN.
//
// Twin:        `Format::nan_of_pair` of src/arith/format.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
// Choices:     the result's sign is 0; with nan_propagate a signalling operand's payload wins over a quiet one's, else a's
module ws_fp_nan_pair
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  unpacked_t   a_i,
  input  unpacked_t   b_i,
  input  logic        propagate_i,
  output logic [62:0] magnitude_o,  // exponent and fraction, right-justified
  output logic        invalid_o
);

  localparam int unsigned ExponentBits = exponent_bits(Dtype);
  localparam int unsigned FractionBits = fraction_bits(Dtype);

  logic                    from_a;
  logic [FractionBits-1:0] payload, quiet;

  assign invalid_o = a_i.signalling | b_i.signalling;
  assign from_a = a_i.signalling == b_i.signalling ? a_i.is_nan : a_i.signalling;
  assign payload = from_a ? a_i.significand[FractionBits-1:0] : b_i.significand[FractionBits-1:0];

  if (nan_only(Dtype)) begin : gen_one_nan
    logic unused;

    assign unused = ^{propagate_i, payload};
    assign quiet = '1;
  end else begin : gen_payload
    assign quiet = {1'b1, payload[FractionBits-2:0] & {(FractionBits-1){propagate_i}}};

    logic unused;

    assign unused = payload[FractionBits-1];
  end

  assign magnitude_o = 63'({{ExponentBits{1'b1}}, quiet});

  logic unused_operands;

  assign unused_operands = ^{a_i, b_i};

endmodule
