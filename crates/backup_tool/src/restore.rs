//! Restores a backup into an empty directory.
//!
//! # Steps
//! 1. The file `cohort-backup.unfinished` is created and synced. No server starts in a directory with it.
//! 2. Workers fetch chunks, check them and write them to their places. Holes stay holes.
//! 3. All files and directories are synced.
//! 4. The unfinished file becomes the manifest by a rename, and the directory is synced.
//!
//! An interrupted restore leaves a directory in which no server starts, and which the next restore refuses
//! because it is not empty. The operator removes it.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Instant;

use cohort_backup_format::{MANIFEST, Manifest, UNFINISHED};

use crate::catalogue::{Catalogue, Piece};
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::repository::Repository;
use crate::source::of_manifest;
use crate::workers;

/// The outcome of `restore`.
#[derive(Debug)]
pub struct Restored {
    pub catalogue: Catalogue,
    pub seconds: f64,
}

/// The directory that is being filled.
struct Target {
    path: PathBuf,
    /// Owner of the files. A directory that existed keeps its owner, and its files get it.
    owner: Option<(u32, u32)>,
}

impl Target {
    fn open(path: &Path) -> Result<Target> {
        let failed = |error| Failure::of_file(path, error);
        let mut owner = None;
        match std::fs::read_dir(path) {
            Ok(mut entries) => {
                if let Some(entry) = entries.next() {
                    let found = entry.map_err(failed)?.file_name();
                    return Err(Failure::Refused(format!(
                        "{} is not empty: it has '{}'. A restore needs a new or empty directory; nothing was changed",
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

    fn own(&self, path: &Path, file: &File) -> Result<()> {
        match self.owner {
            Some((user, group)) => {
                fchown(file, Some(user), Some(group)).map_err(|error| Failure::of_file(path, error))
            }
            None => Ok(()),
        }
    }

    /// Creates a file of a length, with the directories above it.
    fn create(&self, name: &str, bytes: u64) -> Result<File> {
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

    fn sync(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        File::open(&path).and_then(|file| file.sync_all()).map_err(|error| Failure::of_file(&path, error))
    }
}

/// Returns the name under which a file is restored: the manifest is named last.
fn name_of(file: &str) -> &str {
    if file == MANIFEST { UNFINISHED } else { file }
}

/// Restores a backup into a directory that is new or empty.
pub fn restore(
    repository: &Repository,
    backup: &str,
    directory: &Path,
    progress: &Progress,
) -> Result<Restored> {
    let begun = Instant::now();
    let catalogue = repository.find(backup)?;
    if !catalogue.files.iter().any(|file| file.name == MANIFEST) {
        return Err(Failure::Damaged(format!("backup {} has no manifest", catalogue.name)));
    }
    let target = Target::open(directory)?;
    progress.expect(Some(catalogue.bytes()));
    // The manifest's bytes arrive under the name of the unfinished file, so it is created first.
    let (manifest, others): (Vec<_>, Vec<_>) = catalogue.files.iter().partition(|file| file.name == MANIFEST);
    for file in manifest.iter().chain(&others) {
        target.create(name_of(&file.name), file.bytes)?;
        if file.name == MANIFEST {
            target.sync(UNFINISHED)?;
            target.sync("")?;
        }
    }
    let write = |(name, piece): (&str, &Piece)| {
        let path = target.path.join(name_of(name));
        let failed = |error| Failure::of_file(&path, error);
        let contents = repository.read_chunk(&piece.chunk)?;
        if contents.len() as u64 != piece.bytes() {
            return Err(Failure::Damaged(format!("the catalogue of backup {} is wrong", catalogue.name)));
        }
        let file = OpenOptions::new().write(true).open(&path).map_err(failed)?;
        let mut rest = &contents[..];
        for (offset, length) in &piece.runs {
            let (bytes, after) = rest.split_at(*length as usize);
            file.write_all_at(bytes, *offset).map_err(failed)?;
            rest = after;
        }
        progress.add(contents.len() as u64);
        Ok(())
    };
    workers::run(write, |entrance| {
        for file in &catalogue.files {
            for piece in &file.pieces {
                entrance.send((file.name.as_str(), piece))?;
            }
        }
        Ok(())
    })?;
    finish(&target, &catalogue)?;
    Ok(Restored { catalogue, seconds: begun.elapsed().as_secs_f64() })
}

/// Makes the files durable, and then makes the directory a backup.
fn finish(target: &Target, catalogue: &Catalogue) -> Result<()> {
    let mut folders = BTreeSet::from([PathBuf::new()]);
    for file in &catalogue.files {
        target.sync(name_of(&file.name))?;
        folders.extend(Path::new(&file.name).ancestors().skip(1).map(Path::to_owned));
    }
    for folder in folders.iter().rev() {
        target.sync(&folder.to_string_lossy())?;
    }
    let (unfinished, manifest) = (target.path.join(UNFINISHED), target.path.join(MANIFEST));
    let text = std::fs::read(&unfinished).map_err(|error| Failure::of_file(&unfinished, error))?;
    Manifest::decode(&text, &manifest).map_err(of_manifest)?;
    std::fs::rename(&unfinished, &manifest).map_err(|error| Failure::of_file(&manifest, error))?;
    target.sync("")?;
    // The directory itself may be new.
    match target.path.canonicalize().ok().as_deref().and_then(Path::parent) {
        Some(above) => {
            let synced = File::open(above).and_then(|folder| folder.sync_all());
            synced.map_err(|error| Failure::of_file(above, error))
        }
        None => Ok(()),
    }
}
