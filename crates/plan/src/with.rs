//! WITH: named queries that FROM may use like derived tables (common table expressions).
//!
//! A common table expression is bound at its first reference and shared by all references. So a chain in
//! which each one references the previous one twice is bound once per table, not 2^n times.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use cohort_sql::ast;
use cohort_types::{SqlError, SqlResult};

use crate::bind::{PlanContext, same_name};
use crate::block::{CommonTable, Query, Step};
use crate::common_tables::{Common, CommonTables, Known};
use crate::from::merged_columns;
use crate::query::{bind_chain, bind_query};

impl<'q> CommonTables<'q> {
    /// Returns the visible ones together with those of an inner WITH.
    pub(crate) fn with<'n>(&self, with: Option<&'n ast::With>) -> SqlResult<CommonTables<'n>>
    where
        'q: 'n,
    {
        let mut tables: Vec<Rc<Common<'n>>> = Vec::with_capacity(self.tables.len());
        tables.extend(self.tables.iter().map(Rc::clone));
        if let Some(with) = with {
            let end = tables.len() + with.tables.len();
            for (n, table) in with.tables.iter().enumerate() {
                if with.tables[..n].iter().any(|other| other.name.eq_ignore_ascii_case(&table.name)) {
                    return Err(SqlError::duplicate_query_name(&table.name));
                }
                tables.push(Rc::new(Common {
                    table,
                    sees: if with.recursive { end } else { tables.len() },
                    recursive: with.recursive && names_table(&table.query, &table.name),
                    known: RefCell::new(None),
                    begun: Cell::new(false),
                    inside: Cell::new(false),
                }));
            }
        }
        let mut named = tables.iter().enumerate();
        debug_assert!(
            named.all(|(n, common)| common.sees <= tables.len() && (common.sees > n || !common.recursive)),
            "a recursive common table expression does not see itself"
        );
        Ok(CommonTables { tables })
    }

    /// Returns a common table expression by name.
    pub(crate) fn find(&self, ctx: &PlanContext<'_>, name: &str) -> SqlResult<Option<Known>> {
        let found = self.tables.iter().rposition(|common| common.table.name.eq_ignore_ascii_case(name));
        let Some(common) = found.map(|at| &self.tables[at]) else { return Ok(None) };
        self.make_known(ctx, common)?;
        let known = common.known.borrow().clone().expect("bound above");
        debug_assert_eq!(known.names.len(), known.types.len(), "a column of {name} has no name");
        if !common.inside.get() {
            ctx.common.borrow_mut()[known.number].references += 1;
        }
        Ok(Some(known))
    }

    /// Binds those of the innermost WITH that the query does not reference, because they may contain errors.
    pub(crate) fn check_unused(&self, ctx: &PlanContext<'_>, with: &ast::With) -> SqlResult<()> {
        let first = self.tables.len() - with.tables.len();
        self.tables[first..].iter().try_for_each(|common| self.make_known(ctx, common))
    }

    fn make_known(&self, ctx: &PlanContext<'_>, common: &Common<'q>) -> SqlResult<()> {
        if common.known.borrow().is_some() {
            return Ok(());
        }
        if common.begun.replace(true) {
            return Err(SqlError::not_supported("common tables that name each other"));
        }
        let sight = CommonTables { tables: self.tables[..common.sees].to_vec() };
        common.bind(ctx, &sight)
    }
}

impl Common<'_> {
    fn bind(&self, ctx: &PlanContext<'_>, sight: &CommonTables<'_>) -> SqlResult<()> {
        if !self.recursive {
            let seed = bind_query(ctx, sight, None, &self.table.query)?.not_counted()?;
            let number = self.add(ctx, seed)?;
            self.cycle(ctx, number)?;
            return Ok(());
        }
        let query = &*self.table.query;
        let name = &self.table.name;
        if !query.order_by.is_empty() || query.limit.is_some() {
            return Err(SqlError::not_supported("global ORDER_BY/LIMIT in recursive CTE spec"));
        }
        let ast::QueryBody::SetOperation { first, rest } = &query.body else { return Err(no_anchor(name)) };
        let recurs = |body: &ast::QueryBody| body_names_table(body, name);
        if recurs(first) {
            return Err(no_anchor(name));
        }
        let sight = sight.with(query.with.as_ref())?;
        let steps: Vec<&ast::SetOperand> = rest.iter().filter(|operand| recurs(&operand.body)).collect();
        // With only unions, an anchor after a recursive part is equivalent to one before it.
        let is_union = rest.iter().all(|operand| operand.op == ast::SetOperator::Union);
        let (is_sorted, one_kind) = (
            rest.is_sorted_by_key(|operand| recurs(&operand.body)),
            rest.iter().all(|operand| operand.all == rest[0].all),
        );
        if steps.iter().any(|operand| operand.op != ast::SetOperator::Union) || !(is_sorted || is_union) {
            return Err(no_anchor(name));
        }
        if is_union && !one_kind && !(is_sorted && steps.len() == 1) {
            return Err(SqlError::not_supported(
                "mix of ALL and DISTINCT UNION operations in recursive CTE spec",
            ));
        }
        let seeds: Vec<ast::SetOperand> =
            rest.iter().filter(|operand| !recurs(&operand.body)).cloned().collect();
        let seed = bind_chain(ctx, &sight, first, &seeds)?;
        let number = self.add(ctx, seed)?;
        steps.iter().try_for_each(|step| check_step(&step.body, name))?;
        self.inside.set(true);
        let all: Vec<ast::SetOperand> =
            steps[1..].iter().map(|operand| ast::SetOperand { all: true, ..(*operand).clone() }).collect();
        let bound = bind_chain(ctx, &sight, &steps[0].body, &all);
        self.inside.set(false);
        let query = bound?;
        let cycle = self.cycle(ctx, number)?;
        let mut common = ctx.common.borrow_mut();
        if query.types.len() != common[number].seed.types.len() {
            return Err(SqlError::select_column_counts_differ());
        }
        let distinct = steps.iter().any(|operand| !operand.all) || !cycle.is_empty();
        debug_assert!(common[number].step.is_none(), "a recursive part is bound twice");
        common[number].step = Some(Step { query, distinct, cycle });
        Ok(())
    }

    /// Returns the columns of CYCLE. Errors 1054 and 1060.
    fn cycle(&self, ctx: &PlanContext<'_>, number: usize) -> SqlResult<Vec<usize>> {
        let given = &self.table.columns;
        let common = ctx.common.borrow();
        let named = common[number].seed.columns.iter().map(|column| column.name.as_str());
        let names: Vec<&str> = match given.is_empty() {
            true => named.collect(),
            false => given.iter().map(String::as_str).collect(),
        };
        let mut cycle = Vec::new();
        for name in &self.table.cycle {
            let Some(column) = names.iter().position(|known| same_name(known, name)) else {
                return Err(SqlError::unknown_column(name, "CYCLE clause"));
            };
            if cycle.contains(&column) {
                return Err(SqlError::duplicate_column(name));
            }
            cycle.push(column);
        }
        debug_assert!(cycle.len() <= names.len(), "CYCLE compares a column twice");
        Ok(cycle)
    }

    /// Registers it with its initial rows.
    fn add(&self, ctx: &PlanContext<'_>, seed: Query) -> SqlResult<usize> {
        let given = &self.table.columns;
        if !given.is_empty() && given.len() != seed.columns.len() {
            return Err(SqlError::with_column_count());
        }
        let names = match given.is_empty() {
            true => seed.columns.iter().map(|c| c.name.clone()).collect(),
            false => given.clone(),
        };
        let types = match self.recursive {
            // Later rows may contain NULL.
            true => seed.types.iter().map(|ty| ty.clone().with_nullable(true)).collect(),
            false => seed.types.clone(),
        };
        let merged = if self.recursive { None } else { merged_columns(&seed) };
        let mut common = ctx.common.borrow_mut();
        let number = common.len();
        common.push(CommonTable { seed, step: None, references: 0 });
        *self.known.borrow_mut() = Some(Known { number, names, types, merged });
        Ok(number)
    }
}

fn no_anchor(name: &str) -> SqlError {
    SqlError::recursion_without_anchor(name)
}

/// Returns error 4008 for a recursive SELECT that references its table more than once, applies grouping or
/// window functions to it, pads it by an outer join, or references it in a subquery.
fn check_step(body: &ast::QueryBody, name: &str) -> SqlResult<()> {
    match body {
        ast::QueryBody::Select(select) => {
            let mut direct = 0;
            let mut padded = false;
            if let Some(from) = &select.from {
                count_direct(from, name, false, (&mut direct, &mut padded));
            }
            let items = select.items.iter().filter_map(|item| match item {
                ast::SelectItem::Expr { expr, .. } => Some(expr),
                ast::SelectItem::Wildcard | ast::SelectItem::TableWildcard(_) => None,
            });
            let gathers = |expr: &ast::Expr| {
                expr.has_part(|part| matches!(part, ast::Expr::Aggregate(_) | ast::Expr::Window(_)))
            };
            let asks = |expr: &ast::Expr| {
                expr.has_part(|part| match part {
                    ast::Expr::Subquery(query) | ast::Expr::Exists(query) => names_table(query, name),
                    ast::Expr::InQuery { query, .. } | ast::Expr::Quantified { query, .. } => {
                        names_table(query, name)
                    }
                    _ => false,
                })
            };
            let mut others = select.filter.iter().chain(&select.having);
            let is_refused = items.clone().any(|item| asks(item) || (direct > 0 && gathers(item)))
                || others.any(|expr| asks(expr) || (direct > 0 && gathers(expr)))
                || direct > 1
                || padded;
            match is_refused {
                true => Err(SqlError::recursion_restricted(name)),
                false => Ok(()),
            }
        }
        ast::QueryBody::Nested(query) => check_step(&query.body, name),
        ast::QueryBody::SetOperation { first, rest } => {
            check_step(first, name)?;
            rest.iter().try_for_each(|operand| check_step(&operand.body, name))
        }
        ast::QueryBody::Values(_) => Ok(()),
    }
}

/// Counts the references to the table itself in FROM, and records whether an outer join pads it.
fn count_direct(from: &ast::TableRef, name: &str, is_padded: bool, found: (&mut usize, &mut bool)) {
    let (direct, padded) = found;
    match from {
        ast::TableRef::Table(_) => {
            if from_names_table(from, name) {
                *direct += 1;
                *padded |= is_padded;
            }
        }
        ast::TableRef::Derived { .. } => *padded |= is_padded && from_names_table(from, name),
        ast::TableRef::Json(_) => {}
        ast::TableRef::Join(join) => {
            let (left, right) = (join.kind == ast::JoinKind::Right, join.kind == ast::JoinKind::Left);
            count_direct(&join.left, name, is_padded || left, (&mut *direct, &mut *padded));
            count_direct(&join.right, name, is_padded || right, (direct, padded));
        }
    }
}

/// Returns true if FROM of a query, or of a query nested in it, names a table.
fn names_table(query: &ast::Query, name: &str) -> bool {
    body_names_table(&query.body, name)
}

fn body_names_table(body: &ast::QueryBody, name: &str) -> bool {
    match body {
        ast::QueryBody::Select(select) => {
            select.from.as_ref().is_some_and(|from| from_names_table(from, name))
        }
        ast::QueryBody::SetOperation { first, rest, .. } => {
            body_names_table(first, name) || rest.iter().any(|operand| body_names_table(&operand.body, name))
        }
        ast::QueryBody::Values(_) => false,
        ast::QueryBody::Nested(query) => names_table(query, name),
    }
}

fn from_names_table(from: &ast::TableRef, name: &str) -> bool {
    match from {
        ast::TableRef::Table(factor) => {
            factor.name.db.is_none() && factor.name.name.eq_ignore_ascii_case(name)
        }
        ast::TableRef::Derived { query, .. } => names_table(query, name),
        ast::TableRef::Json(_) => false,
        ast::TableRef::Join(join) => {
            from_names_table(&join.left, name) || from_names_table(&join.right, name)
        }
    }
}
