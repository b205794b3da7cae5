//! Worker pool: the threads that serve connections.
//!
//! # Concepts
//! A worker is in one of four states:
//! - *active*: it serves a request or waits for an event;
//! - *blocked*: during a statement it waits until its client receives a part of the result or sends data, or
//!   until what a part of the result depends on is acknowledged (`drain.rs`). A statement that waits for a
//!   lock does not block its worker (`fiber.rs`);
//! - *away*: it has served one request for longer than thread_pool_stall_limit;
//! - *spare*: it waits until it is needed.
//!
//! The pool keeps thread_pool_size workers active. By default these are as many as the machine can use: one
//! for each core, and one more while flushes of the log take long, because one of the workers is usually the
//! leader of the commit path then, and waits for the flush. While flushes are short, an extra worker would
//! only be woken for requests that the others are about to take, and clients on the same machine would wait
//! for a processor. A worker that is away is replaced although it may still use a processor, because KILL and
//! logins need a worker.
//!
//! # States and transitions
//! | move | by |
//! |---|---|
//! | active -> blocked | [`Workers::begin`], on the blocking thread |
//! | blocked -> active | [`Workers::end`], on that thread |
//! | active -> away | [`Workers::replace_stalled`], by housekeeping |
//! | away -> active | the worker's own [`Workers::done`] or [`Workers::end`] |
//! | active -> spare | [`Workers::stay`], on the worker, when more workers are active than wanted |
//! | spare -> active, or a new thread | `begin`, if fewer than two active workers are left; else `top_up` |
//! | spare -> ended | `stay`, after thread_pool_idle_timeout |
//! | active -> ended | the worker's `main` returns, because the server stops |
//!
//! `begin` has no effect on a worker that is away; the matching `end` makes it active. `top_up` runs in
//! housekeeping, a little later, because most waits take less time than the start of a thread.
//!
//! # Ownership of the states
//! Each worker has a [`WorkerSlot`]: one word with the start time of its request and a bit that is set while
//! the worker is *out* (blocked or away). Each change of the bit comes with one change of the count of active
//! workers, by the same thread:
//! - The thread that sets the bit decrements `active`. It holds the state's lock while it does both.
//! - The thread that clears the bit increments `active`. Only the worker clears its own bit. In `end` it does
//!   both under the state's lock. In `done` it clears the bit first and then takes the lock for `active`.
//!
//! Housekeeping sets the bit by a compare-and-swap against the word that it read, so it never marks a worker
//! that has finished that request in the meantime. A worker becomes spare only between requests, when its
//! word is zero and no other thread sets the bit.
//!
//! # Invariants
//! - `active` is the number of workers that are neither out, spare nor ended, minus those that are in `done`
//!   between the two changes. No thread sets the bit of these in the meantime, because their word is zero, so
//!   `active` never falls below zero.
//! - A spare worker that was called counts as active from the call on. Any of the spare workers may be the
//!   one that wakes up.
//!
//! # Lock order
//! The locks of the state and of the housekeeper are leaves: no other lock is taken while one is held.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread::{Builder, JoinHandle, sleep};
use crate::sync::{Condvar, Mutex, thread_local};

/// Limits of the worker pool.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLimits {
    /// Number of active workers to keep.
    pub active: usize,
    /// Maximum number of workers, including blocked ones.
    pub total_max: usize,
    /// Stack size of each worker.
    pub stack_bytes: usize,
    /// Time after which a spare worker ends.
    pub idle: Duration,
}

/// If fewer workers than this are active, another one is added at once: one may lead a flush, and one must
/// serve.
const ACTIVE_MIN: usize = 2;

#[derive(Default)]
struct State {
    total: usize,
    active: usize,
    spare: usize,
    /// Spare workers that were called and have not woken up yet.
    called: usize,
    /// Active workers wanted in addition to the limit.
    more: usize,
    /// `thread_pool_max_threads` and `thread_pool_idle_timeout`.
    total_max: usize,
    idle: Duration,
    stopping: bool,
    /// Handles of all threads that have not ended, and of some that have.
    handles: Vec<(JoinHandle<()>, Arc<WorkerSlot>)>,
}

/// A worker slot: `since_ms << 1 | is_out`. `since_ms` is the start time of the current request by the
/// server's clock, or 0 between requests.
#[derive(Default)]
struct WorkerSlot(AtomicU64);

const OUT: u64 = 1;
/// The thread is about to end.
const ENDED: u64 = u64::MAX;

impl WorkerSlot {
    fn begin_request(&self, now_ms: u64) {
        self.0.store(now_ms.max(1) << 1, Ordering::Relaxed);
    }

    /// Returns true if the worker was out. The caller must then increment `active`.
    fn end_request(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) & OUT != 0
    }

    /// Sets the bit of a worker that has served one request for longer than `limit_ms`. Returns true if this
    /// call set it.
    fn mark_stalled(&self, now_ms: u64, limit_ms: u64) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        let since_ms = seen >> 1;
        let is_stalled = since_ms != 0 && now_ms.saturating_sub(since_ms) > limit_ms && seen & OUT == 0;
        is_stalled && self.0.compare_exchange(seen, seen | OUT, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Marks the thread as ending: its last transition. Returns true if it was out.
    fn end(&self) -> bool {
        self.0.swap(ENDED, Ordering::Relaxed) & OUT != 0
    }

    fn has_ended(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ENDED
    }

    /// Returns true if this call set the bit.
    fn set_out(&self) -> bool {
        self.0.fetch_or(OUT, Ordering::Relaxed) & OUT == 0
    }

    /// Returns true if this call cleared the bit.
    fn clear_out(&self) -> bool {
        self.0.fetch_and(!OUT, Ordering::Relaxed) & OUT != 0
    }
}

/// Main function of a worker thread.
type Main = Arc<dyn Fn() + Send + Sync>;

/// The worker pool of one server. Created before the server, because the lock table refers to it.
pub struct Workers {
    limits: WorkerLimits,
    state: Arc<Mutex<State>>,
    /// Spare workers sleep here.
    spare: Condvar,
    /// More workers are active than wanted: a hint for `stay`.
    surplus: AtomicBool,
    /// Fewer workers are active than wanted: a hint for housekeeping. A worker that sets it wakes
    /// housekeeping afterwards.
    short: AtomicBool,
    /// Housekeeping sleeps here. True means that it must check again at once.
    housekeeper: (Mutex<bool>, Condvar),
    /// Set once, by the server.
    main: OnceLock<Main>,
}

thread_local! {
    /// The slot of this worker thread; `None` on other threads.
    static SLOT: RefCell<Option<Arc<WorkerSlot>>> = const { RefCell::new(None) };
}

/// Runs `work` with this worker's slot. Returns `None` on other threads. Not inlined: see `fiber.rs` on
/// thread-local variables.
#[inline(never)]
fn with_slot<R>(work: impl FnOnce(&WorkerSlot) -> R) -> Option<R> {
    SLOT.with(|slot| slot.borrow().as_deref().map(work))
}

impl Workers {
    /// Creates the pool without starting a thread.
    pub fn new(limits: WorkerLimits) -> Workers {
        let state = State { total_max: limits.total_max, idle: limits.idle, ..State::default() };
        Workers {
            limits,
            state: Arc::new(Mutex::new(state)),
            spare: Condvar::new(),
            surplus: AtomicBool::new(false),
            short: AtomicBool::new(false),
            housekeeper: (Mutex::new(false), Condvar::new()),
            main: OnceLock::new(),
        }
    }

    /// Sets `thread_pool_max_threads`, but at least the number of active workers, and
    /// `thread_pool_idle_timeout`. Workers above a lower maximum end when they become spare.
    pub fn set_limits(&self, total_max: usize, idle: Duration) {
        let mut state = self.state.lock();
        (state.total_max, state.idle) = (total_max.max(self.limits.active), idle);
    }

    /// Starts the first workers. `main` returns when the server stops or when [`Workers::stay`] returns
    /// false.
    pub(crate) fn start(&self, main: Main) -> std::io::Result<()> {
        assert!(self.main.set(main).is_ok(), "workers serve one server");
        let mut state = self.state.lock();
        while state.active < self.limits.active {
            self.spawn(&mut state)?;
        }
        Ok(())
    }

    fn spawn(&self, state: &mut State) -> std::io::Result<()> {
        let main = Arc::clone(self.main.get().expect("started before anybody blocks"));
        let slot = Arc::new(WorkerSlot::default());
        let (own, its_state) = (Arc::clone(&slot), Arc::clone(&self.state));
        let handle = Builder::new()
            .name("worker".into())
            .stack_size(self.limits.stack_bytes + cohort_base::STACK_RESERVE)
            .spawn(move || {
                SLOT.with(|slot| *slot.borrow_mut() = Some(own));
                let _ending = Ending(its_state);
                main();
            })?;
        state.total += 1;
        state.active += 1;
        state.handles.retain(|(_, slot)| !slot.has_ended());
        state.handles.push((handle, slot));
        Ok(())
    }

    /// Marks the start of a request on the calling worker.
    pub(crate) fn busy(&self, now_ms: u64) {
        with_slot(|slot| slot.begin_request(now_ms));
    }

    /// Marks the end of a request on the calling worker.
    pub(crate) fn done(&self) {
        if with_slot(WorkerSlot::end_request) == Some(true) {
            self.count_in(&mut self.state.lock());
        }
    }

    /// Increments `active` for the caller, which has cleared its bit.
    fn count_in(&self, state: &mut State) {
        state.active += 1;
        self.hints(state);
    }

    /// Housekeeping: marks workers that have served one request for longer than `limit_ms` as away, so that
    /// others replace them.
    pub(crate) fn replace_stalled(&self, now_ms: u64, limit_ms: u64) {
        let mut state = self.state.lock();
        let stalled = state.handles.iter().filter(|(_, slot)| slot.mark_stalled(now_ms, limit_ms)).count();
        state.active -= stalled;
        self.hints(&state);
    }

    /// Called between two requests when there is nothing to do. Puts a surplus worker to sleep, after calling
    /// `before_sleep`. Returns false if the worker must end.
    pub(crate) fn stay(&self, before_sleep: impl FnOnce()) -> bool {
        if !self.surplus.load(Ordering::Relaxed) {
            return true;
        }
        before_sleep();
        let mut state = self.state.lock();
        if state.stopping || state.active <= self.wanted(&state) {
            self.hints(&state);
            return true;
        }
        state.active -= 1;
        state.spare += 1;
        self.hints(&state);
        loop {
            let (idle, total_max) = (state.idle, state.total_max);
            let timed_out = state.total > total_max || self.spare.wait_for(&mut state, idle).timed_out();
            if state.called > 0 {
                state.called -= 1;
                return true;
            }
            if state.stopping || timed_out {
                // `Ending` decrements `active`.
                state.spare -= 1;
                state.active += 1;
                return false;
            }
        }
    }

    /// Adds one active worker, if the maximum allows it.
    fn call_one(&self, state: &mut State) {
        if state.stopping {
            return;
        }
        if state.spare > 0 {
            state.spare -= 1;
            state.called += 1;
            state.active += 1;
            self.spare.notify_one();
        } else if state.total < state.total_max && self.main.get().is_some() {
            // If no thread can be started, the existing ones continue.
            let _ = self.spawn(state);
        }
    }

    /// Returns the number of workers that should be active.
    fn wanted(&self, state: &State) -> usize {
        self.limits.active + state.more
    }

    /// Housekeeping: sets the number of active workers wanted in addition to the limit.
    pub(crate) fn want_more(&self, more: usize) {
        let mut state = self.state.lock();
        state.more = more;
        self.hints(&state);
    }

    fn hints(&self, state: &State) {
        self.surplus.store(state.active > self.wanted(state), Ordering::Relaxed);
        self.short.store(state.active < self.wanted(state), Ordering::Relaxed);
    }

    /// Housekeeping: waits until workers are short, [`Workers::hurry`] is called, or the timeout expires.
    pub(crate) fn wait_short(&self, timeout: Duration) {
        let (lock, condvar) = &self.housekeeper;
        let mut hurry = lock.lock();
        if !self.short.load(Ordering::Relaxed) && !*hurry {
            condvar.wait_for(&mut hurry, timeout);
        }
        *hurry = false;
    }

    /// Makes housekeeping check at once, because something is due before its next check.
    pub(crate) fn hurry(&self) {
        *self.housekeeper.0.lock() = true;
        self.housekeeper.1.notify_one();
    }

    /// Housekeeping: returns true if blocked workers have not been replaced yet.
    pub(crate) fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Housekeeping: replaces workers that have been blocked for long enough. Returns false if the maximum
    /// forbids it.
    pub(crate) fn top_up(&self) -> bool {
        let mut state = self.state.lock();
        while state.active < self.wanted(&state) {
            let before = state.active;
            self.call_one(&mut state);
            if state.active == before {
                return false;
            }
        }
        self.hints(&state);
        true
    }

    /// Ends all workers. The caller has made their `main` return.
    pub(crate) fn stop(&self) {
        self.begin_stop();
        let handles = std::mem::take(&mut self.state.lock().handles);
        for (handle, _) in handles {
            // A worker catches the panics of statements. The panic hook reports a panic of the worker itself.
            let _ = handle.join();
        }
    }

    /// Ends all workers like [`Workers::stop`], but gives up once `is_over` returns true. Returns false if
    /// some workers are still running.
    pub(crate) fn stop_unless(&self, is_over: impl Fn() -> bool) -> bool {
        self.begin_stop();
        while self.total() > 0 {
            if is_over() {
                return false;
            }
            sleep(Duration::from_millis(1));
        }
        self.stop();
        true
    }

    fn begin_stop(&self) {
        self.state.lock().stopping = true;
        self.spare.notify_all();
        self.hurry();
    }

    /// Returns the number of threads.
    pub fn total(&self) -> usize {
        self.state.lock().total
    }

    /// Returns the number of active workers.
    pub fn active(&self) -> usize {
        self.state.lock().active
    }

    /// Marks the calling worker as blocked before it sleeps, so that another takes its place.
    pub fn begin(&self) {
        let is_short = with_slot(|slot| {
            let mut state = self.state.lock();
            if !slot.set_out() {
                return false;
            }
            state.active -= 1;
            if state.active < ACTIVE_MIN.min(self.limits.active) {
                self.call_one(&mut state);
            }
            self.hints(&state);
            state.active < self.wanted(&state)
        });
        if is_short == Some(true) {
            self.hurry();
        }
    }

    /// Marks the calling worker as active again.
    pub fn end(&self) {
        with_slot(|slot| {
            // Lock before clearing the bit: the request continues, and housekeeping may find it stalled at
            // once.
            let mut state = self.state.lock();
            if slot.clear_out() {
                self.count_in(&mut state);
            }
        });
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Removes a worker from the counts when its thread ends, for whatever reason.
struct Ending(Arc<Mutex<State>>);

impl Drop for Ending {
    fn drop(&mut self) {
        let was_out = with_slot(WorkerSlot::end) == Some(true);
        let mut state = self.0.lock();
        state.total -= 1;
        if !was_out {
            state.active -= 1;
        }
    }
}
