//! Fronts: the start of a sort key as an integer. If the integers of two rows differ, they decide the order.
//! Most of a sort therefore compares integers, and only rows with equal integers are compared by their keys.
//!
//! Texts often share a prefix. Their sort keys are kept until the sort; then the front is built from the
//! bytes after the common prefix.

use std::cmp::Ordering;

use cohort_expr::{SortKey, sort_rows};
use cohort_types::{Interrupt, SqlResult, Value};

/// Number of entries sorted between two checks for KILL: some milliseconds.
const RUN_ENTRIES: usize = 1 << 17;

/// A row in the sort order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub front: u64,
    pub row: u32,
}

/// Value class of the fronts. Numbers of different classes do not compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Only NULL so far.
    #[default]
    Unknown,
    Integer,
    Real,
    Exact,
    Text,
    Date,
    Time,
    Timestamp,
    Fixed,
    /// Several classes: fronts cannot be used.
    Mixed,
}

/// Fronts of the first keys of some rows.
#[derive(Debug, Default)]
pub(crate) struct Fronts {
    kind: Kind,
    /// Two different keys may have the same front.
    is_cut: bool,
    /// Sort keys of texts, and their ends by row.
    texts: Vec<u8>,
    ends: Vec<usize>,
}

impl Fronts {
    pub fn clear(&mut self) {
        self.kind = Kind::Unknown;
        self.is_cut = false;
        self.texts.clear();
        self.ends.clear();
    }

    /// Returns the front of the next row's first key, and the bytes stored for it. NULL has front 0. Texts
    /// get their front later.
    #[inline]
    pub fn add(&mut self, value: &Value, key: &SortKey) -> (u64, usize) {
        let (kind, front) = match value {
            Value::Null => (self.kind, 0),
            Value::Int(v) => (Kind::Integer, self.signed(*v)),
            Value::UInt(v) | Value::Bit { bits: v, .. } | Value::Set { bits: v, .. } => {
                self.is_cut |= i64::try_from(*v).is_err();
                (Kind::Integer, self.signed(i64::try_from(*v).unwrap_or(i64::MAX)))
            }
            Value::Enum { index, .. } => (Kind::Integer, self.signed((*index).into())),
            Value::Float(v) => (Kind::Real, of_real(f64::from(*v))),
            Value::Double(v) => (Kind::Real, of_real(*v)),
            Value::Decimal(v) => {
                self.is_cut = true;
                (Kind::Exact, self.signed(v.truncate(0).to_i64().0))
            }
            Value::Str(_) => (Kind::Text, 0),
            Value::Date(v) => (Kind::Date, of_date(v.to_packed(), 0)),
            Value::DateTime(v) => (Kind::Date, of_date(v.date.to_packed(), v.micros_of_day())),
            Value::Time(v) => (Kind::Time, self.signed(v.micros)),
            Value::Timestamp(v) => (Kind::Timestamp, self.signed(*v)),
            Value::Fixed(v) => {
                self.is_cut = true;
                (Kind::Fixed, v.front())
            }
        };
        if kind != self.kind {
            self.kind = if self.kind == Kind::Unknown { kind } else { Kind::Mixed };
        }
        let kept = self.texts.len();
        if let Value::Str(text) = value {
            key.collation.sort_key(&text.bytes, &mut self.texts);
        }
        self.ends.push(self.texts.len());
        let front = if key.descending { !front } else { front };
        (front, self.texts.len() - kept + size_of::<usize>())
    }

    /// Returns the front of a signed integer. The smallest integer shares NULL's front.
    fn signed(&mut self, v: i64) -> u64 {
        self.is_cut |= v == i64::MIN;
        v as u64 ^ (1 << 63)
    }

    /// Sets the final fronts of the entries, which are in row order. Returns true if equal fronts mean equal
    /// keys.
    pub fn complete(&self, entries: &mut [Entry], key: Option<&SortKey>) -> bool {
        match self.kind {
            Kind::Mixed => entries.iter_mut().for_each(|entry| entry.front = 0),
            Kind::Text => {
                let descending = key.is_some_and(|key| key.descending);
                let shared = self.shared();
                for entry in entries {
                    let text = self.text(entry.row as usize);
                    // NULL has no sort key; every text has one.
                    let front = if text.is_empty() { 0 } else { front_of_bytes(&text[shared..]) };
                    entry.front = if descending { !front } else { front };
                }
            }
            Kind::Exact => {}
            _ => return !self.is_cut,
        }
        false
    }

    /// Returns true if the first keys are texts, so that [`Fronts::compare`] orders them.
    pub fn are_texts(&self) -> bool {
        self.kind == Kind::Text
    }

    /// Compares two rows by their first keys, which are texts or NULL.
    pub fn compare(&self, a: &Entry, b: &Entry, key: &SortKey) -> Ordering {
        let order = self.text(a.row as usize).cmp(self.text(b.row as usize));
        if key.descending { order.reverse() } else { order }
    }

    fn text(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.texts[start..self.ends[row]]
    }

    /// Returns the length of the common prefix of all sort keys.
    fn shared(&self) -> usize {
        let mut texts = (0..self.ends.len()).map(|row| self.text(row)).filter(|text| !text.is_empty());
        let Some(first) = texts.next() else { return 0 };
        let mut shared = first.len();
        for text in texts {
            let same = first[..shared].iter().zip(text).take_while(|(a, b)| a == b).count();
            shared = same;
            if shared == 0 {
                break;
            }
        }
        shared
    }
}

fn of_real(v: f64) -> u64 {
    let bits = (if v == 0.0 { 0.0 } else { v }).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

/// Returns the front of a date and time: 23 bits for the date, 37 for the microseconds of the day. The top
/// bit distinguishes it from NULL's 0.
fn of_date(packed: u32, micros_of_day: i64) -> u64 {
    (1 << 63) | (u64::from(packed) << 37) | (micros_of_day as u64)
}

fn front_of_bytes(bytes: &[u8]) -> u64 {
    let mut front = [0; 8];
    let length = bytes.len().min(8);
    front[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(front)
}

/// Sorts by front. Stable.
pub(crate) fn sort_by_front(entries: &mut Vec<Entry>, interrupt: &dyn Interrupt) -> SqlResult<()> {
    let order = |entry: &Entry| (entry.front, entry.row);
    for run in entries.chunks_mut(RUN_ENTRIES) {
        interrupt.steps(run.len() as u32)?;
        run.sort_unstable_by_key(order);
    }
    // Merge neighbouring runs until one is left.
    let mut length = RUN_ENTRIES;
    while length < entries.len() {
        let mut merged = Vec::with_capacity(entries.len());
        for pair in entries.chunks(2 * length) {
            let (mut a, mut b) = pair.split_at(length.min(pair.len()));
            while let (Some(x), Some(y)) = (a.first(), b.first()) {
                if merged.len() % RUN_ENTRIES == 0 {
                    interrupt.steps(1000)?;
                }
                if order(x) <= order(y) {
                    merged.push(*x);
                    a = &a[1..];
                } else {
                    merged.push(*y);
                    b = &b[1..];
                }
            }
            merged.extend_from_slice(a);
            merged.extend_from_slice(b);
        }
        *entries = merged;
        length *= 2;
    }
    Ok(())
}

/// Sorts entries with equal fronts. `row_bytes` is the approximate size of a row's keys.
pub(crate) fn sort_equal_fronts(
    entries: &mut [Entry],
    row_bytes: usize,
    compare: &dyn Fn(&Entry, &Entry) -> Ordering,
    interrupt: &dyn Interrupt,
) -> SqlResult<()> {
    let mut at = 0;
    while at < entries.len() {
        let front = entries[at].front;
        let length = entries[at..].iter().take_while(|entry| entry.front == front).count();
        if length > 1 {
            let mut equal = entries[at..at + length].to_vec();
            sort_rows(&mut equal, row_bytes * length, compare, interrupt)?;
            entries[at..at + length].copy_from_slice(&equal);
        }
        interrupt.step()?;
        at += length;
    }
    Ok(())
}
