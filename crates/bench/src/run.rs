//! `cohort-bench run`: measures servers side by side.
//!
//! Each case is repeated. Within a repetition the servers take turns: one is measured while the others are
//! stopped. The order alternates between repetitions, so that slow changes of the machine affect all servers
//! equally. The first failure of a server ends the run without results, because a ratio to a failing server
//! is meaningless.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use crate::args::Run;
use crate::certificate::Certificate;
use crate::connection::{Address, Connection, ConnectionError};
use crate::disk::{self, Disk};
use crate::driver::{self, Load, LoadEvent};
use crate::interrupt;
use crate::large::Large;
use crate::memory;
use crate::pipeline;
use crate::plan::{Case, Link};
use crate::progress::Progress;
use crate::recovery;
use crate::replica;
use crate::replication;
use crate::report;
use crate::results::{CaseResult, Machine, Results, ServerInfo, Settings};
use crate::sample::{Counters, Sample, Spread};
use crate::servers::{Contestant, Kind, Server};
use crate::tables::{self, SCHEMA};
use crate::workload::{self, Keys, Protocol, Scale};

/// On a slow disk, a measurement and its warm-up take at least the time of this many flushes.
const FLUSHES_MIN: u32 = 60;
/// Workloads that age the tables, one after the other, each for twice the length of a measurement.
const AGEING: &[&str] = &["update_index", "insert", "write_only"];
const AGEING_CLIENTS: usize = 16;

/// A started server with a connection for its counters.
struct Contender {
    kind: Kind,
    server: Server,
    connection: Connection,
}

/// Guard that removes the folder of all servers.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} could not be removed: {error}", self.0.display());
        }
    }
}

pub fn run(run: &Run) -> Result<Results, String> {
    let dir = &run.setup.dir;
    std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let _folder = Folder(dir.clone());
    if disk::is_in_memory(dir) {
        return Err(format!(
            "{} is in memory, where nothing is durable: choose --dir on a disk",
            dir.display()
        ));
    }
    let mut results = Results {
        machine: machine(run)?,
        settings: Settings {
            seconds: run.measure.as_secs_f64(),
            warm_seconds: run.warm.as_secs_f64(),
            repeats: run.repeats as u64,
            tables: run.scale.tables.into(),
            rows: run.scale.rows.into(),
            transport: if run.setup.tcp { "TCP" } else { "a Unix socket" }.to_owned(),
        },
        ..Results::default()
    };
    let mut progress = Progress::new(run.steps());
    for (threads, disk) in &run.agenda.pipeline {
        progress.show(&format!("bare pipeline, {threads} threads"));
        results.pipeline.push(pipeline::measure(dir, *threads, *disk, run.measure)?);
        progress.step();
        if interrupt::is_requested() {
            return Err("interrupted".to_owned());
        }
    }
    if run.agenda.recovery {
        for contestant in run.contestants.iter().filter(|contestant| contestant.kind == Kind::Cohort) {
            results.recovery.extend(recovery::measure(contestant, &run.setup, run.measure)?);
        }
    }
    if run.agenda.memory {
        for contestant in run.mysqls() {
            let (memory, info) = memory::measure(contestant, &run.setup)?;
            results.memory.push(memory);
            results.servers.push(info);
        }
    }
    if run.agenda.replication {
        results.servers.clear();
        for contestant in run.mysqls() {
            let (measured, info) = replication::measure(contestant, run)?;
            results.replication.push(measured);
            results.servers.push(info);
        }
    }
    if run.agenda.replica {
        (results.replica, results.servers) = replica::measure(run)?;
    }
    if !run.agenda.cases.is_empty() {
        let mut contenders = Vec::new();
        let is_encrypted = run.agenda.cases.iter().any(|case| case.link == Link::Tls);
        let certificate = is_encrypted.then(|| Certificate::make(dir)).transpose()?;
        let options = certificate.map_or(Vec::new(), |certificate| certificate.options().to_vec());
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        for contestant in &run.contestants {
            contenders.push(prepare(&contestant.with(&options), run, &progress)?);
        }
        results.servers = contenders.iter().map(Contender::info).collect();
        for (number, case) in run.agenda.cases.iter().enumerate() {
            let title = format!(
                "[{:2}/{}] {} {}, {} clients, {} disk",
                number + 1,
                run.agenda.cases.len(),
                case.name(),
                case.protocol.name(),
                case.clients,
                case.disk.name()
            );
            let result = measure_case(run, case, &mut contenders, &title, &mut progress)?;
            results.cases.push(result);
            say_case(&title, &results, &progress);
        }
    }
    Ok(results)
}

impl Run {
    /// Returns all contestants except PostgreSQL, for measurements that need more than shared SQL.
    fn mysqls(&self) -> impl Iterator<Item = &Contestant> {
        self.contestants.iter().filter(|contestant| contestant.kind != Kind::Postgres)
    }

    /// Returns the total number of measurements.
    fn steps(&self) -> usize {
        let of = |case: &Case| {
            let servers = self.contestants.iter().filter(|contestant| case.has(contestant.kind)).count();
            servers * self.repeats.min(case.repeats_max)
        };
        self.agenda.pipeline.len() + self.agenda.cases.iter().map(of).sum::<usize>()
    }
}

fn machine(run: &Run) -> Result<Machine, String> {
    let dir = &run.setup.dir;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(Machine {
        processors: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
        kernel: kernel.trim().split('-').next().unwrap_or_default().to_owned(),
        flush: disk::flush_times(dir, 2000).map_err(|error| format!("{}: {error}", dir.display()))?,
    })
}

impl Contender {
    fn info(&self) -> ServerInfo {
        let version = self.server.version.strip_prefix("5.5.5-").unwrap_or(&self.server.version);
        ServerInfo { name: self.server.label.clone(), version: version.to_owned() }
    }

    fn complaint(&mut self, error: &str) -> String {
        self.server.complaint(error)
    }
}

/// Starts a server, fills its tables, and ages them if the contestant says so. The server is then stopped
/// until its turn.
fn prepare(contestant: &Contestant, run: &Run, progress: &Progress) -> Result<Contender, String> {
    eprintln!("{}: starting, filling tables", contestant.label);
    let mut server = Server::start(contestant, &run.setup)?;
    let mut schemas: Vec<_> = run.agenda.cases.iter().map(|case| case.workload.schema).collect();
    schemas.dedup();
    let fill = || -> Result<Connection, ConnectionError> {
        let mut connection = tables::create_schema(&server.address)?;
        for schema in &schemas {
            tables::prepare(&mut connection, *schema, run.scale)?;
        }
        Ok(connection)
    };
    let filled = fill();
    let connection = filled.map_err(|error| server.complaint(&format!("filling tables: {error}")))?;
    if !server.flushes.is_connected() {
        return Err(server.complaint("its flushes cannot be counted: the preloaded library saw none"));
    }
    if contestant.is_aged {
        age(run, &server, progress).map_err(|error| server.complaint(&format!("ageing tables: {error}")))?;
    }
    server.pause();
    Ok(Contender { kind: contestant.kind, server, connection })
}

fn measure_case(
    run: &Run,
    case: &Case,
    contenders: &mut [Contender],
    title: &str,
    progress: &mut Progress,
) -> Result<CaseResult, String> {
    let mut samples = vec![Vec::new(); contenders.len()];
    let repeats = run.repeats.min(case.repeats_max);
    for repeat in 0..repeats {
        let mut order: Vec<usize> =
            (0..contenders.len()).filter(|index| case.has(contenders[*index].kind)).collect();
        if repeat % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let contender = &mut contenders[index];
            let name = contender.server.label.clone();
            let label = format!("{title}: {name} {}/{repeats}", repeat + 1);
            contender.server.resume();
            contender.server.flushes.set_disk(case.disk);
            let sample = measure(run, case, contender, &label, progress);
            contender.server.flushes.set_disk(Disk::REAL);
            if interrupt::is_requested() {
                return Err("interrupted".to_owned());
            }
            samples[index].push(sample.map_err(|error| {
                progress.clear();
                contender.complaint(&format!("{}, {} clients: {error}", case.name(), case.clients))
            })?);
            contender.server.pause();
            progress.step();
        }
    }
    Ok(CaseResult {
        workload: case.name(),
        clients: case.clients as u64,
        disk: case.disk.name(),
        protocol: case.protocol.name().to_owned(),
        samples,
    })
}

/// Measures with the settings of the case's variant, and resets them afterwards.
fn measure(
    run: &Run,
    case: &Case,
    contender: &mut Contender,
    label: &str,
    progress: &Progress,
) -> Result<Sample, String> {
    let Some(variant) = case.variant else { return measure_as_set(run, case, contender, label, progress) };
    let set = |contender: &mut Contender, sql: &str| {
        contender.connection.query(sql).map(drop).map_err(|error| format!("{sql}: {error}"))
    };
    set(contender, variant.set)?;
    let sample = measure_as_set(run, case, contender, label, progress)?;
    set(contender, variant.reset)?;
    Ok(sample)
}

/// Writes to the tables like a server in use.
fn age(run: &Run, server: &Server, progress: &Progress) -> Result<(), String> {
    for name in AGEING {
        let workload = workload::find(name).expect("ageing names workloads that exist");
        let load = Load {
            address: server.address.clone(),
            schema: SCHEMA.to_owned(),
            workload,
            protocol: workload.protocol(Protocol::Prepared),
            clients: AGEING_CLIENTS,
            threads: run.threads,
            scale: Scale { keys: Keys::Skewed, ..run.scale },
            warm: Duration::ZERO,
            measure: run.measure * 2,
        };
        driver::run(&load, |event| {
            if let LoadEvent::Tick(done) = event {
                progress.show(&format!("{}, ageing by {name}, {done} transactions", server.label));
            }
        })?;
    }
    Ok(())
}

fn measure_as_set(
    run: &Run,
    case: &Case,
    contender: &mut Contender,
    label: &str,
    progress: &Progress,
) -> Result<Sample, String> {
    let load = Load {
        address: match case.link {
            Link::AsSet => contender.server.address.clone(),
            Link::Tcp => Address::Tcp((Ipv4Addr::LOCALHOST, contender.server.port).into()),
            Link::Tls => Address::Tls((Ipv4Addr::LOCALHOST, contender.server.port).into()),
        },
        schema: SCHEMA.to_owned(),
        workload: case.workload,
        protocol: case.protocol,
        clients: case.clients,
        threads: run.threads,
        scale: Scale { keys: case.keys, ..run.scale },
        warm: run.warm.max(case.disk.flush * FLUSHES_MIN),
        measure: run.measure.max(case.disk.flush * FLUSHES_MIN),
    };
    let text = |error: ConnectionError| error.to_string();
    let mut idle = Vec::new();
    for _ in 0..run.idle + case.idle {
        idle.push(Connection::open(&load.address, SCHEMA).map_err(text)?);
    }
    let mut large = match case.large_mib {
        Some(mib) => Some(Large::prepare(&load.address, mib).map_err(text)?),
        None => None,
    };
    let (mut before, mut after) = (Ok(Counters::default()), Ok(Counters::default()));
    let outcome = driver::run(&load, |event| match event {
        LoadEvent::MeasureBegins => before = Counters::read(&contender.server, &mut contender.connection),
        LoadEvent::Tick(done) => {
            large.iter_mut().for_each(Large::commit);
            progress.show(&format!("{label}, {done} transactions"));
        }
        LoadEvent::MeasureEnds => after = Counters::read(&contender.server, &mut contender.connection),
    })?;
    if let Some(took) = large.and_then(Large::finish) {
        let took = took.map_err(|error| format!("the large transaction: {error}"))?;
        progress.say(&format!("{label}: the large transaction committed in {:.2} s", took.as_secs_f64()));
        // Remove what the transaction has written, so that it does not affect the next case.
        contender.connection.query("DROP TABLE large").map_err(text)?;
    }
    let sample = Sample::new(&outcome, &before.map_err(text)?, &after.map_err(text)?);
    if outcome.latencies.count() == 0 {
        return Err("no transaction ended within the measurement".to_owned());
    }
    Ok(sample)
}

fn say_case(title: &str, results: &Results, progress: &Progress) {
    let Some(case) = results.cases.last() else { return };
    let names: Vec<&str> = results.servers.iter().map(|server| server.name.as_str()).collect();
    let mut line = format!("{title}:");
    for (name, samples) in names.iter().zip(&case.samples) {
        if let Some(spread) = Spread::of(samples, |s| Some(s.per_second)) {
            line.push_str(&format!(
                "  {name} {:.0}/s ({:.0}..{:.0})",
                spread.median, spread.low, spread.high
            ));
        }
    }
    if let Some(ratio) = report::ratio(&names, case) {
        line.push_str(&format!("  ratio {ratio:.2}"));
    }
    progress.say(&line);
}
