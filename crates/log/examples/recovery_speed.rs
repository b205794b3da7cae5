//! Benchmark: prints the speed at which recovery reads a log from a warm cache, and the cost of append and
//! flush.
//!
//! `cargo run --release -p cohort-log --example recovery_speed [MIB] [PAYLOAD_BYTES]`

use std::path::Path;

use cohort_log::{Log, LogError, LogOptions, RecordKind, Recovery};
use cohort_vfs::World;

fn main() -> Result<(), LogError> {
    let mut args = std::env::args().skip(1).filter_map(|a| a.parse::<u64>().ok());
    let (mib, payload_bytes) = (args.next().unwrap_or(512), args.next().unwrap_or(400));
    let dir = tempfile::tempdir().expect("a directory for the log");
    let world = World::real();
    let log = Recovery::open(&world, dir.path(), LogOptions::default())?.finish()?;
    write(&world, &log, mib << 20, payload_bytes)?;
    small_flushes(&world, &log)?;
    drop(log);
    for _ in 0..3 {
        read(&world, dir.path())?;
    }
    Ok(())
}

fn write(world: &World, log: &Log, bytes: u64, payload_bytes: u64) -> Result<(), LogError> {
    let payload = vec![7; payload_bytes as usize];
    let count = bytes / payload_bytes;
    let mut append_ns = 0;
    for n in 0..count {
        let before = world.clock.monotonic_ns();
        let reservation = log.reserve(payload_bytes)?;
        log.append(reservation, RecordKind(1), &[&payload]);
        append_ns += world.clock.monotonic_ns() - before;
        if n % 10_000 == 0 {
            log.flush()?;
        }
    }
    log.flush()?;
    println!(
        "reserve + append: {} ns per record of {payload_bytes} B (segments being made included)",
        append_ns / count
    );
    Ok(())
}

fn small_flushes(world: &World, log: &Log) -> Result<(), LogError> {
    let count = 1000;
    let before = (world.clock.monotonic_ns(), log.stats().sync_ns_total);
    for _ in 0..count {
        let reservation = log.reserve(300)?;
        log.append(reservation, RecordKind(1), &[&[1; 300]]);
        log.flush()?;
    }
    let all = world.clock.monotonic_ns() - before.0;
    let sync = log.stats().sync_ns_total - before.1;
    println!(
        "flush of one record of 300 B: {} us, of which sync {} us",
        all / count / 1000,
        sync / count / 1000
    );
    Ok(())
}

fn read(world: &World, dir: &Path) -> Result<(), LogError> {
    let mut recovery = Recovery::open(world, dir, LogOptions::default())?;
    let (start, before) = (recovery.checkpoint().0, world.clock.monotonic_ns());
    let (mut records, mut end) = (0u64, start);
    while let Some(record) = recovery.next()? {
        records += 1;
        end = record.end;
    }
    let seconds = (world.clock.monotonic_ns() - before) as f64 / 1e9;
    let mib = (end.0 - start.0) as f64 / f64::from(1 << 20);
    println!("recovery: {records} records, {mib:.0} MiB in {seconds:.3} s: {:.0} MiB/s", mib / seconds);
    Ok(())
}
