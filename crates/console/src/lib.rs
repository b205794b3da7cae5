//! The console: pages for operators, their endpoints, and /metrics, over HTTP and HTTPS on one port.
//!
//! | module | concept |
//! |---|---|
//! | `http` | requests and responses over `poll`, within limits |
//! | `routes` | paths, what they need, what answers them |
//! | `login` | sessions of browsers |
//! | `queries` | the statements of the endpoints |
//! | `figures` | the history as JSON |
//! | `host` | the parts of the server that the console uses |
//! | `page` | the files of the page |
//!
//! # Threads
//! The *poll thread* (`http`) serves files, figures and metrics to clients that need no login. The *worker
//! thread* does all that needs one, because it may wait: for locks of accounts, for statements. Up to
//! [`QUEUE_MAX`] requests wait for it; more are answered with status 503.

mod figures;
mod host;
mod http;
mod login;
mod page;
mod queries;
mod routes;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use cohort_vfs::SharedRng;
use http::{Answers, Response, Server};
use login::Logins;
use routes::{Job, Routes, Worker};

pub use host::{Host, Refused, Rows, Session};
pub use http::Peer;
pub use queries::SESSION_SETTINGS;
pub use routes::Settings;

/// Requests that wait for the worker thread.
const QUEUE_MAX: usize = 32;
/// Time between two looks for sessions that were not used for long.
const EXPIRE_EVERY: Duration = Duration::from_secs(10);

/// The running console. Dropping it stops it.
pub struct Console {
    answers: Arc<Answers>,
    threads: Vec<JoinHandle<()>>,
}

/// Reports an error that ends a thread.
pub type OnEnd = Box<dyn Fn(&io::Error) + Send>;

impl Console {
    /// Starts to serve requests on listeners that do not block. `stack_bytes` is the stack of a thread that
    /// runs statements.
    pub fn start(
        listeners: Vec<TcpListener>,
        settings: Settings,
        host: Arc<dyn Host>,
        (rng, stack_bytes): (SharedRng, usize),
        on_end: OnEnd,
    ) -> io::Result<Console> {
        let answers = Arc::new(Answers::new()?);
        let (jobs, waiting) = sync_channel(QUEUE_MAX);
        let routes = Arc::new(Routes::new(settings, Arc::clone(&host)));
        let worker = Worker { routes: Arc::clone(&routes), logins: Logins::new(rng) };
        let of_worker = Arc::clone(&answers);
        let worker = Builder::new()
            .name("console".into())
            .stack_size(stack_bytes)
            .spawn(move || work(worker, &waiting, &of_worker))?;
        let of_server = Arc::clone(&answers);
        let poll = Builder::new().name("metrics".into()).spawn(move || {
            let server = Server {
                listeners: &listeners,
                answers: of_server,
                connections_max: routes.settings.connections_max,
                accept_tls: &|early| host.accept_tls(early),
                serve: &|request, peer, connection| routes.serve(request, peer, connection, &jobs),
            };
            if let Err(error) = server.run() {
                on_end(&error);
            }
        })?;
        Ok(Console { answers, threads: vec![poll, worker] })
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.answers.stop();
        for thread in self.threads.drain(..) {
            // The panic hook has reported its panic.
            let _ = thread.join();
        }
    }
}

/// Answers requests until the console stops. A panic ends one request.
fn work(mut worker: Worker, waiting: &Receiver<Job>, answers: &Answers) {
    loop {
        match waiting.recv_timeout(EXPIRE_EVERY) {
            Ok(job) => {
                let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.answer(&job)));
                answers.put(job.connection, answer.unwrap_or_else(|_| Response::status(500)));
            }
            Err(RecvTimeoutError::Timeout) => worker.logins.expire(Instant::now()),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
