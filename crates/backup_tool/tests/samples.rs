//! Kept repositories of every format version, and kept archives: each later version must restore them.
//!
//! `UPDATE_GOLDEN=1` writes those that do not exist. An existing one is never written again.

mod support;

use std::io::Cursor;
use std::path::{Path, PathBuf};

use cohort_backup_format::{ARCHIVE_FORMAT, FilePiece, Frame, Hello, LogRange, TimelineStart, chained};
use cohort_backup_tool::archive::{archiver, read_file, read_segment, stored_timeline};
use cohort_backup_tool::progress::Progress;
use cohort_backup_tool::repository::Repository;
use cohort_backup_tool::restore::restore;
use cohort_backup_tool::store::Store;
use cohort_backup_tool::verify::verify;
use support::{Fake, Files, assert_restored, noise, take_of};

fn kept(seed: u64) -> Files {
    Files::from([
        ("cohort.version".to_owned(), b"cohort 1\n".to_vec()),
        ("innodb/data".to_owned(), noise(seed, 2000)),
        ("log/hole".to_owned(), vec![0; 100_000]),
        ("binlog.000001".to_owned(), b"an event ".repeat(500)),
    ])
}

fn sample(name: &str) -> (PathBuf, Option<PathBuf>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    let key_file = name.ends_with("encrypted").then(|| folder.with_extension("key"));
    (folder, key_file)
}

#[test]
fn repositories_of_all_versions_are_restored() {
    for name in ["1-plain", "1-encrypted"] {
        let (folder, key_file) = sample(name);
        let place = folder.to_str().expect("UTF-8");
        if !folder.exists() && std::env::var_os("UPDATE_GOLDEN").is_some() {
            let store = Store::open(place, true).expect("created");
            let repository = Repository::init(store, key_file.as_deref()).expect("created");
            for seed in [1, 2] {
                let pieces = 700;
                take_of(&repository, Fake { pieces, is_mixed: true, ..Fake::new(kept(seed)) })
                    .expect("taken");
            }
        }
        let store = Store::open(place, false).expect("the sample is kept");
        let repository = Repository::open(store, key_file.as_deref()).expect("this version");
        assert_eq!(verify(&repository, None, false, &Progress::hidden()).expect("read").findings, []);
        let backups = repository.backups().expect("listed");
        assert_eq!(backups.len(), 2);
        for (seed, backup) in [1, 2].into_iter().zip(&backups) {
            let target = tempfile::tempdir().expect("a directory");
            let restored = restore(&repository, backup, target.path(), &Progress::hidden()).expect(name);
            assert_eq!(restored.catalogue.manifest.gtid_current_pos, "0-1-77");
            assert_restored(target.path(), &kept(seed));
        }
    }
}

/// Returns the bytes of the log between two LSNs.
fn log(from: u64, to: u64) -> Vec<u8> {
    noise(9, 2000)[from as usize..to as usize].to_vec()
}

/// Returns what a server sends: a file and two ranges. Those of version 1 have no chain.
fn sent(version: u32) -> Vec<u8> {
    let timelines = vec![TimelineStart { timeline: 1, lsn: 0 }];
    let hello = Hello {
        format: ARCHIVE_FORMAT,
        server_uuid: "server-1".to_owned(),
        log_identity: 77,
        lsn: 1000,
        proof_lsn: 0,
        time_us: 0,
        timelines,
    };
    let bytes = noise(5, 5000);
    let file = FilePiece {
        timeline: 1,
        name: "f".to_owned(),
        file_bytes: 5000,
        file_crc: crc32c::crc32c(&bytes),
        offset: 0,
        bytes,
    };
    let range = |from: u64, to: u64, files: &[&str]| LogRange {
        timeline: 1,
        from,
        to,
        chain: (version > 1).then(|| chained(0, &log(1000, from))),
        first_us: from,
        last_us: to,
        gtid_position: format!("0-1-{to}"),
        files: files.iter().map(|name| (*name).to_owned()).collect(),
        bytes: log(from, to),
    };
    let mut out = Vec::new();
    for frame in [
        Frame::Hello(hello),
        Frame::File(file),
        Frame::Range(range(1000, 1300, &["f"])),
        Frame::Range(range(1300, 1700, &[])),
    ] {
        frame.encode(&mut out);
    }
    out
}

#[test]
fn archives_of_all_versions_are_read() {
    for version in [1, 2] {
        let name = format!("archive-{version}");
        let (folder, _) = sample(&name);
        let place = folder.to_str().expect("UTF-8");
        if !folder.exists() && std::env::var_os("UPDATE_GOLDEN").is_some() {
            let store = Store::open(place, true).expect("created");
            let repository = Repository::init(store, None).expect("created");
            take_of(&repository, Fake { cut_lsn: 1000, ..Fake::new(kept(1)) }).expect("taken");
            archiver::run(|| Ok(repository), Cursor::new(sent(version)), Vec::new()).expect("archived");
        }
        let repository = Repository::open(Store::open(place, false).expect("the sample is kept"), None)
            .expect("this version");
        assert_eq!(
            verify(&repository, None, false, &Progress::hidden()).expect("read").findings,
            [],
            "{name}"
        );
        let found = stored_timeline(&repository, 1).expect("listed");
        let [segment] = &found.segments[..] else { panic!("{name}: {:?}", found.segments) };
        let read = read_segment(&repository, segment).expect("whole");
        assert_eq!(read.frames.iter().map(|range| range.to).collect::<Vec<_>>(), [1300, 1700], "{name}");
        assert_eq!(read.chain, (0, chained(0, &log(1000, 1700))), "{name}");
        let (mut rest, mut bytes) = (&read.contents[..], Vec::new());
        while let Some((Frame::Range(range), length)) = Frame::decode(rest).expect("whole") {
            assert_eq!(range.chain.is_some(), version > 1, "{name}");
            bytes.extend(range.bytes);
            rest = &rest[length..];
        }
        assert_eq!(bytes, log(1000, 1700), "{name}");
        let mut file = Vec::new();
        let add = |part: &[u8]| {
            file.extend_from_slice(part);
            Ok(())
        };
        assert_eq!(read_file(&repository, 1, "f", add), Ok(5000), "{name}");
        assert_eq!(file, noise(5, 5000), "{name}");
    }
}
