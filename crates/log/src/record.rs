//! Records.

use cohort_base::Lsn;

/// What a record's payload is; the numbers belong to the users of the log and are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordKind(pub u8);

/// A record as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where the next one starts.
    pub end: Lsn,
    /// What the payload is.
    pub kind: RecordKind,
    /// The payload, all of it.
    pub payload: &'a [u8],
}
