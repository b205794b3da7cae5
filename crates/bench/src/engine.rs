//! `cohort-bench engine`: measures the storage engine in situations that short loads on small, new tables do
//! not cover.
//!
//! Each part starts its own servers and prints a table: full scans, ranges compared with the LSM engine, a
//! buffer pool smaller than the data, a read view that stays open, a large commit, the size on disk after
//! random updates, and TPC-C. As in a run, servers take turns: one is measured while the others are stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::connection::{Connection, Rows};
use crate::interrupt;
use crate::large::Large;
use crate::servers::{Kind, Server, Setup};
use crate::tables::{self, SCHEMA};
use crate::tpcc;
use crate::turns::{Loaded, Rate, fill, median, median_rate, start_as, text, turns};
use crate::workload::{Keys, Scale};

/// The measurements to run.
#[derive(Debug, PartialEq)]
pub struct EngineRun {
    /// Empty for all parts.
    pub parts: Vec<Part>,
    pub measure: Duration,
    pub repeats: usize,
    /// Time for which a read view is kept open under load before the measurement.
    pub hold: Duration,
    pub dir: PathBuf,
    /// The builds; if empty, the build next to this program. With several builds, `range`, `view`, `commit`
    /// and `tpcc` measure each of them, and not MariaDB.
    pub programs: Vec<PathBuf>,
}

impl EngineRun {
    /// Returns the servers that `range`, `view`, `commit` and `tpcc` compare: builds, or one build and
    /// MariaDB.
    fn contestants(&self, setup: &Setup) -> Vec<(String, &'static str, Setup)> {
        match self.programs.len() {
            0 | 1 => ["cohort", "mariadb"].map(|name| (name.to_owned(), name, setup.clone())).into(),
            _ => (0..)
                .zip(&self.programs)
                .map(|(number, program)| {
                    let setup = Setup { cohortd: Some(program.clone()), ..setup.clone() };
                    (format!("build{number}"), "cohort", setup)
                })
                .collect(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Scan,
    Range,
    Pool,
    View,
    Commit,
    Size,
    TpcC,
}

impl Part {
    const ALL: [(&str, Part); 7] = [
        ("scan", Part::Scan),
        ("range", Part::Range),
        ("pool", Part::Pool),
        ("view", Part::View),
        ("commit", Part::Commit),
        ("size", Part::Size),
        ("tpcc", Part::TpcC),
    ];

    pub fn parse(name: &str) -> Option<Part> {
        Part::ALL.iter().find(|(known, _)| *known == name).map(|(_, part)| *part)
    }
}

/// sysbench's tables, as `run` has them.
const SCALE: Scale = Scale { tables: 4, rows: 25_000, keys: Keys::Even };
/// About 200 MiB.
const LARGE: Scale = Scale { tables: 8, rows: 125_000, keys: Keys::Even };
const MILLION: Scale = Scale { tables: 1, rows: 1_000_000, keys: Keys::Even };
/// An eighth of the size of [`LARGE`] in InnoDB's files.
const SMALL_POOL: &str = "--innodb-buffer-pool-size=32M";
const WAREHOUSES: u32 = 2;

/// Measures, and prints each table as soon as it is complete.
pub fn run(asked: &EngineRun) -> Result<(), String> {
    let dir = asked.dir.join(format!("cohort-bench-{}", std::process::id()));
    let setup = Setup { cohortd: asked.programs.first().cloned(), ..Setup::below(dir.clone()) };
    let parts: Vec<Part> = match asked.parts.is_empty() {
        true => Part::ALL.iter().map(|(_, part)| *part).collect(),
        false => asked.parts.clone(),
    };
    let done = parts.iter().try_for_each(|part| {
        let table = match part {
            Part::Scan => scan(asked, &setup),
            Part::Range => range(asked, &setup),
            Part::Pool => pool(asked, &setup),
            Part::View => view(asked, &setup),
            Part::Commit => commit(asked, &setup),
            Part::Size => size(asked, &setup),
            Part::TpcC => tpc_c(asked, &setup),
        }?;
        println!("{table}");
        if interrupt::is_requested() { Err("interrupted".to_owned()) } else { Ok(()) }
    });
    // Ignore errors: they only leave a folder on the disk.
    let _ = fs::remove_dir_all(&dir);
    done
}

fn start(name: &str, options: &[&str], setup: &Setup) -> Result<Server, String> {
    let label = std::iter::once(name).chain(options.iter().copied()).collect::<Vec<_>>().join(" ");
    start_as(&label, name, options, setup)
}

/// Starts a server with sysbench's tables, stopped until its turn.
fn filled(name: &str, options: &[&str], scale: Scale, setup: &Setup) -> Result<Server, String> {
    fill(start(name, options, setup)?, scale)
}

/// Starts the servers to compare, with sysbench's tables.
fn compared(asked: &EngineRun, setup: &Setup) -> Result<Vec<Server>, String> {
    let contestants = asked.contestants(setup).into_iter();
    contestants.map(|(label, name, setup)| fill(start_as(&label, name, &[], &setup)?, SCALE)).collect()
}

fn rates(servers: &mut [Server], load: &Loaded, repeats: usize) -> Result<Vec<Rate>, String> {
    let found = turns(servers, repeats, |server| load.on(server))?;
    Ok(found.iter().map(|rates| median_rate(rates)).collect())
}

/// Measures statements that read a million rows, from one client.
fn scan(asked: &EngineRun, setup: &Setup) -> Result<String, String> {
    let mut servers = [filled("cohort", &[], MILLION, setup)?, filled("mariadb", &[], MILLION, setup)?];
    let mut out = "### A million rows, one client, s\n\n| statement | cohort | mariadb | times as fast |\n\
                   |---|---:|---:|---:|\n"
        .to_owned();
    for sql in
        ["SELECT COUNT(*) FROM sbtest1", "SELECT SUM(k) FROM sbtest1", "SELECT SUM(LENGTH(c)) FROM sbtest1"]
    {
        let ask = |server: &mut Server| -> Result<f64, String> {
            let mut connection = Connection::open(&server.address, SCHEMA).map_err(text)?;
            connection.query(sql).map_err(text)?;
            let began = Instant::now();
            connection.query(sql).map_err(text)?;
            Ok(began.elapsed().as_secs_f64())
        };
        let mut found = turns(&mut servers, asked.repeats, ask)?.into_iter().map(median);
        let (Some(a), Some(b)) = (found.next(), found.next()) else { unreachable!("two servers") };
        out.push_str(&format!("| {sql} | {a:.3} | {b:.3} | {:.2} |\n", b / a));
    }
    Ok(out)
}

/// Measures ranges of a hundred rows on both engines, or on builds.
fn range(asked: &EngineRun, setup: &Setup) -> Result<String, String> {
    let mut servers = match asked.programs.len() {
        0 | 1 => vec![
            fill(start_as("B+tree", "cohort", &[], setup)?, SCALE)?,
            fill(start_as("RocksDB", "cohort", &["--default-storage-engine=ROCKSDB"], setup)?, SCALE)?,
        ],
        _ => compared(asked, setup)?,
    };
    let load = Loaded { workload: "range", clients: 16, scale: SCALE, measure: asked.measure };
    let found = rates(&mut servers, &load, asked.repeats)?;
    let mut out =
        "### A range of 100 rows, 16 clients\n\n| engine | /s | server us |\n|---|---:|---:|\n".to_owned();
    for (server, rate) in servers.iter().zip(&found) {
        out.push_str(&format!("| {} | {:.0} | {:.1} |\n", server.label, rate.per_second, rate.processor_us));
    }
    Ok(out)
}

/// Measures with a buffer pool of an eighth of the data.
fn pool(asked: &EngineRun, setup: &Setup) -> Result<String, String> {
    let mut servers =
        [filled("cohort", &[SMALL_POOL], LARGE, setup)?, filled("mariadb", &[SMALL_POOL], LARGE, setup)?];
    let mut out = "### A buffer pool of an eighth of the data, even keys\n\n\
                   | workload | clients | cohort/s | mariadb/s | ratio | cohort p99 ms | mariadb p99 ms |\n\
                   |---|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for workload in ["point_select", "update_non_index"] {
        for clients in [16, 64] {
            let found = {
                let load = Loaded { workload, clients, scale: LARGE, measure: asked.measure };
                rates(&mut servers, &load, asked.repeats)?
            };
            let [a, b] = [found[0], found[1]];
            out.push_str(&format!(
                "| {workload} | {clients} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} |\n",
                a.per_second,
                b.per_second,
                a.per_second / b.per_second,
                a.p99_ms,
                b.p99_ms
            ));
        }
    }
    Ok(out)
}

/// Compares updates while an old read view is open with updates without one. There are two servers of each
/// kind, of which one keeps the view open; all of them take turns.
fn view(asked: &EngineRun, setup: &Setup) -> Result<String, String> {
    const SUM: &str = "SELECT SUM(k) FROM sbtest1";
    let load = Loaded { workload: "update_index", clients: 64, scale: SCALE, measure: asked.measure };
    let mut servers = Vec::new();
    for (label, name, setup) in asked.contestants(setup) {
        for label in [label.clone(), format!("{label}, a view open")] {
            servers.push(fill(start_as(&label, name, &[], &setup)?, SCALE)?);
        }
    }
    let mut viewers = Vec::new();
    for server in servers.iter_mut().skip(1).step_by(2) {
        server.resume();
        let opened = open_view(server, SUM).and_then(|view| load.lasting(server, asked.hold).map(|_| view));
        viewers.push(opened.map_err(|error| server.complaint(&error))?);
        server.pause();
    }
    let found = rates(&mut servers, &load, asked.repeats)?;
    let mut out = format!(
        "### update_index, 64 clients, a read view open for {} s and more\n\n\
         | server | /s alone | /s with view | ratio | p99 ms alone | p99 ms with view | ratio | server us alone | \
         server us with view |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        asked.hold.as_secs()
    );
    for ((pair, rates), (viewer, before)) in servers.chunks_mut(2).zip(found.chunks(2)).zip(&mut viewers) {
        let [alone, with_view] = [rates[0], rates[1]];
        pair[1].resume();
        let after = viewer.query(SUM).map_err(|error| pair[1].complaint(&error.to_string()))?;
        if after != *before {
            return Err("the read view has changed".to_owned());
        }
        out.push_str(&format!(
            "| {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} |\n",
            pair[0].label,
            alone.per_second,
            with_view.per_second,
            with_view.per_second / alone.per_second,
            alone.p99_ms,
            with_view.p99_ms,
            with_view.p99_ms / alone.p99_ms,
            alone.processor_us,
            with_view.processor_us
        ));
    }
    Ok(out)
}

/// Compares small inserts while a transaction copies a million rows, and while it commits, with inserts
/// alone. The maximum time for which the order stage is held is measured on a freshly restarted idle server,
/// because under load the thread that holds it may be preempted.
fn commit(asked: &EngineRun, setup: &Setup) -> Result<String, String> {
    const CLIENTS: usize = 16;
    const CALM: Duration = Duration::from_secs(12);
    let load = Loaded { workload: "insert", clients: CLIENTS, scale: MILLION, measure: asked.measure };
    let (mut servers, mut held) = (Vec::new(), Vec::new());
    for (label, name, setup) in asked.contestants(setup) {
        let mut server = fill(start_as(&label, name, &[], &setup)?, MILLION)?;
        server.resume();
        server.crash()?;
        let once = commit_copy(&server, |_| Ok(())).and_then(|_| order_work_max(&server));
        held.push(once.map_err(|error| server.complaint(&error))?);
        server.pause();
        servers.push(server);
    }
    let found = turns(&mut servers, asked.repeats, |server| {
        // Keep the effects of the previous turn out of the measurement: a dropped table, a checkpoint, and
        // copying into the binary log.
        std::thread::sleep(CALM);
        let alone = load.on(server)?;
        let (address, mut copying) = (server.address.clone(), None);
        let during_copy = load.measure_with(server, asked.measure, || {
            let address = address.clone();
            copying = Some(std::thread::spawn(move || Large::copy_rows(&address)));
        })?;
        let copied = copying.expect("the measurement began").join().expect("it does not panic");
        let during_commit = commit_large(server, copied.map_err(text)?, |large| {
            load.measure_with(server, asked.measure, || large.commit())
        })?;
        Ok((alone, during_copy, during_commit))
    })?;
    let mut out = format!(
        "### insert, {CLIENTS} clients, while a transaction copies a million rows, and while it commits\n\n\
         | server | /s alone | during the copying | during the commit | p99 ms alone | during the copying | \
         ratio | during the commit | ratio | the commit took s | order stage held at most us |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
    );
    for ((server, found), held) in servers.iter().zip(&found).zip(held) {
        let rates = |pick: fn(&(Rate, Rate, (Rate, f64))) -> Rate| {
            median_rate(&found.iter().map(pick).collect::<Vec<_>>())
        };
        let (alone, copying, commit) = (rates(|one| one.0), rates(|one| one.1), rates(|one| one.2.0));
        out.push_str(&format!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {} |\n",
            server.label,
            alone.per_second,
            copying.per_second,
            commit.per_second,
            alone.p99_ms,
            copying.p99_ms,
            copying.p99_ms / alone.p99_ms,
            commit.p99_ms,
            commit.p99_ms / alone.p99_ms,
            median(found.iter().map(|one| one.2.1).collect()),
            held.as_deref().unwrap_or("-"),
        ));
    }
    Ok(out)
}

/// Copies a million rows in a transaction and commits it, at the latest after `during` has returned. Returns
/// the result of `during` and the duration of the commit in seconds.
fn commit_copy<T>(
    server: &Server,
    during: impl FnOnce(&mut Large) -> Result<T, String>,
) -> Result<(T, f64), String> {
    commit_large(server, Large::copy_rows(&server.address).map_err(text)?, during)
}

fn commit_large<T>(
    server: &Server,
    mut large: Large,
    during: impl FnOnce(&mut Large) -> Result<T, String>,
) -> Result<(T, f64), String> {
    let done = during(&mut large)?;
    large.commit();
    let took = large.finish().expect("it commits").map_err(text)?;
    let mut connection = Connection::open(&server.address, SCHEMA).map_err(text)?;
    connection.query("DROP TABLE copied").map_err(text)?;
    Ok((done, took.as_secs_f64()))
}

/// Returns the maximum time in microseconds for which the order stage was held; `None` for MariaDB.
fn order_work_max(server: &Server) -> Result<Option<String>, String> {
    let mut connection = Connection::open(&server.address, SCHEMA).map_err(text)?;
    let rows = connection.query("SHOW GLOBAL STATUS LIKE 'Cohort_order_work_us_max'").map_err(text)?;
    Ok(rows.into_iter().flatten().nth(1).flatten())
}

/// Opens a connection with a read view. Returns it with the result of the statement in that view.
fn open_view(server: &Server, sql: &str) -> Result<(Connection, Rows), String> {
    let mut viewer = Connection::open(&server.address, SCHEMA).map_err(text)?;
    viewer.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").map_err(text)?;
    viewer.query("START TRANSACTION WITH CONSISTENT SNAPSHOT").map_err(text)?;
    let answer = viewer.query(sql).map_err(text)?;
    Ok((viewer, answer))
}

/// Measures the size of the tables on disk, after filling and after random updates.
fn size(asked: &EngineRun, setup: &Setup) -> Result<String, String> {
    let mut out = format!(
        "### MiB of the tables on the disk\n\n| server | rows | filled | after {} s of updates |\n\
         |---|---:|---:|---:|\n",
        asked.hold.as_secs()
    );
    for (kind, name) in [(Kind::Cohort, "cohort"), (Kind::MariaDb, "mariadb")] {
        let mut server = filled(name, &[], LARGE, setup)?;
        server.resume();
        let sizes = || -> Result<[u64; 2], String> {
            let fresh = settled_bytes(&server, kind)?;
            for workload in ["update_index", "update_non_index"] {
                Loaded { workload, clients: 16, scale: LARGE, measure: asked.measure }
                    .lasting(&server, asked.hold / 2)?;
            }
            Ok([fresh, settled_bytes(&server, kind)?])
        };
        let sizes = sizes();
        let [fresh, updated] = sizes.map_err(|error| server.complaint(&error))?;
        out.push_str(&format!(
            "| {name} | {} | {} | {} |\n",
            LARGE.tables * LARGE.rows,
            fresh >> 20,
            updated >> 20
        ));
    }
    Ok(out)
}

/// Returns the size of a server's tables and their undo once background work has ended.
fn settled_bytes(server: &Server, kind: Kind) -> Result<u64, String> {
    const PATIENCE: Duration = Duration::from_secs(60);
    if kind == Kind::Cohort {
        let mut connection = Connection::open(&server.address, "").map_err(text)?;
        connection.query("FLUSH TABLES").map_err(text)?;
    }
    let began = Instant::now();
    let mut last = 0;
    loop {
        std::thread::sleep(Duration::from_secs(5));
        let bytes = table_bytes(&server.data_dir(), kind);
        if bytes == last || began.elapsed() > PATIENCE {
            return Ok(bytes);
        }
        last = bytes;
    }
}

/// Returns the size of the files of tables and undo, in allocated blocks. The logs and the binary log are not
/// included.
fn table_bytes(dir: &Path, kind: Kind) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(found) = entry.metadata() else { return 0 };
        if found.is_dir() {
            return table_bytes(&entry.path(), kind);
        }
        let is_table = if kind == Kind::Cohort {
            name.starts_with("btree")
        } else {
            name.ends_with(".ibd") || name.starts_with("ibdata") || name.starts_with("undo")
        };
        if is_table { found.blocks() * 512 } else { 0 }
    };
    entries.flatten().map(of).sum()
}

/// Measures TPC-C terminals, with the processor time of a transaction in the server and in the clients.
fn tpc_c(asked: &EngineRun, setup: &Setup) -> Result<String, String> {
    let mut servers = Vec::new();
    for (label, name, setup) in asked.contestants(setup) {
        let mut server = start_as(&label, name, &[], &setup)?;
        let done = tables::create_schema(&server.address)
            .and_then(|mut connection| tpcc::load(&mut connection, WAREHOUSES));
        done.map_err(|error| server.complaint(&format!("TPC-C: {error}")))?;
        server.pause();
        servers.push(server);
    }
    let mut out = format!(
        "### TPC-C, {WAREHOUSES} warehouses\n\n| terminals | server | /s | by the last | new orders a minute | p99 ms \
         | repeated | server us | clients us |\n|---:|---|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    for terminals in [8, 32] {
        let warm = Duration::from_secs(1);
        let found = turns(&mut servers, asked.repeats, |server| {
            tpcc::run(&server.address, server.pid(), WAREHOUSES, terminals, warm, asked.measure)
        })?;
        let of =
            |at: usize, field: &dyn Fn(&tpcc::Outcome) -> f64| median(found[at].iter().map(field).collect());
        let by_transaction = |at, field: fn(&tpcc::Outcome) -> f64| {
            of(at, &|outcome| field(outcome) / outcome.transactions.max(1) as f64)
        };
        let per_second = |at| of(at, &|outcome| outcome.transactions as f64 / outcome.seconds);
        let last = per_second(servers.len() - 1);
        for (at, server) in servers.iter().enumerate() {
            out.push_str(&format!(
                "| {terminals} | {} | {:.0} | {:.2} | {:.0} | {:.1} | {:.2} % | {:.0} | {:.0} |\n",
                server.label,
                per_second(at),
                per_second(at) / last,
                of(at, &|outcome| outcome.new_orders as f64 / outcome.seconds * 60.0),
                of(at, &|outcome| outcome.latencies.percentile(0.99) as f64 / 1e6),
                by_transaction(at, |outcome| outcome.retries as f64 * 100.0),
                by_transaction(at, |outcome| outcome.server_seconds * 1e6),
                by_transaction(at, |outcome| outcome.client_seconds * 1e6),
            ));
        }
    }
    for server in &mut servers {
        server.resume();
        let checked = tpcc::check(&server.address);
        checked.map_err(|error| server.complaint(&error))?;
    }
    out.push_str("\nThe consistency conditions hold on all of them afterwards.\n");
    Ok(out)
}
