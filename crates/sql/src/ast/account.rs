//! Users and grants.

use super::ObjectName;

/// `user@host` or CURRENT_USER.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Account {
    CurrentUser,
    /// CURRENT_ROLE; only where roles are allowed.
    CurrentRole,
    /// A name without a host: a role if roles are allowed and it exists, else the user on host `%`.
    NameAlone(String),
    Named {
        user: String,
        host: String,
    },
}

/// CREATE ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRole {
    pub mode: super::CreateMode,
    pub roles: Vec<String>,
    /// WITH ADMIN: the account that may grant the roles. `None` is the account that creates them.
    pub admin: Option<Account>,
}

/// DROP ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropRole {
    pub if_exists: bool,
    /// Names without a host, and CURRENT_ROLE.
    pub roles: Vec<Account>,
}

/// Authentication of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// IDENTIFIED BY 'text'.
    Password(String),
    /// IDENTIFIED BY PASSWORD 'hash'.
    PasswordHash(String),
    /// IDENTIFIED VIA | WITH plugin [USING | AS 'text' | USING PASSWORD('text')] [OR ...]: alternatives in
    /// order.
    Plugins(Vec<AuthPlugin>),
}

/// One plugin of IDENTIFIED VIA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthPlugin {
    pub plugin: String,
    /// USING or AS 'text'.
    pub using: Option<String>,
    /// USING PASSWORD('text').
    pub password: Option<String>,
}

/// An account and its clauses in CREATE USER, ALTER USER or GRANT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSpec {
    pub account: Account,
    pub authentication: Option<Authentication>,
}

/// CREATE USER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateUser {
    pub mode: super::CreateMode,
    pub users: Vec<UserSpec>,
    pub options: AccountOptions,
}

/// ALTER USER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterUser {
    pub if_exists: bool,
    pub users: Vec<UserSpec>,
    pub options: AccountOptions,
}

/// REQUIRE, WITH limits, ACCOUNT LOCK, PASSWORD EXPIRE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountOptions {
    /// REQUIRE words in upper case with their text: NONE, SSL, X509, CIPHER, ISSUER, SUBJECT.
    pub require: Vec<(String, Option<String>)>,
    /// MAX_QUERIES_PER_HOUR and similar, upper case.
    pub limits: Vec<(String, i64)>,
    /// MAX_STATEMENT_TIME, in microseconds.
    pub statement_time_us: Option<u64>,
    /// ACCOUNT LOCK | UNLOCK.
    pub locked: Option<bool>,
    /// PASSWORD EXPIRE.
    pub expiry: Option<PasswordExpiry>,
}

/// PASSWORD EXPIRE [DEFAULT | NEVER | INTERVAL n DAY].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordExpiry {
    Now,
    Default,
    Never,
    Days(u32),
}

/// One privilege of a GRANT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// Upper case, single spaces: SELECT, CREATE TEMPORARY TABLES, ALL PRIVILEGES, USAGE, ...
    pub name: String,
    /// Column list; empty for the whole object.
    pub columns: Vec<String>,
}

/// Object of a GRANT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantLevel {
    /// `*.*`.
    Global,
    /// `db.*` (the name may contain `%` and `_` patterns), or `*` for the current database (`None`).
    Database(Option<String>),
    Table(ObjectName),
    /// PROCEDURE or FUNCTION name. The kind is in upper case.
    Routine {
        kind: String,
        name: ObjectName,
    },
    /// REVOKE ALL PRIVILEGES, GRANT OPTION FROM ...: without ON.
    Everywhere,
    /// GRANT role TO ...: without ON. The privilege's name is the role.
    Role,
    /// REVOKE ADMIN OPTION FOR role FROM ...
    RoleAdmin,
    /// GRANT PROXY ON account.
    Proxy(Account),
}

impl GrantLevel {
    /// Returns whether it covers all privileges on all objects.
    pub fn is_everywhere(&self) -> bool {
        *self == GrantLevel::Everywhere
    }
}

/// GRANT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub privileges: Vec<Privilege>,
    pub level: GrantLevel,
    pub users: Vec<UserSpec>,
    pub grant_option: bool,
    pub options: AccountOptions,
}

/// REVOKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoke {
    pub privileges: Vec<Privilege>,
    pub level: GrantLevel,
    pub accounts: Vec<Account>,
}
