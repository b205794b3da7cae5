//! XA_PREPARE (38): ends the first phase of an XA transaction.
//!
//! ```text
//! one_phase u8 | format_id u32 | gtrid_len u32 | bqual_len u32 | gtrid | bqual
//! ```

use cohort_base::{Reader, Write};

use super::DecodeError;

/// Longest gtrid and longest bqual.
const PART_MAX: u32 = 64;

/// The name that an XA client gave its transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct XaXid {
    /// Which convention the parts follow; 1 by default.
    pub format_id: u32,
    /// Global part, at most 64 bytes.
    pub gtrid: Vec<u8>,
    /// Branch part, at most 64 bytes.
    pub bqual: Vec<u8>,
}

impl XaXid {
    /// As statements in the binlog write it: `X'7831',X'6231',7`.
    pub fn to_sql(&self) -> String {
        let mut text = String::new();
        for part in [&self.gtrid, &self.bqual] {
            text.push_str("X'");
            push_hex(&mut text, part, Case::Lower);
            text.push_str("',");
        }
        text.push_str(&self.format_id.to_string());
        text
    }
}

#[derive(Clone, Copy)]
pub(super) enum Case {
    Lower,
    Upper,
}

pub(super) fn push_hex(text: &mut String, bytes: &[u8], case: Case) {
    let digits: &[u8; 16] = match case {
        Case::Lower => b"0123456789abcdef",
        Case::Upper => b"0123456789ABCDEF",
    };
    for byte in bytes {
        text.push(char::from(digits[usize::from(byte >> 4)]));
        text.push(char::from(digits[usize::from(byte & 15)]));
    }
}

/// An XA PREPARE (or the end of XA COMMIT ONE PHASE).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XaPrepare {
    /// Not 0: committed at once.
    pub one_phase: u8,
    /// The transaction.
    pub xid: XaXid,
}

impl XaPrepare {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<XaPrepare, DecodeError> {
        let (one_phase, format_id, gtrid_len, bqual_len) = (r.u8()?, r.u32()?, r.u32()?, r.u32()?);
        if gtrid_len > PART_MAX || bqual_len > PART_MAX {
            return Err(DecodeError::BadValue("a part of the XID is longer than 64 bytes"));
        }
        let gtrid = r.bytes(gtrid_len as usize)?.to_vec();
        let bqual = r.bytes(bqual_len as usize)?.to_vec();
        Ok(XaPrepare { one_phase, xid: XaXid { format_id, gtrid, bqual } })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.one_phase);
        out.put_u32(self.xid.format_id);
        out.put_u32(self.xid.gtrid.len() as u32);
        out.put_u32(self.xid.bqual.len() as u32);
        out.extend_from_slice(&self.xid.gtrid);
        out.extend_from_slice(&self.xid.bqual);
    }
}
