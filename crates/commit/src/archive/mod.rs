//! The continuous archive of the log: a running server sends its log to a repository, so that it can be
//! restored to any moment since a backup.
//!
//! The archive has one stream. With separate logs it is that of the coordinator's log, which then has a copy
//! of each transaction (`separate.rs`).
//!
//! # Concepts
//! - The *program* is the process that owns the client of the repository (`cohort-backup archive`). The
//!   server speaks frames with it over an [`ArchiveLink`] (docs/backup-format.md). A simulation implements
//!   the link itself.
//! - The *gate* ([`gate::ArchiveGate`]) holds groups until the repository has them (`archive_sync`).
//! - The *mark* of the archive is the LSN from which the archive needs the log
//!   (`cohort_log::Log::set_archived`). It is independent of where recovery starts, so checkpoints go on
//!   while the repository is away.
//! - A *range* is a number of whole records. Only what has passed the gate of the replicas is sent, because
//!   the rest may yet be cut off (row `CutUnreleased` of `recovery.rs`). It need not be published.
//! - A *gap* is a part of the log that the repository does not have and the server has no more. It is logged
//!   as an error. Moments in it and after it need a full backup from after the gap.
//! - TIME records ([`times::GroupTimes`]) say when the records after them were written.
//! - The *chain* is the checksum of the stream up to a position, back to the last gap. Each range names that
//!   before it, and START that at the end of the repository. So a repository with another log is refused, and
//!   ranges of two logs are not restored as one.
//! - `apply.rs` appends ranges to the log of a restored backup.
//!
//! # States
//! ```text
//! away --begin(): HELLO, START--> sending --round(): FILE, RANGE, ACK--> sending
//! sending --the link fails, ERROR--> away                  the mark stays, nothing is lost
//! away, sending --give_up()--> away, without a mark        begin() starts again at the end of the log: a gap
//! away --begin(): the repository has another log--> refused, also by later starts (`foreign.rs`)
//! ```
//!
//! # Invariants
//! - I7: segments, and files that records name, are kept until the repository has acknowledged them. The mark
//!   is moved after the acknowledgement, and is durable before a segment is released.
//! - Without `archive_sync` no transaction waits for the archive. With it, groups wait at the gate, and
//!   nothing that the archive needs waits for them.
//! - I3: a range has only what is durable and not cut off any more.
//!
//! # Bounds
//! Memory: a range and a piece of a file. Disk: [`ArchiveSettings::backlog_bytes_max`] of log, and the
//! archive is given up while there is still twice the space below which writes are refused.
//!
//! # On failure
//! The archive is never a reason to stop the server or to refuse a write. Errors go to the error log and are
//! counted; the caller begins again after a pause. An error of the log itself (poison) stops the server
//! elsewhere.
//!
//! # What is missing
//! Bulk loads of RocksDB, and RESET MASTER (refused: the log does not have them). A copy of a data directory
//! that was started once without an archive has no log in common with the archive any more: it continues
//! after a gap, and only a restore finds that the log is not that of the backup.

mod apply;
mod foreign;
pub(crate) mod gate;
pub(crate) mod names;
pub(crate) mod settings;
pub(crate) mod stats;
pub(crate) mod times;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cohort_backup_format::{
    ARCHIVE_FORMAT, FilePiece, Frame, HISTORY, Hello, LogRange, Start, TimelineStart, chained, history_text,
};
use cohort_base::{CommitSeq, Lsn};
use cohort_binlog::GtidState;
use cohort_log::{Log, LogError};
use cohort_vfs::{OpenMode, SharedFs};

use crate::checkpoint::needed_bytes;
use crate::coordinator::Coordinator;
use crate::record;

pub use apply::{Applied, ApplyError, ApplyStop, apply_archive};
use foreign::{Proof, Refusal, compare, proof_from};
use gate::{ArchiveGate, Watch};
pub use gate::{ArchiveSyncCounters, ArchiveSyncOptions};
use names::{NamedFile, PIECE_BYTES, gtid_of, named_files};
pub use settings::ArchiveSettings;
pub use stats::ArchiveStats;

/// Maximum bytes of a range of several records.
pub const RANGE_BYTES_MAX: usize = 4 << 20;
/// Bytes of log that are sent without an acknowledgement.
const WINDOW_BYTES: u64 = 64 << 20;
/// Longest pause between two rounds.
const REST: Duration = Duration::from_millis(5);
/// Line of the error log.
const OFF: &str = "archive_sync: the repository has not acknowledged commits within archive_sync_timeout, or the archive \
                   was given up. Commits go on without it, and are lost with this machine, until it has caught up";
/// Time that the stop of the server waits for the last acknowledgements.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// A connection to the program that stores the archive.
pub trait ArchiveLink {
    /// Sends a frame. Waits while the program takes nothing, as long as `goes_on` returns true.
    fn send(&mut self, frame: &[u8], goes_on: &dyn Fn() -> bool) -> io::Result<()>;

    /// Returns the next frame of the program, waiting for it up to this long.
    fn receive(&mut self, patience: Duration) -> io::Result<Option<Frame>>;
}

/// Reason why the archive stands still.
#[derive(Debug)]
pub enum ArchiveError {
    Link(io::Error),
    /// The program has reported an error, or does not keep to the format.
    Program(String),
    /// The repository has the log of another server, or more of it than this server.
    Foreign(String),
    /// A file that a record names could not be read.
    File(String, io::Error),
    Log(LogError),
    Unreadable(Lsn),
    /// The server stops, or the archive was given up while a frame was sent.
    Interrupted,
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchiveError::Link(error) => write!(f, "the connection to cohort-backup ended: {error}"),
            ArchiveError::Program(what) | ArchiveError::Foreign(what) => f.write_str(what),
            ArchiveError::File(name, error) => write!(f, "spill file {name} cannot be read: {error}"),
            ArchiveError::Log(error) => error.fmt(f),
            ArchiveError::Unreadable(lsn) => write!(f, "the log record at LSN {lsn} does not decode"),
            ArchiveError::Interrupted => f.write_str("it was interrupted"),
        }
    }
}

impl std::error::Error for ArchiveError {}

impl From<LogError> for ArchiveError {
    fn from(error: LogError) -> ArchiveError {
        ArchiveError::Log(error)
    }
}

/// A range that the program has not acknowledged.
struct Sent {
    to: Lsn,
    last: CommitSeq,
    gtids: Option<GtidState>,
    time_us: u64,
    chain: u32,
    read_ns: u64,
    /// It ends with everything that could be sent at that moment.
    is_complete: bool,
}

impl Sent {
    fn progress(&self) -> Progress {
        let Sent { to, last, ref gtids, time_us, chain, .. } = *self;
        Progress { position: to, last, gtids: gtids.clone(), time_us, chain }
    }
}

/// State at the position up to which ranges are sent.
#[derive(Clone, Default)]
struct Progress {
    position: Lsn,
    /// Last transaction before it.
    last: CommitSeq,
    /// GTIDs at the position, once they are known.
    gtids: Option<GtidState>,
    time_us: u64,
    /// Checksum of what is before it, back to the last gap.
    chain: u32,
}

/// A range that was read from the log.
struct Gathered {
    range: LogRange,
    files: Vec<NamedFile>,
    after: Progress,
    is_complete: bool,
}

/// The sender of the log.
pub struct Archiver {
    coordinator: Arc<Coordinator>,
    settings: ArchiveSettings,
    fs: SharedFs,
    timeline: TimelineStart,
    progress: Progress,
    sent: VecDeque<Sent>,
    /// End of the ranges that were sent since the start of the server; `None` before the first START.
    sent_to: Option<Lsn>,
    /// State at the newest acknowledgement.
    acknowledged: Progress,
    /// When the next range began to grow.
    grows_since_ns: Option<u64>,
    has_history: bool,
    /// Newest transaction at the gate when the last pause ended.
    seen: CommitSeq,
}

impl Archiver {
    /// Makes a sender that is away. Returns `None` if the server has no archive.
    pub fn new(coordinator: Arc<Coordinator>) -> Option<Archiver> {
        let settings = coordinator.options.archive.clone()?;
        let fs = Arc::clone(&coordinator.env().world.fs);
        let timeline = TimelineStart { timeline: 0, lsn: 0 };
        let (progress, acknowledged) = (Progress::default(), Progress::default());
        let sent = VecDeque::new();
        let (grows_since_ns, has_history) = (None, false);
        Some(Archiver {
            coordinator,
            settings,
            fs,
            timeline,
            progress,
            sent,
            sent_to: None,
            acknowledged,
            grows_since_ns,
            has_history,
            seen: CommitSeq(0),
        })
    }

    fn log(&self) -> &Log {
        self.coordinator.env().logs.main()
    }

    fn stats(&self) -> &ArchiveStats {
        &self.coordinator.archive
    }

    fn gate(&self) -> &ArchiveGate {
        self.coordinator.env().archive_gate.as_ref().expect("made with the archive")
    }

    fn now_ns(&self) -> u64 {
        self.coordinator.env().world.clock.monotonic_ns()
    }

    /// Returns whether the archive may keep more of the log.
    pub fn has_room(&self) -> bool {
        self.lack_of_room().is_none()
    }

    /// Returns why the archive must not keep more of the log.
    fn lack_of_room(&self) -> Option<String> {
        let log = self.log();
        let kept = log.durable_end().0.saturating_sub(log.archived()?.0);
        if kept > self.settings.backlog_bytes_max {
            return Some(format!("{} MiB of log wait for it (archive_backlog_max)", kept >> 20));
        }
        let datadir = &self.coordinator.options.datadir;
        let free = self.fs.free_bytes(datadir).ok()?;
        (free < 2 * needed_bytes(&self.coordinator))
            .then(|| format!("{} has {} MiB free", datadir.display(), free >> 20))
    }

    /// Gives up what the repository does not have, if there is no room for it. Returns whether it did.
    pub fn give_up_if_full(&mut self) -> Result<bool, ArchiveError> {
        let Some(why) = self.lack_of_room() else { return Ok(false) };
        let from = self.log().archived().unwrap_or_default();
        log::error!(
            "The archive of the log is given up from LSN {from} on: {why}. It has a gap from there: take a full backup as soon \
             as it works again"
        );
        self.stats().failures.fetch_add(1, Ordering::Relaxed);
        self.stats().gaps.fetch_add(1, Ordering::Relaxed);
        self.log().set_archived(None)?;
        self.coordinator.checkpointer.keep_for_archive_after(CommitSeq(u64::MAX));
        self.sent.clear();
        if self.gate().give_up() {
            log::error!("{OFF}");
            self.coordinator.gate_opened();
        }
        Ok(true)
    }

    /// Begins to send over a new link: exchanges HELLO and START.
    pub fn begin(&mut self, link: &mut dyn ArchiveLink, patience: Duration) -> Result<(), ArchiveError> {
        (self.grows_since_ns, self.has_history) = (None, false);
        let is_new = self.log().archived().is_none();
        let from = self.log().begin_archive()?;
        if is_new {
            // Files of earlier records are not needed any more, and later ones are kept from here on.
            let last = self.coordinator.env().replicated();
            self.coordinator.checkpointer.keep_for_archive_after(last);
        }
        let timelines = starts(&self.log().timelines());
        self.timeline = *timelines.last().expect("a log has a timeline");
        let hello = Hello {
            format: ARCHIVE_FORMAT,
            server_uuid: self.settings.server_uuid.clone(),
            log_identity: self.log().identity(),
            lsn: from.0,
            proof_lsn: proof_from(self.log(), from).0,
            time_us: self.acknowledged.time_us,
            timelines,
        };
        self.send(link, &Frame::Hello(hello))?;
        let start = match link.receive(patience).map_err(ArchiveError::Link)? {
            Some(Frame::Start(start)) => start,
            Some(Frame::Error(text)) => return Err(ArchiveError::Program(text)),
            Some(_) => return Err(unexpected("its first frame is not START")),
            None => return Err(unexpected("it does not answer")),
        };
        self.begin_at(from, start)
    }

    fn begin_at(&mut self, from: Lsn, start: Start) -> Result<(), ArchiveError> {
        let log = self.coordinator.env().logs.main();
        let (wanted, end) = (Lsn(start.lsn), log.durable_end());
        // The repository has nothing that this server has not sent, or had not sent before its start.
        let is_ahead = wanted > end || self.sent_to.is_some_and(|sent| wanted > sent);
        if start.timeline != self.timeline.timeline || is_ahead {
            return Err(ArchiveError::Foreign(format!(
                "the repository has timeline {} up to LSN {wanted}, and this server is on timeline {} at LSN {end}: another server \
                 archives to this place, or this data directory is older than the archive. Archive to another place",
                start.timeline, self.timeline.timeline
            )));
        }
        if compare(log, &start)? == Proof::Other {
            return Err(ArchiveError::Foreign(format!(
                "the repository has another log than this server from LSN {} to {wanted} of timeline {}: a server with a copy of this \
                 data directory archives to this place, or the data directory was put back to an older state. Archive to \
                 another place",
                start.proof_lsn, start.timeline
            )));
        }
        if wanted < from {
            log::error!(
                "The archive of the log has a gap from LSN {wanted} to {from} of timeline {}: take a full backup, restores to later \
                 moments need it",
                start.timeline
            );
            self.stats().gaps.fetch_add(1, Ordering::Relaxed);
        }
        let position = wanted.max(from);
        // The first record proves that the repository has this log.
        let read = log.read(position).and_then(|mut reader| reader.next().map(|_| ()));
        if let Err(error @ LogError::Corrupt { .. }) = read {
            return Err(ArchiveError::Foreign(format!(
                "the repository ends at LSN {position}, where no record of this server begins: {error}. Archive to another place"
            )));
        }
        read?;
        // The repository may have more than the former process has acknowledged.
        let known = self.sent.iter().rfind(|sent| sent.to == position).map(Sent::progress);
        self.sent.clear();
        if self.acknowledged.position != position {
            self.acknowledged = known.unwrap_or_else(|| Progress { position, ..Progress::default() });
            self.let_pass(None);
        }
        self.acknowledged.chain = if position == wanted { start.chain } else { 0 };
        self.progress = self.acknowledged.clone();
        self.sent_to = self.sent_to.max(Some(position));
        log.set_archived(Some(position))?;
        self.stats().acknowledged.store(position.0, Ordering::Relaxed);
        Ok(())
    }

    fn send(&self, link: &mut dyn ArchiveLink, frame: &Frame) -> Result<(), ArchiveError> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        link.send(&bytes, &|| self.has_room()).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => ArchiveError::Interrupted,
            _ => ArchiveError::Link(error),
        })
    }

    /// Takes acknowledgements, and sends the next range if it is large or old enough. `is_last` sends any.
    /// Returns whether it has sent one.
    pub fn round(&mut self, link: &mut dyn ArchiveLink, is_last: bool) -> Result<bool, ArchiveError> {
        while self.take_answer(link, Duration::ZERO)? {}
        let (position, end) = (self.progress.position.0, self.log().durable_end().0);
        let unacknowledged = position.saturating_sub(self.acknowledged.position.0);
        if position == end || unacknowledged > WINDOW_BYTES {
            self.note_lag(unacknowledged > 0);
            return Ok(false);
        }
        let now_ns = self.now_ns();
        let since_ns = *self.grows_since_ns.get_or_insert(now_ns);
        self.note_lag(true);
        let is_old = now_ns.saturating_sub(since_ns) >= self.settings.timeout.as_nanos() as u64;
        let is_awaited = self.gate().is_enabled();
        if !(is_last || is_awaited || is_old || end - position >= RANGE_BYTES_MAX as u64) {
            return Ok(false);
        }
        let Some(gathered) = self.gather()? else { return Ok(false) };
        let is_complete = gathered.is_complete;
        self.send_range(link, gathered, since_ns)?;
        if is_awaited && is_complete {
            self.send(link, &Frame::Flush)?;
        }
        Ok(true)
    }

    /// Takes one answer of the program, waiting for it up to this long. Returns whether there was one.
    fn take_answer(&mut self, link: &mut dyn ArchiveLink, patience: Duration) -> Result<bool, ArchiveError> {
        match link.receive(patience).map_err(ArchiveError::Link)? {
            None => return Ok(false),
            Some(Frame::Ack(at)) => self.acknowledge(at)?,
            Some(Frame::Error(text)) => return Err(ArchiveError::Program(text)),
            Some(_) => return Err(unexpected("it sends a frame that only the server sends")),
        }
        Ok(true)
    }

    /// Waits a moment for something to do.
    fn rest(&mut self, link: &mut dyn ArchiveLink) -> Result<(), ArchiveError> {
        if !self.gate().is_enabled() {
            std::thread::sleep(REST);
        } else if self.sent.is_empty() {
            self.seen = self.gate().wait_for_group(self.seen, REST);
        } else {
            self.take_answer(link, REST)?;
        }
        Ok(())
    }

    /// Returns whether the repository has everything that may be sent.
    pub fn is_complete(&self) -> Result<bool, ArchiveError> {
        Ok(self.sent.is_empty() && self.gather()?.is_none())
    }

    fn acknowledge(&mut self, at: TimelineStart) -> Result<(), ArchiveError> {
        if at.timeline != self.timeline.timeline || at.lsn > self.progress.position.0 {
            return Err(unexpected("it acknowledges what was not sent"));
        }
        let mut newest = None;
        while self.sent.front().is_some_and(|sent| sent.to.0 <= at.lsn) {
            newest = self.sent.pop_front();
        }
        let Some(newest) = newest else { return Ok(()) };
        let (to, last) = (newest.to, newest.last);
        let bytes = to.0 - self.acknowledged.position.0;
        self.acknowledged = newest.progress();
        self.log().set_archived(Some(to))?;
        self.coordinator.checkpointer.keep_for_archive_after(last);
        self.stats().acknowledged.store(to.0, Ordering::Relaxed);
        self.stats().bytes.fetch_add(bytes, Ordering::Relaxed);
        self.let_pass(newest.is_complete.then_some(newest.read_ns));
        Ok(())
    }

    /// Lets the acknowledged groups pass the gate. `complete_since_ns` is the moment at which there was
    /// nothing else to send.
    fn let_pass(&self, complete_since_ns: Option<u64>) {
        let change = self.gate().acknowledge(self.acknowledged.last, complete_since_ns, self.now_ns());
        if change.is_on_again {
            log::warn!("archive_sync: the archive has caught up, commits wait for it again");
        }
        if change.has_opened {
            self.coordinator.gate_opened();
        }
    }

    /// Records since when something waits for the repository.
    fn note_lag(&self, is_waiting: bool) {
        let oldest = self.sent.front().map(|sent| sent.read_ns).or(self.grows_since_ns);
        let since_ns = if is_waiting { oldest.unwrap_or_else(|| self.now_ns()).max(1) } else { 0 };
        self.stats().waits_since_ns.store(since_ns, Ordering::Relaxed);
    }

    /// Reads the next range: whole records, up to the first that has not passed the publish gate.
    fn gather(&self) -> Result<Option<Gathered>, ArchiveError> {
        let env = self.coordinator.env();
        // In this order: everything up to this transaction is durable.
        let replicated = env.replicated();
        let recovered_to = self.log().generation().1;
        let mut reader = self.log().read(self.progress.position)?;
        let mut after = self.progress.clone();
        let (mut bytes, mut files, mut first_us) = (Vec::new(), Vec::new(), after.time_us);
        let mut is_complete = true;
        loop {
            if after.position == recovered_to {
                after.gtids = Some(self.coordinator.recovered.gtids.clone());
            }
            let Some(record) = reader.next()? else { break };
            let unreadable = |_| ArchiveError::Unreadable(record.lsn);
            let end = record.end;
            let mut seen = after.clone();
            let mut named = Vec::new();
            match record.kind {
                record::COMMIT => {
                    let commit = record::decode_commit(record.payload).map_err(unreadable)?;
                    if commit.seq > replicated {
                        break;
                    }
                    named = named_files(&commit);
                    seen.last = commit.seq;
                    if let (Some(gtids), Some(gtid)) = (&mut seen.gtids, gtid_of(&commit)) {
                        gtids.update(gtid);
                    }
                }
                // Separate logs: before their decision both may be cut off.
                record::PREPARE => {
                    let (head, _) = record::decode_prepare(record.payload).map_err(unreadable)?;
                    if head.seq > replicated {
                        break;
                    }
                }
                record::DECIDED => {
                    let seq = record::decode_seq(record.payload).map_err(unreadable)?;
                    if seq > replicated {
                        break;
                    }
                }
                record::TIME => {
                    let time_us = record::decode_time(record.payload).map_err(unreadable)?;
                    seen.time_us = seen.time_us.max(time_us);
                }
                _ => {}
            }
            let record_bytes = reader.last_bytes();
            if !bytes.is_empty() && bytes.len() + record_bytes.len() > RANGE_BYTES_MAX {
                is_complete = false;
                break;
            }
            bytes.extend_from_slice(record_bytes);
            files.extend(named);
            after = Progress { position: end, ..seen };
            if first_us == 0 {
                first_us = after.time_us;
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        after.chain = chained(self.progress.chain, &bytes);
        let history = (!self.has_history).then(|| HISTORY.to_owned());
        let range = LogRange {
            timeline: self.timeline.timeline,
            from: self.progress.position.0,
            to: after.position.0,
            chain: Some(self.progress.chain),
            first_us,
            last_us: after.time_us,
            gtid_position: after.gtids.as_ref().map_or_else(String::new, GtidState::position_text),
            files: history.into_iter().chain(files.iter().map(|file| file.name.clone())).collect(),
            bytes,
        };
        Ok(Some(Gathered { range, files, after, is_complete }))
    }

    fn send_range(
        &mut self,
        link: &mut dyn ArchiveLink,
        Gathered { range, files, after, is_complete }: Gathered,
        read_ns: u64,
    ) -> Result<(), ArchiveError> {
        if !self.has_history {
            let history = history_text(starts(&self.log().timelines()));
            self.send_file(link, HISTORY, history.as_bytes())?;
        }
        for file in &files {
            self.send_spilled(link, file)?;
        }
        self.send(link, &Frame::Range(range))?;
        self.has_history = true;
        let Progress { position: to, last, time_us, chain, .. } = after;
        self.sent_to = self.sent_to.max(Some(to));
        self.sent.push_back(Sent {
            to,
            last,
            gtids: after.gtids.clone(),
            time_us,
            chain,
            read_ns,
            is_complete,
        });
        self.progress = after;
        self.grows_since_ns = None;
        Ok(())
    }

    fn send_file(&self, link: &mut dyn ArchiveLink, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        let piece = FilePiece {
            timeline: self.timeline.timeline,
            name: name.to_owned(),
            file_bytes: bytes.len() as u64,
            file_crc: crc32c::crc32c(bytes),
            offset: 0,
            bytes: bytes.to_vec(),
        };
        self.send(link, &Frame::File(piece))
    }

    /// Sends a spill file in pieces.
    fn send_spilled(&self, link: &mut dyn ArchiveLink, named: &NamedFile) -> Result<(), ArchiveError> {
        let failed = |error| ArchiveError::File(named.name.clone(), error);
        let path = self.coordinator.options.datadir.join("spill").join(&named.name);
        let file_crc = match named.crc {
            Some(crc) => crc,
            None => checksum_of(&self.fs, &path).map_err(failed)?,
        };
        let file = self.fs.open(&path, OpenMode::Read).map_err(failed)?;
        let file_bytes = file.len().map_err(failed)?;
        let mut offset = 0;
        loop {
            let mut bytes = vec![0; PIECE_BYTES.min((file_bytes - offset) as usize)];
            if file.read_at(&mut bytes, offset).map_err(failed)? < bytes.len() {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
            let end = offset + bytes.len() as u64;
            let (timeline, name) = (self.timeline.timeline, named.name.clone());
            self.send(link, &Frame::File(FilePiece { timeline, name, file_bytes, file_crc, offset, bytes }))?;
            if end == file_bytes {
                return Ok(());
            }
            offset = end;
        }
    }
}

fn unexpected(what: &str) -> ArchiveError {
    ArchiveError::Program(format!("cohort-backup does not keep to the format: {what}"))
}

fn checksum_of(fs: &SharedFs, path: &Path) -> io::Result<u32> {
    let file = fs.open(path, OpenMode::Read)?;
    let (mut crc, mut offset, mut buf) = (0, 0, vec![0; PIECE_BYTES]);
    loop {
        let got = file.read_at(&mut buf, offset)?;
        crc = crc32c::crc32c_append(crc, &buf[..got]);
        offset += got as u64;
        if got < buf.len() {
            return Ok(crc);
        }
    }
}

fn starts(timelines: &[cohort_log::Timeline]) -> Vec<TimelineStart> {
    timelines.iter().map(|it| TimelineStart { timeline: it.number, lsn: it.from.0 }).collect()
}

impl Coordinator {
    /// Returns the counters of the archive.
    pub fn archive(&self) -> &ArchiveStats {
        &self.archive
    }

    /// Returns whether the log is archived, so that it must have everything that a restore needs.
    pub fn is_archived(&self) -> bool {
        self.options.archive.is_some()
    }

    /// Applies `archive_sync` and `archive_sync_timeout`. Returns false if the log is not archived, and
    /// commits cannot wait for that.
    pub fn set_archive_sync(&self, options: ArchiveSyncOptions) -> bool {
        let Some(gate) = &self.env().archive_gate else { return !options.is_enabled };
        gate.configure(options);
        self.gate_opened();
        true
    }

    /// Returns the counters of `archive_sync`.
    pub fn archive_sync_counters(&self) -> ArchiveSyncCounters {
        self.env().archive_gate.as_ref().map_or_else(ArchiveSyncCounters::default, ArchiveGate::counters)
    }

    /// Returns whether a transaction's reply is delayed because the repository does not have it.
    pub fn is_waiting_for_archive(&self, seq: CommitSeq) -> bool {
        self.env().archive_gate.as_ref().is_some_and(|gate| gate.is_waiting(seq))
    }

    /// Lets groups pass that have waited for `archive_sync_timeout`, on the calling thread until the server
    /// stops.
    pub fn watch_archive_sync(&self) {
        let Some(gate) = &self.env().archive_gate else { return };
        loop {
            match gate.watch(&|| self.now_ns()) {
                Watch::GoOn => {}
                Watch::Expired => {
                    log::error!("{OFF}");
                    self.gate_opened();
                }
                Watch::End => return,
            }
        }
    }

    /// Returns the timeline of the log and its ancestors, oldest first.
    pub fn timelines(&self) -> Vec<cohort_log::Timeline> {
        self.env().logs.main().timelines()
    }

    /// Returns the part of the log that the repository does not have, in bytes and in seconds.
    pub fn archive_lag(&self) -> (u64, u64) {
        let env = self.env();
        let log = env.logs.main();
        let bytes = log.archived().map_or(0, |from| log.durable_end().0.saturating_sub(from.0));
        let since_ns = self.archive.waits_since_ns.load(Ordering::Relaxed);
        let ns = if since_ns == 0 { 0 } else { env.world.clock.monotonic_ns().saturating_sub(since_ns) };
        (bytes, ns / 1_000_000_000)
    }

    /// Runs the archive on the calling thread until the server stops. `connect` starts the program.
    pub fn run_archive(self: Arc<Self>, connect: &mut dyn FnMut() -> io::Result<Box<dyn ArchiveLink>>) {
        let Some(mut archiver) = Archiver::new(Arc::clone(&self)) else { return };
        let mut pauses = Pauses::default();
        while !self.is_closing() {
            let done = archiver.check_refusal().and_then(|()| {
                let mut link = connect().map_err(ArchiveError::Link)?;
                archiver.begin(&mut *link, END_PATIENCE * 6)?;
                pauses = Pauses::default();
                log::info!("The log is archived from LSN {} on", archiver.acknowledged.position);
                self.archive.is_sending.store(true, Ordering::Relaxed);
                archiver.run(&mut *link)
            });
            self.archive.is_sending.store(false, Ordering::Relaxed);
            // Not tried again without the operator.
            let is_foreign = matches!(done, Err(ArchiveError::Foreign(_)));
            if let Err(error) = done {
                self.archive.failures.fetch_add(1, Ordering::Relaxed);
                let again = match is_foreign {
                    true => archiver.refuse(&error),
                    false => "and is tried again".to_owned(),
                };
                log::error!("The archive of the log stands still, {again}: {error}");
            }
            let until = Instant::now() + pauses.next();
            while (is_foreign || Instant::now() < until) && !self.is_closing() && !self.pipeline.is_stopped()
            {
                if let Err(error) = archiver.give_up_if_full() {
                    log::error!("The archive of the log cannot be given up: {error}");
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            if self.pipeline.is_stopped() && !self.is_closing() {
                return;
            }
        }
    }
}

impl Archiver {
    fn refusal(&self) -> Refusal<'_> {
        Refusal::new(&self.fs, &self.coordinator.options.datadir)
    }

    /// Fails if this repository has refused this data directory.
    pub fn check_refusal(&self) -> Result<(), ArchiveError> {
        match self.refusal().read(&self.settings.to).map_err(ArchiveError::Link)? {
            Some(why) => Err(ArchiveError::Foreign(why)),
            None => Ok(()),
        }
    }

    /// Records that the repository has another log. Returns when the archive is tried again.
    pub fn refuse(&self, why: &ArchiveError) -> String {
        let refusal = self.refusal();
        match refusal.write(&self.settings.to, &why.to_string()) {
            Ok(()) => {
                format!("until archive_to is another place or '{}' is removed", refusal.path().display())
            }
            Err(error) => {
                format!("until the server starts again ('{}': {error})", refusal.path().display())
            }
        }
    }

    fn run(&mut self, link: &mut dyn ArchiveLink) -> Result<(), ArchiveError> {
        let mut deadline = None;
        loop {
            let is_last = self.coordinator.archive_ends();
            if is_last {
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + END_PATIENCE);
                if self.is_complete()? {
                    return Ok(());
                }
                if Instant::now() > deadline {
                    let to = self.acknowledged.position;
                    let what =
                        format!("the server stops, and the repository has the log up to LSN {to} only");
                    return Err(ArchiveError::Program(what));
                }
            }
            if self.give_up_if_full()? {
                return Err(ArchiveError::Interrupted);
            }
            if !self.round(link, is_last)? {
                self.rest(link)?;
            }
        }
    }
}

impl Coordinator {
    /// Returns whether nothing more is committed.
    fn archive_ends(&self) -> bool {
        self.is_closing() && self.pipeline.is_stopped()
    }
}

/// Pauses between attempts, from a second to a minute.
#[derive(Default)]
struct Pauses(u32);

impl Pauses {
    fn next(&mut self) -> Duration {
        self.0 += 1;
        Duration::from_secs((1 << (self.0 - 1).min(6)).min(60))
    }
}

#[cfg(test)]
mod gate_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute() {
        let mut pauses = Pauses::default();
        let seconds: Vec<u64> = (0..9).map(|_| pauses.next().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
