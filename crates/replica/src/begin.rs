//! Start of the threads: checks an existing relay log and sets the positions of both threads.
//!
//! A relay log without marks is deleted, and the source is asked for everything after the applied position. A
//! relay log with marks holds, or held, events that are acknowledged to a semi-synchronous source, which may
//! have lost them. It is checked and kept, and its unapplied events are applied first. If it cannot be read
//! completely, no thread starts (error 1594) and the files stay unchanged.
//!
//! # Names
//! The files keep the base name that they were created with, which is part of the durable state: the default
//! derives from the host name, which may change. A new base name takes effect when no file is kept.

use std::path::Path;
use std::sync::Arc;

use cohort_base::Gtid;
use cohort_binlog::{BinlogName, GtidState};
use cohort_config::VarId;
use cohort_types::{SqlError, SqlResult};

use crate::connection::{Connection, ThreadError};
use crate::kept::{Applied, Kept};
use crate::names::{are_same, base_of, check_relay_log};
use crate::place::{RelayPlace, SourcePlace};
use crate::receiver::start_gtids;
use crate::relay::{Relay, RelayLog, relay_error};
use crate::replicas::Replicas;
use crate::settings::{SourceSettings, UseGtid};
use crate::state::Change;
use crate::survey::Unsound;

/// Error number: the relay log cannot be read.
const UNREADABLE: u32 = 1594;

/// Maximum number of transactions named in a message.
const NAMED_MAX: usize = 5;

fn unsound_text(unsound: &Unsound) -> String {
    format!(
        "Relay log read failure: {unsound}. The relay log holds, or held, transactions that are acknowledged to the source \
         durable here; it is kept as it is. Make its files readable again, or give up what is not applied by RESET \
         SLAVE"
    )
}

/// Lists transaction names for a message.
fn named(promised: &[String]) -> String {
    let shown = promised.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match promised.len() {
        count if count > NAMED_MAX => format!("{shown} and {} more", count - NAMED_MAX),
        _ => shown,
    }
}

impl Replicas {
    /// Opens the relay log of a connection, under the base name that its files were created with.
    pub(crate) fn open_relay_log(&self, name: &str) -> SqlResult<Arc<RelayLog>> {
        let base = self.state.ordered(|state| state.relay_logs.get(name).cloned());
        let base = base.unwrap_or_else(|| base_of(&self.db().globals, name));
        let files = self.relay_files(name, &base)?;
        Ok(RelayLog::open(self.fs().clone(), files))
    }

    /// Returns the files of a base name. Fails if they collide with other files of the server.
    fn relay_files(&self, name: &str, base: &str) -> SqlResult<BinlogName> {
        let globals = &self.db().globals;
        let log_bin = globals.text(VarId::LogBinBasename).filter(|_| globals.flag(VarId::LogBin));
        let log_bin = log_bin.as_deref().filter(|base| !base.is_empty());
        let refused = |why: String| SqlError::master_info_refused(&why);
        check_relay_log(globals, self.datadir(), log_bin, &[base.to_owned()]).map_err(refused)?;
        let files = BinlogName::new(Path::new(self.datadir()), base);
        let all = self.all();
        let mut others = all.iter().filter(|other| other.name != name);
        if let Some(other) = others.find(|other| are_same(&other.relay.name(), &files)) {
            return Err(SqlError::relay_logs_collide(name, &other.name));
        }
        Ok(files)
    }

    /// Sets the positions of both threads, neither of which is running. Unapplied events are fetched again
    /// from the source, except those in a relay log that is kept.
    pub(crate) fn set_start_positions(
        &self,
        connection: &Arc<Connection>,
        settings: &SourceSettings,
        relay: Relay,
    ) -> SqlResult<()> {
        let kept = match relay {
            Relay::MayStay => {
                self.keep(connection, settings).map_err(|unsound| self.unsound(connection, &unsound))?
            }
            Relay::Goes => None,
        };
        if kept.is_none() {
            connection.relay.clear().map_err(relay_error)?;
            let base = base_of(&self.db().globals, &connection.name);
            match self.relay_files(&connection.name, &base) {
                Ok(files) => {
                    connection.relay.rename(files);
                    self.remember(&connection.name, &base)?;
                }
                // The files keep their current name.
                Err(error) => self.log().warning(&connection.name, format_args!("{}", error.message)),
            }
        }
        let mut gtids = self.begin_gtids(settings);
        let executed = SourcePlace { file: settings.file.clone(), position: settings.position };
        let mut whole = executed.clone();
        if let Some(kept) = &kept {
            // Sequence numbers may fall: the log defines the order.
            kept.gtids.iter().for_each(|gtid| gtids.update(*gtid));
            let is_later = |place: &&SourcePlace| place.order() > executed.order();
            whole = kept.whole.as_ref().filter(is_later).unwrap_or(&executed).clone();
        }
        // Transactions that an earlier applier ordered may still wait for replicas of this server.
        let (placed, published) = (self.db().commit.placed(), self.db().commit.read_view().seq());
        let shown = self.state.published(published, |state| {
            let of = state.sources.get(&connection.name);
            of.map(|of| SourcePlace { file: of.file.clone(), position: of.position })
        });
        {
            let mut io = connection.io.lock();
            io.gtids = gtids;
            (io.read, io.whole) = (whole.clone(), whole);
        }
        let mut sql = connection.sql.lock();
        if sql.error.number == UNREADABLE {
            sql.cured();
        }
        sql.ahead.clear();
        sql.applied_until.clear();
        sql.known_until = RelayPlace::default();
        let mut start = (RelayPlace::default(), executed);
        if let Some(kept) = &kept {
            let end = connection.relay.end();
            sql.known_until = end;
            sql.applied_until.clone_from(&kept.applied_until);
            // With GTIDs the position of each domain says which groups are applied, in any order.
            if settings.use_gtid == UseGtid::No {
                match &kept.first_open {
                    Some((relay, place)) => start = (*relay, place.clone()),
                    None => start.0 = end,
                }
            }
        }
        sql.begin_at(RelayPlace::default(), shown.unwrap_or_default());
        sql.came_to(start.0, &start.1, placed);
        Ok(())
    }

    /// Returns the GTID state that a receiver begins with, without the contents of the relay log.
    fn begin_gtids(&self, settings: &SourceSettings) -> GtidState {
        let applied: Vec<Gtid> = self.state.ordered(|state| state.gtids.values().copied().collect());
        start_gtids(settings.use_gtid, &applied, &self.logged(), self.own_id())
    }

    fn look(&self, connection: &Connection, settings: &SourceSettings) -> Result<Option<Kept>, Unsound> {
        if !connection.relay.is_acknowledged()? {
            return Ok(None);
        }
        let executed = SourcePlace { file: settings.file.clone(), position: settings.position };
        let applied = match settings.use_gtid {
            UseGtid::No => Applied::Place(executed.clone()),
            UseGtid::CurrentPos => Applied::Gtids { position: self.begin_gtids(settings), may_be_own: true },
            UseGtid::SlavePos => Applied::Gtids { position: self.begin_gtids(settings), may_be_own: false },
        };
        Kept::look(&connection.relay, &applied, &executed).map(Some)
    }

    /// Keeps a relay log that must be kept. Returns `None` if it may be deleted.
    fn keep(&self, connection: &Connection, settings: &SourceSettings) -> Result<Option<Kept>, Unsound> {
        let Some(kept) = self.look(connection, settings)? else { return Ok(None) };
        let (name, log) = (&connection.name, self.log());
        let asked = base_of(&self.db().globals, name);
        if !are_same(&connection.relay.name(), &BinlogName::new(self.datadir(), &asked)) {
            if kept.first_open.is_none() {
                return Ok(None);
            }
            let files = connection.relay.file_name(kept.survey.first());
            log.warning(
                name,
                format_args!(
                    "The relay log from '{files}' on holds transactions that are not applied; it goes on under its \
                     name, and not as '{asked}'"
                ),
            );
        }
        if let Some(torn) = &kept.survey.torn {
            log.warning(
                name,
                format_args!(
                    "Relay log file '{}' is cut at offset {} of {}: it {}. Nothing after it was acknowledged",
                    torn.path.display(),
                    torn.whole,
                    torn.length,
                    torn.what
                ),
            );
        }
        connection.relay.adopt(&kept.survey)?;
        Ok(Some(kept))
    }

    /// Records error 1594 for SHOW SLAVE STATUS and returns it; the threads do not start.
    fn unsound(&self, connection: &Connection, unsound: &Unsound) -> SqlError {
        let text = unsound_text(unsound);
        let error = ThreadError::new(UNREADABLE, text.clone());
        connection.sql.lock().failed(error, self.db().clock.wall_us());
        SqlError::relay_log_unreadable(&text)
    }

    /// Stores the base name of a connection's relay log files in the durable state.
    fn remember(&self, name: &str, base: &str) -> SqlResult<()> {
        let is_known = self.state.ordered(|state| {
            // RESET SLAVE ALL removes both entries.
            !state.sources.contains_key(name) || state.relay_logs.get(name).is_some_and(|known| known == base)
        });
        match is_known {
            true => Ok(()),
            false => self.commit(&[Change::RelayLog { name: name.to_owned(), base: base.to_owned() }]),
        }
    }

    /// Returns the names of transactions that would be lost with the relay log: acknowledged to the source as
    /// durable here, but not applied. Fails if the log cannot be read.
    pub(crate) fn promised(
        &self,
        connection: &Connection,
        settings: &SourceSettings,
    ) -> SqlResult<Option<String>> {
        let kept = self
            .look(connection, settings)
            .map_err(|unsound| SqlError::relay_log_unreadable(&unsound_text(&unsound)))?;
        let promised = kept.map(|kept| kept.promised).unwrap_or_default();
        Ok((!promised.is_empty()).then(|| named(&promised)))
    }
}
