//! Redo format: a transaction's writes in full-key order. They are absolute, so applying them twice is
//! harmless.
//!
//! ```text
//! per write  u32 length of the full key | full key | u8 1 put, 0 delete | u32 length of the value | value
//! ```

use cohort_base::{Reader, Truncated, Write};
use cohort_engine::EngineError;

/// Bytes of a write in addition to key and value.
const OVERHEAD: usize = 9;

/// Returns an empty buffer with capacity for `writes` writes with `bytes` bytes of keys and values.
pub fn with_room(writes: usize, bytes: usize) -> Vec<u8> {
    Vec::with_capacity(bytes_of(writes, bytes))
}

/// Returns the length of the redo of these writes.
pub fn bytes_of(writes: usize, bytes: usize) -> usize {
    bytes + writes * OVERHEAD
}

/// Appends a write in the format of a commit record.
pub fn push(full_key: &[u8], value: Option<&[u8]>, out: &mut Vec<u8>) {
    out.put_u32(full_key.len() as u32);
    out.extend_from_slice(full_key);
    out.put_u8(u8::from(value.is_some()));
    let value = value.unwrap_or(&[]);
    out.put_u32(value.len() as u32);
    out.extend_from_slice(value);
}

/// One write: a full key, and its value or `None` for a deletion.
pub type RedoWrite<'r> = (&'r [u8], Option<&'r [u8]>);

/// Decodes the writes of a commit record's redo.
pub fn decode(redo: &[u8]) -> Result<Vec<RedoWrite<'_>>, EngineError> {
    let mut r = Reader::new(redo);
    let mut writes = Vec::new();
    while !r.is_empty() {
        let write = next(&mut r).map_err(|_| EngineError::Corrupt("redo is truncated".to_owned()))?;
        writes.push(write);
    }
    Ok(writes)
}

fn next<'r>(r: &mut Reader<'r>) -> Result<RedoWrite<'r>, Truncated> {
    let len = r.u32()?;
    let key = r.bytes(len as usize)?;
    if key.len() < cohort_engine::INDEX_ID_BYTES {
        return Err(Truncated);
    }
    let is_put = r.u8()? == 1;
    let len = r.u32()?;
    let value = r.bytes(len as usize)?;
    Ok((key, is_put.then_some(value)))
}
