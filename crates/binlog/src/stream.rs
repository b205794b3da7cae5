//! The growing binary log as a stream of bytes: where positions, checksums and the GTID state are given out.
//!
//! # Concepts
//!
//! - Positions are assigned when the flush group is *closed*, by its leader, in CommitSeq order (I1), because
//!   the length of the GTID event depends on whether a commit id is present, which is known only then.
//! - Output goes into a [`StreamOut`]: final bytes, and the chunks that say where they belong. Both travel in
//!   commit records; the files are written from them later ([`crate::Materialiser`]).
//! - A file change is part of the stream: ROTATE ends the file; magic, format description (marked as in use),
//!   GTID_LIST and BINLOG_CHECKPOINT start the next.
//! - The body of a spilled transaction does not pass through here; only its place is noted.
//!
//! # States
//!
//! `open_new` -> (`append_trx` | `rotate` | `set_checksum`)* -> `stop`. One thread at a time, the leader's.
//!
//! # On failure
//!
//! Nothing here fails (I6). A file is a u32 number and an event position is kept modulo 2^32, as in MariaDB.
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

/// GTID event with commit id and the longest XID, XID event, both with checksums.
const HEAD_AND_END_BYTES_MAX: u64 = (HEADER_LEN + 13 + 8 + 6 + 128 + 10 + 4 + HEADER_LEN + 8 + 4) as u64;

/// A file change beside its GTID list and the names of files: ROTATE, magic, format description with the
/// longest server version, BINLOG_CHECKPOINT, and where all of it belongs.
const FILE_CHANGE_BYTES: u64 = 1024;
/// Longest text behind the base name of a file.
const NUMBER_BYTES_MAX: u64 = 11;
/// One GTID in a GTID list.
const GTID_BYTES: u64 = 16;

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
    /// See [`crate::event::gtid_flags2`]; the bits of an XA transaction are set here, GROUP_COMMIT_ID follows
    /// `commit_id`.
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
pub struct Stream {
    options: StreamOptions,
    pos: BinlogPos,
    state: GtidState,
    /// The first file that recovery may look into, as BINLOG_CHECKPOINT events tell it; none: the file that
    /// is written, because another log decides.
    needed_from: Option<u32>,
}

/// Room for the GTID and XID events of a transaction, as a rule.
const FRAME_BYTES: usize = 96;

impl Stream {
    /// Starts the stream at the head of a new file (a server's start makes one). Only `append_trx` and
    /// `rotate` give out positions from here on. `now` is in seconds since 1970.
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

    /// The same for files that decide what is committed: recovery may look into all from `needed_from` on.
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

    /// Behind the last byte.
    pub fn position(&self) -> BinlogPos {
        self.pos
    }

    /// Whether [`Stream::tell_needed_from`] would tell something.
    pub fn is_news(&self, needed_from: u32) -> bool {
        self.needed_from.is_some_and(|before| before != needed_from)
    }

    /// Tells the first file that recovery may look into from now on, if it is another one than before.
    pub fn tell_needed_from(&mut self, file: u32, now: u32, out: &mut StreamOut) {
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

    /// The GTID state after the last transaction appended.
    pub fn gtid_state(&self) -> &GtidState {
        &self.state
    }

    /// Most bytes that `append_trx` can append for this body, for reserving room beforehand.
    pub fn trx_bytes_max(body: &Sealed) -> u64 {
        let body = match body {
            Sealed::Memory { .. } => body.len(Checksum::Crc32),
            Sealed::File { .. } => 0,
        };
        body + HEAD_AND_END_BYTES_MAX
    }

    /// Most bytes that a file change in this state appends, chunk list included: it grows with the pairs of
    /// domain and server.
    pub fn file_change_bytes_max(name: &BinlogName, state: &GtidState) -> u64 {
        let name_bytes = name.base().len() as u64 + NUMBER_BYTES_MAX;
        FILE_CHANGE_BYTES + 2 * name_bytes + GTID_BYTES * state.len() as u64
    }

    /// The same in the state after the last transaction appended.
    pub fn rotation_bytes_max(&self) -> u64 {
        Stream::file_change_bytes_max(&self.options.name, &self.state)
    }

    /// Forgets domains: the next file's GTID list is without them.
    pub fn forget_domains(&mut self, domains: &[DomainId]) {
        domains.iter().for_each(|&domain| self.state.remove(domain));
    }

    /// Appends a transaction: GTID event, body, XID event if `end` is given. Bytes in final form; of a
    /// spilled body only the place. Cannot fail (I6).
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

    /// Copies finished events and fills in what depends on their place.
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
        // A format description carries its checksum even when those behind it do not.
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

    /// Whether the file has reached its size.
    pub fn wants_rotation(&self) -> bool {
        self.pos.offset >= self.options.file_bytes_max
    }

    /// Ends the file with a ROTATE event and starts the next one.
    pub fn rotate(&mut self, out: &mut StreamOut, now: u32) {
        let file = self.end_file(out, now);
        self.start_file(file, now, 0, out);
    }

    /// Bytes that the head of a file may take that begins with this state.
    pub fn head_bytes_max(&self, state: &GtidState) -> u64 {
        Stream::file_change_bytes_max(&self.options.name, state)
    }

    /// Begins again at the head of this file, as a new server does, with these GTIDs.
    pub fn restart(&mut self, file: u32, state: GtidState, now: u32, out: &mut StreamOut) {
        self.state = state;
        self.needed_from = self.needed_from.map(|_| file);
        self.start_file(file, now, now, out);
    }

    /// Ends the stream with a STOP event (clean shutdown). Then [`crate::Materialiser::close`].
    pub fn stop(&mut self, out: &mut StreamOut, now: u32) {
        self.append(out, EventType::STOP, now, self.options.server_id, 0, |_| {});
    }

    /// `SET GLOBAL max_binlog_size`
    pub fn set_file_bytes_max(&mut self, bytes: u64) {
        self.options.file_bytes_max = bytes;
    }

    /// `SET GLOBAL binlog_checksum`: rotates, because the algorithm is per file; also to the same value, as
    /// in MariaDB.
    pub fn set_checksum(&mut self, checksum: Checksum, out: &mut StreamOut, now: u32) {
        let file = self.end_file(out, now);
        self.options.checksum = checksum;
        self.start_file(file, now, 0, out);
    }

    /// ROTATE; answers the number of the next file.
    fn end_file(&mut self, out: &mut StreamOut, now: u32) -> u32 {
        let file = self.pos.file + 1;
        let event = Rotate { position: MAGIC.len() as u64, name: self.options.name.file(file).into_bytes() };
        self.append(out, EventType::ROTATE, now, self.options.server_id, 0, |bytes| event.encode(bytes));
        file
    }

    /// The head of a file. `created` is the server's start in the first file after it, else 0.
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
