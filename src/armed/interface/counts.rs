//! What the management agent counts.

/// What the agent did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, watershed_state::Saved)]
pub struct ManagerCounts {
    /// Requests for a tree that it served.
    pub requests: u64,
    /// Trees it granted.
    pub granted: u64,
    /// Of these, in the place of another.
    pub changed: u64,
    /// Requests it refused.
    pub refused: u64,
    /// Trees it deleted because it was asked to.
    pub deleted: u64,
    /// Entries that switches acknowledged as written.
    pub written: u64,
    /// Entries that they acknowledged as erased.
    pub erased: u64,
    /// Orders it sent again.
    pub resent: u64,
    /// Orders that were given up.
    pub given_up: u64,
}
