//! A server in a restored directory, for this program alone.
//!
//! It listens on a socket file only, and does not start replication or events. Its account for this program
//! is created in the scratch copy by an `init_file`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::archive::recovery::server_options;
use crate::catalogue::Catalogue;
use crate::client::{Account, Client};
use crate::failure::{Failure, Result};
use crate::hex;
use crate::key::random;

/// Recovery of a large log takes its time.
const START_MAX: Duration = Duration::from_secs(3600);
const PAUSE: Duration = Duration::from_millis(100);
const USER: &str = "cohort-backup-scratch";

/// A server in a scratch directory; dropped, it is killed.
pub struct Scratch {
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

impl Scratch {
    /// Starts a server in a directory that was restored from a backup, and connects.
    pub fn start(catalogue: &Catalogue, directory: &Path, server: &Path) -> Result<(Scratch, Client)> {
        // The server takes relative names as names below its data directory.
        let directory = std::path::absolute(directory).map_err(|error| Failure::of_file(directory, error))?;
        let directory = directory.as_path();
        let password = hex::encode(&random::<16>());
        let name_of = |ending: &str| PathBuf::from(format!("{}.{ending}", directory.display()));
        let (socket, statements) = (name_of("sock"), name_of("sql"));
        let text = format!(
            "CREATE OR REPLACE USER `{USER}`@localhost IDENTIFIED BY '{password}';\n\
             GRANT SELECT, TRIGGER, SHOW VIEW ON *.* TO `{USER}`@localhost;\n"
        );
        std::fs::File::create(&statements)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| Failure::of_file(&statements, error))?;
        let mut command = Command::new(server);
        command.args(["--no-defaults", "--skip-networking", "--skip-slave-start"]);
        command.arg(format!("--datadir={}", directory.display()));
        command.arg(format!("--socket={}", socket.display()));
        command.arg(format!("--init-file={}", statements.display()));
        command.args(server_options(catalogue));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn();
        let process = process.map_err(|error| Failure::of_file(server, error))?;
        let mut scratch = Scratch { process, files: [socket.clone(), statements] };
        let account = Account { socket: Some(socket), user: USER.to_owned(), password, ..Account::default() };
        let client = scratch.connect(&account)?;
        Ok((scratch, client))
    }

    fn connect(&mut self, account: &Account) -> Result<Client> {
        let end = Instant::now() + START_MAX;
        loop {
            let failure = match Client::connect(account) {
                Ok(client) => return Ok(client),
                Err(failure) => failure,
            };
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(Failure::Damaged(format!("the server in the scratch directory ended: {status}")));
            }
            if Instant::now() > end {
                return Err(failure);
            }
            std::thread::sleep(PAUSE);
        }
    }
}
