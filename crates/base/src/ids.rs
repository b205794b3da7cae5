//! Newtypes for all numbers that identify something, so that they cannot be mixed up.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(/// An active transaction; unique since the server started.
    TrxId(u64));
id!(/// Number in the XID event of a transaction; unique across restarts.
    Xid(u64));
id!(/// Sequence number in the single commit order (I1). The first transaction has 1; 0 means "before all".
    CommitSeq(u64));
id!(/// Byte position in the log, counted from the creation of the data directory.
    Lsn(u64));
id!(/// A table; ids are never reused.
    TableId(u64));
id!(/// An index tree of an engine: one per index of a table, never reused. Ids below 16 are internal.
    IndexId(u32));
id!(/// A client connection, as named by KILL; unique since the server started.
    ConnectionId(u64));
id!(/// `server_id` of the server that an event comes from.
    ServerId(u32));
id!(/// `gtid_domain_id`: transactions of different domains are independent.
    DomainId(u32));
id!(/// A commit participant (a storage engine, the catalog) in commit records. On disk: values never change.
    ParticipantId(u8));

/// Generator of transaction ids, unique since the server started.
#[derive(Debug, Default)]
pub struct TrxIds(AtomicU64);

impl TrxIds {
    /// Returns a new id.
    pub fn next(&self) -> TrxId {
        TrxId(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl TableId {
    /// First id of the sessions' temporary tables. Ids from the catalog stay below it.
    pub const FIRST_TEMPORARY: TableId = TableId(1 << 63);

    /// Returns whether it is the temporary table of a session.
    pub fn is_temporary(self) -> bool {
        self.0 >= Self::FIRST_TEMPORARY.0
    }
}

impl IndexId {
    /// First id of the indexes of temporary tables. Ids from the catalog stay below it.
    pub const FIRST_TEMPORARY: IndexId = IndexId(1 << 31);

    /// Returns whether it belongs to the temporary table of a session.
    #[inline]
    pub fn is_temporary(self) -> bool {
        self.0 >= Self::FIRST_TEMPORARY.0
    }
}

/// A position in the binary log: file number and byte offset in that file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BinlogPos {
    /// Number in the file name: 1 is `binlog.000001`.
    pub file: u32,
    /// Offset in bytes from the start of the file.
    pub offset: u64,
}

/// MariaDB's global transaction id, written `domain-server-sequence`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    /// Domain; the streams of two domains are independent.
    pub domain: DomainId,
    /// Server on which the transaction was first committed.
    pub server: ServerId,
    /// Increases within the domain.
    pub seq_no: u64,
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.seq_no)
    }
}

/// The text is not `number-number-number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseGtidError;

impl fmt::Display for ParseGtidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a GTID is written domain-server-sequence")
    }
}

impl std::error::Error for ParseGtidError {}

impl Gtid {
    /// Parses a comma-separated list of GTIDs, the text form of positions and states. Blanks only are an
    /// empty list.
    pub fn parse_list(text: &str) -> Result<Vec<Gtid>, ParseGtidError> {
        match text.trim() {
            "" => Ok(Vec::new()),
            _ => text.split(',').map(str::parse).collect(),
        }
    }
}

impl std::str::FromStr for Gtid {
    type Err = ParseGtidError;

    fn from_str(text: &str) -> Result<Gtid, ParseGtidError> {
        let mut parts = text.trim().splitn(3, '-');
        let mut next = || parts.next().ok_or(ParseGtidError);
        Ok(Gtid {
            domain: DomainId(next()?.parse().map_err(|_| ParseGtidError)?),
            server: ServerId(next()?.parse().map_err(|_| ParseGtidError)?),
            seq_no: next()?.parse().map_err(|_| ParseGtidError)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gtid_text_round_trips_and_rejects_garbage() {
        let gtid: Gtid = "0-1-9868".parse().expect("valid");
        assert_eq!(gtid, Gtid { domain: DomainId(0), server: ServerId(1), seq_no: 9868 });
        assert_eq!(gtid.to_string(), "0-1-9868");
        for bad in ["", "1", "1-2", "1-2-", "a-1-1", "0-1--1", "0-4294967296-1", "0-1-1-1"] {
            assert!(bad.parse::<Gtid>().is_err(), "{bad}");
        }
    }
}
