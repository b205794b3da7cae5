//! A client of the console.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use cohort_tls::{Connector, TlsSettings, TlsStream};
use serde_json::Value;

/// An answer: status, headers, body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn of(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:.200}"));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {:.300}", self.body))
    }
}

pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(40))).expect("set");
    stream
}

/// Sends a request in plain text, and reads until the server closes.
pub fn exchange(port: u16, request: &str) -> Answer {
    let mut stream = connect(port);
    stream.write_all(request.as_bytes()).expect("sent");
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("an answer");
    Answer::of(&String::from_utf8_lossy(&text))
}

pub fn get(port: u16, path: &str, headers: &str) -> Answer {
    exchange(port, &format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n{headers}\r\n"))
}

pub fn post_text(port: u16, path: &str, scheme: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: {scheme}://localhost:{port}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

pub fn post(port: u16, path: &str, headers: &str, body: &str) -> Answer {
    exchange(port, &post_text(port, path, "http", headers, body))
}

/// Sends a request over TLS, without a look at the certificate.
pub fn exchange_tls(port: u16, request: &str) -> Answer {
    let connector = Connector::new(&TlsSettings::default(), false).expect("a context");
    let mut tls: TlsStream = connector.connect("localhost", Vec::new()).expect("a session");
    let mut socket = connect(port);
    // The stream works like a non-blocking socket; here each call blocks.
    let (mut sent, mut text, mut buffer) = (0, Vec::new(), vec![0; 32 << 10]);
    tls.flush(&mut socket).expect("sent");
    let end = Instant::now() + Duration::from_secs(40);
    loop {
        assert!(Instant::now() < end, "an answer");
        if sent < request.len() && !tls.is_handshaking() {
            sent += tls.write(&mut socket, &request.as_bytes()[sent..]).expect("sent");
            continue;
        }
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
        match tls.read(&mut socket, &mut buffer) {
            Ok(received) if received.bytes == 0 => break,
            Ok(received) => text.extend_from_slice(&buffer[..received.bytes]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
    Answer::of(&String::from_utf8_lossy(&text))
}

/// A browser's session: headers for requests that follow a login.
pub struct Login {
    pub cookie: String,
    pub token: String,
}

impl Login {
    pub fn of(answer: &Answer) -> Login {
        let cookie =
            answer.head.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).expect("a cookie");
        let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().expect("a value"));
        let token = answer.json()["token"].as_str().expect("a token").to_owned();
        Login { cookie, token }
    }

    pub fn headers(&self) -> String {
        format!("{}X-Cohort-Token: {}\r\n", self.cookie, self.token)
    }
}

pub fn credentials(user: &str, password: &str) -> String {
    serde_json::json!({ "user": user, "password": password }).to_string()
}

pub fn log_in(port: u16, user: &str, password: &str) -> Login {
    let answer = post(port, "/api/login", "", &credentials(user, password));
    assert_eq!(answer.status, 200, "{user}: {answer:?}");
    Login::of(&answer)
}
