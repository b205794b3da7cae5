//! Transactions whose redo is ingested as files, with crashes before and after they are durable and
//! published.

mod support;

use mysql::Conn;
use mysql::prelude::Queryable;

use support::Cohort;

const ROWS: u64 = 24;
const ROW_BYTES: usize = 1 << 20;

fn rows(client: &mut Conn) -> (u64, u64, u64) {
    let found =
        client.query_first("SELECT COUNT(*), COALESCE(SUM(v), 0), COALESCE(SUM(LENGTH(b)), 0) FROM test.t");
    found.expect("answers").expect("one row")
}

/// Inserts 24 MiB in one transaction. Returns the outcome of the commit.
fn insert(client: &mut Conn, first: u64) -> mysql::Result<()> {
    client.query_drop("BEGIN")?;
    for n in first..first + ROWS {
        let bytes: Vec<u8> = (0..ROW_BYTES).map(|at| ((at as u64 * (n + 7)) >> 3) as u8).collect();
        client.exec_drop("INSERT INTO test.t VALUES (?, ?, 1)", (n, bytes))?;
    }
    client.query_drop("COMMIT")
}

#[test]
fn a_crash_leaves_all_of_a_large_transaction_or_nothing() {
    let scratch = tempfile::tempdir().expect("temporary directory");
    let server = Cohort::start(scratch.path(), "data", &[]);
    let mut client = server.client();
    client
        .query_drop("CREATE TABLE test.t (id INT PRIMARY KEY, b LONGBLOB, v INT, KEY (v)) ENGINE=ROCKSDB")
        .expect("creates");
    // Small rows between and after the large ones, so that key ranges overlap in the memtable.
    client.query_drop("INSERT INTO test.t VALUES (0, '', 0), (1000, '', 0)").expect("inserts");
    insert(&mut client, 1).expect("commits");
    assert_eq!(rows(&mut client), (2 + ROWS, ROWS, ROWS * ROW_BYTES as u64));
    client.query_drop("UPDATE test.t SET b = CONCAT(b, 'x'), v = 2 WHERE v = 1").expect("updates");
    assert_eq!(rows(&mut client), (2 + ROWS, 2 * ROWS, ROWS * (ROW_BYTES as u64 + 1)));
    drop((client, server));

    let mut expected = (2 + ROWS, 2 * ROWS, ROWS * (ROW_BYTES as u64 + 1));
    for (round, point) in ["before:flush:1", "after:flush:1", "before:publish:1"].iter().enumerate() {
        let mut server = Cohort::start_failing(scratch.path(), "data", &[], point);
        let mut client = server.client();
        assert_eq!(rows(&mut client), expected, "before {point}");
        insert(&mut client, 100 * (round as u64 + 1)).expect_err("the server ends before it can answer");
        assert_eq!(server.exit_code(), None, "{point}: aborted");
        if *point != "before:flush:1" {
            expected = (expected.0 + ROWS, expected.1 + ROWS, expected.2 + ROWS * ROW_BYTES as u64);
        }
    }
    let server = Cohort::start(scratch.path(), "data", &[]);
    let mut client = server.client();
    assert_eq!(rows(&mut client), expected);
    client.query_drop("DELETE FROM test.t WHERE v > 0").expect("deletes");
    assert_eq!(rows(&mut client).0, 2);
}

/// A large transaction is written to its binlog file in the background, but statements that report the file
/// complete it first, so that a copy of the file is complete.
#[test]
fn a_listed_binary_log_file_is_complete() {
    let scratch = tempfile::tempdir().expect("temporary directory");
    let server = Cohort::start(scratch.path(), "data", &[]);
    let mut client = server.client();
    client.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY, b LONGBLOB, v INT)").expect("creates");
    let file_bytes =
        |name: &str| std::fs::metadata(server.datadir.join(name)).expect("the file is there").len();
    let large = 2 * ROWS * ROW_BYTES as u64;
    insert(&mut client, 1).expect("commits");
    insert(&mut client, 1 + ROWS).expect("commits");
    let status = client.query_first("SHOW MASTER STATUS").expect("answers");
    let (name, position, _, _): (String, u64, String, String) = status.expect("one row");
    assert!(position > large, "two large transactions");
    assert!(file_bytes(&name) >= position, "{} of {position} bytes", file_bytes(&name));
    insert(&mut client, 1 + 2 * ROWS).expect("commits");
    client.query_drop("FLUSH BINARY LOGS").expect("flushes");
    let ended = file_bytes(&name);
    let listed: Vec<(String, u64)> = client.query("SHOW BINARY LOGS").expect("rows");
    assert!(listed.contains(&(name.clone(), ended)), "{name} had {ended} bytes: {listed:?}");
}
