//! Counters of SHOW STATUS.

use std::collections::BTreeMap;

use cohort_catalog::{Account, Catalog};
use cohort_config::{Counter, VarId};
use cohort_session::{EncryptedSession, StatementContext};

use super::status_absent::ABSENT;

/// The scope of counters that exist per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Session,
    Server,
}

/// Returns the TLS variables of the session's connection, whatever the scope. As in MariaDB, texts are empty
/// and numbers are zero without TLS.
fn encryption(session: Option<&EncryptedSession>) -> [(String, String); 8] {
    let text = |of: fn(&EncryptedSession) -> &str| session.map_or("", of).to_owned();
    let number = |value: u64| session.map_or(0, |_| value).to_string();
    [
        ("Ssl_cipher", text(|it| it.cipher)),
        ("Ssl_cipher_list", text(|it| &it.ciphers)),
        ("Ssl_default_timeout", number(7200)),
        ("Ssl_server_not_after", text(|it| &it.not_after)),
        ("Ssl_server_not_before", text(|it| &it.not_before)),
        ("Ssl_verify_depth", number(u64::MAX)),
        ("Ssl_verify_mode", number(5)),
        ("Ssl_version", text(|it| it.version)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

/// Returns the numbers of accounts, roles and grants.
fn acl_counts(catalog: &Catalog) -> [(&'static str, u64); 11] {
    let sum = |of: &dyn Fn(&Account) -> usize| {
        catalog.accounts.values().map(|account| of(account)).sum::<usize>() as u64
    };
    let routines = |kind: &str| {
        sum(&|account| account.grants.routines.keys().filter(|routine| routine.kind.name() == kind).count())
    };
    [
        ("Acl_users", sum(&|account| usize::from(!account.is_role))),
        ("Acl_roles", sum(&|account| usize::from(account.is_role))),
        ("Acl_role_grants", sum(&|account| account.roles.len())),
        ("Acl_proxy_users", sum(&|account| account.proxies.len())),
        ("Acl_database_grants", sum(&|account| account.grants.schemas.len())),
        ("Acl_table_grants", sum(&|account| account.grants.tables.len())),
        ("Acl_column_grants", sum(&|a| a.grants.tables.values().map(|grant| grant.columns.len()).sum())),
        ("Acl_function_grants", routines("FUNCTION")),
        ("Acl_procedure_grants", routines("PROCEDURE")),
        ("Acl_package_spec_grants", routines("PACKAGE")),
        ("Acl_package_body_grants", routines("PACKAGE BODY")),
    ]
}

/// Returns the names and values of all counters, ordered by name.
pub(super) fn server_status(ctx: &StatementContext<'_>, of: Of) -> BTreeMap<String, String> {
    let db = ctx.db;
    let absent = ABSENT.iter().flat_map(|(value, names)| names.iter().map(move |name| (*name, *value)));
    let mut all: BTreeMap<String, String> =
        absent.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for engine in &db.engines {
        all.extend(engine.status().into_iter().map(|(name, value)| (name, value.to_string())));
    }
    all.extend(pool_sizes(&all, ctx.session.settings.vars.globals().uint(VarId::InnodbBufferPoolSize)));
    let everybodys;
    let counts = match of {
        Of::Session => &**ctx.process.counts(),
        Of::Server => {
            everybodys = db.processes.counts();
            &everybodys
        }
    };
    all.extend(counts.list().map(|(name, value)| (name.to_owned(), value.to_string())));
    let mut put = |name: &str, value: u64| {
        all.insert(name.to_owned(), value.to_string());
    };
    db.commit.status().iter().for_each(|(name, value)| put(name, *value));
    let log = db.commit.log_stats();
    // Taken from the log that contains the engine's redo, which is the shared log if there is only one.
    let syncs_of = |engine| db.commit.engine_log_stats(engine).map_or(0, |log| log.syncs);
    put("Rocksdb_wal_synced", syncs_of("ROCKSDB"));
    put("Rocksdb_wal_group_syncs", db.commit.engine_group_syncs("ROCKSDB").unwrap_or(0));
    put("Innodb_os_log_fsyncs", syncs_of("InnoDB"));
    put("Innodb_data_fsyncs", log.syncs);
    put("Syncs", log.syncs);
    if let Some(log) = db.commit.engine_log_stats("InnoDB") {
        put("Innodb_os_log_written", log.written_bytes);
        put("Innodb_log_writes", log.flushes);
        put("Innodb_log_write_requests", log.records);
        put("Innodb_log_waits", log.reserve_waits);
    }
    let opened = db.tables.opened();
    let open = db.tables.len();
    put("Open_tables", open);
    put("Open_table_definitions", open);
    put("Opened_tables", opened);
    put("Opened_table_definitions", opened);
    put("Table_open_cache_misses", opened);
    put("Rows_read", counts.reads());
    if let Some(callbacks) = &*db.callbacks.read() {
        put("Open_files", callbacks.open_files());
    }
    let io = db.fs.io();
    put("Opened_files", io.opened);
    put("Performance_schema_file_instances_lost", io.lost);
    put("Innodb_num_open_files", io.files.iter().map(|file| file.open).sum());
    if let Some(positions) = db.commit.engine_log_positions("InnoDB") {
        put("Innodb_lsn_current", positions.appended.0);
        put("Innodb_lsn_flushed", positions.durable.0);
        put("Innodb_lsn_last_checkpoint", positions.checkpoint.0);
        put("Innodb_checkpoint_age", positions.appended.0.saturating_sub(positions.checkpoint.0));
    }
    let locks = db.locks.stats();
    put("Performance_schema_digest_lost", db.statements.lost());
    acl_counts(&db.catalog()).into_iter().for_each(|(name, value)| put(name, value));
    put("Innodb_row_lock_waits", locks.row_waits);
    put("Innodb_row_lock_current_waits", locks.row_waits_current);
    put("Innodb_row_lock_time", locks.row_wait_us_total / 1000);
    put("Innodb_row_lock_time_max", locks.row_wait_us_max / 1000);
    put(
        "Innodb_row_lock_time_avg",
        (locks.row_wait_us_total / 1000).checked_div(locks.row_waits).unwrap_or(0),
    );
    put("Innodb_deadlocks", locks.deadlocks);
    let (own, memory) = match of {
        Of::Session => (size_of_val(ctx.session) as u64, ctx.process.memory()),
        Of::Server => (0, db.processes.memory()),
    };
    put("Memory_used", own + memory.used());
    put("Max_memory_used", own + memory.peak());
    put("Threads_connected", db.processes.len() as u64);
    // In a transaction with a snapshot: the position from which a replica seeded with the snapshot must
    // start.
    let snapshot = ctx.trx.snapshot_binlog_end();
    if let Some(position) = snapshot.or_else(|| db.commit.binlog_status().map(|(position, _)| position))
        && let Some(name) = db.commit.binlog_file_name(position.file)
    {
        put("Binlog_snapshot_position", position.offset);
        all.insert("Binlog_snapshot_file".to_owned(), name);
    }
    if of == Of::Server {
        let ns: u64 = db.statements.kinds().iter().map(|kind| kind.sum_ns).sum();
        let seconds = format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000);
        let is_on = ctx.session.settings.vars.globals().flag(VarId::Userstat);
        let busy = if is_on { seconds.clone() } else { "0.000000".to_owned() };
        all.extend([("Query_time".to_owned(), seconds), ("Busy_time".to_owned(), busy)]);
    }
    all.extend(encryption(ctx.session.info.encryption.as_ref()));
    // Counters that the server maintains itself take precedence.
    all.extend(db.status.snapshot());
    // A transaction with events in the binary log has used a cache for them.
    if let Some(commits) = all.get("Binlog_commits").cloned() {
        all.insert("Binlog_cache_use".to_owned(), commits);
    }
    if db.status.get(Counter::ThreadsConnected) == 0 {
        all.insert("Threads_connected".to_owned(), db.processes.len().to_string());
    }
    all
}

/// Bytes of a page in the B+tree engine's buffer pool.
pub(super) const POOL_PAGE_BYTES: u64 = 16384;

/// Returns values derived from the pool's counters, which MariaDB provides to tools, too.
fn pool_sizes(engines: &BTreeMap<String, String>, pool_bytes: u64) -> Vec<(String, String)> {
    let counter = |name: &str| engines.get(name).and_then(|value| value.parse::<u64>().ok());
    let (Some(data), Some(dirty)) =
        (counter("Innodb_buffer_pool_pages_data"), counter("Innodb_buffer_pool_pages_dirty"))
    else {
        return Vec::new();
    };
    let total = pool_bytes / POOL_PAGE_BYTES;
    let sizes = [
        ("Innodb_page_size", POOL_PAGE_BYTES),
        ("Innodb_buffer_pool_pages_total", total),
        ("Innodb_buffer_pool_pages_free", total.saturating_sub(data)),
        ("Innodb_buffer_pool_pages_misc", 0),
        ("Innodb_buffer_pool_bytes_data", data * POOL_PAGE_BYTES),
        ("Innodb_buffer_pool_bytes_dirty", dirty * POOL_PAGE_BYTES),
    ];
    sizes.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}
