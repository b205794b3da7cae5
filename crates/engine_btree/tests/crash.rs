//! Crashes and errors at every write and sync, checked against a model. The workload has transactions, aborts
//! after prepare, savepoints, deletions of ranges, long-lived views, purge, concurrent checkpoints, repeated
//! bulk loads and dropped indexes, with plain and with compressed pages. `CRASH_SEEDS=100` explores more.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{
    Batch, Direction, Engine, EngineError, EngineTrx, KeyRange, MemoryRedo, PageFormat, Participant, ReadAt,
    ReadView, Redo, ScanRequest,
};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{Fault, FaultFs, MemFs, Rng, SeededRng, SharedFs};

const TINY: BtreeOptions = BtreeOptions {
    pool_bytes: 4 * 16384,
    rollback_segments: 2,
    undo_bytes: 4096,
    young_views: 2,
    has_threads: false,
    wait_slot_of: || None,
};
/// Steps of a workload: transactions, purges, checkpoints, bulk loads.
const STEPS: u64 = 60;
/// Index that transactions write from the start.
const TABLE: IndexId = IndexId(16);
/// Index that is bulk loaded, then written by transactions.
const LOADED: IndexId = IndexId(17);
/// Index that only the long-lived open transaction writes, so its pages do not change otherwise.
const SELDOM: IndexId = IndexId(18);
/// First of the indexes that are filled and dropped. The number increases.
const FIRST_DROPPED: u32 = 100;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Writes = Vec<(IndexId, Vec<u8>, Option<Vec<u8>>)>;

#[derive(Clone)]
struct Loaded {
    rows: Rows,
    /// Number of transactions before the load.
    at: usize,
}

/// Expected state when the machine stops. The log belongs to the caller and is never lost: the position of an
/// entry is its LSN.
#[derive(Default)]
struct Model {
    log: Vec<(Redo, Writes)>,
    /// State after the last completed bulk load, which is durable.
    loaded: Option<Loaded>,
    /// LSN of the last checkpoint that finished, and of the last one that began.
    checkpoint_done: u64,
    checkpoint_tried: u64,
    /// State after a bulk load that failed but may be durable nevertheless.
    loading: Option<Loaded>,
    /// Number of dropped indexes.
    dropped: u32,
    /// Views and the rows that they must show.
    views: Vec<(ReadView, Rows)>,
    /// A long-lived transaction with installed parts. No other transaction writes its keys.
    open: Option<Open>,
}

struct Open {
    trx: Box<dyn EngineTrx>,
    files: MemoryRedo,
    writes: BTreeMap<(IndexId, Vec<u8>), Option<Vec<u8>>>,
}

impl Model {
    /// Returns the rows of an index after the first `upto` transactions, or after the last load if that came
    /// later.
    fn rows(&self, index: IndexId, upto: usize) -> Rows {
        let base = self.loaded.as_ref().filter(|_| index == LOADED);
        self.rows_from(base, index, upto)
    }

    fn rows_from(&self, base: Option<&Loaded>, index: IndexId, upto: usize) -> Rows {
        let (mut rows, from) = base.map_or_else(Default::default, |base| (base.rows.clone(), base.at));
        for (of, key, value) in self.log[from..upto.max(from)].iter().flat_map(|(_, writes)| writes) {
            match value {
                _ if *of != index => {}
                Some(value) => drop(rows.insert(key.clone(), value.clone())),
                None => drop(rows.remove(key)),
            }
        }
        rows
    }

    /// Returns whether the rows of the loaded index are a permitted state.
    fn is_loaded(&self, found: &Rows, upto: usize) -> bool {
        let bases = [self.loaded.as_ref(), self.loading.as_ref()];
        bases.into_iter().any(|base| *found == self.rows_from(base, LOADED, upto))
    }
}

/// Page format of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    Plain,
    /// The table's format changes from time to time.
    Compressed,
}

fn open(fs: &SharedFs, pages: Pages) -> Result<BtreeEngine, EngineError> {
    let engine = BtreeEngine::open(ParticipantId(1), fs, Path::new("/btree"), TINY)?;
    if pages == Pages::Compressed {
        engine.set_page_format(&[TABLE], PageFormat::CompressedPages { level: Some(1) });
        engine.set_page_format(&[LOADED], PageFormat::CompressedRows);
    }
    Ok(engine)
}

fn rows(engine: &BtreeEngine, index: IndexId) -> Rows {
    rows_at(engine, ReadAt::Latest, index, Direction::Forward).expect("reads")
}

fn rows_at(
    engine: &BtreeEngine,
    at: ReadAt<'_>,
    index: IndexId,
    direction: Direction,
) -> Result<Rows, EngineError> {
    let mut batch = Batch::default();
    assert!(!engine.begin().scan(
        &ScanRequest { at, index, range: &KeyRange::default(), direction, limit: 1 << 20 },
        &mut batch
    )?);
    let rows: Rows = batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert_eq!(rows.len(), batch.len(), "a key comes once");
    Ok(rows)
}

/// Asserts that CHECK TABLE reports no problems.
fn verify(engine: &BtreeEngine, what: &str) {
    for index in engine.indexes().expect("lists") {
        let problems = engine.verify(index, &mut |_| true).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(problems.is_empty(), "{what}: {problems:?}");
    }
}

fn write_some(
    engine: &BtreeEngine,
    rng: &SeededRng,
    has_loaded: bool,
) -> Result<(Redo, Writes), EngineError> {
    let mut trx = engine.begin();
    let (files, has_parts) = (MemoryRedo::default(), rng.below(3) == 0);
    let mut writes: BTreeMap<(IndexId, Vec<u8>), Option<Vec<u8>>> = BTreeMap::new();
    if rng.below(4) == 0 {
        // Empties leaves.
        let (from, most) = (rng.below(400), 20 + rng.below(150));
        for n in from..(from + most).min(400) {
            let key = format!("row {n:04}").into_bytes();
            trx.delete(TABLE, &key)?;
            writes.insert((TABLE, key), None);
        }
    }
    for _ in 0..1 + rng.below(40) {
        let index = if has_loaded && rng.below(3) == 0 { LOADED } else { TABLE };
        let key = format!("row {:04}", rng.below(400)).into_bytes();
        if has_parts && rng.below(10) == 0 {
            trx.install_part(&files)?;
        }
        if rng.below(12) == 0 {
            let savepoint = trx.savepoint();
            trx.put(index, &key, b"undone")?;
            trx.delete(TABLE, b"row 0000")?;
            trx.rollback_to(savepoint);
        } else if rng.below(4) == 0 {
            trx.delete(index, &key)?;
            writes.insert((index, key), None);
        } else {
            let len = if rng.below(30) == 0 { 9000 } else { 20 + rng.below(400) };
            let value = vec![rng.below(256) as u8; len as usize];
            trx.put(index, &key, &value)?;
            writes.insert((index, key), Some(value));
        }
    }
    let writes = writes.into_iter().map(|((index, key), value)| (index, key, value)).collect();
    Ok((files.prepare(&mut *trx)?, writes))
}

fn commit(engine: &BtreeEngine, model: &mut Model, (redo, writes): (Redo, Writes)) {
    let seq = model.log.len() as u64 + 1;
    engine.commit_ordered(CommitSeq(seq), &[&redo]);
    model.log.push((Redo::new(redo.bytes.clone()), writes));
}

/// Loads the index. A later load has keys between those of earlier ones.
fn load(engine: &BtreeEngine, rng: &SeededRng, model: &mut Model) -> Result<(), EngineError> {
    let (round, first) = (rng.below(1000), rng.below(300));
    let mut rows = model.rows(LOADED, model.log.len());
    let fresh: Rows = (first..first + 50 + rng.below(300))
        .map(|n| {
            let len = if rng.below(40) == 0 { 7000 } else { 30 + rng.below(120) };
            (format!("row {n:04}/{round:04}").into_bytes(), vec![n as u8; len as usize])
        })
        .filter(|(key, _)| !rows.contains_key(key))
        .collect();
    rows.extend(fresh.clone());
    let after = Loaded { rows, at: model.log.len() };
    model.loading.get_or_insert_with(|| after.clone());
    let mut load = engine.bulk_load(LOADED)?;
    fresh.iter().try_for_each(|(key, value)| load.add(key, value))?;
    load.finish()?;
    (model.loaded, model.loading) = (Some(after), None);
    Ok(())
}

/// Installs another part of the long-lived transaction.
fn install_part(engine: &BtreeEngine, rng: &SeededRng, model: &mut Model) -> Result<(), EngineError> {
    let mut open = model.open.take().unwrap_or_else(|| Open {
        trx: engine.begin(),
        files: MemoryRedo::default(),
        writes: BTreeMap::new(),
    });
    let (first, index) = (rng.below(350), if rng.below(2) == 0 { TABLE } else { SELDOM });
    for n in first..first + 1 + rng.below(50) {
        // Between the keys of other transactions.
        let key = format!("row {n:04}+").into_bytes();
        let len = if rng.below(20) == 0 { 9000 } else { 20 + rng.below(300) };
        let value = (rng.below(4) > 0).then(|| vec![rng.below(256) as u8; len as usize]);
        match &value {
            Some(value) => open.trx.put(index, &key, value)?,
            None => open.trx.delete(index, &key)?,
        }
        open.writes.insert((index, key), value);
    }
    // After an error the transaction is dropped.
    open.trx.install_part(&open.files)?;
    model.open = Some(open);
    Ok(())
}

/// Commits or drops the long-lived transaction.
fn end_open(engine: &BtreeEngine, rng: &SeededRng, model: &mut Model) -> Result<(), EngineError> {
    let Some(mut open) = model.open.take() else { return Ok(()) };
    let redo = open.files.prepare(&mut *open.trx)?;
    if rng.below(4) > 0 {
        let writes = open.writes.into_iter().map(|((index, key), value)| (index, key, value)).collect();
        commit(engine, model, (redo, writes));
    }
    Ok(())
}

/// Runs a step that may also happen during a checkpoint.
fn small_step(engine: &BtreeEngine, rng: &SeededRng, model: &mut Model) -> Result<(), EngineError> {
    match rng.below(19) {
        16 | 17 => install_part(engine, rng, model)?,
        18 => end_open(engine, rng, model)?,
        0..=8 => {
            let written = write_some(engine, rng, model.loaded.is_some())?;
            if rng.below(6) > 0 {
                commit(engine, model, written);
            }
        }
        9 | 10 => drop(engine.purge()?),
        11 => load(engine, rng, model)?,
        12 => {
            let index = IndexId(FIRST_DROPPED + model.dropped);
            let mut trx = engine.begin();
            for n in 0..rng.below(300) {
                trx.put(index, &n.to_be_bytes(), &vec![1; if n % 70 == 3 { 5000 } else { 90 }])?;
            }
            if !trx.is_read_only() {
                let redo = trx.prepare()?;
                commit(engine, model, (redo, Vec::new()));
            }
        }
        13 => {
            engine.drop_indexes(&[IndexId(FIRST_DROPPED + model.dropped)])?;
            model.dropped += 1;
        }
        14 if model.views.len() < 3 => {
            let seq = model.log.len();
            let view = ReadView::new(CommitSeq(seq as u64), vec![(engine.id(), engine.snapshot())]);
            model.views.push((view, model.rows(TABLE, seq)));
        }
        _ => {
            if !model.views.is_empty() {
                let (view, expected) = model.views.remove(rng.below(model.views.len() as u64) as usize);
                let direction = if rng.below(2) == 0 { Direction::Forward } else { Direction::Backward };
                assert_eq!(rows_at(engine, ReadAt::View(&view), TABLE, direction)?, expected, "a view");
            }
        }
    }
    Ok(())
}

/// Runs one random step. An error means that the machine stopped or that a file operation failed.
fn step(engine: &BtreeEngine, rng: &SeededRng, model: &mut Model) -> Result<(), EngineError> {
    if rng.below(6) > 0 {
        return small_step(engine, rng, model);
    }
    let lsn = model.log.len() as u64;
    let task = engine.begin_checkpoint(Lsn(lsn))?;
    model.checkpoint_tried = lsn;
    // Other transactions continue while it runs. Their LSNs are after the checkpoint's.
    let concurrent = (0..rng.below(5)).try_for_each(|_| small_step(engine, rng, model));
    task.finish()?;
    model.checkpoint_done = lsn;
    concurrent
}

/// A start and a replay count each entry once, even if it was undecided or deleted at the checkpoint.
fn check_counts(engine: &BtreeEngine, what: &str) {
    for index in [TABLE, SELDOM, LOADED] {
        let counted = rows(engine, index).len() as u64;
        assert_eq!(engine.stats(index).entries, counted, "{what}: entries of {index}");
    }
}

/// Checks that the disk holds the state of a checkpoint after the workload stopped, and that replaying the
/// log restores everything.
fn check(fs: &SharedFs, pages: Pages, model: &Model, what: &str) {
    let engine = open(fs, pages).unwrap_or_else(|e| panic!("{what}: {e}"));
    let durable = engine.durable_lsn().0;
    // After a failed sync it is unknown whether the attempted checkpoint is in force.
    assert!(
        (model.checkpoint_done..=model.checkpoint_tried.max(model.checkpoint_done)).contains(&durable),
        "{what}: durable at {durable}, checkpoint {} done and {} tried",
        model.checkpoint_done,
        model.checkpoint_tried
    );
    for index in [TABLE, SELDOM] {
        let expected = model.rows(index, durable as usize);
        assert_eq!(rows(&engine, index), expected, "{what}: the checkpoint's rows of {index}");
    }
    assert!(model.is_loaded(&rows(&engine, LOADED), durable as usize), "{what}: the loaded rows");
    check_counts(&engine, what);
    verify(&engine, what);
    let redo: Vec<Redo> = model.log[durable as usize..].iter().map(|(redo, _)| redo.clone()).collect();
    engine.replay(&redo).expect("replays");
    let all = model.log.len();
    for index in [TABLE, SELDOM] {
        assert!(rows(&engine, index) == model.rows(index, all), "{what}: replayed rows of {index}");
    }
    assert!(model.is_loaded(&rows(&engine, LOADED), all), "{what}: replayed rows after a load");
    check_counts(&engine, what);
    // The engine can continue from there.
    let lsn = Lsn(model.log.len() as u64);
    engine.begin_checkpoint(lsn).expect("begins").finish().expect("finishes");
    drop(engine);
    let engine = open(fs, pages).expect("opens");
    assert_eq!(
        rows(&engine, TABLE),
        model.rows(TABLE, model.log.len()),
        "{what}: the next checkpoint's rows"
    );
    check_counts(&engine, what);
}

fn runs() -> impl Iterator<Item = (u64, Pages)> {
    let seeds = std::env::var("CRASH_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    (0..seeds).flat_map(|seed| [(seed, Pages::Plain), (seed, Pages::Compressed)])
}

/// Runs the workload to its end or to its first error.
fn run(fs: &SharedFs, pages: Pages, rng: &SeededRng, model: &mut Model) -> Result<(), EngineError> {
    let engine = open(fs, pages)?;
    let done = (0..STEPS).try_for_each(|n| {
        alter(&engine, pages, n);
        step(&engine, rng, model)
    });
    model.open = None;
    done
}

/// Changes the page format of the table from time to time.
fn alter(engine: &BtreeEngine, pages: Pages, step: u64) {
    if pages == Pages::Compressed && step.is_multiple_of(7) {
        let form = match step / 7 % 2 {
            0 => PageFormat::CompressedPages { level: None },
            _ => PageFormat::Plain,
        };
        engine.set_page_format(&[TABLE], form);
    }
}

#[test]
fn a_crash_at_any_write_or_sync_leaves_a_checkpoint() {
    for (seed, pages) in runs() {
        for at in 0.. {
            let memory = MemFs::new();
            let faulty = FaultFs::new(Arc::new(memory.clone()));
            faulty.set(Fault::CrashAt(at));
            let fs: SharedFs = Arc::new(faulty.clone());
            let mut model = Model::default();
            let _ = run(&fs, pages, &SeededRng::new(seed), &mut model);
            if !faulty.crashed() {
                println!("seed {seed}, {pages:?}: {at} operations");
                break;
            }
            for power in 0..2 {
                let left: SharedFs = Arc::new(memory.crash_clone(seed * 1000 + at * 2 + power));
                let what = format!("{pages:?} seed {seed} operation {at} power failure {power}");
                check(&left, pages, &model, &what);
            }
        }
    }
}

#[test]
fn an_error_at_any_write_or_sync_loses_nothing() {
    let mut retried = 0;
    for (seed, pages) in runs() {
        for at in 0.. {
            let memory = MemFs::new();
            let faulty = FaultFs::new(Arc::new(memory.clone()));
            let fs: SharedFs = Arc::new(faulty.clone());
            let (rng, mut model) = (SeededRng::new(seed), Model::default());
            let engine = open(&fs, pages).expect("opens");
            let first = faulty.ops();
            faulty.set(Fault::ErrorAt(first + at, std::io::ErrorKind::StorageFull));
            let mut failures = 0;
            for n in 0..STEPS {
                alter(&engine, pages, n);
                failures += u64::from(step(&engine, &rng, &mut model).is_err());
            }
            let what = format!("{pages:?} seed {seed} error at {at}");
            assert_eq!(rows(&engine, TABLE), model.rows(TABLE, model.log.len()), "{what}");
            assert_eq!(rows(&engine, LOADED), model.rows(LOADED, model.log.len()), "{what}");
            assert_eq!(rows(&engine, SELDOM), model.rows(SELDOM, model.log.len()), "{what}");
            verify(&engine, &what);
            (model.views, model.open) = (Vec::new(), None);
            retried += u64::from(failures == 1);
            let is_over = faulty.ops() <= first + at;
            drop(engine);
            let left: SharedFs = Arc::new(memory.kill_clone());
            check(&left, pages, &model, &what);
            if is_over {
                break;
            }
        }
    }
    assert!(retried > 10, "most errors fail one step, and a failed sync all later checkpoints: {retried}");
}
