//! A file system that fails on command.
//!
//! Modifying operations (create, write, set_len, sync, rename, remove, sync_dir) are numbered from 0, and a
//! fault names the number at which it happens. So a test runs its workload for k = 0, 1, 2, ... until a run
//! ends before its k-th operation. Then it has covered every point where the machine can stop.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{File, Fs, OpenMode, SharedFile, SharedFs};

/// A fault and the time at which it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The machine stops at operation `at`. The operation may have reached the disk in part (but not a sync).
    /// It fails, and so does every later operation, including reads.
    CrashAt(u64),
    /// Operation `at` fails once, without effect.
    ErrorAt(u64, io::ErrorKind),
    /// From operation `at` on, every operation that may need space fails with "no space".
    FullFrom(u64),
}

struct State {
    fault: Fault,
    ops: u64,
    crashed: bool,
    is_cold: bool,
}

/// Wraps a file system. Clones share the fault and the counter.
#[derive(Clone)]
pub struct FaultFs {
    inner: SharedFs,
    state: Arc<Mutex<State>>,
}

struct FaultFile {
    inner: SharedFile,
    fs: FaultFs,
}

/// Property of an operation that decides how faults affect it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Needs space: fails on a full disk.
    Grows,
    /// Needs no space.
    Changes,
    /// Makes data durable: a crash happens before it.
    Syncs,
}

impl FaultFs {
    /// Returns a file system without a fault.
    pub fn new(inner: SharedFs) -> FaultFs {
        let state = State { fault: Fault::None, ops: 0, crashed: false, is_cold: false };
        FaultFs { inner, state: Arc::new(Mutex::new(state)) }
    }

    /// Sets the fault. The operation counter ([`FaultFs::ops`]) continues.
    pub fn set(&self, fault: Fault) {
        self.state.lock().fault = fault;
    }

    /// Returns the number of operations so far.
    pub fn ops(&self) -> u64 {
        self.state.lock().ops
    }

    /// From now on treats no data as cached: [`File::try_read_at`] returns `None`.
    pub fn set_cold(&self) {
        self.state.lock().is_cold = true;
    }

    /// Returns whether the machine has crashed.
    pub fn crashed(&self) -> bool {
        self.state.lock().crashed
    }

    fn alive(&self) -> io::Result<()> {
        match self.state.lock().crashed {
            true => Err(io::Error::other("the machine has crashed")),
            false => Ok(()),
        }
    }

    fn run<T>(&self, effect: Effect, op: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.alive()?;
        let (number, fault) = {
            let mut state = self.state.lock();
            state.ops += 1;
            let number = state.ops - 1;
            state.crashed |= state.fault == Fault::CrashAt(number);
            (number, state.fault)
        };
        match fault {
            Fault::CrashAt(at) if at == number => {
                if effect != Effect::Syncs {
                    op()?;
                }
                self.alive().map(|()| unreachable!("it has just crashed"))
            }
            Fault::ErrorAt(at, kind) if at == number => Err(kind.into()),
            Fault::FullFrom(at) if number >= at && effect == Effect::Grows => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => op(),
        }
    }

    fn wrap(&self, inner: SharedFile) -> SharedFile {
        Arc::new(FaultFile { inner, fs: self.clone() })
    }
}

impl Fs for FaultFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        self.alive()?;
        let creates = match mode {
            OpenMode::Read | OpenMode::Write => false,
            OpenMode::CreateOrOpen | OpenMode::CreateNew => !self.inner.exists(path),
        };
        let file = match creates {
            true => self.run(Effect::Grows, || self.inner.open(path, mode))?,
            false => self.inner.open(path, mode)?,
        };
        Ok(self.wrap(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.run(Effect::Changes, || self.inner.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.run(Effect::Changes, || self.inner.remove(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.alive()?;
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> bool {
        self.inner.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.alive()?;
        self.inner.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.run(Effect::Syncs, || self.inner.sync_dir(dir))
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.alive()?;
        let full = {
            let state = self.state.lock();
            matches!(state.fault, Fault::FullFrom(at) if state.ops >= at)
        };
        if full { Ok(0) } else { self.inner.free_bytes(dir) }
    }
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.fs.alive()?;
        if self.fs.state.lock().is_cold {
            std::thread::yield_now();
        }
        self.inner.read_at(buf, offset)
    }

    fn try_read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let is_cold = self.fs.state.lock().is_cold;
        match is_cold {
            true => Ok(None),
            false => self.read_at(buf, offset).map(Some),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let grows = offset + bytes.len() as u64 > self.inner.len()?;
        let effect = if grows { Effect::Grows } else { Effect::Changes };
        self.fs.run(effect, || self.inner.write_at(bytes, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.fs.run(Effect::Syncs, || self.inner.sync_data())
    }

    fn send(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        self.fs.run(Effect::Syncs, || self.inner.send(ranges))
    }

    fn sync_earlier_writes(&self) -> io::Result<()> {
        self.fs.run(Effect::Syncs, || self.inner.sync_earlier_writes())
    }

    fn len(&self) -> io::Result<u64> {
        self.fs.alive()?;
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let effect = if len > self.inner.len()? { Effect::Grows } else { Effect::Changes };
        self.fs.run(effect, || self.inner.set_len(len))
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.fs.alive()?;
        self.inner.try_lock()
    }
}
