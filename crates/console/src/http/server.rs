//! The loop: accepts connections, lets ready ones go on, sends the answers of the worker thread.

use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_tls::TlsStream;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;

use super::connection::{Connection, Peer, Progress};
use super::request::Request;
use super::response::Response;

/// Pause after a failed accept; most likely the process is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Requests of a connection that are served without a look at the other connections.
const REQUESTS_MAX: usize = 16;
/// Connections accepted at a time.
const ACCEPTED_MAX: usize = 64;

/// The outcome of a request.
pub enum Outcome {
    Done(Response),
    /// The worker thread answers through [`Answers::put`].
    Later,
}

/// Answers of the worker thread, and the signal to stop.
pub struct Answers {
    event: OwnedFd,
    held: Mutex<(Vec<(u64, Response)>, bool)>,
}

impl Answers {
    pub fn new() -> io::Result<Answers> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Answers { event, held: Mutex::default() })
    }

    /// Answers the request of a connection. An answer for one that was closed is dropped.
    pub fn put(&self, connection: u64, response: Response) {
        self.held.lock().0.push((connection, response));
        self.wake();
    }

    /// Makes the loop end.
    pub fn stop(&self) {
        self.held.lock().1 = true;
        self.wake();
    }

    fn wake(&self) {
        // If the counter is full, the loop is awake anyway.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Returns the answers, and whether to stop.
    fn take(&self) -> (Vec<(u64, Response)>, bool) {
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        let mut held = self.held.lock();
        (std::mem::take(&mut held.0), held.1)
    }
}

/// The server, with the functions that serve its requests.
pub struct Server<'s> {
    pub listeners: &'s [TcpListener],
    pub answers: Arc<Answers>,
    /// Maximum number of connections that are served at the same time, and of those that are rejected.
    pub connections_max: usize,
    /// Begins TLS with the bytes that have arrived.
    pub accept_tls: &'s dyn Fn(Vec<u8>) -> Option<TlsStream>,
    /// Answers a request, or passes it on under the id of its connection.
    pub serve: &'s dyn Fn(Request, Peer, u64) -> Outcome,
}

impl Server<'_> {
    /// Serves requests until [`Answers::stop`].
    pub fn run(&self) -> io::Result<()> {
        // In the order of arrival.
        let mut served: Vec<Connection> = Vec::new();
        let mut rejected: Vec<Connection> = Vec::new();
        let mut last_id = 0;
        loop {
            let ready = self.poll(&served, &rejected)?;
            let (of_listeners, of_connections) = ready[1..].split_at(self.listeners.len());
            let (of_served, of_rejected) = of_connections.split_at(served.len());
            let mut moved: Vec<u64> = Vec::new();
            if ready[0] {
                let (answers, is_over) = self.answers.take();
                if is_over {
                    return Ok(());
                }
                for (id, response) in answers {
                    if let Some(connection) = served.iter_mut().find(|it| it.id == id) {
                        connection.answer(&response);
                        moved.push(id);
                    }
                }
            }
            let now = Instant::now();
            let mut each = of_served.iter();
            served.retain_mut(|it| {
                let is_ready = *each.next().unwrap_or(&false) || moved.contains(&it.id);
                now < it.deadline && (!is_ready || self.go_on(it))
            });
            let mut each = of_rejected.iter();
            rejected.retain_mut(|it| {
                let is_ready = *each.next().unwrap_or(&false);
                now < it.deadline && (!is_ready || self.go_on(it))
            });
            for (listener, _) in self.listeners.iter().zip(of_listeners).filter(|(_, is_ready)| **is_ready) {
                self.accept(listener, &mut served, &mut rejected, &mut last_id);
            }
        }
    }

    /// Returns for the answers, each listener and each connection whether it is ready.
    fn poll(&self, served: &[Connection], rejected: &[Connection]) -> io::Result<Vec<bool>> {
        let all = || served.iter().chain(rejected);
        let mut polled = vec![PollFd::new(&self.answers.event, PollFlags::IN)];
        polled.extend(self.listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
        for connection in all() {
            let (socket, input, output) = connection.polled();
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, input);
            flags.set(PollFlags::OUT, output);
            polled.push(PollFd::from_borrowed_fd(socket, flags));
        }
        let first = all().map(|connection| connection.deadline).min();
        let timeout = first.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(polled.iter().map(|one| !one.revents().is_empty()).collect()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a connection go on. Returns whether it stays open.
    fn go_on(&self, connection: &mut Connection) -> bool {
        // A client that sends more requests at once is closed.
        for _ in 0..REQUESTS_MAX {
            match connection.go_on(self.accept_tls) {
                Ok(Progress::Goes) => return true,
                Ok(Progress::Over) | Err(_) => return false,
                Ok(Progress::Request(request)) => {
                    match (self.serve)(*request, connection.peer(), connection.id) {
                        Outcome::Done(response) => connection.answer(&response),
                        Outcome::Later => return true,
                    }
                }
            }
        }
        false
    }

    fn accept(
        &self,
        listener: &TcpListener,
        served: &mut Vec<Connection>,
        rejected: &mut Vec<Connection>,
        last_id: &mut u64,
    ) {
        for _ in 0..ACCEPTED_MAX {
            let (socket, address) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {
                    return;
                }
                Err(_) => return std::thread::sleep(ACCEPT_PAUSE),
            };
            if socket.set_nonblocking(true).is_err() {
                continue;
            }
            if served.len() >= self.connections_max {
                let now = Instant::now();
                match served.iter().position(|it| it.is_dispensable(now)) {
                    Some(place) => _ = served.remove(place),
                    None if rejected.len() < self.connections_max => {
                        let mut connection = Connection::rejected(socket, address);
                        if self.go_on(&mut connection) {
                            rejected.push(connection);
                        }
                        continue;
                    }
                    None => continue,
                }
            }
            *last_id += 1;
            let mut connection = Connection::new(socket, address, *last_id);
            // The request has often arrived already.
            if self.go_on(&mut connection) {
                served.push(connection);
            }
        }
    }
}
