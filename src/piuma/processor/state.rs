//! The state of a core's programmable part, for checkpoints.

use std::sync::Arc;

use super::super::program::Program;
use super::super::thread::{Pipeline, State as ThreadState, Thread};
use super::Processor;
use crate::program::REGISTERS;
use watershed_state::{Loader, Mismatch, Saver, State, state};

state!(Thread { saved: number, pc, regs, state, handler; built: program });

/// What a handler's thread begins as: everything else of it is loaded.
fn handler_of(program: &Arc<Program>) -> Thread {
    let (program, state) = (Arc::clone(program), ThreadState::Ready);
    Thread { number: 0, program, pc: 0, regs: [0; REGISTERS], state, handler: None }
}

impl Pipeline {
    fn save(&self, to: &mut Saver) {
        let Pipeline { threads, handler, next_q } = self;
        to.value(next_q);
        to.value(&handler.is_some());
        to.each(threads.iter());
        if let Some(handler) = handler {
            handler.save(to);
        }
    }

    /// A handler runs `program`, which the core was built with.
    fn load(&mut self, from: &mut Loader<'_>, program: Option<&Arc<Program>>) -> Result<(), Mismatch> {
        self.next_q = from.value()?;
        let runs: bool = from.value()?;
        from.each(self.threads.iter_mut())?;
        self.handler = match program {
            Some(program) if runs => Some(handler_of(program)),
            None if runs => return Err(from.wrong("a handler runs that there is not")),
            _ => None,
        };
        self.handler.iter_mut().try_for_each(|handler| handler.load(from))
    }
}

impl State for Processor {
    fn save(&self, to: &mut Saver) {
        let Processor {
            cfg: _,
            ranks: _,
            switch: _,
            name: _,
            roles: _,
            handler: _,
            pipelines,
            cce,
            icu,
            crossbar,
            local,
            scratchpad,
            calls,
            reports,
            handled,
            halted,
            started,
            stores,
            uses,
        } = self;
        to.begin("Processor");
        for pipeline in pipelines {
            pipeline.save(to);
        }
        to.values((cce, icu, crossbar, local, scratchpad, calls));
        to.values((reports, handled, halted, started, stores, uses));
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        from.begin("Processor")?;
        let handler = self.handler.as_ref();
        self.pipelines.iter_mut().try_for_each(|pipeline| pipeline.load(from, handler))?;
        (self.cce, self.icu, self.crossbar, self.local, self.scratchpad, self.calls) = from.value()?;
        (self.reports, self.handled, self.halted, self.started, self.stores, self.uses) = from.value()?;
        Ok(())
    }
}
