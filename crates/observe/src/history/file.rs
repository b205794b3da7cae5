//! The file that keeps the tiers of ten seconds and of minutes over a restart.
//!
//! # Format
//! All numbers are little-endian.
//! ```text
//! header   MAGIC, version u32, length of the names u32, names: three lists, each name ends with \n, each
//!          list with \0; CRC-32C u32 of all before; padded to HEADER_BYTES
//! slots    those of ten seconds, then those of minutes; slot n of a tier lies at place n % slots of it:
//!          numbers u64, CRC-32C u32 of them, 4 bytes of zeros
//! ```
//! The file's size is fixed; parts that were never written are holes.
//!
//! # Failure
//! - A slot with a wrong checksum, or with a number that does not belong to its place, is empty.
//! - A file whose header cannot be read, or is of another version, is renamed with the suffix `.damaged`, and
//!   the caller gets a warning. The history starts empty.
//! - A file with other series is rewritten: series of the same names are kept.
//! - If a write fails, the caller gets one warning, and the file is retried an hour later. Slots that were
//!   not written are missing after a restart.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohort_vfs::{File, OpenMode, SharedFile, SharedFs};

use super::rings::History;
use super::slot::{Schema, SchemaNames, Slot};
use super::tiers::TIERS;
use crate::damaged::set_aside;

const MAGIC: &[u8; 8] = b"COHHIST\n";
const VERSION: u32 = 1;
const HEADER_BYTES: u64 = 16 << 10;
/// The first tier that the file keeps.
const KEPT_FROM: usize = 1;
/// Pause after a failed write.
const RETRY: Duration = Duration::from_secs(3600);

/// The file of a history.
pub struct HistoryFile {
    fs: SharedFs,
    path: PathBuf,
    /// `None` after a failure.
    file: Option<SharedFile>,
    /// Monotonic time after which a file that failed is opened again.
    retry_ns: u64,
}

impl HistoryFile {
    /// Opens the file and adds its slots to the history. Returns a warning, if there is one.
    pub fn open(fs: SharedFs, path: &Path, history: &History) -> (HistoryFile, Option<String>) {
        let mut own = HistoryFile { fs, path: path.to_owned(), file: None, retry_ns: 0 };
        let mut warning = None;
        let found = if own.fs.exists(path) { own.load() } else { Ok(None) };
        let is_current = match found {
            Ok(None) => false,
            Ok(Some((names, tiers))) => {
                for (tier, slots) in tiers {
                    let adapted = slots.iter().map(|slot| slot.adapted(&names, history.schema()));
                    history.restore(tier, adapted.collect());
                }
                // Numbers were given again, so the slots have other places.
                false
            }
            Err(why) => {
                let moved = set_aside(&*own.fs, path);
                warning =
                    Some(format!("The history of figures '{}' is not used: {why}; {moved}", path.display()));
                false
            }
        };
        if !is_current && let Err(error) = own.rewrite(history) {
            own.failed(0);
            let text = format!("Cannot write the history of figures '{}': {error}", path.display());
            warning.get_or_insert(text);
        }
        (own, warning)
    }

    /// Returns the series and the slots of the file, `None` if it is empty.
    fn load(&self) -> Result<Option<Loaded>, String> {
        let file = self.fs.open(&self.path, OpenMode::Read).map_err(|error| error.to_string())?;
        let mut header = vec![0; HEADER_BYTES as usize];
        let count = file.read_at(&mut header, 0).map_err(|error| error.to_string())?;
        if count == 0 {
            return Ok(None);
        }
        let names = names_of(&header[..count])?;
        // Only the lengths of the lists matter to the form of a slot.
        let placeholder = |names: &[String]| vec![""; names.len()];
        let schema = Schema {
            counters: placeholder(&names.counters),
            gauges: placeholder(&names.gauges),
            histograms: placeholder(&names.histograms),
        };
        let mut tiers = Vec::new();
        for (tier, of) in TIERS.iter().enumerate().skip(KEPT_FROM) {
            let bytes_each = slot_bytes(&schema, tier);
            let mut bytes = vec![0; bytes_each * of.slots];
            let count =
                file.read_at(&mut bytes, offset(&schema, tier, 0)).map_err(|error| error.to_string())?;
            let each = bytes[..count].chunks_exact(bytes_each).enumerate();
            let mut slots: Vec<Slot> =
                each.filter_map(|(place, bytes)| decode(&schema, tier, place, bytes)).collect();
            slots.sort_by_key(|slot| slot.number);
            tiers.push((tier, slots));
        }
        Ok(Some((names, tiers)))
    }

    /// Writes the whole file.
    fn rewrite(&mut self, history: &History) -> io::Result<()> {
        let schema = history.schema();
        let header = header_of(schema)?;
        let file = self.fs.open(&self.path, OpenMode::CreateOrOpen)?;
        file.set_len(0)?;
        file.write_at(&header, 0)?;
        for tier in KEPT_FROM..TIERS.len() {
            for slot in history.read(tier, 0, Slot::clone).slots {
                write(&*file, schema, tier, &slot)?;
            }
        }
        self.file = Some(file);
        Ok(())
    }

    /// Writes a completed slot. Returns a warning if the file fails now.
    pub fn put(&mut self, history: &History, tier: usize, slot: &Slot, now_ns: u64) -> Option<String> {
        if tier < KEPT_FROM || self.file.is_none() && now_ns < self.retry_ns {
            return None;
        }
        let done = match &self.file {
            Some(file) => write(&**file, history.schema(), tier, slot),
            None => self.rewrite(history),
        };
        let error = done.err()?;
        self.failed(now_ns);
        let path = self.path.display();
        Some(format!("Cannot write the history of figures '{path}': {error}. It is retried in an hour"))
    }

    fn failed(&mut self, now_ns: u64) {
        self.file = None;
        self.retry_ns = now_ns.saturating_add(RETRY.as_nanos() as u64);
    }

    /// Makes the file durable, at a clean stop.
    pub fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.sync_data())
    }
}

type Loaded = (SchemaNames, Vec<(usize, Vec<Slot>)>);

fn header_of(schema: &Schema) -> io::Result<Vec<u8>> {
    let mut names = Vec::new();
    for list in [&schema.counters, &schema.gauges, &schema.histograms] {
        list.iter().for_each(|name| names.extend_from_slice(format!("{name}\n").as_bytes()));
        names.push(0);
    }
    let mut header = MAGIC.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend((names.len() as u32).to_le_bytes());
    header.extend(names);
    header.extend(crc32c::crc32c(&header).to_le_bytes());
    if header.len() as u64 > HEADER_BYTES {
        return Err(io::Error::other("the names of its series are too long"));
    }
    header.resize(HEADER_BYTES as usize, 0);
    Ok(header)
}

/// Reads the names of the series in a header.
fn names_of(header: &[u8]) -> Result<SchemaNames, String> {
    let number =
        |at: usize| header.get(at..at + 4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]));
    let damaged = || "its header is damaged".to_owned();
    if header.get(..8) != Some(MAGIC) {
        return Err("it is no history".to_owned());
    }
    match number(8) {
        Some(VERSION) => {}
        Some(other) => return Err(format!("its format has version {other}")),
        None => return Err(damaged()),
    }
    let end = 16 + number(12).ok_or_else(damaged)? as usize;
    if end > header.len() || number(end) != Some(crc32c::crc32c(&header[..end])) {
        return Err(damaged());
    }
    let text = std::str::from_utf8(&header[16..end]).map_err(|_| damaged())?;
    let mut lists = text.split('\0').map(|list| list.lines().map(str::to_owned).collect());
    let mut next = || lists.next().ok_or_else(damaged);
    Ok(SchemaNames { counters: next()?, gauges: next()?, histograms: next()? })
}

fn slot_bytes(schema: &Schema, tier: usize) -> usize {
    Slot::words(schema, tier) * 8 + 8
}

fn offset(schema: &Schema, tier: usize, place: usize) -> u64 {
    let before = (KEPT_FROM..tier).map(|tier| slot_bytes(schema, tier) * TIERS[tier].slots).sum::<usize>();
    HEADER_BYTES + (before + slot_bytes(schema, tier) * place) as u64
}

fn place_of(tier: usize, number: u64) -> usize {
    (number % TIERS[tier].slots as u64) as usize
}

fn write(file: &dyn File, schema: &Schema, tier: usize, slot: &Slot) -> io::Result<()> {
    let mut words = Vec::new();
    slot.encode(&mut words);
    words.resize(Slot::words(schema, tier), 0);
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(u64::from(crc32c::crc32c(&bytes)).to_le_bytes());
    file.write_at(&bytes, offset(schema, tier, place_of(tier, slot.number)))
}

/// Reads the slot at a place. Returns `None` if it is empty or damaged.
fn decode(schema: &Schema, tier: usize, place: usize, bytes: &[u8]) -> Option<Slot> {
    let (words, sum) = bytes.split_at(bytes.len() - 8);
    if sum != u64::from(crc32c::crc32c(words)).to_le_bytes() {
        return None;
    }
    let words: Vec<u64> =
        words.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
    let slot = Slot::decode(schema, &words);
    (slot.number > 0 && place_of(tier, slot.number) == place).then_some(slot)
}

#[cfg(test)]
mod tests;
