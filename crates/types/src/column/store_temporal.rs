//! Assignment to DATE, TIME, DATETIME and TIMESTAMP columns.

use super::store::Store;
use crate::{
    DECIMALS_NOT_FIXED, Date, DateTime, Decimal, Issues, LocalToUtc, NoWarnings, Parsed, SqlError, SqlMode,
    SqlResult, Time, Value,
};

/// Wraps a value that already is a temporal.
fn given<T>(value: T, issues: Issues) -> Parsed<T> {
    Parsed { value: Some(value), issues, has_date: true, has_time: true, decimals: 6 }
}

/// Checks a date or datetime against the session's mode. Parameters of prepared statements and columns filled
/// under another mode can contain dates that the mode rejects.
fn checked(value: DateTime, mode: SqlMode) -> Parsed<DateTime> {
    match crate::temporal::check_date(value.date, !value.is_zero(), mode) {
        Ok(()) => given(value, Issues::default()),
        Err(issues) => Parsed { value: None, ..given(value, issues) },
    }
}

/// Converts any value to a date and time. A TIME falls on the current date.
fn datetime_of(value: &Value, mode: SqlMode, today: Date) -> Parsed<DateTime> {
    match value {
        Value::Date(v) => checked(v.at_midnight(), mode),
        Value::DateTime(v) => checked(*v, mode),
        Value::Time(v) => match add_time(today, *v) {
            Some(sum) => given(sum, Issues::default()),
            None => Parsed {
                value: None,
                issues: Issues::OUT_OF_RANGE,
                has_date: false,
                has_time: true,
                decimals: 0,
            },
        },
        Value::Str(s) | Value::Enum { label: s, .. } | Value::Set { label: s, .. } => {
            DateTime::parse(&s.bytes, mode)
        }
        number => DateTime::from_decimal(&number_of(number), mode),
    }
}

fn add_time(date: Date, time: Time) -> Option<DateTime> {
    let interval = crate::Interval { micros: time.micros, ..crate::Interval::default() };
    date.at_midnight().add_interval(&interval)
}

fn number_of(value: &Value) -> Decimal {
    match value {
        Value::Double(v) => Decimal::of_temporal_number(*v),
        other => other.to_decimal(&mut NoWarnings).unwrap_or(Decimal::ZERO),
    }
}

/// Returns the text of a value for an error message.
fn text_of(value: &Value) -> Vec<u8> {
    if let Value::Str(s) = value {
        return s.shown();
    }
    let mut text = Vec::new();
    value.write_text(DECIMALS_NOT_FIXED, &mut text);
    text
}

impl Store<'_> {
    /// Returns 1292 for a column: "Incorrect date value: 'x' for column `d`.`t`.`c` at row 1".
    pub(super) fn incorrect_temporal(&self, kind: &str, value: &[u8]) -> SqlError {
        let c = self.ctx;
        let text = SqlError::incorrect_value_for_column(kind, value, c.database, c.table, c.column, c.row);
        SqlError::new(crate::ErrorCode::TruncatedWrongValue, text.message)
    }

    /// Reports a temporal out of range: 1292 in strict mode, else 1264.
    fn beyond(&mut self, kind: &str, value: &Value) -> SqlResult<()> {
        if self.ctx.strict {
            return Err(self.incorrect_temporal(kind, &text_of(value)));
        }
        self.out_of_range()
    }

    /// Reports the issues and returns the value to store.
    fn accept<T: Default>(&mut self, kind: &str, value: &Value, parsed: Parsed<T>) -> SqlResult<T> {
        if parsed.value.is_some() && parsed.issues.any(Issues::OUT_OF_RANGE) {
            self.beyond(kind, value)?;
        } else if parsed.value.is_none() || !parsed.issues.is_good() {
            if self.ctx.strict {
                return Err(self.incorrect_temporal(kind, &text_of(value)));
            }
            self.truncated()?;
        } else if parsed.issues.any(Issues::CUT) || parsed.issues.any(Issues::NOTE) {
            self.note_truncated();
        }
        Ok(parsed.value.unwrap_or_default())
    }

    pub(super) fn date(&mut self, value: Value) -> SqlResult<Value> {
        let value = self.local(value);
        let parsed = datetime_of(&value, self.ctx.sql_mode, self.ctx.today());
        self.accept("date", &value, parsed.into_date()).map(Value::Date)
    }

    pub(super) fn time(&mut self, value: Value) -> SqlResult<Value> {
        let value = self.local(value);
        let mode = self.ctx.sql_mode;
        let parsed = match &value {
            Value::Time(v) => given(*v, Issues::default()),
            Value::Date(v) => given(v.at_midnight(), Issues::default()).into_time(),
            Value::DateTime(v) => given(*v, Issues::default()).into_time(),
            Value::Str(s) | Value::Enum { label: s, .. } | Value::Set { label: s, .. } => {
                Time::parse(&s.bytes, mode)
            }
            number => Time::from_decimal(&number_of(number), mode),
        };
        let time = self.accept("time", &value, parsed)?;
        Ok(Value::Time(time.with_decimals(self.ty.decimals, mode)))
    }

    pub(super) fn datetime(&mut self, value: Value) -> SqlResult<Value> {
        let value = self.local(value);
        let parsed = datetime_of(&value, self.ctx.sql_mode, self.ctx.today());
        let local = self.accept("datetime", &value, parsed)?;
        match local.with_decimals(self.ty.decimals, self.ctx.sql_mode) {
            Some(rounded) => Ok(Value::DateTime(rounded)),
            None => {
                self.beyond("datetime", &value)?;
                Ok(Value::DateTime(DateTime::default()))
            }
        }
    }

    pub(super) fn timestamp(&mut self, value: Value) -> SqlResult<Value> {
        if let Value::Timestamp(micros) = value {
            let unit = 10i64.pow(6 - u32::from(self.ty.decimals.min(6)));
            return Ok(Value::Timestamp(micros / unit * unit));
        }
        // A TIMESTAMP is an instant, so a partial date is never valid.
        let mode = self.ctx.sql_mode | SqlMode::NO_ZERO_IN_DATE;
        let parsed = datetime_of(&value, mode, self.ctx.today());
        let local = self.accept("datetime", &value, parsed)?;
        let local = local.with_decimals(self.ty.decimals, mode).unwrap_or(local);
        if local.is_zero() {
            return Ok(Value::Timestamp(0));
        }
        let utc = if local.date.is_real() { self.ctx.zone.to_utc(&local) } else { LocalToUtc::OutOfRange };
        match utc {
            LocalToUtc::Exact(micros) => Ok(Value::Timestamp(micros)),
            LocalToUtc::Gap(_) if self.ctx.strict => {
                Err(self.incorrect_temporal("datetime", &text_of(&value)))
            }
            LocalToUtc::Gap(micros) => {
                self.fail(SqlError::invalid_timestamp(self.ctx.column, self.ctx.row))?;
                Ok(Value::Timestamp(micros))
            }
            LocalToUtc::OutOfRange => {
                self.beyond("datetime", &value)?;
                Ok(Value::Timestamp(0))
            }
        }
    }
}
