//! Checks a relay log left by an earlier server or by earlier threads.
//!
//! # Requirements
//! All files that the index names exist and are numbered consecutively, and each but the newest ends with the
//! event that names the next file. All events are complete. Bytes after the last complete event of the newest
//! file are a torn write, if none of them was acknowledged; they may be cut. Anything else is [`Unsound`]:
//! then nothing is changed and the connection does not start.
//!
//! An I/O error is reported as an error and never taken for the end of a file.

use std::io::ErrorKind;

use cohort_binlog::event::{Event, HEADER_LEN, flags};
use cohort_binlog::{BinlogError, EventReader, EventType, RawEvent};
use cohort_vfs::OpenMode;

use crate::marks::{Acknowledged, Marks};
use crate::relay::RelayLog;
use crate::survey::{Listed, RelayFile, Survey, Torn, Unsound};

/// Result of reading one file.
struct Passage {
    whole: u64,
    length: u64,
    /// File name in the ROTATE event that ends the file.
    next: Option<String>,
    /// The problem with the event at `whole`. `None` if there is no event, or only an incomplete one.
    damage: Option<String>,
}

impl RelayLog {
    /// Reads the index. Without an index no file is listed.
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

    /// Returns whether the relay log holds, or held, events acknowledged to a source.
    pub fn is_acknowledged(&self) -> Result<bool, Unsound> {
        self.listed().map(|listed| listed.has_marks)
    }

    /// Reads all files and passes every event to `see` with its file number. Changes nothing, but everything
    /// read is durable at return.
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
        // A purge that could not rewrite the index leaves the names of removed files.
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

    /// Reads one file up to its last complete event.
    fn pass(&self, number: u32, see: &mut dyn FnMut(u32, &RawEvent)) -> Result<Passage, Unsound> {
        let path = self.path(number);
        let file = self.fs.open(&path, OpenMode::Write).map_err(Unsound::io(&path))?;
        // An earlier process may have left unsynced writes in the page cache.
        file.sync_earlier_writes().map_err(Unsound::io(&path))?;
        let length = file.len().map_err(Unsound::io(&path))?;
        let mut passage = Passage { whole: 0, length, next: None, damage: None };
        let classify = |error: BinlogError| match error {
            BinlogError::Corrupt { what, .. } => Ok(format!("holds what is no event: {what}")),
            BinlogError::Io { source, .. } => Err(Unsound::io(&path)(source)),
            other => Err(Unsound::new(&path, format_args!("cannot be read: {other}"))),
        };
        let mut reader = match EventReader::open(&self.fs, &path) {
            Ok(reader) => reader,
            Err(error) => {
                passage.damage = Some(classify(error)?);
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
                    passage.damage = Some(classify(error)?);
                    return Ok(passage);
                }
            }
        }
    }

    /// Makes the checked files the relay log and cuts a torn end.
    pub fn adopt(&self, survey: &Survey) -> Result<(), Unsound> {
        if let Some(torn) = survey.torn.as_ref().filter(|torn| torn.whole > 0) {
            let file = self.fs.open(&torn.path, OpenMode::Write).map_err(Unsound::io(&torn.path))?;
            file.set_len(torn.whole).map_err(Unsound::io(&torn.path))?;
            file.sync_data().map_err(Unsound::io(&torn.path))?;
        }
        self.take_over(survey)?;
        // A file without even a complete head is removed; nothing names it any more.
        if let Some(torn) = survey.torn.as_ref().filter(|torn| torn.whole == 0) {
            self.remove_file(torn.number);
        }
        Ok(())
    }
}

/// Returns the file named by the ROTATE event that ends a file.
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
