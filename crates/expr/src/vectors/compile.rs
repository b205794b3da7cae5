//! Compilation of expressions to vectorized programs.

use cohort_types::{Collation, DateTime, IntervalUnit, LikePattern, Value, VectorType, datetime_key};

use super::{Cut, NumberAt, Register, Step, Text, TruthAt, VectorProgram, VectorTypes};
use crate::compare::CompareHow;
use crate::context::EvalContext;
use crate::convert::{self, Origin};
use crate::expr::{Between, Call, Case, Compare, CompareOp, Expr, In, Like};
use crate::expr_type::{Flavor, TypeClass};
use crate::function::Extra;

/// Maximum number of steps of a program. Each step has a register for a batch of values, and each added step
/// is compared with all steps before it.
const STEPS_MAX: usize = 1024;

/// Maximum number of fraction digits of a decimal in 64 bits.
const SCALE_MAX: u8 = 17;

/// A compiled operand.
#[derive(Clone, Copy)]
enum Operand {
    Number(NumberAt),
    /// Step of a date or datetime.
    DateTime(usize),
    Text(Text),
}

/// Compiler of vectorized programs. Its context evaluates constants and collects their warnings.
pub struct VectorCompiler<'c> {
    types: &'c VectorTypes<'c>,
    ctx: EvalContext<'c>,
    program: VectorProgram,
    /// True if the program exceeded [`STEPS_MAX`].
    is_too_long: bool,
}

impl<'c> VectorCompiler<'c> {
    /// Creates an empty program over columns of these types.
    pub fn new(types: &'c VectorTypes<'c>, ctx: &'c EvalContext<'_>) -> VectorCompiler<'c> {
        let program = VectorProgram { inputs: Vec::new(), steps: Vec::new(), registers: Vec::new() };
        VectorCompiler { types, ctx: ctx.quiet(), program, is_too_long: false }
    }

    /// Returns the program.
    pub fn finish(self) -> VectorProgram {
        self.program
    }

    /// Adds a condition. Returns `None` if it cannot be vectorized.
    pub fn condition(&mut self, expr: &Expr) -> Option<TruthAt> {
        self.truth(expr).filter(|_| !self.is_too_long).map(TruthAt)
    }

    /// Adds an exact number. Returns `None` if it cannot be vectorized.
    pub fn number(&mut self, expr: &Expr) -> Option<NumberAt> {
        match self.operand(expr)? {
            Operand::Number(number) => Some(number).filter(|_| !self.is_too_long),
            Operand::DateTime(_) | Operand::Text(_) => None,
        }
    }

    /// Adds the NULL test of an expression. Returns `None` if it cannot be vectorized.
    pub fn nulls(&mut self, expr: &Expr) -> Option<TruthAt> {
        self.is_null(expr).filter(|_| !self.is_too_long).map(TruthAt)
    }

    /// Adds a step, or returns an equal existing one. A step beyond the limit is not added and invalidates
    /// the program.
    fn add(&mut self, step: Step) -> usize {
        self.is_too_long |= self.program.steps.len() >= STEPS_MAX;
        if self.is_too_long {
            return 0;
        }
        let known = self.program.steps.iter().position(|known| *known == step);
        known.unwrap_or_else(|| {
            self.program.steps.push(step);
            self.program.registers.push(Register::default());
            self.program.steps.len() - 1
        })
    }

    fn input(&mut self, column: usize) -> usize {
        let inputs = &mut self.program.inputs;
        inputs.iter().position(|known| *known == column).unwrap_or_else(|| {
            inputs.push(column);
            inputs.len() - 1
        })
    }

    /// Returns the value of a constant, `None` if its evaluation warns.
    fn constant(&self, expr: &Expr) -> Option<Value> {
        if matches!(expr, Expr::Const(node) if node.ty.flavor != Flavor::Plain) || !is_constant(expr) {
            return None;
        }
        let value = expr.eval(&[], &self.ctx).ok()?.into_owned();
        (self.ctx.warning_count() == 0).then_some(value)
    }

    fn operand(&mut self, expr: &Expr) -> Option<Operand> {
        match expr {
            Expr::Column(column) => {
                let ty = (self.types)(column.ordinal)?;
                let input = self.input(column.ordinal);
                if ty.is_text() {
                    return Some(Operand::Text(Text { input, cut: None }));
                }
                let step = self.add(Step::Input(input));
                Some(match ty {
                    VectorType::Decimal { scale } => Operand::Number(NumberAt { step, scale, is_int: false }),
                    VectorType::Int | VectorType::UInt => {
                        Operand::Number(NumberAt { step, scale: 0, is_int: true })
                    }
                    _ => Operand::DateTime(step),
                })
            }
            Expr::Call(call) => {
                if let Some(number) = self.arithmetic(call).or_else(|| self.length(call)) {
                    return Some(Operand::Number(number));
                }
                match self.part(call) {
                    Some(text) => Some(Operand::Text(text)),
                    None => self.constant_operand(expr),
                }
            }
            Expr::Case(node) => self.case(node).map(Operand::Number),
            _ => self.constant_operand(expr),
        }
    }

    fn constant_operand(&mut self, expr: &Expr) -> Option<Operand> {
        let (value, scale, is_int) = match self.constant(expr)? {
            Value::Int(v) => (v, 0, true),
            Value::UInt(v) => (i64::try_from(v).ok()?, 0, true),
            Value::Decimal(v) => (v.mantissa_at(v.scale())?, v.scale(), false),
            Value::Date(v) => {
                let number = datetime_key(&v.at_midnight());
                return Some(Operand::DateTime(self.add(Step::Constant(Some(number)))));
            }
            Value::DateTime(v) => {
                return Some(Operand::DateTime(self.add(Step::Constant(Some(datetime_key(&v))))));
            }
            _ => return None,
        };
        let step = self.add(Step::Constant(Some(value)));
        Some(Operand::Number(NumberAt { step, scale, is_int }))
    }

    fn arithmetic(&mut self, call: &Call) -> Option<NumberAt> {
        let [left, right] = call.args() else { return None };
        if !matches!(call.name(), "+" | "-" | "*") {
            return None;
        }
        // Integers of mixed signedness, and classes that are not exact, have other rules.
        let is_exact = |expr: &Expr| {
            let ty = expr.ty_cow();
            match ty.class() {
                TypeClass::Int => !ty.unsigned,
                TypeClass::Decimal => true,
                _ => false,
            }
        };
        if !is_exact(left) || !is_exact(right) {
            return None;
        }
        let (a, b) = (self.number(left)?, self.number(right)?);
        let is_int = a.is_int && b.is_int;
        if call.name() == "*" {
            let scale = a.scale.checked_add(b.scale).filter(|scale| *scale <= SCALE_MAX)?;
            return Some(NumberAt { step: self.add(Step::Mul(a.step, b.step)), scale, is_int });
        }
        let scale = a.scale.max(b.scale);
        let (a, b) = (self.at_scale(a, scale)?, self.at_scale(b, scale)?);
        let step = if call.name() == "+" { Step::Add(a, b) } else { Step::Sub(a, b) };
        Some(NumberAt { step: self.add(step), scale, is_int })
    }

    /// Compiles the length of a text column. Texts are UTF-8 in memory; their length in bytes of another
    /// character set is known if that set has one byte per character.
    fn length(&mut self, call: &Call) -> Option<NumberAt> {
        let [Expr::Column(column)] = call.args() else { return None };
        let VectorType::Text(collation) = (self.types)(column.ordinal)? else { return None };
        let charset = collation.charset();
        let in_bytes = match call.name() {
            "length" | "octet_length" | "lengthb" if charset.is_as_in_memory() => true,
            "length" | "octet_length" | "lengthb" if charset.mbmaxlen() == 1 => false,
            "char_length" | "character_length" => collation == Collation::BINARY,
            _ => return None,
        };
        let input = self.input(column.ordinal);
        let step = self.add(if in_bytes { Step::Bytes(input) } else { Step::Characters(input) });
        Some(NumberAt { step, scale: 0, is_int: true })
    }

    /// Compiles a substring of a text column.
    fn part(&mut self, call: &Call) -> Option<Text> {
        let is_substring = match call.name() {
            "substring" | "substr" | "mid" => true,
            "left" => false,
            _ => return None,
        };
        let [Expr::Column(column), numbers @ ..] = call.args() else { return None };
        let VectorType::Text(own) = (self.types)(column.ordinal)? else { return None };
        let collation = call.ty.collation;
        if (collation == Collation::BINARY) != (own == Collation::BINARY) {
            return None;
        }
        let numbers: Option<Vec<usize>> = numbers.iter().map(|number| self.count(number)).collect();
        let (skip, take) = match *numbers?.as_slice() {
            [take] if !is_substring => (0, take),
            // A position of 0 yields an empty text; it is not vectorized.
            [from] => (from.checked_sub(1)?, usize::MAX),
            [from, take] => (from.checked_sub(1)?, take),
            _ => return None,
        };
        let input = self.input(column.ordinal);
        Some(Text { input, cut: Some(Cut { skip, take, collation }) })
    }

    /// Returns the value of a constant number of characters.
    fn count(&self, expr: &Expr) -> Option<usize> {
        match self.constant(expr)? {
            Value::Int(count) => usize::try_from(count).ok(),
            _ => None,
        }
    }

    /// Converts a number to a larger scale.
    fn at_scale(&mut self, number: NumberAt, scale: u8) -> Option<usize> {
        let digits = u32::from(scale.checked_sub(number.scale)?);
        if digits == 0 {
            return Some(number.step);
        }
        let power = 10i64.checked_pow(digits)?;
        if let Step::Constant(value) = &self.program.steps[number.step] {
            let value = match value {
                Some(value) => Some(value.checked_mul(power)?),
                None => None,
            };
            return Some(self.add(Step::Constant(value)));
        }
        let power = self.add(Step::Constant(Some(power)));
        Some(self.add(Step::Mul(number.step, power)))
    }

    fn case(&mut self, node: &Case) -> Option<NumberAt> {
        let is_int = match node.ty.class() {
            TypeClass::Int => true,
            TypeClass::Decimal => false,
            _ => return None,
        };
        if node.operand.is_some() {
            return None;
        }
        let null = |expr: &Expr| matches!(expr, Expr::Const(c) if c.value.is_null());
        let mut scale = 0;
        let mut results = Vec::new();
        for result in node.branches.iter().map(|branch| &branch.1).chain(&node.otherwise) {
            results.push(match null(result) {
                true => None,
                false => Some(self.number(result)?),
            });
            scale = results.iter().flatten().map(|number| number.scale).max().unwrap_or(0).max(scale);
        }
        if is_int != results.iter().flatten().all(|number| number.is_int) {
            return None;
        }
        let mut steps = Vec::new();
        for result in results {
            steps.push(match result {
                Some(number) => self.at_scale(number, scale)?,
                None => self.add(Step::Constant(None)),
            });
        }
        let mut chosen = match node.otherwise {
            Some(_) => steps.pop()?,
            None => self.add(Step::Constant(None)),
        };
        for ((condition, _), then) in node.branches.iter().zip(steps).rev() {
            let condition = self.truth(condition)?;
            chosen = self.add(Step::Choose(condition, then, chosen));
        }
        Some(NumberAt { step: chosen, scale, is_int })
    }

    fn truth(&mut self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Compare(node) => self.compare(node),
            Expr::And(parts) => self.joined(parts, Step::And),
            Expr::Or(parts) => self.joined(parts, Step::Or),
            Expr::Not(operand) => {
                let operand = self.truth(operand)?;
                Some(self.add(Step::Not(operand)))
            }
            Expr::IsNull(node) => {
                let is_null = self.is_null(&node.operand)?;
                Some(self.unless(is_null, node.negated))
            }
            Expr::Between(node) => self.between(node),
            Expr::In(node) => self.is_in(node),
            Expr::Like(node) => self.like(node),
            _ => None,
        }
    }

    fn joined(&mut self, parts: &[Expr], step: fn(usize, usize) -> Step) -> Option<usize> {
        let mut parts = parts.iter();
        let mut joined = self.truth(parts.next()?)?;
        for part in parts {
            let next = self.truth(part)?;
            joined = self.add(step(joined, next));
        }
        Some(joined)
    }

    fn is_null(&mut self, expr: &Expr) -> Option<usize> {
        let step = match self.operand(expr)? {
            Operand::Number(NumberAt { step, .. }) | Operand::DateTime(step) => Step::IsNull(step),
            Operand::Text(text) => Step::IsTextNull(text),
        };
        Some(self.add(step))
    }

    fn unless(&mut self, truth: usize, negated: bool) -> usize {
        if negated { self.add(Step::Not(truth)) } else { truth }
    }

    fn compare(&mut self, node: &Compare) -> Option<usize> {
        let CompareHow::Scalar { collation, class } = &node.how else { return None };
        self.comparison(node.op, &node.left, &node.right, *collation, *class)
    }

    fn comparison(
        &mut self,
        op: CompareOp,
        left: &Expr,
        right: &Expr,
        collation: Collation,
        class: Option<TypeClass>,
    ) -> Option<usize> {
        if op == CompareOp::NullSafeEq {
            return None;
        }
        if is_constant(left) && !is_constant(right) {
            return self.comparison(op.swapped(), right, left, collation, class);
        }
        let left_operand = self.operand(left)?;
        match left_operand {
            Operand::Text(text) => {
                if !matches!(class, None | Some(TypeClass::String)) {
                    return None;
                }
                if !is_constant(right) {
                    let Operand::Text(other) = self.operand(right)? else { return None };
                    return Some(self.add(Step::CompareTexts(op, text, other, collation)));
                }
                let Value::Str(constant) = self.constant(right)? else { return None };
                Some(self.add(Step::CompareText(op, text, constant.bytes, collation)))
            }
            Operand::Number(a) => {
                if !matches!(class, None | Some(TypeClass::Int | TypeClass::Decimal)) {
                    return None;
                }
                let Operand::Number(b) = self.operand(right)? else { return None };
                if class == Some(TypeClass::Int) && !(a.is_int && b.is_int) {
                    return None;
                }
                // Values with more digits than their type are compared row by row, which decides whether
                // these digits count.
                let has_more = |number: NumberAt, expr: &Expr| number.scale > expr.ty_cow().decimals;
                if has_more(a, left) || has_more(b, right) {
                    return None;
                }
                self.compare_numbers(op, a, b)
            }
            Operand::DateTime(a) => {
                if !matches!(class, None | Some(TypeClass::Date | TypeClass::DateTime)) {
                    return None;
                }
                let b = self.datetime(right)?;
                Some(self.compare_steps(op, a, b))
            }
        }
    }

    fn compare_numbers(&mut self, op: CompareOp, a: NumberAt, b: NumberAt) -> Option<usize> {
        let scale = a.scale.max(b.scale);
        let (a, b) = (self.at_scale(a, scale)?, self.at_scale(b, scale)?);
        Some(self.compare_steps(op, a, b))
    }

    fn compare_steps(&mut self, op: CompareOp, a: usize, b: usize) -> usize {
        match self.program.steps[b] {
            Step::Constant(Some(constant)) => self.add(Step::CompareConstant(op, a, constant)),
            _ => self.add(Step::Compare(op, a, b)),
        }
    }

    /// Compiles a date or datetime; a constant text is converted to one.
    fn datetime(&mut self, expr: &Expr) -> Option<usize> {
        if is_constant(expr)
            && let value @ Value::Str(_) = self.constant(expr)?
        {
            if expr.number_view().is_some() {
                return None;
            }
            let read = convert::to_datetime(&value, Origin::compared(Some(expr)), &self.ctx).ok()?;
            let read: DateTime = read.filter(|_| self.ctx.warning_count() == 0)?;
            return Some(self.add(Step::Constant(Some(datetime_key(&read)))));
        }
        match self.operand(expr)? {
            Operand::DateTime(step) => Some(step),
            Operand::Number(_) | Operand::Text(_) => None,
        }
    }

    fn between(&mut self, node: &Between) -> Option<usize> {
        let CompareHow::Scalar { collation, class } = &node.how else { return None };
        let above = self.comparison(CompareOp::Ge, &node.operand, &node.low, *collation, *class)?;
        let below = self.comparison(CompareOp::Le, &node.operand, &node.high, *collation, *class)?;
        let inside = self.add(Step::And(above, below));
        Some(self.unless(inside, node.negated))
    }

    fn is_in(&mut self, node: &In) -> Option<usize> {
        let CompareHow::Scalar { collation, class } = &node.how else { return None };
        let step = match self.operand(&node.operand)? {
            Operand::Text(text) => {
                if !matches!(class, None | Some(TypeClass::String)) {
                    return None;
                }
                let mut keys = Vec::new();
                for item in &node.list {
                    let Value::Str(constant) = self.constant(item)? else { return None };
                    let mut key = Vec::new();
                    collation.sort_key(&constant.bytes, &mut key);
                    keys.push(key);
                }
                keys.sort_unstable();
                Step::IsTextIn(text, keys, *collation)
            }
            Operand::Number(number) => {
                let is_plain = match class {
                    None | Some(TypeClass::Decimal) => true,
                    Some(TypeClass::Int) => number.is_int && number.scale == 0,
                    _ => false,
                };
                if !is_plain {
                    return None;
                }
                let mut values = Vec::new();
                for item in &node.list {
                    values.push(match self.constant(item)? {
                        Value::Int(v) => cohort_types::Decimal::from_i64(v),
                        Value::UInt(v) => cohort_types::Decimal::from_u64(v),
                        Value::Decimal(v) => v,
                        _ => return None,
                    });
                }
                let scale = values.iter().map(|value| value.scale()).max().unwrap_or(0).max(number.scale);
                let mut list =
                    values.iter().map(|value| value.mantissa_at(scale)).collect::<Option<Vec<_>>>()?;
                list.sort_unstable();
                Step::IsIn(self.at_scale(number, scale)?, list)
            }
            Operand::DateTime(_) => return None,
        };
        let is_in = self.add(step);
        Some(self.unless(is_in, node.negated))
    }

    fn like(&mut self, node: &Like) -> Option<usize> {
        if node.escape_by.is_some() {
            return None;
        }
        let Operand::Text(text) = self.operand(&node.operand)? else { return None };
        let Value::Str(pattern) = self.constant(&node.pattern)? else { return None };
        let pattern = LikePattern::new(node.collation, &pattern.bytes, node.escape)?;
        let like = self.add(Step::Like(text, Box::new(pattern)));
        Some(self.unless(like, node.negated))
    }
}

impl VectorProgram {
    /// Returns the columns of the inputs.
    pub fn inputs(&self) -> &[usize] {
        &self.inputs
    }

    /// Returns true if the program reads the characters of an input's texts, not only their lengths and
    /// NULLs.
    pub fn reads_texts(&self, input: usize) -> bool {
        self.steps.iter().any(|step| match step {
            Step::CompareText(_, text, ..) | Step::IsTextIn(text, ..) | Step::Like(text, _) => {
                text.input == input
            }
            Step::CompareTexts(_, a, b, _) => a.input == input || b.input == input,
            Step::Characters(of) => *of == input,
            _ => false,
        })
    }

    /// Returns true if a number may overflow, in which case the rows must be evaluated one by one.
    pub fn may_overflow(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Add(..) | Step::Sub(..) | Step::Mul(..)))
    }
}

/// Returns the column whose year the expression is.
pub fn year_of_column(expr: &Expr) -> Option<usize> {
    let Expr::Call(call) = expr else { return None };
    let is_year = match (call.name(), &call.extra) {
        ("year", _) => true,
        ("extract", Extra::Unit(unit)) => *unit == IntervalUnit::Year,
        _ => false,
    };
    match call.args() {
        [Expr::Column(column)] if is_year => Some(column.ordinal),
        _ => None,
    }
}

/// Returns true if the expression has one value per execution and does not depend on another query.
fn is_constant(expr: &Expr) -> bool {
    let mut is_own = true;
    expr.walk(&mut |node| {
        is_own &= !matches!(node, Expr::Outer(_) | Expr::Subquery(_) | Expr::Column(_));
        is_own
    });
    is_own && expr.is_const_per_execution()
}
