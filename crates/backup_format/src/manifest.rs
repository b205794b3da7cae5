//! The manifest of a backup.
//!
//! ```text
//! {
//!   "checksum": "0badc0de",      CRC-32C of everything after this line, eight hexadecimal digits
//!   "format": 1,
//!   ...                          the fields of `Manifest`
//! }
//! ```
//! A reader checks the format's number first: it rejects a newer one by its number, not by what it does not
//! know in it. Fields may be added without a new number if a reader that ignores them still restores every
//! row.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Name of the manifest in a backup.
pub const MANIFEST: &str = "cohort-backup.json";
/// Name of the manifest in a data directory that was a backup.
pub const RESTORED: &str = "cohort-backup.restored.json";
/// Name of the file that marks a backup as unfinished.
pub const UNFINISHED: &str = "cohort-backup.unfinished";
/// Number of the newest format that this version reads.
pub const FORMAT: u32 = 2;
/// Format of full backups.
pub const FORMAT_FULL: u32 = 1;
/// Format of incremental backups, and of those that were joined with the ones that they continue.
pub const FORMAT_INCREMENTAL: u32 = 2;

const HEAD: &str = "{\n  \"checksum\": \"";
const HEAD_END: &str = "\",\n";
const CRC_DIGITS: usize = 8;

/// A CRC-32C, written as eight hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crc(pub u32);

impl fmt::Display for Crc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl Crc {
    /// Parses eight hexadecimal digits.
    pub fn parse(text: &str) -> Option<Crc> {
        let is_hex = text.len() == CRC_DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit());
        is_hex.then(|| u32::from_str_radix(text, 16).ok().map(Crc)).flatten()
    }
}

impl Serialize for Crc {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Crc {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Crc, D::Error> {
        let text = String::deserialize(from)?;
        Crc::parse(&text).ok_or_else(|| serde::de::Error::custom("a checksum has eight hexadecimal digits"))
    }
}

/// Everything that a restore and its operator need to know about a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the manifest, at most [`FORMAT`] of the version that wrote it.
    pub format: u32,
    /// Identifies the backup: 32 random hexadecimal digits.
    pub id: String,
    /// `@@version` of the server.
    pub server_version: String,
    /// `@@server_uid` of the server; empty if it has none.
    pub server_uuid: String,
    /// `@@server_id` of the server.
    pub server_id: u32,
    /// Number of the history that the log belongs to: it grows with each restore that ends before the end of
    /// the log.
    pub timeline: u32,
    /// `log_layout`: `shared` or `separate`.
    pub layout: String,
    /// Names of the engines that the server has, as in `ENGINE=`.
    pub engines: Vec<String>,
    /// LSN of the log where a start from the backup begins to read.
    pub checkpoint_lsn: u64,
    /// LSN where the log of the backup ends.
    pub cut_lsn: u64,
    /// `@@gtid_binlog_pos` at the cut.
    pub gtid_binlog_pos: String,
    /// `@@gtid_current_pos` at the cut: where a replica that is made of the backup continues.
    pub gtid_current_pos: String,
    /// End of the binary log at the cut; absent if the binary log is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binlog: Option<BinlogPosition>,
    /// Base name of the binary log in the directory: what `log_bin` must be when a server starts there. Empty
    /// if the binary log is off.
    pub log_bin: String,
    /// Connections of the server to its own sources, with its positions.
    #[serde(default)]
    pub sources: Vec<SourcePosition>,
    /// Begin of the backup, UTC, such as `2026-11-28T19:30:00Z`.
    pub begun: String,
    /// Moment of the cut, UTC: the state that a restore has.
    pub cut: String,
    /// The backup that this incremental one continues; absent in a full one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Number of incremental backups that were joined with a full one to this one. Files of which they had a
    /// part have no checksum: their pages have.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub joined: u32,
    /// All files except the manifest, sorted by path.
    pub files: Vec<FileEntry>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A position in the binary log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinlogPosition {
    /// Name of the file, as in SHOW BINLOG STATUS.
    pub file: String,
    pub offset: u64,
}

/// A replica's position in one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePosition {
    /// Name of the connection; empty for the default one.
    pub connection: String,
    /// File and offset in the source's binary log up to which transactions were applied; empty if only the
    /// GTID position is known.
    pub file: String,
    pub offset: u64,
}

/// The backup before an incremental one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// [`Manifest::id`] of it.
    pub id: String,
    /// [`Manifest::cut_lsn`] of it.
    pub cut_lsn: u64,
}

/// A file of a backup. It has either a checksum, and is whole, or ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path in the directory, with `/` between its parts.
    pub path: String,
    /// Length of the restored file.
    pub size: u64,
    /// Checksum of all its bytes. Absent if the backup has only ranges of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<Crc>,
    /// Ranges that an incremental backup has, ascending and apart. The other bytes are the parent's; beyond
    /// the parent's end they are zeros.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RangeEntry>,
}

/// A range of a file in an incremental backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeEntry {
    pub offset: u64,
    pub size: u64,
    pub crc32c: Crc,
}

/// The directory is no backup that this version can use. Each text names the file and the cure.
#[derive(Debug)]
pub enum ManifestError {
    /// There is no manifest, and no sign of an unfinished backup.
    Missing(PathBuf),
    /// The backup was not finished.
    Unfinished(PathBuf),
    /// It could not be read.
    Io(PathBuf, std::io::Error),
    /// Its checksum, its syntax or its contents are wrong.
    Damaged(PathBuf, String),
    /// It was written by a newer version.
    Newer { file: PathBuf, format: u32 },
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestError::Missing(file) => {
                write!(f, "{} does not exist: the directory is no backup", file.display())
            }
            ManifestError::Unfinished(file) => write!(
                f,
                "{} exists: the backup was not finished; remove the directory and take a new one",
                file.display()
            ),
            ManifestError::Io(file, error) => write!(f, "{} cannot be read: {error}", file.display()),
            ManifestError::Damaged(file, what) => {
                write!(f, "{} is damaged ({what}); use another backup", file.display())
            }
            ManifestError::Newer { file, format } => write!(
                f,
                "{} has the format {format}, and this version reads formats up to {FORMAT}; use the version that wrote it, \
                 or a newer one",
                file.display()
            ),
        }
    }
}

impl std::error::Error for ManifestError {}

#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

/// Returns whether the path is relative and stays in its directory.
pub fn is_safe_path(path: &str) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    path.split('/').all(is_part)
}

impl Manifest {
    /// Returns the text of the file.
    pub fn encode(&self) -> String {
        let json = serde_json::to_string_pretty(self).expect("maps with text keys only");
        let rest = json.strip_prefix("{\n").expect("an object with fields");
        let rest = format!("{rest}\n");
        format!("{HEAD}{}{HEAD_END}{rest}", Crc(crc32c::crc32c(rest.as_bytes())))
    }

    /// Decodes the text of a file; `file` is its path, for errors.
    pub fn decode(bytes: &[u8], file: &Path) -> Result<Manifest, ManifestError> {
        let damaged = |what: &str| ManifestError::Damaged(file.to_path_buf(), what.to_owned());
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not UTF-8"))?;
        let rest = text.strip_prefix(HEAD).ok_or_else(|| damaged("its first line is no checksum"))?;
        let crc = rest.get(..CRC_DIGITS).and_then(Crc::parse);
        let rest = rest.get(CRC_DIGITS..).and_then(|rest| rest.strip_prefix(HEAD_END));
        let (Some(crc), Some(rest)) = (crc, rest) else {
            return Err(damaged("its first line is no checksum"));
        };
        if crc32c::crc32c(rest.as_bytes()) != crc.0 {
            return Err(damaged("its checksum is wrong"));
        }
        let found: FormatOnly =
            serde_json::from_str(text).map_err(|error| damaged(&format!("no format: {error}")))?;
        if found.format > FORMAT {
            return Err(ManifestError::Newer { file: file.to_path_buf(), format: found.format });
        }
        let manifest: Manifest = serde_json::from_str(text).map_err(|error| damaged(&error.to_string()))?;
        manifest.check().map_err(|what| damaged(&what))?;
        Ok(manifest)
    }

    /// Reads the manifest of a directory.
    pub fn read(dir: &Path) -> Result<Manifest, ManifestError> {
        let (file, unfinished) = (dir.join(MANIFEST), dir.join(UNFINISHED));
        if unfinished.exists() {
            return Err(ManifestError::Unfinished(unfinished));
        }
        match std::fs::read(&file) {
            Ok(bytes) => Manifest::decode(&bytes, &file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(ManifestError::Missing(file)),
            Err(error) => Err(ManifestError::Io(file, error)),
        }
    }

    /// Checks the conditions that readers rely on beyond the syntax.
    fn check(&self) -> Result<(), String> {
        let mut paths = BTreeSet::new();
        for entry in &self.files {
            let path = &entry.path;
            if !is_safe_path(path) || path == MANIFEST || path == UNFINISHED {
                return Err(format!("the path '{path}' is not allowed"));
            }
            if !paths.insert(path) {
                return Err(format!("'{path}' is listed twice"));
            }
            if entry.crc32c.is_none() && self.parent.is_none() && self.joined == 0 {
                return Err(format!("'{path}' has no checksum"));
            }
            if entry.crc32c.is_some() && !entry.ranges.is_empty() {
                return Err(format!("'{path}' has both a checksum and ranges"));
            }
            let mut end = 0;
            for range in &entry.ranges {
                let beyond = range.offset.checked_add(range.size);
                if range.offset < end || beyond.is_none_or(|beyond| beyond > entry.size) {
                    return Err(format!("a range of '{path}' at {} is misplaced", range.offset));
                }
                end = range.offset + range.size;
            }
        }
        // It becomes an option of a server, which must not write elsewhere.
        if !self.log_bin.is_empty() && (self.log_bin.contains('/') || !is_safe_path(&self.log_bin)) {
            return Err(format!("the name '{}' of the binary log is not allowed", self.log_bin));
        }
        if self.checkpoint_lsn > self.cut_lsn {
            return Err("it ends before its checkpoint".to_owned());
        }
        Ok(())
    }

    /// Returns the bytes of all restored files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|entry| entry.size).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn example() -> Manifest {
        let whole = |path: &str, bytes: &[u8]| FileEntry {
            path: path.to_owned(),
            size: bytes.len() as u64,
            crc32c: Some(Crc(crc32c::crc32c(bytes))),
            ranges: Vec::new(),
        };
        Manifest {
            format: FORMAT_FULL,
            id: "00112233445566778899aabbccddeeff".to_owned(),
            server_version: "10.11.99-MariaDB-cohort".to_owned(),
            layout: "shared".to_owned(),
            engines: vec!["InnoDB".to_owned()],
            checkpoint_lsn: 4096,
            cut_lsn: 8192,
            gtid_binlog_pos: "0-1-77".to_owned(),
            binlog: Some(BinlogPosition { file: "binlog.000003".to_owned(), offset: 4711 }),
            log_bin: "binlog".to_owned(),
            begun: "2026-11-28T19:30:00Z".to_owned(),
            cut: "2026-11-28T19:31:00Z".to_owned(),
            files: vec![whole("cohort.catalog", b"catalog"), whole("innodb/btree.data", &[7; 5000])],
            ..Manifest::default()
        }
    }

    fn decode(text: &str) -> Result<Manifest, ManifestError> {
        Manifest::decode(text.as_bytes(), Path::new("m"))
    }

    /// Gives a changed text the checksum that it needs to be looked at.
    fn sealed(text: &str) -> String {
        let rest = text.splitn(3, '\n').nth(2).expect("two lines before");
        format!("{HEAD}{}{HEAD_END}{rest}", Crc(crc32c::crc32c(rest.as_bytes())))
    }

    #[test]
    fn a_manifest_reads_as_written_and_damage_is_noticed() {
        let text = example().encode();
        assert_eq!(decode(&text).expect("whole"), example());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            // The digits of the checksum may change their case without a change of the number.
            let is_same = Manifest::decode(&bytes, Path::new("m")).is_ok_and(|read| read == example());
            assert!(!is_same || bytes[at].is_ascii_hexdigit(), "byte {at}");
            assert!(!is_same || text.as_bytes()[at].eq_ignore_ascii_case(&bytes[at]), "byte {at}");
        }
        (0..text.len()).for_each(|len| assert!(decode(&text[..len]).is_err(), "cut at {len}"));
    }

    #[test]
    fn what_a_reader_must_not_use_is_rejected() {
        let text = example().encode();
        let cases = [
            ("\"format\": 1", "\"format\": 3", "formats up to 2"),
            ("innodb/btree.data", "../btree.data", "not allowed"),
            ("innodb/btree.data", "/etc/passwd", "not allowed"),
            ("innodb/btree.data", "cohort.catalog", "listed twice"),
            ("innodb/btree.data", "cohort-backup.json", "not allowed"),
            ("\"log_bin\": \"binlog\"", "\"log_bin\": \"/tmp/binlog\"", "is not allowed"),
            ("\"log_bin\": \"binlog\"", "\"log_bin\": \"..\"", "is not allowed"),
            ("\"checkpoint_lsn\": 4096", "\"checkpoint_lsn\": 9000", "before its checkpoint"),
            ("\"crc32c\": \"", "\"crc_of_old\": \"", "no checksum"),
            ("\"files\"", "\"fils\"", "missing field"),
        ];
        for (from, to, expected) in cases {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let error = decode(&sealed(&changed)).expect_err(to).to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
        let with_more = text.replacen("\"format\": 1", "\"format\": 1,\n  \"later\": [1]", 1);
        assert_eq!(decode(&sealed(&with_more)).expect("a field that a later version adds"), example());
    }
}
