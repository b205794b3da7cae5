//! Kills a real server under load and checks what survives, based on what the clients know.
//!
//! Clients transfer money between accounts and write each transfer to a journal, in one transaction. A client
//! knows which of its transfers were acknowledged. Readers record the newest journal rows that they saw, with
//! plain and with locking reads. Then the server is killed, or aborts at a failpoint, and is restarted.
//! Whenever that happens:
//!
//! - the sum of all balances is unchanged, and the balances are the result of the journal;
//! - every acknowledged transfer is there, at most one more per client (the one in flight), and none is
//!   missing in between;
//! - every row that a reader saw is there (I5);
//! - the binlog contains the same transfers, each once (I2).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cohort_vfs::{Rng, SeededRng};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::bank::Violation;

const ACCOUNTS: u64 = 10;
const OPENING_BALANCE: i64 = 1_000_000;
const START_LIMIT: Duration = Duration::from_secs(60);

/// The server under test, and its load.
#[derive(Clone, Debug)]
pub struct Target {
    /// Path of `cohortd`.
    pub server: PathBuf,
    /// Data directory, created by the first start.
    pub datadir: PathBuf,
    /// Loopback port of the server.
    pub port: u16,
    /// Number of concurrent writers.
    pub clients: u64,
    /// Engine of the table for bulk statements. The bank's transactions write to InnoDB and RocksDB tables; a
    /// server built without RocksDB stores both in InnoDB.
    pub bulk_engine: &'static str,
    /// `log_layout`.
    pub log_layout: &'static str,
}

/// How a round ends.
#[derive(Clone, Debug)]
pub enum End {
    /// SIGKILL after this time.
    Kill(Duration),
    /// The server aborts itself: `COHORT_FAILPOINT`, for example `before:flush:40`.
    Failpoint(String),
}

/// The clients' records over all rounds.
#[derive(Debug, Default)]
pub struct Books {
    /// Number of the next transfer of each client. All smaller ones were acknowledged, or found after a
    /// crash.
    next: BTreeMap<u64, u64>,
    /// Newest journal rows that readers saw.
    shown: Mutex<BTreeMap<u64, u64>>,
    /// Transfers acknowledged in all rounds.
    pub acknowledged: u64,
    /// Rounds checked.
    pub rounds: u64,
}

/// A running server, killed when dropped.
pub(crate) struct Server {
    pub child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both calls fail only if the server has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn violation(what: impl Into<String>) -> Violation {
    Violation(what.into())
}

impl Target {
    pub(crate) fn start(&self, failpoint: Option<&str>) -> Result<Server, Violation> {
        self.initialize()?;
        let log = self.datadir.with_extension("err");
        let log_file = std::fs::OpenOptions::new().create(true).append(true).open(&log);
        let mut command = Command::new(&self.server);
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.datadir.display()))
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--port={}", self.port))
            .arg(format!("--log-layout={}", self.log_layout))
            .arg(format!("--socket={}", self.datadir.with_extension("sock").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log_file.map_err(|e| violation(format!("{}: {e}", log.display())))?);
        if let Some(point) = failpoint {
            command.env("COHORT_FAILPOINT", point);
        }
        let child = command.spawn().map_err(|e| violation(format!("{}: {e}", self.server.display())))?;
        let mut server = Server { child };
        let start = Instant::now();
        loop {
            if let Ok(mut c) = self.connect() {
                // Another server may be using the port.
                let answer: mysql::Result<Option<String>> = c.query_first("SELECT @@datadir");
                if let Ok(Some(datadir)) = answer
                    && Path::new(&datadir).canonicalize().ok() != self.datadir.canonicalize().ok()
                {
                    return Err(violation(format!("port {} is that of {datadir}", self.port)));
                }
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(violation(format!(
                    "the server does not start ({status}); see {}",
                    log.display()
                )));
            }
            if start.elapsed() > START_LIMIT {
                return Err(violation(format!("the server does not answer; see {}", log.display())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Creates the data directory if it does not exist.
    fn initialize(&self) -> Result<(), Violation> {
        if self.datadir.exists() {
            return Ok(());
        }
        let mut command = Command::new(&self.server);
        command.args(["--no-defaults", "--initialize"]).arg(format!("--datadir={}", self.datadir.display()));
        command.arg(format!("--log-layout={}", self.log_layout));
        let output = command.output().map_err(|e| violation(format!("{}: {e}", self.server.display())))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(violation(String::from_utf8_lossy(&output.stderr))),
        }
    }

    pub(crate) fn connect(&self) -> mysql::Result<Conn> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.port)
            .user(Some("root"))
            .prefer_socket(false)
            .tcp_connect_timeout(Some(Duration::from_secs(5)))
            .read_timeout(Some(Duration::from_secs(20)));
        Conn::new(options)
    }

    /// Creates the bank's tables in a new data directory.
    pub fn set_up(&self) -> Result<(), Violation> {
        let _server = self.start(None)?;
        let run = || -> mysql::Result<()> {
            let mut c = self.connect()?;
            c.query_drop("CREATE DATABASE bank")?;
            c.query_drop(
                "CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL) ENGINE=InnoDB",
            )?;
            c.query_drop(
                "CREATE TABLE bank.journal (client INT, n INT, src INT NOT NULL, dst INT NOT NULL, amount INT NOT NULL, \
                 PRIMARY KEY (client, n)) ENGINE=ROCKSDB",
            )?;
            for id in 0..ACCOUNTS {
                c.query_drop(format!("INSERT INTO bank.account VALUES ({id}, {OPENING_BALANCE})"))?;
            }
            Ok(())
        };
        run().map_err(|e| violation(format!("cannot set up the bank: {e}")))
    }

    /// Runs one round: start, load, kill, restart, check.
    pub fn round(&self, books: &mut Books, end: &End, seed: u64) -> Result<(), Violation> {
        let failpoint = match end {
            End::Failpoint(point) => Some(point.as_str()),
            End::Kill(_) => None,
        };
        let mut server = self.start(failpoint)?;
        let is_over = AtomicBool::new(false);
        let acknowledged: Vec<u64> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..self.clients)
                .map(|client| {
                    let (is_over, first) = (&is_over, books.next.get(&client).copied().unwrap_or(0));
                    scope.spawn(move || self.write(client, first, seed, is_over))
                })
                .collect();
            for locking in ["", " LOCK IN SHARE MODE"] {
                let (is_over, shown) = (&is_over, &books.shown);
                scope.spawn(move || self.read(locking, shown, is_over));
            }
            wait_for_end(&mut server.child, end);
            is_over.store(true, Ordering::SeqCst);
            drop(server);
            writers.into_iter().map(|writer| writer.join().expect("a client does not panic")).collect()
        });
        for (client, next) in (0..).zip(acknowledged) {
            books.acknowledged += next - books.next.get(&client).copied().unwrap_or(0);
            books.next.insert(client, next);
        }
        let _server = self.start(None)?;
        self.check(books).map_err(|v| violation(format!("after {end:?}, seed {seed}: {}", v.0)))?;
        books.rounds += 1;
        Ok(())
    }

    /// Runs a client's transfers from number `first` on. Returns the number after the last acknowledged one.
    fn write(&self, client: u64, first: u64, seed: u64, is_over: &AtomicBool) -> u64 {
        let rng = SeededRng::new(seed ^ (client << 32));
        let mut next = first;
        let Ok(mut c) = self.connect() else { return next };
        while !is_over.load(Ordering::Relaxed) {
            let (src, dst) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
            match transfer(&mut c, client, next, (src, dst), 1 + rng.below(100) as i64) {
                Ok(()) => next += 1,
                // A deadlock victim was rolled back and can retry. Any other error ends the client.
                Err(mysql::Error::MySqlError(e)) if e.code == 1213 || e.code == 1205 => {}
                Err(_) => return next,
            }
        }
        next
    }

    /// Records the newest rows seen, until the end of the round.
    fn read(&self, locking: &str, shown: &Mutex<BTreeMap<u64, u64>>, is_over: &AtomicBool) {
        let Ok(mut c) = self.connect() else { return };
        while !is_over.load(Ordering::Relaxed) {
            for client in 0..self.clients {
                let newest = format!(
                    "SELECT n FROM bank.journal WHERE client = {client} ORDER BY client DESC, n DESC LIMIT 1{locking}"
                );
                match c.query_first::<u64, _>(newest) {
                    Ok(Some(n)) => {
                        let mut shown = shown.lock().expect("no reader panics");
                        let entry = shown.entry(client).or_insert(n);
                        *entry = n.max(*entry);
                    }
                    Ok(None) => {}
                    Err(mysql::Error::MySqlError(e)) if e.code == 1213 || e.code == 1205 => {}
                    Err(_) => return,
                }
            }
        }
    }

    fn check(&self, books: &mut Books) -> Result<(), Violation> {
        let broken = |e: mysql::Error| violation(format!("the check cannot read: {e}"));
        let mut c = self.connect().map_err(broken)?;
        let journal: Vec<(u64, u64, u64, u64, i64)> = c
            .query("SELECT client, n, src, dst, amount FROM bank.journal ORDER BY client, n")
            .map_err(broken)?;
        let balances: Vec<(u64, i64)> =
            c.query("SELECT id, balance FROM bank.account ORDER BY id").map_err(broken)?;
        check_balances(&journal, &balances)?;
        let mut found: BTreeMap<u64, u64> = BTreeMap::new();
        for (client, n, ..) in &journal {
            let next = found.entry(*client).or_insert(0);
            if n != next {
                return Err(violation(format!("client {client}: transfer {next} is missing before {n}")));
            }
            *next += 1;
        }
        for (client, next) in &mut books.next {
            let survived = found.get(client).copied().unwrap_or(0);
            if survived < *next {
                return Err(violation(format!(
                    "I4: client {client}: {next} acknowledged, {survived} survived"
                )));
            }
            if survived > *next + 1 {
                return Err(violation(format!("client {client}: {next} acknowledged, {survived} found")));
            }
            *next = survived;
        }
        for (client, n) in books.shown.lock().expect("no reader panics").iter() {
            if *n >= found.get(client).copied().unwrap_or(0) {
                return Err(violation(format!("I5: client {client}: transfer {n} was shown and is undone")));
            }
        }
        let rows: BTreeSet<(u64, u64)> = journal.iter().map(|(client, n, ..)| (*client, *n)).collect();
        let logged = rows_in_binlog(&self.datadir)?;
        if logged != rows {
            let differing: Vec<_> = logged.symmetric_difference(&rows).take(5).collect();
            return Err(violation(format!("I2: binlog and table differ, first in {differing:?}")));
        }
        Ok(())
    }
}

pub(crate) fn wait_for_end(child: &mut Child, end: &End) {
    match end {
        End::Kill(after) => {
            std::thread::sleep(*after);
            // It may already have ended by itself, which the check will detect.
            let _ = child.kill();
        }
        End::Failpoint(_) => {
            let start = Instant::now();
            while matches!(child.try_wait(), Ok(None)) && start.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn transfer(c: &mut Conn, client: u64, n: u64, (src, dst): (u64, u64), amount: i64) -> mysql::Result<()> {
    let run = |c: &mut Conn| -> mysql::Result<()> {
        c.query_drop("BEGIN")?;
        let mut changes = [(src, -amount), (dst, amount)];
        changes.sort_unstable();
        for (account, by) in changes {
            c.query_drop(format!("UPDATE bank.account SET balance = balance + {by} WHERE id = {account}"))?;
        }
        c.query_drop(format!("INSERT INTO bank.journal VALUES ({client}, {n}, {src}, {dst}, {amount})"))?;
        c.query_drop("COMMIT")
    };
    let result = run(c);
    if let Err(mysql::Error::MySqlError(_)) = &result {
        c.query_drop("ROLLBACK")?;
    }
    result
}

fn check_balances(journal: &[(u64, u64, u64, u64, i64)], balances: &[(u64, i64)]) -> Result<(), Violation> {
    if balances.len() as u64 != ACCOUNTS {
        return Err(violation(format!("{} accounts instead of {ACCOUNTS}", balances.len())));
    }
    for (account, balance) in balances {
        let moved: i64 = journal
            .iter()
            .map(|(_, _, src, dst, amount)| {
                i64::from(dst == account) * amount - i64::from(src == account) * amount
            })
            .sum();
        if *balance != OPENING_BALANCE + moved {
            let expected = OPENING_BALANCE + moved;
            return Err(violation(format!(
                "account {account} holds {balance}, the journal yields {expected}"
            )));
        }
    }
    Ok(())
}

/// Returns the journal rows that `mariadb-binlog` finds in the binlog files. It verifies every checksum.
fn rows_in_binlog(datadir: &Path) -> Result<BTreeSet<(u64, u64)>, Violation> {
    let index = std::fs::read_to_string(datadir.join("binlog.index"))
        .map_err(|e| violation(format!("no binlog index: {e}")))?;
    let mut logged = BTreeSet::new();
    for name in index.lines() {
        let output = Command::new("mariadb-binlog")
            .args(["--no-defaults", "--verify-binlog-checksum", "--base64-output=decode-rows", "-v"])
            .arg(datadir.join(name))
            .output()
            .map_err(|e| violation(format!("mariadb-binlog: {e}")))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(violation(format!("mariadb-binlog refuses {name}: {text}")));
        }
        read_rows(&String::from_utf8_lossy(&output.stdout), &mut logged)?;
    }
    Ok(logged)
}

fn read_rows(text: &str, logged: &mut BTreeSet<(u64, u64)>) -> Result<(), Violation> {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line != "### INSERT INTO `bank`.`journal`" {
            continue;
        }
        let mut field = |prefix: &str| {
            let value = lines.find_map(|line| line.strip_prefix(prefix))?;
            value.split(' ').next()?.parse::<u64>().ok()
        };
        let (client, n) = (field("###   @1="), field("###   @2="));
        let (Some(client), Some(n)) = (client, n) else {
            return Err(violation("a journal row of the binlog does not parse"));
        };
        if !logged.insert((client, n)) {
            return Err(violation(format!("I2: transfer {n} of client {client} is in the binlog twice")));
        }
    }
    Ok(())
}

/// Returns how a round ends: failpoints before and after every stage, and kills at random times.
pub fn end(round: u64, seed: u64) -> End {
    let rng = SeededRng::new(seed ^ (round << 40));
    let stages = ["prepare", "order", "flush", "publish", "acknowledge"];
    match round % 16 {
        n @ 0..10 => {
            let when = if n % 2 == 0 { "before" } else { "after" };
            End::Failpoint(format!("{when}:{}:{}", stages[n as usize / 2], 30 + rng.below(300)))
        }
        _ => End::Kill(Duration::from_millis(100 + rng.below(900))),
    }
}

/// Returns how a round of bulk statements ends: like [`end`], with smaller counts, because it has few
/// statements.
pub fn bulk_end(round: u64, seed: u64) -> End {
    let rng = SeededRng::new(seed ^ (round << 40));
    match end(round, seed) {
        End::Failpoint(point) => {
            let (stage, _) = point.rsplit_once(':').expect("it has a count");
            End::Failpoint(format!("{stage}:{}", 1 + rng.below(12)))
        }
        End::Kill(_) => End::Kill(Duration::from_millis(50 + rng.below(1500))),
    }
}
