//! The left side of a join.

use cohort_expr::Expr;
use cohort_optimize::{Join, JoinKind};
use cohort_types::{SqlResult, Value};

use crate::batch::{Batch, taken};
use crate::operator::Input;
use crate::partition::PartitionReader;
use crate::runtime::Run;

/// The left side of a join: iterates over the left rows and decides which of them to return.
pub struct Left<'p> {
    pub kind: JoinKind,
    pub on: Option<&'p Expr>,
    pub input: Input<'p>,
    /// Spilled rows that replace those of the input.
    partition: Option<PartitionReader>,
    pub rows: Batch,
    /// Position of the current row.
    pub at: usize,
    /// The current row has a match.
    pub matched: bool,
    /// The joined row that holds the current row's values: they are moved into the first joined row, and
    /// later ones copy them from there.
    lent: Option<usize>,
    started: bool,
    done: bool,
}

impl<'p> Left<'p> {
    pub fn new(join: &'p Join, input: Input<'p>) -> Left<'p> {
        let rows = Batch::new();
        let (kind, on) = (join.kind, join.on.as_ref());
        Left {
            kind,
            on,
            input,
            partition: None,
            rows,
            at: 0,
            matched: false,
            lent: None,
            started: false,
            done: false,
        }
    }

    pub fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.rows.clear();
        self.at = 0;
        self.lent = None;
        self.started = false;
        self.done = false;
        self.partition = None;
        self.input.open(run)
    }

    /// Restarts before the first row of a partition.
    pub fn read_partition(&mut self, reader: PartitionReader) {
        self.partition = Some(reader);
        self.done = false;
    }

    /// Marks the input as read, because its rows were consumed elsewhere.
    pub fn end_input(&mut self) {
        self.rows.clear();
        self.at = 0;
        self.started = false;
        self.done = true;
    }

    /// Advances to the next row. `want` is the number of rows that the consumer requested.
    pub fn advance(&mut self, run: Run<'_, 'p>, want: usize) -> SqlResult<bool> {
        self.matched = false;
        self.lent = None;
        if self.started {
            self.at += 1;
        }
        self.started = true;
        if self.at < self.rows.len() {
            return Ok(true);
        }
        self.at = 0;
        if !self.done {
            self.done = !match &mut self.partition {
                Some(reader) => reader.refill(run, &mut self.rows, want)?,
                None => self.input.refill(run, &mut self.rows, want)?,
            };
        }
        self.started = !self.done;
        Ok(!self.done)
    }

    #[inline]
    pub fn row(&self) -> &[Value] {
        self.rows.row(self.at)
    }

    /// Starts a joined row with the left row's values. They are moved, not copied, because most rows have one
    /// match.
    #[inline]
    pub fn begin(&mut self, out: &mut Batch) {
        match self.lent {
            Some(row) => out.copy_to_unfinished(row, self.rows.width()),
            None => out.open_row().extend(taken(self.rows.row_mut(self.at))),
        }
    }

    /// Drops the joined row and restores the left row's values.
    #[inline]
    fn take_back(&mut self, out: &mut Batch) {
        if self.lent.is_none() {
            let row = self.rows.row_mut(self.at);
            row.swap_with_slice(&mut out.unfinished_mut()[..row.len()]);
        }
        out.cut_unfinished(0);
    }

    /// Copies the lent values back to the left row. Must be called before `out` is handed to the consumer.
    pub fn return_lent(&mut self, out: &Batch) {
        if let Some(row) = self.lent.take() {
            let own = self.rows.row_mut(self.at);
            own.clone_from_slice(&out.row(row)[..own.len()]);
        }
    }

    /// Completes the joined row in `out`: returns or drops it as the join kind requires. Returns true if the
    /// left row needs no further matches.
    #[inline]
    pub fn decide(&mut self, run: Run<'_, 'p>, out: &mut Batch) -> SqlResult<bool> {
        if let Some(on) = self.on
            && !on.passes(out.unfinished(), run.eval)?
        {
            self.take_back(out);
            return Ok(false);
        }
        self.matched = true;
        match self.kind {
            JoinKind::Inner | JoinKind::Left => {
                self.lent.get_or_insert(out.len());
                out.end_row();
                Ok(false)
            }
            JoinKind::Semi => {
                out.cut_unfinished(self.rows.width());
                out.end_row();
                Ok(true)
            }
            JoinKind::Anti => {
                out.cut_unfinished(0);
                Ok(true)
            }
        }
    }

    /// Handles the end of the left row's matches.
    #[inline]
    pub fn end_matches(&mut self, out: &mut Batch, right_width: usize) {
        if self.matched {
            return;
        }
        match self.kind {
            JoinKind::Left => {
                self.begin(out);
                out.open_row().extend(std::iter::repeat_n(Value::Null, right_width));
                out.end_row();
            }
            JoinKind::Anti => {
                self.begin(out);
                out.end_row();
            }
            JoinKind::Inner | JoinKind::Semi => {}
        }
    }
}
