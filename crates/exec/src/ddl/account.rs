//! CREATE, ALTER, DROP, RENAME USER, SET PASSWORD, SHOW CREATE USER.

use cohort_catalog::{Account, AccountName};
use cohort_protocol::NativePassword;
use cohort_sql::ast::{
    Account as Name, AccountOptions, AlterUser, Authentication, CreateMode, CreateUser, PasswordValue,
    UserSpec,
};
use cohort_sql::print::{quoted_name, quoted_text};
use cohort_types::{ErrorCode, Privilege, SqlError, SqlResult};

use super::DdlOutcome;
use super::account_book::{AccountBook, no_such_account, shown};
use super::work::{Changes, LogText, commit, not_supported};
use crate::access::check_schema;
use crate::session_state::SessionState;
use crate::statement::StatementContext;

const PLUGIN: &str = "mysql_native_password";
/// Query events name a user and a host in as many bytes.
const NAME_BYTES_MAX: usize = 255;

/// User and host of a name.
pub(super) fn resolve(session: &SessionState, name: &Name) -> AccountName {
    match name {
        Name::CurrentUser => session.info.account.clone(),
        Name::Named { user, host } => (user.clone(), host.clone()),
    }
}

/// The name of an account that is about to be made; how many characters it has the parser has seen. Error
/// 1470 for more bytes than events have room for.
pub(super) fn resolve_new(session: &SessionState, name: &Name) -> SqlResult<AccountName> {
    let name = resolve(session, name);
    for (text, what) in [(&name.0, "user name"), (&name.1, "host name")] {
        if text.len() > NAME_BYTES_MAX {
            return Err(SqlError::string_too_long(text, what, NAME_BYTES_MAX));
        }
    }
    Ok(name)
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
    book: AccountBook,
    failed: &[String],
    operation: &str,
) -> SqlResult<DdlOutcome> {
    let changes = book.close();
    if !changes.catalog.is_empty() || failed.is_empty() {
        commit(ctx, changes, LogText::AsWritten)?;
    }
    match failed {
        [] => Ok(DdlOutcome::default()),
        failed => Err(SqlError::user_operation_failed(operation, &failed.join(","))),
    }
}

/// What IF EXISTS and IF NOT EXISTS say instead of an error.
fn note(ctx: &StatementContext<'_>, operation: &str, name: &AccountName) {
    let error = SqlError::user_operation_failed(operation, &shown(name));
    ctx.eval.note(error.code, error.message);
}

pub(super) fn create(ctx: &mut StatementContext<'_>, create: &CreateUser) -> SqlResult<DdlOutcome> {
    check_options(&create.options)?;
    let mut book = AccountBook::open(ctx)?;
    let mut failed = Vec::new();
    for UserSpec { account: name, authentication } in &create.users {
        let name = resolve_new(ctx.session, name)?;
        if book.find(&name).is_some() {
            match create.mode {
                CreateMode::Create => failed.push(shown(&name)),
                CreateMode::IfNotExists => note(ctx, "CREATE USER", &name),
                CreateMode::OrReplace => {}
            }
            if create.mode != CreateMode::OrReplace {
                continue;
            }
        }
        let mut account = Account::new(name);
        if let Some(how) = authentication {
            authenticate(&mut account, how)?;
        }
        book.put(account);
    }
    finish(ctx, book, &failed, "CREATE USER")
}

pub(super) fn alter(ctx: &mut StatementContext<'_>, alter: &AlterUser) -> SqlResult<DdlOutcome> {
    check_options(&alter.options)?;
    let mut book = AccountBook::open(ctx)?;
    let mut failed = Vec::new();
    for UserSpec { account: name, authentication } in &alter.users {
        let name = resolve(ctx.session, name);
        let Some(mut account) = book.find(&name) else {
            match alter.if_exists {
                true => note(ctx, "ALTER USER", &name),
                false => failed.push(shown(&name)),
            }
            continue;
        };
        if let Some(how) = authentication {
            authenticate(&mut account, how)?;
        }
        book.put(account);
    }
    finish(ctx, book, &failed, "ALTER USER")
}

pub(super) fn drop(
    ctx: &mut StatementContext<'_>,
    if_exists: bool,
    accounts: &[Name],
) -> SqlResult<DdlOutcome> {
    let mut book = AccountBook::open(ctx)?;
    let mut failed = Vec::new();
    for name in accounts {
        let name = resolve(ctx.session, name);
        if book.find(&name).is_some() {
            book.remove(name);
        } else if if_exists {
            note(ctx, "DROP USER", &name);
        } else {
            failed.push(shown(&name));
        }
    }
    finish(ctx, book, &failed, "DROP USER")
}

pub(super) fn rename(ctx: &mut StatementContext<'_>, pairs: &[(Name, Name)]) -> SqlResult<DdlOutcome> {
    let mut book = AccountBook::open(ctx)?;
    let mut failed = Vec::new();
    for (from, to) in pairs {
        let (from, to) = (resolve(ctx.session, from), resolve_new(ctx.session, to)?);
        let Some(account) = book.find(&from).filter(|_| book.find(&to).is_none()) else {
            failed.push(shown(&from));
            continue;
        };
        book.remove(from);
        book.put(Account { name: to, ..account });
    }
    finish(ctx, book, &failed, "RENAME USER")
}

/// SET PASSWORD: of another's account, for an account that may write the table of accounts.
pub(crate) fn set_password(
    ctx: &mut StatementContext<'_>,
    name: Option<&Name>,
    password: &PasswordValue,
) -> SqlResult<()> {
    let own = ctx.session.info.account.clone();
    let name = name.map_or_else(|| own.clone(), |name| resolve(ctx.session, name));
    if name != own {
        check_schema(ctx.session, Privilege::Update, "mysql")?;
    }
    if ctx.trx.may_only_read() {
        return Err(SqlError::read_only_transaction());
    }
    let outcome = change_password(ctx, &name, password);
    ctx.trx.rollback();
    outcome
}

fn change_password(
    ctx: &mut StatementContext<'_>,
    name: &AccountName,
    password: &PasswordValue,
) -> SqlResult<()> {
    let mut book = AccountBook::open(ctx)?;
    let mut account = book.find(name).ok_or_else(no_such_account)?;
    account.auth = match password {
        PasswordValue::Plain(text) => hash_of(text),
        PasswordValue::Hash(hash) => parse_hash(hash)?,
    };
    let hash = quoted_text(&hash_text(&account));
    let text = format!("SET PASSWORD FOR {}@{}={hash}", quoted_text(&name.0), quoted_text(&name.1));
    book.put(account);
    let changes: Changes = book.close();
    commit(ctx, changes, LogText::Instead(text))
}

/// `*` and 40 digits, or nothing.
pub(super) fn hash_text(account: &Account) -> String {
    if account.auth.is_empty() {
        return String::new();
    }
    let digits: String = account.auth.iter().map(|b| format!("{b:02X}")).collect();
    format!("*{digits}")
}

/// How the account proves itself, as SHOW CREATE USER and SHOW GRANTS write it, with a space before it.
pub(super) fn identified_by(account: &Account) -> String {
    match hash_text(account) {
        hash if hash.is_empty() => String::new(),
        hash => format!(" IDENTIFIED BY PASSWORD '{hash}'"),
    }
}

/// Title and line of SHOW CREATE USER; error 1133.
pub(crate) fn create_user_line(session: &SessionState, name: Option<&Name>) -> SqlResult<(String, String)> {
    let name = name.map_or_else(|| session.info.account.clone(), |name| resolve(session, name));
    let catalog = session.db.catalog();
    let account = catalog.accounts.get(&name).ok_or_else(no_such_account)?;
    let (user, host) = &name;
    let line = format!("CREATE USER {}@{}{}", quoted_name(user), quoted_name(host), identified_by(account));
    Ok((format!("CREATE USER for {user}@{host}"), line))
}
