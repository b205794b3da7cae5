//! Rows of `performance_schema.replication_*`: the sources of this server, and the threads that apply their
//! transactions.

use cohort_base::ConnectionId;
use cohort_session::{ApplierReport, SourceReport, StatementContext, VirtualColumn};
use cohort_types::Value;

/// Returns the rows of one of the tables.
pub fn rows(table: &str, columns: &[VirtualColumn], ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let control = ctx.db.replica.read().clone();
    let sources = control.map_or_else(Vec::new, |control| control.reports());
    let mut rows = Vec::new();
    for source in &sources {
        let mut add = |cell: &dyn Fn(&VirtualColumn) -> Value| {
            rows.push(columns.iter().map(cell).collect());
        };
        match table {
            "replication_connection_configuration" => add(&|column| configured(source, column)),
            "replication_applier_status_by_worker" => {
                source.workers.iter().for_each(|worker| add(&|column| of_thread(source, worker, column)));
            }
            "replication_applier_status_by_coordinator" => {
                add(&|column| of_thread(source, &source.applier, column));
            }
            _ => add(&|column| of_source(source, column)),
        }
    }
    rows
}

/// Returns the value of an ENUM column.
fn word(column: &VirtualColumn, word: &str) -> Value {
    let place = column.ty.members.iter().position(|member| member.eq_ignore_ascii_case(word));
    place.and_then(|place| column.ty.enum_value(place as u16 + 1)).unwrap_or(Value::Null)
}

fn switch(column: &VirtualColumn, is_on: bool, [on, off]: [&str; 2]) -> Value {
    word(column, if is_on { on } else { off })
}

fn list(numbers: &[u32]) -> Value {
    Value::text(numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
}

const YES_NO: [&str; 2] = ["YES", "NO"];
const ON_OFF: [&str; 2] = ["ON", "OFF"];

/// Returns a cell of `replication_connection_configuration`.
fn configured(source: &SourceReport, column: &VirtualColumn) -> Value {
    match column.name {
        "CHANNEL_NAME" => Value::text(&source.name),
        "HOST" => Value::text(&source.host),
        "PORT" => Value::Int(source.port.into()),
        "USER" => Value::text(&source.user),
        "USING_GTID" => word(column, source.use_gtid),
        "SSL_ALLOWED" => switch(column, source.is_encrypted, YES_NO),
        "SSL_CA_FILE" => Value::text(&source.ca),
        "SSL_CA_PATH" => Value::text(&source.capath),
        "SSL_CERTIFICATE" => Value::text(&source.cert),
        "SSL_CIPHER" => Value::text(&source.cipher),
        "SSL_KEY" => Value::text(&source.key),
        "SSL_VERIFY_SERVER_CERTIFICATE" => switch(column, source.verifies_name, YES_NO),
        "SSL_CRL_FILE" => Value::text(&source.crl),
        "SSL_CRL_PATH" => Value::text(&source.crlpath),
        "CONNECTION_RETRY_INTERVAL" => Value::Int(source.connect_retry_s.into()),
        "CONNECTION_RETRY_COUNT" => Value::UInt(source.retries_max.into()),
        "HEARTBEAT_INTERVAL" => Value::Double(source.heartbeat.as_secs_f64()),
        "IGNORE_SERVER_IDS" => list(&source.ignore_server_ids),
        "REPL_DO_DOMAIN_IDS" => list(&source.do_domain_ids),
        "REPL_IGNORE_DOMAIN_IDS" => list(&source.ignore_domain_ids),
        other => unreachable!("a recorded column: {other}"),
    }
}

/// Returns a cell of `replication_applier_configuration` or `replication_applier_status`.
fn of_source(source: &SourceReport, column: &VirtualColumn) -> Value {
    match column.name {
        "CHANNEL_NAME" => Value::text(&source.name),
        "DESIRED_DELAY" => Value::Int(source.delay_s.into()),
        "SERVICE_STATE" => switch(column, source.is_applying, ON_OFF),
        "REMAINING_DELAY" => source.remaining_delay_s.map_or(Value::Null, Value::UInt),
        "COUNT_TRANSACTIONS_RETRIES" => Value::UInt(source.retried),
        other => unreachable!("a recorded column: {other}"),
    }
}

/// Returns a cell of `replication_applier_status_by_coordinator` or `_by_worker`.
fn of_thread(source: &SourceReport, thread: &ApplierReport, column: &VirtualColumn) -> Value {
    match column.name {
        "CHANNEL_NAME" => Value::text(&source.name),
        "THREAD_ID" => thread.id.map_or(Value::Null, |ConnectionId(id)| Value::UInt(id)),
        "SERVICE_STATE" => switch(column, thread.id.is_some(), ON_OFF),
        "LAST_ERROR_NUMBER" => Value::Int(thread.error_number.into()),
        "LAST_ERROR_MESSAGE" => Value::text(&thread.error_text),
        "LAST_ERROR_TIMESTAMP" => Value::Timestamp((thread.error_at_us / 1_000_000 * 1_000_000) as i64),
        "LAST_SEEN_TRANSACTION" => Value::text(thread.seen.map_or_else(String::new, |gtid| gtid.to_string())),
        "WORKER_IDLE_TIME" => Value::UInt(thread.idle_s),
        "LAST_TRANS_RETRY_COUNT" => Value::Int(thread.retries as i64),
        other => unreachable!("a recorded column: {other}"),
    }
}
