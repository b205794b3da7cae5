//! Constructors of expressions. They check arity, derive the static type and choose how operands are
//! compared.
//!
//! Some session settings (collation, `div_precision_increment`, `sql_mode`) become part of the tree, so a
//! cached plan has them in its key.

use std::sync::Arc;

use cohort_types::{Collation, IntervalUnit, SqlError, SqlResult, Value};

use crate::arith::negated_literal;
use crate::compare::{CompareHow, InRows, InSet};
use crate::context::{SessionEnv, VariableScope};
use crate::control::wrong_columns;
use crate::eval::{escape_char, wrong_escape};
use crate::expr::{Between, Call, Case, Cast, CastType, Compare, CompareOp, Expr, In, IsNull, Like};
use crate::expr_type::{Coercibility, ExprType, STRING_DECIMALS, TypeClass, illegal_mix, literal_type};
use crate::function::{Extra, Function};
use crate::joined::joined_type;
use crate::mixing::{compared, compared_types, lacks_characters};
use crate::operand::{prepare, prepare_pair};
use crate::{TrimSide, arith, bits, control, date_calc, date_part, info, regex, text_build, text_cut};

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Mod,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Compare(CompareOp),
    And,
    Or,
    Xor,
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Neg,
    Plus,
    BitNot,
    Not,
}

/// The right side of IS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    True,
    False,
    Unknown,
}

/// `date + INTERVAL` or `date - INTERVAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalOp {
    Add,
    Sub,
}

/// Builds a call of a function. The caller has checked the number of arguments.
pub(crate) fn call(
    function: &'static Function,
    mut args: Vec<Expr>,
    extra: Extra,
    env: &SessionEnv,
) -> SqlResult<Expr> {
    if let Some(Expr::Row(_)) = args.iter().find(|a| matches!(a, Expr::Row(_))) {
        return Err(match (function.name, args.as_slice()) {
            ("least" | "greatest", [first, second, ..]) => illegal_types(function.name, first, second),
            _ => wrong_columns(1),
        });
    }
    let ty = (function.typing)(&mut args, env)?;
    Ok(Expr::Call(Box::new(Call { function, args, extra, ty })))
}

/// Builds `left op right`.
pub fn build_binary(op: BinaryOp, left: Expr, right: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let has_row = matches!(left, Expr::Row(_)) || matches!(right, Expr::Row(_));
    if has_row && matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor) {
        return Err(wrong_columns(1));
    }
    let function = match op {
        BinaryOp::Compare(op) => return compare_exprs(op, left, right),
        BinaryOp::And => return Ok(and(vec![left, right])),
        BinaryOp::Or => return Ok(or(vec![left, right])),
        BinaryOp::Add => &arith::ADD,
        BinaryOp::Sub => &arith::SUB,
        BinaryOp::Mul => &arith::MUL,
        BinaryOp::Div => &arith::DIV,
        BinaryOp::IntDiv => &arith::INT_DIV,
        BinaryOp::Mod => &arith::MOD,
        BinaryOp::BitAnd => &bits::AND,
        BinaryOp::BitOr => &bits::OR,
        BinaryOp::BitXor => &bits::XOR,
        BinaryOp::ShiftLeft => &bits::LEFT,
        BinaryOp::ShiftRight => &bits::RIGHT,
        BinaryOp::Xor => &control::XOR,
    };
    if has_row {
        return Err(match op {
            BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight => illegal_row(function.name),
            _ => illegal_types(function.name, &left, &right),
        });
    }
    if is_fixed(&left) || is_fixed(&right) {
        return Err(illegal_types(function.name, &left, &right));
    }
    call(function, vec![left, right], Extra::None, env)
}

/// Returns whether the expression is a UUID or an address. Such values can be compared, but not used in
/// arithmetic.
fn is_fixed(expr: &Expr) -> bool {
    expr.ty_cow().class() == TypeClass::Fixed
}

/// Returns error 4078 if a UUID or an address meets another type. Constant texts have been converted before.
fn check_fixed(operation: &str, left: &Expr, right: &Expr) -> SqlResult<()> {
    let (l, r) = (left.ty_cow(), right.ty_cow());
    let has_other = l.kind != r.kind && !l.null_literal && !r.null_literal;
    match (is_fixed(left) || is_fixed(right)) && has_other {
        true => Err(illegal_types(operation, left, right)),
        false => Ok(()),
    }
}

/// Returns error 4079 for a row in place of a number.
fn illegal_row(operation: &str) -> SqlError {
    SqlError::illegal_type("row", operation)
}

/// Returns error 4078 for a row in place of a scalar.
fn illegal_types(operation: &str, left: &Expr, right: &Expr) -> SqlError {
    let name = |e: &Expr| match e {
        Expr::Row(_) => "row",
        scalar => scalar.ty().to_column_type().type_name(),
    };
    SqlError::illegal_types(name(left), name(right), operation)
}

/// Builds `op operand`.
pub fn build_unary(op: UnaryOp, operand: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let function = match op {
        UnaryOp::Not if matches!(operand, Expr::Row(_)) => return Err(wrong_columns(1)),
        UnaryOp::Not => return Ok(not(operand)),
        UnaryOp::Plus => return Ok(operand),
        UnaryOp::BitNot => &bits::NOT,
        UnaryOp::Neg => {
            if let Expr::Const(node) = &operand
                && let Some(value) = negated_literal(&node.value)
            {
                return Ok(Expr::constant(value));
            }
            &arith::NEG
        }
    };
    if matches!(operand, Expr::Row(_)) {
        return Err(if op == UnaryOp::Neg { wrong_columns(1) } else { illegal_row(function.name) });
    }
    if let Some(kind) = operand.ty_cow().fixed_kind() {
        let operation = if op == UnaryOp::Neg { "-" } else { function.name };
        return Err(SqlError::illegal_type(kind.name(), operation));
    }
    call(function, vec![operand], Extra::None, env)
}

/// Returns how an operator compares two scalars. Error 1267 if their collations do not mix.
fn how_scalars(operation: &str, left: &Expr, right: &Expr) -> SqlResult<CompareHow> {
    let (l, r) = (left.ty_cow(), right.ty_cow());
    check_fixed(operation, left, right)?;
    let joined = compared_types(operation, &[l.as_ref(), r.as_ref()])?;
    if lacks_characters(left, joined.collation) || lacks_characters(right, joined.collation) {
        let are_texts = l.class() == TypeClass::String && r.class() == TypeClass::String;
        if are_texts {
            return Err(illegal_mix(operation, &[l.as_ref(), r.as_ref()]));
        }
    }
    Ok(CompareHow::Scalar { collation: joined.collation, class: decimal_column_class(left, right) })
}

/// Returns DECIMAL for a DECIMAL column and a constant text: they compare exactly, because two values of the
/// column might be the same double.
fn decimal_column_class(left: &Expr, right: &Expr) -> Option<TypeClass> {
    let column = |e: &Expr| matches!(e, Expr::Column(c) if c.ty.class() == TypeClass::Decimal);
    let text = |e: &Expr| {
        let ty = e.ty_cow();
        matches!(e, Expr::Const(_) | Expr::Param(_)) && ty.class() == TypeClass::String && !ty.null_literal
    };
    let applies = (column(left) && text(right)) || (text(left) && column(right));
    applies.then_some(TypeClass::Decimal)
}

/// Returns how two operands are compared: rows element by element.
fn how_operands(operation: &str, left: &Expr, right: &Expr) -> SqlResult<CompareHow> {
    match (left, right) {
        (Expr::Row(l), Expr::Row(r)) if l.len() == r.len() => {
            let hows: SqlResult<Vec<_>> =
                l.iter().zip(r).map(|(a, b)| how_operands(operation, a, b)).collect();
            hows.map(CompareHow::Row)
        }
        (Expr::Row(l), Expr::Row(_)) => Err(wrong_columns(l.len())),
        (Expr::Row(_), _) | (_, Expr::Row(_)) => Err(illegal_types(operation, left, right)),
        _ => how_scalars(operation, left, right),
    }
}

/// Prepares two operands for a comparison: rows element by element.
fn prepared(left: Expr, right: Expr) -> (Expr, Expr) {
    match (left, right) {
        (Expr::Row(l), Expr::Row(r)) if l.len() == r.len() => {
            let (l, r) = l.into_iter().zip(r).map(|(a, b)| prepared(a, b)).unzip();
            (Expr::Row(l), Expr::Row(r))
        }
        (left @ Expr::Row(_), right) | (left, right @ Expr::Row(_)) => (left, right),
        (left, right) => prepare_pair(left, right),
    }
}

/// Builds a comparison. Rows are compared element by element; error 1241 if their sizes differ.
pub fn compare_exprs(op: CompareOp, left: Expr, right: Expr) -> SqlResult<Expr> {
    let (left, right) = prepared(left, right);
    let how = how_operands(op.symbol(), &left, &right)?;
    Ok(Expr::Compare(Box::new(Compare { op, left, right, how })))
}

/// Builds a comparison of a known kind.
pub fn compare_as(op: CompareOp, left: Expr, right: Expr, how: CompareHow) -> Expr {
    Expr::Compare(Box::new(Compare { op, left, right, how }))
}

/// Builds a conjunction. Nested ones are flattened; an empty one is TRUE.
pub fn and(conditions: Vec<Expr>) -> Expr {
    let mut flat = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match condition {
            Expr::And(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    if flat.is_empty() { Expr::boolean(true) } else { Expr::And(flat) }
}

/// Builds a disjunction. Nested ones are flattened; an empty one is FALSE.
pub fn or(conditions: Vec<Expr>) -> Expr {
    let mut flat = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match condition {
            Expr::Or(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    if flat.is_empty() { Expr::boolean(false) } else { Expr::Or(flat) }
}

/// Builds NOT. A negated comparison becomes the opposite one.
pub fn not(operand: Expr) -> Expr {
    match operand {
        Expr::Compare(mut node) if !matches!(node.how, CompareHow::Row(_)) => {
            node.op = match node.op {
                CompareOp::Eq => CompareOp::Ne,
                CompareOp::Ne => CompareOp::Eq,
                CompareOp::Lt => CompareOp::Ge,
                CompareOp::Le => CompareOp::Gt,
                CompareOp::Gt => CompareOp::Le,
                CompareOp::Ge => CompareOp::Lt,
                CompareOp::NullSafeEq => return Expr::Not(Box::new(Expr::Compare(node))),
            };
            Expr::Compare(node)
        }
        Expr::IsNull(mut node) => {
            node.negated = !node.negated;
            Expr::IsNull(node)
        }
        Expr::Between(mut node) => {
            node.negated = !node.negated;
            Expr::Between(node)
        }
        Expr::In(mut node) => {
            node.negated = !node.negated;
            Expr::In(node)
        }
        Expr::Like(mut node) => {
            node.negated = !node.negated;
            Expr::Like(node)
        }
        other => Expr::Not(Box::new(other)),
    }
}

/// Builds `operand IS [NOT] NULL`.
pub fn is_null(operand: Expr, negated: bool) -> Expr {
    Expr::IsNull(Box::new(IsNull { operand, negated }))
}

/// Builds `operand IS [NOT] TRUE | FALSE | UNKNOWN`.
pub fn is_truth(operand: Expr, truth: Truth, negated: bool) -> Expr {
    let function = match truth {
        Truth::Unknown => return is_null(operand, negated),
        Truth::True => &control::IS_TRUE,
        Truth::False => &control::IS_FALSE,
    };
    let ty = ExprType::boolean().with_nullable(false);
    let test = Expr::Call(Box::new(Call { function, args: vec![operand], extra: Extra::None, ty }));
    if negated { not(test) } else { test }
}

/// Returns the class in which BETWEEN compares all three operands, or `None` if each pair is compared by its
/// own types.
fn forced_class(parts: &[&Expr]) -> Option<TypeClass> {
    let classes: Vec<TypeClass> =
        parts.iter().filter(|e| !e.ty_cow().null_literal).map(|e| e.ty_cow().class()).collect();
    let has = |c| classes.contains(&c);
    if has(TypeClass::Date) || has(TypeClass::DateTime) {
        return Some(TypeClass::DateTime);
    }
    if has(TypeClass::Time) {
        return Some(TypeClass::Time);
    }
    let number = has(TypeClass::Int) || has(TypeClass::Decimal) || has(TypeClass::Real);
    if !has(TypeClass::String) || !number {
        return None;
    }
    let exact = has(TypeClass::Int) && !has(TypeClass::Decimal) && !has(TypeClass::Real);
    Some(if exact { TypeClass::Decimal } else { TypeClass::Real })
}

/// Builds `operand [NOT] BETWEEN low AND high`.
pub fn between(operand: Expr, low: Expr, high: Expr, negated: bool) -> SqlResult<Expr> {
    if let Some(Expr::Row(items)) = [&operand, &low, &high].into_iter().find(|e| matches!(e, Expr::Row(_))) {
        let _ = items;
        return Err(wrong_columns(1));
    }
    let (low, high) = (prepare(low, &operand), prepare(high, &operand));
    for bound in [&low, &high] {
        check_fixed("between", &operand, bound)?;
    }
    let mut parts = [operand, low, high];
    let joined = compared(&mut parts, "between")?;
    let [operand, low, high] = parts;
    let types = [operand.ty(), low.ty(), high.ty()];
    let is_text = |ty: &ExprType| ty.class() == TypeClass::String && !ty.null_literal;
    let class = match forced_class(&[&operand, &low, &high]) {
        // If both bounds are texts, they are joined to a text. It is read as an exact number only for a
        // BIGINT column, whose values a double cannot hold exactly.
        Some(TypeClass::Decimal)
            if is_text(&types[1])
                && is_text(&types[2])
                && (matches!(operand, Expr::Const(_)) || types[0].kind != cohort_types::TypeKind::BigInt) =>
        {
            Some(TypeClass::Real)
        }
        class => class,
    };
    let how = CompareHow::Scalar { collation: joined.collation, class };
    Ok(Expr::Between(Box::new(Between { operand, low, high, negated, how })))
}

/// Builds `operand [NOT] IN (list)`.
pub fn in_list(mut operand: Expr, mut list: Vec<Expr>, negated: bool) -> SqlResult<Expr> {
    // A list of one item is an equality.
    if list.len() == 1
        && let Some(item) = list.pop()
    {
        let equal = compare_exprs(CompareOp::Eq, operand, item)?;
        return Ok(if negated { not(equal) } else { equal });
    }
    let how = match &operand {
        Expr::Row(_) => {
            list = list.into_iter().map(|item| prepared_for(&operand, item)).collect();
            how_row_in(&operand, &list)?
        }
        _ => {
            if let Some(item) = list.iter().find(|e| matches!(e, Expr::Row(_))) {
                return Err(illegal_types("in", &operand, item));
            }
            list = list.into_iter().map(|item| prepare(item, &operand)).collect();
            list.iter().try_for_each(|item| check_fixed("in", &operand, item))?;
            list.insert(0, operand);
            let joined = compared(&mut list, "in")?;
            operand = list.remove(0);
            CompareHow::scalar(joined.collation)
        }
    };
    let mut node = In { operand, list, negated, how, set: None, rows: None };
    node.find_set();
    Ok(Expr::In(Box::new(node)))
}

/// Prepares an item of a list for the comparison with the operand.
fn prepared_for(operand: &Expr, item: Expr) -> Expr {
    match (operand, item) {
        (Expr::Row(operands), Expr::Row(items)) if operands.len() == items.len() => {
            let pairs = operands.iter().zip(items);
            Expr::Row(pairs.map(|(operand, item)| prepared_for(operand, item)).collect())
        }
        (Expr::Row(_), item) | (_, item @ Expr::Row(_)) => item,
        (operand, item) => prepare(item, operand),
    }
}

/// Returns how a row is compared with the rows of a list. If the list has several rows, strings compare by
/// the collation of the operand's element, as in MariaDB, not by one joined with the items' collations.
fn how_row_in(operand: &Expr, list: &[Expr]) -> SqlResult<CompareHow> {
    let hows = list.iter().map(|item| how_operands("in", operand, item)).collect::<SqlResult<Vec<_>>>()?;
    Ok(match <[CompareHow; 1]>::try_from(hows) {
        Ok([how]) => how,
        Err(hows) => how_of_all(operand, &hows),
    })
}

fn how_of_all(operand: &Expr, hows: &[CompareHow]) -> CompareHow {
    if let Expr::Row(elements) = operand {
        let nth = |n: usize| {
            let of_element = |how: &CompareHow| match how {
                CompareHow::Row(hows) => hows[n].clone(),
                scalar => scalar.clone(),
            };
            hows.iter().map(of_element).collect::<Vec<_>>()
        };
        let elements = elements.iter().enumerate();
        return CompareHow::Row(elements.map(|(n, element)| how_of_all(element, &nth(n))).collect());
    }
    let class = |how: &CompareHow| if let CompareHow::Scalar { class, .. } = how { *class } else { None };
    let first = hows.first().and_then(class);
    let class = first.filter(|_| hows.iter().all(|how| class(how) == first));
    CompareHow::Scalar { collation: operand.ty_cow().collation, class }
}

impl In {
    /// Builds the set of a constant list.
    pub(crate) fn find_set(&mut self) {
        match &self.how {
            CompareHow::Scalar { collation, .. } => {
                self.set = InSet::of(&self.list, *collation).map(Arc::new);
            }
            CompareHow::Row(hows) => self.rows = InRows::of(&self.list, hows).map(Arc::new),
        }
    }
}

/// The ESCAPE clause of LIKE.
#[derive(Debug)]
pub enum LikeEscape<'e> {
    /// No ESCAPE clause.
    Usual,
    /// A literal.
    Text(&'e str),
    /// An expression that is constant during one execution.
    By(Expr),
}

/// Builds `operand [NOT] LIKE pattern [ESCAPE escape]`.
pub fn like(
    operand: Expr,
    pattern: Expr,
    escape: LikeEscape<'_>,
    negated: bool,
    env: &SessionEnv,
) -> SqlResult<Expr> {
    let (escape, escape_by) = match escape {
        LikeEscape::Usual => (Some('\\'), None),
        LikeEscape::Text(text) => (Some(escape_char(text, env)?), None),
        LikeEscape::By(expr) if expr.is_const_per_execution() => (None, Some(expr)),
        LikeEscape::By(_) => return Err(wrong_escape()),
    };
    if matches!(operand, Expr::Row(_)) || matches!(pattern, Expr::Row(_)) {
        return Err(wrong_columns(1));
    }
    let mut parts = [operand, pattern];
    let joined = compared(&mut parts, "like")?;
    let [operand, pattern] = parts;
    let collation = if joined.coercibility >= Coercibility::Numeric {
        env.collation_connection
    } else {
        joined.collation
    };
    Ok(Expr::Like(Box::new(Like { operand, pattern, escape, escape_by, negated, collation })))
}

/// Builds `operand [NOT] REGEXP pattern`.
pub fn regexp(operand: Expr, pattern: Expr, negated: bool, env: &SessionEnv) -> SqlResult<Expr> {
    let test = call(&regex::REGEXP, vec![operand, pattern], Extra::None, env)?;
    Ok(if negated { not(test) } else { test })
}

/// Builds `CASE [operand] WHEN .. THEN .. [ELSE ..] END`.
pub fn case(operand: Option<Expr>, branches: Vec<(Expr, Expr)>, otherwise: Option<Expr>) -> SqlResult<Expr> {
    let results: Vec<&Expr> = branches.iter().map(|(_, then)| then).chain(&otherwise).collect();
    let nullable = otherwise.is_none();
    let ty = joined_type(&results, "case", None)?;
    let ty = if nullable { ty.with_nullable(true) } else { ty };
    let (operand, branches, hows) = match operand {
        None => (None, branches, Vec::new()),
        Some(operand) => {
            let (operand, branches, hows) = compared_branches(operand, branches)?;
            (Some(operand), branches, hows)
        }
    };
    Ok(Expr::Case(Box::new(Case { operand, branches, otherwise, ty, hows })))
}

/// Returns the operand of CASE, its branches, and how the operand is compared with each of them. Texts are
/// compared by one collation.
fn compared_branches(
    mut operand: Expr,
    mut branches: Vec<(Expr, Expr)>,
) -> SqlResult<(Expr, Vec<(Expr, Expr)>, Vec<CompareHow>)> {
    let is_text = |expr: &Expr| !matches!(expr, Expr::Row(_)) && expr.ty_cow().class() == TypeClass::String;
    if !is_text(&operand) || !branches.iter().all(|(when, _)| is_text(when)) {
        let hows = branches.iter().map(|(when, _)| how_operands("case", &operand, when));
        let hows = hows.collect::<SqlResult<_>>()?;
        return Ok((operand, branches, hows));
    }
    let taken = |expr: &mut Expr| std::mem::replace(expr, Expr::null());
    let mut texts = vec![taken(&mut operand)];
    texts.extend(branches.iter_mut().map(|(when, _)| taken(when)));
    let joined = compared(&mut texts, "case")?;
    let hows = vec![CompareHow::scalar(joined.collation); branches.len()];
    let mut texts = texts.into_iter();
    operand = texts.next().unwrap_or_else(Expr::null);
    branches.iter_mut().zip(texts).for_each(|((when, _), text)| *when = text);
    Ok((operand, branches, hows))
}

/// Builds `CAST(operand AS to)`.
pub fn cast(operand: Expr, to: CastType, env: &SessionEnv) -> SqlResult<Expr> {
    if matches!(operand, Expr::Row(_)) {
        return Err(wrong_columns(1));
    }
    let mut operand = operand;
    if matches!(
        to,
        CastType::Signed | CastType::Unsigned | CastType::Double { .. } | CastType::Decimal { .. }
    ) {
        arith::hex_as_number(std::slice::from_mut(&mut operand));
    }
    if let Some(fixed) = operand.ty_cow().fixed_kind() {
        let operation = match to {
            CastType::Signed => Some("cast_as_signed"),
            CastType::Unsigned => Some("cast_as_unsigned"),
            CastType::Double { .. } | CastType::Float => Some("double_typecast"),
            CastType::Decimal { .. } => Some("decimal_typecast"),
            _ => None,
        };
        if let Some(operation) = operation {
            return Err(SqlError::illegal_type(fixed.name(), operation));
        }
    }
    crate::dynamic_columns::cast_to(&mut operand, to);
    let ty = crate::cast::type_of(&operand, to, env);
    Ok(Expr::Cast(Box::new(Cast { operand, to, ty })))
}

/// Builds `CONVERT(operand USING charset)`.
pub fn convert_using(operand: Expr, collation: Collation, env: &SessionEnv) -> SqlResult<Expr> {
    let mut made = cast(operand, CastType::Char { length: None, collation }, env)?;
    if let Expr::Cast(node) = &mut made {
        node.ty.decimals = STRING_DECIMALS;
    }
    Ok(made)
}

/// Builds `operand COLLATE collation`.
pub fn collate(operand: Expr, collation: Collation, env: &SessionEnv) -> SqlResult<Expr> {
    if matches!(operand, Expr::Row(_)) {
        return Err(wrong_columns(1));
    }
    let from = operand.ty();
    let charset = if from.class() == TypeClass::String && !from.null_literal {
        from.collation.charset()
    } else {
        env.collation_connection.charset()
    };
    if charset != collation.charset() {
        return Err(SqlError::collation_mismatch(collation.name(), charset.name()));
    }
    let to = CastType::Char { length: None, collation };
    let cast = crate::cast::type_of(&operand, to, env);
    let ascii = cast.ascii;
    let mut ty =
        ExprType::string(cast.length, collation, Coercibility::Explicit).with_nullable(cast.nullable);
    ty.ascii = ascii;
    Ok(Expr::Cast(Box::new(Cast { operand, to, ty })))
}

/// Builds `(a, b, ..)`. A row of one element is that element.
pub fn row(mut items: Vec<Expr>) -> Expr {
    if items.len() == 1 { items.remove(0) } else { Expr::Row(items) }
}

/// Builds `operand +/- INTERVAL amount unit`, DATE_ADD, DATE_SUB.
pub fn date_arith(
    operand: Expr,
    op: IntervalOp,
    amount: Expr,
    unit: IntervalUnit,
    env: &SessionEnv,
) -> SqlResult<Expr> {
    let function = match op {
        IntervalOp::Add => &date_calc::DATE_ADD,
        IntervalOp::Sub => &date_calc::DATE_SUB,
    };
    let ty = date_calc::date_arith_type(&operand, &amount, unit, env);
    let made = call(function, vec![operand, amount], Extra::Unit(unit), env)?;
    Ok(with_type(made, ty))
}

/// Replaces the type of a call by the one that its special syntax determines.
fn with_type(made: Expr, ty: ExprType) -> Expr {
    match made {
        Expr::Call(mut node) => {
            node.ty = ty;
            Expr::Call(node)
        }
        other => other,
    }
}

/// Builds `EXTRACT(unit FROM operand)`.
pub fn extract(unit: IntervalUnit, operand: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let ty = date_part::extract_type(unit, &operand);
    let made = call(&date_part::EXTRACT, vec![operand], Extra::Unit(unit), env)?;
    Ok(with_type(made, ty))
}

/// Builds `TIMESTAMPADD(unit, amount, operand)`.
pub fn timestamp_add(unit: IntervalUnit, amount: Expr, operand: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    date_arith(operand, IntervalOp::Add, amount, unit, env)
}

/// Builds `TIMESTAMPDIFF(unit, from, to)`.
pub fn timestamp_diff(unit: IntervalUnit, from: Expr, to: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    call(&date_calc::TIMESTAMP_DIFF, vec![from, to], Extra::Unit(unit), env)
}

/// Builds `TRIM([side] [remove] FROM operand)`.
pub fn trim(side: TrimSide, remove: Option<Expr>, operand: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let args = std::iter::once(operand).chain(remove).collect();
    call(&text_cut::TRIM, args, Extra::Side(side), env)
}

/// Builds `CHAR(n, .. USING charset)`. Without USING the result is a binary string.
pub fn char_using(args: Vec<Expr>, collation: Option<Collation>, env: &SessionEnv) -> SqlResult<Expr> {
    let Some(collation) = collation else { return call(&text_build::CHAR, args, Extra::None, env) };
    let bytes = args.len() as u32 * 4;
    let ty = ExprType::string(bytes / collation.charset().mbmaxlen(), collation, Coercibility::Coercible);
    let made = call(&text_build::CHAR, args, Extra::Name(collation.charset().name().into()), env)?;
    Ok(with_type(made, ty))
}

/// Builds `@name`. `ty` is the type of the variable's current value; a long text if unknown.
pub fn user_variable(name: &str, ty: Option<ExprType>, env: &SessionEnv) -> Expr {
    let ty = ty.map(widest).map(info::implicit);
    let ty =
        ty.unwrap_or_else(|| ExprType::string(16 << 20, env.collation_connection, Coercibility::Implicit));
    variable(&info::USER_VARIABLE, Extra::Name(name.to_lowercase().into()), ty.with_nullable(true))
}

/// Returns the type of a variable whose value has type `ty` now. It is wider, because the next execution may
/// find another value.
fn widest(ty: ExprType) -> ExprType {
    match ty.class() {
        TypeClass::Int => ExprType { unsigned: ty.unsigned, ..ExprType::bigint(20) },
        TypeClass::String => ty.into_long_text(),
        _ => ty,
    }
}

fn variable(function: &'static Function, extra: Extra, ty: ExprType) -> Expr {
    Expr::Call(Box::new(Call { function, args: Vec::new(), extra, ty }))
}

/// Builds `@name := value`.
pub fn user_variable_assign(name: &str, value: Expr, env: &SessionEnv) -> SqlResult<Expr> {
    let ty = value.ty();
    let ty = if ty.is_temporal() {
        ExprType::string(ty.length, env.collation_connection, Coercibility::Implicit)
    } else {
        info::implicit(ty)
    };
    let made = call(&info::ASSIGN, vec![value], Extra::Name(name.to_lowercase().into()), env)?;
    Ok(with_type(made, ty))
}

/// Builds `@@name`. The type is derived from the current value.
pub fn system_variable(scope: VariableScope, name: &str, current: &Value, env: &SessionEnv) -> Expr {
    let _ = env;
    let mut ty = literal_type(current);
    ty.nullable = true;
    match current {
        // ON or OFF.
        Value::Int(_) => ty = ExprType::bigint(1),
        Value::UInt(_) => ty = ExprType::bigint(21).with_unsigned(true),
        Value::Double(_) => ty = ExprType::double_fixed(21, 6),
        Value::Str(_) => {
            (ty.collation, ty.coercibility) = (Collation::UTF8MB3_GENERAL_CI, Coercibility::SystemConstant);
        }
        _ => {}
    }
    variable(&info::SYSTEM_VARIABLE, Extra::Variable(scope, name.to_lowercase().into()), ty)
}
