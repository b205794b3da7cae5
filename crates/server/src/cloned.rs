//! The first start in a clone: what it reports, and the statements that it runs.

use std::path::Path;

use cohort_base::ConnectionId;
use cohort_clone::replace::{self, REPORT, STATEMENTS};
use cohort_exec::{CloneReport, CloneStage, Origin};
use cohort_types::SqlError;

use crate::error_log::ErrorLog;
use crate::init_file;
use crate::sql_backend::SqlBackend;

/// Sets the report of the clone that the data are, for `performance_schema`. The data were recovered.
pub fn opened(backend: &SqlBackend, datadir: &Path, log: &ErrorLog) {
    let db = backend.database();
    let Ok(text) = std::fs::read_to_string(datadir.join(REPORT)) else { return };
    let Some(mut report) = CloneReport::decode(&text) else { return };
    if report.end_us == 0 {
        let now_us = db.clock.wall_us();
        report.enter(CloneStage::Recovery, now_us);
        report.end(now_us, None);
        if let Err(error) = std::fs::write(datadir.join(REPORT), report.encode()) {
            log.warning(format_args!("The report of the clone could not be written: {error}"));
        }
    }
    db.clones.set(report);
}

/// Removes the data from before the clone. The server has started with the new ones.
pub fn accepted(datadir: &Path, log: &ErrorLog) {
    if let Err(error) = replace::remove_replaced(datadir) {
        log.warning(format_args!("The data from before the clone could not be removed: {error}"));
    }
}

/// Gives up a clone in which no server has started, if there is one: the next start puts the data from before
/// back. Returns whether there was one.
pub fn undo(datadir: &Path, now_us: u64, log: &ErrorLog) -> bool {
    let Some(old) = replace::replaced(datadir) else { return false };
    let text = std::fs::read_to_string(datadir.join(REPORT)).unwrap_or_default();
    if let Some(mut report) = CloneReport::decode(&text) {
        let error = SqlError::clone_failed("the server could not start with it; see the error log");
        report.end(now_us, Some((u32::from(error.number()), error.message.to_string())));
        // For the server that starts with the old data.
        if let Err(error) = std::fs::write(old.join(REPORT), report.encode()) {
            log.warning(format_args!("The report of the clone could not be written: {error}"));
        }
    }
    match replace::undo(datadir) {
        Ok(()) => {
            log.error(format_args!(
                "The server could not start with the clone: the data from before are used"
            ));
            true
        }
        Err(error) => {
            log.error(format_args!("The data from before the clone are in '{}': {error}", old.display()));
            false
        }
    }
}

/// Runs the statements that the clone has for its first start, before clients and replication are served:
/// position and connections of a replica. A crash meanwhile repeats them, because nothing was replicated.
pub fn run_statements(
    backend: &SqlBackend,
    id: ConnectionId,
    datadir: &Path,
    log: &ErrorLog,
) -> Result<(), String> {
    let file = datadir.join(STATEMENTS);
    let text = match std::fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("Can't read '{}': {error}", file.display())),
    };
    init_file::run(backend, id, &text, Origin::Server)
        .map_err(|why| format!("'{}' of the clone failed: {why}", file.display()))?;
    // It must not run again: replication advances the position.
    std::fs::remove_file(&file)
        .and_then(|()| std::fs::File::open(datadir)?.sync_all())
        .map_err(|error| format!("Can't remove '{}': {error}", file.display()))?;
    log.note(format_args!("This is the first start in a clone: its replication position is set"));
    Ok(())
}
