//! Who may do what.
//!
//! # Concepts
//! A *privilege* is granted to an account on everything, on a schema, on a table or on a column, and holds
//! for all that lies within. [`Access`] is what the session's account holds in one version of the catalog; a
//! GRANT or a REVOKE makes a new version, so it is obeyed from the next statement on. A *role* is an account
//! that nobody logs in as; what the role in force holds, and the roles granted to it, adds to that. So does
//! what PUBLIC holds, the role that everybody has.
//!
//! # Where a statement is checked
//! | what | where |
//! |---|---|
//! | any statement but queries and changes of rows | [`gate`]: before it runs, one exhaustive match |
//! | queries and changes of rows | [`needs`]: when a name is resolved, and each time the plan runs |
//! | SET of a variable | `variables`: what the table of settings asks for |
//! | USE, a login's database | `Session::use_schema`, `Session::new` |
//! | KILL | its target's owner, or CONNECTION ADMIN |
//! | lists (SHOW, information_schema) | rows of what the account may not know of are left out |
//! | GRANT, REVOKE | `ddl::grant`: nobody gives what he does not have |
//!
//! A name is checked before anybody looks whether there is such a thing: an error must not tell.
//!
//! # Missing
//! Routines. Grants to an account of the same user name on another host that
//! matches the client's do not add to those of the account that let the client in.

mod check;
mod gate;
mod held;
mod needs;

pub use check::{
    check_all_of, check_global, check_schema, check_schemas, check_table, check_view_told, may_enter,
    sees_schema, sees_table,
};
pub use cohort_catalog::roles_of;
pub use gate::{
    check_statement, counts_as_write, drops_own, is_about_temporary, own_renames,
    refused_in_read_only_transaction,
};
pub use held::Access;
pub use needs::{Needs, TableNeed, Viewer};
