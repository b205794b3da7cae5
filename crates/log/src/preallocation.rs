//! Preallocation of segments, and the reservations that wait for it.
//!
//! Segments are preallocated one after the other under the `making` lock: a released one is renamed, or a new
//! one is filled with zeros. A background thread does this in advance; without it (`Preallocation::Inline`)
//! the thread that needs the space does. A waiting caller passes the background thread the end that it needs,
//! because one record may be larger than everything that is kept ready.
//!
//! On failure: lack of disk space is a result (`Full`), and the next `reserve` retries; any other failure
//! poisons the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_vfs::is_no_space;

use crate::options::Preallocation;
use crate::segment;
use crate::shared::Shared;
use crate::{FullCause, LogError};

impl Shared {
    /// Moves `promised` forward by this number of bytes.
    pub(crate) fn reserve_bytes(&self, bytes: u64) -> Result<(), LogError> {
        loop {
            self.check_poison()?;
            let space = &self.space;
            let promised = space.promised.load(Ordering::Acquire);
            let end = promised + bytes;
            if end - space.retained.load(Ordering::Acquire) > self.options.bytes_max {
                return Err(LogError::Full(FullCause::Cap));
            }
            if !space.is_ready(end) {
                self.wait_for_ready(end)?;
                continue;
            }
            let moved =
                space.promised.compare_exchange_weak(promised, end, Ordering::AcqRel, Ordering::Acquire);
            if moved.is_ok() {
                if !space.is_ready(self.wanted_end()) && self.options.preallocation == Preallocation::Thread {
                    space.kick();
                }
                return Ok(());
            }
        }
    }

    /// Returns the LSN up to which segments should be ready.
    fn wanted_end(&self) -> u64 {
        let ahead = self.options.segments_ahead as u64 * self.segments.geometry.capacity();
        self.space.promised.load(Ordering::Acquire) + ahead
    }

    fn wait_for_ready(&self, end: u64) -> Result<(), LogError> {
        let space = &self.space;
        space.waits.fetch_add(1, Ordering::Relaxed);
        if self.options.preallocation == Preallocation::Inline {
            while !space.is_ready(end) {
                self.make_segment()?;
            }
            return Ok(());
        }
        let mut worker = space.worker.lock();
        let full_count = worker.full_count;
        worker.waited_for = worker.waited_for.max(end);
        worker.kicked = true;
        space.work.notify_one();
        while !space.is_ready(end) {
            self.check_poison()?;
            if worker.full_count != full_count {
                return Err(LogError::Full(FullCause::Disk));
            }
            if worker.stop {
                return Err(LogError::Poisoned { cause: "the log was closed".into() });
            }
            space.made.wait(&mut worker);
        }
        Ok(())
    }

    /// Preallocates the next segment.
    pub(crate) fn make_segment(&self) -> Result<(), LogError> {
        let (fs, dir, geometry) = (&self.segments.fs, &self.segments.dir, self.segments.geometry);
        let mut released = self.space.making.lock();
        let start = self.space.ready_end.load(Ordering::Acquire);
        let number = geometry.segment_of(start);
        let made = match released.pop() {
            Some(old) => {
                let made = segment::recycle(fs, self.segments.way(), dir, geometry, old, number);
                match made {
                    Ok(_) => drop(self.space.recycled.fetch_add(1, Ordering::Relaxed)),
                    // The file can be used by the next attempt, unless it already has its new name.
                    Err(_) if fs.exists(&segment::path_of(dir, old)) => released.push(old),
                    Err(_) => {}
                }
                made
            }
            None if fs.free_bytes(dir).is_ok_and(|free| free < geometry.segment_bytes) => {
                return Err(LogError::Full(FullCause::Disk));
            }
            None => {
                self.space.created.fetch_add(1, Ordering::Relaxed);
                segment::create(fs, self.segments.way(), dir, geometry, number)
            }
        };
        match made {
            Ok(file) => {
                self.segments.insert(number, file);
                self.space.ready_end.store(geometry.start_of(number + 1), Ordering::Release);
                Ok(())
            }
            Err(e) if is_no_space(&e) => Err(LogError::Full(FullCause::Disk)),
            Err(e) => Err(self.poison(&LogError::io(&segment::path_of(dir, number), "preallocation", e))),
        }
    }

    /// Releases the segments that neither recovery nor a pin needs.
    pub(crate) fn release(&self) -> Result<(), LogError> {
        let first = self.segments.geometry.segment_of(self.space.kept());
        self.reuse(self.segments.release_below(first))
    }

    /// Takes released segments for reuse, and removes those that are too many. As many as one checkpoint
    /// releases are needed until the next checkpoint. So under a steady load none is removed and none
    /// created, and the log takes no more space than right before a checkpoint.
    pub(crate) fn reuse(&self, numbers: Vec<u64>) -> Result<(), LogError> {
        let mut released = self.space.making.lock();
        let kept = numbers.len().max(self.options.segments_spare_max);
        released.extend(numbers);
        while released.len() > kept {
            let path = segment::path_of(&self.segments.dir, released.pop().expect("not empty"));
            self.segments.fs.remove(&path).map_err(|e| self.poison(&LogError::io(&path, "removing", e)))?;
        }
        Ok(())
    }
}

/// Main function of the background thread.
pub(crate) fn preallocate(shared: &Arc<Shared>) {
    let space = &shared.space;
    loop {
        space.is_notified.store(false, Ordering::Release);
        while space.has_work(shared.wanted_end()) {
            let made = shared.make_segment();
            let mut worker = space.worker.lock();
            if made.is_err() {
                worker.full_count += 1;
            }
            space.made.notify_all();
            if made.is_err() {
                break;
            }
        }
        let mut worker = space.worker.lock();
        while !worker.kicked && !worker.stop {
            space.work.wait(&mut worker);
        }
        if worker.stop {
            return;
        }
        worker.kicked = false;
    }
}
