//! Calls of runs: what goes on at a device between its parts and an application that contributes when it likes
//! ([`TaskTime::Called`](super::TaskTime::Called)).

use super::Node;
use watershed_kernel::Cycle;

impl Node {
    /// Runs of a context are called, up to this one: their tasks are over.
    pub fn call(&mut self, cc_id: u16, runs: u32, now: Cycle) {
        self.soonest = None;
        let Some(running) = self.parts.iter_mut().find(|running| running.part.cc_id == cc_id) else { return };
        let waited = running.is_uncalled();
        running.called = runs;
        if waited && !running.is_uncalled() {
            running.until = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::node::{Node, Part, TaskTime};
    use crate::packet::{Header, Message, Packet};
    use crate::plan::{Branch, Collective, tables};
    use watershed_arith::{DType, Op};

    #[test]
    fn a_run_is_contributed_in_the_cycle_of_the_call() {
        let collective = Collective::all_reduce(0, 1, Branch::leaf(0, [1, 2]), Op::Sum, DType::I64, 1);
        let tables = tables(std::slice::from_ref(&collective)).unwrap();
        let mut node = Node::new(2);
        node.join(Part::of(collective.like(2, &tables), vec![42, 50], TaskTime::Called));
        node.part_mut(collective.cc_id).unwrap().length = 1;
        let command =
            |run| Packet::bare(Header { device: 2, requester: 0, offset: 0, ..collective.command(run).header });
        node.receive(&command(1).flits().unwrap(), 10);
        for now in 10..35 {
            node.step(now);
            assert!(node.next_frame(now).is_none() && node.due().is_none(), "nobody has called it");
            assert!(node.expects(collective.cc_id, now), "who will call it is at work");
        }
        node.call(collective.cc_id, 2, 35);
        node.step(35);
        let (header, words) = node.next_frame(35).unwrap();
        assert_eq!((header.message, Packet::from_flits(&words).unwrap().words()), (Message::Contribution, &[42][..]));
        // The second run is called already.
        let answer = Header { message: Message::Satisfied, ..command(1).header };
        node.receive(&Packet::of(answer, vec![43]).flits().unwrap(), 50);
        node.receive(&command(2).flits().unwrap(), 60);
        node.step(60);
        let (_, words) = node.next_frame(60).unwrap();
        assert_eq!(Packet::from_flits(&words).unwrap().words(), [50]);
    }
}
