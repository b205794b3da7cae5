//! State shared by the operators of one run.
//!
//! # Concepts
//! [`State`] lives as long as the run: the frame of outer values, the subqueries, the common table
//! expressions. [`Runtime`] combines it with the storage for the duration of one pull. [`Run`] adds the
//! evaluation context; it is passed to every operator.
//!
//! # Borrows
//! The storage is borrowed for one call, during which no expression may call back. Subqueries in a scan's
//! spans are evaluated before that ([`Run::prime`]). A subquery's operators are moved out of the state while
//! they run, so that the state is never borrowed while an expression is evaluated.

use std::cell::{Cell, RefCell, RefMut};

use cohort_expr::{CallBack, EvalContext, Expr, Subqueries, Subquery};
use cohort_optimize::{Node, Plan};
use cohort_types::{SqlError, SqlResult, Value};

use crate::common::CommonState;
use crate::operator::Input;
use crate::profile::PlanParts;
use crate::storage::Storage;
use crate::subquery::SubqueryState;

/// Number of rows that operators request at once.
pub(crate) const BATCH_ROWS: usize = 1024;

/// State that persists between pulls.
pub(crate) struct State<'p> {
    pub plan: &'p Plan,
    /// Column values of outer queries.
    pub frame: RefCell<Vec<Value>>,
    pub subqueries: Vec<RefCell<SubqueryState<'p>>>,
    pub common: Vec<RefCell<CommonState<'p>>>,
    /// Precomputed subquery values for a scan's spans, by subquery.
    primed: RefCell<Vec<(usize, Value)>>,
    /// Number of rows without LIMIT, if they were counted.
    pub found: Cell<Option<u64>>,
    /// Rows requested at once: 1 if evaluations have visible side effects.
    pub batch_rows: usize,
    /// If set, operators are measured.
    pub profile: Option<PlanParts<'p>>,
    build: Build<'p>,
}

/// Builds the operators of a node. Subqueries and common table expressions are built when they first run.
pub(crate) type Build<'p> = fn(&'p Node, Run<'_, 'p>) -> SqlResult<Input<'p>>;

impl<'p> State<'p> {
    /// Creates the state. Copies the values that the plan reads from `row` into the frame.
    pub fn new(
        plan: &'p Plan,
        row: &[Value],
        batch_rows: usize,
        profile: Option<PlanParts<'p>>,
        build: Build<'p>,
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
            profile,
            build,
        }
    }
}

/// A storage that operators borrow in turn.
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

/// Context passed to an operator with each call.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a, 'p> {
    pub state: &'a State<'p>,
    storage: &'a (dyn Shared + 'a),
    pub eval: &'a EvalContext<'a>,
}

impl<'a, 'p> Run<'a, 'p> {
    /// Builds the operators of a node and of its inputs.
    pub fn build(&self, node: &'p Node) -> SqlResult<Input<'p>> {
        (self.state.build)(node, *self)
    }

    /// Borrows the storage for one call.
    pub fn storage(&self) -> RefMut<'a, dyn Storage + 'a> {
        self.storage.storage()
    }

    /// Encodes the values of frame slots; different values have different bytes.
    pub fn frame_key(&self, slots: &[usize]) -> Vec<u8> {
        let frame = self.state.frame.borrow();
        let mut key = Vec::new();
        slots.iter().for_each(|slot| cohort_types::append_value(&frame[*slot], &mut key));
        key
    }

    /// Evaluates the subqueries whose values a scan's spans need.
    pub fn prime(&self, subqueries: &[&Subquery], row: &[Value]) -> SqlResult<()> {
        for subquery in subqueries {
            let value = crate::subquery::value(*self, subquery, row)?;
            self.state.primed.borrow_mut().push((subquery.id, value));
        }
        Ok(())
    }

    /// Discards the precomputed values after the spans were computed.
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

    fn call(&self, function: &CallBack, args: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Value> {
        let storage = self.storage.try_borrow_mut();
        debug_assert!(storage.is_ok(), "{} is called within a scan", function.name);
        let refused = |_| SqlError::not_supported(&format!("calls of {} here", function.name));
        storage.map_err(refused)?.call(function, args, ctx)
    }
}

/// Returns the subqueries of some expressions.
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

/// Memory of an operator that is charged to the statement.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: usize,
}

impl Held {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges more memory. Returns error 1290 or 1041 if the statement exceeds its limit.
    #[inline]
    pub fn grow(&mut self, run: Run<'_, '_>, bytes: usize) -> SqlResult<()> {
        run.eval.keep(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Releases some memory.
    pub fn shrink(&mut self, run: Run<'_, '_>, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        run.eval.let_go(bytes);
        self.bytes -= bytes;
    }

    /// Releases all memory.
    pub fn release(&mut self, run: Run<'_, '_>) {
        self.shrink(run, self.bytes);
    }
}
