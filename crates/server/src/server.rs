//! A running server: a value, so that several can exist in one process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, io};

use cohort_base::ConnectionId;
use cohort_config::{Globals, Status, VarId};
use cohort_vfs::{SharedClock, SharedRng};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::accounts::Accounts;
use crate::backend::Backend;
use crate::connection::Connection;
use crate::epoll::{Epoll, EventFd, Interest};
use crate::error_log::ErrorLog;
use crate::fiber::{FiberOptions, Fibers};
use crate::listen::Endpoints;
use crate::pool::Workers;
use crate::ready::Ready;
use crate::shared::{Shared, TOKEN_READY, TOKEN_STOP};
use crate::tls::Tls;
use crate::{housekeeping, listen};

/// Parts that a server is created from.
pub struct ServerOptions {
    pub globals: Arc<Globals>,
    pub status: Arc<Status>,
    pub backend: Arc<dyn Backend>,
    pub accounts: Arc<dyn Accounts>,
    pub workers: Arc<Workers>,
    /// `None` if connections are not encrypted.
    pub tls: Option<Arc<Tls>>,
    pub clock: SharedClock,
    pub rng: SharedRng,
    pub log: ErrorLog,
}

/// The server could not start. Nothing was changed.
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

/// Buffer size for one read. Each fiber has such a buffer.
const READ_BYTES: usize = 16 << 10;

/// Returns the main function of fibers: serves one connection after the other.
fn serve_with(shared: Weak<Shared>) -> Box<dyn Fn(Arc<Connection>, &mut [u8]) + Send + Sync> {
    Box::new(move |connection, scratch| {
        if let Some(shared) = shared.upgrade() {
            shared.serve(&connection, scratch);
        }
    })
}

/// Returns the callback that leads a flush before a session sleeps, so that ordered transactions do not wait
/// for what the session waits for.
fn lead_before_sleep(backend: &Arc<dyn Backend>) -> Box<dyn Fn() + Send + Sync> {
    let backend = Arc::clone(backend);
    Box::new(move || backend.lead())
}

/// Returns the callback that wakes housekeeping if a deadline is sooner than its next check.
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
    /// Starts all threads except the one that accepts connections: see [`Server::listen`].
    pub fn start(options: ServerOptions) -> Result<Server, StartError> {
        let ServerOptions { globals, status, backend, accounts, workers, tls, clock, rng, log } = options;
        let epoll = Epoll::new().map_err(failed("cannot create an epoll instance"))?;
        let stop_event = EventFd::new().map_err(failed("cannot create an event"))?;
        let ready = Arc::new(Ready::new(EventFd::new().map_err(failed("cannot create an event"))?));
        let watch = "cannot watch an event";
        epoll.add(&stop_event, TOKEN_STOP, Interest::Level).map_err(failed(watch))?;
        epoll.add(ready.wakeup(), TOKEN_READY, Interest::Input).map_err(failed(watch))?;
        let started_ms = clock.coarse_ms();
        let stack_bytes = globals.uint(VarId::ThreadStack) as usize;
        let shared = Arc::new_cyclic(|shared: &Weak<Shared>| Shared {
            fibers: Fibers::new(FiberOptions {
                stack_bytes,
                buffer_bytes: READ_BYTES,
                ready: Arc::clone(&ready),
                run: serve_with(shared.clone()),
                before_sleep: lead_before_sleep(&backend),
                due: hurry(Arc::clone(&workers)),
            }),
            globals,
            status,
            backend,
            accounts,
            workers,
            tls,
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
        shared.workers.start(Arc::new(main)).map_err(failed("cannot start a worker"))?;
        let thread = "cannot start a thread";
        let threads = vec![housekeeping::start(Arc::clone(&shared)).map_err(failed(thread))?];
        Ok(Server { shared, threads })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Starts accepting connections.
    pub fn listen(&mut self, endpoints: Endpoints) -> Result<(), StartError> {
        let accepts = listen::start(Arc::clone(&self.shared), endpoints).map_err(failed("cannot listen"))?;
        self.threads.push(accepts);
        Ok(())
    }

    /// Blocks until the server is requested to stop.
    pub fn wait_for_stop_request(&self) {
        let mut requested = self.shared.stop_requested.lock();
        while !*requested {
            self.shared.stop_condvar.wait(&mut requested);
        }
    }

    /// Returns a function for the signal thread and SHUTDOWN that makes `wait_for_stop_request` return.
    pub fn stop_requester(&self) -> impl Fn() + Send + Sync + Clone + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.request_stop()
    }

    /// Returns a function that allocates connection ids for the server's own threads in the process list.
    pub fn connection_ids(&self) -> impl Fn() -> ConnectionId + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.next_id()
    }

    /// Closes all connections, lets running statements finish for `patience`, kills them, and ends all
    /// threads. Returns false if statements were still running `patience` after they were killed: their
    /// threads continue, and the process must end.
    #[must_use]
    pub fn stop(mut self, patience: Duration) -> bool {
        self.end_connections(patience);
        let shared = Arc::clone(&self.shared);
        let deadline_ms = shared.now_ms() + patience.as_millis() as u64;
        let is_stopped = shared.workers.stop_unless(|| shared.now_ms() >= deadline_ms);
        match is_stopped {
            true => self.join(),
            // Dropping it would wait for the threads.
            false => std::mem::forget(self),
        }
        is_stopped
    }

    fn end_connections(&self, patience: Duration) {
        let shared = &self.shared;
        let deadline_ms = shared.now_ms() + patience.as_millis() as u64;
        loop {
            let open = shared.all();
            if open.is_empty() || shared.now_ms() >= deadline_ms {
                break;
            }
            // A session that is replying finishes its reply, including the one that requested the stop.
            open.iter().for_each(|connection| connection.kill());
            std::thread::sleep(Duration::from_millis(5));
        }
        shared.all().iter().for_each(|connection| connection.disconnect());
        shared.stopping.store(true, Ordering::Release);
        shared.stop_event.notify();
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            // The panic hook has reported its panic.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end_connections(Duration::ZERO);
        self.shared.workers.stop();
        self.join();
    }
}
