//! FROM: the tables of a SELECT, how they are joined, and which names see which columns.

use std::sync::Arc;

use cohort_expr::{CompareOp, Expr, and, compare_exprs};
use cohort_sql::ast;
use cohort_types::{ErrorCode, Privilege, SqlError, SqlResult};

use crate::access::check_table;
use crate::bind::{
    Binder, Clause, PlanContext, Relation, Scope, ScopeColumn, ScopeTable, not_supported, same_name,
};
use crate::plan::access::allowed_indexes;
use crate::plan::query::QueryPlan;
use crate::plan::select::plan_query;
use crate::plan::with::CommonTables;

/// A table of FROM, before the join order is chosen.
pub(super) struct FromTable {
    /// Its number in the scope.
    pub number: usize,
    /// ON of the outer join on whose inner side it stands.
    pub outer_on: Option<Vec<Expr>>,
    /// Indexes that hints allow; whether they must be used.
    pub allowed: Vec<usize>,
    pub forced: bool,
    /// Must not come before the tables left of it.
    pub keep_order: bool,
}

/// FROM, bound.
#[derive(Default)]
pub(super) struct From {
    pub scope: Scope,
    /// In the order of execution as written: the inner side of an outer join after its outer side.
    pub tables: Vec<FromTable>,
    /// ON conditions of inner joins.
    pub conditions: Vec<Expr>,
    /// Plans of derived tables, by the number in [`Relation::Derived`].
    pub derived: Vec<Option<Arc<QueryPlan>>>,
}

/// Binds FROM.
pub(super) fn bind_from(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    from: Option<&ast::TableRef>,
) -> SqlResult<From> {
    let mut bound = From::default();
    if let Some(from) = from {
        bound.add(ctx, with, from)?;
        if bound.scope.tables.len() > 61 {
            return Err(SqlError::new(
                ErrorCode::TooManyTables,
                "Too many tables; MariaDB can only use 61 tables in a join",
            ));
        }
    }
    Ok(bound)
}

impl From {
    /// Adds a table or join; yields its tables' numbers.
    fn add(
        &mut self,
        ctx: &PlanContext<'_>,
        with: &CommonTables<'_>,
        node: &ast::TableRef,
    ) -> SqlResult<Vec<usize>> {
        ctx.enter()?;
        match node {
            ast::TableRef::Table(factor) => self.add_named(ctx, with, factor).map(|n| vec![n]),
            ast::TableRef::Derived { query, alias, columns } => {
                let plan = Arc::new(plan_query(ctx, with, query)?);
                self.add_derived(plan, alias, columns).map(|n| vec![n])
            }
            ast::TableRef::Join(join) => self.add_join(ctx, with, join),
        }
    }

    fn add_named(
        &mut self,
        ctx: &PlanContext<'_>,
        with: &CommonTables<'_>,
        factor: &ast::TableFactor,
    ) -> SqlResult<usize> {
        if !factor.partitions.is_empty() {
            return Err(not_supported("PARTITION"));
        }
        if factor.name.db.is_none()
            && let Some((plan, names)) = with.plan(ctx, &factor.name.name)?
        {
            return self.add_derived(plan, factor.alias.as_deref().unwrap_or(&factor.name.name), names);
        }
        let schema = ctx.schema_of(&factor.name)?;
        let first_slot = self.scope.width();
        let shown = factor.alias.as_deref().unwrap_or(&factor.name.name);
        let (table, allowed, forced) = match ctx.session.db.virtual_tables.find(schema, &factor.name.name) {
            Some(found) => {
                check_table(ctx.session, Privilege::Select, found.schema(), found.name())?;
                (virtual_scope(found, shown, first_slot), Vec::new(), false)
            }
            None => {
                let table = ctx.base_table(&factor.name, Privilege::Select.into())?;
                let (allowed, forced) = allowed_indexes(&table, factor)?;
                (ScopeTable::base(table, factor.alias.as_deref(), first_slot), allowed, forced)
            }
        };
        self.push(table, allowed, forced)
    }

    fn add_derived(&mut self, plan: Arc<QueryPlan>, alias: &str, names: &[String]) -> SqlResult<usize> {
        if !names.is_empty() && names.len() != plan.columns.len() {
            return Err(SqlError::new(
                ErrorCode::WithColListWrongNumber,
                "WITH column list and SELECT field list have different column counts",
            ));
        }
        let name_of = |n: usize| names.get(n).unwrap_or(&plan.columns[n].name);
        let mut columns: Vec<ScopeColumn> = Vec::new();
        for (n, ty) in plan.types.iter().enumerate() {
            let name: Arc<str> = name_of(n).as_str().into();
            if columns.iter().any(|c| same_name(&c.name, &name)) {
                return Err(SqlError::new(
                    ErrorCode::DupFieldName,
                    format!("Duplicate column name '{name}'"),
                ));
            }
            let full_name = format!("`{alias}`.`{name}`").into();
            columns.push(ScopeColumn { name, ty: ty.clone(), full_name, hidden: false, invisible: false });
        }
        let relation = Relation::Derived(self.derived.len());
        let first_slot = self.scope.width();
        self.derived.push(Some(plan));
        let table = ScopeTable { relation, schema: None, name: alias.into(), columns, first_slot };
        self.push(table, Vec::new(), false)
    }

    fn push(&mut self, table: ScopeTable, allowed: Vec<usize>, forced: bool) -> SqlResult<usize> {
        let twice = |t: &ScopeTable| t.name == table.name && (t.schema == table.schema || t.schema.is_none());
        if self.scope.tables.iter().any(twice) {
            let text = format!("Not unique table/alias: '{}'", table.name);
            return Err(SqlError::new(ErrorCode::NonUniqTable, text));
        }
        let number = self.scope.tables.len();
        self.scope.push(table);
        self.tables.push(FromTable { number, outer_on: None, allowed, forced, keep_order: false });
        Ok(number)
    }

    fn add_join(
        &mut self,
        ctx: &PlanContext<'_>,
        with: &CommonTables<'_>,
        join: &ast::Join,
    ) -> SqlResult<Vec<usize>> {
        let before = self.tables.len();
        let left = self.add(ctx, with, &join.left)?;
        let middle = self.tables.len();
        let right = self.add(ctx, with, &join.right)?;
        let on = self.join_conditions(ctx, join, &left, &right)?;
        let all: Vec<usize> = left.iter().chain(&right).copied().collect();
        match join.kind {
            ast::JoinKind::Inner | ast::JoinKind::Cross => self.conditions.extend(on),
            ast::JoinKind::Straight => {
                self.conditions.extend(on);
                self.tables[middle..].iter_mut().for_each(|t| t.keep_order = true);
            }
            ast::JoinKind::Left => self.make_inner_side(&right, on)?,
            ast::JoinKind::Right => {
                self.make_inner_side(&left, on)?;
                // Executed as a LEFT JOIN from the other side.
                let moved: Vec<FromTable> = self.tables.drain(before..middle).collect();
                self.tables.extend(moved);
            }
        }
        Ok(all)
    }

    /// The inner side of an outer join.
    fn make_inner_side(&mut self, side: &[usize], on: Vec<Expr>) -> SqlResult<()> {
        let [number] = side else { return Err(not_supported("an outer join of a join in parentheses")) };
        let table = self.tables.iter_mut().find(|t| t.number == *number).expect("added before");
        if table.outer_on.is_some() {
            return Err(not_supported("an outer join of an outer join in parentheses"));
        }
        table.outer_on = Some(on);
        for column in &mut self.scope.tables[*number].columns {
            column.ty.nullable = true;
        }
        Ok(())
    }

    fn join_conditions(
        &mut self,
        ctx: &PlanContext<'_>,
        join: &ast::Join,
        left: &[usize],
        right: &[usize],
    ) -> SqlResult<Vec<Expr>> {
        match &join.condition {
            ast::JoinCondition::None => Ok(Vec::new()),
            ast::JoinCondition::On(condition) => {
                let visible = self.scope_of(left.iter().chain(right));
                let bound = Binder::new(ctx, &visible, Clause::On).condition(condition)?;
                Ok(super::conjuncts::split(bound))
            }
            ast::JoinCondition::Using(names) => self.merge_columns(ctx, join.kind, left, right, names),
            ast::JoinCondition::Natural => {
                let names = self.common_columns(left, right);
                self.merge_columns(ctx, join.kind, left, right, &names)
            }
        }
    }

    /// What ON may name: the tables of this join only.
    fn scope_of<'n>(&self, numbers: impl Iterator<Item = &'n usize>) -> Scope {
        let mut numbers: Vec<usize> = numbers.copied().collect();
        numbers.sort_unstable();
        let tables = numbers.iter().map(|n| self.scope.tables[*n].clone()).collect();
        Scope { tables, star: self.scope.star_of(&numbers) }
    }

    fn common_columns(&self, left: &[usize], right: &[usize]) -> Vec<String> {
        let visible = |n: &usize| self.scope.tables[*n].columns.iter().filter(|c| !c.hidden && !c.invisible);
        let on_right = |name: &str| right.iter().flat_map(visible).any(|c| same_name(&c.name, name));
        let names = left.iter().flat_map(visible).filter(|c| on_right(&c.name));
        names.map(|c| c.name.to_string()).collect()
    }

    /// USING: equalities, one column of each pair hidden, and the order of `*`: the columns in common as the
    /// side that keeps its rows has them, then the rest of that side, then the rest of the other.
    fn merge_columns(
        &mut self,
        ctx: &PlanContext<'_>,
        kind: ast::JoinKind,
        left: &[usize],
        right: &[usize],
        names: &[String],
    ) -> SqlResult<Vec<Expr>> {
        let (left_scope, right_scope) = (self.scope_of(left.iter()), self.scope_of(right.iter()));
        let (mut kept, mut hidden, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let column = ast::ColumnRef { db: None, table: None, name: name.clone() };
            let (l, r) = (left_scope.column(&column, Clause::On)?, right_scope.column(&column, Clause::On)?);
            conditions.push(compare_exprs(
                CompareOp::Eq,
                ctx.read_column(&left_scope, l)?,
                ctx.read_column(&right_scope, r)?,
            )?);
            let (first, second) = if kind == ast::JoinKind::Right { (r, l) } else { (l, r) };
            kept.push(first);
            hidden.push(second);
        }
        let (first, second) = if kind == ast::JoinKind::Right { (right, left) } else { (left, right) };
        let (common, rest): (Vec<usize>, Vec<usize>) =
            self.scope.star_of(first).into_iter().partition(|s| kept.contains(s));
        let others = self.scope.star_of(second).into_iter().filter(|s| !hidden.contains(s));
        let joined: Vec<usize> = common.into_iter().chain(rest).chain(others).collect();
        let is_joined = |s: &usize| left.iter().chain(right).any(|n| *n == self.scope.table_of(*s));
        let mut star: Vec<usize> = self.scope.star.iter().copied().filter(|s| !is_joined(s)).collect();
        star.extend(joined);
        self.scope.star = star;
        hidden.into_iter().for_each(|slot| self.hide(slot));
        Ok(conditions)
    }

    fn hide(&mut self, slot: usize) {
        let table = self.scope.table_of(slot);
        let table = &mut self.scope.tables[table];
        let column = slot - table.first_slot;
        table.columns[column].hidden = true;
    }
}

/// A computed table under its alias, or its name as written.
fn virtual_scope(
    found: &Arc<dyn crate::virtual_table::VirtualTable>,
    shown: &str,
    first_slot: usize,
) -> ScopeTable {
    let name: Arc<str> = shown.into();
    let columns = found
        .columns()
        .iter()
        .map(|c| ScopeColumn {
            name: c.name.into(),
            ty: cohort_expr::ExprType::of_column(&c.ty, c.nullable),
            full_name: format!("`{}`.`{name}`.`{}`", found.schema(), c.name).into(),
            hidden: false,
            invisible: false,
        })
        .collect();
    let schema = Some(found.schema().into());
    ScopeTable { relation: Relation::Virtual(found.clone()), schema, name, columns, first_slot }
}

/// A conjunction, or nothing.
pub(super) fn all_of(conditions: Vec<Expr>) -> Option<Expr> {
    (!conditions.is_empty()).then(|| and(conditions))
}
