//! Segments: the files of the log, and the position of an LSN in them.
//!
//! Segment `i` (from 0) is the file `log.{i+1:06}`. After a header block of 4 KiB it holds the stream bytes
//! `i * capacity .. (i + 1) * capacity`, where `capacity = segment_bytes - 4096`. Hence a 4 KiB block of the
//! stream is a block of the file.
//!
//! ```text
//!    0  u32    CRC-32C of bytes 4..4096
//!    4  [8]    "COHORTLG"
//!   12  u32    format version, 1
//!   16  u64    segment number i
//!   24  u64    LSN of its first byte
//!   32  u64    segment_bytes
//!   40  u32    salt of the log
//!   44         zeros
//! 4096         the stream
//! ```
//!
//! A file gets its name only after its header and all its blocks are durable. So a segment with a name in use
//! and a wrong header is damaged in any case.

use std::io;
use std::path::{Path, PathBuf};

use cohort_base::Reader;
use cohort_vfs::{OpenMode, SharedFile, SharedFs};

use crate::LogError;

/// Block size of the log; also the size of a segment's header.
pub(crate) const BLOCK_BYTES: u64 = 4096;
const MAGIC: &[u8; 8] = b"COHORTLG";
const VERSION: u32 = 1;
/// Bytes per write when a segment is filled with zeros.
const FILL_BYTES: u64 = 1 << 20;
/// Bytes per sync when a segment is filled: a concurrent commit's sync waits for no more than this.
const SYNC_BYTES: u64 = 8 << 20;
/// Temporary name of a segment during its creation.
pub(crate) const UNFINISHED: &str = "log.new";

/// Sizes that convert LSNs to file positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub segment_bytes: u64,
    pub salt: u32,
}

impl Geometry {
    /// Returns the stream bytes per segment.
    pub fn capacity(self) -> u64 {
        self.segment_bytes - BLOCK_BYTES
    }

    /// Returns the segment that holds this byte of the stream.
    pub fn segment_of(self, lsn: u64) -> u64 {
        lsn / self.capacity()
    }

    /// Returns the first LSN of a segment.
    pub fn start_of(self, segment: u64) -> u64 {
        segment * self.capacity()
    }

    /// Returns the offset of this byte in its segment's file.
    pub fn offset_of(self, lsn: u64) -> u64 {
        BLOCK_BYTES + lsn % self.capacity()
    }
}

/// Method of writing the blocks of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Through the page cache.
    Buffered,
    /// Bypassing the page cache. The blocks are read again only after a crash.
    Direct,
}

impl Way {
    pub fn of(buffered: bool) -> Way {
        if buffered { Way::Buffered } else { Way::Direct }
    }

    fn open(self, fs: &SharedFs, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        match self {
            Way::Buffered => fs.open(path, mode),
            Way::Direct => fs.open_direct(path, mode),
        }
    }
}

/// Returns the file name of a segment.
pub(crate) fn name_of(segment: u64) -> PathBuf {
    format!("log.{:06}", segment + 1).into()
}

/// Returns the path of a segment.
pub(crate) fn path_of(dir: &Path, segment: u64) -> PathBuf {
    dir.join(name_of(segment))
}

/// Returns the number of the segment with this file name.
pub(crate) fn parse_name(name: &Path) -> Option<u64> {
    let digits = name.to_str()?.strip_prefix("log.")?;
    let number: u64 = digits.parse().ok()?;
    (number > 0 && format!("{number:06}") == digits).then(|| number - 1)
}

/// Returns the first block of a segment.
pub(crate) fn header(geometry: Geometry, segment: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES as usize];
    block[4..12].copy_from_slice(MAGIC);
    block[12..16].copy_from_slice(&VERSION.to_le_bytes());
    block[16..24].copy_from_slice(&segment.to_le_bytes());
    block[24..32].copy_from_slice(&geometry.start_of(segment).to_le_bytes());
    block[32..40].copy_from_slice(&geometry.segment_bytes.to_le_bytes());
    block[40..44].copy_from_slice(&geometry.salt.to_le_bytes());
    let crc = crc32c::crc32c(&block[4..]);
    block[..4].copy_from_slice(&crc.to_le_bytes());
    block
}

/// Creates a new segment. At return it is zero-filled and durable under its name.
pub(crate) fn create(
    fs: &SharedFs,
    way: Way,
    dir: &Path,
    geometry: Geometry,
    segment: u64,
) -> io::Result<SharedFile> {
    let unfinished = dir.join(UNFINISHED);
    let filled = fill(fs, way, &unfinished, geometry, segment);
    if filled.is_err() {
        // Frees the space; if that fails too, the next start removes the file.
        let _ = fs.remove(&unfinished);
    }
    let file = filled?;
    fs.rename(&unfinished, &path_of(dir, segment))?;
    fs.sync_dir(dir)?;
    Ok(file)
}

fn fill(fs: &SharedFs, way: Way, path: &Path, geometry: Geometry, segment: u64) -> io::Result<SharedFile> {
    let file = way.open(fs, path, OpenMode::CreateOrOpen)?;
    file.write_at(&header(geometry, segment), 0)?;
    let zeros = vec![0; FILL_BYTES.min(geometry.capacity()) as usize];
    let mut at = BLOCK_BYTES;
    while at < geometry.segment_bytes {
        let n = (geometry.segment_bytes - at).min(zeros.len() as u64);
        file.write_at(&zeros[..n as usize], at)?;
        at += n;
        if at % SYNC_BYTES < n {
            file.sync_data()?;
        }
    }
    file.sync_data()?;
    Ok(file)
}

/// Writes the blocks of a segment again that are zero, because they may be holes. Durable at return.
pub(crate) fn fill_holes(file: &SharedFile, geometry: Geometry) -> io::Result<()> {
    let mut piece = vec![0; FILL_BYTES.min(geometry.capacity()) as usize];
    let zeros = vec![0; piece.len()];
    let mut at = BLOCK_BYTES;
    while at < geometry.segment_bytes {
        let piece = &mut piece[..(geometry.segment_bytes - at).min(zeros.len() as u64) as usize];
        if file.read_at(piece, at)? < piece.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = &*piece;
        while !rest.is_empty() {
            let is_zero = |block: &&[u8]| block.iter().all(|byte| *byte == 0);
            let blocks = || rest.chunks(BLOCK_BYTES as usize);
            let run: usize = blocks().take_while(is_zero).map(<[u8]>::len).sum();
            file.write_at(&zeros[..run], at + (piece.len() - rest.len()) as u64)?;
            let used: usize =
                rest[run..].chunks(BLOCK_BYTES as usize).take_while(|b| !is_zero(b)).map(<[u8]>::len).sum();
            rest = &rest[run + used..];
        }
        at += piece.len() as u64;
    }
    file.sync_data()
}

/// Reuses the file of a released segment for a later one. The old contents stay; they are recognized by LSNs
/// and salt.
pub(crate) fn recycle(
    fs: &SharedFs,
    way: Way,
    dir: &Path,
    geometry: Geometry,
    old: u64,
    new: u64,
) -> io::Result<SharedFile> {
    let file = way.open(fs, &path_of(dir, old), OpenMode::Write)?;
    file.write_at(&header(geometry, new), 0)?;
    file.sync_data()?;
    fs.rename(&path_of(dir, old), &path_of(dir, new))?;
    fs.sync_dir(dir)?;
    Ok(file)
}

/// Opens a segment and checks that it matches its name.
pub(crate) fn open(
    fs: &SharedFs,
    way: Way,
    dir: &Path,
    geometry: Geometry,
    segment: u64,
) -> Result<SharedFile, LogError> {
    let path = path_of(dir, segment);
    let corrupt = |offset, what| LogError::Corrupt { file: path.clone(), offset, what, cure: RESTORE };
    let file = way.open(fs, &path, OpenMode::Write).map_err(|e| LogError::io(&path, "opening", e))?;
    let mut block = vec![0; BLOCK_BYTES as usize];
    file.read_at(&mut block, 0).map_err(|e| LogError::io(&path, "reading", e))?;
    let mut r = Reader::new(&block);
    if r.u32() != Ok(crc32c::crc32c(&block[4..])) {
        return Err(corrupt(0, "the checksum of the segment header is wrong"));
    }
    if r.array() != Ok(*MAGIC) {
        return Err(corrupt(4, "this is no segment of a log"));
    }
    match r.u32() {
        Ok(VERSION) => {}
        found => {
            return Err(LogError::Version { file: path, found: found.unwrap_or(0), known: VERSION });
        }
    }
    if block != header(geometry, segment) {
        return Err(corrupt(16, "the segment belongs to another log or has a wrong name"));
    }
    let len = file.len().map_err(|e| LogError::io(&path, "reading the length", e))?;
    if len != geometry.segment_bytes {
        return Err(corrupt(len, "the segment has a wrong length"));
    }
    Ok(file)
}

/// Instruction for the administrator when durable bytes are lost.
pub(crate) const RESTORE: &str =
    "transactions that were acknowledged are damaged: restore the data directory from a backup or a replica";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_strictly() {
        assert_eq!(path_of(Path::new("/d"), 0), Path::new("/d/log.000001"));
        assert_eq!(parse_name(Path::new("log.000001")), Some(0));
        assert_eq!(parse_name(Path::new("log.1234567")), Some(1_234_566));
        for bad in ["log.000000", "log.1", "log.0000001", "log.control", "log.new", "log.+00001", "x"] {
            assert_eq!(parse_name(Path::new(bad)), None, "{bad}");
        }
    }

    #[test]
    fn lsns_map_to_blocks() {
        let g = Geometry { segment_bytes: 16384, salt: 0 };
        assert_eq!((g.capacity(), g.segment_of(12287), g.segment_of(12288)), (12288, 0, 1));
        assert_eq!((g.offset_of(0), g.offset_of(12287), g.offset_of(12288)), (4096, 16383, 4096));
    }
}
