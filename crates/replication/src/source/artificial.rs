//! Artificial events, which are in no file, and events rewritten for one replica.

use cohort_base::{BinlogPos, Gtid, ServerId, Write};
use cohort_binlog::event::{
    Checksum, EventHeader, EventType, GtidListEvent, HEADER_LEN, Rotate, crc_of_event, flags,
};

/// Offset of `log_pos` and `flags` in a header.
const LOG_POS_AT: usize = 13;
const FLAGS_AT: usize = 17;
/// Offset of `created` in a format description.
const CREATED_AT: usize = HEADER_LEN + 2 + 50;
/// Fixed part of a QUERY event, including the zero byte after the empty database name.
const QUERY_FIXED: usize = 13 + 1;

fn build(kind: EventType, server: ServerId, log_pos: u32, flags: u16, body: &[u8], sum: Checksum) -> Vec<u8> {
    let event_len = (HEADER_LEN + body.len() + sum.len()) as u32;
    let mut event = Vec::with_capacity(event_len as usize);
    EventHeader { timestamp: 0, kind, server_id: server, event_len, log_pos, flags }.encode(&mut event);
    event.extend_from_slice(body);
    if sum == Checksum::Crc32 {
        let crc = crc_of_event(&event);
        event.put_u32(crc);
    }
    event
}

/// Builds a ROTATE event that names the file of the following events.
pub(crate) fn fake_rotate(server: ServerId, name: &str, position: u64, sum: Checksum) -> Vec<u8> {
    let mut body = Vec::new();
    Rotate { position, name: name.as_bytes().to_vec() }.encode(&mut body);
    build(EventType::ROTATE, server, 0, flags::ARTIFICIAL, &body, sum)
}

/// Builds a heartbeat, sent while there is nothing to send. A position beyond 4 GiB is in the body.
pub(crate) fn heartbeat(server: ServerId, name: &str, at: BinlogPos, sum: Checksum) -> Vec<u8> {
    let (log_pos, mut body) = match u32::try_from(at.offset) {
        Ok(offset) => (offset, Vec::new()),
        Err(_) => (0, at.offset.to_le_bytes().to_vec()),
    };
    body.extend_from_slice(name.as_bytes());
    build(EventType::HEARTBEAT, server, log_pos, 0, &body, sum)
}

/// Builds a GTID list with the state after skipped groups. The flag `UNTIL_REACHED` ends the replica's work.
pub(crate) fn fake_gtid_list(
    server: ServerId,
    gtids: Vec<Gtid>,
    list_flags: u8,
    offset: u64,
    sum: Checksum,
) -> Vec<u8> {
    let mut body = Vec::new();
    GtidListEvent { flags: list_flags, gtids }.encode(&mut body);
    build(EventType::GTID_LIST, server, offset as u32, flags::ARTIFICIAL, &body, sum)
}

/// Returns the format description as this replica needs it: without the in-use flag, and without the fields
/// that would make a replica in the middle of a file drop its position or its temporary tables.
pub(crate) fn format_description(event: &[u8], clear_position: bool, clear_created: bool) -> Vec<u8> {
    let mut event = event.to_vec();
    if event.len() < CREATED_AT + 4 + 4 {
        return event;
    }
    // The checksum does not cover this flag.
    event[FLAGS_AT] &= !(flags::IN_USE as u8);
    if clear_position {
        event[LOG_POS_AT..LOG_POS_AT + 4].fill(0);
    }
    if clear_position || clear_created {
        event[CREATED_AT..CREATED_AT + 4].fill(0);
    }
    renew_checksum(&mut event);
    event
}

fn renew_checksum(event: &mut [u8]) {
    let covered = event.len() - 4;
    let crc = crc_of_event(&event[..covered]);
    event[covered..].copy_from_slice(&crc.to_le_bytes());
}

/// Replaces kind and body of an event, keeping the rest of its header. The new body has the size of the old
/// one.
fn replaced(event: &[u8], kind: EventType, sum: Checksum, body: &[u8]) -> Vec<u8> {
    let mut made = event.to_vec();
    made[4] = kind.0;
    let old = u16::from_le_bytes([event[FLAGS_AT], event[FLAGS_AT + 1]]);
    let new = old & !flags::THREAD_SPECIFIC | flags::SUPPRESS_USE;
    made[FLAGS_AT..FLAGS_AT + 2].copy_from_slice(&new.to_le_bytes());
    made[HEADER_LEN..HEADER_LEN + body.len()].copy_from_slice(body);
    if sum == Checksum::Crc32 {
        renew_checksum(&mut made);
    }
    made
}

fn query(status: &[u8], sql: &[u8]) -> Vec<u8> {
    let mut body = vec![0; 11];
    body.put_u16(status.len() as u16);
    body.extend_from_slice(status);
    body.put_u8(0);
    body.extend_from_slice(sql);
    body
}

/// Returns an event of the same length that does nothing, for a replica that does not know this kind and
/// counts bytes: a QUERY with a comment, or a user variable if that would be too long.
pub(crate) fn dummy(event: &[u8], sum: Checksum) -> Option<Vec<u8>> {
    let room = event.len().checked_sub(HEADER_LEN + sum.len())?;
    if let Some(sql_len) = room.checked_sub(QUERY_FIXED)
        && sql_len > 0
    {
        let mut sql = format!("# Event of type {} left out for this replica", event[4]).into_bytes();
        sql.resize(sql_len, b' ');
        return Some(replaced(event, EventType::QUERY, sum, &query(&[], &sql)));
    }
    // name_len u32 | name | is_null u8
    let name_len = room.checked_sub(5).filter(|len| *len > 0)?;
    let mut body = Vec::new();
    body.put_u32(name_len as u32);
    body.resize(4 + name_len, b'!');
    body.put_u8(1);
    Some(replaced(event, EventType::USER_VAR, sum, &body))
}

/// Returns a BEGIN event of the same length as a GTID event, for a replica that does not know GTIDs. Status
/// variables without effect fill the space.
pub(crate) fn begin(event: &[u8], sum: Checksum) -> Option<Vec<u8>> {
    const TIME_ZONE_EMPTY: [u8; 2] = [5, 0];
    const LC_TIME_NAMES_DEFAULT: [u8; 3] = [7, 0, 0];
    let room = event.len().checked_sub(HEADER_LEN + sum.len() + QUERY_FIXED + b"BEGIN".len())?;
    let mut status = Vec::new();
    if room % 2 == 1 {
        status.extend_from_slice(&LC_TIME_NAMES_DEFAULT);
    }
    while status.len() < room {
        status.extend_from_slice(&TIME_ZONE_EMPTY);
    }
    (status.len() == room).then(|| replaced(event, EventType::QUERY, sum, &query(&status, b"BEGIN")))
}

#[cfg(test)]
mod tests {
    use cohort_base::DomainId;
    use cohort_binlog::event::{Event, FormatDescription, GtidEvent, split_event};

    use super::*;

    const SERVER: ServerId = ServerId(3);

    fn decoded(event: &[u8], sum: Checksum) -> Event {
        let (header, body) = split_event(event, sum).expect("well formed");
        Event::decode(header.kind, body).expect("well formed")
    }

    #[test]
    fn made_up_events_are_well_formed_with_and_without_checksums() {
        for sum in [Checksum::None, Checksum::Crc32] {
            let rotate = decoded(&fake_rotate(SERVER, "binlog.000007", 4, sum), sum);
            assert!(matches!(rotate, Event::Rotate(r) if r.position == 4 && r.name == b"binlog.000007"));
            let at = BinlogPos { file: 7, offset: 99 };
            let beat = heartbeat(SERVER, "binlog.000007", at, sum);
            assert_eq!(beat[LOG_POS_AT..LOG_POS_AT + 4], [99, 0, 0, 0]);
            assert!(matches!(decoded(&beat, sum), Event::Heartbeat(_)));
            let gtid: Gtid = "0-3-9".parse().expect("valid");
            let list = decoded(&fake_gtid_list(SERVER, vec![gtid], 1, 99, sum), sum);
            assert!(matches!(list, Event::GtidList(list) if list.flags == 1 && list.gtids == [gtid]));
        }
    }

    #[test]
    fn old_replicas_get_events_of_the_same_length() {
        for sum in [Checksum::None, Checksum::Crc32] {
            for commit_id in [None, Some(5)] {
                let gtid = Gtid { domain: DomainId(0), server: SERVER, seq_no: 7 };
                let mut body = Vec::new();
                GtidEvent::new(gtid, 0, commit_id).encode(&mut body);
                let event = build(EventType::GTID, SERVER, 100, 0, &body, sum);
                let made = begin(&event, sum).expect("room");
                assert_eq!(made.len(), event.len());
                assert!(
                    matches!(decoded(&made, sum), Event::Query(q) if q.sql == b"BEGIN" && q.db.is_empty())
                );
            }
            for len in 6..80 {
                let event = build(EventType::GTID_LIST, SERVER, 100, 0, &vec![0; len], sum);
                let made = dummy(&event, sum).expect("room");
                assert_eq!(made.len(), event.len());
                match decoded(&made, sum) {
                    Event::Query(query) => assert!(query.sql.starts_with(b"#")),
                    Event::UserVar(_) => assert!(len < 15),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(dummy(&build(EventType::GTID_LIST, SERVER, 100, 0, &[0; 5], sum), sum), None);
        }
    }

    #[test]
    fn a_format_description_loses_what_would_harm() {
        let mut body = Vec::new();
        FormatDescription::new("10.11.99-MariaDB-log", 77, Checksum::Crc32).encode(&mut body);
        let event = build(EventType::FORMAT_DESCRIPTION, SERVER, 256, flags::IN_USE, &body, Checksum::Crc32);
        let same = format_description(&event, false, false);
        let (header, _) = split_event(&same, Checksum::Crc32).expect("well formed");
        assert_eq!((header.flags, header.log_pos), (0, 256));
        assert!(matches!(decoded(&same, Checksum::Crc32), Event::FormatDescription(f) if f.created == 77));
        let cleared = format_description(&event, true, false);
        assert_eq!(split_event(&cleared, Checksum::Crc32).expect("well formed").0.log_pos, 0);
        assert!(matches!(decoded(&cleared, Checksum::Crc32), Event::FormatDescription(f) if f.created == 0));
    }
}
