//! Backups of the running server: a full, consistent copy of the data directory, without a lock.
//!
//! # Outline
//! ```text
//! run a checkpoint; before the next one may begin:
//!     pin the logs from it on, the spill files that they name, the binlog's file of its position
//!     every participant pins the files of its checkpoint
//! copy the pinned files; after every few MiB, copy what was appended to the logs meanwhile
//! hold the order stage, with everything ordered durable and published, while no checkpoint runs:
//!     the cut := the ends of the logs and of the binlog
//!     every participant notes the cut
//! still without a checkpoint: what else does each participant have that the logs do not replace?
//! copy that; the logs up to the cut; the binlog's files up to the cut
//! write the control files of the logs, then the manifest
//! ```
//! Everything goes through a [`BackupSink`]: a directory (`directory.rs`), or a stream to a client.
//!
//! # Why the copy is consistent
//! It is a state that a crash at the cut could have left, if no checkpoint had completed after the pinned
//! one: the files of that checkpoint, the bulk loads since then, the log from there to its end, the binlog's
//! files up to the same end. So a start from it is the recovery of `recovery.rs`, and needs no code of its
//! own. Three differences to a crash:
//! - A participant may have younger files, of a later checkpoint or bulk load, but of none after the cut.
//!   Recovery skips the redo below its LSN (row `Skip`), or replays it with the same result, because redo is
//!   absolute. See `cohort_engine::PinnedFiles`.
//! - The control files say that the logs were closed at the cut. So recovery reads exactly up to there: a log
//!   that was damaged or shortened later is refused, and nothing is cut (`init_rpl_role`), because the cut
//!   has passed the publish gate.
//! - The base name of the binlog in the control file has no directory: the copy contains the files.
//!
//! # Incremental backups
//! With [`BackupRequest::parent`] the copy lacks what the parent has: files of participants are partial
//! (`cohort_engine::PinnedFiles::partial`), and RocksDB's SST files, which never change, are left out if the
//! parent has them. Everything else is copied as a whole. The manifest says which bytes of a file it has: the
//! others are those of the parent's file. `parents.rs` says which backups can be parents. A restore writes
//! the full backup and then each incremental one over it, in order.
//!
//! # States of a backup, and what a reader sees
//! ```text
//! begun --pinned--> copying --cut--> finishing --manifest written--> complete
//!   |                 |                 |
//!   +-----------------+-----------------+--> failed: the sink discards what it has; without a manifest it
//!                                            is no backup, and no server starts in it
//! ```
//!
//! # Invariants
//! - No byte of the copy is of a transaction after the cut, except in files of bulk loads that no catalog of
//!   the copy names. No checkpoint runs between the cut and the last [`PinnedFiles::rest`].
//! - No byte of a file is written twice, so a client may store a stream in any way.
//! - From the pin to the end of the copy, nothing that the copy needs is removed or written over: log
//!   segments and extents ask their pins, spill files ask [`Checkpointer::spill_kept`], binlog files have
//!   pins for readers.
//!
//! # Lock order
//! [`Checkpointer::one_at_a_time`] > the order stage > the locks of participants and logs. The copying itself
//! holds none of them.
//!
//! # Bounds
//! Memory: one piece of [`PIECE_BYTES`], the small files of participants, one bit for each block of the data
//! file. Disk: the log is pinned only from the position of the copy on; pinned extents are at most what the
//! checkpoint had. The backup ends with [`BackupError::Space`] while there is still twice the space below
//! which writes are refused.
//!
//! # On failure
//! An error of the source or of the sink, KILL and a stop of the server end the backup, and the pins with it.
//! A failed checkpoint is treated as any other (`fault.rs`). Nothing of a backup is on the server's disk:
//! after a crash there are no pins.
//!
//! # What is missing
//! Checksums of pages are not verified while they are copied. The copy goes through the page cache. Several
//! backups do not run at the same time.

mod directory;
pub(crate) mod error;
mod parents;
mod sink;
pub(crate) mod stats;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use std::collections::BTreeMap;

use cohort_backup_format::{
    BinlogPosition, FORMAT_FULL, FORMAT_INCREMENTAL, FileEntry, FileSum, Manifest, Parent, RangeEntry,
    SourcePosition,
};
use cohort_base::{BinlogPos, CommitSeq, Lsn};
use cohort_engine::{EngineError, PinnedBytes, PinnedFile, PinnedFiles};
use cohort_log::{LogCopy, LogFile, LogPin, Record};
use cohort_vfs::{OpenMode, SharedFs};

use crate::checkpoint::needed_bytes;
use crate::checkpoint_state::SpillPin;
use crate::coordinator::Coordinator;
use crate::error::CheckpointError;
use crate::logs::{LogLayout, engine_dir, main_dir};
use crate::record::{self, Checkpoint, RedoRef};
use crate::utc::time_text;
use parents::{Marks, Parents};

pub use parents::KnownBackup;

pub use directory::DirectorySink;
pub use error::BackupError;
pub use sink::BackupSink;
pub use stats::BackupStats;

/// Maximum bytes that a sink receives at a time.
pub const PIECE_BYTES: usize = 1 << 20;
/// Bytes of files, and time, between two looks at the logs: a slow copy pins what the logs grow meanwhile.
const FOLLOW_EVERY: u64 = 8 << 20;
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a log that are copied at a time.
const FOLLOW_BYTES: u64 = 32 << 20;
/// Maximum length of one pause for the rate limit, between two looks at KILL.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// Number of attempts to get a moment at which no group waits for replicas.
const GATE_ATTEMPTS: u32 = 600;
/// Pause between two of these attempts.
const GATE_PAUSE: Duration = Duration::from_millis(50);
const MANIFEST_ID_BYTES: usize = 16;
/// End of the names of files that never change. RocksDB uses the number of such a file once.
const IMMUTABLE: &str = ".sst";

/// Properties of the server that the coordinator does not know.
#[derive(Clone, Debug, Default)]
pub struct ServerIdentity {
    pub version: String,
    pub uuid: String,
    pub id: u32,
}

/// Positions of a replica at the cut.
#[derive(Clone, Debug, Default)]
pub struct ReplicaPositions {
    /// `@@gtid_current_pos`
    pub gtid_current_pos: String,
    pub sources: Vec<SourcePosition>,
}

/// A request for a backup.
pub struct BackupRequest<'r> {
    /// Destination, for the error log.
    pub label: &'r str,
    pub server: ServerIdentity,
    /// Small files that the coordinator does not know, by path.
    pub files: Vec<(String, Vec<u8>)>,
    /// Returns the maximum bytes a second; 0 is no limit.
    pub bytes_per_s: &'r dyn Fn() -> u64,
    /// Returns the replica's positions. Called while the order stage is held; `gtid` is the server's own
    /// position.
    pub positions: &'r dyn Fn(&str) -> ReplicaPositions,
    pub control: &'r BackupControl,
    /// The backup that this one continues; without it the backup is full.
    pub parent: Option<ParentBackup>,
}

/// The backup before an incremental one.
#[derive(Clone, Debug, Default)]
pub struct ParentBackup {
    /// `id` of its manifest.
    pub id: String,
    /// `cut_lsn` of its manifest, if it is known.
    pub cut_lsn: u64,
    /// Its files with their lengths, as far as they are known.
    pub files: BTreeMap<String, u64>,
}

/// Progress of a backup, and its end by another thread.
#[derive(Debug, Default)]
pub struct BackupControl {
    pub is_interrupted: AtomicBool,
    /// Bytes copied so far.
    pub copied: AtomicU64,
    /// Expected number of bytes; 0 while it is not known.
    pub expected: AtomicU64,
}

impl BackupControl {
    /// Returns the progress in thousandths.
    pub fn thousandths(&self) -> u64 {
        let expected = self.expected.load(Ordering::Relaxed).max(1);
        (1000 * self.copied.load(Ordering::Relaxed) / expected).min(999)
    }
}

/// The sink with what all its users need: checksums, progress, rate limit, KILL.
struct Writer<'w> {
    sink: &'w mut dyn BackupSink,
    sums: BTreeMap<String, FileSum>,
    /// Files of which the copy has a part, with their lengths.
    partial: BTreeMap<String, u64>,
    request: &'w BackupRequest<'w>,
    coordinator: &'w Coordinator,
    began: Instant,
    /// Bytes written since `began`.
    paced: u64,
    /// The rate limit applies. It does not to the logs: a limit below the rate at which they grow would never
    /// let the copy reach their end.
    is_limited: bool,
    since_follow: u64,
    followed: Instant,
}

impl Writer<'_> {
    fn write(&mut self, path: &str, offset: u64, bytes: &[u8]) -> Result<(), BackupError> {
        if !self.sums.contains_key(path) {
            self.sums.insert(path.to_owned(), FileSum::default());
            if bytes.is_empty() {
                self.put(|sink| sink.write(path, 0, &[]))?;
            }
        }
        for (n, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            self.check()?;
            let offset = offset + (n * PIECE_BYTES) as u64;
            let sum = self.sums.get_mut(path).expect("inserted above");
            sum.add(offset, piece).unwrap_or_else(|_| panic!("a byte of {path} at {offset} is copied twice"));
            self.put(|sink| sink.write(path, offset, piece))?;
            self.request.control.copied.fetch_add(piece.len() as u64, Ordering::Relaxed);
            self.since_follow += piece.len() as u64;
            self.pace(piece.len() as u64)?;
        }
        Ok(())
    }

    /// Calls the sink until it has room. A client that reads nothing must not pin the log for ever.
    fn put(&mut self, write: impl Fn(&mut dyn BackupSink) -> io::Result<()>) -> Result<(), BackupError> {
        loop {
            match write(&mut *self.sink) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.check()?;
                    self.check_space()?;
                }
                outcome => return outcome.map_err(BackupError::Sink),
            }
        }
    }

    /// Returns an error if the backup has to end.
    fn check(&self) -> Result<(), BackupError> {
        let is_over = self.request.control.is_interrupted.load(Ordering::Relaxed);
        if is_over || self.coordinator.is_closing() {
            return Err(BackupError::Interrupted);
        }
        Ok(())
    }

    /// Returns an error if there is not enough space for the pins.
    fn check_space(&self) -> Result<(), BackupError> {
        let (options, env) = (&self.coordinator.options, self.coordinator.env());
        let needed = 2 * needed_bytes(self.coordinator);
        match env.world.fs.free_bytes(&options.datadir) {
            Ok(free) if free < needed => {
                let dir = options.datadir.display();
                Err(BackupError::Space(format!("{dir} has {} MiB free", free >> 20)))
            }
            _ => Ok(()),
        }
    }

    /// Waits as the rate limit demands.
    fn pace(&mut self, bytes: u64) -> Result<(), BackupError> {
        if !self.is_limited {
            return Ok(());
        }
        self.paced += bytes;
        loop {
            let rate = (self.request.bytes_per_s)();
            if rate == 0 {
                (self.began, self.paced) = (Instant::now(), 0);
                return Ok(());
            }
            let due = Duration::from_secs_f64(self.paced as f64 / rate as f64);
            let early = due.saturating_sub(self.began.elapsed());
            if early.is_zero() {
                // A pause of the sink is not made up for.
                (self.began, self.paced) = (Instant::now(), 0);
                return Ok(());
            }
            self.check()?;
            self.check_space()?;
            std::thread::sleep(early.min(PAUSE_MAX));
        }
    }

    /// Copies a whole file of the server, up to a length if there is one.
    fn copy_file(
        &mut self,
        fs: &SharedFs,
        from: &Path,
        to: &str,
        len: Option<u64>,
    ) -> Result<(), BackupError> {
        let failed = |error| BackupError::Source(from.to_path_buf(), error);
        let file = fs.open(from, OpenMode::Read).map_err(failed)?;
        let len = match len {
            Some(len) => len,
            None => file.len().map_err(failed)?,
        };
        self.write(to, 0, &[])?;
        let mut buf = vec![0; PIECE_BYTES.min(len as usize)];
        for offset in (0..len).step_by(PIECE_BYTES) {
            let piece = &mut buf[..PIECE_BYTES.min((len - offset) as usize)];
            if file.read_at(piece, offset).map_err(failed)? < piece.len() {
                let short = io::Error::new(io::ErrorKind::UnexpectedEof, format!("it has no {len} bytes"));
                return Err(failed(short));
            }
            self.write(to, offset, piece)?;
        }
        Ok(())
    }
}

/// A pinned log and its place in the copy.
struct PinnedLog {
    /// Directory of the log in the copy.
    dir: String,
    pin: LogPin,
    /// Where the copy ends; the largest LSN before the cut.
    cut: Lsn,
}

/// Copies the records of one log.
struct LogWriter<'l, 'w> {
    writer: &'l mut Writer<'w>,
    dir: &'l str,
    fs: &'l SharedFs,
    spill_dir: &'l Path,
    /// CommitSeq of the last record.
    last: CommitSeq,
}

impl<'l, 'w> LogWriter<'l, 'w> {
    fn new(
        writer: &'l mut Writer<'w>,
        fs: &'l SharedFs,
        spill_dir: &'l Path,
        dir: &'l str,
    ) -> LogWriter<'l, 'w> {
        LogWriter { writer, dir, fs, spill_dir, last: CommitSeq(0) }
    }

    /// Copies the files of spilled redo that a record names. Spilled events are in the binlog's files.
    fn spilled(&mut self, redo: &[(cohort_base::ParticipantId, RedoRef<'_>)]) -> Result<(), BackupError> {
        for (_, redo) in redo {
            if let RedoRef::Spilled(file) = redo {
                let (from, to) = (self.spill_dir.join(&file.name), format!("spill/{}", file.name));
                self.writer.copy_file(self.fs, &from, &to, Some(file.bytes))?;
            }
        }
        Ok(())
    }
}

impl LogCopy<BackupError> for LogWriter<'_, '_> {
    fn record(&mut self, record: &Record<'_>) -> Result<(), BackupError> {
        let unreadable = |_| {
            let what = format!("the log record at LSN {} does not decode", record.lsn);
            BackupError::Engine(EngineError::Corrupt(what))
        };
        match record.kind {
            record::COMMIT => {
                let commit = record::decode_commit(record.payload).map_err(unreadable)?;
                // With separate logs it is a copy, and PREPARE records name the files, too.
                if self.writer.coordinator.env().logs.layout() == LogLayout::Shared {
                    self.spilled(&commit.redo)?;
                }
                self.last = commit.seq;
            }
            record::PREPARE => {
                let (head, redo) = record::decode_prepare(record.payload).map_err(unreadable)?;
                self.spilled(&redo)?;
                self.last = head.seq;
            }
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, file: &LogFile<'_>) -> Result<(), BackupError> {
        let path = format!("{}/{}", self.dir, file.name.display());
        self.writer.write(&path, file.offset, file.bytes)
    }
}

/// Everything that is pinned at the checkpoint.
struct Pinned {
    checkpoint: Checkpoint,
    logs: Vec<PinnedLog>,
    spill: SpillPin,
    binlog: Option<cohort_binlog::Pin>,
    participants: Vec<Box<dyn PinnedFiles>>,
}

/// The end of the copy.
struct Cut {
    binlog_end: BinlogPos,
    gtid_binlog_pos: String,
    replica: ReplicaPositions,
    at_us: u64,
}

impl Coordinator {
    /// Returns the counters of backups.
    pub fn backups(&self) -> &BackupStats {
        &self.checkpointer.backups
    }

    /// Takes a full backup. Returns its manifest when the sink has stored all of it.
    pub fn back_up(
        &self,
        request: &BackupRequest<'_>,
        sink: &mut dyn BackupSink,
    ) -> Result<Manifest, BackupError> {
        let stats = &self.checkpointer.backups;
        let Some(_running) = stats.running.try_lock() else { return Err(BackupError::Running) };
        log::info!("Backup to {} begins", request.label);
        let done = self.back_up_alone(request, sink);
        match &done {
            Ok(manifest) => log::info!(
                "Backup to {} completed: {} MiB, state of {}, GTID position '{}'",
                request.label,
                manifest.bytes() >> 20,
                manifest.cut,
                manifest.gtid_binlog_pos
            ),
            Err(error) => log::error!("Backup to {} failed: {error}", request.label),
        }
        stats.expected.store(0, Ordering::Relaxed);
        let count = if done.is_ok() { &stats.completed } else { &stats.failed };
        count.fetch_add(1, Ordering::Relaxed);
        done
    }

    fn back_up_alone(
        &self,
        request: &BackupRequest<'_>,
        sink: &mut dyn BackupSink,
    ) -> Result<Manifest, BackupError> {
        let begun_us = self.env().world.clock.wall_us();
        let mut writer = Writer {
            sink,
            sums: BTreeMap::new(),
            partial: BTreeMap::new(),
            request,
            coordinator: self,
            began: Instant::now(),
            paced: 0,
            is_limited: true,
            since_follow: 0,
            followed: Instant::now(),
        };
        writer.check_space()?;
        let timeline = self.env().logs.main().timelines().last().map_or(1, |timeline| timeline.number);
        let parents = Parents::new(&self.env().world.fs, &self.options.datadir);
        let since = match &request.parent {
            None => Marks::new(),
            Some(parent) => parents
                .marks(&parent.id, timeline)
                .map_err(|error| BackupError::Source(self.options.datadir.clone(), error))?
                .ok_or_else(|| BackupError::Parent(parent.id.clone()))?,
        };
        let mut pinned = self.pin_checkpoint(&writer, &since)?;
        let ids = self.env().participants.iter().map(|participant| participant.id());
        let marks: Marks =
            ids.zip(&pinned.participants).filter_map(|(id, pin)| Some((id, pin.mark()?))).collect();
        let files: Vec<PinnedFile> = pinned.participants.iter_mut().flat_map(|pin| pin.files()).collect();
        let expected: u64 = files.iter().map(|file| file.bytes.total()).sum();
        let expected = expected + expected / 50 + (1 << 20);
        request.control.expected.store(expected, Ordering::Relaxed);
        self.checkpointer.backups.expected.store(expected, Ordering::Relaxed);
        files.into_iter().try_for_each(|file| self.copy_pinned(&mut writer, &mut pinned, file))?;
        self.follow(&mut writer, &mut pinned, false)?;
        let (cut, rest) = self.cut(&writer, &mut pinned)?;
        rest.into_iter().try_for_each(|file| self.copy_pinned(&mut writer, &mut pinned, file))?;
        for (path, bytes) in pinned.participants.iter().filter_map(|pin| pin.partial()) {
            writer.partial.insert(relative(&self.options.datadir, &path), bytes);
        }
        self.follow(&mut writer, &mut pinned, true)?;
        self.copy_binlog(&mut writer, &pinned, &cut)?;
        for (path, bytes) in &request.files {
            writer.write(path, 0, bytes)?;
        }
        self.finish_logs(&mut writer, &pinned)?;
        let cut_us = cut.at_us;
        let manifest = self.manifest(&writer, &pinned, cut, begun_us);
        drop(pinned);
        writer.put(|sink| sink.finish(&manifest))?;
        let stats = &self.checkpointer.backups;
        stats.newest_us.store(cut_us, Ordering::Relaxed);
        let known = KnownBackup { id: manifest.id.clone(), timeline, cut_us, is_proven: false, marks };
        let _list = stats.list.lock();
        if let Err(error) = parents.add(known) {
            log::error!("No incremental backup can continue this one: its marks cannot be written: {error}");
        }
        Ok(manifest)
    }

    /// Returns the backups that this data directory has taken, as far as it knows them, the oldest first.
    pub fn known_backups(&self) -> io::Result<Vec<KnownBackup>> {
        Parents::new(&self.env().world.fs, &self.options.datadir).all()
    }

    /// Notes that a backup was restored, and that a server has checked its tables. Returns whether this data
    /// directory has taken it.
    pub fn prove_backup(&self, id: &str) -> io::Result<bool> {
        let stats = &self.checkpointer.backups;
        let _list = stats.list.lock();
        let proven = Parents::new(&self.env().world.fs, &self.options.datadir).prove(id)?;
        if let Some(proven) = &proven {
            stats.proven_us.fetch_max(proven.cut_us, Ordering::Relaxed);
        }
        Ok(proven.is_some())
    }

    /// Determines the ages of the newest backups, at the start.
    pub(crate) fn count_backups(&self) {
        let stats = &self.checkpointer.backups;
        match self.known_backups() {
            Ok(all) => {
                let newest = |of: &dyn Fn(&&KnownBackup) -> bool| {
                    all.iter().filter(of).map(|known| known.cut_us).max().unwrap_or(0)
                };
                stats.newest_us.store(newest(&|_| true), Ordering::Relaxed);
                stats.proven_us.store(newest(&|known| known.is_proven), Ordering::Relaxed);
            }
            Err(error) => log::warn!("The list of this server's backups cannot be read: {error}"),
        }
    }

    /// Runs a checkpoint and pins everything that the copy needs of it.
    fn pin_checkpoint(&self, writer: &Writer<'_>, since: &Marks) -> Result<Pinned, BackupError> {
        let env = self.env();
        let datadir = &self.options.datadir;
        wait_for_gate(writer, || {
            self.checkpointer.checkpoint_and(self, |checkpoint| {
                let participants: Result<_, _> =
                    env.participants.iter().map(|it| it.pin(since.get(&it.id()).copied())).collect();
                let participants = participants.map_err(BackupError::Engine)?;
                let of = |dir: PathBuf, log: &cohort_log::Log| PinnedLog {
                    dir: relative(datadir, &dir),
                    pin: log.pin(),
                    cut: Lsn(u64::MAX),
                };
                let mut logs = vec![of(main_dir(datadir), env.logs.main())];
                let named = checkpoint.separate.iter().flat_map(|separate| &separate.from);
                logs.extend(named.map(|(id, _)| of(engine_dir(datadir, *id), env.logs.log_of(*id))));
                let file = checkpoint.binlog_synced.file;
                let binlog = env.binlog.as_ref().and_then(|it| it.files.pins().pin(file, "a backup"));
                let spill = self.checkpointer.keep_spilled_after(checkpoint.last_seq);
                Ok(Pinned { checkpoint: checkpoint.clone(), logs, spill, binlog, participants })
            })
        })
    }

    fn copy_pinned(
        &self,
        writer: &mut Writer<'_>,
        pinned: &mut Pinned,
        file: PinnedFile,
    ) -> Result<(), BackupError> {
        let path = relative(&self.options.datadir, &file.path);
        let parent = writer.request.parent.as_ref().and_then(|parent| parent.files.get(&path));
        if path.ends_with(IMMUTABLE) && parent == Some(&file.bytes.total()) {
            writer.partial.insert(path.clone(), file.bytes.total());
            return writer.write(&path, 0, &[]);
        }
        match file.bytes {
            PinnedBytes::Memory { offset, bytes } => writer.write(&path, offset, &bytes),
            PinnedBytes::Ranges { read, ranges, .. } => {
                writer.write(&path, 0, &[])?;
                let mut buf = vec![0; PIECE_BYTES];
                for range in ranges {
                    let mut at = range.start;
                    while at < range.end {
                        let piece = &mut buf[..PIECE_BYTES.min((range.end - at) as usize)];
                        let got = read(piece, at).map_err(|e| BackupError::Source(file.path.clone(), e))?;
                        writer.write(&path, at, &piece[..got])?;
                        if got < piece.len() {
                            break;
                        }
                        at += got as u64;
                        if writer.since_follow >= FOLLOW_EVERY || writer.followed.elapsed() >= FOLLOW_INTERVAL
                        {
                            self.follow(writer, pinned, false)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// Copies what was appended to the logs before the call, up to the cut if it is known. At the end it has
    /// to come there.
    fn follow(&self, writer: &mut Writer<'_>, pinned: &mut Pinned, is_end: bool) -> Result<(), BackupError> {
        writer.is_limited = false;
        let (env, spill_dir) = (self.env(), self.options.datadir.join("spill"));
        // With several logs, the one that is least far says which spill files are still needed.
        let mut last: Option<CommitSeq> = None;
        for log in &mut pinned.logs {
            let mut to = LogWriter::new(&mut *writer, &env.world.fs, &spill_dir, &log.dir);
            let until = log.cut.min(log.pin.durable_end());
            while !log.pin.copy(until, FOLLOW_BYTES, &mut to)? {
                to.writer.check_space()?;
            }
            last = Some(last.map_or(to.last, |last| last.min(to.last)));
            if is_end && log.pin.position() != log.cut {
                let (dir, at, cut) = (&log.dir, log.pin.position(), log.cut);
                let what = format!("{dir} was copied up to LSN {at}, and the backup ends at LSN {cut}");
                return Err(BackupError::Engine(EngineError::Corrupt(what)));
            }
        }
        if let Some(last) = last.filter(|last| last.0 > 0) {
            pinned.spill.advance(last);
        }
        (writer.since_follow, writer.followed) = (0, Instant::now());
        writer.is_limited = true;
        writer.check_space()
    }

    /// Determines the end of the copy, and what the participants have in addition to the pinned files.
    fn cut(&self, writer: &Writer<'_>, pinned: &mut Pinned) -> Result<(Cut, Vec<PinnedFile>), BackupError> {
        let env = self.env();
        // No checkpoint runs before the participants have said what else to copy.
        wait_for_gate(writer, || {
            let _running = self.checkpointer.one_at_a_time();
            let cut = self.pipeline.hold(|last| {
                if env.is_gated() && !self.is_replicated(last) {
                    return Err(BackupError::Checkpoint(CheckpointError::Gated));
                }
                let marks = env.logs.marks();
                pinned.logs[0].cut = marks.main;
                for (log, (_, mark)) in pinned.logs[1..].iter_mut().zip(&marks.engines) {
                    log.cut = *mark;
                }
                pinned.participants.iter_mut().for_each(|pin| pin.cut());
                let binlog_end =
                    env.binlog.as_ref().map_or(BinlogPos::default(), |it| it.end.lock().position);
                // That of the binlog's files: the counters also know domains that were applied elsewhere.
                let gtids = env.binlog.as_ref().map(|it| it.end.lock().gtids.position_text());
                let gtid_binlog_pos = gtids.unwrap_or_default();
                let replica = (writer.request.positions)(&gtid_binlog_pos);
                Ok(Cut { binlog_end, gtid_binlog_pos, replica, at_us: env.world.clock.wall_us() })
            });
            let cut = cut.map_err(|_| BackupError::Interrupted)??;
            let mut rest = Vec::new();
            for pin in &mut pinned.participants {
                rest.extend(pin.rest().map_err(BackupError::Engine)?);
            }
            Ok((cut, rest))
        })
    }

    /// Copies the files of the binlog from that of the checkpoint to the cut, and their index.
    fn copy_binlog(&self, writer: &mut Writer<'_>, pinned: &Pinned, cut: &Cut) -> Result<(), BackupError> {
        let env = self.env();
        let (Some(binlog), BinlogPos { file: last, offset }) = (&env.binlog, cut.binlog_end) else {
            return Ok(());
        };
        let first = pinned.checkpoint.binlog_synced.file;
        if first == 0 || last == 0 || pinned.binlog.is_none() {
            return Ok(());
        }
        // The files have everything up to the cut.
        binlog.files.sync().map_err(BackupError::Binlog)?;
        let name = binlog.files.name();
        let numbers: Vec<u32> = binlog.files.with_files(|files| files.numbers().to_vec());
        let mut index = String::new();
        for number in numbers.into_iter().filter(|number| (first..=last).contains(number)) {
            let len = (number == last).then_some(offset);
            writer.copy_file(&env.world.fs, &name.path(number), &name.file(number), len)?;
            index.push_str(&format!("./{}\n", name.file(number)));
        }
        writer.write(&format!("{}.index", name.base()), 0, index.as_bytes())
    }

    /// Writes the ends and the control files of the logs, the coordinator's last.
    fn finish_logs(&self, writer: &mut Writer<'_>, pinned: &Pinned) -> Result<(), BackupError> {
        let (env, spill_dir) = (self.env(), self.options.datadir.join("spill"));
        let separate = pinned.checkpoint.separate.as_ref();
        for (n, log) in pinned.logs.iter().enumerate().rev() {
            let payload = match separate.filter(|_| n > 0) {
                None => pinned.checkpoint.encode(),
                Some(separate) => record::encode_engine_log(separate.pair, separate.from[n - 1].0),
            };
            let mut to = LogWriter::new(&mut *writer, &env.world.fs, &spill_dir, &log.dir);
            log.pin.finish(payload, &mut to)?;
        }
        Ok(())
    }

    fn manifest(&self, writer: &Writer<'_>, pinned: &Pinned, cut: Cut, begun_us: u64) -> Manifest {
        let env = self.env();
        let entry = |(path, sum): (&String, &FileSum)| match writer.partial.get(path) {
            None => FileEntry {
                path: path.clone(),
                size: sum.end(),
                crc32c: Some(sum.of_file(sum.end())),
                ranges: Vec::new(),
            },
            Some(bytes) => FileEntry {
                path: path.clone(),
                size: sum.end().max(*bytes),
                crc32c: None,
                ranges: sum
                    .pieces()
                    .map(|(offset, size, crc32c)| RangeEntry { offset, size, crc32c })
                    .collect(),
            },
        };
        let mut id = [0; MANIFEST_ID_BYTES];
        env.world.rng.fill(&mut id);
        let position = |binlog: &crate::binlog::Binlog| BinlogPosition {
            file: binlog.files.name().file(cut.binlog_end.file),
            offset: cut.binlog_end.offset,
        };
        let server = &writer.request.server;
        Manifest {
            format: if writer.request.parent.is_some() { FORMAT_INCREMENTAL } else { FORMAT_FULL },
            id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
            server_version: server.version.clone(),
            server_uuid: server.uuid.clone(),
            server_id: server.id,
            timeline: env.logs.main().timelines().last().map_or(1, |timeline| timeline.number),
            layout: env.logs.layout().name().to_owned(),
            engines: env.engines.iter().map(|engine| engine.name().to_owned()).collect(),
            checkpoint_lsn: pinned.logs[0].pin.from().0,
            cut_lsn: pinned.logs[0].cut.0,
            gtid_binlog_pos: cut.gtid_binlog_pos,
            gtid_current_pos: cut.replica.gtid_current_pos,
            binlog: env.binlog.as_ref().map(position),
            log_bin: pinned.checkpoint.binlog_base.clone(),
            sources: cut.replica.sources,
            begun: time_text(begun_us),
            cut: time_text(cut.at_us),
            parent: writer
                .request
                .parent
                .as_ref()
                .map(|it| Parent { id: it.id.clone(), cut_lsn: it.cut_lsn }),
            joined: 0,
            files: writer.sums.iter().map(entry).collect(),
        }
    }
}

/// Returns the path below the data directory, with `/` between its parts.
fn relative(datadir: &Path, path: &Path) -> String {
    path.strip_prefix(datadir).unwrap_or(path).to_string_lossy().into_owned()
}

/// Repeats an attempt while groups wait for replicas before they are published.
fn wait_for_gate<T>(
    writer: &Writer<'_>,
    mut attempt: impl FnMut() -> Result<T, BackupError>,
) -> Result<T, BackupError> {
    for _ in 0..GATE_ATTEMPTS {
        match attempt() {
            Err(BackupError::Checkpoint(CheckpointError::Gated)) => {}
            done => return done,
        }
        writer.check()?;
        std::thread::sleep(GATE_PAUSE);
    }
    Err(BackupError::Gated)
}
