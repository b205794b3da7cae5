//! Reads settings from the command line and option files, with mariadbd's rules, messages and exit codes.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::build::Build;
use crate::exit::{
    EXIT_ARGUMENT_REQUIRED, EXIT_BAD_NUMBER, EXIT_BAD_VALUE, EXIT_UNKNOWN_OPTION, EXIT_UNKNOWN_VARIABLE,
};
use crate::help;
use crate::option_file::{DefaultsPlan, FileOption, GROUPS, OptionFileError};
use crate::runtime::{Globals, expand_sql_mode, followers, option_text};
use crate::setting::Kind;
use crate::table::VarId;
use crate::value::{Misfit, Raw, VarValue};

/// The purpose of a start.
#[derive(Debug)]
pub enum StartupRequest {
    /// Run the server.
    Run(Box<Options>),
    /// Print a text and exit: --version, --help, --validate-config, --print-defaults and the other options
    /// that begin with `--print-`.
    Print(String),
}

/// The options of a start.
#[derive(Debug, Default)]
pub struct Options {
    changes: Vec<(VarId, Raw)>,
    /// Warnings for the error log.
    pub warnings: Vec<String>,
    /// Options that were accepted and have no effect; docs/configuration.md gives the reasons.
    pub without_effect: Vec<String>,
    /// `--log-bin[=NAME]`, `--skip-log-bin`: the base name, or `None` if the binary log is disabled.
    pub log_bin: Option<String>,
    /// `--log-error[=NAME]`, `--skip-log-error`.
    pub log_error: LogErrorOption,
    /// `--user`: the user to switch to when started by root.
    pub user: Option<String>,
    /// `--initialize`: create a data directory and exit.
    pub initialize: bool,
    /// `--validate-config`: check the options and exit.
    pub validate_config: bool,
    /// `--convert-log-layout`: convert the data directory to the `log_layout` of the options and exit.
    pub convert_log_layout: bool,
    /// `--apply-archive`: append the archive of the log in this directory to a restored backup and exit.
    pub apply_archive: Option<PathBuf>,
    /// `--stop-time`, `--stop-gtid`: where that ends.
    pub stop_time: Option<String>,
    pub stop_gtid: Option<String>,
    /// `--stop-timeline`: the timeline to follow.
    pub stop_timeline: Option<String>,
}

/// Where the error log is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogErrorOption {
    #[default]
    StandardError,
    /// The option without a name: the pid file's path with the suffix `.err`.
    LikePidFile,
    Name(String),
}

impl LogErrorOption {
    const SUFFIX: &str = ".err";

    fn of(value: Option<&str>) -> LogErrorOption {
        match value {
            None | Some("") => LogErrorOption::LikePidFile,
            Some(name) => LogErrorOption::Name(name.to_owned()),
        }
    }

    /// Returns the value of `log_error`, relative to the data directory unless it is absolute; empty is
    /// standard error. A name without a suffix gets one, and a relative one begins with a dot, as in MariaDB.
    pub fn file(&self, pid_file: &Path) -> String {
        match self {
            LogErrorOption::StandardError => String::new(),
            LogErrorOption::LikePidFile => pid_file.with_extension("err").display().to_string(),
            LogErrorOption::Name(name) => {
                let last = name.rsplit('/').next().unwrap_or_default();
                let suffix = if last.contains('.') { "" } else { LogErrorOption::SUFFIX };
                let folder = if name.starts_with(['/', '.']) { "" } else { "./" };
                format!("{folder}{name}{suffix}")
            }
        }
    }
}

/// The server does not start. Nothing was changed.
#[derive(Debug)]
pub struct StartupError {
    /// Message for standard error, of one or more lines.
    pub message: String,
    /// Exit code of the process.
    pub exit_code: i32,
}

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StartupError {}

impl From<OptionFileError> for StartupError {
    fn from(error: OptionFileError) -> StartupError {
        let message = format!("{error}\nFatal error in defaults handling. Program aborted");
        StartupError { message, exit_code: 1 }
    }
}

/// Options that request help.
const HELP: &[&str] = &["--help", "-?", "-I"];

/// Maximum number of values that an error message lists.
const MEMBERS_SHOWN: usize = 40;

/// Options of MariaDB engines and plugins that this server does not have, one per line. They are accepted and
/// listed in one line of the error log. The list has full names, so that a mistyped option is refused.
const FOREIGN: &str = include_str!("foreign_options.txt");
/// Prefixes of plugins with options of their own, accepted in the same way.
const FOREIGN_PREFIXES: &[&str] = &["rocksdb_", "plugin_", "provider_", "spider_", "mroonga_"];
/// Options of other servers that are rejected, with the replacement.
const INSTEAD: &[(&str, &str)] = &[
    ("bootstrap", "use --initialize with --init-file"),
    ("daemonize", "run it as a service, or end the command with &"),
    ("initialize_insecure", "use --initialize"),
];
/// Settings whose option may stand without a value, which is then 1: of a list, the second word.
const OPTIONAL: &[&str] = &[
    "alter_algorithm",
    "aria_recover_options",
    "auto_increment_increment",
    "auto_increment_offset",
    "concurrent_insert",
    "delay_key_write",
    "event_scheduler",
    "innodb_fast_shutdown",
    "innodb_flush_log_at_timeout",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_neighbors",
    "innodb_purge_threads",
    "log_warnings",
    "max_recursive_iterations",
    "max_sp_recursion_depth",
    "myisam_recover_options",
    "old_alter_table",
];
/// Options of MariaDB's server that have no meaning here.
const IGNORED: &[&str] = &[
    "symbolic_links",
    "skip_symbolic_links",
    "external_locking",
    "skip_host_cache",
    "old_style_user_limits",
    "safe_user_create",
    "language",
    "character_set_client_handshake",
    "temp_pool",
    "memlock",
    "log_tc",
    "log_tc_size",
    "des_key_file",
    "plugin_load",
    "plugin_load_add",
    "server_audit",
    "simple_password_check",
    "cracklib_password_check",
    "host_cache_size",
    "flush_time",
    "table_open_cache_instances",
    "metadata_locks_cache_size",
    "stored_program_cache",
    "federated",
    "debug_no_sync",
    "max_delayed_threads",
    "delayed_insert_limit",
    "slow_launch_time",
    "max_length_for_sort_data",
    "max_seeks_for_key",
    "max_tmp_tables",
    "max_write_lock_count",
    "mrr_buffer_size",
    "sync_frm",
    "sync_relay_log_info",
    "relay_log_index",
    "relay_log_info_file",
    "master_info_file",
    "slave_load_tmpdir",
    "slave_compressed_protocol",
    "slave_domain_parallel_threads",
    "report_user",
    "report_password",
    "histogram_size",
    "histogram_type",
    "join_cache_level",
    "join_buffer_space_limit",
    "low_priority_updates",
    "net_buffer_length",
    "range_alloc_block_size",
    "stack_trace",
    "tc_heuristic_recover",
];

/// Reads option files and the command line (without the program name).
pub fn load(arguments: &[String], build: &Build) -> Result<StartupRequest, StartupError> {
    let (plan, rest) = DefaultsPlan::take(arguments);
    let asks = |names: &[&str]| rest.iter().any(|argument| names.contains(&argument.as_str()));
    let needs_values = asks(HELP) && asks(&["--verbose", "-v"]);
    // Other requests to print need no option files.
    if !needs_values && let Some(print) = rest.iter().find_map(|argument| print_request(argument, build)) {
        return print.map(StartupRequest::Print);
    }
    let from_files = plan.read(GROUPS)?;
    if plan.print {
        let of_files = from_files.arguments.iter().map(|option| &option.argument);
        let all: Vec<&str> = of_files.chain(rest).map(String::as_str).collect();
        let text =
            format!("cohortd would have been started with the following arguments:\n{} \n", all.join(" "));
        return Ok(StartupRequest::Print(text));
    }
    let mut options = Options { log_bin: Some("binlog".to_owned()), ..Options::default() };
    options.warnings.extend(from_files.warnings);
    for FileOption { argument, file, line, .. } in &from_files.arguments {
        // An option in a file never takes the next line as its value.
        options.argument(argument, &mut std::iter::empty()).map_err(|error| StartupError {
            message: format!("{} in {} at line {line}", error.message, file.display()),
            ..error
        })?;
    }
    let mut rest = rest.iter().map(String::as_str).filter(|argument| !HELP.contains(argument));
    while let Some(argument) = rest.next() {
        options.argument(argument, &mut rest)?;
    }
    if needs_values {
        let globals = Globals::new();
        options.apply(&globals);
        return Ok(StartupRequest::Print(help::full(build, &globals)));
    }
    if options.validate_config {
        let warnings: String = options.warnings.iter().map(|warning| format!("{warning}\n")).collect();
        return Ok(StartupRequest::Print(format!("{warnings}The configuration is valid.\n")));
    }
    Ok(StartupRequest::Run(Box::new(options)))
}

fn print_request(argument: &str, build: &Build) -> Option<Result<String, StartupError>> {
    let text = match argument {
        "--version" | "-V" => build.banner(),
        help if HELP.contains(&help) => help::short(build),
        "--print-configuration-docs" => crate::manual::manual_page(),
        "--print-sample-file" => crate::manual::sample_file(),
        "--print-man-page" => crate::shell::man_page(build),
        _ => {
            if let Some(shell) = argument.strip_prefix("--print-completions=") {
                let unknown = || failure(format!("'{shell}' is none of bash, fish, zsh"), EXIT_BAD_VALUE);
                return Some(crate::shell::completions(shell).ok_or_else(unknown));
            }
            let name = argument.strip_prefix("--help=")?;
            let unknown = || failure(format!("unknown option '{name}'"), EXIT_UNKNOWN_OPTION);
            return Some(help::of_option(name).ok_or_else(unknown));
        }
    };
    Some(Ok(text))
}

/// Returns whether an option other than a variable is on.
fn is_on(given: &Given<'_>) -> bool {
    !matches!(given.value, Some("0" | "OFF" | "off" | "FALSE" | "false"))
}

/// An option and its possible value.
struct Given<'a> {
    /// As written, with leading dashes.
    written: &'a str,
    /// Without dashes and prefixes, with underscores.
    name: String,
    value: Option<&'a str>,
    loose: bool,
}

impl Options {
    fn argument<'a>(
        &mut self,
        argument: &'a str,
        rest: &mut dyn Iterator<Item = &'a str>,
    ) -> Result<(), StartupError> {
        if let Some(long) = argument.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
            let name = name.replace('-', "_");
            let (name, loose) = match name.strip_prefix("loose_") {
                Some(inner) => (inner.to_owned(), true),
                None => (name, false),
            };
            return self.long(Given { written: argument, name, value, loose }, rest);
        }
        let unknown = || failure(format!("unknown option '{argument}'"), EXIT_UNKNOWN_OPTION);
        let mut chars = argument.strip_prefix('-').ok_or_else(|| {
            // mariadbd also refuses plain words.
            failure(format!("Too many arguments (first extra is '{argument}')."), 1)
        })?;
        let short = chars.get(..1).ok_or_else(unknown)?;
        chars = &chars[1..];
        let name = match short {
            "h" => "datadir",
            "b" => "basedir",
            "P" => "port",
            "u" => "user",
            "t" => "tmpdir",
            "C" => "character_set_server",
            "W" => "log_warnings",
            "v" => return Ok(()),
            _ => return Err(unknown()),
        };
        let value = if chars.is_empty() { None } else { Some(chars) };
        self.long(Given { written: argument, name: name.to_owned(), value, loose: false }, rest)
    }

    fn long<'a>(
        &mut self,
        given: Given<'a>,
        rest: &mut dyn Iterator<Item = &'a str>,
    ) -> Result<(), StartupError> {
        match given.name.as_str() {
            "log_bin" => {
                self.log_bin =
                    Some(given.value.filter(|name| !name.is_empty()).unwrap_or("binlog").to_owned())
            }
            "skip_log_bin" | "disable_log_bin" => self.log_bin = None,
            "log_error" => self.log_error = LogErrorOption::of(given.value),
            "skip_log_error" | "disable_log_error" => self.log_error = LogErrorOption::StandardError,
            "user" => self.user = Some(required(&given, rest)?.to_owned()),
            "initialize" => self.initialize = is_on(&given),
            "validate_config" => self.validate_config = is_on(&given),
            "convert_log_layout" => self.convert_log_layout = is_on(&given),
            "apply_archive" => self.apply_archive = Some(PathBuf::from(required(&given, rest)?)),
            "stop_time" => self.stop_time = Some(required(&given, rest)?.to_owned()),
            "stop_gtid" => self.stop_gtid = Some(required(&given, rest)?.to_owned()),
            "stop_timeline" => self.stop_timeline = Some(required(&given, rest)?.to_owned()),
            "console" | "verbose" => {}
            "default_time_zone" => self.set(VarId::TimeZone, required(&given, rest)?)?,
            name => return self.variable(name, &given, rest),
        }
        Ok(())
    }

    fn variable<'a>(
        &mut self,
        name: &str,
        given: &Given<'a>,
        rest: &mut dyn Iterator<Item = &'a str>,
    ) -> Result<(), StartupError> {
        let found = |name: &str| VarId::find(name).filter(|id| id.setting().option || id.setting().hidden);
        // Plain aliases of time_zone and log_bin are not options in MariaDB either.
        let exact = found(name).or_else(|| (name == "autocommit").then_some(VarId::Autocommit));
        if let Some(id) = exact {
            let value = match (id.setting().kind, given.value) {
                (Kind::Bool { .. }, None) => "1",
                (_, Some(value)) => value,
                (_, None) if OPTIONAL.contains(&id.setting().name) => "1",
                (_, None) => required(given, rest)?,
            };
            return self.set(id, value);
        }
        for (prefix, value) in [("skip_", "0"), ("disable_", "0"), ("enable_", "1")] {
            let inner = name.strip_prefix(prefix).and_then(found);
            if let Some(id) =
                inner.filter(|id| matches!(id.setting().kind, Kind::Bool { .. } | Kind::Int { .. }))
            {
                return self.set(id, value);
            }
        }
        let is_foreign = IGNORED.contains(&name)
            || FOREIGN.lines().any(|foreign| foreign == name)
            || FOREIGN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if is_foreign {
            self.without_effect.push(name.to_owned());
            return Ok(());
        }
        let instead = INSTEAD.iter().find(|(other, _)| *other == name);
        let hint = match (instead, similar(name)) {
            (Some((_, instead)), _) => format!("; {instead}"),
            (None, Some(similar)) => format!("; did you mean --{}?", similar.replace('_', "-")),
            (None, None) => String::new(),
        };
        let (text, code) = match given.value {
            None => (format!("unknown option '{}'{hint}", given.written), EXIT_UNKNOWN_OPTION),
            Some(_) => (
                format!("unknown variable '{}'{hint}", given.written.trim_start_matches('-')),
                EXIT_UNKNOWN_VARIABLE,
            ),
        };
        match given.loose {
            true => {
                self.warnings.push(text);
                Ok(())
            }
            false => Err(failure(text, code)),
        }
    }

    fn set(&mut self, id: VarId, value: &str) -> Result<(), StartupError> {
        let setting = id.setting();
        let text = option_text(id, value).map_err(|error| failure(error.to_string(), EXIT_BAD_VALUE))?;
        let fit = setting.kind.parse_option(&text).map_err(|misfit| bad_value(id, value, misfit))?;
        if fit.adjusted {
            self.warnings.push(adjusted(id, value, &fit.raw));
        }
        if let Some(why) = setting.refuses(&fit.raw) {
            let option = setting.name.replace('_', "-");
            return Err(failure(format!("--{option}={value} is refused: {why}"), EXIT_BAD_VALUE));
        }
        if setting.no_effect.is_some() && setting.alias_of.is_none() {
            self.without_effect.push(setting.name.to_owned());
        }
        let raw = match (id, fit.raw) {
            // Repeated options form a list.
            (
                VarId::BinlogDoDb
                | VarId::BinlogIgnoreDb
                | VarId::ReplicateDoDb
                | VarId::ReplicateIgnoreDb
                | VarId::ReplicateDoTable
                | VarId::ReplicateIgnoreTable
                | VarId::ReplicateWildDoTable
                | VarId::ReplicateWildIgnoreTable
                | VarId::ReplicateRewriteDb,
                Raw::Text(Some(name)),
            ) => {
                let before = self.changes.iter().rev().find(|(given, _)| *given == id);
                let list = match before {
                    Some((_, Raw::Text(Some(list)))) => format!("{list},{name}").into(),
                    _ => name,
                };
                Raw::Text(Some(list))
            }
            (VarId::SqlMode, Raw::Number(bits)) => Raw::Number(expand_sql_mode(bits)),
            (_, raw) => raw,
        };
        self.changes.push((id.canonical(), raw));
        Ok(())
    }

    /// Puts the options into effect.
    pub fn apply(&self, globals: &Globals) {
        // A collation overrides a character set, whatever their order.
        let (collations, others): (Vec<_>, Vec<_>) =
            self.changes.iter().cloned().partition(|(id, _)| *id == VarId::CollationServer);
        for (id, raw) in others.into_iter().chain(collations) {
            let follower = match raw {
                Raw::Number(n) => followers(id, n as usize),
                Raw::Text(_) => None,
            };
            globals.put_raw(vec![(id, raw)]);
            globals.put_raw(follower.into_iter().collect());
        }
        let (charset, collation) =
            (globals.value(VarId::CharacterSetServer), globals.value(VarId::CollationServer));
        for id in [
            VarId::CharacterSetClient,
            VarId::CharacterSetConnection,
            VarId::CharacterSetResults,
            VarId::CharacterSetDatabase,
        ] {
            globals.put(id, &charset);
        }
        globals.put(VarId::CollationConnection, &collation);
        globals.put(VarId::CollationDatabase, &collation);
        globals.put(VarId::LogBin, &VarValue::Bool(self.log_bin.is_some()));
    }

    /// Returns whether a setting was given.
    pub fn is_given(&self, id: VarId) -> bool {
        self.changes.iter().any(|(given, _)| *given == id)
    }

    /// Returns a path that was given.
    pub fn path(&self, id: VarId) -> Option<PathBuf> {
        self.changes.iter().rev().find(|(given, _)| *given == id).and_then(|(_, raw)| match raw {
            Raw::Text(text) => text.as_deref().map(PathBuf::from),
            Raw::Number(_) => None,
        })
    }
}

/// Long options that are not settings.
const TASKS: &[&str] = &[
    "apply_archive",
    "convert_log_layout",
    "initialize",
    "log_bin",
    "skip_log_bin",
    "stop_gtid",
    "stop_time",
    "stop_timeline",
    "user",
    "validate_config",
];

/// Maximum edit distance between a mistyped name and the suggested option.
const TYPOS_MAX: usize = 2;

/// Returns the option that a mistyped name is a prefix of, or that is closest to it.
fn similar(name: &str) -> Option<&'static str> {
    let names =
        VarId::shown().map(VarId::setting).filter(|setting| setting.option).map(|setting| setting.name);
    let mut names: Vec<&str> = names.chain(TASKS.iter().copied()).collect();
    let mut begun = names.iter().filter(|known| name.len() > 2 && known.starts_with(name));
    if let (Some(only), None) = (begun.next(), begun.next()) {
        return Some(only);
    }
    names.sort_by_key(|known| edits(name, known));
    names.first().copied().filter(|known| edits(name, known) <= TYPOS_MAX.min(name.len() / 3))
}

/// Returns the edit distance: the number of insertions, deletions, replacements and swaps of adjacent
/// letters.
fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > TYPOS_MAX {
        return usize::MAX;
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(x != y)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

fn required<'a>(given: &Given<'a>, rest: &mut dyn Iterator<Item = &'a str>) -> Result<&'a str, StartupError> {
    let hint = if given.written == "-h" { " (the data directory; --help prints the options)" } else { "" };
    let missing =
        || failure(format!("option '{}' requires an argument{hint}", given.written), EXIT_ARGUMENT_REQUIRED);
    given.value.map_or_else(|| rest.next().ok_or_else(missing), Ok)
}

fn failure(text: String, exit_code: i32) -> StartupError {
    StartupError { message: text, exit_code }
}

fn bad_value(id: VarId, value: &str, misfit: Misfit) -> StartupError {
    let name = id.setting().name;
    let text = format!("Error while setting value '{value}' to '{name}'");
    match misfit {
        Misfit::Suffix(c) => failure(
            format!(
                "{text}: Unknown suffix '{c}' used for variable '{name}' (value '{value}'). Legal suffix characters \
                 are: K, M, G, T, P, E"
            ),
            EXIT_BAD_NUMBER,
        ),
        _ => match id.setting().kind {
            Kind::Enum { members, .. } | Kind::Set { members, .. } if members.len() <= MEMBERS_SHOWN => {
                failure(format!("{text}. Values: {}", members.join(", ")), EXIT_BAD_VALUE)
            }
            _ => failure(text, EXIT_BAD_VALUE),
        },
    }
}

fn adjusted(id: VarId, given: &str, raw: &Raw) -> String {
    let setting = id.setting();
    let value = setting.kind.value(raw.clone());
    match setting.kind {
        Kind::Bool { .. } => {
            format!("option '{}': boolean value '{given}' wasn't recognized. Set to OFF.", setting.name)
        }
        Kind::Double { .. } => format!("option '{}': value {given} adjusted to {value}", setting.name),
        _ => format!("option '{}': unsigned value {given} adjusted to {value}", setting.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const BUILD: Build = Build { version: "0.0.0", revision: None, features: &[] };

    fn run(arguments: &[&str]) -> Result<(Arc<Globals>, Box<Options>), StartupError> {
        let mut all = vec!["--no-defaults".to_owned()];
        all.extend(arguments.iter().map(|a| (*a).to_owned()));
        match load(&all, &BUILD)? {
            StartupRequest::Run(options) => {
                let globals = Arc::new(Globals::new());
                options.apply(&globals);
                Ok((globals, options))
            }
            StartupRequest::Print(text) => panic!("{text}"),
        }
    }

    #[test]
    fn habits_of_operators_work() {
        let arguments = [
            "--max-connections=200",
            "--max_binlog_size=100M",
            "--port",
            "3307",
            "-h/data",
            "--skip-networking",
            "--disable-slow_query_log",
            "--loose-unheard-of=1",
            "--innodb-buffer-pool-size=1G",
            "--innodb-io-capacity=1000",
            "--collation-server=latin1_bin",
            "--character-set-server=utf8",
            "--sql-mode=ANSI",
            "--log-bin=master",
            "--binlog-do-db=one",
            "--binlog-do-db=two",
            "--read-only",
            "--default-time-zone=+00:00",
        ];
        let (globals, options) = run(&arguments).expect("good");
        assert_eq!(globals.uint(VarId::MaxConnections), 200);
        assert_eq!(globals.uint(VarId::MaxBinlogSize), 100 << 20);
        assert_eq!(globals.uint(VarId::Port), 3307);
        assert_eq!(globals.text(VarId::Datadir).as_deref(), Some("/data"));
        assert!(
            globals.flag(VarId::SkipNetworking)
                && globals.flag(VarId::ReadOnly)
                && globals.flag(VarId::LogBin)
        );
        assert_eq!(
            globals.value(VarId::CharacterSetServer),
            VarValue::text("latin1"),
            "the collation decides"
        );
        assert_eq!(globals.value(VarId::CharacterSetClient), VarValue::text("latin1"));
        assert!(globals.value(VarId::SqlMode).to_string().contains("ANSI_QUOTES"));
        assert_eq!(globals.text(VarId::TimeZone).as_deref(), Some("+00:00"));
        assert_eq!(options.log_bin.as_deref(), Some("master"));
        assert_eq!(globals.text(VarId::BinlogDoDb).as_deref(), Some("one,two"));
        assert_eq!(options.warnings, ["unknown variable 'loose-unheard-of=1'"]);
        assert_eq!(options.without_effect, ["innodb_io_capacity"]);
        assert_eq!(globals.uint(VarId::InnodbBufferPoolSize), 1 << 30);
        assert_eq!(run(&["--skip-log-bin"]).expect("good").1.log_bin, None);
    }

    #[test]
    fn the_error_log_is_named_as_by_mariadbd() {
        for (arguments, file) in [
            (&[][..], ""),
            (&["--log-error"], "/data/host.err"),
            (&["--log_error="], "/data/host.err"),
            (&["--log-error", "--port=3307"], "/data/host.err"),
            (&["--log-error=foo"], "./foo.err"),
            (&["--log-error=foo.log"], "./foo.log"),
            (&["--log-error=../foo.d/foo"], "../foo.d/foo.err"),
            (&["--log-error=/var/log/foo"], "/var/log/foo.err"),
            (&["--log-error=/var/log/foo.log", "--skip-log-error"], ""),
            (&["--skip-log-error", "--log-error"], "/data/host.err"),
        ] {
            let (_, options) = run(arguments).expect("good");
            assert_eq!(options.log_error.file(Path::new("/data/host.pid")), file, "{arguments:?}");
        }
    }

    /// A request for encrypted files must fail, so that the operator does not believe that they are
    /// encrypted.
    #[test]
    fn ineffective_settings_are_refused_and_not_ignored() {
        for argument in [
            "--encrypt-binlog",
            "--encrypt-tmp-files=1",
            "--innodb-encrypt-log=ON",
            "--innodb-encrypt-tables=FORCE",
            "--innodb-encrypt-temporary-tables",
            "--innodb-read-only",
        ] {
            let error = run(&[argument]).expect_err(argument);
            assert_eq!(error.exit_code, EXIT_BAD_VALUE, "{argument}");
            assert!(error.to_string().contains("is refused: "), "{argument}: {error}");
        }
        let (globals, _) = run(&["--encrypt-binlog=0", "--innodb-encrypt-tables=OFF"]).expect("defaults");
        let set = |value: &str| globals.set("innodb_encrypt_tables", &VarValue::text(value));
        assert_eq!(set("ON").expect_err("nothing is encrypted").number(), 1231);
        set("OFF").expect("the default");
        assert_eq!(globals.value(VarId::InnodbEncryptTables), VarValue::text("OFF"));
    }

    #[test]
    fn an_error_of_an_option_file_names_file_and_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("my.cnf");
        std::fs::write(&file, "[cohortd]\nport = 3307\nprot = 1\n").expect("written");
        let arguments = [format!("--defaults-file={}", file.display()), "--validate-config".to_owned()];
        let error = load(&arguments, &BUILD).expect_err("a mistyped name");
        let text = format!("unknown variable 'prot=1'; did you mean --port? in {} at line 3", file.display());
        assert_eq!((error.message, error.exit_code), (text, EXIT_UNKNOWN_VARIABLE));
        std::fs::write(&file, "[cohortd]\nport = 3307\n").expect("written");
        match load(&arguments, &BUILD).expect("valid") {
            StartupRequest::Print(text) => assert_eq!(text, "The configuration is valid.\n"),
            StartupRequest::Run(_) => panic!("it was to check only"),
        }
        let arguments = [arguments[0].clone(), "--verbose".to_owned(), "--help".to_owned()];
        match load(&arguments, &BUILD).expect("valid") {
            StartupRequest::Print(text) => {
                let line = text.lines().find(|line| line.starts_with("port "));
                assert_eq!(line.and_then(|line| line.split_whitespace().nth(1)), Some("3307"));
            }
            StartupRequest::Run(_) => panic!("it was to print"),
        }
    }

    #[test]
    fn errors_have_the_messages_and_exit_codes_of_mariadbd() {
        for (argument, code, text) in [
            ("--foo", 2, "unknown option '--foo'"),
            ("--foo=1", 7, "unknown variable 'foo=1'"),
            ("--max-conections=9", 7, "unknown variable 'max-conections=9'; did you mean --max-connections?"),
            ("--max-connetcions=9", 7, "did you mean --max-connections?"),
            ("--initialise", 2, "unknown option '--initialise'; did you mean --initialize?"),
            ("--innodb-buffer-pool-siz=1G", 7, "did you mean --innodb-buffer-pool-size?"),
            ("--innodb-buffer-pool-sice=1G", 7, "unknown variable 'innodb-buffer-pool-sice=1G'"),
            ("--loose-innodb-buffer-pool-size", 5, "requires an argument"),
            ("--max-connections=20x", 9, "Unknown suffix 'x' used for variable 'max_connections'"),
            ("--binlog-format=foo", 13, "Error while setting value 'foo' to 'binlog_format'"),
            ("--sql-mode=FOO,ANSI", 13, "Error while setting value 'FOO,ANSI' to 'sql_mode'"),
            ("--long-query-time=abc", 13, "Error while setting value 'abc' to 'long_query_time'"),
            ("--port", 5, "requires an argument"),
            ("--innodb-page-size", 5, "requires an argument"),
            ("--version-comment=x", 7, "unknown variable"),
            ("word", 1, "Too many arguments"),
            ("-", 2, "unknown option"),
        ] {
            let error = run(&[argument]).expect_err(argument);
            assert_eq!(error.exit_code, code, "{argument}: {error}");
            assert!(error.message.contains(text), "{argument}: {error}");
        }
        let (globals, _) = run(&["--event-scheduler", "--log-warnings", "--old-alter-table"]).expect("bare");
        assert_eq!(globals.value(VarId::EventScheduler), VarValue::text("ON"));
        assert_eq!(globals.value(VarId::OldAlterTable), VarValue::text("COPY"));
        assert_eq!(globals.uint(VarId::LogWarnings), 1);
        let (globals, options) = run(&["--max_connections=5", "--read-only=maybe"]).expect("adjusted");
        assert_eq!(globals.uint(VarId::MaxConnections), 10);
        assert_eq!(options.warnings[0], "option 'max_connections': unsigned value 5 adjusted to 10");
        assert_eq!(
            options.warnings[1],
            "option 'read_only': boolean value 'maybe' wasn't recognized. Set to OFF."
        );
    }
}
