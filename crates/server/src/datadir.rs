//! Data directory: recognises it, and makes sure that only one process uses it.
//!
//! ```text
//! cohort.version   "cohort 1\n"; makes it a data directory
//! cohort.lock      locked while a server runs; contains its process id
//! log/ spill/ rocksdb/ catalog binlog.*
//! ```
//!
//! Only `--initialize` creates a data directory. A start with a missing or empty one is refused: it may be
//! the mount point of a volume that is not mounted, and a server without data must not look like a healthy
//! one.
//!
//! # Backups
//! A full backup is a data directory with a manifest. The first start in it compares the lengths of the files
//! with the manifest, and then renames the manifest, because the files are going to change. No server starts
//! in a backup that was not finished, or in an incremental one.
//!
//! # Clones
//! A clone that CLONE INSTANCE has left in the directory takes the place of the data when a process has
//! locked the directory ([`replace`]). [`DATA`] and the names of the logs say which files are data.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use cohort_backup_format::{MANIFEST, Manifest, ManifestError, RESTORED, UNFINISHED};
use cohort_clone::replace;

const VERSION_FILE: &str = "cohort.version";
const VERSION_FILE_NEW: &str = "cohort.version.new";
const LOCK_FILE: &str = "cohort.lock";
/// File with the identity of the directory. Backups do not have it, so a restored directory gets its own.
const IDENTITY_FILE: &str = "cohort.server_uid";
const IDENTITY_BYTES: usize = 16;
const FORMAT: &str = "cohort 1";

/// Beginnings of the names of data. The other files of a data directory belong to the installation: the lock,
/// the identity, keys, certificates, option files, error logs, the history of metrics.
const DATA: &[&str] = &[
    "cohort.version",
    "cohort.sys",
    "cohort.backups",
    "cohort-backup.",
    replace::STATEMENTS,
    replace::REPORT,
    "catalog",
    "log.",
    "spill",
    "innodb",
    "rocksdb",
    "replication",
    "xa-prepared",
    "xa-branch.",
    "archive.refused",
];

/// Endings of the files next to the numbered ones of a binary log or relay log.
const LOG_LISTS: [&str; 3] = [".index", ".index.tmp", ".marks"];

/// The data directory cannot be used. Nothing in it was changed.
#[derive(Debug)]
pub enum DatadirError {
    /// It cannot be read or created.
    Io(PathBuf, io::Error),
    /// It does not exist.
    Missing(PathBuf),
    /// It is empty.
    Empty(PathBuf),
    /// It should be initialized, but already is.
    Initialized(PathBuf),
    /// It contains other files.
    Foreign(PathBuf, String),
    /// It contains MariaDB files.
    OfMariaDb(PathBuf),
    /// It contains Cohort's files, but not the one that names their format.
    VersionLost(PathBuf),
    /// It was created by another version.
    Version(PathBuf, String),
    /// It is a backup that cannot be started from, for this reason.
    Backup(String),
    /// Another process uses it.
    InUse(PathBuf, String),
}

impl fmt::Display for DatadirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatadirError::Io(path, error) if error.kind() == io::ErrorKind::PermissionDenied => write!(
                f,
                "Can't use data directory '{0}': {error}. The server runs as user {1}, to whom the directory has to \
                 belong: chown -R {1} '{0}', or name the owner with --user",
                path.display(),
                rustix::process::geteuid().as_raw()
            ),
            DatadirError::Io(path, error) => {
                write!(f, "Can't use data directory '{}': {error}", path.display())
            }
            DatadirError::Missing(path) => write!(
                f,
                "Can't change dir to '{0}' (Errcode: 2 \"No such file or directory\"). If it should be there, see whether its \
                 volume is mounted; a new one is made by: cohortd --initialize --datadir='{0}'",
                path.display()
            ),
            DatadirError::Empty(path) => write!(
                f,
                "Data directory '{0}' is empty. If it should not be, see whether its volume is mounted; it is made a data \
                 directory by: cohortd --initialize --datadir='{0}'",
                path.display()
            ),
            DatadirError::Initialized(path) => {
                write!(
                    f,
                    "Data directory '{}' is initialized already; nothing was changed. Start without --initialize, or name a new directory with --datadir",
                    path.display()
                )
            }
            DatadirError::Foreign(path, file) => write!(
                f,
                "Data directory '{}' is not Cohort's: it holds '{file}' but no '{VERSION_FILE}'. Give an empty or new \
                 directory with --datadir",
                path.display()
            ),
            DatadirError::OfMariaDb(path) => write!(
                f,
                "Data directory '{}' is not Cohort's: it is one of MariaDB, whose files Cohort cannot open. Give a new \
                 directory with --datadir and copy the tables (docs/moving.md)",
                path.display()
            ),
            DatadirError::VersionLost(path) => write!(
                f,
                "Data directory '{0}' has lost its file '{VERSION_FILE}'. Restore it from a backup, or write it again: \
                 echo '{FORMAT}' > '{0}/{VERSION_FILE}'",
                path.display()
            ),
            DatadirError::Version(path, version) => write!(
                f,
                "Data directory '{}' is of format '{version}', this server reads '{FORMAT}' only: start the version that \
                 wrote it (CHANGELOG.md), or load a dump of it into a new directory",
                path.display()
            ),
            DatadirError::Backup(why) => write!(f, "Can't start from a backup: {why}"),
            DatadirError::InUse(path, pid) => {
                write!(
                    f,
                    "Data directory '{}' is in use by another server (process {pid}): stop that one, or give this one a directory of its own with --datadir",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for DatadirError {}

/// A data directory that was checked and can be used.
#[derive(Debug)]
pub struct Inspected {
    path: PathBuf,
    /// Base names of the binary log and of the relay log.
    logs: Vec<String>,
}

/// A data directory that is locked by this process.
#[derive(Debug)]
pub struct Datadir {
    path: PathBuf,
    identity: String,
    /// Dropping it unlocks the directory.
    _lock: File,
}

/// A data directory that is being filled. It is none before it is finished: no server starts in it.
#[derive(Debug)]
pub struct Unfinished(Datadir);

/// State of a path.
enum Found {
    Nothing,
    /// A directory that contains nothing of value.
    Empty,
    /// A data directory of this format.
    Own,
}

/// Checks a data directory without changing anything.
pub fn inspect(path: &Path) -> Result<Inspected, DatadirError> {
    match look_at(path)? {
        Found::Own => Ok(Inspected { path: path.to_owned(), logs: Vec::new() }),
        Found::Nothing => Err(DatadirError::Missing(path.to_owned())),
        Found::Empty => Err(DatadirError::Empty(path.to_owned())),
    }
}

/// Begins a data directory (`--initialize`). The path must be missing or empty.
pub fn create(path: &Path) -> Result<Unfinished, DatadirError> {
    look_for_nothing(path)?;
    let failed = |error| DatadirError::Io(path.to_owned(), error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let path = fs::canonicalize(path).map_err(failed)?;
    let _lock = lock(&path)?;
    // Another process may have been faster.
    look_for_nothing(&path)?;
    let identity = identity(&path).unwrap_or_default();
    Ok(Unfinished(Datadir { path, identity, _lock }))
}

fn look_for_nothing(path: &Path) -> Result<(), DatadirError> {
    match look_at(path)? {
        Found::Nothing | Found::Empty => Ok(()),
        Found::Own => Err(DatadirError::Initialized(path.to_owned())),
    }
}

fn look_at(path: &Path) -> Result<Found, DatadirError> {
    let failed = |error| DatadirError::Io(path.to_owned(), error);
    if path.join(UNFINISHED).exists() {
        return Err(DatadirError::Backup(ManifestError::Unfinished(path.join(UNFINISHED)).to_string()));
    }
    // The version file may be on its way.
    if replace::is_pending(path) {
        return Ok(Found::Own);
    }
    let version = match fs::read_to_string(path.join(VERSION_FILE)) {
        Ok(text) if text.trim() == FORMAT => return Ok(Found::Own),
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        // Files that file systems create, and those of an interrupted initialization.
        let is_nothing = matches!(
            name.as_str(),
            "lost+found" | LOCK_FILE | VERSION_FILE | VERSION_FILE_NEW | IDENTITY_FILE
        );
        match &version {
            _ if is_nothing => {}
            None => return Err(stranger(path, name)),
            Some(text) => return Err(DatadirError::Version(path.to_owned(), text.trim().to_owned())),
        }
    }
    match version {
        Some(text) if !FORMAT.starts_with(text.trim()) => {
            Err(DatadirError::Version(path.to_owned(), text.trim().to_owned()))
        }
        // The version file is missing, or was written partially.
        _ => Ok(Found::Empty),
    }
}

/// Returns the error for a directory that contains a file but no version.
fn stranger(path: &Path, file: String) -> DatadirError {
    let holds = |names: &[&str]| names.iter().all(|name| path.join(name).exists());
    match () {
        () if holds(&["ibdata1"]) || holds(&["aria_log_control"]) => DatadirError::OfMariaDb(path.to_owned()),
        () if holds(&["catalog", "log"]) => DatadirError::VersionLost(path.to_owned()),
        () => DatadirError::Foreign(path.to_owned(), file),
    }
}

impl Inspected {
    /// Sets the base names of the binary log and of the relay log, which a clone replaces.
    #[must_use]
    pub fn with_logs(self, logs: Vec<String>) -> Inspected {
        Inspected { logs, ..self }
    }

    /// Locks the directory for this process, and turns a backup into a data directory.
    pub fn take(self) -> Result<Datadir, DatadirError> {
        let datadir = self.take_as_it_is()?;
        adopt_backup(&datadir.path)?;
        Ok(datadir)
    }

    /// Locks the directory for this process. A backup stays one.
    pub fn take_as_it_is(self) -> Result<Datadir, DatadirError> {
        // From here on, the path must not depend on the current directory.
        let path =
            fs::canonicalize(&self.path).map_err(|error| DatadirError::Io(self.path.clone(), error))?;
        let _lock = lock(&path)?;
        replace::complete(&path, &|name| is_data(name, &self.logs))
            .map_err(|error| DatadirError::Io(path.clone(), error))?;
        let identity = identity(&path).unwrap_or_default();
        Ok(Datadir { path, identity, _lock })
    }
}

/// Returns whether a file belongs to the data.
fn is_data(name: &str, logs: &[String]) -> bool {
    // Between the base name and the ending is the name of a replica's connection.
    let is_of_log = |base: &String| {
        let rest = name.strip_prefix(base.as_str()).filter(|rest| rest.starts_with(['.', '-']));
        let ending = rest.and_then(|rest| rest.rsplit_once('.')).map_or("", |(_, ending)| ending);
        let is_number = !ending.is_empty() && ending.bytes().all(|byte| byte.is_ascii_digit());
        let is_list = rest.is_some_and(|rest| LOG_LISTS.iter().any(|list| rest.ends_with(list)));
        !base.is_empty() && (is_number || is_list)
    };
    name == "log" || DATA.iter().any(|begin| name.starts_with(begin)) || logs.iter().any(is_of_log)
}

/// Returns the random identity of a directory, which its first start chooses.
fn identity(path: &Path) -> io::Result<String> {
    let file = path.join(IDENTITY_FILE);
    match fs::read_to_string(&file) {
        Ok(text) if text.trim().len() == 2 * IDENTITY_BYTES => return Ok(text.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        // Missing, or written partially.
        _ => {}
    }
    let mut random = [0; IDENTITY_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = File::create(&file)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    file.sync_all()?;
    File::open(path)?.sync_all()?;
    Ok(text)
}

/// Turns a full backup into a data directory that may change: checks that its files are there, and renames
/// the manifest.
fn adopt_backup(path: &Path) -> Result<(), DatadirError> {
    let manifest = match Manifest::read(path) {
        Err(ManifestError::Missing(_)) => return Ok(()),
        read => read.map_err(|error| DatadirError::Backup(error.to_string()))?,
    };
    if manifest.parent.is_some() {
        let what = "is an incremental backup; restore it together with the full one: cohort-backup restore";
        return Err(DatadirError::Backup(format!("{} {what}", path.display())));
    }
    for entry in &manifest.files {
        let file = path.join(&entry.path);
        let found = match fs::metadata(&file) {
            Ok(found) if found.len() == entry.size => continue,
            Ok(found) => format!("has {} bytes, not {}", found.len(), entry.size),
            Err(error) => format!("cannot be read: {error}"),
        };
        let what = format!("{} {found}; copy the backup again, or use another one", file.display());
        return Err(DatadirError::Backup(what));
    }
    end_backup(path)
}

/// Gives the manifest another name: from now on the files may differ from it.
fn end_backup(path: &Path) -> Result<(), DatadirError> {
    let failed = |error| DatadirError::Io(path.to_owned(), error);
    fs::rename(path.join(MANIFEST), path.join(RESTORED)).map_err(failed)?;
    File::open(path).and_then(|dir| dir.sync_all()).map_err(failed)
}

/// Locks the directory for this process.
fn lock(path: &Path) -> Result<File, DatadirError> {
    let failed = |error| DatadirError::Io(path.to_owned(), error);
    let lock =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path.join(LOCK_FILE));
    let mut lock = lock.map_err(failed)?;
    // SAFETY: the descriptor is open; the call has no other effect on memory.
    if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let mut pid = String::new();
        // The process id is informational. The holder of the lock may be about to write it.
        let _ = lock.read_to_string(&mut pid);
        return Err(DatadirError::InUse(path.to_owned(), pid.trim().to_owned()));
    }
    // Informational as well: a full disk must not prevent the start.
    let _ = lock.set_len(0).and_then(|()| lock.write_all(format!("{}\n", std::process::id()).as_bytes()));
    Ok(lock)
}

/// Writes the version file under another name first, so that a crash leaves it complete or missing.
fn write_version(path: &Path) -> io::Result<()> {
    let new = path.join(VERSION_FILE_NEW);
    let mut file = File::create(&new)?;
    file.write_all(format!("{FORMAT}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path.join(VERSION_FILE))?;
    File::open(path)?.sync_all()?;
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

impl Unfinished {
    /// Returns the locked directory.
    pub fn datadir(&self) -> &Datadir {
        &self.0
    }

    /// Makes it a data directory: writes the version file.
    pub fn finish(self) -> Result<(), DatadirError> {
        write_version(&self.0.path).map_err(|error| DatadirError::Io(self.0.path.clone(), error))
    }
}

impl Datadir {
    /// Returns the absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Turns a backup to which the archive was applied into a data directory.
    pub fn end_backup(&self) -> Result<(), DatadirError> {
        end_backup(&self.path)
    }

    /// Returns the identity, `@@server_uid`; empty if it could not be stored.
    pub fn identity(&self) -> &str {
        &self.identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_of_its_own_that_is_free_is_taken() {
        let scratch = tempfile::tempdir().expect("made");
        let path = scratch.path().join("new/data");
        assert!(matches!(inspect(&path), Err(DatadirError::Missing(_))));
        assert!(!path.exists() && !scratch.path().join("new").exists(), "looking changes nothing");
        fs::create_dir_all(path.join("lost+found")).expect("made");
        let error = inspect(&path).expect_err("an empty mount point").to_string();
        assert!(error.contains("is empty") && error.contains("--initialize"), "{error}");
        create(&path).and_then(Unfinished::finish).expect("made");
        assert!(matches!(create(&path).and_then(Unfinished::finish), Err(DatadirError::Initialized(_))));
        let first = inspect(&path).expect("own").take().expect("free");
        let error = inspect(&path).expect("own").take().expect_err("in use").to_string();
        assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
        let identity = first.identity().to_owned();
        assert_eq!(identity.len(), 2 * IDENTITY_BYTES);
        drop(first);
        assert_eq!(inspect(&path).expect("own").take().expect("free").identity(), identity, "it stays");
        // As in a restored directory.
        fs::remove_file(path.join(IDENTITY_FILE)).expect("removed");
        let other = inspect(&path).expect("own").take().expect("free").identity().to_owned();
        assert!(other.len() == identity.len() && other != identity, "{other}");
        drop(inspect(&path).expect("own").take().expect("free again"));
        fs::write(path.join(VERSION_FILE), "cohort 7\n").expect("written");
        assert!(inspect(&path).expect_err("another version").to_string().contains("'cohort 7'"));
        assert!(matches!(create(&path).and_then(Unfinished::finish), Err(DatadirError::Version(..))));

        let foreign = scratch.path().join("mysql");
        fs::create_dir(&foreign).expect("made");
        fs::write(foreign.join("ibdata1"), "").expect("written");
        for refused in [inspect(&foreign).map(drop), create(&foreign).map(drop)] {
            assert!(refused.expect_err("foreign").to_string().contains("one of MariaDB"));
        }
        assert_eq!(fs::read_dir(&foreign).expect("readable").count(), 1, "nothing was changed");
    }

    #[test]
    fn files_are_data_or_belong_to_the_installation() {
        let logs = ["mb".to_owned(), "host-relay-bin".to_owned()];
        let data = [
            "log",
            "log.engine-1",
            "catalog",
            "catalog.new",
            "spill",
            "innodb",
            "rocksdb",
            "cohort.version",
            "cohort.sys",
            "cohort.backups",
            "cohort-backup.restored.json",
            "replication",
            "xa-branch.7",
            "mb.000001",
            "mb.index",
            "host-relay-bin.000002",
            "host-relay-bin-north.000001",
            "host-relay-bin-north.index",
            "host-relay-bin.marks",
            "cohort-clone.sql",
        ];
        data.iter().for_each(|name| assert!(is_data(name, &logs), "{name}"));
        let others = [
            "cohort.lock",
            "cohort.server_uid",
            "server-key.pem",
            "cohort-replica.cnf",
            "vm.pid",
            "vm.err",
            "mbx",
            "mb-key.pem",
            "mb-slow.log",
            "mb.cnf",
            "server_audit.log",
            "metrics_history.bin",
            "statement_statistics.bin",
            "logs",
            "log_of_mine",
            "slow.log",
            "lost+found",
        ];
        others.iter().for_each(|name| assert!(!is_data(name, &logs), "{name}"));
    }

    #[test]
    fn a_making_that_was_cut_short_is_made_again() {
        let scratch = tempfile::tempdir().expect("made");
        for left in ["", "coh", "cohort 1"] {
            let path = scratch.path().join(format!("after{}", left.len()));
            fs::create_dir(&path).expect("made");
            fs::write(path.join(LOCK_FILE), "17\n").expect("written");
            fs::write(path.join(VERSION_FILE_NEW), left).expect("written");
            assert!(matches!(inspect(&path), Err(DatadirError::Empty(_))));
            // An earlier version wrote the file in place.
            fs::write(path.join(VERSION_FILE), left).expect("written");
            if left != FORMAT {
                assert!(matches!(inspect(&path), Err(DatadirError::Empty(_))));
                create(&path).and_then(Unfinished::finish).expect("made again");
            }
            inspect(&path).expect("own").take().expect("free");
        }
    }
}
