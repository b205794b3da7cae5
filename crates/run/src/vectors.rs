//! [`Vectors`]: a column batch, for operators that process many rows at once.

use cohort_optimize::{Join, JoinKind, JoinMethod, Node, Scan};
use cohort_types::{Value, Vector, VectorType};

use crate::batch::Batch;

/// The columns of a batch of rows.
#[derive(Debug, Default)]
pub struct Vectors {
    pub types: Vec<VectorType>,
    /// One vector per column.
    pub vectors: Vec<Vector>,
    pub rows: usize,
    /// True for columns that are read. Vectors of other columns may stay empty.
    pub wanted: Vec<bool>,
    /// True for other columns of which only text lengths and NULLs are read.
    pub lens_wanted: Vec<bool>,
}

impl Vectors {
    /// Creates an empty batch with these column types.
    pub fn new(types: Vec<VectorType>) -> Vectors {
        let vectors = types.iter().map(|_| Vector::default()).collect();
        let (wanted, lens_wanted) = (vec![true; types.len()], vec![false; types.len()]);
        Vectors { types, vectors, rows: 0, wanted, lens_wanted }
    }

    /// Creates an empty batch of which only some columns are read.
    pub(crate) fn of_columns(types: Vec<VectorType>, columns: impl IntoIterator<Item = usize>) -> Vectors {
        let mut vectors = Vectors::new(types);
        vectors.wanted.fill(false);
        columns.into_iter().for_each(|column| vectors.wanted[column] = true);
        vectors
    }

    /// Limits reading of a column to text lengths and NULLs.
    pub(crate) fn want_lens(&mut self, column: usize) {
        self.wanted[column] = false;
        self.lens_wanted[column] = true;
    }

    /// Marks the columns that are read from joined rows, in which these columns start at `first`.
    pub(crate) fn want_of(&mut self, joined: &[bool], first: usize) {
        for (wanted, above) in self.wanted.iter_mut().zip(joined.iter().skip(first)) {
            *wanted |= above;
        }
    }

    /// Removes the rows and keeps the capacity.
    pub fn clear(&mut self) {
        self.vectors.iter_mut().for_each(Vector::clear);
        self.rows = 0;
    }

    /// Appends a row. Returns false if a value does not have its column's type.
    pub fn push_row(&mut self, row: &[Value]) -> bool {
        self.rows += 1;
        let mut columns = self.vectors.iter_mut().zip(&self.types).zip(row);
        columns.all(|((vector, ty), value)| vector.push_value(value, *ty))
    }

    /// Returns the n-th row; columns that are not read are NULL.
    pub fn row(&self, n: usize) -> impl Iterator<Item = Value> {
        let vectors = self.vectors.iter().zip(&self.types).zip(&self.wanted);
        vectors
            .map(move |((vector, ty), is_wanted)| if *is_wanted { vector.value(n, *ty) } else { Value::Null })
    }

    /// Appends all rows of a batch with the same types.
    pub(crate) fn append(&mut self, other: &Vectors) {
        for (vector, from) in self.vectors.iter_mut().zip(&other.vectors) {
            vector.append(from);
        }
        self.rows += other.rows;
    }

    /// Appends the given rows of a batch with the same types.
    pub(crate) fn extend_from(&mut self, other: &Vectors, rows: &[u32]) {
        self.gather(other.vectors.iter().map(|vector| (vector, rows)));
        self.rows += rows.len();
    }

    /// Fills an empty batch with pairs of rows of two sides. If this batch has no right columns, only the
    /// left ones are taken.
    pub(crate) fn gather_pairs(
        &mut self,
        (left, of_left): (&Vectors, &[u32]),
        (right, of_right): (&Vectors, &[u32]),
    ) {
        let left = left.vectors.iter().map(|vector| (vector, of_left));
        let right = right.vectors.iter().map(|vector| (vector, of_right));
        self.gather(left.chain(right));
        self.rows = of_left.len();
    }

    /// Appends the given elements to each vector that is read.
    fn gather<'l>(&mut self, from: impl Iterator<Item = (&'l Vector, &'l [u32])>) {
        let vectors = self.vectors.iter_mut().zip(&self.types).zip(&self.wanted).zip(from);
        for (((vector, ty), _), (from, elements)) in vectors.filter(|((_, is_wanted), _)| **is_wanted) {
            vector.extend_from(from, elements, *ty);
        }
    }

    /// Returns the memory of the rows in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.vectors.iter().map(Vector::size_bytes).sum()
    }
}

/// Appends rows whose columns have these vector types.
pub(crate) fn push_rows(rows: &Batch, vectors: &mut Vectors) {
    for row in rows.iter() {
        assert!(vectors.push_row(row), "the values of a column are of its type");
    }
}

/// Returns the vector types of a node's columns, or `None` if one has none or is unknown.
pub(crate) fn column_types(node: &Node) -> Option<Vec<VectorType>> {
    match node {
        Node::Scan(scan) => scan_types(scan),
        Node::Join(join) => {
            let mut types = column_types(&join.left)?;
            if matches!(join.kind, JoinKind::Inner | JoinKind::Left) {
                types.extend(right_types(join)?);
            }
            Some(types)
        }
        Node::Filter { input, .. } | Node::OneTimeFilter { input, .. } => column_types(input),
        _ => None,
    }
}

/// Returns the vector types of the right side of a join, like [`column_types`].
pub(crate) fn right_types(join: &Join) -> Option<Vec<VectorType>> {
    match &join.method {
        JoinMethod::Lookup(scan) => scan_types(scan),
        JoinMethod::Hash { right, .. } | JoinMethod::Loop { right, .. } => column_types(right),
        JoinMethod::Json(_) => None,
    }
}

/// Returns the vector types of a scan's output, like [`column_types`].
pub(crate) fn scan_types(scan: &Scan) -> Option<Vec<VectorType>> {
    if scan.with_key {
        return None;
    }
    scan.columns.iter().map(|column| VectorType::of(&scan.table.columns.get(*column)?.ty)).collect()
}
