//! Memory use of values, and the errors of an exceeded memory budget.

use cohort_base::{BudgetOf, OverBudget};

use crate::{ErrorCode, SqlError, Value};

impl Value {
    /// Returns the bytes on the heap, in addition to the value itself.
    fn heap_bytes(&self) -> usize {
        match self {
            Value::Str(text) | Value::Enum { label: text, .. } | Value::Set { label: text, .. } => {
                text.bytes.capacity()
            }
            _ => 0,
        }
    }

    /// Returns the bytes in memory, heap included.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Value>() + self.heap_bytes()
    }
}

/// Returns the bytes in memory of a buffered row.
pub fn row_memory_bytes(row: &[Value]) -> usize {
    size_of::<Vec<Value>>() + row.iter().map(Value::memory_bytes).sum::<usize>()
}

impl From<OverBudget> for SqlError {
    /// Returns MariaDB's error 1290 if the session exceeds `max_session_mem_used`, 1041 if the server's
    /// budget is exceeded.
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
