//! XA_PREPARE (38): ends the first phase of an XA transaction.
//!
//! ```text
//! one_phase u8 | format_id u32 | gtrid_len u32 | bqual_len u32 | gtrid | bqual
//! ```

use cohort_base::{Reader, Write};

use super::DecodeError;

/// Maximum length of gtrid and of bqual.
const PART_MAX: u32 = 64;
/// Maximum bytes of an XID in a statement without the hex digits of its parts.
const NAME_FRAME_BYTES_MAX: usize = 18;

/// XID: the name that an XA client gave its transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct XaXid {
    /// Convention that the parts follow; 1 by default.
    pub format_id: u32,
    /// Global part, at most 64 bytes.
    pub gtrid: Vec<u8>,
    /// Branch part, at most 64 bytes.
    pub bqual: Vec<u8>,
}

impl XaXid {
    /// Formats the XID like statements in the binlog: `X'7831',X'6231',7`.
    pub fn to_sql(&self) -> String {
        self.to_sql_after("")
    }

    /// Like [`XaXid::to_sql`], after `words`.
    pub fn to_sql_after(&self, words: &str) -> String {
        let parts_bytes = 2 * (self.gtrid.len() + self.bqual.len());
        let mut text = String::with_capacity(words.len() + parts_bytes + NAME_FRAME_BYTES_MAX);
        text.push_str(words);
        for part in [&self.gtrid, &self.bqual] {
            text.push_str("X'");
            push_hex(&mut text, part, Case::Lower);
            text.push_str("',");
        }
        push_number(&mut text, self.format_id);
        text
    }
}

/// Appends the decimal digits without the overhead of `format!`.
fn push_number(text: &mut String, number: u32) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
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
    text.reserve(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| {
        [char::from(digits[usize::from(byte >> 4)]), char::from(digits[usize::from(byte & 15)])]
    }));
}

/// An XA PREPARE (or the end of XA COMMIT ONE PHASE).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XaPrepare {
    /// Nonzero if it is committed at once.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_as_statements_have_it() {
        for (format_id, text) in [(0, "0"), (9, "9"), (10, "10"), (u32::MAX, "4294967295")] {
            let xid = XaXid { format_id, gtrid: vec![0x0a, 0xf0], bqual: Vec::new() };
            assert_eq!(xid.to_sql(), format!("X'0af0',X'',{text}"));
            assert_eq!(xid.to_sql_after("XA END "), format!("XA END X'0af0',X'',{text}"));
            let longest = XaXid { format_id, gtrid: vec![1; 64], bqual: vec![2; 64] }.to_sql();
            assert!(longest.len() <= 256 + NAME_FRAME_BYTES_MAX);
        }
    }
}
