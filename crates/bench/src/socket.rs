//! Socket of a connection, plain or with TLS, with the same interface for both.
//!
//! With TLS an event reports records, not their contents: after an event, the caller must read for as long as
//! [`Socket::has_more`] returns true.

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

    /// Uses TLS from now on. Any certificate is accepted, because the server was started for the measurement.
    pub fn encrypt(&mut self) -> io::Result<()> {
        let connector = Connector::new(&TlsSettings::default(), false).map_err(io::Error::other)?;
        let stream = connector.connect("localhost", Vec::new()).map_err(io::Error::other)?;
        self.tls = Some(Box::new(stream));
        Ok(())
    }

    /// Returns whether input may be left that no event will report.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns the plain socket.
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
                // The socket is full, which is rare for a single request.
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
