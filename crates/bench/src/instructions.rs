//! Instructions per transaction of each OLTP workload, for one or more builds of the server.
//!
//! One connection sends a fixed number of transactions, the same to each build on the same rows. callgrind
//! counts the instructions of the server's workers meanwhile. The other builds are compared with the first.
//!
//! Two runs of the same build differ by some tenths of a percent: hash keys are random, and the number of
//! polls for the next request depends on time.

use std::fs;
use std::path::{Path, PathBuf};

use crate::callgrind::Counter;
use crate::connection::{self, Connection};
use crate::dialect::{Dialect, Replies};
use crate::servers::{Contestant, Server, Setup};
use crate::tables;
use crate::tpcc::{self, Terminal};
use crate::wire::Reply;
use crate::workload::{self, Client, Plan, Protocol, Scale, Schema, Workload};

/// sysbench's OLTP workloads.
const OLTP: &[&str] = &[
    "point_select",
    "read_only",
    "update_index",
    "update_non_index",
    "insert",
    "delete",
    "write_only",
    "read_write",
];
const TPCC: &str = "tpcc";
const WAREHOUSES: u32 = 1;

/// The counts to make.
#[derive(Debug, PartialEq)]
pub struct Instructions {
    /// Names of workloads; empty for all OLTP workloads. `tpcc` is TPC-C's mix with one terminal and one
    /// warehouse.
    pub workloads: Vec<String>,
    /// The builds. The first is the baseline. If empty, the build next to this program.
    pub programs: Vec<PathBuf>,
    pub scale: Scale,
    /// Number of counted transactions of each workload.
    pub transactions: u32,
    /// Parent of the temporary folders.
    pub dir: PathBuf,
    /// Folder in which to keep the counts per function.
    pub keep: Option<PathBuf>,
    /// Maximum increase over the first build, in percent.
    pub limit: Option<f64>,
}

/// One line of the table.
struct Line {
    /// `None` for TPC-C.
    workload: Option<&'static Workload>,
    protocol: Protocol,
    /// Instructions per transaction, by build.
    counts: Vec<f64>,
}

/// Counts, and prints the table.
pub fn run(asked: &Instructions) -> Result<(), String> {
    let names: Vec<&str> = match asked.workloads.is_empty() {
        true => OLTP.to_vec(),
        false => asked.workloads.iter().map(String::as_str).collect(),
    };
    let mut lines = Vec::new();
    for name in names {
        if name == TPCC {
            lines.push(Line { workload: None, protocol: Protocol::Text, counts: Vec::new() });
            continue;
        }
        let workload = workload::find(name).ok_or_else(|| format!("no workload '{name}'"))?;
        for asked in [Protocol::Text, Protocol::Prepared] {
            let protocol = workload.protocol(asked);
            if protocol == asked {
                lines.push(Line { workload: Some(workload), protocol, counts: Vec::new() });
            }
        }
    }
    let programs: Vec<Option<&Path>> = match asked.programs.is_empty() {
        true => vec![None],
        false => asked.programs.iter().map(|path| Some(path.as_path())).collect(),
    };
    for (number, program) in programs.iter().enumerate() {
        count_all(asked, number, *program, &mut lines)?;
    }
    print!("{}", table(&lines));
    match asked.limit {
        Some(limit) => check_limit(&lines, limit),
        None => Ok(()),
    }
}

fn count_all(
    asked: &Instructions,
    number: usize,
    program: Option<&Path>,
    lines: &mut [Line],
) -> Result<(), String> {
    let contestant = Contestant::parse("cohort").expect("a server").named(&format!("build{number}"));
    let dir = asked.dir.join(format!("cohort-bench-{}", std::process::id()));
    let dumps = dir.join("callgrind");
    fs::create_dir_all(&dumps).map_err(|error| format!("{}: {error}", dumps.display()))?;
    let setup = Setup {
        cohortd: program.map(Path::to_owned),
        callgrind: Some(dumps.clone()),
        ..Setup::below(dir.clone())
    };
    let mut server = Server::start(&contestant, &setup)?;
    let done = count_on(asked, number, &mut server, &dumps, lines);
    let done = done.map_err(|error| server.complaint(&error));
    drop(server);
    // Ignore errors: they only leave a folder on the disk.
    let _ = fs::remove_dir_all(&dir);
    done
}

fn count_on(
    asked: &Instructions,
    number: usize,
    server: &mut Server,
    dumps: &Path,
    lines: &mut [Line],
) -> Result<(), String> {
    let error_text = |error: connection::ConnectionError| error.to_string();
    let mut connection = tables::create_schema(&server.address).map_err(error_text)?;
    tables::prepare(&mut connection, Schema::Sbtest, asked.scale).map_err(error_text)?;
    if lines.iter().any(|line| line.workload.is_none()) {
        tpcc::load(&mut connection, WAREHOUSES).map_err(error_text)?;
    }
    drop(connection);
    let mut counter = Counter::new(server.pid(), dumps)?;
    for line in lines {
        let mut load = Load::open(server, line, asked.scale)?;
        // Warm up: plans, pages in memory, and buffer sizes.
        load.repeat(asked.transactions / 4 + 10)?;
        counter.zero()?;
        load.repeat(asked.transactions)?;
        let (count, files) = counter.count()?;
        line.counts.push(count as f64 / f64::from(asked.transactions));
        let name = format!("{}-{}-{number}", line.name(), line.protocol.name());
        eprintln!("{name}: {}", count / u64::from(asked.transactions));
        for (thread, file) in files.iter().enumerate() {
            let Some(keep) = &asked.keep else { continue };
            let to = keep.join(format!("{name}-{thread}.callgrind"));
            fs::create_dir_all(keep)
                .and_then(|()| fs::copy(file, &to))
                .map_err(|error| format!("{}: {error}", to.display()))?;
        }
    }
    Ok(())
}

impl Line {
    fn name(&self) -> &'static str {
        self.workload.map_or(TPCC, |workload| workload.name)
    }
}

/// The only client.
enum Load {
    TpcC(Terminal),
    Workload(Single),
}

impl Load {
    fn open(server: &Server, line: &Line, scale: Scale) -> Result<Load, String> {
        let error_text = |error: connection::ConnectionError| error.to_string();
        let Some(workload) = line.workload else {
            let terminal = Terminal::open(&server.address, tables::SCHEMA, 1, WAREHOUSES);
            return Ok(Load::TpcC(terminal.map_err(error_text)?));
        };
        let plan = Plan::new_as(workload, scale, line.protocol, Dialect::MySql);
        let mut connection = Connection::open(&server.address, tables::SCHEMA).map_err(error_text)?;
        let mut numbers = Vec::new();
        if plan.protocol == Protocol::Prepared {
            for sql in workload.statements(scale, Dialect::MySql) {
                numbers.push(connection.prepare(&sql).map_err(error_text)?);
            }
        }
        // Each load deletes rows of its own: the seed depends on the protocol.
        let seed = numbers.len() as u64;
        let socket = connection.into_socket().into_file();
        Ok(Load::Workload(Single { plan, socket, client: Client::new(seed, numbers) }))
    }

    fn repeat(&mut self, transactions: u32) -> Result<(), String> {
        match self {
            Load::TpcC(terminal) => tpcc::repeat(terminal, transactions).map_err(|error| error.to_string()),
            Load::Workload(single) => {
                let steps = single.plan.steps();
                (0..transactions).flat_map(|_| 0..steps).try_for_each(|step| single.step(step))
            }
        }
    }
}

struct Single {
    plan: Plan,
    socket: fs::File,
    client: Client,
}

impl Single {
    fn step(&mut self, step: usize) -> Result<(), String> {
        use std::io::Write;
        let lost = |error: std::io::Error| format!("connection lost: {error}");
        let mut request = Vec::new();
        self.client.request(&self.plan, step, &mut request);
        self.socket.write_all(&request).map_err(lost)?;
        let (mut replies, mut input, mut chunk) = (Replies::new(Dialect::MySql), Vec::new(), [0; 16384]);
        loop {
            let bytes = connection::read(&mut self.socket, &mut chunk).map_err(lost)?;
            if bytes == 0 {
                return Err("connection lost: closed by the server".to_owned());
            }
            input.extend_from_slice(&chunk[..bytes]);
            let mut rest = input.as_slice();
            let reply = replies.take(&mut rest);
            let left = rest.len();
            input.drain(..input.len() - left);
            match reply {
                Some(Reply::Done { .. }) => return Ok(()),
                Some(Reply::Error(error)) => return Err(error.to_string()),
                None => {}
            }
        }
    }
}

fn percent_more(line: &Line, count: f64) -> f64 {
    (count / line.counts[0] - 1.0) * 100.0
}

fn table(lines: &[Line]) -> String {
    let builds = lines[0].counts.len();
    let mut out = String::from("| workload | statements |");
    let mut rule = String::from("\n|---|---|");
    for build in 0..builds {
        out.push_str(if build == 0 { " instructions |" } else { " compared | more |" });
        rule.push_str(if build == 0 { "---:|" } else { "---:|---:|" });
    }
    out.push_str(&rule);
    out.push('\n');
    for line in lines {
        out.push_str(&format!("| {} | {} |", line.name(), line.protocol.name()));
        for (build, count) in line.counts.iter().enumerate() {
            out.push_str(&format!(" {count:.0} |"));
            if build > 0 {
                out.push_str(&format!(" {:+.1} % |", percent_more(line, *count)));
            }
        }
        out.push('\n');
    }
    out
}

/// Returns an error that names the lines in which a build exceeds the limit over the first.
fn check_limit(lines: &[Line], limit: f64) -> Result<(), String> {
    let mut over = Vec::new();
    for line in lines {
        for count in &line.counts[1..] {
            let more = percent_more(line, *count);
            if more > limit {
                over.push(format!("{} ({}) {more:+.1} %", line.name(), line.protocol.name()));
            }
        }
    }
    match over.is_empty() {
        true => Ok(()),
        false => Err(format!("more than {limit} % above the first build: {}", over.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_over_the_limit_are_named() {
        let line = |counts: [f64; 2]| Line {
            workload: Some(workload::find("delete").expect("listed")),
            protocol: Protocol::Text,
            counts: counts.to_vec(),
        };
        assert_eq!(check_limit(&[line([1000.0, 1019.0])], 2.0), Ok(()));
        let refused = check_limit(&[line([1000.0, 900.0]), line([1000.0, 1030.0])], 2.0);
        assert_eq!(refused, Err("more than 2 % above the first build: delete (text) +3.0 %".to_owned()));
        assert!(table(&[line([1000.0, 1030.0])]).ends_with("| delete | text | 1000 | 1030 | +3.0 % |\n"));
    }

    #[test]
    fn every_oltp_workload_is_there() {
        assert!(OLTP.iter().all(|name| workload::find(name).is_some()));
    }
}
