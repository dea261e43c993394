// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Switch allocation: which flits cross the switch in this cycle, one from an input and one to an output at most.
//
//   separable:  each input picks one of its channels --> each output picks an input
//   iSLIP:      each output offers itself to an input --> each input accepts an offer, and picks a channel that wants this output; again,
//               as often as there are rounds
//
// Twin:        src/fabric/switch_alloc.rs.
// Parameters:  Ports, Channels   of the switch; a queue has the number port x Channels + channel
//              Allocator         0: separable, 1: iSLIP (`switch_allocator`)
//              Rounds            of iSLIP (`allocator_iterations`)
// Latency:     none: who can cross and is chosen crosses in the same cycle
// Registers:   who was served last: a channel by input, an input by output, and of iSLIP an output by input
// Limitations: round-robin only, one crossbar input a port
module ws_switch_alloc
  import ws_pkg::*;
#(
  parameter int unsigned Ports = 4,
  parameter int unsigned Channels = 2,
  parameter int unsigned Allocator = 0,
  parameter int unsigned Rounds = 1,
  localparam int unsigned Queues = Ports * Channels,
  localparam int unsigned PortBits = Ports > 1 ? $clog2(Ports) : 1,
  localparam int unsigned QueueBits = Queues > 1 ? $clog2(Queues) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [Queues-1:0]    can_i,
  input  logic [PortBits-1:0]  out_i [Queues],
  // By output: whether a flit crosses to it, and of which queue.
  output logic [Ports-1:0]     sent_o,
  output logic [QueueBits-1:0] from_o [Ports]
);

  localparam int unsigned ChannelBits = Channels > 1 ? $clog2(Channels) : 1;

  logic [ChannelBits:0] picked_q [Ports];
  logic [ChannelBits:0] picked_d [Ports];
  logic [PortBits:0]    crossed_q [Ports];
  logic [PortBits:0]    crossed_d [Ports];

  if (Allocator == 0) begin : gen_separable
    always_comb begin
      logic [Ports-1:0]       chosen;
      logic [ChannelBits-1:0] choice [Ports];
      logic [ChannelBits-1:0] vc;
      logic [PortBits-1:0]    port;
      logic [QueueBits-1:0]   q;

      picked_d = picked_q;
      crossed_d = crossed_q;
      chosen = '0;
      sent_o = '0;
      vc = '0;
      port = '0;
      q = '0;
      // Each input picks one of its channels.
      for (int unsigned n = 0; n < Ports; n++) begin
        choice[n] = '0;
        from_o[n] = '0;
        for (int unsigned k = 0; k < Channels; k++) begin
          vc = ChannelBits'(in_turn(32'(picked_q[n]), k, Channels));
          if (!chosen[n] && can_i[QueueBits'(n*Channels + 32'(vc))]) begin
            chosen[n] = 1'b1;
            choice[n] = vc;
          end
        end
      end
      // Each output picks one of these inputs.
      for (int unsigned n = 0; n < Ports; n++) begin
        for (int unsigned k = 0; k < Ports; k++) begin
          port = PortBits'(in_turn(32'(crossed_q[n]), k, Ports));
          q = QueueBits'(32'(port) * Channels + 32'(choice[port]));
          if (!sent_o[n] && chosen[port] && 32'(out_i[q]) == n) begin
            sent_o[n] = 1'b1;
            from_o[n] = q;
            picked_d[port] = (ChannelBits+1)'(choice[port]) + (ChannelBits+1)'(1);
            crossed_d[n] = (PortBits+1)'(port) + (PortBits+1)'(1);
          end
        end
      end
    end
  end else begin : gen_islip
    logic [PortBits:0] accepted_q [Ports];
    logic [PortBits:0] accepted_d [Ports];

    always_comb begin
      logic [Ports-1:0]       wants [Ports];    // by input: outputs that a channel of it wants
      logic [Ports-1:0]       offers [Ports];   // by input: outputs that offer themselves
      logic [Ports-1:0]       matched;          // inputs
      logic [ChannelBits-1:0] vc;
      logic [PortBits-1:0]    port, out;
      logic [QueueBits-1:0]   q;
      logic                   found, crosses;

      picked_d = picked_q;
      crossed_d = crossed_q;
      accepted_d = accepted_q;
      matched = '0;
      sent_o = '0;
      vc = '0;
      port = '0;
      out = '0;
      q = '0;
      found = 1'b0;
      crosses = 1'b0;
      for (int unsigned n = 0; n < Ports; n++) begin
        wants[n] = '0;
        offers[n] = '0;
        from_o[n] = '0;
        for (int unsigned c = 0; c < Channels; c++) begin
          if (can_i[n*Channels + c]) wants[n][out_i[n*Channels + c]] = 1'b1;
        end
      end
      for (int unsigned round = 0; round < Rounds; round++) begin
        // Each output offers itself to an input.
        for (int unsigned n = 0; n < Ports; n++) offers[n] = '0;
        for (int unsigned n = 0; n < Ports; n++) begin
          found = 1'b0;
          for (int unsigned k = 0; k < Ports; k++) begin
            port = PortBits'(in_turn(32'(crossed_q[n]), k, Ports));
            if (!found && !sent_o[n] && !matched[port] && wants[port][n]) begin
              found = 1'b1;
              offers[port][n] = 1'b1;
            end
          end
        end
        // Each input accepts an offer.
        for (int unsigned n = 0; n < Ports; n++) begin
          found = 1'b0;
          for (int unsigned k = 0; k < Ports; k++) begin
            out = PortBits'(in_turn(32'(accepted_q[n]), k, Ports));
            if (!found && offers[n][out]) begin
              found = 1'b1;
              matched[n] = 1'b1;
              crosses = 1'b0;
              for (int unsigned c = 0; c < Channels; c++) begin
                vc = ChannelBits'(in_turn(32'(picked_q[n]), c, Channels));
                q = QueueBits'(n*Channels + 32'(vc));
                if (!crosses && can_i[q] && out_i[q] == out) begin
                  crosses = 1'b1;
                  sent_o[out] = 1'b1;
                  from_o[out] = q;
                  picked_d[n] = (ChannelBits+1)'(vc) + (ChannelBits+1)'(1);
                end
              end
`ifdef WS_FAULT_ROUND
              // Turns pass in later rounds too.
              if (round < Rounds) begin
`else
              if (round == 0) begin
`endif
                crossed_d[out] = (PortBits+1)'(n) + (PortBits+1)'(1);
                accepted_d[n] = (PortBits+1)'(out) + (PortBits+1)'(1);
              end
            end
          end
        end
      end
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        for (int unsigned n = 0; n < Ports; n++) accepted_q[n] <= '0;
      end else begin
        accepted_q <= accepted_d;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned n = 0; n < Ports; n++) begin
        picked_q[n] <= '0;
        crossed_q[n] <= '0;
      end
    end else begin
      picked_q <= picked_d;
      crossed_q <= crossed_d;
    end
  end

endmodule
