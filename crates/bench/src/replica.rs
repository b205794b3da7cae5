//! Apply speed of replicas: Cohort and MariaDB, in each parallel mode, apply the same backlog of the same
//! MariaDB source. Everything is durable, and `log_slave_updates` is on.
//!
//! The source first writes all backlogs, one after the other, and each replica receives all of them before it
//! is measured. Then it applies one backlog after the other (START SLAVE UNTIL) while the source and the
//! other replicas are stopped. Finally a Cohort replicates from a Cohort under load, and applies a large
//! transaction.

use std::time::{Duration, Instant};

use crate::args::Run;
use crate::connection::{Connection, ConnectionError};
use crate::disk::Disk;
use crate::driver::{self, Load, LoadEvent};
use crate::interrupt;
use crate::large::Large;
use crate::process;
use crate::progress::Progress;
use crate::results::{ReplicaLive, ReplicaRate, ReplicaResults, ServerInfo};
use crate::servers::{Contestant, Kind, Server};
use crate::tables::{self, SCHEMA};
use crate::workload::{self, Schema};

/// Workloads of the backlogs, in the order in which they are written.
const WORKLOADS: [&str; 3] = ["update_index", "write_only", "hot_row"];
const CLIENTS: usize = 64;
/// Clients of the live load.
const LIVE_CLIENTS: usize = 8;
/// Maximum time to apply a backlog.
const PATIENCE: Duration = Duration::from_secs(900);
const LARGE_MIB: u32 = 1024;
/// Size of a page in the replica's buffer pool.
const PAGE_BYTES: u64 = 16 << 10;
const LARGE_MIB_QUICK: u32 = 64;

/// A replica to measure.
struct Variant {
    kind: Kind,
    mode: &'static str,
    threads: u32,
    disk: Disk,
}

const fn variant(kind: Kind, mode: &'static str, threads: u32, disk: Disk) -> Variant {
    Variant { kind, mode, threads, disk }
}

const VARIANTS: [Variant; 9] = [
    variant(Kind::MariaDb, "none", 0, Disk::REAL),
    variant(Kind::MariaDb, "conservative", 4, Disk::REAL),
    variant(Kind::MariaDb, "optimistic", 16, Disk::REAL),
    variant(Kind::Cohort, "none", 0, Disk::REAL),
    variant(Kind::Cohort, "conservative", 4, Disk::REAL),
    variant(Kind::Cohort, "optimistic", 4, Disk::REAL),
    variant(Kind::Cohort, "aggressive", 4, Disk::REAL),
    variant(Kind::Cohort, "optimistic", 4, Disk::SSD),
    variant(Kind::Cohort, "optimistic", 4, Disk::HDD),
];

/// Returns results for all measurements with the same rate.
#[cfg(test)]
pub fn one_rate(per_second: f64) -> Vec<ReplicaRate> {
    let of = |variant: &Variant, workload: &str| ReplicaRate {
        server: label(variant.kind).to_owned(),
        mode: variant.mode.to_owned(),
        disk: variant.disk.name(),
        workload: workload.to_owned(),
        per_second,
        ..ReplicaRate::default()
    };
    VARIANTS.iter().flat_map(|variant| WORKLOADS.map(|workload| of(variant, workload))).collect()
}

fn text(error: ConnectionError) -> String {
    error.to_string()
}

/// The transactions between two positions.
struct Backlog {
    workload: &'static str,
    transactions: u64,
    end: Place,
}

/// A position in the source's binary log.
struct Place {
    gtid: String,
    file: String,
    position: String,
}

impl Place {
    fn of(connection: &mut Connection) -> Result<Place, String> {
        let gtid = position(connection)?;
        let rows = connection.query("SHOW MASTER STATUS").map_err(text)?;
        let cell = |n: usize| rows.first().and_then(|row| row.get(n).cloned().flatten()).unwrap_or_default();
        Ok(Place { gtid, file: cell(0), position: cell(1) })
    }

    /// Returns a START SLAVE that ends at this position. MariaDB refuses a GTID while the receiver is
    /// running, and Cohort does not apply in parallel up to a file position.
    fn start_until(&self, kind: Kind) -> String {
        if kind == Kind::Cohort {
            return format!("START SLAVE SQL_THREAD UNTIL master_gtid_pos='{}'", self.gtid);
        }
        format!(
            "START SLAVE SQL_THREAD UNTIL master_log_file='{}', master_log_pos={}",
            self.file, self.position
        )
    }
}

/// Runs all measurements of the run's contestants.
pub fn measure(run: &Run) -> Result<(ReplicaResults, Vec<ServerInfo>), String> {
    let mut results = ReplicaResults::default();
    let mut servers: Vec<ServerInfo> = Vec::new();
    let progress = Progress::new(0);
    let mut source = start(Kind::MariaDb, "source", &["--server-id=1"], run)?;
    let written = write_backlogs(&source, run, &progress);
    let (begin, backlogs) = written.map_err(|error| source.complaint(&error))?;
    for variant in &VARIANTS {
        let Some(contestant) = run.contestants.iter().find(|one| one.kind == variant.kind) else { continue };
        let measured = catch_up(contestant, variant, &source, (&begin, &backlogs), run, &progress)?;
        let (rates, info) = measured;
        results.rates.extend(rates);
        if !servers.contains(&info) {
            servers.push(info);
        }
    }
    drop(source);
    if run.contestants.iter().any(|one| one.kind == Kind::Cohort) {
        results.live = Some(follow_live(run, &progress)?);
    }
    Ok((results, servers))
}

fn label(kind: Kind) -> &'static str {
    if kind == Kind::Cohort { crate::report::SUBJECT } else { crate::report::BASE }
}

fn start(kind: Kind, name: &str, options: &[&str], run: &Run) -> Result<Server, String> {
    Server::start(&Contestant::parse(label(kind)).expect("known").with(options).named(name), &run.setup)
}

/// Fills the tables, then writes the backlogs. Returns the first position and the backlogs.
fn write_backlogs(source: &Server, run: &Run, progress: &Progress) -> Result<(Place, Vec<Backlog>), String> {
    let mut connection = tables::create_schema(&source.address).map_err(text)?;
    tables::prepare(&mut connection, Schema::Sbtest, run.scale).map_err(text)?;
    let begin = Place::of(&mut connection)?;
    let mut before = number_of(&begin.gtid);
    let mut backlogs = Vec::new();
    for workload in WORKLOADS {
        progress.show(&format!("replica: the source writes {workload}"));
        load(source, workload, CLIENTS, run, |_| ())?;
        let end = Place::of(&mut connection)?;
        let number = number_of(&end.gtid);
        backlogs.push(Backlog { workload, transactions: number - before, end });
        before = number;
    }
    Ok((begin, backlogs))
}

fn load(
    source: &Server,
    workload: &str,
    clients: usize,
    run: &Run,
    watch: impl FnMut(LoadEvent),
) -> Result<f64, String> {
    let workload = workload::find(workload).expect("listed");
    let load = Load {
        address: source.address.clone(),
        schema: SCHEMA.to_owned(),
        workload,
        protocol: workload.protocol(workload::Protocol::Prepared),
        clients,
        threads: run.threads,
        scale: run.scale,
        warm: run.warm,
        measure: run.measure,
    };
    let outcome = driver::run(&load, watch)?;
    if interrupt::is_requested() {
        return Err("interrupted".to_owned());
    }
    Ok(outcome.latencies.count() as f64 / outcome.seconds)
}

fn ask(connection: &mut Connection, sql: &str) -> Result<String, String> {
    let rows = connection.query(sql).map_err(|error| format!("{sql}: {error}"))?;
    Ok(rows.first().and_then(|row| row[0].clone()).unwrap_or_default())
}

fn position(connection: &mut Connection) -> Result<String, String> {
    ask(connection, "SELECT @@gtid_binlog_pos")
}

/// Returns the sequence number of a position with one domain.
fn number_of(position: &str) -> u64 {
    position.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Returns the value of a column of SHOW SLAVE STATUS, by its index.
fn status(connection: &mut Connection, place: usize) -> Result<String, String> {
    let rows = connection.query("SHOW SLAVE STATUS").map_err(text)?;
    Ok(rows.first().and_then(|row| row.get(place).cloned().flatten()).unwrap_or_default())
}

const SECONDS_BEHIND: usize = 32;
const GTID_IO_POS: usize = 43;

fn trouble(connection: &mut Connection, what: &str) -> String {
    let rows = connection.query("SHOW SLAVE STATUS").unwrap_or_default();
    let details: Vec<String> = rows.into_iter().flatten().flatten().filter(|cell| cell.len() > 30).collect();
    format!("{what}: {}", details.join("; "))
}

/// Waits until a position is applied.
fn await_applied(connection: &mut Connection, position: &str) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    while ask(connection, &format!("SELECT MASTER_GTID_WAIT('{position}', 1)"))? != "0" {
        if interrupt::is_requested() {
            return Err("interrupted".to_owned());
        }
        if Instant::now() > end {
            return Err(trouble(connection, &format!("{position} is not reached")));
        }
    }
    Ok(())
}

/// Attaches a replica. It applies up to the position `until` and receives up to `received`.
fn attach(
    connection: &mut Connection,
    kind: Kind,
    source: &Server,
    until: &Place,
    received: &Place,
) -> Result<(), String> {
    let change = format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', master_connect_retry=1, \
         master_use_gtid=slave_pos",
        source.port
    );
    ask(connection, &change)?;
    // If one statement started both threads, MariaDB's receiver would stop at that position, too.
    ask(connection, "START SLAVE IO_THREAD")?;
    ask(connection, &until.start_until(kind))?;
    await_applied(connection, &until.gtid)?;
    // The applier stops shortly after it has reached the position.
    ask(connection, "STOP SLAVE SQL_THREAD")?;
    let end = Instant::now() + PATIENCE;
    while status(connection, GTID_IO_POS)? != received.gtid {
        if Instant::now() > end || interrupt::is_requested() {
            return Err(trouble(connection, "the backlog is not received"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Measures one replica on all backlogs.
fn catch_up(
    contestant: &Contestant,
    variant: &Variant,
    source: &Server,
    (begin, backlogs): (&Place, &[Backlog]),
    run: &Run,
    progress: &Progress,
) -> Result<(Vec<ReplicaRate>, ServerInfo), String> {
    let own = contestant.label.clone();
    let name = format!("{own}, {}, {} threads", variant.mode, variant.threads);
    let mode = format!("--slave-parallel-mode={}", variant.mode);
    let threads = format!("--slave-parallel-threads={}", variant.threads);
    let options = ["--server-id=2", "--log-slave-updates", &mode, &threads];
    let mut server = Server::start(&contestant.with(&options).named(&name), &run.setup)?;
    progress.show(&format!("replica: {name} receives"));
    let all = backlogs.last().map_or(begin, |backlog| &backlog.end);
    let measured = (|| {
        let mut connection = Connection::open(&server.address, "").map_err(text)?;
        source.resume();
        attach(&mut connection, variant.kind, source, begin, all)?;
        source.pause();
        server.flushes.set_disk(variant.disk);
        let mut rates = Vec::new();
        for backlog in backlogs {
            progress.show(&format!("replica: {name}, {}", backlog.workload));
            let processor = || server.processor_seconds();
            let (before, began) = (processor(), Instant::now());
            ask(&mut connection, &backlog.end.start_until(variant.kind))?;
            await_applied(&mut connection, &backlog.end.gtid)?;
            let seconds = began.elapsed().as_secs_f64();
            ask(&mut connection, "STOP SLAVE SQL_THREAD")?;
            rates.push(ReplicaRate {
                server: own.clone(),
                mode: variant.mode.to_owned(),
                threads: variant.threads.into(),
                disk: variant.disk.name(),
                workload: backlog.workload.to_owned(),
                transactions: backlog.transactions,
                per_second: backlog.transactions as f64 / seconds,
                processor_us: (processor() - before) * 1e6 / backlog.transactions.max(1) as f64,
            });
            let rate = rates.last().map_or(0.0, |rate| rate.per_second);
            progress.say(&format!(
                "replica: {name}, {} disk, {}: {rate:.0}/s",
                variant.disk.name(),
                backlog.workload
            ));
        }
        Ok(rates)
    })();
    // Resume the source before a failure is reported: stopping a paused server would block.
    source.resume();
    let rates = measured.map_err(|error: String| server.complaint(&error))?;
    let version = server.version.strip_prefix("5.5.5-").unwrap_or(&server.version).to_owned();
    Ok((rates, ServerInfo { name: own, version }))
}

/// Measures a Cohort that replicates from a Cohort under load and then applies one large transaction.
fn follow_live(run: &Run, progress: &Progress) -> Result<ReplicaLive, String> {
    let source = start(Kind::Cohort, "live source", &["--server-id=1"], run)?;
    let options = ["--server-id=2", "--log-slave-updates", "--slave-parallel-threads=4"];
    let mut replica = start(Kind::Cohort, "live replica", &options, run)?;
    let measured = (|| {
        let mut on_source = tables::create_schema(&source.address).map_err(text)?;
        tables::prepare(&mut on_source, Schema::Sbtest, run.scale).map_err(text)?;
        let mut connection = Connection::open(&replica.address, "").map_err(text)?;
        let filled = Place::of(&mut on_source)?;
        attach(&mut connection, Kind::Cohort, &source, &filled, &filled)?;
        ask(&mut connection, "START SLAVE SQL_THREAD")?;
        progress.show("replica: live");
        let processor = Server::processor_seconds;
        let committed = |of: &mut Connection| number(of, "Binlog_commits");
        let (source_before, replica_before) = (processor(&source), processor(&replica));
        let commits_before = committed(&mut on_source)?;
        let mut lag_s_max = 0;
        let per_second = load(&source, "update_index", LIVE_CLIENTS, run, |event| {
            if let LoadEvent::Tick(_) = event {
                let seconds = status(&mut connection, SECONDS_BEHIND).unwrap_or_default();
                lag_s_max = lag_s_max.max(seconds.parse().unwrap_or(0));
            }
        })?;
        let began = Instant::now();
        let end = position(&mut on_source)?;
        await_applied(&mut connection, &end)?;
        let drained_s = began.elapsed().as_secs_f64();
        let commits = (committed(&mut on_source)? - commits_before).max(1) as f64;
        let source_us = (processor(&source) - source_before) * 1e6 / commits;
        let replica_us = (processor(&replica) - replica_before) * 1e6 / commits;
        let large = apply_large(&source, &replica, &mut connection, run, progress)?;
        Ok(ReplicaLive {
            per_second,
            lag_s_max,
            drained_s,
            source_us,
            replica_us,
            large_mib: large.mib,
            large_bytes_more: large.bytes_more,
            relay_mib_per_second: large.relay_mib_per_second,
        })
    })();
    measured.map_err(|error: String| replica.complaint(&error))
}

/// Cost of a large transaction on a replica.
struct LargeApplied {
    mib: u64,
    bytes_more: u64,
    relay_mib_per_second: f64,
}

/// Returns a counter of SHOW STATUS.
fn number(connection: &mut Connection, name: &str) -> Result<u64, String> {
    let rows = connection.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).map_err(text)?;
    Ok(rows.first().and_then(|row| row.get(1)?.as_ref()?.parse().ok()).unwrap_or(0))
}

/// Lets the replica receive a large transaction, and then apply it. Returns the speed of receiving, and the
/// maximum increase of memory other than cached pages.
fn apply_large(
    source: &Server,
    replica: &Server,
    connection: &mut Connection,
    run: &Run,
    progress: &Progress,
) -> Result<LargeApplied, String> {
    let mib = if run.repeats > 1 { LARGE_MIB } else { LARGE_MIB_QUICK };
    progress.show(&format!("replica: a transaction of {mib} MiB"));
    ask(connection, "STOP SLAVE")?;
    let mut large = Large::prepare(&source.address, mib).map_err(text)?;
    large.commit();
    if let Some(Err(error)) = large.finish() {
        return Err(text(error));
    }
    let mut on_source = Connection::open(&source.address, "").map_err(text)?;
    let end = position(&mut on_source)?;
    // The source writes its binary log file after the commit. Only the receiver must be measured.
    while number(&mut on_source, "Cohort_binlog_backlog_bytes")? > 0 {
        if interrupt::is_requested() {
            return Err("interrupted".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // In addition to the rows, the log contains the text of the statements.
    let received = |connection: &mut Connection| number(connection, "Cohort_replica_received_bytes");
    let (received_before, began) = (received(connection)?, Instant::now());
    ask(connection, "START SLAVE IO_THREAD")?;
    while status(connection, GTID_IO_POS)? != end {
        if began.elapsed() > PATIENCE || interrupt::is_requested() {
            return Err(trouble(connection, "the large transaction is not received"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let seconds = began.elapsed().as_secs_f64();
    let received_bytes = received(connection)? - received_before;
    let relay_mib_per_second = received_bytes as f64 / f64::from(1 << 20) / seconds;
    let beside_pages = |connection: &mut Connection| -> Result<u64, String> {
        let pages = number(connection, "Innodb_buffer_pool_pages_data")?;
        Ok(process::resident_bytes(replica.pid()).ok_or("is gone")?.saturating_sub(pages * PAGE_BYTES))
    };
    let before = beside_pages(connection)?;
    let mut most = before;
    ask(connection, "START SLAVE SQL_THREAD")?;
    let until = Instant::now() + PATIENCE;
    while ask(connection, &format!("SELECT MASTER_GTID_WAIT('{end}', 0.05)"))? != "0" {
        most = most.max(beside_pages(connection)?);
        if Instant::now() > until || interrupt::is_requested() {
            return Err(trouble(connection, "the large transaction is not applied"));
        }
    }
    Ok(LargeApplied { mib: mib.into(), bytes_more: most.saturating_sub(before), relay_mib_per_second })
}
