//! Steps of the optimizer trace about joins.

use cohort_plan::{FromTable, Source};

use crate::group::JoinGroup;
use crate::join::{Candidate, Conjunct, Way};
use crate::lower::{Lowering, SelectContext};
use crate::physical::JoinKind;
use crate::trace::{OptimizerTrace, TraceScope, access_type};

impl Candidate {
    /// Writes the method that was chosen for a table.
    pub(crate) fn trace(&self, trace: &OptimizerTrace, table: &FromTable) {
        let (way, choice) = match &self.way {
            Way::Access(choice) => ("access", Some(choice)),
            Way::Hash(choice) => ("hash join", choice.as_ref()),
            Way::Loop(choice) => ("nested loop", choice.as_ref()),
            Way::Json => ("json_table", None),
        };
        let _chosen = trace.object("chosen_access_method");
        match (&self.way, choice, &table.source) {
            (Way::Access(choice), _, _) => trace.text("type", access_type(&choice.access)),
            _ => trace.text("type", way),
        }
        if let (Some(choice), Source::Base { table: base, .. }) = (choice, &table.source) {
            let _access = trace.object("access");
            trace.access(base, &choice.access, choice.rows, choice.cost);
        }
        trace.number("records", self.fan_out);
        trace.number("cost", self.cost);
        trace.flag("uses_join_buffering", matches!(self.way, Way::Hash(_) | Way::Loop(Some(_))));
    }
}

impl<'o> Lowering<'o> {
    /// Begins the trace of a FROM: its conditions, its tables and the accesses to each table alone.
    pub(crate) fn trace_begin(
        &self,
        trace: &'o OptimizerTrace,
        group: &JoinGroup<'_>,
        conjuncts: &[Conjunct],
        context: SelectContext,
    ) -> [TraceScope<'o>; 2] {
        let step = trace.object("join_optimization");
        trace.number("select_id", context.block.into());
        let steps = trace.list("steps");
        if !conjuncts.is_empty() {
            let _condition = trace.object("condition_processing");
            trace.text("condition", "WHERE");
            let all: Vec<String> = conjuncts.iter().map(|conjunct| conjunct.expr.to_string()).collect();
            trace.text("resulting_condition", &all.join(" and "));
        }
        {
            let _tables = trace.list("table_dependencies");
            for (n, table) in group.tables.iter().enumerate() {
                let _table = trace.item();
                trace.text("table", &table.name);
                trace.flag("row_may_be_null", false);
                let made_of = (0..group.tables.len()).filter(|other| group.made_of[n] & 1 << other != 0);
                trace.texts("depends_on", made_of.map(|other| &*group.tables[other].name));
            }
            for outer in &group.outers {
                for table in outer.from.tables() {
                    let _table = trace.item();
                    trace.text("table", &table.name);
                    trace.flag("row_may_be_null", outer.kind == JoinKind::Left);
                    trace.texts("depends_on", group.tables.iter().map(|table| &*table.name));
                }
            }
        }
        let _estimates = trace.list("rows_estimation");
        for (n, table) in group.tables.iter().enumerate() {
            let _table = trace.item();
            trace.text("table", &table.name);
            match &table.source {
                Source::Base { .. } => {
                    self.choose(group, n, 0, conjuncts, context);
                    trace.number("condition_selectivity", self.own_share(group, n, conjuncts));
                }
                _ => trace.number("rows", self.rows_of(table)),
            }
        }
        [steps, step]
    }
}
