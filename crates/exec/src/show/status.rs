//! Counters of SHOW STATUS.

use std::collections::BTreeMap;

use cohort_config::Counter;

use crate::statement::StatementContext;

/// Whose counters are wanted, where connections have some of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Session,
    Server,
}

/// Names and values of all counters, by name.
pub(super) fn server_status(ctx: &StatementContext<'_>, of: Of) -> BTreeMap<String, String> {
    let db = ctx.db;
    let mut all = BTreeMap::new();
    for engine in &db.engines {
        all.extend(engine.status().into_iter().map(|(name, value)| (name, value.to_string())));
    }
    let everybodys;
    let handlers = match of {
        Of::Session => &**ctx.process.handlers(),
        Of::Server => {
            everybodys = db.processes.handlers();
            &everybodys
        }
    };
    all.extend(handlers.list().map(|(name, value)| (name.to_owned(), value.to_string())));
    let mut put = |name: &str, value: u64| {
        all.insert(name.to_owned(), value.to_string());
    };
    db.commit.status().iter().for_each(|(name, value)| put(name, *value));
    let log = db.commit.log_stats();
    put("Rocksdb_wal_synced", log.syncs);
    put("Rocksdb_wal_group_syncs", log.syncs);
    put("Innodb_os_log_fsyncs", log.syncs);
    put("Innodb_data_fsyncs", log.syncs);
    let locks = db.locks.stats();
    put("Innodb_row_lock_waits", locks.row_waits);
    put("Innodb_row_lock_current_waits", locks.row_waits_current);
    put("Innodb_row_lock_time", locks.row_wait_us_total / 1000);
    put("Innodb_row_lock_time_max", locks.row_wait_us_max / 1000);
    put(
        "Innodb_row_lock_time_avg",
        (locks.row_wait_us_total / 1000).checked_div(locks.row_waits).unwrap_or(0),
    );
    put("Innodb_deadlocks", locks.deadlocks);
    put("Memory_used", if of == Of::Session { ctx.process.memory() } else { db.processes.memory() }.used());
    put("Threads_connected", db.processes.len() as u64);
    // Inside of a transaction with a snapshot: where a replica must start that is seeded with what is seen.
    let snapshot = ctx.trx.snapshot_binlog_end();
    if let Some(position) = snapshot.or_else(|| db.commit.binlog_status().map(|(position, _)| position))
        && let Some(name) = db.commit.binlog_file_name(position.file)
    {
        put("Binlog_snapshot_position", position.offset);
        all.insert("Binlog_snapshot_file".to_owned(), name);
    }
    // What the server counts itself wins.
    all.extend(db.status.snapshot());
    if db.status.get(Counter::ThreadsConnected) == 0 {
        all.insert("Threads_connected".to_owned(), db.processes.len().to_string());
    }
    all
}
