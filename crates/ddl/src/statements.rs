//! The statements that change definitions. Each decides whether it concerns temporary tables of the session,
//! or the definitions that all sessions share.

use cohort_plan::charset::check_names;
use cohort_session::{Changed, SessionState, StatementContext};
use cohort_sql::ast::{
    Account, AlterAction, AlterDatabase, AlterEvent, AlterSequence, AlterTable, AlterUser, Characteristics,
    CreateDatabase, CreateEvent, CreateIndex, CreateRole, CreateRoutine, CreateTable, CreateTrigger,
    CreateUser, CreateView, DropDatabase, DropIndex, DropRole, DropTable, Grant, ObjectName, RenameTable,
    Revoke, RoutineKind, Statement,
};
use cohort_types::SqlResult;

use super::alter_table::{index_addition, index_removal};
use super::column::check_expressions;
use super::event::{self, ScheduleValues};
use super::work::schema_of;
use super::{DdlOutcome, account, database, role, routine, sequence, temporary, trigger, view};

/// Runs a statement and ends it: no transaction is open afterwards, whatever the outcome. Without a commit,
/// the locks would be held until the next one.
fn ended<'s>(
    ctx: &mut StatementContext<'s>,
    run: impl FnOnce(&mut StatementContext<'s>) -> SqlResult<DdlOutcome>,
) -> SqlResult<DdlOutcome> {
    let outcome = run(ctx);
    ctx.trx.rollback();
    outcome
}

/// Reports a successful change of temporary tables to the client.
fn noted(ctx: &StatementContext<'_>, outcome: SqlResult<DdlOutcome>) -> SqlResult<DdlOutcome> {
    if outcome.is_ok() {
        ctx.session.note_change(Changed::Other);
    }
    outcome
}

/// Makes the checks that MariaDB makes while it parses a definition, before the open transaction is
/// committed: unknown character sets, and expressions that no column may have. Constraints of the table come
/// later.
pub fn check_as_parser(session: &SessionState, statement: &Statement) -> SqlResult<()> {
    check_names(statement)?;
    match statement {
        Statement::CreateTable(create) => {
            create.columns.iter().try_for_each(|column| check_expressions(session, column))
        }
        Statement::AlterTable(alter) => alter.actions.iter().try_for_each(|action| match action {
            AlterAction::AddColumn { column, .. }
            | AlterAction::ModifyColumn { column, .. }
            | AlterAction::ChangeColumn { column, .. } => check_expressions(session, column),
            _ => Ok(()),
        }),
        _ => Ok(()),
    }
}

/// Runs CREATE DATABASE.
pub fn create_database(ctx: &mut StatementContext<'_>, create: &CreateDatabase) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| database::create(ctx, create))
}

/// Runs CREATE TABLE and CREATE SEQUENCE. The open transaction continues if the table is temporary.
pub fn create_table(ctx: &mut StatementContext<'_>, create: &CreateTable) -> SqlResult<DdlOutcome> {
    if let Some(definition) = like_virtual(ctx, create)? {
        return create_table(ctx, &definition);
    }
    if create.temporary {
        let outcome = temporary::create(ctx, create);
        return if create.query.is_none() { noted(ctx, outcome) } else { outcome };
    }
    ended(ctx, |ctx| super::create_table::create(ctx, create))
}

/// Returns the definition that CREATE TABLE .. LIKE a virtual table of the schema `mysql` stands for.
fn like_virtual(ctx: &StatementContext<'_>, create: &CreateTable) -> SqlResult<Option<CreateTable>> {
    let Some(other) = &create.like else { return Ok(None) };
    let schema = schema_of(ctx, other)?;
    let found = ctx.session.virtual_table(&schema, &other.name);
    let Some(found) = found.filter(|found| found.schema() == "mysql" && !found.is_view()) else {
        return Ok(None);
    };
    let Statement::CreateTable(definition) = cohort_sql::parse_own(&found.create_text())?.statement else {
        return Ok(None);
    };
    let (name, temporary, mode) = (create.name.clone(), create.temporary, create.mode);
    Ok(Some(CreateTable { name, temporary, mode, ..*definition }))
}

/// Runs DROP TABLE, DROP SEQUENCE and DROP VIEW. The open transaction continues after DROP TEMPORARY TABLE.
pub fn drop_table(ctx: &mut StatementContext<'_>, drop: &DropTable) -> SqlResult<DdlOutcome> {
    if drop.temporary {
        let outcome = temporary::drop_named(ctx, drop);
        return noted(ctx, outcome);
    }
    ended(ctx, |ctx| match drop.view {
        true => view::drop(ctx, drop),
        false => temporary::drop_some(ctx, drop).unwrap_or_else(|| super::drop_table::drop(ctx, drop)),
    })
}

/// Runs RENAME TABLE.
pub fn rename_table(ctx: &mut StatementContext<'_>, rename: &RenameTable) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| temporary::rename(ctx, rename).unwrap_or_else(|| super::drop_table::rename(ctx, rename)))
}

/// Runs TRUNCATE TABLE.
pub fn truncate(ctx: &mut StatementContext<'_>, name: &ObjectName) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| match temporary::named(ctx, name) {
        Some(own) => temporary::truncate(ctx, &own),
        None => super::drop_table::truncate(ctx, name),
    })
}

/// Runs ALTER SEQUENCE.
pub fn alter_sequence(ctx: &mut StatementContext<'_>, alter: &AlterSequence) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| match temporary::named(ctx, &alter.name) {
        Some(own) => sequence::alter_own(ctx, alter, &own),
        None => sequence::alter(ctx, alter),
    })
}

/// Runs ALTER TABLE.
pub fn alter_table(ctx: &mut StatementContext<'_>, alter: &AlterTable) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| match temporary::named(ctx, &alter.table) {
        Some(own) => {
            let outcome = temporary::alter(ctx, alter, &own);
            noted(ctx, outcome)
        }
        None => super::alter_table::alter(ctx, alter),
    })
}

/// Runs CREATE INDEX.
pub fn create_index(ctx: &mut StatementContext<'_>, create: &CreateIndex) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| match temporary::named(ctx, &create.table) {
        Some(own) => {
            let outcome = temporary::alter(ctx, &index_addition(create, Some(&own)), &own);
            noted(ctx, outcome)
        }
        None => super::alter_table::create_index(ctx, create),
    })
}

/// Runs DROP INDEX.
pub fn drop_index(ctx: &mut StatementContext<'_>, drop: &DropIndex) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| match temporary::named(ctx, &drop.table) {
        Some(own) => {
            let outcome = temporary::alter(ctx, &index_removal(drop), &own);
            noted(ctx, outcome)
        }
        None => super::alter_table::drop_index(ctx, drop),
    })
}

/// Runs ALTER DATABASE.
pub fn alter_database(ctx: &mut StatementContext<'_>, alter: &AlterDatabase) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| database::alter(ctx, alter))
}

/// Runs DROP DATABASE.
pub fn drop_database(ctx: &mut StatementContext<'_>, drop: &DropDatabase) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| database::drop(ctx, drop))
}

/// Runs CREATE VIEW and ALTER VIEW.
pub fn create_view(ctx: &mut StatementContext<'_>, create: &CreateView) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| view::create(ctx, create))
}

/// Runs CREATE PROCEDURE and CREATE FUNCTION.
pub fn create_routine(ctx: &mut StatementContext<'_>, create: &CreateRoutine) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| routine::create(ctx, create))
}

/// Runs ALTER PROCEDURE and ALTER FUNCTION.
pub fn alter_routine(
    ctx: &mut StatementContext<'_>,
    kind: RoutineKind,
    name: &ObjectName,
    characteristics: &Characteristics,
) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| routine::alter(ctx, kind, name, characteristics))
}

/// Runs DROP PROCEDURE and DROP FUNCTION.
pub fn drop_routine(
    ctx: &mut StatementContext<'_>,
    kind: RoutineKind,
    if_exists: bool,
    name: &ObjectName,
) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| routine::drop(ctx, kind, if_exists, name))
}

/// Runs CREATE TRIGGER.
pub fn create_trigger(ctx: &mut StatementContext<'_>, create: &CreateTrigger) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| trigger::create(ctx, create))
}

/// Runs DROP TRIGGER.
pub fn drop_trigger(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    name: &ObjectName,
) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| trigger::drop(ctx, if_exists, name))
}

/// Runs CREATE EVENT.
pub fn create_event(
    ctx: &mut StatementContext<'_>,
    create: &CreateEvent,
    schedule: &ScheduleValues,
) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| event::create(ctx, create, schedule))
}

/// Runs ALTER EVENT.
pub fn alter_event(
    ctx: &mut StatementContext<'_>,
    alter: &AlterEvent,
    schedule: Option<&ScheduleValues>,
) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| event::alter(ctx, alter, schedule))
}

/// Runs DROP EVENT.
pub fn drop_event(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    name: &ObjectName,
) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| event::drop(ctx, if_exists, name))
}

/// Runs CREATE USER.
pub fn create_user(ctx: &mut StatementContext<'_>, create: &CreateUser) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| account::create(ctx, create))
}

/// Runs ALTER USER.
pub fn alter_user(ctx: &mut StatementContext<'_>, alter: &AlterUser) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| account::alter(ctx, alter))
}

/// Runs CREATE ROLE.
pub fn create_role(ctx: &mut StatementContext<'_>, create: &CreateRole) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| role::create(ctx, create))
}

/// Runs DROP ROLE.
pub fn drop_role(ctx: &mut StatementContext<'_>, drop: &DropRole) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| role::remove(ctx, drop))
}

/// Runs GRANT.
pub fn grant(ctx: &mut StatementContext<'_>, grant: &Grant) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| super::grant::grant(ctx, grant))
}

/// Runs REVOKE.
pub fn revoke(ctx: &mut StatementContext<'_>, revoke: &Revoke) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| super::grant::revoke(ctx, revoke))
}

/// Runs DROP USER.
pub fn drop_user(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    accounts: &[Account],
) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| account::drop(ctx, if_exists, accounts))
}

/// Runs RENAME USER.
pub fn rename_user(ctx: &mut StatementContext<'_>, pairs: &[(Account, Account)]) -> SqlResult<DdlOutcome> {
    ended(ctx, |ctx| account::rename(ctx, pairs))
}
