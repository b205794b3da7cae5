//! `cohort-bench demo`: starts the server, runs durable writes for ten seconds with live figures, and leaves
//! it running in the foreground.
//!
//! All figures come from the server over the connection: commits, groups and flushes are its status counters.
//! The demo thus shows what an operator sees.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Address, Connection, ConnectionError};
use crate::driver::{self, Load, LoadEvent};
use crate::interrupt;
use crate::process;
use crate::tables;
use crate::workload::{DEMO, Keys, Protocol, Scale, Schema};

const CLIENTS: usize = 64;
const SCALE: Scale = Scale { tables: 1, rows: 10_000, keys: Keys::Even };
const MEASURE: Duration = Duration::from_secs(10);
const WARM: Duration = Duration::from_millis(500);
/// Includes the time to read the log at a start after a crash.
const START_TIMEOUT: Duration = Duration::from_secs(120);

pub struct Demo {
    pub server: PathBuf,
    pub port: u16,
    pub arguments: Vec<String>,
}

pub fn run(demo: &Demo) -> Result<(), String> {
    let address = Address::Tcp((Ipv4Addr::LOCALHOST, demo.port).into());
    let mut child = match Connection::open(&address, "") {
        Ok(_) => {
            println!("A server already answers on port {}; the demo uses it.", demo.port);
            None
        }
        Err(_) => Some(start(demo, &address)?),
    };
    let shown = load(&address);
    if let (Err(error), Some(child)) = (&shown, &mut child) {
        let ended = child.try_wait().ok().flatten();
        process::signal(child.id(), libc::SIGTERM);
        let _ = child.wait();
        let death = ended.map(|status| format!(" (the server ended: {status})")).unwrap_or_default();
        return Err(format!("{error}{death}"));
    }
    shown?;
    match child {
        Some(child) => foreground(demo, child),
        None => Ok(()),
    }
}

fn start(demo: &Demo, address: &Address) -> Result<Child, String> {
    let mut child = Command::new(&demo.server)
        .args(&demo.arguments)
        .spawn()
        .map_err(|error| format!("{} does not start: {error}", demo.server.display()))?;
    let end = Instant::now() + START_TIMEOUT;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("{} did not start: {status}", demo.server.display()));
        }
        match Connection::open(address, "") {
            Ok(_) => return Ok(child),
            Err(_) if Instant::now() < end && !interrupt::is_requested() => {
                thread::sleep(Duration::from_millis(50));
            }
            Err(error) => {
                process::signal(child.id(), libc::SIGTERM);
                let _ = child.wait();
                return Err(format!("the server does not answer on {address}: {error}"));
            }
        }
    }
}

/// The server's counters at one time.
struct Reading {
    at: Instant,
    values: HashMap<String, f64>,
}

/// Figures for the time between two readings.
struct Interval {
    commits_per_second: f64,
    group_size: f64,
    /// `None` if the server does not count its flushes.
    flushes_per_commit: Option<f64>,
    flush_us: Option<f64>,
}

impl Reading {
    fn take(connection: &mut Connection) -> Result<Reading, ConnectionError> {
        let rows = connection.query("SHOW GLOBAL STATUS")?;
        let number = |row: &[Option<String>]| Some((row[0].clone()?, row[1].as_ref()?.parse().ok()?));
        Ok(Reading { at: Instant::now(), values: rows.iter().filter_map(|row| number(row)).collect() })
    }

    fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    fn since(&self, before: &Reading) -> Interval {
        let delta = |name: &str| Some(self.get(name)? - before.get(name)?);
        let commits = delta("Binlog_commits").unwrap_or(0.0);
        let groups = delta("Binlog_group_commits").unwrap_or(0.0);
        let flushes = delta("Cohort_log_syncs");
        let flush_us = delta("Cohort_flush_us_total").map(|us| us / groups.max(1.0));
        Interval {
            commits_per_second: commits / (self.at - before.at).as_secs_f64(),
            group_size: commits / groups.max(1.0),
            flushes_per_commit: flushes.map(|flushes| flushes / commits.max(1.0)),
            flush_us,
        }
    }
}

impl Interval {
    fn flushes_text(&self) -> String {
        self.flushes_per_commit.map_or("-".to_owned(), |flushes| format!("{flushes:.3}"))
    }

    fn flush_text(&self) -> String {
        self.flush_us.map_or("-".to_owned(), |us| format!("{us:.0} us"))
    }
}

fn load(address: &Address) -> Result<(), String> {
    let text = |error: ConnectionError| error.to_string();
    Connection::open(address, "")
        .and_then(|mut connection| connection.query("CREATE DATABASE IF NOT EXISTS test"))
        .map_err(text)?;
    let mut connection = Connection::open(address, "test").map_err(text)?;
    tables::prepare(&mut connection, Schema::Demo, SCALE).map_err(text)?;
    println!(
        "\n{CLIENTS} connections, each: {}, for {} seconds; every commit is in the binary log and on disk before the answer.\n",
        DEMO.about,
        MEASURE.as_secs()
    );
    let load = Load {
        address: address.clone(),
        schema: "test".to_owned(),
        workload: &DEMO,
        protocol: Protocol::Prepared,
        clients: CLIENTS,
        threads: 1,
        scale: SCALE,
        warm: WARM,
        measure: MEASURE,
    };
    let mut readings = Vec::new();
    let mut failed = None;
    let outcome = driver::run(&load, |event| match Reading::take(&mut connection) {
        Ok(reading) => {
            if let (LoadEvent::Tick(_), Some(last)) = (&event, readings.last()) {
                live(&reading.since(last), (reading.at - first_at(&readings)).as_secs_f64());
            }
            readings.push(reading);
        }
        Err(error) => failed = Some(error.to_string()),
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if interrupt::is_requested() {
        return Ok(());
    }
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return Ok(()) };
    table(&last.since(first), &outcome);
    Ok(())
}

fn first_at(readings: &[Reading]) -> Instant {
    readings.first().map_or_else(Instant::now, |reading| reading.at)
}

fn live(interval: &Interval, seconds: f64) {
    println!(
        "{seconds:5.1} s  {:8.0} commits/s   group {:5.1}   {} flushes per commit   flush {}",
        interval.commits_per_second,
        interval.group_size,
        interval.flushes_text(),
        interval.flush_text()
    );
}

fn table(interval: &Interval, outcome: &driver::Outcome) {
    let ms = |p: f64| outcome.latencies.percentile(p) as f64 / 1e6 / DEMO.steps.len() as f64;
    println!();
    for (name, value) in [
        ("commits", format!("{}", outcome.latencies.count() * DEMO.steps.len() as u64)),
        ("commits/s", format!("{:.0}", interval.commits_per_second)),
        ("average group", format!("{:.1} commits", interval.group_size)),
        ("flushes per commit", interval.flushes_text()),
        ("average flush", interval.flush_text()),
        ("latency of a commit, median", format!("{:.2} ms", ms(0.5))),
        ("latency of a commit, 99 of 100", format!("{:.2} ms", ms(0.99))),
    ] {
        println!("  {name:32} {value:>16}");
    }
}

/// Waits until the user or the server ends it.
fn foreground(demo: &Demo, mut child: Child) -> Result<(), String> {
    if !interrupt::is_requested() {
        println!(
            "\nThe server keeps running; the rows are in table test.cohort_demo.\n\
             \n  connect:  mariadb --host=127.0.0.1 --port={} --user=root test\
             \n  stop:     Ctrl-C\n",
            demo.port
        );
    }
    while !interrupt::is_requested() {
        if let Ok(Some(status)) = child.try_wait() {
            return if status.success() { Ok(()) } else { Err(format!("the server ended: {status}")) };
        }
        thread::sleep(Duration::from_millis(100));
    }
    println!("stopping the server");
    process::signal(child.id(), libc::SIGTERM);
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the server ended: {status}")),
        Err(error) => Err(format!("the server cannot be waited for: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, values: &[(&str, f64)]) -> Reading {
        Reading { at, values: values.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect() }
    }

    #[test]
    fn an_interval_is_the_difference_of_two_readings() {
        let start = Instant::now();
        let before = reading(start, &[("Binlog_commits", 10.0), ("Binlog_group_commits", 2.0)]);
        let after = reading(
            start + Duration::from_secs(2),
            &[("Binlog_commits", 1010.0), ("Binlog_group_commits", 52.0), ("Cohort_log_syncs", 99.0)],
        );
        let interval = after.since(&before);
        assert_eq!(interval.commits_per_second, 500.0);
        assert_eq!(interval.group_size, 20.0);
        assert_eq!(interval.flushes_per_commit, None, "not known before");
        assert_eq!(interval.flush_us, None);
    }
}
