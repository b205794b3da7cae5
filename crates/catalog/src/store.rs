//! The catalog as a participant of commits, and its file.
//!
//! # States
//! [`CatalogVersions`] holds the state that statements read, and later states that are ordered but not
//! published. The file holds the catalog at the last checkpoint; recovery replays the changes since.
//!
//! # The file `catalog`, written as `catalog.new` and renamed
//! ```text
//! 0   8  magic "COHCAT02"
//! 8   8  LSN of the checkpoint
//! 16  8  version
//! 24  n  changes that build the catalog from an empty one
//! ..  4  CRC-32C of all preceding bytes
//! ```
//!
//! # On failure
//! A file whose checksum is wrong is refused; the error names it. If a checkpoint cannot be written, the old
//! file stays and the log keeps the changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId, TableId, Write};
use cohort_engine::{
    CheckpointTask, EngineError, Participant, PinnedFiles, Redo, SmallFiles, checkpoint_file,
};
use cohort_types::Collation;
use cohort_vfs::SharedFs;
use parking_lot::Mutex;

use crate::account::Account;
use crate::change::{CatalogChange, Undecodable};
use crate::model::{Catalog, Schema};
use crate::versions::CatalogVersions;

/// Id of the catalog in commit records. Never changes, because it is on disk.
pub const CATALOG: ParticipantId = ParticipantId(0);

const MAGIC: &[u8; 8] = b"COHCAT02";
/// The magic of builds without stored programs, whose files are read, too. They reject files of this build.
const MAGIC_BEFORE: &[u8; 8] = b"COHCAT01";
const FILE: &str = "catalog";
const FILE_NEW: &str = "catalog.new";
/// End of the error for accounts that this version does not read.
const OUTDATED: &str = "accounts in a format of builds before the first release, which this version does not \
                        read; convert the data directory as docs/upgrade.md says";
/// First index id for user tables; smaller ids are reserved for the server.
const FIRST_INDEX: IndexId = IndexId(16);

/// The catalog of a server.
pub struct CatalogStore {
    id: ParticipantId,
    fs: SharedFs,
    dir: PathBuf,
    versions: Arc<CatalogVersions>,
    durable: Arc<Mutex<Durable>>,
}

#[derive(Clone, Copy)]
struct Durable {
    lsn: Lsn,
    /// Catalog version in the file; 0 if the file is to be written even if nothing has changed.
    version: u64,
}

impl CatalogStore {
    /// Reads the file. Without one, starts with the schemas and the account of a new data directory.
    pub fn open(id: ParticipantId, fs: SharedFs, dir: &Path) -> Result<CatalogStore, EngineError> {
        let path = dir.join(FILE);
        let (catalog, lsn, version) = match fs.exists(&path) {
            true => {
                // A process that was killed may have renamed the file without this sync.
                fs.sync_dir(dir).map_err(EngineError::Io)?;
                read_file(&fs, &path)?
            }
            false => (initial(), Lsn(0), 0),
        };
        let durable = Durable { lsn, version };
        Ok(CatalogStore {
            id,
            fs,
            dir: dir.to_path_buf(),
            versions: Arc::new(CatalogVersions::new(catalog)),
            durable: Arc::new(Mutex::new(durable)),
        })
    }

    /// Returns the states that statements read. Only this store changes them.
    pub fn versions(&self) -> Arc<CatalogVersions> {
        Arc::clone(&self.versions)
    }
}

fn decode(redo: &Redo) -> Result<Vec<CatalogChange>, EngineError> {
    CatalogChange::decode(redo).map_err(|cause| match cause {
        Undecodable::Truncated => EngineError::Corrupt("catalog redo".to_owned()),
        Undecodable::Outdated => EngineError::Corrupt(format!("the log has {OUTDATED}")),
    })
}

/// Returns the catalog of a new data directory: as in MariaDB, `root` can log in locally without a password.
fn initial() -> Catalog {
    let mut catalog = Catalog { next_table: TableId(1), next_index: FIRST_INDEX, ..Catalog::default() };
    for name in ["mysql", "test"] {
        let schema = Schema::new(name, Collation::UTF8MB4_GENERAL_CI, "");
        catalog.schemas.insert(name.to_owned(), Arc::new(schema));
    }
    let root = Account::local_root();
    catalog.accounts.insert(root.name.clone(), Arc::new(root));
    catalog
}

/// Returns the catalog of a file, the LSN of its checkpoint, and the version that [`Durable`] has for it.
fn read_file(fs: &SharedFs, path: &Path) -> Result<(Catalog, Lsn, u64), EngineError> {
    let mut is_outdated = false;
    let is_of_before = checkpoint_file::read_bytes(fs, path)?.starts_with(MAGIC_BEFORE);
    let magic = if is_of_before { MAGIC_BEFORE } else { MAGIC };
    let read = checkpoint_file::read(fs, path, magic, |lsn, mut rest| {
        let version = rest.u64().ok()?;
        let mut catalog = Catalog::default();
        let changes = CatalogChange::decode(&Redo::new(rest.rest().to_vec()));
        is_outdated = changes == Err(Undecodable::Outdated);
        catalog.apply(CommitSeq(0), changes.ok()?);
        catalog.version = version;
        let in_file = if is_of_before || lsn == Lsn(0) { 0 } else { version };
        Some((catalog, lsn, in_file))
    });
    match is_outdated {
        true => Err(EngineError::Corrupt(format!("{} has {OUTDATED}", path.display()))),
        false => read,
    }
}

impl Participant for CatalogStore {
    fn id(&self) -> ParticipantId {
        self.id
    }

    fn place(&self) -> String {
        format!("the catalog file '{}'", self.dir.join(FILE).display())
    }

    fn commit_ordered(&self, seq: CommitSeq, redo: &[&Redo]) {
        self.versions.order(seq, |catalog| {
            for redo in redo {
                catalog.apply(seq, decode(redo).expect("encoded by this crate"));
            }
        });
    }

    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError> {
        Ok(Box::new(WriteFile {
            fs: self.fs.clone(),
            dir: self.dir.clone(),
            lsn,
            catalog: self.versions.ordered(),
            durable: self.durable.clone(),
        }))
    }

    fn durable_lsn(&self) -> Lsn {
        self.durable.lock().lsn
    }

    /// Returns 0: DDL is rare and small, so it never makes a checkpoint due.
    fn unflushed_bytes(&self) -> u64 {
        0
    }

    fn pin(&self, _since: Option<u64>) -> Result<Box<dyn PinnedFiles>, EngineError> {
        let path = self.dir.join(FILE);
        Ok(Box::new(SmallFiles::new(self.fs.clone(), move || Ok(vec![path.clone()]))))
    }

    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError> {
        for redo in redo {
            let changes = decode(redo)?;
            self.versions.replay(|catalog| catalog.apply(CommitSeq(0), changes));
        }
        Ok(())
    }
}

struct WriteFile {
    fs: SharedFs,
    dir: PathBuf,
    lsn: Lsn,
    catalog: Arc<Catalog>,
    durable: Arc<Mutex<Durable>>,
}

impl CheckpointTask for WriteFile {
    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        let version = self.catalog.version;
        // An unchanged catalog needs no new file: a replay from an older LSN finds no change of it.
        if self.durable.lock().version == version && version > 0 {
            return Ok(());
        }
        let mut bytes = checkpoint_file::begin(MAGIC, self.lsn);
        bytes.put_u64(version);
        bytes.extend_from_slice(&CatalogChange::encode(&self.catalog.to_changes()).bytes);
        checkpoint_file::seal(&mut bytes);
        let new = self.dir.join(FILE_NEW);
        self.fs.replace(&self.dir.join(FILE), &new, &bytes).map_err(EngineError::Io)?;
        *self.durable.lock() = Durable { lsn: self.lsn, version };
        Ok(())
    }
}
