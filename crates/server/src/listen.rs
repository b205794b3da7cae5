//! Accepts connections: one thread over all listening sockets.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use cohort_config::{Counter, VERSION, VarId};
use cohort_protocol::{Greeting, PacketWriter, StatusFlags};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::connection::{Connection, Peer};
use crate::epoll::{Until, poll};
use crate::half_open::origin_of;
use crate::login::Stage;
use crate::server::{Reserved, Shared, Slot};

/// utf8mb4_general_ci, the server's default.
const GREETING_COLLATION: u8 = 45;

/// How long a client waits for a slot before it is turned away.
const SLOT_WAIT: Duration = Duration::from_secs(2);
/// How long it waits for workers to read what the connection has sent that is to give way.
const READ_WAIT: Duration = Duration::from_millis(50);
/// Between two looks.
const SLOT_POLL: Duration = Duration::from_millis(1);

/// Bound sockets that start to listen when the server takes connections. Until then no other process gets the
/// addresses, and clients are refused: an open port means a server that answers.
pub struct Endpoints {
    sockets: Vec<(Socket, i32)>,
    unix_path: Option<PathBuf>,
}

impl Endpoints {
    /// No sockets yet.
    pub fn new() -> Endpoints {
        Endpoints { sockets: Vec::new(), unix_path: None }
    }

    /// Takes a TCP port of an address or host name; port 0 lets the system choose. Addresses are returned.
    /// `backlog`: connections that wait for being accepted.
    pub fn bind_tcp(&mut self, host: &str, port: u16, backlog: i32) -> io::Result<Vec<SocketAddr>> {
        let mut bound = Vec::new();
        for address in (host, port).to_socket_addrs()? {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            if address.is_ipv6() {
                // One socket for both families, unless IPv6 is bound alone.
                socket.set_only_v6(!address.ip().is_unspecified())?;
            }
            socket.bind(&address.into())?;
            socket.set_nonblocking(true)?;
            bound.extend(socket.local_addr()?.as_socket());
            self.sockets.push((socket, backlog));
        }
        Ok(bound)
    }

    /// Takes the path of a Unix socket. A socket file that nobody listens on is replaced.
    pub fn bind_unix(&mut self, path: &Path, backlog: i32) -> io::Result<()> {
        let address = SockAddr::unix(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        match socket.bind(&address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                if Socket::new(Domain::UNIX, Type::STREAM, None)?.connect(&address).is_ok() {
                    return Err(error);
                }
                std::fs::remove_file(path)?;
                socket.bind(&address)?;
            }
            other => other?,
        }
        // Everybody may connect; the account decides.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path, open)?;
        socket.set_nonblocking(true)?;
        self.unix_path = Some(path.to_owned());
        self.sockets.push((socket, backlog));
        Ok(())
    }

    fn listen(&self) -> io::Result<()> {
        self.sockets.iter().try_for_each(|(socket, backlog)| socket.listen(*backlog))
    }
}

impl Default for Endpoints {
    fn default() -> Endpoints {
        Endpoints::new()
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        if let Some(path) = &self.unix_path {
            // It may have been removed by hand.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens, and starts the accepting thread; it ends when the server's stop event is set.
pub(crate) fn start(shared: Arc<Shared>, endpoints: Endpoints) -> io::Result<JoinHandle<()>> {
    endpoints.listen()?;
    Builder::new().name("accept".into()).spawn(move || accept_all(&shared, &endpoints))
}

fn accept_all(shared: &Arc<Shared>, endpoints: &Endpoints) {
    let fds: Vec<_> = endpoints
        .sockets
        .iter()
        .map(|(socket, _)| socket.as_fd())
        .chain([shared.stop_event.as_fd()])
        .map(|fd| (fd, Until::Input))
        .collect();
    while !shared.stopping.load(Ordering::Acquire) {
        let ready = match poll(&fds, None) {
            Ok(ready) => ready,
            Err(error) => {
                shared.log.error(format_args!("Cannot wait for connections: {error}"));
                return;
            }
        };
        for ((socket, _), _) in endpoints.sockets.iter().zip(ready).filter(|(_, ready)| *ready) {
            accept_from(shared, socket);
        }
    }
}

fn accept_from(shared: &Arc<Shared>, listener: &Socket) {
    loop {
        match listener.accept() {
            Ok((socket, address)) => admit(shared, socket, &address),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            Err(error) => {
                // Out of descriptors, most likely: those that are there go on, and some may end.
                shared.log.error(format_args!("Error in accept: {error}"));
                std::thread::sleep(Duration::from_millis(50));
                return;
            }
        }
    }
}

fn admit(shared: &Arc<Shared>, socket: Socket, address: &SockAddr) {
    shared.status.count(Counter::Connections);
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    let peer = peer_of(address, shared.globals.flag(VarId::SkipNameResolve));
    if address.as_socket().is_some() {
        // A refusal costs speed only.
        let _ = socket.set_tcp_nodelay(true);
        let _ = socket.set_keepalive(true);
    }
    // The log and the binary log go before another connection.
    if cohort_vfs::refuse_kept(&socket).is_err() {
        shared.status.count(Counter::ConnectionErrorsMaxConnections);
        return turn_away(&socket);
    }
    let Some(slot) = find_slot(shared) else {
        shared.status.count(Counter::ConnectionErrorsMaxConnections);
        return turn_away(&socket);
    };
    let (id, scramble) = (slot.id, shared.new_scramble());
    let stage = Stage::Greeted(scramble);
    let connection = Arc::new(Connection::new(id, slot.token, peer, socket, stage, Arc::clone(shared)));
    {
        let mut inner = connection.inner.lock();
        let greeting = Greeting {
            version: VERSION,
            connection: id.0,
            offer: shared.capabilities(),
            scramble: &scramble,
            collation: GREETING_COLLATION,
            status: StatusFlags::AUTOCOMMIT,
        };
        let mut sequence = 0;
        let mut packet = PacketWriter::begin(&mut inner.out, &mut sequence);
        greeting.encode(packet.payload());
        packet.end();
        inner.input.expect_sequence(1);
    }
    connection.set_deadline(shared.globals.uint(VarId::ConnectTimeout));
    shared.insert(slot, Arc::clone(&connection));
    connection.greet();
}

/// A slot for a client, for which another connection gives way if too many have not logged in. When workers
/// are behind, the client waits for them; those that come meanwhile wait to be accepted.
fn find_slot(shared: &Shared) -> Option<Slot> {
    let began_ms = shared.now_ms();
    loop {
        let waited = Duration::from_millis(shared.now_ms() - began_ms);
        if let Some(victim) = shared.half_open_victim() {
            // It may be about to log in.
            if waited < READ_WAIT && victim.has_unread() {
                std::thread::sleep(SLOT_POLL);
                continue;
            }
            if !victim.give_way() && waited < READ_WAIT {
                continue;
            }
        }
        match shared.reserve() {
            Reserved::Slot(slot) => return Some(slot),
            Reserved::Full => return None,
            Reserved::Later if waited >= SLOT_WAIT || shared.stopping.load(Ordering::Acquire) => return None,
            Reserved::Later => std::thread::sleep(SLOT_POLL),
        }
    }
}

/// Error 1040 before the greeting, in the form of clients that know no SQLSTATE yet.
fn turn_away(socket: &Socket) {
    let mut bytes = Vec::new();
    let mut sequence = 0;
    let mut packet = PacketWriter::begin(&mut bytes, &mut sequence);
    packet.payload().extend_from_slice(&[0xff, 0x10, 0x04]);
    packet.payload().extend_from_slice(b"Too many connections");
    packet.end();
    // Ignored: a client that does not read the packet sees the connection end.
    let _ = socket.send(&bytes);
}

/// Only addresses of this machine have a name, unless names are switched off.
fn peer_of(address: &SockAddr, is_nameless: bool) -> Peer {
    let local = "localhost".to_owned();
    let Some(address) = address.as_socket() else {
        return Peer { host: local.clone(), address: None, origin: None, shown: local };
    };
    let ip = address.ip().to_canonical();
    let host = if ip.is_loopback() && !is_nameless { local } else { ip.to_string() };
    let origin = Some(origin_of(ip));
    Peer { shown: format!("{host}:{}", address.port()), host, address: Some(ip.to_string()), origin }
}
