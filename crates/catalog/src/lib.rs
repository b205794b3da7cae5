//! Schemas, tables, columns, indexes and accounts: in memory for every session, and durable as one
//! checksummed file plus the changes that commit records carry (DDL is atomic because its change *is* its
//! commit record, I2).

mod change;
mod codec;
mod model;
mod store;

pub use change::CatalogChange;
pub use model::{
    Account, Catalog, Column, DefaultValue, Index, IndexColumn, IndexKind, OnUpdate, Schema, Table, TableName,
};
pub use store::{CATALOG, CatalogStore};
