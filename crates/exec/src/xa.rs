//! The XA statements: allowed statements per branch state, as in MariaDB 10.11.

use cohort_binlog::event::XaXid;
use cohort_protocol::ResultSink;
use cohort_query::guards::check_read_only;
use cohort_session::Job;
use cohort_sql::ast::{Xa, XaId};
use cohort_trx::{XaEnding, XaState, outside, rmfail};
use cohort_types::{SqlError, SqlResult};

use crate::session::Session;

/// Name that error 1399 has for the state of a session without a branch.
const NONE: &str = "NON-EXISTING";

fn unknown() -> SqlError {
    SqlError::unknown_xid()
}

fn invalid() -> SqlError {
    SqlError::xa_invalid()
}

fn name_of(xid: &XaId) -> XaXid {
    XaXid { format_id: xid.format_id, gtrid: xid.gtrid.clone(), bqual: xid.bqual.clone() }
}

impl Session {
    /// Runs an XA statement.
    pub(crate) fn xa(&mut self, xa: &Xa, job: &Job<'_>, sink: &mut dyn ResultSink) -> SqlResult<()> {
        self.trx.set_statement_time((self.state.settings.env.now_micros / 1_000_000) as u32);
        match xa {
            Xa::Start { xid, join, resume } => self.xa_start(name_of(xid), *join, *resume)?,
            Xa::End { xid, suspend } => self.xa_end(&name_of(xid), *suspend)?,
            Xa::Prepare(xid) => self.xa_prepare(&name_of(xid))?,
            Xa::Commit { xid, one_phase } => self.xa_commit(&name_of(xid), *one_phase)?,
            Xa::Rollback(xid) => self.xa_rollback(&name_of(xid))?,
            Xa::Recover { sql_format } => {
                let listed = self.trx.show_branches();
                let listing = cohort_info::xa_recover(&listed, *sql_format);
                return self.send_listing(&listing, job, sink);
            }
        }
        self.state.settings.env.row_count = 0;
        self.send_ok(job.more, 0, 0, "", sink);
        Ok(())
    }

    fn xa_start(&mut self, xid: XaXid, join: bool, resume: bool) -> SqlResult<()> {
        let state = self.trx.branch_state();
        if resume && state == Some(XaState::Idle) {
            return match self.trx.is_in_branch(&xid) {
                true => {
                    self.trx.resume_branch();
                    Ok(())
                }
                false => Err(unknown()),
            };
        }
        if join || resume || xid.gtrid.is_empty() {
            return Err(invalid());
        }
        if let Some(state) = state {
            return Err(rmfail(state.name()));
        }
        self.trx.check_outside()?;
        self.trx.start_branch(xid)
    }

    /// Checks that the session's branch has this name and state. Error 1399 if there is no branch or it is in
    /// another state, 1397 if it has another name.
    fn check_own(&self, xid: &XaXid, wanted: XaState) -> SqlResult<()> {
        let state = self.trx.branch_state();
        if state != Some(wanted) {
            return Err(rmfail(state.map_or(NONE, XaState::name)));
        }
        if self.trx.is_in_branch(xid) { Ok(()) } else { Err(unknown()) }
    }

    fn xa_end(&mut self, xid: &XaXid, suspend: bool) -> SqlResult<()> {
        if suspend {
            return Err(invalid());
        }
        self.check_own(xid, XaState::Active)?;
        self.trx.suspend_branch();
        Ok(())
    }

    fn xa_prepare(&mut self, xid: &XaXid) -> SqlResult<()> {
        self.check_own(xid, XaState::Idle)?;
        let state = &self.state;
        self.trx.prepare_branch(|of| cohort_ddl::query_event(state, &of.to_sql_after("XA END ")))
    }

    /// Returns true if the session is in the branch of this name. Error 1400 if it is in another branch or in
    /// an ordinary transaction.
    fn is_own(&self, xid: &XaXid) -> SqlResult<bool> {
        if self.trx.is_in_branch(xid) {
            return Ok(true);
        }
        let is_in_transaction = self.trx.in_transaction() || !self.trx.autocommit();
        if is_in_transaction { Err(outside()) } else { Ok(false) }
    }

    fn xa_commit(&mut self, xid: &XaXid, one_phase: bool) -> SqlResult<()> {
        if !self.is_own(xid)? {
            return match one_phase {
                true => Err(invalid()),
                false => self.xa_finish(xid, XaEnding::Commit),
            };
        }
        match (self.trx.branch_state(), one_phase) {
            (Some(XaState::RollbackOnly(code)), _) => Err(self.trx.answer_rolled_back(code)),
            (Some(XaState::Idle), true) => {
                self.check_may_end(xid)?;
                self.trx.commit_branch_at_once()
            }
            (Some(XaState::Prepared), false) => self.xa_finish(xid, XaEnding::Commit),
            (Some(XaState::Prepared), true) => Err(invalid()),
            (state, _) => Err(rmfail(state.map_or(NONE, XaState::name))),
        }
    }

    fn xa_rollback(&mut self, xid: &XaXid) -> SqlResult<()> {
        if !self.is_own(xid)? {
            return self.xa_finish(xid, XaEnding::Rollback);
        }
        match self.trx.branch_state() {
            Some(state @ XaState::Active) => Err(rmfail(state.name())),
            Some(XaState::Prepared) => self.xa_finish(xid, XaEnding::Rollback),
            _ => {
                self.check_may_end(xid)?;
                self.trx.leave_branch();
                Ok(())
            }
        }
    }

    /// Error 1290 for a branch that has written under `read_only`: it can be prepared, but neither committed
    /// nor rolled back until `read_only` ends.
    fn check_may_end(&self, xid: &XaXid) -> SqlResult<()> {
        match check_read_only(&self.state) {
            Err(error) if self.trx.has_branch_written(xid) => Err(error),
            _ => Ok(()),
        }
    }

    /// Ends a prepared branch. Error 1397 if there is none of this name, or a session has it.
    fn xa_finish(&mut self, xid: &XaXid, ending: XaEnding) -> SqlResult<()> {
        self.check_may_end(xid)?;
        let verb = match ending {
            XaEnding::Commit => "XA COMMIT ",
            XaEnding::Rollback => "XA ROLLBACK ",
        };
        let state = &self.state;
        let event = |of: &XaXid| cohort_ddl::query_event(state, &of.to_sql_after(verb));
        if self.trx.end_branch(xid, ending, event)? { Ok(()) } else { Err(unknown()) }
    }

    /// Checks that the branch state allows statements about transactions and savepoints.
    pub(crate) fn check_branch(&self, is_savepoint: bool) -> SqlResult<()> {
        match self.trx.branch_state() {
            None => Ok(()),
            Some(XaState::Active) if is_savepoint => Ok(()),
            Some(state) => Err(rmfail(state.name())),
        }
    }
}
