//! Catalogues: one object per backup, written last. A backup without a catalogue does not exist.

use std::collections::HashMap;
use std::path::Path;

use cohort_backup_format::Manifest;
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

/// A file of a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path relative to the data directory.
    pub name: String,
    pub bytes: u64,
    pub pieces: Vec<Piece>,
}

/// A chunk with its places in a file. Bytes that no piece covers are a hole.
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
            let ends = file.pieces.iter().flat_map(|piece| &piece.runs);
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
    fn names_stay_inside_of_the_directory() {
        for good in ["a", "log/000001", "a/b/c", "..a", "a b"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "/a", "../a", "a/../b", "a/", "a//b", "./a", "a/./b", "a\0b", "..", "."] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
