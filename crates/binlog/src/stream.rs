//! The growing binary log as a byte stream: assigns positions, checksums and the GTID state.
//!
//! # Concepts
//!
//! - The leader assigns positions when it *closes* the flush group, in CommitSeq order (I1). They cannot be
//!   assigned earlier, because the length of the GTID event depends on whether it has a commit id.
//! - Output goes into a [`StreamOut`]: final bytes, and chunks that say where they belong. Both are stored in
//!   commit records; the files are written from them later ([`crate::BinlogFileWriter`]).
//! - A file change is part of the stream: ROTATE ends the file; magic, format description (marked as in use),
//!   GTID_LIST and BINLOG_CHECKPOINT start the next one.
//! - The body of a spilled transaction is not copied into the output; only its place is recorded.
//!
//! # States
//!
//! `open_new` -> (`append_trx` | `rotate` | `set_checksum`)* -> `stop`. Used by one thread at a time, the
//! leader.
//!
//! # On failure
//!
//! No operation can fail (I6). File numbers are u32, and event positions are stored modulo 2^32, as in
//! MariaDB.
//!
//! # Deliberately missing
//!
//! Encrypted binlogs.

use cohort_base::{BinlogPos, DomainId, Gtid, ServerId, Write, Xid};

use crate::chunk::{Chunk, Content, SpilledChunk};
use crate::event::{
    BinlogCheckpoint, Checksum, EventType, FormatDescription, GtidEvent, GtidListEvent, HEADER_LEN, MAGIC,
    Rotate, XaXid, begin_event, finish_event, flags, gtid_flags2,
};
use crate::spill::event_len;
use crate::{BinlogName, GtidState, Sealed, StreamOut};

/// Maximum bytes of the GTID event (with commit id and the longest XID) and the XID event, both with
/// checksums.
const HEAD_AND_END_BYTES_MAX: u64 = (HEADER_LEN + 13 + 8 + 6 + 128 + 10 + 4 + HEADER_LEN + 8 + 4) as u64;

/// Bytes of a file change without its GTID list and file names: ROTATE, magic, format description with the
/// longest server version, BINLOG_CHECKPOINT, and their chunk list.
const FILE_CHANGE_BYTES: u64 = 1024;
/// Maximum length of the text after the base name of a file.
const NUMBER_BYTES_MAX: u64 = 11;
/// Bytes of one GTID in a GTID list.
const GTID_BYTES: u64 = 16;

/// Settings of the stream.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Names of the files.
    pub name: BinlogName,
    /// `max_binlog_size`: the file is changed after the transaction that reaches it.
    pub file_bytes_max: u64,
    /// `server_id` in the events of a file's head.
    pub server_id: ServerId,
    /// Server version in the format description; must contain "MariaDB".
    pub server_version: String,
    /// `binlog_checksum`
    pub checksum: Checksum,
}

/// Parameters of the events around the body of a transaction.
#[derive(Clone, Debug)]
pub struct GtidHead {
    /// The GTID; its server id is also the server id of the GTID and XID events.
    pub gtid: Gtid,
    /// Shared by consecutive transactions without conflicts (I8); `None` for a single one.
    pub commit_id: Option<u64>,
    /// See [`crate::event::gtid_flags2`]. The caller sets the bits of an XA transaction; GROUP_COMMIT_ID is
    /// derived from `commit_id`.
    pub flags2: u8,
    /// XID of an XA transaction; `flags2` says which phase it is.
    pub xid: Option<XaXid>,
    /// Flags of the common header, for instance SKIP_REPLICATION.
    pub flags: u16,
    /// Timestamp of the GTID and XID events.
    pub timestamp: u32,
}

/// Place of a transaction in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Position of its first byte.
    pub start: BinlogPos,
    /// Position after its last byte.
    pub end: BinlogPos,
}

/// The growing binary log.
pub struct Stream {
    options: StreamOptions,
    pos: BinlogPos,
    state: GtidState,
    /// First file that recovery may read, as written in BINLOG_CHECKPOINT events. `None` stands for the file
    /// being written, because another log decides on commits.
    needed_from: Option<u32>,
}

/// Typical size of the GTID and XID events of a transaction.
const FRAME_BYTES: usize = 96;

impl Stream {
    /// Starts the stream at the head of a new file, which every start of the server creates. From here on
    /// only `append_trx` and `rotate` assign positions. `now` is in seconds since 1970.
    pub fn open_new(
        options: StreamOptions,
        file: u32,
        state: GtidState,
        now: u32,
        out: &mut StreamOut,
    ) -> Stream {
        let mut stream = Stream { options, pos: BinlogPos::default(), state, needed_from: None };
        stream.start_file(file, now, now, out);
        stream
    }

    /// Like [`Stream::open_new`], for files that decide which transactions are committed: recovery may read
    /// all files from `needed_from` on.
    pub fn open_deciding(
        options: StreamOptions,
        file: u32,
        state: GtidState,
        needed_from: u32,
        now: u32,
        out: &mut StreamOut,
    ) -> Stream {
        let mut stream = Stream { options, pos: BinlogPos::default(), state, needed_from: Some(needed_from) };
        stream.start_file(file, now, now, out);
        stream
    }

    /// Returns the position after the last byte.
    pub fn position(&self) -> BinlogPos {
        self.pos
    }

    /// Returns whether [`Stream::log_needed_from`] would append an event.
    pub fn is_news(&self, needed_from: u32) -> bool {
        self.needed_from.is_some_and(|before| before != needed_from)
    }

    /// Appends an event with the first file that recovery may read from now on, unless it is the same as
    /// before.
    pub fn log_needed_from(&mut self, file: u32, now: u32, out: &mut StreamOut) {
        if !self.is_news(file) {
            return;
        }
        self.needed_from = Some(file);
        self.append_checkpoint(out, now);
    }

    fn append_checkpoint(&mut self, out: &mut StreamOut, now: u32) {
        let file = self.needed_from.unwrap_or(self.pos.file).clamp(1, self.pos.file.max(1));
        let event = BinlogCheckpoint { name: self.options.name.file(file).into_bytes() };
        let server = self.options.server_id;
        self.append(out, EventType::BINLOG_CHECKPOINT, now, server, 0, |bytes| event.encode(bytes));
    }

    /// Returns the GTID state after the last transaction appended.
    pub fn gtid_state(&self) -> &GtidState {
        &self.state
    }

    /// Returns the maximum bytes that `append_trx` can append for this body, for a reservation beforehand.
    pub fn trx_bytes_max(body: &Sealed) -> u64 {
        let body = match body {
            Sealed::Memory { .. } => body.len(Checksum::Crc32),
            Sealed::File { .. } => 0,
        };
        body + HEAD_AND_END_BYTES_MAX
    }

    /// Returns the maximum bytes that a file change in this state appends, including the chunk list. Grows
    /// with the number of domain and server pairs.
    pub fn file_change_bytes_max(name: &BinlogName, state: &GtidState) -> u64 {
        let name_bytes = name.base().len() as u64 + NUMBER_BYTES_MAX;
        FILE_CHANGE_BYTES + 2 * name_bytes + GTID_BYTES * state.len() as u64
    }

    /// Like [`Stream::file_change_bytes_max`], with the state after the last transaction appended.
    pub fn rotation_bytes_max(&self) -> u64 {
        Stream::file_change_bytes_max(&self.options.name, &self.state)
    }

    /// Removes domains from the state, so that the next file's GTID list does not contain them.
    pub fn forget_domains(&mut self, domains: &[DomainId]) {
        domains.iter().for_each(|&domain| self.state.remove(domain));
    }

    /// Appends a transaction: GTID event, body, and an XID event if `end` is given, in final form. For a
    /// spilled body, only its place is recorded. Cannot fail (I6).
    pub fn append_trx(
        &mut self,
        out: &mut StreamOut,
        head: &GtidHead,
        body: &Sealed,
        end: Option<Xid>,
    ) -> Written {
        let start = self.pos;
        let in_memory = if let Sealed::Memory { .. } = body { body.len(self.options.checksum) } else { 0 };
        out.bytes.reserve(FRAME_BYTES + in_memory as usize);
        self.append_gtid(out, head);
        match body {
            Sealed::Memory { bytes, .. } => self.append_events(out, bytes),
            Sealed::File { name, events, event_bytes } => {
                let checksum = self.options.checksum;
                let len = body.len(checksum);
                let spilled =
                    SpilledChunk { name: name.clone(), events: *events, event_bytes: *event_bytes, checksum };
                out.chunks.push(Chunk { pos: self.pos, len, content: Content::Spilled(spilled) });
                self.pos.offset += len;
            }
        }
        if let Some(xid) = end {
            self.append(out, EventType::XID, head.timestamp, head.gtid.server, head.flags, |bytes| {
                bytes.put_u64(xid.0);
            });
        }
        self.state.update(head.gtid);
        Written { start, end: self.pos }
    }

    fn append_gtid(&mut self, out: &mut StreamOut, head: &GtidHead) {
        debug_assert_eq!(
            head.xid.is_some(),
            head.flags2 & (gtid_flags2::PREPARED_XA | gtid_flags2::COMPLETED_XA) != 0
        );
        let mut event = GtidEvent::new(head.gtid, head.flags2, head.commit_id);
        event.xid = head.xid.clone();
        let flags = head.flags | flags::SUPPRESS_USE;
        self.append(out, EventType::GTID, head.timestamp, head.gtid.server, flags, |bytes| {
            event.encode(bytes)
        });
    }

    /// Copies finished events and fills in the fields that depend on their position.
    fn append_events(&mut self, out: &mut StreamOut, events: &[u8]) {
        let from = out.bytes.len();
        let first = self.pos;
        let checksum = self.options.checksum;
        let mut rest = events;
        while !rest.is_empty() {
            let (event, tail) = rest.split_at(event_len(rest));
            let start = out.bytes.len();
            out.bytes.extend_from_slice(event);
            self.pos.offset = finish_event(&mut out.bytes, start, self.pos.offset, checksum);
            rest = tail;
        }
        if !events.is_empty() {
            out.place(first, from);
        }
    }

    fn append(
        &mut self,
        out: &mut StreamOut,
        kind: EventType,
        timestamp: u32,
        server: ServerId,
        flags: u16,
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        // A format description has a checksum even if the events after it have none.
        let checksum = match kind {
            EventType::FORMAT_DESCRIPTION => Checksum::Crc32,
            _ => self.options.checksum,
        };
        let start = begin_event(&mut out.bytes, kind, timestamp, server, flags);
        body(&mut out.bytes);
        let at = self.pos;
        self.pos.offset = finish_event(&mut out.bytes, start, at.offset, checksum);
        out.place(at, start);
    }

    /// Returns whether the file has reached its maximum size.
    pub fn wants_rotation(&self) -> bool {
        self.pos.offset >= self.options.file_bytes_max
    }

    /// Ends the file with a ROTATE event and starts the next one.
    pub fn rotate(&mut self, out: &mut StreamOut, now: u32) {
        let file = self.end_file(out, now);
        self.start_file(file, now, 0, out);
    }

    /// Returns the maximum bytes of the head of a file that starts with this state.
    pub fn head_bytes_max(&self, state: &GtidState) -> u64 {
        Stream::file_change_bytes_max(&self.options.name, state)
    }

    /// Restarts the stream at the head of this file with this GTID state, like a new server (a binlog reset).
    pub fn restart(&mut self, file: u32, state: GtidState, now: u32, out: &mut StreamOut) {
        self.state = state;
        self.needed_from = self.needed_from.map(|_| file);
        self.start_file(file, now, now, out);
    }

    /// Ends the stream with a STOP event (clean shutdown). Call [`crate::BinlogFileWriter::close`]
    /// afterwards.
    pub fn stop(&mut self, out: &mut StreamOut, now: u32) {
        self.append(out, EventType::STOP, now, self.options.server_id, 0, |_| {});
    }

    /// Implements `SET GLOBAL max_binlog_size`.
    pub fn set_file_bytes_max(&mut self, bytes: u64) {
        self.options.file_bytes_max = bytes;
    }

    /// Implements `SET GLOBAL binlog_checksum`. Rotates, because the algorithm is per file; as in MariaDB,
    /// also if the value does not change.
    pub fn set_checksum(&mut self, checksum: Checksum, out: &mut StreamOut, now: u32) {
        let file = self.end_file(out, now);
        self.options.checksum = checksum;
        self.start_file(file, now, 0, out);
    }

    /// Appends ROTATE and returns the number of the next file.
    fn end_file(&mut self, out: &mut StreamOut, now: u32) -> u32 {
        let file = self.pos.file + 1;
        let event = Rotate { position: MAGIC.len() as u64, name: self.options.name.file(file).into_bytes() };
        self.append(out, EventType::ROTATE, now, self.options.server_id, 0, |bytes| event.encode(bytes));
        file
    }

    /// Appends the head of a file. `created` is the start time of the server in its first file, 0 in later
    /// ones.
    fn start_file(&mut self, file: u32, now: u32, created: u32, out: &mut StreamOut) {
        let server = self.options.server_id;
        let from = out.bytes.len();
        out.bytes.extend_from_slice(&MAGIC);
        out.place(BinlogPos { file, offset: 0 }, from);
        self.pos = BinlogPos { file, offset: MAGIC.len() as u64 };
        let format = FormatDescription::new(&self.options.server_version, created, self.options.checksum);
        self.append(out, EventType::FORMAT_DESCRIPTION, now, server, flags::IN_USE, |bytes| {
            format.encode(bytes)
        });
        let list = GtidListEvent { flags: 0, gtids: self.state.list() };
        self.append(out, EventType::GTID_LIST, now, server, 0, |bytes| list.encode(bytes));
        self.append_checkpoint(out, now);
    }
}
