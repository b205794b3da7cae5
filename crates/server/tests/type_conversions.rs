//! `slave_type_conversions`: row events from a MariaDB table are applied to tables with a column of another
//! type, on Cohort and on MariaDB, in each mode. Both must refuse the same conversions, and otherwise store
//! the same values.
//!
//! Not tested are cases in which MariaDB stores a value that the column cannot hold: text invalid in the
//! column's character set, more characters than fit, unknown members; and times without fractions for columns
//! with fractions, which MariaDB treats as corrupt.

mod support;

use mysql::Conn;
use mysql::prelude::Queryable;
use support::{Cohort, Maria, rows, run, text};

const NUMBERS: &[&str] = &["-1", "200", "-70000", "1.8e19", "12.75"];
const MOMENTS: &[&str] = &["'2024-05-06 07:08:09.123456'", "'1999-12-31 23:59:59.999999'"];
const TEXTS: &[&str] = &["'abc'", "'12.5'", "REPEAT('b', 300)"];

/// Types, and values, of which each type gets those that it accepts.
const TYPES: &[(&[&str], &[&str])] = &[
    (
        &[
            "TINYINT",
            "MEDIUMINT",
            "INT",
            "BIGINT",
            "SMALLINT UNSIGNED",
            "BIGINT UNSIGNED",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(10,2)",
            "DECIMAL(5,1)",
            "BIT(1)",
            "BIT(20)",
            "YEAR",
        ],
        NUMBERS,
    ),
    (&["DATE", "DATETIME(2)", "DATETIME(6)", "TIMESTAMP(2)", "TIMESTAMP(6)"], MOMENTS),
    (&["TIME(1)", "TIME(6)"], &["'12:34:56.789012'", "'-800:00:00.5'"]),
    (
        &[
            "CHAR(5) CHARACTER SET latin1",
            "CHAR(20)",
            "VARCHAR(5)",
            "VARCHAR(300)",
            "TEXT",
            "LONGTEXT",
            "BINARY(19)",
            "VARBINARY(5)",
            "VARBINARY(400)",
            "TINYBLOB",
            "LONGBLOB",
        ],
        TEXTS,
    ),
    (&["ENUM('a','abc')", "ENUM('abc','a')"], &["'a'"]),
    (&["SET('a','b')", "SET('a','b','c','d','e','f','g','h','i')"], &["'a'", "'a,b'", "'a,i'"]),
    (&["UUID"], &["'12345678-1234-1234-1234-123456780011'"]),
    (&["INET6"], &["'2001:d38::1'"]),
];

const MODES: [&str; 4] = ["", "ALL_LOSSY", "ALL_NON_LOSSY", "ALL_LOSSY,ALL_NON_LOSSY"];

const SESSION: &str = "SET sql_mode = '', time_zone = '+00:00', binlog_format = ROW";

fn types() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    TYPES.iter().flat_map(|(types, values)| types.iter().map(move |name| (*name, *values)))
}

fn make_table(client: &mut Conn, column: &str) {
    let sql = format!("CREATE OR REPLACE TABLE test.t (a INT PRIMARY KEY, b {column}) CHARACTER SET utf8mb4");
    client.query_drop(sql).expect("a table");
}

/// Returns the output of `mariadb-binlog` for the source's rows: first the format description for BINLOG,
/// then each insert with its type and value.
fn events(source: &Maria) -> (String, Vec<(String, String)>) {
    let mut client = source.client();
    client.query_drop(SESSION).expect("set");
    let mut names = Vec::new();
    for (column, values) in types() {
        make_table(&mut client, column);
        for value in values {
            client.query_drop(format!("REPLACE INTO test.t VALUES (1, {value})")).expect("a row");
            // The next statement must be an insert again.
            client.query_drop("SET sql_log_bin = 0").expect("set");
            client.query_drop("DELETE FROM test.t").expect("deleted");
            client.query_drop("SET sql_log_bin = 1").expect("set");
            names.push(format!("{column} {value}"));
        }
    }
    let socket = source.sql("SELECT @@socket");
    let output = run(
        "mariadb-binlog",
        &["--no-defaults", "-R", "-uroot", &format!("--socket={socket}"), "binlog.000001"],
    );
    assert!(output.status.success(), "{}", text(&output));
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut blocks = listing.split("BINLOG '\n").skip(1).map(|block| {
        let (block, _) = block.split_once('\'').expect("an end");
        format!("BINLOG '{block}'")
    });
    let first = blocks.next().expect("a format description");
    let inserts: Vec<String> = blocks.collect();
    assert_eq!(inserts.len(), names.len());
    (first, names.into_iter().zip(inserts).collect())
}

/// Returns the column's value after each event.
fn held(client: &mut Conn, events: &[(String, String)]) -> Vec<String> {
    let play = |(name, event): &(String, String)| {
        client.query_drop("DELETE FROM test.t").expect("deleted");
        let outcome = match client.query_drop(event) {
            Ok(()) => rows(client, "SELECT HEX(CAST(b AS BINARY)) FROM test.t"),
            // MariaDB's BINLOG has no text for error 1677.
            Err(mysql::Error::MySqlError(error)) if matches!(error.code, 1677 | 1105) => "refused".to_owned(),
            Err(error) => format!("{error}"),
        };
        format!("{name}: {}", outcome.trim())
    };
    events.iter().map(play).collect()
}

#[test]
fn columns_of_other_types_hold_what_they_hold_in_mariadb() {
    let source = Maria::source(&[]);
    let server = Cohort::new(&["--server-id=7"]);
    let (first, events) = events(&source);
    let (mut theirs, mut ours) = (source.client(), server.client());
    for client in [&mut theirs, &mut ours] {
        client.query_drop(SESSION).expect("set");
        client.query_drop(&first).expect("taken");
    }
    let mut differing = Vec::new();
    for (column, _) in types() {
        for client in [&mut theirs, &mut ours] {
            make_table(client, column);
        }
        for mode in MODES {
            for client in [&mut theirs, &mut ours] {
                client.query_drop(format!("SET GLOBAL slave_type_conversions = '{mode}'")).expect("set");
            }
            let (expected, found) = (held(&mut theirs, &events), held(&mut ours, &events));
            for (expected, found) in expected.iter().zip(&found).filter(|(one, other)| one != other) {
                differing.push(format!("[{mode}] {column}\n  theirs {expected}\n  ours   {found}"));
            }
        }
    }
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}
