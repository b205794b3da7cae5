//! Isolation levels as in InnoDB: sessions wait for each other as on a real MariaDB, and histories of many
//! concurrent connections contain no forbidden cycles.

mod cycles;
mod histories;
mod schedules;
#[path = "../support/mod.rs"]
mod support;
