//! What the operators of one run share.
//!
//! # Concepts
//! [`State`] lives as long as the run: the frame, the subqueries, the common tables. [`Runtime`] joins it
//! with the storage for as long as somebody pulls. [`Run`] adds the evaluation's context; it is passed to
//! every operator.
//!
//! # Borrows
//! The storage is borrowed for one call, in which no subquery runs: those of a scan's spans are answered
//! before ([`Run::prime`]). A subquery's operators are taken out of the state while they run, so that it is
//! never borrowed while an expression is evaluated.

use std::cell::{Cell, RefCell, RefMut};

use cohort_expr::{EvalContext, Expr, Subqueries, Subquery};
use cohort_optimize::Plan;
use cohort_types::{SqlResult, Value};

use crate::common::CommonState;
use crate::measure::Measures;
use crate::storage::Storage;
use crate::subquery::SubqueryState;

/// Rows that operators ask for at once.
pub(crate) const BATCH_ROWS: usize = 1024;

/// What lasts from one pull to the next.
pub(crate) struct State<'p> {
    pub plan: &'p Plan,
    /// Values of the columns of queries around.
    pub frame: RefCell<Vec<Value>>,
    pub subqueries: Vec<RefCell<SubqueryState<'p>>>,
    pub common: Vec<RefCell<CommonState<'p>>>,
    /// Answers that stand ready for a scan's spans, by subquery.
    primed: RefCell<Vec<(usize, Value)>>,
    /// Rows without LIMIT, when somebody counted.
    pub found: Cell<Option<u64>>,
    /// Rows asked for at once: one when evaluations have effects that others see.
    pub batch_rows: usize,
    /// Operators are measured.
    pub measures: Option<&'p Measures>,
}

impl<'p> State<'p> {
    /// `row`: what the plan reads of it stands in the frame.
    pub fn new(
        plan: &'p Plan,
        row: &[Value],
        batch_rows: usize,
        measures: Option<&'p Measures>,
    ) -> State<'p> {
        let mut frame = vec![Value::Null; plan.frame];
        for (column, slot) in &plan.given {
            frame[*slot].clone_from(&row[*column]);
        }
        State {
            plan,
            frame: RefCell::new(frame),
            subqueries: plan.subqueries.iter().map(|_| RefCell::default()).collect(),
            common: plan.common.iter().map(|_| RefCell::default()).collect(),
            primed: RefCell::default(),
            found: Cell::new(None),
            batch_rows,
            measures,
        }
    }
}

/// A storage that operators take turns with.
pub(crate) trait Shared {
    fn storage(&self) -> RefMut<'_, dyn Storage + '_>;
}

impl<'r> Shared for RefCell<&'r mut (dyn Storage + 'r)> {
    fn storage(&self) -> RefMut<'_, dyn Storage + '_> {
        RefMut::map(self.borrow_mut(), |storage| -> &mut (dyn Storage + '_) { &mut **storage })
    }
}

/// State and storage.
pub(crate) struct Runtime<'a, 'r, 'p> {
    pub state: &'a State<'p>,
    pub storage: RefCell<&'r mut (dyn Storage + 'r)>,
}

impl<'p> Runtime<'_, '_, 'p> {
    pub fn run<'b>(&'b self, eval: &'b EvalContext<'b>) -> Run<'b, 'p> {
        Run { state: self.state, storage: &self.storage, eval }
    }
}

/// What an operator gets with each call.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a, 'p> {
    pub state: &'a State<'p>,
    storage: &'a (dyn Shared + 'a),
    pub eval: &'a EvalContext<'a>,
}

impl<'a, 'p> Run<'a, 'p> {
    /// The storage, for one call.
    pub fn storage(&self) -> RefMut<'a, dyn Storage + 'a> {
        self.storage.storage()
    }

    /// The values of some slots of the frame, as bytes that tell all values apart.
    pub fn frame_key(&self, slots: &[usize]) -> Vec<u8> {
        let frame = self.state.frame.borrow();
        let mut key = Vec::new();
        slots.iter().for_each(|slot| crate::spill::encode(&frame[*slot], &mut key));
        key
    }

    /// Evaluates subqueries whose values a scan's spans will ask for.
    pub fn prime(&self, subqueries: &[&Subquery], row: &[Value]) -> SqlResult<()> {
        for subquery in subqueries {
            let value = crate::subquery::value(*self, subquery, row)?;
            self.state.primed.borrow_mut().push((subquery.id, value));
        }
        Ok(())
    }

    /// The spans are known.
    pub fn unprime(&self, subqueries: &[&Subquery]) {
        if !subqueries.is_empty() {
            self.state.primed.borrow_mut().clear();
        }
    }
}

impl Subqueries for Runtime<'_, '_, '_> {
    fn outer(&self, slot: usize) -> SqlResult<Value> {
        Ok(self.state.frame.borrow()[slot].clone())
    }

    fn value(&self, subquery: &Subquery, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Value> {
        let primed =
            self.state.primed.borrow().iter().find(|(id, _)| *id == subquery.id).map(|p| p.1.clone());
        match primed {
            Some(value) => Ok(value),
            None => crate::subquery::value(self.run(ctx), subquery, row),
        }
    }
}

/// The subqueries of some expressions.
pub(crate) fn subqueries_of<'p>(exprs: impl IntoIterator<Item = &'p Expr>) -> Vec<&'p Subquery> {
    let mut found = Vec::new();
    for expr in exprs {
        collect(expr, &mut found);
    }
    found
}

fn collect<'p>(expr: &'p Expr, found: &mut Vec<&'p Subquery>) {
    match expr {
        Expr::Subquery(node) => found.push(node),
        other => other.children().into_iter().for_each(|child| collect(child, found)),
    }
}

/// Bytes that an operator keeps, charged to the statement.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: usize,
}

impl Held {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges more; error 1290 or 1041 when the statement may not have so much.
    #[inline]
    pub fn grow(&mut self, run: Run<'_, '_>, bytes: usize) -> SqlResult<()> {
        run.eval.keep(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives some back.
    pub fn shrink(&mut self, run: Run<'_, '_>, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        run.eval.let_go(bytes);
        self.bytes -= bytes;
    }

    /// Gives all back.
    pub fn release(&mut self, run: Run<'_, '_>) {
        self.shrink(run, self.bytes);
    }
}
