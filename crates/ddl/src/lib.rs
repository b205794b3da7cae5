//! DDL: databases, tables, indexes, accounts.
//!
//! # A DDL statement
//! 1. The previous transaction is committed (`dispatch`).
//! 2. Metadata locks are taken: `Global` shared, then schemas, then tables, in the order of their names.
//!    Names that change are locked exclusively: all transactions that used them have published, and none uses
//!    them now.
//! 3. The new description is built and checked against the catalog, which cannot change under the locks.
//! 4. Data that the new description needs (a new index, a copied table) is bulk loaded into index trees that
//!    nothing refers to yet. Other sessions may use the table meanwhile as described in `rebuild`; at the end
//!    its metadata lock is exclusive again.
//! 5. One commit record contains the catalog's redo, the statement's writes and its QUERY event (I2), so the
//!    statement is atomic.
//! 6. After publish, index trees that are no longer referenced are freed.
//!
//! # On failure
//! Before step 5, the locks are released and the loaded index trees are dropped. A crash before step 5, or
//! between 5 and 6, leaves index trees that no table refers to; [`drop_orphans`] frees them at the next
//! start.
//!
//! # Missing
//! Partitions. Copying a table concurrently with writers, if a new row depends on more than its old row;
//! readers can continue (`rebuild`).
//!
//! | module | concept |
//! |---|---|
//! | `statements` | the statements, each for shared and for temporary tables |
//! | `work` | locks, ids and the commit of a statement |
//! | `database` | CREATE, ALTER, DROP DATABASE |
//! | `draft` | [`TableDraft`]: a table while a statement describes it |
//! | `describe` | checks a draft and assigns its numbers |
//! | `column` | column definitions |
//! | `key` | key definitions |
//! | `rules` | expressions of generated columns and CHECK constraints |
//! | `options` | table options |
//! | `page_format`, `engine_format` | options for the page format on disk; passing it to engines |
//! | `create_table` | CREATE TABLE |
//! | `create_text` | SHOW CREATE |
//! | `create_select` | CREATE TABLE ... SELECT |
//! | `drop_table` | DROP, TRUNCATE, RENAME TABLE |
//! | `alter_table` | ALTER TABLE, CREATE INDEX, DROP INDEX |
//! | `clauses` | the ALGORITHM and LOCK clauses of ALTER TABLE |
//! | `extent` | determines the part of a table's data that ALTER TABLE must rebuild |
//! | `rebuild` | rebuilds it |
//! | `counting` | generates the values of a new AUTO_INCREMENT column |
//! | `convert` | CONVERT TO CHARACTER SET |
//! | `sequence` | CREATE, ALTER SEQUENCE |
//! | `temporary` | DDL on a session's temporary tables |
//! | `view` | CREATE, ALTER, DROP VIEW |
//! | `program` | locks, texts and checks of stored programs |
//! | `routine` | CREATE, ALTER, DROP PROCEDURE and FUNCTION |
//! | `trigger` | CREATE, DROP TRIGGER |
//! | `event` | CREATE, ALTER, DROP EVENT |
//! | `definer` | the owners of views and stored programs, and the settings stored with these |
//! | `foreign` | foreign keys of tables that are created, altered, renamed and dropped |
//! | `foreign_rows` | checks a table's rows against new foreign keys |
//! | `account` | users |
//! | `account_changes` | the pending account changes of a statement, and the lock for them |
//! | `account_rules` | REQUIRE, limits, account locking and password expiry |
//! | `role` | roles |
//! | `take_over` | accounts of a dump: FLUSH PRIVILEGES |
//! | `grant`, `grantee` | GRANT, REVOKE; the account that receives privileges |
//! | `proxy` | GRANT PROXY, REVOKE PROXY |
//! | `grant_list` | granted privileges, for SHOW GRANTS and information_schema |
//! | `password_check` | rejects weak new passwords |
//! | `orphans` | [`drop_orphans`] |

mod account;
mod account_changes;
mod account_rules;
mod alter_table;
mod clauses;
mod column;
mod convert;
mod counting;
mod create_select;
mod create_table;
pub mod create_text;
mod database;
mod definer;
mod describe;
mod draft;
mod drop_table;
mod engine_format;
mod event;
mod extent;
mod foreign;
mod foreign_rows;
mod grant;
mod grant_list;
mod grantee;
mod key;
mod options;
mod orphans;
mod page_format;
mod password_check;
mod performance;
mod program;
mod proxy;
mod rebuild;
mod role;
mod routine;
mod rules;
mod sequence;
mod statements;
mod take_over;
mod temporary;
mod trigger;
mod view;
mod work;

pub use account::{create_user_lines, resolve as resolve_account, set_password};
pub use alter_table::recreate;
pub use engine_format::set_page_formats;
pub use event::{
    ScheduleValues, TimeValue, create_text as event_text, disable_event, interval_text,
    local_time as event_time,
};
pub use grant_list::{Granted, GrantedOn, grant_lines, grant_list};
pub use orphans::drop_orphans;
pub use role::set_default_role;
pub use routine::create_text as routine_text;
pub use statements::{
    alter_database, alter_event, alter_routine, alter_sequence, alter_table, alter_user, check_as_parser,
    create_database, create_event, create_index, create_role, create_routine, create_table, create_trigger,
    create_user, create_view, drop_database, drop_event, drop_index, drop_role, drop_routine, drop_table,
    drop_trigger, drop_user, grant, rename_table, rename_user, revoke, truncate,
};
pub use take_over::{lock_replaced, take_over};
pub use trigger::create_text as trigger_text;
pub use view::{attributes as view_attributes, query_text, shown_text};
pub use work::{change_event, log_statement, mode_of_own_texts, query_event};

/// The result for the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DdlOutcome {
    pub affected: u64,
    /// `Records: 0  Duplicates: 0  Warnings: 0` of ALTER TABLE.
    pub info: String,
    /// The session's current database, if it was dropped.
    pub dropped_schema: Option<String>,
}
