//! Results of a run, and their JSON format.

use serde_json::{Value, json};

use crate::disk::FlushTimes;
use crate::sample::Sample;

/// Results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    pub machine: Machine,
    pub settings: Settings,
    /// In the order of the columns.
    pub servers: Vec<ServerInfo>,
    pub cases: Vec<CaseResult>,
    pub memory: Vec<Memory>,
    pub pipeline: Vec<PipelineResult>,
    pub recovery: Vec<RecoveryResult>,
    pub replication: Vec<ReplicationResult>,
    pub replica: ReplicaResults,
}

/// The machine of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    pub processors: u64,
    pub kernel: String,
    /// Measured without a server.
    pub flush: FlushTimes,
}

/// Settings that all cases share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub seconds: f64,
    pub warm_seconds: f64,
    pub repeats: u64,
    pub tables: u64,
    pub rows: u64,
    pub transport: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
}

/// Result of a workload with a number of clients on one disk, for each server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseResult {
    pub workload: String,
    pub clients: u64,
    pub disk: String,
    pub protocol: String,
    /// By server, in the order of [`Results::servers`].
    pub samples: Vec<Vec<Sample>>,
}

impl CaseResult {
    fn is_of(&self, other: &CaseResult) -> bool {
        (&self.workload, self.clients, &self.disk, &self.protocol)
            == (&other.workload, other.clients, &other.disk, &other.protocol)
    }
}

/// Resident memory of a server with default sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub server: String,
    pub idle_bytes: u64,
    pub connections: u64,
    pub connected_bytes: u64,
}

/// Result of the commit pipeline without SQL.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PipelineResult {
    pub threads: u64,
    pub disk: String,
    /// Durable transactions.
    pub per_second: f64,
    pub group_size: f64,
    pub flush_us: f64,
}

/// Result of a start after a crash.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoveryResult {
    /// Description of the log's contents.
    pub load: String,
    pub transactions: u64,
    pub log_bytes: u64,
    /// Duration from opening the log until its last record is replayed.
    pub seconds: f64,
}

/// Cost and speed of replication for one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicationResult {
    pub server: String,
    /// Updates of 64 clients, without a replica and with one that reads.
    pub alone_per_second: f64,
    pub followed_per_second: f64,
    /// `followed_per_second` divided by `alone_per_second`: median of the repetitions.
    pub kept: f64,
    /// A dump of small events from files: events by processor time of the server, and their average size.
    pub events_per_core: f64,
    pub event_bytes: f64,
    /// Speed of a dump of large events from files.
    pub mib_per_second: f64,
    /// Memory that a waiting dump adds.
    pub dump_bytes: f64,
    /// Updates of 64 clients that wait for a MariaDB (AFTER_SYNC).
    pub semi_sync_per_second: f64,
}

/// Apply speed of replicas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaResults {
    pub rates: Vec<ReplicaRate>,
    /// Measured for Cohort only.
    pub live: Option<ReplicaLive>,
}

/// Result of one backlog in one parallel mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaRate {
    pub server: String,
    pub mode: String,
    pub threads: u64,
    pub disk: String,
    pub workload: String,
    pub transactions: u64,
    pub per_second: f64,
    /// Processor time per transaction.
    pub processor_us: f64,
}

/// Result of a replica that follows a source under load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaLive {
    /// Rate of the source.
    pub per_second: f64,
    pub lag_s_max: u64,
    /// Duration from the end of the load until everything is applied.
    pub drained_s: f64,
    /// Processor time per transaction, from the start of the load until everything is applied.
    pub source_us: f64,
    pub replica_us: f64,
    pub large_mib: u64,
    /// Maximum increase of memory while the large transaction was received and applied.
    pub large_bytes_more: u64,
    /// Speed of receiving it.
    pub relay_mib_per_second: f64,
}

impl RecoveryResult {
    pub fn mib(&self) -> f64 {
        self.log_bytes as f64 / 1_048_576.0
    }

    pub fn mib_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.mib() / self.seconds)
    }
}

impl Results {
    /// Adds the repetitions of another run of the same servers with the same settings, so that medians are
    /// computed over all of them. The flush times are averaged, weighted by repetitions. Other measurements
    /// that a run makes once are not changed.
    pub fn pool(&mut self, other: Results) -> Result<(), String> {
        let settings = |of: &Results| Settings { repeats: 0, ..of.settings.clone() };
        if self.servers != other.servers || settings(self) != settings(&other) {
            return Err("other servers or other settings".to_owned());
        }
        let (own, more) = (self.settings.repeats as f64, other.settings.repeats as f64);
        let mean = |a: f64, b: f64| (a * own + b * more) / (own + more);
        let (flush, others) = (&mut self.machine.flush, &other.machine.flush);
        flush.bare_us = mean(flush.bare_us, others.bare_us);
        flush.asked_us = mean(flush.asked_us, others.asked_us);
        self.settings.repeats += other.settings.repeats;
        for case in other.cases {
            let same = self.cases.iter_mut().find(|own| own.is_of(&case));
            match same {
                Some(own) => {
                    own.samples.iter_mut().zip(case.samples).for_each(|(own, more)| own.extend(more))
                }
                None => self.cases.push(case),
            }
        }
        Ok(())
    }

    /// Returns the minimum and maximum number of repetitions of a case, over the servers that ran it.
    pub fn repeats(&self) -> (usize, usize) {
        let counts = || self.cases.iter().flat_map(|case| &case.samples).map(Vec::len).filter(|n| *n > 0);
        (counts().min().unwrap_or(0), counts().max().unwrap_or(0))
    }

    pub fn to_json(&self) -> Value {
        let case = |case: &CaseResult| {
            let samples: Vec<Vec<Value>> =
                case.samples.iter().map(|all| all.iter().map(Sample::to_json).collect()).collect();
            json!({
                "workload": case.workload, "clients": case.clients, "disk": case.disk,
                "protocol": case.protocol, "samples": samples,
            })
        };
        let memory = |memory: &Memory| {
            json!({
                "server": memory.server, "idle_bytes": memory.idle_bytes,
                "connections": memory.connections, "connected_bytes": memory.connected_bytes,
            })
        };
        let pipeline = |of: &PipelineResult| {
            json!({
                "threads": of.threads, "disk": of.disk, "per_second": of.per_second,
                "group_size": of.group_size, "flush_us": of.flush_us,
            })
        };
        let recovery = |of: &RecoveryResult| {
            json!({
                "load": of.load, "transactions": of.transactions, "log_bytes": of.log_bytes,
                "seconds": of.seconds,
            })
        };
        let replication = |of: &ReplicationResult| {
            json!({
                "server": of.server, "alone_per_second": of.alone_per_second,
                "followed_per_second": of.followed_per_second, "kept": of.kept,
                "events_per_core": of.events_per_core, "event_bytes": of.event_bytes,
                "mib_per_second": of.mib_per_second, "dump_bytes": of.dump_bytes,
                "semi_sync_per_second": of.semi_sync_per_second,
            })
        };
        let rate = |of: &ReplicaRate| {
            json!({
                "server": of.server, "mode": of.mode, "threads": of.threads, "disk": of.disk,
                "workload": of.workload, "transactions": of.transactions, "per_second": of.per_second,
                "processor_us": of.processor_us,
            })
        };
        let live = |of: &ReplicaLive| {
            json!({
                "per_second": of.per_second, "lag_s_max": of.lag_s_max, "drained_s": of.drained_s,
                "source_us": of.source_us, "replica_us": of.replica_us,
                "large_mib": of.large_mib, "large_bytes_more": of.large_bytes_more,
                "relay_mib_per_second": of.relay_mib_per_second,
            })
        };
        let server = |server: &ServerInfo| json!({ "name": server.name, "version": server.version });
        json!({
            "machine": {
                "processors": self.machine.processors, "kernel": self.machine.kernel,
                "flush_us": self.machine.flush.bare_us, "asked_flush_us": self.machine.flush.asked_us,
            },
            "settings": {
                "seconds": self.settings.seconds, "warm_seconds": self.settings.warm_seconds,
                "repeats": self.settings.repeats, "tables": self.settings.tables, "rows": self.settings.rows,
                "transport": self.settings.transport,
            },
            "servers": self.servers.iter().map(server).collect::<Vec<_>>(),
            "cases": self.cases.iter().map(case).collect::<Vec<_>>(),
            "memory": self.memory.iter().map(memory).collect::<Vec<_>>(),
            "pipeline": self.pipeline.iter().map(pipeline).collect::<Vec<_>>(),
            "recovery": self.recovery.iter().map(recovery).collect::<Vec<_>>(),
            "replication": self.replication.iter().map(replication).collect::<Vec<_>>(),
            "replica_rates": self.replica.rates.iter().map(rate).collect::<Vec<_>>(),
            "replica_live": self.replica.live.as_ref().map(live),
        })
    }

    /// Parses a document of [`Results::to_json`]. Returns `None` if it is not one.
    pub fn from_json(value: &Value) -> Option<Results> {
        let (machine, settings) = (value.get("machine")?, value.get("settings")?);
        Some(Results {
            machine: Machine {
                processors: machine.get("processors")?.as_u64()?,
                kernel: text(machine, "kernel")?,
                flush: FlushTimes {
                    bare_us: machine.get("flush_us")?.as_f64()?,
                    asked_us: machine.get("asked_flush_us")?.as_f64()?,
                },
            },
            settings: Settings {
                seconds: settings.get("seconds")?.as_f64()?,
                warm_seconds: settings.get("warm_seconds")?.as_f64()?,
                repeats: settings.get("repeats")?.as_u64()?,
                tables: settings.get("tables")?.as_u64()?,
                rows: settings.get("rows")?.as_u64()?,
                transport: text(settings, "transport")?,
            },
            servers: list(value, "servers", |server| {
                Some(ServerInfo { name: text(server, "name")?, version: text(server, "version")? })
            })?,
            cases: list(value, "cases", case_from_json)?,
            memory: list(value, "memory", |memory| {
                Some(Memory {
                    server: text(memory, "server")?,
                    idle_bytes: memory.get("idle_bytes")?.as_u64()?,
                    connections: memory.get("connections")?.as_u64()?,
                    connected_bytes: memory.get("connected_bytes")?.as_u64()?,
                })
            })?,
            pipeline: list(value, "pipeline", |of| {
                Some(PipelineResult {
                    threads: of.get("threads")?.as_u64()?,
                    disk: text(of, "disk")?,
                    per_second: of.get("per_second")?.as_f64()?,
                    group_size: of.get("group_size")?.as_f64()?,
                    flush_us: of.get("flush_us")?.as_f64()?,
                })
            })
            .unwrap_or_default(),
            recovery: list(value, "recovery", |of| {
                Some(RecoveryResult {
                    load: text(of, "load")?,
                    transactions: of.get("transactions")?.as_u64()?,
                    log_bytes: of.get("log_bytes")?.as_u64()?,
                    seconds: of.get("seconds")?.as_f64()?,
                })
            })
            .unwrap_or_default(),
            replication: list(value, "replication", replication_from_json).unwrap_or_default(),
            replica: ReplicaResults {
                rates: list(value, "replica_rates", rate_from_json).unwrap_or_default(),
                live: value.get("replica_live").and_then(live_from_json),
            },
        })
    }
}

fn replication_from_json(of: &Value) -> Option<ReplicationResult> {
    let number = |name: &str| of.get(name)?.as_f64();
    Some(ReplicationResult {
        server: text(of, "server")?,
        alone_per_second: number("alone_per_second")?,
        followed_per_second: number("followed_per_second")?,
        kept: number("kept")?,
        events_per_core: number("events_per_core")?,
        event_bytes: number("event_bytes")?,
        mib_per_second: number("mib_per_second")?,
        dump_bytes: number("dump_bytes")?,
        semi_sync_per_second: number("semi_sync_per_second")?,
    })
}

fn rate_from_json(of: &Value) -> Option<ReplicaRate> {
    Some(ReplicaRate {
        server: text(of, "server")?,
        mode: text(of, "mode")?,
        threads: of.get("threads")?.as_u64()?,
        disk: text(of, "disk")?,
        workload: text(of, "workload")?,
        transactions: of.get("transactions")?.as_u64()?,
        per_second: of.get("per_second")?.as_f64()?,
        processor_us: of.get("processor_us")?.as_f64()?,
    })
}

fn live_from_json(of: &Value) -> Option<ReplicaLive> {
    Some(ReplicaLive {
        per_second: of.get("per_second")?.as_f64()?,
        lag_s_max: of.get("lag_s_max")?.as_u64()?,
        drained_s: of.get("drained_s")?.as_f64()?,
        source_us: of.get("source_us")?.as_f64()?,
        replica_us: of.get("replica_us")?.as_f64()?,
        large_mib: of.get("large_mib")?.as_u64()?,
        large_bytes_more: of.get("large_bytes_more")?.as_u64()?,
        relay_mib_per_second: of.get("relay_mib_per_second")?.as_f64()?,
    })
}

fn case_from_json(case: &Value) -> Option<CaseResult> {
    Some(CaseResult {
        workload: text(case, "workload")?,
        clients: case.get("clients")?.as_u64()?,
        disk: text(case, "disk")?,
        protocol: text(case, "protocol")?,
        samples: list(case, "samples", |all| all.as_array()?.iter().map(Sample::from_json).collect())?,
    })
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn list<T>(value: &Value, name: &str, item: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.get(name)?.as_array()?.iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_survive_json() {
        let results = Results {
            machine: Machine {
                processors: 2,
                kernel: "6.1".into(),
                flush: FlushTimes { bare_us: 120.5, asked_us: 180.25 },
            },
            servers: vec![ServerInfo { name: "mariadb".into(), version: "10.11".into() }],
            cases: vec![CaseResult {
                workload: "insert".into(),
                clients: 16,
                samples: vec![vec![Sample { per_second: 3.5, ..Sample::default() }]],
                ..CaseResult::default()
            }],
            memory: vec![Memory { server: "mariadb".into(), idle_bytes: 7, ..Memory::default() }],
            pipeline: vec![PipelineResult { threads: 8, per_second: 1.5, ..PipelineResult::default() }],
            recovery: vec![RecoveryResult { load: "x".into(), seconds: 0.5, ..RecoveryResult::default() }],
            replication: vec![ReplicationResult {
                server: "mariadb".into(),
                kept: 0.5,
                ..Default::default()
            }],
            replica: ReplicaResults {
                rates: vec![ReplicaRate { mode: "none".into(), per_second: 2.5, ..Default::default() }],
                live: Some(ReplicaLive { lag_s_max: 3, drained_s: 0.25, ..Default::default() }),
            },
            ..Results::default()
        };
        let text = results.to_json().to_string();
        let read = serde_json::from_str(&text).expect("JSON");
        assert_eq!(Results::from_json(&read), Some(results));
        assert_eq!(Results::from_json(&json!({ "machine": {} })), None);
    }

    #[test]
    fn runs_of_the_same_servers_are_taken_together() {
        let case = |clients, per_second| CaseResult {
            clients,
            samples: vec![vec![Sample { per_second, ..Sample::default() }]],
            ..CaseResult::default()
        };
        let run = |cases: Vec<CaseResult>, bare_us| Results {
            machine: Machine { flush: FlushTimes { bare_us, asked_us: 0.0 }, ..Machine::default() },
            settings: Settings { repeats: 1, ..Settings::default() },
            servers: vec![ServerInfo::default()],
            cases,
            ..Results::default()
        };
        let mut all = run(vec![case(1, 10.0), case(4, 20.0)], 100.0);
        all.pool(run(vec![case(4, 30.0), case(8, 40.0)], 200.0)).expect("the same servers");
        let rates: Vec<Vec<f64>> =
            all.cases.iter().map(|case| case.samples[0].iter().map(|s| s.per_second).collect()).collect();
        assert_eq!(rates, [vec![10.0], vec![20.0, 30.0], vec![40.0]]);
        assert_eq!((all.repeats(), all.machine.flush.bare_us), ((1, 2), 150.0));
        all.pool(run(Vec::new(), 300.0)).expect("the same servers");
        assert_eq!(all.machine.flush.bare_us, 200.0, "each run counts once");
        let other = Results { servers: Vec::new(), ..run(Vec::new(), 100.0) };
        assert!(all.pool(other).is_err());
    }
}
