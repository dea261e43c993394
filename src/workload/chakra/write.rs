//! Writes a trace as Chakra's files.

use super::super::{Collective, CollectiveOp, Kind, Node, Trace};
use super::{PROCESSOR, VERSION, wire::Writer};

/// The bytes of each rank's file: metadata, then its nodes.
pub fn write(trace: &Trace) -> Vec<Vec<u8>> {
    trace.ranks.iter().zip(0..).map(|(rank, number)| file(trace, &rank.nodes, number)).collect()
}

fn file(trace: &Trace, nodes: &[Node], rank: u32) -> Vec<u8> {
    let mut metadata = Writer::default();
    metadata.bytes(1, VERSION.as_bytes());
    let mut out = metadata.delimited();
    for node in nodes {
        let mut message = Writer::default();
        message.varint(1, node.id);
        message.bytes(2, node.name.as_bytes());
        message.varint(3, kind(&node.kind));
        for wait in &node.waits {
            message.chosen(5, nodes[wait.node as usize].id);
        }
        if let Kind::Compute(compute) = node.kind {
            message.varint(7, compute.ps.div_ceil(1_000_000));
        }
        number(&mut message, "is_cpu_op", 27, u64::from(node.stream == Some(PROCESSOR)));
        attributes(&mut message, trace, node, rank);
        out.extend(message.delimited());
    }
    out
}

/// An attribute that is a number, in the field of its type.
fn number(message: &mut Writer, name: &str, field: u64, value: u64) {
    let mut attribute = Writer::default();
    attribute.bytes(1, name.as_bytes());
    attribute.chosen(field, value);
    message.bytes(10, &attribute.0);
}

const INT32: u64 = 7;
const INT64: u64 = 9;
const UINT64: u64 = 13;
const STRING: u64 = 29;

fn attributes(message: &mut Writer, trace: &Trace, node: &Node, rank: u32) {
    match node.kind {
        Kind::Nothing => {}
        Kind::Compute(compute) => {
            number(message, "num_ops", INT64, compute.operations);
            number(message, "tensor_size", UINT64, compute.bytes);
        }
        Kind::Memory { bytes, .. } => number(message, "tensor_size", UINT64, bytes),
        Kind::Send { to: peer, tag, bytes } | Kind::Receive { from: peer, tag, bytes } => {
            let sends = matches!(node.kind, Kind::Send { .. });
            let (src, dst) = if sends { (rank, peer) } else { (peer, rank) };
            number(message, "comm_src", INT32, src.into());
            number(message, "comm_dst", INT32, dst.into());
            number(message, "comm_tag", INT32, tag.into());
            number(message, "comm_size", INT64, bytes);
        }
        Kind::Collective(Collective { op: what, group, bytes, root }) => {
            let members = &trace.groups[group as usize];
            let ranks = members.ranks.len() as u64;
            let bytes =
                if matches!(what, CollectiveOp::AllGather | CollectiveOp::Gather) { bytes / ranks } else { bytes };
            number(message, "comm_type", INT64, comm_type(what));
            number(message, "comm_size", INT64, bytes);
            if matches!(
                what,
                CollectiveOp::Reduce | CollectiveOp::Broadcast | CollectiveOp::Gather | CollectiveOp::Scatter
            ) {
                number(message, "root_rank", INT32, root.into());
            }
            if !members.name.is_empty() {
                let mut attribute = Writer::default();
                attribute.bytes(1, b"pg_name");
                attribute.bytes(STRING, members.name.as_bytes());
                message.bytes(10, &attribute.0);
            }
        }
    }
}

fn kind(kind: &Kind) -> u64 {
    match kind {
        Kind::Nothing => 1,
        Kind::Memory { store: false, .. } => 2,
        Kind::Memory { store: true, .. } => 3,
        Kind::Compute(_) => 4,
        Kind::Send { .. } => 5,
        Kind::Receive { .. } => 6,
        Kind::Collective(_) => 7,
    }
}

fn comm_type(what: CollectiveOp) -> u64 {
    match what {
        CollectiveOp::AllReduce => 0,
        CollectiveOp::Reduce => 1,
        CollectiveOp::AllGather => 2,
        CollectiveOp::Gather => 3,
        CollectiveOp::Scatter => 4,
        CollectiveOp::Broadcast => 5,
        CollectiveOp::AllToAll => 6,
        CollectiveOp::ReduceScatter => 7,
        CollectiveOp::Barrier => 9,
    }
}
