//! Access of statements to files of the machine: SELECT ... INTO OUTFILE, LOAD DATA, LOAD_FILE.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_config::{Globals, VarId};
use cohort_exec::ServerFiles;
use cohort_vfs::refuse_kept;

/// Mode of new files: all users that the umask allows, because the client's user differs from the server's.
const MODE: u32 = 0o666;

/// Mode bit: readable for all users.
const PUBLIC: u32 = 0o004;

/// Names that the server uses in its data directory, also with a suffix after `.` or `-`.
const OWN_NAMES: &[&str] =
    &["catalog", "cohort", "innodb", "log", "replication", "rocksdb", "spill", "xa-prepared"];

/// Extensions of files that the server reads there, whatever name an option gives them.
const OWN_ENDINGS: &[&str] = &["cnf", "index", "pem", "pid"];

/// Minimum number of digits in the number of a log file.
const LOG_DIGITS: usize = 6;

/// Settings with base names of the server's own files.
const BASE_NAMES: &[VarId] = &[VarId::LogBinBasename, VarId::RelayLogBasename];

/// Settings with names of the server's own files.
const NAMED: &[VarId] = &[
    VarId::PidFile,
    VarId::LogError,
    VarId::GeneralLogFile,
    VarId::SlowQueryLogFile,
    VarId::ServerAuditFilePath,
];

pub(crate) struct MachineFiles {
    pub datadir: PathBuf,
    pub globals: Arc<Globals>,
}

impl MachineFiles {
    /// Returns whether the server treats a file of this name as one of its own, now or at its next start. A
    /// client that could create such a file could forge the server's data.
    fn is_own(&self, path: &Path) -> bool {
        is_of_server(&self.globals, &self.datadir, path, BASE_NAMES)
            || is_of_server(&self.globals, &self.datadir, path, NAMED)
    }
}

/// Fails with EACCES if a statement log would be written into one of the server's own files.
pub(crate) fn check_log_path(globals: &Globals, path: &Path) -> io::Result<()> {
    let datadir = globals.text(VarId::Datadir).unwrap_or_default();
    match is_of_server(globals, Path::new(&*datadir), path, BASE_NAMES) {
        true => Err(io::Error::from_raw_os_error(libc::EACCES)),
        false => Ok(()),
    }
}

/// Returns whether a path in the data directory has a name of the server's own, or begins with the value of
/// one of these settings.
fn is_of_server(globals: &Globals, datadir: &Path, path: &Path, settings: &[VarId]) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return true };
    // If the folder does not exist, the file cannot be created there either.
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (path, datadir) = (real(folder).join(name), real(datadir));
    let is_own = path.strip_prefix(&datadir).is_ok_and(|within| {
        let first = within.components().next().map(|part| part.as_os_str().to_string_lossy());
        first.is_none_or(|first| is_own_name(&first))
    });
    let mut named = settings.iter().filter_map(|id| globals.text(*id)).filter(|name| !name.is_empty());
    // Without the dot of `./error.err`.
    is_own || named.any(|name| is_of(&path, &datadir.join(&*name).components().collect::<PathBuf>()))
}

/// Returns whether a path is `named`, with or without a suffix.
fn is_of(path: &Path, named: &Path) -> bool {
    let suffix = path.as_os_str().as_encoded_bytes().strip_prefix(named.as_os_str().as_encoded_bytes());
    suffix.is_some_and(|suffix| matches!(suffix.first(), None | Some(b'.' | b'-')))
}

/// Returns whether a file or folder of the data directory belongs to the server by its name.
fn is_own_name(name: &str) -> bool {
    let begins = |own: &&str| {
        name.strip_prefix(*own).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with(['.', '-']))
    };
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_number = ending.len() >= LOG_DIGITS && ending.bytes().all(|byte| byte.is_ascii_digit());
    is_number || OWN_ENDINGS.contains(&ending) || OWN_NAMES.iter().any(begins)
}

impl ServerFiles for MachineFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn io::Write>> {
        if self.is_own(path) {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        // Names without a folder refer to the folder of a database. The first file in it creates the folder.
        if let Some(folder) = path.parent()
            && folder.parent() == Some(&self.datadir)
            && !folder.exists()
        {
            fs::create_dir(folder)?;
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
        if let Err(error) = refuse_kept(&file) {
            self.remove(path);
            return Err(error);
        }
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn io::Read>, u64)> {
        // A pipe or a device could block the worker indefinitely.
        if !fs::metadata(path)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = fs::File::open(path)?;
        refuse_kept(&file)?;
        let bytes = file.metadata()?.len();
        Ok((Box::new(file), bytes))
    }

    fn public_bytes(&self, path: &Path) -> io::Result<u64> {
        let found = fs::metadata(path)?;
        if !found.is_file() || found.mode() & PUBLIC == 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(found.len())
    }

    fn remove(&self, path: &Path) {
        // It may already have been removed.
        let _ = fs::remove_file(path);
    }

    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn datadir(&self) -> &Path {
        &self.datadir
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_server_are_its_own() {
        for name in [
            "catalog",
            "catalog.new",
            "cohort.version",
            "log",
            "log.engine-1",
            "xa-prepared.new",
            "replication",
            "binlog.000001",
            "other.index",
            "host-relay-bin-east.0000012",
            "innodb",
            "a.pem",
        ] {
            assert!(is_own_name(name), "{name}");
        }
        for name in
            ["a.txt", "catalogue", "logs", "app", "replication_report", "a.12345", "spilled.csv", "index"]
        {
            assert!(!is_own_name(name), "{name}");
        }
        assert!(
            is_of(Path::new("/b/rel-east.1"), Path::new("/b/rel"))
                && !is_of(Path::new("/b/rely"), Path::new("/b/rel"))
        );
    }
}
