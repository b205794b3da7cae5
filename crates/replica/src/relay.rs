//! The relay log: what a receiver got and the applier has not applied yet, in classic files.
//!
//! # Concepts
//! One writer (the receiver's thread) appends, one reader (the applier's) follows. Files are numbered, the
//! index lists them. Events are the source's, with the source's positions in them; all have a checksum here,
//! whatever the source does, so that a damaged file is noticed. A file begins with a format description of
//! this server and a made-up ROTATE that names the place in the source's log.
//!
//! # What is synced
//! Nothing, unless the source is to be told that the events are durable (semi-synchronous replication): then
//! [`RelayWriter::sync`]. What a crash takes away is fetched again from where the applier has come to.
//!
//! # On failure
//! A file that cannot be written ends the receiver with error 1595, one that cannot be read the applier with
//! error 1594. A full disk makes the receiver wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cohort_base::ServerId;
use cohort_binlog::event::{
    Event, EventHeader, FormatDescription, MAGIC, Rotate, begin_event, finish_event, flags,
};
use cohort_binlog::{BinlogError, BinlogName, Checksum, EventReader, EventType, RawEvent};
use cohort_config::VERSION;
use cohort_vfs::{OpenMode, SharedFile, SharedFs};
use parking_lot::{Condvar, Mutex};

/// Bytes gathered before they are written, unless the source pauses.
const BUFFER_BYTES: usize = 256 << 10;

/// The files of one connection.
pub struct RelayLog {
    fs: SharedFs,
    name: BinlogName,
    files: Mutex<Files>,
    grown: Condvar,
    /// Held by whoever writes the index: it is the newest list that stays.
    index: Mutex<()>,
}

#[derive(Default)]
struct Files {
    /// Oldest first; the last one is being written.
    numbers: Vec<u32>,
    /// Of all files but the last.
    closed_bytes: u64,
    /// Written to the last one.
    last_bytes: u64,
}

/// A place in the relay log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelayPlace {
    pub file: u32,
    pub offset: u64,
}

impl RelayLog {
    /// The files that the index lists, as far as they are there.
    pub fn open(fs: SharedFs, name: BinlogName) -> Result<Arc<RelayLog>, BinlogError> {
        let index = name.index_path();
        let mut numbers: Vec<u32> = Vec::new();
        if fs.exists(&index) {
            let io = |e| BinlogError::Io { action: "read", path: index.clone(), source: e };
            let file = fs.open(&index, OpenMode::Read).map_err(io)?;
            let mut bytes = vec![0; file.len().map_err(io)? as usize];
            let got = file.read_at(&mut bytes, 0).map_err(io)?;
            let text = String::from_utf8_lossy(&bytes[..got]).into_owned();
            numbers = text.lines().filter_map(|line| name.number(line.trim())).collect();
            numbers.retain(|&number| fs.exists(&name.path(number)));
            numbers.sort_unstable();
            numbers.dedup();
        }
        let sizes = numbers.iter().map(|&number| {
            let length = fs.open(&name.path(number), OpenMode::Read).and_then(|file| file.len());
            length.unwrap_or(0)
        });
        let closed_bytes = sizes.sum();
        let files = Mutex::new(Files { numbers, closed_bytes, last_bytes: 0 });
        Ok(Arc::new(RelayLog { fs, name, files, grown: Condvar::new(), index: Mutex::new(()) }))
    }

    /// The name of a file, as SHOW SLAVE STATUS prints it.
    pub fn file_name(&self, number: u32) -> String {
        self.name.file(number)
    }

    /// The number of a file.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.name.number(name).filter(|number| self.files.lock().numbers.contains(number))
    }

    /// The oldest file.
    pub fn first(&self) -> Option<u32> {
        self.files.lock().numbers.first().copied()
    }

    /// The newest file and where it ends.
    pub fn end(&self) -> RelayPlace {
        let files = self.files.lock();
        RelayPlace { file: files.numbers.last().copied().unwrap_or(0), offset: files.last_bytes }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        let files = self.files.lock();
        files.closed_bytes + files.last_bytes
    }

    /// Removes all files; nobody writes or reads them.
    pub fn clear(&self) -> Result<(), BinlogError> {
        let removed = {
            let mut files = self.files.lock();
            (files.closed_bytes, files.last_bytes) = (0, 0);
            std::mem::take(&mut files.numbers)
        };
        self.remove_files(&removed);
        self.write_index()
    }

    /// Removes the index, too: the connection is forgotten.
    pub fn remove(&self) -> Result<(), BinlogError> {
        self.clear()?;
        // It may never have been made.
        let _ = self.fs.remove(&self.name.index_path());
        Ok(())
    }

    /// Removes the files before this one: they are applied.
    pub fn purge_before(&self, number: u32) -> Result<(), BinlogError> {
        let mut removed = Vec::new();
        {
            let mut files = self.files.lock();
            let last = files.numbers.last().copied().unwrap_or(0);
            let gone = |n: &u32| *n < number && *n < last;
            removed.extend(files.numbers.iter().copied().filter(gone));
            files.numbers.retain(|n| !gone(n));
        }
        if removed.is_empty() {
            return Ok(());
        }
        let bytes = self.remove_files(&removed);
        let mut files = self.files.lock();
        files.closed_bytes = files.closed_bytes.saturating_sub(bytes);
        drop(files);
        // Whoever waits for space looks again.
        self.grown.notify_all();
        self.write_index()
    }

    fn remove_files(&self, numbers: &[u32]) -> u64 {
        let mut bytes = 0;
        for &number in numbers {
            let path = self.name.path(number);
            bytes += self.fs.open(&path, OpenMode::Read).and_then(|file| file.len()).unwrap_or(0);
            // A file that stays takes room; the index does not name it any more.
            let _ = self.fs.remove(&path);
        }
        bytes
    }

    fn write_index(&self) -> Result<(), BinlogError> {
        let _index = self.index.lock();
        let path = self.name.index_path();
        let new = PathBuf::from(format!("{}.tmp", path.display()));
        let numbers = self.files.lock().numbers.clone();
        let text: String = numbers.iter().map(|&n| self.name.index_line(n) + "\n").collect();
        let write = || {
            let file = self.fs.open(&new, OpenMode::CreateOrOpen)?;
            file.set_len(0)?;
            file.write_at(text.as_bytes(), 0)?;
            file.sync_data()?;
            self.fs.rename(&new, &path)?;
            self.fs.sync_dir(self.name.dir())
        };
        write().map_err(|e| BinlogError::Io { action: "write", path: path.clone(), source: e })
    }

    /// Waits until more is there than `seen`, or somebody calls [`RelayLog::wake`], for this long at most.
    pub fn await_growth(&self, seen: RelayPlace, most: Duration) {
        let mut files = self.files.lock();
        let end = RelayPlace { file: files.numbers.last().copied().unwrap_or(0), offset: files.last_bytes };
        if end <= seen {
            self.grown.wait_for(&mut files, most);
        }
    }

    /// Waits until files are removed, for this long at most.
    pub fn await_purge(&self, most: Duration) {
        let mut files = self.files.lock();
        self.grown.wait_for(&mut files, most);
    }

    /// Ends the waits.
    pub fn wake(&self) {
        let _files = self.files.lock();
        self.grown.notify_all();
    }

    /// Reads a file from its beginning.
    pub fn read_file(&self, number: u32) -> Result<EventReader, BinlogError> {
        let mut reader = EventReader::open(&self.fs, &self.name.path(number))?;
        let end = self.end();
        if end.file == number {
            reader.set_limit(end.offset);
        }
        Ok(reader)
    }

    fn next_after(&self, number: u32) -> Option<u32> {
        self.files.lock().numbers.iter().copied().find(|&n| n > number)
    }
}

/// What a new file says of the source.
#[derive(Clone, Debug, Default)]
pub struct SourcePlace {
    pub file: String,
    pub position: u64,
}

/// Appends to the relay log.
pub struct RelayWriter {
    log: Arc<RelayLog>,
    server_id: ServerId,
    number: u32,
    file: SharedFile,
    /// In the file.
    written: u64,
    buffer: Vec<u8>,
    has_unsynced: bool,
}

impl RelayWriter {
    /// Begins a new file.
    pub fn begin(
        log: &Arc<RelayLog>,
        server_id: ServerId,
        now_s: u32,
        place: &SourcePlace,
    ) -> Result<RelayWriter, BinlogError> {
        let number = log.files.lock().numbers.last().map_or(1, |last| last + 1);
        let path = log.name.path(number);
        let io = |e| BinlogError::Io { action: "create", path: path.clone(), source: e };
        let file = log.fs.open(&path, OpenMode::CreateOrOpen).map_err(io)?;
        file.set_len(0).map_err(io)?;
        let mut writer = RelayWriter {
            log: Arc::clone(log),
            server_id,
            number,
            file,
            written: 0,
            buffer: MAGIC.to_vec(),
            has_unsynced: false,
        };
        let format = FormatDescription::new(&format!("{VERSION}-log"), now_s, Checksum::Crc32);
        writer.make_up(EventType::FORMAT_DESCRIPTION, now_s, &Event::FormatDescription(format));
        if !place.file.is_empty() {
            let rotate = Rotate { position: place.position, name: place.file.clone().into_bytes() };
            writer.make_up(EventType::ROTATE, 0, &Event::Rotate(rotate));
        }
        // Readers see it with its head.
        writer.write_buffer()?;
        {
            let mut files = log.files.lock();
            files.closed_bytes += std::mem::take(&mut files.last_bytes);
            files.numbers.push(number);
            files.last_bytes = writer.written;
        }
        log.write_index()?;
        log.grown.notify_all();
        Ok(writer)
    }

    fn make_up(&mut self, kind: EventType, timestamp: u32, event: &Event) {
        let offset = self.written + self.buffer.len() as u64;
        let flags = flags::RELAY_LOG | if timestamp == 0 { flags::ARTIFICIAL } else { 0 };
        let start = begin_event(&mut self.buffer, kind, timestamp, self.server_id, flags);
        event.encode(&mut self.buffer);
        finish_event(&mut self.buffer, start, offset, Checksum::Crc32);
    }

    /// Adds an event that has a checksum.
    pub fn append(&mut self, event: &[u8]) -> Result<(), BinlogError> {
        self.buffer.extend_from_slice(event);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Adds an event without a checksum, and gives it one.
    pub fn append_plain(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), BinlogError> {
        let event_len = header.event_len + Checksum::Crc32.len() as u32;
        let start = self.buffer.len();
        EventHeader { event_len, ..*header }.encode(&mut self.buffer);
        self.buffer.extend_from_slice(body);
        let crc = cohort_binlog::event::crc_of_event(&self.buffer[start..]);
        self.buffer.extend_from_slice(&crc.to_le_bytes());
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what is gathered; the reader sees it.
    pub fn flush(&mut self) -> Result<(), BinlogError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write_buffer()?;
        self.log.files.lock().last_bytes = self.written;
        self.log.grown.notify_all();
        Ok(())
    }

    fn write_buffer(&mut self) -> Result<(), BinlogError> {
        let path = self.log.name.path(self.number);
        self.file.write_at(&self.buffer, self.written).map_err(|e| BinlogError::Io {
            action: "write",
            path,
            source: e,
        })?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        // Memory of a large event.
        self.buffer.shrink_to(2 * BUFFER_BYTES);
        self.has_unsynced = true;
        Ok(())
    }

    /// Makes all of it durable.
    pub fn sync(&mut self) -> Result<(), BinlogError> {
        self.flush()?;
        if std::mem::take(&mut self.has_unsynced) {
            let path = self.log.name.path(self.number);
            self.file.sync_data().map_err(|e| BinlogError::Io { action: "sync", path, source: e })?;
        }
        Ok(())
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Ends the file and begins the next one.
    pub fn rotate(&mut self, now_s: u32, place: &SourcePlace) -> Result<(), BinlogError> {
        let next = Rotate { position: 4, name: self.log.name.file(self.number + 1).into_bytes() };
        self.make_up(EventType::ROTATE, now_s, &Event::Rotate(next));
        self.sync()?;
        *self = RelayWriter::begin(&self.log, self.server_id, now_s, place)?;
        Ok(())
    }
}

/// Follows the relay log.
pub struct RelayReader {
    log: Arc<RelayLog>,
    number: u32,
    reader: EventReader,
}

impl RelayReader {
    /// From a place on; None if there is no such file yet.
    pub fn at(log: &Arc<RelayLog>, place: RelayPlace) -> Result<Option<RelayReader>, BinlogError> {
        if !log.files.lock().numbers.contains(&place.file) {
            return Ok(None);
        }
        let mut reader = EventReader::open(&log.fs, &log.name.path(place.file))?;
        reader.seek(place.offset.max(MAGIC.len() as u64));
        Ok(Some(RelayReader { log: Arc::clone(log), number: place.file, reader }))
    }

    /// Where the next event starts.
    pub fn place(&self) -> RelayPlace {
        RelayPlace { file: self.number, offset: self.reader.offset() }
    }

    /// The next event; None at the end.
    pub fn next_event(&mut self) -> Result<Option<RawEvent>, BinlogError> {
        loop {
            // Looked at first: what comes behind the answer is in a later file.
            let next = self.log.next_after(self.number);
            let end = self.log.end();
            let limit = if end.file == self.number { end.offset } else { u64::MAX };
            self.reader.set_limit(limit);
            if let Some(raw) = self.reader.next_event()? {
                return Ok(Some(raw));
            }
            let Some(next) = next else { return Ok(None) };
            self.number = next;
            self.reader = EventReader::open(&self.log.fs, &self.log.name.path(next))?;
        }
    }

    /// Decodes an event.
    pub fn decode(&self, raw: &RawEvent) -> Result<Event, cohort_binlog::DecodeError> {
        self.reader.decode(raw)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cohort_vfs::MemFs;

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
        let log = RelayLog::open(fs.clone(), name.clone()).expect("empty");
        assert!(RelayReader::at(&log, RelayPlace { file: 1, offset: 4 }).expect("no file").is_none());
        let place = SourcePlace { file: "b.000001".to_owned(), position: 77 };
        let mut writer = RelayWriter::begin(&log, ServerId(5), 3, &place).expect("begins");
        let mut reader =
            RelayReader::at(&log, RelayPlace { file: 1, offset: 0 }).expect("opens").expect("there");
        let kinds = |reader: &mut RelayReader| {
            let mut kinds = Vec::new();
            while let Some(raw) = reader.next_event().expect("whole") {
                reader.decode(&raw).expect("decodes");
                kinds.push(raw.header.kind);
            }
            kinds
        };
        assert_eq!(kinds(&mut reader), [EventType::FORMAT_DESCRIPTION, EventType::ROTATE]);
        let (header, body) = query(b"one");
        writer.append_plain(&header, &body).expect("gathered");
        assert_eq!(kinds(&mut reader), []);
        writer.flush().expect("written");
        assert_eq!(kinds(&mut reader), [EventType::ANNOTATE_ROWS]);
        writer.rotate(4, &place).expect("next file");
        writer.append_plain(&header, &body).expect("gathered");
        writer.flush().expect("written");
        let rest =
            [EventType::ROTATE, EventType::FORMAT_DESCRIPTION, EventType::ROTATE, EventType::ANNOTATE_ROWS];
        assert_eq!(kinds(&mut reader), rest);
        assert_eq!(reader.place(), log.end());
        let bytes = log.bytes();
        log.purge_before(2).expect("purged");
        assert_eq!((log.first(), log.bytes() < bytes), (Some(2), true));
        assert!(!fs.exists(Path::new("/d/relay.000001")));
        let again = RelayLog::open(fs, name).expect("the index is there");
        assert_eq!(again.first(), Some(2));
    }
}
