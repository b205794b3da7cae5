//! [`Pass`]: a search under locks for rows that no key finds, and where the searches of earlier events
//! ended ([`Trail`](cohort_row::Trail)).
//!
//! A source cuts a statement into many events, whose rows follow each other in an index as they did there. A
//! search that began where the index does would look at all rows that earlier events have changed, so the
//! work would grow with the square of the statement's rows. It begins where the one before ended instead,
//! goes to the end, and then over the part before. A place that is wrong costs time only.

use std::collections::{BTreeMap, VecDeque};

use crate::apply::RowApplier;
use cohort_base::IndexId;
use cohort_engine::KeyRange;
use cohort_optimize::ReadMode;
use cohort_row::{CursorOptions, KeySpan, KeySpans, RowChanges, TableCursor};
use cohort_session::StatementContext;
use cohort_trx::WaitPolicy;
use cohort_types::{Columns, SqlResult, Value};

/// Where a part of an index begins.
pub(super) fn start_of(span: &KeySpan) -> &[u8] {
    match span {
        KeySpan::Point(key) => key,
        KeySpan::Range(range) => range.start.as_deref().unwrap_or_default(),
    }
}

/// A part of an index that is searched.
struct Part {
    span: KeySpan,
    /// Rows of it that are still to be found.
    wanted: usize,
    /// The entry of the row that was found last; empty for none.
    last: Vec<u8>,
}

/// Where the parts of an index begin, the parts, and how many rows are wanted of each.
pub(super) type Parts = BTreeMap<Vec<u8>, (KeySpan, usize)>;

/// A search over parts of an index, in as many rounds as are asked for. It leaves a part when all its rows
/// are found.
pub(super) struct Pass {
    index: usize,
    id: IndexId,
    wait: WaitPolicy,
    parts: Vec<Part>,
    at: usize,
    /// What is left of the part that is being searched.
    pieces: VecDeque<KeySpan>,
    cursor: Option<TableCursor>,
}

impl Pass {
    pub(super) fn new(applier: &RowApplier, index: usize, parts: Parts) -> Pass {
        let part = |(span, wanted)| Part { span, wanted, last: Vec::new() };
        Pass {
            index,
            id: applier.open().indexes[index].id,
            wait: WaitPolicy::Wait,
            parts: parts.into_values().map(part).collect(),
            at: 0,
            pieces: VecDeque::new(),
            cursor: None,
        }
    }

    /// Begins a round.
    pub(super) fn begin(&mut self, ctx: &StatementContext<'_>, wait: WaitPolicy) {
        (self.wait, self.at, self.cursor) = (wait, 0, None);
        self.enter(ctx);
    }

    /// Begins with the part it is at.
    fn enter(&mut self, ctx: &StatementContext<'_>) {
        self.pieces.clear();
        let Some(part) = self.parts.get(self.at) else { return };
        let trail = ctx.session.trail.borrow();
        let hint = match part.last.is_empty() {
            true => trail.end_of(self.id, start_of(&part.span)),
            false => Some(&part.last),
        };
        match (&part.span, hint) {
            (KeySpan::Range(range), Some(entry)) => {
                let (start, end) = (range.start.clone(), range.end.clone());
                self.pieces.push_back(KeySpan::Range(KeyRange { start: Some(entry.clone()), end }));
                self.pieces.push_back(KeySpan::Range(KeyRange { start, end: Some(entry.clone()) }));
            }
            (span, _) => self.pieces.push_back(span.clone()),
        }
    }

    /// The next row that is wanted, locked; false at the end of the round.
    pub(super) fn next(
        &mut self,
        applier: &RowApplier,
        ctx: &mut StatementContext<'_>,
        is_wanted: &mut dyn FnMut(&[Value]) -> SqlResult<bool>,
        row: &mut Vec<Value>,
    ) -> SqlResult<bool> {
        let mut is_open = self.cursor.is_some();
        while let Some(part) = self.parts.get_mut(self.at) {
            ctx.check_interrupt()?;
            if part.wanted > 0 {
                if is_open
                    && let Some(cursor) = &mut self.cursor
                    && cursor.next(ctx.trx, is_wanted, row)?
                {
                    part.wanted -= 1;
                    part.last.clear();
                    part.last.extend_from_slice(cursor.entry_key());
                    return Ok(true);
                }
                if let Some(piece) = self.pieces.pop_front() {
                    self.search(applier, ctx, piece)?;
                    is_open = true;
                    continue;
                }
            }
            is_open = false;
            self.at += 1;
            self.enter(ctx);
        }
        Ok(false)
    }

    fn search(
        &mut self,
        applier: &RowApplier,
        ctx: &mut StatementContext<'_>,
        piece: KeySpan,
    ) -> SqlResult<()> {
        let spans = KeySpans { index: self.index, reverse: false, spans: vec![piece] };
        if let Some(cursor) = &mut self.cursor {
            cursor.reopen(spans);
            return Ok(());
        }
        let options = CursorOptions {
            mode: ReadMode::LockExclusive(self.wait),
            columns: Columns::All,
            changes: RowChanges::Any,
            rows_expected: None,
        };
        self.cursor = Some(TableCursor::open(ctx.trx, &applier.table, spans, options)?);
        Ok(())
    }

    /// Clustered key of the row that was found last.
    pub(super) fn key(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], TableCursor::key)
    }

    /// The search is over: the next one goes on there.
    pub(super) fn end(self, ctx: &mut StatementContext<'_>) {
        let mut trail = ctx.session.trail.borrow_mut();
        for part in self.parts.into_iter().filter(|part| !part.last.is_empty()) {
            trail.note(self.id, start_of(&part.span).to_vec(), part.last);
        }
    }
}
