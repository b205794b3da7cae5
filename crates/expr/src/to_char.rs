//! TO_CHAR: formats dates and times with Oracle's format models.
//!
//! A format consists of letters for parts of the date and time, quoted text, and punctuation that is copied.
//! Any other character is error 3047 if the format is constant; otherwise it raises the same message as a
//! warning and the result is NULL.

use cohort_types::{DateTime, ErrorCode, SqlError, SqlResult, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::date_format::{Fields, half_of_day, put};
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::function::{Function, NotIndexed, Rows};
use crate::locale::DateNames;
use crate::typing::{ascii_string, width};

pub(crate) static FUNCTIONS: &[Function] =
    &[Function::new("to_char", 1, 2, type_of, to_char, Rows, NotIndexed).of_statement()];

const DEFAULT_FORMAT: &[u8] = b"YYYY-MM-DD HH24:MI:SS";
/// Maximum length of a format.
const FORMAT_BYTES_MAX: usize = 144;
/// Bytes of a format shown in an error message.
const SHOWN_BYTES: usize = 8;
/// Length of the longest English name of a month or day in characters.
const NAME_CHARS: usize = 9;

/// A part of the date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The last digits of the year.
    Year(usize),
    /// The year with a comma after its thousands.
    YearWithComma,
    Month,
    MonthName,
    MonthShort,
    Day,
    DayName,
    DayShort,
    Hour,
    HourOfHalf,
    Minute,
    Second,
    HalfOfDay,
    HalfOfDayWithDots,
    Era,
    EraWithDots,
}

/// Spellings; a longer one precedes its own prefixes.
const PARTS: &[(&str, Part)] = &[
    ("A.D.", Part::EraWithDots),
    ("A.M.", Part::HalfOfDayWithDots),
    ("AD", Part::Era),
    ("AM", Part::HalfOfDay),
    ("B.C.", Part::EraWithDots),
    ("BC", Part::Era),
    ("DAY", Part::DayName),
    ("DD", Part::Day),
    ("DY", Part::DayShort),
    ("HH24", Part::Hour),
    ("HH12", Part::HourOfHalf),
    ("HH", Part::HourOfHalf),
    ("MI", Part::Minute),
    ("MM", Part::Month),
    ("MONTH", Part::MonthName),
    ("MON", Part::MonthShort),
    ("P.M.", Part::HalfOfDayWithDots),
    ("PM", Part::HalfOfDay),
    ("RRRR", Part::Year(4)),
    ("RR", Part::Year(2)),
    ("SS", Part::Second),
    ("Y,YYY", Part::YearWithComma),
    ("YYYY", Part::Year(4)),
    ("YYY", Part::Year(3)),
    ("YY", Part::Year(2)),
    ("Y", Part::Year(1)),
];

/// A part, or literal text.
#[derive(Debug, PartialEq)]
enum Piece<'f> {
    Part(Part),
    Text(&'f [u8]),
}

/// Parses a format. The error is the reason why it is invalid.
fn pieces(format: &[u8]) -> Result<Vec<Piece<'_>>, String> {
    if format.len() > FORMAT_BYTES_MAX {
        return Err("datetime format string is too long".to_owned());
    }
    let mut found = Vec::new();
    let mut rest = format;
    while let Some(first) = rest.first() {
        let part = PARTS.iter().find(|(spelling, _)| {
            rest.get(..spelling.len()).is_some_and(|start| start.eq_ignore_ascii_case(spelling.as_bytes()))
        });
        let taken = match (part, first) {
            (Some((spelling, part)), _) => {
                found.push(Piece::Part(*part));
                spelling.len()
            }
            // An unterminated quotation extends to the end of the format.
            (None, b'"') => {
                let text = rest[1..].split(|b| *b == b'"').next().unwrap_or_default();
                found.push(Piece::Text(text));
                rest.len().min(text.len() + 2)
            }
            // `|` before a letter or digit is dropped; `||` is one `|`.
            (None, b'|') if rest.get(1).is_some_and(|next| *next == b'|' || next.is_ascii_alphanumeric()) => {
                let is_doubled = rest.get(1) == Some(&b'|');
                found.push(Piece::Text(if is_doubled { &rest[..1] } else { &[] }));
                1 + usize::from(is_doubled)
            }
            (None, sign) if *sign == b' ' || sign.is_ascii_punctuation() => {
                found.push(Piece::Text(&rest[..1]));
                1
            }
            (None, _) => {
                let shown = String::from_utf8_lossy(&rest[..rest.len().min(SHOWN_BYTES)]);
                return Err(format!("date format not recognized at {shown}"));
            }
        };
        rest = &rest[taken..];
    }
    Ok(found)
}

fn refusal(reason: &str) -> SqlError {
    SqlError::invalid_argument(reason, "to_char")
}

fn type_of(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let ty = args[0].ty();
    let is_null = matches!(&args[0], Expr::Const(c) if c.value.is_null());
    if is_null || !(ty.is_temporal() || ty.class() == TypeClass::String) {
        return Err(refusal("data type of first argument must be type date/datetime/time or string"));
    }
    let length = match args.get(1) {
        None => DEFAULT_FORMAT.len() as u64 - 2,
        Some(Expr::Const(c)) => match c.value.as_bytes() {
            Some(format) => length_of(&pieces(format).map_err(|reason| refusal(&reason))?, env.date_names),
            None => 0,
        },
        Some(format) => width(format).saturating_mul(10).min(16_383),
    };
    let is_english = env.date_names.is_none();
    Ok(ExprType { decimals: 0, ascii: is_english, ..ascii_string(env, length) })
}

/// Returns the maximum length of the result in characters.
fn length_of(pieces: &[Piece<'_>], names: Option<&DateNames>) -> u64 {
    // MariaDB computes with the bytes of the names in UTF-8.
    let month = 3 * names.map_or(NAME_CHARS, DateNames::month_chars_max);
    let day = 3 * names.map_or(NAME_CHARS, DateNames::day_chars_max);
    let length = |piece: &Piece<'_>| match piece {
        Piece::Text(text) if text.len() == 1 => 1,
        Piece::Text(text) => text.len() + 2,
        Piece::Part(part) => match part {
            Part::Year(digits) => *digits,
            Part::YearWithComma => 5,
            Part::MonthName => month,
            Part::DayName => day,
            Part::MonthShort | Part::DayShort => 3,
            Part::HalfOfDayWithDots | Part::EraWithDots => 4,
            _ => 2,
        },
    };
    pieces.iter().map(length).sum::<usize>() as u64
}

fn to_char(a: Args<'_>) -> SqlResult<Value> {
    let value = a.value(0)?;
    let fields = match value.as_ref() {
        // A TIME has no date.
        Value::Time(time) => Fields { time: *time, ..Fields::of(&DateTime::default()) },
        _ => Fields::of(&or_null!(a.datetime(0))),
    };
    let format = match a.count() {
        1 => None,
        _ => Some(or_null!(a.text(1))),
    };
    let pieces = match pieces(format.as_deref().unwrap_or(DEFAULT_FORMAT)) {
        Ok(pieces) => pieces,
        Err(reason) => {
            a.ctx.warn(ErrorCode::StdInvalidArgument, refusal(&reason).message)?;
            return Ok(Value::Null);
        }
    };
    let fields = Fields { names: a.ctx.env.date_names, ..fields };
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text),
            Piece::Part(part) => write_part(&fields, part, &mut out),
        }
    }
    a.string(out)
}

fn write_part(fields: &Fields, part: Part, out: &mut Vec<u8>) {
    let date = fields.datetime.date;
    let (year, hour) = (u32::from(date.year), fields.time.hour());
    let names = fields.names;
    match part {
        Part::Year(digits) => put(out, year % 10u32.pow(digits as u32), digits),
        Part::YearWithComma => {
            put(out, year / 1000, 1);
            out.push(b',');
            put(out, year % 1000, 3);
        }
        Part::Month => put(out, date.month, 2),
        Part::MonthName => {
            let width = names.map_or(NAME_CHARS, DateNames::month_chars_max);
            write_name(fields.month_name(date.month, false), width, out);
        }
        Part::MonthShort => write_name(fields.month_name(date.month, true), 0, out),
        Part::Day => put(out, date.day, 2),
        Part::DayName | Part::DayShort => {
            let is_short = part == Part::DayShort;
            let weekday = crate::convert::not_zero(date).map(|date| date.weekday());
            let width = if is_short { 0 } else { names.map_or(NAME_CHARS, DateNames::day_chars_max) };
            write_name(weekday.and_then(|weekday| fields.day_name(weekday, is_short)), width, out);
        }
        Part::Hour => put(out, hour, 2),
        Part::HourOfHalf => put(out, (hour % 12 + 11) % 12 + 1, 2),
        Part::Minute => put(out, fields.time.minute(), 2),
        Part::Second => put(out, fields.time.second(), 2),
        Part::HalfOfDay => out.extend_from_slice(half_of_day(hour).as_bytes()),
        Part::HalfOfDayWithDots => {
            out.extend_from_slice(if half_of_day(hour) == "AM" { b"A.M." } else { b"P.M." });
        }
        Part::Era => out.extend_from_slice(if year > 0 { b"AD" } else { b"BC" }),
        Part::EraWithDots => out.extend_from_slice(if year > 0 { b"A.D." } else { b"B.C." }),
    }
}

/// Appends a name padded with spaces, or `00` if there is none.
fn write_name(name: Option<&str>, width: usize, out: &mut Vec<u8>) {
    let Some(name) = name else { return out.extend_from_slice(b"00") };
    out.extend_from_slice(name.as_bytes());
    out.resize(out.len() + width.saturating_sub(name.chars().count()), b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_longest_part_first() {
        let parts = pieces(b"hh24Y,YYYyyyyyMONTHMON\"MM\"-\"x").expect("a format");
        let wanted = [
            Piece::Part(Part::Hour),
            Piece::Part(Part::YearWithComma),
            Piece::Part(Part::Year(4)),
            Piece::Part(Part::Year(1)),
            Piece::Part(Part::MonthName),
            Piece::Part(Part::MonthShort),
            Piece::Text(b"MM"),
            Piece::Text(b"-"),
            Piece::Text(b"x"),
        ];
        assert_eq!(parts, wanted);
        assert_eq!(pieces(b"YYYY\t"), Err("date format not recognized at \t".to_owned()));
        assert!(pieces(&[b' '; FORMAT_BYTES_MAX]).is_ok() && pieces(&[b' '; FORMAT_BYTES_MAX + 1]).is_err());
    }
}
