//! Runs the bare commit pipeline, which is a separate program (`crates/commit/examples/pipeline_speed.rs`),
//! with its flushes counted and slowed down like a server's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::disk::Disk;
use crate::flushes::Flushes;
use crate::results::PipelineResult;

const PROGRAM: &str = "pipeline_speed";

/// Measures the pipeline with the given number of threads and duration in a folder below `dir`.
pub fn measure(dir: &Path, threads: usize, disk: Disk, time: Duration) -> Result<PipelineResult, String> {
    let program = find()?;
    let folder = dir.join("pipeline");
    let at = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(at)?;
    let flushes = Flushes::new(&folder).map_err(at)?;
    flushes.set_disk(disk);
    let mut command = Command::new(&program);
    command.arg(&folder).arg(time.as_secs_f64().to_string()).arg(threads.to_string());
    flushes.preload_into(&mut command);
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    std::fs::remove_dir_all(&folder).map_err(at)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{PROGRAM} failed ({}): {}", output.status, said.trim()));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    parse(&said, disk).ok_or_else(|| format!("{PROGRAM} said what is not understood: {}", said.trim()))
}

/// Parses the last line: threads, transactions/s, group size, microseconds of a flush.
fn parse(said: &str, disk: Disk) -> Option<PipelineResult> {
    let fields: Vec<f64> =
        said.lines().last()?.split_whitespace().map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let [threads, per_second, group_size, flush_us] = fields[..] else { return None };
    Some(PipelineResult { threads: threads as u64, disk: disk.name(), per_second, group_size, flush_us })
}

fn find() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| format!("{PROGRAM}: {error}"))?;
    let path = here.with_file_name("examples").join(PROGRAM);
    match path.exists() {
        true => Ok(path),
        false => Err(format!(
            "{} is not there: cargo build --release -p cohort-commit --example {PROGRAM}",
            path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_s_last_line_is_read() {
        let said =
            "threads  transactions/s  group size  flush us\n     64          512345       310.5       131\n";
        let result = parse(said, Disk::FAST).expect("understood");
        assert_eq!((result.threads, result.per_second, result.disk.as_str()), (64, 512_345.0, "120us"));
        assert!(parse("threads transactions/s\n", Disk::FAST).is_none());
    }
}
