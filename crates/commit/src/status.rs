//! Status variables of the commit path, for SHOW GLOBAL STATUS.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::coordinator::Coordinator;
use crate::metrics::StepSnapshot;

impl Coordinator {
    /// Returns names and values for SHOW GLOBAL STATUS.
    pub fn status(&self) -> Vec<(String, u64)> {
        let mut out = Vec::new();
        let mut put = |name: &str, value: u64| out.push((name.to_owned(), value));
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let metrics = self.metrics();
        put("Binlog_commits", get(&metrics.binlog_commits));
        put("Binlog_group_commits", get(&metrics.groups));
        put("Binlog_cache_disk_use", self.spill_dir().spilled());
        put("Binlog_bytes_written", get(&metrics.binlog_bytes));
        let triggers = self.group_commit().triggers();
        put("Binlog_group_commit_trigger_count", get(&triggers.count));
        put("Binlog_group_commit_trigger_timeout", get(&triggers.timeout));
        put("Binlog_group_commit_trigger_lock_wait", get(&triggers.lock_wait));
        put("Cohort_commits", get(&metrics.commits));
        put("Cohort_slow_flushes", get(&metrics.slow_flushes));
        put("Cohort_checkpoints", get(&metrics.checkpoints));
        put("Cohort_checkpoint_failures", get(&metrics.checkpoint_failures));
        let recovered = self.recovered();
        put("Cohort_recovery_commits", recovered.commits);
        put("Cohort_recovery_log_bytes", recovered.log_bytes);
        put("Cohort_recovery_us", recovered.ns / 1000);
        if let Some(files) = self.binlog_files() {
            put("Cohort_binlog_backlog_bytes", files.backlog_bytes() as u64);
        }
        let backups = self.backups();
        put("Cohort_backups", get(&backups.completed));
        put("Cohort_backup_failures", get(&backups.failed));
        put("Cohort_backup_log_pinned_bytes", self.log_stats().pinned_bytes);
        put("Cohort_backup_expected_bytes", get(&backups.expected));
        put("Cohort_backup_newest_unixtime", get(&backups.newest_us) / 1_000_000);
        put("Cohort_backup_proven_unixtime", get(&backups.proven_us) / 1_000_000);
        let archive = self.archive();
        let (lag_bytes, lag_seconds) = self.archive_lag();
        put("Cohort_archive_running", u64::from(archive.is_sending.load(Ordering::Relaxed)));
        put("Cohort_archive_lag_bytes", lag_bytes);
        put("Cohort_archive_lag_seconds", lag_seconds);
        put("Cohort_archive_bytes", get(&archive.bytes));
        put("Cohort_archive_failures", get(&archive.failures));
        put("Cohort_archive_gaps", get(&archive.gaps));
        let sync = self.archive_sync_counters();
        put("Cohort_archive_sync_on", u64::from(sync.is_on));
        put("Cohort_archive_sync_waiting", sync.waiting);
        put("Cohort_archive_sync_acknowledged", sync.acknowledged);
        put("Cohort_archive_sync_unacknowledged", sync.unacknowledged);
        put("Cohort_archive_sync_timeouts", sync.timeouts);
        let sizes = metrics.group_size.snapshot();
        put("Cohort_group_size_p50", sizes.percentile(0.5));
        put("Cohort_group_size_p99", sizes.percentile(0.99));
        put("Cohort_group_size_max", sizes.max());
        let log = self.log_stats();
        put("Cohort_log_flushes", log.flushes);
        put("Cohort_log_syncs", log.syncs);
        put("Cohort_log_bytes_written", log.written_bytes);
        for step in metrics.steps() {
            step.status(&mut put);
        }
        out
    }
}

impl StepSnapshot {
    fn status(&self, put: &mut impl FnMut(&str, u64)) {
        let name = self.step.name();
        let us = |ns: u64| ns / 1000;
        put(&format!("Cohort_{name}_count"), self.times.count());
        put(&format!("Cohort_{name}_us_total"), us(self.times.sum()));
        put(&format!("Cohort_{name}_us_trx_total"), us(self.trx_ns));
        put(&format!("Cohort_{name}_us_p50"), us(self.times.percentile(0.5)));
        put(&format!("Cohort_{name}_us_p99"), us(self.times.percentile(0.99)));
        put(&format!("Cohort_{name}_us_max"), us(self.times.max()));
    }
}
