//! Queries of the AST to plans.

use std::cell::RefCell;

use cohort_expr::{Aggregate, Expr, ExprType, SortKey, TypeClass, union_type};
use cohort_protocol::ColumnMeta;
use cohort_sql::ast;
use cohort_types::{Collation, ErrorCode, Privilege, SqlError, SqlResult, TypeKind, Value};

use crate::bind::{
    AGGREGATE_SLOT, AliasOrder, Aliases, Binder, Clause, PlanContext, Scope, item_position, not_supported,
    one_column, same_name,
};
use crate::plan::access::WantedOrder;
use crate::plan::conjuncts;
use crate::plan::from::{From, bind_from};
use crate::plan::join::{JoinInput, plan_join};
use crate::plan::meta::{column_meta, expression_meta, field_meta};
use crate::plan::query::{
    GroupPlan, LimitPlan, PlanBody, QueryPlan, SelectPlan, SetPlan, SortItem, SortValue,
};
use crate::plan::with::CommonTables;
use crate::table::ReadMode;
use crate::trx::WaitPolicy;

/// Binds and plans a query.
pub(super) fn plan_query(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    query: &ast::Query,
) -> SqlResult<QueryPlan> {
    ctx.enter()?;
    let with = with.with(query.with.as_ref())?;
    let mut plan = match &query.body {
        ast::QueryBody::Select(select) => plan_select(ctx, &with, select, query)?,
        body => {
            if query.locking.is_some() {
                return Err(not_supported("FOR UPDATE of a set operation"));
            }
            let mut plan = plan_body(ctx, &with, body)?;
            plan.sort = sort_over_result(ctx, &plan, &query.order_by)?;
            if !plan.sort.is_empty() {
                plan = plan.kept_in_table();
            }
            plan.limit = plan_limit(ctx, query.limit.as_ref())?;
            plan
        }
    };
    plan.into = query.into.clone();
    if !plan.into.is_empty() && plan.into.len() != plan.columns.len() {
        let text = "The used SELECT statements have a different number of columns";
        return Err(SqlError::new(ErrorCode::WrongNumberOfColumnsInSelect, text));
    }
    Ok(plan)
}

/// The part of a query without ORDER BY and LIMIT.
fn plan_body(ctx: &PlanContext<'_>, with: &CommonTables<'_>, body: &ast::QueryBody) -> SqlResult<QueryPlan> {
    ctx.enter()?;
    match body {
        ast::QueryBody::Select(select) => {
            let bare = ast::Query {
                with: None,
                body: ast::QueryBody::Values(Vec::new()),
                order_by: Vec::new(),
                limit: None,
                locking: None,
                into: Vec::new(),
            };
            plan_select(ctx, with, select, &bare)
        }
        ast::QueryBody::Nested(query) => {
            let inner = plan_query(ctx, with, query)?;
            let (columns, types) = (inner.columns.clone(), inner.types.clone());
            Ok(QueryPlan::unsorted(PlanBody::Nested(Box::new(inner)), columns, types))
        }
        ast::QueryBody::SetOperation { op, first, rest } => plan_set_operation(ctx, with, *op, first, rest),
        ast::QueryBody::Values(rows) => plan_values(ctx, rows),
    }
}

fn plan_set_operation(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    op: ast::SetOperator,
    first: &ast::QueryBody,
    rest: &[ast::SetOperand],
) -> SqlResult<QueryPlan> {
    if op != ast::SetOperator::Union && rest.iter().any(|operand| operand.all) {
        return Err(not_supported("EXCEPT ALL, INTERSECT ALL"));
    }
    let mut operands = vec![plan_body(ctx, with, first)?];
    for operand in rest {
        let plan = plan_body(ctx, with, &operand.body)?;
        if plan.types.len() != operands[0].types.len() {
            let text = "The used SELECT statements have a different number of columns";
            return Err(SqlError::new(ErrorCode::WrongNumberOfColumnsInSelect, text));
        }
        operands.push(plan);
    }
    let of_all = |n| {
        union_type(&operands.iter().map(|operand| operand.item(n)).collect::<Vec<Expr>>(), &ctx.session.env)
    };
    let types = (0..operands[0].types.len()).map(of_all).collect::<SqlResult<Vec<ExprType>>>()?;
    let names = operands[0].columns.iter().map(|c| c.name.clone());
    let columns = names.zip(&types).map(|(name, ty)| expression_meta(name, ty)).collect();
    let collations = types.iter().map(|t| t.collation).collect();
    let distinct = match op {
        ast::SetOperator::Union => rest.iter().rposition(|operand| !operand.all).map_or(0, |n| n + 2),
        _ => operands.len(),
    };
    let plan = SetPlan { op, operands, distinct, collations };
    let plan = QueryPlan::unsorted(PlanBody::Set(Box::new(plan)), columns, types);
    Ok(if distinct > 0 { plan.kept_in_table() } else { plan })
}

fn plan_values(ctx: &PlanContext<'_>, rows: &[Vec<ast::Expr>]) -> SqlResult<QueryPlan> {
    let scope = Scope::default();
    let binder = Binder::new(ctx, &scope, Clause::Select);
    let mut bound: Vec<Vec<Expr>> = Vec::new();
    for row in rows {
        bound.push(row.iter().map(|e| binder.expression(e)).collect::<SqlResult<_>>()?);
    }
    let first = bound.first().map_or(0, Vec::len);
    if bound.iter().any(|row| row.len() != first) {
        let text = "The used table value constructor has a different number of values";
        return Err(SqlError::new(ErrorCode::WrongNumberOfValuesInTvc, text));
    }
    let column = |n: usize| bound.iter().map(|row| row[n].clone()).collect::<Vec<Expr>>();
    let types = (0..first).map(|n| union_type(&column(n), &ctx.session.env));
    let types = types.collect::<SqlResult<Vec<ExprType>>>()?;
    let names = rows.first().into_iter().flatten().map(|e| match e {
        ast::Expr::Literal(literal) => literal.value.to_text(),
        _ => "expr".to_owned(),
    });
    let columns = names.zip(&types).map(|(name, ty)| field_meta(name, ty)).collect();
    Ok(QueryPlan::unsorted(PlanBody::Values(bound), columns, types))
}

/// ORDER BY behind a set operation: names and numbers of result columns.
fn sort_over_result(
    ctx: &PlanContext<'_>,
    plan: &QueryPlan,
    order_by: &[ast::OrderItem],
) -> SqlResult<Vec<SortItem>> {
    let mut sort = Vec::new();
    for item in order_by {
        let n = match &item.expr {
            ast::Expr::Column(name) if name.table.is_none() => {
                let found = plan.columns.iter().position(|c| same_name(&c.name, &name.name));
                found.ok_or_else(|| crate::bind::unknown_column(name, Clause::OrderBy))?
            }
            ast::Expr::Literal(literal) => item_position(ctx, literal, plan.columns.len(), Clause::OrderBy)?
                .ok_or_else(|| not_supported("ORDER BY a constant of a set operation"))?,
            _ => return Err(not_supported("ORDER BY an expression of a set operation")),
        };
        let key = SortKey { collation: plan.types[n].collation, descending: item.descending };
        sort.push(SortItem { value: SortValue::Item(n), key });
    }
    Ok(sort)
}

/// LIMIT and OFFSET.
pub(super) fn plan_limit(ctx: &PlanContext<'_>, limit: Option<&ast::Limit>) -> SqlResult<LimitPlan> {
    let Some(limit) = limit else { return Ok(LimitPlan::default()) };
    let scope = Scope::default();
    let binder = Binder::new(ctx, &scope, Clause::Select);
    let offset = limit.offset.as_ref().map(|e| binder.limit(e)).transpose()?;
    Ok(LimitPlan { count: Some(binder.limit(&limit.count)?), offset })
}

impl QueryPlan {
    /// The same, with the metadata of columns of a table that holds the rows before they are sent.
    fn kept_in_table(mut self) -> QueryPlan {
        for (column, ty) in self.columns.iter_mut().zip(&self.types) {
            let name = column.name.clone();
            *column = ColumnMeta { org_name: name.clone(), ..field_meta(name, ty) };
        }
        self
    }

    /// Column n of the result: a constant as such, since its digits count; of anything else only the type.
    fn item(&self, n: usize) -> Expr {
        match &self.body {
            PlanBody::Select(select) if matches!(select.items[n], Expr::Const(_)) => select.items[n].clone(),
            _ => Expr::column(n, self.types[n].clone(), ""),
        }
    }

    fn unsorted(body: PlanBody, columns: Vec<ColumnMeta>, types: Vec<ExprType>) -> QueryPlan {
        QueryPlan { body, sort: Vec::new(), limit: LimitPlan::default(), columns, types, into: Vec::new() }
    }
}

/// A select item, bound.
struct Item {
    name: String,
    expr: Expr,
    has_alias: bool,
}

/// Everything of one SELECT while it is being planned.
struct SelectBinder<'s> {
    ctx: &'s PlanContext<'s>,
    scope: &'s Scope,
    items: Vec<Item>,
    group: Vec<Expr>,
    aggregates: RefCell<Vec<Aggregate>>,
}

fn plan_select(
    ctx: &PlanContext<'_>,
    with: &CommonTables<'_>,
    select: &ast::Select,
    query: &ast::Query,
) -> SqlResult<QueryPlan> {
    if select.with_rollup {
        return Err(not_supported("WITH ROLLUP"));
    }
    let mut from = bind_from(ctx, with, select.from.as_ref())?;
    let scope = std::mem::take(&mut from.scope);
    let mut conditions = std::mem::take(&mut from.conditions);
    if let Some(filter) = &select.filter {
        conditions.extend(conjuncts::split(Binder::new(ctx, &scope, Clause::Where).condition(filter)?));
    }
    let mut binder = SelectBinder {
        ctx,
        scope: &scope,
        items: Vec::new(),
        group: Vec::new(),
        aggregates: RefCell::default(),
    };
    binder.bind_items(&select.items)?;
    binder.bind_group(&select.group_by)?;
    let having = select.having.as_ref().map(|h| binder.bind_having(h)).transpose()?;
    let sort = binder.bind_order(&query.order_by)?;
    let limit = plan_limit(ctx, query.limit.as_ref())?;
    binder.finish(from, conditions, having, sort, limit, select, query)
}

impl SelectBinder<'_> {
    fn binder(&self, clause: Clause) -> Binder<'_> {
        Binder { aggregates: Some(&self.aggregates), ..Binder::new(self.ctx, self.scope, clause) }
    }

    fn bind_items(&mut self, items: &[ast::SelectItem]) -> SqlResult<()> {
        for item in items {
            match item {
                ast::SelectItem::Wildcard if self.scope.tables.is_empty() => {
                    return Err(SqlError::new(ErrorCode::NoTablesUsed, "No tables used"));
                }
                ast::SelectItem::Wildcard => self.push_slots(self.scope.star.clone())?,
                ast::SelectItem::TableWildcard(name) => {
                    let current = self.ctx.session.current_schema.as_deref();
                    self.push_slots(self.scope.table_star_slots(name, current)?)?;
                }
                ast::SelectItem::Expr { expr, alias, text } => {
                    let bound = one_column(self.binder(Clause::Select).expression(expr)?)?;
                    let name = match (alias, expr) {
                        (Some(alias), _) => alias.clone(),
                        (None, ast::Expr::Column(column)) => column.name.clone(),
                        (None, _) => text.clone(),
                    };
                    self.items.push(Item { name, expr: bound, has_alias: alias.is_some() });
                }
            }
        }
        Ok(())
    }

    fn push_slots(&mut self, slots: Vec<usize>) -> SqlResult<()> {
        for slot in slots {
            let name = self.scope.slot(slot).name.to_string();
            self.ctx.use_unnamed(self.scope, slot, Privilege::Select)?;
            let expr = self.scope.column_expr(slot);
            self.items.push(Item { name, expr, has_alias: false });
        }
        Ok(())
    }

    /// The select item that a bare name means; error 1052 when several different ones.
    fn item_named(&self, name: &ast::ColumnRef, clause: Clause) -> SqlResult<Option<usize>> {
        if name.table.is_some() {
            return Ok(None);
        }
        let mut found: Option<usize> = None;
        for (n, item) in self.items.iter().enumerate().filter(|(_, i)| same_name(&i.name, &name.name)) {
            match found {
                Some(before) if self.items[before].expr != item.expr => {
                    // An alias is meant before a column of the same name.
                    match (self.items[before].has_alias, item.has_alias) {
                        (true, false) => {}
                        (false, true) => found = Some(n),
                        _ => {
                            let text = format!("Column '{}' in {} is ambiguous", name.name, clause.text());
                            return Err(SqlError::new(ErrorCode::NonUniq, text));
                        }
                    }
                }
                Some(_) => {}
                None => found = Some(n),
            }
        }
        Ok(found)
    }

    fn bind_group(&mut self, group_by: &[ast::OrderItem]) -> SqlResult<()> {
        for item in group_by {
            let expr = match &item.expr {
                ast::Expr::Literal(literal) => {
                    match item_position(self.ctx, literal, self.items.len(), Clause::GroupBy)? {
                        Some(n) => self.items[n].expr.clone(),
                        None => continue,
                    }
                }
                ast::Expr::Column(name) => self.group_column(name)?,
                other => {
                    let aliases = ItemAliases { binder: self, clause: Clause::GroupBy };
                    let inner = Binder::new(self.ctx, self.scope, Clause::GroupBy);
                    Binder { aliases: Some(&aliases), ..inner }.expression(other)?
                }
            };
            if reads_aggregate(&expr) {
                return Err(SqlError::new(ErrorCode::InvalidGroupFuncUse, "Invalid use of group function"));
            }
            self.group.push(expr);
        }
        Ok(())
    }

    /// A column of the tables comes before an alias in GROUP BY.
    fn group_column(&self, name: &ast::ColumnRef) -> SqlResult<Expr> {
        let item = self.item_named(name, Clause::GroupBy)?;
        match (self.scope.find(name, Clause::GroupBy), item) {
            (Ok(Some(slot)), Some(n)) => {
                let column = self.ctx.read_column(self.scope, slot)?;
                if self.items[n].expr != column {
                    let text = format!("Column '{}' in GROUP BY is ambiguous", name.name);
                    self.ctx.session.warn_planning(ErrorCode::NonUniq, text);
                }
                Ok(column)
            }
            (Ok(Some(slot)), None) => self.ctx.read_column(self.scope, slot),
            (Ok(None) | Err(_), Some(n)) => Ok(self.items[n].expr.clone()),
            (Ok(None), None) => Err(crate::bind::unknown_column(name, Clause::GroupBy)),
            (Err(error), None) => Err(error),
        }
    }

    /// The column that GROUP BY names so.
    fn group_column_named(&self, name: &ast::ColumnRef) -> Option<&Expr> {
        self.group.iter().find(|key| match key {
            Expr::Column(column) => self.scope.is_named(column.ordinal, name),
            _ => false,
        })
    }

    fn bind_having(&self, having: &ast::Expr) -> SqlResult<Expr> {
        let aliases = HavingNames { binder: self };
        let inner = self.binder(Clause::Having);
        Binder { aliases: Some(&aliases), tables_visible: false, ..inner }.condition(having)
    }

    fn bind_order(&self, order_by: &[ast::OrderItem]) -> SqlResult<Vec<SortItem>> {
        let mut sort = Vec::new();
        for item in order_by {
            let Some(value) = self.order_value(&item.expr)? else { continue };
            let collation = match &value {
                SortValue::Item(n) => self.items[*n].expr.ty().collation,
                SortValue::Expr(expr) => expr.ty().collation,
            };
            sort.push(SortItem { value, key: SortKey { collation, descending: item.descending } });
        }
        Ok(sort)
    }

    /// None: a constant, which orders nothing.
    fn order_value(&self, expr: &ast::Expr) -> SqlResult<Option<SortValue>> {
        match expr {
            ast::Expr::Literal(literal) => {
                let found = item_position(self.ctx, literal, self.items.len(), Clause::OrderBy)?;
                return Ok(found.map(SortValue::Item));
            }
            ast::Expr::Column(name) => {
                if let Some(n) = self.item_named(name, Clause::OrderBy)? {
                    return Ok(Some(SortValue::Item(n)));
                }
            }
            _ => {}
        }
        let aliases = ItemAliases { binder: self, clause: Clause::OrderBy };
        let inner = self.binder(Clause::OrderBy);
        let bound = Binder { aliases: Some(&aliases), ..inner }.expression(expr)?;
        if bound.is_const_per_execution() {
            return Ok(None);
        }
        let item = self.items.iter().position(|i| i.expr == bound);
        Ok(Some(item.map_or(SortValue::Expr(bound), SortValue::Item)))
    }

    #[allow(clippy::too_many_arguments)]
    fn finish(
        self,
        mut from: From,
        conditions: Vec<Expr>,
        having: Option<Expr>,
        mut sort: Vec<SortItem>,
        limit: LimitPlan,
        select: &ast::Select,
        query: &ast::Query,
    ) -> SqlResult<QueryPlan> {
        let width = self.scope.width();
        let aggregates = self.aggregates.into_inner();
        let grouped = !select.group_by.is_empty() || !aggregates.is_empty();
        let place = |e: Expr| {
            e.map_columns(&mut |s| if s >= AGGREGATE_SLOT { width + s - AGGREGATE_SLOT } else { s })
        };
        let types: Vec<ExprType> = self.items.iter().map(|i| i.expr.ty()).collect();
        let columns =
            self.items.iter().map(|i| column_meta(&i.name, &i.expr, self.scope)).collect::<Vec<ColumnMeta>>();
        let items: Vec<Expr> = self.items.into_iter().map(|i| place(i.expr)).collect();
        let having = having.map(place);
        for item in &mut sort {
            if let SortValue::Expr(expr) = &mut item.value {
                *expr = place(std::mem::replace(expr, Expr::null()));
            }
        }
        let read = read_mode(query.locking)?;
        let group = grouped.then(|| GroupPlan {
            sort_by_key: query.order_by.is_empty(),
            keys: self.group.into_iter().map(|e| (e.ty().collation, e)).map(|(c, e)| (e, c)).collect(),
            aggregates,
            explicit: !select.group_by.is_empty(),
        });
        let wanted = if grouped {
            WantedOrder::default()
        } else {
            wanted_order(&from, &items, &sort, &limit, select.options.distinct)
        };
        let mut needed = vec![false; width];
        note_columns(&mut needed, &items, &having, &sort, &group);
        let input = JoinInput {
            ctx: self.ctx,
            scope: self.scope,
            tables: std::mem::take(&mut from.tables),
            derived: std::mem::take(&mut from.derived),
            conditions,
            wanted,
            needed,
            keep_order: select.options.straight_join,
            locking: read != ReadMode::Snapshot,
        };
        let join = plan_join(input)?;
        if join.ordered {
            sort.clear();
        }
        let items_move = group.is_none() && all_movable(&items);
        let body = SelectPlan {
            steps: join.steps,
            width,
            constant_filter: join.constant_filter,
            group,
            having,
            items,
            items_move,
            distinct: select.options.distinct,
            sort,
            read,
            count_all: select.options.calc_found_rows,
        };
        let mut plan = QueryPlan::unsorted(PlanBody::Select(Box::new(body)), columns, types);
        plan.limit = limit;
        Ok(plan)
    }
}

fn reads_aggregate(expr: &Expr) -> bool {
    expr.columns().last().is_some_and(|slot| *slot >= AGGREGATE_SLOT)
}

fn all_movable(items: &[Expr]) -> bool {
    let mut seen = Vec::new();
    items.iter().all(|item| match item {
        Expr::Column(c) if c.ty.kind != TypeKind::Timestamp && !seen.contains(&c.ordinal) => {
            seen.push(c.ordinal);
            true
        }
        _ => false,
    })
}

fn note_columns(
    needed: &mut [bool],
    items: &[Expr],
    having: &Option<Expr>,
    sort: &[SortItem],
    group: &Option<GroupPlan>,
) {
    let mut note = |e: &Expr| {
        for slot in e.columns() {
            if let Some(needed) = needed.get_mut(slot) {
                *needed = true;
            }
        }
    };
    items.iter().chain(having).for_each(&mut note);
    for item in sort {
        if let SortValue::Expr(expr) = &item.value {
            note(expr);
        }
    }
    if let Some(group) = group {
        group.keys.iter().for_each(|(e, _)| note(e));
        for aggregate in &group.aggregates {
            aggregate.args.iter().for_each(&mut note);
            aggregate.options.order.iter().for_each(|key| note(&key.expr));
        }
    }
}

/// The order that would save the sort, if it is one of columns of a single base table in one direction.
fn wanted_order(
    from: &From,
    items: &[Expr],
    sort: &[SortItem],
    limit: &LimitPlan,
    distinct: bool,
) -> WantedOrder {
    let mut wanted = WantedOrder::default();
    let constant = |e: &Option<Expr>| match e {
        Some(Expr::Const(c)) => match c.value {
            Value::Int(n) => u64::try_from(n).ok(),
            Value::UInt(n) => Some(n),
            _ => None,
        },
        _ => None,
    };
    // A limit that becomes known later is most often a small page.
    let assumed = limit.count.as_ref().map(|_| 100);
    if !distinct {
        wanted.limit = constant(&limit.count).or(assumed);
    }
    if from.tables.len() != 1 {
        return wanted;
    }
    for item in sort {
        let expr = match &item.value {
            SortValue::Item(n) => &items[*n],
            SortValue::Expr(expr) => expr,
        };
        let Expr::Column(column) = expr else { return WantedOrder { columns: Vec::new(), ..wanted } };
        if wanted.columns.is_empty() {
            wanted.descending = item.key.descending;
        } else if wanted.descending != item.key.descending {
            return WantedOrder { columns: Vec::new(), ..wanted };
        }
        wanted.columns.push(column.ordinal);
    }
    wanted
}

fn read_mode(locking: Option<ast::Locking>) -> SqlResult<ReadMode> {
    let Some(locking) = locking else { return Ok(ReadMode::Snapshot) };
    let wait = match locking.wait {
        ast::LockWait::Default => WaitPolicy::Wait,
        ast::LockWait::NoWait | ast::LockWait::Seconds(0) => WaitPolicy::NoWait,
        ast::LockWait::SkipLocked => WaitPolicy::SkipLocked,
        ast::LockWait::Seconds(_) => return Err(not_supported("WAIT n")),
    };
    Ok(match locking.strength {
        ast::LockStrength::Share => ReadMode::LockShare(wait),
        ast::LockStrength::Update => ReadMode::LockExclusive(wait),
    })
}

/// Select items as names inside expressions of ORDER BY and GROUP BY, after the tables.
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

/// What HAVING may name: the columns of GROUP BY, then select items.
struct HavingNames<'a> {
    binder: &'a SelectBinder<'a>,
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
                self.binder.ctx.session.warn_planning(ErrorCode::NonUniq, text);
            }
            return Ok(Some(column.clone()));
        }
        if let Some(item) = item {
            return Ok(Some(item.clone()));
        }
        let Some(slot) = self.binder.scope.find(name, Clause::Having)? else { return Ok(None) };
        let column = self.binder.scope.column_expr(slot);
        let mut known = self.binder.group.iter().chain(self.binder.items.iter().map(|i| &i.expr));
        Ok(known.any(|e| *e == column).then_some(column))
    }
}

/// Converts a value to the class of a result column, decimals to its number of digits.
pub(crate) fn to_common_class(value: Value, ty: &ExprType) -> Value {
    let mut ignored = cohort_types::NoWarnings;
    match (&value, ty.class()) {
        (Value::Null, _) => return value,
        (Value::Decimal(d), TypeClass::Decimal) if d.scale() == ty.decimals => return value,
        (Value::Decimal(_), TypeClass::Decimal) => {}
        _ if class_of(&value) == Some(ty.class()) => return value,
        _ => {}
    }
    match ty.class() {
        TypeClass::String => {
            let collation =
                if ty.collation == Collation::BINARY { Collation::UTF8MB4_GENERAL_CI } else { ty.collation };
            let bytes = value.to_text().into_bytes();
            Value::Str(cohort_types::Str { bytes, collation })
        }
        TypeClass::Real => value.to_f64(&mut ignored).map_or(Value::Null, Value::Double),
        TypeClass::Decimal => match value.to_decimal(&mut ignored).map(|d| d.round(ty.decimals.into())) {
            Some(Ok(rounded)) => Value::Decimal(rounded),
            _ => value,
        },
        _ => value,
    }
}

fn class_of(value: &Value) -> Option<TypeClass> {
    Some(match value {
        Value::Null => return None,
        Value::Int(_) | Value::UInt(_) | Value::Bit { .. } => TypeClass::Int,
        Value::Float(_) | Value::Double(_) => TypeClass::Real,
        Value::Decimal(_) => TypeClass::Decimal,
        Value::Str(_) | Value::Enum { .. } | Value::Set { .. } => TypeClass::String,
        Value::Date(_) => TypeClass::Date,
        Value::Time(_) => TypeClass::Time,
        Value::DateTime(_) | Value::Timestamp(_) => TypeClass::DateTime,
    })
}
