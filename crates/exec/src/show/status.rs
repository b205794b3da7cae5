//! Counters of SHOW STATUS, and the texts of SHOW ENGINE STATUS.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_config::Counter;

use crate::statement::StatementContext;

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Names and values of all counters, by name.
pub(super) fn server_status(ctx: &StatementContext<'_>) -> BTreeMap<String, String> {
    let db = ctx.db;
    let mut all = BTreeMap::new();
    for engine in &db.engines {
        all.extend(engine.status().into_iter().map(|(name, value)| (name, value.to_string())));
    }
    let mut put = |name: &str, value: u64| {
        all.insert(name.to_owned(), value.to_string());
    };
    let metrics = db.commit.metrics();
    put("Binlog_commits", get(&metrics.binlog_commits));
    put("Binlog_group_commits", get(&metrics.groups));
    let triggers = db.commit.pace().triggers();
    put("Binlog_group_commit_trigger_count", get(&triggers.count));
    put("Binlog_group_commit_trigger_timeout", get(&triggers.timeout));
    put("Binlog_group_commit_trigger_lock_wait", get(&triggers.lock_wait));
    put("Binlog_bytes_written", get(&metrics.binlog_bytes));
    put("Cohort_commits", get(&metrics.commits));
    put("Cohort_group_size_max", get(&metrics.group_size_max));
    put("Cohort_flush_us_total", metrics.flush.total_us());
    put("Cohort_flush_us_max", metrics.flush.max_us());
    put("Cohort_checkpoints", get(&metrics.checkpoints));
    put("Cohort_checkpoint_failures", get(&metrics.checkpoint_failures));
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
    put("Threads_connected", db.processes.len() as u64);
    if let Some((position, _)) = db.commit.binlog_status()
        && let Some(Ok(name)) = db.commit.with_binlog_files(|files| files.name().file(position.file))
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

/// The text of SHOW ENGINE .. STATUS.
pub(super) fn engine_status(ctx: &StatementContext<'_>) -> String {
    let all = server_status(ctx);
    let value = |name: &str| all.get(name).map_or("0", String::as_str);
    let groups: u64 = value("Binlog_group_commits").parse().unwrap_or(0);
    let commits: u64 = value("Cohort_commits").parse().unwrap_or(0);
    let per_group = commits as f64 / groups.max(1) as f64;
    let flush_us: u64 = value("Cohort_flush_us_total").parse().unwrap_or(0);
    let mut text = String::from("COMMIT PATH\n-----------\n");
    text += &format!("{commits} transactions in {groups} flush groups, {per_group:.2} per group, largest ");
    text += &format!("{}\n", value("Cohort_group_size_max"));
    text += &format!("{} log syncs, ", value("Rocksdb_wal_synced"));
    text +=
        &format!("{} us per flush, longest {} us\n", flush_us / groups.max(1), value("Cohort_flush_us_max"));
    text += &format!(
        "{} checkpoints, {} failed\n",
        value("Cohort_checkpoints"),
        value("Cohort_checkpoint_failures")
    );
    text += &format!(
        "binlog {} at {}\n\nLOCKS\n-----\n",
        value("Binlog_snapshot_file"),
        value("Binlog_snapshot_position")
    );
    text += &format!(
        "{} row lock waits, {} now, {} ms in all, {} deadlocks\n\nENGINES\n-------\n",
        value("Innodb_row_lock_waits"),
        value("Innodb_row_lock_current_waits"),
        value("Innodb_row_lock_time"),
        value("Innodb_deadlocks")
    );
    for engine in &ctx.db.engines {
        for (name, value) in engine.status() {
            text += &format!("{name} {value}\n");
        }
    }
    text
}
