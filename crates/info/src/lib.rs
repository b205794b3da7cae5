//! SHOW and information_schema, table maintenance, FLUSH and PURGE.
//!
//! | module | concept |
//! |---|---|
//! | `information_schema` | tables of information_schema: columns recorded from MariaDB |
//! | `schema_table` | one of these tables |
//! | `cells` | values of cells |
//! | `rows`, `rows_tables`, `rows_server` | the rows of these tables |
//! | `foreign` | foreign keys in information_schema |
//! | `innodb_tables` | the B+tree engine in information_schema, under InnoDB's names |
//! | `listing`, `listing_filter` | [`Listing`]: a result with its columns; LIKE and WHERE |
//! | `projection` | SHOW statements that return columns of information_schema under other names |
//! | `status`, `status_absent` | SHOW STATUS |
//! | `system_variables` | information_schema.SYSTEM_VARIABLES |
//! | `engine_status` | SHOW ENGINE STATUS |
//! | `transactions` | running transactions and lock waits |
//! | `commit_stages`, `statements`, `backups` | information_schema.COHORT_COMMIT_STAGES, COHORT_STATEMENTS, COHORT_BACKUPS |
//! | `routine_lines` | information_schema.ROUTINE_LINES |
//! | `usage` | the tables of `userstat` |
//! | `words` | KEYWORDS, SQL_FUNCTIONS, USER_VARIABLES |
//! | `performance/` | rows of performance_schema |
//! | `view` | views in SHOW and information_schema |
//! | `binlog` | SHOW BINARY LOGS and the like; FLUSH LOGS, PURGE |
//! | `replica` | SHOW SLAVE STATUS |
//! | `xa_recover` | XA RECOVER |
//! | `plugins` | SHOW PLUGINS, INSTALL, UNINSTALL |
//! | `maintenance` | CHECK, ANALYZE, OPTIMIZE, REPAIR, CHECKSUM TABLE |
//! | `privileges` | SHOW PRIVILEGES |
//! | `log_tables`, `user_table`, `global_priv`, `position_table` | tables of the schema mysql |
//! | `mysql_tables` | texts of the tables of the schema mysql |
//! | `server_tables`, `replication_tables` | further tables of mysql and performance_schema |
//! | `recorded_type` | column types as recorded from MariaDB |

mod backups;
mod binlog;
mod cells;
mod commit_stages;
mod engine_status;
mod events;
mod foreign;
mod global_priv;
mod information_schema;
mod innodb_tables;
mod listing;
mod listing_filter;
mod log_tables;
mod maintenance;
mod mysql_tables;
mod performance;
mod plugins;
mod position_table;
mod privileges;
mod projection;
mod recorded_type;
mod replica;
mod replication_tables;
mod routine_lines;
mod routines;
mod rows;
mod rows_server;
mod rows_tables;
mod schema_table;
mod server_tables;
mod statements;
mod status;
mod status_absent;
mod system_variables;
mod trace;
mod transactions;
mod triggers;
mod usage;
mod user_table;
mod view;
mod words;
mod xa_recover;

use cohort_catalog::Table;
use cohort_config::Scope;
use cohort_locks::MetadataKey;
use cohort_sql::ast::{Backup, ObjectName, Show, ShowFilter, VariableScope};
use cohort_types::{ColumnType, Privilege, Privileges, RoutineKind, SqlError, SqlResult, TypeKind, Value};
use std::sync::Arc;

use crate::status::Of;
use cohort_ddl::{create_text as create, create_user_lines, grant_lines};
use cohort_session::access::check_global;
use cohort_session::{MEASURES, StatementContext, measure_type};
use cohort_trx::Counted;

pub use binlog::{flush, purge, reset as reset_master, reset_error};
pub use information_schema::information_schema;
pub use listing::Listing;
pub use listing_filter::without_where;
pub use log_tables::check_log_tables;
pub use maintenance::run as maintain_tables;
pub use mysql_tables::{STORED as STORED_TABLES, create_text as create_text_of_mysql};
pub use plugins::run as change_plugins;
pub use server_tables::privileges_of_words;
pub use transactions::deadlock_text;
pub use user_table::privilege_of_column;
pub use xa_recover::xa_recover;

/// Runs BACKUP. The stages take locks and write nothing. The files on disk are always a checkpoint and the
/// log after it, so a copy taken of all files at one point in time recovers as after a crash.
pub fn backup(ctx: &mut StatementContext<'_>, backup: &Backup) -> SqlResult<()> {
    match backup {
        Backup::Stage(stage) => ctx.trx.enter_backup_stage(*stage),
        Backup::Lock(name) => {
            let schema = schema_of(ctx, name.db.as_deref())?;
            let key = MetadataKey::Table(schema.as_str().into(), name.name.as_str().into());
            ctx.trx.lock_for_backup(key)
        }
        Backup::Unlock => {
            let needed = Privileges::of(&[Privilege::Reload, Privilege::LockTables]);
            let may_lock = |schema: &str| ctx.session.access().on_schema(schema).has(Privilege::LockTables);
            if !ctx.trx.backup_schema().is_some_and(|schema| may_lock(&schema)) {
                check_global(ctx.session, needed)?;
            }
            ctx.trx.unlock_for_backup();
            Ok(())
        }
        // The session runs it.
        Backup::Proven(id) => match ctx.db.commit.prove_backup(id) {
            Ok(true) => Ok(()),
            Ok(false) => Err(SqlError::backup_failed(format_args!(
                "this data directory has not taken a backup '{id}', or has taken many since"
            ))),
            Err(error) => Err(SqlError::backup_failed(&error)),
        },
        Backup::Server(_) => Err(SqlError::not_supported("this BACKUP here")),
    }
}

/// Runs a SHOW.
pub fn run(ctx: &mut StatementContext<'_>, show: &Show) -> SqlResult<Listing> {
    match show {
        Show::Databases { filter } => projection::databases(ctx, filter.as_ref()),
        Show::Tables { full, db, filter } => projection::tables(ctx, *full, db.as_deref(), filter.as_ref()),
        Show::TableStatus { db, filter } => projection::table_status(ctx, db.as_deref(), filter.as_ref()),
        Show::OpenTables { db, filter } => projection::open_tables(ctx, db.as_deref(), filter.as_ref()),
        Show::Columns { full, table, filter } => projection::columns(ctx, *full, table, filter.as_ref()),
        Show::Index { table, filter } => projection::index(ctx, table, filter.as_ref()),
        Show::CreateTable(name) => create_table(ctx, name),
        Show::CreateSequence(name) => create_sequence(ctx, name),
        Show::CreateDatabase { if_not_exists, name } => create_database(ctx, *if_not_exists, name),
        Show::Variables { scope, filter } => variables(ctx, *scope, filter.as_ref()),
        Show::Status { scope, filter } => {
            let of = if *scope == VariableScope::Global { Of::Server } else { Of::Session };
            let pairs = status::server_status(ctx, of);
            name_value(ctx, "SESSION_STATUS", pairs, filter.as_ref())
        }
        Show::ProcessList { full } => processlist(ctx, *full),
        Show::Engine { name, what } => engine(ctx, name, what),
        Show::BinaryLogs => binlog::binary_logs(ctx),
        Show::BinlogEvents { log, from, limit } => binlog::events(ctx, log.as_deref(), *from, limit.as_ref()),
        Show::MasterStatus => binlog::master_status(ctx),
        Show::SlaveHosts => Ok(replica::hosts(ctx)),
        Show::SlaveStatus { all, connection } => replica::status(ctx, *all, connection.as_deref()),
        Show::Grants(account) => grants(ctx, account.as_ref()),
        Show::Privileges => Ok(privileges::all()),
        // The session runs these.
        Show::Warnings { .. }
        | Show::Errors { .. }
        | Show::CountWarnings
        | Show::CountErrors
        | Show::Explain { .. } => Err(SqlError::not_supported("this SHOW here")),
        Show::CreateView(name) => create_view(ctx, name),
        Show::CreateOther { kind, name } => match &**kind {
            "PROCEDURE" => routines::show_create(ctx, RoutineKind::Procedure, name),
            "FUNCTION" => routines::show_create(ctx, RoutineKind::Function, name),
            "TRIGGER" => triggers::show_create(ctx, name),
            "EVENT" => events::show_create(ctx, name),
            kind => Err(SqlError::does_not_exist(kind, &name.name)),
        },
        Show::CreateUser(account) => create_user(ctx, account.as_ref()),
        Show::RelaylogEvents { connection, log, from, limit } => {
            let bounds = binlog::bounds(ctx, limit.as_ref())?;
            replica::relay_events(ctx, connection.as_deref(), (log.as_deref(), *from), bounds)
        }
        Show::Profiles => Ok(profiles(ctx)),
        Show::Profile { measures, statement, limit } => {
            let bounds = binlog::bounds(ctx, limit.as_ref())?;
            Ok(profile(ctx, measures, *statement, bounds))
        }
        Show::Engines => projection::simple(ctx, projection::ENGINES, None),
        Show::CharacterSet { filter } => projection::simple(ctx, projection::CHARACTER_SETS, filter.as_ref()),
        Show::Collation { filter } => projection::simple(ctx, projection::COLLATIONS, filter.as_ref()),
        Show::Plugins { filter } => projection::simple(ctx, projection::PLUGINS, filter.as_ref()),
        Show::Usage { table, filter } => projection::usage(ctx, table, filter.as_ref()),
        Show::Triggers { db, filter } => projection::triggers(ctx, db.as_deref(), filter.as_ref()),
        Show::Events { db, filter } => projection::events(ctx, db.as_deref(), filter.as_ref()),
        Show::ProcedureStatus { filter } => projection::routines(ctx, "PROCEDURE", filter.as_ref()),
        Show::FunctionStatus { filter } => projection::routines(ctx, "FUNCTION", filter.as_ref()),
        Show::PackageStatus { filter } => projection::routines(ctx, "PACKAGE", filter.as_ref()),
    }
}

/// Returns the table that a SHOW names; errors 1046, 1146.
fn base_table(ctx: &StatementContext<'_>, name: &ObjectName) -> SqlResult<Arc<Table>> {
    let schema = schema_of(ctx, name.db.as_deref())?;
    let own = ctx.session.temporary.find(&schema, &name.name);
    let found = own.or_else(|| ctx.db.catalog().table(&schema, &name.name).cloned());
    found.ok_or_else(|| SqlError::no_such_table(&schema, &name.name))
}

/// Returns the named schema, or the current one; error 1046.
fn schema_of(ctx: &StatementContext<'_>, named: Option<&str>) -> SqlResult<String> {
    let current = ctx.session.current_schema.as_deref();
    named.or(current).map(str::to_owned).ok_or_else(SqlError::no_database_selected)
}

fn create_table(ctx: &mut StatementContext<'_>, name: &ObjectName) -> SqlResult<Listing> {
    let mut listing = Listing::new(&[("Table", 64), ("Create Table", 1024)]);
    let schema = schema_of(ctx, name.db.as_deref())?;
    if let Some(found) = ctx.session.virtual_table(&schema, &name.name) {
        if found.is_view() {
            return Ok(view::create_virtual(&**found));
        }
        listing.add([Value::text(found.name()), Value::text(found.create_text())]);
        return Ok(listing);
    }
    if let Some(view) = ctx.db.catalog().view(&schema, &name.name)
        && ctx.session.temporary.find(&schema, &name.name).is_none()
    {
        return view::create(ctx, view);
    }
    let table = base_table(ctx, name)?;
    let open = ctx.trx.open_table(&table)?;
    let next = ctx.trx.auto_increment_next(&open)?;
    let text = create::table(&table, next, (create::ShowStyle::of(ctx), &ctx.session.settings.env.time_zone));
    listing.add([Value::text(&table.name.table), Value::text(text)]);
    Ok(listing)
}

/// Runs SHOW CREATE SEQUENCE; errors 1146, 4089.
fn create_sequence(ctx: &mut StatementContext<'_>, name: &ObjectName) -> SqlResult<Listing> {
    let table = base_table(ctx, name)?;
    if !table.is_sequence() {
        return Err(SqlError::not_a_sequence(&table.name.schema, &table.name.table));
    }
    let open = ctx.trx.open_table(&table)?;
    let definition = cohort_session::sequence::read(ctx.session, &open)?;
    let mut listing = Listing::new(&[("Table", 64), ("Create Table", 1024)]);
    let text = create::sequence(&table, &definition, create::ShowStyle::of(ctx));
    listing.add([Value::text(&table.name.table), Value::text(text)]);
    Ok(listing)
}

/// Runs SHOW CREATE VIEW; errors 1146, 1347.
fn create_view(ctx: &StatementContext<'_>, name: &ObjectName) -> SqlResult<Listing> {
    let schema = schema_of(ctx, name.db.as_deref())?;
    let catalog = ctx.db.catalog();
    if let Some(found) = ctx.db.virtual_table(&schema, &name.name).filter(|found| found.is_view()) {
        return Ok(view::create_virtual(&**found));
    }
    match catalog.view(&schema, &name.name) {
        Some(view) => view::create(ctx, view),
        None => {
            let table = base_table(ctx, name)?;
            Err(SqlError::not_a_view(&table.name.schema, &table.name.table))
        }
    }
}

fn create_database(ctx: &StatementContext<'_>, if_not_exists: bool, name: &str) -> SqlResult<Listing> {
    let mut listing = Listing::new(&[("Database", 64), ("Create Database", 1024)]);
    let catalog = ctx.db.catalog();
    let schema = catalog.schemas.get(name).ok_or_else(|| SqlError::unknown_database(name))?;
    let word = if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" };
    let text = create::database(schema, word, create::ShowStyle::of(ctx));
    listing.add([Value::text(name), Value::text(text)]);
    Ok(listing)
}

/// Counts a SHOW that MariaDB runs as a query on a table of information_schema.
fn count_computed_table(ctx: &StatementContext<'_>) {
    ctx.session.statement.reads_whole_table.set(true);
    ctx.process.counts().count(Counted::SelectScan);
    ctx.process.counts().count(Counted::CreatedTmpTables);
}

fn name_value(
    ctx: &StatementContext<'_>,
    table: &'static str,
    pairs: impl IntoIterator<Item = (String, String)>,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let mut listing = Listing::default();
    listing.text("Variable_name", 64).of(table, "VARIABLE_NAME");
    listing.text("Value", 4096).of(table, "VARIABLE_VALUE");
    for (name, value) in pairs {
        listing.add([Value::text(name), Value::text(value)]);
    }
    listing.filter(ctx, filter, 0)?;
    Ok(listing)
}

fn variables(
    ctx: &StatementContext<'_>,
    scope: VariableScope,
    filter: Option<&ShowFilter>,
) -> SqlResult<Listing> {
    let scope = if scope == VariableScope::Global { Scope::Global } else { Scope::Session };
    count_computed_table(ctx);
    name_value(ctx, "SESSION_VARIABLES", rows_server::variables(ctx, scope), filter)
}

fn processlist(ctx: &StatementContext<'_>, full: bool) -> SqlResult<Listing> {
    const INFO_CHARS: usize = 100;
    let mut listing = Listing::default();
    listing.number("Id", 11);
    listing.text("User", 128).text("Host", 64).nullable_text("db", 64).text("Command", 16);
    let time = ColumnType::int(TypeKind::Int, Some(7), false);
    listing.column("Time", time, false).nullable_text("State", 30);
    listing.nullable_text("Info", if full { 1 << 24 } else { INFO_CHARS as u32 });
    listing.column("Progress", ColumnType::real(TypeKind::Double, Some((7, 3))), false);
    for p in rows_server::processes(ctx) {
        let seconds = rows_server::running_us(ctx, &p) / 1_000_000;
        let info = p.info.map(|info| match full {
            true => info,
            false => info.chars().take(INFO_CHARS).collect(),
        });
        let state = if p.id == ctx.process.id() { "starting" } else { p.state };
        listing.add([
            Value::Int(p.id.0 as i64),
            Value::text(p.identity.user),
            Value::text(p.identity.host),
            p.identity.schema.map_or(Value::Null, Value::text),
            Value::text(p.command.name()),
            Value::Int(seconds as i64),
            Value::text(state),
            info.map_or(Value::Null, Value::text),
            rows_server::thousandths(p.progress.into()),
        ]);
    }
    Ok(listing)
}

fn profiles(ctx: &StatementContext<'_>) -> Listing {
    let mut listing = Listing::default();
    listing.column("Query_ID", ColumnType::int(TypeKind::Int, Some(10), true), false);
    listing.column("Duration", ColumnType::real(TypeKind::Double, Some((10, 8))), false);
    listing.text("Query", 300);
    ctx.session.log.profiles.borrow().rows().for_each(|row| listing.add(row));
    listing
}

fn profile(
    ctx: &StatementContext<'_>,
    measures: &[&str],
    statement: Option<u64>,
    (skipped, count): (usize, usize),
) -> Listing {
    let mut listing = Listing::default();
    listing.text("Status", 30).column("Duration", ColumnType::decimal(9, 6), false);
    let is_wanted = |name: &str| measures.iter().any(|measure| *measure == "ALL" || *measure == name);
    let wanted = MEASURES.iter().filter(|(name, _)| is_wanted(name));
    let columns: Vec<&str> = wanted.flat_map(|(_, columns)| columns.iter().copied()).collect();
    for column in &columns {
        listing.column(*column, measure_type(column), true);
    }
    let steps = ctx.session.log.profiles.borrow().steps(statement);
    for step in steps.into_iter().skip(skipped).take(count) {
        listing.rows.push(step.into_iter().chain(columns.iter().map(|_| Value::Null)).collect());
    }
    listing
}

fn engine(ctx: &StatementContext<'_>, name: &str, what: &str) -> SqlResult<Listing> {
    if name.eq_ignore_ascii_case("PERFORMANCE_SCHEMA") {
        return Ok(performance_memory(ctx, what));
    }
    let is_known = ["COHORT", "INNODB", "ALL"].iter().any(|k| k.eq_ignore_ascii_case(name))
        || ctx.db.engine_named(name).is_some();
    if !is_known {
        return Err(SqlError::unknown_engine(name));
    }
    let mut listing = Listing::new(&[("Type", 10), ("Name", 512), ("Status", 65_535)]);
    if what == "STATUS" {
        let text = engine_status::text(ctx);
        listing.add([Value::text(name.to_uppercase()), Value::text(""), Value::text(text)]);
    }
    Ok(listing)
}

/// Runs SHOW ENGINE PERFORMANCE_SCHEMA STATUS: the memory of the statistics.
fn performance_memory(ctx: &StatementContext<'_>, what: &str) -> Listing {
    let mut listing = Listing::new(&[("Type", 10), ("Name", 512), ("Status", 65_535)]);
    if what == "STATUS" {
        let bytes = ctx.db.statements.bytes().to_string();
        for name in ["events_statements_summary_by_digest.memory", "performance_schema.memory"] {
            listing.add([Value::text("performance_schema"), Value::text(name), Value::text(&bytes)]);
        }
    }
    listing
}

fn create_user(ctx: &StatementContext<'_>, account: Option<&cohort_sql::ast::Account>) -> SqlResult<Listing> {
    let (title, lines) = create_user_lines(ctx.session, account)?;
    let mut listing = Listing::default();
    listing.text(title, 1024);
    for line in lines {
        listing.add([Value::text(line)]);
    }
    Ok(listing)
}

fn grants(ctx: &StatementContext<'_>, account: Option<&cohort_sql::ast::Account>) -> SqlResult<Listing> {
    let (title, lines) = grant_lines(ctx.session, account)?;
    let mut listing = Listing::default();
    listing.text(title, 1024);
    for line in lines {
        listing.add([Value::text(line)]);
    }
    Ok(listing)
}
