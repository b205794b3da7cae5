//! Files written by MariaDB 10.11: decoding and encoding yields the same bytes, and the text of SHOW BINLOG
//! EVENTS is the same. `tests/data/README` says how the files were made.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::BinlogPos;

use cohort_binlog::event::{self, Event};
use cohort_binlog::{
    BinlogFiles, BinlogName, Checksum, EventReader, OpenOptions, RawEvent, Tail, VerifyScope,
};
use cohort_vfs::{MemFs, OpenMode, RealFs, SharedFs};

const FILES: [&str; 6] = ["000001", "000003", "000004", "000005", "000007", "000010"];

fn path(number: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/mariadb-10.11.{number}"))
}

fn events(number: &str) -> Vec<(RawEvent, Event, Checksum)> {
    let mut reader = EventReader::open(&RealFs::shared(), &path(number)).expect("opens");
    let mut all = Vec::new();
    while let Some(raw) = reader.next_event().expect("whole") {
        let event = reader.decode(&raw).unwrap_or_else(|e| panic!("{number}:{}: {e}", raw.offset));
        let checksum = match event {
            Event::FormatDescription(_) => Checksum::Crc32,
            _ => reader.format().checksum,
        };
        all.push((raw, event, checksum));
    }
    all
}

#[test]
fn every_event_decodes_and_encodes_to_the_same_bytes() {
    let mut kinds = std::collections::BTreeSet::new();
    for number in FILES {
        for (raw, event, checksum) in events(number) {
            assert!(!matches!(event, Event::Unknown(..)), "{number}:{} {event:?}", raw.offset);
            assert_eq!(event.kind(), raw.header.kind);
            let header = raw.header;
            let mut bytes = Vec::new();
            let start = event::begin_event(
                &mut bytes,
                event.kind(),
                header.timestamp,
                header.server_id,
                header.flags,
            );
            event.encode(&mut bytes);
            event::finish_event(&mut bytes, start, raw.offset, checksum);
            assert_eq!(bytes.as_slice(), &*raw.bytes, "{number}:{} {event:?}", raw.offset);
            kinds.insert(header.kind.0);
        }
    }
    let expected =
        [2, 3, 4, 5, 13, 14, 15, 16, 17, 18, 19, 23, 24, 25, 38, 160, 161, 162, 163, 165, 166, 167, 168];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected, "the files hold one of each of these kinds");
}

#[test]
fn status_variables_decode_and_encode_to_the_same_bytes() {
    let mut seen = 0;
    for number in FILES {
        for (raw, event, _) in events(number) {
            let query = match &event {
                Event::Query(query) => query,
                Event::ExecuteLoadQuery(load) => &load.query,
                _ => continue,
            };
            let vars =
                query.status_vars().unwrap_or_else(|_| panic!("{number}:{} {:x?}", raw.offset, query.status));
            assert!(vars.rest.is_empty(), "{number}:{}: {:?}", raw.offset, vars.rest);
            let mut bytes = Vec::new();
            vars.encode(&mut bytes);
            assert_eq!(bytes, query.status, "{number}:{}", raw.offset);
            seen += 1;
        }
    }
    assert!(seen > 20);
}

#[test]
fn the_info_column_is_that_of_show_binlog_events() {
    for number in FILES {
        let expected = std::fs::read_to_string(path(&format!("{number}.events"))).expect("reads");
        let mut lines = expected.lines().skip(1);
        for (raw, event, _) in events(number) {
            let info = event.info(&raw.header).expect("has a text");
            // The client escapes characters that would break its lines.
            let info = String::from_utf8_lossy(&info)
                .replace('\\', "\\\\")
                .replace('\n', "\\n")
                .replace('\t', "\\t");
            let line = format!(
                "binlog.{number}\t{}\t{}\t{}\t{}\t{info}",
                raw.offset,
                raw.header.kind.name(),
                raw.header.server_id,
                raw.header.log_pos,
            );
            assert_eq!(Some(line.as_str()), lines.next());
        }
        assert_eq!(lines.next(), None, "{number} has more events");
    }
}

/// Recovery of a file of MariaDB finds its GTID state and the state of its end.
#[test]
fn the_gtid_state_follows_from_the_file() {
    for (number, state, tail) in [
        ("000001", "0-7-28", Tail::Closed),
        ("000003", "0-7-29", Tail::Closed),
        ("000004", "0-7-39,3-7-1", Tail::Closed),
        ("000005", "0-7-54,3-7-1", Tail::Closed),
        ("000007", "0-7-54,3-7-1", Tail::Closed),
        ("000010", "0-7-69,3-7-1", Tail::Open),
    ] {
        let fs: SharedFs = Arc::new(MemFs::new());
        let name = BinlogName::new(Path::new("/"), "binlog");
        let bytes = std::fs::read(path(number)).expect("reads");
        let file = fs.open(&name.path(1), OpenMode::CreateNew).expect("creates");
        file.write_at(&bytes, 0).expect("writes");
        let options = OpenOptions { verify: VerifyScope::All, synced_to: BinlogPos::default() };
        let (_, found) = BinlogFiles::open(fs.clone(), name.clone(), options).expect("opens");
        assert_eq!(found.end, Some(BinlogPos { file: 1, offset: bytes.len() as u64 }), "{number}");
        assert_eq!((found.gtid_state.position_text().as_str(), found.tail), (state, tail), "{number}");
        // A file that ends inside a transaction is torn, and its end is before that transaction.
        file.set_len(bytes.len() as u64 - 50).expect("cuts");
        let (_, cut) = BinlogFiles::open(fs, name, options).expect("opens");
        assert!(cut.end < found.end && cut.tail != Tail::Closed, "{number}");
    }
}

#[test]
fn compressed_events_hold_their_statement_and_rows() {
    let all = events("000005");
    let statement = all.iter().find_map(|(_, event, _)| match event {
        Event::Query(query) if query.packing == event::Packing::Compressed => Some(query.plain_sql()),
        _ => None,
    });
    assert!(statement.expect("there is one").expect("inflates").starts_with(b"create table t7"));
    let rows = all.iter().find_map(|(_, event, _)| match event {
        Event::Rows(rows) if rows.packing == event::Packing::Compressed => Some(rows.plain_rows()),
        _ => None,
    });
    let rows = rows.expect("there is one").expect("inflates").into_owned();
    assert!(rows.windows(8).any(|w| w == b"compcomp"), "{rows:?}");
}

#[test]
fn optional_metadata_contains_signs_names_and_keys() {
    let all = events("000005");
    let maps: Vec<_> = all
        .iter()
        .filter_map(|(_, event, _)| match event {
            Event::TableMap(map) if !map.optional.is_empty() => Some(map),
            _ => None,
        })
        .collect();
    let t2 = maps.iter().find(|map| map.table == b"t2").expect("logged with full metadata");
    let found = t2.optional_metadata().expect("whole");
    assert_eq!(found.unsigned, [false, true, false, true, false], "tinyint, smallint unsigned, ...");
    assert_eq!(found.column_names, [b"a", b"b", b"c", b"d", b"z"]);
    assert_eq!(found.primary_key, [0]);
    assert!(!t2.nullable(0) && t2.nullable(1));
}
