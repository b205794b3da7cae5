//! Contents of a relay log that is kept: transactions that are applied, and others that are not.

use cohort_base::Gtid;
use cohort_binlog::event::{Event, flags};
use cohort_binlog::{EventType, GtidState, RawEvent};

use crate::group::{Groups, Part};
use crate::job::body_of;
use crate::place::SourcePlace;
use crate::relay::{RelayLog, RelayPlace};
use crate::survey::{Survey, Unsound};

/// The applied position.
pub enum Applied {
    Gtids(GtidState),
    /// Everything before this place of the source's log; an empty file is its beginning.
    Place(SourcePlace),
}

/// The findings.
pub struct Kept {
    pub survey: Survey,
    /// GTIDs of all groups that are whole, in their order.
    pub gtids: Vec<Gtid>,
    /// Behind the last whole group, in the source's log; None: there is none.
    pub whole: Option<SourcePlace>,
    /// Where the first group that is not applied begins, here and in the source's log.
    pub first_open: Option<(RelayPlace, SourcePlace)>,
    /// Whole groups that are acknowledged to the source and not applied.
    pub promised: Vec<String>,
}

struct Reading<'a> {
    applied: &'a Applied,
    groups: Groups,
    gtid: Option<Gtid>,
    place: SourcePlace,
    /// Where the log begins, in the source's log; None: its first group came before any place.
    begins: Option<SourcePlace>,
    has_groups: bool,
    /// Where the group that is read begins.
    start: (RelayPlace, SourcePlace),
    first_open: Option<(RelayPlace, SourcePlace)>,
    gtids: Vec<Gtid>,
    whole: Option<SourcePlace>,
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
        let is_applied = match (self.applied, gtid) {
            (Applied::Gtids(applied), Some(gtid)) => {
                applied.last_in(gtid.domain).is_some_and(|last| last.seq_no >= gtid.seq_no)
            }
            (Applied::Gtids(_), None) => false,
            (Applied::Place(applied), _) => !applied.file.is_empty() && self.place.order() <= applied.order(),
        };
        self.gtids.extend(gtid);
        self.whole = Some(self.place.clone());
        if !is_applied {
            self.first_open.get_or_insert_with(|| self.start.clone());
            if self.open.len() < NAMED_MAX {
                let name = match gtid {
                    Some(gtid) => gtid.to_string(),
                    None => format!("{}:{}", self.place.file, self.place.position),
                };
                self.open.push((end, name));
            }
        }
    }
}

impl Kept {
    /// Looks through a relay log. `executed` is the place in the source's log before which all is applied.
    pub fn look(relay: &RelayLog, applied: &Applied, executed: &SourcePlace) -> Result<Kept, Unsound> {
        let mut reading = Reading {
            applied,
            groups: Groups::default(),
            gtid: None,
            place: SourcePlace::default(),
            begins: None,
            has_groups: false,
            start: Default::default(),
            first_open: None,
            gtids: Vec::new(),
            whole: None,
            open: Vec::new(),
        };
        let survey = relay.survey(&mut |number, raw| reading.see(number, raw))?;
        let first = survey.first();
        // Files that were removed while their list could not be written were applied.
        let begins_behind = match &reading.begins {
            Some(begins) if executed.file.is_empty() => survey.lacks_first || begins.position > 4,
            Some(begins) => begins.order() > executed.order(),
            None => survey.lacks_first,
        };
        let is_by_place = matches!(applied, Applied::Place(_));
        if survey.lacks_first && begins_behind {
            return Err(Unsound::new(&relay.path(first.saturating_sub(1)), "is missing"));
        }
        if is_by_place && begins_behind && !executed.file.is_empty() {
            let (file, position) = (&executed.file, executed.position);
            let text = format!(
                "begins behind the source's '{file}', position {position}, up to which all is applied"
            );
            return Err(Unsound::new(&relay.path(first), text));
        }
        let until = survey.acknowledged.until;
        let promised = reading.open.into_iter().filter(|(end, _)| *end <= until).map(|(_, name)| name);
        Ok(Kept {
            gtids: reading.gtids,
            whole: reading.whole,
            first_open: reading.first_open,
            promised: promised.collect(),
            survey,
        })
    }
}
