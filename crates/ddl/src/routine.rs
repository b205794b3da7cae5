//! CREATE, ALTER and DROP of procedures and functions.

use cohort_catalog::{CatalogChange, Routine, RoutineName};
use cohort_config::VarId;
use cohort_locks::MetadataMode;
use cohort_session::{StatementContext, access};
use cohort_sql::ast::{Characteristics, CreateMode, CreateRoutine, ObjectName, VariableType, ViewSecurity};
use cohort_sql::print::{Style, quoted_name, quoted_text};
use cohort_types::{
    Collation, ColumnType, DataAccess, Privilege, Privileges, RoutineKind, SqlError, SqlMode, SqlResult,
    Warning,
};

use super::DdlOutcome;
use super::account_changes::AccountChanges;
use super::create_table::created_at;
use super::definer::{definer, program_settings};
use super::program::{
    body_range, check_trusted, create_words, is_suspicious, lock_kind, lock_program, log_of, text_of,
};
use super::work::{Changes, LogText, commit, enter_schema, lock_definitions, schema_of};

/// The privileges that the creator of a routine gets on it (`automatic_sp_privileges`).
const OF_CREATOR: Privileges = Privileges::of(&[Privilege::Execute, Privilege::AlterRoutine]);

pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateRoutine) -> SqlResult<DdlOutcome> {
    let (kind, name) = (create.kind, &create.name.name);
    let schema_name = schema_of(ctx, &create.name)?;
    let schema = enter_schema(ctx, &schema_name)?;
    let definer = definer(ctx, create.definer.as_ref())?;
    lock_program(ctx, lock_kind(kind), &schema_name, name, MetadataMode::Exclusive)?;
    if kind == RoutineKind::Function && is_native_function(name) {
        ctx.eval.push_warning(Warning::note(SqlError::native_function_name(name)));
    }
    let before = ctx.db.catalog().routine(kind, &schema_name, name).cloned();
    let now = created_at(ctx);
    let mut routine = Routine {
        schema: schema_name,
        name: name.clone(),
        kind,
        aggregate: create.aggregate,
        parameters: create.parameter_text.clone(),
        returns: returns_text(create, schema.collation)?,
        body: text_of(ctx, body_range(ctx, &create.body)),
        deterministic: false,
        access: DataAccess::default(),
        by_invoker: false,
        comment: String::new(),
        definer,
        settings: program_settings(ctx, &schema),
        created_at: now,
        modified_at: now,
    };
    apply(&mut routine, &create.characteristics);
    let text = log_text(ctx.session.current_schema.as_deref(), create, &routine);
    let log = log_of(create.definer.as_ref(), Some(text));
    match (&before, create.mode) {
        (Some(_), CreateMode::Create) => return Err(SqlError::routine_exists(kind.name(), name)),
        (Some(_), CreateMode::IfNotExists) => {
            ctx.eval.push_warning(Warning::note(SqlError::routine_exists(kind.name(), name)));
            commit(ctx, Changes::default(), log)?;
            return Ok(DdlOutcome::default());
        }
        _ => {}
    }
    check_safe(ctx, &routine)?;
    if kind == RoutineKind::Function {
        check_trusted(ctx)?;
    }
    let mut changes = grant_to_creator(ctx, &routine)?;
    if before.is_some() {
        let (schema, name) = (routine.schema.clone(), routine.name.clone());
        changes.catalog.push(CatalogChange::DropRoutine { kind, schema, name });
    }
    changes.catalog.push(CatalogChange::PutRoutine(routine));
    commit(ctx, changes, log)?;
    Ok(DdlOutcome::default())
}

/// Returns whether a function of the server has this name.
fn is_native_function(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    cohort_expr::functions().any(|(known, ..)| known == name)
}

/// Rejects a function that may make the binary log wrong: error 1418.
fn check_safe(ctx: &StatementContext<'_>, routine: &Routine) -> SqlResult<()> {
    let may_change = matches!(routine.access, DataAccess::ContainsSql | DataAccess::ModifiesSqlData);
    let is_unsafe = routine.kind == RoutineKind::Function && !routine.deterministic && may_change;
    if is_unsafe && is_suspicious(ctx) { Err(SqlError::unsafe_routine()) } else { Ok(()) }
}

fn apply(routine: &mut Routine, characteristics: &Characteristics) {
    let Characteristics { comment, deterministic, access, security } = characteristics;
    if let Some(comment) = comment {
        routine.comment.clone_from(comment);
    }
    routine.deterministic = deterministic.unwrap_or(routine.deterministic);
    routine.access = access.unwrap_or(routine.access);
    routine.by_invoker = security.map_or(routine.by_invoker, |security| security == ViewSecurity::Invoker);
}

/// Returns the type after RETURNS with its defaults, as SHOW CREATE FUNCTION shows it.
fn returns_text(create: &CreateRoutine, collation: Collation) -> SqlResult<String> {
    let Some((of, written)) = &create.returns else { return Ok(String::new()) };
    let VariableType::Declared(declared) = of else { return Ok(written.clone()) };
    let ty = cohort_plan::column_type(declared, "", collation)?;
    ty.check("")?;
    Ok(type_text(&ty))
}

/// Formats a type with its character set.
fn type_text(ty: &ColumnType) -> String {
    match ty.collation {
        _ if !ty.kind.is_text() && ty.members.is_empty() => ty.sql_text(),
        collation => {
            let charset = collation.charset().name();
            format!("{} CHARSET {charset} COLLATE {}", ty.sql_text(), collation.name())
        }
    }
}

/// Returns the changes that give the creator of a routine the privileges to alter and to execute it, if the
/// account does not have them. On a replica the definer gets them.
fn grant_to_creator(ctx: &mut StatementContext<'_>, routine: &Routine) -> SqlResult<Changes> {
    if !ctx.session.settings.vars.globals().flag(VarId::AutomaticSpPrivileges) {
        return Ok(Changes::default());
    }
    let creator = match ctx.session.identity.is_applier {
        true => routine.definer.clone(),
        false => ctx.session.info.account.clone(),
    };
    let held = access::on_routine_of(ctx.session, &creator, routine.kind, &routine.schema, &routine.name);
    if held.covers(OF_CREATOR) {
        return Ok(Changes::default());
    }
    let mut book = AccountChanges::open_replaced(ctx)?;
    if let Some(mut account) = book.find(&creator).filter(|account| !account.is_public()) {
        let name = RoutineName::new(routine.kind, &routine.schema, &routine.name);
        let held = account.grants.routines.entry(name).or_default();
        *held = held.and(OF_CREATOR);
        book.put(account);
    }
    Ok(book.close())
}

/// Returns the changes that remove all privileges on a routine.
fn revoke_from_all(
    ctx: &mut StatementContext<'_>,
    kind: RoutineKind,
    schema: &str,
    name: &str,
) -> SqlResult<Changes> {
    if !ctx.session.settings.vars.globals().flag(VarId::AutomaticSpPrivileges) {
        return Ok(Changes::default());
    }
    let name = RoutineName::new(kind, schema, name);
    let catalog = ctx.db.catalog();
    if !catalog.accounts.values().any(|account| account.grants.routines.contains_key(&name)) {
        return Ok(Changes::default());
    }
    let mut book = AccountChanges::open_replaced(ctx)?;
    let catalog = std::sync::Arc::clone(&book.catalog);
    for account in catalog.accounts.values().filter(|a| a.grants.routines.contains_key(&name)) {
        let mut account = cohort_catalog::Account::clone(account);
        account.grants.routines.remove(&name);
        book.put(account);
    }
    Ok(book.close())
}

/// Locks a routine that is changed. Returns its schema's name and the routine.
fn lock_existing(
    ctx: &mut StatementContext<'_>,
    kind: RoutineKind,
    name: &ObjectName,
) -> SqlResult<(String, Option<std::sync::Arc<Routine>>)> {
    let schema = schema_of(ctx, name)?;
    super::work::lock_schema(ctx, &schema, MetadataMode::SharedRead)?;
    lock_program(ctx, lock_kind(kind), &schema, &name.name, MetadataMode::Exclusive)?;
    let found = ctx.db.catalog().routine(kind, &schema, &name.name).cloned();
    Ok((schema, found))
}

pub(super) fn alter(
    ctx: &mut StatementContext<'_>,
    kind: RoutineKind,
    name: &ObjectName,
    characteristics: &Characteristics,
) -> SqlResult<DdlOutcome> {
    let (schema, found) = lock_existing(ctx, kind, name)?;
    let Some(found) = found else { return Err(missing(kind, &schema, &name.name)) };
    let mut routine = Routine::clone(&found);
    apply(&mut routine, characteristics);
    routine.modified_at = created_at(ctx);
    check_safe(ctx, &routine)?;
    commit(ctx, Changes::one(CatalogChange::PutRoutine(routine)), LogText::AsWritten)?;
    Ok(DdlOutcome::default())
}

pub(super) fn drop(
    ctx: &mut StatementContext<'_>,
    kind: RoutineKind,
    if_exists: bool,
    name: &ObjectName,
) -> SqlResult<DdlOutcome> {
    if kind == RoutineKind::Function && name.db.is_none() && ctx.session.current_schema.is_none() {
        // Without a database, the name is that of a loadable function.
        let error = SqlError::does_not_exist("FUNCTION (UDF)", &name.name);
        return finish_missing(ctx, if_exists, error);
    }
    let (schema, found) = lock_existing(ctx, kind, name)?;
    if found.is_none() {
        let error = missing(kind, &schema, &name.name);
        return finish_missing(ctx, if_exists, error);
    }
    let mut changes = revoke_from_all(ctx, kind, &schema, &name.name)?;
    changes.catalog.push(CatalogChange::DropRoutine { kind, schema, name: name.name.clone() });
    commit(ctx, changes, LogText::AsWritten)?;
    Ok(DdlOutcome::default())
}

/// Ends DROP of a program that does not exist: with an error, or with a note and a logged statement.
pub(super) fn finish_missing(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    error: SqlError,
) -> SqlResult<DdlOutcome> {
    if !if_exists {
        return Err(error);
    }
    ctx.eval.push_warning(Warning::note(error));
    lock_definitions(ctx)?;
    commit(ctx, Changes::default(), LogText::AsWritten)?;
    Ok(DdlOutcome::default())
}

fn missing(kind: RoutineKind, schema: &str, name: &str) -> SqlError {
    SqlError::does_not_exist(kind.name(), &format!("{schema}.{name}"))
}

/// Returns the statement that replicas run.
fn log_text(current: Option<&str>, create: &CreateRoutine, routine: &Routine) -> String {
    let schema = match current == Some(&*routine.schema) {
        true => String::new(),
        false => format!("{}.", quoted_name(&routine.schema)),
    };
    let name = format!("{schema}{}", quoted_name(&routine.name));
    routine_text(create.mode, routine, &name, Style::default())
}

/// Returns the text of SHOW CREATE PROCEDURE or FUNCTION. Names are quoted as in the routine's `sql_mode`.
pub fn create_text(routine: &Routine, style: Style) -> String {
    let quote = if routine.settings.sql_mode.has(SqlMode::ANSI_QUOTES) { '"' } else { '`' };
    let style = Style { quote, ..style };
    routine_text(CreateMode::Create, routine, &style.name(&routine.name), style)
}

fn routine_text(mode: CreateMode, routine: &Routine, name: &str, style: Style) -> String {
    let mut text = create_words(mode, &routine.definer, style);
    if routine.aggregate {
        text.push_str("AGGREGATE ");
    }
    text.push_str(routine.kind.name());
    text.push(' ');
    if mode == CreateMode::IfNotExists {
        text.push_str("IF NOT EXISTS ");
    }
    text.push_str(&format!("{name}({})", routine.parameters));
    if routine.kind == RoutineKind::Function {
        text.push_str(&format!(" RETURNS {}", routine.returns));
    }
    text.push('\n');
    if routine.access != DataAccess::ContainsSql {
        text.push_str(&format!("    {}\n", routine.access.name()));
    }
    if routine.deterministic {
        text.push_str("    DETERMINISTIC\n");
    }
    if routine.by_invoker {
        text.push_str("    SQL SECURITY INVOKER\n");
    }
    if !routine.comment.is_empty() {
        text.push_str(&format!("    COMMENT {}\n", quoted_text(&routine.comment)));
    }
    text.push_str(&routine.body);
    text
}
