//! The marks of a relay log: up to where everything is acknowledged to a semi-synchronous source.
//!
//! # The file `BASE.marks`
//! Two slots at offsets 0 and 512, written in turn; the valid one with the higher number counts. So a torn
//! write leaves the mark before it.
//! ```text
//! 0   8  magic "COHMRK01"
//! 8   8  number u64
//! 16  4  relay log file u32     everything before this place
//! 20  8  offset u64             was acknowledged
//! 28  1  1: more may have been acknowledged since (a receiver was at work), 0: nothing more
//! 29  4  CRC-32 of all before
//! ```
//! The index of the relay log names the file. An index that names it without the file being there, or the
//! file without an index, is damage: the relay log held what was acknowledged.
//!
//! # When it is written
//! It is made durable, with the flag, before the first acknowledgement. Later marks follow the
//! acknowledgements within moments ([`Marker`](crate::marker::Marker)), and cost these nothing.

use std::path::Path;

use cohort_base::{Reader, Truncated, Write};
use cohort_binlog::event::crc_of_event;
use cohort_vfs::{OpenMode, SharedFile, SharedFs};

use crate::relay::RelayPlace;

const MAGIC: &[u8; 8] = b"COHMRK01";
const SLOT_BYTES: usize = 33;
const SLOT_OFFSETS: [u64; 2] = [0, 512];

/// The acknowledged place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Everything before this place.
    pub until: RelayPlace,
    /// And perhaps more.
    pub is_open: bool,
}

/// The file, open for writing.
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
    /// Makes the file: nothing is acknowledged yet. Its name is durable at return.
    pub fn create(fs: &SharedFs, path: &Path) -> std::io::Result<Marks> {
        let newest = Acknowledged { is_open: true, ..Acknowledged::default() };
        let new = path.with_extension("marks.tmp");
        fs.replace(path, &new, &encode(0, newest))?;
        let file = fs.open(path, OpenMode::Write)?;
        Ok(Marks { file, number: 0, newest })
    }

    /// Opens the file; None if it holds no valid mark.
    pub fn open(fs: &SharedFs, path: &Path) -> std::io::Result<Option<Marks>> {
        let file = fs.open(path, OpenMode::Write)?;
        // An earlier process may have left in memory what the disk does not have.
        file.settle()?;
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

    /// The newest mark.
    pub fn newest(&self) -> Acknowledged {
        self.newest
    }

    /// Writes a mark; durable at return.
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
            // The newest slot is damaged.
            let damaged: SharedFs = Arc::new(memory.kill_clone());
            let file = damaged.open(path, OpenMode::Write).expect("there");
            file.write_at(b"x", SLOT_OFFSETS[(n % 2) as usize] + 20).expect("written");
            let read = Marks::open(&damaged, path).expect("read").expect("valid");
            assert_eq!(read.newest().until.file, n - 1);
            file.write_at(b"x", SLOT_OFFSETS[(n as usize + 1) % 2] + 3).expect("written");
            assert!(Marks::open(&damaged, path).expect("read").is_none());
        }
        // Nothing that a power failure leaves is older than what was said to be durable.
        for seed in 0..50 {
            let left: SharedFs = Arc::new(memory.crash_clone(seed));
            assert_eq!(Marks::open(&left, path).expect("read").expect("valid").newest(), at(4, 100));
        }
    }
}
