//! Queries side by side: the 22 of TPC-H, the Star Schema Benchmark, and single operators on large tables.
//! Results are compared row by row.
//!
//! Both servers contain the same rows with the same indexes. A query runs once on each server to warm up, and
//! the results of this run are compared. Then it runs in turns. Its time is the median, from sending it to
//! its last row.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::connection::{Connection, Rows};
use crate::servers::{Contestant, Server, Setup};
use crate::tables::{self, SCHEMA};
use crate::tpch::TableDefinition;
use crate::{ssb, tpch};

/// Size of one INSERT.
const INSERT_BYTES: usize = 256 << 10;
/// A query that takes longer is not repeated.
const ONCE: Duration = Duration::from_secs(20);

/// A benchmark: its tables and queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Benchmark {
    TpcH,
    StarSchema,
}

impl Benchmark {
    fn name(self) -> &'static str {
        match self {
            Benchmark::TpcH => "TPC-H",
            Benchmark::StarSchema => "Star Schema Benchmark",
        }
    }

    fn tables(self) -> &'static [TableDefinition] {
        match self {
            Benchmark::TpcH => &tpch::TABLES,
            Benchmark::StarSchema => &ssb::TABLES,
        }
    }

    /// Returns all queries in the order of their numbers.
    fn cases(self) -> Vec<Case> {
        let case = |name: String, sql: &str| Case { name, settings: ["", ""], sql: sql.to_owned() };
        match self {
            Benchmark::TpcH => {
                tpch::QUERIES.iter().enumerate().map(|(n, sql)| case(format!("Q{}", n + 1), sql)).collect()
            }
            Benchmark::StarSchema => {
                ssb::QUERIES.iter().map(|(name, sql)| case((*name).to_owned(), sql)).collect()
            }
        }
    }

    fn rows_of(self, scale: f64, take: impl FnMut(tpch::Row) -> Result<(), String>) -> Result<(), String> {
        match self {
            Benchmark::TpcH => tpch::rows_of(scale, take),
            Benchmark::StarSchema => ssb::rows_of(scale, take),
        }
    }
}

/// The measurements to run.
#[derive(Debug, PartialEq)]
pub struct SqlRun {
    pub benchmark: Benchmark,
    /// Scale of the benchmark.
    pub scale: f64,
    /// Number of rows of the tables for single operators; 0 to skip them.
    pub rows: u32,
    pub repeats: usize,
    /// Numbers of the queries; empty for all.
    pub queries: Vec<usize>,
    pub dir: PathBuf,
    pub cohortd: Option<PathBuf>,
}

/// A statement to time, with the settings of its session.
struct Case {
    name: String,
    /// One for each server.
    settings: [&'static str; 2],
    sql: String,
}

/// One row of a table.
struct Line {
    name: String,
    seconds: [f64; 2],
    /// Difference between the results, if any.
    difference: Option<String>,
}

/// Cohort, then MariaDB.
type Both = [Server; 2];

/// Measures, and prints the tables.
pub fn run(asked: &SqlRun) -> Result<(), String> {
    let dir = asked.dir.join(format!("cohort-bench-{}", std::process::id()));
    let setup = Setup { cohortd: asked.cohortd.clone(), ..Setup::below(dir.clone()) };
    let start = |name: &str| Server::start(&Contestant::parse(name).expect("a server"), &setup);
    let mut servers = [start("cohort")?, start("mariadb")?];
    let done = measure_all(asked, &mut servers);
    drop(servers);
    // Ignore errors: they only leave a folder on the disk.
    let _ = fs::remove_dir_all(&dir);
    done
}

fn measure_all(asked: &SqlRun, servers: &mut Both) -> Result<(), String> {
    for server in servers.iter_mut() {
        fill(server, asked).map_err(|error| server.complaint(&error))?;
    }
    let is_wanted = |n: usize| asked.queries.is_empty() || asked.queries.contains(&n);
    let all = asked.benchmark.cases().into_iter().enumerate();
    let cases: Vec<Case> = all.filter(|(at, _)| is_wanted(at + 1)).map(|(_, case)| case).collect();
    let lines = measure(&cases, asked.repeats, servers)?;
    println!("{} at scale {}\n\n{}", asked.benchmark.name(), asked.scale, table(&lines));
    let mut all = lines;
    if asked.rows > 0 {
        let lines = measure(&operators(asked.rows), asked.repeats, servers)?;
        println!("Single operators, {} rows\n\n{}", asked.rows, table(&lines));
        all.extend(lines);
    }
    match all.iter().filter(|line| line.difference.is_some()).count() {
        0 => Ok(()),
        n => Err(format!("{n} answers differ")),
    }
}

/// Returns the queries of single operators: with the memory that a user would give to fast queries, then with
/// 16 MiB.
fn operators(rows: u32) -> Vec<Case> {
    const LARGE: [&str; 2] = [
        "SET join_buffer_size=268435456, sort_buffer_size=268435456, tmp_memory_table_size=268435456",
        "SET join_cache_level=8, join_buffer_space_limit=536870912, join_buffer_size=268435456, \
         sort_buffer_size=268435456, tmp_memory_table_size=268435456, max_heap_table_size=268435456",
    ];
    const SMALL: [&str; 2] = [
        "SET join_buffer_size=16777216, sort_buffer_size=16777216, tmp_memory_table_size=16777216",
        "SET join_cache_level=8, join_buffer_space_limit=33554432, join_buffer_size=16777216, \
         sort_buffer_size=16777216, tmp_memory_table_size=16777216, max_heap_table_size=16777216",
    ];
    let shapes = [
        ("hash join", "SELECT COUNT(*), SUM(a.v + b.v) FROM wide_a a JOIN wide_b b ON a.j = b.j".to_owned()),
        (
            "group",
            "SELECT COUNT(*), SUM(n), SUM(s) FROM (SELECT g, COUNT(*) n, SUM(v) s FROM wide_a GROUP BY g) d"
                .to_owned(),
        ),
        ("sort", format!("SELECT j, v FROM wide_a ORDER BY v, j LIMIT {}, 1", rows - 1)),
        ("scan, filter, sum", "SELECT SUM(v) FROM wide_a WHERE g < 50000".to_owned()),
    ];
    let mut cases = Vec::new();
    for (memory, settings) in [("", LARGE), (", 16 MiB", SMALL)] {
        for (name, sql) in &shapes {
            cases.push(Case { name: format!("{name}{memory}"), settings, sql: sql.clone() });
        }
    }
    cases
}

fn fill(server: &Server, asked: &SqlRun) -> Result<(), String> {
    eprintln!("{}: filling", server.label);
    let mut connection = tables::create_schema(&server.address).map_err(|error| error.to_string())?;
    let mut execute = |sql: &str| -> Result<(), String> {
        connection.query(sql).map(drop).map_err(|error| format!("{error}: {:.80}", sql))
    };
    for table in asked.benchmark.tables() {
        execute(&format!("CREATE TABLE {} ({})", table.name, table.columns))?;
    }
    // The rows of several tables alternate, so each table has its own growing INSERT.
    let mut open: Vec<(&'static str, String)> = Vec::new();
    asked.benchmark.rows_of(asked.scale, |row| {
        let at = match open.iter().position(|(table, _)| *table == row.table) {
            Some(at) => at,
            None => {
                open.push((row.table, String::new()));
                open.len() - 1
            }
        };
        let (table, sql) = &mut open[at];
        match sql.is_empty() {
            true => sql.push_str(&format!("INSERT INTO {table} VALUES ({})", row.values)),
            false => sql.push_str(&format!(",({})", row.values)),
        }
        if sql.len() > INSERT_BYTES {
            execute(&std::mem::take(sql))?;
        }
        Ok::<(), String>(())
    })?;
    for (_, sql) in open.iter().filter(|(_, sql)| !sql.is_empty()) {
        execute(sql)?;
    }
    for table in asked.benchmark.tables() {
        for index in table.indexes {
            let (name, columns) = index.split_once('(').expect("a name and its columns");
            execute(&format!("CREATE INDEX {name} ON {}({columns}", table.name))?;
        }
        execute(&format!("ANALYZE TABLE {}", table.name))?;
    }
    if asked.rows > 0 {
        for (table, factor) in [("wide_a", 7_919), ("wide_b", 104_729)] {
            execute(&format!(
                "CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, j INT NOT NULL, g INT NOT NULL, \
                 v INT NOT NULL, pad CHAR(40) NOT NULL)"
            ))?;
            let rows = asked.rows;
            // The factors are coprime to the number of rows, so j is a permutation.
            execute(&format!(
                "INSERT INTO {table} SELECT seq, seq * {factor} % {rows}, seq * {factor} % 100000, \
                 seq * 31 % 65521, 'filler of a row that is not selected' FROM seq_1_to_{rows}"
            ))?;
            execute(&format!("ANALYZE TABLE {table}"))?;
        }
    }
    Ok(())
}

fn measure(cases: &[Case], repeats: usize, servers: &mut Both) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for case in cases {
        eprintln!("{}", case.name);
        let mut answers = Vec::new();
        let mut times: [Vec<f64>; 2] = Default::default();
        let mut slow = false;
        for (n, server) in servers.iter_mut().enumerate() {
            let (rows, time) = ask(server, case, n)?;
            slow |= time > ONCE;
            answers.push(rows);
            times[n].push(time.as_secs_f64());
        }
        let difference = difference(&answers[0], &answers[1]);
        if !slow {
            times.iter_mut().for_each(Vec::clear);
            for repeat in 0..repeats {
                for n in [repeat % 2, 1 - repeat % 2] {
                    times[n].push(ask(&mut servers[n], case, n)?.1.as_secs_f64());
                }
            }
        }
        let seconds = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        lines.push(Line { name: case.name.clone(), seconds, difference });
    }
    Ok(lines)
}

fn ask(server: &mut Server, case: &Case, n: usize) -> Result<(Rows, Duration), String> {
    let answer = || -> Result<(Rows, Duration), String> {
        let error_text = |error: crate::connection::ConnectionError| format!("{}: {error}", case.name);
        let mut connection = Connection::open(&server.address, SCHEMA).map_err(error_text)?;
        if !case.settings[n].is_empty() {
            connection.query(case.settings[n]).map_err(error_text)?;
        }
        let began = Instant::now();
        let rows = connection.query(&case.sql).map_err(error_text)?;
        Ok((rows, began.elapsed()))
    };
    let answer = answer();
    answer.map_err(|error| server.complaint(&error))
}

/// Returns the first difference. The order of rows matters.
fn difference(a: &Rows, b: &Rows) -> Option<String> {
    if a.len() != b.len() {
        return Some(format!("{} rows, MariaDB {}", a.len(), b.len()));
    }
    let at = a.iter().zip(b).position(|(a, b)| a != b)?;
    Some(format!("row {}: {:?}, MariaDB {:?}", at + 1, a[at], b[at]))
}

fn table(lines: &[Line]) -> String {
    let mut out =
        String::from("| query | Cohort s | MariaDB s | of MariaDB's | answers |\n|---|---:|---:|---:|---|\n");
    let mut total = [0.0, 0.0];
    let mut logarithms = 0.0;
    for line in lines {
        let [a, b] = line.seconds;
        let answers = line.difference.as_deref().unwrap_or("equal");
        out.push_str(&format!("| {} | {a:.3} | {b:.3} | {:.2} | {answers} |\n", line.name, a / b));
        total = [total[0] + a, total[1] + b];
        logarithms += (a / b).ln();
    }
    let mean = (logarithms / lines.len().max(1) as f64).exp();
    out.push_str(&format!("| total | {:.3} | {:.3} | {:.2} | |\n", total[0], total[1], total[0] / total[1]));
    out.push_str(&format!("| geometric mean | | | {mean:.2} | |\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_reported() {
        let row = |text: &str| vec![Some(text.to_owned())];
        assert_eq!(difference(&vec![row("a")], &vec![row("a")]), None);
        let found = difference(&vec![row("a"), row("b")], &vec![row("a"), row("c")]);
        assert!(found.expect("they differ").starts_with("row 2: "));
        assert_eq!(difference(&Vec::new(), &vec![row("a")]).as_deref(), Some("0 rows, MariaDB 1"));
    }

    #[test]
    fn means_are_geometric() {
        let line = |a: f64, b: f64| Line { name: "Q".to_owned(), seconds: [a, b], difference: None };
        assert!(table(&[line(2.0, 1.0), line(1.0, 8.0)]).contains("| geometric mean | | | 0.50 |"));
    }
}
