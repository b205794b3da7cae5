//! The directory that a restore or a clone fills.
//!
//! # Steps
//! 1. The file `cohort-backup.unfinished` is created and synced. No server starts in a directory with it.
//! 2. Files are created and written. Holes stay holes.
//! 3. All files and directories are synced.
//! 4. The unfinished file becomes the manifest by a rename, and the directory is synced.
//!
//! An interrupted command leaves a directory in which no server starts, and which the next command refuses
//! because it is not empty. The operator removes it.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use cohort_backup_format::{MANIFEST, Manifest, UNFINISHED};

use crate::failure::{Failure, Result};

/// Removes a directory that is not complete. If it cannot be removed, no server starts in it.
pub fn discard(path: &Path) {
    let _ = std::fs::remove_dir_all(path);
}

/// The directory that is being filled.
pub struct Target {
    path: PathBuf,
    /// Owner of the files. A directory that existed keeps its owner, and its files get it.
    owner: Option<(u32, u32)>,
}

impl Target {
    /// Opens a directory that is new or empty.
    pub fn open(path: &Path) -> Result<Target> {
        let failed = |error| Failure::of_file(path, error);
        let mut owner = None;
        match std::fs::read_dir(path) {
            Ok(entries) => {
                for entry in entries {
                    let found = entry.map_err(failed)?.file_name();
                    // Of a file system of its own, as the server accepts it.
                    if found == "lost+found" {
                        continue;
                    }
                    return Err(Failure::Refused(format!(
                        "{} is not empty: it has '{}'. A new or empty directory is needed; nothing was changed",
                        path.display(),
                        found.to_string_lossy()
                    )));
                }
                let found = std::fs::metadata(path).map_err(failed)?;
                owner = rustix::process::geteuid().is_root().then_some((found.uid(), found.gid()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        Ok(Target { path: path.to_owned(), owner })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the file that marks the backup as unfinished, durably.
    pub fn begin(&self, bytes: u64) -> Result<()> {
        self.create(UNFINISHED, bytes)?;
        self.sync(UNFINISHED)?;
        self.sync("")
    }

    fn own(&self, path: &Path, file: &File) -> Result<()> {
        match self.owner {
            Some((user, group)) => {
                fchown(file, Some(user), Some(group)).map_err(|error| Failure::of_file(path, error))
            }
            None => Ok(()),
        }
    }

    /// Creates a file of a length, with the directories above it.
    pub fn create(&self, name: &str, bytes: u64) -> Result<File> {
        let path = self.path.join(name);
        let failed = |error| Failure::of_file(&path, error);
        let folders: Vec<&Path> =
            path.ancestors().skip(1).take_while(|folder| **folder != *self.path).collect();
        for folder in folders.into_iter().rev() {
            match DirBuilder::new().mode(0o700).create(folder) {
                Ok(()) => self.own(folder, &File::open(folder).map_err(failed)?)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::of_file(folder, error)),
            }
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        self.own(&path, &file)?;
        file.set_len(bytes).map_err(failed)?;
        Ok(file)
    }

    /// Creates a small file with a text.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let file = self.create(name, 0)?;
        file.write_all_at(text.as_bytes(), 0).map_err(|error| Failure::of_file(&self.path.join(name), error))
    }

    fn sync(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        File::open(&path).and_then(|file| file.sync_all()).map_err(|error| Failure::of_file(&path, error))
    }

    /// Gives the owner of the directory all files that a server created in it.
    pub fn own_all(&self) -> Result<()> {
        if self.owner.is_none() {
            return Ok(());
        }
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            let failed = |error| Failure::of_file(&folder, error);
            for entry in std::fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let kind = entry.file_type().map_err(failed)?;
                if kind.is_dir() {
                    folders.push(entry.path());
                }
                if kind.is_dir() || kind.is_file() {
                    self.own(&entry.path(), &File::open(entry.path()).map_err(failed)?)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the files durable, and then makes the directory a backup: the manifest gets its name.
    pub fn finish<'a>(&self, files: impl Iterator<Item = &'a str>) -> Result<Manifest> {
        let mut folders = BTreeSet::from([PathBuf::new()]);
        for file in files {
            self.sync(file)?;
            folders.extend(Path::new(file).ancestors().skip(1).map(Path::to_owned));
        }
        for folder in folders.iter().rev() {
            self.sync(&folder.to_string_lossy())?;
        }
        let (unfinished, manifest) = (self.path.join(UNFINISHED), self.path.join(MANIFEST));
        let text = std::fs::read(&unfinished).map_err(|error| Failure::of_file(&unfinished, error))?;
        let read = Manifest::decode(&text, &manifest).map_err(Failure::of_manifest)?;
        std::fs::rename(&unfinished, &manifest).map_err(|error| Failure::of_file(&manifest, error))?;
        self.sync("")?;
        // The directory itself may be new.
        if let Some(above) = self.path.canonicalize().ok().as_deref().and_then(Path::parent) {
            let synced = File::open(above).and_then(|folder| folder.sync_all());
            synced.map_err(|error| Failure::of_file(above, error))?;
        }
        Ok(read)
    }
}
