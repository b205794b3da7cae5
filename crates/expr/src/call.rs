//! Calls of functions by name.

use cohort_types::{IntervalUnit, SqlError, SqlResult};

use crate::build::call;
use crate::function::Extra;
use crate::registry::lookup;
use crate::{CompareOp, Expr, IntervalOp, SessionEnv, case, compare_exprs, date_arith};

/// Builds a call of the function with this name (in any case). Error 1305 if there is none, 1582 if the
/// number of arguments is wrong.
pub fn build_call(name: &str, args: Vec<Expr>, env: &SessionEnv) -> SqlResult<Expr> {
    let lower = name.to_ascii_lowercase();
    if lower == "add_months"
        && let [_, _] = &args[..]
    {
        let [date, months] = <[Expr; 2]>::try_from(args).expect("two of them");
        return date_arith(date, IntervalOp::Add, months, IntervalUnit::Month, env);
    }
    if lower == "decode_oracle" && args.len() >= 3 {
        return decode(args);
    }
    let Some(function) = lookup(&lower) else {
        if lower == "decode_oracle" {
            return Err(wrong_count(name));
        }
        return Err(SqlError::does_not_exist("FUNCTION", name));
    };
    if args.len() < function.args_min || args.len() > function.args_max {
        return Err(wrong_count(name));
    }
    call(function, args, Extra::None, env)
}

/// Returns whether a function, in any case, is one of the server's own, rather than one that runs statements.
pub fn is_native(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    matches!(&*lower, "add_months" | "decode_oracle") || lookup(&lower).is_some()
}

fn wrong_count(name: &str) -> SqlError {
    SqlError::wrong_param_count(name)
}

/// Builds `DECODE_ORACLE(value, search, result, .. [, otherwise])`: a CASE in which NULL equals NULL.
fn decode(args: Vec<Expr>) -> SqlResult<Expr> {
    let mut args = args.into_iter();
    let value = args.next().expect("the first of three");
    let mut branches = Vec::new();
    let mut otherwise = None;
    while let Some(search) = args.next() {
        match args.next() {
            Some(result) => {
                branches.push((compare_exprs(CompareOp::NullSafeEq, value.clone(), search)?, result));
            }
            None => otherwise = Some(search),
        }
    }
    case(None, branches, otherwise)
}
