//! The system calls: epoll, eventfd, poll.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// What to be told about a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// New input or the end of it, once per change.
    Input,
    /// The same, and room for output.
    InputAndOutput,
    /// Input, again and again until it is taken, to one thread at a time.
    Level,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub token: u64,
    /// The peer has sent its last byte, or the socket is broken. Told once.
    pub is_end: bool,
}

/// An epoll instance; many threads wait on it.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers; the result is checked.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Registers a descriptor; events carry `token`.
    pub fn add(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// Changes the interest; a condition that holds already is told again.
    pub fn change(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    /// Forgets a descriptor.
    pub fn remove(&self, fd: RawFd) {
        // A descriptor that is not registered is no error worth telling.
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::Input);
    }

    fn control(&self, op: i32, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        let input = libc::EPOLLIN | libc::EPOLLRDHUP;
        let events = match interest {
            Interest::Input => input | libc::EPOLLET,
            Interest::InputAndOutput => input | libc::EPOLLOUT | libc::EPOLLET,
            Interest::Level => libc::EPOLLIN,
        };
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: `event` lives through the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), op, fd, &mut event) }).map(drop)
    }

    /// Waits for one event; `None` after the timeout or a signal.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Option<Event>> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        let timeout_ms = timeout.map_or(-1, |t| t.as_millis().min(i32::MAX as u128) as i32);
        // SAFETY: `event` has room for the one event that is asked for.
        match check(unsafe { libc::epoll_wait(self.0.as_raw_fd(), &mut event, 1, timeout_ms) }) {
            Ok(0) => Ok(None),
            Ok(_) => {
                let end = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
                Ok(Some(Event { token: event.u64, is_end: event.events & end != 0 }))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A counter that epoll watches.
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: no pointers; the result is checked.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(EventFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Wakes one waiter, or all if it is watched by level and never cleared.
    pub fn notify(&self) {
        let one: u64 = 1;
        // SAFETY: eight bytes from a live variable. A full counter means that the waiter is awake anyway.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Blocks until a socket takes output; false after the timeout.
pub(crate) fn wait_writable(fd: RawFd, timeout: Duration) -> io::Result<bool> {
    wait_for(fd, libc::POLLOUT, timeout)
}

/// Blocks until one of the descriptors has input.
pub(crate) fn wait_readable(fds: &[RawFd]) -> io::Result<Vec<bool>> {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 }).collect();
    // SAFETY: the pointer and length are those of a live vector.
    match check(unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) }) {
        Ok(_) => Ok(polled.iter().map(|p| p.revents != 0).collect()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(vec![false; fds.len()]),
        Err(error) => Err(error),
    }
}

/// A descriptor that [`poll`] looks at, and what it found.
pub(crate) struct Polled(libc::pollfd);

impl Polled {
    /// Waits for input, or the end of it.
    pub fn input(fd: RawFd) -> Polled {
        Polled(libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
    }

    /// Waits for room for output.
    pub fn output(fd: RawFd) -> Polled {
        Polled(libc::pollfd { fd, events: libc::POLLOUT, revents: 0 })
    }

    /// Whether it came, or an error.
    pub fn is_ready(&self) -> bool {
        self.0.revents != 0
    }
}

/// Blocks until one of the descriptors is ready, the time is up, or a signal came.
pub(crate) fn poll(all: &mut [Polled], timeout: Option<Duration>) -> io::Result<()> {
    // Rounded up, so that at return the time is really up.
    let timeout_ms = timeout.map_or(-1, |t| t.as_millis().saturating_add(1).min(i32::MAX as u128) as i32);
    let mut polled: Vec<libc::pollfd> = all.iter().map(|one| one.0).collect();
    // SAFETY: the pointer and length are those of a live vector.
    match check(unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout_ms) }) {
        Ok(_) => all.iter_mut().zip(polled).for_each(|(one, found)| one.0.revents = found.revents),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            all.iter_mut().for_each(|one| one.0.revents = 0);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn wait_for(fd: RawFd, events: libc::c_short, timeout: Duration) -> io::Result<bool> {
    let mut polled = libc::pollfd { fd, events, revents: 0 };
    let timeout_ms = timeout.as_millis().min(i32::MAX as u128) as i32;
    // SAFETY: one live entry.
    match check(unsafe { libc::poll(&mut polled, 1, timeout_ms) }) {
        Ok(n) => Ok(n > 0),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
