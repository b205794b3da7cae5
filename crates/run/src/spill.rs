//! Rows on disk, for operators that exceed their memory limit.
//!
//! # Concepts
//! An operator has one [`SpillFile`], an anonymous temporary file that is deleted when it is dropped. A
//! [`Chain`] is a sequence of rows in it: a sorted run, a partition, a table. A chain collects rows in a
//! block and appends full blocks to the file, which lets any number of chains grow concurrently. A row never
//! spans blocks. A [`ChainReader`] reads a chain from any row on; there may be many readers at once.
//!
//! # On failure
//! A full disk fails the statement with error 1021, any other failure with error 3 or 2. The data is dropped
//! with the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_types::{Collation, Date, DateTime, Decimal, FixedKind, SqlError, SqlResult, Str, Time, Value};

use cohort_vfs::SharedFile;

use crate::runtime::Run;

/// Size at which a block is written.
const BLOCK_BYTES: usize = 32 << 10;

/// A temporary file shared by many chains.
#[derive(Clone)]
pub(crate) struct SpillFile {
    file: SharedFile,
    end: Arc<AtomicU64>,
}

impl SpillFile {
    pub fn create(run: Run<'_, '_>) -> SqlResult<SpillFile> {
        let file = run.storage().spill_file()?;
        Ok(SpillFile { file, end: Arc::default() })
    }

    fn append(&self, bytes: &[u8]) -> SqlResult<u64> {
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_at(bytes, at).map_err(|error| SqlError::temporary_file(&error, "writing"))?;
        Ok(at)
    }
}

/// Rows in a file, in insertion order.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    blocks: Vec<Block>,
    /// Rows not yet written to the file.
    tail: Vec<u8>,
    /// Number of the first of these.
    tail_first: u64,
    rows: u64,
}

#[derive(Debug)]
struct Block {
    offset: u64,
    bytes: usize,
    first_row: u64,
}

impl Chain {
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a row.
    pub fn push(&mut self, file: &SpillFile, row: &[Value]) -> SqlResult<()> {
        encode_row(row, &mut self.tail);
        self.rows += 1;
        if self.tail.len() >= BLOCK_BYTES { self.write_tail(file) } else { Ok(()) }
    }

    fn write_tail(&mut self, file: &SpillFile) -> SqlResult<()> {
        let offset = file.append(&self.tail)?;
        self.blocks.push(Block { offset, bytes: self.tail.len(), first_row: self.tail_first });
        self.tail_first = self.rows;
        self.tail.clear();
        Ok(())
    }

    /// Ends writing and frees the buffer.
    pub fn finish(&mut self, file: &SpillFile) -> SqlResult<()> {
        if !self.tail.is_empty() {
            self.write_tail(file)?;
        }
        self.tail = Vec::new();
        Ok(())
    }
}

/// A read position in a chain.
#[derive(Debug, Default)]
pub(crate) struct ChainReader {
    /// The next block to read; one past the last means the tail.
    next_block: usize,
    buffer: Vec<u8>,
    at: usize,
}

impl ChainReader {
    /// Positions the reader at a row.
    pub fn seek(&mut self, file: &SpillFile, chain: &Chain, row: u64) -> SqlResult<()> {
        let end = chain.blocks.partition_point(|block| block.first_row <= row);
        let (block, first) = if row >= chain.tail_first || end == 0 {
            (chain.blocks.len(), chain.tail_first)
        } else {
            (end - 1, chain.blocks[end - 1].first_row)
        };
        self.next_block = block;
        self.buffer.clear();
        self.at = 0;
        let mut passed = Vec::new();
        for _ in first..row {
            passed.clear();
            if !self.next(file, chain, &mut passed)? {
                break;
            }
        }
        Ok(())
    }

    /// Appends the values of the next row. Returns false at the end.
    pub fn next(&mut self, file: &SpillFile, chain: &Chain, out: &mut Vec<Value>) -> SqlResult<bool> {
        if self.at == self.buffer.len() && !self.load(file, chain)? {
            return Ok(false);
        }
        self.at += decode_row(&self.buffer[self.at..], out).ok_or_else(damaged)?;
        Ok(true)
    }

    /// Returns the bytes of the current block.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    fn load(&mut self, file: &SpillFile, chain: &Chain) -> SqlResult<bool> {
        self.at = 0;
        self.buffer.clear();
        match chain.blocks.get(self.next_block) {
            Some(block) => {
                self.buffer.resize(block.bytes, 0);
                let read = file.file.read_at(&mut self.buffer, block.offset);
                let read = read.map_err(|error| SqlError::temporary_file(&error, "reading"))?;
                if read < block.bytes {
                    return Err(damaged());
                }
            }
            None if self.next_block == chain.blocks.len() => self.buffer.extend_from_slice(&chain.tail),
            None => {}
        }
        self.next_block += 1;
        Ok(!self.buffer.is_empty())
    }
}

fn damaged() -> SqlError {
    SqlError::temporary_file_damaged()
}

/// Appends a row: the number of its values, then each value after a type byte.
pub(crate) fn encode_row(row: &[Value], out: &mut Vec<u8>) {
    put_number(row.len() as u64, out);
    row.iter().for_each(|value| encode(value, out));
}

/// Appends an encoding that is equal for equal values only.
pub(crate) fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Int(v) => {
            out.push(1);
            put_number(((v << 1) ^ (v >> 63)) as u64, out);
        }
        Value::UInt(v) => {
            out.push(2);
            put_number(*v, out);
        }
        Value::Float(v) => {
            out.push(3);
            out.extend_from_slice(&v.to_le_bytes());
        }
        Value::Double(v) => {
            out.push(4);
            out.extend_from_slice(&v.to_le_bytes());
        }
        Value::Decimal(v) => {
            let precision = v.precision().max(v.scale()).max(1);
            out.extend_from_slice(&[5, precision, v.scale()]);
            v.write_packed(precision, v.scale(), out);
        }
        Value::Str(text) => {
            out.push(6);
            put_text(text, out);
        }
        Value::Date(v) => {
            out.push(7);
            out.extend_from_slice(&v.to_packed().to_le_bytes());
        }
        Value::Time(v) => {
            out.push(8);
            out.extend_from_slice(&v.micros.to_le_bytes());
        }
        Value::DateTime(v) => {
            out.push(9);
            out.extend_from_slice(&v.date.to_packed().to_le_bytes());
            out.extend_from_slice(&[v.hour, v.minute, v.second]);
            out.extend_from_slice(&v.micros.to_le_bytes());
        }
        Value::Timestamp(v) => {
            out.push(10);
            out.extend_from_slice(&v.to_le_bytes());
        }
        Value::Fixed(fixed) => {
            out.push(match fixed.kind() {
                FixedKind::Uuid => 14,
                FixedKind::Inet6 => 15,
                FixedKind::Inet4 => 16,
            });
            out.extend_from_slice(fixed.bytes());
        }
        Value::Bit { bits, width } => {
            out.extend_from_slice(&[11, *width]);
            put_number(*bits, out);
        }
        Value::Enum { index, label } => {
            out.push(12);
            put_number((*index).into(), out);
            put_text(label, out);
        }
        Value::Set { bits, label } => {
            out.push(13);
            put_number(*bits, out);
            put_text(label, out);
        }
    }
}

fn put_number(mut v: u64, out: &mut Vec<u8>) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

fn put_text(text: &Str, out: &mut Vec<u8>) {
    put_number(text.collation.0.into(), out);
    put_number(text.bytes.len() as u64, out);
    out.extend_from_slice(&text.bytes);
}

/// Appends the values of the first row in `bytes` and returns the row's length.
fn decode_row(bytes: &[u8], out: &mut Vec<Value>) -> Option<usize> {
    let mut rest = bytes;
    let values = take_number(&mut rest)?;
    out.reserve(values as usize);
    for _ in 0..values {
        out.push(decode(&mut rest)?);
    }
    Some(bytes.len() - rest.len())
}

fn decode(rest: &mut &[u8]) -> Option<Value> {
    Some(match take::<1>(rest)?[0] {
        0 => Value::Null,
        1 => {
            let v = take_number(rest)?;
            Value::Int((v >> 1) as i64 ^ -((v & 1) as i64))
        }
        2 => Value::UInt(take_number(rest)?),
        3 => Value::Float(f32::from_le_bytes(take(rest)?)),
        4 => Value::Double(f64::from_le_bytes(take(rest)?)),
        5 => {
            let [precision, scale] = take(rest)?;
            let (packed, after) = rest.split_at_checked(Decimal::packed_len(precision, scale))?;
            *rest = after;
            Value::Decimal(Decimal::read_packed(precision, scale, packed)?)
        }
        6 => Value::Str(take_text(rest)?),
        7 => Value::Date(take_date(rest)?),
        8 => Value::Time(Time { micros: i64::from_le_bytes(take(rest)?) }),
        9 => {
            let date = take_date(rest)?;
            let [hour, minute, second] = take(rest)?;
            let micros = u32::from_le_bytes(take(rest)?);
            Value::DateTime(DateTime { date, hour, minute, second, micros })
        }
        10 => Value::Timestamp(i64::from_le_bytes(take(rest)?)),
        11 => {
            let [width] = take(rest)?;
            Value::Bit { bits: take_number(rest)?, width }
        }
        12 => Value::Enum { index: take_number(rest)? as u16, label: take_text(rest)? },
        13 => Value::Set { bits: take_number(rest)?, label: take_text(rest)? },
        14 => take_fixed(FixedKind::Uuid, rest)?,
        15 => take_fixed(FixedKind::Inet6, rest)?,
        16 => take_fixed(FixedKind::Inet4, rest)?,
        _ => return None,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut v = 0;
    for shift in (0..64).step_by(7) {
        let byte = take::<1>(rest)?[0];
        v |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(v);
        }
    }
    None
}

fn take_text(rest: &mut &[u8]) -> Option<Str> {
    let collation = Collation(take_number(rest)? as u16);
    let length = take_number(rest)? as usize;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(Str { bytes: bytes.to_vec(), collation })
}

fn take_fixed(kind: FixedKind, rest: &mut &[u8]) -> Option<Value> {
    let (bytes, after) = rest.split_at_checked(kind.byte_len())?;
    *rest = after;
    kind.of_bytes(bytes).map(Value::Fixed)
}

fn take_date(rest: &mut &[u8]) -> Option<Date> {
    Date::from_packed(u32::from_le_bytes(take(rest)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<Value> {
        let text = |bytes: &[u8]| Str { bytes: bytes.to_vec(), collation: Collation::UTF8MB4_GENERAL_CI };
        let date = |year, month, day| Date { year, month, day };
        let decimal = |digits: &str| Value::Decimal(Decimal::parse(digits.as_bytes()).0);
        let datetime = |date, hour, micros| DateTime { date, hour, minute: 59, second: 58, micros };
        let mut values = vec![
            Value::Null,
            Value::Float(-1.5),
            Value::Double(-0.0),
            Value::Double(f64::MAX),
            Value::Str(text(b"")),
            Value::Str(text(&[0xc3; 40_000])),
            Value::binary(vec![0, 255]),
            Value::Date(date(0, 0, 0)),
            Value::Date(date(9999, 12, 31)),
            Value::Date(date(2024, 0, 0)),
            Value::Time(Time { micros: -3_020_399_999_999 }),
            Value::DateTime(datetime(date(0, 0, 0), 0, 0)),
            Value::DateTime(datetime(date(9999, 12, 31), 23, 999_999)),
            Value::Timestamp(i64::MAX),
            Value::Timestamp(0),
            Value::Bit { bits: u64::MAX, width: 64 },
            Value::Bit { bits: 1, width: 1 },
            Value::Enum { index: 0, label: text(b"") },
            Value::Enum { index: 65_535, label: text("ä".as_bytes()) },
            Value::Set { bits: u64::MAX, label: text(b"a,b") },
        ];
        values.extend([0, 1, -1, 63, 64, -64, -65, i64::MAX, i64::MIN].map(Value::Int));
        values.extend([0, 127, 128, u64::MAX].map(Value::UInt));
        let nines = "9".repeat(65);
        let fraction = format!("-0.{}", "9".repeat(38));
        let both = format!("{}.{}", "8".repeat(27), "7".repeat(38));
        let some = ["0", "0.00", "-0.5", "1.50", "1.5", "123456789.000000001", "-99999999999999999999"];
        values.extend(some.into_iter().chain([nines.as_str(), &fraction, &both]).map(decimal));
        values
    }

    #[test]
    fn every_value_comes_back_as_it_was() {
        for value in values() {
            let mut bytes = Vec::new();
            encode_row(std::slice::from_ref(&value), &mut bytes);
            let mut back = Vec::new();
            assert_eq!(decode_row(&bytes, &mut back), Some(bytes.len()), "{value:?}");
            assert_eq!(format!("{back:?}"), format!("{:?}", [&value]), "with its scale and its sign");
            // A truncated row is never decoded as a complete one.
            for end in 0..bytes.len().min(100) {
                assert_eq!(decode_row(&bytes[..end], &mut Vec::new()), None, "{value:?}");
            }
        }
    }

    #[test]
    fn different_values_have_different_bytes() {
        let mut seen = std::collections::BTreeMap::new();
        for value in values() {
            let mut bytes = Vec::new();
            encode(&value, &mut bytes);
            let before = seen.insert(bytes, format!("{value:?}"));
            assert_eq!(before, None, "{value:?}");
        }
    }

    #[test]
    fn a_chain_is_read_from_any_row_on() {
        let fs = cohort_vfs::MemFs::new();
        let path = std::path::Path::new("spill");
        let open = cohort_vfs::Fs::open(&fs, path, cohort_vfs::OpenMode::CreateNew);
        let file = SpillFile { file: open.expect("a file"), end: Arc::default() };
        let (mut chain, mut other) = (Chain::default(), Chain::default());
        let rows = 20_000;
        for n in 0..rows {
            chain.push(&file, &[Value::Int(n), Value::text("x".repeat(n as usize % 30))]).expect("fits");
            other.push(&file, &[]).expect("fits");
        }
        for sealed in [false, true] {
            if sealed {
                chain.finish(&file).expect("fits");
                other.finish(&file).expect("fits");
            }
            for from in [0, 1, 999, 12_345, rows - 1, rows] {
                let mut reader = ChainReader::default();
                reader.seek(&file, &chain, from as u64).expect("reads");
                let mut row = Vec::new();
                for n in from..rows {
                    row.clear();
                    assert!(reader.next(&file, &chain, &mut row).expect("reads"));
                    assert_eq!(row[0], Value::Int(n));
                }
                assert!(!reader.next(&file, &chain, &mut row).expect("reads"));
            }
            let mut reader = ChainReader::default();
            let mut count = 0;
            while reader.next(&file, &other, &mut Vec::new()).expect("reads") {
                count += 1;
            }
            assert_eq!(count, rows, "rows without columns");
        }
    }
}
