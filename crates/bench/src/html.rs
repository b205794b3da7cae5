//! Results as one self-contained HTML page with charts.

use std::fmt::Write;

use crate::goals;
use crate::report;
use crate::results::{CaseResult, PipelineResult, Results};
use crate::sample::{Sample, Spread};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 260.0;
/// Space for the numbers of the axes.
const LEFT: f64 = 62.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 14.0;
const RIGHT: f64 = 14.0;
/// Height of a bar, and the left edge of bars.
const BAR: f64 = 22.0;
const BAR_LEFT: f64 = 340.0;
const COLOURS: &[&str] =
    &["#0b6e4f", "#c8553d", "#2f4b7c", "#8f5fa8", "#b58a1b", "#4aa3a2", "#7a7a7a", "#d17fb0", "#5b8c2a"];

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2rem auto;padding:0 1rem;color:#222}\
    .charts{display:flex;flex-wrap:wrap;gap:1rem}figure{margin:0}figcaption{font-weight:600}\
    svg text{font-size:11px;fill:#444}.legend span{margin-right:1.2rem;font-weight:600}\
    table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}td,th{border:1px solid #ddd;padding:.2rem .5rem;text-align:right}\
    td:first-child,th:first-child,.words td,.words th{text-align:left}";

/// A series of a chart: number of clients, and the figure with its minimum and maximum.
struct Line {
    colour: &'static str,
    points: Vec<(f64, Spread)>,
}

/// Returns the page.
pub fn page(results: &Results) -> String {
    let mut out =
        String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Benchmark</title>");
    write!(out, "<style>{STYLE}</style><h1>Benchmark</h1><p>{}</p>", escape(&report::heading(results)))
        .expect("a string");
    if let Some(table) = goals::table(results) {
        out.push_str("<h2>Goals</h2>");
        html_table(&table, "words", &mut out);
    }
    legend(results, &mut out);
    for disk in report::disks(results) {
        write!(out, "<h2>{}</h2><div class=\"charts\">", escape(&report::disk_title(disk)))
            .expect("a string");
        for workload in workloads(results, disk) {
            let cases: Vec<&CaseResult> =
                results.cases.iter().filter(|case| case.disk == disk && base(case) == workload).collect();
            if cases.iter().all(|case| case.clients == cases[0].clients) {
                // A single point needs no chart; the tables show it.
                continue;
            }
            chart(&format!("{workload}: transactions/s"), &cases, |s| Some(s.per_second), &mut out);
            chart(&format!("{workload}: latency p99, ms"), &cases, |s| Some(s.p99_us / 1000.0), &mut out);
        }
        out.push_str("</div>");
    }
    stages(results, &mut out);
    pipeline(results, &mut out);
    for table in report::measured_tables(results) {
        write!(out, "<h2>{}</h2>", escape(&table.title)).expect("a string");
        html_table(&table, "", &mut out);
    }
    out.push_str("</html>\n");
    out
}

/// Appends a bar for each case: the stages of a transaction's time from COMMIT to OK.
fn stages(results: &Results, out: &mut String) {
    let bars: Vec<(String, Vec<f64>)> = results
        .cases
        .iter()
        .flat_map(|case| {
            let title = format!("{}, {} clients, {} disk", case.workload, case.clients, case.disk);
            case.samples
                .iter()
                .filter_map(|samples| report::stages_of(samples))
                .map(move |us| (title.clone(), us))
        })
        .filter(|(_, us)| us.iter().sum::<f64>() > 0.0)
        .collect();
    if bars.is_empty() {
        return;
    }
    out.push_str("<h2>From COMMIT to OK, by stage</h2><p class=\"legend\">");
    for (index, stage) in report::STAGES.iter().enumerate() {
        write!(out, "<span style=\"color:{}\">&#9632; {}</span>", colour(index), stage.replace('_', " "))
            .expect("a string");
    }
    out.push_str("</p>");
    let height = BAR * bars.len() as f64;
    write!(out, "<svg width=\"960\" height=\"{height}\" role=\"img\">").expect("a string");
    for (row, (title, us)) in bars.iter().enumerate() {
        let (top, total) = (BAR * row as f64, us.iter().sum::<f64>());
        let mut from = BAR_LEFT;
        let (at, end) = (top + 14.0, BAR_LEFT - 8.0);
        write!(out, "<text x=\"{end}\" y=\"{at}\" text-anchor=\"end\">{}</text>", escape(title))
            .expect("a string");
        for (index, us) in us.iter().enumerate().filter(|(_, us)| **us > 0.0) {
            let width = (900.0 - BAR_LEFT) * us / total;
            write!(
                out,
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}: {} us</title></rect>",
                top + 3.0,
                BAR - 6.0,
                colour(index),
                report::STAGES[index],
                number(*us)
            )
            .expect("a string");
            from += width;
        }
        write!(out, "<text x=\"906\" y=\"{at}\">{} us</text>", number(total)).expect("a string");
    }
    out.push_str("</svg>");
}

/// Appends the chart of durable transactions by number of threads.
fn pipeline(results: &Results, out: &mut String) {
    if results.pipeline.is_empty() {
        return;
    }
    let point = |of: &PipelineResult| {
        (of.threads as f64, Spread { median: of.per_second, low: of.per_second, high: of.per_second })
    };
    let line = Line { colour: colour(0), points: results.pipeline.iter().map(point).collect() };
    out.push_str("<h2>The commit pipeline without SQL</h2><figure><figcaption>durable transactions/s by threads</figcaption>");
    svg(&[line], out);
    out.push_str("</figure>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn legend(results: &Results, out: &mut String) {
    out.push_str("<p class=\"legend\">");
    for (index, server) in results.servers.iter().enumerate() {
        let name = escape(&server.name);
        write!(out, "<span style=\"color:{}\">&#9632; {name}</span>", colour(index)).expect("a string");
    }
    out.push_str("</p>");
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

fn workloads<'a>(results: &'a Results, disk: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for case in results.cases.iter().filter(|case| case.disk == disk) {
        if !names.contains(&base(case)) {
            names.push(base(case));
        }
    }
    names
}

/// Returns the workload in whose chart a case is drawn: the one without a variant.
fn base(case: &CaseResult) -> &str {
    case.workload.split_once(", ").map_or(&case.workload, |(base, _)| base)
}

fn chart(title: &str, cases: &[&CaseResult], figure: fn(&Sample) -> Option<f64>, out: &mut String) {
    let servers = cases.iter().map(|case| case.samples.len()).max().unwrap_or(0);
    let mut names: Vec<&str> = cases.iter().map(|case| case.workload.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut lines: Vec<Line> = Vec::new();
    let mut notes = Vec::new();
    for name in names {
        for index in 0..servers {
            let point = |case: &&CaseResult| {
                let is_it = case.workload == name;
                is_it.then(|| Some((case.clients as f64, Spread::of(case.samples.get(index)?, figure)?)))?
            };
            let points: Vec<(f64, Spread)> = cases.iter().filter_map(point).collect();
            let switched_off = name.split_once(", ").map(|(_, what)| what);
            // Servers have the first colours. Each variant has its own.
            let colour = colour(if switched_off.is_some() { servers + notes.len() } else { index });
            match switched_off {
                Some(what) if !points.is_empty() => notes.push((colour, what)),
                _ => {}
            }
            lines.push(Line { colour, points });
        }
    }
    write!(out, "<figure><figcaption>{}</figcaption>", escape(title)).expect("a string");
    for (colour, what) in notes {
        write!(out, "<span style=\"color:{colour}\">&#9632; {}</span>", escape(what)).expect("a string");
    }
    svg(&lines, out);
    out.push_str("</figure>");
}

/// Appends a chart with clients on a logarithmic axis and the figure on a linear one that starts at zero.
fn svg(lines: &[Line], out: &mut String) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let clients = |(clients, _): &(f64, Spread)| clients.log2();
    let low = points().map(clients).fold(f64::INFINITY, f64::min);
    let high = points().map(clients).fold(f64::NEG_INFINITY, f64::max).max(low + 1.0);
    let top = round_up(points().map(|(_, spread)| spread.high).fold(0.0, f64::max));
    let x = |clients: f64| LEFT + (clients.log2() - low) / (high - low) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP);
    write!(out, "<svg width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">").expect("a string");
    for quarter in 0..=4 {
        let value = top * f64::from(quarter) / 4.0;
        let (right, at) = (WIDTH - RIGHT, y(value));
        write!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            number(value)
        )
        .expect("a string");
    }
    let mut ticks: Vec<f64> = points().map(|(clients, _)| *clients).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    for tick in ticks {
        let at = HEIGHT - BOTTOM + 16.0;
        write!(out, "<text x=\"{:.1}\" y=\"{at}\" text-anchor=\"middle\">{tick}</text>", x(tick))
            .expect("a string");
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    write!(out, "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">clients</text>", HEIGHT - 2.0)
        .expect("a string");
    for line in lines {
        draw(line, x, y, out);
    }
    out.push_str("</svg>");
}

fn draw(line: &Line, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64, out: &mut String) {
    let colour = line.colour;
    let path: Vec<String> = line
        .points
        .iter()
        .map(|(clients, spread)| format!("{:.1},{:.1}", x(*clients), y(spread.median)))
        .collect();
    write!(
        out,
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
        path.join(" ")
    )
    .expect("a string");
    for (clients, spread) in &line.points {
        let at = x(*clients);
        write!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>\
             <circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{clients} clients: {}</title></circle>",
            y(spread.low),
            y(spread.high),
            y(spread.median),
            number(spread.median)
        )
        .expect("a string");
    }
}

/// Rounds up to 1, 2, 4 or 8 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let magnitude = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 8.0, 10.0];
    steps.iter().map(|step| step * magnitude).find(|top| *top >= value).unwrap_or(magnitude * 10.0)
}

fn number(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => format!("{:.0}k", v / 1000.0),
        v if v >= 1000.0 => format!("{:.1}k", v / 1000.0),
        v if v >= 10.0 || v == 0.0 => format!("{v:.0}"),
        v => format!("{v:.2}"),
    }
}

fn html_table(table: &report::Table, class: &str, out: &mut String) {
    write!(out, "<table class=\"{class}\">").expect("a string");
    for (index, row) in std::iter::once(&table.head).chain(&table.rows).enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        out.push_str("<tr>");
        for cell in row {
            write!(out, "<{tag}>{}</{tag}>", escape(&cell.replace("**", ""))).expect("a string");
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::ServerInfo;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, top) in [(0.0, 1.0), (0.7, 0.8), (1.0, 1.0), (9.1, 10.0), (15_668.0, 20_000.0)] {
            assert!((round_up(value) - top).abs() < top * 1e-9, "{value}");
        }
    }

    #[test]
    fn a_page_has_a_chart_with_a_line_for_each_server_and_is_escaped() {
        let info = |name: &str| ServerInfo { name: name.into(), version: "<1>".into() };
        let case = |clients: u64| CaseResult {
            workload: "insert".into(),
            clients,
            disk: "real".into(),
            protocol: "text".into(),
            samples: vec![vec![Sample { per_second: clients as f64, ..Sample::default() }]; 2],
        };
        let results = Results {
            servers: vec![info("cohort"), info("mariadb")],
            cases: vec![case(1), case(64)],
            ..Results::default()
        };
        let page = page(&results);
        assert_eq!(page.matches("<svg").count(), 2);
        assert_eq!(page.matches("<polyline").count(), 4);
        // The goals, a table of rates, and one of latencies.
        assert_eq!(page.matches("<table").count(), 3);
        assert!(page.contains("&lt;1&gt;") && !page.contains("<1>"));
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
