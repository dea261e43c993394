//! Programs that threads of a core run: a small instruction set and its text form (requirements P-ISA-1 to P-ISA-3;
//! "In-network multicast operations", paragraphs 17 to 21 and Table 1).
//!
//! One instruction a line; `;` or `#` starts a comment; `name:` is a label, alone or before an instruction. Operands
//! are registers `r0` to `r15` (64 bits, zero at start), numbers (`17`, `-3`, `0x1f`), constants of `.equ`, and the
//! special values `%core`, `%cores`, `%thread`, `%cycle`. Where the tables say *x*, any of these is allowed.
//!
//! | instruction | what it does |
//! |---|---|
//! | `mov rd, x` | rd = x |
//! | `add`, `sub`, `mul`, `and`, `or`, `xor`, `shl`, `shr` `rd, x, y` | rd = x op y, modulo 2^64 |
//! | `load rd, [x + n]`, `store [x + n], y` | one word of the [address map](self#addresses) |
//! | `compute x` | nothing for x cycles |
//! | `jump L`; `beq`, `bne`, `blt`, `bge` `x, y, L` | branch; `blt`, `bge` compare without sign |
//! | `mcast.send tree, x, sender, SIZE` | sends the low SIZE (1, 2, 4, 8) bytes of x and the id of the sending thread to a whole tree |
//! | `mcast.poll rs, rd, rt, tree` | takes the oldest message: rs = 1, rd = data, rt = its sender; rs = 0 if there is none. Never blocks |
//! | `mcast.wait rd, rt, tree, SIZE` | the same, blocks until there is a message; the low SIZE bytes |
//! | `allreduce id, in, out, m` | calls a collective on m elements at address `in`; the result lands at `out`; blocks until complete |
//! | `reduce`, `broadcast`, `scan` `id, in, out, m` | the same; `out` of a reduce is used at the receiver only, `in` of a broadcast at the source only |
//! | `barrier id` | blocks until all participants have called it |
//! | `allreduce.nb rh, id, in, out, m`; `reduce.nb` …; `barrier.nb rh, id` | starts it and goes on; rh is a handle |
//! | `test rd, x` | rd = 1 if the call with handle x is complete, else 0 |
//! | `wait x` | blocks until it is |
//! | `report x` | writes x and the cycle into the result document |
//! | `expect x, y` | the run fails if they differ |
//! | `iret` | end of an interrupt handler |
//! | `halt` | end of the thread; so is the end of the text |
//!
//! | directive | what it does |
//! |---|---|
//! | `.equ NAME, n` | a constant |
//! | `.handler L` | the interrupt handler of this core starts at L, with the tree's id in r0 |
//! | `.words ADDRESS, n, n, …` | words of the core's local memory before cycle 0 |
//! | `.random ADDRESS, COUNT, DTYPE` | COUNT elements there, drawn for each core (normal, or integers up to 100 for integer types) |
//!
//! # Addresses
//!
//! | address | what | cost |
//! |---|---|---|
//! | 0x0000… + 8 x n | word n of local memory | memory bandwidth and latency |
//! | 0x1000… + 8 x n | word n of the scratchpad | a cycle |
//! | 0x2000… + address | configuration registers of all switches | the crossbar, both ways |
//! | 0x3000… + 0x1000 x id + 8 x n | MSR n of a multicast id | the crossbar, both ways |
//!
//! The text form and all but the three `mcast` instructions and the names of the intrinsics are *chosen*.

use std::collections::BTreeMap;
use std::ops::Range;
use watershed_arith::DType;

/// First address of local memory.
pub const LOCAL: u64 = 0;
/// First address of the scratchpad.
pub const SCRATCHPAD: u64 = 1 << 60;
/// First address of the configuration registers.
pub const CONFIGURATION: u64 = 2 << 60;
/// First address of the machine specific registers.
pub const MSR: u64 = 3 << 60;

/// Registers of a thread.
pub const REGISTERS: usize = 16;

/// What an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A register.
    Reg(u8),
    /// A number.
    Number(u64),
    /// The core's number.
    Core,
    /// Number of cores.
    Cores,
    /// The thread's number on its core.
    Thread,
    /// The present cycle.
    Cycle,
}

/// Arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left; by 64 or more gives 0.
    Shl,
    /// Shift right; by 64 or more gives 0.
    Shr,
}

impl Alu {
    /// The result.
    pub fn apply(self, a: u64, b: u64) -> u64 {
        match self {
            Alu::Add => a.wrapping_add(b),
            Alu::Sub => a.wrapping_sub(b),
            Alu::Mul => a.wrapping_mul(b),
            Alu::And => a & b,
            Alu::Or => a | b,
            Alu::Xor => a ^ b,
            Alu::Shl => u32::try_from(b).ok().and_then(|by| a.checked_shl(by)).unwrap_or(0),
            Alu::Shr => u32::try_from(b).ok().and_then(|by| a.checked_shr(by)).unwrap_or(0),
        }
    }
}

/// When a branch is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always.
    Always,
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Below, without sign.
    Below,
    /// Not below, without sign.
    NotBelow,
}

impl Condition {
    /// Whether it is met.
    pub fn holds(self, x: u64, y: u64) -> bool {
        match self {
            Condition::Always => true,
            Condition::Equal => x == y,
            Condition::NotEqual => x != y,
            Condition::Below => x < y,
            Condition::NotBelow => x >= y,
        }
    }
}

/// The collective intrinsics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Intrinsic {
    /// All participants get the reduction.
    Allreduce,
    /// One gets the reduction.
    Reduce,
    /// All participants get the source's vector.
    Broadcast,
    /// No participant goes on before all have called it.
    Barrier,
    /// Every participant gets the reduction of those of lower rank.
    Scan,
}

impl Intrinsic {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Intrinsic::Allreduce => "allreduce",
            Intrinsic::Reduce => "reduce",
            Intrinsic::Broadcast => "broadcast",
            Intrinsic::Barrier => "barrier",
            Intrinsic::Scan => "scan",
        }
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// rd = x.
    Mov(u8, Source),
    /// rd = x op y.
    Alu(Alu, u8, Source, Source),
    /// rd = word at x + n.
    Load(u8, Source, u64),
    /// Word at x + n = y.
    Store(Source, u64, Source),
    /// Computes for this many cycles.
    Compute(Source),
    /// Goes on elsewhere.
    Branch(Condition, Source, Source, usize),
    /// `mcast.send tree, data, sender, SIZE`.
    Send(Source, Source, Source, u8),
    /// `mcast.poll status, data, sender, tree`.
    Poll(u8, u8, u8, Source),
    /// `mcast.wait data, sender, tree, SIZE`.
    Wait(u8, u8, Source, u8),
    /// A collective: handle of a non-blocking one, id, input, output, elements.
    Call(Intrinsic, Option<u8>, [Source; 4]),
    /// Whether a call is complete.
    Test(u8, Source),
    /// Until a call is complete.
    Await(Source),
    /// Into the result document.
    Report(Source),
    /// A check.
    Expect(Source, Source),
    /// End of a handler.
    Iret,
    /// End of the thread.
    Halt,
}

/// What stands in local memory before cycle 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// These words.
    Words(u64, Vec<u64>),
    /// This many random elements of a type.
    Random(u64, u64, DType),
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The instructions, and the line of each.
    pub code: Vec<(Instruction, u32)>,
    /// Where the handler starts.
    pub handler: Option<usize>,
    /// Contents of local memory.
    pub fills: Vec<Fill>,
}

/// What is wrong with a text: the bytes of it, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: u32,
    /// Where in the whole text.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub expected: String,
}

/// Names of all instructions, for messages.
pub const MNEMONICS: [&str; 37] = [
    "mov",
    "add",
    "sub",
    "mul",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "load",
    "store",
    "compute",
    "jump",
    "beq",
    "bne",
    "blt",
    "bge",
    "mcast.send",
    "mcast.poll",
    "mcast.wait",
    "allreduce",
    "reduce",
    "broadcast",
    "barrier",
    "scan",
    "allreduce.nb",
    "reduce.nb",
    "broadcast.nb",
    "barrier.nb",
    "scan.nb",
    "test",
    "wait",
    "report",
    "expect",
    "iret",
    "halt",
    "nop",
];

/// A piece of the text and where it is.
#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Token<'a> {
    fn trim(self) -> Token<'a> {
        let start = self.text.len() - self.text.trim_start().len();
        Token { text: self.text.trim(), at: self.at + start }
    }

    fn split(self, by: char) -> Vec<Token<'a>> {
        let mut at = self.at;
        self.text
            .split(by)
            .map(|text| {
                let piece = Token { text, at }.trim();
                at += text.len() + by.len_utf8();
                piece
            })
            .collect()
    }
}

struct Assembler<'a> {
    line: u32,
    constants: BTreeMap<&'a str, u64>,
    labels: BTreeMap<&'a str, usize>,
    /// Uses of labels: instruction (`None`: the handler), name.
    uses: Vec<(Option<usize>, Token<'a>, u32)>,
    program: Program,
}

type Result<T> = std::result::Result<T, Fault>;

/// Reads a program.
///
/// # Errors
/// The first thing that is wrong.
pub fn assemble(text: &str) -> Result<Program> {
    let mut assembler = Assembler {
        line: 0,
        constants: BTreeMap::new(),
        labels: BTreeMap::new(),
        uses: Vec::new(),
        program: Program::default(),
    };
    let mut at = 0;
    for whole in text.split('\n') {
        assembler.line += 1;
        let code = whole.split([';', '#']).next().unwrap_or("");
        assembler.statement(Token { text: code, at }.trim())?;
        at += whole.len() + 1;
    }
    assembler.link()
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn register(text: &str) -> Option<u8> {
    let number: u8 = text.strip_prefix('r')?.parse().ok()?;
    (usize::from(number) < REGISTERS && text == format!("r{number}")).then_some(number)
}

fn number(text: &str) -> Option<u64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let digits = digits.replace('_', "");
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

impl<'a> Assembler<'a> {
    fn fault<T>(&self, at: Token<'_>, message: impl Into<String>, expected: impl Into<String>) -> Result<T> {
        let at = at.at..at.at + at.text.len().max(1);
        Err(Fault { line: self.line, at, message: message.into(), expected: expected.into() })
    }

    fn statement(&mut self, mut line: Token<'a>) -> Result<()> {
        while let Some((label, _)) = line.text.split_once(':') {
            let piece = Token { text: label, at: line.at }.trim();
            if !is_name(piece.text) {
                return self.fault(piece, format!("`{}` is no label", piece.text), "letters, digits and `_`");
            }
            if self.labels.insert(piece.text, self.program.code.len()).is_some() {
                return self.fault(piece, format!("there are two labels `{}`", piece.text), "a name of its own");
            }
            line = Token { text: &line.text[label.len() + 1..], at: line.at + label.len() + 1 }.trim();
        }
        if line.text.is_empty() {
            return Ok(());
        }
        let length = line.text.find(char::is_whitespace).unwrap_or(line.text.len());
        let word = Token { text: &line.text[..length], at: line.at };
        let rest = Token { text: &line.text[length..], at: line.at + length }.trim();
        let operands = if rest.text.is_empty() { Vec::new() } else { rest.split(',') };
        if word.text.starts_with('.') {
            return self.directive(word, &operands);
        }
        let instruction = self.instruction(word, &operands)?;
        self.program.code.push((instruction, self.line));
        Ok(())
    }

    fn directive(&mut self, word: Token<'a>, operands: &[Token<'a>]) -> Result<()> {
        match (word.text, operands) {
            (".equ", [name, value]) => {
                if !is_name(name.text) || register(name.text).is_some() {
                    return self.fault(*name, format!("`{}` cannot be a constant", name.text), "a name");
                }
                let value = self.number(*value)?;
                self.constants.insert(name.text, value);
            }
            (".handler", [label]) => self.uses.push((None, *label, self.line)),
            (".words", [address, words @ ..]) if !words.is_empty() => {
                let address = self.local(*address)?;
                let words = words.iter().map(|word| self.number(*word)).collect::<Result<Vec<u64>>>()?;
                self.program.fills.push(Fill::Words(address, words));
            }
            (".random", [address, count, dtype]) => {
                let (address, count) = (self.local(*address)?, self.number(*count)?);
                let Some(found) = DType::ALL.iter().find(|found| found.name() == dtype.text) else {
                    let names: Vec<&str> = DType::ALL.iter().map(|found| found.name()).collect();
                    return self.fault(*dtype, format!("there is no type `{}`", dtype.text), names.join(", "));
                };
                self.program.fills.push(Fill::Random(address, count, *found));
            }
            (".equ" | ".handler" | ".words" | ".random", _) => {
                let expected =
                    "`.equ NAME, n`, `.handler L`, `.words ADDRESS, n, …` or `.random ADDRESS, COUNT, DTYPE`";
                return self.fault(word, format!("`{}` has the wrong operands", word.text), expected);
            }
            _ => {
                let expected = "`.equ`, `.handler`, `.words` or `.random`";
                return self.fault(word, format!("there is no directive `{}`", word.text), expected);
            }
        }
        Ok(())
    }

    fn number(&self, piece: Token<'_>) -> Result<u64> {
        match number(piece.text).or_else(|| self.constants.get(piece.text).copied()) {
            Some(value) => Ok(value),
            None => self.fault(piece, format!("`{}` is no number", piece.text), "a number or a constant of `.equ`"),
        }
    }

    /// A word-aligned address of local memory.
    fn local(&self, piece: Token<'_>) -> Result<u64> {
        let address = self.number(piece)?;
        if address & 7 != 0 || address >= SCRATCHPAD {
            return self.fault(piece, format!("{address:#x} is no word of local memory"), "a multiple of 8 below 2^60");
        }
        Ok(address)
    }

    fn reg(&self, piece: Token<'_>) -> Result<u8> {
        match register(piece.text) {
            Some(register) => Ok(register),
            None => self.fault(piece, format!("`{}` is no register", piece.text), "r0 to r15"),
        }
    }

    fn source(&self, piece: Token<'_>) -> Result<Source> {
        Ok(match piece.text {
            "%core" => Source::Core,
            "%cores" => Source::Cores,
            "%thread" => Source::Thread,
            "%cycle" => Source::Cycle,
            text => {
                if let Some(register) = register(text) {
                    Source::Reg(register)
                } else if let Some(value) = number(text).or_else(|| self.constants.get(text).copied()) {
                    Source::Number(value)
                } else {
                    let expected = "r0 to r15, a number, a constant of `.equ`, %core, %cores, %thread or %cycle";
                    return self.fault(piece, format!("`{text}` is no operand"), expected);
                }
            }
        })
    }

    /// `[x + n]`, `[x]`.
    fn address(&self, piece: Token<'_>) -> Result<(Source, u64)> {
        let inner = piece.text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let Some(inner) = inner else {
            return self.fault(piece, format!("`{}` is no address", piece.text), "[x] or [x + n]");
        };
        let parts = Token { text: inner, at: piece.at + 1 }.split('+');
        match parts.as_slice() {
            [base] => Ok((self.source(*base)?, 0)),
            [base, offset] => Ok((self.source(*base)?, self.number(*offset)?)),
            _ => self.fault(piece, format!("`{}` is no address", piece.text), "[x] or [x + n]"),
        }
    }

    fn size(&self, piece: Token<'_>) -> Result<u8> {
        match piece.text {
            "1" | "2" | "4" | "8" => Ok(piece.text.as_bytes()[0] - b'0'),
            text => self.fault(piece, format!("`{text}` is no SIZE"), "1, 2, 4 or 8 bytes"),
        }
    }

    fn label(&mut self, piece: Token<'a>) {
        self.uses.push((Some(self.program.code.len()), piece, self.line));
    }

    fn instruction(&mut self, word: Token<'a>, operands: &[Token<'a>]) -> Result<Instruction> {
        use Instruction as I;
        let alu = |name: &str| {
            Some(match name {
                "add" => Alu::Add,
                "sub" => Alu::Sub,
                "mul" => Alu::Mul,
                "and" => Alu::And,
                "or" => Alu::Or,
                "xor" => Alu::Xor,
                "shl" => Alu::Shl,
                "shr" => Alu::Shr,
                _ => return None,
            })
        };
        let condition = |name: &str| {
            Some(match name {
                "beq" => Condition::Equal,
                "bne" => Condition::NotEqual,
                "blt" => Condition::Below,
                "bge" => Condition::NotBelow,
                _ => return None,
            })
        };
        let (base, non_blocking) = word.text.strip_suffix(".nb").map_or((word.text, false), |base| (base, true));
        let intrinsic =
            [Intrinsic::Allreduce, Intrinsic::Reduce, Intrinsic::Broadcast, Intrinsic::Barrier, Intrinsic::Scan]
                .into_iter()
                .find(|intrinsic| intrinsic.name() == base);
        if let Some(intrinsic) = intrinsic {
            return self.call(intrinsic, non_blocking, word, operands);
        }
        Ok(match (word.text, operands) {
            ("mov", [d, x]) => I::Mov(self.reg(*d)?, self.source(*x)?),
            (name, [d, x, y]) if alu(name).is_some() => {
                I::Alu(alu(name).unwrap_or(Alu::Add), self.reg(*d)?, self.source(*x)?, self.source(*y)?)
            }
            ("load", [d, at]) => {
                let (base, offset) = self.address(*at)?;
                I::Load(self.reg(*d)?, base, offset)
            }
            ("store", [at, x]) => {
                let (base, offset) = self.address(*at)?;
                I::Store(base, offset, self.source(*x)?)
            }
            ("compute", [x]) => I::Compute(self.source(*x)?),
            ("nop", []) => I::Compute(Source::Number(0)),
            ("jump", [label]) => {
                self.label(*label);
                I::Branch(Condition::Always, Source::Core, Source::Core, 0)
            }
            (name, [x, y, label]) if condition(name).is_some() => {
                let (x, y) = (self.source(*x)?, self.source(*y)?);
                self.label(*label);
                I::Branch(condition(name).unwrap_or(Condition::Always), x, y, 0)
            }
            ("mcast.send", [tree, data, sender, size]) => {
                I::Send(self.source(*tree)?, self.source(*data)?, self.source(*sender)?, self.size(*size)?)
            }
            ("mcast.poll", [status, data, sender, tree]) => {
                I::Poll(self.reg(*status)?, self.reg(*data)?, self.reg(*sender)?, self.source(*tree)?)
            }
            ("mcast.wait", [data, sender, tree, size]) => {
                I::Wait(self.reg(*data)?, self.reg(*sender)?, self.source(*tree)?, self.size(*size)?)
            }
            ("test", [d, handle]) => I::Test(self.reg(*d)?, self.source(*handle)?),
            ("wait", [handle]) => I::Await(self.source(*handle)?),
            ("report", [x]) => I::Report(self.source(*x)?),
            ("expect", [x, y]) => I::Expect(self.source(*x)?, self.source(*y)?),
            ("iret", []) => I::Iret,
            ("halt", []) => I::Halt,
            (name, _) if MNEMONICS.contains(&name) => {
                return self.fault(word, format!("`{name}` has the wrong number of operands"), form(name));
            }
            (name, _) => {
                return self.fault(
                    word,
                    format!("there is no instruction `{name}`"),
                    "one of the table of instructions",
                );
            }
        })
    }

    fn call(
        &mut self,
        intrinsic: Intrinsic,
        non_blocking: bool,
        word: Token<'a>,
        operands: &[Token<'a>],
    ) -> Result<Instruction> {
        let (handle, operands) = match operands {
            [handle, rest @ ..] if non_blocking => (Some(self.reg(*handle)?), rest),
            _ => (None, operands),
        };
        let zero = Source::Number(0);
        let sources = match operands {
            [id] if intrinsic == Intrinsic::Barrier => [self.source(*id)?, zero, zero, zero],
            [id, input, output, elements] if intrinsic != Intrinsic::Barrier => {
                [self.source(*id)?, self.source(*input)?, self.source(*output)?, self.source(*elements)?]
            }
            _ => {
                let message = format!("`{}` has the wrong number of operands", word.text);
                return self.fault(word, message, form(word.text));
            }
        };
        Ok(Instruction::Call(intrinsic, handle, sources))
    }

    fn link(mut self) -> Result<Program> {
        for (instruction, label, line) in std::mem::take(&mut self.uses) {
            self.line = line;
            let Some(&target) = self.labels.get(label.text) else {
                let known: Vec<&str> = self.labels.keys().copied().collect();
                let expected = if known.is_empty() { "a label".to_owned() } else { known.join(", ") };
                return self.fault(label, format!("there is no label `{}`", label.text), expected);
            };
            match instruction {
                None => self.program.handler = Some(target),
                Some(at) => {
                    if let (Instruction::Branch(.., to), _) = &mut self.program.code[at] {
                        *to = target;
                    }
                }
            }
        }
        Ok(self.program)
    }
}

/// How an instruction is written.
fn form(name: &str) -> &'static str {
    match name {
        "mov" => "`mov rd, x`",
        "load" => "`load rd, [x + n]`",
        "store" => "`store [x + n], y`",
        "compute" => "`compute x`",
        "jump" => "`jump L`",
        "beq" | "bne" | "blt" | "bge" => "two operands and a label",
        "mcast.send" => "`mcast.send tree, x, sender, SIZE`",
        "mcast.poll" => "`mcast.poll rs, rd, rt, tree`",
        "mcast.wait" => "`mcast.wait rd, rt, tree, SIZE`",
        "barrier" => "`barrier id`",
        "barrier.nb" => "`barrier.nb rh, id`",
        "allreduce" | "reduce" | "broadcast" | "scan" => "four operands: id, in, out, m",
        "allreduce.nb" | "reduce.nb" | "broadcast.nb" | "scan.nb" => "five operands: rh, id, in, out, m",
        "test" => "`test rd, x`",
        "expect" => "`expect x, y`",
        "wait" | "report" => "one operand",
        "iret" | "halt" | "nop" => "no operand",
        _ => "`rd, x, y`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_as_written() {
        let text = ".equ TREE, 3\n.handler take\nstart: mov r1, -1 ; a comment\n  mcast.send TREE, r1, %thread, 4\n\
                    loop:\nmcast.poll r2, r3, r4, TREE\nbeq r2, 0, loop\nload r5, [r3 + 16]\njump start\ntake: iret";
        let program = assemble(text).unwrap();
        assert_eq!(program.handler, Some(6));
        let (tree, r1) = (Source::Number(3), Source::Reg(1));
        let code: Vec<Instruction> = program.code.iter().map(|(instruction, _)| *instruction).collect();
        assert_eq!(code[0], Instruction::Mov(1, Source::Number(u64::MAX)));
        assert_eq!(code[1], Instruction::Send(tree, r1, Source::Thread, 4));
        assert_eq!(code[2], Instruction::Poll(2, 3, 4, tree));
        assert_eq!(code[3], Instruction::Branch(Condition::Equal, Source::Reg(2), Source::Number(0), 2));
        assert_eq!(code[4], Instruction::Load(5, Source::Reg(3), 16));
        assert_eq!(code[5], Instruction::Branch(Condition::Always, Source::Core, Source::Core, 0));
        assert_eq!(program.code[6], (Instruction::Iret, 10), "lines count from 1, empty ones too");
    }

    #[test]
    fn every_fault_has_its_place() {
        for (text, place, word) in [
            ("mov r16, 1", "r16", "no register"),
            ("halt\nmcast.snd 1, 2, 3, 8", "mcast.snd", "no instruction"),
            ("mcast.send 1, 2, 3, 5", "5", "no SIZE"),
            ("mcast.wait r1, r2, 3", "mcast.wait", "wrong number"),
            ("jump away", "away", "no label"),
            ("a: halt\na: halt", "a", "two labels"),
            ("load r1, r2", "r2", "no address"),
            ("add r1, r2, x", "x", "no operand"),
            (".word 0, 1", ".word", "no directive"),
            (".words 4, 1", "4", "no word of local memory"),
            (".random 0, 4, f63", "f63", "no type"),
            ("barrier 1, 2, 3, 4", "barrier", "wrong number"),
            ("allreduce.nb 3, 0, 0, 0, 8", "3", "no register"),
        ] {
            let fault = assemble(text).unwrap_err();
            assert_eq!(&text[fault.at.clone()], place, "{text}: {fault:?}");
            assert!(fault.message.contains(word), "{text}: {fault:?}");
            assert_eq!(fault.line, text[..fault.at.start].matches('\n').count() as u32 + 1);
            assert!(!fault.expected.is_empty());
        }
    }

    #[test]
    fn shifts_beyond_the_word_give_nothing() {
        assert_eq!(Alu::Shl.apply(1, 63), 1 << 63);
        assert_eq!(Alu::Shl.apply(1, 64), 0);
        assert_eq!(Alu::Shr.apply(u64::MAX, 1 << 40), 0);
        assert_eq!(Alu::Sub.apply(0, 1), u64::MAX);
    }
}
