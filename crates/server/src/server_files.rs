//! The machine's files as statements see them: SELECT ... INTO OUTFILE, LOAD DATA, LOAD_FILE.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cohort_exec::ServerFiles;
use cohort_vfs::refuse_kept;

/// Files are readable and writable for everybody that the umask lets: the client that asked for one is
/// another user.
const MODE: u32 = 0o666;

/// Everybody may read it.
const PUBLIC: u32 = 0o004;

pub(crate) struct MachineFiles {
    pub datadir: PathBuf,
}

impl ServerFiles for MachineFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn io::Write>> {
        // The folder of a database, where names without a folder go, is made by the first file in it.
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

    fn open(&self, path: &Path) -> io::Result<Box<dyn io::Read>> {
        // A pipe or a device would keep the worker for as long as it likes.
        if !fs::metadata(path)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = fs::File::open(path)?;
        refuse_kept(&file)?;
        Ok(Box::new(file))
    }

    fn public_bytes(&self, path: &Path) -> io::Result<u64> {
        let found = fs::metadata(path)?;
        if !found.is_file() || found.mode() & PUBLIC == 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(found.len())
    }

    fn remove(&self, path: &Path) {
        // It may have gone by itself.
        let _ = fs::remove_file(path);
    }

    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn datadir(&self) -> &Path {
        &self.datadir
    }
}
