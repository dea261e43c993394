//! Trees that the text of a program may write, judged before it runs.

use watershed_piuma::Registers;
use watershed_piuma::program::{Alu, CONFIGURATION, Instruction, Program, REGISTERS, Source};

/// Bits of what a sum has after as many additions of numbers as a run has time for.
const SUM_BITS: u32 = 48;

/// Bits of a number.
fn bits(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// How many bits each register of a thread can need, whatever the way through the program: 64 where nothing is known.
struct RegisterWidths([u32; REGISTERS]);

impl RegisterWidths {
    fn of(program: &Program) -> RegisterWidths {
        let mut widths = RegisterWidths([0; REGISTERS]);
        // An interrupt handler gets an id in r0.
        if program.handler.is_some() {
            widths.0[0] = 16;
        }
        loop {
            let before = widths.0;
            for (instruction, _) in &program.code {
                widths.grow(instruction);
            }
            if widths.0 == before {
                return widths;
            }
        }
    }

    fn source(&self, source: Source) -> u32 {
        match source {
            Source::Reg(register) => self.0[usize::from(register)],
            Source::Number(value) => bits(value),
            Source::Core | Source::Cores | Source::Thread => 32,
            Source::Cycle => 64,
        }
    }

    fn grow(&mut self, instruction: &Instruction) {
        let RegisterWidths(before) = *self;
        let widths = RegisterWidths(before);
        let mut set = |register: u8, width: u32| {
            let of = &mut self.0[usize::from(register)];
            *of = (*of).max(width.min(64));
        };
        match *instruction {
            Instruction::Mov(to, x) => set(to, widths.source(x)),
            Instruction::Alu(op, to, x, y) => {
                let (a, b) = (widths.source(x), widths.source(y));
                let counts = [x, y].iter().any(|of| !matches!(of, Source::Reg(_)));
                let width = match op {
                    Alu::And => a.min(b),
                    Alu::Or | Alu::Xor => a.max(b),
                    Alu::Shr => a,
                    Alu::Shl => match y {
                        Source::Number(by) => a.saturating_add(by.min(64) as u32),
                        _ => 64,
                    },
                    Alu::Mul => a + b,
                    // A counter: it grows with the time that the program has.
                    Alu::Add if counts && a.max(b) <= SUM_BITS => SUM_BITS,
                    Alu::Add => a.max(b) + 1,
                    Alu::Sub => 64,
                };
                set(to, width);
            }
            Instruction::Load(to, ..) => set(to, 64),
            Instruction::Poll(status, data, sender, _) => [status, data, sender].into_iter().for_each(|of| set(of, 64)),
            Instruction::Wait(data, sender, ..) => [data, sender].into_iter().for_each(|of| set(of, 64)),
            Instruction::Test(to, _) => set(to, 1),
            Instruction::Call(_, Some(handle), _) => set(handle, 64),
            _ => {}
        }
    }
}

/// Whether a program may write a register that says where the words of an id go: one that it names, or any if an address is computed
/// from numbers that can be large enough.
pub(super) fn may_write_tree(program: &Program, registers: &Registers, id: u16) -> bool {
    let stores = program.code.iter().filter_map(|(instruction, _)| match *instruction {
        Instruction::Store(base, offset, _) => Some((base, offset)),
        _ => None,
    });
    let mut widths = None;
    for (base, offset) in stores {
        let Source::Number(number) = base else {
            let width = widths.get_or_insert_with(|| RegisterWidths::of(program)).source(base);
            if width.max(bits(offset)) >= bits(CONFIGURATION) {
                return true;
            }
            continue;
        };
        let address = number.wrapping_add(offset);
        let named = registers.named(address & !(0xf << 60));
        if address & (0xf << 60) == CONFIGURATION && named.is_ok_and(|of| of.vector.is_some() && of.id == id) {
            return true;
        }
    }
    false
}
