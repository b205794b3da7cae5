//! Comparison of a backup's directory with its manifest.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::manifest::{Crc, FileEntry, MANIFEST, Manifest, ManifestError};

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 20;
const USE_ANOTHER: &str = "use another backup";

/// A defect of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub file: PathBuf,
    pub what: String,
    pub cure: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.file.display(), self.what, self.cure)
    }
}

/// Result of a verification.
#[derive(Clone, Debug)]
pub struct Verified {
    pub manifest: Manifest,
    /// Empty if the backup is whole.
    pub findings: Vec<Finding>,
}

/// Reads every file of a backup and compares it with the manifest. Returns an error if there is no manifest
/// to compare with.
pub fn verify(dir: &Path) -> Result<Verified, ManifestError> {
    let manifest = Manifest::read(dir)?;
    let mut findings: Vec<Finding> =
        manifest.files.iter().filter_map(|entry| check_file(dir, entry).err()).collect();
    let known: BTreeSet<PathBuf> = manifest.files.iter().map(|entry| dir.join(&entry.path)).collect();
    findings.extend(strangers(dir, dir, &known));
    Ok(Verified { manifest, findings })
}

fn check_file(dir: &Path, entry: &FileEntry) -> Result<(), Finding> {
    let path = dir.join(&entry.path);
    let found = |what: String| Finding { file: path.clone(), what, cure: USE_ANOTHER };
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => found("the file is missing".to_owned()),
        _ => found(format!("the file cannot be read: {error}")),
    };
    let mut file = File::open(&path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    if size != entry.size {
        return Err(found(format!("the file has {size} bytes, not {}", entry.size)));
    }
    if let Some(expected) = entry.crc32c {
        let crc = crc_of(&mut file, 0, size).map_err(unreadable)?;
        return match crc == expected {
            true => Ok(()),
            false => Err(found("the checksum of the file is wrong".to_owned())),
        };
    }
    for range in &entry.ranges {
        if crc_of(&mut file, range.offset, range.size).map_err(unreadable)? != range.crc32c {
            let end = range.offset + range.size;
            return Err(found(format!("the checksum of the bytes {} to {end} is wrong", range.offset)));
        }
    }
    Ok(())
}

fn crc_of(file: &mut File, offset: u64, size: u64) -> io::Result<Crc> {
    file.seek(SeekFrom::Start(offset))?;
    let mut buf = vec![0; CHUNK_BYTES.min(size as usize)];
    let (mut crc, mut rest) = (0, size);
    while rest > 0 {
        let chunk = &mut buf[..CHUNK_BYTES.min(rest as usize)];
        file.read_exact(chunk)?;
        crc = crc32c::crc32c_append(crc, chunk);
        rest -= chunk.len() as u64;
    }
    Ok(Crc(crc))
}

/// Returns a finding for each file below `dir` that is not listed.
fn strangers(root: &Path, dir: &Path, known: &BTreeSet<PathBuf>) -> Vec<Finding> {
    let stranger = |file: PathBuf, what: String| Finding { file, what, cure: "remove it" };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries.filter_map(Result::ok),
        Err(error) => return vec![stranger(dir.to_path_buf(), format!("cannot be listed: {error}"))],
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.path();
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => found.extend(strangers(root, &path, known)),
            false if known.contains(&path) || path == root.join(MANIFEST) => {}
            false => found.push(stranger(path, "the file does not belong to the backup".to_owned())),
        }
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::manifest::{RangeEntry, UNFINISHED, tests::example};

    fn written() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("innodb")).expect("created");
        fs::write(dir.path().join("cohort.catalog"), b"catalog").expect("written");
        fs::write(dir.path().join("innodb/btree.data"), [7; 5000]).expect("written");
        fs::write(dir.path().join(MANIFEST), example().encode()).expect("written");
        dir
    }

    fn findings(dir: &Path) -> Vec<String> {
        let verified = verify(dir).expect("a manifest");
        verified
            .findings
            .iter()
            .map(|finding| finding.to_string().replace(dir.to_str().unwrap(), "D"))
            .collect()
    }

    #[test]
    fn a_whole_backup_has_no_findings_and_each_defect_is_named() {
        let dir = written();
        let at = |name: &str| dir.path().join(name);
        assert!(findings(dir.path()).is_empty());
        let cases: [(&str, &[u8], &str); 3] = [
            (
                "innodb/btree.data",
                &[7; 4999],
                "D/innodb/btree.data: the file has 4999 bytes, not 5000; use another backup",
            ),
            (
                "cohort.catalog",
                b"catalod",
                "D/cohort.catalog: the checksum of the file is wrong; use another backup",
            ),
            ("stray", b"", "D/stray: the file does not belong to the backup; remove it"),
        ];
        for (name, bytes, expected) in cases {
            let before = fs::read(at(name)).ok();
            fs::write(at(name), bytes).expect("written");
            assert_eq!(findings(dir.path()), [expected]);
            match before {
                Some(before) => fs::write(at(name), before).expect("written"),
                None => fs::remove_file(at(name)).expect("removed"),
            }
        }
        fs::remove_file(at("cohort.catalog")).expect("removed");
        assert_eq!(findings(dir.path()), ["D/cohort.catalog: the file is missing; use another backup"]);
        fs::write(at(UNFINISHED), b"").expect("written");
        assert!(matches!(verify(dir.path()), Err(ManifestError::Unfinished(_))));
        fs::remove_file(at(UNFINISHED)).expect("removed");
        fs::remove_file(at(MANIFEST)).expect("removed");
        assert!(matches!(verify(dir.path()), Err(ManifestError::Missing(_))));
    }

    #[test]
    fn ranges_of_an_incremental_backup_are_checked() {
        let dir = written();
        let mut manifest = example();
        manifest.parent = Some(crate::Parent::default());
        let range = |offset| RangeEntry { offset, size: 10, crc32c: Crc(crc32c::crc32c(&[7; 10])) };
        manifest.files[1] =
            FileEntry { crc32c: None, ranges: vec![range(100), range(4990)], ..manifest.files[1].clone() };
        let write = |bytes: &[u8]| fs::write(dir.path().join("innodb/btree.data"), bytes).expect("written");
        fs::write(dir.path().join(MANIFEST), manifest.encode()).expect("written");
        assert!(findings(dir.path()).is_empty());
        let mut bytes = vec![7; 5000];
        bytes[50] = 0;
        write(&bytes);
        assert!(findings(dir.path()).is_empty(), "that byte is the parent's");
        bytes[4995] = 0;
        write(&bytes);
        let expected =
            "D/innodb/btree.data: the checksum of the bytes 4990 to 5000 is wrong; use another backup";
        assert_eq!(findings(dir.path()), [expected]);
    }
}
