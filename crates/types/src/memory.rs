//! What values take of memory, and the errors of those who want too much.

use cohort_base::{BudgetOf, OverBudget};

use crate::{ErrorCode, SqlError, Value};

impl Value {
    /// Bytes on the heap, besides the value itself.
    fn heap_bytes(&self) -> usize {
        match self {
            Value::Str(text) | Value::Enum { label: text, .. } | Value::Set { label: text, .. } => {
                text.bytes.capacity()
            }
            _ => 0,
        }
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Value>() + self.heap_bytes()
    }
}

/// Bytes in memory of a row that is kept.
pub fn row_memory_bytes(row: &[Value]) -> usize {
    size_of::<Vec<Value>>() + row.iter().map(Value::memory_bytes).sum::<usize>()
}

impl From<OverBudget> for SqlError {
    /// Errors 1290, MariaDB's for `max_session_mem_used`, and 1041.
    fn from(over: OverBudget) -> SqlError {
        match over.of {
            BudgetOf::Session => SqlError::new(
                ErrorCode::OptionPreventsStatement,
                format!(
                    "The MariaDB server is running with the --max-session-mem-used={} option so it cannot \
                     execute this statement",
                    over.limit_bytes
                ),
            ),
            BudgetOf::Server => SqlError::new(ErrorCode::OutOfResources, "Out of memory."),
        }
    }
}
