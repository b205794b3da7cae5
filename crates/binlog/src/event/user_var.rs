//! USER_VAR (14): a user variable that the next statement reads.
//!
//! ```text
//! name_len u32 | name | is_null u8 | [type u8 | charset u32 | value_len u32 | value | [flags u8]]
//! ```
//!
//! Values: the bytes of a string; REAL f64; INT i64; DECIMAL precision u8, scale u8, then the packed digits.
//! The flag marks an unsigned integer; MariaDB writes it for every type.

use cohort_base::{Reader, Write};

use super::DecodeError;

/// Type of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum UserVarType {
    /// Text.
    String = 0,
    /// f64.
    Real = 1,
    /// i64 or u64.
    Int = 2,
    /// Packed digits.
    Decimal = 4,
}

/// The value of a variable that is not NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserVarValue {
    /// Its type.
    pub kind: UserVarType,
    /// Collation number.
    pub collation: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// 1 if unsigned; `None` in events of old servers.
    pub flags: Option<u8>,
}

/// A user variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserVar {
    /// Name without `@`.
    pub name: Vec<u8>,
    /// `None` stands for NULL.
    pub value: Option<UserVarValue>,
}

impl UserVar {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<UserVar, DecodeError> {
        let name_len = r.u32()?;
        let name = r.bytes(name_len as usize)?.to_vec();
        if r.u8()? != 0 {
            return Ok(UserVar { name, value: None });
        }
        let kind = match r.u8()? {
            0 => UserVarType::String,
            1 => UserVarType::Real,
            2 => UserVarType::Int,
            4 => UserVarType::Decimal,
            _ => return Err(DecodeError::BadValue("unknown type of a user variable")),
        };
        let (collation, len) = (r.u32()?, r.u32()?);
        let bytes = r.bytes(len as usize)?.to_vec();
        let flags = if r.is_empty() { None } else { Some(r.u8()?) };
        Ok(UserVar { name, value: Some(UserVarValue { kind, collation, bytes, flags }) })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.name.len() as u32);
        out.extend_from_slice(&self.name);
        let Some(value) = &self.value else {
            out.put_u8(1);
            return;
        };
        out.put_u8(0);
        out.put_u8(value.kind as u8);
        out.put_u32(value.collation);
        out.put_u32(value.bytes.len() as u32);
        out.extend_from_slice(&value.bytes);
        if let Some(flags) = value.flags {
            out.put_u8(flags);
        }
    }
}
