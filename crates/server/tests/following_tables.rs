//! Replication of rows that are expensive to find, or large, or filtered out, or that exceed the replica's
//! disk.

mod support;

use std::time::Duration;

use mysql::prelude::Queryable;
use support::{Cohort, Maria, wait_until};

const LOGS: &str = "--log-slave-updates";

/// Returns the number of rows that a server's statements and appliers have read.
fn looked_at(server: &Cohort) -> u64 {
    let counts = server.sql("SHOW GLOBAL STATUS LIKE 'Handler_read%'");
    counts.lines().filter_map(|line| line.split('\t').nth(1)?.parse::<u64>().ok()).sum()
}

#[test]
fn rows_without_a_key_are_found_by_few_passes_for_each_statement() {
    // In events of a hundred rows. Row by row it would be a pass over 20,000 rows for each of 20,000.
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=2"]);
    replica.follow(source.port);
    source.sql(
        "USE test; CREATE TABLE test.bare (a INT, b VARCHAR(40)) CHARACTER SET utf8mb4; CREATE TABLE test.loose (a INT, b VARCHAR(40), KEY (b)) CHARACTER SET utf8mb4; \
         INSERT INTO test.bare SELECT seq, CONCAT('row ', seq) FROM seq_1_to_20000; \
         INSERT INTO test.bare SELECT seq, 'twice' FROM seq_1_to_500; INSERT INTO test.bare SELECT seq, 'twice' FROM seq_1_to_500; \
         INSERT INTO test.loose SELECT seq, seq % 4000 FROM seq_1_to_20000",
    );
    replica.wait_for(&source.gtid_end());
    let before = looked_at(&replica);
    source.sql(
        "UPDATE test.bare SET b = CONCAT(b, '!') WHERE a % 3 = 0; \
         DELETE FROM test.bare WHERE b = 'twice' LIMIT 300; DELETE FROM test.bare WHERE a > 10; \
         UPDATE test.loose SET b = b + 1 WHERE a % 7 = 0; DELETE FROM test.loose WHERE a % 5 > 0",
    );
    replica.wait_for(&source.gtid_end());
    let looks = looked_at(&replica) - before;
    for table in ["bare", "loose"] {
        let rows = format!("SELECT a, b, COUNT(*) FROM test.{table} GROUP BY a, b ORDER BY a, b");
        assert_eq!(replica.sql(&rows), source.sql(&rows), "{table}");
    }
    // Five statements, each of which reads all rows only a few times.
    assert!(looks < 5 * 3 * 21_000, "{looks}");
}

#[test]
fn rows_of_a_key_that_many_share_are_found_by_few_passes_for_each_statement() {
    // In events of some hundred rows. Row by row it would read 5,000 rows for each of 15,000.
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=2"]);
    replica.follow(source.port);
    source.sql(
        "USE test; CREATE TABLE test.few (a INT, b INT, KEY (b)); CREATE TABLE test.ranks (a INT, b INT, UNIQUE (b), KEY (a)); \
         INSERT INTO test.few SELECT seq, NULLIF(seq % 3, 0) FROM seq_1_to_30000; \
         INSERT INTO test.few SELECT 7, 1 FROM seq_1_to_5000; \
         INSERT INTO test.ranks SELECT seq % 3, NULLIF(seq, 7) FROM seq_1_to_50",
    );
    replica.wait_for(&source.gtid_end());
    let before = looked_at(&replica);
    source.sql(
        "UPDATE test.few SET a = -a, b = b + 1 WHERE a % 2; DELETE FROM test.few WHERE a = -7 LIMIT 4900; \
         UPDATE test.few SET a = a + 1 ORDER BY a DESC; \
         UPDATE test.ranks SET b = b + 1 ORDER BY b DESC; UPDATE test.ranks SET b = b - 1 ORDER BY b; \
         DELETE FROM test.ranks WHERE a = 1",
    );
    replica.wait_for(&source.gtid_end());
    let looks = looked_at(&replica) - before;
    for table in ["few", "ranks"] {
        let rows = format!("SELECT a, b, COUNT(*) FROM test.{table} GROUP BY a, b ORDER BY a, b");
        assert_eq!(replica.sql(&rows), source.sql(&rows), "{table}");
    }
    assert!(replica.sql("CHECK TABLE test.few, test.ranks").lines().all(|line| line.ends_with("OK")));
    assert!(looks < 3 * 4 * 35_000, "{looks}");
}

#[test]
fn rows_with_null_in_their_unique_key_are_found_by_few_passes_for_each_statement() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=2"]);
    replica.follow(source.port);
    source.sql(
        "USE test; CREATE TABLE test.some (a INT, b INT, c INT, UNIQUE (b), UNIQUE (c, b)); \
         INSERT INTO test.some SELECT seq % 5000, IF(seq % 4, NULL, seq), seq % 7 FROM seq_1_to_20000",
    );
    replica.wait_for(&source.gtid_end());
    let before = looked_at(&replica);
    source.sql(
        "UPDATE test.some SET a = a + 1 WHERE a % 2; UPDATE test.some SET b = b + 1 ORDER BY b DESC; \
         UPDATE test.some SET b = NULL WHERE b % 3 = 0; DELETE FROM test.some WHERE b IS NULL AND a > 100; \
         SET @n = 100000; UPDATE test.some SET b = (@n := @n + 1) WHERE b IS NULL AND a < 50",
    );
    replica.wait_for(&source.gtid_end());
    let looks = looked_at(&replica) - before;
    let rows = "SELECT a, b, c, COUNT(*) FROM test.some GROUP BY a, b, c ORDER BY a, b, c";
    assert_eq!(replica.sql(rows), source.sql(rows));
    assert!(replica.sql("CHECK TABLE test.some").lines().all(|line| line.ends_with("OK")));
    assert!(looks < 5 * 4 * 20_000, "{looks}");
    // A row that is updated twice in one event, and a missing row.
    source.sql(
        "DELETE FROM test.some WHERE b IS NULL; INSERT INTO test.some VALUES (1, NULL, 1), (2, NULL, 1)",
    );
    source.sql("UPDATE test.some SET a = a + 1 WHERE b IS NULL ORDER BY a DESC");
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql(rows), source.sql(rows));
    replica.sql("SET sql_log_bin = 0; DELETE FROM test.some WHERE a = 3 AND b IS NULL");
    source.sql("DELETE FROM test.some WHERE b IS NULL");
    wait_until("it goes on", || replica.replica_field("Last_SQL_Errno") == "1032");
    replica.sql("SET sql_log_bin = 0; INSERT INTO test.some VALUES (3, NULL, 1); START SLAVE");
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql(rows), source.sql(rows));
}

#[test]
fn events_of_more_than_sixteen_mebibytes_arrive() {
    let large = ["--binlog-format=ROW", "--max-allowed-packet=256M", "--binlog-row-event-max-size=268435456"];
    for compress in ["--log-bin-compress=0", "--log-bin-compress=1"] {
        let source = Maria::source(&[&large[..], &[compress]].concat());
        let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=2"]);
        replica.follow(source.port);
        source.sql(
            "CREATE TABLE test.t (a INT PRIMARY KEY, b LONGBLOB); \
             INSERT INTO test.t VALUES (1, REPEAT(MD5(1), 16777216 / 32)), (2, REPEAT(MD5(2), 1000)); \
             INSERT INTO test.t SELECT a + 2, CONCAT(b, b) FROM test.t; UPDATE test.t SET b = REVERSE(b)",
        );
        replica.wait_for(&source.gtid_end());
        let rows = "SELECT a, LENGTH(b), MD5(b) FROM test.t ORDER BY a";
        assert_eq!(replica.sql(rows), source.sql(rows), "{compress}");
        // An event larger than the replica's limit stops its receiver.
        replica.sql("STOP SLAVE; SET GLOBAL slave_max_allowed_packet = 16777216; START SLAVE");
        source.sql("INSERT INTO test.t SELECT 9, b FROM test.t WHERE a = 3");
        if compress.ends_with('0') {
            wait_until("it stops", || replica.replica_field("Last_IO_Errno") == "1153");
            replica.sql("STOP SLAVE; SET GLOBAL slave_max_allowed_packet = 1073741824; START SLAVE");
        }
        replica.wait_for(&source.gtid_end());
        assert_eq!(replica.sql(rows), source.sql(rows), "{compress}");
    }
}

#[test]
fn a_schema_may_have_another_name_here() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=2"] {
        let source = Maria::source(&["--binlog-format=MIXED"]);
        let rules = ["--replicate-rewrite-db=there->here", "--replicate-ignore-table=here.hidden"];
        let replica = Cohort::new(&[&rules[..], &[LOGS, "--server-id=7", threads]].concat());
        replica.sql("SET sql_log_bin = 0; CREATE DATABASE here CHARACTER SET utf8mb4");
        replica.follow(source.port);
        source.sql(
            "CREATE DATABASE there; USE there; CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40)); \
             CREATE TABLE hidden (a INT); INSERT INTO hidden VALUES (1); INSERT INTO t VALUES (1, 'x'), (2, 'y'); \
             INSERT INTO t VALUES (3, UUID()); UPDATE t SET b = 'z' WHERE a = 2; CREATE TABLE test.as_it_is (a INT)",
        );
        replica.wait_for(&source.gtid_end());
        assert_eq!(
            replica.sql("SELECT * FROM here.t ORDER BY a"),
            source.sql("SELECT * FROM there.t ORDER BY a"),
            "{threads}"
        );
        assert_eq!(replica.sql("SHOW TABLES IN here"), "t");
        assert_eq!(replica.sql("SHOW TABLES IN there"), "");
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.as_it_is"), "0");
        assert_eq!(replica.sql("SELECT @@gtid_binlog_pos"), source.gtid_end());
    }
}

#[test]
fn skipped_errors_stop_no_applier_and_others_do() {
    let source = Maria::source(&["--binlog-format=MIXED"]);
    let options = [LOGS, "--server-id=7", "--slave-skip-errors=1062,1032,ddl_exist_errors"];
    let replica = Cohort::new(&[&options[..], &["--slave-parallel-threads=2"]].concat());
    replica.follow(source.port);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY, b VARCHAR(40) CHARACTER SET utf8mb4)");
    replica.wait_for(&source.gtid_end());
    replica.sql(
        "SET sql_log_bin = 0; INSERT INTO test.t VALUES (5, 'own'), (6, 'own'); CREATE TABLE test.mine (a INT); \
         CREATE TABLE test.gone (a INT); DROP TABLE test.gone",
    );
    source.sql(
        "INSERT INTO test.t VALUES (5, UUID()); INSERT INTO test.t VALUES (7, 'x'), (6, UUID()), (8, 'y'); \
         CREATE TABLE test.mine (a INT); INSERT INTO test.t VALUES (6 + 4, 'z')",
    );
    replica.wait_for(&source.gtid_end());
    // The existing table is replaced.
    assert_eq!(replica.sql("SHOW GLOBAL STATUS LIKE 'Slave_skipped_errors'"), "Slave_skipped_errors\t2");
    // As in MariaDB, a skipped event ends at the row that failed.
    assert_eq!(replica.sql("SELECT b FROM test.t WHERE a < 7 ORDER BY a"), "own\nown");
    assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t WHERE a = 10"), "1");
    replica.sql("SET sql_log_bin = 0; DELETE FROM test.t WHERE a = 10");
    source.sql("SET SESSION binlog_format = ROW; DELETE FROM test.t WHERE a = 10; INSERT INTO test.t VALUES (11, '')");
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t WHERE a = 11"), "1");
    replica
        .sql("SET sql_log_bin = 0; ALTER TABLE test.t DROP COLUMN b, ADD b VARCHAR(2) CHARACTER SET utf8mb4");
    source.sql("SET SESSION binlog_format = ROW; INSERT INTO test.t VALUES (12, 'xyz')");
    wait_until("it stops", || replica.replica_field("Last_SQL_Errno") == "1677");
}

#[test]
fn an_applier_stops_at_the_requested_position() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=3"] {
        let source = Maria::source(&["--binlog-format=ROW"]);
        // Groups stay open, so that a check that comes too early finds nothing.
        let slow = ["--binlog-commit-wait-count=1000", "--binlog-commit-wait-usec=400000"];
        let replica = Cohort::new(&[&[LOGS, "--server-id=7", threads], &slow[..]].concat());
        replica.follow(source.port);
        source.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
        replica.wait_for(&source.gtid_end());
        replica.sql("STOP SLAVE SQL_THREAD");
        let mut places = Vec::new();
        for n in 0..8 {
            source.sql(&format!("INSERT INTO test.t VALUES ({n})"));
            let status = source.sql("SHOW MASTER STATUS");
            let mut words = status.split('\t').map(str::to_owned);
            places.push((
                words.next().expect("a file"),
                words.next().expect("a position"),
                source.gtid_end(),
            ));
        }
        wait_until("it is not received", || replica.replica_field("Gtid_IO_Pos") == source.gtid_end());
        let stopped = |count: &str| {
            wait_until("it does not stop", || replica.replica_field("Slave_SQL_Running") == "No");
            assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t"), count, "{threads}");
        };
        let (file, position, _) = &places[1];
        replica.sql(&format!(
            "START SLAVE SQL_THREAD UNTIL master_log_file='{file}', master_log_pos={position}"
        ));
        stopped("2");
        replica.sql(&format!("START SLAVE SQL_THREAD UNTIL master_gtid_pos='{}'", places[4].2));
        assert!(["Gtid", "None"].contains(&replica.replica_field("Until_Condition").as_str()));
        stopped("5");
        // The position of the next group's end in the relay log, as listed by SHOW RELAYLOG EVENTS.
        let (relay, from) = (replica.replica_field("Relay_Log_File"), replica.replica_field("Relay_Log_Pos"));
        let events = replica.sql(&format!("SHOW RELAYLOG EVENTS IN '{relay}' FROM {from}"));
        let gtids: Vec<&str> = events.lines().filter(|line| line.contains("\tGtid\t")).collect();
        let next = gtids[1].split('\t').nth(1).expect("a position");
        replica.sql(&format!("START SLAVE SQL_THREAD UNTIL relay_log_file='{relay}', relay_log_pos={next}"));
        stopped("6");
        replica.sql("SET GLOBAL sql_slave_skip_counter = 1; START SLAVE SQL_THREAD");
        replica.wait_for(&source.gtid_end());
        assert_eq!(
            replica.sql("SELECT GROUP_CONCAT(a ORDER BY a) FROM test.t"),
            "0,1,2,3,4,5,7",
            "{threads}"
        );
    }
}

#[test]
fn a_full_disk_makes_a_replica_wait_until_there_is_room() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let options = [LOGS, "--server-id=7", "--slave-parallel-threads=2", "--max-relay-log-size=1M"];
    let Some(mut replica) = Cohort::on_small_disk(400, &options) else { return };
    replica.follow(source.port);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY, b LONGBLOB)");
    replica.wait_for(&source.gtid_end());
    replica.disk().fill();
    let rows: Vec<String> =
        (0..40).map(|n| format!("INSERT INTO test.t VALUES ({n}, REPEAT('{}', 200000))", n % 10)).collect();
    source.sql(&rows.join("; "));
    let states =
        || [replica.replica_field("Slave_IO_State"), replica.replica_field("Slave_SQL_Running_State")];
    wait_until("it waits", || states().iter().any(|state| state == "Waiting for someone to free space"));
    std::thread::sleep(Duration::from_secs(2));
    let status = replica.replica_status();
    assert!(
        status.contains("Slave_IO_Running: Yes") && status.contains("Slave_SQL_Running: Yes"),
        "{status}"
    );
    let mut client = replica.client();
    let count: Option<u64> = client.query_first("SELECT COUNT(*) FROM test.t").expect("reads go on");
    assert!(count.is_some_and(|count| count < 40), "{count:?}");
    drop(client);
    // A crash changes nothing about it.
    replica.disk().make_room();
    replica.kill_and_restart();
    replica.sql("START SLAVE");
    replica.wait_for(&source.gtid_end());
    let rows = "SELECT COUNT(*), SUM(a), SUM(CRC32(b)) FROM test.t";
    assert_eq!(replica.sql(rows), source.sql(rows));
}

/// Makes changes to rows whose only key is a long unique one.
const LONG_KEYS: &str = "USE test;
    CREATE TABLE docs (body TEXT, n INT, UNIQUE (body)) CHARACTER SET utf8mb4;
    INSERT INTO docs SELECT CONCAT(REPEAT('x', 2000), seq), seq FROM seq_1_to_400;
    INSERT INTO docs VALUES (NULL, 500), (NULL, 501);
    UPDATE docs SET n = n + 1 WHERE n % 3 = 0;
    UPDATE docs SET body = CONCAT(body, 'y') WHERE n % 5 = 0;
    UPDATE docs SET body = CONCAT(body, body);
    UPDATE docs SET n = 7 WHERE body IS NULL;
    REPLACE INTO docs SELECT UPPER(body), n + 1000 FROM docs WHERE n BETWEEN 20 AND 30;
    INSERT INTO docs SELECT body, 0 FROM docs WHERE n BETWEEN 40 AND 50 ON DUPLICATE KEY UPDATE n = VALUES(n) + 2000;
    INSERT IGNORE INTO docs SELECT body, 0 FROM docs WHERE n < 20;
    DELETE FROM docs WHERE n BETWEEN 60 AND 90;
    CREATE TABLE later (id INT PRIMARY KEY, a VARCHAR(3000), b BLOB) CHARACTER SET utf8mb4;
    INSERT INTO later SELECT seq, REPEAT(seq, 300), REPEAT(seq, 5000) FROM seq_1_to_50;
    ALTER TABLE later ADD UNIQUE (a, b), ADD UNIQUE (b);
    UPDATE later SET a = b WHERE id < 10 AND LENGTH(b) < 3000;
    ALTER TABLE later DROP KEY b";

#[test]
fn rows_with_long_unique_keys_go_there_and_back() {
    let later =
        "SELECT SUM(CRC32(a)), SUM(CRC32(b)), COUNT(*) FROM test.later; CHECK TABLE test.later EXTENDED";
    let looks = "SET group_concat_max_len = 100000000; USE test; \
         SELECT CRC32(GROUP_CONCAT(n, body ORDER BY n, body)), COUNT(*) FROM docs; \
         SELECT CRC32(GROUP_CONCAT(id, a, b ORDER BY id)) FROM later; SHOW CREATE TABLE later; \
         CHECK TABLE docs, later EXTENDED";
    for (format, threads) in [("ROW", 0), ("ROW", 3), ("MIXED", 0)] {
        let (format, threads) =
            (format!("--binlog-format={format}"), format!("--slave-parallel-threads={threads}"));
        let maria = Maria::source(&[&format]);
        let mut cohort = Cohort::new(&["--log-slave-updates", "--server-id=7", &threads, &format]);
        // MariaDB logs its hashes as a column, and finds no row without a primary key that lacks it.
        let last = Maria::new(&["--server-id=9", "--replicate-ignore-table=test.docs"]);
        maria.sql("CREATE DATABASE IF NOT EXISTS test");
        cohort.follow(maria.port);
        last.follow(cohort.port);
        maria.sql(LONG_KEYS);
        let end = maria.gtid_end();
        cohort.wait_for(&end);
        last.wait_for(&end);
        assert_eq!(cohort.sql(looks), maria.sql(looks));
        assert_eq!(last.sql(later), maria.sql(later));
        // The index entries outlive a crash.
        cohort.sql("STOP SLAVE");
        cohort.kill_and_restart();
        assert_eq!(cohort.sql(looks), maria.sql(looks));
        let (done, error) =
            cohort.tool("mariadb", &["test", "-e", "INSERT INTO docs SELECT LOWER(body), 1 FROM docs"]);
        assert!(!done && error.contains("ERROR 1062"), "{error}");
        // A dump can be loaded by MariaDB.
        let (done, dump) = cohort.tool("mariadb-dump", &["test"]);
        assert!(done && dump.contains("USING HASH"));
        maria.sql("CREATE DATABASE back");
        maria.feed(format!("USE back; {dump}").as_bytes());
        let back = maria.sql(&looks.replace("USE test", "USE back"));
        assert_eq!(back.replace("back.", "test."), cohort.sql(looks));
    }
}
