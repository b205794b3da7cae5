//! SHOW SLAVE STATUS.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_config::VarId;
use cohort_types::Value;

use crate::connection::{Connection, IoRunning};
use crate::replicas::Replicas;

fn yes(is_yes: bool) -> Value {
    Value::text(if is_yes { "Yes" } else { "No" })
}

fn ids(list: &[u32]) -> Value {
    Value::text(list.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
}

impl Replicas {
    /// The row of SHOW ALL SLAVES STATUS; SHOW SLAVE STATUS leaves out what is in front and behind.
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
        let sql = connection.sql.lock();
        let behind = match (io_running, sql.is_running, sql.timestamp) {
            (IoRunning::Yes, true, Some(timestamp)) => {
                Value::Int(now_s.saturating_sub(timestamp.into()) as i64)
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
        let relay_file = match sql.relay.file {
            0 => relay.first().unwrap_or(1),
            file => file,
        };
        let remaining =
            sql.delayed_until.map_or(Value::Null, |due| Value::Int(due.saturating_sub(now_s) as i64));
        let counts = &connection.counts;
        let count = |counter: &std::sync::atomic::AtomicU64| Value::UInt(counter.load(Ordering::Relaxed));
        let heartbeat = settings.heartbeat(globals.uint(VarId::SlaveNetTimeout));
        let applied: Vec<String> =
            cohort_exec::ReplicaControl::applied(self).iter().map(ToString::to_string).collect();
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
            number(sql.relay.offset.max(4)),
            Value::text(&sql.executed.file),
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
            number(sql.executed.position),
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
            behind,
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
