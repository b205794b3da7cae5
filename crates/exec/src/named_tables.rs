//! Planning errors while another session changes the definitions.
//!
//! A plan is made before its metadata locks are taken, and made again if a definition has changed in between.
//! A statement that cannot be planned, because a column or table does not exist yet, has no plan whose locks
//! could make it wait. It locks the names that it mentions instead, which waits for LOCK TABLES and DDL of
//! other sessions. If a name has another meaning afterwards, the statement is planned again; otherwise the
//! error is returned.

use std::sync::Arc;

use cohort_catalog::Catalog;
use cohort_locks::{MetadataKey, MetadataMode};
use cohort_query::Freshness;
use cohort_session::StatementContext;
use cohort_sql::Plannable;
use cohort_sql::ast::{InsertSource, ObjectName, Query, Rename, Statement, TableFactor, TableRef};
use cohort_types::{ErrorCode, SqlError, SqlResult};

/// Returns true for an error that a change of definitions may remove.
pub(crate) fn is_of_definitions(error: &SqlError) -> bool {
    matches!(
        error.code,
        ErrorCode::BadField
            | ErrorCode::NonUniq
            | ErrorCode::NoSuchTable
            | ErrorCode::KeyDoesNotExists
            | ErrorCode::FtMatchingKeyNotFound
            | ErrorCode::WrongValueCountOnRow
            | ErrorCode::ViewInvalid
    )
}

/// Waits for sessions that change a table named in the statement. Returns `Stale` if one of these tables has
/// changed since catalog `planned_with`. Releases the metadata locks again, because the statement has read
/// nothing.
pub(crate) fn await_definitions(
    ctx: &mut StatementContext<'_>,
    statement: &Statement,
    planned_with: &Arc<Catalog>,
    error: ErrorCode,
) -> SqlResult<Freshness> {
    let names = named(ctx, statement);
    // LOCK TABLES has already waited. A missing table is reported as a table that is not locked: error 1100.
    if ctx.trx.has_locked_tables() {
        if error == ErrorCode::NoSuchTable {
            ctx.trx.check_locked(names.iter())?;
        }
        return Ok(Freshness::Fresh);
    }
    let held = ctx.trx.names_held();
    let locked = names.iter().try_for_each(|(schema, table)| {
        let key = MetadataKey::Table(schema.as_str().into(), table.as_str().into());
        ctx.trx.lock_metadata(&key, MetadataMode::SharedRead)
    });
    ctx.trx.unlock_names_after(held);
    locked?;
    let now = ctx.db.catalog();
    let is_same = |(schema, table): &(String, String)| {
        let same_table = match (planned_with.table(schema, table), now.table(schema, table)) {
            (Some(then), Some(now)) => Arc::ptr_eq(then, now),
            (then, now) => then.is_none() && now.is_none(),
        };
        let same_view = match (planned_with.view(schema, table), now.view(schema, table)) {
            (Some(then), Some(now)) => Arc::ptr_eq(then, now),
            (then, now) => then.is_none() && now.is_none(),
        };
        same_table && same_view
    };
    Ok(if names.iter().all(is_same) { Freshness::Fresh } else { Freshness::Stale })
}

/// Returns the tables and views in the FROM clauses of a statement, and its target.
fn named(ctx: &StatementContext<'_>, statement: &Statement) -> Vec<(String, String)> {
    let mut looks = Looks::default();
    match statement.plannable() {
        Some(Plannable::Query(query)) => looks.query(query),
        Some(Plannable::Insert(insert)) => {
            looks.names.push(insert.table.clone());
            if let InsertSource::Query(query) = &insert.source {
                looks.query(query);
            }
        }
        Some(Plannable::Update(update)) => looks.tables(&update.tables),
        Some(Plannable::Delete(delete)) => looks.tables(&delete.from),
        None => {}
    }
    let current = ctx.session.current_schema.as_deref();
    let full = |name: ObjectName| {
        let schema = name.db.as_deref().or(current)?;
        let is_own = ctx.session.temporary.find(schema, &name.name).is_some();
        let is_computed = ctx.db.virtual_table(schema, &name.name).is_some();
        (!is_own && !is_computed).then(|| (schema.to_owned(), name.name.clone()))
    };
    looks.names.into_iter().filter_map(full).collect()
}

#[derive(Default)]
struct Looks {
    names: Vec<ObjectName>,
}

impl Looks {
    fn query(&mut self, query: &Query) {
        query.clone().rename(self);
    }

    fn tables(&mut self, tables: &TableRef) {
        match tables {
            TableRef::Table(factor) => self.names.push(factor.name.clone()),
            TableRef::Derived { query, .. } => self.query(query),
            TableRef::Json(_) => {}
            TableRef::Join(join) => {
                self.tables(&join.left);
                self.tables(&join.right);
            }
        }
    }
}

impl Rename for Looks {
    fn table(&mut self, table: &mut TableFactor) {
        self.names.push(table.name.clone());
    }
}
