//! Vectorized sort.
//!
//! # Concepts
//! The keys are columns. The keys of a row are packed into one number, its *front*: the first key's distance
//! from the minimum of its column, in as many bits as the column needs, then the next key, until 64 bits are
//! used. The front of a text consists of the sort key's bytes that follow the common prefix of the column.
//! Fronts are sorted by radix sort. Rows with equal fronts are compared by the keys that the front does not
//! hold completely.
//!
//! Rows are converted to values when they are returned or written to disk.

use std::cmp::Ordering;

use cohort_expr::{SortKey, sort_rows};
use cohort_types::{CountBytes, Interrupt, SqlResult, Value, Vector, VectorType};

use crate::vectors::Vectors;

/// Maximum number of bits per radix pass: the write positions of all buckets stay in the processor's caches.
const DIGIT_BITS_MAX: u32 = 11;
/// Fewer rows are sorted by comparison.
const ROWS_BY_DIGITS_MIN: usize = 2048;
/// Number of rows between two checks for KILL.
const PIECE_ROWS: usize = 1 << 16;
/// Memory per row during the sort: two copies of front and row number, and the position in the order.
const SORTED_ROW_BYTES: usize = 2 * size_of::<(u64, u32)>() + size_of::<u32>();
/// Maximum size of the rows in memory, because vectors address text bytes with 32 bits.
const VECTOR_BYTES_MAX: usize = 1 << 31;

/// A sort key column.
struct VectorKey {
    column: usize,
    is_text: bool,
    key: SortKey,
}

/// Collation sort keys of a text column, one per row. Empty for NULL only.
#[derive(Default)]
struct TextKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// The rows in memory.
pub(crate) struct VectorRows {
    keys: Vec<VectorKey>,
    rows: Vectors,
    /// Sort keys of the first key column that is a text.
    texts: TextKeys,
    /// Row numbers in sorted order.
    order: Vec<u32>,
    /// The last wanted row of the last sort: rows that sort after it are dropped.
    worst: Option<usize>,
}

/// Packed sort keys of some rows.
struct Fronts {
    fronts: Vec<u64>,
    /// Number of bits used.
    bits: u32,
    /// Number of leading keys that are packed completely.
    whole: usize,
}

impl VectorRows {
    /// Creates an empty set of rows with these column types. `keys` are the sort columns.
    pub fn new(types: Vec<VectorType>, keys: impl Iterator<Item = (usize, SortKey)>) -> VectorRows {
        let key =
            |(column, key): (usize, SortKey)| VectorKey { column, is_text: types[column].is_text(), key };
        let keys = keys.map(key).collect();
        VectorRows {
            keys,
            rows: Vectors::new(types),
            texts: TextKeys::default(),
            order: Vec::new(),
            worst: None,
        }
    }

    /// Appends the rows that may still be wanted. Returns the bytes this takes.
    pub fn append(&mut self, vectors: &Vectors, interrupt: &dyn Interrupt) -> SqlResult<usize> {
        interrupt.count_bytes(vectors.size_bytes())?;
        let (before, rows_before) = (self.size_bytes(), self.rows.rows);
        match self.worst {
            None => self.rows.append(vectors),
            Some(worst) => {
                let is_wanted = |n: &u32| self.compare((vectors, *n as usize), (&self.rows, worst)).is_lt();
                let wanted: Vec<u32> = (0..vectors.rows as u32).filter(is_wanted).collect();
                self.rows.extend_from(vectors, &wanted);
            }
        }
        self.add_text_keys(rows_before);
        Ok(self.size_bytes() - before)
    }

    /// Computes the sort keys of the rows from `first` on.
    fn add_text_keys(&mut self, first: usize) {
        let Some(key) = self.keys.iter().find(|key| key.is_text) else { return };
        let vector = &self.rows.vectors[key.column];
        for row in first..self.rows.rows {
            if !vector.is_null(row) {
                key.key.collation.sort_key(vector.text(row), &mut self.texts.bytes);
            }
            self.texts.ends.push(self.texts.bytes.len());
        }
    }

    /// Returns the number of rows in memory.
    pub fn len(&self) -> usize {
        self.rows.rows
    }

    /// Returns true if the format limits allow no further rows, however much memory is available.
    pub fn is_full(&self) -> bool {
        self.rows.size_bytes() > VECTOR_BYTES_MAX || self.rows.rows > (u32::MAX / 2) as usize
    }

    fn size_bytes(&self) -> usize {
        let texts = self.texts.bytes.len() + self.texts.ends.len() * size_of::<usize>();
        self.rows.size_bytes() + texts + self.rows.rows * SORTED_ROW_BYTES
    }

    /// Removes the rows.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.texts.bytes.clear();
        self.texts.ends.clear();
        self.order.clear();
        self.worst = None;
    }

    /// Sorts the rows and drops those after the first `wanted`.
    pub fn sort(&mut self, wanted: usize, interrupt: &dyn Interrupt) -> SqlResult<()> {
        let fronts = self.fronts(interrupt)?;
        let mut order = sorted(&fronts, interrupt)?;
        if fronts.whole < self.keys.len() {
            self.sort_equal(&fronts, &mut order, interrupt)?;
        }
        order.truncate(wanted);
        self.order = order;
        Ok(())
    }

    /// Sorts, keeps only the wanted rows, and returns the bytes freed.
    pub fn cut(&mut self, wanted: usize, interrupt: &dyn Interrupt) -> SqlResult<usize> {
        self.sort(wanted, interrupt)?;
        let before = self.size_bytes();
        let mut kept = Vectors::new(self.rows.types.clone());
        kept.extend_from(&self.rows, &self.order);
        self.clear();
        self.rows = kept;
        self.worst = (self.rows.rows == wanted).then(|| wanted - 1);
        interrupt.count_bytes(self.rows.size_bytes())?;
        self.add_text_keys(0);
        Ok(before - self.size_bytes())
    }

    /// Returns the number of sorted rows.
    pub fn sorted_rows(&self) -> usize {
        self.order.len()
    }

    /// Returns the values of the n-th row in sorted order.
    pub fn row(&self, n: usize) -> impl Iterator<Item = Value> {
        self.rows.row(self.order[n] as usize)
    }

    /// Compares two rows, each from its own set of rows.
    fn compare(&self, a: (&Vectors, usize), b: (&Vectors, usize)) -> Ordering {
        let mut orders = self.keys.iter().map(|key| key.compare(a, b));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn fronts(&self, interrupt: &dyn Interrupt) -> SqlResult<Fronts> {
        let mut fronts = Fronts { fronts: vec![0; self.rows.rows], bits: 0, whole: 0 };
        for key in &self.keys {
            interrupt.steps(self.rows.rows as u32)?;
            let is_whole = match key.is_text {
                true => fronts.add_texts(&self.texts, key.key.descending),
                false => fronts.add_numbers(&self.rows.vectors[key.column], key.key.descending),
            };
            if !is_whole {
                break;
            }
            fronts.whole += 1;
        }
        Ok(fronts)
    }

    /// Sorts rows with equal fronts.
    fn sort_equal(&self, fronts: &Fronts, order: &mut [u32], interrupt: &dyn Interrupt) -> SqlResult<()> {
        let rest = &self.keys[fronts.whole..];
        let compare = |a: &u32, b: &u32| {
            let (a, b) = (*a as usize, *b as usize);
            let compare = |(n, key): (usize, &VectorKey)| match n {
                // If the first of these keys is a text, its sort keys are here: no earlier text key is packed
                // completely.
                0 if key.is_text => key.directed(self.texts.text(a).cmp(self.texts.text(b))),
                _ => key.compare((&self.rows, a), (&self.rows, b)),
            };
            let mut orders = rest.iter().enumerate().map(compare);
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        let front = |row: &u32| fronts.fronts[*row as usize];
        let row_bytes = self.size_bytes() / self.rows.rows.max(1);
        let mut equal = Vec::new();
        for group in order.chunk_by_mut(|a, b| front(a) == front(b)) {
            interrupt.step()?;
            if group.len() > 1 {
                equal.clear();
                equal.extend_from_slice(group);
                sort_rows(&mut equal, row_bytes * group.len(), &compare, interrupt)?;
                group.copy_from_slice(&equal);
            }
        }
        Ok(())
    }
}

impl VectorKey {
    fn directed(&self, order: Ordering) -> Ordering {
        if self.key.descending { order.reverse() } else { order }
    }

    /// Compares two rows by this key.
    fn compare(&self, (a, row_a): (&Vectors, usize), (b, row_b): (&Vectors, usize)) -> Ordering {
        let (a, b) = (&a.vectors[self.column], &b.vectors[self.column]);
        self.directed(match (a.is_null(row_a), b.is_null(row_b)) {
            (false, false) if self.is_text => self.key.collation.compare(a.text(row_a), b.text(row_b)),
            (false, false) => a.numbers[row_a].cmp(&b.numbers[row_b]),
            // NULL sorts first.
            (a, b) => b.cmp(&a),
        })
    }
}

impl TextKeys {
    fn text(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    /// Returns the length of the common prefix of all sort keys.
    fn shared(&self) -> usize {
        let mut texts = (0..self.ends.len()).map(|row| self.text(row)).filter(|text| !text.is_empty());
        let Some(first) = texts.next() else { return 0 };
        let mut shared = first.len();
        for text in texts {
            shared = first[..shared].iter().zip(text).take_while(|(a, b)| a == b).count();
            if shared == 0 {
                break;
            }
        }
        shared
    }
}

impl Fronts {
    /// Appends the leading bits of numbers that have `bits` bits, as many as fit.
    fn push(&mut self, numbers: impl Iterator<Item = u64>, bits: u32) {
        let kept = bits.min(u64::BITS - self.bits);
        if kept == 0 {
            return;
        }
        self.bits += kept;
        for (front, number) in self.fronts.iter_mut().zip(numbers) {
            *front = front.unbounded_shl(kept) | number >> (bits - kept);
        }
    }

    /// Appends a numeric key. Returns false if it does not fit completely.
    fn add_numbers(&mut self, vector: &Vector, descending: bool) -> bool {
        let has_nulls = vector.nulls.contains(&true);
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        for (n, number) in vector.numbers.iter().enumerate() {
            if !has_nulls || !vector.nulls[n] {
                (least, greatest) = (least.min(*number), greatest.max(*number));
            }
        }
        // All keys are NULL.
        if least > greatest {
            return true;
        }
        let range = greatest.wrapping_sub(least) as u64;
        // NULL is encoded as 0. If the range uses all 64 bits, it must be halved to make room.
        let halved = u32::from(range == u64::MAX && has_nulls);
        let last = (range >> halved) + u64::from(has_nulls);
        let number = |(n, number): (usize, &i64)| {
            let code = match has_nulls {
                true if vector.nulls[n] => 0,
                _ => (number.wrapping_sub(least) as u64 >> halved) + u64::from(has_nulls),
            };
            if descending { last - code } else { code }
        };
        let bits = u64::BITS - last.leading_zeros();
        let is_whole = halved == 0 && bits <= u64::BITS - self.bits;
        self.push(vector.numbers.iter().enumerate().map(number), bits);
        is_whole
    }

    /// Appends a text key. Returns false: a text is never packed completely.
    fn add_texts(&mut self, texts: &TextKeys, descending: bool) -> bool {
        let shared = texts.shared();
        let number = |row: usize| {
            let text = texts.text(row);
            let rest = &text[shared.min(text.len())..];
            let mut bytes = [0; 8];
            let length = rest.len().min(8);
            bytes[..length].copy_from_slice(&rest[..length]);
            let number = u64::from_be_bytes(bytes);
            if descending { !number } else { number }
        };
        self.push((0..texts.ends.len()).map(number), u64::BITS);
        false
    }
}

/// Returns the row numbers sorted by front. The sort is stable.
fn sorted(fronts: &Fronts, interrupt: &dyn Interrupt) -> SqlResult<Vec<u32>> {
    let numbered = || fronts.fronts.iter().zip(0u32..).map(|(front, row)| (*front, row));
    let rows = fronts.fronts.len();
    if rows < ROWS_BY_DIGITS_MIN {
        interrupt.steps(rows as u32)?;
        let mut entries: Vec<(u64, u32)> = numbered().collect();
        entries.sort_unstable();
        return Ok(entries.into_iter().map(|entry| entry.1).collect());
    }
    let row_bits = usize::BITS - rows.leading_zeros();
    if fronts.bits + row_bits <= u64::BITS {
        // Pack front and row number into one integer.
        let entries = numbered().map(|(front, row)| front << row_bits | u64::from(row)).collect();
        let sorted = by_digits(entries, |entry| entry >> row_bits, fronts.bits, interrupt)?;
        let mask = (1 << row_bits) - 1;
        return Ok(sorted.into_iter().map(|entry| (entry & mask) as u32).collect());
    }
    let sorted = by_digits(numbered().collect(), |entry: &(u64, u32)| entry.0, fronts.bits, interrupt)?;
    Ok(sorted.into_iter().map(|entry| entry.1).collect())
}

/// Sorts entries by numbers of `bits` bits. A stable radix sort that starts at the least significant digit.
fn by_digits<T: Copy + Default>(
    mut entries: Vec<T>,
    number: impl Fn(&T) -> u64,
    bits: u32,
    interrupt: &dyn Interrupt,
) -> SqlResult<Vec<T>> {
    let digits = bits.div_ceil(DIGIT_BITS_MAX);
    let mut moved = vec![T::default(); entries.len()];
    for digit in 0..digits {
        let width = bits.div_ceil(digits);
        let part = |entry: &T| (number(entry) >> (digit * width)) as usize & ((1 << width) - 1);
        let mut places = vec![0; 1 << width];
        for piece in entries.chunks(PIECE_ROWS) {
            interrupt.steps(piece.len() as u32)?;
            piece.iter().for_each(|entry| places[part(entry)] += 1);
        }
        if places.contains(&entries.len()) {
            continue;
        }
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for piece in entries.chunks(PIECE_ROWS) {
            interrupt.steps(piece.len() as u32)?;
            for entry in piece {
                let place = &mut places[part(entry)];
                moved[*place] = *entry;
                *place += 1;
            }
        }
        std::mem::swap(&mut entries, &mut moved);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_types::{Collation, Uninterrupted};

    const TEXT: Collation = Collation::UTF8MB4_GENERAL_CI;

    /// Returns rows of two numbers, a text and the row number; `spread` limits the range of the numbers.
    fn rows(count: usize, spread: [i64; 2]) -> Vec<Vec<Value>> {
        let mut state = 88_172_645_463_325_252u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut row = |n: usize| {
            let mut number = |spread: i64| match random(7) {
                0 => Value::Null,
                1 => Value::Int(spread.wrapping_mul(i64::MAX / 2 / spread.max(1))),
                _ => Value::Int((random(50) as i64 - 25).wrapping_mul(spread)),
            };
            let (a, b) = (number(spread[0]), number(spread[1]));
            let text = match random(5) {
                0 => Value::Null,
                1 => Value::text(""),
                _ => Value::text(format!(
                    "a beginning of all {}",
                    ["x", "X ", "xy", "xylophone"][random(4) as usize]
                )),
            };
            vec![a, b, text, Value::Int(n as i64)]
        };
        (0..count).map(&mut row).collect()
    }

    #[test]
    fn rows_are_in_the_order_of_their_values() {
        let types = vec![VectorType::Int, VectorType::Int, VectorType::Text(TEXT), VectorType::Int];
        let far = i64::MAX / 25;
        for (count, spread) in [(0, [1, 1]), (1, [1, 1]), (500, [1, far]), (5000, [1, 1]), (5000, [far, 3])] {
            let rows = rows(count, spread);
            for keys in [vec![0], vec![1, 0], vec![2, 0], vec![0, 2, 1], vec![0, 1, 2], vec![3], vec![]] {
                for directions in 0..1 << keys.len() {
                    let key = |n: usize| SortKey { collation: TEXT, descending: directions >> n & 1 == 1 };
                    let keyed = || keys.iter().enumerate().map(|(n, column)| (*column, key(n)));
                    let mut expected = rows.clone();
                    expected.sort_by(|a, b| {
                        let order = |(column, key): (usize, SortKey)| {
                            cohort_expr::compare_rows(&a[column..=column], &b[column..=column], &[key])
                        };
                        keyed().map(order).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
                    });
                    for wanted in [usize::MAX, 7] {
                        let mut sorted = VectorRows::new(types.clone(), keyed());
                        let mut held = 0;
                        for piece in rows.chunks(613) {
                            let mut vectors = Vectors::new(types.clone());
                            assert!(piece.iter().all(|row| vectors.push_row(row)));
                            held += sorted.append(&vectors, &Uninterrupted).expect("uninterrupted");
                            if wanted < sorted.len() {
                                held -= sorted.cut(wanted, &Uninterrupted).expect("uninterrupted");
                            }
                            assert_eq!(held, sorted.size_bytes());
                        }
                        sorted.sort(wanted, &Uninterrupted).expect("uninterrupted");
                        let found: Vec<Vec<Value>> =
                            (0..sorted.sorted_rows()).map(|n| sorted.row(n).collect()).collect();
                        let expected = &expected[..wanted.min(count)];
                        assert_eq!(found, expected, "{count} rows by {keys:?}, {directions:b}, {wanted}");
                    }
                }
            }
        }
    }
}
