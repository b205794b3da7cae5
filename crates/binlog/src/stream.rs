//! The growing binary log as a stream of bytes.
use cohort_base::{BinlogPos, Gtid, ServerId, Xid};

use crate::event::{Checksum, XaXid};
use crate::{BinlogName, GtidState, Sealed, StreamOut};

/// Settings of the stream.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Names of the files.
    pub name: BinlogName,
    /// `max_binlog_size`: the file is changed behind the transaction that reaches it.
    pub file_bytes_max: u64,
    /// `server_id`: in the events of a file's head.
    pub server_id: ServerId,
    /// In the format description; must contain "MariaDB".
    pub server_version: String,
    /// `binlog_checksum`
    pub checksum: Checksum,
}

/// What stands before the body of a transaction.
#[derive(Clone, Debug)]
pub struct GtidHead {
    /// The GTID; its server id is that of the GTID and XID events.
    pub gtid: Gtid,
    /// Common to the transactions of a run without conflicts (I8); `None` for a run of one.
    pub commit_id: Option<u64>,
    /// See [`crate::event::gtid_flags2`]; GROUP_COMMIT_ID and the XA bits are set here.
    pub flags2: u8,
    /// Of an XA transaction; `flags2` says which of its phases.
    pub xid: Option<XaXid>,
    /// Flags of the common header; SKIP_REPLICATION belongs here.
    pub flags: u16,
    /// Timestamp of the GTID and XID events.
    pub timestamp: u32,
}

/// Where a transaction went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its first byte.
    pub start: BinlogPos,
    /// Behind its last byte.
    pub end: BinlogPos,
}

/// The stream.
pub struct Stream {}

impl Stream {
    /// Starts the stream at the head of a new file (a server's start makes one). Only `append_trx` and `rotate`
    /// give out positions from here on.
    pub fn open_new(
        _options: StreamOptions,
        _file: u32,
        _state: GtidState,
        _now: u32,
        _out: &mut StreamOut,
    ) -> Stream {
        todo!()
    }

    /// Behind the last byte.
    pub fn position(&self) -> BinlogPos {
        todo!()
    }

    /// The GTID state after the last transaction appended.
    pub fn gtid_state(&self) -> &GtidState {
        todo!()
    }

    /// Most bytes that `append_trx` can append for this body, for reserving room beforehand.
    pub fn trx_bytes_max(_body: &Sealed) -> u64 {
        todo!()
    }

    /// Appends a transaction: GTID event, body, XID event if `end` is given. Bytes in final form; of a spilled body
    /// only the place. Cannot fail (I6).
    pub fn append_trx(
        &mut self,
        _out: &mut StreamOut,
        _head: &GtidHead,
        _body: &Sealed,
        _end: Option<Xid>,
    ) -> Written {
        todo!()
    }

    /// Whether the file has reached its size.
    pub fn wants_rotation(&self) -> bool {
        todo!()
    }

    /// Ends the file with a ROTATE event and starts the next one.
    pub fn rotate(&mut self, _out: &mut StreamOut, _now: u32) {
        todo!()
    }

    /// Ends the stream with a STOP event (clean shutdown). Then [`crate::Materialiser::close`].
    pub fn stop(&mut self, _out: &mut StreamOut, _now: u32) {
        todo!()
    }

    /// `SET GLOBAL max_binlog_size`
    pub fn set_file_bytes_max(&mut self, _bytes: u64) {
        todo!()
    }

    /// `SET GLOBAL binlog_checksum`: rotates, because the algorithm is per file.
    pub fn set_checksum(&mut self, _checksum: Checksum, _out: &mut StreamOut, _now: u32) {
        todo!()
    }
}
