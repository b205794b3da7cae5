//! The manual page and the sample option file, generated from the table of settings.

use std::fmt::Write;

use cohort_types::{Privilege, Privileges};

use crate::setting::{Access, Kind, Setting, SettingScope};
use crate::table::VarId;

/// Maximum number of values that are listed individually.
const MEMBERS_MAX: usize = 12;

/// Returns the text of docs/configuration.md.
pub fn manual_page() -> String {
    let mut out = String::from(
        "# Configuration\n\n\
         Made by `cohortd --print-configuration-docs` from the table of settings; edit `crates/config/src/table.rs` and `inert.rs`.\n\n\
         Every setting is a system variable with MariaDB's name (`SHOW VARIABLES`, `SET GLOBAL`), an option of the \
         command line (`--name=value`, dashes and underscores are the same) and of option files, in the groups \
         `[mysqld]`, `[server]`, `[mariadb]`, `[mariadbd]`, `[mariadb-10.11]`, `[client-server]`, `[cohort]`, \
         `[cohortd]`. Sizes take the suffixes K, M, G, T.\n\n\
         SET GLOBAL needs the privilege SUPER and SET SESSION none, unless the scope names others: one of them is \
         needed then.\n\n",
    );
    let all: Vec<&Setting> = VarId::shown().map(VarId::setting).collect();
    out.push_str("## Settings that may lose data\n\n");
    for setting in &all {
        if let Some(what) = setting.may_lose_data {
            push(&mut out, format_args!("- `{}`: {what}.\n", setting.name));
        }
    }
    out.push_str("\n## Settings\n\n| name | default | range | scope | |\n|---|---|---|---|---|\n");
    for setting in all.iter().filter(|s| s.has_effect() && s.option) {
        push(
            &mut out,
            format_args!(
                "| `{}` | {} | {} | {} | {} |\n",
                setting.name,
                default_text(setting),
                range(setting),
                scope(setting),
                setting.doc
            ),
        );
    }
    out.push_str("\n## Session variables and facts\n\nNot options.\n\n| name | scope | |\n|---|---|---|\n");
    for setting in all.iter().filter(|s| s.has_effect() && !s.option) {
        push(&mut out, format_args!("| `{}` | {} | {} |\n", setting.name, scope(setting), setting.doc));
    }
    out.push_str("\n## Refused unless at their defaults\n\n| name | default | why |\n|---|---|---|\n");
    for setting in &all {
        if let Some(why) = setting.refused {
            push(&mut out, format_args!("| `{}` | {} | {why} |\n", setting.name, default_text(setting)));
        }
    }
    out.push_str(
        "\n## Accepted without effect\n\nSo that option files and tools made for MariaDB work; a note in the error log \
         names those that were given.\n\n| name | default | why |\n|---|---|---|\n",
    );
    for setting in &all {
        if let Some(why) = setting.no_effect {
            push(&mut out, format_args!("| `{}` | {} | {why} |\n", setting.name, default_text(setting)));
        }
    }
    out
}

/// Returns a my.cnf with the default of every setting, commented out.
pub fn sample_file() -> String {
    let mut out = String::from("# Options of Cohort. Every line shows a default.\n\n[cohortd]\n");
    for setting in VarId::shown().map(VarId::setting) {
        if setting.option && setting.has_effect() && setting.alias_of.is_none() {
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
            assert!(manual.contains(&format!("`{}`", setting.name)), "{}", setting.name);
        }
        assert!(sample.contains("#max_connections = 151\n") && !sample.contains("innodb_io_capacity"));
    }
}
