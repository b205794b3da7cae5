//! A server in a restored directory, for this program alone.
//!
//! It listens on a socket file only, and does not start replication or events. Its account for this program
//! is created in the scratch copy by an `init_file`. Socket and statements are in a new directory that only
//! this user can enter. The server is killed when this program ends.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
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
    _files: Private,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A new directory for socket and statements; dropped, it is removed.
struct Private(PathBuf);

impl Private {
    fn create() -> Result<Private> {
        let path = std::env::temp_dir().join(format!("cohort-backup-{}", hex::encode(&random::<8>())));
        // A directory that exists is never used.
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.map_err(|error| Failure::of_file(&path, error)).map(|()| Private(path))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes a directory that is no longer needed. Of a symbolic link the directory is removed, not the link; a
/// directory that cannot be removed, such as a mount point, is emptied.
pub fn remove(directory: &Path) -> Result<()> {
    let failed = |error| Failure::of_file(directory, error);
    let real = directory.canonicalize().map_err(failed)?;
    for entry in std::fs::read_dir(&real).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_directory = entry.file_type().map_err(failed)?.is_dir();
        let path = entry.path();
        let removed = if is_directory { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.map_err(|error| Failure::of_file(&path, error))?;
    }
    // Empty, it may stay.
    let _ = std::fs::remove_dir(&real);
    Ok(())
}

impl Scratch {
    /// Starts a server in a directory that was restored from a backup, and connects.
    pub fn start(catalogue: &Catalogue, directory: &Path, server: &Path) -> Result<(Scratch, Client)> {
        // The server takes relative names as names below its data directory.
        let directory = std::path::absolute(directory).map_err(|error| Failure::of_file(directory, error))?;
        let directory = directory.as_path();
        let password = hex::encode(&random::<16>());
        let private = Private::create()?;
        let (socket, statements) = (private.0.join("socket"), private.0.join("init.sql"));
        let text = format!(
            "CREATE OR REPLACE USER `{USER}`@localhost IDENTIFIED BY '{password}';\n\
             GRANT SELECT, TRIGGER, SHOW VIEW ON *.* TO `{USER}`@localhost;\n"
        );
        std::fs::File::create_new(&statements)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| Failure::of_file(&statements, error))?;
        let mut command = Command::new(server);
        command.args(["--no-defaults", "--skip-networking", "--skip-slave-start"]);
        command.arg(format!("--datadir={}", directory.display()));
        command.arg(format!("--socket={}", socket.display()));
        command.arg(format!("--init-file={}", statements.display()));
        command.args(server_options(catalogue));
        // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                let signal = Some(rustix::process::Signal::KILL);
                Ok(rustix::process::set_parent_process_death_signal(signal)?)
            });
        }
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn();
        let process = process.map_err(|error| Failure::of_file(server, error))?;
        let mut scratch = Scratch { process, _files: private };
        let account = Account { socket: Some(socket), user: USER.to_owned(), password, ..Account::default() };
        let client = scratch.connect(&account)?;
        Ok((scratch, client))
    }

    fn connect(&mut self, account: &Account) -> Result<Client> {
        let end = Instant::now() + START_MAX;
        loop {
            let failure = match Client::connect(account) {
                Ok(client) => return Ok(client),
                // The server runs statements of `init_file` before it accepts clients.
                Err(Failure::Refused(why)) => {
                    return Err(Failure::Failed(format!("init_file of the scratch server failed: {why}")));
                }
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
