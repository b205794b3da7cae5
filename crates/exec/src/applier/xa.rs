//! XA transactions of a source: the first half leaves a prepared branch that no session has, the second ends
//! it. Each is a group with a position of its own, in the same commit record.

use cohort_base::{CommitSeq, ParticipantId};
use cohort_binlog::event::XaXid;
use cohort_ddl::query_event;
use cohort_engine::Redo;
use cohort_trx::XaEnding;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use super::Applier;

impl Applier {
    /// The transaction that has just begun is a branch. Error 1440 when the name is in use here.
    pub fn name_branch(&mut self, xid: &XaXid) -> SqlResult<()> {
        self.session.trx.name_branch(xid.clone())
    }

    /// Ends the group: the branch is prepared, and nobody's.
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
        let prepared = trx.try_prepare_branch(|of| query_event(state, &of.to_sql_behind("XA END ")));
        trx.leave_branch();
        if prepared.is_err() {
            self.rollback();
        }
        prepared?;
        self.count_on();
        Ok(self.session.trx.last_ordered())
    }

    /// XA COMMIT or XA ROLLBACK. Error 1397 when the branch is not prepared here.
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
        let event = |of: &XaXid| query_event(state, &of.to_sql_behind(verb));
        let ended = trx.end_branch(xid, ending, event);
        match ended {
            Ok(true) => {
                self.count_on();
                Ok(self.session.trx.last_ordered())
            }
            other => {
                self.rollback();
                other?;
                Err(SqlError::new(ErrorCode::XaerNota, "XAER_NOTA: Unknown XID"))
            }
        }
    }
}
