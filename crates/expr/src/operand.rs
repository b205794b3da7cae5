//! Conversions of operands for a comparison: a literal compared with a YEAR column becomes a year, a year
//! compared with a date or time becomes a date or time, and a JSON string compared with a text loses its
//! quotes.

use cohort_types::{ColumnType, Date, FixedOffset, SqlMode, SqlResult, StoreContext, Time, TypeKind, Value};

use crate::args::Args;
use crate::context::SessionEnv;
use crate::convert::hex_number;
use crate::expr::{Call, Cast, CastType, Expr};
use crate::expr_type::{ExprType, Flavor, TypeClass};
use crate::function::{Anywhere, Extra, Function, Rows};
use crate::json::{Json, unescape};
use crate::mixing::compared_pair;

static YEAR_OF: Function = Function::new("year of", 1, 1, type_kept, year_of, Rows, Anywhere);
static DATE_OF_YEAR: Function = Function::new("date of year", 1, 1, type_date, date_of_year, Rows, Anywhere);
static TIME_OF_YEAR: Function = Function::new("time of year", 1, 1, type_time, time_of_year, Rows, Anywhere);
static JSON_TEXT: Function = Function::new("json text", 1, 1, type_kept, json_text, Rows, Anywhere);

fn type_kept(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(args[0].ty())
}

fn type_date(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::date())
}

fn type_time(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::time(0))
}

fn wrapped(function: &'static Function, ty: ExprType, operand: Expr) -> Expr {
    Expr::Call(Box::new(Call { function, args: vec![operand], extra: Extra::None, ty }))
}

impl Expr {
    /// Returns the expression for an assignment to a column: a hexadecimal literal is a number in numeric
    /// columns.
    pub fn for_column(self, kind: TypeKind) -> Expr {
        match &self {
            Expr::Const(node) if self.is_hex_literal() && takes_hex_as_number(kind) => {
                Expr::constant(hex_number(&node.value))
            }
            _ => self,
        }
    }

    /// Returns whether the expression is a hexadecimal or binary literal, which is a number in numeric
    /// context.
    pub fn is_hex_literal(&self) -> bool {
        matches!(self, Expr::Const(node) if node.ty.flavor == Flavor::Hex)
    }
}

/// Returns whether a column or variable of this type receives a hexadecimal literal as a number.
pub fn takes_hex_as_number(kind: TypeKind) -> bool {
    use TypeKind::{BigInt, Bit, Decimal, Double, Float, Int, MediumInt, SmallInt, TinyInt, Year};
    matches!(kind, TinyInt | SmallInt | MediumInt | Int | BigInt | Decimal | Float | Double | Year | Bit)
}

/// Converts two scalars for their comparison.
pub(crate) fn prepare_pair(left: Expr, right: Expr) -> (Expr, Expr) {
    let mut left_ready = prepare(left, &right);
    let mut right = prepare(right, &left_ready);
    compared_pair(&mut left_ready, &mut right);
    json_pair(left_ready, right)
}

/// Converts a scalar for its comparison with another one.
pub(crate) fn prepare(operand: Expr, other: &Expr) -> Expr {
    let (own, its) = (operand.ty_cow().into_owned(), other.ty_cow());
    let is_number = matches!(its.class(), TypeClass::Int | TypeClass::Decimal | TypeClass::Real);
    match &operand {
        Expr::Const(node) if own.flavor == Flavor::Hex && is_number && !its.null_literal => {
            return Expr::constant(hex_number(&node.value));
        }
        Expr::Const(_) | Expr::Param(_) if is_year_column(other) && own.kind != TypeKind::Year => {
            return wrapped(&YEAR_OF, its.clone().into_owned(), operand);
        }
        _ => {}
    }
    if let (Some(kind), TypeClass::String, false) = (its.fixed_kind(), own.class(), own.null_literal) {
        let ty = ExprType::fixed(kind).with_nullable(true);
        return Expr::Cast(Box::new(Cast { operand, to: CastType::Fixed(kind), ty }));
    }
    let other_is_known = matches!(other, Expr::Const(_) | Expr::Param(_));
    if own.kind == TypeKind::Year && its.is_temporal() && !(is_year_column(&operand) && other_is_known) {
        return match its.class() {
            TypeClass::Time => wrapped(&TIME_OF_YEAR, ExprType::time(0), operand),
            _ => wrapped(&DATE_OF_YEAR, ExprType::date(), operand),
        };
    }
    operand
}

fn is_year_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(column) if column.ty.kind == TypeKind::Year)
}

/// Converts JSON_EXTRACT that is compared with a text: a JSON string becomes its text.
fn json_pair(left: Expr, right: Expr) -> (Expr, Expr) {
    let is_text = |e: &Expr| e.ty_cow().class() == TypeClass::String && !e.ty_cow().null_literal;
    if is_extract(&left) && is_text(&right) {
        let ty = left.ty();
        return (wrapped(&JSON_TEXT, ty, left), right);
    }
    if is_extract(&right) && is_text(&left) {
        let ty = right.ty();
        return (left, wrapped(&JSON_TEXT, ty, right));
    }
    (left, right)
}

fn is_extract(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if call.name() == "json_extract")
}

/// Returns the value as a YEAR column would store it, or unchanged if the column would refuse it.
fn year_of(a: Args<'_>) -> SqlResult<Value> {
    let value = a.value(0)?.into_owned();
    match &value {
        Value::Null => return Ok(value),
        Value::Date(date) => return Ok(Value::UInt(date.year.into())),
        Value::DateTime(datetime) => return Ok(Value::UInt(datetime.date.year.into())),
        _ => {}
    }
    let context = StoreContext {
        sql_mode: SqlMode::NONE,
        strict: true,
        database: "",
        table: "",
        column: "",
        row: 1,
        zone: &FixedOffset::UTC,
        now_micros: 0,
    };
    let year = ColumnType::temporal(TypeKind::Year, 0);
    Ok(year.store(value.clone(), &context, &mut cohort_types::NoWarnings).unwrap_or(value))
}

/// Returns the year as a date with zero month and day.
fn date_of_year(a: Args<'_>) -> SqlResult<Value> {
    Ok(match a.value(0)?.as_ref() {
        Value::Null => Value::Null,
        Value::UInt(year) => Value::Date(Date::new(*year as u16, 0, 0)),
        Value::Int(year) => Value::Date(Date::new(*year as u16, 0, 0)),
        other => other.clone(),
    })
}

/// Returns the time of a year, which is midnight.
fn time_of_year(a: Args<'_>) -> SqlResult<Value> {
    Ok(match a.value(0)?.is_null() {
        true => Value::Null,
        false => Value::Time(Time::default()),
    })
}

fn json_text(a: Args<'_>) -> SqlResult<Value> {
    let value = a.value(0)?.into_owned();
    let Value::Str(text) = &value else { return Ok(value) };
    match Json::parse(&text.bytes) {
        Ok(Json::String(raw)) => a.string(unescape(&raw)),
        _ => Ok(value),
    }
}
