//! Memcomparable index keys.

use crate::{ColumnType, Value};

/// A key that cannot be encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The bytes are no such key.
    Corrupt,
    /// A value that is not of its column's class.
    WrongClass,
    /// The encoding keeps the order, not the value ([`KeyPart::is_reversible`]).
    NotReversible,
}

/// One column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// The column's type.
    pub ty: ColumnType,
    /// `KEY (col(10))`: characters, or bytes for binary strings.
    pub prefix: Option<u32>,
    /// Nullable parts take one byte more.
    pub nullable: bool,
}

impl KeyPart {
    /// Appends the value's bytes: their order is the order of ORDER BY, NULL first.
    pub fn encode(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), KeyError> {
        todo!()
    }
    /// Whether [`KeyPart::decode`] gives the value back.
    pub fn is_reversible(&self) -> bool {
        todo!()
    }
    /// Takes this part off the front of `key`.
    pub fn decode(&self, key: &mut &[u8]) -> Result<Value, KeyError> {
        todo!()
    }
    /// Passes over this part.
    pub fn skip(&self, key: &mut &[u8]) -> Result<(), KeyError> {
        todo!()
    }
}

/// The smallest key above all keys that start with `prefix`; `None` when there is none (all bytes 0xff).
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    todo!()
}

/// The smallest key above `key` itself.
pub fn successor(key: &[u8]) -> Vec<u8> {
    todo!()
}
