//! Results as Markdown.

use std::fmt::Write;

use crate::results::{CaseResult, Memory, Results};
use crate::sample::{Sample, Spread};

/// The base of ratios, and what is compared with it.
const BASE: &str = "mariadb";
const SUBJECT: &str = "cohort";

/// A table, in any form.
pub struct Table {
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// All tables, behind a line about the run.
pub fn markdown(results: &Results) -> String {
    let mut out = format!("{}\n", heading(results));
    for table in tables(results) {
        writeln!(out, "\n### {}\n\n| {} |", table.title, table.head.join(" | ")).expect("a string");
        writeln!(out, "|---|{}", "---:|".repeat(table.head.len() - 1)).expect("a string");
        for row in &table.rows {
            writeln!(out, "| {} |", row.join(" | ")).expect("a string");
        }
    }
    out
}

/// One table for each disk with one line for each case; then memory.
pub fn tables(results: &Results) -> Vec<Table> {
    let mut tables: Vec<Table> = disks(results).into_iter().map(|disk| cases(results, disk)).collect();
    if !results.memory.is_empty() {
        tables.push(memory(results));
    }
    tables
}

/// The disks of a run in the order of its cases.
pub fn disks(results: &Results) -> Vec<&str> {
    let mut disks: Vec<&str> = Vec::new();
    for case in &results.cases {
        if !disks.contains(&case.disk.as_str()) {
            disks.push(&case.disk);
        }
    }
    disks
}

/// What was measured, on what, and how.
pub fn heading(results: &Results) -> String {
    let (machine, settings) = (&results.machine, &results.settings);
    let servers: Vec<String> =
        results.servers.iter().map(|server| format!("{} {}", server.name, server.version)).collect();
    format!(
        "{}. {} processors, Linux {}; a bare overwrite of 4 KiB with fdatasync takes {:.0} us. Medians of {} (lowest..highest), \
         {} s each after {} s of warming up; {} tables of {} rows; clients over {}.{}",
        servers.join(", "),
        machine.processors,
        machine.kernel,
        machine.flush_us,
        settings.repeats,
        settings.seconds,
        settings.warm_seconds,
        settings.tables,
        settings.rows,
        settings.transport,
        noise(results),
    )
}

/// Other programs take from both servers, but not evenly: their share says how far the figures can be trusted.
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
        "hdd" => "Flushes of 33 ms, one at a time".to_owned(),
        other => format!("Flushes of {other}, one at a time"),
    }
}

fn cases(results: &Results, disk: &str) -> Table {
    let names: Vec<&str> = results.servers.iter().map(|server| server.name.as_str()).collect();
    let has_ratio = names.contains(&BASE) && names.contains(&SUBJECT);
    let columns = ["/s", " p50 / p99 / max ms", " group", " flushes per group", " CPU us"];
    let mut head: Vec<String> = vec!["workload".into(), "clients".into()];
    for (index, column) in columns.iter().enumerate() {
        head.extend(names.iter().map(|name| format!("{name}{column}")));
        if index == 0 && has_ratio {
            head.push("ratio".into());
        }
    }
    let row = |case: &CaseResult| {
        let mut cells = vec![workload_name(case), case.clients.to_string()];
        for (index, column) in [rate, latency, group, flushes, processor].iter().enumerate() {
            cells.extend(case.samples.iter().map(|samples| column(samples)));
            if index == 0 && has_ratio {
                cells.push(ratio(&names, case).map_or("-".into(), |ratio| format!("**{ratio:.2}**")));
            }
        }
        cells
    };
    let rows = results.cases.iter().filter(|case| case.disk == disk).map(row).collect();
    Table { title: disk_title(disk), head, rows }
}

fn workload_name(case: &CaseResult) -> String {
    if case.protocol == "text" { format!("{} (text)", case.workload) } else { case.workload.clone() }
}

/// How many times the base's median rate the subject's is.
pub fn ratio(names: &[&str], case: &CaseResult) -> Option<f64> {
    let median = |name: &str| {
        let index = names.iter().position(|n| *n == name)?;
        Spread::of(case.samples.get(index)?, |s| Some(s.per_second)).map(|spread| spread.median)
    };
    let base = median(BASE)?;
    (base > 0.0).then_some(median(SUBJECT)? / base)
}

fn rate(samples: &[Sample]) -> String {
    Spread::of(samples, |s| Some(s.per_second)).map_or("-".into(), |spread| {
        if samples.len() == 1 {
            return format!("{:.0}", spread.median);
        }
        format!("{:.0} ({:.0}..{:.0})", spread.median, spread.low, spread.high)
    })
}

fn latency(samples: &[Sample]) -> String {
    let ms = |figure: fn(&Sample) -> f64| {
        Spread::of(samples, |s| Some(figure(s) / 1000.0)).map_or("-".into(), |s| short(s.median))
    };
    format!("{} / {} / {}", ms(|s| s.p50_us), ms(|s| s.p99_us), ms(|s| s.max_us))
}

fn group(samples: &[Sample]) -> String {
    Spread::of(samples, |s| s.group_size).map_or("-".into(), |s| format!("{:.1}", s.median))
}

fn flushes(samples: &[Sample]) -> String {
    Spread::of(samples, |s| s.flushes_per_group).map_or("-".into(), |s| format!("{:.2}", s.median))
}

fn processor(samples: &[Sample]) -> String {
    Spread::of(samples, |s| s.processor_us).map_or("-".into(), |s| format!("{:.0}", s.median))
}

/// Three significant digits.
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
    fn one_server_has_no_ratio() {
        let text = markdown(&results(&[("mariadb", &[100.0])]));
        assert!(!text.contains("ratio"), "{text}");
        assert!(text.contains("| insert (text) | 64 | 100 |"), "{text}");
    }
}
