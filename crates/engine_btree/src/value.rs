//! Long values, which lie in extents of their own. An entry holds where: `u64 block | u32 bytes | u32
//! CRC-32C`.
//!
//! A long value is written before the entry that names it, while its transaction is installed, and never
//! changed. Its extent is free once no version names it and no page map in force does (`store.rs`).

use cohort_base::Reader;
use cohort_engine::EngineError;

use crate::page::INLINE_BYTES_MAX;
use crate::space::Extent;
use crate::store::Store;
use crate::version::Value;

/// Bytes of an entry's value that names an extent.
const NAME_BYTES: usize = 16;

/// The extent that an entry or undo record names.
pub fn extent_of(name: &[u8]) -> Extent {
    let mut r = Reader::new(name);
    let read = |r: &mut Reader<'_>| Some(Extent { block: r.u64().ok()?, bytes: r.u32().ok()? });
    read(&mut r).expect("an overflow entry holds an extent's name")
}

/// Writes a long value aside. Returns what its entry holds.
pub fn write(store: &Store, value: &[u8]) -> Result<([u8; NAME_BYTES], Extent), EngineError> {
    if u32::try_from(value.len()).is_err() {
        return Err(EngineError::TooLarge { bytes_max: u64::from(u32::MAX) });
    }
    let extent = store.write(value).map_err(EngineError::Io)?;
    let mut name = [0; NAME_BYTES];
    name[..8].copy_from_slice(&extent.block.to_le_bytes());
    name[8..12].copy_from_slice(&extent.bytes.to_le_bytes());
    name[12..].copy_from_slice(&crc32c::crc32c(value).to_le_bytes());
    Ok((name, extent))
}

/// The value as an entry holds it, written aside if it is long.
pub fn keep(store: &Store, value: &[u8]) -> Result<(Value, Option<Extent>), EngineError> {
    if value.len() <= INLINE_BYTES_MAX {
        return Ok((Value { is_overflow: false, bytes: value.into() }, None));
    }
    let (name, extent) = write(store, value)?;
    Ok((Value { is_overflow: true, bytes: name.into() }, Some(extent)))
}

/// Appends a long value to `out`.
pub fn read_into(store: &Store, name: &[u8], out: &mut Vec<u8>) -> Result<(), EngineError> {
    let extent = extent_of(name);
    let bytes = store.read(extent)?;
    let crc = Reader::new(&name[NAME_BYTES - 4..]).u32();
    if crc != Ok(crc32c::crc32c(&bytes)) {
        return Err(store.corrupt(extent, "a long value fails its checksum"));
    }
    out.extend_from_slice(&bytes);
    Ok(())
}
