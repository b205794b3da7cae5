//! Receiver of a statement's results: the interface between executor and connection.
//!
//! One command yields one or more results, each of which is
//!
//! - `start`, any number of `row`, `finish`: a result set; or
//! - `ok`: a statement without rows; or
//! - `error`, also in the middle of a result set; nothing may follow it.
//!
//! If another result follows in the same command, the status of the previous one has `MORE_RESULTS`. The sink
//! chooses text or binary rows; the executor does not need to know.

use cohort_types::{Collation, SqlError, SqlResult, StoredColumns, Value};

use crate::column_meta::ColumnMeta;

/// Status of session and statement, sent with every result.
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
    /// The row has the values of OUT parameters.
    pub const PS_OUT_PARAMS: StatusFlags = StatusFlags(0x1000);
    pub const ANSI_QUOTES: StatusFlags = StatusFlags(0x8000);
    /// The OK packet contains session changes; set by the connection.
    pub const SESSION_STATE_CHANGED: StatusFlags = StatusFlags(0x4000);
    pub const IN_TRANS_READONLY: StatusFlags = StatusFlags(0x2000);

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: StatusFlags) -> StatusFlags {
        StatusFlags(self.0 | other.0)
    }

    /// Returns whether all bits of `other` are set.
    pub const fn has(self, other: StatusFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Result of a statement without rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct OkInfo<'a> {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub status: StatusFlags,
    pub warnings: u16,
    /// Info text such as `Rows matched: 1  Changed: 1  Warnings: 0`; usually empty.
    pub info: &'a str,
}

/// Status at the start of a result set, for clients that read it before the rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultHead {
    pub status: StatusFlags,
    pub warnings: u16,
}

/// A change of the session state, for clients that keep a copy (CLIENT_SESSION_TRACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChange<'a> {
    /// The current database; empty if there is none.
    Schema(&'a str),
    /// A system variable and its value.
    Variable(&'a str, &'a str),
    /// Any change, including those that have no kind of their own.
    State,
    /// The transaction state, in MariaDB's eight letters.
    TransactionState(&'a str),
    /// Statements that start a transaction like the current one; empty if there is none.
    TransactionCharacteristics(&'a str),
}

/// Receives the results of one command. `is_dead` reports a lost client. The methods that report what has
/// committed cannot fail.
pub trait ResultSink {
    /// Begins a result set.
    fn start(&mut self, columns: &[ColumnMeta], head: ResultHead);

    /// Sets the collation of `character_set_results` for the following results. `None`: strings are not
    /// converted.
    fn results(&mut self, collation: Option<Collation>) {
        let _ = collation;
    }

    /// Adds a row: one value per column, in the session's time zone (no `Value::Timestamp`).
    fn row(&mut self, values: &[Value]);

    /// Like `row`, for a statement for which [`ResultSink::keep_rows`] was called. An error ends the
    /// statement: 1290 or 1041 for lack of memory, 1, 3 or 1021 if the file fails.
    fn try_row(&mut self, values: &[Value]) -> SqlResult<()> {
        self.row(values);
        Ok(())
    }

    /// Adds rows in stored format, of which the result has the columns `columns`. Equivalent to
    /// [`ResultSink::try_row`] with their values. None of the columns is a TIMESTAMP.
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

    /// Reports a statement without rows.
    fn ok(&mut self, ok: &OkInfo<'_>);

    /// Offers to keep the rows of the statement that begins for a cursor. Returns whether they are kept,
    /// which is the case if the client asked for a cursor.
    fn keep_rows(&mut self) -> bool {
        false
    }

    /// Returns whether the client takes a result after another one.
    fn takes_more_results(&self) -> bool {
        true
    }

    /// Returns whether `finish` reports session changes, too.
    fn sends_changes_at_end(&self) -> bool {
        false
    }

    /// Adds a session change to the next `ok`, or to the next `finish` if that reports changes.
    fn changed(&mut self, change: SessionChange<'_>) {
        let _ = change;
    }

    /// Returns whether the client sends files on request (LOAD DATA LOCAL).
    fn may_send_files(&self) -> bool {
        false
    }

    /// Requests a file from the client, to be read with `file_bytes`. Earlier output is sent first.
    fn request_file(&mut self, name: &[u8]) -> SqlResult<()> {
        let _ = name;
        Err(SqlError::not_supported("a file of this client"))
    }

    /// Appends the next bytes of the file, or nothing at its end. Fails if the client is gone.
    fn file_bytes(&mut self, out: &mut Vec<u8>) -> SqlResult<()> {
        let _ = out;
        Ok(())
    }

    /// Reports that the statement failed, which ends the command.
    fn error(&mut self, error: &SqlError);

    /// Returns whether further rows are pointless, because the client is gone or the connection was killed.
    fn is_dead(&self) -> bool;

    /// Returns the bytes that the command has returned so far, sent or not.
    fn bytes(&self) -> u64 {
        0
    }

    /// Returns whether no client waits for the result any more: [`ResultSink::is_dead`], or the client has
    /// closed its side. A system call, for statements that send nothing for long.
    fn has_hung_up(&self) -> bool {
        self.is_dead()
    }
}

/// A sink that discards results.
pub struct NullSink;

impl ResultSink for NullSink {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {}
    fn row(&mut self, _: &[Value]) {}
    fn finish(&mut self, _: StatusFlags, _: u16) {}
    fn ok(&mut self, _: &OkInfo<'_>) {}
    fn error(&mut self, _: &SqlError) {}
    fn is_dead(&self) -> bool {
        false
    }
}
