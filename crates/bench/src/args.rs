//! Command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::backup::BackupRun;
use crate::demo::Demo;
use crate::disk::Disk;
use crate::engine::{self, EngineRun};
use crate::instructions::Instructions;
use crate::plan::{self, Agenda, Overrides};
use crate::programs::{self, ProgramsRun};
use crate::servers::{Contestant, Setup};
use crate::sql::{Benchmark, SqlRun};
use crate::workload::{Keys, Protocol, Scale};

/// Options of a run.
pub struct Run {
    pub agenda: Agenda,
    pub contestants: Vec<Contestant>,
    pub setup: Setup,
    pub scale: Scale,
    pub threads: usize,
    /// Number of idle connections in addition to the clients.
    pub idle: usize,
    pub warm: Duration,
    pub measure: Duration,
    pub repeats: usize,
}

/// Output files of the tables.
#[derive(Default)]
pub struct Pages {
    /// Default: the terminal.
    pub markdown: Option<PathBuf>,
    pub html: Option<PathBuf>,
    pub front: Option<PathBuf>,
    pub plot: Option<PathBuf>,
    /// A page with a results section, which is replaced.
    pub docs: Option<PathBuf>,
}

/// The command to run.
pub enum Command {
    Help,
    Version,
    Demo(Demo),
    Instructions(Instructions),
    Sql(SqlRun),
    Engine(EngineRun),
    Programs(ProgramsRun),
    Backup(BackupRun),
    Run { run: Box<Run>, json: Option<PathBuf>, pages: Pages },
    Report { json: Vec<PathBuf>, pages: Pages },
}

pub fn help() -> String {
    format!(
        "cohort-bench run [TABLE|WORKLOAD...] [OPTION...]   measure servers side by side
cohort-bench report FILE... [--markdown=F] [--html=F] [--docs=F] [--front=F] [--plot=F]
                                                   the tables of results kept by --json; of several runs: medians over all
cohort-bench demo --server=PATH --port=N -- ARGS   start a server, load it for ten seconds
cohort-bench --version

cohort-bench instructions [WORKLOAD...] [--cohortd=PATH,PATH...] [--limit=PERCENT] [--keep=DIR]
                          [--transactions=N] [--tables=N] [--rows=N] [--dir=PATH]
                                                   instructions per transaction, counted under valgrind, of
                                                   one build or of some compared with the first
cohort-bench sql [--benchmark=NAME] [--scale=F] [--rows=N] [--queries=LIST] [--repeats=N]
                 [--cohortd=PATH] [--dir=PATH]     TPC-H (tpch, the default) or the Star Schema Benchmark (ssb),
                                                   and single operators, compared with MariaDB
cohort-bench engine [PART...] [--seconds=N] [--repeats=N] [--hold=N] [--cohortd=PATH,PATH...]
                     [--dir=PATH]
                                                   the B+tree engine where short loads do not look; parts:
                                                   scan, range, pool, view, commit, size, tpcc; of several builds,
                                                   range, view, commit and tpcc measure each in turns, without MariaDB
cohort-bench programs [CASE...] [--scale=F] [--seconds=N] [--repeats=N] [--servers=LIST] [--cohortd=PATH]
                      [--dir=PATH]
                                                   stored programs, compared with MariaDB and PostgreSQL; cases: loop, function,
                                                   cursor, plain, before, after, call, routines
cohort-bench backup [--mib=N] [--seconds=N] [--repeats=N] [--cohortd=PATH] [--dir=PATH]
                                                   backups and the archive next to cp and mariadb-backup

Options of run:
  --quick               fewer clients, shorter, once: under five minutes
  --servers=LIST        cohort,mariadb; postgres where the SQL is the same; options after colons make a further
                        contestant of a server: cohort,cohort:early_lock_release=off,mariadb
  --seconds=N           length of each measurement (5; goals 3; quick 2)
  --warm=N              seconds of load before it (2; goals 1; quick 0.5)
  --repeats=N           measurements of each case, whose median counts (3; quick 1)
  --clients=LIST        instead of those of the table
  --disk=LIST           real, ssd (flushes of 1.4 ms), ssds (the same, with a disk for the binary log), hdd (33 ms),
                        or microseconds per flush
  --idle=N              idle connections in addition to the clients (0)
  --large=MIB           size of the large transaction of table 'large' (256; quick 64)
  --protocol=NAME       prepared (default) or text
  --tables=N --rows=N   size of the data set (4 tables of 25000 rows)
  --threads=N           threads that drive the clients (1)
  --tcp                 clients use TCP on the loopback interface, not a Unix socket
  --dir=PATH            where the servers' throw-away folders go (below /var/tmp)
  --cohortd=PATH        the server program, if not in the folder of this one
  --json=FILE           keep the results
  --markdown=FILE       write the tables there, not to the terminal
  --html=FILE           write a page with tables and charts
  --docs=FILE           put the tables into the results section of docs/lab/results.md
  --front=FILE          put the rates into the results section of docs/lab/front.md
  --plot=FILE           draw the rates by MariaDB's, as SVG

{}",
        plan::listing()
    )
}

/// Returns the output of `--version`. `./x` sets the revision.
pub fn version() -> String {
    let revision = option_env!("COHORT_REVISION").map_or_else(String::new, |known| format!(" ({known})"));
    format!("cohort-bench {}{revision}\n", env!("CARGO_PKG_VERSION"))
}

/// Parses the arguments after the program name.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut words = Words { left: arguments.collect::<Vec<_>>().into_iter(), value: None };
    match words.next().as_deref() {
        Some("run") => parse_run(words),
        // `./x bench TABLE` omits the command.
        Some(name) if name.starts_with("--") && !["--help", "-h", "--version"].contains(&name) => {
            parse_run(words.with_first(name))
        }
        Some("demo") => parse_demo(words),
        Some("report") => parse_report(words),
        Some("instructions") => parse_instructions(words),
        Some("sql") => parse_sql(words),
        Some("engine") => parse_engine(words),
        Some("programs") => parse_programs(words),
        Some("backup") => parse_backup(words),
        None | Some("help" | "--help" | "-h") => Ok(Command::Help),
        Some("--version" | "-V") => Ok(Command::Version),
        Some(name) => parse_run(words.with_first(name)),
    }
}

/// The remaining arguments. `--name=value` and `--name value` are equivalent.
struct Words {
    left: std::vec::IntoIter<String>,
    value: Option<String>,
}

impl Words {
    fn next(&mut self) -> Option<String> {
        let word = self.left.next()?;
        match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => {
                self.value = Some(value.to_owned());
                Some(name.to_owned())
            }
            _ => Some(word),
        }
    }

    fn with_first(self, name: &str) -> Words {
        let first = match &self.value {
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        };
        let all: Vec<String> = std::iter::once(first).chain(self.left).collect();
        Words { left: all.into_iter(), value: None }
    }

    fn value(&mut self, name: &str) -> Result<String, String> {
        let value = self.value.take().or_else(|| self.left.next());
        value.ok_or_else(|| format!("{name} needs a value"))
    }

    /// Returns the value of an option, parsed by `read`.
    fn read<T>(&mut self, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        let value = self.value(name)?;
        read(&value).ok_or_else(|| format!("{name}: '{value}' is not understood"))
    }

    /// Returns comma-separated values.
    fn list<T>(&mut self, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
        self.read(name, |value| value.split(',').map(&read).collect())
    }

    /// Rejects `--flag=value` if the flag takes no value.
    fn finish(&mut self, name: &str) -> Result<(), String> {
        self.value.take().map_or(Ok(()), |_| Err(format!("{name} takes no value")))
    }
}

fn positive(text: &str) -> Option<usize> {
    text.parse().ok().filter(|n| *n > 0)
}

fn seconds(text: &str) -> Option<Duration> {
    text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok())
}

/// Parses the length of a measurement.
fn positive_seconds(text: &str) -> Option<Duration> {
    seconds(text).filter(|length| !length.is_zero())
}

fn protocol(text: &str) -> Option<Protocol> {
    [Protocol::Prepared, Protocol::Text].into_iter().find(|p| p.name() == text)
}

fn parse_run(mut words: Words) -> Result<Command, String> {
    let mut names = Vec::new();
    let mut overrides = Overrides::default();
    let (mut quick, mut asked) = (false, Protocol::Prepared);
    let (mut length, mut warm, mut repeats) = (None, None, None);
    let mut contestants = None;
    let mut scale = Scale { tables: 4, rows: 25_000, keys: Keys::Even };
    let (mut threads, mut idle) = (1, 0);
    let (mut json, mut pages) = (None, Pages::default());
    let mut setup = Setup::below(PathBuf::from("/var/tmp"));
    while let Some(word) = words.next() {
        let name = word.as_str();
        match name {
            "--quick" => quick = true,
            "--servers" => contestants = Some(words.list(name, Contestant::parse)?),
            "--seconds" => length = Some(words.read(name, positive_seconds)?),
            "--warm" => warm = Some(words.read(name, seconds)?),
            "--repeats" => repeats = Some(words.read(name, positive)?),
            "--clients" => overrides.clients = Some(words.list(name, positive)?),
            "--disk" => overrides.disks = Some(words.list(name, Disk::parse)?),
            "--large" => {
                overrides.large_mib = Some(words.read(name, |s| s.parse().ok().filter(|n| *n > 0))?);
            }
            "--idle" => idle = words.read(name, |s| s.parse().ok())?,
            "--protocol" => asked = words.read(name, protocol)?,
            "--tables" => scale.tables = words.read(name, |s| s.parse().ok().filter(|n| *n > 0))?,
            "--rows" => scale.rows = words.read(name, |s| s.parse().ok().filter(|n| *n >= 100))?,
            "--threads" => threads = words.read(name, positive)?,
            "--tcp" => setup.tcp = true,
            "--dir" => setup.dir = words.value(name)?.into(),
            "--cohortd" => setup.cohortd = Some(words.value(name)?.into()),
            "--json" => json = Some(words.value(name)?.into()),
            "--markdown" => pages.markdown = Some(words.value(name)?.into()),
            "--html" => pages.html = Some(words.value(name)?.into()),
            "--front" => pages.front = Some(words.value(name)?.into()),
            "--plot" => pages.plot = Some(words.value(name)?.into()),
            "--docs" => pages.docs = Some(words.value(name)?.into()),
            "--help" | "-h" => return Ok(Command::Help),
            _ if name.starts_with("--") => return Err(format!("unknown option '{name}'")),
            _ => names.push(word.clone()),
        }
        words.finish(name)?;
    }
    let agenda = plan::agenda(&names, &overrides, asked, quick)?;
    let is_goals = names.iter().any(|name| name == plan::GOALS);
    let usual = |full: f64, goals: f64, short: f64| {
        Duration::from_secs_f64(match (quick, is_goals) {
            (true, _) => short,
            (_, true) => goals,
            _ => full,
        })
    };
    setup.dir.push(format!("cohort-bench-{}", std::process::id()));
    let is_asked = |table: &str| names.iter().any(|name| name == table);
    let contestants = match contestants {
        Some(named) => named,
        None if is_asked(plan::LAYOUTS) => Contestant::layouts(),
        None if is_asked(plan::FRONT) => {
            ["cohort", "mariadb", "postgres"].into_iter().filter_map(Contestant::parse).collect()
        }
        None => ["cohort", "mariadb"].into_iter().filter_map(Contestant::parse).collect(),
    };
    let run = Run {
        agenda,
        contestants: if is_asked(plan::AGED) {
            Contestant::fresh_and_aged(&contestants)
        } else {
            contestants
        },
        setup,
        scale,
        threads,
        idle,
        warm: warm.unwrap_or(usual(2.0, 1.0, 0.5)),
        measure: length.unwrap_or(usual(5.0, 3.0, 2.0)),
        repeats: repeats.unwrap_or(if quick { 1 } else { 3 }),
    };
    Ok(Command::Run { run: Box::new(run), json, pages })
}

fn parse_instructions(mut words: Words) -> Result<Command, String> {
    let mut asked = Instructions {
        workloads: Vec::new(),
        programs: Vec::new(),
        scale: Scale { tables: 1, rows: 10_000, keys: Keys::Even },
        transactions: 400,
        dir: PathBuf::from("/var/tmp"),
        keep: None,
        limit: None,
    };
    while let Some(word) = words.next() {
        let name = word.as_str();
        match name {
            "--cohortd" => asked.programs = words.list(name, |path| Some(PathBuf::from(path)))?,
            "--limit" => asked.limit = Some(words.read(name, |s| s.parse().ok())?),
            "--keep" => asked.keep = Some(words.value(name)?.into()),
            "--transactions" => {
                asked.transactions = words.read(name, |s| s.parse().ok().filter(|n| *n > 0))?;
            }
            "--tables" => asked.scale.tables = words.read(name, |s| s.parse().ok().filter(|n| *n > 0))?,
            "--rows" => asked.scale.rows = words.read(name, |s| s.parse().ok().filter(|n| *n >= 100))?,
            "--dir" => asked.dir = words.value(name)?.into(),
            _ if name.starts_with("--") => return Err(format!("unknown option '{name}' of instructions")),
            _ => asked.workloads.push(word.clone()),
        }
        words.finish(name)?;
    }
    Ok(Command::Instructions(asked))
}

fn parse_sql(mut words: Words) -> Result<Command, String> {
    let mut asked = SqlRun {
        benchmark: Benchmark::TpcH,
        scale: 0.1,
        rows: 1_000_000,
        repeats: 3,
        queries: Vec::new(),
        dir: PathBuf::from("/var/tmp"),
        cohortd: None,
    };
    while let Some(word) = words.next() {
        let name = word.as_str();
        match name {
            "--benchmark" => {
                asked.benchmark = words.read(name, |s| match s {
                    "tpch" => Some(Benchmark::TpcH),
                    "ssb" => Some(Benchmark::StarSchema),
                    _ => None,
                })?;
            }
            "--scale" => asked.scale = words.read(name, |s| s.parse().ok().filter(|n| *n > 0.0))?,
            "--rows" => asked.rows = words.read(name, |s| s.parse().ok())?,
            "--repeats" => asked.repeats = words.read(name, positive)?,
            "--queries" => {
                asked.queries = words.list(name, |s| s.parse().ok().filter(|n| (1..=22).contains(n)))?;
            }
            "--cohortd" => asked.cohortd = Some(words.value(name)?.into()),
            "--dir" => asked.dir = words.value(name)?.into(),
            other => return Err(format!("unknown word '{other}' of sql")),
        }
        words.finish(name)?;
    }
    Ok(Command::Sql(asked))
}

fn parse_engine(mut words: Words) -> Result<Command, String> {
    let mut asked = EngineRun {
        parts: Vec::new(),
        measure: Duration::from_secs(5),
        repeats: 3,
        hold: Duration::from_secs(60),
        dir: PathBuf::from("/var/tmp"),
        programs: Vec::new(),
    };
    while let Some(word) = words.next() {
        let name = word.as_str();
        match name {
            "--seconds" => asked.measure = words.read(name, positive_seconds)?,
            "--repeats" => asked.repeats = words.read(name, positive)?,
            "--hold" => asked.hold = words.read(name, seconds)?,
            "--cohortd" => asked.programs = words.list(name, |path| Some(PathBuf::from(path)))?,
            "--dir" => asked.dir = words.value(name)?.into(),
            _ => {
                asked.parts.push(engine::Part::parse(name).ok_or(format!("unknown word '{name}' of engine"))?)
            }
        }
        words.finish(name)?;
    }
    Ok(Command::Engine(asked))
}

fn parse_backup(mut words: Words) -> Result<Command, String> {
    let mut asked = BackupRun {
        mib: 5 << 10,
        measure: Duration::from_secs(10),
        repeats: 3,
        dir: PathBuf::from("/var/tmp"),
        cohortd: None,
    };
    while let Some(word) = words.next() {
        let name = word.as_str();
        match name {
            "--mib" => asked.mib = words.read(name, |s| s.parse().ok().filter(|n| *n > 0))?,
            "--seconds" => asked.measure = words.read(name, positive_seconds)?,
            "--repeats" => asked.repeats = words.read(name, positive)?,
            "--cohortd" => asked.cohortd = Some(words.value(name)?.into()),
            "--dir" => asked.dir = words.value(name)?.into(),
            other => return Err(format!("unknown word '{other}' of backup")),
        }
        words.finish(name)?;
    }
    Ok(Command::Backup(asked))
}

fn parse_demo(mut words: Words) -> Result<Command, String> {
    let (mut server, mut port) = (None, 3306);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--server" => server = Some(PathBuf::from(words.value("--server")?)),
            "--port" => port = words.read("--port", |s| s.parse().ok())?,
            "--" => break,
            other => return Err(format!("unknown option '{other}' of demo")),
        }
        words.finish(&word)?;
    }
    let server = server.ok_or("demo needs --server=PATH")?;
    Ok(Command::Demo(Demo { server, port, arguments: words.left.collect() }))
}

fn parse_report(mut words: Words) -> Result<Command, String> {
    let (mut json, mut pages) = (Vec::new(), Pages::default());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--markdown" => pages.markdown = Some(words.value("--markdown")?.into()),
            "--html" => pages.html = Some(words.value("--html")?.into()),
            "--front" => pages.front = Some(words.value("--front")?.into()),
            "--plot" => pages.plot = Some(words.value("--plot")?.into()),
            "--docs" => pages.docs = Some(words.value("--docs")?.into()),
            other if other.starts_with("--") => return Err(format!("unknown option '{other}' of report")),
            _ => json.push(word.clone().into()),
        }
        words.finish(&word)?;
    }
    if json.is_empty() {
        return Err("report needs the file that --json wrote".to_owned());
    }
    Ok(Command::Report { json, pages })
}

fn parse_programs(mut words: Words) -> Result<Command, String> {
    let mut asked = ProgramsRun {
        cases: Vec::new(),
        contestants: ["cohort", "mariadb", "postgres"].into_iter().filter_map(Contestant::parse).collect(),
        scale: 1.0,
        measure: Duration::from_secs(5),
        repeats: 3,
        dir: PathBuf::from("/var/tmp"),
        cohortd: None,
    };
    while let Some(word) = words.next() {
        let name = word.as_str();
        match name {
            "--scale" => asked.scale = words.read(name, |s| s.parse().ok().filter(|n| *n > 0.0))?,
            "--seconds" => asked.measure = words.read(name, positive_seconds)?,
            "--repeats" => asked.repeats = words.read(name, positive)?,
            "--servers" => asked.contestants = words.list(name, Contestant::parse)?,
            "--cohortd" => asked.cohortd = Some(words.value(name)?.into()),
            "--dir" => asked.dir = words.value(name)?.into(),
            _ if programs::names().any(|known| known == name) => asked.cases.push(word.clone()),
            other => return Err(format!("unknown word '{other}' of programs")),
        }
        words.finish(name)?;
    }
    Ok(Command::Programs(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn both_spellings_of_a_value_and_a_command_left_out() {
        for line in [
            "run insert --clients 1,8 --disk=ssd",
            "insert --disk ssd --clients=1,8",
            "--clients=1,8 insert --disk=ssd",
        ] {
            let Ok(Command::Run { run, .. }) = parsed(line) else { panic!("{line}") };
            let clients: Vec<usize> = run.agenda.cases.iter().map(|case| case.clients).collect();
            assert_eq!(clients, [1, 8], "{line}");
            assert!(run.agenda.cases.iter().all(|case| case.disk == Disk::SSD), "{line}");
        }
    }

    #[test]
    fn the_version_is_printed() {
        assert!(matches!(parsed("--version"), Ok(Command::Version)));
        assert!(super::version().starts_with(concat!("cohort-bench ", env!("CARGO_PKG_VERSION"))));
    }

    #[test]
    fn errors_name_their_cause() {
        for (line, word) in [
            ("run --clients", "--clients needs a value"),
            ("run --clients=1,x", "'1,x'"),
            ("run --quick=yes", "--quick takes no value"),
            ("run --fast", "'--fast'"),
            ("nonsense", "'nonsense'"),
            ("demo", "--server"),
            ("report", "--json"),
            ("run --seconds=-1", "'-1'"),
        ] {
            let Err(message) = parsed(line) else { panic!("{line}") };
            assert!(message.contains(word), "{line}: {message}");
        }
    }

    #[test]
    fn the_arguments_of_a_server_are_handed_on_untouched() {
        let Ok(Command::Demo(demo)) = parsed("demo --server /x --port 7 -- --datadir=./d --port=7") else {
            panic!("a demo");
        };
        assert_eq!((demo.port, demo.arguments), (7, vec!["--datadir=./d".to_owned(), "--port=7".to_owned()]));
    }
}
