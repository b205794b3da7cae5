//! The server that runs the executor: connections, worker threads, options, and the data directory.
//!
//! | module | concept |
//! |---|---|
//! | `backend` | [`Backend`], [`Session`]: interface between connections and the executor |
//! | `sql_backend` | [`SqlBackend`]: the implementation of that interface |
//! | `accounts`, `catalog_accounts` | [`Accounts`]: accounts that can log in |
//! | `server` | [`Server`]: a running server; a value, not a global |
//! | `listen` | accepts connections |
//! | `half_open` | choice of the connection to close when too many have not logged in |
//! | `connection` | one connection: ownership, input, output, replies that wait for durability |
//! | `ownership` | state machine that decides which thread may use a connection |
//! | `wire` | socket of a connection, with optional TLS |
//! | `login` | the handshake |
//! | `tls` | [`Tls`]: the TLS context of client connections |
//! | `commands` | maps protocol commands to calls of the session |
//! | `cursor` | cursors: stored rows of a prepared query, fetched in parts |
//! | `dump` | connections of replicas |
//! | `drain` | output of a large result, sent while the statement runs |
//! | `pool` | worker threads over epoll; replacement of blocked workers |
//! | `fiber` | stacks that requests run on: a request that waits for a lock does not block its worker |
//! | `ready` | ready queue: work for the workers that does not come from epoll |
//! | `housekeeping` | timeouts, uptime |
//! | `archive` | the process that stores the archive of the log |
//! | `event_scheduler` | the thread that starts the runs of events |
//! | `init_file` | statements that run before clients are admitted |
//! | `system_tables` | stored tables of the schema mysql |
//! | `storage` | opens catalog, engines, locks and commit path |
//! | `datadir` | recognises and locks the data directory |
//! | `signals`, `machine`, `systemd` | the process, the machine, the service manager |
//! | `control_group` | memory limit of the process's control group |
//! | `descriptors` | distribution of file descriptors |
//! | `metrics` | the HTTP endpoint: Prometheus, and a page with live charts |
//! | `flush_watch` | warnings about slow flushes |
//! | `sync` | synchronization types, which the model checks replace |
//! | `epoll` | wrappers of epoll, eventfd and poll |
//! | `semi_sync` | settings and status of semi-synchronous commits |
//! | `error_log` | the error log |
//! | `audit_log`, `audit_file`, `syslog` | destinations of the audit log |
//! | `statement_log` | files of the general and the slow query log |

mod accounts;
pub mod archive;
mod audit_file;
mod audit_log;
mod backend;
mod binlog_expiry;
pub mod binlog_watch;
mod catalog_accounts;
pub mod cloned;
mod commands;
mod connection;
mod control_group;
mod cursor;
pub mod datadir;
pub mod descriptors;
mod drain;
mod dump;
mod epoll;
mod error_log;
pub mod event_scheduler;
mod fiber;
pub mod flush_watch;
mod half_open;
mod housekeeping;
pub mod init_file;
pub mod kept_statistics;
mod listen;
mod login;
pub mod machine;
pub mod metrics;
mod ownership;
pub mod pid_file;
mod pool;
pub mod pool_dump;
mod ready;
mod repeated;
mod semi_sync;
mod server;
mod server_files;
mod shared;
pub mod signals;
mod sql_backend;
mod statement_log;
pub mod storage;
mod sync;
mod syslog;
pub mod system_tables;
pub mod systemd;
mod tls;
mod wire;

pub use accounts::{Account, Accounts, BootstrapAccounts, Found, Method};
pub use backend::{
    Backend, ConnectionInfo, Killed, MultiStatements, PreparedStatement, Session, SessionSettings, Wake,
};
pub use binlog_expiry::BinlogExpiry;
pub use catalog_accounts::CatalogAccounts;
pub use error_log::ErrorLog;
pub use listen::Endpoints;
pub use pool::{WorkerLimits, Workers};
pub use server::{Server, ServerOptions, StartError};
pub use sql_backend::SqlBackend;
pub use tls::{Tls, TlsStatus};
