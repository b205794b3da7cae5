//! The text that annotates row events. For a prepared statement it has the parameter values in place of the
//! question marks.
//!
//! ```text
//! NULL                NULL
//! numbers             as printed
//! DATE, TIME, ..      DATE'2024-01-01', TIME'10:11:12.500000', TIMESTAMP'2024-01-01 10:11:12'
//! strings             '..', with backslash escapes; under NO_BACKSLASH_ESCAPES only quotes, doubled
//! ```
//! Bytes that are not valid characters are escaped as well, as in MariaDB, so that they do not swallow the
//! bytes that follow.

use cohort_types::{DECIMALS_NOT_FIXED, SqlMode, Value};

/// Appends `text` with the parameter values at the positions `param_at`. A parameter without a value stays a
/// question mark.
pub fn append_statement(out: &mut Vec<u8>, text: &[u8], param_at: &[u32], params: &[Value], mode: SqlMode) {
    let mut from = 0;
    for (at, value) in param_at.iter().zip(params) {
        let at = *at as usize;
        let Some(before) = text.get(from..at) else { break };
        out.extend_from_slice(before);
        append_value(out, value, mode);
        from = at + 1;
    }
    out.extend_from_slice(&text[from.min(text.len())..]);
}

fn append_value(out: &mut Vec<u8>, value: &Value, mode: SqlMode) {
    let mut typed = |name: &[u8]| {
        out.extend_from_slice(name);
        out.push(b'\'');
        value.write_text(DECIMALS_NOT_FIXED, out);
        out.push(b'\'');
    };
    match value {
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            value.write_text(DECIMALS_NOT_FIXED, out);
        }
        Value::Date(_) => typed(b"DATE"),
        Value::Time(_) => typed(b"TIME"),
        Value::DateTime(_) | Value::Timestamp(_) => typed(b"TIMESTAMP"),
        Value::Str(s) | Value::Enum { label: s, .. } | Value::Set { label: s, .. } => {
            append_quoted(out, &s.bytes, mode);
        }
        Value::Fixed(_) | Value::Bit { .. } => {
            let mut bytes = Vec::new();
            value.write_text(DECIMALS_NOT_FIXED, &mut bytes);
            append_quoted(out, &bytes, mode);
        }
    }
}

fn append_quoted(out: &mut Vec<u8>, bytes: &[u8], mode: SqlMode) {
    out.push(b'\'');
    let special = |b: &u8| matches!(b, 0 | b'\n' | b'\r' | b'\\' | b'\'' | b'"' | 0x1a | 0x80..);
    match mode.has(SqlMode::NO_BACKSLASH_ESCAPES) {
        true => bytes.iter().for_each(|&b| {
            if b == b'\'' {
                out.push(b);
            }
            out.push(b);
        }),
        // Fast path: most values contain only words and digits.
        false if !bytes.iter().any(special) => out.extend_from_slice(bytes),
        false => append_escaped(out, bytes),
    }
    out.push(b'\'');
}

fn append_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for &byte in chunk.valid().as_bytes() {
            let escape = match byte {
                0 => b'0',
                b'\n' => b'n',
                b'\r' => b'r',
                0x1a => b'Z',
                b'\\' | b'\'' | b'"' => byte,
                _ => {
                    out.push(byte);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', escape]);
        }
        for &byte in chunk.invalid() {
            out.extend_from_slice(&[b'\\', byte]);
        }
    }
}

#[cfg(test)]
mod tests {
    use cohort_types::{Date, DateTime, Decimal, Time};

    use super::*;

    fn statement(text: &str, params: &[Value], mode: SqlMode) -> Vec<u8> {
        let at: Vec<u32> = text.match_indices('?').map(|(at, _)| at as u32).collect();
        let mut out = Vec::new();
        append_statement(&mut out, text.as_bytes(), &at, params, mode);
        out
    }

    /// Expected texts as logged by MariaDB 10.11.
    #[test]
    fn values_stand_where_the_question_marks_were() {
        let date = Date { year: 2024, month: 1, day: 2 };
        let exact = DateTime { date, hour: 3, minute: 4, second: 5, micros: 123_456 };
        let params = [
            Value::Null,
            Value::Int(-4),
            Value::UInt(u64::MAX),
            Value::Double(1.5e10),
            Value::Double(1e100),
            Value::Decimal(Decimal::parse(b"12.340").0),
            Value::Date(date),
            Value::Time(Time { micros: 36_672_500_000 }),
            Value::DateTime(exact),
            Value::DateTime(DateTime { micros: 0, ..exact }),
            Value::text("it's \"q\" \\ \n\r\0 \x1a %_ é"),
        ];
        let got = statement("f(?,?,?,?,?,?,?,?,?,?,?)", &params, SqlMode(0));
        let wanted = "f(NULL,-4,18446744073709551615,15000000000,1e100,12.340,DATE'2024-01-02',TIME'10:11:12.500000',\
                      TIMESTAMP'2024-01-02 03:04:05.123456',TIMESTAMP'2024-01-02 03:04:05',\
                      'it\\'s \\\"q\\\" \\\\ \\n\\r\\0 \\Z %_ é')";
        assert_eq!(String::from_utf8_lossy(&got), wanted);
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        for (value, wanted) in [
            (&b"\x00\xff'"[..], &b"'\\0\\\xff\\''"[..]),
            (b"\xe2\x82", b"'\\\xe2\\\x82'"),
            (b"\xc0 ", b"'\\\xc0 '"),
            (b"\x80A\xc3\xa9", b"'\\\x80A\xc3\xa9'"),
        ] {
            assert_eq!(statement("?", &[Value::binary(value)], SqlMode(0)), wanted);
        }
        let text = statement("? ?", &[Value::text("a'b\\c\"")], SqlMode::NO_BACKSLASH_ESCAPES);
        assert_eq!(text, b"'a''b\\c\"' ?");
    }
}
