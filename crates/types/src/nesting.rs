//! How deep statements may nest: as deep as the running stack carries.

use cohort_base::{STACK_RESERVE, StackFloor};

use crate::{ErrorCode, SqlError, SqlResult};

/// Error 1436 when the running stack has no room for another level of recursion.
pub fn check_stack() -> SqlResult<()> {
    check_floor(StackFloor::current())
}

/// [`check_stack`] with the floor at hand, where every nanosecond counts.
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
