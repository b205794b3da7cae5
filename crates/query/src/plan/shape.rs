//! [`PlanShape`]: properties of a plan that SHOW STATUS counts. Computed once, and counted at each run.

use cohort_optimize::{Access, JoinMethod, Node, Plan, Spans};
use cohort_trx::{Counted, SessionCounts};

use crate::plan::body::{DirectPlan, PlanBody};

/// Counts per run of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanShape {
    /// Some table is read completely, or rows are kept in a temporary table without indexes.
    pub(crate) reads_whole_table: bool,
    /// It reads any table, including virtual tables.
    pub(crate) reads_tables: bool,
    scans: u64,
    ranges: u64,
    full_joins: u64,
    range_joins: u64,
    temporary_tables: u64,
}

/// Position of a table in its SELECT.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Joined,
}

impl PlanShape {
    /// Computes the shape of a plan.
    pub fn of(body: &PlanBody) -> PlanShape {
        let mut shape = PlanShape::default();
        match body {
            PlanBody::Direct(direct) => shape.direct(direct),
            PlanBody::Tree(plan) => shape.tree(plan),
        }
        shape
    }

    /// Counts one run.
    pub(crate) fn count(&self, counts: &SessionCounts) {
        let all = [
            (Counted::SelectScan, self.scans),
            (Counted::SelectRange, self.ranges),
            (Counted::SelectFullJoin, self.full_joins),
            (Counted::SelectFullRangeJoin, self.range_joins),
            (Counted::CreatedTmpTables, self.temporary_tables),
        ];
        for (what, times) in all.into_iter().filter(|(_, times)| *times > 0) {
            counts.count_many(what, times);
        }
    }

    fn direct(&mut self, plan: &DirectPlan) {
        if let Some(table) = &plan.table {
            self.access(&table.access, Place::First);
        }
        let is_grouped = plan.group.as_ref().is_some_and(|group| !group.keys.is_empty());
        self.temporary_tables += u64::from(is_grouped) + u64::from(plan.distinct);
    }

    fn tree(&mut self, plan: &Plan) {
        self.node(&plan.root, Place::First);
        plan.subqueries.iter().for_each(|subquery| self.node(&subquery.root, Place::First));
        for common in &plan.common {
            self.temporary_tables += 1;
            self.node(&common.seed, Place::First);
            common.step.iter().for_each(|step| self.node(&step.node, Place::First));
        }
    }

    fn node(&mut self, node: &Node, place: Place) {
        match node {
            Node::Scan(scan) => return self.access(&scan.access, place),
            Node::Virtual(_) => {
                self.temporary_tables += 1;
                self.whole(place);
            }
            Node::Common { .. } => self.whole(place),
            Node::Series { .. } => self.scanned(place),
            Node::Join(join) => {
                self.node(&join.left, place);
                return match &join.method {
                    JoinMethod::Lookup(scan) => self.access(&scan.access, Place::Joined),
                    JoinMethod::Hash { right, .. } => self.joined(right),
                    JoinMethod::Loop { right, .. } => self.joined(right),
                    // Its rows are computed from the left row; there is no key lookup.
                    JoinMethod::Json(_) => self.scanned(Place::Joined),
                };
            }
            Node::Filter { input, .. } | Node::Gate { input, .. } => return self.node(input, place),
            // A rollup sorts its rows instead.
            Node::Aggregate(group) => {
                self.temporary_tables += u64::from(!group.keys.is_empty() && !group.rollup);
            }
            Node::Window(_) => self.temporary_tables += 1,
            Node::Distinct { .. } | Node::SetOperation(_) | Node::SetChain(_) => {
                self.temporary_tables += 1;
                self.reads_whole_table = true;
            }
            _ => {}
        }
        node.inputs().into_iter().for_each(|input| self.node(input, Place::First));
    }

    /// Counts a stored right side of a join, which is read completely.
    fn joined(&mut self, right: &Node) {
        let mut table = right;
        while let Node::Filter { input, .. } | Node::Gate { input, .. } = table {
            table = input;
        }
        let is_table = matches!(
            table,
            Node::Scan(_) | Node::Virtual(_) | Node::Common { .. } | Node::Series { .. } | Node::Join(_)
        );
        match is_table {
            true => self.node(table, Place::Joined),
            // The rows of another SELECT.
            false => {
                self.full_joins += 1;
                self.node(table, Place::First);
            }
        }
    }

    fn access(&mut self, access: &Access, place: Place) {
        self.reads_tables = true;
        match (&access.spans, place) {
            (Spans::Full, _) => self.whole(place),
            (Spans::List(spans), _) if is_of_keys(spans) => {}
            (Spans::List(_), Place::First) => self.ranges += 1,
            (Spans::List(_), Place::Joined) => self.range_joins += 1,
            (Spans::Words(_), _) => {}
        }
    }

    fn whole(&mut self, place: Place) {
        self.reads_whole_table = true;
        self.scanned(place);
    }

    fn scanned(&mut self, place: Place) {
        self.reads_tables = true;
        match place {
            Place::First => self.scans += 1,
            Place::Joined => self.full_joins += 1,
        }
    }
}

/// Returns true for the values of a single key, without a range: `const`, `eq_ref` or `ref` in EXPLAIN.
fn is_of_keys(spans: &[cohort_optimize::Span]) -> bool {
    matches!(spans, [one] if one.is_of_keys() && !one.eq.is_empty())
}
