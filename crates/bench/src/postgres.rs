//! The part of PostgreSQL's client protocol (version 3) that a load needs, without sockets: requests are
//! appended to a buffer, and [`ReplyReader`] finds the end of a reply without parsing its rows.
//!
//! A message consists of a tag, its length in four bytes (which include themselves) and a body. Only the
//! first message of a connection has no tag. A prepared statement is executed by Bind, Execute and Sync in
//! one request, without a description of the result, which is the minimum that a driver sends. Each reply
//! ends with ReadyForQuery.

use crate::wire::{Reply, ServerError, Value};

const PROTOCOL_3_0: u32 = 3 << 16;
const FORMAT_TEXT: u16 = 0;
const FORMAT_BINARY: u16 = 1;

const READY_FOR_QUERY: u8 = b'Z';
const DATA_ROW: u8 = b'D';
const ERROR_RESPONSE: u8 = b'E';
const AUTHENTICATION: u8 = b'R';
const PARAMETER_STATUS: u8 = b'S';

/// Appends the first message of a connection.
pub fn startup(user: &str, database: &str, out: &mut Vec<u8>) {
    untagged(out, |out| {
        out.extend_from_slice(&PROTOCOL_3_0.to_be_bytes());
        for text in ["user", user, "database", database] {
            put_text(text.as_bytes(), out);
        }
        out.push(0);
    });
}

/// Appends a simple query; `write` appends its text.
pub fn query(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    message(b'Q', out, |out| {
        write(out);
        out.push(0);
    });
}

/// Appends the preparation of a statement under a number that the client chooses.
pub fn prepare(number: u32, sql: &str, out: &mut Vec<u8>) {
    message(b'P', out, |out| {
        put_name(number, out);
        put_text(sql.as_bytes(), out);
        // The server infers the types of the parameters.
        out.extend_from_slice(&0u16.to_be_bytes());
    });
    message(b'S', out, |_| {});
}

/// Appends the execution of a prepared statement.
pub fn execute(number: u32, values: &[Value], out: &mut Vec<u8>) {
    let count = values.len() as u16;
    message(b'B', out, |out| {
        put_text(b"", out);
        put_name(number, out);
        out.extend_from_slice(&count.to_be_bytes());
        for value in values {
            let format = if matches!(value, Value::Int(_)) { FORMAT_BINARY } else { FORMAT_TEXT };
            out.extend_from_slice(&format.to_be_bytes());
        }
        out.extend_from_slice(&count.to_be_bytes());
        for value in values {
            match value {
                Value::Int(n) => put_value(&n.to_be_bytes(), out),
                Value::Text(text) => put_value(text, out),
            }
        }
        // All columns of the result in binary format.
        out.extend_from_slice(&1u16.to_be_bytes());
        out.extend_from_slice(&FORMAT_BINARY.to_be_bytes());
    });
    message(b'E', out, |out| {
        put_text(b"", out);
        // All rows.
        out.extend_from_slice(&0u32.to_be_bytes());
    });
    message(b'S', out, |_| {});
}

/// Returns the statement with `$1`, `$2`, .. instead of `?`.
pub fn numbered(sql: &str) -> String {
    let mut pieces = sql.split('?');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for (index, piece) in pieces.enumerate() {
        out.push_str(&format!("${}{piece}", index + 1));
    }
    out
}

fn message(tag: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    untagged(out, write);
}

fn untagged(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let bytes = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&bytes.to_be_bytes());
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.push(0);
}

fn put_name(number: u32, out: &mut Vec<u8>) {
    put_text(format!("s{number}").as_bytes(), out);
}

fn put_value(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Returns the first message of `input` if it is complete: its tag, its body and its size in bytes.
pub fn next_message(input: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (tag, length) = (*input.first()?, input.get(1..5)?);
    let end = 1 + u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
    Some((tag, input.get(5..end)?, end))
}

/// Returns the server's version, if the message contains it.
pub fn version(tag: u8, body: &[u8]) -> Option<String> {
    let text = body.strip_prefix(b"server_version\0").filter(|_| tag == PARAMETER_STATUS)?;
    Some(String::from_utf8_lossy(text.strip_suffix(&[0]).unwrap_or(text)).into_owned())
}

/// Returns whether the message asks for a password or other credentials.
pub fn asks_for_proof(tag: u8, body: &[u8]) -> bool {
    tag == AUTHENTICATION && body != [0; 4]
}

/// Returns the columns of a row in text format, if the message is one. NULL is `None`.
pub fn text_row(tag: u8, body: &[u8]) -> Option<Vec<Option<String>>> {
    let (count, mut rest) = body.split_at_checked(2).filter(|_| tag == DATA_ROW)?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(count.try_into().expect("two bytes")) {
        let (length, after) = rest.split_at_checked(4)?;
        let length = i32::from_be_bytes(length.try_into().expect("four bytes"));
        let Ok(length) = usize::try_from(length) else {
            row.push(None);
            rest = after;
            continue;
        };
        let (text, after) = after.split_at_checked(length)?;
        row.push(Some(String::from_utf8_lossy(text).into_owned()));
        rest = after;
    }
    Some(row)
}

/// Parses one connection's replies, message by message.
#[derive(Default)]
pub struct ReplyReader {
    rows: u64,
    error: Option<ServerError>,
}

impl ReplyReader {
    /// Consumes the next message. Returns the reply if it ends with this message.
    pub fn take(&mut self, tag: u8, body: &[u8]) -> Option<Reply> {
        match tag {
            DATA_ROW => self.rows += 1,
            ERROR_RESPONSE => self.error = Some(error(body)),
            READY_FOR_QUERY => {
                let ReplyReader { rows, error } = std::mem::take(self);
                return Some(error.map_or(Reply::Done { rows }, Reply::Error));
            }
            _ => {}
        }
        None
    }
}

/// Parses the body of an error, which consists of fields: a letter and a text each.
fn error(body: &[u8]) -> ServerError {
    let field = |letter: u8| {
        let field = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&letter));
        field.map_or(String::new(), |field| String::from_utf8_lossy(&field[1..]).into_owned())
    };
    ServerError { code: field(b'C'), message: field(b'M') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_to_the_byte() {
        let mut out = Vec::new();
        execute(7, &[Value::Int(5), Value::Text(b"ab".to_vec())], &mut out);
        let bind: &[u8] =
            b"B\0\0\0\x22\0s7\0\0\x02\0\x01\0\0\0\x02\0\0\0\x04\0\0\0\x05\0\0\0\x02ab\0\x01\0\x01";
        let rest: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
        assert_eq!(out, [bind, rest].concat());
    }

    #[test]
    fn messages_are_found_only_when_whole() {
        let mut out = Vec::new();
        query(&mut out, |out| out.extend_from_slice(b"BEGIN"));
        assert_eq!(next_message(&out), Some((b'Q', &b"BEGIN\0"[..], 11)));
        (0..out.len()).for_each(|n| assert_eq!(next_message(&out[..n]), None));
    }

    #[test]
    fn a_reply_ends_when_the_server_is_ready() {
        let mut reader = ReplyReader::default();
        assert_eq!(reader.take(b'2', b""), None);
        assert_eq!(reader.take(b'D', b"\0\0"), None);
        assert_eq!(reader.take(b'C', b"SELECT 1\0"), None);
        assert_eq!(reader.take(b'Z', b"I"), Some(Reply::Done { rows: 1 }));
        assert_eq!(reader.take(b'E', b"SERROR\0C40P01\0Mdeadlock detected\0\0"), None);
        let error = ServerError { code: "40P01".into(), message: "deadlock detected".into() };
        assert_eq!(reader.take(b'Z', b"E"), Some(Reply::Error(error)));
    }

    #[test]
    fn rows_are_read_as_text() {
        let row = text_row(b'D', b"\0\x02\0\0\0\x02ab\xff\xff\xff\xff");
        assert_eq!(row, Some(vec![Some("ab".into()), None]));
        assert_eq!(text_row(b'C', b"SELECT 1\0"), None);
    }

    #[test]
    fn parameters_are_numbered() {
        assert_eq!(numbered("UPDATE t SET c=? WHERE id=?"), "UPDATE t SET c=$1 WHERE id=$2");
    }
}
