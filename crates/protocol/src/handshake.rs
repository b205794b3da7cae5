//! The start of a connection.
//!
//! ```text
//! server                                   client
//! Greeting (random bytes, offer)      ->
//!                                    [<-   the first 32 bytes of the response; then both switch to TLS]
//!                                     <-   HandshakeResponse (user, answer, database, plugin, attributes)
//! [auth_switch_request (random bytes) ->
//!                                     <-   answer]            if the client used another plugin
//! OK or ERR                           ->
//! ```
//!
//! COM_CHANGE_USER repeats this from the second message on.

use cohort_base::{Reader, Truncated, Write};

use crate::Malformed;
use crate::auth::{NATIVE_PASSWORD, Scramble};
use crate::capability::Capabilities;
use crate::ed25519::{CLIENT_ED25519, Nonce};
use crate::sink::StatusFlags;

/// The server's first packet: handshake version 10 in MariaDB's form.
#[derive(Clone, Debug)]
pub struct Greeting<'a> {
    /// Without the prefix `5.5.5-`, which keeps old replicas from reading MariaDB 10 as version 1.
    pub version: &'a str,
    /// Connection id, of which the client sees the low 32 bits.
    pub connection: u64,
    /// Capabilities of the server.
    pub offer: Capabilities,
    pub scramble: &'a Scramble,
    /// Default collation of the server; one byte on the wire.
    pub collation: u8,
    pub status: StatusFlags,
}

impl Greeting<'_> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let offer = self.offer.0;
        out.put_u8(10);
        out.extend_from_slice(b"5.5.5-");
        out.extend_from_slice(self.version.as_bytes());
        out.put_u8(0);
        out.put_u32(self.connection as u32);
        out.extend_from_slice(&self.scramble.0[..8]);
        out.put_u8(0);
        out.put_u16(offer as u16);
        out.put_u8(self.collation);
        out.put_u16(self.status.0);
        out.put_u16((offer >> 16) as u16);
        out.put_u8(self.scramble.0.len() as u8 + 1);
        out.extend_from_slice(&[0; 6]);
        out.put_u32((offer >> 32) as u32);
        out.extend_from_slice(&self.scramble.0[8..]);
        out.put_u8(0);
        out.extend_from_slice(NATIVE_PASSWORD.as_bytes());
        out.put_u8(0);
    }
}

/// An authentication challenge for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// For mysql_native_password.
    Native(Scramble),
    /// For ed25519.
    Ed25519(Nonce),
}

/// Appends the payload that asks the client to switch to the challenge's plugin.
pub fn auth_switch_request(challenge: &Challenge, out: &mut Vec<u8>) {
    out.put_u8(0xfe);
    match challenge {
        Challenge::Native(scramble) => {
            out.extend_from_slice(NATIVE_PASSWORD.as_bytes());
            out.put_u8(0);
            out.extend_from_slice(&scramble.0);
            out.put_u8(0);
        }
        Challenge::Ed25519(nonce) => {
            out.extend_from_slice(CLIENT_ED25519.as_bytes());
            out.put_u8(0);
            out.extend_from_slice(&nonce.0);
        }
    }
}

/// The client's first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeResponse {
    /// Capabilities that both the client and this server have.
    pub capabilities: Capabilities,
    /// Maximum packet size that the client accepts.
    pub packet_max: u32,
    /// Collation id below 256 of the client's character set.
    pub collation: u8,
    pub user: Vec<u8>,
    /// The response to the random bytes, according to `plugin`.
    pub answer: Vec<u8>,
    pub database: Option<Vec<u8>>,
    /// `None` for an old client, which uses mysql_native_password.
    pub plugin: Option<Vec<u8>>,
    /// Connection attributes: `_client_name`, `program_name`, ...
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Maximum size of the connection attributes; larger ones are dropped.
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;

impl HandshakeResponse {
    /// Returns whether the client requests TLS. The rest of the payload is then ignored, and the client sends
    /// the response again over TLS.
    pub fn asks_for_tls(payload: &[u8]) -> bool {
        let low = Reader::new(payload).u32().unwrap_or(0);
        Capabilities(u64::from(low)).has(Capabilities::SSL)
    }

    /// Decodes the payload. Refuses clients older than protocol 4.1. `offer` is the greeting's.
    pub fn decode(payload: &[u8], offer: Capabilities) -> Result<HandshakeResponse, Malformed> {
        let mut r = Reader::new(payload);
        let low = r.u32()?;
        let wanted = Capabilities(u64::from(low));
        if !wanted.has(Capabilities::PROTOCOL_41) {
            return Err(Malformed);
        }
        let packet_max = r.u32()?;
        let collation = r.u8()?;
        let filler = r.bytes(23)?;
        // MariaDB's clients put their own capability bits into the former filler.
        let high = match wanted.has(Capabilities::MYSQL) {
            true => 0,
            false => Reader::new(&filler[19..]).u32()?,
        };
        let wanted = Capabilities(u64::from(high) << 32 | u64::from(low));
        let capabilities = wanted.both(offer);
        let user = r.nul_bytes()?.to_vec();
        let answer = read_answer(&mut r, capabilities)?.to_vec();
        let database = match capabilities.has(Capabilities::CONNECT_WITH_DB) {
            true => Some(nul_or_rest(&mut r)?.to_vec()).filter(|name| !name.is_empty()),
            false => None,
        };
        let plugin = match capabilities.has(Capabilities::PLUGIN_AUTH) && !r.is_empty() {
            true => Some(nul_or_rest(&mut r)?.to_vec()),
            false => None,
        };
        let attributes = match capabilities.has(Capabilities::CONNECT_ATTRS) && !r.is_empty() {
            true => read_attributes(&mut r)?,
            false => Vec::new(),
        };
        Ok(HandshakeResponse {
            capabilities,
            packet_max,
            collation,
            user,
            answer,
            database,
            plugin,
            attributes,
        })
    }
}

/// COM_CHANGE_USER, without the command byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeUser {
    pub user: Vec<u8>,
    pub answer: Vec<u8>,
    pub database: Option<Vec<u8>>,
    pub collation: Option<u16>,
    pub plugin: Option<Vec<u8>>,
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl ChangeUser {
    /// Decodes the payload after the command byte. `capabilities` are those of the connection.
    pub fn decode(payload: &[u8], capabilities: Capabilities) -> Result<ChangeUser, Malformed> {
        let mut r = Reader::new(payload);
        let user = r.nul_bytes()?.to_vec();
        let answer = r.len8_bytes()?.to_vec();
        let database = Some(nul_or_rest(&mut r)?.to_vec()).filter(|name| !name.is_empty());
        let collation = if r.remaining() >= 2 { Some(r.u16()?) } else { None };
        let plugin = match capabilities.has(Capabilities::PLUGIN_AUTH) && !r.is_empty() {
            true => Some(nul_or_rest(&mut r)?.to_vec()),
            false => None,
        };
        let attributes = match capabilities.has(Capabilities::CONNECT_ATTRS) && !r.is_empty() {
            true => read_attributes(&mut r)?,
            false => Vec::new(),
        };
        Ok(ChangeUser { user, answer, database, collation, plugin, attributes })
    }
}

fn read_answer<'a>(r: &mut Reader<'a>, capabilities: Capabilities) -> Result<&'a [u8], Truncated> {
    if capabilities.has(Capabilities::PLUGIN_AUTH_LENENC) {
        r.lenenc_bytes()
    } else if capabilities.has(Capabilities::SECURE_CONNECTION) {
        r.len8_bytes()
    } else {
        r.nul_bytes()
    }
}

/// Reads a string whose terminating zero byte may be missing: some clients omit it for the last one.
fn nul_or_rest<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    match r.rest().contains(&0) {
        true => r.nul_bytes(),
        false => r.bytes(r.remaining()),
    }
}

fn read_attributes(r: &mut Reader<'_>) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Truncated> {
    let mut r = Reader::new(r.lenenc_bytes()?);
    let mut attributes = Vec::new();
    if r.remaining() > ATTRIBUTE_BYTES_MAX {
        return Ok(attributes);
    }
    while !r.is_empty() {
        attributes.push((r.lenenc_bytes()?.to_vec(), r.lenenc_bytes()?.to_vec()));
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(capabilities: Capabilities, tail: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(capabilities.0 as u32);
        out.put_u32(1 << 24);
        out.put_u8(45);
        out.extend_from_slice(&[0; 23]);
        out.extend_from_slice(tail);
        out
    }

    #[test]
    fn a_greeting_has_the_places_that_clients_read() {
        let scramble = Scramble(*b"abcdefghijklmnopqrst");
        let greeting = Greeting {
            version: "10.11.99-MariaDB",
            connection: 0x1_0000_0007,
            offer: Capabilities::SERVER,
            scramble: &scramble,
            collation: 45,
            status: StatusFlags::AUTOCOMMIT,
        };
        let mut out = Vec::new();
        greeting.encode(&mut out);
        let mut r = Reader::new(&out);
        assert_eq!(r.u8(), Ok(10));
        assert_eq!(r.nul_bytes(), Ok(&b"5.5.5-10.11.99-MariaDB"[..]));
        assert_eq!(r.u32(), Ok(7));
        assert_eq!(r.nul_bytes(), Ok(&b"abcdefgh"[..]));
        let low = r.u16().expect("present");
        assert_eq!(low & 1, 0, "MariaDB clears the bit CLIENT_MYSQL");
        assert_eq!((r.u8(), r.u16()), (Ok(45), Ok(2)));
        r.u16().expect("present");
        assert_eq!(r.u8(), Ok(21));
        r.bytes(10).expect("present");
        assert_eq!(r.nul_bytes(), Ok(&b"ijklmnopqrst"[..]));
        assert_eq!(r.nul_bytes(), Ok(&b"mysql_native_password"[..]));
        assert!(r.is_empty());
    }

    #[test]
    fn responses_of_new_and_old_clients_are_read() {
        let all = Capabilities::SERVER;
        let tail = b"root\0\x03abcshop\0mysql_native_password\0\x0a\x04_pid\x0442\x30\x30";
        let got = HandshakeResponse::decode(&response(all, tail), all).expect("well-formed");
        assert_eq!((&got.user[..], &got.answer[..]), (&b"root"[..], &b"abc"[..]));
        assert_eq!(got.database.as_deref(), Some(&b"shop"[..]));
        assert_eq!(got.plugin.as_deref(), Some(&b"mysql_native_password"[..]));
        assert_eq!(got.attributes, [(b"_pid".to_vec(), b"4200".to_vec())]);

        let old = Capabilities::PROTOCOL_41.set(Capabilities::SECURE_CONNECTION, true);
        let got = HandshakeResponse::decode(&response(old, b"me\0\0"), all).expect("well-formed");
        assert_eq!((got.database, got.plugin, got.attributes.len()), (None, None, 0));
        assert!(HandshakeResponse::decode(&response(Capabilities(1), b"me\0\0"), all).is_err(), "before 4.1");
        assert!(HandshakeResponse::decode(&response(all, b"no end"), all).is_err());
    }

    #[test]
    fn change_user_is_read() {
        let payload = b"bob\0\x02xyshop\0\x2d\0mysql_native_password\0";
        let got = ChangeUser::decode(payload, Capabilities::SERVER).expect("well-formed");
        assert_eq!((&got.user[..], &got.answer[..], got.collation), (&b"bob"[..], &b"xy"[..], Some(45)));
        assert_eq!(ChangeUser::decode(b"bob", Capabilities::SERVER), Err(Malformed));
    }
}
