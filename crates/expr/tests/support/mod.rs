//! A binder for expressions without tables, and a session with a fixed clock.
#![allow(dead_code)] // Each test file uses its part.

pub mod generate;
pub mod mariadb;
pub mod world;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

use cohort_expr::*;
use cohort_sql::ast::{self, DeclaredKind, LiteralKind};
use cohort_sql::{ParseOptions, parse};
use cohort_types::{
    Collation, ColumnType, DateTime, Decimal, ErrorCode, Level, SqlError, SqlMode, SqlResult, Str, TypeKind,
    Value,
};

/// The time that `record.sh` sets.
pub const NOW_MICROS: i64 = 1_700_000_000_123_456;

/// The session of the tests.
#[derive(Default)]
pub struct TestSession {
    /// Whether the statement was killed.
    pub killed: Cell<bool>,
    variables: RefCell<HashMap<String, Value>>,
}

impl SessionHooks for TestSession {
    fn user_variable(&self, name: &str) -> Option<Value> {
        self.variables.borrow().get(name).cloned()
    }

    fn set_user_variable(&self, name: &str, value: Value) -> cohort_types::SqlResult<()> {
        self.variables.borrow_mut().insert(name.to_string(), value);
        Ok(())
    }

    fn system_variable(&self, _: VariableScope, name: &str) -> SqlResult<Value> {
        Err(SqlError::new(ErrorCode::UnknownSystemVariable, format!("Unknown system variable '{name}'")))
    }

    fn set_last_insert_id(&self, _: u64) {}

    fn last_insert_id_set(&self) -> Option<u64> {
        None
    }

    fn clock_micros(&self) -> i64 {
        NOW_MICROS
    }

    fn random(&self) -> u64 {
        42
    }

    fn next_short_uuid(&self) -> u64 {
        42
    }

    fn check_interrupt(&self) -> SqlResult<()> {
        if self.killed.get() { Err(SqlError::interrupted()) } else { Ok(()) }
    }

    fn sleep(&self, _: Duration) -> SqlResult<()> {
        Ok(())
    }

    fn get_lock(&self, _: &str, _: Duration) -> SqlResult<bool> {
        Ok(true)
    }

    fn release_lock(&self, _: &str) -> Option<bool> {
        None
    }

    fn release_all_locks(&self) -> u64 {
        0
    }

    fn lock_holder(&self, _: &str) -> Option<u64> {
        None
    }
}

/// Returns the settings with which the answers were recorded.
pub fn session_env() -> SessionEnv {
    let mut env = SessionEnv::new(NOW_MICROS);
    env.user = "root@localhost".to_string();
    env.current_user = "root@localhost".to_string();
    env.row_count = 0;
    env.connection_id = 1;
    env.version = "10.11.19-MariaDB-0+deb12u1".to_string();
    env
}

/// Binds the expression in a text.
pub fn bind(text: &str, env: &SessionEnv) -> SqlResult<Expr> {
    let parsed = parse(format!("DO {text}").as_bytes(), &ParseOptions::default())?;
    match parsed.statement {
        ast::Statement::Do(mut items) if items.len() == 1 => lower(items.remove(0), env),
        _ => Err(SqlError::new(ErrorCode::NotSupportedYet, "not one expression")),
    }
}

/// Binds the aggregate in a text.
pub fn bind_aggregate(text: &str, env: &SessionEnv) -> SqlResult<Option<Aggregate>> {
    let parsed = parse(format!("DO {text}").as_bytes(), &ParseOptions::default())?;
    let ast::Statement::Do(mut items) = parsed.statement else { return Ok(None) };
    let ast::Expr::Aggregate(node) = items.remove(0) else { return Ok(None) };
    use ast::AggregateKind as A;
    let kind = match node.kind {
        A::Count if node.args.is_empty() => AggregateKind::CountStar,
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
    };
    let quantifier = if node.distinct { Quantifier::Distinct } else { Quantifier::All };
    let order: SqlResult<Vec<OrderKey>> = node
        .order_by
        .into_iter()
        .map(|item| Ok(OrderKey { expr: lower(item.expr, env)?, descending: item.descending }))
        .collect();
    let options = AggregateOptions { quantifier, order: order?, separator: node.separator, limit: None };
    Aggregate::new(kind, all(node.args, env)?, options, env).map(Some)
}

#[allow(clippy::boxed_local)] // The parser hands boxes out.
fn boxed(expr: Box<ast::Expr>, env: &SessionEnv) -> SqlResult<Expr> {
    lower(*expr, env)
}

fn all(list: Vec<ast::Expr>, env: &SessionEnv) -> SqlResult<Vec<Expr>> {
    list.into_iter().map(|e| lower(e, env)).collect()
}

fn lower(expr: ast::Expr, env: &SessionEnv) -> SqlResult<Expr> {
    match expr {
        ast::Expr::Literal(literal) => lower_literal(literal, env),
        ast::Expr::UserVariable(name) => Ok(user_variable(&name, None, env)),
        ast::Expr::Assign { name, value } => user_variable_assign(&name, boxed(value, env)?, env),
        ast::Expr::Unary { op, expr } => {
            let op = match op {
                ast::UnaryOp::Negate => UnaryOp::Neg,
                ast::UnaryOp::Plus => UnaryOp::Plus,
                ast::UnaryOp::Not => UnaryOp::Not,
                ast::UnaryOp::BitNot => UnaryOp::BitNot,
            };
            build_unary(op, boxed(expr, env)?, env)
        }
        ast::Expr::Binary { op, left, right } => {
            build_binary(binary_op(op), boxed(left, env)?, boxed(right, env)?, env)
        }
        ast::Expr::Is { expr, negated, test } => {
            let operand = boxed(expr, env)?;
            Ok(match test {
                ast::IsTest::Null => is_null(operand, negated),
                ast::IsTest::True => is_truth(operand, Truth::True, negated),
                ast::IsTest::False => is_truth(operand, Truth::False, negated),
                ast::IsTest::Unknown => is_truth(operand, Truth::Unknown, negated),
            })
        }
        ast::Expr::Between { expr, negated, low, high } => {
            between(boxed(expr, env)?, boxed(low, env)?, boxed(high, env)?, negated)
        }
        ast::Expr::InList { expr, negated, list } => in_list(boxed(expr, env)?, all(list, env)?, negated),
        ast::Expr::Like { expr, negated, pattern, escape } => {
            let escape = match escape.map(|e| boxed(e, env)).transpose()? {
                Some(Expr::Const(c)) => Some(c.value.to_text()),
                _ => None,
            };
            let escape = escape.as_deref().map_or(LikeEscape::Usual, LikeEscape::Text);
            like(boxed(expr, env)?, boxed(pattern, env)?, escape, negated, env)
        }
        ast::Expr::Regexp { expr, negated, pattern } => {
            regexp(boxed(expr, env)?, boxed(pattern, env)?, negated, env)
        }
        ast::Expr::Case { operand, branches, otherwise } => {
            let branches: SqlResult<Vec<_>> =
                branches.into_iter().map(|(w, t)| Ok((lower(w, env)?, lower(t, env)?))).collect();
            let operand = operand.map(|e| boxed(e, env)).transpose()?;
            case(operand, branches?, otherwise.map(|e| boxed(e, env)).transpose()?)
        }
        other => lower_special(other, env),
    }
}

fn lower_special(expr: ast::Expr, env: &SessionEnv) -> SqlResult<Expr> {
    match expr {
        ast::Expr::Cast { expr, to } => cast(boxed(expr, env)?, cast_type(&to, env)?, env),
        ast::Expr::ConvertUsing { expr, charset } => {
            let to = CastType::Char { length: None, collation: charset_collation(&charset)? };
            cast(boxed(expr, env)?, to, env)
        }
        ast::Expr::Collate { expr, collation } => {
            let collation = Collation::by_name(&collation)
                .ok_or_else(|| SqlError::new(ErrorCode::UnknownCollation, "Unknown collation"))?;
            collate(boxed(expr, env)?, collation, env)
        }
        ast::Expr::DateArith { expr, subtract, amount, unit } => {
            let op = if subtract { IntervalOp::Sub } else { IntervalOp::Add };
            date_arith(boxed(expr, env)?, op, boxed(amount, env)?, unit, env)
        }
        ast::Expr::Extract { unit, expr } => extract(unit, boxed(expr, env)?, env),
        ast::Expr::TimestampDiff { unit, from, to } => {
            timestamp_diff(unit, boxed(from, env)?, boxed(to, env)?, env)
        }
        ast::Expr::Trim { side, what, expr } => {
            let side = match side {
                ast::TrimSide::Both => TrimSide::Both,
                ast::TrimSide::Leading => TrimSide::Leading,
                ast::TrimSide::Trailing => TrimSide::Trailing,
            };
            trim(side, what.map(|e| boxed(e, env)).transpose()?, boxed(expr, env)?, env)
        }
        ast::Expr::CharFunction { args, charset } => {
            let collation = charset.map(|c| charset_collation(&c)).transpose()?;
            char_using(all(args, env)?, collation, env)
        }
        ast::Expr::Function { name, args } => build_call(&name, all(args, env)?, env),
        ast::Expr::Column(name) => column(&name.name),
        ast::Expr::Row(items) => Ok(row(all(items, env)?)),
        ast::Expr::Match { .. } => {
            Err(SqlError::new(ErrorCode::NotSupportedYet, "not one expression: a table's"))
        }
        other => Err(SqlError::new(ErrorCode::NotSupportedYet, format!("{other:?}"))),
    }
}

/// Returns a column of table g, on which aggregates are recorded, or of table h.
fn column(name: &str) -> SqlResult<Expr> {
    let text = Collation::UTF8MB4_GENERAL_CI;
    let members = ["z", "a", "m"].map(str::to_string).to_vec();
    let (ordinal, ty) = match name {
        "i" => (0, ColumnType::int(TypeKind::Int, None, false)),
        "u" => (1, ColumnType::int(TypeKind::BigInt, None, true)),
        "d" => (2, ColumnType::decimal(6, 2)),
        "f" => (3, ColumnType::real(TypeKind::Double, None)),
        "s" => (4, ColumnType::string(TypeKind::VarChar, 10, text)),
        "t" => (5, ColumnType::temporal(TypeKind::DateTime, 3)),
        "e" => (6, ColumnType::members(TypeKind::Enum, members, text)),
        other => {
            let unknown = || SqlError::new(ErrorCode::BadField, format!("Unknown column '{other}'"));
            return world::column(other).ok_or_else(unknown);
        }
    };
    Ok(Expr::column(ordinal, ExprType::of_column(&ty, true), format!("`t`.`g`.`{name}`")))
}

fn charset_collation(name: &str) -> SqlResult<Collation> {
    let charset = cohort_types::Charset::by_name(name)
        .ok_or_else(|| SqlError::new(ErrorCode::UnknownCharacterSet, "Unknown character set"))?;
    Ok(charset.default_collation())
}

fn lower_literal(literal: ast::Literal, env: &SessionEnv) -> SqlResult<Expr> {
    let temporal = |to: CastType, value: Value| -> SqlResult<Expr> {
        let hooks = TestSession::default();
        let ctx = EvalContext::new(env, &hooks, &[]);
        let made = cast(Expr::constant(value), to, env)?;
        let value = made.eval(&[], &ctx)?.into_owned();
        Ok(Expr::constant(value))
    };
    match (literal.kind, literal.value) {
        (LiteralKind::Boolean, value) => Ok(Expr::boolean(value == Value::Int(1))),
        (LiteralKind::Hex | LiteralKind::Bit, Value::Str(s)) => Ok(Expr::hex_literal(s.bytes)),
        (LiteralKind::HexText, Value::Str(s)) => Ok(Expr::hex_text(s.bytes)),
        (LiteralKind::Date, value) => temporal(CastType::Date, value),
        (LiteralKind::Time, value) => temporal(CastType::Time { decimals: 6 }, value),
        (LiteralKind::Timestamp, value) => temporal(CastType::DateTime { decimals: 6 }, value),
        (_, value) => Ok(Expr::constant(value)),
    }
}

fn binary_op(op: ast::BinaryOp) -> BinaryOp {
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

fn cast_type(to: &ast::DataType, env: &SessionEnv) -> SqlResult<CastType> {
    let length = to.length.map(|n| n as u32);
    Ok(match to.kind {
        DeclaredKind::Signed => CastType::Signed,
        DeclaredKind::Unsigned => CastType::Unsigned,
        DeclaredKind::Column(kind) => match kind {
            TypeKind::TinyInt
            | TypeKind::SmallInt
            | TypeKind::MediumInt
            | TypeKind::Int
            | TypeKind::BigInt => CastType::Signed,
            TypeKind::Double => {
                let size = to.length.zip(to.decimals).map(|(m, d)| (m as u8, d as u8));
                CastType::Double { size }
            }
            TypeKind::Float => CastType::Float,
            TypeKind::Decimal => CastType::Decimal {
                precision: to.length.unwrap_or(10) as u8,
                decimals: to.decimals.unwrap_or(0) as u8,
            },
            TypeKind::Binary | TypeKind::VarBinary => CastType::Binary { length },
            TypeKind::Char if to.charset.as_deref() == Some("binary") => CastType::Binary { length },
            TypeKind::Char | TypeKind::VarChar => {
                let collation = match &to.charset {
                    Some(name) => charset_collation(name)?,
                    None => env.collation_connection,
                };
                CastType::Char { length, collation }
            }
            TypeKind::Date => CastType::Date,
            TypeKind::Time => CastType::Time { decimals: length.unwrap_or(0) as u8 },
            TypeKind::DateTime => CastType::DateTime { decimals: length.unwrap_or(0) as u8 },
            TypeKind::Year => CastType::Year,
            _ => return Err(SqlError::new(ErrorCode::NotSupportedYet, "cast")),
        },
    })
}

/// Returns a row of table g.
pub fn row_of_g(i: i64, u: u64, cents: i128, f: f64, s: &str, t: &str, e: (u16, &str)) -> Vec<Value> {
    let datetime = DateTime::parse(t.as_bytes(), SqlMode::NONE).value.expect("a datetime");
    let label = Str { bytes: e.1.into(), collation: Collation::UTF8MB4_GENERAL_CI };
    vec![
        Value::Int(i),
        Value::UInt(u),
        Value::Decimal(Decimal::from_i128(cents, 2)),
        Value::Double(f),
        Value::text(s),
        Value::DateTime(datetime),
        Value::Enum { index: e.0, label },
    ]
}

/// Escapes a text like the client in batch mode.
fn batch(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\0', "\\0")
}

fn printed(expr: &Expr, value: &Value) -> String {
    let ty = expr.ty();
    let mut out = Vec::new();
    let decimals = match ty.class() {
        TypeClass::Real if ty.decimals >= NOT_FIXED_DECIMALS => NOT_FIXED_DECIMALS,
        _ => ty.decimals,
    };
    if value.is_null() {
        return "NULL".to_string();
    }
    value.write_text(decimals, &mut out);
    batch(&out)
}

/// Returns the result and warnings in the format of the golden files. `row` is a row of table g or h.
pub fn answer(text: &str, row: &[Value]) -> String {
    let env = session_env();
    let hooks = TestSession::default();
    let ctx = EvalContext::new(&env, &hooks, &[]);
    let evaluated = (|| -> SqlResult<String> {
        let expr = bind(text, &env)?;
        let value = expr.eval_output(row, &ctx)?;
        Ok(printed(&expr, &value))
    })();
    let mut line = match evaluated {
        Ok(value) => value,
        Err(error) => return error.to_string(),
    };
    let warnings: Vec<String> = ctx
        .take_warnings()
        .list()
        .iter()
        .map(|w| {
            let letter = if w.level == Level::Note { 'N' } else { 'W' };
            format!("{letter}{} {}", w.error.code.number(), w.error.message)
        })
        .collect();
    if !warnings.is_empty() {
        line.push('\t');
        line.push_str(&warnings.join(" | "));
    }
    line
}
