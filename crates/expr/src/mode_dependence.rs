//! Dependence of an expression on sql_mode. As in MariaDB, two operations depend on it, independent of how
//! their result is used: a datetime or time that loses fraction digits, and a difference of unsigned numbers.

use cohort_types::{ColumnType, TypeKind};

use crate::expr::{CastType, Expr};
use crate::expr_type::{ExprType, TypeClass};

/// Maximum number of fraction digits of a datetime or time.
const DATETIME_DIGITS: u8 = 6;

/// Returns the name of the mode on which the value of the expression in this column depends, if any.
pub fn mode_dependence(expr: &Expr, column: &ColumnType) -> Option<&'static str> {
    let is_temporal = matches!(column.kind, TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp);
    if is_temporal && expr.ty().decimals.min(DATETIME_DIGITS) > column.decimals {
        return Some("TIME_ROUND_FRACTIONAL");
    }
    let mut found = None;
    expr.walk(&mut |part| {
        found = found.or_else(|| own_dependence(part));
        found.is_none()
    });
    found
}

fn own_dependence(part: &Expr) -> Option<&'static str> {
    match part {
        Expr::Cast(cast) => match cast.to {
            CastType::Time { decimals } | CastType::DateTime { decimals }
                if cast.operand.ty().decimals > decimals =>
            {
                Some("TIME_ROUND_FRACTIONAL")
            }
            _ => None,
        },
        Expr::Call(call) if call.name() == "-" => {
            let [left, right] = &call.args[..] else { return None };
            let (left, right) = (left.ty(), right.ty());
            let is_exact = |ty: &ExprType| matches!(ty.class(), TypeClass::Int | TypeClass::Decimal);
            let is_unsigned = match (left.class(), right.class()) {
                (TypeClass::Int, TypeClass::Int) => left.unsigned || right.unsigned,
                _ => is_exact(&left) && is_exact(&right) && left.unsigned && right.unsigned,
            };
            is_unsigned.then_some("NO_UNSIGNED_SUBTRACTION")
        }
        _ => None,
    }
}
