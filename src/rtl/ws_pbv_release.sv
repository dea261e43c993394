// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Inter-group barriers at their master: which groups may go on. Combinational.
//
//   group 0: context c     -- all are there --+   +--> satisfied to groups 1 and 2
//   group 1: context c + 1 -- all are there --+---+
//   group 2: context c + 2                        +--> a group goes on when all others are there, itself or not
//
// Twin:        `Ce::release` and the end of `Ce::arrive` in src/pbv/ce/groups.rs.
// Parameters:  Contexts   contexts of the store
//              Groups     groups of a barrier, at most
// Limitations: groups of larger barriers do not go on. Barriers have no words: a group that is armed again has no accumulators
module ws_pbv_release
  import ws_pbv_pkg::*;
#(
  parameter int unsigned Contexts = 4,
  parameter int unsigned Groups = 2,
  localparam int unsigned SlotBits = Contexts > 1 ? $clog2(Contexts) : 1
) (
  input  self_t               me_i,
  // All groups of a context's barrier are looked at, or only its own.
  input  logic                all_i,
  input  logic                one_i,
  input  logic [SlotBits-1:0] at_i,
  input  context_t            context_i [Contexts],
  input  logic [15:0]         generation_i,
  output context_t            context_o [Contexts],
  output logic [15:0]         generation_o,
  // A message for each group that goes on, and whose tracking entry is to be loaded anew.
  output send_t               send_o [Groups],
  output load_t               load_o [Groups]
);

  // Of another group, whether and when all of it were there, and what was wrong.
  /* verilator lint_off UNUSEDSIGNAL */
  always_comb begin
    context_t    it, other;
    logic        found, goes, there;
    logic [15:0] of;
    logic [SlotBits-1:0] slot;
    logic [31:0] ahead;
    status_e     status;
    message_t    answer;

    context_o = context_i;
    generation_o = generation_i;
    it = '0;
    found = 1'b0;
    goes = 1'b0;
    there = 1'b0;
    slot = '0;
    of = '0;
    status = StatusOk;
    other = '0;
    ahead = '0;
    answer = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      send_o[g] = '0;
      load_o[g] = '0;
      slot = '0;
      found = 1'b0;
      of = context_i[at_i].stored.first + 16'(g);
      for (int unsigned c = 0; c < Contexts; c++) begin
        if (context_o[c].state != ContextAbsent && 16'(context_o[c].cc_id) == of) begin
          found = 1'b1;
          slot = SlotBits'(c);
        end
      end
      it = context_o[slot];
      goes = found && context_i[at_i].stored.groups && g < 32'(context_i[at_i].stored.count) &&
             (all_i || (one_i && slot == at_i)) && it.stored.groups && it.stored.master && !it.release_valid &&
             (it.commanded || (it.like.message == MessageInitialisation && it.like.run != '0)) &&
             (it.state == ContextActive || it.state == ContextWaiting) && 32'(it.stored.count) <= Groups;
      status = StatusOk;
      for (int unsigned h = 0; h < Groups; h++) begin
        of = it.stored.first + 16'(h);
        if (h < 32'(it.stored.count) && of != 16'(it.cc_id)) begin
          there = 1'b0;
          for (int unsigned c = 0; c < Contexts; c++) begin
            if (context_o[c].state != ContextAbsent && 16'(context_o[c].cc_id) == of) begin
              there = 1'b1;
              other = context_o[c];
            end
          end
          ahead = other.arrived_run - it.like.run;
`ifdef WS_FAULTS
          // That it is an earlier run is overlooked.
          if (me_i.fault == 4'd5) ahead[31] = 1'b0;
`endif
          if (!there || !other.arrived || ahead[31]) goes = 1'b0;
          else if (ahead >= 32'd8 || !other.complete[ahead[2:0]]) begin
            // It may be a run further, and this one have failed, or have never begun there.
            status = ahead == '0 && other.error != StatusOk ? other.error : StatusTimedOut;
          end
        end
      end
      if (goes) begin
        it.release_valid = 1'b1;
        it.release_status = status;
        if (it.state == ContextWaiting) it.state = ContextDone;
        answer = response(it, MessageSatisfied, 1'b0, me_i);
        if (!is_multicast(it)) send_o[g] = to_entries(answer, WordsNone, it.stored.down, NoDevice);
        if (it.stored.rearm) begin
          generation_o = generation_o + 16'd1;
          it = rearmed(it, answer, generation_o);
          load_o[g] = load_of(it, 12'(slot));
        end
        context_o[slot] = it;
      end
    end
  end
  /* verilator lint_on UNUSEDSIGNAL */

endmodule
