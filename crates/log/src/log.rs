//! Appending, flushing, checkpoints.
//!
//! # Concepts
//! - A **reservation** ([`LogReservation`], made by [`Log::reserve`]) guarantees that a record fits.
//!   Everything that can fail is done by then.
//! - **Append** ([`Log::append`]): the checksum of the payload is computed first. Then the record gets its
//!   LSN under the tail lock and is copied into memory.
//! - **Flush** ([`Log::flush`]): takes everything appended, writes it as whole 4 KiB blocks, and syncs. The
//!   last block may be partly filled; the next flush writes it again. The blocks exist already and are
//!   durable: they hold zeros, or old records of a recycled segment. So the file's metadata do not change,
//!   and the sync costs one disk flush, or two if the flush crosses a segment border. Writes bypass the page
//!   cache unless [`LogOptions::buffered`] is set.
//! - **Checkpoint** ([`Log::checkpoint`]): stores where recovery starts, and releases the segments before it.
//!
//! # Positions
//! `retained <= durable <= appended <= promised <= ready_end`
//!
//! | position | meaning |
//! |---|---|
//! | `archived` | what the archive has; only with an archive, and may be after `retained`, too |
//! | `retained` | where recovery starts; what comes before it and before `archived` may be gone |
//! | `durable` | end of the durable part |
//! | `appended` | end of the records in memory, the LSN of the next record |
//! | `promised` | end of the log if every reservation is used in full |
//! | `ready_end` | end of the last preallocated segment |
//!
//! Only `promised` may decrease: when an unused part of a reservation is returned.
//!
//! # Lock order
//! `flusher` > `tail`; `control` > `pins` > `making` (`space.rs`).
//!
//! # On failure
//! A failed write or sync poisons the log. So does a failure of the preallocation, unless only space is
//! missing. Every later call that would have to guarantee something returns [`LogError::Poisoned`];
//! [`Log::append`] only copies into memory and does not fail. Nothing is retried, because the kernel may have
//! dropped the dirty pages, and a second sync would then succeed without having written anything.
//! [`Log::close`] poisons the log, too, so that it is not used afterwards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use cohort_base::{AbortOnUnwind, Lsn};
use cohort_vfs::World;
use parking_lot::Mutex;

use crate::control::{self, Control, Timeline};
use crate::options::Preallocation;
use crate::pin::LogPin;
use crate::preallocation;
use crate::record::{payload_crc, record_bytes};
use crate::scan::Generations;
use crate::segments::Segments;
use crate::shared::{Flusher, Shared};
use crate::space::Space;
use crate::tail::{Batch, Tail};
use crate::{LogError, LogOptions, LogReader, LogStats, RecordKind};

/// The bytes `start..end` that a record occupies in the log, including header and padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// LSN of its first byte.
    pub start: Lsn,
    /// LSN after its last byte, where the next record starts. The record is durable when `durable_end() >=
    /// end`.
    pub end: Lsn,
}

/// The state that recovery passes on.
pub(crate) struct Start {
    pub world: World,
    pub options: LogOptions,
    pub control: Control,
    pub segments: Arc<Segments>,
    pub released: Vec<u64>,
    pub end: u64,
    /// Contents of the last block up to `end`.
    pub block: Vec<u8>,
}

/// A reservation: a guarantee that one record of up to the requested size fits. Returned when dropped.
pub struct LogReservation {
    shared: Arc<Shared>,
    bytes: u64,
}

impl LogReservation {
    /// Returns whether a record with this number of payload bytes fits.
    pub fn fits(&self, payload_bytes: u64) -> bool {
        record_bytes(payload_bytes) <= self.bytes
    }

    /// Takes the space of a record with this number of payload bytes out of the reservation.
    ///
    /// # Panics
    /// When it does not fit.
    pub fn split(&mut self, payload_bytes: u64) -> LogReservation {
        assert!(self.fits(payload_bytes), "a record is larger than the room reserved for it");
        let bytes = record_bytes(payload_bytes);
        self.bytes -= bytes;
        LogReservation { shared: Arc::clone(&self.shared), bytes }
    }

    /// Uses the reservation for a record, and returns the rest of it.
    fn spend(mut self, payload_bytes: u64) {
        let used = record_bytes(payload_bytes);
        assert!(used <= self.bytes, "a record is larger than the room reserved for it");
        self.bytes -= used;
    }
}

impl Drop for LogReservation {
    fn drop(&mut self) {
        self.shared.space.give_back(self.bytes);
    }
}

/// The log, open for appending. All methods may be called from any thread.
pub struct Log {
    shared: Arc<Shared>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Log {
    pub(crate) fn start(start: Start) -> Log {
        let Start { world, options, control, segments, released, end, block } = start;
        let geometry = segments.geometry;
        let (retained, archived) = (control.state.from, control.state.archived);
        let ready_end = segments.end().unwrap_or(geometry.start_of(geometry.segment_of(retained)));
        let shared = Arc::new(Shared {
            generations: Generations { current: control.state.generation, start: end },
            space: Space::new(end, ready_end, retained, archived, released),
            durable: AtomicU64::new(end),
            appended: AtomicU64::new(end),
            tail: Mutex::new(Tail::new(end, block)),
            flusher: Mutex::default(),
            control: Mutex::new(control),
            poison: OnceLock::new(),
            world,
            options,
            segments,
        });
        let threaded = shared.options.preallocation == Preallocation::Thread;
        let worker = threaded.then(|| {
            let shared = shared.clone();
            std::thread::Builder::new()
                .name("log-prealloc".into())
                .spawn(move || {
                    // A panic must end the process: without the thread, a caller that needs space would wait
                    // for ever.
                    let guard = AbortOnUnwind::during("the making of log segments");
                    preallocation::preallocate(&shared);
                    guard.disarm();
                })
                .expect("the system starts a thread while the server starts")
        });
        Log { shared, worker: Mutex::new(worker) }
    }

    /// Reserves space for a record with this number of payload bytes. May wait for a segment to be
    /// preallocated.
    pub fn reserve(&self, payload_bytes: u64) -> Result<LogReservation, LogError> {
        let bytes_max = self.shared.options.record_bytes_max;
        if payload_bytes > bytes_max {
            return Err(LogError::RecordTooLarge { bytes: payload_bytes, bytes_max });
        }
        let bytes = record_bytes(payload_bytes);
        self.shared.reserve_bytes(bytes)?;
        Ok(LogReservation { shared: self.shared.clone(), bytes })
    }

    /// Appends a record whose payload is the concatenation of the parts. Never fails, never does I/O.
    ///
    /// # Panics
    /// When the parts are longer than the reservation.
    pub fn append(&self, reservation: LogReservation, kind: RecordKind, parts: &[&[u8]]) -> Span {
        let shared = &*self.shared;
        let payload_bytes = parts.iter().map(|p| p.len() as u64).sum();
        let payload_crc = payload_crc(shared.salt(), parts);
        reservation.spend(payload_bytes);
        let mut tail = shared.tail.lock();
        let start = tail.end();
        let header = shared.header(start, kind, payload_bytes, payload_crc);
        tail.append(&header, shared.salt(), parts);
        shared.appended.store(tail.end(), Ordering::Release);
        Span { start: Lsn(start), end: Lsn(tail.end()) }
    }

    /// Makes everything durable that was appended before the call: one write, one sync. Returns the end of
    /// the durable part. One thread flushes at a time. A concurrent caller waits, and then finds its records
    /// durable or flushes them.
    ///
    /// A failure poisons the log.
    pub fn flush(&self) -> Result<Lsn, LogError> {
        let shared = &*self.shared;
        let wanted = shared.appended.load(Ordering::Acquire);
        let mut flusher = shared.flusher.lock();
        if let Some(batch) = self.take_batch(&mut flusher, wanted)? {
            flusher.write(shared, &batch).map_err(|e| shared.poison(&e))?;
            shared.durable.store(batch.end, Ordering::Release);
            flusher.spare = batch.into_spare();
        }
        Ok(self.durable_end())
    }

    /// Takes what there is to flush. Returns `None` if everything up to `wanted` is durable.
    fn take_batch(&self, flusher: &mut Flusher, wanted: u64) -> Result<Option<Batch>, LogError> {
        let shared = &*self.shared;
        if shared.durable.load(Ordering::Acquire) >= wanted {
            return shared.check_poison().map(|()| None);
        }
        let mut tail = shared.tail.lock();
        shared.check_poison()?;
        Ok(Some(tail.take(std::mem::take(&mut flusher.spare), shared.salt())))
    }

    /// Returns the end of the durable part, which survives a crash.
    pub fn durable_end(&self) -> Lsn {
        Lsn(self.shared.durable.load(Ordering::Acquire))
    }

    /// Returns the LSN of the next record.
    pub fn appended(&self) -> Lsn {
        Lsn(self.shared.appended.load(Ordering::Acquire))
    }

    /// Returns the start of the retained log: the `from` of the last checkpoint.
    pub fn retained(&self) -> Lsn {
        Lsn(self.shared.space.retained.load(Ordering::Acquire))
    }

    /// Returns the failure that has stopped the log, if any.
    pub fn poisoned(&self) -> Option<LogError> {
        self.shared.check_poison().err()
    }

    /// Reads durable records from `from`, which must be the start of a record or the end of the log.
    pub fn read(&self, from: Lsn) -> Result<LogReader, LogError> {
        LogReader::new(self.shared.clone(), from)
    }

    /// Makes durable that recovery starts at `from` with this payload, then releases the segments that are
    /// completely below. If `from` is below that of an earlier checkpoint, the earlier `from` is used.
    ///
    /// # Panics
    /// When `from` is beyond the durable part.
    pub fn checkpoint(&self, from: Lsn, payload: &[u8]) -> Result<(), LogError> {
        let shared = &*self.shared;
        let durable = self.durable_end();
        assert!(from <= durable, "recovery cannot start after the durable part");
        let (bytes, bytes_max) = (payload.len() as u64, control::PAYLOAD_BYTES_MAX);
        if bytes > bytes_max {
            return Err(LogError::RecordTooLarge { bytes, bytes_max });
        }
        let mut control = shared.control.lock();
        shared.check_poison()?;
        let from = from.0.max(control.state.from);
        let updated = control.update(|state| {
            state.from = from;
            state.durable = durable.0;
            state.payload = payload.to_vec();
            state.archived = shared.space.archived();
        });
        updated.map_err(|e| shared.poison(&LogError::io(control.path(), "writing", e)))?;
        shared.space.retained.store(from, Ordering::Release);
        shared.release()
    }

    /// Returns the timeline of the log and its ancestors, oldest first.
    pub fn timelines(&self) -> Vec<Timeline> {
        self.shared.control.lock().state.timelines.clone()
    }

    /// Returns the random number that the checksums of all records depend on, and that copies have in common.
    pub fn identity(&self) -> u32 {
        self.shared.salt()
    }

    /// Returns whether the log is opened for an archive.
    pub fn is_archived(&self) -> bool {
        self.shared.options.is_archived
    }

    /// Returns the number of this opening of the log, which grows with each, and the LSN where it began to
    /// write.
    pub fn generation(&self) -> (u32, Lsn) {
        (self.shared.generations.current, Lsn(self.shared.generations.start))
    }

    /// Returns the LSN from which the log is kept for the archive, if it is.
    pub fn archived(&self) -> Option<Lsn> {
        self.shared.space.archived().map(Lsn)
    }

    /// Returns where the log is kept for the archive from, as far as it belongs to this timeline. After it
    /// was given up, begins to keep it again, from its end on.
    pub fn begin_archive(&self) -> Result<Lsn, LogError> {
        let shared = &*self.shared;
        let mut control = shared.control.lock();
        shared.check_poison()?;
        let begins = control.state.timelines.last().map_or(0, |timeline| timeline.from.0);
        if let Some(archived) = shared.space.archived() {
            return Ok(Lsn(archived.max(begins)));
        }
        let from = self.durable_end().0;
        let updated = control.update(|state| state.archived = Some(from));
        updated.map_err(|e| shared.poison(&LogError::io(control.path(), "writing", e)))?;
        shared.space.archived.store(from, Ordering::Release);
        Ok(Lsn(from))
    }

    /// Releases what the archive does not need: everything up to an LSN where a record begins, or with `None`
    /// everything. The mark is durable before a segment is released, so a start finds all segments after it.
    pub fn set_archived(&self, up_to: Option<Lsn>) -> Result<(), LogError> {
        let shared = &*self.shared;
        let mut control = shared.control.lock();
        shared.check_poison()?;
        let up_to = up_to.map(|lsn| lsn.0);
        assert!(up_to <= Some(self.durable_end().0), "the archive has what is not durable (I3)");
        let segment = |lsn: Option<u64>| lsn.map(|lsn| shared.segments.geometry.segment_of(lsn));
        if segment(control.state.archived) != segment(up_to) {
            let updated = control.update(|state| state.archived = up_to);
            updated.map_err(|e| shared.poison(&LogError::io(control.path(), "writing", e)))?;
        }
        shared.space.archived.store(up_to.unwrap_or(u64::MAX), Ordering::Release);
        shared.release()
    }

    /// Pins the log from where recovery starts on: checkpoints keep it for the holder.
    pub fn pin(&self) -> LogPin {
        LogPin::new(Arc::clone(&self.shared))
    }

    /// Flushes the log and records its end, so that the next start detects any damage. Nothing may be
    /// appended afterwards.
    pub fn close(&self) -> Result<(), LogError> {
        let shared = &*self.shared;
        self.stop_worker();
        self.flush()?;
        let durable = self.durable_end().0;
        assert_eq!(durable, self.appended().0, "no thread appends to a log that is being closed");
        let mut control = shared.control.lock();
        let updated = control.update(|state| {
            state.durable = durable;
            state.clean = true;
            state.archived = shared.space.archived();
        });
        updated.map_err(|e| shared.poison(&LogError::io(control.path(), "writing", e)))?;
        shared.poison(&"it was closed");
        Ok(())
    }

    /// Sets whether segments preallocated from now on are written through the page cache.
    pub fn set_buffered(&self, buffered: bool) {
        self.shared.segments.buffered.store(buffered, Ordering::Relaxed);
    }

    /// Returns the counters.
    pub fn stats(&self) -> LogStats {
        let shared = &*self.shared;
        let space = &shared.space;
        let mut stats = LogStats {
            segments_created: space.created.load(Ordering::Relaxed),
            segments_recycled: space.recycled.load(Ordering::Relaxed),
            reserve_waits: space.waits.load(Ordering::Relaxed),
            pinned_bytes: space.pinned_bytes(),
            ..LogStats::default()
        };
        {
            let tail = shared.tail.lock();
            stats.records = tail.records;
            stats.record_bytes = tail.record_bytes;
        }
        let flusher = shared.flusher.lock();
        stats.flushes = flusher.flushes;
        stats.syncs = flusher.syncs;
        stats.written_bytes = flusher.written_bytes;
        stats.sync_ns_total = flusher.sync_ns_total;
        stats.sync_ns_max = flusher.sync_ns_max;
        stats.sync_ns_last = flusher.sync_ns_last;
        stats
    }

    fn stop_worker(&self) {
        self.shared.space.stop();
        if let Some(worker) = self.worker.lock().take() {
            // The thread panics only in a broken process; the log itself does not depend on it.
            let _ = worker.join();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop_worker();
    }
}
