//! The open segments, and access to the stream across them.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use cohort_vfs::{SharedFile, SharedFs};
use parking_lot::RwLock;

use crate::LogError;
use crate::segment::{self, Geometry, Way};

/// The segments from the one where recovery starts to the last one that is ready, without a gap.
pub(crate) struct Segments {
    pub fs: SharedFs,
    pub dir: PathBuf,
    pub geometry: Geometry,
    /// Segments opened from now on are written through the page cache.
    pub buffered: AtomicBool,
    /// Written when a segment becomes ready or is released; read by flushes and readers.
    files: RwLock<BTreeMap<u64, SharedFile>>,
}

impl Segments {
    /// Opens and checks the segments from `first` on. Also returns the numbers of those below, which are
    /// released.
    pub fn open(
        fs: SharedFs,
        dir: PathBuf,
        geometry: Geometry,
        buffered: bool,
        first: u64,
    ) -> Result<(Segments, Vec<u64>), LogError> {
        let names = fs.list(&dir).map_err(|e| LogError::io(&dir, "listing", e))?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|n| segment::parse_name(n)).collect();
        numbers.sort_unstable();
        let released = numbers.iter().copied().filter(|&n| n < first).collect();
        let mut files = BTreeMap::new();
        let way = Way::of(buffered);
        for (expected, &number) in (first..).zip(numbers.iter().filter(|&&n| n >= first)) {
            if number != expected {
                return Err(LogError::Corrupt {
                    file: segment::path_of(&dir, expected),
                    offset: 0,
                    what: "the segment is missing",
                    cure: segment::RESTORE,
                });
            }
            files.insert(number, segment::open(&fs, way, &dir, geometry, number)?);
        }
        let buffered = AtomicBool::new(buffered);
        Ok((Segments { fs, dir, geometry, buffered, files: RwLock::new(files) }, released))
    }

    /// Makes the contents of the segments from `first` on durable and drops them from the page cache, so that
    /// reads show what is on the disk.
    pub fn settle_from(&self, first: u64) -> Result<(), LogError> {
        for (number, file) in self.files.read().range(first..) {
            let path = || segment::path_of(&self.dir, *number);
            file.sync_earlier_writes().map_err(|e| LogError::io(&path(), "syncing", e))?;
        }
        Ok(())
    }

    /// Gives all blocks of the first and the last segment of a copy space on the disk. A copy has holes
    /// before and after its records, and a write of the log must not lack space, also when the file is
    /// reused.
    pub fn fill_holes(&self, from: u64, durable: u64) -> Result<(), LogError> {
        let (first, last) = (self.geometry.segment_of(from), self.geometry.segment_of(durable));
        for (number, file) in self.files.read().range(first..).filter(|(n, _)| **n == first || **n >= last) {
            let filled = segment::fill_holes(file, self.geometry);
            filled.map_err(|e| LogError::io(&segment::path_of(&self.dir, *number), "filling", e))?;
        }
        Ok(())
    }

    /// Returns how segments are opened now.
    pub fn way(&self) -> Way {
        Way::of(self.buffered.load(Ordering::Relaxed))
    }

    /// Adds a segment that has become ready.
    pub fn insert(&self, number: u64, file: SharedFile) {
        self.files.write().insert(number, file);
    }

    /// Removes the segments below `first` and returns their numbers.
    pub fn release_below(&self, first: u64) -> Vec<u64> {
        let mut files = self.files.write();
        let kept = files.split_off(&first);
        std::mem::replace(&mut *files, kept).into_keys().collect()
    }

    /// Returns the LSN after the last ready segment, or `None` if there is no segment.
    pub fn end(&self) -> Option<u64> {
        let files = self.files.read();
        files.last_key_value().map(|(&last, _)| self.geometry.start_of(last + 1))
    }

    /// Returns the file of a segment.
    pub fn file(&self, number: u64) -> Option<SharedFile> {
        self.files.read().get(&number).cloned()
    }

    /// Returns the file and offset of a byte of the stream, for messages.
    pub fn place_of(&self, lsn: u64) -> (PathBuf, u64) {
        (segment::path_of(&self.dir, self.geometry.segment_of(lsn)), self.geometry.offset_of(lsn))
    }

    /// Reads stream bytes from `lsn`. Returns fewer than requested only where the ready segments begin or
    /// end.
    pub fn read_at(&self, buf: &mut [u8], lsn: u64) -> Result<usize, LogError> {
        let mut done = 0;
        while done < buf.len() {
            let at = lsn + done as u64;
            let number = self.geometry.segment_of(at);
            let Some(file) = self.file(number) else { break };
            let left = self.geometry.start_of(number + 1) - at;
            let n = (left.min((buf.len() - done) as u64)) as usize;
            let read = file.read_at(&mut buf[done..done + n], self.geometry.offset_of(at));
            let read = read.map_err(|e| LogError::io(&segment::path_of(&self.dir, number), "reading", e))?;
            done += read;
            if read < n {
                break;
            }
        }
        Ok(done)
    }

    /// Writes a sequence of whole blocks: one write per segment it touches, then one call of `on_sync` for
    /// each.
    pub fn write_and_sync(
        &self,
        bytes: &[u8],
        lsn: u64,
        mut on_sync: impl FnMut(&SharedFile) -> io::Result<()>,
    ) -> Result<(), LogError> {
        let (mut at, mut rest) = (lsn, bytes);
        let mut written = Vec::with_capacity(2);
        while !rest.is_empty() {
            let number = self.geometry.segment_of(at);
            let path = || segment::path_of(&self.dir, number);
            let file = self.file(number).expect("room was reserved, so the segment is ready");
            let n = (self.geometry.start_of(number + 1) - at).min(rest.len() as u64) as usize;
            file.write_at(&rest[..n], self.geometry.offset_of(at))
                .map_err(|e| LogError::io(&path(), "writing", e))?;
            written.push((number, file));
            at += n as u64;
            rest = &rest[n..];
        }
        for (number, file) in &written {
            on_sync(file).map_err(|e| LogError::io(&segment::path_of(&self.dir, *number), "syncing", e))?;
        }
        Ok(())
    }
}
