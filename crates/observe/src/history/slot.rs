//! A slot: what the series did within one interval. Its form in the file is a row of numbers.

use super::bins::{BINS, Bins, difference};
use super::tiers::TIERS;
use super::top::{TOP_MAX, TopStatement};

/// Names of the series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    pub counters: Vec<&'static str>,
    pub gauges: Vec<&'static str>,
    /// Histograms of durations.
    pub histograms: Vec<&'static str>,
}

/// Values of all series at one moment, since the start of the server.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub wall_us: u64,
    pub monotonic_ns: u64,
    pub counters: Vec<u64>,
    pub gauges: Vec<u64>,
    /// Values by bucket, of each histogram.
    pub histograms: Vec<Vec<u64>>,
}

/// A gauge within a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    pub last: u64,
    pub min: u64,
    pub max: u64,
}

/// The movements of all series within one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Number in its tier, from 1.
    pub number: u64,
    /// Wall-clock time of the begin, in microseconds since 1970.
    pub begin_us: u64,
    /// Length by the monotonic clock.
    pub length_ns: u64,
    /// Differences.
    pub counters: Box<[u64]>,
    pub gauges: Box<[Gauge]>,
    pub histograms: Box<[Bins]>,
    /// The statements that took most time, in slots of the last tier.
    pub top: Vec<TopStatement>,
}

impl Slot {
    /// Returns the slot between two readings.
    pub(super) fn between(schema: &Schema, before: &Reading, now: &Reading) -> Slot {
        let of = |all: &[u64], n: usize| all.get(n).copied().unwrap_or(0);
        let length_ns = now.monotonic_ns.saturating_sub(before.monotonic_ns);
        let counter = |n| difference(of(&before.counters, n), of(&now.counters, n));
        let gauge = |n| {
            let value = of(&now.gauges, n);
            Gauge { last: value, min: value, max: value }
        };
        let none = Vec::new();
        let bins = |n: usize| {
            Bins::between(before.histograms.get(n).unwrap_or(&none), now.histograms.get(n).unwrap_or(&none))
        };
        Slot {
            number: 0,
            begin_us: now.wall_us.saturating_sub(length_ns / 1000),
            length_ns,
            counters: (0..schema.counters.len()).map(counter).collect(),
            gauges: (0..schema.gauges.len()).map(gauge).collect(),
            histograms: (0..schema.histograms.len()).map(bins).collect(),
            top: Vec::new(),
        }
    }

    /// Appends a later slot.
    pub(super) fn merge(&mut self, later: &Slot) {
        self.length_ns += later.length_ns;
        self.counters.iter_mut().zip(&later.counters).for_each(|(own, later)| *own += later);
        for (own, later) in self.gauges.iter_mut().zip(&later.gauges) {
            *own = Gauge { last: later.last, min: own.min.min(later.min), max: own.max.max(later.max) };
        }
        self.histograms.iter_mut().zip(&later.histograms).for_each(|(own, later)| own.merge(later));
    }

    /// Returns the wall-clock time of the end, if the clock was not set.
    pub fn end_us(&self) -> u64 {
        self.begin_us.saturating_add(self.length_ns / 1000)
    }

    /// Returns the length in seconds.
    pub fn seconds(&self) -> f64 {
        self.length_ns as f64 / 1e9
    }

    /// Returns the bytes of the slot in memory.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Slot>()
            + self.counters.len() * 8
            + self.gauges.len() * size_of::<Gauge>()
            + self.histograms.len() * BINS * 4
            + self.top.capacity() * size_of::<TopStatement>()
    }

    /// Returns the numbers that a slot of a tier has in the file.
    pub(super) fn words(schema: &Schema, tier: usize) -> usize {
        let top = if tier + 1 == TIERS.len() { TOP_MAX * TopStatement::WORDS } else { 0 };
        3 + schema.counters.len() + 3 * schema.gauges.len() + schema.histograms.len() * (BINS / 2) + top
    }

    /// Appends the slot's numbers, without its place among the statements.
    pub(super) fn encode(&self, out: &mut Vec<u64>) {
        out.extend([self.number, self.begin_us, self.length_ns]);
        out.extend(&self.counters);
        self.gauges.iter().for_each(|gauge| out.extend([gauge.last, gauge.min, gauge.max]));
        for bins in &self.histograms {
            out.extend(bins.0.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32));
        }
        self.top.iter().for_each(|top| top.encode(out));
    }

    /// Reads a slot of a tier from its numbers, which are as many as [`Slot::words`] says.
    pub(super) fn decode(schema: &Schema, words: &[u64]) -> Slot {
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        let (number, begin_us, length_ns) = (next(), next(), next());
        let counters = schema.counters.iter().map(|_| next()).collect();
        let gauges = schema.gauges.iter().map(|_| Gauge { last: next(), min: next(), max: next() }).collect();
        let mut bins = |_| {
            let mut counts = Box::new([0; BINS]);
            for pair in counts.chunks_mut(2) {
                let word = next();
                (pair[0], pair[1]) = (word as u32, (word >> 32) as u32);
            }
            Bins(counts)
        };
        let histograms = schema.histograms.iter().map(&mut bins).collect();
        let top = std::iter::from_fn(|| TopStatement::decode(&mut words)).take(TOP_MAX).collect();
        Slot { number, begin_us, length_ns, counters, gauges, histograms, top }
    }

    /// Returns the slot with the series of another schema: those of the same names are kept.
    pub(super) fn adapted(&self, own: &SchemaNames, to: &Schema) -> Slot {
        fn pick<T: Clone>(from: &[String], to: &[&str], values: &[T], none: &T) -> Box<[T]> {
            let value = |name: &&str| from.iter().position(|known| known == name).map(|n| values[n].clone());
            to.iter().map(|name| value(name).unwrap_or_else(|| none.clone())).collect()
        }
        Slot {
            counters: pick(&own.counters, &to.counters, &self.counters, &0),
            gauges: pick(&own.gauges, &to.gauges, &self.gauges, &Gauge::default()),
            histograms: pick(&own.histograms, &to.histograms, &self.histograms, &Bins(Box::new([0; BINS]))),
            ..self.clone()
        }
    }
}

/// Names of the series of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SchemaNames {
    pub counters: Vec<String>,
    pub gauges: Vec<String>,
    pub histograms: Vec<String>,
}
