//! CREATE ROLE, DROP ROLE; GRANT, REVOKE and SET DEFAULT of roles.
//!
//! A role is an account with an empty host, without a login. An account that has a role WITH ADMIN OPTION,
//! directly or by its active role, may grant and revoke it.

use cohort_catalog::{Account, AccountName, AdminOption, PUBLIC};
use cohort_session::access::{check_global, check_schema};
use cohort_session::{SessionState, StatementContext};
use cohort_sql::ast::{
    Account as Name, AccountOptions, CreateMode, CreateRole, DropRole, Grant, GrantLevel, Privilege as Word,
    Revoke,
};
use cohort_sql::print::quoted_text;
use cohort_types::{ErrorCode, Privilege, SqlError, SqlResult};

use super::DdlOutcome;
use super::account::{finish, resolve, resolve_grantee};
use super::account_changes::{AccountChanges, no_such_account};
use super::grantee::{grantee, grantee_name};
use super::work::{LogText, commit};

fn role_name(role: &str) -> AccountName {
    (role.to_owned(), String::new())
}

fn new_role(role: &str) -> Account {
    Account { methods: Vec::new(), is_role: true, ..Account::new(role_name(role)) }
}

/// Formats `'role'`, or `'user'@'host'`.
fn shown(name: &AccountName) -> String {
    match name.1.is_empty() {
        true => format!("'{}'", name.0),
        false => super::account_changes::shown(name),
    }
}

pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateRole) -> SqlResult<DdlOutcome> {
    let mut pending = AccountChanges::open(ctx)?;
    let own = ctx.session.info.account.clone();
    let admin = match &create.admin {
        None => own.clone(),
        Some(name) => {
            let name = resolve_grantee(ctx.session, &pending, name)?;
            if name != own {
                check_global(
                    ctx.session,
                    cohort_types::Privileges::from(Privilege::Super).with(Privilege::SetUser),
                )?;
            }
            if pending.find(&name).is_none() {
                let text =
                    format!("The user specified as a definer ('{}'@'{}') does not exist", name.0, name.1);
                ctx.eval.note(ErrorCode::NoSuchUser, text);
            }
            name
        }
    };
    let mut failed = Vec::new();
    for role in &create.roles {
        if pending.find(&role_name(role)).is_some() {
            match create.mode {
                CreateMode::Create => failed.push(format!("'{role}'")),
                CreateMode::IfNotExists => {
                    let text = format!("Can't create role '{role}'; it already exists");
                    ctx.eval.note(ErrorCode::RoleCreateExists, text);
                }
                CreateMode::OrReplace => take_from_all(&mut pending, role),
            }
            if create.mode != CreateMode::OrReplace {
                continue;
            }
        }
        pending.put(new_role(role));
        // The administrating account need not exist.
        if let Some(mut admin) = pending.find(&admin) {
            admin.roles.insert(role.clone(), AdminOption::With);
            pending.put(admin);
        }
    }
    finish(ctx, pending, &failed, ("CREATE ROLE", LogText::AboutUsers))
}

pub(super) fn remove(ctx: &mut StatementContext<'_>, drop: &DropRole) -> SqlResult<DdlOutcome> {
    let mut pending = AccountChanges::open(ctx)?;
    let mut failed = Vec::new();
    for role in &drop.roles {
        let role = match (role, &ctx.session.identity.role) {
            (Name::CurrentRole, None) => {
                failed.push("CURRENT_ROLE".to_owned());
                continue;
            }
            (Name::CurrentRole, Some(current)) => current.clone(),
            (role, _) => resolve(ctx.session, role).0,
        };
        let role = &role;
        if role == PUBLIC {
            failed.push(PUBLIC.to_owned());
        } else if pending.find(&role_name(role)).is_some_and(|account| account.is_role) {
            take_from_all(&mut pending, role);
            pending.remove(role_name(role));
        } else if drop.if_exists {
            let text = format!("Can't drop role '{role}'; it doesn't exist");
            ctx.eval.note(ErrorCode::RoleDropExists, text);
        } else {
            failed.push(format!("'{role}'"));
        }
    }
    finish(ctx, pending, &failed, ("DROP ROLE", LogText::AboutUsers))
}

/// Revokes the role from all accounts.
fn take_from_all(pending: &mut AccountChanges, role: &str) {
    let names: Vec<AccountName> = pending.catalog.accounts.keys().cloned().collect();
    for name in names {
        if let Some(mut account) = pending.find(&name)
            && account.roles.remove(role).is_some()
        {
            pending.put(account);
        }
    }
}

/// Returns the role that the statement names, which must exist: error 1959.
fn named(pending: &AccountChanges, words: &[Word]) -> SqlResult<String> {
    let role = words.first().map_or("", |word| word.name.as_str());
    if let Some(word) = [PUBLIC, "NONE"].into_iter().find(|word| role.eq_ignore_ascii_case(word)) {
        return Err(SqlError::invalid_role(word));
    }
    match pending.find(&role_name(role)) {
        Some(account) if account.is_role => Ok(role.to_owned()),
        _ => Err(SqlError::invalid_role(role)),
    }
}

/// Returns error 1698 for an account that may not grant the role.
fn check_admin(session: &SessionState, pending: &AccountChanges, role: &str) -> SqlResult<()> {
    let own = session.info.account.clone();
    let holders = [Some(own.clone()), session.identity.role.as_deref().map(role_name)];
    let may = holders.into_iter().flatten().filter_map(|name| pending.find(&name));
    if session.identity.is_applier || may.into_iter().any(|it| it.roles.get(role) == Some(&AdminOption::With))
    {
        return Ok(());
    }
    Err(SqlError::access_denied_without_password(&own.0, &own.1))
}

/// Returns whether a role includes another, directly or through roles granted to it.
fn leads_to(pending: &AccountChanges, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (Vec::new(), vec![from.to_owned()]);
    while let Some(role) = open.pop() {
        if role == to {
            return true;
        }
        if !seen.contains(&role) {
            open.extend(pending.find(&role_name(&role)).into_iter().flat_map(|it| it.roles.into_keys()));
            seen.push(role);
        }
    }
    false
}

/// Returns error 1959 for CURRENT_ROLE without an active role as the account that gains or loses a role.
fn check_holder(session: &SessionState, name: &Name) -> SqlResult<()> {
    match name {
        Name::CurrentRole if session.identity.role.is_none() => Err(SqlError::invalid_role("NONE")),
        _ => Ok(()),
    }
}

/// Runs GRANT role TO ..; errors 1959, 1698, 1133, 1961.
pub(super) fn grant(ctx: &mut StatementContext<'_>, grant: &Grant) -> SqlResult<DdlOutcome> {
    let mut pending = AccountChanges::open(ctx)?;
    let role = named(&pending, &grant.privileges)?;
    check_admin(ctx.session, &pending, &role)?;
    for user in &grant.users {
        check_holder(ctx.session, &user.account)?;
        let name = grantee_name(ctx.session, &pending, user, &AccountOptions::default())?;
        let mut account = grantee(ctx.session, &pending, name, user, &AccountOptions::default())?;
        if account.is_role && leads_to(&pending, &role, &account.name.0) {
            return Err(SqlError::cannot_grant_role(&role, &shown(&account.name)));
        }
        let held = account.roles.entry(role.clone()).or_insert(AdminOption::Without);
        if grant.grant_option {
            *held = AdminOption::With;
        }
        pending.put(account);
    }
    commit(ctx, pending.close(), LogText::AboutUsers)?;
    Ok(DdlOutcome::default())
}

/// Runs REVOKE [ADMIN OPTION FOR] role FROM ..; errors 1959, 1698, 1962.
pub(super) fn revoke(ctx: &mut StatementContext<'_>, revoke: &Revoke) -> SqlResult<DdlOutcome> {
    let mut pending = AccountChanges::open(ctx)?;
    let role = named(&pending, &revoke.privileges)?;
    check_admin(ctx.session, &pending, &role)?;
    for name in &revoke.accounts {
        check_holder(ctx.session, name)?;
        let name = resolve_grantee(ctx.session, &pending, name)?;
        let cannot = || SqlError::cannot_revoke_role(&role, &shown(&name));
        let mut account = pending.find(&name).ok_or_else(cannot)?;
        let held = account.roles.get_mut(&role).ok_or_else(cannot)?;
        match revoke.level {
            GrantLevel::RoleAdmin => *held = AdminOption::Without,
            _ => drop(account.roles.remove(&role)),
        }
        pending.put(account);
    }
    commit(ctx, pending.close(), LogText::AboutUsers)?;
    Ok(DdlOutcome::default())
}

/// Runs SET DEFAULT ROLE. For another account it requires the privilege to write the table of accounts. Error
/// 1959 if the account does not have the role.
pub fn set_default_role(
    ctx: &mut StatementContext<'_>,
    role: Option<&Name>,
    account: Option<&Name>,
) -> SqlResult<()> {
    let role = match role {
        None => None,
        Some(Name::CurrentRole) => ctx.session.identity.role.clone(),
        Some(role) => Some(resolve(ctx.session, role).0),
    };
    let own = ctx.session.info.account.clone();
    let name = account.map_or_else(|| own.clone(), |name| resolve(ctx.session, name));
    if name != own {
        check_schema(ctx.session, Privilege::Update, "mysql")?;
    }
    if ctx.trx.may_only_read(false) {
        return Err(SqlError::read_only_transaction());
    }
    let outcome = change_default_role(ctx, &name, role.as_deref());
    ctx.trx.rollback();
    outcome
}

fn change_default_role(
    ctx: &mut StatementContext<'_>,
    name: &AccountName,
    role: Option<&str>,
) -> SqlResult<()> {
    let mut pending = AccountChanges::open(ctx)?;
    let role = role.unwrap_or("");
    if !role.is_empty() && !ctx.session.knows_role(role) {
        return Err(SqlError::invalid_role(role));
    }
    let mut account = pending.find(name).ok_or_else(no_such_account)?;
    if !role.is_empty() && !account.roles.contains_key(role) {
        return Err(SqlError::role_not_granted(&name.0, &name.1, role));
    }
    account.default_role = role.to_owned();
    pending.put(account);
    let quoted = quoted_text;
    let role = if role.is_empty() { "NONE".to_owned() } else { quoted(role) };
    let (user, host) = (quoted(&name.0), quoted(&name.1));
    let text = format!("SET DEFAULT ROLE {role} FOR {user}@{host}");
    commit(ctx, pending.close(), LogText::Own(text))
}
