//! An application with a transaction manager (Narayana, with MariaDB's JDBC driver) over two servers. The
//! application, or one of the servers, is killed before and after every step of the two-phase commit. Then
//! the transaction manager recovers, and no transaction may be half committed.
//!
//! These tests need packages from the network, so `./x test` omits them. `./x jta` downloads the packages and
//! runs the tests.

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use support::{Cohort, Maria};

/// start, end, prepare and commit of two branches, before and after each.
const STEPS: u32 = 16;
const BALANCE: i64 = 1000;

enum Database {
    Cohort(Cohort),
    Maria(Maria),
}

impl Database {
    fn sql(&self, statements: &str) -> String {
        match self {
            Database::Cohort(server) => server.sql(statements),
            Database::Maria(server) => server.sql(statements),
        }
    }

    fn kill_and_restart(&mut self) {
        match self {
            Database::Cohort(server) => server.kill_and_restart(),
            Database::Maria(server) => server.kill_and_restart(),
        }
    }

    fn url(&self) -> String {
        let port = match self {
            Database::Cohort(server) => server.port,
            Database::Maria(server) => server.port,
        };
        format!(
            "jdbc:mariadb://127.0.0.1:{port}/shop?user=root&connectTimeout=20000&socketTimeout=60000\
                 &sessionVariables=innodb_lock_wait_timeout=5"
        )
    }

    fn fill(&self) {
        self.sql(&format!(
            "CREATE DATABASE shop;
             CREATE TABLE shop.account (id INT PRIMARY KEY, balance INT NOT NULL);
             CREATE TABLE shop.done (n INT PRIMARY KEY);
             INSERT INTO shop.account VALUES (1, {BALANCE})"
        ));
    }

    fn done(&self) -> BTreeSet<u32> {
        self.sql("SELECT n FROM shop.done").lines().map(|n| n.parse().expect("a number")).collect()
    }

    fn balance(&self) -> i64 {
        self.sql("SELECT balance FROM shop.account").trim().parse().expect("a number")
    }
}

/// The process to kill at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Application,
    First,
    Second,
}

/// The application while it runs.
struct Application {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Drop for Application {
    fn drop(&mut self) {
        // Both calls fail only if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Application {
    fn start(store: &Path, databases: &[Database; 2], words: &[&str]) -> Application {
        let packages = std::env::var_os("COHORT_JTA").expect("./x jta says where the packages are");
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/jta/Transfers.java");
        let mut child = Command::new("java")
            .args(["-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp"])
            .arg(format!("{}/*", Path::new(&packages).display()))
            .arg(source)
            .arg(store)
            .args(databases.each_ref().map(Database::url))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a Java runtime is installed");
        let input = child.stdin.take().expect("piped");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Application { child, input, lines }
    }

    fn line(&mut self) -> Option<String> {
        self.lines.next().map(|line| line.expect("text"))
    }

    fn go_on(&mut self) {
        self.input.write_all(b"go\n").expect("it waits");
    }
}

/// The two servers, the transaction manager's log, and the commits reported to the application.
struct Shop {
    databases: [Database; 2],
    store: tempfile::TempDir,
    committed: BTreeSet<u32>,
    next: u32,
    /// Steps at which a process was killed.
    seen: BTreeSet<String>,
}

impl Shop {
    fn new(databases: [Database; 2]) -> Shop {
        databases.iter().for_each(Database::fill);
        let store = tempfile::tempdir().expect("a folder");
        Shop { databases, store, committed: BTreeSet::new(), next: 1, seen: BTreeSet::new() }
    }

    /// Runs transfers, one for each step from `step` on, and kills the victim at that step.
    fn run(&mut self, victim: Victim, step: u32, count: u32) {
        let words = ["transfer".to_owned(), self.next.to_string(), count.to_string(), step.to_string()];
        let words = words.each_ref().map(String::as_str);
        let mut application = Application::start(self.store.path(), &self.databases, &words);
        self.next += count;
        while let Some(line) = application.line() {
            let mut fields = line.split(' ');
            match fields.next() {
                Some("at") => {
                    self.seen.insert(fields.skip(1).collect::<Vec<_>>().join(" "));
                    match victim {
                        Victim::Application => return,
                        Victim::First => self.databases[0].kill_and_restart(),
                        Victim::Second => self.databases[1].kill_and_restart(),
                    }
                    application.go_on();
                }
                Some("committed") => {
                    let n = fields.next().and_then(|n| n.parse().ok()).expect("a number");
                    self.committed.insert(n);
                }
                Some("recovered") => {}
                _ => assert!(line.starts_with("failed"), "{line}"),
            }
        }
    }

    /// Runs the transaction manager's recovery, and checks the databases.
    fn check(&self, when: &str) {
        let mut application = Application::start(self.store.path(), &self.databases, &["recover"]);
        let said = application.line();
        assert_eq!(said.as_deref(), Some("recovered"), "{when}");
        let [first, second] = &self.databases;
        for database in [first, second] {
            assert_eq!(database.sql("XA RECOVER"), "", "{when}: nothing is in doubt");
        }
        let done = first.done();
        assert_eq!(done, second.done(), "{when}: in both or in none");
        let moved = done.len() as i64;
        assert_eq!([first.balance(), second.balance()], [BALANCE - moved, BALANCE + moved], "{when}");
        assert!(
            done.is_superset(&self.committed),
            "{when}: {:?} acknowledged, {done:?} there",
            self.committed
        );
    }
}

fn kill_everybody_at_every_step(databases: [Database; 2]) {
    let mut shop = Shop::new(databases);
    for victim in [Victim::First, Victim::Second] {
        shop.run(victim, 0, STEPS);
        shop.check(&format!("{victim:?} killed at every step"));
    }
    for step in 0..STEPS {
        shop.run(Victim::Application, step, 1);
        shop.check(&format!("the application killed at step {step}"));
    }
    for kind in ["start", "end", "prepare", "commit"] {
        for (when, branch) in [("before", "A"), ("before", "B"), ("after", "A"), ("after", "B")] {
            let step = format!("{when} {kind} {branch}");
            assert!(shop.seen.contains(&step), "no process was killed {step}: {:?}", shop.seen);
        }
    }
    let before = shop.committed.len();
    shop.run(Victim::First, STEPS + 1, 3);
    assert_eq!(shop.committed.len(), before + 3, "without a kill all succeed");
    shop.check("at the end");
}

#[test]
#[ignore = "needs packages: ./x jta"]
fn two_cohorts_of_both_layouts() {
    let databases = [Cohort::new(&[]), Cohort::new(&["--log-layout=separate"])];
    kill_everybody_at_every_step(databases.map(Database::Cohort));
}

#[test]
#[ignore = "needs packages: ./x jta"]
fn a_cohort_and_a_mariadb() {
    let databases = [Database::Cohort(Cohort::new(&[])), Database::Maria(Maria::source(&[]))];
    kill_everybody_at_every_step(databases);
}
