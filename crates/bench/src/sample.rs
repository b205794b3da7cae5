//! Result of one measurement, and statistics over several.

use serde_json::{Value, json};

use crate::connection::{Connection, ConnectionError};
use crate::dialect::Dialect;
use crate::flushes::FlushCounts;
use crate::process;
use crate::servers::Server;

/// Counters of a server at one time.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    commits: u64,
    groups: u64,
    flushes: FlushCounts,
    /// Microseconds that transactions spent in each stage of their commits, if the server reports them.
    stages: Vec<(String, u64)>,
    /// Waits for rollback segments, if the server reports them.
    segment_waits: Option<u64>,
    /// Syncs of the logs of its engines; InnoDB's are first.
    engine_syncs: [u64; 2],
    /// Whether each commit group syncs the binary log.
    syncs_binlog: bool,
    processor_seconds: f64,
    /// Processor time of this program.
    load_seconds: f64,
    /// Processor time of all programs on the machine.
    machine_seconds: f64,
}

impl Counters {
    pub fn read(server: &Server, connection: &mut Connection) -> Result<Counters, ConnectionError> {
        let of_any = Counters {
            flushes: server.flushes.counts(),
            processor_seconds: server.processor_seconds(),
            load_seconds: process::processor_seconds(std::process::id()).unwrap_or(0.0),
            machine_seconds: process::machine_seconds().unwrap_or(0.0),
            ..Counters::default()
        };
        if connection.dialect() == Dialect::Postgres {
            return Ok(of_any);
        }
        let rows = connection.query("SHOW GLOBAL STATUS LIKE 'Binlog\\_%commits'")?;
        let value = |name: &str| {
            let row = rows.iter().find(|row| row[0].as_deref() == Some(name));
            row.and_then(|row| row[1].as_deref()?.parse().ok()).unwrap_or(0)
        };
        Ok(Counters {
            commits: value("Binlog_commits"),
            groups: value("Binlog_group_commits"),
            stages: stages(connection)?,
            segment_waits: segment_waits(connection)?,
            engine_syncs: engine_syncs(connection)?,
            syncs_binlog: syncs_binlog(connection)?,
            ..of_any
        })
    }
}

fn segment_waits(connection: &mut Connection) -> Result<Option<u64>, ConnectionError> {
    let rows = connection.query("SHOW GLOBAL STATUS LIKE 'Innodb\\_rollback\\_segment\\_waits'")?;
    Ok(rows.first().and_then(|row| row[1].as_deref()?.parse().ok()))
}

fn engine_syncs(connection: &mut Connection) -> Result<[u64; 2], ConnectionError> {
    let rows = connection
        .query("SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_os_log_fsyncs', 'Rocksdb_wal_synced')")?;
    let of = |name: &str| {
        let row = rows.iter().find(|row| row[0].as_deref() == Some(name));
        row.and_then(|row| row[1].as_deref()?.parse().ok()).unwrap_or(0)
    };
    Ok([of("Innodb_os_log_fsyncs"), of("Rocksdb_wal_synced")])
}

/// Returns whether commit groups sync the binary log: not if one log contains everything.
fn syncs_binlog(connection: &mut Connection) -> Result<bool, ConnectionError> {
    let rows = connection.query("SHOW GLOBAL VARIABLES LIKE 'log\\_layout'")?;
    Ok(rows.first().is_none_or(|row| row[1].as_deref() != Some("shared")))
}

fn stages(connection: &mut Connection) -> Result<Vec<(String, u64)>, ConnectionError> {
    let rows = connection.query("SHOW GLOBAL STATUS LIKE 'Cohort\\_%\\_us\\_trx\\_total'")?;
    let stage = |row: &Vec<Option<String>>| {
        let name = row[0].as_deref()?.strip_prefix("Cohort_")?.strip_suffix("_us_trx_total")?;
        Some((name.to_owned(), row[1].as_deref()?.parse().ok()?))
    };
    Ok(rows.iter().filter_map(stage).collect())
}

/// Result of one measurement. A ratio is `None` if its divisor is zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    pub per_second: f64,
    pub p50_us: f64,
    pub p95_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
    pub retries: u64,
    /// Transactions in the binary log per commit group.
    pub group_size: Option<f64>,
    /// Calls of fsync and fdatasync per commit group.
    pub flushes_per_group: Option<f64>,
    /// Calls of fsync and fdatasync.
    pub flushes_per_second: Option<f64>,
    /// Microseconds of a transaction in each stage of its commit, if the server reports them.
    pub stages_us: Vec<(String, f64)>,
    /// Average duration of a flush.
    pub flush_us: Option<f64>,
    /// Processor time of the server per transaction.
    pub processor_us: Option<f64>,
    /// Waits for a rollback segment's mutex per thousand transactions, if the server reports them.
    pub segment_waits: Option<f64>,
    /// Syncs of the engines' logs per commit, as the server counts them.
    pub engine_syncs: Option<f64>,
    /// Syncs of the binary log per commit.
    pub binlog_syncs: Option<f64>,
    /// Share of the processors (0..=1) that neither the server nor the load used: noise.
    pub others_share: Option<f64>,
}

impl Sample {
    pub fn new(outcome: &crate::driver::Outcome, before: &Counters, after: &Counters) -> Sample {
        let us = |p: f64| outcome.latencies.percentile(p) as f64 / 1000.0;
        let transactions = outcome.latencies.count() as f64;
        let groups = (after.groups - before.groups) as f64;
        let flushes = (after.flushes.flushes - before.flushes.flushes) as f64;
        let flush_ns = (after.flushes.nanoseconds - before.flushes.nanoseconds) as f64;
        let processor = after.processor_seconds - before.processor_seconds;
        let load = after.load_seconds - before.load_seconds;
        let others = (after.machine_seconds - before.machine_seconds - processor - load).max(0.0);
        let processors = std::thread::available_parallelism().map_or(0.0, |n| n.get() as f64);
        let ratio = |of: f64, by: f64| (by > 0.0).then(|| of / by);
        let commits = (after.commits - before.commits) as f64;
        let stage = |(name, us): &(String, u64)| {
            let earlier = before.stages.iter().find(|(n, _)| n == name).map_or(0, |(_, us)| *us);
            Some((name.clone(), ratio((us - earlier) as f64, commits)?))
        };
        Sample {
            per_second: transactions / outcome.seconds,
            p50_us: us(0.5),
            p95_us: us(0.95),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: us(1.0),
            retries: outcome.retries,
            group_size: ratio(commits, groups),
            flushes_per_group: ratio(flushes, groups),
            flushes_per_second: ratio(flushes, outcome.seconds),
            stages_us: after.stages.iter().filter_map(stage).collect(),
            flush_us: ratio(flush_ns / 1000.0, flushes),
            processor_us: ratio(processor * 1e6, transactions),
            segment_waits: after
                .segment_waits
                .zip(before.segment_waits)
                .and_then(|(after, before)| ratio((after - before) as f64 * 1000.0, transactions)),
            // If one log serves all engines, each engine reports its syncs, so do not add them.
            engine_syncs: (0..2)
                .map(|engine| after.engine_syncs[engine] - before.engine_syncs[engine])
                .max()
                .and_then(|syncs| ratio(syncs as f64, commits)),
            binlog_syncs: ratio(if after.syncs_binlog { groups } else { 0.0 }, commits),
            others_share: ratio(others, processors * outcome.seconds).map(|share| share.min(1.0)),
        }
    }

    pub fn to_json(&self) -> Value {
        let stages: serde_json::Map<String, Value> =
            self.stages_us.iter().map(|(name, us)| (name.clone(), json!(us))).collect();
        json!({
            "per_second": self.per_second,
            "p50_us": self.p50_us,
            "p95_us": self.p95_us,
            "p99_us": self.p99_us,
            "p999_us": self.p999_us,
            "max_us": self.max_us,
            "retries": self.retries,
            "group_size": self.group_size,
            "flushes_per_group": self.flushes_per_group,
            "flushes_per_second": self.flushes_per_second,
            "stages_us": stages,
            "flush_us": self.flush_us,
            "processor_us": self.processor_us,
            "segment_waits": self.segment_waits,
            "engine_syncs": self.engine_syncs,
            "binlog_syncs": self.binlog_syncs,
            "others_share": self.others_share,
        })
    }

    pub fn from_json(value: &Value) -> Option<Sample> {
        let number = |name: &str| value.get(name)?.as_f64();
        Some(Sample {
            per_second: number("per_second")?,
            p50_us: number("p50_us")?,
            p95_us: number("p95_us")?,
            p99_us: number("p99_us")?,
            p999_us: number("p999_us")?,
            max_us: number("max_us")?,
            retries: value.get("retries")?.as_u64()?,
            group_size: number("group_size"),
            flushes_per_group: number("flushes_per_group"),
            flushes_per_second: number("flushes_per_second"),
            stages_us: value.get("stages_us").and_then(Value::as_object).map_or(Vec::new(), |stages| {
                stages.iter().filter_map(|(name, us)| Some((name.clone(), us.as_f64()?))).collect()
            }),
            flush_us: number("flush_us"),
            processor_us: number("processor_us"),
            segment_waits: number("segment_waits"),
            engine_syncs: number("engine_syncs"),
            binlog_syncs: number("binlog_syncs"),
            others_share: number("others_share"),
        })
    }
}

/// Median, minimum and maximum of a figure over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Spread {
    /// Computes the spread of a figure. Returns `None` if no sample has it.
    pub fn of(samples: &[Sample], figure: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        Spread::of_values(samples.iter().filter_map(figure).collect())
    }

    /// Computes the spread of values. Returns `None` if there are none.
    pub fn of_values(mut all: Vec<f64>) -> Option<Spread> {
        all.sort_by(f64::total_cmp);
        let middle = all.len() / 2;
        let median = match all.len() {
            0 => return None,
            n if n % 2 == 0 => (all[middle - 1] + all[middle]) / 2.0,
            _ => all[middle],
        };
        Some(Spread { median, low: all[0], high: all[all.len() - 1] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(per_second: f64) -> Sample {
        Sample { per_second, ..Sample::default() }
    }

    #[test]
    fn the_median_of_odd_and_even_counts() {
        let spread = |numbers: &[f64]| {
            let samples: Vec<Sample> = numbers.iter().map(|n| sample(*n)).collect();
            Spread::of(&samples, |s| Some(s.per_second))
        };
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, low: 1.0, high: 3.0 }));
        assert_eq!(spread(&[4.0, 1.0]), Some(Spread { median: 2.5, low: 1.0, high: 4.0 }));
        assert_eq!(Spread::of(&[sample(1.0)], |s| s.group_size), None);
    }

    #[test]
    fn a_sample_survives_json() {
        let sample = Sample {
            per_second: 12.5,
            p50_us: 1.0,
            retries: 3,
            flushes_per_group: Some(2.0),
            segment_waits: Some(0.5),
            stages_us: vec![("flush".into(), 120.5)],
            ..Sample::default()
        };
        assert_eq!(Sample::from_json(&sample.to_json()), Some(sample));
    }
}
