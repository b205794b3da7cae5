//! REQUIRE, WITH limits, ACCOUNT LOCK, PASSWORD EXPIRE: applied from a statement, and formatted for SHOW.

use cohort_catalog::{AccountRules, Lifetime, TlsRequirement};
use cohort_protocol::{ED25519, Ed25519Key, NativePassword};
use cohort_sql::ast::{AccountOptions, PasswordExpiry};
use cohort_sql::print::quoted_text;

/// Applies the options that the statement names. Other rules stay unchanged.
pub(super) fn apply(rules: &mut AccountRules, options: &AccountOptions) {
    if !options.require.is_empty() {
        rules.tls = requirement(&options.require);
    }
    for (name, number) in &options.limits {
        let count = u32::try_from(*number).unwrap_or(u32::MAX);
        let limits = &mut rules.limits;
        match name.as_str() {
            "MAX_QUERIES_PER_HOUR" => limits.queries_per_hour = count,
            "MAX_UPDATES_PER_HOUR" => limits.updates_per_hour = count,
            "MAX_CONNECTIONS_PER_HOUR" => limits.connections_per_hour = count,
            _ => limits.user_connections = i32::try_from(*number).unwrap_or(i32::MAX),
        }
    }
    if let Some(us) = options.statement_time_us {
        rules.limits.statement_time_us = us;
    }
    if let Some(is_locked) = options.locked {
        rules.is_locked = is_locked;
    }
    match options.expiry {
        None => {}
        Some(PasswordExpiry::Now) => rules.password_changed_at = 0,
        Some(PasswordExpiry::Default) => rules.lifetime = Lifetime::Default,
        Some(PasswordExpiry::Never) => rules.lifetime = Lifetime::Never,
        Some(PasswordExpiry::Days(days)) => rules.lifetime = Lifetime::Days(days),
    }
}

fn requirement(words: &[(String, Option<String>)]) -> TlsRequirement {
    match words[0].0.as_str() {
        "NONE" => TlsRequirement::None,
        "SSL" => TlsRequirement::Encrypted,
        "X509" => TlsRequirement::Certificate,
        _ => {
            let of = |word: &str| {
                let found = words.iter().rev().find(|(name, _)| name == word);
                found.and_then(|(_, text)| text.clone()).unwrap_or_default()
            };
            TlsRequirement::Specified { cipher: of("CIPHER"), issuer: of("ISSUER"), subject: of("SUBJECT") }
        }
    }
}

/// Whether WITH includes GRANT OPTION.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantOption {
    Written,
    None,
}

/// Formats ` REQUIRE .. WITH ..`, each with a leading space.
pub(super) fn require_and_limits(rules: &AccountRules, option: GrantOption) -> String {
    let mut text = match &rules.tls {
        TlsRequirement::None => String::new(),
        TlsRequirement::Encrypted => " REQUIRE SSL".to_owned(),
        TlsRequirement::Certificate => " REQUIRE X509".to_owned(),
        TlsRequirement::Specified { cipher, issuer, subject } => {
            let parts = [("ISSUER", issuer), ("SUBJECT", subject), ("CIPHER", cipher)];
            let written = parts.iter().filter(|(_, text)| !text.is_empty());
            let written = written.map(|(word, text)| format!(" {word} {}", quoted_text(text)));
            format!(" REQUIRE{}", written.collect::<String>())
        }
    };
    let limits = &rules.limits;
    let mut with = String::new();
    if option == GrantOption::Written {
        with += " GRANT OPTION";
    }
    for (word, number) in [
        ("MAX_QUERIES_PER_HOUR", i64::from(limits.queries_per_hour)),
        ("MAX_UPDATES_PER_HOUR", i64::from(limits.updates_per_hour)),
        ("MAX_CONNECTIONS_PER_HOUR", i64::from(limits.connections_per_hour)),
        ("MAX_USER_CONNECTIONS", i64::from(limits.user_connections)),
    ] {
        if number != 0 {
            with += &format!(" {word} {number}");
        }
    }
    if limits.statement_time_us > 0 {
        with += &format!(" MAX_STATEMENT_TIME {:.6}", limits.statement_time_us as f64 / 1e6);
    }
    if !with.is_empty() {
        text += " WITH";
        text += &with;
    }
    text
}

/// Formats ` ACCOUNT LOCK`, with a leading space.
pub(super) fn lock(rules: &AccountRules) -> &'static str {
    if rules.is_locked { " ACCOUNT LOCK" } else { "" }
}

/// Formats ` PASSWORD EXPIRE`, with a leading space. Empty unless the password was expired manually.
pub(super) fn expired(rules: &AccountRules) -> &'static str {
    if rules.password_changed_at == 0 { " PASSWORD EXPIRE" } else { "" }
}

/// Formats ` PASSWORD EXPIRE NEVER` or an interval, with a leading space.
pub(super) fn lifetime(rules: &AccountRules) -> String {
    match rules.lifetime {
        Lifetime::Default => String::new(),
        Lifetime::Never => " PASSWORD EXPIRE NEVER".to_owned(),
        Lifetime::Days(days) => format!(" PASSWORD EXPIRE INTERVAL {days} DAY"),
    }
}

/// Returns the stored form of a password for a plugin; without a plugin, the form of IDENTIFIED BY.
pub(super) fn stored_form(plugin: Option<&str>, password: &[u8]) -> String {
    match plugin {
        Some(plugin) if plugin.eq_ignore_ascii_case(ED25519) => Ed25519Key::of(password).to_string(),
        _ => NativePassword::of(password).to_string(),
    }
}
