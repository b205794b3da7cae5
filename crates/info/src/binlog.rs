//! Statements about the binary log.

use std::num::NonZeroU32;

use cohort_base::DomainId;
use cohort_binlog::BinlogError;
use cohort_commit::{CheckpointError, CommitError, GroupKind, PurgeError, PurgeRule, ResetError};
use cohort_config::VarId;
use cohort_sql::ast::{Flush, FlushLock, FlushTarget, Limit, PurgeBinaryLogs};
use cohort_types::{ColumnType, ErrorCode, Level, SqlError, SqlResult, TypeKind, Value, Warning};

use super::listing::Listing;
use cohort_plan::{Binder, Clause, PlanContext, Scope};
use cohort_session::{Database, SessionNames, StatementContext, StatementLog};
use cohort_trx::engine_error;

/// Maximum number of a binary log file, as in MariaDB.
const FILE_NUMBER_MAX: u32 = i32::MAX as u32;

fn position_type() -> ColumnType {
    ColumnType::int(TypeKind::BigInt, Some(20), true)
}

fn binlog_error(error: &BinlogError) -> SqlError {
    match error {
        BinlogError::UnknownFile { .. } => SqlError::unknown_binlog(),
        other => SqlError::binlog_unreadable(other),
    }
}

fn events_error(what: &str) -> SqlError {
    SqlError::show_binlog_events_failed(what)
}

fn commit_error(error: &CommitError) -> SqlError {
    match error {
        CommitError::Stopped => SqlError::server_shutdown(),
        other => SqlError::new(ErrorCode::UnknownError, other.to_string()),
    }
}

/// Runs SHOW BINARY LOGS. Works even if the disk is full, so that files to purge can be chosen.
pub(super) fn binary_logs(ctx: &StatementContext<'_>) -> SqlResult<Listing> {
    let sizes = ctx.db.commit.with_files_that_fit(|files| files.sizes());
    let sizes = sizes.ok_or_else(SqlError::no_binary_logging)?.and_then(|sizes| sizes);
    let mut listing = Listing::new(&[("Log_name", 255)]);
    listing.column("File_size", position_type(), false);
    for size in sizes.map_err(|e| binlog_error(&e))? {
        listing.add([Value::text(size.name), Value::UInt(size.bytes)]);
    }
    Ok(listing)
}

/// Runs SHOW MASTER STATUS. Returns no rows if the binlog is off.
pub(super) fn master_status(ctx: &StatementContext<'_>) -> SqlResult<Listing> {
    let mut listing = Listing::new(&[("File", 512)]);
    listing
        .column("Position", position_type(), false)
        .text("Binlog_Do_DB", 255)
        .text("Binlog_Ignore_DB", 255);
    let Some((position, _)) = ctx.db.commit.binlog_status() else { return Ok(listing) };
    // The file can be copied up to this position.
    ctx.db.commit.complete_binlog_files();
    let name = ctx.db.commit.binlog_file_name(position.file);
    let list = |id| Value::text(ctx.db.globals.text(id).as_deref().unwrap_or(""));
    if let Some(name) = name {
        listing.add([
            Value::text(name),
            Value::UInt(position.offset),
            list(VarId::BinlogDoDb),
            list(VarId::BinlogIgnoreDb),
        ]);
    }
    Ok(listing)
}

/// Runs SHOW BINLOG EVENTS, by default of the first file.
pub(super) fn events(
    ctx: &mut StatementContext<'_>,
    log: Option<&str>,
    from: Option<u64>,
    limit: Option<&Limit>,
) -> SqlResult<Listing> {
    let mut listing = Listing::new(&[("Log_name", 20)]);
    listing.column("Pos", position_type(), false).text("Event_type", 20).number("Server_id", 10);
    listing.column("End_log_pos", position_type(), false).text("Info", 65_535);
    let Some((end, _)) = ctx.db.commit.binlog_status() else { return Ok(listing) };
    let (offset, count) = bounds(ctx, limit)?;
    let opened = ctx.db.commit.with_binlog_files(|files| {
        let number = match log {
            Some(name) => files.find(name)?,
            None => files.numbers().first().copied().unwrap_or(1),
        };
        Ok((number, files.name().file(number), files.reader(number)?))
    });
    let opened = opened.ok_or_else(SqlError::no_binary_logging)?.and_then(|opened| opened);
    let (number, name, mut reader) = match opened {
        Err(BinlogError::UnknownFile { .. }) => return Err(events_error("Could not find target log")),
        other => other.map_err(|e| binlog_error(&e))?,
    };
    if number == end.file {
        reader.set_limit(end.offset);
    }
    let from = from.unwrap_or(4).max(4);
    let wanted = offset.saturating_add(count);
    while listing.rows.len() < wanted {
        ctx.check_interrupt()?;
        let next = reader.next_event().map_err(|e| events_error(&e.to_string()))?;
        let Some(raw) = next else { break };
        if raw.offset < from {
            continue;
        }
        let info = reader.decode(&raw).and_then(|event| event.info(&raw.header));
        let info = info.map_err(|e| events_error(&e.to_string()))?;
        listing.add([
            Value::text(&name),
            Value::UInt(raw.offset),
            Value::text(raw.header.kind.name()),
            Value::Int(raw.header.server_id.0.into()),
            Value::UInt(raw.end()),
            Value::text(String::from_utf8_lossy(&info)),
        ]);
    }
    listing.cut(offset, count);
    Ok(listing)
}

fn constant(ctx: &StatementContext<'_>, expr: &cohort_sql::ast::Expr) -> SqlResult<Value> {
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let (params, source) = ctx.bound_params();
    let plan = PlanContext::new(&names, params, source);
    let scope = Scope::default();
    let bound = Binder::new(&plan, &scope, Clause::Select).expression(expr)?;
    Ok(bound.eval(&[], &ctx.eval)?.into_owned())
}

/// Returns the offset and count of a LIMIT.
pub(super) fn bounds(ctx: &StatementContext<'_>, limit: Option<&Limit>) -> SqlResult<(usize, usize)> {
    let Some(limit) = limit else { return Ok((0, usize::MAX)) };
    let number = |expr| {
        let n = constant(ctx, expr)?.to_int(&mut cohort_types::NoWarnings).map_or(0, |n| n.wide());
        Ok::<usize, SqlError>(usize::try_from(n).unwrap_or(0))
    };
    Ok((limit.offset.as_ref().map(number).transpose()?.unwrap_or(0), number(&limit.count)?))
}

/// Runs FLUSH.
pub fn flush(ctx: &mut StatementContext<'_>, flush: &Flush) -> SqlResult<()> {
    for target in &flush.targets {
        match target {
            FlushTarget::BinaryLogs { delete_domains: Some(domains) } => delete_domains(ctx, domains)?,
            FlushTarget::Logs | FlushTarget::BinaryLogs { .. } => {
                ctx.db.commit.rotate_binlog().map_err(|e| commit_error(&e))?;
                // The finished file is complete.
                ctx.db.commit.complete_binlog_files();
                if *target == FlushTarget::Logs {
                    ctx.db.reopen_log(StatementLog::General);
                    ctx.db.reopen_log(StatementLog::Slow);
                    ctx.db.reopen_error_log()?;
                }
            }
            FlushTarget::RelayLogs => {
                if let Some(control) = &*ctx.db.replica.read() {
                    control.rotate_relay_logs()?;
                }
            }
            FlushTarget::ErrorLogs => ctx.db.reopen_error_log()?,
            FlushTarget::GeneralLogs => ctx.db.reopen_log(StatementLog::General),
            FlushTarget::SlowLogs => ctx.db.reopen_log(StatementLog::Slow),
            FlushTarget::Tables { names, lock: FlushLock::WithReadLock } if names.is_empty() => {
                ctx.trx.lock_globally()?;
            }
            // The session has locked them as LOCK TABLES does.
            FlushTarget::Tables { lock: FlushLock::WithReadLock, .. } => {}
            FlushTarget::Tables { lock: FlushLock::ForExport, .. } => {
                return Err(SqlError::not_supported("FLUSH TABLES FOR EXPORT"));
            }
            FlushTarget::UserResources => ctx.db.account_usages.flush(),
            FlushTarget::Privileges => ctx.db.account_usages.unblock(),
            FlushTarget::Status => {
                ctx.db.processes.flush_counts(ctx.process);
                ctx.db.status.flush();
            }
            FlushTarget::Other(what) if what == "SSL" => {
                if let Some(callbacks) = &*ctx.db.callbacks.read() {
                    callbacks.reload_tls()?;
                }
            }
            FlushTarget::Other(what) if what == "USER_VARIABLES" => {
                ctx.session.user_variables.borrow_mut().clear();
            }
            FlushTarget::Other(what) if what.ends_with("_STATISTICS") => super::usage::flush(ctx, what),
            // There is no cache that could become stale.
            _ => {}
        }
    }
    if !flush.local && flush.targets.iter().all(goes_to_replicas) {
        // In MariaDB, all but this one carry the flag DDL, too.
        let is_ddl = !flush.targets.contains(&FlushTarget::Privileges);
        let kind = if is_ddl { GroupKind::Ddl } else { GroupKind::Statement };
        cohort_ddl::log_statement(ctx, kind)?;
    }
    Ok(())
}

/// Runs FLUSH BINARY LOGS DELETE_DOMAIN_ID.
fn delete_domains(ctx: &mut StatementContext<'_>, domains: &[u32]) -> SqlResult<()> {
    let domains: Vec<DomainId> = domains.iter().map(|&domain| DomainId(domain)).collect();
    let deletion = ctx.db.commit.delete_gtid_domains(&domains).map_err(purge_error)?;
    let Some(deletion) = deletion else { return Ok(()) };
    for text in deletion.warnings {
        let error = SqlError::gtid_domain_kept(&text);
        ctx.eval.push_warning(Warning { level: Level::Warning, error });
    }
    match deletion.refusal {
        None => Ok(()),
        Some(why) => Err(SqlError::cannot_delete_gtid_domain(&why)),
    }
}

/// Returns whether a FLUSH is replicated. Excluded are those that would rotate binary logs in an endless loop
/// around a replication ring, and those that keep a lock.
fn goes_to_replicas(target: &FlushTarget) -> bool {
    match target {
        FlushTarget::Logs | FlushTarget::BinaryLogs { .. } | FlushTarget::RelayLogs => false,
        FlushTarget::Tables { lock, .. } => *lock == FlushLock::None,
        FlushTarget::Other(what) => !matches!(what.as_str(), "MASTER" | "SLAVE"),
        _ => true,
    }
}

/// Runs PURGE BINARY LOGS.
pub fn purge(ctx: &mut StatementContext<'_>, purge: &PurgeBinaryLogs) -> SqlResult<()> {
    match purge {
        PurgeBinaryLogs::To(name) => {
            let Some(found) = ctx.db.commit.with_written_files(|files| files.find(name)) else {
                return Ok(());
            };
            let number = found.map_err(|e| binlog_error(&e))?;
            purge_files(ctx.db, PurgeRule::Before(number))
        }
        PurgeBinaryLogs::Before(expr) => {
            if expr.has_subquery() {
                return Err(SqlError::no_subqueries_in("PURGE..BEFORE"));
            }
            let value = constant(ctx, expr)?;
            let ty = ColumnType::temporal(TypeKind::Timestamp, 0);
            let store = cohort_types::StoreContext {
                sql_mode: ctx.session.settings.env.sql_mode,
                strict: true,
                database: "",
                table: "",
                column: "",
                row: 1,
                zone: &ctx.session.settings.env.time_zone,
                now_micros: ctx.session.settings.env.now_micros,
            };
            let stored = ty.store(value, &store, &mut cohort_types::NoWarnings);
            let Ok(Value::Timestamp(micros)) = stored else {
                return Err(SqlError::wrong_arguments("PURGE LOGS BEFORE"));
            };
            let seconds = u32::try_from(micros / 1_000_000).unwrap_or(u32::MAX);
            purge_files(ctx.db, PurgeRule::ClosedBefore(seconds))
        }
    }
}

/// Purges files. As in MariaDB, files that a replica reads, and all later files, are kept without an error.
fn purge_files(db: &Database, rule: PurgeRule) -> SqlResult<()> {
    db.commit.purge_binlog(rule).map(drop).map_err(purge_error)
}

/// Runs RESET MASTER [TO number]. Readers of the binary log must disconnect first: a connected replica would
/// follow a log that no longer exists.
pub fn reset(ctx: &mut StatementContext<'_>, to: Option<u64>) -> SqlResult<()> {
    let first = u32::try_from(to.unwrap_or(1).max(1)).ok().and_then(NonZeroU32::new);
    let Some(first) = first.filter(|first| first.get() <= FILE_NUMBER_MAX) else {
        let base = ctx.db.commit.binlog_file_name(1).unwrap_or_default();
        let base = base.rsplit_once('.').map_or("", |(base, _)| base);
        return Err(SqlError::no_free_log_name(base));
    };
    ctx.db.commit.reset_binlog(first).map_err(reset_error)
}

/// Converts the reason why RESET MASTER or SET GLOBAL gtid_binlog_state was refused to an error.
pub fn reset_error(error: ResetError) -> SqlError {
    match error {
        ResetError::Off => SqlError::binlog_closed(),
        ResetError::Reader(who) => SqlError::log_in_use(who),
        ResetError::Archived => SqlError::prevented_by_option("--archive_to"),
        ResetError::NotEmpty => SqlError::binlog_must_be_empty(),
        ResetError::Commit(error) => commit_error(&error),
        ResetError::Checkpoint(error) => purge_error(PurgeError::Checkpoint(error)),
    }
}

fn purge_error(error: PurgeError) -> SqlError {
    match error {
        PurgeError::Binlog(error) => binlog_error(&error),
        PurgeError::Commit(error) => commit_error(&error),
        PurgeError::Checkpoint(CheckpointError::Engine(error)) => engine_error(error),
        PurgeError::Checkpoint(CheckpointError::Binlog(error)) => binlog_error(&error),
        PurgeError::Checkpoint(error) => SqlError::new(ErrorCode::UnknownError, error.to_string()),
    }
}
