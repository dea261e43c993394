// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Types that all modules share: operations, data types, modes, flags, and the fields of every stage register.
//
// Twin:        src/arith/types.rs and src/arith/code.rs (names and numbers), the register structs of src/arith/{adder,
//              multiplier,round,comparator,integer,locator,repsum,quad}.rs, `cut` of src/arith/unit.rs; frames, descriptors and entries of src/armed.
// Numbers:     an enumeration has the numbers of the model's list (`Op::ALL`, `DType::ALL`, `Round::ALL`).
// Widths:      a register is as wide as its widest format needs. In a unit built for narrower ones the upper bits are constant
//              zeros, which synthesis takes away.
package ws_pkg;

  // What a reduction does with two operands. The last three take four words an operand: only ws_quad_unit has them.
  typedef enum logic [3:0] {
    OpSum          = 4'd0,
    OpProd         = 4'd1,
    OpMin          = 4'd2,
    OpMax          = 4'd3,
    OpAnd          = 4'd4,
    OpOr           = 4'd5,
    OpXor          = 4'd6,
    OpNand         = 4'd7,
    OpNor          = 4'd8,
    OpXnor         = 4'd9,
    OpBarrier      = 4'd10,
    OpMinNum       = 4'd11,
    OpMaxNum       = 4'd12,
    OpMinMaxLoc    = 4'd13,
    OpMinMaxNumLoc = 4'd14,
    OpRepSum       = 4'd15
  } op_e;

  // Type of the lanes of a 64-bit word.
  typedef enum logic [3:0] {
    DtI32  = 4'd0,
    DtU32  = 4'd1,
    DtI64  = 4'd2,
    DtU64  = 4'd3,
    DtF16  = 4'd4,
    DtBf16 = 4'd5,
    DtTf32 = 4'd6,
    DtF32  = 4'd7,
    DtF64  = 4'd8,
    DtE4m3 = 4'd9,
    DtE5m2 = 4'd10
  } dtype_e;

  // Not every module needs all of them.
  /* verilator lint_off UNUSEDPARAM */
  localparam int unsigned NumDtypes = 11;
  localparam int unsigned FirstFloat = 4;
  // Logic segments of every unit.
  localparam int unsigned Segments = 6;
  /* verilator lint_on UNUSEDPARAM */

  // What a unit computes from two lanes.
  typedef enum logic [3:0] {
    FnAdd         = 4'd0,
    FnSub         = 4'd1,
    FnMul         = 4'd2,
    FnMin         = 4'd3,
    FnMax         = 4'd4,
    FnMinNum      = 4'd5,
    FnMaxNum      = 4'd6,
    FnEqual       = 4'd7,
    FnLessOrEqual = 4'd8,
    FnLess        = 4'd9,
    FnAnd         = 4'd10,
    FnOr          = 4'd11,
    FnXor         = 4'd12,
    FnNand        = 4'd13,
    FnNor         = 4'd14,
    FnXnor        = 4'd15
  } fn_e;

  typedef enum logic [1:0] {
    RoundNearestEven = 2'd0,
    RoundTowardZero  = 2'd1,
    RoundUp          = 2'd2,
    RoundDown        = 2'd3
  } round_e;

  // How floating-point units round, flush and treat NaNs.
  typedef struct packed {
    logic   signal_ieee;    // a signalling NaN makes minnum and maxnum a NaN
    logic   nan_propagate;  // a NaN result keeps an operand's payload
    logic   flush_to_zero;
    round_e round;
  } mode_t;

  // Sticky exception flags, in the order of bits that SoftFloat has for the lower five.
  typedef struct packed {
    logic rep_inexact;
    logic int_overflow;
    logic invalid;
    logic infinite;  // never raised here
    logic overflow;
    logic underflow;
    logic inexact;
  } flags_t;

  // What the engine of a switch does for one collective id.
  typedef struct packed {
    op_e    op;
    dtype_e dtype;
    mode_t  mode;
  } select_t;

  // Side band of a flit.
  typedef struct packed {
    logic [35:0] seq;
    logic [11:0] id;
    logic [7:0]  flags;
    logic        reserved;
    logic [4:0]  vc;
    logic        tail;
    logic        head;
  } tag_t;

  // What a link carries in one cycle.
  typedef struct packed {
    tag_t        tag;
    logic [63:0] word;
  } flit_t;

  // Which datapath a function takes.
  typedef enum logic [1:0] {
    PathAdd = 2'd0,
    PathMul = 2'd1,
    PathCmp = 2'd2,
    PathInt = 2'd3
  } path_e;

  // Which datapaths a unit is built with: bit (path x NumDtypes + type). Floating-point adders and multipliers stand under
  // PathAdd and PathMul, integer ones and the gates (which see U64) under PathInt, comparators of all types under PathCmp.
  localparam int unsigned NumUnits = 4 * NumDtypes;
  typedef logic [NumUnits-1:0] units_t;

  // Whether a result goes around the significand path.
  typedef enum logic [1:0] {
    SpecialNumber   = 2'd0,
    SpecialNan      = 2'd1,
    SpecialInfinity = 2'd2
  } special_e;

  // An operand taken apart (wires).
  typedef struct packed {
    logic        sign;
    logic        is_nan;
    logic        signalling;
    logic        is_infinite;
    logic [10:0] exponent;
    logic [52:0] significand;
  } unpacked_t;

  // Adder, after segment 0.
  typedef struct packed {
    special_e    special;
    logic        sign;
    logic        subtract;
    logic        invalid;
    logic [12:0] exponent;
    logic [10:0] distance;
    logic [63:0] larger;
    logic [52:0] smaller;
  } compared_t;

  // Adder, after segment 1.
  typedef struct packed {
    special_e    special;
    logic        sign;
    logic        subtract;
    logic        invalid;
    logic [12:0] exponent;
    logic [63:0] larger;
    logic [55:0] smaller;
  } aligned_t;

  // Adder, after segment 2.
  typedef struct packed {
    special_e    special;
    logic        sign;
    logic        invalid;
    logic [12:0] exponent;
    logic [63:0] sum;
  } summed_t;

  // Multiplier, after segment 0.
  typedef struct packed {
    special_e    special;
    logic        sign;
    logic        invalid;
    logic [12:0] exponent;
    logic [63:0] a;
    logic [52:0] b;
  } factored_t;

  // Multiplier, after segment 1.
  typedef struct packed {
    special_e    special;
    logic        sign;
    logic        invalid;
    logic [12:0] exponent;
    logic [79:0] lower;
    logic [79:0] upper;
  } partials_t;

  // Multiplier, after segment 2.
  typedef struct packed {
    special_e     special;
    logic         sign;
    logic         invalid;
    logic [12:0]  exponent;
    logic [105:0] product;
  } product_t;

  // Adder and multiplier, after segment 3.
  typedef struct packed {
    special_e    special;
    logic        sign;
    logic        invalid;
    logic [12:0] exponent;
    logic [63:0] significand;
  } normalised_t;

  // Adder and multiplier, after segment 4.
  typedef struct packed {
    special_e    special;
    logic        sign;
    logic        invalid;
    logic [12:0] exponent;
    logic [63:0] significand;
    logic        inexact;
    logic        tiny;
  } rounded_t;

  // Comparator, after segment 0.
  typedef struct packed {
    logic        unordered;
    logic        invalid;
    logic [63:0] a_key;
    logic [63:0] b_key;
    logic [63:0] a;
    logic [63:0] b;
  } keys_t;

  // Comparator, after segment 1.
  typedef struct packed {
    logic        unordered;
    logic        invalid;
    logic        less;
    logic        equal;
    logic [63:0] a;
    logic [63:0] b;
  } ordered_t;

  // Integer unit, after segment 0.
  typedef struct packed {
    logic        negative;
    logic [63:0] a;
    logic [63:0] b;
  } extended_t;

  // Integer unit, after segment 1.
  typedef struct packed {
    logic        negative;
    logic [95:0] lower;
    logic [95:0] upper;
  } int_partials_t;

  // The finished lane.
  typedef struct packed {
    logic [63:0] lane;
    flags_t      flags;
  } done_t;

  // What a segment must know of the operation it works on.
  typedef struct packed {
    logic   valid;
    fn_e    fn;
    dtype_e dtype;
    mode_t  mode;
  } ctrl_t;

  // Result code of a frame; of two the larger one climbs.
  typedef enum logic [3:0] {
    CodeOk            = 4'd0,
    CodeFltInexact    = 4'd1,
    CodeFltOverflow   = 4'd3,
    CodeFltInvalid    = 4'd4,
    CodeRepInexact    = 4'd5,
    CodeIntOverflow   = 4'd6,
    CodeContrOverflow = 4'd7,
    CodeOpMismatch    = 4'd8
  } code_e;

  // The arithmetic part of a frame.
  typedef struct packed {
    logic [1:0]       oflow_id;
    logic [7:0]       m;
    code_e            code;
    logic [3:0][63:0] word;
  } quad_t;

  // Which datapath of a quad unit an operation takes.
  typedef enum logic [2:0] {
    QuadAdd     = 3'd0,
    QuadCmp     = 3'd1,
    QuadInt     = 3'd2,
    QuadLoc     = 3'd3,
    QuadRep     = 3'd4,
    QuadBarrier = 3'd5
  } quad_path_e;

  // What a segment of a quad unit must know of the operation it works on.
  typedef struct packed {
    logic   valid;
    op_e    op;
    dtype_e dtype;
    mode_t  mode;
  } quad_ctrl_t;

  // Locator, one half (minimum or maximum), after segment 0.
  typedef struct packed {
    keys_t       keys;
    logic [63:0] a_index;
    logic [63:0] b_index;
  } loc_keys_t;

  // Locator, one half, after segment 1.
  typedef struct packed {
    ordered_t    ordered;
    logic [63:0] a_index;
    logic [63:0] b_index;
    logic        a_first;
  } loc_ordered_t;

  // Reproducible sum, after segment 0.
  typedef struct packed {
    logic [7:0] m;
    logic [2:0] distance;
    quad_t      larger;
    quad_t      smaller;
  } rep_compared_t;

  // Reproducible sum, after segment 1.
  typedef struct packed {
    logic [7:0]       m;
    logic             overflowed;
    logic [1:0]       oflow_id;
    code_e            code;
    logic [3:0][63:0] larger;
    logic [3:0][63:0] smaller;
  } rep_aligned_t;

  // A frame of the armed family, as it is held where it is whole: what is constant or checked is left out.
  typedef struct packed {
    logic [12:0] multicast_id;
    logic [2:0]  reduction_id;
  } address_t;

  typedef struct packed {
    address_t    address;
    logic [31:0] source;
    logic [15:0] vni;
    logic [15:0] target;
    logic [31:0] request;
    logic [15:0] initiator;
    logic [31:0] rank;
    logic [31:0] cookie;
    logic        retry;
    logic        arm;
    logic [5:0]  op;
    logic [9:0]  seqno;
    logic [9:0]  resno;
    logic [19:0] count;
    quad_t       quad;
  } frame_t;

  // What a descriptor keeps of the headers of the first contribution.
  typedef struct packed {
    logic [31:0] source;
    logic [15:0] target;
    logic [31:0] request;
    logic [15:0] initiator;
    logic [31:0] rank;
    logic [5:0]  op;
  } heading_t;

  // The state of one active reduction.
  typedef struct packed {
    logic        active;
    logic        busy;         // a read-modify-write is in the pipeline
    logic [7:0]  generation;   // which arming this is: what the pipeline holds for an earlier one is discarded
    address_t    address;
    logic [15:0] vni;
    logic [31:0] cookie;
    logic [9:0]  seqno;
    logic [19:0] wait_count;
    logic [19:0] count;
    logic [47:0] deadline;
    logic [47:0] known_until;  // free, and until then address and number are those of the reduction that it held
    logic        first_valid;
    heading_t    first;
    quad_t       quad;
  } descriptor_t;

  // A multicast entry of this engine's port: whose tree it is, and how many end points are below.
  typedef struct packed {
    logic        valid;
    logic [12:0] multicast_id;
    logic [19:0] wait_count;
    logic [31:0] root;
    logic [15:0] vni;
    logic [31:0] cookie;
  } entry_t;

  // What goes with a read-modify-write through the quad unit.
  typedef struct packed {
    logic [12:0] multicast_id;
    logic [2:0]  reduction_id;
    logic [9:0]  seqno;
    logic [15:0] descriptor;
    logic [7:0]  generation;
    logic [19:0] count;
    heading_t    first;
  } merge_t;

  // What a reduction engine did in a cycle, to be counted; of expiries there may be several.
  typedef struct packed {
    logic       armed;
    logic       no_descriptor;
    logic       down_refused;
    logic       rearmed_active;
    logic       released;
    logic       merged;
    logic       passed;
    logic [1:0] wrong_kind;
    logic       wrong_sender;
    logic [1:0] wrong_vni;
    logic [1:0] wrong_cookie;
    logic [1:0] stale;
    logic       mismatches;
    logic       overflows;
    logic       completed;
    logic [2:0] expired;
    logic [2:0] expired_empty;
    logic       interlock;
    logic       port_wait;
  } armed_events_t;

  // What it has counted.
  typedef struct packed {
    logic [31:0] armed;
    logic [31:0] no_descriptor;
    logic [31:0] down_refused;
    logic [31:0] rearmed_active;
    logic [31:0] released;
    logic [31:0] merged;
    logic [31:0] passed;
    logic [31:0] damaged;
    logic [31:0] malformed;
    logic [31:0] wrong_kind;
    logic [31:0] wrong_sender;
    logic [31:0] wrong_vni;
    logic [31:0] wrong_cookie;
    logic [31:0] stale;
    logic [31:0] mismatches;
    logic [31:0] overflows;
    logic [31:0] completed;
    logic [31:0] expired;
    logic [31:0] expired_empty;
    logic [31:0] interlock;
    logic [31:0] port_wait;
  } armed_counts_t;

  // An opcode of the armed family, decoded.
  typedef struct packed {
    logic    valid;
    select_t select;  // NaN and signalling-NaN policy are the engine's
  } opcode_t;

  // Whether a register lies behind each segment, for this many clock stages.
  function automatic logic [Segments-1:0] cut(int unsigned stages);
    unique case (stages)
      1:       cut = 6'b100000;
      2:       cut = 6'b100100;
      3:       cut = 6'b101010;
      4:       cut = 6'b101110;
      5:       cut = 6'b101111;
      default: cut = 6'b111111;
    endcase
  endfunction

  // The clock stage, from 0, that a segment belongs to.
  function automatic int unsigned stage_of(int unsigned stages, int unsigned segment);
    logic [Segments-1:0] behind;
    behind = cut(stages);
    stage_of = 0;
    for (int unsigned k = 0; k < Segments; k++) begin
      if (k < segment && behind[k]) stage_of++;
    end
  endfunction

  function automatic int unsigned exponent_bits(dtype_e dtype);
    unique case (dtype)
      DtF16, DtE5m2: exponent_bits = 5;
      DtE4m3:        exponent_bits = 4;
      DtF64:         exponent_bits = 11;
      default:       exponent_bits = 8;
    endcase
  endfunction

  function automatic int unsigned fraction_bits(dtype_e dtype);
    unique case (dtype)
      DtF16, DtTf32: fraction_bits = 10;
      DtBf16:        fraction_bits = 7;
      DtF64:         fraction_bits = 52;
      DtE4m3:        fraction_bits = 3;
      DtE5m2:        fraction_bits = 2;
      default:       fraction_bits = 23;
    endcase
  endfunction

  // TF32 travels in the upper bits of a 32-bit lane.
  function automatic int unsigned pad_bits(dtype_e dtype);
    pad_bits = dtype == DtTf32 ? 13 : 0;
  endfunction

  // E4M3 has no infinity: its largest exponent holds numbers, and only all ones is a NaN.
  function automatic logic nan_only(dtype_e dtype);
    nan_only = dtype == DtE4m3;
  endfunction

  function automatic int unsigned lane_bits(dtype_e dtype);
    unique case (dtype)
      DtI64, DtU64, DtF64: lane_bits = 64;
      DtF16, DtBf16:       lane_bits = 16;
      DtE4m3, DtE5m2:      lane_bits = 8;
      default:             lane_bits = 32;
    endcase
  endfunction

  function automatic logic is_signed(dtype_e dtype);
    is_signed = dtype == DtI32 || dtype == DtI64;
  endfunction

  function automatic logic is_float(dtype_e dtype);
    is_float = dtype >= DtF16;
  endfunction

  function automatic logic has_unit(units_t units, path_e path, int unsigned dtype);
    has_unit = units[32'(path) * NumDtypes + dtype];
  endfunction

  // Whether any type of a path is in use.
  function automatic logic has_path(units_t units, path_e path);
    has_path = |units[32'(path) * NumDtypes +: NumDtypes];
  endfunction

  // The most lanes that a type in use has.
  function automatic int unsigned lanes_in_use(units_t units);
    lanes_in_use = 1;
    for (int unsigned unit = 0; unit < NumUnits; unit++) begin
      if (units[unit] && 64 / lane_bits(dtype_e'(4'(unit % NumDtypes))) > lanes_in_use) begin
        lanes_in_use = 64 / lane_bits(dtype_e'(4'(unit % NumDtypes)));
      end
    end
  endfunction

  function automatic path_e path_of(fn_e fn, dtype_e dtype);
    unique case (fn)
      FnAdd, FnSub: path_of = is_float(dtype) ? PathAdd : PathInt;
      FnMul:        path_of = is_float(dtype) ? PathMul : PathInt;
      FnMin, FnMax, FnMinNum, FnMaxNum, FnEqual, FnLessOrEqual, FnLess: path_of = PathCmp;
      default:      path_of = PathInt;
    endcase
  endfunction

  // The function that a reduction needs of each lane; of no meaning for a barrier and for operations of four words.
  function automatic fn_e fn_of(op_e op);
    unique case (op)
      OpProd:   fn_of = FnMul;
      OpMin:    fn_of = FnMin;
      OpMax:    fn_of = FnMax;
      OpAnd:    fn_of = FnAnd;
      OpOr:     fn_of = FnOr;
      OpXor:    fn_of = FnXor;
      OpNand:   fn_of = FnNand;
      OpNor:    fn_of = FnNor;
      OpXnor:   fn_of = FnXnor;
      OpMinNum: fn_of = FnMinNum;
      OpMaxNum: fn_of = FnMaxNum;
      default:  fn_of = FnAdd;
    endcase
  endfunction

  // Bitwise operations do not see lanes: the whole word is one.
  function automatic dtype_e dtype_of(op_e op, dtype_e dtype);
    dtype_of = op >= OpAnd && op <= OpXnor ? DtU64 : dtype;
  endfunction

  // Whether a word unit computes something for this operation.
  function automatic logic has_data(op_e op);
    has_data = op < OpBarrier || op == OpMinNum || op == OpMaxNum;
  endfunction

  function automatic code_e climb(code_e a, code_e b);
    climb = a < b ? b : a;
  endfunction

  // The code of the worst exception.
  function automatic code_e code_of(flags_t flags);
    if (flags.int_overflow) code_of = CodeIntOverflow;
    else if (flags.rep_inexact) code_of = CodeRepInexact;
    else if (flags.invalid) code_of = CodeFltInvalid;
    else if (flags.overflow) code_of = CodeFltOverflow;
    else code_of = flags == '0 ? CodeOk : CodeFltInexact;
  endfunction

  function automatic quad_path_e quad_path_of(op_e op, dtype_e dtype);
    unique case (op)
      OpBarrier:                          quad_path_of = QuadBarrier;
      OpMinMaxLoc, OpMinMaxNumLoc:        quad_path_of = QuadLoc;
      OpRepSum:                           quad_path_of = QuadRep;
      OpMin, OpMax, OpMinNum, OpMaxNum:   quad_path_of = QuadCmp;
      default:                            quad_path_of = op == OpSum && is_float(dtype) ? QuadAdd : QuadInt;
    endcase
  endfunction

  // The opcodes of a frame; the numbers are those of the public host driver.
  function automatic opcode_t opcode_of(logic [5:0] number);
    opcode_of = '0;
    opcode_of.valid = 1'b1;
    opcode_of.select.op = OpSum;
    opcode_of.select.dtype = DtF64;
    unique case (number)
      6'h00: opcode_of.select = '{op: OpBarrier, dtype: DtU64, mode: '0};
      6'h01: opcode_of.select = '{op: OpAnd, dtype: DtU64, mode: '0};
      6'h02: opcode_of.select = '{op: OpOr, dtype: DtU64, mode: '0};
      6'h03: opcode_of.select = '{op: OpXor, dtype: DtU64, mode: '0};
      6'h10: opcode_of.select = '{op: OpMin, dtype: DtI64, mode: '0};
      6'h11: opcode_of.select = '{op: OpMax, dtype: DtI64, mode: '0};
      6'h12: opcode_of.select = '{op: OpMinMaxLoc, dtype: DtI64, mode: '0};
      6'h14: opcode_of.select = '{op: OpSum, dtype: DtI64, mode: '0};
      6'h20: opcode_of.select.op = OpMin;
      6'h21: opcode_of.select.op = OpMax;
      6'h22: opcode_of.select.op = OpMinMaxLoc;
      6'h24: opcode_of.select.op = OpMinNum;
      6'h25: opcode_of.select.op = OpMaxNum;
      6'h26: opcode_of.select.op = OpMinMaxNumLoc;
      6'h28: opcode_of.select.mode.round = RoundNearestEven;
      6'h29: opcode_of.select.mode.round = RoundUp;
      6'h2a: opcode_of.select.mode.round = RoundDown;
      6'h2b: opcode_of.select.mode.round = RoundTowardZero;
      6'h2c: begin
        opcode_of.select.mode.round = RoundNearestEven;
        opcode_of.select.mode.flush_to_zero = 1'b1;
      end
      6'h2d: begin
        opcode_of.select.mode.round = RoundUp;
        opcode_of.select.mode.flush_to_zero = 1'b1;
      end
      6'h2e: begin
        opcode_of.select.mode.round = RoundDown;
        opcode_of.select.mode.flush_to_zero = 1'b1;
      end
      6'h2f: begin
        opcode_of.select.mode.round = RoundTowardZero;
        opcode_of.select.mode.flush_to_zero = 1'b1;
      end
      6'h30: opcode_of.select.op = OpRepSum;
      default: opcode_of.valid = 1'b0;
    endcase
  endfunction

  // Whether a result code is assigned.
  function automatic logic is_code(logic [3:0] number);
    is_code = number <= 4'd8 && number != 4'd2;
  endfunction

  // Whether a sequence number lies behind another, modulo 1024: by up to half the range.
  function automatic logic is_older(logic [9:0] seqno, logic [9:0] reference);
    logic [9:0] distance;
    distance = reference - seqno;
    is_older = distance != '0 && distance <= 10'd512;
  endfunction

  // The k-th of `all` requesters, in turn from one of them on, or from behind the last one.
  function automatic int unsigned in_turn(int unsigned from, int unsigned k, int unsigned all);
    in_turn = from + k >= all ? from + k - all : from + k;
  endfunction

  // The rounding decision, from the last bit kept, the first one lost, and whether any other is lost.
  function automatic logic increments(round_e round, logic sign, logic last, logic guard, logic rest);
    unique case (round)
      RoundNearestEven: increments = guard && (last || rest);
      RoundUp:          increments = !sign && (guard || rest);
      RoundDown:        increments = sign && (guard || rest);
      default:          increments = 1'b0;
    endcase
  endfunction

endpackage
