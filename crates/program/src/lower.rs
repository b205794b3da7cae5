//! Compilation of bound expressions and instructions to typed ones ([`crate::typed`], [`crate::typed_code`]).
//!
//! Only expressions whose value `cohort_expr` would compute in the same way are lowered: integers, decimals
//! of at most [`DIGITS_MAX`] digits, doubles, and conditions on them. Everything else stays as it is.

use cohort_expr::{CompareHow, Expr, ExprType, TypeClass};
use cohort_sql::ast::Variable;
use cohort_types::{SqlMode, TypeKind, Value};

use crate::bind::{Bound, PlaceType, Scalar};
use crate::program::{Instruction, ProgramKind, ScalarId};
use crate::typed::{Binary, Choice, DIGITS_MAX, Exact, ExactKind, ExactOp, Number, Real, RealOp, Test};
use crate::typed_code::{Op, Store, Target};

/// Compiles expressions for a mode.
#[derive(Clone, Copy)]
pub(crate) struct Lowering {
    pub mode: SqlMode,
}

/// The kind of a leaf's values.
enum Leaf {
    Exact(ExactKind),
    Real,
}

/// Returns the kind of the values of a type, if they have one variant.
fn leaf_of(ty: &ExprType) -> Option<Leaf> {
    use TypeKind as K;
    match ty.kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt => {
            Some(Leaf::Exact(if ty.unsigned { ExactKind::UInt } else { ExactKind::Int }))
        }
        K::Decimal if ty.decimals <= DIGITS_MAX => Some(Leaf::Exact(ExactKind::Decimal(ty.decimals))),
        K::Double => Some(Leaf::Real),
        _ => None,
    }
}

/// Returns the power of ten that brings a number to a larger scale.
fn factor(digits: u8) -> Option<i64> {
    10i64.checked_pow(digits.into())
}

impl Lowering {
    /// Returns the expression as a number.
    pub fn number(self, expr: &Expr) -> Option<Number> {
        if let Expr::Const(constant) = expr
            && constant.value.is_null()
        {
            return Some(Number::Null);
        }
        match self.exact(expr) {
            Some((kind, exact)) => Some(Number::Exact(kind, exact)),
            None => self.real(expr).map(Number::Real),
        }
    }

    fn exact(self, expr: &Expr) -> Option<(ExactKind, Exact)> {
        match expr {
            Expr::Const(constant) => match &constant.value {
                Value::Int(number) => Some((ExactKind::Int, Exact::Const(*number))),
                Value::UInt(number) => Some((ExactKind::UInt, Exact::Const(i64::try_from(*number).ok()?))),
                // A literal has the digits of its type.
                Value::Decimal(number) if number.scale() == constant.ty.decimals => {
                    let mantissa = number.mantissa_at(number.scale())?;
                    Some((ExactKind::Decimal(number.scale()), Exact::Const(mantissa)))
                }
                _ => None,
            },
            Expr::Param(param) => match leaf_of(&param.ty)? {
                Leaf::Exact(kind) => Some((kind, exact_place(param.index as u32, kind))),
                Leaf::Real => None,
            },
            Expr::Case(case) if case.operand.is_none() => {
                self.choice(&case.branches, case.otherwise.as_ref())
            }
            Expr::Call(call) => match (call.name(), call.args()) {
                ("neg", [operand]) if expr.ty().class() != TypeClass::Decimal => {
                    let (kind, operand) = self.exact(operand)?;
                    (kind.scale() == 0).then(|| (ExactKind::Int, Exact::Negative(Box::new(operand))))
                }
                (name, [left, right]) => self.binary(name, left, right),
                _ => None,
            },
            Expr::Compare(_)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::Between(_)
            | Expr::In(_) => Some((ExactKind::Int, Exact::Truth(Box::new(self.test(expr)?)))),
            _ => None,
        }
    }

    fn binary(self, name: &str, left: &Expr, right: &Expr) -> Option<(ExactKind, Exact)> {
        let op = match name {
            "+" => ExactOp::Add,
            "-" => ExactOp::Sub,
            "*" => ExactOp::Mul,
            "DIV" => ExactOp::Quotient,
            "MOD" | "mod" => ExactOp::Rest,
            _ => return None,
        };
        let ((left_kind, left), (right_kind, right)) = (self.exact(left)?, self.exact(right)?);
        let kinds = (left_kind, right_kind);
        if matches!(kinds, (ExactKind::Decimal(_), _) | (_, ExactKind::Decimal(_))) {
            let (scale, left, right) = match op {
                ExactOp::Add | ExactOp::Sub => {
                    let scale = left_kind.scale().max(right_kind.scale());
                    (
                        scale,
                        scaled(left, scale - left_kind.scale())?,
                        scaled(right, scale - right_kind.scale())?,
                    )
                }
                ExactOp::Mul => (left_kind.scale() + right_kind.scale(), left, right),
                ExactOp::Quotient | ExactOp::Rest => return None,
            };
            let node = Binary { op, left, right, unsigned: false };
            return (scale <= DIGITS_MAX).then(|| (ExactKind::Decimal(scale), Exact::Binary(Box::new(node))));
        }
        let is_any = kinds.0 == ExactKind::UInt || kinds.1 == ExactKind::UInt;
        let unsigned = match op {
            ExactOp::Sub => is_any && !self.mode.has(SqlMode::NO_UNSIGNED_SUBTRACTION),
            ExactOp::Rest => kinds.0 == ExactKind::UInt,
            _ => is_any,
        };
        let kind = if unsigned { ExactKind::UInt } else { ExactKind::Int };
        Some((kind, Exact::Binary(Box::new(Binary { op, left, right, unsigned }))))
    }

    /// Compiles a choice between integers of one kind.
    fn choice(self, branches: &[(Expr, Expr)], otherwise: Option<&Expr>) -> Option<(ExactKind, Exact)> {
        let mut found: Option<ExactKind> = None;
        let mut result = |expr: &Expr| {
            let (kind, exact) = self.exact(expr)?;
            (kind.scale() == 0 && *found.get_or_insert(kind) == kind).then_some(exact)
        };
        let branches = branches.iter().map(|(when, then)| Some((self.test(when)?, result(then)?)));
        let branches = branches.collect::<Option<Vec<_>>>()?;
        let otherwise = match otherwise {
            Some(otherwise) => Some(result(otherwise)?),
            None => None,
        };
        Some((found?, Exact::Choice(Box::new(Choice { branches, otherwise }))))
    }

    fn real(self, expr: &Expr) -> Option<Real> {
        match expr {
            Expr::Const(constant) => match &constant.value {
                Value::Double(number) => Some(Real::Const(*number)),
                _ => None,
            },
            Expr::Param(param) => match leaf_of(&param.ty)? {
                Leaf::Real => Some(Real::Place(param.index as u32)),
                Leaf::Exact(_) => None,
            },
            Expr::Call(call) => match (call.name(), call.args()) {
                ("neg", [operand]) => Some(Real::Negative(Box::new(self.real(operand)?))),
                (name, [left, right]) => {
                    let op = match name {
                        "+" => RealOp::Add,
                        "-" => RealOp::Sub,
                        "*" => RealOp::Mul,
                        "/" => RealOp::Div,
                        _ => return None,
                    };
                    let operands = self.reals(left, right)?;
                    Some(Real::Binary(Box::new((op, operands.0, operands.1))))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns two operands as doubles, of which one at least is no integer.
    fn reals(self, left: &Expr, right: &Expr) -> Option<(Real, Real)> {
        let integer = |expr: &Expr| match self.exact(expr)? {
            (ExactKind::Decimal(_), _) => None,
            (_, exact) => Some(Real::Exact(exact)),
        };
        match (self.real(left), self.real(right)) {
            (Some(left), Some(right)) => Some((left, right)),
            (Some(left), None) => Some((left, integer(right)?)),
            (None, Some(right)) => Some((integer(left)?, right)),
            (None, None) => None,
        }
    }

    /// Returns two operands as numbers of one scale.
    fn exacts(self, left: &Expr, right: &Expr) -> Option<(Exact, Exact)> {
        let ((left_kind, left), (right_kind, right)) = (self.exact(left)?, self.exact(right)?);
        let scale = left_kind.scale().max(right_kind.scale());
        Some((scaled(left, scale - left_kind.scale())?, scaled(right, scale - right_kind.scale())?))
    }

    /// Returns the expression as a condition.
    pub fn test(self, expr: &Expr) -> Option<Test> {
        let tests = |items: &[Expr]| items.iter().map(|item| self.test(item)).collect::<Option<Vec<_>>>();
        match expr {
            Expr::Compare(node) => match (how_of(&node.how)?, self.exacts(&node.left, &node.right)) {
                (None | Some(TypeClass::Int | TypeClass::Decimal), Some((left, right))) => {
                    Some(Test::Exact(node.op, left, right))
                }
                (None | Some(TypeClass::Real), None) => {
                    let (left, right) = self.reals(&node.left, &node.right)?;
                    Some(Test::Real(node.op, left, right))
                }
                _ => None,
            },
            Expr::And(items) => tests(items).map(Test::And),
            Expr::Or(items) => tests(items).map(Test::Or),
            Expr::Not(operand) => Some(Test::Not(Box::new(self.test(operand)?))),
            Expr::IsNull(node) => match &node.operand {
                Expr::Param(param) => Some(Test::IsNull { place: param.index as u32, negated: node.negated }),
                _ => None,
            },
            Expr::Between(node) => {
                let class = how_of(&node.how)?;
                if !matches!(class, None | Some(TypeClass::Int)) {
                    return None;
                }
                let integer = |expr: &Expr| self.integer(expr);
                Some(Test::Between {
                    operand: integer(&node.operand)?,
                    low: integer(&node.low)?,
                    high: integer(&node.high)?,
                    negated: node.negated,
                })
            }
            Expr::In(node) => {
                let class = how_of(&node.how)?;
                if !matches!(class, None | Some(TypeClass::Int)) {
                    return None;
                }
                let constant = |item: &Expr| match self.integer(item)? {
                    Exact::Const(number) => Some(number),
                    _ => None,
                };
                let list = node.list.iter().map(constant).collect::<Option<Vec<_>>>()?;
                Some(Test::In { operand: self.integer(&node.operand)?, list, negated: node.negated })
            }
            other => match self.number(other)? {
                Number::Exact(_, exact) => Some(Test::NonZero(exact)),
                Number::Real(real) => Some(Test::RealNonZero(real)),
                Number::Null => None,
            },
        }
    }

    fn integer(self, expr: &Expr) -> Option<Exact> {
        match self.exact(expr)? {
            (ExactKind::Decimal(_), _) => None,
            (_, exact) => Some(exact),
        }
    }
}

/// Returns the class in which scalars are compared, `None` within if their values decide.
#[allow(clippy::option_option)]
fn how_of(how: &CompareHow) -> Option<Option<TypeClass>> {
    match how {
        CompareHow::Scalar { class, .. } => Some(*class),
        CompareHow::Row(_) => None,
    }
}

fn exact_place(place: u32, kind: ExactKind) -> Exact {
    match kind {
        ExactKind::Int => Exact::Int(place),
        ExactKind::UInt => Exact::UInt(place),
        ExactKind::Decimal(scale) => Exact::Decimal(place, scale),
    }
}

/// Brings a number to a scale that is larger by some digits.
fn scaled(operand: Exact, digits: u8) -> Option<Exact> {
    match (digits, operand) {
        (0, operand) => Some(operand),
        (_, Exact::Const(number)) => number.checked_mul(factor(digits)?).map(Exact::Const),
        (_, operand) => Some(Exact::Scaled(Box::new(operand), factor(digits)?)),
    }
}

impl Bound {
    /// Makes the typed form of each instruction that has one. `mode` is that of the program.
    pub(crate) fn lower(&mut self, mode: SqlMode) {
        let lowering = Lowering { mode };
        let code = &self.program.code;
        let ops: Vec<Op> = code.iter().map(|it| self.op(it, lowering).unwrap_or(Op::General)).collect();
        let arguments: Option<Vec<Target>> = (0..self.program.parameters.len())
            .map(|n| match self.slots[n].fields {
                None => self.target(&Variable::Slot(n as u32)),
                Some(_) => None,
            })
            .collect();
        // RETURN and the end of a trigger are the only ends without a host.
        let runs_alone = |(op, instruction): (&Op, &Instruction)| match op {
            Op::General => matches!(instruction, Instruction::CaseNotFound),
            Op::Fetch { .. } => false,
            _ => true,
        };
        let kind = self.program.kind;
        let takes_values = self.program.parameters.iter().all(|(mode, _)| !mode.is_out());
        self.is_typed = matches!(kind, ProgramKind::Function | ProgramKind::Trigger(..))
            && takes_values
            && arguments.is_some()
            && ops.iter().zip(code).all(runs_alone);
        self.arguments = arguments.unwrap_or_default();
        self.ops = ops;
    }

    fn op(&self, instruction: &Instruction, lowering: Lowering) -> Option<Op> {
        match instruction {
            Instruction::Set { to, value } => self.assignment(to, *value, lowering),
            Instruction::Operand { slot, value, .. } => {
                self.assignment(&Variable::Slot(*slot), *value, lowering)
            }
            Instruction::Declare { slot } => {
                let to = Variable::Slot(*slot);
                match self.program.slots[*slot as usize].default {
                    Some(default) => self.assignment(&to, default, lowering),
                    None => self.target(&to).map(|to| Op::Clear(to.place)),
                }
            }
            Instruction::JumpUnless { condition, to, .. } => {
                let test = match &self.scalars[*condition as usize] {
                    Scalar::Expr(expr) => lowering.test(expr)?,
                    Scalar::Place(place) => lowering.test(&self.param(*place))?,
                    _ => return None,
                };
                Some(Op::Unless { test, to: *to })
            }
            Instruction::Jump(to) => Some(Op::Jump(*to)),
            Instruction::Fetch { cursor, into } => {
                let into = into.iter().map(|to| self.target(to)).collect::<Option<_>>()?;
                Some(Op::Fetch { cursor: *cursor, into })
            }
            Instruction::FetchOrJump { cursor, into, .. } => {
                let places = self.places_of(&Variable::Slot(*into)).ok()?;
                let into = places.map(|place| self.target_at(place)).collect::<Option<_>>()?;
                Some(Op::Fetch { cursor: *cursor, into })
            }
            Instruction::Return(value) => {
                let store = Store::of_column(self.returns.as_ref()?)?;
                Some(Op::Return { value: self.number(*value, lowering)?, store })
            }
            Instruction::End => Some(Op::End),
            _ => None,
        }
    }

    fn assignment(&self, to: &Variable, value: ScalarId, lowering: Lowering) -> Option<Op> {
        let to = self.target(to)?;
        if let Scalar::Place(from) = self.scalars[value as usize] {
            return Some(Op::Copy { to, from });
        }
        Some(match (self.number(value, lowering)?, to.store) {
            (Number::Exact(ExactKind::Int | ExactKind::UInt, value), Store::Int { min, max }) => {
                Op::SetInt { to: to.place, min, max, value }
            }
            (value, store) => Op::Set { to: Target { place: to.place, store }, value },
        })
    }

    fn number(&self, value: ScalarId, lowering: Lowering) -> Option<Number> {
        match &self.scalars[value as usize] {
            Scalar::Expr(expr) => lowering.number(expr),
            Scalar::Place(place) => lowering.number(&self.param(*place)),
            _ => None,
        }
    }

    fn param(&self, place: u32) -> Expr {
        Expr::param(place as usize, self.places[place as usize].ty.expr_type())
    }

    /// Returns a scalar variable whose values are numbers.
    fn target(&self, variable: &Variable) -> Option<Target> {
        self.place_of(variable).ok().and_then(|place| self.target_at(place))
    }

    fn target_at(&self, place: u32) -> Option<Target> {
        let store = match &self.places[place as usize].ty {
            PlaceType::Any(_) => Store::Any,
            PlaceType::Column(ty) => Store::of_column(ty)?,
        };
        Some(Target { place, store })
    }
}
