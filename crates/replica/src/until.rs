//! [`Until`]: START SLAVE UNTIL, as the applier of a connection asks about it.
//!
//! A place in a file ends what is before it, whatever the domain. A GTID position names a group of each
//! domain that is to come on: domains that it does not name stand still.

use cohort_base::Gtid;
use cohort_exec::ReplicaUntil;

use crate::connection::Connection;
use crate::relay::RelayPlace;
use crate::state::StateStore;

/// Where an applier is to end.
pub struct Until<'c> {
    pub connection: &'c Connection,
    pub state: &'c StateStore,
}

impl Until<'_> {
    /// Only an applier in order comes by the place.
    pub fn is_by_order(&self) -> bool {
        let sql = self.connection.sql.lock();
        matches!(sql.until, ReplicaUntil::Master(..) | ReplicaUntil::Relay(..))
    }

    /// Whether a group may be the last one.
    pub fn may_be_last(&self, gtid: Option<Gtid>) -> bool {
        let sql = self.connection.sql.lock();
        matches!((&sql.until, gtid), (ReplicaUntil::Gtid(until), Some(gtid))
            if until.iter().any(|wanted| wanted.domain == gtid.domain && wanted.seq_no <= gtid.seq_no))
    }

    /// Whether the source may say before this place of the relay log that it has sent all. What was said to
    /// an earlier applier does not count.
    pub fn may_end_behind(&self, end: RelayPlace) -> bool {
        let sql = self.connection.sql.lock();
        matches!(sql.until, ReplicaUntil::Gtid(_)) && sql.known_until < end
    }

    /// Whether the group that is about to begin lies behind what START SLAVE UNTIL wants.
    pub fn is_behind(&self, gtid: Option<Gtid>) -> bool {
        let sql = self.connection.sql.lock();
        match (&sql.until, gtid) {
            (ReplicaUntil::Gtid(until), Some(gtid)) => {
                let wanted = until.iter().find(|wanted| wanted.domain == gtid.domain);
                wanted.is_none_or(|wanted| gtid.seq_no > wanted.seq_no)
            }
            _ => false,
        }
    }

    /// Whether what was just applied is the last that START SLAVE UNTIL wants.
    pub fn is_reached(&self) -> bool {
        let until = self.connection.sql.lock().until.clone();
        match &until {
            ReplicaUntil::Never => false,
            ReplicaUntil::Master(..) | ReplicaUntil::Relay(..) => self.is_place_reached(),
            ReplicaUntil::Gtid(until) => self.state.ordered(|state| {
                until.iter().all(|wanted| {
                    state.gtids.get(&wanted.domain).is_some_and(|applied| applied.seq_no >= wanted.seq_no)
                })
            }),
        }
    }

    /// Whether all before the file and position of START SLAVE UNTIL is applied.
    pub fn is_place_reached(&self) -> bool {
        let connection = self.connection;
        let sql = connection.sql.lock();
        match &sql.until {
            ReplicaUntil::Never | ReplicaUntil::Gtid(_) => false,
            ReplicaUntil::Master(file, position) => {
                let here = &sql.executed;
                (number_of(&here.file), here.position) >= (number_of(file), *position)
            }
            ReplicaUntil::Relay(file, position) => {
                (number_of(&connection.relay.file_name(sql.relay.file)), sql.relay.offset)
                    >= (number_of(file), *position)
            }
        }
    }
}

/// The number at the end of a binlog file's name.
pub fn number_of(file: &str) -> u64 {
    file.rsplit('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
