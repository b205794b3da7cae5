//! Functions on binary log positions.

use std::time::Duration;

use cohort_types::{SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::function::{Function, Nowhere, Unsafe};
use crate::info::system_string;

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("binlog_gtid_pos", 2, 2, type_position, binlog_gtid_pos, Unsafe, Nowhere).volatile(),
    Function::new("master_gtid_wait", 1, 2, type_outcome, master_gtid_wait, Unsafe, Nowhere).volatile(),
    Function::new("master_pos_wait", 2, 4, type_outcome, master_pos_wait, Unsafe, Nowhere).volatile(),
];

fn type_position(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(system_string(env, 1024))
}

fn type_outcome(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::BigInt, 21, 0))
}

/// BINLOG_GTID_POS(file, offset): the GTID position at an offset; NULL if no event starts there.
fn binlog_gtid_pos(a: Args<'_>) -> SqlResult<Value> {
    let file = or_null!(a.text(0));
    let offset = or_null!(a.int(1));
    let name = String::from_utf8_lossy(&file);
    match a.ctx.hooks.gtid_position_at(&name, u64::try_from(offset).unwrap_or(0))? {
        Some(position) => a.string(position.as_bytes()),
        None => Ok(Value::Null),
    }
}

/// MASTER_GTID_WAIT(position[, seconds]): 0 once this replica has applied the position, -1 after a timeout.
fn master_gtid_wait(a: Args<'_>) -> SqlResult<Value> {
    let position = or_null!(a.text(0));
    let timeout = match a.count() {
        2 => a.real(1)?.filter(|seconds| *seconds >= 0.0).and_then(|s| Duration::try_from_secs_f64(s).ok()),
        _ => None,
    };
    let is_reached = a.ctx.hooks.wait_for_gtids(&String::from_utf8_lossy(&position), timeout)?;
    Ok(Value::Int(if is_reached { 0 } else { -1 }))
}

/// MASTER_POS_WAIT(file, offset[, seconds[, connection]]): number of transactions this replica applied until
/// it reached the position; -1 after a timeout, NULL if no applier runs.
fn master_pos_wait(a: Args<'_>) -> SqlResult<Value> {
    let file = or_null!(a.text(0));
    // As in MariaDB, a NULL offset is 0.
    let offset = a.int(1)?.unwrap_or(0);
    let file = String::from_utf8_lossy(&file).into_owned();
    let timeout = match a.count() {
        0..=2 => None,
        _ => a.real(2)?.filter(|seconds| *seconds > 0.0).and_then(|s| Duration::try_from_secs_f64(s).ok()),
    };
    let connection = match a.count() {
        4 => String::from_utf8_lossy(&or_null!(a.text(3))).into_owned(),
        _ => String::new(),
    };
    let position = u64::try_from(offset).unwrap_or(0);
    let waited = a.ctx.hooks.wait_for_file_position(&file, position, timeout, &connection)?;
    Ok(waited.map_or(Value::Null, Value::Int))
}
