use super::*;

fn key(n: u8) -> Vec<u8> {
    let mut out = Vec::new();
    full_key(IndexId(16), &[n], &mut out);
    out
}

#[test]
fn rollback_restores_values_deletes_and_sizes() {
    let mut set = WriteSet::default();
    let empty = set.savepoint();
    set.write(&key(1), Some(b"one"));
    set.write(&key(2), None);
    let before = set.size_bytes();
    let second = set.savepoint();
    set.write(&key(1), None);
    set.write(&key(2), Some(b"two"));
    let third = set.savepoint();
    set.write(&key(3), Some(b"three"));
    set.write(&key(3), Some(b"3"));
    set.rollback_to(third);
    assert_eq!(set.get(&key(3)), None);
    assert_eq!(set.get(&key(2)), Some(Some(&b"two"[..])));
    set.rollback_to(second);
    assert_eq!(set.get(&key(1)), Some(Some(&b"one"[..])));
    assert_eq!(set.get(&key(2)), Some(None));
    assert_eq!(set.size_bytes(), before);
    set.rollback_to(empty);
    assert!(set.is_empty() && set.size_bytes() == 0);
}

/// Model of the write set: a plain map with savepoints.
struct Model {
    now: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    savepoints: Vec<(Savepoint, BTreeMap<Vec<u8>, Option<Vec<u8>>>)>,
}

struct NoBase;

impl BaseScan<'_> for NoBase {
    fn current(&self) -> Result<Option<(&[u8], &[u8])>, EngineError> {
        Ok(None)
    }
    fn advance(&mut self) {}
}

fn compare(set: &WriteSet, model: &Model, random: &mut impl FnMut(u64) -> u64) {
    let expected: Vec<_> = model.now.iter().map(|(k, v)| (&**k, v.as_deref())).collect();
    assert_eq!(set.iter().collect::<Vec<_>>(), expected);
    for index in [7_u32, 8] {
        let range = KeyRange {
            start: Some((random(4000) as u32).to_be_bytes().to_vec()),
            end: (random(3) > 0).then(|| (random(4000) as u32).to_be_bytes().to_vec()),
        };
        let (start, end) = full_range(IndexId(index), &range);
        for direction in [Direction::Forward, Direction::Backward] {
            let mut batch = Batch::default();
            set.merge_scan((&start, &end), direction, 10_000, &mut NoBase, &mut batch).expect("in memory");
            let within = |key: &[u8]| *start <= *key && *key < *end;
            let there = expected.iter().filter(|(key, _)| within(key));
            let mut there: Vec<_> = there.filter_map(|(key, v)| Some((&key[4..], (*v)?))).collect();
            if direction == Direction::Backward {
                there.reverse();
            }
            assert_eq!(batch.iter().collect::<Vec<_>>(), there);
        }
    }
    for _ in 0..50 {
        let mut key = Vec::new();
        full_key(IndexId(7 + random(2) as u32), &(random(4000) as u32).to_be_bytes(), &mut key);
        assert_eq!(set.get(&key), model.now.get(&key).map(Option::as_deref));
    }
}

#[test]
fn large_sets_are_what_a_map_is() {
    for seed in 1..=20_u64 {
        let mut state = seed;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut set = WriteSet::default();
        let mut model = Model { now: BTreeMap::new(), savepoints: Vec::new() };
        let mut next = 0_u32;
        for step in 0..3000 {
            match random(100) {
                0 => model.savepoints.push((set.savepoint(), model.now.clone())),
                1 if random(4) == 0 && !model.savepoints.is_empty() => {
                    let at = random(model.savepoints.len() as u64) as usize;
                    model.savepoints.truncate(at + 1);
                    let (savepoint, then) = &model.savepoints[at];
                    set.rollback_to(*savepoint);
                    model.now = then.clone();
                    // Continue at another key, as a second writer would: the run grows after or within the
                    // existing keys.
                    next = random(u64::from(next) + 1) as u32;
                }
                n => {
                    let number = if n < 70 {
                        next += 1;
                        next
                    } else {
                        random(4000) as u32
                    };
                    let mut key = Vec::new();
                    full_key(IndexId(7 + u32::from(n % 7 == 0)), &number.to_be_bytes(), &mut key);
                    let value = (n % 5 != 0).then(|| vec![n as u8; random(200) as usize]);
                    set.write(&key, value.as_deref());
                    model.now.insert(key, value);
                }
            }
            if step % 500 == 499 {
                compare(&set, &model, &mut random);
            }
        }
        let mut drained = BTreeMap::new();
        let mut last = Vec::new();
        let done = set.drain(&mut |key, value| {
            assert!(*last < *key, "in order");
            last = key.to_vec();
            drained.insert(key.to_vec(), value.map(<[u8]>::to_vec));
            Ok::<(), EngineError>(())
        });
        assert!(done.is_ok() && set.is_empty());
        assert_eq!(drained, model.now);
    }
}

#[test]
fn ascending_writes_take_little_more_than_their_bytes() {
    let mut set = WriteSet::default();
    set.write(&key(0), None);
    set.savepoint();
    for n in 0..100_000_u32 {
        let mut key = Vec::new();
        full_key(IndexId(17), &n.to_be_bytes(), &mut key);
        set.write(&key, Some(&[7; 80]));
    }
    assert!(set.memory_bytes() < set.size_bytes() + 100_000 * 14, "{}", set.memory_bytes());
    assert!(set.undo.len() < MAP_ONLY_MAX + 2, "appended writes share their undo");
    let later = set.savepoint();
    let bytes = set.size_bytes();
    let mut key = Vec::new();
    full_key(IndexId(17), &50_000_u32.to_be_bytes(), &mut key);
    set.write(&key, None);
    assert_eq!(set.get(&key), Some(None));
    set.rollback_to(later);
    assert_eq!((set.get(&key), set.size_bytes()), (Some(Some(&[7; 80][..])), bytes));
}

#[test]
fn a_transaction_of_one_statement_records_no_undo() {
    let mut set = WriteSet::default();
    let start = set.savepoint();
    set.write(&key(1), Some(b"one"));
    assert!(set.undo.is_empty());
    set.rollback_to(start);
    assert!(set.is_empty());
}

/// A base that has only entries that the reader does not see, and stops from time to time.
struct Unseen {
    keys: Vec<u8>,
    stop: Option<Vec<u8>>,
}

impl BaseScan<'_> for Unseen {
    fn current(&self) -> Result<Option<(&[u8], &[u8])>, EngineError> {
        Ok(None)
    }

    fn advance(&mut self) {}

    fn stopped_at(&self) -> Option<&[u8]> {
        self.stop.as_deref()
    }
}

#[test]
fn a_merged_scan_stops_where_its_base_does() {
    let mut set = WriteSet::default();
    [1, 5, 9].into_iter().for_each(|n| set.write(&key(n), Some(b"own")));
    for direction in [Direction::Forward, Direction::Backward] {
        let mut found = Vec::new();
        let mut range = KeyRange::default();
        let mut stops = match direction {
            Direction::Forward => vec![8, 6, 5, 2],
            Direction::Backward => vec![2, 4, 5, 8],
        };
        loop {
            let mut base = Unseen { keys: stops.clone(), stop: stops.pop().map(key) };
            let (start, end) = full_range(IndexId(16), &range);
            let mut batch = Batch::default();
            let more = set.merge_scan((&start, &end), direction, 1, &mut base, &mut batch).expect("scans");
            found.extend(batch.iter().map(|(key, _)| key[0]));
            if !more {
                break;
            }
            batch.cut(&mut range, direction);
            assert!(base.keys.len() < 5);
        }
        if direction == Direction::Backward {
            found.reverse();
        }
        assert_eq!(found, [1, 5, 9], "{direction:?}");
    }
}

#[test]
fn a_scan_over_own_deletions_comes_back() {
    let mut set = WriteSet::default();
    let key = |n: u32| {
        let mut out = Vec::new();
        full_key(IndexId(16), &n.to_be_bytes(), &mut out);
        out
    };
    let count = 3 * PASSED_MAX as u32;
    (0..count).for_each(|n| set.write(&key(n), (n == count / 2).then_some(b"left")));
    for direction in [Direction::Forward, Direction::Backward] {
        let (mut range, mut calls, mut found) = (KeyRange::default(), 0, 0);
        loop {
            let mut base = Unseen { keys: Vec::new(), stop: None };
            let (start, end) = full_range(IndexId(16), &range);
            let mut batch = Batch::default();
            let more = set.merge_scan((&start, &end), direction, 9, &mut base, &mut batch).expect("scans");
            (calls, found) = (calls + 1, found + batch.len());
            if !more {
                break;
            }
            batch.cut(&mut range, direction);
        }
        assert_eq!(found, 1, "{direction:?}");
        assert!((3..8).contains(&calls), "{calls} calls");
    }
}
