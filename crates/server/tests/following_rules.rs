//! Replica options, compared with a real MariaDB: delay, tables that differ, strict GTIDs, replication rings,
//! two-phase ALTER, and status output.

mod support;

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use support::{Cohort, Maria, wait_until};

const LOGS: &str = "--log-slave-updates";

fn wait_for_error(replica: &Cohort, number: &str) -> String {
    wait_until("it goes on", || replica.replica_field("Last_SQL_Errno") == number);
    assert_eq!(replica.replica_field("Slave_SQL_Running"), "No");
    replica.replica_field("Last_SQL_Error")
}

#[test]
fn a_delayed_replica_waits_shows_it_and_stops_at_once() {
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=4"] {
        let source = Maria::source(&["--binlog-format=ROW"]);
        let replica = Cohort::new(&[LOGS, "--server-id=7", threads]);
        replica.follow(source.port);
        source.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
        replica.wait_for(&source.gtid_end());
        replica.sql("STOP SLAVE; CHANGE MASTER TO master_delay=3; START SLAVE");
        assert_eq!(replica.replica_field("SQL_Delay"), "3");
        let began = Instant::now();
        source.sql("INSERT INTO test.t VALUES (1); INSERT INTO test.t VALUES (2)");
        let delaying = "Waiting until MASTER_DELAY seconds after master executed event";
        wait_until("it does not wait", || replica.replica_field("Slave_SQL_State") == delaying);
        assert_ne!(replica.replica_field("SQL_Remaining_Delay"), "NULL");
        replica.wait_for(&source.gtid_end());
        // Timestamps have no fractions.
        assert!(began.elapsed() > Duration::from_millis(1900), "{:?}", began.elapsed());
        replica.sql("STOP SLAVE; CHANGE MASTER TO master_delay=3600; START SLAVE");
        source.sql("INSERT INTO test.t VALUES (3)");
        wait_until("it does not wait", || replica.replica_field("Slave_SQL_State") == delaying);
        let began = Instant::now();
        replica.sql("STOP SLAVE");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        replica.sql("CHANGE MASTER TO master_delay=0; START SLAVE");
        replica.wait_for(&source.gtid_end());
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t"), "3");
    }
}

#[test]
fn a_delayed_replica_applies_due_groups_in_parallel() {
    let source = Cohort::new(&[]);
    let options = [LOGS, "--server-id=7", "--slave-parallel-threads=4", "--slave-parallel-mode=aggressive"];
    let replica = Cohort::new(&options);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY, b INT); INSERT INTO test.t VALUES (1, 0), (2, 0)");
    replica.follow(source.port);
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    replica.sql("STOP SLAVE; CHANGE MASTER TO master_delay=1");
    // The first transaction waits for a local session.
    let mut holder = replica.client();
    holder.query_drop("BEGIN").expect("begun");
    holder.query_drop("UPDATE test.t SET b = 1 WHERE a = 1").expect("locked");
    source.sql("UPDATE test.t SET b = 2 WHERE a = 1");
    source.sql("UPDATE test.t SET b = 2 WHERE a = 2");
    std::thread::sleep(Duration::from_millis(2100));
    replica.sql("START SLAVE");
    wait_until("the second one waits for the first", || {
        replica.sql("SHOW STATUS LIKE 'Cohort_replica_queued_transactions'").ends_with("\t2")
    });
    holder.query_drop("ROLLBACK").expect("ended");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!(replica.sql("SELECT SUM(b) FROM test.t"), "4");
}

#[test]
fn ages_are_distinct_by_the_clock_of_the_source() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    source.sql(
        "CREATE USER repl@localhost IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO repl@localhost; \
         CREATE TABLE test.t (a INT PRIMARY KEY)",
    );
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    // Shifts the source's clock, as seen by its replica: the account's sessions start with another time.
    let follow = |clock: &str, delay: u32| {
        source.sql(&format!("SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() {clock}'"));
        replica.sql(&format!(
            "STOP SLAVE; CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='repl', \
             master_password='secret', master_connect_retry=1, master_use_gtid=slave_pos, master_delay={delay}; \
             START SLAVE",
            source.port
        ));
    };
    follow("+ 1000", 0);
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.replica_field("Seconds_Behind_Master"), "0");
    let mut holder = replica.client();
    holder.query_drop("LOCK TABLES test.t READ").expect("locked");
    source.sql("INSERT INTO test.t VALUES (1)");
    let lag = || replica.replica_field("Seconds_Behind_Master").parse::<u64>().unwrap_or(0);
    wait_until("the clocks are taken for equal", || (1000..1100).contains(&lag()));
    drop(holder);
    replica.wait_for(&source.gtid_end());
    // A delayed transaction is due according to that clock.
    follow("+ 1000", 500);
    source.sql("INSERT INTO test.t VALUES (2)");
    replica.wait_for(&source.gtid_end());
    follow("- 1000", 500);
    source.sql("INSERT INTO test.t VALUES (3)");
    let delay = || replica.replica_field("SQL_Remaining_Delay").parse::<u64>().unwrap_or(0);
    wait_until("the clocks are taken for equal", || (1400..=1500).contains(&delay()));
}

/// Writes rows in three domains in turn, and returns the position after each.
fn write_three_domains(source: &dyn Fn(&str) -> String, from: u32) {
    let rows = (from..from + 30).map(|n| {
        let domain = n % 3;
        format!("SET gtid_domain_id = {domain}; INSERT INTO test.t VALUES ({n}, {domain})")
    });
    source(&rows.collect::<Vec<_>>().join("; "));
}

fn both_stop_at_gtids(source: &dyn Fn(&str) -> String, port: u16) {
    let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=3"]);
    replica.follow(port);
    source("CREATE TABLE test.t (a INT PRIMARY KEY, d INT)");
    for (round, mode) in ["none", "minimal", "conservative", "optimistic", "aggressive"].iter().enumerate() {
        replica.wait_for(&source("SELECT @@gtid_binlog_pos"));
        replica.sql(&format!("STOP SLAVE; SET GLOBAL slave_parallel_mode = '{mode}'"));
        let base: Vec<String> = source("SELECT @@gtid_binlog_pos").split(',').map(str::to_owned).collect();
        let gtid_after = |domain: usize, more: u64| {
            let found = base.iter().find(|gtid| gtid.starts_with(&format!("{domain}-")));
            let number =
                found.map_or(0, |gtid| gtid.rsplit('-').next().expect("a number").parse().expect("one"));
            format!("{domain}-{}-{}", source("SELECT @@server_id"), number + more)
        };
        write_three_domains(source, 1000 * round as u32);
        let rows = || {
            let first = 1000 * round;
            let counts = format!(
                "SELECT COALESCE(GROUP_CONCAT(n ORDER BY d), '') FROM (SELECT d, COUNT(*) n FROM test.t WHERE a >= {first} GROUP BY d) c"
            );
            replica.sql(&counts)
        };
        let stops = |until: &str, expected: &str| {
            replica.sql(&format!("START SLAVE UNTIL master_gtid_pos='{until}'"));
            for thread in ["Slave_IO_Running", "Slave_SQL_Running"] {
                wait_until(&format!("{mode}, {until}: {thread}"), || replica.replica_field(thread) == "No");
            }
            assert_eq!(rows(), expected, "{mode}, {until}");
            assert_eq!(replica.replica_field("Last_SQL_Errno"), "0");
            assert_eq!(replica.replica_field("Last_IO_Errno"), "0");
            assert_eq!(replica.replica_field("Until_Condition"), "Gtid");
        };
        // Domains that the position does not name stop at once.
        stops("", "");
        stops(&gtid_after(0, 3), "3");
        let two = format!("{},{}", gtid_after(0, 5), gtid_after(1, 2));
        stops(&two, "5,2");
        stops(&two, "5,2");
        stops(&format!("{},{}", gtid_after(1, 6), gtid_after(2, 1)), "5,6,1");
        replica.sql("START SLAVE");
        replica.wait_for(&source("SELECT @@gtid_binlog_pos"));
        assert_eq!(rows(), "10,10,10", "{mode}");
    }
}

#[test]
fn both_threads_stop_at_a_gtid_position_in_every_mode() {
    let maria = Maria::source(&["--binlog-format=ROW"]);
    both_stop_at_gtids(&|sql| maria.sql(sql), maria.port);
    let cohort = Cohort::new(&[]);
    both_stop_at_gtids(&|sql| cohort.sql(sql), cohort.port);
}

#[test]
fn tables_with_other_columns_get_what_they_can_hold() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    replica.follow(source.port);
    source.sql(
        "CREATE TABLE test.more (a INT PRIMARY KEY, b INT); CREATE TABLE test.fewer LIKE test.more; \
         CREATE TABLE test.wider LIKE test.more; CREATE TABLE test.narrower LIKE test.more; \
         CREATE TABLE test.kinds (a INT PRIMARY KEY, f DOUBLE, g FLOAT, d DECIMAL(10,4), t DATETIME(6), v VARCHAR(20) CHARACTER SET utf8mb4, \
         b BLOB, e ENUM('x','y'))",
    );
    replica.wait_for(&source.gtid_end());
    replica.sql(
        "SET sql_log_bin = 0; ALTER TABLE test.more ADD c VARCHAR(10) NOT NULL DEFAULT 'x', ADD d INT; \
         ALTER TABLE test.fewer DROP COLUMN b; ALTER TABLE test.wider MODIFY b BIGINT; \
         ALTER TABLE test.narrower MODIFY b TINYINT; \
         ALTER TABLE test.kinds MODIFY f FLOAT, MODIFY g DOUBLE, MODIFY d DECIMAL(4,2), MODIFY t DATETIME(2), \
         MODIFY v VARCHAR(3) CHARACTER SET utf8mb4, MODIFY b TINYBLOB",
    );
    for table in ["more", "fewer"] {
        source.sql(&format!(
            "INSERT INTO test.{table} VALUES (1, 10), (2, 20), (3, NULL); UPDATE test.{table} SET b = b + 1; \
             DELETE FROM test.{table} WHERE a = 2"
        ));
    }
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql("SELECT * FROM test.more ORDER BY a"), "1\t11\tx\tNULL\n3\tNULL\tx\tNULL");
    assert_eq!(replica.sql("SELECT * FROM test.fewer ORDER BY a"), "1\n3");
    source.sql("INSERT INTO test.wider VALUES (1, 2147483647)");
    let text = wait_for_error(&replica, "1677");
    assert!(
        text.contains(
            "Column 1 of table 'test.wider' cannot be converted from type 'int' to type 'bigint(20)'"
        ),
        "{text}"
    );
    replica.sql("SET GLOBAL slave_type_conversions = 'ALL_NON_LOSSY'; START SLAVE");
    replica.wait_for(&source.gtid_end());
    source.sql("INSERT INTO test.narrower VALUES (1, 7), (2, 1000), (3, -1000)");
    wait_for_error(&replica, "1677");
    replica.sql("SET GLOBAL slave_type_conversions = 'ALL_LOSSY'; START SLAVE");
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql("SELECT b FROM test.wider"), "2147483647");
    assert_eq!(replica.sql("SELECT b FROM test.narrower ORDER BY a"), "7\n127\n-128");
    source.sql(
        "SET NAMES utf8mb4; INSERT INTO test.kinds VALUES (1, 1.5, 2.5, 123456.7891, '2024-02-29 01:02:03.456789', 'äöüß', \
         REPEAT('b', 300), 'y')",
    );
    wait_for_error(&replica, "1677");
    replica.sql("SET GLOBAL slave_type_conversions = 'ALL_LOSSY,ALL_NON_LOSSY'; START SLAVE");
    replica.wait_for(&source.gtid_end());
    assert_eq!(
        replica.sql("SET NAMES utf8mb4; SELECT f, g, d, t, v, LENGTH(b), e FROM test.kinds"),
        "1.5\t2.5\t99.99\t2024-02-29 01:02:03.45\täöü\t255\ty"
    );
}

#[test]
fn generated_columns_hold_here_what_they_hold_there() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=2"]);
    replica.follow(source.port);
    source.sql("CREATE DATABASE d CHARACTER SET utf8mb4");
    for image in ["FULL", "MINIMAL", "NOBLOB"] {
        source.sql(&format!("SET GLOBAL binlog_row_image = {image}"));
        source.sql(
            "CREATE OR REPLACE TABLE d.g (a INT PRIMARY KEY, b INT, v INT AS (b + 1) VIRTUAL, s INT AS (b * 2) STORED, \
             w VARCHAR(20) AS (CONCAT('n', b)) VIRTUAL, UNIQUE (w), KEY (s)); \
             INSERT INTO d.g (a, b) VALUES (1, 1), (2, 2), (3, NULL); UPDATE d.g SET b = b + 10 WHERE a < 3; \
             UPDATE d.g SET a = a + 100 WHERE a = 2; DELETE FROM d.g WHERE a = 1; \
             INSERT INTO d.g (a, b) VALUES (4, 1)",
        );
        replica.wait_for(&source.gtid_end());
        let rows = "SELECT * FROM d.g ORDER BY a";
        assert_eq!(replica.sql(rows), source.sql(rows), "{image}");
        let by_index = "SELECT a FROM d.g FORCE INDEX (w) WHERE w = 'n12'";
        assert_eq!(replica.sql(by_index), "102", "{image}");
    }
}

#[test]
fn the_halves_of_an_alter_count_as_one() {
    let source = Maria::source(&["--binlog-format=ROW", "--binlog-alter-two-phase=1"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=4"]);
    replica.follow(source.port);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY); INSERT INTO test.t VALUES (1), (2)");
    source.sql("ALTER TABLE test.t ADD b INT DEFAULT 5; INSERT INTO test.t VALUES (3, 3)");
    // A failing ALTER is rolled back in its second half.
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        source.sql("INSERT INTO test.t VALUES (4, 3); ALTER TABLE test.t ADD UNIQUE (b)")
    }));
    assert!(failed.is_err(), "duplicates are refused");
    source.sql("ALTER TABLE test.t ADD c INT; INSERT INTO test.t VALUES (5, 5, 5)");
    let events = source.sql("SHOW BINLOG EVENTS");
    for half in ["START ALTER", "COMMIT ALTER", "ROLLBACK ALTER"] {
        assert!(events.contains(half), "the source logs no {half}: {events}");
    }
    replica.wait_for(&source.gtid_end());
    let rows = "SELECT * FROM test.t ORDER BY a";
    assert_eq!(replica.sql(rows), source.sql(rows));
    assert_eq!(replica.sql("SELECT @@gtid_slave_pos"), source.gtid_end());
}

#[test]
fn a_number_that_goes_back_stops_a_strict_replica() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    for threads in ["--slave-parallel-threads=0", "--slave-parallel-threads=4"] {
        let replica = Cohort::new(&[LOGS, "--server-id=7", "--gtid-strict-mode=1", threads]);
        source.sql("RESET MASTER; CREATE OR REPLACE TABLE test.t (a INT); SET gtid_seq_no = 100; INSERT INTO test.t VALUES (1)");
        replica.follow(source.port);
        replica.wait_for(&source.gtid_end());
        // Without strict mode, a source may log a sequence number smaller than a logged one.
        source.sql("SET gtid_seq_no = 50; INSERT INTO test.t VALUES (2)");
        let text = wait_for_error(&replica, "1950");
        assert_eq!(
            text,
            "An attempt was made to binlog GTID 0-2-50 which would create an out-of-order sequence number with existing \
             GTID 0-2-100, and gtid strict mode is enabled"
        );
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t"), "1");
        replica.sql("SET GLOBAL gtid_strict_mode = 0; START SLAVE SQL_THREAD");
        wait_until("it is not applied", || replica.sql("SELECT COUNT(*) FROM test.t") == "2");
    }
}

#[test]
fn a_ring_of_two_domains_applies_each_change_once() {
    for strict in ["--gtid-strict-mode=0", "--gtid-strict-mode=1"] {
        let options = |id, domain| ["--log-slave-updates", id, domain, strict, "--slave-parallel-threads=2"];
        let one = Cohort::new(&options("--server-id=7", "--gtid-domain-id=1"));
        let two = Cohort::new(&options("--server-id=8", "--gtid-domain-id=2"));
        one.sql("CREATE TABLE test.one (n INT AUTO_INCREMENT PRIMARY KEY, a INT)");
        two.follow(one.port);
        two.wait_for(&one.sql("SELECT @@gtid_binlog_pos"));
        two.sql("CREATE TABLE test.two (n INT AUTO_INCREMENT PRIMARY KEY, a INT)");
        one.sql(&format!("SET GLOBAL gtid_slave_pos = '{}'", one.sql("SELECT @@gtid_binlog_pos")));
        one.follow(two.port);
        for n in 0..20 {
            one.sql(&format!("INSERT INTO test.one (a) VALUES ({n})"));
            two.sql(&format!("INSERT INTO test.two (a) VALUES ({n})"));
        }
        let last = |server: &Cohort, domain: &str| {
            let position = server.sql("SELECT @@gtid_binlog_pos");
            position.split(',').find(|gtid| gtid.starts_with(domain)).expect("its own").to_owned()
        };
        let all = format!("{},{}", last(&one, "1-7-"), last(&two, "2-8-"));
        two.wait_for(&last(&one, "1-7-"));
        one.wait_for(&last(&two, "2-8-"));
        for server in [&one, &two] {
            assert_eq!(server.sql("SELECT COUNT(*), COUNT(DISTINCT a) FROM test.one"), "20\t20");
            assert_eq!(server.sql("SELECT COUNT(*), COUNT(DISTINCT a) FROM test.two"), "20\t20");
            assert_eq!(server.sql("SELECT @@gtid_binlog_pos"), all);
            assert_eq!(server.replica_field("Last_SQL_Errno"), "0");
        }
    }
}

#[test]
fn the_activity_of_a_replica_is_shown() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=2", "--read-only=1"]);
    replica.follow(source.port);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
    replica.wait_for(&source.gtid_end());
    replica.sql("STOP SLAVE SQL_THREAD");
    source.sql("INSERT INTO test.t VALUES (1); INSERT INTO test.t VALUES (2); INSERT INTO test.t VALUES (3)");
    wait_until("it is not received", || replica.replica_field("Gtid_IO_Pos") == source.gtid_end());
    let status = |name: &str| {
        let row = replica.sql(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        row.split('\t').nth(1).unwrap_or_else(|| panic!("{name}")).to_owned()
    };
    assert_eq!(status("Cohort_replica_behind_transactions"), "3");
    assert_eq!((status("Slave_running"), status("Slaves_running")), ("OFF".to_owned(), "0".to_owned()));
    assert_eq!(replica.replica_field("Seconds_Behind_Master"), "NULL");
    // The relay log events match MariaDB's own list, restricted to the kinds that it has.
    let kinds = |server: &str| -> Vec<String> {
        server
            .lines()
            .filter_map(|line| line.split('\t').nth(2).map(str::to_owned))
            .filter(|kind| ["Gtid", "Query", "Table_map", "Write_rows_v1", "Xid"].contains(&kind.as_str()))
            .collect()
    };
    let file = replica.replica_field("Relay_Log_File");
    let here = replica.sql(&format!("SHOW RELAYLOG EVENTS IN '{file}'"));
    let there = source.sql("SHOW BINLOG EVENTS");
    assert_eq!(kinds(&here), kinds(&there), "{here}");
    assert_eq!(replica.sql("SHOW RELAYLOG EVENTS LIMIT 1, 2").lines().count(), 2);
    let refused = replica.tool("mariadb", &["-e", "SHOW RELAYLOG EVENTS IN 'nothing.000001'"]).1;
    assert!(refused.contains("ERROR 1220 (HY000)"), "{refused}");
    replica.sql("START SLAVE SQL_THREAD");
    replica.wait_for(&source.gtid_end());
    wait_until("it lags", || status("Cohort_replica_behind_transactions") == "0");
    assert_eq!((status("Slave_running"), status("Slaves_running")), ("ON".to_owned(), "1".to_owned()));
    wait_until("it is not idle", || replica.replica_field("Seconds_Behind_Master") == "0");
    assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t"), "3");
    assert_eq!(status("Cohort_replica_applied_transactions"), "3");
    assert_eq!(status("Cohort_replica_queued_transactions"), "0");
    assert_eq!(status("Cohort_replica_busy_workers"), "0");
}

#[test]
fn changes_of_a_server_that_is_ignored_count_as_applied() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY)");
    replica.sql(&format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', ignore_server_ids=(5,6); START SLAVE",
        source.port
    ));
    assert_eq!(replica.replica_field("Replicate_Ignore_Server_Ids"), "5, 6");
    source.sql(
        "INSERT INTO test.t VALUES (1); SET server_id = 5; INSERT INTO test.t VALUES (2); SET server_id = 7; \
         INSERT INTO test.t VALUES (3); SET server_id = 2; INSERT INTO test.t VALUES (4); \
         SET skip_replication = 1; INSERT INTO test.t VALUES (5)",
    );
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql("SELECT a FROM test.t ORDER BY a"), "1\n4\n5");
    replica.sql("STOP SLAVE; SET GLOBAL replicate_events_marked_for_skip = 'FILTER_ON_SLAVE'; START SLAVE");
    source.sql("SET skip_replication = 1; INSERT INTO test.t VALUES (6); SET skip_replication = 0; INSERT INTO test.t VALUES (7)");
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql("SELECT a FROM test.t ORDER BY a"), "1\n4\n5\n7");
}

#[test]
fn files_that_a_source_loaded_as_statements_are_loaded_here() {
    let source = Maria::source(&["--binlog-format=STATEMENT", "--local-infile=1"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7", "--slave-parallel-threads=2"]);
    replica.follow(source.port);
    source.sql(
        "CREATE TABLE test.t (a INT PRIMARY KEY, b VARCHAR(200), c INT); INSERT INTO test.t VALUES (2, 'here', 0)",
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows");
    let rows = |from: usize, to: usize| {
        (from..to).map(|n| format!("{n};{}\n", "x".repeat(n % 150))).collect::<String>()
    };
    let load = |from, to, words: &str| {
        std::fs::write(&path, rows(from, to)).expect("written");
        source.sql(&format!(
            "LOAD DATA LOCAL INFILE '{}' {words} INTO TABLE test.t FIELDS TERMINATED BY ';' (a, @b) SET b = CONCAT(@b, '!'), c = {to}",
            path.display()
        ));
    };
    load(1, 4, "IGNORE");
    load(2, 5, "REPLACE");
    // More than one block, and more than one buffered group.
    load(100, 30_000, "");
    source.sql("BEGIN; INSERT INTO test.t VALUES (50_000, 'b', 1); COMMIT".replace('_', "").as_str());
    replica.wait_for(&source.gtid_end());
    let digest = "SELECT COUNT(*), SUM(a), SUM(c), SUM(CRC32(b)) FROM test.t";
    assert_eq!(replica.sql(digest), source.sql(digest));
    assert_eq!(replica.sql("SELECT b FROM test.t WHERE a < 5 ORDER BY a"), "x!\nxx!\nxxx!\nxxxx!");
}

#[test]
fn a_former_source_follows_the_one_that_took_its_place() {
    let first = Cohort::new(&[LOGS, "--server-id=7"]);
    let second = Cohort::new(&[LOGS, "--server-id=8"]);
    first.sql("CREATE TABLE test.t (a INT); INSERT INTO test.t VALUES (1)");
    second.follow(first.port);
    second.wait_for(&first.sql("SELECT @@gtid_binlog_pos"));
    second.sql("STOP SLAVE; RESET SLAVE ALL; INSERT INTO test.t VALUES (2)");
    let change = |more: &str| {
        format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', {more}",
            second.port
        )
    };
    let refused = first.tool("mariadb", &["-e", &change("master_use_gtid=no, master_demote_to_slave=1")]).1;
    assert!(
        refused.contains(
            "ERROR 4191 (HY000) at line 1: CHANGE MASTER TO option 'MASTER_DEMOTE_TO_SLAVE=TRUE' is missing requirement \
             Using_Gtid=Slave_Pos"
        ),
        "{refused}"
    );
    let before = first.sql("SELECT @@gtid_binlog_pos");
    first.sql(&change("master_demote_to_slave=1"));
    assert_eq!(first.sql("SELECT @@gtid_slave_pos"), before);
    first.sql("START SLAVE");
    first.wait_for(&second.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!(first.sql("SELECT a FROM test.t ORDER BY a"), "1\n2");
}

/// A source's definitions of stored programs are applied, and passed on in the binary log.
#[test]
fn definitions_of_stored_programs_are_applied() {
    let source = Maria::source(&["--binlog-format=ROW", LOGS, "--event-scheduler=OFF"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    source.sql("CREATE TABLE test.t (a INT PRIMARY KEY); CREATE TABLE test.seen (a INT PRIMARY KEY)");
    replica.follow(source.port);
    for sql in [
        "CREATE PROCEDURE test.p() SELECT 1",
        "CREATE DEFINER=x@y FUNCTION test.f(a INT) RETURNS INT DETERMINISTIC RETURN 2",
        "CREATE TRIGGER test.after_t AFTER INSERT ON test.t FOR EACH ROW INSERT INTO test.seen VALUES (NEW.a)",
        "CREATE EVENT test.e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' DO SELECT 1",
        "CREATE EVENT test.f ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
        "INSERT INTO test.t VALUES (1), (2)",
        "ALTER EVENT test.f ENABLE",
        "ALTER PROCEDURE test.p COMMENT 'c'",
        "CREATE PROCEDURE test.gone() SELECT 1",
        "DROP PROCEDURE test.gone",
    ] {
        source.sql(sql);
    }
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql("SELECT GROUP_CONCAT(a) FROM test.seen"), "1,2", "the trigger did not run twice");
    for shown in [
        "SELECT name, type, param_list, returns, body, definer, sql_mode, comment FROM mysql.proc WHERE db = 'test'",
        "SELECT TRIGGER_NAME, ACTION_STATEMENT, DEFINER, CREATED FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'test'",
        "SELECT name, body, interval_value, interval_field, starts, originator, time_zone FROM mysql.event",
    ] {
        assert_eq!(replica.sql(shown), source.sql(shown));
    }
    let statuses = replica.sql("SELECT DISTINCT STATUS FROM information_schema.EVENTS");
    assert_eq!(statuses, "SLAVESIDE_DISABLED", "the source runs its events");
    let position = source.gtid_end();
    assert_eq!(replica.sql("SELECT @@gtid_binlog_pos"), position, "the binary log has no gap");
    // What this server cannot do still stops it.
    source.sql("CREATE TABLE test.parts (a INT) PARTITION BY HASH (a) PARTITIONS 2");
    wait_for_error(&replica, "1235");
}
