//! A large transaction that commits while small ones are measured.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::connection::{Address, Connection, ConnectionError};
use crate::tables::SCHEMA;

const ROW_BYTES: usize = 32 << 10;
const ROWS_PER_INSERT: usize = 32;

/// State of the transaction, from its last insert to the end of its commit.
pub enum Large {
    Open(Box<Connection>),
    Committing(JoinHandle<Result<Duration, ConnectionError>>),
    /// Temporary state between the other two.
    Moving,
}

impl Large {
    /// Writes `mib` MiB into a separate table without committing.
    pub fn prepare(address: &Address, mib: u32) -> Result<Large, ConnectionError> {
        let mut connection = Connection::open(address, SCHEMA)?;
        connection.query("DROP TABLE IF EXISTS large")?;
        connection.query(
            "CREATE TABLE large (id INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY, body MEDIUMTEXT NOT NULL)",
        )?;
        let row = format!("('{}')", "x".repeat(ROW_BYTES));
        let insert = format!("INSERT INTO large (body) VALUES {}", vec![row; ROWS_PER_INSERT].join(","));
        connection.query("BEGIN")?;
        for _ in 0..mib {
            connection.query(&insert)?;
        }
        Ok(Large::Open(Box::new(connection)))
    }

    /// Copies sbtest1's rows without committing.
    pub fn copy_rows(address: &Address) -> Result<Large, ConnectionError> {
        let mut connection = Connection::open(address, SCHEMA)?;
        connection.query("DROP TABLE IF EXISTS copied")?;
        connection.query("CREATE TABLE copied LIKE sbtest1")?;
        // Do not lock the copied rows.
        connection.query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        connection.query("BEGIN")?;
        connection.query("INSERT INTO copied SELECT * FROM sbtest1")?;
        Ok(Large::Open(Box::new(connection)))
    }

    /// Starts the commit, unless it was started before.
    pub fn commit(&mut self) {
        *self = match std::mem::replace(self, Large::Moving) {
            Large::Open(mut connection) => Large::Committing(thread::spawn(move || {
                let began = Instant::now();
                connection.query("COMMIT")?;
                Ok(began.elapsed())
            })),
            other => other,
        };
    }

    /// Returns the duration of the commit, or `None` if it was not started.
    pub fn finish(self) -> Option<Result<Duration, ConnectionError>> {
        match self {
            Large::Committing(thread) => Some(thread.join().expect("a committing thread does not panic")),
            _ => None,
        }
    }
}
