//! Incremental writeback (`WritebackFile`): bulk writes that do not delay the syncs of other files.
//!
//! Written data stays in the page cache until a sync, or until the kernel decides to write back a large
//! amount at once. The sync of another file on the same disk then waits for all of it. A [`WritebackFile`]
//! starts the writeback after every 128 KiB and waits for its completion, so other syncs wait for at most
//! that amount. Data written with [`WritebackFile::write_at_once`] is excluded: the kernel or the next sync
//! writes it.
//!
//! # On failure
//! The kernel reports each lost write only once, and may report it to a writeback step instead of a sync.
//! From then on the file counts as lost: all later writes and syncs of it fail. A sync that runs concurrently
//! with a writeback step waits for that step before it returns success, because the step may have received
//! the error of a write that the sync covers. The error is never "no space", after which a caller might
//! retry.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::{File, SharedFile};

/// Bytes of one writeback step.
const STEP_BYTES: u64 = 128 << 10;

/// Ranges written but not yet submitted for writeback.
#[derive(Default)]
struct Unsent {
    ranges: Vec<Range<u64>>,
    bytes: u64,
}

impl Unsent {
    /// Adds a written range. Returns the ranges to write back if they amount to a step.
    fn add(&mut self, written: Range<u64>) -> Option<Vec<Range<u64>>> {
        self.bytes += written.end - written.start;
        match self.ranges.last_mut().filter(|last| last.end == written.start) {
            Some(last) => last.end = written.end,
            None => self.ranges.push(written),
        }
        (self.bytes >= STEP_BYTES).then(|| std::mem::take(self).ranges)
    }
}

/// A file with the ranges that are not yet submitted for writeback.
pub struct WritebackFile {
    file: SharedFile,
    unsent: Mutex<Unsent>,
    is_lost: AtomicBool,
    /// Held shared during a writeback step, until `is_lost` has its result.
    sending: RwLock<()>,
}

impl WritebackFile {
    /// Wraps a file. All writes that need incremental writeback must go through this value.
    pub fn new(file: SharedFile) -> WritebackFile {
        WritebackFile {
            file,
            unsent: Mutex::default(),
            is_lost: AtomicBool::new(false),
            sending: RwLock::new(()),
        }
    }

    /// Writes without incremental writeback: for small writes that other threads wait for.
    pub fn write_at_once(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check()?;
        self.file.write_at(bytes, offset)
    }

    fn send_step(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        let _sending = self.sending.read();
        self.file.send(ranges).map_err(|error| {
            self.is_lost.store(true, Ordering::Release);
            io::Error::other(format!("a write was lost: {error}"))
        })
    }

    /// Returns an error if a write was lost.
    fn check(&self) -> io::Result<()> {
        match self.is_lost.load(Ordering::Acquire) {
            true => Err(io::Error::other("an earlier write to the file was lost")),
            false => Ok(()),
        }
    }

    /// Like `check`, but first waits for the running writeback steps.
    fn check_after_sends(&self) -> io::Result<()> {
        drop(self.sending.write());
        self.check()
    }
}

impl File for WritebackFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn try_read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.file.try_read_at(buf, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut at = offset;
        for piece in bytes.chunks(STEP_BYTES as usize) {
            self.write_at_once(piece, at)?;
            let end = at + piece.len() as u64;
            let step = self.unsent.lock().add(at..end);
            if let Some(ranges) = step {
                self.send_step(&ranges)?;
            }
            at = end;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        self.file.sync_data()?;
        self.check_after_sends()
    }

    fn sync_earlier_writes(&self) -> io::Result<()> {
        self.check()?;
        self.file.sync_earlier_writes()?;
        self.check_after_sends()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::{Fault, FaultFs, Fs, MemFs, OpenMode, is_no_space};

    fn open(fs: &FaultFs) -> WritebackFile {
        WritebackFile::new(fs.open(Path::new("/f"), OpenMode::CreateNew).expect("a new file"))
    }

    #[test]
    fn a_step_is_sent_when_it_is_full() {
        let fs = FaultFs::new(Arc::new(MemFs::new()));
        let file = open(&fs);
        let before = fs.ops();
        let piece = vec![1; STEP_BYTES as usize / 4];
        for n in 0..8 {
            file.write_at(&piece, n * piece.len() as u64).expect("written");
        }
        assert_eq!(fs.ops() - before, 8 + 2, "two of eight quarters fill a step");
        file.write_at_once(&vec![2; 2 * STEP_BYTES as usize], 0).expect("written");
        assert_eq!(fs.ops() - before, 8 + 2 + 1, "a write at once waits for no step");
        file.write_at(&vec![3; 2 * STEP_BYTES as usize + 1], 0).expect("written");
        assert_eq!(fs.ops() - before, 8 + 2 + 1 + 3 + 2, "a long write is sent in steps");
        let mut read = vec![0; 2 * STEP_BYTES as usize + 1];
        file.read_at(&mut read, 0).expect("read");
        assert!(read.iter().all(|byte| *byte == 3));
    }

    #[test]
    fn a_step_sends_what_was_written_in_bulk_and_nothing_else() {
        let mut unsent = Unsent::default();
        assert!(unsent.add(0..1000).is_none() && unsent.add(1000..5000).is_none());
        assert!(unsent.add(9000..10_000).is_none(), "what lies between was written at once");
        let sent = unsent.add(20_000..20_000 + STEP_BYTES);
        assert_eq!(sent, Some(vec![0..5000, 9000..10_000, 20_000..20_000 + STEP_BYTES]));
        assert_eq!((unsent.bytes, unsent.ranges.len()), (0, 0));
    }

    /// The kernel reports a lost write once, so no later sync may return success.
    #[test]
    fn a_file_that_has_lost_a_write_is_never_synced_again() {
        for kind in [io::ErrorKind::Other, io::ErrorKind::StorageFull] {
            let fs = FaultFs::new(Arc::new(MemFs::new()));
            let file = open(&fs);
            fs.set(Fault::ErrorAt(fs.ops() + 1, kind));
            let error = file.write_at(&vec![1; STEP_BYTES as usize], 0).expect_err("it is lost");
            assert!(!is_no_space(&error), "it cannot be tried again");
            for again in [
                file.sync_data(),
                file.sync_earlier_writes(),
                file.write_at(b"x", 0),
                file.write_at_once(b"x", 0),
            ] {
                assert!(!is_no_space(&again.expect_err("it stays lost")));
            }
        }
    }
}
