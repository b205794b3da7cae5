//! A file system in memory that can crash.
//!
//! Every file has two contents: the *live* one, which reads return, and the *synced* one, which survives a
//! crash, plus the list of changes between them. Directories have the same for names.
//!
//! Effects of a crash ([`MemFs::crash_clone`]):
//!
//! | state | survives |
//! |---|---|
//! | synced contents and names | always |
//! | writes since the last sync of the file | any subset of their 512-byte sectors: lost, torn, reordered |
//! | `set_len` since the last sync | any subset |
//! | names since the last `sync_dir` | a prefix: a journal keeps the order of a directory's changes |
//!
//! Some seeds keep all unsynced writes, none of them, or a prefix.
//!
//! Deliberately missing: subdirectories are durable as soon as they are created; permissions; links.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{File, Fs, OpenMode, Rng, SeededRng, SharedFile};

/// Unit that the disk writes atomically.
const SECTOR_BYTES: u64 = 512;

/// A file system in memory. Clones share it.
#[derive(Clone)]
pub struct MemFs {
    state: Arc<Mutex<State>>,
}

struct State {
    dirs: BTreeSet<PathBuf>,
    live: BTreeMap<PathBuf, SharedInode>,
    synced: BTreeMap<PathBuf, SharedInode>,
    /// Name changes since the last `sync_dir` of their directory, oldest first.
    pending: Vec<NameChange>,
    space: Arc<Mutex<Space>>,
}

struct Space {
    capacity_bytes: u64,
    used_bytes: u64,
}

#[derive(Clone)]
enum NameChange {
    Create(PathBuf, SharedInode),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl NameChange {
    fn dir(&self) -> &Path {
        let (NameChange::Create(path, _) | NameChange::Remove(path) | NameChange::Rename(path, _)) = self;
        path.parent().unwrap_or(Path::new(""))
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, SharedInode>) {
        match self {
            NameChange::Create(path, inode) => {
                names.insert(path.clone(), inode.clone());
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
            NameChange::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

type SharedInode = Arc<Inode>;

struct Inode {
    data: Mutex<Data>,
    locked: AtomicBool,
    space: Arc<Mutex<Space>>,
}

#[derive(Clone, Default)]
struct Data {
    live: Vec<u8>,
    synced: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write(offset, bytes) => {
                let start = *offset as usize;
                let end = start + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[start..end].copy_from_slice(bytes);
            }
            Change::SetLen(len) => content.resize(*len as usize, 0),
        }
    }

    /// Splits a change into parts that reach the disk independently.
    fn sectors(&self) -> Vec<Change> {
        let Change::Write(offset, bytes) = self else {
            let Change::SetLen(len) = self else { unreachable!("there are two kinds") };
            return vec![Change::SetLen(*len)];
        };
        let mut pieces = Vec::new();
        let (mut at, mut rest) = (*offset, bytes.as_slice());
        while !rest.is_empty() {
            let n = ((SECTOR_BYTES - at % SECTOR_BYTES) as usize).min(rest.len());
            pieces.push(Change::Write(at, rest[..n].to_vec()));
            at += n as u64;
            rest = &rest[n..];
        }
        pieces
    }
}

impl Default for MemFs {
    fn default() -> MemFs {
        MemFs::new()
    }
}

impl MemFs {
    /// Returns an empty file system without a size limit.
    pub fn new() -> MemFs {
        MemFs::from_names(BTreeSet::from([PathBuf::from("/"), PathBuf::new()]), BTreeMap::new())
    }

    fn from_names(dirs: BTreeSet<PathBuf>, contents: BTreeMap<PathBuf, Vec<u8>>) -> MemFs {
        let used_bytes = contents.values().map(|c| c.len() as u64).sum();
        let space = Arc::new(Mutex::new(Space { capacity_bytes: u64::MAX, used_bytes }));
        let live: BTreeMap<_, _> = contents
            .into_iter()
            .map(|(path, content)| {
                let data = Data { synced: content.clone(), live: content, pending: Vec::new() };
                let inode =
                    Inode { data: Mutex::new(data), locked: AtomicBool::new(false), space: space.clone() };
                (path, Arc::new(inode))
            })
            .collect();
        let state = State { dirs, synced: live.clone(), live, pending: Vec::new(), space };
        MemFs { state: Arc::new(Mutex::new(state)) }
    }

    /// Limits the total size of all files; writes beyond it fail with "no space".
    pub fn set_capacity_bytes(&self, bytes: u64) {
        self.state.lock().space.lock().capacity_bytes = bytes;
    }

    /// Returns another file system with the contents after a power failure at this moment. The seed selects
    /// what survives.
    pub fn crash_clone(&self, seed: u64) -> MemFs {
        let rng = SeededRng::new(seed);
        let state = self.state.lock();
        let mut names = state.synced.clone();
        let dirs: BTreeSet<&Path> = state.pending.iter().map(NameChange::dir).collect();
        for dir in dirs {
            let changes: Vec<_> = state.pending.iter().filter(|c| c.dir() == dir).collect();
            let kept = rng.below(changes.len() as u64 + 1) as usize;
            changes[..kept].iter().for_each(|c| c.apply(&mut names));
        }
        let contents =
            names.iter().map(|(path, inode)| (path.clone(), inode.data.lock().after_crash(&rng))).collect();
        MemFs::from_names(state.dirs.clone(), contents)
    }

    /// Returns another file system with the contents after the process was killed at this moment: everything
    /// is visible, but data that was not synced is still not durable.
    pub fn kill_clone(&self) -> MemFs {
        let state = self.state.lock();
        let space = Arc::new(Mutex::new(Space { ..*state.space.lock() }));
        let mut copies: HashMap<*const Inode, SharedInode> = HashMap::new();
        let mut copy = |inode: &SharedInode| {
            let made = || {
                let data = Mutex::new(inode.data.lock().clone());
                Arc::new(Inode { data, locked: AtomicBool::new(false), space: space.clone() })
            };
            copies.entry(Arc::as_ptr(inode)).or_insert_with(made).clone()
        };
        let mut names = |names: &BTreeMap<PathBuf, SharedInode>| -> BTreeMap<PathBuf, SharedInode> {
            names.iter().map(|(path, inode)| (path.clone(), copy(inode))).collect()
        };
        let (live, synced) = (names(&state.live), names(&state.synced));
        let pending = state.pending.iter().map(|change| match change {
            NameChange::Create(path, inode) => NameChange::Create(path.clone(), copy(inode)),
            other => other.clone(),
        });
        let state = State { dirs: state.dirs.clone(), live, synced, pending: pending.collect(), space };
        MemFs { state: Arc::new(Mutex::new(state)) }
    }
}

impl Data {
    fn after_crash(&self, rng: &SeededRng) -> Vec<u8> {
        let mut content = self.synced.clone();
        let pieces: Vec<Change> = self.pending.iter().flat_map(Change::sectors).collect();
        let kept_prefix = match rng.below(4) {
            0 => 0,
            1 => pieces.len(),
            2 => rng.below(pieces.len() as u64 + 1) as usize,
            _ => {
                pieces.iter().filter(|_| rng.below(2) == 0).for_each(|p| p.apply(&mut content));
                return content;
            }
        };
        pieces[..kept_prefix].iter().for_each(|p| p.apply(&mut content));
        content
    }

    fn change(&mut self, change: Change, space: &Mutex<Space>) -> io::Result<()> {
        let len_after = match &change {
            Change::Write(offset, bytes) => (offset + bytes.len() as u64).max(self.live.len() as u64),
            Change::SetLen(len) => *len,
        };
        let mut space = space.lock();
        let used = space.used_bytes - self.live.len() as u64 + len_after;
        if used > space.capacity_bytes && len_after > self.live.len() as u64 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        space.used_bytes = used;
        change.apply(&mut self.live);
        self.pending.push(change);
        Ok(())
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        self.space.lock().used_bytes -= self.data.get_mut().live.len() as u64;
    }
}

struct MemFile {
    inode: SharedInode,
    mode: OpenMode,
    has_lock: AtomicBool,
}

impl Drop for MemFile {
    fn drop(&mut self) {
        if self.has_lock.load(Ordering::Acquire) {
            self.inode.locked.store(false, Ordering::Release);
        }
    }
}

impl MemFile {
    fn change(&self, change: Change) -> io::Result<()> {
        if self.mode == OpenMode::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.inode.data.lock().change(change, &self.inode.space)
    }
}

impl Fs for MemFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        let mut state = self.state.lock();
        let inode = match (state.live.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(inode), _) => inode.clone(),
            (None, OpenMode::Read | OpenMode::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, OpenMode::CreateOrOpen | OpenMode::CreateNew) => {
                if !state.dirs.contains(path.parent().unwrap_or(Path::new(""))) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                let inode = Arc::new(Inode {
                    data: Mutex::default(),
                    locked: AtomicBool::new(false),
                    space: state.space.clone(),
                });
                state.change(NameChange::Create(path.to_path_buf(), inode.clone()));
                inode
            }
        };
        Ok(Arc::new(MemFile { inode, mode, has_lock: AtomicBool::new(false) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.live.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(NameChange::Rename(from.to_path_buf(), to.to_path_buf()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.live.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(NameChange::Remove(path.to_path_buf()));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state.lock();
        if !state.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let of_dir = state.live.keys().filter(|path| path.parent() == Some(dir));
        Ok(of_dir.filter_map(|path| path.file_name()).map(PathBuf::from).collect())
    }

    fn exists(&self, path: &Path) -> bool {
        let state = self.state.lock();
        state.live.contains_key(path) || state.dirs.contains(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.dirs.extend(dir.ancestors().map(Path::to_path_buf));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let State { pending, synced, .. } = &mut *state;
        pending.retain(|change| {
            let of_dir = change.dir() == dir;
            if of_dir {
                change.apply(synced);
            }
            !of_dir
        });
        Ok(())
    }

    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        let state = self.state.lock();
        let space = state.space.lock();
        Ok(space.capacity_bytes.saturating_sub(space.used_bytes))
    }
}

impl State {
    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }
}

impl File for MemFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let data = self.inode.data.lock();
        let start = (offset as usize).min(data.live.len());
        let n = buf.len().min(data.live.len() - start);
        buf[..n].copy_from_slice(&data.live[start..start + n]);
        Ok(n)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(Change::Write(offset, bytes.to_vec()))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut data = self.inode.data.lock();
        let Data { synced, pending, .. } = &mut *data;
        pending.drain(..).for_each(|change| change.apply(synced));
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inode.data.lock().live.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::SetLen(len))
    }

    fn try_lock(&self) -> io::Result<bool> {
        if self.has_lock.load(Ordering::Acquire) {
            return Ok(true);
        }
        let got = !self.inode.locked.swap(true, Ordering::AcqRel);
        self.has_lock.store(got, Ordering::Release);
        Ok(got)
    }
}
