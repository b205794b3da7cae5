//! Lenient parsing of temporal texts, like MariaDB's str_to_datetime and str_to_time.
//!
//! A datetime has one of two forms: only digits (`20260102030405`; the year has four digits if there are 4,
//! 8, or at least 14 of them), or numbers separated by single punctuation characters. Year, month and day are
//! required.

use super::numeric::check_date;
use super::{Date, DateTime, Issues, Parsed, SECOND, Time};
use crate::SqlMode;

/// A reader of bytes.
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

    /// Reads up to `len_max` digits; saturates. Returns `None` if there is no digit.
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

    /// Reads the microseconds after a point.
    fn fraction(&mut self, mode: SqlMode) -> Fraction {
        let digits = self.digits();
        let kept = digits.min(6);
        let value = self.number(6).unwrap_or(0) as u32 * 10u32.pow(6 - kept as u32);
        let rounds = mode.has(SqlMode::TIME_ROUND_FRACTIONAL);
        let round_up = rounds && self.peek().is_some_and(|b| (b'5'..=b'9').contains(&b));
        let (beyond, rest) = self.rest.split_at(digits - kept);
        self.rest = rest;
        let cut = beyond.iter().any(|&b| b != b'0');
        Fraction { micros: value, round_up, cut, decimals: kept as u8 }
    }
}

#[derive(Clone, Copy, Default)]
struct Fraction {
    micros: u32,
    /// Whether the digits after the sixth round the value up.
    round_up: bool,
    /// Whether a digit after the sixth was not 0.
    cut: bool,
    decimals: u8,
}

fn trim_start(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|b| b.is_ascii_whitespace() || **b == 0x0b).count();
    &text[spaces..]
}

/// Returns the text after spaces and a sign, and whether the sign is a minus.
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match trim_start(text) {
        [b'-', body @ ..] => (true, trim_start(body)),
        [b'+', body @ ..] => (false, trim_start(body)),
        body => (false, body),
    }
}

/// Allowed separators between date and time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    /// `T`, spaces, any punctuation.
    Any,
    /// `T`, spaces. With punctuation the text is a time, not a datetime (`11:11:11.12.12.12`).
    NoPunctuation,
}

/// The fields of a text before they are validated.
struct Fields {
    /// Year, month, day, hour, minute, second.
    values: [u64; 6],
    count: usize,
    two_digit_year: bool,
    fraction: Fraction,
    truncated: bool,
    /// Whether there is a `T`, an hour, or at least 12 digits: neither a time nor a date alone.
    is_datetime: bool,
}

/// Reads the fields of a datetime. Returns `None` if the text does not start with a digit, or is a time.
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
        is_datetime: false,
    };
    if let Some((digits, has_t)) = compact_digits(s.rest) {
        f.is_datetime = digits >= 12 || has_t;
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
    } else {
        delimited_fields(s, separator, &mut f)?;
    }
    if f.count == 6 && s.peek() == Some(b'.') && !f.truncated {
        s.rest = &s.rest[1..];
        f.fraction = s.fraction(mode);
    }
    Some(f)
}

/// Returns the number of digits, and whether a `T` is among them, if the text is one number. It may contain a
/// `T` and a fraction, but not a second number after a separator.
fn compact_digits(text: &[u8]) -> Option<(usize, bool)> {
    let mut s = Scanner { rest: text };
    let mut digits = s.digits();
    s.rest = &s.rest[digits..];
    let has_t = s.peek() == Some(b'T');
    if has_t {
        s.rest = &s.rest[1..];
        let more = s.digits();
        digits += more;
        s.rest = &s.rest[more..];
    }
    if s.peek() == Some(b'.') && digits >= 12 {
        s.rest = &s.rest[1..];
        s.rest = &s.rest[s.digits()..];
    }
    if s.peek().is_some_and(|b| b.is_ascii_punctuation()) {
        s.rest = &s.rest[1..];
    } else if s.skip_spaces() == 0 {
        return Some((digits, has_t));
    }
    if s.digits() > 0 { None } else { Some((digits, has_t)) }
}

/// Reads numbers with separators between them.
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
            f.is_datetime |= n == 3 && next == b'T';
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
        f.is_datetime |= f.count > 3;
    }
    Some(())
}

/// Validates the fields and builds a datetime.
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
            None => issues |= Issues::OUT_OF_RANGE,
        }
    }
    if f.fraction.cut {
        issues |= Issues::NOTE;
    }
    let has_time = f.count > 3;
    Parsed { value: Some(value), issues, has_date: true, has_time, decimals: f.fraction.decimals }
}

impl DateTime {
    /// Parses a text leniently, like MariaDB.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<DateTime> {
        let (negative, rest) = signed(text);
        let mut s = Scanner { rest };
        match fields(&mut s, Separator::Any, mode) {
            Some(f) if !negative => datetime_of(f, s.rest, mode),
            _ => Parsed::bad(Issues::TRUNCATED),
        }
    }
}

impl Date {
    /// Parses a text leniently, like MariaDB. A time of day is cut off.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<Date> {
        let parsed = DateTime::parse(text, mode);
        parsed.into_date()
    }
}

impl Parsed<DateTime> {
    /// Returns the date. A time of day other than midnight counts as cut off.
    pub fn into_date(self) -> Parsed<Date> {
        let cut = self.value.is_some_and(|v| v.micros_of_day() != 0 && !v.date.is_zero());
        let mut date = self.map(|v| v.date);
        // A fraction that could not be rounded up at the end of the calendar does not matter for the date.
        if date.value.is_some() && date.issues.any(Issues::OUT_OF_RANGE) {
            date.issues = Issues::NOTE;
        }
        if cut {
            date.issues |= Issues::CUT;
        }
        date
    }
}

impl Parsed<DateTime> {
    /// Returns the time of day. A date counts as cut off.
    pub fn into_time(self) -> Parsed<Time> {
        let cut = self.value.is_some_and(|v| !v.date.is_zero());
        let mut time = self.map(|v| v.time());
        if cut {
            time.issues |= Issues::CUT;
        }
        time
    }
}

impl Time {
    /// Parses a text leniently: `hh:mm:ss.f`, `D hh:mm:ss`, `hhmmss`, or the time of day of a datetime.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<Time> {
        let (negative, body) = signed(text);
        if body.is_empty() {
            return Parsed::bad(Issues::TRUNCATED);
        }
        if !negative {
            let mut s = Scanner { rest: body };
            let lenient = SqlMode(mode.0 & SqlMode::TIME_ROUND_FRACTIONAL.0 | SqlMode::ALLOW_INVALID_DATES.0);
            if let Some(f) = fields(&mut s, Separator::NoPunctuation, mode)
                && f.is_datetime
                && f.count >= 3
            {
                return datetime_of(f, s.rest, lenient).into_time();
            }
        }
        let mut s = Scanner { rest: body };
        time_body(&mut s, negative, mode, TIME_HOURS_MAX)
    }
}

/// Maximum hours of a TIME, and of a text or number that is an interval.
const TIME_HOURS_MAX: u64 = 838;
const INTERVAL_HOURS_MAX: u64 = 87_649_415;

/// The argument of EXTRACT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A date, with or without a time of day.
    DateTime(DateTime),
    /// An interval in days to microseconds, which may exceed the range of TIME.
    Interval(Time),
}

impl Span {
    /// Parses a text leniently: a datetime, a date with dashes, or `D hh:mm:ss.f`.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<Span> {
        let (negative, body) = signed(text);
        let digits = body.iter().take_while(|b| b.is_ascii_digit()).count();
        let dashed = digits > 0 && body.get(digits) == Some(&b'-');
        if !negative {
            let mut s = Scanner { rest: body };
            let separator = if dashed { Separator::Any } else { Separator::NoPunctuation };
            if let Some(f) = fields(&mut s, separator, mode)
                && (f.is_datetime || dashed)
                && f.count >= 3
            {
                return datetime_of(f, s.rest, mode).map(Span::DateTime);
            }
        }
        let mut s = Scanner { rest: body };
        time_body(&mut s, negative, mode, INTERVAL_HOURS_MAX).map(Span::Interval)
    }

    /// Parses a text for ADDTIME and TIMEDIFF: a datetime with a time of day, else a TIME.
    pub fn parse_time(text: &[u8], mode: SqlMode) -> Parsed<Span> {
        let mut s = Scanner { rest: trim_start(text) };
        if let Some(f) = fields(&mut s, Separator::NoPunctuation, mode)
            && f.is_datetime
            && f.count >= 3
        {
            return datetime_of(f, s.rest, mode).map(Span::DateTime);
        }
        Time::parse(text, mode).map(Span::Interval)
    }

    /// Converts a number for ADDTIME and TIMEDIFF: a date or datetime if it has eight digits or more, else a
    /// TIME.
    pub fn time_from_decimal(v: &crate::Decimal, mode: SqlMode) -> Parsed<Span> {
        let (whole, micros) = super::numeric::split(v, mode);
        if whole > 9_999_999 {
            return DateTime::from_number(whole, micros, mode).map(Span::DateTime);
        }
        Time::from_decimal(v, mode).map(Span::Interval)
    }

    /// Converts a number: hhmmss with any number of hours, or a datetime if it is long enough.
    pub fn from_decimal(v: &crate::Decimal, mode: SqlMode) -> Parsed<Span> {
        const LONGEST: i64 = 999_999_995_959;
        let (whole, micros) = super::numeric::split(v, mode);
        if whole > LONGEST {
            return DateTime::from_number(whole, micros, mode).map(Span::DateTime);
        }
        let magnitude = whole.unsigned_abs();
        let (minute, second) = (magnitude / 100 % 100, magnitude % 100);
        if minute > 59 || second > 59 {
            return Parsed::bad(Issues::TRUNCATED);
        }
        let seconds = (magnitude / 10_000).min(INTERVAL_HOURS_MAX) * 3600 + minute * 60 + second;
        let micros = (seconds * 1_000_000 + u64::from(micros)) as i64;
        let value = Time { micros: if v.is_negative() { -micros } else { micros } };
        let issues = Issues::default();
        Parsed { value: Some(value), issues, has_date: false, has_time: true, decimals: 6 }
            .map(Span::Interval)
    }
}

/// Parses `D hh:mm:ss.f`, `hh:mm:ss.f` or `hhmmss.f`.
fn time_body(s: &mut Scanner<'_>, negative: bool, mode: SqlMode, hours_max: u64) -> Parsed<Time> {
    let Some(first) = s.number(usize::MAX) else { return Parsed::bad(Issues::TRUNCATED) };
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
    if hours > hours_max {
        issues |= Issues::OUT_OF_RANGE;
    } else {
        let seconds = (hours * 60 + parts[2]) * 60 + parts[3];
        time.micros = seconds as i64 * SECOND + i64::from(fraction.micros);
        if fraction.round_up {
            time.micros += 1;
        }
        if hours_max == TIME_HOURS_MAX {
            time.micros = time.micros.min(Time::MAX.micros);
        }
    }
    if negative {
        time.micros = -time.micros;
    }
    if !trim_start(s.rest).is_empty() {
        issues |= Issues::TRUNCATED;
    }
    if fraction.cut {
        issues |= Issues::NOTE;
    }
    Parsed { value: Some(time), issues, has_date: false, has_time: true, decimals: fraction.decimals }
}

/// Returns whether the rest is an exponent (`e5`, `E-3`): the text is a double, not a time.
fn is_exponent(rest: &[u8]) -> bool {
    match rest {
        [b'e' | b'E', b'-' | b'+', digit, ..] | [b'e' | b'E', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    }
}
