//! LIMIT.

use std::borrow::Cow;

use cohort_expr::{EvalContext, Expr, SortKey, compare_rows};
use cohort_optimize::{LimitCount, LimitNode};
use cohort_types::{NoWarnings, SqlError, SqlResult, Value};

use crate::batch::{Batch, taken};
use crate::operator::{Input, Operator};
use crate::runtime::Run;

/// Evaluates a LIMIT. Returns the number of rows to skip and the number to return.
pub fn limit_bounds(limit: &LimitCount, eval: &EvalContext<'_>) -> SqlResult<(u64, u64)> {
    let number = |expr: &Option<Expr>, otherwise: u64| {
        expr.as_ref().map_or(Ok(otherwise), |expr| limit_value(expr, eval))
    };
    Ok((number(&limit.offset, 0)?, number(&limit.count, u64::MAX)?))
}

/// Evaluates one number of a LIMIT. Returns error 1210 if it is invalid.
pub fn limit_value(expr: &Expr, eval: &EvalContext<'_>) -> SqlResult<u64> {
    let value = expr.eval(&[], eval)?;
    let bad = || SqlError::wrong_arguments("LIMIT");
    match &*value {
        Value::Int(n) => u64::try_from(*n).map_err(|_| bad()),
        Value::UInt(n) => Ok(*n),
        // A parameter bound to a string (some drivers bind all parameters so), to another number type or to
        // NULL.
        other => match other.to_int(&mut NoWarnings) {
            Some(n) => u64::try_from(n.wide()).map_err(|_| bad()),
            None => Ok(0),
        },
    }
}

/// The LIMIT operator.
pub(crate) struct Limit<'p> {
    node: &'p LimitNode,
    input: Input<'p>,
    skip: u64,
    left: u64,
    /// Number of input rows read.
    found: u64,
    unwanted: Batch,
    /// Rows read but not returned, from `at` on, some of which may be ties; `last` are the keys of the last
    /// counted row.
    pending: Batch,
    at: usize,
    last: Option<Vec<Value>>,
}

impl<'p> Limit<'p> {
    pub fn new(node: &'p LimitNode, input: Input<'p>) -> Limit<'p> {
        let (unwanted, pending) = (Batch::new(), Batch::new());
        Limit { node, input, skip: 0, left: 0, found: 0, unwanted, pending, at: 0, last: None }
    }

    /// Returns rows like `next`, after the offset: up to the last wanted row, and the rows that tie with it.
    fn next_with_ties(
        &mut self,
        run: Run<'_, 'p>,
        order: &'p [(Expr, SortKey)],
        out: &mut Batch,
        want: usize,
    ) -> SqlResult<()> {
        let enough = out.len().saturating_add(want);
        let keys: Vec<SortKey> = order.iter().map(|(_, key)| *key).collect();
        let values = |row: &[Value]| -> SqlResult<Vec<Value>> {
            order.iter().map(|(expr, _)| expr.eval_output(row, run.eval).map(Cow::into_owned)).collect()
        };
        while out.has_room(enough) && (self.left > 0 || self.last.is_some()) {
            if self.at == self.pending.len() {
                self.at = 0;
                if !self.input.refill(run, &mut self.pending, want)? {
                    (self.left, self.last) = (0, None);
                    return Ok(());
                }
            }
            let row = self.pending.row_mut(self.at);
            self.at += 1;
            self.found += 1;
            if self.left > 0 {
                self.left -= 1;
                self.last = if self.left == 0 { Some(values(row)?) } else { None };
            } else {
                let own = values(row)?;
                let is_tie = self.last.as_ref().is_some_and(|last| compare_rows(last, &own, &keys).is_eq());
                if !is_tie {
                    self.last = None;
                    return Ok(());
                }
            }
            out.push(taken(row));
        }
        Ok(())
    }

    /// Skips rows. Returns the number of rows skipped.
    fn drop_rows(&mut self, run: Run<'_, 'p>, want: u64) -> SqlResult<u64> {
        if let Some(rows) = self.input.skip(run, want)? {
            self.found += rows;
            return Ok(rows);
        }
        self.unwanted.clear();
        let want = usize::try_from(want).unwrap_or(usize::MAX).min(run.state.batch_rows);
        let rows = self.input.next(run, &mut self.unwanted, want)? as u64;
        self.found += rows;
        Ok(rows)
    }
}

impl<'p> Operator<'p> for Limit<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        (self.skip, self.left) = limit_bounds(&self.node.limit, run.eval)?;
        self.found = 0;
        self.pending.clear();
        (self.at, self.last) = (0, None);
        self.input.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        while self.skip > 0 && self.left > 0 {
            match self.drop_rows(run, self.skip)? {
                0 => self.left = 0,
                rows => self.skip -= rows,
            }
        }
        if let Some(order) = &self.node.ties {
            let before = out.len();
            self.next_with_ties(run, order, out, want)?;
            if out.len() > before {
                return Ok(());
            }
            self.found += (self.pending.len() - self.at) as u64;
            self.at = self.pending.len();
        } else if self.left > 0 {
            let want = usize::try_from(self.left).unwrap_or(usize::MAX).min(want);
            let rows = self.input.next(run, out, want)? as u64;
            self.found += rows;
            self.left = if rows == 0 { 0 } else { self.left - rows };
            if rows > 0 {
                return Ok(());
            }
        }
        if self.node.count_all {
            while self.drop_rows(run, u64::MAX)? > 0 {}
        }
        if self.node.reports_found {
            run.state.found.set(Some(self.found));
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.input.close(run);
    }
}
