//! SELECT ... INTO OUTFILE and DUMPFILE, LOAD DATA.

use super::{Assignment, ObjectName, OnDuplicate, Query};

/// How rows stand in a text file: FIELDS and LINES, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY.
    pub field_end: Vec<u8>,
    /// ENCLOSED BY; empty for nothing.
    pub enclosed: Vec<u8>,
    /// OPTIONALLY ENCLOSED BY: strings only.
    pub optionally: bool,
    /// ESCAPED BY; empty for nothing.
    pub escaped: Vec<u8>,
    /// LINES STARTING BY.
    pub line_start: Vec<u8>,
    /// LINES TERMINATED BY.
    pub line_end: Vec<u8>,
}

impl Default for FileFormat {
    fn default() -> FileFormat {
        FileFormat {
            field_end: b"\t".to_vec(),
            enclosed: Vec::new(),
            optionally: false,
            escaped: b"\\".to_vec(),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}

/// Where SELECT ... INTO writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntoFile {
    Outfile {
        path: String,
        charset: Option<String>,
        format: FileFormat,
    },
    /// One row, its values one behind the other.
    Dumpfile {
        path: String,
    },
}

impl IntoFile {
    /// The file's name as written.
    pub fn path(&self) -> &str {
        match self {
            IntoFile::Outfile { path, .. } | IntoFile::Dumpfile { path } => path,
        }
    }
}

/// A query whose rows go into a file of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryIntoFile {
    pub query: Query,
    pub file: IntoFile,
    /// INTO stands behind FROM, where MariaDB does not want it any more.
    pub is_late: bool,
}

/// LOAD DATA. LOW_PRIORITY and CONCURRENT are accepted without effect.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// The file is the client's.
    pub local: bool,
    pub path: String,
    pub on_duplicate: OnDuplicate,
    pub table: ObjectName,
    pub partitions: Vec<String>,
    pub charset: Option<String>,
    pub format: FileFormat,
    /// IGNORE n LINES.
    pub skipped: u64,
    /// Where the fields go; empty: the table's columns.
    pub targets: Vec<LoadTarget>,
    /// SET.
    pub assignments: Vec<Assignment>,
}

/// Where a field of LOAD DATA goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadTarget {
    Column(super::ColumnRef),
    /// `@name`
    Variable(String),
}
