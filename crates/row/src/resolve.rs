//! Computes the key spans of an [`Access`] ([`resolve`]).
//!
//! A key value is converted to the column's type only if the conversion is lossless and the index order
//! equals the comparison order. Otherwise the span is widened at that column, in the worst case to the whole
//! index. The caller's condition, checked on every row, then decides.

use std::cmp::Ordering;
use std::ops::Bound;

use cohort_catalog::{ROWS, Table};
use cohort_engine::KeyRange;
use cohort_expr::{CompareHow, EvalContext, Expr, compare};
use cohort_optimize::{Access, LikeStart, Span, Spans};
use cohort_table::OpenTable;
use cohort_types::{
    Collation, ColumnType, KeyPart, NoWarnings, SqlMode, SqlResult, StoreContext, Str, TimeZone, TypeKind,
    Value, like_prefix, prefix_end, successor,
};

use crate::access::{KeySpan, KeySpans};

/// A key value converted to the column's type.
enum KeyValue {
    /// The value converts without loss.
    Exact(Value),
    /// Falls between two integers; holds the lower one.
    Between(i128),
    /// No column value is equal to it, and none lies between it and this one.
    SearchHint(Value),
    /// A time near a change of the zone's clock: equal values may lie anywhere between these two.
    About(Value, Value),
    /// No column value is equal: NULL, or below or above all values of the type.
    Null,
    Below,
    Above,
    /// Unknown: the span cannot be narrowed.
    Unknown,
}

/// Computes the spans of an access. `row` holds the columns of the preceding tables of a join.
pub fn resolve(
    access: &Access,
    table: &OpenTable,
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<KeySpans> {
    resolve_exactly(access, table, row, ctx).map(|(spans, _)| spans)
}

/// Computes the spans, and returns true if they are exact: every row in them satisfies the conditions they
/// were made from. This holds if all values were integers (or NULL) for integer columns.
pub fn resolve_exactly(
    access: &Access,
    table: &OpenTable,
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<(KeySpans, bool)> {
    let mut exact = true;
    let spans = match &access.spans {
        Spans::Full => vec![KeySpan::Range(KeyRange::default())],
        Spans::Words(search) => {
            return resolve_words(access.index, search, ctx).map(|spans| (spans, false));
        }
        Spans::List(list) => {
            let mut spans = Vec::with_capacity(list.len());
            for span in list {
                spans.extend(resolve_span(span, table, access.index, row, ctx, &mut exact)?);
            }
            spans
        }
    };
    let mut spans = disjoint(spans);
    if access.reverse {
        spans.reverse();
    }
    Ok((KeySpans { index: access.index, reverse: access.reverse, spans }, exact))
}

/// Returns the spans of a full-text search: those of the words one of which every match must contain. Returns
/// the whole table if there are no such words.
fn resolve_words(index: usize, search: &Expr, ctx: &EvalContext<'_>) -> SqlResult<KeySpans> {
    let range = |(start, end)| KeySpan::Range(KeyRange { start: Some(start), end });
    Ok(match search.word_ranges(ctx)? {
        Some(ranges) => KeySpans { index, reverse: false, spans: ranges.into_iter().map(range).collect() },
        None => KeySpans { index: ROWS, reverse: false, spans: vec![KeySpan::Range(KeyRange::default())] },
    })
}

fn resolve_span(
    span: &Span,
    table: &OpenTable,
    at: usize,
    row: &[Value],
    ctx: &EvalContext<'_>,
    exact: &mut bool,
) -> SqlResult<Option<KeySpan>> {
    let index = &table.indexes[at];
    let mut key_value = |expr: &Expr, part: &KeyPart| -> SqlResult<_> {
        let (value, is_integer) = key_value(expr, part, table.table(), row, ctx)?;
        *exact &= is_integer && part.prefix.is_none();
        Ok(value)
    };
    let mut base = Vec::with_capacity(32);
    let mut is_unique = index.kind.is_unique();
    for (n, (expr, (_, part))) in span.eq.iter().zip(&index.parts).enumerate() {
        let is_null_safe = span.null_safe.checked_shr(n as u32).is_some_and(|bits| bits & 1 == 1);
        match key_value(expr, part)? {
            KeyValue::Exact(value) => part.encode(&value, &mut base).map_err(|e| table.key_error(at, e))?,
            KeyValue::Null if is_null_safe && part.nullable => {
                part.encode(&Value::Null, &mut base).map_err(|e| table.key_error(at, e))?;
                // Any number of rows may have NULL.
                is_unique = false;
            }
            KeyValue::Unknown | KeyValue::About(..) => return Ok(Some(prefix_range(base))),
            _ => return Ok(None),
        }
    }
    if let Some(like) = &span.like {
        *exact = false;
        return like_range(like, &index.parts[span.eq.len()].1, base, row, ctx);
    }
    if span.eq.len() == index.parts.len() {
        return Ok(Some(if is_unique { KeySpan::Point(base) } else { prefix_range(base) }));
    }
    let part = &index.parts[span.eq.len()].1;
    let mut bound = |bound: &Bound<Expr>| match bound {
        Bound::Unbounded => Ok(None),
        Bound::Included(expr) | Bound::Excluded(expr) => key_value(expr, part).map(Some),
    };
    let (lower, upper) = (bound(&span.lower)?, bound(&span.upper)?);
    let encode = |value: &Value| {
        let mut key = base.clone();
        part.encode(value, &mut key).map(|()| key).map_err(|e| table.key_error(at, e))
    };
    // A prefix key holds only the start of a value: values with an equal prefix may lie on either side of the
    // bound.
    let includes = |b: &Bound<Expr>| matches!(b, Bound::Included(_)) || part.prefix.is_some();
    let start = match lower {
        Some(KeyValue::Null | KeyValue::Above) => return Ok(None),
        Some(KeyValue::Exact(value)) if includes(&span.lower) => Some(encode(&value)?),
        Some(KeyValue::Exact(value)) => prefix_end(&encode(&value)?),
        Some(KeyValue::Between(below)) => prefix_end(&encode(&integer(part, below))?),
        Some(KeyValue::SearchHint(value) | KeyValue::About(value, _)) => Some(encode(&value)?),
        // NULL sorts below all values and satisfies no bound.
        _ if part.nullable && (lower.is_some() || upper.is_some()) => prefix_end(&encode(&Value::Null)?),
        _ => Some(base.clone()),
    };
    let end = match upper {
        Some(KeyValue::Null | KeyValue::Below) => return Ok(None),
        Some(KeyValue::Exact(value)) if includes(&span.upper) => prefix_end(&encode(&value)?),
        Some(KeyValue::Exact(value)) => Some(encode(&value)?),
        Some(KeyValue::Between(below)) => prefix_end(&encode(&integer(part, below))?),
        Some(KeyValue::SearchHint(value) | KeyValue::About(_, value)) => prefix_end(&encode(&value)?),
        _ => prefix_end(&base),
    };
    let is_empty = matches!((&start, &end), (Some(start), Some(end)) if start >= end);
    Ok((!is_empty).then_some(KeySpan::Range(KeyRange { start, end })))
}

/// Returns the keys whose next part may be a text that the LIKE pattern matches.
fn like_range(
    like: &LikeStart,
    part: &KeyPart,
    base: Vec<u8>,
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<KeySpan>> {
    let pattern = like.pattern.eval(row, ctx)?;
    let pattern = match &*pattern {
        Value::Null => return Ok(None),
        Value::Str(pattern) => pattern,
        _ => return Ok(Some(prefix_range(base))),
    };
    let (start, _) = like_prefix(&pattern.bytes, like.escape, part.ty.collation);
    let mut key = base;
    part.encode_start(&start, &mut key);
    Ok(Some(prefix_range(key)))
}

fn prefix_range(base: Vec<u8>) -> KeySpan {
    KeySpan::Range(KeyRange { end: prefix_end(&base), start: Some(base) })
}

/// Returns an integer value of the part's type.
fn integer(part: &KeyPart, value: i128) -> Value {
    if part.ty.unsigned { Value::UInt(value as u64) } else { Value::Int(value as i64) }
}

/// Converts a key value. Also returns true if it is an integer or NULL for an integer column.
fn key_value(
    expr: &Expr,
    part: &KeyPart,
    table: &Table,
    row: &[Value],
    ctx: &EvalContext<'_>,
) -> SqlResult<(KeyValue, bool)> {
    let value = expr.eval(row, ctx)?;
    let range = integer_range(&part.ty);
    let is_integer = range.is_some() && matches!(&*value, Value::Null | Value::Int(_) | Value::UInt(_));
    let found = match (&*value, range) {
        (Value::Null, _) => KeyValue::Null,
        (Value::Int(v), Some(range)) => in_range(i128::from(*v), range, part),
        (Value::UInt(v), Some(range)) => in_range(i128::from(*v), range, part),
        (Value::Double(v), Some(range)) if v.is_finite() && v.abs() < 1e15 => fraction(*v, range, part),
        (value, _) => stored_exactly(value, &part.ty, table, ctx)?,
    };
    Ok((found, is_integer))
}

fn in_range(value: i128, (min, max): (i128, i128), part: &KeyPart) -> KeyValue {
    if value < min {
        KeyValue::Below
    } else if value > max {
        KeyValue::Above
    } else {
        KeyValue::Exact(integer(part, value))
    }
}

fn fraction(value: f64, range: (i128, i128), part: &KeyPart) -> KeyValue {
    let below = value.floor() as i128;
    match in_range(below, range, part) {
        KeyValue::Exact(_) if value.fract() != 0.0 => KeyValue::Between(below),
        other => other,
    }
}

fn integer_range(ty: &ColumnType) -> Option<(i128, i128)> {
    let bits = match ty.kind {
        TypeKind::TinyInt => 8,
        TypeKind::SmallInt => 16,
        TypeKind::MediumInt => 24,
        TypeKind::Int => 32,
        TypeKind::BigInt => 64,
        _ => return None,
    };
    let half = 1_i128 << (bits - 1);
    Some(if ty.unsigned { (0, 2 * half - 1) } else { (-half, half - 1) })
}

/// Converts by assignment. The result counts only if it compares equal to the original value.
fn stored_exactly(
    value: &Value,
    ty: &ColumnType,
    table: &Table,
    ctx: &EvalContext<'_>,
) -> SqlResult<KeyValue> {
    if ty.kind == TypeKind::Enum {
        return Ok(member(value, ty));
    }
    if !index_orders_as_comparison(value, ty) {
        return Ok(KeyValue::Unknown);
    }
    let store = StoreContext {
        sql_mode: SqlMode::NONE,
        strict: true,
        database: &table.name.schema,
        table: &table.name.table,
        column: "",
        row: 1,
        zone: &ctx.env.time_zone,
        now_micros: ctx.env.now_micros,
    };
    let Ok(stored) = ty.store(value.clone(), &store, &mut NoWarnings) else { return Ok(KeyValue::Unknown) };
    let Some(order) = compare(&stored, value, &CompareHow::scalar(ty.collation), ctx)? else {
        return Ok(KeyValue::Unknown);
    };
    Ok(match (order, &stored) {
        (_, Value::Timestamp(micros)) => at_moment(*micros, order, ctx),
        (Ordering::Equal, _) => KeyValue::Exact(stored),
        // The column has too few fraction digits, so the value was truncated or rounded.
        (_, Value::Date(_) | Value::DateTime(_) | Value::Decimal(_)) => KeyValue::SearchHint(stored),
        _ => KeyValue::Unknown,
    })
}

/// Converts a value of a TIMESTAMP column. TIMESTAMP values compare as local time but are indexed in UTC
/// order. The two orders agree except near a change of the zone's clock.
fn at_moment(micros: i64, order: Ordering, ctx: &EvalContext<'_>) -> KeyValue {
    const DAY: i64 = 86_400_000_000;
    let zone = &ctx.env.time_zone;
    let clock = |at: i64| zone.to_local(at).clock_micros();
    let near = [micros.saturating_sub(DAY).max(1), micros.saturating_add(DAY)];
    let keeps = |at: &i64| micros == 0 || clock(*at) - clock(micros) == *at - micros;
    if !near.iter().all(keeps) {
        return KeyValue::About(Value::Timestamp(near[0]), Value::Timestamp(near[1]));
    }
    match order {
        Ordering::Equal => KeyValue::Exact(Value::Timestamp(micros)),
        _ => KeyValue::SearchHint(Value::Timestamp(micros)),
    }
}

/// Returns the ENUM member with this label.
fn member(value: &Value, ty: &ColumnType) -> KeyValue {
    let Value::Str(text) = value else { return KeyValue::Unknown };
    let is_it = |(_, member): &(usize, &String)| ty.collation.compare(member.as_bytes(), &text.bytes).is_eq();
    let mut found = ty.members.iter().enumerate().filter(is_it);
    match (found.next(), found.next()) {
        (Some((n, member)), None) => match u16::try_from(n + 1) {
            Ok(index) => {
                let label = Str { bytes: member.clone().into_bytes(), collation: ty.collation };
                KeyValue::Exact(Value::Enum { index, label })
            }
            Err(_) => KeyValue::Unknown,
        },
        // The value of an invalid member is the empty text.
        (None, _) if !ty.collation.compare(b"", &text.bytes).is_eq() => KeyValue::Null,
        _ => KeyValue::Unknown,
    }
}

/// Returns true if comparing the column with such a value follows the order of the column's own values.
fn index_orders_as_comparison(value: &Value, ty: &ColumnType) -> bool {
    match ty.kind {
        // Comparison goes by label, the index by number.
        TypeKind::Set => false,
        TypeKind::Char
        | TypeKind::VarChar
        | TypeKind::TinyText
        | TypeKind::Text
        | TypeKind::MediumText
        | TypeKind::LongText
        | TypeKind::Json => matches!(value, Value::Str(s) if s.collation != Collation::BINARY),
        TypeKind::Binary
        | TypeKind::VarBinary
        | TypeKind::TinyBlob
        | TypeKind::Blob
        | TypeKind::MediumBlob
        | TypeKind::LongBlob => matches!(value, Value::Str(_)),
        TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => {
            !matches!(value, Value::Time(_) | Value::Double(_) | Value::Float(_))
        }
        TypeKind::Time => matches!(value, Value::Time(_) | Value::Str(_)),
        _ => true,
    }
}

/// Sorts the spans and merges overlapping ones, so that no row is returned twice.
fn disjoint(mut spans: Vec<KeySpan>) -> Vec<KeySpan> {
    if spans.len() < 2 {
        return spans;
    }
    spans.sort_by(|a, b| start_of(a).cmp(start_of(b)));
    let mut out: Vec<KeySpan> = Vec::with_capacity(spans.len());
    for span in spans {
        let Some(last) = out.last_mut().filter(|last| overlaps(last, &span)) else {
            out.push(span);
            continue;
        };
        if *last != span {
            let end = match (end_of(last), end_of(&span)) {
                (Some(a), Some(b)) => Some(a.max(b)),
                _ => None,
            };
            *last = KeySpan::Range(KeyRange { start: Some(start_of(last).to_vec()), end });
        }
    }
    out
}

fn start_of(span: &KeySpan) -> &[u8] {
    match span {
        KeySpan::Point(key) => key,
        KeySpan::Range(range) => range.start.as_deref().unwrap_or(&[]),
    }
}

fn end_of(span: &KeySpan) -> Option<Vec<u8>> {
    match span {
        KeySpan::Point(key) => Some(successor(key)),
        KeySpan::Range(range) => range.end.clone(),
    }
}

/// Returns true if `b`, which does not start before `a`, starts inside it.
fn overlaps(a: &KeySpan, b: &KeySpan) -> bool {
    match a {
        KeySpan::Point(key) => key == start_of(b),
        KeySpan::Range(range) => range.end.as_deref().is_none_or(|end| start_of(b) < end),
    }
}
