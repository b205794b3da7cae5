//! Workers: the threads that serve connections.
//!
//! # Concepts
//! A worker is *active* (it serves or waits for an event), *blocked* (it sleeps until a client takes a
//! result, or until a result may be seen; who waits for a lock leaves its worker, see `fiber.rs`), *away*
//! (one request keeps it for longer than thread_pool_stall_limit) or *spare* (it waits for being needed). As
//! many are kept active as the machine can use: cores + 1, because one of them is usually the leader of a
//! flush. Who is away still uses a processor, but somebody must be there to take KILL and a login.
//!
//! # Moves
//! | move | by |
//! |---|---|
//! | active -> blocked | [`Workers::begin`], on the blocking thread |
//! | blocked -> active | [`Workers::end`] |
//! | active -> away | [`Workers::replace_stalled`], by housekeeping |
//! | away -> active | the worker's own next [`Workers::begin`] or end of its request |
//! | active -> spare | [`Workers::stay`], when there are more active ones than wanted |
//! | spare -> active, or a new thread | `begin` when fewer than two are left, else `top_up` a little later: most waits are shorter than starting a thread |
//! | spare -> ended | after thread_pool_idle_timeout |
//!
//! # Lock order
//! The state's lock is a leaf.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

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
    stopping: bool,
    handles: Vec<(JoinHandle<()>, Arc<Post>)>,
}

/// What one worker is at.
#[derive(Default)]
struct Post {
    /// Since when it serves one request, by the server's clock; 0: it does not. Written by the worker.
    since_ms: AtomicU64,
    /// Not among the active ones: blocked or away. Written under the state's lock.
    is_out: AtomicBool,
}

/// The threads of one server. Made before the server, because the lock table wants to know it.
pub struct Workers {
    limits: WorkerLimits,
    state: Mutex<State>,
    /// Spare workers sleep here.
    spare: Condvar,
    /// More active ones than wanted: a hint for `stay`.
    surplus: AtomicBool,
    /// Fewer than wanted: a hint for housekeeping.
    short: AtomicBool,
    /// Housekeeping sleeps here; true: it is to look again at once.
    housekeeper: (Mutex<bool>, Condvar),
    /// What a worker does; set once, by the server.
    main: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

thread_local! {
    /// Of a worker's thread.
    static POST: RefCell<Option<Arc<Post>>> = const { RefCell::new(None) };
}

/// Runs `work` with this worker's post; nothing on other threads. Not inlined: see `fiber.rs` on thread-local
/// variables.
#[inline(never)]
fn on_post(work: impl FnOnce(&Post)) {
    POST.with_borrow(|post| {
        if let Some(post) = post {
            work(post);
        }
    });
}

impl Workers {
    /// No thread runs yet.
    pub fn new(limits: WorkerLimits) -> Workers {
        Workers {
            limits,
            state: Mutex::default(),
            spare: Condvar::new(),
            surplus: AtomicBool::new(false),
            short: AtomicBool::new(false),
            housekeeper: (Mutex::new(false), Condvar::new()),
            main: OnceLock::new(),
        }
    }

    /// Starts the first workers. `main` returns when the server stops or [`Workers::stay`] says so.
    pub(crate) fn start(
        self: &std::sync::Arc<Self>,
        main: Box<dyn Fn() + Send + Sync>,
    ) -> std::io::Result<()> {
        assert!(self.main.set(main).is_ok(), "workers serve one server");
        let mut state = self.state.lock();
        while state.active < self.limits.active {
            self.spawn(&mut state)?;
        }
        Ok(())
    }

    fn spawn(&self, state: &mut State) -> std::io::Result<()> {
        // The workers outlive no server: `stop` joins them, and the server owns this value.
        let main = self.main.get().expect("started before anybody blocks");
        let main: &'static (dyn Fn() + Send + Sync) = {
            let main: &(dyn Fn() + Send + Sync) = &**main;
            // SAFETY: `stop` joins every thread before this value, which owns `main`, can be dropped (`Drop`
            // calls it).
            unsafe { std::mem::transmute(main) }
        };
        let post = Arc::new(Post::default());
        let own = Arc::clone(&post);
        let handle = Builder::new()
            .name("worker".into())
            .stack_size(self.limits.stack_bytes + cohort_base::STACK_RESERVE)
            .spawn(move || {
                POST.set(Some(own));
                main();
            })?;
        state.total += 1;
        state.active += 1;
        state.handles.retain(|(handle, _)| !handle.is_finished());
        state.handles.push((handle, post));
        Ok(())
    }

    /// A worker begins to serve a request.
    pub(crate) fn busy(&self, now_ms: u64) {
        on_post(|post| post.since_ms.store(now_ms.max(1), Ordering::Relaxed));
    }

    /// A worker has served its request.
    pub(crate) fn done(&self) {
        on_post(|post| {
            post.since_ms.store(0, Ordering::Relaxed);
            // Housekeeping may be about to set it: then the worker comes back with its next request.
            if post.is_out.load(Ordering::Relaxed) {
                self.come_back(post);
            }
        });
    }

    fn come_back(&self, post: &Post) {
        let mut state = self.state.lock();
        if post.is_out.swap(false, Ordering::Relaxed) {
            state.active += 1;
            self.hints(&state);
        }
    }

    /// Housekeeping: counts out who serves one request for longer than `limit_ms`, so that others take the
    /// place.
    pub(crate) fn replace_stalled(&self, now_ms: u64, limit_ms: u64) {
        let mut state = self.state.lock();
        let mut stalled = 0;
        for (_, post) in &state.handles {
            let since_ms = post.since_ms.load(Ordering::Relaxed);
            let is_stalled = since_ms != 0 && now_ms.saturating_sub(since_ms) > limit_ms;
            if is_stalled && !post.is_out.swap(true, Ordering::Relaxed) {
                stalled += 1;
            }
        }
        state.active -= stalled;
        self.hints(&state);
    }

    /// Between two events: false if the worker is to end. Puts a surplus worker to sleep.
    pub(crate) fn stay(&self) -> bool {
        if !self.surplus.load(Ordering::Relaxed) {
            return true;
        }
        let mut state = self.state.lock();
        if state.stopping || state.active <= self.limits.active {
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
                state.spare -= 1;
                state.total -= 1;
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

    fn hints(&self, state: &State) {
        self.surplus.store(state.active > self.limits.active, Ordering::Relaxed);
        self.short.store(state.active < self.limits.active, Ordering::Relaxed);
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
        while state.active < self.limits.active {
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
        let handles = {
            let mut state = self.state.lock();
            state.stopping = true;
            self.spare.notify_all();
            std::mem::take(&mut state.handles)
        };
        self.housekeeper.1.notify_all();
        for (handle, _) in handles {
            // A worker catches the panics of statements; one of its own is told by the panic hook.
            let _ = handle.join();
        }
    }

    /// Threads there are.
    pub fn total(&self) -> usize {
        self.state.lock().total
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Workers {
    /// The calling worker is going to sleep: another takes its place.
    pub fn begin(&self) {
        on_post(|post| {
            let mut state = self.state.lock();
            if post.is_out.swap(true, Ordering::Relaxed) {
                return;
            }
            state.active -= 1;
            if state.active < ACTIVE_MIN.min(self.limits.active) {
                self.call_one(&mut state);
            }
            self.hints(&state);
            if state.active < self.limits.active {
                drop(state);
                self.housekeeper.1.notify_one();
            }
        });
    }

    /// It is awake again.
    pub fn end(&self) {
        on_post(|post| self.come_back(post));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn blocked_workers_are_replaced_up_to_the_bound() {
        let limits =
            WorkerLimits { active: 2, total_max: 4, stack_bytes: 1 << 18, idle: Duration::from_millis(20) };
        let workers = Arc::new(Workers::new(limits));
        let (gate, begun) = (Arc::new((Mutex::new(false), Condvar::new())), Arc::new(AtomicUsize::new(0)));
        let main = {
            let (workers, gate, begun) = (Arc::downgrade(&workers), gate.clone(), begun.clone());
            move || {
                begun.fetch_add(1, Ordering::Relaxed);
                let blocking = workers.upgrade().expect("alive");
                blocking.begin();
                let mut open = gate.0.lock();
                while !*open {
                    gate.1.wait(&mut open);
                }
                blocking.end();
            }
        };
        workers.start(Box::new(main)).expect("threads");
        for _ in 0..200 {
            if begun.load(Ordering::Relaxed) == 4 {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(begun.load(Ordering::Relaxed), 4, "two first ones and two replacements");
        assert_eq!(workers.total(), 4);
        assert!(!workers.top_up(), "the bound is reached");
        *gate.0.lock() = true;
        gate.1.notify_all();
        workers.stop();
    }
}
