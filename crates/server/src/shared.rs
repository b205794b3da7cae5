//! The state that all threads of a server share: slots of connections, ready work; and the loop of a worker.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::ConnectionId;
use cohort_config::{Counter, Globals, Status, VarId};
use cohort_protocol::{Capabilities, Nonce, Scramble};
use cohort_types::SqlError;
use cohort_vfs::{SharedClock, SharedRng};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::accounts::{Account, Accounts};
use crate::backend::Backend;
use crate::connection::Connection;
use crate::epoll::{Epoll, Event, EventFd};
use crate::error_log::ErrorLog;
use crate::fiber::{Fibers, Work};
use crate::half_open::{self, HalfOpen};
use crate::pool::Workers;
use crate::ready::{Next, Ready, WaitEnd};
use crate::tls::Tls;

/// Tokens of events that do not belong to a connection. Connections have a slot number in the high half, from
/// 1.
pub const TOKEN_STOP: u64 = 0;
pub const TOKEN_READY: u64 = 1;

/// Maximum number of events that one call takes while all other workers are busy.
const EVENTS_MAX: usize = 8;

/// A spinning worker whose yield takes longer than this keeps other threads from running.
const CROWDED_NS: u64 = 500_000;
const CROWDED_FOR_NS: u64 = 1_000_000_000;

/// Maximum number of half-open connections (or max_connections, if that is larger). At the maximum, each new
/// connection closes one of them.
const HALF_OPEN_MAX: usize = 128;

/// State that all threads of a server share.
pub(crate) struct Shared {
    pub globals: Arc<Globals>,
    pub status: Arc<Status>,
    pub backend: Arc<dyn Backend>,
    pub accounts: Arc<dyn Accounts>,
    pub workers: Arc<Workers>,
    pub tls: Option<Arc<Tls>>,
    pub clock: SharedClock,
    pub rng: SharedRng,
    pub log: ErrorLog,
    pub epoll: Epoll,
    pub stop_event: EventFd,
    pub stopping: AtomicBool,
    pub started_ms: u64,
    /// Connections that are owned and need a worker, and statements that continue after a wait.
    pub ready: Arc<Ready<Work<Arc<Connection>>, EventFd>>,
    pub fibers: Arc<Fibers<Arc<Connection>>>,
    /// A worker polls for events without sleeping. Only one at a time may.
    pub spinning: AtomicBool,
    /// Other threads need the processors: no worker spins before this time.
    pub crowded_until_ns: AtomicU64,
    pub connections: RwLock<Slots>,
    pub last_id: AtomicU64,
    /// Set by COM_SHUTDOWN, SHUTDOWN or a signal.
    pub stop_requested: Mutex<bool>,
    pub stop_condvar: Condvar,
}

#[derive(Default)]
pub(crate) struct Slots {
    all: Vec<Option<Arc<Connection>>>,
    free: Vec<u32>,
    used: usize,
    /// Number of logged-in clients by account: user and host.
    entered: HashMap<(String, String), usize>,
    /// Number of all logged-in clients.
    entered_count: usize,
}

/// A slot for a new connection.
pub(crate) struct Slot {
    pub id: ConnectionId,
    pub token: u64,
    index: u32,
}

/// Result of a request for a slot.
pub(crate) enum Reserved {
    Slot(Slot),
    /// Too many connections are logging in or ending.
    Later,
    /// No further client could log in.
    Full,
}

impl Slots {
    /// Returns the number of connections that have not logged in.
    fn half_open(&self) -> usize {
        self.used - self.entered_count.min(self.used)
    }

    /// Returns the half-open connection to close for a new one. Connections that have an owner are skipped:
    /// they are logging in or ending.
    fn victim(&self) -> Option<Arc<Connection>> {
        let waiting = |it: &&Arc<Connection>| !it.has_entered() && !it.is_dead() && it.is_idle();
        let half_open = self.all.iter().flatten().filter(waiting).map(|it| HalfOpen {
            id: it.id.0,
            origin: it.peer.origin,
            is_silent: it.is_silent(),
        });
        let id = half_open::victim(&half_open.collect::<Vec<_>>())?;
        self.all.iter().flatten().find(|it| it.id.0 == id).cloned()
    }
}

/// One of max_connections, held from login on. Dropping it frees it.
pub(crate) struct Place {
    shared: Arc<Shared>,
    account: (String, String),
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut slots = self.shared.connections.write();
        slots.entered_count -= 1;
        if let Some(of_account) = slots.entered.get_mut(&self.account) {
            *of_account -= 1;
            if *of_account == 0 {
                slots.entered.remove(&self.account);
            }
        }
    }
}

impl Shared {
    /// Returns monotonic milliseconds, from a coarse clock.
    pub fn now_ms(&self) -> u64 {
        self.clock.coarse_ms()
    }

    /// Returns the seconds since 1970.
    pub fn wall_s(&self) -> u64 {
        self.clock.wall_us() / 1_000_000
    }

    /// Returns an id for a connection, or for a thread of the server in the process list.
    pub fn next_id(&self) -> ConnectionId {
        ConnectionId(self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the capabilities that the server offers to clients.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::SERVER.set(Capabilities::SSL, self.tls.is_some())
    }

    /// Returns a random scramble for a handshake.
    pub fn new_scramble(&self) -> Scramble {
        let mut bytes = [0; 20];
        self.rng.fill(&mut bytes);
        Scramble::from_random(bytes)
    }

    /// Returns a random nonce for ed25519.
    pub fn new_nonce(&self) -> Nonce {
        let mut bytes = [0; 32];
        self.rng.fill(&mut bytes);
        Nonce(bytes)
    }

    /// Returns the connection to close before another is accepted, if too many have not logged in.
    pub fn half_open_victim(&self) -> Option<Arc<Connection>> {
        let slots = self.connections.read();
        if slots.half_open() < self.half_open_max() { None } else { slots.victim() }
    }

    /// Reserves a slot for a connection that has not logged in. Such connections do not count against
    /// `max_connections`; the caller keeps their number limited.
    pub fn reserve(&self) -> Reserved {
        let limit = self.globals.uint(VarId::MaxConnections) as usize;
        let mut slots = self.connections.write();
        if slots.entered_count > limit {
            return Reserved::Full;
        }
        if slots.half_open() >= 2 * self.half_open_max() {
            return Reserved::Later;
        }
        slots.used += 1;
        let index = slots.free.pop().unwrap_or_else(|| {
            slots.all.push(None);
            slots.all.len() as u32 - 1
        });
        let id = self.next_id();
        self.status.put(Counter::ThreadsConnected, slots.used as u64);
        self.status.raise(Counter::MaxUsedConnections, slots.used as u64);
        Reserved::Slot(Slot { id, token: (u64::from(index) + 1) << 32 | id.0 & 0xffff_ffff, index })
    }

    fn half_open_max(&self) -> usize {
        HALF_OPEN_MAX.max(self.globals.uint(VarId::MaxConnections) as usize)
    }

    /// Reserves a place for an authenticated client. Administrators have one place more than max_connections.
    /// `own` is the place that the connection already has and gives up, for COM_CHANGE_USER.
    pub fn enter(self: &Arc<Self>, account: &Account, own: Option<&Place>) -> Result<Place, SqlError> {
        let administrators = usize::from(account.is_super);
        let limit = self.globals.uint(VarId::MaxConnections) as usize + administrators;
        let of_account_max = self.globals.uint(VarId::MaxUserConnections) as usize;
        let own_max = account.rules.limits.user_connections;
        let account_name = (account.user.clone(), account.host.clone());
        let mut slots = self.connections.write();
        if own.is_none() && slots.entered_count >= limit {
            self.status.count(Counter::ConnectionErrorsMaxConnections);
            return Err(SqlError::too_many_connections());
        }
        let before = slots.entered.get(&account_name).copied().unwrap_or(0);
        let others = before - usize::from(own.is_some_and(|own| own.account == account_name));
        if own_max != 0 && others >= usize::try_from(own_max).unwrap_or(0) {
            let user = &account.user;
            return Err(SqlError::resource_exceeded(user, "max_user_connections", own_max));
        }
        if own_max == 0 && of_account_max > 0 && !account.is_super && others >= of_account_max {
            return Err(SqlError::user_has_too_many_connections(&account.user));
        }
        slots.entered.insert(account_name.clone(), before + 1);
        slots.entered_count += 1;
        Ok(Place { shared: Arc::clone(self), account: account_name })
    }

    pub fn insert(&self, slot: Slot, connection: Arc<Connection>) {
        self.connections.write().all[slot.index as usize] = Some(connection);
    }

    /// Frees the slot of a closed connection.
    pub fn forget(&self, connection: &Connection) {
        let index = (connection.token >> 32) as usize - 1;
        let mut slots = self.connections.write();
        // After a panic while closing, this is called again.
        if slots.all[index].take_if(|it| it.token == connection.token).is_none() {
            return;
        }
        slots.free.push(index as u32);
        slots.used -= 1;
        self.status.put(Counter::ThreadsConnected, slots.used as u64);
    }

    fn find(&self, token: u64) -> Option<Arc<Connection>> {
        let index = ((token >> 32) as usize).checked_sub(1)?;
        let slots = self.connections.read();
        slots.all.get(index)?.as_ref().filter(|connection| connection.token == token).cloned()
    }

    /// Returns all connections.
    pub fn all(&self) -> Vec<Arc<Connection>> {
        self.connections.read().all.iter().flatten().cloned().collect()
    }

    /// Hands a connection that the caller owns over to a worker.
    pub fn serve_later(&self, connection: Arc<Connection>) {
        self.ready.push(Work::Begin(connection));
    }

    /// Requests the server to stop.
    pub fn request_stop(&self) {
        *self.stop_requested.lock() = true;
        self.stop_condvar.notify_all();
    }

    /// Returns the line of `mariadb-admin status`.
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

    /// Main loop of a worker.
    pub fn work(&self) {
        self.status.count(Counter::ThreadsCreated);
        // The connection that was served last, and whether the one before was the same: then few clients are
        // active.
        let (mut last, mut again) = (0, false);
        while !self.is_over() {
            let work = match self.ready.next(|| self.stay(), |is_alone| self.rest(again, is_alone)) {
                Next::Work(work) => Some(work),
                Next::Event(Ok(Some(Event { token: TOKEN_STOP, .. }))) => {
                    // Waiting statements are being killed. A worker must run them to their end.
                    self.lead();
                    std::thread::sleep(Duration::from_millis(1));
                    None
                }
                Next::Event(Ok(Some(event))) => self.taken(event).map(Work::Begin),
                Next::Event(Ok(None)) | Next::Nothing => None,
                Next::Event(Err(error)) => {
                    self.lead();
                    return self.log.error(format_args!("Cannot wait for events: {error}"));
                }
                Next::Leave => return,
            };
            again = matches!(&work, Some(Work::Begin(connection)) if connection.token == last);
            let Some(work) = work else { continue };
            if let Work::Begin(connection) = &work {
                last = connection.token;
            }
            // Serving may take long: queued transactions must not wait for it.
            self.backend.lead_later();
            self.workers.busy(self.now_ms());
            self.fibers.work(work);
            self.workers.done();
        }
    }

    /// Returns false if this worker must end. A worker leads a pending flush before it becomes spare: the
    /// others may already be waiting for events.
    fn stay(&self) -> bool {
        self.workers.stay(|| self.lead())
    }

    /// Leads a flush, counted as a request because it may take long.
    fn lead(&self) {
        self.workers.busy(self.now_ms());
        self.backend.lead();
        self.workers.done();
    }

    /// Waits for an event, for a worker without work. Leads first if transactions are queued without a
    /// leader.
    fn rest(&self, again: bool, is_alone: bool) -> WaitEnd<io::Result<Option<Event>>> {
        let event = match (self.backend.has_queued(), is_alone && !again) {
            (true, _) => self.gather_or_lead(again),
            (false, true) => self.next_events(),
            (false, false) => self.next_event(again),
        };
        match event {
            Ok(Some(Event { token: TOKEN_READY, .. })) => WaitEnd::Wakeup,
            other => WaitEnd::Other(other),
        }
    }

    /// Serves other clients before it leads a flush, because they may add transactions to it. With a single
    /// active client there are none to wait for.
    fn gather_or_lead(&self, again: bool) -> io::Result<Option<Event>> {
        if !again && let Some(event) = self.epoll.wait(Some(Duration::ZERO))? {
            return Ok(Some(event));
        }
        self.lead();
        self.next_event(again)
    }

    /// Returns whether workers may end: the server stops, and no statement waits.
    fn is_over(&self) -> bool {
        self.stopping.load(Ordering::Acquire) && self.fibers.asleep() == 0
    }

    /// Returns the connection of an event if the caller must serve it.
    fn taken(&self, event: Event) -> Option<Arc<Connection>> {
        let connection = self.find(event.token)?;
        if event.is_end {
            connection.note_end();
        }
        connection.take().then_some(connection)
    }

    /// Waits for events while all other workers are busy. Takes several at once to save system calls.
    fn next_events(&self) -> io::Result<Option<Event>> {
        let mut more = [const { None }; EVENTS_MAX];
        let mut count = 0;
        let first = self.epoll.wait_some::<EVENTS_MAX>(None, |event| {
            match event.token {
                TOKEN_STOP => {}
                // Leave it to the next idle worker.
                TOKEN_READY => self.ready.wakeup().notify(),
                _ => {
                    more[count] = self.taken(event);
                    count += usize::from(more[count].is_some());
                }
            }
        });
        if count > 0 {
            self.ready.push_within(more.into_iter().flatten().map(Work::Begin));
        }
        first
    }

    /// Waits for an event. A worker that serves the same client repeatedly spins before it sleeps, because
    /// the client often sends its next request sooner than a sleeping thread wakes. With many clients
    /// spinning wastes the processor. The worker yields between two polls, because the client may need this
    /// processor; if a yield takes long, other threads need it and spinning stops for a while.
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

    /// Serves a connection. A panic ends that connection only.
    pub fn serve(&self, connection: &Arc<Connection>, scratch: &mut [u8]) {
        if catch_unwind(AssertUnwindSafe(|| connection.serve(scratch))).is_err() {
            self.log.error(format_args!(
                "Connection {} was closed: its statement hit a bug in the server (see the message of the panic)",
                connection.id
            ));
            connection.abandon();
            // The connection may have ordered a transaction without leading its flush.
            self.backend.lead();
        }
    }
}
