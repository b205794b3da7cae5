//! Model checks: the server's connection ownership, ready queue and worker pool under a scheduler that
//! chooses the interleaving.
//!
//! The three files are compiled here a second time, with the scheduler's locks and atomics in place of the
//! real ones ([`sync`]). In a schedule with a lost wakeup, every thread ends up asleep. The scheduler reports
//! that as a deadlock, together with the schedule that replays it. Each check runs a fixed number of random
//! schedules; `COHORT_MODEL_SCHEDULES` multiplies it.
//!
//! The *wakeup* (`WakeupEvent`) is the wakeup event of the ready queue.
//!
//! # Mutations that were detected
//! | mutation | check |
//! |---|---|
//! | a worker that handles the wakeup does not pass it on | `a_burst_of_work_wakes_a_worker_for_each` |
//! | a worker woken by another event counts the wakeup as received | `a_burst_of_work_wakes_a_worker_for_each` |
//! | `become_idle` counts the caller as idle after unlocking | `a_burst_of_work_wakes_a_worker_for_each` |
//! | a worker ignores the wakeup together with another event | `a_burst_of_work_wakes_a_worker_for_each` |
//! | `release` forgets an event that arrived meanwhile | `no_event_is_lost_and_no_connection_is_shared` |
//! | `take` forgets the event of a parked connection | `no_event_is_lost_and_no_connection_is_shared` |
//! | `unpark` hands out a running connection | `no_event_is_lost_and_no_connection_is_shared` |
//! | `mark_stalled` sets the bit without comparing | `a_worker_is_counted_once` |
//! | `end` clears the bit before it takes the lock | `a_worker_is_counted_once` |
//! | `done` does not count the worker as active again | `a_worker_is_counted_once` |
//! | no worker replaces a blocked worker | `blocked_workers_are_replaced_up_to_the_bound` |
//! | a spare worker is assigned but not woken | `connections_are_served` |

#[path = "../../src/ownership.rs"]
#[allow(dead_code)]
mod ownership;
mod poller;
#[path = "../../src/pool.rs"]
#[allow(dead_code)]
mod pool;
#[path = "../../src/ready.rs"]
#[allow(dead_code)]
mod ready;
mod states;
mod sync;

use std::sync::Arc;
use std::time::Duration;

use shuttle::rand::Rng;

use crate::ownership::{Events, Ownership};
use crate::poller::{PollEvent, Poller};
use crate::pool::{WorkerLimits, Workers};
use crate::ready::{Next, Ready, WaitEnd, WakeupEvent as _};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, thread};

/// Runs random schedules of a check.
fn check(schedules: usize, model: impl Fn() + Send + Sync + 'static) {
    let times =
        std::env::var("COHORT_MODEL_SCHEDULES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    shuttle::check_random(model, schedules * times);
}

fn coin() -> bool {
    shuttle::rand::thread_rng().gen_bool(0.5)
}

/// A counter; threads can wait until it reaches a number.
#[derive(Default)]
struct Tally(Mutex<usize>, Condvar);

impl Tally {
    fn add(&self) {
        *self.0.lock() += 1;
        self.1.notify_all();
    }

    fn wait_for(&self, wanted: usize) {
        let mut count = self.0.lock();
        while *count < wanted {
            self.1.wait(&mut count);
        }
    }
}

/// No piece of work ends before all have begun, so a lost wakeup is a deadlock.
#[test]
fn a_burst_of_work_wakes_a_worker_for_each() {
    const WORK: usize = 3;
    check(4000, || {
        let poller = Arc::new(Poller::default());
        let ready = Arc::new(Ready::new(poller::WakeupOf(Arc::clone(&poller))));
        let begun = Arc::new(Tally::default());
        let ended = Arc::new(Tally::default());
        let work = {
            let (ready, poller) = (Arc::clone(&ready), Arc::clone(&poller));
            let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
            move || {
                loop {
                    let more = |event| match event {
                        PollEvent::Connection(_) => ready.push_within([()].into_iter()),
                        PollEvent::Wakeup => ready.wakeup().notify(),
                        PollEvent::Stop => {}
                    };
                    let wait = |is_alone: bool| match poller.wait(is_alone.then_some(more)) {
                        PollEvent::Wakeup => WaitEnd::Wakeup,
                        other => WaitEnd::Other(other),
                    };
                    match ready.next(|| true, wait) {
                        Next::Work(()) | Next::Event(PollEvent::Connection(_)) => {
                            begun.add();
                            begun.wait_for(WORK + 2);
                            ended.add();
                        }
                        Next::Event(_) | Next::Leave => return,
                        Next::Nothing => {}
                    }
                }
            }
        };
        let workers: Vec<_> = (0..WORK + 2).map(|_| thread::spawn(work.clone())).collect();
        // Work from two threads, and other events that may take the workers for which the wakeup event was
        // meant.
        let (own_ready, own_poller) = (Arc::clone(&ready), Arc::clone(&poller));
        let other = thread::spawn(move || {
            own_ready.push(());
            own_poller.report(PollEvent::Connection(0));
            own_poller.report(PollEvent::Connection(1));
        });
        (1..WORK).for_each(|_| ready.push(()));
        ended.wait_for(WORK + 2);
        poller.stop();
        other.join().expect("no panic");
        workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
    });
}

/// A connection: a socket with input, and a flag that detects two threads using it.
struct Connection {
    owner: Ownership,
    input: AtomicUsize,
    touched: AtomicBool,
    answered: AtomicUsize,
}

impl Connection {
    fn new() -> Connection {
        let owner = Ownership::new();
        owner.release();
        Connection {
            owner,
            input: AtomicUsize::new(0),
            touched: AtomicBool::new(false),
            answered: AtomicUsize::new(0),
        }
    }

    /// Does the owner's work: reads until there is no input. Returns true if the reply is held and the
    /// connection parked.
    fn serve(&self, mut holds: impl FnMut() -> bool) -> bool {
        loop {
            assert!(!self.touched.swap(true, Ordering::SeqCst), "two threads own a connection");
            let requests = self.input.swap(0, Ordering::SeqCst);
            self.answered.fetch_add(requests, Ordering::SeqCst);
            self.touched.store(false, Ordering::SeqCst);
            if requests > 0 && holds() {
                self.owner.park();
                return true;
            }
            if requests == 0 && self.owner.release() == Events::None {
                return false;
            }
        }
    }
}

/// Two threads that receive events, a client that sends, and a publisher.
#[test]
fn no_event_is_lost_and_no_connection_is_shared() {
    const REQUESTS: usize = 3;
    check(6000, || {
        let connection = Arc::new(Connection::new());
        let parked = Arc::new(Tally::default());
        let serve = {
            let (connection, parked) = (Arc::clone(&connection), Arc::clone(&parked));
            move || {
                if connection.serve(coin) {
                    parked.add();
                }
            }
        };
        let publish = {
            let (connection, serve) = (Arc::clone(&connection), serve.clone());
            move || {
                // At least as often as the connection can be parked. Most calls find it running or idle, and
                // must change nothing.
                for _ in 0..REQUESTS + 2 {
                    // Without an event there is no input, so no thread reads.
                    match connection.owner.unpark() {
                        Some(Events::Missed) => serve(),
                        Some(Events::None) if connection.owner.release() == Events::Missed => serve(),
                        _ => {}
                    }
                    thread::yield_now();
                }
            }
        };
        let events: Vec<_> = (0..REQUESTS)
            .map(|_| {
                let (connection, serve) = (Arc::clone(&connection), serve.clone());
                thread::spawn(move || {
                    connection.input.fetch_add(1, Ordering::SeqCst);
                    if connection.owner.take() {
                        serve();
                    }
                })
            })
            .collect();
        let publisher = thread::spawn(publish.clone());
        events.into_iter().for_each(|event| event.join().expect("no panic"));
        publisher.join().expect("no panic");
        publish();
        assert_eq!(connection.answered.load(Ordering::SeqCst), REQUESTS, "a request was forgotten");
        assert!(connection.owner.is_idle());
        connection.owner.close();
        assert!(!connection.owner.take() && connection.owner.unpark().is_none(), "closed is final");
    });
}

/// Workers serve, block and stall concurrently with a housekeeper that counts them as inactive. In the end
/// all workers are active, and after they have ended none is.
#[test]
fn a_worker_is_counted_once() {
    const WORKERS: usize = 2;
    check(4000, || {
        let limits =
            WorkerLimits { active: WORKERS, total_max: WORKERS, stack_bytes: 1 << 16, idle: Duration::ZERO };
        let workers = Arc::new(Workers::new(limits));
        let clock = Arc::new(AtomicU64::new(1));
        let (served, ended) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
        let main = {
            let (workers, clock) = (Arc::downgrade(&workers), Arc::clone(&clock));
            let (served, ended) = (Arc::clone(&served), Arc::clone(&ended));
            move || {
                let workers = workers.upgrade().expect("they are joined before");
                for _ in 0..2 {
                    workers.busy(clock.fetch_add(1, Ordering::SeqCst));
                    if coin() {
                        workers.begin();
                        workers.end();
                    }
                    workers.done();
                }
                served.add();
                // Until all have read the count.
                ended.wait_for(1);
            }
        };
        workers.start(Arc::new(main)).expect("threads");
        for _ in 0..3 {
            workers.replace_stalled(clock.fetch_add(5, Ordering::SeqCst), 1);
        }
        served.wait_for(WORKERS);
        assert_eq!(workers.active(), WORKERS);
        ended.add();
        workers.stop();
        assert_eq!((workers.active(), workers.total()), (0, 0));
    });
}

/// All parts together: connections whose clients send concurrently, requests that block their worker until
/// all others are answered, replies that are held and then released by a publisher, and a housekeeper.
#[test]
fn connections_are_served() {
    check(1500, || {
        let model = Arc::new(Model::new());
        let main = {
            let model = Arc::downgrade(&model);
            move || {
                if let Some(model) = model.upgrade() {
                    model.work();
                }
            }
        };
        model.workers.start(Arc::new(main)).expect("threads");
        let own = Arc::clone(&model);
        let publisher = thread::spawn(move || own.publish());
        let own = Arc::clone(&model);
        let housekeeper = thread::spawn(move || own.keep_house());
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let model = Arc::clone(&model);
                thread::spawn(move || {
                    for round in 1..=ROUNDS {
                        model.connections[client].input.fetch_add(1, Ordering::SeqCst);
                        model.poller.report(PollEvent::Connection(client));
                        model.answered.wait_for(CLIENTS * round);
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().expect("no panic"));
        model.stopping.store(true, Ordering::SeqCst);
        model.poller.stop();
        drop(model.held.0.lock());
        model.held.1.notify_all();
        model.workers.stop();
        publisher.join().expect("no panic");
        housekeeper.join().expect("no panic");
        assert_eq!((model.workers.active(), model.workers.total()), (0, 0));
    });
}

const CLIENTS: usize = 3;
/// Each client sends one request per round; a round starts when all requests of the previous one are
/// answered. After the first round there is one worker too many.
const ROUNDS: usize = 2;

struct Model {
    poller: Arc<Poller>,
    ready: Ready<usize, poller::WakeupOf>,
    workers: Workers,
    connections: Vec<Connection>,
    /// Connections whose reply waits for the publisher.
    held: (Mutex<Vec<usize>>, Condvar),
    answered: Tally,
    /// Counted by the first client.
    rounds: AtomicUsize,
    stopping: AtomicBool,
}

impl Model {
    fn new() -> Model {
        let poller = Arc::new(Poller::default());
        Model {
            ready: Ready::new(poller::WakeupOf(Arc::clone(&poller))),
            poller,
            workers: Workers::new(WorkerLimits {
                active: 2,
                total_max: 4,
                stack_bytes: 1 << 16,
                idle: Duration::ZERO,
            }),
            connections: (0..CLIENTS).map(|_| Connection::new()).collect(),
            held: Default::default(),
            answered: Tally::default(),
            rounds: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    /// Corresponds to `Shared::work` of the server.
    fn work(&self) {
        while !self.stopping.load(Ordering::SeqCst) {
            let more = |event| match event {
                PollEvent::Connection(client) if self.connections[client].owner.take() => {
                    self.ready.push_within([client].into_iter());
                }
                PollEvent::Wakeup => self.ready.wakeup().notify(),
                PollEvent::Connection(_) | PollEvent::Stop => {}
            };
            let wait = |is_alone: bool| match self.poller.wait(is_alone.then_some(more)) {
                PollEvent::Wakeup => WaitEnd::Wakeup,
                other => WaitEnd::Other(other),
            };
            let client = match self.ready.next(|| self.workers.stay(|| ()), wait) {
                Next::Work(client) => client,
                Next::Event(PollEvent::Connection(client)) if self.connections[client].owner.take() => client,
                Next::Event(_) | Next::Nothing => continue,
                Next::Leave => return,
            };
            self.workers.busy(1);
            self.serve(client);
            self.workers.done();
        }
    }

    fn serve(&self, client: usize) {
        let holds = || {
            // The first client's request can end only after all others of its round are answered.
            if client == 0 {
                self.workers.begin();
                let rounds = self.rounds.fetch_add(1, Ordering::SeqCst);
                self.answered.wait_for(CLIENTS * rounds + CLIENTS - 1);
                self.workers.end();
                self.answered.add();
                return false;
            }
            true
        };
        if self.connections[client].serve(holds) {
            self.held.0.lock().push(client);
            self.held.1.notify_one();
        }
    }

    /// Publishes replies. Released replies need a worker, as does new input.
    fn publish(&self) {
        while !self.stopping.load(Ordering::SeqCst) {
            let held = {
                let mut held = self.held.0.lock();
                if held.is_empty() && !self.stopping.load(Ordering::SeqCst) {
                    self.held.1.wait_for(&mut held, Duration::ZERO);
                }
                std::mem::take(&mut *held)
            };
            for client in held {
                if self.connections[client].owner.unpark().is_some() {
                    self.ready.push(client);
                }
                self.answered.add();
            }
        }
    }

    /// Corresponds to the housekeeping thread.
    fn keep_house(&self) {
        while !self.stopping.load(Ordering::SeqCst) {
            self.workers.replace_stalled(10, 5);
            if self.workers.is_short() {
                self.workers.top_up();
            }
            thread::yield_now();
        }
    }
}
