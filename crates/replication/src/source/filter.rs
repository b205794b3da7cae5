//! Which groups a replica that starts by GTID gets.
//!
//! # Concepts
//!
//! - A *group* is a GTID event and what belongs to it: the one event behind it (standalone), or all up to
//!   XID, XA PREPARE, COMMIT or ROLLBACK.
//! - Per domain the replica named the newest GTID it has. The dump starts in a file at or before it, so
//!   groups up to and including it are skipped; then the domain is forgotten and everything is sent.
//! - UNTIL names the last GTID wanted per domain; when all domains have come to it, the dump ends behind that
//!   group.

use std::collections::BTreeMap;

use cohort_base::{DomainId, Gtid, ServerId};
use cohort_binlog::GtidState;
use cohort_binlog::event::{Checksum, EventType, HEADER_LEN, gtid_flags2};
use cohort_types::SqlError;

use super::errors;

/// How a group ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    Standalone,
    Transaction,
}

/// A GTID event, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GtidHead {
    pub gtid: Gtid,
    pub kind: GroupKind,
}

impl GtidHead {
    /// Reads a whole event; `None` if it is too short.
    pub fn read(event: &[u8]) -> Option<GtidHead> {
        let server = ServerId(u32::from_le_bytes(event.get(5..9)?.try_into().ok()?));
        let body = event.get(HEADER_LEN..)?;
        let seq_no = u64::from_le_bytes(body.get(0..8)?.try_into().ok()?);
        let domain = DomainId(u32::from_le_bytes(body.get(8..12)?.try_into().ok()?));
        let kind = match body.get(12)? & gtid_flags2::STANDALONE {
            0 => GroupKind::Transaction,
            _ => GroupKind::Standalone,
        };
        Some(GtidHead { gtid: Gtid { domain, server, seq_no }, kind })
    }
}

/// Whether this event, which is no GTID event, is the last of a group.
pub(crate) fn ends_group(kind: GroupKind, event: &[u8], sum: Checksum) -> bool {
    match (kind, EventType(event[4])) {
        (_, EventType::XID | EventType::XA_PREPARE) => true,
        (GroupKind::Transaction, EventType::QUERY) => {
            matches!(query_text(event, sum), Some(b"COMMIT" | b"ROLLBACK"))
        }
        (GroupKind::Transaction, _) => false,
        (
            GroupKind::Standalone,
            EventType::INTVAR
            | EventType::RAND
            | EventType::USER_VAR
            | EventType::TABLE_MAP
            | EventType::ANNOTATE_ROWS
            | EventType::BEGIN_LOAD_QUERY
            | EventType::APPEND_BLOCK,
        ) => false,
        (GroupKind::Standalone, _) => true,
    }
}

/// The SQL text of a QUERY event.
fn query_text(event: &[u8], sum: Checksum) -> Option<&[u8]> {
    let body = event.get(HEADER_LEN..event.len().checked_sub(sum.len())?)?;
    let db_len = usize::from(*body.get(8)?);
    let status_len = usize::from(u16::from_le_bytes([*body.get(11)?, *body.get(12)?]));
    body.get(13 + status_len + db_len + 1..)
}

/// A domain in which the replica has something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The newest it has.
    pub gtid: Gtid,
    /// Nothing of this domain is here; if it ever comes, this GTID must be among it.
    pub is_unknown_here: bool,
}

/// What the source has logged; asked when a domain turns up that it did not know.
pub(crate) type LoggedState<'a> = &'a dyn Fn() -> GtidState;

/// What is to be done with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Send,
    Skip,
}

/// The filter of one dump.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Whether the replica starts by GTID at all.
    pub is_by_gtid: bool,
    /// Domains in which there are groups to be skipped.
    pub wanted: BTreeMap<DomainId, Wanted>,
    /// Domains that have not come to their end.
    pub until: Option<BTreeMap<DomainId, Gtid>>,
    pub is_strict: bool,
    /// What has been passed; goes into made-up GTID lists.
    pub seen: GtidState,
    /// The group that is passed over at the moment.
    skipping: Option<GroupKind>,
    /// The last group before UNTIL, which is on its way.
    stopping: Option<GroupKind>,
    /// The replica's position was reached in a group that is skipped: it is to be told behind it.
    is_list_due: bool,
}

impl Filter {
    /// For a replica that starts by GTID; its position is filled in where it is checked.
    pub fn by_gtid(is_strict: bool, until: Option<&[Gtid]>) -> Filter {
        let until = until.map(|until| until.iter().map(|gtid| (gtid.domain, *gtid)).collect());
        Filter { is_by_gtid: true, is_strict, until, ..Filter::default() }
    }

    /// Whether all that comes is sent.
    pub fn is_open(&self) -> bool {
        self.wanted.is_empty() && self.until.is_none() && self.skipping.is_none()
    }

    /// Whether the replica's position has been reached in all domains.
    pub fn is_position_reached(&self) -> bool {
        self.wanted.is_empty()
    }

    /// UNTIL was reached before the start: the dump ends behind the format description.
    pub fn stop_if_until_is_past(&mut self) {
        if self.until.as_ref().is_some_and(BTreeMap::is_empty) {
            self.stopping = Some(GroupKind::Standalone);
        }
    }

    /// A file's list, which UNTIL counts on from.
    pub fn gtid_list(&mut self, gtids: &[Gtid]) {
        if self.is_by_gtid && self.until.is_some() {
            self.seen = GtidState::from_list(gtids);
        }
    }

    /// A group starts.
    pub fn gtid(&mut self, head: &GtidHead, logged: LoggedState<'_>) -> Result<(), SqlError> {
        if !self.is_by_gtid || (self.wanted.is_empty() && self.until.is_none()) {
            return Ok(());
        }
        let gtid = head.gtid;
        self.seen.update(gtid);
        if let Some(wanted) = self.wanted.get_mut(&gtid.domain) {
            let has = wanted.gtid;
            if std::mem::take(&mut wanted.is_unknown_here) {
                check_known(has, &logged())?;
            }
            let is_same_server = gtid.server == has.server;
            if !is_same_server || gtid.seq_no <= has.seq_no {
                self.skipping = Some(head.kind);
            }
            if is_same_server && gtid.seq_no >= has.seq_no {
                if self.is_strict && gtid.seq_no > has.seq_no {
                    return Err(errors::hole(has));
                }
                self.wanted.remove(&gtid.domain);
                self.is_list_due = true;
            }
        }
        self.until_gtid(head);
        Ok(())
    }

    fn until_gtid(&mut self, head: &GtidHead) {
        let Some(until) = &mut self.until else { return };
        match until.get(&head.gtid.domain).copied() {
            None => self.skipping = Some(head.kind),
            Some(last) if last.server == head.gtid.server && head.gtid.seq_no >= last.seq_no => {
                until.remove(&last.domain);
                if until.is_empty() {
                    self.stopping = Some(head.kind);
                }
                if head.gtid.seq_no > last.seq_no {
                    self.skipping = Some(head.kind);
                }
            }
            Some(_) => {}
        }
    }

    /// Any event, the GTID event itself too.
    pub fn event(&mut self, event: &[u8], sum: Checksum) -> Verdict {
        let Some(kind) = self.skipping else { return Verdict::Send };
        if event[4] != EventType::GTID.0 && ends_group(kind, event, sum) {
            self.skipping = None;
        }
        Verdict::Skip
    }

    /// Whether the replica is to be told now what was skipped.
    pub fn take_list_due(&mut self) -> bool {
        self.skipping.is_none() && std::mem::take(&mut self.is_list_due)
    }

    /// Whether the dump ends behind this event.
    pub fn is_until_reached(&self, event: &[u8], sum: Checksum) -> bool {
        self.stopping.is_some_and(|kind| event[4] != EventType::GTID.0 && ends_group(kind, event, sum))
    }
}

/// The replica's newest of a domain that was unknown here when it connected.
fn check_known(has: Gtid, logged: &GtidState) -> Result<(), SqlError> {
    match logged.seq_no(has.domain, has.server) {
        Some(seq_no) if seq_no >= has.seq_no => Ok(()),
        _ => Err(missing(has, logged)),
    }
}

/// The error for a GTID that is not here.
pub(crate) fn missing(has: Gtid, logged: &GtidState) -> SqlError {
    let newest = logged.position().into_iter().find(|gtid| gtid.domain == has.domain);
    errors::unknown_gtid(has, newest.is_some_and(|newest| newest.seq_no >= has.seq_no))
}

#[cfg(test)]
mod tests {
    use cohort_base::Write;

    use super::*;

    fn gtid(text: &str) -> Gtid {
        text.parse().expect("valid")
    }

    fn head(text: &str) -> GtidHead {
        GtidHead { gtid: gtid(text), kind: GroupKind::Transaction }
    }

    fn event(kind: EventType) -> Vec<u8> {
        let mut event = vec![0; HEADER_LEN];
        event[4] = kind.0;
        event
    }

    fn query(sql: &[u8]) -> Vec<u8> {
        let mut event = event(EventType::QUERY);
        event.extend_from_slice(&[0; 8]);
        event.put_u8(2);
        event.put_u16(0);
        event.put_u16(3);
        event.extend_from_slice(b"...db\0");
        event.extend_from_slice(sql);
        event
    }

    fn by_gtid(position: &[&str], until: Option<&[&str]>) -> Filter {
        let map = |list: &[&str]| list.iter().map(|text| (gtid(text).domain, gtid(text))).collect();
        Filter {
            is_by_gtid: true,
            wanted: position
                .iter()
                .map(|text| (gtid(text).domain, Wanted { gtid: gtid(text), is_unknown_here: false }))
                .collect(),
            until: until.map(map),
            ..Filter::default()
        }
    }

    /// GTIDs that pass, and where a list is due or the end reached.
    fn pass(filter: &mut Filter, groups: &[&str]) -> Vec<String> {
        let mut passed = Vec::new();
        for text in groups {
            filter.gtid(&head(text), &GtidState::default).expect("fine");
            let gtid_event = event(EventType::GTID);
            let verdicts = [
                filter.event(&gtid_event, Checksum::None),
                filter.event(&event(EventType::XID), Checksum::None),
            ];
            assert_eq!(verdicts[0], verdicts[1]);
            if verdicts[0] == Verdict::Send {
                passed.push((*text).to_owned());
            }
            if filter.take_list_due() {
                passed.push("list".to_owned());
            }
            if filter.is_until_reached(&event(EventType::XID), Checksum::None) {
                passed.push("end".to_owned());
                break;
            }
        }
        passed
    }

    #[test]
    fn groups_up_to_the_replicas_position_are_skipped_by_domain() {
        let mut filter = by_gtid(&["0-1-2", "5-1-1"], None);
        let groups = ["0-1-1", "5-1-1", "0-1-2", "0-1-3", "5-1-2", "7-1-1"];
        assert_eq!(pass(&mut filter, &groups), ["list", "list", "0-1-3", "5-1-2", "7-1-1"]);
        // Of another server: it follows the own one if that was the last the replica has.
        let mut filter = by_gtid(&["0-2-5"], None);
        assert_eq!(pass(&mut filter, &["0-1-4", "0-2-5", "0-1-6"]), ["list", "0-1-6"]);
    }

    #[test]
    fn until_ends_behind_the_last_domains_group() {
        let mut filter = by_gtid(&[], Some(&["0-1-2", "5-1-1"]));
        let groups = ["0-1-1", "7-1-1", "0-1-2", "0-1-3", "5-1-1", "5-1-2"];
        assert_eq!(pass(&mut filter, &groups), ["0-1-1", "0-1-2", "5-1-1", "end"]);
    }

    #[test]
    fn a_hole_is_an_error_in_strict_mode_only() {
        for is_strict in [false, true] {
            let mut filter = by_gtid(&["0-1-2"], None);
            filter.is_strict = is_strict;
            assert_eq!(filter.gtid(&head("0-1-3"), &GtidState::default).is_err(), is_strict);
        }
    }

    #[test]
    fn groups_end_where_replicas_think_they_do() {
        let none = Checksum::None;
        assert!(ends_group(GroupKind::Transaction, &query(b"COMMIT"), none));
        assert!(!ends_group(GroupKind::Transaction, &query(b"COMMIT x"), none));
        assert!(ends_group(GroupKind::Standalone, &query(b"CREATE TABLE t (a INT)"), none));
        assert!(!ends_group(GroupKind::Standalone, &event(EventType::INTVAR), none));
        for short in 0..13 {
            let mut cut = event(EventType::QUERY);
            cut.resize(HEADER_LEN + short, 0);
            assert!(!ends_group(GroupKind::Transaction, &cut, none));
        }
    }
}
