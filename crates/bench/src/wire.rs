//! The part of the MySQL client protocol that a load needs, without sockets: requests are appended to a
//! buffer, and [`ReplyReader`] finds the end of a reply without parsing its rows.
//!
//! The client does not set CLIENT_DEPRECATE_EOF, so a result set is always `columns count, column..., EOF,
//! row..., EOF`, in both the text and the binary protocol.

pub const COM_QUERY: u8 = 0x03;
pub const COM_STMT_PREPARE: u8 = 0x16;
pub const COM_STMT_EXECUTE: u8 = 0x17;

const HEADER_BYTES: usize = 4;
const PACKET_BYTES_MAX: usize = 0xff_ffff;

const CLIENT_LONG_PASSWORD: u32 = 1;
const CLIENT_CONNECT_WITH_DB: u32 = 1 << 3;
const CLIENT_PROTOCOL_41: u32 = 1 << 9;
const CLIENT_SSL: u32 = 1 << 11;
const CLIENT_TRANSACTIONS: u32 = 1 << 13;
const CLIENT_SECURE_CONNECTION: u32 = 1 << 15;
const CLIENT_PLUGIN_AUTH: u32 = 1 << 19;

const CHARSET_UTF8MB4: u8 = 45;
const TYPE_LONG: u16 = 0x03;
const TYPE_STRING: u16 = 0xfe;

/// An error reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// Error number, or SQLSTATE for PostgreSQL.
    pub code: String,
    pub message: String,
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "ERROR {}: {}", self.code, self.message)
    }
}

/// A parameter of a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Int(i32),
    Text(Vec<u8>),
}

/// Appends a packet with the given sequence number.
pub fn packet(sequence: u8, payload: &[u8], out: &mut Vec<u8>) {
    assert!(payload.len() < PACKET_BYTES_MAX, "requests of the benchmark are small");
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
    out.push(sequence);
    out.extend_from_slice(payload);
}

/// Appends a command. `write` appends the part after the command byte.
pub fn command(code: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, code]);
    write(out);
    let bytes = out.len() - start - HEADER_BYTES;
    assert!(bytes < PACKET_BYTES_MAX, "requests of the benchmark are small");
    out[start..start + 3].copy_from_slice(&(bytes as u32).to_le_bytes()[..3]);
}

/// Whether an execution contains the types of its parameters. As with real clients, only the first execution
/// of a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    Send,
    Known,
}

/// Appends COM_STMT_EXECUTE.
pub fn execute(statement: u32, values: &[Value], types: Types, out: &mut Vec<u8>) {
    command(COM_STMT_EXECUTE, out, |out| {
        out.extend_from_slice(&statement.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&1u32.to_le_bytes());
        if values.is_empty() {
            return;
        }
        out.resize(out.len() + values.len().div_ceil(8), 0);
        out.push(u8::from(types == Types::Send));
        if types == Types::Send {
            for value in values {
                let code = if matches!(value, Value::Int(_)) { TYPE_LONG } else { TYPE_STRING };
                out.extend_from_slice(&code.to_le_bytes());
            }
        }
        values.iter().for_each(|value| put_value(value, out));
    });
}

fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Int(n) => out.extend_from_slice(&n.to_le_bytes()),
        Value::Text(text) => {
            match text.len() {
                0..=250 => out.push(text.len() as u8),
                bytes => {
                    out.push(0xfc);
                    out.extend_from_slice(&(bytes as u16).to_le_bytes());
                }
            }
            out.extend_from_slice(text);
        }
    }
}

/// Returns the response to the server's greeting: `user` without a password.
pub fn login(user: &str, schema: &str) -> Vec<u8> {
    login_with(0, user, schema)
}

/// Returns the response to the server's greeting over TLS.
pub fn encrypted_login(user: &str, schema: &str) -> Vec<u8> {
    login_with(CLIENT_SSL, user, schema)
}

/// Returns the request for TLS, which precedes the login: only the head of the login.
pub fn ask_for_tls(schema: &str) -> Vec<u8> {
    login_head(CLIENT_SSL, schema)
}

fn login_head(more: u32, schema: &str) -> Vec<u8> {
    let mut capabilities = CLIENT_LONG_PASSWORD
        | CLIENT_PROTOCOL_41
        | CLIENT_TRANSACTIONS
        | CLIENT_SECURE_CONNECTION
        | CLIENT_PLUGIN_AUTH
        | more;
    if !schema.is_empty() {
        capabilities |= CLIENT_CONNECT_WITH_DB;
    }
    let mut out = Vec::new();
    out.extend_from_slice(&capabilities.to_le_bytes());
    out.extend_from_slice(&(PACKET_BYTES_MAX as u32).to_le_bytes());
    out.push(CHARSET_UTF8MB4);
    out.extend_from_slice(&[0; 23]);
    out
}

fn login_with(more: u32, user: &str, schema: &str) -> Vec<u8> {
    let mut out = login_head(more, schema);
    out.extend_from_slice(user.as_bytes());
    out.extend_from_slice(&[0, 0]);
    if !schema.is_empty() {
        out.extend_from_slice(schema.as_bytes());
        out.push(0);
    }
    out.extend_from_slice(b"mysql_native_password\0");
    out
}

/// Returns the server's version from its greeting.
pub fn greeting_version(payload: &[u8]) -> Option<String> {
    let text = payload.strip_prefix(&[10])?;
    let end = text.iter().position(|b| *b == 0)?;
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// Parses an ERR packet.
pub fn parse_error(payload: &[u8]) -> ServerError {
    let code = payload.get(1..3).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
    let text = payload.get(3..).unwrap_or_default();
    // '#' and the SQLSTATE precede the message, except before the login.
    let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    ServerError { code: code.to_string(), message: String::from_utf8_lossy(text).into_owned() }
}

pub fn is_error(payload: &[u8]) -> bool {
    payload.first() == Some(&0xff)
}

pub fn is_eof(payload: &[u8]) -> bool {
    payload.first() == Some(&0xfe) && payload.len() < 9
}

/// Returns the first packet of `input` if it is complete, and its size in bytes.
pub fn next_packet(input: &[u8]) -> Option<(&[u8], usize)> {
    let header = input.get(..HEADER_BYTES)?;
    let bytes = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    let end = HEADER_BYTES + bytes;
    Some((input.get(HEADER_BYTES..end)?, end))
}

/// Parses a length-encoded integer. Returns its value and its size in bytes, or `None` for NULL and if it is
/// incomplete.
pub fn length_encoded(input: &[u8]) -> Option<(u64, usize)> {
    let wide = |n: usize| {
        let bytes = input.get(1..1 + n)?;
        let value = bytes.iter().rev().fold(0u64, |value, byte| (value << 8) | u64::from(*byte));
        Some((value, n + 1))
    };
    match *input.first()? {
        small @ 0..=0xfa => Some((u64::from(small), 1)),
        0xfc => wide(2),
        0xfd => wide(3),
        0xfe => wide(8),
        _ => None,
    }
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// OK, or the end of a result set.
    Done {
        rows: u64,
    },
    Error(ServerError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    First,
    /// This number of column packets is left, followed by an EOF.
    Columns(u64),
    Rows(u64),
}

/// Parses one connection's replies, packet by packet.
pub struct ReplyReader {
    expect: Expect,
}

impl Default for ReplyReader {
    fn default() -> ReplyReader {
        ReplyReader { expect: Expect::First }
    }
}

impl ReplyReader {
    /// Consumes the next packet. Returns the reply if it ends with this packet.
    pub fn take(&mut self, payload: &[u8]) -> Option<Reply> {
        if is_error(payload) && !matches!(self.expect, Expect::Columns(_)) {
            self.expect = Expect::First;
            return Some(Reply::Error(parse_error(payload)));
        }
        match self.expect {
            Expect::First => {
                let columns = length_encoded(payload).map_or(0, |(n, _)| n);
                if columns == 0 {
                    return Some(Reply::Done { rows: 0 });
                }
                self.expect = Expect::Columns(columns);
            }
            Expect::Columns(0) => self.expect = Expect::Rows(0),
            Expect::Columns(left) => self.expect = Expect::Columns(left - 1),
            Expect::Rows(rows) if is_eof(payload) => {
                self.expect = Expect::First;
                return Some(Reply::Done { rows });
            }
            Expect::Rows(rows) => self.expect = Expect::Rows(rows + 1),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_set_ends_with_the_second_eof() {
        let mut reader = ReplyReader::default();
        let eof: &[u8] = &[0xfe, 0, 0, 2, 0];
        assert_eq!(reader.take(&[1]), None);
        assert_eq!(reader.take(b"\x03def..."), None);
        assert_eq!(reader.take(eof), None);
        assert_eq!(reader.take(&[0, 0, 7]), None);
        assert_eq!(reader.take(&[0, 0, 8]), None);
        assert_eq!(reader.take(eof), Some(Reply::Done { rows: 2 }));
        assert_eq!(reader.take(&[0, 1, 0, 2, 0, 0, 0]), Some(Reply::Done { rows: 0 }));
    }

    #[test]
    fn errors_end_a_reply_at_its_start_and_between_rows() {
        let error = b"\xff\xbd\x04#40001Deadlock found";
        let expected = Reply::Error(ServerError { code: "1213".into(), message: "Deadlock found".into() });
        let mut reader = ReplyReader::default();
        assert_eq!(reader.take(error), Some(expected.clone()));
        reader.take(&[1]);
        reader.take(b"\x03def");
        reader.take(&[0xfe, 0, 0, 2, 0]);
        assert_eq!(reader.take(error), Some(expected));
        assert_eq!(reader.take(&[0, 0, 0]), Some(Reply::Done { rows: 0 }));
    }

    #[test]
    fn an_execution_to_the_byte() {
        let mut out = Vec::new();
        execute(7, &[Value::Int(5), Value::Text(b"ab".to_vec())], Types::Send, &mut out);
        let body: &[u8] = &[0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 0, 0xfe, 0, 5, 0, 0, 0, 2, b'a', b'b'];
        assert_eq!(out[..4], [body.len() as u8, 0, 0, 0]);
        assert_eq!(&out[4..], body);
        out.clear();
        execute(7, &[Value::Int(5)], Types::Known, &mut out);
        assert_eq!(out[4..], [0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
    }

    #[test]
    fn packets_are_found_only_when_whole() {
        let mut out = Vec::new();
        packet(3, b"hello", &mut out);
        assert_eq!(out, b"\x05\0\0\x03hello");
        assert_eq!(next_packet(&out), Some((&b"hello"[..], 9)));
        (0..out.len()).for_each(|n| assert_eq!(next_packet(&out[..n]), None));
    }
}
