//! Names of binlog files, derived from `--log-bin=NAME`.

use std::path::{Path, PathBuf};

/// Base name and directory of the binlog files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinlogName {
    dir: PathBuf,
    base: String,
    index_prefix: String,
}

impl BinlogName {
    /// Parses the option's value: a base name (`binlog`) for files in the data directory, or a path. An
    /// extension of the base name is dropped, as in MariaDB.
    pub fn new(datadir: &Path, option: &str) -> BinlogName {
        let (dir, prefix, base) = match option.rsplit_once('/') {
            Some((dir, base)) => (datadir.join(format!("{dir}/")), format!("{dir}/"), base),
            None => (datadir.to_owned(), String::from("./"), option),
        };
        let base = base.split_once('.').map_or(base, |(stem, _)| stem);
        let base = if base.is_empty() { "binlog" } else { base };
        BinlogName { dir, base: base.to_owned(), index_prefix: prefix }
    }

    /// Returns the directory of the files and the index.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the base name: `binlog`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the name of a file: `binlog.000042`.
    pub fn file(&self, number: u32) -> String {
        format!("{}.{number:06}", self.base)
    }

    /// Returns the path of a file.
    pub fn path(&self, number: u32) -> PathBuf {
        self.dir.join(self.file(number))
    }

    /// Returns the path of the index.
    pub fn index_path(&self) -> PathBuf {
        self.dir.join(format!("{}.index", self.base))
    }

    /// Returns the line of a file in the index: `./binlog.000042`.
    pub fn index_line(&self, number: u32) -> String {
        format!("{}{}", self.index_prefix, self.file(number))
    }

    /// Returns the number of a file name or path, `None` if it is not a file of this binlog.
    pub fn number(&self, name: &str) -> Option<u32> {
        let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
        let digits = name.strip_prefix(&self.base)?.strip_prefix('.')?;
        is_file_number(digits).then(|| digits.parse().ok()).flatten().filter(|&n| n > 0)
    }
}

/// Returns whether the end of a name is the number of a file of a binary log or relay log.
pub fn is_file_number(digits: &str) -> bool {
    digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_option() {
        let name = BinlogName::new(Path::new("/data"), "binlog");
        assert_eq!(name.path(1), Path::new("/data/binlog.000001"));
        assert_eq!(name.index_line(1_000_000), "./binlog.1000000");
        let name = BinlogName::new(Path::new("/data"), "/logs/bl.ext");
        assert_eq!(name.path(7), Path::new("/logs/bl.000007"));
        assert_eq!(name.index_path(), Path::new("/logs/bl.index"));
        assert_eq!(name.index_line(7), "/logs/bl.000007");
    }

    #[test]
    fn only_own_names_have_a_number() {
        let name = BinlogName::new(Path::new("/data"), "binlog");
        assert_eq!(name.number("./binlog.000012"), Some(12));
        assert_eq!(name.number("binlog.1000000"), Some(1_000_000));
        for other in ["binlog.index", "binlog.12", "binlog.000000", "other.000012", "binlog.00001x", "binlog"]
        {
            assert_eq!(name.number(other), None, "{other}");
        }
    }
}
