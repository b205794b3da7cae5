//! The server around the executor: connections, workers, options, files of the data directory.
//!
//! | module | concept |
//! |---|---|
//! | `backend` | [`Backend`], [`Session`]: the seam between connections and whatever runs statements |
//! | `sql_backend` | [`SqlBackend`]: the executor behind that seam |
//! | `accounts`, `catalog_accounts` | [`Accounts`]: who may log in |
//! | `server` | [`Server`]: a running server, a value |
//! | `listen` | accepts connections |
//! | `half_open` | which connection ends when too many have not logged in |
//! | `connection` | one connection: who owns it, input, output, held replies |
//! | `ownership` | the small state machine that says which thread may touch a connection |
//! | `wire` | its bytes: a socket, and TLS over it |
//! | `login` | the handshake |
//! | `tls` | [`Tls`]: the context that connections are encrypted with |
//! | `commands` | commands to calls of the session |
//! | `cursor` | rows of a prepared query that are kept and fetched |
//! | `dump` | connections that became replicas |
//! | `drain` | output of a large result, sent while the statement runs |
//! | `pool` | workers over epoll; replacement of those that block |
//! | `fiber` | stacks that requests run on, so that a request that waits for a lock leaves its worker |
//! | `ready` | work for workers beside the events of epoll |
//! | `housekeeping` | timeouts, uptime |
//! | `init_file` | statements that run before clients do |
//! | `storage` | opens catalog, engine, locks and commit path |
//! | `datadir` | whose the data directory is |
//! | `signals`, `machine`, `systemd` | the process, the machine, the service manager |
//! | `control_group` | the memory that the process's control group may use |
//! | `descriptors` | how descriptors are shared out |
//! | `metrics` | the HTTP endpoint: Prometheus, and a page with live charts |
//! | `flush_watch` | the warning of slow flushes |
//! | `sync` | what the model checks put their own types in place of |
//! | `epoll` | epoll, eventfd and poll |
//! | `semi_sync` | settings and status of semi-synchronous commits |
//! | `error_log` | the error log |
//! | `audit_log`, `audit_file`, `syslog` | where the audit log goes |
//! | `statement_log` | files of the general and the slow query log |

mod accounts;
mod audit_file;
mod audit_log;
mod backend;
mod binlog_expiry;
pub mod binlog_watch;
mod catalog_accounts;
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
mod fiber;
pub mod flush_watch;
mod half_open;
mod housekeeping;
pub mod init_file;
mod listen;
mod login;
pub mod machine;
pub mod metrics;
mod ownership;
mod pool;
mod ready;
mod repeated;
mod semi_sync;
mod server;
mod server_files;
pub mod signals;
mod sql_backend;
mod statement_log;
pub mod storage;
mod sync;
mod syslog;
pub mod systemd;
mod tls;
pub mod warm;
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
