//! `cohort-bench programs`: stored programs side by side with MariaDB and PostgreSQL.
//!
//! A case is one statement of one client: a loop, a function for each row of a scan, a cursor, and triggers.
//! Servers take turns, one is measured while the others are stopped. A figure is the median with the lowest
//! and the highest one. The answers of all servers must be equal. Times are divided by the rounds or rows of
//! the case. PostgreSQL runs the same programs in PL/pgSQL.
//!
//! The case `call` is a load of 64 clients, which call a procedure of five statements in a transaction. The
//! case `tpcc` runs TPC-C's transactions as procedures. The case `routines` measures the memory of routines
//! that were called.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::connection::{Connection, Rows};
use crate::dialect::Dialect;
use crate::driver::{self, Load};
use crate::process;
use crate::servers::{Contestant, Server, Setup};
use crate::tables::{self, SCHEMA};
use crate::tpcc::{self, procedures};
use crate::turns::{text, turns};
use crate::workload::{Keys, Parameter, Protocol, Scale, Schema, Step, Table, Workload};

/// The measurements to run.
#[derive(Debug, PartialEq)]
pub struct ProgramsRun {
    /// Names of the cases; empty for all.
    pub cases: Vec<String>,
    pub contestants: Vec<Contestant>,
    /// Part of the usual rounds and rows.
    pub scale: f64,
    /// Length of the load of the case `call`.
    pub measure: Duration,
    pub repeats: usize,
    pub dir: PathBuf,
    pub cohortd: Option<PathBuf>,
}

/// Rounds of a loop, rows of a scan and rows of a change at full scale.
const ROUNDS: f64 = 10_000_000.0;
const ROWS: f64 = 1_000_000.0;
const CHANGED: f64 = 300_000.0;

/// A text for each dialect: MySQL, PostgreSQL.
type Texts = [&'static str; 2];

/// A statement to time. `{n}` stands for its number of rounds or rows.
struct Case {
    name: &'static str,
    about: &'static str,
    per: &'static str,
    count: f64,
    /// Statements that create its programs and tables, separated by lines of `;;`.
    setup: Texts,
    /// Statements before each run, which are not timed, separated by `;`.
    before: &'static str,
    sql: Texts,
    /// A query for the result; empty if the statement returns it.
    answer: Texts,
    /// The case whose time is subtracted: the same change without a trigger.
    without: Option<&'static str>,
}

const CASES: &[Case] = &[
    Case {
        name: "loop",
        about: "WHILE with two assignments, an IF and its condition",
        per: "round",
        count: ROUNDS,
        setup: [
            "CREATE PROCEDURE turns(n INT, OUT result BIGINT) BEGIN DECLARE i INT DEFAULT 0; \
             DECLARE s BIGINT DEFAULT 0; WHILE i < n DO SET s = s + i; \
             IF s > 1000000000 THEN SET s = 0; END IF; SET i = i + 1; END WHILE; SET result = s; END",
            "CREATE FUNCTION turns(n INT) RETURNS BIGINT LANGUAGE plpgsql AS $$ DECLARE i INT := 0; \
             s BIGINT := 0; BEGIN WHILE i < n LOOP s := s + i; IF s > 1000000000 THEN s := 0; END IF; \
             i := i + 1; END LOOP; RETURN s; END $$",
        ],
        before: "",
        sql: ["CALL turns({n}, @result)", "SELECT turns({n})"],
        answer: ["SELECT @result", ""],
        without: None,
    },
    Case {
        name: "function",
        about: "a function of three statements for each row of a scan",
        per: "row",
        count: ROWS,
        setup: [
            "CREATE TABLE many (id INT NOT NULL PRIMARY KEY, v INT NOT NULL)\n;;\n\
             INSERT INTO many SELECT seq, seq % 1000 FROM seq_1_to_{n}\n;;\n\
             CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC BEGIN DECLARE b INT; SET b = a * 2; \
             IF b > 1000 THEN SET b = b - 1000; END IF; RETURN b + 1; END",
            "CREATE TABLE many (id INT NOT NULL PRIMARY KEY, v INT NOT NULL)\n;;\n\
             INSERT INTO many SELECT n, n % 1000 FROM generate_series(1, {n}) AS g(n)\n;;\n\
             CREATE FUNCTION f(a INT) RETURNS INT LANGUAGE plpgsql IMMUTABLE AS $$ DECLARE b INT; \
             BEGIN b := a * 2; IF b > 1000 THEN b := b - 1000; END IF; RETURN b + 1; END $$",
        ],
        before: "",
        sql: ["SELECT SUM(f(v)) FROM many", "SELECT SUM(f(v)) FROM many"],
        answer: ["", ""],
        without: None,
    },
    Case {
        name: "cursor",
        about: "a cursor over a table, adding up",
        per: "row",
        count: ROWS,
        setup: [
            "CREATE TABLE read_rows (id INT NOT NULL PRIMARY KEY, v INT NOT NULL)\n;;\n\
             INSERT INTO read_rows SELECT seq, seq % 1000 FROM seq_1_to_{n}\n;;\n\
             CREATE PROCEDURE add_up(OUT result BIGINT) BEGIN DECLARE done INT DEFAULT 0; \
             DECLARE s BIGINT DEFAULT 0; DECLARE x INT; DECLARE c CURSOR FOR SELECT v FROM read_rows; \
             DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; \
             rows_of: LOOP FETCH c INTO x; IF done THEN LEAVE rows_of; END IF; SET s = s + x; END LOOP; \
             CLOSE c; SET result = s; END",
            "CREATE TABLE read_rows (id INT NOT NULL PRIMARY KEY, v INT NOT NULL)\n;;\n\
             INSERT INTO read_rows SELECT n, n % 1000 FROM generate_series(1, {n}) AS g(n)\n;;\n\
             CREATE FUNCTION add_up() RETURNS BIGINT LANGUAGE plpgsql AS $$ DECLARE s BIGINT := 0; x INT; \
             c CURSOR FOR SELECT v FROM read_rows; BEGIN OPEN c; LOOP FETCH c INTO x; \
             EXIT WHEN NOT FOUND; s := s + x; END LOOP; CLOSE c; RETURN s; END $$",
        ],
        before: "",
        sql: ["CALL add_up(@result)", "SELECT add_up()"],
        answer: ["SELECT @result", ""],
        without: None,
    },
    Case {
        name: "plain",
        about: "INSERT .. SELECT into a table without triggers",
        per: "row",
        count: CHANGED,
        setup: [
            "CREATE TABLE source_rows (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, pad CHAR(40) NOT NULL)\n;;\n\
             INSERT INTO source_rows SELECT seq, seq * 31 % 65521, 'filler of a row' FROM seq_1_to_{n}\n;;\n\
             CREATE TABLE plain (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, pad CHAR(40) NOT NULL)",
            "CREATE TABLE source_rows (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, pad CHAR(40) NOT NULL)\n;;\n\
             INSERT INTO source_rows SELECT n, n * 31 % 65521, 'filler of a row' \
             FROM generate_series(1, {n}) AS g(n)\n;;\n\
             CREATE TABLE plain (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, pad CHAR(40) NOT NULL)",
        ],
        before: "TRUNCATE TABLE plain",
        sql: ["INSERT INTO plain SELECT * FROM source_rows"; 2],
        answer: ["SELECT COUNT(*), SUM(v) FROM plain"; 2],
        without: None,
    },
    Case {
        name: "before",
        about: "the same with a BEFORE trigger that has an IF",
        per: "row",
        count: CHANGED,
        setup: [
            "CREATE TABLE checked (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, pad CHAR(40) NOT NULL)\n;;\n\
             CREATE TRIGGER checked_before BEFORE INSERT ON checked FOR EACH ROW \
             BEGIN IF NEW.v > 1000 THEN SET NEW.v = NEW.v - 1; END IF; END",
            "CREATE TABLE checked (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, pad CHAR(40) NOT NULL)\n;;\n\
             CREATE FUNCTION checked_before() RETURNS trigger LANGUAGE plpgsql AS $$ \
             BEGIN IF NEW.v > 1000 THEN NEW.v := NEW.v - 1; END IF; RETURN NEW; END $$\n;;\n\
             CREATE TRIGGER checked_before BEFORE INSERT ON checked FOR EACH ROW \
             EXECUTE FUNCTION checked_before()",
        ],
        before: "TRUNCATE TABLE checked",
        sql: ["INSERT INTO checked SELECT * FROM source_rows"; 2],
        answer: ["SELECT COUNT(*), SUM(v) FROM checked"; 2],
        without: Some("plain"),
    },
    Case {
        name: "after",
        about: "the same with an AFTER trigger that writes an audit row",
        per: "row",
        count: CHANGED,
        setup: [
            "CREATE TABLE audited (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, pad CHAR(40) NOT NULL)\n;;\n\
             CREATE TABLE audit (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, row_id INT NOT NULL, \
             v INT NOT NULL)\n;;\n\
             CREATE TRIGGER audited_after AFTER INSERT ON audited FOR EACH ROW \
             INSERT INTO audit (row_id, v) VALUES (NEW.id, NEW.v)",
            "CREATE TABLE audited (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, pad CHAR(40) NOT NULL)\n;;\n\
             CREATE TABLE audit (id SERIAL PRIMARY KEY, row_id INT NOT NULL, v INT NOT NULL)\n;;\n\
             CREATE FUNCTION audited_after() RETURNS trigger LANGUAGE plpgsql AS $$ \
             BEGIN INSERT INTO audit (row_id, v) VALUES (NEW.id, NEW.v); RETURN NULL; END $$\n;;\n\
             CREATE TRIGGER audited_after AFTER INSERT ON audited FOR EACH ROW \
             EXECUTE FUNCTION audited_after()",
        ],
        before: "TRUNCATE TABLE audited; TRUNCATE TABLE audit",
        sql: ["INSERT INTO audited SELECT * FROM source_rows"; 2],
        answer: ["SELECT COUNT(*), SUM(row_id), SUM(v) FROM audit"; 2],
        without: Some("plain"),
    },
];

/// The name of the load.
const CALL: &str = "call";
const CLIENTS: usize = 64;
const SBTEST: Scale = Scale { tables: 1, rows: 100_000, keys: Keys::Even };

/// Calls of a procedure of five statements.
static CALLS: Workload = Workload {
    name: CALL,
    about: "CALL of a procedure with the five statements of a transaction",
    schema: Schema::Sbtest,
    text_only: false,
    steps: &[Step { sql: "CALL five(?)", parameters: &[Parameter::Id], table: Table::First }],
};

const FIVE: Texts = [
    "CREATE PROCEDURE five(row_id INT) BEGIN DECLARE found INT; START TRANSACTION; \
     SELECT k INTO found FROM sbtest1 WHERE id = row_id; \
     UPDATE sbtest1 SET k = k + 1 WHERE id = row_id; \
     UPDATE sbtest1 SET pad = 'changed' WHERE id = row_id; \
     SELECT k INTO found FROM sbtest1 WHERE id = row_id; \
     UPDATE sbtest1 SET c = 'changed' WHERE id = row_id AND k = found; COMMIT; END",
    "CREATE PROCEDURE five(row_id INT) LANGUAGE plpgsql AS $$ DECLARE found INT; BEGIN \
     SELECT k INTO found FROM sbtest1 WHERE id = row_id; \
     UPDATE sbtest1 SET k = k + 1 WHERE id = row_id; \
     UPDATE sbtest1 SET pad = 'changed' WHERE id = row_id; \
     SELECT k INTO found FROM sbtest1 WHERE id = row_id; \
     UPDATE sbtest1 SET c = 'changed' WHERE id = row_id AND k = found; END $$",
];

/// TPC-C's transactions as procedures, and the numbers of terminals.
const TPCC: &str = "tpcc";
const TERMINALS: [u32; 2] = [1, 16];
const WAREHOUSES: u32 = 2;

/// The measurement of the memory of routines, and their number at full scale.
const ROUTINES: &str = "routines";
const ROUTINES_COUNT: f64 = 10_000.0;

/// One measurement of one server, in nanoseconds.
#[derive(Clone, Copy)]
struct Sample {
    elapsed: f64,
    processor: f64,
}

/// Returns the names of all cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name).chain([CALL, TPCC, ROUTINES])
}

/// Measures, and prints the table.
pub fn run(asked: &ProgramsRun) -> Result<(), String> {
    let dir = asked.dir.join(format!("cohort-bench-{}", std::process::id()));
    let setup = Setup { cohortd: asked.cohortd.clone(), ..Setup::below(dir.clone()) };
    let done = measure_all(asked, &setup);
    // Ignore errors: they only leave a folder on the disk.
    let _ = fs::remove_dir_all(&dir);
    done
}

fn measure_all(asked: &ProgramsRun, setup: &Setup) -> Result<(), String> {
    let is_wanted = |name: &str| asked.cases.is_empty() || asked.cases.iter().any(|wanted| wanted == name);
    // The changes with triggers read the rows of the plain one.
    let is_needed = |case: &Case| {
        let is_base = |other: &Case| is_wanted(other.name) && other.without == Some(case.name);
        is_wanted(case.name) || CASES.iter().any(is_base)
    };
    let cases: Vec<&Case> = CASES.iter().filter(|case| is_needed(case)).collect();
    let mut servers = Vec::new();
    for contestant in &asked.contestants {
        eprintln!("{}: starting, filling tables", contestant.label);
        let mut server = Server::start(contestant, setup)?;
        let filled = fill(&server, &cases, asked.scale, [is_wanted(CALL), is_wanted(TPCC)]);
        filled.map_err(|error| server.complaint(&error))?;
        server.pause();
        servers.push(server);
    }
    println!("{}", heading(&servers));
    let mut plain: Vec<(&str, Vec<Vec<Sample>>)> = Vec::new();
    for case in cases {
        eprintln!("{}: {}", case.name, case.about);
        let found = measure(case, asked, &mut servers)?;
        println!("{}", line(case.name, case.per, &found));
        if let Some((_, without)) = plain.iter().find(|(name, _)| Some(*name) == case.without) {
            let more: Vec<Vec<Sample>> = found.iter().zip(without).map(|(a, b)| differences(a, b)).collect();
            println!("{}", line(&format!("{}, more than {}", case.name, plain[0].0), case.per, &more));
        }
        plain.push((case.name, found));
    }
    if is_wanted(CALL) {
        eprintln!("{CALL}: {}", CALLS.about);
        let found = turns(&mut servers, asked.repeats, |server| call(server, asked.measure))?;
        println!("{}", line(&format!("{CALL}, {CLIENTS} clients"), "call", &found));
    }
    if is_wanted(TPCC) {
        for terminals in TERMINALS {
            eprintln!("{TPCC}: {terminals} terminals");
            let warm = Duration::from_secs(1);
            let found = turns(&mut servers, asked.repeats, |server| {
                let done = procedures::run(server, WAREHOUSES, terminals, warm, asked.measure)?;
                let nanos = 1e9 / done.transactions.max(1) as f64;
                Ok(Sample { elapsed: done.seconds * nanos, processor: done.server_seconds * nanos })
            })?;
            println!("{}", line(&format!("{TPCC}, {terminals} terminals"), "transaction", &found));
        }
        for server in &mut servers {
            server.resume();
            let checked = tpcc::check(&server.address);
            checked.map_err(|error| server.complaint(&error))?;
            server.pause();
        }
    }
    if is_wanted(ROUTINES) {
        let count = (ROUTINES_COUNT * asked.scale) as u64;
        println!("\nMemory of {count} routines, of which each was called once:\n");
        for server in &mut servers {
            server.resume();
            let grown = routines(server, count);
            let grown = grown.map_err(|error| server.complaint(&format!("{ROUTINES}: {error}")))?;
            server.pause();
            println!("- {}: {:.1} MiB", server.label, grown as f64 / f64::from(1 << 20));
        }
    }
    Ok(())
}

fn of(texts: Texts, dialect: Dialect) -> &'static str {
    texts[usize::from(dialect == Dialect::Postgres)]
}

impl Case {
    fn rounds(&self, scale: f64) -> u64 {
        ((self.count * scale) as u64).max(1000)
    }

    fn text(&self, text: &str, scale: f64) -> String {
        text.replace("{n}", &self.rounds(scale).to_string())
    }
}

fn fill(server: &Server, cases: &[&Case], scale: f64, [calls, tpcc]: [bool; 2]) -> Result<(), String> {
    let mut connection = tables::create_schema(&server.address).map_err(text)?;
    let dialect = connection.dialect();
    for case in cases {
        for sql in of(case.setup, dialect).split("\n;;\n") {
            let done = connection.query(&case.text(sql, scale));
            done.map_err(|error| format!("{}: {error}: {:.80}", case.name, sql))?;
        }
    }
    if calls {
        let filled = tables::prepare(&mut connection, Schema::Sbtest, SBTEST);
        let made = filled.and_then(|()| connection.query(of(FIVE, dialect)));
        made.map_err(|error| format!("{CALL}: {error}"))?;
    }
    if tpcc {
        let filled = tpcc::load(&mut connection, WAREHOUSES);
        let made = filled.and_then(|()| procedures::create(&mut connection));
        made.map_err(|error| format!("{TPCC}: {error}"))?;
    }
    Ok(())
}

/// Measures one case on all servers, and compares their results.
fn measure(case: &Case, asked: &ProgramsRun, servers: &mut [Server]) -> Result<Vec<Vec<Sample>>, String> {
    let mut expected: Option<Rows> = None;
    let mut warm = |server: &mut Server| {
        let (_, rows) = once(case, asked.scale, server)?;
        match &expected {
            Some(known) if *known != rows => {
                Err(format!("{}: {rows:?}, another server {known:?}", case.name))
            }
            _ => {
                expected = Some(rows);
                Ok(())
            }
        }
    };
    turns(servers, 1, &mut warm)?;
    turns(servers, asked.repeats, |server| once(case, asked.scale, server).map(|(sample, _)| sample))
}

/// Runs the statement of a case once. Returns its times per round or row, and its result.
fn once(case: &Case, scale: f64, server: &Server) -> Result<(Sample, Rows), String> {
    let failed = |error: crate::connection::ConnectionError| format!("{}: {error}", case.name);
    let mut connection = Connection::open(&server.address, SCHEMA).map_err(failed)?;
    for sql in case.before.split("; ").filter(|sql| !sql.is_empty()) {
        connection.query(sql).map_err(failed)?;
    }
    let dialect = connection.dialect();
    let sql = case.text(of(case.sql, dialect), scale);
    let (used, began) = (server.processor_seconds(), Instant::now());
    let mut rows = connection.query(&sql).map_err(failed)?;
    let (elapsed, used) = (began.elapsed().as_secs_f64(), server.processor_seconds() - used);
    let answer = of(case.answer, dialect);
    if !answer.is_empty() {
        rows = connection.query(answer).map_err(failed)?;
    }
    let nanos = 1e9 / case.rounds(scale) as f64;
    Ok((Sample { elapsed: elapsed * nanos, processor: used * nanos }, rows))
}

/// Measures calls. Returns the times per call.
fn call(server: &Server, measure: Duration) -> Result<Sample, String> {
    let load = Load {
        address: server.address.clone(),
        schema: SCHEMA.to_owned(),
        workload: &CALLS,
        protocol: Protocol::Prepared,
        clients: CLIENTS,
        threads: 1,
        scale: SBTEST,
        warm: Duration::from_secs(1),
        measure,
    };
    let (mut before, mut after) = (0.0, 0.0);
    let outcome = driver::run(&load, |event| match event {
        driver::LoadEvent::MeasureBegins => before = server.processor_seconds(),
        driver::LoadEvent::Tick(_) => {}
        driver::LoadEvent::MeasureEnds => after = server.processor_seconds(),
    })?;
    let calls = outcome.latencies.count().max(1) as f64;
    Ok(Sample { elapsed: outcome.seconds * 1e9 / calls, processor: (after - before) * 1e9 / calls })
}

/// Creates routines and calls each of them once. Returns by how much the resident memory of the server grows.
/// PostgreSQL keeps compiled routines in the process of the connection.
fn routines(server: &Server, count: u64) -> Result<u64, String> {
    let resident = || server.processes().into_iter().filter_map(process::resident_bytes).sum::<u64>();
    let mut connection = Connection::open(&server.address, SCHEMA).map_err(text)?;
    let is_postgres = connection.dialect() == Dialect::Postgres;
    let before = resident();
    for n in 0..count {
        let (head, block) = match is_postgres {
            true => ("LANGUAGE plpgsql AS $$ DECLARE i INT := 0; BEGIN", "LOOP i := i + 1; END LOOP; END $$"),
            false => ("BEGIN DECLARE i INT DEFAULT 0;", "DO SET i = i + 1; END WHILE; END"),
        };
        let created = format!("CREATE PROCEDURE routine_{n}(a INT) {head} WHILE i < a {block}");
        connection.query(&created).map_err(text)?;
        connection.query(&format!("CALL routine_{n}({})", n % 10)).map_err(text)?;
    }
    Ok(resident().saturating_sub(before))
}

/// Returns the differences of two lists of samples, turn by turn.
fn differences(a: &[Sample], b: &[Sample]) -> Vec<Sample> {
    let less = |(a, b): (&Sample, &Sample)| Sample {
        elapsed: a.elapsed - b.elapsed,
        processor: a.processor - b.processor,
    };
    a.iter().zip(b).map(less).collect()
}

fn heading(servers: &[Server]) -> String {
    let labels: Vec<String> = servers.iter().map(|it| format!("{} ns", it.label)).collect();
    let used: Vec<String> = servers.iter().map(|it| format!("{} processor ns", it.label)).collect();
    let columns = [labels, used].concat();
    format!("| case | per | {} |\n|---|---|{}", columns.join(" | "), "---:|".repeat(columns.len()))
}

fn line(name: &str, per: &str, found: &[Vec<Sample>]) -> String {
    let cell = |samples: &Vec<Sample>, field: fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(field).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[0], values[values.len() - 1]);
        format!("{:.0} ({low:.0} to {high:.0})", values[values.len() / 2])
    };
    let elapsed = found.iter().map(|samples| cell(samples, |it| it.elapsed));
    let used = found.iter().map(|samples| cell(samples, |it| it.processor));
    format!("| {name} | {per} | {} |", elapsed.chain(used).collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_medians_and_spreads() {
        let sample = |n: f64| Sample { elapsed: n, processor: n / 2.0 };
        let found = vec![vec![sample(30.0), sample(10.0), sample(20.0)]];
        assert_eq!(line("loop", "round", &found), "| loop | round | 20 (10 to 30) | 10 (5 to 15) |");
        let more = differences(&[sample(30.0), sample(50.0)], &[sample(10.0), sample(20.0)]);
        assert_eq!(more.iter().map(|it| it.elapsed).collect::<Vec<_>>(), [20.0, 30.0]);
    }

    #[test]
    fn a_case_that_is_compared_follows_the_other_one() {
        for (n, case) in CASES.iter().enumerate() {
            let is_before = |name: &str| CASES[..n].iter().any(|other| other.name == name);
            assert!(case.without.is_none_or(is_before), "{}", case.name);
            assert!(case.rounds(0.0) >= 1000);
        }
    }
}
