// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Takes a floating-point lane apart.
//
// Twin:        `Format::unpack` of src/arith/format.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_unpack
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  logic [63:0] lane_i,
  output unpacked_t   unpacked_o
);

  localparam int unsigned ExponentBits = exponent_bits(Dtype);
  localparam int unsigned FractionBits = fraction_bits(Dtype);
  localparam int unsigned PadBits = pad_bits(Dtype);
  localparam int unsigned LaneBits = lane_bits(Dtype);

  logic                    sign;
  logic [ExponentBits-1:0] exponent;
  logic [FractionBits-1:0] fraction;
  logic                    largest;

  assign {sign, exponent, fraction} = lane_i[LaneBits-1:PadBits];
  assign largest = &exponent;

  always_comb begin
    unpacked_o = '0;
    unpacked_o.sign = sign;
    unpacked_o.is_nan = largest && (nan_only(Dtype) ? &fraction : |fraction);
    unpacked_o.signalling = largest && !nan_only(Dtype) && |fraction && !fraction[FractionBits-1];
    unpacked_o.is_infinite = largest && !nan_only(Dtype) && !(|fraction);
    // Zeros and denormals have the smallest exponent and no hidden bit.
    unpacked_o.exponent = 11'(exponent) | 11'(exponent == '0);
    unpacked_o.significand = 53'({|exponent, fraction});
  end

  // TF32 ignores its pad, and a lane is right-justified.
  logic unused;

  assign unused = ^lane_i;

endmodule
