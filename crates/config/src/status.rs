//! Counters of SHOW STATUS.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

macro_rules! counters {
    ($($id:ident = $name:literal;)*) => {
        /// A counter kept in this crate. Others come from a [`StatusSource`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        #[allow(missing_docs)]
        pub enum Counter { $($id,)* }

        const NAMES: &[&str] = &[$($name,)*];
        const ALL: &[Counter] = &[$(Counter::$id,)*];
    };
}

counters! {
    AbortedClients = "Aborted_clients";
    AbortedConnects = "Aborted_connects";
    AbortedConnectsPreauth = "Aborted_connects_preauth";
    AccessDeniedErrors = "Access_denied_errors";
    BytesReceived = "Bytes_received";
    BytesSent = "Bytes_sent";
    ComAdminCommands = "Com_admin_commands";
    ComAlterDb = "Com_alter_db";
    ComAlterDbUpgrade = "Com_alter_db_upgrade";
    ComAlterEvent = "Com_alter_event";
    ComAlterFunction = "Com_alter_function";
    ComAlterProcedure = "Com_alter_procedure";
    ComAlterSequence = "Com_alter_sequence";
    ComAlterServer = "Com_alter_server";
    ComAlterTable = "Com_alter_table";
    ComAlterUser = "Com_alter_user";
    ComAnalyze = "Com_analyze";
    ComAssignToKeycache = "Com_assign_to_keycache";
    ComBackup = "Com_backup";
    ComBackupLock = "Com_backup_lock";
    ComBegin = "Com_begin";
    ComBinlog = "Com_binlog";
    ComCallProcedure = "Com_call_procedure";
    ComChangeDb = "Com_change_db";
    ComChangeMaster = "Com_change_master";
    ComCheck = "Com_check";
    ComChecksum = "Com_checksum";
    ComClone = "Com_clone";
    ComCommit = "Com_commit";
    ComCompoundSql = "Com_compound_sql";
    ComCreateDb = "Com_create_db";
    ComCreateEvent = "Com_create_event";
    ComCreateFunction = "Com_create_function";
    ComCreateIndex = "Com_create_index";
    ComCreatePackage = "Com_create_package";
    ComCreatePackageBody = "Com_create_package_body";
    ComCreateProcedure = "Com_create_procedure";
    ComCreateRole = "Com_create_role";
    ComCreateSequence = "Com_create_sequence";
    ComCreateServer = "Com_create_server";
    ComCreateTable = "Com_create_table";
    ComCreateTemporaryTable = "Com_create_temporary_table";
    ComCreateTrigger = "Com_create_trigger";
    ComCreateUdf = "Com_create_udf";
    ComCreateUser = "Com_create_user";
    ComCreateView = "Com_create_view";
    ComDeallocSql = "Com_dealloc_sql";
    ComDelete = "Com_delete";
    ComDeleteMulti = "Com_delete_multi";
    ComDo = "Com_do";
    ComDropDb = "Com_drop_db";
    ComDropEvent = "Com_drop_event";
    ComDropFunction = "Com_drop_function";
    ComDropIndex = "Com_drop_index";
    ComDropPackage = "Com_drop_package";
    ComDropPackageBody = "Com_drop_package_body";
    ComDropProcedure = "Com_drop_procedure";
    ComDropRole = "Com_drop_role";
    ComDropSequence = "Com_drop_sequence";
    ComDropServer = "Com_drop_server";
    ComDropTable = "Com_drop_table";
    ComDropTemporaryTable = "Com_drop_temporary_table";
    ComDropTrigger = "Com_drop_trigger";
    ComDropUser = "Com_drop_user";
    ComDropView = "Com_drop_view";
    ComEmptyQuery = "Com_empty_query";
    ComExecuteImmediate = "Com_execute_immediate";
    ComExecuteSql = "Com_execute_sql";
    ComFlush = "Com_flush";
    ComGetDiagnostics = "Com_get_diagnostics";
    ComGrant = "Com_grant";
    ComGrantRole = "Com_grant_role";
    ComHaClose = "Com_ha_close";
    ComHaOpen = "Com_ha_open";
    ComHaRead = "Com_ha_read";
    ComHelp = "Com_help";
    ComInsert = "Com_insert";
    ComInsertSelect = "Com_insert_select";
    ComInstallPlugin = "Com_install_plugin";
    ComKill = "Com_kill";
    ComLoad = "Com_load";
    ComLockTables = "Com_lock_tables";
    ComOptimize = "Com_optimize";
    ComPreloadKeys = "Com_preload_keys";
    ComPrepareSql = "Com_prepare_sql";
    ComPurge = "Com_purge";
    ComPurgeBeforeDate = "Com_purge_before_date";
    ComReleaseSavepoint = "Com_release_savepoint";
    ComRenameTable = "Com_rename_table";
    ComRenameUser = "Com_rename_user";
    ComRepair = "Com_repair";
    ComReplace = "Com_replace";
    ComReplaceSelect = "Com_replace_select";
    ComReset = "Com_reset";
    ComResignal = "Com_resignal";
    ComRevoke = "Com_revoke";
    ComRevokeAll = "Com_revoke_all";
    ComRevokeRole = "Com_revoke_role";
    ComRollback = "Com_rollback";
    ComRollbackToSavepoint = "Com_rollback_to_savepoint";
    ComSavepoint = "Com_savepoint";
    ComSelect = "Com_select";
    ComSetOption = "Com_set_option";
    ComShowAnalyze = "Com_show_analyze";
    ComShowAuthors = "Com_show_authors";
    ComShowBinlogEvents = "Com_show_binlog_events";
    ComShowBinlogStatus = "Com_show_binlog_status";
    ComShowBinlogs = "Com_show_binlogs";
    ComShowCharsets = "Com_show_charsets";
    ComShowCollations = "Com_show_collations";
    ComShowContributors = "Com_show_contributors";
    ComShowCreateDb = "Com_show_create_db";
    ComShowCreateEvent = "Com_show_create_event";
    ComShowCreateFunc = "Com_show_create_func";
    ComShowCreatePackage = "Com_show_create_package";
    ComShowCreatePackageBody = "Com_show_create_package_body";
    ComShowCreateProc = "Com_show_create_proc";
    ComShowCreateTable = "Com_show_create_table";
    ComShowCreateTrigger = "Com_show_create_trigger";
    ComShowCreateUser = "Com_show_create_user";
    ComShowDatabases = "Com_show_databases";
    ComShowEngineLogs = "Com_show_engine_logs";
    ComShowEngineMutex = "Com_show_engine_mutex";
    ComShowEngineStatus = "Com_show_engine_status";
    ComShowErrors = "Com_show_errors";
    ComShowEvents = "Com_show_events";
    ComShowExplain = "Com_show_explain";
    ComShowFields = "Com_show_fields";
    ComShowFunctionStatus = "Com_show_function_status";
    ComShowGeneric = "Com_show_generic";
    ComShowGrants = "Com_show_grants";
    ComShowKeys = "Com_show_keys";
    ComShowOpenTables = "Com_show_open_tables";
    ComShowPackageBodyStatus = "Com_show_package_body_status";
    ComShowPackageStatus = "Com_show_package_status";
    ComShowPlugins = "Com_show_plugins";
    ComShowPrivileges = "Com_show_privileges";
    ComShowProcedureStatus = "Com_show_procedure_status";
    ComShowProcesslist = "Com_show_processlist";
    ComShowProfile = "Com_show_profile";
    ComShowProfiles = "Com_show_profiles";
    ComShowRelaylogEvents = "Com_show_relaylog_events";
    ComShowSlaveHosts = "Com_show_slave_hosts";
    ComShowSlaveStatus = "Com_show_slave_status";
    ComShowStatus = "Com_show_status";
    ComShowStorageEngines = "Com_show_storage_engines";
    ComShowTableStatus = "Com_show_table_status";
    ComShowTables = "Com_show_tables";
    ComShowTriggers = "Com_show_triggers";
    ComShowVariables = "Com_show_variables";
    ComShowWarnings = "Com_show_warnings";
    ComShutdown = "Com_shutdown";
    ComSignal = "Com_signal";
    ComStartAllSlaves = "Com_start_all_slaves";
    ComStartSlave = "Com_start_slave";
    ComStmtClose = "Com_stmt_close";
    ComStmtExecute = "Com_stmt_execute";
    ComStmtFetch = "Com_stmt_fetch";
    ComStmtPrepare = "Com_stmt_prepare";
    ComStmtReprepare = "Com_stmt_reprepare";
    ComStmtReset = "Com_stmt_reset";
    ComStmtSendLongData = "Com_stmt_send_long_data";
    ComStopAllSlaves = "Com_stop_all_slaves";
    ComStopSlave = "Com_stop_slave";
    ComTruncate = "Com_truncate";
    ComUninstallPlugin = "Com_uninstall_plugin";
    ComUnlockTables = "Com_unlock_tables";
    ComUpdate = "Com_update";
    ComUpdateMulti = "Com_update_multi";
    ComXaCommit = "Com_xa_commit";
    ComXaEnd = "Com_xa_end";
    ComXaPrepare = "Com_xa_prepare";
    ComXaRecover = "Com_xa_recover";
    ComXaRollback = "Com_xa_rollback";
    ComXaStart = "Com_xa_start";
    ConnectionErrorsAccept = "Connection_errors_accept";
    ConnectionErrorsInternal = "Connection_errors_internal";
    ConnectionErrorsMaxConnections = "Connection_errors_max_connections";
    Connections = "Connections";
    ExecutedEvents = "Executed_events";
    MasterGtidWaitCount = "Master_gtid_wait_count";
    MasterGtidWaitTime = "Master_gtid_wait_time";
    MasterGtidWaitTimeouts = "Master_gtid_wait_timeouts";
    MaxStatementTimeExceeded = "Max_statement_time_exceeded";
    MaxUsedConnections = "Max_used_connections";
    PreparedStmtCount = "Prepared_stmt_count";
    Queries = "Queries";
    Questions = "Questions";
    SlowQueries = "Slow_queries";
    ThreadsConnected = "Threads_connected";
    ThreadsCreated = "Threads_created";
    ThreadsRunning = "Threads_running";
    Uptime = "Uptime";
}

impl Counter {
    /// Number of counters.
    pub const COUNT: usize = NAMES.len();

    /// Returns the name of the counter with a number.
    pub fn named(number: usize) -> Option<&'static str> {
        NAMES.get(number).copied()
    }
}

/// A part of the server with counters of its own: the commit pipeline, the engines, the locks.
pub trait StatusSource: Send + Sync {
    /// Appends pairs of name and value, as SHOW STATUS prints them.
    fn status(&self, out: &mut Vec<(String, String)>);
}

/// All counters of a server.
pub struct Status {
    counters: [AtomicU64; NAMES.len()],
    /// Uptime at the last FLUSH STATUS.
    flushed_at: AtomicU64,
    sources: RwLock<Vec<Box<dyn StatusSource>>>,
}

impl Default for Status {
    fn default() -> Status {
        Status {
            counters: [const { AtomicU64::new(0) }; NAMES.len()],
            flushed_at: AtomicU64::new(0),
            sources: RwLock::new(Vec::new()),
        }
    }
}

impl Status {
    /// Adds to a counter.
    pub fn add(&self, counter: Counter, n: u64) {
        self.counters[counter as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// Increments a counter.
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    fn uncount(&self, counter: Counter) {
        self.counters[counter as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// Increments a gauge until the returned guard is dropped.
    pub fn hold(self: &Arc<Self>, gauge: Counter) -> HeldGauge {
        self.count(gauge);
        HeldGauge { status: Arc::clone(self), gauge }
    }

    /// Sets a gauge.
    pub fn put(&self, counter: Counter, value: u64) {
        self.counters[counter as usize].store(value, Ordering::Relaxed);
    }

    /// Raises a high-water mark.
    pub fn raise(&self, counter: Counter, value: u64) {
        self.counters[counter as usize].fetch_max(value, Ordering::Relaxed);
    }

    /// Returns a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// FLUSH STATUS: resets the time since the last flush. Global counters are not reset.
    pub fn flush(&self) {
        self.flushed_at.store(self.get(Counter::Uptime), Ordering::Relaxed);
    }

    /// Adds a part of the server to SHOW STATUS.
    pub fn register(&self, source: Box<dyn StatusSource>) {
        self.sources.write().push(source);
    }

    /// Returns the rows of SHOW GLOBAL STATUS, sorted by name.
    pub fn snapshot(&self) -> Vec<(String, String)> {
        let own = ALL.iter().map(|c| (NAMES[*c as usize].to_owned(), self.get(*c).to_string()));
        let mut all: Vec<(String, String)> = own.collect();
        for source in self.sources.read().iter() {
            source.status(&mut all);
        }
        let since = self.get(Counter::Uptime).saturating_sub(self.flushed_at.load(Ordering::Relaxed));
        all.push(("Uptime_since_flush_status".to_owned(), since.to_string()));
        all.sort();
        all
    }
}

/// A guard that decrements a gauge when dropped.
pub struct HeldGauge {
    status: Arc<Status>,
    gauge: Counter,
}

impl Drop for HeldGauge {
    fn drop(&mut self) {
        self.status.uncount(self.gauge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_foreign_counters_are_listed_together_by_name() {
        struct Commit;
        impl StatusSource for Commit {
            fn status(&self, out: &mut Vec<(String, String)>) {
                out.push(("Binlog_commits".into(), "5".into()));
            }
        }
        let status = Status::default();
        status.add(Counter::Queries, 3);
        status.register(Box::new(Commit));
        let all = status.snapshot();
        assert!(all.is_sorted());
        assert!(
            all.contains(&("Queries".into(), "3".into()))
                && all.contains(&("Binlog_commits".into(), "5".into()))
        );
    }
}
