//! Limit of statement nesting: the depth that fits the current stack.

use cohort_base::{STACK_RESERVE, StackFloor};

use crate::{ErrorCode, SqlError, SqlResult};

/// Returns error 1436 if the current stack has no space for another level of recursion.
pub fn check_stack() -> SqlResult<()> {
    check_floor(StackFloor::current())
}

/// [`check_stack`] with a known floor, for hot paths.
#[inline]
pub fn check_floor(floor: StackFloor) -> SqlResult<()> {
    if floor.is_reached() { Err(overrun(floor)) } else { Ok(()) }
}

#[cold]
fn overrun(floor: StackFloor) -> SqlError {
    let (used, all) = floor.used_of_all();
    let text = format!(
        "Thread stack overrun:  {used} bytes used of a {all} byte stack, and {STACK_RESERVE} bytes needed. \
         Consider increasing the thread_stack system variable."
    );
    SqlError::new(ErrorCode::StackOverrunNeedMore, text)
}
