//! Creates and fills the tables of the workloads.

use crate::connection::{Address, Connection, ConnectionError};
use crate::dialect::Dialect;
use crate::random::Random;
use crate::workload::{Scale, Schema};

/// Schema of the tables for measurements.
pub const SCHEMA: &str = "bench";

const ROWS_PER_INSERT: u32 = 200;

/// Creates the schema on a new server. Returns a connection to it.
pub fn create_schema(address: &Address) -> Result<Connection, ConnectionError> {
    Connection::open(address, "")?.query(&format!("CREATE DATABASE {SCHEMA}"))?;
    Connection::open(address, SCHEMA)
}

/// Creates the missing tables of `schema`.
pub fn prepare(connection: &mut Connection, schema: Schema, scale: Scale) -> Result<(), ConnectionError> {
    match schema {
        Schema::Sbtest => {
            sbtest(connection, scale)?;
            slap(connection)
        }
        Schema::Slap => slap(connection),
        Schema::Demo => demo(connection, scale),
    }
}

fn exists(connection: &mut Connection, table: &str) -> Result<bool, ConnectionError> {
    let asked = match connection.dialect() {
        Dialect::MySql => format!("SHOW TABLES LIKE '{table}'"),
        Dialect::Postgres => format!("SELECT 1 FROM pg_tables WHERE tablename = '{table}'"),
    };
    Ok(!connection.query(&asked)?.is_empty())
}

/// Returns the type of an auto-increment column.
fn numbered(connection: &Connection) -> &'static str {
    match connection.dialect() {
        Dialect::MySql => "INTEGER NOT NULL AUTO_INCREMENT",
        Dialect::Postgres => "SERIAL",
    }
}

/// Creates the tables of sysbench's OLTP workloads.
fn sbtest(connection: &mut Connection, scale: Scale) -> Result<(), ConnectionError> {
    let mut random = Random::new(42);
    for table in 1..=scale.tables {
        if exists(connection, &format!("sbtest{table}"))? {
            continue;
        }
        let id = numbered(connection);
        connection.query(&format!(
            "CREATE TABLE sbtest{table} (id {id}, k INTEGER DEFAULT '0' NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))"
        ))?;
        fill(connection, scale.rows, |first, last| {
            let mut sql = format!("INSERT INTO sbtest{table} (k, c, pad) VALUES ").into_bytes();
            for row in first..=last {
                let separator = if row == first { "" } else { "," };
                sql.extend_from_slice(format!("{separator}({},'", random.one_to(scale.rows)).as_bytes());
                random.digits(10, &mut sql);
                sql.extend_from_slice(b"','");
                random.digits(5, &mut sql);
                sql.extend_from_slice(b"')");
            }
            String::from_utf8(sql).expect("digits and SQL")
        })?;
        connection.query(&format!("CREATE INDEX k_{table} ON sbtest{table}(k)"))?;
    }
    Ok(())
}

fn slap(connection: &mut Connection) -> Result<(), ConnectionError> {
    if !exists(connection, "slap")? {
        let id = numbered(connection);
        connection.query(&format!("CREATE TABLE slap (id {id} PRIMARY KEY, value INTEGER NOT NULL)"))?;
    }
    Ok(())
}

fn demo(connection: &mut Connection, scale: Scale) -> Result<(), ConnectionError> {
    connection.query("DROP TABLE IF EXISTS cohort_demo")?;
    connection.query(
        "CREATE TABLE cohort_demo (id INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY, n INTEGER NOT NULL, \
         note VARCHAR(60) NOT NULL)",
    )?;
    fill(connection, scale.rows, |first, last| {
        let rows: Vec<String> = (first..=last).map(|_| "(0,'')".to_owned()).collect();
        format!("INSERT INTO cohort_demo (n, note) VALUES {}", rows.join(","))
    })
}

fn fill(
    connection: &mut Connection,
    rows: u32,
    mut insert: impl FnMut(u32, u32) -> String,
) -> Result<(), ConnectionError> {
    let mut first = 1;
    while first <= rows {
        let last = rows.min(first + ROWS_PER_INSERT - 1);
        connection.query(&insert(first, last))?;
        first = last + 1;
    }
    Ok(())
}
