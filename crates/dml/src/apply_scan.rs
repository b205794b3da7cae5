//! Applies row events to tables without a unique key: one pass finds the rows of all before images. The pass
//! covers the rows with matching keys in an index, or the table if the images contain the columns of no
//! index. Searching for each row separately would be quadratic in the rows per key.
//!
//! # Why the order of rows does not matter
//! Rows are matched by all columns that the images contain. Without a unique key, rows that match the same
//! image are interchangeable, so it is enough that each image changes some row that matches it. If an image
//! matches only a row version created by an earlier image of the event (a row updated twice), the first pass
//! does not find it. Further passes look for it as long as the previous pass has changed a row.
//!
//! # Rows locked by other transactions
//! A prepared XA transaction may keep a row locked until a later group ends it. A pass therefore waits for a
//! locked row only if it matches. Only for images that are still missing then, a further pass waits for every
//! row, because an earlier group that is being applied in parallel may be about to make the row match.

use std::collections::{HashMap, VecDeque};

use cohort_base::{Reader, Reservation};
use cohort_binlog::event::{RowsEvent, RowsKind};
use cohort_row::KeySpan;
use cohort_session::StatementContext;
use cohort_trx::WaitPolicy;
use cohort_types::{SqlResult, Value, write_value};

use crate::apply_pass::{Parts, Pass, start_of};
use crate::row_applier::{Image, RowApplier, without_columns};

/// The pending changes: for the encoded columns of a before image, the after images in the event's order.
type Pending = HashMap<Vec<u8>, VecDeque<Image>>;

/// Applies an event of updates or deletes. `by` is the index whose columns the before images contain.
pub(super) fn apply_by_scan(
    applier: &mut RowApplier,
    ctx: &mut StatementContext<'_>,
    event: &RowsEvent,
    by: Option<usize>,
    from: &mut Reader<'_>,
) -> SqlResult<()> {
    let mut pending = Pending::new();
    let mut present: Vec<usize> = Vec::new();
    let mut parts = Parts::new();
    let (mut left, mut memory) = (0, Reservation::new(ctx.process.memory().clone()));
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
        let span = match by {
            Some(index) => applier.span(index, &before)?,
            None => KeySpan::Range(Default::default()),
        };
        add_part(&mut parts, span, &mut memory)?;
        let mut key = Vec::new();
        append_all(applier, &present, |n| before[n].as_ref().unwrap_or(&Value::Null), &mut key);
        let bytes: usize = after.iter().flatten().map(Value::memory_bytes).sum();
        memory.grow((key.len() + bytes + size_of::<Image>()) as u64)?;
        pending.entry(key).or_default().push_back(after);
        left += 1;
    }
    let mut search = Pass::new(applier, by.unwrap_or(0), parts);
    let mut wait = WaitPolicy::IfItMatches;
    while left > 0 {
        search.begin(ctx, wait);
        let found = pass(applier, ctx, event.kind, &mut search, &present, &mut pending)?;
        match (found, wait) {
            (0, WaitPolicy::Wait) => return applier.missing_row(),
            (0, _) => wait = WaitPolicy::Wait,
            _ => left -= found,
        }
    }
    search.end(ctx);
    Ok(())
}

/// Adds one wanted row in an index range.
pub(super) fn add_part(parts: &mut Parts, span: KeySpan, memory: &mut Reservation) -> SqlResult<()> {
    if let Some((_, wanted)) = parts.get_mut(start_of(&span)) {
        *wanted += 1;
        return Ok(());
    }
    let start = start_of(&span).to_vec();
    memory.grow((3 * start.len() + size_of::<(KeySpan, usize)>()) as u64)?;
    parts.insert(start, (span, 1));
    Ok(())
}

/// Runs one round of the search. Returns the number of rows changed.
fn pass(
    applier: &mut RowApplier,
    ctx: &mut StatementContext<'_>,
    kind: RowsKind,
    search: &mut Pass,
    present: &[usize],
    pending: &mut Pending,
) -> SqlResult<usize> {
    let (mut row, mut key, mut found) = (Vec::new(), Vec::new(), 0);
    loop {
        let mut is_wanted = |row: &[Value]| {
            key.clear();
            append_all(applier, present, |n| &row[n], &mut key);
            Ok(pending.contains_key(&key))
        };
        if !search.next(applier, ctx, &mut is_wanted, &mut row)? {
            return Ok(found);
        }
        let Some(images) = pending.get_mut(&key) else { continue };
        let Some(after) = images.pop_front() else { continue };
        if images.is_empty() {
            pending.remove(&key);
        }
        let clustered = search.key().to_vec();
        match kind {
            RowsKind::Update => applier.update(ctx, &clustered, &row, after)?,
            RowsKind::Write | RowsKind::Delete => applier.delete(ctx, &clustered, &row)?,
        }
        found += 1;
    }
}

/// Appends the given columns of a row, so that equal bytes mean equal values.
pub(super) fn append_all<'v>(
    applier: &RowApplier,
    columns: &[usize],
    value: impl Fn(usize) -> &'v Value,
    out: &mut Vec<u8>,
) {
    columns.iter().for_each(|&n| append(applier, n, value(n), out));
}

fn append(applier: &RowApplier, column: usize, value: &Value, out: &mut Vec<u8>) {
    if value.is_null() {
        return out.push(0);
    }
    out.push(1);
    let start = out.len();
    // A value that does not fit its column matches no row.
    if write_value(&applier.table.columns[column].ty, value, out).is_err() {
        out.truncate(start);
        out.push(2);
    }
}
