//! What a server says about replication: its sources, and those who follow it.

use std::sync::Arc;

use cohort_base::Reservation;
use cohort_config::VarId;
use cohort_types::{ColumnType, SqlResult, TypeKind, Value};

use super::listing::Listing;
use crate::replication::SourceName;
use crate::statement::StatementContext;

/// Text columns with their length, number columns with 0.
const STATUS: [(&str, u32); 54] = [
    ("Slave_IO_State", 30),
    ("Master_Host", 766),
    ("Master_User", 385),
    ("Master_Port", 0),
    ("Connect_Retry", 0),
    ("Master_Log_File", 512),
    ("Read_Master_Log_Pos", 0),
    ("Relay_Log_File", 512),
    ("Relay_Log_Pos", 0),
    ("Relay_Master_Log_File", 512),
    ("Slave_IO_Running", 3),
    ("Slave_SQL_Running", 3),
    ("Replicate_Do_DB", 20),
    ("Replicate_Ignore_DB", 20),
    ("Replicate_Do_Table", 20),
    ("Replicate_Ignore_Table", 23),
    ("Replicate_Wild_Do_Table", 24),
    ("Replicate_Wild_Ignore_Table", 28),
    ("Last_Errno", 0),
    ("Last_Error", 20),
    ("Skip_Counter", 0),
    ("Exec_Master_Log_Pos", 0),
    ("Relay_Log_Space", 0),
    ("Until_Condition", 6),
    ("Until_Log_File", 512),
    ("Until_Log_Pos", 0),
    ("Master_SSL_Allowed", 7),
    ("Master_SSL_CA_File", 512),
    ("Master_SSL_CA_Path", 512),
    ("Master_SSL_Cert", 512),
    ("Master_SSL_Cipher", 512),
    ("Master_SSL_Key", 512),
    ("Seconds_Behind_Master", 0),
    ("Master_SSL_Verify_Server_Cert", 3),
    ("Last_IO_Errno", 0),
    ("Last_IO_Error", 20),
    ("Last_SQL_Errno", 0),
    ("Last_SQL_Error", 20),
    ("Replicate_Ignore_Server_Ids", 512),
    ("Master_Server_Id", 0),
    ("Master_SSL_Crl", 512),
    ("Master_SSL_Crlpath", 512),
    ("Using_Gtid", 11),
    ("Gtid_IO_Pos", 30),
    ("Replicate_Do_Domain_Ids", 512),
    ("Replicate_Ignore_Domain_Ids", 512),
    ("Parallel_Mode", 12),
    ("SQL_Delay", 0),
    ("SQL_Remaining_Delay", 0),
    ("Slave_SQL_Running_State", 20),
    ("Slave_DDL_Groups", 0),
    ("Slave_Non_Transactional_Groups", 0),
    ("Slave_Transactional_Groups", 0),
    ("Replicate_Rewrite_DB", 23),
];

/// In front of them in SHOW ALL SLAVES STATUS.
const BEFORE: [(&str, u32); 2] = [("Connection_name", 64), ("Slave_SQL_State", 30)];

/// Behind them there.
const BEHIND: [(&str, u32); 6] = [
    ("Retried_transactions", 0),
    ("Max_relay_log_size", 0),
    ("Executed_log_entries", 0),
    ("Slave_received_heartbeats", 0),
    ("Slave_heartbeat_period", 9),
    ("Gtid_Slave_Pos", 30),
];

/// Columns that may be NULL.
const NULLABLE: [&str; 2] = ["Seconds_Behind_Master", "SQL_Remaining_Delay"];

/// SHOW SLAVE STATUS and SHOW ALL SLAVES STATUS.
pub(super) fn status(ctx: &StatementContext<'_>, all: bool, connection: Option<&str>) -> SqlResult<Listing> {
    let mut listing = Listing::default();
    let (before, behind): (&[_], &[_]) = if all { (&BEFORE, &BEHIND) } else { (&[], &[]) };
    for &(name, length) in before.iter().chain(&STATUS).chain(behind) {
        match length {
            0 if NULLABLE.contains(&name) => {
                listing.column(name, ColumnType::int(TypeKind::BigInt, Some(20), false), true)
            }
            0 => listing.number(name, 20),
            length => listing.text(name, length),
        };
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
    let default = || ctx.session.vars.text(VarId::DefaultMasterConnection);
    connection.map_or_else(|| default().as_deref().unwrap_or("").to_owned(), str::to_owned).to_lowercase()
}

/// Of a row of events, without its text.
const ROW_BYTES: usize = 256;

/// SHOW RELAYLOG EVENTS.
pub(super) fn relay_events(
    ctx: &StatementContext<'_>,
    log: Option<&str>,
    from: Option<u64>,
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
        let name = source_name(ctx, None);
        listing.rows = control.relay_events(&name, log, from.unwrap_or(4), most, &mut ask)?;
    }
    listing.cut(offset, count);
    Ok(listing)
}

/// SHOW SLAVE HOSTS.
pub(super) fn hosts(ctx: &StatementContext<'_>) -> Listing {
    let mut listing = Listing::default();
    listing.number("Server_id", 10).text("Host", 20).number("Port", 7).number("Master_id", 10);
    let replicas = ctx.db.facts.read().as_ref().map_or_else(Vec::new, |facts| facts.replicas());
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
