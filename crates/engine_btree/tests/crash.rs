//! Crash at every write and sync, and an error at every one, against a model. `CRASH_SEEDS=100` explores
//! longer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{Batch, Direction, Engine, EngineError, KeyRange, Participant, ReadAt, Redo};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{Fault, FaultFs, MemFs, Rng, SeededRng, SharedFs};

const TINY: BtreeOptions = BtreeOptions { pool_bytes: 4 * 16384, rollback_segments: 2, has_threads: false };
/// Of a workload: transactions, purges, checkpoints, a bulk load.
const STEPS: u64 = 45;
/// Written by transactions from the start.
const TABLE: IndexId = IndexId(16);
/// Bulk loaded, then written by transactions.
const LOADED: IndexId = IndexId(17);

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Writes = Vec<(IndexId, Vec<u8>, Option<Vec<u8>>)>;

/// What the workload knows when the machine stops. The log is the caller's and never lost here: an entry's
/// place is its LSN.
#[derive(Default)]
struct Model {
    log: Vec<(Redo, Writes)>,
    loaded: Option<Rows>,
    /// LSNs of the last checkpoint that finished, and of the last one that began.
    checkpoint_done: u64,
    checkpoint_tried: u64,
    /// Whether a bulk load was being finished.
    is_loading: bool,
}

impl Model {
    /// The rows of an index after the first `upto` transactions.
    fn rows(&self, index: IndexId, upto: usize) -> Rows {
        let mut rows = if index == LOADED { self.loaded.clone().unwrap_or_default() } else { Rows::new() };
        for (of, key, value) in self.log[..upto].iter().flat_map(|(_, writes)| writes) {
            match value {
                _ if *of != index => {}
                Some(value) => drop(rows.insert(key.clone(), value.clone())),
                None => drop(rows.remove(key)),
            }
        }
        rows
    }
}

fn open(fs: &SharedFs) -> Result<BtreeEngine, EngineError> {
    BtreeEngine::open(ParticipantId(1), fs, Path::new("/btree"), TINY)
}

fn rows(engine: &BtreeEngine, index: IndexId) -> Rows {
    let mut batch = Batch::default();
    let trx = engine.begin();
    let more = trx.scan(ReadAt::Latest, index, &KeyRange::default(), Direction::Forward, 1 << 20, &mut batch);
    assert!(!more.expect("scans"));
    batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn write_some(
    engine: &BtreeEngine,
    rng: &SeededRng,
    has_loaded: bool,
) -> Result<(Redo, Writes), EngineError> {
    let mut trx = engine.begin();
    let mut writes: BTreeMap<(IndexId, Vec<u8>), Option<Vec<u8>>> = BTreeMap::new();
    for _ in 0..1 + rng.below(40) {
        let index = if has_loaded && rng.below(3) == 0 { LOADED } else { TABLE };
        let key = format!("row {:04}", rng.below(400)).into_bytes();
        if rng.below(4) == 0 {
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
    Ok((trx.prepare()?, writes))
}

fn commit(engine: &BtreeEngine, model: &mut Model, (redo, writes): (Redo, Writes)) {
    let seq = model.log.len() as u64 + 1;
    engine.commit_ordered(CommitSeq(seq), &[&redo]);
    model.log.push((Redo::new(redo.bytes.clone()), writes));
}

/// One random step; an error means that the machine stopped, or that a file refused.
fn step(engine: &BtreeEngine, rng: &SeededRng, model: &mut Model) -> Result<(), EngineError> {
    match rng.below(12) {
        0..=6 => {
            let written = write_some(engine, rng, model.loaded.is_some())?;
            if rng.below(6) > 0 {
                commit(engine, model, written);
            }
        }
        7 | 8 => drop(engine.purge()?),
        9 if model.loaded.is_none() && !model.is_loading && model.log.len() > 4 => {
            let loaded: Rows = (0..200 + rng.below(300))
                .map(|n| (format!("row {n:04}").into_bytes(), vec![n as u8; 30 + rng.below(120) as usize]))
                .collect();
            model.is_loading = true;
            let mut load = engine.bulk_load(LOADED)?;
            loaded.iter().try_for_each(|(key, value)| load.add(key, value))?;
            load.finish()?;
            (model.loaded, model.is_loading) = (Some(loaded), false);
        }
        9 => {}
        _ => {
            let lsn = model.log.len() as u64;
            let task = engine.begin_checkpoint(Lsn(lsn))?;
            model.checkpoint_tried = lsn;
            // Others go on while it runs: what they write is behind its LSN.
            for _ in 0..rng.below(3) {
                let written = write_some(engine, rng, model.loaded.is_some())?;
                commit(engine, model, written);
                engine.purge()?;
            }
            task.finish()?;
            model.checkpoint_done = lsn;
        }
    }
    Ok(())
}

/// What is on disk after the workload stopped holds the state at a checkpoint; with the log it is all.
fn check(fs: &SharedFs, model: &Model, what: &str) {
    let engine = open(fs).unwrap_or_else(|e| panic!("{what}: {e}"));
    let durable = engine.durable_lsn().0;
    // After a failed sync nobody knows whether a checkpoint counts that was tried.
    assert!(
        (model.checkpoint_done..=model.checkpoint_tried.max(model.checkpoint_done)).contains(&durable),
        "{what}: durable at {durable}, checkpoint {} done and {} tried",
        model.checkpoint_done,
        model.checkpoint_tried
    );
    assert_eq!(rows(&engine, TABLE), model.rows(TABLE, durable as usize), "{what}: the checkpoint's rows");
    if model.loaded.is_some() {
        assert_eq!(rows(&engine, LOADED), model.rows(LOADED, durable as usize), "{what}: the loaded rows");
    }
    let redo: Vec<Redo> = model.log[durable as usize..].iter().map(|(redo, _)| redo.clone()).collect();
    engine.replay(&redo).expect("replays");
    for index in [TABLE, LOADED] {
        let is_known = index == TABLE || model.loaded.is_some();
        assert!(
            !is_known || rows(&engine, index) == model.rows(index, model.log.len()),
            "{what}: replayed rows"
        );
    }
    // It goes on from there.
    let lsn = Lsn(model.log.len() as u64);
    engine.begin_checkpoint(lsn).expect("begins").finish().expect("finishes");
    drop(engine);
    let engine = open(fs).expect("opens");
    assert_eq!(
        rows(&engine, TABLE),
        model.rows(TABLE, model.log.len()),
        "{what}: the next checkpoint's rows"
    );
}

fn seeds() -> u64 {
    std::env::var("CRASH_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2)
}

#[test]
fn a_crash_at_any_write_or_sync_leaves_a_checkpoint() {
    for seed in 0..seeds() {
        for at in 0.. {
            let memory = MemFs::new();
            let faulty = FaultFs::new(Arc::new(memory.clone()));
            faulty.set(Fault::CrashAt(at));
            let fs: SharedFs = Arc::new(faulty.clone());
            let (rng, mut model) = (SeededRng::new(seed), Model::default());
            let run = || -> Result<(), EngineError> {
                let engine = open(&fs)?;
                (0..STEPS).try_for_each(|_| step(&engine, &rng, &mut model))
            };
            let _ = { run }();
            if !faulty.crashed() {
                println!("seed {seed}: {at} operations");
                break;
            }
            for power in 0..2 {
                let left: SharedFs = Arc::new(memory.crash_clone(seed * 1000 + at * 2 + power));
                check(&left, &model, &format!("seed {seed} operation {at} power failure {power}"));
            }
        }
    }
}

#[test]
fn an_error_at_any_write_or_sync_loses_nothing() {
    let mut retried = 0;
    for seed in 0..seeds() {
        for at in 0.. {
            let memory = MemFs::new();
            let faulty = FaultFs::new(Arc::new(memory.clone()));
            let fs: SharedFs = Arc::new(faulty.clone());
            let (rng, mut model) = (SeededRng::new(seed), Model::default());
            let engine = open(&fs).expect("opens");
            let first = faulty.ops();
            faulty.set(Fault::ErrorAt(first + at, std::io::ErrorKind::StorageFull));
            let mut failures = 0;
            for _ in 0..STEPS {
                failures += u64::from(step(&engine, &rng, &mut model).is_err());
            }
            let what = format!("seed {seed} error at {at}");
            assert_eq!(rows(&engine, TABLE), model.rows(TABLE, model.log.len()), "{what}");
            retried += u64::from(failures == 1);
            let is_over = faulty.ops() <= first + at;
            drop(engine);
            let left: SharedFs = Arc::new(memory.kill_clone());
            check(&left, &model, &what);
            if is_over {
                break;
            }
        }
    }
    assert!(retried > 10, "most errors fail one step, and a failed sync all later checkpoints: {retried}");
}
