//! Binds window functions in expressions. A function becomes a column; the SELECT keeps the function itself.

use cohort_expr::{Expr, ExprType, SortKey, TypeClass};
use cohort_sql::ast;
use cohort_types::{Collation, SqlError, SqlResult, Value};

use crate::bind::aggregate::refuse_windows;
use crate::bind::expr::Binder;
use crate::window::{Frame, FrameBound, FrameUnit, WindowCall, WindowFunction, WindowUse};

impl Binder<'_> {
    pub(super) fn window(&self, call: &ast::WindowCall) -> SqlResult<Expr> {
        let Some(windows) = self.windows else {
            return Err(SqlError::window_function_misplaced());
        };
        let inner = Binder { windows: None, ..*self };
        let spec = windows.resolve(&call.over)?;
        let mut partition = Vec::with_capacity(spec.partition_by.len());
        for expr in spec.partition_by {
            let expr = inner.bind(expr)?;
            partition.push((expr.clone(), expr.ty().collation));
        }
        let mut order = Vec::with_capacity(spec.order_by.len());
        for item in spec.order_by {
            let expr = inner.bind(&item.expr)?;
            let key = SortKey { collation: expr.ty().collation, descending: item.descending };
            order.push((expr, key));
        }
        let function = inner.window_function(&call.function, spec.frame.is_some(), &mut order)?;
        check_percentile(&function, &partition, &order)?;
        let ty = type_of(&function, &order);
        let frame = inner.window_frame(spec.frame, &order)?;
        let column = self.ctx.new_columns(1);
        debug_assert!(
            !matches!(function, WindowFunction::PercentileDisc { .. }) || order.len() <= 1,
            "a percentile of two values"
        );
        let call = WindowCall { function, frame, ty: ty.clone() };
        windows.found.borrow_mut().push(WindowUse { column, partition, order, call });
        Ok(Expr::column(column, ty, "window function"))
    }

    fn window_function(
        &self,
        function: &ast::Expr,
        has_frame: bool,
        order: &mut Vec<(Expr, SortKey)>,
    ) -> SqlResult<WindowFunction> {
        if let ast::Expr::Aggregate(aggregate) = function {
            let kind = aggregate.kind;
            use ast::AggregateKind as A;
            match kind {
                A::Count if aggregate.distinct => {
                    return Err(SqlError::not_supported("COUNT(DISTINCT) aggregate as window function"));
                }
                A::Sum if aggregate.distinct => {
                    return Err(SqlError::not_supported("SUM(DISTINCT) aggregate as window function"));
                }
                A::Avg if aggregate.distinct => {
                    return Err(SqlError::not_supported("AVG(DISTINCT) aggregate as window function"));
                }
                A::GroupConcat => {
                    return Err(SqlError::not_supported("GROUP_CONCAT() aggregate as window function"));
                }
                A::JsonArrayAgg => {
                    return Err(SqlError::not_supported("JSON_ARRAYAGG() aggregate as window function"));
                }
                A::JsonObjectAgg => {
                    return Err(SqlError::not_supported("JSON_OBJECTAGG() aggregate as window function"));
                }
                _ => {}
            }
            refuse_windows(&aggregate.args)?;
            let args = aggregate.args.iter().map(|arg| self.bind(arg)).collect::<SqlResult<_>>()?;
            return self.aggregate_of(aggregate, args, self).map(WindowFunction::Aggregate);
        }
        let ast::Expr::Function { name, args } = function else {
            return Err(SqlError::not_supported("this window function"));
        };
        let bound = args.iter().map(|arg| self.bind(arg)).collect::<SqlResult<Vec<Expr>>>()?;
        let wanted = match name.as_str() {
            "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" => 0..=0,
            "lag" | "lead" => 1..=2,
            "nth_value" => 2..=2,
            "ntile" | "first_value" | "last_value" | "median" | "percentile_cont" | "percentile_disc" => {
                1..=1
            }
            other => return Err(SqlError::not_supported(&format!("{other}() as window function"))),
        };
        if !wanted.contains(&bound.len()) {
            return Err(SqlError::wrong_param_count(name));
        }
        let needs_order =
            matches!(name.as_str(), "rank" | "dense_rank" | "percent_rank" | "cume_dist" | "lag" | "lead");
        if needs_order && order.is_empty() {
            return Err(SqlError::window_without_order(name));
        }
        let has_own_frame = !matches!(name.as_str(), "first_value" | "last_value" | "nth_value");
        if has_frame && has_own_frame {
            return Err(SqlError::frame_not_allowed(name));
        }
        let mut args = bound.into_iter();
        let mut next = || args.next().unwrap_or_else(Expr::null);
        Ok(match name.as_str() {
            "row_number" => WindowFunction::RowNumber,
            "rank" => WindowFunction::Rank,
            "dense_rank" => WindowFunction::DenseRank,
            "percent_rank" => WindowFunction::PercentRank,
            "cume_dist" => WindowFunction::CumeDist,
            "ntile" => WindowFunction::Ntile(next()),
            "lag" | "lead" => {
                let (value, is_lead) = (next(), name == "lead");
                WindowFunction::Lag { value, offset: args.next(), is_lead }
            }
            "first_value" => WindowFunction::FirstValue(next()),
            "last_value" => WindowFunction::LastValue(next()),
            "nth_value" => WindowFunction::NthValue { value: next(), n: next() },
            "median" => {
                let value = next();
                let key = SortKey { collation: value.ty().collation, descending: false };
                *order = vec![(value, key)];
                WindowFunction::PercentileCont { fraction: Expr::constant(Value::Double(0.5)) }
            }
            "percentile_cont" => WindowFunction::PercentileCont { fraction: next() },
            _ => WindowFunction::PercentileDisc { fraction: next() },
        })
    }

    fn window_frame(&self, frame: Option<&ast::WindowFrame>, order: &[(Expr, SortKey)]) -> SqlResult<Frame> {
        let Some(frame) = frame else {
            let end = match order.is_empty() {
                true => FrameBound::UnboundedFollowing,
                false => FrameBound::CurrentRow,
            };
            return Ok(Frame { unit: FrameUnit::Range, start: FrameBound::UnboundedPreceding, end });
        };
        use ast::WindowBound as B;
        // A frame that ends a number of rows before it begins is valid and empty.
        let is_bad = matches!(
            (&frame.start, &frame.end),
            (B::UnboundedFollowing, _)
                | (_, B::UnboundedPreceding)
                | (B::CurrentRow, B::Preceding(_))
                | (B::Following(_), B::CurrentRow)
        );
        if is_bad {
            return Err(SqlError::bad_window_bounds());
        }
        let measured = |bound: &B| matches!(bound, B::Preceding(_) | B::Following(_));
        if frame.is_range && (measured(&frame.start) || measured(&frame.end)) {
            let [(key, _)] = order else {
                return Err(SqlError::range_frame_needs_order());
            };
            if !is_number(key) {
                return Err(not_numeric());
            }
        }
        let bound = |bound: &B| -> SqlResult<FrameBound> {
            let distance = |expr: &ast::Expr| {
                let expr = self.bind(expr)?;
                if !frame.is_range && expr.ty().class() != TypeClass::Int {
                    return Err(SqlError::frame_needs_integer());
                }
                if frame.is_range && !is_number(&expr) {
                    return Err(not_numeric());
                }
                Ok(expr)
            };
            Ok(match bound {
                B::UnboundedPreceding => FrameBound::UnboundedPreceding,
                B::Preceding(expr) => FrameBound::Preceding(distance(expr)?),
                B::CurrentRow => FrameBound::CurrentRow,
                B::Following(expr) => FrameBound::Following(distance(expr)?),
                B::UnboundedFollowing => FrameBound::UnboundedFollowing,
            })
        };
        let unit = if frame.is_range { FrameUnit::Range } else { FrameUnit::Rows };
        Ok(Frame { unit, start: bound(&frame.start)?, end: bound(&frame.end)? })
    }
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr.ty().class(), TypeClass::Int | TypeClass::Decimal | TypeClass::Real)
}

fn not_numeric() -> SqlError {
    SqlError::frame_needs_number()
}

/// Returns errors 4101, 4102 and 4104 for invalid arguments of a percentile.
fn check_percentile(
    function: &WindowFunction,
    partition: &[(Expr, Collation)],
    order: &[(Expr, SortKey)],
) -> SqlResult<()> {
    let (name, fraction) = match function {
        WindowFunction::PercentileCont { fraction } => ("percentile_cont", fraction),
        WindowFunction::PercentileDisc { fraction } => ("percentile_disc", fraction),
        _ => return Ok(()),
    };
    let is_text = |expr: &Expr| expr.ty().class() == TypeClass::String || expr.ty().null_literal;
    if is_text(fraction) {
        return Err(SqlError::percentile_no_number(name));
    }
    let of_partition = |column: &usize| partition.iter().any(|(expr, _)| expr.columns().contains(column));
    if !fraction.columns().iter().all(of_partition) {
        return Err(SqlError::percentile_varies(name));
    }
    let is_continuous = matches!(function, WindowFunction::PercentileCont { .. });
    if is_continuous && order.first().is_some_and(|(key, _)| key.ty().class() == TypeClass::String) {
        return Err(SqlError::percentile_of_no_number(name));
    }
    Ok(())
}

fn type_of(function: &WindowFunction, order: &[(Expr, SortKey)]) -> ExprType {
    match function {
        WindowFunction::RowNumber
        | WindowFunction::Rank
        | WindowFunction::DenseRank
        | WindowFunction::Ntile(_) => ExprType::bigint(21).with_nullable(false),
        WindowFunction::PercentRank | WindowFunction::CumeDist => ExprType::double_fixed(17, 10),
        WindowFunction::PercentileCont { .. } => ExprType::double_fixed(18, 10),
        WindowFunction::PercentileDisc { .. } => {
            order.first().map_or_else(ExprType::null, |(key, _)| key.ty().with_nullable(true))
        }
        WindowFunction::Lag { value, .. }
        | WindowFunction::FirstValue(value)
        | WindowFunction::LastValue(value)
        | WindowFunction::NthValue { value, .. } => value.ty().with_nullable(true),
        WindowFunction::Aggregate(aggregate) => aggregate.ty.clone(),
    }
}
