//! The files of the test suite, and a server to run the tests against.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use mysql::OptsBuilder;
use mysql::prelude::Queryable;
use tempfile::TempDir;

use crate::support::{Cohort, Maria};

/// Directory where Debian's package mariadb-test installs the suite.
const INSTALLED: &str = "/usr/share/mysql/mysql-test";

/// Includes that require certain engines and builds. They are emptied: what a test needs exists, or the test
/// fails by itself.
const ASKED: &[&str] = &[
    "have_innodb.inc",
    "have_sequence.inc",
    "have_partition.inc",
    "not_asan.inc",
    "not_msan.inc",
    "not_ubsan.inc",
    "not_valgrind.inc",
    "not_embedded.inc",
    "have_log_bin.inc",
    "default_charset.inc",
];

/// Creates the account that MariaDB's installation makes for its view of the accounts. Tests list it.
const MADE: &[&str] = &[
    "CREATE USER `mariadb.sys`@localhost ACCOUNT LOCK PASSWORD EXPIRE",
    "GRANT SELECT, DELETE ON mysql.global_priv TO `mariadb.sys`@localhost",
];

/// Timeout of a test, after which it has failed.
const SECONDS_MAX: u64 = 120;

/// Name prefixes of the suites that are tried as a whole. The empty prefix is `main`.
const SUITES: &[&str] = &["", "engines/funcs.", "funcs_1.", "roles."];

/// Returns the names of all installed tests of these suites.
pub fn all_tests() -> Vec<String> {
    let of_suite = |prefix: &&str| {
        let folder = Files::of(prefix).test.parent().expect("a folder of the suite").to_owned();
        let files = std::fs::read_dir(folder).expect("mariadb-test is installed; ./x test installs it");
        let name = |file: std::fs::DirEntry| {
            let name = file.file_name().to_str()?.strip_suffix(".test")?.to_owned();
            Some(format!("{prefix}{name}"))
        };
        files.flatten().filter_map(name).collect::<Vec<String>>()
    };
    let mut names: Vec<String> = SUITES.iter().flat_map(of_suite).collect();
    names.sort_unstable();
    names
}

/// Returns whether a test with this name exists.
pub fn is_there(name: &str) -> bool {
    Files::of(name).test.is_file()
}

/// The files of a test. `name` is a test of the suite `main`, `suite.name` one of another suite.
struct Files {
    /// The directory of the suite.
    suite: PathBuf,
    test: PathBuf,
    result: PathBuf,
    options: [PathBuf; 2],
}

impl Files {
    fn of(name: &str) -> Files {
        let installed = Path::new(INSTALLED);
        let (suite, name) = match name.split_once('.') {
            Some((suite, name)) => (installed.join("suite").join(suite), name),
            None => (installed.join("main"), name),
        };
        // Some suites keep tests and results in separate directories.
        let folder = |apart: &str| Some(suite.join(apart)).filter(|folder| folder.is_dir());
        let tests = folder("t").unwrap_or_else(|| suite.clone());
        let results = folder("r").unwrap_or_else(|| suite.clone());
        Files {
            test: tests.join(format!("{name}.test")),
            result: results.join(format!("{name}.result")),
            options: [".opt", "-master.opt"].map(|ending| tests.join(format!("{name}{ending}"))),
            suite,
        }
    }
}

/// The outcome of a test.
pub enum Outcome {
    Passed,
    /// The lines differ only in their order, or in query plans.
    Unordered(String),
    /// The client's message, or the first lines that differ.
    Failed(String),
}

/// The server under test.
enum Server {
    Cohort(Cohort),
    /// A real MariaDB, to find which tests it passes with this runner.
    MariaDb(Maria),
}

impl Server {
    fn options(&self) -> OptsBuilder {
        match self {
            Server::Cohort(server) => server.options(),
            Server::MariaDb(server) => server.options(),
        }
    }

    fn socket(&self) -> &Path {
        match self {
            Server::Cohort(server) => &server.socket,
            Server::MariaDb(server) => &server.socket,
        }
    }

    fn port(&self) -> u16 {
        match self {
            Server::Cohort(server) => server.port,
            Server::MariaDb(server) => server.port,
        }
    }

    fn datadir(&self) -> &Path {
        match self {
            Server::Cohort(server) => &server.datadir,
            Server::MariaDb(server) => &server.datadir,
        }
    }
}

/// A server, and the suite's files in the layout that the tests expect.
pub struct Suite {
    server: Server,
    folder: TempDir,
}

impl Suite {
    pub fn new() -> Suite {
        Suite::with(&[]).unwrap_or_else(|said| panic!("{said}"))
    }

    /// Starts a separate server for a test whose option file requires one. Returns `None` if there is no such
    /// file.
    pub fn for_test(name: &str) -> Option<Result<Suite, String>> {
        let files = Files::of(name).options;
        let texts: Vec<Vec<u8>> = files.iter().filter_map(|file| std::fs::read(file).ok()).collect();
        let options: Vec<String> =
            texts.iter().flat_map(|text| words(&String::from_utf8_lossy(text))).collect();
        (!texts.is_empty()).then(|| Suite::with(&options))
    }

    /// Starts a server with these options. Returns its message if it refuses them.
    fn with(options: &[String]) -> Result<Suite, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        // The tests look for the server's files in `var`.
        for name in ["var", "var/tmp", "var/run", "var/log", "var/mysqld.1", "include", "main"] {
            std::fs::create_dir(at(name)).expect("made");
        }
        let installed = Path::new(INSTALLED);
        assert!(installed.is_dir(), "{INSTALLED} is not there; ./x test installs mariadb-test");
        for name in ["std_data", "suite", "lib"] {
            std::os::unix::fs::symlink(installed.join(name), at(name)).expect("linked");
        }
        for name in ["var/std_data", "var/mysqld.1/std_data"] {
            std::os::unix::fs::symlink(installed.join("std_data"), at(name)).expect("linked");
        }
        for (name, changed) in includes() {
            let copy = at("include").join(name);
            match changed {
                Some(bytes) => std::fs::write(copy, bytes).expect("written"),
                None => {
                    std::os::unix::fs::symlink(installed.join("include").join(name), copy).expect("linked")
                }
            }
        }
        for name in ASKED {
            let include = at("include").join(name);
            // Some includes do not exist in this version of the suite.
            let _ = std::fs::remove_file(&include);
            std::fs::write(include, "# asked for nothing\n").expect("written");
        }
        for entry in std::fs::read_dir(installed.join("main")).expect("the tests are there").flatten() {
            let copy = at("main").join(entry.file_name());
            std::os::unix::fs::symlink(entry.path(), copy).expect("linked");
        }
        let server = server(&folder, options)?;
        // The login fails only if a test's options require that.
        if let Ok(mut client) = mysql::Conn::new(server.options()) {
            MADE.iter().for_each(|statement| client.query_drop(statement).unwrap_or_default());
        }
        Ok(Suite { server, folder })
    }

    /// Runs a test in a new database.
    pub fn run(&mut self, name: &str) -> Outcome {
        let files = Files::of(name);
        let (test, result) = (self.copied(&files.test), self.copied(&files.result));
        let (Some(test), Some(result)) = (test, result) else {
            return Outcome::Failed("there is no such test".to_owned());
        };
        if let Err(error) = self.fresh_database() {
            return Outcome::Failed(format!("the server is out of order: {error}"));
        }
        let (answers, said) = (self.folder.path().join("answers"), self.folder.path().join("said"));
        let suite = if name.contains('.') { files.suite } else { self.folder.path().join("main") };
        let mut command = self.command(&test, &suite);
        command.stdout(std::fs::File::create(&answers).expect("a file"));
        command.stderr(std::fs::File::create(&said).expect("a file"));
        let mut child = command.spawn().expect("mariadb-test is installed; ./x test installs it");
        let end = Instant::now() + Duration::from_secs(SECONDS_MAX);
        let status = loop {
            if let Some(status) = child.try_wait().expect("asked") {
                break Some(status);
            }
            if Instant::now() > end {
                // Both calls fail only if the process has already ended.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        match status {
            Some(status) if status.success() => compared(&answers, &result),
            Some(_) => Outcome::Failed(first_lines(&said)),
            None => Outcome::Failed(format!("it took longer than {SECONDS_MAX} seconds")),
        }
    }

    fn fresh_database(&self) -> mysql::Result<()> {
        let mut client = mysql::Conn::new(self.server.options())?;
        client.query_drop("DROP DATABASE IF EXISTS test")?;
        client.query_drop("CREATE DATABASE test CHARACTER SET latin1 COLLATE latin1_swedish_ci")?;
        // Tests put files into the directory in which MariaDB has its tables.
        std::fs::create_dir_all(self.server.datadir().join("test"))?;
        Ok(())
    }

    /// Returns a copy of a suite file without the expected warnings.
    fn copied(&self, file: &Path) -> Option<PathBuf> {
        let bytes = std::fs::read(file).ok()?;
        let copy = self.folder.path().join("main").join(file.file_name()?);
        // Remove the link to the installed file.
        let _ = std::fs::remove_file(&copy);
        std::fs::write(&copy, without_suppressions(&bytes)).expect("written");
        Some(copy)
    }

    fn command(&self, test: &Path, suite: &Path) -> Command {
        let folder = self.folder.path();
        let place = |name: &str| folder.join(name).display().to_string();
        let client = |program: &str| {
            format!("{program} --no-defaults --user=root --socket={}", self.server.socket().display())
        };
        let mut command = Command::new("mariadb-test");
        command
            .current_dir(folder)
            .stdin(Stdio::null())
            .args(["--no-defaults", "--silent", "--user=root", "--database=test"])
            .arg(format!("--socket={}", self.server.socket().display()))
            .arg(format!("--port={}", self.server.port()))
            .arg(format!("--tmpdir={}", place("var/tmp")))
            .arg(format!("--logdir={}", place("var/tmp")))
            .arg(format!("--basedir={}", folder.display()))
            .arg("--character-sets-dir=/usr/share/mysql/charsets")
            .arg(format!("--test-file={}", test.display()))
            .args(std::env::var("COHORT_MTR_OPTIONS").iter().flat_map(|options| options.split_whitespace()));
        let variables = [
            ("MYSQL_TEST_DIR", folder.display().to_string()),
            ("MTR_SUITE_DIR", suite.display().to_string()),
            ("MYSQLTEST_VARDIR", place("var")),
            ("MYSQL_TMP_DIR", place("var/tmp")),
            ("MASTER_MYSOCK", self.server.socket().display().to_string()),
            ("MASTER_MYPORT", self.server.port().to_string()),
            ("MYSQLD_DATADIR", self.server.datadir().display().to_string()),
            ("MYSQL", client("mariadb")),
            ("MYSQL_DUMP", client("mariadb-dump")),
            ("MYSQL_CHECK", client("mariadb-check")),
            ("MYSQL_SHOW", client("mariadb-show")),
            ("MYSQL_IMPORT", client("mariadb-import")),
            ("MYSQL_SLAP", client("mariadb-slap")),
            ("MYSQL_DUMP_SLAVE", client("mariadb-dump")),
            ("EXE_MYSQL", "mariadb".to_owned()),
            ("MYSQL_TZINFO_TO_SQL", "mariadb-tzinfo-to-sql".to_owned()),
            ("MYSQL_MY_PRINT_DEFAULTS", "my_print_defaults".to_owned()),
            ("MY_PERROR", "perror".to_owned()),
            ("REPLACE", "replace".to_owned()),
            ("MARIADB_CONV", "mariadb-conv --character-sets-dir=/usr/share/mysql/charsets".to_owned()),
            ("MYSQL_BINDIR", "/usr/bin".to_owned()),
            ("MYSQL_SHAREDIR", "/usr/share/mysql".to_owned()),
            ("MYSQL_CHARSETSDIR", "/usr/share/mysql/charsets".to_owned()),
            ("SECURE_LOAD_PATH", place("std_data")),
            ("MYSQLTEST_REAL_VARDIR", place("var")),
            ("DEFAULT_MASTER_PORT", self.server.port().to_string()),
            ("MYSQLADMIN", client("mariadb-admin")),
            ("MYSQL_BINLOG", "mariadb-binlog --no-defaults".to_owned()),
            ("MYSQL_TEST", client("mariadb-test") + " --silent"),
            ("DEFAULT_CHARSET_DIR", "/usr/share/mysql/charsets".to_owned()),
            ("LC_ALL", "C".to_owned()),
            ("TZ", "MET".to_owned()),
        ];
        command.envs(variables);
        command
    }
}

/// Returns the names of the includes, and for those that expect warnings their changed contents.
fn includes() -> &'static [(OsString, Option<Vec<u8>>)] {
    static ALL: OnceLock<Vec<(OsString, Option<Vec<u8>>)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let entries = std::fs::read_dir(Path::new(INSTALLED).join("include"));
        let entries = entries.expect("the includes are there").flatten();
        let read = |entry: std::fs::DirEntry| {
            let bytes = std::fs::read(entry.path()).ok().filter(|bytes| has_suppressions(bytes));
            (entry.file_name(), bytes.map(|bytes| without_suppressions(&bytes)))
        };
        entries.map(read).collect()
    })
}

/// Options of the suite's own harness that affect test results.
const OPTIONS: &[&str] = &[
    "--log-bin-trust-function-creators=1",
    "--local-infile",
    "--character-set-server=latin1",
    "--connect-timeout=60",
    "--key_buffer_size=1M",
    "--sort_buffer_size=256K",
    "--max_heap_table_size=1M",
    "--use_stat_tables=preferably",
    "--histogram_type=json_hb",
    "--slave-net-timeout=120",
];

fn server(folder: &TempDir, options: &[String]) -> Result<Server, String> {
    let place = |name: &str| folder.path().join(name).display().to_string();
    let with_places = |option: &String| {
        option
            .replace("$MYSQL_TEST_DIR", &folder.path().display().to_string())
            .replace("$MYSQLTEST_VARDIR", &place("var"))
            .replace("$MYSQL_TMP_DIR", &place("var/tmp"))
    };
    // With --skip-name-resolve, the client's account at localhost would not match its address.
    let options = options.iter().filter(|option| !option.replace('_', "-").contains("skip-name-resolve"));
    let own: Vec<String> = options.map(with_places).map(first_charset).collect();
    let all: Vec<&str> = OPTIONS.iter().copied().chain(own.iter().map(String::as_str)).collect();
    if std::env::var_os("COHORT_MTR_MARIADB").is_some() {
        // It panics if MariaDB refuses the options.
        let server = std::panic::catch_unwind(|| Maria::source(&all));
        return server.map(Server::MariaDb).map_err(|_| "no MariaDB with its options".to_owned());
    }
    Cohort::try_start(&folder.path().join("var/mysqld.1"), "data", &all)
        .map(Server::Cohort)
        .map_err(|refusal| format!("no server with its options: {refusal:?}"))
}

/// Keeps the first of several character sets separated by commas, as MariaDB does.
fn first_charset(option: String) -> String {
    match option.split_once(',') {
        Some((first, _)) if option.starts_with("--character-set-server=") => first.to_owned(),
        _ => option,
    }
}

/// Splits an option file into words, and removes quotation marks.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.chars() {
        match (quote, c) {
            (Some(mark), c) if mark == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)))
            }
            (_, c) => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

const SUPPRESSION: &[u8] = b"call mtr.add_suppression";

fn has_suppressions(bytes: &[u8]) -> bool {
    bytes.to_ascii_lowercase().windows(SUPPRESSION.len()).any(|part| part == SUPPRESSION)
}

/// Removes the calls that announce expected warnings to the suite's own harness.
fn without_suppressions(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut is_call = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        is_call |= line.trim_ascii_start().to_ascii_lowercase().starts_with(SUPPRESSION);
        match is_call {
            true => is_call = !line.trim_ascii_end().ends_with(b";"),
            false => kept.extend_from_slice(line),
        }
    }
    kept
}

/// Compares the results with the result file.
fn compared(answers: &Path, result: &Path) -> Outcome {
    let (ours, theirs) = (same_engine(answers), same_engine(result));
    if ours == theirs {
        return Outcome::Passed;
    }
    let differs = |(a, b): &(&String, &String)| a != b;
    let first =
        ours.iter().zip(&theirs).position(|pair| differs(&pair)).unwrap_or(ours.len().min(theirs.len()));
    let from =
        |lines: &[String]| lines.iter().skip(first).take(6).cloned().collect::<Vec<_>>().join("\n      ");
    let why = format!("line {first}:\n    here\n      {}\n    MariaDB\n      {}", from(&ours), from(&theirs));
    match without_order(ours) == without_order(theirs) {
        true => Outcome::Unordered(why),
        false => Outcome::Failed(why),
    }
}

/// Sorts the lines and removes rows of EXPLAIN.
fn without_order(mut lines: Vec<String>) -> Vec<String> {
    const KINDS: &[&str] =
        &["SIMPLE", "PRIMARY", "SUBQUERY", "DERIVED", "UNION", "MATERIALIZED", "UNION RESULT"];
    lines.retain(|line| !line.split('\t').nth(1).is_some_and(|kind| KINDS.contains(&kind)));
    lines.sort_unstable();
    lines
}

/// Returns the lines of a file without known differences. All tables have the same engine here, so engine
/// names, and the notes about engines and their missing features, are removed. So are notes about variables
/// without effect.
fn same_engine(file: &Path) -> Vec<String> {
    let bytes = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let is_note = |line: &str| {
        line.starts_with("Note\t1266\tUsing storage engine")
            || line.starts_with("Note\t1031\tStorage engine")
            || (line.starts_with("Note\t1235\t") && line.contains("' has no effect: "))
    };
    let mut lines: Vec<String> = Vec::new();
    let mut source = text.lines().peekable();
    while let Some(line) = source.next() {
        if is_note(line) {
            // The heading is removed together with its last note.
            let goes_on = source.peek().is_some_and(|next| {
                ["Note\t", "Warning\t", "Error\t"].iter().any(|level| next.starts_with(level))
            });
            if !goes_on && lines.last().is_some_and(|last| last == "Warnings:") {
                lines.pop();
            }
            continue;
        }
        lines.push(engine_named(line));
    }
    lines
}

/// Replaces every engine name by the same one.
fn engine_named(line: &str) -> String {
    const ENGINES: &[&str] = &["InnoDB", "MyISAM", "Aria", "MEMORY", "REFERENCE", "ROCKSDB"];
    match ENGINES.iter().find(|engine| line.contains(&format!("ENGINE={engine} "))) {
        Some(engine) => line.replace(&format!("ENGINE={engine} "), "ENGINE=any "),
        None => line.to_owned(),
    }
}

/// Returns the first lines of the client's failure message.
fn first_lines(said: &Path) -> String {
    let bytes = std::fs::read(said).unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().take(25).collect::<Vec<_>>().join("\n    ")
}
