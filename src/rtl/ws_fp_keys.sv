// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Comparator, segment 0 of floating-point lanes: integer keys in the order of the values, and what NaNs do.
//
// Twin:        `comparator::float_keys` of src/arith/comparator.rs.
// Parameters:  Dtype  format of the lane
// Latency:     none, combinational
module ws_fp_keys
  import ws_pkg::*;
#(
  parameter dtype_e Dtype = DtF32
) (
  input  mode_t       mode_i,
  input  fn_e         fn_i,
  input  logic [63:0] a_i,
  input  logic [63:0] b_i,
  output keys_t       keys_o
);

  localparam int unsigned PadBits = pad_bits(Dtype);
  localparam int unsigned Width = exponent_bits(Dtype) + fraction_bits(Dtype);
  // The lane without its pad.
  localparam logic [63:0] Kept = 64'({(Width+1){1'b1}}) << PadBits;

  unpacked_t   a, b;
  logic [62:0] nan;
  logic        nan_invalid, predicate, prefers_numbers, number_wins;
  logic [63:0] a_key, b_key;

  ws_fp_unpack #(.Dtype(Dtype)) u_unpack_a (.lane_i(a_i), .unpacked_o(a));
  ws_fp_unpack #(.Dtype(Dtype)) u_unpack_b (.lane_i(b_i), .unpacked_o(b));

  ws_fp_nan_pair #(.Dtype(Dtype)) u_nan (
    .a_i(a),
    .b_i(b),
    .propagate_i(mode_i.nan_propagate),
    .magnitude_o(nan),
    .invalid_o(nan_invalid)
  );

  assign predicate = fn_i == FnEqual || fn_i == FnLessOrEqual || fn_i == FnLess;
  assign prefers_numbers = fn_i == FnMinNum || fn_i == FnMaxNum;
  assign number_wins = prefers_numbers && !(a.is_nan && b.is_nan) &&
                       !(mode_i.signal_ieee && (a.signalling || b.signalling));

  // The sign mirrors exponent and fraction; one below the mirror image puts -0 under +0, without it both are equal.
  function automatic logic [63:0] key(logic [63:0] lane, logic zeros_equal);
    logic [63:0] magnitude;
    magnitude = 64'(lane[PadBits +: Width]);
    if (!lane[PadBits + Width]) key = magnitude;
    else key = zeros_equal ? -magnitude : ~magnitude;
  endfunction

  assign a_key = key(a_i, predicate);
  assign b_key = key(b_i, predicate);

  always_comb begin
    keys_o = '0;
    if (a.is_nan || b.is_nan) begin
      keys_o.unordered = 1'b1;
      if (number_wins) begin
        keys_o.invalid = nan_invalid;
        keys_o.a = (a.is_nan ? b_i : a_i) & Kept;
      end else begin
        keys_o.invalid = nan_invalid || fn_i == FnLessOrEqual || fn_i == FnLess;
        keys_o.a = 64'(nan) << PadBits;
      end
    end else begin
      keys_o.a_key = a_key;
      keys_o.b_key = b_key;
      keys_o.a = a_i & Kept;
      keys_o.b = b_i & Kept;
    end
  end

  logic unused;

  assign unused = ^{mode_i, a, b};

endmodule
