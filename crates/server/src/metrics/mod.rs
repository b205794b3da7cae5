//! The server's side of the console and of Prometheus, on `metrics_port`.
//!
//! | file | concept |
//! |---|---|
//! | `host` | logins and facts for the crate `cohort_console` |
//! | `session` | SQL sessions of the console: they pass the same checks as those of clients |
//! | `readings` | one reading of the server's figures, by name |
//! | `sampler` | the thread that fills the history, and its file |
//! | `prometheus` | the text format |

mod host;
mod prometheus;
mod readings;
mod sampler;
mod session;

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use cohort_config::{Globals, VarId};
use cohort_console::{Console, Settings};
use cohort_observe::History;
use cohort_vfs::SharedFs;
use socket2::{Domain, Socket, Type};

use crate::descriptors::console_connections;
use crate::server::Server;
use crate::sql_backend::SqlBackend;
use host::ServerHost;
use readings::Readings;
use sampler::Sampler;

/// Name of the history's file in the data directory.
const HISTORY_FILE: &str = "metrics_history.bin";
/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Sockets that the endpoint will listen on once the server accepts connections.
pub struct MetricsListeners(Vec<Socket>);

impl MetricsListeners {
    /// Binds the port on all addresses of a host name.
    pub fn bind(host: &str, port: u16) -> io::Result<MetricsListeners> {
        let mut all = Vec::new();
        for address in (host, port).to_socket_addrs()? {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            socket.set_nonblocking(true)?;
            all.push(socket);
        }
        Ok(MetricsListeners(all))
    }

    /// Returns the bound addresses.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(|socket| socket.local_addr().ok()?.as_socket()).collect()
    }
}

/// The running endpoint: the console first, then the sampler. Dropping it stops both.
pub struct MetricsEndpoint {
    _console: Console,
    _sampler: Option<Sampler>,
}

impl MetricsEndpoint {
    /// Listens and starts to serve requests, and starts to record the history.
    pub fn start(
        listeners: MetricsListeners,
        server: &Server,
        backend: &SqlBackend,
        (fs, datadir): (SharedFs, &Path),
    ) -> io::Result<MetricsEndpoint> {
        let listeners = listeners.0.into_iter().map(|socket| {
            socket.listen(BACKLOG)?;
            Ok(TcpListener::from(socket))
        });
        let listeners: Vec<TcpListener> = listeners.collect::<io::Result<_>>()?;
        let shared = Arc::clone(server.shared());
        let globals = &shared.globals;
        let readings = Arc::new(Readings::new(backend.database(), fs.clone(), datadir));
        let (mut history, mut sampler) = (None, None);
        if globals.flag(VarId::MetricsHistory) {
            let own = Arc::new(History::new(readings::schema()));
            let parts = (Arc::clone(&readings), Arc::clone(&own), shared.log.clone());
            sampler = Some(Sampler::start(parts, (fs, &datadir.join(HISTORY_FILE)))?);
            history = Some(own);
        }
        let settings = Settings {
            port: globals.uint(VarId::MetricsPort) as u16,
            hosts: hosts(globals),
            needs_login: globals.flag(VarId::MetricsLogin),
            connections_max: console_connections(globals.uint(VarId::OpenFilesLimit)),
        };
        let stack_bytes = globals.uint(VarId::ThreadStack) as usize;
        let (rng, log) = (Arc::clone(&shared.rng), shared.log.clone());
        let host = Arc::new(ServerHost::new(shared, readings, history, datadir));
        let on_end = Box::new(move |error: &io::Error| {
            log.error(format_args!("The metrics endpoint ended: {error}"));
        });
        let console = Console::start(listeners, settings, host, (rng, stack_bytes), on_end)?;
        Ok(MetricsEndpoint { _console: console, _sampler: sampler })
    }
}

/// Returns the names of `metrics_hosts`.
fn hosts(globals: &Globals) -> Vec<String> {
    let list = globals.text(VarId::MetricsHosts);
    let names = list.as_deref().unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
