//! Contributions through a clocked packet engine: the model behind `watershed reduce --family pbv`.
//!
//! ```text
//!   node 1 ─┐
//!   node 2 ─┤ switch ─ packet engine        node k contributes the k-th operand; tasks end one after the other,
//!     …     │                               so that frames arrive in the order of the operands
//!   node n ─┘
//! ```
//!
//! The system is one switch of the usual parts: commands go out, contributions come back, the result goes to all nodes.

use super::node::{Node, Part, SendCondition, TaskTime};
use super::plan::{Branch, Collective, tables};
use super::system::{Spec, node, run};
use watershed_arith::{DType, Flags, Mode, Op};

/// Operands that one engine takes: the ports of a switch that are not the engine's own.
pub const MOST_OPERANDS: usize = 127;

/// Reduces words in one packet engine, the first contribution first; returns the words and the flags of the result frame.
///
/// # Errors
/// If there are none or more than [`MOST_OPERANDS`], if they have different lengths, or if the engine does not answer.
pub fn reduce(
    op: Op,
    dtype: DType,
    mode: Mode,
    pbv_order: bool,
    contributions: &[(Vec<u64>, Flags)],
) -> Result<(Vec<u64>, Flags), String> {
    let count = contributions.len();
    if !(1..=MOST_OPERANDS).contains(&count) {
        return Err(format!("one packet engine takes 1 to {MOST_OPERANDS} contributions, not {count}"));
    }
    let length = contributions[0].0.len();
    if contributions.iter().any(|(words, _)| words.len() != length) {
        return Err("contributions have different lengths".into());
    }
    let devices = 1..=count as u16;
    let mut collective = Collective::all_reduce(0, 1, Branch::leaf(0, devices.clone()), op, dtype, length as u16);
    (collective.mode, collective.pbv_order) = (mode, pbv_order);
    let tables = tables(std::slice::from_ref(&collective)).map_err(|error| error.to_string())?;
    let mut spec = Spec::regular(1, count, 0x80, Vec::new());
    spec.log = false;
    let frame = 4 + length as u64;
    let set_up = 40 * (count as u64 + 4) + 20 * frame;
    let mut nodes = Vec::new();
    for ((words, flags), device) in contributions.iter().zip(devices) {
        let mut like = collective.like(device, &tables);
        like.flags = *flags;
        // Longer than the commands take, and then a frame's time apart.
        let time = 8 * (count as u64 + 8) + (frame + 8) * u64::from(device);
        let mut node = Node::new(device);
        node.join(Part::of(like, words.clone(), TaskTime::Fixed(time)));
        if device == 1 {
            tables.frames(1).into_iter().for_each(|frame| node.then(SendCondition::Next, frame));
            node.then(SendCondition::Next, collective.initialise(&tables));
            node.then(SendCondition::At(set_up), collective.command(1));
        }
        nodes.push(node);
    }
    let mut system = spec.build(nodes);
    run(&mut system, 100_000_000)?;
    let outcome = node(&system, 1).outcomes(0).first().ok_or("the engine did not answer")?;
    match outcome.error {
        Some(status) => Err(format!("the engine answered with an error: {status}")),
        None => Ok((outcome.words.clone(), outcome.flags)),
    }
}
