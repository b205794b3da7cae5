//! Boundaries of event groups, for the receiver and the applier.
//!
//! ```text
//! GTID (STANDALONE)  [INTVAR RAND USER_VAR]* QUERY                     a statement that commits by itself
//! GTID               any                     XID | XA_PREPARE | COMMIT | ROLLBACK
//! GTID (XA ended)                            QUERY                     XA COMMIT or XA ROLLBACK
//! BEGIN              any                     XID | COMMIT | ROLLBACK   from a source without GTIDs
//!                    [INTVAR RAND USER_VAR]* QUERY                     from a source without GTIDs
//! ```

use cohort_base::{Gtid, Reader};
use cohort_binlog::event::{Event, GtidEvent, gtid_flags2};
use cohort_binlog::{DecodeError, EventHeader, EventType};

/// The role of an event in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Not in a group: the start of a file, a heartbeat.
    Outside,
    /// The GTID that begins a group.
    Gtid(Box<GtidEvent>, Gtid),
    /// The BEGIN that begins a group of a source without GTIDs.
    Begin,
    /// An event between the first and the last.
    Inside,
    /// The last event of a group.
    End(End),
}

/// How a group ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// XID or COMMIT.
    Commit,
    Rollback,
    /// A statement that is the whole group.
    Statement,
    /// XA PREPARE, XA COMMIT or XA ROLLBACK: one of the two groups of an XA transaction.
    Xa,
}

/// Tracks the group boundaries in the events of one source.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Standalone,
    Transaction,
    /// XA COMMIT or XA ROLLBACK.
    XaEnd,
}

impl Groups {
    /// Returns whether the next event continues a group.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Drops the open group, whose end will never arrive.
    pub fn abandon(&mut self) {
        self.open = None;
    }

    /// Processes the next event and returns its role.
    pub fn see(&mut self, header: &EventHeader, body: &[u8]) -> Result<Part, DecodeError> {
        let kind = header.kind;
        if kind == EventType::GTID {
            let Event::Gtid(event) = Event::decode(kind, body)? else {
                return Err(DecodeError::BadValue("a GTID event that is none"));
            };
            let has = |flag| event.flags2 & flag != 0;
            self.open = Some(match () {
                () if has(gtid_flags2::COMPLETED_XA) => Open::XaEnd,
                () if has(gtid_flags2::STANDALONE) => Open::Standalone,
                () => Open::Transaction,
            });
            let gtid = event.gtid(header.server_id);
            return Ok(Part::Gtid(Box::new(event), gtid));
        }
        let prepares = matches!(kind, EventType::INTVAR | EventType::RAND | EventType::USER_VAR);
        if is_outside(kind) {
            return Ok(Part::Outside);
        }
        let text = match kind {
            EventType::QUERY => Some(query_text(body)?),
            _ => None,
        };
        match self.open {
            Some(Open::Standalone) if prepares => Ok(Part::Inside),
            Some(Open::Standalone) => Ok(self.end(End::Statement)),
            Some(Open::Transaction) => Ok(match (kind, text) {
                (EventType::XID, _) | (_, Some(b"COMMIT")) => self.end(End::Commit),
                (_, Some(b"ROLLBACK")) => self.end(End::Rollback),
                (EventType::XA_PREPARE, _) => self.end(End::Xa),
                _ => Part::Inside,
            }),
            Some(Open::XaEnd) => Ok(self.end(End::Xa)),
            None if text == Some(b"BEGIN") => {
                self.open = Some(Open::Transaction);
                Ok(Part::Begin)
            }
            None if prepares => Ok(Part::Inside),
            None => Ok(Part::End(End::Statement)),
        }
    }

    fn end(&mut self, end: End) -> Part {
        self.open = None;
        Part::End(end)
    }
}

fn is_outside(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::FORMAT_DESCRIPTION
            | EventType::ROTATE
            | EventType::STOP
            | EventType::GTID_LIST
            | EventType::BINLOG_CHECKPOINT
            | EventType::HEARTBEAT
            | EventType::START_ENCRYPTION
            | EventType::IGNORABLE
    )
}

/// Returns the statement text of a QUERY event.
pub fn query_text(body: &[u8]) -> Result<&[u8], DecodeError> {
    let mut r = Reader::new(body);
    r.bytes(8)?;
    let db_len = usize::from(r.u8()?);
    r.u16()?;
    let status_len = usize::from(r.u16()?);
    r.bytes(status_len + db_len + 1)?;
    Ok(r.rest())
}

#[cfg(test)]
mod tests {
    use cohort_base::{DomainId, ServerId};
    use cohort_binlog::event::{Packing, QueryEvent};

    use super::*;

    fn header(kind: EventType) -> EventHeader {
        EventHeader { timestamp: 1, kind, server_id: ServerId(7), event_len: 19, log_pos: 0, flags: 0 }
    }

    fn query(sql: &[u8]) -> (EventHeader, Vec<u8>) {
        let event = QueryEvent {
            thread_id: 1,
            exec_time: 0,
            error: 0,
            status: vec![0, 0, 0, 0, 0],
            db: b"test".to_vec(),
            packing: Packing::Plain,
            sql: sql.to_vec(),
        };
        let mut body = Vec::new();
        event.encode(&mut body);
        (header(EventType::QUERY), body)
    }

    fn gtid(flags2: u8) -> (EventHeader, Vec<u8>) {
        let gtid = Gtid { domain: DomainId(0), server: ServerId(7), seq_no: 5 };
        let mut body = Vec::new();
        GtidEvent::new(gtid, flags2, None).encode(&mut body);
        (header(EventType::GTID), body)
    }

    #[test]
    fn groups_of_every_form_are_cut_where_they_end() {
        let mut groups = Groups::default();
        let mut see = |(header, body): (EventHeader, Vec<u8>)| groups.see(&header, &body).expect("decodes");
        let bare = |kind| (header(kind), Vec::new());
        assert!(matches!(see(gtid(gtid_flags2::STANDALONE)), Part::Gtid(..)));
        assert_eq!(see(bare(EventType::INTVAR)), Part::Inside);
        assert_eq!(see(query(b"CREATE TABLE t (a INT)")), Part::End(End::Statement));
        assert!(matches!(see(gtid(0)), Part::Gtid(..)));
        assert_eq!(see(query(b"INSERT INTO t VALUES (1)")), Part::Inside);
        assert_eq!(see(bare(EventType::XID)), Part::End(End::Commit));
        assert_eq!(see(bare(EventType::ROTATE)), Part::Outside);
        assert_eq!(see(query(b"BEGIN")), Part::Begin);
        assert_eq!(see(bare(EventType::TABLE_MAP)), Part::Inside);
        assert_eq!(see(query(b"ROLLBACK")), Part::End(End::Rollback));
        assert!(matches!(see(gtid(gtid_flags2::COMPLETED_XA)), Part::Gtid(..)));
        assert_eq!(see(query(b"XA COMMIT X'78',X'',1")), Part::End(End::Xa));
        assert_eq!(see(bare(EventType::RAND)), Part::Inside);
        assert_eq!(see(query(b"INSERT INTO t VALUES (RAND())")), Part::End(End::Statement));
        assert!(!groups.is_open());
    }

    #[test]
    fn a_cut_query_is_refused() {
        let (header, body) = query(b"");
        let mut groups = Groups::default();
        for end in 0..body.len() {
            assert!(groups.see(&header, &body[..end]).is_err(), "{end}");
        }
    }
}
