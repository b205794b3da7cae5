//! Fibers: stacks that jobs run on, so that a job which must wait leaves its worker to others.
//!
//! # Concepts
//! A *job* is what a worker does for one connection: requests, until there is none left. A *fiber* is a stack
//! with the job on it. A job that waits for a lock leaves the stack as it is and the worker goes on with
//! another; the session that gives it the lock puts the fiber into the [`Ready`] queue, and any worker goes
//! on where it stopped. So a lock that passes from one session to the next costs no change of threads, and a
//! thousand sessions that wait cost a thousand stacks, of which only the touched pages are there, and no
//! thread.
//!
//! # States of a fiber, kept in its [`Bed`]
//! ```text
//!             run                     sleep
//!   free ------------> awake ---------------------> asleep
//!    ^                  | | ^      wake               | wake, or the deadline
//!    +------------------+ | +------- called <--+      v
//!          done           +--------------------+    ready queue -> awake
//!                               (too early)
//! ```
//! A wake that comes before the fiber lies asleep is kept (`called`): the worker that wants to lay it down
//! runs it again.
//!
//! # Invariants
//! - A fiber is owned by one place: a worker that runs it, the free ones, its own bed while asleep, or the
//!   ready queue.
//! - A job that sleeps holds no lock that a worker may wait for, except that of its own connection, which
//!   only the owner takes.
//! - A sleeping fiber is never dropped: it and its bed hold each other. The thread that stops the server ends
//!   all waits first.
//! - Between `resume` and its return the thread's [`CURRENT`] is the fiber's bed.
//!
//! # Thread-local variables
//! A job may begin on one thread and end on another. The compiler takes it for granted that a function stays
//! on its thread, so a function that is on the stack while a job sleeps must not use a thread-local variable
//! directly, only in functions that are not inlined and do not sleep. Ours are [`sleeper`] and [`bed`] here,
//! `on_post` in `pool.rs` and the cache of compiled patterns in the expression crate; those of libraries are
//! used in functions that return before anybody sleeps.
//!
//! # A stack
//! ```text
//! | guard: GUARD_BYTES, no access | STACK_RESERVE | what recursion may use: `stack_bytes` | top
//!                                                 ^ floor
//! ```
//! Recursion asks for the floor (`cohort_base::StackFloor`) and fails with an error of the statement. The
//! guard is wide because C code may move the stack pointer by more than a page without touching what lies
//! between. Guard and untouched pages cost address space alone: two entries of the kernel's list of mappings
//! a stack, of which a process may have 65,530.
//!
//! # On failure
//! No memory for a stack: the job runs on the worker's own, and its waits keep the worker.

use std::cell::RefCell;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use cohort_base::{STACK_RESERVE, StackFloor, switch_stack};
use cohort_engine::Bed as BedForEngine;
use cohort_locks::Sleeper;
use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use parking_lot::Mutex;

use crate::epoll::EventFd;
use crate::ready::Ready;

/// Something for a worker to do.
pub(crate) enum Work<J: Send + 'static> {
    /// A job that has not begun.
    Begin(J),
    /// A job that slept and was woken.
    Continue(Fiber<J>),
}

/// Free fibers that are kept; more of them go, with their memory.
const FREE_MAX: usize = 64;

/// Bytes below a stack that nothing may touch.
const GUARD_BYTES: usize = 1 << 20;

/// Why a fiber gave its worker back.
enum Left {
    /// The job is done.
    Done,
    /// The job waits.
    Asleep(Option<Instant>),
}

type Stack<J> = Coroutine<Option<J>, Left, (), DefaultStack>;

/// A stack, and what runs on it.
pub(crate) struct Fiber<J: Send + 'static> {
    stack: Stack<J>,
    floor: StackFloor,
    bed: Arc<Bed<J>>,
}

// SAFETY: a fiber has one owner at a time, so nothing on its stack is used by two threads at once, and moving
// it between threads happens through mutexes. What the stack holds is what jobs hold while they sleep: values
// that are Send, and the guard of their connection's mutex, which parking_lot's mutexes allow to be released
// by another thread (feature send_guard). For thread-local variables see the head of this file.
unsafe impl<J: Send> Send for Fiber<J> {}

impl<J: Send> Fiber<J> {
    /// Runs until the job is done or sleeps.
    fn resume(&mut self, job: Option<J>) -> Left {
        CURRENT.set(Some(Arc::clone(&self.bed) as Arc<dyn Sleeper>));
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

/// Where a fiber sleeps.
struct Bed<J: Send + 'static> {
    state: Mutex<State<J>>,
    /// Given by the stack when it starts; used on the stack only.
    yielder: Mutex<Option<YielderOf<J>>>,
    fibers: Weak<Fibers<J>>,
}

struct YielderOf<J>(NonNull<Yielder<Option<J>, Left>>);

// SAFETY: it is used on the fiber's own stack only, which one thread at a time runs.
unsafe impl<J: Send> Send for YielderOf<J> {}

impl<J: Send> Bed<J> {
    /// The worker has left the stack: lays the fiber down, or gives it back if it was called meanwhile.
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

    /// Until when it sleeps, if it does.
    fn deadline(&self) -> Option<Instant> {
        match *self.state.lock() {
            State::Asleep(_, deadline) => deadline,
            State::Awake | State::Called => None,
        }
    }
}

impl<J: Send> Sleeper for Bed<J> {
    fn sleep(&self, deadline: Option<Instant>) {
        if let Some(fibers) = self.fibers.upgrade() {
            (fibers.options.before_sleep)();
        }
        let yielder = self.yielder.lock().as_ref().expect("the stack has started").0;
        // SAFETY: the yielder lives at the stack's bottom as long as the stack runs jobs, and it is this
        // stack that runs: `sleeper` gave this bed to it.
        unsafe { yielder.as_ref() }.suspend(Left::Asleep(deadline));
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
    /// The bed of the fiber that this thread runs.
    static CURRENT: RefCell<Option<Arc<dyn Sleeper>>> = const { RefCell::new(None) };
}

/// Where the caller sleeps: its fiber's bed, or its own thread.
#[inline(never)]
pub fn sleeper() -> Arc<dyn Sleeper> {
    CURRENT.with_borrow(Clone::clone).unwrap_or_else(cohort_locks::this_thread)
}

/// A fiber's bed, as engines use it.
struct Lent(Arc<dyn Sleeper>);

impl BedForEngine for Lent {
    fn sleep(&self) {
        self.0.sleep(None);
    }

    fn wake(&self) {
        self.0.wake();
    }
}

/// Where the caller sleeps while an engine reads for it: its fiber's bed, if it runs on one.
#[inline(never)]
pub fn bed() -> Option<Arc<dyn BedForEngine>> {
    CURRENT.with_borrow(Clone::clone).map(|bed| Arc::new(Lent(bed)) as Arc<dyn BedForEngine>)
}

/// What fibers are made for.
pub(crate) struct FiberOptions<J: Send + 'static> {
    pub stack_bytes: usize,
    /// Of the buffer that every job gets.
    pub buffer_bytes: usize,
    /// Where those that are woken go.
    pub ready: Arc<Ready<Work<J>, EventFd>>,
    /// Does one job, with a buffer for what it reads; catches its panics.
    pub run: Box<dyn Fn(J, &mut [u8]) + Send + Sync>,
    /// Called on the stack of a job that is about to sleep.
    pub before_sleep: Box<dyn Fn() + Send + Sync>,
    /// Told until when a fiber sleeps: somebody is to call [`Fibers::wake_due`] then.
    pub due: Box<dyn Fn(Instant) + Send + Sync>,
}

/// The fibers of one server.
pub(crate) struct Fibers<J: Send + 'static> {
    options: FiberOptions<J>,
    free: Mutex<Vec<Fiber<J>>>,
    beds: Mutex<Vec<Weak<Bed<J>>>>,
    asleep: AtomicUsize,
}

impl<J: Send> Fibers<J> {
    /// No fiber yet.
    pub fn new(options: FiberOptions<J>) -> Arc<Fibers<J>> {
        Arc::new(Fibers {
            options,
            free: Mutex::default(),
            beds: Mutex::default(),
            asleep: AtomicUsize::new(0),
        })
    }

    /// Does some work, until the job is done or sleeps.
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
                    let bed = Arc::clone(&fiber.bed);
                    match bed.lay_down(fiber, deadline) {
                        Some(called) => fiber = called,
                        None => return,
                    }
                }
            }
        }
    }

    /// Without a stack of its own.
    fn run_here(&self, job: J) {
        (self.options.run)(job, &mut vec![0; self.options.buffer_bytes]);
    }

    fn make(self: &Arc<Self>) -> io::Result<Fiber<J>> {
        let (stack, floor) = map_stack(self.options.stack_bytes)?;
        let bed = Arc::new(Bed {
            state: Mutex::new(State::Awake),
            yielder: Mutex::new(None),
            fibers: Arc::downgrade(self),
        });
        self.beds.lock().push(Arc::downgrade(&bed));
        let (own, fibers) = (Arc::downgrade(&bed), Arc::downgrade(self));
        let buffer_bytes = self.options.buffer_bytes;
        let stack = Stack::with_stack(stack, move |yielder, first: Option<J>| {
            if let Some(bed) = own.upgrade() {
                *bed.yielder.lock() = Some(YielderOf(NonNull::from(yielder)));
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
        Ok(Fiber { stack, floor, bed })
    }

    fn give_back(&self, fiber: Fiber<J>) {
        // The job has ended: a wake that comes now is dropped.
        *fiber.bed.state.lock() = State::Awake;
        let mut free = self.free.lock();
        if free.len() < FREE_MAX {
            free.push(fiber);
        }
    }

    /// Wakes the fibers that have slept for long enough. Answers when the next one is due.
    pub fn wake_due(&self, now: Instant) -> Option<Instant> {
        let beds: Vec<Arc<Bed<J>>> = {
            let mut beds = self.beds.lock();
            beds.retain(|bed| bed.strong_count() > 0);
            beds.iter().filter_map(Weak::upgrade).collect()
        };
        let mut next = None;
        for bed in beds {
            match bed.deadline() {
                Some(deadline) if deadline <= now => bed.wake(),
                Some(deadline) => next = Some(next.map_or(deadline, |next: Instant| next.min(deadline))),
                None => {}
            }
        }
        next
    }

    /// Jobs that sleep, or were woken and not continued yet.
    pub fn asleep(&self) -> usize {
        self.asleep.load(Ordering::Relaxed)
    }
}

/// A stack with its reserve and its guard, and its floor.
fn map_stack(bytes: usize) -> io::Result<(DefaultStack, StackFloor)> {
    let stack = DefaultStack::new(bytes.saturating_add(STACK_RESERVE).saturating_add(GUARD_BYTES))?;
    // The mapping begins with a guard page of its own.
    let (lowest, top) = (stack.limit().get(), stack.base().get());
    // SAFETY: the range lies within the mapping that `stack` owns, nothing has used it, and it begins at a
    // page: a mapping does, and GUARD_BYTES is a multiple of any page's size.
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
        let bed = Arc::new(Mutex::new(None));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let job = {
            let (bed, seen) = (Arc::clone(&bed), Arc::clone(&seen));
            move || {
                seen.lock().push(std::thread::current().id());
                let own = sleeper();
                *bed.lock() = Some(Arc::clone(&own));
                own.sleep(None);
                seen.lock().push(std::thread::current().id());
            }
        };
        fibers.work(Work::Begin(Box::new(job)));
        assert_eq!((fibers.asleep(), seen.lock().len()), (1, 1));
        assert!(ready.pop().is_none());
        let bed = bed.lock().take().expect("the job ran");
        bed.wake();
        bed.wake();
        let other = Arc::clone(&fibers);
        let work = ready.pop().expect("woken");
        std::thread::spawn(move || other.work(work)).join().expect("no panic");
        let seen = seen.lock();
        assert_eq!((seen.len(), fibers.asleep()), (2, 0));
        assert_ne!(seen[0], seen[1]);
        // The second wake was late; the next job on this stack sleeps all the same.
        assert!(ready.pop().is_none());
        fibers.work(Work::Begin(Box::new(|| sleeper().sleep(None))));
        assert_eq!(fibers.asleep(), 1);
    }

    #[test]
    fn who_waits_for_an_engine_leaves_its_worker() {
        let (fibers, ready) = fibers();
        assert!(bed().is_none(), "a thread does the work itself");
        let (lent, done) = (Arc::new(Mutex::new(None)), Arc::new(AtomicU64::new(0)));
        let job = {
            let (lent, done) = (Arc::clone(&lent), Arc::clone(&done));
            move || {
                let own = bed().expect("it runs on a fiber");
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
        let (tell, told) = std::sync::mpsc::channel();
        let job = Box::new(move || tell.send(StackFloor::current().left()).expect("somebody listens"));
        let outside = StackFloor::current();
        fibers.work(Work::Begin(job));
        let left = told.recv().expect("the job ran");
        assert!((48 << 10..=80 << 10).contains(&left), "{left} of 65536 bytes");
        assert_eq!(StackFloor::current(), outside);
    }

    /// Mappings and resident bytes of this process.
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
        let beds: Arc<Mutex<Vec<Arc<dyn Sleeper>>>> = Arc::default();
        for _ in 0..JOBS {
            let beds = Arc::clone(&beds);
            fibers.work(Work::Begin(Box::new(move || {
                let own = sleeper();
                beds.lock().push(Arc::clone(&own));
                own.sleep(None);
            })));
        }
        assert_eq!(fibers.asleep(), JOBS);
        let after = mappings_and_memory();
        let (mappings, bytes) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        println!("{mappings} mappings, {bytes} bytes");
        assert!(mappings < 2 * JOBS + 500, "{mappings} mappings for {JOBS} stacks");
        assert!(bytes < JOBS * (32 << 10), "{bytes} bytes for {JOBS} stacks");
        beds.lock().iter().for_each(|bed| bed.wake());
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
        let beds: Arc<Mutex<Vec<Arc<dyn Sleeper>>>> = Arc::default();
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
                let (beds, done) = (Arc::clone(&beds), Arc::clone(&done));
                ready.push(Work::Begin(Box::new(move || {
                    for _ in 0..20 {
                        let own = sleeper();
                        beds.lock().push(Arc::clone(&own));
                        own.sleep(None);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                })));
            }
            while done.load(Ordering::Relaxed) < JOBS {
                let beds = std::mem::take(&mut *beds.lock());
                beds.iter().for_each(|bed| bed.wake());
                std::thread::yield_now();
            }
        });
        assert_eq!((done.load(Ordering::Relaxed), fibers.asleep()), (JOBS, 0));
    }
}
