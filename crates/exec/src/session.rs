//! One connection's state. Commands run to completion on the calling thread, one after the other; replies go into a
//! result sink; the reply of a commit must be held back until [`Session::hold_until`] is published (I4, I5).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use cohort_base::{CommitSeq, ConnectionId};
use cohort_expr::SessionEnv;
use cohort_types::{Collation, Value};
use hashbrown::HashMap;

use crate::database::Database;
use crate::process_list::Process;
use crate::trx::SessionTrx;

/// Who connected, as the handshake found out.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    pub id: ConnectionId,
    /// As the client gave it.
    pub user: String,
    /// Where the client is: `localhost` or an address.
    pub host: String,
    /// `user` and `host` of the account that let him in.
    pub account: (String, String),
    pub schema: Option<String>,
    /// What the client asked for as its character set.
    pub collation: Collation,
    /// CLIENT_MULTI_STATEMENTS.
    pub multi_statements: bool,
}

/// What of a session expressions and planners read, and what they change through [`cohort_expr::SessionHooks`].
pub struct SessionState {
    pub db: Arc<Database>,
    pub info: ConnectionInfo,
    /// Settings and facts that expressions depend on; fixed while a statement runs.
    pub env: SessionEnv,
    pub current_schema: Option<Arc<str>>,
    pub user_variables: RefCell<HashMap<String, Value>>,
    /// What LAST_INSERT_ID() answers in the next statement.
    pub last_insert_id: Cell<u64>,
}

/// A connection's session.
pub struct Session {
    pub(crate) state: SessionState,
    pub(crate) trx: SessionTrx,
    pub(crate) process: Arc<Process>,
    pub(crate) hold_until: CommitSeq,
}

impl Session {
    /// Replies produced so far may leave only when this position is published.
    pub fn hold_until(&self) -> CommitSeq {
        self.hold_until
    }

    /// What all sessions share.
    pub fn database(&self) -> &Arc<Database> {
        &self.state.db
    }

    /// The connection in the process list.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }
}
