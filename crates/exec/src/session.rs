//! One connection's state. Commands run to completion on the calling thread, one after the other; replies go into a
//! [`ResultSink`]; the reply of a commit must be held back until [`Session::hold_until`] is published (I4, I5).

use std::sync::Arc;

use cohort_base::{CommitSeq, ConnectionId};

use crate::database::Database;

/// A connection's session.
pub struct Session {
    pub(crate) db: Arc<Database>,
    pub(crate) id: ConnectionId,
    pub(crate) current_schema: Option<String>,
    pub(crate) hold_until: CommitSeq,
}

impl Session {
    /// A session of an authenticated user.
    pub fn new(db: Arc<Database>, id: ConnectionId) -> Session {
        Session { db, id, current_schema: None, hold_until: CommitSeq(0) }
    }

    /// Replies produced so far may leave only when this position is published.
    pub fn hold_until(&self) -> CommitSeq {
        self.hold_until
    }
}
