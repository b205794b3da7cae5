//! LOAD DATA in statement format: the file in blocks, then the statement.
//!
//! ```text
//! BEGIN_LOAD_QUERY 17, APPEND_BLOCK 9   file_id u32 | bytes to the end
//! DELETE_FILE 11                        file_id u32
//! EXECUTE_LOAD_QUERY 18                 thread_id u32 | exec_time u32 | db_len u8 | error u16 |
//!     status_len u16 | file_id u32 | name_start u32 | name_end u32 | duplicates u8 | status | db | 0 |
//!     statement to the end
//! ```

use cohort_base::{Reader, Write};

use super::{DecodeError, Packing, QueryEvent};

/// A block of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBlock {
    /// Number of the file on its source.
    pub file_id: u32,
    /// Contents of the block.
    pub block: Vec<u8>,
}

impl FileBlock {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<FileBlock, DecodeError> {
        Ok(FileBlock { file_id: r.u32()?, block: r.bytes(r.remaining())?.to_vec() })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.file_id);
        out.extend_from_slice(&self.block);
    }
}

/// The LOAD DATA statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteLoadQuery {
    /// The statement; never compressed.
    pub query: QueryEvent,
    /// Number of the file.
    pub file_id: u32,
    /// Offset in the statement of the words before the file name,
    pub name_start: u32,
    /// and of the words after it.
    pub name_end: u32,
    /// Handling of duplicates: 0 error, 1 IGNORE, 2 REPLACE.
    pub duplicates: u8,
}

impl ExecuteLoadQuery {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<ExecuteLoadQuery, DecodeError> {
        let (thread_id, exec_time, db_len, error, status_len) =
            (r.u32()?, r.u32()?, r.u8()?, r.u16()?, r.u16()?);
        let (file_id, name_start, name_end, duplicates) = (r.u32()?, r.u32()?, r.u32()?, r.u8()?);
        let status = r.bytes(usize::from(status_len))?.to_vec();
        let db = r.bytes(usize::from(db_len))?.to_vec();
        if r.u8()? != 0 {
            return Err(DecodeError::BadValue("database name of a load query does not end with a zero byte"));
        }
        let sql = r.bytes(r.remaining())?.to_vec();
        let query = QueryEvent { thread_id, exec_time, error, status, db, packing: Packing::Plain, sql };
        Ok(ExecuteLoadQuery { query, file_id, name_start, name_end, duplicates })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.query.thread_id);
        out.put_u32(self.query.exec_time);
        out.put_u8(self.query.db.len() as u8);
        out.put_u16(self.query.error);
        out.put_u16(self.query.status.len() as u16);
        out.put_u32(self.file_id);
        out.put_u32(self.name_start);
        out.put_u32(self.name_end);
        out.put_u8(self.duplicates);
        out.extend_from_slice(&self.query.status);
        out.extend_from_slice(&self.query.db);
        out.put_u8(0);
        out.extend_from_slice(&self.query.sql);
    }
}
