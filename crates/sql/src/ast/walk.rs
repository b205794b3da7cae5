//! What an expression names.

use super::{ColumnRef, Expr};

impl Expr {
    /// Shows the expression and all its operands to `see`; not what is within subqueries and aggregates.
    pub fn each_part(&mut self, see: &mut dyn FnMut(&mut Expr)) {
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            see(expr);
            expr.push_operands(&mut open);
        }
    }

    /// Shows every column that the expression names to `see`.
    pub fn each_column(&mut self, see: &mut dyn FnMut(&mut ColumnRef)) {
        self.each_part(&mut |part| {
            if let Expr::Column(column) | Expr::Default(Some(column)) | Expr::Values(column) = part {
                see(column);
            }
        });
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
            | Expr::Aggregate(_)
            | Expr::Window(_) => {}
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
