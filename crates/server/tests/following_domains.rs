//! A source's domains are applied independently: a wait in one domain delays no other.

mod support;

use mysql::prelude::Queryable;
use support::{Cohort, Maria, wait_until};

const OPTIONS: [&str; 3] = ["--log-slave-updates", "--server-id=7", "--slave-parallel-threads=3"];

/// Inserts rows in a 3 MiB transaction of domain 1, which changes the row with the key 0 last.
fn write_large(source: &Maria, first: usize) {
    let rows: Vec<String> = (first..first + 30)
        .map(|n| format!("INSERT INTO test.large VALUES ({n}, REPEAT('x', 100000))"))
        .collect();
    source.sql(&format!(
        "SET gtid_domain_id = 1; BEGIN; {}; UPDATE test.large SET b = '{first}' WHERE a = 0; COMMIT",
        rows.join("; ")
    ));
}

fn write_small(source: &Maria, first: usize) {
    let rows: Vec<String> =
        (first..first + 40).map(|n| format!("INSERT INTO test.small VALUES ({n})")).collect();
    source.sql(&format!("SET gtid_domain_id = 2; {}", rows.join("; ")));
}

fn count(replica: &Cohort, table: &str) -> String {
    replica.sql(&format!("SELECT COUNT(*) FROM test.{table}"))
}

/// Creates the tables; a domain waits for what it needs of another domain.
fn make(source: &Maria, replica: &Cohort) {
    source.sql(
        "CREATE TABLE test.large (a INT PRIMARY KEY, b LONGTEXT); INSERT INTO test.large VALUES (0, ''); \
         CREATE TABLE test.small (a INT PRIMARY KEY)",
    );
    replica.wait_for(&source.gtid_end());
    source.sql(
        "SET gtid_domain_id = 2; INSERT INTO test.small VALUES (0); \
         SET gtid_domain_id = 1; INSERT INTO test.large VALUES (-1, '')",
    );
    replica.wait_for(&source.gtid_end());
}

#[test]
fn a_large_transaction_that_waits_holds_up_no_other_domain_and_nothing_is_applied_twice() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let mut replica = Cohort::new(&OPTIONS);
    replica.follow(source.port);
    make(&source, &replica);
    for round in 0..3 {
        let mut holder = replica.client();
        holder.query_drop("BEGIN").expect("begins");
        holder.query_drop("SELECT * FROM test.large WHERE a = 0 FOR UPDATE").expect("locks");
        let executed = replica.replica_field("Exec_Master_Log_Pos");
        write_large(&source, 1 + 100 * round);
        write_small(&source, 1 + 100 * round);
        let small = (1 + 40 * (round + 1)).to_string();
        wait_until("the other domain goes on", || count(&replica, "small") == small);
        assert_eq!(count(&replica, "large"), (2 + 30 * round).to_string());
        // The file position is before the unapplied transaction; the GTID position has both domains.
        assert_eq!(replica.replica_field("Exec_Master_Log_Pos"), executed);
        let position = replica.sql("SELECT @@gtid_slave_pos");
        let domain_2 = source.gtid_end().split(',').find(|gtid| gtid.starts_with("2-")).map(str::to_owned);
        assert!(position.contains(&domain_2.expect("written")), "{position}");
        // Transactions that are read again are recognized as applied.
        match round {
            0 => drop(replica.sql("STOP SLAVE SQL_THREAD; START SLAVE SQL_THREAD")),
            1 => drop(replica.sql("STOP SLAVE; START SLAVE")),
            _ => {
                replica.kill_and_restart();
                replica.sql("START SLAVE");
            }
        }
        drop(holder);
        replica.wait_for(&source.gtid_end());
        assert_eq!(count(&replica, "small"), small);
        assert_eq!(
            replica.sql("SELECT COUNT(*), SUM(CRC32(b)) FROM test.large"),
            source.sql("SELECT COUNT(*), SUM(CRC32(b)) FROM test.large")
        );
    }
    // After the reconnect, the source skipped what the replica had; from there on both positions advance
    // together.
    write_small(&source, 1000);
    wait_until("the place comes on", || {
        replica.replica_field("Exec_Master_Log_Pos")
            == source.sql("SHOW MASTER STATUS").split('\t').nth(1).unwrap_or("")
    });
}

#[test]
fn a_definition_that_waits_holds_up_its_own_domain_alone() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&OPTIONS);
    replica.follow(source.port);
    make(&source, &replica);
    let mut holder = replica.client();
    holder.query_drop("BEGIN").expect("begins");
    holder.query_drop("SELECT * FROM test.large").expect("holds the table");
    source.sql("SET gtid_domain_id = 1; ALTER TABLE test.large ADD c INT NOT NULL DEFAULT 5");
    source.sql("SET gtid_domain_id = 1; INSERT INTO test.large VALUES (5, 'y', 6); INSERT INTO test.large VALUES (6, 'z', 7)");
    write_small(&source, 1);
    wait_until("the other domain goes on", || count(&replica, "small") == "41");
    // A session that uses the table waits after the DDL statement.
    let position = replica.sql("SELECT @@gtid_slave_pos");
    assert!(position.contains("1-2-1,"), "{position}");
    holder.query_drop("COMMIT").expect("lets go");
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql("SELECT SUM(c) FROM test.large"), "23");
}

#[test]
fn one_domain_takes_no_more_workers_than_it_may() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[&OPTIONS[..], &["--slave-domain-parallel-threads=1"]].concat());
    replica.follow(source.port);
    make(&source, &replica);
    let mut holder = replica.client();
    holder.query_drop("BEGIN").expect("begins");
    holder.query_drop("SELECT * FROM test.small FOR UPDATE").expect("locks");
    holder.query_drop("INSERT INTO test.small VALUES (1), (2), (3), (4)").expect("locks");
    let keys: Vec<String> = (1..5).map(|n| format!("INSERT INTO test.small VALUES ({n})")).collect();
    source.sql(&format!("SET gtid_domain_id = 2; {}", keys.join("; ")));
    let busy = || replica.sql("SHOW GLOBAL STATUS LIKE 'Cohort_replica_busy_workers'");
    wait_until("a worker waits", || busy().ends_with("\t1"));
    write_large(&source, 1);
    wait_until("the other domain goes on", || count(&replica, "large") == "32");
    assert!(busy().ends_with("\t1"), "{}", busy());
    holder.query_drop("ROLLBACK").expect("lets go");
    replica.wait_for(&source.gtid_end());
    assert_eq!(count(&replica, "small"), "5");
}

#[test]
fn waiting_groups_of_all_domains_are_bounded() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&OPTIONS);
    replica.follow(source.port);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY, b TEXT)");
    replica.wait_for(&source.gtid_end());
    let mut holder = replica.client();
    holder.query_drop("BEGIN").expect("begins");
    holder
        .query_drop("INSERT INTO test.t VALUES (10, ''), (20, ''), (30, ''), (40, ''), (50, '')")
        .expect("locks");
    for n in 0..120 {
        let row = |domain: usize| {
            let key = 10 * domain + 1000 * n;
            format!("SET gtid_domain_id = {domain}; INSERT INTO test.t VALUES ({key}, REPEAT('x', 3000))")
        };
        source.sql(&(1..6).map(row).collect::<Vec<_>>().join("; "));
    }
    let queued = || -> u64 {
        let row = replica.sql("SHOW GLOBAL STATUS LIKE 'Cohort_replica_queued_bytes'");
        row.split('\t').nth(1).and_then(|bytes| bytes.parse().ok()).expect("a number")
    };
    // 128 KiB for each of the three workers.
    wait_until("the queue is not full", || queued() > 300_000);
    for _ in 0..10 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(queued() <= 3 * 131_072, "{}", queued());
    }
    holder.query_drop("ROLLBACK").expect("lets go");
    replica.wait_for(&source.gtid_end());
    assert_eq!(count(&replica, "t"), "600");
    wait_until("something is left in the queue", || queued() == 0);
}
