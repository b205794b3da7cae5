//! DATE_FORMAT, TIME_FORMAT, GET_FORMAT.

use std::io::Write as _;

use cohort_types::{DateTime, ErrorCode, SqlResult, Time, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::date_part::{DAY_NAMES, MONTH_NAMES};
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::function::{Anywhere, Function, NotIndexed, Rows, Text};
use crate::locale::DateNames;
use crate::typing::{ascii_string, width};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("date_format", 2, 3, type_formatted, date_format, Text, NotIndexed)
        .of_statement()
        .only_with(2),
    Function::new("time_format", 2, 2, type_formatted, time_format, Rows, Anywhere).of_statement(),
    Function::new("get_format", 2, 2, type_get_format, get_format, Rows, Anywhere),
];

/// Derives the length from a constant format; otherwise ten characters for each character of the format.
pub(crate) fn type_formatted(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = match &args[1] {
        Expr::Const(c) => c.value.as_bytes().map_or(0, format_length),
        _ => width(&args[1]).saturating_mul(10).min(16_383),
    };
    // Names of other locales are not ASCII.
    Ok(ExprType { decimals: 0, ascii: args.len() < 3, ..ascii_string(env, length) })
}

/// Returns the maximum length of the result, in characters.
fn format_length(format: &[u8]) -> u64 {
    let mut length = 0;
    let mut letters = format.iter();
    while let Some(b) = letters.next() {
        let part = if *b == b'%' { letters.next() } else { None };
        length += match part {
            Some(b'M' | b'W') => 64,
            Some(b'a' | b'b') => 32,
            Some(b'D' | b'Y' | b'x' | b'X') => 4,
            Some(b'j') => 3,
            Some(b'k' | b'H') => 7,
            Some(b'r') => 11,
            Some(b'T') => 8,
            Some(b'f') => 6,
            Some(
                b'u' | b'U' | b'v' | b'V' | b'y' | b'm' | b'd' | b'h' | b'i' | b'I' | b'l' | b'p' | b'S'
                | b's',
            )
            | Some(b'c' | b'e') => 2,
            _ => 1,
        };
    }
    length
}

fn type_get_format(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ascii_string(env, 17))
}

fn date_format(a: Args<'_>) -> SqlResult<Value> {
    let value = a.value(0)?;
    // A TIME has a zero date.
    let fields = match value.as_ref() {
        Value::Time(time) => Fields { time: *time, ..Fields::of(&DateTime::default()) },
        _ => Fields::of(&or_null!(a.datetime(0))),
    };
    let names = if a.count() > 2 { names_of(&a)? } else { a.ctx.env.date_names };
    formatted(&a, &Fields { names, ..fields })
}

/// Returns the names of the locale in the third argument. An unknown locale warns, and English names are
/// used.
fn names_of(a: &Args<'_>) -> SqlResult<Option<&'static DateNames>> {
    let locale = a.text(2)?.map_or("NULL".to_owned(), |name| String::from_utf8_lossy(&name).into_owned());
    let names = DateNames::of_locale(&locale);
    if names.is_none() {
        let shown = crate::convert::start_of_text(locale.as_bytes(), 64);
        a.ctx.warn(ErrorCode::UnknownLocale, format!("Unknown locale: '{shown}'"))?;
    }
    Ok(names)
}

fn time_format(a: Args<'_>) -> SqlResult<Value> {
    let time = or_null!(a.time(0));
    formatted(&a, &Fields { time, dated: false, ..Fields::of(&DateTime::default()) })
}

fn formatted(a: &Args<'_>, fields: &Fields) -> SqlResult<Value> {
    let format = or_null!(a.text(1));
    if format.is_empty() {
        return Ok(Value::Null);
    }
    match fields.write(&format) {
        Some(text) => a.string(text),
        None => Ok(Value::Null),
    }
}

/// Formats a datetime. Returns `None` if the format needs a part that the date lacks (the day name of a zero
/// date).
pub(crate) fn format_datetime(datetime: &DateTime, format: &[u8]) -> Option<Vec<u8>> {
    Fields::of(datetime).write(format)
}

/// The values for the letters of a format.
pub(crate) struct Fields {
    pub(crate) datetime: DateTime,
    pub(crate) time: Time,
    /// Whether the letters of a date are allowed.
    pub(crate) dated: bool,
    /// The names of a locale; English if `None`.
    pub(crate) names: Option<&'static DateNames>,
}

impl Fields {
    pub(crate) fn of(datetime: &DateTime) -> Fields {
        Fields { datetime: *datetime, time: datetime.time(), dated: true, names: None }
    }

    fn write(&self, format: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(format.len() * 2);
        if self.time.micros < 0 {
            out.push(b'-');
        }
        let mut letters = format.iter();
        while let Some(b) = letters.next() {
            match (b, letters.as_slice().first()) {
                (b'%', Some(letter)) => {
                    letters.next();
                    self.write_part(*letter, &mut out)?;
                }
                _ => out.push(*b),
            }
        }
        Some(out)
    }

    fn write_part(&self, letter: u8, out: &mut Vec<u8>) -> Option<()> {
        if !self.dated && b"MbmcYydeDjWawUuVvXx".contains(&letter) {
            return None;
        }
        match letter {
            b'M' | b'b' | b'm' | b'c' | b'Y' | b'y' | b'd' | b'e' | b'D' | b'j' => {
                self.write_date(letter, out)
            }
            b'W' | b'a' | b'w' | b'U' | b'u' | b'V' | b'v' | b'X' | b'x' => self.write_week(letter, out),
            b'H' | b'k' | b'h' | b'I' | b'l' | b'i' | b'S' | b's' | b'f' | b'p' | b'r' | b'T' => {
                self.write_time(letter, out);
                Some(())
            }
            other => {
                out.push(other);
                Some(())
            }
        }
    }

    fn write_date(&self, letter: u8, out: &mut Vec<u8>) -> Option<()> {
        let date = self.datetime.date;
        match letter {
            b'M' | b'b' => out.extend_from_slice(self.month_name(date.month, letter == b'b')?.as_bytes()),
            b'm' => put(out, date.month, 2),
            b'c' => put(out, date.month, 1),
            b'Y' => put(out, date.year, 4),
            b'y' => put(out, date.year % 100, 2),
            b'd' => put(out, date.day, 2),
            b'e' => put(out, date.day, 1),
            b'j' => put(out, crate::convert::not_zero(date).map(|d| d.day_of_year())?, 3),
            _ => {
                put(out, date.day, 1);
                out.extend_from_slice(ordinal_suffix(date.day).as_bytes());
            }
        }
        Some(())
    }

    pub(crate) fn month_name(&self, month: u8, is_short: bool) -> Option<&'static str> {
        if let Some(names) = self.names {
            return names.month(month, is_short);
        }
        let name = MONTH_NAMES.get(usize::from(month).checked_sub(1)?)?;
        Some(if is_short { &name[..3] } else { name })
    }

    pub(crate) fn day_name(&self, weekday: u8, is_short: bool) -> Option<&'static str> {
        if let Some(names) = self.names {
            return names.weekday(weekday, is_short);
        }
        let name = DAY_NAMES.get(usize::from(weekday))?;
        Some(if is_short { &name[..3] } else { name })
    }

    fn write_week(&self, letter: u8, out: &mut Vec<u8>) -> Option<()> {
        if let b'W' | b'a' | b'w' = letter {
            let weekday = loose_weekday(self.datetime.date)?;
            match letter {
                b'W' | b'a' => out.extend_from_slice(self.day_name(weekday, letter == b'a')?.as_bytes()),
                _ => put(out, (weekday + 1) % 7, 1),
            }
            return Some(());
        }
        let date = crate::convert::not_zero(self.datetime.date)?;
        match letter {
            b'U' => put(out, date.week(0).1, 2),
            b'u' => put(out, date.week(1).1, 2),
            b'V' => put(out, date.week(2).1, 2),
            b'v' => put(out, date.week(3).1, 2),
            b'X' => put(out, date.week(2).0, 4),
            _ => put(out, date.week(3).0, 4),
        }
        Some(())
    }

    fn write_time(&self, letter: u8, out: &mut Vec<u8>) {
        let (hour, minute, second) = (self.time.hour(), self.time.minute(), self.time.second());
        let twelve = (hour % 24 + 11) % 12 + 1;
        match letter {
            b'H' => put(out, hour, 2),
            b'k' => put(out, hour, 1),
            b'h' | b'I' => put(out, twelve, 2),
            b'l' => put(out, twelve, 1),
            b'i' => put(out, minute, 2),
            b'f' => put(out, self.time.microsecond(), 6),
            b'p' => out.extend_from_slice(half_of_day(hour).as_bytes()),
            b'r' => {
                self.write_clock(twelve, out);
                out.push(b' ');
                out.extend_from_slice(half_of_day(hour).as_bytes());
            }
            b'T' => self.write_clock(hour, out),
            _ => put(out, second, 2),
        }
    }

    fn write_clock(&self, hour: u32, out: &mut Vec<u8>) {
        put(out, hour, 2);
        out.push(b':');
        put(out, self.time.minute(), 2);
        out.push(b':');
        put(out, self.time.second(), 2);
    }
}

/// Returns the weekday of a date that may lack its day: day 0 is the day before the first.
fn loose_weekday(date: cohort_types::Date) -> Option<u8> {
    if date.year == 0 && date.month == 0 {
        return None;
    }
    // Without a day, the weekday is the one before the first day of the month.
    Some(match (date.month, date.day) {
        (_, 1..) => date.weekday(),
        (_, 0) => (cohort_types::Date { day: 1, ..date }.weekday() + 6) % 7,
    })
}

pub(crate) fn put(out: &mut Vec<u8>, number: impl Into<u32>, width: usize) {
    let number: u32 = number.into();
    write!(out, "{number:0width$}").expect("writing to memory does not fail");
}

pub(crate) fn half_of_day(hour: u32) -> &'static str {
    if hour % 24 < 12 { "AM" } else { "PM" }
}

fn ordinal_suffix(day: u8) -> &'static str {
    match (day / 10, day % 10) {
        (1, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// GET_FORMAT(DATE | TIME | DATETIME | TIMESTAMP, place); the parser passes the first word as a text.
fn get_format(a: Args<'_>) -> SqlResult<Value> {
    let kind = or_null!(a.text(0)).to_ascii_uppercase();
    let place = or_null!(a.text(1)).to_ascii_uppercase();
    let format = match (&kind[..], &place[..]) {
        (b"DATE", b"USA") => "%m.%d.%Y",
        (b"DATE", b"JIS" | b"ISO") => "%Y-%m-%d",
        (b"DATE", b"EUR") => "%d.%m.%Y",
        (b"DATE", b"INTERNAL") => "%Y%m%d",
        (b"TIME", b"USA") => "%h:%i:%s %p",
        (b"TIME", b"JIS" | b"ISO") => "%H:%i:%s",
        (b"TIME", b"EUR") => "%H.%i.%s",
        (b"TIME", b"INTERNAL") => "%H%i%s",
        (b"DATETIME" | b"TIMESTAMP", b"USA" | b"EUR") => "%Y-%m-%d %H.%i.%s",
        (b"DATETIME" | b"TIMESTAMP", b"JIS" | b"ISO") => "%Y-%m-%d %H:%i:%s",
        (b"DATETIME" | b"TIMESTAMP", b"INTERNAL") => "%Y%m%d%H%i%s",
        _ => return Ok(Value::Null),
    };
    a.string(format)
}
