//! Spill files for the caches and the redo of large transactions.
//!
//! A file `NUMBER.redo` holds redo as the engine produced it; the commit record that names the file has its
//! length and checksum. A file `NUMBER.spill` is a sequence of events, each followed by the checksum of the
//! event as it is stored there:
//!
//! ```text
//! { event without checksum | crc32 u32 } ...
//! ```
//!
//! Life of a spill file: it is written while its transaction runs, synced by [`crate::TrxCache::seal`]
//! (before `order`), named by the commit record, copied into the binlog file with positions and final
//! checksums ([`SpillDir::copy_spilled`]), and removed once that part of the binlog file is synced (I7).
//!
//! A name is never reused while the log may refer to it. The log may name files that were removed long ago,
//! so a start continues after the largest number found in the directory or in the log
//! ([`SpillDir::skip_to`]).

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cohort_vfs::{OpenMode, SharedFile, SharedFs, WritebackFile};

use crate::event::{CHECKSUM_LEN, Checksum, EventHeader, HEADER_LEN};
use crate::{BinlogError, SpilledChunk};

const EVENTS_SUFFIX: &str = ".spill";
const REDO_SUFFIX: &str = ".redo";
/// Size of the pieces of a copy.
const COPY_BYTES: usize = 128 << 10;

/// Progress of a copy; the default is its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyPlace {
    events: u64,
    /// Bytes of the copied events without checksums.
    event_bytes: u64,
    source_at: u64,
    out_bytes: u64,
}

/// Callback that receives a piece of a copy and its file offset.
pub type WritePiece<'a> = dyn FnMut(u64, &[u8]) -> Result<(), BinlogError> + 'a;

/// A finished cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// Events without checksums, concatenated.
    Memory {
        /// The events.
        bytes: Vec<u8>,
        /// Number of events.
        events: u64,
    },
    /// Events in a durable spill file.
    File {
        /// File name inside the spill directory.
        name: String,
        /// Number of events.
        events: u64,
        /// Bytes of the events without checksums.
        event_bytes: u64,
    },
}

impl Sealed {
    /// Returns the length in the binlog file.
    pub fn len(&self, checksum: Checksum) -> u64 {
        let (bytes, events) = match self {
            Sealed::Memory { bytes, events } => (bytes.len() as u64, *events),
            Sealed::File { events, event_bytes, .. } => (*event_bytes, *events),
        };
        bytes + events * checksum.len() as u64
    }

    /// Returns whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.len(Checksum::None) == 0
    }
}

/// The directory of spill files. Shared by all sessions.
pub struct SpillDir {
    fs: SharedFs,
    dir: PathBuf,
    next: AtomicU64,
    /// Number of transactions whose events did not fit into memory.
    spilled: AtomicU64,
    /// Files of events are kept when they have been copied, because the archive needs them, too.
    keeps_copied: AtomicBool,
}

impl SpillDir {
    /// Opens the directory, creating it if necessary.
    pub fn open(fs: SharedFs, dir: &Path) -> io::Result<SpillDir> {
        fs.create_dir_all(dir)?;
        let numbers = fs.list(dir)?;
        let last = numbers.iter().filter_map(|name| number(&name.to_string_lossy())).max();
        Ok(SpillDir {
            fs,
            dir: dir.to_owned(),
            next: AtomicU64::new(last.map_or(1, |n| n + 1)),
            spilled: AtomicU64::new(0),
            keeps_copied: AtomicBool::new(false),
        })
    }

    /// Returns the number of transactions whose events did not fit into memory.
    pub fn spilled(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    /// Leaves the removal of events that are in the binlog's files to the caller, and makes all names from
    /// now on differ from those of earlier starts. `start` is larger than at all earlier starts.
    pub fn keep_for_archive(&self, start: u32) {
        self.keeps_copied.store(true, Ordering::Relaxed);
        self.next.fetch_max(u64::from(start) << 32, Ordering::Relaxed);
    }

    /// Removes a file whose events are in the binlog's files, unless its removal was left to the caller of
    /// [`SpillDir::keep_for_archive`].
    pub(crate) fn remove_copied(&self, name: &str) {
        if !self.keeps_copied.load(Ordering::Relaxed) {
            // Leftovers are removed at the next start.
            let _ = self.remove(name);
        }
    }

    /// Reserves this name, which the log refers to, and all lower numbers, whether the files exist or not.
    pub fn skip_to(&self, name: &str) {
        if let Some(number) = number(name) {
            self.next.fetch_max(number + 1, Ordering::Relaxed);
        }
    }

    pub(crate) fn create(self: &Arc<SpillDir>) -> io::Result<SpillFile> {
        let name = self.next_name(EVENTS_SUFFIX);
        let file = Arc::new(WritebackFile::new(
            self.fs.open_for_client(&self.dir.join(&name), OpenMode::CreateNew)?,
        ));
        self.spilled.fetch_add(1, Ordering::Relaxed);
        Ok(SpillFile { dir: self.clone(), name, file, events: 0, event_bytes: 0, keep: false })
    }

    fn next_name(&self, suffix: &str) -> String {
        format!("{:012}{suffix}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Writes redo into a new file and returns its name. Contents and name are durable on return.
    pub fn write_redo(&self, bytes: &[u8]) -> io::Result<String> {
        let name = self.next_name(REDO_SUFFIX);
        let path = self.dir.join(&name);
        let write = || {
            let file = self.fs.open_for_client(&path, OpenMode::CreateNew)?;
            file.write_at(bytes, 0)?;
            file.sync_data()?;
            self.fs.sync_dir(&self.dir)
        };
        match write() {
            Ok(()) => Ok(name),
            Err(error) => {
                // Nothing refers to the file. If it cannot be removed now, the next start removes it.
                let _ = self.fs.remove(&path);
                Err(error)
            }
        }
    }

    /// Creates a redo file that is written in pieces. Returns its name and the file. [`SpillDir::sync_names`]
    /// makes the name durable.
    pub fn create_redo(&self) -> io::Result<(String, SharedFile)> {
        let name = self.next_name(REDO_SUFFIX);
        let file = self.fs.open_for_client(&self.dir.join(&name), OpenMode::CreateNew)?;
        Ok((name, Arc::new(WritebackFile::new(file))))
    }

    /// Makes the names of files durable.
    pub fn sync_names(&self) -> io::Result<()> {
        self.fs.sync_dir(&self.dir)
    }

    /// Returns whether the file exists.
    pub fn exists(&self, name: &str) -> bool {
        self.fs.exists(&self.dir.join(name))
    }

    /// Passes the bytes of a spilled chunk to `write`, with positions and checksums filled in: in order, in
    /// pieces of bounded size, each with its file offset. Starts at `from`, which is advanced, and stops at
    /// the end of the event that reaches `bytes_max`. Returns true if the chunk is complete. Used by the
    /// binlog file writer and by recovery.
    pub fn copy_spilled(
        &self,
        chunk: &SpilledChunk,
        start_offset: u64,
        from: &mut CopyPlace,
        bytes_max: u64,
        write: &mut WritePiece<'_>,
    ) -> Result<bool, BinlogError> {
        let path = self.dir.join(&chunk.name);
        let file = self.fs.open(&path, OpenMode::Read).map_err(|e| BinlogError::io("open", &path, e))?;
        let source = Source { file, path, at: from.source_at };
        let out_at = start_offset + from.out_bytes;
        let mut copy = Copy { source, out_at, piece: Vec::new(), write };
        let mut place = *from;
        let is_over = loop {
            if place.events == chunk.events {
                break true;
            }
            if copy.out_at + copy.piece.len() as u64 - out_at >= bytes_max {
                break false;
            }
            place.event_bytes += copy.event(chunk.checksum)?;
            place.events += 1;
        };
        if is_over && place.event_bytes != chunk.event_bytes {
            return Err(copy.source.damaged("it has another length than its commit record says"));
        }
        copy.flush()?;
        (place.source_at, place.out_bytes) = (copy.source.at, copy.out_at - start_offset);
        *from = place;
        Ok(is_over)
    }

    /// Removes a file that is not needed any more. It is no error if the file does not exist.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match self.fs.remove(&self.dir.join(name)) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
            _ => Ok(()),
        }
    }

    /// Removes the file of a transaction that was sealed but not ordered.
    pub fn discard(&self, sealed: &Sealed) -> io::Result<()> {
        match sealed {
            Sealed::Memory { .. } => Ok(()),
            Sealed::File { name, .. } => self.remove(name),
        }
    }

    /// Removes all other files. Called at start with the names that commit records in the log refer to.
    pub fn retain(&self, names: &HashSet<&str>) -> io::Result<()> {
        for path in self.fs.list(&self.dir)? {
            let name = path.to_string_lossy();
            if is_spill_file(&name) && !names.contains(&*name) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }
}

fn number(name: &str) -> Option<u64> {
    name.strip_suffix(EVENTS_SUFFIX).or_else(|| name.strip_suffix(REDO_SUFFIX))?.parse().ok()
}

fn is_spill_file(name: &str) -> bool {
    number(name).is_some()
}

/// A spill file that is being written. Dropping it before it is sealed removes the file.
pub(crate) struct SpillFile {
    dir: Arc<SpillDir>,
    name: String,
    file: SharedFile,
    events: u64,
    event_bytes: u64,
    keep: bool,
}

impl SpillFile {
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn event_bytes(&self) -> u64 {
        self.event_bytes
    }

    fn file_len(&self) -> u64 {
        self.event_bytes + self.events * CHECKSUM_LEN as u64
    }

    /// Appends finished events.
    pub(crate) fn append(&mut self, bytes: &[u8], events: u64) -> io::Result<()> {
        let mut framed = Vec::with_capacity(bytes.len() + events as usize * CHECKSUM_LEN);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (event, tail) = rest.split_at(event_len(rest));
            framed.extend_from_slice(event);
            framed.extend_from_slice(&crc32fast::hash(event).to_le_bytes());
            rest = tail;
        }
        self.file.write_at(&framed, self.file_len())?;
        self.event_bytes += bytes.len() as u64;
        self.events += events;
        Ok(())
    }

    /// Goes back to a position between two events and truncates the file there.
    pub(crate) fn truncate(&mut self, event_bytes: u64, events: u64) -> io::Result<()> {
        (self.event_bytes, self.events) = (event_bytes, events);
        self.file.set_len(self.file_len())
    }

    /// Makes contents and name durable.
    pub(crate) fn seal(&mut self) -> io::Result<Sealed> {
        self.file.sync_data()?;
        self.dir.fs.sync_dir(&self.dir.dir)?;
        self.keep = true;
        Ok(Sealed::File { name: self.name.clone(), events: self.events, event_bytes: self.event_bytes })
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if !self.keep {
            // If it cannot be removed now, the next start removes it.
            let _ = self.dir.remove(&self.name);
        }
    }
}

/// Returns the length field of an event that this server wrote.
pub(crate) fn event_len(event: &[u8]) -> usize {
    u32::from_le_bytes(event[9..13].try_into().expect("four bytes")) as usize
}

struct Source {
    file: SharedFile,
    path: PathBuf,
    at: u64,
}

impl Source {
    fn read(&mut self, buf: &mut [u8]) -> Result<(), BinlogError> {
        let got = self.file.read_at(buf, self.at).map_err(|e| BinlogError::io("read", &self.path, e))?;
        if got != buf.len() {
            return Err(self.damaged("it ends too early"));
        }
        self.at += got as u64;
        Ok(())
    }

    fn damaged(&self, what: &'static str) -> BinlogError {
        BinlogError::SpillDamaged { path: self.path.clone(), offset: self.at, what }
    }
}

/// A running copy: `piece` holds finished bytes that belong at `out_at`.
struct Copy<'a> {
    source: Source,
    out_at: u64,
    piece: Vec<u8>,
    write: &'a mut WritePiece<'a>,
}

impl Copy<'_> {
    /// Copies one event. Returns its length without checksum.
    fn event(&mut self, checksum: Checksum) -> Result<u64, BinlogError> {
        let mut head = [0; HEADER_LEN];
        self.source.read(&mut head)?;
        let header =
            EventHeader::decode(&head).map_err(|_| self.source.damaged("an event length is impossible"))?;
        let (mut stored, mut fresh) = (crc32fast::Hasher::new(), crc32fast::Hasher::new());
        stored.update(&head);
        let len = header.event_len + checksum.len() as u32;
        let end = self.out_at + self.piece.len() as u64 + u64::from(len);
        head[9..13].copy_from_slice(&len.to_le_bytes());
        head[13..17].copy_from_slice(&(end as u32).to_le_bytes());
        fresh.update(&head);
        self.piece.extend_from_slice(&head);

        let mut left = header.event_len as usize - HEADER_LEN;
        while left > 0 {
            let from = self.piece.len();
            let take = left.min(COPY_BYTES);
            self.piece.resize(from + take, 0);
            self.source.read(&mut self.piece[from..])?;
            stored.update(&self.piece[from..]);
            fresh.update(&self.piece[from..]);
            left -= take;
            if self.piece.len() >= COPY_BYTES {
                self.flush()?;
            }
        }
        let mut crc = [0; CHECKSUM_LEN];
        self.source.read(&mut crc)?;
        if u32::from_le_bytes(crc) != stored.finalize() {
            return Err(self.source.damaged("the checksum of an event is wrong"));
        }
        if checksum == Checksum::Crc32 {
            self.piece.extend_from_slice(&fresh.finalize().to_le_bytes());
        }
        Ok(u64::from(header.event_len))
    }

    fn flush(&mut self) -> Result<(), BinlogError> {
        (self.write)(self.out_at, &self.piece)?;
        self.out_at += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }
}
