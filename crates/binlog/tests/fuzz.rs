//! Arbitrary bytes as input: decoding returns an error, never panics, and never allocates much more than the
//! input.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{BinlogPos, Reader};
use cohort_binlog::event::{self, Event, EventHeader, EventType};
use cohort_binlog::{BinlogFiles, BinlogName, Checksum, EventReader, OpenOptions, StreamOut, VerifyScope};
use cohort_vfs::{MemFs, OpenMode, SharedFs};
use proptest::prelude::*;

const KINDS: [u8; 30] = [
    2, 3, 4, 5, 9, 11, 13, 14, 15, 16, 17, 18, 19, 23, 24, 25, 26, 27, 30, 38, 160, 161, 162, 163, 164, 165,
    166, 167, 168, 200,
];

fn golden(number: &str) -> Vec<u8> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    std::fs::read(dir.join(format!("tests/data/mariadb-10.11.{number}"))).expect("reads")
}

/// Calls all methods of a decoded event.
fn exercise(kind: EventType, body: &[u8]) {
    let Ok(event) = Event::decode(kind, body) else { return };
    let header = EventHeader {
        timestamp: 0,
        kind,
        server_id: cohort_base::ServerId(1),
        event_len: 0,
        log_pos: 0,
        flags: 0,
    };
    let _ = event.info(&header);
    match &event {
        Event::Query(query) => {
            let _ = query.status_vars();
        }
        Event::TableMap(map) => {
            let _ = map.optional_metadata();
        }
        Event::Rows(rows) => {
            let _ = rows.plain_rows();
        }
        _ => {}
    }
    // A decoded event is encoded to bytes that decode to the same event.
    let mut bytes = Vec::new();
    event.encode(&mut bytes);
    assert_eq!(Event::decode(kind, &bytes).as_ref(), Ok(&event));
}

/// Reads a file to its end or first error, through the reader and through recovery.
fn read_all(bytes: &[u8]) {
    let fs: SharedFs = Arc::new(MemFs::new());
    fs.create_dir_all(Path::new("/d")).expect("makes");
    let path = Path::new("/d/binlog.000001");
    fs.open(path, OpenMode::CreateNew).expect("creates").write_at(bytes, 0).expect("writes");
    if let Ok(mut reader) = EventReader::open(&fs, path) {
        while let Ok(Some(raw)) = reader.next_event() {
            assert!(raw.end() <= bytes.len() as u64);
            let _ = reader.decode(&raw);
        }
    }
    let options = OpenOptions { verify: VerifyScope::All, synced_to: BinlogPos::default() };
    let name = BinlogName::new(Path::new("/d"), "binlog");
    let (mut files, opened) = BinlogFiles::open(fs, name, options).expect("a torn tail is no error");
    if let Some(end) = opened.end {
        assert!(end.offset <= bytes.len() as u64);
        files.finish_recovery(None, &opened).expect("is cut");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bodies(kind in prop::sample::select(&KINDS[..]), body in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(EventType(kind), &body);
    }

    #[test]
    fn random_chunk_lists_and_headers(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = StreamOut::decode_chunks(&mut Reader::new(&bytes));
        let _ = event::split_event(&bytes, Checksum::Crc32);
        let _ = event::split_event(&bytes, Checksum::None);
        let _ = event::inflate(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files(
        file in prop::sample::select(&["000003", "000004", "000005", "000010"][..]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let mut bytes = golden(file);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_all(&bytes);
        // Mutations of the body, with the checksum corrected.
        let mut at = 4;
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= 23) {
            let Ok(header) = EventHeader::decode(rest) else { break };
            let len = (header.event_len as usize).min(rest.len());
            exercise(header.kind, &rest[19..len.saturating_sub(4).max(19)]);
            at += len.max(1);
        }
    }
}

#[test]
fn a_length_field_takes_no_memory() {
    // Header, statement, GTID list and compressed data each claim a length of two GiB.
    let mut file = golden("000003");
    file[256 + 9..256 + 13].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    read_all(&file);
    exercise(EventType::GTID_LIST, &0x0fff_ffffu32.to_le_bytes());
    exercise(EventType::USER_VAR, &[0xff, 0xff, 0xff, 0x7f, 0, 0]);
    assert!(event::inflate(&[0x84, 0x7f, 0xff, 0xff, 0xff, 0x78, 0x9c, 0x03, 0]).is_err());
}
