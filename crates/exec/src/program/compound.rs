//! Compound statements, and SIGNAL and RESIGNAL outside of programs.

use std::sync::Arc;

use cohort_program::{ProgramKind, bind, compile};
use cohort_protocol::ResultSink;
use cohort_session::Job;
use cohort_sql::ast::{Body, Code, Program, Statement, Step};
use cohort_types::{SqlMode, SqlResult};

use super::session_host::SessionHost;
use crate::session::Session;

impl Session {
    /// Runs a compound statement.
    pub(crate) fn compound(
        &mut self,
        body: &Body,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let text = String::from_utf8_lossy(job.text.get(body.range.clone()).unwrap_or_default());
        let program = Arc::new(compile(ProgramKind::Compound, "", &[], None, body, &text)?);
        self.check_more_results(&program, "", sink)?;
        let (_, changed) = self.run_program(sink, |session, sink| {
            let before = session.settings_of_program(None)?;
            let outcome = bind(&program, None, &mut SessionHost { session: &mut *session, sink: &mut *sink })
                .and_then(|bound| session.run_bound(&bound, (Vec::new(), SqlMode(0)), sink));
            session.restore_settings(before);
            outcome
        })?;
        self.end_partial_result(sink);
        self.send_ok(job.more, changed, 0, "", sink);
        Ok(())
    }

    /// Runs SIGNAL or RESIGNAL as a body of one statement.
    pub(crate) fn signal(
        &mut self,
        signal: &Program,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let range = 0..job.text.len();
        let statement = Statement::Program(Box::new(signal.clone()));
        let code = Code { of: statement, uses: Vec::new(), range: range.clone() };
        let body = Body { step: Step::Sql(Box::new(code)), range, slots: 0 };
        let outcome = self.compound(&body, job, sink);
        // The error leaves no program.
        self.diagnostics.forget_notes_after_error();
        outcome
    }
}
