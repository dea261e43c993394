//! The watchdog's wait-for graph, and the deadlocks in it (requirement K-WD-1).
//!
//! When a run stops moving although work is left, each blocked place says what it waits for. The result is a graph;
//! a deadlock is a cycle in it. If there is no cycle, the chains end in places that wait for something that never
//! comes (an operand nobody sends, a consumer that takes nothing); those ends are reported instead.

use std::collections::HashMap;
use std::fmt;

/// One statement "`who` waits for `whom`, because …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitFor {
    /// The blocked place, by its hierarchical name.
    pub who: String,
    /// The place it waits for.
    pub whom: String,
    /// Why, in a few words.
    pub why: String,
}

/// The finding over all statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autopsy {
    /// The statements that form a cycle, in order; empty if there is none.
    pub cycle: Vec<WaitFor>,
    /// Chains that end in a place that itself waits for nothing in the graph, longest first (at most eight).
    pub ends: Vec<Vec<WaitFor>>,
    /// How many places wait in total.
    pub waiting: usize,
}

impl Autopsy {
    /// Finds a cycle among the statements, or the ends of the chains.
    ///
    /// The result does not depend on the order of evaluation: statements are sorted first, and the first cycle that a
    /// depth-first walk from the first name on meets is taken.
    pub fn new(mut waits: Vec<WaitFor>) -> Autopsy {
        waits.sort_by(|a, b| (&a.who, &a.whom).cmp(&(&b.who, &b.whom)));
        waits.dedup();
        let mut out: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, wait) in waits.iter().enumerate() {
            out.entry(wait.who.as_str()).or_default().push(i);
        }
        let cycle = find_cycle(&waits, &out).map(|path| path.into_iter().map(|i| waits[i].clone()).collect());
        let mut ends: Vec<Vec<WaitFor>> = Vec::new();
        if cycle.is_none() {
            let waited_for: std::collections::HashSet<&str> = waits.iter().map(|w| w.whom.as_str()).collect();
            for (i, wait) in waits.iter().enumerate() {
                if waited_for.contains(wait.who.as_str()) {
                    continue;
                }
                // Without a cycle every walk ends; the first statement of each place is followed.
                let mut chain = vec![wait.clone()];
                let mut at = waits[i].whom.as_str();
                while let Some(next) = out.get(at).and_then(|list| list.first()) {
                    chain.push(waits[*next].clone());
                    at = waits[*next].whom.as_str();
                }
                ends.push(chain);
            }
            ends.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a[0].who.cmp(&b[0].who)));
            ends.truncate(8);
        }
        Autopsy { cycle: cycle.unwrap_or_default(), ends, waiting: waits.len() }
    }
}

/// A cycle in the graph, as indices of statements in order, or `None`.
fn find_cycle(waits: &[WaitFor], out: &HashMap<&str, Vec<usize>>) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Open,
        Done,
    }
    let mut mark: HashMap<&str, Mark> = HashMap::new();
    for root in waits {
        if mark.contains_key(root.who.as_str()) {
            continue;
        }
        // Iterative depth-first search; `path` holds (place, index of the edge that led on, next edge to try).
        let mut path: Vec<(&str, Option<usize>, usize)> = vec![(root.who.as_str(), None, 0)];
        mark.insert(root.who.as_str(), Mark::Open);
        while let Some((place, _, next)) = path.last_mut() {
            let edges = out.get(*place).map_or(&[][..], Vec::as_slice);
            if *next == edges.len() {
                mark.insert(place, Mark::Done);
                path.pop();
                continue;
            }
            let edge = edges[*next];
            *next += 1;
            let whom = waits[edge].whom.as_str();
            match mark.get(whom) {
                Some(Mark::Done) => {}
                Some(Mark::Open) => {
                    let start = path.iter().position(|(p, _, _)| *p == whom)?;
                    let mut cycle: Vec<usize> = path[start + 1..].iter().filter_map(|(_, e, _)| *e).collect();
                    cycle.push(edge);
                    return Some(cycle);
                }
                None => {
                    mark.insert(whom, Mark::Open);
                    path.push((whom, Some(edge), 0));
                }
            }
        }
    }
    None
}

impl fmt::Display for Autopsy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cycle.is_empty() {
            writeln!(
                f,
                "deadlock: {} places wait for each other in a cycle ({} wait in all)",
                self.cycle.len(),
                self.waiting
            )?;
            for wait in &self.cycle {
                writeln!(f, "  {} waits for {}: {}", wait.who, wait.whom, wait.why)?;
            }
            if let Some(first) = self.cycle.first() {
                writeln!(f, "  … and so back to {}", first.who)?;
            }
            return Ok(());
        }
        if self.waiting == 0 {
            return writeln!(f, "stall: no place in the network waits for another");
        }
        writeln!(f, "stall: {} places wait, and no cycle is among them; the chains end here", self.waiting)?;
        for chain in &self.ends {
            for (i, wait) in chain.iter().enumerate() {
                writeln!(f, "  {}{} waits for {}: {}", "  ".repeat(i.min(20)), wait.who, wait.whom, wait.why)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(who: &str, whom: &str) -> WaitFor {
        WaitFor { who: who.into(), whom: whom.into(), why: "no credit".into() }
    }

    #[test]
    fn a_cycle_is_named_whole_and_in_order() {
        let autopsy =
            Autopsy::new(vec![wait("x", "a"), wait("b", "c"), wait("c", "a"), wait("a", "b"), wait("c", "q")]);
        let names: Vec<&str> = autopsy.cycle.iter().map(|w| w.who.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(autopsy.to_string().contains("c waits for a: no credit"));
        assert!(autopsy.ends.is_empty());
    }

    #[test]
    fn without_a_cycle_the_ends_are_named() {
        let autopsy = Autopsy::new(vec![wait("a", "b"), wait("b", "consumer"), wait("z", "b")]);
        assert!(autopsy.cycle.is_empty());
        assert_eq!(autopsy.ends.len(), 2);
        assert_eq!(autopsy.ends[0].last().unwrap().whom, "consumer");
        assert!(autopsy.to_string().starts_with("stall: 3 places"));
    }
}
