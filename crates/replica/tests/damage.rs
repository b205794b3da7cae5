//! A relay log with acknowledged events that cannot be read completely: no thread starts (error 1594) and the
//! files stay unchanged. Once they are readable again, everything is applied. No setting makes the server
//! keep such a log: the marks in the log do.

mod pair;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cohort_exec::{ReplicaControl, SourceName};
use cohort_types::Value;
use cohort_vfs::{HookFs, MemFs, Operation, SharedFs};
use pair::{
    Replica, configured, content, dump, first_group, group_ends, groups, marks_path, put, put_relay_log,
    received, relay_files, relay_name, source_of,
};

/// Column of SHOW ALL SLAVES STATUS.
const GTID_IO_POS: usize = 45;

const SCRIPT: [&str; 6] = [
    "CREATE TABLE test.t (id INT PRIMARY KEY, a INT)",
    "INSERT INTO test.t VALUES (1, 1), (2, 2)",
    "INSERT INTO test.t VALUES (3, 3)",
    "UPDATE test.t SET a = a + 10",
    "INSERT INTO test.t VALUES (4, 4)",
    "DELETE FROM test.t WHERE id = 1",
];

/// The groups in three files, all acknowledged. The first group is applied.
struct Scene {
    memory: MemFs,
    states: Vec<String>,
    files: Vec<Vec<u8>>,
    /// Offset of the last group in the newest file.
    last_group: usize,
}

impl Scene {
    fn new() -> Scene {
        let (states, binlog) = source_of(&SCRIPT);
        let ends = group_ends(&binlog);
        let memory = received(&binlog[..ends[0]]);
        let disk: SharedFs = Arc::new(memory.clone());
        assert_eq!(Replica::open(&disk, 0).expect("opens").run_all(), 1);
        let files = relay_files(&binlog, &[ends[1], ends[3]]);
        let newest = files.last().expect("three").len();
        put_relay_log(&disk, &files, (3, newest as u64), false);
        let last_group = newest - (ends[5] - ends[4]);
        Scene { memory, states, files, last_group }
    }

    /// Returns a copy of the disk to modify.
    fn disk(&self) -> SharedFs {
        Arc::new(self.memory.kill_clone())
    }

    fn check_whole(&self, disk: &SharedFs, threads: u64, what: &str) {
        let mut replica = Replica::open(disk, threads).expect("opens");
        assert_eq!(replica.run_all(), SCRIPT.len(), "{what}");
        assert_eq!(dump(&mut replica.server), self.states[SCRIPT.len()], "{what}");
        assert_eq!(groups(&replica.server, disk), SCRIPT.len(), "{what}: the binary log");
    }
}

/// Returns all files of the relay log.
fn relay_log(disk: &SharedFs) -> Vec<(PathBuf, Vec<u8>)> {
    let names = disk.list(relay_name().dir()).expect("listed");
    let own = names.into_iter().filter(|name| name.to_string_lossy().starts_with("relay."));
    own.map(|name| (name.clone(), content(disk, &relay_name().dir().join(&name)))).collect()
}

fn cut(disk: &SharedFs, path: &Path, end: usize) {
    put(disk, path, &content(disk, path)[..end]);
}

fn flip(disk: &SharedFs, path: &Path, at: usize, bit: usize) {
    let mut bytes = content(disk, path);
    bytes[at] ^= 1 << bit;
    put(disk, path, &bytes);
}

#[test]
fn missing_or_damaged_files_end_the_start_unchanged() {
    let scene = Scene::new();
    let (name, index) = (relay_name(), relay_name().index_path());
    let lines = String::from_utf8(content(&scene.disk(), &index)).expect("text");
    type Damage<'d> = Box<dyn Fn(&SharedFs) + 'd>;
    let mut cases: Vec<(String, Damage<'_>)> = Vec::new();
    for number in 1..=3u32 {
        let (path, bytes) = (name.path(number), &scene.files[number as usize - 1]);
        let of = |what: &str| format!("file {number} {what}");
        let own = path.clone();
        cases.push((of("missing"), Box::new(move |disk| disk.remove(&own).expect("removed"))));
        let own = path.clone();
        cases.push((of("empty"), Box::new(move |disk| put(disk, &own, b""))));
        let own = path.clone();
        cases.push((of("without its end"), Box::new(move |disk| cut(disk, &own, bytes.len() - 1))));
        let own = path.clone();
        // Cuts the file at the end of an event.
        let event = if number == 3 { scene.last_group } else { bytes.len() - own_rotate_bytes() };
        cases.push((of("without its last event"), Box::new(move |disk| cut(disk, &own, event))));
        for at in (0..bytes.len()).step_by(23) {
            let own = path.clone();
            cases.push((of(&format!("flipped at {at}")), Box::new(move |disk| flip(disk, &own, at, at % 8))));
        }
    }
    let own = index.clone();
    cases.push(("no index".to_owned(), Box::new(move |disk| disk.remove(&own).expect("removed"))));
    for (n, line) in lines.lines().enumerate().filter(|(_, line)| !line.ends_with("marks")) {
        let (own, rest) = (index.clone(), lines.replace(&format!("{line}\n"), ""));
        if n > 0 {
            cases.push((format!("no line {line}"), Box::new(move |disk| put(disk, &own, rest.as_bytes()))));
        }
    }
    cases.push(("no marks".to_owned(), Box::new(|disk| disk.remove(&marks_path()).expect("removed"))));
    cases.push(("empty marks".to_owned(), Box::new(|disk| put(disk, &marks_path(), b""))));
    cases.push(("flipped marks".to_owned(), Box::new(|disk| flip(disk, &marks_path(), 20, 3))));
    for (n, (what, damage)) in cases.iter().enumerate() {
        let disk = scene.disk();
        damage(&disk);
        let before = relay_log(&disk);
        let (number, text) = Replica::open(&disk, 0).expect("the server starts").refused();
        assert_eq!(number, 1594, "{what}: {text}");
        assert_eq!(relay_log(&disk), before, "{what}: it is kept");
        if n % 8 == 0 {
            // Restores the files.
            relay_log(&scene.disk())
                .iter()
                .for_each(|(file, bytes)| put(&disk, &name.dir().join(file), bytes));
            scene.check_whole(&disk, n as u64 % 3, what);
        }
    }
    scene.check_whole(&scene.disk(), 0, "nothing");
}

/// Size of the event that names the next file, at the end of all files but the newest.
fn own_rotate_bytes() -> usize {
    19 + 8 + relay_name().file(1).len() + 4
}

#[test]
fn one_operation_that_fails_is_no_end_of_data() {
    let scene = Scene::new();
    for threads in [0, 2] {
        for wanted in [Operation::Open, Operation::Read, Operation::Sync] {
            let mut refusals = 0;
            for nth in 0.. {
                let memory = scene.memory.kill_clone();
                let inner: SharedFs = Arc::new(memory.clone());
                let seen = Arc::new(AtomicUsize::new(0));
                let count = Arc::clone(&seen);
                let fail = move |operation, name: &str| {
                    let is_meant = operation == wanted && name.starts_with("relay.");
                    match is_meant && count.fetch_add(1, Ordering::Relaxed) == nth {
                        // EMFILE, EIO.
                        true if wanted == Operation::Open => Err(std::io::Error::from_raw_os_error(24)),
                        true => Err(std::io::Error::from_raw_os_error(5)),
                        false => Ok(()),
                    }
                };
                let disk: SharedFs = Arc::new(HookFs::failing(Arc::clone(&inner), fail));
                let what = format!("{wanted:?} {nth} with {threads} threads");
                let outcome = Replica::open(&disk, threads).expect("the server starts").try_run_all();
                match outcome {
                    Ok(done) => assert_eq!(done, SCRIPT.len(), "{what}"),
                    Err(number) => assert_eq!(number, 1594, "{what}"),
                }
                refusals += usize::from(outcome.is_err());
                // Threads that have ended may still use the other copy for a moment.
                let left: SharedFs = Arc::new(memory.kill_clone());
                scene.check_whole(&left, threads, &what);
                if seen.load(Ordering::Relaxed) <= nth {
                    break;
                }
            }
            assert!(refusals >= 3, "{wanted:?}: {refusals} refusals with {threads} threads");
        }
    }
}

#[test]
fn only_an_end_that_was_not_acknowledged_is_cut() {
    let scene = Scene::new();
    let newest = relay_name().path(3);
    let length = scene.files[2].len();
    for end in [0, 3, 10, scene.last_group, scene.last_group + 1, length - 1] {
        for acknowledged in [0, scene.last_group, length] {
            let disk = scene.disk();
            // Everything before the newest file was acknowledged in any case.
            let until =
                if acknowledged == 0 { (2, scene.files[1].len() as u64) } else { (3, acknowledged as u64) };
            put_relay_log(&disk, &scene.files, until, true);
            cut(&disk, &newest, end);
            let replica = Replica::open(&disk, 0).expect("opens");
            let what = format!("{end} of {length} bytes, {acknowledged} acknowledged");
            if end < acknowledged {
                assert_eq!(replica.refused().0, 1594, "{what}");
                continue;
            }
            let whole = if end >= scene.last_group { SCRIPT.len() - 1 } else { SCRIPT.len() - 2 };
            assert_eq!(replica.run_all(), whole, "{what}");
        }
    }
}

#[test]
fn without_gtids_what_is_kept_begins_where_the_place_says() {
    let (states, binlog) = source_of(&SCRIPT);
    let ends = group_ends(&binlog);
    // Writes the relay log as it is after `count` groups.
    let put_groups = |disk: &SharedFs, count: usize| {
        let end = if count == 0 { first_group(&binlog) } else { ends[count - 1] };
        let cuts: Vec<usize> = [ends[2]].into_iter().filter(|cut| *cut < end).collect();
        put_relay_log(disk, &relay_files(&binlog[..end], &cuts), (0, 0), true);
    };
    for threads in [0, 2] {
        for before in 0..=SCRIPT.len() {
            let by_place = [
                ("MASTER_USE_GTID".to_owned(), Value::text("no")),
                ("MASTER_LOG_FILE".to_owned(), Value::text("binlog.000001")),
                ("MASTER_LOG_POS".to_owned(), Value::Int(4)),
            ];
            let mut memory = configured(&by_place);
            for count in [before, SCRIPT.len(), SCRIPT.len()] {
                // Threads that have ended may still use the other copy for a moment.
                memory = memory.kill_clone();
                let disk: SharedFs = Arc::new(memory.clone());
                put_groups(&disk, count);
                let mut replica = Replica::open(&disk, threads).expect("opens");
                replica.run_all();
                let what = format!("{threads} threads, {before} before, {count}");
                assert_eq!(dump(&mut replica.server), states[count], "{what}");
                assert_eq!(groups(&replica.server, &disk), count, "{what}: the binary log");
            }
        }
    }
}

/// Scripts whose sequence numbers fall or repeat, with several servers in the domain.
const DISORDERED: [[&str; 5]; 2] = [
    [
        "CREATE TABLE test.t (id INT PRIMARY KEY, a INT)",
        "SET STATEMENT gtid_seq_no = 9000 FOR INSERT INTO test.t VALUES (1, 1)",
        "SET STATEMENT server_id = 2, gtid_seq_no = 8900 FOR UPDATE test.t SET a = a * 2 + 1",
        "SET STATEMENT server_id = 2, gtid_seq_no = 8901 FOR UPDATE test.t SET a = a * 2 + 1",
        "SET STATEMENT gtid_seq_no = 8800 FOR UPDATE test.t SET a = a * 2 + 1",
    ],
    [
        "SET STATEMENT gtid_seq_no = 8999 FOR CREATE TABLE test.t (id INT PRIMARY KEY, a INT)",
        "SET STATEMENT gtid_seq_no = 9000 FOR INSERT INTO test.t VALUES (1, 1)",
        "SET STATEMENT server_id = 2, gtid_seq_no = 9000 FOR UPDATE test.t SET a = a * 2 + 1",
        "SET STATEMENT server_id = 3, gtid_seq_no = 9000 FOR UPDATE test.t SET a = a * 2 + 1",
        "SET STATEMENT gtid_seq_no = 9001 FOR UPDATE test.t SET a = a * 2 + 1",
    ],
];

#[test]
fn the_order_of_a_kept_log_counts_and_not_the_numbers() {
    for (n, script) in DISORDERED.iter().enumerate() {
        let (states, binlog) = source_of(script);
        let ends = group_ends(&binlog);
        for threads in [0, 2] {
            for before in 0..=script.len() {
                let what = format!("script {n}, {threads} threads, {before} before");
                let end = if before == 0 { first_group(&binlog) } else { ends[before - 1] };
                let mut memory = received(&binlog[..end]);
                for count in [before, script.len(), script.len()] {
                    // Threads that have ended may still use the other copy for a moment.
                    memory = memory.kill_clone();
                    let disk: SharedFs = Arc::new(memory.clone());
                    if count > before {
                        put_relay_log(&disk, &relay_files(&binlog, &[ends[1]]), (0, 0), true);
                    }
                    let mut replica = Replica::open(&disk, threads).expect("opens");
                    replica.run_all();
                    assert_eq!(dump(&mut replica.server), states[count], "{what}, {count}");
                    assert_eq!(groups(&replica.server, &disk), count, "{what}, {count}: the binary log");
                    let applied = replica.replicas.applied();
                    let status = replica.replicas.status(&SourceName::All).expect("there");
                    let position = applied.first().map_or_else(String::new, ToString::to_string);
                    assert_eq!(status[0][GTID_IO_POS].to_text(), position, "{what}, {count}");
                }
            }
        }
    }
}

#[test]
fn a_group_with_the_applied_position_that_was_purged_is_before_the_log() {
    for (n, script) in DISORDERED.iter().enumerate() {
        let (states, binlog) = source_of(script);
        let ends = group_ends(&binlog);
        for threads in [0, 2] {
            for before in 1..script.len() {
                let what = format!("script {n}, {threads} threads, {before} before");
                let memory = configured(&[]);
                let disk: SharedFs = Arc::new(memory.clone());
                let first = relay_files(&binlog[..ends[before - 1]], &[]);
                put_relay_log(&disk, &first, (0, 0), true);
                Replica::open(&disk, threads).expect("opens").run_all();
                // Threads that have ended may still use the other copy for a moment.
                let disk: SharedFs = Arc::new(memory.kill_clone());
                put_relay_log(&disk, &relay_files(&binlog, &[ends[before - 1]]), (0, 0), true);
                lose_first(&disk);
                let mut replica = Replica::open(&disk, threads).expect("opens");
                replica.run_all();
                assert_eq!(dump(&mut replica.server), states[script.len()], "{what}");
                assert_eq!(groups(&replica.server, &disk), script.len(), "{what}: the binary log");
            }
        }
    }
}

/// Removes the first file, like a purge.
fn lose_first(disk: &SharedFs) {
    let (name, index) = (relay_name(), relay_name().index_path());
    let lines = String::from_utf8(content(disk, &index)).expect("text");
    put(disk, &index, lines.replace(&(name.index_line(1) + "\n"), "").as_bytes());
    disk.remove(&name.path(1)).expect("removed");
}

#[test]
fn without_gtids_a_first_file_that_is_listed_lacks_nothing() {
    let (states, binlog) = source_of(&SCRIPT);
    let by_place = [
        ("MASTER_USE_GTID".to_owned(), Value::text("no")),
        ("MASTER_LOG_FILE".to_owned(), Value::text("binlog.000001")),
        ("MASTER_LOG_POS".to_owned(), Value::Int(4)),
    ];
    let disk: SharedFs = Arc::new(configured(&by_place));
    // The first file had no transaction and was purged, so no commit recorded the position where the second
    // file begins.
    put_relay_log(&disk, &relay_files(&binlog, &[first_group(&binlog)]), (0, 0), true);
    lose_first(&disk);
    let mut replica = Replica::open(&disk, 0).expect("opens");
    replica.run_all();
    assert_eq!(dump(&mut replica.server), states[SCRIPT.len()]);
}
