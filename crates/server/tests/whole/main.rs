//! The whole server with RocksDB, as processes: what its users, its operators and its neighbours see.
//!
//! Cohort is compared to a real MariaDB where that says what is right. `COHORT_LONG_TESTS=1` makes the
//! bounded shares long.

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
mod foreign_keys;
mod moved_columns;
mod online_ddl;
mod page_form;
mod server_files;
mod sessions;
mod side_by_side;
mod workloads;
