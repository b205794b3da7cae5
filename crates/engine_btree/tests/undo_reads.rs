//! Reads of versions in the undo file, and writers that need the same leaf.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::{CommitSeq, IndexId, ParticipantId};
use cohort_engine::{Batch, Direction, Engine, KeyRange, Participant, ReadAt, ReadView, ScanRequest};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{HookFs, MemFs, Operation, SharedFs};

const TABLE: IndexId = IndexId(16);
/// Two values fit into a block of the undo file.
const VALUE_BYTES: usize = 2000;

/// In-memory files with a slow undo file. Counts its reads.
fn slow_undo(reads: &Arc<AtomicU64>) -> SharedFs {
    let reads = Arc::clone(reads);
    Arc::new(HookFs::new(Arc::new(MemFs::new()), move |operation, name| {
        if operation == Operation::Read && name == "btree.undo" {
            reads.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
    }))
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:08}").into_bytes()
}

fn put(engine: &BtreeEngine, seq: &mut u64, keys: std::ops::Range<u64>, value: u8) {
    let mut trx = engine.begin();
    keys.for_each(|n| trx.put(TABLE, &key(n), &[value; VALUE_BYTES]).expect("puts"));
    let redo = trx.prepare().expect("prepares");
    *seq += 1;
    engine.commit_ordered(CommitSeq(*seq), &[&redo]);
}

#[test]
fn a_writer_of_a_leaf_waits_for_few_reads_of_old_versions() {
    for direction in [Direction::Forward, Direction::Backward] {
        let reads = Arc::new(AtomicU64::new(0));
        let fs = slow_undo(&reads);
        let options = BtreeOptions {
            undo_bytes: 4096,
            young_views: 2,
            has_threads: false,
            rollback_segments: 2,
            ..BtreeOptions::default()
        };
        let engine = BtreeEngine::open(ParticipantId(1), &fs, Path::new("/btree"), options).expect("opens");
        let mut seq = 0;
        put(&engine, &mut seq, 0..100, 0);
        let view = ReadView::new(CommitSeq(seq), vec![(engine.id(), engine.snapshot())]);
        for value in 1..20 {
            put(&engine, &mut seq, 0..100, value);
        }
        while engine.purge().expect("spills") > 0 {}
        let before = reads.load(Ordering::SeqCst);
        put(&engine, &mut seq, 0..100, 20);
        assert_eq!(reads.load(Ordering::SeqCst), before, "a writer over old versions reads none of them");
        let waited = std::thread::scope(|scope| {
            let scan = scope.spawn(|| {
                let (trx, mut batch) = (engine.begin(), Batch::default());
                let all = KeyRange::default();
                trx.scan(
                    &ScanRequest {
                        at: ReadAt::View(&view),
                        index: TABLE,
                        range: &all,
                        direction,
                        limit: 1000,
                    },
                    &mut batch,
                )
                .expect("scans");
                assert_eq!(batch.len(), 100);
                assert!(batch.iter().all(|(_, value)| value == [0; VALUE_BYTES]), "the view's state");
                let keys: Vec<_> = batch.iter().map(|(key, _)| key.to_vec()).collect();
                assert!(keys.windows(2).all(|pair| (pair[0] < pair[1]) == (direction == Direction::Forward)));
            });
            while reads.load(Ordering::SeqCst) < before + 20 {
                std::thread::yield_now();
            }
            let began = reads.load(Ordering::SeqCst);
            // A key that was never written: no old version is read for it.
            put(&engine, &mut seq, 1000..1001, 1);
            let waited = reads.load(Ordering::SeqCst) - began;
            scan.join().expect("no panic");
            waited
        });
        let all = reads.load(Ordering::SeqCst) - before;
        // Versions between the view's and the newest one are skipped in memory. Versions in the same block
        // are read together.
        assert!((45..=100).contains(&all), "{all} reads of the undo file");
        assert!(waited <= 40, "{direction:?}: the writer waited for {waited} of {all} reads");
    }
}
