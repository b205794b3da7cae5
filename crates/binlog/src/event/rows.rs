//! WRITE, UPDATE and DELETE ROWS, version 1 (23, 24, 25) and compressed (166, 167, 168).
//!
//! ```text
//! table id u48 | flags u16 | width lenenc | present columns bitmap |
//! [present columns of the after image, bitmap]   of an update
//! rows to the end: { null bitmap over the present columns | values } once, or before and after of an update
//! ```
//!
//! Bitmaps take (columns + 7) / 8 bytes, least significant bit first. In the compressed kinds the rows have
//! the format described in `compressed`. The format of values depends on the table map; see
//! `cohort-types::binlog_image`.

use std::borrow::Cow;

use cohort_base::{Reader, Write};

use super::{DecodeError, EventType, SharedBytes, inflate, plain_len};

/// Maximum number of columns of a table.
const WIDTH_MAX: u64 = 4096;

/// Bits of the flags field.
pub mod flags {
    /// Last row event of a statement.
    pub const STMT_END: u16 = 1;
    /// `@@foreign_key_checks=0`
    pub const NO_FOREIGN_KEY_CHECKS: u16 = 2;
    /// `@@unique_checks=0`
    pub const RELAXED_UNIQUE_CHECKS: u16 = 4;
    /// The rows contain all columns.
    pub const COMPLETE_ROWS: u16 = 8;
}

/// Kind of row change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsKind {
    /// One image per row.
    Write,
    /// Before and after image.
    Update,
    /// One image per row.
    Delete,
}

/// Compression of the large part of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not compressed.
    Plain,
    /// `log_bin_compress=ON`
    Compressed,
}

impl RowsKind {
    /// Returns kind and packing of an event type, `None` if it is not a row event of version 1.
    pub fn of(kind: EventType) -> Option<(RowsKind, Packing)> {
        Some(match kind {
            EventType::WRITE_ROWS_V1 => (RowsKind::Write, Packing::Plain),
            EventType::UPDATE_ROWS_V1 => (RowsKind::Update, Packing::Plain),
            EventType::DELETE_ROWS_V1 => (RowsKind::Delete, Packing::Plain),
            EventType::WRITE_ROWS_COMPRESSED_V1 => (RowsKind::Write, Packing::Compressed),
            EventType::UPDATE_ROWS_COMPRESSED_V1 => (RowsKind::Update, Packing::Compressed),
            EventType::DELETE_ROWS_COMPRESSED_V1 => (RowsKind::Delete, Packing::Compressed),
            _ => return None,
        })
    }

    /// Returns the event type.
    pub fn event_type(self, packing: Packing) -> EventType {
        match (self, packing) {
            (RowsKind::Write, Packing::Plain) => EventType::WRITE_ROWS_V1,
            (RowsKind::Update, Packing::Plain) => EventType::UPDATE_ROWS_V1,
            (RowsKind::Delete, Packing::Plain) => EventType::DELETE_ROWS_V1,
            (RowsKind::Write, Packing::Compressed) => EventType::WRITE_ROWS_COMPRESSED_V1,
            (RowsKind::Update, Packing::Compressed) => EventType::UPDATE_ROWS_COMPRESSED_V1,
            (RowsKind::Delete, Packing::Compressed) => EventType::DELETE_ROWS_COMPRESSED_V1,
        }
    }
}

/// Rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsEvent {
    /// Kind of change.
    pub kind: RowsKind,
    /// Says whether `rows` is compressed.
    pub packing: Packing,
    /// Table number from the table map.
    pub table_id: u64,
    /// See [`flags`].
    pub flags: u16,
    /// Number of columns of the table.
    pub width: u32,
    /// Columns in the image (before image of an update), one bit each.
    pub present: SharedBytes,
    /// Columns in the after image of an update; otherwise empty.
    pub present_after: SharedBytes,
    /// The row images.
    pub rows: SharedBytes,
}

impl RowsEvent {
    /// Returns the bytes that [`RowsEvent::plain_rows`] allocates: 0 if the event is not compressed.
    pub fn inflated_bytes(&self) -> Result<u64, DecodeError> {
        match self.packing {
            Packing::Plain => Ok(0),
            Packing::Compressed => plain_len(&self.rows),
        }
    }

    /// Returns the decompressed row images.
    pub fn plain_rows(&self) -> Result<Cow<'_, [u8]>, DecodeError> {
        match self.packing {
            Packing::Plain => Ok(Cow::Borrowed(&self.rows)),
            Packing::Compressed => Ok(Cow::Owned(inflate(&self.rows)?)),
        }
    }

    /// Returns whether this is the last row event of its statement.
    pub fn ends_statement(&self) -> bool {
        self.flags & flags::STMT_END != 0
    }

    pub(super) fn decode(
        body: &SharedBytes,
        kind: RowsKind,
        packing: Packing,
    ) -> Result<RowsEvent, DecodeError> {
        let mut r = Reader::new(body);
        let (table_id, flags, width) = (r.u48()?, r.u16()?, r.lenenc()?);
        if width > WIDTH_MAX {
            return Err(DecodeError::BadValue("a row event of more than 4096 columns"));
        }
        let bitmap_len = (width as usize).div_ceil(8);
        let mut next = |len: usize| {
            let start = body.len() - r.remaining();
            r.bytes(len).map(|_| body.part(start..start + len))
        };
        let present = next(bitmap_len)?;
        let present_after = match kind {
            RowsKind::Update => next(bitmap_len)?,
            RowsKind::Write | RowsKind::Delete => next(0)?,
        };
        let rows = body.part(body.len() - r.remaining()..body.len());
        Ok(RowsEvent { kind, packing, table_id, flags, width: width as u32, present, present_after, rows })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        encode_rows_head(out, self.table_id, self.flags, self.width, &self.present, &self.present_after);
        out.extend_from_slice(&self.rows);
    }
}

/// Appends everything before the first row image.
pub(crate) fn encode_rows_head(
    out: &mut Vec<u8>,
    table_id: u64,
    flags: u16,
    width: u32,
    present: &[u8],
    present_after: &[u8],
) {
    out.put_u48(table_id);
    out.put_u16(flags);
    out.put_lenenc(u64::from(width));
    out.extend_from_slice(present);
    out.extend_from_slice(present_after);
}
