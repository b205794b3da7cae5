//! A running server: a value, so that several can live in one process.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cohort_base::ConnectionId;
use cohort_config::{Counter, Globals, Status, VarId};
use cohort_protocol::Scramble;
use cohort_vfs::{SharedClock, SharedRng};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::accounts::Accounts;
use crate::backend::Backend;
use crate::connection::Connection;
use crate::epoll::{Epoll, Event, EventFd, Interest};
use crate::error_log::ErrorLog;
use crate::fiber::{FiberOptions, Fibers};
use crate::listen::Endpoints;
use crate::pool::Workers;
use crate::ready::{Ready, Work};
use crate::{housekeeping, listen};

/// What a server is made of.
pub struct ServerOptions {
    pub globals: Arc<Globals>,
    pub status: Arc<Status>,
    pub backend: Arc<dyn Backend>,
    pub accounts: Arc<dyn Accounts>,
    pub workers: Arc<Workers>,
    pub clock: SharedClock,
    pub rng: SharedRng,
    pub log: ErrorLog,
}

/// The server could not start; nothing was changed.
#[derive(Debug)]
pub struct StartError {
    what: &'static str,
    error: io::Error,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.error)
    }
}

impl std::error::Error for StartError {}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |error| StartError { what, error }
}

/// Tokens of events that are no connection; theirs have a slot in the high half, from 1.
const TOKEN_STOP: u64 = 0;
const TOKEN_READY: u64 = 1;

/// Bytes that one read takes; every fiber has so many.
const READ_BYTES: usize = 16 << 10;
/// A worker that let others run for longer than this is in their way.
const CROWDED_NS: u64 = 500_000;
const CROWDED_FOR_NS: u64 = 1_000_000_000;

/// What all threads of a server share.
pub(crate) struct Shared {
    pub globals: Arc<Globals>,
    pub status: Arc<Status>,
    pub backend: Arc<dyn Backend>,
    pub accounts: Arc<dyn Accounts>,
    pub workers: Arc<Workers>,
    clock: SharedClock,
    rng: SharedRng,
    pub log: ErrorLog,
    pub epoll: Epoll,
    pub stop_event: EventFd,
    pub stopping: AtomicBool,
    pub started_ms: u64,
    /// Connections that are owned and want a worker, and statements that waited and go on.
    ready: Arc<Ready<Arc<Connection>>>,
    pub fibers: Arc<Fibers<Arc<Connection>>>,
    /// A worker looks for events without sleeping; one at a time may.
    spinning: AtomicBool,
    /// Others need the processors: no worker looks for its client before this time.
    crowded_until_ns: AtomicU64,
    connections: RwLock<Slots>,
    last_id: AtomicU64,
    /// COM_SHUTDOWN, SHUTDOWN or a signal.
    stop_requested: Mutex<bool>,
    stop_condvar: Condvar,
}

#[derive(Default)]
struct Slots {
    all: Vec<Option<Arc<Connection>>>,
    free: Vec<u32>,
    used: usize,
}

/// A place for a new connection.
pub(crate) struct Slot {
    pub id: ConnectionId,
    pub token: u64,
    index: u32,
}

impl Shared {
    /// Monotonic milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.clock.monotonic_ns() / 1_000_000
    }

    /// Random bytes for a handshake.
    pub fn new_scramble(&self) -> Scramble {
        let mut bytes = [0; 20];
        self.rng.fill(&mut bytes);
        Scramble::from_random(bytes)
    }

    /// A place for a connection; one more than max_connections, for an administrator.
    pub fn reserve(&self) -> Option<Slot> {
        let limit = self.globals.uint(VarId::MaxConnections) as usize + 1;
        let mut slots = self.connections.write();
        if slots.used >= limit {
            return None;
        }
        slots.used += 1;
        let index = slots.free.pop().unwrap_or_else(|| {
            slots.all.push(None);
            slots.all.len() as u32 - 1
        });
        let id = ConnectionId(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        self.status.put(Counter::ThreadsConnected, slots.used as u64);
        self.status.raise(Counter::MaxUsedConnections, slots.used as u64);
        Some(Slot { id, token: (u64::from(index) + 1) << 32 | id.0 & 0xffff_ffff, index })
    }

    /// Whether only the place for an administrator is left.
    pub fn is_full(&self) -> bool {
        self.connections.read().used > self.globals.uint(VarId::MaxConnections) as usize
    }

    pub fn insert(&self, slot: Slot, connection: Arc<Connection>) {
        self.connections.write().all[slot.index as usize] = Some(connection);
    }

    /// A closed connection's place is free.
    pub fn forget(&self, connection: &Connection) {
        let index = (connection.token >> 32) as usize - 1;
        let mut slots = self.connections.write();
        slots.all[index] = None;
        slots.free.push(index as u32);
        slots.used -= 1;
        self.status.put(Counter::ThreadsConnected, slots.used as u64);
    }

    fn find(&self, token: u64) -> Option<Arc<Connection>> {
        let index = ((token >> 32) as usize).checked_sub(1)?;
        let slots = self.connections.read();
        slots.all.get(index)?.as_ref().filter(|connection| connection.token == token).cloned()
    }

    /// All connections.
    pub fn all(&self) -> Vec<Arc<Connection>> {
        self.connections.read().all.iter().flatten().cloned().collect()
    }

    /// Leaves a connection that the caller owns to a worker.
    pub fn serve_later(&self, connection: Arc<Connection>) {
        self.ready.push(Work::Begin(connection));
    }

    /// Counts prepared statements up or down.
    pub fn prepared_statements(&self, change: i64) {
        match u64::try_from(change) {
            Ok(more) => self.status.add(Counter::PreparedStmtCount, more),
            Err(_) => {
                (0..change.unsigned_abs()).for_each(|_| self.status.uncount(Counter::PreparedStmtCount))
            }
        }
    }

    /// Somebody wants the server to stop.
    pub fn request_stop(&self) {
        *self.stop_requested.lock() = true;
        self.stop_condvar.notify_all();
    }

    /// The line of `mariadb-admin status`.
    pub fn statistics(&self) -> String {
        let uptime = (self.now_ms() - self.started_ms) / 1000;
        let get = |counter| self.status.get(counter);
        let questions = get(Counter::Questions);
        let average = questions as f64 / uptime.max(1) as f64;
        format!(
            "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {}  Opens: 0  Open tables: 0  \
             Queries per second avg: {average:.3}",
            get(Counter::ThreadsConnected),
            get(Counter::SlowQueries),
        )
    }

    /// A worker's life.
    fn work(&self) {
        self.status.count(Counter::ThreadsCreated);
        // The connection served last, and whether it was the same one before: few clients are at work.
        let (mut last, mut again) = (0, false);
        while self.workers.stay() && !self.is_over() {
            let work = match self.ready.pop() {
                Some(work) => Some(work),
                None => match self.ready.rest(|| self.next_event(again)) {
                    Err(work) => Some(work),
                    Ok(Ok(Some(Event { token: TOKEN_STOP, .. }))) => {
                        // Statements that wait are being ended; somebody must run them to their end.
                        std::thread::sleep(Duration::from_millis(1));
                        None
                    }
                    Ok(Ok(Some(Event { token: TOKEN_READY, .. })) | Ok(None)) => None,
                    Ok(Ok(Some(event))) => self.taken(event).map(Work::Begin),
                    Ok(Err(error)) => {
                        return self.log.error(format_args!("Cannot wait for events: {error}"));
                    }
                },
            };
            again = matches!(&work, Some(Work::Begin(connection)) if connection.token == last);
            let Some(work) = work else { continue };
            if let Work::Begin(connection) = &work {
                last = connection.token;
            }
            self.workers.busy(self.now_ms());
            self.fibers.work(work);
            self.workers.done();
        }
    }

    /// Whether workers may end: the server stops, and no statement waits.
    fn is_over(&self) -> bool {
        self.stopping.load(Ordering::Acquire) && self.fibers.asleep() == 0
    }

    /// The connection of an event, if the caller is to serve it.
    fn taken(&self, event: Event) -> Option<Arc<Connection>> {
        let connection = self.find(event.token)?;
        if event.is_end {
            connection.note_end();
        }
        connection.take().then_some(connection)
    }

    /// Waits for an event. A worker that serves the same client again and again looks for a while before it
    /// sleeps: the client often comes back sooner than a sleeping thread wakes. With many clients the
    /// processor has better to do. Between two looks it lets others run, because the client may wait for this
    /// very processor; if those keep it for long, it is not there for looking.
    fn next_event(&self, again: bool) -> io::Result<Option<Event>> {
        let spin_us = self.globals.uint(VarId::ThreadPoolSpinUs);
        if !again || spin_us == 0 {
            return self.epoll.wait(None);
        }
        let mut now_ns = self.clock.monotonic_ns();
        let is_crowded = now_ns < self.crowded_until_ns.load(Ordering::Relaxed);
        if is_crowded || self.spinning.swap(true, Ordering::Acquire) {
            return self.epoll.wait(None);
        }
        let end_ns = now_ns + spin_us * 1000;
        let mut found = self.epoll.wait(Some(Duration::ZERO));
        while let Ok(None) = found
            && now_ns < end_ns
        {
            std::thread::yield_now();
            let yielded_ns = self.clock.monotonic_ns() - now_ns;
            now_ns += yielded_ns;
            if yielded_ns > CROWDED_NS {
                self.crowded_until_ns.store(now_ns + CROWDED_FOR_NS, Ordering::Relaxed);
            }
            found = self.epoll.wait(Some(Duration::ZERO));
        }
        self.spinning.store(false, Ordering::Release);
        match found {
            Ok(None) => self.epoll.wait(None),
            found => found,
        }
    }

    /// Serves a connection; a panic ends that connection only.
    fn serve(&self, connection: &Arc<Connection>, scratch: &mut [u8]) {
        if catch_unwind(AssertUnwindSafe(|| connection.serve(scratch))).is_err() {
            self.log.error(format_args!(
                "Connection {} was closed: its statement hit a bug in the server (see the message of the panic)",
                connection.id
            ));
            connection.abandon();
        }
    }
}

/// What fibers do: they serve one connection after the other.
fn serve_with(shared: Weak<Shared>) -> Box<dyn Fn(Arc<Connection>, &mut [u8]) + Send + Sync> {
    Box::new(move |connection, scratch| {
        if let Some(shared) = shared.upgrade() {
            shared.serve(&connection, scratch);
        }
    })
}

/// Housekeeping wakes who has slept for long enough.
fn hurry(workers: Arc<Workers>) -> Box<dyn Fn(Instant) + Send + Sync> {
    Box::new(move |due| {
        if due < Instant::now() + housekeeping::SWEEP {
            workers.hurry();
        }
    })
}

/// A running server. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts to serve.
    pub fn start(options: ServerOptions, endpoints: Endpoints) -> Result<Server, StartError> {
        let ServerOptions { globals, status, backend, accounts, workers, clock, rng, log } = options;
        let epoll = Epoll::new().map_err(failed("cannot create an epoll instance"))?;
        let stop_event = EventFd::new().map_err(failed("cannot create an event"))?;
        let ready = Arc::new(Ready::new().map_err(failed("cannot create an event"))?);
        let watch = "cannot watch an event";
        epoll
            .add(std::os::fd::AsRawFd::as_raw_fd(&stop_event), TOKEN_STOP, Interest::Level)
            .map_err(failed(watch))?;
        epoll
            .add(std::os::fd::AsRawFd::as_raw_fd(&*ready), TOKEN_READY, Interest::Input)
            .map_err(failed(watch))?;
        let started_ms = clock.monotonic_ns() / 1_000_000;
        let stack_bytes = globals.uint(VarId::ThreadStack) as usize;
        let shared = Arc::new_cyclic(|shared: &Weak<Shared>| Shared {
            fibers: Fibers::new(FiberOptions {
                stack_bytes,
                buffer_bytes: READ_BYTES,
                ready: Arc::clone(&ready),
                run: serve_with(shared.clone()),
                due: hurry(Arc::clone(&workers)),
            }),
            globals,
            status,
            backend,
            accounts,
            workers,
            clock,
            rng,
            log,
            epoll,
            stop_event,
            stopping: AtomicBool::new(false),
            started_ms,
            ready,
            spinning: AtomicBool::new(false),
            crowded_until_ns: AtomicU64::new(0),
            connections: RwLock::default(),
            last_id: AtomicU64::new(0),
            stop_requested: Mutex::new(false),
            stop_condvar: Condvar::new(),
        });
        let main = {
            let shared = Arc::downgrade(&shared);
            move || {
                if let Some(shared) = shared.upgrade() {
                    shared.work();
                }
            }
        };
        shared.workers.start(Box::new(main)).map_err(failed("cannot start a worker"))?;
        let thread = "cannot start a thread";
        let threads = vec![
            housekeeping::start(Arc::clone(&shared)).map_err(failed(thread))?,
            listen::start(Arc::clone(&shared), endpoints).map_err(failed(thread))?,
        ];
        Ok(Server { shared, threads })
    }

    /// Blocks until somebody wants the server to stop.
    pub fn wait_for_stop_request(&self) {
        let mut requested = self.shared.stop_requested.lock();
        while !*requested {
            self.shared.stop_condvar.wait(&mut requested);
        }
    }

    /// For a signal handler's thread, and SHUTDOWN: lets `wait_for_stop_request` return.
    pub fn stop_requester(&self) -> impl Fn() + Send + Sync + Clone + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.request_stop()
    }

    /// Closes all connections, lets what runs finish for `patience`, ends all threads.
    pub fn stop(mut self, patience: Duration) {
        self.stop_now(patience);
    }

    fn stop_now(&mut self, patience: Duration) {
        let shared = &self.shared;
        let deadline_ms = shared.now_ms() + patience.as_millis() as u64;
        loop {
            let open = shared.all();
            if open.is_empty() || shared.now_ms() >= deadline_ms {
                break;
            }
            // Who is answering a statement may finish; who asked for the stop gets his answer.
            open.iter().for_each(|connection| connection.kill());
            std::thread::sleep(Duration::from_millis(5));
        }
        shared.all().iter().for_each(|connection| connection.disconnect());
        shared.stopping.store(true, Ordering::Release);
        shared.stop_event.notify();
        shared.workers.stop();
        for thread in self.threads.drain(..) {
            // Its panic was told by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_now(Duration::ZERO);
    }
}
