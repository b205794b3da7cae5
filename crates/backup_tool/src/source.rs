//! Sources of a backup: a directory that BACKUP SERVER wrote, or a server.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cohort_backup_format::{MANIFEST, Manifest};
pub use cohort_clone::Sink;
use cohort_clone::stream;

use crate::client::{Account, Client};
use crate::failure::{Failure, Result};

/// Size of the parts in which files are read.
const PART_BYTES: usize = 1 << 20;

/// Sends the files of one backup as pieces: no byte twice, the manifest last.
pub trait Source {
    /// Returns the number of bytes to expect, if it is known.
    fn bytes(&self) -> Option<u64>;

    fn send(&mut self, sink: &mut Sink<'_>) -> Result<()>;

    /// Names the newest backup of the repository, which an incremental one continues.
    fn continue_from(&mut self, _newest: Option<&Manifest>) -> Result<()> {
        Ok(())
    }

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
        let manifest = Manifest::read(path).map_err(Failure::of_manifest)?;
        Ok(Directory { path: path.to_owned(), manifest })
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
        let whole = || std::iter::once(0..u64::MAX).collect::<Vec<_>>();
        let files = self.manifest.files.iter().map(|file| match file.crc32c {
            None if self.manifest.parent.is_some() => (
                file.path.as_str(),
                file.ranges.iter().map(|range| range.offset..range.offset + range.size).collect(),
            ),
            _ => (file.path.as_str(), whole()),
        });
        for (name, ranges) in files.chain([(MANIFEST, whole())]) {
            let path = self.path.join(name);
            let file = File::open(&path).map_err(|error| Failure::of_file(&path, error))?;
            for range in ranges {
                let mut offset = range.start;
                while offset < range.end {
                    let part = &mut part[..(range.end - offset).min(PART_BYTES as u64) as usize];
                    match file.read_at(part, offset) {
                        Ok(0) => break,
                        Ok(count) => {
                            let bytes = &part[..count];
                            // Holes stay holes.
                            if name == MANIFEST || range.end < u64::MAX || bytes.iter().any(|byte| *byte != 0)
                            {
                                sink(name, offset, bytes)?;
                            }
                            offset += count as u64;
                        }
                        Err(error) => return Err(Failure::of_file(&path, error)),
                    }
                }
            }
        }
        Ok(())
    }
}

/// A running server.
pub struct Server {
    client: Client,
    is_incremental: bool,
    /// Identifier of the backup that is continued.
    parent: Option<String>,
}

impl Server {
    pub fn connect(account: &Account) -> Result<Server> {
        Ok(Server::new(Client::connect(account)?))
    }

    /// Returns a source over a connection.
    pub fn new(client: Client) -> Server {
        Server { client, is_incremental: false, parent: None }
    }

    /// Makes the backup incremental: it continues the newest one of the repository.
    #[must_use]
    pub fn incremental(self, is_incremental: bool) -> Server {
        Server { is_incremental, ..self }
    }
}

impl Source for Server {
    fn bytes(&self) -> Option<u64> {
        None
    }

    fn continue_from(&mut self, newest: Option<&Manifest>) -> Result<()> {
        if self.is_incremental {
            let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            let id = newest.map(|newest| newest.id.clone()).filter(|id| is_id(id)).ok_or_else(|| {
                Failure::Refused(
                    "the repository has no backup that an incremental one can continue: take a full one"
                        .to_owned(),
                )
            })?;
            self.parent = Some(id);
        }
        Ok(())
    }

    fn send(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        stream(&mut self.client, self.parent.as_deref(), sink)
    }
}
