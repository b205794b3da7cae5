//! Proves a backup: restores it into a scratch directory, starts a server in it, and checks every table.
//!
//! The server listens on a socket file only, and does not start replication or events. Its account for this
//! program is created in the scratch copy by an `init_file`. The scratch directory is removed if all is well.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::archive::recovery::server_options;
use crate::client::{Account, Client};
use crate::failure::{Failure, Result};
use crate::hex;
use crate::key::random;
use crate::progress::Progress;
use crate::repository::Repository;
use crate::restore::restore;

/// Recovery of a large log takes its time.
const START_MAX: Duration = Duration::from_secs(3600);
const PAUSE: Duration = Duration::from_millis(100);
const USER: &str = "cohort-backup-verify";
const TABLES: &str = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
    AND table_schema NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys') ORDER BY 1, 2";

/// The outcome of a proof.
#[derive(Debug, Default)]
pub struct Proven {
    pub backup: String,
    pub tables: u64,
    pub rows: u64,
    /// Messages of CHECK TABLE other than OK.
    pub findings: Vec<String>,
}

/// A server in the scratch directory; dropped, it is killed.
struct Scratch {
    process: Child,
    files: [PathBuf; 2],
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The socket and the statements, of which the latter name a password that is worth nothing now.
        self.files.iter().for_each(|file| drop(std::fs::remove_file(file)));
    }
}

/// Restores a backup into a new or empty directory and checks its tables with a server.
pub fn prove(
    repository: &Repository,
    backup: &str,
    directory: &Path,
    cohortd: &Path,
    progress: &Progress,
) -> Result<Proven> {
    // The server takes relative names as names below its data directory.
    let directory = std::path::absolute(directory).map_err(|error| Failure::of_file(directory, error))?;
    let directory = directory.as_path();
    let catalogue = restore(repository, backup, directory, progress)?.catalogue;
    let password = hex::encode(&random::<16>());
    let name_of = |ending: &str| PathBuf::from(format!("{}.{ending}", directory.display()));
    let (socket, statements) = (name_of("sock"), name_of("sql"));
    let text = format!(
        "CREATE OR REPLACE USER `{USER}`@localhost IDENTIFIED BY '{password}';\n\
         GRANT SELECT ON *.* TO `{USER}`@localhost;\n"
    );
    std::fs::File::create(&statements)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::of_file(&statements, error))?;
    let mut command = Command::new(cohortd);
    command.args(["--no-defaults", "--skip-networking", "--skip-slave-start"]);
    command.arg(format!("--datadir={}", directory.display()));
    command.arg(format!("--socket={}", socket.display()));
    command.arg(format!("--init-file={}", statements.display()));
    command.args(server_options(&catalogue));
    let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn();
    let process = process.map_err(|error| Failure::of_file(cohortd, error))?;
    let mut scratch = Scratch { process, files: [socket.clone(), statements] };
    let account = Account { socket: Some(socket), user: USER.to_owned(), password, ..Account::default() };
    let mut client = connect(&mut scratch, &account)?;
    let mut proven = Proven { backup: catalogue.name, ..Proven::default() };
    let mut tables = Vec::new();
    client.query(TABLES, |row| {
        let quoted = row
            .into_iter()
            .flatten()
            .map(|name| format!("`{}`", String::from_utf8_lossy(&name).replace('`', "``")));
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
        std::fs::remove_dir_all(directory).map_err(|error| Failure::of_file(directory, error))?;
    }
    Ok(proven)
}

fn connect(scratch: &mut Scratch, account: &Account) -> Result<Client> {
    let end = Instant::now() + START_MAX;
    loop {
        let failure = match Client::connect(account) {
            Ok(client) => return Ok(client),
            Err(failure) => failure,
        };
        if let Ok(Some(status)) = scratch.process.try_wait() {
            return Err(Failure::Damaged(format!("the server in the scratch directory ended: {status}")));
        }
        if Instant::now() > end {
            return Err(failure);
        }
        std::thread::sleep(PAUSE);
    }
}
