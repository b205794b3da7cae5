//! The writer of the binlog files (`BinlogFileWriter`): takes the binlog bytes of durable groups, and writes
//! them after the commits, in the background.
//!
//! # Who writes
//! - **The background thread**: the log makes commits durable, and the files are for readers. So the thread
//!   writes a few milliseconds after bytes were handed over ([`BinlogFileWriter::submit`]), and many groups
//!   with one call.
//! - **A caller that needs the files now**: [`BinlogFileWriter::catch_up`], [`BinlogFileWriter::step`],
//!   [`BinlogFileWriter::sync`]. It does the work itself, by the same code, whether or not there is a
//!   background thread.
//! - **The thread that decides a group**, with a log for each engine: [`BinlogFileWriter::write_synced`]
//!   writes and syncs its batch at once, because these files decide which transactions are committed. Readers
//!   see the batch after [`BinlogFileWriter::show`]. The queue and the background thread are then not used.
//!
//! # Concepts
//! - **Sync** (at a checkpoint) runs without the writer's lock. Bytes that are not synced are still in the
//!   log (I7): the caller frees the log only up to the position that `sync` returned.
//! - **Slices**: a backlog is written in slices of batches, and a large transaction is copied from its spill
//!   file in slices. Other threads get the writer's lock between two slices. The background thread pauses
//!   between two slices of a copy, so that commits are not slowed down, unless the queue fills up.
//! - **Whole batches**: a caller of [`BinlogFileWriter::with_files`] that finds a copy half done completes
//!   it, without pauses.
//! - **Spill files** are removed after the sync that covers their copy.
//!
//! # Invariants
//! - Batches are written in the order in which they were handed over: all threads take them from the queue
//!   under the writer's lock.
//! - Only durable bytes are handed over to `submit` and to `show` (I3).
//! - `written` is always the end of a batch. Readers use it without the writer's lock.
//!
//! # Lock order
//! `syncing` > `writer` > `queue`. `submit` takes only the lock of the queue and that of the tail, one after
//! the other. No lock is held while a thread waits for disk space.
//!
//! # On failure
//! - No space: the rest stays queued, the status is `NoSpace`, and the thread retries after a pause. Prepare
//!   refuses new writes meanwhile.
//! - Any other error stops the writing for good (`Failed`). The log keeps everything, so the next start
//!   completes the files. With a log for each engine, the thread that decides gets the error: it retries if
//!   only space is missing, and otherwise the server ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cohort_base::{AbortOnUnwind, BinlogPos, throttle_pause};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::chunk::Content;
use crate::files::PendingSync;
use crate::spill::CopyPlace;
use crate::{Batch, BinlogError, BinlogFiles, BinlogName, Chunk, Pins, SpillDir, StreamTail};

/// Batches written before other threads get the writer's lock.
const SLICE_BATCHES: usize = 64;
/// Bytes of a spill file copied before other threads get the writer's lock.
const COPIED_BYTES: u64 = 256 << 10;
/// Maximum pause of the thread between two slices of a copy.
const REST_MAX: Duration = Duration::from_millis(20);
/// Poll interval of a caller that waits for bytes which have not been handed over yet.
const ARRIVAL_POLL: Duration = Duration::from_millis(1);

/// Settings of the binlog file writer.
#[derive(Clone, Copy, Debug)]
pub struct BinlogFileWriterOptions {
    /// Delay between hand-over and writing.
    pub delay: Duration,
    /// Maximum queued bytes; a caller that hands over more waits.
    pub queue_bytes_max: usize,
    /// Pause before a retry when the disk is full.
    pub retry: Duration,
    /// Number of the newest bytes kept in memory for readers.
    pub tail_bytes_max: usize,
}

impl Default for BinlogFileWriterOptions {
    fn default() -> BinlogFileWriterOptions {
        BinlogFileWriterOptions {
            delay: Duration::from_millis(5),
            queue_bytes_max: 64 << 20,
            retry: Duration::from_millis(500),
            tail_bytes_max: 8 << 20,
        }
    }
}

/// State of the writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BinlogWriterStatus {
    /// Writing or idle.
    Running,
    /// Waiting for space. New writes should be refused until this ends.
    NoSpace,
    /// A permanent error: the server must stop. No data is lost, because the log holds the bytes.
    Failed(String),
}

/// The background writer of the binlog files.
pub struct BinlogFileWriter {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    is_threaded: AtomicBool,
}

struct Shared {
    /// Held during a sync.
    syncing: Mutex<()>,
    writer: Mutex<Writer>,
    queue: Mutex<Queue>,
    /// Notified when the queue is no longer empty, or when the thread must end.
    wake: Condvar,
    /// Notified when the queue has space.
    has_space: Condvar,
    /// Number of binlog resets, each of which restarts the stream.
    restarts: AtomicU64,
    /// Bytes in spill files that were handed over and not removed yet.
    spilled_bytes: AtomicU64,
    /// Written under the queue's lock, read by every commit.
    is_without_space: AtomicBool,
    options: BinlogFileWriterOptions,
    spill: Arc<SpillDir>,
    tail: StreamTail,
    /// Readers of the files.
    pins: Pins,
    name: BinlogName,
}

/// Protected by the writer's lock: the thread that holds the lock writes.
struct Writer {
    files: BinlogFiles,
    /// Batches taken from the queue and not completely written.
    rest: VecDeque<Arc<Batch>>,
    /// Progress in the first of them; `None` at its beginning.
    place: Option<BatchPlace>,
    /// Spill files whose copies are not synced yet, with their bytes.
    copied: Vec<(String, u64)>,
}

/// Progress in a batch that is being written.
#[derive(Clone, Copy, Default)]
struct BatchPlace {
    chunk: usize,
    /// Bytes of inline chunks that are written.
    inline_bytes: usize,
    copy: CopyPlace,
}

/// Protected by the queue's lock.
struct Queue {
    batches: VecDeque<Arc<Batch>>,
    /// Bytes handed over and not passed to the files yet.
    bytes: usize,
    /// Bytes buffered by the files; nonzero only while there is no space.
    buffered_bytes: usize,
    status: BinlogWriterStatus,
    written: Option<BinlogPos>,
    synced: Option<BinlogPos>,
    ending: bool,
}

impl BinlogFileWriter {
    /// Starts the background thread.
    pub fn start(
        files: BinlogFiles,
        spill: Arc<SpillDir>,
        options: BinlogFileWriterOptions,
    ) -> BinlogFileWriter {
        let file_writer = BinlogFileWriter::stepped(files, spill, options);
        let shared = file_writer.shared.clone();
        let run = move || {
            // If the thread died, the queue would fill up and leaders would wait forever.
            let guard = AbortOnUnwind::during("the writing of binary log files");
            shared.run();
            guard.disarm();
        };
        let thread = thread::Builder::new().name("binlog-files".to_owned()).spawn(run);
        *file_writer.thread.lock() = Some(thread.expect("the system lets a server start its threads"));
        file_writer.is_threaded.store(true, Ordering::Relaxed);
        file_writer
    }

    /// Creates a binlog file writer without a thread: only `step`, `catch_up` and `sync` write. For tests.
    pub fn stepped(
        files: BinlogFiles,
        spill: Arc<SpillDir>,
        options: BinlogFileWriterOptions,
    ) -> BinlogFileWriter {
        let queue = Queue {
            batches: VecDeque::new(),
            bytes: 0,
            buffered_bytes: 0,
            status: BinlogWriterStatus::Running,
            written: files.end(),
            synced: files.synced(),
            ending: false,
        };
        let (pins, name) = (files.pins().clone(), files.name().clone());
        let writer = Writer { files, rest: VecDeque::new(), place: None, copied: Vec::new() };
        let shared = Shared {
            syncing: Mutex::new(()),
            writer: Mutex::new(writer),
            queue: Mutex::new(queue),
            wake: Condvar::new(),
            has_space: Condvar::new(),
            restarts: AtomicU64::new(0),
            spilled_bytes: AtomicU64::new(0),
            is_without_space: AtomicBool::new(false),
            options,
            spill,
            tail: StreamTail::new(options.tail_bytes_max),
            pins,
            name,
        };
        BinlogFileWriter {
            shared: Arc::new(shared),
            thread: Mutex::new(None),
            is_threaded: AtomicBool::new(false),
        }
    }

    /// Hands over durable chunks, in order. They are visible in the tail at once, and in the files a little
    /// later. With a background thread, waits while the queue is full, but not for disk space: the caller is
    /// a leader, and the writes refused at prepare meanwhile bound the queue.
    pub fn submit(&self, batch: Batch) {
        let spilled = batch.chunks.iter().filter(|chunk| chunk.content != Content::Inline);
        self.shared.spilled_bytes.fetch_add(spilled.map(|chunk| chunk.len).sum(), Ordering::Relaxed);
        let batch = Arc::new(batch);
        self.shared.tail.push(&batch);
        let mut queue = self.shared.queue.lock();
        while self.is_threaded.load(Ordering::Relaxed)
            && queue.bytes >= self.shared.options.queue_bytes_max
            && queue.status == BinlogWriterStatus::Running
        {
            self.shared.wake.notify_one();
            self.shared.has_space.wait(&mut queue);
        }
        let was_empty = queue.batches.is_empty();
        queue.bytes += batch.bytes.len();
        queue.batches.push_back(batch);
        drop(queue);
        if was_empty {
            self.shared.wake.notify_one();
        }
    }

    /// Writes a batch on the caller's thread and syncs it. Readers do not see it before
    /// [`BinlogFileWriter::show`]. For files that decide which transactions are committed: each file is
    /// synced before the next one is written, so only the newest can be torn. Must not be mixed with
    /// [`BinlogFileWriter::submit`]. If there is no space, the same batch may be passed again.
    pub fn write_synced(&self, batch: &Batch) -> Result<(), BinlogError> {
        let shared = &*self.shared;
        let _syncing = shared.syncing.lock();
        shared.check_failed()?;
        let (pending, copied) = {
            let mut writer = shared.writer.lock();
            match writer.write_in_order(batch, &shared.spill) {
                Ok(pending) => (pending, std::mem::take(&mut writer.copied)),
                Err(error) => return shared.publish(&writer, 0, Err(error)),
            }
        };
        let outcome = pending.run();
        let mut writer = shared.writer.lock();
        if outcome.is_ok() {
            writer.files.end_sync(&pending);
            for (name, _) in copied {
                shared.spill.remove_copied(&name);
            }
        }
        shared.publish(&writer, 0, outcome)
    }

    /// Makes a batch written by [`BinlogFileWriter::write_synced`] visible to readers of the stream.
    pub fn show(&self, batch: Batch) {
        let Some(last) = batch.chunks.last() else { return };
        {
            let mut writer = self.shared.writer.lock();
            writer.files.show_to(last.end());
            self.shared.queue.lock().written = writer.files.shown_end();
        }
        self.shared.tail.push(&Arc::new(batch));
    }

    /// Returns the newest bytes, for readers that follow the stream.
    pub fn tail(&self) -> &StreamTail {
        &self.shared.tail
    }

    /// Writes everything handed over so far, on this thread.
    pub fn step(&self) -> Result<(), BinlogError> {
        let mut writer = self.shared.writer.lock();
        self.shared.drain(&mut writer)
    }

    /// Returns the number of binlog resets. A reset invalidates all earlier positions.
    pub fn restarts(&self) -> u64 {
        self.shared.restarts.load(Ordering::SeqCst)
    }

    /// Returns when the files hold everything up to `pos`, or when the binlog was reset. `pos` belongs to the
    /// stream after `restarts` resets. Returns an error if the files cannot be written: no space, or failed.
    pub fn catch_up(&self, pos: BinlogPos, restarts: u64) -> Result<(), BinlogError> {
        loop {
            self.step()?;
            if self.restarts() != restarts || self.written().is_some_and(|written| written >= pos) {
                return Ok(());
            }
            if !self.is_threaded.load(Ordering::Relaxed) {
                return Err(BinlogError::NotThere { pos });
            }
            thread::sleep(ARRIVAL_POLL);
        }
    }

    /// Writes and syncs everything handed over so far. Returns the synced position, for the log's checkpoint.
    pub fn sync(&self) -> Result<Option<BinlogPos>, BinlogError> {
        self.shared.sync()
    }

    /// Removes all files: a binlog reset. The stream starts again with the next batch. The caller guarantees
    /// that everything is synced, and that there are no hand-overs and no readers meanwhile.
    pub fn remove_all(&self) -> Result<(), BinlogError> {
        let _syncing = self.shared.syncing.lock();
        let mut writer = self.shared.writer.lock();
        self.shared.drain(&mut writer)?;
        let outcome = writer.files.remove_all();
        self.shared.tail.clear();
        self.shared.restarts.fetch_add(1, Ordering::SeqCst);
        self.shared.publish(&writer, 0, outcome)
    }

    /// Returns the position up to which readers can read the files. Batches of files that decide on commits
    /// count when they are shown.
    pub fn written(&self) -> Option<BinlogPos> {
        self.shared.queue.lock().written
    }

    /// Returns the position up to which the files are synced; the log must keep later bytes.
    pub fn synced(&self) -> Option<BinlogPos> {
        self.shared.queue.lock().synced
    }

    /// Returns the state of the writer.
    pub fn status(&self) -> BinlogWriterStatus {
        self.shared.queue.lock().status.clone()
    }

    /// Returns whether the files wait for space and new writes must be refused. Cheap: called for every
    /// commit.
    pub fn is_without_space(&self) -> bool {
        self.shared.is_without_space.load(Ordering::Relaxed)
    }

    /// Returns the bytes of spill files that the next [`BinlogFileWriter::sync`] can remove.
    pub fn spilled_bytes(&self) -> u64 {
        self.shared.spilled_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes handed over and not written yet.
    pub fn backlog_bytes(&self) -> usize {
        let queue = self.shared.queue.lock();
        queue.bytes + queue.buffered_bytes
    }

    /// Runs `f` with the files between two batches: SHOW BINARY LOGS, purge, readers.
    pub fn with_files<R>(&self, f: impl FnOnce(&mut BinlogFiles) -> R) -> R {
        let mut writer = self.shared.writer.lock();
        while writer.place.is_some() {
            // The status reports an error to callers; after one, the batch is at its beginning again.
            let _ = self.shared.write_slice(&mut writer);
        }
        f(&mut writer.files)
    }

    /// Returns the naming scheme of the files.
    pub fn name(&self) -> &BinlogName {
        &self.shared.name
    }

    /// Returns the registry of the files' readers.
    pub fn pins(&self) -> &Pins {
        &self.shared.pins
    }

    /// Writes the rest, clears the in-use mark, syncs and ends the thread. Call after
    /// [`crate::Stream::stop`].
    pub fn close(&self) -> Result<(), BinlogError> {
        self.end_thread();
        let mut writer = self.shared.writer.lock();
        self.shared.drain(&mut writer)?;
        writer.files.close()?;
        drop(writer);
        self.shared.sync().map(drop)
    }

    fn end_thread(&self) {
        if let Some(thread) = self.thread.lock().take() {
            self.is_threaded.store(false, Ordering::Relaxed);
            self.shared.queue.lock().ending = true;
            self.shared.wake.notify_all();
            thread.join().expect("its panic ends the process");
        }
    }
}

impl Drop for BinlogFileWriter {
    fn drop(&mut self) {
        self.end_thread();
    }
}

impl Writer {
    /// Writes a batch; syncs the previous file before starting a new one.
    fn write_in_order(&mut self, batch: &Batch, spill: &SpillDir) -> Result<PendingSync, BinlogError> {
        let mut inline = batch.bytes.as_slice();
        for chunk in &batch.chunks {
            if chunk.pos.offset == 0 {
                self.files.sync()?;
            }
            self.files.apply(chunk, &mut inline, spill)?;
            note_copied(&mut self.copied, chunk);
        }
        self.files.begin_sync()
    }

    /// Writes the first batch of `rest`, up to the end of one slice of a copy. Returns true if the batch is
    /// complete. After `NoSpace` the whole batch is written again; bytes that are present stay as they are.
    fn write_some(&mut self, spill: &SpillDir) -> Result<bool, BinlogError> {
        let mut place = self.place.take().unwrap_or_default();
        let batch = self.rest.front().expect("looked at by the caller");
        while let Some(chunk) = batch.chunks.get(place.chunk) {
            let mut inline = &batch.bytes[place.inline_bytes..];
            if !self.files.apply_some(chunk, &mut inline, spill, &mut place.copy, COPIED_BYTES)? {
                self.place = Some(place);
                return Ok(false);
            }
            note_copied(&mut self.copied, chunk);
            let inline_bytes = batch.bytes.len() - inline.len();
            place = BatchPlace { chunk: place.chunk + 1, inline_bytes, ..BatchPlace::default() };
        }
        Ok(true)
    }
}

impl Shared {
    /// Runs the background thread.
    fn run(&self) {
        loop {
            let mut queue = self.queue.lock();
            while queue.batches.is_empty() && queue.status == BinlogWriterStatus::Running && !queue.ending {
                self.wake.wait(&mut queue);
            }
            let pause = match queue.status {
                BinlogWriterStatus::Running => self.options.delay,
                BinlogWriterStatus::NoSpace => self.options.retry,
                BinlogWriterStatus::Failed(_) => return,
            };
            if queue.ending {
                return;
            }
            if queue.bytes < self.options.queue_bytes_max {
                self.wake.wait_for(&mut queue, pause);
            }
            drop(queue);
            // The status reports the error to callers.
            let _ = self.drain_throttled();
        }
    }

    /// Returns whether the queue is filling up or ending.
    fn is_hurried(&self) -> bool {
        let queue = self.queue.lock();
        queue.ending || queue.bytes > self.options.queue_bytes_max / 2
    }

    /// Writes everything handed over before the call.
    fn drain(&self, writer: &mut MutexGuard<'_, Writer>) -> Result<(), BinlogError> {
        self.drain_with(writer, &mut |writer, _| MutexGuard::bump(writer))
    }

    /// Like `drain`, for the background thread: pauses between the slices of a copy.
    fn drain_throttled(&self) -> Result<(), BinlogError> {
        self.drain_with(&mut self.writer.lock(), &mut |writer, worked| match writer.place.is_some()
            && !self.is_hurried()
        {
            true => MutexGuard::unlocked(writer, || thread::sleep(throttle_pause(worked, REST_MAX))),
            false => MutexGuard::bump(writer),
        })
    }

    /// Calls `between` after each slice, with the duration of the slice, so that other threads get the
    /// writer's lock.
    fn drain_with(
        &self,
        writer: &mut MutexGuard<'_, Writer>,
        between: &mut dyn FnMut(&mut MutexGuard<'_, Writer>, Duration),
    ) -> Result<(), BinlogError> {
        self.check_failed()?;
        writer.rest.append(&mut self.queue.lock().batches);
        while !writer.rest.is_empty() {
            let began = Instant::now();
            self.write_slice(writer)?;
            if !writer.rest.is_empty() {
                between(writer, began.elapsed());
                self.check_failed()?;
            }
        }
        let outcome = writer.files.flush();
        self.publish(writer, 0, outcome)
    }

    fn check_failed(&self) -> Result<(), BinlogError> {
        match &self.queue.lock().status {
            BinlogWriterStatus::Failed(why) => Err(BinlogError::Failed(why.clone())),
            _ => Ok(()),
        }
    }

    fn write_slice(&self, writer: &mut Writer) -> Result<(), BinlogError> {
        let mut bytes = 0;
        let mut outcome = Ok(());
        for _ in 0..SLICE_BATCHES {
            if writer.rest.is_empty() {
                break;
            }
            match writer.write_some(&self.spill) {
                Ok(true) => bytes += writer.rest.pop_front().expect("it is done").bytes.len(),
                Ok(false) => break,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        self.publish(writer, bytes, outcome)
    }

    fn sync(&self) -> Result<Option<BinlogPos>, BinlogError> {
        let _syncing = self.syncing.lock();
        let (pending, copied) = {
            let mut writer = self.writer.lock();
            self.drain(&mut writer)?;
            match writer.files.begin_sync() {
                Ok(pending) => (pending, std::mem::take(&mut writer.copied)),
                Err(error) => return self.publish(&writer, 0, Err(error)).map(|()| None),
            }
        };
        let outcome = pending.run();
        let mut writer = self.writer.lock();
        if outcome.is_ok() {
            writer.files.end_sync(&pending);
            for (name, bytes) in copied {
                self.spill.remove_copied(&name);
                // A batch that was written twice because of missing space counts once.
                let less = |spilled: u64| Some(spilled.saturating_sub(bytes));
                let _ = self.spilled_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        }
        self.publish(&writer, 0, outcome)?;
        Ok(writer.files.synced())
    }

    fn publish(
        &self,
        writer: &Writer,
        bytes: usize,
        outcome: Result<(), BinlogError>,
    ) -> Result<(), BinlogError> {
        let mut queue = self.queue.lock();
        queue.bytes -= bytes;
        queue.buffered_bytes = writer.files.buffered_bytes();
        // Readers get complete batches: a file that ends inside an event looks damaged to them. Buffered
        // bytes may be the end of an event.
        if outcome.is_ok() && writer.place.is_none() && queue.buffered_bytes == 0 {
            queue.written = writer.files.shown_end();
        }
        queue.synced = writer.files.synced();
        queue.status = match &outcome {
            // Permanent, even if another caller could still write.
            _ if matches!(queue.status, BinlogWriterStatus::Failed(_)) => queue.status.clone(),
            Ok(()) => BinlogWriterStatus::Running,
            Err(BinlogError::NoSpace { .. }) => BinlogWriterStatus::NoSpace,
            Err(err) => BinlogWriterStatus::Failed(err.to_string()),
        };
        self.is_without_space.store(queue.status == BinlogWriterStatus::NoSpace, Ordering::Relaxed);
        drop(queue);
        self.has_space.notify_all();
        outcome
    }
}

/// Notes that the spill file can be removed once its copy is synced.
fn note_copied(copied: &mut Vec<(String, u64)>, chunk: &Chunk) {
    if let Content::Spilled(spilled) = &chunk.content {
        match copied.iter_mut().find(|(name, _)| *name == spilled.name) {
            Some((_, bytes)) => *bytes += chunk.len,
            None => copied.push((spilled.name.clone(), chunk.len)),
        }
    }
}
