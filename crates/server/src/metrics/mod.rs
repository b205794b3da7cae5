//! HTTP endpoint of `--metrics-port`: `/metrics` for Prometheus, and a page that shows the same metrics live.
//!
//! | file | concept |
//! |---|---|
//! | `http` | answers GET requests, within limits |
//! | `prometheus` | the text format |
//! | `page.html` | the page: fetches `/metrics` every second and draws what changed; self-contained |

mod http;
mod prometheus;

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use http::Page;
pub use prometheus::Sources;
use socket2::{Domain, Socket, Type};

use crate::epoll::EventFd;
use crate::error_log::ErrorLog;

const PAGE: &str = include_str!("page.html");

/// Sockets that the endpoint will listen on once the server accepts connections.
pub struct MetricsListeners(Vec<Socket>);

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

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

/// The running endpoint. Dropping it stops it.
pub struct MetricsEndpoint {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsEndpoint {
    /// Listens and starts to serve requests.
    pub fn start(
        listeners: MetricsListeners,
        sources: Sources,
        log: ErrorLog,
    ) -> io::Result<MetricsEndpoint> {
        let listeners = listeners.0.into_iter().map(|socket| {
            socket.listen(BACKLOG)?;
            Ok(TcpListener::from(socket))
        });
        let listeners: Vec<TcpListener> = listeners.collect::<io::Result<_>>()?;
        let stop = Arc::new(EventFd::new()?);
        let stopped = Arc::clone(&stop);
        let thread = Builder::new().name("metrics".into()).spawn(move || {
            let find = |path: &str| find(path, &sources);
            if let Err(error) = http::serve(&listeners, stopped.as_fd(), &find) {
                log.error(format_args!("The metrics endpoint ended: {error}"));
            }
        })?;
        Ok(MetricsEndpoint { stop, thread: Some(thread) })
    }
}

impl Drop for MetricsEndpoint {
    fn drop(&mut self) {
        self.stop.notify();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported its panic.
            let _ = thread.join();
        }
    }
}

fn find(path: &str, sources: &Sources) -> Option<Page> {
    match path {
        "/" => Some(Page { content_type: "text/html; charset=utf-8", body: PAGE.to_owned() }),
        "/metrics" => Some(Page {
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body: prometheus::text(sources),
        }),
        _ => None,
    }
}
