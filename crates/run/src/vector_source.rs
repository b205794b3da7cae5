//! Inputs of operators as vectors.

use cohort_optimize::Node;
use cohort_types::{SqlResult, VectorType};

use crate::operator::Input;
use crate::runtime::Run;
use crate::vectors::{column_types, push_rows};
use crate::{Batch, Vectors};

/// An input read as vectors, whether or not it returns vectors itself.
pub(crate) enum VectorSource {
    Vectors,
    /// The input returns rows, which are converted.
    Rows(Batch),
}

impl VectorSource {
    /// Returns the column types of an opened input, and how to read it. Returns `None`, with no effect, if
    /// some column has no vector type.
    pub fn of<'p>(
        input: &mut Input<'p>,
        node: &Node,
        run: Run<'_, 'p>,
    ) -> SqlResult<Option<(VectorSource, Vec<VectorType>)>> {
        let Some(types) = column_types(node) else { return Ok(None) };
        let source = match input.vector_types(run)? {
            Some(own) => {
                debug_assert_eq!(own, types, "lanes are those of the columns");
                VectorSource::Vectors
            }
            None => VectorSource::Rows(Batch::new()),
        };
        Ok(Some((source, types)))
    }

    /// Replaces the vectors with those of the next rows. Returns false at the end.
    pub fn next<'p>(
        &mut self,
        input: &mut Input<'p>,
        run: Run<'_, 'p>,
        vectors: &mut Vectors,
    ) -> SqlResult<bool> {
        let VectorSource::Rows(batch) = self else { return input.next_vectors(run, vectors) };
        vectors.clear();
        let goes_on = input.refill_all(run, batch)?;
        push_rows(batch, vectors);
        Ok(goes_on)
    }
}
