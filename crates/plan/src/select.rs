//! Binds one SELECT of the AST: items, GROUP BY, HAVING, ORDER BY, windows.

use std::cell::RefCell;

use cohort_expr::{Expr, ExprType, SortKey};
use cohort_protocol::ColumnMeta;
use cohort_sql::ast;
use cohort_types::{ErrorCode, Privilege, SqlError, SqlMode, SqlResult};

use crate::bind::{
    AliasOrder, Aliases, Binder, Clause, ParamSource, PlanContext, Relation, Scope, Windows, item_position,
    one_column, param_position, refuse_negative, same_name,
};
use crate::block::{Body, Collected, Group, Order, OrderBy, Query, Select};
use crate::common_tables::CommonTables;
use crate::conjuncts;
use crate::from::bind_from;
use crate::full_group::{self, Grouping};
use crate::meta::{column_meta, field_meta};
use crate::query::{bind_limit, check_ties};

/// A bound select item.
struct Item {
    name: String,
    expr: Expr,
    has_alias: bool,
}

/// State of a SELECT while it is bound.
struct SelectBinder<'s> {
    ctx: &'s PlanContext<'s>,
    scope: &'s Scope,
    with: &'s CommonTables<'s>,
    outer: Option<&'s Binder<'s>>,
    windows: Windows<'s>,
    items: Vec<Item>,
    group: Vec<Expr>,
    /// GROUP BY .. DESC, for each key.
    descending: Vec<bool>,
    aggregates: RefCell<Vec<Collected>>,
}

/// Binds a SELECT; `query` has the clauses around it.
pub(crate) fn bind_select(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    outer: Option<&Binder<'_>>,
    select: &ast::Select,
    query: &ast::Query,
) -> SqlResult<Query> {
    if select.with_rollup && !query.order_by.is_empty() {
        return Err(SqlError::wrong_usage("CUBE/ROLLUP", "ORDER BY"));
    }
    let block = ctx.new_block();
    let (from, scope) = bind_from(ctx, with, outer, select.from.as_ref())?;
    let mut binder = SelectBinder {
        ctx,
        scope: &scope,
        with,
        outer,
        windows: Windows::new(&select.windows)?,
        items: Vec::new(),
        group: Vec::new(),
        descending: Vec::new(),
        aggregates: RefCell::default(),
    };
    let mut conditions = Vec::new();
    if let Some(filter) = &select.filter {
        conditions = conjuncts::split(binder.binder(Clause::Where).condition(filter)?);
    }
    binder.bind_items(&select.items)?;
    binder.bind_group(&select.group_by, select.with_rollup)?;
    let having = select.having.as_ref().map(|h| binder.bind_having(h)).transpose()?;
    binder.refuse_windows(having.iter().chain(&binder.group))?;
    let mut order = binder.bind_order(&query.order_by)?;
    let in_key_order = query.order_by.is_empty();
    if in_key_order && !select.with_rollup && binder.descending.contains(&true) {
        order = binder.order_of_groups();
    }
    check_ties(query)?;
    let limit = bind_limit(ctx, query.limit.as_ref())?;
    let types: Vec<ExprType> = binder.items.iter().map(|i| i.expr.ty()).collect();
    let is_in_body = matches!(ctx.source, ParamSource::Variables(_));
    let meta = |(name, expr): (&str, &Expr)| match expr {
        // A variable of a program is described as a column of its type.
        Expr::Param(variable) if is_in_body => field_meta(name.to_owned(), &variable.ty),
        _ => column_meta(name, expr, &scope),
    };
    let columns: Vec<ColumnMeta> = binder.items.iter().map(|i| meta((&i.name, &i.expr))).collect();
    let aggregates = binder.aggregates.take();
    let explicit = !select.group_by.is_empty();
    if ctx.names.env().sql_mode.has(SqlMode::ONLY_FULL_GROUP_BY) && (explicit || !aggregates.is_empty()) {
        let by = |order: &Order| match &order.by {
            OrderBy::Item(_) => None,
            OrderBy::Expr(expr) => Some(expr.clone()),
        };
        let order: Vec<Expr> = order.iter().filter_map(by).collect();
        full_group::check(
            ctx,
            if explicit { Grouping::Explicit } else { Grouping::Implicit },
            &scope,
            &binder.group,
            binder.items.iter().map(|item| &item.expr),
            order.iter(),
        )?;
    }
    let group = (explicit || !aggregates.is_empty()).then(|| Group {
        first_key: ctx.new_columns(binder.group.len()),
        keys: std::mem::take(&mut binder.group),
        descending: std::mem::take(&mut binder.descending),
        explicit,
        rollup: select.with_rollup,
        in_key_order: in_key_order && order.is_empty(),
        aggregates,
    });
    let is_plain = group.is_none() && !select.options.distinct && outer.is_none();
    if query.order_by.is_empty() && is_plain {
        order.extend(by_relevance(&conditions));
    }
    let bound = Select {
        block,
        from,
        conditions,
        group,
        having,
        windows: binder.windows.found.take(),
        items: binder.items.into_iter().map(|i| i.expr).collect(),
        distinct: select.options.distinct,
        assigned: Vec::new(),
        straight_join: select.options.straight_join,
    };
    let mut bound = Query::new(ctx, Body::Select(Box::new(bound)), columns, types);
    (bound.order, bound.limit, bound.locking) = (order, limit, query.locking);
    bound.count_all = select.options.calc_found_rows;
    Ok(bound)
}

/// Returns the name that NAME_CONST assigns.
fn named_by(args: &[ast::Expr]) -> Option<String> {
    match args.first() {
        Some(ast::Expr::Literal(name)) if !name.value.is_null() => Some(name.value.to_text()),
        _ => None,
    }
}

/// Returns the order of rows found by MATCH: by relevance, if no other order is requested.
fn by_relevance(conditions: &[Expr]) -> Option<Order> {
    let search = conditions.iter().find(|condition| condition.match_source().is_some())?;
    let key = SortKey { collation: search.ty().collation, descending: true };
    Some(Order { by: OrderBy::Expr(search.clone()), key })
}

impl SelectBinder<'_> {
    fn binder(&self, clause: Clause) -> Binder<'_> {
        let may_aggregate = !matches!(clause, Clause::Where | Clause::GroupBy);
        Binder {
            aggregates: may_aggregate.then_some(&self.aggregates),
            with: Some(self.with),
            outer: self.outer,
            subqueries_allowed: true,
            windows: matches!(clause, Clause::Select | Clause::OrderBy).then_some(&self.windows),
            ..Binder::new(self.ctx, self.scope, clause)
        }
    }

    fn bind_items(&mut self, items: &[ast::SelectItem]) -> SqlResult<()> {
        for (n, item) in items.iter().enumerate() {
            match item {
                ast::SelectItem::Wildcard if self.scope.tables.is_empty() => {
                    return Err(SqlError::no_tables_used());
                }
                ast::SelectItem::Wildcard => self.push_star(item, self.scope.star.clone())?,
                ast::SelectItem::TableWildcard(name) => {
                    let current = self.ctx.names.current_schema();
                    self.push_star(item, self.scope.table_star_slots(name, current)?)?;
                }
                ast::SelectItem::Expr { expr, alias, text } => {
                    let bound = {
                        let earlier = EarlierItems { binder: self, later: &items[n..] };
                        let binder = self.binder(Clause::Select);
                        Binder { aliases_within: Some(&earlier), ..binder }.expression(expr)?
                    };
                    let bound = one_column(bound)?;
                    let name = match (alias, expr) {
                        (Some(alias), _) => alias.clone(),
                        (None, ast::Expr::Column(column)) => {
                            self.merged_name(&bound).unwrap_or_else(|| column.name.clone())
                        }
                        (None, ast::Expr::Function { name, args }) if name == "name_const" => {
                            named_by(args).unwrap_or_else(|| text.clone())
                        }
                        (None, _) => text.clone(),
                    };
                    self.items.push(Item { name, expr: bound, has_alias: alias.is_some() });
                }
            }
        }
        Ok(())
    }

    /// Returns the name that a merged view or derived table gives to a column. As in MariaDB, this is the
    /// name of the result column.
    fn merged_name(&self, expr: &Expr) -> Option<String> {
        let Expr::Column(column) = expr else { return None };
        let slot = Some(column.ordinal).filter(|slot| self.scope.holds(*slot))?;
        let table = &self.scope.tables[self.scope.table_of(slot)];
        let is_part = match &table.relation {
            Relation::Virtual(found) => found.is_view(),
            _ => table.merged.is_some(),
        };
        is_part.then(|| self.scope.slot(slot).name.to_string())
    }

    fn push_star(&mut self, item: &ast::SelectItem, slots: Vec<usize>) -> SqlResult<()> {
        self.ctx.note(|meanings| meanings.note_star(item, self.scope, &slots));
        for slot in slots {
            let name = self.scope.slot(slot).name.to_string();
            self.ctx.use_unnamed(self.scope, slot, Privilege::Select)?;
            let expr = self.scope.column_expr(slot);
            self.items.push(Item { name, expr, has_alias: false });
        }
        Ok(())
    }

    /// Returns the select item that an unqualified name refers to. Error 1052 if it matches several different
    /// ones.
    fn item_named(&self, name: &ast::ColumnRef, clause: Clause) -> SqlResult<Option<usize>> {
        if name.table.is_some() {
            return Ok(None);
        }
        let mut found: Option<usize> = None;
        for (n, item) in self.items.iter().enumerate().filter(|(_, i)| same_name(&i.name, &name.name)) {
            match found {
                Some(before) if self.items[before].expr != item.expr => {
                    let other = &self.items[before];
                    let are_columns = [&other.expr, &item.expr].iter().all(|e| matches!(e, Expr::Column(_)));
                    // The alias of an expression takes precedence over a column with the same name.
                    match (other.has_alias, item.has_alias) {
                        (true, false) if !are_columns => {}
                        (false, true) if !are_columns => found = Some(n),
                        _ => {
                            return Err(SqlError::ambiguous_column(&name.name, clause.text()));
                        }
                    }
                }
                Some(_) => {}
                None => found = Some(n),
            }
        }
        Ok(found)
    }

    /// Returns the order of GROUP BY a DESC without ORDER BY.
    fn order_of_groups(&self) -> Vec<Order> {
        let keys = self.group.iter().zip(&self.descending);
        keys.map(|(key, descending)| {
            let key_order = SortKey { collation: key.ty().collation, descending: *descending };
            Order { by: OrderBy::Expr(key.clone()), key: key_order }
        })
        .collect()
    }

    fn bind_group(&mut self, group_by: &[ast::OrderItem], rollup: bool) -> SqlResult<()> {
        for item in group_by {
            refuse_negative(&item.expr, Clause::GroupBy)?;
            let expr = match &item.expr {
                ast::Expr::Literal(literal) => {
                    match item_position(self.ctx, literal, self.items.len(), Clause::GroupBy)? {
                        Some(n) => self.items[n].expr.clone(),
                        // With ROLLUP, a constant adds no groups but a summary row.
                        None if rollup => self.binder(Clause::GroupBy).expression(&item.expr)?,
                        None => continue,
                    }
                }
                ast::Expr::Param(n) => {
                    match param_position(self.ctx, *n, self.items.len(), Clause::GroupBy)? {
                        Some(n) => self.items[n].expr.clone(),
                        None => continue,
                    }
                }
                ast::Expr::Column(name) => self.group_column(name, &item.expr)?,
                other => {
                    let aliases = ItemAliases { binder: self, clause: Clause::GroupBy };
                    let inner = self.binder(Clause::GroupBy);
                    Binder { aliases: Some(&aliases), ..inner }.expression(other)?
                }
            };
            if self.binder(Clause::Select).reads_aggregate(&expr) {
                let named = self.items.iter().find(|item| item.expr == expr).map_or("?", |item| &item.name);
                return Err(SqlError::wrong_group_field(named));
            }
            self.group.push(expr);
            self.descending.push(item.descending);
        }
        Ok(())
    }

    /// Returns error 4015 for expressions that refer to a window function by name.
    fn refuse_windows<'e>(&self, exprs: impl Iterator<Item = &'e Expr>) -> SqlResult<()> {
        let found = self.windows.found.borrow();
        let reads = |expr: &Expr| expr.columns().iter().any(|c| found.iter().any(|w| w.column == *c));
        for expr in exprs {
            if reads(expr) {
                return Err(SqlError::window_function_misplaced());
            }
        }
        Ok(())
    }

    /// Binds a name in GROUP BY. A column of the tables takes precedence over an alias.
    fn group_column(&self, name: &ast::ColumnRef, whole: &ast::Expr) -> SqlResult<Expr> {
        let item = self.item_named(name, Clause::GroupBy)?;
        match (self.scope.find(name, Clause::GroupBy), item) {
            (Ok(Some(slot)), Some(n)) => {
                self.ctx.note(|meanings| meanings.note_column(name, self.scope, slot));
                let column = self.ctx.read_column(self.scope, slot)?;
                if self.items[n].expr != column {
                    let text = format!("Column '{}' in GROUP BY is ambiguous", name.name);
                    self.ctx.names.warn(ErrorCode::NonUniq, text);
                }
                Ok(column)
            }
            (Ok(Some(slot)), None) => {
                self.ctx.note(|meanings| meanings.note_column(name, self.scope, slot));
                self.ctx.read_column(self.scope, slot)
            }
            (Ok(None) | Err(_), Some(n)) => Ok(self.items[n].expr.clone()),
            // A column of an outer query.
            (Ok(None), None) => self.binder(Clause::GroupBy).expression(whole),
            (Err(error), None) => Err(error),
        }
    }

    /// Returns the GROUP BY column with this name.
    fn group_column_named(&self, name: &ast::ColumnRef) -> Option<&Expr> {
        self.group.iter().find(|key| match key {
            Expr::Column(column) if self.scope.holds(column.ordinal) => {
                self.scope.is_named(column.ordinal, name)
            }
            _ => false,
        })
    }

    fn bind_having(&self, having: &ast::Expr) -> SqlResult<Expr> {
        let aliases = HavingNames { binder: self };
        let inner = self.binder(Clause::Having);
        Binder { aliases: Some(&aliases), tables_visible: false, ..inner }.condition(having)
    }

    fn bind_order(&self, order_by: &[ast::OrderItem]) -> SqlResult<Vec<Order>> {
        let mut sort = Vec::new();
        for item in order_by {
            let Some(value) = self.order_value(&item.expr)? else { continue };
            let collation = match &value {
                OrderBy::Item(n) => self.items[*n].expr.ty().collation,
                OrderBy::Expr(expr) => expr.ty().collation,
            };
            sort.push(Order { by: value, key: SortKey { collation, descending: item.descending } });
        }
        Ok(sort)
    }

    /// Binds an ORDER BY expression. Returns `None` for a constant, which does not affect the order.
    fn order_value(&self, expr: &ast::Expr) -> SqlResult<Option<OrderBy>> {
        refuse_negative(expr, Clause::OrderBy)?;
        match expr {
            ast::Expr::Literal(literal) => {
                let found = item_position(self.ctx, literal, self.items.len(), Clause::OrderBy)?;
                return Ok(found.map(OrderBy::Item));
            }
            ast::Expr::Param(n) => {
                let found = param_position(self.ctx, *n, self.items.len(), Clause::OrderBy)?;
                return Ok(found.map(OrderBy::Item));
            }
            ast::Expr::Column(name) => {
                if let Some(n) = self.item_named(name, Clause::OrderBy)? {
                    if let Expr::Column(column) = &self.items[n].expr
                        && self.scope.holds(column.ordinal)
                    {
                        self.ctx.note(|meanings| meanings.note_column(name, self.scope, column.ordinal));
                    }
                    return Ok(Some(OrderBy::Item(n)));
                }
            }
            _ => {}
        }
        let aliases = ItemAliases { binder: self, clause: Clause::OrderBy };
        let inner = self.binder(Clause::OrderBy);
        let bound = Binder { aliases: Some(&aliases), ..inner }.expression(expr)?;
        if bound.is_const_per_execution() && !bound.calls_back() {
            return Ok(None);
        }
        let item = self.items.iter().position(|i| i.expr == bound);
        Ok(Some(item.map_or(OrderBy::Expr(bound), OrderBy::Item)))
    }
}
/// Select items as names in expressions of ORDER BY and GROUP BY, after the tables.
struct ItemAliases<'a> {
    binder: &'a SelectBinder<'a>,
    clause: Clause,
}

impl Aliases for ItemAliases<'_> {
    fn find(&self, name: &ast::ColumnRef, order: AliasOrder) -> SqlResult<Option<Expr>> {
        if order == AliasOrder::BeforeTables {
            return Ok(None);
        }
        let found = self.binder.item_named(name, self.clause)?;
        Ok(found.map(|n| self.binder.items[n].expr.clone()))
    }
}

/// Select items as names in subqueries of later items. Volatile items are excluded, because they would be
/// evaluated again.
struct EarlierItems<'a> {
    binder: &'a SelectBinder<'a>,
    /// The item being bound, and those after it.
    later: &'a [ast::SelectItem],
}

impl Aliases for EarlierItems<'_> {
    fn find(&self, name: &ast::ColumnRef, _: AliasOrder) -> SqlResult<Option<Expr>> {
        if name.table.is_some() {
            return Ok(None);
        }
        let is_meant = |item: &&Item| item.has_alias && same_name(&item.name, &name.name);
        if let Some(item) = self.binder.items.iter().find(is_meant) {
            let item = &item.expr;
            let aggregates = self.binder.aggregates.borrow();
            let reads_group =
                item.columns().iter().any(|c| aggregates.iter().any(|known| known.column == *c));
            if reads_group {
                return Err(SqlError::illegal_reference(&name.name, "reference to group function"));
            }
            return Ok((!item.is_volatile()).then(|| item.clone()));
        }
        let is_it = |item: &ast::SelectItem| match item {
            ast::SelectItem::Expr { alias: Some(alias), .. } => same_name(alias, &name.name),
            _ => false,
        };
        if self.later.iter().any(is_it) {
            return Err(SqlError::illegal_reference(&name.name, "forward reference in item list"));
        }
        Ok(None)
    }
}

/// Names in HAVING: the columns of GROUP BY, then select items.
struct HavingNames<'a> {
    binder: &'a SelectBinder<'a>,
}

impl HavingNames<'_> {
    /// Returns true if a column is in GROUP BY or is a select item.
    fn is_known(&self, column: &Expr) -> bool {
        let mut known = self.binder.group.iter().chain(self.binder.items.iter().map(|i| &i.expr));
        known.any(|expr| expr == column)
    }
}

impl Aliases for HavingNames<'_> {
    fn find(&self, name: &ast::ColumnRef, order: AliasOrder) -> SqlResult<Option<Expr>> {
        if order == AliasOrder::AfterTables {
            return Ok(None);
        }
        let item = self.binder.item_named(name, Clause::Having)?.map(|n| &self.binder.items[n].expr);
        if let Some(column) = self.binder.group_column_named(name) {
            if item.is_some_and(|item| item != column) {
                let text = format!("Column '{}' in HAVING is ambiguous", name.name);
                self.binder.ctx.names.warn(ErrorCode::NonUniq, text);
            }
            return Ok(Some(column.clone()));
        }
        if let Some(item) = item {
            return Ok(Some(item.clone()));
        }
        let Some(slot) = self.binder.scope.find(name, Clause::Having)? else { return Ok(None) };
        let column = self.binder.scope.column_expr(slot);
        Ok(self.is_known(&column).then_some(column))
    }

    fn admits(&self, column: &Expr) -> bool {
        let is_grouped = !self.binder.group.is_empty() || !self.binder.aggregates.borrow().is_empty();
        !is_grouped || self.is_known(column)
    }
}
