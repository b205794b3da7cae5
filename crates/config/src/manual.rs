//! The settings page of the documentation and the sample option file, generated from the table of settings.

use std::collections::BTreeMap;
use std::fmt::Write;

use cohort_types::{Privilege, Privileges};

use crate::setting::{Access, Kind, Setting, SettingScope};
use crate::table::VarId;

/// Maximum number of values that are listed individually.
const MEMBERS_MAX: usize = 12;

/// Settings that most servers need to set, with the reasons.
const FIRST: &[(&str, &str)] = &[
    ("innodb_buffer_pool_size", "half of the memory or more if the machine runs only this server"),
    ("max_connections", "the sum of the connection pools of all applications"),
    ("server_id", "a different number for each server of a topology"),
    ("binlog_expire_logs_seconds", "how far back point-in-time recovery and replicas can begin"),
    ("gtid_domain_id", "a separate domain for each source, if there are several"),
    ("bind_address", "who can reach the server"),
    ("ssl_cert", "with `ssl_key` and `require_secure_transport`, for encrypted connections"),
    ("log_error", "a file; standard error without it"),
    ("slow_query_log", "with `long_query_time`"),
    ("character_set_server", "the character set of new databases"),
    ("metrics_port", "metrics and the live page"),
];

/// Groups of settings, each with parts of setting names. A setting belongs to the first group that has a part
/// of its name.
const GROUPS: &[(&str, &[&str])] = &[
    ("Audit log", &["server_audit"]),
    ("Backups", &["archive_", "backup"]),
    ("Accounts, passwords and TLS", &["ssl", "tls", "password", "secure", "authentication", "local_infile"]),
    (
        "Replication",
        &["slave", "replicate", "rpl_", "relay", "gtid", "master", "replica", "report_", "server_id"],
    ),
    ("Binary log", &["binlog", "log_bin", "expire_logs"]),
    ("Other logs and metrics", &["general_log", "slow", "log_", "long_query", "metrics", "syslog"]),
    (
        "Storage and memory",
        &["innodb", "rocksdb", "checkpoint", "lock", "flush", "memory", "tmp", "buffer_size"],
    ),
    (
        "Connections",
        &[
            "connect",
            "thread",
            "port",
            "socket",
            "bind",
            "back_log",
            "packet",
            "net_",
            "timeout",
            "networking",
        ],
    ),
    ("Character sets, time and locale", &["character", "collation", "time_zone", "lc_", "week"]),
    ("Files and process", &["dir", "file", "hostname", "pid", "open_files", "core"]),
    ("Statements", &[""]),
];

/// Returns the text of docs/configuration.md.
pub fn manual_page() -> String {
    let mut out = String::from(
        "# Settings\n\n\
         Made by `cohortd --print-configuration-docs` from the table of settings; edit `crates/config/src/table.rs` and `inert.rs`.\n\n\
         Every setting is a system variable with MariaDB's name (`SHOW VARIABLES`, `SET GLOBAL`), an option of the \
         command line (`--name=value`, dashes and underscores are the same) and of option files, in the groups \
         `[mysqld]`, `[server]`, `[mariadb]`, `[mariadbd]`, `[mariadb-10.11]`, `[client-server]`, `[cohort]`, \
         `[cohortd]`. Sizes take the suffixes K, M, G, T, P, E.\n\n\
         SET GLOBAL needs the privilege SUPER, or one of those that the scope names. SET SESSION needs a privilege \
         only if the scope names one.\n\n",
    );
    let all: Vec<&Setting> = VarId::shown().map(VarId::setting).filter(|setting| !setting.internal).collect();
    out.push_str("## Settings that may lose data\n\n");
    for setting in &all {
        if let Some(what) = setting.may_lose_data {
            push(&mut out, format_args!("- `{}`: {what}.\n", setting.name));
        }
    }
    out.push_str("\n## Where to begin\n\n");
    for (name, why) in FIRST {
        push(&mut out, format_args!("- [`{name}`](#{name}): {why}\n"));
    }
    for (number, (title, _)) in GROUPS.iter().enumerate() {
        let kept = all.iter().filter(|s| s.has_effect() && s.option && group(s.name) == number);
        push(&mut out, format_args!("\n## {title}\n"));
        for setting in kept {
            let (name, facts, doc) = (setting.name, facts(setting), setting.doc);
            push(&mut out, format_args!("\n### `{name}`\n\n{facts}\n\n{doc}\n"));
        }
    }
    out.push_str("\n## Session variables and facts\n\nNot options.\n\n| name | scope | |\n|---|---|---|\n");
    for setting in all.iter().filter(|s| s.has_effect() && !s.option) {
        push(&mut out, format_args!("| `{}` | {} | {} |\n", setting.name, scope(setting), setting.doc));
    }
    out.push_str("\n## Rejected unless at their defaults\n\n| name | default | why |\n|---|---|---|\n");
    for setting in &all {
        if let Some(why) = setting.refused {
            push(&mut out, format_args!("| `{}` | {} | {why} |\n", setting.name, default_text(setting)));
        }
    }
    out.push_str(
        "\n## Accepted without effect\n\nThese settings exist so that option files and tools made for MariaDB work. The server logs the names of \
         those that were given. `cohortd --help=NAME` shows the default of each.\n",
    );
    for (why, names) in by_reason(&all) {
        let (first, rest) = why.split_at(1);
        push(&mut out, format_args!("\n**{}{rest}:** {}\n", first.to_uppercase(), names.join(", ")));
    }
    out
}

/// Returns default, range and scope in one line.
fn facts(setting: &Setting) -> String {
    let default = match default_text(setting) {
        none if none.is_empty() => "none".to_owned(),
        text => text,
    };
    format!("Default {default} | {} | {}", range(setting).trim_end(), scope(setting))
}

/// Returns the names of the settings without effect, grouped by reason.
fn by_reason(all: &[&Setting]) -> BTreeMap<&'static str, Vec<String>> {
    let mut reasons: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for setting in all {
        if let Some(why) = setting.no_effect {
            reasons.entry(why).or_default().push(format!("`{}`", setting.name));
        }
    }
    reasons
}

/// Returns the number of the group that a setting belongs to: the first one with a part of its name.
fn group(name: &str) -> usize {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    GROUPS.iter().position(|(_, parts)| has(parts)).expect("the last group takes every name")
}

/// Returns a my.cnf with the default of every setting, commented out.
pub fn sample_file() -> String {
    let mut out = String::from("# Options of Cohort. Every line shows a default.\n\n[cohortd]\n");
    for setting in VarId::shown().map(VarId::setting) {
        if setting.option && !setting.internal && setting.has_effect() && setting.alias_of.is_none() {
            let default = setting.kind.value(setting.kind.default_raw());
            push(&mut out, format_args!("\n# {}\n", setting.doc));
            if let Some(what) = setting.may_lose_data {
                push(&mut out, format_args!("# May lose data: {what}.\n"));
            }
            push(&mut out, format_args!("#{} = {default}\n", setting.name));
        }
    }
    out
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes everything");
}

pub(crate) fn default_text(setting: &Setting) -> String {
    let value = setting.kind.value(setting.kind.default_raw()).to_string();
    match setting.kind {
        Kind::Int { default, .. } if setting.unit == "bytes" => size(default),
        _ if value.is_empty() => String::new(),
        _ => format!("`{value}`"),
    }
}

fn size(bytes: u64) -> String {
    for (shift, suffix) in [(30, "G"), (20, "M"), (10, "K")] {
        if bytes != 0 && bytes.trailing_zeros() >= shift && bytes != u64::MAX {
            return format!("`{}{suffix}`", bytes >> shift);
        }
    }
    format!("`{bytes}`")
}

pub(crate) fn range(setting: &Setting) -> String {
    match setting.kind {
        Kind::Bool { .. } => "ON, OFF".to_owned(),
        Kind::Int { min, max: u64::MAX, .. } => format!("{min} or more {}", setting.unit),
        Kind::Int { min, max, .. } => format!("{min} to {max} {}", setting.unit),
        Kind::Double { min, max, .. } => format!("{min} to {max} {}", setting.unit),
        // A long cell would widen the whole table.
        Kind::Enum { members, .. } if members.len() > MEMBERS_MAX => {
            format!("one of {} names, such as {}", members.len(), members[..3].join(", "))
        }
        Kind::Enum { members, .. } => members.join(", "),
        Kind::Set { .. } => "a list".to_owned(),
        Kind::Text { .. } => "text".to_owned(),
        Kind::Path { .. } => "path".to_owned(),
    }
}

/// Returns where a setting has values. Also returns the privileges to set it, unless they are the usual ones:
/// SUPER for the global value and none for the session value.
pub(crate) fn scope(setting: &Setting) -> String {
    let is_usual = setting.global_admins == Privileges::of(&[Privilege::Super]);
    let global = match is_usual {
        true => "global".to_owned(),
        false => format!("global ({})", setting.global_admins),
    };
    let session = match setting.session_admins.is_empty() {
        true => "session".to_owned(),
        false => format!("session ({})", setting.session_admins),
    };
    match (setting.access, setting.scope) {
        (Access::ReadOnly, SettingScope::Session) => "session, read-only".to_owned(),
        (Access::ReadOnly, _) => "read-only".to_owned(),
        (Access::SessionReadOnly, _) => format!("{global}; sessions keep theirs"),
        (Access::Dynamic, SettingScope::Global) => global,
        (Access::Dynamic, SettingScope::Session) => session,
        (Access::Dynamic, SettingScope::Both) => format!("{global}, {session}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_in_the_repository_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, manual_page()).expect("the checkout can be written");
        }
        let kept = std::fs::read_to_string(path).expect("it is there");
        assert!(kept == manual_page(), "run: cohortd --print-configuration-docs > docs/configuration.md");
    }

    #[test]
    fn every_setting_has_its_line() {
        let (manual, sample) = (manual_page(), sample_file());
        for setting in VarId::shown().map(VarId::setting) {
            let is_named = manual.contains(&format!("`{}`", setting.name));
            assert_eq!(is_named, !setting.internal, "{}", setting.name);
        }
        for (name, _) in FIRST {
            assert!(manual.contains(&format!("\n### `{name}`\n")), "{name}");
        }
        assert!(sample.contains("#max_connections = 151\n") && !sample.contains("innodb_io_capacity"));
    }
}
