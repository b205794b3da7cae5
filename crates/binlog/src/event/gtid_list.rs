//! GTID_LIST (163): the GTID state before the first transaction of a file.
//!
//! ```text
//! count u32 (low 28 bits) and flags (high 4) | count x { domain u32 | server_id u32 | seq_no u64 }
//! an empty list is followed by two zero bytes
//! ```
//!
//! The last entry of a domain is its newest transaction.

use cohort_base::{DomainId, Gtid, Reader, ServerId, Write};

use super::DecodeError;

const COUNT_BITS: u32 = 28;
const ENTRY_LEN: usize = 16;

/// A GTID list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidListEvent {
    /// The high four bits, for instance [`GtidListEvent::UNTIL_REACHED`].
    pub flags: u8,
    /// Newest GTIDs per domain and server, the newest of a domain last.
    pub gtids: Vec<Gtid>,
}

impl GtidListEvent {
    /// Flag of an artificial event: the source has sent everything up to the position of START SLAVE UNTIL.
    pub const UNTIL_REACHED: u8 = 1;

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<GtidListEvent, DecodeError> {
        let word = r.u32()?;
        let count = (word & ((1 << COUNT_BITS) - 1)) as usize;
        if count > r.remaining() / ENTRY_LEN {
            return Err(DecodeError::Truncated);
        }
        let mut gtids = Vec::with_capacity(count);
        for _ in 0..count {
            gtids.push(Gtid { domain: DomainId(r.u32()?), server: ServerId(r.u32()?), seq_no: r.u64()? });
        }
        if count == 0 && !r.is_empty() && r.u16()? != 0 {
            return Err(DecodeError::BadValue("an empty GTID list is followed by other bytes than zeros"));
        }
        Ok(GtidListEvent { flags: (word >> COUNT_BITS) as u8, gtids })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32((u32::from(self.flags) << COUNT_BITS) | self.gtids.len() as u32);
        for gtid in &self.gtids {
            out.put_u32(gtid.domain.0);
            out.put_u32(gtid.server.0);
            out.put_u64(gtid.seq_no);
        }
        if self.gtids.is_empty() {
            out.put_u16(0);
        }
    }
}
