//! The files in which checkpoints store the prepared XA branches.
//!
//! # Files
//! `xa-prepared` (the list), written as `xa-prepared.new` and renamed:
//! ```text
//! 0   8  magic "COHXA002"
//! 8   8  LSN of the checkpoint
//! 16  n  for each prepared branch: u8 0 | lenenc redo of its PREPARE, or
//!                                  u8 1 | u64 number | u64 bytes | u32 CRC-32C of the file `xa-branch.NUMBER`
//! ..  4  CRC-32C of everything before
//! ```
//! `xa-branch.NUMBER`: the redo of one branch that is not small. It is written once, by the first checkpoint
//! that finds the branch prepared; later checkpoints refer to it. So the bytes that a checkpoint writes do
//! not grow with the size of branches that stay.
//!
//! # States of a branch's file
//! ```text
//! none --finish: written, synced--> on disk --finish: the list names it--> listed
//!                                      |            --the branch has ended, a list without it--> removed
//!                                      +--crash before the list--> removed at the next start
//! ```
//! # On failure
//! A file that is missing or has a wrong checksum is refused with its name. If a checkpoint cannot be
//! written, the old list stays, with the files that it names; the log keeps the branches.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{Lsn, Write};
use cohort_engine::{CheckpointTask, EngineError, PinnedFiles, SmallFiles, checkpoint_file};
use cohort_vfs::{OpenMode, SharedFs};
use parking_lot::Mutex;

use crate::xa_body::{BodyFile, XaBody, XaChange};

const MAGIC: &[u8; 8] = b"COHXA002";
const LIST: &str = "xa-prepared";
const LIST_NEW: &str = "xa-prepared.new";
const BODY: &str = "xa-branch.";
/// Minimum size of a branch with its own file; smaller branches are in the list itself.
const OWN_FILE_BYTES_MIN: usize = 16 << 10;

const IN_LIST: u8 = 0;
const IN_FILE: u8 = 1;

/// The files of one data directory.
pub(crate) struct XaFile {
    fs: SharedFs,
    dir: PathBuf,
    state: Mutex<State>,
}

/// The state on disk.
struct State {
    lsn: Lsn,
    /// Version of the branches in the list; 0 without a list.
    version: u64,
    /// Numbers of the branches' files that the list names, or that a later, failed checkpoint has written.
    files: BTreeSet<u64>,
    next_number: u64,
}

fn corrupt(path: &Path) -> EngineError {
    EngineError::Corrupt(format!(
        "{}: its bytes fail their checksum; restore the file from a backup",
        path.display()
    ))
}

fn number_of(name: &Path) -> Option<u64> {
    name.to_str()?.strip_prefix(BODY)?.parse().ok()
}

impl XaFile {
    /// Reads the list and the files that it names, and removes other branch files. The branches read get this
    /// version.
    pub fn open(fs: SharedFs, dir: &Path, version: u64) -> Result<(XaFile, Vec<XaBody>), EngineError> {
        let file = XaFile {
            fs,
            dir: dir.to_path_buf(),
            state: Mutex::new(State { lsn: Lsn(0), version: 0, files: BTreeSet::new(), next_number: 1 }),
        };
        let mut bodies = Vec::new();
        if file.fs.exists(&file.path()) {
            // The process may have been killed after renaming the list and before this sync.
            file.fs.sync_dir(dir).map_err(EngineError::Io)?;
            let lsn = file.read_list(&mut bodies)?;
            let files: BTreeSet<u64> =
                bodies.iter().filter_map(|body| body.file()).map(|it| it.number).collect();
            let next_number = files.last().map_or(1, |last| last + 1);
            *file.state.lock() = State { lsn, version, files, next_number };
        }
        file.remove_unnamed()?;
        Ok((file, bodies))
    }

    /// Returns the path of the list.
    pub fn path(&self) -> PathBuf {
        self.dir.join(LIST)
    }

    fn path_of(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{BODY}{number}"))
    }

    pub fn durable_lsn(&self) -> Lsn {
        self.state.lock().lsn
    }

    /// Returns whether the list has this version.
    pub fn has_version(&self, version: u64) -> bool {
        self.state.lock().version == version
    }

    /// Returns the task that writes these branches. `bodies` may be empty if the version is already on disk.
    pub fn checkpoint(
        self: &Arc<Self>,
        lsn: Lsn,
        version: u64,
        bodies: Vec<XaBody>,
    ) -> Box<dyn CheckpointTask> {
        Box::new(WriteFiles { file: Arc::clone(self), lsn, version, bodies })
    }

    /// Returns the pin of the list and of the files that it names. The list does not change while it is used.
    pub fn pin(self: &Arc<Self>) -> Box<dyn PinnedFiles> {
        let file = Arc::clone(self);
        let paths = move || {
            // A failed checkpoint may have written files that no list names. They do no harm.
            let bodies: Vec<PathBuf> = file.state.lock().files.iter().map(|n| file.path_of(*n)).collect();
            Ok([file.path()].into_iter().chain(bodies).collect())
        };
        Box::new(SmallFiles::new(self.fs.clone(), paths))
    }

    fn read_list(&self, bodies: &mut Vec<XaBody>) -> Result<Lsn, EngineError> {
        let path = self.path();
        let bytes = checkpoint_file::read_bytes(&self.fs, &path)?;
        let (lsn, entries) = decode_list(&bytes).ok_or_else(|| corrupt(&path))?;
        for entry in entries {
            bodies.push(match entry {
                Entry::Redo(redo) => prepared(redo).ok_or_else(|| corrupt(&path))?,
                Entry::File { file, bytes } => self.read_body(file, bytes)?,
            });
        }
        Ok(lsn)
    }

    fn read_body(&self, file: BodyFile, bytes: u64) -> Result<XaBody, EngineError> {
        let path = self.path_of(file.number);
        let redo = checkpoint_file::read_bytes(&self.fs, &path)?;
        let is_whole = redo.len() as u64 == bytes && crc32c::crc32c(&redo) == file.crc;
        let body = prepared(&redo).filter(|_| is_whole).ok_or_else(|| corrupt(&path))?;
        body.set_file(file);
        Ok(body)
    }

    /// Removes branch files that a crash has left without an entry in the list.
    fn remove_unnamed(&self) -> Result<(), EngineError> {
        let found = self.fs.list(&self.dir).map_err(EngineError::Io)?;
        let state = self.state.lock();
        for number in found.iter().filter_map(|name| number_of(name)) {
            if !state.files.contains(&number) {
                self.fs.remove(&self.path_of(number)).map_err(EngineError::Io)?;
            }
        }
        Ok(())
    }

    /// Writes the branch into its own file, if it has none and is not small.
    fn write_body(&self, body: &XaBody) -> Result<(), EngineError> {
        if body.file().is_some() || !has_own_file(body) {
            return Ok(());
        }
        let redo = body.bytes();
        let number = {
            let mut state = self.state.lock();
            let number = state.next_number;
            state.next_number += 1;
            state.files.insert(number);
            number
        };
        let path = self.path_of(number);
        if let Err(error) = self.write_whole(&path, redo) {
            // A useless file must not fill a full disk.
            let _ = self.fs.remove(&path);
            return Err(EngineError::Io(error));
        }
        body.set_file(BodyFile { number, crc: crc32c::crc32c(redo) });
        Ok(())
    }

    fn write_whole(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.fs.open(path, OpenMode::CreateOrOpen)?;
        // A number may be used again if its file could not be removed.
        file.set_len(0)?;
        file.write_at(bytes, 0)?;
        file.sync_data()
    }

    /// Removes the files of branches that are no longer in the list.
    fn remove_ended(&self, listed: &BTreeSet<u64>) {
        let mut state = self.state.lock();
        let files = std::mem::take(&mut state.files);
        for number in files.difference(listed) {
            // If it cannot be removed now, the next start removes it.
            let _ = self.fs.remove(&self.path_of(*number));
        }
        state.files = files.intersection(listed).copied().collect();
    }
}

struct WriteFiles {
    file: Arc<XaFile>,
    lsn: Lsn,
    version: u64,
    bodies: Vec<XaBody>,
}

impl CheckpointTask for WriteFiles {
    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        let WriteFiles { file, lsn, version, bodies } = *self;
        // Nothing has changed since the list was written, so replay from its older LSN gives the same
        // branches. A server that never used XA has no list.
        let is_written = {
            let state = file.state.lock();
            (state.lsn == Lsn(0) && bodies.is_empty()) || state.version == version
        };
        if is_written {
            return Ok(());
        }
        let has_new = bodies.iter().any(|body| body.file().is_none() && has_own_file(body));
        bodies.iter().try_for_each(|body| file.write_body(body))?;
        if has_new {
            // The list must name only files whose names are durable.
            file.fs.sync_dir(&file.dir).map_err(EngineError::Io)?;
        }
        let list = encode_list(lsn, &bodies);
        file.fs.replace(&file.path(), &file.dir.join(LIST_NEW), &list).map_err(EngineError::Io)?;
        {
            let mut state = file.state.lock();
            (state.lsn, state.version) = (lsn, version);
        }
        file.remove_ended(&bodies.iter().filter_map(|body| body.file()).map(|it| it.number).collect());
        Ok(())
    }
}

fn has_own_file(body: &XaBody) -> bool {
    body.bytes().len() >= OWN_FILE_BYTES_MIN
}

/// An entry of the list.
enum Entry<'b> {
    Redo(&'b [u8]),
    File { file: BodyFile, bytes: u64 },
}

fn encode_list(lsn: Lsn, bodies: &[XaBody]) -> Vec<u8> {
    let mut bytes = checkpoint_file::begin(MAGIC, lsn);
    for body in bodies {
        match body.file() {
            None => {
                bytes.put_u8(IN_LIST);
                bytes.put_lenenc_bytes(body.bytes());
            }
            Some(file) => {
                bytes.put_u8(IN_FILE);
                bytes.put_u64(file.number);
                bytes.put_u64(body.bytes().len() as u64);
                bytes.put_u32(file.crc);
            }
        }
    }
    checkpoint_file::seal(&mut bytes);
    bytes
}

fn decode_list(bytes: &[u8]) -> Option<(Lsn, Vec<Entry<'_>>)> {
    let (lsn, mut r) = checkpoint_file::open(MAGIC, bytes)?;
    let mut entries = Vec::new();
    while !r.is_empty() {
        entries.push(match r.u8().ok()? {
            IN_LIST => Entry::Redo(r.lenenc_bytes().ok()?),
            IN_FILE => {
                let (number, bytes, crc) = (r.u64().ok()?, r.u64().ok()?, r.u32().ok()?);
                Entry::File { file: BodyFile { number, crc }, bytes }
            }
            _ => return None,
        });
    }
    Some((lsn, entries))
}

fn prepared(redo: &[u8]) -> Option<XaBody> {
    match XaChange::decode(redo).ok()? {
        XaChange::Prepared(body) => Some(body),
        XaChange::Ended(_) => None,
    }
}
