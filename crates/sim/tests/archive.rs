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
use std::sync::atomic::Ordering;
use std::time::Duration;

use cohort_backup_format::{Frame, LogRange, Start, TimelineStart, chained};
use cohort_base::{DomainId, Gtid, ServerId};
use cohort_commit::{
    ApplyError, ApplyStop, ArchiveError, ArchiveLink, ArchiveSyncOptions, Archiver, BackupControl,
    BackupRequest, DirectorySink, LogLayout, ReplicaPositions, ServerIdentity, apply_archive,
};
use cohort_sim::{Bank, Disk, Logged, Script, Setup, World};
use cohort_vfs::{Fs, MemFs, OpenMode, Rng, SeededRng, World as Machine};
use load::{Load, Model, contents};

const BACKUP: &str = "/backup";
const ARCHIVE: &str = "/archive";

const LAYOUTS: [LogLayout; 2] = [LogLayout::Shared, LogLayout::Separate];

fn setup(layout: LogLayout) -> Setup {
    Setup { is_archived: true, ..Setup::of(layout) }
}

/// Objects by name.
type Repository = Rc<RefCell<BTreeMap<String, Vec<u8>>>>;

fn is_log(name: &str) -> bool {
    name.ends_with(".log")
}

fn range_of(bytes: &[u8]) -> LogRange {
    match Frame::decode(bytes) {
        Ok(Some((Frame::Range(range), _))) => range,
        other => panic!("{other:?}"),
    }
}

/// The program, with its repository.
struct Program {
    repository: Repository,
    answers: VecDeque<Frame>,
    up_to: u64,
    /// Acknowledgements are sent only then.
    acknowledges: bool,
    /// Frames that it takes before it is killed.
    frames_left: u64,
    /// Ranges that it stores; it loses those after them.
    stores_left: u64,
    /// Ranges that it was sent.
    sent: Vec<LogRange>,
}

impl Program {
    fn new(repository: &Repository) -> Program {
        let (repository, answers) = (Rc::clone(repository), VecDeque::new());
        Program {
            repository,
            answers,
            up_to: 0,
            acknowledges: true,
            frames_left: u64::MAX,
            stores_left: u64::MAX,
            sent: Vec::new(),
        }
    }

    fn take(&mut self, frame: Frame) {
        let mut objects = self.repository.borrow_mut();
        match frame {
            Frame::Hello(hello) => {
                let timeline = hello.timelines.last().expect("it has one").timeline;
                let of_timeline = format!("{timeline:08x}/");
                let mut start =
                    Start { timeline, lsn: hello.lsn, chain: 0, proof_lsn: hello.lsn, proof_chain: 0 };
                let logs = objects.iter().filter(|(name, _)| name.starts_with(&of_timeline) && is_log(name));
                for (n, range) in logs.map(|(_, bytes)| range_of(bytes)).enumerate() {
                    let chain = range.chain.expect("it has one");
                    if n == 0 || start.proof_lsn < hello.proof_lsn || range.from != start.lsn {
                        (start.proof_lsn, start.proof_chain) = (range.from, chain);
                    }
                    (start.lsn, start.chain) = (range.to, chained(chain, &range.bytes));
                }
                if start.proof_lsn < hello.proof_lsn {
                    (start.proof_lsn, start.proof_chain) = (start.lsn, start.chain);
                }
                // The server may not have the log from there any more.
                self.up_to = start.lsn.max(hello.lsn);
                self.answers.push_back(Frame::Start(start));
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
                self.sent.push(range.clone());
                self.up_to = to;
                if self.stores_left == 0 {
                    return;
                }
                self.stores_left -= 1;
                let name = format!("{timeline:08x}/{:016x}-{to:016x}.log", range.from);
                let mut bytes = Vec::new();
                Frame::Range(range).encode(&mut bytes);
                assert!(objects.insert(name, bytes).is_none(), "an object is written once");
                if self.acknowledges {
                    self.answers.push_back(Frame::Ack(TimelineStart { timeline, lsn: to }));
                }
            }
            // Every range is acknowledged at once.
            Frame::Flush => {}
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
    setup: Setup,
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
    fn new(layout: LogLayout, seed: u64) -> Source {
        let memory = MemFs::new();
        let repository = Repository::default();
        let mut load = Load::new(seed);
        load.large_left = u32::from(seed == 2);
        Source::start(
            setup(layout),
            memory,
            repository,
            RefCell::new(load),
            vec![(Model::new(), 0)],
            SeededRng::new(seed),
            0,
        )
    }

    #[allow(clippy::too_many_arguments)]
    fn start(
        setup: Setup,
        memory: MemFs,
        repository: Repository,
        load: RefCell<Load>,
        history: Vec<(Model, u64)>,
        rng: SeededRng,
        elapsed_us: u64,
    ) -> Source {
        Source::start_at((setup, memory), None, repository, load, history, rng, elapsed_us)
    }

    #[allow(clippy::too_many_arguments)]
    fn start_at(
        (setup, memory): (Setup, MemFs),
        datadir: Option<&Path>,
        repository: Repository,
        load: RefCell<Load>,
        history: Vec<(Model, u64)>,
        rng: SeededRng,
        elapsed_us: u64,
    ) -> Source {
        let disk: Disk = Arc::new(memory.clone());
        let world = match datadir {
            None => World::open_as(&disk, setup),
            Some(datadir) => World::open_at(&disk, datadir, setup),
        };
        let world = world.expect("opens");
        world.clock.advance(Duration::from_micros(elapsed_us));
        let archiver = Archiver::new(Arc::clone(&world.coordinator)).expect("the log is archived");
        Source { setup, memory, world, archiver, program: None, repository, load, history, rng, elapsed_us }
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
        let Source { setup, memory, world, repository, load, history, rng, elapsed_us, archiver, program } =
            self;
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
        Source::start(setup, memory, repository, load, history, rng, elapsed_us)
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
            parent: None,
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
fn check(disk: &Disk, layout: LogLayout, (model, trxs): (&Model, u64), what: &str) {
    let world = World::open_at(disk, Path::new(BACKUP), setup(layout));
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

fn layouts_and_seeds(seeds: u64) -> impl Iterator<Item = (LogLayout, u64)> {
    LAYOUTS.into_iter().flat_map(move |layout| (0..seeds).map(move |seed| (layout, seed)))
}

fn seeds() -> u64 {
    if std::env::var_os("COHORT_LONG_TESTS").is_some() { 300 } else { 2 }
}

/// Returns a source with a history, and its backups.
fn history(layout: LogLayout, seed: u64, steps: u64) -> (Source, Vec<(MemFs, u64)>) {
    let mut source = Source::new(layout, seed);
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
    for (layout, seed) in layouts_and_seeds(seeds()) {
        let (source, backups) = history(layout, seed, 60 + 20 * (seed % 4));
        let last = source.load.borrow().trxs;
        for (n, (backup, from)) in backups.iter().enumerate() {
            for seq_no in from + 1..=last {
                let what = format!(
                    "{layout}, seed {seed}, backup {n} (transaction {from}), to transaction {seq_no} of {last}"
                );
                let (_, disk) = lay_out(backup, &source.repository);
                let applied =
                    apply(&disk, None, gtid(seq_no)).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!((applied.transactions, applied.is_reached), (seq_no - from, true), "{what}");
                check(&disk, layout, (&source.history[seq_no as usize].0, seq_no), &what);
            }
            let (_, disk) = lay_out(backup, &source.repository);
            apply(&disk, None, ApplyStop::End)
                .unwrap_or_else(|error| panic!("{layout}, seed {seed}: {error}"));
            check(
                &disk,
                layout,
                (&source.history[last as usize].0, last),
                &format!("{layout}, seed {seed}, backup {n}, to the end"),
            );
            // What has been applied is not applied twice, and a GTID that is not there is no end.
            assert!(matches!(apply(&disk, None, ApplyStop::End), Err(ApplyError::NotACopy(_))));
            let (_, disk) = lay_out(backup, &source.repository);
            assert!(matches!(apply(&disk, None, gtid(last + 1)), Err(ApplyError::Unsuitable(_))));
        }
    }
}

/// The machine is lost with its disk, at any step. Bounds of what a client has seen: the repository has every
/// acknowledged commit, unless the gate was turned off before.
#[test]
fn with_archive_sync_the_repository_has_every_acknowledged_commit() {
    let options = |is_enabled| ArchiveSyncOptions { is_enabled, timeout: Duration::from_secs(10) };
    let (mut kills, mut held) = (0, 0);
    for (layout, seed) in layouts_and_seeds(5 * seeds()) {
        let script = Script { seed, transfers: 10 + 3 * (seed % 20), resets: false, logged: Logged::All };
        let mut source = Source::new(layout, seed);
        assert!(source.world.coordinator.set_archive_sync(options(true)));
        let (backup, _) = source.back_up();
        let world = source.world.clone();
        let mut bank = Bank::default();
        bank.run_gated(&world, script, &mut || {
            world.clock.advance(Duration::from_millis(source.rng.below(30)));
            match source.rng.below(6) {
                0 => held += 1,
                1 => {
                    if source.program.is_none() {
                        source.connect().expect("connects");
                    }
                    source.program.as_mut().expect("connected").frames_left = source.rng.below(5);
                    kills += u64::from(!source.archive());
                }
                _ => drop(source.archive()),
            }
        });
        let counters = world.coordinator.archive_sync_counters();
        assert!(counters.is_on && counters.unacknowledged == 0, "{counters:?}");
        let (_, disk) = lay_out(&backup, &source.repository);
        apply(&disk, None, ApplyStop::End).expect("applies");
        let restored = World::open_at(&disk, Path::new(BACKUP), setup(layout)).expect("opens");
        let there = restored.transfers_done();
        let newest = bank.acknowledged.iter().max().map_or(0, |n| n + 1);
        assert!(there >= newest, "seed {seed}: {there} are restored, {newest} were acknowledged");
        // What waits continues to wait at a stop, and is archived at the stop at the latest.
        world.coordinator.set_archive_sync(options(false));
        source.archive_all();
        assert_eq!(world.coordinator.acknowledged(), world.coordinator.placed());
    }
    assert!(kills > 0 && held > 0, "{kills} kills, {held} times nothing was sent");
}

#[test]
fn a_time_is_the_end_of_its_last_group() {
    for layout in LAYOUTS {
        const BEGIN_US: u64 = 1_700_000_000_000_000;
        let (source, backups) = history(layout, 7, 90);
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
                let expected = (*from as usize..=last)
                    .take_while(|n| *n as u64 == *from || logged[*n] <= stop_us)
                    .last();
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
                check(&disk, layout, state, &format!("to {stop_us} us, transaction {expected}"));
            }
        }
    }
}

#[test]
fn ranges_that_are_sent_again_have_their_times() {
    for layout in LAYOUTS {
        let (mut source, _) = history(layout, 17, 40);
        let program = source.program.as_mut().expect("connected");
        (program.stores_left, program.sent) = (1, Vec::new());
        for _ in 0..4 {
            source.elapsed_us += 5_000_000;
            source.world.clock.advance(Duration::from_secs(5));
            commit_equal(&mut source);
            assert!(source.archive());
        }
        let first = source.program.take().expect("connected").sent;
        source.archive_all();
        let again = &source.program.as_ref().expect("connected").sent;
        assert!(first.len() == 4 && !again.is_empty(), "{} and {}", first.len(), again.len());
        // The repository has the first one only.
        assert_eq!(again[0].from, first[1].from);
        let times = |ranges: &[LogRange]| -> (u64, u64) {
            (ranges[0].first_us, ranges.last().expect("there is one").last_us)
        };
        assert_eq!(times(again), times(&first[1..]));
        assert!(first[1].first_us < first[3].last_us, "the clock goes on");
    }
}

#[test]
fn gaps_and_damage_are_named() {
    for layout in LAYOUTS {
        let (source, backups) = history(layout, 3, 80);
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
        check(&disk, layout, (&source.history[*from as usize + 1].0, from + 1), "before the gap");
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
}

#[test]
fn a_restored_server_archives_on_a_timeline_of_its_own() {
    for layout in LAYOUTS {
        let (source, backups) = history(layout, 11, 70);
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
        let mut restored = Source::start_at(
            (setup(layout), memory),
            datadir,
            repository,
            RefCell::new(load),
            history,
            rng,
            source.elapsed_us,
        );
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
        check(&disk, layout, (&restored.history[last as usize].0, last), "the newest timeline");
        let (_, disk) = lay_out(backup, &restored.repository);
        apply(&disk, Some(1), ApplyStop::End).expect("the first timeline");
        let first = source.load.borrow().trxs;
        check(&disk, layout, (&source.history[first as usize].0, first), "the first timeline");
        // A backup from after the branch is not restored to the other one.
        if let Some((late, _)) = backups.iter().find(|(_, from)| *from > target) {
            let (_, disk) = lay_out(late, &restored.repository);
            let applied = apply(&disk, Some(timelines[1].number), ApplyStop::End);
            assert!(matches!(applied, Err(ApplyError::Unsuitable(_))), "{applied:?}");
        }
    }
}

#[test]
fn an_older_data_directory_does_not_continue_the_archive() {
    for layout in LAYOUTS {
        let (source, _) = history(layout, 5, 40);
        let older = source.memory.kill_clone();
        let Source { repository, load, history, rng, elapsed_us, .. } = {
            let mut source = source;
            for _ in 0..20 {
                source.step();
            }
            source.archive_all();
            source
        };
        let mut older = Source::start(setup(layout), older, repository, load, history, rng, elapsed_us);
        match older.connect() {
            Err(ArchiveError::Foreign(text)) => assert!(text.contains("another server archives"), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

/// Restarts a copy of a data directory, with the load and the history of the original.
fn copy_of(source: &Source, left: MemFs, seed: u64) -> Source {
    let mut load = Load::new(seed);
    let original = source.load.borrow();
    load.model.clone_from(&original.model);
    (load.trxs, load.next_index, load.large_left) = (original.trxs, original.next_index, 0);
    let (repository, history) = (Rc::clone(&source.repository), source.history.clone());
    Source::start(
        source.setup,
        left,
        repository,
        RefCell::new(load),
        history,
        SeededRng::new(seed),
        source.elapsed_us + 20_000,
    )
}

/// Commits a transaction whose records have the same size in each server.
fn commit_equal(source: &mut Source) {
    let mut load = source.load.borrow_mut();
    load.insert_one(&source.world);
    source.history.push((load.model.clone(), source.elapsed_us));
}

#[test]
fn a_copy_whose_records_begin_where_those_of_the_original_do_is_refused_for_ever() {
    for layout in LAYOUTS {
        let (mut source, backups) = history(layout, 13, 40);
        let mut copy = copy_of(&source, source.memory.kill_clone(), 77);
        // Another restart, so that both have as many.
        source = source.restart(1);
        let (at, both) = (source.load.borrow().trxs, 12);
        for _ in 0..both {
            commit_equal(&mut source);
            commit_equal(&mut copy);
        }
        source.archive_all();
        for round in 0..3 {
            commit_equal(&mut copy);
            match copy.connect() {
                Err(error @ ArchiveError::Foreign(_)) => {
                    assert!(error.to_string().contains("has another log"), "{error}");
                    copy.archiver.refuse(&error);
                }
                other => panic!("round {round}: {other:?}"),
            }
            // The record of it outlives the server, and even the part of the log that proves it.
            copy = copy.restart(round);
            let refused = copy.archiver.check_refusal();
            assert!(matches!(refused, Err(ArchiveError::Foreign(_))), "round {round}: {refused:?}");
        }
        // The original goes on.
        source.step();
        source.archive_all();
        let last = source.load.borrow().trxs;
        let (_, disk) = lay_out(&backups[0].0, &source.repository);
        apply(&disk, None, ApplyStop::End).expect("one log");
        check(&disk, layout, (&source.history[last as usize].0, last), "the original");
        assert!(last >= at + both);
    }
}

#[test]
fn ranges_of_two_logs_are_not_restored_as_one() {
    for layout in LAYOUTS {
        let (mut source, backups) = history(layout, 13, 40);
        let mut copy = copy_of(&source, source.memory.kill_clone(), 77);
        source = source.restart(1);
        let fork = source.repository.borrow().keys().filter(|name| is_log(name)).count();
        // Each archives to a place of its own.
        copy.repository = Rc::new(RefCell::new(source.repository.borrow().clone()));
        let own = |it: &Source| -> Vec<String> {
            it.repository.borrow().keys().filter(|name| is_log(name)).skip(fork).cloned().collect()
        };
        for _ in 0..6 {
            commit_equal(&mut source);
            commit_equal(&mut copy);
            source.archive_all();
            copy.archive_all();
        }
        assert_eq!(own(&source), own(&copy), "the ranges have the same borders");
        // Any range of the other log, and all of them from one on.
        let names = own(&source);
        for n in 0..names.len() {
            let theirs = |name: &String| copy.repository.borrow()[name].clone();
            for mixed in [&names[n..=n], &names[n..]] {
                // The last ones alone continue in no other log.
                let repository = Rc::new(RefCell::new(source.repository.borrow().clone()));
                mixed
                    .iter()
                    .for_each(|name| drop(repository.borrow_mut().insert(name.clone(), theirs(name))));
                let (_, disk) = lay_out(&backups[0].0, &repository);
                let applied = apply(&disk, None, ApplyStop::End);
                let is_whole = n == 0 && mixed.len() == names.len();
                match applied {
                    Err(ApplyError::Mixed(..)) if !is_whole => {}
                    Ok(_) if is_whole => {}
                    other => panic!("range {n}, {} of them: {other:?}", mixed.len()),
                }
            }
        }
        let late = copy.back_up().0;
        for _ in 0..3 {
            commit_equal(&mut source);
            commit_equal(&mut copy);
            source.archive_all();
            copy.archive_all();
        }
        // A backup of the copy, and the log of the original.
        let (_, disk) = lay_out(&late, &source.repository);
        let applied = apply(&disk, None, ApplyStop::End);
        assert!(matches!(applied, Err(ApplyError::Mixed(..))), "{applied:?}");
        let (_, disk) = lay_out(&late, &copy.repository);
        apply(&disk, None, ApplyStop::End).expect("its own log");
    }
}

/// The repository and the files at the end of a phase of a server.
struct PhaseEnd {
    repository: Repository,
    model: Model,
    disk: MemFs,
}

fn file(memory: &MemFs, path: &Path) -> Option<Vec<u8>> {
    let file = memory.open(path, OpenMode::Read).ok()?;
    let mut bytes = vec![0; file.len().expect("its length") as usize];
    assert_eq!(file.read_at(&mut bytes, 0).expect("read"), bytes.len());
    // The flag of an open file.
    bytes[21..23].fill(0);
    Some(bytes)
}

#[test]
fn a_server_whose_binlog_was_turned_on_or_renamed_is_restored_with_the_last_one() {
    const NAMES: [Option<&str>; 6] =
        [Some("binlog"), None, Some("first"), Some("second"), Some("first"), None];
    for layout in LAYOUTS {
        let mut source = Source::new(layout, 21);
        let (mut backups, mut ends) = (Vec::new(), Vec::new());
        for (phase, name) in NAMES.into_iter().enumerate() {
            if phase > 0 {
                source.setup.binlog = name;
                source = source.restart(0);
            }
            backups.push(source.back_up().0);
            (0..15).for_each(|_| source.step());
            source.archive_all();
            if name.is_some() {
                source.world.binlog_files().expect("written");
            }
            ends.push(PhaseEnd {
                repository: Rc::new(RefCell::new(source.repository.borrow().clone())),
                model: source.load.borrow().model.clone(),
                disk: source.memory.kill_clone(),
            });
        }
        for (begun, backup) in backups.iter().enumerate() {
            for (phase, end) in ends.iter().enumerate().skip(begun) {
                let what = format!("{layout}, backup of phase {begun}, end of phase {phase}");
                let (memory, disk) = lay_out(backup, &end.repository);
                let applied = apply(&disk, None, ApplyStop::End).unwrap_or_else(|e| panic!("{what}: {e}"));
                let name = NAMES[begun..=phase].iter().rev().copied().find(Option::is_some).flatten();
                assert_eq!(applied.new_binlog.as_deref(), name.filter(|_| name != NAMES[begun]), "{what}");
                let setup = Setup { binlog: name, ..setup(layout) };
                let world = World::open_at(&disk, Path::new(BACKUP), setup);
                let world = world.unwrap_or_else(|error| panic!("{what}: {error}"));
                world.engines.iter().for_each(|it| assert!(contents(&**it) == end.model, "{what}"));
                let Some(_) = name else { continue };
                let files = world.binlog_files().expect("written");
                assert!(files.len() > 1, "{what}: {files:?}");
                // The last one is that of this start.
                for path in &files[..files.len() - 1] {
                    let original = Path::new("/data").join(path.file_name().expect("a name"));
                    let original = file(&end.disk, &original);
                    assert!(file(&memory, path) == original, "{what}: {}", path.display());
                }
            }
        }
    }
}

#[test]
fn a_converted_directory_does_not_continue_the_archive_of_the_other_layout() {
    for (n, layout) in LAYOUTS.into_iter().enumerate() {
        let other = LAYOUTS[1 - n];
        let (mut source, backups) = history(layout, 23, 30);
        source.archive_all();
        let Source { memory, world, archiver, program, repository, load, history, rng, elapsed_us, .. } =
            source;
        drop((archiver, program));
        world.coordinator.close().expect("closes");
        let engines = world.engines.iter().map(|engine| (engine.id(), engine.durable_lsn()));
        let engines: Vec<_> = engines.collect();
        drop(world);
        let machine = Machine::sim(Arc::new(memory.clone()), 1);
        let logs = cohort_log::LogOptions { segment_bytes: 32 << 10, ..cohort_log::LogOptions::default() };
        cohort_commit::convert(&machine, Path::new("/data"), &logs, &engines, other).expect("converted");
        let mut source =
            Source::start(setup(other), memory, repository, load, history, rng, elapsed_us + 20_000);
        let gaps = |source: &Source| source.world.coordinator.archive().gaps.load(Ordering::Relaxed);
        source.connect().expect("connects");
        assert_eq!(gaps(&source), 1, "{layout}");
        (0..5).for_each(|_| source.step());
        source.archive_all();
        let (_, disk) = lay_out(&backups[0].0, &source.repository);
        let applied = apply(&disk, None, ApplyStop::End);
        assert!(matches!(applied, Err(ApplyError::Gap { .. })), "{layout}: {applied:?}");
        // A backup of the new layout has no gap after it.
        let (backup, _) = source.back_up();
        (0..5).for_each(|_| source.step());
        source.archive_all();
        let last = source.load.borrow().trxs;
        let (_, disk) = lay_out(&backup, &source.repository);
        apply(&disk, None, ApplyStop::End).expect("applies");
        check(&disk, other, (&source.history[last as usize].0, last), "converted");
    }
}
