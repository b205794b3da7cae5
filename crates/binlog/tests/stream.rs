//! From the transaction cache through the stream to bytes.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use cohort_base::{BinlogPos, DomainId, Gtid, ServerId, Xid};
use cohort_binlog::event::{
    Event, QueryEvent, RowsKind, StatusVars, TableMap, flags, gtid_flags2, rows_flags,
};
use cohort_binlog::{
    BinlogError, BinlogFiles, BinlogName, CacheError, CacheOptions, Checksum, Content, CopyPlace,
    EventReader, GtidHead, GtidState, OpenOptions, RawEvent, RowImage, Sealed, SpillDir, SpilledChunk, Stamp,
    Stream, StreamOptions, StreamOut, TrxCache, VerifyScope,
};
use cohort_vfs::{MemFs, OpenMode, RealFs, SharedFs};

const VERSION: &str = "10.11.19-MariaDB-0+deb12u1-log";

fn options(checksum: Checksum) -> StreamOptions {
    StreamOptions {
        name: BinlogName::new(Path::new("/d"), "binlog"),
        file_bytes_max: 1 << 30,
        server_id: ServerId(7),
        server_version: VERSION.to_owned(),
        checksum,
    }
}

fn head(seq_no: u64, commit_id: Option<u64>) -> GtidHead {
    GtidHead {
        gtid: Gtid { domain: DomainId(0), server: ServerId(7), seq_no },
        commit_id,
        flags2: gtid_flags2::TRANSACTIONAL | gtid_flags2::ALLOW_PARALLEL,
        xid: None,
        flags: 0,
        timestamp: 1000,
    }
}

fn table(table_id: u64, name: &[u8]) -> Arc<TableMap> {
    Arc::new(TableMap {
        table_id,
        flags: 1,
        db: b"test".to_vec(),
        table: name.to_vec(),
        column_types: vec![3],
        metadata: vec![],
        null_bits: vec![0],
        optional: vec![],
    })
}

fn row(image: &[u8]) -> RowImage<'_> {
    RowImage { kind: RowsKind::Write, flags: 0, present: &[0xff], present_after: &[], image }
}

const STAMP: Stamp = Stamp { timestamp: 1000, server_id: ServerId(7), flags: 0 };

/// Writes each file of a stream without spilled parts, and reads the events of one file.
fn read_back(out: &StreamOut, file: u32) -> Vec<(RawEvent, Event)> {
    let fs: SharedFs = Arc::new(MemFs::new());
    let path = Path::new("/f");
    let handle = fs.open(path, OpenMode::CreateNew).expect("creates");
    let mut rest = out.bytes.as_slice();
    for chunk in &out.chunks {
        let (bytes, tail) = rest.split_at(chunk.len as usize);
        if chunk.pos.file == file {
            handle.write_at(bytes, chunk.pos.offset).expect("writes");
        }
        rest = tail;
    }
    let mut reader = EventReader::open(&fs, path).expect("opens");
    let mut events = Vec::new();
    while let Some(raw) = reader.next_event().expect("whole") {
        assert_eq!(u64::from(raw.header.log_pos), raw.end());
        let event = reader.decode(&raw).expect("decodes");
        events.push((raw, event));
    }
    assert_eq!(reader.offset(), reader.file_len().expect("has a length"), "the file ends with a whole event");
    events
}

fn shape(events: &[(RawEvent, Event)]) -> Vec<String> {
    events
        .iter()
        .map(|(raw, event)| {
            let info = event.info(&raw.header).expect("has a text");
            format!("{} {}", raw.header.kind.name(), String::from_utf8_lossy(&info))
        })
        .collect()
}

/// Sequence number of the first XA transaction. Their GTID events have a number of engines, which this
/// server's lack.
const XA_FROM: u64 = 29162;

/// Replays the events of a file written by MariaDB through cache and stream; the result is the same file.
#[test]
fn a_file_of_mariadb_comes_out_byte_for_byte() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mariadb-10.11.000001");
    let mut reader = EventReader::open(&RealFs::shared(), &path).expect("opens");
    let first = reader.next_event().expect("whole").expect("there").header;
    let mut out = StreamOut::default();
    let mut stream =
        Stream::open_new(options(Checksum::Crc32), 1, GtidState::default(), first.timestamp, &mut out);
    let mut cache = TrxCache::new(CacheOptions::default(), None);
    let mut open: Option<GtidHead> = None;
    reader.set_limit(XA_FROM);
    while let Some(raw) = reader.next_event().expect("whole") {
        let stamp = Stamp { timestamp: raw.header.timestamp, server_id: raw.header.server_id, flags: 0 };
        let mut ends = false;
        let mut xid = None;
        match reader.decode(&raw).expect("decodes") {
            Event::Gtid(gtid) => {
                open = Some(GtidHead {
                    gtid: gtid.gtid(raw.header.server_id),
                    commit_id: gtid.commit_id,
                    flags2: gtid.flags2,
                    xid: gtid.xid,
                    flags: 0,
                    timestamp: raw.header.timestamp,
                });
            }
            Event::Annotate(annotate) => cache.begin_statement(stamp, Some(&annotate.sql)),
            Event::TableMap(map) => cache.table_map(&map),
            Event::Rows(rows) => {
                let image = RowImage {
                    kind: rows.kind,
                    flags: rows.flags & !rows_flags::STMT_END,
                    present: &rows.present,
                    present_after: &rows.present_after,
                    image: &rows.rows,
                };
                cache.row(rows.table_id, &image).expect("fits");
                if rows.ends_statement() {
                    cache.end_statement().expect("fits");
                }
            }
            Event::Query(query) => {
                cache.begin_statement(stamp, None);
                cache.query(raw.header.flags, &query).expect("fits");
                let standalone = open.as_ref().is_some_and(|h| h.flags2 & gtid_flags2::STANDALONE != 0);
                ends = standalone || query.sql == b"COMMIT";
            }
            Event::Xid(number) => {
                xid = Some(Xid(number));
                ends = true;
            }
            Event::GtidList(_) | Event::BinlogCheckpoint(_) => {}
            other => panic!("{other:?} is not expected in this file"),
        }
        if ends {
            let head = open.take().expect("a transaction is open");
            let body = cache.seal().expect("in memory");
            let start = stream.position();
            let written = stream.append_trx(&mut out, &head, &body, xid);
            assert_eq!(written.start, start);
            assert_eq!(written.end, BinlogPos { file: 1, offset: raw.end() });
            assert!(written.end.offset - written.start.offset <= Stream::trx_bytes_max(&body));
            cache.recycle(body);
        }
    }
    assert_eq!(stream.position(), BinlogPos { file: 1, offset: XA_FROM });
    let expected = std::fs::read(&path).expect("reads");
    assert_eq!(out.bytes[21], 1, "the file is marked as in use while it is written");
    out.bytes[21] = 0;
    if let Some(at) = (0..XA_FROM as usize).find(|&i| out.bytes[i] != expected[i]) {
        panic!("differs at offset {at}: {:x?} / {:x?}", &out.bytes[at..at + 32], &expected[at..at + 32]);
    }
}

#[test]
fn a_statement_without_rows_leaves_nothing() {
    let mut cache = TrxCache::new(CacheOptions::default(), None);
    cache.begin_statement(STAMP, Some(b"update t set a=1 where false"));
    cache.table_map(&table(1, b"t"));
    cache.end_statement().expect("fits");
    assert!(cache.is_empty());
}

#[test]
fn a_late_table_starts_another_run_of_row_events_with_all_maps() {
    let mut out = StreamOut::default();
    let mut stream = Stream::open_new(options(Checksum::None), 1, GtidState::default(), 1, &mut out);
    let mut cache = TrxCache::new(CacheOptions::default(), None);
    cache.begin_statement(STAMP, Some(b"x"));
    cache.table_map(&table(1, b"a"));
    cache.row(1, &row(&[0, 1, 0, 0, 0])).expect("fits");
    cache.row(1, &row(&[0, 2, 0, 0, 0])).expect("fits");
    cache.table_map(&table(2, b"b"));
    cache.row(2, &row(&[0, 3, 0, 0, 0])).expect("fits");
    cache.row(1, &row(&[0, 4, 0, 0, 0])).expect("fits");
    cache.end_statement().expect("fits");
    let body = cache.seal().expect("in memory");
    stream.append_trx(&mut out, &head(1, Some(33)), &body, Some(Xid(5)));
    assert_eq!(
        shape(&read_back(&out, 1))[3..],
        [
            "Gtid BEGIN GTID 0-7-1 cid=33",
            "Annotate_rows x",
            "Table_map table_id: 1 (test.a)",
            "Write_rows_v1 table_id: 1 flags: STMT_END_F",
            "Table_map table_id: 1 (test.a)",
            "Table_map table_id: 2 (test.b)",
            "Write_rows_v1 table_id: 2",
            "Write_rows_v1 table_id: 1 flags: STMT_END_F",
            "Xid COMMIT /* xid=5 */",
        ]
    );
}

fn statement(cache: &mut TrxCache, rows: u32) {
    cache.begin_statement(STAMP, Some(format!("insert {rows}").as_bytes()));
    cache.table_map(&table(1, b"t"));
    for number in 0..rows {
        let mut image = vec![0];
        image.extend_from_slice(&number.to_le_bytes());
        cache.row(1, &row(&image)).expect("fits");
    }
    cache.end_statement().expect("fits");
}

#[test]
fn rollback_to_a_position_leaves_what_was_before() {
    for memory_bytes_max in [0, 100, 1000, 1 << 20] {
        let fs: SharedFs = Arc::new(MemFs::new());
        let spill = Arc::new(SpillDir::open(fs.clone(), Path::new("/spill")).expect("opens"));
        let options = CacheOptions { memory_bytes_max, ..CacheOptions::default() };
        let mut cache = TrxCache::new(options, Some(spill.clone()));
        statement(&mut cache, 10);
        let savepoint = cache.position();
        statement(&mut cache, 200);
        cache.begin_statement(STAMP, Some(b"fails midway"));
        cache.table_map(&table(2, b"u"));
        cache.row(2, &row(&[0, 1, 0, 0, 0])).expect("fits");
        cache.truncate(savepoint).expect("goes back");
        assert_eq!(cache.position(), savepoint);
        statement(&mut cache, 3);

        let mut plain = TrxCache::new(CacheOptions::default(), None);
        statement(&mut plain, 10);
        statement(&mut plain, 3);
        let expected = plain.seal().expect("in memory");
        let sealed = cache.seal().expect("seals");
        assert!(cache.is_empty());
        assert_eq!(sealed.len(Checksum::Crc32), expected.len(Checksum::Crc32));
        assert_eq!(finished(&sealed, &spill), finished(&expected, &spill), "{memory_bytes_max}");
    }
}

/// Returns the bytes of a body in their final form.
fn finished(body: &Sealed, spill: &SpillDir) -> Vec<u8> {
    let mut out = StreamOut::default();
    let mut stream = Stream::open_new(options(Checksum::Crc32), 1, GtidState::default(), 1, &mut out);
    out.clear();
    stream.append_trx(&mut out, &head(1, None), body, Some(Xid(5)));
    let mut inline = out.bytes.as_slice();
    let mut bytes = Vec::new();
    for chunk in &out.chunks {
        match &chunk.content {
            Content::Inline => {
                let (part, rest) = inline.split_at(chunk.len as usize);
                bytes.extend_from_slice(part);
                inline = rest;
            }
            Content::Spilled(spilled) => {
                let mut at = chunk.pos.offset;
                let mut take = |offset: u64, part: &[u8]| {
                    assert_eq!(offset, at);
                    at += part.len() as u64;
                    bytes.extend_from_slice(part);
                    Ok(())
                };
                spill
                    .copy_spilled(spilled, chunk.pos.offset, &mut CopyPlace::default(), u64::MAX, &mut take)
                    .expect("copies");
                assert_eq!(at, chunk.end().offset);
            }
        }
    }
    bytes
}

#[test]
fn a_dropped_cache_removes_its_spill_file_and_damage_is_found() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let dir = Path::new("/spill");
    let spill = Arc::new(SpillDir::open(fs.clone(), dir).expect("opens"));
    let options = CacheOptions {
        memory_bytes_max: 64,
        bytes_max: 5000,
        row_event_bytes_max: 512,
        ..CacheOptions::default()
    };
    let mut cache = TrxCache::new(options, Some(spill.clone()));
    statement(&mut cache, 300);
    assert_eq!(fs.list(dir).expect("lists").len(), 1);
    drop(cache);
    assert!(fs.list(dir).expect("lists").is_empty());

    let mut cache = TrxCache::new(options, Some(spill.clone()));
    statement(&mut cache, 300);
    let sealed = cache.seal().expect("seals");
    let Sealed::File { name, events, event_bytes } = &sealed else { panic!("spilled") };
    let path = dir.join(name);
    let file = fs.open(&path, OpenMode::Write).expect("opens");
    let mut out = StreamOut::default();
    let mut stream = Stream::open_new(self::options(Checksum::Crc32), 1, GtidState::default(), 1, &mut out);
    out.clear();
    stream.append_trx(&mut out, &head(1, None), &sealed, Some(Xid(5)));
    let Content::Spilled(chunk) = &out.chunks[1].content else { panic!("spilled") };
    assert_eq!((chunk.events, chunk.event_bytes), (*events, *event_bytes));
    for at in 0..file.len().expect("has a length") {
        let mut byte = [0];
        file.read_at(&mut byte, at).expect("reads");
        file.write_at(&[byte[0] ^ 1], at).expect("writes");
        assert!(copy_all(&spill, chunk).is_err(), "flipped bit at {at}");
        file.write_at(&byte, at).expect("writes");
    }
    copy_all(&spill, chunk).expect("whole again");
    // A foreign file.
    fs.open(&dir.join("README"), OpenMode::CreateNew).expect("creates");
    let redo = spill.write_redo(b"redo").expect("writes");
    spill.retain(&HashSet::from([name.as_str(), &redo])).expect("removes");
    assert!(spill.exists(name) && spill.exists(&redo));
    spill.retain(&HashSet::new()).expect("removes");
    assert!(!spill.exists(name) && !spill.exists(&redo) && spill.exists("README"));
    // The log may still name them.
    let reopened = SpillDir::open(fs.clone(), dir).expect("opens");
    reopened.skip_to(name);
    reopened.skip_to(&redo);
    assert!(reopened.write_redo(b"other").expect("writes") > redo);
}

#[test]
fn a_cache_beyond_its_bound_refuses() {
    let options = CacheOptions { bytes_max: 300, ..CacheOptions::default() };
    let mut cache = TrxCache::new(options, None);
    let query = QueryEvent::new(1, &StatusVars::default(), b"test", &[b'x'; 200]);
    cache.query(flags::SUPPRESS_USE, &query).expect("fits");
    cache.query(0, &query).expect("the bound is looked at before an event");
    assert!(matches!(cache.query(0, &query), Err(CacheError::TooLarge { bytes_max: 300 })));
}

#[test]
fn events_are_split_at_their_bound_and_a_row_that_cannot_be_is_refused() {
    let options =
        CacheOptions { row_event_bytes_max: usize::MAX, event_bytes_max: 600, ..CacheOptions::default() };
    for compress in [None, Some(1)] {
        let mut cache = TrxCache::new(options, None);
        cache.set_compression(compress);
        statement(&mut cache, 500);
        let Sealed::Memory { bytes, .. } = cache.seal().expect("in memory") else { panic!("not spilled") };
        assert_eq!(longest_event(&bytes).0 > 590, compress.is_none());
        assert!(longest_event(&bytes).0 <= 600 && longest_event(&bytes).1 > 5);
        for len in 530..700 {
            let before = cache.size_bytes();
            match long_row(&mut cache, len) {
                Ok(()) => {
                    cache.end_statement().expect("in memory");
                    let Sealed::Memory { bytes, .. } = cache.seal().expect("in memory") else {
                        panic!("not spilled")
                    };
                    assert!(longest_event(&bytes).0 + 4 <= 600, "{len}");
                }
                Err(CacheError::EventTooLarge { bytes_max: 600 }) => {
                    assert!(len > 540 && cache.size_bytes() == before, "{len}");
                    cache.reset();
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// Returns the length of the longest event, without checksum, and the number of events.
fn longest_event(mut bytes: &[u8]) -> (usize, usize) {
    let mut found = (0, 0);
    while !bytes.is_empty() {
        let len = u32::from_le_bytes(bytes[9..13].try_into().expect("four bytes")) as usize;
        found = (found.0.max(len), found.1 + 1);
        bytes = &bytes[len..];
    }
    found
}

fn long_row(cache: &mut TrxCache, len: usize) -> Result<(), CacheError> {
    cache.begin_statement(Stamp::default(), None);
    cache.table_map(&table(18, b"t1"));
    let image = vec![7; len];
    let kind = RowsKind::Write;
    cache.row(18, &RowImage { kind, flags: 0, present: &[0xff], present_after: &[], image: &image })
}

#[test]
fn a_file_change_never_needs_more_than_it_says() {
    let mut state = GtidState::default();
    for domain in 0..10_000 {
        state.update(Gtid { domain: DomainId(domain), server: ServerId(1 + domain % 7), seq_no: 5 });
        if domain % 1000 > 3 {
            continue;
        }
        for base in ["b", &"long".repeat(60)] {
            let name = BinlogName::new(Path::new("/d"), base);
            let bytes_max = Stream::file_change_bytes_max(&name, &state);
            let mut out = StreamOut::default();
            let options = StreamOptions { name, ..options(Checksum::Crc32) };
            let mut stream = Stream::open_new(options, 999_999_999, state.clone(), 1, &mut out);
            assert!(used(&out) <= bytes_max);
            assert_eq!(stream.rotation_bytes_max(), bytes_max);
            out.clear();
            stream.rotate(&mut out, 2);
            assert!(
                used(&out) <= bytes_max && bytes_max < used(&out) + 1200,
                "{} of {bytes_max}",
                used(&out)
            );
        }
    }
    assert_eq!(state.len(), 10_000);
}

/// Returns the payload length of a log record that carries this piece of the stream.
fn used(out: &StreamOut) -> u64 {
    let mut head = Vec::new();
    StreamOut::encode_chunks(&out.chunks, &mut head);
    (head.len() + out.bytes.len()) as u64
}

#[test]
fn rotation_checksum_change_and_stop() {
    let mut out = StreamOut::default();
    let mut options = options(Checksum::Crc32);
    options.file_bytes_max = 500;
    let mut stream = Stream::open_new(options, 41, GtidState::default(), 1, &mut out);
    let mut cache = TrxCache::new(CacheOptions::default(), None);
    let mut next = 1;
    while !stream.wants_rotation() {
        statement(&mut cache, 1);
        let body = cache.seal().expect("in memory");
        stream.append_trx(&mut out, &head(next, None), &body, Some(Xid(next)));
        next += 1;
    }
    stream.rotate(&mut out, 2);
    stream.set_checksum(Checksum::None, &mut out, 3);
    stream.stop(&mut out, 4);
    let last = |file| shape(&read_back(&out, file)).last().cloned().expect("has events");
    assert_eq!(last(41), "Rotate binlog.000042;pos=4");
    assert_eq!(last(42), "Rotate binlog.000043;pos=4");
    assert_eq!(last(43), "Stop ");
    let created: Vec<u32> = (41..=43)
        .map(|file| match &read_back(&out, file)[0].1 {
            Event::FormatDescription(format) => format.created,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(created, [1, 0, 0], "only the first file after a start has the time of the start");
    assert_eq!(stream.gtid_state().position_text(), format!("0-7-{}", next - 1));
}

/// Prints figures, checks nothing: `cargo test --release -p cohort-binlog --test stream speed -- --ignored
/// --nocapture`.
#[test]
#[ignore = "prints figures"]
fn speed_of_the_commit_path_and_of_recovery() {
    let mut cache = TrxCache::new(CacheOptions::default(), None);
    statement(&mut cache, 20);
    let body = cache.seal().expect("in memory");
    let mut out = StreamOut::default();
    let mut stream = Stream::open_new(options(Checksum::Crc32), 1, GtidState::default(), 1, &mut out);
    let rounds = 20_000u64;
    let start = std::time::Instant::now();
    for seq_no in 1..=rounds {
        out.clear();
        stream.append_trx(&mut out, &head(seq_no, Some(1)), &body, Some(Xid(seq_no)));
    }
    let each = start.elapsed() / rounds as u32;
    println!("append: {each:?} per transaction of {} bytes", out.bytes.len());

    let start = std::time::Instant::now();
    for _ in 0..rounds {
        statement(&mut cache, 1);
        let body = cache.seal().expect("in memory");
        cache.recycle(body);
    }
    println!("fill and seal: {:?} per transaction of one row", start.elapsed() / rounds as u32);

    let mut out = StreamOut::default();
    let mut stream = Stream::open_new(options(Checksum::Crc32), 1, GtidState::default(), 1, &mut out);
    for seq_no in 1..=500_000 {
        stream.append_trx(&mut out, &head(seq_no, None), &body, Some(Xid(seq_no)));
    }
    let fs: SharedFs = Arc::new(MemFs::new());
    let name = BinlogName::new(Path::new("/"), "binlog");
    let file = fs.open(&name.path(1), OpenMode::CreateNew).expect("creates");
    file.write_at(&out.bytes, 0).expect("writes");
    let start = std::time::Instant::now();
    let options = OpenOptions { verify: VerifyScope::All, synced_to: BinlogPos::default() };
    let (_, found) = BinlogFiles::open(fs, name, options).expect("opens");
    assert_eq!(found.end, Some(stream.position()));
    let rate = out.bytes.len() as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("verify: {rate:.0} MB/s over {} bytes", out.bytes.len());
}

fn copy_all(spill: &SpillDir, chunk: &SpilledChunk) -> Result<bool, BinlogError> {
    spill.copy_spilled(chunk, 4, &mut CopyPlace::default(), u64::MAX, &mut |_, _| Ok(()))
}
