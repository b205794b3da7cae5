//! SHOW SLAVE STATUS, the replication tables of `performance_schema`, and counters of SHOW STATUS.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_config::{StatusSource, VarId};
use cohort_exec::{ApplierReport, ReplicaControl, SourceReport};
use cohort_types::Value;

use crate::connection::{Connection, Counts, IoRunning, WorkerProgress};
use crate::receiver::RETRIES_MAX;
use crate::replicas::Replicas;

fn yes(is_yes: bool) -> Value {
    Value::text(if is_yes { "Yes" } else { "No" })
}

fn ids(list: &[u32]) -> Value {
    Value::text(list.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
}

impl Replicas {
    /// Returns the row for SHOW ALL SLAVES STATUS. SHOW SLAVE STATUS omits some columns at either end.
    pub(crate) fn status_of(&self, connection: &Arc<Connection>) -> Vec<Value> {
        use cohort_exec::ReplicaUntil as Until;
        let settings = self.settings(&connection.name);
        let globals = &self.db().globals;
        let text = |id: VarId| Value::text(globals.text(id).as_deref().unwrap_or(""));
        let number = Value::UInt;
        let relay = &connection.relay;
        let now_s = self.db().clock.wall_us() / 1_000_000;
        let io = connection.io.lock();
        let (io_running, io_state, io_error) = (io.running, io.state, io.error.clone());
        let (read, master_id, heartbeats) = (io.read.clone(), io.master_server_id, io.heartbeats);
        let gtid_io = io.gtids.position_text();
        drop(io);
        let published = self.db().commit.read_view().seq();
        let mut sql = connection.sql.lock();
        let shown = sql.shown.at(published).clone();
        let seconds_behind = match (io_running, sql.is_running, sql.timestamp) {
            (IoRunning::Yes, true, Some(timestamp)) => {
                Value::Int(now_s.saturating_sub(connection.here(timestamp)) as i64)
            }
            (IoRunning::Yes, true, None) => Value::Int(0),
            _ => Value::Null,
        };
        let (condition, until_file, until_position) = match &sql.until {
            Until::Never => ("None", String::new(), 0),
            Until::Master(file, position) => ("Master", file.clone(), *position),
            Until::Relay(file, position) => ("Relay", file.clone(), *position),
            Until::Gtid(_) => ("Gtid", String::new(), 0),
        };
        let relay_file = match shown.relay.file {
            0 => relay.first().unwrap_or(1),
            file => file,
        };
        let remaining =
            sql.delayed_until.map_or(Value::Null, |due| Value::Int(due.saturating_sub(now_s) as i64));
        let counts = &connection.counts;
        let count = |counter: &std::sync::atomic::AtomicU64| Value::UInt(counter.load(Ordering::Relaxed));
        let heartbeat = settings.heartbeat(globals.uint(VarId::SlaveNetTimeout));
        let applied: Vec<String> = self.applied().iter().map(ToString::to_string).collect();
        let mode = ["none", "minimal", "conservative", "optimistic", "aggressive"];
        let mode = mode[(globals.uint(VarId::SlaveParallelMode) as usize).min(4)];
        let tls = &settings.tls;
        vec![
            Value::text(&connection.name),
            Value::text(sql.state),
            Value::text(io_state),
            Value::text(&settings.host),
            Value::text(&settings.user),
            number(settings.port.into()),
            number(settings.connect_retry_s.into()),
            Value::text(&read.file),
            number(read.position),
            Value::text(relay.file_name(relay_file)),
            number(shown.relay.offset.max(4)),
            Value::text(&shown.source.file),
            Value::text(io_running.name()),
            yes(sql.is_running),
            text(VarId::ReplicateDoDb),
            text(VarId::ReplicateIgnoreDb),
            text(VarId::ReplicateDoTable),
            text(VarId::ReplicateIgnoreTable),
            text(VarId::ReplicateWildDoTable),
            text(VarId::ReplicateWildIgnoreTable),
            number(sql.error.number.into()),
            Value::text(&sql.error.text),
            number(sql.skip_counter),
            number(shown.source.position),
            number(relay.bytes()),
            Value::text(condition),
            Value::text(until_file),
            number(until_position),
            yes(tls.is_wanted),
            Value::text(&tls.ca),
            Value::text(&tls.capath),
            Value::text(&tls.cert),
            Value::text(&tls.cipher),
            Value::text(&tls.key),
            seconds_behind,
            yes(tls.verifies_name),
            number(io_error.number.into()),
            Value::text(&io_error.text),
            number(sql.error.number.into()),
            Value::text(&sql.error.text),
            ids(&settings.ignore_server_ids),
            number(master_id.into()),
            Value::text(&tls.crl),
            Value::text(&tls.crlpath),
            Value::text(settings.use_gtid.name()),
            Value::text(gtid_io),
            ids(&settings.do_domain_ids),
            ids(&settings.ignore_domain_ids),
            Value::text(mode),
            number(settings.delay_s.into()),
            remaining,
            Value::text(sql.state),
            count(&counts.ddl),
            count(&counts.non_transactional),
            count(&counts.transactional),
            text(VarId::ReplicateRewriteDb),
            count(&counts.retried),
            number(globals.uint(VarId::MaxRelayLogSize)),
            count(&counts.events),
            number(heartbeats),
            Value::text(format!("{:.3}", heartbeat.as_secs_f64())),
            Value::text(applied.join(",")),
        ]
    }
}

impl Replicas {
    /// Returns the data for the tables `performance_schema.replication_*` of a connection.
    pub(crate) fn report_of(&self, connection: &Arc<Connection>) -> SourceReport {
        let settings = self.settings(&connection.name);
        let heartbeat = settings.heartbeat(self.db().globals.uint(VarId::SlaveNetTimeout));
        let now_s = self.db().clock.wall_us() / 1_000_000;
        let sql = connection.sql.lock();
        let applier = ApplierReport {
            id: sql.applier_id,
            error_number: sql.error.number,
            error_text: sql.error.text.clone(),
            error_at_us: sql.error_at_us,
            seen: sql.seen,
            ..ApplierReport::default()
        };
        let worker = |worker: &Arc<WorkerProgress>| {
            let now = worker.now.lock().clone();
            ApplierReport {
                id: now.id,
                error_number: now.error.number,
                error_text: now.error.text,
                error_at_us: now.error_at_us,
                seen: now.seen,
                retries: now.retries,
                idle_s: now.idle.as_secs(),
            }
        };
        SourceReport {
            name: connection.name.clone(),
            host: settings.host,
            port: settings.port,
            user: settings.user,
            use_gtid: settings.use_gtid.name(),
            is_encrypted: settings.tls.is_wanted,
            verifies_name: settings.tls.verifies_name,
            ca: settings.tls.ca,
            capath: settings.tls.capath,
            cert: settings.tls.cert,
            cipher: settings.tls.cipher,
            key: settings.tls.key,
            crl: settings.tls.crl,
            crlpath: settings.tls.crlpath,
            connect_retry_s: settings.connect_retry_s,
            retries_max: RETRIES_MAX,
            heartbeat,
            ignore_server_ids: settings.ignore_server_ids,
            do_domain_ids: settings.do_domain_ids,
            ignore_domain_ids: settings.ignore_domain_ids,
            delay_s: settings.delay_s,
            remaining_delay_s: sql.delayed_until.map(|due| due.saturating_sub(now_s)),
            retried: connection.counts.retried.load(Ordering::Relaxed),
            is_applying: sql.is_running,
            applier,
            workers: sql.workers.iter().map(worker).collect(),
        }
    }
}

/// Counters over all connections, or of the default connection where MariaDB has only that.
pub struct ReplicaStatus(pub Arc<Replicas>);

impl StatusSource for ReplicaStatus {
    fn status(&self, out: &mut Vec<(String, String)>) {
        let replicas = &self.0;
        let all = replicas.all();
        let sum = |counter: fn(&Counts) -> &AtomicU64| -> u64 {
            all.iter().map(|connection| counter(&connection.counts).load(Ordering::Relaxed)).sum()
        };
        let now_s = replicas.db().clock.wall_us() / 1_000_000;
        let applied = replicas.applied();
        let (mut running, mut is_default_running, mut heartbeats) = (0, false, 0);
        let (mut behind_s, mut behind_transactions, mut relay_bytes, mut is_semi_sync) = (0, 0, 0, false);
        for connection in &all {
            let io = connection.io.lock();
            let is_receiving = io.running == IoRunning::Yes;
            heartbeats += io.heartbeats;
            for received in io.gtids.position() {
                let here = applied.iter().find(|gtid| gtid.domain == received.domain);
                behind_transactions += received.seq_no.saturating_sub(here.map_or(0, |gtid| gtid.seq_no));
            }
            drop(io);
            let sql = connection.sql.lock();
            let is_running = is_receiving && sql.is_running;
            let since_s = |timestamp| now_s.saturating_sub(connection.here(timestamp));
            behind_s = behind_s.max(sql.timestamp.map_or(0, since_s));
            drop(sql);
            running += u64::from(is_running);
            is_default_running |= is_running && connection.name.is_empty();
            relay_bytes += connection.relay.bytes();
            is_semi_sync |= connection.is_semi_sync.load(Ordering::Relaxed);
        }
        let word = |is_on: bool| if is_on { "ON" } else { "OFF" }.to_owned();
        let mut put = |name: &str, value: String| out.push((name.to_owned(), value));
        put("Slave_running", word(is_default_running));
        put("Rpl_semi_sync_slave_status", word(is_semi_sync));
        let globals = &replicas.db().globals;
        let heartbeat = replicas.settings("").heartbeat(globals.uint(VarId::SlaveNetTimeout));
        put("Slave_heartbeat_period", format!("{:.3}", heartbeat.as_secs_f64()));
        for (name, value) in [
            ("Slaves_running", running),
            ("Slave_received_heartbeats", heartbeats),
            (
                "Slave_open_temp_tables",
                all.iter().map(|connection| connection.temporary.count() as u64).sum(),
            ),
            ("Slave_retried_transactions", sum(|counts| &counts.retried)),
            (
                "Slave_skipped_errors",
                all.iter().map(|c| c.counts.skipped_errors.load(Ordering::Relaxed)).sum(),
            ),
            ("Rpl_semi_sync_slave_send_ack", sum(|counts| &counts.replies)),
            ("Cohort_replica_sources", all.len() as u64),
            ("Cohort_replica_applied_ddl", sum(|counts| &counts.ddl)),
            (
                "Cohort_replica_applied_transactions",
                sum(|counts| &counts.transactional) + sum(|counts| &counts.non_transactional),
            ),
            ("Cohort_replica_queued_transactions", sum(|counts| &counts.queued)),
            ("Cohort_replica_queued_bytes", sum(|counts| &counts.queued_bytes)),
            ("Cohort_replica_busy_workers", sum(|counts| &counts.busy_workers)),
            ("Cohort_replica_received_bytes", sum(|counts| &counts.received_bytes)),
            ("Cohort_replica_relay_log_bytes", relay_bytes),
            ("Cohort_replica_behind_seconds", behind_s),
            ("Cohort_replica_behind_transactions", behind_transactions),
        ] {
            put(name, value.to_string());
        }
    }
}
