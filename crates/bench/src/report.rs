//! Results as Markdown.

use std::fmt::Write;

use crate::goals;
use crate::plot;
use crate::results::{
    CaseResult, Memory, PipelineResult, RecoveryResult, ReplicaLive, ReplicaRate, ReplicationResult, Results,
};
use crate::sample::{Sample, Spread};

/// The base of ratios, and the server that is compared with it.
pub const BASE: &str = "mariadb";
pub const SUBJECT: &str = "cohort";

/// Columns of ratios, with the two servers whose median rates are divided.
const RATIOS: &[(&str, &str, &str)] = &[
    ("ratio", SUBJECT, BASE),
    ("ratio aged", "cohort aged", "mariadb aged"),
    ("cohort aged by fresh", "cohort aged", SUBJECT),
    ("mariadb aged by fresh", "mariadb aged", BASE),
];

/// Markers around the results in docs/lab/results.md.
const RESULTS_BEGIN: &str = "<!-- results begin -->\n";
const RESULTS_END: &str = "<!-- results end -->\n";

/// Stages of a commit in their order.
pub const STAGES: &[&str] = &[
    "prepare",
    "order_wait",
    "order_work",
    "queue",
    "write",
    "flush",
    "replica_wait",
    "archive_wait",
    "publish",
    "acknowledge",
];

/// Part of the names of servers with a separate log for each engine.
pub const SEPARATE: &str = "separate";

/// A table, independent of the output format.
pub struct Table {
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns the table without its title.
    pub fn markdown(&self) -> String {
        let mut out =
            format!("| {} |\n|---|{}\n", self.head.join(" | "), "---:|".repeat(self.head.len() - 1));
        for row in &self.rows {
            writeln!(out, "| {} |", row.join(" | ")).expect("a string");
        }
        out
    }
}

/// Returns a line about the run, and all tables.
pub fn markdown(results: &Results) -> String {
    let mut out = format!("{}\n", heading(results));
    for table in tables(results) {
        write!(out, "\n### {}\n\n{}", table.title, table.markdown()).expect("a string");
    }
    out
}

/// Returns only the rates, followed by a line about the run.
pub fn in_short(results: &Results) -> String {
    format!("{}\n{}\n", plot::table(results).markdown(), heading(results))
}

/// Returns a page with its results section replaced, or `None` if it has none.
pub fn into_page(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(RESULTS_BEGIN)?;
    let (_, after) = rest.split_once(RESULTS_END)?;
    Some(format!("{before}{RESULTS_BEGIN}\n{text}\n{RESULTS_END}{after}"))
}

/// Returns the goals; then for each disk a row for each case: rates, latencies, stages; then the measurements
/// without cases.
pub fn tables(results: &Results) -> Vec<Table> {
    goals::table(results).into_iter().chain(measured_tables(results)).collect()
}

/// Returns all tables except the goals.
pub fn measured_tables(results: &Results) -> Vec<Table> {
    let mut tables: Vec<Table> = disks(results).into_iter().map(|disk| cases(results, disk)).collect();
    tables.extend(disks(results).into_iter().map(|disk| latencies(results, disk)));
    tables.extend(stages(results));
    tables.extend(segment_waits(results));
    tables.extend(disks(results).into_iter().filter_map(|disk| layouts(results, disk)));
    if !results.pipeline.is_empty() {
        tables.push(pipeline(results));
    }
    if !results.recovery.is_empty() {
        tables.push(recovery(results));
    }
    if !results.replication.is_empty() {
        tables.push(replication(results));
    }
    if !results.replica.rates.is_empty() {
        tables.push(replica_rates(results));
    }
    tables.extend(results.replica.live.as_ref().map(replica_live));
    if !results.memory.is_empty() {
        tables.push(memory(results));
    }
    tables
}

/// Returns the disks of a run in the order of its cases.
pub fn disks(results: &Results) -> Vec<&str> {
    let mut disks: Vec<&str> = Vec::new();
    for case in &results.cases {
        if !disks.contains(&case.disk.as_str()) {
            disks.push(&case.disk);
        }
    }
    disks
}

/// Returns a description of the run: servers, machine and settings.
pub fn heading(results: &Results) -> String {
    let (machine, settings) = (&results.machine, &results.settings);
    let servers: Vec<String> =
        results.servers.iter().map(|server| format!("{} {}", server.name, server.version)).collect();
    let repeats = match results.repeats() {
        (0, _) => settings.repeats.to_string(),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    let servers = if servers.is_empty() { String::new() } else { format!("{}. ", servers.join(", ")) };
    format!(
        "{servers}{} processors, Linux {}; a bare overwrite of 4 KiB with fdatasync takes {:.0} us, \
         {:.0} us when another thread asks for it and waits. Medians of {} (lowest..highest), \
         {} s each after {} s of warming up; {} tables of {} rows; clients over {}.{}",
        machine.processors,
        machine.kernel,
        machine.flush.bare_us,
        machine.flush.asked_us,
        repeats,
        settings.seconds,
        settings.warm_seconds,
        settings.tables,
        settings.rows,
        settings.transport,
        noise(results),
    )
}

/// Returns the share of other programs in the processor time. They slow down all servers, but not equally, so
/// their share shows how reliable the figures are.
fn noise(results: &Results) -> String {
    let samples: Vec<Sample> = results.cases.iter().flat_map(|case| case.samples.concat()).collect();
    Spread::of(&samples, |s| s.others_share).map_or_else(String::new, |share| {
        format!(
            " Other programs used {:.0} % of the processors meanwhile (median; at most {:.0} %).",
            share.median * 100.0,
            share.high * 100.0
        )
    })
}

pub fn disk_title(disk: &str) -> String {
    match disk {
        "real" => "The disk as it is".to_owned(),
        "ssd" => "Flushes of 1.4 ms, one at a time".to_owned(),
        "ssds" => {
            "Two disks, one of them for the binary log: flushes of 1.4 ms, one at a time on each".to_owned()
        }
        "hdd" => "Flushes of 33 ms, one at a time".to_owned(),
        other => format!("Flushes of {other}, one at a time"),
    }
}

fn cases(results: &Results, disk: &str) -> Table {
    let names: Vec<&str> = results.servers.iter().map(|server| server.name.as_str()).collect();
    let has = |name: &str| names.contains(&name);
    let ratios = RATIOS.iter().filter(|(_, of, by)| has(of) && has(by));
    let columns = ["/s", " group", " flushes per group", " flushes/s", " CPU us"];
    let mut head: Vec<String> = vec!["workload".into(), "clients".into()];
    for (index, column) in columns.iter().enumerate() {
        head.extend(names.iter().map(|name| format!("{name}{column}")));
        if index == 0 {
            head.extend(ratios.clone().map(|(title, ..)| (*title).to_owned()));
        }
    }
    let row = |case: &CaseResult| {
        let mut cells = vec![workload_name(case), case.clients.to_string()];
        for (index, column) in [rate, group, flushes, flush_rate, processor].iter().enumerate() {
            cells.extend(case.samples.iter().map(|samples| column(samples)));
            if index == 0 {
                let quotients = ratios.clone().map(|(_, of, by)| quotient(&names, case, of, by));
                cells.extend(quotients.map(|of| of.map_or("-".into(), |of| format!("**{of:.2}**"))));
            }
        }
        cells
    };
    let rows = results.cases.iter().filter(|case| case.disk == disk).map(row).collect();
    Table { title: disk_title(disk), head, rows }
}

/// Returns the table of latency percentiles of transactions.
fn latencies(results: &Results, disk: &str) -> Table {
    let mut head = vec!["workload".to_owned(), "clients".to_owned()];
    let percentiles: [(&str, fn(&Sample) -> f64); 5] = [
        ("p50", |s| s.p50_us),
        ("p95", |s| s.p95_us),
        ("p99", |s| s.p99_us),
        ("p99.9", |s| s.p999_us),
        ("max", |s| s.max_us),
    ];
    for server in &results.servers {
        head.extend(percentiles.iter().map(|(name, _)| format!("{} {name}", server.name)));
    }
    let row = |case: &CaseResult| {
        let mut cells = vec![workload_name(case), case.clients.to_string()];
        for samples in &case.samples {
            cells.extend(percentiles.iter().map(|(_, figure)| {
                let ms = Spread::of(samples, |s| Some(figure(s) / 1000.0));
                ms.map_or("-".into(), |ms| short(ms.median))
            }));
        }
        cells
    };
    let rows = results.cases.iter().filter(|case| case.disk == disk).map(row).collect();
    Table { title: format!("{}: latency, ms", disk_title(disk)), head, rows }
}

/// Returns the median microseconds that a transaction spends in each of [`STAGES`], or `None` if the server
/// does not report them.
pub fn stages_of(samples: &[Sample]) -> Option<Vec<f64>> {
    let stage = |stage: &&str| {
        let of = |s: &Sample| Some(s.stages_us.iter().find(|(name, _)| name == stage)?.1);
        Spread::of(samples, of).map_or(0.0, |us| us.median)
    };
    samples.iter().any(|s| !s.stages_us.is_empty()).then(|| STAGES.iter().map(stage).collect())
}

/// Returns the table of stages from COMMIT to OK, or `None` if no server reports them.
fn stages(results: &Results) -> Option<Table> {
    let mut head: Vec<String> = ["workload", "clients", "disk", "us in all"].map(str::to_owned).to_vec();
    head.extend(STAGES.iter().map(|stage| stage.replace('_', " ")));
    let mut rows = Vec::new();
    for case in &results.cases {
        for samples in &case.samples {
            let Some(us) = stages_of(samples) else { continue };
            let total: f64 = us.iter().sum();
            if total <= 0.0 {
                continue;
            }
            let mut cells =
                vec![workload_name(case), case.clients.to_string(), case.disk.clone(), short(total)];
            cells.extend(us.iter().map(|us| format!("{:.1} %", 100.0 * us / total)));
            rows.push(cells);
        }
    }
    let title = "Share of each stage in a transaction's time from COMMIT to OK".to_owned();
    (!rows.is_empty()).then_some(Table { title, head, rows })
}

/// Returns the table of waits by number of rollback segments, or `None` without such cases.
fn segment_waits(results: &Results) -> Option<Table> {
    let row = |case: &CaseResult| {
        let samples =
            case.samples.iter().find(|samples| samples.iter().any(|s| s.segment_waits.is_some()))?;
        let waits = Spread::of(samples, |s| s.segment_waits)?;
        let spread = format!("{} ({}..{})", short(waits.median), short(waits.low), short(waits.high));
        Some(vec![workload_name(case), case.clients.to_string(), rate(samples), spread])
    };
    let cases = results.cases.iter().filter(|case| case.workload.contains("rollback segment"));
    let rows: Vec<Vec<String>> = cases.filter_map(row).collect();
    let head = ["workload", "clients", "/s", "waits per 1,000 transactions"].map(str::to_owned).to_vec();
    let title = "Rollback segments: waits for their mutexes".to_owned();
    (!rows.is_empty()).then_some(Table { title, head, rows })
}

/// Returns the table of syncs per commit, or `None` if no contestant has separate logs.
fn layouts(results: &Results, disk: &str) -> Option<Table> {
    if !results.servers.iter().any(|server| server.name.contains(SEPARATE)) {
        return None;
    }
    let by_commit = |samples: &[Sample], figure: fn(&Sample) -> Option<f64>| {
        Spread::of(samples, figure).map_or("-".into(), |s| format!("{:.3}", s.median))
    };
    let row = |case: &CaseResult, name: &str, samples: &[Sample]| {
        let outside = |s: &Sample| Some(s.flushes_per_second? / s.per_second);
        vec![
            workload_name(case),
            case.clients.to_string(),
            name.to_owned(),
            rate(samples),
            by_commit(samples, |s| s.engine_syncs),
            by_commit(samples, |s| s.binlog_syncs),
            by_commit(samples, outside),
        ]
    };
    let of_case = |case: &&CaseResult| {
        let servers = results.servers.iter().zip(&case.samples).filter(|(_, samples)| !samples.is_empty());
        servers.map(|(server, samples)| row(case, &server.name, samples)).collect::<Vec<_>>()
    };
    let rows = results.cases.iter().filter(|case| case.disk == disk).collect::<Vec<_>>();
    let head = ["workload", "clients", "logs", "/s", "engine syncs", "binlog syncs", "flushes from outside"];
    Some(Table {
        title: format!("What a commit syncs. {}", disk_title(disk)),
        head: head.map(str::to_owned).to_vec(),
        rows: rows.iter().flat_map(of_case).collect(),
    })
}

fn pipeline(results: &Results) -> Table {
    let row = |of: &PipelineResult| {
        vec![
            of.threads.to_string(),
            of.disk.clone(),
            format!("{:.0}", of.per_second),
            format!("{:.1}", of.group_size),
            format!("{:.0}", of.flush_us),
        ]
    };
    Table {
        title: "The commit pipeline without SQL: durable transactions of 200 bytes".to_owned(),
        head: ["threads", "disk", "transactions/s", "group", "flush us"].map(str::to_owned).to_vec(),
        rows: results.pipeline.iter().map(row).collect(),
    }
}

fn recovery(results: &Results) -> Table {
    let row = |of: &RecoveryResult| {
        vec![
            of.load.clone(),
            of.transactions.to_string(),
            format!("{:.0}", of.mib()),
            short(of.seconds),
            of.mib_per_second().map_or("-".into(), |rate| format!("{rate:.0}")),
        ]
    };
    Table {
        title: "Start after a crash: the log is read and replayed".to_owned(),
        head: ["log of", "transactions", "MiB", "s", "MiB/s"].map(str::to_owned).to_vec(),
        rows: results.recovery.iter().map(row).collect(),
    }
}

fn replication(results: &Results) -> Table {
    let row = |of: &ReplicationResult| {
        vec![
            of.server.clone(),
            format!("{:.0}", of.alone_per_second),
            format!("{:.0} ({:+.1} %)", of.followed_per_second, (of.kept - 1.0) * 100.0),
            format!("{:.0} ({:.0} bytes each)", of.events_per_core, of.event_bytes),
            format!("{:.0}", of.mib_per_second),
            format!("{:.0}", of.dump_bytes / 1024.0),
            format!("{:.0}", of.semi_sync_per_second),
        ]
    };
    let head = [
        "source",
        "update_index/s",
        "with one dump/s",
        "small events/s per core",
        "large events, MiB/s",
        "KiB per dump",
        "semi-sync update_index/s",
    ];
    Table {
        title: "Replicas: 64 clients' updates without and with them, dumps from files".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: results.replication.iter().map(row).collect(),
    }
}

fn replica_rates(results: &Results) -> Table {
    let row = |of: &ReplicaRate| {
        vec![
            format!("{}, {}, {} threads", of.server, of.mode, of.threads),
            of.workload.clone(),
            of.disk.clone(),
            of.transactions.to_string(),
            format!("{:.0}", of.per_second),
            format!("{:.0}", of.processor_us),
        ]
    };
    Table {
        title: "Replicas that catch up with a backlog of MariaDB, log_slave_updates on".to_owned(),
        head: ["replica", "backlog", "disk", "transactions", "per second", "processor us each"]
            .map(str::to_owned)
            .to_vec(),
        rows: results.replica.rates.iter().map(row).collect(),
    }
}

fn replica_live(of: &ReplicaLive) -> Table {
    let head = [
        "source's update_index/s",
        "most lag, s",
        "none after, s",
        "source's processor us each",
        "replica's",
        "large transaction, MiB",
        "MiB more",
        "received, MiB/s",
    ];
    Table {
        title: "Cohort as a replica of Cohort, under load and with one large transaction".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: vec![vec![
            format!("{:.0}", of.per_second),
            of.lag_s_max.to_string(),
            format!("{:.2}", of.drained_s),
            format!("{:.0}", of.source_us),
            format!("{:.0}", of.replica_us),
            of.large_mib.to_string(),
            format!("{:.0}", of.large_bytes_more as f64 / 1_048_576.0),
            format!("{:.0}", of.relay_mib_per_second),
        ]],
    }
}

fn workload_name(case: &CaseResult) -> String {
    if case.protocol == "text" { format!("{} (text)", case.workload) } else { case.workload.clone() }
}

/// Returns the subject's median rate divided by the base's.
pub fn ratio(names: &[&str], case: &CaseResult) -> Option<f64> {
    quotient(names, case, SUBJECT, BASE)
}

/// Returns the median rate of one server divided by that of another.
fn quotient(names: &[&str], case: &CaseResult, of: &str, by: &str) -> Option<f64> {
    let median = |name: &str| {
        let index = names.iter().position(|n| *n == name)?;
        Spread::of(case.samples.get(index)?, |s| Some(s.per_second)).map(|spread| spread.median)
    };
    let base = median(by)?;
    (base > 0.0).then_some(median(of)? / base)
}

fn rate(samples: &[Sample]) -> String {
    Spread::of(samples, |s| Some(s.per_second)).map_or("-".into(), |spread| {
        if samples.len() == 1 {
            return format!("{:.0}", spread.median);
        }
        format!("{:.0} ({:.0}..{:.0})", spread.median, spread.low, spread.high)
    })
}

fn group(samples: &[Sample]) -> String {
    Spread::of(samples, |s| s.group_size).map_or("-".into(), |s| format!("{:.1}", s.median))
}

fn flushes(samples: &[Sample]) -> String {
    Spread::of(samples, |s| s.flushes_per_group).map_or("-".into(), |s| format!("{:.2}", s.median))
}

fn flush_rate(samples: &[Sample]) -> String {
    Spread::of(samples, |s| s.flushes_per_second).map_or("-".into(), |s| format!("{:.0}", s.median))
}

fn processor(samples: &[Sample]) -> String {
    Spread::of(samples, |s| s.processor_us).map_or("-".into(), |s| format!("{:.0}", s.median))
}

/// Formats with three significant digits.
fn short(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

fn memory(results: &Results) -> Table {
    let mib = |bytes: u64| bytes as f64 / 1048576.0;
    let row = |memory: &Memory| {
        let more = mib(memory.connected_bytes.saturating_sub(memory.idle_bytes));
        vec![
            memory.server.clone(),
            format!("{:.0}", mib(memory.idle_bytes)),
            format!("{:.0} ({} connections)", mib(memory.connected_bytes), memory.connections),
            format!("{more:.0}"),
        ]
    };
    Table {
        title: "Resident memory with default sizes, MiB".to_owned(),
        head: ["server", "idle", "with idle connections", "more"].map(str::to_owned).to_vec(),
        rows: results.memory.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::ServerInfo;

    fn results(servers: &[(&str, &[f64])]) -> Results {
        let info = |name: &str| ServerInfo { name: name.into(), version: "1".into() };
        let samples = |rates: &[f64]| {
            rates.iter().map(|rate| Sample { per_second: *rate, ..Sample::default() }).collect()
        };
        Results {
            servers: servers.iter().map(|(name, _)| info(name)).collect(),
            cases: vec![CaseResult {
                workload: "insert".into(),
                clients: 64,
                disk: "ssd".into(),
                protocol: "text".into(),
                samples: servers.iter().map(|(_, rates)| samples(rates)).collect(),
            }],
            ..Results::default()
        }
    }

    #[test]
    fn a_ratio_is_that_of_the_medians() {
        let text =
            markdown(&results(&[("cohort", &[500.0, 510.0, 400.0]), ("mariadb", &[100.0, 250.0, 300.0])]));
        assert!(text.contains("### Flushes of 1.4 ms"), "{text}");
        assert!(
            text.contains("| insert (text) | 64 | 500 (400..510) | 250 (100..300) | **2.00** |"),
            "{text}"
        );
    }

    #[test]
    fn the_place_of_results_in_a_page_is_filled_again_and_again() {
        let page = format!("# Title\n{RESULTS_BEGIN}old\n{RESULTS_END}after\n");
        let results = results(&[("mariadb", &[100.0])]);
        let text = markdown(&results);
        let filled = into_page(&page, &text).expect("has a place");
        assert!(filled.starts_with("# Title\n") && filled.ends_with("after\n") && !filled.contains("old"));
        assert_eq!(into_page(&filled, &text), Some(filled));
        assert_eq!(into_page("# Title\n", &text), None);
    }

    #[test]
    fn stages_are_shares_of_their_sum_if_the_server_reports_them() {
        let mut results = results(&[("cohort", &[1.0]), ("mariadb", &[1.0])]);
        results.cases[0].samples[0][0].stages_us = vec![("flush".into(), 30.0), ("queue".into(), 10.0)];
        let table = stages(&results).expect("a table");
        assert_eq!(table.rows.len(), 1);
        let column = |name: &str| table.head.iter().position(|h| h == name).expect("a stage");
        assert_eq!(table.rows[0][column("us in all")], "40.0");
        assert_eq!(table.rows[0][column("flush")], "75.0 %");
        assert_eq!(table.rows[0][column("queue")], "25.0 %");
    }

    #[test]
    fn aged_tables_are_divided_by_fresh_ones() {
        let rates: [(&str, &[f64]); 3] =
            [("cohort", &[200.0]), ("cohort aged", &[150.0]), ("mariadb aged", &[75.0])];
        let text = markdown(&results(&rates));
        assert!(text.contains("| ratio aged | cohort aged by fresh | cohort group"), "{text}");
        assert!(text.contains("| 200 | 150 | 75 | **2.00** | **0.75** |"), "{text}");
    }

    #[test]
    fn one_server_has_no_ratio() {
        let text = markdown(&results(&[("mariadb", &[100.0])]));
        assert!(!text.contains("ratio"), "{text}");
        assert!(text.contains("| insert (text) | 64 | 100 |"), "{text}");
    }
}
