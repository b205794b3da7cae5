//! What stands out in a plan: found once, when it is made, and counted each time that it runs.

use cohort_optimize::{Access, JoinMethod, Node, Plan, Spans};
use cohort_trx::{Counted, SessionCounts};

use crate::plan::query::{DirectPlan, PlanBody};

/// How often a plan does what SHOW STATUS counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanShape {
    /// Any of its tables is read as a whole, or rows are kept in a table without indexes.
    pub(crate) reads_whole_table: bool,
    /// It reads any table, computed ones too.
    pub(crate) reads_tables: bool,
    scans: u64,
    ranges: u64,
    full_joins: u64,
    range_joins: u64,
    temporary_tables: u64,
}

/// Where a table stands among those of its SELECT.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Joined,
}

impl PlanShape {
    /// The shape of a plan.
    pub fn of(body: &PlanBody) -> PlanShape {
        let mut shape = PlanShape::default();
        match body {
            PlanBody::Direct(direct) => shape.direct(direct),
            PlanBody::Tree(plan) => shape.tree(plan),
        }
        shape
    }

    /// Counts a run.
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
                    // Its rows are made of the left one: it is asked by no key.
                    JoinMethod::Json(_) => self.scanned(Place::Joined),
                };
            }
            Node::Filter { input, .. } | Node::Gate { input, .. } => return self.node(input, place),
            // A rollup sorts its rows.
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

    /// What is kept for a join, to be gone through.
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

/// The values of one key, no range: EXPLAIN calls it `const`, `eq_ref` or `ref`.
fn is_of_keys(spans: &[cohort_optimize::Span]) -> bool {
    matches!(spans, [one] if one.is_of_keys() && !one.eq.is_empty())
}
