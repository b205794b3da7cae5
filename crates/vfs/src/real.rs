//! The operating system's files.
//!
//! Reads, writes and syncs go through the C library (`pread64`, `pwrite64`, `fdatasync`, `fsync`), so that a
//! preloaded library can count or delay them.

use std::ffi::CString;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt as _, FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::descriptors::refuse_kept;
use crate::direct::Direct;
use crate::{File, Fs, OpenMode, SharedFile, SharedFs};

/// The file system of the machine.
pub struct RealFs;

impl RealFs {
    /// Returns it as a shared file system.
    pub fn shared() -> SharedFs {
        Arc::new(RealFs)
    }
}

/// Mode of new directories: they contain rows and password hashes.
const DIR_MODE: u32 = 0o700;

struct RealFile {
    file: fs::File,
    /// For writes of whole blocks, if the file was opened for direct writes.
    direct: Option<Direct>,
}

fn open_file(path: &Path, mode: OpenMode) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.read(true);
    match mode {
        OpenMode::Read => &mut options,
        OpenMode::Write => options.write(true),
        OpenMode::CreateOrOpen => options.write(true).create(true),
        OpenMode::CreateNew => options.write(true).create_new(true),
    };
    options.open(path)
}

impl Fs for RealFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        Ok(Arc::new(RealFile { file: open_file(path, mode)?, direct: None }))
    }

    fn open_for_client(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        let file = open_file(path, mode)?;
        if let Err(error) = refuse_kept(&file) {
            if mode == OpenMode::CreateNew {
                // It is empty. If it cannot be removed now, the next start removes it.
                let _ = fs::remove_file(path);
            }
            return Err(error);
        }
        Ok(Arc::new(RealFile { file, direct: None }))
    }

    fn open_direct(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        let file = open_file(path, mode)?;
        let direct = if mode == OpenMode::Read { None } else { Direct::open(path) };
        Ok(Arc::new(RealFile { file, direct }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                names.push(PathBuf::from(entry.file_name()));
            }
        }
        names.sort();
        Ok(names)
    }

    fn is_empty_dir(&self, dir: &Path) -> io::Result<bool> {
        Ok(fs::read_dir(dir)?.next().is_none())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let path = CString::new(dir.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut stat = MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: `path` ends with a zero byte and `stat` is large enough for what statvfs writes.
        if unsafe { libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: statvfs said that it filled the structure.
        let stat = unsafe { stat.assume_init() };
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn device(&self, dir: &Path) -> io::Result<u64> {
        Ok(fs::metadata(dir)?.dev())
    }
}

impl RealFile {
    fn send_range(&self, range: &Range<u64>, flags: libc::c_uint) -> io::Result<()> {
        let [from, bytes] = [range.start, range.end - range.start].map(|at| at as i64);
        // SAFETY: the call takes no memory, and the file is open.
        match unsafe { libc::sync_file_range(self.file.as_raw_fd(), from, bytes, flags) } {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                // Some file systems do not support the call.
                error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE)) => {
                    Ok(())
                }
                error => Err(error),
            },
        }
    }
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn try_read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
        let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the one part is `buf`, which is borrowed for the call, and the file is open.
        let read =
            unsafe { libc::preadv2(self.file.as_raw_fd(), &raw const part, 1, offset, libc::RWF_NOWAIT) };
        // Refused or partial: the rest may be on the disk, or after the end of the file.
        Ok(usize::try_from(read).ok().filter(|read| *read == buf.len()))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &self.direct {
            Some(direct) if direct.write_at(bytes, offset)? => Ok(()),
            _ => self.file.write_all_at(bytes, offset),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn send(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        let begin = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE;
        ranges.iter().try_for_each(|range| self.send_range(range, begin))?;
        ranges.iter().try_for_each(|range| self.send_range(range, libc::SYNC_FILE_RANGE_WAIT_AFTER))
    }

    fn sync_earlier_writes(&self) -> io::Result<()> {
        self.file.sync_data()?;
        // SAFETY: the call takes no memory, and the file is open.
        match unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}

/// Returns a directory without symbolic links and `.` or `..`, as far as it exists.
pub fn resolved(dir: &Path) -> PathBuf {
    let plain: PathBuf = dir.components().filter(|part| !matches!(part, Component::CurDir)).collect();
    let plain = if plain.as_os_str().is_empty() { PathBuf::from(".") } else { plain };
    fs::canonicalize(&plain).unwrap_or(plain)
}
