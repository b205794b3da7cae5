//! Parses a row of `mysql.global_priv`: column `Priv` is a JSON object that describes the account.

use cohort_catalog::{Account, AccountName, AuthMethod, Lifetime, Limits, TlsRequirement};
use cohort_plan::ParamSource;
use cohort_session::Job;
use cohort_sql::ast::{Query, Statement};
use cohort_sql::print::quoted_text;
use cohort_types::{Privilege, Privileges, SqlError, SqlResult, Value};

use super::tables::Row;
use crate::session::Session;

/// Members to extract, in the order of the query's result columns.
const MEMBERS: [&str; 19] = [
    "access",
    "cohort_privileges",
    "plugin",
    "authentication_string",
    "ssl_type",
    "ssl_cipher",
    "x509_issuer",
    "x509_subject",
    "max_questions",
    "max_updates",
    "max_connections",
    "max_user_connections",
    "max_statement_time",
    "account_locked",
    "password_last_changed",
    "password_lifetime",
    "default_role",
    "is_role",
    "version_id",
];

/// Maximum number of authentication methods that are read from `auth_or`.
const METHODS_MAX: usize = 16;

/// Values of [`MEMBERS`] as text; `None` for a member that is absent.
struct Members(Vec<Option<String>>);

impl Members {
    fn text(&self, name: &str) -> Option<&str> {
        let place = MEMBERS.iter().position(|known| *known == name).expect("one of the list");
        self.0[place].as_deref()
    }

    fn number<T: std::str::FromStr + Default>(&self, name: &str) -> T {
        self.text(name).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    fn is_true(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| text == "1" || text.eq_ignore_ascii_case("true"))
    }
}

/// Returns the expressions that extract a description from a JSON text, in the order of [`account`].
pub(super) fn members_of(json: &str) -> String {
    let mut list = vec![format!("JSON_TYPE({json}), JSON_LENGTH({json}, '$.auth_or')")];
    list.extend(MEMBERS.map(|name| format!("JSON_VALUE({json}, '$.{name}')")));
    for at in 0..METHODS_MAX {
        let member = |name| format!("JSON_VALUE({json}, '$.auth_or[{at}].{name}')");
        list.extend(["plugin", "authentication_string"].map(member));
    }
    list.join(", ")
}

/// Returns the account with this name that the values of [`members_of`] describe. Error 4025 if the text is
/// not a JSON object.
pub(super) fn account(name: AccountName, values: &[Value]) -> SqlResult<Account> {
    let mut values = values.iter().map(as_text);
    if values.next().flatten().as_deref() != Some("OBJECT") {
        return Err(SqlError::constraint_failed("global_priv.Priv", "mysql", "global_priv"));
    }
    let others = values.next().flatten().and_then(|text| text.parse().ok()).unwrap_or(0usize);
    let members = Members(values.by_ref().take(MEMBERS.len()).collect());
    let mut account = Account::new(name);
    account.is_role = members.is_true("is_role");
    account.methods = match account.is_role {
        true => Vec::new(),
        false => methods(&members, others, values),
    };
    let known = Privileges::from_bits(members.number("access"));
    account.grants.everything = match members.text("cohort_privileges") {
        Some(names) => {
            let own: Privileges = names.split(',').filter_map(Privilege::named).collect();
            let unknown = Privileges::UNKNOWN_TO_MARIADB;
            known.without(unknown).and(own.within(unknown))
        }
        None => known,
    };
    account.default_role = members.text("default_role").unwrap_or_default().to_owned();
    let rules = &mut account.rules;
    let text = |name| members.text(name).unwrap_or_default().to_owned();
    rules.tls = match members.number::<u8>("ssl_type") {
        0 => TlsRequirement::None,
        1 => TlsRequirement::Encrypted,
        2 => TlsRequirement::Certificate,
        _ => TlsRequirement::Specified {
            cipher: text("ssl_cipher"),
            issuer: text("x509_issuer"),
            subject: text("x509_subject"),
        },
    };
    rules.limits = Limits {
        queries_per_hour: members.number("max_questions"),
        updates_per_hour: members.number("max_updates"),
        connections_per_hour: members.number("max_connections"),
        user_connections: members.number("max_user_connections"),
        statement_time_us: (members.number::<f64>("max_statement_time") * 1e6) as u64,
    };
    rules.is_locked = members.is_true("account_locked");
    if let Some(changed) = members.text("password_last_changed") {
        rules.password_changed_at = changed.parse::<f64>().map_or(u64::MAX, |seconds| seconds as u64);
    }
    rules.lifetime = match members.text("password_lifetime").map(str::parse::<i64>) {
        Some(Ok(0)) => Lifetime::Never,
        Some(Ok(days)) if days > 0 => Lifetime::Days(days as u32),
        _ => Lifetime::Default,
    };
    Ok(account)
}

/// Returns the authentication methods. `auth_or` lists them if there are several; an empty object in it
/// stands for the top-level `plugin` and `authentication_string`.
fn methods(
    members: &Members,
    count: usize,
    mut others: impl Iterator<Item = Option<String>>,
) -> Vec<AuthMethod> {
    let plugin = members.text("plugin").filter(|name| !name.is_empty()).unwrap_or("mysql_native_password");
    let text = members.text("authentication_string").unwrap_or_default();
    let own = AuthMethod { plugin: plugin.to_owned(), text: text.to_owned() };
    let mut methods = Vec::new();
    for _ in 0..count.min(METHODS_MAX) {
        let (plugin, text) = (others.next().flatten(), others.next().flatten());
        methods.push(match plugin {
            Some(plugin) => AuthMethod { plugin, text: text.unwrap_or_default() },
            None => own.clone(),
        });
    }
    if methods.is_empty() {
        methods.push(own);
    }
    methods
}

impl Session {
    /// Returns the account that a row describes. Error 4025 if `Priv` is not a JSON object.
    pub(super) fn described_account(&mut self, row: &Row) -> SqlResult<Account> {
        let json = match row.text("Priv") {
            empty if empty.is_empty() => "{}".to_owned(),
            json => json,
        };
        let parsed = cohort_sql::parse_own(&format!("SELECT {}", members_of(&quoted_text(&json))))?;
        let Statement::Query(query) = parsed.statement else { unreachable!("our own text is a query") };
        let query: Query = *query;
        let job =
            Job { text: b"", param_at: &[], params: &[], source: ParamSource::Placeholders, more: false };
        let values = self.query_one_row(&query, &job).unwrap_or_default();
        account(row.account(), &values)
    }
}

fn as_text(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_text())
}
