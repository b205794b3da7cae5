//! A repository: its description, and its objects by name.
//!
//! ```text
//! cohort-repository     its description: a line of JSON, and the SHA-256 of that line in hexadecimal digits
//! chunks/AB/ABCD..      contents of files, named by their hash
//! backups/NAME          catalogues, each written after all chunks of its backup
//! locks/..              who uses the repository (module `lock`)
//! ```

use std::collections::HashMap;
use std::path::Path;

use ring::digest;
use serde::{Deserialize, Serialize};

use crate::catalogue::Catalogue;
use crate::failure::{Failure, Result};
use crate::hex;
use crate::key::{ChunkId, Keys, MasterKey, RepositoryId, random};
use crate::object::{self, Kind};
use crate::store::{Put, Store};

/// The repository format that this program writes, and the newest that it reads.
pub const VERSION: u32 = 1;
const DESCRIPTION: &str = "cohort-repository";
const DESCRIPTION_BYTES_MAX: usize = 64 << 10;
/// Folder of the catalogues.
pub const BACKUPS: &str = "backups";
/// Folder of the chunks.
pub const CHUNKS: &str = "chunks";

/// The first line of the object `cohort-repository`. All versions begin with the first two fields.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    format: String,
    version: u32,
    id: String,
    encryption: String,
    /// Identifier of the key; empty without encryption.
    key: String,
}

const FORMAT: &str = "cohort-repository";
const AES_256_GCM: &str = "aes-256-gcm";
const NONE: &str = "none";

/// An open repository.
pub struct Repository {
    store: Store,
    keys: Keys,
}

/// Returns the name of a chunk's object.
pub fn chunk_name(id: &ChunkId) -> String {
    let digits = hex::encode(id);
    format!("{CHUNKS}/{}/{digits}", &digits[..2])
}

fn chunk_of(name: &str) -> Option<ChunkId> {
    let id = hex::decode(name.rsplit('/').next()?)?;
    (chunk_name(&id) == name).then_some(id)
}

/// Returns the name of a catalogue's object.
pub fn catalogue_name(backup: &str) -> String {
    format!("{BACKUPS}/{backup}")
}

impl Repository {
    /// Creates a repository in an empty place. The key is written first: a repository never lacks its key.
    pub fn init(store: Store, key_file: Option<&Path>) -> Result<Repository> {
        if store.size(DESCRIPTION)?.is_some() {
            return Err(exists(&store));
        }
        let id: RepositoryId = random();
        let keys = match key_file {
            Some(path) => {
                let key = MasterKey::create(id);
                key.write(path)?;
                key.keys()
            }
            None => Keys::none(),
        };
        let description = Description {
            format: FORMAT.to_owned(),
            version: VERSION,
            id: hex::encode(&id),
            encryption: if keys.are_present() { AES_256_GCM } else { NONE }.to_owned(),
            key: keys.id().map_or(String::new(), |id| hex::encode(&id)),
        };
        let line = serde_json::to_string(&description).expect("all keys are strings");
        let text = format!("{line}\n{}\n", checksum(&line));
        match store.put(DESCRIPTION, text.as_bytes())? {
            Put::Created => Ok(Repository { store, keys }),
            Put::Exists
                if store.get(DESCRIPTION, DESCRIPTION_BYTES_MAX)?.as_deref() == Some(text.as_bytes()) =>
            {
                Ok(Repository { store, keys })
            }
            Put::Exists => Err(exists(&store)),
        }
    }

    /// Opens a repository with the key file that belongs to it.
    pub fn open(store: Store, key_file: Option<&Path>) -> Result<Repository> {
        let place = store.place().to_owned();
        let Some(text) = store.get(DESCRIPTION, DESCRIPTION_BYTES_MAX)? else {
            return Err(Failure::Refused(format!(
                "{place} is not a repository: it has no '{DESCRIPTION}'. `cohort-backup init` creates one"
            )));
        };
        let description = describe(&place, &text)?;
        let id: RepositoryId = hex::decode(&description.id).unwrap_or_default();
        let keys = match (description.encryption.as_str(), key_file) {
            (NONE, None) => Keys::none(),
            (NONE, Some(_)) => {
                return Err(Failure::Key(format!(
                    "repository {place} is not encrypted, but a key file is given. If it once was encrypted, its \
                     '{DESCRIPTION}' was replaced"
                )));
            }
            (AES_256_GCM, Some(path)) => {
                let key = MasterKey::read(path)?;
                let keys = key.keys();
                if key.repository() != id || keys.id() != hex::decode(&description.key) {
                    return Err(Failure::Key(format!(
                        "the key file {} belongs to another repository than {place}",
                        path.display()
                    )));
                }
                keys
            }
            (AES_256_GCM, None) => {
                return Err(Failure::Key(format!(
                    "repository {place} is encrypted: name its key file with --key-file or COHORT_BACKUP_KEY_FILE"
                )));
            }
            (other, _) => {
                return Err(Failure::Newer(format!(
                    "repository {place}: the encryption '{other}' is unknown"
                )));
            }
        };
        Ok(Repository { store, keys })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Writes an object of a name that only this call uses.
    pub fn write(&self, kind: Kind, name: &str, contents: &[u8]) -> Result<u64> {
        let object = object::encode(kind, name, contents, &self.keys);
        let is_written = match self.store.put(name, &object)? {
            Put::Created => true,
            // The first attempt had succeeded, and its reply was lost.
            Put::Exists => self.stored(kind, name)? == object,
        };
        match is_written {
            true => Ok(object.len() as u64),
            false => Err(Failure::Failed(format!("repository {}: '{name}' exists", self.store.place()))),
        }
    }

    /// Writes an object, or accepts the one that is there if it has the same contents, and asks the store for
    /// its size. One that cannot be read is replaced. `None` if there is one with other contents.
    pub fn write_same(&self, kind: Kind, name: &str, contents: &[u8]) -> Result<Option<u64>> {
        let object = object::encode(kind, name, contents, &self.keys);
        for _ in 0..2 {
            if self.store.put(name, &object)? == Put::Created
                && self.store.size(name)? == Some(object.len() as u64)
            {
                return Ok(Some(object.len() as u64));
            }
            let found = self.stored(kind, name)?;
            let size = found.len() as u64;
            match object::decode(kind, name, found, &self.keys) {
                Ok(found) => return Ok((found == contents).then_some(size)),
                Err(_) => self.store.delete(name)?,
            }
        }
        Err(Failure::Failed(format!(
            "repository {}: '{name}' was written and cannot be read back",
            self.store.place()
        )))
    }

    /// Reads an object as it is stored; nothing if there is none, or one that is too large.
    pub fn stored(&self, kind: Kind, name: &str) -> Result<Vec<u8>> {
        match self.store.get(name, object::stored_bytes_max(kind)) {
            Err(Failure::Damaged(_)) => Ok(Vec::new()),
            found => Ok(found?.unwrap_or_default()),
        }
    }

    /// Reads an object and checks it; `None` if there is none.
    pub fn read(&self, kind: Kind, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(object) = self.store.get(name, object::stored_bytes_max(kind))? else { return Ok(None) };
        let contents = object::decode(kind, name, object, &self.keys);
        contents.map(Some).map_err(|why| Failure::Damaged(format!("the object '{name}' is unusable: {why}")))
    }

    /// Reads a chunk and checks that its contents are those that its name stands for.
    pub fn read_chunk(&self, id: &ChunkId) -> Result<Vec<u8>> {
        let name = chunk_name(id);
        let missing = || Failure::Damaged(format!("the object '{name}' is missing"));
        let contents = self.read(Kind::Chunk, &name)?.ok_or_else(missing)?;
        match self.keys.name(&contents) == *id {
            true => Ok(contents),
            false => Err(Failure::Damaged(format!("the object '{name}' is unusable: it has other contents"))),
        }
    }

    /// Returns the names of all backups, oldest first. Files that others left there are no backups.
    pub fn backups(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.store.list(BACKUPS, |found| {
            let name = found.name.strip_prefix(BACKUPS).and_then(|name| name.strip_prefix('/'));
            names.extend(name.filter(|name| Catalogue::is_name(name)).map(str::to_owned));
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// Reads the catalogue of a backup.
    pub fn catalogue(&self, backup: &str) -> Result<Catalogue> {
        let contents = self.read(Kind::Catalogue, &catalogue_name(backup))?;
        let contents = contents.ok_or_else(|| {
            Failure::Refused(format!("repository {} has no backup {backup}", self.store.place()))
        })?;
        Catalogue::decode(backup, &contents)
    }

    /// Returns the backup of this name; `latest` is the newest.
    pub fn find(&self, backup: &str) -> Result<Catalogue> {
        match backup {
            "latest" => match self.backups()?.last() {
                Some(newest) => self.catalogue(newest),
                None => Err(Failure::Refused(format!("repository {} has no backups", self.store.place()))),
            },
            // Names have no separators, so that they cannot name other objects.
            name if name.contains('/') => {
                Err(Failure::Refused(format!("'{name}' is not the name of a backup")))
            }
            name => self.catalogue(name),
        }
    }

    /// Returns the sizes of all stored chunks.
    pub fn stored_chunks(&self) -> Result<HashMap<ChunkId, u64>> {
        let mut chunks = HashMap::new();
        self.store.list(CHUNKS, |found| {
            if let Some(id) = chunk_of(&found.name) {
                chunks.insert(id, found.bytes);
            }
        })?;
        Ok(chunks)
    }
}

fn exists(store: &Store) -> Failure {
    Failure::Refused(format!("{} is a repository already; nothing was changed", store.place()))
}

fn checksum(line: &str) -> String {
    hex::encode(digest::digest(&digest::SHA256, line.as_bytes()).as_ref())
}

/// Decodes the description. A newer version keeps the two lines and the first two fields.
fn describe(place: &str, text: &[u8]) -> Result<Description> {
    let damaged = || {
        Failure::Damaged(format!(
            "repository {place}: the object '{DESCRIPTION}' is damaged. Put it back from a copy of the repository"
        ))
    };
    let text = std::str::from_utf8(text).map_err(|_| damaged())?;
    let (line, hash) = text.strip_suffix('\n').and_then(|text| text.split_once('\n')).ok_or_else(damaged)?;
    if checksum(line) != hash {
        return Err(damaged());
    }
    let value: serde_json::Value = serde_json::from_str(line).map_err(|_| damaged())?;
    if value["format"] != FORMAT {
        return Err(damaged());
    }
    match value["version"].as_u64() {
        Some(version) if version > u64::from(VERSION) => Err(Failure::Newer(format!(
            "repository {place} has format version {version}; this program reads up to version {VERSION}. Use a newer \
             cohort-backup"
        ))),
        Some(_) => serde_json::from_value(value).map_err(|_| damaged()),
        None => Err(damaged()),
    }
}
