//! Operators: they pull rows through the plan of a query.
//!
//! | module | concept |
//! |---|---|
//! | `storage` | [`Storage`]: where rows come from |

mod storage;

pub use storage::{CursorId, Storage};
