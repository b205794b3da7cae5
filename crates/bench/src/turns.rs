//! Measurements of servers that take turns: one is measured while the others are stopped.

use std::time::Duration;

use crate::connection::ConnectionError;
use crate::driver::{self, Load};
use crate::interrupt;
use crate::servers::{Contestant, Server, Setup};
use crate::tables::{self, SCHEMA};
use crate::workload::{self, Protocol, Scale, Schema};

pub fn text(error: ConnectionError) -> String {
    error.to_string()
}

pub fn start_as(label: &str, name: &str, options: &[&str], setup: &Setup) -> Result<Server, String> {
    let contestant = Contestant::parse(name).expect("a server").with(options);
    eprintln!("{label}: starting, filling tables");
    Server::start(&contestant.named(label), setup)
}

pub fn fill(mut server: Server, scale: Scale) -> Result<Server, String> {
    let done = tables::create_schema(&server.address)
        .and_then(|mut connection| tables::prepare(&mut connection, Schema::Sbtest, scale));
    done.map_err(|error| server.complaint(&format!("filling tables: {error}")))?;
    server.pause();
    Ok(server)
}

/// Result of one measurement.
#[derive(Clone, Copy)]
pub struct Rate {
    pub per_second: f64,
    pub p99_ms: f64,
    /// Processor time of the server per transaction.
    pub processor_us: f64,
}

/// A load of sysbench's tables.
pub struct Loaded {
    pub workload: &'static str,
    pub clients: usize,
    pub scale: Scale,
    pub measure: Duration,
}

impl Loaded {
    pub fn on(&self, server: &Server) -> Result<Rate, String> {
        self.lasting(server, self.measure)
    }

    pub fn lasting(&self, server: &Server, measure: Duration) -> Result<Rate, String> {
        self.measure_with(server, measure, || {})
    }

    /// Measures, and calls `begin` when the measurement begins.
    pub fn measure_with(
        &self,
        server: &Server,
        measure: Duration,
        mut begin: impl FnMut(),
    ) -> Result<Rate, String> {
        let workload = workload::find(self.workload).expect("parts name workloads that exist");
        let load = Load {
            address: server.address.clone(),
            schema: SCHEMA.to_owned(),
            workload,
            protocol: workload.protocol(Protocol::Prepared),
            clients: self.clients,
            threads: 1,
            scale: self.scale,
            warm: Duration::from_secs(1),
            measure,
        };
        let used = || server.processor_seconds();
        let (mut before, mut after) = (0.0, 0.0);
        let outcome = driver::run(&load, |event| match event {
            driver::LoadEvent::MeasureBegins => {
                before = used();
                begin();
            }
            driver::LoadEvent::Tick(_) => {}
            driver::LoadEvent::MeasureEnds => after = used(),
        })?;
        let transactions = outcome.latencies.count().max(1) as f64;
        Ok(Rate {
            per_second: transactions / outcome.seconds,
            p99_ms: outcome.latencies.percentile(0.99) as f64 / 1e6,
            processor_us: (after - before) * 1e6 / transactions,
        })
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub fn median_rate(rates: &[Rate]) -> Rate {
    let of = |field: fn(&Rate) -> f64| median(rates.iter().map(field).collect());
    Rate {
        per_second: of(|rate| rate.per_second),
        p99_ms: of(|rate| rate.p99_ms),
        processor_us: of(|rate| rate.processor_us),
    }
}

/// Measures stopped servers in turns, in alternating order.
pub fn turns<T>(
    servers: &mut [Server],
    repeats: usize,
    mut measure: impl FnMut(&mut Server) -> Result<T, String>,
) -> Result<Vec<Vec<T>>, String> {
    let mut found: Vec<Vec<T>> = servers.iter().map(|_| Vec::new()).collect();
    for repeat in 0..repeats {
        let mut order: Vec<usize> = (0..servers.len()).collect();
        if repeat % 2 == 1 {
            order.reverse();
        }
        for at in order {
            servers[at].resume();
            let one = measure(&mut servers[at]);
            found[at].push(one.map_err(|error| servers[at].complaint(&error))?);
            servers[at].pause();
            if interrupt::is_requested() {
                return Err("interrupted".to_owned());
            }
        }
    }
    Ok(found)
}
