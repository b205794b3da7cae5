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
//! cohort-clone.old      removed once a server has started with the new data
//!   | undo: rename, if the server cannot start with the clone
//! cohort-clone.back     the old data, on their way back. Files of the clone are moved to cohort-clone.failed
//!   | rename
//! cohort-clone.moving   as above, with the old data
//! cohort-clone.failed   removed once a server has started with the old data again
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
//! An error leaves a state from which the next start continues. If the server cannot start with the new
//! data, [`undo`] puts the old ones back with all that belongs to them, and nothing of the clone: its
//! statements would set the position of the old data to the donor's.

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

/// The names of a directory tree. Tests put one in their place that loses power.
trait Tree {
    fn exists(&self, path: &Path) -> bool;
    fn names(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a directory that may exist.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Removes a directory with all that it contains; it may be missing.
    fn remove_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names of a directory durable.
    fn sync(&self, dir: &Path) -> io::Result<()>;
}

struct RealTree;

impl Tree for RealTree {
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }

    fn remove_all(&self, dir: &Path) -> io::Result<()> {
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn sync(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

/// Returns the place for a new clone in a data directory, after removing what an interrupted one has left.
pub fn place(datadir: &Path) -> io::Result<PathBuf> {
    let place = datadir.join(NEW);
    RealTree.remove_all(&place)?;
    Ok(place)
}

/// Makes the clone the data of the next start. It is complete and durable.
pub fn commit(datadir: &Path) -> io::Result<()> {
    commit_in(&RealTree, datadir)
}

fn commit_in(tree: &dyn Tree, datadir: &Path) -> io::Result<()> {
    tree.rename(&datadir.join(NEW), &datadir.join(READY))?;
    tree.sync(datadir)
}

/// Returns whether a clone waits to be put in place.
pub fn is_pending(datadir: &Path) -> bool {
    is_pending_in(&RealTree, datadir)
}

fn is_pending_in(tree: &dyn Tree, datadir: &Path) -> bool {
    [READY, MOVING, BACK].iter().any(|place| tree.exists(&datadir.join(place)))
}

/// Puts a clone that is complete in place of the old data, or continues to. Returns whether there was one.
/// `is_data` says whether a file of a name belongs to a server's data. No server may use the directory.
pub fn complete(datadir: &Path, is_data: &dyn Fn(&str) -> bool) -> io::Result<bool> {
    complete_in(&RealTree, datadir, is_data)
}

fn complete_in(tree: &dyn Tree, datadir: &Path, is_data: &dyn Fn(&str) -> bool) -> io::Result<bool> {
    tree.remove_all(&datadir.join(NEW))?;
    let moving = datadir.join(MOVING);
    for (place, away) in [(READY, OLD), (BACK, FAILED)] {
        let (place, away) = (datadir.join(place), datadir.join(away));
        if !tree.exists(&place) {
            continue;
        }
        tree.create_dir(&away)?;
        tree.sync(datadir)?;
        let new: BTreeSet<String> = tree.names(&place)?.into_iter().collect();
        for name in tree.names(datadir)? {
            if !PLACES.contains(&name.as_str()) && (is_data(&name) || new.contains(&name)) {
                tree.rename(&datadir.join(&name), &away.join(&name))?;
            }
        }
        tree.sync(&away)?;
        tree.sync(datadir)?;
        tree.rename(&place, &moving)?;
        tree.sync(datadir)?;
    }
    if !tree.exists(&moving) {
        return Ok(false);
    }
    for name in tree.names(&moving)? {
        tree.rename(&moving.join(&name), &datadir.join(&name))?;
    }
    // Both ends of the moves: a file system may make them durable one by one.
    tree.sync(&moving)?;
    tree.sync(datadir)?;
    tree.remove_dir(&moving)?;
    tree.sync(datadir)?;
    Ok(true)
}

/// Returns the data from before a clone with which no server has started yet, if there are any.
pub fn replaced(datadir: &Path) -> Option<PathBuf> {
    Some(datadir.join(OLD)).filter(|old| old.exists())
}

/// Makes the data from before the last clone those of the next start. Nothing is moved yet, because this
/// process may still write.
pub fn undo(datadir: &Path) -> io::Result<()> {
    undo_in(&RealTree, datadir)
}

fn undo_in(tree: &dyn Tree, datadir: &Path) -> io::Result<()> {
    // A clone that failed before is of no use.
    tree.remove_all(&datadir.join(FAILED))?;
    tree.rename(&datadir.join(OLD), &datadir.join(BACK))?;
    tree.sync(datadir)
}

/// Removes what the last clone has replaced, or the clone that has failed: a server has started.
pub fn remove_replaced(datadir: &Path) -> io::Result<()> {
    RealTree.remove_all(&datadir.join(OLD))?;
    RealTree.remove_all(&datadir.join(FAILED))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    use super::*;

    /// The directory, and names of which `catalog` and `log` are directories with files.
    const D: &str = "/d";
    const DATA: [&str; 5] = ["cohort.version", "catalog/1", "log/log.000001", "log/log.000002", "mb.000001"];

    fn is_data(name: &str) -> bool {
        ["cohort.version", "catalog", "log"].contains(&name) || name.starts_with("mb.")
    }

    #[derive(Clone, Debug)]
    enum Change {
        CreateDir(PathBuf),
        Rename(PathBuf, PathBuf),
        /// The contents of the directory are lost with it.
        RemoveAll(PathBuf),
    }

    impl Change {
        /// Returns the directories whose names change.
        fn dirs(&self) -> Vec<PathBuf> {
            let (Change::CreateDir(path) | Change::RemoveAll(path) | Change::Rename(path, _)) = self;
            let other = if let Change::Rename(_, to) = self { Some(to) } else { None };
            let parent = |path: &PathBuf| path.parent().expect("below the root").to_owned();
            std::iter::once(path).chain(other).map(parent).collect()
        }

        /// Changes all names; `None` is a directory.
        fn apply(&self, names: &mut Names) {
            match self {
                Change::CreateDir(path) => {
                    names.insert(path.clone(), None);
                }
                Change::RemoveAll(path) => names.retain(|name, _| !name.starts_with(path)),
                Change::Rename(from, to) => {
                    let moved: Vec<_> = names.keys().filter(|name| name.starts_with(from)).cloned().collect();
                    for name in moved {
                        let rest = name.strip_prefix(from).expect("it begins so");
                        let new = if rest == Path::new("") { to.clone() } else { to.join(rest) };
                        let value = names.remove(&name).expect("it was found");
                        names.insert(new, value);
                    }
                }
            }
        }
    }

    type Names = BTreeMap<PathBuf, Option<&'static str>>;

    /// A tree that loses power at an operation. A change is durable when each directory that it changes was
    /// synced. Of the other changes any survive, but those of one directory in their order.
    struct Fragile {
        durable: Names,
        /// Changes since, with the directories that were not synced after them.
        pending: RefCell<Vec<(Change, Vec<PathBuf>)>>,
        /// Number of operations until the power fails.
        left: Cell<u32>,
    }

    impl Fragile {
        fn new(durable: Names, left: u32) -> Fragile {
            Fragile { durable, pending: RefCell::default(), left: Cell::new(left) }
        }

        fn live(&self) -> Names {
            let mut names = self.durable.clone();
            self.pending.borrow().iter().for_each(|(change, _)| change.apply(&mut names));
            names
        }

        /// Returns what is there after the power has failed.
        fn after_power_failure(&self, mut seed: u64) -> Names {
            let mut names = self.durable.clone();
            let mut lost: Vec<PathBuf> = Vec::new();
            for (change, unsynced) in &*self.pending.borrow() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let follows_lost = change.dirs().iter().any(|dir| lost.contains(dir));
                if unsynced.is_empty() || (!follows_lost && !(seed >> 40).is_multiple_of(3)) {
                    change.apply(&mut names);
                } else {
                    lost.extend(change.dirs());
                }
            }
            names
        }

        fn change(&self, change: Change) -> io::Result<()> {
            // The operation that is interrupted may have been done.
            let left = self.left.get();
            if left > 0 {
                let unsynced = change.dirs();
                self.pending.borrow_mut().push((change, unsynced));
            }
            self.step()
        }

        fn step(&self) -> io::Result<()> {
            match self.left.replace(self.left.get().saturating_sub(1)) {
                0 | 1 => Err(io::Error::other("no power")),
                _ => Ok(()),
            }
        }
    }

    impl Tree for Fragile {
        fn exists(&self, path: &Path) -> bool {
            self.live().contains_key(path)
        }

        fn names(&self, dir: &Path) -> io::Result<Vec<String>> {
            let live = self.live();
            let of_dir = live.keys().filter(|name| name.parent() == Some(dir));
            let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
            Ok(of_dir.map(name).collect())
        }

        fn create_dir(&self, dir: &Path) -> io::Result<()> {
            if self.exists(dir) { Ok(()) } else { self.change(Change::CreateDir(dir.to_owned())) }
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            assert!(self.exists(from) && !self.exists(to), "{} to {}", from.display(), to.display());
            self.change(Change::Rename(from.to_owned(), to.to_owned()))
        }

        fn remove_dir(&self, dir: &Path) -> io::Result<()> {
            assert_eq!(self.names(dir)?.len(), 0, "{} is not empty", dir.display());
            self.change(Change::RemoveAll(dir.to_owned()))
        }

        fn remove_all(&self, dir: &Path) -> io::Result<()> {
            if self.exists(dir) { self.change(Change::RemoveAll(dir.to_owned())) } else { Ok(()) }
        }

        fn sync(&self, dir: &Path) -> io::Result<()> {
            self.step()?;
            for (_, unsynced) in &mut *self.pending.borrow_mut() {
                unsynced.retain(|unsynced| unsynced != dir);
            }
            Ok(())
        }
    }

    /// Returns the names of a directory with old data and, in `NEW`, a clone.
    fn before() -> Names {
        let mut names = Names::new();
        let mut add = |dir: PathBuf, name: &str, text: &'static str| {
            let path = dir.join(name);
            for above in path.ancestors().skip(1).filter(|above| above.starts_with(D)) {
                names.insert(above.to_owned(), None);
            }
            names.insert(path, Some(text));
        };
        let new = Path::new(D).join(NEW);
        for name in DATA {
            add(D.into(), name, "old");
            add(new.clone(), name, "new");
        }
        // A file of a kind that the old server does not know comes with the clone, and replaces one.
        add(new, "xa", "new");
        for (name, text) in [("mb.000002", "old"), ("xa", "old"), ("key.pem", "own")] {
            add(D.into(), name, text);
        }
        names
    }

    /// Returns the files of a directory, without those of clones.
    fn files(names: &Names, dir: &Path) -> Vec<(PathBuf, &'static str)> {
        let of_clones = PLACES.map(|name| dir.join(name));
        let within = names.iter().filter_map(|(name, text)| Some((name, (*text)?)));
        within
            .filter(|(name, _)| !of_clones.iter().any(|clone| name.starts_with(clone)))
            .filter_map(|(name, text)| Some((name.strip_prefix(dir).ok()?.to_owned(), text)))
            .collect()
    }

    /// Starts again and again until a start is not interrupted. The power fails later and later. `check`
    /// looks at what each start finds.
    fn settled(mut names: Names, seed: u64, check: &dyn Fn(&Fragile)) -> Names {
        let d = Path::new(D);
        for again in 1.. {
            let tree = Fragile::new(names, again * (1 + (seed as u32) % 4));
            check(&tree);
            if complete_in(&tree, d, &is_data).is_ok() {
                // Its last step may be lost, and is repeated.
                let tree = Fragile::new(tree.after_power_failure(seed / 2), u32::MAX);
                complete_in(&tree, d, &is_data).expect("no failure");
                return tree.live();
            }
            names = tree.after_power_failure(seed + u64::from(again));
        }
        unreachable!("a start has enough steps in the end")
    }

    #[test]
    fn a_power_failure_at_any_step_of_going_back_leaves_the_new_data_or_the_old() {
        let d = Path::new(D);
        let old = files(&before(), d);
        let tree = Fragile::new(before(), u32::MAX);
        commit_in(&tree, d).and_then(|()| complete_in(&tree, d, &is_data)).expect("no failure");
        let whole = tree.live();
        let new = files(&whole, d);
        let (mut unchanged, mut is_over) = (0, false);
        for step in 1.. {
            for seed in 0..60 {
                let tree = Fragile::new(whole.clone(), step);
                let decided = undo_in(&tree, d).is_ok();
                is_over |= decided && complete_in(&tree, d, &is_data).is_ok();
                let names = settled(tree.after_power_failure(seed), seed, &|_| {});
                let found = files(&names, d);
                if found == new {
                    assert!(!decided, "step {step} seed {seed}: it was decided");
                    unchanged += 1;
                    continue;
                }
                assert_eq!(found, old, "step {step} seed {seed}");
                let of_clone: Vec<_> = new.iter().filter(|(_, text)| *text == "new").cloned().collect();
                assert_eq!(files(&names, &d.join(FAILED)), of_clone, "step {step} seed {seed}");
            }
            if is_over {
                break;
            }
        }
        assert!(unchanged > 0);
    }

    #[test]
    fn a_power_failure_at_any_step_leaves_the_old_data_or_the_new() {
        let d = Path::new(D);
        let whole = before();
        let old = files(&whole, d);
        let mut new: Vec<_> = DATA.iter().chain(&["xa"]).map(|name| (PathBuf::from(name), "new")).collect();
        new.push(("key.pem".into(), "own"));
        new.sort();
        let kept: Vec<_> = old.iter().filter(|(name, _)| name != Path::new("key.pem")).cloned().collect();
        let (mut unchanged, mut steps) = (0, 0);
        for step in 1.. {
            let mut is_over = false;
            for seed in 0..60 {
                let tree = Fragile::new(whole.clone(), step);
                let committed = commit_in(&tree, d).is_ok();
                let done = committed && complete_in(&tree, d, &is_data).is_ok();
                is_over |= done;
                let names = settled(tree.after_power_failure(seed), seed, &|tree| {
                    let was_pending = is_pending_in(tree, d);
                    assert!(was_pending || !committed || done || files(&tree.live(), d) == new);
                });
                let found = files(&names, d);
                if found == old {
                    assert!(!committed, "step {step} seed {seed}: the statement had succeeded");
                    unchanged += 1;
                    continue;
                }
                assert_eq!(found, new, "step {step} seed {seed}");
                assert_eq!(files(&names, &d.join(OLD)), kept, "step {step} seed {seed}");
                let left = names.keys().filter(|name| [NEW, READY, MOVING].iter().any(|n| name.ends_with(n)));
                assert_eq!(left.count(), 0, "step {step} seed {seed}");
            }
            steps = step;
            if is_over {
                break;
            }
        }
        assert!(unchanged > 0 && steps > 20, "{unchanged} unchanged, {steps} steps");
    }

    #[test]
    fn files_of_the_machine_are_replaced() {
        let dir = tempfile::tempdir().expect("made");
        let dir = dir.path();
        let write = |dir: &Path, name: &str, text: &str| {
            fs::create_dir_all(dir.join(name).parent().expect("within")).expect("created");
            fs::write(dir.join(name), text).expect("written");
        };
        let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
        DATA.iter().chain(&["mb.000002", "key.pem"]).for_each(|name| write(dir, name, "old"));
        write(&dir.join(NEW), "left", "over");
        let place = place(dir).expect("removed");
        assert!(!place.exists() && !complete(dir, &is_data).expect("nothing to do"));
        DATA.iter().for_each(|name| write(&place, name, "new"));
        assert!(!is_pending(dir));
        commit(dir).expect("renamed");
        assert!(is_pending(dir) && complete(dir, &is_data).expect("moved") && !is_pending(dir));
        assert!(DATA.iter().all(|name| read(name).as_deref() == Some("new")));
        assert_eq!((read("mb.000002"), read("key.pem").as_deref()), (None, Some("old")));
        let old = replaced(dir).expect("kept until the new data were opened");
        assert!(old.join("log/log.000001").exists() && old.join("mb.000002").exists());
        remove_replaced(dir).expect("removed");
        assert!(replaced(dir).is_none());
    }
}
