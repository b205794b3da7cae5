//! Row events of tables without a unique key: one pass finds the rows of all before images. It goes over the
//! rows that have their keys in an index, or over the table when no index has a key in the images. Row by row
//! the work would grow with the square of the rows of a key.
//!
//! # Why the order of rows does not matter
//! Rows are matched by all the columns that the images hold. Without a unique key rows that match the same
//! image are as good as each other, so it is enough that each image changes some row that matches it. An
//! image that matches only what an earlier one of the event makes (a row updated twice) finds nothing in the
//! first pass, and is looked for again as long as a pass has changed something.
//!
//! # Rows that others have locked
//! A prepared XA transaction may keep a row until a later group ends it. So a pass waits for a locked row
//! only if it matches. Only what is still missing then is looked for by a pass that waits for every row: an
//! earlier group that is applied beside this one may be about to make it match.

use std::collections::{BTreeMap, HashMap, VecDeque};

use cohort_base::Reader;
use cohort_binlog::event::{RowsEvent, RowsKind};
use cohort_types::{SqlResult, Value, write_value};

use crate::dml::apply::{Image, RowApplier, without_columns};
use crate::statement::StatementContext;
use crate::table::{Columns, CursorOptions, KeySpan, KeySpans, ReadMode, RowChanges, TableCursor};
use crate::trx::WaitPolicy;

/// What is to become of rows: by the bytes of the columns that before images hold, the after images, the
/// first one first.
type Pending = HashMap<Vec<u8>, VecDeque<Image>>;

/// Applies an event of updates or deletes; `by` is the index whose columns the before images hold.
pub(super) fn apply_by_scan(
    applier: &mut RowApplier,
    ctx: &mut StatementContext<'_>,
    event: &RowsEvent,
    by: Option<usize>,
    from: &mut Reader<'_>,
) -> SqlResult<()> {
    let mut pending = Pending::new();
    let mut present: Vec<usize> = Vec::new();
    // By where they begin.
    let mut spans: BTreeMap<Vec<u8>, KeySpan> = BTreeMap::new();
    let (mut left, mut memory) = (0, cohort_base::Reservation::new(ctx.process.memory().clone()));
    while !from.is_empty() {
        ctx.check_interrupt()?;
        let rest = from.remaining();
        let before = applier.read_image(&event.present, from)?;
        if present.is_empty() {
            present = (0..before.len()).filter(|&n| before[n].is_some()).collect();
        }
        let after = match event.kind {
            RowsKind::Update => applier.read_image(&event.present_after, from)?,
            RowsKind::Write | RowsKind::Delete => Vec::new(),
        };
        if from.remaining() == rest {
            return Err(without_columns());
        }
        if let Some(index) = by {
            let span = applier.span(index, &before)?;
            let start = start_of(&span);
            if !spans.contains_key(start) {
                memory.grow(2 * (start.len() + size_of::<KeySpan>()) as u64)?;
                spans.insert(start.to_vec(), span);
            }
        }
        let mut key = Vec::new();
        for &n in &present {
            append(applier, n, before[n].as_ref().unwrap_or(&Value::Null), &mut key);
        }
        let bytes: usize = after.iter().flatten().map(Value::memory_bytes).sum();
        memory.grow((key.len() + bytes + size_of::<Image>()) as u64)?;
        pending.entry(key).or_default().push_back(after);
        left += 1;
    }
    let spans = match by {
        Some(index) => KeySpans { index, reverse: false, spans: spans.into_values().collect() },
        None => KeySpans { spans: vec![KeySpan::Range(Default::default())], ..KeySpans::default() },
    };
    let mut wait = WaitPolicy::IfItMatches;
    while left > 0 {
        let found = pass(applier, ctx, event.kind, &spans, &present, wait, &mut pending)?;
        match (found, wait) {
            (0, WaitPolicy::Wait) => return applier.missing_row(),
            (0, _) => wait = WaitPolicy::Wait,
            _ => left -= found,
        }
    }
    Ok(())
}

/// Where a part of an index begins.
fn start_of(span: &KeySpan) -> &[u8] {
    match span {
        KeySpan::Point(key) => key,
        KeySpan::Range(range) => range.start.as_deref().unwrap_or_default(),
    }
}

/// One pass over the rows of these spans; answers how many it changed.
fn pass(
    applier: &mut RowApplier,
    ctx: &mut StatementContext<'_>,
    kind: RowsKind,
    spans: &KeySpans,
    present: &[usize],
    wait: WaitPolicy,
    pending: &mut Pending,
) -> SqlResult<usize> {
    let options = CursorOptions {
        mode: ReadMode::LockExclusive(wait),
        columns: Columns::All,
        changes: RowChanges::Any,
        rows_expected: None,
    };
    let mut cursor = TableCursor::open(ctx.trx, &applier.table, spans.clone(), options)?;
    let (mut row, mut key, mut found) = (Vec::new(), Vec::new(), 0);
    while !pending.is_empty() {
        ctx.check_interrupt()?;
        let mut is_wanted = |row: &[Value]| {
            key.clear();
            for &n in present {
                append(applier, n, &row[n], &mut key);
            }
            Ok(pending.contains_key(&key))
        };
        if !cursor.next(ctx.trx, &mut is_wanted, &mut row)? {
            break;
        }
        let Some(images) = pending.get_mut(&key) else { continue };
        let Some(after) = images.pop_front() else { continue };
        if images.is_empty() {
            pending.remove(&key);
        }
        let clustered = cursor.key().to_vec();
        match kind {
            RowsKind::Update => applier.update(ctx, &clustered, &row, after)?,
            RowsKind::Write | RowsKind::Delete => applier.writer.delete(ctx.trx, &clustered, &row)?,
        }
        found += 1;
    }
    Ok(found)
}

/// Appends a value so that equal bytes are equal values.
fn append(applier: &RowApplier, column: usize, value: &Value, out: &mut Vec<u8>) {
    if value.is_null() {
        return out.push(0);
    }
    out.push(1);
    let start = out.len();
    // A value that its column cannot hold matches no row.
    if write_value(&applier.table.columns[column].ty, value, out).is_err() {
        out.truncate(start);
        out.push(2);
    }
}
