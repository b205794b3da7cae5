//! Access path selection: chooses an index of a table and the part of it to read.
//!
//! The cost unit is one row read by a scan of the clustered index. A row found through another index costs
//! [`RowCosts::looked_up`], unless the index covers all wanted columns. A scan of a covering index is cheaper
//! in proportion to the length of its entries, and is chosen even if no condition uses the index. A single
//! row by a unique key is always best, however small the table, because a locking statement then locks no
//! other row. Row counts come from [`Statistics`]; unknown ones are guessed with the usual constants.
//!
//! Plans are cached and reused with other values. If the current values lead to another index than the guess
//! without values would, the plan is marked and used for these values only.

use std::ops::Bound;
use std::sync::Arc;

use cohort_catalog::{Index, IndexColumn, ROWS, Table};
use cohort_expr::Expr;
use cohort_types::{ColumnType, Columns, KeyPart};

use crate::estimate::Statistics;
use crate::physical::{Access, Choice, LikeStart, Span, Spans};
use crate::sargable::{Condition, SPANS_MAX, Sarg};
use crate::sound::check_estimate;

/// Costs of rows that do not come from a scan of the clustered index.
#[derive(Clone, Copy, Debug)]
pub struct RowCosts {
    /// Cost of a row by an equality on a covering index.
    pub covered: f64,
    /// Scans read batches of entries, so the cost of an entry depends on its length.
    pub by_length: bool,
    /// Cost of a row through a secondary index: its entry and a point read.
    pub looked_up: f64,
}

impl RowCosts {
    /// Costs where rows are read one by one: a lookup costs a few rows of a scan. Used for locking reads,
    /// which should touch few rows.
    pub const BY_ROWS: RowCosts = RowCosts { covered: 1.0, by_length: false, looked_up: 3.0 };
    /// Costs where the clustered index is read in batches, which makes its rows cheap.
    pub const BY_BATCHES: RowCosts = RowCosts { covered: 3.0, by_length: true, looked_up: 25.0 };
}

/// Minimum number of entries assumed for a table whose rows are locked. Makes a key lookup win over a scan of
/// even a small table, because each row that is read is locked.
pub const LOCKED_ENTRIES_MIN: u64 = 1 << 16;

/// Factor on the cost of a single row by a whole unique key. Makes it cheaper than any scan.
const ONE_ROW_COST: f64 = 0.01;
/// Selectivity of one equality on a part of a non-unique index.
const EQ_SELECTIVITY: f64 = 0.001;
/// Selectivities of a range with one bound, and with two.
const HALF_RANGE_SELECTIVITY: f64 = 0.3;
const RANGE_SELECTIVITY: f64 = 0.05;
/// Selectivity of a full-text search.
const WORD_SELECTIVITY: f64 = 0.01;
/// Bytes: the fixed cost of reading an entry, the overhead of a row in addition to its columns and key, and
/// the assumed maximum length of a string.
const ENTRY_BYTES: f64 = 16.0;
const ROW_BYTES: f64 = 16.0;
const STRING_BYTES: u32 = 64;

/// The order in which the rest of the statement wants the rows.
#[derive(Clone, Debug, Default)]
pub struct WantedOrder {
    /// Column ordinals, all in one direction. Empty if any order will do.
    pub columns: Vec<usize>,
    pub descending: bool,
    /// Number of rows after which reading stops.
    pub limit: Option<u64>,
}

/// Input of the choice: the table, its indexes and conditions.
pub struct Candidates<'c> {
    pub table: &'c Arc<Table>,
    pub first_slot: usize,
    pub stats: &'c dyn Statistics,
    /// Minimum number of entries to assume. The real number is requested from the engine only if it matters.
    pub entries_min: u64,
    /// Indexes that hints allow. `forced`: one of them must be used.
    pub allowed: Vec<usize>,
    pub forced: bool,
    /// Conditions whose values are available.
    pub conditions: Vec<&'c Condition>,
    pub wanted: WantedOrder,
    /// Columns that are read; `All` if unknown.
    pub columns: Columns,
    pub costs: RowCosts,
}

/// The part of an index that conditions restrict.
struct Prefix {
    eq: Vec<Expr>,
    /// See [`Span::null_safe`].
    null_safe: u64,
    last: Last,
    /// Fraction of the table's rows.
    selectivity: f64,
    /// Fraction that the range leaves of the rows that the equalities leave.
    range: f64,
    unique: bool,
}

enum Last {
    None,
    In(Vec<Expr>),
    Ranges(Vec<(Bound<Expr>, Bound<Expr>)>),
    Like(LikeStart),
}

impl Candidates<'_> {
    /// Returns the cheapest access.
    pub fn choose(&self) -> Choice {
        let by_cost = |a: &Choice, b: &Choice| a.cost.total_cmp(&b.cost);
        if let Some(one_row) = self.allowed.iter().filter_map(|&n| self.one_row(n)).min_by(by_cost) {
            if let Some(trace) = self.stats.trace() {
                trace.accesses(self.table, &[(&one_row, one_row.cost)], &one_row);
            }
            return one_row;
        }
        let entries = (self.stats.entries(self.table).max(self.entries_min) as f64).max(1.0);
        let mut first = self.full_scan(0, entries);
        let guesses: Vec<Choice> = self.allowed.iter().flat_map(|&n| self.with_index(n, entries)).collect();
        let mut choices: Vec<Choice> =
            guesses.iter().map(|guess| self.looked_up(guess.clone(), entries)).collect();
        choices.extend(self.with_words(entries));
        first.cost = self.limited_cost(&first, &choices);
        if self.forced || !self.allowed.contains(&0) {
            first.cost *= 1000.0;
        }
        let scan = self.stats.trace().map(|_| first.clone());
        let (mut guessed, mut best) = ((0, first.cost), first);
        for guess in &guesses {
            let cost = self.limited_cost(guess, &guesses);
            if cost < guessed.1 {
                guessed = (guess.access.index, cost);
            }
        }
        let costs: Vec<f64> = choices.iter().map(|choice| self.limited_cost(choice, &choices)).collect();
        for (choice, cost) in choices.iter().zip(&costs) {
            if *cost < best.cost {
                best = Choice { cost: *cost, ..choice.clone() };
            }
        }
        if let (Some(trace), Some(scan)) = (self.stats.trace(), &scan) {
            let considered: Vec<(&Choice, f64)> =
                std::iter::once((scan, scan.cost)).chain(choices.iter().zip(costs)).collect();
            trace.accesses(self.table, &considered, &best);
        }
        check_estimate(best.rows, best.cost);
        if guessed.0 != best.access.index {
            self.stats.depends_on_values();
        }
        best
    }

    /// Returns the cost of a choice under a LIMIT. Rows are read in the wanted order until enough of them
    /// pass the conditions; the estimates of other indexes may show that few do.
    fn limited_cost(&self, choice: &Choice, others: &[Choice]) -> f64 {
        let (Some(limit), true) = (self.wanted.limit, choice.ordered) else { return choice.cost };
        let passing = others.iter().map(|other| other.rows).fold(choice.rows, f64::min).max(1.0);
        let read = |share: f64| choice.rows.min((limit as f64 * 2.0 / share).max(1.0));
        choice.cost * read(passing / choice.rows.max(1.0)) / read(1.0)
    }

    /// Replaces the row estimate of a choice by the statistics for its spans, if known.
    fn looked_up(&self, choice: Choice, entries: f64) -> Choice {
        if matches!(choice.access.spans, Spans::Full) {
            return choice;
        }
        match self.stats.rows_in(self.table, &choice.access) {
            Some(rows) => self.choice(
                choice.access.index,
                choice.access.spans,
                rows.clamp(1.0, entries),
                choice.ordered,
            ),
            None => choice,
        }
    }

    /// Returns the choice of a single row by a whole unique key.
    fn one_row(&self, n: usize) -> Option<Choice> {
        let prefix = self.prefix(&self.table.indexes[n]);
        let is_one = prefix.unique && matches!(prefix.last, Last::None);
        is_one.then(|| {
            let mut choice = self.span_choice(n, prefix, 1.0);
            choice.cost *= ONE_ROW_COST;
            choice
        })
    }

    fn with_index(&self, n: usize, entries: f64) -> Vec<Choice> {
        let index = &self.table.indexes[n];
        let prefix = self.prefix(index);
        let mut found = Vec::new();
        if !prefix.eq.is_empty() || !matches!(prefix.last, Last::None) {
            found.push(self.span_choice(n, prefix, entries));
        }
        let full = self.full_scan(n, entries);
        if full.ordered || n == ROWS || self.costs.by_length && self.covers(n) {
            found.push(full);
        }
        found
    }

    /// Returns the choices for MATCH conditions. The number of rows is known only at execution.
    fn with_words(&self, entries: f64) -> Vec<Choice> {
        let of_index = |condition: &&Condition| {
            let Sarg::Words(id, search) = &condition.sarg else { return None };
            let slots = self.first_slot..self.first_slot + self.table.columns.len();
            if !slots.contains(&condition.slot) {
                return None;
            }
            let n = self.table.indexes.iter().position(|index| index.id == *id)?;
            Some(self.choice(n, Spans::Words(search.clone()), (entries * WORD_SELECTIVITY).max(1.0), false))
        };
        self.conditions.iter().filter_map(of_index).collect()
    }

    /// Collects the equalities on the leading key parts, then one IN list or range.
    fn prefix(&self, index: &Index) -> Prefix {
        let mut prefix = Prefix {
            eq: Vec::new(),
            null_safe: 0,
            last: Last::None,
            selectivity: 1.0,
            range: 1.0,
            unique: false,
        };
        for (n, part) in index.columns.iter().enumerate() {
            let slot = self.first_slot + part.column;
            let of_column = || self.conditions.iter().filter(|c| c.slot == slot).map(|c| &c.sarg);
            let eq = of_column().find_map(|s| if let Sarg::Eq(e) = s { Some(e) } else { None });
            let null_safe =
                || of_column().find_map(|s| if let Sarg::NullSafe(e) = s { Some(e) } else { None });
            let is_null_safe = eq.is_none() && n < 64;
            if let Some(eq) = eq.or_else(|| null_safe().filter(|_| is_null_safe)) {
                prefix.eq.push(eq.clone());
                prefix.selectivity *= EQ_SELECTIVITY;
                prefix.null_safe |= u64::from(is_null_safe) << n.min(63);
                if n + 1 == index.columns.len() && part.prefix.is_none() && prefix.null_safe == 0 {
                    prefix.unique = index.kind.is_unique();
                }
                // No further part can follow a prefix part: equal prefixes do not imply equal columns.
                if part.prefix.is_some() {
                    return prefix;
                }
                continue;
            }
            let list = of_column().find_map(|s| if let Sarg::In(list) = s { Some(list) } else { None });
            if let Some(list) = list.filter(|l| l.len() <= SPANS_MAX) {
                prefix.unique =
                    n + 1 == index.columns.len() && index.kind.is_unique() && part.prefix.is_none();
                prefix.selectivity *= (EQ_SELECTIVITY * list.len() as f64).min(1.0);
                prefix.last = Last::In(list.clone());
                return prefix;
            }
            self.add_range(&mut prefix, slot);
            return prefix;
        }
        prefix
    }

    fn add_range(&self, prefix: &mut Prefix, slot: usize) {
        let ranges: Vec<&Vec<(Bound<Expr>, Bound<Expr>)>> = self
            .conditions
            .iter()
            .filter(|c| c.slot == slot)
            .filter_map(|c| if let Sarg::Ranges(r) = &c.sarg { Some(r) } else { None })
            .collect();
        let Some(first) = ranges.first() else {
            let start = self.conditions.iter().find_map(|c| match &c.sarg {
                Sarg::Like(start) if c.slot == slot => Some(start.clone()),
                _ => None,
            });
            if let Some(start) = start {
                prefix.range = RANGE_SELECTIVITY;
                prefix.selectivity *= prefix.range;
                prefix.last = Last::Like(start);
            }
            return;
        };
        if first.len() > 1 {
            prefix.range = (RANGE_SELECTIVITY * first.len() as f64).min(1.0);
            prefix.selectivity *= prefix.range;
            prefix.last = Last::Ranges((*first).clone());
            return;
        }
        // One lower and one upper bound; further ones are left to the filter.
        let (mut low, mut high) = (Bound::Unbounded, Bound::Unbounded);
        for (lower, upper) in ranges.iter().filter(|r| r.len() == 1).map(|r| &r[0]) {
            if matches!(low, Bound::Unbounded) {
                low = lower.clone();
            }
            if matches!(high, Bound::Unbounded) {
                high = upper.clone();
            }
        }
        let both = !matches!(low, Bound::Unbounded) && !matches!(high, Bound::Unbounded);
        prefix.range = if both { RANGE_SELECTIVITY } else { HALF_RANGE_SELECTIVITY };
        prefix.selectivity *= prefix.range;
        prefix.last = Last::Ranges(vec![(low, high)]);
    }

    fn span_choice(&self, n: usize, prefix: Prefix, entries: f64) -> Choice {
        let index = &self.table.indexes[n];
        let one_eq = matches!(prefix.last, Last::None);
        let keys = match &prefix.last {
            Last::In(list) => list.len() as f64,
            _ => 1.0,
        };
        let per_key = || {
            let parts = prefix.eq.len() + usize::from(matches!(prefix.last, Last::In(_)));
            Some(self.stats.rows_per_key(self.table, n, parts)? * prefix.range)
        };
        let rows = match (prefix.unique, per_key()) {
            (true, _) => keys,
            (false, Some(rows)) => (rows * keys).clamp(1.0, entries),
            (false, None) => (entries * prefix.selectivity).max(keys).min(entries),
        };
        debug_assert!(
            (0.0..=1.0).contains(&prefix.selectivity),
            "a span of {} of the rows",
            prefix.selectivity
        );
        // The parts fixed by single equalities do not take part in the order.
        let one_row = prefix.unique && one_eq && !self.wanted.columns.is_empty();
        let ordered = one_row || self.is_ordered(index, prefix.eq.len());
        let spans = Spans::List(spans_of(prefix.eq, prefix.null_safe, prefix.last));
        self.choice(n, spans, rows, ordered)
    }

    /// Returns true if the index entries contain all columns that are read.
    fn covers(&self, n: usize) -> bool {
        let Columns::Some(columns) = &self.columns else { return n == ROWS };
        if !self.table.indexes[n].kind.is_scannable() {
            return false;
        }
        let parts = || self.table.indexes[n].columns.iter().chain(self.table.row_key());
        let has = |column: &usize| parts().any(|part| part.column == *column && self.is_reversible(part));
        n == ROWS || columns.iter().all(has)
    }

    fn is_reversible(&self, part: &IndexColumn) -> bool {
        let column = &self.table.columns[part.column];
        let key = KeyPart { ty: column.ty.clone(), prefix: part.prefix, nullable: column.nullable };
        part.prefix.is_none() && key.is_reversible()
    }

    /// Returns the estimated length of an entry of a secondary index.
    fn entry_length(&self, n: usize) -> f64 {
        let parts = self.table.indexes[n].columns.iter().chain(self.table.row_key());
        let length = |part: &IndexColumn| self.table.columns[part.column].ty.key_bytes(part.prefix);
        ENTRY_BYTES + parts.map(|part| f64::from(length(part).min(STRING_BYTES))).sum::<f64>()
    }

    /// Returns the estimated length of a row.
    fn row_length(&self) -> f64 {
        let columns = self.table.columns.iter();
        let length = |ty: &ColumnType| f64::from(ty.key_bytes(None).min(STRING_BYTES));
        ENTRY_BYTES + ROW_BYTES + columns.map(|column| length(&column.ty)).sum::<f64>()
    }

    fn full_scan(&self, n: usize, entries: f64) -> Choice {
        let ordered = self.is_ordered(&self.table.indexes[n], 0);
        self.choice(n, Spans::Full, entries, ordered)
    }

    fn choice(&self, n: usize, spans: Spans, rows: f64, ordered: bool) -> Choice {
        let read = match self.wanted.limit {
            Some(limit) if ordered || self.wanted.columns.is_empty() => {
                rows.min((limit as f64 * 2.0).max(1.0))
            }
            _ => rows,
        };
        let per_row = match (n, self.covers(n)) {
            (ROWS, _) => 1.0,
            (_, true) if self.costs.by_length && is_scan(&spans) => self.entry_length(n) / self.row_length(),
            (_, true) => self.costs.covered,
            (_, false) => self.costs.looked_up,
        };
        // Sorting means handling each row once more.
        let sort = if ordered || self.wanted.columns.is_empty() { 0.0 } else { rows * 0.5 };
        debug_assert!(per_row > 0.0, "rows of an index cost {per_row}");
        let reverse = ordered && self.wanted.descending;
        let access = Access { index: n, spans, reverse, is_for_order: ordered };
        Choice { access, rows, cost: read * per_row + sort, ordered }
    }

    /// Returns true if entries come in the wanted order when the first `fixed` parts are constant.
    fn is_ordered(&self, index: &Index, fixed: usize) -> bool {
        if self.wanted.columns.is_empty() {
            return false;
        }
        let mut order: Vec<Option<usize>> =
            index.columns.iter().map(|p| p.prefix.is_none().then_some(p.column)).collect();
        if index.kind.ends_with_row_key() {
            order.extend(self.table.row_key().iter().map(|p| p.prefix.is_none().then_some(p.column)));
        }
        let constant: Vec<usize> = order[..fixed.min(order.len())].iter().flatten().copied().collect();
        let mut rest = order[fixed.min(order.len())..].iter();
        let whole_key = index.kind.is_primary();
        for wanted in &self.wanted.columns {
            if constant.contains(wanted) {
                continue;
            }
            match rest.next() {
                Some(Some(column)) if column == wanted => {}
                // After the whole primary key, no ties are left to order.
                None if whole_key => return true,
                _ => return false,
            }
        }
        true
    }
}

/// Returns true if the spans are expected to contain many adjacent entries.
fn is_scan(spans: &Spans) -> bool {
    let Spans::List(list) = spans else { return true };
    list.iter().any(|span| !span.is_of_keys())
}

fn spans_of(eq: Vec<Expr>, null_safe: u64, last: Last) -> Vec<Span> {
    let of_keys = Span { null_safe, ..Span::of_keys(eq) };
    match last {
        Last::None => vec![of_keys],
        Last::In(list) => {
            let one = |value: Expr| {
                let mut span = of_keys.clone();
                span.eq.push(value);
                span
            };
            list.into_iter().map(one).collect()
        }
        Last::Ranges(ranges) => {
            ranges.into_iter().map(|(lower, upper)| Span { lower, upper, ..of_keys.clone() }).collect()
        }
        Last::Like(start) => vec![Span { like: Some(start), ..of_keys }],
    }
}
