//! Functions about the session, variables, user locks, sequences, SLEEP, unique identifiers.

use std::time::Duration;

use cohort_types::{Collation, Interrupt, SqlError, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::{SequenceName, SessionEnv};
use crate::convert;
use crate::expr::Expr;
use crate::expr_type::{Coercibility, Derived, ExprType};
use crate::function::{Extra, Function, NotGenerated, Nowhere, OnlyDefault, Rows, Unsafe};
use crate::typing::{ascii_string, string_of, width};

pub(crate) static USER_VARIABLE: Function =
    Function::new("@", 0, 0, type_text, user_variable, Rows, NotGenerated).volatile();
pub(crate) static ASSIGN: Function =
    Function::new(":=", 1, 1, type_text, assign, Rows, NotGenerated).volatile();
pub(crate) static SYSTEM_VARIABLE: Function =
    Function::new("@@", 0, 0, type_text, system_variable, Rows, NotGenerated).of_statement();

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("version", 0, 0, type_version, version, Unsafe, NotGenerated).of_statement(),
    Function::new("database", 0, 0, type_name, database, Rows, NotGenerated).of_statement(),
    Function::new("schema", 0, 0, type_name, database, Rows, NotGenerated).of_statement(),
    Function::new("user", 0, 0, type_user, user, Unsafe, NotGenerated).of_statement(),
    Function::new("session_user", 0, 0, type_user, user, Unsafe, NotGenerated).of_statement(),
    Function::new("system_user", 0, 0, type_user, user, Unsafe, NotGenerated).of_statement(),
    Function::new("current_user", 0, 0, type_user, current_user, Unsafe, NotGenerated).of_statement(),
    Function::new("current_role", 0, 0, type_role, current_role, Unsafe, NotGenerated).of_statement(),
    Function::new("connection_id", 0, 0, type_connection_id, connection_id, Rows, NotGenerated)
        .of_statement(),
    Function::new("last_insert_id", 0, 1, type_last_insert_id, last_insert_id, Rows, Nowhere).volatile(),
    Function::new("row_count", 0, 0, type_count, row_count, Unsafe, Nowhere).of_statement(),
    Function::new("found_rows", 0, 0, type_count, found_rows, Unsafe, Nowhere).of_statement(),
    Function::new("benchmark", 2, 2, type_done, benchmark, Rows, Nowhere).volatile(),
    Function::new("sleep", 1, 1, type_done, sleep, Unsafe, Nowhere).volatile(),
    Function::new("uuid", 0, 0, type_uuid, uuid, Unsafe, NotGenerated).volatile(),
    Function::new("uuid_short", 0, 0, type_uuid_short, uuid_short, Unsafe, NotGenerated).volatile(),
    Function::new("sys_guid", 0, 0, type_guid, sys_guid, Unsafe, NotGenerated).volatile(),
    Function::new("random_bytes", 1, 1, type_random_bytes, random_bytes, Unsafe, OnlyDefault).volatile(),
    Function::new("get_lock", 2, 2, type_small, get_lock, Unsafe, Nowhere).volatile(),
    Function::new("release_lock", 1, 1, type_small, release_lock, Unsafe, Nowhere).volatile(),
    Function::new("release_all_locks", 0, 0, type_all_locks, release_all_locks, Unsafe, Nowhere).volatile(),
    Function::new("is_free_lock", 1, 1, type_small, is_free_lock, Unsafe, Nowhere).volatile(),
    Function::new("is_used_lock", 1, 1, type_holder, is_used_lock, Unsafe, Nowhere).volatile(),
    Function::new("nextval", 3, 3, type_sequence, next_value, Rows, NotGenerated).volatile(),
    Function::new("lastval", 3, 3, type_sequence, last_value, Rows, NotGenerated).volatile(),
    Function::new("setval", 4, 6, type_sequence, set_value, Rows, NotGenerated).volatile(),
    Function::new("name_const", 2, 2, type_name_const, name_const, Rows, Nowhere).of_statement(),
];

impl Expr {
    /// Returns whether the expression is `@name`.
    pub fn is_user_variable(&self) -> bool {
        matches!(self, Expr::Call(call) if std::ptr::eq(call.function, &USER_VARIABLE))
    }
}

/// Returns the type of a string made by the server: utf8mb3, like MariaDB's metadata.
pub(crate) fn system_string(_: &SessionEnv, length: u64) -> ExprType {
    let derived = Derived {
        collation: Collation::UTF8MB3_GENERAL_CI,
        coercibility: Coercibility::SystemConstant,
        ascii: true,
    };
    string_of(derived, length)
}

fn type_text(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let derived =
        Derived { collation: env.collation_connection, coercibility: Coercibility::Implicit, ascii: false };
    Ok(string_of(derived, 16 << 20))
}

fn type_version(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(system_string(env, env.version.len() as u64).with_nullable(false))
}

fn type_name(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(system_string(env, 64))
}

fn type_user(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(system_string(env, 384))
}

fn type_role(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(system_string(env, 128))
}

fn type_all_locks(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 11, 0).with_unsigned(true).with_nullable(false))
}

fn type_sequence(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::bigint(20))
}

fn type_holder(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 10, 0))
}

fn type_connection_id(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 10, 0).with_unsigned(true).with_nullable(false))
}

fn type_last_insert_id(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let (length, nullable) = match args.first() {
        Some(arg) => (u32::try_from(width(arg)).unwrap_or(u32::MAX), arg.ty_cow().nullable),
        None => (21, false),
    };
    Ok(ExprType::bigint(length).with_unsigned(true).with_nullable(nullable))
}

fn type_count(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::bigint(21).with_nullable(false))
}

fn type_small(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::boolean())
}

fn type_done(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::boolean().with_nullable(false))
}

fn type_uuid(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType { kind: TypeKind::Char, ..ascii_string(env, 36) })
}

fn type_uuid_short(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::bigint(21).with_unsigned(true).with_nullable(false))
}

fn type_name_const(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let is_literal = |arg: &Expr| match arg {
        Expr::Const(_) => true,
        Expr::Call(call) => matches!((call.name(), call.args()), ("neg", [Expr::Const(_)])),
        Expr::Cast(cast) => {
            cast.ty.coercibility == Coercibility::Explicit && matches!(cast.operand, Expr::Const(_))
        }
        _ => false,
    };
    if !matches!(args[0], Expr::Const(_)) || !is_literal(&args[1]) {
        return Err(SqlError::wrong_arguments("NAME_CONST"));
    }
    Ok(implicit(args[1].ty()))
}

/// Gives a type the collation strength of a column.
pub(crate) fn implicit(ty: ExprType) -> ExprType {
    match ty.coercibility {
        Coercibility::SystemConstant | Coercibility::Coercible | Coercibility::Explicit => {
            ExprType { coercibility: Coercibility::Implicit, ..ty }
        }
        _ => ty,
    }
}

fn variable_name<'a>(a: &Args<'a>) -> &'a str {
    match &a.call.extra {
        Extra::Name(name) | Extra::Variable(_, name) => name,
        _ => "",
    }
}

fn user_variable(a: Args<'_>) -> SqlResult<Value> {
    Ok(a.ctx.hooks.user_variable(variable_name(&a)).unwrap_or(Value::Null))
}

/// Assigns a user variable: numbers stay numbers, other values are stored as text.
fn assign(a: Args<'_>) -> SqlResult<Value> {
    let value = a.expr(0).eval(a.row, a.ctx)?;
    let kept = match value.as_ref() {
        Value::Null
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Str(_) => value.into_owned(),
        Value::Float(v) => Value::Double(f64::from(*v)),
        Value::Bit { bits, .. } => Value::UInt(*bits),
        other => {
            let decimals = a.expr(0).ty_cow().decimals;
            let bytes =
                convert::text_of(other, decimals).map(std::borrow::Cow::into_owned).unwrap_or_default();
            crate::convert::string_value(bytes, a.ctx.env.collation_connection)
        }
    };
    a.ctx.hooks.set_user_variable(variable_name(&a), kept.clone())?;
    Ok(kept)
}

fn system_variable(a: Args<'_>) -> SqlResult<Value> {
    match &a.call.extra {
        Extra::Variable(scope, name) => match a.ctx.hooks.system_variable(*scope, name)? {
            Value::Str(text) => a.string(text.bytes),
            other => Ok(other),
        },
        _ => Ok(Value::Null),
    }
}

fn version(a: Args<'_>) -> SqlResult<Value> {
    a.string(a.ctx.env.version.as_bytes())
}

fn database(a: Args<'_>) -> SqlResult<Value> {
    match &a.ctx.env.database {
        None => Ok(Value::Null),
        Some(name) => a.string(name.as_bytes()),
    }
}

fn user(a: Args<'_>) -> SqlResult<Value> {
    a.string(a.ctx.env.user.as_bytes())
}

fn current_user(a: Args<'_>) -> SqlResult<Value> {
    a.string(a.ctx.env.current_user.as_bytes())
}

fn current_role(a: Args<'_>) -> SqlResult<Value> {
    match &a.ctx.env.current_role {
        None => Ok(Value::Null),
        Some(role) => a.string(role.as_bytes()),
    }
}

fn connection_id(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::UInt(a.ctx.env.connection_id))
}

/// `LAST_INSERT_ID([n])`: with an argument it also sets the value.
fn last_insert_id(a: Args<'_>) -> SqlResult<Value> {
    if a.count() == 0 {
        let set = a.ctx.hooks.last_insert_id_set();
        return Ok(Value::UInt(set.unwrap_or(a.ctx.env.last_insert_id)));
    }
    let id = a.integer(0)?.map(convert::bits_of);
    a.ctx.hooks.set_last_insert_id(id.unwrap_or(0));
    Ok(id.map_or(Value::Null, Value::UInt))
}

fn row_count(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Int(a.ctx.env.row_count))
}

fn found_rows(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Int(a.ctx.env.found_rows as i64))
}

fn benchmark(a: Args<'_>) -> SqlResult<Value> {
    let times = or_null!(a.int(0));
    if times < 0 {
        let text = format!("Incorrect count value: '{times}' for function benchmark");
        a.ctx.warn(cohort_types::ErrorCode::WrongValueForType, text)?;
        return Ok(Value::Null);
    }
    for _ in 0..times.max(0) {
        a.ctx.step()?;
        a.value(1)?;
    }
    Ok(Value::Int(0))
}

fn sleep(a: Args<'_>) -> SqlResult<Value> {
    let seconds = a.real(0)?.filter(|s| *s >= 0.0);
    let Some(duration) = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()) else {
        a.ctx.warn(cohort_types::ErrorCode::WrongArguments, "Incorrect arguments to sleep")?;
        return Ok(Value::Int(0));
    };
    a.ctx.hooks.sleep(duration)?;
    Ok(Value::Int(0))
}

/// 100 ns intervals from 1582-10-15 to 1970-01-01.
const UUID_EPOCH: u64 = 0x01B2_1DD2_1381_4000;

fn type_guid(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType { kind: TypeKind::Char, ..ascii_string(env, 32) })
}

fn sys_guid(a: Args<'_>) -> SqlResult<Value> {
    let bits = u128::from(a.ctx.hooks.random()) << 64 | u128::from(a.ctx.hooks.random());
    a.string(format!("{bits:032X}"))
}

fn type_random_bytes(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(crate::typing::binary_string(1024))
}

/// RANDOM_BYTES(1 to 1024); NULL for other lengths.
fn random_bytes(a: Args<'_>) -> SqlResult<Value> {
    let length = or_null!(a.int(0));
    if !(1..=1024).contains(&length) {
        return Ok(if length == 0 { a.string(Vec::new())? } else { Value::Null });
    }
    let mut bytes = Vec::with_capacity(length as usize + 8);
    while bytes.len() < length as usize {
        bytes.extend_from_slice(&a.ctx.hooks.random().to_be_bytes());
    }
    bytes.truncate(length as usize);
    a.string(bytes)
}

/// Returns a UUID of version 1. The node is random with the multicast bit set, as for a host without a
/// network card.
fn uuid(a: Args<'_>) -> SqlResult<Value> {
    let time = UUID_EPOCH + a.ctx.hooks.clock_micros() as u64 * 10;
    let random = a.ctx.hooks.random();
    let node = random & 0xFFFF_FFFF_FFFF | 0x0100_0000_0000;
    let sequence = (random >> 48) & 0x3FFF | 0x8000;
    let text = format!(
        "{:08x}-{:04x}-{:04x}-{sequence:04x}-{node:012x}",
        time & 0xFFFF_FFFF,
        time >> 32 & 0xFFFF,
        time >> 48 & 0x0FFF | 0x1000,
    );
    a.string(text)
}

fn uuid_short(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::UInt(a.ctx.hooks.next_short_uuid()))
}

/// Returns the name of a user lock in lower case, or `None` if it is NULL or empty.
fn lock_name(a: &Args<'_>) -> SqlResult<Option<String>> {
    let name = a.text(0)?.map(|t| String::from_utf8_lossy(&t).to_lowercase());
    Ok(name.filter(|name| !name.is_empty()))
}

/// Maximum timeout: a year.
const LOCK_SECONDS_MAX: f64 = 31_536_000.0;

fn get_lock(a: Args<'_>) -> SqlResult<Value> {
    let seconds = a.real(1)?;
    let name = or_null!(lock_name(&a));
    match seconds {
        Some(seconds) if seconds >= 0.0 => {
            let timeout = Duration::from_secs_f64(seconds.min(LOCK_SECONDS_MAX));
            a.ctx.hooks.get_lock(&name, timeout).map(Value::bool)
        }
        _ => {
            let shown = seconds.map_or("NULL".to_owned(), |seconds| seconds.trunc().to_string());
            let text = format!("Incorrect timeout value: '{shown}' for function get_lock");
            a.ctx.warn(cohort_types::ErrorCode::WrongValueForType, text)?;
            Ok(Value::Null)
        }
    }
}

fn release_lock(a: Args<'_>) -> SqlResult<Value> {
    let name = or_null!(lock_name(&a));
    Ok(a.ctx.hooks.release_lock(&name).map_or(Value::Null, Value::bool))
}

fn release_all_locks(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::UInt(a.ctx.hooks.release_all_locks()))
}

fn is_free_lock(a: Args<'_>) -> SqlResult<Value> {
    let name = or_null!(lock_name(&a));
    Ok(Value::bool(a.ctx.hooks.lock_holder(&name).is_none()))
}

fn is_used_lock(a: Args<'_>) -> SqlResult<Value> {
    let name = or_null!(lock_name(&a));
    Ok(a.ctx.hooks.lock_holder(&name).map_or(Value::Null, |id| Value::Int(id as i64)))
}

/// Calls `work` with the sequence of the first three arguments: schema, name, and whether temporary sequences
/// are ignored.
fn with_sequence<T>(a: &Args<'_>, work: impl FnOnce(SequenceName<'_>) -> SqlResult<T>) -> SqlResult<T> {
    let text = |n: usize| -> SqlResult<String> {
        Ok(a.text(n)?.map_or_else(String::new, |t| String::from_utf8_lossy(&t).into_owned()))
    };
    let (schema, name) = (text(0)?, text(1)?);
    let base_only = a.int(2)?.is_some_and(|flag| flag != 0);
    work(SequenceName { schema: &schema, name: &name, base_only })
}

fn next_value(a: Args<'_>) -> SqlResult<Value> {
    with_sequence(&a, |name| a.ctx.hooks.next_value(name).map(Value::Int))
}

fn last_value(a: Args<'_>) -> SqlResult<Value> {
    with_sequence(&a, |name| Ok(a.ctx.hooks.last_value(name)?.map_or(Value::Null, Value::Int)))
}

/// SETVAL(name, value, is_used, round).
fn set_value(a: Args<'_>) -> SqlResult<Value> {
    let value = or_null!(a.int(3));
    let is_used = if a.count() > 4 { or_null!(a.int(4)) != 0 } else { true };
    let round = if a.count() > 5 { or_null!(a.int(5)) } else { 0 };
    let is_set = with_sequence(&a, |name| a.ctx.hooks.set_sequence(name, value, is_used, round))?;
    Ok(if is_set { Value::Int(value) } else { Value::Null })
}

/// NAME_CONST(name, value): returns the value. The name is that of the result column.
fn name_const(a: Args<'_>) -> SqlResult<Value> {
    Ok(a.value(1)?.into_owned())
}
