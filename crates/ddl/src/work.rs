//! What every DDL statement does: lock names, hand out ids, commit.

use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, TableId};
use cohort_binlog::event::{QueryEvent, StatusVars};
use cohort_catalog::{CATALOG, Catalog, CatalogChange, Schema, Table};
use cohort_commit::GroupKind;
use cohort_config::VarId;
use cohort_locks::{MetadataKey, MetadataMode};
use cohort_session::{SessionState, StatementContext, TableUse, changed_tables};
use cohort_sql::ast::ObjectName;
use cohort_trx::DdlCommit;
use cohort_types::{Charset, Collation, ErrorCode, SqlError, SqlMode, SqlResult};

use super::page_format;
pub(super) use cohort_plan::not_supported;
pub(super) use cohort_sql::IDENTIFIER_CHARS_MAX;

/// The event does not need `USE db` (header flag SUPPRESS_USE).
const SUPPRESS_USE: u16 = 0x0008;
/// The statement may be about temporary tables of its connection (header flag THREAD_SPECIFIC).
const THREAD_SPECIFIC: u16 = 0x0004;

/// The statement as the binlog shows it.
pub(super) enum LogText {
    /// As the client wrote it.
    AsWritten,
    /// As the client wrote it, about a database.
    AboutSchema(String),
    /// As the client wrote it, about a database whose tables it drops.
    DropSchema(String),
    /// As the client wrote it; a table of the same name goes, be it a temporary one.
    ReplacingTable,
    /// As the client wrote it, but for passwords: what is stored of them stands there.
    Accounts,
    /// The same, with names of users that may mean the client himself.
    AboutUsers,
    /// Names only, other than what the client wrote.
    DropTables(String),
    /// Not here: the caller logs the statement when all of it is done.
    ByCaller,
    /// Text that must not stand there as it was written (passwords).
    Instead(String),
    /// Variant for texts of the server's own: no mode of the session changes how they are read.
    Own(String),
}

/// What a statement is about to commit.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) catalog: Vec<CatalogChange>,
    /// Engine and key space of what nothing refers to afterwards.
    pub(super) freed: Vec<(String, IndexId)>,
    closed: Vec<TableId>,
    /// Engine and key space of what was filled for the statement: freed when it is refused after all.
    pub(super) loaded: Vec<(String, IndexId)>,
    /// The statement is one of those that MariaDB's DDL log covers: the event names its XID.
    has_xid: bool,
    /// The error that the statement ends with: only a part of what it asks for was possible.
    failed: Option<SqlError>,
    /// The statement goes on, and commits more.
    is_part: bool,
}

impl Changes {
    /// One change of the catalog.
    pub(super) fn one(change: CatalogChange) -> Changes {
        Changes { catalog: vec![change], ..Changes::default() }
    }

    /// Has the event name an XID, as those of statements that MariaDB's DDL log covers.
    pub(super) fn with_xid(mut self) -> Changes {
        self.has_xid = true;
        self
    }

    /// Has the statement commit what was possible, and end with this error all the same. Replicas expect it.
    pub(super) fn failing(mut self, error: Option<SqlError>) -> Changes {
        self.failed = error;
        self
    }

    /// One step of a statement that commits several times.
    pub(super) fn into_part(mut self) -> Changes {
        self.is_part = true;
        self
    }

    /// Key spaces that go when the change is published.
    pub(super) fn free(&mut self, engine: &str, indexes: impl IntoIterator<Item = IndexId>) {
        self.freed.extend(indexes.into_iter().map(|id| (engine.to_owned(), id)));
    }

    /// A table goes.
    pub(super) fn drop_table(&mut self, ctx: &mut StatementContext<'_>, table: &Arc<Table>) -> SqlResult<()> {
        if table.columns.iter().any(|c| c.auto_increment) {
            ctx.trx.forget_auto_increment(table)?;
        }
        self.catalog.push(CatalogChange::DropTable(table.id));
        self.closed.push(table.id);
        self.free(&table.engine, table.indexes.iter().map(|i| i.id));
        Ok(())
    }
}

/// Logs the statement before the rows that it writes.
pub(super) fn log_ahead(ctx: &mut StatementContext<'_>, log: LogText) -> SqlResult<()> {
    let Some((event, flags)) = event(ctx, log, false) else { return Ok(()) };
    ctx.trx.log_ahead(event, flags)
}

/// Makes the changes durable with the statement's event, and frees what they leave. The error of changes that
/// are failing is reported after that.
pub(super) fn commit(ctx: &mut StatementContext<'_>, changes: Changes, log: LogText) -> SqlResult<()> {
    commit_with(ctx, changes, log, false)
}

/// The same for a statement that has written rows and was logged before them.
pub(super) fn commit_rows(ctx: &mut StatementContext<'_>, changes: Changes) -> SqlResult<()> {
    commit_with(ctx, changes, LogText::ByCaller, true)
}

fn commit_with(
    ctx: &mut StatementContext<'_>,
    changes: Changes,
    log: LogText,
    has_rows: bool,
) -> SqlResult<()> {
    if let Err(error) = ctx.trx.check_interrupt() {
        free(ctx, &changes.loaded);
        return Err(error);
    }
    let Changes { mut catalog, freed, closed, loaded, has_xid, failed, is_part } = changes;
    let audited = ctx.session.audit_tables().map(|_| (ctx.db.catalog(), catalog.clone()));
    let is_put = |change: &CatalogChange| match change {
        CatalogChange::PutTable(table) => Some(table.clone()),
        _ => None,
    };
    let tables: Vec<Table> = catalog.iter().filter_map(is_put).collect();
    if let Err(error) = check_locked(ctx, &tables) {
        free(ctx, &loaded);
        return Err(error);
    }
    let mut redo = Vec::new();
    if !catalog.is_empty() {
        catalog.push(ctx.db.ids.change());
        redo.push((CATALOG, CatalogChange::encode(&catalog)));
    }
    // A text that names only what was possible succeeds on replicas.
    let is_exact = matches!(log, LogText::DropTables(_));
    let (mut event, event_flags) = event(ctx, log, has_xid).unzip();
    if let (Some(event), Some(error), false) = (&mut event, &failed, is_exact) {
        event.error = error.code.number();
    }
    let event_flags = event_flags.unwrap_or(0);
    let failed_with = failed.clone();
    let ordered =
        ctx.trx.commit_ddl(DdlCommit { redo, event, event_flags, has_rows, failed: failed_with, is_part });
    // What is ordered stays, whatever comes after.
    let seq = ordered.inspect_err(|_| free(ctx, &loaded))?;
    tables.iter().for_each(|table| page_format::pass_all_to_engine(ctx.db, table));
    wait(ctx, seq)?;
    if ctx.trx.has_locked_tables() {
        let drops = catalog.iter().any(|change| matches!(change, CatalogChange::DropTable(_)));
        let now = ctx.db.catalog();
        let is_there = |(schema, name): &(String, String)| {
            now.table(schema, name).is_some() || now.view(schema, name).is_some()
        };
        ctx.trx.forget_gone_tables(is_there, drops)?;
    }
    if let (Some(tables), Some((before, changes))) = (ctx.session.audit_tables(), &audited) {
        changed_tables(&tables, before, changes);
    }
    closed.iter().for_each(|id| ctx.db.tables.forget(*id));
    freed.iter().for_each(|(_, space)| ctx.db.sequences.forget(*space));
    ctx.db.tables.forget_counters(freed.iter().map(|(_, space)| *space));
    free(ctx, &freed);
    failed.map_or(Ok(()), Err)
}

/// A description is replaced only under the lock of the name that it has and of the one that it gets. Without
/// it, what others have committed meanwhile would be undone, and with it the key spaces of their rows.
fn check_locked(ctx: &StatementContext<'_>, tables: &[Table]) -> SqlResult<()> {
    let catalog = ctx.db.catalog();
    for table in tables.iter().filter(|table| !table.id.is_temporary()) {
        let old = catalog.table_by_id(table.id).map(|old| &old.name);
        for name in old.into_iter().chain([&table.name]) {
            let key = MetadataKey::Table(name.schema.as_str().into(), name.table.as_str().into());
            if !ctx.trx.has_exclusive_name(&key) {
                debug_assert!(false, "a description of {name:?} is replaced without its lock");
                let text = format!("'{}'.'{}' was not locked for its change", name.schema, name.table);
                return Err(SqlError::new(ErrorCode::UnknownError, text));
            }
        }
    }
    Ok(())
}

/// Tells the audit log of a table that is there before and afterwards.
pub(super) fn report_table(ctx: &StatementContext<'_>, of: TableUse, table: &Table) {
    if let Some(tables) = ctx.session.audit_tables() {
        tables.report_use(of, table);
    }
}

fn wait(ctx: &StatementContext<'_>, seq: CommitSeq) -> SqlResult<()> {
    // KILL looks there.
    ctx.process.hold_until(seq);
    if ctx.session.is_applier {
        // STOP SLAVE does not wait for the replicas of this server.
        return ctx.trx.await_own();
    }
    // The next statement of this session needs the names, whose locks go at publish.
    let stopped = |_| SqlError::server_shutdown();
    ctx.db.commit.wait_acknowledged(seq).map_err(stopped)
}

/// Logs a statement that changes nothing here but is to run on replicas, too.
pub fn log_statement(ctx: &mut StatementContext<'_>, kind: GroupKind) -> SqlResult<()> {
    if !ctx.trx.logs_statements(ctx.session.current_schema.as_deref().unwrap_or("")) {
        return Ok(());
    }
    let Some((event, flags)) = event(ctx, LogText::AsWritten, false) else { return Ok(()) };
    let seq = ctx.trx.commit_logged(event, flags, kind)?;
    wait(ctx, seq)
}

/// Frees key spaces; what fails is left to the next start.
pub(super) fn free(ctx: &StatementContext<'_>, indexes: &[(String, IndexId)]) {
    let (own, indexes): (Vec<_>, Vec<_>) = indexes.iter().cloned().partition(|(_, id)| id.is_temporary());
    ctx.session.temporary.free(own.into_iter().map(|(_, id)| id));
    for engine in &ctx.db.engines {
        let own: Vec<IndexId> = indexes
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(engine.name()))
            .map(|i| i.1)
            .collect();
        if !own.is_empty() {
            let _ = engine.drop_indexes(&own);
        }
    }
}

fn event(ctx: &StatementContext<'_>, log: LogText, has_xid: bool) -> Option<(QueryEvent, u16)> {
    let session = ctx.session;
    let current = session.current_schema.as_deref().unwrap_or("");
    let thread = session.info.id.0 as u32;
    let hashed = match &log {
        LogText::Accounts | LogText::AboutUsers => {
            cohort_sql::with_hashed_passwords(ctx.text, session.parse.mode, &mut super::account::stored_form)
        }
        _ => None,
    };
    let written = hashed.as_deref().unwrap_or(ctx.text).trim_ascii();
    let (schema, text, flags) = match &log {
        LogText::ByCaller => return None,
        LogText::AsWritten => (current, written, 0),
        LogText::AboutSchema(schema) => (schema.as_str(), written, SUPPRESS_USE),
        LogText::DropSchema(schema) => (schema.as_str(), written, SUPPRESS_USE | THREAD_SPECIFIC),
        LogText::ReplacingTable => (current, written, THREAD_SPECIFIC),
        LogText::Accounts | LogText::AboutUsers => (current, written, 0),
        LogText::DropTables(text) => (current, text.as_bytes(), THREAD_SPECIFIC),
        LogText::Instead(text) | LogText::Own(text) => (current, text.as_bytes(), 0),
    };
    let mut status = status_vars(session, text);
    if matches!(log, LogText::Own(_)) {
        status.sql_mode = status.sql_mode.map(|mode| mode_of_own_texts(SqlMode(mode)).0);
    }
    if ctx.uses_zone.get() {
        status.time_zone = session.vars.text(VarId::TimeZone).map(|zone| zone.as_bytes().to_vec());
    }
    status.hrnow =
        ctx.uses_micros.get().then_some((session.env.now_micros % 1_000_000) as u32).filter(|us| *us > 0);
    if matches!(log, LogText::AboutUsers) {
        let (user, host) = &session.info.account;
        status.invoker = Some((user.clone().into_bytes(), host.clone().into_bytes()));
    }
    // MariaDB's number of the statement, which its own recovery of DDL looks for; here it only has to be
    // there.
    status.xid = has_xid.then(|| ctx.trx.transaction_id());
    let flags = if schema.is_empty() { flags | SUPPRESS_USE } else { flags };
    Some((QueryEvent::new(thread, &status, schema.as_bytes(), text), flags))
}

/// A session's mode without what changes how a text is read: for texts that the server writes itself.
pub fn mode_of_own_texts(mode: SqlMode) -> SqlMode {
    let reading = [
        SqlMode::REAL_AS_FLOAT,
        SqlMode::PIPES_AS_CONCAT,
        SqlMode::ANSI_QUOTES,
        SqlMode::IGNORE_SPACE,
        SqlMode::ORACLE,
        SqlMode::ANSI,
        SqlMode::NO_BACKSLASH_ESCAPES,
        SqlMode::HIGH_NOT_PRECEDENCE,
        SqlMode::EMPTY_STRING_IS_NULL,
    ];
    SqlMode(reading.iter().fold(mode.0, |mode, bit| mode & !bit.0))
}

/// A statement as text, with what it depends on of the session.
pub fn query_event(session: &SessionState, text: &str) -> QueryEvent {
    let current = session.current_schema.as_deref().unwrap_or("");
    QueryEvent::new(
        session.info.id.0 as u32,
        &status_vars(session, text.as_bytes()),
        current.as_bytes(),
        text.as_bytes(),
    )
}

/// The same of a change of rows, whose outcome may depend on the time and its zone.
pub fn change_event(ctx: &StatementContext<'_>, text: &[u8]) -> QueryEvent {
    let session = ctx.session;
    let mut status = status_vars(session, text);
    status.time_zone = session.vars.text(VarId::TimeZone).map(|zone| zone.as_bytes().to_vec());
    let micros = (session.env.now_micros % 1_000_000) as u32;
    status.hrnow = (micros > 0).then_some(micros);
    let current = session.current_schema.as_deref().unwrap_or("");
    QueryEvent::new(session.info.id.0 as u32, &status, current.as_bytes(), text)
}

fn status_vars(session: &SessionState, text: &[u8]) -> StatusVars {
    let vars = &session.vars;
    let named = session.named_charsets();
    // The text of the event is UTF-8, whatever the client sent; ASCII is the same in both.
    let says = |charset: &Charset| text.is_ascii() || charset.is_as_in_memory();
    let charset = named.client.filter(says).unwrap_or(Charset::Utf8mb4);
    let client = match session.client_collation {
        named if named.charset() == charset => named,
        _ => charset.default_collation(),
    };
    let off = |id: VarId, bit: u32| if vars.flag(id) { 0 } else { bit };
    let on = |id: VarId, bit: u32| if vars.flag(id) { bit } else { 0 };
    // TIMESTAMP columns are made like others, whatever `explicit_defaults_for_timestamp` says.
    const EXPLICIT_DEFAULTS: u32 = 0x100_0000;
    let locale = vars.uint(VarId::LcTimeNames) as u16;
    let flags2 = EXPLICIT_DEFAULTS
        | on(VarId::SqlAutoIsNull, 0x4000)
        | off(VarId::ForeignKeyChecks, 0x400_0000)
        | off(VarId::UniqueChecks, 0x800_0000);
    let (increment, offset) =
        (vars.uint(VarId::AutoIncrementIncrement), vars.uint(VarId::AutoIncrementOffset));
    StatusVars {
        flags2: Some(flags2),
        sql_mode: Some(session.env.sql_mode.0),
        catalog: Some(b"std".to_vec()),
        lc_time_names: (locale != 0).then_some(locale),
        auto_increment: (increment != 1 || offset != 1).then_some((increment as u16, offset as u16)),
        charset: Some([client.0, session.env.collation_connection.0, named.server.0]),
        ..StatusVars::default()
    }
}

/// What a new database inherits.
pub(super) fn server_collation(session: &SessionState) -> Collation {
    session.named_charsets().server
}

/// The schema that a name is in; error 1046.
pub(super) fn schema_of(ctx: &StatementContext<'_>, name: &ObjectName) -> SqlResult<String> {
    let current = ctx.session.current_schema.as_deref();
    name.db.as_deref().or(current).map(str::to_owned).ok_or_else(SqlError::no_database_selected)
}

/// Before a change of definitions: a backup that blocks them blocks it. First, so that it holds nothing while
/// it waits for a backup that goes on.
pub(super) fn lock_definitions(ctx: &mut StatementContext<'_>) -> SqlResult<()> {
    ctx.trx.lock_metadata(&MetadataKey::Definitions, MetadataMode::SharedWrite)?;
    ctx.trx.lock_metadata(&MetadataKey::Global, MetadataMode::SharedWrite)
}

/// Locks a schema's name (`SharedRead` to change something in it, `Exclusive` to change itself) and looks at
/// it.
pub(super) fn lock_schema(
    ctx: &mut StatementContext<'_>,
    schema: &str,
    mode: MetadataMode,
) -> SqlResult<Option<Arc<Schema>>> {
    lock_definitions(ctx)?;
    ctx.trx.lock_metadata(&MetadataKey::Schema(schema.into()), mode)?;
    Ok(ctx.db.catalog().schemas.get(schema).cloned())
}

/// Locks a schema for a change of something in it; error 1049 when it is not there, 1044 in
/// information_schema.
pub(super) fn enter_schema(ctx: &mut StatementContext<'_>, schema: &str) -> SqlResult<Arc<Schema>> {
    refuse_virtual(ctx, schema)?;
    lock_schema(ctx, schema, MetadataMode::SharedRead)?.ok_or_else(|| SqlError::unknown_database(schema))
}

/// Nobody changes information_schema; error 1044.
pub(super) fn refuse_virtual(ctx: &StatementContext<'_>, schema: &str) -> SqlResult<()> {
    if !ctx.db.virtual_tables.has_schema(schema) {
        return Ok(());
    }
    let (user, host) = &ctx.session.info.account;
    Err(SqlError::database_access_denied(user, host, schema))
}

/// Locks a table's name.
pub(super) fn lock_table_name(
    ctx: &mut StatementContext<'_>,
    schema: &str,
    table: &str,
    mode: MetadataMode,
) -> SqlResult<()> {
    ctx.trx.lock_metadata(&MetadataKey::Table(schema.into(), table.into()), mode)
}

/// Locks a table exclusively, and its schema for use; errors 1146, 1347 for a view.
pub(super) fn lock_table(ctx: &mut StatementContext<'_>, name: &ObjectName) -> SqlResult<Arc<Table>> {
    let schema = schema_of(ctx, name)?;
    let missing = || SqlError::no_such_table(&schema, &name.name);
    refuse_virtual(ctx, &schema)?;
    lock_schema(ctx, &schema, MetadataMode::SharedRead)?.ok_or_else(missing)?;
    lock_table_name(ctx, &schema, &name.name, MetadataMode::Exclusive)?;
    let catalog = ctx.db.catalog();
    if catalog.view(&schema, &name.name).is_some() {
        return Err(SqlError::not_a_base_table(&schema, &name.name));
    }
    catalog.table(&schema, &name.name).cloned().ok_or_else(missing)
}

/// The catalog under the locks taken so far. What is locked was published before.
pub(super) fn catalog(ctx: &StatementContext<'_>) -> Arc<Catalog> {
    ctx.db.catalog()
}

/// Checks the name of a key or constraint that is about to be given: error 1059 for one that is too long.
pub(super) fn check_key_name(name: &str) -> SqlResult<()> {
    match name.chars().count() > IDENTIFIER_CHARS_MAX {
        true => Err(SqlError::too_long_identifier(name)),
        false => check_identifier(name, SqlError::wrong_index_name),
    }
}

/// Checks another name that is about to be given.
pub(super) fn check_identifier(name: &str, wrong: impl Fn(&str) -> SqlError) -> SqlResult<()> {
    let is_too_long = name.chars().count() > IDENTIFIER_CHARS_MAX;
    if is_too_long || name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(wrong(name));
    }
    Ok(())
}

/// Names of schemas and tables, which replicas and dumps use as file names.
pub(super) fn check_table_name(name: &str) -> SqlResult<()> {
    check_identifier(name, SqlError::wrong_table_name)
}
