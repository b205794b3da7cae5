//! The data of a server is replaced by a clone, in one step.
//!
//! # Concepts
//! CLONE INSTANCE without DATA DIRECTORY fills a directory within the data directory, and the server starts
//! again. The start puts the clone in place of the old data. All moves are renames within one file system.
//!
//! # States of the data directory
//! ```text
//! cohort-clone.new      a clone that is being filled; what a crash leaves of it is removed
//!   | commit: rename, the point of no return
//! cohort-clone.ready    complete. Files of the old data are moved to cohort-clone.old, one by one
//!   | rename
//! cohort-clone.moving   all old files are away. Files of the clone are moved into the data directory
//!   | the directory is empty, and removed
//! cohort-clone.old      removed once a server has opened the new data
//!   | the new data cannot be opened: rename
//! cohort-clone.back     the old data, on their way back. Files of the clone are moved to cohort-clone.failed
//!   | rename
//! cohort-clone.moving   as above, with the old data
//! cohort-clone.failed   removed once a server has opened the old data again
//! ```
//!
//! # Invariants
//! - Before `commit` nothing of the old data is touched. After it the new data are put in place, by this
//!   start or by the next one: [`complete`] continues where a crash has interrupted it.
//! - No file of the clone is moved before every file of the old data is away, and the name of the directory
//!   says which of the two moves is under way. So no server ever opens a mix.
//! - What belongs to the data is a property of the name ([`complete`] asks for it). In addition every name
//!   that the clone has is moved away. Other files stay: the lock, the identity, keys and certificates,
//!   option files, error logs.
//!
//! # On failure
//! An error leaves a state from which the next start continues. If the new data cannot be opened, [`undo`]
//! puts the old ones back with all that belongs to them, and nothing of the clone: its statements would set
//! the position of the old data to the donor's.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const NEW: &str = "cohort-clone.new";
const READY: &str = "cohort-clone.ready";
const MOVING: &str = "cohort-clone.moving";
const OLD: &str = "cohort-clone.old";
const BACK: &str = "cohort-clone.back";
const FAILED: &str = "cohort-clone.failed";
/// The directories that no move takes along.
const PLACES: [&str; 6] = [NEW, READY, MOVING, OLD, BACK, FAILED];

/// Statements that the first start in a clone runs before it serves clients.
pub const STATEMENTS: &str = "cohort-clone.sql";
/// Report of the clone, for the server that starts in it.
pub const REPORT: &str = "cohort-clone.report";

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Returns the place for a new clone in a data directory, after removing what an interrupted one has left.
pub fn place(datadir: &Path) -> io::Result<PathBuf> {
    let place = datadir.join(NEW);
    remove(&place)?;
    Ok(place)
}

/// Makes the clone the data of the next start. It is complete and durable.
pub fn commit(datadir: &Path) -> io::Result<()> {
    fs::rename(datadir.join(NEW), datadir.join(READY))?;
    sync(datadir)
}

/// Returns whether a clone waits to be put in place.
pub fn is_pending(datadir: &Path) -> bool {
    [READY, MOVING, BACK].iter().any(|place| datadir.join(place).exists())
}

/// Puts a clone that is complete in place of the old data, or continues to. Returns whether there was one.
/// `is_data` says whether a file of a name belongs to a server's data. No server may use the directory.
pub fn complete(datadir: &Path, is_data: &dyn Fn(&str) -> bool) -> io::Result<bool> {
    complete_by(datadir, is_data, &|from, to| fs::rename(from, to))
}

type Rename<'r> = dyn Fn(&Path, &Path) -> io::Result<()> + 'r;

fn complete_by(datadir: &Path, is_data: &dyn Fn(&str) -> bool, rename: &Rename<'_>) -> io::Result<bool> {
    remove(&datadir.join(NEW))?;
    let moving = datadir.join(MOVING);
    for (place, away) in [(READY, OLD), (BACK, FAILED)] {
        let (place, away) = (datadir.join(place), datadir.join(away));
        if !place.exists() {
            continue;
        }
        match fs::create_dir(&away) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => sync(datadir)?,
        }
        let new: BTreeSet<String> = names(&place)?.into_iter().collect();
        for name in names(datadir)? {
            if !PLACES.contains(&name.as_str()) && (is_data(&name) || new.contains(&name)) {
                rename(&datadir.join(&name), &away.join(&name))?;
            }
        }
        sync(&away)?;
        sync(datadir)?;
        rename(&place, &moving)?;
        sync(datadir)?;
    }
    if !moving.exists() {
        return Ok(false);
    }
    for name in names(&moving)? {
        rename(&moving.join(&name), &datadir.join(&name))?;
    }
    sync(datadir)?;
    fs::remove_dir(&moving)?;
    sync(datadir)?;
    Ok(true)
}

/// Returns the data from before a clone that no server has opened yet, if there are any.
pub fn replaced(datadir: &Path) -> Option<PathBuf> {
    Some(datadir.join(OLD)).filter(|old| old.exists())
}

/// Makes the data from before the last clone those of the next start: the clone cannot be opened. Nothing is
/// moved yet, because this process may still write.
pub fn undo(datadir: &Path) -> io::Result<()> {
    // A clone that failed before is of no use.
    remove(&datadir.join(FAILED))?;
    fs::rename(datadir.join(OLD), datadir.join(BACK))?;
    sync(datadir)
}

/// Removes what the last clone has replaced, or the clone that has failed: a server has opened the data.
pub fn remove_replaced(datadir: &Path) -> io::Result<()> {
    remove(&datadir.join(OLD))?;
    remove(&datadir.join(FAILED))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const DATA: [&str; 4] = ["cohort.version", "catalog", "log/log.000001", "mb.000001"];

    fn write(dir: &Path, name: &str, text: &str) {
        fs::create_dir_all(dir.join(name).parent().expect("within")).expect("created");
        fs::write(dir.join(name), text).expect("written");
    }

    fn is_data(name: &str) -> bool {
        ["cohort.version", "catalog", "log"].contains(&name) || name.starts_with("mb.")
    }

    /// Returns the names and contents of a directory's data, and of the files that stay.
    fn state(dir: &Path) -> Vec<(String, Option<String>)> {
        let names = DATA.iter().chain(&["mb.000002", "xa", "key.pem"]);
        names.map(|name| ((*name).to_owned(), fs::read_to_string(dir.join(name)).ok())).collect()
    }

    fn of(rows: [Option<&str>; 7]) -> Vec<(String, Option<String>)> {
        let names = DATA.iter().chain(&["mb.000002", "xa", "key.pem"]);
        names.zip(rows).map(|(name, text)| ((*name).to_owned(), text.map(str::to_owned))).collect()
    }

    #[test]
    fn a_crash_at_any_rename_leaves_the_old_data_or_the_new() {
        let (o, n) = (Some("old"), Some("new"));
        for stop in 0.. {
            let dir = tempfile::tempdir().expect("made");
            let dir = dir.path();
            DATA.iter().chain(&["mb.000002"]).for_each(|name| write(dir, name, "old"));
            write(dir, "key.pem", "own");
            let place = place(dir).expect("nothing is there");
            // A file of a kind that the old server does not know comes with the clone, and replaces one.
            DATA.iter().chain(&["xa"]).for_each(|name| write(&place, name, "new"));
            write(dir, "xa", "old");
            let before = of([o, o, o, o, o, o, Some("own")]);
            assert_eq!(state(dir), before);
            assert!(!is_pending(dir) && !complete(dir, &is_data).expect("nothing to do"), "not committed");
            assert!(!place.exists() && state(dir) == before, "an incomplete clone is removed");
            DATA.iter().chain(&["xa"]).for_each(|name| write(&place, name, "new"));
            commit(dir).expect("renamed");
            let left = Cell::new(stop);
            let rename = |from: &Path, to: &Path| match left.replace(left.get() - 1) {
                0 => Err(io::Error::other("crash")),
                _ => fs::rename(from, to),
            };
            let is_interrupted = complete_by(dir, &is_data, &rename).is_err();
            assert_eq!(is_pending(dir), is_interrupted, "a start after the crash knows");
            if is_interrupted {
                assert!(complete(dir, &is_data).expect("the next start"), "stop {stop}");
            }
            assert_eq!(state(dir), of([n, n, n, n, None, n, Some("own")]), "stop {stop}");
            let old = dir.join(OLD);
            assert_eq!(state(&old), of([o, o, o, o, o, o, None]), "stop {stop}");
            remove_replaced(dir).expect("removed");
            assert!(replaced(dir).is_none() && !complete(dir, &is_data).expect("nothing is left"));
            assert!(undo(dir).is_err(), "nothing to go back to");
            if !is_interrupted {
                assert!(stop > 8, "every rename was interrupted once");
                return;
            }
        }
    }

    #[test]
    fn a_clone_that_cannot_be_opened_gives_way_to_the_old_data_whole() {
        let (o, n) = (Some("old"), Some("new"));
        for stop in 0.. {
            let dir = tempfile::tempdir().expect("made");
            let dir = dir.path();
            DATA.iter().chain(&["mb.000002"]).for_each(|name| write(dir, name, "old"));
            write(dir, "key.pem", "own");
            let place = place(dir).expect("nothing is there");
            DATA.iter().for_each(|name| write(&place, name, "new"));
            // A start in the clone has made a file of data that the old data do not have.
            let of_clone = |name: &str| is_data(name) || name == "xa";
            write(&place, "xa", "new");
            commit(dir).expect("renamed");
            assert!(complete(dir, &of_clone).expect("in place"));
            let left = Cell::new(stop);
            let rename = |from: &Path, to: &Path| match left.replace(left.get() - 1) {
                0 => Err(io::Error::other("crash")),
                _ => fs::rename(from, to),
            };
            undo(dir).expect("decided");
            let is_interrupted = complete_by(dir, &of_clone, &rename).is_err();
            assert_eq!(is_pending(dir), is_interrupted, "a start after the crash knows");
            if is_interrupted {
                assert!(complete(dir, &of_clone).expect("the next start"), "stop {stop}");
            }
            assert_eq!(state(dir), of([o, o, o, o, o, None, Some("own")]), "stop {stop}");
            assert_eq!(state(&dir.join(FAILED)), of([n, n, n, n, None, n, None]), "stop {stop}");
            assert!(!is_pending(dir) && replaced(dir).is_none(), "stop {stop}");
            remove_replaced(dir).expect("removed");
            assert!(!dir.join(FAILED).exists());
            if !is_interrupted {
                assert!(stop > 8, "every rename was interrupted once");
                return;
            }
        }
    }
}
