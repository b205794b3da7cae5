//! Catalogues: one object per backup, written last. A backup without a catalogue does not exist.

use std::collections::HashMap;
use std::path::Path;

use cohort_backup_format::{FORMAT_INCREMENTAL, FileEntry as Listed, Manifest, RangeEntry};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::hex;
use crate::key::{ChunkId, random};

/// The contents of a catalogue, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Name of the backup and of the object.
    pub name: String,
    /// End of the take. Later than that of the backup before, even if the clock went back.
    #[serde(with = "crate::moment")]
    pub taken_at: Timestamp,
    /// Version of the program that took the backup.
    pub program: String,
    /// The server's manifest without its list of files. `files` has the manifest as it was, too.
    pub manifest: Manifest,
    pub files: Vec<FileEntry>,
    /// Bytes of the objects that this backup added to the repository.
    pub added_bytes: u64,
}

/// Offset of a run of bytes that the file does not have any more. Versions that do not know it refuse the
/// catalogue.
pub const SKIPPED: u64 = u64::MAX;

/// A file of a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path relative to the data directory.
    pub name: String,
    pub bytes: u64,
    pub pieces: Vec<Piece>,
}

/// A chunk with its places in a file. Bytes that no piece covers are a hole. A run at [`SKIPPED`] has no
/// place: an incremental backup has replaced it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    #[serde(with = "hexadecimal")]
    pub chunk: ChunkId,
    /// Size of the object.
    pub stored: u64,
    /// Offsets and lengths: the chunk's bytes in order.
    pub runs: Vec<(u64, u32)>,
}

mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(id: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&crate::hex::encode(id))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        crate::hex::decode(&text).ok_or_else(|| D::Error::custom("64 hexadecimal digits are expected"))
    }
}

impl Piece {
    /// Returns the runs that have a place.
    pub fn placed(&self) -> impl Iterator<Item = &(u64, u32)> {
        self.runs.iter().filter(|(offset, _)| *offset != SKIPPED)
    }

    /// Returns what is left of the piece in a file of this length whose `replaced` ranges, which ascend, come
    /// from elsewhere.
    fn without(&self, replaced: &[RangeEntry], bytes: u64) -> Option<Piece> {
        let mut runs: Vec<(u64, u32)> = Vec::new();
        let mut add = |offset: u64, length: u64| match runs.last_mut() {
            _ if length == 0 => {}
            Some((SKIPPED, last)) if offset == SKIPPED => *last += length as u32,
            _ => runs.push((offset, length as u32)),
        };
        for (offset, length) in &self.runs {
            if *offset == SKIPPED {
                add(SKIPPED, u64::from(*length));
                continue;
            }
            let (mut at, end) = (*offset, offset + u64::from(*length));
            let first = replaced.partition_point(|range| range.offset + range.size <= at);
            for range in replaced[first..].iter().take_while(|range| range.offset < end) {
                let (from, to) = (range.offset.clamp(at, end), (range.offset + range.size).min(end));
                add(at, from.min(bytes).saturating_sub(at));
                add(SKIPPED, from - from.min(bytes).max(at) + (to - from));
                at = to;
            }
            add(at, end.min(bytes).saturating_sub(at));
            add(SKIPPED, end - end.min(bytes).max(at));
        }
        let is_used = runs.iter().any(|(offset, _)| *offset != SKIPPED);
        is_used.then(|| Piece { runs, ..self.clone() })
    }

    /// Returns the length of the chunk's contents.
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(|(_, length)| u64::from(*length)).sum()
    }
}

impl Catalogue {
    /// Returns a new name: names sort by time.
    pub fn new_name(taken_at: Timestamp) -> String {
        format!("{}-{}", taken_at.strftime("%Y%m%dT%H%M%S%.3fZ"), hex::encode(&random::<4>()))
    }

    /// Returns whether a name has the form of those that [`Catalogue::new_name`] returns.
    pub fn is_name(name: &str) -> bool {
        const FORM: &[u8] = b"00000000T000000.000Z-xxxxxxxx";
        let fits = |(byte, form): (u8, &u8)| match form {
            b'0' => byte.is_ascii_digit(),
            b'x' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            _ => byte == *form,
        };
        name.len() == FORM.len() && name.bytes().zip(FORM).all(fits)
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("all keys are strings")
    }

    /// Decodes a catalogue, and checks what a restore relies on.
    pub fn decode(name: &str, contents: &[u8]) -> Result<Catalogue> {
        let damaged = |why: String| Failure::Damaged(format!("the catalogue of backup {name}: {why}"));
        let read: Catalogue = serde_json::from_slice(contents).map_err(|error| damaged(error.to_string()))?;
        if read.name != name {
            return Err(damaged(format!("it is that of backup {}", read.name)));
        }
        for file in &read.files {
            check_name(&file.name).map_err(damaged)?;
            let ends = file.pieces.iter().flat_map(Piece::placed);
            let mut ends = ends.map(|(offset, length)| offset.checked_add(u64::from(*length)));
            if ends.any(|end| end.is_none_or(|end| end > file.bytes)) {
                return Err(damaged(format!("{} has bytes after its end", file.name)));
            }
        }
        Ok(read)
    }

    /// Returns the size of all files without their holes.
    pub fn bytes(&self) -> u64 {
        self.pieces().map(Piece::bytes).sum()
    }

    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.files.iter().flat_map(|file| &file.pieces)
    }

    /// Returns the chunks with the sizes of their objects.
    pub fn chunks(&self) -> HashMap<ChunkId, u64> {
        self.pieces().map(|piece| (piece.chunk, piece.stored)).collect()
    }
}

/// Joins an incremental backup with the one that it continues: adds to its files the pieces of that one that
/// it has not replaced. Returns the manifest of the whole.
pub fn join(manifest: &Manifest, files: &mut [FileEntry], base: &Catalogue) -> Result<Manifest> {
    let of_base: HashMap<&str, &FileEntry> =
        base.files.iter().map(|file| (file.name.as_str(), file)).collect();
    let partial = |entry: &&Listed| entry.crc32c.is_none();
    let ranges: HashMap<&str, &[RangeEntry]> =
        manifest.files.iter().filter(partial).map(|entry| (entry.path.as_str(), &entry.ranges[..])).collect();
    for file in files {
        let Some(replaced) = ranges.get(file.name.as_str()) else { continue };
        let before = of_base.get(file.name.as_str()).ok_or_else(|| {
            Failure::Damaged(format!(
                "'{}' is continued, and backup {} does not have it",
                file.name, base.name
            ))
        })?;
        let bytes = file.bytes;
        file.pieces.extend(before.pieces.iter().filter_map(|piece| piece.without(replaced, bytes)));
    }
    Ok(Manifest {
        format: FORMAT_INCREMENTAL,
        parent: None,
        joined: base.manifest.joined + 1,
        files: manifest.files.iter().map(|entry| Listed { ranges: Vec::new(), ..entry.clone() }).collect(),
        ..manifest.clone()
    })
}

/// Accepts the name of a file that lies inside of a data directory.
pub fn check_name(name: &str) -> std::result::Result<(), String> {
    let parts = || Path::new(name).components();
    let is_inside = parts().all(|part| matches!(part, std::path::Component::Normal(_)));
    // Names with empty parts or a dot have more than one spelling.
    let is_plain = parts().collect::<std::path::PathBuf>().as_os_str() == name;
    match is_inside && is_plain && !name.is_empty() && !name.contains('\0') {
        true => Ok(()),
        false => {
            Err(format!("'{}' is not the name of a file inside of a data directory", name.escape_debug()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_backups_have_one_form() {
        assert!(Catalogue::is_name(&Catalogue::new_name(Timestamp::now())));
        for other in ["zz.tmp", "", "20261128T193000.000Z-1a2b3c4d~", "20261128T193000.000Z-1a2b3c4g"] {
            assert!(!Catalogue::is_name(other), "{other}");
        }
    }

    #[test]
    fn pieces_lose_what_was_replaced() {
        let range = |offset, size| RangeEntry { offset, size, ..RangeEntry::default() };
        let piece = |runs: &[(u64, u32)]| Piece { chunk: [7; 32], stored: 9, runs: runs.to_vec() };
        const S: u64 = SKIPPED;
        type Case<'a> = (&'a [(u64, u32)], &'a [(u64, u64)], u64, &'a [(u64, u32)]);
        let cases: &[Case<'_>] = &[
            (&[(0, 10)], &[], 100, &[(0, 10)]),
            (&[(0, 10)], &[(2, 3)], 100, &[(0, 2), (S, 3), (5, 5)]),
            (&[(0, 10)], &[(0, 4), (8, 9)], 100, &[(S, 4), (4, 4), (S, 2)]),
            (&[(0, 10), (20, 10)], &[(5, 20)], 100, &[(0, 5), (S, 10), (25, 5)]),
            (&[(0, 10)], &[(0, 10)], 100, &[]),
            (&[(0, 10), (50, 5)], &[], 7, &[(0, 7), (S, 8)]),
            (&[(0, 10)], &[(2, 2)], 6, &[(0, 2), (S, 2), (4, 2), (S, 4)]),
            (&[(0, 10)], &[(7, 2)], 6, &[(0, 6), (S, 4)]),
            (&[(S, 3), (3, 4), (S, 2)], &[(3, 1), (6, 9)], 100, &[(S, 4), (4, 2), (S, 3)]),
            (&[(30, 4)], &[(0, 9), (40, 2)], 100, &[(30, 4)]),
        ];
        for (runs, replaced, bytes, expected) in cases {
            let replaced: Vec<RangeEntry> = replaced.iter().map(|(at, size)| range(*at, *size)).collect();
            let left = piece(runs).without(&replaced, *bytes).map_or_else(Vec::new, |left| left.runs);
            assert_eq!(left, *expected, "{runs:?} without {replaced:?} up to {bytes}");
        }
    }

    #[test]
    fn names_stay_inside_of_the_directory() {
        for good in ["a", "log/000001", "a/b/c", "..a", "a b"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "/a", "../a", "a/../b", "a/", "a//b", "./a", "a/./b", "a\0b", "..", "."] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
