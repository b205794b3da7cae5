//! Serialized RocksDB write batches.
//!
//! ```text
//! 0   8  sequence number, filled in by RocksDB
//! 8   4  number of operations
//! 12  n  operations: 1, key, value (put) or 0, key (delete); keys and values after their length as a varint
//! ```
//!
//! Batches are joined by adding the counts and appending the operations, so that the transactions that meet
//! at the order stage cost one write.

use cohort_engine::{EngineError, Redo};
use rocksdb::WriteBatch;

const HEADER_BYTES: usize = 12;
const DELETE: u8 = 0;
const PUT: u8 = 1;

fn count(batch: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*batch.get(8..)?.first_chunk()?))
}

/// The batch of several redos, applied in order.
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

/// The batch of several redos, sorted by key: for a replay, which nobody watches. Neighbours in a sorted
/// batch are neighbours in the memtable, whose insert starts at the last place. Writes of one key stay in
/// their order.
pub fn join_sorted(redo: &[Redo]) -> Result<WriteBatch, EngineError> {
    let mut operations = Vec::new();
    let is_known = redo.iter().all(|redo| add_operations(&redo.bytes, &mut operations).is_some());
    if !is_known {
        // Nothing that this engine writes; RocksDB is to say what is wrong with it.
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
    /// All of it.
    bytes: &'a [u8],
}

/// Takes a batch to pieces. `None` if it is not one of puts and deletes.
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

/// A slice after its length.
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

/// A transaction's writes as redo.
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
    fn what_is_no_list_of_puts_and_deletes_is_left_as_it_is() {
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
