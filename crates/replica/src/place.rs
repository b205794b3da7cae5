//! [`SourcePlace`]: a place in the source's log, and how events move it.

use cohort_binlog::event::{Event, EventHeader, flags};
use cohort_binlog::{DecodeError, EventType};

use crate::until::number_of;

/// A place in the source's log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    pub file: String,
    pub position: u64,
}

/// Places are copied for each event, and their files hardly change: `clone_from` takes no memory then.
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
    /// Moves behind an event of the source.
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

    /// Moves behind an event that is no rotation. What a source makes up is nowhere in its log, but for the
    /// list of GTIDs that says how far it has passed over what the replica has already.
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

    /// Moves to a later position of which only the lower half is known.
    pub fn move_to(&mut self, log_pos: u32) {
        let before = self.position;
        let position = before & !u64::from(u32::MAX) | u64::from(log_pos);
        let has_wrapped = position < before && before - position > u64::from(u32::MAX / 2);
        self.position = position + if has_wrapped { 1 << 32 } else { 0 };
    }

    /// The place as a value that grows along one source's log.
    pub fn order(&self) -> (u64, u64) {
        (number_of(&self.file), self.position)
    }
}
