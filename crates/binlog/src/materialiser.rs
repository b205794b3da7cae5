//! Writes hardened chunks to the binlog files, behind the commits.
//!
//! # Concepts
//!
//! - The log is what makes a commit durable; the files are for readers. So they are written by a lazy thread
//!   that wakes a few milliseconds after bytes were handed over, and writes many groups with one call.
//! - [`Materialiser::catch_up`] writes on the caller's thread: a caller that needs the files now does the
//!   work itself, and there is one way of writing, with a background thread or without.
//! - Syncs happen at [`Materialiser::sync`] (checkpoint), without the writer's lock. What is not synced is
//!   still in the log (I7): the caller lets the log go only up to what `sync` answered.
//! - A backlog is written in slices, and whoever waits for the writer's lock gets it between two of them.
//! - A large transaction is copied in slices, too. The thread rests between two of them: nobody waits for
//!   it, and commits are to go on beside it. A caller that needs the files copies what is left without a
//!   rest, and gets them between two batches.
//! - The spill file of a large transaction is removed after the sync that covers its copy.
//!
//! # Invariants
//!
//! - Batches are written in the order they were handed over: both the thread and the callers take them out of
//!   the queue under the writer's lock.
//! - Only hardened bytes are handed over (I3).
//! - `written` is the end of a batch: readers follow it without the writer's lock.
//!
//! # Lock order
//!
//! syncing, writer, queue. `submit` takes only the queue. No lock is held while waiting for space.
//!
//! # On failure
//!
//! No space: the rest stays queued, the status says so, the thread tries again after a pause. Any other error
//! ends the writing for good (`Failed`); the log keeps everything, so the next start completes the files.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cohort_base::{BinlogPos, NoUnwind, rest_after};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::chunk::Content;
use crate::files::PendingSync;
use crate::spill::CopyPlace;
use crate::{BinlogError, BinlogFiles, BinlogName, Chunk, Pins, SpillDir, StreamTail};

/// Batches that are written before others get the writer's lock.
const SLICE_BATCHES: usize = 64;
/// Bytes of a spill file that are copied before others get it.
const COPIED_BYTES: u64 = 256 << 10;
/// The thread rests so long at once between two steps of a copy.
const REST_MAX: Duration = Duration::from_millis(20);
/// Pause of a caller that waits for bytes which are still on their way.
const ARRIVAL_POLL: Duration = Duration::from_millis(1);

/// Settings of the materialiser.
#[derive(Clone, Copy, Debug)]
pub struct MaterialiserOptions {
    /// How long handed-over bytes may lie before they are written.
    pub delay: Duration,
    /// Bytes that may lie; a caller that hands over more waits.
    pub queue_bytes_max: usize,
    /// Pause before writing is tried again without space.
    pub retry: Duration,
    /// Newest bytes that stay in memory for readers.
    pub tail_bytes_max: usize,
}

impl Default for MaterialiserOptions {
    fn default() -> MaterialiserOptions {
        MaterialiserOptions {
            delay: Duration::from_millis(5),
            queue_bytes_max: 64 << 20,
            retry: Duration::from_millis(500),
            tail_bytes_max: 8 << 20,
        }
    }
}

/// Chunks of one flush group, hardened. `bytes` are those of the inline chunks.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Places.
    pub chunks: Vec<Chunk>,
    /// Bytes.
    pub bytes: Vec<u8>,
}

/// What the writer is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaterialiseStatus {
    /// Writing, or nothing to do.
    Running,
    /// Waiting for space; new writes should be refused until this ends.
    NoSpace,
    /// An error that does not go away; the server must stop. Nothing is lost: the log holds the bytes.
    Failed(String),
}

/// The writer of the files.
pub struct Materialiser {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    is_threaded: AtomicBool,
}

struct Shared {
    /// Held during a sync.
    syncing: Mutex<()>,
    writer: Mutex<Writer>,
    queue: Mutex<Queue>,
    /// The queue is no longer empty, or the thread must end.
    wake: Condvar,
    /// The queue has room.
    room: Condvar,
    /// How often the stream has begun anew.
    restarts: AtomicU64,
    /// Bytes of spill files that were handed over and are still there.
    spilled_bytes: AtomicU64,
    /// Written under the queue's lock, read by every commit.
    is_without_space: AtomicBool,
    options: MaterialiserOptions,
    spill: Arc<SpillDir>,
    tail: StreamTail,
    /// The files' readers.
    pins: Pins,
    name: BinlogName,
}

/// Under the writer's lock: its holder writes.
struct Writer {
    files: BinlogFiles,
    /// Taken out of the queue and not wholly written.
    rest: VecDeque<Arc<Batch>>,
    /// In the first one of them; none: at its beginning.
    place: Option<BatchPlace>,
    /// Spill files whose copies are not synced yet, and their bytes.
    copied: Vec<(String, u64)>,
}

/// What comes next of a batch that is being written.
#[derive(Clone, Copy, Default)]
struct BatchPlace {
    chunk: usize,
    /// Bytes of inline chunks that are done.
    inline_bytes: usize,
    copy: CopyPlace,
}

/// Under the queue's lock.
struct Queue {
    batches: VecDeque<Arc<Batch>>,
    /// Bytes handed over and not given to the files.
    bytes: usize,
    /// Bytes that the files hold in memory; not 0 only without space.
    buffered_bytes: usize,
    status: MaterialiseStatus,
    written: Option<BinlogPos>,
    synced: Option<BinlogPos>,
    ending: bool,
}

impl Materialiser {
    /// Starts the background thread.
    pub fn start(files: BinlogFiles, spill: Arc<SpillDir>, options: MaterialiserOptions) -> Materialiser {
        let materialiser = Materialiser::stepped(files, spill, options);
        let shared = materialiser.shared.clone();
        let run = move || {
            // Without it the queue would fill up, and leaders wait for ever.
            let guard = NoUnwind::during("the writing of binary log files");
            shared.run();
            guard.passed();
        };
        let thread = thread::Builder::new().name("binlog-files".to_owned()).spawn(run);
        *materialiser.thread.lock() = Some(thread.expect("the system lets a server start its threads"));
        materialiser.is_threaded.store(true, Ordering::Relaxed);
        materialiser
    }

    /// Without a thread: only `step`, `catch_up` and `sync` write. For tests.
    pub fn stepped(files: BinlogFiles, spill: Arc<SpillDir>, options: MaterialiserOptions) -> Materialiser {
        let queue = Queue {
            batches: VecDeque::new(),
            bytes: 0,
            buffered_bytes: 0,
            status: MaterialiseStatus::Running,
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
            room: Condvar::new(),
            restarts: AtomicU64::new(0),
            spilled_bytes: AtomicU64::new(0),
            is_without_space: AtomicBool::new(false),
            options,
            spill,
            tail: StreamTail::new(options.tail_bytes_max),
            pins,
            name,
        };
        Materialiser {
            shared: Arc::new(shared),
            thread: Mutex::new(None),
            is_threaded: AtomicBool::new(false),
        }
    }

    /// Hands over hardened chunks, in order: to the tail at once, to the files a little later. Waits while
    /// the queue is full (threaded only), but not for space: the caller leads, and what is refused at prepare
    /// meanwhile bounds the queue.
    pub fn submit(&self, batch: Batch) {
        let spilled = batch.chunks.iter().filter(|chunk| chunk.content != Content::Inline);
        self.shared.spilled_bytes.fetch_add(spilled.map(|chunk| chunk.len).sum(), Ordering::Relaxed);
        let batch = Arc::new(batch);
        self.shared.tail.push(&batch);
        let mut queue = self.shared.queue.lock();
        while self.is_threaded.load(Ordering::Relaxed)
            && queue.bytes >= self.shared.options.queue_bytes_max
            && queue.status == MaterialiseStatus::Running
        {
            self.shared.wake.notify_one();
            self.shared.room.wait(&mut queue);
        }
        let was_empty = queue.batches.is_empty();
        queue.bytes += batch.bytes.len();
        queue.batches.push_back(batch);
        drop(queue);
        if was_empty {
            self.shared.wake.notify_one();
        }
    }

    /// Writes a batch on the caller's thread and syncs it. Nobody is shown it before [`Materialiser::show`].
    /// For files that decide what is committed: no byte of a file is written before the file before it is
    /// synced, so only the newest can be torn. Not to be mixed with [`Materialiser::submit`]. Without space
    /// the same batch may be given again.
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
                // What stays behind is removed at the next start.
                let _ = shared.spill.remove(&name);
            }
        }
        shared.publish(&writer, 0, outcome)
    }

    /// Shows a batch that was written by [`Materialiser::write_synced`] to those who read the stream.
    pub fn show(&self, batch: Batch) {
        let Some(last) = batch.chunks.last() else { return };
        {
            let mut writer = self.shared.writer.lock();
            writer.files.show_to(last.end());
            self.shared.queue.lock().written = writer.files.shown_end();
        }
        self.shared.tail.push(&Arc::new(batch));
    }

    /// The newest bytes, for those who follow the stream.
    pub fn tail(&self) -> &StreamTail {
        &self.shared.tail
    }

    /// Writes everything handed over so far, on this thread.
    pub fn step(&self) -> Result<(), BinlogError> {
        let mut writer = self.shared.writer.lock();
        self.shared.drain(&mut writer)
    }

    /// How often the stream has begun anew: positions of before mean nothing any more.
    pub fn restarts(&self) -> u64 {
        self.shared.restarts.load(Ordering::SeqCst)
    }

    /// Comes back when the files hold everything up to `pos` of the stream that has begun anew so many times,
    /// or that stream is gone. An error when they cannot: no space, or failed.
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

    /// Writes and syncs everything handed over so far; answers up to where (for the log's checkpoint).
    pub fn sync(&self) -> Result<Option<BinlogPos>, BinlogError> {
        self.shared.sync()
    }

    /// Removes all files: the stream begins anew with the next batch. Everything before is synced, nobody
    /// hands over bytes meanwhile, and nobody reads.
    pub fn remove_all(&self) -> Result<(), BinlogError> {
        let _syncing = self.shared.syncing.lock();
        let mut writer = self.shared.writer.lock();
        self.shared.drain(&mut writer)?;
        let outcome = writer.files.remove_all();
        self.shared.tail.clear();
        self.shared.restarts.fetch_add(1, Ordering::SeqCst);
        self.shared.publish(&writer, 0, outcome)
    }

    /// Up to where the files hold the stream for readers: what decides is theirs when it is shown.
    pub fn written(&self) -> Option<BinlogPos> {
        self.shared.queue.lock().written
    }

    /// Up to where the files are synced: what the log must not free.
    pub fn synced(&self) -> Option<BinlogPos> {
        self.shared.queue.lock().synced
    }

    /// What the writer is doing.
    pub fn status(&self) -> MaterialiseStatus {
        self.shared.queue.lock().status.clone()
    }

    /// Whether the files wait for space: new writes are to be refused. Cheap, for every commit.
    pub fn is_without_space(&self) -> bool {
        self.shared.is_without_space.load(Ordering::Relaxed)
    }

    /// Bytes of spill files that go with the next [`Materialiser::sync`].
    pub fn spilled_bytes(&self) -> u64 {
        self.shared.spilled_bytes.load(Ordering::Relaxed)
    }

    /// Bytes handed over and not written yet.
    pub fn backlog_bytes(&self) -> usize {
        let queue = self.shared.queue.lock();
        queue.bytes + queue.buffered_bytes
    }

    /// Runs with the files between two batches: SHOW BINARY LOGS, purge, readers.
    pub fn with_files<R>(&self, f: impl FnOnce(&mut BinlogFiles) -> R) -> R {
        let mut writer = self.shared.writer.lock();
        while writer.place.is_some() {
            // The status carries an error to whoever asks; then it stands at the batch's beginning.
            let _ = self.shared.write_slice(&mut writer);
        }
        f(&mut writer.files)
    }

    /// Names of the files.
    pub fn name(&self) -> &BinlogName {
        &self.shared.name
    }

    /// Who reads the files.
    pub fn pins(&self) -> &Pins {
        &self.shared.pins
    }

    /// Writes what is left, clears the in-use mark, syncs and ends the thread. After [`crate::Stream::stop`].
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

impl Drop for Materialiser {
    fn drop(&mut self) {
        self.end_thread();
    }
}

impl Writer {
    /// Writes a batch. The file before is synced before a new one is begun.
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

    /// Writes the first batch of the rest, up to the end of a slice of a copy. True: it is done. After "no
    /// space" it is written again as a whole: what is there already stays as it is.
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
    /// The background thread.
    fn run(&self) {
        loop {
            let mut queue = self.queue.lock();
            while queue.batches.is_empty() && queue.status == MaterialiseStatus::Running && !queue.ending {
                self.wake.wait(&mut queue);
            }
            let pause = match queue.status {
                MaterialiseStatus::Running => self.options.delay,
                MaterialiseStatus::NoSpace => self.options.retry,
                MaterialiseStatus::Failed(_) => return,
            };
            if queue.ending {
                return;
            }
            if queue.bytes < self.options.queue_bytes_max {
                self.wake.wait_for(&mut queue, pause);
            }
            drop(queue);
            // The status carries the error to whoever asks.
            let _ = self.drain_at_leisure();
        }
    }

    /// Whether the queue is about to fill up, or to end.
    fn is_hurried(&self) -> bool {
        let queue = self.queue.lock();
        queue.ending || queue.bytes > self.options.queue_bytes_max / 2
    }

    /// Writes what was handed over before the call.
    fn drain(&self, writer: &mut MutexGuard<'_, Writer>) -> Result<(), BinlogError> {
        self.drain_with(writer, &mut |writer, _| MutexGuard::bump(writer))
    }

    /// The same for the thread, which rests while it copies.
    fn drain_at_leisure(&self) -> Result<(), BinlogError> {
        self.drain_with(&mut self.writer.lock(), &mut |writer, worked| match writer.place.is_some()
            && !self.is_hurried()
        {
            true => MutexGuard::unlocked(writer, || thread::sleep(rest_after(worked, REST_MAX))),
            false => MutexGuard::bump(writer),
        })
    }

    /// `between` lets others have the writer's lock, and gets how long the last slice took.
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
            MaterialiseStatus::Failed(why) => Err(BinlogError::Failed(why.clone())),
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
                // What stays behind is removed at the next start.
                let _ = self.spill.remove(&name);
                // What was written twice, because there was no space at first, counts once.
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
        // Readers get batches as a whole: a file that ends inside an event is damaged to them. What is
        // buffered may be the end of an event.
        if outcome.is_ok() && writer.place.is_none() && queue.buffered_bytes == 0 {
            queue.written = writer.files.shown_end();
        }
        queue.synced = writer.files.synced();
        queue.status = match &outcome {
            // For good, whatever another caller could still write.
            _ if matches!(queue.status, MaterialiseStatus::Failed(_)) => queue.status.clone(),
            Ok(()) => MaterialiseStatus::Running,
            Err(BinlogError::NoSpace { .. }) => MaterialiseStatus::NoSpace,
            Err(err) => MaterialiseStatus::Failed(err.to_string()),
        };
        self.is_without_space.store(queue.status == MaterialiseStatus::NoSpace, Ordering::Relaxed);
        drop(queue);
        self.room.notify_all();
        outcome
    }
}

/// The spill file goes once this copy of it is synced.
fn note_copied(copied: &mut Vec<(String, u64)>, chunk: &Chunk) {
    if let Content::Spilled(spilled) = &chunk.content {
        match copied.iter_mut().find(|(name, _)| *name == spilled.name) {
            Some((_, bytes)) => *bytes += chunk.len,
            None => copied.push((spilled.name.clone(), chunk.len)),
        }
    }
}
