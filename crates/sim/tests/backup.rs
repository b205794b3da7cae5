//! Backups of a running world: while each piece is copied, commits, checkpoints, bulk loads, drops, rotations
//! and large transactions run. The copy is then opened as a data directory, and must be the state of the
//! model at the cut: no row less, and no row more.

mod load;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_backup_format::{MANIFEST, Manifest, UNFINISHED};
use cohort_binlog::EventReader;
use cohort_commit::{
    BackupControl, BackupError, BackupRequest, BackupSink, DirectorySink, LogLayout, ParentBackup,
    ReplicaPositions, ServerIdentity,
};
use cohort_sim::{Disk, Setup, World};
use cohort_vfs::{Fault, FaultFs, MemFs, OpenMode, Rng};
use load::{Load, Model, contents};

const BACKUP: &str = "/backup";

/// A sink that runs steps of the load before each piece, and sometimes has no room for it yet.
struct Interleaved<'l> {
    to: DirectorySink,
    world: &'l World,
    load: &'l RefCell<Load>,
    writes: &'l Cell<u64>,
    /// Ends the backup at this write.
    interrupt_at: Option<(u64, &'l BackupControl)>,
}

impl BackupSink for Interleaved<'_> {
    fn write(&mut self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writes.set(self.writes.get() + 1);
        if let Some((at, control)) = self.interrupt_at
            && at == self.writes.get()
        {
            control.is_interrupted.store(true, Ordering::SeqCst);
        }
        let mut load = self.load.borrow_mut();
        for _ in 0..load.rng.below(5) {
            load.step(self.world);
        }
        if load.rng.below(8) == 0 {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        self.to.write(path, offset, bytes)
    }

    fn finish(&mut self, manifest: &Manifest) -> io::Result<()> {
        match self.load.borrow_mut().rng.below(2) {
            0 => Err(io::Error::from(io::ErrorKind::WouldBlock)),
            _ => self.to.finish(manifest),
        }
    }
}

/// Takes a backup while the load runs. Returns its manifest, and the model at the cut if it came to that.
fn back_up(
    disk: &Disk,
    world: &World,
    load: &RefCell<Load>,
    interrupt_at: Option<u64>,
) -> (Result<Manifest, BackupError>, Option<(Model, u64)>) {
    back_up_from(disk, world, load, interrupt_at, None)
}

/// Takes a backup, an incremental one if it has a parent.
fn back_up_from(
    disk: &Disk,
    world: &World,
    load: &RefCell<Load>,
    interrupt_at: Option<u64>,
    parent: Option<ParentBackup>,
) -> (Result<Manifest, BackupError>, Option<(Model, u64)>) {
    let (control, cut, writes) = (BackupControl::default(), RefCell::new(None), Cell::new(0));
    let positions = |gtid: &str| {
        // The sink holds no borrow: nothing is copied while the order stage is held.
        let load = load.borrow();
        *cut.borrow_mut() = Some((load.model.clone(), load.trxs));
        ReplicaPositions { gtid_current_pos: gtid.to_owned(), sources: Vec::new() }
    };
    let request = BackupRequest {
        label: BACKUP,
        server: ServerIdentity { version: "test".to_owned(), uuid: String::new(), id: 1 },
        files: vec![("cohort.version".to_owned(), b"cohort 1\n".to_vec())],
        bytes_per_s: &|| 0,
        positions: &positions,
        control: &control,
        parent,
    };
    let taken = match DirectorySink::new(disk.clone(), Path::new(BACKUP)) {
        Err(error) => Err(BackupError::Sink(error)),
        Ok(to) => {
            let interrupt_at = interrupt_at.map(|at| (at, &control));
            let mut sink = Interleaved { to, world, load, writes: &writes, interrupt_at };
            world.coordinator.back_up(&request, &mut sink)
        }
    };
    let cut = cut.borrow_mut().take();
    (taken, cut)
}

/// Opens a backup as a data directory and compares it with the model at the cut.
fn check_copy(disk: &Disk, setup: Setup, cut: &(Model, u64), what: &str) {
    let (model, trxs) = cut;
    for round in 0..2 {
        let world = World::open_at(disk, Path::new(BACKUP), setup)
            .unwrap_or_else(|error| panic!("{what}: the backup does not open: {error}"));
        for engine in &world.engines {
            let found = contents(&**engine);
            let keys = |model: &Model| {
                model.iter().map(|((index, key), value)| (*index, key.clone(), value.len())).collect()
            };
            let (found_keys, keys): (BTreeSet<(u32, Vec<u8>, usize)>, BTreeSet<_>) =
                (keys(&found), keys(model));
            assert!(
                found == *model,
                "{what}, round {round}: {} lacks {:?} and has in addition {:?}",
                engine.name(),
                keys.difference(&found_keys).take(9).collect::<Vec<_>>(),
                found_keys.difference(&keys).take(9).collect::<Vec<_>>(),
            );
            let indexes = engine.indexes().expect("readable");
            for index in indexes {
                let defects = engine.verify(index, &mut |_| true).expect("readable");
                assert_eq!(defects, Vec::<String>::new(), "{what}: {index:?}");
            }
        }
        let (position, gtids) = world.coordinator.binlog_status().expect("the binlog is on");
        assert_eq!(gtids.to_string(), format!("0-1-{trxs}"), "{what}: {position:?}");
        for path in world.binlog_files().expect("listed") {
            let mut reader = EventReader::open(disk, &path).expect("readable");
            while reader.next_event().unwrap_or_else(|error| panic!("{what}: {error}")).is_some() {}
        }
        world.coordinator.checkpoint().expect("the copy works as a server");
        world.coordinator.close().expect("closes");
    }
}

fn setups() -> [Setup; 2] {
    [Setup::of(LogLayout::Shared), Setup::of(LogLayout::Separate)]
}

fn seeds(few: u64, many: u64) -> u64 {
    if std::env::var_os("COHORT_LONG_TESTS").is_some() { many } else { few }
}

#[test]
fn a_backup_under_any_load_is_the_state_at_its_cut() {
    for seed in 0..seeds(6, 400) {
        for setup in setups() {
            let disk: Disk = Arc::new(MemFs::new());
            let world = World::open_as(&disk, setup).expect("opens");
            let load = RefCell::new(Load::new(seed));
            // Large transactions are slow.
            load.borrow_mut().large_left = u32::from(seed % 4 == 1);
            for _ in 0..20 + 15 * seed.min(10) {
                load.borrow_mut().step(&world);
            }
            let what = format!("{:?}, seed {seed}", setup.layout);
            let (taken, cut) = back_up(&disk, &world, &load, None);
            let manifest = taken.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(!load.borrow().is_stopped, "{what}");
            let (model, trxs) = cut.expect("there was a cut");
            assert!(trxs < load.borrow().trxs || seed > 0, "{what}: the load went on");
            assert_eq!(manifest.gtid_binlog_pos, format!("0-1-{trxs}"), "{what}");
            // The source goes on, and has given up everything that was pinned.
            for _ in 0..30 {
                load.borrow_mut().step(&world);
            }
            world.coordinator.checkpoint().expect("the source works");
            let held = world.engines[1].status();
            let held = held.iter().find(|(name, _)| name == "Innodb_data_file_pinned_bytes");
            assert_eq!(held.map(|(_, bytes)| *bytes), Some(0), "{what}");
            check_copy(&disk, setup, &(model, trxs), &what);
            drop(world);
            let world = World::open_as(&disk, setup).expect("the source opens");
            assert!(contents(&*world.engines[1]) == load.borrow().model, "{what}: the source");
        }
    }
}

#[test]
fn a_backup_that_is_interrupted_leaves_nothing() {
    for setup in setups() {
        for at in (1..60).step_by(seeds(11, 1) as usize) {
            let disk: Disk = Arc::new(MemFs::new());
            let world = World::open_as(&disk, setup).expect("opens");
            let load = RefCell::new(Load::new(at));
            load.borrow_mut().large_left = 0;
            for _ in 0..60 {
                load.borrow_mut().step(&world);
            }
            let (taken, cut) = back_up(&disk, &world, &load, Some(at));
            match taken {
                Ok(_) => return,
                Err(BackupError::Interrupted) => {}
                Err(error) => panic!("write {at}: {error}"),
            }
            let left: Vec<_> = ["", "log", "right", "left", "spill"]
                .iter()
                .filter_map(|dir| disk.list(&Path::new(BACKUP).join(dir)).ok())
                .flatten()
                .collect();
            assert!(left.is_empty(), "write {at}: {left:?} are left");
            // The next one works.
            let (taken, again) = back_up(&disk, &world, &load, None);
            taken.unwrap_or_else(|error| panic!("write {at}, the next one: {error}"));
            check_copy(&disk, setup, &again.expect("a cut"), &format!("write {at}, the next one"));
            drop(cut);
        }
    }
}

#[test]
fn a_crash_leaves_a_whole_backup_or_none() {
    let setup = Setup::default();
    let mut whole = 0;
    for step in 0.. {
        let at = 200 + step * seeds(37, 5);
        let memory = MemFs::new();
        let faults = FaultFs::new(Arc::new(memory.clone()));
        let disk: Disk = Arc::new(faults.clone());
        let world = World::open_as(&disk, setup).expect("opens");
        let load = RefCell::new(Load::new(5));
        load.borrow_mut().large_left = 0;
        for _ in 0..40 {
            load.borrow_mut().step(&world);
        }
        faults.set(Fault::CrashAt(at));
        let (taken, cut) = back_up(&disk, &world, &load, None);
        let is_over = taken.is_ok();
        std::mem::forget(world);
        for left in [memory.crash_clone(at), memory.kill_clone()] {
            let left: Disk = Arc::new(left);
            let is_there = |name: &str| left.exists(&Path::new(BACKUP).join(name));
            assert!(taken.is_err() || is_there(MANIFEST), "operation {at}: a backup was lost");
            if is_there(MANIFEST) && !is_there(UNFINISHED) {
                whole += 1;
                check_copy(&left, setup, cut.as_ref().expect("a cut"), &format!("operation {at}"));
            }
            World::open_as(&left, setup).unwrap_or_else(|error| panic!("operation {at}, source: {error}"));
        }
        if is_over {
            break;
        }
    }
    assert!(whole > 0, "no crash after the end of the backup was tried");
}

#[test]
fn a_backup_that_lacks_a_part_is_refused() {
    let setup = Setup::default();
    let disk: Disk = Arc::new(MemFs::new());
    let world = World::open_as(&disk, setup).expect("opens");
    let load = RefCell::new(Load::new(3));
    load.borrow_mut().large_left = 0;
    for _ in 0..80 {
        load.borrow_mut().step(&world);
    }
    let (taken, _) = back_up(&disk, &world, &load, None);
    let manifest = taken.expect("taken");
    // A log that was cut at any record, or has a flipped bit, must not open as a shorter one.
    let log = manifest.files.iter().find(|entry| entry.path.starts_with("log/log.0")).expect("a segment");
    let path = Path::new(BACKUP).join(&log.path);
    let file = disk.open(&path, cohort_vfs::OpenMode::Write).expect("opens");
    let mut whole = vec![0; log.size as usize];
    file.read_at(&mut whole, 0).expect("readable");
    let used = whole.iter().rposition(|byte| *byte != 0).expect("not empty");
    let first = whole[4096..].iter().position(|byte| *byte != 0).expect("records") + 4096;
    for at in (first..used).step_by(4096) {
        file.write_at(&vec![0; used + 1 - at], at as u64).expect("cut");
        let opened = World::open_at(&disk, Path::new(BACKUP), setup);
        assert!(opened.is_err(), "a log that ends at byte {at} opens");
        file.write_at(&whole, 0).expect("restored");
    }
}

/// Contents of the files of a backup, by path.
type Files = BTreeMap<String, Vec<u8>>;

fn read_file(disk: &Disk, path: &str) -> Vec<u8> {
    let file = disk.open(&Path::new(BACKUP).join(path), OpenMode::Read).expect("opens");
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    file.read_at(&mut bytes, 0).expect("readable");
    bytes
}

/// Writes a backup in a directory over the one that it continues. Returns the bytes that it has of partial
/// files, and their lengths.
fn lay_over(disk: &Disk, manifest: &Manifest, files: &mut Files) -> (u64, u64) {
    let (mut copied, mut length) = (0, 0);
    let mut whole = Files::new();
    for entry in &manifest.files {
        let bytes = read_file(disk, &entry.path);
        assert_eq!(bytes.len() as u64, entry.size, "{}", entry.path);
        if entry.crc32c.is_some() {
            whole.insert(entry.path.clone(), bytes);
            continue;
        }
        let mut joined = files.remove(&entry.path).expect("the parent has it");
        joined.resize(bytes.len(), 0);
        for range in &entry.ranges {
            let range = range.offset as usize..(range.offset + range.size) as usize;
            copied += range.len() as u64;
            joined[range.clone()].copy_from_slice(&bytes[range]);
        }
        length += entry.size;
        whole.insert(entry.path.clone(), joined);
    }
    *files = whole;
    (copied, length)
}

/// Lays out the files of a backup on a disk of their own.
fn lay_out(files: &Files) -> Disk {
    let disk: Disk = Arc::new(MemFs::new());
    for (path, bytes) in files {
        let path = Path::new(BACKUP).join(path);
        disk.create_dir_all(path.parent().expect("below the backup")).expect("created");
        disk.open(&path, OpenMode::CreateNew).expect("created").write_at(bytes, 0).expect("written");
    }
    disk
}

#[test]
fn a_chain_of_incremental_backups_is_the_state_at_its_last_cut() {
    for seed in 0..seeds(1, 300) {
        for setup in setups() {
            let mut memory = MemFs::new();
            let mut world = World::open_as(&(Arc::new(memory.clone()) as Disk), setup).expect("opens");
            let load = RefCell::new(Load::new(seed));
            load.borrow_mut().large_left = u32::from(seed % 8 == 7);
            let (mut files, mut parent): (Files, Option<ParentBackup>) = (Files::new(), None);
            let (mut copied, mut length) = (0, 0);
            for n in 0..4 + seed % 4 {
                let what = format!("{:?}, seed {seed}, backup {n}", setup.layout);
                for _ in 0..(seed * 7 + n * 5) % 40 {
                    load.borrow_mut().step(&world);
                }
                // The server may crash between two backups.
                let crashes = n > 0 && (seed + n) % 4 == 2;
                if crashes {
                    memory = memory.crash_clone(seed + n);
                    let disk: Disk = Arc::new(memory.clone());
                    std::mem::forget(world);
                    world = World::open_as(&disk, setup).expect("opens");
                }
                let disk: Disk = Arc::new(MemFs::new());
                // A backup that is interrupted is no parent, and does no harm.
                if (seed + n) % 3 == 0 {
                    let (taken, _) = back_up_from(&disk, &world, &load, Some(5), parent.clone());
                    assert!(matches!(taken, Err(BackupError::Interrupted)), "{what}: {taken:?}");
                }
                let (mut taken, mut cut) = back_up_from(&disk, &world, &load, None, parent.clone());
                if crashes
                    && setup.layout == LogLayout::Separate
                    && matches!(taken, Err(BackupError::Parent(_)))
                {
                    // The start has cut off transactions, and so has begun a timeline.
                    parent = None;
                    (taken, cut) = back_up_from(&disk, &world, &load, None, None);
                }
                let manifest = taken.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(manifest.parent.as_ref().map(|it| &it.id), parent.as_ref().map(|it| &it.id));
                let partial = lay_over(&disk, &manifest, &mut files);
                (copied, length) = (copied + partial.0, length + partial.1);
                check_copy(&lay_out(&files), setup, &cut.expect("a cut"), &what);
                parent = Some(ParentBackup {
                    id: manifest.id.clone(),
                    cut_lsn: manifest.cut_lsn,
                    files: manifest.files.iter().map(|it| (it.path.clone(), it.size)).collect(),
                });
            }
            assert!(copied < length, "{:?}, seed {seed}: {copied} of {length} bytes", setup.layout);
            // The data directory of another server, and a state of before the backup, do not know it.
            let other = World::open_as(&(Arc::new(MemFs::new()) as Disk), setup).expect("opens");
            let disk: Disk = Arc::new(MemFs::new());
            let (taken, _) = back_up_from(&disk, &other, &RefCell::new(Load::new(1)), None, parent.clone());
            assert!(matches!(taken, Err(BackupError::Parent(_))), "{taken:?}");
            // Neither does the restored server, which is on another timeline.
            let restored = lay_out(&files);
            let world = World::open_at(&restored, Path::new(BACKUP), setup).expect("opens");
            let (taken, _) = back_up_from(&disk, &world, &RefCell::new(Load::new(1)), None, parent);
            assert!(matches!(taken, Err(BackupError::Parent(_))), "{taken:?}");
        }
    }
}
