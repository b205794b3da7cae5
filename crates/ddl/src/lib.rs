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
//! | `work` | locks, ids and the commit of a statement |
//! | `database` | CREATE, ALTER, DROP DATABASE |
//! | `draft` | [`TableDraft`]: a table being described |
//! | `column` | column definitions |
//! | `key` | key definitions |
//! | `rules` | expressions of generated columns and CHECK constraints |
//! | `options` | table options |
//! | `page_format` | options for the page format on disk |
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
//! | `foreign` | foreign keys of tables that are created, altered, renamed and dropped |
//! | `foreign_rows` | checks a table's rows against new foreign keys |
//! | `account` | users |
//! | `account_changes` | the pending account changes of a statement, and the lock for them |
//! | `account_rules` | REQUIRE, limits, account locking and password expiry |
//! | `role` | roles |
//! | `grant` | GRANT, REVOKE |
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
mod draft;
mod drop_table;
mod extent;
mod foreign;
mod foreign_rows;
mod grant;
mod grant_list;
mod key;
mod options;
mod orphans;
mod page_format;
mod password_check;
mod proxy;
mod rebuild;
mod role;
mod rules;
mod sequence;
mod temporary;
mod view;
mod work;

use cohort_plan::charset::check_names;
use cohort_session::StatementContext;
use cohort_sql::ast::Statement;
use cohort_types::SqlResult;

pub use account::{create_user_lines, resolve as resolve_account, set_password};
pub use alter_table::recreate;
pub use grant_list::{Granted, GrantedOn, grant_lines, grant_list};
pub use orphans::drop_orphans;
pub use page_format::set_page_formats;
pub use role::set_default_role;
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

/// Runs a statement about databases, tables, indexes or accounts. Returns `None` for other statements. No
/// transaction is open afterwards, whatever the outcome.
pub fn run(ctx: &mut StatementContext<'_>, statement: &Statement) -> Option<SqlResult<DdlOutcome>> {
    if let Err(error) = check_names(statement) {
        return Some(Err(error));
    }
    if let Some(outcome) = temporary::run(ctx, statement) {
        return Some(outcome);
    }
    let outcome = match statement {
        Statement::CreateDatabase(create) => database::create(ctx, create),
        Statement::AlterDatabase(alter) => database::alter(ctx, alter),
        Statement::DropDatabase(drop) => database::drop(ctx, drop),
        Statement::CreateTable(create) => create_table::create(ctx, create),
        Statement::DropTable(drop) if drop.view => view::drop(ctx, drop),
        Statement::DropTable(drop) => drop_table::drop(ctx, drop),
        Statement::CreateView(create) => view::create(ctx, create),
        Statement::RenameTable(rename) => drop_table::rename(ctx, rename),
        Statement::Truncate(name) => drop_table::truncate(ctx, name),
        Statement::AlterTable(alter) => alter_table::alter(ctx, alter),
        Statement::AlterSequence(alter) => sequence::alter(ctx, alter),
        Statement::CreateIndex(create) => alter_table::create_index(ctx, create),
        Statement::DropIndex(drop) => alter_table::drop_index(ctx, drop),
        Statement::CreateUser(create) => account::create(ctx, create),
        Statement::CreateRole(create) => role::create(ctx, create),
        Statement::DropRole(drop) => role::remove(ctx, drop),
        Statement::AlterUser(alter) => account::alter(ctx, alter),
        Statement::DropUser { if_exists, accounts } => account::drop(ctx, *if_exists, accounts),
        Statement::RenameUser(pairs) => account::rename(ctx, pairs),
        Statement::Grant(grant) => grant::grant(ctx, grant),
        Statement::Revoke(revoke) => grant::revoke(ctx, revoke),
        _ => return None,
    };
    // Without a commit, the locks would be held until the next one.
    ctx.trx.rollback();
    Some(outcome)
}
