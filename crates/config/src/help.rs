//! Texts of `--help`.
//!
//! | option | text |
//! |---|---|
//! | `--help`, `-?` | usage and the most common options |
//! | `--help=NAME` | one option: default, range, scope, description |
//! | `--print-man-page`, `--print-completions=SHELL` | the options for `man` and shells (module `shell`) |
//! | `--help --verbose` | every option with its description, then the values after reading options |
//!
//! The list of values has MariaDB's format, because scripts of packages and container images parse it.

use std::fmt::Write;

use crate::build::Build;
use crate::manual::{default_text, range, scope};
use crate::runtime::Globals;
use crate::setting::Setting;
use crate::table::VarId;

/// A group of options with their descriptions, for the short help text and the manual page.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) options: &'static [(&'static str, &'static str)],
}

/// Options that are not settings, and the most common settings.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        title: "Options that come first",
        options: &[
            ("--no-defaults", "read no option file"),
            ("--defaults-file=FILE", "read this option file only"),
            ("--defaults-extra-file=FILE", "read this option file after the others"),
            ("--defaults-group-suffix=S", "read the groups [mysqldS], [cohortdS].. too"),
            ("--print-defaults", "print the options of all files and exit"),
        ],
    },
    Group {
        title: "Tasks instead of serving",
        options: &[
            ("--initialize", "create the data directory, run --init-file and exit"),
            ("--convert-log-layout", "convert a stopped server's data directory to --log-layout and exit"),
            ("--apply-archive=DIR", "apply the log archive in DIR to the backup in --datadir and exit"),
            ("--stop-time=TIME, --stop-gtid=GTID", "where --apply-archive stops; default: the end"),
            ("--validate-config", "check options and option files and exit"),
            ("--print-sample-file", "print an option file with every setting at its default and exit"),
            ("--version, -V", "print version and build and exit"),
            ("--help, -?", "this text; --help=NAME: one option; --help --verbose: all of them"),
        ],
    },
    Group {
        title: "Common options",
        options: &[
            ("--datadir=DIR, -h DIR", "the data directory"),
            ("--user=NAME, -u NAME", "the system user to run as when started by root"),
            ("--port=N, -P N", "TCP port (3306); --skip-networking for none"),
            ("--bind-address=ADDRESS", "address to listen on"),
            ("--socket=FILE", "Unix socket"),
            ("--innodb-buffer-pool-size=N", "memory for pages of tables; K, M, G multiply"),
            ("--log-bin[=NAME]", "base name of the binary log; --skip-log-bin for none"),
            ("--server-id=N", "this server's number in replication"),
            ("--log-error[=FILE]", "error log; standard error without it"),
            ("--metrics-port=N", "port of the metrics endpoint"),
        ],
    },
];

/// Names of the option files and groups.
pub(crate) const OPTION_FILES: &[(&str, &str)] = &[
    ("Option files, in this order", "/etc/my.cnf /etc/mysql/my.cnf $MARIADB_HOME/my.cnf ~/.my.cnf"),
    ("Groups", "mysqld server mariadb mariadbd mariadb-10.11 client-server cohort cohortd"),
];

pub(crate) const SYNOPSIS: &str = "cohortd [--no-defaults | --defaults-file=FILE] [OPTION...]";

/// Returns the text of `--help`.
pub(crate) fn short(build: &Build) -> String {
    let mut out = format!("{}\nUsage: {SYNOPSIS}\n", build.banner());
    for group in GROUPS {
        push(&mut out, format_args!("\n{}:\n", group.title));
        for (option, text) in group.options {
            push(&mut out, format_args!("  {option:<27} {text}\n"));
        }
    }
    out.push('\n');
    for (title, text) in OPTION_FILES {
        push(&mut out, format_args!("{title}: {text}\n"));
    }
    out
}

/// Returns the text of `--help=NAME`, or `None` if there is no such option.
pub(crate) fn of_option(name: &str) -> Option<String> {
    let name = name.trim_start_matches('-').replace('-', "_");
    let setting =
        VarId::shown().map(VarId::setting).find(|setting| setting.option && setting.name == name)?;
    let mut out = describe(setting);
    push(&mut out, format_args!("  default: {}\n", plain(default_text(setting))));
    push(&mut out, format_args!("  values:  {}\n", range(setting)));
    push(&mut out, format_args!("  scope:   {}\n", scope(setting)));
    Some(out)
}

/// Returns the text of `--help --verbose`: every option with its description, then the current values.
pub(crate) fn full(build: &Build, globals: &Globals) -> String {
    let mut out = short(build);
    out.push('\n');
    for setting in options() {
        out.push_str(&describe(setting));
    }
    out.push_str("\nVariables (--variable-name=value)\n");
    out.push_str(
        "and boolean options {FALSE|TRUE}                           Value (after reading options)\n",
    );
    push(&mut out, format_args!("{} {}\n", "-".repeat(58), "-".repeat(29)));
    for id in VarId::shown().filter(|id| id.setting().option && !id.setting().internal) {
        let value = globals.value(id).to_string();
        let value = if value.is_empty() { "(No default value)" } else { value.as_str() };
        push(&mut out, format_args!("{:<58} {value}\n", id.setting().name.replace('_', "-")));
    }
    out
}

pub(crate) fn options() -> impl Iterator<Item = &'static Setting> {
    VarId::shown().map(VarId::setting).filter(|setting| setting.option && !setting.internal)
}

/// Returns a setting's description, with the reason if it has no effect.
pub(crate) fn description(setting: &Setting) -> String {
    match (setting.no_effect, setting.refused) {
        (Some(why), _) => format!("{} No effect: {why}.", setting.doc),
        (None, Some(why)) => format!("{} Other values than the default are rejected: {why}.", setting.doc),
        (None, None) => setting.doc.to_owned(),
    }
}

/// Returns an option and its description, wrapped to the line width.
fn describe(setting: &Setting) -> String {
    const WIDTH: usize = 78;
    let mut out = format!("  --{}\n", setting.name.replace('_', "-"));
    let mut line = String::from("     ");
    for word in description(setting).split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            push(&mut out, format_args!("{line}\n"));
            line = String::from("     ");
        }
        line.push(' ');
        line.push_str(word);
    }
    push(&mut out, format_args!("{line}\n"));
    out
}

/// Removes Markdown backticks.
pub(crate) fn plain(text: String) -> String {
    text.replace('`', "")
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILD: Build = Build { version: "0.0.0", revision: Some("abc 2026-01-01"), features: &["rocksdb"] };

    #[test]
    fn texts_have_their_size() {
        let short = short(&BUILD);
        assert!(short.starts_with("cohortd  Ver 10.11"), "{short}");
        assert!(short.contains("(Cohort 0.0.0, abc 2026-01-01, rocksdb)"), "{short}");
        assert!(short.lines().count() <= 40, "{}", short.lines().count());
        assert!(short.lines().all(|line| line.chars().count() <= 100), "{short}");
    }

    #[test]
    fn every_option_has_a_description() {
        let globals = Globals::new();
        let full = full(&BUILD, &globals);
        for setting in options() {
            let name = setting.name.replace('_', "-");
            assert!(full.contains(&format!("  --{name}\n      ")), "{name}");
            assert!(full.lines().any(|line| line.split(' ').next() == Some(&name)), "{name}");
            assert!(of_option(&name).is_some_and(|text| text.contains("default: ")), "{name}");
        }
        assert_eq!(of_option("no-such-option"), None);
    }
}
