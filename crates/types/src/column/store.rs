//! Assignment: the only way to convert a value to a column's type.
//!
//! Every bad value raises a condition. In strict mode it is an error. Otherwise the value is adjusted
//! (clamped, truncated, zeroed) and the condition is a warning. Harmless losses, for example digits after the
//! point of a DECIMAL, are notes in either mode. The condition for each value was recorded from MariaDB 10.11
//! (tests/golden/store.tsv).

use crate::{
    ColumnType, FixedKind, SqlError, SqlResult, StoreContext, Str, TypeKind, Value, Warning, WarningSink,
};

/// An assignment in progress.
pub(super) struct Store<'a> {
    pub(super) ty: &'a ColumnType,
    pub(super) ctx: &'a StoreContext<'a>,
    pub(super) sink: &'a mut dyn WarningSink,
}

impl ColumnType {
    /// Assigns a value to a column of this type and returns the stored value. A bad value is an error in
    /// strict mode; otherwise it is adjusted and `sink` receives the warning. NULL stays NULL: the caller
    /// checks nullability.
    pub fn store(
        &self,
        value: Value,
        ctx: &StoreContext<'_>,
        sink: &mut dyn WarningSink,
    ) -> SqlResult<Value> {
        let mut store = Store { ty: self, ctx, sink };
        let is_string = self.kind.is_text() || self.kind.is_binary_string();
        let is_short = is_string && !self.kind.is_blob();
        let value = match value {
            // Between columns, ENUM, SET and BIT convert by their number.
            Value::Enum { index, .. } if self.kind.is_number() => Value::UInt(index.into()),
            Value::Set { bits, .. } if self.kind.is_number() => Value::UInt(bits),
            Value::Bit { bits, .. } if is_short => Value::UInt(bits),
            value => value,
        };
        match (self.kind, value) {
            (_, Value::Null) => Ok(Value::Null),
            // Fast path: the value is stored unchanged.
            (TypeKind::Int | TypeKind::BigInt, value @ Value::Int(v))
                if !self.unsigned && (self.kind == TypeKind::BigInt || i32::try_from(v).is_ok()) =>
            {
                Ok(value)
            }
            (TypeKind::Decimal, value) => store.decimal(value),
            (TypeKind::Float | TypeKind::Double, value) => store.real(value),
            (TypeKind::Bit, value) => store.bit(value),
            (TypeKind::Year, value) => store.year(value),
            // The error value of another ENUM is copied unchanged. Only a text is looked up among the
            // members.
            (TypeKind::Enum, Value::Enum { index: 0, .. }) => {
                let label = crate::Str { bytes: Vec::new(), collation: self.collation };
                Ok(Value::Enum { index: 0, label })
            }
            (TypeKind::Enum, value) => store.enumeration(value),
            (TypeKind::Set, value) => store.set(value),
            (TypeKind::Uuid, value) => store.fixed(FixedKind::Uuid, value),
            (TypeKind::Inet6, value) => store.fixed(FixedKind::Inet6, value),
            (TypeKind::Inet4, value) => store.fixed(FixedKind::Inet4, value),
            (TypeKind::Date, value) => store.date(value),
            (TypeKind::Time, value) => store.time(value),
            (TypeKind::DateTime, value) => store.datetime(value),
            (TypeKind::Timestamp, value) => store.timestamp(value),
            (kind, value) if kind.is_integer() => store.integer(value),
            (_, value) => store.string(value),
        }
    }
}

impl Store<'_> {
    /// Converts a text, or a binary string with the kind's bytes. Numbers and dates are errors (4078).
    fn fixed(&mut self, kind: FixedKind, value: Value) -> SqlResult<Value> {
        let c = self.ctx;
        let found = match &value {
            Value::Fixed(fixed) if fixed.kind() == kind => return Ok(value),
            Value::Fixed(_) => kind.of_value(&Value::text(value.to_text())),
            Value::Str(_) | Value::Enum { .. } | Value::Set { .. } => kind.of_value(&value),
            other => {
                let (from, to) = (other.kind_name(), kind.name());
                return Err(SqlError::illegal_assignment(from, to, c.database, c.table, c.column));
            }
        };
        if let Some(fixed) = found {
            return Ok(Value::Fixed(fixed));
        }
        let text = value.to_text();
        self.fail(SqlError::incorrect_fixed_for_column(
            kind.name(),
            text.as_bytes(),
            c.database,
            c.table,
            c.column,
            c.row,
        ))?;
        // The caller stores zeros if the column is NOT NULL.
        Ok(Value::Null)
    }

    /// Reports a bad value: returns the error in strict mode, else adds a warning.
    pub(super) fn fail(&mut self, error: SqlError) -> SqlResult<()> {
        if self.ctx.strict {
            return Err(error);
        }
        self.sink.warn(Warning::new(error));
        Ok(())
    }

    /// Adds the note for a harmless loss.
    pub(super) fn note_truncated(&mut self) {
        self.sink.warn(Warning::note(self.truncated_error()));
    }

    pub(super) fn truncated_error(&self) -> SqlError {
        SqlError::data_truncated(self.ctx.column, self.ctx.row)
    }

    /// Reports 1265.
    pub(super) fn truncated(&mut self) -> SqlResult<()> {
        self.fail(self.truncated_error())
    }

    /// Reports 1264.
    pub(super) fn out_of_range(&mut self) -> SqlResult<()> {
        self.fail(SqlError::out_of_range(self.ctx.column, self.ctx.row))
    }

    /// Reports 1406 in strict mode, else the milder error that `mild` makes.
    pub(super) fn too_long(&mut self, mild: fn(&str, u64) -> SqlError) -> SqlResult<()> {
        let text = if self.ctx.strict { SqlError::data_too_long } else { mild };
        self.fail(text(self.ctx.column, self.ctx.row))
    }

    /// Reports 1366: "Incorrect integer value: 'abc' for column `d`.`t`.`c` at row 1".
    pub(super) fn incorrect(&mut self, kind: &str, value: &[u8]) -> SqlResult<()> {
        let c = self.ctx;
        self.fail(SqlError::incorrect_value_for_column(kind, value, c.database, c.table, c.column, c.row))
    }

    /// Converts a TIMESTAMP to local date and time. Returns other values unchanged.
    pub(super) fn local(&self, value: Value) -> Value {
        match value {
            Value::Timestamp(micros) => Value::DateTime(self.ctx.zone.to_local(micros)),
            value => value,
        }
    }

    /// Returns the text of a string, an ENUM or a SET. Other values are returned as `Err`.
    pub(super) fn text_of(value: Value) -> Result<Str, Value> {
        match value {
            Value::Str(s) | Value::Enum { label: s, .. } | Value::Set { label: s, .. } => Ok(s),
            value => Err(value),
        }
    }
}
