//! The archive of the log: the archiver is fed with frames, as a server does.

mod support;

use std::fs;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use cohort_backup_format::{
    ARCHIVE_FORMAT, FilePiece, Frame, Hello, LogRange, Start, TimelineStart, chained,
};
use cohort_backup_tool::archive::archiver;
use cohort_backup_tool::archive::recovery::{Request, Stop, parse_time, recover};
use cohort_backup_tool::archive::{read_file, read_segment, stored, stored_timeline};
use cohort_backup_tool::failure::{Failure, Result, exit_code};
use cohort_backup_tool::progress::Progress;
use cohort_backup_tool::prune::{Keep, prune};
use cohort_backup_tool::repository::Repository;
use cohort_backup_tool::verify::{Verified, verify};
use support::{Fake, Fault, Faulty, Files, code, contents, noise, objects, overwrite, take_of};

/// Microseconds of 2026-11-28 19:30:00 UTC.
const BEGIN_US: u64 = 1_795_894_200_000_000;

fn history(starts: &[(u32, u64)]) -> Vec<TimelineStart> {
    starts.iter().map(|(timeline, lsn)| TimelineStart { timeline: *timeline, lsn: *lsn }).collect()
}

fn encoded(frame: Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

fn encode_hello(hello: &Hello) -> Vec<u8> {
    encoded(Frame::Hello(hello.clone()))
}

fn ack(lsn: u64) -> Option<Frame> {
    Some(Frame::Ack(TimelineStart { timeline: 1, lsn }))
}

fn hello() -> Hello {
    Hello {
        format: ARCHIVE_FORMAT,
        server_uuid: "server-1".to_owned(),
        log_identity: 77,
        lsn: 1000,
        proof_lsn: 0,
        time_us: BEGIN_US,
        timelines: history(&[(1, 0)]),
    }
}

/// Returns the bytes of the log between two LSNs.
fn log(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|lsn| (lsn.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
}

/// Returns a range; its time grows by a second with each 100 bytes.
fn range(timeline: u32, from: u64, to: u64, files: &[&str]) -> Vec<u8> {
    let time = |lsn: u64| BEGIN_US + lsn / 100 * 1_000_000;
    encoded(Frame::Range(LogRange {
        timeline,
        from,
        to,
        chain: Some(chained(0, &log(1000, from))),
        first_us: time(from),
        last_us: time(to - 1),
        gtid_position: format!("0-1-{}", to / 100),
        files: files.iter().map(|name| (*name).to_owned()).collect(),
        bytes: log(from, to),
    }))
}

/// Returns the pieces of a file.
fn pieces(timeline: u32, name: &str, bytes: &[u8], size: usize) -> Vec<u8> {
    let piece = |(number, part): (usize, &[u8])| {
        encoded(Frame::File(FilePiece {
            timeline,
            name: name.to_owned(),
            file_bytes: bytes.len() as u64,
            file_crc: crc32c::crc32c(bytes),
            offset: (number * size) as u64,
            bytes: part.to_vec(),
        }))
    };
    match bytes {
        [] => piece((0, &[])),
        bytes => bytes.chunks(size).enumerate().flat_map(piece).collect(),
    }
}

/// The server's side of an archiver.
struct Feed {
    input: Option<PipeWriter>,
    output: PipeReader,
    archiver: JoinHandle<Result<()>>,
}

impl Feed {
    fn start(repository: Repository) -> Feed {
        let (frames, input) = pipe().expect("a pipe");
        let (output, answers) = pipe().expect("a pipe");
        let archiver = std::thread::spawn(move || archiver::run(|| Ok(repository), frames, answers));
        Feed { input: Some(input), output, archiver }
    }

    /// Sends HELLO, and returns the LSN of START.
    fn hello(&mut self, hello: &Hello) -> u64 {
        self.start_of(hello).lsn
    }

    fn start_of(&mut self, hello: &Hello) -> Start {
        self.send(&encode_hello(hello));
        match self.answer() {
            Some(Frame::Start(start)) => start,
            other => panic!("no START: {other:?}"),
        }
    }

    /// A failed archiver no longer reads.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.input.as_mut().expect("open").write_all(bytes);
    }

    fn answer(&mut self) -> Option<Frame> {
        Frame::read(&mut self.output).expect("a frame")
    }

    /// Closes the input. Returns the LSN of the last ACK, the text of ERROR, and the archiver's result.
    fn end(mut self) -> (Option<u64>, Option<String>, Result<()>) {
        self.input = None;
        let (mut acknowledged, mut error) = (None, None);
        while let Some(answer) = self.answer() {
            match answer {
                Frame::Ack(TimelineStart { lsn, .. }) => {
                    assert!(acknowledged < Some(lsn) && error.is_none(), "{lsn} after {acknowledged:?}");
                    acknowledged = Some(lsn);
                }
                Frame::Error(text) => error = Some(text),
                other => panic!("{other:?} after START"),
            }
        }
        (acknowledged, error, self.archiver.join().expect("no panic"))
    }
}

fn open(store: &Arc<Faulty>) -> Repository {
    Repository::open(store.store(), None).expect("a repository")
}

fn created() -> Arc<Faulty> {
    let store = Faulty::new();
    Repository::init(store.store(), None).expect("created");
    store
}

/// Archives ranges that end at these LSNs, after those that the repository has.
fn archive(store: &Arc<Faulty>, ends: &[u64]) {
    let mut feed = Feed::start(open(store));
    let mut from = feed.hello(&hello());
    for end in ends {
        feed.send(&range(1, from, *end, &[]));
        from = *end;
    }
    assert_eq!(feed.end(), (ends.last().copied(), None, Ok(())));
}

fn small() -> Files {
    Files::from([("cohort.version".to_owned(), b"cohort 1\n".to_vec())])
}

fn verified(repository: &Repository) -> Verified {
    verify(repository, None, false, &Progress::hidden()).expect("read")
}

/// Asserts that the archive of timeline 1 has the log of these LSNs.
fn assert_log(repository: &Repository, from: u64, to: u64) {
    let found = stored_timeline(repository, 1).expect("listed");
    let runs = found.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert!(runs[0].from() <= from && runs[0].to() >= to, "{} to {}", runs[0].from(), runs[0].to());
    for segment in &runs[0].segments {
        let read = read_segment(repository, segment).expect("whole");
        let tail = &read.contents[read.contents.len() - 8..];
        assert!(log(segment.from, segment.to).ends_with(tail), "{segment:?}");
    }
}

#[test]
fn ranges_and_files_are_archived_and_continued() {
    let store = created();
    let mut feed = Feed::start(open(&store));
    assert_eq!(feed.hello(&hello()), 1000);
    let spilled = noise(3, 9 << 20);
    feed.send(&pieces(1, "spill-0001", &spilled, 3 << 20));
    feed.send(&pieces(1, "empty", &[], 1));
    feed.send(&range(1, 1000, 1500, &[]));
    feed.send(&range(1, 1500, 1700, &["spill-0001", "empty"]));
    // Both are acknowledged without further ranges.
    assert_eq!(feed.answer(), ack(1700));
    // More than a segment at once.
    let far = 1700 + (20 << 20);
    (1700..far).step_by(4 << 20).for_each(|from| feed.send(&range(1, from, from + (4 << 20), &[])));
    assert_eq!(feed.end(), (Some(far), None, Ok(())));

    let repository = open(&store);
    let found = stored_timeline(&repository, 1).expect("listed");
    assert!(found.segments.len() >= 3, "{:?}", found.segments);
    assert_log(&repository, 1000, far);
    let mut bytes = Vec::new();
    let add = |part: &[u8]| {
        bytes.extend_from_slice(part);
        Ok(())
    };
    assert_eq!(read_file(&repository, 1, "spill-0001", add), Ok(9 << 20));
    assert!(bytes == spilled);
    assert_eq!(read_file(&repository, 1, "empty", |_| Ok(())), Ok(0));
    assert_eq!(verified(&repository).findings, []);

    // The next process continues; the same file may come again.
    let mut feed = Feed::start(open(&store));
    assert_eq!(feed.hello(&hello()), far);
    feed.send(&pieces(1, "spill-0001", &spilled, 1 << 20));
    feed.send(&range(1, far, far + 10, &["spill-0001"]));
    assert_eq!(feed.end(), (Some(far + 10), None, Ok(())));
    // A server that cannot send from there leaves a gap, which `verify` finds if a backup is before it.
    let mut feed = Feed::start(open(&store));
    feed.hello(&hello());
    feed.send(&range(1, far + 20, far + 30, &[]));
    assert_eq!(feed.end().0, Some(far + 30));
    assert_eq!(verified(&repository).findings, []);
    take_of(&repository, Fake { cut_lsn: 1200, ..Fake::new(small()) }).expect("taken");
    let found = verified(&repository);
    assert_eq!((found.findings.len(), found.whole.len()), (1, 1));
    assert!(found.findings[0].what.contains("gap"), "{:?}", found.findings);
}

#[test]
fn what_a_server_must_not_send_is_refused() {
    let spilled = noise(3, 100);
    let mut changed = range(1, 1000, 1100, &[]);
    changed[20] ^= 1;
    let cut_off = range(1, 1000, 1100, &[]);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (encode_hello(&hello()), "a second HELLO"),
        (range(2, 1000, 1100, &[]), "of timeline 2"),
        ([range(1, 1000, 1100, &[]), range(1, 1200, 1300, &[])].concat(), "from LSN 1200"),
        (range(1, 1000, 1100, &["missing"]), "'missing', which was not sent"),
        (range(1, 1000, 1100, &["../../locks"]), "which was not sent"),
        (pieces(1, "../x", &spilled, 10), "the file '../x'"),
        (pieces(1, "x", &spilled, 10)[200..].to_vec(), "what it must not"),
        ([&pieces(1, "x", &spilled, 60)[..60], &range(1, 1000, 1100, &[])[..]].concat(), "what it must not"),
        (changed, "its checksum"),
    ];
    for (bytes, text) in cases {
        let store = created();
        let mut feed = Feed::start(open(&store));
        feed.hello(&hello());
        feed.send(&bytes);
        let (acknowledged, error, result) = feed.end();
        let error = error.unwrap_or_else(|| panic!("{text}: no ERROR"));
        assert!(error.contains(text) && result.is_err(), "{text}: {error}");
        assert!(acknowledged.is_none_or(|lsn| lsn == 1100), "{text}");
    }
    // A frame that is cut off by the end of the server is dropped; what came before it is kept.
    let store = created();
    let mut feed = Feed::start(open(&store));
    feed.hello(&hello());
    feed.send(&cut_off);
    feed.send(&range(1, 1100, 1200, &[])[..50]);
    assert_eq!(feed.end(), (Some(1100), None, Ok(())));
}

#[test]
fn a_second_server_is_refused() {
    let store = created();
    archive(&store, &[1500]);
    let strangers = [
        Hello { server_uuid: "server-2".to_owned(), ..hello() },
        Hello { log_identity: 78, ..hello() },
        Hello { timelines: history(&[(1_790_000_000, 0)]), ..hello() },
        Hello { format: ARCHIVE_FORMAT + 1, ..hello() },
    ];
    for stranger in strangers {
        let mut feed = Feed::start(open(&store));
        feed.send(&encode_hello(&stranger));
        let Some(Frame::Error(text)) = feed.answer() else { panic!("{stranger:?} was accepted") };
        assert!(text.contains("of its own") || text.contains("same version"), "{text}");
        assert!(matches!(code(&feed.end().2), 4 | 7));
    }
    // A new timeline of the same log is welcome, and so is its parent's server.
    let mut feed = Feed::start(open(&store));
    let branch = Hello { timelines: history(&[(1, 0), (1_790_000_000, 1400)]), lsn: 1400, ..hello() };
    assert_eq!(feed.hello(&branch), 1400);
    feed.send(&range(1_790_000_000, 1400, 1450, &[]));
    assert_eq!(feed.end().0, Some(1450));
    archive(&store, &[1600]);

    // A copy of the data directory archives the same LSNs with other contents, or in other ranges.
    let mut feed = Feed::start(open(&store));
    assert_eq!(feed.hello(&hello()), 1600);
    archive(&store, &[1700]);
    let mine = range(1, 1600, 1700, &[]);
    let Ok(Some((Frame::Range(other), _))) = Frame::decode(&mine) else { panic!("it is a range") };
    feed.send(&encoded(Frame::Range(LogRange { bytes: vec![0; 100], ..other })));
    let (acknowledged, error, _) = feed.end();
    assert_eq!(acknowledged, None);
    assert!(error.expect("an ERROR").contains("a second server"));
}

#[test]
fn faults_of_the_store_never_acknowledge_what_is_lost() {
    let spilled = noise(5, 5 << 20);
    let all =
        [Fault::Error, Fault::LostReply, Fault::Partial, Fault::PartialError, Fault::Full, Fault::Killed];
    for fault in all {
        for operation in 0..16 {
            let store = created();
            let repository = open(&store);
            store.plan([(operation, fault)]);
            let mut feed = Feed::start(repository);
            feed.send(&encode_hello(&hello()));
            feed.send(&pieces(1, "f", &spilled, 1 << 20));
            feed.send(&range(1, 1000, 1100, &["f"]));
            feed.send(&range(1, 1100, 1200, &[]));
            feed.input = None;
            let mut acknowledged = None;
            let mut error = None;
            while let Some(answer) = feed.answer() {
                match answer {
                    Frame::Ack(start) => acknowledged = Some(start.lsn),
                    Frame::Error(text) => error = Some(text),
                    _ => {}
                }
            }
            let label = format!("{fault:?} at {operation}: {acknowledged:?} {error:?}");
            let may_fail = matches!(fault, Fault::Full | Fault::Killed);
            assert_eq!(acknowledged.is_some(), error.is_none(), "{label}");
            assert!(may_fail || acknowledged == Some(1200), "{label}");
            // The store as it is now.
            let healthy = store.healthy();
            let repository = open(&healthy);
            if let Some(lsn) = acknowledged {
                assert_log(&repository, 1000, lsn);
                assert_eq!(read_file(&repository, 1, "f", |_| Ok(())), Ok(5 << 20), "{label}");
            }
            // The next process goes on, whatever is left.
            let mut feed = Feed::start(open(&healthy));
            let from = feed.hello(&hello());
            assert!(acknowledged.is_none_or(|lsn| from >= lsn), "{label}");
            feed.send(&pieces(1, "f", &spilled, 1 << 20));
            feed.send(&range(1, from, from + 300, &["f"]));
            assert_eq!(feed.end(), (Some(from + 300), None, Ok(())), "{label}");
            assert_eq!(verified(&repository).findings, [], "{label}");
        }
    }
    let store = created();
    store.state.lock().expect("no panic").is_read_only = true;
    let mut feed = Feed::start(open(&store));
    feed.send(&encode_hello(&hello()));
    let Some(Frame::Error(text)) = feed.answer() else { panic!("it is read-only") };
    assert!(text.contains("cannot write"), "{text}");
}

#[test]
fn a_list_that_lags_behind_makes_no_gap() {
    let store = created();
    archive(&store, &[1500]);
    let stale = objects(&store);
    archive(&store, &[1700]);
    store.state.lock().expect("no panic").stale_list = Some(stale);
    // The repository has acknowledged everything up to 1700 before.
    let mut feed = Feed::start(open(&store));
    feed.send(&encode_hello(&Hello { lsn: 1700, ..hello() }));
    std::thread::sleep(std::time::Duration::from_millis(100));
    store.state.lock().expect("no panic").stale_list = None;
    let Some(Frame::Start(start)) = feed.answer() else { panic!("no START") };
    assert_eq!((start.lsn, start.chain), (1700, chained(0, &log(1000, 1700))));
    feed.send(&range(1, 1700, 1800, &[]));
    assert_eq!(feed.end().0, Some(1800));
    assert_log(&open(&store), 1000, 1800);
    // A part that is lost is a gap, after a while.
    let lost = format!("archive/00000001/{:016x}-{:016x}.log", 1700, 1800);
    open(&store).store().delete(&lost).expect("deleted");
    let mut feed = Feed::start(open(&store));
    assert_eq!(feed.hello(&Hello { lsn: 1800, ..hello() }), 1700);
    assert_eq!(feed.end().0, None);
}

#[test]
fn a_flush_is_acknowledged_at_once() {
    let store = created();
    let mut feed = Feed::start(open(&store));
    feed.hello(&hello());
    let began = std::time::Instant::now();
    for (from, to) in [(1000, 1100), (1100, 1200), (1200, 1300)] {
        feed.send(&range(1, from, to, &[]));
        feed.send(&encoded(Frame::Flush));
        assert_eq!(feed.answer(), ack(to));
    }
    assert!(began.elapsed() < std::time::Duration::from_millis(600), "{:?}", began.elapsed());
    // Without ranges there is nothing to acknowledge.
    feed.send(&encoded(Frame::Flush));
    assert_eq!(feed.end(), (None, None, Ok(())));
    assert_log(&open(&store), 1000, 1300);
}

#[test]
fn every_flipped_bit_of_the_archive_is_found_and_not_restored() {
    let store = Faulty::new();
    let folder = tempfile::tempdir().expect("a directory");
    let key_file = folder.path().join("key");
    let repository = Repository::init(store.store(), Some(&key_file)).expect("created");
    take_of(&repository, Fake { cut_lsn: 1000, ..Fake::new(small()) }).expect("taken");
    let open = || Repository::open(store.store(), Some(&key_file)).expect("a repository");
    let mut feed = Feed::start(open());
    feed.hello(&hello());
    feed.send(&pieces(1, "f", &noise(1, 300), 300));
    feed.send(&range(1, 1000, 1300, &["f"]));
    assert_eq!(feed.end().0, Some(1300));
    let server = script(folder.path(), "exit 1");
    let found: Vec<_> = objects(&store)
        .into_iter()
        .filter(|object| object.location.as_ref().starts_with("archive/"))
        // The mark that a file is used has no contents of its own.
        .filter(|object| !object.location.as_ref().contains("files/f/0000000000000") || object.size > 100)
        .collect();
    assert_eq!(found.len(), 3, "{found:?}");
    for (number, object) in found.iter().enumerate() {
        let whole = contents(&store, &object.location);
        let step = (whole.len() * 8 / 31).max(1);
        for bit in (0..whole.len() * 8).step_by(step) {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            overwrite(&store, &object.location, damaged);
            let name = object.location.as_ref();
            let found = verified(&open());
            assert_eq!(found.findings.len(), 1, "{name} bit {bit}: {:?}", found.findings);
            let request = Request { stop: Stop::Latest, timeline: None, backup: None, server: &server };
            let target = folder.path().join(format!("target-{number}-{bit}"));
            let restored = recover(&open(), &request, &target, &Progress::hidden());
            assert_eq!(code(&restored), 3, "{name} bit {bit}");
            assert!(!target.join("cohort-backup.json").exists(), "{name} bit {bit}");
        }
        overwrite(&store, &object.location, whole);
    }
    assert_eq!(verified(&open()).findings, []);
}

/// Writes a program that stands for the server.
fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("server");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("allowed");
    path
}

/// Returns the names of the files below a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        match path.is_dir() {
            true => names.extend(self::names(&path).into_iter().map(|below| format!("{name}/{below}"))),
            false => names.push(name),
        }
    }
    names.sort_unstable();
    names
}

#[test]
fn a_restore_fetches_the_log_from_the_right_backup_to_the_target() {
    let store = created();
    let repository = open(&store);
    // Backups at LSN 1100 and 1300; the time grows by a second with each 100 bytes.
    let backups = [(1100, "2026-11-28T19:30:11Z", "0-1-11"), (1300, "2026-11-28T19:30:13Z", "0-1-13")];
    for (cut_lsn, cut, gtid) in backups {
        take_of(&repository, Fake { cut_lsn, cut, gtid, ..Fake::new(small()) }).expect("taken");
    }
    let names_of = repository.backups().expect("listed");
    for ends in [[1050, 1200], [1250, 1400], [1450, 1600]] {
        archive(&store, &ends);
    }
    let mut feed = Feed::start(open(&store));
    let branch = Hello { timelines: history(&[(1, 0), (0x6ab0_0000, 1450)]), lsn: 1450, ..hello() };
    feed.hello(&branch);
    feed.send(&pieces(0x6ab0_0000, "f", b"spilled", 3));
    feed.send(&range(0x6ab0_0000, 1450, 1500, &["f"]));
    assert_eq!(feed.end().0, Some(1500));

    let folder = tempfile::tempdir().expect("a directory");
    let copy = folder.path().join("copy");
    let text = format!(
        "for a in \"$@\"; do case $a in --apply-archive=*) cp -r ${{a#*=}} {0};; esac; done\n\
         echo \"$@\" > {1}\n\
         echo log line\n\
         echo '{{\"timeline\": 9, \"lsn\": 5, \"gtid_binlog_pos\": \"0-1-15\", \"time\": \"t\"}}'",
        copy.display(),
        folder.path().join("arguments").display()
    );
    let server = script(folder.path(), &text);
    let log = |timeline: u32, from: u64, to: u64| format!("{timeline:08x}/{from:016x}-{to:016x}.log");
    let parent = [log(1, 1000, 1200), log(1, 1200, 1400), log(1, 1400, 1600)];
    let branch = [log(0x6ab0_0000, 1450, 1500), "6ab00000/files/f".to_owned()];
    let all = |from: usize| [&parent[from..], &branch].concat();
    let time = |text: &str| Stop::Time(parse_time(text).expect("a time"));
    const BRANCH: u32 = 0x6ab0_0000;
    let cases = [
        (Stop::Latest, Some(BRANCH), 1, all(1)),
        (Stop::Latest, Some(1), 1, parent[1..].to_vec()),
        (time("2026-11-28 19:30:13.5"), Some(BRANCH), 0, parent.to_vec()),
        (time("2026-11-28 19:30:14"), Some(BRANCH), 1, all(1)[..2].to_vec()),
        (time("2026-11-28 19:30:12"), Some(BRANCH), 0, parent[..2].to_vec()),
        (Stop::Gtid("0-1-12".to_owned()), Some(BRANCH), 0, all(0)),
    ];
    for (number, (stop, timeline, backup, expected)) in cases.into_iter().enumerate() {
        let target = folder.path().join(format!("target{number}"));
        let request = Request { stop: stop.clone(), timeline, backup: None, server: &server };
        let recovered = recover(&repository, &request, &target, &Progress::hidden()).expect("restored");
        assert_eq!(recovered.catalogue.name, names_of[backup], "{stop:?}");
        assert_eq!(recovered.report.expect("a report")["gtid_binlog_pos"], "0-1-15");
        let mut expected = expected;
        let history = format!("{:08x}/files/history", timeline.expect("named"));
        expected.push(history.clone());
        expected.sort_unstable();
        assert_eq!(names(&copy), expected, "{stop:?}");
        let first = fs::read(copy.join(&expected[0])).expect("the ranges");
        assert!(matches!(Frame::decode(&first), Ok(Some((Frame::Range(_), _)))));
        let lines = fs::read_to_string(copy.join(history)).expect("the history");
        let branch = "1789919232 00000000000005aa\n";
        let own = if timeline == Some(BRANCH) { branch } else { "" };
        assert_eq!(lines, format!("1 0000000000000000\n{own}"));
        assert!(!target.join("cohort-archive").exists() && target.join("cohort-backup.json").exists());
        let arguments = fs::read_to_string(folder.path().join("arguments")).expect("arguments");
        assert!(arguments.contains("--stop-"), "{arguments}");
        fs::remove_dir_all(&copy).expect("removed");
    }
    let refused = [
        // Both timelines go on after the fork, and the newest backup is before it.
        (
            Stop::Latest,
            None,
            None,
            4,
            "several timelines that go on after the newest backup: 00000001, 6ab00000",
        ),
        (time("2026-11-28 19:30:11"), Some(BRANCH), None, 4, "no backup before the target"),
        (Stop::Gtid("0-1-10".to_owned()), Some(BRANCH), None, 4, "no backup before the target"),
        (Stop::Gtid("x".to_owned()), Some(BRANCH), None, 4, "is no GTID"),
        (Stop::Latest, Some(7), None, 4, "no archive of timeline 00000007"),
        (time("2026-11-28 19:30:12"), Some(BRANCH), Some(1), 4, "is after the target"),
    ];
    for (stop, timeline, backup, expected, text) in refused {
        let target = folder.path().join("refused");
        let backup = backup.map(|number: usize| names_of[number].as_str());
        let request = Request { stop, timeline, backup, server: &server };
        let failure = recover(&repository, &request, &target, &Progress::hidden()).expect_err(text);
        assert_eq!(exit_code(&failure), expected, "{failure}");
        assert!(failure.to_string().contains(text) && !target.exists(), "{failure}");
    }
    // The position of a backup is its own state.
    let target = folder.path().join("own");
    let stop = Stop::Gtid("0-1-13".to_owned());
    let request = Request { stop, timeline: Some(BRANCH), backup: None, server: Path::new("/none") };
    let recovered = recover(&repository, &request, &target, &Progress::hidden()).expect("restored");
    assert!(recovered.is_reached && recovered.report.is_none());
    assert_eq!(recovered.catalogue.name, names_of[1]);
    // A server that fails leaves a directory in which no server starts.
    let server = script(folder.path(), "echo why >&2; exit 1");
    let target = folder.path().join("failed");
    let request = Request { stop: Stop::Latest, timeline: Some(BRANCH), backup: None, server: &server };
    let failure = recover(&repository, &request, &target, &Progress::hidden()).expect_err("it fails");
    assert!(failure.to_string().contains("why"), "{failure}");
    assert!(target.join("cohort-backup.unfinished").exists());
    // A gap before the target is refused, and one after it is not.
    let missing = log(1, 1200, 1400);
    repository.store().delete(&format!("archive/{missing}")).expect("deleted");
    let target = folder.path().join("gap");
    let failure = recover(&repository, &request, &target, &Progress::hidden()).expect_err("a gap");
    assert!(matches!(&failure, Failure::Damaged(text) if text.contains("gap at LSN 1300")), "{failure}");
    let works = script(folder.path(), &text);
    for (gtid, failure) in [("0-1-12", None), ("0-1-14", Some("gap at LSN 1300"))] {
        let request = Request { stop: Stop::Gtid(gtid.to_owned()), server: &works, ..request.clone() };
        let target = folder.path().join(gtid);
        let done = recover(&repository, &request, &target, &Progress::hidden());
        match failure {
            None => assert_eq!(done.expect("before the gap").catalogue.name, names_of[0]),
            Some(why) => assert!(done.expect_err(why).to_string().contains(why)),
        }
    }
    // A backup of the branch decides for it.
    let of_branch =
        Fake { cut_lsn: 1480, timeline: BRANCH, cut: "2026-11-28T19:30:20Z", ..Fake::new(small()) };
    take_of(&repository, of_branch).expect("taken");
    let request =
        Request { stop: Stop::Latest, timeline: None, backup: None, server: &script(folder.path(), &text) };
    let recovered = recover(&repository, &request, &folder.path().join("chosen"), &Progress::hidden());
    assert_eq!(recovered.expect("restored").catalogue.manifest.timeline, BRANCH);
    // A server that comes from this one, such as a clone, does not continue its archive.
    let mut feed = Feed::start(open(&store));
    let clone = Hello {
        server_uuid: "clone".to_owned(),
        timelines: history(&[(1, 0), (0x6ab0_0001, 1600)]),
        lsn: 1600,
        ..hello()
    };
    feed.send(&encode_hello(&clone));
    let Some(Frame::Error(text)) = feed.answer() else { panic!("it was accepted") };
    assert!(text.contains("take --another-server"), "{text}");
}

#[test]
fn prune_keeps_what_the_kept_backups_need() {
    let store = created();
    let repository = open(&store);
    let take = |cut_lsn| take_of(&repository, Fake { cut_lsn, ..Fake::new(small()) }).expect("taken");
    let mut feed = Feed::start(open(&store));
    feed.hello(&hello());
    feed.send(&pieces(1, "old", b"old", 3));
    feed.send(&pieces(1, "both", b"both", 3));
    feed.send(&range(1, 1000, 1100, &["old", "both"]));
    assert_eq!(feed.end().0, Some(1100));
    take(1050);
    archive(&store, &[1200]);
    let mut feed = Feed::start(open(&store));
    feed.hello(&hello());
    feed.send(&pieces(1, "both", b"both", 3));
    feed.send(&range(1, 1200, 1300, &["both"]));
    assert_eq!(feed.end().0, Some(1300));
    // A file whose range is still to come.
    let mut feed = Feed::start(open(&store));
    feed.hello(&hello());
    feed.send(&pieces(1, "new", b"new", 3));
    assert_eq!(feed.end().0, None);
    take(1250);
    let kept = |count| Keep { count: Some(count), days: None };
    let all = stored(&repository).expect("listed");
    assert_eq!(prune(&repository, kept(2), false).expect("pruned").archived, 0);
    assert_eq!(stored(&repository).expect("listed")[&1].segments, all[&1].segments);
    let dry = prune(&repository, kept(1), true).expect("pruned");
    let pruned = prune(&repository, kept(1), false).expect("pruned");
    assert_eq!((dry.archived, pruned.archived), (4, 4));
    let left = &stored(&repository).expect("listed")[&1];
    assert_eq!(left.segments.iter().map(|segment| segment.from).collect::<Vec<_>>(), [1200]);
    assert_eq!(left.files.keys().collect::<Vec<_>>(), ["both", "new"]);
    assert_eq!(verified(&repository).findings, []);
    // A backup that needs nothing of the archive. The last segment proves whose timeline it is: START has its
    // end for an older copy of the data directory, too.
    take(1400);
    prune(&repository, kept(1), false).expect("pruned");
    let left = &stored(&repository).expect("listed")[&1];
    assert_eq!(left.segments.iter().map(|segment| segment.from).collect::<Vec<_>>(), [1200]);
    assert_eq!(verified(&repository).findings, []);
    let mut feed = Feed::start(open(&store));
    assert_eq!(feed.hello(&Hello { lsn: 1100, ..hello() }), 1300);
    assert_eq!(feed.end().0, None);
}

#[test]
fn a_restore_that_misses_its_time_leaves_no_data_directory() {
    let store = created();
    let repository = open(&store);
    archive(&store, &[1600]);
    let folder = tempfile::tempdir().expect("a directory");
    // The records have no time before the target, because the clock was set back.
    let server = script(folder.path(), "echo '{\"is_stop_reached\": false}'");
    take_of(&repository, Fake { cut_lsn: 1001, cut: "2026-11-28T19:30:01Z", ..Fake::new(small()) })
        .expect("taken");
    for (time, is_refused) in [("2026-11-28 19:31:00", false), ("2026-11-28 19:30:12", true)] {
        let stop = Stop::Time(parse_time(time).expect("a time"));
        let request = Request { stop, timeline: None, backup: None, server: &server };
        let target = folder.path().join(time);
        let restored = recover(&repository, &request, &target, &Progress::hidden());
        assert_eq!(code(&restored), if is_refused { 4 } else { 0 }, "{time}");
        assert_eq!(target.join("cohort-backup.unfinished").exists(), is_refused, "{time}");
    }
}

/// A process of the program that archives into a directory.
fn program(repository: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_cohort-backup"))
        .arg("archive")
        .arg(format!("--repository={}", repository.display()))
        .env_remove("COHORT_BACKUP_KEY_FILE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program")
}

#[test]
fn a_killed_archiver_loses_nothing_that_it_acknowledged() {
    let folder = tempfile::tempdir().expect("a directory");
    let place = folder.path().join("r");
    let store =
        cohort_backup_tool::store::Store::open(place.to_str().expect("UTF-8"), true).expect("a directory");
    let repository = Repository::init(store, None).expect("created");
    let rounds = if std::env::var_os("COHORT_LONG_TESTS").is_some() { 300 } else { 20 };
    let mut acknowledged = 1000;
    for round in 0..rounds {
        let mut child = program(&place);
        let mut input = child.stdin.take().expect("a pipe");
        let mut output = child.stdout.take().expect("a pipe");
        input.write_all(&encode_hello(&hello())).expect("sent");
        let frame = Frame::read(&mut output).expect("a frame");
        let Some(Frame::Start(Start { lsn: start, .. })) = frame else { panic!("round {round}: {frame:?}") };
        assert!(start >= acknowledged, "round {round}: START {start} after ACK {acknowledged}");
        let writer = std::thread::spawn(move || {
            let mut from = start;
            loop {
                let name = format!("f{from}");
                let file = pieces(1, &name, &noise(from, 20_000), 7000);
                let sent = input
                    .write_all(&file)
                    .and_then(|()| input.write_all(&range(1, from, from + (1 << 20), &[&name])));
                if sent.is_err() {
                    return;
                }
                from += 1 << 20;
            }
        });
        let reader = std::thread::spawn(move || {
            let mut newest = None;
            while let Ok(Some(frame)) = Frame::read(&mut output) {
                if let Frame::Ack(start) = frame {
                    newest = Some(start.lsn);
                }
            }
            newest
        });
        let pause = u64::from(noise(round, 1)[0]) * 4;
        std::thread::sleep(std::time::Duration::from_millis(pause));
        child.kill().expect("killed");
        child.wait().expect("ended");
        writer.join().expect("no panic");
        acknowledged = acknowledged.max(reader.join().expect("no panic").unwrap_or(0));
    }
    assert!(acknowledged > 1000, "nothing was acknowledged");
    assert_log(&repository, 1000, acknowledged);
    assert_eq!(verified(&repository).findings, []);
}

#[test]
fn the_begin_names_what_proves_the_log() {
    let store = created();
    let of = |proof_lsn: u64| {
        let mut feed = Feed::start(open(&store));
        let start = feed.start_of(&Hello { proof_lsn, ..hello() });
        assert_eq!(feed.end().0, None);
        (start.lsn, start.chain, start.proof_lsn, start.proof_chain)
    };
    let chain = |to: u64| chained(0, &log(1000, to));
    assert_eq!(of(0), (1000, 0, 1000, 0));
    // Two objects, the second of two ranges.
    archive(&store, &[1500]);
    archive(&store, &[1600, 1800]);
    let cases =
        [(0, 1000), (1000, 1000), (1001, 1500), (1500, 1500), (1501, 1600), (1601, 1800), (9999, 1800)];
    for (proof_lsn, expected) in cases {
        assert_eq!(of(proof_lsn), (1800, chain(1800), expected, chain(expected)), "from {proof_lsn}");
    }
    // Ranges of the format before have no chain: it begins with the last object.
    let old = created();
    for (from, to) in [(1000, 1500), (1500, 1800)] {
        let mut feed = Feed::start(open(&old));
        assert_eq!(feed.hello(&hello()), from);
        let Ok(Some((Frame::Range(range), _))) = Frame::decode(&range(1, from, to, &[])) else {
            panic!("it is one")
        };
        feed.send(&encoded(Frame::Range(LogRange { chain: None, ..range })));
        assert_eq!(feed.end().0, Some(to));
    }
    let mut feed = Feed::start(open(&old));
    let start = feed.start_of(&hello());
    assert_eq!((start.lsn, start.proof_lsn, start.proof_chain), (1800, 1500, 0));
    assert_eq!(start.chain, chained(0, &log(1500, 1800)));
    // It is continued with that.
    let next = Frame::decode(&range(1, 1800, 1900, &[])).expect("whole").expect("one").0;
    let Frame::Range(next) = next else { panic!("it is one") };
    feed.send(&encoded(Frame::Range(LogRange { chain: Some(start.chain), ..next })));
    assert_eq!(feed.end().0, Some(1900));
    assert_eq!(verified(&open(&old)).findings, []);
}

#[test]
fn a_restore_takes_the_log_of_one_server() {
    let store = created();
    let repository = open(&store);
    take_of(&repository, Fake { cut_lsn: 1000, ..Fake::new(small()) }).expect("taken");
    archive(&store, &[1200]);
    archive(&store, &[1400]);
    // A process that was replaced has stored a longer object, which nothing follows.
    let name = |from: u64, to: u64| format!("archive/00000001/{from:016x}-{to:016x}.log");
    let put = |from: u64, to: u64, chain: u32| {
        let Ok(Some((Frame::Range(range), _))) = Frame::decode(&range(1, from, to, &[])) else {
            panic!("it is one")
        };
        let bytes = encoded(Frame::Range(LogRange { chain: Some(chain), ..range }));
        repository
            .write_same(cohort_backup_tool::object::Kind::Log, &name(from, to), &bytes)
            .expect("written")
            .expect("as the only one");
    };
    put(1000, 1300, 0);
    let folder = tempfile::tempdir().expect("a directory");
    let copy = folder.path().join("copy");
    let text = format!(
        "for a in \"$@\"; do case $a in --apply-archive=*) cp -r ${{a#*=}} {};; esac; done; echo '{{}}'",
        copy.display()
    );
    let server = script(folder.path(), &text);
    let restore = |number: u32| {
        let request = Request { stop: Stop::Latest, timeline: None, backup: None, server: &server };
        recover(&repository, &request, &folder.path().join(format!("t{number}")), &Progress::hidden())
    };
    restore(1).expect("restored");
    let expected = [(1000, 1200), (1200, 1400)].map(|(from, to)| name(from, to).replace("archive/", ""));
    assert_eq!(names(&copy)[..2], expected);
    // What follows has another log before it.
    put(1400, 1500, 77);
    let failure = restore(2).expect_err("two logs");
    assert!(matches!(&failure, Failure::Damaged(text) if text.contains("of another server")), "{failure}");
}

#[test]
fn what_the_repository_has_lost_is_not_acknowledged() {
    // As below a mount point whose file system is not there any more.
    let lost = ["archive/00000001/timeline", "archive/00000001/files/f/0000000000000000"];
    for (number, name) in lost.into_iter().enumerate() {
        let store = created();
        let repository = open(&store);
        let mut feed = Feed::start(open(&store));
        feed.hello(&hello());
        feed.send(&pieces(1, "f", b"spilled", 7));
        feed.send(&range(1, 1000, 1100, &["f"]));
        assert_eq!(feed.answer(), ack(1100));
        feed.send(&pieces(1, "g", b"spilled", 7));
        repository.store().delete(name).expect("deleted");
        feed.send(&range(1, 1100, 1200, &["f"]));
        let (acknowledged, error, _) = feed.end();
        assert_eq!(acknowledged, None, "{name}");
        let text = ["is its file system mounted", "has lost"][number];
        assert!(error.as_ref().is_some_and(|error| error.contains(text)), "{name}: {error:?}");
    }
}
