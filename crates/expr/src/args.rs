//! Arguments of a function call during its evaluation.

use std::borrow::Cow;

use cohort_types::{CountBytes, Date, DateTime, Decimal, ErrorCode, IntValue, SqlResult, Str, Time, Value};

use crate::context::EvalContext;
use crate::convert;
use crate::expr::{Call, Expr};

/// Input of an evaluation function: the call, the row and the statement's context.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    pub call: &'a Call,
    pub row: &'a [Value],
    pub ctx: &'a EvalContext<'a>,
}

/// Unwraps an argument; if it is NULL, the enclosing function returns NULL.
macro_rules! or_null {
    ($argument:expr) => {
        match $argument? {
            Some(value) => value,
            None => return Ok(cohort_types::Value::Null),
        }
    };
}
pub(crate) use or_null;

impl<'a> Args<'a> {
    /// Returns the number of arguments.
    pub fn count(&self) -> usize {
        self.call.args.len()
    }

    pub fn expr(&self, n: usize) -> &'a Expr {
        &self.call.args[n]
    }

    /// Returns argument n as warnings name it.
    pub fn origin(&self, n: usize) -> convert::Origin<'a> {
        convert::Origin::of(&self.call.args[n])
    }

    pub fn value(&self, n: usize) -> SqlResult<Cow<'a, Value>> {
        let value = self.call.args[n].eval(self.row, self.ctx)?;
        self.ctx.count_value(&value)?;
        Ok(value)
    }

    /// Evaluates argument n in a numeric context.
    pub fn number(&self, n: usize) -> SqlResult<Cow<'a, Value>> {
        self.call.args[n].eval_number(self.row, self.ctx)
    }

    pub fn text(&self, n: usize) -> SqlResult<Option<Cow<'a, [u8]>>> {
        self.call.args[n].eval_text(self.row, self.ctx)
    }

    /// Evaluates argument n as a signed or unsigned integer.
    pub fn integer(&self, n: usize) -> SqlResult<Option<IntValue>> {
        let value = self.number(n)?;
        convert::to_int(&value, self.ctx)
    }

    /// Evaluates argument n as a signed integer, clamped to the range of BIGINT.
    pub fn int(&self, n: usize) -> SqlResult<Option<i64>> {
        Ok(self.integer(n)?.map(convert::clamp_signed))
    }

    pub fn real(&self, n: usize) -> SqlResult<Option<f64>> {
        let value = self.number(n)?;
        convert::to_f64(&value, self.ctx)
    }

    pub fn decimal(&self, n: usize) -> SqlResult<Option<Decimal>> {
        let value = self.number(n)?;
        convert::to_decimal(&value, self.ctx)
    }

    pub fn datetime(&self, n: usize) -> SqlResult<Option<DateTime>> {
        let value = self.value(n)?;
        convert::to_datetime(&value, self.origin(n), self.ctx)
    }

    pub fn date(&self, n: usize) -> SqlResult<Option<Date>> {
        Ok(self.datetime(n)?.map(|d| d.date))
    }

    pub fn time(&self, n: usize) -> SqlResult<Option<Time>> {
        let value = self.value(n)?;
        convert::to_time(&value, self.origin(n), self.ctx)
    }

    /// Wraps the bytes as a string with the call's collation.
    pub fn string(&self, bytes: impl Into<Vec<u8>>) -> SqlResult<Value> {
        Ok(Value::Str(Str { bytes: bytes.into(), collation: self.call.ty.collation }))
    }

    /// Returns true if a result of `bytes` fits max_allowed_packet. Otherwise it warns, and the caller must
    /// return NULL.
    pub fn fits_packet(&self, bytes: u64) -> SqlResult<bool> {
        let limit = self.ctx.env.max_allowed_packet;
        if bytes <= limit {
            return Ok(true);
        }
        let name = self.call.function.name;
        let text = format!("Result of {name}() was larger than max_allowed_packet ({limit}) - truncated");
        self.ctx.warn(ErrorCode::WarnAllowedPacketOverflowed, text)?;
        Ok(false)
    }

    /// Returns a string, or NULL with a warning if it exceeds max_allowed_packet. The check runs after the
    /// result exists, so this is only for results that are not much larger than their arguments.
    pub fn bounded_string(&self, bytes: Vec<u8>) -> SqlResult<Value> {
        match self.fits_packet(bytes.len() as u64)? {
            true => self.string(bytes),
            false => Ok(Value::Null),
        }
    }

    /// Reports a division by zero and returns NULL.
    pub fn division_by_zero(&self) -> SqlResult<Value> {
        convert::division_by_zero(self.ctx)?;
        Ok(Value::Null)
    }
}
