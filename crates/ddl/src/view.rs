//! CREATE VIEW, ALTER VIEW, DROP VIEW.
//!
//! A view stores its query with the names resolved at creation: `*` is expanded, and each column is qualified
//! with its table. A column that is added to a table later does not appear in the view, and dropping a column
//! makes the view invalid.

use std::sync::Arc;

use cohort_catalog::{AccountName, CatalogChange, TableName, View};
use cohort_locks::MetadataMode;
use cohort_plan::{
    CommonTables, Meanings, ParamSource, PlanContext, Query, UsedNames, bind_query, is_mergeable,
    named_tables,
};
use cohort_session::access::check_global;
use cohort_session::{SessionNames, StatementContext, TableUse};
use cohort_sql::ast::{self, CreateMode, CreateView, DropTable, ViewAlgorithm, ViewCheck, ViewSecurity};
use cohort_sql::print::{Style, quoted_name};
use cohort_sql::print_query;
use cohort_types::{Privilege, SqlError, SqlResult};

use super::DdlOutcome;
use super::create_table::created_at;
use super::definer::{client_collation, definer};
use super::drop_table::{lock_all, qualified};
use super::work::{
    Changes, LogText, catalog, check_identifier, check_table_name, commit, enter_schema, lock_table_name,
    report_table, schema_of,
};

/// Maximum length of a column name.
const NAME_CHARS_MAX: usize = 64;

pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateView) -> SqlResult<DdlOutcome> {
    refuse(create)?;
    let name = TableName { schema: schema_of(ctx, &create.name)?, table: create.name.name.clone() };
    check_table_name(&name.table)?;
    enter_schema(ctx, &name.schema)?;
    let definer = definer(ctx, create.definer.as_ref())?;
    if let Some(found) = ctx.db.virtual_table(&name.schema, &name.table) {
        if !found.is_view() {
            return Err(SqlError::table_exists(&name.table));
        }
        let note = SqlError::virtual_not_altered(found.name(), "CREATE VIEW");
        ctx.eval.note(note.code, note.message);
        return log_only(ctx, create, definer, name);
    }
    lock_table_name(ctx, &name.schema, &name.table, MetadataMode::Exclusive)?;
    let catalog = catalog(ctx);
    let before = catalog.view(&name.schema, &name.table).cloned();
    let is_table = catalog.table(&name.schema, &name.table).is_some();
    match (create.mode, create.alter) {
        (_, true) | (CreateMode::OrReplace, _) if is_table => return Err(not_a_view(&name)),
        (_, true) if before.is_none() => return Err(SqlError::no_such_table(&name.schema, &name.table)),
        (CreateMode::IfNotExists, false) if is_table || before.is_some() => {
            let error = SqlError::table_exists(&name.table);
            ctx.eval.note(error.code, error.message);
            return log_only(ctx, create, definer, name);
        }
        (CreateMode::Create, false) if is_table || before.is_some() => {
            return Err(SqlError::table_exists(&name.table));
        }
        _ => {}
    }
    let mut query = create.query.clone();
    let bound = bind(ctx, &name, &mut query)?;
    let columns = column_names(create, &bound)?;
    name_columns(&mut query.body, &columns);
    let mut algorithm = create.algorithm.unwrap_or_else(|| algorithm_of(before.as_deref(), create.alter));
    if algorithm == ViewAlgorithm::Merge && !is_mergeable(&bound) {
        ctx.eval.push_warning(cohort_types::Warning {
            level: cohort_types::Level::Warning,
            error: SqlError::view_not_merged(),
        });
        algorithm = ViewAlgorithm::Undefined;
    }
    let updatable = algorithm != ViewAlgorithm::TempTable && bound.is_updatable();
    if create.check != ViewCheck::None && !updatable {
        return Err(SqlError::check_option_not_updatable(&name.schema, &name.table));
    }
    let security = create.security.unwrap_or(match (&before, create.alter) {
        (Some(view), true) if view.by_invoker => ViewSecurity::Invoker,
        _ => ViewSecurity::Definer,
    });
    let definer = match (&before, create.alter, &create.definer) {
        (Some(view), true, None) => kept_definer(ctx, view)?,
        _ => definer,
    };
    let view = View {
        text: printed(*query, Style::of(ctx.session.settings.env.collation_connection)),
        algorithm: algorithm.name().to_owned(),
        definer,
        by_invoker: security == ViewSecurity::Invoker,
        check: create.check.name().to_owned(),
        updatable,
        ..empty_view(ctx, name)
    };
    let log = LogText::Instead(log_text(ctx, create, &view));
    if ctx.session.audit_tables().is_some() {
        for (schema, table, _) in named_tables(&view)? {
            let read = catalog.table(&schema, &table);
            read.into_iter().for_each(|table| report_table(ctx, TableUse::Read, table));
        }
    }
    commit(ctx, Changes::one(CatalogChange::PutView(view)).with_xid(), log)?;
    Ok(DdlOutcome::default())
}

/// Logs a statement that changes nothing here, as MariaDB does.
fn log_only(
    ctx: &mut StatementContext<'_>,
    create: &CreateView,
    definer: AccountName,
    name: TableName,
) -> SqlResult<DdlOutcome> {
    let asked = View {
        algorithm: create.algorithm.unwrap_or(ViewAlgorithm::Undefined).name().to_owned(),
        definer,
        by_invoker: create.security == Some(ViewSecurity::Invoker),
        ..empty_view(ctx, name)
    };
    let log = LogText::Instead(log_text(ctx, create, &asked));
    commit(ctx, Changes::default().with_xid(), log)?;
    Ok(DdlOutcome::default())
}

/// Returns an empty view with the session's attributes.
fn empty_view(ctx: &StatementContext<'_>, name: TableName) -> View {
    View {
        name,
        text: String::new(),
        algorithm: String::new(),
        definer: ctx.session.info.account.clone(),
        by_invoker: false,
        check: String::new(),
        updatable: false,
        client: client_collation(ctx),
        connection: ctx.session.settings.env.collation_connection,
        created_at: created_at(ctx),
    }
}

/// Rejects queries that a view cannot contain.
fn refuse(create: &CreateView) -> SqlResult<()> {
    if !create.query.into.is_empty() {
        return Err(SqlError::view_with_into());
    }
    let mut looks = UsedNames::default();
    create.query.clone().rename(&mut looks);
    if looks.variable {
        return Err(SqlError::view_with_variable());
    }
    Ok(())
}

/// Returns the definer for ALTER VIEW, which does not change it. Any other account needs the privilege SET
/// USER.
fn kept_definer(ctx: &StatementContext<'_>, view: &View) -> SqlResult<AccountName> {
    if !ctx.session.is_definer(&view.definer) {
        check_global(ctx.session, cohort_types::Privileges::of(&[Privilege::Super, Privilege::SetUser]))?;
    }
    Ok(view.definer.clone())
}

/// Binds the query and writes full names into it. Error 1146 for a view that would read itself.
fn bind(ctx: &StatementContext<'_>, name: &TableName, query: &mut ast::Query) -> SqlResult<Query> {
    let catalog = catalog(ctx);
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    plan.meanings.replace(Some(Meanings::new(ctx.session.settings.env.collation_connection.charset())));
    let bound = bind_query(&plan, &CommonTables::default(), None, query)?;
    if let Some(table) = names.temporary_used() {
        return Err(SqlError::view_of_temporary(&table));
    }
    if names.take_views().iter().any(|view| view.name == *name) {
        return Err(SqlError::no_such_table(&name.schema, &name.table));
    }
    if let Some(meanings) = plan.meanings.take() {
        meanings.write_into(query);
        query.spell_out_windows();
    }
    Ok(bound)
}

/// Returns a query with full names, as shown by EXPLAIN EXTENDED.
pub fn query_text(ctx: &StatementContext<'_>, query: &ast::Query) -> SqlResult<String> {
    let catalog = catalog(ctx);
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    plan.meanings.replace(Some(Meanings::new(ctx.session.settings.env.collation_connection.charset())));
    let mut query = query.clone();
    bind_query(&plan, &CommonTables::default(), None, &query)?;
    if let Some(meanings) = plan.meanings.take() {
        meanings.write_into(&mut query);
    }
    spell_out_aliases(&mut query);
    Ok(printed(query, Style::of(ctx.session.settings.env.collation_connection)))
}

/// Replaces names of select items in ORDER BY and GROUP BY by their expressions.
fn spell_out_aliases(query: &mut ast::Query) {
    let ast::QueryBody::Select(select) = &mut query.body else { return };
    let named = |item: &ast::SelectItem| match item {
        ast::SelectItem::Expr { expr, alias: Some(alias), .. } => Some((alias.clone(), expr.clone())),
        _ => None,
    };
    let items: Vec<(String, ast::Expr)> = select.items.iter().filter_map(named).collect();
    for by in query.order_by.iter_mut().chain(&mut select.group_by) {
        if let ast::Expr::Column(column) = &by.expr
            && column.table.is_none()
            && let Some((_, expr)) =
                items.iter().find(|(alias, _)| cohort_plan::same_name(alias, &column.name))
        {
            by.expr = expr.clone();
        }
    }
}

/// Rejects written names that are too long. Generated names of items without an alias are replaced instead.
fn check_aliases(query: &ast::Query) -> SqlResult<()> {
    let ast::QueryBody::Select(select) = &query.body else { return Ok(()) };
    let written = select.items.iter().filter_map(|item| match item {
        ast::SelectItem::Expr { alias, .. } => alias.as_deref(),
        _ => None,
    });
    let mut too_long = written.filter(|alias| alias.chars().count() > cohort_sql::IDENTIFIER_CHARS_MAX);
    too_long.next().map_or(Ok(()), |alias| Err(SqlError::wrong_column_name(alias)))
}

/// Returns the names of the view's columns: errors 1353, 1060, 1166.
fn column_names(create: &CreateView, bound: &Query) -> SqlResult<Vec<String>> {
    let names: Vec<String> = match create.columns.len() {
        0 => {
            check_aliases(&create.query)?;
            let written = items_one_each(&create.query.body, bound.columns.len()).unwrap_or_default();
            let name = |(n, column): (usize, &cohort_protocol::ColumnMeta)| match written.get(n) {
                // In a query over a merged view, the column has the name used in the view.
                Some(ast::SelectItem::Expr { expr: ast::Expr::Column(column), alias: None, .. }) => {
                    column.name.clone()
                }
                _ if nameable(&column.name) => column.name.clone(),
                _ => format!("Name_exp_{}", n + 1),
            };
            bound.columns.iter().enumerate().map(name).collect()
        }
        given if given == bound.columns.len() => create.columns.clone(),
        _ => {
            return Err(SqlError::view_column_count());
        }
    };
    let names =
        if create.columns.is_empty() { with_distinct_names(&create.query.body, names) } else { names };
    for (n, name) in names.iter().enumerate() {
        let wrong = |name: &str| SqlError::wrong_column_name(name);
        check_identifier(name, wrong)?;
        if names[..n].iter().any(|other| cohort_plan::same_name(other, name)) {
            return Err(SqlError::duplicate_column(name));
        }
    }
    Ok(names)
}

/// Returns the items of the first SELECT, if each is one column. After a `*`, positions are unknown.
fn items_one_each(mut body: &ast::QueryBody, columns: usize) -> Option<&[ast::SelectItem]> {
    let select = loop {
        body = match body {
            ast::QueryBody::Select(select) => break select,
            ast::QueryBody::SetOperation { first, .. } => first,
            ast::QueryBody::Nested(query) => &query.body,
            ast::QueryBody::Values(_) => return None,
        };
    };
    let is_one = |item: &ast::SelectItem| matches!(item, ast::SelectItem::Expr { .. });
    (select.items.len() == columns && select.items.iter().all(is_one)).then_some(&select.items)
}

/// Renames generated column names that another column has, too.
fn with_distinct_names(body: &ast::QueryBody, mut names: Vec<String>) -> Vec<String> {
    let Some(items) = items_one_each(body, names.len()) else { return names };
    let is_given = |item: &ast::SelectItem| match item {
        ast::SelectItem::Expr { alias: None, expr, .. } => !matches!(expr, ast::Expr::Column(_)),
        _ => false,
    };
    for n in 0..names.len() {
        let same = |a: &str, b: &str| cohort_plan::same_name(a, b);
        let Some(before) = (0..n).find(|before| same(&names[*before], &names[n])) else { continue };
        let Some(changed) = [n, before].into_iter().find(|n| is_given(&items[*n])) else { continue };
        let stem = names[changed].clone();
        let others = (0_u32..).map(|attempt| match attempt {
            0 => format!("My_exp_{stem}"),
            attempt => format!("My_exp_{attempt}_{stem}"),
        });
        let free = |name: &String| !names.iter().any(|other| same(other, name));
        names[changed] = others.into_iter().find(free).expect("one of many is free");
    }
    names
}

fn nameable(name: &str) -> bool {
    !name.is_empty() && !name.ends_with(' ') && name.chars().count() <= NAME_CHARS_MAX
}

/// Returns a view's column names: the aliases of the items of the first SELECT.
pub(super) fn view_columns(view: &View) -> SqlResult<Vec<String>> {
    let query = cohort_plan::view_query(view)?;
    let mut body = &query.body;
    loop {
        body = match body {
            ast::QueryBody::Select(select) => {
                let name = |item: &ast::SelectItem| match item {
                    ast::SelectItem::Expr { alias, text, .. } => {
                        alias.clone().unwrap_or_else(|| text.clone())
                    }
                    ast::SelectItem::Wildcard | ast::SelectItem::TableWildcard(_) => String::new(),
                };
                return Ok(select.items.iter().map(name).collect());
            }
            ast::QueryBody::SetOperation { first, .. } => first,
            ast::QueryBody::Nested(query) => &query.body,
            ast::QueryBody::Values(rows) => {
                let first = rows.first().into_iter().flatten();
                return Ok(first.map(cohort_sql::print::expr).collect());
            }
        };
    }
}

/// Sets the column names as aliases of the items of the first SELECT.
fn name_columns(body: &mut ast::QueryBody, names: &[String]) {
    match body {
        ast::QueryBody::Select(select) => {
            for (item, name) in select.items.iter_mut().zip(names) {
                if let ast::SelectItem::Expr { alias, .. } = item {
                    *alias = Some(name.clone());
                }
            }
        }
        ast::QueryBody::SetOperation { first, .. } => name_columns(first, names),
        ast::QueryBody::Nested(query) => name_columns(&mut query.body, names),
        ast::QueryBody::Values(_) => {}
    }
}

/// Returns the algorithm that ALTER VIEW keeps if it does not name one.
fn algorithm_of(before: Option<&View>, alter: bool) -> ViewAlgorithm {
    match before.filter(|_| alter).map(|view| view.algorithm.as_str()) {
        Some("MERGE") => ViewAlgorithm::Merge,
        Some("TEMPTABLE") => ViewAlgorithm::TempTable,
        _ => ViewAlgorithm::Undefined,
    }
}

/// Returns the statement with the attributes that the session added.
fn log_text(ctx: &StatementContext<'_>, create: &CreateView, view: &View) -> String {
    let verb = match (create.alter, create.mode) {
        (true, _) => "ALTER",
        (false, CreateMode::OrReplace) => "CREATE OR REPLACE",
        (false, CreateMode::Create | CreateMode::IfNotExists) => "CREATE",
    };
    let if_not_exists = if create.mode == CreateMode::IfNotExists { "IF NOT EXISTS " } else { "" };
    let schema = match ctx.session.current_schema.as_deref() == Some(&*view.name.schema) {
        true => String::new(),
        false => format!("{}.", quoted_name(&view.name.schema)),
    };
    let columns: Vec<String> = create.columns.iter().map(|name| quoted_name(name)).collect();
    let columns = if columns.is_empty() { String::new() } else { format!("({})", columns.join(", ")) };
    format!(
        "{verb} {}VIEW {if_not_exists}{schema}{}{columns} AS {}",
        attributes(view, Style::default()),
        quoted_name(&view.name.table),
        create.text
    )
}

/// Formats `ALGORITHM=.. DEFINER=.. SQL SECURITY .. `.
pub fn attributes(view: &View, style: Style) -> String {
    let (user, host) = &view.definer;
    let host = if host.is_empty() { String::new() } else { format!("@{}", style.name(host)) };
    format!(
        "ALGORITHM={} DEFINER={}{host} SQL SECURITY {} ",
        view.algorithm,
        style.name(user),
        if view.by_invoker { "INVOKER" } else { "DEFINER" }
    )
}

pub(super) fn drop(ctx: &mut StatementContext<'_>, drop: &DropTable) -> SqlResult<DdlOutcome> {
    let names = qualified(ctx, &drop.names)?;
    lock_all(ctx, names.iter())?;
    let catalog = catalog(ctx);
    let mut changes = Changes::default();
    let mut missing = Vec::new();
    for name in &names {
        if catalog.view(&name.schema, &name.table).is_some() {
            changes.catalog.push(CatalogChange::DropView(name.clone()));
        } else {
            if catalog.table(&name.schema, &name.table).is_some() {
                let (level, error) = (cohort_types::Level::Warning, not_a_view(name));
                ctx.eval.push_warning(cohort_types::Warning { level, error });
            }
            missing.push(format!("{}.{}", name.schema, name.table));
        }
    }
    let unknown = || SqlError::unknown_view(&missing.join(","));
    match (!missing.is_empty() && !drop.if_exists).then(unknown) {
        Some(error) if changes.catalog.is_empty() => return Err(error),
        failed => commit(ctx, changes.with_xid().failing(failed), LogText::AsWritten)?,
    }
    if !missing.is_empty() {
        let error = unknown();
        ctx.eval.note(error.code, error.message);
    }
    Ok(DdlOutcome::default())
}

/// Returns error 1347.
pub(super) fn not_a_view(name: &TableName) -> SqlError {
    SqlError::not_a_view(&name.schema, &name.table)
}

/// Formats a query.
fn printed(mut query: ast::Query, style: Style) -> String {
    query.rename(&mut BySchema);
    print_query::query(&query, style)
}

struct BySchema;

impl ast::Rename for BySchema {
    fn function(&mut self, call: &mut ast::Expr) {
        let ast::Expr::Function { name, args } = call else { return };
        if cohort_expr::is_native(name) {
            return cohort_sql::print::name_by_schema(name);
        }
        if cohort_sql::is_window_function(name) {
            return;
        }
        // A stored function's name is quoted.
        let (name, args) = (std::mem::take(name), std::mem::take(args));
        *call = ast::Expr::StoredFunction { db: None, name, args };
    }
}

/// Returns a view's query as shown by SHOW CREATE VIEW. Names are shown without a database if all of them are
/// in the current one.
pub fn shown_text(view: &View, current: Option<&str>, style: Style) -> SqlResult<String> {
    let mut query = cohort_plan::view_query(view)?;
    let mut looks = UsedNames::default();
    query.rename(&mut looks);
    // Common table expressions have no database.
    let is_here = |(schema, ..): &(String, String, String)| schema.is_empty() || Some(&**schema) == current;
    // A JSON_TABLE counts as a table of another database, so all names are qualified.
    if current == Some(&view.name.schema) && looks.tables.iter().all(is_here) && !looks.json_table {
        query.rename(&mut WithoutSchema);
    }
    Ok(printed(*query, Style { collation: view.connection, ..style }))
}

struct WithoutSchema;

impl ast::Rename for WithoutSchema {
    fn column(&mut self, column: &mut ast::ColumnRef) {
        column.db = None;
    }

    fn table(&mut self, table: &mut ast::TableFactor) {
        table.name.db = None;
    }
}

/// Drops the views of a schema that is dropped.
pub(super) fn drop_all(
    ctx: &mut StatementContext<'_>,
    schema: &cohort_catalog::Schema,
    changes: &mut Changes,
) -> SqlResult<()> {
    for view in schema.views.values() {
        lock_table_name(ctx, &schema.name, &view.name.table, MetadataMode::Exclusive)?;
        changes.catalog.push(CatalogChange::DropView(view.name.clone()));
    }
    Ok(())
}

/// Renames a view within its schema. Error 1450 for another schema.
pub(super) fn renamed(view: &Arc<View>, to: &TableName) -> SqlResult<View> {
    check_table_name(&to.table)?;
    if view.name.schema != to.schema {
        return Err(SqlError::schema_change_forbidden(&view.name.schema, &to.schema));
    }
    Ok(View { name: to.clone(), ..View::clone(view) })
}
