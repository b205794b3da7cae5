//! Locates the rows of an event in a table with a unique key when the lookup key matches many rows: one pass
//! finds the rows of all images.
//!
//! The lookup key of such a row is a unique key with a NULL, or another index. Unlike in tables without a
//! unique key (`apply_scan`), the rows must be changed in the event's order, because a row may free a key
//! value that the next one takes. The pass therefore only records where the rows are. Each image then takes a
//! recorded row and checks that it still matches.
//!
//! The first pass does not find an image that matches only a row version created by an earlier image of the
//! event. A further pass then looks for all remaining images, if a row has been changed since the previous
//! pass.

use std::collections::{HashMap, VecDeque};

use cohort_base::{Reader, Reservation};
use cohort_binlog::event::{RowsEvent, RowsKind};
use cohort_row::KeySpan;
use cohort_session::StatementContext;
use cohort_trx::WaitPolicy;
use cohort_types::{SqlResult, Value};

use crate::apply_pass::{Parts, Pass};
use crate::apply_scan::{add_part, append_all};
use crate::row_applier::{Image, RowApplier, without_columns};

/// The located rows of an event.
pub(super) struct Located {
    index: usize,
    /// Clustered keys, by the encoded columns that the images contain.
    rows: HashMap<Vec<u8>, VecDeque<Vec<u8>>>,
    memory: Reservation,
    /// The wait policy of the last pass, or `None` before the first pass.
    passed: Option<WaitPolicy>,
    /// A row was changed since the last pass.
    has_changed: bool,
}

/// The rows that the remaining images need.
#[derive(Default)]
struct Wanted {
    present: Vec<usize>,
    /// The number of images with these bytes.
    counts: HashMap<Vec<u8>, usize>,
    parts: Parts,
}

impl Located {
    /// Creates an empty state. `index` is the index to search.
    pub(super) fn new(ctx: &StatementContext<'_>, index: usize) -> Located {
        Located {
            index,
            rows: HashMap::new(),
            memory: Reservation::new(ctx.process.memory().clone()),
            passed: None,
            has_changed: false,
        }
    }

    /// Records that a row of the event was changed.
    pub(super) fn changed(&mut self) {
        self.has_changed = true;
    }

    /// Finds and locks the row of a before image. Returns its clustered key and values. `from` starts at that
    /// image.
    pub(super) fn find(
        &mut self,
        applier: &mut RowApplier,
        ctx: &mut StatementContext<'_>,
        event: &RowsEvent,
        before: &Image,
        from: &Reader<'_>,
    ) -> SqlResult<Option<(Vec<u8>, Vec<Value>)>> {
        let present: Vec<usize> = (0..before.len()).filter(|&n| before[n].is_some()).collect();
        let mut wanted = Vec::new();
        append_all(applier, &present, |n| before[n].as_ref().unwrap_or(&Value::Null), &mut wanted);
        loop {
            while let Some(key) = self.rows.get_mut(&wanted).and_then(VecDeque::pop_front) {
                let (mut row, mut bytes) = (Vec::new(), Vec::new());
                if applier.writer.fetch(ctx.trx, &key, &mut row)? {
                    append_all(applier, &present, |n| &row[n], &mut bytes);
                    if bytes == wanted {
                        return Ok(Some((key, row)));
                    }
                }
            }
            // The first pass does not wait for locked rows that do not match, as in `apply_scan`.
            let wait = match self.passed {
                None => WaitPolicy::IfItMatches,
                Some(WaitPolicy::IfItMatches) if !self.has_changed => WaitPolicy::Wait,
                Some(_) if self.has_changed => WaitPolicy::IfItMatches,
                Some(_) => return applier.missing_row().map(|()| None),
            };
            self.pass(applier, ctx, event, from.clone(), wait)?;
        }
    }

    /// Locates the rows of all images from here on.
    fn pass(
        &mut self,
        applier: &mut RowApplier,
        ctx: &mut StatementContext<'_>,
        event: &RowsEvent,
        from: Reader<'_>,
        wait: WaitPolicy,
    ) -> SqlResult<()> {
        self.rows.clear();
        self.memory.shrink(self.memory.used());
        (self.passed, self.has_changed) = (Some(wait), false);
        let mut wanted = self.wanted(applier, ctx, event, from)?;
        let mut search = Pass::new(applier, self.index, std::mem::take(&mut wanted.parts));
        search.begin(ctx, wait);
        let (mut row, mut key) = (Vec::new(), Vec::new());
        loop {
            let mut is_wanted = |row: &[Value]| {
                key.clear();
                append_all(applier, &wanted.present, |n| &row[n], &mut key);
                Ok(wanted.counts.get(&key).is_some_and(|count| *count > 0))
            };
            if !search.next(applier, ctx, &mut is_wanted, &mut row)? {
                break;
            }
            if let Some(count) = wanted.counts.get_mut(&key) {
                *count -= 1;
                self.memory.grow((key.len() + search.key().len() + 2 * size_of::<Vec<u8>>()) as u64)?;
                self.rows.entry(key.clone()).or_default().push_back(search.key().to_vec());
            }
        }
        search.end(ctx);
        Ok(())
    }

    fn wanted(
        &mut self,
        applier: &RowApplier,
        ctx: &mut StatementContext<'_>,
        event: &RowsEvent,
        mut from: Reader<'_>,
    ) -> SqlResult<Wanted> {
        let mut wanted = Wanted::default();
        while !from.is_empty() {
            ctx.check_interrupt()?;
            let rest = from.remaining();
            let before = applier.read_image(&event.present, &mut from)?;
            if event.kind == RowsKind::Update {
                applier.read_image(&event.present_after, &mut from)?;
            }
            if from.remaining() == rest {
                return Err(without_columns());
            }
            let span = applier.span(self.index, &before)?;
            if matches!(span, KeySpan::Point(_)) {
                continue;
            }
            if wanted.present.is_empty() {
                wanted.present = (0..before.len()).filter(|&n| before[n].is_some()).collect();
            }
            let mut key = Vec::new();
            append_all(applier, &wanted.present, |n| before[n].as_ref().unwrap_or(&Value::Null), &mut key);
            add_part(&mut wanted.parts, span, &mut self.memory)?;
            self.memory.grow((key.len() + 2 * size_of::<Vec<u8>>()) as u64)?;
            *wanted.counts.entry(key).or_default() += 1;
        }
        Ok(wanted)
    }
}
