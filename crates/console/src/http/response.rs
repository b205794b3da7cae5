//! Responses: every one forbids the browser what the console does not need.

use std::sync::Arc;

use serde_json::{Value, json};

/// Content of a response.
#[derive(Clone, Debug)]
pub enum Body {
    Static(&'static [u8]),
    /// Content that several responses share.
    Shared(Arc<[u8]>),
    Own(Vec<u8>),
}

impl Body {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Body::Static(bytes) => bytes,
            Body::Shared(bytes) => bytes,
            Body::Own(bytes) => bytes,
        }
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub content_type: &'static str,
    pub body: Body,
    /// Further headers, each with its line end.
    pub headers: String,
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Headers of all responses. Scripts, styles and connections come from this server alone; nothing is inline,
/// and no other page may frame the console.
const SAFETY: &str = "Cache-Control: no-store\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

impl Response {
    /// Creates a response with a body.
    pub fn of(content_type: &'static str, body: Body) -> Response {
        Response { status: 200, content_type, body, headers: String::new() }
    }

    /// Creates a response of JSON.
    pub fn json(status: u16, value: &Value) -> Response {
        let body = Body::Own(value.to_string().into_bytes());
        Response { status, content_type: JSON, body, headers: String::new() }
    }

    /// Creates an error with a text for the operator.
    pub fn error(status: u16, text: &str) -> Response {
        Response::json(status, &json!({ "error": text }))
    }

    /// Creates an error without further information.
    pub fn status(status: u16) -> Response {
        let body = Body::Own(format!("{status} {}\n", reason(status)).into_bytes());
        let mut found = Response { status, ..Response::of(TEXT, body) };
        if status == 405 {
            found.headers.push_str("Allow: GET, HEAD, POST\r\n");
        }
        if status == 503 {
            found.headers.push_str("Retry-After: 1\r\n");
        }
        found
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Response {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Returns status line and headers.
    pub(super) fn head(&self, keep_alive: bool) -> Vec<u8> {
        let Response { status, content_type, headers, .. } = self;
        let connection = if keep_alive { "keep-alive" } else { "close" };
        format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: {connection}\r\n{headers}{SAFETY}\r\n",
            reason(*status),
            self.body.bytes().len()
        )
        .into_bytes()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_its_length_and_forbids_what_it_does_not_need() {
        let found = Response::of(TEXT, Body::Static(b"abc")).with("X-A", "b");
        let head = String::from_utf8(found.head(true)).expect("text");
        for part in [
            "HTTP/1.1 200 OK\r\n",
            "Content-Length: 3\r\n",
            "Connection: keep-alive\r\n",
            "X-A: b\r\n",
            "frame-ancestors 'none'\r\n",
        ] {
            assert!(head.contains(part), "{part} {head}");
        }
        assert!(head.ends_with("\r\n\r\n") && !head.contains("unsafe"));
        assert!(Response::status(405).headers.starts_with("Allow: "));
        assert!(
            String::from_utf8_lossy(&Response::status(503).head(false)).contains("Connection: close\r\n")
        );
    }
}
