//! Worker threads for a stream of jobs, so that compression, encryption and the store's latency overlap.
//!
//! Memory is bounded: a job waits until a worker is free.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::failure::{Failure, Result};

/// Maximum number of workers: each has two buffers of a chunk's size, and so has the queue before it.
const WORKERS_MAX: usize = 4;
/// With fewer the store's latency shows.
const WORKERS_MIN: usize = 3;

fn count() -> usize {
    std::thread::available_parallelism().map_or(WORKERS_MIN, NonZero::get).clamp(WORKERS_MIN, WORKERS_MAX)
}

/// The entrance to the workers.
pub struct Entrance<J> {
    jobs: SyncSender<J>,
}

impl<J> Entrance<J> {
    /// Hands a job to a worker; waits while all are busy. `Err` if a worker has failed; `run` returns its
    /// failure.
    pub fn send(&self, job: J) -> std::result::Result<(), Stopped> {
        self.jobs.send(job).map_err(|_| Stopped)
    }
}

/// A worker has failed.
#[derive(Debug)]
pub struct Stopped;

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Failure {
        Failure::Failed("stopped by another failure".to_owned())
    }
}

/// Runs `work` for every job that `feed` sends, and returns the result of `feed`. The first failure of a
/// worker precedes that of `feed`.
pub fn run<J: Send, T>(
    work: impl Fn(J) -> Result<()> + Sync,
    feed: impl FnOnce(&Entrance<J>) -> Result<T>,
) -> Result<T> {
    let (jobs, queue) = sync_channel(0);
    let queue: Mutex<Option<Receiver<J>>> = Mutex::new(Some(queue));
    let failed: Mutex<Option<Failure>> = Mutex::new(None);
    let stops = AtomicBool::new(false);
    let fed = std::thread::scope(|scope| {
        for _ in 0..count() {
            scope.spawn(|| {
                while !stops.load(Ordering::Relaxed) {
                    let job = queue.lock().expect("no worker panics").as_ref().and_then(|q| q.recv().ok());
                    let Some(job) = job else { return };
                    if let Err(failure) = work(job) {
                        stops.store(true, Ordering::Relaxed);
                        failed.lock().expect("no worker panics").get_or_insert(failure);
                    }
                }
                // Without a receiver the feeder stops.
                queue.lock().expect("no worker panics").take();
            });
        }
        let entrance = Entrance { jobs };
        feed(&entrance)
    });
    match failed.into_inner().expect("no worker panics") {
        Some(failure) => Err(failure),
        None => fed,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn all_jobs_are_done_and_a_failure_stops_the_feeder() {
        let sum = AtomicUsize::new(0);
        let feed = |entrance: &Entrance<usize>| (1..=1000).try_for_each(|n| Ok(entrance.send(n)?));
        let add = |n| {
            sum.fetch_add(n, Ordering::Relaxed);
            Ok(())
        };
        assert_eq!(run(add, feed), Ok(()));
        assert_eq!(sum.load(Ordering::Relaxed), 500_500);
        let sent = AtomicUsize::new(0);
        let endless = |entrance: &Entrance<usize>| {
            loop {
                entrance.send(sent.fetch_add(1, Ordering::Relaxed))?;
            }
        };
        let fails = |n| if n == 7 { Err(Failure::Failed("seven".to_owned())) } else { Ok(()) };
        let outcome: Result<()> = run(fails, endless);
        assert_eq!(outcome, Err(Failure::Failed("seven".to_owned())));
    }
}
