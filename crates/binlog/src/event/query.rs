//! QUERY (2) and QUERY_COMPRESSED (165): an SQL statement and the session state it needs.
//!
//! ```text
//! thread_id u32 | exec_time u32 | db_len u8 | error u16 | status_len u16 |
//! status variables | db | 0 | statement to the end
//! ```
//!
//! In the compressed kind the statement has the format described in `compressed`.

use std::borrow::Cow;

use cohort_base::{Reader, Write};

use super::{DecodeError, Packing, StatusVars, deflate, inflate, plain_len};

/// Bytes before the status variables, and the zero byte after the database.
const HEAD_BYTES: usize = 14;
/// Capacity sufficient for the status variables of most statements.
const STATUS_BYTES: usize = 64;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryEvent {
    /// Connection id, which identifies the session's temporary tables.
    pub thread_id: u32,
    /// Execution time in seconds.
    pub exec_time: u32,
    /// Error with which it ended on the source; replicas expect the same.
    pub error: u16,
    /// Undecoded status variables, see [`StatusVars`].
    pub status: Vec<u8>,
    /// Current database, may be empty; at most 255 bytes.
    pub db: Vec<u8>,
    /// Says whether `sql` is compressed.
    pub packing: Packing,
    /// The statement.
    pub sql: Vec<u8>,
}

impl QueryEvent {
    /// Returns the event of a successful statement.
    pub fn new(thread_id: u32, status: &StatusVars, db: &[u8], sql: &[u8]) -> QueryEvent {
        let mut event = QueryEvent {
            thread_id,
            exec_time: 0,
            error: 0,
            status: Vec::with_capacity(STATUS_BYTES),
            db: db.to_vec(),
            packing: Packing::Plain,
            sql: sql.to_vec(),
        };
        status.encode(&mut event.status);
        event
    }

    /// Compresses the statement (`log_bin_compress`).
    pub fn compress(&mut self) {
        if self.packing == Packing::Plain {
            let plain = std::mem::take(&mut self.sql);
            deflate(&plain, &mut self.sql);
            self.packing = Packing::Compressed;
        }
    }

    /// Decodes the status variables.
    pub fn status_vars(&self) -> Result<StatusVars, DecodeError> {
        StatusVars::decode(&self.status)
    }

    /// Returns the bytes that [`QueryEvent::plain_sql`] allocates: 0 if the statement is not compressed.
    pub fn inflated_bytes(&self) -> Result<u64, DecodeError> {
        match self.packing {
            Packing::Plain => Ok(0),
            Packing::Compressed => plain_len(&self.sql),
        }
    }

    /// Returns the decompressed statement.
    pub fn plain_sql(&self) -> Result<Cow<'_, [u8]>, DecodeError> {
        match self.packing {
            Packing::Plain => Ok(Cow::Borrowed(&self.sql)),
            Packing::Compressed => Ok(Cow::Owned(inflate(&self.sql)?)),
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>, packing: Packing) -> Result<QueryEvent, DecodeError> {
        let (thread_id, exec_time, db_len, error) = (r.u32()?, r.u32()?, r.u8()?, r.u16()?);
        let status_len = r.u16()?;
        let status = r.bytes(usize::from(status_len))?.to_vec();
        let db = r.bytes(usize::from(db_len))?.to_vec();
        if r.u8()? != 0 {
            return Err(DecodeError::BadValue(
                "database name of a query event does not end with a zero byte",
            ));
        }
        let sql = r.bytes(r.remaining())?.to_vec();
        Ok(QueryEvent { thread_id, exec_time, error, status, db, packing, sql })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(HEAD_BYTES + self.status.len() + self.db.len() + self.sql.len());
        out.put_u32(self.thread_id);
        out.put_u32(self.exec_time);
        out.put_u8(self.db.len() as u8);
        out.put_u16(self.error);
        out.put_u16(self.status.len() as u16);
        out.extend_from_slice(&self.status);
        out.extend_from_slice(&self.db);
        out.put_u8(0);
        out.extend_from_slice(&self.sql);
    }
}
