//! A newtype for every number that names something, so that two kinds cannot be mixed up.

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

id!(/// A transaction while it is active; unique since the server's start.
    TrxId(u64));
id!(/// The number that the XID event of a transaction carries; unique over restarts.
    Xid(u64));
id!(/// Position of a transaction in the one commit order (I1). The first transaction has 1; 0 means "before all".
    CommitSeq(u64));
id!(/// Byte position in the log since the data directory was made.
    Lsn(u64));
id!(/// A table, never reused.
    TableId(u64));
id!(/// A key space of an engine: one per index of a table, never reused. Ids below 16 are the server's own.
    IndexId(u32));
id!(/// A client connection; unique since the server's start. What KILL takes.
    ConnectionId(u64));
id!(/// `server_id` of the server an event comes from.
    ServerId(u32));
id!(/// `gtid_domain_id`: transactions of two domains are independent of each other.
    DomainId(u32));
id!(/// A participant of commits (a storage engine, the catalog), as commit records name it. Final: these numbers are on disk.
    ParticipantId(u8));

/// Hands out transaction ids, unique since the server's start.
#[derive(Debug, Default)]
pub struct TrxIds(AtomicU64);

impl TrxIds {
    /// One that nobody else has.
    pub fn next(&self) -> TrxId {
        TrxId(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl TableId {
    /// The first number of a session's temporary tables: the catalog never comes so far.
    pub const FIRST_TEMPORARY: TableId = TableId(1 << 63);

    /// Whether it is a temporary table of some session.
    pub fn is_temporary(self) -> bool {
        self.0 >= Self::FIRST_TEMPORARY.0
    }
}

impl IndexId {
    /// The first number of key spaces of a session's temporary tables: the catalog never comes so far.
    pub const FIRST_TEMPORARY: IndexId = IndexId(1 << 31);

    /// Whether it is a key space of some session's temporary table.
    #[inline]
    pub fn is_temporary(self) -> bool {
        self.0 >= Self::FIRST_TEMPORARY.0
    }
}

/// A place in the binary log: file number and byte offset in that file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BinlogPos {
    /// The number behind the base name: 1 is `binlog.000001`.
    pub file: u32,
    /// Offset in bytes from the start of the file.
    pub offset: u64,
}

/// MariaDB's global transaction id, written `domain-server-sequence`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    /// The independent stream.
    pub domain: DomainId,
    /// The server the transaction was first committed on.
    pub server: ServerId,
    /// Increasing within the domain.
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
    /// The GTIDs of a list with commas, as positions and states are written; nothing but blanks is the empty
    /// list.
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
