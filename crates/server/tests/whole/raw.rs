//! A client that uses the protocol directly.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::Cohort;

pub struct RawClient {
    pub stream: TcpStream,
}

pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

/// Returns the reply to the greeting: root without a password.
pub fn login_response() -> Vec<u8> {
    let capabilities: u32 = 1 << 9 | 1 << 15 | 1 << 16 | 1 << 19;
    let mut response = capabilities.to_le_bytes().to_vec();
    response.extend_from_slice(&[0, 0, 0, 1, 45]);
    response.extend_from_slice(&[0; 23]);
    response.extend_from_slice(b"root\0\0mysql_native_password\0");
    response
}

impl RawClient {
    pub fn connect(server: &Cohort) -> RawClient {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        RawClient { stream }
    }

    pub fn login(server: &Cohort) -> RawClient {
        let mut client = RawClient::connect(server);
        assert_eq!(client.payload().expect("a greeting")[0], 10);
        client.send(&packet(1, &login_response()));
        assert_eq!(client.payload().expect("an answer")[0], 0);
        client
    }

    /// Sends bytes. The server may have closed the connection.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub fn query(&mut self, sql: &[u8]) {
        self.send(&packet(0, &[b"\x03", sql].concat()));
    }

    /// Returns the next packet's payload, or `None` at the end.
    pub fn payload(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).ok()?;
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some(payload)
    }
}
