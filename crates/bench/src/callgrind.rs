//! Runs a server under valgrind's callgrind, which counts instructions per thread.
//!
//! Only the threads that run statements are counted, including the commits that they lead. Background work
//! (purge, binary log files, checkpoints) depends on elapsed time, not only on the statements.
//!
//! Counting begins right before the load; until then the server runs at valgrind's normal speed. No hardware
//! counters are used, so the counts are the same on a busy machine, in a virtual machine, and on another day.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

const VALGRIND: &str = "valgrind";
/// Program that sends commands to a process under valgrind.
const VGDB: &str = "vgdb";

/// Returns the command wrapped in callgrind, which writes its counts into `dir`.
pub fn wrap(command: &Command, dir: &Path) -> Command {
    let mut wrapped = Command::new(VALGRIND);
    wrapped.args(["--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes"]);
    wrapped.arg(format!("--callgrind-out-file={}", dir.join(DUMP).display()));
    wrapped.arg(command.get_program()).args(command.get_args());
    wrapped
}

const DUMP: &str = "callgrind.out";
/// Text that marks a thread that runs statements in its counts: calls of a trait object, which are never
/// inlined.
const WORKER: &str = " as cohort_server::backend::Session>::";

/// Instruction counter of a server under callgrind.
pub struct Counter {
    pid: u32,
    dir: PathBuf,
    dumps: u32,
}

impl Counter {
    /// Starts counting. `dir` is the directory passed to [`wrap`].
    pub fn new(pid: u32, dir: &Path) -> Result<Counter, String> {
        let counter = Counter { pid, dir: dir.to_owned(), dumps: 0 };
        counter.send("instrumentation on")?;
        Ok(counter)
    }

    /// Resets the counts.
    pub fn zero(&self) -> Result<(), String> {
        self.send("zero")
    }

    /// Returns the instructions since the last `zero`, and the files with the counts per function.
    pub fn count(&mut self) -> Result<(u64, Vec<PathBuf>), String> {
        self.send("dump")?;
        self.dumps += 1;
        let failed = |error: io::Error| format!("{}: {error}", self.dir.display());
        let prefix = format!("{DUMP}.{}-", self.dumps);
        let (mut count, mut files) = (0, Vec::new());
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !entry.file_name().to_string_lossy().starts_with(&prefix) {
                continue;
            }
            let text = fs::read_to_string(entry.path()).map_err(failed)?;
            if let Some(total) = total_of(&text).filter(|_| text.contains(WORKER)) {
                count += total;
                files.push(entry.path());
            }
        }
        match files.is_empty() {
            true => Err(format!("{}: no counts of a thread that runs statements", self.dir.display())),
            false => Ok((count, files)),
        }
    }

    fn send(&self, what: &str) -> Result<(), String> {
        let mut command = Command::new(VGDB);
        command.arg(format!("--pid={}", self.pid)).args(what.split(' '));
        let output = command.output().map_err(|error| format!("{VGDB}: {error}; install valgrind"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{VGDB} {what}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Returns the total at the end of a dump.
fn total_of(dump: &str) -> Option<u64> {
    let line = dump.lines().rev().find_map(|line| line.strip_prefix("totals: "))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_after_the_functions() {
        assert_eq!(total_of("events: Ir\nsummary: 9\nfn=(1) a\n5 7\ntotals: 12\n"), Some(12));
        assert_eq!(total_of("events: Ir\n5 7\n"), None);
    }

    #[test]
    fn the_server_and_its_arguments_come_last() {
        let mut command = Command::new("/x/cohortd");
        command.arg("--port=1");
        let wrapped = wrap(&command, Path::new("/d"));
        let arguments: Vec<_> = wrapped.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(arguments.contains(&"--callgrind-out-file=/d/callgrind.out".to_owned()));
        assert_eq!(arguments[arguments.len() - 2..], ["/x/cohortd", "--port=1"]);
    }
}
