//! Memory reservation for compressed events: a few bytes of one may decompress to a gigabyte.

use std::sync::Arc;

use cohort_base::{Budget, Reservation};
use cohort_binlog::StatementError;
use cohort_binlog::event::DecodeError;
use cohort_config::{Globals, VarId};
use cohort_types::{ErrorCode, SqlError, SqlResult};

/// Size that a decompressed event may have even if `slave_max_allowed_packet` is smaller: as in MariaDB, that
/// setting limits the size of events as received.
const INFLATED_BYTES_MAX: u64 = 1 << 30;

/// Reserves session memory for an event before it is decompressed. Returns `None` for an uncompressed event.
/// Error 1153 if it would exceed both [`INFLATED_BYTES_MAX`] and `slave_max_allowed_packet`.
pub fn reserve_to_unpack(
    globals: &Globals,
    memory: &Arc<Budget>,
    inflated_bytes: Result<u64, DecodeError>,
) -> SqlResult<Option<Reservation>> {
    let bytes = inflated_bytes.map_err(bad_event)?;
    if bytes == 0 {
        return Ok(None);
    }
    if bytes > globals.uint(VarId::SlaveMaxAllowedPacket).max(INFLATED_BYTES_MAX) {
        return Err(SqlError::slave_packet_too_large());
    }
    let mut reservation = Reservation::new(Arc::clone(memory));
    reservation.grow(bytes)?;
    Ok(Some(reservation))
}

/// Returns the client's error for bytes that are not a valid event.
pub(super) fn bad_event(error: DecodeError) -> SqlError {
    refused(StatementError::Damaged(error))
}

pub fn refused(error: StatementError) -> SqlError {
    let code = match &error {
        StatementError::Base64 => ErrorCode::Base64DecodeError,
        StatementError::NoFormatDescription(_) => ErrorCode::NoFormatDescriptionEvent,
        StatementError::NotAllowed(_) => ErrorCode::OnlyRowEventsInBinlogStatement,
        StatementError::Damaged(_) => ErrorCode::Parse,
    };
    SqlError::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use cohort_config::VarValue;

    use cohort_types::ErrorCode;

    use super::*;

    #[test]
    fn room_is_taken_before_anything_is_inflated_and_given_back() {
        let globals = Globals::new();
        globals.put(VarId::SlaveMaxAllowedPacket, &VarValue::UInt(1 << 20));
        let server = Budget::of_server();
        let memory = Budget::of_session(&server);
        let room = |bytes| reserve_to_unpack(&globals, &memory, Ok(bytes));
        assert!(room(0).expect("not compressed").is_none());
        let held = room(1 << 20).expect("as large as it may be");
        assert_eq!((memory.used(), server.used()), (1 << 20, 1 << 20));
        drop(held);
        assert_eq!(memory.used(), 0);
        assert_eq!(room((1 << 30) + 1).expect_err("too large").code, ErrorCode::NetPacketTooLarge);
        server.set_limit(1000);
        assert!(room(1001).is_err());
        assert_eq!(server.used(), 0);
        assert!(reserve_to_unpack(&globals, &memory, Err(DecodeError::Truncated)).is_err());
    }
}
