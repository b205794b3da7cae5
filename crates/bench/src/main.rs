//! Workload driver and side-by-side benchmark of servers. docs/benchmarks.md describes how to read and
//! reproduce its figures.
//!
//! It speaks the MySQL protocol to any server. Of Cohort's crates it uses only TLS and histograms.

mod args;
mod backup;
mod callgrind;
mod certificate;
mod connection;
mod demo;
mod dialect;
mod disk;
mod driver;
mod dump;
mod engine;
mod flushes;
mod goals;
mod html;
mod instructions;
mod interrupt;
mod large;
mod memory;
mod pipeline;
mod plan;
mod plot;
mod postgres;
mod process;
mod programs;
mod progress;
mod random;
mod recovery;
mod replica;
mod replication;
mod report;
mod results;
mod run;
mod sample;
mod servers;
mod socket;
mod sql;
mod ssb;
mod tables;
mod tpcc;
mod tpch;
mod turns;
mod wire;
mod workload;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use args::{Command, Pages};
use results::Results;

fn main() -> ExitCode {
    match args::parse(std::env::args().skip(1)).and_then(obey) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("cohort-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn obey(command: Command) -> Result<(), String> {
    match command {
        Command::Help => print(&args::help()),
        Command::Version => print(&args::version()),
        Command::Demo(demo) => {
            interrupt::catch();
            demo::run(&demo)
        }
        Command::Instructions(asked) => instructions::run(&asked),
        Command::Sql(asked) => sql::run(&asked),
        Command::Backup(asked) => {
            interrupt::catch();
            process::raise_open_files();
            backup::run(&asked)
        }
        Command::Engine(asked) => {
            interrupt::catch();
            engine::run(&asked)
        }
        Command::Programs(asked) => {
            interrupt::catch();
            programs::run(&asked)
        }
        Command::Run { run, json, pages } => {
            interrupt::catch();
            process::raise_open_files();
            let results = run::run(&run)?;
            if let Some(path) = json {
                write(&path, &format!("{:#}\n", results.to_json()))?;
            }
            show(&results, &pages)
        }
        Command::Report { json, pages } => {
            let mut runs = json.iter().map(|path| read(path));
            let mut results = runs.next().expect("the arguments name one at least")?;
            for (run, path) in runs.zip(&json[1..]) {
                let pooled = results.pool(run?);
                pooled.map_err(|why| format!("{}: not to be taken together: {why}", path.display()))?;
            }
            show(&results, &pages)
        }
    }
}

/// Prints a text. A reader that ends early, such as `head`, is no error.
fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Reads a file that `--json` wrote.
fn read(path: &Path) -> Result<Results, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let value = serde_json::from_str(&text).ok();
    let results = value.as_ref().and_then(Results::from_json);
    results.ok_or_else(|| format!("{}: not results of a run", path.display()))
}

fn show(results: &Results, pages: &Pages) -> Result<(), String> {
    if let Some(path) = &pages.html {
        write(path, &html::page(results))?;
    }
    if let Some(path) = &pages.docs {
        fill_in(path, &report::markdown(results))?;
    }
    if let Some(path) = &pages.front {
        fill_in(path, &report::in_short(results))?;
    }
    if let Some(path) = &pages.plot {
        let picture = plot::svg(results).ok_or("nothing to draw: MariaDB was not measured")?;
        write(path, &picture)?;
    }
    let text = report::markdown(results);
    match &pages.markdown {
        Some(path) => write(path, &text),
        None => print(&text),
    }
}

/// Writes results into the results section of a page.
fn fill_in(path: &Path, text: &str) -> Result<(), String> {
    let page = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let page = report::into_page(&page, text);
    write(path, &page.ok_or_else(|| format!("{}: has no place for results", path.display()))?)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
