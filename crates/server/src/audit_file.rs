//! A log file that is rotated when it is full: `audit.log` becomes `audit.log.1`, that becomes `audit.log.2`,
//! and the oldest one is replaced. The numbers are padded to the width of the largest one, as in MariaDB.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Size at which a file is rotated, and number of rotated files to keep.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    pub bytes_max: u64,
    /// 0 disables rotation.
    pub files_max: u32,
}

/// An open log file.
pub struct AuditFile {
    path: PathBuf,
    rotation: Rotation,
    /// `None` if the file could not be opened after a rotation. The next line tries again.
    file: Option<File>,
    bytes: u64,
}

impl AuditFile {
    /// Opens the file for appending. Refuses anything but a regular file, because writing to it might block.
    pub fn open(path: PathBuf, rotation: Rotation) -> io::Result<AuditFile> {
        let (file, bytes) = open(&path)?;
        Ok(AuditFile { path, rotation, file: Some(file), bytes })
    }

    pub fn set_rotation(&mut self, rotation: Rotation) {
        self.rotation = rotation;
    }

    /// Appends a line. After an error no part of it is in the file.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.bytes >= self.rotation.bytes_max {
            self.rotate();
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let (file, bytes) = open(&self.path)?;
                self.bytes = bytes;
                self.file.insert(file)
            }
        };
        let written = file.write_all(line);
        match &written {
            Ok(()) => self.bytes += line.len() as u64,
            // The line may be written partially. If it cannot be cut off, it remains.
            Err(_) => drop(file.set_len(self.bytes)),
        }
        written
    }

    /// Rotates the file. If that fails, the file continues to grow.
    pub fn rotate(&mut self) {
        let last = self.rotation.files_max;
        if last == 0 {
            return;
        }
        for n in (1..last).rev() {
            // Most of these files do not exist.
            let _ = fs::rename(self.numbered(n), self.numbered(n + 1));
        }
        if fs::rename(&self.path, self.numbered(1)).is_ok() {
            (self.file, self.bytes) = (None, 0);
        }
    }

    fn numbered(&self, n: u32) -> PathBuf {
        let digits = self.rotation.files_max.to_string().len();
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{n:0digits$}"));
        name.into()
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o660)
        // Otherwise opening a pipe would wait for its reader.
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    #[test]
    fn a_full_file_is_rotated_and_the_oldest_one_is_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("audit.log");
        let numbered = |n: &str| contents(&dir.path().join(format!("audit.log.{n}")));
        let rotation = Rotation { bytes_max: 4, files_max: 2 };
        let mut file = AuditFile::open(path.clone(), rotation).expect("opens");
        for line in ["1\n", "2\n", "3333\n", "4444\n", "5\n"] {
            file.append(line.as_bytes()).expect("there is room");
        }
        assert_eq!(contents(&path).as_deref(), Some("5\n"));
        assert_eq!(numbered("1").as_deref(), Some("4444\n"));
        assert_eq!(numbered("2").as_deref(), Some("3333\n"));
        assert_eq!(numbered("3"), None);
        file.set_rotation(Rotation { bytes_max: 4, files_max: 10 });
        file.rotate();
        assert_eq!(numbered("01").as_deref(), Some("5\n"));
        file.set_rotation(Rotation { bytes_max: 4, files_max: 0 });
        for line in ["6666\n", "7\n"] {
            file.append(line.as_bytes()).expect("there is room");
        }
        file.rotate();
        assert_eq!(contents(&path).as_deref(), Some("6666\n7\n"));
        drop(file);
        // A restart continues with the existing file.
        let mut file = AuditFile::open(path.clone(), Rotation { bytes_max: 7, files_max: 1 }).expect("opens");
        file.append(b"8\n").expect("there is room");
        assert_eq!(contents(&path).as_deref(), Some("8\n"));
    }

    #[test]
    fn paths_that_are_not_files_are_refused_without_waiting() {
        let rotation = Rotation { bytes_max: 100, files_max: 1 };
        for path in ["/dev/full", "/", "/nonexistent/audit.log"] {
            assert!(AuditFile::open(path.into(), rotation).is_err(), "{path}");
        }
    }
}
