//! Client of the system log, in the format of glibc's syslog(3): each line is one datagram, `<priority>Mmm dd
//! hh:mm:ss ident: text`.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use crate::error_log::local_time;

/// Socket of the system log.
const SOCKET: &str = "/dev/log";

/// Codes of the facilities of `server_audit_syslog_facility`, in the order of its values.
const FACILITIES: [u8; 19] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23];

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A sender. It never blocks: a datagram that the system does not accept at once is an error.
pub struct Syslog {
    path: PathBuf,
    priority: u8,
    ident: String,
    info: String,
    /// Opened by the first line, and again after an error, because the system log may have been restarted.
    socket: Option<UnixDatagram>,
}

impl Syslog {
    /// Creates a sender. Facility and priority are indexes of the settings' values. `info` precedes each
    /// line.
    pub fn new(facility: usize, priority: usize, ident: &str, info: &str) -> Syslog {
        Syslog {
            path: SOCKET.into(),
            priority: FACILITIES[facility.min(FACILITIES.len() - 1)] << 3 | (priority as u8 & 7),
            ident: ident.to_owned(),
            info: info.to_owned(),
            socket: None,
        }
    }

    pub fn send(&mut self, wall_us: u64, line: &[u8]) -> io::Result<()> {
        let time = local_time(wall_us);
        let head = format!(
            "<{}>{} {:2} {:02}:{:02}:{:02} {}: {} ",
            self.priority,
            MONTHS[time.tm_mon as usize % 12],
            time.tm_mday,
            time.tm_hour,
            time.tm_min,
            time.tm_sec,
            self.ident,
            self.info
        );
        let datagram = [head.as_bytes(), line].concat();
        if let Some(socket) = &self.socket
            && socket.send(&datagram).is_ok()
        {
            return Ok(());
        }
        self.socket = None;
        let socket = connected(&self.path)?;
        socket.send(&datagram)?;
        self.socket = Some(socket);
        Ok(())
    }
}

fn connected(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect(path)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_datagram_of_syslog() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let receive = |system: &UnixDatagram| {
            let mut bytes = [0; 500];
            let n = system.recv(&mut bytes).expect("a datagram");
            String::from_utf8_lossy(&bytes[..n]).into_owned()
        };
        let mut syslog = Syslog { path: path.clone(), ..Syslog::new(11, 4, "ident", "info") };
        assert!(syslog.send(0, b"lost").is_err(), "the socket does not exist");
        let system = UnixDatagram::bind(&path).expect("a socket");
        syslog.send(0, b"host,user,,1,2,QUERY,,'x',0").expect("the socket exists");
        let text = receive(&system);
        assert!(text.starts_with("<132>Jan  1 ") || text.starts_with("<132>Dec 31 "), "{text}");
        assert!(text.ends_with(" ident: info host,user,,1,2,QUERY,,'x',0"), "{text}");
        // The system log is restarted.
        drop(system);
        std::fs::remove_file(&path).expect("is there");
        assert!(syslog.send(0, b"lost").is_err());
        let system = UnixDatagram::bind(&path).expect("a socket");
        syslog.send(0, b"again").expect("the socket exists");
        assert!(receive(&system).ends_with("info again"));
        // The receiver does not read: the sender does not block.
        assert!((0..100_000).any(|_| syslog.send(0, b"x").is_err()));
    }
}
