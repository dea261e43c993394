// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Channel allocation of a switch: which packet gets which channel of the output that it was routed to.
//
//   ordered:    requesters of an output in turn --> each takes the lowest free channel that it may use
//   separable:  each requester picks a free channel --> each channel picks one of its requesters
//   iSLIP:      each free channel offers itself to a requester --> each requester accepts an offer; again, as often as there are rounds
//
// Twin:        src/fabric/vc_alloc.rs.
// Parameters:  Ports, Channels   of the switch; a queue has the number port x Channels + channel
//              Set               channels of set-routed packets, whose numbers come first
//              Allocator         0: ordered, 1: separable, 2: iSLIP (`vc_allocator`)
//              Rounds            of iSLIP (`allocator_iterations`)
// Latency:     none: who asks has its channel in the same cycle
// Registers:   who was served last, by output of `ordered`, else by channel and by queue; those of another allocator stay zero
// Limitations: round-robin only
module ws_vc_alloc
  import ws_pkg::*;
#(
  parameter int unsigned Ports = 4,
  parameter int unsigned Channels = 2,
  parameter int unsigned Set = 2,
  parameter int unsigned Allocator = 0,
  parameter int unsigned Rounds = 1,
  localparam int unsigned Queues = Ports * Channels,
  localparam int unsigned PortBits = Ports > 1 ? $clog2(Ports) : 1,
  localparam int unsigned ChannelBits = Channels > 1 ? $clog2(Channels) : 1
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [Queues-1:0]      asks_i,
  input  logic [PortBits-1:0]    out_i [Queues],
  input  logic [Channels-1:0]    allowed_i [Queues],
  input  logic [Channels-1:0]    held_i [Ports],
  output logic [Queues-1:0]      given_o,
  output logic [ChannelBits-1:0] channel_o [Queues],
  output logic [Channels-1:0]    held_o [Ports]
);

  localparam int unsigned QueueBits = Queues > 1 ? $clog2(Queues) : 1;
  localparam int unsigned LastBits = $clog2(Queues + 1);

  if (Allocator == 0) begin : gen_ordered
    logic [LastBits-1:0] last_q [Ports];
    logic [LastBits-1:0] last_d [Ports];

    always_comb begin
      logic [QueueBits-1:0] q;
      logic [Channels-1:0]  usable;
      logic                 found;

      given_o = '0;
      held_o = held_i;
      last_d = last_q;
      q = '0;
      usable = '0;
      found = 1'b0;
      for (int unsigned n = 0; n < Queues; n++) channel_o[n] = '0;
      for (int unsigned out = 0; out < Ports; out++) begin
        for (int unsigned k = 0; k < Queues; k++) begin
          q = QueueBits'(in_turn(32'(last_q[out]), k, Queues));
          usable = allowed_i[q] & ~held_o[out];
          if (asks_i[q] && 32'(out_i[q]) == out && usable != '0) begin
            found = 1'b0;
            for (int unsigned vc = 0; vc < Channels; vc++) begin
              if (!found && usable[vc]) begin
                found = 1'b1;
                channel_o[q] = ChannelBits'(vc);
                held_o[out][vc] = 1'b1;
              end
            end
            given_o[q] = 1'b1;
            last_d[out] = LastBits'(q) + LastBits'(1);
          end
        end
      end
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        for (int unsigned n = 0; n < Ports; n++) last_q[n] <= '0;
      end else begin
        last_q <= last_d;
      end
    end
  end else begin : gen_by_channel
    // By channel of an output, behind which queue; by queue, behind which channel, of iSLIP counted over the channels of all outputs.
    localparam int unsigned Shift = $clog2(Set + Channels);
    localparam int unsigned CursorBits = $clog2((Ports << Shift) + 2) + 1;

    logic [LastBits-1:0]   grant_q [Ports][Channels];
    logic [LastBits-1:0]   grant_d [Ports][Channels];
    logic [CursorBits-1:0] accept_q [Queues];
    logic [CursorBits-1:0] accept_d [Queues];

    always_comb begin
      logic [Channels-1:0]   offers [Queues];
      logic [Queues-1:0]     asking;
      logic [QueueBits-1:0]  q;
      logic [Channels-1:0]   usable;
      logic [ChannelBits-1:0] vc;
      logic [CursorBits-1:0] start, from;
      logic                  found;

      given_o = '0;
      held_o = held_i;
      grant_d = grant_q;
      accept_d = accept_q;
      asking = asks_i;
      q = '0;
      usable = '0;
      vc = '0;
      start = '0;
      from = '0;
      found = 1'b0;
      for (int unsigned n = 0; n < Queues; n++) begin
        channel_o[n] = '0;
        offers[n] = '0;
      end
      for (int unsigned round = 0; round < (Allocator == 2 ? Rounds : 1); round++) begin
        for (int unsigned n = 0; n < Queues; n++) offers[n] = '0;
        if (Allocator == 1) begin
          // Each requester picks a channel, in turn.
          for (int unsigned n = 0; n < Queues; n++) begin
            usable = allowed_i[n] & ~held_o[out_i[n]];
            found = 1'b0;
            for (int unsigned k = 0; k < Channels; k++) begin
              vc = ChannelBits'(in_turn(32'(accept_q[n]), k, Channels));
              if (asking[n] && !found && usable[vc]) begin
                found = 1'b1;
                offers[n][vc] = 1'b1;
              end
            end
          end
        end
        // Each channel picks a requester, in turn.
        for (int unsigned out = 0; out < Ports; out++) begin
          for (int unsigned c = 0; c < Channels; c++) begin
            found = 1'b0;
            for (int unsigned k = 0; k < Queues; k++) begin
              q = QueueBits'(in_turn(32'(grant_q[out][c]), k, Queues));
              if (!found && !held_o[out][c] && asking[q] && 32'(out_i[q]) == out &&
                  (Allocator == 1 ? offers[q][c] : allowed_i[q][c])) begin
                found = 1'b1;
                if (Allocator == 1) begin
                  given_o[q] = 1'b1;
                  channel_o[q] = ChannelBits'(c);
                  held_o[out][c] = 1'b1;
                  asking[q] = 1'b0;
                  grant_d[out][c] = LastBits'(q) + LastBits'(1);
                  accept_d[q] = CursorBits'(c + 1);
                end else begin
                  offers[q][c] = 1'b1;
                end
              end
            end
          end
        end
        if (Allocator == 2) begin
          // Each requester accepts an offer, in turn.
          for (int unsigned n = 0; n < Queues; n++) begin
            start = CursorBits'((32'(out_i[n]) << Shift) + Set);
            from = accept_q[n] >= start && accept_q[n] - start < CursorBits'(Channels) ? accept_q[n] - start : '0;
            found = 1'b0;
            for (int unsigned k = 0; k < Channels; k++) begin
              vc = ChannelBits'(in_turn(32'(from), k, Channels));
              if (!found && offers[n][vc]) begin
                found = 1'b1;
                given_o[n] = 1'b1;
                channel_o[n] = vc;
                held_o[out_i[n]][vc] = 1'b1;
                asking[n] = 1'b0;
                if (round == 0) begin
                  grant_d[out_i[n]][vc] = LastBits'(n + 1);
                  accept_d[n] = start + CursorBits'(vc) + CursorBits'(1);
                end
              end
            end
          end
        end
      end
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        for (int unsigned n = 0; n < Ports; n++) begin
          for (int unsigned c = 0; c < Channels; c++) grant_q[n][c] <= '0;
        end
        for (int unsigned n = 0; n < Queues; n++) accept_q[n] <= '0;
      end else begin
        grant_q <= grant_d;
        accept_q <= accept_d;
      end
    end
  end

endmodule
