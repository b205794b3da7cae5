//! A backup in a directory.
//!
//! ```text
//! new: write and sync cohort-backup.unfinished    no server starts in the directory
//! write: files, in any order
//! finish: lengths, sync of every file, sync of the directories
//!         write and sync the manifest as cohort-backup.unfinished, rename it to cohort-backup.json
//! ```
//! Dropping an unfinished sink removes the files that it has written, and the directory if it created it. If
//! that fails, the file `cohort-backup.unfinished`, which is removed last, still marks the directory.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use cohort_backup_format::{MANIFEST, Manifest, UNFINISHED};
use cohort_vfs::{OpenMode, SharedFile, SharedFs};

use super::sink::BackupSink;

const MARK: &[u8] = b"This directory holds an unfinished backup. It can be removed.\n";

/// A sink that writes a directory.
pub struct DirectorySink {
    fs: SharedFs,
    dir: PathBuf,
    files: BTreeSet<String>,
    dirs: BTreeSet<PathBuf>,
    /// The file that was written last.
    open: Option<(String, SharedFile)>,
    /// The sink has created the directory.
    is_created: bool,
    is_finished: bool,
}

impl DirectorySink {
    /// Begins a backup in a directory that is missing or empty. The error is `DirectoryNotEmpty` if it is
    /// not.
    pub fn new(fs: SharedFs, dir: &Path) -> io::Result<DirectorySink> {
        let is_created = match fs.is_empty_dir(dir) {
            Ok(true) => {
                fs.create_dir_all(dir)?;
                false
            }
            Ok(false) => return Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs.create_dir_all(dir)?;
                true
            }
            Err(error) => return Err(error),
        };
        let mark = fs.open(&dir.join(UNFINISHED), OpenMode::CreateNew)?;
        let dirs = BTreeSet::from([dir.to_path_buf()]);
        let dir = dir.to_path_buf();
        let sink = DirectorySink {
            fs,
            dir,
            files: BTreeSet::new(),
            dirs,
            open: None,
            is_created,
            is_finished: false,
        };
        mark.write_at(MARK, 0)?;
        mark.sync_data()?;
        sink.fs.sync_dir(&sink.dir)?;
        if let Some(parent) = sink.dir.parent() {
            sink.fs.sync_dir(parent)?;
        }
        Ok(sink)
    }

    fn file(&mut self, path: &str) -> io::Result<SharedFile> {
        if let Some((_, file)) = self.open.as_ref().filter(|(of, _)| of == path) {
            return Ok(SharedFile::clone(file));
        }
        let full = self.dir.join(path);
        let is_new = self.files.insert(path.to_owned());
        if let Some(parent) = full.parent().filter(|parent| !self.dirs.contains(*parent)) {
            self.fs.create_dir_all(parent)?;
            let up = parent.ancestors().take_while(|dir| *dir != self.dir).map(Path::to_path_buf);
            self.dirs.extend(up);
        }
        let mode = if is_new { OpenMode::CreateNew } else { OpenMode::Write };
        let file = self.fs.open(&full, mode)?;
        self.open = Some((path.to_owned(), SharedFile::clone(&file)));
        Ok(file)
    }
}

impl BackupSink for DirectorySink {
    fn write(&mut self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = self.file(path)?;
        if bytes.is_empty() { Ok(()) } else { file.write_at(bytes, offset) }
    }

    fn finish(&mut self, manifest: &Manifest) -> io::Result<()> {
        self.open = None;
        for entry in &manifest.files {
            let file = self.fs.open(&self.dir.join(&entry.path), OpenMode::Write)?;
            if file.len()? != entry.size {
                file.set_len(entry.size)?;
            }
            file.sync_data()?;
        }
        // The deepest directories first.
        self.dirs.iter().rev().try_for_each(|dir| self.fs.sync_dir(dir))?;
        let (path, unfinished) = (self.dir.join(MANIFEST), self.dir.join(UNFINISHED));
        self.fs.replace(&path, &unfinished, manifest.encode().as_bytes())?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for DirectorySink {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        self.open = None;
        let files = self.files.iter().map(String::as_str);
        let removed: Vec<bool> = files.map(|path| self.fs.remove(&self.dir.join(path)).is_ok()).collect();
        for dir in self.dirs.iter().rev().filter(|dir| **dir != self.dir) {
            let _ = self.fs.remove_dir(dir);
        }
        // The mark stays if something else stays. A manifest that could not be made durable goes as well.
        if removed.into_iter().all(|is_removed| is_removed) {
            let _ = self.fs.remove(&self.dir.join(MANIFEST));
            let _ = self.fs.remove(&self.dir.join(UNFINISHED));
            if self.is_created {
                let _ = self.fs.remove_dir(&self.dir);
            }
        }
    }
}
