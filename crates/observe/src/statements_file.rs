//! The file that keeps the statistics of statements over a restart.
//!
//! It is written as a whole at a clean stop, and read at the start. Examples and plans are not part of it:
//! they quote values of the tables.
//!
//! # Format
//! All numbers are little-endian.
//! ```text
//! header   MAGIC, version u32, number of measures u32, CRC-32C u32 of all before
//! rows     length u32, the row, CRC-32C u32 of the row
//! row      kind, schema, text (lenenc bytes; no schema: a zero byte, else one more first), flags u8, digest
//! 16 bytes, first and last time u64, shortest and longest latency u64, measures u64 each, first power of two
//! of the histogram u32, number of powers u32, counts u64
//! ```
//!
//! # Failure
//! - A row with a wrong checksum, and all rows after it if its length is wrong, are left out, with a warning.
//! - A file whose header cannot be read, or is of another version, is renamed with the suffix `.damaged`, and
//!   the caller gets a warning. So is a file that ends in a row.
//! - Rows of kinds that this version does not know are left out.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cohort_base::{Reader, Truncated, Write};
use cohort_vfs::{Fs, OpenMode};

use crate::damaged::{set_aside, with_suffix};
use crate::directory::{Sample, StatementKey};
use crate::latencies::Latencies;
use crate::measured::Measured;
use crate::shards::Totals;
use crate::statements::{StatementRow, Statements};

const MAGIC: &[u8; 8] = b"COHSTMT\n";
const VERSION: u32 = 1;
/// A longer file is not read.
const BYTES_MAX: u64 = 8 << 30;
/// A longer row is damaged.
const ROW_BYTES_MAX: usize = 64 << 20;

/// Names of the kinds of statements, which are other numbers in other versions.
pub trait KindNames {
    /// Returns the name of a kind.
    fn name(&self, kind: usize) -> String;

    /// Returns the kind of a name.
    fn kind(&self, name: &str) -> Option<usize>;
}

impl Statements {
    /// Writes all rows to a file, which replaces the former one at once.
    pub fn save(&self, fs: &dyn Fs, path: &Path, names: &dyn KindNames) -> io::Result<()> {
        let mut out = header();
        for row in self.rows() {
            let row = encode(&row, names);
            out.put_u32(row.len() as u32);
            out.extend_from_slice(&row);
            out.put_u32(crc32c::crc32c(&row));
        }
        fs.replace(path, &with_suffix(path, ".new"), &out)
    }

    /// Adds the rows of a file, if there is one. Returns a warning if it is damaged.
    pub fn load(&self, fs: &dyn Fs, path: &Path, names: &dyn KindNames) -> Option<String> {
        if !fs.exists(path) {
            return None;
        }
        let why = match read(fs, path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| self.add_all(&bytes, names))
        {
            Ok(0) => return None,
            Ok(bad) => {
                return Some(format!(
                    "{bad} damaged rows of the statistics '{}' are left out",
                    path.display()
                ));
            }
            Err(why) => why,
        };
        let moved = set_aside(fs, path);
        Some(format!("The statistics of statements '{}' are incomplete: {why}; {moved}", path.display()))
    }

    /// Adds the rows of a file. Returns the number of rows with a wrong checksum.
    fn add_all(&self, bytes: &[u8], names: &dyn KindNames) -> Result<usize, String> {
        let expected = header();
        let (magic, rest) = (bytes.get(..8), bytes.get(expected.len()..));
        if magic != Some(MAGIC) {
            return Err("it contains no statistics".to_owned());
        }
        let (Some(true), Some(rest)) = (bytes.get(..expected.len()).map(|head| head == expected), rest)
        else {
            return Err("it is damaged, or of another version".to_owned());
        };
        let mut rest = Reader::new(rest);
        let mut bad = 0;
        while !rest.is_empty() {
            let cut = |_: Truncated| "it ends in a row".to_owned();
            let len = rest.u32().map_err(cut)? as usize;
            if len > ROW_BYTES_MAX {
                return Err("the length of a row is wrong".to_owned());
            }
            let row = rest.bytes(len).map_err(cut)?;
            let sum = rest.u32().map_err(cut)?;
            match decode(row, names).filter(|_| sum == crc32c::crc32c(row)) {
                Some(Some(row)) => self.restore(&row),
                Some(None) => {}
                None => bad += 1,
            }
        }
        Ok(bad)
    }
}

fn header() -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.put_u32(VERSION);
    header.put_u32(Measured::COUNT as u32);
    header.put_u32(crc32c::crc32c(&header));
    header
}

fn read(fs: &dyn Fs, path: &Path) -> io::Result<Vec<u8>> {
    let file = fs.open(path, OpenMode::Read)?;
    let len = file.len()?;
    if len > BYTES_MAX {
        return Err(io::Error::other(format!("it has {len} bytes")));
    }
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

const NESTED: u8 = 1;
const OTHERS: u8 = 2;
const HAS_KEY: u8 = 4;

fn encode(row: &StatementRow, names: &dyn KindNames) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_lenenc_bytes(names.name(row.kind).as_bytes());
    let schema = row.key.as_ref().and_then(|key| key.schema.as_deref());
    out.put_u8(u8::from(schema.is_some()));
    out.put_lenenc_bytes(schema.unwrap_or_default().as_bytes());
    out.put_lenenc_bytes(row.text.as_bytes());
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    let is_nested = row.key.as_ref().is_some_and(|key| key.is_nested);
    out.put_u8(flag(is_nested, NESTED) | flag(row.is_others, OTHERS) | flag(row.key.is_some(), HAS_KEY));
    out.extend_from_slice(&row.key.as_ref().map_or(0, |key| key.digest).to_le_bytes());
    let totals = &row.totals;
    for number in [row.first_us, totals.last_us, totals.min_ns, totals.max_ns] {
        out.put_u64(number);
    }
    totals.sums.numbers().for_each(|number| out.put_u64(number));
    let (first, octaves) = totals.latencies.parts();
    out.put_u32(first as u32);
    out.put_u32(octaves.len() as u32);
    octaves.iter().flatten().for_each(|count| out.put_u64(*count));
    out
}

/// Returns a row; `Some(None)` if its kind is unknown, and `None` if it is damaged.
fn decode(bytes: &[u8], names: &dyn KindNames) -> Option<Option<StatementRow>> {
    let mut rest = Reader::new(bytes);
    let row = read_row(&mut rest).ok().filter(|_| rest.is_empty())?;
    let kind = names.kind(std::str::from_utf8(row.0).ok()?);
    Some(kind.map(|kind| StatementRow { kind, ..row.1 }).filter(|row| !row.totals.sums.is_empty()))
}

fn read_row<'r>(rest: &mut Reader<'r>) -> Result<(&'r [u8], StatementRow), Truncated> {
    let kind = rest.lenenc_bytes()?;
    let has_schema = rest.u8()? != 0;
    let text = |bytes: &[u8]| -> Arc<str> { String::from_utf8_lossy(bytes).into() };
    let schema = text(rest.lenenc_bytes()?);
    let statement = text(rest.lenenc_bytes()?);
    let flags = rest.u8()?;
    let digest = u128::from_le_bytes(rest.array()?);
    let [first_us, last_us, min_ns, max_ns] = [rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?];
    let mut numbers = [0; Measured::COUNT];
    for number in &mut numbers {
        *number = rest.u64()?;
    }
    let (first, count) = (rest.u32()? as usize, rest.u32()? as usize);
    let mut octaves = Vec::new();
    for _ in 0..count {
        let mut octave = [0; Latencies::SUBS];
        for count in &mut octave {
            *count = rest.u64()?;
        }
        octaves.push(octave);
    }
    let latencies = Latencies::of_parts(first, octaves).ok_or(Truncated)?;
    let totals = Totals { sums: Measured::of_numbers(numbers), min_ns, max_ns, last_us, latencies };
    let key = (flags & HAS_KEY != 0).then(|| StatementKey {
        schema: has_schema.then_some(schema),
        digest,
        is_nested: flags & NESTED != 0,
    });
    let row = StatementRow {
        key,
        is_others: flags & OTHERS != 0,
        text: statement,
        kind: 0,
        first_us,
        sample: Sample::default(),
        totals,
    };
    Ok((kind, row))
}
