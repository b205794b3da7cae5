//! `mysql.global_priv`: the accounts in MariaDB's storage format, for tools that read it instead of
//! `mysql.user`. It is computed from the catalog.

use std::fmt::Write;
use std::sync::Arc;

use cohort_catalog::{Account, AuthMethod, Lifetime, TlsRequirement};
use cohort_session::{
    Replaceable, StatementContext, VirtualColumn, VirtualDefinition, VirtualTable, WantedNames,
};
use cohort_types::{Collation, ColumnType, Privilege, Privileges, SqlResult, TypeKind, Value};

use super::mysql_tables;

const NATIVE_PASSWORD: &str = "mysql_native_password";
/// The release whose privilege bits `access` uses.
const VERSION: u32 = 101_119;

/// The virtual table `mysql.global_priv`.
struct GlobalPriv {
    columns: Vec<VirtualColumn>,
}

pub(super) fn global_priv() -> Arc<dyn VirtualTable> {
    let column = |name, kind, length, collation| {
        let ty = ColumnType::string(kind, length, collation);
        VirtualColumn { name, ty, nullable: false }
    };
    Arc::new(GlobalPriv {
        columns: vec![
            column("Host", TypeKind::Char, 255, Collation::UTF8MB3_BIN),
            column("User", TypeKind::Char, 128, Collation::UTF8MB3_BIN),
            column("Priv", TypeKind::LongText, 0, Collation::UTF8MB4_BIN),
        ],
    })
}

/// A JSON object under construction.
struct Object(String);

impl Object {
    fn new() -> Object {
        Object("{".to_owned())
    }

    fn plain(&mut self, name: &str, value: impl std::fmt::Display) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let _ = write!(self.0, "{comma}\"{name}\":{value}");
    }

    fn text(&mut self, name: &str, value: &str) {
        self.plain(name, quoted(value));
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if u32::from(c) < 0x20 => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Writes the authentication methods. One method is written directly: the password if there is one, else the
/// last method. If there are several, `auth_or` lists all, with an empty object in place of that one.
fn put_methods(object: &mut Object, methods: &[AuthMethod]) {
    let own = methods.iter().position(|method| method.plugin == NATIVE_PASSWORD);
    let Some(own) = own.or(methods.len().checked_sub(1)) else { return };
    object.text("plugin", &methods[own].plugin);
    object.text("authentication_string", &methods[own].text);
    if methods.len() == 1 {
        return;
    }
    let others = methods.iter().enumerate().map(|(at, method)| {
        let mut other = Object::new();
        if at != own {
            other.text("plugin", &method.plugin);
            if !method.text.is_empty() {
                other.text("authentication_string", &method.text);
            }
        }
        other.end()
    });
    object.plain("auth_or", format_args!("[{}]", others.collect::<Vec<_>>().join(",")));
}

fn put_rules(object: &mut Object, account: &Account) {
    let rules = &account.rules;
    let tls = match &rules.tls {
        TlsRequirement::None => None,
        TlsRequirement::Encrypted => Some((1, ["", "", ""])),
        TlsRequirement::Certificate => Some((2, ["", "", ""])),
        TlsRequirement::Specified { cipher, issuer, subject } => Some((3, [&**cipher, issuer, subject])),
    };
    if let Some((kind, names)) = tls {
        object.plain("ssl_type", kind);
        for (name, value) in ["ssl_cipher", "x509_issuer", "x509_subject"].into_iter().zip(names) {
            object.text(name, value);
        }
    }
    let limits = &rules.limits;
    for (name, limit) in [
        ("max_questions", limits.queries_per_hour),
        ("max_updates", limits.updates_per_hour),
        ("max_connections", limits.connections_per_hour),
    ] {
        if limit > 0 {
            object.plain(name, limit);
        }
    }
    if limits.user_connections != 0 {
        object.plain("max_user_connections", limits.user_connections);
    }
    if limits.statement_time_us > 0 {
        object.plain("max_statement_time", format_args!("{:.6}", limits.statement_time_us as f64 / 1e6));
    }
    if rules.is_locked {
        object.plain("account_locked", true);
    }
    // The maximum value means that the time is unknown.
    if rules.password_changed_at != u64::MAX {
        object.plain("password_last_changed", rules.password_changed_at);
    }
    match rules.lifetime {
        Lifetime::Default if rules.password_changed_at == 0 => object.plain("password_lifetime", -1),
        Lifetime::Default => {}
        Lifetime::Never => object.plain("password_lifetime", 0),
        Lifetime::Days(days) => object.plain("password_lifetime", days),
    }
    if !account.default_role.is_empty() {
        object.text("default_role", &account.default_role);
    }
}

fn privileges(account: &Account) -> String {
    let mut object = Object::new();
    object.plain("access", account.grants.everything.bits());
    let held = account.grants.everything;
    // MariaDB ignores and keeps members that it does not know.
    if Privileges::from_bits(held.bits()) != held {
        let own = held.within(Privileges::UNKNOWN_TO_MARIADB);
        object.text("cohort_privileges", &own.iter().map(Privilege::name).collect::<Vec<_>>().join(","));
    }
    object.plain("version_id", VERSION);
    match account.is_role {
        true => object.plain("is_role", true),
        false => {
            put_methods(&mut object, &account.methods);
            put_rules(&mut object, account);
        }
    }
    object.end()
}

impl VirtualDefinition for GlobalPriv {
    fn schema(&self) -> &'static str {
        "mysql"
    }

    fn name(&self) -> &'static str {
        "global_priv"
    }

    fn columns(&self) -> &[VirtualColumn] {
        &self.columns
    }
}

impl VirtualTable for GlobalPriv {
    fn replaceable(&self) -> Replaceable {
        Replaceable::UntilFlushPrivileges
    }

    fn create_text(&self) -> String {
        mysql_tables::create_text(self.name()).to_owned()
    }

    fn rows(&self, _: &WantedNames, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        let catalog = ctx.db.catalog();
        let row = |account: &Account| {
            let (user, host) = &account.name;
            vec![Value::text(host.as_str()), Value::text(user.as_str()), Value::text(privileges(account))]
        };
        Ok(catalog.accounts.values().map(|account| row(account)).collect())
    }
}
