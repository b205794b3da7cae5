//! The data directory: whose it is, and that only one process uses it.
//!
//! ```text
//! cohort.version   "cohort 1\n"; written last when the directory is made
//! cohort.lock      locked while a server runs; holds its process number
//! log/ spill/ rocksdb/ catalog binlog.*
//! ```

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const VERSION_FILE: &str = "cohort.version";
const LOCK_FILE: &str = "cohort.lock";
const FORMAT: &str = "cohort 1";

/// The data directory cannot be used; nothing in it was changed.
#[derive(Debug)]
pub enum DatadirError {
    /// It cannot be read or made.
    Io(PathBuf, io::Error),
    /// It holds files of something else.
    Foreign(PathBuf, String),
    /// It was made by another version.
    Version(PathBuf, String),
    /// Another process uses it.
    InUse(PathBuf, String),
}

impl fmt::Display for DatadirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatadirError::Io(path, error) => {
                write!(f, "Can't use data directory '{}': {error}", path.display())
            }
            DatadirError::Foreign(path, file) => write!(
                f,
                "Data directory '{}' is not Cohort's: it holds '{file}' but no '{VERSION_FILE}'. Give an empty or new \
                 directory with --datadir",
                path.display()
            ),
            DatadirError::Version(path, version) => write!(
                f,
                "Data directory '{}' is of format '{version}', this server reads '{FORMAT}' only",
                path.display()
            ),
            DatadirError::InUse(path, pid) => {
                write!(f, "Data directory '{}' is in use by another server (process {pid})", path.display())
            }
        }
    }
}

impl std::error::Error for DatadirError {}

/// A data directory that was looked at and can be used.
#[derive(Debug)]
pub struct Inspected {
    path: PathBuf,
    is_new: bool,
}

/// A data directory that belongs to this process.
#[derive(Debug)]
pub struct Datadir {
    path: PathBuf,
    /// Dropping it frees the directory.
    _lock: File,
    is_new: bool,
}

/// Looks at a directory without changing anything.
pub fn inspect(path: &Path) -> Result<Inspected, DatadirError> {
    let failed = |error| DatadirError::Io(path.to_owned(), error);
    let inspected = |is_new| Inspected { path: path.to_owned(), is_new };
    match fs::read_to_string(path.join(VERSION_FILE)) {
        Ok(text) if text.trim() == FORMAT => return Ok(inspected(false)),
        Ok(text) => return Err(DatadirError::Version(path.to_owned(), text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(inspected(true)),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        // What file systems, and a first start that was cut short before it made anything, leave.
        if !matches!(name.as_str(), "lost+found" | LOCK_FILE) {
            return Err(DatadirError::Foreign(path.to_owned(), name));
        }
    }
    Ok(inspected(true))
}

impl Inspected {
    /// Takes the directory for this process, making it if it is new.
    pub fn take(self) -> Result<Datadir, DatadirError> {
        let Inspected { path, is_new } = self;
        let failed = |error| DatadirError::Io(path.clone(), error);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed)?;
        // From here on a relative path must not depend on where the process stands.
        let path = fs::canonicalize(&path).map_err(failed)?;
        let failed = |error| DatadirError::Io(path.clone(), error);
        let lock =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path.join(LOCK_FILE));
        let mut lock = lock.map_err(failed)?;
        // SAFETY: a descriptor that is open; the call has no other effect on memory.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let mut pid = String::new();
            // The number is for people; who holds the lock may be about to write it.
            let _ = lock.read_to_string(&mut pid);
            return Err(DatadirError::InUse(path, pid.trim().to_owned()));
        }
        lock.set_len(0).map_err(failed)?;
        lock.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(failed)?;
        let datadir = Datadir { path: path.clone(), _lock: lock, is_new };
        if is_new {
            write_version(&path).map_err(failed)?;
        }
        Ok(datadir)
    }
}

fn write_version(path: &Path) -> io::Result<()> {
    let mut file = File::create(path.join(VERSION_FILE))?;
    file.write_all(format!("{FORMAT}\n").as_bytes())?;
    file.sync_all()?;
    File::open(path)?.sync_all()
}

impl Datadir {
    /// Absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this start made it.
    pub fn is_new(&self) -> bool {
        self.is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_or_own_directory_that_is_free_is_taken() {
        let scratch = tempfile::tempdir().expect("made");
        let path = scratch.path().join("new/data");
        assert!(!path.exists());
        let inspected = inspect(&path).expect("new");
        assert!(!path.exists(), "looking changes nothing");
        let first = inspected.take().expect("free");
        assert!(first.is_new());
        let error = inspect(&path).expect("own").take().expect_err("in use").to_string();
        assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
        drop(first);
        assert!(!inspect(&path).expect("own").take().expect("free again").is_new());
        fs::write(path.join(VERSION_FILE), "cohort 7\n").expect("written");
        assert!(inspect(&path).expect_err("another version").to_string().contains("'cohort 7'"));

        let foreign = scratch.path().join("mysql");
        fs::create_dir(&foreign).expect("made");
        fs::write(foreign.join("ibdata1"), "").expect("written");
        assert!(inspect(&foreign).expect_err("foreign").to_string().contains("'ibdata1'"));
        assert_eq!(fs::read_dir(&foreign).expect("readable").count(), 1, "nothing was changed");
    }
}
