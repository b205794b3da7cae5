//! Figures of the front page: a short table, and a plot of it.
//!
//! In the plot each case has a row, and each server a mark: its median rate divided by MariaDB's, on a
//! logarithmic axis, with a line from the lowest to the highest repetition.

use std::fmt::Write;

use crate::report::{self, BASE, Table};
use crate::results::{CaseResult, Results};
use crate::sample::Spread;

const WIDTH: f64 = 860.0;
/// Left end of the axis. Names are to its left.
const LEFT: f64 = 250.0;
const RIGHT: f64 = 30.0;
const ROW: f64 = 24.0;
/// Space for the legend.
const TOP: f64 = 34.0;
/// Space for the numbers of the axis.
const BOTTOM: f64 = 40.0;
const COLOURS: &[&str] = &["#0b6e4f", "#c8553d", "#2f4b7c", "#8f5fa8"];

/// Returns the table of the front page.
pub fn table(results: &Results) -> Table {
    let names: Vec<&str> = results.servers.iter().map(|server| server.name.as_str()).collect();
    let head = ["", "clients"].into_iter().chain(names.iter().copied()).chain(["times MariaDB"]);
    let rows = results.cases.iter().map(|case| {
        let ratio = report::ratio(&names, case).map_or("-".to_owned(), |ratio| format!("**{ratio:.1}**"));
        let rates = names.iter().enumerate().map(|(index, _)| {
            rate(case, index).map_or("-".to_owned(), |rate| grouped(rate.median.round() as u64))
        });
        [name(case), case.clients.to_string()].into_iter().chain(rates).chain([ratio]).collect()
    });
    Table {
        title: "Transactions per second".into(),
        head: head.map(str::to_owned).collect(),
        rows: rows.collect(),
    }
}

/// Returns the plot as SVG, or `None` if MariaDB was not measured.
pub fn svg(results: &Results) -> Option<String> {
    let base = results.servers.iter().position(|server| server.name == BASE)?;
    let rows: Vec<(String, Vec<Option<Spread>>)> =
        results.cases.iter().filter_map(|case| Some((title(case), ratios(case, base)?))).collect();
    let all = || rows.iter().flat_map(|(_, ratios)| ratios.iter().flatten());
    let low = all().map(|ratio| ratio.low).fold(1.0, f64::min);
    let high = all().map(|ratio| ratio.high).fold(2.0, f64::max);
    // Powers of two that enclose all ratios.
    let (first, last) = (low.log2().floor(), high.log2().ceil());
    let at = |ratio: f64| LEFT + (ratio.log2() - first) / (last - first) * (WIDTH - LEFT - RIGHT);
    let bottom = TOP + ROW * rows.len() as f64;
    let height = bottom + BOTTOM;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for power in first as i32..=last as i32 {
        let (x, ratio) = (at(2f64.powi(power)), 2f64.powi(power));
        let colour = if power == 0 { "#222" } else { "#ddd" };
        writeln!(out, "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"{colour}\"/>").expect("a string");
        let y = bottom + 16.0;
        writeln!(out, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{ratio}</text>")
            .expect("a string");
    }
    let (x, y) = ((LEFT + WIDTH - RIGHT) / 2.0, bottom + 34.0);
    writeln!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">times the rate of MariaDB</text>")
        .expect("a string");
    let mut x = LEFT;
    for (index, server) in results.servers.iter().enumerate() {
        let colour = colour(index);
        writeln!(out, "<circle cx=\"{x}\" cy=\"16\" r=\"5\" fill=\"{colour}\"/>").expect("a string");
        let version = server.version.split(['-', ' ']).next().unwrap_or_default();
        writeln!(out, "<text x=\"{}\" y=\"20\">{} {version}</text>", x + 10.0, server.name)
            .expect("a string");
        x += 190.0;
    }
    for (row, (title, ratios)) in rows.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        writeln!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{title}</text>", LEFT - 12.0, y + 4.0)
            .expect("a string");
        for (index, ratio) in ratios.iter().enumerate() {
            let (Some(ratio), colour) = (ratio, colour(index)) else { continue };
            let (low, high, middle) = (at(ratio.low), at(ratio.high), at(ratio.median));
            writeln!(out, "<path d=\"M{low:.1} {y}H{high:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/>")
                .expect("a string");
            writeln!(out, "<circle cx=\"{middle:.1}\" cy=\"{y}\" r=\"5\" fill=\"{colour}\"/>")
                .expect("a string");
        }
    }
    out.push_str("</svg>\n");
    Some(out)
}

/// Returns the ratios by server, or `None` if the base was not measured.
fn ratios(case: &CaseResult, base: usize) -> Option<Vec<Option<Spread>>> {
    let by = rate(case, base)?.median;
    let ratio = |rate: Spread| Spread { median: rate.median / by, low: rate.low / by, high: rate.high / by };
    Some((0..case.samples.len()).map(|index| rate(case, index).map(ratio)).collect())
}

fn rate(case: &CaseResult, server: usize) -> Option<Spread> {
    Spread::of(case.samples.get(server)?, |sample| Some(sample.per_second))
}

fn name(case: &CaseResult) -> String {
    let disk = match case.disk.as_str() {
        "real" => "",
        "ssd" => ", flushes of 1.4 ms",
        "hdd" => ", flushes of 33 ms",
        other => other,
    };
    format!("{}{disk}", case.workload)
}

fn title(case: &CaseResult) -> String {
    format!("{}, {}", name(case).replace("flushes of ", ""), case.clients)
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Formats a number with thousands separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::ServerInfo;
    use crate::sample::Sample;

    fn results() -> Results {
        let sample = |per_second| Sample { per_second, ..Sample::default() };
        let server = |name: &str| ServerInfo { name: name.into(), version: "1".into() };
        let case = CaseResult {
            workload: "insert".into(),
            clients: 64,
            disk: "ssd".into(),
            samples: vec![vec![sample(40_000.0)], vec![sample(10_000.0)], Vec::new()],
            ..CaseResult::default()
        };
        let servers = vec![server("cohort"), server("mariadb"), server("postgres")];
        Results { servers, cases: vec![case], ..Results::default() }
    }

    #[test]
    fn the_table_has_rates_and_the_ratio() {
        let table = table(&results());
        assert_eq!(table.head, ["", "clients", "cohort", "mariadb", "postgres", "times MariaDB"]);
        assert_eq!(table.rows, [["insert, flushes of 1.4 ms", "64", "40,000", "10,000", "-", "**4.0**"]]);
    }

    #[test]
    fn a_mark_stands_at_its_ratio() {
        let svg = svg(&results()).expect("there is a base");
        // The ratios 1 and 4 are the ends of the axis.
        assert!(
            svg.contains(&format!(
                "<circle cx=\"{:.1}\" cy=\"46\" r=\"5\" fill=\"#0b6e4f\"/>",
                WIDTH - RIGHT
            ))
        );
        assert!(svg.contains(&format!("<circle cx=\"{LEFT:.1}\" cy=\"46\" r=\"5\" fill=\"#c8553d\"/>")));
        assert!(!svg.contains("cy=\"46\" r=\"5\" fill=\"#2f4b7c\""), "who was not measured has no mark");
    }
}
