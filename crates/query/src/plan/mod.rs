//! Plans shared by sessions.
//!
//! | module | concept |
//! |---|---|
//! | `query` | [`QueryPlan`]: the result of planning |
//! | `direct` | single-table fast paths |
//! | `stored` | [`StoredWay`]: direct plans on stored rows, which decode no values |
//! | `shape` | what SHOW STATUS counts for each run of a plan |

mod body;
mod direct;
mod query;
mod shape;
mod stored;

use cohort_optimize::PartId;
use cohort_plan::{Binder, CommonTables, PlanContext, Query, bind_query};
use cohort_session::{PlanStatistics, SessionState};
use cohort_sql::ast;
use cohort_types::SqlResult;

pub use body::{DirectPlan, DirectTable, GroupPlan, PlanBody, SortItem, SortValue};
pub(crate) use body::{StoredAggregate, StoredAggregateKind, StoredWay};
pub use query::QueryPlan;
pub use shape::PlanShape;

/// Binds and plans a query whose rows are sent to the client.
pub fn plan_query(ctx: &PlanContext<'_>, session: &SessionState, query: &ast::Query) -> SqlResult<QueryPlan> {
    plan_bound(ctx, session, bind_query(ctx, &CommonTables::default(), None, query)?)
}

/// Binds and plans a query whose rows are stored. `row` is the scope of a data change's row.
pub fn plan_query_within(
    ctx: &PlanContext<'_>,
    session: &SessionState,
    row: Option<&Binder<'_>>,
    query: &ast::Query,
) -> SqlResult<QueryPlan> {
    let mut bound = bind_query(ctx, &CommonTables::default(), row, query)?;
    bound.keep_digits();
    plan_bound(ctx, session, bound)
}

fn plan_bound(ctx: &PlanContext<'_>, session: &SessionState, mut bound: Query) -> SqlResult<QueryPlan> {
    let (mut subqueries, mut common) = (ctx.subqueries.take(), ctx.common.take());
    cohort_optimize::merge(&mut bound, &mut subqueries, &mut common);
    cohort_optimize::push_conditions(&mut bound, &mut subqueries, &mut common);
    cohort_optimize::unnest(&mut bound, &mut subqueries, &mut common);
    let stats = PlanStatistics::new(session, ctx);
    let is_plain = subqueries.is_empty() && common.is_empty() && !ctx.calls_back.get();
    let direct = match is_plain {
        true => direct::direct(&bound, &stats)?,
        false => None,
    };
    let body = match direct {
        Some(direct) => PlanBody::Direct(Box::new(direct)),
        None => PlanBody::Tree(Box::new(cohort_optimize::optimize(&bound, &subqueries, &common, &stats)?)),
    };
    let has_limit = bound.limit.count.is_some();
    let shape = PlanShape::of(&body);
    let first_part = PartId(ctx.new_parts(body.parts()));
    Ok(QueryPlan {
        body,
        columns: bound.columns,
        types: bound.types,
        into: bound.into,
        has_limit,
        shape,
        calls_back: ctx.calls_back.get(),
        first_part,
    })
}
