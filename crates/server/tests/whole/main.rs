//! The whole server with RocksDB, as a process, from the view of users and operators.
//!
//! Cohort is compared to a real MariaDB where MariaDB defines the correct result. `COHORT_LONG_TESTS=1` runs
//! the long variants.

mod raw;
mod scale;
mod script;
#[path = "../support/mod.rs"]
mod support;

mod bad_clients;
mod binlog_exchange;
mod cli;
mod compatibility;
mod compressed;
mod damage;
mod ddl_kill;
mod disk_full;
mod dumped_programs;
mod foreign_keys;
mod moved_columns;
mod online_ddl;
mod page_format;
mod server_files;
mod sessions;
mod side_by_side;
mod workloads;
