//! A file that is written in bulk while others wait for syncs.
//!
//! The system keeps what is written in memory and sends it to the disk in one go: at a sync, or when it
//! thinks that it is time. The sync of another file on that disk then waits for all of it. A [`SteadyFile`]
//! sends what is written on its way at every 128 KiB and waits until it is there, so the syncs of others wait
//! for that much at most. What is written at once beside it is left to the system, or to the next sync.
//!
//! # On failure
//! The system tells each lost write once, and may do so while a step is awaited. The file is lost from then
//! on: all later writes and syncs of it fail. A sync beside a send waits for it before it says that all is
//! well: the send may have taken the word of a write that the sync was to cover. The error is none of a full
//! disk, after which a caller might try again.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::{File, SharedFile};

/// What is sent at once.
const STEP_BYTES: u64 = 128 << 10;

/// What is not on its way yet.
#[derive(Default)]
struct Unsent {
    ranges: Vec<Range<u64>>,
    bytes: u64,
}

impl Unsent {
    /// Something was written. Yields what is to be sent, if that is a step.
    fn add(&mut self, written: Range<u64>) -> Option<Vec<Range<u64>>> {
        self.bytes += written.end - written.start;
        match self.ranges.last_mut().filter(|last| last.end == written.start) {
            Some(last) => last.end = written.end,
            None => self.ranges.push(written),
        }
        (self.bytes >= STEP_BYTES).then(|| std::mem::take(self).ranges)
    }
}

/// The file, and what of it is not on its way yet.
pub struct SteadyFile {
    file: SharedFile,
    unsent: Mutex<Unsent>,
    is_lost: AtomicBool,
    /// Shared by sends, until `is_lost` says what they found.
    sending: RwLock<()>,
}

impl SteadyFile {
    /// All writes of the file that are to be steady go through this one.
    pub fn new(file: SharedFile) -> SteadyFile {
        SteadyFile {
            file,
            unsent: Mutex::default(),
            is_lost: AtomicBool::new(false),
            sending: RwLock::new(()),
        }
    }

    /// Writes without waiting: for small things that others wait for.
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

    /// No write was lost.
    fn check(&self) -> io::Result<()> {
        match self.is_lost.load(Ordering::Acquire) {
            true => Err(io::Error::other("an earlier write to the file was lost")),
            false => Ok(()),
        }
    }

    /// The same, once the sends that are under way have said what they found.
    fn check_behind_sends(&self) -> io::Result<()> {
        drop(self.sending.write());
        self.check()
    }
}

impl File for SteadyFile {
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
        self.check_behind_sends()
    }

    fn settle(&self) -> io::Result<()> {
        self.check()?;
        self.file.settle()?;
        self.check_behind_sends()
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

    fn open(fs: &FaultFs) -> SteadyFile {
        SteadyFile::new(fs.open(Path::new("/f"), OpenMode::CreateNew).expect("a new file"))
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
        assert_eq!(fs.ops() - before, 8 + 2 + 1, "nobody waits for what is written at once");
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

    /// The system tells of a lost write once: no later sync may say that all is well.
    #[test]
    fn a_file_that_has_lost_a_write_is_never_synced_again() {
        for kind in [io::ErrorKind::Other, io::ErrorKind::StorageFull] {
            let fs = FaultFs::new(Arc::new(MemFs::new()));
            let file = open(&fs);
            fs.set(Fault::ErrorAt(fs.ops() + 1, kind));
            let error = file.write_at(&vec![1; STEP_BYTES as usize], 0).expect_err("it is lost");
            assert!(!is_no_space(&error), "it cannot be tried again");
            for again in
                [file.sync_data(), file.settle(), file.write_at(b"x", 0), file.write_at_once(b"x", 0)]
            {
                assert!(!is_no_space(&again.expect_err("it stays lost")));
            }
        }
    }
}
