//! Sixteen connections append to lists and read them, at each isolation level, with and without KILL of
//! random connections. No history may contain an anomaly that the level forbids ([`crate::cycles`]).
//!
//! | level | reads | forbidden |
//! |---|---|---|
//! | READ UNCOMMITTED, READ COMMITTED | plain | G0, G1a, G1b, G1c |
//! | REPEATABLE READ | plain | the same |
//! | REPEATABLE READ, innodb_snapshot_isolation | plain | the same and G-single |
//! | REPEATABLE READ | locking | all |
//! | SERIALIZABLE | plain | all |
//!
//! InnoDB's REPEATABLE READ may write the newest row after reading an older version, so lost updates
//! (G-single) are allowed. Lists start as missing rows and are also read by ranges, so phantoms appear as
//! cycles with rw edges.
//!
//! Every transaction reads and writes whole lists, so the cost of a history is quadratic in its length. A
//! long test therefore runs many short histories with different random numbers.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::cycles::{Anomaly, Key, Op, Outcome, Transaction, Value, anomalies};
use crate::support::{Cohort, Ends};

const CONNECTIONS: u64 = 16;
/// Few enough for transactions to conflict.
const KEYS: u32 = 12;
/// Duration of a history, and the number of commits that ends it earlier.
const TIME: Duration = Duration::from_secs(1);
const COMMITTED_MAX: u64 = 2000;

struct Level {
    name: &'static str,
    settings: &'static [&'static str],
    /// The clause appended to each SELECT.
    locking: &'static str,
    forbidden: &'static [Anomaly],
}

const DIRTY: &[Anomaly] = &[Anomaly::Broken, Anomaly::G0, Anomaly::G1a, Anomaly::G1b, Anomaly::G1c];
const STALE: &[Anomaly] =
    &[Anomaly::Broken, Anomaly::G0, Anomaly::G1a, Anomaly::G1b, Anomaly::G1c, Anomaly::GSingle];
const ALL: &[Anomaly] =
    &[Anomaly::Broken, Anomaly::G0, Anomaly::G1a, Anomaly::G1b, Anomaly::G1c, Anomaly::GSingle, Anomaly::G2];

const LEVELS: [Level; 6] = [
    Level { name: "READ UNCOMMITTED", settings: &[], locking: "", forbidden: DIRTY },
    Level { name: "READ COMMITTED", settings: &[], locking: "", forbidden: DIRTY },
    Level { name: "REPEATABLE READ", settings: &[], locking: "", forbidden: DIRTY },
    Level {
        name: "REPEATABLE READ",
        settings: &["SET innodb_snapshot_isolation = 1"],
        locking: "",
        forbidden: STALE,
    },
    Level { name: "REPEATABLE READ", settings: &[], locking: " LOCK IN SHARE MODE", forbidden: ALL },
    Level { name: "SERIALIZABLE", settings: &[], locking: "", forbidden: ALL },
];

/// A small generator of random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

struct Run<'a> {
    server: &'a Cohort,
    /// The number of the history, which seeds its random numbers.
    round: u64,
    level: &'a Level,
    table: &'a str,
    values: AtomicU64,
    /// Connections that may be killed.
    ids: Mutex<BTreeMap<u64, u32>>,
    ends: AtomicBool,
    committed: AtomicU64,
    /// Waits that ended by timeout.
    timeouts: AtomicU64,
}

fn list(text: &str) -> Vec<Value> {
    text.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().expect("a number")).collect()
}

impl Run<'_> {
    /// Opens a connection at the level. It may be killed at any time.
    fn connect(&self, n: u64) -> Conn {
        let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", self.level.name);
        let settings: Vec<&str> =
            std::iter::once(&*level).chain(self.level.settings.iter().copied()).collect();
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let mut client = self.server.in_test();
            if settings.iter().all(|setting| client.query_drop(setting).is_ok()) {
                self.ids.lock().expect("no panic").insert(n, client.connection_id());
                return client;
            }
            assert!(Instant::now() < end, "no connection can be set up");
        }
    }

    fn read(&self, client: &mut Conn, from: Key, to: Key) -> mysql::Result<Vec<Op>> {
        let sql = format!(
            "SELECT id, v FROM {} WHERE id BETWEEN {from} AND {to}{}",
            self.table, self.level.locking
        );
        let rows: BTreeMap<Key, String> = client.query::<(Key, String), _>(sql)?.into_iter().collect();
        Ok((from..=to).map(|key| Op::Read(key, rows.get(&key).map_or(Vec::new(), |v| list(v)))).collect())
    }

    fn append(&self, client: &mut Conn, key: Key, dice: &mut Dice) -> mysql::Result<Op> {
        let value = self.values.fetch_add(1, Ordering::Relaxed);
        let (table, update) = (self.table, format!("v = CONCAT(v, ',{value}')"));
        let insert =
            format!("INSERT INTO {table} VALUES ({key}, {key}, '{value}') ON DUPLICATE KEY UPDATE {update}");
        // By the primary key, by a secondary key, or as a new row.
        let changed = match dice.below(3) {
            0 => false,
            1 => {
                client.query_drop(format!("UPDATE {table} SET {update} WHERE id = {key}"))?;
                client.affected_rows() > 0
            }
            _ => {
                client.query_drop(format!("UPDATE {table} SET {update} WHERE k = {key}"))?;
                client.affected_rows() > 0
            }
        };
        if !changed {
            client.query_drop(insert)?;
        }
        Ok(Op::Append(key, value))
    }

    /// Runs one transaction. An error within it rolls it back completely.
    fn transaction(&self, n: u64, client: &mut Conn, dice: &mut Dice) -> Transaction {
        let mut ops = Vec::new();
        let mut work = || -> mysql::Result<()> {
            client.query_drop("BEGIN")?;
            for _ in 0..1 + dice.below(4) {
                let key = dice.below(u64::from(KEYS)) as Key;
                match dice.below(5) {
                    0 | 1 => ops.push(self.append(client, key, dice)?),
                    2 | 3 => ops.append(&mut self.read(client, key, key)?),
                    _ => ops.append(&mut self.read(client, key, (key + 4).min(KEYS - 1))?),
                }
            }
            Ok(())
        };
        let worked = work();
        if matches!(&worked, Err(mysql::Error::MySqlError(error)) if error.code == 1205) {
            self.timeouts.fetch_add(1, Ordering::Relaxed);
        }
        let outcome = match (worked, dice.below(12)) {
            (Ok(()), 1..) => match client.query_drop("COMMIT") {
                Ok(()) => {
                    self.committed.fetch_add(1, Ordering::Relaxed);
                    Outcome::Committed
                }
                Err(_) => Outcome::Unknown,
            },
            (Ok(()), 0) | (Err(_), _) => Outcome::RolledBack,
        };
        // After an error in a statement, the transaction may still be open.
        if outcome != Outcome::Committed && client.query_drop("ROLLBACK").is_err() {
            *client = self.connect(n);
        }
        Transaction { ops, outcome }
    }

    fn transactions(&self, n: u64) -> Vec<Transaction> {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (n + 1) << 20 ^ self.round << 40);
        let mut client = self.connect(n);
        let mut done = Vec::new();
        while !self.ends.load(Ordering::Relaxed) {
            done.push(self.transaction(n, &mut client, &mut dice));
        }
        done
    }

    /// Kills connections until the run ends.
    fn kill(&self) {
        let mut client = self.server.client();
        let mut dice = Dice(0x2545_f491_4f6c_dd1d ^ self.round << 40);
        while !self.ends.load(Ordering::Relaxed) {
            let id = self.ids.lock().expect("no panic").get(&dice.below(CONNECTIONS)).copied();
            if let Some(id) = id {
                let what = if dice.below(2) == 0 { "KILL QUERY" } else { "KILL" };
                // The connection may already have ended.
                let _ = client.query_drop(format!("{what} {id}"));
            }
            thread::sleep(Duration::from_millis(3));
        }
    }
}

fn play(server: &Cohort, level: &Level, has_kills: bool, round: u64) {
    let what =
        format!("{} {:?}{} kills {has_kills} round {round}", level.name, level.settings, level.locking);
    server.sql(
        "DROP TABLE IF EXISTS test.l; CREATE TABLE test.l (id INT PRIMARY KEY, k INT, v LONGTEXT, KEY(k))",
    );
    let run = Run {
        server,
        round,
        level,
        table: "l",
        values: AtomicU64::new(1),
        ids: Mutex::default(),
        ends: AtomicBool::new(false),
        committed: AtomicU64::new(0),
        timeouts: AtomicU64::new(0),
    };
    let began = Instant::now();
    let history: Vec<Transaction> = thread::scope(|scope| {
        let run = &run;
        let workers: Vec<_> = (0..CONNECTIONS).map(|n| scope.spawn(move || run.transactions(n))).collect();
        let killer = has_kills.then(|| scope.spawn(|| run.kill()));
        let is_over = || match run.committed.load(Ordering::Relaxed) {
            // On a busy host a meaningful history takes longer.
            ..150 => began.elapsed() >= 30 * TIME,
            COMMITTED_MAX.. => true,
            _ => began.elapsed() >= TIME,
        };
        let _ends = Ends(&run.ends);
        while !is_over() {
            thread::sleep(Duration::from_millis(10));
        }
        run.ends.store(true, Ordering::Relaxed);
        if let Some(killer) = killer {
            killer.join().expect("no panic");
        }
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    let took = began.elapsed();
    assert_eq!(run.timeouts.into_inner(), 0, "{what}: a session waited for no other");
    let rows: Vec<(Key, String)> = server.in_test().query("SELECT id, v FROM l").expect("reads");
    let last: BTreeMap<Key, Vec<Value>> = rows.iter().map(|(key, v)| (*key, list(v))).collect();
    let count = |outcome| history.iter().filter(|trx| trx.outcome == outcome).count();
    let committed = count(Outcome::Committed);
    assert!(committed > 100, "{what}: only {committed} of {} were committed", history.len());
    let found = anomalies(&history, &last);
    println!(
        "{what}: {:.1?}, {committed} committed, {} rolled back, {} unknown; allowed anomalies: {:?}",
        took,
        count(Outcome::RolledBack),
        count(Outcome::Unknown),
        found.keys().collect::<Vec<_>>()
    );
    for anomaly in level.forbidden {
        assert!(!found.contains_key(anomaly), "{what}: {anomaly:?}: {:.6000}", found[anomaly]);
    }
}

/// Runs one history of a level; in a long test, as many as fit into half a minute.
fn play_all(has_kills: bool) {
    let server = Cohort::new(&["--innodb-lock-wait-timeout=20"]);
    let time = match std::env::var_os("COHORT_LONG_TESTS") {
        Some(_) => Duration::from_secs(30),
        None => Duration::ZERO,
    };
    for level in &LEVELS {
        let began = Instant::now();
        for round in 0.. {
            play(&server, level, has_kills, round);
            if began.elapsed() >= time {
                break;
            }
        }
    }
}

#[test]
fn no_level_allows_what_it_forbids() {
    play_all(false);
}

#[test]
fn nor_when_connections_are_killed() {
    play_all(true);
}
