// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// How full the queues of a packet engine were, and which of them have come up to a threshold.
//
//   levels --> sums and maxima of the present window --> those of the last one        levels --> reports
//
// Twin:        src/pbv/metrics.rs, src/pbv/reports.rs.
// Parameters:  Queues  queues that are measured
// Latency:     none: readings have the levels of the cycle before in the sums, and those of this cycle in the maxima
// Limitations: a mean is divided by who asks for it
module ws_pbv_metrics #(
  parameter int unsigned Queues = 18
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
`ifdef WS_FAULTS
  input  logic [3:0]           fault_i,
`endif
  input  logic [15:0]          level_i [Queues],
  // A window of this many cycles begins with this cycle, or with the next; 0: without end.
  input  logic                 set_i,
  input  logic                 next_i,
  input  logic [31:0]          set_window_i,
  // Reports: threshold and relief, the queues that are watched, and whether a report still waits.
  input  logic [31:0]          levels_i,
  input  logic [Queues-1:0]    watched_i,
  input  logic                 waits_i,
  output logic [Queues-1:0]    report_o,
  // Readings.
  output logic [31:0]          window_o,
  output logic [31:0]          complete_o,
  output logic [47:0]          measured_o,
  output logic [39:0]          sum_o [Queues],
  output logic [15:0]          most_o [Queues]
);

  logic [31:0]       window_q, complete_q, complete_d;
  logic [47:0]       age_q, age_d;  // cycles since the window began
  logic [15:0]       level_q [Queues];
  logic [39:0]       sum_q [Queues];
  logic [39:0]       sum_d [Queues];
  logic [15:0]       most_q [Queues];
  logic [15:0]       most_d [Queues];
  logic [39:0]       last_sum_q [Queues];
  logic [39:0]       last_sum_d [Queues];
  logic [15:0]       last_most_q [Queues];
  logic [15:0]       last_most_d [Queues];
  logic [Queues-1:0] high_q, high_d;
  logic              over;

  assign over = window_q != '0 && age_q >= {16'd0, window_q};

  always_comb begin
    age_d = over ? '0 : age_q;
    complete_d = over ? complete_q + 32'd1 : complete_q;
    for (int unsigned q = 0; q < Queues; q++) begin
      last_sum_d[q] = last_sum_q[q];
      last_most_d[q] = last_most_q[q];
      sum_d[q] = age_q == '0 ? '0 : sum_q[q] + 40'(level_q[q]);
      most_d[q] = age_q == '0 ? '0 : most_q[q];
      if (over) begin
        last_sum_d[q] = sum_d[q];
        last_most_d[q] = most_d[q];
        sum_d[q] = '0;
`ifdef WS_FAULTS
        // The highest level of a window counts in the next one too.
        if (fault_i != 4'd15) most_d[q] = '0;
`else
        most_d[q] = '0;
`endif
      end
      if (level_i[q] > most_d[q]) most_d[q] = level_i[q];
    end
  end

  assign window_o = window_q;
  assign complete_o = complete_d;
  assign measured_o = window_q == '0 ? age_d : complete_d == '0 ? '0 : {16'd0, window_q};

  always_comb begin
    for (int unsigned q = 0; q < Queues; q++) begin
      sum_o[q] = window_q == '0 ? sum_d[q] : last_sum_d[q];
      most_o[q] = window_q == '0 ? most_d[q] : last_most_d[q];
    end
  end

  logic [15:0] above, until_down;

  assign above = levels_i[15:0];
  assign until_down = levels_i[31:16];

  always_comb begin
    high_d = above == '0 ? '0 : high_q;
    report_o = '0;
    for (int unsigned q = 0; q < Queues; q++) begin
      if (above != '0 && watched_i[q]) begin
        if (level_i[q] <= until_down && level_i[q] < above) begin
          high_d[q] = 1'b0;
        end else if (level_i[q] >= above && !high_q[q] && !waits_i) begin
          high_d[q] = 1'b1;
          report_o[q] = 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      window_q <= '0;
      complete_q <= '0;
      age_q <= '0;
      high_q <= '0;
      for (int unsigned q = 0; q < Queues; q++) begin
        level_q[q] <= '0;
        sum_q[q] <= '0;
        most_q[q] <= '0;
        last_sum_q[q] <= '0;
        last_most_q[q] <= '0;
      end
    end else begin
      window_q <= set_i ? set_window_i : window_q;
      complete_q <= set_i ? '0 : complete_d;
      age_q <= set_i ? 48'(!next_i) : age_d + 48'd1;
      high_q <= high_d;
      for (int unsigned q = 0; q < Queues; q++) begin
        level_q[q] <= level_i[q];
        sum_q[q] <= set_i ? '0 : sum_d[q];
        most_q[q] <= set_i ? level_i[q] : most_d[q];
        last_sum_q[q] <= set_i ? '0 : last_sum_d[q];
        last_most_q[q] <= set_i ? '0 : last_most_d[q];
      end
    end
  end

endmodule
