//! The relay log: received events, in classic binlog files that are kept until all their events are applied.
//!
//! # Concepts
//! One writer (the receiver thread) appends, one reader (the applier thread) follows. Files are numbered
//! without gaps and listed in the index. The positions in the events' headers are those of the source. All
//! events have a checksum, whether or not the source sends one, so that damage is detected. A file begins
//! with a format description of this server and an artificial ROTATE that gives the position in the source's
//! log. Every file but the newest ends with a ROTATE that names the next file. If a receiver ended without
//! writing it, the next receiver appends it before it begins a new file.
//!
//! # Syncing
//! A file is synced before the next one begins, and everything is synced before events are acknowledged to a
//! semi-synchronous source ([`RelayWriter::sync`]). Before the first acknowledgement a *marks file* is added
//! to the log ([`RelayLog::arm`], [`marks`](crate::marks)).
//!
//! When replication starts with neither thread running (`begin.rs`), a log with a marks file is checked
//! ([`survey`](crate::survey)) and kept, regardless of settings such as relay_log_recovery. A log without one
//! is deleted, and events that are not applied are fetched again.
//!
//! # On failure
//! If a file cannot be written, the receiver ends with error 1595; if the disk is full, it waits. If a file
//! cannot be read, the applier ends with error 1594. Bytes left by a failed write lie after the valid length
//! of the file, which is in memory (`RelayFile`). No reader looks there. The next write overwrites them, or
//! the next receiver cuts them off. After a failed sync the kernel may have lost earlier writes. Each further
//! sync then fails, so nothing more is acknowledged, until a new start has checked or deleted the log.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cohort_base::ServerId;
use cohort_binlog::event::{
    Event, EventHeader, FormatDescription, MAGIC, Rotate, begin_event, finish_event, flags,
};
use cohort_binlog::{BinlogError, BinlogName, Checksum, EventReader, EventType, RawEvent};
use cohort_config::VERSION;
use cohort_types::{ErrorCode, SqlError};
use cohort_vfs::{OpenMode, SharedFile, SharedFs, is_no_space};
use parking_lot::{Condvar, Mutex};

use crate::marks::{Acknowledged, Marks};
use crate::place::{RelayPlace, SourcePlace};
use crate::survey::{RelayFile, Survey, Unsound};

/// Bytes buffered before a write, unless the source pauses.
const BUFFER_BYTES: usize = 256 << 10;

/// The relay log files of one connection.
pub struct RelayLog {
    pub(crate) fs: SharedFs,
    /// Changes only while no thread uses the log.
    name: Mutex<BinlogName>,
    files: Mutex<Files>,
    grown: Condvar,
    /// Held while the index is written, so that the newest list is written last.
    index: Mutex<()>,
    /// Present if events were acknowledged, or are about to be.
    marks: Mutex<Option<Marks>>,
    has_marks: AtomicBool,
    /// A sync failed, so earlier writes may be lost.
    is_doubtful: AtomicBool,
}

#[derive(Default)]
struct Files {
    /// Oldest first; the last file is being written.
    list: Vec<RelayFile>,
}

impl Files {
    fn numbers(&self) -> Vec<u32> {
        self.list.iter().map(|file| file.number).collect()
    }

    fn end(&self) -> RelayPlace {
        self.list
            .last()
            .map_or_else(RelayPlace::default, |file| RelayPlace { file: file.number, offset: file.bytes })
    }

    fn bytes_of(&self, number: u32) -> u64 {
        self.list.iter().find(|file| file.number == number).map_or(0, |file| file.bytes)
    }
}

fn io_error(action: &'static str, path: PathBuf) -> impl FnOnce(std::io::Error) -> BinlogError {
    move |source| BinlogError::Io { action, path, source }
}

impl RelayLog {
    /// Opens the log of this name. Lists existing files as far as they can be read; the start of the threads
    /// checks them completely.
    pub fn open(fs: SharedFs, name: BinlogName) -> Arc<RelayLog> {
        let log = RelayLog {
            fs,
            name: Mutex::new(name),
            files: Mutex::default(),
            grown: Condvar::new(),
            index: Mutex::new(()),
            marks: Mutex::new(None),
            has_marks: AtomicBool::new(false),
            is_doubtful: AtomicBool::new(false),
        };
        if let Ok(listed) = log.listed() {
            let sized = |number: &u32| {
                let file = log.fs.open(&log.path(*number), OpenMode::Read).ok()?;
                Some(RelayFile { number: *number, bytes: file.len().ok()?, is_closed: false })
            };
            let list = listed.numbers.iter().filter_map(sized).collect();
            *log.files.lock() = Files { list };
            log.has_marks.store(listed.has_marks, Ordering::Release);
        }
        Arc::new(log)
    }

    /// Returns the base name of the files.
    pub fn name(&self) -> BinlogName {
        self.name.lock().clone()
    }

    /// Sets the base name for future files. No file may exist.
    pub fn rename(&self, name: BinlogName) {
        *self.name.lock() = name;
    }

    pub(crate) fn path(&self, number: u32) -> PathBuf {
        self.name.lock().path(number)
    }

    pub(crate) fn marks_path(&self) -> PathBuf {
        self.name.lock().index_path().with_extension("marks")
    }

    /// Returns the line of the index that names the marks file.
    pub(crate) fn marks_line(&self) -> String {
        let name = self.name();
        // Derived from the line of a file, without its number.
        let line = name.index_line(1);
        format!("{}.marks", line.strip_suffix(".000001").unwrap_or(&line))
    }

    /// Returns the name of a file, as SHOW SLAVE STATUS prints it.
    pub fn file_name(&self, number: u32) -> String {
        self.name.lock().file(number)
    }

    /// Returns the number of a file in the log.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.name.lock().number(name).filter(|&number| self.has(number))
    }

    fn has(&self, number: u32) -> bool {
        self.files.lock().list.iter().any(|file| file.number == number)
    }

    /// Returns the number of the oldest file.
    pub fn first(&self) -> Option<u32> {
        self.files.lock().list.first().map(|file| file.number)
    }

    /// Returns the end of the newest file.
    pub fn end(&self) -> RelayPlace {
        self.files.lock().end()
    }

    /// Returns the total size of all files.
    pub fn bytes(&self) -> u64 {
        self.files.lock().list.iter().map(|file| file.bytes).sum()
    }

    /// Removes all files. No thread may be using them.
    pub fn clear(&self) -> Result<(), BinlogError> {
        let name = self.name();
        // Includes files that only an unreadable index may name.
        let found = self.fs.list(name.dir()).unwrap_or_default();
        let mut removed: Vec<u32> =
            found.iter().filter_map(|file| name.number(&file.to_string_lossy())).collect();
        removed.extend(std::mem::take(&mut self.files.lock().list).iter().map(|file| file.number));
        removed.sort_unstable();
        removed.dedup();
        let had_marks = self.has_marks.swap(false, Ordering::AcqRel);
        *self.marks.lock() = None;
        // The index is rewritten first, as in a purge.
        let listed = self.write_index();
        self.is_doubtful.store(false, Ordering::Release);
        removed.into_iter().for_each(|number| self.remove_file(number));
        let path = self.marks_path();
        match self.fs.remove(&path) {
            Err(error) if had_marks && error.kind() != ErrorKind::NotFound => {
                return Err(io_error("remove", path)(error));
            }
            _ => {}
        }
        listed.or_else(|_| self.write_index())
    }

    /// Removes all files and the index, because the connection is removed.
    pub fn remove(&self) -> Result<(), BinlogError> {
        self.clear()?;
        // The index may never have been created.
        let _ = self.fs.remove(&self.name.lock().index_path());
        Ok(())
    }

    /// Removes the files before `number`, which are applied.
    pub fn purge_before(&self, number: u32) -> Result<(), BinlogError> {
        let mut removed = Vec::new();
        {
            let mut files = self.files.lock();
            let last = files.end().file;
            let gone = |file: &RelayFile| file.number < number && file.number < last;
            removed.extend(files.list.iter().filter(|file| gone(file)).map(|file| file.number));
            files.list.retain(|file| !gone(file));
        }
        if removed.is_empty() {
            return Ok(());
        }
        // The index is rewritten first, so that it names no missing file. On a full disk the files must be
        // removed first.
        let listed = self.write_index();
        removed.into_iter().for_each(|number| self.remove_file(number));
        // Wakes a receiver that waits for space.
        self.grown.notify_all();
        listed.or_else(|_| self.write_index())
    }

    /// Removes a file. A failure only wastes space, because the index no longer names the file.
    pub(crate) fn remove_file(&self, number: u32) {
        let _ = self.fs.remove(&self.path(number));
    }

    fn write_index(&self) -> Result<(), BinlogError> {
        let _index = self.index.lock();
        let name = self.name();
        let path = name.index_path();
        let new = PathBuf::from(format!("{}.tmp", path.display()));
        let numbers = self.files.lock().numbers();
        let mut text: String = numbers.iter().map(|&n| name.index_line(n) + "\n").collect();
        if self.has_marks.load(Ordering::Acquire) {
            text += &(self.marks_line() + "\n");
        }
        self.fs.replace(&path, &new, text.as_bytes()).map_err(io_error("write", path))
    }

    /// Makes the log one that is kept, because durable events are about to be acknowledged to the source.
    /// Durable at return.
    pub fn arm(&self) -> Result<(), BinlogError> {
        let path = self.marks_path();
        let mut marks = self.marks.lock();
        if let Some(marks) = &mut *marks {
            let is_open = Acknowledged { is_open: true, ..marks.newest() };
            return marks.put(is_open).map_err(io_error("write", path));
        }
        let made = Marks::create(&self.fs, &path).map_err(io_error("create", path))?;
        self.has_marks.store(true, Ordering::Release);
        self.write_index()?;
        *marks = Some(made);
        Ok(())
    }

    /// Records that everything before `until` was acknowledged. `is_open` says that more will be. Durable at
    /// return.
    pub fn mark(&self, until: RelayPlace, is_open: bool) -> std::io::Result<()> {
        let mut marks = self.marks.lock();
        let Some(marks) = &mut *marks else { return Ok(()) };
        let until = until.max(marks.newest().until);
        marks.put(Acknowledged { until, is_open })
    }

    /// Makes the files found by a survey the log.
    pub(crate) fn take_over(&self, survey: &Survey) -> Result<(), Unsound> {
        let path = self.marks_path();
        let mut marks = None;
        if survey.has_marks {
            let opened = Marks::open(&self.fs, &path).map_err(Unsound::io(&path))?;
            let mut opened = opened.ok_or_else(|| Unsound::new(&path, "is damaged"))?;
            // File numbers start at 1 again when no file is left.
            let until = match survey.files.is_empty() {
                true => RelayPlace::default(),
                false => survey.acknowledged.until,
            };
            let found = Acknowledged { until, is_open: false };
            if opened.newest() != found {
                opened.put(found).map_err(Unsound::io(&path))?;
            }
            marks = Some(opened);
        }
        *self.marks.lock() = marks;
        self.has_marks.store(survey.has_marks, Ordering::Release);
        self.files.lock().list.clone_from(&survey.files);
        self.is_doubtful.store(false, Ordering::Release);
        self.write_index().map_err(|error| Unsound::new(&self.name().index_path(), error))
    }

    /// Closes the newest file, if it is not closed: appends the event that names the next file and syncs it.
    fn close_newest(&self, server_id: ServerId, now_s: u32) -> Result<(), BinlogError> {
        let Some(last) = self.files.lock().list.last().copied().filter(|last| !last.is_closed) else {
            return Ok(());
        };
        let path = self.path(last.number);
        let io = |source| BinlogError::Io { action: "end", path: path.clone(), source };
        let file = self.fs.open(&path, OpenMode::Write).map_err(io)?;
        let mut bytes = Vec::new();
        let next = Rotate { position: 4, name: self.file_name(last.number + 1).into_bytes() };
        make_up(&mut bytes, last.bytes, EventType::ROTATE, now_s, server_id, &Event::Rotate(next));
        file.set_len(last.bytes).map_err(io)?;
        file.write_at(&bytes, last.bytes).map_err(io)?;
        self.synced(file.sync_data()).map_err(io)?;
        self.set_end(last.number, last.bytes + bytes.len() as u64, true);
        Ok(())
    }

    fn set_end(&self, number: u32, bytes: u64, is_closed: bool) {
        let mut files = self.files.lock();
        if let Some(file) = files.list.iter_mut().find(|file| file.number == number) {
            (file.bytes, file.is_closed) = (bytes, is_closed);
        }
        drop(files);
        self.grown.notify_all();
    }

    /// Records the outcome of a sync. A failure other than a full disk makes later syncs unreliable.
    fn synced(&self, outcome: std::io::Result<()>) -> std::io::Result<()> {
        if outcome.as_ref().is_err_and(|error| !is_no_space(error)) {
            self.is_doubtful.store(true, Ordering::Release);
        }
        outcome
    }

    fn check_sound(&self) -> Result<(), BinlogError> {
        match self.is_doubtful.load(Ordering::Acquire) {
            true => Err(BinlogError::Failed(
                "an earlier flush of the relay log failed; STOP SLAVE and START SLAVE look at what is there"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Waits at most `most`, until the log has grown beyond `seen` or [`RelayLog::wake`] is called.
    pub fn await_growth(&self, seen: RelayPlace, most: Duration) {
        let mut files = self.files.lock();
        if files.end() <= seen {
            self.grown.wait_for(&mut files, most);
        }
    }

    /// Waits at most `most` until files are removed.
    pub fn await_purge(&self, most: Duration) {
        let mut files = self.files.lock();
        self.grown.wait_for(&mut files, most);
    }

    /// Ends all waits.
    pub fn wake(&self) {
        let _files = self.files.lock();
        self.grown.notify_all();
    }

    /// Opens a file for reading from its beginning.
    pub fn read_file(&self, number: u32) -> Result<EventReader, BinlogError> {
        let mut reader = EventReader::open(&self.fs, &self.path(number))?;
        reader.set_limit(self.files.lock().bytes_of(number));
        Ok(reader)
    }

    fn next_after(&self, number: u32) -> Option<u32> {
        self.files.lock().list.iter().map(|file| file.number).find(|&n| n > number)
    }
}

/// Appends an event of this server to a buffer whose first byte goes to `base` in the file.
fn make_up(
    buffer: &mut Vec<u8>,
    base: u64,
    kind: EventType,
    timestamp: u32,
    server_id: ServerId,
    event: &Event,
) {
    let offset = base + buffer.len() as u64;
    let flags = flags::RELAY_LOG | if timestamp == 0 { flags::ARTIFICIAL } else { 0 };
    let start = begin_event(buffer, kind, timestamp, server_id, flags);
    event.encode(buffer);
    finish_event(buffer, start, offset, Checksum::Crc32);
}

/// Appends to the relay log.
pub struct RelayWriter {
    log: Arc<RelayLog>,
    server_id: ServerId,
    number: u32,
    file: SharedFile,
    /// Bytes written to the file.
    written: u64,
    buffer: Vec<u8>,
    has_unsynced: bool,
    /// The final ROTATE to the next file is appended.
    is_closed: bool,
    /// The index on disk names the file.
    is_listed: bool,
}

impl RelayWriter {
    /// Begins a new file.
    pub fn begin(
        log: &Arc<RelayLog>,
        server_id: ServerId,
        now_s: u32,
        place: &SourcePlace,
    ) -> Result<RelayWriter, BinlogError> {
        log.check_sound()?;
        log.close_newest(server_id, now_s)?;
        let number = log.end().file + 1;
        let path = log.path(number);
        let io = |e| BinlogError::Io { action: "create", path: path.clone(), source: e };
        // A file left from an earlier log must not reappear after a power failure.
        match log.fs.remove(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        let file = log.fs.open(&path, OpenMode::CreateNew).map_err(io)?;
        let mut writer = RelayWriter {
            log: Arc::clone(log),
            server_id,
            number,
            file,
            written: 0,
            buffer: MAGIC.to_vec(),
            has_unsynced: false,
            is_closed: false,
            is_listed: false,
        };
        let format = FormatDescription::new(&format!("{VERSION}-log"), now_s, Checksum::Crc32);
        writer.make_up(EventType::FORMAT_DESCRIPTION, now_s, &Event::FormatDescription(format));
        if !place.file.is_empty() {
            let rotate = Rotate { position: place.position, name: place.file.clone().into_bytes() };
            writer.make_up(EventType::ROTATE, 0, &Event::Rotate(rotate));
        }
        // Readers see the file only once its head is written.
        writer.write_buffer()?;
        log.files.lock().list.push(RelayFile { number, bytes: writer.written, is_closed: false });
        // The file is in use from here on. If the index could not be written, `sync` retries it before events
        // are reported durable.
        writer.is_listed = log.write_index().is_ok();
        log.grown.notify_all();
        Ok(writer)
    }

    fn make_up(&mut self, kind: EventType, timestamp: u32, event: &Event) {
        make_up(&mut self.buffer, self.written, kind, timestamp, self.server_id, event);
    }

    /// Buffers an event that has a checksum. Readers see it after the next flush.
    pub fn append(&mut self, event: &[u8]) {
        self.buffer.extend_from_slice(event);
    }

    /// Returns whether the buffer should be flushed.
    pub fn is_full(&self) -> bool {
        self.buffer.len() >= BUFFER_BYTES
    }

    /// Buffers an event without a checksum and adds one.
    pub fn append_plain(&mut self, header: &EventHeader, body: &[u8]) {
        let event_len = header.event_len + Checksum::Crc32.len() as u32;
        let start = self.buffer.len();
        EventHeader { event_len, ..*header }.encode(&mut self.buffer);
        self.buffer.extend_from_slice(body);
        let crc = cohort_binlog::event::crc_of_event(&self.buffer[start..]);
        self.buffer.extend_from_slice(&crc.to_le_bytes());
    }

    /// Discards the buffer.
    pub fn discard(&mut self) {
        self.buffer.clear();
    }

    /// Writes the buffer, all or nothing, and shows it to the reader. After an error the buffer is kept.
    pub fn flush(&mut self) -> Result<(), BinlogError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write_buffer()?;
        self.log.set_end(self.number, self.written, false);
        Ok(())
    }

    fn write_buffer(&mut self) -> Result<(), BinlogError> {
        let path = self.log.path(self.number);
        self.file.write_at(&self.buffer, self.written).map_err(|e| BinlogError::Io {
            action: "write",
            path,
            source: e,
        })?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        // Frees the memory of a large event.
        self.buffer.shrink_to(2 * BUFFER_BYTES);
        self.has_unsynced = true;
        Ok(())
    }

    /// Makes all events durable.
    pub fn sync(&mut self) -> Result<(), BinlogError> {
        self.flush()?;
        self.log.check_sound()?;
        if self.has_unsynced {
            let synced = self.log.synced(self.file.sync_data());
            synced.map_err(io_error("sync", self.log.path(self.number)))?;
            self.has_unsynced = false;
        }
        if !self.is_listed {
            self.log.write_index()?;
            self.is_listed = true;
        }
        Ok(())
    }

    /// Returns the position after the last byte written.
    pub fn place(&self) -> RelayPlace {
        RelayPlace { file: self.number, offset: self.written }
    }

    /// Returns the size of the file, including the buffer.
    pub fn file_bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Ends the file and begins the next one. After an error the caller must call it again before anything
    /// else.
    pub fn rotate(&mut self, now_s: u32, place: &SourcePlace) -> Result<(), BinlogError> {
        if !std::mem::replace(&mut self.is_closed, true) {
            let next = Rotate { position: 4, name: self.log.file_name(self.number + 1).into_bytes() };
            self.make_up(EventType::ROTATE, now_s, &Event::Rotate(next));
        }
        self.sync()?;
        self.log.set_end(self.number, self.written, true);
        *self = RelayWriter::begin(&self.log, self.server_id, now_s, place)?;
        Ok(())
    }
}

/// Reads the relay log while it grows.
pub struct RelayReader {
    log: Arc<RelayLog>,
    number: u32,
    reader: EventReader,
}

impl RelayReader {
    /// Opens a reader at a position. Returns `None` if the file does not exist yet.
    pub fn at(log: &Arc<RelayLog>, place: RelayPlace) -> Result<Option<RelayReader>, BinlogError> {
        if !log.has(place.file) {
            return Ok(None);
        }
        let mut reader = EventReader::open(&log.fs, &log.path(place.file))?;
        reader.seek(place.offset.max(MAGIC.len() as u64));
        Ok(Some(RelayReader { log: Arc::clone(log), number: place.file, reader }))
    }

    /// Returns the position of the next event.
    pub fn place(&self) -> RelayPlace {
        RelayPlace { file: self.number, offset: self.reader.offset() }
    }

    /// Returns the next event, or `None` at the end of the log.
    pub fn next_event(&mut self) -> Result<Option<RawEvent>, BinlogError> {
        loop {
            // Read before the end of this file: events that arrive later are then in a later file.
            let next = self.log.next_after(self.number);
            let end = self.log.files.lock().bytes_of(self.number);
            self.reader.set_limit(end);
            if let Some(raw) = self.reader.next_event()? {
                return Ok(Some(raw));
            }
            // Bytes that were written are missing.
            if self.reader.offset() < end {
                return Err(self.corrupt(format!("its events go on up to offset {end}, and are not there")));
            }
            let Some(next) = next else { return Ok(None) };
            if next != self.number + 1 {
                return Err(self.corrupt(format!("the next file is '{}'", self.log.file_name(next))));
            }
            self.reader = EventReader::open(&self.log.fs, &self.log.path(next))?;
            self.number = next;
        }
    }

    fn corrupt(&self, what: String) -> BinlogError {
        BinlogError::Corrupt { path: self.log.path(self.number), offset: self.reader.offset(), what }
    }
}

/// Whether an existing relay log may be kept when both threads start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relay {
    MayStay,
    Goes,
}

pub(crate) fn relay_error(error: BinlogError) -> SqlError {
    SqlError::new(ErrorCode::UnknownError, format!("Relay log: {error}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cohort_vfs::{Fault, FaultFs, MemFs};

    use super::*;

    fn query(text: &[u8]) -> (EventHeader, Vec<u8>) {
        let header = EventHeader {
            timestamp: 9,
            kind: EventType::ANNOTATE_ROWS,
            server_id: ServerId(1),
            event_len: 19 + text.len() as u32,
            log_pos: 1000,
            flags: 0,
        };
        (header, text.to_vec())
    }

    #[test]
    fn the_reader_follows_the_writer_over_files_and_applied_files_go() {
        let fs: SharedFs = Arc::new(MemFs::new());
        fs.create_dir_all(Path::new("/d")).expect("made");
        let name = BinlogName::new(Path::new("/d"), "relay");
        let log = RelayLog::open(fs.clone(), name.clone());
        assert!(RelayReader::at(&log, RelayPlace { file: 1, offset: 4 }).expect("no file").is_none());
        let place = SourcePlace { file: "b.000001".to_owned(), position: 77 };
        let mut writer = RelayWriter::begin(&log, ServerId(5), 3, &place).expect("begins");
        let mut reader =
            RelayReader::at(&log, RelayPlace { file: 1, offset: 0 }).expect("opens").expect("there");
        let kinds = |reader: &mut RelayReader| {
            let mut kinds = Vec::new();
            while let Some(raw) = reader.next_event().expect("whole") {
                reader.reader.decode(&raw).expect("decodes");
                kinds.push(raw.header.kind);
            }
            kinds
        };
        assert_eq!(kinds(&mut reader), [EventType::FORMAT_DESCRIPTION, EventType::ROTATE]);
        let (header, body) = query(b"one");
        writer.append_plain(&header, &body);
        assert_eq!(kinds(&mut reader), []);
        writer.flush().expect("written");
        assert_eq!(kinds(&mut reader), [EventType::ANNOTATE_ROWS]);
        writer.rotate(4, &place).expect("next file");
        writer.append_plain(&header, &body);
        writer.flush().expect("written");
        let rest =
            [EventType::ROTATE, EventType::FORMAT_DESCRIPTION, EventType::ROTATE, EventType::ANNOTATE_ROWS];
        assert_eq!(kinds(&mut reader), rest);
        assert_eq!(reader.place(), log.end());
        let bytes = log.bytes();
        log.purge_before(2).expect("purged");
        assert_eq!((log.first(), log.bytes() < bytes), (Some(2), true));
        assert!(!fs.exists(Path::new("/d/relay.000001")));
        let again = RelayLog::open(fs.clone(), name);
        assert_eq!(again.first(), Some(2));
        // Simulates a crash that tore the last event.
        let file = fs.open(Path::new("/d/relay.000002"), OpenMode::Write).expect("there");
        file.set_len(log.end().offset - 3).expect("cut");
        let mut seen = Vec::new();
        let survey = again.survey(&mut |_, raw| seen.push(raw.header.kind)).expect("sound");
        again.adopt(&survey).expect("cut");
        assert_eq!(seen, [EventType::FORMAT_DESCRIPTION, EventType::ROTATE]);
        assert_eq!(file.len().expect("there"), again.end().offset);
        let mut reader =
            RelayReader::at(&again, RelayPlace { file: 2, offset: 0 }).expect("opens").expect("there");
        assert_eq!(kinds(&mut reader), seen);
    }
    /// Returns the kinds of all events that a reader finds.
    fn kinds_of(log: &Arc<RelayLog>) -> Vec<EventType> {
        let mut reader =
            RelayReader::at(log, RelayPlace { file: 1, offset: 0 }).expect("opens").expect("there");
        std::iter::from_fn(|| reader.next_event().expect("whole")).map(|raw| raw.header.kind).collect()
    }

    #[test]
    fn whatever_fails_once_is_done_again_and_events_stay_as_often_as_they_came() {
        let place = SourcePlace { file: "b.000001".to_owned(), position: 77 };
        let (header, body) = query(b"one");
        for nth in 0.. {
            let below: SharedFs = Arc::new(MemFs::new());
            let faulty = FaultFs::new(below.clone());
            let fs: SharedFs = Arc::new(faulty.clone());
            fs.create_dir_all(Path::new("/d")).expect("made");
            let log = RelayLog::open(fs, BinlogName::new(Path::new("/d"), "relay"));
            let mut writer = RelayWriter::begin(&log, ServerId(5), 3, &place).expect("begins");
            let first = faulty.ops();
            faulty.set(Fault::ErrorAt(first + nth, std::io::ErrorKind::StorageFull));
            let mut failures = 0;
            let mut again = |step: &mut dyn FnMut() -> Result<(), BinlogError>| {
                while step().is_err() {
                    failures += 1;
                    assert!(failures < 3, "operation {nth} fails once");
                }
            };
            writer.append_plain(&header, &body);
            again(&mut || writer.flush());
            again(&mut || writer.rotate(4, &place));
            writer.append_plain(&header, &body);
            again(&mut || writer.sync());
            // A file begun by another thread closes the previous one, whatever bytes follow its end.
            let torn = below.open(&log.path(2), OpenMode::Write).expect("there");
            torn.write_at(b"torn", log.end().offset).expect("written");
            let begin = || RelayWriter::begin(&log, ServerId(5), 5, &place);
            let mut writer = begin().or_else(|_| begin()).expect("begins");
            writer.append_plain(&header, &body);
            again(&mut || writer.sync());
            let kinds = kinds_of(&log);
            let count = |kind| kinds.iter().filter(|found| **found == kind).count();
            assert_eq!(count(EventType::ANNOTATE_ROWS), 3, "{nth}: {kinds:?}");
            assert_eq!(count(EventType::FORMAT_DESCRIPTION), 3, "{nth}: {kinds:?}");
            let known = RelayLog::open(below, log.name());
            assert_eq!(known.files.lock().numbers(), [1, 2, 3], "{nth}");
            let survey = known.survey(&mut |_, _| {}).expect("the files join on");
            assert_eq!((survey.end(), survey.torn), (log.end(), None), "{nth}");
            if faulty.ops() - first <= nth {
                assert!(nth > 10, "{nth}");
                return;
            }
        }
    }

    fn begun(fs: SharedFs) -> (Arc<RelayLog>, RelayWriter) {
        fs.create_dir_all(Path::new("/d")).expect("made");
        let log = RelayLog::open(fs, BinlogName::new(Path::new("/d"), "relay"));
        let place = SourcePlace { file: "b.000001".to_owned(), position: 77 };
        let writer = RelayWriter::begin(&log, ServerId(5), 3, &place).expect("begins");
        (log, writer)
    }

    #[test]
    fn lost_written_records_are_not_the_end_of_the_log() {
        let fs: SharedFs = Arc::new(MemFs::new());
        let (log, mut writer) = begun(fs.clone());
        let (header, body) = query(b"one");
        writer.append_plain(&header, &body);
        writer.rotate(4, &SourcePlace::default()).expect("next file");
        for (number, cut) in [(1, 3), (1, 60), (2, 3)] {
            let path = log.path(number);
            let file = fs.open(&path, OpenMode::Write).expect("there");
            let mut bytes = vec![0; file.len().expect("known") as usize];
            file.read_at(&mut bytes, 0).expect("read");
            file.set_len(bytes.len() as u64 - cut).expect("cut");
            let mut reader =
                RelayReader::at(&log, RelayPlace { file: 1, offset: 0 }).expect("opens").expect("there");
            let outcome = std::iter::from_fn(|| reader.next_event().transpose()).find_map(Result::err);
            assert!(matches!(outcome, Some(BinlogError::Corrupt { .. })), "{number} {cut}: {outcome:?}");
            file.write_at(&bytes, 0).expect("put right");
        }
    }

    #[test]
    fn a_failed_flush_ends_acknowledgements_until_the_log_was_looked_through() {
        let faulty = FaultFs::new(Arc::new(MemFs::new()));
        let (log, mut writer) = begun(Arc::new(faulty.clone()));
        log.arm().expect("marks");
        let (header, body) = query(b"one");
        writer.append_plain(&header, &body);
        writer.flush().expect("written");
        faulty.set(Fault::ErrorAt(faulty.ops(), std::io::ErrorKind::Other));
        writer.sync().expect_err("EIO");
        writer.sync().expect_err("the same again says nothing");
        let begin = || RelayWriter::begin(&log, ServerId(5), 5, &SourcePlace::default());
        assert!(begin().is_err());
        let survey = log.survey(&mut |_, _| {}).expect("sound");
        log.adopt(&survey).expect("whole");
        begin().expect("begins").sync().expect("durable");
    }

    #[test]
    fn numbers_that_begin_again_are_not_measured_by_an_old_mark() {
        let fs: SharedFs = Arc::new(MemFs::new());
        let (log, mut writer) = begun(fs.clone());
        log.arm().expect("marks");
        let (header, body) = query(b"one");
        for _ in 0..3 {
            writer.append_plain(&header, &body);
            writer.sync().expect("durable");
            log.mark(writer.place(), false).expect("marked");
            writer.rotate(4, &SourcePlace::default()).expect("next file");
        }
        log.purge_before(4).expect("purged");
        // Simulates a crash that took the newest file, which was never synced.
        fs.open(&log.path(4), OpenMode::Write).expect("there").set_len(0).expect("cut");
        for round in 0..2 {
            let log = RelayLog::open(fs.clone(), log.name());
            let survey = log.survey(&mut |_, _| {}).unwrap_or_else(|e| panic!("{round}: {e}"));
            assert_eq!(survey.files.len(), round);
            log.adopt(&survey).expect("adopted");
            let place = SourcePlace::default();
            RelayWriter::begin(&log, ServerId(5), 3, &place).expect("begins").sync().expect("durable");
        }
    }

    #[test]
    fn marked_pages_survive_a_power_failure_at_any_operation() {
        for at in 0.. {
            let memory = MemFs::new();
            let faulty = FaultFs::new(Arc::new(memory.clone()));
            faulty.set(Fault::CrashAt(at));
            // The acknowledged position.
            let mut promised = RelayPlace::default();
            let mut run = || -> Result<(), BinlogError> {
                let fs: SharedFs = Arc::new(faulty.clone());
                fs.create_dir_all(Path::new("/d")).map_err(io_error("make", "/d".into()))?;
                let log = RelayLog::open(fs, BinlogName::new(Path::new("/d"), "relay"));
                for round in 0..3 {
                    let place = SourcePlace { file: "b.000001".to_owned(), position: 77 };
                    // Each receiver of a connection begins a new file.
                    let mut writer = RelayWriter::begin(&log, ServerId(5), 3, &place)?;
                    log.arm()?;
                    let (header, body) = query(b"one");
                    for n in 0..4 {
                        writer.append_plain(&header, &body);
                        if n == 2 {
                            writer.rotate(4, &place)?;
                        }
                        writer.sync()?;
                        promised = writer.place();
                        // Marks may be older than acknowledgements.
                        if n % 2 == 1 {
                            log.mark(promised, true).map_err(io_error("mark", log.marks_path()))?;
                        }
                    }
                    writer.append_plain(&header, &body);
                    writer.flush()?;
                    if round == 1 {
                        log.purge_before(2)?;
                    }
                }
                Ok(())
            };
            let done = run();
            for seed in 0..4 {
                let left: SharedFs = Arc::new(memory.crash_clone(seed));
                let log = RelayLog::open(left, BinlogName::new(Path::new("/d"), "relay"));
                let what = format!("operation {at}, seed {seed}");
                if promised > RelayPlace::default() {
                    assert!(log.is_acknowledged().expect("an index"), "{what}");
                }
                let survey = log.survey(&mut |_, _| {}).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(survey.end() >= promised, "{what}: {:?} and not {promised:?}", survey.end());
                assert!(survey.acknowledged.until >= promised, "{what}");
                log.adopt(&survey).expect("adopted");
                let place = SourcePlace::default();
                RelayWriter::begin(&log, ServerId(5), 3, &place).expect("begins").sync().expect("durable");
            }
            if done.is_ok() {
                assert!(at > 50, "{at}");
                return;
            }
        }
    }
}
