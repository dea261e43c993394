//! Chooses the signals and the moment that a viewer opens on, from the registers with named states and their changes.
//!
//! States are declared in the order of a job (idle first, done or at work last), so the most interesting moment is when
//! a register first reaches its furthest state. The *event of interest* is the first such moment of the kind of
//! registers with most changes, where a kind is a table of names: engines come before the ports of switches. The viewer
//! shows the signals of the scope where it happens, then early scopes of the other kinds, and stage registers below the
//! first one. If stage registers of some units are selected, the event is at one of these units.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::sink::{Value, Values};
use super::{Declarations, EnumTable, SignalId};

/// Signals that viewers open on.
pub(super) const CURATED: usize = 30;

/// Kinds of states that are shown.
const KINDS: usize = 4;

/// Names of values that say how a unit computes, not where it stands.
const MODES: [&str; 3] = ["operation", "dtype", "round"];

/// Signals of one scope, at most.
const OF_SCOPE: usize = 8;

/// A signal that may be shown.
#[derive(Debug, Clone)]
pub(super) struct ShownSignal {
    pub(super) name: Cow<'static, str>,
    pub(super) width: u32,
    pub(super) table: Option<&'static EnumTable>,
    /// It belongs to those that are shown first, beside the others.
    first: bool,
}

/// Signals of a scope, in a list.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) path: String,
    /// They are registers of a unit at work, which stand in a group of their own.
    pub(super) first: bool,
    pub(super) signals: Vec<ShownSignal>,
}

/// What is shown, and when it becomes interesting.
#[derive(Debug, Default)]
pub(super) struct Curated {
    pub(super) groups: Vec<Group>,
    pub(super) event_ps: Option<u64>,
}

/// A register with named states.
#[derive(Debug)]
struct StateWatch {
    /// Its scope, among those that are kept.
    scope: u32,
    table: &'static EnumTable,
    /// The furthest state so far, and since when.
    furthest: u64,
    since_ps: Option<u64>,
    changes: u64,
}

/// Follows registers with named states through a recording.
#[derive(Debug)]
pub(super) struct Curator {
    scopes: Vec<(String, Vec<ShownSignal>)>,
    watches: Vec<StateWatch>,
    /// By signal: its place among the watches.
    watch_of: Vec<u32>,
    /// So few that all are shown.
    few: bool,
}

const NOT_WATCHED: u32 = u32::MAX;

impl Curator {
    pub(super) fn new(declarations: &Declarations) -> Self {
        let signals = &declarations.signals;
        let few = signals.len() <= CURATED;
        let states = signals.iter().any(|signal| signal.table.is_some());
        let mut curator =
            Self { scopes: Vec::new(), watches: Vec::new(), watch_of: vec![NOT_WATCHED; signals.len()], few };
        for (number, scope) in declarations.scopes.iter().enumerate() {
            let tells = |signal: &SignalId| {
                let signal = &signals[*signal as usize];
                signal.table.is_some_and(|table| !MODES.contains(&table.name)) || signal.first
            };
            let room = !states && curator.scopes.iter().map(|(_, signals)| signals.len()).sum::<usize>() < CURATED;
            if scope.signals.is_empty() || !(few || room || scope.signals.iter().any(tells)) {
                continue;
            }
            for &signal in &scope.signals {
                let table = signals[signal as usize].table.filter(|table| !MODES.contains(&table.name));
                let Some(table) = table else { continue };
                curator.watch_of[signal as usize] = curator.watches.len() as u32;
                let scope = curator.scopes.len() as u32;
                curator.watches.push(StateWatch { scope, table, furthest: 0, since_ps: None, changes: 0 });
            }
            let shown = |&signal: &SignalId| {
                let signal = &signals[signal as usize];
                ShownSignal { name: signal.name.clone(), width: signal.width, table: signal.table, first: signal.first }
            };
            curator.scopes.push((declarations.scope_path(number as u32), scope.signals.iter().map(shown).collect()));
        }
        curator
    }

    pub(super) fn begin(&mut self, values: Values<'_>) {
        for signal in 0..self.watch_of.len() {
            if let Some(watch) = self.watches.get_mut(self.watch_of[signal] as usize)
                && let (_, Value::Bits(value)) = values.get(signal as SignalId)
            {
                watch.furthest = value;
            }
        }
    }

    #[inline]
    pub(super) fn step(&mut self, time_ps: u64, changed: &[SignalId], values: Values<'_>) {
        for &signal in changed {
            let at = self.watch_of[signal as usize];
            if at == NOT_WATCHED {
                continue;
            }
            let watch = &mut self.watches[at as usize];
            watch.changes += 1;
            if let (_, Value::Bits(value)) = values.get(signal)
                && value > watch.furthest
            {
                watch.furthest = value;
                watch.since_ps = Some(time_ps);
            }
        }
    }

    /// Registers that moved, by kind, the liveliest kind first; of each those that came furthest, the earliest first.
    fn kinds(&self) -> Vec<Vec<&StateWatch>> {
        let mut kinds: BTreeMap<&str, Vec<&StateWatch>> = BTreeMap::new();
        for watch in self.watches.iter().filter(|watch| watch.since_ps.is_some()) {
            kinds.entry(watch.table.name).or_default().push(watch);
        }
        let mut kinds: Vec<Vec<&StateWatch>> = kinds.into_values().collect();
        // Changes a register: `a / b > c / d` without fractions.
        let changes = |kind: &[&StateWatch]| kind.iter().map(|watch| u128::from(watch.changes)).sum::<u128>();
        kinds.sort_by(|a, b| (changes(b) * a.len() as u128).cmp(&(changes(a) * b.len() as u128)));
        let above = self.above_stages();
        for kind in &mut kinds {
            kind.sort_by_key(|watch| {
                let plain = !above.contains(&*self.scopes[watch.scope as usize].0);
                (plain, std::cmp::Reverse(watch.furthest), watch.since_ps, watch.scope)
            });
        }
        kinds
    }

    /// Scopes with stage registers below them.
    fn above_stages(&self) -> BTreeSet<&str> {
        let staged = self.scopes.iter().filter(|(_, signals)| signals.iter().any(|signal| signal.first));
        staged.flat_map(|(path, _)| path.match_indices('.').map(|(at, _)| &path[..at])).collect()
    }

    pub(super) fn curated(&self) -> Curated {
        let kinds = self.kinds();
        let event = kinds.first().and_then(|kind| kind.first());
        let event_ps = event.and_then(|watch| watch.since_ps);
        let first = |path: &str, signals: &[ShownSignal], first: bool, most: usize| {
            let own = signals.iter().filter(|signal| signal.first == first);
            Group { path: path.to_owned(), first, signals: own.take(most).cloned().collect() }
        };
        let mut groups: Vec<Group> = Vec::new();
        if self.few || event.is_none() {
            let mut room = CURATED;
            for wanted in [true, false] {
                for (path, signals) in &self.scopes {
                    let group = first(path, signals, wanted, room);
                    room -= group.signals.len();
                    groups.push(group);
                }
            }
        } else {
            // The place of the event, one of each other kind, and then more of them in turn.
            let turns = (0..CURATED).flat_map(|turn| kinds.iter().take(KINDS).filter_map(move |kind| kind.get(turn)));
            let mut seen: Vec<u32> = Vec::new();
            let mut room = CURATED;
            let at_work = event.map(|watch| format!("{}.", self.scopes[watch.scope as usize].0)).unwrap_or_default();
            let units = self
                .scopes
                .iter()
                .filter(|(path, signals)| path.starts_with(&at_work) && signals.iter().any(|signal| signal.first));
            let mut stages: Vec<Group> = Vec::new();
            for (path, signals) in units {
                let group = first(path, signals, true, room.saturating_sub(2 * CURATED / 3));
                room -= group.signals.len();
                stages.push(group);
            }
            for watch in turns {
                if room == 0 {
                    break;
                }
                if seen.contains(&watch.scope) {
                    continue;
                }
                seen.push(watch.scope);
                let (path, signals) = &self.scopes[watch.scope as usize];
                // The state itself is among them.
                let mut group = first(path, signals, false, room.min(OF_SCOPE));
                if !group.signals.iter().any(|signal| signal.table.is_some())
                    && let Some(state) = signals.iter().find(|signal| signal.table.is_some())
                {
                    group.signals.pop();
                    group.signals.insert(0, state.clone());
                }
                room -= group.signals.len();
                groups.push(group);
            }
            let at = groups.len().min(1);
            groups.splice(at..at, stages);
        }
        groups.retain(|group| !group.signals.is_empty());
        Curated { groups, event_ps }
    }
}
