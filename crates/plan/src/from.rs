//! Binds FROM: the tables of a SELECT, their joins, and the visibility of columns.

use std::sync::Arc;

use cohort_catalog::{Index, Table, View};
use cohort_expr::{CompareOp, Expr, ExprType, compare_exprs};
use cohort_protocol::ColumnMeta;
use cohort_sql::ast;
use cohort_types::{Privilege, SqlError, SqlResult};

use crate::bind::{
    Binder, Clause, MergedColumn, PlanContext, Relation, Scope, ScopeColumn, ScopeTable, same_name,
};
use crate::block::{From, FromJoin, FromTable, Query, Source};
use crate::common_tables::CommonTables;
use crate::conjuncts;
use crate::json_table::bind_json_table;
use crate::names::VirtualDefinition;
use crate::query::bind_query;
use crate::updatable::{can_merge, place};
use crate::view::bind_view;

/// Maximum number of tables of one SELECT.
const TABLES_MAX: usize = 61;

/// Binds FROM. Returns its tables and the scope of names.
pub(crate) fn bind_from(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    outer: Option<&Binder<'_>>,
    from: Option<&ast::TableRef>,
) -> SqlResult<(Option<From>, Scope)> {
    bind_from_for(ctx, with, outer, from, Privilege::Select)
}

/// Returns the tables of the first SELECT of a query without grouping: ON DUPLICATE KEY UPDATE may name their
/// columns in addition to those of the target table.
pub fn scope_of_rows(ctx: &PlanContext<'_>, query: &ast::Query) -> SqlResult<Scope> {
    let with = CommonTables::default().with(query.with.as_ref())?;
    let mut body = &query.body;
    loop {
        match body {
            ast::QueryBody::SetOperation { first, .. } => body = first,
            ast::QueryBody::Nested(inner) => body = &inner.body,
            ast::QueryBody::Values(_) => return Ok(Scope::default()),
            ast::QueryBody::Select(select) => {
                let gathers = |item: &ast::SelectItem| match item {
                    ast::SelectItem::Expr { expr, .. } => {
                        expr.has_part(|part| matches!(part, ast::Expr::Aggregate(_) | ast::Expr::Window(_)))
                    }
                    ast::SelectItem::Wildcard | ast::SelectItem::TableWildcard(_) => false,
                };
                if !select.group_by.is_empty() || select.items.iter().any(gathers) {
                    return Ok(Scope::default());
                }
                let scope = bind_from(ctx, &with, None, select.from.as_ref())?.1;
                // The query is bound again as a whole, including these.
                ctx.subqueries.take();
                ctx.common.take();
                return Ok(scope);
            }
        }
    }
}

/// Binds FROM like [`bind_from`], but requires another privilege on the tables as a whole.
pub(crate) fn bind_from_for(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    outer: Option<&Binder<'_>>,
    from: Option<&ast::TableRef>,
    wanted: Privilege,
) -> SqlResult<(Option<From>, Scope)> {
    let mut tables =
        Tables { ctx, with, outer, wanted, scope: Scope::default(), padded: 0, unreachable: Vec::new() };
    let bound = from.map(|from| tables.add(from)).transpose()?;
    if tables.scope.tables.len() > TABLES_MAX {
        return Err(SqlError::too_many_tables(TABLES_MAX));
    }
    debug_assert!(
        tables.padded == 0 && tables.unreachable.is_empty(),
        "a join ended without its restrictions"
    );
    let numbers = bound.as_ref().map_or(0, |side| side.numbers.len());
    debug_assert_eq!(numbers, tables.scope.tables.len(), "a table in scope is no table of FROM");
    Ok((bound.map(|side| side.from), tables.scope))
}

struct Tables<'t> {
    ctx: &'t PlanContext<'t>,
    with: &'t CommonTables<'t>,
    /// The outer query, which conditions may name.
    outer: Option<&'t Binder<'t>>,
    /// The privilege required on each table as a whole.
    wanted: Privilege,
    scope: Scope,
    /// Number of outer joins that may pad the tables being added with NULLs.
    padded: usize,
    /// Positions of the tables that a JSON_TABLE may not read: those left of a RIGHT JOIN whose right side
    /// contains it.
    unreachable: Vec<usize>,
}

/// A bound part of FROM.
struct Side {
    from: From,
    /// Positions of its tables in the scope.
    numbers: Vec<usize>,
}

impl Tables<'_> {
    fn add(&mut self, node: &ast::TableRef) -> SqlResult<Side> {
        self.ctx.enter()?;
        match node {
            ast::TableRef::Table(factor) => self.add_named(factor),
            ast::TableRef::Derived { query, alias, columns } => {
                let bound = bind_query(self.ctx, self.with, None, query)?.not_counted()?;
                let names = match columns.is_empty() {
                    true => bound.columns.iter().map(|c| c.name.clone()).collect(),
                    false => columns.clone(),
                };
                let (first, types) = (bound.first_column, bound.types.clone());
                let merged = merged_columns(&bound);
                let source = Source::Derived(Box::new(bound));
                self.add_derived(first, alias, &names, &types, merged, source)
            }
            ast::TableRef::Json(node) => self.add_json(node),
            ast::TableRef::Join(join) => self.add_join(join),
        }
    }

    fn add_named(&mut self, factor: &ast::TableFactor) -> SqlResult<Side> {
        if !factor.partitions.is_empty() {
            return Err(SqlError::no_partitions());
        }
        let shown = factor.alias.as_deref().unwrap_or(&factor.name.name);
        if factor.name.db.is_none()
            && let Some(known) = self.with.find(self.ctx, &factor.name.name)?
        {
            let first = self.ctx.new_columns(known.types.len());
            let source = Source::Common(known.number);
            return self.add_derived(first, shown, &known.names, &known.types, known.merged, source);
        }
        let schema = self.ctx.schema_of(&factor.name)?;
        self.ctx.note(|meanings| meanings.note_table(factor, schema));
        if let Some(found) = self.ctx.names.virtual_table(schema, &factor.name.name)? {
            let table = virtual_scope(&found, shown, self.ctx.new_columns(found.columns().len()));
            return self.push(table, Source::Virtual(found));
        }
        if let Some(view) = self.ctx.names.view(schema, &factor.name.name, self.wanted.into())? {
            return self.add_view(view, shown);
        }
        let table = match self.ctx.base_table(&factor.name, self.wanted.into()) {
            Err(error) if error.is_no_such_table() => match series(&factor.name.name) {
                Some(source) => {
                    let name = vec!["seq".to_owned()];
                    let ty = ExprType::bigint(20).with_unsigned(true).with_nullable(false);
                    let first = self.ctx.new_columns(1);
                    return self.add_derived(first, shown, &name, &[ty], None, source);
                }
                None => return Err(error),
            },
            other => other?,
        };
        let (allowed, forced) = allowed_indexes(&table, factor)?;
        let first = self.ctx.new_columns(table.columns.len());
        let entry = ScopeTable::base(table.clone(), factor.alias.as_deref(), first);
        self.push(entry, Source::Base { table, allowed, forced })
    }

    fn add_json(&mut self, node: &ast::JsonTable) -> SqlResult<Side> {
        let numbers = 0..self.scope.tables.len();
        let visible: Vec<usize> = numbers.filter(|number| !self.unreachable.contains(number)).collect();
        let scope = self.scope_of(visible.iter());
        let mut binder = Binder::new(self.ctx, &scope, Clause::JsonTable);
        (binder.with, binder.outer, binder.subqueries_allowed) = (Some(self.with), self.outer, true);
        let bound = bind_json_table(node, &binder)?;
        // It counts as a table of the current database.
        let is_here = |table: &ScopeTable| table.schema.as_deref() == self.ctx.names.current_schema();
        if self.scope.tables.iter().any(|table| *table.name == *node.alias && is_here(table)) {
            return Err(not_unique(&node.alias));
        }
        let first = self.ctx.new_columns(bound.types.len());
        let source = Source::Json { document: bound.document, table: Arc::new(bound.table) };
        self.add_derived(first, &node.alias, &bound.names, &bound.types, None, source)
    }

    fn add_view(&mut self, view: Arc<View>, shown: &str) -> SqlResult<Side> {
        let bound = bind_view(self.ctx, &view)?;
        let schema: Arc<str> = view.name.schema.as_str().into();
        let column = |(column, ty): (&ColumnMeta, &ExprType)| ScopeColumn {
            name: column.name.as_str().into(),
            ty: ty.clone(),
            full_name: format!("`{schema}`.`{shown}`.`{}`", column.name).into(),
            hidden: false,
            invisible: false,
        };
        let columns = bound.columns.iter().zip(&bound.types).map(column).collect();
        let first_slot = bound.first_column;
        let relation = Relation::View(view);
        let table = ScopeTable {
            relation,
            schema: Some(schema),
            name: shown.into(),
            columns,
            first_slot,
            view: None,
            merged: merged_columns(&bound),
        };
        self.push(table, Source::Derived(Box::new(bound)))
    }

    fn add_derived(
        &mut self,
        first: usize,
        alias: &str,
        names: &[String],
        types: &[ExprType],
        merged: Option<Arc<[MergedColumn]>>,
        source: Source,
    ) -> SqlResult<Side> {
        if names.len() != types.len() {
            return Err(SqlError::with_column_count());
        }
        let mut columns: Vec<ScopeColumn> = Vec::new();
        for (name, ty) in names.iter().zip(types) {
            let name: Arc<str> = name.as_str().into();
            if columns.iter().any(|c| same_name(&c.name, &name)) {
                return Err(SqlError::duplicate_column(&name));
            }
            let full_name = format!("`{alias}`.`{name}`").into();
            let ty = if merged.is_some() { ty.clone() } else { ty.clone().kept() };
            columns.push(ScopeColumn { name, ty, full_name, hidden: false, invisible: false });
        }
        let table = ScopeTable {
            relation: Relation::Derived,
            schema: None,
            name: alias.into(),
            columns,
            first_slot: first,
            view: None,
            merged,
        };
        self.push(table, source)
    }

    fn push(&mut self, table: ScopeTable, source: Source) -> SqlResult<Side> {
        let twice = |t: &ScopeTable| t.name == table.name && t.schema == table.schema;
        if self.scope.tables.iter().any(twice) {
            return Err(not_unique(&table.name));
        }
        let view = match &table.relation {
            Relation::View(view) => Some(view.clone()),
            _ => None,
        };
        let number = self.scope.tables.len();
        let (first, width, name) = (table.first_slot, table.columns.len(), table.name.clone());
        debug_assert!(
            self.scope.tables.iter().all(|t| t.first_slot != first || width == 0),
            "numbers used twice"
        );
        self.scope.push(table);
        let from = From::Table(Box::new(FromTable { first, width, name, source, view, key: None }));
        Ok(Side { from, numbers: vec![number] })
    }

    fn add_padded(&mut self, node: &ast::TableRef, is_padded: bool) -> SqlResult<Side> {
        self.padded += usize::from(is_padded);
        let side = self.add(node);
        self.padded -= usize::from(is_padded);
        side
    }

    fn add_join(&mut self, join: &ast::Join) -> SqlResult<Side> {
        let (pads_left, pads_right) = (join.kind == ast::JoinKind::Right, join.kind == ast::JoinKind::Left);
        let left = self.add_padded(&join.left, pads_left)?;
        let reachable = self.unreachable.len();
        if pads_left {
            self.unreachable.extend(&left.numbers);
        }
        let right = self.add_padded(&join.right, pads_right);
        self.unreachable.truncate(reachable);
        let right = right?;
        let on = self.join_conditions(join, &left.numbers, &right.numbers)?;
        debug_assert!(
            !left.numbers.iter().any(|n| right.numbers.contains(n)),
            "a table is on both sides of a join: NULL-padding would reach the wrong columns"
        );
        let numbers: Vec<usize> = left.numbers.iter().chain(&right.numbers).copied().collect();
        let keep_order = join.kind == ast::JoinKind::Straight;
        let (outer, left, right) = match join.kind {
            ast::JoinKind::Inner | ast::JoinKind::Cross | ast::JoinKind::Straight => (false, left, right),
            ast::JoinKind::Left => (true, left, right),
            // RIGHT JOIN is LEFT JOIN with the sides swapped.
            ast::JoinKind::Right => (true, right, left),
        };
        if outer {
            for number in &right.numbers {
                self.scope.tables[*number].columns.iter_mut().for_each(|column| column.ty.nullable = true);
            }
        }
        let joined = FromJoin { outer, keep_order, left: left.from, right: right.from, on };
        Ok(Side { from: From::Join(Box::new(joined)), numbers })
    }

    fn join_conditions(&mut self, join: &ast::Join, left: &[usize], right: &[usize]) -> SqlResult<Vec<Expr>> {
        match &join.condition {
            ast::JoinCondition::None => Ok(Vec::new()),
            ast::JoinCondition::On(condition) => {
                // ON may name the tables of this join only.
                let visible = self.scope_of(left.iter().chain(right));
                let mut binder = Binder::new(self.ctx, &visible, Clause::On);
                (binder.with, binder.outer, binder.subqueries_allowed) = (Some(self.with), self.outer, true);
                let is_outer = matches!(join.kind, ast::JoinKind::Left | ast::JoinKind::Right);
                Ok(conjuncts::split(match is_outer || self.padded > 0 {
                    true => binder.condition_of_padded(condition)?,
                    false => binder.condition(condition)?,
                }))
            }
            ast::JoinCondition::Using(names) => self.merge_columns(join, left, right, names),
            ast::JoinCondition::Natural => {
                let names = self.common_columns(left, right);
                self.merge_columns(join, left, right, &names)
            }
        }
    }

    /// Returns the scope of an ON: the tables of this join only.
    fn scope_of<'n>(&self, numbers: impl Iterator<Item = &'n usize>) -> Scope {
        let mut numbers: Vec<usize> = numbers.copied().collect();
        numbers.sort_unstable();
        let tables = numbers.iter().map(|n| self.scope.tables[*n].clone()).collect();
        Scope { tables, star: self.scope.star_of(&numbers), reading: self.scope.reading }
    }

    fn common_columns(&self, left: &[usize], right: &[usize]) -> Vec<String> {
        let visible = |n: &usize| self.scope.tables[*n].columns.iter().filter(|c| !c.hidden && !c.invisible);
        let on_right = |name: &str| right.iter().flat_map(visible).any(|c| same_name(&c.name, name));
        let names = left.iter().flat_map(visible).filter(|c| on_right(&c.name));
        names.map(|c| c.name.to_string()).collect()
    }

    /// Applies USING: adds the equalities, hides one column of each pair, and reorders `*`: the common
    /// columns as in the row-preserving side, then the rest of that side, then the rest of the other.
    fn merge_columns(
        &mut self,
        join: &ast::Join,
        left: &[usize],
        right: &[usize],
        names: &[String],
    ) -> SqlResult<Vec<Expr>> {
        let (left_scope, right_scope) = (self.scope_of(left.iter()), self.scope_of(right.iter()));
        let kind = join.kind;
        let (mut kept, mut hidden, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let column = ast::ColumnRef { db: None, table: None, name: name.clone() };
            let slot = |scope: &Scope| self.ctx.column(scope, &column, Clause::On, Privilege::Select);
            let (l, r) = (slot(&left_scope)?, slot(&right_scope)?);
            self.ctx.note(|meanings| meanings.note_pair(join, (&left_scope, l), (&right_scope, r)));
            conditions.push(compare_exprs(
                CompareOp::Eq,
                self.ctx.read_column(&left_scope, l)?,
                self.ctx.read_column(&right_scope, r)?,
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
        debug_assert_eq!(kept.len(), hidden.len(), "USING keeps one column of each pair");
        debug_assert_eq!(kept.len(), conditions.len(), "a pair of USING without an equality");
        star.extend(joined);
        debug_assert!(
            star.len() == star.iter().collect::<std::collections::BTreeSet<_>>().len(),
            "`*` returns a column twice"
        );
        self.scope.star = star;
        hidden.into_iter().for_each(|slot| self.hide(slot));
        Ok(conditions)
    }

    fn hide(&mut self, slot: usize) {
        let table = self.scope.table_of(slot);
        let table = &mut self.scope.tables[table];
        let column = slot - table.first_slot;
        debug_assert!(!table.columns[column].hidden, "USING merges a column twice: one of its names is lost");
        table.columns[column].hidden = true;
    }
}

fn not_unique(name: &str) -> SqlError {
    SqlError::non_unique_table(name)
}

/// Returns the origins of the columns of a query that is merged into the outer one.
pub(crate) fn merged_columns(query: &Query) -> Option<Arc<[MergedColumn]>> {
    let column = |(n, meta): (usize, &ColumnMeta)| MergedColumn {
        meta: meta.clone(),
        base: place(query, n).map(|(first, table, column)| (first, Arc::clone(table), column)),
    };
    can_merge(query, false).then(|| query.columns.iter().enumerate().map(column).collect())
}

/// Creates the entry of a virtual table under its alias, or its name as written.
fn virtual_scope(found: &Arc<dyn VirtualDefinition>, shown: &str, first_slot: usize) -> ScopeTable {
    let name: Arc<str> = shown.into();
    let columns = found
        .columns()
        .iter()
        .map(|c| ScopeColumn {
            name: c.name.into(),
            ty: ExprType::of_column(&c.ty, c.nullable),
            full_name: format!("`{}`.`{name}`.`{}`", found.schema(), c.name).into(),
            hidden: false,
            invisible: false,
        })
        .collect();
    let schema = Some(found.schema().into());
    ScopeTable {
        relation: Relation::Virtual(found.clone()),
        schema,
        name,
        columns,
        first_slot,
        view: None,
        merged: None,
    }
}

/// Returns the indexes that USE, FORCE and IGNORE allow, and whether a scan is the last resort. Error 1176.
pub fn allowed_indexes(table: &Table, factor: &ast::TableFactor) -> SqlResult<(Vec<usize>, bool)> {
    let is_usable = |index: &Index| !index.ignored && index.kind.is_scannable();
    let mut allowed: Vec<usize> =
        (0..table.indexes.len()).filter(|&n| is_usable(&table.indexes[n])).collect();
    let mut forced = false;
    let mut used: Option<Vec<usize>> = None;
    for hint in &factor.index_hints {
        let mut named = Vec::new();
        for name in &hint.names {
            let found = table.indexes.iter().position(|i| !i.ignored && i.name.eq_ignore_ascii_case(name));
            named.push(found.ok_or_else(|| {
                let alias = factor.alias.as_deref().unwrap_or(&factor.name.name);
                SqlError::unknown_key(name, alias)
            })?);
        }
        match hint.kind {
            ast::IndexHintKind::Ignore => allowed.retain(|n| !named.contains(n)),
            ast::IndexHintKind::Use => used.get_or_insert_default().extend(named),
            ast::IndexHintKind::Force => {
                forced = true;
                used.get_or_insert_default().extend(named);
            }
        }
    }
    if let Some(used) = used {
        allowed.retain(|n| used.contains(n));
    }
    Ok((allowed, forced))
}

/// Parses `seq_1_to_10` and `seq_1_to_10_step_2`, which are series of integers.
fn series(name: &str) -> Option<Source> {
    let rest = name.to_ascii_lowercase();
    let (first, rest) = rest.strip_prefix("seq_")?.split_once("_to_")?;
    let (last, step) = rest.split_once("_step_").unwrap_or((rest, "1"));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok())?;
    let (first, last, step) = (digits(first)?, digits(last)?, digits(step)?);
    let step = i64::try_from(step).ok().filter(|step| *step > 0)?;
    Some(Source::Series { first, last, step: if first <= last { step } else { -step } })
}
