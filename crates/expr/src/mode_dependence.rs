//! Dependence of an expression on sql_mode. As in MariaDB a moment that loses digits depends on it, and
//! a difference of numbers without sign, whatever is made of them.

use cohort_types::{ColumnType, TypeKind};

use crate::expr::{CastType, Expr};
use crate::expr_type::{ExprType, TypeClass};

/// Digits of a second that a moment has at most.
const MOMENT_DIGITS: u8 = 6;

/// The mode that decides what a column has of an expression: none, or its name.
pub fn mode_dependence(expr: &Expr, column: &ColumnType) -> Option<&'static str> {
    let is_moment = matches!(column.kind, TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp);
    if is_moment && expr.ty().decimals.min(MOMENT_DIGITS) > column.decimals {
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
