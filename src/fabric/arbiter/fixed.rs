//! Fixed priority: the lowest number wins. The cheapest arbiter, and the unfair one.

use crate::PortSet;

#[inline]
pub(super) fn pick<const W: usize>(requests: &PortSet<W>) -> Option<u16> {
    requests.first()
}
