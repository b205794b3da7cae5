//! Resident memory of a server with its default sizes: idle, and with many idle connections.

use std::thread;
use std::time::Duration;

use crate::connection::Connection;
use crate::process;
use crate::results::{Memory, ServerInfo};
use crate::servers::{Contestant, Server, Setup};

const CONNECTIONS: usize = 1000;
/// Time after which a server's work at its start, or after many logins, is over.
const SETTLE: Duration = Duration::from_secs(2);

pub fn measure(contestant: &Contestant, setup: &Setup) -> Result<(Memory, ServerInfo), String> {
    eprintln!("{}: memory", contestant.label);
    let mut server = Server::start(contestant, &Setup { defaults: true, ..setup.clone() })?;
    thread::sleep(SETTLE);
    let idle = resident(&mut server)?;
    let mut connections = Vec::with_capacity(CONNECTIONS);
    for number in 0..CONNECTIONS {
        let opened = Connection::open(&server.address, "").and_then(|mut connection| {
            connection.query("SELECT 1")?;
            Ok(connection)
        });
        connections.push(opened.map_err(|error| {
            server.complaint(&format!("connection {} of {CONNECTIONS}: {error}", number + 1))
        })?);
    }
    thread::sleep(SETTLE);
    let connected = resident(&mut server)?;
    let version = server.version.strip_prefix("5.5.5-").unwrap_or(&server.version).to_owned();
    let memory = Memory {
        server: contestant.label.clone(),
        idle_bytes: idle,
        connections: CONNECTIONS as u64,
        connected_bytes: connected,
    };
    Ok((memory, ServerInfo { name: contestant.label.clone(), version }))
}

fn resident(server: &mut Server) -> Result<u64, String> {
    process::resident_bytes(server.pid()).ok_or_else(|| server.complaint("is gone"))
}
