//! The binlog's half of the commit path: the stream that gives positions, the files behind it, and what the
//! server does to both outside of transactions.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cohort_base::BinlogPos;
use cohort_binlog::event::Checksum;
use cohort_binlog::{
    Batch, BinlogFiles, Chunk, Content, GtidState, Materialiser, MaterialiserOptions, SpillDir, Stream,
    StreamOptions, StreamOut,
};
use cohort_log::{Log, Room};
use cohort_vfs::World;
use parking_lot::Mutex;

use crate::coordinator::Coordinator;
use crate::error::CommitError;
use crate::fault::Meaning;
use crate::options::BinlogSettings;
use crate::record;
use crate::recovery::{Recovered, RecoveryError};
use crate::seam::Stopped;

/// Why writes are refused while the files wait for space.
pub const NO_SPACE_FOR_BINLOG: &str = "no space for the binary log's files";
/// Room that a file change needs in the log: the heads are small, the GTID list of a server with thousands of
/// domains still fits.
pub const ROTATION_BYTES: u64 = 64 << 10;

/// The binlog's half, absent with `skip-log-bin`.
pub struct Binlog {
    pub stream: Mutex<Stream>,
    pub files: Arc<Materialiser>,
    /// Room for a file change, so that a leader never waits for it. Filled by preparing sessions and the
    /// checkpointer, taken by the leader.
    pub rotation_room: Mutex<Option<Room>>,
    /// A thread is filling `rotation_room`.
    pub is_filling_room: AtomicBool,
    /// The written group's bytes until they are hardened; only the leader.
    pub pending: Mutex<Option<Batch>>,
    /// The stream's end after the last hardened group.
    pub end: Mutex<BinlogEnd>,
}

/// What SHOW MASTER STATUS shows.
#[derive(Clone, Debug, Default)]
pub struct BinlogEnd {
    pub position: BinlogPos,
    pub gtids: GtidState,
}

impl Binlog {
    /// Starts a new binlog file, as every start of a MariaDB server does; its head goes through the log like
    /// everything else.
    pub fn start(
        world: &World,
        settings: &BinlogSettings,
        has_threads: bool,
        log: &Log,
        files: BinlogFiles,
        spill: &Arc<SpillDir>,
        recovered: &Recovered,
    ) -> Result<Binlog, RecoveryError> {
        let stream_options = StreamOptions {
            name: settings.name.clone(),
            file_bytes_max: settings.file_bytes_max,
            server_id: settings.server_id,
            server_version: settings.server_version.clone(),
            checksum: settings.checksum,
        };
        let now_s = (world.clock.wall_us() / 1_000_000) as u32;
        let mut out = StreamOut::default();
        let stream = Stream::open_new(
            stream_options,
            recovered.next_binlog_file,
            recovered.gtids.clone(),
            now_s,
            &mut out,
        );
        append_binlog_record(log, log.reserve(ROTATION_BYTES)?, &out);
        log.flush()?;
        let materialiser = match has_threads {
            true => Materialiser::start(files, spill.clone(), MaterialiserOptions::default()),
            false => Materialiser::stepped(files, spill.clone(), MaterialiserOptions::default()),
        };
        let mut batch = Batch::default();
        add_to_batch(&mut batch, &out);
        materialiser.submit(batch);
        let end = BinlogEnd { position: stream.position(), gtids: recovered.gtids.clone() };
        Ok(Binlog {
            stream: Mutex::new(stream),
            files: Arc::new(materialiser),
            rotation_room: Mutex::new(None),
            is_filling_room: AtomicBool::new(false),
            pending: Mutex::new(None),
            end: Mutex::new(end),
        })
    }

    /// Hands hardened bytes to whoever shows them: the files. The stream is at the end of these bytes.
    pub fn submit(&self, stream: &Stream, batch: Batch) {
        *self.end.lock() = BinlogEnd { position: stream.position(), gtids: stream.gtid_state().clone() };
        if !batch.chunks.is_empty() {
            self.files.submit(batch);
        }
    }
}

impl Coordinator {
    /// The binlog's state after the last hardened group: position, and newest GTIDs. None with the binlog
    /// off.
    pub fn binlog_status(&self) -> Option<(BinlogPos, GtidState)> {
        let end = self.env().binlog.as_ref()?.end.lock().clone();
        Some((end.position, end.gtids))
    }

    /// The writer of the binlog's files, with the newest bytes: what replicas are served from. None with the
    /// binlog off.
    pub fn binlog_files(&self) -> Option<Arc<Materialiser>> {
        Some(Arc::clone(&self.env().binlog.as_ref()?.files))
    }

    /// The binlog's files, after everything hardened so far has been written to them. None with the binlog
    /// off.
    pub fn with_binlog_files<R>(
        &self,
        work: impl FnOnce(&mut BinlogFiles) -> R,
    ) -> Option<Result<R, cohort_binlog::BinlogError>> {
        let binlog = self.env().binlog.as_ref()?;
        let position = binlog.end.lock().position;
        let caught_up = binlog.files.catch_up(position);
        if let Err(error) = &caught_up {
            self.judge(Meaning::of_binlog(error), error);
        }
        Some(caught_up.map(|()| binlog.files.with_files(work)))
    }

    /// FLUSH BINARY LOGS: ends the file, at once.
    pub fn rotate_binlog(&self) -> Result<(), CommitError> {
        self.append_to_stream(|stream, out, now_s| stream.rotate(out, now_s))
    }

    /// `max_binlog_size`: takes effect with the next group.
    pub fn set_binlog_file_bytes_max(&self, bytes: u64) {
        if let Some(binlog) = &self.env().binlog {
            binlog.stream.lock().set_file_bytes_max(bytes);
        }
    }

    /// `binlog_checksum`: ends the file; the next one has these checksums.
    pub fn set_binlog_checksum(&self, checksum: Checksum) -> Result<(), CommitError> {
        self.append_to_stream(|stream, out, now_s| stream.set_checksum(checksum, out, now_s))
    }

    /// How many read binlog files now: replicas' dump threads.
    pub fn binlog_readers(&self) -> usize {
        self.env().binlog.as_ref().map_or(0, |binlog| binlog.files.with_files(|files| files.pins().count()))
    }

    /// Appends bytes that belong to no transaction to the binlog, hardened, between two groups.
    pub(crate) fn append_to_stream(
        &self,
        write: impl FnOnce(&mut Stream, &mut StreamOut, u32),
    ) -> Result<(), CommitError> {
        let env = self.env();
        let Some(binlog) = &env.binlog else { return Ok(()) };
        let room = self.reserve(ROTATION_BYTES)?;
        let hardened = self.pipeline.hold(|_| {
            let mut stream = binlog.stream.lock();
            let mut out = StreamOut::default();
            write(&mut stream, &mut out, env.now_s());
            append_binlog_record(&env.log, room, &out);
            self.harden_now()?;
            // With the order stage still held, so that no later group overtakes these bytes on their way to
            // the files.
            let mut batch = Batch::default();
            add_to_batch(&mut batch, &out);
            binlog.submit(&stream, batch);
            Ok::<(), Stopped>(())
        });
        Ok(hardened.and_then(|done| done)?)
    }
}

/// Appends a BINLOG record.
pub fn append_binlog_record(log: &Log, room: Room, out: &StreamOut) {
    let mut head = Vec::new();
    StreamOut::encode_chunks(&out.chunks, &mut head);
    log.append(room, record::BINLOG, &[&head, &out.bytes]);
}

/// Adds a piece of the stream to what the materialiser gets; neighbours become one chunk.
pub fn add_to_batch(batch: &mut Batch, out: &StreamOut) {
    batch.bytes.extend_from_slice(&out.bytes);
    for chunk in &out.chunks {
        match batch.chunks.last_mut() {
            Some(Chunk { pos, len, content: Content::Inline })
                if chunk.content == Content::Inline
                    && pos.file == chunk.pos.file
                    && pos.offset + *len == chunk.pos.offset =>
            {
                *len += chunk.len;
            }
            _ => batch.chunks.push(chunk.clone()),
        }
    }
}
