//! Results of transactions: of one, of a terminal, of all terminals.

use std::time::Instant;

use cohort_base::{Histogram, HistogramSnapshot};

/// Result of one transaction.
#[derive(Default)]
pub struct Done {
    pub is_new_order: bool,
    pub retries: u64,
}

/// Result of the terminals' transactions in the measurement.
#[derive(Default)]
pub struct Outcome {
    pub transactions: u64,
    pub new_orders: u64,
    /// Number of retries after deadlocks and similar errors.
    pub retries: u64,
    pub seconds: f64,
    pub latencies: HistogramSnapshot,
    /// Processor time of the server and of this process.
    pub server_seconds: f64,
    pub client_seconds: f64,
}

/// The measured transactions of one terminal.
#[derive(Default)]
pub struct Tally {
    transactions: u64,
    new_orders: u64,
    retries: u64,
    latencies: Histogram,
}

impl Tally {
    /// Adds a transaction that has begun at a time and ends now.
    pub fn count(&mut self, done: &Done, began: Instant) {
        self.transactions += 1;
        self.new_orders += u64::from(done.is_new_order);
        self.retries += done.retries;
        self.latencies.record_alone(began.elapsed().as_nanos() as u64, 1);
    }
}

impl Outcome {
    /// Adds those of a terminal.
    pub fn add(&mut self, tally: &Tally) {
        self.transactions += tally.transactions;
        self.new_orders += tally.new_orders;
        self.retries += tally.retries;
        self.latencies.merge(&tally.latencies.snapshot());
    }
}
