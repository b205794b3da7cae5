//! CREATE, ALTER, DROP, RENAME USER, SET PASSWORD.

use cohort_base::CommitSeq;
use cohort_catalog::{Account, Catalog, CatalogChange};
use cohort_protocol::NativePassword;
use cohort_sql::ast::{
    Account as Name, AccountOptions, AlterUser, Authentication, CreateMode, CreateUser, PasswordValue,
    UserSpec,
};
use cohort_sql::print::quoted_text;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use super::DdlOutcome;
use super::privilege::{check_privilege, no_such_account};
use super::work::{Changes, LogText, catalog, commit, not_supported};
use crate::session_state::SessionState;
use crate::statement::StatementContext;

const PLUGIN: &str = "mysql_native_password";

/// User and host of a name.
pub(super) fn resolve(session: &SessionState, name: &Name) -> (String, String) {
    match name {
        Name::CurrentUser => session.info.account.clone(),
        Name::Named { user, host } => (user.clone(), host.clone()),
    }
}

pub(super) fn find<'c>(catalog: &'c Catalog, (user, host): &(String, String)) -> Option<&'c Account> {
    catalog.accounts.iter().find(|a| a.user == *user && a.host == *host)
}

fn shown((user, host): &(String, String)) -> String {
    format!("'{user}'@'{host}'")
}

/// The account with nothing but its name.
pub(super) fn empty((user, host): &(String, String)) -> Account {
    Account {
        user: user.clone(),
        host: host.clone(),
        plugin: PLUGIN.to_owned(),
        auth: Vec::new(),
        privileges: Vec::new(),
        schema_privileges: Default::default(),
    }
}

fn hash_of(password: &str) -> Vec<u8> {
    stored(NativePassword::of(password.as_bytes()))
}

fn stored(password: NativePassword) -> Vec<u8> {
    match password {
        NativePassword::Empty => Vec::new(),
        NativePassword::Hash(hash) => hash.to_vec(),
    }
}

fn parse_hash(text: &str) -> SqlResult<Vec<u8>> {
    let bad =
        || SqlError::new(ErrorCode::PasswordLength, "Password hash should be a 41-digit hexadecimal number");
    NativePassword::parse(text).map(stored).ok_or_else(bad)
}

/// What the account is to be recognised by.
pub(super) fn authenticate(account: &mut Account, how: &Authentication) -> SqlResult<()> {
    account.auth = match how {
        Authentication::Password(text) => hash_of(text),
        Authentication::PasswordHash(hash) => parse_hash(hash)?,
        Authentication::Plugins(plugins) => {
            let known = plugins.iter().find(|p| p.plugin.eq_ignore_ascii_case(PLUGIN));
            let Some(plugin) = known else {
                let name = plugins.first().map_or("", |p| p.plugin.as_str());
                return Err(SqlError::new(
                    ErrorCode::PluginIsNotLoaded,
                    format!("Plugin '{name}' is not loaded"),
                ));
            };
            match (&plugin.using, &plugin.password) {
                (_, Some(password)) => hash_of(password),
                (Some(hash), None) => parse_hash(hash)?,
                (None, None) => Vec::new(),
            }
        }
    };
    Ok(())
}

/// Refuses what would be promised and not kept.
pub(super) fn check_options(options: &AccountOptions) -> SqlResult<()> {
    if options.require.iter().any(|(what, _)| what != "NONE") {
        return Err(not_supported("REQUIRE SSL"));
    }
    if options.limits.iter().any(|(_, n)| *n > 0) {
        return Err(not_supported("account resource limits"));
    }
    if options.locked == Some(true) || options.password_expire {
        return Err(not_supported("ACCOUNT LOCK / PASSWORD EXPIRE"));
    }
    Ok(())
}

/// Commits what worked; the error names what did not.
fn finish(
    ctx: &mut StatementContext<'_>,
    changes: Changes,
    failed: &[String],
    operation: &str,
) -> SqlResult<DdlOutcome> {
    if !changes.catalog.is_empty() || failed.is_empty() {
        commit(ctx, changes, LogText::AsWritten)?;
    }
    match failed {
        [] => Ok(DdlOutcome::default()),
        failed => Err(SqlError::user_operation_failed(operation, &failed.join(","))),
    }
}

pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateUser) -> SqlResult<DdlOutcome> {
    check_options(&create.options)?;
    let catalog = catalog(ctx);
    let (mut changes, mut failed) = (Changes::default(), Vec::new());
    for UserSpec { account: name, authentication } in &create.users {
        let name = resolve(ctx.session, name);
        if find(&catalog, &name).is_some() {
            match create.mode {
                CreateMode::Create => failed.push(shown(&name)),
                CreateMode::IfNotExists => {
                    let error = SqlError::user_operation_failed("CREATE USER", &shown(&name));
                    ctx.eval.note(error.code, error.message);
                }
                CreateMode::OrReplace => {}
            }
            if create.mode != CreateMode::OrReplace {
                continue;
            }
        }
        let mut account = empty(&name);
        if let Some(how) = authentication {
            authenticate(&mut account, how)?;
        }
        changes.catalog.push(CatalogChange::PutAccount(account));
    }
    finish(ctx, changes, &failed, "CREATE USER")
}

pub(super) fn alter(ctx: &mut StatementContext<'_>, alter: &AlterUser) -> SqlResult<DdlOutcome> {
    check_options(&alter.options)?;
    let catalog = catalog(ctx);
    let (mut changes, mut failed) = (Changes::default(), Vec::new());
    for UserSpec { account: name, authentication } in &alter.users {
        let name = resolve(ctx.session, name);
        let Some(account) = find(&catalog, &name) else {
            let error = SqlError::user_operation_failed("ALTER USER", &shown(&name));
            match alter.if_exists {
                true => ctx.eval.note(error.code, error.message),
                false => failed.push(shown(&name)),
            }
            continue;
        };
        let mut account = account.clone();
        if let Some(how) = authentication {
            authenticate(&mut account, how)?;
        }
        changes.catalog.push(CatalogChange::PutAccount(account));
    }
    finish(ctx, changes, &failed, "ALTER USER")
}

pub(super) fn drop(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    accounts: &[Name],
) -> SqlResult<DdlOutcome> {
    let catalog = catalog(ctx);
    let (mut changes, mut failed) = (Changes::default(), Vec::new());
    for name in accounts {
        let name = resolve(ctx.session, name);
        if find(&catalog, &name).is_some() {
            let (user, host) = name;
            changes.catalog.push(CatalogChange::DropAccount { user, host });
        } else if if_exists {
            let error = SqlError::user_operation_failed("DROP USER", &shown(&name));
            ctx.eval.note(error.code, error.message);
        } else {
            failed.push(shown(&name));
        }
    }
    finish(ctx, changes, &failed, "DROP USER")
}

pub(super) fn rename(ctx: &mut StatementContext<'_>, pairs: &[(Name, Name)]) -> SqlResult<DdlOutcome> {
    let mut now = Catalog::clone(&catalog(ctx));
    let (mut changes, mut failed) = (Changes::default(), Vec::new());
    for (from, to) in pairs {
        let (from, to) = (resolve(ctx.session, from), resolve(ctx.session, to));
        let Some(account) = find(&now, &from).cloned().filter(|_| find(&now, &to).is_none()) else {
            failed.push(shown(&from));
            continue;
        };
        let renamed = Account { user: to.0, host: to.1, ..account };
        let steps =
            [CatalogChange::DropAccount { user: from.0, host: from.1 }, CatalogChange::PutAccount(renamed)];
        now.apply(CommitSeq(0), steps.to_vec());
        changes.catalog.extend(steps);
    }
    finish(ctx, changes, &failed, "RENAME USER")
}

/// SET PASSWORD.
pub(crate) fn set_password(
    ctx: &mut StatementContext<'_>,
    name: Option<&Name>,
    password: &PasswordValue,
) -> SqlResult<()> {
    let own = ctx.session.info.account.clone();
    let name = name.map_or_else(|| own.clone(), |name| resolve(ctx.session, name));
    if name != own {
        check_privilege(ctx.session, "CREATE USER", None, None)?;
    }
    let mut account = find(&catalog(ctx), &name).cloned().ok_or_else(no_such_account)?;
    account.auth = match password {
        PasswordValue::Plain(text) => hash_of(text),
        PasswordValue::Hash(hash) => parse_hash(hash)?,
    };
    let hash = quoted_text(&hash_text(&account));
    let (user, host) = (quoted_text(&account.user), quoted_text(&account.host));
    let text = format!("SET PASSWORD FOR {user}@{host}={hash}");
    let outcome = commit(ctx, Changes::one(CatalogChange::PutAccount(account)), LogText::Instead(text));
    ctx.trx.rollback();
    outcome
}

/// `*` and 40 digits, or nothing.
pub(super) fn hash_text(account: &Account) -> String {
    if account.auth.is_empty() {
        return String::new();
    }
    let digits: String = account.auth.iter().map(|b| format!("{b:02X}")).collect();
    format!("*{digits}")
}
