//! A server that speaks as much of S3 as `object_store` does, over HTTP, with faults: it answers with
//! errors, hangs, cuts replies off, does what it was asked and loses the reply, stores half, or lists what
//! was there some time ago.

#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Name of the bucket.
pub const BUCKET: &str = "/backups";
/// Maximum time that a hanging request is held.
const HANG_MAX: Duration = Duration::from_secs(30);

/// Fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Status 500; nothing was done.
    Internal,
    /// Status 503 `SlowDown`; nothing was done.
    SlowDown,
    /// Status 507; nothing was done.
    Full,
    /// No reply at all.
    Hang,
    /// The reply ends in its middle.
    CutReply,
    /// It was done, and the connection ends without a reply.
    LostReply,
    /// A write keeps the first half, and the connection ends without a reply.
    Partial,
    /// A list shows what was there when the fault was planned.
    StaleList,
}

type Objects = BTreeMap<String, Vec<u8>>;

#[derive(Default)]
struct State {
    objects: Objects,
    stale: Objects,
    /// Faults of the next requests, repeated for ever; `None` is none.
    plan: Vec<Option<Fault>>,
    requests: usize,
    /// Number of faults so far.
    faults: usize,
    has_ended: bool,
}

/// The server; it ends with the test program.
#[derive(Clone)]
pub struct ObjectServer {
    state: Arc<Mutex<State>>,
    pub port: u16,
}

struct Request {
    method: String,
    path: String,
    query: String,
    if_none_match: bool,
    body: Vec<u8>,
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}

fn read(input: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (mut length, mut if_none_match) = (0, false);
    loop {
        let mut header = String::new();
        input.read_line(&mut header).ok().filter(|bytes| *bytes > 0)?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "if-none-match" => if_none_match = true,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some(Request { method, path: decoded(path), query: query.to_owned(), if_none_match, body })
}

const DATE: &str = "Sun, 29 Nov 2026 12:00:00 GMT";

impl State {
    /// Executes a request. Returns status and body, and the length that the headers state.
    fn execute(&mut self, request: &Request, fault: Option<Fault>) -> (u16, Vec<u8>, usize) {
        let reply = |status: u16, body: Vec<u8>| {
            let length = body.len();
            (status, body, length)
        };
        let of_query = |name: &str| {
            let found = request.query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            found.map(decoded)
        };
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", BUCKET) => {
                let objects = if fault == Some(Fault::StaleList) { &self.stale } else { &self.objects };
                let prefix = format!("{BUCKET}/{}", of_query("prefix").unwrap_or_default());
                let after = of_query("start-after").map(|after| format!("{BUCKET}/{after}"));
                let listed = objects.iter().filter(|(name, _)| {
                    name.starts_with(&prefix) && after.as_ref().is_none_or(|after| *name > after)
                });
                let row = |(name, object): (&String, &Vec<u8>)| {
                    format!(
                        "<Contents><Key>{}</Key><Size>{}</Size><ETag>\"e\"</ETag>\
                         <LastModified>2026-11-29T12:00:00.000Z</LastModified></Contents>",
                        &name[BUCKET.len() + 1..],
                        object.len()
                    )
                };
                let rows: String = listed.map(row).collect();
                reply(
                    200,
                    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>")
                        .into(),
                )
            }
            ("POST", BUCKET) => {
                let text = String::from_utf8_lossy(&request.body).into_owned();
                let names = text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
                let mut done = String::new();
                for name in names {
                    self.objects.remove(&format!("{BUCKET}/{name}"));
                    done += &format!("<Deleted><Key>{name}</Key></Deleted>");
                }
                reply(200, format!("<DeleteResult>{done}</DeleteResult>").into())
            }
            ("DELETE", name) => {
                self.objects.remove(name);
                reply(204, Vec::new())
            }
            ("PUT", name) => {
                if request.if_none_match && self.objects.contains_key(name) {
                    return reply(412, b"<Error><Code>PreconditionFailed</Code></Error>".to_vec());
                }
                let kept =
                    if fault == Some(Fault::Partial) { request.body.len() / 2 } else { request.body.len() };
                self.objects.insert(name.to_owned(), request.body[..kept].to_vec());
                reply(200, Vec::new())
            }
            ("GET" | "HEAD", name) => match self.objects.get(name) {
                None => reply(404, b"<Error><Code>NoSuchKey</Code></Error>".to_vec()),
                Some(object) if request.method == "HEAD" => (200, Vec::new(), object.len()),
                Some(object) => reply(200, object.clone()),
            },
            (method, path) => panic!("{method} {path}"),
        }
    }
}

fn serve(state: &Mutex<State>, mut socket: TcpStream) -> Option<()> {
    let mut input = BufReader::new(socket.try_clone().ok()?);
    loop {
        let request = read(&mut input)?;
        let (fault, mut answer) = {
            let mut state = state.lock().expect("no panic");
            let number = state.requests;
            state.requests += 1;
            let fault = state.plan.get(number % state.plan.len().max(1)).copied().flatten();
            // A fault that the request cannot have is none.
            let fault = fault.filter(|fault| match fault {
                Fault::Partial | Fault::Full => request.method == "PUT",
                Fault::StaleList => request.path == BUCKET && request.method == "GET",
                _ => true,
            });
            state.faults += usize::from(fault.is_some());
            let answer = match fault {
                Some(Fault::Internal) => (500, b"<Error><Code>InternalError</Code></Error>".to_vec(), 42),
                Some(Fault::SlowDown) => (503, b"<Error><Code>SlowDown</Code></Error>".to_vec(), 37),
                Some(Fault::Full) => (507, b"<Error><Code>InsufficientCapacity</Code></Error>".to_vec(), 49),
                Some(Fault::Hang) => (0, Vec::new(), 0),
                fault => state.execute(&request, fault),
            };
            (fault, answer)
        };
        match fault {
            Some(Fault::Hang) => {
                let end = Instant::now() + HANG_MAX;
                while Instant::now() < end && !state.lock().expect("no panic").has_ended {
                    std::thread::sleep(Duration::from_millis(50));
                }
                return None;
            }
            Some(Fault::LostReply | Fault::Partial) => return None,
            Some(Fault::CutReply) => answer.1.truncate(answer.1.len() / 2),
            _ => {}
        }
        let (status, body, length) = answer;
        let length = if status == 200 || body.is_empty() { length } else { body.len() };
        let head = format!(
            "HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\nLast-Modified: {DATE}\r\nETag: \"e\"\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(&body)).ok()?;
        if fault == Some(Fault::CutReply) {
            return None;
        }
    }
}

impl ObjectServer {
    pub fn start() -> ObjectServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server =
            ObjectServer { state: Arc::default(), port: listener.local_addr().expect("bound").port() };
        let state = Arc::clone(&server.state);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                std::thread::spawn(move || serve(&state, socket));
            }
        });
        server
    }

    /// Plans the faults of the next requests; the plan is repeated.
    pub fn plan(&self, plan: &[Option<Fault>]) {
        let mut state = self.state.lock().expect("no panic");
        state.stale = state.objects.clone();
        (state.plan, state.requests, state.faults) = (plan.to_vec(), 0, 0);
    }

    /// Returns the number of faults since the plan.
    pub fn faults(&self) -> usize {
        self.state.lock().expect("no panic").faults
    }

    /// Returns the environment of programs that use it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let fixed = [
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ALLOW_HTTP", "true"),
            // Of one request.
            ("AWS_TIMEOUT", "1s"),
        ];
        let mut all: Vec<_> = fixed.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        all.push(("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port)));
        all
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        if Arc::strong_count(&self.state) <= 2 {
            self.state.lock().expect("no panic").has_ended = true;
        }
    }
}
