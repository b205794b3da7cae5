//! A server's results as text.

use mysql::Conn;
use mysql::prelude::Queryable;

/// Returns rows as text: columns separated by tabs, rows by line ends, NULL as `NULL`.
pub fn rows(client: &mut Conn, sql: &str) -> String {
    let mut out = String::new();
    let mut results = client.query_iter(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    while let Some(set) = results.iter() {
        for row in set {
            let row = row.unwrap_or_else(|error| panic!("{sql}: {error}"));
            let cells: Vec<String> = row.unwrap().iter().map(shown).collect();
            out += &(cells.join("\t") + "\n");
        }
    }
    out
}

/// Returns a value as text; bytes that are not text as hexadecimal digits.
pub fn shown(value: &mysql::Value) -> String {
    match value {
        mysql::Value::NULL => "NULL".to_owned(),
        mysql::Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(|c: char| c.is_control() && c != '\n') => text.to_owned(),
            _ => bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
        },
        other => format!("{other:?}"),
    }
}

/// Returns the code of a server error. Panics on any other outcome.
pub fn error_code<T>(result: mysql::Result<T>) -> u16 {
    match result {
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(other) => panic!("not an error of the server: {other}"),
        Ok(_) => panic!("it succeeded"),
    }
}

/// The error code of a write without space.
pub const DISK_FULL: u16 = 1021;

/// Returns whether a statement was refused for lack of space. Other errors fail the test.
pub fn is_refused(client: &mut Conn, sql: &str) -> bool {
    match client.query_drop(sql) {
        Ok(()) => false,
        Err(mysql::Error::MySqlError(error)) => {
            assert!(error.code == DISK_FULL && error.message.starts_with("Disk full ("), "{sql}: {error:?}");
            true
        }
        Err(error) => panic!("{sql:.300}: {error}"),
    }
}
