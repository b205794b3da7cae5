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
//! error 1594. A full disk makes the receiver wait. What a write that failed left in a file is behind the
//! bytes that count, where nobody reads.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cohort_base::ServerId;
use cohort_binlog::event::{
    Event, EventHeader, FormatDescription, MAGIC, Rotate, begin_event, finish_event, flags,
};
use cohort_binlog::{BinlogError, BinlogName, Checksum, DecodeError, EventReader, EventType, RawEvent};
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
    /// Held while the index is written: the newest list stays.
    index: Mutex<()>,
}

#[derive(Default)]
struct Files {
    /// Oldest first; the last one is being written.
    list: Vec<RelayFile>,
}

/// A file, and how much of it counts: behind that may be what a failed write left.
#[derive(Clone, Copy)]
struct RelayFile {
    number: u32,
    bytes: u64,
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
        let sized = |number: u32| {
            let length = fs.open(&name.path(number), OpenMode::Read).and_then(|file| file.len());
            RelayFile { number, bytes: length.unwrap_or(0) }
        };
        let files = Mutex::new(Files { list: numbers.into_iter().map(sized).collect() });
        Ok(Arc::new(RelayLog { fs, name, files, grown: Condvar::new(), index: Mutex::new(()) }))
    }

    /// The name of a file, as SHOW SLAVE STATUS prints it.
    pub fn file_name(&self, number: u32) -> String {
        self.name.file(number)
    }

    /// The number of a file.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.name.number(name).filter(|&number| self.has(number))
    }

    fn has(&self, number: u32) -> bool {
        self.files.lock().list.iter().any(|file| file.number == number)
    }

    /// The oldest file.
    pub fn first(&self) -> Option<u32> {
        self.files.lock().list.first().map(|file| file.number)
    }

    /// The newest file and where it ends.
    pub fn end(&self) -> RelayPlace {
        self.files.lock().end()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.lock().list.iter().map(|file| file.bytes).sum()
    }

    /// Removes all files; nobody writes or reads them.
    pub fn clear(&self) -> Result<(), BinlogError> {
        let removed = std::mem::take(&mut self.files.lock().list);
        removed.iter().for_each(|file| self.remove_file(file.number));
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
            let last = files.end().file;
            let gone = |file: &RelayFile| file.number < number && file.number < last;
            removed.extend(files.list.iter().filter(|file| gone(file)).map(|file| file.number));
            files.list.retain(|file| !gone(file));
        }
        if removed.is_empty() {
            return Ok(());
        }
        removed.into_iter().for_each(|number| self.remove_file(number));
        // The receiver that waits for space looks again.
        self.grown.notify_all();
        self.write_index()
    }

    /// A file that cannot be removed takes room; the index does not name it any more.
    fn remove_file(&self, number: u32) {
        let _ = self.fs.remove(&self.name.path(number));
    }

    fn write_index(&self) -> Result<(), BinlogError> {
        let _index = self.index.lock();
        let path = self.name.index_path();
        let new = PathBuf::from(format!("{}.tmp", path.display()));
        let numbers = self.files.lock().numbers();
        let text: String = numbers.iter().map(|&n| self.name.index_line(n) + "\n").collect();
        let written = self.fs.replace(&path, &new, text.as_bytes());
        written.map_err(|e| BinlogError::Io { action: "write", path: path.clone(), source: e })
    }

    /// Looks through what an earlier server left, and cuts it where it is torn: what follows was not synced.
    /// `see` gets every event.
    pub fn recover(&self, see: &mut dyn FnMut(&RawEvent)) -> Result<(), BinlogError> {
        let numbers = self.files.lock().numbers();
        let mut kept = Vec::new();
        for (at, &number) in numbers.iter().enumerate() {
            let path = self.name.path(number);
            let io = |e| BinlogError::Io { action: "recover", path: path.clone(), source: e };
            let file = self.fs.open(&path, OpenMode::Write).map_err(io)?;
            let length = file.len().map_err(io)?;
            let mut whole = 0;
            if let Ok(mut reader) = EventReader::open(&self.fs, &path) {
                while let Ok(Some(raw)) = reader.next_event() {
                    whole = raw.end();
                    see(&raw);
                }
            }
            if whole > 0 {
                kept.push(RelayFile { number, bytes: whole });
            }
            if whole < length {
                file.set_len(whole).map_err(io)?;
                file.sync_data().map_err(io)?;
                numbers[at + usize::from(whole > 0)..].iter().for_each(|&number| self.remove_file(number));
                break;
            }
        }
        self.files.lock().list = kept;
        self.write_index()
    }

    /// Waits until more is there than `seen`, or somebody calls [`RelayLog::wake`], for this long at most.
    pub fn await_growth(&self, seen: RelayPlace, most: Duration) {
        let mut files = self.files.lock();
        if files.end() <= seen {
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
        reader.set_limit(self.files.lock().bytes_of(number));
        Ok(reader)
    }

    fn next_after(&self, number: u32) -> Option<u32> {
        self.files.lock().list.iter().map(|file| file.number).find(|&n| n > number)
    }
}

/// A place in the source's log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    pub file: String,
    pub position: u64,
}

/// Places are copied for each event, and their files hardly change: `clone_from` takes no memory then.
impl Clone for SourcePlace {
    fn clone(&self) -> SourcePlace {
        SourcePlace { file: self.file.clone(), position: self.position }
    }

    fn clone_from(&mut self, other: &SourcePlace) {
        self.file.clone_from(&other.file);
        self.position = other.position;
    }
}

impl SourcePlace {
    /// Moves behind an event of the source.
    pub fn follow(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), DecodeError> {
        if header.kind == EventType::ROTATE {
            if let Event::Rotate(rotate) = Event::decode(header.kind, body)? {
                self.file = String::from_utf8_lossy(&rotate.name).into_owned();
                self.position = rotate.position;
            }
        } else {
            self.pass(header);
        }
        Ok(())
    }

    /// Moves behind an event that is no rotation. What a source makes up is nowhere in its log, but for the
    /// list of GTIDs that says how far it has passed over what the replica has already.
    pub fn pass(&mut self, header: &EventHeader) {
        if header.log_pos == 0 {
            return;
        }
        let before = self.position;
        let is_made_up = header.flags & flags::ARTIFICIAL != 0;
        if !is_made_up || header.kind == EventType::GTID_LIST {
            self.move_to(header.log_pos);
        }
        if is_made_up {
            self.position = self.position.max(before);
        }
    }

    /// Moves to a later position of which only the lower half is known.
    pub fn move_to(&mut self, log_pos: u32) {
        let before = self.position;
        let position = before & !u64::from(u32::MAX) | u64::from(log_pos);
        let has_wrapped = position < before && before - position > u64::from(u32::MAX / 2);
        self.position = position + if has_wrapped { 1 << 32 } else { 0 };
    }
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
    /// Its last event is there: a ROTATE to the next file.
    is_closed: bool,
    /// The index on disk names it.
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
        let number = log.end().file + 1;
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
            is_closed: false,
            is_listed: false,
        };
        let format = FormatDescription::new(&format!("{VERSION}-log"), now_s, Checksum::Crc32);
        writer.make_up(EventType::FORMAT_DESCRIPTION, now_s, &Event::FormatDescription(format));
        if !place.file.is_empty() {
            let rotate = Rotate { position: place.position, name: place.file.clone().into_bytes() };
            writer.make_up(EventType::ROTATE, 0, &Event::Rotate(rotate));
        }
        // Readers see it with its head.
        writer.write_buffer()?;
        log.files.lock().list.push(RelayFile { number, bytes: writer.written });
        // The file is in use from here on; what is to be durable waits for the index (`sync`).
        writer.is_listed = log.write_index().is_ok();
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

    /// Adds an event that has a checksum. Nobody sees it before the next flush.
    pub fn append(&mut self, event: &[u8]) {
        self.buffer.extend_from_slice(event);
    }

    /// Whether enough is gathered to be written.
    pub fn is_full(&self) -> bool {
        self.buffer.len() >= BUFFER_BYTES
    }

    /// Adds an event without a checksum, and gives it one.
    pub fn append_plain(&mut self, header: &EventHeader, body: &[u8]) {
        let event_len = header.event_len + Checksum::Crc32.len() as u32;
        let start = self.buffer.len();
        EventHeader { event_len, ..*header }.encode(&mut self.buffer);
        self.buffer.extend_from_slice(body);
        let crc = cohort_binlog::event::crc_of_event(&self.buffer[start..]);
        self.buffer.extend_from_slice(&crc.to_le_bytes());
    }

    /// Forgets what is gathered.
    pub fn discard(&mut self) {
        self.buffer.clear();
    }

    /// Writes what is gathered, all or nothing; the reader sees it. After an error it is still gathered.
    pub fn flush(&mut self) -> Result<(), BinlogError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write_buffer()?;
        {
            let mut files = self.log.files.lock();
            if let Some(file) = files.list.iter_mut().find(|file| file.number == self.number) {
                file.bytes = self.written;
            }
        }
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
        if self.has_unsynced {
            let path = self.log.name.path(self.number);
            self.file.sync_data().map_err(|e| BinlogError::Io { action: "sync", path, source: e })?;
            self.has_unsynced = false;
        }
        if !self.is_listed {
            self.log.write_index()?;
            self.is_listed = true;
        }
        Ok(())
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Ends the file and begins the next one. After an error it is to be called again before anything else.
    pub fn rotate(&mut self, now_s: u32, place: &SourcePlace) -> Result<(), BinlogError> {
        if !std::mem::replace(&mut self.is_closed, true) {
            let next = Rotate { position: 4, name: self.log.name.file(self.number + 1).into_bytes() };
            self.make_up(EventType::ROTATE, now_s, &Event::Rotate(next));
        }
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
        if !log.has(place.file) {
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
            self.reader.set_limit(self.log.files.lock().bytes_of(self.number));
            if let Some(raw) = self.reader.next_event()? {
                return Ok(Some(raw));
            }
            let Some(next) = next else { return Ok(None) };
            self.number = next;
            self.reader = EventReader::open(&self.log.fs, &self.log.name.path(next))?;
        }
    }
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
        let log = RelayLog::open(fs.clone(), name.clone()).expect("empty");
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
        let again = RelayLog::open(fs.clone(), name).expect("the index is there");
        assert_eq!(again.first(), Some(2));
        // A crash tore the last event.
        let file = fs.open(Path::new("/d/relay.000002"), OpenMode::Write).expect("there");
        file.set_len(log.end().offset - 3).expect("cut");
        let mut seen = Vec::new();
        again.recover(&mut |raw| seen.push(raw.header.kind)).expect("recovers");
        assert_eq!(seen, [EventType::FORMAT_DESCRIPTION, EventType::ROTATE]);
        assert_eq!(file.len().expect("there"), again.end().offset);
        let mut reader =
            RelayReader::at(&again, RelayPlace { file: 2, offset: 0 }).expect("opens").expect("there");
        assert_eq!(kinds(&mut reader), seen);
    }
    /// Kinds of all events that a reader finds.
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
            let log = RelayLog::open(fs, BinlogName::new(Path::new("/d"), "relay")).expect("empty");
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
            // A file begun by another thread ends the one before, whatever lies behind its end.
            let torn = below.open(&log.name.path(2), OpenMode::Write).expect("there");
            torn.write_at(b"torn", log.end().offset).expect("written");
            let begin = || RelayWriter::begin(&log, ServerId(5), 5, &place);
            let mut writer = begin().or_else(|_| begin()).expect("begins");
            writer.append_plain(&header, &body);
            again(&mut || writer.sync());
            let kinds = kinds_of(&log);
            let count = |kind| kinds.iter().filter(|found| **found == kind).count();
            assert_eq!(count(EventType::ANNOTATE_ROWS), 3, "{nth}: {kinds:?}");
            assert_eq!(count(EventType::FORMAT_DESCRIPTION), 3, "{nth}: {kinds:?}");
            let known = RelayLog::open(below, log.name.clone()).expect("the index is there");
            assert_eq!(known.files.lock().numbers(), [1, 2, 3], "{nth}");
            if faulty.ops() - first <= nth {
                assert!(nth > 10, "{nth}");
                return;
            }
        }
    }
}
