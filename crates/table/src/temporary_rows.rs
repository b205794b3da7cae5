//! [`TemporaryRows`]: the row store of a session's temporary tables.
//!
//! # Concepts
//! Each index is an ordered map. The session is the only reader and writer, so a change is made in place, and
//! an undo record (*note*) is kept. Notes undo a statement, a part of the transaction or all of it. Nothing
//! is written as redo, and nothing survives a crash.
//!
//! Keys are kept in memory. Values are, too, until the store holds `tmp_memory_table_size` bytes; later ones
//! are spilled to a file ([`SpilledValues`]) of at most `tmp_disk_table_size` bytes. Memory, including that
//! of notes, is charged to the session.
//!
//! # Invariants
//! - `charged` is the sum of the memory costs of entries and notes.
//! - A place in the file belongs to one entry or one note.
//!
//! # On failure
//! A change that exceeds memory or disk limits is not made. Undoing a note needs neither.

use std::collections::BTreeMap;
use std::io;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cohort_base::{IndexId, Reservation};
use cohort_engine::{
    Batch, BulkLoad, Direction, EachWrite, EngineError, EngineTrx, ReadAt, Redo, Savepoint, ScanRequest,
};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::spilled_values::{MakeFile, Place, SpilledValues};

/// Approximate memory of an entry or a note in addition to its bytes.
const ENTRY_BYTES: u64 = 80;
/// Shorter values cost less in memory than their place in the file.
const SPILLED_BYTES_MIN: usize = 64;
/// Size of a batch after which a scan adds no further entry, in bytes.
const BATCH_BYTES: usize = 1 << 20;

type Space = BTreeMap<Box<[u8]>, Slot>;

/// Location of a value.
#[derive(Debug)]
enum Slot {
    Memory(Box<[u8]>),
    File(Place),
}

impl Slot {
    /// Returns the bytes in memory.
    fn cost(&self) -> u64 {
        match self {
            Slot::Memory(value) => value.len() as u64,
            Slot::File(_) => 0,
        }
    }
}

fn cost(key: &[u8], slot: Option<&Slot>) -> u64 {
    key.len() as u64 + ENTRY_BYTES + slot.map_or(0, Slot::cost)
}

/// Undo record: the value of a key before a change.
struct Note {
    space: IndexId,
    key: Box<[u8]>,
    before: Option<Slot>,
}

/// Size limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `tmp_memory_table_size`
    pub memory_bytes: u64,
    /// `tmp_disk_table_size`
    pub file_bytes: u64,
}

/// All rows of a session's temporary tables.
pub struct TemporaryRows {
    state: Mutex<State>,
}

struct State {
    spaces: HashMap<IndexId, Space>,
    notes: Vec<Note>,
    values: SpilledValues,
    make_file: Box<MakeFile>,
    memory: Reservation,
    charged: u64,
    limits: Limits,
}

impl TemporaryRows {
    /// Creates an empty store. `make_file` creates an anonymous temporary file.
    pub(crate) fn new(memory: Reservation, limits: Limits, make_file: Box<MakeFile>) -> Arc<TemporaryRows> {
        let state = State {
            spaces: HashMap::new(),
            notes: Vec::new(),
            values: SpilledValues::default(),
            make_file,
            memory,
            charged: 0,
            limits,
        };
        Arc::new(TemporaryRows { state: Mutex::new(state) })
    }

    /// Sets the limits to the session's current settings.
    pub fn set_limits(&self, limits: Limits) {
        self.state.lock().limits = limits;
    }

    /// Begins the session's transaction on its temporary tables.
    pub fn begin(self: &Arc<Self>) -> Box<dyn EngineTrx> {
        Box::new(TemporaryTrx { rows: Arc::clone(self), has_written: false })
    }

    /// Loads an index without undo records.
    pub fn bulk_load(self: &Arc<Self>, space: IndexId) -> Box<dyn BulkLoad> {
        Box::new(Load { rows: Arc::clone(self), space })
    }

    /// Frees indexes. Their notes have nothing left to undo.
    pub(crate) fn drop_spaces(&self, spaces: impl IntoIterator<Item = IndexId>) {
        let state = &mut *self.state.lock();
        for id in spaces {
            let Some(space) = state.spaces.remove(&id) else { continue };
            for (key, slot) in space {
                state.charged -= cost(&key, Some(&slot));
                state.release(slot);
            }
        }
        state.release_excess();
    }

    /// Makes changes after a savepoint permanent, regardless of those before it.
    pub fn keep_behind(&self, savepoint: Savepoint) {
        self.state.lock().keep(savepoint.0);
    }

    /// Returns the number of entries in an index.
    pub(crate) fn entries(&self, space: IndexId) -> u64 {
        self.state.lock().spaces.get(&space).map_or(0, |space| space.len() as u64)
    }

    #[cfg(test)]
    fn held(&self) -> (u64, u64, usize) {
        let state = self.state.lock();
        (state.charged, state.values.end(), state.notes.len())
    }
}

impl State {
    fn release(&mut self, slot: Slot) {
        if let Slot::File(place) = slot {
            self.values.free(place);
        }
    }

    /// Returns excess memory to the budget.
    fn release_excess(&mut self) {
        let too_much = self.memory.used().saturating_sub(self.charged);
        self.memory.shrink(too_much);
    }

    fn slot(&mut self, value: &[u8]) -> Result<Slot, EngineError> {
        if value.len() < SPILLED_BYTES_MIN || self.charged + value.len() as u64 <= self.limits.memory_bytes {
            return Ok(Slot::Memory(value.into()));
        }
        if self.values.end() + value.len() as u64 > self.limits.file_bytes {
            let full = io::Error::new(io::ErrorKind::StorageFull, "tmp_disk_table_size");
            return Err(EngineError::Io(full));
        }
        let place = self.values.add(value, &*self.make_file).map_err(EngineError::Io)?;
        Ok(Slot::File(place))
    }

    /// Changes a key. With `is_noted`, the change can be undone.
    fn change(
        &mut self,
        id: IndexId,
        key: &[u8],
        value: Option<&[u8]>,
        is_noted: bool,
    ) -> Result<(), EngineError> {
        let slot = value.map(|value| self.slot(value)).transpose()?;
        let added = slot.as_ref().map_or(0, |slot| cost(key, Some(slot))) + cost(key, None);
        if let Err(over) = self.memory.resize(self.charged + added) {
            slot.into_iter().for_each(|slot| self.release(slot));
            return Err(EngineError::OverBudget(over));
        }
        let before = self.swap(id, key, slot);
        if is_noted {
            self.charged += cost(key, before.as_ref());
            self.notes.push(Note { space: id, key: key.into(), before });
        } else {
            before.into_iter().for_each(|slot| self.release(slot));
        }
        if self.values.is_full_of_gaps() { self.move_values() } else { Ok(()) }
    }

    /// Replaces the value of a key. Returns the old value.
    fn swap(&mut self, id: IndexId, key: &[u8], slot: Option<Slot>) -> Option<Slot> {
        let space = self.spaces.entry(id).or_default();
        let before = match slot {
            Some(slot) => {
                self.charged += cost(key, Some(&slot));
                space.insert(key.into(), slot)
            }
            None => space.remove(key),
        };
        if let Some(before) = &before {
            self.charged -= cost(key, Some(before));
        }
        before
    }

    /// Undoes changes until `notes` notes are left.
    fn undo(&mut self, notes: usize) {
        while self.notes.len() > notes {
            let note = self.notes.pop().expect("counted above");
            self.charged -= cost(&note.key, note.before.as_ref());
            // A table that was dropped meanwhile is not restored.
            let gone = match self.spaces.contains_key(&note.space) {
                true => self.swap(note.space, &note.key, note.before),
                false => note.before,
            };
            gone.into_iter().for_each(|slot| self.release(slot));
        }
        self.release_excess();
    }

    /// Makes all changes permanent except the first `undoable` ones.
    fn keep(&mut self, undoable: usize) {
        for note in self.notes.split_off(undoable.min(self.notes.len())) {
            self.charged -= cost(&note.key, note.before.as_ref());
            note.before.into_iter().for_each(|slot| self.release(slot));
        }
        self.release_excess();
    }

    /// Copies the live values to a new file.
    fn move_values(&mut self) -> Result<(), EngineError> {
        let mut moved = SpilledValues::default();
        let mut value = Vec::new();
        let entries = self.spaces.values_mut().flat_map(|space| space.values_mut());
        let noted = self.notes.iter_mut().filter_map(|note| note.before.as_mut());
        let mut places: Vec<(&mut Slot, Place)> = Vec::new();
        for slot in entries.chain(noted) {
            let Slot::File(place) = *slot else { continue };
            value.clear();
            self.values.read(place, &mut value).map_err(EngineError::Io)?;
            places.push((slot, moved.add(&value, &*self.make_file).map_err(EngineError::Io)?));
        }
        // All or none: nothing was changed before this point.
        for (slot, place) in places {
            *slot = Slot::File(place);
        }
        self.values = moved;
        Ok(())
    }

    fn read(&mut self, id: IndexId, key: &[u8], out: &mut Vec<u8>) -> Result<bool, EngineError> {
        let Some(slot) = self.spaces.get(&id).and_then(|space| space.get(key)) else { return Ok(false) };
        read_slot(&mut self.values, slot, out)?;
        Ok(true)
    }

    fn scan(&mut self, request: &ScanRequest<'_>, batch: &mut Batch) -> Result<bool, EngineError> {
        let &ScanRequest { index, range, direction, limit, .. } = request;
        let Some(space) = self.spaces.get(&index) else { return Ok(false) };
        let start = range.start.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        if let (Some(start), Some(end)) = (&range.start, &range.end)
            && start >= end
        {
            return Ok(false);
        }
        let mut entries = space.range::<[u8], _>((start, end));
        let mut value = Vec::new();
        let mut read = 0;
        loop {
            let next = match direction {
                Direction::Forward => entries.next(),
                Direction::Backward => entries.next_back(),
            };
            let Some((key, slot)) = next else { return Ok(false) };
            if read >= limit.max(1) || (read > 0 && batch.size_bytes() >= BATCH_BYTES) {
                return Ok(true);
            }
            value.clear();
            read_slot(&mut self.values, slot, &mut value)?;
            batch.push(key, &value);
            read += 1;
        }
    }
}

fn read_slot(values: &mut SpilledValues, slot: &Slot, out: &mut Vec<u8>) -> Result<(), EngineError> {
    match slot {
        Slot::Memory(value) => out.extend_from_slice(value),
        Slot::File(place) => values.read(*place, out).map_err(EngineError::Io)?,
    }
    Ok(())
}

/// The session's transaction. If it is dropped without [`EngineTrx::prepare`], its changes are undone.
struct TemporaryTrx {
    rows: Arc<TemporaryRows>,
    has_written: bool,
}

impl Drop for TemporaryTrx {
    fn drop(&mut self) {
        if self.has_written {
            self.rows.state.lock().undo(0);
        }
    }
}

impl EngineTrx for TemporaryTrx {
    fn get(
        &self,
        _: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        value.clear();
        self.rows.state.lock().read(index, key, value)
    }

    fn scan(&self, request: &ScanRequest<'_>, batch: &mut Batch) -> Result<bool, EngineError> {
        self.rows.state.lock().scan(request, batch)
    }

    fn put(&mut self, index: IndexId, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.has_written = true;
        self.rows.state.lock().change(index, key, Some(value), true)
    }

    fn delete(&mut self, index: IndexId, key: &[u8]) -> Result<(), EngineError> {
        self.has_written = true;
        self.rows.state.lock().change(index, key, None, true)
    }

    fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.rows.state.lock().notes.len())
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.rows.state.lock().undo(savepoint.0);
    }

    fn is_read_only(&self) -> bool {
        !self.has_written
    }

    /// Returns 0, because the store charges its own memory.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Visits nothing, because temporary tables have no durable writes.
    fn each_write(&self, _: &mut EachWrite<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn prepare(&mut self) -> Result<Redo, EngineError> {
        self.has_written = false;
        self.rows.state.lock().keep(0);
        Ok(Redo::default())
    }
}

/// A table that is being copied.
struct Load {
    rows: Arc<TemporaryRows>,
    space: IndexId,
}

impl BulkLoad for Load {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.rows.state.lock().change(self.space, key, Some(value), false)
    }

    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use cohort_base::Budget;
    use cohort_engine::KeyRange;
    use cohort_vfs::{Fs, MemFs, OpenMode, Rng, SeededRng};

    use super::*;

    const SPACE: IndexId = IndexId(IndexId::FIRST_TEMPORARY.0 + 7);

    fn rows(memory_bytes: u64, file_bytes: u64) -> (Arc<TemporaryRows>, Arc<Budget>) {
        let budget = Budget::of_session(&Budget::of_server());
        let (fs, next) = (Arc::new(MemFs::new()), Mutex::new(0));
        let make = move || {
            *next.lock() += 1;
            fs.open(&PathBuf::from(format!("/{}", next.lock())), OpenMode::CreateNew)
        };
        let limits = Limits { memory_bytes, file_bytes };
        (TemporaryRows::new(Reservation::new(Arc::clone(&budget)), limits, Box::new(make)), budget)
    }

    fn all(trx: &dyn EngineTrx, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut batch, mut found, mut range) = (Batch::default(), Vec::new(), KeyRange::default());
        loop {
            batch.clear();
            let more = trx
                .scan(
                    &ScanRequest { at: ReadAt::Latest, index: SPACE, range: &range, direction, limit: 7 },
                    &mut batch,
                )
                .expect("the store is in memory");
            found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
            let Some((last, _)) = found.last().filter(|_| more) else { return found };
            match direction {
                Direction::Forward => range.start = Some([last.as_slice(), &[0]].concat()),
                Direction::Backward => range.end = Some(last.clone()),
            }
        }
    }

    /// Compares random changes, savepoints and rollbacks with a map that is copied.
    #[test]
    fn it_is_a_map_with_undo_whether_values_lie_in_memory_or_in_the_file() {
        for (seed, memory_bytes) in [(1, u64::MAX), (2, 10_000), (3, 0)] {
            let (rows, budget) = rows(memory_bytes, u64::MAX);
            let rng = SeededRng::new(seed);
            let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            for _ in 0..60 {
                let before = model.clone();
                let mut trx = rows.begin();
                let mut marks = Vec::new();
                for _ in 0..rng.below(80) {
                    let key = rng.below(50).to_string().into_bytes();
                    match rng.below(10) {
                        0 => marks.push((trx.savepoint(), model.clone())),
                        1 if !marks.is_empty() => {
                            let (mark, then) = marks.swap_remove(rng.below(marks.len() as u64) as usize);
                            marks.retain(|(other, _)| *other <= mark);
                            trx.rollback_to(mark);
                            model = then;
                        }
                        2..=4 => {
                            trx.delete(SPACE, &key).expect("no limit");
                            model.remove(&key);
                        }
                        _ => {
                            let value = vec![rng.below(256) as u8; rng.below(3000) as usize];
                            trx.put(SPACE, &key, &value).expect("no limit");
                            model.insert(key, value);
                        }
                    }
                }
                match rng.below(2) {
                    0 => drop(trx.prepare().expect("nothing to write")),
                    _ => model = before,
                }
                drop(trx);
                let trx = rows.begin();
                let wanted: Vec<_> = model.clone().into_iter().collect();
                assert_eq!(all(&*trx, Direction::Forward), wanted);
                assert_eq!(all(&*trx, Direction::Backward), wanted.into_iter().rev().collect::<Vec<_>>());
            }
            rows.drop_spaces([SPACE]);
            assert_eq!(rows.held(), (0, 0, 0), "seed {seed}");
            drop(rows);
            assert_eq!(budget.used(), 0);
        }
    }

    #[test]
    fn gaps_in_the_file_are_closed() {
        let (rows, _) = rows(0, u64::MAX);
        for round in 0..200_u32 {
            let mut trx = rows.begin();
            trx.put(SPACE, b"same", &vec![round as u8; 1 << 20]).expect("no limit");
            trx.prepare().expect("nothing to write");
        }
        let (_, end, _) = rows.held();
        assert!(end < 40 << 20, "{end} bytes for one value of a mebibyte");
        assert_eq!(all(&*rows.begin(), Direction::Forward)[0].1, vec![199; 1 << 20]);
    }

    #[test]
    fn refused_memory_or_disk_space_creates_nothing() {
        let (store, budget) = rows(u64::MAX, u64::MAX);
        budget.set_limit(1 << 20);
        let mut trx = store.begin();
        trx.put(SPACE, b"a", &[1; 1000]).expect("small");
        let over = trx.put(SPACE, b"b", &vec![2; 2 << 20]);
        assert!(matches!(over, Err(EngineError::OverBudget(_))), "{over:?}");
        assert_eq!(all(&*trx, Direction::Forward).len(), 1);
        let (store, _) = rows(0, 5000);
        let mut trx = store.begin();
        trx.put(SPACE, b"a", &[1; 4000]).expect("small");
        assert!(matches!(trx.put(SPACE, b"b", &[2; 4000]), Err(EngineError::Io(_))));
        assert_eq!(all(&*trx, Direction::Forward).len(), 1);
    }
}
