//! The long run of the crash tests: `./x crash --minutes N`.
//!
//! Alternates between the explorer on the in-memory world, with a new seed each time, and rounds of a real
//! server that is killed under load. Exits with status 1 at the first violation and prints the seed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cohort_commit::LogLayout;
use cohort_sim::kill::{Books, Target, bulk_end, end};
use cohort_sim::{BulkOutcome, Logged, Script, Setup, Violation, explore};

struct Arguments {
    minutes: u64,
    seed: u64,
    port: u16,
    server: PathBuf,
}

fn arguments() -> Result<Arguments, String> {
    let sibling = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("cohortd")));
    let mut found = Arguments { minutes: 1, seed: 1, port: 33_900, server: sibling.unwrap_or_default() };
    let mut rest = std::env::args().skip(1);
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or(format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|e| format!("{name} {value}: {e}"));
        match name.as_str() {
            "--minutes" => found.minutes = number()?,
            "--seed" => found.seed = number()?,
            "--port" => found.port = u16::try_from(number()?).map_err(|e| format!("{name}: {e}"))?,
            "--server" => found.server = PathBuf::from(value),
            _ => return Err(format!("unknown option {name}; known: --minutes --seed --port --server")),
        }
    }
    Ok(found)
}

fn run(arguments: &Arguments) -> Result<(), Violation> {
    let folder = std::env::temp_dir().join(format!("cohort-crash-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Violation(format!("{}: {e}", folder.display())))?;
    let target = Target {
        server: arguments.server.clone(),
        datadir: folder.join("data"),
        port: arguments.port,
        clients: 8,
        bulk_engine: "InnoDB",
        log_layout: if arguments.seed.is_multiple_of(2) { "separate" } else { "shared" },
    };
    target.set_up()?;
    // Has its own data directory, because each round reads all binlog files of the transfers.
    let bulk_target = Target { datadir: folder.join("bulk"), port: arguments.port + 1, ..target.clone() };
    bulk_target.set_up_bulk()?;
    let (start, limit) = (Instant::now(), Duration::from_secs(60 * arguments.minutes));
    let (mut books, mut seed, mut recoveries) = (Books::default(), arguments.seed, 0);
    let mut bulk = BulkOutcome::default();
    while start.elapsed() < limit {
        let script = Script { seed, transfers: 60, resets: seed % 2 == 1, logged: Logged::All };
        for layout in [LogLayout::Shared, LogLayout::Separate] {
            recoveries += explore(script, Setup::of(layout), seed % 3, 3)?.recoveries;
        }
        for round in 0..16 {
            if start.elapsed() < limit {
                target.round(&mut books, &end(round, seed), seed)?;
            }
            if start.elapsed() < limit {
                let outcome = bulk_target.bulk_round(&bulk_end(round, seed), seed + 1000 * round)?;
                bulk.batches += outcome.batches;
                bulk.index_changes += outcome.index_changes;
            }
        }
        println!(
            "seed {seed}: {} s, {recoveries} recoveries explored, {} crashes of the server under transfers, {} of which were acknowledged, and under \
             bulk statements, {} of them and {} changes of an index, no violation",
            start.elapsed().as_secs(),
            books.rounds,
            books.acknowledged,
            bulk.batches,
            bulk.index_changes
        );
        seed += 1;
    }
    std::fs::remove_dir_all(&folder).map_err(|e| Violation(format!("{}: {e}", folder.display())))
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(text) => {
            eprintln!("crash: {text}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(violation) => {
            eprintln!("VIOLATION: {}", violation.0);
            ExitCode::FAILURE
        }
    }
}
