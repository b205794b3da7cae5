//! Source transactions that are larger than a replica keeps in memory.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use mysql::prelude::Queryable;
use support::{Cohort, Ends, Maria, wait_until};

const MIB: usize = 1 << 20;

fn pair(threads: &str) -> (Maria, Cohort) {
    let source = Maria::source(&["--binlog-format=ROW", "--max-allowed-packet=64M"]);
    let replica = Cohort::new(&[
        "--log-slave-updates",
        "--server-id=7",
        "--innodb-buffer-pool-size=8M",
        "--skip-slave-start",
        threads,
    ]);
    replica.follow(source.port);
    source.sql(
        "CREATE TABLE test.t (a INT PRIMARY KEY, b LONGTEXT, v INT, KEY (v)); INSERT INTO test.t VALUES (0, '', 0); \
         CREATE TABLE test.parent (a INT PRIMARY KEY) ENGINE=InnoDB; \
         CREATE TABLE test.child (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES parent (a) ON DELETE CASCADE) ENGINE=InnoDB; \
         INSERT INTO test.parent VALUES (1), (2)",
    );
    replica.wait_for(&source.gtid_end());
    (source, replica)
}

/// Returns statements that insert `count` rows of 1 MiB.
fn inserts(first: usize, count: usize) -> String {
    let row = |n| format!("INSERT INTO test.t VALUES ({n}, REPEAT('{}', {MIB}), {n});", n % 10);
    (first..first + count).map(row).collect()
}

const ROWS: &str = "SELECT COUNT(*), SUM(a), SUM(v), SUM(LENGTH(b)), SUM(CRC32(b)) FROM test.t";

fn assert_equal(source: &Maria, replica: &Cohort) {
    assert_eq!(replica.sql(ROWS), source.sql(ROWS));
    assert_eq!(
        replica.sql("SELECT SUM(v) FROM test.t FORCE INDEX (v)"),
        source.sql("SELECT SUM(v) FROM test.t")
    );
    for table in ["parent", "child"] {
        let rows = format!("SELECT GROUP_CONCAT(a ORDER BY a) FROM test.{table}");
        assert_eq!(replica.sql(&rows), source.sql(&rows), "{table}");
    }
    assert!(replica.sql("CHECK TABLE test.t, test.child").lines().all(|line| line.ends_with("OK")));
}

#[test]
fn a_large_transaction_takes_little_memory() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=2"] {
        let (source, replica) = pair(threads);
        source.sql(&format!("BEGIN; {} COMMIT", inserts(1, 20)));
        replica.wait_for(&source.gtid_end());
        let before = replica.resident_kib();
        let is_over = AtomicBool::new(false);
        let most = std::thread::scope(|scope| {
            let _ends = Ends(&is_over);
            let watch = scope.spawn(|| {
                let mut most = 0;
                while !is_over.load(Ordering::Relaxed) {
                    most = most.max(replica.resident_kib());
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                most
            });
            source.sql(&format!("BEGIN; {} COMMIT", inserts(100, 160)));
            replica.wait_for(&source.gtid_end());
            is_over.store(true, Ordering::Relaxed);
            watch.join().expect("watched")
        });
        assert!(most < before + 100 * 1024, "{threads}: {before} KiB, then {most} KiB");
        assert_equal(&source, &replica);
    }
}

#[test]
fn a_large_transaction_may_change_its_own_rows() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=2"] {
        let (source, replica) = pair(threads);
        // Each of these, at the end of the transaction, depends on changes made at its beginning.
        let ends = [
            "UPDATE test.t SET v = v + 1000",
            "DELETE FROM test.t WHERE a BETWEEN 1 AND 500",
            "UPDATE test.t SET v = 5 WHERE a = 0; INSERT INTO test.child VALUES (1); DELETE FROM test.parent WHERE a = 1",
            "DELETE FROM test.t WHERE a = 0; INSERT INTO test.t VALUES (0, 'again', 3)",
            // Logged as a statement, which is safe for these rows.
            "UPDATE test.t SET v = v + 7",
        ];
        for (n, end_of) in ends.iter().enumerate() {
            let first = 1 + 100 * n;
            let begin = "UPDATE test.t SET v = v + 1 WHERE a = 0";
            let rows = match end_of.contains("v + 7") {
                false => inserts(first, 40),
                true => inserts(first, 40).replace(", REPEAT(", ", REPEAT(LEFT(UUID(), 0), 0) || REPEAT("),
            };
            let format = if end_of.contains("v + 7") { "MIXED" } else { "ROW" };
            let modes = format!("SET SESSION binlog_format = {format}, sql_mode = 'PIPES_AS_CONCAT'");
            source.sql(&format!("{modes}; BEGIN; {begin}; {rows} {end_of}; COMMIT"));
            replica.wait_for(&source.gtid_end());
            assert_equal(&source, &replica);
        }
    }
}

#[test]
fn a_large_transaction_that_is_cut_leaves_nothing() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=2"] {
        let (source, mut replica) = pair(threads);
        let before = replica.sql(ROWS);
        let hold = |replica: &Cohort| {
            let mut holder = replica.client();
            holder.query_drop("BEGIN").expect("begins");
            holder.query_drop("SELECT * FROM test.t WHERE a = 0 FOR UPDATE").expect("locks");
            holder
        };
        let waits = |replica: &Cohort| {
            wait_until("it waits for the row", || {
                replica.sql("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").ends_with("\t1")
            });
            assert_eq!(replica.sql(ROWS), before);
        };
        let holder = hold(&replica);
        source.sql(&format!("BEGIN; {} UPDATE test.t SET v = 1 WHERE a = 0; COMMIT", inserts(1, 60)));
        // Its chunks have been applied, and it waits for its last row.
        waits(&replica);
        replica.sql("STOP SLAVE");
        assert_eq!(replica.sql(ROWS), before, "{threads}");
        assert!(replica.sql("CHECK TABLE test.t").ends_with("OK"));
        replica.sql("START SLAVE");
        waits(&replica);
        replica.kill_and_restart();
        drop(holder);
        assert_eq!(replica.sql(ROWS), before, "{threads}");
        assert!(replica.sql("CHECK TABLE test.t").ends_with("OK"));
        replica.sql("START SLAVE");
        replica.wait_for(&source.gtid_end());
        assert_equal(&source, &replica);
    }
}

#[test]
fn the_text_of_a_statement_is_logged_once() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY, b TEXT); CREATE TABLE test.u (a INT, b TEXT)");
    let rows: Vec<String> = (0..200).map(|n| format!("({n}, REPEAT('{}', 3000))", n % 10)).collect();
    let padding = "x".repeat(100_000);
    source.sql(&format!("INSERT INTO test.t VALUES /*{padding}*/ {}", rows.join(", ")));
    source.sql("INSERT INTO test.u SELECT * FROM test.t; UPDATE test.u SET a = a + 1000");
    let annotations = |list: String| list.lines().filter(|line| line.contains("Annotate_rows")).count();
    let there = annotations(source.sql("SHOW BINLOG EVENTS"));
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=2"] {
        let replica = Cohort::new(&["--log-slave-updates", "--server-id=7", threads]);
        replica.follow(source.port);
        replica.wait_for(&source.gtid_end());
        assert_eq!(annotations(replica.sql("SHOW BINLOG EVENTS")), there, "{threads}");
        let bytes = |list: String| -> u64 {
            let sizes = list.lines().filter_map(|line| line.split('\t').nth(1)?.trim().parse::<u64>().ok());
            sizes.sum()
        };
        let (here, there) = (bytes(replica.sql("SHOW BINARY LOGS")), bytes(source.sql("SHOW BINARY LOGS")));
        assert!(here < there + there / 10, "{here} bytes of {there}, {threads}");
    }
}
