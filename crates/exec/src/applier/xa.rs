//! XA transactions of a source. The first half leaves a prepared branch that belongs to no session, the
//! second half ends it. Each half is a group with its own position, which is stored in the same commit
//! record.

use cohort_base::{CommitSeq, ParticipantId};
use cohort_binlog::event::XaXid;
use cohort_ddl::query_event;
use cohort_engine::Redo;
use cohort_trx::XaEnding;
use cohort_types::{SqlError, SqlResult};

use super::Applier;

impl Applier {
    /// Makes the transaction that has just begun an XA branch. Error 1440 if the name is in use on this
    /// server.
    pub fn name_branch(&mut self, xid: &XaXid) -> SqlResult<()> {
        self.session.trx.name_branch(xid.clone())
    }

    /// Ends the group: prepares the branch and detaches it from the session.
    pub fn prepare_branch(
        &mut self,
        timestamp: u32,
        attached: (ParticipantId, Redo),
    ) -> SqlResult<CommitSeq> {
        self.apply_held()?;
        self.set_clock(timestamp, 0);
        let trx = &mut self.session.trx;
        trx.set_statement_time(timestamp);
        trx.attach(attached.0, attached.1);
        let state = &self.session.state;
        let prepared = trx.try_prepare_branch(|of| query_event(state, &of.to_sql_after("XA END ")));
        trx.leave_branch();
        if prepared.is_err() {
            self.rollback();
        }
        prepared?;
        self.count_on();
        Ok(self.session.trx.last_ordered())
    }

    /// Runs XA COMMIT or XA ROLLBACK. Error 1397 if this server has no such prepared branch.
    pub fn end_branch(
        &mut self,
        xid: &XaXid,
        commits: bool,
        timestamp: u32,
        attached: (ParticipantId, Redo),
    ) -> SqlResult<CommitSeq> {
        self.set_clock(timestamp, 0);
        let trx = &mut self.session.trx;
        trx.set_statement_time(timestamp);
        trx.attach(attached.0, attached.1);
        let (ending, verb) = match commits {
            true => (XaEnding::Commit, "XA COMMIT "),
            false => (XaEnding::Rollback, "XA ROLLBACK "),
        };
        let state = &self.session.state;
        let event = |of: &XaXid| query_event(state, &of.to_sql_after(verb));
        let ended = trx.end_branch(xid, ending, event);
        match ended {
            Ok(true) => {
                self.count_on();
                Ok(self.session.trx.last_ordered())
            }
            other => {
                self.rollback();
                other?;
                Err(SqlError::unknown_xid())
            }
        }
    }
}
