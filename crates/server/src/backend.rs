//! The seam between connections and whatever runs statements.
//!
//! A command runs to completion on a worker; its answer goes into the sink. Afterwards the connection asks
//! [`Session::hold_until`]: if that position is not acknowledged, the answer stays in the buffer and no
//! thread waits. The connection registers a [`Wake`] with the commit path, then lets it flush
//! ([`Backend::lead`]); the thread that publishes wakes the connection, which sends its answer on that
//! thread.

use std::sync::Arc;

use cohort_base::{Budget, CommitSeq, ConnectionId, Hold};
use cohort_exec::{Client, ConnectionEvent, EncryptedSession};
use cohort_protocol::{ColumnMeta, ListedColumn, ParamText, Parameter, ResultSink, StatusFlags};
use cohort_replication::Source;
use cohort_types::{Collation, ErrorCode, SqlError, Value};
use cohort_vfs::SharedFile;

/// Told once when an awaited position may be acknowledged. Quick; never calls back into the commit path.
pub trait Wake: Send + Sync {
    /// The position may be acknowledged, and everything before it.
    fn acknowledged(self: Arc<Self>);

    /// The connection whose answer waits.
    fn replies_to(&self) -> ConnectionId;
}

/// Whether one COM_QUERY may hold several statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiStatements {
    /// As the client asked for.
    On,
    /// A semicolon ends the text.
    Off,
}

/// What has been killed of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// Nothing, or only its last statement.
    No,
    /// The connection: it is closed when its statement is over.
    Connection,
}

/// Who logged in.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    pub id: ConnectionId,
    /// As the client gave it.
    pub user: String,
    /// `localhost` or an address: what accounts are matched with.
    pub host: String,
    /// `localhost` or `address:port`: what the process list shows.
    pub peer: String,
    /// `user` and `host` of the account that let him in.
    pub account: (String, String),
    /// The database to start in.
    pub schema: Option<String>,
    /// A collation id: the client's character set.
    pub collation: u16,
    pub multi_statements: MultiStatements,
    /// CLIENT_INTERACTIVE: interactive_timeout takes the place of wait_timeout.
    pub interactive: bool,
    /// CLIENT_FOUND_ROWS: UPDATE counts found rows.
    pub found_rows: bool,
    /// `_client_name`, `program_name`, ...
    pub attributes: Vec<(String, String)>,
    /// None: not encrypted.
    pub encryption: Option<EncryptedSession>,
    /// It came over the Unix socket.
    pub is_local: bool,
}

/// What a prepared statement looks like.
#[derive(Clone, Debug, Default)]
pub struct PreparedStatement {
    /// The number the client will use; unique in its session, neither 0 nor `u32::MAX`.
    pub id: u32,
    pub params: Vec<ColumnMeta>,
    /// Empty for statements without rows.
    pub columns: Vec<ColumnMeta>,
    pub warnings: u16,
}

/// What the connection needs to know of a session's variables.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// character_set_results with its collation; `None` is NULL.
    pub results: Option<Collation>,
    /// How strings in parameters are understood.
    pub params: ParamText,
    /// max_allowed_packet.
    pub packet_bytes_max: usize,
    /// tmp_memory_table_size: of one cursor's rows in memory.
    pub cursor_bytes_max: usize,
    /// wait_timeout, or idle_transaction_timeout in a transaction.
    pub idle_s_max: u64,
    /// net_write_timeout.
    pub write_s_max: u64,
}

/// One connection's session. Calls come one after the other, each from any worker. Dropping it rolls back.
pub trait Session: Send {
    /// What the session may use, for bytes that come before they are a command. None: they are not counted.
    fn memory(&self) -> Option<&Arc<Budget>> {
        None
    }

    /// COM_QUERY: one or more results.
    fn query(&mut self, sql: &[u8], sink: &mut dyn ResultSink);

    /// COM_STMT_PREPARE.
    fn prepare(&mut self, sql: &[u8]) -> Result<PreparedStatement, SqlError>;

    /// COM_STMT_EXECUTE.
    fn execute(&mut self, statement: u32, params: Vec<Value>, sink: &mut dyn ResultSink);

    /// COM_STMT_BULK_EXECUTE: `rows` are read as they are executed.
    fn execute_bulk(
        &mut self,
        statement: u32,
        rows: &mut dyn Iterator<Item = Result<Vec<Parameter>, SqlError>>,
        sink: &mut dyn ResultSink,
    ) {
        let _ = (statement, rows);
        sink.error(&SqlError::unknown_command());
    }

    /// COM_STMT_FETCH begins, of a cursor of this statement.
    fn begin_fetch(&mut self, statement: u32) {
        let _ = statement;
    }

    /// It has ended.
    fn end_fetch(&mut self) {}

    /// Fails if what runs was killed: error 1317.
    fn check_interrupt(&self) -> Result<(), SqlError> {
        Ok(())
    }

    /// COM_STMT_CLOSE.
    fn close_statement(&mut self, statement: u32);

    /// COM_INIT_DB.
    fn init_db(&mut self, schema: &str, sink: &mut dyn ResultSink);

    /// COM_FIELD_LIST: the columns of a table or view whose names are LIKE the wildcard.
    fn field_list(&mut self, table: &str, wildcard: &str) -> Result<Vec<ListedColumn>, SqlError>;

    /// COM_RESET_CONNECTION: rolls back; variables, statements, temporary tables and locks go.
    fn reset(&mut self);

    /// COM_CHANGE_USER, after the new user was let in: as `reset`, and the session is his.
    fn change_user(&mut self, info: ConnectionInfo) -> Result<(), SqlError>;

    /// COM_SET_OPTION.
    fn set_multi_statements(&mut self, multi: MultiStatements);

    /// Error 1820 while the user has to change a password that has expired.
    fn check_password(&self) -> Result<(), SqlError> {
        Ok(())
    }

    /// COM_SHUTDOWN: whether this user may stop the server.
    fn may_shut_down(&mut self) -> Result<(), SqlError>;

    /// COM_REFRESH: whether this user may have the server reload anything.
    fn may_reload(&mut self) -> Result<(), SqlError> {
        Err(SqlError::new(ErrorCode::UnknownCommand, "Unknown command"))
    }

    /// COM_DEBUG: whether this user may have the server tell of itself.
    fn may_debug(&mut self) -> Result<(), SqlError> {
        Err(SqlError::new(ErrorCode::UnknownCommand, "Unknown command"))
    }

    /// COM_REGISTER_SLAVE and COM_BINLOG_DUMP: whether this user may follow the binary log.
    fn may_replicate(&mut self) -> Result<(), SqlError> {
        Err(SqlError::new(ErrorCode::UnknownCommand, "Unknown command"))
    }

    /// `@name` as text; `None` if it was never set, or to NULL.
    fn user_variable(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Whether events that were logged under skip_replication are not to be sent: the session has set it
    /// itself.
    fn skips_marked_events(&self) -> bool {
        false
    }

    /// The process list shows the connection as a dump in this state.
    fn show_dump(&self, state: &'static str) {
        let _ = state;
    }

    /// Variables as they are now.
    fn settings(&self) -> SessionSettings;

    /// Transaction and autocommit bits for packets that the connection itself writes.
    fn status(&self) -> StatusFlags;

    /// Answers given so far may leave only when this position may be acknowledged.
    fn hold(&self) -> &Arc<Hold>;

    /// Whether KILL was used on the connection.
    fn killed(&self) -> Killed;
}

/// Runs statements: the executor over the commit path, or a stub in tests.
pub trait Backend: Send + Sync {
    /// A session for a user that was let in. `closer` ends the connection from any thread: KILL calls it.
    fn connect(
        &self,
        info: ConnectionInfo,
        closer: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Box<dyn Session>, SqlError>;

    /// The newest acknowledged position.
    fn acknowledged(&self) -> CommitSeq;

    /// Has `wake` told when `seq` may be acknowledged; false if it is already (then nothing is told).
    fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool;

    /// Flushes what is ordered if nobody does. Called by a thread that holds nothing, after a registration:
    /// before it waits for anything.
    fn lead(&self);

    /// The same for a worker that serves somebody next and leads when there is nobody: the flush may wait for
    /// that.
    fn lead_later(&self);

    /// How long a flush takes nowadays, in nanoseconds; 0 if there was none.
    fn flush_ns(&self) -> u64 {
        0
    }

    /// Whether a worker that has nothing to serve is to lead before it rests.
    fn has_queued(&self) -> bool;

    /// Blocks until `seq` may be acknowledged; false if that will never be (the log failed).
    fn wait_acknowledged(&self, seq: CommitSeq) -> bool;

    /// Somebody has no session, or not another user's: the logs are told.
    fn note_refused(&self, event: ConnectionEvent, client: Client<'_>, error: &SqlError) {
        let _ = (event, client, error);
    }

    /// A new file in `tmpdir`, which goes when it is dropped.
    fn temporary_file(&self) -> Result<SharedFile, SqlError> {
        Err(SqlError::not_supported("a file of the server"))
    }

    /// The connection is busy. If its statement only reads, or does nothing but wait, and `is_lost` says that
    /// nobody waits for the answer, it ends.
    fn end_if_lost(&self, id: ConnectionId, is_lost: &dyn Fn() -> bool) {
        let _ = (id, is_lost);
    }

    /// What replicas are served from; `None` without a binary log.
    fn source(&self) -> Option<Arc<Source>> {
        None
    }
}
