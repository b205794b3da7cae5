//! The slots of all tiers in memory: [`History`].

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::slot::{Reading, Schema, Slot};
use super::tiers::{TIERS, Tier};
use super::top::TopStatement;

/// The newest slots of a tier, and the slot that is being filled.
struct Ring {
    tier: Tier,
    slots: VecDeque<Slot>,
    /// Number of the next slot.
    next: u64,
    open: Option<(Slot, u64)>,
}

impl Ring {
    fn push(&mut self, mut slot: Slot) -> &Slot {
        slot.number = self.next;
        self.next += 1;
        if self.slots.len() == self.tier.slots {
            self.slots.pop_front();
        }
        self.slots.push_back(slot);
        self.slots.back().expect("it was added")
    }
}

/// The history of a server.
pub struct History {
    schema: Schema,
    inner: Mutex<Inner>,
}

struct Inner {
    rings: Vec<Ring>,
    /// The reading before.
    last: Option<Reading>,
}

/// Slots of a tier, for a reader.
pub struct Extract<T> {
    /// Number of the last slot that exists, to ask for later ones.
    pub last: u64,
    pub slots: Vec<T>,
}

impl History {
    /// Creates an empty history.
    pub fn new(schema: Schema) -> History {
        let ring = |tier| Ring { tier, slots: VecDeque::new(), next: 1, open: None };
        let inner = Mutex::new(Inner { rings: TIERS.map(ring).into(), last: None });
        History { schema, inner }
    }

    /// Returns the series.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Adds the slots of a file, oldest first, before the first reading.
    pub(crate) fn restore(&self, tier: usize, slots: Vec<Slot>) {
        let mut inner = self.inner.lock();
        for slot in slots {
            inner.rings[tier].push(slot);
        }
    }

    /// Adds a reading. `top` is called when a minute ends. Returns the slots that were completed, with their
    /// tiers. The first reading only sets the values to compare with.
    pub fn tick(&self, reading: Reading, top: impl FnOnce() -> Vec<TopStatement>) -> Vec<(usize, Slot)> {
        let mut inner = self.inner.lock();
        let Some(last) = inner.last.replace(reading) else { return Vec::new() };
        let now = inner.last.as_ref().expect("it was put");
        let mut slot = Slot::between(&self.schema, &last, now);
        let mut top = Some(top);
        let mut completed = Vec::new();
        for (number, ring) in inner.rings.iter_mut().enumerate() {
            let (sum, ticks) = match ring.open.take() {
                Some((mut sum, ticks)) => {
                    sum.merge(&slot);
                    (sum, ticks)
                }
                None => (slot.clone(), 0),
            };
            // A shorter tier's slot is merged once, so its ticks are counted.
            let ticks = ticks + TIERS[number.saturating_sub(1)].ticks;
            if ticks < ring.tier.ticks {
                ring.open = Some((sum, ticks));
                break;
            }
            slot = sum;
            if number + 1 == TIERS.len() {
                slot.top = top.take().map(|top| top()).unwrap_or_default();
            }
            let slot = ring.push(slot.clone());
            completed.push((number, slot.clone()));
        }
        completed
    }

    /// Reads the slots of a tier whose number is greater than `after`, oldest first.
    pub fn read<T>(&self, tier: usize, after: u64, mut take: impl FnMut(&Slot) -> T) -> Extract<T> {
        let inner = self.inner.lock();
        let Some(ring) = inner.rings.get(tier) else { return Extract { last: 0, slots: Vec::new() } };
        let mut begin_us = u64::MAX;
        let mut slots: Vec<T> = Vec::new();
        for slot in ring.slots.iter().rev().take_while(|slot| slot.number > after) {
            // Half a tick of tolerance: the clocks differ a little.
            if slot.end_us() <= begin_us.saturating_add(500_000) {
                begin_us = slot.begin_us;
                slots.push(take(slot));
            }
        }
        slots.reverse();
        Extract { last: ring.next - 1, slots }
    }

    /// Returns an estimate of the memory of all slots in bytes.
    pub fn bytes(&self) -> usize {
        let inner = self.inner.lock();
        inner.rings.iter().flat_map(|ring| &ring.slots).map(Slot::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::bins::{BINS, bin_of};
    use super::*;

    fn schema() -> Schema {
        Schema { counters: vec!["c"], gauges: vec!["g"], histograms: vec!["h"] }
    }

    fn reading(second: u64, wall_us: u64) -> Reading {
        let mut bins = vec![0; BINS];
        bins[bin_of(1000)] = second;
        Reading {
            wall_us,
            monotonic_ns: second * 1_000_000_000,
            counters: vec![second * 7],
            gauges: vec![second % 5],
            histograms: vec![bins],
        }
    }

    const BEGIN_US: u64 = 1_700_000_000_000_000;

    #[test]
    fn slots_of_all_tiers_hold_differences_and_are_bounded() {
        let history = History::new(schema());
        for second in 0..=2000 {
            history.tick(reading(second, BEGIN_US + second * 1_000_000), Vec::new);
        }
        for (tier, (ticks, slots)) in [(1, 900), (10, 200), (60, 33)].into_iter().enumerate() {
            let found = history.read(tier, 0, |slot| {
                assert_eq!(slot.counters[..], [7 * ticks], "tier {tier}");
                assert_eq!((slot.length_ns, slot.histograms[0].count()), (ticks * 1_000_000_000, ticks));
                slot.gauges[0]
            });
            assert_eq!(found.slots.len(), slots, "tier {tier}");
            let later = history.read(tier, found.last - 3, |slot| slot.number);
            assert_eq!(later.slots, [found.last - 2, found.last - 1, found.last]);
            if tier > 0 {
                let gauge = found.slots[0];
                assert_eq!((gauge.min, gauge.max), (0, 4));
            }
        }
        assert!(history.bytes() < 4 << 20, "{}", history.bytes());
    }

    #[test]
    fn a_clock_that_is_set_back_hides_what_it_overlaps() {
        let history = History::new(schema());
        let wall = |second: u64| match second {
            // A step forward by an hour, and back by half an hour.
            0..100 => BEGIN_US + second * 1_000_000,
            100..200 => BEGIN_US + (second + 3600) * 1_000_000,
            _ => BEGIN_US + (second + 1800) * 1_000_000,
        };
        (0..300).for_each(|second| _ = history.tick(reading(second, wall(second)), Vec::new));
        let found = history.read(0, 0, |slot| (slot.begin_us, slot.end_us()));
        assert!(found.slots.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 500_000), "in order");
        // The slots of the wrong hour are hidden, those before and after are not.
        assert_eq!(found.slots.first().expect("one").0, BEGIN_US);
        assert_eq!(found.slots.len(), 99 + 99 + 1);
    }

    #[test]
    fn a_counter_that_was_reset_counts_from_zero() {
        let history = History::new(schema());
        let mut second = reading(1, BEGIN_US + 1_000_000);
        second.counters = vec![3];
        let mut first = reading(0, BEGIN_US);
        first.counters = vec![1_000_000];
        history.tick(first, Vec::new);
        history.tick(second, Vec::new);
        assert_eq!(history.read(0, 0, |slot| slot.counters[0]).slots, [3]);
    }
}
