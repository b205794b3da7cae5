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

use std::collections::{HashMap, VecDeque};

use crate::apply::{Image, RowApplier, without_columns};
use crate::apply_pass::{Parts, Pass, start_of};
use cohort_base::{Reader, Reservation};
use cohort_binlog::event::{RowsEvent, RowsKind};
use cohort_row::KeySpan;
use cohort_session::StatementContext;
use cohort_trx::WaitPolicy;
use cohort_types::{SqlResult, Value, write_value};

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

/// One more row is wanted of a part of an index.
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

/// One round of the search; answers how many rows it changed.
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

/// Appends columns of a row so that equal bytes are equal rows.
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
    // A value that its column cannot hold matches no row.
    if write_value(&applier.table.columns[column].ty, value, out).is_err() {
        out.truncate(start);
        out.push(2);
    }
}
