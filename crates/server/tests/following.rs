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
        for round in 0..long_or(20, 4) {
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
