//! Binds aggregates in expressions. An aggregate becomes a column; the SELECT that aggregates its rows keeps
//! the aggregate itself.
//!
//! An aggregate in a subquery may belong to an outer query. It belongs to the innermost query whose columns
//! its arguments read, if the clause that contains the subquery allows aggregates (select list, HAVING, ORDER
//! BY). Otherwise it belongs to the next query inward whose clause allows them. If its arguments read no
//! column, it belongs to the query in which it is written, or else to the nearest outer query that allows it.

use std::collections::BTreeSet;

use cohort_expr::{Aggregate, AggregateKind, AggregateOptions, Expr, OrderKey, Quantifier};
use cohort_sql::ast;
use cohort_types::{SqlError, SqlResult};

use crate::bind::clause::Clause;
use crate::bind::context::PlanContext;
use crate::bind::convert;
use crate::bind::expr::{Binder, item_position};
use crate::block::Collected;
use crate::walk::each_expr;

impl Binder<'_> {
    pub(super) fn aggregate(&self, aggregate: &ast::Aggregate) -> SqlResult<Expr> {
        refuse_windows(&aggregate.args)?;
        self.over_group(&aggregate.args, |args, inner| self.aggregate_of(aggregate, args, inner))
    }

    /// Binds the arguments of an aggregate function that is a program.
    pub(super) fn rows_of_group(&self, args: &[ast::Expr]) -> SqlResult<Expr> {
        refuse_windows(args)?;
        self.over_group(args, |args, _| {
            Aggregate::new(AggregateKind::Rows, args, AggregateOptions::default(), self.ctx.names.env())
        })
    }

    /// Binds an aggregate over the rows of a group. `make` receives its arguments and their binder.
    fn over_group(
        &self,
        args: &[ast::Expr],
        make: impl FnOnce(Vec<Expr>, &Binder<'_>) -> SqlResult<Aggregate>,
    ) -> SqlResult<Expr> {
        // Arguments read the rows of the group. Tables are visible even in HAVING, and take precedence.
        let names_items = matches!(self.clause, Clause::Having | Clause::OrderBy);
        let inner = Binder {
            aggregates: None,
            within_aggregate: true,
            windows: None,
            aliases: self.aliases.filter(|_| names_items),
            tables_visible: true,
            ..*self
        };
        let args: Vec<Expr> = args.iter().map(|e| inner.bind(e)).collect::<SqlResult<_>>()?;
        let mut columns = BTreeSet::new();
        args.iter().for_each(|arg| add_columns(self.ctx, arg, &mut columns));
        let owner = self.owner_of(&columns).filter(|owner| !owner.within_aggregate);
        let Some((owner, list)) = owner.and_then(|owner| Some((owner, owner.aggregates?))) else {
            return Err(SqlError::invalid_group_function());
        };
        let bound = make(args, &inner)?;
        bound.options.order.iter().for_each(|key| add_columns(self.ctx, &key.expr, &mut columns));
        if owner.has_aggregate(&columns) {
            return Err(SqlError::invalid_group_function());
        }
        debug_assert!(
            list.borrow().iter().all(|known| !columns.contains(&known.column)),
            "an argument reads an aggregate over the same rows"
        );
        let mut list = list.borrow_mut();
        let n = list.iter().position(|known| known.aggregate == bound).unwrap_or_else(|| {
            list.push(Collected { column: self.ctx.new_columns(1), aggregate: bound });
            list.len() - 1
        });
        Ok(Expr::column(list[n].column, list[n].aggregate.ty.clone(), "aggregate"))
    }

    /// Returns an aggregate whose arguments are bound.
    pub(crate) fn aggregate_of(
        &self,
        aggregate: &ast::Aggregate,
        args: Vec<Expr>,
        inner: &Binder<'_>,
    ) -> SqlResult<Aggregate> {
        let mut order = Vec::new();
        for item in &aggregate.order_by {
            let expr = match self.position(&item.expr, args.len())? {
                Some(n) => args[n].clone(),
                None => inner.bind(&item.expr)?,
            };
            order.push(OrderKey { expr, descending: item.descending });
        }
        let kind = convert::aggregate_kind(aggregate.kind, args.is_empty());
        let quantifier = if aggregate.distinct { Quantifier::Distinct } else { Quantifier::All };
        let separator = aggregate.separator.clone();
        let limit = aggregate.limit.map(|(offset, count)| (offset.unwrap_or(0), count));
        let options = AggregateOptions { quantifier, order, separator, limit };
        Aggregate::new(kind, args, options, self.ctx.names.env())
    }

    /// Returns true if an expression reads an aggregate of this query.
    pub(crate) fn reads_aggregate(&self, expr: &Expr) -> bool {
        let mut columns = BTreeSet::new();
        add_columns(self.ctx, expr, &mut columns);
        self.has_aggregate(&columns)
    }

    fn has_aggregate(&self, columns: &BTreeSet<usize>) -> bool {
        self.aggregates.is_some_and(|list| list.borrow().iter().any(|known| columns.contains(&known.column)))
    }

    /// Returns the clause whose query owns an aggregate that reads these columns.
    fn owner_of(&self, columns: &BTreeSet<usize>) -> Option<&Binder<'_>> {
        let may = |binder: &&Binder<'_>| binder.aggregates.is_some() || binder.within_aggregate;
        let reads = |binder: &Binder<'_>| columns.iter().any(|column| binder.scope.holds(*column));
        if reads(self) {
            return Some(self).filter(may);
        }
        let mut around = Vec::new();
        let mut innermost = None;
        for binder in std::iter::successors(self.outer, |binder| binder.outer) {
            around.push(binder);
            if reads(binder) {
                innermost = Some(binder);
                break;
            }
        }
        match innermost {
            None => Some(self).filter(may).or_else(|| around.into_iter().find(may)),
            Some(innermost) => Some(innermost)
                .filter(may)
                .or_else(|| around.into_iter().find(may))
                .or(Some(self))
                .filter(may),
        }
    }

    /// Returns the argument to which a number in the ORDER BY of an aggregate refers, or `None` if it is not
    /// a number.
    fn position(&self, expr: &ast::Expr, count: usize) -> SqlResult<Option<usize>> {
        match expr {
            ast::Expr::Literal(literal) => item_position(self.ctx, literal, count, Clause::OrderBy),
            _ => Ok(None),
        }
    }
}

/// Returns error 4074 if an argument contains a window function.
pub(super) fn refuse_windows(args: &[ast::Expr]) -> SqlResult<()> {
    let is_window = |part: &ast::Expr| matches!(part, ast::Expr::Window(_));
    match args.iter().any(|arg| arg.has_part(is_window)) {
        true => Err(SqlError::window_in_aggregate()),
        false => Ok(()),
    }
}

/// Adds the columns that an expression and its subqueries name.
fn add_columns(ctx: &PlanContext<'_>, expr: &Expr, found: &mut BTreeSet<usize>) {
    let known = ctx.subqueries.borrow();
    let mut asked = Vec::new();
    let mut see = |expr: &Expr, asked: &mut Vec<usize>| {
        expr.walk(&mut |node| {
            match node {
                Expr::Column(column) => {
                    found.insert(column.ordinal);
                }
                Expr::Subquery(subquery) => asked.push(subquery.id),
                _ => {}
            }
            true
        });
    };
    see(expr, &mut asked);
    while let Some(id) = asked.pop() {
        each_expr(&known[id], &mut |expr| see(expr, &mut asked));
    }
}
