//! Old versions against a plain map, in unusual patterns: views that open and close in any order while chains
//! are long, transactions that stay undecided during many others, unfinished checkpoints, a memory limit that
//! spills most of the undo, and a pool of a few pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{
    Batch, CheckpointTask, Direction, Engine, KeyRange, MultiGet, Participant, ReadAt, ReadView, Redo,
    ScanRequest, SearchHint,
};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{MemFs, Rng, SeededRng, SharedFs};

const TABLE: IndexId = IndexId(16);

type Rows = BTreeMap<u64, Vec<u8>>;
type Write = (u64, Option<Vec<u8>>);

/// A transaction that is prepared but not ordered.
struct Undecided {
    redo: Redo,
    writes: Vec<Write>,
}

struct Run {
    rng: SeededRng,
    memory: MemFs,
    options: BtreeOptions,
    engine: BtreeEngine,
    seq: u64,
    rows: Rows,
    keys: u64,
    views: Vec<(ReadView, Rows)>,
    undecided: Vec<Undecided>,
    /// A checkpoint that has begun, with its LSN and rows.
    checkpoint: Option<(Box<dyn CheckpointTask>, u64, Rows)>,
    durable: (u64, Rows),
    hint: SearchHint,
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:04}").into_bytes()
}

fn number(key: &[u8]) -> u64 {
    std::str::from_utf8(&key[4..]).expect("digits").parse().expect("a number")
}

fn open(memory: &MemFs, options: BtreeOptions) -> BtreeEngine {
    let fs: SharedFs = Arc::new(memory.clone());
    BtreeEngine::open(ParticipantId(1), &fs, Path::new("/btree"), options).expect("opens")
}

fn scan(engine: &BtreeEngine, at: ReadAt<'_>, direction: Direction) -> Rows {
    let trx = engine.begin();
    let (mut found, mut range) = (Rows::new(), KeyRange::default());
    loop {
        let mut batch = Batch::default();
        let more = trx
            .scan(&ScanRequest { at, index: TABLE, range: &range, direction, limit: 7 }, &mut batch)
            .expect("scans");
        found.extend(batch.iter().map(|(key, value)| (number(key), value.to_vec())));
        if !more {
            return found;
        }
        batch.cut(&mut range, direction);
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let rng = SeededRng::new(seed);
        let options = BtreeOptions {
            pool_bytes: (2 + rng.below(20) as usize) * 16384,
            rollback_segments: 1 + rng.below(4) as usize,
            undo_bytes: [0, 2000, 20_000, 1 << 20][rng.below(4) as usize],
            young_views: rng.below(4) as usize,
            has_threads: false,
            wait_slot_of: || None,
        };
        let memory = MemFs::new();
        Run {
            engine: open(&memory, options),
            keys: [1, 3, 20, 200][rng.below(4) as usize],
            rng,
            memory,
            options,
            seq: 0,
            rows: Rows::new(),
            views: Vec::new(),
            undecided: Vec::new(),
            checkpoint: None,
            durable: (0, Rows::new()),
            hint: SearchHint::default(),
        }
    }

    /// There are few different values, so the same value is often written again.
    fn value(&self) -> Option<Vec<u8>> {
        match self.rng.below(16) {
            0..=4 => None,
            5 => Some(vec![b'l'; 5000 + self.rng.below(3) as usize]),
            6..=8 => Some(vec![b'm'; 900]),
            n => Some(vec![n as u8; 3]),
        }
    }

    /// Returns writes of keys that no undecided transaction has locked.
    fn writes(&self) -> Vec<Write> {
        let locked: BTreeSet<u64> =
            self.undecided.iter().flat_map(|trx| trx.writes.iter().map(|(n, _)| *n)).collect();
        let count = if self.rng.below(30) == 0 { self.keys } else { 1 + self.rng.below(3) };
        let keys: BTreeSet<u64> = (0..count).map(|_| self.rng.below(self.keys)).collect();
        keys.difference(&locked).map(|n| (*n, self.value())).collect()
    }

    fn prepare(&self) -> Undecided {
        let writes = self.writes();
        let mut trx = self.engine.begin();
        // Writes that are undone to a savepoint must leave no trace.
        for (n, _) in &writes {
            trx.put(TABLE, &key(*n), b"before").expect("puts");
        }
        let savepoint = trx.savepoint();
        for n in 0..self.rng.below(3) {
            trx.delete(TABLE, &key(n)).expect("deletes");
        }
        trx.rollback_to(savepoint);
        for (n, value) in &writes {
            match value {
                Some(value) => trx.put(TABLE, &key(*n), value).expect("puts"),
                None => trx.delete(TABLE, &key(*n)).expect("deletes"),
            }
        }
        Undecided { redo: trx.prepare().expect("prepares"), writes }
    }

    fn commit(&mut self, trx: Undecided) {
        self.seq += 1;
        self.engine.commit_ordered(CommitSeq(self.seq), &[&trx.redo]);
        for (n, value) in trx.writes {
            match value {
                Some(value) => drop(self.rows.insert(n, value)),
                None => drop(self.rows.remove(&n)),
            }
        }
    }

    fn pick(&self, len: usize) -> usize {
        match self.rng.below(3) {
            0 => 0,
            1 => len - 1,
            _ => self.rng.below(len as u64) as usize,
        }
    }

    fn look(&mut self, n: Option<usize>) {
        let (at, expected) = match n.map(|n| &self.views[n]) {
            Some((view, rows)) => (ReadAt::View(view), rows),
            None => (ReadAt::Latest, &self.rows),
        };
        let what = || format!("at {:?} of {:?}", n.map(|n| self.views[n].0.seq()), self.seq);
        match self.rng.below(4) {
            0 => assert_eq!(&scan(&self.engine, at, Direction::Forward), expected, "{}", what()),
            1 => assert_eq!(&scan(&self.engine, at, Direction::Backward), expected, "{}", what()),
            2 => {
                let trx = self.engine.begin();
                let mut value = Vec::new();
                for n in (0..self.keys).filter(|_| self.keys < 30 || self.rng.below(8) == 0) {
                    let is_there =
                        trx.get_with_hint(at, TABLE, &key(n), &mut value, &mut self.hint).expect("reads");
                    assert_eq!(is_there.then_some(&value), expected.get(&n), "{n} {}", what());
                }
            }
            _ => {
                let keys: Vec<Vec<u8>> = (0..self.keys).map(key).collect();
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                let (mut found, mut at_key) = (Rows::new(), 0);
                while at_key < keys.len() {
                    let (mut batch, mut numbers) = (Batch::default(), Vec::new());
                    let mut looks = MultiGet {
                        index: TABLE,
                        keys: &keys[at_key..],
                        bytes_max: 4000,
                        batch: &mut batch,
                        found: &mut numbers,
                    };
                    at_key += self.engine.begin().get_many(at, &mut looks, &mut self.hint).expect("reads");
                    found.extend(batch.iter().map(|(key, value)| (number(key), value.to_vec())));
                }
                assert_eq!(&found, expected, "{}", what());
            }
        }
    }

    fn begin_checkpoint(&mut self) {
        let task = self.engine.begin_checkpoint(Lsn(self.seq)).expect("begins");
        self.checkpoint = Some((task, self.seq, self.rows.clone()));
    }

    fn end_checkpoint(&mut self) {
        let Some((task, lsn, rows)) = self.checkpoint.take() else { return };
        if self.rng.below(5) > 0 {
            task.finish().expect("finishes");
            self.durable = (lsn, rows);
        }
    }

    /// Checks that a power failure would leave the state of the last checkpoint.
    fn crash(&self) {
        let after = open(&self.memory.crash_clone(self.rng.next_u64()), self.options);
        assert_eq!(after.durable_lsn(), Lsn(self.durable.0));
        assert_eq!(scan(&after, ReadAt::Latest, Direction::Forward), self.durable.1, "what is durable");
        assert_eq!(after.verify(TABLE, &mut |_| true).expect("reads"), Vec::<String>::new());
    }

    fn view(&mut self) {
        let view = ReadView::new(CommitSeq(self.seq), vec![(self.engine.id(), self.engine.snapshot())]);
        self.views.push((view, self.rows.clone()));
    }

    fn step(&mut self, views_max: usize) {
        match self.rng.below(40) {
            0..=15 => {
                let trx = self.prepare();
                self.commit(trx);
            }
            16..=18 => drop(self.prepare()),
            19 | 20 if self.undecided.len() < 3 => {
                let trx = self.prepare();
                self.undecided.push(trx);
            }
            21 | 22 if !self.undecided.is_empty() => {
                let trx = self.undecided.swap_remove(self.pick(self.undecided.len()));
                if self.rng.below(2) == 0 {
                    self.commit(trx);
                }
            }
            23..=26 => drop(self.engine.purge().expect("purges")),
            27 | 28 if self.views.len() < views_max => self.view(),
            29 | 30 if !self.views.is_empty() => drop(self.views.remove(self.pick(self.views.len()))),
            31 if self.rng.below(20) == 0 => self.views.clear(),
            32 => drop(self.engine.snapshot()),
            33 if self.checkpoint.is_none() => self.begin_checkpoint(),
            34 => self.end_checkpoint(),
            35 if self.rng.below(8) == 0 => self.crash(),
            36 | 37 if !self.views.is_empty() => self.look(Some(self.pick(self.views.len()))),
            38 => self.look(None),
            _ => {}
        }
    }

    fn check_final_state(mut self) {
        (0..self.views.len()).for_each(|n| self.look(Some(n)));
        self.views.clear();
        self.undecided.clear();
        self.end_checkpoint();
        while self.engine.purge().expect("purges") > 0 {}
        let history = self.engine.status().into_iter().find(|(name, _)| name == "Innodb_history_list_length");
        assert_eq!(history.expect("is reported").1, 0);
        assert_eq!(self.engine.stats(TABLE).entries, self.rows.len() as u64, "no deleted entry is left");
        assert_eq!(scan(&self.engine, ReadAt::Latest, Direction::Forward), self.rows);
        assert_eq!(self.engine.verify(TABLE, &mut |_| true).expect("reads"), Vec::<String>::new());
        self.crash();
    }
}

#[test]
fn every_view_sees_its_state_whatever_is_held() {
    let seeds = std::env::var("ODD_VIEWS_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40);
    let first = std::env::var("ODD_VIEWS_FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(1);
    for seed in first..first + seeds {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        let views_max = 1 + run.rng.below(24) as usize;
        for _ in 0..1500 {
            run.step(views_max);
        }
        run.check_final_state();
    }
}
