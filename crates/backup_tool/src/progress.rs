//! Progress bars and the rate limit.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const WITH_END: &str = "{msg} {bytes}/{total_bytes} {wide_bar} {binary_bytes_per_sec} {eta}";
const WITHOUT_END: &str = "{msg} {bytes} {spinner} {binary_bytes_per_sec} {elapsed}";

/// A progress bar on standard error, if that is a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Starts a bar. `is_quiet` hides it.
    pub fn new(message: &'static str, is_quiet: bool) -> Progress {
        let target = match is_quiet || !std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(5),
        };
        let bar = ProgressBar::with_draw_target(None, target).with_message(message);
        let progress = Progress { bar };
        progress.expect(None);
        progress
    }

    /// Returns a bar that is not shown.
    pub fn hidden() -> Progress {
        Progress::new("", true)
    }

    /// Sets the number of bytes to expect.
    pub fn expect(&self, bytes: Option<u64>) {
        let template = if bytes.is_some() { WITH_END } else { WITHOUT_END };
        self.bar.set_style(ProgressStyle::with_template(template).expect("a correct template"));
        if let Some(bytes) = bytes {
            self.bar.set_length(bytes);
        }
    }

    pub fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Limits a rate: the caller sleeps as long as it is ahead.
pub struct Pace {
    rate: Option<u64>,
    begun: Instant,
    spent: u64,
}

/// A source that was slow may not catch up more than this.
const CREDIT: Duration = Duration::from_secs(1);

impl Pace {
    /// `rate` is in bytes per second.
    pub fn new(rate: Option<u64>) -> Pace {
        Pace { rate: rate.filter(|rate| *rate > 0), begun: Instant::now(), spent: 0 }
    }

    pub fn spend(&mut self, bytes: usize) {
        let Some(rate) = self.rate else { return };
        self.spent += bytes as u64;
        let due = Duration::from_secs_f64(self.spent as f64 / rate as f64);
        let elapsed = self.begun.elapsed();
        match due.checked_sub(elapsed) {
            Some(ahead) => std::thread::sleep(ahead),
            None if elapsed - due > CREDIT => (self.begun, self.spent) = (Instant::now(), 0),
            None => {}
        }
    }
}
