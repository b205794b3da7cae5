//! A full disk: writes are refused with 1021, reads continue, nothing is lost, and service resumes by itself
//! when there is space.
//!
//! The data directory is on a separate file system in memory. Where that is not possible, these tests print a
//! message and pass.

use std::process::Command;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::support::{Cohort, DISK_FULL, is_refused, rows, wait_until};

/// Starts a server on a small file system.
fn start() -> Option<Cohort> {
    Cohort::on_small_disk(400, &["--rocksdb-block-cache-size=8M"])
}

/// Repeats a statement until it is accepted. Errors other than a full disk fail the test.
fn until_accepted(client: &mut Conn, sql: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match client.query_drop(sql) {
            Ok(()) => return,
            Err(mysql::Error::MySqlError(error)) if error.code == DISK_FULL => {}
            Err(error) => panic!("{sql}: {error}"),
        }
        assert!(Instant::now() < end, "service does not resume: {sql}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_disk_that_the_server_fills_itself() {
    let Some(mut server) = start() else { return };
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB)").expect("made");
    let mut written = 0;
    // Random data, so that compression does not shrink it; 2 MiB each.
    while written < 400 && !is_refused(&mut client, &insert(written)) {
        written += 1;
    }
    assert!((10..400).contains(&written), "{written}");
    let count = "SELECT COUNT(*), SUM(LENGTH(b)), MAX(id) FROM t";
    let expected = format!("{written}\t{}\t{}\n", written * (2 << 20), written - 1);
    assert_eq!(rows(&mut client, count), expected, "reads go on");
    let is_over = (0..50).all(|n| is_refused(&mut client, &insert(1000 + n)));
    println!("{written} rows fit; refused for good: {is_over}");
    // Purging old binary log files frees space.
    until_accepted(&mut client, "FLUSH BINARY LOGS");
    let newest: Vec<(String, u64)> = client.query("SHOW BINARY LOGS").expect("rows");
    let purge = format!("PURGE BINARY LOGS TO '{}'", newest.last().expect("one").0);
    until_accepted(&mut client, &purge);
    until_accepted(&mut client, "INSERT INTO t VALUES (-1, 'small')");
    server.kill_and_restart();
    let sum = rows(&mut server.in_test(), "SELECT COUNT(*) FROM t WHERE id < 1000");
    assert_eq!(sum, format!("{}\n", written + 1));
}

fn insert(id: i32) -> String {
    let mut state = id as u64 + 1;
    let mut value = String::with_capacity(4 << 20);
    while value.len() < 4 << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        value += &format!("{:016x}", state ^ (state >> 29));
    }
    format!("INSERT INTO t VALUES ({id}, 0x{value})")
}

#[test]
fn all_operations_on_a_disk_that_another_process_fills() {
    let Some(mut server) = start() else { return };
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v INT, c CHAR(200))").expect("made");
    let values: Vec<String> = (0..2000).map(|n| format!("({n}, {n}, 'c')")).collect();
    client.query_drop(format!("INSERT INTO t VALUES {}", values.join(","))).expect("filled");
    let mut expected = 2000;
    for round in 0..3 {
        server.disk().fill();
        let writes = [
            format!("INSERT INTO t VALUES ({}, 1, '')", 10_000 + round),
            "UPDATE t SET v = v + 1".to_owned(),
            format!("DELETE FROM t WHERE id = {round}"),
            "CREATE TABLE other (id INT PRIMARY KEY)".to_owned(),
            "CREATE INDEX by_c ON t (c)".to_owned(),
            "TRUNCATE TABLE t".to_owned(),
            "DROP TABLE t".to_owned(),
            "CREATE USER someone".to_owned(),
            "PURGE BINARY LOGS BEFORE NOW()".to_owned(),
        ];
        // The server checks the space ten times a second.
        let end = Instant::now() + Duration::from_secs(5);
        while !is_refused(&mut client, &format!("INSERT INTO t VALUES ({expected}, 0, '')")) {
            expected += 1;
            assert!(Instant::now() < end, "a full disk is not noticed");
            std::thread::sleep(Duration::from_millis(20));
        }
        for sql in &writes {
            let is_refused = is_refused(&mut client, sql);
            assert!(is_refused || sql.starts_with("PURGE"), "{sql} was accepted");
        }
        assert_eq!(rows(&mut client, "SELECT COUNT(*) FROM t"), format!("{expected}\n"));
        // Checkpoints that cannot be written fail and are retried.
        let _ = client.query_drop("FLUSH BINARY LOGS");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(rows(&mut client, "SELECT SUM(v) > 0 FROM t"), "1\n");
        server.disk().make_room();
        until_accepted(&mut client, &format!("INSERT INTO t VALUES ({expected}, 0, '')"));
        expected += 1;
        until_accepted(&mut client, "CREATE INDEX by_c ON t (c)");
        until_accepted(&mut client, "DROP INDEX by_c ON t");
        until_accepted(&mut client, "PURGE BINARY LOGS BEFORE NOW()");
    }
    let expected = rows(&mut client, "SELECT COUNT(*), SUM(v), MAX(id) FROM t");
    let checksum = rows(&mut client, "CHECKSUM TABLE t");
    server.kill_and_restart();
    assert_eq!(rows(&mut server.in_test(), "SELECT COUNT(*), SUM(v), MAX(id) FROM t"), expected);
    assert_eq!(rows(&mut server.in_test(), "CHECKSUM TABLE t"), checksum);
    assert!(server.datadir.join("binlog.index").exists());
}

/// A slow backup pins what it copies while rows are written, and ends when space gets short. Writes go on.
#[test]
fn a_backup_ends_before_writes_are_refused() {
    let Some(server) = Cohort::on_small_disk(400, &["--skip-log-bin", "--backup-mib-per-s=1"]) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("copy");
    let backup = format!("BACKUP SERVER TO '{}'", to.display());
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB)").expect("made");
    (0..8).for_each(|n| client.query_drop(insert(n)).expect("inserted"));
    let mut backing = server.in_test();
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| backing.query_drop(&backup).expect_err("it ends early").to_string());
        wait_until("it runs", || to.exists());
        let end = Instant::now() + Duration::from_secs(60);
        for n in 0.. {
            assert!(Instant::now() < end, "it goes on without space");
            let file = server.disk().path().join(format!("other{n}"));
            let taken = Command::new("fallocate").args(["-l", "8MiB"]).arg(&file).status();
            // Where no more than this is left, writes are refused soon.
            assert!(
                taken.expect("fallocate runs").success(),
                "the backup does not see that space gets short"
            );
            for _ in 0..5 {
                client.query_drop("UPDATE t SET b = REVERSE(b) WHERE id = 0").expect("writes go on");
                std::thread::sleep(Duration::from_millis(30));
            }
            if ended.is_finished() {
                break;
            }
        }
        let why = ended.join().expect("no panic");
        assert!(why.contains("ended before writes had to be refused"), "{why}");
    });
    assert!(!to.exists(), "an incomplete directory is removed");
    client.query_drop("UPDATE t SET b = REVERSE(b)").expect("there is still space");
    let status = rows(&mut client, "SHOW STATUS LIKE 'Cohort_backup_%_pinned_bytes'");
    assert!(status.lines().all(|line| line.ends_with("\t0")), "{status}");
    for entry in std::fs::read_dir(server.disk().path()).expect("listed").flatten() {
        if entry.file_name().to_string_lossy().starts_with("other") {
            std::fs::remove_file(entry.path()).expect("removed");
        }
    }
    client.query_drop("SET GLOBAL backup_mib_per_s = 0").expect("set");
    client.query_drop(&backup).expect("there is space again");
}
