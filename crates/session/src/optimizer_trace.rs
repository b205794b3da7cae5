//! The last statement of a session whose optimizer was traced (`optimizer_trace`), for
//! `information_schema.OPTIMIZER_TRACE`.
//!
//! A statement that reads this table is not traced, so that it does not replace what it reads. Plans that
//! were traced are not kept for other statements.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use cohort_config::{SessionVars, VarId};
use cohort_optimize::OptimizerTrace;

/// Upper limit of `optimizer_trace_max_mem_size`.
const BYTES_MAX: u64 = 16 << 20;

/// A trace.
#[derive(Clone, Debug, Default)]
pub struct TracedPlan {
    pub query: String,
    pub trace: String,
    /// Bytes for which there was no room.
    pub missing: u64,
    /// The account may not see the definitions that the trace shows.
    pub is_hidden: bool,
}

/// The trace that is being written, and the last one.
#[derive(Default)]
pub struct OptimizerTraces {
    running: RefCell<Option<Arc<OptimizerTrace>>>,
    /// Text of the statement that is about to be planned.
    query: RefCell<String>,
    /// The statement reads the table of traces.
    is_reader: Cell<bool>,
    last: RefCell<Option<TracedPlan>>,
}

impl OptimizerTraces {
    /// Sets the text of the statement that is about to be planned.
    pub(crate) fn set_text(&self, text: String) {
        *self.query.borrow_mut() = text;
    }

    /// Begins to trace a statement, if the session traces and no statement around it is being planned.
    /// Returns whether it does.
    pub fn begin(&self, vars: &SessionVars) -> bool {
        if !is_on(vars) || self.running.borrow().is_some() {
            return false;
        }
        let bytes_max = vars.uint(VarId::OptimizerTraceMaxMemSize).min(BYTES_MAX);
        self.is_reader.set(false);
        *self.running.borrow_mut() = Some(Arc::new(OptimizerTrace::new(bytes_max as usize)));
        true
    }

    /// Returns the trace that is being written.
    pub fn running(&self) -> Option<Arc<OptimizerTrace>> {
        self.running.borrow().clone()
    }

    /// Notes that the statement reads the table of traces.
    pub fn note_reader(&self) {
        self.is_reader.set(true);
    }

    /// Ends the trace. `may_see`: the account may see all definitions that it shows.
    pub fn end(&self, may_see: bool) {
        let Some(running) = self.running.borrow_mut().take() else { return };
        if self.is_reader.get() {
            return;
        }
        let traced = match may_see {
            true => {
                let (trace, missing) = running.finish();
                TracedPlan { query: self.query.borrow().clone(), trace, missing, is_hidden: false }
            }
            false => TracedPlan { is_hidden: true, ..TracedPlan::default() },
        };
        *self.last.borrow_mut() = Some(traced);
    }

    /// Exchanges the traces with those of a program that the statement calls.
    pub(crate) fn swap(&self, other: &OptimizerTraces) {
        self.running.swap(&other.running);
        self.query.swap(&other.query);
        self.is_reader.swap(&other.is_reader);
        self.last.swap(&other.last);
    }

    /// Returns the last trace.
    pub fn last(&self) -> Option<TracedPlan> {
        self.last.borrow().clone()
    }
}

/// Returns whether the session traces.
pub(crate) fn is_on(vars: &SessionVars) -> bool {
    vars.flag(VarId::OptimizerTrace)
}
