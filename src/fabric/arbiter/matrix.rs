//! Matrix arbiter: one bit for every ordered pair of requesters says which goes first; the winner then goes last.
//!
//! Row `i` holds the requesters that go before `i`. In hardware this is n(n-1)/2 flip-flops and one level of gates,
//! the usual choice for small n where fairness matters; the number of words here is n.

use crate::PortSet;

/// The matrices of a bank of least-recently-served arbiters.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Matrix<const W: usize> {
    requesters: usize,
    before_q: Vec<PortSet<W>>,
}

impl<const W: usize> Matrix<W> {
    pub(super) fn new(count: usize, requesters: usize) -> Matrix<W> {
        // At reset the lower number goes first.
        let reset: Vec<PortSet<W>> = (0..requesters as u16).map(|i| (0..i).collect()).collect();
        Matrix { requesters, before_q: reset.iter().copied().cycle().take(count * requesters).collect() }
    }

    #[inline]
    pub(super) fn pick(&self, arbiter: usize, requests: &PortSet<W>) -> Option<u16> {
        let rows = &self.before_q[arbiter * self.requesters..(arbiter + 1) * self.requesters];
        requests.iter().find(|&i| !rows[usize::from(i)].intersects(requests))
    }

    #[inline]
    pub(super) fn granted(&mut self, arbiter: usize, winner: u16) {
        let rows = &mut self.before_q[arbiter * self.requesters..(arbiter + 1) * self.requesters];
        let mut others = PortSet::EMPTY;
        for (i, row) in rows.iter_mut().enumerate() {
            if i != usize::from(winner) {
                row.remove(winner);
                others.insert(i as u16);
            }
        }
        rows[usize::from(winner)] = others;
    }

    pub(super) fn bytes_each(&self) -> usize {
        self.requesters * size_of::<PortSet<W>>()
    }
}
