//! The account that owns a view or a stored program, and the settings stored with it.

use cohort_catalog::{AccountName, PUBLIC, ProgramSettings, Schema};
use cohort_config::{VarId, VarValue};
use cohort_session::StatementContext;
use cohort_session::access::check_global;
use cohort_sql::ast::Account;
use cohort_types::{Charset, Collation, Privilege, Privileges, SqlError, SqlResult, Warning};

use super::account::resolve;

/// Returns the account or role that owns an object. Naming another than the session's own requires the
/// privilege SET USER. A name without a host denotes a role, if one exists.
pub(super) fn definer(ctx: &StatementContext<'_>, named: Option<&Account>) -> SqlResult<AccountName> {
    let Some(named) = named else { return Ok(ctx.session.info.account.clone()) };
    let catalog = ctx.db.catalog();
    let role = |role: &str| (role.to_owned(), String::new());
    let named = match named {
        Account::CurrentRole => {
            let current = ctx.session.identity.role.as_deref();
            role(current.ok_or_else(SqlError::invalid_definer)?)
        }
        Account::NameAlone(alone) if alone.eq_ignore_ascii_case(PUBLIC) => {
            return Err(SqlError::invalid_role(alone));
        }
        Account::NameAlone(alone) if catalog.accounts.contains_key(&role(alone)) => role(alone),
        other => resolve(ctx.session, other),
    };
    if !ctx.session.is_definer(&named) {
        check_global(ctx.session, Privileges::of(&[Privilege::Super, Privilege::SetUser]))?;
        if !catalog.accounts.contains_key(&named) {
            ctx.eval.push_warning(Warning::note(SqlError::unknown_definer(&named.0, &named.1)));
        }
    }
    Ok(named)
}

/// Returns the session's settings that a program of this schema runs with.
pub(super) fn program_settings(ctx: &StatementContext<'_>, schema: &Schema) -> ProgramSettings {
    ProgramSettings {
        sql_mode: ctx.session.settings.env.sql_mode,
        client: client_collation(ctx),
        connection: ctx.session.settings.env.collation_connection,
        database: schema.collation,
    }
}

/// Returns the default collation of `character_set_client`.
pub(super) fn client_collation(ctx: &StatementContext<'_>) -> Collation {
    let charset = match ctx.session.settings.vars.value(VarId::CharacterSetClient) {
        VarValue::Text(name) => Charset::by_name(&name),
        _ => None,
    };
    charset.unwrap_or(Charset::Utf8mb4).default_collation()
}
