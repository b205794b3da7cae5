//! Privilege checks.
//!
//! # Concepts
//! A *privilege* is granted to an account globally, on a schema, on a table or on a column, and covers
//! everything within. [`Access`] holds the privileges of the session's account in one version of the catalog.
//! GRANT and REVOKE create a new version, so they take effect with the next statement. A *role* is an account
//! without a login; the privileges of the active role, and of all roles granted to it, are added. So are the
//! privileges of PUBLIC, a role that every account has.
//!
//! # Where a statement is checked
//! | what | where |
//! |---|---|
//! | any statement except queries and row changes | [`statement`]: before it runs, in one exhaustive match |
//! | queries and row changes | [`needs`]: when a name is resolved, and each time the plan runs |
//! | SET of a variable | `variables`: according to the table of settings |
//! | USE, a login's database | `Session::use_schema`, `Session::new` |
//! | KILL | the owner of the target, or CONNECTION ADMIN |
//! | lists (SHOW, information_schema) | omit rows that the account may not see |
//! | GRANT, REVOKE | `ddl::grant`: an account cannot grant privileges that it does not have |
//!
//! A name is checked before the object is looked up, so that an error does not reveal whether the object
//! exists.
//!
//! # Missing
//! Grants to another account with the same user name, whose host also matches the client, are not
//! added to those of the account that the client logged in as.

mod check;
mod held;
mod needs;
mod statement;

pub use check::{
    ACCOUNT_TABLES, check_all_of, check_column, check_global, check_grants, check_routine, check_schema,
    check_schemas, check_table, check_view_shown, may_enter, may_execute, on_routine_of, sees_body,
    sees_routine, sees_schema, sees_table,
};
pub use cohort_catalog::roles_of;
pub use held::Access;
pub use needs::{Needs, RoutineNeed, TableNeed, Viewer};
pub use statement::{
    check_statement, drops_own, is_about_temporary, own_renames, refused_in_read_only_transaction,
};
