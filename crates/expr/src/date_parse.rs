//! STR_TO_DATE: parses a text to a date or time by a format.

use cohort_types::{Date, DateTime, ErrorCode, SqlMode, SqlResult, Time, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::convert;
use crate::date_part::{DAY_NAMES, MONTH_NAMES};
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::function::{Anywhere, Function, Rows};
use crate::text_size::text_collation;

pub(crate) static FUNCTIONS: &[Function] =
    &[Function::new("str_to_date", 2, 2, type_str_to_date, str_to_date, Rows, Anywhere).of_statement()];

const TIME_LETTERS: &[u8] = b"HISThfiklprs";

/// Derives the type from a constant format: a date, a time, or both. `%f` adds fraction digits.
fn type_str_to_date(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let format = match &args[1] {
        Expr::Const(c) => match &c.value {
            Value::Str(s) => s.bytes.clone(),
            _ => Vec::new(),
        },
        _ => return Ok(ExprType::datetime(6)),
    };
    let letters: Vec<u8> = format.windows(2).filter(|w| w[0] == b'%').map(|w| w[1]).collect();
    let has_time = letters.iter().any(|l| TIME_LETTERS.contains(l));
    let has_date = letters.iter().any(|l| b"MVUXYWabcjmvuxyweDd".contains(l));
    let decimals = if letters.contains(&b'f') { 6 } else { 0 };
    Ok(match (has_date, has_time) {
        (true, false) | (false, false) => ExprType::date(),
        (false, true) => ExprType::time(decimals),
        (true, true) => ExprType::datetime(decimals),
    })
}

fn str_to_date(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let format = or_null!(a.text(1));
    let class = a.call.ty.class();
    let found = parse(&text, &format).and_then(|p| p.finish(class, a.ctx.env.sql_mode).map(|v| (v, p.rest)));
    let Some((value, rest)) = found else {
        // Like MariaDB, the message shows at most 127 bytes, up to the first NUL.
        let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
        let shown = convert::start_of_text(&text[..end], 127);
        a.ctx.warn(
            ErrorCode::WrongValueForType,
            format!("Incorrect datetime value: '{shown}' for function str_to_date"),
        )?;
        return Ok(Value::Null);
    };
    if !rest.trim_ascii_start().is_empty() {
        let what = match class {
            TypeClass::Time => "time",
            TypeClass::Date => "date",
            _ => "datetime",
        };
        let shown = convert::shown_bytes(&text, text_collation(a.expr(0)));
        a.ctx.warn(ErrorCode::TruncatedWrongValue, format!("Truncated incorrect {what} value: '{shown}'"))?;
    }
    Ok(value)
}

/// The fields found so far, and the rest of the text.
#[derive(Default)]
struct Found<'t> {
    rest: &'t [u8],
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    day_of_year: u32,
    /// 1 is Monday; 0 if not given.
    weekday: u32,
    week: Option<WeekNumber>,
    week_year: Option<u32>,
    twelve_hours: bool,
    afternoon: bool,
}

#[derive(Clone, Copy)]
struct WeekNumber {
    week: u32,
    starts_sunday: bool,
    strict: bool,
}

fn parse<'t>(text: &'t [u8], format: &[u8]) -> Option<Found<'t>> {
    let mut found = Found { rest: text, ..Found::default() };
    let mut format = format;
    while let Some((b, after)) = format.split_first() {
        format = after;
        match (b, after.split_first()) {
            (b'%', Some((letter, after))) => {
                format = after;
                found.skip_spaces();
                if found.rest.is_empty() {
                    break;
                }
                found.read_part(*letter)?;
            }
            (b, _) if b.is_ascii_whitespace() => found.skip_spaces(),
            (b, _) => {
                found.skip_spaces();
                if found.rest.is_empty() {
                    break;
                }
                found.rest = found.rest.strip_prefix(&[*b][..])?;
            }
        }
    }
    Some(found)
}

impl Found<'_> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Reads a number of at most `digits_max` digits.
    fn number(&mut self, digits_max: usize) -> Option<u32> {
        let count = self.rest.iter().take(digits_max).take_while(|b| b.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.rest[..count]).ok()?.parse().ok()?;
        self.rest = &self.rest[count..];
        Some(number)
    }

    fn read_part(&mut self, letter: u8) -> Option<()> {
        match letter {
            b'Y' => {
                let before = self.rest.len();
                self.year = self.number(4)?;
                if before - self.rest.len() <= 2 {
                    self.year = two_digit_year(self.year);
                }
            }
            b'y' => self.year = two_digit_year(self.number(2)?),
            b'm' | b'c' => self.month = self.number(2)?,
            b'M' => self.month = self.name(&MONTH_NAMES, 0)? + 1,
            b'b' => self.month = self.name(&MONTH_NAMES, 3)? + 1,
            b'd' | b'e' => self.day = self.number(2)?,
            b'D' => {
                self.day = self.number(2)?;
                self.rest = self.rest.get(2..).unwrap_or_default();
            }
            b'H' | b'k' => self.hour = self.number(2)?,
            b'h' | b'I' | b'l' => {
                self.hour = self.number(2)?;
                self.twelve_hours = true;
            }
            b'i' => self.minute = self.number(2)?,
            b's' | b'S' => self.second = self.number(2)?,
            b'f' => self.read_fraction()?,
            b'p' => self.read_half()?,
            b'W' => self.weekday = self.name(&DAY_NAMES, 0)? + 1,
            b'a' => self.weekday = self.name(&DAY_NAMES, 3)? + 1,
            b'w' => self.weekday = self.number(1).filter(|d| *d < 7).map(|d| if d == 0 { 7 } else { d })?,
            b'j' => self.day_of_year = self.number(3)?,
            b'V' | b'U' | b'v' | b'u' => {
                let week = self.number(2).filter(|w| *w <= 53)?;
                let (starts_sunday, strict) = (matches!(letter, b'U' | b'V'), matches!(letter, b'V' | b'v'));
                if strict && week == 0 {
                    return None;
                }
                self.week = Some(WeekNumber { week, starts_sunday, strict });
            }
            b'X' | b'x' => self.week_year = Some(self.number(4)?),
            b'r' => {
                for part in *b"I:i:S" {
                    self.read_step(part)?;
                }
                self.skip_spaces();
                self.read_half()?;
            }
            b'T' => {
                for part in *b"H:i:S" {
                    self.read_step(part)?;
                }
            }
            b'.' => self.skip_while(|b| b.is_ascii_punctuation()),
            b'@' => self.skip_while(|b| b.is_ascii_alphabetic()),
            b'#' => self.skip_while(|b| b.is_ascii_digit()),
            _ => return None,
        }
        Some(())
    }

    /// Reads one step of a composed part: a separator or a letter.
    fn read_step(&mut self, step: u8) -> Option<()> {
        if self.rest.is_empty() {
            return Some(());
        }
        if step == b':' {
            self.rest = self.rest.strip_prefix(b":")?;
            return Some(());
        }
        self.read_part(step)
    }

    fn skip_while(&mut self, skip: fn(&u8) -> bool) {
        let count = self.rest.iter().take_while(|b| skip(b)).count();
        self.rest = &self.rest[count..];
    }

    fn read_fraction(&mut self) -> Option<()> {
        let before = self.rest.len();
        let number = self.number(6)?;
        self.micros = number * 10u32.pow(6 - (before - self.rest.len()) as u32);
        Some(())
    }

    /// Reads AM or PM. The hour must be of a 12-hour clock.
    fn read_half(&mut self) -> Option<()> {
        if !self.twelve_hours {
            return None;
        }
        let half = self.rest.get(..2)?.to_ascii_uppercase();
        self.afternoon = match &half[..] {
            b"AM" => false,
            b"PM" => true,
            _ => return None,
        };
        self.rest = &self.rest[2..];
        Some(())
    }

    /// Reads a name and returns its index. The text has the whole name, or a prefix that no other name starts
    /// with. Names are compared by their first `prefix` letters; 0 means all.
    fn name(&mut self, names: &[&str], prefix: usize) -> Option<u32> {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (word, rest) = self.rest.split_at(len);
        let whole = |name: &&str| if prefix == 0 { name.len() } else { prefix };
        let begins = |name: &&str| len <= whole(name) && name.as_bytes()[..len].eq_ignore_ascii_case(word);
        let mut found = names.iter().enumerate().filter(|(_, name)| begins(name));
        let (index, first) = found.next().filter(|_| len > 0)?;
        if len < whole(first) && found.next().is_some() {
            return None;
        }
        self.rest = rest;
        Some(index as u32)
    }

    /// Returns the value of the fields as the given class, or `None` if a field is out of range.
    fn finish(&self, class: TypeClass, mode: SqlMode) -> Option<Value> {
        let mut hour = self.hour;
        if self.twelve_hours {
            if !(1..=12).contains(&hour) {
                return None;
            }
            hour = hour % 12 + if self.afternoon { 12 } else { 0 };
        }
        if hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let micros =
            i64::from(hour * 3600 + self.minute * 60 + self.second) * 1_000_000 + i64::from(self.micros);
        if class == TypeClass::Time {
            return Some(Value::Time(Time { micros }));
        }
        let date = self.date(mode)?;
        Some(if class == TypeClass::Date {
            Value::Date(date)
        } else {
            Value::DateTime(DateTime::from_micros_of_day(date, micros))
        })
    }

    fn date(&self, mode: SqlMode) -> Option<Date> {
        if self.day_of_year > 0 {
            let start = Date::new(u16::try_from(self.year).ok()?, 1, 1).day_number();
            return Date::from_day_number(start + self.day_of_year - 1);
        }
        if let (Some(week), true) = (self.week, self.weekday > 0) {
            return self.date_of_week(week);
        }
        if self.month > 12 || self.day > 31 {
            return None;
        }
        let date = Date::new(self.year as u16, self.month as u8, self.day as u8);
        let no_zero = mode.has(SqlMode::NO_ZERO_IN_DATE) && (date.month == 0 || date.day == 0)
            || mode.has(SqlMode::NO_ZERO_DATE) && date.is_zero();
        // A day after the end of its month is accepted: MariaDB does not check the calendar here.
        (!no_zero).then_some(date)
    }

    /// Returns the date of the given weekday in a numbered week.
    fn date_of_week(&self, number: WeekNumber) -> Option<Date> {
        if number.strict != self.week_year.is_some() {
            return None;
        }
        let year = self.week_year.unwrap_or(self.year);
        let first = Date::new(u16::try_from(year).ok()?, 1, 1);
        let start = i64::from(first.day_number());
        let week = i64::from(number.week);
        let weekday = i64::from(self.weekday);
        // `b` is the weekday of 1 January, counted from the first day of a week.
        let days = if number.starts_sunday {
            let b = (i64::from(first.weekday()) + 1) % 7;
            start + if b == 0 { 0 } else { 7 } - b + (week - 1) * 7 + weekday % 7
        } else {
            let b = i64::from(first.weekday());
            start + if b <= 3 { 0 } else { 7 } - b + (week - 1) * 7 + weekday - 1
        };
        Date::from_day_number(u32::try_from(days).ok()?)
    }
}

fn two_digit_year(year: u32) -> u32 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}
