//! Views.

use cohort_base::{Reader, Truncated, Write};
use cohort_types::Collation;

use crate::account::AccountName;
use crate::codec::{put_string, read_string};
use crate::model::TableName;

/// A view. Its columns are fixed at creation, when `*` is expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub name: TableName,
    /// The query with qualified names, parsed again by every statement that reads the view.
    pub text: String,
    /// `UNDEFINED`, `MERGE` or `TEMPTABLE`.
    pub algorithm: String,
    pub definer: AccountName,
    /// SQL SECURITY INVOKER: the view reads its tables with the privileges of the invoker instead of the
    /// definer.
    pub by_invoker: bool,
    /// `NONE`, `LOCAL` or `CASCADED`.
    pub check: String,
    /// Rows can be changed through the view.
    pub updatable: bool,
    /// character_set_client and collation_connection at creation.
    pub client: Collation,
    pub connection: Collation,
    /// Seconds since 1970 UTC.
    pub created_at: u64,
}

/// ```text
/// view  string schema | string name | string text | string algorithm | string user | string host
///       | u8 flags (1 by invoker, 2 updatable) | string check | u16 client | u16 connection | u64 created_at
/// ```
pub fn put_view(out: &mut Vec<u8>, view: &View) {
    let (user, host) = &view.definer;
    for text in [&view.name.schema, &view.name.table, &view.text, &view.algorithm, user, host] {
        put_string(out, text);
    }
    out.put_u8(u8::from(view.by_invoker) | u8::from(view.updatable) << 1);
    put_string(out, &view.check);
    out.put_u16(view.client.0);
    out.put_u16(view.connection.0);
    out.put_u64(view.created_at);
}

pub fn read_view(r: &mut Reader<'_>) -> Result<View, Truncated> {
    let name = TableName { schema: read_string(r)?, table: read_string(r)? };
    let (text, algorithm) = (read_string(r)?, read_string(r)?);
    let definer = (read_string(r)?, read_string(r)?);
    let flags = r.u8()?;
    Ok(View {
        name,
        text,
        algorithm,
        definer,
        by_invoker: flags & 1 != 0,
        updatable: flags & 2 != 0,
        check: read_string(r)?,
        client: Collation(r.u16()?),
        connection: Collation(r.u16()?),
        created_at: r.u64()?,
    })
}
