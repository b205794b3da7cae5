//! What the client is told of a statement that changed rows.

use cohort_types::Value;

/// The contents of the OK packet, or of the result set that RETURNING sends in its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DmlOutcome {
    /// Rows changed; what ROW_COUNT() says.
    pub affected: u64,
    /// The same for a client that asked for CLIENT_FOUND_ROWS: an UPDATE's matching rows count though not
    /// changed.
    pub found: u64,
    /// The insert id of the OK packet, generated or given by `LAST_INSERT_ID(n)`; 0 for none.
    pub insert_id: u64,
    /// The first value that the statement generated, for LAST_INSERT_ID(); None leaves that as it is.
    pub generated_id: Option<u64>,
    /// `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: String,
    /// Rows of RETURNING.
    pub returned: Option<Vec<Vec<Value>>>,
}
