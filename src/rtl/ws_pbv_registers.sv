// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The registers of a packet engine: the PBV table and its settings, counters, congestion metrics and reports; and the frames that write
// and read them.
//
//   frames for the registers --> queue --> served one after the other: write, read, configuration --> answers, what goes to others
//   levels of queues --> metrics --> reports
//
// Twin:        src/pbv/tables.rs; `serve_registers`, `write`, `read_registers`, `configure` and `report` of src/pbv/engine.rs.
// Parameters:  Participants  entries of the table that there are; others have no device
//              Words         words of a frame for the registers behind its header, at most
//              Frames        frames that wait
//              Records       records of a configuration, at most: what goes to others in a cycle
//              Reads         registers that a read asks for, at most
//              Payload       words of an answer and of a record, at most: 7 more than entries, four in a word, or more
//              MemoryPorts   words that are written in a cycle: until all are, the table is closed
// Latency:     a frame whose last word comes in cycle t is served in t; what it writes is there in t + 1
// Limitations: means are divided by dividers without registers, one for each of Reads. Who owns contexts is known outside, and what a context's registers hold comes from its collective engine. A
//              configuration from the side port is there at once, and metrics begin anew with it
module ws_pbv_registers
  import ws_pkg::*;
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Participants = 128,
  parameter int unsigned Words = 40,
  parameter int unsigned Frames = 8,
  parameter int unsigned Records = 3,
  parameter int unsigned Reads = 16,
  parameter int unsigned Payload = 40,
  parameter int unsigned MemoryPorts = 2,
  localparam int unsigned Queues = 18,
  localparam int unsigned ReportWords = Queues + 1,
  localparam int unsigned LenBits = $clog2(Frames + 3)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  self_t                   me_i,
  input  logic [15:0]             base_i,
  // From the side port.
  input  logic                    side_i,
  input  config_t                 side_config_i,
  input  logic [15:0]             side_device_i [Participants],
  // The device that owns the table and the engine that passes its frames on, if they are named; constant.
  input  logic                    named_i,
  input  logic [31:0]             owner_i,
  // Frames for the registers, by port, with their words in all.
  input  logic [1:0]              push_i,
  input  message_t                head_i [2],
  input  logic [9:0]              words_i [2],
  input  logic [63:0]             word_i [2][Words],
  // What is counted: frames that came and that were refused, whose place is by who refuses them; a frame that leaves, or waits.
  input  logic [1:0]              frame_i,
  input  logic [3:0]              refused_i,
  input  status_e                 status_i [4],
  input  logic                    leaves_i,
  input  logic                    waits_i,
  // A device is missing: of which context, and why.
  input  logic                    missing_i,
  input  logic [15:0]             missing_device_i,
  input  logic [11:0]             missing_cc_id_i,
  input  status_e                 missing_status_i,
  // Messages that may wait to leave before nothing is read any more (`output`); constant.
  input  logic [15:0]             most_i,
  // Messages in the output queue, also when the next copy was looked up; those that count; whether one is a report.
  input  logic [15:0]             output_i,
  input  logic [15:0]             held_i,
  input  logic [15:0]             counted_i,
  input  logic                    reporting_i,
  input  logic [15:0]             level_i [Queues],
  // Of the context that is selected.
  output logic [11:0]             selected_o,
  input  context_state_e          state_i,
  input  track_t                  track_i,
  input  logic [127:0]            stored_i,
  input  logic [31:0]             context_owner_i,
  // The table, and whether it is being written.
  output logic [15:0]             device_o [Participants],
  output logic [Participants-1:0] engines_o,
  output logic [31:0]             timeout_o,
  output logic [7:0]              retries_o,
  output logic                    errors_o,
  output logic                    validate_o,
  output logic                    closed_o,
  // Words of frames that are served in this cycle, their headers included.
  output logic [15:0]             served_o,
  // A report, ahead of all messages of the cycle; an answer, or what goes to others by its place in the frame, behind them.
  output leaving_t                report_o,
  output logic [63:0]             report_word_o [ReportWords],
  output leaving_t                message_o [Records],
  output logic [63:0]             message_word_o [Records][Payload]
);

  localparam int unsigned WaitBits = 10;

  typedef struct packed {
    message_t   head;
    logic [9:0] words;
  } frame_t;

  config_t     table_q, table_d;
  logic [15:0] device_q [Participants];
  logic [15:0] device_d [Participants];
  logic [32:0] owner_q, owner_d, owner;  // the highest bit: there is one
  logic [11:0] selected_q, selected_d;

  // Counters.
  logic [31:0] refused_q [16];
  logic [31:0] refused_e [16];           // those of this cycle included, but those that the registers refuse
  logic [31:0] refused_d [16];
  logic [32:0] failure_q, failure_d;     // status, context and device; the highest bit: there is one
  logic [31:0] peak_q, peak_d, in_q, in_d, out_q, out_d, waited_q, waited_d, reports_q, reports_d;

  assign owner = named_i ? {1'b1, owner_i} : owner_q;

  always_comb begin
    refused_e = refused_q;
    for (int unsigned k = 0; k < 4; k++) begin
      if (refused_i[k]) refused_e[status_i[k]] = refused_e[status_i[k]] + 32'd1;
    end
    failure_d = missing_i ? {1'b1, missing_status_i, missing_cc_id_i, missing_device_i} : failure_q;
    peak_d = {16'd0, held_i} > peak_q ? {16'd0, held_i} : peak_q;
    in_d = in_q + 32'(frame_i[0]) + 32'(frame_i[1]);
    out_d = out_q + 32'(leaves_i);
    waited_d = waited_q + 32'(waits_i);
    reports_d = reports_q + 32'(report_o.send.valid);
  end

  /////////////////////////////
  // Congestion, and reports //
  /////////////////////////////

  logic [Queues-1:0] reported;
  logic [31:0]       window, complete, set_window;
  logic [47:0]       measured;
  logic [39:0]       sum [Queues];
  logic [15:0]       most [Queues];
  logic              set;

  ws_pbv_metrics #(.Queues(Queues)) u_metrics (
    .clk_i,
    .rst_ni,
`ifdef WS_FAULTS
    .fault_i(me_i.fault),
`endif
    .level_i,
    .set_i(set),
    .set_window_i(set_window),
    .next_i(side_i),
    .levels_i(table_q.levels),
    .watched_i(table_q.queues[Queues-1:0]),
    .waits_i(reporting_i),
    .report_o(reported),
    .window_o(window),
    .complete_o(complete),
    .measured_o(measured),
    .sum_o(sum),
    .most_o(most)
  );

  always_comb begin
    logic [4:0] at;

    at = 5'd1;
    for (int unsigned k = 0; k < ReportWords; k++) report_word_o[k] = '0;
    report_word_o[0] = {16'd0, me_i.now};
    for (int unsigned q = 0; q < Queues; q++) begin
      if (reported[q]) begin
        report_word_o[at] = {32'(q), 16'd0, level_i[q]};
        at = at + 5'd1;
      end
    end
    report_o = '0;
    report_o.send = to_header(fresh(MessageReport, me_i, table_q.collector[15:0], '0), WordsNone);
    report_o.send.head.posted = 1'b1;
    report_o.send.head.dmu_id = NoDevice;
    report_o.send.valid = reported != '0;
    report_o.words = 10'(at);
  end

  ////////////////////////
  // Reads of registers //
  ////////////////////////

  // A register: whether there is one, and its value.
  function automatic logic [32:0] read(logic [15:0] offset);
    logic [47:0] mean;
    logic [4:0]  q;
    logic [6:0]  e;

    read = {1'b1, 32'd0};
    q = offset[7:3];
    e = offset[7:1];
    mean = '0;
    if (offset >= 16'h400 || (offset >= 16'h100 ? offset[1:0] != '0 : offset[0])) begin
      read[32] = 1'b0;
    end else if (offset < 16'h100) begin
      read[16:0] = {table_q.engines[e], 32'(e) < Participants ? device_q[32'(e) % Participants] : NoDevice};
    end else if (offset >= 16'h300) begin
      if (offset >= 16'h300 + 16'(8 * Queues)) begin
        read[32] = 1'b0;
      end else if (offset[2]) begin
        read[15:0] = most[q];
      end else if (measured != '0) begin
        mean = {sum[q], 8'd0} / measured;
        read[31:0] = mean[47:32] != '0 ? '1 : mean[31:0];
      end
    end else if (offset >= 16'h180 && offset < 16'h1c0) begin
      read[31:0] = refused_e[offset[5:2]];
    end else begin
      unique case (offset[9:0])
        10'h100: read[31:0] = table_q.timeout;
        10'h104: read[7:0] = table_q.retries;
        10'h108: read[1:0] = {table_q.validate, table_q.errors};
        10'h10c: begin
          for (int unsigned p = 0; p < Participants; p++) read[31:0] = read[31:0] + 32'(device_q[p] != NoDevice);
        end
        10'h110: read[31:0] = table_q.isl_ports[31:0];
        10'h114: read[31:0] = table_q.isl_ports[63:32];
        10'h120, 10'h124, 10'h128, 10'h12c: read[31:0] = table_q.engines[32*offset[3:2]+:32];
        10'h130: read[31:0] = table_q.levels;
        10'h134: read[31:0] = table_q.queues;
        10'h138: read[31:0] = table_q.collector;
        10'h140: read[31:0] = failure_d[32] ? {4'd0, failure_d[27:0]} : {16'd0, NoDevice};
        10'h144: read[31:0] = failure_d[32] ? 32'(failure_d[31:28]) : '0;
        10'h150: read[31:0] = {16'd0, output_i};
        10'h154: read[31:0] = peak_d;
        10'h158: read[31:0] = in_d;
        10'h15c: read[31:0] = out_d;
        10'h160: read[31:0] = waited_d;
        10'h164: read[31:0] = reports_d;
        10'h170: read[31:0] = owner[32] ? owner[31:0] : '1;
        10'h200: read[11:0] = selected_q;
        10'h204: read[2:0] = state_i;
        10'h208: read[15:0] = track_i.p_count;
        10'h210, 10'h214, 10'h218, 10'h21c: read[31:0] = track_i.pbv[32*offset[3:2]+:32];
        10'h220, 10'h224, 10'h228, 10'h22c: read[31:0] = stored_i[32*offset[3:2]+:32];
        10'h230: read[31:0] = context_owner_i;
        10'h2f4: read[31:0] = window;
        10'h2f8: read[31:0] = complete;
        10'h2fc: read[31:0] = measured[31:0];
        default: read[32] = 1'b0;
      endcase
    end
  endfunction

  function automatic logic [15:0] following(logic [15:0] offset);
    following = offset + (offset < 16'h100 ? 16'd2 : 16'd4);
  endfunction

  // Whether frames of a device count for an owner.
  function automatic logic is_owner(logic [31:0] of_table, logic [15:0] requester);
    is_owner = requester != NoDevice && (of_table[15:0] == requester || of_table[31:16] == requester);
  endfunction

  //////////////////////
  // Frames that wait //
  //////////////////////

  frame_t               frame_q [Frames];
  frame_t               came [Frames+2];
  logic [63:0]          word_q [Frames][Words];
  logic [63:0]          word_came [Frames+2][Words];
  logic [LenBits-1:0]   len_q, len_came;
  logic                 served;
  logic [WaitBits-1:0]  wait_q, wait_d;

  assign closed_o = wait_q != '0;

  always_comb begin
    len_came = len_q;
    for (int unsigned k = 0; k < Frames + 2; k++) came[k] = k < Frames ? frame_q[k%Frames] : '0;
    for (int unsigned k = 0; k < Frames + 2; k++) begin
      for (int unsigned n = 0; n < Words; n++) word_came[k][n] = k < Frames ? word_q[k%Frames][n] : '0;
    end
    for (int unsigned p = 0; p < 2; p++) begin
      if (push_i[p]) begin
        came[len_came].head = head_i[p];
        came[len_came].words = words_i[p] - 10'd4;
        for (int unsigned k = 0; k < Words; k++) word_came[len_came][k] = word_i[p][k];
        len_came = len_came + LenBits'(1);
      end
    end
  end

  ///////////////////////
  // A frame is served //
  ///////////////////////

  always_comb begin
    frame_t      it;
    logic [15:0] offset, length;
    logic [31:0] value;
    logic [32:0] found;
    logic        refuses, told, may;
    status_e     why;
    logic [63:0] record [Payload];
    int unsigned at;

    table_d = table_q;
    device_d = device_q;
    owner_d = owner;
    selected_d = selected_q;
    set = 1'b0;
    set_window = window;
    wait_d = wait_q == '0 ? '0 : wait_q - WaitBits'(1);
    it = came[0];
    offset = it.head.offset - base_i;
    length = '0;
    value = '0;
    found = '0;
    told = 1'b0;
    may = 1'b0;
    refuses = 1'b0;
    why = StatusOk;
    at = 0;
    for (int unsigned k = 0; k < Payload; k++) record[k] = '0;
    for (int unsigned m = 0; m < Records; m++) begin
      message_o[m] = '0;
      for (int unsigned k = 0; k < Payload; k++) message_word_o[m][k] = '0;
    end
    served = len_came != '0 && wait_q == '0 && (it.head.message == MessageWrite || counted_i < most_i);
    served_o = served ? 16'(it.words) + 16'd4 : '0;
    if (served) begin
      if (it.head.message == MessageWrite) begin
        wait_d = it.words == '0 ? '0 : WaitBits'((32'(it.words) + MemoryPorts - 1) / MemoryPorts - 1);
        for (int unsigned k = 0; k < Words; k++) begin
          if (k < 32'(it.words) && !refuses) begin
            value = word_came[0][k][31:0];
            if ((offset < 16'h140 || offset == 16'h2f4) && table_d.validate) begin
              if (!owner_d[32]) owner_d = {1'b1, NoDevice, it.head.requester};
`ifdef WS_FAULTS
              // Whose frames they are is overlooked.
              may = is_owner(owner_d[31:0], it.head.requester) || me_i.fault == 4'd14;
`else
              may = is_owner(owner_d[31:0], it.head.requester);
`endif
              if (!may) begin
                refuses = 1'b1;
                why = StatusUnknownDevice;
              end
            end
            if (refuses) begin
              // The words behind it count no more.
            end else if (offset < 16'h100 && !offset[0]) begin
              if (32'(offset[7:1]) < Participants) device_d[32'(offset[7:1])%Participants] = value[15:0];
              table_d.engines[offset[7:1]] = value[16];
            end else begin
              unique case (offset)
                16'h100: table_d.timeout = value;
                16'h104: table_d.retries = value[7:0];
                16'h108: {table_d.validate, table_d.errors} = value[1:0];
                16'h110: table_d.isl_ports[31:0] = value;
                16'h114: table_d.isl_ports[63:32] = value;
                16'h120, 16'h124, 16'h128, 16'h12c: table_d.engines[32*offset[3:2]+:32] = value;
                16'h130: table_d.levels = value;
                16'h134: table_d.queues = value;
                16'h138: table_d.collector = value;
                16'h200: selected_d = value[11:0];
                16'h2f4: begin
                  set = 1'b1;
                  set_window = value;
                end
                default: begin
                  refuses = 1'b1;
                  why = StatusBadAddress;
                end
              endcase
            end
            offset = following(offset);
          end
        end
      end else if (it.head.message == MessageRead) begin
        length = it.head.p_count == '0 ? 16'd1 : it.head.p_count > 16'd256 ? 16'd256 : it.head.p_count;
        for (int unsigned k = 0; k < Reads; k++) begin
          if (k < 32'(length) && !refuses) begin
            found = read(offset);
            refuses = !found[32];
            message_word_o[0][k] = {32'd0, found[31:0]};
            offset = following(offset);
          end
        end
        why = StatusBadAddress;
        message_o[0].send = to_header(fresh(MessageReadReply, me_i, it.head.requester, reply_offset(it.head.tag)), WordsNone);
        message_o[0].send.head.cc_id = it.head.cc_id;
        message_o[0].send.head.p_count = length;
        message_o[0].send.head.dmu_id = NoDevice;
        message_o[0].send.head.tag = it.head.tag;
        message_o[0].counts = 1'b1;
        message_o[0].words = 10'(length);
      end else begin
        may = 1'b1;
        if (table_q.validate) begin
          if (!owner_d[32]) owner_d = {1'b1, NoDevice, it.head.requester};
          may = is_owner(owner_d[31:0], it.head.requester);
        end
        refuses = !may;
        why = StatusUnknownDevice;
        for (int unsigned r = 0; r < Records; r++) begin
          if (may && at < 32'(it.words) && at + 5 <= Words) begin
            // The record, and what follows it.
            for (int unsigned k = 0; k < Payload; k++) record[k] = word_came[0][(at+k)%Words];
            length = {3'd0, record[0][47:35]};
            told = record[1][50];
            if (record[0][63:48] == me_i.device) begin
              table_d.timeout = record[0][31:0];
              table_d.retries = record[1][63:56];
              {table_d.validate, table_d.errors} = record[1][49:48];
              table_d.isl_ports = record[2];
              table_d.engines = pbv_of(record[3], record[4]);
              {table_d.levels, table_d.queues} = told ? record[5] : '0;
              table_d.collector = told ? record[6][63:32] : '0;
              for (int unsigned p = 0; p < Participants; p++) begin
                device_d[p] = told ? record[7+p/4][63-16*(p%4)-:16] : record[5+p/4][63-16*(p%4)-:16];
                if (p >= 32'(record[1][47:32])) device_d[p] = NoDevice;
              end
              if (record[1][31:0] != set_window) begin
                set = 1'b1;
                set_window = record[1][31:0];
              end
              wait_d = WaitBits'((128 + MemoryPorts - 1) / MemoryPorts - 1);
            end else begin
              message_o[r].send = to_header(it.head, WordsNone);
              message_o[r].send.head.requester = me_i.device;
              message_o[r].send.head.tag = me_i.tag;
              message_o[r].send.head.device = record[0][63:48];
              message_o[r].send.head.offset = base_i;
              message_o[r].counts = 1'b1;
              message_o[r].words = length[9:0];
              message_word_o[r] = record;
            end
            at = at + 32'(length);
          end
        end
      end
      if (refuses) begin
        message_o[0] = '0;
        message_o[0].send = to_header(error_to(it.head, why, me_i), WordsNone);
        message_o[0].send.head.pass = '0;
        message_o[0].send.valid = table_d.errors && !it.head.posted;
        message_o[0].counts = 1'b1;
      end
    end
    refused_d = refused_e;
    if (refuses) refused_d[why] = refused_d[why] + 32'd1;
    if (side_i) begin
      table_d = side_config_i;
      device_d = side_device_i;
      set = 1'b1;
      set_window = side_config_i.window;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      table_q <= '0;
      table_q.errors <= 1'b1;
      table_q.validate <= 1'b1;
      for (int unsigned p = 0; p < Participants; p++) device_q[p] <= NoDevice;
      owner_q <= '0;
      selected_q <= '0;
      for (int unsigned s = 0; s < 16; s++) refused_q[s] <= '0;
      failure_q <= '0;
      peak_q <= '0;
      in_q <= '0;
      out_q <= '0;
      waited_q <= '0;
      reports_q <= '0;
      for (int unsigned k = 0; k < Frames; k++) begin
        frame_q[k] <= '0;
        for (int unsigned n = 0; n < Words; n++) word_q[k][n] <= '0;
      end
      len_q <= '0;
      wait_q <= '0;
    end else begin
      table_q <= table_d;
      device_q <= device_d;
      owner_q <= owner_d;
      selected_q <= selected_d;
      refused_q <= refused_d;
      failure_q <= failure_d;
      peak_q <= peak_d;
      in_q <= in_d;
      out_q <= out_d;
      waited_q <= waited_d;
      reports_q <= reports_d;
      for (int unsigned k = 0; k < Frames; k++) begin
        frame_q[k] <= served ? came[k+1] : came[k];
        word_q[k] <= served ? word_came[k+1] : word_came[k];
      end
      len_q <= len_came - LenBits'(served);
      wait_q <= wait_d;
    end
  end

  assign selected_o = selected_q;
  assign device_o = device_q;
  assign engines_o = table_q.engines[Participants-1:0];
  assign timeout_o = table_q.timeout;
  assign retries_o = table_q.retries;
  assign errors_o = table_q.errors;
  assign validate_o = table_q.validate;

  // The window is the metrics', and entries say how many there are.
  logic unused;

  assign unused = ^{me_i.timeout, table_q.window, table_q.entries, table_q.queues[31:Queues]};

endmodule
