//! Settings, status variables and error log messages of semi-synchronous replication.

use std::sync::Arc;
use std::time::Duration;

use cohort_binlog::BinlogFileWriter;
use cohort_commit::Gate;
use cohort_config::{Globals, StatusSource, VarId};
use cohort_replication::Source;
use cohort_replication::source::{SemiSyncEvent, SemiSyncLog, SemiSyncOptions};

use crate::error_log::ErrorLog;

/// Returns the current settings.
pub(crate) fn options(globals: &Globals) -> SemiSyncOptions {
    SemiSyncOptions {
        is_enabled: globals.flag(VarId::RplSemiSyncMasterEnabled),
        timeout: Duration::from_millis(globals.uint(VarId::RplSemiSyncMasterTimeout)),
        gate: match globals.uint(VarId::RplSemiSyncMasterWaitPoint) {
            0 => Gate::Publish,
            _ => Gate::Acknowledge,
        },
        waits_without_replica: globals.flag(VarId::RplSemiSyncMasterWaitNoSlave),
    }
}

/// Returns the callback that logs the same messages as MariaDB.
pub(crate) fn log(log: &ErrorLog, files: &BinlogFileWriter) -> SemiSyncLog {
    let (log, names) = (log.clone(), files.name().clone());
    Box::new(move |event| match event {
        SemiSyncEvent::TimedOut(waited, acknowledged) => {
            log.warning(format_args!(
                "Timeout waiting for reply of binlog (file: {}, pos: {}), semi-sync up to file {}, position {}.",
                names.file(waited.file),
                waited.offset,
                names.file(acknowledged.file),
                acknowledged.offset
            ));
            log.note(format_args!("Semi-sync replication switched OFF."));
        }
        SemiSyncEvent::SwitchedOn(at) => {
            log.note(format_args!(
                "Semi-sync replication switched ON at ({}, {})",
                names.file(at.file),
                at.offset
            ));
        }
    })
}

/// Status variables `Rpl_semi_sync_master_*`, and the number of replicas.
pub(crate) struct SemiSyncStatus(pub Arc<Source>);

impl StatusSource for SemiSyncStatus {
    fn status(&self, out: &mut Vec<(String, String)>) {
        let counters = self.0.semi_sync().counters();
        let mut put = |name: &str, value: u64| {
            out.push((format!("Rpl_semi_sync_master_{name}"), value.to_string()));
        };
        put("clients", counters.clients);
        put("get_ack", counters.get_ack);
        // MariaDB shows 0 as well, since it no longer waits for the network separately from the transactions'
        // waits.
        put("net_avg_wait_time", 0);
        put("net_wait_time", 0);
        put("net_waits", counters.net_waits);
        put("no_times", counters.no_times);
        put("no_tx", counters.no_tx);
        put("request_ack", counters.request_ack);
        put("timefunc_failures", 0);
        put("tx_avg_wait_time", counters.tx_wait_us.checked_div(counters.tx_waits).unwrap_or(0));
        put("tx_wait_time", counters.tx_wait_us);
        put("tx_waits", counters.tx_waits);
        put("wait_pos_backtraverse", 0);
        put("wait_sessions", counters.wait_sessions);
        put("yes_tx", counters.yes_tx);
        let word = |is_on| if is_on { "ON" } else { "OFF" }.to_owned();
        out.push(("Rpl_semi_sync_master_status".to_owned(), word(counters.is_on)));
        out.push(("Slave_connections".to_owned(), self.0.registrations().to_string()));
        out.push(("Slaves_connected".to_owned(), self.0.hosts().len().to_string()));
    }
}
