//! Lenient text: what MariaDB's str_to_datetime and str_to_time accept.
//!
//! A datetime is either all digits (`20260102030405`, the year four digits long when there are 4, 8 or at least
//! 14) or numbers with any single punctuation between them. Less than year, month and day is nothing.

use super::{Date, DateTime, Issues, Parsed, Time};
use crate::SqlMode;

/// Bytes being read.
struct Scanner<'a> {
    rest: &'a [u8],
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn digits(&self) -> usize {
        self.rest.iter().take_while(|b| b.is_ascii_digit()).count()
    }

    /// Up to `len_max` digits; saturates. `None` when there is no digit.
    fn number(&mut self, len_max: usize) -> Option<u64> {
        let len = self.digits().min(len_max);
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        let add = |v: u64, b: &u8| v.saturating_mul(10).saturating_add(u64::from(b - b'0'));
        (len > 0).then(|| digits.iter().fold(0, add))
    }

    fn skip_spaces(&mut self) -> usize {
        let trimmed = trim_start(self.rest);
        let skipped = self.rest.len() - trimmed.len();
        self.rest = trimmed;
        skipped
    }

    /// Microseconds behind a point; digits beyond the sixth round up the sixth when asked to. The flag: rounding
    /// carried into the second.
    fn fraction(&mut self, mode: SqlMode) -> Fraction {
        let digits = self.digits();
        let kept = digits.min(6);
        let value = self.number(6).unwrap_or(0) as u32 * 10u32.pow(6 - kept as u32);
        let up = mode.has(SqlMode::TIME_ROUND_FRACTIONAL)
            && self.peek().is_some_and(|b| (b'5'..=b'9').contains(&b));
        self.rest = &self.rest[digits - kept..];
        Fraction { micros: value, round_up: up, decimals: kept as u8 }
    }
}

#[derive(Clone, Copy, Default)]
struct Fraction {
    micros: u32,
    round_up: bool,
    decimals: u8,
}

fn trim_start(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|b| b.is_ascii_whitespace() || **b == 0x0b).count();
    &text[spaces..]
}

/// What may stand between date and time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    /// `T`, spaces, any punctuation.
    Any,
    /// `T`, spaces: with punctuation the text is a time, not a datetime (`11:11:11.12.12.12`).
    NoPunctuation,
}

/// The fields of a text before they are judged.
struct Fields {
    /// Year, month, day, hour, minute, second.
    values: [u64; 6],
    count: usize,
    two_digit_year: bool,
    fraction: Fraction,
    truncated: bool,
}

/// Reads the fields of a datetime; `None` when the text does not start with a digit, or is a time.
fn fields(s: &mut Scanner<'_>, separator: Separator, mode: SqlMode) -> Option<Fields> {
    if !s.peek()?.is_ascii_digit() {
        return None;
    }
    let mut f = Fields {
        values: [0; 6],
        count: 0,
        two_digit_year: false,
        fraction: Fraction::default(),
        truncated: false,
    };
    let (digits, compact) = compact_digits(s.rest);
    if compact {
        let year_len = if digits == 4 || digits == 8 || digits >= 14 { 4 } else { 2 };
        f.two_digit_year = year_len == 2;
        for n in 0..6 {
            if n == 3 && s.peek() == Some(b'T') {
                s.rest = &s.rest[1..];
            }
            match s.number(if n == 0 { year_len } else { 2 }) {
                Some(v) => f.values[n] = v,
                None => break,
            }
            f.count += 1;
        }
        f.truncated |= f.count < 6 && !matches!(s.peek(), None | Some(b'.'));
    } else {
        delimited_fields(s, separator, &mut f)?;
    }
    if f.count == 6 && s.peek() == Some(b'.') && !f.truncated {
        s.rest = &s.rest[1..];
        f.fraction = s.fraction(mode);
    }
    Some(f)
}

/// Number of digits, and whether the text is nothing but one number, with perhaps a `T` and a fraction inside.
fn compact_digits(text: &[u8]) -> (usize, bool) {
    let mut s = Scanner { rest: text };
    let mut digits = s.digits();
    s.rest = &s.rest[digits..];
    if s.peek() == Some(b'T') {
        s.rest = &s.rest[1..];
        let more = s.digits();
        digits += more;
        s.rest = &s.rest[more..];
    }
    if s.peek() == Some(b'.') && digits >= 12 {
        s.rest = &s.rest[1..];
        s.rest = &s.rest[s.digits()..];
    }
    (digits, s.rest.is_empty())
}

/// Numbers with separators between them.
fn delimited_fields(s: &mut Scanner<'_>, separator: Separator, f: &mut Fields) -> Option<()> {
    f.two_digit_year = s.digits() == 2;
    for n in 0..6 {
        if n > 0 {
            let Some(next) = s.peek() else { return Some(()) };
            let skip = match (n, next) {
                (3, b'T') => 1,
                (3, _) if next.is_ascii_punctuation() && separator == Separator::NoPunctuation => {
                    return None;
                }
                (3, _) if next.is_ascii_whitespace() => s.rest.len() - trim_start(s.rest).len(),
                _ if next.is_ascii_punctuation() => 1,
                _ => {
                    f.truncated = true;
                    return Some(());
                }
            };
            s.rest = &s.rest[skip..];
            if s.rest.is_empty() {
                return Some(());
            }
        }
        match s.number(usize::MAX) {
            Some(v) => f.values[n] = v,
            None => {
                f.truncated = true;
                return Some(());
            }
        }
        f.count += 1;
    }
    Some(())
}

/// Checks a date as a whole; `not_zero`: any field of date or time is not 0.
pub(super) fn check_date(date: Date, not_zero: bool, mode: SqlMode) -> Result<(), Issues> {
    if !not_zero {
        return if mode.has(SqlMode::NO_ZERO_DATE) { Err(Issues::ZERO_DATE) } else { Ok(()) };
    }
    if mode.has(SqlMode::NO_ZERO_IN_DATE) && (date.month == 0 || date.day == 0) {
        return Err(Issues::ZERO_IN_DATE);
    }
    let too_late = date.month > 0 && date.day > Date::days_in_month(date.year, date.month);
    if too_late && !mode.has(SqlMode::ALLOW_INVALID_DATES) { Err(Issues::OUT_OF_RANGE) } else { Ok(()) }
}

/// Judges fields.
fn datetime_of(f: Fields, trailing: &[u8], mode: SqlMode) -> Parsed<DateTime> {
    let mut issues = Issues::default();
    if f.truncated || !trim_start(trailing).is_empty() {
        issues = Issues::TRUNCATED;
    }
    let [mut year, month, day, hour, minute, second] = f.values;
    let not_zero = f.values.iter().any(|&v| v != 0) || f.fraction.micros != 0;
    if f.two_digit_year && not_zero && year < 100 {
        year += if year < 70 { 2000 } else { 1900 };
    }
    let fits = year <= 9999 && month <= 12 && day <= 31 && hour <= 23 && minute <= 59 && second <= 59;
    if f.count < 3 || !fits {
        let zero = !not_zero && trim_start(trailing).is_empty();
        issues |= if zero { Issues::ZERO_DATE } else { Issues::TRUNCATED };
        return Parsed::bad(issues);
    }
    let date = Date::new(year as u16, month as u8, day as u8);
    if let Err(issue) = check_date(date, not_zero, mode) {
        return Parsed::bad(issue);
    }
    let mut value = DateTime {
        date,
        hour: hour as u8,
        minute: minute as u8,
        second: second as u8,
        micros: f.fraction.micros,
    };
    if f.fraction.round_up {
        match value.round_up_micro() {
            Some(rounded) => value = rounded,
            None => return Parsed::bad(Issues::OUT_OF_RANGE),
        }
    }
    Parsed { value: Some(value), issues, has_time: f.count > 3, decimals: f.fraction.decimals }
}

impl DateTime {
    /// Lenient text, as MariaDB reads it.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<DateTime> {
        let mut s = Scanner { rest: trim_start(text) };
        match fields(&mut s, Separator::Any, mode) {
            Some(f) => datetime_of(f, s.rest, mode),
            None => Parsed::bad(Issues::TRUNCATED),
        }
    }
}

impl Date {
    /// Lenient text, as MariaDB reads it; a time of day is cut with a note.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<Date> {
        let parsed = DateTime::parse(text, mode);
        parsed.to_date()
    }
}

impl Parsed<DateTime> {
    /// The date alone; a time of day other than midnight is cut with a note.
    pub fn to_date(self) -> Parsed<Date> {
        let cut = self.value.is_some_and(|v| v.micros_of_day() != 0);
        let mut date = self.map(|v| v.date);
        if cut {
            date.issues |= Issues::NOTE;
        }
        date
    }
}

impl Time {
    /// Lenient text: `hh:mm:ss.f`, `D hh:mm:ss`, `hhmmss`, or a datetime, of which the time of day is taken.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<Time> {
        let body = trim_start(text);
        let negative = body.first() == Some(&b'-');
        let body = if negative { &body[1..] } else { body };
        if body.is_empty() {
            return Parsed::bad(Issues::TRUNCATED);
        }
        if body.len() >= 12 && !negative {
            let mut s = Scanner { rest: body };
            let lenient = SqlMode(mode.0 & SqlMode::TIME_ROUND_FRACTIONAL.0);
            if let Some(f) = fields(&mut s, Separator::NoPunctuation, mode)
                && f.count > 3
                && !f.truncated
            {
                let mut time = datetime_of(f, s.rest, lenient).map(|v| v.time());
                if time.value.is_some() {
                    time.issues |= Issues::NOTE;
                }
                return time;
            }
        }
        let mut s = Scanner { rest: body };
        time_body(&mut s, negative, mode)
    }
}

/// `D hh:mm:ss.f`, `hh:mm:ss.f` or `hhmmss.f`.
fn time_body(s: &mut Scanner<'_>, negative: bool, mode: SqlMode) -> Parsed<Time> {
    let starts_with_number = matches!(s.peek(), Some(b'0'..=b'9' | b'.' | b':'));
    if !starts_with_number {
        return Parsed::bad(Issues::TRUNCATED);
    }
    let first = s.number(usize::MAX).unwrap_or(0);
    let spaces = s.skip_spaces();
    let digit_at = |s: &Scanner<'_>, n: usize| s.rest.get(n).is_some_and(u8::is_ascii_digit);
    // Days, hours, minutes, seconds.
    let mut parts = [0u64; 4];
    let mut state;
    if s.rest.len() > 1 && spaces > 0 && digit_at(s, 0) {
        parts[0] = first;
        state = 1;
    } else if s.rest.len() > 1 && s.peek() == Some(b':') && digit_at(s, 1) {
        parts[1] = first;
        state = 2;
        s.rest = &s.rest[1..];
    } else {
        parts[1..].copy_from_slice(&[first / 10_000, first / 100 % 100, first % 100]);
        state = 4;
    }
    while state < 4 {
        parts[state] = s.number(usize::MAX).unwrap_or(0);
        state += 1;
        if state == 4 || s.peek() != Some(b':') || !digit_at(s, 1) {
            break;
        }
        s.rest = &s.rest[1..];
    }
    let mut fraction = Fraction::default();
    if s.peek() == Some(b'.') {
        s.rest = &s.rest[1..];
        fraction = s.fraction(mode);
    }
    if is_exponent(s.rest) {
        return Parsed::bad(Issues::TRUNCATED);
    }
    if parts[2] > 59 || parts[3] > 59 {
        return Parsed::bad(Issues::TRUNCATED);
    }
    let mut issues = Issues::default();
    let hours = parts[0].saturating_mul(24).saturating_add(parts[1]);
    let mut time = Time::MAX;
    if hours > 838 {
        issues |= Issues::OUT_OF_RANGE;
    } else {
        time = Time::from_hms(false, hours as u32, parts[2] as u8, parts[3] as u8, fraction.micros);
        if fraction.round_up {
            time.micros = (time.micros + 1).min(Time::MAX.micros);
        }
    }
    if negative {
        time.micros = -time.micros;
    }
    if !trim_start(s.rest).is_empty() {
        issues |= Issues::TRUNCATED;
    }
    Parsed { value: Some(time), issues, has_time: true, decimals: fraction.decimals }
}

/// `e5`, `E-3`: the text of a double, which is no time.
fn is_exponent(rest: &[u8]) -> bool {
    match rest {
        [b'e' | b'E', b'-' | b'+', digit, ..] | [b'e' | b'E', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    }
}
