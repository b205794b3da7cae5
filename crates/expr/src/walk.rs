//! Tree walks: visiting, rewriting, constness, folding, structural equality.

use cohort_types::SqlResult;

use crate::context::EvalContext;
use crate::expr::{Expr, SubqueryTest};
use crate::function::{NumberOf, Stability};

impl Expr {
    /// Returns the operands of this node.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) | Expr::Outer(_) => Vec::new(),
            Expr::Subquery(node) => {
                let operand = match &node.test {
                    SubqueryTest::Quantified { operand, .. } => Some(operand),
                    SubqueryTest::Column(_) | SubqueryTest::Exists => None,
                };
                operand.into_iter().chain(node.outer.iter().map(|(_, value)| value)).collect()
            }
            Expr::Compare(node) => vec![&node.left, &node.right],
            Expr::And(items) | Expr::Or(items) | Expr::Row(items) => items.iter().collect(),
            Expr::Not(operand) => vec![operand],
            Expr::IsNull(node) => vec![&node.operand],
            Expr::Between(node) => vec![&node.operand, &node.low, &node.high],
            Expr::In(node) => std::iter::once(&node.operand).chain(&node.list).collect(),
            Expr::Like(node) => [&node.operand, &node.pattern].into_iter().chain(&node.escape_by).collect(),
            Expr::Case(node) => {
                let branches = node.branches.iter().flat_map(|(when, then)| [when, then]);
                node.operand.iter().chain(branches).chain(&node.otherwise).collect()
            }
            Expr::Cast(node) => vec![&node.operand],
            Expr::Call(node) => node.args.iter().collect(),
            Expr::CallBack(node) => node.args.iter().collect(),
        }
    }

    /// Returns the operands of this node for changes.
    fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) | Expr::Outer(_) => Vec::new(),
            Expr::Subquery(node) => {
                let node = node.as_mut();
                let operand = match &mut node.test {
                    SubqueryTest::Quantified { operand, .. } => Some(operand),
                    SubqueryTest::Column(_) | SubqueryTest::Exists => None,
                };
                operand.into_iter().chain(node.outer.iter_mut().map(|(_, value)| value)).collect()
            }
            Expr::Compare(node) => vec![&mut node.left, &mut node.right],
            Expr::And(items) | Expr::Or(items) | Expr::Row(items) => items.iter_mut().collect(),
            Expr::Not(operand) => vec![operand],
            Expr::IsNull(node) => vec![&mut node.operand],
            Expr::Between(node) => vec![&mut node.operand, &mut node.low, &mut node.high],
            Expr::In(node) => {
                let node = node.as_mut();
                std::iter::once(&mut node.operand).chain(&mut node.list).collect()
            }
            Expr::Like(node) => {
                let node = node.as_mut();
                [&mut node.operand, &mut node.pattern].into_iter().chain(&mut node.escape_by).collect()
            }
            Expr::Case(node) => {
                let node = node.as_mut();
                let branches = node.branches.iter_mut().flat_map(|(when, then)| [when, then]);
                node.operand.iter_mut().chain(branches).chain(&mut node.otherwise).collect()
            }
            Expr::Cast(node) => vec![&mut node.operand],
            Expr::Call(node) => node.args.iter_mut().collect(),
            Expr::CallBack(node) => node.args.iter_mut().collect(),
        }
    }

    /// Calls `visit` for this node and, if it returns true, for the nodes below.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr) -> bool) {
        if visit(self) {
            for child in self.children() {
                child.walk(visit);
            }
        }
    }

    /// Rewrites the tree bottom up: `rewrite` receives each node with its operands already rewritten. Types
    /// are kept.
    pub fn transform(mut self, rewrite: &mut dyn FnMut(Expr) -> SqlResult<Expr>) -> SqlResult<Expr> {
        cohort_types::check_stack()?;
        for child in self.children_mut() {
            let taken = std::mem::replace(child, Expr::Row(Vec::new()));
            *child = taken.transform(rewrite)?;
        }
        rewrite(self)
    }

    /// Returns the node with its operands changed.
    pub fn map_children(mut self, change: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        for child in self.children_mut() {
            let taken = std::mem::replace(child, Expr::Row(Vec::new()));
            *child = change(taken);
        }
        self
    }

    /// Returns the ordinals of the columns in ascending order without duplicates.
    pub fn columns(&self) -> Vec<usize> {
        let mut ordinals = Vec::new();
        self.walk(&mut |node| {
            if let Expr::Column(column) = node {
                ordinals.push(column.ordinal);
            }
            true
        });
        ordinals.sort_unstable();
        ordinals.dedup();
        ordinals
    }

    /// Renumbers all columns.
    pub fn map_columns(mut self, ordinal: &mut dyn FnMut(usize) -> usize) -> Expr {
        self.renumber(ordinal);
        self
    }

    fn renumber(&mut self, ordinal: &mut dyn FnMut(usize) -> usize) {
        if let Expr::Column(column) = self {
            column.ordinal = ordinal(column.ordinal);
        }
        for child in self.children_mut() {
            child.renumber(ordinal);
        }
    }

    /// Returns the least stable node's stability, `None` if the tree contains a column.
    fn stability(&self) -> Option<Stability> {
        let own = match self {
            Expr::Column(_) => return None,
            Expr::Param(_) | Expr::Outer(_) => Stability::Statement,
            Expr::Subquery(node) if node.is_volatile => Stability::Volatile,
            Expr::CallBack(_) => Stability::Volatile,
            Expr::Subquery(_) => Stability::Statement,
            Expr::Call(node) => node.function.stability,
            // Conversions may depend on time zone and sql_mode.
            Expr::Cast(_) => Stability::Statement,
            _ => Stability::Pure,
        };
        let mut worst = own;
        for child in self.children() {
            match child.stability()? {
                Stability::Volatile => worst = Stability::Volatile,
                Stability::Statement if worst == Stability::Pure => worst = Stability::Statement,
                _ => {}
            }
        }
        Some(worst)
    }

    /// Returns true if the value depends on neither row nor session: literals, and pure functions of them.
    pub fn is_const(&self) -> bool {
        self.stability() == Some(Stability::Pure)
    }

    /// Returns true if the value is the same for all rows of an execution: no columns and nothing volatile.
    /// Parameters and NOW() qualify.
    pub fn is_const_per_execution(&self) -> bool {
        matches!(self.stability(), Some(Stability::Pure | Stability::Statement))
    }

    /// Returns true if the evaluation calls back into the session ([`crate::Subqueries`]): the expression
    /// contains a subquery, or a call of a function that runs statements. Nothing may be borrowed from the
    /// transaction meanwhile. The columns that a subquery reads are unknown before planning.
    pub fn calls_back(&self) -> bool {
        let mut found = false;
        self.walk(&mut |node| {
            found |= matches!(node, Expr::Subquery(_) | Expr::CallBack(_));
            !found
        });
        found
    }

    /// Returns true if the value may differ between evaluations, or the evaluation has side effects.
    pub fn is_volatile(&self) -> bool {
        let mut volatile = false;
        self.walk(&mut |node| {
            volatile |= match node {
                Expr::Call(call) => call.function.stability == Stability::Volatile,
                Expr::Subquery(subquery) => subquery.is_volatile,
                Expr::CallBack(_) => true,
                _ => false,
            };
            !volatile
        });
        volatile
    }

    /// Replaces constant parts by their values. Parts that fail or warn are kept, so that they do so when a
    /// row is evaluated.
    pub fn fold(self, ctx: &EvalContext<'_>) -> Expr {
        if matches!(self, Expr::Const(_) | Expr::Row(_)) && self.children().is_empty() {
            return self;
        }
        // Parts below the stack limit are kept; their evaluation reports the error.
        if ctx.check_stack().is_err() {
            return self;
        }
        // In a numeric context its value is not the number of its text.
        let has_own_number = self.number_view() == Some(NumberOf::OfArguments);
        if self.is_const() && !matches!(self, Expr::Row(_)) && !has_own_number {
            return self.fold_constant(ctx);
        }
        let mut folded = self;
        for child in folded.children_mut() {
            let taken = std::mem::replace(child, Expr::Row(Vec::new()));
            *child = taken.fold(ctx);
        }
        if let Expr::In(node) = &mut folded {
            node.find_set();
        }
        folded
    }

    /// Evaluates a constant. A separate function, to keep the stack frames of [`Expr::fold`] small.
    #[inline(never)]
    fn fold_constant(self, ctx: &EvalContext<'_>) -> Expr {
        let quiet = ctx.quiet();
        let value = self.eval(&[], &quiet).map(std::borrow::Cow::into_owned);
        if let (Ok(value), 0) = (value, quiet.warning_count()) {
            let ty = self.ty();
            return Expr::typed_constant(value, ty);
        }
        self
    }
}

impl PartialEq for Expr {
    /// Structural equality, used to match GROUP BY and ORDER BY with select items. A volatile call equals
    /// nothing.
    fn eq(&self, other: &Expr) -> bool {
        let same_node = match (self, other) {
            (Expr::Const(a), Expr::Const(b)) => a.value == b.value && a.ty.kind == b.ty.kind,
            (Expr::Param(a), Expr::Param(b)) => a.index == b.index,
            (Expr::Column(a), Expr::Column(b)) => a.ordinal == b.ordinal,
            (Expr::Compare(a), Expr::Compare(b)) => a.op == b.op && a.how == b.how,
            (Expr::And(a), Expr::And(b)) | (Expr::Or(a), Expr::Or(b)) | (Expr::Row(a), Expr::Row(b)) => {
                a.len() == b.len()
            }
            (Expr::Not(_), Expr::Not(_)) => true,
            (Expr::IsNull(a), Expr::IsNull(b)) => a.negated == b.negated,
            (Expr::Between(a), Expr::Between(b)) => a.negated == b.negated && a.how == b.how,
            (Expr::In(a), Expr::In(b)) => a.negated == b.negated && a.how == b.how,
            (Expr::Like(a), Expr::Like(b)) => {
                (a.escape, a.negated, a.collation) == (b.escape, b.negated, b.collation)
                    && a.escape_by.is_some() == b.escape_by.is_some()
            }
            (Expr::Case(a), Expr::Case(b)) => {
                a.operand.is_some() == b.operand.is_some()
                    && a.branches.len() == b.branches.len()
                    && a.otherwise.is_some() == b.otherwise.is_some()
            }
            (Expr::Cast(a), Expr::Cast(b)) => a.to == b.to && a.ty == b.ty,
            (Expr::Outer(a), Expr::Outer(b)) => a.slot == b.slot,
            (Expr::Subquery(a), Expr::Subquery(b)) => {
                a.id == b.id && !a.is_volatile && a.test.is_like(&b.test)
            }
            (Expr::Call(a), Expr::Call(b)) => {
                std::ptr::eq(a.function, b.function)
                    && a.extra == b.extra
                    && a.function.stability != Stability::Volatile
            }
            _ => false,
        };
        same_node && self.children() == other.children()
    }
}

impl SubqueryTest {
    /// Returns true if both tests are equal except for the operand.
    fn is_like(&self, other: &SubqueryTest) -> bool {
        match (self, other) {
            (SubqueryTest::Column(a), SubqueryTest::Column(b)) => a == b,
            (SubqueryTest::Exists, SubqueryTest::Exists) => true,
            (
                SubqueryTest::Quantified { op, all, how, .. },
                SubqueryTest::Quantified { op: other_op, all: other_all, how: other_how, .. },
            ) => (op, all, how) == (other_op, other_all, other_how),
            _ => false,
        }
    }
}
