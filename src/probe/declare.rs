//! Declaring: scopes and signals that a selection takes, and the steps a sample will walk.

use std::borrow::Cow;
use std::collections::HashMap;

use super::scope::{Slot, Step, copy_words, mask, words};
use super::select::{Selection, clean};
use super::sink::{Declarations, ScopeDecl, SignalDecl};
use super::{EnumTable, SignalId};

/// Names collected for the error of an empty selection; enough to find a near one, not enough to hurt.
const MAX_COLLECTED: usize = 20_000;

/// What only declaring needs; dropped at the start.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) declarations: Declarations,
    pub(crate) children: HashMap<(Option<u32>, String), u32>,
    pub(crate) used_globs: Vec<bool>,
    pub(crate) collected: Vec<String>,
    pub(crate) too_deep: usize,
}

impl Registry {
    fn collecting(&self) -> bool {
        // Of several globs some may match nothing although others do.
        let needed = self.declarations.signals.is_empty() || self.used_globs.iter().any(|used| !used);
        needed && self.collected.len() < MAX_COLLECTED
    }

    pub(crate) fn child(&mut self, parent: Option<u32>, name: &str) -> u32 {
        let key = (parent, name.to_owned());
        if let Some(&known) = self.children.get(&key) {
            return known;
        }
        let id = self.declarations.scopes.len() as u32;
        self.declarations.scopes.push(ScopeDecl {
            name: name.to_owned(),
            parent,
            children: Vec::new(),
            signals: Vec::new(),
        });
        match parent {
            Some(parent) => self.declarations.scopes[parent as usize].children.push(id),
            None => self.declarations.roots.push(id),
        }
        self.children.insert(key, id);
        id
    }
}

/// A scope that is open while declaring.
#[derive(Debug)]
pub(crate) struct OpenScope {
    pub(crate) name: Cow<'static, str>,
    /// In the registry, once something in it was selected.
    pub(crate) scope: Option<u32>,
    /// Its place among the steps, and how many signals there were before it.
    pub(crate) step: usize,
    signals_before: usize,
    /// Whether a glob can still match in here.
    alive: bool,
}

#[derive(Debug)]
pub(crate) struct DeclarationPass<'a> {
    pub(crate) selection: &'a Selection,
    pub(crate) registry: &'a mut Registry,
    pub(crate) steps: &'a mut Vec<Step>,
    pub(crate) slots: &'a mut Vec<Slot>,
    pub(crate) wide: &'a mut Vec<u64>,
    pub(crate) levels: Vec<OpenScope>,
    pub(crate) states: Vec<u64>,
    /// What is declared belongs to the group that viewers show first.
    pub(super) first: bool,
}

impl DeclarationPass<'_> {
    /// Opens a scope; says whether it must be visited.
    pub(crate) fn open(&mut self, name: Cow<'static, str>) -> bool {
        let parent_alive = self.levels.last().is_none_or(|level| level.alive);
        let matches = self.selection.push(&mut self.states, &name);
        let shallow = self.selection.depth().is_none_or(|depth| self.levels.len() < depth);
        let alive = parent_alive && matches && shallow;
        self.levels.push(OpenScope {
            name,
            scope: None,
            step: self.steps.len().wrapping_sub(1),
            signals_before: self.slots.len(),
            alive,
        });
        alive || self.registry.collecting()
    }

    pub(crate) fn enter(&mut self, name: &'static str, index: Option<usize>) -> bool {
        let full: Cow<'static, str> = match index {
            Some(index) => Cow::Owned(format!("{}{index}", clean(name))),
            None => clean(name),
        };
        self.steps.push(Step::new(Step::ENTER, name, 0));
        let visit = self.open(full);
        if !visit {
            self.leave();
        }
        visit
    }

    pub(crate) fn leave(&mut self) {
        self.states.truncate(self.states.len() - self.selection.stride());
        if let Some(level) = self.levels.pop()
            && self.slots.len() == level.signals_before
        {
            self.steps.truncate(level.step + 1);
            if let Some(step) = self.steps.last_mut() {
                step.action = Step::SKIP;
            }
        }
    }

    /// Whether a signal is selected; keeps its name for the error if nothing is.
    fn selected(&mut self, name: &str) -> bool {
        let alive = self.levels.last().is_some_and(|level| level.alive);
        let mut accepted = false;
        if alive || self.registry.collecting() {
            self.selection.push(&mut self.states, name);
            accepted = self.selection.accepts(&self.states, &mut self.registry.used_globs);
            self.states.truncate(self.states.len() - self.selection.stride());
        }
        if accepted && alive {
            return true;
        }
        if self.registry.collecting() {
            self.registry.too_deep += usize::from(accepted);
            let mut full = String::new();
            for level in &self.levels {
                full.push_str(&level.name);
                full.push('.');
            }
            full.push_str(name);
            self.registry.collected.push(full);
        }
        false
    }

    fn signal(
        &mut self,
        name: &'static str,
        width: u32,
        table: Option<&'static EnumTable>,
        slot: impl FnOnce(&mut Vec<u64>) -> Slot,
    ) {
        let clean = clean(name);
        if !self.selected(&clean) {
            self.steps.push(Step::new(Step::SKIP, name, width));
            return;
        }
        let mut scope = None;
        for level in &mut self.levels {
            let known = match level.scope {
                Some(known) => known,
                None => self.registry.child(scope, &level.name),
            };
            level.scope = Some(known);
            scope = level.scope;
        }
        let Some(scope) = scope else { return };
        assert!(self.slots.len() < Step::MAX_SIGNALS, "more than {} signals selected: choose fewer", Step::MAX_SIGNALS);
        let signal = self.slots.len() as SignalId;
        self.slots.push(slot(self.wide));
        self.steps.push(Step::new(signal, name, width));
        let declarations = &mut self.registry.declarations;
        declarations.scopes[scope as usize].signals.push(signal);
        let first = self.first;
        declarations.signals.push(SignalDecl { name: clean, width, table, scope, first });
    }

    pub(crate) fn narrow(
        &mut self,
        name: &'static str,
        width: u32,
        value: Option<u64>,
        table: Option<&'static EnumTable>,
    ) {
        assert!(
            (1..=64).contains(&width),
            "`{name}` is declared with {width} bits: bits() and valid() take 1 to 64, use wide() for more"
        );
        self.signal(name, width, table, |_| Slot {
            value: value.unwrap_or(0) & mask(width),
            width,
            unknown: value.is_none(),
        });
    }

    pub(crate) fn wide(&mut self, name: &'static str, width: u32, value: Option<&[u64]>) {
        self.signal(name, width, None, |store| {
            let begin = store.len();
            store.resize(begin + words(width), 0);
            copy_words(&mut store[begin..], value.unwrap_or(&[]));
            Slot { value: begin as u64, width, unknown: value.is_none() }
        });
    }
}
