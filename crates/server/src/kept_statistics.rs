//! The file that keeps the statistics of statements over a restart (`statement_statistics_kept`).

use std::path::{Path, PathBuf};

use cohort_config::{Globals, VarId};
use cohort_exec::{EventKind, event_name};
use cohort_observe::KindNames;

use crate::error_log::ErrorLog;
use crate::sql_backend::SqlBackend;

/// Name of the file in the data directory.
const FILE: &str = "statement_statistics.bin";

/// The kinds of statements by the names of their events.
struct EventNames;

impl KindNames for EventNames {
    fn name(&self, kind: usize) -> String {
        event_name(kind)
    }

    fn kind(&self, name: &str) -> Option<usize> {
        EventKind::all().find(|kind| event_name(*kind) == name)
    }
}

/// The path of the file, if the statistics are kept.
pub struct KeptStatistics(Option<PathBuf>);

impl KeptStatistics {
    /// Reads the file at the start.
    pub fn load(backend: &SqlBackend, globals: &Globals, datadir: &Path, log: &ErrorLog) -> KeptStatistics {
        let path = globals.flag(VarId::StatementStatisticsKept).then(|| datadir.join(FILE));
        let db = backend.database();
        if let Some(path) = &path
            && let Some(warning) = db.statements.load(&*db.fs, path, &EventNames)
        {
            log.warning(format_args!("{warning}"));
        }
        KeptStatistics(path)
    }

    /// Writes the file at a clean stop.
    pub fn save(&self, backend: &SqlBackend, log: &ErrorLog) {
        let Some(path) = &self.0 else { return };
        let db = backend.database();
        if let Err(error) = db.statements.save(&*db.fs, path, &EventNames) {
            let path = path.display();
            log.warning(format_args!("Cannot write the statistics of statements '{path}': {error}"));
        }
    }
}
