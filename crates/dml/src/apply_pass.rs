//! A search under locks for rows without a unique key ([`Pass`]), and the positions at which the searches for
//! earlier events ended ([`SearchPositions`](cohort_row::SearchPositions)).
//!
//! A source splits a statement into many events, whose rows follow each other in an index in the same order.
//! If each search started at the beginning of the index, it would examine all rows that earlier events have
//! changed, and the work would be quadratic in the statement's rows. Instead, a search starts where the
//! previous one ended, runs to the end, and then covers the part before its start. A wrong start position
//! only costs time.

use std::collections::{BTreeMap, VecDeque};

use cohort_base::IndexId;
use cohort_engine::KeyRange;
use cohort_optimize::ReadMode;
use cohort_row::{CursorOptions, KeySpan, KeySpans, RowChanges, TableCursor};
use cohort_session::StatementContext;
use cohort_trx::WaitPolicy;
use cohort_types::{Columns, SqlResult, Value};

use crate::row_applier::RowApplier;

/// Returns where an index range begins.
pub(super) fn start_of(span: &KeySpan) -> &[u8] {
    match span {
        KeySpan::Point(key) => key,
        KeySpan::Range(range) => range.start.as_deref().unwrap_or_default(),
    }
}

/// An index range to search.
struct Part {
    span: KeySpan,
    /// The number of rows still to be found in it.
    wanted: usize,
    /// The index entry of the last row found; empty if none.
    last: Vec<u8>,
}

/// Index ranges with the number of rows wanted from each, by the start of the range.
pub(super) type Parts = BTreeMap<Vec<u8>, (KeySpan, usize)>;

/// A search over index ranges, in as many rounds as the caller starts. It leaves a range when all of its rows
/// have been found.
pub(super) struct Pass {
    index: usize,
    id: IndexId,
    wait: WaitPolicy,
    parts: Vec<Part>,
    at: usize,
    /// The unsearched pieces of the current range.
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

    /// Starts a round.
    pub(super) fn begin(&mut self, ctx: &StatementContext<'_>, wait: WaitPolicy) {
        (self.wait, self.at, self.cursor) = (wait, 0, None);
        self.enter(ctx);
    }

    /// Starts the current range.
    fn enter(&mut self, ctx: &StatementContext<'_>) {
        self.pieces.clear();
        let Some(part) = self.parts.get(self.at) else { return };
        let positions = ctx.session.search_positions.borrow();
        let hint = match part.last.is_empty() {
            true => positions.end_of(self.id, start_of(&part.span)),
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

    /// Finds and locks the next wanted row. Returns false at the end of the round.
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

    /// Returns the clustered key of the last row found.
    pub(super) fn key(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], TableCursor::key)
    }

    /// Ends the search and records where the next one should start.
    pub(super) fn end(self, ctx: &mut StatementContext<'_>) {
        let mut positions = ctx.session.search_positions.borrow_mut();
        for part in self.parts.into_iter().filter(|part| !part.last.is_empty()) {
            positions.note(self.id, start_of(&part.span).to_vec(), part.last);
        }
    }
}
