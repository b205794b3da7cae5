//! Format of the small files that participants write at a checkpoint. Each is written as a whole.
//!
//! ```text
//! 0   8  magic
//! 8   8  LSN of the checkpoint
//! 16  n  the participant's data
//! ..  4  CRC-32C of all before
//! ```

use std::path::Path;

use cohort_base::{Lsn, Reader, Write};
use cohort_vfs::{OpenMode, SharedFs};

use crate::traits::EngineError;

/// Returns the start of a file. The participant's data is appended to it.
pub fn begin(magic: &[u8; 8], lsn: Lsn) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.put_u64(lsn.0);
    bytes
}

/// Appends the checksum, which completes a file.
pub fn seal(bytes: &mut Vec<u8>) {
    let crc = crc32c::crc32c(bytes);
    bytes.put_u32(crc);
}

/// Returns the LSN of a file and a reader of the participant's data, or `None` if the checksum or the magic
/// is wrong.
pub fn open<'b>(magic: &[u8; 8], bytes: &'b [u8]) -> Option<(Lsn, Reader<'b>)> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return None;
    }
    let mut r = Reader::new(body);
    if r.bytes(magic.len()).ok()? != magic {
        return None;
    }
    Some((Lsn(r.u64().ok()?), r))
}

/// Reads a whole file.
pub fn read_bytes(fs: &SharedFs, path: &Path) -> Result<Vec<u8>, EngineError> {
    let file = fs.open(path, OpenMode::Read).map_err(EngineError::Io)?;
    let mut bytes = vec![0; file.len().map_err(EngineError::Io)? as usize];
    file.read_at(&mut bytes, 0).map_err(EngineError::Io)?;
    Ok(bytes)
}

/// Reads and decodes a file. Returns an error that names the file if the checksum or the magic is wrong or if
/// `decode` fails.
pub fn read<T>(
    fs: &SharedFs,
    path: &Path,
    magic: &[u8; 8],
    decode: impl FnOnce(Lsn, Reader<'_>) -> Option<T>,
) -> Result<T, EngineError> {
    let bytes = read_bytes(fs, path)?;
    let decoded = open(magic, &bytes).and_then(|(lsn, rest)| decode(lsn, rest));
    decoded.ok_or_else(|| {
        EngineError::Corrupt(format!(
            "{}: the bytes from offset 0 to {} fail their checksum; restore the file from a backup",
            path.display(),
            bytes.len()
        ))
    })
}
