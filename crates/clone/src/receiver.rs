//! The receiver of a backup's stream: writes pieces as they arrive into a [`Target`].
//!
//! The manifest is the last file, and every file must have the length and the checksum that it states.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cohort_backup_format::{FileSum, MANIFEST, Manifest, UNFINISHED, is_safe_path};

use crate::failure::{Failure, Result};
use crate::target::Target;

/// Maximum size of a manifest.
pub const MANIFEST_BYTES_MAX: usize = 64 << 20;

/// Writes the pieces of a stream into a directory.
pub struct Receiver<'a> {
    target: &'a Target,
    sums: HashMap<String, FileSum>,
    manifest: Vec<u8>,
    /// The file of the last piece.
    open: Option<(String, File)>,
}

impl<'a> Receiver<'a> {
    /// Returns a receiver of nothing yet.
    pub fn new(target: &'a Target) -> Receiver<'a> {
        Receiver { target, sums: HashMap::new(), manifest: Vec::new(), open: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.target.path().join(name)
    }

    /// Writes a piece. Every byte may come once.
    pub fn add(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        if name == MANIFEST {
            if offset != self.manifest.len() as u64 || bytes.len() + self.manifest.len() > MANIFEST_BYTES_MAX
            {
                return Err(Failure::Failed(
                    "the server sent a manifest with gaps or without end".to_owned(),
                ));
            }
            self.manifest.extend_from_slice(bytes);
            return Ok(());
        }
        if self.open.as_ref().is_none_or(|(open, _)| open != name) {
            let file = match self.sums.contains_key(name) {
                true => OpenOptions::new()
                    .write(true)
                    .open(self.path(name))
                    .map_err(|error| Failure::of_file(&self.path(name), error))?,
                false => {
                    if !is_safe_path(name) || name == UNFINISHED {
                        let name = name.escape_debug();
                        return Err(Failure::Failed(format!("the server sent a file of the name '{name}'")));
                    }
                    self.target.create(name, 0)?
                }
            };
            self.open = Some((name.to_owned(), file));
        }
        self.sums
            .entry(name.to_owned())
            .or_default()
            .add(offset, bytes)
            .map_err(|_| Failure::Failed(format!("the server sent bytes of '{name}' at {offset} twice")))?;
        let (_, file) = self.open.as_ref().expect("opened above");
        file.write_all_at(bytes, offset).map_err(|error| Failure::of_file(&self.path(name), error))
    }

    /// Compares all files with the manifest, gives them their lengths, and writes the manifest.
    pub fn finish(self) -> Result<Manifest> {
        if self.manifest.is_empty() {
            return Err(Failure::Failed("the stream ended before the manifest: it is no backup".to_owned()));
        }
        let manifest = Manifest::decode(&self.manifest, Path::new(MANIFEST)).map_err(Failure::of_manifest)?;
        let mut sums = self.sums;
        for entry in &manifest.files {
            let path = self.target.path().join(&entry.path);
            let sum = sums.remove(&entry.path);
            // A file without bytes, or of zeros only, is in the manifest alone.
            if sum.is_none() {
                self.target.create(&entry.path, 0)?;
            }
            let sum = sum.unwrap_or_default();
            if sum.end() > entry.size || entry.crc32c != Some(sum.of_file(entry.size)) {
                return Err(Failure::Damaged(format!(
                    "'{}' does not have the length and the checksum that the manifest has for it; clone again",
                    entry.path
                )));
            }
            let file = OpenOptions::new().write(true).open(&path);
            file.and_then(|file| file.set_len(entry.size)).map_err(|error| Failure::of_file(&path, error))?;
        }
        if let Some(name) = sums.keys().next() {
            return Err(Failure::Damaged(format!("the manifest does not list '{name}'")));
        }
        let path = self.target.path().join(UNFINISHED);
        std::fs::write(&path, &self.manifest).map_err(|error| Failure::of_file(&path, error))?;
        Ok(manifest)
    }
}
