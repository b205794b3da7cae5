//! Conformance suite of the engine contract. An engine's tests call [`run`] with a factory of its harness.
//!
//! The suite acts as the commit coordinator: it orders transactions one at a time, and takes views and
//! checkpoints at the order stage.

use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn};

use crate::caller::SearchHint;
use crate::read_view::ReadView;
use crate::redo::Redo;
use crate::traits::{Batch, Direction, Engine, EngineTrx, KeyRange, MultiGet, ReadAt, ScanRequest};

const A: IndexId = IndexId(16);
const B: IndexId = IndexId(17);

/// Storage that outlives the engine on it.
pub trait Harness {
    /// Opens the engine on the durable state that the last instance left.
    fn open(&self) -> Arc<dyn Engine>;
}

/// Runs all checks, each on new storage.
pub fn run(make: &dyn Fn() -> Box<dyn Harness>) {
    let checks: [(&str, fn(&dyn Harness)); 9] = [
        ("reads see own writes, others do not", own_writes_are_private),
        ("a view does not move", views_do_not_move),
        ("scans merge, bound and continue", scans_merge_and_bound),
        ("rollback to a savepoint", savepoints_roll_back),
        ("checkpoint and replay", checkpoint_and_replay),
        ("bulk load and drop", bulk_load_and_drop),
        ("batches of several transactions apply in order", batches_apply_in_order),
        ("what is dropped after prepare leaves nothing", dropped_after_prepare),
        (
            "what is ordered after a checkpoint's begin is in the next one",
            ordered_after_the_begin_of_a_checkpoint,
        ),
    ];
    for (name, check) in checks {
        eprintln!("conformance: {name}");
        check(&*make());
    }
}

struct Driver {
    engine: Arc<dyn Engine>,
    seq: u64,
    log: Vec<Redo>,
}

impl Driver {
    fn new(harness: &dyn Harness) -> Driver {
        Driver { engine: harness.open(), seq: 0, log: Vec::new() }
    }

    fn commit(&mut self, mut trx: Box<dyn EngineTrx>) {
        let redo = trx.prepare().expect("prepares");
        self.seq += 1;
        self.engine.commit_ordered(CommitSeq(self.seq), &[&redo]);
        self.log.push(redo);
    }

    fn put(&mut self, index: IndexId, entries: &[(&str, &str)]) {
        let mut trx = self.engine.begin();
        for (key, value) in entries {
            trx.put(index, key.as_bytes(), value.as_bytes()).expect("puts");
        }
        self.commit(trx);
    }

    fn view(&self) -> ReadView {
        ReadView::new(CommitSeq(self.seq), vec![(self.engine.id(), self.engine.snapshot())])
    }
}

fn get(trx: &dyn EngineTrx, at: ReadAt<'_>, key: &str) -> Option<String> {
    let mut value = b"left over".to_vec();
    let found = trx.get(at, A, key.as_bytes(), &mut value).expect("reads");
    let (mut hint, mut again) = (SearchHint::default(), Vec::new());
    for _ in 0..3 {
        let is_there = trx.get_with_hint(at, A, key.as_bytes(), &mut again, &mut hint).expect("reads");
        assert_eq!((is_there, &again), (found, &value), "a reader that keeps its place");
        let there = found.then(|| (key.as_bytes().to_vec(), value.clone()));
        let keys = [b"~ is never put".as_slice(), key.as_bytes()];
        assert_eq!(get_many(trx, at, &keys, &mut hint), Vec::from_iter(there), "{key}");
    }
    found.then(|| String::from_utf8(value).expect("text"))
}

/// Returns the entries of `keys`. Reads a few bytes at a time and all at once, and checks that the results
/// agree.
fn get_many(
    trx: &dyn EngineTrx,
    at: ReadAt<'_>,
    keys: &[&[u8]],
    hint: &mut SearchHint,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut answers = [1, 100, usize::MAX].map(|bytes_max| {
        let (mut looked, mut all) = (0, Vec::new());
        while looked < keys.len() {
            let (mut batch, mut found) = (Batch::default(), Vec::new());
            let rest = &keys[looked..];
            let mut looks =
                MultiGet { index: A, keys: rest, bytes_max, batch: &mut batch, found: &mut found };
            let more = trx.get_many(at, &mut looks, hint).expect("reads");
            assert!((1..=rest.len()).contains(&more) && found.iter().all(|n| (*n as usize) < more));
            assert!(found.iter().map(|n| rest[*n as usize]).eq(batch.iter().map(|entry| entry.0)));
            all.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
            looked += more;
        }
        all
    });
    assert!(answers[0] == answers[2] && answers[1] == answers[2]);
    std::mem::take(&mut answers[2])
}

fn scan(
    trx: &dyn EngineTrx,
    at: ReadAt<'_>,
    range: (&str, &str),
    direction: Direction,
    limit: usize,
) -> (String, bool) {
    let key = |text: &str| (!text.is_empty()).then(|| text.as_bytes().to_vec());
    let range = KeyRange { start: key(range.0), end: key(range.1) };
    let mut batch = Batch::default();
    let more =
        trx.scan(&ScanRequest { at, index: A, range: &range, direction, limit }, &mut batch).expect("scans");
    let mut hint = SearchHint::default();
    for _ in 0..3 {
        let mut again = Batch::default();
        let goes_on = trx
            .scan_with_hint(
                &ScanRequest { at, index: A, range: &range, direction, limit },
                &mut again,
                &mut hint,
            )
            .expect("scans");
        assert!(goes_on == more && again.iter().eq(batch.iter()), "a reader that keeps its place");
    }
    let keys: Vec<&[u8]> = batch.iter().map(|entry| entry.0).collect();
    let found = get_many(trx, at, &keys, &mut hint);
    assert!(batch.iter().eq(found.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let entries: Vec<String> = batch.iter().map(|(k, v)| format!("{}={}", text(k), text(v))).collect();
    (entries.join(" "), more)
}

fn own_writes_are_private(harness: &dyn Harness) {
    let mut driver = Driver::new(harness);
    driver.put(A, &[("a", "1"), ("b", "2")]);
    let mut trx = driver.engine.begin();
    assert!(trx.is_read_only());
    trx.put(A, b"a", b"mine").expect("puts");
    trx.delete(A, b"b").expect("deletes");
    trx.put(B, b"a", b"other index").expect("puts");
    let other = driver.engine.begin();
    let view = driver.view();
    for at in [ReadAt::Latest, ReadAt::View(&view)] {
        assert_eq!(get(&*trx, at, "a").as_deref(), Some("mine"));
        assert_eq!(get(&*trx, at, "b"), None);
        assert_eq!(get(&*other, at, "a").as_deref(), Some("1"));
        assert_eq!(get(&*other, at, "b").as_deref(), Some("2"));
    }
    drop(trx);
    assert_eq!(
        get(&*other, ReadAt::Latest, "a").as_deref(),
        Some("1"),
        "a dropped transaction leaves nothing"
    );
}

fn views_do_not_move(harness: &dyn Harness) {
    let mut driver = Driver::new(harness);
    driver.put(A, &[("k", "1")]);
    let first = driver.view();
    driver.put(A, &[("k", "2"), ("new", "x")]);
    let second = driver.view();
    let mut trx = driver.engine.begin();
    trx.delete(A, b"k").expect("deletes");
    driver.commit(trx);
    let reader = driver.engine.begin();
    assert_eq!(get(&*reader, ReadAt::View(&first), "k").as_deref(), Some("1"));
    assert_eq!(get(&*reader, ReadAt::View(&first), "new"), None);
    assert_eq!(get(&*reader, ReadAt::View(&second), "k").as_deref(), Some("2"));
    assert_eq!(get(&*reader, ReadAt::Latest, "k"), None);
    assert_eq!(scan(&*reader, ReadAt::View(&first), ("", ""), Direction::Forward, 9).0, "k=1");
    assert_eq!(scan(&*reader, ReadAt::View(&second), ("", ""), Direction::Backward, 9).0, "new=x k=2");
}

fn scans_merge_and_bound(harness: &dyn Harness) {
    let mut driver = Driver::new(harness);
    driver.put(A, &[("a", "1"), ("c", "3"), ("e", "5"), ("g", "7")]);
    driver.put(B, &[("a", "not in A")]);
    let mut trx = driver.engine.begin();
    trx.put(A, b"b", b"2").expect("puts");
    trx.put(A, b"c", b"33").expect("puts");
    trx.delete(A, b"e").expect("deletes");
    trx.put(A, b"h", b"8").expect("puts");
    let at = ReadAt::Latest;
    let (forward, backward) = (Direction::Forward, Direction::Backward);
    assert_eq!(scan(&*trx, at, ("", ""), forward, 9), ("a=1 b=2 c=33 g=7 h=8".into(), false));
    assert_eq!(scan(&*trx, at, ("", ""), backward, 9), ("h=8 g=7 c=33 b=2 a=1".into(), false));
    assert_eq!(scan(&*trx, at, ("b", "h"), forward, 9).0, "b=2 c=33 g=7");
    assert_eq!(scan(&*trx, at, ("b", "h"), backward, 9).0, "g=7 c=33 b=2");
    assert_eq!(scan(&*trx, at, ("b", ""), forward, 2), ("b=2 c=33".into(), true));
    assert_eq!(scan(&*trx, at, ("", "c"), backward, 1), ("b=2".into(), true));
    assert_eq!(scan(&*trx, at, ("x", "c"), forward, 9), (String::new(), false), "an empty range");
    let other = driver.engine.begin();
    assert_eq!(scan(&*other, at, ("", ""), forward, 9).0, "a=1 c=3 e=5 g=7");
}

fn savepoints_roll_back(harness: &dyn Harness) {
    let mut driver = Driver::new(harness);
    driver.put(A, &[("a", "1")]);
    let mut trx = driver.engine.begin();
    let start = trx.savepoint();
    trx.put(A, b"a", b"2").expect("puts");
    let second = trx.savepoint();
    trx.put(A, b"a", b"3").expect("puts");
    trx.put(A, b"b", b"3").expect("puts");
    trx.rollback_to(second);
    assert_eq!(scan(&*trx, ReadAt::Latest, ("", ""), Direction::Forward, 9).0, "a=2");
    trx.rollback_to(start);
    assert!(trx.is_read_only());
    assert_eq!(scan(&*trx, ReadAt::Latest, ("", ""), Direction::Forward, 9).0, "a=1");
    trx.put(A, b"c", b"4").expect("puts");
    driver.commit(trx);
    let reader = driver.engine.begin();
    assert_eq!(scan(&*reader, ReadAt::Latest, ("", ""), Direction::Forward, 9).0, "a=1 c=4");
}

fn checkpoint_and_replay(harness: &dyn Harness) {
    let mut driver = Driver::new(harness);
    driver.put(A, &[("a", "1"), ("b", "1")]);
    driver.put(A, &[("a", "2")]);
    let task = driver.engine.begin_checkpoint(Lsn(100)).expect("begins");
    driver.put(A, &[("a", "3"), ("c", "3")]);
    assert_eq!(driver.engine.durable_lsn(), Lsn(0), "not durable before finish");
    task.finish().expect("finishes");
    assert_eq!(driver.engine.durable_lsn(), Lsn(100));
    let log = std::mem::take(&mut driver.log);
    drop(driver);

    let engine = harness.open();
    assert_eq!(engine.durable_lsn(), Lsn(100));
    let reader = engine.begin();
    // An orderly close may have written more than the checkpoint. Replay from the durable LSN or from an
    // earlier one must bring both cases to the same state.
    let found = scan(&*reader, ReadAt::Latest, ("", ""), Direction::Forward, 9).0;
    assert!(["a=2 b=1", "a=3 b=1 c=3"].contains(&found.as_str()), "{found}");
    for redo in &log {
        engine.replay(std::slice::from_ref(redo)).expect("replays");
    }
    assert_eq!(scan(&*reader, ReadAt::Latest, ("", ""), Direction::Forward, 9).0, "a=3 b=1 c=3");
    assert!(engine.unflushed_bytes() > 0, "replayed redo is not durable yet");
}

fn bulk_load_and_drop(harness: &dyn Harness) {
    let mut driver = Driver::new(harness);
    driver.put(A, &[("a", "1")]);
    let mut load = driver.engine.bulk_load(B).expect("loads");
    for n in 0..1000_u32 {
        load.add(&n.to_be_bytes(), b"v").expect("adds");
    }
    load.finish().expect("finishes");
    driver.engine.begin_checkpoint(Lsn(5)).expect("begins").finish().expect("finishes");
    drop(driver);

    let engine = harness.open();
    let count = |index| {
        let mut batch = Batch::default();
        let trx = engine.begin();
        trx.scan(&ScanRequest::forward(ReadAt::Latest, index, &KeyRange::default(), 5000), &mut batch)
            .expect("scans");
        batch.len()
    };
    assert_eq!(count(B), 1000);
    // A second load of the same index, with keys between those of the first.
    let mut load = engine.bulk_load(B).expect("loads");
    for n in 500..1500_u32 {
        let mut key = n.to_be_bytes().to_vec();
        key.push(1);
        load.add(&key, b"second run").expect("adds");
    }
    load.finish().expect("finishes");
    assert_eq!(count(B), 2000);
    assert_eq!(engine.indexes().expect("lists"), [A, B]);
    engine.drop_indexes(&[B]).expect("drops");
    assert_eq!((count(A), count(B)), (1, 0));
    assert_eq!(engine.indexes().expect("lists"), [A]);
}

fn batches_apply_in_order(harness: &dyn Harness) {
    let mut driver = Driver::new(harness);
    driver.put(A, &[("k", "0")]);
    // In the server, row locks prevent a second write of a key until the first is ordered. A batch therefore
    // has each key once.
    let redo = |key: &str, value: &str| {
        let mut trx = driver.engine.begin();
        trx.put(A, key.as_bytes(), value.as_bytes()).expect("puts");
        trx.prepare().expect("prepares")
    };
    let (first, second, third) = (redo("k", "1"), redo("l", "2"), redo("m", "3"));
    let reader = driver.engine.begin();
    assert_eq!(scan(&*reader, ReadAt::Latest, ("", ""), Direction::Forward, 9).0, "k=0");
    driver.engine.commit_ordered(CommitSeq(4), &[&first, &second, &third]);
    assert_eq!(scan(&*reader, ReadAt::Latest, ("", ""), Direction::Forward, 9).0, "k=1 l=2 m=3");
    driver.engine.commit_ordered(CommitSeq(5), &[&redo("k", "4")]);
    assert_eq!(get(&*reader, ReadAt::Latest, "k").as_deref(), Some("4"));
}

fn dropped_after_prepare(harness: &dyn Harness) {
    let mut driver = Driver::new(harness);
    driver.put(A, &[("a", "1"), ("b", "1")]);
    let before = driver.view();
    let mut trx = driver.engine.begin();
    trx.put(A, b"a", b"2").expect("puts");
    trx.delete(A, b"b").expect("deletes");
    trx.put(A, b"c", b"2").expect("puts");
    let redo = trx.prepare().expect("prepares");
    // As if another engine's prepare had failed: redo and transaction are dropped, then the locks are
    // released, then other transactions write the keys.
    drop((redo, trx));
    let reader = driver.engine.begin();
    assert_eq!(scan(&*reader, ReadAt::Latest, ("", ""), Direction::Forward, 9).0, "a=1 b=1");
    driver.put(A, &[("a", "3")]);
    let mut trx = driver.engine.begin();
    trx.delete(A, b"c").expect("deletes what is not there");
    trx.delete(A, b"b").expect("deletes");
    driver.commit(trx);
    driver.put(A, &[("c", "4")]);
    assert_eq!(scan(&*reader, ReadAt::Latest, ("", ""), Direction::Forward, 9).0, "a=3 c=4");
    assert_eq!(scan(&*reader, ReadAt::View(&before), ("", ""), Direction::Forward, 9).0, "a=1 b=1");
}

fn ordered_after_the_begin_of_a_checkpoint(harness: &dyn Harness) {
    let mut driver = Driver::new(harness);
    driver.put(A, &[("a", "1")]);
    let mut early = driver.engine.begin();
    early.put(A, b"a", b"2").expect("puts");
    early.put(A, b"b", b"2").expect("puts");
    let redo = early.prepare().expect("prepares");
    let first = driver.engine.begin_checkpoint(Lsn(10)).expect("begins");
    driver.seq += 1;
    driver.engine.commit_ordered(CommitSeq(driver.seq), &[&redo]);
    first.finish().expect("finishes");
    driver.engine.begin_checkpoint(Lsn(20)).expect("begins").finish().expect("finishes");
    drop((redo, early, driver));
    // The log below the second checkpoint is gone: changes that were in neither image would be lost.
    let engine = harness.open();
    assert_eq!(engine.durable_lsn(), Lsn(20));
    let found = scan(&*engine.begin(), ReadAt::Latest, ("", ""), Direction::Forward, 9).0;
    assert_eq!(found, "a=2 b=2");
}
