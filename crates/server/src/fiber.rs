//! Fibers: stacks that jobs run on, so that a job that must wait does not block its worker thread.
//!
//! # Concepts
//! - A *job* is the work for one connection: a worker serves the connection's requests until none is left.
//! - A *fiber* is a separate stack that runs jobs. A job that waits for a lock suspends its fiber, and the
//!   worker continues with other work.
//! - A *wait slot* ([`FiberSlot`]) holds the fiber while it sleeps. The session that grants the lock wakes
//!   it: it moves the fiber to the [`Ready`] queue, and any worker resumes it.
//!
//! Passing a lock from one session to the next therefore needs no switch between threads. A thousand waiting
//! sessions cost a thousand stacks, of which only the touched pages use memory, but no threads.
//!
//! # States of a fiber
//! ```text
//!             run                     sleep
//!   free ------------> awake ---------------------> asleep
//!    ^                  | | ^      wake               | wake, or the deadline
//!    +------------------+ | +------- called <--+      v
//!          done           +--------------------+    ready queue -> awake
//!                               (too early)
//! ```
//! The [`FiberSlot`] distinguishes awake, asleep and *called*; free and queued fibers count as awake there. A
//! wake that arrives before the fiber is asleep is remembered (*called*): the worker that is about to put the
//! fiber to sleep resumes it instead. A sleep can therefore return early, and its caller checks its condition
//! again.
//!
//! # Invariants
//! - A fiber has exactly one owner: the worker that runs it, the free list, its own wait slot while it
//!   sleeps, or the ready queue.
//! - A sleeping job holds no lock that a worker may block on, except the lock of its own connection, which
//!   only the owner of the connection takes.
//! - A sleeping fiber is never dropped: the fiber and its wait slot form a reference cycle. The thread that
//!   stops the server ends all waits first.
//! - Between `resume` and its return, [`CURRENT`] of the thread is the fiber's wait slot.
//!
//! # Thread-local variables
//! A job may begin on one thread and end on another, but the compiler assumes that a function stays on its
//! thread. Functions that are on the stack while a job sleeps must therefore not use thread-local variables
//! directly. They call functions that are not inlined and do not sleep. In this code base these are
//! [`sleeper`] and [`wait_slot`] in this file, `with_slot` in `pool.rs`, `StackFloor::current` and
//! `EngineWork` in crate base, and the cache of compiled patterns in the expression crate. A library may use
//! thread-local variables only in functions that return before a job can sleep.
//!
//! # A stack
//! ```text
//! | guard: GUARD_BYTES, no access | STACK_RESERVE | what recursion may use: `stack_bytes` | top
//!                                                 ^ floor
//! ```
//! Recursive code checks the floor (`cohort_base::StackFloor`) and fails the statement with an error. The
//! guard is wide because C code may move the stack pointer by more than a page without touching the pages in
//! between. The guard and untouched pages cost only address space. Each stack takes two entries of the
//! kernel's list of mappings, of which a process may have 65,530.
//!
//! # On failure
//! If there is no memory for a stack, the job runs on the worker's own stack, and its waits block the worker.

use std::cell::RefCell;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use cohort_base::{EngineWork, STACK_RESERVE, StackFloor, switch_stack};
use cohort_engine::WaitSlot;
use cohort_locks::Sleeper;
use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use parking_lot::Mutex;

use crate::epoll::EventFd;
use crate::ready::Ready;

/// Work for a worker.
pub(crate) enum Work<J: Send + 'static> {
    /// A job that has not started.
    Begin(J),
    /// A job that slept and was woken.
    Continue(Fiber<J>),
}

/// Maximum number of free fibers to keep. Further ones are dropped, with their memory.
const FREE_MAX: usize = 64;

/// Size of the inaccessible range below a stack.
const GUARD_BYTES: usize = 1 << 20;

/// The reason why a fiber returned control to its worker.
enum Left {
    /// The job is done.
    Done,
    /// The job waits, until the deadline if it has one.
    Asleep(Option<Instant>),
}

type Stack<J> = Coroutine<Option<J>, Left, (), DefaultStack>;

/// A stack and the job on it.
pub(crate) struct Fiber<J: Send + 'static> {
    stack: Stack<J>,
    floor: StackFloor,
    wait_slot: Arc<FiberSlot<J>>,
}

// SAFETY: a fiber has one owner at a time, so no two threads use its stack at once, and it moves between
// threads through mutexes. The stack contains the values that jobs hold while they sleep: these are Send, or
// the guard of the connection's mutex, which parking_lot allows to be released by another thread (feature
// send_guard). For thread-local variables see the file header.
unsafe impl<J: Send> Send for Fiber<J> {}

impl<J: Send> Fiber<J> {
    /// Runs until the job is done or sleeps.
    fn resume(&mut self, job: Option<J>) -> Left {
        CURRENT.set(Some(Arc::clone(&self.wait_slot) as Arc<dyn Sleeper>));
        switch_stack(Some(self.floor));
        let left = self.stack.resume(job);
        switch_stack(None);
        CURRENT.set(None);
        match left {
            CoroutineResult::Yield(left) => left,
            CoroutineResult::Return(()) => unreachable!("a fiber takes one job after the other"),
        }
    }
}

enum State<J: Send + 'static> {
    Awake,
    /// Woken before it slept.
    Called,
    Asleep(Fiber<J>, Option<Instant>),
}

/// A wait slot: the place where a fiber sleeps.
struct FiberSlot<J: Send + 'static> {
    state: Mutex<State<J>>,
    /// Set by the stack when it starts; used only on that stack.
    yielder: Mutex<Option<YielderOf<J>>>,
    fibers: Weak<Fibers<J>>,
}

struct YielderOf<J>(NonNull<Yielder<Option<J>, Left>>);

// SAFETY: it is used only on the fiber's own stack, which one thread runs at a time.
unsafe impl<J: Send> Send for YielderOf<J> {}

impl<J: Send> FiberSlot<J> {
    /// Puts a suspended fiber to sleep. Returns the fiber instead if it was woken in the meantime. Called by
    /// the worker after it has left the fiber's stack.
    fn lay_down(&self, fiber: Fiber<J>, deadline: Option<Instant>) -> Option<Fiber<J>> {
        let mut state = self.state.lock();
        if let State::Called = *state {
            *state = State::Awake;
            return Some(fiber);
        }
        let fibers = self.fibers.upgrade().expect("a worker of theirs calls this");
        fibers.asleep.fetch_add(1, Ordering::Relaxed);
        *state = State::Asleep(fiber, deadline);
        drop(state);
        if let Some(deadline) = deadline {
            (fibers.options.due)(deadline);
        }
        None
    }

    /// Returns the deadline of the sleep, if the fiber sleeps and has one.
    fn deadline(&self) -> Option<Instant> {
        match *self.state.lock() {
            State::Asleep(_, deadline) => deadline,
            State::Awake | State::Called => None,
        }
    }
}

impl<J: Send> Sleeper for FiberSlot<J> {
    fn sleep(&self, deadline: Option<Instant>) {
        if let Some(fibers) = self.fibers.upgrade() {
            (fibers.options.before_sleep)();
        }
        let yielder = self.yielder.lock().as_ref().expect("the stack has started").0;
        let work = EngineWork::here();
        // SAFETY: the yielder lives at the bottom of the stack for as long as the stack runs jobs, and this
        // call runs on that stack: `sleeper` returned this wait slot to it.
        unsafe { yielder.as_ref() }.suspend(Left::Asleep(deadline));
        work.resume();
    }

    fn wake(&self) {
        let fiber = {
            let mut state = self.state.lock();
            match std::mem::replace(&mut *state, State::Awake) {
                State::Asleep(fiber, _) => fiber,
                State::Awake | State::Called => return *state = State::Called,
            }
        };
        match self.fibers.upgrade() {
            Some(fibers) => fibers.options.ready.push(Work::Continue(fiber)),
            // The server and its workers are gone, so no thread resumes the fiber. Its stack must stay.
            None => std::mem::forget(fiber),
        }
    }
}

thread_local! {
    /// The wait slot of the fiber that this thread runs.
    static CURRENT: RefCell<Option<Arc<dyn Sleeper>>> = const { RefCell::new(None) };
}

/// Returns the caller's wait slot: that of its fiber, or that of its thread.
#[inline(never)]
pub fn sleeper() -> Arc<dyn Sleeper> {
    CURRENT.with_borrow(Clone::clone).unwrap_or_else(cohort_locks::this_thread)
}

/// Adapts a fiber's wait slot to the trait that engines use.
struct Lent(Arc<dyn Sleeper>);

impl WaitSlot for Lent {
    fn sleep(&self) {
        self.0.sleep(None);
    }

    fn wake(&self) {
        self.0.wake();
    }
}

/// Returns the wait slot for reads by an engine, or `None` if the caller does not run on a fiber.
#[inline(never)]
pub fn wait_slot() -> Option<Arc<dyn WaitSlot>> {
    CURRENT.with_borrow(Clone::clone).map(|wait_slot| Arc::new(Lent(wait_slot)) as Arc<dyn WaitSlot>)
}

/// Configuration of the fibers of one server.
pub(crate) struct FiberOptions<J: Send + 'static> {
    pub stack_bytes: usize,
    /// Size of the buffer that each job gets.
    pub buffer_bytes: usize,
    /// The queue for fibers that are woken.
    pub ready: Arc<Ready<Work<J>, EventFd>>,
    /// Runs one job, with a buffer for its input. Catches the job's panics.
    pub run: Box<dyn Fn(J, &mut [u8]) + Send + Sync>,
    /// Called on the stack of a job that is about to sleep.
    pub before_sleep: Box<dyn Fn() + Send + Sync>,
    /// Called with the deadline of a fiber that goes to sleep. [`Fibers::wake_due`] must be called at that
    /// time.
    pub due: Box<dyn Fn(Instant) + Send + Sync>,
}

/// The fibers of one server.
pub(crate) struct Fibers<J: Send + 'static> {
    options: FiberOptions<J>,
    free: Mutex<Vec<Fiber<J>>>,
    slots: Mutex<Vec<Weak<FiberSlot<J>>>>,
    asleep: AtomicUsize,
}

impl<J: Send> Fibers<J> {
    /// Creates the pool without any fiber.
    pub fn new(options: FiberOptions<J>) -> Arc<Fibers<J>> {
        Arc::new(Fibers {
            options,
            free: Mutex::default(),
            slots: Mutex::default(),
            asleep: AtomicUsize::new(0),
        })
    }

    /// Runs some work until the job is done or sleeps.
    pub fn work(self: &Arc<Self>, work: Work<J>) {
        let (mut fiber, mut job) = match work {
            Work::Continue(fiber) => {
                self.asleep.fetch_sub(1, Ordering::Relaxed);
                (fiber, None)
            }
            Work::Begin(job) => {
                let free = self.free.lock().pop();
                match free.map_or_else(|| self.make(), Ok) {
                    Ok(fiber) => (fiber, Some(job)),
                    Err(_) => return self.run_here(job),
                }
            }
        };
        loop {
            match fiber.resume(job.take()) {
                Left::Done => return self.give_back(fiber),
                Left::Asleep(deadline) => {
                    let wait_slot = Arc::clone(&fiber.wait_slot);
                    match wait_slot.lay_down(fiber, deadline) {
                        Some(called) => fiber = called,
                        None => return,
                    }
                }
            }
        }
    }

    /// Runs a job on the caller's stack.
    fn run_here(&self, job: J) {
        (self.options.run)(job, &mut vec![0; self.options.buffer_bytes]);
    }

    fn make(self: &Arc<Self>) -> io::Result<Fiber<J>> {
        let (stack, floor) = map_stack(self.options.stack_bytes)?;
        let wait_slot = Arc::new(FiberSlot {
            state: Mutex::new(State::Awake),
            yielder: Mutex::new(None),
            fibers: Arc::downgrade(self),
        });
        self.slots.lock().push(Arc::downgrade(&wait_slot));
        let (own, fibers) = (Arc::downgrade(&wait_slot), Arc::downgrade(self));
        let buffer_bytes = self.options.buffer_bytes;
        let stack = Stack::with_stack(stack, move |yielder, first: Option<J>| {
            if let Some(wait_slot) = own.upgrade() {
                *wait_slot.yielder.lock() = Some(YielderOf(NonNull::from(yielder)));
            }
            let mut buffer = vec![0; buffer_bytes];
            let mut next = first;
            loop {
                if let (Some(job), Some(fibers)) = (next, fibers.upgrade()) {
                    (fibers.options.run)(job, &mut buffer);
                }
                next = yielder.suspend(Left::Done);
            }
        });
        Ok(Fiber { stack, floor, wait_slot })
    }

    fn give_back(&self, fiber: Fiber<J>) {
        // The job has ended: a wake that arrives now is dropped.
        *fiber.wait_slot.state.lock() = State::Awake;
        let mut free = self.free.lock();
        if free.len() < FREE_MAX {
            free.push(fiber);
        }
    }

    /// Wakes the fibers whose deadline has passed. Returns the next deadline.
    pub fn wake_due(&self, now: Instant) -> Option<Instant> {
        let slots: Vec<Arc<FiberSlot<J>>> = {
            let mut slots = self.slots.lock();
            slots.retain(|wait_slot| wait_slot.strong_count() > 0);
            slots.iter().filter_map(Weak::upgrade).collect()
        };
        let mut next = None;
        for wait_slot in slots {
            match wait_slot.deadline() {
                Some(deadline) if deadline <= now => wait_slot.wake(),
                Some(deadline) => next = Some(next.map_or(deadline, |next: Instant| next.min(deadline))),
                None => {}
            }
        }
        next
    }

    /// Returns the number of jobs that sleep, or were woken and have not continued yet.
    pub fn asleep(&self) -> usize {
        self.asleep.load(Ordering::Relaxed)
    }
}

/// Maps a stack with its reserve and guard. Returns it with its floor.
fn map_stack(bytes: usize) -> io::Result<(DefaultStack, StackFloor)> {
    let stack = DefaultStack::new(bytes.saturating_add(STACK_RESERVE).saturating_add(GUARD_BYTES))?;
    // The mapping begins with a guard page of its own.
    let (lowest, top) = (stack.limit().get(), stack.base().get());
    // SAFETY: the range lies within the mapping that `stack` owns, nothing has used it, and it begins at a
    // page boundary: a mapping does, and GUARD_BYTES is a multiple of any page size.
    let guarded = unsafe { libc::mprotect(lowest as *mut libc::c_void, GUARD_BYTES, libc::PROT_NONE) };
    if guarded != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((stack, StackFloor::of(lowest + GUARD_BYTES, top)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    type Job = Box<dyn FnOnce() + Send>;

    fn fibers() -> (Arc<Fibers<Job>>, Arc<Ready<Work<Job>, EventFd>>) {
        fibers_with(1 << 16)
    }

    fn fibers_with(stack_bytes: usize) -> (Arc<Fibers<Job>>, Arc<Ready<Work<Job>, EventFd>>) {
        let ready = Arc::new(Ready::new(EventFd::new().expect("an event")));
        let options = FiberOptions {
            stack_bytes,
            buffer_bytes: 16,
            ready: Arc::clone(&ready),
            run: Box::new(|job: Job, _: &mut [u8]| job()),
            before_sleep: Box::new(|| {}),
            due: Box::new(|_| ()),
        };
        (Fibers::new(options), ready)
    }

    #[test]
    fn a_job_sleeps_on_one_thread_and_goes_on_on_another() {
        let (fibers, ready) = fibers();
        let wait_slot = Arc::new(Mutex::new(None));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let job = {
            let (wait_slot, seen) = (Arc::clone(&wait_slot), Arc::clone(&seen));
            move || {
                seen.lock().push(std::thread::current().id());
                let own = sleeper();
                *wait_slot.lock() = Some(Arc::clone(&own));
                own.sleep(None);
                seen.lock().push(std::thread::current().id());
            }
        };
        fibers.work(Work::Begin(Box::new(job)));
        assert_eq!((fibers.asleep(), seen.lock().len()), (1, 1));
        assert!(ready.pop().is_none());
        let wait_slot = wait_slot.lock().take().expect("the job ran");
        wait_slot.wake();
        wait_slot.wake();
        let other = Arc::clone(&fibers);
        let work = ready.pop().expect("woken");
        std::thread::spawn(move || other.work(work)).join().expect("no panic");
        let seen = seen.lock();
        assert_eq!((seen.len(), fibers.asleep()), (2, 0));
        assert_ne!(seen[0], seen[1]);
        // The second wake was late. The next job on this stack sleeps nevertheless.
        assert!(ready.pop().is_none());
        fibers.work(Work::Begin(Box::new(|| sleeper().sleep(None))));
        assert_eq!(fibers.asleep(), 1);
    }

    #[test]
    fn a_wait_for_an_engine_frees_its_worker() {
        let (fibers, ready) = fibers();
        assert!(wait_slot().is_none(), "a thread does the work itself");
        let (lent, done) = (Arc::new(Mutex::new(None)), Arc::new(AtomicU64::new(0)));
        let job = {
            let (lent, done) = (Arc::clone(&lent), Arc::clone(&done));
            move || {
                let own = wait_slot().expect("it runs on a fiber");
                *lent.lock() = Some(Arc::clone(&own));
                own.sleep();
                done.store(1, Ordering::Relaxed);
            }
        };
        fibers.work(Work::Begin(Box::new(job)));
        assert_eq!((fibers.asleep(), done.load(Ordering::Relaxed)), (1, 0));
        lent.lock().take().expect("the job ran").wake();
        fibers.work(ready.pop().expect("woken"));
        assert_eq!((fibers.asleep(), done.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn a_wake_before_the_sleep_counts() {
        let (fibers, ready) = fibers();
        let job = || {
            let own = sleeper();
            own.wake();
            own.sleep(None);
        };
        fibers.work(Work::Begin(Box::new(job)));
        assert_eq!(fibers.asleep(), 0);
        assert!(ready.pop().is_none());
    }

    #[test]
    fn a_stack_has_what_was_asked_for_above_its_floor() {
        let (fibers, _) = fibers();
        let (sender, receiver) = std::sync::mpsc::channel();
        let job = Box::new(move || sender.send(StackFloor::current().left()).expect("the receiver exists"));
        let outside = StackFloor::current();
        fibers.work(Work::Begin(job));
        let left = receiver.recv().expect("the job ran");
        assert!((48 << 10..=80 << 10).contains(&left), "{left} of 65536 bytes");
        assert_eq!(StackFloor::current(), outside);
    }

    /// Returns the number of mappings and the resident bytes of this process.
    fn mappings_and_memory() -> (usize, usize) {
        let read = |file: &str| std::fs::read_to_string(file).expect("Linux has it");
        let pages = read("/proc/self/statm").split(' ').nth(1).and_then(|n| n.parse::<usize>().ok());
        (read("/proc/self/maps").lines().count(), pages.expect("a number") * 4096)
    }

    #[test]
    fn thousands_of_stacks_cost_two_mappings_each_and_the_pages_they_touch() {
        const JOBS: usize = 5000;
        let (fibers, ready) = fibers_with(2 << 20);
        let before = mappings_and_memory();
        let slots: Arc<Mutex<Vec<Arc<dyn Sleeper>>>> = Arc::default();
        for _ in 0..JOBS {
            let slots = Arc::clone(&slots);
            fibers.work(Work::Begin(Box::new(move || {
                let own = sleeper();
                slots.lock().push(Arc::clone(&own));
                own.sleep(None);
            })));
        }
        assert_eq!(fibers.asleep(), JOBS);
        let after = mappings_and_memory();
        let (mappings, bytes) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        println!("{mappings} mappings, {bytes} bytes");
        assert!(mappings < 2 * JOBS + 500, "{mappings} mappings for {JOBS} stacks");
        assert!(bytes < JOBS * (32 << 10), "{bytes} bytes for {JOBS} stacks");
        slots.lock().iter().for_each(|wait_slot| wait_slot.wake());
        while let Some(work) = ready.pop() {
            fibers.work(work);
        }
        assert_eq!(fibers.asleep(), 0);
    }

    #[test]
    fn a_deadline_wakes() {
        let (fibers, ready) = fibers();
        let now = Instant::now();
        let job = move || sleeper().sleep(Some(now + Duration::from_secs(5)));
        fibers.work(Work::Begin(Box::new(job)));
        assert_eq!(fibers.wake_due(now), Some(now + Duration::from_secs(5)));
        assert_eq!(fibers.wake_due(now + Duration::from_secs(6)), None);
        fibers.work(ready.pop().expect("woken"));
        assert_eq!(fibers.asleep(), 0);
    }

    #[test]
    fn many_jobs_sleep_and_wake_over_several_threads() {
        const JOBS: u64 = 200;
        let (fibers, ready) = fibers();
        let done = Arc::new(AtomicU64::new(0));
        let slots: Arc<Mutex<Vec<Arc<dyn Sleeper>>>> = Arc::default();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let (fibers, ready, done) = (&fibers, &ready, &done);
                scope.spawn(move || {
                    while done.load(Ordering::Relaxed) < JOBS {
                        match ready.pop() {
                            Some(work) => fibers.work(work),
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
            for _ in 0..JOBS {
                let (slots, done) = (Arc::clone(&slots), Arc::clone(&done));
                ready.push(Work::Begin(Box::new(move || {
                    for _ in 0..20 {
                        let own = sleeper();
                        slots.lock().push(Arc::clone(&own));
                        own.sleep(None);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                })));
            }
            while done.load(Ordering::Relaxed) < JOBS {
                let slots = std::mem::take(&mut *slots.lock());
                slots.iter().for_each(|wait_slot| wait_slot.wake());
                std::thread::yield_now();
            }
        });
        assert_eq!((done.load(Ordering::Relaxed), fibers.asleep()), (JOBS, 0));
    }
}
