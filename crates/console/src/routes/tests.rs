use std::sync::mpsc::sync_channel;

use cohort_vfs::World;

use super::*;
use crate::host::Session;

struct Stub;

struct StubSession;

impl Session for StubSession {
    fn account(&self) -> (&str, &str) {
        ("ann", "localhost")
    }
    fn is_valid(&self, _: &Peer) -> bool {
        true
    }
    fn is_killed(&self) -> bool {
        false
    }
    fn run(&mut self, sql: &str) -> Result<Rows, Refused> {
        match sql.starts_with("KILL") {
            true => Err(Refused { number: 1095, message: "You are not owner".into() }),
            false => Ok(Rows { columns: vec!["sql".into()], rows: vec![vec![sql.into()]], is_cut: false }),
        }
    }
}

impl Host for Stub {
    fn metrics(&self) -> String {
        "figures".into()
    }
    fn facts(&self) -> Value {
        json!({ "name": "x" })
    }
    fn history(&self) -> Option<&Arc<cohort_observe::History>> {
        None
    }
    fn accept_tls(&self, _: Vec<u8>) -> Option<cohort_tls::TlsStream> {
        None
    }
    fn token(&self) -> Option<Vec<u8>> {
        Some(b"secret".to_vec())
    }
    fn check_password(&self, user: &str, password: &str, _: &Peer) -> Result<(), Refused> {
        match (user, password) {
            ("ann", "a:b") => Ok(()),
            _ => Err(Refused { number: 1045, message: "Access denied".into() }),
        }
    }
    fn log_in(&self, user: &str, password: &str, peer: &Peer) -> Result<Box<dyn Session>, Refused> {
        self.check_password(user, password, peer).map(|()| Box::new(StubSession) as _)
    }
}

struct Bench {
    routes: Arc<Routes>,
    worker: Worker,
}

const LOCAL: &str = "127.0.0.1:5";
const REMOTE: &str = "192.0.2.7:5";

impl Bench {
    fn new() -> Bench {
        let settings =
            Settings { port: 9, hosts: vec!["db.example".into()], needs_login: true, connections_max: 8 };
        let routes = Arc::new(Routes::new(settings, Arc::new(Stub)));
        let worker = Worker { routes: Arc::clone(&routes), logins: Logins::new(World::real().rng) };
        Bench { routes, worker }
    }

    fn ask(&mut self, text: &str, from: &str, is_encrypted: bool) -> Response {
        let request = crate::http::parsed(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
        let encryption = is_encrypted.then_some(("TLSv1.3", "c"));
        let peer = Peer { address: from.parse().expect("an address"), encryption };
        let (jobs, waiting) = sync_channel(1);
        match self.routes.serve(request, peer, 1, &jobs) {
            Outcome::Done(response) => response,
            Outcome::Later => self.worker.answer(&waiting.try_recv().expect("a job")),
        }
    }
}

fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost:9\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

const OWN: &str = "Origin: http://localhost:9\r\nContent-Type: application/json\r\n";
const ANN: &str = r#"{"user":"ann","password":"a:b"}"#;

fn body(response: &Response) -> Value {
    serde_json::from_slice(response.body.bytes()).unwrap_or(Value::Null)
}

#[test]
fn hosts_that_are_not_ours_are_rejected() {
    let mut bench = Bench::new();
    for (host, status) in [
        ("localhost", 200),
        ("LOCALHOST:9", 200),
        ("127.0.0.1:9", 200),
        ("[::1]:9", 200),
        ("[::1]", 200),
        ("192.0.2.1", 200),
        ("db.example:443", 200),
        ("rebound.example", 421),
        ("localhost.rebound.example", 421),
        ("localhost.", 421),
        ("127.0.0.1.nip.example", 421),
        ("[::1].example", 421),
        ("[localhost]", 421),
        ("localhost:9@evil.example", 421),
        ("localhost:", 421),
        ("", 421),
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(bench.ask(&text, LOCAL, false).status, status, "{host}");
    }
}

#[test]
fn figures_need_a_login_from_other_machines() {
    let mut bench = Bench::new();
    let basic = |text: &str| format!("Authorization: Basic {}\r\n", STANDARD.encode(text));
    let (right, wrong) = (basic("ann:a:b"), basic("ann:x"));
    for (host, from, headers, encrypted, status) in [
        ("localhost", LOCAL, "", false, 200),
        ("localhost", "[::ffff:127.0.0.1]:7", "", false, 200),
        // Through a proxy on this machine.
        ("db.example", LOCAL, "X-Forwarded-For: 127.0.0.1\r\n", false, 401),
        ("192.0.2.1", REMOTE, "", false, 401),
        ("127.0.0.1", REMOTE, "", false, 401),
        ("192.0.2.1", REMOTE, "X-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\n", false, 401),
        ("192.0.2.1", REMOTE, "Authorization: Bearer secret\r\n", false, 200),
        ("192.0.2.1", REMOTE, "Authorization: bearer  secret\r\n", true, 200),
        ("192.0.2.1", REMOTE, "Authorization: Bearer secre\r\n", true, 401),
        ("192.0.2.1", REMOTE, "Authorization: Bearer\r\n", true, 401),
        ("192.0.2.1", REMOTE, &right, true, 200),
        ("192.0.2.1", REMOTE, &right, false, 401),
        ("192.0.2.1", REMOTE, &wrong, true, 401),
        ("192.0.2.1", REMOTE, "Authorization: Basic ////\r\n", true, 401),
        ("192.0.2.1", REMOTE, "Cookie: cohort_9=x\r\n", true, 401),
    ] {
        for path in ["/metrics", "/api/facts"] {
            let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
            assert_eq!(bench.ask(&text, from, encrypted).status, status, "{path} {host} {from} {headers}");
        }
    }
}

#[test]
fn posts_of_other_sites_and_without_the_token_are_rejected() {
    let mut bench = Bench::new();
    for (headers, content, status) in [
        ("", ANN, 415),
        ("Content-Type: text/plain\r\nOrigin: http://localhost:9\r\n", ANN, 415),
        ("Content-Type: application/json\r\n", ANN, 403),
        ("Content-Type: application/json\r\nOrigin: null\r\n", ANN, 403),
        ("Content-Type: application/json\r\nOrigin: http://evil.example\r\n", ANN, 403),
        ("Content-Type: application/json\r\nOrigin: https://localhost:9\r\n", ANN, 403),
        ("Content-Type: application/json\r\nOrigin: http://localhost:10\r\n", ANN, 403),
        (OWN, r#"{"user":"ann","password":"x"}"#, 403),
        (OWN, r#"{"user":"ann"}"#, 400),
        (OWN, "[", 400),
        (OWN, ANN, 200),
    ] {
        let found = bench.ask(&post("/api/login", headers, content), LOCAL, false);
        assert_eq!(found.status, status, "{headers} {content}");
    }
    // Never in clear text over a network.
    let text = post("/api/login", OWN, ANN).replace("localhost:9", "192.0.2.1:9");
    assert_eq!(bench.ask(&text, REMOTE, false).status, 403);
    let found = bench.ask(&text.replace("http:", "https:"), REMOTE, true);
    assert!(found.status == 200 && found.headers.contains("; Secure\r\n"), "{found:?}");

    let found = bench.ask(&post("/api/login", OWN, ANN), LOCAL, false);
    let cookie = found.headers.strip_prefix("Set-Cookie: ").expect("a cookie");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict\r\n"), "{cookie}");
    let (cookie, token) =
        (cookie.split(';').next().expect("a value").to_owned(), body(&found)["token"].clone());
    let token = token.as_str().expect("a token");
    for (headers, status) in [
        (String::new(), 401),
        (format!("Cookie: {cookie}\r\n"), 403),
        (format!("Cookie: {cookie}\r\nX-Cohort-Token: x\r\n"), 403),
        (format!("X-Cohort-Token: {token}\r\n"), 401),
        // The account may not do it.
        (format!("Cookie: {cookie}\r\nX-Cohort-Token: {token}\r\n"), 403),
    ] {
        let found =
            bench.ask(&post("/api/kill", &format!("{OWN}{headers}"), r#"{"query_id":7}"#), LOCAL, false);
        assert_eq!(found.status, status, "{headers}");
        let is_sql = body(&found)["number"] == 1095;
        assert_eq!(is_sql, headers.contains(&cookie) && headers.contains(token), "{headers}");
    }
    let own = format!("{OWN}Cookie: {cookie}\r\nX-Cohort-Token: {token}\r\n");
    for content in ["{}", r#"{"query_id":"7"}"#, r#"{"query_id":-1}"#, r#"{"query_id":"1 OR 1"}"#, ""] {
        assert_eq!(bench.ask(&post("/api/kill", &own, content), LOCAL, false).status, 400, "{content}");
    }
    // The cookie is worth nothing in clear text over a network, nor after the logout.
    let ask = format!("GET /api/sessions HTTP/1.1\r\nHost: 192.0.2.1\r\nCookie: {cookie}\r\n\r\n");
    assert_eq!(bench.ask(&ask, REMOTE, false).status, 403);
    assert_eq!(bench.ask(&ask, LOCAL, false).status, 200);
    assert_eq!(bench.ask(&post("/api/logout", &own, "{}"), LOCAL, false).status, 200);
    assert_eq!(bench.ask(&ask, LOCAL, false).status, 401);
}

#[test]
fn parameters_are_words_of_lists() {
    let mut bench = Bench::new();
    let found = bench.ask(&post("/api/login", OWN, ANN), LOCAL, false);
    let cookie =
        found.headers.strip_prefix("Set-Cookie: ").and_then(|text| text.split(';').next()).expect("one");
    for (path, status) in [
        ("/api/statements", 200),
        ("/api/statements?order=p99", 200),
        ("/api/statements?order=p99,1", 400),
        ("/api/statements?order=SLEEP(9)", 400),
        ("/api/statements?minutes=60", 404),
        ("/api/statement?digest=0123456789abcdef0123456789abcdef", 200),
        ("/api/statement?digest=0123456789abcdef0123456789abcde'", 400),
        ("/api/statement?digest=", 400),
        ("/api/statement", 400),
        ("/api/history", 404),
        ("/api/nothing", 404),
        ("/api/kill", 405),
        ("/../etc/passwd", 404),
    ] {
        let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n");
        assert_eq!(bench.ask(&text, LOCAL, false).status, status, "{path}");
    }
}
