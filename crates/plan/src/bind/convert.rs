//! Converts AST enums to those of the expression crate, and literals to constants.

use cohort_expr::{
    AggregateKind, BinaryOp, CastType, CompareOp, Expr, SessionEnv, TrimSide, Truth, VariableScope,
};
use cohort_sql::ast;
use cohort_types::{
    Charset, Collation, Date, DateTime, FixedKind, IntervalUnit, SqlError, SqlMode, SqlResult, Time,
    TypeKind, Value,
};

pub(super) fn is_comparison(op: ast::BinaryOp) -> bool {
    use ast::BinaryOp::*;
    matches!(op, Equal | NullSafeEqual | NotEqual | Less | LessEqual | Greater | GreaterEqual)
}

/// Returns the comparison operator; equality if `op` is not a comparison.
pub(super) fn compare_op(op: ast::BinaryOp) -> CompareOp {
    match binary_op(op) {
        BinaryOp::Compare(op) => op,
        _ => CompareOp::Eq,
    }
}

pub(super) fn binary_op(op: ast::BinaryOp) -> BinaryOp {
    use ast::BinaryOp as A;
    match op {
        A::Or => BinaryOp::Or,
        A::Xor => BinaryOp::Xor,
        A::And => BinaryOp::And,
        A::Equal => BinaryOp::Compare(CompareOp::Eq),
        A::NullSafeEqual => BinaryOp::Compare(CompareOp::NullSafeEq),
        A::NotEqual => BinaryOp::Compare(CompareOp::Ne),
        A::Less => BinaryOp::Compare(CompareOp::Lt),
        A::LessEqual => BinaryOp::Compare(CompareOp::Le),
        A::Greater => BinaryOp::Compare(CompareOp::Gt),
        A::GreaterEqual => BinaryOp::Compare(CompareOp::Ge),
        A::BitOr => BinaryOp::BitOr,
        A::BitAnd => BinaryOp::BitAnd,
        A::BitXor => BinaryOp::BitXor,
        A::ShiftLeft => BinaryOp::ShiftLeft,
        A::ShiftRight => BinaryOp::ShiftRight,
        A::Add => BinaryOp::Add,
        A::Subtract => BinaryOp::Sub,
        A::Multiply => BinaryOp::Mul,
        A::Divide => BinaryOp::Div,
        A::IntDivide => BinaryOp::IntDiv,
        A::Modulo => BinaryOp::Mod,
    }
}

/// Returns `None` for IS NULL.
pub(super) fn truth(test: ast::IsTest) -> Option<Truth> {
    match test {
        ast::IsTest::Null => None,
        ast::IsTest::True => Some(Truth::True),
        ast::IsTest::False => Some(Truth::False),
        ast::IsTest::Unknown => Some(Truth::Unknown),
    }
}

pub(super) fn trim_side(side: ast::TrimSide) -> TrimSide {
    match side {
        ast::TrimSide::Both => TrimSide::Both,
        ast::TrimSide::Leading => TrimSide::Leading,
        ast::TrimSide::Trailing => TrimSide::Trailing,
    }
}

/// Returns the scope of a system variable reference.
pub fn variable_scope(scope: ast::VariableScope) -> VariableScope {
    match scope {
        ast::VariableScope::Unspecified => VariableScope::Default,
        ast::VariableScope::Session => VariableScope::Session,
        ast::VariableScope::Global => VariableScope::Global,
    }
}

pub(super) fn interval_unit(unit: ast::IntervalUnit) -> IntervalUnit {
    use IntervalUnit as E;
    use ast::IntervalUnit as A;
    match unit {
        A::Microsecond => E::Microsecond,
        A::Second => E::Second,
        A::Minute => E::Minute,
        A::Hour => E::Hour,
        A::Day => E::Day,
        A::Week => E::Week,
        A::Month => E::Month,
        A::Quarter => E::Quarter,
        A::Year => E::Year,
        A::SecondMicrosecond => E::SecondMicrosecond,
        A::MinuteMicrosecond => E::MinuteMicrosecond,
        A::MinuteSecond => E::MinuteSecond,
        A::HourMicrosecond => E::HourMicrosecond,
        A::HourSecond => E::HourSecond,
        A::HourMinute => E::HourMinute,
        A::DayMicrosecond => E::DayMicrosecond,
        A::DaySecond => E::DaySecond,
        A::DayMinute => E::DayMinute,
        A::DayHour => E::DayHour,
        A::YearMonth => E::YearMonth,
    }
}

pub(super) fn aggregate_kind(kind: ast::AggregateKind, no_args: bool) -> AggregateKind {
    use ast::AggregateKind as A;
    match kind {
        A::Count if no_args => AggregateKind::CountStar,
        A::Count => AggregateKind::Count,
        A::Sum => AggregateKind::Sum,
        A::Avg => AggregateKind::Avg,
        A::Min => AggregateKind::Min,
        A::Max => AggregateKind::Max,
        A::BitAnd => AggregateKind::BitAnd,
        A::BitOr => AggregateKind::BitOr,
        A::BitXor => AggregateKind::BitXor,
        A::StdDevPop => AggregateKind::StdPop,
        A::StdDevSamp => AggregateKind::StdSamp,
        A::VarPop => AggregateKind::VarPop,
        A::VarSamp => AggregateKind::VarSamp,
        A::GroupConcat => AggregateKind::GroupConcat,
        A::JsonArrayAgg => AggregateKind::JsonArrayagg,
        A::JsonObjectAgg => AggregateKind::JsonObjectagg,
    }
}

/// Returns a character set by name. Error 1115 if it is unknown.
pub fn charset(name: &str) -> SqlResult<Charset> {
    Charset::by_name(name).ok_or_else(|| SqlError::unknown_charset(name))
}

pub(super) fn cast_type(to: &ast::DataType, operand: &ast::Expr, env: &SessionEnv) -> SqlResult<CastType> {
    let kind = match to.kind {
        ast::DeclaredKind::Signed => return Ok(CastType::Signed),
        ast::DeclaredKind::Unsigned => return Ok(CastType::Unsigned),
        ast::DeclaredKind::Column(kind) => kind,
    };
    Ok(match kind {
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int | TypeKind::BigInt => {
            if to.unsigned {
                CastType::Unsigned
            } else {
                CastType::Signed
            }
        }
        TypeKind::Double => CastType::Double { size: double_size(to, operand)? },
        TypeKind::Float => CastType::Float,
        TypeKind::Decimal => decimal_type(to, operand)?,
        TypeKind::Char | TypeKind::VarChar => {
            let set = match &to.charset {
                Some(name) if name.eq_ignore_ascii_case("binary") => {
                    return Ok(CastType::Binary { length: text_length(to, operand)? });
                }
                Some(name) => Some(charset(name)?),
                None => None,
            };
            let own = set.map_or(env.collation_connection, Charset::default_collation);
            let collation = match &to.collation {
                Some(name) => Collation::by_name(name).ok_or_else(|| SqlError::unknown_collation(name))?,
                None => own,
            };
            CastType::Char { length: text_length(to, operand)?, collation }
        }
        TypeKind::Binary | TypeKind::VarBinary => CastType::Binary { length: text_length(to, operand)? },
        TypeKind::Date => CastType::Date,
        TypeKind::Time => CastType::Time { decimals: second_digits(to, operand)? },
        TypeKind::DateTime => CastType::DateTime { decimals: second_digits(to, operand)? },
        TypeKind::Year => CastType::Year,
        TypeKind::Json => CastType::Json,
        TypeKind::Uuid => CastType::Fixed(FixedKind::Uuid),
        TypeKind::Inet6 => CastType::Fixed(FixedKind::Inet6),
        TypeKind::Inet4 => CastType::Fixed(FixedKind::Inet4),
        _ => return Err(SqlError::not_supported("CAST to this type")),
    })
}

/// Returns the operand of a cast as error messages show it.
fn shown(operand: &ast::Expr) -> String {
    match operand {
        ast::Expr::Literal(literal) if matches!(literal.value, Value::Str(_)) => literal.value.to_text(),
        ast::Expr::Column(name) => name.name.clone(),
        other => cohort_sql::print::expr(other),
    }
}

/// Returns the number of fraction digits of a second. Error 1426 if it is too large.
fn second_digits(to: &ast::DataType, operand: &ast::Expr) -> SqlResult<u8> {
    match to.length.unwrap_or(0) {
        digits @ 0..=6 => Ok(digits as u8),
        _ => Err(SqlError::too_big_precision(&shown(operand), 6)),
    }
}

/// Returns the length of a text, or `None` for the maximum. Error 1439 if it is too large.
fn text_length(to: &ast::DataType, operand: &ast::Expr) -> SqlResult<Option<u32>> {
    let Some(length) = to.length else { return Ok(None) };
    let length = u32::try_from(length).map_err(|_| SqlError::display_width(&shown(operand), u32::MAX))?;
    Ok(Some(length).filter(|length| *length < u32::MAX))
}

fn decimal_type(to: &ast::DataType, operand: &ast::Expr) -> SqlResult<CastType> {
    let (precision, decimals) = (to.length.unwrap_or(10), to.decimals.unwrap_or(0));
    if decimals > 38 {
        return Err(SqlError::too_big_scale(&shown(operand), 38));
    }
    if precision > 65 {
        return Err(SqlError::too_big_precision(&shown(operand), 65));
    }
    if decimals > precision {
        return Err(SqlError::scale_above_precision(""));
    }
    let precision = if precision == 0 { 10 } else { precision };
    Ok(CastType::Decimal { precision: precision as u8, decimals: decimals as u8 })
}

/// Returns (m,d) of DOUBLE. Errors 1425, 1426 and 1427.
fn double_size(to: &ast::DataType, operand: &ast::Expr) -> SqlResult<Option<(u8, u8)>> {
    let (Some(length), Some(decimals)) = (to.length, to.decimals) else { return Ok(None) };
    if decimals > 38 {
        return Err(SqlError::too_big_scale(&shown(operand), 38));
    }
    if length > 65 {
        return Err(SqlError::too_big_precision(&shown(operand), 65));
    }
    if decimals > length {
        return Err(SqlError::scale_above_precision(""));
    }
    // With more digits than a DOUBLE can show, the size has no effect.
    Ok((decimals <= 30).then_some((length as u8, decimals as u8)))
}

/// Converts a literal to a constant.
pub(super) fn literal(literal: &ast::Literal, env: &SessionEnv) -> SqlResult<Expr> {
    let mode = SqlMode(env.sql_mode.0);
    let text = || literal.value.as_bytes().unwrap_or_default();
    Ok(match literal.kind {
        ast::LiteralKind::Date => {
            let parsed = Date::parse(text(), mode);
            temporal(parsed.value.filter(|_| parsed.issues.is_good()).map(Value::Date), "DATE", literal)?
        }
        ast::LiteralKind::Time => {
            let parsed = Time::parse(text(), mode);
            let value = parsed.value.filter(|_| parsed.issues.is_good()).map(Value::Time);
            temporal(value, "TIME", literal)?
        }
        ast::LiteralKind::Timestamp => {
            let parsed = DateTime::parse(text(), mode);
            let value = parsed.value.filter(|_| parsed.issues.is_good()).map(Value::DateTime);
            temporal(value, "DATETIME", literal)?
        }
        ast::LiteralKind::Hex | ast::LiteralKind::Bit => Expr::hex_literal(text().to_vec()),
        ast::LiteralKind::HexText => Expr::hex_text(text().to_vec()),
        ast::LiteralKind::Boolean => Expr::boolean(literal.value == Value::Int(1)),
        _ => Expr::constant(literal.value.clone()),
    })
}

fn temporal(value: Option<Value>, kind: &str, literal: &ast::Literal) -> SqlResult<Expr> {
    value.map(Expr::constant).ok_or_else(|| SqlError::wrong_literal(kind, literal.value.to_text()))
}

/// Returns the expression of `SELECT expression`.
pub fn only_item(statement: &ast::Statement) -> Option<&ast::Expr> {
    let ast::Statement::Query(query) = statement else { return None };
    let ast::QueryBody::Select(select) = &query.body else { return None };
    match select.items.as_slice() {
        [ast::SelectItem::Expr { expr, .. }] => Some(expr),
        _ => None,
    }
}
