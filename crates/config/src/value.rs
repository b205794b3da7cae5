//! Values of settings, and their conversion from and to text.

use std::fmt;
use std::sync::Arc;

use crate::setting::Kind;

/// A value of a setting, as SQL sees it. Enums and sets are texts.
#[derive(Clone, Debug, PartialEq)]
pub enum VarValue {
    /// NULL.
    Null,
    /// ON or OFF; SELECT shows 1 or 0.
    Bool(bool),
    /// A signed integer, from SET only.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    Text(Arc<str>),
}

impl VarValue {
    /// Creates a text value.
    pub fn text(text: &str) -> VarValue {
        VarValue::Text(text.into())
    }
}

/// The text in SHOW VARIABLES; NULL is empty.
impl fmt::Display for VarValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VarValue::Null => Ok(()),
            VarValue::Bool(b) => f.write_str(if *b { "ON" } else { "OFF" }),
            VarValue::Int(v) => v.fmt(f),
            VarValue::UInt(v) => v.fmt(f),
            VarValue::Double(v) => write!(f, "{v:.6}"),
            VarValue::Text(t) => f.write_str(t),
        }
    }
}

/// Stored form of a value: numbers, enum indexes, set bits and `f64` bits in eight bytes; texts separately.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Raw {
    Number(u64),
    Text(Option<Arc<str>>),
}

/// Why a value does not fit a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    Type,
    Value,
    /// The suffix of a number is not one of K, M, G, T, P, E.
    Suffix(char),
}

/// A value that fits, perhaps after it was moved into the bounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit {
    pub raw: Raw,
    pub adjusted: bool,
}

fn exact(raw: Raw) -> Result<Fit, Misfit> {
    Ok(Fit { raw, adjusted: false })
}

impl Kind {
    /// Returns the stored form of the default.
    pub(crate) fn default_raw(&self) -> Raw {
        match *self {
            Kind::Bool { default } => Raw::Number(u64::from(default)),
            Kind::Int { default, .. } | Kind::Set { default, .. } => Raw::Number(default),
            Kind::Double { default, .. } => Raw::Number(default.to_bits()),
            Kind::Enum { default, .. } => Raw::Number(default as u64),
            Kind::Text { default } | Kind::Path { default } => Raw::Text(default.map(Into::into)),
        }
    }

    /// Converts a stored value to the form that SQL sees.
    pub(crate) fn value(&self, raw: Raw) -> VarValue {
        match (self, raw) {
            (Kind::Bool { .. }, Raw::Number(n)) => VarValue::Bool(n != 0),
            (Kind::Int { .. }, Raw::Number(n)) => VarValue::UInt(n),
            (Kind::Double { .. }, Raw::Number(n)) => VarValue::Double(f64::from_bits(n)),
            (Kind::Enum { members, .. }, Raw::Number(n)) => {
                VarValue::text(members.get(n as usize).copied().unwrap_or(""))
            }
            (Kind::Set { members, .. }, Raw::Number(n)) => VarValue::Text(set_text(members, n).into()),
            (_, Raw::Text(Some(t))) => VarValue::Text(t),
            (_, Raw::Text(None)) => VarValue::Null,
            (Kind::Text { .. } | Kind::Path { .. }, Raw::Number(_)) => VarValue::Null,
        }
    }

    /// Checks a value of SET.
    pub(crate) fn check(&self, value: &VarValue) -> Result<Fit, Misfit> {
        match *self {
            Kind::Bool { .. } => check_bool(value),
            Kind::Int { min, max, block, .. } => check_int(value, min, max, block),
            Kind::Double { min, max, .. } => check_double(value, min, max),
            Kind::Enum { members, .. } => check_enum(value, members),
            Kind::Set { members, .. } => check_set(value, members),
            Kind::Text { .. } | Kind::Path { .. } => match value {
                VarValue::Text(t) => exact(Raw::Text(Some(t.clone()))),
                VarValue::Null => exact(Raw::Text(None)),
                _ => Err(Misfit::Type),
            },
        }
    }

    /// Parses and checks a text from the command line or an option file.
    pub(crate) fn parse_option(&self, text: &str) -> Result<Fit, Misfit> {
        match *self {
            Kind::Int { min, max, block, .. } => {
                let (magnitude, negative) = parse_size(text)?;
                if negative {
                    return Ok(Fit { raw: Raw::Number(min), adjusted: magnitude != 0 || min != 0 });
                }
                Ok(bound_int(magnitude, min, max, block))
            }
            Kind::Double { min, max, .. } => {
                check_double(&VarValue::Double(text.trim().parse().map_err(|_| Misfit::Value)?), min, max)
            }
            Kind::Bool { .. } => match check_bool(&VarValue::text(text)) {
                Ok(fit) => Ok(fit),
                // mariadbd treats an unknown word as OFF, with a warning.
                Err(_) => Ok(Fit { raw: Raw::Number(0), adjusted: true }),
            },
            Kind::Enum { .. } | Kind::Set { .. } => match text.parse::<u64>() {
                Ok(number) => self.check(&VarValue::UInt(number)),
                Err(_) => self.check(&VarValue::text(text)),
            },
            Kind::Text { .. } | Kind::Path { .. } => exact(Raw::Text(Some(text.into()))),
        }
    }
}

/// Returns the words of the set bits.
pub(crate) fn set_text(members: &[&str], bits: u64) -> String {
    let words: Vec<&str> =
        members.iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1).map(|(_, word)| *word).collect();
    words.join(",")
}

fn check_bool(value: &VarValue) -> Result<Fit, Misfit> {
    let on = match value {
        VarValue::Bool(b) => *b,
        VarValue::Int(0) | VarValue::UInt(0) => false,
        VarValue::Int(1) | VarValue::UInt(1) => true,
        VarValue::Text(t) => match t.to_ascii_lowercase().as_str() {
            "on" | "true" | "1" => true,
            "off" | "false" | "0" => false,
            _ => return Err(Misfit::Value),
        },
        VarValue::Double(_) => return Err(Misfit::Type),
        VarValue::Null | VarValue::Int(_) | VarValue::UInt(_) => return Err(Misfit::Value),
    };
    exact(Raw::Number(u64::from(on)))
}

fn bound_int(v: u64, min: u64, max: u64, block: u64) -> Fit {
    let blocked = v - v % block.max(1);
    let bounded = blocked.clamp(min, max);
    Fit { raw: Raw::Number(bounded), adjusted: bounded != v }
}

fn check_int(value: &VarValue, min: u64, max: u64, block: u64) -> Result<Fit, Misfit> {
    match *value {
        VarValue::UInt(v) => Ok(bound_int(v, min, max, block)),
        VarValue::Bool(b) => Ok(bound_int(u64::from(b), min, max, block)),
        VarValue::Int(v) => match u64::try_from(v) {
            Ok(v) => Ok(bound_int(v, min, max, block)),
            Err(_) => Ok(Fit { raw: Raw::Number(min), adjusted: true }),
        },
        VarValue::Null | VarValue::Double(_) | VarValue::Text(_) => Err(Misfit::Type),
    }
}

fn check_double(value: &VarValue, min: f64, max: f64) -> Result<Fit, Misfit> {
    let v = match *value {
        VarValue::UInt(v) => v as f64,
        VarValue::Int(v) => v as f64,
        VarValue::Double(v) if !v.is_nan() => v,
        _ => return Err(Misfit::Type),
    };
    let bounded = v.clamp(min, max);
    Ok(Fit { raw: Raw::Number(bounded.to_bits()), adjusted: bounded != v })
}

fn find_word(members: &[&str], word: &str) -> Option<usize> {
    members.iter().position(|m| m.eq_ignore_ascii_case(word))
}

fn number_of(value: &VarValue) -> Result<u64, Misfit> {
    match *value {
        VarValue::UInt(v) => Ok(v),
        VarValue::Int(v) => u64::try_from(v).map_err(|_| Misfit::Value),
        VarValue::Bool(b) => Ok(u64::from(b)),
        VarValue::Double(_) => Err(Misfit::Type),
        VarValue::Null | VarValue::Text(_) => Err(Misfit::Value),
    }
}

fn check_enum(value: &VarValue, members: &[&str]) -> Result<Fit, Misfit> {
    let index = match value {
        VarValue::Text(t) => find_word(members, t).ok_or(Misfit::Value)? as u64,
        other => number_of(other)?,
    };
    if index >= members.len() as u64 {
        return Err(Misfit::Value);
    }
    exact(Raw::Number(index))
}

fn check_set(value: &VarValue, members: &[&str]) -> Result<Fit, Misfit> {
    let bits = match value {
        VarValue::Text(t) => {
            let mut bits = 0;
            for word in t.split(',').map(str::trim).filter(|w| !w.is_empty()) {
                bits |= 1u64 << find_word(members, word).ok_or(Misfit::Value)?;
            }
            bits
        }
        other => number_of(other)?,
    };
    if members.len() < 64 && bits >> members.len() != 0 {
        return Err(Misfit::Value);
    }
    exact(Raw::Number(bits))
}

/// Parses `128M`, `-1` into magnitude and sign.
fn parse_size(text: &str) -> Result<(u64, bool), Misfit> {
    let text = text.trim();
    let (digits, negative) = match text.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let mut suffix = suffix.chars();
    let shift = match suffix.next().map(|c| c.to_ascii_uppercase()) {
        None => 0,
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        Some('P') => 50,
        Some('E') => 60,
        Some(other) => return Err(Misfit::Suffix(other.to_ascii_lowercase())),
    };
    if let Some(more) = suffix.next() {
        return Err(Misfit::Suffix(more));
    }
    if number.is_empty() {
        return Err(Misfit::Value);
    }
    // A number beyond 64 bits becomes the maximum, which the bounds then lower.
    let number: u64 = number.parse().unwrap_or(u64::MAX);
    let magnitude = number.saturating_mul(1 << shift);
    Ok((magnitude, negative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_suffixes_and_are_bounded() {
        let kind = Kind::Int { default: 1, min: 4096, max: 1 << 30, block: 4096 };
        let fit = |text| kind.parse_option(text);
        assert_eq!(fit("8K"), Ok(Fit { raw: Raw::Number(8192), adjusted: false }));
        assert_eq!(fit("5000"), Ok(Fit { raw: Raw::Number(4096), adjusted: true }), "rounded to a block");
        assert_eq!(fit("1"), Ok(Fit { raw: Raw::Number(4096), adjusted: true }));
        assert_eq!(fit("99999999999999999999999"), Ok(Fit { raw: Raw::Number(1 << 30), adjusted: true }));
        assert_eq!(fit("-1"), Ok(Fit { raw: Raw::Number(4096), adjusted: true }));
        assert_eq!(fit("20x"), Err(Misfit::Suffix('x')));
        assert_eq!(fit("20Kx"), Err(Misfit::Suffix('x')));
        assert_eq!(fit(""), Err(Misfit::Value));
    }

    #[test]
    fn words_are_found_in_any_case_and_by_number() {
        let members = &["READ-UNCOMMITTED", "READ-COMMITTED"];
        let kind = Kind::Enum { default: 0, members };
        assert_eq!(kind.check(&VarValue::text("read-committed")), exact(Raw::Number(1)));
        assert_eq!(kind.check(&VarValue::UInt(1)), exact(Raw::Number(1)));
        assert_eq!(kind.check(&VarValue::UInt(2)), Err(Misfit::Value));
        assert_eq!(kind.check(&VarValue::Double(1.5)), Err(Misfit::Type));
        let kind = Kind::Set { default: 0, members: &["A", "B", "C"] };
        assert_eq!(kind.check(&VarValue::text("c,a")), exact(Raw::Number(5)));
        assert_eq!(kind.value(Raw::Number(5)), VarValue::text("A,C"));
        assert_eq!(kind.check(&VarValue::UInt(8)), Err(Misfit::Value));
        assert_eq!(kind.check(&VarValue::text("")), exact(Raw::Number(0)));
    }
}
