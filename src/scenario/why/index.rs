//! An index of a journal by port, with four bytes an entry and four a port, so that it fits in memory for the largest
//! system.

use watershed_fabric::{Entry, Journal};

/// Where the entries of each port are in a journal.
pub(super) struct Index<'a> {
    entries: &'a [Entry],
    /// Where the entries of each port begin in `order`, and where those of the last one end.
    first: Vec<u32>,
    /// Places in the journal, port by port, those of a port in the order of time.
    order: Vec<u32>,
}

impl<'a> Index<'a> {
    /// Sorts a journal of this many ports.
    ///
    /// # Panics
    /// If it has 2^32 entries or more.
    pub fn new(journal: &'a Journal, ports: usize) -> Self {
        let entries = &journal.entries[..];
        assert!(u32::try_from(entries.len()).is_ok(), "a journal of {} entries", entries.len());
        let mut first = vec![0u32; ports + 1];
        for entry in entries {
            first[entry.port as usize] += 1;
        }
        for port in 0..ports {
            first[port + 1] += first[port];
        }
        // Where the entries of a port end, until all of them, from the last one on, have their places.
        let mut order = vec![0; entries.len()];
        for (place, entry) in entries.iter().enumerate().rev() {
            let slot = &mut first[entry.port as usize];
            *slot -= 1;
            order[*slot as usize] = place as u32;
        }
        Self { entries, first, order }
    }

    fn places(&self, port: u32) -> &[u32] {
        let [from, to] = [port, port + 1].map(|port| self.first[port as usize] as usize);
        &self.order[from..to]
    }

    /// The entries of a port.
    pub fn of(&self, port: u32) -> impl DoubleEndedIterator<Item = &'a Entry> {
        let entries = self.entries;
        self.places(port).iter().map(move |&place| &entries[place as usize])
    }

    /// The entries of a port in one cycle, each with its place in the journal.
    pub fn at_cycle(&self, port: u32, cycle: u64) -> impl Iterator<Item = (u32, &'a Entry)> {
        let (entries, places) = (self.entries, self.places(port));
        let [from, to] =
            [cycle, cycle + 1].map(|cycle| places.partition_point(|&place| entries[place as usize].cycle < cycle));
        places[from..to].iter().map(move |&place| (place, &entries[place as usize]))
    }
}
