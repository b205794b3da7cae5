//! A table that HANDLER has opened, with the position in it.

use std::sync::Arc;

use cohort_catalog::Table;

/// A table opened by HANDLER OPEN.
pub(crate) struct OpenHandler {
    pub table: Arc<Table>,
    /// `None` before the first read.
    pub place: Option<Place>,
}

/// The position after the last read. `index` is `None` for reads in row order, which have a position separate
/// from that of the primary key.
pub struct Place {
    pub index: Option<usize>,
    pub at: At,
}

pub enum At {
    Key(Vec<u8>),
    /// After the last row.
    After,
    Before,
}
