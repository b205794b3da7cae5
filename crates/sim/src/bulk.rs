//! Bulk statements on a real server that is killed: large INSERTs, some of which the engine ingests as files,
//! and CREATE INDEX on the table being filled.
//!
//! Each writer inserts *batches*, one statement each, and records the reply to each of them. Meanwhile an
//! index of the same table is repeatedly created and dropped. Then the server is killed, or aborts at a
//! failpoint, and is restarted. Whenever that happens:
//!
//! - an acknowledged batch has all of its rows, a refused one has none, the one in flight has all or none;
//! - the index is in the state of its last acknowledged statement or of the one in flight; it has an entry
//!   for every row;
//! - the binlog contains the same batches with the same number of rows, and the same DDL statements (I2);
//! - unfinished files of the engine are removed, and indexes can be created as before.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use cohort_vfs::{Rng, SeededRng};
use mysql::prelude::Queryable;
use mysql::{Conn, Error};

use crate::bank::Violation;
use crate::kill::{End, Target, violation, wait_for_end};

const WRITERS: u64 = 2;
/// Rows of a batch that the engine ingests as files: with their text they have more redo than fits inline
/// into the log.
const LARGE_ROWS: u64 = 1000;
const LARGE_TEXT_BYTES: u64 = 17_500;
const CREATE: &str = "CREATE INDEX by_v ON bulk.t (v)";
const DROP: &str = "DROP INDEX by_v ON bulk.t";

/// Reply to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Done,
    /// A lock was not granted.
    Refused,
    /// No reply: the connection broke.
    Nothing,
}

/// A batch: the number of its rows, numbered from 0, and the reply.
#[derive(Clone, Copy, Debug)]
struct Batch {
    rows: u64,
    reply: Reply,
}

/// Batches by number, of one writer or of all.
type Batches = BTreeMap<u64, Batch>;

/// The client's record of the index.
#[derive(Clone, Copy, Debug, Default)]
struct IndexBooks {
    /// Whether it existed before the first statement.
    was_there: bool,
    acknowledged: usize,
    has_one_in_flight: bool,
}

/// Statistics of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct BulkOutcome {
    /// Acknowledged batches.
    pub batches: usize,
    /// Acknowledged creations and drops of the index.
    pub index_changes: usize,
}

fn reply_of(result: mysql::Result<()>, sql: &str) -> Result<Reply, Violation> {
    match result {
        Ok(()) => Ok(Reply::Done),
        Err(Error::MySqlError(e)) if [1205, 1213].contains(&e.code) => Ok(Reply::Refused),
        // Another session reached the failpoint, and this reply arrived before the abort.
        Err(Error::MySqlError(e)) if e.code == 1053 => Ok(Reply::Nothing),
        Err(Error::MySqlError(e)) => Err(violation(format!("{sql:.80}: {e}"))),
        Err(_) => Ok(Reply::Nothing),
    }
}

impl Target {
    /// Creates the tables.
    pub fn set_up_bulk(&self) -> Result<(), Violation> {
        let _server = self.start(None)?;
        let run = || -> mysql::Result<()> {
            let mut c = self.connect()?;
            c.query_drop("CREATE DATABASE bulk")?;
            c.query_drop("CREATE TABLE bulk.source (n INT PRIMARY KEY)")?;
            let numbers: Vec<String> = (0..LARGE_ROWS).map(|n| format!("({n})")).collect();
            c.query_drop(format!("INSERT INTO bulk.source VALUES {}", numbers.join(",")))?;
            c.query_drop(format!(
                "CREATE TABLE bulk.t (batch INT, n INT, v INT, filler MEDIUMTEXT, PRIMARY KEY (batch, n)) ENGINE={}",
                self.bulk_engine
            ))
        };
        run().map_err(|e| violation(format!("cannot set up the bulk tables: {e}")))
    }

    /// Runs one round: start, bulk statements, kill, restart, check. Leaves the tables empty.
    pub fn bulk_round(&self, end: &End, seed: u64) -> Result<BulkOutcome, Violation> {
        let failpoint = match end {
            End::Failpoint(point) => Some(point.as_str()),
            End::Kill(_) => None,
        };
        let mut server = self.start(failpoint)?;
        let first_file = self.newest_binlog_file()?;
        let is_over = AtomicBool::new(false);
        let (batches, index) = std::thread::scope(|scope| {
            let is_over = &is_over;
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || self.fill(writer, seed, is_over))).collect();
            let indexer = scope.spawn(move || self.index(is_over));
            wait_for_end(&mut server.child, end);
            is_over.store(true, Ordering::SeqCst);
            drop(server);
            let mut batches = Batches::new();
            for writer in writers {
                batches.extend(writer.join().expect("a writer does not panic")?);
            }
            Ok::<_, Violation>((batches, indexer.join().expect("the indexer does not panic")?))
        })?;
        let _server = self.start(None)?;
        let check = self.check_bulk(&batches, index, &first_file);
        check.map_err(|v| violation(format!("bulk, after {end:?}, seed {seed}: {}", v.0)))?;
        let acknowledged = batches.values().filter(|batch| batch.reply == Reply::Done).count();
        Ok(BulkOutcome { batches: acknowledged, index_changes: index.acknowledged })
    }

    fn newest_binlog_file(&self) -> Result<String, Violation> {
        let row: Option<(String, u64, String, String)> = self
            .connect()
            .and_then(|mut c| c.query_first("SHOW BINLOG STATUS"))
            .map_err(|e| violation(format!("SHOW BINLOG STATUS: {e}")))?;
        Ok(row.ok_or_else(|| violation("the binary log is off"))?.0)
    }

    /// Inserts a writer's batches until the end of the round.
    fn fill(&self, writer: u64, seed: u64, is_over: &AtomicBool) -> Result<Batches, Violation> {
        let rng = SeededRng::new(seed ^ (writer << 48));
        let mut batches = Batches::new();
        let Ok(mut c) = self.connect() else { return Ok(batches) };
        while !is_over.load(Ordering::Relaxed) {
            let number = 1000 * (writer + 1) + batches.len() as u64;
            let (rows, sql) = if rng.below(3) == 0 {
                let text = format!("REPEAT('x', {LARGE_TEXT_BYTES})");
                (
                    LARGE_ROWS,
                    format!("INSERT INTO bulk.t SELECT {number}, n, n % 97, {text} FROM bulk.source"),
                )
            } else {
                let rows = 50 + rng.below(1000);
                let values: Vec<String> =
                    (0..rows).map(|n| format!("({number},{n},{},'{n}')", n % 97)).collect();
                (rows, format!("INSERT INTO bulk.t VALUES {}", values.join(",")))
            };
            let reply = reply_of(c.query_drop(&sql), &sql)?;
            batches.insert(number, Batch { rows, reply });
            if reply == Reply::Nothing {
                break;
            }
        }
        Ok(batches)
    }

    /// Creates and drops the index until the end of the round.
    fn index(&self, is_over: &AtomicBool) -> Result<IndexBooks, Violation> {
        let mut books = IndexBooks::default();
        let Ok(mut c) = self.connect() else { return Ok(books) };
        let Ok(is_there) = is_indexed(&mut c) else { return Ok(books) };
        books.was_there = is_there;
        while !is_over.load(Ordering::Relaxed) {
            let sql = if books.was_there == books.acknowledged.is_multiple_of(2) { DROP } else { CREATE };
            match reply_of(c.query_drop(sql), sql)? {
                Reply::Done => books.acknowledged += 1,
                Reply::Refused => {}
                Reply::Nothing => {
                    books.has_one_in_flight = true;
                    break;
                }
            }
        }
        Ok(books)
    }

    fn check_bulk(&self, batches: &Batches, index: IndexBooks, first_file: &str) -> Result<(), Violation> {
        let broken = |e: Error| violation(format!("the check cannot read: {e}"));
        let mut c = self.connect().map_err(broken)?;
        let found: Vec<(u64, u64, u64)> = c
            .query("SELECT batch, COUNT(*), SUM(n) FROM bulk.t GROUP BY batch ORDER BY batch")
            .map_err(broken)?;
        check_batches(batches, &found)?;
        let is_there = is_indexed(&mut c).map_err(broken)?;
        let before = index.was_there ^ !index.acknowledged.is_multiple_of(2);
        if is_there != before && !index.has_one_in_flight {
            return Err(violation(format!("I4: the index is there: {is_there}, after {index:?}")));
        }
        check_entries(&mut c)?;
        let logged = changes_in_binlog(&self.datadir, first_file)?;
        let rows = found.into_iter().map(|(batch, rows, _)| (batch, rows)).collect();
        if logged.rows != rows {
            return Err(violation(format!("I2: the binlog has {:?}, the table has {rows:?}", logged.rows)));
        }
        let happened = index.acknowledged + usize::from(is_there != before);
        if logged.index_changes != happened {
            let logged = logged.index_changes;
            return Err(violation(format!(
                "I2: the binlog has {logged} changes of the index, {happened} happened"
            )));
        }
        let load_dir = self.datadir.join("rocksdb/bulk_load");
        if load_dir.exists() && load_dir.read_dir().is_ok_and(|mut files| files.next().is_some()) {
            return Err(violation(format!("files are left in {}", load_dir.display())));
        }
        // Remains of an unfinished index must not prevent the next CREATE INDEX.
        let first = if is_there { [DROP, CREATE, DROP] } else { [CREATE, DROP, CREATE] };
        for sql in first.into_iter().chain(["TRUNCATE TABLE bulk.t"]) {
            c.query_drop(sql).map_err(|e| violation(format!("{sql}, after the start: {e}")))?;
        }
        let purge = format!("PURGE BINARY LOGS TO '{}'", self.newest_binlog_file()?);
        c.query_drop(&purge).map_err(|e| violation(format!("{purge}: {e}")))
    }
}

fn is_indexed(c: &mut Conn) -> mysql::Result<bool> {
    let sql = "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = 'bulk' AND index_name = 'by_v'";
    Ok(c.query_first::<u64, _>(sql)?.unwrap_or(0) > 0)
}

fn check_batches(batches: &Batches, found: &[(u64, u64, u64)]) -> Result<(), Violation> {
    let found: BTreeMap<u64, (u64, u64)> =
        found.iter().map(|(batch, rows, sum)| (*batch, (*rows, *sum))).collect();
    if let Some(stranger) = found.keys().find(|batch| !batches.contains_key(batch)) {
        return Err(violation(format!("batch {stranger} was never sent")));
    }
    for (number, Batch { rows, reply }) in batches {
        let there = found.get(number).copied().unwrap_or((0, 0));
        let (all, none) = ((*rows, rows * (rows - 1) / 2), (0, 0));
        let is_fine = match reply {
            Reply::Done => there == all,
            Reply::Refused => there == none,
            Reply::Nothing => there == all || there == none,
        };
        if !is_fine {
            let (count, _) = there;
            return Err(violation(format!(
                "I4: batch {number} of {rows} rows, {reply:?}: {count} rows are there"
            )));
        }
    }
    Ok(())
}

/// Checks that every index has an entry for every row.
fn check_entries(c: &mut Conn) -> Result<(), Violation> {
    let answer: Vec<(String, String, String, String)> =
        c.query("CHECK TABLE bulk.t").map_err(|e| violation(format!("CHECK TABLE: {e}")))?;
    match answer.iter().all(|(_, _, kind, text)| kind == "status" && text == "OK") {
        true => Ok(()),
        false => Err(violation(format!("CHECK TABLE says {answer:?}"))),
    }
}

/// Contents of the binlog files.
#[derive(Debug, Default)]
struct LoggedChanges {
    /// Number of rows of each batch.
    rows: BTreeMap<u64, u64>,
    index_changes: usize,
}

/// Reads the binlog from a file on, with `mariadb-binlog`.
fn changes_in_binlog(datadir: &Path, first_file: &str) -> Result<LoggedChanges, Violation> {
    let index = std::fs::read_to_string(datadir.join("binlog.index"))
        .map_err(|e| violation(format!("no binlog index: {e}")))?;
    let mut logged = LoggedChanges::default();
    for name in index.lines().skip_while(|line| !line.ends_with(first_file)) {
        let mut reader = Command::new("mariadb-binlog")
            .args(["--no-defaults", "--verify-binlog-checksum", "--base64-output=decode-rows", "-v"])
            .arg(datadir.join(name))
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| violation(format!("mariadb-binlog: {e}")))?;
        let mut lines =
            BufReader::new(reader.stdout.take().expect("piped")).split(b'\n').map_while(Result::ok);
        while let Some(line) = lines.next() {
            logged.index_changes += usize::from(line == CREATE.as_bytes() || line == DROP.as_bytes());
            if line == b"### INSERT INTO `bulk`.`t`" {
                let batch = lines.by_ref().find_map(|line| {
                    String::from_utf8_lossy(line.strip_prefix(b"###   @1=")?).split(' ').next()?.parse().ok()
                });
                let batch = batch.ok_or_else(|| violation("a row of the binlog does not parse"))?;
                *logged.rows.entry(batch).or_default() += 1;
            }
        }
        if !reader.wait().is_ok_and(|status| status.success()) {
            return Err(violation(format!("mariadb-binlog refuses {name}")));
        }
    }
    Ok(logged)
}
