//! The options of a dump: fields of COM_BINLOG_DUMP, and user variables that the replica set before.

use std::fmt;
use std::time::Duration;

use cohort_base::Gtid;
use cohort_protocol::BinlogDump;
use cohort_types::{ErrorCode, SqlError};

/// Flags of COM_BINLOG_DUMP.
const NON_BLOCK: u16 = 1;
const SEND_ANNOTATIONS: u16 = 2;

/// The replica's capability: `@mariadb_slave_capability`. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// No MariaDB features; positions must have no gaps.
    Unknown,
    /// Accepts ANNOTATE_ROWS.
    Annotate,
    /// Accepts that events are omitted.
    TolerateHoles,
    /// Accepts BINLOG_CHECKPOINT.
    Checkpoint,
    /// Accepts GTID and GTID_LIST.
    Gtid,
}

/// The replica's checksum setting: `@master_binlog_checksum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumWish {
    /// Not set: the replica does not know checksums.
    Unaware,
    /// Artificial events before the first format description have no checksum.
    None,
    /// Artificial events have checksums from the start.
    Crc32,
}

/// Behaviour at the end of the binary log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// The dump waits for more events.
    Wait,
    /// The dump ends.
    Stop,
}

/// Handling of ANNOTATE_ROWS events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotations {
    /// They are sent, as the replica requested.
    Send,
    /// They are not sent.
    Skip,
}

/// Handling of events logged under `@@skip_replication`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkedEvents {
    /// They are sent like all others.
    Send,
    /// They are omitted, because the replica set `@@skip_replication`.
    Skip,
}

/// Semi-synchronous mode of the replica: `@rpl_semi_sync_slave`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SemiSyncWish {
    /// The replica does not acknowledge.
    Asynchronous,
    /// Packets have the semi-synchronous header; the replica acknowledges on request.
    Acknowledges,
}

/// A start by GTID: `@slave_connect_state` and related variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidRequest {
    /// Newest transaction of each domain that the replica has.
    pub position: Vec<Gtid>,
    /// `@slave_gtid_strict_mode`
    pub is_strict: bool,
    /// `@slave_gtid_ignore_duplicates`
    pub ignores_duplicates: bool,
    /// `@slave_until_gtid`: last transaction of each domain that the replica wants.
    pub until: Option<Vec<Gtid>>,
}

/// Where to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At an event of a file. An empty name means the oldest file.
    File {
        /// File name without directory.
        name: String,
        /// Offset in the file.
        offset: u64,
    },
    /// After a GTID position.
    Gtid(GtidRequest),
}

impl fmt::Display for StartAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartAt::File { name, offset } => write!(f, "pos({name}, {offset})"),
            StartAt::Gtid(request) => {
                let gtids: Vec<String> = request.position.iter().map(Gtid::to_string).collect();
                write!(f, "gtid('{}')", gtids.join(","))
            }
        }
    }
}

/// The options of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpRequest {
    /// Server id of the replica; 0 for tools that do not register as replicas.
    pub server_id: u32,
    pub start: StartAt,
    pub capability: Capability,
    pub checksum: ChecksumWish,
    /// Idle time after which a heartbeat is sent.
    pub heartbeat: Option<Duration>,
    pub at_end: AtEnd,
    pub annotations: Annotations,
    pub marked: MarkedEvents,
    pub semi_sync: SemiSyncWish,
}

impl DumpRequest {
    /// Builds a request. `variable` returns a user variable of the session as text.
    pub fn read(
        dump: &BinlogDump<'_>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<DumpRequest, SqlError> {
        let number =
            |name: &str| variable(name).and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
        let start = match variable("slave_connect_state") {
            None => StartAt::File {
                name: String::from_utf8_lossy(dump.file).into_owned(),
                offset: u64::from(dump.position),
            },
            Some(text) => StartAt::Gtid(GtidRequest {
                position: position(&text).ok_or_else(|| malformed("start position from GTID state"))?,
                is_strict: number("slave_gtid_strict_mode") != 0,
                ignores_duplicates: number("slave_gtid_ignore_duplicates") != 0,
                until: match variable("slave_until_gtid") {
                    Some(text) => {
                        Some(position(&text).ok_or_else(|| malformed("UNTIL position sent from slave"))?)
                    }
                    None => None,
                },
            }),
        };
        let heartbeat_ns = match number("master_heartbeat_period") {
            0 => number("source_heartbeat_period"),
            period => period,
        };
        Ok(DumpRequest {
            server_id: dump.server_id,
            start,
            capability: capability(number("mariadb_slave_capability")),
            checksum: checksum(
                variable("master_binlog_checksum").or_else(|| variable("source_binlog_checksum")),
            ),
            heartbeat: (heartbeat_ns > 0).then(|| Duration::from_nanos(heartbeat_ns)),
            // A tool without a server id reads the existing events only.
            at_end: if dump.flags & NON_BLOCK != 0 || dump.server_id == 0 {
                AtEnd::Stop
            } else {
                AtEnd::Wait
            },
            annotations: match dump.flags & SEND_ANNOTATIONS {
                0 => Annotations::Skip,
                _ => Annotations::Send,
            },
            marked: MarkedEvents::Send,
            semi_sync: match number("rpl_semi_sync_slave").max(number("rpl_semi_sync_replica")) {
                0 => SemiSyncWish::Asynchronous,
                _ => SemiSyncWish::Acknowledges,
            },
        })
    }
}

fn capability(number: u64) -> Capability {
    match number {
        0 => Capability::Unknown,
        1 => Capability::Annotate,
        2 => Capability::TolerateHoles,
        3 => Capability::Checkpoint,
        _ => Capability::Gtid,
    }
}

fn checksum(text: Option<String>) -> ChecksumWish {
    match text {
        None => ChecksumWish::Unaware,
        Some(text) if text.eq_ignore_ascii_case("CRC32") || text.trim() == "1" => ChecksumWish::Crc32,
        Some(_) => ChecksumWish::None,
    }
}

/// Parses a GTID position with one GTID per domain. Returns `None` if it is malformed.
pub(crate) fn position(text: &str) -> Option<Vec<Gtid>> {
    let gtids = Gtid::parse_list(text).ok()?;
    let is_alone = |(n, gtid): (usize, &Gtid)| gtids[..n].iter().all(|other| other.domain != gtid.domain);
    gtids.iter().enumerate().all(is_alone).then_some(gtids)
}

fn malformed(what: &str) -> SqlError {
    let text = format!("Out of memory or malformed slave request when obtaining {what}");
    SqlError::new(ErrorCode::UnknownError, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(flags: u16) -> BinlogDump<'static> {
        BinlogDump { position: 4, flags, server_id: 7, file: b"binlog.000001" }
    }

    #[test]
    fn settings_of_a_mariadb_replica_are_accepted() {
        let set = |name: &str| {
            let value = match name {
                "slave_connect_state" => "0-1-9,3-2-1",
                "slave_gtid_strict_mode" => "1",
                "slave_gtid_ignore_duplicates" => "0",
                "mariadb_slave_capability" => "4",
                "master_binlog_checksum" => "CRC32",
                "master_heartbeat_period" => "1500000000",
                "rpl_semi_sync_slave" => "1",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let request = DumpRequest::read(&dump(2), &set).expect("well formed");
        let StartAt::Gtid(gtid) = &request.start else { panic!("{request:?}") };
        assert_eq!(gtid.position, ["0-1-9".parse().expect("valid"), "3-2-1".parse().expect("valid")]);
        assert!(gtid.is_strict && !gtid.ignores_duplicates && gtid.until.is_none());
        assert_eq!(request.capability, Capability::Gtid);
        assert_eq!(request.heartbeat, Some(Duration::from_millis(1500)));
        assert_eq!((request.at_end, request.annotations), (AtEnd::Wait, Annotations::Send));
        assert_eq!(request.semi_sync, SemiSyncWish::Acknowledges);
    }

    #[test]
    fn a_tool_that_sets_nothing_starts_by_file_and_garbage_is_refused() {
        let request = DumpRequest::read(&dump(1), &|_| None).expect("well formed");
        assert_eq!(request.start, StartAt::File { name: "binlog.000001".into(), offset: 4 });
        assert_eq!((request.capability, request.checksum), (Capability::Unknown, ChecksumWish::Unaware));
        assert_eq!(request.at_end, AtEnd::Stop);
        for bad in ["0-1", "0-1-1,0-2-2", "x", "0-1-1,", ",", "0-1-1;1-1-1"] {
            let refused =
                DumpRequest::read(&dump(0), &|name| (name == "slave_connect_state").then(|| bad.to_owned()));
            assert_eq!(refused.map_err(|e| e.code), Err(ErrorCode::UnknownError), "{bad}");
        }
    }
}
