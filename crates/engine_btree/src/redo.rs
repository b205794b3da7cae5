//! Redo: a transaction's writes in full-key order, absolute, so that doing them twice is harmless.
//!
//! ```text
//! per write  u32 length of the full key | full key | u8 1 put, 0 delete | u32 length of the value | value
//! ```

use cohort_base::{Reader, Truncated, Write};
use cohort_engine::EngineError;

/// Beside key and value.
const OVERHEAD: usize = 9;

/// Room for the redo of so many writes, whose keys and values have so many bytes.
pub fn with_room(writes: usize, bytes: usize) -> Vec<u8> {
    Vec::with_capacity(bytes_of(writes, bytes))
}

/// Length of that redo.
pub fn bytes_of(writes: usize, bytes: usize) -> usize {
    bytes + writes * OVERHEAD
}

/// Appends a write in the form of a commit record.
pub fn push(full_key: &[u8], value: Option<&[u8]>, out: &mut Vec<u8>) {
    out.put_u32(full_key.len() as u32);
    out.extend_from_slice(full_key);
    out.put_u8(u8::from(value.is_some()));
    let value = value.unwrap_or(&[]);
    out.put_u32(value.len() as u32);
    out.extend_from_slice(value);
}

/// One write: a full key, and its value unless it is deleted.
pub type RedoWrite<'r> = (&'r [u8], Option<&'r [u8]>);

/// The writes of a commit record's redo.
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
