//! Selects the groups that are sent to a replica that starts by GTID.
//!
//! # Concepts
//!
//! - A *group* is a GTID event with its events: the single event after it (standalone), or all up to XID, XA
//!   PREPARE, COMMIT or ROLLBACK.
//! - For each domain the replica names the newest GTID that it has. The dump starts in a file at or before
//!   it, so groups up to and including it are skipped. After that the domain is removed from the filter and
//!   everything is sent.
//! - UNTIL names the last wanted GTID of each domain. When all domains have reached it, the dump ends after
//!   that group.

use std::collections::BTreeMap;

use cohort_base::{DomainId, Gtid, ServerId};
use cohort_binlog::GtidState;
use cohort_binlog::event::{Checksum, EventType, HEADER_LEN, InGroup, gtid_flags2};
use cohort_types::SqlError;

use super::errors;

/// How a group ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    Standalone,
    Transaction,
}

/// The needed fields of a GTID event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GtidHead {
    pub gtid: Gtid,
    pub kind: GroupKind,
}

impl GtidHead {
    /// Reads a complete event. Returns `None` if it is too short.
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

/// Returns whether this event, other than a GTID event, is the last of its group.
pub(crate) fn ends_group(kind: GroupKind, event: &[u8], sum: Checksum) -> bool {
    match (EventType(event[4]).in_group(), kind) {
        (InGroup::Ends, _) => true,
        (InGroup::Before, _) => false,
        (InGroup::ByText, GroupKind::Transaction) => {
            matches!(query_text(event, sum), Some(b"COMMIT" | b"ROLLBACK"))
        }
        (InGroup::Single, GroupKind::Transaction) => false,
        (InGroup::ByText | InGroup::Single, GroupKind::Standalone) => true,
    }
}

/// Returns the SQL text of a QUERY event.
fn query_text(event: &[u8], sum: Checksum) -> Option<&[u8]> {
    let body = event.get(HEADER_LEN..event.len().checked_sub(sum.len())?)?;
    let db_len = usize::from(*body.get(8)?);
    let status_len = usize::from(u16::from_le_bytes([*body.get(11)?, *body.get(12)?]));
    body.get(13 + status_len + db_len + 1..)
}

/// The replica's position in a domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The newest GTID that it has.
    pub gtid: Gtid,
    /// This server has nothing of the domain. If the domain appears later, it must contain this GTID.
    pub is_unknown_here: bool,
}

/// Returns the GTID state of the binary log. Called when a domain appears that was unknown here.
pub(crate) type LoggedState<'a> = &'a dyn Fn() -> GtidState;

/// The decision about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Send,
    Skip,
}

/// The filter of one dump.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// The replica starts by GTID.
    pub is_by_gtid: bool,
    /// Domains that still have groups to skip.
    pub wanted: BTreeMap<DomainId, Wanted>,
    /// Domains that have not reached their end yet.
    pub until: Option<BTreeMap<DomainId, Gtid>>,
    pub is_strict: bool,
    /// GTIDs passed so far, for artificial GTID lists.
    pub seen: GtidState,
    /// The group being skipped.
    skipping: Option<GroupKind>,
    /// The last group before UNTIL, while it is being sent.
    stopping: Option<GroupKind>,
    /// The replica's position was reached in a group that is skipped. A GTID list is due after it.
    is_list_due: bool,
}

impl Filter {
    /// Creates a filter for a start by GTID. The caller adds the replica's position while checking it.
    pub fn by_gtid(is_strict: bool, until: Option<&[Gtid]>) -> Filter {
        let until = until.map(|until| until.iter().map(|gtid| (gtid.domain, *gtid)).collect());
        Filter { is_by_gtid: true, is_strict, until, ..Filter::default() }
    }

    /// Returns whether all further events are sent.
    pub fn is_open(&self) -> bool {
        self.wanted.is_empty() && self.until.is_none() && self.skipping.is_none()
    }

    /// Returns whether the replica's position was reached in all domains.
    pub fn is_position_reached(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Ends the dump after the format description if UNTIL was reached before the start.
    pub fn stop_if_until_is_past(&mut self) {
        if self.until.as_ref().is_some_and(BTreeMap::is_empty) {
            self.stopping = Some(GroupKind::Standalone);
        }
    }

    /// Processes the GTID list of a file, from which UNTIL continues to count.
    pub fn gtid_list(&mut self, gtids: &[Gtid]) {
        if self.is_by_gtid && self.until.is_some() {
            self.seen = GtidState::from_list(gtids);
        }
    }

    /// Processes the start of a group.
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

    /// Processes any event, including GTID events.
    pub fn event(&mut self, event: &[u8], sum: Checksum) -> Verdict {
        let Some(kind) = self.skipping else { return Verdict::Send };
        if event[4] != EventType::GTID.0 && ends_group(kind, event, sum) {
            self.skipping = None;
        }
        Verdict::Skip
    }

    /// Returns whether a GTID list with the skipped groups must be sent now.
    pub fn take_list_due(&mut self) -> bool {
        self.skipping.is_none() && std::mem::take(&mut self.is_list_due)
    }

    /// Returns whether the dump ends after this event.
    pub fn is_until_reached(&self, event: &[u8], sum: Checksum) -> bool {
        self.stopping.is_some_and(|kind| event[4] != EventType::GTID.0 && ends_group(kind, event, sum))
    }
}

/// Checks the replica's newest GTID of a domain that was unknown here when it connected.
fn check_known(has: Gtid, logged: &GtidState) -> Result<(), SqlError> {
    match logged.seq_no(has.domain, has.server) {
        Some(seq_no) if seq_no >= has.seq_no => Ok(()),
        _ => Err(missing(has, logged)),
    }
}

/// Returns the error for a GTID that is not in the binary log.
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

    /// Returns the GTIDs that pass, and markers where a list is due or the end is reached.
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
        // Groups of another server come after the replica's own if that GTID was the last it has.
        let mut filter = by_gtid(&["0-2-5"], None);
        assert_eq!(pass(&mut filter, &["0-1-4", "0-2-5", "0-1-6"]), ["list", "0-1-6"]);
    }

    #[test]
    fn until_ends_after_the_group_of_the_last_domain() {
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
