//! The stream of a running server's backup.

use crate::client::Client;
use crate::failure::{Failure, Result};

/// A piece of a file: name, offset, bytes.
pub type Sink<'a> = dyn FnMut(&str, u64, &[u8]) -> Result<()> + 'a;

/// Settings of the session: the server waits while the receiver is slow, does not end a long statement, and
/// sends names as they are.
const SETTINGS: &[&str] =
    &["SET SESSION net_write_timeout = 3600", "SET SESSION max_statement_time = 0", "SET NAMES utf8mb4"];
const STREAM: &str = "BACKUP SERVER TO STREAM";

/// Calls `sink` for each piece of a backup: full, or incremental from the parent with this identifier, which
/// consists of digits.
pub fn stream(client: &mut Client, parent: Option<&str>, sink: &mut Sink<'_>) -> Result<()> {
    SETTINGS.iter().try_for_each(|sql| client.execute(sql))?;
    let sql = match parent {
        Some(parent) => format!("{STREAM} INCREMENTAL FROM '{parent}'"),
        None => STREAM.to_owned(),
    };
    client.query(&sql, |row| {
        let [Some(file), Some(offset), Some(data)] = &row[..] else { return Err(malformed()) };
        let file = std::str::from_utf8(file).map_err(|_| malformed())?;
        let offset = std::str::from_utf8(offset).ok().and_then(|digits| digits.parse().ok());
        sink(file, offset.ok_or_else(malformed)?, data)
    })
}

fn malformed() -> Failure {
    Failure::Failed(format!("{STREAM}: the server sent a row of another form"))
}
