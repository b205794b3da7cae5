//! Writers, and the columns that they fill.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use parking_lot::RwLock;

use crate::scale::Dice;
use crate::support::Cohort;

pub const TABLES: [&str; 3] = ["t0", "t1", "t2"];
const WRITERS: u64 = 4;
const IDS: usize = 300;

/// Name, type, and an SQL expression for the bytes that clients must print.
pub const COLUMNS: [(&str, &str, &str); 21] = [
    ("id", "INT PRIMARY KEY", "id"),
    ("tiny", "TINYINT", "tiny"),
    ("small", "SMALLINT UNSIGNED", "small"),
    ("medium", "MEDIUMINT", "medium"),
    ("big", "BIGINT UNSIGNED", "big"),
    ("price", "DECIMAL(20,6)", "price"),
    ("real4", "FLOAT", "real4"),
    ("real8", "DOUBLE", "real8"),
    ("bits", "BIT(12)", "bits + 0"),
    ("y", "YEAR", "y"),
    ("d", "DATE", "d"),
    ("t", "TIME(3)", "CAST(t AS TIME(6))"),
    ("dt", "DATETIME(6)", "dt"),
    ("ts", "TIMESTAMP(2) NULL", "CAST(ts AS DATETIME(6))"),
    ("e", "ENUM('red', 'grün', 'blue')", "e"),
    ("s", "SET('a', 'b', 'c')", "s"),
    ("c", "CHAR(10)", "c"),
    ("v", "VARCHAR(100)", "v"),
    ("txt", "TEXT", "txt"),
    ("bin", "VARBINARY(20)", "bin"),
    ("bl", "BLOB", "bl"),
];

fn value(column: &str, dice: &mut Dice) -> String {
    if dice.below(8) == 0 {
        return "NULL".to_owned();
    }
    let n = dice.next();
    // With digits that both floating-point types represent exactly.
    let real = || format!("{}.{}", n % 400, ["125", "375", "625", "875"][(n >> 32) as usize % 4]);
    let time = || format!("{:02}:{:02}:{:02}.{:06}", n % 24, n % 60, n / 60 % 60, n / 7 % 1_000_000);
    let words = |most| {
        ["", "a", "Straße ", "日本", "🦀", "it''s ", "x\\ty"][n as usize % 7].repeat(n as usize / 7 % most)
    };
    match column {
        "tiny" => (n as i8).to_string(),
        "small" => (n as u16).to_string(),
        "medium" => (n as i32 >> 8).to_string(),
        "big" => n.to_string(),
        "price" => format!("{}{}.{:06}", ["", "-"][n as usize % 2], n % 100_000_000_000_000, n % 1_000_000),
        "real4" | "real8" => real(),
        "bits" => (n % 4096).to_string(),
        "y" => (1901 + n % 255).to_string(),
        "d" => format!("'{}-{:02}-{:02}'", 1000 + n % 9000, 1 + n % 12, 1 + n % 28),
        // mysql-replication misreads the fraction of a negative time as its complement.
        "t" if n.is_multiple_of(3) => format!("'-{}:{:02}:01'", n % 800, n % 60),
        "t" => format!("'{}'", time()),
        "dt" => format!("'{}-{:02}-{:02} {}'", 1000 + n % 9000, 1 + n % 12, 1 + n % 28, time()),
        "ts" => format!("'{}-{:02}-{:02} {}'", 1971 + n % 60, 1 + n % 12, 1 + n % 28, time()),
        "e" => format!("{}", 1 + n % 3),
        // Not the empty set, which mysql-replication reads as NULL.
        "s" => format!("{}", 1 + n % 7),
        "c" => format!("'{}'", ["", "abc", "äöü€", "0123456789"][n as usize % 4]),
        "v" => format!("'{}'", words(12)),
        "txt" => format!("'{}'", words(if n.is_multiple_of(50) { 6000 } else { 60 })),
        "bin" => format!("X'{:012x}'", n & 0xff00_ffff_00ff),
        _ => format!("REPEAT(X'{:016x}', {})", n, n % 40),
    }
}

fn change(dice: &mut Dice) -> String {
    let table = TABLES[dice.below(TABLES.len())];
    let id = 1 + dice.below(IDS);
    let kind = dice.below(10);
    if kind >= 8 {
        return format!("DELETE FROM cdc.{table} WHERE id BETWEEN {id} AND {id} + 1");
    }
    if kind >= 4 {
        let (name, ..) = COLUMNS[1 + dice.below(COLUMNS.len() - 1)];
        let to = value(name, dice);
        return format!(
            "UPDATE cdc.{table} SET {name} = {to} WHERE id BETWEEN {id} AND {id} + {}",
            dice.below(5)
        );
    }
    let verb = ["INSERT IGNORE", "REPLACE"][kind % 2];
    let row = |id| {
        let values: Vec<_> = COLUMNS[1..].iter().map(|(name, ..)| value(name, dice)).collect();
        format!("({id}, {})", values.join(", "))
    };
    let rows: Vec<_> = (id..=id + kind).map(row).collect();
    format!("{verb} INTO cdc.{table} VALUES {}", rows.join(", "))
}

/// Runs a transaction of a few changes, which may be rolled back. Errors are deadlocks, or mean that the
/// server is gone.
fn transact(client: &mut Conn, dice: &mut Dice) -> mysql::Result<()> {
    client.query_drop("BEGIN")?;
    for _ in 0..=dice.below(4) {
        client.query_drop(change(dice))?;
    }
    client.query_drop(if dice.below(10) == 0 { "ROLLBACK" } else { "COMMIT" })
}

fn write(options: OptsBuilder, mut dice: Dice, ends: &AtomicBool, gate: &RwLock<()>) {
    let mut client = None;
    while !ends.load(Ordering::Relaxed) {
        let _may_write = gate.read();
        let done = match &mut client {
            Some(client) => transact(client, &mut dice),
            None => Conn::new(options.clone()).map(|connected| client = Some(connected)),
        };
        // The slowest client must keep up, so that it is connected when the server is killed.
        std::thread::sleep(Duration::from_millis(10));
        if let Err(error) = done {
            if let mysql::Error::MySqlError(error) = &error {
                assert!(matches!(error.code, 1213 | 1205 | 1053 | 1927), "{error}");
            }
            client = None;
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Threads that write until they are stopped, across crashes of the server.
pub struct Load {
    ends: Arc<AtomicBool>,
    gate: Arc<RwLock<()>>,
    writers: Vec<JoinHandle<()>>,
}

impl Load {
    pub fn start(cohort: &Cohort) -> Load {
        let columns: Vec<_> = COLUMNS.iter().map(|(name, kind, _)| format!("{name} {kind}")).collect();
        cohort.sql("CREATE DATABASE cdc");
        for table in TABLES {
            cohort.sql(&format!("CREATE TABLE cdc.{table} ({})", columns.join(", ")));
        }
        let seed = u64::from(std::process::id());
        println!("seed: {seed}");
        let (ends, gate) = (Arc::new(AtomicBool::new(false)), Arc::new(RwLock::new(())));
        let writer = |n| {
            let (options, ends, gate) = (cohort.options(), ends.clone(), gate.clone());
            std::thread::spawn(move || write(options, Dice::new(seed + n), &ends, &gate))
        };
        let writers = (0..WRITERS).map(writer).collect();
        Load { ends, gate, writers }
    }

    /// Does some work while the writers pause.
    pub fn pause(&self, work: impl FnOnce()) {
        let _nobody_writes = self.gate.write();
        work();
    }

    pub fn stop(self) {
        self.ends.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.join().expect("no other error");
        }
    }
}

/// Writes the row that marks the end, and returns its key.
pub fn write_last_row(cohort: &Cohort) -> String {
    cohort.sql("INSERT INTO cdc.t0 (id) VALUES (0)");
    "30".to_owned()
}

/// Returns the rows of a table as clients must print them.
pub fn rows(cohort: &Cohort, table: &str) -> Vec<String> {
    let values: Vec<_> = COLUMNS
        .iter()
        .map(|(.., shown)| {
            format!(
                "COALESCE(NULLIF(LOWER(HEX(CAST({shown} AS BINARY))), ''), IF({shown} IS NULL, '-', '='))"
            )
        })
        .collect();
    let text = cohort.sql(&format!("SELECT CONCAT_WS(' ', {}) FROM cdc.{table}", values.join(", ")));
    text.lines().map(str::to_owned).collect()
}
