//! Replication status: the sources of this server, and its replicas.

use std::sync::Arc;

use cohort_base::Reservation;
use cohort_config::VarId;
use cohort_session::{SourceName, StatementContext};
use cohort_types::{ColumnType, SqlResult, TypeKind, Value};

use super::listing::Listing;

/// The type of a status column, with its digits or characters.
#[derive(Clone, Copy)]
enum Shown {
    Text(u32),
    /// INT UNSIGNED.
    Int(u32),
    /// BIGINT UNSIGNED.
    BigInt(u32),
}

/// The columns of SHOW SLAVE STATUS.
const STATUS: [(&str, Shown); 54] = [
    ("Slave_IO_State", Shown::Text(30)),
    ("Master_Host", Shown::Text(766)),
    ("Master_User", Shown::Text(385)),
    ("Master_Port", Shown::Int(7)),
    ("Connect_Retry", Shown::Int(10)),
    ("Master_Log_File", Shown::Text(512)),
    ("Read_Master_Log_Pos", Shown::BigInt(10)),
    ("Relay_Log_File", Shown::Text(512)),
    ("Relay_Log_Pos", Shown::BigInt(10)),
    ("Relay_Master_Log_File", Shown::Text(512)),
    ("Slave_IO_Running", Shown::Text(3)),
    ("Slave_SQL_Running", Shown::Text(3)),
    ("Replicate_Do_DB", Shown::Text(20)),
    ("Replicate_Ignore_DB", Shown::Text(20)),
    ("Replicate_Do_Table", Shown::Text(20)),
    ("Replicate_Ignore_Table", Shown::Text(23)),
    ("Replicate_Wild_Do_Table", Shown::Text(24)),
    ("Replicate_Wild_Ignore_Table", Shown::Text(28)),
    ("Last_Errno", Shown::Int(4)),
    ("Last_Error", Shown::Text(20)),
    ("Skip_Counter", Shown::Int(10)),
    ("Exec_Master_Log_Pos", Shown::BigInt(10)),
    ("Relay_Log_Space", Shown::BigInt(10)),
    ("Until_Condition", Shown::Text(6)),
    ("Until_Log_File", Shown::Text(512)),
    ("Until_Log_Pos", Shown::BigInt(10)),
    ("Master_SSL_Allowed", Shown::Text(7)),
    ("Master_SSL_CA_File", Shown::Text(512)),
    ("Master_SSL_CA_Path", Shown::Text(512)),
    ("Master_SSL_Cert", Shown::Text(512)),
    ("Master_SSL_Cipher", Shown::Text(512)),
    ("Master_SSL_Key", Shown::Text(512)),
    ("Seconds_Behind_Master", Shown::BigInt(10)),
    ("Master_SSL_Verify_Server_Cert", Shown::Text(3)),
    ("Last_IO_Errno", Shown::Int(4)),
    ("Last_IO_Error", Shown::Text(20)),
    ("Last_SQL_Errno", Shown::Int(4)),
    ("Last_SQL_Error", Shown::Text(20)),
    ("Replicate_Ignore_Server_Ids", Shown::Text(512)),
    ("Master_Server_Id", Shown::Int(8)),
    ("Master_SSL_Crl", Shown::Text(512)),
    ("Master_SSL_Crlpath", Shown::Text(512)),
    ("Using_Gtid", Shown::Text(11)),
    ("Gtid_IO_Pos", Shown::Text(30)),
    ("Replicate_Do_Domain_Ids", Shown::Text(512)),
    ("Replicate_Ignore_Domain_Ids", Shown::Text(512)),
    ("Parallel_Mode", Shown::Text(12)),
    ("SQL_Delay", Shown::Int(10)),
    ("SQL_Remaining_Delay", Shown::Int(8)),
    ("Slave_SQL_Running_State", Shown::Text(20)),
    ("Slave_DDL_Groups", Shown::BigInt(20)),
    ("Slave_Non_Transactional_Groups", Shown::BigInt(20)),
    ("Slave_Transactional_Groups", Shown::BigInt(20)),
    ("Replicate_Rewrite_DB", Shown::Text(23)),
];

/// Leading columns of SHOW ALL SLAVES STATUS.
const BEFORE: [(&str, Shown); 2] =
    [("Connection_name", Shown::Text(64)), ("Slave_SQL_State", Shown::Text(30))];

/// Trailing columns of SHOW ALL SLAVES STATUS.
const AFTER: [(&str, Shown); 6] = [
    ("Retried_transactions", Shown::Int(10)),
    ("Max_relay_log_size", Shown::BigInt(10)),
    ("Executed_log_entries", Shown::Int(10)),
    ("Slave_received_heartbeats", Shown::Int(10)),
    ("Slave_heartbeat_period", Shown::Text(9)),
    ("Gtid_Slave_Pos", Shown::Text(30)),
];

/// Runs SHOW SLAVE STATUS and SHOW ALL SLAVES STATUS.
pub(super) fn status(ctx: &StatementContext<'_>, all: bool, connection: Option<&str>) -> SqlResult<Listing> {
    let mut listing = Listing::default();
    let (before, after): (&[_], &[_]) = if all { (&BEFORE, &AFTER) } else { (&[], &[]) };
    for &(name, shown) in before.iter().chain(&STATUS).chain(after) {
        let (kind, digits) = match shown {
            Shown::Text(length) => {
                listing.text(name, length);
                continue;
            }
            Shown::Int(digits) => (TypeKind::Int, digits),
            Shown::BigInt(digits) => (TypeKind::BigInt, digits),
        };
        listing.column(name, ColumnType::int(kind, Some(digits), true), false);
    }
    let name = match all {
        true => SourceName::All,
        false => SourceName::One(source_name(ctx, connection)),
    };
    let control = ctx.db.replica.read().clone();
    let rows = control.map_or(Ok(Vec::new()), |control| control.status(&name))?;
    for mut row in rows {
        if !all {
            row.truncate(BEFORE.len() + STATUS.len());
            row.drain(..BEFORE.len());
        }
        listing.rows.push(row);
    }
    Ok(listing)
}

fn source_name(ctx: &StatementContext<'_>, connection: Option<&str>) -> String {
    let default = || ctx.session.settings.vars.text(VarId::DefaultMasterConnection);
    connection.map_or_else(|| default().as_deref().unwrap_or("").to_owned(), str::to_owned).to_lowercase()
}

/// Memory for a row of SHOW RELAYLOG EVENTS, without its text.
const ROW_BYTES: usize = 256;

/// Runs SHOW RELAYLOG EVENTS.
pub(super) fn relay_events(
    ctx: &StatementContext<'_>,
    connection: Option<&str>,
    (log, from): (Option<&str>, Option<u64>),
    (offset, count): (usize, usize),
) -> SqlResult<Listing> {
    let mut listing = Listing::new(&[("Log_name", 20)]);
    let position = || ColumnType::int(TypeKind::BigInt, Some(20), true);
    listing.column("Pos", position(), false).text("Event_type", 20).number("Server_id", 10);
    listing.column("End_log_pos", position(), false).text("Info", 65_535);
    let control = ctx.db.replica.read().clone();
    if let Some(control) = control {
        let most = offset.saturating_add(count);
        let mut memory = Reservation::new(Arc::clone(ctx.process.memory()));
        let mut ask = |bytes: usize| {
            ctx.check_interrupt()?;
            Ok(memory.grow((ROW_BYTES + bytes) as u64)?)
        };
        let name = source_name(ctx, connection);
        listing.rows = control.relay_events(&name, log, from.unwrap_or(4), most, &mut ask)?;
    }
    listing.cut(offset, count);
    Ok(listing)
}

/// Runs SHOW SLAVE HOSTS.
pub(super) fn hosts(ctx: &StatementContext<'_>) -> Listing {
    let mut listing = Listing::default();
    listing.unsigned("Server_id", 10).text("Host", 20).unsigned("Port", 7).unsigned("Master_id", 10);
    let replicas = ctx.db.callbacks.read().as_ref().map_or_else(Vec::new, |callbacks| callbacks.replicas());
    let own = ctx.db.globals.uint(VarId::ServerId);
    for replica in replicas {
        listing.add([
            Value::Int(replica.server_id.into()),
            Value::text(replica.host),
            Value::Int(replica.port.into()),
            Value::Int(own as i64),
        ]);
    }
    listing
}
