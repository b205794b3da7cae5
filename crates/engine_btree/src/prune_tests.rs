//! Pruning and purge against a plain map, with a check of every chain. Each version that an entry leads to
//! exists, is reachable exactly once and counts as live. A pruned record that is not reachable is gone. In
//! addition to `tests/odd_views.rs`, there are several tables that are dropped and loaded, failing reads,
//! bursts of writes of one row, changing numbers of rollback segments, and a check of what must be free in
//! the end.
//!
//! `COHORT_LONG_TESTS=1` runs many more rounds; `COHORT_FUZZ_SEED=N` starts at another seed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{
    Batch, CheckpointTask, Direction, Engine, EngineError, EngineSetting, KeyRange, Participant, ReadAt,
    ReadView, Redo, ScanRequest,
};
use cohort_vfs::{HookFs, MemFs, Operation, Rng, SeededRng, SharedFs};

use crate::engine::{BtreeEngine, BtreeOptions};
use crate::page::INLINE_BYTES_MAX;
use crate::tree::Side;
use crate::trx::Installation;
use crate::trx_record::{TrxRecord, TrxState};
use crate::version_ref::TrxNo;

const TABLES: usize = 3;

/// Wraps `fs` so that `per_mille` of 1000 reads of files fail.
fn failing(fs: &MemFs, per_mille: &Arc<AtomicU64>, rng: SeededRng) -> SharedFs {
    let per_mille = per_mille.clone();
    Arc::new(HookFs::failing(Arc::new(fs.clone()), move |operation, _| {
        let per_mille = per_mille.load(Ordering::Relaxed);
        match operation == Operation::Read && per_mille > 0 && rng.below(1000) < per_mille {
            true => Err(io::Error::other("a read fails")),
            false => Ok(()),
        }
    }))
}

/// Rows of a table, and the index that currently holds them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Table {
    index: u32,
    rows: BTreeMap<u64, Vec<u8>>,
}

type Tables = Vec<Table>;
type Write = ((usize, u64), Option<Vec<u8>>);

struct Undecided {
    redo: Redo,
    writes: Vec<Write>,
}

struct Run {
    rng: SeededRng,
    fs: MemFs,
    /// Rate of failing reads.
    per_mille: Arc<AtomicU64>,
    options: BtreeOptions,
    engine: BtreeEngine,
    seq: u64,
    tables: Tables,
    next_index: u32,
    keys: u64,
    views: Vec<(ReadView, Tables)>,
    undecided: Vec<Undecided>,
    checkpoint: Option<(Box<dyn CheckpointTask>, u64, Tables)>,
    durable: Option<(u64, Tables)>,
    records: Vec<Weak<TrxRecord>>,
    fails: bool,
    has_dropped: bool,
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:04}").into_bytes()
}

fn scan(engine: &BtreeEngine, at: ReadAt<'_>, index: u32) -> Result<BTreeMap<u64, Vec<u8>>, EngineError> {
    let trx = engine.begin();
    let (mut found, mut range) = (BTreeMap::new(), KeyRange::default());
    loop {
        let mut batch = Batch::default();
        let more = trx.scan(&ScanRequest::forward(at, IndexId(index), &range, 50), &mut batch)?;
        for (key, value) in batch.iter() {
            let n = std::str::from_utf8(&key[4..]).expect("digits").parse().expect("a number");
            found.insert(n, value.to_vec());
        }
        if !more {
            return Ok(found);
        }
        batch.cut(&mut range, Direction::Forward);
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let rng = SeededRng::new(seed);
        let options = BtreeOptions {
            pool_bytes: (2 + rng.below(12) as usize) * 16384,
            rollback_segments: [1, 2, 3, 8, 128][rng.below(5) as usize],
            undo_bytes: [0, 2000, 20_000, 1 << 20][rng.below(4) as usize],
            young_views: rng.below(4) as usize,
            has_threads: false,
            wait_slot_of: || None,
        };
        let (fs, per_mille) = (MemFs::new(), Arc::default());
        let shared = failing(&fs, &per_mille, SeededRng::new(seed ^ 0xF00D));
        let engine = BtreeEngine::open(ParticipantId(1), &shared, Path::new("/btree"), options);
        Run {
            engine: engine.expect("opens"),
            keys: [1, 3, 20, 200][rng.below(4) as usize],
            fails: rng.below(2) == 0,
            rng,
            fs,
            per_mille,
            options,
            seq: 0,
            tables: (0..TABLES).map(|n| Table { index: 16 + n as u32, ..Table::default() }).collect(),
            next_index: 100,
            views: Vec::new(),
            undecided: Vec::new(),
            checkpoint: None,
            durable: None,
            records: Vec::new(),
            has_dropped: false,
        }
    }

    /// Calls `run` while reads may fail.
    fn beside_failures<R>(&self, run: impl FnOnce(&Run) -> Result<R, EngineError>) -> Option<R> {
        let fails = self.fails && self.rng.below(3) == 0;
        let often = [5, 50, 300][self.rng.below(3) as usize];
        self.per_mille.store(if fails { often } else { 0 }, Ordering::Relaxed);
        let done = run(self);
        self.per_mille.store(0, Ordering::Relaxed);
        match done {
            Ok(done) => Some(done),
            Err(EngineError::Io(error)) if fails && error.to_string() == "a read fails" => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn value(&self) -> Option<Vec<u8>> {
        match self.rng.below(16) {
            0..=4 => None,
            5 => Some(vec![b'l'; 5000 + self.rng.below(3) as usize]),
            6..=8 => Some(vec![b'm'; 900]),
            n => Some(vec![n as u8; 3]),
        }
    }

    fn locked(&self) -> BTreeSet<(usize, u64)> {
        self.undecided.iter().flat_map(|trx| trx.writes.iter().map(|(at, _)| *at)).collect()
    }

    fn writes(&self) -> Vec<Write> {
        let locked = self.locked();
        let count = if self.rng.below(30) == 0 { self.keys } else { 1 + self.rng.below(3) };
        let at = || (self.rng.below(TABLES as u64) as usize, self.rng.below(self.keys));
        let keys: BTreeSet<(usize, u64)> = (0..count).map(|_| at()).collect();
        let is_deletion = self.rng.below(10) == 0;
        let value = || if is_deletion { None } else { self.value() };
        keys.difference(&locked).map(|at| (*at, value())).collect()
    }

    fn prepare(&mut self, writes: Vec<Write>) -> Option<Undecided> {
        let redo = self.beside_failures(|run| {
            let mut trx = run.engine.begin();
            for ((table, n), value) in &writes {
                let index = IndexId(run.tables[*table].index);
                match value {
                    Some(value) => trx.put(index, &key(*n), value)?,
                    None => trx.delete(index, &key(*n))?,
                }
            }
            trx.prepare()
        })?;
        let installation = redo.installation().expect("installed").as_any().downcast_ref::<Installation>();
        self.records.push(Arc::downgrade(&installation.expect("this engine's").record));
        Some(Undecided { redo, writes })
    }

    fn commit(&mut self, trx: Undecided) {
        self.seq += 1;
        self.engine.commit_ordered(CommitSeq(self.seq), &[&trx.redo]);
        for ((table, n), value) in trx.writes {
            match value {
                Some(value) => drop(self.tables[table].rows.insert(n, value)),
                None => drop(self.tables[table].rows.remove(&n)),
            }
        }
    }

    fn write(&mut self) {
        let writes = self.writes();
        if let Some(trx) = self.prepare(writes) {
            self.commit(trx);
        }
    }

    /// Writes one row many times, more often than one step of pruning covers.
    fn burst(&mut self) {
        let at = (self.rng.below(TABLES as u64) as usize, self.rng.below(self.keys));
        let count = if self.rng.below(20) == 0 { 3000 } else { self.rng.below(400) };
        for n in 0..count {
            if self.locked().contains(&at) {
                return;
            }
            let value = (self.rng.below(9) > 0).then(|| vec![n as u8; 8]);
            let Some(trx) = self.prepare(vec![(at, value)]) else { continue };
            match self.rng.below(20) {
                0 => drop(trx),
                1 if self.undecided.len() < 3 && n + 1 == count => self.undecided.push(trx),
                _ => self.commit(trx),
            }
            if self.rng.below(60) == 0 && self.views.len() < 40 {
                self.view();
            }
        }
    }

    /// Inserts and deletes the rows of some pages, so that other pages may reuse their space.
    fn wave(&mut self) {
        let (table, from) = (self.rng.below(TABLES as u64) as usize, self.rng.below(self.keys));
        let (locked, to) = (self.locked(), from + 2 * self.keys.min(50));
        let all: Vec<(usize, u64)> =
            (from..to).map(|n| (table, n)).filter(|at| !locked.contains(at)).collect();
        let value = (self.rng.below(4) > 0).then(|| vec![b'w'; 10 + self.rng.below(2000) as usize]);
        for value in [&value, &None] {
            let writes = all.iter().map(|at| (*at, value.clone())).collect();
            if let Some(trx) = self.prepare(writes) {
                self.commit(trx);
            }
        }
        if self.rng.below(2) == 0 {
            let some = all.into_iter().filter(|_| self.rng.below(2) == 0);
            let writes = some.map(|at| (at, Some(b"over".to_vec()))).collect();
            let trx = self.prepare(writes);
            if self.undecided.len() < 3 && self.rng.below(3) > 0 {
                self.undecided.extend(trx);
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

    fn look(&self, n: Option<usize>) {
        for table in 0..TABLES {
            let (at, expected) = match n.map(|n| &self.views[n]) {
                Some((view, tables)) => (ReadAt::View(view), &tables[table]),
                None => (ReadAt::Latest, &self.tables[table]),
            };
            if expected.index != self.tables[table].index {
                continue;
            }
            let found = self.beside_failures(|run| scan(&run.engine, at, expected.index));
            let seq = n.map(|n| self.views[n].0.seq());
            assert!(found.is_none_or(|found| found == expected.rows), "table {table} at {seq:?}");
        }
    }

    fn view(&mut self) {
        let view = ReadView::new(CommitSeq(self.seq), vec![(self.engine.id(), self.engine.snapshot())]);
        self.views.push((view, self.tables.clone()));
    }

    /// Replaces a table by another one, empty or loaded.
    fn replace_table(&mut self) {
        let at = self.rng.below(TABLES as u64) as usize;
        if self.locked().iter().any(|(table, _)| *table == at) {
            return;
        }
        self.engine.drop_indexes(&[IndexId(self.tables[at].index)]).expect("drops");
        self.next_index += 1;
        self.has_dropped = true;
        self.tables[at] = Table { index: self.next_index, ..Table::default() };
        if self.rng.below(2) == 0 {
            let mut load = self.engine.bulk_load(IndexId(self.next_index)).expect("begins");
            for n in (0..self.keys).filter(|_| self.rng.below(2) == 0) {
                let value = self.value().unwrap_or_default();
                load.add(&key(n), &value).expect("adds");
                self.tables[at].rows.insert(n, value);
            }
            load.finish().expect("finishes");
        }
    }

    fn begin_checkpoint(&mut self) {
        let task = self.engine.begin_checkpoint(Lsn(self.seq)).expect("begins");
        self.checkpoint = Some((task, self.seq, self.tables.clone()));
    }

    fn end_checkpoint(&mut self) {
        let Some((task, lsn, tables)) = self.checkpoint.take() else { return };
        if self.rng.below(5) > 0 && self.beside_failures(|_| task.finish()).is_some() {
            self.durable = Some((lsn, tables));
        }
    }

    fn crash(&self) {
        let fs: SharedFs = Arc::new(self.fs.crash_clone(self.rng.next_u64()));
        let after = BtreeEngine::open(ParticipantId(1), &fs, Path::new("/btree"), self.options);
        let after = after.expect("opens");
        let Some((lsn, tables)) = &self.durable else { return };
        assert_eq!(after.durable_lsn(), Lsn(*lsn));
        for (table, now) in tables.iter().zip(&self.tables).filter(|(then, now)| then.index == now.index) {
            let found = scan(&after, ReadAt::Latest, now.index).expect("reads");
            assert_eq!(found, table.rows, "what is durable");
            assert_eq!(after.verify(IndexId(now.index), &mut |_| true).expect("reads"), Vec::<String>::new());
        }
    }

    /// Follows every chain and checks its versions.
    fn look_at_chains(&mut self) {
        let versions = &self.engine.inner.versions;
        let mut led_to: HashMap<TrxNo, u64> = HashMap::new();
        let mut seen = HashSet::new();
        let trees: Vec<_> = self.engine.inner.directory.read().values().cloned().collect();
        for tree in trees {
            let mut from = Vec::new();
            loop {
                let frame = tree.leaf(&self.engine.inner.context, &Side::Covering(&from)).expect("reads");
                let page = frame.page();
                for n in 0..page.len() {
                    let mut at = page.entry(n).version;
                    let mut before = u64::MAX;
                    while let Some((version, record)) = at.and_then(|at| Some((at, versions.find(at.trx)?))) {
                        assert!(seen.insert((version.trx, version.undo)), "two chains lead to {version:?}");
                        *led_to.entry(version.trx).or_default() += 1;
                        if let TrxState::Committed(seq) = record.state() {
                            assert!(seq.0 < before, "a chain goes down in time");
                            before = seq.0;
                        } else {
                            assert_eq!(before, u64::MAX, "only the newest is undecided or aborted");
                        }
                        at = record.link(version.undo).map(|link| {
                            assert!(link.seq.is_none_or(|seq| seq.0 < before));
                            link.below
                        });
                    }
                }
                let Some(high) = page.high().map(<[u8]>::to_vec) else { break };
                from = high;
            }
        }
        let oldest = self.engine.inner.views.oldest();
        self.records.retain(|record| record.strong_count() > 0);
        for record in self.records.iter().filter_map(Weak::upgrade) {
            let count = led_to.get(&record.number()).copied().unwrap_or(0);
            assert!(record.live() >= count, "{record:?} has {count} versions");
            let TrxState::Committed(seq) = record.state() else { continue };
            if seq > oldest && record.is_pruned() && !self.has_dropped {
                // Every chain here is short enough to end completely, with no version left to purge.
                assert_eq!(record.live(), count, "{:?} {seq:?}, {oldest:?}", record.number());
                assert!(count > 0, "nothing leads to it");
            }
        }
    }

    fn purge(&self) {
        self.beside_failures(|run| run.engine.purge());
    }

    fn step(&mut self, views_max: usize) {
        match self.rng.below(44) {
            0..=15 => self.write(),
            16..=18 => {
                let writes = self.writes();
                drop(self.prepare(writes));
            }
            19 | 20 if self.undecided.len() < 3 => {
                let writes = self.writes();
                let trx = self.prepare(writes);
                self.undecided.extend(trx);
            }
            21 | 22 if !self.undecided.is_empty() => {
                let trx = self.undecided.swap_remove(self.pick(self.undecided.len()));
                if self.rng.below(2) == 0 {
                    self.commit(trx);
                }
            }
            23..=26 => self.purge(),
            27 | 28 if self.views.len() < views_max => self.view(),
            29 | 30 if !self.views.is_empty() => drop(self.views.remove(self.pick(self.views.len()))),
            31 if self.rng.below(20) == 0 => self.views.clear(),
            32 => drop(self.engine.snapshot()),
            33 if self.checkpoint.is_none() => self.begin_checkpoint(),
            34 => self.end_checkpoint(),
            35 if self.rng.below(8) == 0 => self.crash(),
            36 | 37 if !self.views.is_empty() => self.look(Some(self.pick(self.views.len()))),
            38 => self.look(None),
            39 => self.look_at_chains(),
            40 if self.rng.below(10) == 0 => self.burst(),
            41 if self.rng.below(20) == 0 => self.replace_table(),
            42 if self.rng.below(5) == 0 => {
                let segments = 1 + self.rng.below([2, 5, 128][self.rng.below(3) as usize]) as usize;
                self.engine.configure(EngineSetting::RollbackSegments(segments));
            }
            43 if self.rng.below(2) == 0 => self.wave(),
            _ => {}
        }
    }

    fn check_final_state(mut self) {
        self.fails = false;
        (0..self.views.len()).for_each(|n| self.look(Some(n)));
        self.look_at_chains();
        while !self.views.is_empty() {
            drop(self.views.remove(self.pick(self.views.len())));
            drop(self.engine.snapshot());
            self.purge();
            self.look_at_chains();
            (0..self.views.len()).for_each(|n| self.look(Some(n)));
        }
        self.undecided.clear();
        self.end_checkpoint();
        while self.engine.purge().expect("purges") > 0 {}
        let inner = &self.engine.inner;
        assert_eq!(inner.versions.history_len(), 0);
        assert_eq!((inner.versions.undo_bytes(), inner.versions.spilled_bytes()), (0, 0));
        assert!(self.records.iter().all(|record| record.strong_count() == 0), "a record is left");
        for table in &self.tables {
            let index = IndexId(table.index);
            assert_eq!(self.engine.stats(index).entries, table.rows.len() as u64, "no deleted entry is left");
            assert_eq!(scan(&self.engine, ReadAt::Latest, table.index).expect("reads"), table.rows);
            assert_eq!(self.engine.verify(index, &mut |_| true).expect("reads"), Vec::<String>::new());
            let long = table.rows.values().filter(|value| value.len() > INLINE_BYTES_MAX).count();
            let kept = inner.tree(index).map_or(0, |tree| tree.values.lock().len());
            assert_eq!(kept, long, "long values of table {index:?}");
        }
        assert_eq!(inner.store.verify_space(), None);
        self.crash();
    }
}

#[test]
fn chains_lead_to_what_lives_and_nothing_else_does() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let is_long = std::env::var_os("COHORT_LONG_TESTS").is_some();
    let first = number("COHORT_FUZZ_SEED").unwrap_or(1);
    for seed in first..first + if is_long { 2000 } else { 40 } {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        let views_max = 1 + run.rng.below(24) as usize;
        for _ in 0..1500 {
            run.step(views_max);
        }
        run.check_final_state();
    }
}
