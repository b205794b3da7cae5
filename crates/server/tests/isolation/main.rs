//! Isolation levels as InnoDB's users rely on them: who waits for whom, as a real MariaDB has it, and
//! histories of many connections without forbidden cycles.

mod cycles;
mod histories;
mod schedules;
#[path = "../support/mod.rs"]
mod support;
