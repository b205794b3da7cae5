//! EXPLAIN of one table access: access type, keys, key length, compared values, and the remaining condition.

use std::collections::HashMap;

use cohort_catalog::{Index, IndexColumn, ROWS, Table};
use cohort_expr::Expr;
use cohort_optimize::{Access, Columns, Node, PartId, Sarg, Span, Spans, conditions};
use cohort_plan::conjuncts::split;
use cohort_query::{DirectPlan, PlanBody, QueryPlan};
use cohort_run::{NodeProfile, PlanParts, PlanProfile};
use cohort_sql::without_secrets;
use cohort_types::KeyPart;

/// Columns of an EXPLAIN line after the table name.
#[derive(Default)]
pub(super) struct Line {
    pub(super) kind: Option<&'static str>,
    pub(super) keys: Option<String>,
    pub(super) key: Option<String>,
    pub(super) key_len: Option<u32>,
    /// Key columns that the access uses.
    pub(super) used_parts: Vec<String>,
    pub(super) reference: Option<String>,
    pub(super) rows: Option<u64>,
    pub(super) extra: Vec<&'static str>,
    /// Statistics of the table's reads, for ANALYZE.
    pub(super) measured: Option<Profiled>,
}

/// Statistics of one table.
#[derive(Clone, Copy, Default)]
pub(super) struct Profiled {
    pub(super) read: NodeProfile,
    /// Time in nanoseconds that the reading operator spent outside of the reads.
    pub(super) other: Option<u64>,
}

/// The measurements of one query.
pub(super) struct Measures<'m> {
    parts: PlanParts<'m>,
    /// Numbers of the operators, by address.
    numbers: HashMap<*const Node, PartId>,
}

impl<'m> Measures<'m> {
    /// Returns the measurements of a query of the statement that was measured.
    pub(super) fn of_query(profile: &'m PlanProfile, query: &QueryPlan) -> Measures<'m> {
        let mut numbers = HashMap::new();
        if let PlanBody::Tree(plan) = &query.body {
            plan.each_part(&mut |node, part| _ = numbers.insert(std::ptr::from_ref(node), part));
        }
        Measures { parts: PlanParts { profile, first: query.first_part }, numbers }
    }

    /// Returns whether times were measured.
    pub(super) fn is_timed(&self) -> bool {
        self.parts.profile.is_timed()
    }

    /// Returns the measurements of an operator.
    pub(super) fn node(&self, node: &Node) -> NodeProfile {
        let part = self.numbers.get(&std::ptr::from_ref(node));
        part.map_or_else(NodeProfile::default, |part| self.parts.of(*part))
    }

    /// Returns the measurements of the reads of a table.
    pub(super) fn reads(&self, part: PartId) -> Profiled {
        Profiled { read: self.parts.of(part), other: None }
    }

    /// Returns the measurements of a direct plan.
    pub(super) fn direct(&self) -> NodeProfile {
        self.parts.of(DirectPlan::WHOLE)
    }
}

impl Profiled {
    /// Returns the average number of rows per loop, `None` if the table was never read.
    pub(super) fn rows(&self) -> Option<f64> {
        (self.read.loops > 0).then(|| self.read.read as f64 / self.read.loops as f64)
    }

    /// Returns the percentage of rows that passed the condition.
    pub(super) fn filtered(&self) -> Option<f64> {
        let share = match self.read.read {
            0 => 100.0,
            read => 100.0 * self.read.rows as f64 / read as f64,
        };
        (self.read.loops > 0).then_some(share)
    }
}

/// Returns an expression as text, with passwords and keys masked.
pub(super) fn shown_expr(expr: &Expr) -> String {
    let text = expr.to_string();
    String::from_utf8_lossy(&without_secrets(text.as_bytes(), None)).into_owned()
}

impl Line {
    pub(super) fn of_kind(kind: &'static str) -> Line {
        Line { kind: Some(kind), ..Line::default() }
    }

    /// Returns the line of a JSON_TABLE.
    pub(super) fn of_json_table() -> Line {
        Line { rows: Some(40), extra: vec!["Table function: json_table"], ..Line::of_kind("ALL") }
    }

    /// Returns the line of a SELECT that reads no table.
    pub(super) fn saying(extra: &'static str) -> Line {
        Line { extra: vec![extra], ..Line::default() }
    }
}

/// A table access to describe.
pub(super) struct Read<'r> {
    pub(super) table: &'r Table,
    pub(super) access: &'r Access,
    /// Condition on a row of the table.
    pub(super) filter: Option<&'r Expr>,
    /// Columns that the statement reads.
    pub(super) columns: &'r Columns,
}

impl Read<'_> {
    /// Returns the line, with the estimated number of rows.
    pub(super) fn line(&self, rows: Option<u64>) -> Line {
        let mut line = Line { rows: rows.or(Some(1)), ..Line::default() };
        let kind = self.kind();
        line.kind = Some(kind);
        let conjuncts = self.filter.cloned().map(split).unwrap_or_default();
        line.keys = self.possible_keys(&conjuncts);
        if kind != "ALL" {
            line.key = Some(self.index().name.clone());
            line.key_len = Some(self.used_parts().map(|part| self.part_len(part)).sum());
            let name = |part: &IndexColumn| self.table.columns[part.column].name.clone();
            line.used_parts = self.used_parts().map(name).collect();
        }
        if let (Some(span), true) = (self.one_span(), kind != "range") {
            let name = |e: &Expr| match e.columns().is_empty() {
                true => "const".to_owned(),
                false => shown_expr(e).replace('`', ""),
            };
            line.reference = Some(span.eq.iter().map(name).collect::<Vec<_>>().join(","));
        }
        let is_left = match kind {
            // MariaDB has already read and checked the only row when it outputs the plan.
            "const" => false,
            "eq_ref" | "ref" => conjuncts.iter().any(|conjunct| !self.is_answered(conjunct)),
            _ => !conjuncts.is_empty(),
        };
        line.extra.extend(is_left.then_some("Using where"));
        line.extra.extend((kind != "ALL" && self.covers()).then_some("Using index"));
        line
    }

    /// Returns the line of the table whose rows an UPDATE or DELETE changes. MariaDB reads equal keys as
    /// ranges there, and checks the whole condition.
    pub(super) fn line_of_change(&self) -> Line {
        let mut line = self.line(None);
        if matches!(line.kind, Some("const" | "eq_ref" | "ref")) {
            line.kind = Some("range");
            line.reference = None;
        }
        if self.filter.is_some() && !line.extra.contains(&"Using where") {
            line.extra.insert(0, "Using where");
        }
        line
    }

    /// Returns true if the access is a lookup of one row by a complete unique key with constant values.
    pub(super) fn is_constant(&self) -> bool {
        self.kind() == "const"
    }

    fn index(&self) -> &Index {
        &self.table.indexes[self.access.index]
    }

    /// Returns the span if there is only one and it consists of equalities alone.
    fn one_span(&self) -> Option<&Span> {
        let Spans::List(spans) = &self.access.spans else { return None };
        let [one] = spans.as_slice() else { return None };
        (one.is_of_keys() && !one.eq.is_empty()).then_some(one)
    }

    fn kind(&self) -> &'static str {
        if matches!(self.access.spans, Spans::Full) {
            // The clustered index holds the rows. It is named as a key only if the access needs its order, or
            // only its key.
            let is_key_alone = self.index().kind.is_primary() && self.covers() && !self.table.is_sequence();
            let names_key = self.access.index != ROWS || self.access.is_for_order || is_key_alone;
            return if names_key { "index" } else { "ALL" };
        }
        if matches!(self.access.spans, Spans::Words(_)) {
            return "fulltext";
        }
        let Some(span) = self.one_span() else { return "range" };
        let unique = self.index().kind.is_unique();
        let by_column = span.eq.iter().any(|e| !e.columns().is_empty());
        let is_one_row = unique && span.null_safe == 0 && span.eq.len() == self.index().columns.len();
        match (is_one_row, by_column) {
            (true, true) => "eq_ref",
            (true, false) => "const",
            (false, _) => "ref",
        }
    }

    /// Returns the keys whose first column has a condition, and the key in use.
    fn possible_keys(&self, conjuncts: &[Expr]) -> Option<String> {
        let asked: Vec<usize> = conjuncts.iter().flat_map(conditions).map(|c| c.slot).collect();
        let is_used = |n: usize| n == self.access.index && !matches!(self.access.spans, Spans::Full);
        let is_possible = |n: usize, index: &Index| {
            let first = index.columns.first().map(|part| part.column);
            let is_asked = index.kind.is_scannable() && first.is_some_and(|c| asked.contains(&c));
            index.kind.is_declared() && (is_used(n) || is_asked)
        };
        let indexes = self.table.indexes.iter().enumerate();
        let names: Vec<&str> =
            indexes.filter(|(n, index)| is_possible(*n, index)).map(|(_, index)| &*index.name).collect();
        (!names.is_empty()).then(|| names.join(","))
    }

    /// Returns the key columns that are compared, or all columns if the whole index is read.
    fn used_parts(&self) -> impl Iterator<Item = &IndexColumn> {
        let parts = match &self.access.spans {
            Spans::Full => self.index().columns.len(),
            Spans::Words(_) => 0,
            Spans::List(spans) => {
                let bounded = |span: &Span| usize::from(!span.is_of_keys());
                spans.iter().map(|span| span.eq.len() + bounded(span)).max().unwrap_or(0)
            }
        };
        self.index().columns.iter().take(parts)
    }

    /// Returns the bytes of a key column by MariaDB's rules.
    fn part_len(&self, part: &IndexColumn) -> u32 {
        let column = &self.table.columns[part.column];
        column.ty.key_bytes(part.prefix) + u32::from(column.nullable)
    }

    /// Returns true if the equalities of the access imply the condition.
    fn is_answered(&self, conjunct: &Expr) -> bool {
        let Some(span) = self.one_span() else { return false };
        let is_compared = |slot: usize, value: &Expr| {
            let parts = self.index().columns.iter().zip(&span.eq);
            parts
                .filter(|(part, _)| part.prefix.is_none())
                .any(|(part, eq)| part.column == slot && eq == value)
        };
        conditions(conjunct).iter().any(|condition| match &condition.sarg {
            Sarg::Eq(value) => is_compared(condition.slot, value),
            Sarg::In(_) | Sarg::Ranges(_) | Sarg::NullSafe(_) | Sarg::Like(_) | Sarg::Words(..) => false,
        })
    }

    /// Returns true if the index entries contain all columns that are read.
    fn covers(&self) -> bool {
        let all: Vec<usize> = (0..self.table.columns.len()).collect();
        let columns = match self.columns {
            Columns::Some(columns) => &columns[..],
            Columns::All => &all[..],
        };
        let index = self.index();
        if !index.kind.is_scannable() {
            return false;
        }
        if self.access.index == ROWS {
            return columns.iter().all(|column| index.columns.iter().any(|part| part.column == *column));
        }
        let parts = || index.columns.iter().chain(self.table.row_key());
        let has = |column: &usize| {
            parts().any(|part| {
                let of = &self.table.columns[part.column];
                let key = KeyPart { ty: of.ty.clone(), prefix: part.prefix, nullable: of.nullable };
                part.column == *column && part.prefix.is_none() && key.is_reversible()
            })
        };
        columns.iter().all(has)
    }
}
