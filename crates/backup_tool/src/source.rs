//! Sources of a backup: a directory that BACKUP SERVER wrote, or a server.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cohort_backup_format::{MANIFEST, Manifest, ManifestError};

use crate::client::{Account, Client};
use crate::failure::{Failure, Result};

/// Size of the parts in which files are read.
const PART_BYTES: usize = 1 << 20;

/// A piece of a file: name, offset, bytes.
pub type Sink<'a> = dyn FnMut(&str, u64, &[u8]) -> Result<()> + 'a;

/// Sends the files of one backup as pieces: no byte twice, the manifest last.
pub trait Source {
    /// Returns the number of bytes to expect, if it is known.
    fn bytes(&self) -> Option<u64>;

    fn send(&mut self, sink: &mut Sink<'_>) -> Result<()>;

    /// Returns whether the state may be older than now.
    fn may_be_old(&self) -> bool {
        false
    }
}

/// A directory that BACKUP SERVER wrote.
pub struct Directory {
    path: PathBuf,
    manifest: Manifest,
}

impl Directory {
    pub fn open(path: &Path) -> Result<Directory> {
        let manifest = Manifest::read(path).map_err(of_manifest)?;
        Ok(Directory { path: path.to_owned(), manifest })
    }
}

/// Returns the failure of a manifest.
pub fn of_manifest(error: ManifestError) -> Failure {
    match error {
        ManifestError::Newer { .. } => Failure::Newer(error.to_string()),
        ManifestError::Damaged(..) => Failure::Damaged(error.to_string()),
        ManifestError::Io(..) => Failure::Failed(error.to_string()),
        ManifestError::Missing(..) | ManifestError::Unfinished(..) => Failure::Refused(error.to_string()),
    }
}

impl Source for Directory {
    fn bytes(&self) -> Option<u64> {
        Some(self.manifest.bytes())
    }

    fn may_be_old(&self) -> bool {
        true
    }

    fn send(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let mut part = vec![0; PART_BYTES];
        let names = self.manifest.files.iter().map(|file| file.path.as_str()).chain([MANIFEST]);
        for name in names {
            let path = self.path.join(name);
            let file = File::open(&path).map_err(|error| Failure::of_file(&path, error))?;
            let mut offset = 0;
            loop {
                match file.read_at(&mut part, offset) {
                    Ok(0) => break,
                    Ok(count) => {
                        let bytes = &part[..count];
                        // Holes stay holes.
                        if name == MANIFEST || bytes.iter().any(|byte| *byte != 0) {
                            sink(name, offset, bytes)?;
                        }
                        offset += count as u64;
                    }
                    Err(error) => return Err(Failure::of_file(&path, error)),
                }
            }
        }
        Ok(())
    }
}

/// Settings of the session: the server waits while the repository is slow, does not end a long statement, and
/// sends names as they are.
const SETTINGS: &[&str] =
    &["SET SESSION net_write_timeout = 3600", "SET SESSION max_statement_time = 0", "SET NAMES utf8mb4"];
const STREAM: &str = "BACKUP SERVER TO STREAM";

/// A running server.
pub struct Server {
    client: Client,
}

impl Server {
    pub fn connect(account: &Account) -> Result<Server> {
        Ok(Server::new(Client::connect(account)?))
    }

    /// Returns a source over a connection.
    pub fn new(client: Client) -> Server {
        Server { client }
    }
}

impl Source for Server {
    fn bytes(&self) -> Option<u64> {
        None
    }

    fn send(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        SETTINGS.iter().try_for_each(|sql| self.client.execute(sql))?;
        self.client.query(STREAM, |row| {
            let [Some(file), Some(offset), Some(data)] = &row[..] else { return Err(malformed()) };
            let file = std::str::from_utf8(file).map_err(|_| malformed())?;
            let offset = std::str::from_utf8(offset).ok().and_then(|digits| digits.parse().ok());
            sink(file, offset.ok_or_else(malformed)?, data)
        })
    }
}

fn malformed() -> Failure {
    Failure::Failed(format!("{STREAM}: the server sent a row of another form"))
}
