// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A whole switch for `make synth`: collective channels, and point-to-point ones that have the ports which the first leave in a cycle.
//
//   links --+--> ws_coll_switch --------+--> links
//           |        | ports taken      |
//           +--> ws_unicast ------------+
//
// Parameters:  see ws_coll_switch and ws_unicast; channels of collectives come first
// Limitations: one plane; the reset of credits is the same for all channels
module ws_switch_whole
  import ws_pkg::*;
#(
  parameter int unsigned Ports = 3,
  parameter int unsigned Ids = 4,
  parameter int unsigned Channels = 1,
  parameter int unsigned Depth = 2,
  parameter int unsigned Ends = 16,
  parameter units_t      Units = '1,
  localparam int unsigned Set = 2,
  localparam int unsigned All = Set + Channels,
  localparam int unsigned PortBits = Ports > 1 ? $clog2(Ports) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [15:0]         credits_at_reset_i [Ports],
  input  logic                cfg_store_i,
  input  logic [23:0]         cfg_address_i,
  input  logic [63:0]         cfg_data_i,
  output logic [63:0]         cfg_data_o,
  output logic                cfg_error_o,
  input  logic [PortBits-1:0] route_i [Ends],
  input  logic [Channels-1:0] allowed_i [Channels],
  input  logic [Ports-1:0]    in_valid_i,
  input  flit_t               in_flit_i [Ports],
  output logic [All-1:0]      credit_o [Ports],
  output logic [Ports-1:0]    out_valid_o,
  output flit_t               out_flit_o [Ports],
  input  logic [All-1:0]      credit_i [Ports]
);

  logic [Ports-1:0]    taken_in, taken_out, set_valid, unicast_valid;
  flit_t               set_flit [Ports], unicast_flit [Ports];
  logic [Set-1:0]      set_credit_in [Ports], set_credit_out [Ports];
  logic [Channels-1:0] unicast_credit_in [Ports], unicast_credit_out [Ports];

  for (genvar n = 0; n < Ports; n++) begin : gen_port
    assign set_credit_in[n] = credit_i[n][Set-1:0];
    assign unicast_credit_in[n] = credit_i[n][All-1:Set];
    assign credit_o[n] = {unicast_credit_out[n], set_credit_out[n]};
    assign out_valid_o[n] = set_valid[n] || unicast_valid[n];
    assign out_flit_o[n] = set_valid[n] ? set_flit[n] : unicast_flit[n];
  end

  ws_coll_switch #(
    .Ports(Ports),
    .Ids(Ids),
    .Planes(1),
    .Depth(Depth),
    .UnitStages(3),
    .Units(Units),
    .OperandSlots(2),
    .ResultSlots(8)
  ) u_set (
    .clk_i,
    .rst_ni,
    .credits_at_reset_i,
    .cfg_store_i,
    .cfg_address_i,
    .cfg_data_i,
    .cfg_data_o,
    .cfg_error_o,
    .in_valid_i,
    .in_flit_i,
    .credit_o(set_credit_out),
    .out_valid_o(set_valid),
    .out_flit_o(set_flit),
    .credit_i(set_credit_in),
    .taken_in_o(taken_in),
    .taken_out_o(taken_out)
  );

  ws_unicast #(
    .Ports(Ports),
    .Set(Set),
    .Channels(Channels),
    .Depth(Depth),
    .Ends(Ends)
  ) u_unicast (
    .clk_i,
    .rst_ni,
    .credits_at_reset_i,
    .route_i,
    .allowed_i,
    .taken_in_i(taken_in),
    .taken_out_i(taken_out),
    .in_valid_i,
    .in_flit_i,
    .credit_o(unicast_credit_out),
    .out_valid_o(unicast_valid),
    .out_flit_o(unicast_flit),
    .credit_i(unicast_credit_in)
  );

endmodule
