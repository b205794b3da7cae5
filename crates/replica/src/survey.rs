//! Looking through a relay log that an earlier server, or earlier threads, left.
//!
//! # What has to hold
//! The files that the index names are there, their numbers follow each other, and each but the newest ends
//! with the event that names the next one. All events are whole. What lies behind the last whole event of the
//! newest file is an end that was never written, if nothing of it was acknowledged: it may be cut. Anything
//! else is [`Unsound`]: nothing is changed then, and the connection does not start.
//!
//! An error of the system is one, and never the end of a file.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cohort_binlog::event::{Event, HEADER_LEN, flags};
use cohort_binlog::{BinlogError, EventReader, EventType, RawEvent};
use cohort_vfs::OpenMode;

use crate::marks::{Acknowledged, Marks};
use crate::relay::{RelayFile, RelayLog, RelayPlace};

/// Why a relay log cannot be used: a file of it, and what is wrong with that.
#[derive(Debug)]
pub struct Unsound {
    pub path: PathBuf,
    pub what: String,
}

impl Unsound {
    pub(crate) fn new(path: &Path, what: impl fmt::Display) -> Unsound {
        Unsound { path: path.to_owned(), what: what.to_string() }
    }

    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> Unsound + '_ {
        move |error| match error.kind() {
            ErrorKind::NotFound => Unsound::new(path, "is missing"),
            _ => Unsound::new(path, format_args!("cannot be read: {error}")),
        }
    }
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "relay log file '{}' {}", self.path.display(), self.what)
    }
}

/// The findings.
pub struct Survey {
    pub(crate) files: Vec<RelayFile>,
    /// There are marks.
    pub has_marks: bool,
    /// The acknowledged place; after a receiver that was cut off, the end of all that is whole.
    pub acknowledged: Acknowledged,
    /// The files before the first one are gone: they were applied, or are lost.
    pub lacks_first: bool,
    /// The part to be cut off the newest file.
    pub torn: Option<Torn>,
}

/// An end that was never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    pub path: PathBuf,
    pub number: u32,
    /// The whole events end here.
    pub whole: u64,
    /// The file ends here.
    pub length: u64,
    pub what: String,
}

impl Survey {
    /// The oldest file.
    pub fn first(&self) -> u32 {
        self.files.first().map_or(0, |file| file.number)
    }

    /// Behind the last whole event.
    pub fn end(&self) -> RelayPlace {
        self.files
            .last()
            .map_or_else(RelayPlace::default, |file| RelayPlace { file: file.number, offset: file.bytes })
    }
}

/// Files that the index names.
#[derive(Default)]
pub(crate) struct Listed {
    pub numbers: Vec<u32>,
    /// The marks, too: there is something that was acknowledged.
    pub has_marks: bool,
}

/// How the reading of one file ended.
struct Passage {
    whole: u64,
    length: u64,
    /// Its last event names this file as the next one.
    next: Option<String>,
    /// Why the event behind `whole` is none; None if there is none or only a part of one.
    damage: Option<String>,
}

impl RelayLog {
    /// Reads the index; without one nothing is listed.
    pub(crate) fn listed(&self) -> Result<Listed, Unsound> {
        let name = self.name();
        let (path, marks) = (name.index_path(), self.marks_path());
        let file = match self.fs.open(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return match self.fs.open(&marks, OpenMode::Read) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(Listed::default()),
                    Err(error) => Err(Unsound::io(&marks)(error)),
                    Ok(_) => Err(Unsound::new(&path, "is missing")),
                };
            }
            Err(error) => return Err(Unsound::io(&path)(error)),
        };
        let length = file.len().map_err(Unsound::io(&path))?;
        let mut bytes = vec![0; length as usize];
        let got = file.read_at(&mut bytes, 0).map_err(Unsound::io(&path))?;
        let text = String::from_utf8_lossy(&bytes[..got]).into_owned();
        let mut listed = Listed::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line == self.marks_line() {
                listed.has_marks = true;
                continue;
            }
            let follows = |number: &u32| listed.numbers.last().is_none_or(|last| last + 1 == *number);
            let Some(number) = name.number(line).filter(follows) else {
                return Err(Unsound::new(&path, format_args!("has a wrong line: '{line}'")));
            };
            listed.numbers.push(number);
        }
        Ok(listed)
    }

    /// Whether the relay log holds, or held, something acknowledged to a source.
    pub fn is_acknowledged(&self) -> Result<bool, Unsound> {
        self.listed().map(|listed| listed.has_marks)
    }

    /// Looks through all files. `see` gets every event with the number of its file. Nothing is changed, but
    /// what was read is durable at return.
    pub fn survey(&self, see: &mut dyn FnMut(u32, &RawEvent)) -> Result<Survey, Unsound> {
        let listed = self.listed()?;
        let mut survey = Survey {
            files: Vec::new(),
            has_marks: listed.has_marks,
            acknowledged: Acknowledged::default(),
            lacks_first: false,
            torn: None,
        };
        if listed.has_marks {
            let path = self.marks_path();
            let marks = Marks::open(&self.fs, &path).map_err(Unsound::io(&path))?;
            survey.acknowledged = marks.ok_or_else(|| Unsound::new(&path, "is damaged"))?.newest();
        }
        let acknowledged = survey.acknowledged.until;
        let newest = listed.numbers.last().copied().unwrap_or_default();
        if acknowledged.file > newest {
            return Err(Unsound::new(&self.path(acknowledged.file), "is missing"));
        }
        // A purge whose list could not be written leaves names of files that are gone.
        let is_gone = |number: &u32| match self.fs.open(&self.path(*number), OpenMode::Read) {
            Err(error) => error.kind() == ErrorKind::NotFound,
            Ok(_) => false,
        };
        let gone = listed.numbers.iter().take_while(|number| is_gone(number)).count();
        survey.lacks_first = gone > 0;
        if survey.lacks_first && gone == listed.numbers.len() {
            return Err(Unsound::new(&self.path(newest), "is missing"));
        }
        for &number in &listed.numbers[gone..] {
            let path = self.path(number);
            let passage = self.pass(number, see)?;
            let Passage { whole, length, next, damage } = passage;
            let is_newest = number == newest;
            let wanted = if number == acknowledged.file { acknowledged.offset } else { 0 };
            if whole < length || whole == 0 || whole < wanted {
                let what = damage.unwrap_or_else(|| "ends amid an event".to_owned());
                if !is_newest || whole < wanted {
                    return Err(Unsound::new(&path, format_args!("is damaged at offset {whole}: it {what}")));
                }
                survey.torn = Some(Torn { path: path.clone(), number, whole, length, what });
            }
            let is_closed = next == Some(self.file_name(number + 1));
            if !is_newest && !is_closed {
                let text = format_args!("does not say that it goes on in '{}'", self.file_name(number + 1));
                return Err(Unsound::new(&path, text));
            }
            if whole > 0 {
                survey.files.push(RelayFile { number, bytes: whole, is_closed });
            }
        }
        if survey.acknowledged.is_open {
            survey.acknowledged.until = survey.end();
        }
        Ok(survey)
    }

    /// Reads one file as far as its events are whole.
    fn pass(&self, number: u32, see: &mut dyn FnMut(u32, &RawEvent)) -> Result<Passage, Unsound> {
        let path = self.path(number);
        let file = self.fs.open(&path, OpenMode::Write).map_err(Unsound::io(&path))?;
        // An earlier process may have left in memory what the disk does not have.
        file.settle().map_err(Unsound::io(&path))?;
        let length = file.len().map_err(Unsound::io(&path))?;
        let mut passage = Passage { whole: 0, length, next: None, damage: None };
        let judge = |error: BinlogError| match error {
            BinlogError::Corrupt { what, .. } => Ok(format!("holds what is no event: {what}")),
            BinlogError::Io { source, .. } => Err(Unsound::io(&path)(source)),
            other => Err(Unsound::new(&path, format_args!("cannot be read: {other}"))),
        };
        let mut reader = match EventReader::open(&self.fs, &path) {
            Ok(reader) => reader,
            Err(error) => {
                passage.damage = Some(judge(error)?);
                return Ok(passage);
            }
        };
        loop {
            match reader.next_event() {
                Ok(Some(raw)) => {
                    passage.whole = raw.end();
                    passage.next = continuation(&reader, &raw);
                    see(number, &raw);
                }
                Ok(None) => return Ok(passage),
                Err(error) => {
                    passage.damage = Some(judge(error)?);
                    return Ok(passage);
                }
            }
        }
    }

    /// Makes what a survey found the relay log: cuts the torn end.
    pub fn adopt(&self, survey: &Survey) -> Result<(), Unsound> {
        if let Some(torn) = survey.torn.as_ref().filter(|torn| torn.whole > 0) {
            let file = self.fs.open(&torn.path, OpenMode::Write).map_err(Unsound::io(&torn.path))?;
            file.set_len(torn.whole).map_err(Unsound::io(&torn.path))?;
            file.sync_data().map_err(Unsound::io(&torn.path))?;
        }
        self.take_over(survey)?;
        // Of this one not even the head was written; nothing names it any more.
        if let Some(torn) = survey.torn.as_ref().filter(|torn| torn.whole == 0) {
            self.remove_file(torn.number);
        }
        Ok(())
    }
}

/// The file that an event at the end of another one names.
fn continuation(reader: &EventReader, raw: &RawEvent) -> Option<String> {
    let is_own = raw.header.flags & flags::RELAY_LOG != 0 && raw.header.flags & flags::ARTIFICIAL == 0;
    if raw.header.kind != EventType::ROTATE || !is_own || raw.bytes.len() <= HEADER_LEN {
        return None;
    }
    match reader.decode(raw) {
        Ok(Event::Rotate(rotate)) => Some(String::from_utf8_lossy(&rotate.name).into_owned()),
        _ => None,
    }
}
