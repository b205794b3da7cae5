//! Progress line at the bottom of a terminal: how far a run is, and its current step. Without a terminal
//! nothing is written.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

const CELLS: usize = 24;

/// Counts steps of equal weight.
pub struct Progress {
    began: Instant,
    steps: usize,
    done: usize,
}

impl Progress {
    pub fn new(steps: usize) -> Progress {
        Progress { began: Instant::now(), steps, done: 0 }
    }

    /// Counts a finished step.
    pub fn step(&mut self) {
        self.done += 1;
    }

    /// Replaces the line.
    pub fn show(&self, text: &str) {
        if stderr().is_terminal() {
            eprint!("\r\x1b[K{} {text}", bar(self.done, self.steps, self.began.elapsed()));
            let _ = stderr().flush();
        }
    }

    /// Writes a permanent line.
    pub fn say(&self, text: &str) {
        self.clear();
        eprintln!("{text}");
    }

    /// Removes the line.
    pub fn clear(&self) {
        if stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}

/// Returns a text like `[#####-------] 12/44, 6:10 left`. The time is omitted before the first step.
fn bar(done: usize, steps: usize, elapsed: Duration) -> String {
    let full = (CELLS * done).checked_div(steps).unwrap_or(0).min(CELLS);
    let cells = format!("{}{}", "#".repeat(full), "-".repeat(CELLS - full));
    let left = match done {
        0 => String::new(),
        done => {
            let seconds = elapsed.as_secs() * steps.saturating_sub(done) as u64 / done as u64;
            format!(", {}:{:02} left", seconds / 60, seconds % 60)
        }
    };
    format!("[{cells}] {done}/{steps}{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_comes_from_the_time_gone() {
        assert_eq!(bar(0, 4, Duration::from_secs(5)), format!("[{}] 0/4", "-".repeat(CELLS)));
        let half = bar(2, 4, Duration::from_secs(130));
        assert!(half.starts_with("[############------------] 2/4") && half.ends_with("2:10 left"), "{half}");
        assert!(bar(4, 4, Duration::ZERO).starts_with(&format!("[{}]", "#".repeat(CELLS))));
    }
}
