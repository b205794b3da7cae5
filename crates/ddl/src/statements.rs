//! The statements that change definitions. Each decides whether it concerns temporary tables of the session,
//! or the definitions that all sessions share.

use cohort_plan::charset::{check_database_names, check_table_names};
use cohort_session::{Changed, StatementContext};
use cohort_sql::ast::{
    Account, AlterDatabase, AlterSequence, AlterTable, AlterUser, CreateDatabase, CreateIndex, CreateRole,
    CreateTable, CreateUser, CreateView, DropDatabase, DropIndex, DropRole, DropTable, Grant, ObjectName,
    RenameTable, Revoke,
};
use cohort_types::SqlResult;

use super::alter_table::{index_addition, index_removal};
use super::{DdlOutcome, account, database, role, sequence, temporary, view};

/// Ends a statement: no transaction is open afterwards, whatever the outcome. Without a commit, the locks
/// would be held until the next one.
fn ended(ctx: &mut StatementContext<'_>, outcome: SqlResult<DdlOutcome>) -> SqlResult<DdlOutcome> {
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

/// Runs CREATE DATABASE.
pub fn create_database(ctx: &mut StatementContext<'_>, create: &CreateDatabase) -> SqlResult<DdlOutcome> {
    check_database_names(create)?;
    let outcome = database::create(ctx, create);
    ended(ctx, outcome)
}

/// Runs CREATE TABLE and CREATE SEQUENCE. The open transaction continues if the table is temporary.
pub fn create_table(ctx: &mut StatementContext<'_>, create: &CreateTable) -> SqlResult<DdlOutcome> {
    check_table_names(create)?;
    if create.temporary {
        let outcome = temporary::create(ctx, create);
        return if create.query.is_none() { noted(ctx, outcome) } else { outcome };
    }
    let outcome = super::create_table::create(ctx, create);
    ended(ctx, outcome)
}

/// Runs DROP TABLE, DROP SEQUENCE and DROP VIEW. The open transaction continues after DROP TEMPORARY TABLE.
pub fn drop_table(ctx: &mut StatementContext<'_>, drop: &DropTable) -> SqlResult<DdlOutcome> {
    if drop.temporary {
        let outcome = temporary::drop_named(ctx, drop);
        return noted(ctx, outcome);
    }
    let outcome = match drop.view {
        true => view::drop(ctx, drop),
        false => temporary::drop_some(ctx, drop).unwrap_or_else(|| super::drop_table::drop(ctx, drop)),
    };
    ended(ctx, outcome)
}

/// Runs RENAME TABLE.
pub fn rename_table(ctx: &mut StatementContext<'_>, rename: &RenameTable) -> SqlResult<DdlOutcome> {
    let own = temporary::rename(ctx, rename);
    let outcome = own.unwrap_or_else(|| super::drop_table::rename(ctx, rename));
    ended(ctx, outcome)
}

/// Runs TRUNCATE TABLE.
pub fn truncate(ctx: &mut StatementContext<'_>, name: &ObjectName) -> SqlResult<DdlOutcome> {
    let outcome = match temporary::named(ctx, name) {
        Some(own) => temporary::truncate(ctx, &own),
        None => super::drop_table::truncate(ctx, name),
    };
    ended(ctx, outcome)
}

/// Runs ALTER SEQUENCE.
pub fn alter_sequence(ctx: &mut StatementContext<'_>, alter: &AlterSequence) -> SqlResult<DdlOutcome> {
    let outcome = match temporary::named(ctx, &alter.name) {
        Some(own) => sequence::alter_own(ctx, alter, &own),
        None => sequence::alter(ctx, alter),
    };
    ended(ctx, outcome)
}

/// Runs ALTER TABLE.
pub fn alter_table(ctx: &mut StatementContext<'_>, alter: &AlterTable) -> SqlResult<DdlOutcome> {
    let outcome = match temporary::named(ctx, &alter.table) {
        Some(own) => {
            let outcome = temporary::alter(ctx, alter, &own);
            noted(ctx, outcome)
        }
        None => super::alter_table::alter(ctx, alter),
    };
    ended(ctx, outcome)
}

/// Runs CREATE INDEX.
pub fn create_index(ctx: &mut StatementContext<'_>, create: &CreateIndex) -> SqlResult<DdlOutcome> {
    let outcome = match temporary::named(ctx, &create.table) {
        Some(own) => {
            let outcome = temporary::alter(ctx, &index_addition(create, Some(&own)), &own);
            noted(ctx, outcome)
        }
        None => super::alter_table::create_index(ctx, create),
    };
    ended(ctx, outcome)
}

/// Runs DROP INDEX.
pub fn drop_index(ctx: &mut StatementContext<'_>, drop: &DropIndex) -> SqlResult<DdlOutcome> {
    let outcome = match temporary::named(ctx, &drop.table) {
        Some(own) => {
            let outcome = temporary::alter(ctx, &index_removal(drop), &own);
            noted(ctx, outcome)
        }
        None => super::alter_table::drop_index(ctx, drop),
    };
    ended(ctx, outcome)
}

/// Runs ALTER DATABASE.
pub fn alter_database(ctx: &mut StatementContext<'_>, alter: &AlterDatabase) -> SqlResult<DdlOutcome> {
    let outcome = database::alter(ctx, alter);
    ended(ctx, outcome)
}

/// Runs DROP DATABASE.
pub fn drop_database(ctx: &mut StatementContext<'_>, drop: &DropDatabase) -> SqlResult<DdlOutcome> {
    let outcome = database::drop(ctx, drop);
    ended(ctx, outcome)
}

/// Runs CREATE VIEW and ALTER VIEW.
pub fn create_view(ctx: &mut StatementContext<'_>, create: &CreateView) -> SqlResult<DdlOutcome> {
    let outcome = view::create(ctx, create);
    ended(ctx, outcome)
}

/// Runs CREATE USER.
pub fn create_user(ctx: &mut StatementContext<'_>, create: &CreateUser) -> SqlResult<DdlOutcome> {
    let outcome = account::create(ctx, create);
    ended(ctx, outcome)
}

/// Runs ALTER USER.
pub fn alter_user(ctx: &mut StatementContext<'_>, alter: &AlterUser) -> SqlResult<DdlOutcome> {
    let outcome = account::alter(ctx, alter);
    ended(ctx, outcome)
}

/// Runs CREATE ROLE.
pub fn create_role(ctx: &mut StatementContext<'_>, create: &CreateRole) -> SqlResult<DdlOutcome> {
    let outcome = role::create(ctx, create);
    ended(ctx, outcome)
}

/// Runs DROP ROLE.
pub fn drop_role(ctx: &mut StatementContext<'_>, drop: &DropRole) -> SqlResult<DdlOutcome> {
    let outcome = role::remove(ctx, drop);
    ended(ctx, outcome)
}

/// Runs GRANT.
pub fn grant(ctx: &mut StatementContext<'_>, grant: &Grant) -> SqlResult<DdlOutcome> {
    let outcome = super::grant::grant(ctx, grant);
    ended(ctx, outcome)
}

/// Runs REVOKE.
pub fn revoke(ctx: &mut StatementContext<'_>, revoke: &Revoke) -> SqlResult<DdlOutcome> {
    let outcome = super::grant::revoke(ctx, revoke);
    ended(ctx, outcome)
}

/// Runs DROP USER.
pub fn drop_user(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    accounts: &[Account],
) -> SqlResult<DdlOutcome> {
    let outcome = account::drop(ctx, if_exists, accounts);
    ended(ctx, outcome)
}

/// Runs RENAME USER.
pub fn rename_user(ctx: &mut StatementContext<'_>, pairs: &[(Account, Account)]) -> SqlResult<DdlOutcome> {
    let outcome = account::rename(ctx, pairs);
    ended(ctx, outcome)
}
