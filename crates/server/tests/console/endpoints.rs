//! Endpoints of the console: logins, rights, limits, and clients that misbehave, against one server each.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use crate::support::{Cohort, free_port, wait_until};
use crate::web::{Answer, Login, connect, credentials, exchange, exchange_tls, get, log_in, post, post_text};

fn server(options: &[&str]) -> (Cohort, u16) {
    let port = free_port();
    let own = format!("--metrics-port={port}");
    (Cohort::new(&[&[own.as_str()], options].concat()), port)
}

/// Rows of a part of an answer, or the number of its error.
fn part(answer: &Answer, key: &str) -> Result<usize, u64> {
    let json = answer.json();
    let part = &json[key];
    match part["rows"].as_array() {
        Some(rows) => Ok(rows.len()),
        None => Err(part["number"].as_u64().unwrap_or_else(|| panic!("{key}: {json}"))),
    }
}

/// The id of the running statement that contains a word.
fn query_id(client: &mut mysql::Conn, word: &str) -> u64 {
    let sql = format!(
        "SELECT QUERY_ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%{word}%' AND INFO NOT LIKE '%PROCESSLIST%'"
    );
    let mut found = None;
    wait_until("the statement runs", || {
        found = client.query_first(&sql).expect("asked");
        found.is_some()
    });
    found.expect("it was found")
}

/// Rights are those of SQL, and change with those of the account while it is logged in.
#[test]
fn accounts_see_and_do_what_their_sql_may() {
    let (server, port) = server(&["--server-audit-logging=ON", "--server-audit-file-path=audit.log"]);
    server.sql(
        "CREATE USER poor@localhost IDENTIFIED BY 'p'; CREATE USER watcher@localhost IDENTIFIED BY 'w';
         GRANT PROCESS ON *.* TO watcher@localhost; CREATE USER socket@localhost IDENTIFIED VIA unix_socket;
         CREATE USER modern@localhost IDENTIFIED VIA ed25519 USING PASSWORD('m');
         CREATE USER expired@localhost IDENTIFIED BY 'e' PASSWORD EXPIRE; SET GLOBAL disconnect_on_expired_password = ON;
         CREATE USER locked@localhost IDENTIFIED BY 'l' ACCOUNT LOCK; CREATE USER tls@localhost IDENTIFIED BY 't' REQUIRE SSL;
         CREATE USER x509@localhost IDENTIFIED BY 'x' REQUIRE X509; CREATE ROLE r; CREATE USER guessed@localhost IDENTIFIED BY 'g';
         CREATE USER full@localhost IDENTIFIED BY 'f' WITH MAX_USER_CONNECTIONS 1",
    );
    // Who may log in, in plain text from loopback, and over TLS.
    for (user, password, plain, encrypted) in [
        ("root", "", 200, 200),
        ("poor", "p", 200, 200),
        ("poor", "P", 403, 403),
        ("poor", "", 403, 403),
        ("stranger", "p", 403, 403),
        ("r", "", 403, 403),
        ("socket", "", 403, 403),
        ("modern", "m", 200, 200),
        ("modern", "n", 403, 403),
        ("expired", "e", 403, 403),
        ("locked", "l", 403, 403),
        ("tls", "t", 403, 200),
        ("x509", "x", 403, 403),
        ("poor'; --", "p", 403, 403),
    ] {
        let body = credentials(user, password);
        assert_eq!(post(port, "/api/login", "", &body).status, plain, "{user} {password}");
        let found = exchange_tls(port, &post_text(port, "/api/login", "https", "", &body));
        assert_eq!(found.status, encrypted, "{user} {password} over TLS: {found:?}");
        assert_eq!(found.head.contains("; Secure"), encrypted == 200, "{}", found.head);
    }

    // What each sees.
    server.sql("SET GLOBAL init_connect = 'SELECT SLEEP(1000)'");
    let (poor, watcher, root) =
        (log_in(port, "poor", "p"), log_in(port, "watcher", "w"), log_in(port, "root", ""));
    server.sql("SET GLOBAL init_connect = ''");
    let mut client = server.client();
    let denied = Err(1227);
    for (path, key, of_poor) in [
        ("/api/statements", "statements", denied),
        ("/api/statements?minutes=5", "statements", denied),
        ("/api/sessions", "transactions", denied),
        ("/api/locks", "engine_status", denied),
        ("/api/errors", "errors", Err(1142)),
    ] {
        assert_eq!(part(&get(port, path, &poor.cookie), key), of_poor, "{path}");
        let of_root = get(port, path, &root.cookie);
        assert!(part(&of_root, key).is_ok(), "{path} {key}: {}", of_root.body);
    }
    for path in ["sessions", "locks", "replication", "storage", "settings", "errors", "statements"] {
        let found = get(port, &format!("/api/{path}"), &root.cookie);
        assert_eq!(found.status, 200, "{path}");
        for (key, part) in found.json().as_object().expect("parts") {
            assert!(part["rows"].is_array(), "{path} {key}: {part}");
        }
    }
    // Own sessions only, and all.
    let own = get(port, "/api/sessions", &poor.cookie).json()["sessions"]["rows"].clone();
    let users: Vec<&serde_json::Value> = own.as_array().expect("rows").iter().map(|row| &row[1]).collect();
    assert_eq!(users, ["poor"; 3]);
    assert!(part(&get(port, "/api/sessions", &watcher.cookie), "sessions").expect("rows") > 3);
    assert!(get(port, "/api/statements", &watcher.cookie).body.contains("COHORT_STATEMENTS"));

    // KILL of one statement.
    let mut slow = server.client();
    let running = std::thread::spawn(move || slow.query_drop("SELECT SLEEP(300) /* victim */"));
    let id = query_id(&mut client, "SLEEP(300)");
    let body = format!("{{\"query_id\":{id}}}");
    let found = post(port, "/api/kill", &watcher.headers(), &body);
    assert_eq!((found.status, found.json()["number"].as_u64()), (403, Some(1095)), "{found:?}");
    assert_eq!(post(port, "/api/kill", &root.cookie, &body).status, 403, "without the token");
    assert_eq!(post(port, "/api/kill", &root.headers(), &body).status, 200);
    running.join().expect("ended").expect_err("it was interrupted");
    let found = post(port, "/api/kill", &root.headers(), &body);
    assert_eq!(found.json()["number"].as_u64(), Some(1957), "the statement is over: {found:?}");

    // A session ends when its account could not log in again.
    let ask = |login: &Login| get(port, "/api/me", &login.cookie).status;
    let change = |client: &mut mysql::Conn, sql: &str| client.query_drop(sql).expect("changed");
    for (sql, undo) in [
        ("ALTER USER watcher@localhost ACCOUNT LOCK", "ALTER USER watcher@localhost ACCOUNT UNLOCK"),
        ("ALTER USER watcher@localhost IDENTIFIED BY 'v'", "ALTER USER watcher@localhost IDENTIFIED BY 'w'"),
        ("ALTER USER watcher@localhost PASSWORD EXPIRE", "ALTER USER watcher@localhost IDENTIFIED BY 'w'"),
        ("ALTER USER watcher@localhost REQUIRE SSL", "ALTER USER watcher@localhost REQUIRE NONE"),
        (
            "DROP USER watcher@localhost",
            "CREATE USER watcher@localhost IDENTIFIED BY 'w'; GRANT PROCESS ON *.* TO watcher@localhost",
        ),
        (
            "CREATE USER watcher@'127.0.0.1' IDENTIFIED BY 'w'; DROP USER watcher@localhost",
            "DROP USER watcher@'127.0.0.1'; CREATE USER watcher@localhost IDENTIFIED BY 'w'",
        ),
    ] {
        let login = log_in(port, "watcher", "w");
        assert_eq!(ask(&login), 200, "{sql}");
        change(&mut client, sql);
        assert_eq!(ask(&login), 401, "{sql}");
        change(&mut client, undo);
        assert_eq!(ask(&login), 401, "{sql}: it does not come back");
    }
    // Revoked rights count from the next request on.
    let login = log_in(port, "watcher", "w");
    change(&mut client, "GRANT PROCESS ON *.* TO watcher@localhost");
    assert!(part(&get(port, "/api/statements", &login.cookie), "statements").is_ok());
    change(&mut client, "REVOKE PROCESS ON *.* FROM watcher@localhost");
    assert_eq!(part(&get(port, "/api/statements", &login.cookie), "statements"), denied);
    // KILL of the connection ends the session, which is a row of the process list.
    let id: u64 = client
        .query_first("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'watcher' ORDER BY ID DESC")
        .expect("asked")
        .expect("a session");
    change(&mut client, &format!("KILL {id}"));
    assert_eq!(ask(&login), 401);
    // A limit of connections is one of the console's sessions, too.
    let full = log_in(port, "full", "f");
    assert_eq!(post(port, "/api/login", "", &credentials("full", "f")).status, 403);
    assert_eq!(post(port, "/api/logout", &full.headers(), "{}").status, 200);
    assert_eq!(ask(&full), 401);
    log_in(port, "full", "f");

    change(&mut client, "SET GLOBAL max_password_errors = 3");
    // Guessed passwords block the account, as those of clients do.
    for n in 0..4 {
        let found = post(port, "/api/login", "", &credentials("guessed", &format!("x{n}")));
        assert_eq!(found.json()["number"].as_u64(), Some(if n < 3 { 1045 } else { 4150 }), "{n}");
    }
    assert_eq!(
        post(port, "/api/login", "", &credentials("guessed", "g")).json()["number"].as_u64(),
        Some(4150)
    );
    change(&mut client, "FLUSH PRIVILEGES");
    log_in(port, "guessed", "g");

    let audit = std::fs::read_to_string(server.datadir.join("audit.log")).expect("the audit log");
    for (user, event) in [
        ("poor", "CONNECT"),
        ("poor", "FAILED_CONNECT"),
        ("full", "DISCONNECT"),
        ("stranger", "FAILED_CONNECT"),
        ("watcher", "QUERY"),
    ] {
        let is_there = audit
            .lines()
            .any(|line| line.contains(&format!(",{user},")) && line.contains(&format!(",{event},")));
        assert!(is_there, "{user} {event}: {audit}");
    }
    assert!(!audit.contains("'p'") || !server.log().contains("password"), "no password is logged");
}

#[test]
fn requests_of_others_are_rejected() {
    let (_server, port) = server(&["--metrics-hosts=db.example, other.example"]);
    let long = "x".repeat(9000);
    let many = "a: b\r\n".repeat(100);
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: DB.example\r\n\r\n".to_owned(), 200),
        ("GET / HTTP/1.1\r\nHost: other.example:80\r\n\r\n".to_owned(), 200),
        ("GET / HTTP/1.1\r\nHost: rebound.example\r\n\r\n".to_owned(), 421),
        ("GET /metrics HTTP/1.1\r\nHost: rebound.example\r\n\r\n".to_owned(), 421),
        ("GET /api/facts HTTP/1.1\r\nHost: rebound.example\r\n\r\n".to_owned(), 421),
        // Through a proxy on this machine, whose clients are not local.
        ("GET /metrics HTTP/1.1\r\nHost: db.example\r\n\r\n".to_owned(), 401),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET /metrics HTTP/1.0\r\n\r\n".to_owned(), 200),
        (format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"), 431),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), 431),
        ("PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 405),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc".to_owned(), 405),
        ("POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n".to_owned(), 413),
        ("GET /api/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 401),
        ("GET /api/sessions HTTP/1.1\r\nHost: localhost\r\nCookie: cohort_1=a\r\n\r\n".to_owned(), 401),
        ("GET /api/history?tier=9 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 400),
        ("GET /..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 404),
    ] {
        let found = exchange(port, &request);
        assert_eq!(found.status, status, "{request:.100}");
        assert!(found.head.contains("Content-Security-Policy: default-src 'none'"), "{}", found.head);
    }
    // A page of another site sends its own Origin.
    for origin in ["https://evil.example", "null", "http://localhost:1"] {
        let request = post_text(port, "/api/kill", "http", "", "{}");
        let own = format!("Origin: http://localhost:{port}\r\n");
        let found = exchange(port, &request.replace(&own, &format!("Origin: {origin}\r\n")));
        assert_eq!(found.status, 403, "{origin}");
    }
}

#[test]
fn a_token_of_a_file_is_for_figures_only() {
    let (server, port) = server(&["--metrics-hosts=db.example", "--metrics-token-file=token"]);
    let ask = |path: &str, token: &str| {
        exchange(
            port,
            &format!("GET {path} HTTP/1.1\r\nHost: db.example\r\nAuthorization: Bearer {token}\r\n\r\n"),
        )
        .status
    };
    assert_eq!(ask("/metrics", "abc"), 401, "there is no file");
    std::fs::write(server.datadir.join("token"), "abc\n").expect("written");
    for (path, token, status) in [
        ("/metrics", "abc", 200),
        ("/api/facts", "abc", 200),
        ("/metrics", "ab", 401),
        ("/api/sessions", "abc", 401),
    ] {
        assert_eq!(ask(path, token), status, "{path} {token}");
    }
    std::fs::write(server.datadir.join("token"), "other").expect("written");
    assert_eq!((ask("/metrics", "abc"), ask("/metrics", "other")), (401, 200), "it is read again");
    std::fs::write(server.datadir.join("token"), "").expect("written");
    assert_eq!((ask("/metrics", ""), ask("/metrics", "other")), (401, 401), "an empty one is none");
}

/// A thousand scrapes at once are answered, each with the metrics or with status 503. Readers that take
/// nothing are cut, and delay no other client.
#[test]
fn many_and_slow_clients_are_bounded() {
    let (server, port) = server(&[]);
    let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
    let begun = Instant::now();
    let mut all: Vec<TcpStream> = (0..500).map(|_| connect(port)).collect();
    all.iter_mut().for_each(|stream| stream.write_all(request.as_bytes()).expect("sent"));
    all.extend((0..500).map(|_| {
        let mut stream = connect(port);
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    }));
    let (mut served, mut refused) = (0, 0);
    for mut stream in all {
        let mut text = Vec::new();
        match stream.read_to_end(&mut text) {
            Ok(_) if text.starts_with(b"HTTP/1.1 200 ") => served += 1,
            Ok(_) if text.starts_with(b"HTTP/1.1 503 ") || text.is_empty() => refused += 1,
            Ok(_) => panic!("{}", String::from_utf8_lossy(&text)),
            Err(_) => refused += 1,
        }
    }
    assert!(served >= 100 && served + refused == 1000, "{served} {refused}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(get(port, "/metrics", "").status, 200);

    // Requests that never end, and answers that are never read.
    let slow: Vec<TcpStream> = (0..100)
        .map(|n| {
            let mut stream = connect(port);
            let text = if n % 2 == 0 { "GET /metr" } else { request.as_str() };
            stream.write_all(text.as_bytes()).expect("sent");
            stream
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(get(port, "/api/facts", "").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    // They are closed in the end, though their clients do nothing.
    let open = || std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("listed").count();
    let with_slow = open();
    wait_until("slow clients are closed", || open() + 90 < with_slow);
    drop(slow);
}

/// The history is there after a restart; a damaged file costs a warning.
#[test]
fn the_history_survives_a_restart_and_damage() {
    let scratch = tempfile::tempdir().expect("made");
    let port = free_port();
    let option = format!("--metrics-port={port}");
    let ask = |tier: u64| get(port, &format!("/api/history?tier={tier}&series=questions"), "").json();
    let count = |tier: u64| ask(tier)["begin"].as_array().map_or(0, Vec::len);
    let mut server = Cohort::start(scratch.path(), "data", &[&option]);
    wait_until("ten seconds pass", || count(1) >= 1);
    let file = server.datadir.join("metrics_history.bin");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    let before = ask(1)["begin"][0].clone();
    assert!(server.tool("mariadb-admin", &["shutdown"]).0);
    assert_eq!(server.exit_code(), Some(0));
    let mut server = Cohort::start(scratch.path(), "data", &[&option]);
    assert_eq!(ask(1)["begin"][0], before);
    assert!(server.tool("mariadb-admin", &["shutdown"]).0);
    assert_eq!(server.exit_code(), Some(0));
    let mut bytes = std::fs::read(&file).expect("read");
    bytes[20] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    let server = Cohort::start(scratch.path(), "data", &[&option]);
    assert_eq!(count(1), 0);
    assert!(server.log().contains("[Warning] cohortd: The history of figures"), "{}", server.log());
    assert!(server.datadir.join("metrics_history.bin.damaged").exists());
}
