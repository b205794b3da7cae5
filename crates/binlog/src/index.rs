//! The index file: one line per binlog file, oldest first (`./binlog.000001`).
//!
//! It is replaced as a whole: temporary file, sync, rename, sync of the directory. The index, not the
//! directory, decides which files exist.

use std::path::PathBuf;

use cohort_vfs::{OpenMode, SharedFs};

use crate::{BinlogError, BinlogName};

/// Reads the file numbers. Returns `None` if there is no index.
pub(crate) fn read(fs: &SharedFs, name: &BinlogName) -> Result<Option<Vec<u32>>, BinlogError> {
    let path = name.index_path();
    if !fs.exists(&path) {
        return Ok(None);
    }
    let io = |e| BinlogError::io("read", &path, e);
    let file = fs.open(&path, OpenMode::Read).map_err(io)?;
    let mut bytes = vec![0; file.len().map_err(io)? as usize];
    let got = file.read_at(&mut bytes, 0).map_err(io)?;
    let text = String::from_utf8_lossy(&bytes[..got]).into_owned();
    let mut numbers = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let number = name.number(line);
        let ascending = numbers.last() < number.as_ref();
        numbers.push(
            number
                .filter(|_| ascending)
                .ok_or_else(|| BinlogError::BadIndex { path: path.clone(), line: line.to_owned() })?,
        );
    }
    Ok(Some(numbers))
}

/// Removes the index, if there is one.
pub(crate) fn remove(fs: &SharedFs, name: &BinlogName) -> Result<(), BinlogError> {
    let path = name.index_path();
    match fs.exists(&path) {
        true => fs.remove(&path).map_err(|e| BinlogError::io("remove", &path, e)),
        false => Ok(()),
    }
}

/// Replaces the index. On return the index is durable, and so are new names in the directory.
pub(crate) fn write(fs: &SharedFs, name: &BinlogName, numbers: &[u32]) -> Result<(), BinlogError> {
    let path = name.index_path();
    let tmp: PathBuf = name.dir().join(format!("{}.index.tmp", name.base()));
    let text: String = numbers.iter().map(|&number| name.index_line(number) + "\n").collect();
    fs.replace(&path, &tmp, text.as_bytes()).map_err(|e| BinlogError::io("write", &path, e))
}
