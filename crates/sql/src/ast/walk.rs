//! What an expression names.

use super::{ColumnRef, Expr};

impl Expr {
    /// Shows every column that the expression names to `see`. False when it has a subquery, whose columns are
    /// its own affair, or an aggregate.
    pub fn each_column(&mut self, see: &mut dyn FnMut(&mut ColumnRef)) -> bool {
        let mut plain = true;
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            match expr {
                Expr::Column(column) | Expr::Default(Some(column)) | Expr::Values(column) => see(column),
                Expr::Subquery(_)
                | Expr::Exists(_)
                | Expr::InQuery { .. }
                | Expr::Quantified { .. }
                | Expr::Aggregate(_) => plain = false,
                other => other.push_operands(&mut open),
            }
        }
        plain
    }

    pub(super) fn push_operands<'e>(&'e mut self, open: &mut Vec<&'e mut Expr>) {
        match self {
            Expr::Literal(_)
            | Expr::Param(_)
            | Expr::Column(_)
            | Expr::UserVariable(_)
            | Expr::SystemVariable { .. }
            | Expr::Default(_)
            | Expr::Values(_)
            | Expr::Subquery(_)
            | Expr::Exists(_)
            | Expr::InQuery { .. }
            | Expr::Quantified { .. }
            | Expr::Aggregate(_) => {}
            Expr::Assign { value: expr, .. }
            | Expr::Unary { expr, .. }
            | Expr::Is { expr, .. }
            | Expr::Cast { expr, .. }
            | Expr::ConvertUsing { expr, .. }
            | Expr::Collate { expr, .. }
            | Expr::Extract { expr, .. } => open.push(expr),
            Expr::Binary { left, right, .. } => open.extend([&mut **left, &mut **right]),
            Expr::Between { expr, low, high, .. } => open.extend([&mut **expr, &mut **low, &mut **high]),
            Expr::InList { expr, list, .. } => {
                open.push(expr);
                open.extend(list);
            }
            Expr::Like { expr, pattern, escape, .. } => {
                open.extend([&mut **expr, &mut **pattern]);
                open.extend(escape.as_deref_mut());
            }
            Expr::Regexp { expr, pattern, .. } => open.extend([&mut **expr, &mut **pattern]),
            Expr::Case { operand, branches, otherwise } => {
                open.extend(operand.as_deref_mut());
                open.extend(branches.iter_mut().flat_map(|(when, then)| [when, then]));
                open.extend(otherwise.as_deref_mut());
            }
            Expr::DateArith { expr, amount, .. } => open.extend([&mut **expr, &mut **amount]),
            Expr::TimestampDiff { from, to, .. } => open.extend([&mut **from, &mut **to]),
            Expr::Trim { what, expr, .. } => {
                open.extend(what.as_deref_mut());
                open.push(expr);
            }
            Expr::CharFunction { args, .. } | Expr::Function { args, .. } | Expr::Row(args) => {
                open.extend(args);
            }
        }
    }
}
