//! Subqueries in expressions: executed when their value is needed, and only as far as necessary.
//!
//! # Concepts
//! First, the frame slots that the subquery reads are filled from the row. The result depends only on these
//! values, so results are cached by them; a subquery that reads none has a single result. IN, ANY and ALL
//! over rows that never change are evaluated by [`Members`], which store the rows.
//!
//! # Bounds
//! The cached results of a subquery take at most [`CACHE_BYTES`]; if that is exceeded, the cache is cleared.
//! If the hit rate is very low, caching stops.

use cohort_expr::{Subquery, SubqueryTest};
use cohort_types::{SqlResult, Value};
use hashbrown::HashMap;

use crate::batch::Batch;
use crate::common::KEY_BYTES;
use crate::operator::Input;
use crate::quantified::{Members, Operand, Verdict};
use crate::runtime::{Held, Run};

/// Maximum size of a subquery's result cache in bytes.
const CACHE_BYTES: usize = 1 << 20;

/// Number of lookups after which the hit rate is judged.
const TRIAL: u64 = 1000;

/// A subquery's operators and cached results.
#[derive(Default)]
pub(crate) struct SubqueryState<'p> {
    root: Option<Input<'p>>,
    answers: Answers,
    members: Option<Members>,
}

impl<'p> SubqueryState<'p> {
    pub fn close(&mut self, run: Run<'_, 'p>) {
        if let Some(root) = &mut self.root {
            root.close(run);
        }
        if let Some(mut members) = self.members.take() {
            members.clear(run);
        }
        self.answers.clear(run);
    }
}

/// Results by the values they depend on.
#[derive(Default)]
struct Answers {
    by_key: HashMap<Vec<u8>, Answer, ahash::RandomState>,
    held: Held,
    asked: u64,
    found: u64,
}

#[derive(Clone)]
enum Answer {
    Value(Value),
    /// The only row.
    Row(Option<Vec<Value>>),
}

impl Answers {
    fn get(&mut self, key: &[u8]) -> Option<Answer> {
        self.asked += 1;
        let answer = self.by_key.get(key);
        self.found += u64::from(answer.is_some());
        answer.cloned()
    }

    fn keep(&mut self, run: Run<'_, '_>, key: Vec<u8>, answer: &Answer, is_fixed: bool) -> SqlResult<()> {
        let pays = self.asked < TRIAL || self.found * 16 > self.asked;
        if !is_fixed && !pays {
            self.clear(run);
            return Ok(());
        }
        let bytes = key.capacity()
            + KEY_BYTES
            + match answer {
                Answer::Value(value) => value.memory_bytes(),
                Answer::Row(row) => row.iter().flatten().map(Value::memory_bytes).sum(),
            };
        if !is_fixed && self.held.bytes() + bytes > CACHE_BYTES {
            self.clear(run);
        }
        self.held.grow(run, bytes)?;
        self.by_key.insert(key, answer.clone());
        Ok(())
    }

    fn clear(&mut self, run: Run<'_, '_>) {
        self.by_key = HashMap::default();
        self.held.release(run);
    }
}

/// Returns the value of a subquery for a row.
pub(crate) fn value(run: Run<'_, '_>, subquery: &Subquery, row: &[Value]) -> SqlResult<Value> {
    run.eval.check_stack()?;
    let mut outer = Vec::with_capacity(subquery.outer.len());
    for (slot, expr) in &subquery.outer {
        outer.push((*slot, expr.eval(row, run.eval)?.into_owned()));
    }
    for (slot, value) in outer {
        run.state.frame.borrow_mut()[slot] = value;
    }
    let plan = &run.state.plan.subqueries[subquery.id];
    let is_volatile = plan.is_volatile || subquery.is_volatile;
    let is_fixed = plan.reads.is_empty() && !is_volatile;
    if is_fixed && let SubqueryTest::Column(n) = &subquery.test {
        // Fast path: most of these are evaluated for every row of a query, so only the value is copied.
        let state = run.state.subqueries[subquery.id].borrow();
        if let Some(Answer::Row(Some(row))) = state.answers.by_key.get(&[u8::from(false)][..]) {
            return Ok(row[*n].clone().of_no_column());
        }
    }
    let operand = match &subquery.test {
        SubqueryTest::Quantified { operand, op, all, how } => {
            Some(Operand::new(run, operand, row, *op, *all, how, plan.keeps_digits)?)
        }
        SubqueryTest::Column(_) | SubqueryTest::Exists => None,
    };
    if is_fixed && let Some(operand) = &operand {
        return ask_members(run, subquery.id, operand);
    }
    let mut key = run.frame_key(&plan.reads);
    match &operand {
        Some(operand) => operand.append_key(&mut key),
        None => key.push(u8::from(matches!(subquery.test, SubqueryTest::Exists))),
    }
    let known =
        if is_volatile { None } else { run.state.subqueries[subquery.id].borrow_mut().answers.get(&key) };
    let answer = match known {
        Some(answer) => answer,
        None => {
            let answer = answered(run, subquery, operand.as_ref())?;
            if !is_volatile {
                let mut state = run.state.subqueries[subquery.id].borrow_mut();
                state.answers.keep(run, key, &answer, is_fixed)?;
            }
            answer
        }
    };
    Ok(match (answer, &subquery.test) {
        (Answer::Value(value), _) => value,
        (Answer::Row(Some(mut row)), SubqueryTest::Column(n)) => row.swap_remove(*n).of_no_column(),
        (Answer::Row(_), _) => Value::Null,
    })
}

/// Runs a subquery.
fn answered(run: Run<'_, '_>, subquery: &Subquery, operand: Option<&Operand<'_>>) -> SqlResult<Answer> {
    with_root(run, subquery.id, |root| {
        let mut rows = Batch::new();
        match (&subquery.test, operand) {
            (SubqueryTest::Exists, _) => {
                let exists = root.next(run, &mut rows, 1)? > 0;
                Ok(Answer::Value(Value::bool(exists)))
            }
            (_, None) => {
                if root.next(run, &mut rows, 1)? == 0 {
                    return Ok(Answer::Row(None));
                }
                let width = run.state.plan.subqueries[subquery.id].width;
                let only = rows.row(0)[..width].to_vec();
                rows.clear();
                match root.next(run, &mut rows, 1)? {
                    0 => Ok(Answer::Row(Some(only))),
                    _ => run.eval.too_many_rows().map(|()| Answer::Row(None)),
                }
            }
            (_, Some(operand)) => {
                let mut verdict = Verdict::new(operand);
                while !verdict.is_certain() && root.refill(run, &mut rows, run.state.batch_rows)? {
                    for row in rows.iter() {
                        verdict.take(run, row)?;
                        if verdict.is_certain() {
                            break;
                        }
                    }
                }
                Ok(Answer::Value(verdict.value()))
            }
        }
    })
}

/// Evaluates a quantified comparison over rows that never change.
fn ask_members(run: Run<'_, '_>, id: usize, operand: &Operand<'_>) -> SqlResult<Value> {
    let taken = run.state.subqueries[id].borrow_mut().members.take();
    let mut members = match taken {
        Some(members) => members,
        None => with_root(run, id, |root| Members::read(run, root, run.state.plan.subqueries[id].width))?,
    };
    let answer = members.ask(run, operand);
    run.state.subqueries[id].borrow_mut().members = Some(members);
    answer
}

/// Opens a subquery's operators. They are moved out of the state meanwhile, because their expressions may
/// evaluate other subqueries.
fn with_root<'a, 'p, T>(
    run: Run<'a, 'p>,
    id: usize,
    ask: impl FnOnce(&mut Input<'p>) -> SqlResult<T>,
) -> SqlResult<T> {
    let taken = run.state.subqueries[id].borrow_mut().root.take();
    let mut root = taken.map_or_else(|| run.build(&run.state.plan.subqueries[id].root), Ok)?;
    root.open(run)?;
    let answer = ask(&mut root);
    run.state.subqueries[id].borrow_mut().root = Some(root);
    answer
}
