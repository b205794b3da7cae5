//! Proves a backup: restores it into a scratch directory, starts a server in it, and checks every table.
//!
//! The scratch directory is removed if all is well.

use std::path::Path;

use crate::client::{Account, Client, quoted, quoted_name};
use crate::failure::Result;
use crate::progress::Progress;
use crate::repository::Repository;
use crate::restore::restore;
use crate::scratch::{self, Scratch};

const TABLES: &str = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
    AND table_schema NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys') ORDER BY 1, 2";

/// The outcome of a proof.
#[derive(Debug, Default)]
pub struct Proven {
    pub backup: String,
    /// Identifier in the manifest, by which the server knows the backup.
    pub id: String,
    pub tables: u64,
    pub rows: u64,
    /// Messages of CHECK TABLE other than OK.
    pub findings: Vec<String>,
}

/// Reports the proof to the server that took the backup, for its metrics.
pub fn report(proven: &Proven, account: &Account) -> Result<()> {
    let id = quoted(&proven.id);
    Client::connect(account)?.execute(&format!("BACKUP SERVER PROVEN {id}"))
}

/// Restores a backup into a new or empty directory and checks its tables with a server.
pub fn prove(
    repository: &Repository,
    backup: &str,
    directory: &Path,
    cohortd: &Path,
    progress: &Progress,
) -> Result<Proven> {
    let catalogue = restore(repository, backup, directory, progress)?.catalogue;
    let (scratch, mut client) = Scratch::start(&catalogue, directory, cohortd)?;
    let mut proven = Proven { backup: catalogue.name, id: catalogue.manifest.id, ..Proven::default() };
    let mut tables = Vec::new();
    client.query(TABLES, |row| {
        let quoted = row.iter().flatten().map(|name| quoted_name(&String::from_utf8_lossy(name)));
        tables.push(quoted.collect::<Vec<_>>().join("."));
        Ok(())
    })?;
    for table in tables {
        client.query(&format!("CHECK TABLE {table}"), |row| {
            let words: Vec<_> =
                row.iter().flatten().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            if words[2..] != ["status", "OK"] {
                proven.findings.push(words.join(" "));
            }
            Ok(())
        })?;
        client.query(&format!("SELECT COUNT(*) FROM {table}"), |row| {
            let count =
                row.first().and_then(Option::as_ref).and_then(|n| std::str::from_utf8(n).ok()?.parse().ok());
            proven.rows += count.unwrap_or(0);
            Ok(())
        })?;
        proven.tables += 1;
    }
    drop(scratch);
    if proven.findings.is_empty() {
        scratch::remove(directory)?;
    }
    Ok(proven)
}
