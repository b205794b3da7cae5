//! Requests: parsed by `httparse`, checked for what this server does not take.

use super::{BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Post,
}

/// A complete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// Path without the query.
    pub path: String,
    /// Text after `?`; empty without one.
    pub query: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub keep_alive: bool,
}

/// Result of parsing the bytes received so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Incomplete,
    /// Rejected with this status. What follows cannot be found, so the connection must be closed.
    Rejected(u16),
    /// A request, and its length.
    Whole(Box<Request>, usize),
}

/// Headers that may not be repeated, because readers would disagree about their meaning.
const SINGLE: [&str; 7] =
    ["host", "content-length", "authorization", "cookie", "origin", "content-type", "x-cohort-token"];

impl Request {
    /// Returns the value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns a parameter of the query. Values are not decoded: all that routes take are plain words.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, v)| v)
    }

    /// Returns a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let all = self.header("cookie")?.split(';').filter_map(|pair| pair.trim().split_once('='));
        all.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    }
}

pub(super) fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_BYTES_MAX => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Parsed::Incomplete,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Parsed::Rejected(431),
        Err(httparse::Error::Version) => return Parsed::Rejected(505),
        Err(_) => return Parsed::Rejected(400),
    };
    let (Some(method), Some(target), Some(version)) = (head.method, head.path, head.version) else {
        return Parsed::Rejected(400);
    };
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        _ => return Parsed::Rejected(405),
    };
    if !target.starts_with('/') || target.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Parsed::Rejected(400);
    }
    let mut kept: Vec<(String, String)> = Vec::with_capacity(head.headers.len());
    for header in head.headers.iter() {
        let name = header.name.to_ascii_lowercase();
        let Ok(value) = std::str::from_utf8(header.value) else { return Parsed::Rejected(400) };
        let is_repeated = || kept.iter().any(|(known, _)| *known == name);
        if name == "transfer-encoding" || SINGLE.contains(&name.as_str()) && is_repeated() {
            return Parsed::Rejected(400);
        }
        kept.push((name, value.trim().to_owned()));
    }
    let value = |name: &str| kept.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    if version == 1 && value("host").is_none() {
        return Parsed::Rejected(400);
    }
    let body_bytes = match value("content-length") {
        None => 0,
        Some(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().unwrap_or(usize::MAX)
        }
        Some(_) => return Parsed::Rejected(400),
    };
    if body_bytes > 0 && method != Method::Post {
        return Parsed::Rejected(400);
    }
    if body_bytes > BODY_BYTES_MAX {
        return Parsed::Rejected(413);
    }
    let end = length + body_bytes;
    if bytes.len() < end {
        return Parsed::Incomplete;
    }
    let keep_alive = value("connection").is_some_and(|text| text.eq_ignore_ascii_case("keep-alive"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let body = bytes[length..end].to_vec();
    Parsed::Whole(Box::new(Request { method, path, query, headers: kept, body, keep_alive }), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_scrapers_and_browsers() {
        for (text, method, path, query, keep_alive) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n", Method::Get, "/metrics", "", false),
            ("GET /?a=b&c=d HTTP/1.0\r\n\r\n", Method::Get, "/", "a=b&c=d", false),
            ("HEAD / HTTP/1.1\r\nhost:x\r\nContent-Length: 0\r\n\r\n", Method::Head, "/", "", false),
            (
                "POST /a HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive\r\nContent-Length: 3\r\n\r\nabc",
                Method::Post,
                "/a",
                "",
                true,
            ),
        ] {
            let Parsed::Whole(found, length) = parse(text.as_bytes()) else { panic!("{text}") };
            assert_eq!((found.method, &*found.path, &*found.query), (method, path, query), "{text}");
            assert_eq!((found.keep_alive, length), (keep_alive, text.len()), "{text}");
            // A second request may follow, and each beginning is incomplete.
            assert!(matches!(parse(format!("{text}GET").as_bytes()), Parsed::Whole(_, l) if l == length));
            for end in 0..text.len() {
                assert_eq!(parse(&text.as_bytes()[..end]), Parsed::Incomplete, "{text} {end}");
            }
        }
        let text = "GET /?digest=ab&x HTTP/1.1\r\nHost: x\r\nCookie: a=1; cohort_9=zz ;b=2\r\n\r\n";
        let Parsed::Whole(found, _) = parse(text.as_bytes()) else { panic!("{text}") };
        assert_eq!((found.parameter("digest"), found.parameter("x")), (Some("ab"), None));
        assert_eq!((found.cookie("cohort_9"), found.cookie("c")), (Some("zz"), None));
    }

    #[test]
    fn malformed_requests_are_rejected() {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(HEAD_BYTES_MAX));
        let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX));
        for (request, status) in [
            ("DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
            ("GET / HTTP/2.0\r\n\r\n", 505),
            ("GET /\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET ../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /\u{e9} HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\na: b\r\n folded: c\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 400),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello", 400),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4097\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("\u{3}\u{1}", 400),
            (&long, 431),
            (&format!("{long}\r\n"), 431),
            (&many, 431),
        ] {
            assert_eq!(parse(request.as_bytes()), Parsed::Rejected(status), "{request:.80}");
        }
        assert!(matches!(parse(b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n"), Parsed::Rejected(400)));
    }
}
