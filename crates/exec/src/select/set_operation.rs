//! UNION, EXCEPT, INTERSECT.

use cohort_expr::ExprType;
use cohort_sql::ast::SetOperator;
use cohort_types::{SqlResult, Value};

use crate::plan::{SetPlan, to_common_class};
use crate::select::output::Distinct;
use crate::select::{Flow, RowSink, run_query};
use crate::statement::StatementContext;

/// Runs the operands: those of UNION in order, those of EXCEPT and INTERSECT before the first one, whose rows
/// they let pass or hold back.
pub(super) fn run(
    set: &SetPlan,
    types: &[ExprType],
    ctx: &mut StatementContext<'_>,
    sink: &mut dyn RowSink,
) -> SqlResult<()> {
    let distinct = || Distinct::new(set.collations.clone());
    if set.op == SetOperator::Union {
        let seen = (set.distinct > 0).then(distinct);
        let mut out = UnionSink { types, seen, sink, stopped: false };
        for (n, operand) in set.operands.iter().enumerate() {
            ctx.check_interrupt()?;
            if n == set.distinct {
                out.seen = None;
            }
            run_query(operand, ctx, u64::MAX, &mut out)?;
            if out.stopped {
                break;
            }
        }
        return Ok(());
    }
    let wanted = set.op == SetOperator::Intersect;
    let mut others: Vec<Distinct> = Vec::new();
    for operand in &set.operands[1..] {
        ctx.check_interrupt()?;
        // What any operand of EXCEPT holds is held back: one set is enough.
        let seen = if wanted { None } else { others.pop() };
        let mut members = Members { types, seen: seen.unwrap_or_else(distinct) };
        run_query(operand, ctx, u64::MAX, &mut members)?;
        others.push(members.seen);
    }
    let mut out = FilterSink { types, others, wanted, seen: distinct(), sink };
    run_query(&set.operands[0], ctx, u64::MAX, &mut out)?;
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
        if let Some(seen) = &mut self.seen
            && !seen.is_new(ctx, values)?
        {
            return Ok(Flow::Continue);
        }
        let flow = self.sink.row(ctx, values)?;
        self.stopped |= flow == Flow::Stop;
        Ok(flow)
    }
}

/// The rows of an operand behind the first.
struct Members<'u> {
    types: &'u [ExprType],
    seen: Distinct,
}

impl RowSink for Members<'_> {
    fn row(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        convert(values, self.types);
        self.seen.is_new(ctx, values)?;
        Ok(Flow::Continue)
    }
}

struct FilterSink<'u> {
    types: &'u [ExprType],
    others: Vec<Distinct>,
    /// Rows that are in all of them, or in none.
    wanted: bool,
    seen: Distinct,
    sink: &'u mut dyn RowSink,
}

impl RowSink for FilterSink<'_> {
    fn row(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        convert(values, self.types);
        if self.others.iter_mut().any(|other| other.has(values) != self.wanted)
            || !self.seen.is_new(ctx, values)?
        {
            return Ok(Flow::Continue);
        }
        self.sink.row(ctx, values)
    }
}
