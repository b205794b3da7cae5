//! The context of one running statement: the session, split into the parts that the statement reads and those
//! that it changes.
//!
//! Life cycle of a statement, driven by `dispatch`:
//!
//! ```text
//! SessionTrx::statement_begin -> plan.run(&mut StatementContext) -> SessionTrx::statement_end
//! ```

use std::cell::Cell;
use std::sync::Arc;

use cohort_expr::{EvalContext, Warnings};
use cohort_plan::ParamSource;
use cohort_row::row_done;
use cohort_trx::{AfterFailure, SessionTrx};
use cohort_types::{SqlResult, Value};

use crate::database::Database;
use crate::process_list::Process;
use crate::session_state::SessionState;

/// The context of a running statement.
pub struct StatementContext<'s> {
    pub db: &'s Arc<Database>,
    /// The session's variables and state.
    pub session: &'s SessionState,
    /// For expressions: settings, hooks, parameters and warnings.
    pub eval: EvalContext<'s>,
    /// The transaction.
    pub trx: &'s mut SessionTrx,
    /// The connection's entry in the process list, for its state text.
    pub process: &'s Process,
    /// The statement's text, for annotations and DDL events; empty inside of other statements.
    pub text: &'s [u8],
    /// The positions of the question marks in the text of a prepared statement; `params` has their values.
    pub param_at: &'s [u32],
    pub params: &'s [Value],
    /// The origin of `params`.
    pub source: ParamSource<'s>,
    /// Another statement of the same command follows.
    pub more: bool,
    /// The result depends on the session's time zone, or on the microseconds of its clock; the binary log
    /// event must include them.
    pub uses_zone: Cell<bool>,
    pub uses_micros: Cell<bool>,
}

impl<'s> StatementContext<'s> {
    /// Annotates the statement's row events with its text.
    #[inline]
    pub fn annotate(&mut self) {
        let Some(out) = self.trx.annotation() else { return };
        if self.param_at.is_empty() {
            out.extend_from_slice(self.text);
        } else {
            let mode = self.session.settings.env.sql_mode;
            crate::annotation::append_statement(out, self.text, self.param_at, self.params, mode);
        }
    }

    /// Returns the values for `?` and for local variables of a query that is planned without its literals.
    pub fn bound_params(&self) -> (&'s [Value], ParamSource<'s>) {
        match self.source {
            ParamSource::Literals => (&[], ParamSource::Placeholders),
            source => (self.params, source),
        }
    }

    /// Runs a statement inside this one, as stored functions and triggers do: in the same transaction, with
    /// parameters, state and warnings of its own. Returns its outcome and its warnings.
    pub fn run_inside<T>(
        &mut self,
        after: AfterFailure,
        (params, source): (&[Value], ParamSource<'_>),
        run: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<T>,
    ) -> (SqlResult<T>, Warnings) {
        if !self.trx.is_inside() {
            // Rows of inner statements belong to the events of this one.
            self.annotate();
        }
        let outer = match self.trx.inner_begin(after) {
            Ok(outer) => outer,
            Err(error) => return (Err(error), Warnings::new(self.session.settings.env.max_error_count)),
        };
        let state = self.session.statement.begin_inner();
        let mut inner = StatementContext {
            db: self.db,
            session: self.session,
            eval: EvalContext::new(&self.session.settings.env, self.session, params),
            trx: &mut *self.trx,
            process: self.process,
            text: b"",
            param_at: &[],
            params,
            source,
            more: false,
            uses_zone: Cell::new(false),
            uses_micros: Cell::new(false),
        };
        let outcome = run(&mut inner);
        let warnings = inner.eval.take_warnings();
        self.session.statement.end_inner(&state);
        (self.trx.inner_end(outer, outcome), warnings)
    }

    /// Fails if the statement was killed or has timed out. Loops over rows call it once per row.
    #[inline]
    pub fn check_interrupt(&self) -> SqlResult<()> {
        self.trx.check_killed()?;
        row_done(&self.eval)
    }
}

/// A statement to plan and run.
pub struct Job<'j> {
    pub text: &'j [u8],
    /// The positions of the question marks in the text of a prepared statement.
    pub param_at: &'j [u32],
    pub params: &'j [Value],
    pub source: ParamSource<'j>,
    /// Another result follows.
    pub more: bool,
}
