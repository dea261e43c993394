// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A packet engine without its data path and registers: frames that were taken off the two links go in word by word, frames come out
// word by word, and in between is the collective engine.
//
//   words of port 0 --> apart --+--> inbox --> collective engine --> queue --> together --> words
//   words of port 1 --> apart --+--> registers     messages of registers --^
//                               +--> refused ------------------------------^
//
// Twin:        `receive`, `step` and `inject` of src/pbv/engine.rs; see ws_pbv_frame_in, ws_pbv_inbox, ws_pbv_ce and ws_pbv_frame_out.
// Parameters:  Inbox         messages that wait for the collective engine
//              Output        messages that may wait to leave before nothing is taken any more (`output`)
//              Places        places of the queue of those that leave: with refusals, and with parts of messages that are split
//              Refusals      refusals that may wait to leave
//              Payload       words of a frame that leaves behind its header, at most
//              Levels        see ws_pbv_frame_in
//              Beside        messages that come from beside in a cycle, ahead of those of the collective engine
//              Lists         lists of devices in a cycle
//              Registers     messages of the registers in a cycle
//              the others    see ws_pbv_ce
// Order:       in a cycle a message is taken from the inbox, what the collective engine sends is queued, the next copy is looked up and
//              sends a word, frames that are whole are refused or wait, and messages of the registers are queued
// Limitations: the memories of what one message is split into are beside: records of initialisations that go on, responses that are
//              handed to a source once more and devices of lists come from there, with the header of their message or on its heels.
//              The interposer, the registers and congestion reports are not here
module ws_pbv_frame
  import ws_pkg::*;
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Inbox = 8,
  parameter int unsigned Output = 32,
  parameter int unsigned Places = 48,
  parameter int unsigned Refusals = 64,
  parameter int unsigned Payload = 8,
  parameter int unsigned Levels = 8,
  parameter int unsigned Beside = 8,
  parameter int unsigned Lists = 2,
  parameter int unsigned Registers = 2,
  parameter int unsigned Contexts = 4,
  parameter int unsigned Participants = 8,
  parameter int unsigned Words = 4,
  parameter int unsigned Groups = 2,
  parameter bit          Forward = 1'b1,
  parameter int unsigned Stages = 4,
  parameter units_t      Units = '1,
  parameter int unsigned UnitCount = 1,
  parameter int unsigned Feeds = 2,
  parameter int unsigned MemoryPorts = 2,
  localparam int unsigned LenBits = $clog2(Places + 2),
  localparam int unsigned InboxBits = $clog2(Inbox + 1)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  self_t                   me_i,
  input  logic [15:0]             device_i [Participants],
  input  logic [Participants-1:0] engines_i,
  input  logic                    validate_i,
  input  logic                    errors_i,
  input  logic [7:0]              retries_i,
  input  logic [7:0]              bound_i,   // frames in a row that may go past an older one
  input  logic                    closed_i,  // the table is being written
  // Words that were taken off the links.
  input  logic [1:0]              take_i,
  input  logic [63:0]             word_i [2],
  input  logic [1:0]              tail_i,
  // What is for the registers, and what was refused by whom: the ports, then the collective engine.
  output logic [1:0]              registers_o,
  output message_t                head_o [2],
  output logic [3:0]              refused_o,
  output status_e                 status_o [4],
  // The message that the collective engine would take next, whether its sender may initialise, and whether it is taken.
  output message_t                next_o,
  input  logic                    owned_i,
  output logic                    taken_o,
  output logic                    full_o,
  // Messages from beside.
  input  leaving_t                beside_i [Beside],
  input  logic [63:0]             beside_word_i [Beside][Payload],
  input  logic [9:0]              list_words_i [Lists],
  input  logic [63:0]             list_word_i [Lists][Payload],
  input  leaving_t                register_i [Registers],
  input  logic [63:0]             register_word_i [Registers][Payload],
  // A word of a frame that leaves.
  output logic                    valid_o,
  output logic [63:0]             word_o,
  output logic                    first_o,
  output logic                    tail_o,
  output logic [31:0]             address_o,
  input  logic                    free_i,
  output logic [InboxBits-1:0]    inbox_o,
  output logic [LenBits-1:0]      output_o
);

  localparam int unsigned Sends = 18 + 2 * Groups + MemoryPorts * (5 + Groups);
  localparam int unsigned Early = Beside + Sends;
  localparam int unsigned Late = 2 + Registers;
  localparam int unsigned ListBits = $clog2(Lists + 1);

  ///////////
  // Apart //
  ///////////

  logic [15:0] base;
  logic [1:0]  whole, refused, readable, own;
  status_e     status [2];
  message_t    head [2];
  record_t     record [2];
  logic [63:0] word [2][Words];

  assign base = reply_offset(me_i.tag);

  for (genvar p = 0; p < 2; p++) begin : gen_port
    ws_pbv_frame_in #(
      .Words(Words),
      .Levels(Levels)
    ) u_in (
      .clk_i,
      .rst_ni,
`ifdef WS_FAULTS
      .fault_i(me_i.fault),
`endif
      .device_i(me_i.device),
      .base_i(base),
      .take_i(take_i[p]),
      .word_i(word_i[p]),
      .tail_i(tail_i[p]),
      .message_o(whole[p]),
      .registers_o(registers_o[p]),
      .refused_o(refused[p]),
      .readable_o(readable[p]),
      .status_o(status[p]),
      .head_o(head[p]),
      .own_o(own[p]),
      .record_o(record[p]),
      .word_o(word[p])
    );
  end

  message_t    next;
  record_t     next_record;
  logic        waits, taken, next_own;
  logic [63:0] next_word [Words];

  ws_pbv_inbox #(
    .Messages(Inbox),
    .Words(Words),
    .Ports(2)
  ) u_inbox (
    .clk_i,
    .rst_ni,
`ifdef WS_FAULTS
    .fault_i(me_i.fault),
`endif
    .bound_i,
    .push_i(whole),
    .head_i(head),
    .record_i(record),
    .own_i(own),
    .word_i(word),
    .any_o(waits),
    .head_o(next),
    .record_o(next_record),
    .own_o(next_own),
    .word_o(next_word),
    .pop_i(taken),
    .len_o(inbox_o)
  );

  ///////////////////////////
  // The collective engine //
  ///////////////////////////

  logic                ready, full;
  logic [LenBits-1:0]  counted;
  logic [15:0]         owes;
  logic [11:0]         cc_id [Contexts];
  logic [Contexts-1:0] leaving;
  logic [1:0]          refused_inside;
  status_e             status_inside [2];
  send_t               send [Sends];
  logic [63:0]         send_word [Sends][Words];

  // What is under way may fill the queue.
  assign full = 32'(counted) + 32'(owes) > Output;
  assign taken = waits && ready && !full && !closed_i;

  ws_pbv_ce #(
    .Contexts(Contexts),
    .Participants(Participants),
    .Words(Words),
    .Groups(Groups),
    .Forward(Forward),
    .Stages(Stages),
    .Units(Units),
    .UnitCount(UnitCount),
    .Feeds(Feeds),
    .MemoryPorts(MemoryPorts)
  ) u_ce (
    .clk_i,
    .rst_ni,
    .me_i,
    .device_i,
    .engines_i,
    .validate_i,
    .errors_i,
    .retries_i,
    .valid_i(taken),
    .message_i(next),
    .record_i(next_record),
    .owned_i(owned_i && next_own),
    .word_i(next_word),
    .ready_o(ready),
    .full_i(full),
    .leaving_i(leaving),
    .refused_o(refused_inside),
    .status_o(status_inside),
    .send_o(send),
    .send_word_o(send_word),
    .owes_o(owes),
    .cc_id_o(cc_id)
  );

  //////////////
  // Together //
  //////////////

  leaving_t    early [Early];
  logic [63:0] early_word [Early][Payload];
  leaving_t    late [Late];
  logic [63:0] late_word [Late][Payload];

  always_comb begin
    logic [ListBits-1:0] lists;

    for (int unsigned n = 0; n < Beside; n++) begin
      early[n] = beside_i[n];
      early_word[n] = beside_word_i[n];
    end
    lists = '0;
    for (int unsigned n = 0; n < Sends; n++) begin
      early[Beside+n] = '{send: send[n], counts: 1'b1, words: send[n].head.words[9:0]};
      for (int unsigned k = 0; k < Payload; k++) early_word[Beside+n][k] = k < Words ? send_word[n][k % Words] : '0;
      if (send[n].valid && send[n].from == WordsHanded) early[Beside+n].send.valid = 1'b0;
      if (send[n].valid && send[n].head.lists) begin
        for (int unsigned l = 0; l < Lists; l++) begin
          if (32'(lists) == l) begin
            early[Beside+n].words = list_words_i[l];
            early_word[Beside+n] = list_word_i[l];
          end
        end
        if (32'(lists) < Lists) lists = lists + ListBits'(1);
      end
    end
  end

  always_comb begin
    for (int unsigned p = 0; p < 2; p++) begin
      late[p] = '0;
      late[p].send = to_header(error_to(head[p], status[p], me_i), WordsNone);
      late[p].send.head.pass = '0;
      late[p].send.valid = refused[p] && readable[p] && errors_i && !head[p].posted && head[p].message != MessageError &&
                           head[p].message != MessageReadReply;
      for (int unsigned k = 0; k < Payload; k++) late_word[p][k] = '0;
    end
    for (int unsigned n = 0; n < Registers; n++) begin
      late[2+n] = register_i[n];
      late_word[2+n] = register_word_i[n];
    end
  end

  ws_pbv_frame_out #(
    .Places(Places),
    .Refusals(Refusals),
    .Participants(Participants),
    .Payload(Payload),
    .Contexts(Contexts),
    .Early(Early),
    .Late(Late)
  ) u_out (
    .clk_i,
    .rst_ni,
`ifdef WS_FAULTS
    .fault_i(me_i.fault),
`endif
    .base_i(base),
    .device_i,
    .engines_i,
    .bound_i,
    .closed_i,
    .early_i(early),
    .early_word_i(early_word),
    .late_i(late),
    .late_word_i(late_word),
    .valid_o,
    .word_o,
    .head_o(first_o),
    .tail_o,
    .address_o,
    .free_i,
    .len_o(output_o),
    .counted_o(counted),
    .cc_id_i(cc_id),
    .leaving_o(leaving)
  );

  assign head_o = head;
  assign refused_o = {refused_inside, refused};
  assign status_o[0] = status[0];
  assign status_o[1] = status[1];
  assign status_o[2] = status_inside[0];
  assign status_o[3] = status_inside[1];
  assign next_o = next;
  assign taken_o = taken;
  assign full_o = full;

endmodule
