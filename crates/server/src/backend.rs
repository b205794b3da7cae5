//! Interface between connections and the executor of statements.
//!
//! A command runs to completion on a worker, and its reply goes into the sink. Afterwards the connection
//! reads [`Session::hold`]. If that position is not acknowledged, the reply stays in the buffer and no thread
//! waits: the connection registers a [`Wake`] with the commit path and lets it flush ([`Backend::lead`]). The
//! thread that acknowledges the position wakes the connection, which sends its reply on that thread.

use std::sync::Arc;

use cohort_base::{Budget, CommitSeq, ConnectionId, ReplyBarrier};
use cohort_exec::{Client, ConnectionEvent, EncryptedSession};
use cohort_protocol::{ColumnMeta, ListedColumn, ParamText, Parameter, ResultSink, StatusFlags};
use cohort_replication::Source;
use cohort_types::{Collation, SqlError, Value};
use cohort_vfs::SharedFile;

/// A waiter to notify once when a position may be acknowledged. It must be quick and must not call the commit
/// path.
pub trait Wake: Send + Sync {
    /// Called when the position, and all before it, may be acknowledged.
    fn acknowledged(self: Arc<Self>);

    /// Returns the connection whose reply waits.
    fn replies_to(&self) -> ConnectionId;
}

/// Whether one COM_QUERY may contain several statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiStatements {
    /// The client has asked for it.
    On,
    /// A semicolon ends the text.
    Off,
}

/// The effect of KILL on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// No KILL, or only of the last statement.
    No,
    /// The connection was killed. It closes when its statement is over.
    Connection,
}

/// Identity and options of a client that has logged in.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    pub id: ConnectionId,
    /// User name as the client sent it.
    pub user: String,
    /// `localhost` or an address, which accounts are matched with.
    pub host: String,
    /// `localhost` or `address:port`, for the process list.
    pub peer: String,
    /// `user` and `host` of the account that the client logged in with.
    pub account: (String, String),
    /// Initial database.
    pub schema: Option<String>,
    /// Collation id: the client's character set.
    pub collation: u16,
    pub multi_statements: MultiStatements,
    /// CLIENT_INTERACTIVE: interactive_timeout applies instead of wait_timeout.
    pub interactive: bool,
    /// CLIENT_FOUND_ROWS: UPDATE counts matched rows.
    pub found_rows: bool,
    /// Connection attributes: `_client_name`, `program_name`, ...
    pub attributes: Vec<(String, String)>,
    /// `None` if the connection is not encrypted.
    pub encryption: Option<EncryptedSession>,
    /// The client uses the Unix socket.
    pub is_local: bool,
}

/// Description of a prepared statement.
#[derive(Clone, Debug, Default)]
pub struct PreparedStatement {
    /// The id that the client uses. Unique in its session, neither 0 nor `u32::MAX`.
    pub id: u32,
    pub params: Vec<ColumnMeta>,
    /// Empty for statements that return no rows.
    pub columns: Vec<ColumnMeta>,
    pub warnings: u16,
}

/// The session variables that the connection needs.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// character_set_results with its collation; `None` is NULL.
    pub results: Option<Collation>,
    /// Character set and collation of strings in parameters.
    pub params: ParamText,
    /// tmp_memory_table_size: maximum memory for the rows of one cursor.
    pub cursor_bytes_max: usize,
    /// net_write_timeout.
    pub write_s_max: u64,
}

/// The session of one connection. Calls follow one after the other, each from any worker. Dropping it rolls
/// back.
pub trait Session: Send {
    /// Returns the memory budget of the session, for input that is not a complete command yet. `None` if it
    /// is not counted.
    fn memory(&self) -> Option<&Arc<Budget>> {
        None
    }

    /// COM_QUERY: sends one or more results.
    fn query(&mut self, sql: &[u8], sink: &mut dyn ResultSink);

    /// COM_STMT_PREPARE.
    fn prepare(&mut self, sql: &[u8]) -> Result<PreparedStatement, SqlError>;

    /// COM_STMT_EXECUTE.
    fn execute(&mut self, statement: u32, params: Vec<Value>, sink: &mut dyn ResultSink);

    /// COM_STMT_BULK_EXECUTE: `rows` are decoded as they are executed.
    fn execute_bulk(
        &mut self,
        statement: u32,
        rows: &mut dyn Iterator<Item = Result<Vec<Parameter>, SqlError>>,
        sink: &mut dyn ResultSink,
    ) {
        let _ = (statement, rows);
        sink.error(&SqlError::unknown_command());
    }

    /// Begins a COM_STMT_FETCH from a cursor of this statement.
    fn begin_fetch(&mut self, statement: u32) {
        let _ = statement;
    }

    /// Ends a COM_STMT_FETCH.
    fn end_fetch(&mut self) {}

    /// Fails with error 1317 if the running statement was killed.
    fn check_interrupt(&self) -> Result<(), SqlError> {
        Ok(())
    }

    /// COM_STMT_CLOSE.
    fn close_statement(&mut self, statement: u32);

    /// COM_INIT_DB.
    fn init_db(&mut self, schema: &str, sink: &mut dyn ResultSink);

    /// COM_FIELD_LIST: returns the columns of a table or view whose names are LIKE the wildcard.
    fn field_list(&mut self, table: &str, wildcard: &str) -> Result<Vec<ListedColumn>, SqlError>;

    /// COM_RESET_CONNECTION: rolls back, resets variables, and drops statements, temporary tables and locks.
    fn reset(&mut self);

    /// COM_CHANGE_USER, after the new user was authenticated: resets the session and gives it to the new
    /// user.
    fn change_user(&mut self, info: ConnectionInfo) -> Result<(), SqlError>;

    /// COM_SET_OPTION.
    fn set_multi_statements(&mut self, multi: MultiStatements);

    /// Fails with error 1820 while the user must change an expired password.
    fn check_password(&self) -> Result<(), SqlError> {
        Ok(())
    }

    /// COM_SHUTDOWN: fails if this user may not stop the server.
    fn may_shut_down(&mut self) -> Result<(), SqlError>;

    /// COM_REFRESH: fails if this user may not make the server reload anything.
    fn may_reload(&mut self) -> Result<(), SqlError> {
        Err(SqlError::unknown_command())
    }

    /// COM_DEBUG: fails if this user may not request debug information.
    fn may_debug(&mut self) -> Result<(), SqlError> {
        Err(SqlError::unknown_command())
    }

    /// COM_REGISTER_SLAVE and COM_BINLOG_DUMP: fails if this user may not read the binary log.
    fn may_replicate(&mut self) -> Result<(), SqlError> {
        Err(SqlError::unknown_command())
    }

    /// Returns the user variable `@name` as text, or `None` if it was never set or is NULL.
    fn user_variable(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Returns whether the session has set skip_replication, so that events logged under it are not sent.
    fn skips_marked_events(&self) -> bool {
        false
    }

    /// Shows the connection as a binlog dump in this state in the process list.
    fn show_dump(&self, state: &'static str) {
        let _ = state;
    }

    /// Returns the current values of the variables.
    fn settings(&self) -> SessionSettings;

    /// Returns max_allowed_packet.
    fn packet_bytes_max(&self) -> usize;

    /// Returns wait_timeout. In a transaction idle_transaction_timeout takes precedence, then
    /// idle_readonly_transaction_timeout or idle_write_transaction_timeout; 0 means not set.
    fn idle_s_max(&self) -> u64;

    /// Returns the transaction and autocommit bits for packets that the connection itself writes.
    fn status(&self) -> StatusFlags;

    /// Returns the reply barrier: replies may be sent only when its position may be acknowledged.
    fn hold(&self) -> &Arc<ReplyBarrier>;

    /// Counts the statements whose replies were held. Called before the replies leave. Returns whether there
    /// are log entries to write ([`Session::write_log`]).
    fn settle(&mut self) -> bool {
        false
    }

    /// Writes the log entries of statements whose replies were held. May wait for the disk.
    fn write_log(&mut self) {}

    /// Returns whether KILL was used on the connection.
    fn killed(&self) -> Killed;
}

/// Executes statements: the executor on top of the commit path, or a stub in tests.
pub trait Backend: Send + Sync {
    /// Creates the session of an authenticated user. `closer` ends the connection from any thread; KILL calls
    /// it.
    fn connect(
        &self,
        info: ConnectionInfo,
        closer: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Box<dyn Session>, SqlError>;

    /// Returns the newest acknowledged position.
    fn acknowledged(&self) -> CommitSeq;

    /// Registers `wake` to be notified when `seq` may be acknowledged. Returns false, without a notification,
    /// if it already may be.
    fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool;

    /// Flushes ordered transactions unless another thread does. The calling thread holds no lock, and calls
    /// it after a registration and before it waits for anything.
    fn lead(&self);

    /// Works like [`Backend::lead`], but may leave the flush to a worker that has nothing else to do. For a
    /// worker that is about to serve another request.
    fn lead_later(&self);

    /// Returns the recent duration of a flush in nanoseconds, or 0 if there was none.
    fn flush_ns(&self) -> u64 {
        0
    }

    /// Returns whether an otherwise idle worker must lead a flush.
    fn has_queued(&self) -> bool;

    /// Blocks until `seq` may be acknowledged. Returns false if that will never happen because the log
    /// failed.
    fn wait_acknowledged(&self, seq: CommitSeq) -> bool;

    /// Logs a failed login or a refused change of user.
    fn note_refused(&self, event: ConnectionEvent, client: Client<'_>, error: &SqlError) {
        let _ = (event, client, error);
    }

    /// Creates a file in `tmpdir`. It is removed when it is dropped.
    fn temporary_file(&self) -> Result<SharedFile, SqlError> {
        Err(SqlError::not_supported("a file of the server"))
    }

    /// Kills a busy connection if its statement only reads or only waits, and `is_lost` confirms that its
    /// client has disconnected.
    fn end_if_lost(&self, id: ConnectionId, is_lost: &dyn Fn() -> bool) {
        let _ = (id, is_lost);
    }

    /// Returns the source that serves replicas, or `None` without a binary log.
    fn source(&self) -> Option<Arc<Source>> {
        None
    }
}
