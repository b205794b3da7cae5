//! The state of the running statement. A statement that runs inside it has its own.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use cohort_run::PlanProfile;
use cohort_sql::ast::Variable;
use cohort_types::{Value, Warning};

use crate::examined::RowsExamined;

/// The state that belongs to one statement. Readers change it through its cells.
#[derive(Default)]
pub struct StatementState {
    /// LAST_INSERT_ID(n) of the statement.
    pub next_insert_id: Cell<Option<u64>>,
    /// Rows inserted by earlier parts of a bulk execution. Row numbers of this part continue after them.
    pub rows_before: Cell<u64>,
    /// LIMIT ROWS EXAMINED.
    pub examined: RowsExamined,
    /// While a statement prepared over the protocol runs, the number of result columns known to its client.
    pub columns_sent: Cell<Option<usize>>,
    /// FOUND_ROWS() of a query that the statement reads without sending its rows.
    pub rows_found: Cell<Option<u64>>,
    /// Whether the statement scans a whole table, which the client is notified of.
    pub reads_whole_table: Cell<bool>,
    /// Warnings found during planning.
    pub planning_warnings: RefCell<Vec<Warning>>,
    /// Values for local variables of the program that the statement is part of.
    pub assigned: RefCell<Vec<(Variable, Value)>>,
    /// Values that functions have returned in OUT and INOUT parameters, for local variables by their places.
    pub out: RefCell<Vec<(u32, Value)>>,
    /// Deadline, by `Clock::monotonic_ns`.
    pub deadline_ns: Cell<Option<u64>>,
    /// Whether the times of plans are measured.
    pub times_plans: Cell<bool>,
    /// Planning time in nanoseconds, if it was measured.
    pub planning_ns: Cell<u64>,
    /// Measurements of the plan that runs, if there are any.
    profile: RefCell<Option<Arc<PlanProfile>>>,
}

impl StatementState {
    /// Returns the measurements of the statement's plan, if there are any.
    #[inline]
    pub fn profile(&self) -> Option<Arc<PlanProfile>> {
        self.profile.borrow().clone()
    }

    /// Sets the measurements of the statement's plan. Returns the previous ones.
    #[inline]
    pub fn measure(&self, profile: Option<Arc<PlanProfile>>) -> Option<Arc<PlanProfile>> {
        self.profile.replace(profile)
    }

    /// Begins a statement inside this one. Returns the state of the outer one, for
    /// [`StatementState::end_inner`]. The deadline stays in force.
    pub fn begin_inner(&self) -> StatementState {
        let outer = StatementState::default();
        outer.deadline_ns.set(self.deadline_ns.get());
        self.swap(&outer);
        outer
    }

    /// Ends the inner statement and restores the state of the outer one. Its result also depends on scans of
    /// the inner one.
    pub fn end_inner(&self, outer: &StatementState) {
        outer.reads_whole_table.set(outer.reads_whole_table.get() || self.reads_whole_table.get());
        self.swap(outer);
    }

    pub(crate) fn swap(&self, other: &StatementState) {
        let StatementState {
            next_insert_id,
            rows_before,
            examined,
            columns_sent,
            rows_found,
            reads_whole_table,
            planning_warnings,
            assigned,
            out,
            deadline_ns,
            times_plans,
            planning_ns,
            profile,
        } = self;
        next_insert_id.swap(&other.next_insert_id);
        rows_before.swap(&other.rows_before);
        examined.swap(&other.examined);
        columns_sent.swap(&other.columns_sent);
        rows_found.swap(&other.rows_found);
        reads_whole_table.swap(&other.reads_whole_table);
        planning_warnings.swap(&other.planning_warnings);
        assigned.swap(&other.assigned);
        out.swap(&other.out);
        deadline_ns.swap(&other.deadline_ns);
        times_plans.swap(&other.times_plans);
        planning_ns.swap(&other.planning_ns);
        profile.swap(&other.profile);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inner_statement_has_its_own_state() {
        let state = StatementState::default();
        state.next_insert_id.set(Some(7));
        state.deadline_ns.set(Some(9));
        state.examined.begin(Some(1));
        state.examined.examine().expect("the first row");
        let outer = state.begin_inner();
        assert_eq!((state.next_insert_id.get(), state.deadline_ns.get()), (None, Some(9)));
        assert!(!state.examined.is_limited());
        state.next_insert_id.set(Some(8));
        state.rows_found.set(Some(3));
        state.reads_whole_table.set(true);
        state.end_inner(&outer);
        assert_eq!((state.next_insert_id.get(), state.rows_found.get()), (Some(7), None));
        assert!(state.reads_whole_table.get());
        assert!(state.examined.examine().is_err(), "the outer limit goes on");
    }
}
