//! UNION, EXCEPT, INTERSECT.

use cohort_expr::ExprType;
use cohort_sql::ast::SetOperator;
use cohort_types::{SqlResult, Value};

use crate::bind::not_supported;
use crate::plan::{UnionPlan, to_common_class};
use crate::select::output::Distinct;
use crate::select::{Flow, RowSink, run_query};
use crate::statement::StatementContext;

/// Runs both sides.
pub(super) fn run(
    union: &UnionPlan,
    types: &[ExprType],
    ctx: &mut StatementContext<'_>,
    sink: &mut dyn RowSink,
) -> SqlResult<()> {
    let distinct = || Distinct::new(union.collations.clone());
    if union.op == SetOperator::Union {
        let seen = (!union.all).then(distinct);
        let mut out = UnionSink { types, seen, sink, stopped: false };
        run_query(&union.left, ctx, u64::MAX, &mut out)?;
        if !out.stopped {
            run_query(&union.right, ctx, u64::MAX, &mut out)?;
        }
        return Ok(());
    }
    if union.all {
        return Err(not_supported("EXCEPT ALL, INTERSECT ALL"));
    }
    let mut right = Members { types, seen: distinct() };
    run_query(&union.right, ctx, u64::MAX, &mut right)?;
    let wanted = union.op == SetOperator::Intersect;
    let mut out = FilterSink { types, right: right.seen, wanted, seen: distinct(), sink };
    run_query(&union.left, ctx, u64::MAX, &mut out)?;
    Ok(())
}

fn convert(values: &mut [Value], types: &[ExprType]) {
    for (value, ty) in values.iter_mut().zip(types) {
        *value = to_common_class(std::mem::replace(value, Value::Null), ty);
    }
}

struct UnionSink<'u> {
    types: &'u [ExprType],
    /// None for ALL.
    seen: Option<Distinct>,
    sink: &'u mut dyn RowSink,
    stopped: bool,
}

impl RowSink for UnionSink<'_> {
    fn row(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        convert(values, self.types);
        if self.seen.as_mut().is_some_and(|seen| !seen.is_new(values)) {
            return Ok(Flow::Continue);
        }
        let flow = self.sink.row(ctx, values)?;
        self.stopped |= flow == Flow::Stop;
        Ok(flow)
    }
}

/// The rows of the right side.
struct Members<'u> {
    types: &'u [ExprType],
    seen: Distinct,
}

impl RowSink for Members<'_> {
    fn row(&mut self, _: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        convert(values, self.types);
        self.seen.is_new(values);
        Ok(Flow::Continue)
    }
}

struct FilterSink<'u> {
    types: &'u [ExprType],
    right: Distinct,
    /// Rows that are on the right side, or those that are not.
    wanted: bool,
    seen: Distinct,
    sink: &'u mut dyn RowSink,
}

impl RowSink for FilterSink<'_> {
    fn row(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        convert(values, self.types);
        if self.right.has(values) != self.wanted || !self.seen.is_new(values) {
            return Ok(Flow::Continue);
        }
        self.sink.row(ctx, values)
    }
}
