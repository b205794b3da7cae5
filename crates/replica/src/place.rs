//! [`SourcePlace`]: a position in the source's log, and how events advance it.

use cohort_binlog::event::{Event, EventHeader, flags};
use cohort_binlog::{DecodeError, EventType};

/// A position in the source's log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    pub file: String,
    pub position: u64,
}

/// Positions are copied for each event, and the file rarely changes: `clone_from` then allocates nothing.
impl Clone for SourcePlace {
    fn clone(&self) -> SourcePlace {
        SourcePlace { file: self.file.clone(), position: self.position }
    }

    fn clone_from(&mut self, other: &SourcePlace) {
        self.file.clone_from(&other.file);
        self.position = other.position;
    }
}

impl SourcePlace {
    /// Advances past an event of the source.
    pub fn follow(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), DecodeError> {
        if header.kind == EventType::ROTATE {
            if let Event::Rotate(rotate) = Event::decode(header.kind, body)? {
                self.file = String::from_utf8_lossy(&rotate.name).into_owned();
                self.position = rotate.position;
            }
        } else {
            self.pass(header);
        }
        Ok(())
    }

    /// Advances past an event that is not a rotation. The source's artificial events are not in its log, so
    /// they do not advance the position. The exception is the artificial GTID list, which says how far the
    /// source has skipped transactions that the replica already has.
    pub fn pass(&mut self, header: &EventHeader) {
        if header.log_pos == 0 {
            return;
        }
        let before = self.position;
        let is_made_up = header.flags & flags::ARTIFICIAL != 0;
        if !is_made_up || header.kind == EventType::GTID_LIST {
            self.move_to(header.log_pos);
        }
        if is_made_up {
            self.position = self.position.max(before);
        }
    }

    /// Advances to a later position of which only the low 32 bits are known.
    pub fn move_to(&mut self, log_pos: u32) {
        let before = self.position;
        let position = before & !u64::from(u32::MAX) | u64::from(log_pos);
        let has_wrapped = position < before && before - position > u64::from(u32::MAX / 2);
        self.position = position + if has_wrapped { 1 << 32 } else { 0 };
    }

    /// Returns a value that grows along the log of one source.
    pub fn order(&self) -> (u64, u64) {
        (number_of(&self.file), self.position)
    }
}

/// Returns the number at the end of a binlog file's name.
pub fn number_of(file: &str) -> u64 {
    file.rsplit('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// A position in the relay log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelayPlace {
    pub file: u32,
    pub offset: u64,
}
