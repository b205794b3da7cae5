//! `cohort-backup`: takes, keeps and restores backups of Cohort servers.
//!
//! | module | concept |
//! |---|---|
//! | `cli` | the command line: its help, man page, completions and results |
//! | `take`, `restore`, `verify`, `prune`, `clone` | the commands |
//! | `prove` | `verify --restore`: a server in a scratch directory checks the tables |
//! | `table` | `restore --table`: copies a table of a backup into a running server |
//! | `scratch` | a server in a restored directory, for this program alone |
//! | `repository`, `catalogue`, `lock` | what a repository contains |
//! | `archive` | the archive of the log: the process that stores it, restores to a point in time |
//! | `object`, `key` | one object: compression, encryption, checksum |
//! | `store` | the wall in front of `object_store` and its async runtime |
//! | `source`, `account` | sources of a backup; options of the connection to a server |
//! | `workers`, `progress` | threads, rate limit, progress bars |
//! | `failure` | failures and exit codes |
//!
//! `cohort_clone` has the connection to a server, the receiver of its stream, and the directory that
//! `restore` and `clone` fill. The server does not contain this crate. docs/backup-format.md describes the
//! repository to the byte.

pub use cohort_clone::{client, target};

mod account;
pub mod archive;
pub mod catalogue;
pub mod cli;
pub mod clone;
pub mod failure;
mod hex;
pub mod key;
pub mod lock;
mod moment;
pub mod object;
pub mod progress;
pub mod prove;
pub mod prune;
pub mod repository;
pub mod restore;
pub mod scratch;
pub mod source;
pub mod store;
pub mod table;
pub mod take;
pub mod verify;
mod workers;
