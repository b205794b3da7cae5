//! The archive of the log and restores to a point in time: while a random load runs, ranges are sent to a
//! repository at random steps, the server crashes and restarts, the program that stores them is killed, and
//! backups are taken. Afterwards every pair of a backup and a later transaction is restored, and must be the
//! state of the model after that transaction.

mod load;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cohort_backup_format::{Frame, TimelineStart};
use cohort_base::{DomainId, Gtid, ServerId};
use cohort_commit::{
    ApplyError, ApplyStop, ArchiveError, ArchiveLink, Archiver, BackupControl, BackupRequest, DirectorySink,
    ReplicaPositions, ServerIdentity, apply_archive,
};
use cohort_sim::{Disk, Setup, World};
use cohort_vfs::{MemFs, OpenMode, Rng, SeededRng, World as Machine};
use load::{Load, Model, contents};

const BACKUP: &str = "/backup";
const ARCHIVE: &str = "/archive";

fn setup() -> Setup {
    Setup { is_archived: true, ..Setup::default() }
}

/// Objects by name.
type Repository = Rc<RefCell<BTreeMap<String, Vec<u8>>>>;

/// The program, with its repository.
struct Program {
    repository: Repository,
    answers: VecDeque<Frame>,
    up_to: u64,
    /// Acknowledgements are sent only then.
    acknowledges: bool,
    /// Frames that it takes before it is killed.
    frames_left: u64,
}

impl Program {
    fn new(repository: &Repository) -> Program {
        let (repository, answers) = (Rc::clone(repository), VecDeque::new());
        Program { repository, answers, up_to: 0, acknowledges: true, frames_left: u64::MAX }
    }

    fn take(&mut self, frame: Frame) {
        let mut objects = self.repository.borrow_mut();
        match frame {
            Frame::Hello(hello) => {
                let timeline = hello.timelines.last().expect("it has one").timeline;
                let of_timeline = format!("{timeline:08x}/");
                let ends = objects.keys().filter_map(|name| {
                    let (_, to) = name.strip_prefix(&of_timeline)?.strip_suffix(".log")?.split_once('-')?;
                    u64::from_str_radix(to, 16).ok()
                });
                self.up_to = ends.max().unwrap_or(hello.lsn);
                self.answers.push_back(Frame::Start(TimelineStart { timeline, lsn: self.up_to }));
            }
            Frame::File(piece) => {
                let name = format!("{:08x}/files/{}", piece.timeline, piece.name);
                let bytes = objects.entry(name).or_default();
                bytes.resize((piece.offset + piece.bytes.len() as u64).max(bytes.len() as u64) as usize, 0);
                bytes[piece.offset as usize..][..piece.bytes.len()].copy_from_slice(&piece.bytes);
            }
            Frame::Range(range) => {
                assert_eq!(range.from, self.up_to, "ranges follow each other");
                for name in &range.files {
                    let name = format!("{:08x}/files/{name}", range.timeline);
                    assert!(objects.contains_key(&name), "{name} comes before the range that names it");
                }
                let (timeline, to) = (range.timeline, range.to);
                let name = format!("{timeline:08x}/{:016x}-{to:016x}.log", range.from);
                let mut bytes = Vec::new();
                Frame::Range(range).encode(&mut bytes);
                assert!(objects.insert(name, bytes).is_none(), "an object is written once");
                self.up_to = to;
                if self.acknowledges {
                    self.answers.push_back(Frame::Ack(TimelineStart { timeline, lsn: to }));
                }
            }
            other => panic!("the server sends {other:?}"),
        }
    }
}

impl ArchiveLink for Program {
    fn send(&mut self, frame: &[u8], _: &dyn Fn() -> bool) -> io::Result<()> {
        if self.frames_left == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.frames_left -= 1;
        let (frame, len) = Frame::decode(frame).expect("whole").expect("one frame");
        assert!(len > 0);
        self.take(frame);
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> io::Result<Option<Frame>> {
        Ok(self.answers.pop_front())
    }
}

/// A server whose log is archived, and what it has committed.
struct Source {
    memory: MemFs,
    world: World,
    archiver: Archiver,
    program: Option<Program>,
    repository: Repository,
    load: RefCell<Load>,
    /// State and time after each transaction, from the empty one on.
    history: Vec<(Model, u64)>,
    rng: SeededRng,
    elapsed_us: u64,
}

impl Source {
    fn new(seed: u64) -> Source {
        let memory = MemFs::new();
        let repository = Repository::default();
        let mut load = Load::new(seed);
        load.large_left = u32::from(seed == 2);
        Source::start(
            memory,
            repository,
            RefCell::new(load),
            vec![(Model::new(), 0)],
            SeededRng::new(seed),
            0,
        )
    }

    fn start(
        memory: MemFs,
        repository: Repository,
        load: RefCell<Load>,
        history: Vec<(Model, u64)>,
        rng: SeededRng,
        elapsed_us: u64,
    ) -> Source {
        Source::start_at(memory, None, repository, load, history, rng, elapsed_us)
    }

    #[allow(clippy::too_many_arguments)]
    fn start_at(
        memory: MemFs,
        datadir: Option<&Path>,
        repository: Repository,
        load: RefCell<Load>,
        history: Vec<(Model, u64)>,
        rng: SeededRng,
        elapsed_us: u64,
    ) -> Source {
        let disk: Disk = Arc::new(memory.clone());
        let world = match datadir {
            None => World::open_as(&disk, setup()),
            Some(datadir) => World::open_at(&disk, datadir, setup()),
        };
        let world = world.expect("opens");
        world.clock.advance(Duration::from_micros(elapsed_us));
        let archiver = Archiver::new(Arc::clone(&world.coordinator)).expect("the log is archived");
        Source { memory, world, archiver, program: None, repository, load, history, rng, elapsed_us }
    }

    fn connect(&mut self) -> Result<(), ArchiveError> {
        let mut program = Program::new(&self.repository);
        self.archiver.begin(&mut program, Duration::ZERO)?;
        self.program = Some(program);
        Ok(())
    }

    /// Sends ranges until there is nothing to send. Returns false if the program was killed.
    fn archive(&mut self) -> bool {
        if self.program.is_none() {
            self.connect().expect("connects");
        }
        loop {
            let program = self.program.as_mut().expect("connected");
            match self.archiver.round(program, true) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(ArchiveError::Link(_)) => {
                    self.program = None;
                    return false;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn archive_all(&mut self) {
        if let Some(program) = &mut self.program {
            (program.frames_left, program.acknowledges) = (u64::MAX, true);
        }
        while !self.archive() {}
        self.archive();
    }

    fn step(&mut self) {
        let us = [0, 0, 3_000, 15_000, 2_000_000][self.rng.below(5) as usize];
        self.elapsed_us += us;
        self.world.clock.advance(Duration::from_micros(us));
        self.load.borrow_mut().step(&self.world);
        let load = self.load.borrow();
        assert!(!load.is_stopped, "the load goes on");
        if load.trxs as usize == self.history.len() {
            self.history.push((load.model.clone(), self.elapsed_us));
        }
        assert_eq!(load.trxs as usize + 1, self.history.len());
        drop(load);
        match self.rng.below(12) {
            0..4 => drop(self.archive()),
            4 => {
                if self.program.is_none() {
                    self.connect().expect("connects");
                }
                let program = self.program.as_mut().expect("connected");
                program.frames_left = self.rng.below(6);
            }
            5 => {
                if let Some(program) = &mut self.program {
                    program.acknowledges = !program.acknowledges;
                }
            }
            _ => {}
        }
    }

    /// Ends the server, with or without a crash, and starts it again.
    fn restart(self, seed: u64) -> Source {
        let Source { memory, world, repository, load, history, rng, elapsed_us, archiver, program } = self;
        drop((archiver, program));
        // A start does not know the newest time if a checkpoint has released its record.
        let elapsed_us = elapsed_us + 20_000;
        let memory = match seed % 3 {
            0 => {
                world.coordinator.close().expect("closes");
                drop(world);
                memory
            }
            1 => {
                let left = memory.crash_clone(seed);
                std::mem::forget(world);
                left
            }
            _ => {
                let left = memory.kill_clone();
                std::mem::forget(world);
                left
            }
        };
        Source::start(memory, repository, load, history, rng, elapsed_us)
    }

    /// Takes a backup. Returns the disk that has it, and the number of its last transaction.
    fn back_up(&mut self) -> (MemFs, u64) {
        let control = BackupControl::default();
        let request = BackupRequest {
            label: BACKUP,
            server: ServerIdentity { version: "test".to_owned(), uuid: String::new(), id: 1 },
            files: Vec::new(),
            bytes_per_s: &|| 0,
            positions: &|_| ReplicaPositions::default(),
            control: &control,
        };
        let left = MemFs::new();
        let mut sink = DirectorySink::new(Arc::new(left.clone()), Path::new(BACKUP)).expect("begun");
        self.world.coordinator.back_up(&request, &mut sink).expect("taken");
        (left, self.load.borrow().trxs)
    }
}

/// Copies a backup and the archive to a disk of their own.
fn lay_out(backup: &MemFs, repository: &Repository) -> (MemFs, Disk) {
    let memory = backup.kill_clone();
    let disk: Disk = Arc::new(memory.clone());
    for (name, bytes) in repository.borrow().iter() {
        let path = Path::new(ARCHIVE).join(name);
        disk.create_dir_all(path.parent().expect("below the archive")).expect("created");
        let file = disk.open(&path, OpenMode::CreateNew).expect("created");
        file.write_at(bytes, 0).expect("written");
    }
    (memory, disk)
}

fn apply(disk: &Disk, timeline: Option<u32>, stop: ApplyStop) -> Result<cohort_commit::Applied, ApplyError> {
    let machine = Machine::sim(Arc::clone(disk), 1);
    apply_archive(&machine, Path::new(BACKUP), Path::new(ARCHIVE), timeline, stop)
}

fn gtid(seq_no: u64) -> ApplyStop {
    ApplyStop::Gtid(Gtid { domain: DomainId(0), server: ServerId(1), seq_no })
}

/// Opens a restored data directory and compares it with a state of the model.
fn check(disk: &Disk, (model, trxs): (&Model, u64), what: &str) {
    let world = World::open_at(disk, Path::new(BACKUP), setup());
    let world = world.unwrap_or_else(|error| panic!("{what}: does not open: {error}"));
    for engine in &world.engines {
        let found = contents(&**engine);
        let lost = model.iter().find(|(key, value)| found.get(*key) != Some(value)).map(|(key, _)| key);
        let more = found.keys().find(|key| !model.contains_key(*key));
        assert!(found == *model, "{what}: {} lacks {lost:?}, has in addition {more:?}", engine.name());
    }
    let gtids = world.coordinator.binlog_status().expect("the binlog is on").1.to_string();
    assert_eq!(gtids, if trxs == 0 { String::new() } else { format!("0-1-{trxs}") }, "{what}");
}

fn seeds() -> u64 {
    if std::env::var_os("COHORT_LONG_TESTS").is_some() { 300 } else { 2 }
}

/// Returns a source with a history, and its backups.
fn history(seed: u64, steps: u64) -> (Source, Vec<(MemFs, u64)>) {
    let mut source = Source::new(seed);
    source.connect().expect("connects");
    let mut backups = vec![source.back_up()];
    for step in 0..steps {
        source.step();
        if source.rng.below(25) == 0 {
            source = source.restart(seed + step);
        }
        if source.rng.below(40) == 0 && backups.len() < 4 {
            backups.push(source.back_up());
        }
    }
    source.archive_all();
    (source, backups)
}

#[test]
fn every_later_transaction_of_every_backup_is_restored() {
    for seed in 0..seeds() {
        let (source, backups) = history(seed, 60 + 20 * (seed % 4));
        let last = source.load.borrow().trxs;
        for (n, (backup, from)) in backups.iter().enumerate() {
            for seq_no in from + 1..=last {
                let what = format!(
                    "seed {seed}, backup {n} (transaction {from}), to transaction {seq_no} of {last}"
                );
                let (_, disk) = lay_out(backup, &source.repository);
                let applied =
                    apply(&disk, None, gtid(seq_no)).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!((applied.transactions, applied.is_reached), (seq_no - from, true), "{what}");
                check(&disk, (&source.history[seq_no as usize].0, seq_no), &what);
            }
            let (_, disk) = lay_out(backup, &source.repository);
            apply(&disk, None, ApplyStop::End).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            check(
                &disk,
                (&source.history[last as usize].0, last),
                &format!("seed {seed}, backup {n}, to the end"),
            );
            // What has been applied is not applied twice, and a GTID that is not there is no end.
            assert!(matches!(apply(&disk, None, ApplyStop::End), Err(ApplyError::NotACopy(_))));
            let (_, disk) = lay_out(backup, &source.repository);
            assert!(matches!(apply(&disk, None, gtid(last + 1)), Err(ApplyError::Unsuitable(_))));
        }
    }
}

#[test]
fn a_time_is_the_end_of_its_last_group() {
    const BEGIN_US: u64 = 1_700_000_000_000_000;
    let (source, backups) = history(7, 90);
    let (backup, from) = &backups[0];
    // A time is logged if it is 10 ms after the one before.
    let mut logged: Vec<u64> = vec![0];
    for (_, at_us) in &source.history[1..] {
        let before = logged.last().copied().filter(|_| logged.len() > 1);
        logged.push(before.filter(|before| *at_us < before + 10_000).unwrap_or(*at_us));
    }
    let last = source.history.len() - 1;
    for target in *from as usize..=last {
        for us in [0, 1, 9_999] {
            let stop_us = logged[target] + us;
            let expected =
                (*from as usize..=last).take_while(|n| *n as u64 == *from || logged[*n] <= stop_us).last();
            let expected = expected.expect("the backup itself");
            let (_, disk) = lay_out(backup, &source.repository);
            let stop = ApplyStop::Time(BEGIN_US + stop_us);
            let applied = match apply(&disk, None, stop) {
                // The backup is younger.
                Err(ApplyError::Unsuitable(_)) if target == *from as usize => continue,
                applied => applied.unwrap_or_else(|error| panic!("to {stop_us} us: {error}")),
            };
            assert!(applied.time_us <= BEGIN_US + stop_us);
            let state = (&source.history[expected].0, expected as u64);
            check(&disk, state, &format!("to {stop_us} us, transaction {expected}"));
        }
    }
}

#[test]
fn gaps_and_damage_are_named() {
    let (source, backups) = history(3, 80);
    let (backup, from) = &backups[0];
    let logs: Vec<String> =
        source.repository.borrow().keys().filter(|name| name.ends_with(".log")).cloned().collect();
    assert!(logs.len() > 4, "{logs:?}");
    let missing = &logs[logs.len() / 2];
    let whole = source.repository.borrow_mut().remove(missing).expect("there");
    let (_, disk) = lay_out(backup, &source.repository);
    match apply(&disk, None, ApplyStop::End) {
        Err(error @ ApplyError::Gap { .. }) => {
            let (from, to) =
                missing[9..].strip_suffix(".log").and_then(|name| name.split_once('-')).expect("a name");
            let lsn = |text: &str| u64::from_str_radix(text, 16).expect("digits").to_string();
            let text = error.to_string();
            assert!(text.contains(&lsn(from)) && text.contains(&lsn(to)), "{text} of {missing}");
        }
        other => panic!("{other:?}"),
    }
    // A moment before the gap needs nothing after it.
    let (_, disk) = lay_out(backup, &source.repository);
    apply(&disk, None, gtid(from + 1)).expect("before the gap");
    check(&disk, (&source.history[*from as usize + 1].0, from + 1), "before the gap");
    // Any flipped bit.
    for at in (0..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        source.repository.borrow_mut().insert(missing.clone(), damaged);
        let (_, disk) = lay_out(backup, &source.repository);
        let applied = apply(&disk, None, ApplyStop::End);
        assert!(matches!(applied, Err(ApplyError::Damaged(..))), "byte {at} of {missing}: {applied:?}");
    }
}

#[test]
fn a_restored_server_archives_on_a_timeline_of_its_own() {
    let (source, backups) = history(11, 70);
    let (backup, from) = &backups[0];
    let target = from + (source.load.borrow().trxs - from) / 2;
    let (memory, disk) = lay_out(backup, &source.repository);
    apply(&disk, None, gtid(target)).expect("applied");
    let mut load = Load::new(99);
    load.large_left = 0;
    load.model.clone_from(&source.history[target as usize].0);
    (load.trxs, load.next_index) = (target, source.load.borrow().next_index);
    let history = source.history[..=target as usize].to_vec();
    let repository = Rc::clone(&source.repository);
    let datadir = Some(Path::new(BACKUP));
    let rng = SeededRng::new(5);
    let mut restored =
        Source::start_at(memory, datadir, repository, RefCell::new(load), history, rng, source.elapsed_us);
    let timelines = restored.world.coordinator.timelines();
    assert_eq!((timelines.len(), timelines[0].number), (2, 1), "{timelines:?}");
    restored.connect().expect("connects");
    for _ in 0..30 {
        restored.step();
    }
    restored.archive_all();
    let last = restored.load.borrow().trxs;
    assert!(last > target);
    // The old backup to both ends.
    let (_, disk) = lay_out(backup, &restored.repository);
    apply(&disk, Some(timelines[1].number), ApplyStop::End).expect("the newest timeline");
    check(&disk, (&restored.history[last as usize].0, last), "the newest timeline");
    let (_, disk) = lay_out(backup, &restored.repository);
    apply(&disk, Some(1), ApplyStop::End).expect("the first timeline");
    let first = source.load.borrow().trxs;
    check(&disk, (&source.history[first as usize].0, first), "the first timeline");
    // A backup from after the branch is not restored to the other one.
    if let Some((late, _)) = backups.iter().find(|(_, from)| *from > target) {
        let (_, disk) = lay_out(late, &restored.repository);
        let applied = apply(&disk, Some(timelines[1].number), ApplyStop::End);
        assert!(matches!(applied, Err(ApplyError::Unsuitable(_))), "{applied:?}");
    }
}

#[test]
fn an_older_data_directory_does_not_continue_the_archive() {
    let (source, _) = history(5, 40);
    let older = source.memory.kill_clone();
    let Source { repository, load, history, rng, elapsed_us, .. } = {
        let mut source = source;
        for _ in 0..20 {
            source.step();
        }
        source.archive_all();
        source
    };
    let mut older = Source::start(older, repository, load, history, rng, elapsed_us);
    match older.connect() {
        Err(ArchiveError::Foreign(text)) => assert!(text.contains("another server archives"), "{text}"),
        other => panic!("{other:?}"),
    }
}
