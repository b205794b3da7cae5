//! Rows of COM_QUERY: every value is a string with a lenenc length; NULL is the byte 0xfb.

use cohort_base::Write;
use cohort_types::{Charset, Collation, Value};

use crate::column_meta::{ColumnFlags, ColumnMeta, TypeCode};

/// The part of a column definition that affects the encoding of values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnEncoding {
    pub code: TypeCode,
    pub decimals: u8,
    /// Minimum length of zero-filled numbers; 0 for others.
    pub zerofill: u32,
    /// Character set to convert text to. `None`: text is not converted.
    pub convert: Option<Charset>,
}

impl ColumnEncoding {
    /// Creates the encoding of a column. `results` is the client's character set; `None`: text is sent in the
    /// column's own.
    pub fn new(meta: &ColumnMeta, results: Option<Charset>) -> ColumnEncoding {
        let charset = match results {
            None | Some(Charset::Binary) => meta.collation.charset(),
            Some(results) => results,
        };
        let is_converted = !matches!(charset, Charset::Utf8mb4 | Charset::Binary)
            && (results.is_some_and(|results| results != Charset::Binary) || !charset.is_as_in_memory());
        ColumnEncoding {
            code: meta.type_code,
            decimals: meta.decimals,
            zerofill: if meta.flags.has(ColumnFlags::ZEROFILL) { meta.length } else { 0 },
            convert: Some(charset).filter(|_| is_converted && meta.collation != Collation::BINARY),
        }
    }
}

/// Appends the payload of a row.
pub(crate) fn write_text_row(values: &[Value], columns: &[ColumnEncoding], out: &mut Vec<u8>) {
    for (value, column) in values.iter().zip(columns) {
        match value {
            Value::Null => out.put_u8(0xfb),
            Value::Int(v) if column.zerofill == 0 => put_integer(v.unsigned_abs(), *v < 0, out),
            Value::UInt(v) if column.zerofill == 0 => put_integer(*v, false, out),
            Value::Str(s) if column.convert.is_none() => out.put_lenenc_bytes(&s.bytes),
            other => put_string(out, |out| write_value(other, column, out)),
        }
    }
}

/// Appends the text of a value, without a length.
pub(crate) fn write_value(value: &Value, column: &ColumnEncoding, out: &mut Vec<u8>) {
    let start = out.len();
    match (column.convert, value.as_bytes()) {
        (Some(charset), Some(text)) => {
            charset.encode(text, out);
        }
        (None, Some(text)) => out.extend_from_slice(text),
        (_, None) => value.write_text(column.decimals, out),
    }
    let missing = (column.zerofill as usize).saturating_sub(out.len() - start);
    if missing > 0 {
        out.splice(start..start, std::iter::repeat_n(b'0', missing.min(255)));
    }
}

/// Appends a string whose length is known only after writing it.
pub(crate) fn put_string(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.put_u8(0);
    write(out);
    let length = out.len() - at - 1;
    match u8::try_from(length) {
        Ok(short) if short < 0xfb => out[at] = short,
        _ => {
            let mut header = Vec::with_capacity(9);
            header.put_lenenc(length as u64);
            out.splice(at..=at, header);
        }
    }
}

pub(crate) fn put_integer(mut v: u64, negative: bool, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (v % 10) as u8;
        v /= 10;
        if v == 0 {
            break;
        }
    }
    let digits = &digits[at..];
    out.put_u8(digits.len() as u8 + u8::from(negative));
    if negative {
        out.put_u8(b'-');
    }
    out.extend_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_strings_and_null() {
        let column = ColumnEncoding { code: TypeCode::LongLong, decimals: 0, zerofill: 0, convert: None };
        let values = [
            Value::Int(i64::MIN),
            Value::UInt(u64::MAX),
            Value::Int(0),
            Value::Null,
            Value::text("a".repeat(300)),
        ];
        let mut out = Vec::new();
        write_text_row(&values, &[column; 5], &mut out);
        let long = "a".repeat(300);
        let expected =
            [&b"\x14-9223372036854775808\x1418446744073709551615\x010\xfb\xfc\x2c\x01"[..], long.as_bytes()];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn a_string_of_unknown_length_gets_the_right_header() {
        for length in [0, 1, 250, 251, 70_000] {
            let mut out = b"before".to_vec();
            put_string(&mut out, |out| out.resize(out.len() + length, b'x'));
            let mut r = cohort_base::Reader::new(&out[6..]);
            assert_eq!(r.lenenc_bytes().map(<[u8]>::len), Ok(length));
            assert!(r.is_empty());
        }
    }
}
