//! References to versions, and the content of an entry before a write: plain data of all files below.

/// A transaction number: the segment in the top byte, the position in the segment's order in the other bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrxNo(pub u64);

impl TrxNo {
    /// Returns the number of the rollback segment.
    pub fn segment(self) -> usize {
        (self.0 >> SEGMENT_SHIFT) as usize
    }

    /// Returns the position in the segment's order.
    pub fn place(self) -> u64 {
        self.0 & PLACE_MASK
    }
}

/// A reference in an entry to the transaction that wrote it and to the predecessor in that transaction's
/// undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRef {
    pub trx: TrxNo,
    pub undo: u32,
}

/// A value in the format of entries and undo records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub is_overflow: bool,
    pub bytes: Box<[u8]>,
}

/// The content of an entry before a write.
#[derive(Clone, Debug)]
pub struct Undo {
    /// `None` if the entry was deleted or did not exist.
    pub value: Option<Value>,
    /// An entry existed, possibly with a delete mark.
    pub existed: bool,
    /// The writer of that content. `None` if all views see it.
    pub version: Option<VersionRef>,
}

/// Maximum number of rollback segments, limited by the bits of a transaction number.
pub const SEGMENTS_MAX: usize = 128;

pub const SEGMENT_SHIFT: u32 = 56;

pub const PLACE_MASK: u64 = (1 << SEGMENT_SHIFT) - 1;
