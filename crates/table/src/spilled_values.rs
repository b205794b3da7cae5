//! [`SpilledValues`]: large or many values of temporary tables, spilled to an anonymous temporary file.
//!
//! Values are appended, the newest to a buffer. A freed value leaves a gap. The owner moves all values to a
//! new file when gaps predominate ([`SpilledValues::is_full_of_gaps`]). The file is deleted with the last
//! value.

use std::io;

use cohort_vfs::SharedFile;

/// The function that creates the file, called on first use.
pub(super) type MakeFile = dyn Fn() -> io::Result<SharedFile> + Send;

/// Size of writes and of read-ahead, in bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes of gaps below which values are never moved.
const GAPS_MIN: u64 = 16 << 20;

/// Location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    at: u64,
    bytes: u32,
}

#[derive(Default)]
pub(super) struct SpilledValues {
    file: Option<SharedFile>,
    /// File offset of the buffer's first byte.
    written: u64,
    tail: Vec<u8>,
    /// Total bytes of live values.
    live: u64,
    /// The bytes read last, and their offset.
    window: Vec<u8>,
    window_at: u64,
}

impl SpilledValues {
    /// Returns the total bytes of values and gaps.
    pub fn end(&self) -> u64 {
        self.written + self.tail.len() as u64
    }

    /// Returns true if a new file would be much smaller.
    pub fn is_full_of_gaps(&self) -> bool {
        let gaps = self.end() - self.live;
        gaps > GAPS_MIN && gaps > self.live
    }

    /// Stores a value.
    pub fn add(&mut self, value: &[u8], make: &MakeFile) -> io::Result<Place> {
        let bytes = u32::try_from(value.len()).map_err(io::Error::other)?;
        let at = self.end();
        if self.tail.len() + value.len() > BUFFER_BYTES && !self.tail.is_empty() {
            self.write_tail(make)?;
        }
        self.tail.extend_from_slice(value);
        if self.tail.len() > BUFFER_BYTES
            && let Err(error) = self.write_tail(make)
        {
            self.tail.truncate((at - self.written) as usize);
            return Err(error);
        }
        self.live += u64::from(bytes);
        Ok(Place { at, bytes })
    }

    fn write_tail(&mut self, make: &MakeFile) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(make()?),
        };
        file.write_at(&self.tail, self.written)?;
        self.written += self.tail.len() as u64;
        self.tail.clear();
        Ok(())
    }

    /// Frees a value.
    pub fn free(&mut self, place: Place) {
        self.live -= u64::from(place.bytes);
        if self.live == 0 {
            *self = SpilledValues::default();
        }
    }

    /// Appends a value to `out`.
    pub fn read(&mut self, place: Place, out: &mut Vec<u8>) -> io::Result<()> {
        let bytes = place.bytes as usize;
        if place.at >= self.written {
            let from = (place.at - self.written) as usize;
            out.extend_from_slice(&self.tail[from..from + bytes]);
            return Ok(());
        }
        let end = place.at + u64::from(place.bytes);
        if place.at < self.window_at || end > self.window_at + self.window.len() as u64 {
            self.look_at(place)?;
        }
        let from = (place.at - self.window_at) as usize;
        out.extend_from_slice(&self.window[from..from + bytes]);
        Ok(())
    }

    fn look_at(&mut self, place: Place) -> io::Result<()> {
        let file =
            self.file.as_ref().ok_or_else(|| io::Error::other("the file of temporary tables is gone"))?;
        let left = self.written - place.at;
        let wanted = (BUFFER_BYTES as u64).max(place.bytes.into()).min(left) as usize;
        self.window.clear();
        self.window.resize(wanted, 0);
        self.window_at = place.at;
        let read = file.read_at(&mut self.window, place.at);
        if !matches!(read, Ok(read) if read == wanted) {
            self.window.clear();
        }
        match read? {
            read if read == wanted => Ok(()),
            _ => Err(io::Error::other("the file of temporary tables does not hold what was written")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use cohort_vfs::{Fs, MemFs, OpenMode};

    use super::*;

    #[test]
    fn values_come_back_from_buffer_and_file_and_the_last_one_takes_the_file_along() {
        let fs = Arc::new(MemFs::new());
        let make = move || fs.open(Path::new("/values"), OpenMode::CreateNew);
        let mut values = SpilledValues::default();
        let value = |n: usize| vec![n as u8; n * 37 % 9000];
        let places: Vec<Place> = (0..500).map(|n| values.add(&value(n), &make).expect("in memory")).collect();
        assert!(values.file.is_some() && !values.tail.is_empty());
        for n in (0..500).rev().chain(0..500) {
            let mut out = Vec::new();
            values.read(places[n], &mut out).expect("in memory");
            assert_eq!(out, value(n), "value {n}");
        }
        places.iter().for_each(|place| values.free(*place));
        assert!(values.file.is_none());
        assert_eq!(values.end(), 0);
    }
}
