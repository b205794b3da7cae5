//! A random load on the commit path, with the model of what it committed.
#![allow(dead_code)] // each test uses a part

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohort_base::{IndexId, ParticipantId, ServerId, TrxId};
use cohort_binlog::event::{QueryEvent, StatusVars};
use cohort_binlog::{CacheOptions, Stamp, TrxCache};
use cohort_commit::CommitRequest;
use cohort_engine::{Batch, Engine, KeyRange, LoadRedo, ReadAt, Redo, ScanRequest};
use cohort_sim::{World, part};
use cohort_vfs::{Rng, SeededRng};

/// Its keys are the numbers of the indexes that exist, as in the catalog.
const CATALOG: IndexId = IndexId(16);
/// Transactions from this size on have redo in a file.
const LARGE_BYTES: usize = 17 << 20;

/// The committed state: index and key to value.
pub type Model = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

/// A write: index, key, value or deletion.
pub type Change = (u32, Vec<u8>, Option<Vec<u8>>);

/// A random load on both engines, with the model of what it committed.
pub struct Load {
    pub rng: Arc<SeededRng>,
    pub model: Model,
    pub next_index: u32,
    pub trxs: u64,
    /// Large transactions that may still run; they are slow.
    pub large_left: u32,
    pub is_stopped: bool,
    /// Redo of loads, for the commit of their definition.
    loaded: Vec<(ParticipantId, Redo)>,
}

impl Load {
    pub fn new(seed: u64) -> Load {
        let rng = Arc::new(SeededRng::new(seed));
        Load {
            rng,
            model: Model::new(),
            next_index: 17,
            trxs: 0,
            large_left: 1,
            is_stopped: false,
            loaded: Vec::new(),
        }
    }

    fn indexes(&self) -> Vec<u32> {
        let named = self.model.range((CATALOG.0, Vec::new())..(CATALOG.0 + 1, Vec::new()));
        named.map(|((_, key), _)| u32::from_be_bytes(key[..].try_into().expect("four bytes"))).collect()
    }

    fn key(&self) -> Vec<u8> {
        (self.rng.below(400) as u32).to_be_bytes().to_vec()
    }

    fn value(&self) -> Vec<u8> {
        let len = match self.rng.below(20) {
            0 => 5000 + self.rng.below(30_000),
            1..5 => self.rng.below(3000),
            _ => self.rng.below(60),
        };
        vec![self.rng.below(256) as u8; len as usize]
    }

    /// Commits changes with an event of this size. Returns false if the machine has stopped.
    fn commit(&mut self, world: &World, changes: &[Change], event_bytes: usize) -> bool {
        let mut redo = std::mem::take(&mut self.loaded);
        let mut trxs: Vec<_> = world.engines.iter().map(|engine| engine.begin()).collect();
        for (engine, trx) in world.engines.iter().zip(&mut trxs) {
            for (index, key, value) in changes {
                let done = match value {
                    Some(value) => trx.put(IndexId(*index), key, value),
                    None => trx.delete(IndexId(*index), key),
                };
                if done.is_err() {
                    return false;
                }
            }
            let Ok(prepared) = trx.prepare() else { return false };
            redo.push((engine.id(), prepared));
        }
        let options = CacheOptions { memory_bytes_max: 2000, ..CacheOptions::default() };
        let mut cache = TrxCache::new(options, Some(world.coordinator.spill_dir().clone()));
        cache.begin_statement(Stamp { timestamp: 1, server_id: ServerId(1), flags: 0 }, None);
        let event = QueryEvent::new(1, &StatusVars::default(), b"d", &vec![b'x'; event_bytes]);
        if cache.query(0, &event).is_err() {
            return false;
        }
        let Ok(sealed) = cache.seal() else { return false };
        self.trxs += 1;
        let mut locks = world.locks.owner(TrxId(self.trxs));
        let permit = world.permit(&mut locks);
        let request = CommitRequest { redo, binlog: Some(part(sealed)), locks, permit, client: None };
        let Ok(prepared) = world.coordinator.prepare(request) else { return false };
        let seq = world.coordinator.order(prepared);
        if world.coordinator.wait_acknowledged(seq).is_err() {
            return false;
        }
        for (index, key, value) in changes {
            match value {
                Some(value) => drop(self.model.insert((*index, key.clone()), value.clone())),
                None => drop(self.model.remove(&(*index, key.clone()))),
            }
        }
        true
    }

    /// Commits one row of a fixed size.
    pub fn insert_one(&mut self, world: &World) {
        let index = self.indexes()[0];
        let value = (0..20).map(|_| self.rng.below(256) as u8).collect();
        let key = (500 + self.rng.below(400) as u32).to_be_bytes().to_vec();
        assert!(self.commit(world, &[(index, key, Some(value))], 20), "it commits");
    }

    /// Loads a new index in one or two steps. Returns its entries.
    fn load(&mut self, world: &World, index: u32) -> Option<BTreeMap<Vec<u8>, Vec<u8>>> {
        let mut entries = BTreeMap::new();
        for step in 0..1 + self.rng.below(2) {
            let count = self.rng.below(300);
            let keys: BTreeSet<Vec<u8>> =
                (0..count).map(|_| (self.rng.below(10_000) * 2 + step).to_be_bytes().to_vec()).collect();
            let part: BTreeMap<Vec<u8>, Vec<u8>> = keys.into_iter().map(|key| (key, self.value())).collect();
            for engine in &world.engines {
                let mut load = engine.bulk_load(IndexId(index)).ok()?;
                part.iter().try_for_each(|(key, value)| load.add(key, value)).ok()?;
                load.finish().ok()?;
                if world.coordinator.is_archived() {
                    let (mut redo, files) = (LoadRedo::default(), &*world.coordinator);
                    for (key, value) in &part {
                        redo.add(&**engine, files, IndexId(index), (key, value)).ok()?;
                    }
                    let redo = redo.finish(files).ok()?;
                    self.loaded.extend(redo.into_iter().map(|redo| (engine.id(), redo)));
                }
            }
            entries.extend(part);
        }
        Some(entries)
    }

    /// Runs one random operation.
    pub fn step(&mut self, world: &World) {
        if self.is_stopped {
            return;
        }
        let existing = self.indexes();
        let goes_on = match self.rng.below(40) {
            0 | 1 => world.coordinator.checkpoint().is_ok(),
            2 => world.coordinator.rotate_binlog().is_ok(),
            3 | 4 => self.create(world),
            // A definition that is given up after its load.
            5 => {
                let index = self.next_index;
                self.next_index += 1;
                let is_loaded = self.load(world, index).is_some();
                self.loaded.clear();
                world.engines.iter().for_each(|engine| drop(engine.drop_indexes(&[IndexId(index)])));
                is_loaded
            }
            6 if existing.len() > 2 => {
                let index = existing[self.rng.below(existing.len() as u64) as usize];
                let is_done = self.commit(world, &[(CATALOG.0, index.to_be_bytes().to_vec(), None)], 10);
                world.engines.iter().for_each(|engine| drop(engine.drop_indexes(&[IndexId(index)])));
                self.model.retain(|(of, _), _| *of != index);
                is_done
            }
            7 if self.large_left > 0 && !existing.is_empty() => {
                self.large_left -= 1;
                let index = existing[0];
                let value = |n: u8| Some(vec![n; LARGE_BYTES / 4]);
                let changes: Vec<Change> = (0..5).map(|n| (index, vec![n], value(n))).collect();
                self.commit(world, &changes, 10)
            }
            8 => {
                world.coordinator.tick();
                true
            }
            _ if existing.is_empty() => self.create(world),
            kind => {
                let changes: Vec<Change> = (0..1 + self.rng.below(6))
                    .map(|_| {
                        let index = existing[self.rng.below(existing.len() as u64) as usize];
                        let value = (self.rng.below(4) > 0).then(|| self.value());
                        (index, self.key(), value)
                    })
                    .collect();
                self.commit(world, &changes, if kind == 9 { 6000 } else { 20 })
            }
        };
        self.is_stopped = !goes_on;
    }

    /// Creates an index, with a bulk load or empty, and with rows that were touched meanwhile.
    fn create(&mut self, world: &World) -> bool {
        let index = self.next_index;
        self.next_index += 1;
        let entries = match self.rng.below(3) {
            0 => BTreeMap::new(),
            _ => match self.load(world, index) {
                Some(entries) => entries,
                None => return false,
            },
        };
        let mut changes: Vec<Change> = vec![(CATALOG.0, index.to_be_bytes().to_vec(), Some(Vec::new()))];
        let touched = entries.keys().filter(|_| self.rng.below(5) == 0);
        changes
            .extend(touched.map(|key| (index, key.clone(), (self.rng.below(2) == 0).then(|| self.value()))));
        let before = self.model.clone();
        let loaded = entries.into_iter().map(|(key, value)| ((index, key), value));
        self.model.extend(loaded);
        let is_done = self.commit(world, &changes, 30);
        if !is_done {
            self.model = before;
        }
        is_done
    }
}

/// Returns everything in the indexes that the catalog of an engine names.
pub fn contents(engine: &dyn Engine) -> Model {
    let trx = engine.begin();
    let scan = |index: u32| {
        let (mut found, mut range) = (Vec::new(), KeyRange::default());
        loop {
            let mut batch = Batch::default();
            let request = ScanRequest::forward(ReadAt::Latest, IndexId(index), &range, 1 << 20);
            let has_more = trx.scan(&request, &mut batch).expect("readable");
            found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
            if !has_more {
                return found;
            }
            batch.cut(&mut range, cohort_engine::Direction::Forward);
        }
    };
    let mut model = Model::new();
    for (key, value) in scan(CATALOG.0) {
        let index = u32::from_be_bytes(key[..].try_into().expect("four bytes"));
        model.extend(scan(index).into_iter().map(|(key, value)| ((index, key), value)));
        model.insert((CATALOG.0, key), value);
    }
    model
}
