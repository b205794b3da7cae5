//! Damaged files and data directories of others: the start is refused with file, offset and remedy; nothing
//! is changed, and nothing is skipped silently.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::support::{Cohort, Refusal, error_code, rows, run, text, wait_until};
use mysql::prelude::Queryable;

const CONTENT: &str = "SELECT COUNT(*), SUM(id), MIN(v), MAX(v) FROM t";

/// Creates a data directory whose server was killed: `t` has 300 rows, the binary log two files.
fn killed(folder: &Path) -> String {
    let mut server = Cohort::start(folder, "data", &[]);
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200))").expect("made");
    for id in 0..300 {
        if id == 100 {
            client.query_drop("FLUSH BINARY LOGS").expect("a new file");
        }
        client.query_drop(format!("INSERT INTO t VALUES ({id}, REPEAT('{id},', 40))")).expect("written");
    }
    client.query_drop("SHOW BINARY LOGS").expect("the files have caught up");
    let content = rows(&mut client, CONTENT);
    server.kill();
    content
}

/// Returns the contents of all files below a directory, except those that identify its user.
fn everything(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(everything(&path));
        } else if !path.ends_with("cohort.lock") {
            found.insert(path.clone(), std::fs::read(&path).expect("readable"));
        }
    }
    found
}

fn flip(file: &Path, at: u64) {
    let handle = std::fs::OpenOptions::new().read(true).write(true).open(file).expect("there");
    let mut byte = [0];
    handle.read_exact_at(&mut byte, at).expect("inside");
    byte[0] ^= 0x10;
    handle.write_all_at(&byte, at).expect("written");
}

/// Copies the data directory.
fn copy_of(folder: &Path, name: &str) -> PathBuf {
    let (from, to) = (folder.join("data"), folder.join(name));
    let output = run("cp", &["-a", from.to_str().expect("ASCII"), to.to_str().expect("ASCII")]);
    assert!(output.status.success(), "{}", text(&output));
    to
}

fn refusal(folder: &Path, name: &str) -> Option<Refusal> {
    Cohort::try_start(folder, name, &[]).err()
}

/// Returns the end of the written part: the last byte that is not zero.
fn used(file: &Path) -> u64 {
    let bytes = std::fs::read(file).expect("readable");
    bytes.iter().rposition(|byte| *byte != 0).expect("something") as u64
}

/// Flips a bit in a copy. Expects a refusal that names the file, the place of the damage and the remedy, and
/// changes nothing.
fn assert_refused(folder: &Path, file: &str, offset: u64) {
    let dir = copy_of(folder, "flipped");
    flip(&dir.join(file), offset);
    let before = everything(&dir);
    let Some(Refusal { code, said }) = refusal(folder, "flipped") else {
        panic!("{file} {offset}: not noticed");
    };
    assert_eq!(code, Some(1), "{file} {offset}: {said}");
    let base = Path::new(file).file_name().expect("a file").to_str().expect("ASCII");
    assert!(said.contains(base), "{file} {offset}: the file is not named: {said}");
    let has_cure = ["estore", "emove", "backup", "replica"].iter().any(|word| said.contains(word));
    assert!(has_cure, "{file} {offset}: no cure: {said}");
    assert!(said.contains("offset") || file == "binlog.index", "{file} {offset}: {said}");
    let after = everything(&dir);
    let is_rocksdb = |path: &PathBuf| path.starts_with(dir.join("rocksdb"));
    let changed: Vec<_> =
        before.iter().filter(|(path, bytes)| !is_rocksdb(path) && after.get(*path) != Some(bytes)).collect();
    assert!(changed.is_empty(), "{file} {offset}: {:?} changed", changed[0].0);
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn flipped_bits_are_refused_with_file_offset_and_cure() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = killed(folder.path());
    let data = folder.path().join("data");
    let end = used(&data.join("log/log.000001"));
    assert_refused(folder.path(), "catalog", 20);
    assert_refused(folder.path(), "binlog.index", 3);
    assert_refused(folder.path(), "log/log.000001", 10);
    for tenth in [1, 4, 6, 8] {
        assert_refused(folder.path(), "log/log.000001", 4096 + (end - 4096) * tenth / 10);
    }
    // The part of the binary log that the log still contains is written again.
    let whole = std::fs::read(data.join("binlog.000002")).expect("readable");
    for offset in [30, whole.len() as u64 / 2, whole.len() as u64 - 20] {
        let dir = copy_of(folder.path(), "repaired");
        flip(&dir.join("binlog.000002"), offset);
        let mut server = Cohort::start(folder.path(), "repaired", &[]);
        assert_eq!(rows(&mut server.in_test(), CONTENT), content);
        let repaired = std::fs::read(dir.join("binlog.000002")).expect("readable");
        // Byte 21, in the first event's flags, marks the file as in use.
        assert!(repaired[30..whole.len()] == whole[30..], "{offset}: it is another file now");
        server.kill();
        std::fs::remove_dir_all(&dir).expect("removed");
    }
    // After a clean stop the files are durable, and the log no longer has their contents.
    Cohort::start(folder.path(), "data", &[]).stop();
    let newest = std::fs::read_to_string(data.join("binlog.index")).expect("readable");
    let newest = newest.lines().last().expect("one").trim_start_matches("./").to_owned();
    let length = std::fs::metadata(data.join(&newest)).expect("there").len();
    for offset in [30, length / 2, length - 6] {
        assert_refused(folder.path(), &newest, offset);
    }
    let server = Cohort::start(folder.path(), "data", &[]);
    assert_eq!(rows(&mut server.in_test(), CONTENT), content, "the undamaged one starts");
}

#[test]
fn the_control_file_is_mended_from_either_of_its_copies_and_refused_without_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = killed(folder.path());
    let second = 512 << 10;
    for (copy, byte) in [(0, 20), (0, 60), (second, 0), (second, 90)] {
        let dir = copy_of(folder.path(), "flipped");
        flip(&dir.join("log/log.control"), copy + byte);
        let mut server = Cohort::start(folder.path(), "flipped", &[]);
        assert_eq!(rows(&mut server.in_test(), CONTENT), content);
        let said = server.log();
        let expected = format!("log/log.control: one of its two copies, at offset {copy}, was damaged");
        assert!(said.contains("[Warning]") && said.contains(&expected), "{said}");
        server.kill_and_restart();
        assert_eq!(server.log().matches("one of its two copies").count(), 1, "it was mended");
        drop(server);
        std::fs::remove_dir_all(&dir).expect("removed");
        std::fs::remove_file(folder.path().join("flipped.err")).expect("removed");
    }
    // The other copy is already damaged.
    flip(&folder.path().join("data/log/log.control"), 40);
    assert_refused(folder.path(), "log/log.control", second + 16);
}

#[test]
fn a_damaged_older_binary_log_file_is_reported_after_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = killed(folder.path());
    // While the log still has its contents, a start would write the file again.
    Cohort::start(folder.path(), "data", &[]).stop();
    flip(&folder.path().join("data/binlog.000001"), 3000);
    let server = Cohort::start(folder.path(), "data", &[]);
    wait_until("the damage is logged", || server.log().contains(": 1 damaged"));
    let said = server.log();
    let line = said.lines().find(|line| line.contains("[ERROR]")).unwrap_or_default();
    let has_all = ["binlog.000001' is damaged at offset", "Restore"].iter().all(|text| line.contains(text));
    assert!(has_all, "{said}");
    let mut client = server.in_test();
    assert_eq!(rows(&mut client, CONTENT), content);
    let refused = client.query_drop("SHOW BINLOG EVENTS IN 'binlog.000001'");
    assert_eq!(error_code(refused), 1220, "a reader is refused");
}

#[test]
fn torn_tails_are_repaired() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = killed(folder.path());
    let tear = |name: &str, file: &str, damage: &dyn Fn(&std::fs::File, u64)| {
        let path = copy_of(folder.path(), name).join(file);
        let end = used(&path) + 1;
        damage(&std::fs::OpenOptions::new().write(true).open(path).expect("there"), end);
        let server = Cohort::start(folder.path(), name, &[]);
        assert_eq!(rows(&mut server.in_test(), CONTENT), content, "{name}");
        let file = server.datadir.join("binlog.000002");
        let checked = run(
            "mariadb-binlog",
            &["--no-defaults", "--verify-binlog-checksum", file.to_str().expect("ASCII")],
        );
        assert!(checked.status.success(), "{name}: {}", text(&checked));
        // Header comments name each event.
        assert_eq!(text(&checked).matches("\tXid = ").count(), 200, "{name}");
    };
    tear("short", "binlog.000002", &|file, end| file.set_len(end - 300).expect("cut"));
    tear("half", "binlog.000002", &|file, end| file.write_all_at(&[0; 50], end - 50).expect("written"));
    tear("more", "binlog.000002", &|file, end| file.write_all_at(&[7; 50], end).expect("written"));
    // A record that was being written when the power failed.
    tear("log", "log/log.000001", &|file, end| {
        file.write_all_at(&[0xa5; 100], end.next_multiple_of(4096) + 200).expect("written");
    });
}

#[test]
fn a_data_directory_of_another_version_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    killed(folder.path());
    let data = folder.path().join("data");
    std::fs::write(data.join("cohort.version"), "cohort 7\n").expect("written");
    let before = everything(&data);
    let Refusal { code, said } = refusal(folder.path(), "data").expect("refused");
    assert!(code == Some(1) && said.contains("is of format 'cohort 7'"), "{said}");
    assert!(everything(&data) == before);
}

/// Computes CRC-32C.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & 0_u32.wrapping_sub(crc & 1)))
    })
}

/// Returns the image of a leaf page that begins at a block, according to its own length fields.
fn leaf_at(file: &[u8], at: usize) -> Option<&[u8]> {
    let number = |at: usize, len: usize| {
        let bytes = file.get(at..at + len)?;
        Some(bytes.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    let entries = number(at + 12, 4).filter(|entries| (1..1000).contains(entries) && file[at + 4] == 0)?;
    let mut end = number(at + 32, 4)? + number(at + 36, 2)? + number(at + 38, 2)?;
    for slot in 0..entries {
        let entry = number(at + 48 + slot * 8, 4)?;
        end = end.max(entry + 7 + number(at + entry + 1, 2)? + number(at + entry + 3, 4)?);
    }
    let image = file.get(at..at + end)?;
    (crc(&image[4..]) as usize == number(at, 4)?).then_some(image)
}

#[test]
fn a_page_of_wrong_content_fails_its_table_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = killed(folder.path());
    {
        let mut server = Cohort::start(folder.path(), "data", &[]);
        server.in_test().query_drop("CREATE TABLE sound AS SELECT * FROM t").expect("made");
        server.stop();
    }
    let path = folder.path().join("data/innodb/btree.data");
    let file = std::fs::read(&path).expect("readable");
    // The leaf pages of both `t` and `sound` contain the text. In those of `t`, which has the smaller index
    // id, a slot offset is set to beyond the page.
    let leaves: Vec<(usize, &[u8])> = (0..file.len())
        .step_by(4096)
        .filter_map(|at| Some((at, leaf_at(&file, at)?)))
        .filter(|(_, image)| image.windows(8).any(|text| text == b"200,200,"))
        .collect();
    assert!(leaves.len() >= 2, "{} leaves hold the row", leaves.len());
    let space = |image: &[u8]| u32::from_le_bytes([image[8], image[9], image[10], image[11]]);
    let of_t = leaves.iter().map(|(_, image)| space(image)).min().expect("some");
    let handle = std::fs::OpenOptions::new().write(true).open(&path).expect("there");
    for (at, image) in leaves.iter().filter(|(_, image)| space(image) == of_t) {
        let mut wrong = image.to_vec();
        wrong[48..52].copy_from_slice(&u32::MAX.to_le_bytes());
        let checksum = crc(&wrong[4..]).to_le_bytes();
        wrong[..4].copy_from_slice(&checksum);
        handle.write_all_at(&wrong, *at as u64).expect("written");
    }
    let mut server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.in_test();
    assert_eq!(rows(&mut client, &CONTENT.replace(" t", " sound")), content);
    for sql in [CONTENT, "SELECT * FROM t WHERE id = 200", "UPDATE t SET v = 'x'", "DELETE FROM t"] {
        assert_eq!(error_code(client.query_drop(sql)), 1712, "{sql}");
    }
    client.query_drop("UPDATE sound SET v = 'x' WHERE id = 1").expect("others go on");
    let said = server.log();
    let line = said.lines().find(|line| line.contains("[ERROR]") && line.contains("btree.data"));
    let line = line.unwrap_or_else(|| panic!("nothing is logged: {said}"));
    assert!(
        line.contains("block") && line.contains("page") && line.contains("does not lie inside"),
        "{line}"
    );
    client.query_drop("DROP TABLE t").expect("a damaged table can go");
    server.stop();
    let server = Cohort::start(folder.path(), "data", &[]);
    assert_eq!(rows(&mut server.in_test(), "SELECT v FROM sound WHERE id = 1"), "x\n");
}
