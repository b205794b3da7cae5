//! CHECK, ANALYZE, OPTIMIZE, REPAIR, CHECKSUM TABLE.
//!
//! # CHECKSUM TABLE
//! The sum over all rows of a CRC-32 of the row in MariaDB's record format: the NULL bits, followed by the
//! columns. Numbers and dates are in their stored form, text is in the column's character set, and CHAR is
//! padded. Both servers therefore return the same checksum for the same rows, in any order.

use std::sync::Arc;

use cohort_catalog::{Table, View};
use cohort_commit::GroupKind;
use cohort_engine::IndexId;
use cohort_locks::MetadataMode;
use cohort_optimize::ReadMode;
use cohort_row::{CursorOptions, KeySpan, KeySpans, RowChanges, TableCursor, check_entries, every_row};
use cohort_session::{StatementContext, TableUse};
use cohort_sql::ast::{MaintenanceKind, ObjectName, TableMaintenance};
use cohort_types::{
    ColumnType, Columns, ErrorCode, Level, SqlError, SqlResult, TypeKind, Value, Warning, write_value,
};

use super::listing::Listing;
use super::schema_of;

/// Units of progress of one pass over an index.
const THOUSANDTHS: u64 = 1000;

/// Declared length of the message column.
const MESSAGE_CHARS_MAX: u32 = 131_072;

pub fn run(ctx: &mut StatementContext<'_>, maintenance: &TableMaintenance) -> SqlResult<Listing> {
    if maintenance.kind == MaintenanceKind::Checksum {
        return checksum(ctx, maintenance);
    }
    let mut listing = Listing::default();
    listing.nullable_text("Table", 128).nullable_text("Op", 10).nullable_text("Msg_type", 10);
    listing.nullable_text("Msg_text", MESSAGE_CHARS_MAX);
    let mut is_done = false;
    for name in &maintenance.names {
        let schema = schema_of(ctx, name.db.as_deref())?;
        let full_name = format!("{schema}.{}", name.name);
        let messages = outcome(ctx, maintenance, &schema, name)?;
        is_done |= messages.last() != Some(&failed());
        for (kind, text) in messages {
            let op = Value::text(operation(maintenance.kind));
            listing.add([Value::text(&full_name), op, Value::text(kind), Value::text(text)]);
        }
    }
    // A statement that failed for all tables is not replicated. A replica logs whatever its source has
    // logged.
    let is_logged = is_done || ctx.session.identity.is_applier;
    if maintenance.kind != MaintenanceKind::Check && !maintenance.local {
        match is_logged {
            true => cohort_ddl::log_statement(ctx, GroupKind::Ddl)?,
            // It waits for FLUSH TABLES WITH READ LOCK like a statement that is logged.
            false => ctx.trx.pass_global_lock_to_write()?,
        }
    }
    Ok(listing)
}

fn operation(kind: MaintenanceKind) -> &'static str {
    match kind {
        MaintenanceKind::Check => "check",
        MaintenanceKind::Analyze => "analyze",
        MaintenanceKind::Optimize => "optimize",
        MaintenanceKind::Repair => "repair",
        MaintenanceKind::Checksum => "checksum",
    }
}

type Messages = Vec<(&'static str, String)>;

/// Returns the last message for a table that was not processed.
fn failed() -> (&'static str, String) {
    ("status", "Operation failed".to_owned())
}

/// Returns the messages for an error, unless the error ends the statement.
fn refused(error: SqlError) -> SqlResult<Messages> {
    match error.code {
        ErrorCode::LockWaitTimeout | ErrorCode::LockDeadlock => Ok(vec![("Error", error.message), failed()]),
        _ => Err(error),
    }
}

fn outcome(
    ctx: &mut StatementContext<'_>,
    maintenance: &TableMaintenance,
    schema: &str,
    name: &ObjectName,
) -> SqlResult<Messages> {
    let kind = maintenance.kind;
    if let Some(view) = ctx.db.catalog().view(schema, &name.name)
        && ctx.session.temporary.find(schema, &name.name).is_none()
    {
        // REPAIR VIEW corrects the files of a MariaDB view; here the definition is checked only.
        let is_checked = kind == MaintenanceKind::Repair && maintenance.of_views;
        return Ok(of_view(ctx, if is_checked { MaintenanceKind::Check } else { kind }, view));
    }
    if let Some(found) =
        ctx.session.virtual_table(schema, &name.name).filter(|found| found.schema() == "mysql")
    {
        return Ok(of_virtual(kind, found.is_view(), maintenance.of_views));
    }
    let table = match locked(ctx, schema, &name.name, kind) {
        Ok(Some(table)) => table,
        Ok(None) => {
            let missing = SqlError::no_such_table(schema, &name.name);
            return Ok(vec![("Error", missing.message), failed()]);
        }
        Err(error) => return refused(error),
    };
    if table.is_sequence() {
        let text = format!("The storage engine for the table doesn't support {}", operation(kind));
        return Ok(vec![("note", text)]);
    }
    Ok(match kind {
        MaintenanceKind::Check => check(ctx, &table)?,
        MaintenanceKind::Repair => {
            vec![("note", "The storage engine for the table doesn't support repair".to_owned())]
        }
        MaintenanceKind::Optimize => {
            let recreated = cohort_ddl::recreate(ctx, name);
            ctx.trx.rollback();
            let note = "Table does not support optimize, doing recreate + analyze instead".to_owned();
            match recreated {
                Ok(_) => vec![("note", note), ("status", "OK".to_owned())],
                Err(error) if error.code == ErrorCode::ConnectionKilled => return Err(error),
                // Reported in the result and as a warning, even if the statement was interrupted.
                Err(error) => {
                    let messages = vec![("note", note), ("error", error.message.clone()), failed()];
                    ctx.eval.push_warning(Warning { level: Level::Error, error });
                    messages
                }
            }
        }
        // Statistics are read when they are needed, so ANALYZE has nothing to do.
        _ => vec![("status", "OK".to_owned())],
    })
}

/// Returns the messages for a virtual table, whose rows are parts of the catalog.
fn of_virtual(kind: MaintenanceKind, is_view: bool, of_views: bool) -> Messages {
    match kind {
        MaintenanceKind::Repair if is_view && of_views => vec![("status", "OK".to_owned())],
        MaintenanceKind::Check => vec![("status", "OK".to_owned())],
        MaintenanceKind::Analyze if !is_view => vec![("status", "OK".to_owned())],
        _ => {
            let text = format!("The storage engine for the table doesn't support {}", operation(kind));
            vec![("note", text)]
        }
    }
}

/// Checks a view: whether its query can be bound.
fn of_view(ctx: &StatementContext<'_>, kind: MaintenanceKind, view: &Arc<View>) -> Messages {
    if kind != MaintenanceKind::Check {
        let text = format!("'{}.{}' is not of type 'BASE TABLE'", view.name.schema, view.name.table);
        return vec![("Error", text), failed()];
    }
    match super::view::as_table(ctx, view) {
        Ok(_) => vec![("status", "OK".to_owned())],
        Err(error) => vec![("Error", error.message), ("error", "Corrupt".to_owned())],
    }
}

/// Returns the table with a shared metadata lock. Statements that recreate the table take their own locks.
fn locked(
    ctx: &mut StatementContext<'_>,
    schema: &str,
    name: &str,
    kind: MaintenanceKind,
) -> SqlResult<Option<Arc<Table>>> {
    if let Some(own) = ctx.session.temporary.find(schema, name) {
        return Ok(Some(own));
    }
    let found = |ctx: &StatementContext<'_>| ctx.db.catalog().table(schema, name).cloned();
    let Some(table) = found(ctx) else { return Ok(None) };
    if kind == MaintenanceKind::Optimize {
        return Ok(Some(table));
    }
    ctx.trx.lock_table(&table, MetadataMode::SharedRead)?;
    if let Some(tables) = ctx.session.audit_tables() {
        tables.report_use(TableUse::Read, &table);
    }
    Ok(found(ctx))
}

/// Has the engine verify every index, and then compares the entries of secondary indexes with the rows.
fn check(ctx: &mut StatementContext<'_>, table: &Arc<Table>) -> SqlResult<Messages> {
    let mut problems = Vec::new();
    ctx.process.set_state("Checking table");
    // Each index is read by the engine, and again for the comparison.
    let indexes = table.indexes.len() as u64;
    let total = 2 * indexes * THOUSANDTHS;
    for (nth, index) in (0..).zip(&table.indexes) {
        let found = verify(ctx, table, index.id, (nth * THOUSANDTHS, total))?;
        problems.extend(found.into_iter().map(|problem| format!("Key {}: {problem}", index.name)));
    }
    let engine = ctx.db.engine_named(&table.engine);
    let entries = engine.map_or(0, |engine| engine.stats(table.rows().id).entries) * indexes;
    let (process, clock) = (ctx.process, &ctx.db.clock);
    let mut progress = |read: u64| {
        let part = (read * indexes * THOUSANDTHS).checked_div(entries).unwrap_or(0);
        process.set_progress((indexes * THOUSANDTHS + part, total), clock.monotonic_ns());
    };
    match check_entries(ctx.trx, table, &mut progress) {
        Ok(differences) => problems.extend(differences),
        // The rows are unreadable for the reason that the engine has reported.
        Err(_) if !problems.is_empty() => {}
        Err(error) => return Err(error),
    }
    let mut messages: Messages = problems.into_iter().map(|problem| ("error", problem)).collect();
    messages.push(match messages.is_empty() {
        true => ("status", "OK".to_owned()),
        false => ("error", "Corrupt".to_owned()),
    });
    Ok(messages)
}

/// Returns the problems that the engine finds in one index.
fn verify(
    ctx: &mut StatementContext<'_>,
    table: &Arc<Table>,
    index: IndexId,
    (before, total): (u64, u64),
) -> SqlResult<Vec<String>> {
    if table.is_temporary() {
        return Ok(Vec::new());
    }
    let engine = ctx.db.engine_named(&table.engine);
    let Some(engine) = engine.cloned() else { return Ok(Vec::new()) };
    let mut interrupted = Ok(());
    let mut goes_on = |part: u64| {
        ctx.process.set_progress((before + part, total), ctx.db.clock.monotonic_ns());
        if interrupted.is_ok() {
            interrupted = ctx.check_interrupt();
        }
        interrupted.is_ok()
    };
    let found = engine.verify(index, &mut goes_on);
    interrupted?;
    Ok(found.unwrap_or_else(|error| vec![error.to_string()]))
}

fn cursor(ctx: &mut StatementContext<'_>, table: &Arc<Table>, index: usize) -> SqlResult<TableCursor> {
    let spans = KeySpans { index, reverse: false, spans: vec![KeySpan::Range(Default::default())] };
    let options = CursorOptions {
        mode: ReadMode::Snapshot,
        columns: Columns::All,
        changes: RowChanges::Any,
        rows_expected: None,
    };
    // The transaction's own writes may depend on rows that are not durable yet (I5).
    ctx.trx.mark_observed();
    TableCursor::open(ctx.trx, table, spans, options)
}

fn checksum(ctx: &mut StatementContext<'_>, maintenance: &TableMaintenance) -> SqlResult<Listing> {
    let mut listing = Listing::default();
    listing.nullable_text("Table", 384);
    listing.column("Checksum", ColumnType::int(TypeKind::BigInt, Some(21), false), true);
    // QUICK returns a checksum stored with the table. There is none.
    let is_quick = maintenance.options.iter().any(|o| o == "QUICK");
    for name in &maintenance.names {
        let schema = schema_of(ctx, name.db.as_deref())?;
        let value = match locked(ctx, &schema, &name.name, maintenance.kind)? {
            None => {
                let error = SqlError::no_such_table(&schema, &name.name);
                ctx.eval.warn(ErrorCode::NoSuchTable, error.message)?;
                Value::Null
            }
            Some(_) if is_quick => Value::Null,
            Some(table) => Value::Int(i64::from(table_checksum(ctx, &table)?)),
        };
        listing.add([Value::text(format!("{schema}.{}", name.name)), value]);
    }
    Ok(listing)
}

fn table_checksum(ctx: &mut StatementContext<'_>, table: &Arc<Table>) -> SqlResult<u32> {
    let record = Record::new(table);
    let mut cursor = cursor(ctx, table, 0)?;
    let (mut row, mut sum, mut bytes) = (Vec::new(), 0_u32, Vec::new());
    while cursor.next(ctx.trx, &mut every_row, &mut row)? {
        ctx.check_interrupt()?;
        bytes.clear();
        record.write(&row, &mut bytes)?;
        sum = sum.wrapping_add(crc32fast::hash(&bytes));
    }
    Ok(sum)
}

/// MariaDB's record format of a table, as far as the checksum depends on it.
struct Record<'t> {
    table: &'t Table,
    /// Reserved bits before the columns' NULL bits: one, unless rows have variable length.
    bits_before: usize,
    null_bytes: usize,
}

impl Record<'_> {
    fn new(table: &Table) -> Record<'_> {
        use TypeKind as K;
        let varies = |ty: &ColumnType| ty.kind.is_blob() || matches!(ty.kind, K::VarChar | K::VarBinary);
        let is_dynamic = table.options.iter().any(|(name, value)| name == "ROW_FORMAT" && value == "DYNAMIC");
        let is_packed = is_dynamic || table.columns.iter().any(|c| varies(&c.ty));
        let bits_before = usize::from(!is_packed);
        let nullable = table.columns.iter().filter(|c| c.nullable).count();
        Record { table, bits_before, null_bytes: (bits_before + nullable).div_ceil(8) }
    }

    fn write(&self, row: &[Value], out: &mut Vec<u8>) -> SqlResult<()> {
        out.resize(self.null_bytes, 0);
        let mut bit = 0;
        if self.bits_before > 0 && self.null_bytes > 0 {
            out[0] |= 1;
            bit = 1;
        }
        for (column, value) in self.table.columns.iter().zip(row).filter(|(c, _)| c.nullable) {
            // MariaDB does not read generated columns for the checksum, so they count as NULL.
            out[bit / 8] |= u8::from(value.is_null() || column.generated.is_some()) << (bit % 8);
            bit += 1;
        }
        if bit % 8 != 0 {
            out[bit / 8] |= 0xff << (bit % 8);
        }
        for (column, value) in self.table.columns.iter().zip(row) {
            if !value.is_null() && column.generated.is_none() {
                write_column(&column.ty, value, out)?;
            }
        }
        Ok(())
    }
}

fn write_column(ty: &ColumnType, value: &Value, out: &mut Vec<u8>) -> SqlResult<()> {
    use TypeKind as K;
    let start = out.len();
    match value {
        Value::Str(text) if ty.kind.is_binary_string() => out.extend_from_slice(&text.bytes),
        Value::Str(text) => drop(ty.collation.charset().encode(&text.bytes, out)),
        other => {
            let written = write_value(ty, other, out);
            written.map_err(|e| SqlError::new(ErrorCode::UnknownError, format!("{e:?}")))?;
        }
    }
    let fill = match ty.kind {
        K::Char => Some((b' ', ty.byte_len_max())),
        K::Binary => Some((0, u64::from(ty.length))),
        _ => None,
    };
    if let Some((byte, length)) = fill {
        out.resize((start + length as usize).max(out.len()), byte);
    }
    Ok(())
}
