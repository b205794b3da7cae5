//! The load on a source, with concurrent DDL, and the comparison with a replica.

use std::process::{Child, Command, Stdio};

use crate::support::{Cohort, Maria};
pub use scale::{Dice, long_or};

#[path = "../whole/scale.rs"]
#[allow(dead_code)] // only a part of it is used
mod scale;

/// A server that can run statements.
pub trait Ask {
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

/// Compares all tables of both servers, row by row.
pub fn assert_same_rows<A: Ask + ?Sized, B: Ask + ?Sized>(one: &A, other: &B) {
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

pub fn sysbench(port: u16, workload: &str, arguments: &[&str]) -> Command {
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

pub fn load(port: u16, workload: &str, seconds: u32) -> Child {
    let time = format!("--time={seconds}");
    let threads = format!("--threads={}", long_or(64, 8));
    let run = [&threads, &time, "--mysql-ignore-errors=all", "run"];
    sysbench(port, workload, &run).spawn().expect("installed")
}

pub fn prepare<A: Ask + ?Sized>(source: &A, port: u16) {
    source.ask("CREATE DATABASE sb");
    assert!(sysbench(port, "oltp_write_only", &["prepare"]).status().expect("installed").success());
}

/// Runs DDL concurrently with a load.
pub fn change_definitions<A: Ask + ?Sized>(source: &A, n: usize) {
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
