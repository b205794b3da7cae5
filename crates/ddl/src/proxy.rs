//! GRANT PROXY and REVOKE PROXY.
//!
//! An authentication plugin may log a client in as another account than the authenticated one, if the
//! authenticated account has the PROXY privilege for it. None of the available plugins does so, as in
//! MariaDB: the privilege is only stored, shown and replicated.

use cohort_catalog::{AccountName, AdminOption};
use cohort_session::{SessionState, StatementContext};
use cohort_sql::ast::{Account as Name, Grant, Revoke};
use cohort_types::{SqlError, SqlResult};

use super::DdlOutcome;
use super::account::resolve;
use super::account_changes::{AccountChanges, no_such_account};
use super::grantee::{grantee, nonexisting};
use super::work::{LogText, commit};

/// Checks that the account may grant PROXY: on itself, or on accounts for which it has the grant option.
/// Error 1698 otherwise.
fn check_giver(session: &SessionState, proxied: &AccountName) -> SqlResult<()> {
    if session.identity.is_applier || *proxied == session.info.account {
        return Ok(());
    }
    let catalog = session.db.catalog();
    let own = catalog.accounts.get(&session.info.account);
    let covers = |(name, option): (&AccountName, &AdminOption)| {
        *option == AdminOption::With && (name.0.is_empty() || name.0 == proxied.0) && {
            name.1 == "%" || name.1.is_empty() || name.1.eq_ignore_ascii_case(&proxied.1)
        }
    };
    if own.is_some_and(|account| account.proxies.iter().any(covers)) {
        return Ok(());
    }
    Err(SqlError::access_denied_without_password(&session.info.user, &session.info.host))
}

pub(super) fn grant(ctx: &mut StatementContext<'_>, of: &Name, grant: &Grant) -> SqlResult<DdlOutcome> {
    let proxied = proxied(ctx.session, of);
    check_giver(ctx.session, &proxied)?;
    let mut book = AccountChanges::open(ctx)?;
    for user in &grant.users {
        let name = resolve(ctx.session, &user.account);
        if user.authentication.is_none() && book.find(&name).is_none_or(|account| account.is_role) {
            return Err(no_such_account());
        }
        let mut account = grantee(ctx.session, &book, name, user, &grant.options)?;
        let option = account.proxies.entry(proxied.clone()).or_insert(AdminOption::Without);
        if grant.grant_option {
            *option = AdminOption::With;
        }
        book.put(account);
    }
    commit(ctx, book.close(), LogText::AboutUsers)?;
    Ok(DdlOutcome::default())
}

pub(super) fn revoke(ctx: &mut StatementContext<'_>, of: &Name, revoke: &Revoke) -> SqlResult<DdlOutcome> {
    let proxied = proxied(ctx.session, of);
    check_giver(ctx.session, &proxied)?;
    let mut book = AccountChanges::open(ctx)?;
    for name in &revoke.accounts {
        let name = resolve(ctx.session, name);
        let mut account = book.find(&name).filter(|account| !account.is_role).ok_or_else(no_such_account)?;
        account.proxies.remove(&proxied).ok_or_else(|| nonexisting(&name))?;
        book.put(account);
    }
    commit(ctx, book.close(), LogText::AboutUsers)?;
    Ok(DdlOutcome::default())
}

/// Returns the account that may be impersonated. Without a user name the host has no meaning.
fn proxied(session: &SessionState, of: &Name) -> AccountName {
    match resolve(session, of) {
        (user, host) if user.is_empty() && host.is_empty() => (user, "%".to_owned()),
        name => name,
    }
}
