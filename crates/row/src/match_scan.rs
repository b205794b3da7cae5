//! [`MatchScan`]: index lookups of a join, for a batch of outer rows at once.
//!
//! # Concepts
//! Looking up the matches of one row costs a handful of calls and a decoded row per entry. This scan gathers
//! the entries for many outer rows in one batch, each tagged with the number of its outer row. It then
//! applies the scan's conditions to the whole batch, like a [`VectorScan`].
//!
//! If entries of a secondary index lead to rows (*leads*), they are gathered first, and their rows are read
//! in portions. If the caller accepts matches in any order, the rows are read in the order of their clustered
//! keys: neighbouring rows share pages, so most of the pages needed were read recently.
//!
//! # Order
//! Otherwise the matches of one outer row are returned together, in index order, and outer rows in their
//! order.

use cohort_engine::Batch as Entries;
use cohort_expr::EvalContext;
use cohort_optimize::Scan;
use cohort_run::{Batch, Matching, Vectors};
use cohort_trx::{Counted, SessionTrx};
use cohort_types::{Interrupt, SqlResult, Value};

use crate::access::KeySpan;
use crate::cursor::{Into, TableCursor, order_by_rows};
use crate::resolve::resolve;
use crate::vector_scan::VectorScan;

/// Limits of a batch in entries and bytes. A batch of this size stays in the processor's caches while its
/// conditions are evaluated.
const ENTRIES_AT_ONCE: usize = 1024;
const BYTES_AT_ONCE: usize = 256 << 10;
/// Maximum number of rows looked up at once.
const ROWS_AT_ONCE: usize = 128;
/// Limits of a batch of leads, which are short.
const LEADS_AT_ONCE: usize = 32 << 10;
const LEAD_BYTES_AT_ONCE: usize = 1 << 20;
/// Minimum number of leads for which they are sorted by row.
const ORDERED_LEADS_MIN: usize = 64;
/// Estimated matches per row above which a lookup that needs only one match is done row by row.
const FEW_MATCHES: f64 = 8.0;

/// A batched lookup for a set of outer rows.
pub struct MatchScan {
    /// Evaluates the conditions.
    vectors: VectorScan,
    matching: Matching,
    /// Outer row of each entry in the cursor's batch.
    of: Vec<u32>,
    /// The outer row whose spans are computed next; `spans` and `rest` are the unread spans of the row
    /// before.
    next_row: usize,
    spans: std::vec::IntoIter<KeySpan>,
    rest: Option<KeySpan>,
    leads: Option<Leads>,
    looks: u64,
}

/// Gathered entries that lead to rows.
#[derive(Default)]
struct Leads {
    entries: Entries,
    of: Vec<u32>,
    /// Reading order: entry numbers, sorted by the first bytes of the rows' keys.
    order: Vec<(u64, u32)>,
    /// Position in `order`.
    at: usize,
}

impl MatchScan {
    /// Builds the batched lookup, or returns `None` if matches must be looked up row by row.
    pub fn of(
        cursor: &TableCursor,
        scan: &Scan,
        matching: Matching,
        eval: &EvalContext<'_>,
    ) -> Option<MatchScan> {
        if !cursor.gathers() || scan.with_key {
            return None;
        }
        let vectors = VectorScan::new(cursor, scan, eval)?;
        // A condition must not warn about rows that would not have been read.
        if matching == Matching::Until && (scan.rows > FEW_MATCHES || vectors.asks_by_rows()) {
            return None;
        }
        Some(MatchScan {
            vectors,
            matching,
            of: Vec::new(),
            next_row: 0,
            spans: Vec::new().into_iter(),
            rest: None,
            leads: cursor.leads_to_rows().then(Leads::default),
            looks: 0,
        })
    }

    /// Discards all matches before the next set of outer rows.
    pub fn begin(&mut self, cursor: &mut TableCursor) {
        cursor.begin_gathering();
        self.vectors.forget();
        self.of.clear();
        self.next_row = 0;
        self.spans = Vec::new().into_iter();
        self.rest = None;
        if let Some(leads) = &mut self.leads {
            leads.clear();
        }
    }

    /// Returns the entries read and the rows looked up since the last call.
    pub fn take_examined(&mut self) -> (u64, u64) {
        (self.vectors.take_examined(), std::mem::take(&mut self.looks))
    }

    /// Appends the output columns of the next match and returns its outer row. With `n`, returns only matches
    /// of that row; rows must be requested in order. Returns `None` at the end.
    #[allow(clippy::too_many_arguments)] // a scan with its context
    pub fn next(
        &mut self,
        cursor: &mut TableCursor,
        trx: &mut SessionTrx,
        scan: &Scan,
        rows: &Batch,
        n: Option<usize>,
        out: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<Option<usize>> {
        loop {
            while let Some(entry) = self.vectors.selected() {
                let of = self.of[entry] as usize;
                match n {
                    Some(n) if of > n => return Ok(None),
                    Some(n) if of < n => self.vectors.pass(),
                    _ => {
                        self.vectors.pass();
                        self.vectors.yield_entry(cursor, entry, scan, out)?;
                        return Ok(Some(of));
                    }
                }
            }
            if n.is_some_and(|n| self.next_row > n && !self.has_more_of_last(n)) {
                return Ok(None);
            }
            if !self.gather(cursor, trx, scan, rows, eval)? {
                return Ok(None);
            }
            let (entries, _) = cursor.gathered();
            self.vectors.select_of(cursor, 0..entries, eval)?;
        }
    }

    /// Appends the next matches to the vectors, in reading order, and the outer row of each to `of`. Returns
    /// false at the end.
    #[allow(clippy::too_many_arguments)] // a scan with its context
    pub fn next_vectors(
        &mut self,
        cursor: &mut TableCursor,
        trx: &mut SessionTrx,
        scan: &Scan,
        rows: &Batch,
        of: &mut Vec<u32>,
        vectors: &mut Vectors,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        while self.vectors.selected().is_none() {
            if !self.gather(cursor, trx, scan, rows, eval)? {
                return Ok(false);
            }
            let (entries, _) = cursor.gathered();
            self.vectors.select_of(cursor, 0..entries, eval)?;
        }
        of.extend(self.vectors.all_selected().iter().map(|entry| self.of[*entry as usize]));
        self.vectors.read_selected(cursor, vectors)?;
        Ok(true)
    }

    /// Returns true if row `n` or an earlier one may have more entries, or leads whose rows are unread.
    fn has_more_of_last(&self, n: usize) -> bool {
        let of_spans = self.next_row == n + 1 && (self.rest.is_some() || self.spans.len() > 0);
        let of_leads = |leads: &Leads| {
            leads.order.get(leads.at).is_some_and(|(_, lead)| leads.of[*lead as usize] as usize <= n)
        };
        of_spans || self.leads.as_ref().is_some_and(of_leads)
    }

    /// Gathers a batch. Returns false at the end.
    fn gather(
        &mut self,
        cursor: &mut TableCursor,
        trx: &mut SessionTrx,
        scan: &Scan,
        rows: &Batch,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        trx.check_killed()?;
        cursor.begin_gathering();
        self.of.clear();
        let Some(mut leads) = self.leads.take() else {
            while let (entries @ 0..ENTRIES_AT_ONCE, 0..BYTES_AT_ONCE) = cursor.gathered() {
                let Some(span) = self.next_span(cursor, trx, scan, rows, eval)? else { break };
                let limit = self.limit(ENTRIES_AT_ONCE - entries);
                self.rest = cursor.gather(trx, span, limit, Into::Own)?;
                self.skip_rest(cursor.gathered().0 > entries);
                self.of.resize(cursor.gathered().0, self.next_row as u32 - 1);
            }
            cursor.note_gathered();
            return Ok(!self.of.is_empty());
        };
        let outcome = self.gather_rows(cursor, trx, scan, rows, &mut leads, eval);
        self.leads = Some(leads);
        outcome?;
        Ok(!self.of.is_empty())
    }

    /// Gathers rows for the leads, after gathering more leads if none remain.
    fn gather_rows(
        &mut self,
        cursor: &mut TableCursor,
        trx: &mut SessionTrx,
        scan: &Scan,
        rows: &Batch,
        leads: &mut Leads,
        eval: &EvalContext<'_>,
    ) -> SqlResult<()> {
        while self.of.is_empty() {
            if leads.at == leads.order.len() {
                leads.clear();
                while leads.has_room() {
                    let Some(span) = self.next_span(cursor, trx, scan, rows, eval)? else { break };
                    let entries = leads.entries.len();
                    let limit = self.limit(LEADS_AT_ONCE - entries);
                    self.rest = cursor.gather(trx, span, limit, Into::Other(&mut leads.entries))?;
                    self.skip_rest(leads.entries.len() > entries);
                    leads.of.resize(leads.entries.len(), self.next_row as u32 - 1);
                }
                if leads.of.is_empty() {
                    return Ok(());
                }
                leads.put_in_order(cursor, self.matching)?;
            }
            let mut found = Vec::new();
            while let (entries @ 0..ENTRIES_AT_ONCE, 0..BYTES_AT_ONCE) = cursor.gathered() {
                let room = ROWS_AT_ONCE.min(ENTRIES_AT_ONCE - entries);
                let next = &leads.order[leads.at..];
                let next = &next[..next.len().min(room)];
                if next.is_empty() {
                    break;
                }
                let looks: Vec<_> = next.iter().map(|(_, lead)| leads.entries.get(*lead as usize)).collect();
                found.clear();
                let looked = cursor.gather_rows(trx, &looks, BYTES_AT_ONCE, &mut found)?;
                eval.steps(looked as u32)?;
                self.of.extend(found.iter().map(|n| leads.of[next[*n as usize].1 as usize]));
                leads.at += looked;
            }
        }
        cursor.note_gathered();
        Ok(())
    }

    /// Returns the maximum number of entries to gather from a span.
    fn limit(&self, room: usize) -> usize {
        if self.matching == Matching::One { 1 } else { room }
    }

    /// Skips the remaining spans of a row that needs only one match.
    fn skip_rest(&mut self, is_found: bool) {
        if is_found && self.matching == Matching::One {
            self.rest = None;
            self.spans = Vec::new().into_iter();
        }
    }

    /// Returns the next span to gather.
    fn next_span(
        &mut self,
        cursor: &TableCursor,
        trx: &SessionTrx,
        scan: &Scan,
        rows: &Batch,
        eval: &EvalContext<'_>,
    ) -> SqlResult<Option<KeySpan>> {
        loop {
            if let Some(rest) = self.rest.take() {
                return Ok(Some(rest));
            }
            if let Some(span) = self.spans.next() {
                trx.counts().count(Counted::ReadKey);
                return Ok(Some(span));
            }
            if self.next_row == rows.len() {
                return Ok(None);
            }
            eval.step()?;
            let spans = resolve(&scan.access, cursor.open_table(), rows.row(self.next_row), eval)?;
            self.spans = spans.spans.into_iter();
            self.next_row += 1;
            self.looks += 1;
        }
    }
}

impl Leads {
    fn clear(&mut self) {
        self.entries.clear();
        self.of.clear();
        self.order.clear();
        self.at = 0;
    }

    fn has_room(&self) -> bool {
        self.entries.len() < LEADS_AT_ONCE && self.entries.size_bytes() < LEAD_BYTES_AT_ONCE
    }

    fn put_in_order(&mut self, cursor: &TableCursor, matching: Matching) -> SqlResult<()> {
        if matching != Matching::InAnyOrder || self.entries.len() < ORDERED_LEADS_MIN {
            self.order.extend((0..self.entries.len() as u32).map(|n| (0, n)));
            return Ok(());
        }
        order_by_rows(cursor.open_table(), cursor.index(), &self.entries, &mut self.order)
    }
}
