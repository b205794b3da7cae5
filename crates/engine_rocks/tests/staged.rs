//! Large transactions are ingested as files. Reads afterwards must return the same as after a memtable write.

use std::collections::BTreeMap;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{Batch, Engine, EngineTrx, KeyRange, Participant, ReadAt, ReadView, Redo, ScanRequest};
use cohort_engine_rocks::{RocksEngine, RocksOptions};
use cohort_vfs::{Rng, SeededRng};

const INDEX: IndexId = IndexId(16);

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(trx: &dyn EngineTrx, at: ReadAt<'_>) -> Model {
    let mut batch = Batch::default();
    let more =
        trx.scan(&ScanRequest::forward(at, INDEX, &KeyRange::default(), 1 << 20), &mut batch).expect("scans");
    assert!(!more);
    batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Prepares a transaction of random puts and deletes and applies it to the model.
fn change(engine: &RocksEngine, rng: &SeededRng, model: &mut Model) -> Redo {
    let mut trx = engine.begin();
    for _ in 0..1 + rng.below(60) {
        let key = (rng.below(200) as u32).to_be_bytes().to_vec();
        if rng.below(3) == 0 {
            trx.delete(INDEX, &key).expect("deletes");
            model.remove(&key);
        } else {
            let value = rng.next_u64().to_le_bytes().to_vec();
            trx.put(INDEX, &key, &value).expect("puts");
            model.insert(key, value);
        }
    }
    trx.prepare().expect("prepares")
}

#[test]
fn staged_and_ordinary_transactions_follow_each_other_in_one_order() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let engine = RocksEngine::open(ParticipantId(1), dir.path(), RocksOptions::default()).expect("opens");
    let rng = SeededRng::new(11);
    let mut model = Model::new();
    for seq in 1..=150 {
        let before = model.clone();
        let view = ReadView::new(CommitSeq(seq), vec![(engine.id(), engine.snapshot())]);
        let redo = change(&engine, &rng, &mut model);
        match rng.below(3) {
            0 => engine.stage(&redo).expect("writes files").expect("RocksDB stages").apply(),
            1 => {
                drop(engine.stage(&redo).expect("writes files"));
                assert_eq!(
                    contents(&*engine.begin(), ReadAt::Latest),
                    before,
                    "dropped, nothing of it stays"
                );
                engine.commit_ordered(CommitSeq(seq), &[&redo]);
            }
            _ => engine.commit_ordered(CommitSeq(seq), &[&redo]),
        }
        let trx = engine.begin();
        assert_eq!(contents(&*trx, ReadAt::View(&view)), before, "an older view does not change");
        assert_eq!(contents(&*trx, ReadAt::Latest), model);
        if rng.below(20) == 0 {
            engine.begin_checkpoint(Lsn(seq)).expect("seals").finish().expect("flushes");
            assert_eq!(engine.durable_lsn(), Lsn(seq));
        }
    }
    engine.begin_checkpoint(Lsn(1000)).expect("seals").finish().expect("flushes");
    drop(engine);
    let engine =
        RocksEngine::open(ParticipantId(1), dir.path(), RocksOptions::default()).expect("opens again");
    assert_eq!(contents(&*engine.begin(), ReadAt::Latest), model);
    let left = std::fs::read_dir(dir.path().join("bulk_load")).expect("lists").count();
    assert_eq!(left, 0, "no file is left on the side");
}

#[test]
fn files_that_a_crash_left_are_gone_after_the_next_start() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let open = || RocksEngine::open(ParticipantId(1), dir.path(), RocksOptions::default()).expect("opens");
    let engine = open();
    let mut load = engine.bulk_load(INDEX).expect("begins");
    (0..1000_u32).for_each(|n| load.add(&n.to_be_bytes(), b"value").expect("is written"));
    load.finish().expect("is taken in");
    drop(engine);
    let tables = || -> Vec<_> {
        let files = std::fs::read_dir(dir.path()).expect("lists").map(|file| file.expect("a file").path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "sst")).collect()
    };
    let known = tables();
    assert_eq!(known.len(), 1);
    // One file is linked into the database directory but not in its manifest; the other was being written
    // next to the database.
    std::fs::copy(&known[0], dir.path().join("000777.sst")).expect("copied");
    std::fs::write(dir.path().join("bulk_load/load0.0.sst"), b"half a file").expect("written");
    let engine = open();
    assert_eq!(contents(&*engine.begin(), ReadAt::Latest).len(), 1000);
    assert_eq!(std::fs::read_dir(dir.path().join("bulk_load")).expect("lists").count(), 0);
    assert_eq!(tables(), known);
}
