//! Traversal of expressions: operands, columns, subqueries.

use super::{ColumnRef, Expr, Over, Query, WindowBound, WindowSpec};

/// Pushes the operands of `$expr` to `$open` and its subqueries to `$queries`. One macro generates the
/// immutable and the mutable (`mut`) traversal, so that both visit the same operands.
macro_rules! push_operands {
    ($expr:expr, $open:expr, $queries:expr $(, $mutable:tt)?) => {
        match $expr {
            Expr::Literal(_)
            | Expr::Param(_)
            | Expr::Column(_)
            | Expr::UserVariable(_)
            | Expr::SystemVariable { .. }
            | Expr::Default(_)
            | Expr::Values(_) => {}
            Expr::Match { columns, text, .. } => {
                $open.extend(columns);
                $open.push(text);
            }
            Expr::Subquery(query) | Expr::Exists(query) => $queries.push(query),
            Expr::InQuery { expr, query, .. } | Expr::Quantified { expr, query, .. } => {
                $queries.push(query);
                $open.push(expr);
            }
            Expr::Assign { value: expr, .. }
            | Expr::Unary { expr, .. }
            | Expr::Is { expr, .. }
            | Expr::Cast { expr, .. }
            | Expr::ConvertUsing { expr, .. }
            | Expr::Collate { expr, .. }
            | Expr::Extract { expr, .. } => $open.push(expr),
            Expr::Binary { left: first, right: second, .. }
            | Expr::Regexp { expr: first, pattern: second, .. }
            | Expr::DateArith { expr: first, amount: second, .. }
            | Expr::TimestampDiff { from: first, to: second, .. } => {
                $open.push(first);
                $open.push(second);
            }
            Expr::Between { expr, low, high, .. } => {
                $open.push(expr);
                $open.push(low);
                $open.push(high);
            }
            Expr::InList { expr, list, .. } => {
                $open.push(expr);
                $open.extend(list);
            }
            Expr::Like { expr, pattern, escape, .. } => {
                $open.push(expr);
                $open.push(pattern);
                if let Some(escape) = escape {
                    $open.push(escape);
                }
            }
            Expr::Case { operand, branches, otherwise } => {
                if let Some(operand) = operand {
                    $open.push(operand);
                }
                for (when, then) in branches {
                    $open.push(when);
                    $open.push(then);
                }
                if let Some(otherwise) = otherwise {
                    $open.push(otherwise);
                }
            }
            Expr::Trim { what, expr, .. } => {
                if let Some(what) = what {
                    $open.push(what);
                }
                $open.push(expr);
            }
            Expr::CharFunction { args, .. }
            | Expr::Function { args, .. }
            | Expr::StoredFunction { args, .. }
            | Expr::Row(args) => {
                $open.extend(args);
            }
            Expr::Sequence(call) => $open.extend(& $($mutable)? call.args),
            Expr::Aggregate(aggregate) => {
                $open.extend(& $($mutable)? aggregate.args);
                for item in & $($mutable)? aggregate.order_by {
                    $open.push(& $($mutable)? item.expr);
                }
            }
            Expr::Window(call) => {
                $open.push(& $($mutable)? call.function);
                if let Over::Spec(spec) = & $($mutable)? call.over {
                    push_window!(& $($mutable)? **spec, $open $(, $mutable)?);
                }
            }
        }
    };
}

/// Pushes the expressions of a window to `$open`.
macro_rules! push_window {
    ($spec:expr, $open:expr $(, $mutable:tt)?) => {{
        let WindowSpec { partition_by, order_by, frame, .. } = $spec;
        $open.extend(partition_by);
        for item in order_by {
            $open.push(& $($mutable)? item.expr);
        }
        if let Some(frame) = frame {
            for bound in [& $($mutable)? frame.start, & $($mutable)? frame.end] {
                if let WindowBound::Preceding(expr) | WindowBound::Following(expr) = bound {
                    $open.push(expr);
                }
            }
        }
    }};
}

impl Expr {
    /// Calls `see` with the expression and all its parts, except those in subqueries.
    pub fn each_part(&mut self, see: &mut dyn FnMut(&mut Expr)) {
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            see(expr);
            push_operands!(expr, open, Vec::new(), mut);
        }
    }

    /// Calls `see` with every column of the expression, except those in subqueries.
    pub fn each_column(&mut self, see: &mut dyn FnMut(&mut ColumnRef)) {
        self.each_part(&mut |part| {
            if let Expr::Column(column) | Expr::Default(Some(column)) | Expr::Values(column) = part {
                see(column);
            }
        });
    }

    /// Returns whether the expression or one of its parts is `wanted`. Subqueries are not searched.
    pub fn has_part(&self, wanted: impl Fn(&Expr) -> bool) -> bool {
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            if wanted(expr) {
                return true;
            }
            push_operands!(expr, open, Vec::new());
        }
        false
    }

    /// Returns whether the expression itself contains a query.
    pub fn is_subquery(&self) -> bool {
        matches!(self, Expr::Subquery(_) | Expr::Exists(_) | Expr::InQuery { .. } | Expr::Quantified { .. })
    }

    /// Returns whether the expression or one of its parts is a subquery.
    pub fn has_subquery(&self) -> bool {
        self.has_part(Expr::is_subquery)
    }

    /// Adds the operands of the expression to `open`, and its own subqueries to `queries`.
    pub(super) fn push_operands<'e>(
        &'e mut self,
        open: &mut Vec<&'e mut Expr>,
        queries: &mut Vec<&'e mut Query>,
    ) {
        push_operands!(self, open, queries, mut);
    }
}

impl WindowSpec {
    /// Adds the expressions of the window to `open`.
    pub(super) fn push_operands<'e>(&'e mut self, open: &mut Vec<&'e mut Expr>) {
        push_window!(self, open, mut);
    }
}
