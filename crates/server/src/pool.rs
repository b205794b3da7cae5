//! Workers: the threads that serve connections.
//!
//! # Concepts
//! A worker is *active* (it serves or waits for an event), *blocked* (it sleeps until a client takes a
//! result, or until a result may be seen; a statement that waits for a lock leaves its worker, see
//! `fiber.rs`), *away* (one request keeps it for longer than thread_pool_stall_limit) or *spare* (it waits
//! until it is needed). As many are kept active as the machine can use: one for each core, and one more while
//! flushes take long, because one of them is usually the leader then. While flushes are short one more would
//! be woken by requests that the others are about to take, and clients of the same machine would wait for a
//! processor. A worker that is away still uses a processor,
//! but somebody must be there to take KILL and a login.
//!
//! # States and who makes each move
//! | move | by |
//! |---|---|
//! | active -> blocked | [`Workers::begin`], on the blocking thread |
//! | blocked -> active | [`Workers::end`], on that thread |
//! | active -> away | [`Workers::replace_stalled`], by housekeeping |
//! | away -> active | the worker's own [`Workers::done`] or [`Workers::end`] |
//! | active -> spare | [`Workers::stay`], on the worker, when there are more active ones than wanted |
//! | spare -> active, or a new thread | `begin` when fewer than two are left, else `top_up` a little later: most waits are shorter than starting a thread |
//! | spare -> ended | `stay`, after thread_pool_idle_timeout |
//! | active -> ended | the worker's `main` returned, because the server stops |
//!
//! # Who owns what
//! Each worker has a [`Post`] with one word: when its request began, and whether the worker is *out* (blocked
//! or away). The bit of being out and the count of active workers change hands together:
//! - The thread that sets the bit subtracts one from `active`; it holds the state's lock while it does both.
//! - The thread that clears the bit adds one. Only the worker clears its own bit: within a request under the
//!   state's lock, at the request's end before it takes the lock.
//!
//! Housekeeping sets the bit by a compare-and-swap against the very request it looked at, so it never counts
//! out a worker that has finished meanwhile. A worker moves to spare only between requests, where its word is
//! zero and no other thread sets the bit.
//!
//! # Invariants
//! - `active` is the number of workers that are neither out, spare nor ended, less those that have ended
//!   their request while they were out and wait for the lock to count themselves in. No thread counts those
//!   out meanwhile, so it never falls below zero.
//! - A spare worker that was called is counted as active from the call on, whichever of them gets up.
//!
//! # Lock order
//! The locks of the state and of the housekeeper are leaves.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread::{Builder, JoinHandle, sleep};
use crate::sync::{Condvar, Mutex, thread_local};

/// How many threads.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLimits {
    /// Active ones that are wanted.
    pub active: usize,
    /// All of them, blocked ones too.
    pub total_max: usize,
    /// Stack of each.
    pub stack_bytes: usize,
    /// After which a spare worker ends.
    pub idle: Duration,
}

/// Fewer active workers than this are topped up at once: one may lead a flush, one must serve.
const ACTIVE_MIN: usize = 2;

#[derive(Default)]
struct State {
    total: usize,
    active: usize,
    spare: usize,
    /// Spare workers that were called and have not got up yet.
    called: usize,
    /// Active ones that are wanted besides those of the limits.
    more: usize,
    stopping: bool,
    /// Of threads that have not ended, and of some that have.
    handles: Vec<(JoinHandle<()>, Arc<Post>)>,
}

/// What one worker is at: `since_ms << 1 | is_out`. `since_ms` is when it began to serve its request, by the
/// server's clock; 0 between requests.
#[derive(Default)]
struct Post(AtomicU64);

const OUT: u64 = 1;
/// The thread is about to end.
const ENDED: u64 = u64::MAX;

impl Post {
    fn begin_request(&self, now_ms: u64) {
        self.0.store(now_ms.max(1) << 1, Ordering::Relaxed);
    }

    /// True if the worker was out, and has to count itself in.
    fn end_request(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) & OUT != 0
    }

    /// Counts out a worker that has served one request for longer than `limit_ms`; true if this call did.
    fn mark_stalled(&self, now_ms: u64, limit_ms: u64) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        let since_ms = seen >> 1;
        let is_stalled = since_ms != 0 && now_ms.saturating_sub(since_ms) > limit_ms && seen & OUT == 0;
        is_stalled && self.0.compare_exchange(seen, seen | OUT, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The worker's last move. True if it was out.
    fn end(&self) -> bool {
        self.0.swap(ENDED, Ordering::Relaxed) & OUT != 0
    }

    fn has_ended(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ENDED
    }

    /// True if this call set the bit.
    fn go_out(&self) -> bool {
        self.0.fetch_or(OUT, Ordering::Relaxed) & OUT == 0
    }

    /// True if this call cleared the bit.
    fn come_in(&self) -> bool {
        self.0.fetch_and(!OUT, Ordering::Relaxed) & OUT != 0
    }
}

/// What a worker does.
type Main = Arc<dyn Fn() + Send + Sync>;

/// The threads of one server. Made before the server, because the lock table wants to know it.
pub struct Workers {
    limits: WorkerLimits,
    state: Arc<Mutex<State>>,
    /// Spare workers sleep here.
    spare: Condvar,
    /// More active ones than wanted: a hint for `stay`.
    surplus: AtomicBool,
    /// Fewer than wanted: a hint for housekeeping. A worker that makes it true wakes housekeeping afterwards.
    short: AtomicBool,
    /// Housekeeping sleeps here; true: it is to look again at once.
    housekeeper: (Mutex<bool>, Condvar),
    /// Set once, by the server.
    main: OnceLock<Main>,
}

thread_local! {
    /// Of a worker's thread.
    static POST: RefCell<Option<Arc<Post>>> = const { RefCell::new(None) };
}

/// Runs `work` with this worker's post; `None` on other threads. Not inlined: see `fiber.rs` on thread-local
/// variables.
#[inline(never)]
fn on_post<R>(work: impl FnOnce(&Post) -> R) -> Option<R> {
    POST.with(|post| post.borrow().as_deref().map(work))
}

impl Workers {
    /// No thread runs yet.
    pub fn new(limits: WorkerLimits) -> Workers {
        Workers {
            limits,
            state: Arc::default(),
            spare: Condvar::new(),
            surplus: AtomicBool::new(false),
            short: AtomicBool::new(false),
            housekeeper: (Mutex::new(false), Condvar::new()),
            main: OnceLock::new(),
        }
    }

    /// Starts the first workers. `main` returns when the server stops or [`Workers::stay`] says so.
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
        let post = Arc::new(Post::default());
        let (own, its_state) = (Arc::clone(&post), Arc::clone(&self.state));
        let handle = Builder::new()
            .name("worker".into())
            .stack_size(self.limits.stack_bytes + cohort_base::STACK_RESERVE)
            .spawn(move || {
                POST.with(|post| *post.borrow_mut() = Some(own));
                let _ending = Ending(its_state);
                main();
            })?;
        state.total += 1;
        state.active += 1;
        state.handles.retain(|(_, post)| !post.has_ended());
        state.handles.push((handle, post));
        Ok(())
    }

    /// A worker begins to serve a request.
    pub(crate) fn busy(&self, now_ms: u64) {
        on_post(|post| post.begin_request(now_ms));
    }

    /// A worker has served its request.
    pub(crate) fn done(&self) {
        if on_post(Post::end_request) == Some(true) {
            self.count_in(&mut self.state.lock());
        }
    }

    /// The caller has cleared its bit.
    fn count_in(&self, state: &mut State) {
        state.active += 1;
        self.hints(state);
    }

    /// Housekeeping: counts out workers that have served one request for longer than `limit_ms`, so that
    /// others take the place.
    pub(crate) fn replace_stalled(&self, now_ms: u64, limit_ms: u64) {
        let mut state = self.state.lock();
        let stalled = state.handles.iter().filter(|(_, post)| post.mark_stalled(now_ms, limit_ms)).count();
        state.active -= stalled;
        self.hints(&state);
    }

    /// Between two requests, when there is nothing to do: false if the worker is to end. Puts a surplus
    /// worker to sleep, after `before_sleep`.
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
            let timed_out = self.spare.wait_for(&mut state, self.limits.idle).timed_out();
            if state.called > 0 {
                state.called -= 1;
                return true;
            }
            if state.stopping || timed_out {
                // `Ending` takes it off the active ones.
                state.spare -= 1;
                state.active += 1;
                return false;
            }
        }
    }

    /// One more active worker, if the bound allows.
    fn call_one(&self, state: &mut State) {
        if state.stopping {
            return;
        }
        if state.spare > 0 {
            state.spare -= 1;
            state.called += 1;
            state.active += 1;
            self.spare.notify_one();
        } else if state.total < self.limits.total_max && self.main.get().is_some() {
            // No thread to be had: those that are there go on.
            let _ = self.spawn(state);
        }
    }

    /// So many are to be active.
    fn wanted(&self, state: &State) -> usize {
        self.limits.active + state.more
    }

    /// Housekeeping: so many active workers are wanted besides those of the limits.
    pub(crate) fn want_more(&self, more: usize) {
        let mut state = self.state.lock();
        state.more = more;
        self.hints(&state);
    }

    fn hints(&self, state: &State) {
        self.surplus.store(state.active > self.wanted(state), Ordering::Relaxed);
        self.short.store(state.active < self.wanted(state), Ordering::Relaxed);
    }

    /// Housekeeping: waits until workers are short, something is due, or for the time given.
    pub(crate) fn wait_short(&self, timeout: Duration) {
        let (lock, condvar) = &self.housekeeper;
        let mut hurry = lock.lock();
        if !self.short.load(Ordering::Relaxed) && !*hurry {
            condvar.wait_for(&mut hurry, timeout);
        }
        *hurry = false;
    }

    /// Something is due sooner than housekeeping looks.
    pub(crate) fn hurry(&self) {
        *self.housekeeper.0.lock() = true;
        self.housekeeper.1.notify_one();
    }

    /// Housekeeping: whether blocked workers have not been replaced yet.
    pub(crate) fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Housekeeping: replaces workers that have blocked for long enough. False if the bound forbids it.
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

    /// Ends all workers; the caller has made their `main` return.
    pub(crate) fn stop(&self) {
        self.begin_stop();
        let handles = std::mem::take(&mut self.state.lock().handles);
        for (handle, _) in handles {
            // A worker catches the panics of statements; one of its own is told by the panic hook.
            let _ = handle.join();
        }
    }

    /// The same, as far as `is_over` lets it wait for them; false if some go on.
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

    /// Threads there are.
    pub fn total(&self) -> usize {
        self.state.lock().total
    }

    /// Those that are active.
    pub fn active(&self) -> usize {
        self.state.lock().active
    }

    /// The calling worker is going to sleep: another takes its place.
    pub fn begin(&self) {
        let is_short = on_post(|post| {
            let mut state = self.state.lock();
            if !post.go_out() {
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

    /// It is awake again.
    pub fn end(&self) {
        on_post(|post| {
            // Before the bit is cleared: the request goes on, and housekeeping may find it stalled at once.
            let mut state = self.state.lock();
            if post.come_in() {
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

/// Takes an active worker off the books when its thread ends, however it does.
struct Ending(Arc<Mutex<State>>);

impl Drop for Ending {
    fn drop(&mut self) {
        let was_out = on_post(Post::end) == Some(true);
        let mut state = self.0.lock();
        state.total -= 1;
        if !was_out {
            state.active -= 1;
        }
    }
}
