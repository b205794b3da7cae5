//! Plan information in the slow log (`log_slow_verbosity`).

use std::fmt::Write;
use std::sync::Arc;

use cohort_catalog::Table;
use cohort_dml::TargetPlan;
use cohort_expr::Expr;
use cohort_optimize::{Access, JoinMethod, Node, Plan, Spans};
use cohort_query::{DirectPlan, PlanBody, QueryPlan};
use cohort_run::PlanProfile;
use cohort_types::Value;

use crate::cached_plan::Planned;
use crate::explain::{Known, explain};
use crate::explain_access::Measures;

/// Bits of `log_slow_verbosity`.
pub(crate) struct Verbosity(pub(crate) u64);

impl Verbosity {
    const INNODB: u64 = 1;
    const QUERY_PLAN: u64 = 2;
    const EXPLAIN: u64 = 4;
    const ENGINE: u64 = 8;
    const WARNINGS: u64 = 16;
    const FULL: u64 = 32;

    fn has(&self, part: u64) -> bool {
        self.0 & (part | Verbosity::FULL) != 0
    }

    /// Returns true if statements must be measured.
    pub(crate) fn measures(&self) -> bool {
        self.has(Verbosity::QUERY_PLAN | Verbosity::EXPLAIN | Verbosity::ENGINE | Verbosity::INNODB)
    }

    /// Returns true if entries show the work of engines, and the steps of commits.
    pub(crate) fn is_about_engines(&self) -> bool {
        self.has(Verbosity::ENGINE | Verbosity::INNODB)
    }

    pub(crate) fn logs_warnings(&self) -> bool {
        self.has(Verbosity::WARNINGS)
    }
}

/// Properties of a plan that the slow log shows.
#[derive(Default)]
struct Traits {
    full_scan: bool,
    full_join: bool,
    temporary: bool,
    temporary_on_disk: bool,
    sorts: bool,
    sorts_on_disk: bool,
    keeps_the_first: bool,
}

/// Numbers of a statement's plan that its session counts.
#[derive(Default)]
pub(crate) struct PlanNumbers {
    pub tmp_tables: u64,
    pub tmp_disk_tables: u64,
    pub merge_passes: u64,
}

/// Returns the slow-log lines about a plan that ran with operator statistics.
pub(crate) fn plan_lines(
    plan: &Planned,
    profile: &PlanProfile,
    numbers: &PlanNumbers,
    verbosity: &Verbosity,
) -> String {
    let mut lines = String::new();
    if verbosity.has(Verbosity::QUERY_PLAN) {
        if numbers.tmp_tables > 0 {
            let PlanNumbers { tmp_tables, tmp_disk_tables, .. } = numbers;
            let _ = writeln!(lines, "# Tmp_tables: {tmp_tables}  Tmp_disk_tables: {tmp_disk_tables}");
        }
        lines.push_str(&Traits::of(plan, profile).lines(numbers.merge_passes));
    }
    if verbosity.has(Verbosity::EXPLAIN) {
        let (columns, rows) = explain(plan, false, Some(profile), &NothingKnown);
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let _ = writeln!(lines, "#\n# explain: {}", names.join("\t"));
        for row in rows {
            let cells: Vec<String> = row.iter().map(cell).collect();
            let _ = writeln!(lines, "# explain: {}", cells.join("\t"));
        }
        lines.push_str("#\n");
    }
    lines
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Double(number) => format!("{number:.2}"),
        other => other.to_text(),
    }
}

/// Skips the facts that EXPLAIN looks up: the statement has already run, or is running.
pub(crate) struct NothingKnown;

impl Known for NothingKnown {
    fn lacks(&self, _: &Arc<Table>, _: &Access) -> bool {
        false
    }

    fn is_never(&self, _: &Expr) -> bool {
        false
    }
}

/// Returns the query of a statement, and the table that it changes, if that is read without a query.
fn parts_of(plan: &Planned) -> (Option<&QueryPlan>, Option<&TargetPlan>) {
    match plan {
        Planned::Query(query) => (Some(query), None),
        Planned::Insert(insert) => (insert.query(), None),
        Planned::Joined(change) => (Some(change.source()), None),
        Planned::Update(update) => (None, Some(update.target())),
        Planned::Delete(delete) => (None, Some(delete.target())),
    }
}

/// Returns the nanoseconds that a plan spent in reads of its tables.
pub(crate) fn reads_ns(plan: &Planned, profile: &PlanProfile) -> u64 {
    let (query, target) = parts_of(plan);
    let of_target = target.map_or(0, |target| profile.of(target.part).nanos);
    let of_query = query.map_or(0, |query| {
        let measures = Measures::of_query(profile, query);
        match &query.body {
            PlanBody::Direct(_) => measures.reads(DirectPlan::READS).read.nanos,
            PlanBody::Tree(tree) => {
                let mut sum = 0;
                tree.each_scan(&mut |scan| sum += measures.reads(scan.part).read.nanos);
                sum
            }
        }
    });
    of_target + of_query
}

impl Traits {
    fn of(plan: &Planned, profile: &PlanProfile) -> Traits {
        let (query, target) = parts_of(plan);
        let mut traits = Traits::default();
        if let Some(target) = target {
            traits.full_scan = matches!(target.access.spans, Spans::Full);
            traits.sorts = !target.sort.is_empty();
        }
        match query.map(|query| &query.body) {
            Some(PlanBody::Direct(direct)) => traits.add_direct(direct),
            Some(PlanBody::Tree(tree)) => {
                let measures = query.map(|query| Measures::of_query(profile, query));
                measures.inspect(|measures| traits.add_tree(tree, measures));
            }
            None => {}
        }
        traits
    }

    fn add_direct(&mut self, direct: &DirectPlan) {
        self.full_scan |=
            direct.table.as_ref().is_some_and(|table| matches!(table.access.spans, Spans::Full));
        self.temporary |= direct.distinct || direct.group.as_ref().is_some_and(|group| group.explicit);
        self.sorts |= !direct.sort.is_empty();
        self.keeps_the_first |= !direct.sort.is_empty() && direct.limit.count.is_some();
    }

    fn add_tree(&mut self, tree: &Plan, measures: &Measures<'_>) {
        tree.each_scan(&mut |scan| self.full_scan |= matches!(scan.access.spans, Spans::Full));
        tree.each_node(&mut |node| {
            let spills = |node: &Node| measures.node(node).spills;
            let below: u64 = node.inputs().into_iter().map(spills).sum();
            let on_disk = spills(node) > below;
            match node {
                Node::Virtual(_) => (self.full_scan, self.temporary) = (true, true),
                Node::Join(join) => {
                    self.full_join |= match &join.method {
                        JoinMethod::Hash { right, .. } | JoinMethod::Loop { right, .. } => {
                            matches!(right, Node::Scan(scan) if matches!(scan.access.spans, Spans::Full))
                        }
                        JoinMethod::Lookup(_) | JoinMethod::Json(_) => false,
                    };
                }
                Node::Sort(sort) => {
                    self.sorts = true;
                    self.sorts_on_disk |= on_disk;
                    self.keeps_the_first |= sort.limit.is_some();
                }
                Node::Aggregate(group) if !group.is_grouped => {}
                Node::Aggregate(_)
                | Node::Distinct { .. }
                | Node::Common { .. }
                | Node::Window(_)
                | Node::SetOperation(_)
                | Node::SetChain(_) => {
                    self.temporary = true;
                    self.temporary_on_disk |= on_disk;
                }
                _ => {}
            }
        });
    }

    /// Returns an empty text if no property is set.
    fn lines(&self, merge_passes: u64) -> String {
        if !(self.full_scan || self.full_join || self.temporary || self.sorts) {
            return String::new();
        }
        let word = |is: bool| if is { "Yes" } else { "No" };
        format!(
            "# Full_scan: {}  Full_join: {}  Tmp_table: {}  Tmp_table_on_disk: {}\n\
             # Filesort: {}  Filesort_on_disk: {}  Merge_passes: {merge_passes}  Priority_queue: {}\n",
            word(self.full_scan),
            word(self.full_join),
            word(self.temporary),
            word(self.temporary_on_disk),
            word(self.sorts),
            word(self.sorts_on_disk),
            word(self.keeps_the_first)
        )
    }
}
