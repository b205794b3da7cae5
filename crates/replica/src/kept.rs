//! Contents of a relay log that is kept: transactions that are applied, and others that are not.
//!
//! # With GTIDs
//! The log has an order, and numbers need not have one: with gtid_strict_mode=0 they may be equal or fall.
//! Up to the group whose GTID is the applied position of its domain all of the domain is applied, and
//! nothing after it. If that group is not in the log, all is applied before the domain's first group with a
//! number above the position's, or that begins behind the executed place of the source's log: the file of the
//! group with the position was purged then. The place does not count if the position may be one of this
//! server's own transactions.

use std::collections::BTreeMap;

use cohort_base::{DomainId, Gtid};
use cohort_binlog::event::{Event, flags};
use cohort_binlog::{EventType, GtidState, RawEvent};

use crate::group::{Groups, Part};
use crate::job::body_of;
use crate::place::SourcePlace;
use crate::relay::{RelayLog, RelayPlace};
use crate::survey::{Survey, Unsound};

/// The applied position.
pub enum Applied {
    Gtids {
        position: GtidState,
        may_be_own: bool,
    },
    /// Everything before this place of the source's log; an empty file is its beginning.
    Place(SourcePlace),
}

/// The findings.
pub struct Kept {
    pub survey: Survey,
    /// GTIDs of the whole groups that are not applied: the newest of each domain and server, in their order.
    pub gtids: Vec<Gtid>,
    /// All groups of a domain before its place are applied, and no others; empty without GTIDs.
    pub applied_until: BTreeMap<DomainId, RelayPlace>,
    /// Behind the last whole group, in the source's log; None: there is none.
    pub whole: Option<SourcePlace>,
    /// Where the first group that is not applied begins, here and in the source's log.
    pub first_open: Option<(RelayPlace, SourcePlace)>,
    /// Whole groups that are acknowledged to the source and not applied.
    pub promised: Vec<String>,
}

struct Reading<'a> {
    applied: &'a Applied,
    executed: &'a SourcePlace,
    groups: Groups,
    gtid: Option<Gtid>,
    place: SourcePlace,
    /// Where the log begins, in the source's log; None: its first group came before any place.
    begins: Option<SourcePlace>,
    has_groups: bool,
    /// Where the group that is read begins.
    start: (RelayPlace, SourcePlace),
    whole: Option<SourcePlace>,
    /// By domain; None: groups without GTIDs, or all of them if places decide.
    lines: BTreeMap<Option<DomainId>, Line>,
    /// Number of names in all lines.
    named: usize,
}

/// Groups that are applied or not one after the other.
#[derive(Default)]
struct Line {
    /// All before this place is applied.
    applied_until: RelayPlace,
    /// The group with the applied position has come.
    is_found: bool,
    first_open: Option<(RelayPlace, SourcePlace)>,
    /// GTIDs of groups that are not applied.
    gtids: GtidState,
    /// Groups that are not applied, with their ends.
    open: Vec<(RelayPlace, String)>,
}

/// Most transactions that are kept by name, for messages.
const NAMED_MAX: usize = 100_000;

impl Reading<'_> {
    fn see(&mut self, number: u32, raw: &RawEvent) {
        let (header, body) = (&raw.header, body_of(raw));
        if header.kind == EventType::FORMAT_DESCRIPTION {
            // What came of an open group comes again.
            self.groups.abandon();
            self.gtid = None;
        }
        if header.flags & flags::RELAY_LOG != 0 {
            return self.see_own(raw);
        }
        let was_open = self.groups.is_open();
        // An event that does not decode ends the applier when it comes to it.
        let Ok(part) = self.groups.see(header, body) else { return };
        if !was_open && part != Part::Outside {
            self.start.0 = RelayPlace { file: number, offset: raw.offset };
            self.start.1.clone_from(&self.place);
            self.has_groups = true;
        }
        if self.place.follow(header, body).is_err() {
            return;
        }
        self.note_begin();
        match part {
            Part::Gtid(_, gtid) => self.gtid = Some(gtid),
            Part::End(_) => self.end(RelayPlace { file: number, offset: raw.end() }),
            Part::Begin | Part::Inside | Part::Outside => {}
        }
    }

    /// The head of a file says where it goes on in the source's log.
    fn see_own(&mut self, raw: &RawEvent) {
        if raw.header.kind != EventType::ROTATE || raw.header.flags & flags::ARTIFICIAL == 0 {
            return;
        }
        if let Ok(Event::Rotate(rotate)) = Event::decode(raw.header.kind, body_of(raw)) {
            let file = String::from_utf8_lossy(&rotate.name).into_owned();
            self.place = SourcePlace { file, position: rotate.position };
            self.note_begin();
        }
    }

    /// Notes the first place of all.
    fn note_begin(&mut self) {
        if self.begins.is_none() && !self.has_groups && !self.place.file.is_empty() {
            self.begins = Some(self.place.clone());
        }
    }

    fn end(&mut self, end: RelayPlace) {
        let gtid = self.gtid.take();
        let key = match self.applied {
            Applied::Gtids { .. } => gtid.map(|gtid| gtid.domain),
            Applied::Place(_) => None,
        };
        let line = self.lines.entry(key).or_default();
        let is_applied = match (self.applied, gtid) {
            (Applied::Gtids { position, may_be_own }, Some(gtid)) => {
                let last = position.last_in(gtid.domain);
                line.is_found |= last == Some(gtid);
                let (start, executed) = (&self.start.1, self.executed);
                let has_places = !may_be_own && !start.file.is_empty() && !executed.file.is_empty();
                let is_later = has_places && start.order() >= executed.order();
                let may_be_before = !line.is_found && line.first_open.is_none() && !is_later;
                last.is_some_and(|last| last == gtid || may_be_before && gtid.seq_no <= last.seq_no)
            }
            (Applied::Gtids { .. }, None) => false,
            (Applied::Place(applied), _) => !applied.file.is_empty() && self.place.order() <= applied.order(),
        };
        self.whole = Some(self.place.clone());
        if is_applied {
            self.named -= line.open.len();
            *line = Line { applied_until: end, is_found: line.is_found, ..Line::default() };
            return;
        }
        line.first_open.get_or_insert_with(|| self.start.clone());
        if let Some(gtid) = gtid {
            line.gtids.update(gtid);
        }
        // Each line names its first group: whether there is any does not depend on the bound.
        if line.open.is_empty() || self.named < NAMED_MAX {
            let name = match gtid {
                Some(gtid) => gtid.to_string(),
                None => format!("{}:{}", self.place.file, self.place.position),
            };
            line.open.push((end, name));
            self.named += 1;
        }
    }
}

impl Kept {
    /// Looks through a relay log. `executed` is the place in the source's log before which all is applied.
    pub fn look(relay: &RelayLog, applied: &Applied, executed: &SourcePlace) -> Result<Kept, Unsound> {
        let mut reading = Reading {
            applied,
            executed,
            groups: Groups::default(),
            gtid: None,
            place: SourcePlace::default(),
            begins: None,
            has_groups: false,
            start: Default::default(),
            whole: None,
            lines: BTreeMap::new(),
            named: 0,
        };
        let survey = relay.survey(&mut |number, raw| reading.see(number, raw))?;
        let first = survey.first();
        // A first file that is listed and there shows that nothing is lost: files go when they are applied,
        // and the list is written before. Those that were removed while it could not be written were applied.
        let begins_behind = match &reading.begins {
            Some(begins) if executed.file.is_empty() => survey.lacks_first || begins.position > 4,
            Some(begins) => begins.order() > executed.order(),
            None => survey.lacks_first,
        };
        if survey.lacks_first && begins_behind {
            return Err(Unsound::new(&relay.path(first.saturating_sub(1)), "is missing"));
        }
        let until = survey.acknowledged.until;
        let lines = reading.lines;
        let first_open = lines.values().filter_map(|line| line.first_open.as_ref());
        let first_open = first_open.min_by_key(|(start, _)| *start).cloned();
        let gtids = lines.values().flat_map(|line| line.gtids.list()).collect();
        let applied_until = match applied {
            Applied::Gtids { .. } => {
                let places = lines.iter().map(|(domain, line)| (*domain, line.applied_until));
                places.filter_map(|(domain, place)| Some((domain?, place))).collect()
            }
            Applied::Place(_) => BTreeMap::new(),
        };
        let open = lines.into_values().flat_map(|line| line.open);
        let mut promised: Vec<(RelayPlace, String)> = open.filter(|(end, _)| *end <= until).collect();
        promised.sort();
        Ok(Kept {
            gtids,
            applied_until,
            whole: reading.whole,
            first_open,
            promised: promised.into_iter().map(|(_, name)| name).collect(),
            survey,
        })
    }
}
