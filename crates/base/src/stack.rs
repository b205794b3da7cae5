//! Stack limits for recursive code.
//!
//! # Concepts
//! Statements come from clients, and the server processes nested constructs by recursion: in the parser, the
//! binder, the planner and the evaluator. The possible depth depends on the remaining stack, which differs
//! between threads, fibers and builds. So recursive code checks the stack instead of a depth counter.
//!
//! The *floor* is the lowest address at which recursion may start another level. Below it is a reserve of
//! [`STACK_RESERVE`] bytes, for all calls that do not recurse and for walks of a tree that cannot fail (copy
//! and drop). Such a walk needs less stack per level than the recursion that built the tree.
//!
//! # Who sets the floor
//! Fibers call [`switch_stack`] whenever a thread enters or leaves one. On any other thread the floor is that
//! of the thread's own stack, which is queried from the operating system once.

use std::cell::Cell;

/// Bytes below the floor. Debug builds need several times as much as release builds.
pub const STACK_RESERVE: usize = if cfg!(debug_assertions) { 1 << 20 } else { 384 << 10 };

thread_local! {
    /// Floor of the stack that the thread runs on; `None` if it has not been queried yet.
    static FLOOR: Cell<Option<StackFloor>> = const { Cell::new(None) };
}

/// Limit of recursion on one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFloor {
    address: usize,
    /// Highest address of the stack.
    top: usize,
}

impl StackFloor {
    /// Returns the floor of a stack from its lowest usable byte up to `top`.
    pub fn of(lowest: usize, top: usize) -> StackFloor {
        StackFloor { address: lowest.saturating_add(STACK_RESERVE), top }
    }

    /// Returns the floor of the running stack.
    #[inline(never)]
    pub fn current() -> StackFloor {
        FLOOR.get().unwrap_or_else(|| {
            let floor = floor_of_thread();
            FLOOR.set(Some(floor));
            floor
        })
    }

    /// Returns the bytes between the current stack position and the floor; 0 below the floor.
    #[inline]
    pub fn left(self) -> usize {
        let here = 0_u8;
        (&raw const here as usize).saturating_sub(self.address)
    }

    /// Returns the used bytes of the stack, and its total size including the reserve.
    pub fn used_of_all(self) -> (usize, usize) {
        let here = 0_u8;
        let used = self.top.saturating_sub(&raw const here as usize);
        (used, self.top.saturating_sub(self.address).saturating_add(STACK_RESERVE))
    }

    /// Returns whether there is no stack left for another level of recursion.
    #[inline]
    pub fn is_reached(self) -> bool {
        self.left() == 0
    }
}

/// Called when the thread enters another stack, or returns to its own (`None`).
#[inline(never)]
pub fn switch_stack(floor: Option<StackFloor>) {
    FLOOR.set(floor);
}

/// Returns the floor of the thread's own stack. If the system does not report it, assumes so little below the
/// caller that any stack suffices.
fn floor_of_thread() -> StackFloor {
    let here = 0_u8;
    let top = &raw const here as usize;
    let assumed = StackFloor::of(top.saturating_sub(STACK_RESERVE + (64 << 10)), top);
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are initialised by the first call and used and destroyed only if it succeeded.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return assumed;
        }
        let (mut lowest, mut bytes) = (std::ptr::null_mut(), 0);
        let asked = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let lowest = lowest as usize;
        if asked == 0 { StackFloor::of(lowest, lowest.saturating_add(bytes)) } else { assumed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descend(floor: StackFloor, level: u32) -> u32 {
        let ballast = std::hint::black_box([level; 64]);
        if floor.is_reached() { level } else { descend(floor, ballast[0] + 1) }
    }

    #[test]
    fn recursion_ends_at_the_floor_of_any_thread() {
        let levels = |bytes: usize| {
            let thread = std::thread::Builder::new().stack_size(STACK_RESERVE + bytes);
            thread.spawn(|| descend(StackFloor::current(), 0)).expect("a thread").join().expect("no overflow")
        };
        // A small thread may reuse the larger stack of an ended one.
        let (small, large) = (levels(128 << 10), levels(32 << 20));
        assert!(small > 50 && large > 4 * small, "{small} {large}");
    }

    #[test]
    fn a_stack_that_is_entered_has_its_own_floor() {
        let own = StackFloor::current();
        let other = StackFloor::of(1 << 20, 2 << 20);
        switch_stack(Some(other));
        assert_eq!(StackFloor::current(), other);
        switch_stack(None);
        assert_eq!(StackFloor::current(), own);
    }
}
