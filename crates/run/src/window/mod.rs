//! Window functions.
//!
//! # Concepts
//! The rows are sorted by partition and order, and stored one partition at a time. Each row is returned with
//! the values of the calls. A [`Place`] is a row of the partition with its *peers*: the rows that are equal
//! in the order. [`frame::Bounds`] computes a row's frame. From one row to the next, both bounds only move
//! forward; all code below relies on that.

mod frame;
mod function;
mod percentile;
mod sliding;

use cohort_expr::{Expr, SortKey, compare_rows};
use cohort_optimize::WindowNode;
use cohort_types::{CountBytes, Interrupt, SqlResult, Value};

use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::row_store::{RowStore, StoreReader};
use crate::runtime::Run;
use crate::sort::{Order, Sorter};
use crate::window::frame::Place;
use function::Call;

/// Calls with the same partitioning and order.
pub(crate) struct Window<'p> {
    node: &'p WindowNode,
    input: Input<'p>,
    sorter: Sorter<'p>,
    sorted: Batch,
    /// Position of the next row in `sorted`.
    at: usize,
    partition: Partition<'p>,
    calls: Vec<Call<'p>>,
}

impl<'p> Window<'p> {
    pub fn new(node: &'p WindowNode, input: Input<'p>, run: Run<'_, 'p>) -> SqlResult<Window<'p>> {
        let ascending = |collation| SortKey { collation, descending: false };
        let partition = node.partition.iter().map(|(expr, collation)| (expr, ascending(*collation)));
        let order = node.order.iter().map(|(expr, key)| (expr, *key));
        let calls = node.calls.iter().map(|call| Call::new(call, node, run)).collect::<SqlResult<_>>()?;
        Ok(Window {
            node,
            input,
            sorter: Sorter::new(Order::new(partition.chain(order))),
            sorted: Batch::new(),
            at: 0,
            partition: Partition::new(&node.order),
            calls,
        })
    }

    fn clear(&mut self, run: Run<'_, 'p>) {
        self.sorted.clear();
        self.at = 0;
        self.partition.rows.clear(run);
        self.partition.place = None;
        self.calls.iter_mut().for_each(|call| call.start(run));
    }

    fn read(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        let mut batch = Batch::new();
        while self.input.refill_all(run, &mut batch)? {
            for n in 0..batch.len() {
                self.sorter.push(run, batch.row_mut(n))?;
            }
        }
        self.sorter.finish(run)
    }

    /// Stores the rows of the next partition. Returns false if there is none.
    fn next_partition(&mut self, run: Run<'_, 'p>) -> SqlResult<bool> {
        self.partition.rows.clear(run);
        self.partition.place = None;
        self.calls.iter_mut().for_each(|call| call.start(run));
        let keys: Vec<SortKey> =
            self.node.partition.iter().map(|key| SortKey { collation: key.1, descending: false }).collect();
        let mut first = Vec::new();
        let mut current = Vec::new();
        loop {
            run.eval.step()?;
            if self.at == self.sorted.len() {
                self.sorted.clear();
                self.at = 0;
                self.sorter.read(run, &mut self.sorted, run.state.batch_rows)?;
                if self.sorted.is_empty() {
                    break;
                }
            }
            let row = self.sorted.row_mut(self.at);
            current.clear();
            evaluate(self.node.partition.iter().map(|key| &key.0), row, run, &mut current)?;
            if self.partition.rows.len() == 0 {
                std::mem::swap(&mut first, &mut current);
            } else if compare_rows(&first, &current, &keys).is_ne() {
                break;
            }
            self.partition.rows.push(run, row)?;
            self.at += 1;
        }
        Ok(self.partition.rows.len() > 0)
    }
}

/// Appends the values of expressions.
fn evaluate<'e>(
    exprs: impl Iterator<Item = &'e Expr>,
    row: &[Value],
    run: Run<'_, '_>,
    out: &mut Vec<Value>,
) -> SqlResult<()> {
    for expr in exprs {
        out.push(expr.eval_output(row, run.eval)?.into_owned());
    }
    Ok(())
}

impl<'p> Operator<'p> for Window<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.clear(run);
        self.sorter.start(run, u64::MAX);
        self.input.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        if !self.sorter.is_sorted() {
            self.read(run)?;
        }
        let target = out.len().saturating_add(want);
        while out.has_room(target) {
            run.eval.step()?;
            if !self.partition.advance(run)? {
                if !self.next_partition(run)? {
                    return Ok(());
                }
                continue;
            }
            let Some(place) = &self.partition.place else { return Ok(()) };
            out.open_row().extend_from_slice(self.partition.rows.row(&mut self.partition.reader, place.row)?);
            for call in &mut self.calls {
                let value = call.value(run, &self.partition.rows, place)?;
                run.eval.count_value(&value)?;
                out.open_row().push(value);
            }
            out.end_row();
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.clear(run);
        self.sorter.clear(run);
        self.input.close(run);
    }
}

/// The rows of a partition, with a current row.
struct Partition<'p> {
    order: &'p [(Expr, SortKey)],
    keys: Vec<SortKey>,
    rows: RowStore,
    reader: StoreReader,
    /// Reader that searches for the end of the peers.
    ahead: StoreReader,
    place: Option<Place>,
}

impl<'p> Partition<'p> {
    fn new(order: &'p [(Expr, SortKey)]) -> Partition<'p> {
        Partition {
            order,
            keys: order.iter().map(|key| key.1).collect(),
            rows: RowStore::default(),
            reader: StoreReader::default(),
            ahead: StoreReader::default(),
            place: None,
        }
    }

    /// Advances to the next row. Returns false after the last.
    fn advance(&mut self, run: Run<'_, '_>) -> SqlResult<bool> {
        let rows = self.rows.len();
        let (row, mut place) = match self.place.take() {
            Some(place) => (place.row + 1, place),
            None => (0, Place { row: 0, peers: 0..0, groups_before: 0, rows }),
        };
        if row >= rows {
            return Ok(false);
        }
        if row == place.peers.end {
            place.groups_before += u64::from(row > 0);
            place.peers = row..self.end_of_peers(run, row)?;
        }
        place.row = row;
        self.place = Some(place);
        Ok(true)
    }

    /// Returns the first row after the peers of a row.
    fn end_of_peers(&mut self, run: Run<'_, '_>, row: u64) -> SqlResult<u64> {
        if self.order.is_empty() {
            return Ok(self.rows.len());
        }
        let (mut first, mut next) = (Vec::new(), Vec::new());
        let exprs = || self.order.iter().map(|key| &key.0);
        evaluate(exprs(), self.rows.row(&mut self.ahead, row)?, run, &mut first)?;
        for end in row + 1..self.rows.len() {
            run.eval.step()?;
            next.clear();
            evaluate(exprs(), self.rows.row(&mut self.ahead, end)?, run, &mut next)?;
            if compare_rows(&first, &next, &self.keys).is_ne() {
                return Ok(end);
            }
        }
        Ok(self.rows.len())
    }
}
