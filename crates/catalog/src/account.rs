//! Accounts: authentication, login rules and privileges.
//!
//! ```text
//! account     string user | string host | list of (string plugin, string text) | privileges
//!             | list of (string schema, privileges)
//!             | list of (string schema, string table, privileges, list of (string column, privileges))
//!             | u8 flags (1 locked, 2 a role) | u8 lifetime (0 default, 1 never, 2 days) | u32 days
//!             | u64 password changed at, in seconds; 0: it has expired | limits
//!             | u8 tls (0 none, 1 encrypted, 2 certificate,
//!                       3 specified: string cipher, string issuer, string subject)
//!             | string default role | list of (string role, u8 with admin option)
//!             | list of (string user, string host, u8 with grant option)
//! limits      u32 queries, u32 updates, u32 connections an hour | i32 connections
//!             | u64 microseconds of a statement
//! routines    list of (u8 kind, string schema, string routine, privileges); follows an account that has any
//! privileges  list of strings: names, or ALL PRIVILEGES for all but GRANT OPTION
//! ```

use std::collections::BTreeMap;

use cohort_base::{Reader, Truncated, Write};
use cohort_types::{Privilege, Privileges, RoutineKind};

use crate::codec::{put_list, put_string, read_list, read_string};
use crate::model::TableName;
use crate::program::{put_kind, read_number};

/// User and host: `'user'@'host'`. The host is a name, an address, a pattern with `%` and `_`, or a network
/// `address/mask`. A role has an empty host.
pub type AccountName = (String, String);

/// Name of the role that all users have.
pub const PUBLIC: &str = "PUBLIC";

const NATIVE_PASSWORD: &str = "mysql_native_password";

/// A user or a role, with its privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: AccountName,
    /// Authentication methods; any of them suffices.
    pub methods: Vec<AuthMethod>,
    pub grants: Grants,
    pub rules: AccountRules,
    pub is_role: bool,
    /// Role that a user's session starts with; empty if there is none.
    pub default_role: String,
    /// Roles granted to the account.
    pub roles: BTreeMap<String, AdminOption>,
    /// Accounts that it may act as (PROXY). The empty user name stands for any user.
    pub proxies: BTreeMap<AccountName, AdminOption>,
}

/// Whether the account may grant the role or proxy right to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminOption {
    With,
    Without,
}

/// An authentication plugin and its stored text: `*` and 40 digits for a password, empty for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthMethod {
    pub plugin: String,
    pub text: String,
}

/// Login rules in addition to authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountRules {
    pub tls: TlsRequirement,
    pub limits: Limits,
    pub is_locked: bool,
    pub lifetime: Lifetime,
    /// Time when the password was set, in seconds. 0 means PASSWORD EXPIRE. The maximum means unknown: such a
    /// password does not expire by age.
    pub password_changed_at: u64,
}

/// REQUIRE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TlsRequirement {
    #[default]
    None,
    /// SSL
    Encrypted,
    /// X509: a certificate signed by our authority.
    Certificate,
    /// As [`TlsRequirement::Certificate`], with these names in OpenSSL's format and this cipher suite. Empty
    /// values are not checked.
    Specified { cipher: String, issuer: String, subject: String },
}

/// WITH limits; 0 means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub queries_per_hour: u32,
    pub updates_per_hour: u32,
    pub connections_per_hour: u32,
    /// Simultaneous connections. 0 means max_user_connections, a negative value means none are allowed.
    pub user_connections: i32,
    pub statement_time_us: u64,
}

/// Lifetime of a password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// default_password_lifetime.
    #[default]
    Default,
    Never,
    Days(u32),
}

/// Privileges of an account, by the object named in GRANT. A privilege on an object also covers everything in
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// On `*.*`.
    pub everything: Privileges,
    /// On `schema.*`. The schema name may be a pattern with `%` and `_`.
    pub schemas: BTreeMap<String, Privileges>,
    pub tables: BTreeMap<TableName, TableGrant>,
    pub routines: BTreeMap<RoutineName, Privileges>,
}

/// The name of a routine in a grant. The routine's name is in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoutineName {
    pub kind: RoutineKind,
    pub schema: String,
    pub name: String,
}

impl RoutineName {
    /// Creates the name of a routine.
    pub fn new(kind: RoutineKind, schema: &str, name: &str) -> RoutineName {
        RoutineName { kind, schema: schema.to_owned(), name: name.to_lowercase() }
    }
}

/// Privileges on a table and on its columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableGrant {
    pub table: Privileges,
    pub columns: BTreeMap<String, Privileges>,
}

impl TableGrant {
    /// Returns the union of the privileges on columns.
    pub fn on_any_column(&self) -> Privileges {
        self.columns.values().fold(Privileges::NONE, |all, column| all.and(*column))
    }

    /// Returns whether no privilege is left.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty() && self.columns.is_empty()
    }
}

impl AuthMethod {
    /// Creates mysql_native_password with the stored form of a password.
    pub fn password(text: String) -> AuthMethod {
        AuthMethod { plugin: NATIVE_PASSWORD.to_owned(), text }
    }
}

impl Account {
    /// Creates the role that all users have. It is stored only once something is granted to it.
    pub fn public() -> Account {
        let name = (PUBLIC.to_owned(), String::new());
        Account { methods: Vec::new(), is_role: true, ..Account::new(name) }
    }

    /// Returns whether this is the role that all users have.
    pub fn is_public(&self) -> bool {
        self.is_role && self.name.0 == PUBLIC
    }

    /// Creates a user without password and privileges.
    pub fn new(name: AccountName) -> Account {
        Account {
            name,
            methods: vec![AuthMethod::password(String::new())],
            grants: Grants::default(),
            rules: AccountRules { password_changed_at: UNKNOWN, ..AccountRules::default() },
            is_role: false,
            default_role: String::new(),
            roles: BTreeMap::new(),
            proxies: BTreeMap::new(),
        }
    }

    /// Creates the account of a new data directory: all privileges, no password, local connections only.
    pub fn local_root() -> Account {
        let grants = Grants { everything: Privileges::EVERY, ..Grants::default() };
        let proxies = Account::proxies_of_all();
        Account { grants, proxies, ..Account::new(("root".to_owned(), "localhost".to_owned())) }
    }

    /// Returns the proxy rights of the account of a new data directory: any user, with grant option.
    fn proxies_of_all() -> BTreeMap<AccountName, AdminOption> {
        BTreeMap::from([((String::new(), "%".to_owned()), AdminOption::With)])
    }

    /// Returns whether the account has a global privilege.
    pub fn may(&self, privilege: Privilege) -> bool {
        self.grants.everything.has(privilege)
    }

    /// Returns whether a login needs a password.
    pub fn has_password(&self) -> bool {
        self.methods.iter().any(|method| !method.text.is_empty())
    }
}

impl AccountRules {
    /// Returns whether the password has expired at `now_s` seconds. `default_days` is the lifetime for
    /// accounts without one of their own; 0 means forever.
    pub fn has_expired(&self, now_s: u64, default_days: u64) -> bool {
        let days = match self.lifetime {
            _ if self.password_changed_at == 0 => return true,
            Lifetime::Never => 0,
            Lifetime::Default => default_days,
            Lifetime::Days(days) => u64::from(days),
        };
        days > 0 && now_s > self.password_changed_at.saturating_add(days.saturating_mul(86_400))
    }
}

/// Unknown time, for [`AccountRules::password_changed_at`].
const UNKNOWN: u64 = u64::MAX;
const LOCKED: u8 = 1;
const ROLE: u8 = 2;

pub(crate) fn put_account(out: &mut Vec<u8>, account: &Account) {
    let Account { name: (user, host), methods, grants, rules, is_role, default_role, roles, proxies } =
        account;
    put_string(out, user);
    put_string(out, host);
    put_list(out, methods.iter(), |out, method| {
        put_string(out, &method.plugin);
        put_string(out, &method.text);
    });
    put_grants(out, grants);
    out.put_u8(if rules.is_locked { LOCKED } else { 0 } | if *is_role { ROLE } else { 0 });
    let (lifetime, days) = match rules.lifetime {
        Lifetime::Default => (0, 0),
        Lifetime::Never => (1, 0),
        Lifetime::Days(days) => (2, days),
    };
    out.put_u8(lifetime);
    out.put_u32(days);
    out.put_u64(rules.password_changed_at);
    let limits = &rules.limits;
    out.put_u32(limits.queries_per_hour);
    out.put_u32(limits.updates_per_hour);
    out.put_u32(limits.connections_per_hour);
    out.put_u32(limits.user_connections.cast_unsigned());
    out.put_u64(limits.statement_time_us);
    match &rules.tls {
        TlsRequirement::None => out.put_u8(0),
        TlsRequirement::Encrypted => out.put_u8(1),
        TlsRequirement::Certificate => out.put_u8(2),
        TlsRequirement::Specified { cipher, issuer, subject } => {
            out.put_u8(3);
            [cipher, issuer, subject].into_iter().for_each(|text| put_string(out, text));
        }
    }
    put_string(out, default_role);
    put_list(out, roles.iter(), |out, (role, admin)| {
        put_string(out, role);
        out.put_u8(u8::from(*admin == AdminOption::With));
    });
    put_list(out, proxies.iter(), |out, ((user, host), option)| {
        put_string(out, user);
        put_string(out, host);
        out.put_u8(u8::from(*option == AdminOption::With));
    });
}

pub(crate) fn read_account(r: &mut Reader<'_>) -> Result<Account, Truncated> {
    let name = (read_string(r)?, read_string(r)?);
    let methods = read_list(r, |r| Ok(AuthMethod { plugin: read_string(r)?, text: read_string(r)? }))?;
    let grants = read_grants(r)?;
    let flags = r.u8()?;
    let lifetime = match (r.u8()?, r.u32()?) {
        (0, _) => Lifetime::Default,
        (1, _) => Lifetime::Never,
        (2, days) => Lifetime::Days(days),
        _ => return Err(Truncated),
    };
    let password_changed_at = r.u64()?;
    let limits = Limits {
        queries_per_hour: r.u32()?,
        updates_per_hour: r.u32()?,
        connections_per_hour: r.u32()?,
        user_connections: r.u32()?.cast_signed(),
        statement_time_us: r.u64()?,
    };
    let tls = match r.u8()? {
        0 => TlsRequirement::None,
        1 => TlsRequirement::Encrypted,
        2 => TlsRequirement::Certificate,
        3 => TlsRequirement::Specified {
            cipher: read_string(r)?,
            issuer: read_string(r)?,
            subject: read_string(r)?,
        },
        _ => return Err(Truncated),
    };
    let rules = AccountRules { tls, limits, is_locked: flags & LOCKED != 0, lifetime, password_changed_at };
    let default_role = read_string(r)?;
    let roles = read_list(r, |r| {
        let role = read_string(r)?;
        Ok((role, if r.u8()? == 1 { AdminOption::With } else { AdminOption::Without }))
    })?;
    let proxies = read_list(r, |r| {
        let name = (read_string(r)?, read_string(r)?);
        Ok((name, if r.u8()? == 1 { AdminOption::With } else { AdminOption::Without }))
    })?;
    let (is_role, roles) = (flags & ROLE != 0, roles.into_iter().collect());
    let proxies = proxies.into_iter().collect();
    Ok(Account { name, methods, grants, rules, is_role, default_role, roles, proxies })
}

fn put_grants(out: &mut Vec<u8>, grants: &Grants) {
    put_privileges(out, grants.everything, Privileges::EVERY);
    put_list(out, grants.schemas.iter(), |out, (schema, held)| {
        put_string(out, schema);
        put_privileges(out, *held, Privileges::OF_SCHEMA);
    });
    put_list(out, grants.tables.iter(), |out, (name, grant)| {
        put_string(out, &name.schema);
        put_string(out, &name.table);
        put_privileges(out, grant.table, Privileges::OF_TABLE);
        put_list(out, grant.columns.iter(), |out, (column, held)| {
            put_string(out, column);
            put_privileges(out, *held, Privileges::OF_COLUMN);
        });
    });
}

fn read_grants(r: &mut Reader<'_>) -> Result<Grants, Truncated> {
    let everything = read_privileges(r, Privileges::EVERY)?;
    let schemas = read_list(r, |r| Ok((read_string(r)?, read_privileges(r, Privileges::OF_SCHEMA)?)))?;
    let tables = read_list(r, |r| {
        let name = TableName { schema: read_string(r)?, table: read_string(r)? };
        let table = read_privileges(r, Privileges::OF_TABLE)?;
        let columns = read_list(r, |r| Ok((read_string(r)?, read_privileges(r, Privileges::OF_COLUMN)?)))?;
        Ok((name, TableGrant { table, columns: columns.into_iter().collect() }))
    })?;
    let (schemas, tables) = (schemas.into_iter().collect(), tables.into_iter().collect());
    Ok(Grants { everything, schemas, tables, routines: BTreeMap::new() })
}

/// Appends the grants on routines, which only some accounts have.
pub(crate) fn put_routine_grants(out: &mut Vec<u8>, routines: &BTreeMap<RoutineName, Privileges>) {
    put_list(out, routines.iter(), |out, (name, held)| {
        put_kind(out, name.kind);
        put_string(out, &name.schema);
        put_string(out, &name.name);
        put_privileges(out, *held, Privileges::OF_ROUTINE);
    });
}

pub(crate) fn read_routine_grants(
    r: &mut Reader<'_>,
) -> Result<BTreeMap<RoutineName, Privileges>, Truncated> {
    let grants = read_list(r, |r| {
        let kind = read_number(r, RoutineKind::ALL)?;
        let name = RoutineName { kind, schema: read_string(r)?, name: read_string(r)? };
        Ok((name, read_privileges(r, Privileges::OF_ROUTINE)?))
    })?;
    Ok(grants.into_iter().collect())
}

/// Returns the privileges that ALL PRIVILEGES means for a kind of object: all but GRANT OPTION. They are
/// stored under that name, so that such an account also gets the privileges that later versions add.
fn all_on(object: Privileges) -> Privileges {
    object.without(Privilege::GrantOption.into())
}

const ALL: &str = "ALL PRIVILEGES";

fn put_privileges(out: &mut Vec<u8>, held: Privileges, object: Privileges) {
    let mut names: Vec<&str> = match held.covers(all_on(object)) {
        true => vec![ALL],
        false => held.without(Privilege::GrantOption.into()).iter().map(Privilege::name).collect(),
    };
    if held.has(Privilege::GrantOption) {
        names.push(Privilege::GrantOption.name());
    }
    put_list(out, names.iter(), |out, name| put_string(out, name));
}

fn read_privileges(r: &mut Reader<'_>, object: Privileges) -> Result<Privileges, Truncated> {
    let mut held = Privileges::NONE;
    for name in read_list(r, read_string)? {
        held = match Privilege::named(&name) {
            _ if name == ALL => held.and(all_on(object)),
            Some(privilege) => held.with(privilege),
            // A name of another version.
            None => held,
        };
    }
    Ok(held)
}
