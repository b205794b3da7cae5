//! Cohort as a replica of a real MariaDB, of itself, and in the middle between both.

#[path = "whole/scale.rs"]
#[allow(dead_code)] // its part
mod scale;
mod support;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use scale::{Dice, long_or};
use support::{Cohort, Maria, wait_until};

/// What replicas need to be followed themselves.
const LOGS: &str = "--log-slave-updates";

/// A server that answers questions.
trait Ask {
    fn ask(&self, sql: &str) -> String;
}

impl Ask for Cohort {
    fn ask(&self, sql: &str) -> String {
        self.sql(sql)
    }
}

impl Ask for Maria {
    fn ask(&self, sql: &str) -> String {
        self.sql(sql)
    }
}

const OWN_SCHEMAS: &str = "('mysql', 'information_schema', 'performance_schema', 'sys')";

/// All tables of both, row by row.
fn assert_same_rows(one: &dyn Ask, other: &dyn Ask) {
    let list = format!(
        "SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables \
         WHERE table_schema NOT IN {OWN_SCHEMAS} AND table_type = 'BASE TABLE' ORDER BY 1"
    );
    let tables = one.ask(&list);
    assert_eq!(tables, other.ask(&list), "they have the same tables");
    for table in tables.lines() {
        let (schema, name) = table.trim_matches('`').split_once("`.`").expect("quoted");
        let columns = one.ask(&format!(
            "SELECT GROUP_CONCAT(CONCAT('`', column_name, '`') ORDER BY ordinal_position) FROM \
             information_schema.columns WHERE table_schema = '{schema}' AND table_name = '{name}'"
        ));
        let rows = format!("SELECT {columns} FROM {table} ORDER BY {columns}");
        let (ours, theirs) = (one.ask(&rows), other.ask(&rows));
        if ours != theirs {
            let differs = ours.lines().zip(theirs.lines()).find(|(one, other)| one != other);
            panic!(
                "{table} differs: {} and {} rows, first {differs:?}",
                ours.lines().count(),
                theirs.lines().count()
            );
        }
    }
}

fn sysbench(port: u16, workload: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sysbench");
    command.arg(workload).args([
        "--mysql-host=127.0.0.1",
        "--mysql-user=root",
        "--mysql-db=sb",
        "--tables=2",
        long_or("--table-size=20000", "--table-size=300"),
    ]);
    command.arg(format!("--mysql-port={port}")).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn load(port: u16, workload: &str, seconds: u32) -> Child {
    let time = format!("--time={seconds}");
    let threads = format!("--threads={}", long_or(64, 8));
    let run = [&threads, &time, "--mysql-ignore-errors=all", "run"];
    sysbench(port, workload, &run).spawn().expect("installed")
}

fn prepare(source: &dyn Ask, port: u16) {
    source.ask("CREATE DATABASE sb");
    assert!(sysbench(port, "oltp_write_only", &["prepare"]).status().expect("installed").success());
}

/// Definitions that change beside a load.
fn change_definitions(source: &dyn Ask, n: usize) {
    let statements = [
        format!(
            "CREATE TABLE sb.x{n} (a INT PRIMARY KEY, b TEXT); INSERT INTO sb.x{n} VALUES (1, 'ä'), (2, NULL)"
        ),
        "ALTER TABLE sb.sbtest2 ADD COLUMN IF NOT EXISTS more VARCHAR(20) DEFAULT 'x'".to_owned(),
        "CREATE INDEX IF NOT EXISTS by_c ON sb.sbtest1 (c)".to_owned(),
        "ALTER TABLE sb.sbtest2 DROP COLUMN IF EXISTS more".to_owned(),
        "DROP INDEX IF EXISTS by_c ON sb.sbtest1".to_owned(),
        format!("CREATE TABLE sb.y{n} LIKE sb.sbtest1; RENAME TABLE sb.y{n} TO sb.z{n}; TRUNCATE sb.z{n}"),
    ];
    source.ask(&statements[n % statements.len()]);
}

#[test]
fn a_replica_of_mariadb_follows_through_load_ddl_and_kills() {
    for format in ["ROW", "MIXED"] {
        let format = format!("--binlog-format={format}");
        let source = Maria::source(&[&format, "--max-binlog-size=1M"]);
        let mut replica = Cohort::new(&[LOGS, "--server-id=7", "--max-relay-log-size=65536"]);
        replica.follow(source.port);
        prepare(&source, source.port);
        let mut dice = Dice::new(long_or(u64::from(std::process::id()), 11));
        for round in 0..long_or(20, 2) {
            let mut writes = load(source.port, ["oltp_write_only", "oltp_read_write"][round % 2], 2);
            for n in 0..6 {
                std::thread::sleep(Duration::from_millis(200));
                change_definitions(&source, round * 6 + n);
                if dice.below(3) == 0 {
                    replica.kill_and_restart();
                }
            }
            assert!(writes.wait().expect("asked").success());
            replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
            assert_same_rows(&source, &replica);
        }
        let status = replica.replica_status();
        wait_until("it is not idle", || replica.replica_status().contains("Seconds_Behind_Master: 0"));
        assert!(status.contains("Using_Gtid: Slave_Pos"), "{status}");
        let list = replica.sql("SHOW PROCESSLIST");
        assert!(list.contains("Waiting for master to send event"), "{list}");
        assert!(list.contains("Slave has read all relay log; waiting for more updates"), "{list}");
    }
}

#[test]
fn chains_of_mariadb_and_cohort_have_the_same_rows_and_gtids_when_the_middle_is_killed() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let mut middle = Cohort::new(&[LOGS, "--server-id=7"]);
    let last_cohort = Cohort::new(&[LOGS, "--server-id=8"]);
    let last_maria = Maria::new(&["--log-bin=binlog", LOGS, "--server-id=9"]);
    middle.follow(source.port);
    last_cohort.follow(middle.port);
    last_maria.follow(middle.port);
    prepare(&source, source.port);
    for round in 0..long_or(10, 2) {
        let mut writes = load(source.port, "oltp_write_only", 2);
        for n in 0..3 {
            std::thread::sleep(Duration::from_millis(400));
            change_definitions(&source, round * 3 + n);
            middle.kill_and_restart();
        }
        assert!(writes.wait().expect("asked").success());
        let end = source.sql("SELECT @@gtid_binlog_pos");
        middle.wait_for(&end);
        last_cohort.wait_for(&end);
        last_maria.wait_for(&end);
        assert_same_rows(&source, &middle);
        assert_same_rows(&source, &last_cohort);
        assert_same_rows(&source, &last_maria);
        assert_eq!(last_cohort.sql("SELECT @@gtid_binlog_pos"), end);
        assert_eq!(
            middle.sql("SELECT @@gtid_binlog_pos, @@gtid_slave_pos, @@gtid_current_pos"),
            format!("{end}\t{end}\t{end}")
        );
    }
    // Own writes of the last ones come behind what they have applied.
    last_cohort.sql("CREATE TABLE sb.own (a INT)");
    let next = last_cohort.sql("SELECT @@gtid_binlog_pos");
    let number =
        |position: &str| position.rsplit('-').next().and_then(|n| n.parse::<u64>().ok()).expect("a GTID");
    assert_eq!(number(&next), number(&source.sql("SELECT @@gtid_binlog_pos")) + 1);
    assert!(next.starts_with("0-8-"), "{next}");
    let shown = middle.sql("SELECT domain_id, server_id, seq_no FROM mysql.gtid_slave_pos");
    assert_eq!(shown.replace('\t', "-"), middle.sql("SELECT @@gtid_slave_pos"));
}

const ALL_TYPES: &str = "CREATE TABLE kinds.every (id INT PRIMARY KEY, a TINYINT UNSIGNED, b SMALLINT, c MEDIUMINT, \
     d BIGINT UNSIGNED, e FLOAT, f DOUBLE, g DECIMAL(30,10), h BIT(13), i DATE, j TIME(3), k DATETIME(6), \
     l TIMESTAMP(2) NULL, m YEAR, n CHAR(20), o VARCHAR(300), p BINARY(5), q VARBINARY(300), r TINYBLOB, s BLOB, \
     t MEDIUMTEXT, u LONGTEXT, v ENUM('x','y','ä'), w SET('a','b','c'), x VARCHAR(20) CHARACTER SET latin1, \
     y JSON, z TEXT CHARACTER SET utf8mb4)";

fn fill_all_types(source: &dyn Ask, table: &str) {
    source.ask(&format!(
        "SET NAMES utf8mb4; INSERT INTO {table} VALUES (1, 255, -32768, -8388608, 18446744073709551615, 1.5, -2.25e300, \
         -12345678901234567890.0123456789, b'1010101010101', '2024-02-29', '-838:59:58.999', '9999-12-31 23:59:59.999999', \
         '2038-01-19 03:14:07.99', 2155, 'char', REPEAT('ö', 300), 'ab', REPEAT('q', 300), 'tiny', REPEAT('b', 60000), \
         REPEAT('m', 70000), REPEAT('long', 50000), 'ä', 'a,c', 'é', '{{\"k\": [1, null]}}', '😀'), \
         (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
         NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
         (3, 0, 0, 0, 0, 0, 0, 0, 0, '0001-01-01', '00:00:00', '1000-01-01', '1970-01-01 12:00:01', 1901, '', '', '', '', '', \
         '', '', '', 'x', '', '', '0', '')"
    ));
    source
        .ask(&format!("UPDATE {table} SET o = CONCAT(o, ''), a = 7, n = 'other', s = 'short' WHERE id < 3"));
    source.ask(&format!("UPDATE {table} SET id = id + 10, k = '2020-02-02 02:02:02.020202' WHERE id = 1"));
    source.ask(&format!("DELETE FROM {table} WHERE id = 3"));
}

#[test]
fn values_of_every_type_arrive_in_every_form_of_row_events() {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    replica.follow(source.port);
    source.sql("CREATE DATABASE kinds CHARACTER SET utf8mb4");
    source.sql(ALL_TYPES);
    source.sql("CREATE TABLE kinds.keyless LIKE kinds.every; ALTER TABLE kinds.keyless DROP PRIMARY KEY");
    source.sql(
        "CREATE TABLE kinds.other LIKE kinds.keyless; ALTER TABLE kinds.other ADD UNIQUE (id), ADD KEY (a)",
    );
    for settings in [
        "binlog_row_image = FULL",
        "binlog_row_image = MINIMAL",
        "binlog_row_image = NOBLOB",
        "binlog_row_metadata = FULL",
        "log_bin_compress = 1",
        "binlog_checksum = NONE",
        "binlog_annotate_row_events = 0",
    ] {
        source.sql(&format!("SET GLOBAL {settings}"));
        for table in ["kinds.every", "kinds.keyless", "kinds.other"] {
            fill_all_types(&source, table);
        }
        replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
        assert_same_rows(&source, &replica);
        source.sql("DELETE FROM kinds.every; DELETE FROM kinds.keyless; DELETE FROM kinds.other");
    }
    // More than a packet.
    source.sql("SET GLOBAL max_allowed_packet = 64 << 20");
    source.sql("INSERT INTO kinds.every (id, u) VALUES (99, REPEAT('0123456789abcdef', 2 << 20))");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    let digest = "SELECT id, LENGTH(u), MD5(u) FROM kinds.every WHERE id = 99";
    assert_eq!(source.sql(digest), replica.sql(digest));
}

#[test]
fn statements_run_in_the_context_that_they_had() {
    let source = Maria::source(&["--binlog-format=STATEMENT"]);
    let replica = Cohort::new(&[LOGS, "--server-id=7"]);
    replica.follow(source.port);
    source.sql(
        "USE test; CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(100), b DOUBLE, c DATETIME(6), d BIGINT); \
         SET TIMESTAMP = 1000000000.123456; INSERT INTO s (a, b, c, d) VALUES ('x', RAND(), NOW(6), LAST_INSERT_ID()); \
         SET time_zone = '+05:00'; INSERT INTO s (a, c) VALUES (FROM_UNIXTIME(0), NOW(6)); \
         SET @v = 'ü', @n = -5, @u = 18446744073709551615, @r = 0.5e0, @d = 1.25, @null = NULL; \
         INSERT INTO s (a, b, d) VALUES (@v, @r + @d, @n), (@null, NULL, NULL), ('u', NULL, @u - 9223372036854775808); \
         SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'; INSERT INTO \"s\" (a) VALUES ('a' || 'b'); \
         SET sql_mode = ''; INSERT INTO s (a, d) VALUES (REPEAT('y', 200), '12abc'); \
         SET NAMES latin1; INSERT INTO s (a) VALUES (_latin1 x'E9'), ('é'); \
         SET auto_increment_increment = 10, auto_increment_offset = 3; INSERT INTO s (a) VALUES ('i'), ('j'); \
         SET insert_id = 500; INSERT INTO s (a) VALUES ('k'); \
         BEGIN; INSERT INTO s (a) VALUES ('one'); SAVEPOINT p; INSERT INTO s (a) VALUES ('two'); ROLLBACK TO p; \
         INSERT INTO s (a) VALUES ('three'); COMMIT; \
         UPDATE s SET a = CONCAT(a, '!') WHERE id % 2 = 0; DELETE FROM s WHERE a = 'i'",
    );
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_same_rows(&source, &replica);
}
