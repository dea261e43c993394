// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Locator, segment 0 of one half: keys in the order of the values, and which index a NaN leaves.
//
// Twin:        `half_keys` of src/arith/locator.rs.
// Latency:     none, combinational
// Limitations: values of 64 bits: f64, i64 or u64
module ws_loc_keys
  import ws_pkg::*;
(
  input  dtype_e      dtype_i,
  input  mode_t       mode_i,
  input  fn_e         fn_i,       // FnMin, FnMax, FnMinNum, FnMaxNum
  input  logic [63:0] a_i,
  input  logic [63:0] a_index_i,
  input  logic [63:0] b_i,
  input  logic [63:0] b_index_i,
  output loc_keys_t   keys_o
);

  keys_t      keys, float_keys, signed_keys, unsigned_keys;
  unpacked_t  a, b, chosen;
  logic [1:0] a_rank, b_rank;
  logic       differ, to_a;

  ws_fp_keys #(.Dtype(DtF64)) u_float (.mode_i, .fn_i, .a_i, .b_i, .keys_o(float_keys));
  ws_int_keys #(.Dtype(DtI64)) u_signed (.a_i, .b_i, .keys_o(signed_keys));
  ws_int_keys #(.Dtype(DtU64)) u_unsigned (.a_i, .b_i, .keys_o(unsigned_keys));
  ws_fp_unpack #(.Dtype(DtF64)) u_a (.lane_i(a_i), .unpacked_o(a));
  ws_fp_unpack #(.Dtype(DtF64)) u_b (.lane_i(b_i), .unpacked_o(b));
  ws_fp_unpack #(.Dtype(DtF64)) u_chosen (.lane_i(float_keys.a), .unpacked_o(chosen));

  always_comb begin
    unique case (dtype_i)
      DtI64:   keys = signed_keys;
      DtU64:   keys = unsigned_keys;
      default: keys = float_keys;
    endcase
  end

  // A signalling NaN is more than a quiet one, and that more than a number. The higher rank has the index, but where a number
  // wins over a NaN.
  assign a_rank = a.signalling ? 2'd2 : {1'b0, a.is_nan};
  assign b_rank = b.signalling ? 2'd2 : {1'b0, b.is_nan};
  assign differ = is_float(dtype_i) && a_rank != b_rank;
  assign to_a = (a_rank > b_rank) == chosen.is_nan;

  always_comb begin
    keys_o.keys = keys;
    keys_o.a_index = differ && !to_a ? b_index_i : a_index_i;
    keys_o.b_index = differ && to_a ? a_index_i : b_index_i;
  end

  logic unused;

  assign unused = ^{a, b, chosen};

endmodule
