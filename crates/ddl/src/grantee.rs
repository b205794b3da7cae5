//! The account that a statement grants privileges or roles to.

use cohort_catalog::{Account, AccountName, PUBLIC};
use cohort_session::SessionState;
use cohort_session::access::check_schema;
use cohort_sql::ast::{Account as AccountWord, AccountOptions, UserSpec};
use cohort_types::{Privilege, SqlError, SqlMode, SqlResult};

use super::account::{authenticate, new_account, resolve, resolve_grantee, resolve_new};
use super::account_changes::{AccountChanges, no_such_account};
use super::account_rules;

/// Returns the name of the account that receives privileges: a user's, if the clauses are those of users.
pub(super) fn grantee_name(
    session: &SessionState,
    book: &AccountChanges,
    user: &UserSpec,
    options: &AccountOptions,
) -> SqlResult<AccountName> {
    match &user.account {
        AccountWord::NameAlone(alone)
            if describes_user(user, options) && !alone.eq_ignore_ascii_case(PUBLIC) =>
        {
            Ok(resolve(session, &user.account))
        }
        account => resolve_grantee(session, book, account),
    }
}

/// Returns whether a password or limits are given, which only a user has.
fn describes_user(user: &UserSpec, options: &AccountOptions) -> bool {
    user.authentication.is_some() || *options != AccountOptions::default()
}

/// Returns the account of this name that receives privileges. IDENTIFIED creates an account, and so does a
/// name without an account if sql_mode allows it. For existing accounts, IDENTIFIED changes the password, and
/// REQUIRE and limits change the account's rules. GRANT OPTION alone allows none of these.
pub(super) fn grantee(
    session: &SessionState,
    book: &AccountChanges,
    name: AccountName,
    user: &UserSpec,
    options: &AccountOptions,
) -> SqlResult<Account> {
    let is_user = describes_user(user, options);
    let mut account = match (book.find(&name), &user.authentication) {
        (Some(account), None) if !is_user => return Ok(account),
        (None, None) if session.settings.env.sql_mode.has(SqlMode::NO_AUTO_CREATE_USER) => {
            return Err(no_such_account());
        }
        (Some(account), _) if account.is_public() => return Err(SqlError::invalid_role(PUBLIC)),
        (Some(account), _) => {
            if name != session.info.account {
                check_schema(session, Privilege::Update, "mysql")?;
            }
            account
        }
        (None, _) => {
            let access = session.access();
            let is_allowed = access.everywhere().has(Privilege::CreateUser)
                || access.on_schema("mysql").has(Privilege::Insert);
            if !is_allowed {
                return Err(SqlError::may_not_create_user());
            }
            new_account(session, resolve_new(session, &user.account)?)
        }
    };
    if let Some(how) = &user.authentication {
        authenticate(session, &mut account, how)?;
    }
    account_rules::apply(&mut account.rules, options);
    Ok(account)
}

/// Returns error 1141.
pub(super) fn nonexisting((user, host): &AccountName) -> SqlError {
    SqlError::nonexisting_grant(user, host)
}
