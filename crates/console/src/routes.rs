//! Routes: which path needs which login, and what answers it.
//!
//! # Guards, in this order
//! 1. The Host header is an address, `localhost`, or a name of `metrics_hosts`; else 421. A page of another
//!    site whose name was made to resolve to this server (DNS rebinding) sends that name.
//! 2. POST has `Content-Type: application/json` and an Origin that equals the Host; else 403. A page of
//!    another site cannot send its requests without its own Origin.
//! 3. Figures need a login unless the client is local ([`is_local`]) or `metrics_login` is OFF.
//! 4. All that shows texts or changes something needs a session, and a POST the session's token.
//!
//! Headers that proxies add are ignored: a client could send them, too.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cohort_observe::TIERS;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::figures;
use crate::host::{Host, Refused, Rows};
use crate::http::{Body, Method, Outcome, Peer, Request, Response};
use crate::login::{Login, Logins, is_same_secret};
use crate::page::{FILES, File};
use crate::queries::{self, Query, filled};

/// Settings of the console.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Port, which the cookie's name contains: cookies do not distinguish ports.
    pub port: u16,
    /// Names that the Host header may have.
    pub hosts: Vec<String>,
    /// Figures need a login from other addresses than loopback.
    pub needs_login: bool,
    /// Maximum number of connections that are served at the same time, and of those that are rejected.
    pub connections_max: usize,
}

/// Time that one rendering of the metrics serves all scrapers.
const METRICS_FOR: Duration = Duration::from_secs(1);
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Statements in a list for a range of time.
const TOP_MAX: usize = 100;

/// The code that answers a path.
#[derive(Clone, Copy)]
enum Handler {
    Metrics,
    Facts,
    History,
    Login,
    Logout,
    Me,
    Statements,
    Statement,
    Kill,
    Queries(&'static [Query]),
}

/// Login that a path needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// A login if the client is not local.
    Figures,
    Session,
}

struct Route {
    path: &'static str,
    method: Method,
    needs: Needs,
    handler: Handler,
}

const fn get(path: &'static str, needs: Needs, handler: Handler) -> Route {
    Route { path, method: Method::Get, needs, handler }
}

const fn post(path: &'static str, needs: Needs, handler: Handler) -> Route {
    Route { path, method: Method::Post, needs, handler }
}

const ROUTES: &[Route] = &[
    get("/metrics", Needs::Figures, Handler::Metrics),
    get("/api/facts", Needs::Figures, Handler::Facts),
    get("/api/history", Needs::Figures, Handler::History),
    get("/api/me", Needs::Session, Handler::Me),
    post("/api/login", Needs::Nothing, Handler::Login),
    post("/api/logout", Needs::Session, Handler::Logout),
    get("/api/statements", Needs::Session, Handler::Statements),
    get("/api/statement", Needs::Session, Handler::Statement),
    get("/api/sessions", Needs::Session, Handler::Queries(queries::SESSIONS)),
    get("/api/locks", Needs::Session, Handler::Queries(queries::LOCKS)),
    get("/api/replication", Needs::Session, Handler::Queries(queries::REPLICATION)),
    get("/api/storage", Needs::Session, Handler::Queries(queries::STORAGE)),
    get("/api/settings", Needs::Session, Handler::Queries(queries::SETTINGS)),
    get("/api/errors", Needs::Session, Handler::Queries(queries::ERRORS)),
    post("/api/kill", Needs::Session, Handler::Kill),
];

/// A request that the worker thread answers.
pub(crate) struct Job {
    pub connection: u64,
    request: Request,
    peer: Peer,
    route: &'static Route,
    /// The client is local, or figures need no login.
    is_trusted: bool,
}

/// Answers what needs no login, and passes the rest on to the worker thread.
pub(crate) struct Routes {
    pub settings: Settings,
    pub host: Arc<dyn Host>,
    metrics: Mutex<Option<(Instant, Arc<[u8]>)>>,
}

impl Routes {
    pub fn new(settings: Settings, host: Arc<dyn Host>) -> Routes {
        Routes { settings, host, metrics: Mutex::default() }
    }

    /// Answers a request of a connection, or passes it on as a job.
    pub fn serve(&self, request: Request, peer: Peer, connection: u64, jobs: &SyncSender<Job>) -> Outcome {
        let done = |response| Outcome::Done(response);
        let named = request.header("host").map(host_name);
        let is_known = match named {
            // HTTP/1.0 of a scraper: no browser leaves it out.
            None => true,
            Some(Some(name)) => is_known_host(name, &self.settings.hosts),
            Some(None) => false,
        };
        if !is_known {
            return done(Response::error(421, "this host name is not one of metrics_hosts"));
        }
        if let Some(file) = FILES.iter().find(|file| file.path == request.path) {
            return done(match request.method {
                Method::Post => Response::status(405),
                _ => static_file(file),
            });
        }
        let method = if request.method == Method::Head { Method::Get } else { request.method };
        let Some(route) = ROUTES.iter().find(|route| route.path == request.path) else {
            return done(Response::status(404));
        };
        if route.method != method {
            return done(Response::status(405));
        }
        if method == Method::Post
            && let Some(response) = refuse_post(&request, &peer)
        {
            return done(response);
        }
        let is_trusted = !self.settings.needs_login || is_local(&peer, named.flatten());
        if route.needs == Needs::Figures && is_trusted {
            return done(self.figures(route.handler, &request));
        }
        match jobs.try_send(Job { connection, request, peer, route, is_trusted }) {
            Ok(()) => Outcome::Later,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => done(Response::status(503)),
        }
    }

    fn figures(&self, handler: Handler, request: &Request) -> Response {
        match handler {
            Handler::Metrics => Response::of(METRICS_TYPE, Body::Shared(self.metrics())),
            Handler::Facts => Response::json(200, &self.host.facts()),
            Handler::History => self.history(request),
            _ => Response::status(404),
        }
    }

    /// Returns the metrics, rendered at most once a second.
    fn metrics(&self) -> Arc<[u8]> {
        let mut kept = self.metrics.lock();
        if let Some((at, text)) = &*kept
            && at.elapsed() < METRICS_FOR
        {
            return Arc::clone(text);
        }
        let text: Arc<[u8]> = self.host.metrics().into_bytes().into();
        *kept = Some((Instant::now(), Arc::clone(&text)));
        text
    }

    fn history(&self, request: &Request) -> Response {
        let Some(history) = self.host.history() else {
            return Response::error(404, "metrics_history is OFF");
        };
        let number = |name: &str| request.parameter(name).map_or(Some(0), |text| text.parse::<u64>().ok());
        let (Some(tier), Some(after)) = (number("tier"), number("after")) else {
            return Response::status(400);
        };
        let names: Vec<&str> = request.parameter("series").unwrap_or_default().split(',').take(64).collect();
        match usize::try_from(tier) {
            Ok(tier) if tier < TIERS.len() => {
                Response::json(200, &figures::history(history, tier, after, &names))
            }
            _ => Response::status(400),
        }
    }
}

fn static_file(file: &File) -> Response {
    Response::of(file.content_type, Body::Static(file.bytes))
}

/// Returns why a POST is rejected whatever it asks for.
fn refuse_post(request: &Request, peer: &Peer) -> Option<Response> {
    let is_json = request.header("content-type").is_some_and(|text| {
        text.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    });
    if !is_json {
        return Some(Response::error(415, "the body must be application/json"));
    }
    let scheme = if peer.encryption.is_some() { "https" } else { "http" };
    let own = request.header("host").map(|host| format!("{scheme}://{host}"));
    let is_own = own.is_some() && request.header("origin").map(str::to_owned) == own;
    if !is_own {
        return Some(Response::error(403, "the request comes from another site"));
    }
    if !peer.is_private() {
        return Some(Response::error(403, "logins need https, or a client on the server's machine"));
    }
    None
}

/// Returns the name in a Host header, without its port; `None` if it is malformed.
fn host_name(text: &str) -> Option<&str> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            name.parse::<Ipv6Addr>().ok()?;
            (name, port)
        }
        None => text.find(':').map_or((text, ""), |place| text.split_at(place)),
    };
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    (is_port && !name.is_empty()).then_some(name)
}

fn is_known_host(name: &str, hosts: &[String]) -> bool {
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
}

/// Returns whether a client is local: it connects from this machine, to an address of this machine alone. A
/// proxy on this machine is addressed by another name, so its clients are not local.
fn is_local(peer: &Peer, host: Option<&str>) -> bool {
    let is_loopback_name = |name: &str| {
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    };
    peer.is_loopback() && host.is_none_or(is_loopback_name)
}

/// Answers the requests that need a login, on a thread of its own.
pub(crate) struct Worker {
    pub routes: Arc<Routes>,
    pub logins: Logins,
}

impl Worker {
    pub fn answer(&mut self, job: &Job) -> Response {
        let Job { request, peer, route, is_trusted, .. } = job;
        let now = Instant::now();
        if route.needs == Needs::Figures {
            return match *is_trusted || self.may_see_figures(request, peer, now) {
                true => self.routes.figures(route.handler, request),
                false => needs_login(route.handler),
            };
        }
        if !peer.is_private() {
            return Response::error(403, "logins need https, or a client on the server's machine");
        }
        if let Handler::Login = route.handler {
            return self.log_in(request, peer, now);
        }
        let cookie = self.cookie();
        let Some(key) = request.cookie(&cookie) else { return needs_login(route.handler) };
        let history = self.routes.host.history().cloned();
        let Some(login) = self.logins.find(key, peer, now) else { return needs_login(route.handler) };
        if request.method == Method::Post {
            let token = request.header("x-cohort-token").unwrap_or_default();
            if !is_same_secret(token.as_bytes(), login.token.as_bytes()) {
                return Response::error(403, "the token is missing or wrong");
            }
        }
        match route.handler {
            Handler::Me => Response::json(200, &me(login)),
            Handler::Logout => {
                self.logins.end(key);
                Response::json(200, &json!({})).with("Set-Cookie", &format!("{cookie}=; Path=/; Max-Age=0"))
            }
            Handler::Kill => kill(login, request),
            Handler::Queries(list) => run_all(login, list, request),
            Handler::Statement => statement(login, request, history.as_deref()),
            Handler::Statements => match request.parameter("minutes") {
                None => run_all(login, queries::STATEMENTS, request),
                Some(minutes) => match (minutes.parse(), &history) {
                    (Ok(minutes), Some(history)) => {
                        statements_of(login, &figures::top(history, minutes, TOP_MAX))
                    }
                    (Ok(_), None) => Response::error(404, "metrics_history is OFF"),
                    (Err(_), _) => Response::status(400),
                },
            },
            Handler::Metrics | Handler::Facts | Handler::History | Handler::Login => Response::status(404),
        }
    }

    fn cookie(&self) -> String {
        format!("cohort_{}", self.routes.settings.port)
    }

    /// Checks a session, a token or a password for figures.
    fn may_see_figures(&mut self, request: &Request, peer: &Peer, now: Instant) -> bool {
        if let Some(key) = request.cookie(&self.cookie())
            && peer.is_private()
            && self.logins.find(key, peer, now).is_some()
        {
            return true;
        }
        let Some((scheme, given)) = request.header("authorization").and_then(|text| text.split_once(' '))
        else {
            return false;
        };
        if scheme.eq_ignore_ascii_case("bearer") {
            let token = self.routes.host.token();
            return token.is_some_and(|token| is_same_secret(&token, given.trim().as_bytes()));
        }
        // A password is not even looked at if it came over the network unencrypted.
        if !scheme.eq_ignore_ascii_case("basic") || !peer.is_private() {
            return false;
        }
        let decoded = STANDARD.decode(given.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let Some((user, password)) = decoded.as_deref().and_then(|text| text.split_once(':')) else {
            return false;
        };
        self.routes.host.check_password(user, password, peer).is_ok()
    }

    fn log_in(&mut self, request: &Request, peer: &Peer, now: Instant) -> Response {
        let body: Option<Value> = serde_json::from_slice(&request.body).ok();
        let text = |name: &str| body.as_ref().and_then(|body| body.get(name)).and_then(Value::as_str);
        let (Some(user), Some(password)) = (text("user"), text("password")) else {
            return Response::status(400);
        };
        let name = self.cookie();
        // A browser that logs in again does not need its session before.
        if let Some(key) = request.cookie(&name) {
            self.logins.end(key);
        }
        if self.logins.is_full(now) {
            return Response::error(503, "too many logins; sessions end after 15 minutes without a request");
        }
        let session = match self.routes.host.log_in(user, password, peer) {
            Ok(session) => session,
            Err(refused) => return refusal(403, &refused),
        };
        let secure = if peer.encryption.is_some() { "; Secure" } else { "" };
        let (key, login) = self.logins.add(session, now);
        let cookie = format!("{name}={key}; Path=/; HttpOnly; SameSite=Strict{secure}");
        Response::json(200, &me(login)).with("Set-Cookie", &cookie)
    }
}

fn needs_login(handler: Handler) -> Response {
    let response = Response::error(401, "log in first");
    match handler {
        // For scrapers. The page asks for a login by itself.
        Handler::Metrics => response.with("WWW-Authenticate", "Basic realm=\"Cohort\", charset=\"UTF-8\""),
        _ => response,
    }
}

fn me(login: &Login) -> Value {
    let (user, host) = login.session.account();
    json!({ "user": user, "host": host, "token": login.token })
}

fn refusal(status: u16, refused: &Refused) -> Response {
    Response::json(status, &json!({ "error": refused.message, "number": refused.number }))
}

fn rows_json(result: Result<Rows, Refused>) -> Value {
    match result {
        Ok(Rows { columns, rows, is_cut }) => json!({ "columns": columns, "rows": rows, "cut": is_cut }),
        Err(Refused { number, message }) => json!({ "error": message, "number": number }),
    }
}

/// Runs the statements of an endpoint. One that fails, for lack of a privilege, has its error instead of
/// rows.
fn run_all(login: &mut Login, list: &[Query], request: &Request) -> Response {
    let mut all = Map::new();
    for query in list {
        let Some(sql) = filled(query.sql, request) else { return Response::status(400) };
        all.insert(query.key.to_owned(), rows_json(login.session.run(&sql)));
    }
    Response::json(200, &Value::Object(all))
}

/// Returns a statement, and its minutes in the history.
fn statement(login: &mut Login, request: &Request, history: Option<&cohort_observe::History>) -> Response {
    let Some(sql) = filled(queries::STATEMENT[0].sql, request) else { return Response::status(400) };
    let rows = login.session.run(&sql);
    let mut minutes = Vec::new();
    if let (Some(history), Ok(_)) = (history, &rows)
        && let Some(digest) = request.parameter("digest").and_then(|text| u128::from_str_radix(text, 16).ok())
    {
        let of = |slot: &cohort_observe::Slot| {
            let top = slot.top.iter().find(|top| top.digest == digest)?;
            Some(json!([slot.begin_us / 1000, top.calls, top.errors, top.latency_us, top.rows_examined]))
        };
        minutes = history.read(TIERS.len() - 1, 0, of).slots.into_iter().flatten().collect();
    }
    Response::json(200, &json!({ "statement": rows_json(rows), "minutes": minutes }))
}

/// Returns the statements of a range of time: their figures are the history's, their texts SQL's.
fn statements_of(login: &mut Login, top: &[cohort_observe::TopStatement]) -> Response {
    let digests: Vec<String> = top.iter().map(|top| format!("'{:032x}'", top.digest)).collect();
    // With no digest the statement still checks the account's rights.
    let list = if digests.is_empty() { "''".to_owned() } else { digests.join(",") };
    let rows = login.session.run(&format!("{} ({list})", queries::STATEMENTS_OF));
    let is_refused = rows.is_err();
    let of = |top: &cohort_observe::TopStatement| {
        json!({
            "DIGEST": format!("{:032x}", top.digest), "CALLS": top.calls, "ERRORS": top.errors,
            "SUM_US": top.latency_us, "ROWS_EXAMINED": top.rows_examined,
        })
    };
    let figures: Vec<Value> = if is_refused { Vec::new() } else { top.iter().map(of).collect() };
    Response::json(200, &json!({ "statements": rows_json(rows), "figures": figures }))
}

/// KILL of one statement: by its own id, so that it does not hit the connection's next one.
fn kill(login: &mut Login, request: &Request) -> Response {
    let body: Option<Value> = serde_json::from_slice(&request.body).ok();
    let id = body.as_ref().and_then(|body| body.get("query_id")).and_then(Value::as_u64);
    let Some(id) = id else { return Response::status(400) };
    match login.session.run(&format!("KILL QUERY ID {id}")) {
        Ok(_) => Response::json(200, &json!({ "killed": id })),
        Err(refused) => refusal(403, &refused),
    }
}

#[cfg(test)]
mod tests;
