//! The binlog files of a directory and their index: opening, completion from the log, file change, purge.
//!
//! # Two layouts
//! | | one log | a log for each engine |
//! |---|---|---|
//! | the files are | a copy of the stream in the log (I3): every byte was durable in the log before it is written here | the only place of the events; what they hold decides which transactions are committed |
//! | bytes are written by | the background writer, or a caller that needs them now | the thread that decides the group, which also syncs them |
//! | readers see | everything written | what [`BinlogFiles::show_to`] allows, because written bytes may not be synced yet |
//! | a crash | recovery restores missing bytes from the log | recovery cuts the last file after its last complete transaction |
//!
//! The rest of this text is about both layouts, and "the log" about the first.
//!
//! # Concepts
//! - **Adding bytes**: [`BinlogFiles::apply_chunk`] is the only way, in recovery and in service. It is
//!   idempotent: bytes that are present and equal stay, missing ones are appended, and in recovery different
//!   ones are overwritten.
//! - **File change**: a chunk at offset 0 of the next file. It completes the previous file, clears its in-use
//!   mark, and creates the new file. It usually does not sync, because with small files a backlog contains
//!   many file changes.
//! - **Buffer**: appended bytes are in `buf` until [`BinlogFiles::flush`], which also adds new files to the
//!   index. So one write call serves many commit groups.
//! - **Sync**: covers all files written since the last sync. Until then the log keeps their bytes (I7).
//!
//! # States
//! ```text
//! open --> apply_chunk* from the log --> finish_recovery --> service --> close
//! service: apply_chunk, flush, sync and purge_to, in any order
//! ```
//! - `open` changes no contents, but syncs what no checkpoint has synced: a killed process may have left
//!   bytes and names that are visible and not on disk, and recovery does not write bytes again that it finds
//!   in a file.
//! - `finish_recovery` removes files and bytes after the end of the log, and files that a purge has left.
//!
//! # Invariants
//! - The index names a file before the log frees the bytes of that file, and no longer names it when the file
//!   is removed. A file that the index does not name is an orphan: of a purge if its number is lower than
//!   those of the index, of a crash if it is higher.
//! - A file that the index names and a checkpoint has synced must exist. If it is missing it was lost, and
//!   the server refuses to start.
//! - Only the newest file may be marked as in use or end inside a transaction.
//!
//! # On failure
//! - No space: the operation is undone or can be resumed, and the caller repeats the same call later. A purge
//!   needs some space for the index; if there is none, it first truncates the files to be purged.
//! - A failed sync is never repeated: [`crate::BinlogFileWriter`] stops for good.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::BinlogPos;
use cohort_vfs::{File as _, OpenMode, SharedFile, SharedFs, WritebackFile};

use crate::chunk::{Content, SpilledChunk};
use crate::event::{Event, MAGIC, flags};
use crate::scan::{Reached, Scan, scan};
use crate::spill::CopyPlace;
use crate::{BinlogError, BinlogName, Chunk, EventReader, GtidState, Pins, SpillDir, index};

/// Maximum size of the buffer; the next bytes cause a write.
const BUFFER_BYTES: usize = 512 << 10;
/// Maximum number of closed files that wait for a sync. Each keeps a descriptor.
const UNSYNCED_FILES_MAX: usize = 256;
/// Offset of the flags of the format description in a file.
const IN_USE_AT: u64 = MAGIC.len() as u64 + 17;

/// Extent of the verification when the files are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyScope {
    /// The files from `synced_to` on.
    Tail,
    /// Every file of the index.
    All,
}

/// Options for opening the files.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Files to verify.
    pub verify: VerifyScope,
    /// End of the bytes that the last checkpoint synced. Damage before it is an error, damage after it a torn
    /// tail.
    pub synced_to: BinlogPos,
}

/// State of the end of the last file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// It ends with ROTATE or STOP and is not marked as in use: clean shutdown.
    Closed,
    /// It ends with a complete transaction: no clean shutdown, but nothing is torn.
    Open,
    /// It ends with bytes that are not a complete transaction. Recovery rewrites or truncates them.
    Torn,
}

/// State of the files when they were opened.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// End of the last complete transaction, or of the last event outside of a transaction; `None` without
    /// files.
    pub end: Option<BinlogPos>,
    /// End of the last complete transaction in the files that were scanned.
    pub trx_end: Option<BinlogPos>,
    /// GTID state at `end`.
    pub gtid_state: GtidState,
    /// State of the end of the last file.
    pub tail: Tail,
    /// The last file scanned, and how far it is known to be complete.
    last: Option<(u32, Reached)>,
}

/// A line of SHOW BINARY LOGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// File number.
    pub file: u32,
    /// Name without directory.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

/// The file that is being written.
struct Current {
    number: u32,
    file: Arc<WritebackFile>,
    /// Bytes in the file; `buf` follows them.
    len: u64,
    /// A cached part of the file for comparison during recovery: offset and bytes. Cleared by each write.
    found: (u64, Vec<u8>),
}

/// Bytes that recovery reads at a time to compare the files with the log.
const COMPARED_BYTES: usize = 256 << 10;

impl Current {
    fn new(number: u32, file: SharedFile, len: u64) -> Current {
        Current { number, file: Arc::new(WritebackFile::new(file)), len, found: Default::default() }
    }

    /// Returns whether the file holds these bytes at `offset`.
    fn holds(&mut self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        let end = offset + bytes.len() as u64;
        if offset < self.found.0 || end > self.found.0 + self.found.1.len() as u64 {
            let mut found = std::mem::take(&mut self.found.1);
            found.resize(bytes.len().max(COMPARED_BYTES), 0);
            let got = self.file.read_at(&mut found, offset)?;
            found.truncate(got);
            self.found = (offset, found);
        }
        let start = (offset - self.found.0) as usize;
        Ok(self.found.1.get(start..start + bytes.len()) == Some(bytes))
    }
}

/// Files to be synced without holding the writer's lock.
pub(crate) struct PendingSync {
    files: Vec<(PathBuf, SharedFile)>,
    /// End of the bytes that the sync covers.
    pub end: Option<BinlogPos>,
}

impl PendingSync {
    /// Syncs the files.
    pub fn run(&self) -> Result<(), BinlogError> {
        for (path, file) in &self.files {
            // Never `NoSpace`: a sync must not be repeated.
            let failed = |source| BinlogError::Io { action: "sync", path: path.clone(), source };
            file.sync_data().map_err(failed)?;
        }
        Ok(())
    }
}

/// The binlog files and their index. One owner at a time: recovery, then the [`crate::BinlogFileWriter`].
pub struct BinlogFiles {
    fs: SharedFs,
    name: BinlogName,
    /// Numbers in the index, ascending.
    numbers: Vec<u32>,
    /// True if the index on disk lacks some of `numbers`.
    index_stale: bool,
    current: Option<Current>,
    buf: Vec<u8>,
    /// True while bytes are copied from a spill file: they are written with incremental writeback.
    is_copying: bool,
    /// True if the current file was written since its last sync.
    dirty: bool,
    /// The first position where recovery found other bytes than the log's and overwrote them.
    rewritten: Option<BinlogPos>,
    /// Closed files written since their last sync.
    unsynced: Vec<(PathBuf, SharedFile)>,
    synced: Option<BinlogPos>,
    /// Lengths of closed files, as far as they were requested.
    lens: BTreeMap<u32, u64>,
    pins: Pins,
    /// End of the bytes that readers may see; later bytes are written but not synced yet. `None` if all
    /// written bytes are durable.
    shown: Option<BinlogPos>,
}

impl BinlogFiles {
    /// Opens the files of this name without changing their contents.
    pub fn open(
        fs: SharedFs,
        name: BinlogName,
        options: OpenOptions,
    ) -> Result<(BinlogFiles, Recovered), BinlogError> {
        let in_dir = numbers_in_dir(&fs, &name)?;
        fs.sync_dir(name.dir()).map_err(|e| BinlogError::io("sync", name.dir(), e))?;
        for &number in in_dir.iter().filter(|number| **number >= options.synced_to.file) {
            sync_earlier_writes(&fs, &name.path(number))?;
        }
        let (mut numbers, mut index_stale) = match index::read(&fs, &name)? {
            Some(numbers) => (numbers, false),
            None if options.synced_to.file > 0 => {
                return Err(BinlogError::IndexMissing { path: name.index_path() });
            }
            // The server crashed during its first start, before the index was written.
            None => (in_dir.clone(), !in_dir.is_empty()),
        };
        let synced = options.synced_to.file;
        let mut expected = numbers.iter().copied().filter(|&number| number < synced).chain([synced]);
        if let Some(lost) = expected.find(|number| *number > 0 && !in_dir.contains(number)) {
            return Err(BinlogError::FileMissing { path: name.path(lost) });
        }
        // A file created right before a crash may be missing in the index.
        let last = numbers.last().copied().unwrap_or(0);
        let newer = in_dir.into_iter().filter(|&number| number > last);
        let known = numbers.len();
        numbers.extend(newer);
        index_stale |= numbers.len() > known;
        let files = BinlogFiles {
            fs,
            name,
            numbers,
            index_stale,
            current: None,
            buf: Vec::new(),
            is_copying: false,
            dirty: false,
            rewritten: None,
            unsynced: Vec::new(),
            synced: None,
            lens: BTreeMap::new(),
            pins: Pins::default(),
            shown: None,
        };
        let recovered = files.examine(options, None)?;
        Ok((files, recovered))
    }

    /// Removes all files of this name durably. The index is removed first, so that an interrupted removal
    /// leaves only orphans.
    pub fn remove_all_of(fs: &SharedFs, name: &BinlogName) -> Result<(), BinlogError> {
        index::remove(fs, name)?;
        for number in numbers_in_dir(fs, name)? {
            let path = name.path(number);
            fs.remove(&path).map_err(|e| BinlogError::io("remove", &path, e))?;
        }
        fs.sync_dir(name.dir()).map_err(|e| BinlogError::io("sync", name.dir(), e))
    }

    /// Like [`BinlogFiles::remove_all_of`], but in service, with empty buffers. The next chunk may start a
    /// file of any number.
    pub(crate) fn remove_all(&mut self) -> Result<(), BinlogError> {
        assert!(self.buf.is_empty(), "what is buffered was written before");
        BinlogFiles::remove_all_of(&self.fs, &self.name)?;
        self.numbers.clear();
        self.unsynced.clear();
        self.lens.clear();
        (self.index_stale, self.dirty) = (false, false);
        (self.current, self.synced, self.shown) = (None, None, None);
        Ok(())
    }

    /// Returns the naming scheme of the files.
    pub fn name(&self) -> &BinlogName {
        &self.name
    }

    /// Returns the file system of the files.
    pub fn fs(&self) -> &SharedFs {
        &self.fs
    }

    /// Returns the registry of their readers.
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Returns the numbers of the files, oldest first.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Returns the end of the bytes in the files.
    pub fn end(&self) -> Option<BinlogPos> {
        self.current.as_ref().map(|current| BinlogPos { file: current.number, offset: current.len })
    }

    /// Returns the end of the bytes that readers may see.
    pub fn shown_end(&self) -> Option<BinlogPos> {
        self.shown.or_else(|| self.end())
    }

    /// Returns the position up to which the files are synced.
    pub fn synced(&self) -> Option<BinlogPos> {
        self.synced
    }

    /// Returns the number of bytes that wait for [`BinlogFiles::flush`].
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.buf.len()
    }

    /// Verifies the files that `options` selects; finds the end and the GTID state. The part of a file that
    /// is `known` is not verified again.
    fn examine(
        &self,
        options: OpenOptions,
        mut known: Option<(u32, Reached)>,
    ) -> Result<Recovered, BinlogError> {
        let mut recovered = Recovered {
            end: None,
            trx_end: None,
            gtid_state: GtidState::default(),
            tail: Tail::Closed,
            last: None,
        };
        let first = match options.verify {
            VerifyScope::All => 0,
            VerifyScope::Tail => self.numbers.partition_point(|&number| number < options.synced_to.file),
        };
        let mut from = first.min(self.numbers.len().saturating_sub(1));
        for &number in &self.numbers[from..] {
            let known = known.take_if(|(file, _)| *file == number).unwrap_or_default();
            let found = self.scan_synced(number, known.1, options.synced_to)?;
            recovered.tail = match found.tail {
                Some(_) => Tail::Torn,
                None if found.closed => Tail::Closed,
                None => Tail::Open,
            };
            note_end(&mut recovered, number, found.reached);
            if recovered.tail == Tail::Torn {
                break;
            }
        }
        // A file without a complete head has no GTID state; then use the file before.
        while recovered.end.is_none() && from > 0 {
            from -= 1;
            let number = self.numbers[from];
            let found = self.scan_synced(number, Reached::default(), options.synced_to)?;
            note_end(&mut recovered, number, found.reached);
        }
        Ok(recovered)
    }

    fn scan_synced(&self, number: u32, known: Reached, synced_to: BinlogPos) -> Result<Scan, BinlogError> {
        let path = self.name.path(number);
        let mut found = scan(&self.fs, &path, known)?;
        let synced_offset = match number.cmp(&synced_to.file) {
            std::cmp::Ordering::Less => u64::MAX,
            std::cmp::Ordering::Equal => synced_to.offset,
            std::cmp::Ordering::Greater => 0,
        };
        match found.tail.take() {
            Some(damage) if found.reached.end < synced_offset => Err(damage),
            tail => {
                found.tail = tail;
                Ok(found)
            }
        }
    }

    /// Writes a chunk of the log to its place; see [`BinlogFiles::apply_chunk`]. `inline` holds the bytes of
    /// the remaining inline chunks and is advanced.
    pub fn apply(&mut self, chunk: &Chunk, inline: &mut &[u8], spill: &SpillDir) -> Result<(), BinlogError> {
        self.apply_some(chunk, inline, spill, &mut CopyPlace::default(), u64::MAX).map(drop)
    }

    /// Like [`BinlogFiles::apply`], but copies at most about `bytes_max` bytes of a spilled chunk, starting
    /// at `from`. Returns true when the chunk is complete. Until then readers see nothing of it.
    pub(crate) fn apply_some(
        &mut self,
        chunk: &Chunk,
        inline: &mut &[u8],
        spill: &SpillDir,
        from: &mut CopyPlace,
        bytes_max: u64,
    ) -> Result<bool, BinlogError> {
        match &chunk.content {
            Content::Inline => {
                let (bytes, rest) = inline
                    .split_at_checked(chunk.len as usize)
                    .ok_or_else(|| BinlogError::Failed("a commit record ends inside a chunk".to_owned()))?;
                self.apply_chunk(chunk.pos, bytes)?;
                *inline = rest;
                Ok(true)
            }
            Content::Spilled(spilled) => self.apply_spilled(chunk, spilled, spill, from, bytes_max),
        }
    }

    fn apply_spilled(
        &mut self,
        chunk: &Chunk,
        spilled: &SpilledChunk,
        spill: &SpillDir,
        from: &mut CopyPlace,
        bytes_max: u64,
    ) -> Result<bool, BinlogError> {
        if !spill.exists(&spilled.name) && self.holds_events(chunk, spilled.events)? {
            return Ok(true);
        }
        let file = chunk.pos.file;
        self.is_copying = true;
        let copied = spill.copy_spilled(spilled, chunk.pos.offset, from, bytes_max, &mut |offset, bytes| {
            self.apply_chunk(BinlogPos { file, offset }, bytes)
        });
        self.is_copying = false;
        copied
    }

    /// Returns whether a file holds complete events from the start to the end of a chunk. A spill file is
    /// removed once its copy is synced, but a log that starts earlier still names it.
    fn holds_events(&mut self, chunk: &Chunk, events: u64) -> Result<bool, BinlogError> {
        if self.numbers.first().is_some_and(|&first| chunk.pos.file < first) {
            return Ok(true);
        }
        if !self.numbers.contains(&chunk.pos.file) {
            return Ok(false);
        }
        self.flush()?;
        let mut reader = EventReader::open(&self.fs, &self.name.path(chunk.pos.file))?;
        reader.seek(chunk.pos.offset);
        for _ in 0..events {
            match reader.next_event() {
                Ok(Some(_)) => {}
                Ok(None) | Err(BinlogError::Corrupt { .. }) => return Ok(false),
                Err(err) => return Err(err),
            }
        }
        let there = reader.offset() == chunk.end().offset;
        if there {
            self.select(chunk.pos)?;
        }
        Ok(there)
    }

    /// Writes a piece of the stream to its place, in stream order; idempotent. A chunk at offset 0 starts a
    /// file and closes the previous one. Bytes may still be buffered on return. After an error the piece
    /// counts as not applied and may be passed again.
    pub fn apply_chunk(&mut self, pos: BinlogPos, bytes: &[u8]) -> Result<(), BinlogError> {
        if self.numbers.first().is_some_and(|&first| pos.file < first) {
            return Ok(()); // Purged since.
        }
        if pos.offset == 0 && self.current.as_ref().is_none_or(|current| current.number != pos.file) {
            self.change_file(pos.file)?;
        }
        if self.buf.len() >= BUFFER_BYTES {
            self.write_buffer()?;
        }
        self.select(pos)?;
        let current = self.current.as_mut().expect("selected");
        let end = current.len + self.buf.len() as u64;
        if pos.offset > end {
            return Err(BinlogError::Gap { path: self.name.path(pos.file), end, offset: pos.offset });
        }
        if pos.offset == end {
            self.buf.extend_from_slice(bytes);
            return Ok(());
        }
        self.rewrite(pos, bytes)
    }

    /// Writes bytes at an offset inside the file, unless they are equal. Only in recovery.
    fn rewrite(&mut self, pos: BinlogPos, bytes: &[u8]) -> Result<(), BinlogError> {
        self.flush()?;
        let current = self.current.as_mut().expect("selected");
        let path = || self.name.path(pos.file);
        let is_there = current.holds(pos.offset, bytes);
        if !is_there.map_err(|e| BinlogError::io("read", &path(), e))? {
            self.dirty = true;
            self.rewritten = Some(self.rewritten.map_or(pos, |from| from.min(pos)));
            current.found = Default::default();
            current.file.write_at(bytes, pos.offset).map_err(|e| BinlogError::io("write", &path(), e))?;
        }
        current.len = current.len.max(pos.offset + bytes.len() as u64);
        Ok(())
    }

    /// Makes the file of this position the current one, without closing the previous one.
    fn select(&mut self, pos: BinlogPos) -> Result<(), BinlogError> {
        let number = pos.file;
        if self.current.as_ref().is_some_and(|current| current.number == number) {
            return Ok(());
        }
        self.sync()?;
        let path = self.name.path(number);
        let file = match self.fs.open(&path, OpenMode::Write) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => {
                return Err(BinlogError::Gap { path, end: 0, offset: pos.offset });
            }
            opened => opened.map_err(|e| BinlogError::io("open", &path, e))?,
        };
        let len = file.len().map_err(|e| BinlogError::io("read", &path, e))?;
        self.current = Some(Current::new(number, file, len));
        Ok(())
    }

    /// Closes the current file and opens file `number`, creating it if it does not exist (in recovery it
    /// may).
    fn change_file(&mut self, number: u32) -> Result<(), BinlogError> {
        // After a start the newest file of the last run is not open yet.
        let before = self.numbers.iter().copied().rfind(|&n| n < number);
        if let (None, Some(before)) = (&self.current, before) {
            self.select(BinlogPos { file: before, offset: 0 })?;
        }
        self.close_current()?;
        let path = self.name.path(number);
        let file =
            self.fs.open(&path, OpenMode::CreateOrOpen).map_err(|e| BinlogError::io("create", &path, e))?;
        let len = file.len().map_err(|e| BinlogError::io("read", &path, e))?;
        if let Err(at) = self.numbers.binary_search(&number) {
            self.numbers.insert(at, number);
            self.index_stale = true;
        }
        self.lens.remove(&number);
        self.current = Some(Current::new(number, file, len));
        if self.unsynced.len() >= UNSYNCED_FILES_MAX {
            self.sync()?;
        }
        Ok(())
    }

    fn write_index_if_stale(&mut self) -> Result<(), BinlogError> {
        if self.index_stale {
            index::write(&self.fs, &self.name, &self.numbers)?;
            self.index_stale = false;
        }
        Ok(())
    }

    /// Completes the current file, to which nothing more will be added. It is synced later.
    fn close_current(&mut self) -> Result<(), BinlogError> {
        self.write_buffer()?;
        let Some(current) = &mut self.current else { return Ok(()) };
        let path = self.name.path(current.number);
        let mut mark = [0; 2];
        let got =
            current.file.read_at(&mut mark, IN_USE_AT).map_err(|e| BinlogError::io("read", &path, e))?;
        let set = u16::from_le_bytes(mark);
        if got == mark.len() && set & flags::IN_USE != 0 {
            let cleared = (set & !flags::IN_USE).to_le_bytes();
            self.dirty = true;
            current.found = Default::default();
            current.file.write_at(&cleared, IN_USE_AT).map_err(|e| BinlogError::io("write", &path, e))?;
        }
        self.lens.insert(current.number, current.len);
        if std::mem::take(&mut self.dirty) {
            self.unsynced.push((path, current.file.clone()));
        }
        Ok(())
    }

    /// Writes the buffer, and adds new files to the index.
    pub fn flush(&mut self) -> Result<(), BinlogError> {
        self.write_buffer()?;
        self.write_index_if_stale()
    }

    fn write_buffer(&mut self) -> Result<(), BinlogError> {
        if self.buf.is_empty() {
            return Ok(());
        }
        let current = self.current.as_mut().expect("bytes are buffered for the current file");
        self.dirty = true;
        current.found = Default::default();
        let written = match self.is_copying {
            true => current.file.write_at(&self.buf, current.len),
            false => current.file.write_at_once(&self.buf, current.len),
        };
        written.map_err(|e| BinlogError::io("write", &self.name.path(current.number), e))?;
        current.len += self.buf.len() as u64;
        self.buf.clear();
        Ok(())
    }

    /// Writes the buffer and syncs.
    pub fn sync(&mut self) -> Result<(), BinlogError> {
        let pending = self.begin_sync()?;
        pending.run()?;
        self.end_sync(&pending);
        Ok(())
    }

    /// Writes the buffer and returns the files to sync. Only one sync at a time, until
    /// [`BinlogFiles::end_sync`].
    pub(crate) fn begin_sync(&mut self) -> Result<PendingSync, BinlogError> {
        self.flush()?;
        let mut files = std::mem::take(&mut self.unsynced);
        if let Some(current) = self.current.as_ref().filter(|_| self.dirty) {
            files.push((self.name.path(current.number), current.file.clone()));
        }
        self.dirty = false;
        Ok(PendingSync { files, end: self.end() })
    }

    pub(crate) fn end_sync(&mut self, done: &PendingSync) {
        self.synced = done.end;
    }

    /// Ends the service: clears the in-use mark and syncs.
    pub fn close(&mut self) -> Result<(), BinlogError> {
        self.close_current()?;
        self.sync()
    }

    /// Ends recovery: truncates everything after `end`, removes the leftovers of an interrupted purge, syncs,
    /// and scans the rest of the files. `end` is the end of the log; if the log holds nothing of the binlog
    /// it is `None`, and the last complete transaction counts.
    pub fn finish_recovery(
        &mut self,
        end: Option<BinlogPos>,
        opened: &Recovered,
    ) -> Result<Recovered, BinlogError> {
        self.flush()?;
        let Some(end) = end.or(opened.end) else { return Ok(opened.clone()) };
        let surplus: Vec<u32> = self.numbers.iter().copied().filter(|&number| number > end.file).collect();
        if !surplus.is_empty() {
            self.numbers.retain(|&number| number <= end.file);
            self.index_stale = true;
        }
        self.write_index_if_stale()?;
        self.remove_files(&surplus)?;
        let orphans = self.orphans()?;
        self.remove_files(&orphans)?;
        self.select(end)?;
        let current = self.current.as_mut().expect("selected");
        let path = self.name.path(end.file);
        current.found = Default::default();
        if current.len < end.offset {
            return Err(BinlogError::Gap { path, end: current.len, offset: end.offset });
        }
        if current.len > end.offset {
            current.file.set_len(end.offset).map_err(|e| BinlogError::io("cut", &path, e))?;
            current.len = end.offset;
        }
        self.dirty = true;
        self.sync()?;
        let known = opened.last.clone().filter(|(file, reached)| {
            let until = BinlogPos { file: *file, offset: reached.end };
            until <= end && self.rewritten.is_none_or(|from| from >= until)
        });
        let recovered = self.examine(OpenOptions { verify: VerifyScope::Tail, synced_to: end }, known)?;
        if recovered.end != Some(end) {
            let what = "the log ends inside a transaction of this file".to_owned();
            return Err(BinlogError::Corrupt { path, offset: end.offset, what });
        }
        Ok(recovered)
    }

    /// Returns the number for the next file.
    pub fn next_number(&self) -> u32 {
        self.numbers.last().map_or(1, |last| last + 1)
    }

    /// Returns the sizes of all files, for SHOW BINARY LOGS.
    pub fn sizes(&mut self) -> Result<Vec<FileSize>, BinlogError> {
        for &number in &self.numbers {
            if let std::collections::btree_map::Entry::Vacant(unknown) = self.lens.entry(number) {
                unknown.insert(len_of(&self.fs, &self.name.path(number))?);
            }
        }
        if let Some(current) = &self.current {
            self.lens.insert(current.number, current.len);
        }
        let size = |&number: &u32| FileSize {
            file: number,
            name: self.name.file(number),
            bytes: self.lens[&number],
        };
        Ok(self.numbers.iter().map(size).collect())
    }

    /// Returns the number of the file that a statement names.
    pub fn find(&self, name: &str) -> Result<u32, BinlogError> {
        let number = self.name.number(name).filter(|number| self.numbers.contains(number));
        number.ok_or_else(|| BinlogError::UnknownFile { name: name.to_owned() })
    }

    /// PURGE BINARY LOGS TO: removes the files before `file`, except files from `floor` on, pinned files and
    /// the last one. Returns the numbers of the removed files.
    pub fn purge_to(&mut self, file: u32, floor: u32) -> Result<Vec<u32>, BinlogError> {
        let pinned = self.pins.oldest().unwrap_or(u32::MAX);
        let keep_from = file.min(floor).min(pinned).min(self.numbers.last().copied().unwrap_or(0));
        let gone: Vec<u32> = self.numbers.iter().copied().filter(|&number| number < keep_from).collect();
        if gone.is_empty() {
            return Ok(gone);
        }
        // The index first, so that it never names a missing file (see the invariants).
        let left: Vec<u32> = self.numbers.iter().copied().filter(|&number| number >= keep_from).collect();
        match index::write(&self.fs, &self.name, &left) {
            Err(BinlogError::NoSpace { .. }) => {
                self.make_empty(&gone)?;
                index::write(&self.fs, &self.name, &left)?;
            }
            written => written?,
        }
        self.numbers = left;
        self.index_stale = false;
        self.remove_files(&gone)?;
        Ok(gone)
    }

    /// Truncates the files to free their space. The index still names them: a crash at this point leaves
    /// empty files, which a later purge removes.
    fn make_empty(&mut self, numbers: &[u32]) -> Result<(), BinlogError> {
        for &number in numbers {
            let path = self.name.path(number);
            let emptied = self.fs.open(&path, OpenMode::Write).and_then(|file| file.set_len(0));
            emptied.map_err(|e| BinlogError::io("cut", &path, e))?;
            self.lens.remove(&number);
        }
        Ok(())
    }

    /// Returns the first file that was not closed before `time` (seconds since 1970).
    pub fn first_closed_at(&self, time: u32) -> Result<u32, BinlogError> {
        let mut keep_from = self.numbers.first().copied().unwrap_or(0);
        for &number in self.numbers.iter().skip(1) {
            // A file was closed when the next one was created.
            let path = self.name.path(number);
            let is_old = len_of(&self.fs, &path)? == 0 || {
                let head = EventReader::open(&self.fs, &path)?.next_event()?;
                head.is_some_and(|head| head.header.timestamp < time)
            };
            if !is_old {
                break;
            }
            keep_from = number;
        }
        Ok(keep_from)
    }

    /// Returns the files before the first one of the index: leftovers of a purge interrupted between the
    /// index update and the removal.
    fn orphans(&self) -> Result<Vec<u32>, BinlogError> {
        let first = self.numbers.first().copied().unwrap_or(0);
        Ok(numbers_in_dir(&self.fs, &self.name)?.into_iter().filter(|&number| number < first).collect())
    }

    /// Removes files that the index does not name.
    fn remove_files(&mut self, numbers: &[u32]) -> Result<(), BinlogError> {
        for &number in numbers.iter().filter(|&number| !self.numbers.contains(number)) {
            if self.current.as_ref().is_some_and(|current| current.number == number) {
                self.current = None;
            }
            self.lens.remove(&number);
            let path = self.name.path(number);
            match self.fs.remove(&path) {
                Err(err) if err.kind() != io::ErrorKind::NotFound => {
                    return Err(BinlogError::io("remove", &path, err));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens a reader of a file, limited to the bytes that are written and durable now.
    pub fn reader(&self, number: u32) -> Result<EventReader, BinlogError> {
        let mut reader = EventReader::open(&self.fs, &self.name.path(number))?;
        match self.shown {
            Some(shown) if number == shown.file => reader.set_limit(shown.offset),
            Some(shown) if number > shown.file => reader.set_limit(0),
            _ => {}
        }
        Ok(reader)
    }

    /// Lets readers see the bytes before `end`.
    pub(crate) fn show_to(&mut self, end: BinlogPos) {
        self.shown = Some(end);
    }

    /// Checks for missing bytes, for files that are each synced before the next one is started. After `end`
    /// there may be at most one file, without a complete head, and then the file of `end` must end there.
    /// Returns the path of the incomplete file, `None` if nothing is missing.
    pub fn hole_after(&self, end: BinlogPos) -> Result<Option<PathBuf>, BinlogError> {
        let later = self.numbers.iter().filter(|&&number| number > end.file).count();
        let path = self.name.path(end.file);
        let is_whole = later == 0 || (later == 1 && len_of(&self.fs, &path)? == end.offset);
        Ok(if is_whole { None } else { Some(path) })
    }

    /// Returns the GTID state at the start of a file, from its GTID_LIST event.
    pub fn state_at_start(&self, number: u32) -> Result<GtidState, BinlogError> {
        let path = self.name.path(number);
        let mut reader = EventReader::open(&self.fs, &path)?;
        while let Some(raw) = reader.next_event()? {
            let event = reader.decode(&raw).map_err(|what| BinlogError::corrupt(&path, raw.offset, what))?;
            match event {
                Event::GtidList(list) => return Ok(GtidState::from_list(&list.gtids)),
                Event::Gtid(_) => break,
                _ => {}
            }
        }
        Ok(GtidState::default())
    }
}

/// Syncs a file that a killed process may have written. Never returns `NoSpace`: a sync must not be repeated.
fn sync_earlier_writes(fs: &SharedFs, path: &Path) -> Result<(), BinlogError> {
    let failed = |source| BinlogError::Io { action: "sync", path: path.to_owned(), source };
    fs.open(path, OpenMode::Read).and_then(|file| file.sync_earlier_writes()).map_err(failed)
}

fn len_of(fs: &SharedFs, path: &Path) -> Result<u64, BinlogError> {
    let file = fs.open(path, OpenMode::Read).map_err(|e| BinlogError::io("open", path, e))?;
    file.len().map_err(|e| BinlogError::io("read", path, e))
}

/// Records the end and the GTID state of a file with a complete head.
fn note_end(recovered: &mut Recovered, number: u32, reached: Reached) {
    if reached.trx_end > 0 {
        recovered.trx_end = Some(BinlogPos { file: number, offset: reached.trx_end });
    }
    if let Some(state) = &reached.state {
        recovered.gtid_state = state.clone();
        recovered.end = Some(BinlogPos { file: number, offset: reached.end });
    }
    recovered.last = Some((number, reached));
}

fn numbers_in_dir(fs: &SharedFs, name: &BinlogName) -> Result<Vec<u32>, BinlogError> {
    let names = fs.list(name.dir()).map_err(|e| BinlogError::io("list", name.dir(), e))?;
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|file| name.number(&file.to_string_lossy())).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
