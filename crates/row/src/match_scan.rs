//! [`MatchScan`]: the rows of a table that match many rows of a join's other side.
//!
//! # Concepts
//! Going through the matches of one row takes a handful of calls and a decoded row for each entry. Here the
//! entries of many rows are gathered in one batch, each with the number of the row that it is a match of, and
//! the scan's conditions are asked of all of them as of a scan's ([`LaneScan`]).
//!
//! Entries of a secondary index that lead to rows (*leads*) are gathered first, and their rows are read some
//! at a time. Where the caller takes matches in any order, they are read in the order of their own keys:
//! neighbours lie in one page, and pages that were read a moment ago are near.
//!
//! # Order
//! Otherwise the matches of a row come together, in the order of the index, and rows in theirs.

use cohort_engine::Batch as Entries;
use cohort_expr::EvalContext;
use cohort_optimize::Scan;
use cohort_run::{Batch, Lanes, Matching};
use cohort_trx::{Counted, SessionTrx};
use cohort_types::{Interrupt, SqlResult, Value};

use crate::access::KeySpan;
use crate::cursor::{Into, TableCursor, order_by_rows};
use crate::lane_scan::LaneScan;
use crate::resolve::ResolveAccess;

/// Entries of a batch, and their bytes, after which no more are gathered. They stay in the processor's caches
/// while their conditions are asked.
const ENTRIES_AT_ONCE: usize = 1024;
const BYTES_AT_ONCE: usize = 256 << 10;
/// Rows that are looked for at once.
const ROWS_AT_ONCE: usize = 128;
/// The same of leads, which are short.
const LEADS_AT_ONCE: usize = 32 << 10;
const LEAD_BYTES_AT_ONCE: usize = 1 << 20;
/// So many leads are put in the order of their rows.
const ORDERED_LEADS_MIN: usize = 64;
/// Matches of a row, as the optimizer expects them, beyond which not all are read where one may do.
const FEW_MATCHES: f64 = 8.0;

/// The matches of some rows.
pub struct MatchScan {
    /// Asks the conditions.
    lanes: LaneScan,
    matching: Matching,
    /// Which row each entry of the cursor's batch is a match of.
    of: Vec<u32>,
    /// The row whose spans are computed next, and what is left of the spans of the one before it.
    next_row: usize,
    spans: std::vec::IntoIter<KeySpan>,
    rest: Option<KeySpan>,
    leads: Option<Leads>,
    looks: u64,
}

/// Entries that lead to rows.
#[derive(Default)]
struct Leads {
    entries: Entries,
    of: Vec<u32>,
    /// In which order their rows are read: their numbers behind the first bytes of the rows' keys.
    order: Vec<(u64, u32)>,
    /// The next one of these.
    at: usize,
}

impl MatchScan {
    /// What finds matches so; None if they are looked for row by row.
    pub fn of(
        cursor: &TableCursor,
        scan: &Scan,
        matching: Matching,
        eval: &EvalContext<'_>,
    ) -> Option<MatchScan> {
        if !cursor.gathers() || scan.with_key {
            return None;
        }
        let lanes = LaneScan::new(cursor, scan, eval)?;
        // What is not asked for must not warn.
        if matching == Matching::Until && (scan.rows > FEW_MATCHES || lanes.asks_by_rows()) {
            return None;
        }
        Some(MatchScan {
            lanes,
            matching,
            of: Vec::new(),
            next_row: 0,
            spans: Vec::new().into_iter(),
            rest: None,
            leads: cursor.leads_to_rows().then(Leads::default),
            looks: 0,
        })
    }

    /// Forgets all matches: other rows come.
    pub fn begin(&mut self, cursor: &mut TableCursor) {
        cursor.begin_gathering();
        self.lanes.forget();
        self.of.clear();
        self.next_row = 0;
        self.spans = Vec::new().into_iter();
        self.rest = None;
        if let Some(leads) = &mut self.leads {
            leads.clear();
        }
    }

    /// Entries that were read, and rows whose matches were looked for, since this was asked last.
    pub fn take_examined(&mut self) -> (u64, u64) {
        (self.lanes.take_examined(), std::mem::take(&mut self.looks))
    }

    /// Appends the columns yielded of the next match, and says of which row it is. With `n` it is one of this
    /// row; rows are asked for in their order. None: there are no more.
    #[allow(clippy::too_many_arguments)] // a scan with its surroundings
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
            while let Some(entry) = self.lanes.selected() {
                let of = self.of[entry] as usize;
                match n {
                    Some(n) if of > n => return Ok(None),
                    Some(n) if of < n => self.lanes.pass(),
                    _ => {
                        self.lanes.pass();
                        self.lanes.yield_entry(cursor, entry, scan, out)?;
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
            self.lanes.select_of(cursor, 0..entries, eval)?;
        }
    }

    /// Appends the lanes of the next matches in the order in which they are read, and to `of` the number of
    /// the row of each; false when there are no more.
    #[allow(clippy::too_many_arguments)] // a scan with its surroundings
    pub fn next_lanes(
        &mut self,
        cursor: &mut TableCursor,
        trx: &mut SessionTrx,
        scan: &Scan,
        rows: &Batch,
        of: &mut Vec<u32>,
        lanes: &mut Lanes,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        while self.lanes.selected().is_none() {
            if !self.gather(cursor, trx, scan, rows, eval)? {
                return Ok(false);
            }
            let (entries, _) = cursor.gathered();
            self.lanes.select_of(cursor, 0..entries, eval)?;
        }
        of.extend(self.lanes.all_selected().iter().map(|entry| self.of[*entry as usize]));
        self.lanes.read_selected(cursor, lanes)?;
        Ok(true)
    }

    /// Whether entries may come of a row, or of one before it, or rows of leads.
    fn has_more_of_last(&self, n: usize) -> bool {
        let of_spans = self.next_row == n + 1 && (self.rest.is_some() || self.spans.len() > 0);
        let of_leads = |leads: &Leads| {
            leads.order.get(leads.at).is_some_and(|(_, lead)| leads.of[*lead as usize] as usize <= n)
        };
        of_spans || self.leads.as_ref().is_some_and(of_leads)
    }

    /// Gathers a batch; false when there is nothing left.
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

    /// Gathers the rows that leads lead to, and leads when there are none left.
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

    /// Entries of a span that are gathered at once.
    fn limit(&self, room: usize) -> usize {
        if self.matching == Matching::One { 1 } else { room }
    }

    /// Leaves out what is left of a row's spans where one match is enough.
    fn skip_rest(&mut self, is_found: bool) {
        if is_found && self.matching == Matching::One {
            self.rest = None;
            self.spans = Vec::new().into_iter();
        }
    }

    /// What is gathered next.
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
            let spans = scan.access.resolve(cursor.open_table(), rows.row(self.next_row), eval)?;
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
