//! Analysis of a relay log that is kept: which of its transactions are applied, and which are not.
//!
//! # With GTIDs
//! The log defines the order; sequence numbers need not, since with gtid_strict_mode=0 they may repeat or
//! fall. All groups of a domain up to the group with the domain's applied GTID are applied, and none after
//! it. If that group is not in the log, its file was purged. Then the first unapplied group is the first one
//! of the domain that has a higher number than the applied position, or that begins after the executed
//! position in the source's log. The executed position is not considered if the applied GTID may be one of
//! this server's own transactions.

use std::collections::BTreeMap;

use cohort_base::{DomainId, Gtid};
use cohort_binlog::event::{Event, flags};
use cohort_binlog::{EventType, GtidState, RawEvent};

use crate::group::{Groups, Part};
use crate::job::body_of;
use crate::place::{RelayPlace, SourcePlace};
use crate::relay::RelayLog;
use crate::survey::{Survey, Unsound};

/// The applied position.
pub enum Applied {
    Gtids {
        position: GtidState,
        may_be_own: bool,
    },
    /// Everything before this position of the source's log is applied; an empty file means the log's
    /// beginning.
    Place(SourcePlace),
}

/// The result of the analysis.
pub struct Kept {
    pub survey: Survey,
    /// GTIDs of the complete groups that are not applied: the newest of each domain and server, in log order.
    pub gtids: Vec<Gtid>,
    /// Groups of a domain before this position are applied, later ones are not. Empty without GTIDs.
    pub applied_until: BTreeMap<DomainId, RelayPlace>,
    /// Source log position after the last complete group. `None` if there is no complete group.
    pub whole: Option<SourcePlace>,
    /// Start of the first group that is not applied, in the relay log and in the source's log.
    pub first_open: Option<(RelayPlace, SourcePlace)>,
    /// Complete groups that are acknowledged to the source and not applied.
    pub promised: Vec<String>,
}

struct Reading<'a> {
    applied: &'a Applied,
    executed: &'a SourcePlace,
    groups: Groups,
    gtid: Option<Gtid>,
    place: SourcePlace,
    /// Source log position where the relay log begins. `None` if its first group came before any position.
    begins: Option<SourcePlace>,
    has_groups: bool,
    /// Start of the group being read.
    start: (RelayPlace, SourcePlace),
    whole: Option<SourcePlace>,
    /// Progress by domain. The key `None` is for groups without GTIDs, or for all groups if file positions
    /// decide.
    lines: BTreeMap<Option<DomainId>, Line>,
    /// Number of names in all lines.
    named: usize,
}

/// A sequence of groups of which a prefix is applied.
#[derive(Default)]
struct Line {
    /// All groups before this position are applied.
    applied_until: RelayPlace,
    /// The group with the applied GTID was read.
    is_found: bool,
    first_open: Option<(RelayPlace, SourcePlace)>,
    /// GTIDs of groups that are not applied.
    gtids: GtidState,
    /// Names of the groups that are not applied, with their end positions.
    open: Vec<(RelayPlace, String)>,
}

/// Maximum number of transaction names kept for messages.
const NAMED_MAX: usize = 100_000;

impl Reading<'_> {
    fn see(&mut self, number: u32, raw: &RawEvent) {
        let (header, body) = (&raw.header, body_of(raw));
        if header.kind == EventType::FORMAT_DESCRIPTION {
            // The source sends an open group again from its beginning.
            self.groups.abandon();
            self.gtid = None;
        }
        if header.flags & flags::RELAY_LOG != 0 {
            return self.see_own(raw);
        }
        let was_open = self.groups.is_open();
        // The applier reports an event that does not decode when it reaches it.
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

    /// Reads the artificial ROTATE at the head of a file, which gives the position in the source's log.
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

    /// Records the first position of the log.
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
        // Each line keeps the name of its first group, regardless of the limit, so that an empty list means
        // none.
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
    /// Analyses a relay log. `executed` is the source log position before which everything is applied.
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
        // A first file that is listed and present proves that nothing is lost: the index is written before
        // applied files are removed. Files that were removed while the index could not be written were
        // applied, too.
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
