//! The client side of the protocol, as far as a replica needs it: login, queries with text results,
//! registration, and the binlog dump request.

use cohort_base::{Reader, Truncated, Write};

use crate::Malformed;
use crate::auth::{NATIVE_PASSWORD, Scramble};
use crate::capability::Capabilities;

/// The server's first packet, decoded by a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGreeting {
    pub version: String,
    pub capabilities: Capabilities,
    pub scramble: Scramble,
    /// The server's default plugin. `None` for an old server.
    pub plugin: Option<Vec<u8>>,
}

impl ServerGreeting {
    /// Decodes the payload: handshake version 10.
    pub fn decode(payload: &[u8]) -> Result<ServerGreeting, Malformed> {
        let mut r = Reader::new(payload);
        if r.u8()? != 10 {
            return Err(Malformed);
        }
        let version = String::from_utf8_lossy(r.nul_bytes()?).into_owned();
        r.u32()?;
        let mut random = [0; 20];
        random[..8].copy_from_slice(r.bytes(8)?);
        r.u8()?;
        let low = r.u16()?;
        let (_, _, high, length) = (r.u8()?, r.u16()?, r.u16()?, r.u8()?);
        r.bytes(10)?;
        let capabilities = Capabilities(u64::from(low) | u64::from(high) << 16);
        if !capabilities.has(Capabilities::PROTOCOL_41) || !capabilities.has(Capabilities::SECURE_CONNECTION)
        {
            return Err(Malformed);
        }
        // Includes a trailing zero byte.
        let rest = r.bytes(usize::from(length).saturating_sub(8).max(13).min(r.remaining()))?;
        random[8..].copy_from_slice(rest.get(..12).ok_or(Malformed)?);
        let plugin = match capabilities.has(Capabilities::PLUGIN_AUTH) {
            true => Some(without_nul(r.rest()).to_vec()),
            false => None,
        };
        Ok(ServerGreeting { version, capabilities, scramble: Scramble(random), plugin })
    }
}

/// A client's response to the greeting.
#[derive(Clone, Copy)]
pub struct LoginRequest<'a> {
    pub user: &'a str,
    pub password: &'a str,
    /// The connection uses TLS, or is about to.
    pub is_encrypted: bool,
    /// Collation of the client's strings; one byte on the wire.
    pub collation: u8,
}

impl LoginRequest<'_> {
    /// Appends the request for TLS: the first part of the login payload. The whole login follows after the
    /// TLS handshake.
    pub fn encode_tls_request(&self, greeting: &ServerGreeting, out: &mut Vec<u8>) {
        self.encode_head(greeting, out);
    }

    /// Appends the login payload.
    pub fn encode(&self, greeting: &ServerGreeting, out: &mut Vec<u8>) {
        self.encode_head(greeting, out);
        out.extend_from_slice(self.user.as_bytes());
        out.put_u8(0);
        let answer = greeting.scramble.answer(self.password.as_bytes());
        out.put_u8(answer.len() as u8);
        out.extend_from_slice(&answer);
        if greeting.plugin.is_some() {
            out.extend_from_slice(NATIVE_PASSWORD.as_bytes());
            out.put_u8(0);
        }
    }

    fn encode_head(&self, greeting: &ServerGreeting, out: &mut Vec<u8>) {
        let wanted = Capabilities::LONG_FLAG
            .set(Capabilities::MYSQL, true)
            .set(Capabilities::PROTOCOL_41, true)
            .set(Capabilities::TRANSACTIONS, true)
            .set(Capabilities::SECURE_CONNECTION, true)
            .set(Capabilities::SSL, self.is_encrypted)
            .set(Capabilities::PLUGIN_AUTH, greeting.plugin.is_some());
        out.put_u32(wanted.0 as u32);
        out.put_u32(1 << 30);
        out.put_u8(self.collation);
        out.extend_from_slice(&[0; 23]);
    }
}

/// An error packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    pub code: u16,
    pub message: String,
}

/// A packet sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    Ok,
    Error(ServerError),
    /// Request to switch to another authentication plugin, with its challenge.
    Switch {
        plugin: &'a [u8],
        data: &'a [u8],
    },
    /// A row, the head of a result set, or an event with a leading zero byte.
    Other(&'a [u8]),
    End,
}

impl<'a> Reply<'a> {
    /// Decodes a payload. With `is_login`, the long form of 0xfe is an authentication switch request.
    pub fn decode(payload: &'a [u8], is_login: bool) -> Result<Reply<'a>, Malformed> {
        let (&first, rest) = payload.split_first().ok_or(Malformed)?;
        Ok(match first {
            0xff => Reply::Error(read_error(rest)?),
            0xfe if is_login => {
                let mut r = Reader::new(rest);
                let plugin = r.nul_bytes()?;
                Reply::Switch { plugin, data: without_nul(r.rest()) }
            }
            0xfe if payload.len() < 9 => Reply::End,
            0 if is_login => Reply::Ok,
            _ => Reply::Other(payload),
        })
    }
}

fn read_error(rest: &[u8]) -> Result<ServerError, Truncated> {
    let mut r = Reader::new(rest);
    let code = r.u16()?;
    let text = r.rest();
    let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    Ok(ServerError { code, message: String::from_utf8_lossy(text).into_owned() })
}

/// Decodes a row in text format; `None` is NULL.
pub fn text_row(payload: &[u8]) -> Result<Vec<Option<Vec<u8>>>, Malformed> {
    let mut r = Reader::new(payload);
    let mut values = Vec::new();
    while !r.is_empty() {
        if r.rest().first() == Some(&0xfb) {
            r.u8()?;
            values.push(None);
        } else {
            values.push(Some(r.lenenc_bytes()?.to_vec()));
        }
    }
    Ok(values)
}

/// Appends the payload of COM_REGISTER_SLAVE.
pub fn register_replica(server_id: u32, host: &str, port: u16, out: &mut Vec<u8>) {
    out.put_u8(21);
    out.put_u32(server_id);
    let host = &host.as_bytes()[..host.len().min(60)];
    out.put_u8(host.len() as u8);
    out.extend_from_slice(host);
    // User and password are informational only and stay empty.
    out.extend_from_slice(&[0, 0]);
    out.put_u16(port);
    out.put_u32(0);
    out.put_u32(0);
}

/// Appends the payload of COM_BINLOG_DUMP.
pub fn request_dump(server_id: u32, file: &str, position: u32, annotate: bool, out: &mut Vec<u8>) {
    out.put_u8(18);
    out.put_u32(position);
    out.put_u16(if annotate { 2 } else { 0 });
    out.put_u32(server_id);
    out.extend_from_slice(file.as_bytes());
}

fn without_nul(text: &[u8]) -> &[u8] {
    text.strip_suffix(&[0]).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Greeting, HandshakeResponse, NativePassword, StatusFlags};

    #[test]
    fn the_servers_half_reads_what_the_clients_half_writes() {
        let scramble = Scramble(*b"abcdefghijklmnopqrst");
        let greeting = Greeting {
            version: "10.11.99-MariaDB",
            connection: 7,
            offer: Capabilities::SERVER,
            scramble: &scramble,
            collation: 45,
            status: StatusFlags::AUTOCOMMIT,
        };
        let mut bytes = Vec::new();
        greeting.encode(&mut bytes);
        let read = ServerGreeting::decode(&bytes).expect("well-formed");
        assert_eq!((read.version.as_str(), read.scramble), ("5.5.5-10.11.99-MariaDB", scramble));
        assert!((0..40).all(|end| ServerGreeting::decode(&bytes[..end]).is_err()));

        let mut login = Vec::new();
        LoginRequest { user: "repl", password: "secret", is_encrypted: false, collation: 33 }
            .encode(&read, &mut login);
        let response = HandshakeResponse::decode(&login, Capabilities::SERVER).expect("well-formed");
        assert_eq!(response.user, b"repl");
        assert!(NativePassword::of(b"secret").accepts(&scramble, &response.answer));

        let mut command = Vec::new();
        register_replica(3, "here", 3307, &mut command);
        let Ok(Command::RegisterReplica(replica)) = Command::decode(&command) else { panic!("{command:?}") };
        assert_eq!((replica.server_id, replica.host, replica.port), (3, &b"here"[..], 3307));
        command.clear();
        request_dump(3, "b.000001", 4, true, &mut command);
        let Ok(Command::BinlogDump(dump)) = Command::decode(&command) else { panic!("{command:?}") };
        assert_eq!((dump.position, dump.flags, dump.file), (4, 2, &b"b.000001"[..]));
    }

    #[test]
    fn replies_are_distinguished() {
        let error = ServerError { code: 1045, message: "no".to_owned() };
        assert_eq!(Reply::decode(b"\xff\x15\x04#28000no", true), Ok(Reply::Error(error)));
        assert_eq!(Reply::decode(b"\0\0\0", true), Ok(Reply::Ok));
        assert_eq!(Reply::decode(b"\xfe\0\0\x02\0", false), Ok(Reply::End));
        let switch = Reply::Switch { plugin: b"p", data: b"xy" };
        assert_eq!(Reply::decode(b"\xfep\0xy\0", true), Ok(switch));
        assert_eq!(Reply::decode(b"", false), Err(Malformed));
        assert_eq!(text_row(b"\x01a\xfb\0"), Ok(vec![Some(b"a".to_vec()), None, Some(Vec::new())]));
        assert!(text_row(b"\x05a").is_err());
    }
}
