//! Records of a rollback segment can be removed in any order.

use std::collections::BTreeSet;
use std::sync::Arc;

use cohort_base::CommitSeq;
use cohort_vfs::{Rng, SeededRng};

use crate::segment::{Found, Segment};
use crate::trx_record::{TrxRecord, TrxState};
use crate::version_ref::TrxNo;

#[derive(Default)]
struct Model {
    segment: Segment,
    live: BTreeSet<u64>,
    passed: BTreeSet<u64>,
}

impl Model {
    fn check(&self) {
        let segment = &self.segment;
        assert_eq!(segment.len(), self.live.len());
        assert!(self.live.first().is_none_or(|first| segment.base() <= *first));
        let places: Vec<u64> = segment.iter_from(0).map(|record| record.place()).collect();
        assert_eq!(places, self.live.iter().copied().collect::<Vec<_>>());
        for number in 0..segment.end() {
            match segment.find(number) {
                Found::There(record) => assert!(self.live.contains(&record.place())),
                Found::Passed => assert!(!self.live.contains(&number)),
                Found::Dropped => assert!(!self.live.contains(&number) && !self.passed.contains(&number)),
            }
        }
    }

    /// Returns a random subset of the existing records.
    fn some(&self, rng: &SeededRng) -> BTreeSet<u64> {
        self.live.iter().copied().filter(|_| rng.below(3) == 0).collect()
    }
}

#[test]
fn records_go_in_any_order() {
    for seed in 1..=20 {
        let rng = SeededRng::new(seed);
        let mut model = Model::default();
        for _ in 0..60 {
            match rng.below(4) {
                0 | 1 => {
                    // Often fills up to the border of a block, to one before it or to one after it.
                    let border = 64 - model.segment.end() % 64;
                    let count = [rng.below(100), border - 1, border, border + 1][rng.below(4) as usize];
                    for _ in 0..count {
                        let number = model.segment.end();
                        model.segment.push(Arc::new(TrxRecord::new(TrxNo(number))));
                        model.live.insert(number);
                    }
                }
                2 => {
                    let mut some = model.some(&rng);
                    if rng.below(2) == 0 {
                        // Whole blocks.
                        let from = rng.below(model.segment.end() + 1) / 64 * 64;
                        some = model.live.range(from..from + 128).copied().collect();
                    }
                    for number in some {
                        assert!(model.segment.drop_one(number).is_some());
                        assert!(model.segment.drop_one(number).is_none(), "it is gone");
                        model.live.remove(&number);
                    }
                }
                _ => {
                    let mut some = model.some(&rng);
                    if rng.below(3) == 0 {
                        some = model.live.clone();
                    }
                    model.segment.pass(some.iter().copied());
                    assert_eq!(
                        model.segment.base(),
                        model.live.difference(&some).next().copied().unwrap_or(model.segment.end())
                    );
                    model.live.retain(|number| !some.contains(number));
                    model.passed.extend(some);
                }
            }
            model.check();
        }
    }
}

/// Records that were undecided when pruning examined them are returned later, once.
#[test]
fn undecided_versions_are_pruned_later() {
    let mut segment = Segment::default();
    let records: Vec<_> = (0..200).map(|number| Arc::new(TrxRecord::new(TrxNo(number)))).collect();
    records.iter().for_each(|record| segment.push(record.clone()));
    let over = |state: TrxState| state != TrxState::Installed;
    let prune = |segment: &mut Segment| -> Vec<u64> {
        let found: Vec<_> = segment.ahead(&segment.pruned, over).cloned().collect();
        found.iter().for_each(|record| record.set_pruned());
        if let Some(last) = found.iter().map(|record| record.place()).max() {
            segment.advance(
                |it| &mut it.pruned,
                last,
                |record| !record.is_pruned() && record.state() != TrxState::Aborted,
            );
        }
        found.iter().map(|record| record.place()).collect()
    };
    let commit = |place: usize| records[place].commit(CommitSeq(1 + place as u64));
    (100..150).for_each(commit);
    assert_eq!(prune(&mut segment), (100..150).collect::<Vec<_>>());
    commit(7);
    commit(160);
    assert_eq!(prune(&mut segment), [7, 160]);
    commit(99);
    assert_eq!(prune(&mut segment), [99]);
    records[98].abort();
    (0..7).chain(8..98).chain(150..160).chain(161..200).for_each(commit);
    let rest: Vec<u64> = (0..7).chain(8..99).chain(150..160).chain(161..200).collect();
    assert_eq!(prune(&mut segment), rest, "with what was aborted, for purge");
    assert_eq!(prune(&mut segment), []);
}
