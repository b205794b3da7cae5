//! Minimal HTTP/1.1 server for GET requests: only what a scraper and a browser need to fetch a page.
//!
//! One thread serves all connections through `poll`. A connection carries one request and is then closed.
//!
//! # Limits
//! | what | limit | when exceeded |
//! |---|---|---|
//! | concurrent connections | [`CONNECTIONS_MAX`] | the oldest is closed for the newest |
//! | a request with its headers | [`REQUEST_BYTES_MAX`] | status 431 |
//! | from accept to the end of the response | [`TIME_MAX`] | closed |
//!
//! Nothing that a client sends outlives its connection, and only the path is used, for a lookup.
//!
//! # States of a connection
//! ```text
//! Reading --whole request, or a bad one--> Writing --all sent--> Draining --end of input--> closed
//! ```
//! Draining reads what the client still sends: if the socket were closed with unread input, the kernel would
//! reset the connection and the client could lose the response.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::epoll::{Until, poll};

/// Maximum number of concurrent connections.
const CONNECTIONS_MAX: usize = 16;
/// Maximum size of request line and headers.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Maximum lifetime of a connection.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Pause after a failed accept; most likely the process is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Content for a path.
pub(super) struct Page {
    pub content_type: &'static str,
    pub body: String,
}

/// Serves requests until `stop` has input.
pub(super) fn serve(
    listeners: &[TcpListener],
    stop: BorrowedFd<'_>,
    find: &dyn Fn(&str) -> Option<Page>,
) -> io::Result<()> {
    // In the order of arrival.
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let first = connections.iter().map(|connection| connection.deadline).min();
        let ready = {
            let mut polled = vec![(stop, Until::Input)];
            polled.extend(connections.iter().map(Connection::polled));
            polled.extend(listeners.iter().map(|listener| (listener.as_fd(), Until::Input)));
            poll(&polled, first.map(|deadline| deadline.saturating_duration_since(Instant::now())))?
        };
        let mut ready = ready.into_iter();
        if ready.next() == Some(true) {
            return Ok(());
        }
        let now = Instant::now();
        connections.retain_mut(|connection| {
            let is_ready = ready.next().unwrap_or(false);
            now < connection.deadline
                && (!is_ready || connection.go_on(find).is_ok_and(|goes_on| goes_on == GoesOn::Yes))
        });
        for (listener, _) in listeners.iter().zip(ready).filter(|(_, is_ready)| *is_ready) {
            accept(listener, &mut connections);
        }
        // A scrape takes milliseconds, so the oldest connection is slow or silent.
        while connections.len() > CONNECTIONS_MAX {
            connections.remove(0);
        }
    }
}

fn accept(listener: &TcpListener, connections: &mut Vec<Connection>) {
    match listener.accept() {
        Ok((socket, _)) if socket.set_nonblocking(true).is_ok() => connections.push(Connection {
            socket,
            deadline: Instant::now() + TIME_MAX,
            state: State::Reading,
            bytes: Vec::new(),
        }),
        Ok(_) => {}
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {}
        Err(_) => std::thread::sleep(ACCEPT_PAUSE),
    }
}

enum State {
    Reading,
    /// Number of bytes sent.
    Writing(usize),
    Draining,
}

#[derive(PartialEq, Eq)]
enum GoesOn {
    Yes,
    /// The connection must be closed.
    No,
}

struct Connection {
    socket: TcpStream,
    deadline: Instant,
    state: State,
    /// The request, then the response.
    bytes: Vec<u8>,
}

impl Connection {
    fn polled(&self) -> (BorrowedFd<'_>, Until) {
        let until = match self.state {
            State::Writing(_) => Until::Output,
            State::Reading | State::Draining => Until::Input,
        };
        (self.socket.as_fd(), until)
    }

    /// Reads or writes as much as the socket allows without blocking.
    fn go_on(&mut self, find: &dyn Fn(&str) -> Option<Page>) -> io::Result<GoesOn> {
        if let State::Reading = self.state {
            let mut buffer = [0; 2048];
            match self.socket.read(&mut buffer) {
                Ok(0) => return Ok(GoesOn::No),
                Ok(n) => self.bytes.extend_from_slice(&buffer[..n]),
                Err(error) => return would_block(error),
            }
            match parse(&self.bytes) {
                Parsed::Incomplete => return Ok(GoesOn::Yes),
                parsed => self.bytes = answer(parsed, find),
            }
            self.state = State::Writing(0);
        }
        if let State::Writing(sent) = &mut self.state {
            match self.socket.write(&self.bytes[*sent..]) {
                Ok(n) => *sent += n,
                Err(error) => return would_block(error),
            }
            if *sent < self.bytes.len() {
                return Ok(GoesOn::Yes);
            }
            self.socket.shutdown(Shutdown::Write)?;
            self.state = State::Draining;
        }
        match self.socket.read(&mut [0; 2048]) {
            Ok(0) => Ok(GoesOn::No),
            Ok(_) => Ok(GoesOn::Yes),
            Err(error) => would_block(error),
        }
    }
}

fn would_block(error: io::Error) -> io::Result<GoesOn> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(GoesOn::Yes),
        _ => Err(error),
    }
}

/// Parsed state of a request.
#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    Incomplete,
    /// Refused with this status.
    Refused(&'static str),
    Get(String),
    /// GET without a response body.
    Head(String),
}

const BAD: Parsed = Parsed::Refused("400 Bad Request");

fn parse(bytes: &[u8]) -> Parsed {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return match bytes.len() {
            n if n >= REQUEST_BYTES_MAX => Parsed::Refused("431 Request Header Fields Too Large"),
            _ if is_hopeless(bytes) => BAD,
            _ => Parsed::Incomplete,
        };
    };
    if end > REQUEST_BYTES_MAX {
        return Parsed::Refused("431 Request Header Fields Too Large");
    }
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else { return BAD };
    let mut lines = head.split("\r\n");
    let line: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = line[..] else { return BAD };
    if !version.starts_with("HTTP/1.") {
        return Parsed::Refused("505 HTTP Version Not Supported");
    }
    if !["GET", "HEAD"].contains(&method) {
        return Parsed::Refused("405 Method Not Allowed");
    }
    for header in lines {
        match header.split_once(':') {
            Some((name, value)) if is_token(name) => {
                let has_body = name.eq_ignore_ascii_case("transfer-encoding")
                    || name.eq_ignore_ascii_case("content-length") && value.trim() != "0";
                if has_body {
                    return BAD;
                }
            }
            _ => return BAD,
        }
    }
    if !target.starts_with('/') || target.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return BAD;
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path).to_owned();
    if method == "GET" { Parsed::Get(path) } else { Parsed::Head(path) }
}

/// Returns whether the bytes cannot become a request because the client uses another protocol.
fn is_hopeless(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    line.iter().any(|byte| !byte.is_ascii_graphic() && *byte != b' ')
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
}

fn answer(parsed: Parsed, find: &dyn Fn(&str) -> Option<Page>) -> Vec<u8> {
    let found = |path: &str| match find(path) {
        Some(page) => ("200 OK", page),
        None => ("404 Not Found", plain("404 Not Found")),
    };
    let ((status, page), has_body) = match parsed {
        Parsed::Get(path) => (found(&path), true),
        Parsed::Head(path) => (found(&path), false),
        Parsed::Refused(status) => ((status, plain(status)), true),
        Parsed::Incomplete => unreachable!("an incomplete request is not answered"),
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let mut out = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}Connection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; connect-src 'self'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'\r\n\r\n",
        page.content_type,
        page.body.len()
    );
    if has_body {
        out.push_str(&page.body);
    }
    out.into_bytes()
}

fn plain(status: &str) -> Page {
    Page { content_type: "text/plain; charset=utf-8", body: format!("{status}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_scrapers_and_browsers() {
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n", Parsed::Get("/metrics".into())),
            ("GET /?a=b HTTP/1.0\r\n\r\n", Parsed::Get("/".into())),
            ("HEAD / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", Parsed::Head("/".into())),
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n", Parsed::Incomplete),
            ("", Parsed::Incomplete),
        ] {
            assert_eq!(parse(request.as_bytes()), expected, "{request}");
        }
    }

    #[test]
    fn malformed_requests_are_refused() {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(REQUEST_BYTES_MAX));
        for (request, status) in [
            ("POST / HTTP/1.1\r\n\r\n", "405"),
            ("GET / HTTP/2.0\r\n\r\n", "505"),
            ("GET /\r\n\r\n", "400"),
            ("GET  / HTTP/1.1\r\n\r\n", "400"),
            ("GET http://x/ HTTP/1.1\r\n\r\n", "400"),
            ("GET /\u{e9} HTTP/1.1\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\na: b\r\n folded: c\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "400"),
            ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
            ("\u{16}\u{3}\u{1}", "400"),
            (&long, "431"),
            (&format!("{long}\r\n"), "431"),
        ] {
            match parse(request.as_bytes()) {
                Parsed::Refused(refused) => assert!(refused.starts_with(status), "{request}: {refused}"),
                other => panic!("{request}: {other:?}"),
            }
        }
        assert!(matches!(parse(&[b'G', 0xff, 0xfe]), Parsed::Refused(_)));
    }

    #[test]
    fn an_answer_has_its_length_and_head_has_no_body() {
        let find =
            |path: &str| (path == "/a").then(|| Page { content_type: "text/plain", body: "abc".into() });
        let text = |parsed| String::from_utf8(answer(parsed, &find)).expect("text");
        let got = text(Parsed::Get("/a".into()));
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\nabc"), "{got}");
        let head = text(Parsed::Head("/a".into()));
        assert!(head.contains("Content-Length: 3\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(text(Parsed::Get("/b".into())).starts_with("HTTP/1.1 404 "));
        assert!(text(Parsed::Refused("405 Method Not Allowed")).contains("\r\nAllow: GET, HEAD\r\n"));
    }
}
