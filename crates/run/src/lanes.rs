//! Rows by columns, for operators that compute with many at once.

use cohort_optimize::{Join, JoinKind, JoinMethod, Node, Scan};
use cohort_types::{Lane, LaneType, SqlResult, Value};

use crate::batch::Batch;
use crate::operator::Input;
use crate::runtime::Run;

/// The columns of some rows.
#[derive(Debug, Default)]
pub struct Lanes {
    pub types: Vec<LaneType>,
    /// One per column of the row.
    pub lanes: Vec<Lane>,
    pub rows: usize,
    /// Whose columns somebody reads. The lanes of others may stay empty.
    pub wanted: Vec<bool>,
    /// Of which others somebody reads the lengths of texts, and what is NULL.
    pub lens_wanted: Vec<bool>,
}

impl Lanes {
    /// No rows of columns of these types.
    pub fn new(types: Vec<LaneType>) -> Lanes {
        let lanes = types.iter().map(|_| Lane::default()).collect();
        let (wanted, lens_wanted) = (vec![true; types.len()], vec![false; types.len()]);
        Lanes { types, lanes, rows: 0, wanted, lens_wanted }
    }

    /// The same of which somebody reads some columns only.
    pub(crate) fn of_columns(types: Vec<LaneType>, columns: impl IntoIterator<Item = usize>) -> Lanes {
        let mut lanes = Lanes::new(types);
        lanes.wanted.fill(false);
        columns.into_iter().for_each(|column| lanes.wanted[column] = true);
        lanes
    }

    /// Of this column no more is read than the lengths of texts, and what is NULL.
    pub(crate) fn want_lens(&mut self, column: usize) {
        self.wanted[column] = false;
        self.lens_wanted[column] = true;
    }

    /// Adds the columns that are wanted of joined rows, in which these stand from `first` on.
    pub(crate) fn want_of(&mut self, joined: &[bool], first: usize) {
        for (wanted, above) in self.wanted.iter_mut().zip(joined.iter().skip(first)) {
            *wanted |= above;
        }
    }

    /// Forgets the rows, keeps the room.
    pub fn clear(&mut self) {
        self.lanes.iter_mut().for_each(Lane::clear);
        self.rows = 0;
    }

    /// Appends a row; false if a value is not of its column's type.
    pub fn push_row(&mut self, row: &[Value]) -> bool {
        self.rows += 1;
        let mut columns = self.lanes.iter_mut().zip(&self.types).zip(row);
        columns.all(|((lane, ty), value)| lane.push_value(value, *ty))
    }

    /// The n-th row; NULL where nobody reads.
    pub fn row(&self, n: usize) -> impl Iterator<Item = Value> {
        let lanes = self.lanes.iter().zip(&self.types).zip(&self.wanted);
        lanes.map(move |((lane, ty), is_wanted)| if *is_wanted { lane.value(n, *ty) } else { Value::Null })
    }

    /// Appends all rows of others of the same types.
    pub(crate) fn append(&mut self, other: &Lanes) {
        for (lane, from) in self.lanes.iter_mut().zip(&other.lanes) {
            lane.append(from);
        }
        self.rows += other.rows;
    }

    /// Appends rows of others of the same types.
    pub(crate) fn extend_from(&mut self, other: &Lanes, rows: &[u32]) {
        self.gather(other.lanes.iter().map(|lane| (lane, rows)));
        self.rows += rows.len();
    }

    /// Takes pairs of rows of two sides, where there are no rows yet. Without columns of the right side those
    /// of the left one are all.
    pub(crate) fn gather_pairs(
        &mut self,
        (left, of_left): (&Lanes, &[u32]),
        (right, of_right): (&Lanes, &[u32]),
    ) {
        let left = left.lanes.iter().map(|lane| (lane, of_left));
        let right = right.lanes.iter().map(|lane| (lane, of_right));
        self.gather(left.chain(right));
        self.rows = of_left.len();
    }

    /// Appends to each lane that is wanted elements of another one.
    fn gather<'l>(&mut self, from: impl Iterator<Item = (&'l Lane, &'l [u32])>) {
        let lanes = self.lanes.iter_mut().zip(&self.types).zip(&self.wanted).zip(from);
        for (((lane, ty), _), (from, elements)) in lanes.filter(|((_, is_wanted), _)| **is_wanted) {
            lane.extend_from(from, elements, *ty);
        }
    }

    /// Bytes that the rows take.
    pub(crate) fn size_bytes(&self) -> usize {
        self.lanes.iter().map(Lane::size_bytes).sum()
    }
}

/// An input whose rows come as lanes, whichever way it yields them.
pub(crate) enum LaneSource {
    Lanes,
    /// It yields rows, which are taken apart.
    Rows(Batch),
}

impl LaneSource {
    /// The types of the columns of an input that was opened, and how they come; None, and nothing done, if
    /// they have no lanes.
    pub fn of<'p>(
        input: &mut Input<'p>,
        node: &Node,
        run: Run<'_, 'p>,
    ) -> SqlResult<Option<(LaneSource, Vec<LaneType>)>> {
        let Some(types) = column_types(node) else { return Ok(None) };
        let source = match input.lane_types(run)? {
            Some(own) => {
                debug_assert_eq!(own, types, "lanes are those of the columns");
                LaneSource::Lanes
            }
            None => LaneSource::Rows(Batch::new()),
        };
        Ok(Some((source, types)))
    }

    /// Replaces the lanes by those of more rows; false at the end.
    pub fn next<'p>(
        &mut self,
        input: &mut Input<'p>,
        run: Run<'_, 'p>,
        lanes: &mut Lanes,
    ) -> SqlResult<bool> {
        let LaneSource::Rows(batch) = self else { return input.next_lanes(run, lanes) };
        lanes.clear();
        let goes_on = input.refill_all(run, batch)?;
        push_rows(batch, lanes);
        Ok(goes_on)
    }
}

/// Appends rows whose columns have these lanes.
pub(crate) fn push_rows(rows: &Batch, lanes: &mut Lanes) {
    for row in rows.iter() {
        assert!(lanes.push_row(row), "the values of a column are of its type");
    }
}

/// The types of the lanes of a node's columns; None if some have no lane, or nothing is known of them.
pub(crate) fn column_types(node: &Node) -> Option<Vec<LaneType>> {
    match node {
        Node::Scan(scan) => scan_types(scan),
        Node::Join(join) => {
            let mut types = column_types(&join.left)?;
            if matches!(join.kind, JoinKind::Inner | JoinKind::Left) {
                types.extend(right_types(join)?);
            }
            Some(types)
        }
        Node::Filter { input, .. } | Node::Gate { input, .. } => column_types(input),
        _ => None,
    }
}

/// The same of what stands on the right of a join.
pub(crate) fn right_types(join: &Join) -> Option<Vec<LaneType>> {
    match &join.method {
        JoinMethod::Lookup(scan) => scan_types(scan),
        JoinMethod::Hash { right, .. } | JoinMethod::Loop { right, .. } => column_types(right),
        JoinMethod::Json(_) => None,
    }
}

/// The same of the columns that a scan yields.
pub(crate) fn scan_types(scan: &Scan) -> Option<Vec<LaneType>> {
    if scan.with_key {
        return None;
    }
    scan.columns.iter().map(|column| LaneType::of(&scan.table.columns.get(*column)?.ty)).collect()
}
