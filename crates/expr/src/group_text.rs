//! Aggregates that concatenate a group: GROUP_CONCAT, JSON_ARRAYAGG, JSON_OBJECTAGG, and the rows for an
//! aggregate function that is a program.

use std::cmp::Ordering;
use std::ops::Range;

use cohort_types::{Collation, ErrorCode, SqlResult, Value, row_memory_bytes};

use crate::aggregate_call::{Aggregate, AggregateKind, Quantifier};
use crate::compare::compare_same;
use crate::context::EvalContext;
use crate::convert::{string_value, text_of_cow};
use crate::expr::Expr;
use crate::json_write::append_json;
use crate::sort::sort_rows;

/// Accumulated parts. Without an order or LIMIT, parts are appended to the text immediately; otherwise they
/// are stored with their sort keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextState {
    parts: Vec<Part>,
    text: Vec<u8>,
    /// Number of parts in the text.
    count: u64,
    /// True once the text has reached `group_concat_max_len`; further parts are dropped.
    is_full: bool,
}

#[derive(Clone, Debug)]
struct Part {
    keys: Vec<Value>,
    text: Vec<u8>,
}

impl Part {
    fn bytes(&self) -> usize {
        self.text.capacity() + size_of::<Part>() + row_memory_bytes(&self.keys)
    }
}

impl TextState {
    /// Returns the bytes charged to the statement.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.text.capacity() + self.parts.iter().map(Part::bytes).sum::<usize>()
    }

    /// Appends a separator and a part.
    fn append(&mut self, aggregate: &Aggregate, part: &[u8], ctx: &EvalContext<'_>) -> SqlResult<()> {
        self.count += 1;
        if self.is_full {
            return Ok(());
        }
        let (open, separator) = (brackets(aggregate).0, separator(aggregate));
        let before = if self.count == 1 { open } else { separator };
        let needed = self.text.len() + before.len() + part.len();
        if needed > self.text.capacity() {
            // Both buffers exist while one is copied to the other.
            let capacity = needed.max(self.text.capacity().saturating_mul(2));
            let former = self.text.capacity();
            ctx.keep(capacity)?;
            self.text.reserve_exact(capacity - self.text.len());
            ctx.let_go(capacity + former - self.text.capacity());
        }
        self.text.extend_from_slice(before.as_bytes());
        self.text.extend_from_slice(part);
        let room = usize::try_from(ctx.env.group_concat_max_len).unwrap_or(usize::MAX);
        if self.text.len() > room && aggregate.kind == AggregateKind::GroupConcat {
            // Truncates at a character boundary.
            let is_inside = |end: usize| {
                end > 0 && aggregate.ty.collation != Collation::BINARY && self.text[end] & 0xC0 == 0x80
            };
            let mut end = room;
            while is_inside(end) {
                end -= 1;
            }
            self.text.truncate(end);
            self.is_full = true;
            let warning = format!("Row {} was cut by GROUP_CONCAT()", self.count);
            ctx.warn(ErrorCode::CutValueGroupConcat, warning)?;
        }
        Ok(())
    }
}

/// Adds a row. GROUP_CONCAT skips rows with a NULL argument.
pub(crate) fn add(
    aggregate: &Aggregate,
    state: &mut TextState,
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<()> {
    let mut text = Vec::new();
    match aggregate.kind {
        AggregateKind::GroupConcat => {
            for arg in &aggregate.args {
                let part = match arg {
                    // As a column that is gathered, a boolean variable is a number.
                    Expr::Call(call) if call.is_system_variable() => text_of_cow(arg.eval(row, ctx)?, 0),
                    _ => arg.eval_text(row, ctx)?,
                };
                match part {
                    None => return Ok(()),
                    Some(part) => text.extend_from_slice(&part),
                }
            }
        }
        AggregateKind::Rows => {
            let values: SqlResult<Vec<Value>> =
                aggregate.args.iter().map(|arg| Ok(arg.eval_output(row, ctx)?.into_owned())).collect();
            cohort_types::append_row(&values?, &mut text);
        }
        AggregateKind::JsonObjectagg => {
            let Some(key) = aggregate.args[0].eval_text(row, ctx)? else { return Ok(()) };
            crate::json_write::append_string(&key, &mut text);
            text.push(b':');
            append_json(&aggregate.args[1], row, ctx, &mut text)?;
        }
        _ => append_json(&aggregate.args[0], row, ctx, &mut text)?,
    }
    if !keeps_parts(aggregate) {
        return state.append(aggregate, &text, ctx);
    }
    let keys: SqlResult<Vec<Value>> =
        order_exprs(aggregate).map(|(key, _)| Ok(key.eval(row, ctx)?.into_owned())).collect();
    let part = Part { keys: keys?, text };
    ctx.keep(part.bytes())?;
    state.parts.push(part);
    Ok(())
}

/// Sorts and concatenates the parts and applies LIMIT. The memory of the state stays charged until the text
/// is complete.
pub(crate) fn finish(aggregate: &Aggregate, mut state: TextState, ctx: &EvalContext<'_>) -> SqlResult<Value> {
    if state.parts.is_empty() && state.count == 0 {
        return Ok(Value::Null);
    }
    ctx.keep(state.kept_bytes())?;
    let key_bytes = state.parts.iter().map(|part| row_memory_bytes(&part.keys)).sum();
    sort_rows(&mut state.parts, key_bytes, &|a, b| order(aggregate, a, b), ctx)?;
    let parts = std::mem::take(&mut state.parts);
    let range = limited(aggregate, parts.len());
    for (n, part) in parts.into_iter().enumerate() {
        if range.contains(&n) {
            state.append(aggregate, &part.text, ctx)?;
        }
        ctx.let_go(part.bytes());
    }
    let (open, close) = brackets(aggregate);
    if state.count == 0 {
        state.text.extend_from_slice(open.as_bytes());
    }
    ctx.let_go(state.text.capacity());
    let mut text = state.text;
    text.extend_from_slice(close.as_bytes());
    Ok(string_value(text, aggregate.ty.collation))
}

/// Returns the brackets around the text; GROUP_CONCAT has none.
fn brackets(aggregate: &Aggregate) -> (&'static str, &'static str) {
    match aggregate.kind {
        AggregateKind::JsonArrayagg => ("[", "]"),
        AggregateKind::JsonObjectagg => ("{", "}"),
        _ => ("", ""),
    }
}

fn separator(aggregate: &Aggregate) -> &str {
    match aggregate.kind {
        AggregateKind::JsonObjectagg => ", ",
        AggregateKind::Rows => "",
        _ => aggregate.options.separator.as_deref().unwrap_or(","),
    }
}

/// Returns true if the parts must be sorted or counted before they are concatenated.
fn keeps_parts(aggregate: &Aggregate) -> bool {
    aggregate.options.limit.is_some() || order_exprs(aggregate).next().is_some()
}

fn order(aggregate: &Aggregate, a: &Part, b: &Part) -> Ordering {
    for (((key, descending), x), y) in order_exprs(aggregate).zip(&a.keys).zip(&b.keys) {
        let order = compare_same(x, y, key.ty_cow().collation);
        if order.is_ne() {
            return if descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

/// Returns the sort keys with true for descending ones: those of ORDER BY. Without ORDER BY, DISTINCT sorts
/// by the arguments, as in MariaDB, which stores distinct values in a tree.
fn order_exprs(aggregate: &Aggregate) -> Box<dyn Iterator<Item = (&Expr, bool)> + '_> {
    let options = &aggregate.options;
    if options.order.is_empty() && options.quantifier == Quantifier::Distinct {
        return Box::new(aggregate.args.iter().map(|arg| (arg, false)));
    }
    Box::new(options.order.iter().map(|key| (&key.expr, key.descending)))
}

/// Returns the positions of the parts within LIMIT.
fn limited(aggregate: &Aggregate, count: usize) -> Range<usize> {
    let Some((offset, rows)) = aggregate.options.limit else { return 0..count };
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(count);
    from..from.saturating_add(usize::try_from(rows).unwrap_or(usize::MAX)).min(count)
}
