//! Random expressions: what a typed evaluation yields is what the general one yields, without a warning.

use std::time::Duration;

use cohort_expr::{
    BinaryOp, CompareOp, EvalContext, Expr, ExprType, SessionEnv, SessionHooks, UnaryOp, VariableScope, and,
    between, build_binary, build_unary, case, compare_exprs, in_list, is_null, not, or,
};
use cohort_types::{
    ColumnType, Decimal, FixedOffset, SqlError, SqlMode, SqlResult, StoreContext, TypeKind, Value,
};

use crate::lower::Lowering;
use crate::typed::{Got, Number};
use crate::typed_code::Store;

struct NoSession;

impl SessionHooks for NoSession {
    fn user_variable(&self, _: &str) -> Option<Value> {
        None
    }
    fn set_user_variable(&self, _: &str, _: Value) -> SqlResult<()> {
        Ok(())
    }
    fn system_variable(&self, _: VariableScope, name: &str) -> SqlResult<Value> {
        Err(SqlError::not_supported(name))
    }
    fn set_last_insert_id(&self, _: u64) {}
    fn last_insert_id_set(&self) -> Option<u64> {
        None
    }
    fn clock_micros(&self) -> i64 {
        0
    }
    fn random(&self) -> u64 {
        4
    }
    fn next_short_uuid(&self) -> u64 {
        4
    }
    fn check_interrupt(&self) -> SqlResult<()> {
        Ok(())
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

/// A generator of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

fn types() -> Vec<ColumnType> {
    let int = |kind, unsigned| ColumnType::int(kind, None, unsigned);
    vec![
        int(TypeKind::TinyInt, false),
        int(TypeKind::Int, false),
        int(TypeKind::BigInt, false),
        int(TypeKind::SmallInt, true),
        int(TypeKind::BigInt, true),
        ColumnType::decimal(6, 2),
        ColumnType::decimal(18, 4),
        ColumnType::decimal(30, 3),
        ColumnType::decimal(5, 1).unsigned(),
        ColumnType::real(TypeKind::Double, None),
        ColumnType::real(TypeKind::Double, Some((8, 2))),
        ColumnType::real(TypeKind::Float, None),
    ]
}

/// Returns a value of a type, often at its limits.
fn value(ty: &ColumnType, random: &mut Random) -> Value {
    let numbers = [0, 1, -1, 2, 7, 100, -128, 127, 65535, i64::MAX, i64::MIN, i64::from(i32::MAX), 1 << 62];
    let number = random.one_of(&numbers);
    let scale = random.below(5) as u8;
    let from = match (random.below(8), ty.kind) {
        (0, _) => return Value::Null,
        (_, TypeKind::Decimal) => Value::Decimal(Decimal::from_i128(number.into(), scale)),
        (_, TypeKind::Double | TypeKind::Float) => {
            Value::Double(random.one_of(&[0.0, -0.0, 1.5, -2.25, 1e308, 1e-308, 3.0]))
        }
        (1, _) => Value::UInt(u64::MAX),
        _ => Value::Int(number),
    };
    store(from, ty, false).0
}

/// Stores a value by the general way. Returns whether there was a condition.
fn store(value: Value, ty: &ColumnType, strict: bool) -> (Value, bool) {
    let ctx = StoreContext {
        sql_mode: SqlMode::DEFAULT,
        strict,
        database: "",
        table: "",
        column: "",
        row: 0,
        zone: &FixedOffset { seconds: 0 },
        now_micros: 0,
    };
    let mut found = Vec::new();
    match ty.store(value, &ctx, &mut found) {
        Ok(stored) => (stored, !found.is_empty()),
        Err(_) => (Value::Null, true),
    }
}

/// Makes random expressions over the places of some types.
struct Maker<'m> {
    random: Random,
    types: &'m [ColumnType],
    env: &'m SessionEnv,
}

impl Maker<'_> {
    fn leaf(&mut self) -> Expr {
        match self.random.below(4) {
            0 => {
                let literal = [
                    Value::Int(0),
                    Value::Int(3),
                    Value::Int(-1),
                    Value::UInt(u64::MAX),
                    Value::Decimal(Decimal::from_i128(125, 2)),
                    Value::Double(0.5),
                    Value::Null,
                ];
                let at = self.random.below(literal.len());
                Expr::constant(literal[at].clone())
            }
            _ => {
                let place = self.random.below(self.types.len());
                Expr::param(place, ExprType::of_column(&self.types[place], true))
            }
        }
    }

    fn expr(&mut self, depth: usize) -> SqlResult<Expr> {
        if depth == 0 {
            return Ok(self.leaf());
        }
        let down = depth - 1;
        match self.random.below(10) {
            0 => Ok(self.leaf()),
            1 => build_unary(UnaryOp::Neg, self.expr(down)?, self.env),
            2 => self.condition(down),
            3 => {
                let branches = vec![(self.condition(down)?, self.expr(down)?)];
                let otherwise = if self.random.below(2) == 0 { Some(self.expr(down)?) } else { None };
                case(None, branches, otherwise)
            }
            _ => {
                use BinaryOp as B;
                let op = self.random.one_of(&[B::Add, B::Sub, B::Mul, B::Div, B::IntDiv, B::Mod]);
                build_binary(op, self.expr(down)?, self.expr(down)?, self.env)
            }
        }
    }

    fn condition(&mut self, depth: usize) -> SqlResult<Expr> {
        let down = depth.saturating_sub(1);
        match self.random.below(8) {
            0 => Ok(and(vec![self.condition(down)?, self.condition(down)?])),
            1 => Ok(or(vec![self.condition(down)?, self.condition(down)?])),
            2 if depth > 0 => Ok(not(self.condition(down)?)),
            3 => Ok(is_null(self.leaf(), self.random.below(2) == 0)),
            4 => between(self.expr(down)?, self.expr(down)?, self.expr(down)?, self.random.below(2) == 0),
            5 => {
                let list = vec![Expr::constant(Value::Int(3)), Expr::constant(Value::Int(127))];
                in_list(self.expr(down)?, list, self.random.below(2) == 0)
            }
            _ => {
                use CompareOp as C;
                let op = self.random.one_of(&[C::Eq, C::NullSafeEq, C::Ne, C::Lt, C::Le, C::Gt, C::Ge]);
                compare_exprs(op, self.expr(down)?, self.expr(down)?)
            }
        }
    }
}

#[test]
fn typed_evaluation_agrees_with_the_general_one() {
    let types = types();
    let (mut lowered, mut hits) = (0, 0);
    for (seed, mode) in
        [(1, SqlMode::DEFAULT), (2, SqlMode(SqlMode::DEFAULT.0 | SqlMode::NO_UNSIGNED_SUBTRACTION.0))]
    {
        let mut env = SessionEnv::new(0);
        env.sql_mode = mode;
        let mut maker = Maker { random: Random(seed * 7919), types: &types, env: &env };
        let lowering = Lowering { mode };
        for round in 0..40_000 {
            let depth = maker.random.below(4);
            let Ok(expr) = maker.expr(depth) else { continue };
            let number = lowering.number(&expr);
            let test = lowering.test(&expr);
            if number.is_none() && test.is_none() {
                continue;
            }
            lowered += 1;
            let places: Vec<Value> = types.iter().map(|ty| value(ty, &mut maker.random)).collect();
            let ctx = EvalContext::new(&env, &NoSession, &places);
            let general = expr.eval(&[], &ctx).map(|value| value.into_owned());
            let holds = expr.passes(&[], &ctx);
            let warned = ctx.take_warnings().total() > 0;
            let shown = || format!("round {round}: {expr:?} over {places:?}");
            if let Some(test) = &test
                && let got @ (Got::Is(_) | Got::Null) = test.eval(&places)
            {
                assert!(!warned, "{}", shown());
                assert_eq!(holds.ok(), Some(got == Got::Is(true)), "{}", shown());
            }
            let Some(number) = number else { continue };
            if let Some(found) = number.stored(&Store::Any, &places) {
                assert!(!warned, "{}", shown());
                let general = general.clone().unwrap_or_else(|error| panic!("{error:?}: {}", shown()));
                // Numbers that are equal may have different digits.
                assert_eq!(format!("{found:?}"), format!("{general:?}"), "{}", shown());
                hits += 1;
            }
            let to = &types[maker.random.below(types.len())];
            let place = Store::of_column(to).expect("a type of numbers");
            if let Some(found) = number.stored(&place, &places) {
                let (stored, has_condition) = store(general.expect("it has a value"), to, true);
                assert!(!has_condition, "{}: stored as {to:?}", shown());
                assert_eq!(format!("{found:?}"), format!("{stored:?}"), "{}: as {to:?}", shown());
            }
        }
    }
    assert!(lowered > 20_000 && hits > 10_000, "{lowered} of 80,000 were lowered, {hits} had values");
}

#[test]
fn copies_are_stored_as_the_general_code_stores_them() {
    let types = types();
    let mut random = Random(11);
    let mut copied = 0;
    for _ in 0..20_000 {
        let from = value(&types[random.below(types.len())], &mut random);
        let to = &types[random.below(types.len())];
        let Some(found) = Store::of_column(to).expect("a type of numbers").copied(&from) else { continue };
        let (stored, has_condition) = store(from.clone(), to, true);
        assert!(!has_condition, "{from:?} to {to:?}");
        assert_eq!(format!("{found:?}"), format!("{stored:?}"), "{from:?} to {to:?}");
        copied += 1;
    }
    assert!(copied > 5_000, "{copied} were copied");
    assert!(matches!(Lowering { mode: SqlMode::DEFAULT }.number(&Expr::null()), Some(Number::Null)));
}
