//! Stored programs that run in a session: compound statements and CALL.
//!
//! # Path of a CALL
//! ```text
//! CALL --call--> routine of the catalog --cache--> Bound --settings--> program::run
//!      <-OUT parameters, OK------------------------------------------/  |     ^
//!                                     statements, cursors, inner CALLs  v     |
//!                                                                  SessionHost
//! ```
//! A statement of a body runs as a statement of the session of its own: with autocommit it is a transaction.
//! Its rows go to the client, its OK does not: one OK with the number of rows that all statements have
//! changed ends the results. What a statement has committed is flushed while the program goes on, and the
//! reply is held as that of any statement (I4, I5).
//!
//! | module | concept |
//! |---|---|
//! | `call` | CALL: the routine, its arguments, the final OK |
//! | `check` | CHECK PROCEDURE, FUNCTION, TRIGGER |
//! | `compound` | compound statements, SIGNAL and RESIGNAL outside of programs |
//! | `event`, `event_times` | the run of an event, and when it is due |
//! | `session_host` | [`SessionHost`]: runs the statements of a body in the session |
//! | `body_sink` | the results of a body's statements |
//! | `context_host` | runs the statements of functions and triggers inside the calling statement |
//! | `procedures` | procedures by name, for an account |
//! | `functions` | stored functions in expressions |
//! | `triggers` | triggers of row changes |
//! | `enable` | makes functions and triggers run |
//! | `settings` | account and settings with which a program runs |
//! | `reach` | the tables and routines that the programs of a statement use |
//! | `running` | the programs that run in a session |
//! | `routines` | compiled and bound routines of the catalog |
//! | `cache` | the cache of compiled routines, shared by all sessions |

mod body_sink;
pub(crate) mod cache;
mod call;
mod check;
mod compound;
mod context_host;
pub(crate) mod enable;
mod event;
mod event_times;
mod functions;
mod procedures;
pub(crate) mod reach;
mod routines;
pub(crate) mod running;
mod session_host;
mod settings;
mod triggers;

use cohort_config::VarId;
use cohort_program::{Bound, Finished};
use cohort_protocol::ResultSink;
use cohort_types::{SqlMode, SqlResult, Value, check_stack};

pub use event::{EventOutcome, EventRun, run_event};
pub use event_times::next_run;
use session_host::SessionHost;

use crate::session::Session;

impl Session {
    /// Runs a program as a statement. Returns its result and the number of rows that its statements have
    /// changed.
    fn run_program<T>(
        &mut self,
        sink: &mut dyn ResultSink,
        run: impl FnOnce(&mut Session, &mut dyn ResultSink) -> SqlResult<T>,
    ) -> SqlResult<(T, u64)> {
        let is_outermost = !self.programs.is_inside();
        let limit = self.state.settings.vars.uint(VarId::SqlSelectLimit);
        let affected = std::mem::take(&mut self.programs.affected);
        if is_outermost {
            if !self.programs.is_event {
                self.begin_deadline();
            }
            self.programs.is_result_open = false;
        }
        if limit != u64::MAX {
            self.state.settings.vars.put(VarId::SqlSelectLimit, &cohort_config::VarValue::UInt(u64::MAX));
        }
        let outcome = run(self, sink);
        if self.state.settings.vars.uint(VarId::SqlSelectLimit) != limit {
            self.state.settings.vars.put(VarId::SqlSelectLimit, &cohort_config::VarValue::UInt(limit));
        }
        if is_outermost {
            self.end_deadline();
        }
        let changed = std::mem::replace(&mut self.programs.affected, affected);
        let finished = outcome?;
        self.state.settings.env.row_count = changed as i64;
        // Variables may carry what the statements have read (I5).
        self.trx.mark_observed();
        Ok((finished, changed))
    }

    /// Runs a bound program with the values of its arguments, which are converted under this sql_mode.
    fn run_bound(
        &mut self,
        bound: &Bound,
        (args, mode): (Vec<Value>, SqlMode),
        sink: &mut dyn ResultSink,
    ) -> SqlResult<Finished> {
        check_stack()?;
        self.programs.depth += 1;
        let outer = self.state.statement.begin_inner();
        self.diagnostics.begin_program();
        let mut found = Vec::new();
        let converted = bound.converted(args, (&self.state.settings.env, mode, 0), &mut found);
        found.into_iter().for_each(|warning| self.diagnostics.push(warning));
        let outcome = converted
            .and_then(|args| cohort_program::run(bound, args, &mut SessionHost { session: self, sink }));
        self.diagnostics.end_program();
        self.state.statement.end_inner(&outer);
        self.programs.depth -= 1;
        outcome
    }

    /// Ends a result whose statement has failed after its first row, so that another one can follow.
    fn end_partial_result(&mut self, sink: &mut dyn ResultSink) {
        if std::mem::take(&mut self.programs.is_result_open) {
            sink.finish(self.status_for(true), 0);
        }
    }
}
