//! Encodes rows directly from their stored form. The output equals that of [`crate::text_row`] and
//! [`crate::binary_row`], without building values for texts and integers.

use cohort_base::Write;
use cohort_types::{Field, SqlResult, StoredColumns};

use crate::binary_row::{write_binary_row, write_typed};
use crate::column_meta::TypeCode;
use crate::text_row::{ColumnEncoding, put_integer, put_string, write_text_row};

/// Appends the payload of a row of COM_QUERY.
#[inline]
pub(crate) fn write_stored_text(
    row: &[u8],
    stored: &StoredColumns<'_>,
    columns: &[ColumnEncoding],
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    if !stored.is_plain(row) {
        return write_values(row, stored, |values| write_text_row(values, columns, out));
    }
    for (n, (field, column)) in stored.fields(row).zip(columns).enumerate() {
        match field.ok_or_else(|| stored.corrupt())? {
            Field::Null => out.put_u8(0xfb),
            Field::Text(text) => put_text(text, column, out),
            Field::Int(v) if column.zerofill == 0 => put_integer(v.unsigned_abs(), v < 0, out),
            Field::UInt(v) if column.zerofill == 0 => put_integer(v, false, out),
            other => write_text_row(&[stored.value_of(n, other)?], std::slice::from_ref(column), out),
        }
    }
    Ok(())
}

/// Appends the payload of a row of COM_STMT_EXECUTE.
#[inline]
pub(crate) fn write_stored_binary(
    row: &[u8],
    stored: &StoredColumns<'_>,
    columns: &[ColumnEncoding],
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    if !stored.is_plain(row) {
        return write_values(row, stored, |values| write_binary_row(values, columns, out));
    }
    let bitmap = out.len() + 1;
    if columns.len() <= SHORT_BITMAP {
        out.extend_from_slice(&[0, 0]);
    } else {
        out.resize(bitmap + (columns.len() + 9) / 8, 0);
    }
    for (n, (field, column)) in stored.fields(row).zip(columns).enumerate() {
        match (field.ok_or_else(|| stored.corrupt())?, column.code) {
            (Field::Null, _) => out[bitmap + (n + 2) / 8] |= 1 << ((n + 2) % 8),
            (Field::Text(text), code) if is_string(code) => put_text(text, column, out),
            (Field::Int(v), TypeCode::Long) => out.put_u32(v as u32),
            (Field::Int(v), TypeCode::LongLong) => out.put_u64(v as u64),
            (other, _) => write_typed(&stored.value_of(n, other)?, column, out),
        }
    }
    Ok(())
}

/// Maximum number of columns for a bitmap of one byte.
const SHORT_BITMAP: usize = 6;

#[cold]
fn write_values(
    row: &[u8],
    stored: &StoredColumns<'_>,
    write: impl FnOnce(&[cohort_types::Value]),
) -> SqlResult<()> {
    let mut values = Vec::with_capacity(stored.len());
    stored.values(row, &mut values)?;
    write(&values);
    Ok(())
}

/// Returns whether values of the type are strings with a length prefix.
#[inline]
fn is_string(code: TypeCode) -> bool {
    matches!(code, TypeCode::String | TypeCode::VarString | TypeCode::VarChar) || code.is_blob()
}

#[inline]
fn put_text(text: &[u8], column: &ColumnEncoding, out: &mut Vec<u8>) {
    match column.convert {
        None => {
            if text.len() < 0xfb {
                out.put_u8(text.len() as u8);
            } else {
                out.put_lenenc(text.len() as u64);
            }
            out.extend_from_slice(text);
        }
        Some(charset) => put_string(out, |out| {
            charset.encode(text, out);
        }),
    }
}
