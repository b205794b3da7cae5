//! Fast and slow readers of the stream, across file changes and spilled transactions: each must see every
//! byte exactly once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cohort_base::{BinlogPos, DomainId, Gtid, ServerId, Xid};
use cohort_binlog::event::{RowsKind, TableMap};
use cohort_binlog::{
    Batch, BinlogFileWriter, BinlogFileWriterOptions, BinlogFiles, BinlogName, CacheOptions, Checksum,
    GtidHead, GtidState, OpenOptions, RowImage, SpillDir, Stamp, Stream, StreamOptions, StreamOut, TrxCache,
    VerifyScope,
};
use cohort_replication::source::{Feed, FeedStep};
use cohort_vfs::{Fs, MemFs, OpenMode, SharedFs};

const SERVER: ServerId = ServerId(7);
const TRANSACTIONS: u64 = 1500;

fn name() -> BinlogName {
    BinlogName::new(Path::new("/d"), "binlog")
}

struct Writer {
    stream: Stream,
    files: Arc<BinlogFileWriter>,
    cache: TrxCache,
    out: StreamOut,
}

impl Writer {
    fn start(fs: &SharedFs) -> Writer {
        let spill = Arc::new(SpillDir::open(fs.clone(), Path::new("/d/spill")).expect("opens"));
        let options = OpenOptions { verify: VerifyScope::All, synced_to: BinlogPos::default() };
        let (files, _) = BinlogFiles::open(fs.clone(), name(), options).expect("opens");
        let options = BinlogFileWriterOptions {
            delay: Duration::from_millis(1),
            // So small that slow readers always need the files.
            tail_bytes_max: 3000,
            ..BinlogFileWriterOptions::default()
        };
        let files = Arc::new(BinlogFileWriter::start(files, spill.clone(), options));
        let options = StreamOptions {
            name: name(),
            file_bytes_max: 40_000,
            server_id: SERVER,
            server_version: "10.11.99-MariaDB-cohort-log".to_owned(),
            checksum: Checksum::Crc32,
        };
        let mut out = StreamOut::default();
        let stream = Stream::open_new(options, 1, GtidState::default(), 1000, &mut out);
        let cache = CacheOptions { memory_bytes_max: 2000, ..CacheOptions::default() };
        let mut writer = Writer { stream, files, cache: TrxCache::new(cache, Some(spill)), out };
        writer.submit();
        writer
    }

    fn submit(&mut self) {
        let chunks = std::mem::take(&mut self.out.chunks);
        self.files.submit(Batch { chunks, bytes: std::mem::take(&mut self.out.bytes) });
    }

    fn transaction(&mut self, number: u64) {
        let stamp = Stamp { timestamp: 1000, server_id: SERVER, flags: 0 };
        self.cache.begin_statement(stamp, Some(b"insert into t1 ..."));
        self.cache.table_map(&Arc::new(TableMap {
            table_id: 18,
            flags: 1,
            db: b"test".to_vec(),
            table: b"t1".to_vec(),
            column_types: vec![3],
            metadata: vec![],
            null_bits: vec![0],
            optional: vec![],
        }));
        // Most are small; some are spilled, and a few of those exceed the file size limit.
        let rows = match number % 97 {
            0 => 20_000,
            n if n % 9 == 0 => 1000,
            n => n as u32 % 20 + 1,
        };
        for row in 0..rows {
            let image = [&[0xfe][..], &row.to_le_bytes()].concat();
            let image = RowImage {
                kind: RowsKind::Write,
                flags: 0,
                present: &[0xff],
                present_after: &[],
                image: &image,
            };
            self.cache.row(18, &image).expect("room");
        }
        self.cache.end_statement().expect("room");
        let body = self.cache.seal().expect("sealed");
        let gtid = Gtid { domain: DomainId(0), server: SERVER, seq_no: number };
        let head = GtidHead { gtid, commit_id: None, flags2: 0, xid: None, flags: 0, timestamp: 1000 };
        self.stream.append_trx(&mut self.out, &head, &body, Some(Xid(number)));
        if self.stream.wants_rotation() {
            self.stream.rotate(&mut self.out, 1000);
        }
        self.submit();
    }
}

/// Reads until `end` is set and reached. Returns the bytes seen of each file.
fn follow(
    files: Arc<BinlogFileWriter>,
    end: &OnceLock<BinlogPos>,
    pause: Duration,
) -> BTreeMap<u32, Vec<u8>> {
    let mut feed = Feed::new(files, BinlogPos { file: 1, offset: 4 });
    let mut seen: BTreeMap<u32, Vec<u8>> = BTreeMap::from([(1, b"\xfebin".to_vec())]);
    while end.get() != Some(&feed.position()) {
        match feed.next(Duration::from_millis(5)).expect("readable") {
            FeedStep::NewFile(number) => {
                assert_eq!(Some(number - 1), seen.keys().last().copied(), "files follow each other");
                seen.insert(number, b"\xfebin".to_vec());
            }
            FeedStep::Events(at) => {
                let bytes = seen.get_mut(&at.file).expect("announced");
                assert_eq!(bytes.len() as u64, at.offset, "no hole, no repetition");
                bytes.extend_from_slice(feed.run());
            }
            FeedStep::Nothing => {}
        }
        std::thread::sleep(pause);
    }
    seen
}

#[test]
fn quick_and_slow_readers_see_every_byte_once() {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new("/d/spill")).expect("made");
    let fs: SharedFs = Arc::new(fs);
    let mut writer = Writer::start(&fs);
    let end = Arc::new(OnceLock::new());
    let readers = [0, 0, 100, 700, 2000].map(|pause_us| {
        let (files, end) = (writer.files.clone(), end.clone());
        std::thread::spawn(move || follow(files, &end, Duration::from_micros(pause_us)))
    });
    for number in 1..=TRANSACTIONS {
        writer.transaction(number);
        if number % 50 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let last = writer.stream.position();
    end.set(last).expect("once");
    writer.files.catch_up(last, 0).expect("written");
    let seen = readers.map(|reader| reader.join().expect("no panic"));
    assert!(last.file > 20, "{last:?}");
    for number in 1..=last.file {
        let file = fs.open(&name().path(number), OpenMode::Read).expect("there");
        let mut bytes = vec![0; file.len().expect("has a length") as usize];
        file.read_at(&mut bytes, 0).expect("readable");
        for seen in &seen {
            let mut seen = seen.get(&number).cloned().unwrap_or_default();
            // The in-use flag is cleared when a file is closed.
            seen[21] = bytes[21];
            assert!(seen == bytes, "file {number}: {} bytes seen, {} written", seen.len(), bytes.len());
        }
    }
    // A late reader reads the same bytes, from files only.
    let late = follow(writer.files.clone(), &end, Duration::ZERO);
    assert_eq!(late.len(), seen[0].len());
}
