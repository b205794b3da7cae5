//! Runs statements: binds names, plans, executes, builds row images for the binlog, keeps transactions.
//!
//! | module | concept |
//! |---|---|
//! | `database` | [`Database`]: all that sessions share; a value, not a global |
//! | `session` | [`Session`]: one connection's state; runs commands one after the other |
//! | `dispatch` | statement -> the code that runs it |
//! | `trx` | a session's transaction: engines, row locks, read view, savepoints, binlog cache, commit |
//! | `table` | rows of a table: access by index, writes with index maintenance, row images |
//! | `bind` | names of the AST -> ordinals, types and functions |
//! | `select/` | access paths, joins, grouping, sorting |
//! | `dml/` | INSERT, REPLACE, UPDATE, DELETE, BINLOG |
//! | `ddl/` | databases, tables, indexes; atomic (I2) |
//! | `show/` | SHOW, EXPLAIN, information_schema |

mod database;
mod session;

pub use database::Database;
pub use session::Session;
