//! WITH: named queries that FROM may use as if they were derived tables.
//!
//! A common table is bound when it is first named, and all that name it share it. So a chain of tables that
//! each name the one before twice is bound once for each table, not 2^n times.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use cohort_expr::ExprType;
use cohort_sql::ast;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::bind::{MergedColumn, PlanContext, not_supported};
use crate::block::{CommonTable, Query, Step};
use crate::from::merged_columns;
use crate::query::{bind_chain, bind_query};

/// The common tables in sight, innermost last.
#[derive(Clone, Default)]
pub struct CommonTables<'q> {
    tables: Vec<Rc<Common<'q>>>,
}

/// A common table.
struct Common<'q> {
    table: &'q ast::CommonTable,
    recursive: bool,
    /// Its number among the statement's common tables, and its columns, once it is bound or its seed is.
    known: RefCell<Option<Known>>,
    /// Its recursive part is being bound.
    inside: Cell<bool>,
}

/// A common table that may be read.
#[derive(Clone)]
pub(crate) struct Known {
    pub number: usize,
    pub names: Vec<String>,
    pub types: Vec<ExprType>,
    /// What its columns are where it becomes a part of the query around.
    pub merged: Option<Arc<[MergedColumn]>>,
}

impl<'q> CommonTables<'q> {
    /// With those of an inner WITH.
    pub(crate) fn with<'n>(&self, with: Option<&'n ast::With>) -> SqlResult<CommonTables<'n>>
    where
        'q: 'n,
    {
        let mut tables: Vec<Rc<Common<'n>>> = Vec::with_capacity(self.tables.len());
        tables.extend(self.tables.iter().map(Rc::clone));
        if let Some(with) = with {
            for (n, table) in with.tables.iter().enumerate() {
                if with.tables[..n].iter().any(|other| other.name.eq_ignore_ascii_case(&table.name)) {
                    let text = format!("Duplicate query name `{}` in WITH clause", table.name);
                    return Err(SqlError::new(ErrorCode::DupQueryName, text));
                }
                tables.push(Rc::new(Common {
                    table,
                    recursive: with.recursive,
                    known: RefCell::new(None),
                    inside: Cell::new(false),
                }));
            }
        }
        Ok(CommonTables { tables })
    }

    /// A common table by name. It sees those before it, and itself when it is recursive.
    pub(crate) fn find(&self, ctx: &PlanContext<'_>, name: &str) -> SqlResult<Option<Known>> {
        let found = self.tables.iter().rposition(|common| common.table.name.eq_ignore_ascii_case(name));
        let Some(at) = found else { return Ok(None) };
        let common = &self.tables[at];
        if common.known.borrow().is_none() {
            let recursive = common.recursive && names_table(&common.table.query, name);
            let seen = if recursive { at + 1 } else { at };
            let sight = CommonTables { tables: self.tables[..seen].to_vec() };
            common.bind(ctx, &sight, recursive)?;
        }
        let known = common.known.borrow().clone().expect("bound above");
        if !common.inside.get() {
            ctx.common.borrow_mut()[known.number].references += 1;
        }
        Ok(Some(known))
    }
}

impl Common<'_> {
    fn bind(&self, ctx: &PlanContext<'_>, sight: &CommonTables<'_>, recursive: bool) -> SqlResult<()> {
        if !recursive {
            let seed = bind_query(ctx, sight, None, &self.table.query)?;
            self.add(ctx, seed)?;
            return Ok(());
        }
        let query = &*self.table.query;
        let plain = query.with.is_none() && query.order_by.is_empty() && query.limit.is_none();
        let (true, ast::QueryBody::SetOperation { first, rest }) = (plain, &query.body) else {
            return Err(no_anchor(&self.table.name));
        };
        let name = &self.table.name;
        let recurs = |body: &ast::QueryBody| body_names_table(body, name);
        let steps_at = rest.iter().position(|operand| recurs(&operand.body));
        let (false, Some(steps_at)) = (recurs(first), steps_at) else { return Err(no_anchor(name)) };
        if !rest[steps_at..].iter().all(|operand| recurs(&operand.body)) {
            return Err(not_supported("an anchor behind the recursive part of a common table"));
        }
        let (seeds, steps) = rest.split_at(steps_at);
        if steps.iter().any(|operand| operand.op != ast::SetOperator::Union) {
            return Err(no_anchor(name));
        }
        let seed = bind_chain(ctx, sight, first, seeds)?;
        let number = self.add(ctx, seed)?;
        self.inside.set(true);
        let all: Vec<ast::SetOperand> =
            steps[1..].iter().map(|operand| ast::SetOperand { all: true, ..operand.clone() }).collect();
        let bound = bind_chain(ctx, sight, &steps[0].body, &all);
        self.inside.set(false);
        let query = bound?;
        let mut common = ctx.common.borrow_mut();
        if query.types.len() != common[number].seed.types.len() {
            let text = "The used SELECT statements have a different number of columns";
            return Err(SqlError::new(ErrorCode::WrongNumberOfColumnsInSelect, text));
        }
        common[number].step = Some(Step { query, distinct: steps.iter().any(|operand| !operand.all) });
        Ok(())
    }

    /// Makes it known with the rows that it starts from.
    fn add(&self, ctx: &PlanContext<'_>, seed: Query) -> SqlResult<usize> {
        let given = &self.table.columns;
        if !given.is_empty() && given.len() != seed.columns.len() {
            return Err(SqlError::new(
                ErrorCode::WithColListWrongNumber,
                "WITH column list and SELECT field list have different column counts",
            ));
        }
        let names = match given.is_empty() {
            true => seed.columns.iter().map(|c| c.name.clone()).collect(),
            false => given.clone(),
        };
        let types = match self.recursive {
            // Further rows may bring NULL.
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
    let text = format!("No anchors for recursive WITH element '{name}'");
    SqlError::new(ErrorCode::RecursiveWithoutAnchors, text)
}

/// Whether FROM of a query, or of a query in it, names a table.
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
