//! Changes through views: resolves a column to a base table column, and collects the privileges and the WITH
//! CHECK OPTION conditions of the views in between.

use std::sync::Arc;

use cohort_catalog::{Table, TableName, View};
use cohort_expr::Expr;
use cohort_sql::ast;
use cohort_types::{Privilege, Privileges, SqlError, SqlResult};

use crate::bind::{PlanContext, Scope, same_name};
use crate::block::{From, FromTable, Query, Source};
use crate::updatable::{Items, can_merge, with_items};
use crate::view::{bind_view, invalid_view};

/// The base table column that a column of the statement resolves to.
pub(crate) struct Written<'f> {
    /// The views between the statement and the base table, outermost first.
    levels: Vec<&'f FromTable>,
    pub base: &'f FromTable,
    pub table: Arc<Table>,
    pub column: usize,
}

/// WITH CHECK OPTION: a condition on written rows, over a row of the base table.
#[derive(Clone)]
pub struct RowCheck {
    /// The view that the statement names.
    pub view: TableName,
    pub condition: Expr,
}

/// The reason why a column cannot be written.
pub(crate) enum Refusal {
    /// Its table cannot be written.
    Table,
    /// It is computed.
    Column,
}

/// Returns the table of FROM that a column belongs to, and whether an outer join may pad it.
fn find(from: &From, column: usize, padded: bool) -> Option<(&FromTable, bool)> {
    match from {
        From::Table(table) => {
            let has = (table.first..table.first + table.width).contains(&column);
            has.then_some((&**table, padded))
        }
        From::Join(join) => {
            find(&join.left, column, padded).or_else(|| find(&join.right, column, padded || join.outer))
        }
    }
}

/// Resolves a column number to a base table column.
pub(crate) fn written(from: &From, column: usize) -> Result<Written<'_>, Refusal> {
    let (mut from, mut column, mut padded, mut levels) = (from, column, false, Vec::new());
    loop {
        let (table, is_padded) = find(from, column, padded).ok_or(Refusal::Table)?;
        padded = is_padded;
        match &table.source {
            Source::Base { table: base, .. } => {
                let (base, at) = (base.clone(), column - table.first);
                debug_assert!(at < base.columns.len(), "a written column that its table does not have");
                return Ok(Written { levels, base: table, table: base, column: at });
            }
            Source::Derived(query) if table.view.is_some() => {
                let select = query.select().filter(|_| query.is_updatable() && can_merge(query, padded));
                let select = select.ok_or(Refusal::Table)?;
                let Expr::Column(inner) = &select.items[column - table.first] else {
                    return Err(Refusal::Column);
                };
                levels.push(table);
                (from, column) = (select.from.as_ref().ok_or(Refusal::Table)?, inner.ordinal);
            }
            _ => return Err(Refusal::Table),
        }
    }
}

/// Returns the base tables of a merged view, including those of nested views.
pub(crate) fn base_tables(query: &Query) -> Vec<&FromTable> {
    let from = query.select().and_then(|select| select.from.as_ref());
    let tables = from.map(From::tables).unwrap_or_default();
    let below = |table| match table {
        &FromTable { source: Source::Derived(ref inner), view: Some(_), .. } => base_tables(inner),
        table => vec![table],
    };
    tables.into_iter().flat_map(below).collect()
}

impl Written<'_> {
    /// Checks the privilege on the column, also for the definers of the views in between.
    pub(crate) fn use_column(&self, ctx: &PlanContext<'_>, how: Privilege) -> SqlResult<()> {
        self.inside(ctx, |ctx| ctx.names.use_column(&self.table, &self.table.columns[self.column].name, how))
    }

    /// Checks the privileges on the table as a whole, also for the definers of the views in between.
    pub(crate) fn want(&self, ctx: &PlanContext<'_>, wanted: Privileges) -> SqlResult<()> {
        let name = &self.table.name;
        self.inside(ctx, |ctx| ctx.names.base_table(&name.schema, &name.table, wanted).map(drop))
    }

    fn inside(
        &self,
        ctx: &PlanContext<'_>,
        check: impl FnOnce(&PlanContext<'_>) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let views: Vec<&Arc<View>> = self.views().collect();
        let Some(outermost) = views.first() else { return Ok(()) };
        for (n, view) in views.iter().enumerate() {
            if let Err(error) = ctx.names.enter_view(view) {
                (0..n).for_each(|_| ctx.names.leave_view());
                return Err(error);
            }
        }
        let checked = check(ctx);
        views.iter().for_each(|_| ctx.names.leave_view());
        checked.map_err(|_| invalid_view(outermost))
    }

    fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.levels.iter().filter_map(|level| level.view.as_ref())
    }

    /// Returns the CHECK OPTION conditions of the views in between. CASCADED includes those of all underlying
    /// views.
    pub(crate) fn checks(&self) -> SqlResult<Vec<RowCheck>> {
        let Some(outermost) = self.views().next() else { return Ok(Vec::new()) };
        let (mut items, mut conditions, mut cascaded) = (Items::new(), Vec::new(), false);
        for level in &self.levels {
            let (Some(view), Source::Derived(query)) = (&level.view, &level.source) else { continue };
            let Some(select) = query.select() else { continue };
            let numbered = select.items.iter().enumerate();
            items.extend(numbered.map(|(n, item)| (level.first + n, item.clone())));
            cascaded |= view.check == "CASCADED";
            if cascaded || view.check == "LOCAL" {
                conditions.extend(select.conditions.iter().cloned());
                if matches!(select.from, Some(From::Join(_))) {
                    return Err(SqlError::not_supported("WITH CHECK OPTION of a view over a join"));
                }
            }
        }
        let (first, width) = (self.base.first, self.base.width);
        let check = |condition: Expr| {
            let condition = with_items(condition, &items);
            let is_own = condition.columns().iter().all(|c| (first..first + width).contains(c));
            if condition.calls_back() || !is_own {
                return Err(SqlError::not_supported("WITH CHECK OPTION with a subquery"));
            }
            let condition = condition.map_columns(&mut |column| column - first);
            debug_assert!(!condition.is_volatile(), "CHECK OPTION of a view that cannot be merged");
            Ok(RowCheck { view: outermost.name.clone(), condition })
        };
        conditions.into_iter().map(check).collect()
    }
}

/// A view that is the target of an INSERT, with the base table that receives the rows.
pub struct InsertView {
    pub table: Arc<Table>,
    /// The table's columns under the view's names.
    pub scope: Scope,
    /// Columns of the table, in the view's order.
    pub columns: Vec<usize>,
    pub checks: Vec<RowCheck>,
}

/// Resolves the target of an INSERT if it is a view, otherwise returns `None`. `columns` are those that the
/// statement names. Errors 1471, 1393 and 1394.
pub fn bind_insert_view(
    ctx: &PlanContext<'_>,
    name: &ast::ObjectName,
    columns: &[String],
    wanted: Privileges,
) -> SqlResult<Option<InsertView>> {
    let Some(view) = ctx.names.view(ctx.schema_of(name)?, &name.name, wanted)? else { return Ok(None) };
    let bound = bind_view(ctx, &view)?;
    let shown = format!("{}.{}", view.name.schema, view.name.table);
    let is_join = base_tables(&bound).len() > 1;
    if is_join && columns.is_empty() && bound.is_updatable() {
        return Err(SqlError::join_view_without_columns(&shown));
    }
    let names: Vec<String> = bound.columns.iter().map(|column| column.name.clone()).collect();
    let (first, width) = (bound.first_column, names.len());
    let from = From::Table(Box::new(FromTable {
        first,
        width,
        name: view.name.table.as_str().into(),
        source: Source::Derived(Box::new(bound)),
        view: Some(view.clone()),
        key: None,
    }));
    let refused = || SqlError::target_not_insertable(&view.name.table);
    let is_named = |n: &usize| columns.is_empty() || columns.iter().any(|c| same_name(c, &names[*n]));
    let mut named = Vec::with_capacity(width);
    for n in (0..width).filter(is_named) {
        named.push(written(&from, first + n).map_err(|_| refused())?);
    }
    // An unknown name is reported later, when the names are looked up.
    let known = (0..width).filter_map(|n| Some((n, written(&from, first + n).ok()?)));
    let places: Vec<(usize, Written<'_>)> = known.collect();
    let base = named.first().or(places.first().map(|(_, place)| place)).ok_or_else(refused)?;
    if named.iter().any(|place| place.base.first != base.base.first) {
        return Err(SqlError::join_view_with_two_targets(&view.name.schema, &view.name.table));
    }
    let mut scope = Scope::of_table(base.table.clone(), Some(&view.name.table));
    let entry = &mut scope.tables[0];
    entry.schema = Some(view.name.schema.as_str().into());
    entry.view = Some(view.clone());
    // Columns that the view does not expose have no name.
    entry.columns.iter_mut().for_each(|column| column.name = "".into());
    let mut own = Vec::new();
    for (n, place) in places.iter().filter(|(_, place)| place.base.first == base.base.first) {
        let (column, name) = (&mut entry.columns[place.column], &names[*n]);
        if !column.name.is_empty() {
            return Err(refused());
        }
        column.name = name.as_str().into();
        column.full_name = format!("`{}`.`{}`.`{name}`", view.name.schema, view.name.table).into();
        own.push(place.column);
    }
    base.want(ctx, wanted)?;
    let checks = base.checks()?;
    let table = base.table.clone();
    debug_assert_eq!(scope.width(), table.columns.len(), "a row of the view's table has other columns");
    debug_assert!(
        (1..own.len()).all(|n| !own[..n].contains(&own[n])),
        "the view shows a column twice: INSERT would assign it twice"
    );
    Ok(Some(InsertView { table, scope, columns: own, checks }))
}
