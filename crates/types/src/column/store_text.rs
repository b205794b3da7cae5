//! Assignment to string columns, ENUM and SET.

use super::store::Store;
use super::store_number::truncated_bits;
use crate::json::is_valid_json;
use crate::value::number::write_f64;
use crate::{
    Charset, Collation, DECIMALS_NOT_FIXED, Lost, NoWarnings, SqlError, SqlResult, Str, TypeKind, Value,
};

impl Store<'_> {
    pub(super) fn string(&mut self, value: Value) -> SqlResult<Value> {
        let ty = self.ty;
        let mut replaced = false;
        let mut bytes = match Store::text_of(self.local(value)) {
            Ok(text) => {
                let (bytes, bad) = self.convert(text)?;
                replaced = bad;
                bytes
            }
            Err(Value::Double(v)) => self.real_text(v, 17),
            Err(Value::Float(v)) => self.real_text(v.into(), 6),
            Err(Value::Fixed(fixed)) if ty.kind.is_binary_string() => fixed.bytes().to_vec(),
            Err(value @ Value::Bit { .. }) => {
                let mut out = Vec::new();
                value.write_text(DECIMALS_NOT_FIXED, &mut out);
                self.convert(Str { bytes: out, collation: Collation::BINARY })?.0
            }
            Err(value) => {
                let mut out = Vec::new();
                value.write_text(DECIMALS_NOT_FIXED, &mut out);
                out
            }
        };
        let limit = self.limit(&bytes);
        if bytes.len() > limit {
            let only_spaces = bytes[limit..].iter().all(|&b| b == b' ') && ty.collation != Collation::BINARY;
            if !only_spaces && replaced {
                // The replacement was already reported; one condition is enough.
            } else if !only_spaces {
                self.too_long(SqlError::data_truncated)?;
            } else if ty.kind == TypeKind::VarChar {
                self.note_truncated();
            }
            bytes.truncate(limit);
        }
        match ty.kind {
            TypeKind::Char => {
                let spaces = bytes.iter().rev().take_while(|&&b| b == b' ').count();
                bytes.truncate(bytes.len() - spaces);
            }
            TypeKind::Binary => bytes.resize(ty.length as usize, 0),
            TypeKind::Json => self.check_json(&bytes)?,
            _ => {}
        }
        Ok(Value::Str(Str { bytes, collation: ty.collation }))
    }

    /// Returns how many of the bytes fit the column.
    fn limit(&self, bytes: &[u8]) -> usize {
        let ty = self.ty;
        let max = ty.length as usize;
        if !ty.kind.is_blob() {
            return ty.collation.prefix_len(bytes, max);
        }
        if !ty.collation.charset().is_as_in_memory() {
            return ty.collation.charset().fitting(bytes, max);
        }
        let mut end = bytes.len().min(max);
        while ty.collation != Collation::BINARY && end < bytes.len() && bytes[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        end
    }

    /// Converts a text to the characters that the column's character set has, still in UTF-8. Returns whether
    /// characters were replaced, which is then reported.
    fn convert(&mut self, text: Str) -> SqlResult<(Vec<u8>, bool)> {
        let to = self.ty.collation.charset();
        if to == Charset::Binary {
            let from = text.collation.charset();
            if from.is_as_in_memory() {
                return Ok((text.bytes, false));
            }
            let mut out = Vec::new();
            from.encode(&text.bytes, &mut out);
            return Ok((out, false));
        }
        if text.collation == Collation::BINARY {
            let mut text = text;
            // Zeros are prepended to fill the first unit of the character set.
            let unit = to.mbminlen() as usize;
            let missing = text.bytes.len().next_multiple_of(unit) - text.bytes.len();
            text.bytes.splice(0..0, std::iter::repeat_n(0, missing));
            let mut out = Vec::with_capacity(text.bytes.len());
            if let Err(at) = to.decode(&text.bytes, &mut out) {
                self.bad_string(&text.bytes[at..])?;
                return Ok((replace_bad(to, &text.bytes), true));
            }
            return Ok((out, false));
        }
        let from = text.collation.charset();
        if from == Charset::Utf8mb3
            && let Err(at) = from.check(&text.bytes)
        {
            // The client declared its text as utf8mb3, which has no such characters. Each of their bytes
            // counts as one bad character.
            self.bad_string(&text.bytes[at..])?;
            return Ok((replace_bad(from, &text.bytes), true));
        }
        if let Err(at) = to.check(&text.bytes) {
            self.bad_string(&text.bytes[at..])?;
            let mut narrow = Vec::new();
            to.encode(&text.bytes, &mut narrow);
            let mut out = Vec::new();
            // This cannot fail: `encode` wrote these bytes.
            let _ = to.decode(&narrow, &mut out);
            return Ok((out, true));
        }
        Ok((text.bytes, false))
    }

    /// Reports 1366 with the bytes from the first bad one on, six at most.
    fn bad_string(&mut self, from: &[u8]) -> SqlResult<()> {
        let mut shown = String::new();
        for &b in from.iter().take(6) {
            if (0x20..0x7f).contains(&b) {
                shown.push(b.into());
            } else {
                shown.push_str(&format!("\\x{b:02X}"));
            }
        }
        if from.len() > 6 {
            shown.push_str("...");
        }
        self.incorrect("string", shown.as_bytes())
    }

    /// Formats a double with as many digits as the column can hold.
    fn real_text(&self, v: f64, digits_max: usize) -> Vec<u8> {
        let room = if self.ty.kind.is_blob() { usize::MAX } else { self.ty.length as usize };
        let mut shortest = Vec::new();
        if digits_max < 17 {
            crate::value::number::write_f32(v as f32, &mut shortest);
        } else {
            write_f64(v, &mut shortest);
        }
        if shortest.len() <= room {
            return shortest;
        }
        // Uses the form with the most digits that fits, either plain or with an exponent.
        for digits in (0..digits_max).rev() {
            let scientific = format!("{v:.digits$e}");
            let rounded: f64 = scientific.parse().unwrap_or(v);
            let mut plain = Vec::new();
            write_f64(rounded, &mut plain);
            if plain.len() <= room {
                return plain;
            }
            let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
            let mantissa = if mantissa.contains('.') {
                mantissa.trim_end_matches('0').trim_end_matches('.')
            } else {
                mantissa
            };
            let short = format!("{mantissa}e{exponent}");
            if short.len() <= room {
                return short.into_bytes();
            }
        }
        shortest
    }

    /// Checks that a JSON value is valid. JSON is LONGTEXT with this constraint, which no sql_mode disables.
    fn check_json(&self, bytes: &[u8]) -> SqlResult<()> {
        if is_valid_json(bytes) {
            return Ok(());
        }
        let c = self.ctx;
        Err(SqlError::constraint_failed(&format!("{}.{}", c.table, c.column), c.database, c.table))
    }

    pub(super) fn enumeration(&mut self, value: Value) -> SqlResult<Value> {
        let ty = self.ty;
        let index = match Store::text_of(self.local(value)) {
            Ok(text) => self.enum_index(text)?,
            Err(value @ (Value::Date(_) | Value::Time(_) | Value::DateTime(_))) => {
                self.enum_index(Str { bytes: value.to_text().into_bytes(), collation: ty.collation })?
            }
            Err(value) => self.member_number(number_bits(&value))?,
        };
        Ok(ty.enum_value(index).expect("the index was checked"))
    }

    /// Returns the index of a member, or reports a condition and returns 0 if there is none.
    fn member_number(&mut self, number: u64) -> SqlResult<u16> {
        if number == 0 || number > self.ty.members.len() as u64 {
            self.truncated()?;
            return Ok(0);
        }
        Ok(number as u16)
    }

    fn enum_index(&mut self, text: Str) -> SqlResult<u16> {
        let label = trim_end(&text.bytes);
        if let Some(n) = self.member(label) {
            return Ok(n as u16 + 1);
        }
        // A number in quotes, as in LOAD DATA files.
        let digits = std::str::from_utf8(label).ok().and_then(|t| t.trim_start().parse::<u64>().ok());
        self.member_number(digits.unwrap_or(0))
    }

    fn member(&self, label: &[u8]) -> Option<usize> {
        let collation = self.ty.collation;
        self.ty.members.iter().position(|m| collation.compare(m.as_bytes(), label).is_eq())
    }

    pub(super) fn set(&mut self, value: Value) -> SqlResult<Value> {
        let ty = self.ty;
        let bits = match Store::text_of(self.local(value)) {
            Ok(text) => self.set_bits(&text.bytes)?,
            Err(value @ (Value::Date(_) | Value::Time(_) | Value::DateTime(_))) => {
                self.set_bits(value.to_text().as_bytes())?
            }
            Err(value) => self.known_bits(number_bits(&value))?,
        };
        Ok(ty.set_value(bits).expect("the bits were checked"))
    }

    /// Drops bits without a member and reports a condition for them.
    fn known_bits(&mut self, bits: u64) -> SqlResult<u64> {
        let members = self.ty.members.len();
        let known = if members >= 64 { u64::MAX } else { (1 << members) - 1 };
        if bits & !known != 0 {
            self.truncated()?;
        }
        Ok(bits & known)
    }

    fn set_bits(&mut self, whole: &[u8]) -> SqlResult<u64> {
        let text = trim_end(whole);
        if text.is_empty() {
            return Ok(0);
        }
        let (mut bits, mut unknown) = (0, false);
        for label in text.split(|&b| b == b',') {
            match self.member(label) {
                Some(n) => bits |= 1 << n,
                None => unknown = true,
            }
        }
        if !unknown {
            return Ok(bits);
        }
        match number_in_quotes(whole) {
            Some(number) => self.known_bits(number),
            None => {
                self.truncated()?;
                Ok(bits)
            }
        }
    }
}

fn trim_end(text: &[u8]) -> &[u8] {
    let spaces = text.iter().rev().take_while(|&&b| b == b' ').count();
    &text[..text.len() - spaces]
}

/// Parses a text of digits only, with an optional sign and leading spaces.
fn number_in_quotes(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim_start();
    match text.strip_prefix('-') {
        Some(digits) => digits.parse::<u64>().ok().map(u64::wrapping_neg),
        None => text.parse().ok(),
    }
}

/// Returns a number as ENUM and SET interpret it: fractions truncated, negative numbers as their bits.
fn number_bits(value: &Value) -> u64 {
    match value {
        Value::Float(v) => truncated_bits((*v).into()),
        Value::Double(v) => truncated_bits(*v),
        Value::Decimal(v) => match v.truncate(0).to_i64() {
            (_, Lost::Range) => i64::MIN as u64,
            (v, _) => v as u64,
        },
        value => value.to_int(&mut NoWarnings).map_or(0, |v| v.wide() as u64),
    }
}

/// Decodes bytes that are invalid in a character set, with `?` for each bad one.
fn replace_bad(charset: Charset, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Err(at) = charset.decode(rest, &mut out) {
        out.push(b'?');
        rest = &rest[at + 1..];
    }
    out
}
