//! A connection's socket, bare or under TLS, that is read and written alike.
//!
//! Under TLS an event tells of records, not of what is in them: whoever waits for events reads on while
//! [`Socket::has_more`].

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use cohort_tls::{Connector, TlsSettings, TlsStream};
use rustix::event::{PollFd, PollFlags, poll};

pub struct Socket {
    file: File,
    tls: Option<Box<TlsStream>>,
    has_more: bool,
}

impl Socket {
    pub fn new(file: File) -> Socket {
        Socket { file, tls: None, has_more: false }
    }

    /// Everything goes through TLS from now on. Any certificate does: the server is one that was started for
    /// the measurement.
    pub fn encrypt(&mut self) -> io::Result<()> {
        let connector = Connector::new(&TlsSettings::default(), false).map_err(io::Error::other)?;
        let stream = connector.connect("localhost", Vec::new()).map_err(io::Error::other)?;
        self.tls = Some(Box::new(stream));
        Ok(())
    }

    /// Whether something may be left of what has come that no event will tell of.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// The bare socket.
    pub fn into_file(self) -> File {
        assert!(self.tls.is_none(), "only bare sockets are handed on");
        self.file
    }
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.has_more = false;
        let Some(tls) = &mut self.tls else { return self.file.read(out) };
        let received = tls.read(&mut &self.file, out)?;
        self.has_more = !received.is_all && received.bytes > 0;
        Ok(received.bytes)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.file.write(bytes) };
        loop {
            match tls.write(&mut &self.file, bytes)? {
                // No room, which a request alone on its connection meets hardly ever.
                0 if !bytes.is_empty() => {
                    poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], None)?;
                }
                count => return Ok(count),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
