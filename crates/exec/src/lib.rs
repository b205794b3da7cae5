//! Runs statements: binds names, plans, executes, builds row images for the binlog, keeps transactions.
//!
//! | module | concept |
//! |---|---|
//! | `database` | [`Database`]: all that sessions share; a value, not a global |
//! | `process_list` | [`ProcessList`]: the connections, for SHOW PROCESSLIST and KILL |
//! | `session` | [`Session`]: one connection's state; runs commands one after the other |
//! | `statement` | [`StatementContext`]: what the code of one running statement sees |
//! | `dispatch` | statement -> the code that runs it |
//! | `trx` | a session's transaction: engines, row locks, read view, savepoints, binlog cache, commit |
//! | `table` | rows of a table: access by index, writes with index maintenance, row images |
//! | `bind/` | names of the AST -> row slots, types and functions |
//! | `plan/` | access paths, join order, plans that sessions share |
//! | `select/` | joins, grouping, sorting |
//! | `dml/` | INSERT, REPLACE, UPDATE, DELETE, BINLOG |
//! | `ddl/` | databases, tables, indexes; atomic (I2) |
//! | `virtual_table` | [`VirtualTable`]: tables that the server computes |
//! | `show/` | SHOW, information_schema |

mod bind;
mod database;
mod dml;
mod plan;
mod process_list;
mod session;
mod statement;
mod table;
mod trx;
mod virtual_table;

pub use database::Database;
pub use process_list::{Command, Process, ProcessIdentity, ProcessList, ProcessSnapshot};
pub use session::{ConnectionInfo, Session};
pub use statement::StatementContext;
pub use table::TableRegistry;
pub use trx::{BinlogCache, TrxIds};
pub use virtual_table::{VirtualColumn, VirtualTable};
