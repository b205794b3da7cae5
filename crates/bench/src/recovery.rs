//! Recovery speed of Cohort: loads the server without checkpoints, kills it, and reads the duration of its
//! recovery from its counters.
//!
//! The log was just written, so it is read from the page cache. There are two logs: one of small
//! transactions, dominated by replay, and one of large transactions, dominated by reading.

use std::time::Duration;

use crate::connection::{Connection, ConnectionError};
use crate::driver::{self, Load};
use crate::interrupt;
use crate::results::RecoveryResult;
use crate::servers::{Contestant, Server, Setup};
use crate::tables::{self, SCHEMA};
use crate::workload::{self, Keys, Protocol, Scale, Schema};

/// No checkpoint begins before the log has this size.
pub const NO_CHECKPOINT: [&str; 2] = ["--rocksdb-write-buffer-size=8G", "--checkpoint-bytes-max=8G"];
const CLIENTS: usize = 64;
const LARGE_ROWS: usize = 256;
const ROW_BYTES: usize = 8 << 10;

/// Returns a row for each kind of log. `time` is how long the small transactions are written.
pub fn measure(
    contestant: &Contestant,
    setup: &Setup,
    time: Duration,
) -> Result<Vec<RecoveryResult>, String> {
    let mut results = Vec::new();
    for (load, fill) in [("small inserts", small as Fill), ("inserts of 2 MiB", large as Fill)] {
        eprintln!("{}: recovery from a log of {load}", contestant.label);
        let mut server = Server::start(&contestant.with(&NO_CHECKPOINT), setup)?;
        let filled = fill(&server, time);
        filled.map_err(|error| server.complaint(&format!("recovery: {error}")))?;
        if interrupt::is_requested() {
            return Err("interrupted".to_owned());
        }
        server.crash()?;
        let found = found(&server).map_err(|error| server.complaint(&format!("recovery: {error}")))?;
        if found.log_bytes == 0 {
            return Err(server.complaint("recovery: it says nothing of it"));
        }
        results.push(RecoveryResult { load: load.to_owned(), ..found });
    }
    Ok(results)
}

type Fill = fn(&Server, Duration) -> Result<(), String>;

fn text(error: ConnectionError) -> String {
    error.to_string()
}

fn prepare(server: &Server) -> Result<Connection, String> {
    tables::create_schema(&server.address).map_err(text)
}

fn small(server: &Server, time: Duration) -> Result<(), String> {
    let scale = Scale { tables: 1, rows: 100, keys: Keys::Even };
    tables::prepare(&mut prepare(server)?, Schema::Sbtest, scale).map_err(text)?;
    let load = Load {
        address: server.address.clone(),
        schema: SCHEMA.to_owned(),
        workload: workload::find("insert").expect("listed"),
        protocol: Protocol::Text,
        clients: CLIENTS,
        threads: 1,
        scale,
        warm: Duration::ZERO,
        measure: time,
    };
    driver::run(&load, |_| ()).map(drop)
}

fn large(server: &Server, _: Duration) -> Result<(), String> {
    // Their redo is too small to start a checkpoint.
    const INSERTS: usize = 60;
    let mut connection = prepare(server)?;
    connection
        .query(
            "CREATE TABLE large (id INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY, body MEDIUMTEXT NOT NULL)",
        )
        .map_err(text)?;
    let row = format!("('{}')", "x".repeat(ROW_BYTES));
    let insert = format!("INSERT INTO large (body) VALUES {}", vec![row; LARGE_ROWS].join(","));
    for _ in 0..INSERTS {
        connection.query(&insert).map_err(text)?;
    }
    Ok(())
}

/// Reads what the last recovery did.
pub fn found(server: &Server) -> Result<RecoveryResult, ConnectionError> {
    let mut connection = Connection::open(&server.address, "")?;
    let rows = connection.query("SHOW GLOBAL STATUS LIKE 'Cohort\\_recovery\\_%'")?;
    let value = |name: &str| {
        let row = rows.iter().find(|row| row[0].as_deref() == Some(name));
        row.and_then(|row| row[1].as_deref()?.parse::<u64>().ok()).unwrap_or(0)
    };
    Ok(RecoveryResult {
        load: String::new(),
        transactions: value("Cohort_recovery_commits"),
        log_bytes: value("Cohort_recovery_log_bytes"),
        seconds: value("Cohort_recovery_us") as f64 / 1e6,
    })
}
