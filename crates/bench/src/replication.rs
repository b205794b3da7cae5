//! Cost and speed of replication for a source: the cost of a replica that follows, dumps from files, memory,
//! and commits that wait for a semi-synchronous MariaDB.
//!
//! Each server is measured alone. The first three measurements use our own reader, which applies nothing: a
//! full replica on the same processors would dominate the measurement. The last one uses a full MariaDB, the
//! same for each source.

use std::time::{Duration, Instant};

use crate::args::Run;
use crate::connection::{Connection, ConnectionError};
use crate::driver::{self, Load};
use crate::dump::{self, Follower, Place, Tally};
use crate::interrupt;
use crate::process;
use crate::results::{ReplicationResult, ServerInfo};
use crate::sample::Spread;
use crate::servers::{Contestant, Server};
use crate::tables::{self, SCHEMA};
use crate::workload::{self, Protocol, Schema};

const WORKLOAD: &str = "update_index";
const CLIENTS: usize = 64;
/// Number of concurrent dumps whose memory is measured.
const DUMPS: u32 = 50;
/// Server id of the first reader; each reader has its own.
const NUMBER: u32 = 1000;
/// Time after which a server's work at the start of the dumps is over.
const SETTLE: Duration = Duration::from_secs(2);
/// Minimum time for which dumps are repeated.
const READ_MIN: Duration = Duration::from_secs(2);
const LARGE_INSERTS: usize = 128;
const LARGE_ROWS: usize = 256;
const LARGE_ROW_BYTES: usize = 8 << 10;
/// Maximum time for the replica to connect or catch up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures one server.
pub fn measure(contestant: &Contestant, run: &Run) -> Result<(ReplicationResult, ServerInfo), String> {
    eprintln!("{}: replication", contestant.label);
    let mut server = Server::start(contestant, &run.setup)?;
    let version = server.version.strip_prefix("5.5.5-").unwrap_or(&server.version).to_owned();
    let mut result = ReplicationResult { server: contestant.label.clone(), ..Default::default() };
    let measured = asynchronous(&server, run, &mut result);
    measured.map_err(|error| server.complaint(&format!("replication: {error}")))?;
    drop(server);
    result.semi_sync_per_second = semi_sync(contestant, run)?;
    Ok((result, ServerInfo { name: contestant.label.clone(), version }))
}

fn text(error: ConnectionError) -> String {
    error.to_string()
}

/// Fills the tables. Returns a connection to their schema.
fn prepare(server: &Server, run: &Run) -> Result<Connection, ConnectionError> {
    let mut connection = tables::create_schema(&server.address)?;
    tables::prepare(&mut connection, Schema::Sbtest, run.scale)?;
    Ok(connection)
}

/// Runs the load. Returns the transactions per second.
fn load(server: &Server, run: &Run) -> Result<f64, String> {
    let load = Load {
        address: server.address.clone(),
        schema: SCHEMA.to_owned(),
        workload: workload::find(WORKLOAD).expect("listed"),
        protocol: Protocol::Prepared,
        clients: CLIENTS,
        threads: run.threads,
        scale: run.scale,
        warm: run.warm,
        measure: run.measure,
    };
    let outcome = driver::run(&load, |_| ())?;
    if interrupt::is_requested() {
        return Err("interrupted".to_owned());
    }
    Ok(outcome.latencies.count() as f64 / outcome.seconds)
}

fn median(values: Vec<f64>) -> f64 {
    Spread::of_values(values).map_or(0.0, |spread| spread.median)
}

/// Measures everything that needs no semi-synchronous replica.
fn asynchronous(server: &Server, run: &Run, result: &mut ReplicationResult) -> Result<(), String> {
    // First, before freed memory could be reused for the dumps.
    result.dump_bytes = memory(server)?;
    let mut connection = prepare(server, run).map_err(text)?;
    let small = Place::end(&mut connection).map_err(text)?;
    cost(server, run, &mut connection, result)?;
    let large = Place::end(&mut connection).map_err(text)?;
    let (tally, _, processor) = read(server, &small)?;
    result.event_bytes = tally.bytes as f64 / tally.events.max(1) as f64;
    result.events_per_core = tally.events as f64 / processor;
    write_large(&mut connection).map_err(text)?;
    let (tally, seconds, _) = read(server, &large)?;
    result.mib_per_second = tally.bytes as f64 / 1_048_576.0 / seconds;
    Ok(())
}

/// Measures the load with and without a reader, in turns.
fn cost(
    server: &Server,
    run: &Run,
    connection: &mut Connection,
    result: &mut ReplicationResult,
) -> Result<(), String> {
    let (mut alone, mut followed) = (Vec::new(), Vec::new());
    for repeat in 0..run.repeats {
        for turn in 0..2 {
            if (repeat + turn) % 2 == 0 {
                alone.push(load(server, run)?);
                continue;
            }
            let place = Place::end(connection).map_err(text)?;
            let follower = Follower::start(&server.address, NUMBER, &place).map_err(text)?;
            followed.push(load(server, run)?);
            if !follower.is_following() || follower.end() < 1 << 10 {
                return Err("the dump ended, or got nothing".to_owned());
            }
        }
    }
    result.kept = median(alone.iter().zip(&followed).map(|(alone, followed)| followed / alone).collect());
    (result.alone_per_second, result.followed_per_second) = (median(alone), median(followed));
    Ok(())
}

/// Dumps the log from a position, repeatedly. Returns the events received, the duration in seconds, and the
/// server's processor time.
fn read(server: &Server, place: &Place) -> Result<(Tally, f64, f64), String> {
    let processor = || server.processor_seconds();
    let mut sum = Tally::default();
    let (before, began) = (processor(), Instant::now());
    while began.elapsed() < READ_MIN {
        let tally = dump::read_all(&server.address, NUMBER, place).map_err(text)?;
        sum.events += tally.events;
        sum.bytes += tally.bytes;
    }
    let seconds = began.elapsed().as_secs_f64();
    // The kernel counts in hundredths of a second.
    Ok((sum, seconds, (processor() - before).max(0.01)))
}

/// Writes 256 MiB in rows of 8 KiB.
fn write_large(connection: &mut Connection) -> Result<(), ConnectionError> {
    connection.query(
        "CREATE TABLE large (id INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY, body MEDIUMTEXT NOT NULL)",
    )?;
    let row = format!("('{}')", "x".repeat(LARGE_ROW_BYTES));
    let insert = format!("INSERT INTO large (body) VALUES {}", vec![row; LARGE_ROWS].join(","));
    for _ in 0..LARGE_INSERTS {
        connection.query(&insert)?;
    }
    Ok(())
}

/// Returns the memory that a dump adds to the server once it has sent some events and waits for more.
fn memory(server: &Server) -> Result<f64, String> {
    let mut connection = Connection::open(&server.address, "").map_err(text)?;
    let place = Place::end(&mut connection).map_err(text)?;
    connection
        .query("CREATE TABLE test.few (id INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY)")
        .map_err(text)?;
    for _ in 0..100 {
        connection.query("INSERT INTO test.few () VALUES ()").map_err(text)?;
    }
    std::thread::sleep(SETTLE);
    let resident = || process::resident_bytes(server.pid()).ok_or("is gone");
    let before = resident()?;
    let dumps: Result<Vec<Follower>, ConnectionError> =
        (0..DUMPS).map(|number| Follower::start(&server.address, NUMBER + number, &place)).collect();
    let dumps = dumps.map_err(text)?;
    std::thread::sleep(SETTLE);
    let after = resident()?;
    if !dumps.iter().all(Follower::is_following) {
        return Err("a dump has ended".to_owned());
    }
    Ok(after.saturating_sub(before) as f64 / f64::from(DUMPS))
}

/// Runs the load on a source whose commits wait for a MariaDB (AFTER_SYNC).
fn semi_sync(contestant: &Contestant, run: &Run) -> Result<f64, String> {
    let mut source = Server::start(contestant, &run.setup)?;
    let replica = Contestant::parse("mariadb").expect("known").with(&[
        "--server-id=2",
        "--skip-log-bin",
        "--relay-log=relay",
        "--innodb-buffer-pool-size=128M",
        "--rpl-semi-sync-slave-enabled=1",
    ]);
    let mut replica = Server::start(&replica.named("replica"), &run.setup)?;
    let attached = attach(&source, &replica, run);
    let mut connection =
        attached.map_err(|error| replica.complaint(&format!("replica of {}: {error}", contestant.label)))?;
    let mut measured = Vec::new();
    for _ in 0..run.repeats {
        measured.push(load(&source, run).map_err(|error| source.complaint(&error))?);
    }
    let unanswered = status(&mut connection, "no_tx").map_err(text)?;
    if unanswered != "0" {
        return Err(source.complaint(&format!("{unanswered} transactions did not wait for the replica")));
    }
    Ok(median(measured))
}

/// Fills the source, attaches the replica, and waits until it has received everything and acknowledges.
fn attach(source: &Server, replica: &Server, run: &Run) -> Result<Connection, String> {
    let mut on_source = prepare(source, run).map_err(text)?;
    for (name, value) in [("wait_point", "'AFTER_SYNC'"), ("timeout", "60000"), ("enabled", "1")] {
        let sql = format!("SET GLOBAL rpl_semi_sync_master_{name} = {value}");
        on_source.query(&sql).map_err(text)?;
    }
    let mut on_replica = Connection::open(&replica.address, "").map_err(text)?;
    let change = format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='root', \
         master_connect_retry=1, master_use_gtid=slave_pos",
        source.port
    );
    on_replica.query(&change).map_err(text)?;
    on_replica.query("START SLAVE").map_err(text)?;
    let rows = on_source.query("SELECT @@gtid_binlog_pos").map_err(text)?;
    let position = rows.first().and_then(|row| row[0].clone()).unwrap_or_default();
    let wait = format!("SELECT MASTER_GTID_WAIT('{position}', {})", PATIENCE.as_secs());
    let rows = on_replica.query(&wait).map_err(text)?;
    let is_there = rows.first().is_some_and(|row| row[0].as_deref() == Some("0"));
    let end = Instant::now() + PATIENCE;
    while is_there && Instant::now() < end {
        if status(&mut on_source, "clients").map_err(text)? == "1"
            && status(&mut on_source, "status").map_err(text)? == "ON"
        {
            return Ok(on_source);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let rows = on_replica.query("SHOW SLAVE STATUS").map_err(text)?;
    let details: Vec<String> = rows.into_iter().flatten().flatten().filter(|cell| cell.len() > 30).collect();
    Err(format!("does not follow: {}", details.join("; ")))
}

fn status(connection: &mut Connection, name: &str) -> Result<String, ConnectionError> {
    let rows = connection.query(&format!("SHOW GLOBAL STATUS LIKE 'Rpl\\_semi\\_sync\\_master\\_{name}'"))?;
    Ok(rows.first().and_then(|row| row[1].clone()).unwrap_or_default())
}
