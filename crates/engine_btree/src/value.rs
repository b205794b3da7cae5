//! Overflow values: values that are too long for a page and are stored in separate extents. The entry holds a
//! reference: `u64 block | u32 bytes | u32 CRC-32C` of the stored bytes. The highest bit of the block number
//! marks a compressed value (`compress.rs`).
//!
//! An overflow value is written while its transaction is installed, before the entry that refers to it, and
//! never changed. Its extent is freed when no version and no page map in force refers to it (`store.rs`).

use cohort_base::{IndexId, Reader};
use cohort_engine::EngineError;

use crate::page::INLINE_BYTES_MAX;
use crate::page_layout::NAME_BYTES;
use crate::space::Extent;
use crate::store::Store;
use crate::version_ref::Value;

/// Flag in the block number.
const COMPRESSED: u64 = 1 << 63;

/// Returns the extent that an entry or undo record refers to.
pub fn extent_of(name: &[u8]) -> Extent {
    let mut r = Reader::new(name);
    let read = |r: &mut Reader<'_>| Some(Extent { block: r.u64().ok()? & !COMPRESSED, bytes: r.u32().ok()? });
    read(&mut r).expect("an overflow entry holds an extent's name")
}

/// Writes an overflow value of an index to an extent. Returns the reference and the extent.
pub fn write(store: &Store, index: IndexId, value: &[u8]) -> Result<([u8; NAME_BYTES], Extent), EngineError> {
    if u32::try_from(value.len()).is_err() {
        return Err(EngineError::TooLarge { bytes_max: u64::from(u32::MAX) });
    }
    let compressed = store.compression.value(index, value);
    let stored = compressed.as_deref().unwrap_or(value);
    let extent = store.write(stored).map_err(EngineError::Io)?;
    let block = extent.block | if compressed.is_some() { COMPRESSED } else { 0 };
    let mut name = [0; NAME_BYTES];
    name[..8].copy_from_slice(&block.to_le_bytes());
    name[8..12].copy_from_slice(&extent.bytes.to_le_bytes());
    name[12..].copy_from_slice(&crc32c::crc32c(stored).to_le_bytes());
    debug_assert_eq!(extent_of(&name), extent, "a reference leads to another extent");
    Ok((name, extent))
}

/// Returns the value in the format of an entry. An overflow value is written to an extent of its own.
pub fn keep(store: &Store, index: IndexId, value: &[u8]) -> Result<(Value, Option<Extent>), EngineError> {
    if value.len() <= INLINE_BYTES_MAX {
        return Ok((Value { is_overflow: false, bytes: value.into() }, None));
    }
    let (name, extent) = write(store, index, value)?;
    Ok((Value { is_overflow: true, bytes: name.into() }, Some(extent)))
}

/// An overflow value as it is stored on disk.
pub struct Stored {
    extent: Extent,
    is_compressed: bool,
    bytes: Vec<u8>,
}

impl Stored {
    /// Reads the value that an entry refers to. The caller has latched the entry's leaf.
    pub fn read(store: &Store, name: &[u8]) -> Result<Stored, EngineError> {
        let extent = extent_of(name);
        let bytes = store.read(extent)?;
        let mut r = Reader::new(name);
        let is_compressed = r.u64().is_ok_and(|block| block & COMPRESSED != 0);
        let crc = Reader::new(&name[NAME_BYTES - 4..]).u32();
        if crc != Ok(crc32c::crc32c(&bytes)) {
            return Err(store.corrupt(extent, "an overflow value fails its checksum"));
        }
        Ok(Stored { extent, is_compressed, bytes })
    }

    /// Returns the value, unless it is compressed.
    pub fn plain(&self) -> Option<&[u8]> {
        (!self.is_compressed).then_some(&*self.bytes)
    }

    /// Appends the value to `out`. Needs no latch.
    pub fn expand_into(&self, store: &Store, out: &mut Vec<u8>) -> Result<(), EngineError> {
        match self.plain() {
            Some(value) => out.extend_from_slice(value),
            None if store.compression.expand_value(&self.bytes, out) => {}
            None => return Err(store.corrupt(self.extent, "a compressed overflow value does not expand")),
        }
        Ok(())
    }
}

/// Appends an overflow value to `out`.
pub fn read_into(store: &Store, name: &[u8], out: &mut Vec<u8>) -> Result<(), EngineError> {
    Stored::read(store, name)?.expand_into(store, out)
}
