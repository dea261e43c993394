// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Chooses by traffic class which of those that wait goes next: the highest class, of it the oldest. Combinational.
//
// Twin:        `Picker::next` of src/pbv/priority.rs; who goes counts those that went past an older one.
// Parameters:  Places   how many may wait, the oldest in place 0
// Limitations: none
module ws_pbv_picker #(
  parameter int unsigned Places = 4,
  localparam int unsigned PlaceBits = Places > 1 ? $clog2(Places) : 1
) (
  input  logic [Places-1:0]    waits_i,
  input  logic [2:0]           class_i [Places],
  input  logic [7:0]           bound_i,   // so many in a row may go past an older one; 0: any number
  input  logic [7:0]           passed_i,  // so many have
  output logic                 any_o,
  output logic [PlaceBits-1:0] at_o
);

  always_comb begin
    logic [2:0] most;
    logic       oldest;

    oldest = bound_i != '0 && passed_i >= bound_i;
    any_o = 1'b0;
    at_o = '0;
    most = '0;
    for (int unsigned k = 0; k < Places; k++) begin
      if (waits_i[k] && (!any_o || (!oldest && class_i[k] > most))) begin
        any_o = 1'b1;
        at_o = PlaceBits'(k);
        most = class_i[k];
      end
    end
  end

endmodule
