//! Who reads binlog files for long: replicas' dump threads. Purge asks for the oldest file among them.
//!
//! A reader enters its first file *before* it opens it, and moves on when it has opened the next: so a file that is being read is never
//! purged. A file that was purged before the reader entered it is simply not there.

use std::sync::Arc;

use parking_lot::Mutex;

/// All who read now.
#[derive(Debug, Default)]
pub struct BinlogReaders(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    all: Vec<Place>,
    last_id: u64,
}

#[derive(Debug)]
struct Place {
    id: u64,
    file: u32,
    who: String,
}

/// A reader's entry; dropping it ends the reading.
#[derive(Debug)]
pub struct BinlogReader {
    readers: Arc<BinlogReaders>,
    id: u64,
}

impl BinlogReaders {
    /// Enters a reader: a name for the error log (`replica 7 at 10.0.0.3`) and the file that it begins with.
    pub fn enter(self: &Arc<Self>, who: String, file: u32) -> BinlogReader {
        let mut places = self.0.lock();
        places.last_id += 1;
        let id = places.last_id;
        places.all.push(Place { id, file, who });
        BinlogReader { readers: self.clone(), id }
    }

    /// How many read.
    pub fn count(&self) -> usize {
        self.0.lock().all.len()
    }

    /// The oldest file that is read, and by whom.
    pub fn oldest(&self) -> Option<(u32, String)> {
        let places = self.0.lock();
        places.all.iter().min_by_key(|place| place.file).map(|place| (place.file, place.who.clone()))
    }
}

impl BinlogReader {
    /// The reader is done with all files before this one.
    pub fn move_to(&self, file: u32) {
        let mut places = self.readers.0.lock();
        if let Some(place) = places.all.iter_mut().find(|place| place.id == self.id) {
            place.file = file;
        }
    }
}

impl Drop for BinlogReader {
    fn drop(&mut self) {
        self.readers.0.lock().all.retain(|place| place.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_file_is_that_of_the_slowest_reader() {
        let readers = Arc::new(BinlogReaders::default());
        assert_eq!(readers.oldest(), None);
        let slow = readers.enter("slow".into(), 3);
        let fast = readers.enter("fast".into(), 9);
        assert_eq!(readers.oldest(), Some((3, "slow".into())));
        slow.move_to(11);
        assert_eq!(readers.oldest(), Some((9, "fast".into())));
        drop(fast);
        assert_eq!((readers.oldest(), readers.count()), (Some((11, "slow".into())), 1));
    }
}
