//! Serialized RocksDB write batches.
//!
//! ```text
//! 0   8  sequence number, filled in by RocksDB
//! 8   4  number of operations
//! 12  n  operations: 1, key, value (put) or 0, key (delete); keys and values after their length as a varint
//! ```
//!
//! Batches are joined by adding their counts and concatenating their operations, so that the transactions
//! that are ordered together need only one write.

use cohort_engine::{EngineError, Redo};
use rocksdb::WriteBatch;

const HEADER_BYTES: usize = 12;
const DELETE: u8 = 0;
const PUT: u8 = 1;

fn count(batch: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*batch.get(8..)?.first_chunk()?))
}

/// Joins several redos to one batch, in order.
pub fn join(redo: &[&Redo]) -> Result<WriteBatch, EngineError> {
    let corrupt = || EngineError::Corrupt("redo is not a RocksDB write batch".to_owned());
    if let [only] = redo {
        count(&only.bytes).ok_or_else(corrupt)?;
        return Ok(WriteBatch::from_data(&only.bytes));
    }
    let mut bytes = vec![0; HEADER_BYTES];
    let mut operations = 0_u32;
    for redo in redo {
        operations += count(&redo.bytes).ok_or_else(corrupt)?;
        bytes.extend_from_slice(&redo.bytes[HEADER_BYTES..]);
    }
    bytes[8..HEADER_BYTES].copy_from_slice(&operations.to_le_bytes());
    Ok(WriteBatch::from_data(&bytes))
}

/// Joins several redos to one batch, sorted by key. For replay, when there are no readers. Neighbours in a
/// sorted batch are neighbours in the memtable, whose insert starts at the last position. Writes of one key
/// keep their order.
pub fn join_sorted(redo: &[Redo]) -> Result<WriteBatch, EngineError> {
    let mut operations = Vec::new();
    let is_known = redo.iter().all(|redo| add_operations(&redo.bytes, &mut operations).is_some());
    if !is_known {
        // This engine did not write it. RocksDB reports what is wrong with it.
        return join(&redo.iter().collect::<Vec<_>>());
    }
    operations.sort_by_key(|operation| operation.key);
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.reserve(operations.iter().map(|operation| operation.bytes.len()).sum());
    bytes[8..HEADER_BYTES].copy_from_slice(&(operations.len() as u32).to_le_bytes());
    operations.iter().for_each(|operation| bytes.extend_from_slice(operation.bytes));
    Ok(WriteBatch::from_data(&bytes))
}

/// A put or a delete.
struct Operation<'a> {
    key: &'a [u8],
    /// The complete operation.
    bytes: &'a [u8],
}

/// Splits a batch into its operations. Returns `None` if it contains other operations than puts and deletes.
fn add_operations<'a>(batch: &'a [u8], operations: &mut Vec<Operation<'a>>) -> Option<()> {
    let count = count(batch)?;
    let mut rest = &batch[HEADER_BYTES..];
    for _ in 0..count {
        let start = rest;
        let tag = rest.split_off_first()?;
        let key = take_slice(&mut rest)?;
        match *tag {
            DELETE => {}
            PUT => {
                take_slice(&mut rest)?;
            }
            _ => return None,
        }
        operations.push(Operation { key, bytes: &start[..start.len() - rest.len()] });
    }
    rest.is_empty().then_some(())
}

/// Reads a slice that follows its length.
fn take_slice<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length = 0_u32;
    for shift in (0..32).step_by(7) {
        let byte = *rest.split_off_first()?;
        length |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return rest.split_off(..length as usize);
        }
    }
    None
}

/// Builds a transaction's redo from its writes.
pub fn build<'a>(writes: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>, size_bytes: usize) -> Redo {
    let mut batch = WriteBatch::with_capacity_bytes(size_bytes + size_bytes / 8 + 64);
    for (key, value) in writes {
        match value {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        }
    }
    Redo::new(batch.data().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redo(writes: &[(&str, Option<&str>)]) -> Redo {
        let writes = writes.iter().map(|(key, value)| (key.as_bytes(), value.map(str::as_bytes)));
        build(writes, 0)
    }

    #[test]
    fn a_sorted_batch_keeps_the_order_of_one_keys_writes() {
        let long = "v".repeat(300);
        let parts = [
            redo(&[("b", Some("1")), ("a", Some(&long))]),
            redo(&[("c", None), ("b", None)]),
            redo(&[("a", Some("2"))]),
        ];
        let sorted =
            redo(&[("a", Some(&long)), ("a", Some("2")), ("b", Some("1")), ("b", None), ("c", None)]);
        assert_eq!(join_sorted(&parts).expect("valid").data(), sorted.bytes);
    }

    #[test]
    fn other_payloads_are_left_unchanged() {
        let mut ranged = WriteBatch::default();
        ranged.put("b", "1");
        ranged.delete_range("a", "c");
        ranged.put("a", "2");
        let parts = [Redo::new(ranged.data().to_vec()), redo(&[("a", Some("3"))])];
        let joined = join(&parts.iter().collect::<Vec<_>>()).expect("valid");
        assert_eq!(join_sorted(&parts).expect("valid").data(), joined.data());
        assert!(join_sorted(&[Redo::new(vec![1, 2, 3])]).is_err());
    }
}
