//! Notification of systemd about the state of the process (`Type=notify`), without its library.
//!
//! A message is one datagram to the socket named by `NOTIFY_SOCKET`: a path, or an abstract name after `@`.
//! Without the variable no messages are sent. The server does not depend on a message: if one is lost,
//! systemd runs into its timeout.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

/// Interval at which the timeout of a long operation is extended, and the length of each extension.
const EXTEND_EVERY: Duration = Duration::from_secs(10);
const EXTENSION: Duration = Duration::from_secs(60);

/// Sends notifications to the service manager. Clones share the socket's address.
#[derive(Clone)]
pub struct Notifier(Option<SocketAddr>);

impl Notifier {
    /// Creates a notifier for the service manager that started the process, if it expects notifications.
    pub fn from_environment() -> Notifier {
        Notifier(std::env::var_os("NOTIFY_SOCKET").and_then(address))
    }

    /// Reports that the server accepts connections.
    pub fn ready(&self) {
        self.send("READY=1\nSTATUS=Taking your SQL requests now...");
    }

    /// Reports that the server stops.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=Shutting down");
    }

    /// Starts to extend systemd's timeout for a long operation, until the returned guard is dropped.
    pub fn busy(&self, status: &'static str) -> io::Result<Busy> {
        let (end, ended) = channel::<()>();
        if self.0.is_some() {
            let own = self.clone();
            Builder::new().name("notify".into()).spawn(move || {
                loop {
                    own.send(&format!("EXTEND_TIMEOUT_USEC={}\nSTATUS={status}", EXTENSION.as_micros()));
                    match ended.recv_timeout(EXTEND_EVERY) {
                        Err(RecvTimeoutError::Timeout) => {}
                        Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
            })?;
        }
        Ok(Busy { _end: end })
    }

    fn send(&self, message: &str) {
        let Some(address) = &self.0 else { return };
        // A service manager that does not listen must not keep the server from serving.
        let _ = UnixDatagram::unbound()
            .and_then(|socket| socket.send_to_addr(message.as_bytes(), address).map(drop));
    }
}

/// Extends the service manager's timeout for as long as it lives.
pub struct Busy {
    _end: Sender<()>,
}

fn address(name: OsString) -> Option<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(&name).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_at_paths_and_abstract_names() {
        let scratch = tempfile::tempdir().expect("made");
        let path = scratch.path().join("notify");
        let name = format!("@cohort-test-{}", std::process::id());
        let bound = UnixDatagram::bind(&path).expect("bound");
        let abstract_name = address(name.clone().into()).expect("a name");
        let other = UnixDatagram::bind_addr(&abstract_name).expect("bound");
        for (socket, given) in [(bound, path.into_os_string()), (other, name.into())] {
            socket.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
            let notifier = Notifier(address(given));
            let mut buffer = [0; 200];
            let mut next = || {
                let n = socket.recv(&mut buffer).expect("a message");
                String::from_utf8_lossy(&buffer[..n]).into_owned()
            };
            let busy = notifier.busy("Recovering").expect("a thread");
            assert_eq!(next(), "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=Recovering");
            drop(busy);
            notifier.ready();
            assert!(next().starts_with("READY=1\n"));
            notifier.stopping();
            assert!(next().starts_with("STOPPING=1\n"));
        }
        assert!(address("relative".into()).is_none());
        Notifier(None).ready();
    }
}
