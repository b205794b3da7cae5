//! UNION, EXCEPT, INTERSECT.

use cohort_expr::{ExprType, to_joined};
use cohort_sql::ast::SetOperator;
use cohort_types::{SqlResult, Value};

use crate::plan::SetPlan;
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
    // As in MariaDB, where all but UNION ALL comes by way of a table without indexes.
    if set.op != SetOperator::Union || set.distinct > 0 {
        ctx.session.reads_whole_table.set(true);
    }
    let distinct = || Distinct::new(set.collations.clone());
    if set.op == SetOperator::Union {
        let seen = (set.distinct > 0).then(distinct);
        let convert = Convert { from: &set.operands[0].types, to: types };
        let mut out = UnionSink { convert, seen, sink, stopped: false };
        for (n, operand) in set.operands.iter().enumerate() {
            ctx.check_interrupt()?;
            if n == set.distinct {
                out.seen = None;
            }
            out.convert.from = &operand.types;
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
        let convert = Convert { from: &operand.types, to: types };
        let mut members = Members { convert, seen: seen.unwrap_or_else(distinct) };
        run_query(operand, ctx, u64::MAX, &mut members)?;
        others.push(members.seen);
    }
    let convert = Convert { from: &set.operands[0].types, to: types };
    let mut out = FilterSink { convert, others, wanted, seen: distinct(), sink };
    run_query(&set.operands[0], ctx, u64::MAX, &mut out)?;
    Ok(())
}

/// The values of one side as those of the result.
#[derive(Clone, Copy)]
struct Convert<'u> {
    from: &'u [ExprType],
    to: &'u [ExprType],
}

impl Convert<'_> {
    fn row(self, ctx: &StatementContext<'_>, values: &mut [Value]) -> SqlResult<()> {
        for (value, (from, to)) in values.iter_mut().zip(self.from.iter().zip(self.to)) {
            *value = to_joined(std::mem::replace(value, Value::Null), from, to, &ctx.eval)?;
        }
        Ok(())
    }
}

struct UnionSink<'u> {
    convert: Convert<'u>,
    /// None for ALL.
    seen: Option<Distinct>,
    sink: &'u mut dyn RowSink,
    stopped: bool,
}

impl RowSink for UnionSink<'_> {
    fn row(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        self.convert.row(ctx, values)?;
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
    convert: Convert<'u>,
    seen: Distinct,
}

impl RowSink for Members<'_> {
    fn row(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        self.convert.row(ctx, values)?;
        self.seen.is_new(ctx, values)?;
        Ok(Flow::Continue)
    }
}

struct FilterSink<'u> {
    convert: Convert<'u>,
    others: Vec<Distinct>,
    /// Rows that are in all of them, or in none.
    wanted: bool,
    seen: Distinct,
    sink: &'u mut dyn RowSink,
}

impl RowSink for FilterSink<'_> {
    fn row(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        self.convert.row(ctx, values)?;
        if self.others.iter_mut().any(|other| other.has(values) != self.wanted)
            || !self.seen.is_new(ctx, values)?
        {
            return Ok(Flow::Continue);
        }
        self.sink.row(ctx, values)
    }
}
