//! Load driver: clients that repeat a workload without pause, on as few threads as possible.
//!
//! The load shares the processor with the server that it measures, so it must be cheap: one thread drives all
//! its clients through epoll. A thread with a single client simply blocks in `read`. Replies are skipped, not
//! decoded.
//!
//! Phases: *warm* (nothing is counted), *measure*, *stop* (a client that ends its transaction does not start
//! another; the threads end with the last one). The calling thread advances the phase. The driving threads
//! check it at each reply.
//!
//! On failure: deadlocks and lock wait timeouts are errors that a user would retry, so the client rolls back,
//! starts the transaction again and counts the retry. Any other error, a lost connection or a missing reply
//! ends the whole load with a [`Failure`].

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cohort_base::{Histogram, HistogramSnapshot};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{Errno, ioctl_fionbio};

use crate::connection::{self, ANSWER_TIMEOUT, Address, Connection, ConnectionError};
use crate::dialect::Replies;
use crate::interrupt;
use crate::socket::Socket;
use crate::wire::Reply;
use crate::workload::{Client, Plan, Protocol, Scale, Workload};

/// Maximum number of events of one call.
const EVENTS_MAX: usize = 256;
/// Time between two checks whether the run has failed.
const TICK_OF_EPOLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

const ER_LOCK_WAIT_TIMEOUT: &str = "1205";
const ER_LOCK_DEADLOCK: &str = "1213";
const ER_CHECKREAD: &str = "1020";
/// PostgreSQL's code for deadlocks.
const DEADLOCK_DETECTED: &str = "40P01";
/// Occurs if two clients delete and reinsert the same row: under PostgreSQL's READ COMMITTED the second
/// client finds nothing to delete, and then the row exists.
const UNIQUE_VIOLATION: &str = "23505";

/// The load to run.
#[derive(Clone)]
pub struct Load {
    pub address: Address,
    pub schema: String,
    pub workload: &'static Workload,
    pub protocol: Protocol,
    pub clients: usize,
    pub threads: usize,
    pub scale: Scale,
    pub warm: Duration,
    pub measure: Duration,
}

/// Result of a load.
pub struct Outcome {
    /// One entry per transaction: nanoseconds from its first request to its last reply, including retries.
    pub latencies: HistogramSnapshot,
    pub retries: u64,
    pub seconds: f64,
}

/// Message that explains why a load failed.
pub type Failure = String;

/// Events that the caller is notified of while the load runs.
pub enum LoadEvent {
    MeasureBegins,
    /// Reported every half second of the measurement, with the number of transactions so far.
    Tick(u64),
    MeasureEnds,
}

const WARM: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;
const TICK: Duration = Duration::from_millis(500);

struct Shared {
    phase: AtomicU8,
    /// Transactions of the measurement so far, for live figures.
    done: AtomicU64,
    failed: AtomicU8,
}

impl Shared {
    fn phase(&self) -> u8 {
        self.phase.load(Ordering::Relaxed)
    }
}

/// Runs a load. Calls `watch` on the calling thread.
pub fn run(load: &Load, mut watch: impl FnMut(LoadEvent)) -> Result<Outcome, Failure> {
    let plan = Plan::new(load.workload, load.scale, load.protocol, load.address.dialect());
    let threads = load.threads.clamp(1, load.clients.max(1));
    let mut shares: Vec<Vec<Driven>> = (0..threads).map(|_| Vec::new()).collect();
    for number in 0..load.clients {
        let driven = connect(load, &plan, number as u64)
            .map_err(|error| format!("client {} of {}: {error}", number + 1, load.clients))?;
        shares[number % threads].push(driven);
    }
    let shared = Shared { phase: AtomicU8::new(WARM), done: AtomicU64::new(0), failed: AtomicU8::new(0) };
    thread::scope(|scope| {
        let (shared, plan) = (&shared, &plan);
        let drivers: Vec<_> =
            shares.into_iter().map(|share| scope.spawn(move || drive(share, plan, shared))).collect();
        let seconds = lead(load, shared, &mut watch);
        let mut outcome = Outcome { latencies: HistogramSnapshot::default(), retries: 0, seconds };
        for driver in drivers {
            let tally = driver.join().expect("a driving thread does not panic")?;
            outcome.latencies.merge(&tally.latencies.snapshot());
            outcome.retries += tally.retries;
        }
        Ok(outcome)
    })
}

/// Advances the load through its phases. Returns the duration of the measurement in seconds.
fn lead(load: &Load, shared: &Shared, watch: &mut impl FnMut(LoadEvent)) -> f64 {
    let sleep = |until: Instant| {
        while shared.failed.load(Ordering::Relaxed) == 0 && !interrupt::is_requested() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(Duration::from_millis(50)));
        }
    };
    sleep(Instant::now() + load.warm);
    watch(LoadEvent::MeasureBegins);
    let began = Instant::now();
    shared.phase.store(MEASURE, Ordering::Relaxed);
    let end = began + load.measure;
    let mut tick = began + TICK;
    while tick < end && shared.failed.load(Ordering::Relaxed) == 0 && !interrupt::is_requested() {
        sleep(tick);
        watch(LoadEvent::Tick(shared.done.load(Ordering::Relaxed)));
        tick += TICK;
    }
    sleep(end);
    let seconds = began.elapsed().as_secs_f64();
    shared.phase.store(STOP, Ordering::Relaxed);
    watch(LoadEvent::MeasureEnds);
    seconds
}

#[derive(Default)]
struct Tally {
    latencies: Histogram,
    retries: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Step(usize),
    /// Rolls back a transaction that must be retried.
    RollingBack,
    Idle,
}

/// A client and its socket.
struct Driven {
    socket: Socket,
    client: Client,
    replies: Replies,
    input: Vec<u8>,
    output: Vec<u8>,
    doing: Doing,
    began: Instant,
    is_transaction: bool,
}

fn connect(load: &Load, plan: &Plan, seed: u64) -> Result<Driven, ConnectionError> {
    let mut connection = Connection::open(&load.address, &load.schema)?;
    let mut numbers = Vec::new();
    if plan.protocol == Protocol::Prepared {
        for sql in load.workload.statements(load.scale, plan.dialect) {
            numbers.push(connection.prepare(&sql)?);
        }
    }
    Ok(Driven {
        socket: connection.into_socket(),
        client: Client::new(seed, numbers),
        replies: Replies::new(plan.dialect),
        input: Vec::with_capacity(4096),
        output: Vec::with_capacity(1024),
        doing: Doing::Idle,
        began: Instant::now(),
        is_transaction: load.workload.is_transaction(),
    })
}

fn drive(mut share: Vec<Driven>, plan: &Plan, shared: &Shared) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let result = match share.as_mut_slice() {
        [lone] => drive_one(lone, plan, shared, &mut tally),
        many => drive_many(many, plan, shared, &mut tally),
    };
    if result.is_err() {
        shared.failed.store(1, Ordering::Relaxed);
    }
    result.map(|()| tally)
}

/// Drives a single client. It blocks in `read`, which saves a system call for each reply.
fn drive_one(driven: &mut Driven, plan: &Plan, shared: &Shared, tally: &mut Tally) -> Result<(), Failure> {
    let mut buffer = vec![0; 65536];
    driven.begin(plan)?;
    while driven.doing != Doing::Idle {
        let bytes = connection::read(&mut driven.socket, &mut buffer).map_err(lost)?;
        driven.take(&buffer[..bytes], plan, shared, tally)?;
        if shared.failed.load(Ordering::Relaxed) != 0 {
            return Ok(());
        }
    }
    Ok(())
}

fn drive_many(share: &mut [Driven], plan: &Plan, shared: &Shared, tally: &mut Tally) -> Result<(), Failure> {
    let gone = |error: Errno| lost(error.into());
    let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(gone)?;
    for (index, driven) in share.iter_mut().enumerate() {
        ioctl_fionbio(&driven.socket, true).map_err(gone)?;
        // Level-triggered: reported as long as there is input.
        let token = EventData::new_u64(index as u64);
        epoll::add(&epoll, &driven.socket, token, EventFlags::IN).map_err(gone)?;
        driven.begin(plan)?;
    }
    let mut busy = share.len();
    let mut buffer = vec![0; 65536];
    let mut ready = Vec::with_capacity(EVENTS_MAX);
    let mut heard = Instant::now();
    while busy > 0 && shared.failed.load(Ordering::Relaxed) == 0 {
        ready.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut ready), Some(&TICK_OF_EPOLL)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(gone(error)),
        }
        if ready.is_empty() {
            if heard.elapsed() > ANSWER_TIMEOUT {
                return Err(format!("no answer for {} seconds", ANSWER_TIMEOUT.as_secs()));
            }
            continue;
        }
        heard = Instant::now();
        for event in &ready {
            let driven = &mut share[event.data.u64() as usize];
            let took = driven.take_all(&mut buffer, plan, shared, tally)?;
            busy -= usize::from(took && driven.doing == Doing::Idle);
        }
    }
    Ok(())
}

fn lost(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::WouldBlock {
        // This is how a blocking socket reports its timeout.
        return format!("no answer for {} seconds", ANSWER_TIMEOUT.as_secs());
    }
    format!("connection lost: {error}")
}

impl Driven {
    fn begin(&mut self, plan: &Plan) -> Result<(), Failure> {
        self.began = Instant::now();
        self.send_step(0, plan)
    }

    fn send_step(&mut self, step: usize, plan: &Plan) -> Result<(), Failure> {
        self.doing = Doing::Step(step);
        self.output.clear();
        self.client.request(plan, step, &mut self.output);
        // A request is far smaller than an empty socket buffer. With one request in flight it is always
        // written completely.
        self.socket.write_all(&self.output).map_err(lost)
    }

    /// Reads the input that an event reported. Returns false if there was none.
    fn take_all(
        &mut self,
        buffer: &mut [u8],
        plan: &Plan,
        shared: &Shared,
        tally: &mut Tally,
    ) -> Result<bool, Failure> {
        let mut took = false;
        loop {
            match self.socket.read(buffer) {
                Ok(bytes) => self.take(&buffer[..bytes], plan, shared, tally)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(took),
                Err(error) => return Err(lost(error)),
            }
            took = true;
            if !self.socket.has_more() {
                return Ok(took);
            }
        }
    }

    /// Processes bytes of a reply, and continues with the next step once it is complete.
    fn take(&mut self, bytes: &[u8], plan: &Plan, shared: &Shared, tally: &mut Tally) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Err("connection lost: closed by the server".to_owned());
        }
        // Most replies arrive in one piece and are parsed in place.
        let mut kept = std::mem::take(&mut self.input);
        let whole = if kept.is_empty() {
            bytes
        } else {
            kept.extend_from_slice(bytes);
            &kept
        };
        let mut rest = whole;
        let reply = self.replies.take(&mut rest);
        if reply.is_some() && !rest.is_empty() {
            return Err("unexpected answer: bytes after the reply".to_owned());
        }
        let rest = rest.to_vec();
        self.input = kept;
        self.input.clear();
        self.input.extend_from_slice(&rest);
        reply.map_or(Ok(()), |reply| self.answered(reply, plan, shared, tally))
    }

    fn answered(
        &mut self,
        reply: Reply,
        plan: &Plan,
        shared: &Shared,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let phase = shared.phase();
        match (self.doing, reply) {
            (Doing::Step(step), Reply::Done { .. }) if step + 1 < plan.steps() => {
                self.send_step(step + 1, plan)
            }
            (Doing::Step(_), Reply::Done { .. }) => {
                if phase == MEASURE {
                    tally.latencies.record_alone(self.began.elapsed().as_nanos() as u64, 1);
                    shared.done.fetch_add(1, Ordering::Relaxed);
                }
                self.next(phase, plan)
            }
            (Doing::RollingBack, Reply::Done { .. }) if phase == STOP => self.next(phase, plan),
            (Doing::RollingBack, Reply::Done { .. }) => self.send_step(0, plan),
            (Doing::Step(_), Reply::Error(error)) if is_retryable(&error.code) => {
                tally.retries += u64::from(phase == MEASURE);
                if !self.is_transaction {
                    return if phase == STOP { self.next(phase, plan) } else { self.send_step(0, plan) };
                }
                self.doing = Doing::RollingBack;
                self.output.clear();
                plan.dialect.query(&mut self.output, |out| out.extend_from_slice(b"ROLLBACK"));
                self.socket.write_all(&self.output).map_err(lost)
            }
            (_, Reply::Error(error)) => Err(error.to_string()),
            (Doing::Idle, Reply::Done { .. }) => Err("unexpected answer: nothing was asked".to_owned()),
        }
    }

    fn next(&mut self, phase: u8, plan: &Plan) -> Result<(), Failure> {
        if phase == STOP {
            self.doing = Doing::Idle;
            return Ok(());
        }
        self.begin(plan)
    }
}

/// Returns whether a user would retry the transaction after this error.
pub fn is_retryable(code: &str) -> bool {
    [ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK, ER_CHECKREAD, DEADLOCK_DETECTED, UNIQUE_VIOLATION]
        .contains(&code)
}
