//! CREATE, ALTER, DROP, RENAME USER, SET PASSWORD, SHOW CREATE USER.

use cohort_catalog::{Account, AccountName, AuthMethod, PUBLIC};
use cohort_protocol::{ED25519, Ed25519Key, NativePassword};
use cohort_session::access::check_schema;
use cohort_session::{SessionState, StatementContext};
use cohort_sql::ast::{
    Account as Name, AlterUser, AuthPlugin, Authentication, CreateMode, CreateUser, PasswordValue, UserSpec,
};
use cohort_sql::print::{quoted_name, quoted_text};
use cohort_types::{ErrorCode, Privilege, SqlError, SqlResult};

use super::DdlOutcome;
use super::account_changes::{AccountChanges, no_such_account, shown};
use super::account_rules::{self, GrantOption};
use super::password_check::{check_password, check_stored_form};
use super::work::{Changes, LogText, commit};
use crate::account_rules::stored_form;

const PLUGIN: &str = "mysql_native_password";
const SOCKET_PLUGIN: &str = "unix_socket";
/// Takes the place of a hash; matches no password.
const INVALID: &str = "invalid";
/// Maximum bytes of a user or host name in query events.
const NAME_BYTES_MAX: usize = 255;

/// Returns user and host of an account name.
pub fn resolve(session: &SessionState, name: &Name) -> AccountName {
    match name {
        Name::CurrentUser => session.info.account.clone(),
        Name::NameAlone(user) => (user.clone(), "%".to_owned()),
        Name::Named { user, host } => (user.clone(), host.clone()),
        // No user has this name. The parser accepts it where a role is allowed.
        Name::CurrentRole => (String::new(), String::new()),
    }
}

/// Resolves a name where a role is allowed: a name without a host denotes a role, if one exists. Error 1446
/// for CURRENT_ROLE without an active role, 1959 for one that has been dropped, and for NONE.
pub(super) fn resolve_grantee(
    session: &SessionState,
    pending: &AccountChanges,
    name: &Name,
) -> SqlResult<AccountName> {
    let role = |role: &str| (role.to_owned(), String::new());
    match name {
        Name::CurrentRole => {
            let malformed = || SqlError::invalid_definer();
            let current = session.identity.role.as_deref().ok_or_else(malformed)?;
            pending
                .find(&role(current))
                .map(|account| account.name)
                .ok_or_else(|| SqlError::invalid_role(current))
        }
        Name::NameAlone(alone) if alone.eq_ignore_ascii_case("NONE") => Err(SqlError::invalid_role(alone)),
        Name::NameAlone(alone) if alone.eq_ignore_ascii_case(PUBLIC) => Ok(role(PUBLIC)),
        Name::NameAlone(alone) if pending.find(&role(alone)).is_some() => Ok(role(alone)),
        name => Ok(resolve(session, name)),
    }
}

/// Resolves the name of a new account. The parser has checked its length in characters. Error 1470 if it has
/// more bytes than events can hold.
pub(super) fn resolve_new(session: &SessionState, name: &Name) -> SqlResult<AccountName> {
    if *name == Name::CurrentRole {
        return Err(SqlError::user_operation_failed("CREATE USER", "CURRENT_ROLE"));
    }
    let name = resolve(session, name);
    for (text, what) in [(&name.0, "user name"), (&name.1, "host name")] {
        if text.len() > NAME_BYTES_MAX {
            return Err(SqlError::string_too_long(text, what, NAME_BYTES_MAX));
        }
    }
    Ok(name)
}

fn hash_of(password: &str) -> String {
    stored_form(None, password.as_bytes())
}

/// Parses the stored form of a password. The word `invalid`, which matches no password, is accepted, too.
fn parse_hash(text: &str) -> SqlResult<String> {
    let bad = || SqlError::password_hash_length();
    match text {
        INVALID => Ok(text.to_owned()),
        text => NativePassword::parse(text).map(|password| password.to_string()).ok_or_else(bad),
    }
}

/// Parses the stored form of an ed25519 password: the public key.
fn parse_key(text: &str) -> SqlResult<String> {
    let bad = || SqlError::ed25519_hash_length();
    match text {
        // No password matches.
        "" | INVALID => Ok(text.to_owned()),
        text => Ed25519Key::parse(text).map(|key| key.to_string()).ok_or_else(bad),
    }
}

/// Converts one method of IDENTIFIED VIA. Error 1524 for an unknown plugin.
fn method(how: &AuthPlugin) -> SqlResult<AuthMethod> {
    let name = how.plugin.to_ascii_lowercase();
    let text = match (name.as_str(), &how.using, &how.password) {
        (PLUGIN, _, Some(password)) => hash_of(password),
        (PLUGIN, Some(hash), None) => parse_hash(hash)?,
        (ED25519, _, Some(password)) => stored_form(Some(ED25519), password.as_bytes()),
        (ED25519, using, None) => parse_key(using.as_deref().unwrap_or_default())?,
        (PLUGIN | SOCKET_PLUGIN, ..) => String::new(),
        _ => return Err(SqlError::plugin_not_loaded(&how.plugin)),
    };
    Ok(AuthMethod { plugin: name, text })
}

/// Sets the authentication methods of the account.
pub(super) fn authenticate(
    session: &SessionState,
    account: &mut Account,
    how: &Authentication,
) -> SqlResult<()> {
    check_secrets(session, &account.name.0, how)?;
    account.methods = match how {
        Authentication::Password(text) => vec![AuthMethod::password(hash_of(text))],
        Authentication::PasswordHash(hash) => vec![AuthMethod::password(parse_hash(hash)?)],
        Authentication::Plugins(plugins) => plugins.iter().map(method).collect::<SqlResult<_>>()?,
    };
    account.rules.password_changed_at = now_s(session);
    Ok(())
}

/// Returns errors 1819 and 1290 for unacceptable new passwords.
fn check_secrets(session: &SessionState, user: &str, how: &Authentication) -> SqlResult<()> {
    match how {
        Authentication::Password(text) => check_password(session, user, text),
        Authentication::PasswordHash(_) => check_stored_form(session),
        Authentication::Plugins(plugins) => plugins.iter().try_for_each(|plugin| {
            let is_socket = plugin.plugin.eq_ignore_ascii_case(SOCKET_PLUGIN);
            match (&plugin.password, &plugin.using) {
                _ if is_socket => Ok(()),
                (Some(password), _) => check_password(session, user, password),
                (None, Some(_)) => check_stored_form(session),
                (None, None) => check_password(session, user, ""),
            }
        }),
    }
}

fn now_s(session: &SessionState) -> u64 {
    session.db.clock.wall_us() / 1_000_000
}

/// Creates an account whose password age starts now.
pub(super) fn new_account(session: &SessionState, name: AccountName) -> Account {
    let mut account = Account::new(name);
    account.rules.password_changed_at = now_s(session);
    account
}

/// Returns the form in which a statement about these users is logged: with the client if CURRENT_USER means
/// it.
fn log_text<'n>(mut names: impl Iterator<Item = &'n Name>) -> LogText {
    match names.any(|name| *name == Name::CurrentUser) {
        true => LogText::AboutUsers,
        false => LogText::Accounts,
    }
}

/// Commits the successful part. The error names the failed part.
pub(super) fn finish(
    ctx: &mut StatementContext<'_>,
    pending: AccountChanges,
    failed: &[String],
    (operation, log): (&str, LogText),
) -> SqlResult<DdlOutcome> {
    let changes = pending.close();
    let failed = (!failed.is_empty()).then(|| SqlError::user_operation_failed(operation, &failed.join(",")));
    match failed {
        Some(error) if changes.catalog.is_empty() => Err(error),
        failed => commit(ctx, changes.failing(failed), log).map(|()| DdlOutcome::default()),
    }
}

/// Stops the list at an account that is refused. The accounts before it are committed, as in MariaDB, whose
/// replicas expect this.
fn stop(
    ctx: &mut StatementContext<'_>,
    pending: AccountChanges,
    error: SqlError,
    log: LogText,
) -> SqlResult<DdlOutcome> {
    let changes = pending.close();
    if changes.catalog.is_empty() {
        return Err(error);
    }
    commit(ctx, changes.failing(Some(error)), log).map(|()| DdlOutcome::default())
}

/// Adds the note that ALTER USER IF EXISTS returns instead of an error.
fn note(ctx: &StatementContext<'_>, operation: &str, name: &AccountName) {
    let error = SqlError::user_operation_failed(operation, &shown(name));
    ctx.eval.note(error.code, error.message);
}

/// Adds the note that CREATE USER IF NOT EXISTS returns instead of an error.
fn note_exists(ctx: &StatementContext<'_>, name: &AccountName) {
    let text = format!("Can't create user {}; it already exists", shown(name));
    ctx.eval.note(ErrorCode::UserCreateExists, text);
}

/// Adds the note that DROP USER IF EXISTS returns instead of an error.
fn note_missing(ctx: &StatementContext<'_>, name: &AccountName) {
    let text = format!("Can't drop user {}; it doesn't exist", shown(name));
    ctx.eval.note(ErrorCode::UserDropExists, text);
}

pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateUser) -> SqlResult<DdlOutcome> {
    let mut pending = AccountChanges::open(ctx)?;
    let mut failed = Vec::new();
    for UserSpec { account: name, authentication } in &create.users {
        let name = resolve_new(ctx.session, name)?;
        if pending.find(&name).is_some() {
            match create.mode {
                CreateMode::Create => failed.push(shown(&name)),
                CreateMode::IfNotExists => note_exists(ctx, &name),
                CreateMode::OrReplace => {}
            }
            if create.mode != CreateMode::OrReplace {
                continue;
            }
        }
        let mut account = new_account(ctx.session, name);
        let authenticated = match authentication {
            Some(how) => authenticate(ctx.session, &mut account, how),
            None => check_password(ctx.session, &account.name.0, ""),
        };
        if let Err(error) = authenticated {
            return stop(ctx, pending, error, LogText::Accounts);
        }
        account_rules::apply(&mut account.rules, &create.options);
        pending.put(account);
    }
    finish(ctx, pending, &failed, ("CREATE USER", LogText::Accounts))
}

pub(super) fn alter(ctx: &mut StatementContext<'_>, alter: &AlterUser) -> SqlResult<DdlOutcome> {
    let mut pending = AccountChanges::open(ctx)?;
    let (mut altered, mut failed) = (Vec::new(), Vec::new());
    let log = || log_text(alter.users.iter().map(|user| &user.account));
    let before = ctx.trx.last_ordered();
    for UserSpec { account: name, authentication } in &alter.users {
        let name = resolve(ctx.session, name);
        let Some(mut account) = pending.find(&name) else {
            match alter.if_exists {
                true => note(ctx, "ALTER USER", &name),
                false => failed.push(shown(&name)),
            }
            continue;
        };
        if let Some(how) = authentication
            && let Err(error) = authenticate(ctx.session, &mut account, how)
        {
            return stop(ctx, pending, error, log());
        }
        account_rules::apply(&mut account.rules, &alter.options);
        altered.push(account.name.clone());
        pending.put(account);
    }
    let outcome = finish(ctx, pending, &failed, ("ALTER USER", log()));
    // Altered accounts are unblocked even if other accounts of the list did not exist.
    if outcome.is_ok() || ctx.trx.last_ordered() > before {
        altered.iter().for_each(|name| ctx.db.account_usages.unblock_one(name));
    }
    outcome
}

pub(super) fn drop(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    accounts: &[Name],
) -> SqlResult<DdlOutcome> {
    let mut pending = AccountChanges::open(ctx)?;
    let mut failed = Vec::new();
    for name in accounts {
        let name = resolve(ctx.session, name);
        if pending.find(&name).is_some() {
            pending.remove(name);
        } else if if_exists {
            note_missing(ctx, &name);
        } else {
            failed.push(shown(&name));
        }
    }
    finish(ctx, pending, &failed, ("DROP USER", log_text(accounts.iter())))
}

pub(super) fn rename(ctx: &mut StatementContext<'_>, pairs: &[(Name, Name)]) -> SqlResult<DdlOutcome> {
    let mut pending = AccountChanges::open(ctx)?;
    let mut failed = Vec::new();
    for (from, to) in pairs {
        let (from, to) = (resolve(ctx.session, from), resolve_new(ctx.session, to)?);
        let Some(account) = pending.find(&from).filter(|_| pending.find(&to).is_none()) else {
            failed.push(shown(&from));
            continue;
        };
        pending.remove(from);
        pending.put(Account { name: to, ..account });
    }
    let names = pairs.iter().flat_map(|(from, to)| [from, to]);
    finish(ctx, pending, &failed, ("RENAME USER", log_text(names)))
}

/// Runs SET PASSWORD. For another account it requires the privilege to write the table of accounts.
pub fn set_password(
    ctx: &mut StatementContext<'_>,
    name: Option<&Name>,
    password: &PasswordValue,
) -> SqlResult<()> {
    let own = ctx.session.info.account.clone();
    let name = name.map_or_else(|| own.clone(), |name| resolve(ctx.session, name));
    if name != own {
        check_schema(ctx.session, Privilege::Update, "mysql")?;
    }
    if ctx.trx.may_only_read(false) {
        return Err(SqlError::read_only_transaction());
    }
    let outcome = change_password(ctx, &name, password);
    ctx.trx.rollback();
    if let (true, Ok(()), Some(account_limits)) =
        (name == own, &outcome, &ctx.session.identity.account_limits)
    {
        account_limits.password_changed();
    }
    outcome
}

fn change_password(
    ctx: &mut StatementContext<'_>,
    name: &AccountName,
    password: &PasswordValue,
) -> SqlResult<()> {
    let mut pending = AccountChanges::open(ctx)?;
    let mut account = pending.find(name).ok_or_else(no_such_account)?;
    let hash = match password {
        PasswordValue::Plain(text) => {
            check_password(ctx.session, &name.0, text)?;
            hash_of(text)
        }
        PasswordValue::Hash(hash) => {
            check_stored_form(ctx.session)?;
            parse_hash(hash)?
        }
    };
    let Some(method) = account.methods.iter_mut().find(|method| method.plugin == PLUGIN) else {
        let plugin = account.methods.first().map_or("", |method| method.plugin.as_str());
        return Err(SqlError::no_password_of_plugin(plugin));
    };
    method.text = hash.clone();
    account.rules.password_changed_at = now_s(ctx.session);
    let [user, host, hash] = [&name.0, &name.1, &hash].map(|text| quoted_text(text));
    let text = format!("SET PASSWORD FOR {user}@{host}={hash}");
    pending.put(account);
    let changes: Changes = pending.close();
    commit(ctx, changes, LogText::Own(text))
}

/// Returns the authentication methods as shown by SHOW CREATE USER and SHOW GRANTS, with a leading space.
pub(super) fn identified_by(account: &Account) -> String {
    match account.methods.as_slice() {
        [AuthMethod { plugin, text }] if plugin == PLUGIN && text.is_empty() => String::new(),
        [AuthMethod { plugin, text }] if plugin == PLUGIN && text != INVALID => {
            format!(" IDENTIFIED BY PASSWORD '{text}'")
        }
        // A role.
        [] => String::new(),
        methods => {
            let written = methods.iter().map(|AuthMethod { plugin, text }| match text.is_empty() {
                true => plugin.clone(),
                false => format!("{plugin} USING '{text}'"),
            });
            format!(" IDENTIFIED VIA {}", written.collect::<Vec<_>>().join(" OR "))
        }
    }
}

/// Returns the title and the lines of SHOW CREATE USER; error 1133. A password that was expired manually and
/// also has a lifetime takes two statements.
pub fn create_user_lines(session: &SessionState, name: Option<&Name>) -> SqlResult<(String, Vec<String>)> {
    let name = name.map_or_else(|| session.info.account.clone(), |name| resolve(session, name));
    let catalog = session.db.catalog();
    let account = catalog.accounts.get(&name).ok_or_else(no_such_account)?;
    let (user, host) = &name;
    let who = format!("{}@{}", quoted_name(user), quoted_name(host));
    let rules = &account.rules;
    let (expired, lifetime) = (account_rules::expired(rules), account_rules::lifetime(rules));
    let mut line = format!("CREATE USER {who}{}", identified_by(account));
    line += &account_rules::require_and_limits(rules, GrantOption::None);
    line += account_rules::lock(rules);
    line += if expired.is_empty() { &lifetime } else { expired };
    let mut lines = vec![line];
    if !expired.is_empty() && !lifetime.is_empty() {
        lines.push(format!("ALTER USER {who}{lifetime}"));
    }
    Ok((format!("CREATE USER for {user}@{host}"), lines))
}
