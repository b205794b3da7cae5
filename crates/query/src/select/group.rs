//! GROUP BY and aggregates of direct plans. A group consists of its first row, from which unaggregated
//! columns are taken (sql_mode without ONLY_FULL_GROUP_BY), and one state per aggregate.

use cohort_expr::{AggregateState, SortKey, append_group_key, compare_rows, sort_rows};
use cohort_run::Sorted;
use cohort_session::StatementContext;
use cohort_types::{SqlResult, Value, row_memory_bytes};
use hashbrown::HashMap;

use crate::plan::{GroupPlan, StoredWay};
use crate::select::output::KEY_BYTES;
use crate::select::sink::{ScanSink, StoredScan};
use crate::select::stored::Totals;
use crate::select::{Flow, count_sort};

struct Group {
    row: Vec<Value>,
    states: Vec<AggregateState>,
}

/// The groups found so far.
pub(super) struct Groups<'p> {
    plan: &'p GroupPlan,
    width: usize,
    groups: Vec<Group>,
    by_key: HashMap<Vec<u8>, u32, ahash::RandomState>,
    key: Vec<u8>,
}

impl<'p> Groups<'p> {
    /// Creates an empty set. `width` is the number of slots of a row.
    pub(super) fn new(plan: &'p GroupPlan, width: usize) -> Groups<'p> {
        Groups { plan, width, groups: Vec::new(), by_key: HashMap::default(), key: Vec::new() }
    }

    fn start_group(&mut self, ctx: &StatementContext<'_>, row: Vec<Value>) -> SqlResult<usize> {
        let state_bytes = self.plan.aggregates.len() * size_of::<AggregateState>();
        ctx.eval.keep(row_memory_bytes(&row) + state_bytes + self.key.len() + KEY_BYTES)?;
        let states = self.plan.aggregates.iter().map(|a| a.new_state()).collect();
        self.groups.push(Group { row, states });
        Ok(self.groups.len() - 1)
    }

    /// Returns the group of a row.
    fn group_of(&mut self, ctx: &StatementContext<'_>, row: &[Value]) -> SqlResult<usize> {
        if self.plan.keys.is_empty() {
            if self.groups.is_empty() {
                self.start_group(ctx, row.to_vec())?;
            }
            return Ok(0);
        }
        self.key.clear();
        for (expr, collation) in &self.plan.keys {
            let value = expr.eval_output(row, &ctx.eval)?;
            append_group_key(&value, *collation, &mut self.key, &ctx.eval)?;
        }
        if let Some(n) = self.by_key.get(self.key.as_slice()) {
            return Ok(*n as usize);
        }
        let n = self.start_group(ctx, row.to_vec())?;
        self.by_key.insert(self.key.clone(), n as u32);
        Ok(n)
    }

    /// Pushes one row per group: its first row, followed by the results of the aggregates.
    pub(super) fn finish(mut self, ctx: &mut StatementContext<'_>, sink: &mut dyn ScanSink) -> SqlResult<()> {
        if self.groups.is_empty() && !self.plan.explicit {
            self.start_group(ctx, vec![Value::Null; self.width])?;
        }
        if self.plan.sort_by_key && !self.plan.keys.is_empty() {
            self.sort(ctx)?;
        }
        for group in self.groups {
            ctx.check_interrupt()?;
            let mut row = group.row;
            for (aggregate, state) in self.plan.aggregates.iter().zip(group.states) {
                row.push(aggregate.finish(state, &ctx.eval)?);
            }
            if sink.scanned(ctx, &mut row)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    fn sort(&mut self, ctx: &StatementContext<'_>) -> SqlResult<()> {
        let key = |collation| SortKey { collation, descending: false };
        let keys: Vec<SortKey> = self.plan.keys.iter().map(|(_, collation)| key(*collation)).collect();
        let mut keyed = Vec::with_capacity(self.groups.len());
        for group in std::mem::take(&mut self.groups) {
            let mut values = Vec::with_capacity(keys.len());
            for (expr, _) in &self.plan.keys {
                values.push(expr.eval_output(&group.row, &ctx.eval)?.into_owned());
            }
            keyed.push((values, group));
        }
        let key_bytes = keyed.iter().map(|(values, _)| row_memory_bytes(values)).sum();
        sort_rows(&mut keyed, key_bytes, &|a, b| compare_rows(&a.0, &b.0, &keys), &ctx.eval)?;
        let sorted = Sorted { rows: keyed.len() as u64, of_range: false, limited: false };
        count_sort(ctx.process.counts(), sorted);
        self.groups = keyed.into_iter().map(|(_, group)| group).collect();
        Ok(())
    }
}

impl ScanSink for Groups<'_> {
    fn scanned(&mut self, ctx: &mut StatementContext<'_>, row: &mut Vec<Value>) -> SqlResult<Flow> {
        let n = self.group_of(ctx, row)?;
        let group = &mut self.groups[n];
        for (aggregate, state) in self.plan.aggregates.iter().zip(&mut group.states) {
            aggregate.add(state, row, &ctx.eval)?;
        }
        Ok(Flow::Continue)
    }

    fn take_stored(
        &mut self,
        ctx: &mut StatementContext<'_>,
        way: &StoredWay,
        scan: StoredScan<'_>,
    ) -> SqlResult<()> {
        let StoredWay::Totals { aggregates, reads_first_row } = way else {
            unreachable!("rows are no groups")
        };
        let mut totals = Totals::of(ctx, aggregates, *reads_first_row, scan)?;
        if totals.rows() > 0 {
            let row = totals.take_first().unwrap_or_else(|| vec![Value::Null; self.width]);
            let n = self.start_group(ctx, row)?;
            self.groups[n].states = totals.states(&self.plan.aggregates);
        }
        Ok(())
    }
}
