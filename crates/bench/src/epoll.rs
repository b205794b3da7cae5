//! Epoll, level-triggered, for reading only.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

const EVENTS_MAX: usize = 256;

pub struct Epoll {
    fd: OwnedFd,
}

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else has.
        Ok(Epoll { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Reports `token` while there is something to read.
    pub fn add(&self, socket: &impl AsRawFd, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: both descriptors are open, the event lives through the call.
        let result = unsafe {
            libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, socket.as_raw_fd(), &mut event)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The tokens that are ready; none when the time is over.
    pub fn wait(&self, ready: &mut Vec<u64>, timeout: Duration) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        ready.clear();
        // SAFETY: the array has room for as many events as are asked for.
        let found = unsafe {
            libc::epoll_wait(
                self.fd.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS_MAX as i32,
                timeout.as_millis() as i32,
            )
        };
        if found < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        ready.extend(events[..found as usize].iter().map(|event| event.u64));
        Ok(())
    }
}

pub fn set_nonblocking(socket: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: reads the flags of an open descriptor.
    let flags = unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_GETFL) };
    // SAFETY: sets the flags of an open descriptor.
    if flags < 0 || unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
