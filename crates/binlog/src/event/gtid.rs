//! GTID (162): starts a transaction, or precedes a single statement (MariaDB has no BEGIN in its binlog).
//!
//! ```text
//! seq_no u64 | domain u32 | flags2 u8 |
//! [commit_id u64]                                         if flags2 & GROUP_COMMIT_ID
//! [format_id u32 | gtrid_len u8 | bqual_len u8 | data]    if flags2 & (PREPARED_XA | COMPLETED_XA)
//! [flags_extra u8]                                        if not 0
//! [extra_engines u8]                                      if flags_extra & MULTI_ENGINE
//! [start_seq_no u64]                                      if flags_extra & (COMMIT_ALTER | ROLLBACK_ALTER)
//! zeros up to 19 bytes; none after a commit id alone, which makes 21
//! ```
//!
//! The server id is in the common header. The padding also leaves space for the dummy event that is sent to
//! old replicas instead.

use cohort_base::{DomainId, Gtid, Reader, ServerId, Write};

use super::{DecodeError, XaXid};

/// Bits of `flags2`.
pub mod flags2 {
    /// One event follows, without XID or COMMIT.
    pub const STANDALONE: u8 = 1;
    /// A commit id is present: the transaction shared its group with others.
    pub const GROUP_COMMIT_ID: u8 = 2;
    /// Only transactional engines took part, so the transaction can be rolled back.
    pub const TRANSACTIONAL: u8 = 4;
    /// The session did not forbid parallel apply.
    pub const ALLOW_PARALLEL: u8 = 8;
    /// It waited for a row lock of another transaction.
    pub const WAITED: u8 = 16;
    /// It contains DDL.
    pub const DDL: u8 = 32;
    /// It ends with XA PREPARE.
    pub const PREPARED_XA: u8 = 64;
    /// It is an XA COMMIT or XA ROLLBACK.
    pub const COMPLETED_XA: u8 = 128;
}

/// Bits of `flags_extra`.
pub mod flags_extra {
    /// More than one engine took part; their number minus one follows.
    pub const MULTI_ENGINE: u8 = 1;
    /// Start of a two-phase ALTER.
    pub const START_ALTER: u8 = 2;
    /// Successful end of a two-phase ALTER.
    pub const COMMIT_ALTER: u8 = 4;
    /// Failed end of a two-phase ALTER.
    pub const ROLLBACK_ALTER: u8 = 8;
}

const ZERO_PADDED_TO: usize = 19;

/// A GTID event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GtidEvent {
    /// Domain of the GTID.
    pub domain: DomainId,
    /// Sequence number of the GTID.
    pub seq_no: u64,
    /// See [`flags2`]. GROUP_COMMIT_ID is derived from `commit_id` when written.
    pub flags2: u8,
    /// Shared by all transactions of a group that may be applied in parallel.
    pub commit_id: Option<u64>,
    /// XID of an XA transaction.
    pub xid: Option<XaXid>,
    /// See [`flags_extra`].
    pub flags_extra: u8,
    /// Number of engines minus one.
    pub extra_engines: u8,
    /// Sequence number of the START ALTER that this event ends.
    pub start_seq_no: u64,
}

impl GtidEvent {
    /// Returns an event without the rare fields.
    pub fn new(gtid: Gtid, flags2: u8, commit_id: Option<u64>) -> GtidEvent {
        GtidEvent {
            domain: gtid.domain,
            seq_no: gtid.seq_no,
            flags2: flags2 & !flags2::GROUP_COMMIT_ID,
            commit_id,
            xid: None,
            flags_extra: 0,
            extra_engines: 0,
            start_seq_no: 0,
        }
    }

    /// Returns the GTID; the server id comes from the common header.
    pub fn gtid(&self, server: ServerId) -> Gtid {
        Gtid { domain: self.domain, server, seq_no: self.seq_no }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<GtidEvent, DecodeError> {
        let (seq_no, domain, flags2) = (r.u64()?, DomainId(r.u32()?), r.u8()?);
        let commit_id = if flags2 & flags2::GROUP_COMMIT_ID != 0 { Some(r.u64()?) } else { None };
        let xid = if flags2 & (flags2::PREPARED_XA | flags2::COMPLETED_XA) != 0 {
            let (format_id, gtrid_len, bqual_len) = (r.u32()?, r.u8()?, r.u8()?);
            Some(XaXid {
                format_id,
                gtrid: r.bytes(usize::from(gtrid_len))?.to_vec(),
                bqual: r.bytes(usize::from(bqual_len))?.to_vec(),
            })
        } else {
            None
        };
        let flags_extra = if r.is_empty() { 0 } else { r.u8()? };
        let extra_engines = if flags_extra & flags_extra::MULTI_ENGINE != 0 { r.u8()? } else { 0 };
        let ends_alter = flags_extra & (flags_extra::COMMIT_ALTER | flags_extra::ROLLBACK_ALTER) != 0;
        let start_seq_no = if ends_alter { r.u64()? } else { 0 };
        if r.bytes(r.remaining())?.iter().any(|&b| b != 0) {
            return Err(DecodeError::BadValue("GTID event is padded with other bytes than zeros"));
        }
        Ok(GtidEvent {
            domain,
            seq_no,
            flags2: flags2 & !flags2::GROUP_COMMIT_ID,
            commit_id,
            xid,
            flags_extra,
            extra_engines,
            start_seq_no,
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u64(self.seq_no);
        out.put_u32(self.domain.0);
        let with_id = if self.commit_id.is_some() { flags2::GROUP_COMMIT_ID } else { 0 };
        out.put_u8(self.flags2 | with_id);
        if let Some(commit_id) = self.commit_id {
            out.put_u64(commit_id);
        }
        if let Some(xid) = &self.xid {
            out.put_u32(xid.format_id);
            out.put_u8(xid.gtrid.len() as u8);
            out.put_u8(xid.bqual.len() as u8);
            out.extend_from_slice(&xid.gtrid);
            out.extend_from_slice(&xid.bqual);
        }
        if self.flags_extra != 0 {
            out.put_u8(self.flags_extra);
        }
        if self.flags_extra & flags_extra::MULTI_ENGINE != 0 {
            out.put_u8(self.extra_engines);
        }
        if self.flags_extra & (flags_extra::COMMIT_ALTER | flags_extra::ROLLBACK_ALTER) != 0 {
            out.put_u64(self.start_seq_no);
        }
        let padded = start + ZERO_PADDED_TO;
        if out.len() < padded {
            out.resize(padded, 0);
        }
    }
}
