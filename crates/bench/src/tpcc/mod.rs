//! TPC-C: the five transactions of a wholesale supplier, without keying and thinking times, so that the
//! figure is the maximum of the server with a number of terminals.
//!
//! [`load`] fills the nine tables as clause 4.3 of the standard describes. [`run`] drives terminals, each
//! with its own connection, from one thread. [`procedures`] runs the same transactions as stored procedures.
//! [`check`] verifies the consistency conditions of clause 3.3.2,
//! which each state of the tables fulfils.
//!
//! Deviations from the standard: terminals are not bound to a district, its response times are not required,
//! and figures count transactions of all kinds, not only new orders.

mod inputs;
mod line;
mod load;
mod outcome;
pub mod procedures;
mod terminal;

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::connection::{Address, Connection, ConnectionError};
use crate::process;
use crate::tables::SCHEMA;

pub use load::load;
pub use outcome::Outcome;
use outcome::Tally;
pub use terminal::Terminal;

pub const DISTRICTS: u32 = 10;
/// Customers of a district; it starts with as many orders.
pub const CUSTOMERS: u32 = 3000;
pub const ITEMS: u32 = 100_000;

/// Drives the given number of terminals. `server` is the server's process id.
pub fn run(
    address: &Address,
    server: u32,
    warehouses: u32,
    terminals: u32,
    warm: Duration,
    measure: Duration,
) -> Result<Outcome, String> {
    let error_text = |error: ConnectionError| error.to_string();
    let open = |n| Terminal::open(address, SCHEMA, u64::from(n) + 1, warehouses);
    let terminals: Result<Vec<Terminal>, _> = (0..terminals).map(open).collect();
    let phase = Cell::new(Phase::Warm);
    let used = || [server, std::process::id()].map(|id| process::processor_seconds(id).unwrap_or(0.0));
    let (mut began, mut used_before) = (Instant::now(), [0.0; 2]);
    let mut outcome = Outcome::default();
    let look = || match phase.get() {
        Phase::Warm if began.elapsed() >= warm => {
            phase.set(Phase::Measure);
            (began, used_before) = (Instant::now(), used());
        }
        Phase::Measure if began.elapsed() >= measure => {
            phase.set(Phase::Stop);
            outcome.seconds = began.elapsed().as_secs_f64();
            let used = used();
            outcome.server_seconds = used[0] - used_before[0];
            outcome.client_seconds = used[1] - used_before[1];
        }
        _ => {}
    };
    let start = |terminal| until_stopped(terminal, &phase);
    let tallies = line::drive(terminals.map_err(error_text)?, start, look).map_err(error_text)?;
    tallies.iter().for_each(|tally| outcome.add(tally));
    Ok(outcome)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Warm,
    Measure,
    Stop,
}

/// Runs a number of transactions on one terminal.
pub fn repeat(terminal: &mut Terminal, transactions: u32) -> Result<(), ConnectionError> {
    line::drive(vec![terminal], |terminal| until(terminal, transactions), || {}).map(drop)
}

async fn until(terminal: &mut Terminal, transactions: u32) -> Result<(), ConnectionError> {
    for _ in 0..transactions {
        terminal.next().await?;
    }
    Ok(())
}

async fn until_stopped(mut terminal: Terminal, phase: &Cell<Phase>) -> Result<Tally, ConnectionError> {
    let mut tally = Tally::default();
    while phase.get() != Phase::Stop {
        let began = Instant::now();
        let done = terminal.next().await?;
        if phase.get() == Phase::Measure {
            tally.count(&done, began);
        }
    }
    Ok(tally)
}

/// Consistency conditions, each with a query that returns its violations.
const CONDITIONS: &[(&str, &str)] = &[
    (
        "W_YTD is the sum of D_YTD",
        "SELECT w_id FROM warehouse JOIN (SELECT d_w_id, SUM(d_ytd) s FROM district GROUP BY d_w_id) d \
         ON d_w_id = w_id WHERE w_ytd <> s",
    ),
    (
        "D_NEXT_O_ID is the last order's number and one",
        "SELECT d_w_id, d_id FROM district JOIN (SELECT o_w_id, o_d_id, MAX(o_id) m FROM orders \
         GROUP BY o_w_id, o_d_id) o ON o_w_id = d_w_id AND o_d_id = d_id WHERE d_next_o_id <> m + 1",
    ),
    (
        "new orders are numbered without gaps",
        "SELECT no_w_id, no_d_id FROM new_orders GROUP BY no_w_id, no_d_id \
         HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    ),
    (
        "orders have as many lines as o_ol_cnt",
        "SELECT a.o_w_id, a.o_d_id FROM \
         (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) n FROM orders GROUP BY o_w_id, o_d_id) a JOIN \
         (SELECT ol_w_id, ol_d_id, COUNT(*) n FROM order_line GROUP BY ol_w_id, ol_d_id) b \
         ON a.o_w_id = b.ol_w_id AND a.o_d_id = b.ol_d_id WHERE a.n <> b.n",
    ),
    (
        "an order has no carrier if and only if it is new",
        "SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN new_orders ON no_w_id = o_w_id AND \
         no_d_id = o_d_id AND no_o_id = o_id WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) LIMIT 1",
    ),
    (
        "W_YTD is the sum of H_AMOUNT",
        "SELECT w_id FROM warehouse JOIN (SELECT h_w_id, SUM(h_amount) s FROM history GROUP BY h_w_id) h \
         ON h_w_id = w_id WHERE w_ytd <> s",
    ),
    (
        "D_YTD is the sum of H_AMOUNT",
        "SELECT d_w_id, d_id FROM district JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) s FROM history \
         GROUP BY h_w_id, h_d_id) h ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> s",
    ),
    (
        "a line has a delivery date if and only if its order has a carrier",
        "SELECT ol_w_id, ol_d_id, ol_o_id FROM order_line JOIN orders ON o_w_id = ol_w_id AND \
         o_d_id = ol_d_id AND o_id = ol_o_id WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL) LIMIT 1",
    ),
];

/// Fails with the first violation of a consistency condition.
pub fn check(address: &Address) -> Result<(), String> {
    let mut connection = Connection::open(address, SCHEMA).map_err(|error| error.to_string())?;
    for (condition, sql) in CONDITIONS {
        let found = connection.query(sql).map_err(|error| format!("{error}: {sql}"))?;
        if let Some(row) = found.first() {
            return Err(format!("TPC-C: not true that {condition}: {row:?}"));
        }
    }
    Ok(())
}
