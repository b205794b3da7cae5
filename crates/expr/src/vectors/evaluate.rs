//! Execution of vectorized programs.

use cohort_types::{CountBytes, Interrupt, SqlResult, Vector};

use super::{NO, NumberAt, Overflow, Register, Step, Text, TruthAt, UNKNOWN, VectorProgram, YES};
use crate::expr::CompareOp;

/// Numeric results of a step, one per row.
#[derive(Clone, Copy)]
pub struct Numbers<'n> {
    pub numbers: &'n [i64],
    /// True for rows with NULL; empty if there are none.
    pub nulls: &'n [bool],
}

impl Numbers<'_> {
    /// Returns true if the number of row `n` is NULL.
    #[inline]
    pub fn is_null(&self, n: usize) -> bool {
        !self.nulls.is_empty() && self.nulls[n]
    }
}

impl VectorProgram {
    /// Runs all steps for `rows` rows with these input vectors.
    pub fn run(
        &mut self,
        inputs: &[&Vector],
        rows: usize,
        interrupt: &dyn Interrupt,
    ) -> SqlResult<Result<(), Overflow>> {
        for n in 0..self.steps.len() {
            let (before, rest) = self.registers.split_at_mut(n);
            let done = Done { steps: &self.steps, registers: before, inputs };
            if let Err(overflow) = done.run(n, rows, &mut rest[0], interrupt)? {
                return Ok(Err(overflow));
            }
        }
        Ok(Ok(()))
    }

    /// Returns the numeric results of a step.
    pub fn numbers<'n>(&'n self, at: NumberAt, inputs: &'n [&'n Vector]) -> Numbers<'n> {
        Done { steps: &self.steps, registers: &self.registers, inputs }.numbers(at.step)
    }

    /// Returns the truth values of a step.
    pub fn truths(&self, at: TruthAt) -> &[u8] {
        &self.registers[at.0].truths
    }
}

/// The steps that have already run.
struct Done<'d> {
    steps: &'d [Step],
    registers: &'d [Register],
    inputs: &'d [&'d Vector],
}

impl<'d> Done<'d> {
    #[inline]
    fn numbers(&self, at: usize) -> Numbers<'d> {
        match &self.steps[at] {
            Step::Input(input) => {
                Numbers { numbers: &self.inputs[*input].numbers, nulls: &self.inputs[*input].nulls }
            }
            _ => Numbers { numbers: &self.registers[at].numbers, nulls: &self.registers[at].nulls },
        }
    }

    fn run(
        &self,
        n: usize,
        rows: usize,
        out: &mut Register,
        interrupt: &dyn Interrupt,
    ) -> SqlResult<Result<(), Overflow>> {
        out.numbers.clear();
        out.nulls.clear();
        out.truths.clear();
        let inputs = self.inputs;
        let number = |at: usize| self.numbers(at);
        let truth = |at: usize| self.registers[at].truths.as_slice();
        let mut overflow = false;
        match &self.steps[n] {
            Step::Input(_) => {}
            Step::Constant(value) => {
                out.numbers.resize(rows, value.unwrap_or(0));
                if value.is_none() {
                    out.nulls.resize(rows, true);
                }
            }
            Step::Add(a, b) => overflow = pairwise(number(*a), number(*b), out, i64::overflowing_add),
            Step::Sub(a, b) => overflow = pairwise(number(*a), number(*b), out, i64::overflowing_sub),
            Step::Mul(a, b) => overflow = pairwise(number(*a), number(*b), out, i64::overflowing_mul),
            Step::Choose(condition, then, otherwise) => {
                choose(truth(*condition), number(*then), number(*otherwise), out);
            }
            Step::Compare(op, a, b) => compare(*op, number(*a), number(*b), &mut out.truths),
            Step::CompareConstant(op, a, constant) => {
                compare_constant(*op, number(*a), *constant, &mut out.truths);
            }
            Step::IsIn(a, list) => {
                let a = number(*a);
                let is_in = |v: &i64| match list.len() {
                    0..=8 => u8::from(list.contains(v)),
                    _ => u8::from(list.binary_search(v).is_ok()),
                };
                out.truths.extend(a.numbers.iter().map(is_in));
                mask(&mut out.truths, a.nulls);
            }
            Step::CompareText(op, text, constant, collation) => {
                let vector = inputs[text.input];
                interrupt.count_bytes(vector.size_bytes())?;
                each_text(*text, vector, rows, &mut out.truths, |text| {
                    let order = match text == constant.as_slice() {
                        true => std::cmp::Ordering::Equal,
                        false => collation.compare(text, constant),
                    };
                    Ok(u8::from(op.accepts(order)))
                })?;
                mask(&mut out.truths, &vector.nulls);
                interrupt.steps(rows as u32)?;
            }
            Step::CompareTexts(op, a, b, collation) => {
                let (left, right) = (inputs[a.input], inputs[b.input]);
                interrupt.count_bytes(left.size_bytes().min(right.size_bytes()))?;
                let order = |n| collation.compare(a.of(left, n), b.of(right, n));
                out.truths.extend((0..rows).map(|n| u8::from(op.accepts(order(n)))));
                mask(&mut out.truths, &left.nulls);
                mask(&mut out.truths, &right.nulls);
                interrupt.steps(rows as u32)?;
            }
            Step::IsTextIn(text, keys, collation) => {
                let vector = inputs[text.input];
                interrupt.count_bytes(vector.size_bytes())?;
                let mut key = Vec::new();
                each_text(*text, vector, rows, &mut out.truths, |text| {
                    interrupt.step()?;
                    key.clear();
                    collation.sort_key(text, &mut key);
                    Ok(u8::from(keys.binary_search_by(|known| known.as_slice().cmp(&key)).is_ok()))
                })?;
                mask(&mut out.truths, &vector.nulls);
                interrupt.steps(rows as u32)?;
            }
            Step::Like(text, pattern) => {
                let vector = inputs[text.input];
                let ask = |text: &[u8]| Ok(u8::from(pattern.matches(text, interrupt)?));
                each_text(*text, vector, rows, &mut out.truths, ask)?;
                mask(&mut out.truths, &vector.nulls);
                interrupt.steps(rows as u32)?;
            }
            Step::IsNull(a) => {
                let a = number(*a);
                out.truths.extend((0..rows).map(|n| u8::from(a.is_null(n))));
            }
            Step::IsTextNull(text) => {
                out.truths.extend((0..rows).map(|n| u8::from(inputs[text.input].is_null(n))));
            }
            Step::Bytes(input) => {
                out.numbers.extend(inputs[*input].text_lens().map(|length| length as i64));
                out.nulls.extend_from_slice(&inputs[*input].nulls);
            }
            Step::Characters(input) => {
                let vector = inputs[*input];
                let begins = |byte: &&u8| **byte & 0xc0 != 0x80;
                let count = |n| vector.text(n).iter().filter(begins).count() as i64;
                out.numbers.extend((0..rows).map(count));
                out.nulls.extend_from_slice(&vector.nulls);
                interrupt.steps(rows as u32)?;
            }
            Step::And(a, b) => out.truths.extend(truth(*a).iter().zip(truth(*b)).map(|(a, b)| and(*a, *b))),
            Step::Or(a, b) => {
                let or = |(a, b): (&u8, &u8)| not(and(not(*a), not(*b)));
                out.truths.extend(truth(*a).iter().zip(truth(*b)).map(or));
            }
            Step::Not(a) => out.truths.extend(truth(*a).iter().map(|a| not(*a))),
        }
        Ok(if overflow { Err(Overflow) } else { Ok(()) })
    }
}

/// Recently evaluated texts of a batch, in a small hash table: columns with few distinct values repeat the
/// same texts.
struct SeenTexts {
    rows: [u32; SEEN_TEXTS],
    /// Number of rows whose text was not found.
    missed: usize,
}

const SEEN_TEXTS: usize = 64;
/// Maximum length of a text to look up.
const SEEN_BYTES_MAX: usize = 32;
/// The look-ups stop if the misses exceed this number plus a quarter of the rows.
const SEEN_TRIALS: usize = 64;
const NOT_SEEN: u32 = u32::MAX;

impl SeenTexts {
    /// Returns the slot for a text.
    #[inline]
    fn place(text: &[u8]) -> usize {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let len = text.len().min(8);
        let mixed = word(&text[..len]) ^ word(&text[text.len() - len..]).rotate_left(29) ^ text.len() as u64;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
    }

    /// Returns an earlier row with an equal text, if one is stored. Otherwise stores this row.
    #[inline]
    fn find(&mut self, text: Text, vector: &Vector, row: usize) -> Option<usize> {
        let bytes = text.of(vector, row);
        if bytes.len() > SEEN_BYTES_MAX || self.missed > SEEN_TRIALS + row / 4 {
            return None;
        }
        let seen = &mut self.rows[SeenTexts::place(bytes)];
        if *seen != NOT_SEEN && text.of(vector, *seen as usize) == bytes {
            return Some(*seen as usize);
        }
        *seen = row as u32;
        self.missed += 1;
        None
    }
}

/// Evaluates a predicate for each text of a vector.
#[inline]
fn each_text(
    text: Text,
    vector: &Vector,
    rows: usize,
    truths: &mut Vec<u8>,
    mut ask: impl FnMut(&[u8]) -> SqlResult<u8>,
) -> SqlResult<()> {
    let mut seen = SeenTexts { rows: [NOT_SEEN; SEEN_TEXTS], missed: 0 };
    for row in 0..rows {
        let truth = match seen.find(text, vector, row) {
            Some(same) => truths[same],
            None => ask(text.of(vector, row))?,
        };
        truths.push(truth);
    }
    Ok(())
}

/// Applies an operation to pairs of numbers. Returns true if a result overflows.
#[inline]
fn pairwise(
    a: Numbers<'_>,
    b: Numbers<'_>,
    out: &mut Register,
    operation: impl Fn(i64, i64) -> (i64, bool),
) -> bool {
    let mut overflow = false;
    out.numbers.extend(a.numbers.iter().zip(b.numbers).map(|(a, b)| {
        let (result, is_over) = operation(*a, *b);
        overflow |= is_over;
        result
    }));
    join_nulls(a.nulls, b.nulls, &mut out.nulls);
    overflow
}

fn join_nulls(a: &[bool], b: &[bool], out: &mut Vec<bool>) {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => {}
        (false, true) => out.extend_from_slice(a),
        (true, false) => out.extend_from_slice(b),
        (false, false) => out.extend(a.iter().zip(b).map(|(a, b)| a | b)),
    }
}

fn choose(condition: &[u8], then: Numbers<'_>, otherwise: Numbers<'_>, out: &mut Register) {
    let pick = |n: usize| if condition[n] == YES { then } else { otherwise };
    out.numbers.extend((0..condition.len()).map(|n| pick(n).numbers[n]));
    if !then.nulls.is_empty() || !otherwise.nulls.is_empty() {
        out.nulls.extend((0..condition.len()).map(|n| pick(n).is_null(n)));
    }
}

fn compare(op: CompareOp, a: Numbers<'_>, b: Numbers<'_>, out: &mut Vec<u8>) {
    let pairs = a.numbers.iter().zip(b.numbers);
    match op {
        CompareOp::Eq | CompareOp::NullSafeEq => out.extend(pairs.map(|(a, b)| u8::from(a == b))),
        CompareOp::Ne => out.extend(pairs.map(|(a, b)| u8::from(a != b))),
        CompareOp::Lt => out.extend(pairs.map(|(a, b)| u8::from(a < b))),
        CompareOp::Le => out.extend(pairs.map(|(a, b)| u8::from(a <= b))),
        CompareOp::Gt => out.extend(pairs.map(|(a, b)| u8::from(a > b))),
        CompareOp::Ge => out.extend(pairs.map(|(a, b)| u8::from(a >= b))),
    }
    mask(out, a.nulls);
    mask(out, b.nulls);
}

fn compare_constant(op: CompareOp, a: Numbers<'_>, b: i64, out: &mut Vec<u8>) {
    let numbers = a.numbers.iter();
    match op {
        CompareOp::Eq | CompareOp::NullSafeEq => out.extend(numbers.map(|a| u8::from(*a == b))),
        CompareOp::Ne => out.extend(numbers.map(|a| u8::from(*a != b))),
        CompareOp::Lt => out.extend(numbers.map(|a| u8::from(*a < b))),
        CompareOp::Le => out.extend(numbers.map(|a| u8::from(*a <= b))),
        CompareOp::Gt => out.extend(numbers.map(|a| u8::from(*a > b))),
        CompareOp::Ge => out.extend(numbers.map(|a| u8::from(*a >= b))),
    }
    mask(out, a.nulls);
}

/// Sets the truth value of NULLs to UNKNOWN.
fn mask(truths: &mut [u8], nulls: &[bool]) {
    for (truth, is_null) in truths.iter_mut().zip(nulls) {
        if *is_null {
            *truth = UNKNOWN;
        }
    }
}

#[inline]
fn and(a: u8, b: u8) -> u8 {
    match (a, b) {
        (NO, _) | (_, NO) => NO,
        (YES, YES) => YES,
        _ => UNKNOWN,
    }
}

#[inline]
fn not(a: u8) -> u8 {
    match a {
        NO => YES,
        YES => NO,
        _ => UNKNOWN,
    }
}
