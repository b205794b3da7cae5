//! Aggregates that make one text of a group: GROUP_CONCAT, JSON_ARRAYAGG, JSON_OBJECTAGG.

use std::cmp::Ordering;

use cohort_types::{ErrorCode, SqlResult, Value, row_memory_bytes};

use crate::aggregate::{Aggregate, AggregateKind, Quantifier};
use crate::compare::compare_same;
use crate::context::EvalContext;
use crate::eval::string_value;
use crate::expr::Expr;
use crate::json_write::append_json;
use crate::sort::sort_rows;

/// The parts gathered so far, with what orders them.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextState {
    parts: Vec<Part>,
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
    /// Bytes charged to the statement.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.parts.iter().map(Part::bytes).sum()
    }
}

/// Takes a row in; GROUP_CONCAT leaves rows out in which an argument is NULL.
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
                match arg.eval_text(row, ctx)? {
                    None => return Ok(()),
                    Some(part) => text.extend_from_slice(&part),
                }
            }
        }
        AggregateKind::JsonObjectagg => {
            let Some(key) = aggregate.args[0].eval_text(row, ctx)? else { return Ok(()) };
            crate::json_write::append_string(&key, &mut text);
            text.push(b':');
            append_json(&aggregate.args[1], row, ctx, &mut text)?;
        }
        _ => append_json(&aggregate.args[0], row, ctx, &mut text)?,
    }
    let keys: SqlResult<Vec<Value>> =
        order_exprs(aggregate).map(|(key, _)| Ok(key.eval(row, ctx)?.into_owned())).collect();
    let part = Part { keys: keys?, text };
    ctx.keep(part.bytes())?;
    state.parts.push(part);
    Ok(())
}

/// Orders, joins and cuts.
pub(crate) fn finish(aggregate: &Aggregate, mut state: TextState, ctx: &EvalContext<'_>) -> SqlResult<Value> {
    if state.parts.is_empty() {
        return Ok(Value::Null);
    }
    let key_bytes = state.parts.iter().map(|part| row_memory_bytes(&part.keys)).sum();
    sort_rows(&mut state.parts, key_bytes, &|a, b| order(aggregate, a, b), ctx)?;
    let parts = limited(aggregate, &state.parts);
    let (open, close) = match aggregate.kind {
        AggregateKind::JsonArrayagg => ("[", "]"),
        AggregateKind::JsonObjectagg => ("{", "}"),
        _ => ("", ""),
    };
    let separator = match aggregate.kind {
        AggregateKind::JsonObjectagg => ", ",
        _ => aggregate.options.separator.as_deref().unwrap_or(","),
    };
    let collation = aggregate.ty.collation;
    let room = usize::try_from(ctx.env.group_concat_max_len).unwrap_or(usize::MAX);
    let mut text = open.as_bytes().to_vec();
    for (n, part) in parts.iter().enumerate() {
        if n > 0 {
            text.extend_from_slice(separator.as_bytes());
        }
        text.extend_from_slice(&part.text);
        if text.len() > room && aggregate.kind == AggregateKind::GroupConcat {
            // The cut falls between characters.
            let mut end = room;
            while end > 0 && collation != cohort_types::Collation::BINARY && text[end] & 0xC0 == 0x80 {
                end -= 1;
            }
            text.truncate(end);
            ctx.warn(ErrorCode::CutValueGroupConcat, format!("Row {} was cut by GROUP_CONCAT()", n + 1))?;
            break;
        }
    }
    text.extend_from_slice(close.as_bytes());
    Ok(string_value(text, collation))
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

/// What orders the parts, and whether downwards: ORDER BY; without it DISTINCT orders by the arguments, as in
/// MariaDB, where it is a tree.
fn order_exprs(aggregate: &Aggregate) -> Box<dyn Iterator<Item = (&Expr, bool)> + '_> {
    let options = &aggregate.options;
    if options.order.is_empty() && options.quantifier == Quantifier::Distinct {
        return Box::new(aggregate.args.iter().map(|arg| (arg, false)));
    }
    Box::new(options.order.iter().map(|key| (&key.expr, key.descending)))
}

fn limited<'p>(aggregate: &Aggregate, parts: &'p [Part]) -> &'p [Part] {
    let Some((offset, count)) = aggregate.options.limit else { return parts };
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(parts.len());
    let to = from.saturating_add(usize::try_from(count).unwrap_or(usize::MAX)).min(parts.len());
    &parts[from..to]
}
