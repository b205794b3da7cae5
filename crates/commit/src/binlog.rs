//! The binlog in the commit path: the stream that assigns positions, the files that store it, and the
//! operations on both that belong to no transaction.
//!
//! With one log, a background thread writes the files after the log. In the separate layout the files decide:
//! the leader writes and syncs them itself (`separate.rs`), and bytes that belong to no transaction are
//! written in the same way.

use std::sync::Arc;

use cohort_base::{BinlogPos, DomainId};
use cohort_binlog::event::Checksum;
use cohort_binlog::{
    Batch, BinlogError, BinlogFileWriter, BinlogFileWriterOptions, BinlogFiles, Chunk, Content,
    DomainDeletion, GtidState, SpillDir, Stream, StreamOptions, StreamOut, check_deletion,
};
use cohort_log::{Log, LogReservation};
use cohort_vfs::World;
use parking_lot::Mutex;

use crate::coordinator::Coordinator;
use crate::error::{CommitError, HardenError};
use crate::fault::Severity;
use crate::logs::Logs;
use crate::options::BinlogSettings;
use crate::purge::PurgeError;
use crate::record;
use crate::recovery::{Recovered, RecoveryError};
use crate::rotation_reserve::RotationReserve;
use crate::seam::Stopped;
use crate::separate::write_binlog;

/// Reason for refusing writes while the files wait for disk space.
pub const NO_SPACE_FOR_BINLOG: &str = "no space for the binary log's files";

/// The binlog of a server; absent with `skip-log-bin`.
pub struct Binlog {
    pub stream: Mutex<Stream>,
    pub files: Arc<BinlogFileWriter>,
    pub rotation_reserve: RotationReserve,
    /// End of the stream after the last durable group.
    pub end: Mutex<BinlogEnd>,
    /// The files decide: bytes are synced in them before they are submitted.
    is_deciding: bool,
}

/// Position and GTIDs for SHOW MASTER STATUS.
#[derive(Clone, Debug, Default)]
pub struct BinlogEnd {
    pub position: BinlogPos,
    pub gtids: GtidState,
}

impl Binlog {
    /// Starts a new binlog file, as every start of a MariaDB server does. Its header goes through the log
    /// like all other binlog bytes.
    pub fn start(
        world: &World,
        settings: &BinlogSettings,
        has_threads: bool,
        logs: &Logs,
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
        let needed_bytes = Stream::file_change_bytes_max(&settings.name, &recovered.gtids);
        let mut out = StreamOut::default();
        let (first, gtids) = (recovered.next_binlog_file, recovered.gtids.clone());
        let stream = match logs.separate() {
            None => Stream::open_new(stream_options, first, gtids, now_s, &mut out),
            Some(_) => {
                let synced = recovered.binlog_synced.file;
                let needed_from = if synced == 0 { first } else { synced };
                Stream::open_deciding(stream_options, first, gtids, needed_from, now_s, &mut out)
            }
        };
        let is_lazy = has_threads && logs.separate().is_none();
        let file_writer = match is_lazy {
            true => BinlogFileWriter::start(files, spill.clone(), BinlogFileWriterOptions::default()),
            false => BinlogFileWriter::stepped(files, spill.clone(), BinlogFileWriterOptions::default()),
        };
        let binlog = Binlog {
            stream: Mutex::new(stream),
            files: Arc::new(file_writer),
            rotation_reserve: RotationReserve::new(needed_bytes),
            end: Mutex::new(BinlogEnd { gtids: recovered.gtids.clone(), ..BinlogEnd::default() }),
            is_deciding: logs.separate().is_some(),
        };
        let mut batch = Batch::default();
        add_to_batch(&mut batch, &out);
        match logs.separate() {
            None => {
                append_binlog_record(logs.main(), logs.main().reserve(needed_bytes)?, &out);
                logs.main().flush()?;
            }
            Some(_) => binlog.files.write_synced(&batch)?,
        }
        let end = binlog.stream.lock().position();
        binlog.submit(end, batch, |_| ());
        Ok(binlog)
    }

    /// Makes bytes that belong to no transaction durable; the order stage is held. `room` is the reservation
    /// in the one log, if there is one log.
    pub fn harden(
        &self,
        logs: &Logs,
        room: Option<LogReservation>,
        out: &StreamOut,
    ) -> Result<Batch, HardenError> {
        let mut batch = Batch::default();
        add_to_batch(&mut batch, out);
        match logs {
            Logs::Shared(log) => {
                append_binlog_record(log, room.expect("reserved in the one log"), out);
                log.flush().map_err(HardenError::Log)?;
            }
            Logs::Separate(logs) => write_binlog(logs, self, &batch).map_err(HardenError::binlog)?,
        }
        Ok(batch)
    }

    /// Submits durable bytes to the files, which make them readable. `position` is the end of the bytes;
    /// `note` updates the GTIDs to that position.
    pub fn submit(&self, position: BinlogPos, batch: Batch, note: impl FnOnce(&mut GtidState)) {
        {
            let mut end = self.end.lock();
            end.position = position;
            note(&mut end.gtids);
        }
        self.hand_over(batch);
    }

    /// Submits durable bytes whose end is already recorded.
    pub fn hand_over(&self, batch: Batch) {
        match batch.chunks.is_empty() {
            true => {}
            false if self.is_deciding => self.files.show(batch),
            false => self.files.submit(batch),
        }
    }
}

impl Coordinator {
    /// Returns the binlog's position and newest GTIDs after the last durable group. Returns `None` with the
    /// binlog off.
    pub fn binlog_status(&self) -> Option<(BinlogPos, GtidState)> {
        let end = self.env().binlog.as_ref()?.end.lock().clone();
        Some((end.position, end.gtids))
    }

    /// Returns the writer of the binlog's files, which also has the newest bytes: replicas are served from
    /// it. Returns `None` with the binlog off.
    pub fn binlog_files(&self) -> Option<Arc<BinlogFileWriter>> {
        Some(Arc::clone(&self.env().binlog.as_ref()?.files))
    }

    /// Runs `work` on the binlog's files, after everything durable so far has been written to them.
    /// Returns `None` with the binlog off.
    pub fn with_binlog_files<R>(
        &self,
        work: impl FnOnce(&mut BinlogFiles) -> R,
    ) -> Option<Result<R, BinlogError>> {
        let binlog = self.env().binlog.as_ref()?;
        Some(self.catch_up(binlog).map(|()| binlog.files.with_files(work)))
    }

    /// Runs `work` like [`Coordinator::with_binlog_files`], but without the bytes for which there is no
    /// space.
    pub fn with_files_that_fit<R>(
        &self,
        work: impl FnOnce(&mut BinlogFiles) -> R,
    ) -> Option<Result<R, BinlogError>> {
        let binlog = self.env().binlog.as_ref()?;
        let caught_up = match self.catch_up(binlog) {
            Err(BinlogError::NoSpace { .. }) => Ok(()),
            other => other,
        };
        Some(caught_up.map(|()| binlog.files.with_files(work)))
    }

    /// Writes everything durable so far to the files, as far as there is space, before they are copied. Does
    /// nothing with the binlog off.
    pub fn complete_binlog_files(&self) {
        if let Some(binlog) = &self.env().binlog {
            // The error is visible in the writer's status.
            let _ = self.catch_up(binlog);
        }
    }

    fn catch_up(&self, binlog: &Binlog) -> Result<(), BinlogError> {
        // Where the files decide, they hold everything durable.
        if binlog.is_deciding {
            return Ok(());
        }
        let (position, restarts) = {
            let end = binlog.end.lock();
            (end.position, binlog.files.restarts())
        };
        let caught_up = binlog.files.catch_up(position, restarts);
        if let Err(error) = &caught_up {
            self.judge(Severity::of_binlog(error), error);
        }
        caught_up
    }

    /// Runs `work` on the binlog's files in their present state. Further bytes may be about to be written, or
    /// wait for space.
    pub fn with_written_files<R>(&self, work: impl FnOnce(&mut BinlogFiles) -> R) -> Option<R> {
        Some(self.env().binlog.as_ref()?.files.with_files(work))
    }

    /// Returns the name of the binlog file with this number. Returns `None` with the binlog off.
    pub fn binlog_file_name(&self, number: u32) -> Option<String> {
        Some(self.options.binlog.as_ref()?.name.file(number))
    }

    /// Ends the current file immediately, for FLUSH BINARY LOGS.
    pub fn rotate_binlog(&self) -> Result<(), CommitError> {
        self.change_stream(|stream, out, now_s| stream.rotate(out, now_s))
    }

    /// Forgets the GTID domains that occur in no file, and ends the current file, for FLUSH BINARY LOGS
    /// DELETE_DOMAIN_ID. Changes nothing if none of `wanted` is such a domain, or if one of them is still
    /// needed. An empty `wanted` only ends the file. Returns `None` with the binlog off.
    pub fn delete_gtid_domains(&self, wanted: &[DomainId]) -> Result<Option<DomainDeletion>, PurgeError> {
        let first = |files: &mut BinlogFiles| {
            files.numbers().first().map_or(Ok(GtidState::default()), |&first| files.state_at_start(first))
        };
        let Some(oldest) = self.with_binlog_files(first) else { return Ok(None) };
        let oldest = oldest??;
        let mut deletion = DomainDeletion::default();
        self.change_stream(|stream, out, now_s| {
            deletion = check_deletion(stream.gtid_state(), &oldest, wanted);
            if wanted.is_empty() || !deletion.domains.is_empty() {
                stream.forget_domains(&deletion.domains);
                let mut gtids = self.env().gtids.lock();
                deletion.domains.iter().for_each(|&domain| gtids.remove(domain));
                stream.rotate(out, now_s);
            }
        })
        .map_err(PurgeError::Commit)?;
        Ok(Some(deletion))
    }

    /// Sets `max_binlog_size`, from the next group on.
    pub fn set_binlog_file_bytes_max(&self, bytes: u64) {
        if let Some(binlog) = &self.env().binlog {
            binlog.stream.lock().set_file_bytes_max(bytes);
        }
    }

    /// Sets `binlog_checksum`: ends the current file; the next one has these checksums.
    pub fn set_binlog_checksum(&self, checksum: Checksum) -> Result<(), CommitError> {
        self.change_stream(|stream, out, now_s| stream.set_checksum(checksum, out, now_s))
    }

    /// Returns the number of readers of binlog files: the dump threads of replicas.
    pub fn binlog_readers(&self) -> usize {
        self.env().binlog.as_ref().map_or(0, |binlog| binlog.files.pins().count())
    }

    /// Changes the stream between two groups. The appended bytes (at most a file change) belong to no
    /// transaction and are made durable immediately.
    pub(crate) fn change_stream(
        &self,
        mut change: impl FnMut(&mut Stream, &mut StreamOut, u32),
    ) -> Result<(), CommitError> {
        let Some(binlog) = &self.env().binlog else { return Ok(()) };
        // Repeated only if the reservation is too small, because domains were added meanwhile.
        while !self.try_change_stream(binlog, &mut change)? {}
        Ok(())
    }

    fn try_change_stream(
        &self,
        binlog: &Binlog,
        change: &mut impl FnMut(&mut Stream, &mut StreamOut, u32),
    ) -> Result<bool, CommitError> {
        let env = self.env();
        let room = self.stream_room(binlog)?;
        // The leader that decides waits for disk space, and a file change would wait for that leader.
        if env.logs.separate().is_some() && binlog.files.is_without_space() {
            return Err(CommitError::DiskFull(NO_SPACE_FOR_BINLOG.to_owned()));
        }
        let hardened = self.pipeline.hold(|_| {
            let mut stream = binlog.stream.lock();
            let needed_bytes = stream.rotation_bytes_max();
            binlog.rotation_reserve.note_need(needed_bytes);
            if room.as_ref().is_some_and(|room| !room.fits(needed_bytes)) {
                return Ok(false);
            }
            let mut out = StreamOut::default();
            change(&mut stream, &mut out, env.now_s());
            if out.chunks.is_empty() {
                return Ok(true);
            }
            binlog.rotation_reserve.note_need(stream.rotation_bytes_max());
            // The order stage is still held, so that no later group overtakes these bytes on their way to the
            // files.
            let batch = self.harden_stream(binlog, room, &out)?;
            binlog.submit(stream.position(), batch, |gtids| gtids.clone_from(stream.gtid_state()));
            Ok::<bool, Stopped>(true)
        });
        Ok(hardened.and_then(|done| done)?)
    }
}

impl Coordinator {
    /// Reserves space in the one log for a file change. Returns `None` if the files decide.
    pub(crate) fn stream_room(&self, binlog: &Binlog) -> Result<Option<LogReservation>, CommitError> {
        self.stream_room_of(binlog, 0)
    }

    /// Reserves like [`Coordinator::stream_room`], but at least this many bytes.
    pub(crate) fn stream_room_of(
        &self,
        binlog: &Binlog,
        bytes: u64,
    ) -> Result<Option<LogReservation>, CommitError> {
        match self.env().logs.separate() {
            None => Ok(Some(self.reserve(binlog.rotation_reserve.wanted_bytes().max(bytes))?)),
            Some(_) => Ok(None),
        }
    }

    /// Makes bytes durable by [`Binlog::harden`]. A failure ends the server as that of a group does.
    pub(crate) fn harden_stream(
        &self,
        binlog: &Binlog,
        room: Option<LogReservation>,
        out: &StreamOut,
    ) -> Result<Batch, Stopped> {
        binlog.harden(&self.env().logs, room, out).map_err(|error| {
            self.fail(&error);
            Stopped
        })
    }
}

/// Appends a BINLOG record.
pub fn append_binlog_record(log: &Log, room: LogReservation, out: &StreamOut) {
    let mut head = Vec::new();
    StreamOut::encode_chunks(&out.chunks, &mut head);
    log.append(room, record::BINLOG, &[&head, &out.bytes]);
}

/// Appends a piece of the stream to the batch for the binlog writer; adjacent inline chunks become one.
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
