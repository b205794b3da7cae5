//! Restores a backup into an empty directory: workers fetch chunks, check them and write them to their
//! places. Module `target` has the steps.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use cohort_backup_format::{MANIFEST, UNFINISHED};

use crate::catalogue::{Catalogue, Piece, SKIPPED};
use crate::failure::{Failure, Result};
use crate::lock::Lock;
use crate::progress::Progress;
use crate::repository::Repository;
use crate::target::Target;
use crate::workers;

/// The outcome of `restore`.
#[derive(Debug)]
pub struct Restored {
    pub catalogue: Catalogue,
    pub seconds: f64,
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
    let _lock = Lock::read(repository, "restore")?;
    let catalogue = repository.find(backup)?;
    let target = Target::open(directory)?;
    progress.expect(Some(catalogue.bytes()));
    fill(repository, &catalogue, &target, progress)?;
    finish(&target, &catalogue)?;
    Ok(Restored { catalogue, seconds: begun.elapsed().as_secs_f64() })
}

/// Writes the files of a backup. No server starts in the directory before `finish`.
pub fn fill(
    repository: &Repository,
    catalogue: &Catalogue,
    target: &Target,
    progress: &Progress,
) -> Result<()> {
    // The manifest's bytes arrive under the name of the unfinished file, so it is created first.
    let (manifest, others): (Vec<_>, Vec<_>) = catalogue.files.iter().partition(|file| file.name == MANIFEST);
    let Some(manifest) = manifest.first() else {
        return Err(Failure::Damaged(format!("backup {} has no manifest", catalogue.name)));
    };
    target.begin(manifest.bytes)?;
    others.iter().try_for_each(|file| target.create(&file.name, file.bytes).map(drop))?;
    let write = |(name, piece): (&str, &Piece)| {
        let path = target.path().join(name_of(name));
        let failed = |error| Failure::of_file(&path, error);
        let contents = repository.read_chunk(&piece.chunk)?;
        if contents.len() as u64 != piece.bytes() {
            return Err(Failure::Damaged(format!("the catalogue of backup {} is wrong", catalogue.name)));
        }
        let file = OpenOptions::new().write(true).open(&path).map_err(failed)?;
        let mut rest = &contents[..];
        for (offset, length) in &piece.runs {
            let (bytes, after) = rest.split_at(*length as usize);
            if *offset != SKIPPED {
                file.write_all_at(bytes, *offset).map_err(failed)?;
            }
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
    })
}

/// Makes the files durable, and the directory a backup in which a server starts.
pub fn finish(target: &Target, catalogue: &Catalogue) -> Result<()> {
    target.finish(catalogue.files.iter().map(|file| name_of(&file.name))).map(drop)
}
