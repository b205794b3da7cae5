//! Marks of a relay log: the position up to which everything is acknowledged to a semi-synchronous source.
//!
//! # The file `BASE.marks`
//! Two slots at offsets 0 and 512, written alternately. The valid slot with the higher number counts, so a
//! torn write leaves the previous mark.
//! ```text
//! 0   8  magic "COHMRK01"
//! 8   8  number u64
//! 16  4  relay log file u32     everything before this position
//! 20  8  offset u64             was acknowledged
//! 28  1  1: more may have been acknowledged since (a receiver was running), 0: nothing more
//! 29  4  CRC-32 of all preceding bytes
//! ```
//! The index of the relay log names the file. An index that names a missing marks file, or a marks file
//! without an index, is damage, because the relay log held acknowledged events.
//!
//! # When it is written
//! The file is made durable, with the flag set, before the first acknowledgement. Later marks follow the
//! acknowledgements within milliseconds ([`Marker`](crate::marker::Marker)) and do not delay them.

use std::path::Path;

use cohort_base::{Reader, Truncated, Write};
use cohort_binlog::event::crc_of_event;
use cohort_vfs::{OpenMode, SharedFile, SharedFs};

use crate::place::RelayPlace;

const MAGIC: &[u8; 8] = b"COHMRK01";
const SLOT_BYTES: usize = 33;
const SLOT_OFFSETS: [u64; 2] = [0, 512];

/// The acknowledged position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Everything before this position is acknowledged.
    pub until: RelayPlace,
    /// More may be acknowledged.
    pub is_open: bool,
}

/// The marks file, open for writing.
pub struct Marks {
    file: SharedFile,
    number: u64,
    newest: Acknowledged,
}

fn encode(number: u64, acknowledged: Acknowledged) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.put_u64(number);
    bytes.put_u32(acknowledged.until.file);
    bytes.put_u64(acknowledged.until.offset);
    bytes.put_u8(acknowledged.is_open.into());
    let crc = crc_of_event(&bytes);
    bytes.put_u32(crc);
    bytes
}

fn decode(bytes: &[u8]) -> Option<(u64, Acknowledged)> {
    fn fields(r: &mut Reader<'_>) -> Result<(u64, Acknowledged), Truncated> {
        let number = r.u64()?;
        let until = RelayPlace { file: r.u32()?, offset: r.u64()? };
        Ok((number, Acknowledged { until, is_open: r.u8()? != 0 }))
    }
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    let fields_at = body.strip_prefix(MAGIC)?;
    (crc_of_event(body) == u32::from_le_bytes(*crc)).then_some(())?;
    fields(&mut Reader::new(fields_at)).ok()
}

impl Marks {
    /// Creates the file, with nothing acknowledged. Its name is durable at return.
    pub fn create(fs: &SharedFs, path: &Path) -> std::io::Result<Marks> {
        let newest = Acknowledged { is_open: true, ..Acknowledged::default() };
        let new = path.with_extension("marks.tmp");
        fs.replace(path, &new, &encode(0, newest))?;
        let file = fs.open(path, OpenMode::Write)?;
        Ok(Marks { file, number: 0, newest })
    }

    /// Opens the file. Returns `None` if it holds no valid mark.
    pub fn open(fs: &SharedFs, path: &Path) -> std::io::Result<Option<Marks>> {
        let file = fs.open(path, OpenMode::Write)?;
        // An earlier process may have left unsynced writes in the page cache.
        file.sync_earlier_writes()?;
        let mut newest: Option<(u64, Acknowledged)> = None;
        for offset in SLOT_OFFSETS {
            let mut bytes = [0; SLOT_BYTES];
            let got = file.read_at(&mut bytes, offset)?;
            let found = decode(&bytes[..got]);
            newest = match (newest, found) {
                (Some((known, _)), Some((number, _))) if number < known => newest,
                (_, Some(_)) => found,
                (_, None) => newest,
            };
        }
        Ok(newest.map(|(number, newest)| Marks { file, number, newest }))
    }

    /// Returns the newest mark.
    pub fn newest(&self) -> Acknowledged {
        self.newest
    }

    /// Writes a mark. It is durable at return.
    pub fn put(&mut self, acknowledged: Acknowledged) -> std::io::Result<()> {
        let number = self.number + 1;
        let offset = SLOT_OFFSETS[(number % 2) as usize];
        self.file.write_at(&encode(number, acknowledged), offset)?;
        self.file.sync_data()?;
        (self.number, self.newest) = (number, acknowledged);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohort_vfs::MemFs;

    use super::*;

    fn at(file: u32, offset: u64) -> Acknowledged {
        Acknowledged { until: RelayPlace { file, offset }, is_open: true }
    }

    #[test]
    fn a_torn_write_leaves_the_mark_before_it_and_no_valid_slot_is_none() {
        let memory = MemFs::new();
        let fs: SharedFs = Arc::new(memory.clone());
        let path = Path::new("/rel.marks");
        let mut marks = Marks::create(&fs, path).expect("made");
        for n in 1..5 {
            marks.put(at(n, 100)).expect("durable");
            let read = Marks::open(&fs, path).expect("read").expect("valid");
            assert_eq!(read.newest(), at(n, 100));
            // Damages the newest slot.
            let damaged: SharedFs = Arc::new(memory.kill_clone());
            let file = damaged.open(path, OpenMode::Write).expect("there");
            file.write_at(b"x", SLOT_OFFSETS[(n % 2) as usize] + 20).expect("written");
            let read = Marks::open(&damaged, path).expect("read").expect("valid");
            assert_eq!(read.newest().until.file, n - 1);
            file.write_at(b"x", SLOT_OFFSETS[(n as usize + 1) % 2] + 3).expect("written");
            assert!(Marks::open(&damaged, path).expect("read").is_none());
        }
        // After a power failure the mark is never older than the last one reported durable.
        for seed in 0..50 {
            let left: SharedFs = Arc::new(memory.crash_clone(seed));
            assert_eq!(Marks::open(&left, path).expect("read").expect("valid").newest(), at(4, 100));
        }
    }
}
