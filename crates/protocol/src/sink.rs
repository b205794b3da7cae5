//! Where a statement's results go: the seam between executor and connection.
//!
//! One command yields one or more results, each either
//!
//! - `start`, any number of `row`, `finish`: a result set; or
//! - `ok`: a statement without rows; or
//! - `error`, also in the middle of a result set; nothing may follow it.
//!
//! If another result follows in the same command, the status of the one before carries `MORE_RESULTS`. The
//! sink knows whether the command wants text or binary rows; the executor need not.

use cohort_types::{Collation, SqlError, SqlResult, StoredColumns, Value};

use crate::column_meta::ColumnMeta;

/// State of the session and of the statement, told with every result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusFlags(pub u16);

impl StatusFlags {
    pub const IN_TRANS: StatusFlags = StatusFlags(0x0001);
    pub const AUTOCOMMIT: StatusFlags = StatusFlags(0x0002);
    pub const MORE_RESULTS: StatusFlags = StatusFlags(0x0008);
    pub const NO_GOOD_INDEX_USED: StatusFlags = StatusFlags(0x0010);
    pub const NO_INDEX_USED: StatusFlags = StatusFlags(0x0020);
    pub const CURSOR_EXISTS: StatusFlags = StatusFlags(0x0040);
    pub const LAST_ROW_SENT: StatusFlags = StatusFlags(0x0080);
    pub const DB_DROPPED: StatusFlags = StatusFlags(0x0100);
    pub const NO_BACKSLASH_ESCAPES: StatusFlags = StatusFlags(0x0200);
    pub const METADATA_CHANGED: StatusFlags = StatusFlags(0x0400);
    pub const ANSI_QUOTES: StatusFlags = StatusFlags(0x8000);
    /// The OK packet tells what changed; set by the connection.
    pub const SESSION_STATE_CHANGED: StatusFlags = StatusFlags(0x4000);
    pub const IN_TRANS_READONLY: StatusFlags = StatusFlags(0x2000);

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: StatusFlags) -> StatusFlags {
        StatusFlags(self.0 | other.0)
    }

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: StatusFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A statement's outcome without rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct OkInfo<'a> {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub status: StatusFlags,
    pub warnings: u16,
    /// For people: `Rows matched: 1  Changed: 1  Warnings: 0`; usually empty.
    pub info: &'a str,
}

/// What is known when a result set begins, for clients that look at it before the rows have come.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultHead {
    pub status: StatusFlags,
    pub warnings: u16,
}

/// What a statement changed of its session, for clients that keep a copy (CLIENT_SESSION_TRACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChange<'a> {
    /// The current database; empty for none.
    Schema(&'a str),
    /// A system variable and its value.
    Variable(&'a str, &'a str),
    /// Something, told or not.
    State,
    /// The transaction's state, in MariaDB's eight letters.
    TransactionState(&'a str),
    /// Statements that begin a transaction like the one that runs; empty when none does.
    TransactionCharacteristics(&'a str),
}

/// Takes the results of one command. A client that is gone is noticed by `is_dead`; what has committed is
/// told by methods that do not fail.
pub trait ResultSink {
    /// Begins a result set.
    fn start(&mut self, columns: &[ColumnMeta], head: ResultHead);

    /// The results that follow have this collation of `character_set_results`; None: strings are sent as they
    /// are.
    fn results(&mut self, collation: Option<Collation>) {
        let _ = collation;
    }

    /// Adds a row: one value per column, in the session's time zone (no `Value::Timestamp`).
    fn row(&mut self, values: &[Value]);

    /// The same for the rows of a statement that [`ResultSink::keep_rows`] was called for. An error ends the
    /// statement: 1290 or 1041 without memory, 1, 3 or 1021 without a file.
    fn try_row(&mut self, values: &[Value]) -> SqlResult<()> {
        self.row(values);
        Ok(())
    }

    /// Adds rows as they are stored, of which these columns are the result's: does what
    /// [`ResultSink::try_row`] of their values does. None of the columns is a TIMESTAMP.
    fn stored_rows(&mut self, columns: &StoredColumns<'_>, rows: &[&[u8]]) -> SqlResult<()> {
        let mut values = Vec::with_capacity(columns.len());
        for row in rows {
            columns.values(row, &mut values)?;
            self.try_row(&values)?;
        }
        Ok(())
    }

    /// Ends a result set.
    fn finish(&mut self, status: StatusFlags, warnings: u16);

    /// A statement without rows.
    fn ok(&mut self, ok: &OkInfo<'_>);

    /// The rows of the statement that begins may be kept for a cursor. Whether they are: the client asked for
    /// one.
    fn keep_rows(&mut self) -> bool {
        false
    }

    /// Whether `finish` tells of changes, too.
    fn tells_changes_at_end(&self) -> bool {
        false
    }

    /// The next `ok` tells of this, or the next `finish` where it tells of changes.
    fn changed(&mut self, change: SessionChange<'_>) {
        let _ = change;
    }

    /// Whether the client sends a file when it is asked for one (LOAD DATA LOCAL).
    fn may_send_files(&self) -> bool {
        false
    }

    /// Asks the client for a file, whose bytes come by `file_bytes`. What was written before leaves first.
    fn request_file(&mut self, name: &[u8]) -> SqlResult<()> {
        let _ = name;
        Err(SqlError::not_supported("a file of this client"))
    }

    /// Appends the next bytes of the file; none at its end. An error: the client is gone.
    fn file_bytes(&mut self, out: &mut Vec<u8>) -> SqlResult<()> {
        let _ = out;
        Ok(())
    }

    /// The statement failed; the command ends here.
    fn error(&mut self, error: &SqlError);

    /// Whether the rest of the rows is for nobody: the client is gone or the connection was killed.
    fn is_dead(&self) -> bool;
}
