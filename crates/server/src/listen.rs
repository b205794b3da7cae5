//! Accept thread: one thread accepts connections on all listening sockets.

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
use crate::epoll::poll;
use crate::half_open::origin_of;
use crate::login::Stage;
use crate::shared::{Reserved, Shared, Slot};

/// utf8mb4_general_ci, the server's default.
const GREETING_COLLATION: u8 = 45;

/// Time that a client waits for a slot before it is refused.
const SLOT_WAIT: Duration = Duration::from_secs(2);
/// Time to wait for workers to read the input of the connection that was chosen as the victim.
const READ_WAIT: Duration = Duration::from_millis(50);
/// Time between two checks.
const SLOT_POLL: Duration = Duration::from_millis(1);

/// Bound sockets that start to listen when the server accepts connections. Binding reserves the addresses;
/// until the sockets listen, clients are refused. An open port thus means a server that replies.
pub struct Endpoints {
    sockets: Vec<(Socket, i32)>,
    unix_path: Option<PathBuf>,
}

impl Endpoints {
    /// Creates an empty set of sockets.
    pub fn new() -> Endpoints {
        Endpoints { sockets: Vec::new(), unix_path: None }
    }

    /// Binds a TCP port of an address or host name; with port 0 the system chooses one. Returns the bound
    /// addresses. `backlog` is the maximum number of connections that wait to be accepted.
    pub fn bind_tcp(&mut self, host: &str, port: u16, backlog: i32) -> io::Result<Vec<SocketAddr>> {
        let mut bound = Vec::new();
        for address in (host, port).to_socket_addrs()? {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            if address.is_ipv6() {
                // One socket serves both families, unless it is bound to a specific IPv6 address.
                socket.set_only_v6(!address.ip().is_unspecified())?;
            }
            socket.bind(&address.into())?;
            socket.set_nonblocking(true)?;
            bound.extend(socket.local_addr()?.as_socket());
            self.sockets.push((socket, backlog));
        }
        Ok(bound)
    }

    /// Binds the path of a Unix socket. A socket file without a listening process is replaced.
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
        // All users may connect; the account decides.
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

/// Listens and starts the accept thread, which ends when the server's stop event is set.
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
                // Most likely the process is out of descriptors. Existing connections continue, and some may
                // end.
                shared.log.error(format_args!("Error in accept: {error}"));
                shared.status.count(Counter::ConnectionErrorsAccept);
                std::thread::sleep(Duration::from_millis(50));
                return;
            }
        }
    }
}

fn admit(shared: &Arc<Shared>, socket: Socket, address: &SockAddr) {
    shared.status.count(Counter::Connections);
    if socket.set_nonblocking(true).is_err() {
        shared.status.count(Counter::ConnectionErrorsInternal);
        return;
    }
    let peer = peer_of(address, shared.globals.flag(VarId::SkipNameResolve));
    if address.as_socket().is_some() {
        // Failure only affects performance.
        let _ = socket.set_tcp_nodelay(true);
        let _ = socket.set_keepalive(true);
    }
    // The log and the binary log have priority over another connection (reserved descriptors).
    if cohort_vfs::refuse_kept(&socket).is_err() {
        shared.status.count(Counter::ConnectionErrorsMaxConnections);
        shared.status.count(Counter::AbortedConnectsPreauth);
        return turn_away(&socket);
    }
    let Some(slot) = find_slot(shared) else {
        shared.status.count(Counter::ConnectionErrorsMaxConnections);
        shared.status.count(Counter::AbortedConnectsPreauth);
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

/// Returns a slot for a client. If too many connections have not logged in, one of them is closed for it. If
/// workers are late, the client waits for them, and later clients wait to be accepted.
fn find_slot(shared: &Shared) -> Option<Slot> {
    let began_ms = shared.now_ms();
    loop {
        let waited = Duration::from_millis(shared.now_ms() - began_ms);
        if let Some(victim) = shared.half_open_victim() {
            // The victim may be about to log in.
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

/// Sends error 1040 before the greeting, without an SQLSTATE: the client's capabilities are not known yet.
fn turn_away(socket: &Socket) {
    let mut bytes = Vec::new();
    let mut sequence = 0;
    let mut packet = PacketWriter::begin(&mut bytes, &mut sequence);
    packet.payload().extend_from_slice(&[0xff, 0x10, 0x04]);
    packet.payload().extend_from_slice(b"Too many connections");
    packet.end();
    // Ignore errors: a client that does not read the packet sees the connection end.
    let _ = socket.send(&bytes);
}

/// Returns the peer of an address. Only addresses of this machine have a name, unless skip_name_resolve is
/// set.
fn peer_of(address: &SockAddr, is_nameless: bool) -> Peer {
    let local = "localhost".to_owned();
    match address.as_socket() {
        Some(address) => peer_over_tcp(address, is_nameless),
        None => Peer { host: local.clone(), address: None, origin: None, shown: local },
    }
}

/// Returns the peer of an address of TCP.
pub(crate) fn peer_over_tcp(address: SocketAddr, is_nameless: bool) -> Peer {
    let local = "localhost".to_owned();
    let ip = address.ip().to_canonical();
    let host = if ip.is_loopback() && !is_nameless { local } else { ip.to_string() };
    let origin = Some(origin_of(ip));
    Peer { shown: format!("{host}:{}", address.port()), host, address: Some(ip.to_string()), origin }
}
