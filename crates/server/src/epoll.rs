//! Waiting for file descriptors: epoll, eventfd and poll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::ready::WakeupEvent;

/// The kind of events to report for a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// New input or its end, once per change.
    Input,
    /// New input or its end, and space for output, once per change.
    InputAndOutput,
    /// Input, repeatedly until it is read, to one thread at a time.
    Level,
}

impl Interest {
    fn flags(self) -> EventFlags {
        let input = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        match self {
            Interest::Input => input,
            Interest::InputAndOutput => input | EventFlags::OUT,
            Interest::Level => EventFlags::IN,
        }
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub token: u64,
    /// The peer has sent its last byte, or the socket is broken. Reported once.
    pub is_end: bool,
}

/// An epoll instance on which many threads wait.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        Ok(Epoll(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Registers a descriptor; events carry `token`.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.0, fd, EventData::new_u64(token), interest.flags())?)
    }

    /// Changes the interest. A condition that already holds is reported again.
    pub fn change(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.0, fd, EventData::new_u64(token), interest.flags())?)
    }

    /// Unregisters a descriptor.
    pub fn remove(&self, fd: impl AsFd) {
        // It is no error if the descriptor is not registered.
        let _ = epoll::delete(&self.0, fd);
    }

    /// Waits for one event. Returns `None` after the timeout or a signal.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Option<Event>> {
        self.wait_some::<1>(timeout, |_| ())
    }

    /// Waits for up to `N` events. Returns the first one and passes the others to `more`.
    pub fn wait_some<const N: usize>(
        &self,
        timeout: Option<Duration>,
        more: impl FnMut(Event),
    ) -> io::Result<Option<Event>> {
        let nothing = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [nothing; N];
        let found = match epoll::wait(&self.0, &mut events, timeout.map(timespec).as_ref()) {
            Err(Errno::INTR) => 0,
            found => found?,
        };
        let mut found = events[..found].iter().map(|&epoll::Event { flags, data }| {
            let end = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            Event { token: data.u64(), is_end: flags.intersects(end) }
        });
        let first = found.next();
        found.for_each(more);
        Ok(first)
    }
}

/// An eventfd: a counter that epoll watches.
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    pub fn new() -> io::Result<EventFd> {
        Ok(EventFd(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes one waiter; or all waiters if it is level-triggered and never cleared.
    pub fn notify(&self) {
        // If the counter is full, the waiter is awake anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl WakeupEvent for EventFd {
    fn notify(&self) {
        EventFd::notify(self);
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Blocks until one of the descriptors has input, the timeout expires, or a signal arrives. Returns for each
/// descriptor whether it is ready or broken.
pub(crate) fn poll(all: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        all.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    match rustix::event::poll(&mut polled, timeout.map(timespec).as_ref()) {
        Ok(_) => Ok(polled.iter().map(|one| !one.revents().is_empty()).collect()),
        Err(Errno::INTR) => Ok(vec![false; all.len()]),
        Err(error) => Err(error.into()),
    }
}

/// Blocks until a socket accepts output. Returns false after the timeout.
pub(crate) fn wait_writable(fd: impl AsFd, timeout: Duration) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::OUT)];
    match rustix::event::poll(&mut polled, Some(&timespec(timeout))) {
        Ok(ready) => Ok(ready > 0),
        // The caller tries to send and calls again if it must.
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Blocks until a socket has input or its end was reached. Returns false after the timeout.
pub(crate) fn wait_readable(fd: impl AsFd, timeout: Duration) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
    match rustix::event::poll(&mut polled, Some(&timespec(timeout))) {
        Ok(ready) => Ok(ready > 0),
        // The caller tries to read and calls again if it must.
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
