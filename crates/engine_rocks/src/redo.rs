//! Serialized RocksDB write batches.
//!
//! ```text
//! 0   8  sequence number, filled in by RocksDB
//! 8   4  number of operations
//! 12  n  operations
//! ```
//!
//! Batches are joined by adding the counts and appending the operations, so that the transactions that meet at the order
//! stage cost one write.

use cohort_engine::{EngineError, Redo};
use rocksdb::WriteBatch;

const HEADER_BYTES: usize = 12;

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

/// A transaction's writes as redo.
pub fn build<'a>(writes: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>, size_bytes: usize) -> Redo {
    let mut batch = WriteBatch::with_capacity_bytes(size_bytes + size_bytes / 8 + 64);
    for (key, value) in writes {
        match value {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        }
    }
    Redo { bytes: batch.data().to_vec() }
}
