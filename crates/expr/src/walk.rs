//! Walks over trees: visiting, rewriting, constness, folding, structural equality.

use cohort_types::SqlResult;

use crate::context::EvalContext;
use crate::expr::Expr;

impl Expr {
    /// Calls `visit` for this node and, when it answers true, for those below.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr) -> bool) {
        let _ = visit;
        todo!()
    }

    /// Rebuilds the tree bottom up: `rewrite` gets each node with its operands already rewritten.
    pub fn transform(self, rewrite: &mut dyn FnMut(Expr) -> SqlResult<Expr>) -> SqlResult<Expr> {
        let _ = rewrite;
        todo!()
    }

    /// Ordinals of the columns used, each once, ascending.
    pub fn columns(&self) -> Vec<usize> {
        todo!()
    }

    /// Gives every column a new ordinal.
    pub fn map_columns(self, ordinal: &mut dyn FnMut(usize) -> usize) -> Expr {
        let _ = ordinal;
        todo!()
    }

    /// Whether the value is known without a row and without a session: literals and pure functions of them.
    pub fn is_const(&self) -> bool {
        todo!()
    }

    /// Whether the value is the same for all rows of one execution: no columns, nothing volatile. Parameters and
    /// NOW() qualify.
    pub fn is_const_per_execution(&self) -> bool {
        todo!()
    }

    /// Evaluates the constant parts once; parts that fail stay as they are and fail when their row comes.
    pub fn fold(self, ctx: &EvalContext<'_>) -> Expr {
        let _ = ctx;
        todo!()
    }
}

impl PartialEq for Expr {
    /// Structural equality, as GROUP BY and ORDER BY match select items. A volatile call equals nothing.
    fn eq(&self, other: &Expr) -> bool {
        let _ = other;
        todo!()
    }
}
