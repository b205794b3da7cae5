//! The binlog files of a directory and their index: opening, completion from the log, file change, purge.
//!
//! # Concepts
//!
//! - The files are an image of the stream that stands behind the log (I3): every byte here was hardened there
//!   before. So whatever a crash takes from files that were not synced is put back from the log's chunks.
//! - [`BinlogFiles::apply_chunk`] is the only way bytes get in, in recovery and in service alike. It is
//!   idempotent: bytes that are there and equal stay, others are rewritten, missing ones are appended.
//! - A chunk at offset 0 is a file change: the file before is completed and its in-use mark cleared, then the
//!   new one is made. With small files a backlog holds many of them, so nothing is synced here.
//! - Appended bytes gather in `buf` until [`BinlogFiles::flush`], which also enters new files into the index;
//!   one write call then serves many commit groups.
//! - A sync covers all files written since the last one. Until then the log holds their bytes (I7).
//!
//! # States
//!
//! `open` (changes nothing) -> `apply_chunk` from the log -> `finish_recovery` -> service: `apply_chunk`,
//! `flush`, `sync`, purge -> `close`.
//!
//! `open` settles what no checkpoint has synced: a process that was killed may have left bytes and names that
//! the disk does not have, and bytes that are there are not written again.
//!
//! # Invariants
//!
//! - The index names a file before the log lets go of its bytes, and stops naming it before it is removed. A
//!   file that the index does not name is an orphan: of a purge if its number is below, of a crash if it is
//!   above.
//! - A file that the index names and a sync has covered is there: if not, it was lost, and the start is
//!   refused.
//! - At most one file, the newest, is marked as in use or ends inside a transaction.
//!
//! # On failure
//!
//! No space: the error leaves everything as it was or as it will be, and the same call is repeated later. A
//! purge needs a little space for the index; without it the files that are to go are emptied first. A failed
//! sync is never repeated; [`crate::Materialiser`] then stops for good.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::BinlogPos;
use cohort_vfs::{File as _, OpenMode, SharedFile, SharedFs, SteadyFile};

use crate::chunk::{Content, SpilledChunk};
use crate::event::{Event, MAGIC, flags};
use crate::scan::{Reached, Scan, scan};
use crate::spill::CopyPlace;
use crate::{BinlogError, BinlogName, Chunk, EventReader, GtidState, Pins, SpillDir, index};

/// Buffered bytes beyond this are written at once.
const BUFFER_BYTES: usize = 512 << 10;
/// Closed files that may wait for a sync: each keeps a descriptor.
const UNSYNCED_FILES_MAX: usize = 256;
/// Offset of the flags of the format description in a file.
const IN_USE_AT: u64 = MAGIC.len() as u64 + 17;

/// How much is verified when the files are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyScope {
    /// The files from `synced_to` on.
    Tail,
    /// Every file of the index.
    All,
}

/// How to open.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// What to verify.
    pub verify: VerifyScope,
    /// Up to where the last checkpoint synced the files; damage before it is an error, behind it a torn tail.
    pub synced_to: BinlogPos,
}

/// How the last file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// With ROTATE or STOP, and not marked as in use: the server stopped in order.
    Closed,
    /// With a whole transaction: the server did not stop in order, but nothing is torn.
    Open,
    /// With bytes that are no whole transaction; recovery rewrites or cuts them.
    Torn,
}

/// What the files held when they were opened.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Behind the last whole transaction, or event outside of one; `None` without files.
    pub end: Option<BinlogPos>,
    /// Behind the last whole transaction of the files that were looked through.
    pub trx_end: Option<BinlogPos>,
    /// At `end`.
    pub gtid_state: GtidState,
    /// How the last file ends.
    pub tail: Tail,
    /// How far the last file that was looked through is known to be whole.
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

/// The file that grows.
struct Current {
    number: u32,
    file: Arc<SteadyFile>,
    /// Bytes in the file; those of `buf` come behind.
    len: u64,
    /// Bytes of the file from an offset on, as recovery found them. Gone with the first write.
    found: (u64, Vec<u8>),
}

/// Recovery compares what is in the files with the log. It reads so much at once.
const COMPARED_BYTES: usize = 256 << 10;

impl Current {
    fn new(number: u32, file: SharedFile, len: u64) -> Current {
        Current { number, file: Arc::new(SteadyFile::new(file)), len, found: Default::default() }
    }

    /// Whether the file holds these bytes there.
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

/// Files that are to be synced, without the writer's lock.
pub(crate) struct PendingSync {
    files: Vec<(PathBuf, SharedFile)>,
    /// Behind the last byte that will be synced then.
    pub end: Option<BinlogPos>,
}

impl PendingSync {
    /// Syncs them.
    pub fn run(&self) -> Result<(), BinlogError> {
        for (path, file) in &self.files {
            // Never NoSpace: a sync is not tried twice.
            let failed = |source| BinlogError::Io { action: "sync", path: path.clone(), source };
            file.sync_data().map_err(failed)?;
        }
        Ok(())
    }
}

/// The files and their index. One owner at a time: recovery, then the [`crate::Materialiser`].
pub struct BinlogFiles {
    fs: SharedFs,
    name: BinlogName,
    /// Numbers in the index, ascending.
    numbers: Vec<u32>,
    /// Whether the index on disk lacks some of `numbers`.
    index_stale: bool,
    current: Option<Current>,
    buf: Vec<u8>,
    /// What comes is copied from a spill file, and goes to the disk in steps.
    is_copying: bool,
    /// Whether the current file was written since it was last synced.
    dirty: bool,
    /// The first place where recovery found other bytes than the log's, and wrote these.
    rewritten: Option<BinlogPos>,
    /// Closed files written since they were last synced.
    unsynced: Vec<(PathBuf, SharedFile)>,
    synced: Option<BinlogPos>,
    /// Lengths of closed files, as far as somebody has asked.
    lens: BTreeMap<u32, u64>,
    pins: Pins,
    /// What lies behind is written and not synced yet: readers do not get it. None: all that is written is
    /// hardened.
    shown: Option<BinlogPos>,
}

impl BinlogFiles {
    /// Opens the files of this name; changes nothing.
    pub fn open(
        fs: SharedFs,
        name: BinlogName,
        options: OpenOptions,
    ) -> Result<(BinlogFiles, Recovered), BinlogError> {
        let in_dir = numbers_in_dir(&fs, &name)?;
        fs.sync_dir(name.dir()).map_err(|e| BinlogError::io("sync", name.dir(), e))?;
        for &number in in_dir.iter().filter(|number| **number >= options.synced_to.file) {
            settle(&fs, &name.path(number))?;
        }
        let (mut numbers, mut index_stale) = match index::read(&fs, &name)? {
            Some(numbers) => (numbers, false),
            None if options.synced_to.file > 0 => {
                return Err(BinlogError::IndexMissing { path: name.index_path() });
            }
            // A crash of the first start came before the index.
            None => (in_dir.clone(), !in_dir.is_empty()),
        };
        let synced = options.synced_to.file;
        let mut expected = numbers.iter().copied().filter(|&number| number < synced).chain([synced]);
        if let Some(lost) = expected.find(|number| *number > 0 && !in_dir.contains(number)) {
            return Err(BinlogError::FileMissing { path: name.path(lost) });
        }
        // A file made right before a crash may have missed the index.
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

    /// Removes all files of this name, durably. The index goes first, so that a file whose removal is cut off
    /// is an orphan.
    pub fn remove_all_of(fs: &SharedFs, name: &BinlogName) -> Result<(), BinlogError> {
        index::remove(fs, name)?;
        for number in numbers_in_dir(fs, name)? {
            let path = name.path(number);
            fs.remove(&path).map_err(|e| BinlogError::io("remove", &path, e))?;
        }
        fs.sync_dir(name.dir()).map_err(|e| BinlogError::io("sync", name.dir(), e))
    }

    /// The same in service. The next chunk starts a file of any number. Everything was written before.
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

    /// Names of the files.
    pub fn name(&self) -> &BinlogName {
        &self.name
    }

    /// Where they are.
    pub fn fs(&self) -> &SharedFs {
        &self.fs
    }

    /// Their readers.
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Numbers of the files, oldest first.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Behind the last byte that is in a file.
    pub fn end(&self) -> Option<BinlogPos> {
        self.current.as_ref().map(|current| BinlogPos { file: current.number, offset: current.len })
    }

    /// Behind the last byte that readers get.
    pub fn shown_end(&self) -> Option<BinlogPos> {
        self.shown.or_else(|| self.end())
    }

    /// Up to where the files are synced.
    pub fn synced(&self) -> Option<BinlogPos> {
        self.synced
    }

    /// Bytes that wait for [`BinlogFiles::flush`].
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.buf.len()
    }

    /// Verifies what `options` asks for and finds the end and the GTID state.
    /// What is `known` of a file is not verified again.
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
        // A file without a whole head tells nothing; then the one before does.
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

    /// Puts a chunk of the log into its place; see [`BinlogFiles::apply_chunk`]. `inline` holds the bytes of
    /// the inline chunks still to come and is moved on.
    pub fn apply(&mut self, chunk: &Chunk, inline: &mut &[u8], spill: &SpillDir) -> Result<(), BinlogError> {
        self.apply_some(chunk, inline, spill, &mut CopyPlace::default(), u64::MAX).map(drop)
    }

    /// The same, of a chunk that is copied from a spill file from the place on, and about so many bytes.
    /// True: the chunk is done. Until then readers get nothing of it.
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

    /// Whether a file holds whole events from start to end of a chunk. A spill file is removed once its copy
    /// is synced; a log that starts earlier then still names it.
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

    /// Puts a piece of the stream into its place, in stream order; idempotent. A chunk at offset 0 starts a
    /// file and closes the one before. Bytes may still be buffered afterwards. After an error nothing of this
    /// piece counts as taken; it may be given again.
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

    /// Bytes over what is there already: only in recovery.
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

    /// Makes the file of this position the current one without closing the one before.
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

    /// Closes the current file and starts `number`, or the one that is there already (recovery).
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

    /// Completes the current file: nothing will be added to it. Syncs come later.
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

    /// Writes what is buffered, and the names of new files into the index.
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

    /// Writes and syncs.
    pub fn sync(&mut self) -> Result<(), BinlogError> {
        let pending = self.begin_sync()?;
        pending.run()?;
        self.end_sync(&pending);
        Ok(())
    }

    /// Writes, and hands over what a sync has to cover. One at a time, up to [`BinlogFiles::end_sync`].
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

    /// End of service: clears the in-use mark and syncs.
    pub fn close(&mut self) -> Result<(), BinlogError> {
        self.close_current()?;
        self.sync()
    }

    /// End of recovery: cuts everything behind `end` (where the log ends; `None` if it holds nothing of the
    /// binlog, then behind the last whole transaction), removes what a purge has left behind, syncs, and
    /// reads what is there behind the end that was known.
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

    /// The number for the next file.
    pub fn next_number(&self) -> u32 {
        self.numbers.last().map_or(1, |last| last + 1)
    }

    /// SHOW BINARY LOGS.
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

    /// The number of a file by the name that a statement gives.
    pub fn find(&self, name: &str) -> Result<u32, BinlogError> {
        let number = self.name.number(name).filter(|number| self.numbers.contains(number));
        number.ok_or_else(|| BinlogError::UnknownFile { name: name.to_owned() })
    }

    /// PURGE BINARY LOGS TO: removes the files before `file`, but none at or behind `floor`, none that is
    /// pinned, and never the last. Answers what it removed.
    pub fn purge_to(&mut self, file: u32, floor: u32) -> Result<Vec<u32>, BinlogError> {
        let pinned = self.pins.oldest().unwrap_or(u32::MAX);
        let keep_from = file.min(floor).min(pinned).min(self.numbers.last().copied().unwrap_or(0));
        let gone: Vec<u32> = self.numbers.iter().copied().filter(|&number| number < keep_from).collect();
        if gone.is_empty() {
            return Ok(gone);
        }
        // The index first: what it does not name is not there (invariant above).
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

    /// Frees what these files hold. The index still names them: a crash here leaves empty files in it, which
    /// a later purge removes.
    fn make_empty(&mut self, numbers: &[u32]) -> Result<(), BinlogError> {
        for &number in numbers {
            let path = self.name.path(number);
            let emptied = self.fs.open(&path, OpenMode::Write).and_then(|file| file.set_len(0));
            emptied.map_err(|e| BinlogError::io("cut", &path, e))?;
            self.lens.remove(&number);
        }
        Ok(())
    }

    /// The first file that was not closed before `time` (seconds since 1970).
    pub fn first_closed_at(&self, time: u32) -> Result<u32, BinlogError> {
        let mut keep_from = self.numbers.first().copied().unwrap_or(0);
        for &number in self.numbers.iter().skip(1) {
            // A file was closed when the one behind it was made.
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

    /// Files below the first one of the index: a purge was cut off between index and removal.
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

    /// Reads a file; what is hardened and written at the moment.
    pub fn reader(&self, number: u32) -> Result<EventReader, BinlogError> {
        let mut reader = EventReader::open(&self.fs, &self.name.path(number))?;
        match self.shown {
            Some(shown) if number == shown.file => reader.set_limit(shown.offset),
            Some(shown) if number > shown.file => reader.set_limit(0),
            _ => {}
        }
        Ok(reader)
    }

    /// From now on readers get what lies before this place.
    pub(crate) fn show_to(&mut self, end: BinlogPos) {
        self.shown = Some(end);
    }

    /// Where something is missing, for files that are synced before the next one is begun: behind `end` there
    /// may be one file without a whole head, and then the one of `end` ends there.
    pub fn hole_behind(&self, end: BinlogPos) -> Result<Option<PathBuf>, BinlogError> {
        let later = self.numbers.iter().filter(|&&number| number > end.file).count();
        let path = self.name.path(end.file);
        let is_whole = later == 0 || (later == 1 && len_of(&self.fs, &path)? == end.offset);
        Ok(if is_whole { None } else { Some(path) })
    }

    /// The GTID state at the start of a file: its GTID_LIST.
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

/// Never `NoSpace`: a sync is not tried twice.
fn settle(fs: &SharedFs, path: &Path) -> Result<(), BinlogError> {
    let failed = |source| BinlogError::Io { action: "sync", path: path.to_owned(), source };
    fs.open(path, OpenMode::Read).and_then(|file| file.settle()).map_err(failed)
}

fn len_of(fs: &SharedFs, path: &Path) -> Result<u64, BinlogError> {
    let file = fs.open(path, OpenMode::Read).map_err(|e| BinlogError::io("open", path, e))?;
    file.len().map_err(|e| BinlogError::io("read", path, e))
}

/// Takes end and GTID state of a file that has a whole head.
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
