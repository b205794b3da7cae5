//! WITH: named queries that FROM may use as if they were derived tables.
//!
//! A common table is planned when it is first named, and all that name it share the plan; it is run once for
//! a statement. So a chain of tables that each name the one before twice costs as many plans as there are
//! tables.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use cohort_sql::ast;
use cohort_types::SqlResult;

use crate::bind::{PlanContext, not_supported};
use crate::plan::query::QueryPlan;
use crate::plan::select::plan_query;

/// The common tables in sight, innermost last.
#[derive(Clone, Default)]
pub(super) struct CommonTables<'q> {
    tables: Vec<Rc<Common<'q>>>,
}

/// A common table.
struct Common<'q> {
    table: &'q ast::CommonTable,
    /// Made when the table is first named.
    plan: OnceCell<Arc<QueryPlan>>,
}

/// A common table's plan, and the names of its columns.
pub(super) type Found<'q> = (Arc<QueryPlan>, &'q [String]);

impl<'q> CommonTables<'q> {
    /// With those of an inner WITH.
    pub(super) fn with<'n>(&self, with: Option<&'n ast::With>) -> SqlResult<CommonTables<'n>>
    where
        'q: 'n,
    {
        let mut tables: Vec<Rc<Common<'n>>> = self.tables.iter().map(Rc::clone).collect();
        if let Some(with) = with {
            if with.recursive {
                return Err(not_supported("WITH RECURSIVE"));
            }
            let common = |table| Rc::new(Common { table, plan: OnceCell::new() });
            tables.extend(with.tables.iter().map(common));
        }
        Ok(CommonTables { tables })
    }

    /// A common table by name. It sees those before it.
    pub(super) fn plan(&self, ctx: &PlanContext<'_>, name: &str) -> SqlResult<Option<Found<'q>>> {
        let found = self.tables.iter().rposition(|common| common.table.name.eq_ignore_ascii_case(name));
        let Some(at) = found else { return Ok(None) };
        let common = &self.tables[at];
        let plan = match common.plan.get() {
            Some(plan) => Arc::clone(plan),
            None => {
                let before = CommonTables { tables: self.tables[..at].to_vec() };
                let plan = Arc::new(plan_query(ctx, &before, &common.table.query)?);
                Arc::clone(common.plan.get_or_init(|| plan))
            }
        };
        Ok(Some((plan, &common.table.columns)))
    }
}
