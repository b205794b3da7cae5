//! Schemas, tables, columns, indexes and accounts. Every session reads the catalog in memory. On disk it is
//! one checksummed file plus the changes in commit records; DDL is atomic because its change is part of its
//! own commit record (I2).

mod account;
mod change;
mod codec;
mod foreign;
mod index_method;
mod model;
mod page_format;
mod program;
mod roles;
mod row_tree;
mod store;
mod versions;
mod view;

pub use account::{
    Account, AccountName, AccountRules, AdminOption, AuthMethod, Grants, Lifetime, Limits, PUBLIC,
    RoutineName, TableGrant, TlsRequirement,
};
pub use change::{CatalogChange, Undecodable};
pub use foreign::{ForeignAction, ForeignKey};
pub use index_method::{EntryValue, IndexKind, IndexMethod, KeyMethod};
pub use model::{
    Catalog, Check, Column, DefaultValue, Generated, Index, IndexColumn, OnUpdate, SEQUENCE_OPTION, Schema,
    Table, TableName,
};
pub use page_format::{is_block_size, is_on, level_of, option_of};
pub use program::{Event, EventSchedule, ProgramKey, ProgramSettings, Routine, Trigger};
pub use roles::roles_of;
pub use row_tree::{ROWS, RowKey, RowTree};
pub use store::{CATALOG, CatalogStore};
pub use versions::CatalogVersions;
pub use view::View;
