//! EXTRACTVALUE and UPDATEXML: evaluation of XPath on XML.
//!
//! Node sets are computed step by step. All other expressions become SQL expressions, built from the contents
//! of node sets and evaluated as SQL. Each node of a set has its position among the nodes that the same step
//! found from the same node: `//b[1]` selects every first `b`.

use cohort_types::{Collation, ErrorCode, Interrupt, SqlError, SqlResult, Str, Value};

use crate::args::{Args, or_null};
use crate::build::{
    BinaryOp, UnaryOp, and, build_binary, build_unary, call, compare_exprs, or, user_variable,
};
use crate::context::{EvalContext, SessionEnv};
use crate::convert;
use crate::expr::{CompareOp, Expr};
use crate::expr_type::ExprType;
use crate::function::{Anywhere, Extra, Function, Rows};
use crate::typing::{joined_collation, long_string_of};
use crate::xml::{Document, NodeKind, parsed as parsed_xml};
use crate::xpath::{self, Axis, Binary, Path};
use crate::{math, text_build, text_cut, text_size};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("extractvalue", 2, 2, type_of, extract, Rows, Anywhere).of_statement(),
    Function::new("updatexml", 3, 3, type_of, update, Rows, Anywhere).of_statement(),
];

fn type_of(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let path = &args[1];
    if !path.is_const_per_execution() {
        return Err(SqlError::new(ErrorCode::UnknownError, "Only constant XPATH queries are supported"));
    }
    if let Expr::Const(node) = path
        && !node.value.is_null()
    {
        // Syntax errors are reported when the statement is prepared.
        xpath::parsed(node.value.to_text().as_bytes())?;
    }
    let derived = joined_collation(args, env, "extractvalue")?;
    let ty = long_string_of(derived, u64::from(u32::MAX / 4));
    Ok(ExprType { decimals: 0, ..ty }.with_nullable(true))
}

fn extract(a: Args<'_>) -> SqlResult<Value> {
    let (text, path) = (or_null!(a.text(0)), or_null!(a.text(1)));
    let path = xpath::parsed(&path)?;
    with_document(&a, &text, |query| {
        let answer = query.value(&path, None)?;
        let text = answer.eval_text(&[], a.ctx)?.map(std::borrow::Cow::into_owned);
        text.map_or(Ok(Value::Null), |text| a.bounded_string(text))
    })
}

fn update(a: Args<'_>) -> SqlResult<Value> {
    let (text, path, new) = (or_null!(a.text(0)), or_null!(a.text(1)), or_null!(a.text(2)));
    let path = xpath::parsed(&path)?;
    if !path.is_nodes() {
        return Ok(Value::Null);
    }
    with_document(&a, &text, |query| {
        let found = query.nodes(&path, None)?;
        let [found] = &found[..] else { return a.string(&text[..]) };
        if found.node == 0 {
            return a.string(&new[..]);
        }
        let node = query.document.nodes[found.node];
        let (mut start, mut end) = (node.start, node.closed);
        if node.kind == NodeKind::Tag {
            start -= 1;
            // Exactly one byte: MariaDB keeps the rest of `</b  >`.
            end = (end + 1).min(text.len());
        }
        let out = [&text[..start], &new[..], &text[end..]].concat();
        a.bounded_string(out)
    })
}

/// Evaluates a query on a document. Returns NULL with a warning if the text is invalid.
fn with_document<'t>(
    a: &Args<'t>,
    text: &[u8],
    ask: impl FnOnce(&Query<'_, '_>) -> SqlResult<Value>,
) -> SqlResult<Value> {
    let document = match parsed_xml(text, a.ctx)? {
        Ok(document) => document,
        Err(what) => {
            a.ctx.warn(ErrorCode::WrongValue, format!("Incorrect XML value: '{what}'"))?;
            return Ok(Value::Null);
        }
    };
    let query = Query { document: &document, ctx: a.ctx, collation: a.call.ty.collation };
    let answer = ask(&query);
    a.ctx.let_go(document.charged_bytes);
    answer
}

/// A node of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    node: usize,
    /// Position among the nodes of its step, from 0.
    place: usize,
    /// Size of the set that a predicate is evaluated on.
    of: usize,
}

const FOUND_BYTES: usize = std::mem::size_of::<Found>();

struct Query<'d, 'c> {
    document: &'d Document<'d>,
    ctx: &'c EvalContext<'c>,
    collation: Collation,
}

impl Query<'_, '_> {
    fn env(&self) -> &SessionEnv {
        self.ctx.env
    }

    /// Builds a call of a function of a family.
    fn native(&self, family: &'static [Function], name: &str, args: Vec<Expr>) -> SqlResult<Expr> {
        let function = family.iter().find(|function| function.name == name).expect("a known function");
        call(function, args, Extra::None, self.env())
    }

    fn text(&self, bytes: Vec<u8>) -> Expr {
        Expr::constant(Value::Str(Str { bytes, collation: self.collation }))
    }

    /// Computes a node set. A relative path starts at `context`.
    fn nodes(&self, path: &Path, context: Option<Found>) -> SqlResult<Vec<Found>> {
        self.ctx.check_stack()?;
        self.ctx.steps(1)?;
        let mut out = Vec::new();
        match path {
            Path::Root => out.push(Found { node: 0, place: 0, of: 1 }),
            Path::Context => out.extend(context),
            Path::Step(from, axis, name) => {
                let from = self.nodes(from, context)?;
                self.step(&from, *axis, name.as_deref(), &mut out)?;
            }
            Path::Filter(from, condition) => {
                let from = self.nodes(from, context)?;
                for found in &from {
                    let asked = Found { of: from.len(), ..*found };
                    if self.condition(condition, Some(asked))?.passes(&[], self.ctx)? {
                        out.push(Found { place: out.len(), ..asked });
                    }
                }
            }
            Path::Index(from, index) => {
                let from = self.nodes(from, context)?;
                for found in &from {
                    let asked = Found { of: from.len(), ..*found };
                    let index = self.value(index, Some(asked))?;
                    let index = convert::to_int(&*index.eval(&[], self.ctx)?, self.ctx)?;
                    if index.map(convert::clamp_signed) == i64::try_from(found.place + 1).ok() {
                        out.push(Found { place: out.len(), ..asked });
                    }
                }
            }
            Path::Union(left, right) => {
                let mut all = self.nodes(left, context)?;
                all.extend(self.nodes(right, context)?);
                all.sort_by_key(|found| found.node);
                all.dedup_by_key(|found| found.node);
                out = all;
                let of = out.len();
                out.iter_mut().enumerate().for_each(|(place, found)| (found.place, found.of) = (place, of));
            }
            _ => unreachable!("the parser lets only sets stand here"),
        }
        self.ctx.steps(u32::try_from(out.len()).unwrap_or(u32::MAX))?;
        Ok(out)
    }

    fn step(&self, from: &[Found], axis: Axis, name: Option<&[u8]>, out: &mut Vec<Found>) -> SqlResult<()> {
        let nodes = &self.document.nodes;
        let is_named = |node: usize| name.is_none_or(|name| self.document.name(node) == name);
        if matches!(axis, Axis::Ancestor { .. } | Axis::Parent) {
            return self.outward(from, axis, &is_named, out);
        }
        for found in from {
            let before = out.len();
            let mut add = |node: usize, place: &mut usize| -> SqlResult<()> {
                if out.len() == out.capacity() {
                    // A set may contain a node several times: `//*//*`.
                    let more = out.len().max(64);
                    self.ctx.keep(more * FOUND_BYTES)?;
                    self.ctx.let_go(more * FOUND_BYTES);
                    out.reserve(more);
                }
                out.push(Found { node, place: *place, of: 0 });
                *place += 1;
                Ok(())
            };
            let mut place = if axis == Axis::OwnName { before } else { 0 };
            let own = found.node;
            if matches!(axis, Axis::OwnName | Axis::Descendant { with_own: true }) && is_named(own) {
                add(own, &mut place)?;
            }
            if axis == Axis::OwnName {
                continue;
            }
            let wanted = if axis == Axis::Attribute { NodeKind::Attribute } else { NodeKind::Tag };
            let is_deep = matches!(axis, Axis::Descendant { .. });
            let inside = self.document.inside(own);
            self.ctx.steps(u32::try_from(inside.len() / 16).unwrap_or(u32::MAX))?;
            for node in inside {
                let fits = nodes[node].kind == wanted && (is_deep || nodes[node].parent == own);
                if fits && is_named(node) {
                    add(node, &mut place)?;
                }
            }
        }
        Ok(())
    }

    /// Appends parents or ancestors without duplicates.
    fn outward(
        &self,
        from: &[Found],
        axis: Axis,
        is_named: &dyn Fn(usize) -> bool,
        out: &mut Vec<Found>,
    ) -> SqlResult<()> {
        let nodes = &self.document.nodes;
        let mut met = Vec::new();
        for found in from {
            self.ctx.steps(1)?;
            if matches!(axis, Axis::Ancestor { with_own: true }) && is_named(found.node) {
                met.push(found.node);
            }
            let mut node = nodes[found.node].parent;
            if axis == Axis::Parent {
                met.extend(is_named(node).then_some(node));
                continue;
            }
            while nodes[node].parent != node {
                self.ctx.steps(1)?;
                met.extend(is_named(node).then_some(node));
                node = nodes[node].parent;
            }
        }
        met.sort_unstable();
        met.dedup();
        let count = met.len();
        // Positions of ancestors count from the node outwards.
        let place = |n: usize| if axis == Axis::Parent { n } else { count - 1 - n };
        out.extend(met.into_iter().enumerate().map(|(n, node)| Found { node, place: place(n), of: 0 }));
        Ok(())
    }

    /// Returns the text children of the nodes of a set.
    fn texts(&self, found: &[Found]) -> SqlResult<Vec<usize>> {
        let nodes = &self.document.nodes;
        let mut texts = Vec::new();
        for found in found {
            let inside = self.document.inside(found.node);
            self.ctx.steps(u32::try_from(1 + inside.len() / 16).unwrap_or(u32::MAX))?;
            let is_text = |n: &usize| nodes[*n].kind == NodeKind::Text && nodes[*n].parent == found.node;
            texts.extend(inside.filter(is_text));
        }
        Ok(texts)
    }

    /// Returns a node set as text: its texts in document order, separated by spaces.
    fn joined(&self, path: &Path, context: Option<Found>) -> SqlResult<Expr> {
        let mut texts = self.texts(&self.nodes(path, context)?)?;
        texts.sort_unstable();
        texts.dedup();
        let mut out = Vec::new();
        for node in texts {
            if !out.is_empty() {
                out.push(b' ');
            }
            out.extend_from_slice(self.document.name(node));
        }
        Ok(self.text(out))
    }

    /// Returns the value of an expression as a SQL expression of constants.
    fn value(&self, path: &Path, context: Option<Found>) -> SqlResult<Expr> {
        self.ctx.check_stack()?;
        if path.is_nodes() {
            return self.joined(path, context);
        }
        Ok(match path {
            Path::Text(text) => self.text(text.clone()),
            Path::Integer(number) => Expr::constant(Value::Int(*number)),
            Path::Fraction(text) => fraction(text),
            Path::Variable(name) => user_variable(name, None, self.env()),
            Path::Negative(inner) => build_unary(UnaryOp::Neg, self.number(inner, context)?, self.env())?,
            Path::Binary(op, left, right) => self.binary(*op, left, right, context)?,
            Path::Call(function, args) => self.call(*function, args, context)?,
            _ => unreachable!("sets were answered"),
        })
    }

    /// Returns an operand for arithmetic: a node set is the number of its text.
    fn number(&self, path: &Path, context: Option<Found>) -> SqlResult<Expr> {
        let value = self.value(path, context)?;
        match path.is_nodes() {
            true => self.real(&value),
            false => Ok(value),
        }
    }

    fn real(&self, value: &Expr) -> SqlResult<Expr> {
        let number = convert::to_f64(&*value.eval_number(&[], self.ctx)?, self.ctx)?;
        Ok(Expr::constant(number.map_or(Value::Null, Value::Double)))
    }

    /// Returns an operand for AND and similar operators. As in MariaDB, a node set is true if it has exactly
    /// one node; in XPath, one node or more.
    fn condition(&self, path: &Path, context: Option<Found>) -> SqlResult<Expr> {
        match path.is_nodes() {
            true => Ok(Expr::constant(Value::bool(self.nodes(path, context)?.len() == 1))),
            false => self.value(path, context),
        }
    }

    fn binary(&self, op: Binary, left: &Path, right: &Path, context: Option<Found>) -> SqlResult<Expr> {
        let compared = |op| self.compared(op, left, right, context);
        let computed =
            |op| build_binary(op, self.number(left, context)?, self.number(right, context)?, self.env());
        let conditions = || -> SqlResult<Vec<Expr>> {
            Ok(vec![self.condition(left, context)?, self.condition(right, context)?])
        };
        match op {
            Binary::Or => Ok(or(conditions()?)),
            Binary::And => Ok(and(conditions()?)),
            Binary::Equal => compared(CompareOp::Eq),
            Binary::Unequal => compared(CompareOp::Ne),
            Binary::Less => compared(CompareOp::Lt),
            Binary::LessOrEqual => compared(CompareOp::Le),
            Binary::Greater => compared(CompareOp::Gt),
            Binary::GreaterOrEqual => compared(CompareOp::Ge),
            Binary::Add => computed(BinaryOp::Add),
            Binary::Subtract => computed(BinaryOp::Sub),
            Binary::Multiply => computed(BinaryOp::Mul),
            Binary::Divide => computed(BinaryOp::IntDiv),
            Binary::Remainder => computed(BinaryOp::Mod),
        }
    }

    /// Compares. A comparison with a node set is true if it is true for one of its texts.
    fn compared(&self, op: CompareOp, left: &Path, right: &Path, context: Option<Found>) -> SqlResult<Expr> {
        if !left.is_nodes() && !right.is_nodes() {
            return compare_exprs(op, self.value(left, context)?, self.value(right, context)?);
        }
        let (set, other) = if left.is_nodes() { (left, right) } else { (right, left) };
        let other = self.value(other, context)?;
        for node in self.texts(&self.nodes(set, context)?)? {
            let own = self.text(self.document.name(node).to_vec());
            let compared = match left.is_nodes() {
                true => compare_exprs(op, own, other.clone())?,
                false => compare_exprs(op, other.clone(), own)?,
            };
            if compared.passes(&[], self.ctx)? {
                return Ok(Expr::constant(Value::bool(true)));
            }
        }
        Ok(Expr::constant(Value::bool(false)))
    }

    fn call(&self, function: xpath::Function, args: &[Path], context: Option<Found>) -> SqlResult<Expr> {
        use xpath::Function::*;
        let values = || args.iter().map(|arg| self.value(arg, context)).collect::<SqlResult<Vec<Expr>>>();
        let whole = |n: usize| Expr::constant(Value::Int(n as i64));
        let found = || context.expect("the parser refuses it without a context");
        Ok(match function {
            Last => whole(found().of),
            Position => whole(found().place + 1),
            True => Expr::constant(Value::bool(true)),
            False => Expr::constant(Value::bool(false)),
            Count => whole(self.nodes(&args[0], context)?.len()),
            Sum => {
                let mut sum = 0.0;
                for node in self.texts(&self.nodes(&args[0], context)?)? {
                    let text = Value::Str(Str {
                        bytes: self.document.name(node).to_vec(),
                        collation: self.collation,
                    });
                    // An invalid number does not warn here.
                    sum += text.to_f64(&mut Vec::new()).unwrap_or(0.0);
                }
                Expr::constant(Value::Double(sum))
            }
            Not => build_unary(UnaryOp::Not, self.condition(&args[0], context)?, self.env())?,
            Boolean if args[0].is_nodes() => self.condition(&args[0], context)?,
            Boolean => {
                let real = self.real(&self.value(&args[0], context)?)?;
                compare_exprs(CompareOp::Ne, real, Expr::constant(Value::Int(0)))?
            }
            Number => self.real(&self.value(&args[0], context)?)?,
            Floor => self.native(math::FUNCTIONS, "floor", values()?)?,
            Ceiling => self.native(math::FUNCTIONS, "ceiling", values()?)?,
            Round => {
                let mut args = values()?;
                args.push(Expr::constant(Value::Int(0)));
                self.native(math::FUNCTIONS, "round", args)?
            }
            Concat => self.native(text_build::FUNCTIONS, "concat", values()?)?,
            Contains => {
                let mut args = values()?;
                args.reverse();
                let place = self.native(text_size::FUNCTIONS, "locate", args)?;
                compare_exprs(CompareOp::Ne, place, Expr::constant(Value::Int(0)))?
            }
            Substring => self.native(text_cut::FUNCTIONS, "substr", values()?)?,
            Length => {
                let args = match args {
                    [] => vec![self.joined(&Path::Context, context)?],
                    _ => values()?,
                };
                self.native(text_size::FUNCTIONS, "char_length", args)?
            }
        })
    }
}

/// Returns a number with a decimal point as a DOUBLE with the written digits.
fn fraction(text: &[u8]) -> Expr {
    let text = String::from_utf8_lossy(text);
    let decimals = text.split_once('.').map_or(0, |(_, digits)| digits.len()).min(30);
    let ty = ExprType::double_fixed(text.len() as u32, decimals as u8).with_nullable(false);
    let number = text.trim_end_matches('.').parse().expect("digits and a point");
    Expr::typed_constant(Value::Double(number), ty)
}
