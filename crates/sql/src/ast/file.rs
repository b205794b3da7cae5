//! SELECT ... INTO OUTFILE and DUMPFILE, LOAD DATA.

use super::{Assignment, ObjectName, OnDuplicate, Query};

/// Format of rows in a text file: FIELDS and LINES, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY.
    pub field_end: Vec<u8>,
    /// ENCLOSED BY; empty if absent.
    pub enclosed: Vec<u8>,
    /// OPTIONALLY ENCLOSED BY: strings only.
    pub optionally: bool,
    /// ESCAPED BY; empty if absent.
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

/// Destination of SELECT ... INTO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntoFile {
    Outfile {
        path: String,
        charset: Option<String>,
        format: FileFormat,
    },
    /// One row, its values concatenated.
    Dumpfile {
        path: String,
    },
}

impl IntoFile {
    /// Returns the file's name as written.
    pub fn path(&self) -> &str {
        match self {
            IntoFile::Outfile { path, .. } | IntoFile::Dumpfile { path } => path,
        }
    }
}

/// A query whose rows are written to a file on the server.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryIntoFile {
    pub query: Query,
    pub file: IntoFile,
    /// True if INTO is after FROM, a position that MariaDB deprecates.
    pub is_late: bool,
}

/// LOAD DATA. LOW_PRIORITY and CONCURRENT are accepted without effect.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// LOCAL: the file is on the client.
    pub local: bool,
    pub path: String,
    pub on_duplicate: OnDuplicate,
    pub table: ObjectName,
    pub partitions: Vec<String>,
    pub charset: Option<String>,
    pub format: FileFormat,
    /// IGNORE n LINES.
    pub skipped: u64,
    /// Destinations of the fields. Empty means the table's columns.
    pub targets: Vec<LoadTarget>,
    /// SET.
    pub assignments: Vec<Assignment>,
}

/// Destination of a field of LOAD DATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadTarget {
    Column(super::ColumnRef),
    /// `@name`
    Variable(String),
}
