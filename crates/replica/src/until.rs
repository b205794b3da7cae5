//! [`Until`]: START SLAVE UNTIL, checked by the applier of a connection.
//!
//! A file position ends the applier after everything before it, in all domains. A GTID position names one
//! group per domain up to which to apply; domains that it does not name do not advance.

use cohort_base::Gtid;
use cohort_exec::ReplicaUntil;

use crate::connection::Connection;
use crate::place::{RelayPlace, number_of};
use crate::state::StateStore;

/// The end condition of an applier.
pub struct Until<'c> {
    pub connection: &'c Connection,
    pub state: &'c StateStore,
}

impl Until<'_> {
    /// Returns whether the condition is a file position, which only a serial applier can stop at exactly.
    pub fn is_by_order(&self) -> bool {
        let sql = self.connection.sql.lock();
        matches!(sql.until, ReplicaUntil::Master(..) | ReplicaUntil::Relay(..))
    }

    /// Returns whether a group may be the last one to apply.
    pub fn may_be_last(&self, gtid: Option<Gtid>) -> bool {
        let sql = self.connection.sql.lock();
        matches!((&sql.until, gtid), (ReplicaUntil::Gtid(until), Some(gtid))
            if until.iter().any(|wanted| wanted.domain == gtid.domain && wanted.seq_no <= gtid.seq_no))
    }

    /// Returns whether a GTID list of the source that ends at `end` in the relay log may end the applier. The
    /// list says that the source has sent everything. A list for an earlier applier does not count.
    pub fn may_end_after(&self, end: RelayPlace) -> bool {
        let sql = self.connection.sql.lock();
        matches!(sql.until, ReplicaUntil::Gtid(_)) && sql.known_until < end
    }

    /// Returns whether the group that is about to begin is beyond the end condition.
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

    /// Returns whether the group just applied completes the end condition.
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

    /// Returns whether everything before the file position is applied.
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
