//! The command line. Help, man page and completions are made from the same definitions.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_mangen::Man;
use cohort_backup_format::Manifest;
use serde_json::{Value, json};

use crate::account::{Connection, Defaults, FileOptions, GROUPS};
use crate::archive::recovery::{self, Recovered, Stop, find_server, parse_time, recover};
use crate::archive::{self, archiver};
use crate::catalogue::Catalogue;
use crate::client::Account;
use crate::clone::{OPTIONS, Replica, STATEMENTS, clone};
use crate::failure::{DAMAGED, ENDS_EARLY, EXIT_CODES, Failure, Result, exit_code};
use crate::key::random;
use crate::lock;
use crate::progress::Progress;
use crate::prove::{self, prove};
use crate::prune::{Keep, prune};
use crate::repository::Repository;
use crate::restore::{Restored, restore};
use crate::scratch;
use crate::source::{Directory, Server, Source};
use crate::store::Store;
use crate::table::{self, TableName};
use crate::take::{Request, take};
use crate::verify::verify;

/// Takes, keeps and restores backups of Cohort servers.
///
/// A repository is a directory or a place in an object store (s3://BUCKET/PATH, gs://BUCKET/PATH,
/// az://CONTAINER/PATH), whose keys and region are read from the environment: AWS_*, GOOGLE_*, AZURE_*. Its
/// objects are compressed, checksummed, and encrypted with the key file that `init` creates. Data that the
/// repository has already is not stored again.
///
/// Like MariaDB's client programs it reads the option files /etc/my.cnf, /etc/mysql/my.cnf,
/// $MARIADB_HOME/my.cnf and ~/.my.cnf, of which the last value counts, in the groups [client],
/// [client-server], [client-mariadb] and [cohort-backup]: host, port, socket, user, password, ssl, ssl-ca,
/// ssl-verify-server-cert, key-file, rate-limit, server-binary, replica-user, replica-password. Options of
/// the command line precede them.
#[derive(Debug, Parser)]
#[command(name = "cohort-backup", version, max_term_width = 100)]
struct Arguments {
    /// Print the result as one JSON object, and no progress bars
    #[arg(long, global = true)]
    json: bool,
    /// Show no progress bars
    #[arg(long, global = true)]
    quiet: bool,
    #[command(flatten)]
    defaults: Defaults,
    #[command(subcommand)]
    command: Command,
}

/// The repository, and its key.
#[derive(Debug, Args)]
struct Place {
    /// Directory or URL of the repository
    #[arg(env = "COHORT_BACKUP_REPOSITORY", hide_env_values = true)]
    repository: String,
    /// Key file of the repository
    #[arg(long, value_name = "FILE", env = "COHORT_BACKUP_KEY_FILE", hide_env_values = true)]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    patience: Patience,
}

impl Place {
    fn open(&self) -> Result<Repository> {
        let store = self.patience.applied(Store::open(&self.repository, false)?);
        Repository::open(store, self.key_file.as_deref())
    }
}

/// Time that a repository gets.
#[derive(Debug, Args)]
struct Patience {
    /// Maximum time of one operation of the repository with its repetitions; 300 unless given
    #[arg(long, value_name = "SECONDS", env = "COHORT_BACKUP_STORE_TIMEOUT", hide_env_values = true,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    store_timeout: Option<u64>,
}

impl Patience {
    fn applied(&self, store: Store) -> Store {
        match self.store_timeout {
            Some(seconds) => store.with_timeout(Duration::from_secs(seconds)),
            None => store,
        }
    }
}

/// The state that a restore reaches with the archive of the log.
#[derive(Debug, Args)]
struct Moment {
    /// Restore everything that the archive has
    #[arg(long, group = "end")]
    to_latest: bool,
    /// Restore the last transaction that was committed until then: '2026-11-28 19:30:00', in UTC
    #[arg(long, value_name = "TIME", group = "end")]
    to_time: Option<String>,
    /// Restore up to the transaction with this GTID
    #[arg(long, value_name = "GTID", group = "end")]
    to_gtid: Option<String>,
    /// Timeline in hexadecimal digits, as `list` shows it; that of the newest backup unless given
    #[arg(long, value_name = "NUMBER", requires = "end", value_parser = parse_timeline)]
    timeline: Option<u32>,
    /// The server's program; cohortd next to this program or in PATH unless given
    #[arg(long, value_name = "FILE")]
    server_binary: Option<PathBuf>,
}

fn parse_timeline(text: &str) -> std::result::Result<u32, String> {
    u32::from_str_radix(text, 16).map_err(|error| error.to_string())
}

impl Moment {
    fn stop(&self) -> Result<Option<Stop>> {
        Ok(match (&self.to_time, &self.to_gtid) {
            (Some(time), _) => Some(Stop::Time(parse_time(time)?)),
            (_, Some(gtid)) => Some(Stop::Gtid(gtid.clone())),
            _ => self.to_latest.then_some(Stop::Latest),
        })
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a repository and its key file
    ///
    /// Without the key file no backup can be restored. Keep copies of it outside of the repository and the
    /// server.
    Init {
        #[command(flatten)]
        place: Place,
        /// Do not encrypt: all rows and password hashes can be read in the repository
        #[arg(long, conflicts_with = "key_file")]
        no_encryption: bool,
    },
    /// Store a backup of a running server, or a directory that BACKUP SERVER has written
    ///
    /// If it is interrupted, repeat the command: what is stored already is not sent again.
    Take {
        #[command(flatten)]
        place: Place,
        /// Directory that BACKUP SERVER TO has written
        #[arg(long, value_name = "DIRECTORY", conflicts_with = "Connection")]
        from: Option<PathBuf>,
        #[command(flatten)]
        connection: Connection,
        /// Maximum MiB of data per second
        #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(RATES))]
        rate_limit: Option<u64>,
        /// The repository may have backups of another server
        #[arg(long)]
        another_server: bool,
        /// Send only what has changed since the newest backup of the repository, which this server must have
        /// taken. The result is restored like any other
        #[arg(long, conflicts_with = "from")]
        incremental: bool,
    },
    /// Make a new data directory on this machine straight from a running server
    ///
    /// The account needs RELOAD, and SELECT on all databases. A server can start in the directory as it is.
    Clone {
        /// The new or empty directory
        #[arg(long, value_name = "DIRECTORY")]
        to: PathBuf,
        #[command(flatten)]
        connection: Connection,
        /// Maximum MiB of data per second
        #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(RATES))]
        rate_limit: Option<u64>,
        /// Also write an option file and the statements that make the clone a replica of the server
        #[arg(long)]
        replica: bool,
        /// `server_id` of the replica; chosen at random unless given
        #[arg(long, value_name = "NUMBER", requires = "replica",
            value_parser = clap::value_parser!(u32).range(1..))]
        server_id: Option<u32>,
        /// Account of the replica on the server, with the password of the variable COHORT_REPLICA_PASSWORD.
        /// Without it `replica-user` and `replica-password` of the option file; else the account of the clone
        #[arg(long, value_name = "NAME", requires = "replica")]
        replica_user: Option<String>,
    },
    /// List the backups
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Read every object that the backups need, and report those that are missing or damaged
    Verify {
        #[command(flatten)]
        place: Place,
        /// Only this backup, or `latest`
        #[arg(long, value_name = "NAME")]
        backup: Option<String>,
        /// Remove damaged objects, so that the next take stores their contents again
        #[arg(long)]
        remove_damaged: bool,
        /// Restore the backup, the newest if none is named, into this new or empty directory, start a
        /// server in it, check every table, and remove the directory. With an option of the connection, or
        /// with an option file that is named, the server that took the backup gets the result, and shows the
        /// age of the newest proven one
        #[arg(long, value_name = "DIRECTORY", conflicts_with = "remove_damaged")]
        restore: Option<PathBuf>,
        /// The server's program; cohortd next to this program or in PATH unless given
        #[arg(long, value_name = "FILE", requires = "restore", alias = "cohortd")]
        server_binary: Option<PathBuf>,
        #[command(flatten)]
        connection: Connection,
    },
    /// Restore into a new or empty directory, in which a server can start
    ///
    /// Restores the state of a backup, the newest unless one is named. With --to-latest, --to-time or
    /// --to-gtid the archive of the log is applied to the newest backup before the target.
    Restore {
        #[command(flatten)]
        place: Place,
        /// The directory
        #[arg(long, value_name = "DIRECTORY")]
        to: PathBuf,
        /// Name of the backup
        #[arg(long, value_name = "NAME")]
        backup: Option<String>,
        #[command(flatten)]
        moment: Moment,
        /// Copy only this table into a running server. DIRECTORY is used for the restore and then removed.
        /// The account needs CREATE, INSERT, SELECT, ALTER and DROP
        #[arg(long, value_name = "DATABASE.TABLE", value_parser = TableName::parse)]
        table: Option<TableName>,
        /// Name that the table gets
        #[arg(long = "as", value_name = "DATABASE.TABLE", value_parser = TableName::parse, requires = "table")]
        table_as: Option<TableName>,
        #[command(flatten)]
        connection: Connection,
    },
    /// Store the log of a server as it grows; the server starts this command (setting archive_to)
    ///
    /// Reads and writes frames on standard input and output, until the server closes its end.
    Archive {
        /// Directory or URL of the repository
        #[arg(long, value_name = "URL")]
        repository: String,
        /// Key file of the repository
        #[arg(long, value_name = "FILE", env = "COHORT_BACKUP_KEY_FILE", hide_env_values = true)]
        key_file: Option<PathBuf>,
        #[command(flatten)]
        patience: Patience,
    },
    /// Delete old backups, and what no backup needs
    ///
    /// A backup stays if --keep or --keep-days keeps it. The newest always stays.
    Prune {
        #[command(flatten)]
        place: Place,
        /// Keep this number of newest backups
        #[arg(long, value_name = "COUNT", required_unless_present_any = ["keep_days", "unlock"])]
        keep: Option<usize>,
        /// Keep the backups of this number of days
        #[arg(long, value_name = "DAYS")]
        keep_days: Option<u32>,
        /// Only print what would be deleted
        #[arg(long)]
        dry_run: bool,
        /// Remove the locks of commands that were killed on other machines
        #[arg(long)]
        unlock: bool,
    },
    #[command(hide = true)]
    ManPage,
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
}

impl Command {
    /// Adds what the command line lacks and the option files have. The options of a connection are added by
    /// [`Connection::account`].
    fn complete(&mut self, files: &FileOptions) -> Result<()> {
        let (mut place, mut rate_limit, mut server_binary) = (None, None, None);
        match self {
            // Without encryption there is no key.
            Command::Init { no_encryption: true, .. }
            | Command::Archive { .. }
            | Command::ManPage
            | Command::Completions { .. } => {}
            Command::Init { place: found, .. }
            | Command::List { place: found }
            | Command::Prune { place: found, .. } => place = Some(found),
            Command::Take { place: found, rate_limit: rate, .. } => {
                (place, rate_limit) = (Some(found), Some(rate));
            }
            Command::Clone { rate_limit: rate, .. } => rate_limit = Some(rate),
            Command::Verify { place: found, server_binary: server, .. } => {
                (place, server_binary) = (Some(found), Some(server));
            }
            Command::Restore { place: found, moment, .. } => {
                (place, server_binary) = (Some(found), Some(&mut moment.server_binary));
            }
        }
        let file = |name: &str| files.of(name).filter(|file| !file.is_empty()).map(PathBuf::from);
        if let Some(place) = place {
            place.key_file = place.key_file.take().or_else(|| file("key-file"));
        }
        if let Some(server) = server_binary {
            *server = server.take().or_else(|| file("server-binary"));
        }
        if let Some(rate @ None) = rate_limit {
            let of_files = files.number("rate-limit")?;
            if let Some(wrong) = of_files.filter(|mib| !RATES.contains(mib)) {
                return Err(Failure::Refused(format!("option files: '{wrong}' is no value of rate-limit")));
            }
            *rate = of_files;
        }
        Ok(())
    }
}

/// Rate limits in MiB per second.
const RATES: std::ops::RangeInclusive<u64> = 1..=1 << 40;

/// Checks a command line without running it. Returns the reason why it is rejected.
pub fn check(arguments: &[&str]) -> std::result::Result<(), String> {
    command().try_get_matches_from(arguments).map(|_| ()).map_err(|error| error.to_string())
}

/// Runs the program.
pub fn main() -> ExitCode {
    // Files of this program are readable by its user only.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let parsed = command().try_get_matches().and_then(|found| Arguments::from_arg_matches(&found));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let is_json = arguments.json;
    match run(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if is_json {
                say(&json!({ "error": failure.to_string(), "exit_code": exit_code(&failure) }).to_string());
            }
            eprintln!("cohort-backup: {failure}");
            ExitCode::from(exit_code(&failure))
        }
    }
}

fn say(text: &str) {
    // A closed pipe is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Runs a command, prints its result, and returns the exit code.
fn run(mut arguments: Arguments) -> Result<u8> {
    let (is_json, is_quiet) = (arguments.json, arguments.quiet);
    let progress = |message| Progress::new(message, is_json || is_quiet);
    let show = |value: Value, text: &dyn Fn() -> String| match is_json {
        true => say(&value.to_string()),
        false => say(text().trim_end()),
    };
    // The server gives the archive its options, and the other two need none.
    let needs_files = !matches!(
        arguments.command,
        Command::Archive { .. } | Command::ManPage | Command::Completions { .. }
    );
    let files = if needs_files { arguments.defaults.read()? } else { FileOptions::default() };
    if arguments.defaults.print_defaults {
        say(&format!("options of the files, groups {}:\n{}", GROUPS.join(" "), files.text()));
        return Ok(0);
    }
    arguments.command.complete(&files)?;
    match &arguments.command {
        Command::Init { place, no_encryption } => init(place, *no_encryption, &show)?,
        Command::Take { place, from, connection, rate_limit, another_server, incremental } => {
            let request =
                Request { rate: rate_limit.map(|mib| mib << 20), of_another_server: *another_server };
            let repository = place.open()?;
            let mut source: Box<dyn Source> = match from {
                Some(directory) => Box::new(Directory::open(directory)?),
                None => Box::new(Server::connect(&connection.account(&files)?)?.incremental(*incremental)),
            };
            let taken = take(&repository, source.as_mut(), request, &progress("taking"))?;
            let value = json!({
                "backup": described(&taken.catalogue),
                "reused_bytes": taken.reused_bytes,
                "seconds": taken.seconds,
            });
            show(value, &|| {
                format!(
                    "backup {} of {} in {:.1} s: {} were added to the repository, {} were there\n{}",
                    taken.catalogue.name,
                    mib(taken.catalogue.bytes()),
                    taken.seconds,
                    mib(taken.catalogue.added_bytes),
                    mib(taken.reused_bytes),
                    positions(&taken.catalogue.manifest)
                )
            });
        }
        Command::Clone { to, connection, rate_limit, replica, server_id, replica_user } => {
            let account = connection.account(&files)?;
            let replica = match replica {
                true => Some(replica_of(&files, &account, *server_id, replica_user.as_deref())?),
                false => None,
            };
            let rate = rate_limit.map(|mib| mib << 20);
            let cloned = clone(&account, to, replica.as_ref(), rate, &progress("cloning"))?;
            let bytes = cloned.manifest.bytes();
            let files = replica.as_ref().map(|_| (to.join(OPTIONS), to.join(STATEMENTS)));
            let value = json!({
                "directory": to,
                "bytes": bytes,
                "seconds": cloned.seconds,
                "manifest": Manifest { files: Vec::new(), ..cloned.manifest.clone() },
                "option_file": files.as_ref().map(|(options, _)| options),
                "statements": files.as_ref().map(|(_, statements)| statements),
                "server_id": replica.as_ref().map(|replica| replica.server_id),
            });
            show(value, &|| {
                let next = files.as_ref().map(|(options, statements)| {
                    format!(
                        "start it:  cohortd --defaults-file={} --skip-slave-start\nthen once: mariadb < {}\n",
                        options.display(),
                        statements.display()
                    )
                });
                format!(
                    "{} were cloned into {} in {:.1} s\n{}{}",
                    mib(bytes),
                    to.display(),
                    cloned.seconds,
                    positions(&cloned.manifest),
                    next.unwrap_or_default()
                )
            });
        }
        Command::List { place } => {
            let repository = place.open()?;
            let names = repository.backups()?;
            let backups: Vec<_> = names.into_iter().map(|name| (repository.catalogue(&name), name)).collect();
            let value = backups.iter().map(|(read, name)| match read {
                Ok(catalogue) => described(catalogue),
                Err(failure) => json!({ "name": name, "error": failure.to_string() }),
            });
            let line = |(read, name): &(Result<Catalogue>, String)| match read {
                Ok(catalogue) => format!(
                    "{name}  {}  {:>12}  {:>12}  {}\n",
                    catalogue.manifest.cut,
                    mib(catalogue.bytes()),
                    mib(catalogue.added_bytes),
                    catalogue.manifest.gtid_current_pos
                ),
                Err(failure) => format!("{name}  {failure}\n"),
            };
            let heading = format!(
                "{:<29}  {:<20}  {:>12}  {:>12}  {}\n",
                "backup", "state of", "data", "added", "GTID position"
            );
            let runs = archived_runs(&repository)?;
            show(json!({ "backups": value.collect::<Vec<_>>(), "archive": runs }), &|| {
                heading.clone() + &backups.iter().map(line).collect::<String>() + &runs_text(&runs)
            });
            return Ok(backups.iter().find_map(|(read, _)| read.as_ref().err()).map_or(0, exit_code));
        }
        Command::Verify { place, backup, restore: Some(directory), server_binary, connection, .. } => {
            let reports = *connection != Connection::default() || arguments.defaults.names_a_file();
            let account = reports.then(|| connection.account(&files)).transpose()?;
            let backup = backup.as_deref().unwrap_or("latest");
            let server = find_server(server_binary.as_deref());
            let proven = prove(&place.open()?, backup, directory, &server, &progress("restoring"))?;
            if let Some(account) = account.filter(|_| proven.findings.is_empty()) {
                prove::report(&proven, &account)?;
            }
            let value = json!({
                "backup": proven.backup,
                "tables": proven.tables,
                "rows": proven.rows,
                "findings": proven.findings,
                "is_reported": reports && proven.findings.is_empty(),
            });
            show(value, &|| {
                format!(
                    "{}backup {}: a server started with it; {} tables with {} rows were checked, {} are damaged",
                    proven.findings.iter().map(|finding| format!("{finding}\n")).collect::<String>(),
                    proven.backup,
                    proven.tables,
                    proven.rows,
                    proven.findings.len()
                )
            });
            return Ok(if proven.findings.is_empty() { 0 } else { DAMAGED });
        }
        Command::Verify { place, backup, remove_damaged, .. } => {
            return verified(place, backup.as_deref(), *remove_damaged, &progress("verifying"), &show);
        }
        Command::Restore { place, to, backup, moment, table: Some(table), table_as, connection } => {
            let named = table_as.as_ref().unwrap_or(table);
            let account = connection.account(&files)?;
            // The restore may take longer than a server keeps an idle connection.
            drop(table::connect(&account, named)?);
            let state = restored(place, to, backup.as_deref(), moment, &progress("restoring"))?;
            let server = find_server(moment.server_binary.as_deref());
            let (catalogue, bar) = (&state.catalogue, progress("copying"));
            let copied = table::copy(catalogue, to, &server, table, &account, named, &bar)?;
            scratch::remove(to)?;
            let mut value = described_state(&state);
            value["table"] = json!(named.to_string());
            value["rows"] = json!(copied.rows);
            value["triggers_not_copied"] = json!(copied.triggers);
            show(value, &|| {
                let triggers = match &copied.triggers[..] {
                    [] => String::new(),
                    names => format!("triggers that were not copied: {}\n", names.join(", ")),
                };
                let state = state_text(&state);
                format!("{} rows of {table} were copied into {named}\n{triggers}{state}", copied.rows)
            });
            return Ok(if state.is_reached { 0 } else { ENDS_EARLY });
        }
        Command::Restore { connection, .. } if *connection != Connection::default() => {
            return Err(Failure::Refused("options of the connection are for --table only".to_owned()));
        }
        Command::Restore { place, to, backup, moment, .. } => {
            let state = restored(place, to, backup.as_deref(), moment, &progress("restoring"))?;
            let mut value = described_state(&state);
            value["directory"] = json!(to);
            show(value, &|| {
                format!(
                    "backup {} of {} was restored into {} in {:.1} s\n{}",
                    state.catalogue.name,
                    mib(state.catalogue.bytes()),
                    to.display(),
                    state.seconds,
                    state_text(&state)
                )
            });
            return Ok(if state.is_reached { 0 } else { ENDS_EARLY });
        }
        Command::Prune { place, keep, keep_days, dry_run, unlock } => {
            let repository = place.open()?;
            if *unlock {
                let count = lock::remove_all(&repository)?;
                eprintln!("cohort-backup: {count} locks were removed");
            }
            if keep.is_some() || keep_days.is_some() {
                let keep = Keep { count: *keep, days: *keep_days };
                let pruned = prune(&repository, keep, *dry_run)?;
                let value = json!({
                    "kept": pruned.kept,
                    "deleted": pruned.deleted,
                    "deleted_chunks": pruned.chunks,
                    "deleted_archive_objects": pruned.archived,
                    "freed_bytes": pruned.bytes,
                    "dry_run": dry_run,
                });
                show(value, &|| {
                    let would = if *dry_run { "would be " } else { "" };
                    let deleted: String =
                        pruned.deleted.iter().map(|name| format!("{name} {would}deleted\n")).collect();
                    format!("{deleted}{} backups kept, {} {would}freed", pruned.kept.len(), mib(pruned.bytes))
                });
            }
        }
        Command::Archive { repository, key_file, patience } => {
            let store = || Store::open(repository, false).map(|store| patience.applied(store));
            let open = || Repository::open(store()?, key_file.as_deref());
            archiver::run(open, std::io::stdin(), std::io::stdout())?;
        }
        Command::ManPage => say(&man_page()),
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(*shell, &mut command(), "cohort-backup", &mut out);
            say(&String::from_utf8_lossy(&out));
        }
    }
    Ok(0)
}

type Show<'a> = dyn Fn(Value, &dyn Fn() -> String) + 'a;

fn init(place: &Place, no_encryption: bool, show: &Show<'_>) -> Result<()> {
    let key_file = place.key_file.as_deref();
    if key_file.is_none() && !no_encryption {
        return Err(Failure::Key(
            "name a new key file with --key-file; without one, say --no-encryption".to_owned(),
        ));
    }
    if let Some(file) = key_file
        && is_below(file, Path::new(&place.repository))
    {
        return Err(Failure::Refused(format!(
            "{} lies in the repository: a copy of the repository would include its key",
            file.display()
        )));
    }
    Repository::init(place.patience.applied(Store::open(&place.repository, true)?), key_file)?;
    let value =
        json!({ "repository": place.repository, "key_file": key_file, "encrypted": key_file.is_some() });
    show(value, &|| match key_file {
        Some(file) => format!(
            "repository {} was created.\nIts key is {}. Without it no backup can be restored: keep copies of it \
             outside of the repository and outside of the server.",
            place.repository,
            file.display()
        ),
        None => format!("repository {} was created, without encryption", place.repository),
    });
    Ok(())
}

fn is_below(file: &Path, folder: &Path) -> bool {
    let above = file.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (above.canonicalize(), folder.canonicalize()) {
        (Ok(above), Ok(folder)) => above.starts_with(folder),
        _ => file.starts_with(folder),
    }
}

fn verified(
    place: &Place,
    backup: Option<&str>,
    removes: bool,
    progress: &Progress,
    show: &Show<'_>,
) -> Result<u8> {
    let verified = verify(&place.open()?, backup, removes, progress)?;
    let findings = verified.findings.iter().map(|finding| {
        json!({
            "object": finding.object,
            "what": finding.what,
            "backups": finding.backups,
            "cure": finding.cure,
        })
    });
    let value = json!({
        "whole": verified.whole,
        "findings": findings.collect::<Vec<_>>(),
        "chunks": verified.chunks,
        "segments": verified.segments,
        "bytes": verified.bytes,
        "removed": verified.removed,
    });
    show(value, &|| {
        let findings: String = verified
            .findings
            .iter()
            .map(|f| format!("{}\n    needed by: {}\n    cure: {}\n", f.what, f.backups.join(", "), f.cure))
            .collect();
        format!(
            "{findings}{} backups are whole, {} objects are missing or damaged, {} were removed; {} in {} chunks, and {} \
             segments of the archive, were read",
            verified.whole.len(),
            verified.findings.len(),
            verified.removed,
            mib(verified.bytes),
            verified.chunks,
            verified.segments
        )
    });
    Ok(if verified.findings.is_empty() { 0 } else { DAMAGED })
}

/// A part of the archive without a gap, as it is listed.
#[derive(Debug, serde::Serialize)]
struct ArchivedRun {
    timeline: String,
    from_lsn: u64,
    to_lsn: u64,
    from_time: Option<String>,
    to_time: Option<String>,
    gtid_position: String,
    segments: usize,
    stored_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn archived_runs(repository: &Repository) -> Result<Vec<ArchivedRun>> {
    let mut runs = Vec::new();
    for (timeline, stored) in archive::stored(repository)? {
        for run in stored.runs() {
            let mut listed = ArchivedRun {
                timeline: format!("{timeline:08x}"),
                from_lsn: run.from(),
                to_lsn: run.to(),
                from_time: None,
                to_time: None,
                gtid_position: String::new(),
                segments: run.segments.len(),
                stored_bytes: run.segments.iter().map(|segment| segment.stored).sum(),
                error: None,
            };
            match archive::ends_of(repository, &run) {
                Ok((first, last)) => {
                    (listed.from_time, listed.to_time) = (moment(first.first_us), moment(last.last_us));
                    listed.gtid_position = last.gtid_position;
                }
                Err(failure @ Failure::Damaged(_)) => listed.error = Some(failure.to_string()),
                Err(failure) => return Err(failure),
            }
            runs.push(listed);
        }
    }
    Ok(runs)
}

/// Formats a time of the archive; 0 is unknown.
fn moment(us: u64) -> Option<String> {
    let time = jiff::Timestamp::from_microsecond(us as i64).ok().filter(|_| us > 0)?;
    Some(time.strftime("%FT%T%.6fZ").to_string())
}

fn runs_text(runs: &[ArchivedRun]) -> String {
    let line = |run: &ArchivedRun| {
        let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "unknown".to_owned());
        let rest = run.error.as_ref().unwrap_or(&run.gtid_position);
        format!(
            "{:<10}  {:<27}  {:<27}  {:>12}  {rest}\n",
            run.timeline,
            time(&run.from_time),
            time(&run.to_time),
            mib(run.stored_bytes)
        )
    };
    let heading = format!(
        "\n{:<10}  {:<27}  {:<27}  {:>12}  {}\n",
        "timeline", "log from", "until", "stored", "GTID position"
    );
    match runs {
        [] => String::new(),
        runs => heading + &runs.iter().map(line).collect::<String>(),
    }
}

/// Restores a backup, or the state at a moment.
fn restored(
    place: &Place,
    to: &Path,
    backup: Option<&str>,
    moment: &Moment,
    progress: &Progress,
) -> Result<Recovered> {
    let stop = moment.stop()?;
    let repository = place.open()?;
    match stop {
        Some(stop) => {
            let server = find_server(moment.server_binary.as_deref());
            let request = recovery::Request { stop, timeline: moment.timeline, backup, server: &server };
            recover(&repository, &request, to, progress)
        }
        None => {
            let Restored { catalogue, seconds } =
                restore(&repository, backup.unwrap_or("latest"), to, progress)?;
            Ok(Recovered { catalogue, report: None, is_reached: true, archived_until: None, seconds })
        }
    }
}

/// Returns what scripts need to know about a restored state.
fn described_state(state: &Recovered) -> Value {
    let mut value = described(&state.catalogue);
    value["seconds"] = json!(state.seconds);
    value["applied"] = json!(state.report);
    value["is_target_reached"] = json!(state.is_reached);
    value["archived_until"] = json!(state.archived_until.map(|time| time.to_string()));
    value
}

/// Returns the positions of a restored state, for the end of a report.
fn state_text(state: &Recovered) -> String {
    let end = match state.is_reached {
        true => "",
        false => "the archive ends before the target: later transactions may be missing\n",
    };
    let Some(report) = &state.report else { return positions(&state.catalogue.manifest) + end };
    let of = |name: &str| report[name].as_str().map_or_else(|| report[name].to_string(), str::to_owned);
    let log_bin = report["log_bin"].as_str().filter(|name| *name != state.catalogue.manifest.log_bin);
    let log_bin = log_bin.map_or_else(String::new, |name| format!("log_bin was changed to {name}\n"));
    format!(
        "state of {}\ngtid_binlog_pos {}\n{log_bin}{} bytes of the log with {} transactions were applied\n{end}",
        report["time"].as_u64().and_then(moment).unwrap_or_else(|| "an unknown time".to_owned()),
        of("gtid_binlog_pos"),
        of("applied_bytes"),
        of("applied_transactions")
    )
}

/// Returns the options of a new replica.
fn replica_of(
    files: &FileOptions,
    account: &Account,
    server_id: Option<u32>,
    user: Option<&str>,
) -> Result<Replica> {
    let server_id = server_id.unwrap_or_else(|| u32::from_le_bytes(random()).max(1));
    let password = || std::env::var("COHORT_REPLICA_PASSWORD").ok();
    let (user, password) = match (user, files.of("replica-user")) {
        (None, None) => (account.user.clone(), account.password.clone()),
        (Some(user), _) => (user.to_owned(), password().unwrap_or_default()),
        (None, Some(user)) => (user, files.of("replica-password").unwrap_or_default()),
    };
    Ok(Replica { server_id, user, password })
}

/// Returns what scripts need to know about a backup.
fn described(catalogue: &Catalogue) -> Value {
    json!({
        "name": catalogue.name,
        "taken_at": catalogue.taken_at.to_string(),
        "bytes": catalogue.bytes(),
        "added_bytes": catalogue.added_bytes,
        "files": catalogue.files.len(),
        "manifest": catalogue.manifest,
    })
}

/// Returns the positions of a backup, for the end of a report.
fn positions(manifest: &Manifest) -> String {
    let mut text = format!("state of {}\n", manifest.cut);
    if let Some(binlog) = &manifest.binlog {
        text += &format!("binary log {} {}\n", binlog.file, binlog.offset);
    }
    text += &format!("gtid_current_pos {}\n", manifest.gtid_current_pos);
    for source in &manifest.sources {
        text += &format!("replica, connection '{}'\n", source.connection);
    }
    text
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Returns the definition of the command line.
fn command() -> clap::Command {
    let codes: String = EXIT_CODES.iter().map(|(code, meaning)| format!("  {code}  {meaning}\n")).collect();
    Arguments::command().after_long_help(format!("Exit codes:\n{codes}"))
}

/// Returns the manual page: the program, and a section for each command.
fn man_page() -> String {
    let program = command();
    let mut out = Vec::new();
    let page = Man::new(program.clone()).section("1");
    let mut written = page.render_title(&mut out);
    for render in [Man::render_name_section, Man::render_synopsis_section, Man::render_description_section] {
        written = written.and_then(|()| render(&page, &mut out));
    }
    // Those of the program, which every command accepts.
    written = written.and_then(|()| page.render_options_section(&mut out));
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name().to_uppercase();
        let text = command.get_long_about().or(command.get_about()).map(ToString::to_string);
        writeln!(out, ".SH {name}\n{}", text.unwrap_or_default()).expect("memory is large enough");
        let mut options = Vec::new();
        written = written.and_then(|()| Man::new(command.clone()).render_options_section(&mut options));
        out.extend_from_slice(String::from_utf8_lossy(&options).replace(".SH OPTIONS\n", "").as_bytes());
    }
    written.expect("memory is large enough");
    let codes = EXIT_CODES.iter().map(|(code, meaning)| format!(".TP\n{code}\n{meaning}\n"));
    String::from_utf8_lossy(&out).into_owned() + ".SH EXIT STATUS\n" + &codes.collect::<String>()
}
