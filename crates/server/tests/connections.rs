//! Real clients against the server's connection layer.

mod stub;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cohort_config::{Counter, VarId, VarValue};
use mysql::prelude::Queryable;
use socket2::{Domain, Socket, Type};
use stub::{RawClient, TestServer, login_packet, packet, wait_until};

#[test]
fn a_driver_queries_prepares_and_changes_user() {
    let server = TestServer::start(Duration::ZERO);
    let mut client = server.client();
    assert_eq!(client.query_first("SELECT 42").expect("a row"), Some(42));
    assert_eq!(client.query_first("SELECT user()").expect("a row"), Some("root@localhost".to_owned()));
    let got: Option<(i64, String, Option<i64>)> =
        client.exec_first("SELECT ?, ?, ?", (-7, "text", None::<i64>)).expect("a row");
    assert_eq!(got, Some((-7, "text".to_owned(), None)));
    let mut results = client.query_iter("two").expect("results");
    let mut seen: Vec<i64> = Vec::new();
    while let Some(set) = results.iter() {
        seen.extend(set.map(|row| row.expect("a row").get::<i64, _>(0).expect("a number")));
    }
    drop(results);
    assert_eq!(seen, [1, 2]);
    let error = client.query_drop("fail").expect_err("an error");
    assert!(error.to_string().contains("ERROR 1146 (42S02): Table 'test.t' doesn't exist"), "{error}");
    assert!(client.ping().is_ok());
    client.reset().expect("reset");
    client.change_user(mysql::ChangeUserOpts::default()).expect("the same user");
    assert!(client.select_db("shop").is_ok());
    assert!(client.select_db("missing").is_err());
    assert_eq!(
        client.query_first("SELECT @@version").expect("a row"),
        Some("10.11.99-MariaDB-cohort".to_owned())
    );
}

#[test]
fn strangers_and_bad_names_are_refused() {
    let server = TestServer::start(Duration::ZERO);
    let text = |options: mysql::OptsBuilder| mysql::Conn::new(options).expect_err("refused").to_string();
    let refused = text(server.options().user(Some("missing")).pass(Some("x")));
    assert!(
        refused.contains("1045") && refused.contains("'missing'@'localhost' (using password: YES)"),
        "{refused}"
    );
    assert!(text(server.options().pass(Some("wrong"))).contains("(using password: YES)"));
    assert!(text(server.options().db_name(Some("missing"))).contains("1049"));
    assert_eq!(server.status.get(Counter::AccessDeniedErrors), 2);
    wait_until("they are gone", || server.status.get(Counter::ThreadsConnected) == 0);
}

#[test]
fn long_packets_go_both_ways_and_too_long_ones_are_refused() {
    let server = TestServer::start(Duration::ZERO);
    server.globals.set("max_allowed_packet", &VarValue::UInt(64 << 20)).expect("dynamic");
    let mut client =
        mysql::Conn::new(server.options().max_allowed_packet(Some(64 << 20))).expect("logged in");
    let text = "a".repeat((17 << 20) + 5);
    assert_eq!(client.query_first(format!("length {text}")).expect("a row"), Some(text.len()));
    let back: String = client.exec_first("SELECT ?", (&text,)).expect("a row").expect("one");
    assert!(back == text);
    let rows = client.query_iter("big 20000").expect("rows").count();
    assert_eq!(rows, 20_000);

    server.globals.set("max_allowed_packet", &VarValue::UInt(1 << 20)).expect("dynamic");
    let mut client =
        mysql::Conn::new(server.options().max_allowed_packet(Some(64 << 20))).expect("logged in");
    assert!(client.query_drop(format!("length {}", "a".repeat(2 << 20))).is_err());
}

#[test]
fn a_packet_that_is_too_long_is_refused_in_sequence() {
    const FULL: usize = 0xff_ffff;
    let server = TestServer::start(Duration::ZERO);
    // The full packets before the end, the length of the packet in excess, and the sequence number of the
    // reply.
    for (max, whole, length, sequence) in [
        (1 << 20, 0, 2 << 20, 1),
        // A length equal to the limit is already refused.
        (1 << 20, 0, 1 << 20, 1),
        (20 << 20, 1, 5 << 20, 2),
        (40 << 20, 2, FULL, 3),
    ] {
        server.globals.set("max_allowed_packet", &VarValue::UInt(max)).expect("dynamic");
        let mut client = RawClient::login(&server);
        for n in 0..whole {
            client.stream.write_all(&packet(n, &vec![3; FULL])).expect("sent");
        }
        client.stream.write_all(&packet(whole, &vec![3; length])[..4]).expect("sent");
        let mut header = [0; 4];
        client.stream.read_exact(&mut header).expect("an answer");
        assert_eq!(header[3], sequence, "{max} {whole} {length}");
        let mut payload = vec![0; usize::from(header[0])];
        client.stream.read_exact(&mut payload).expect("an answer");
        assert_eq!((payload[0], u16::from_le_bytes([payload[1], payload[2]])), (0xff, 1153));
        assert_eq!(client.stream.read(&mut header).unwrap_or(0), 0, "it is closed");
    }
    server.globals.set("max_allowed_packet", &VarValue::UInt(1 << 20)).expect("dynamic");
    let mut client = RawClient::login(&server);
    // A chunk of a parameter.
    client.stream.write_all(&[0, 0, 0x80, 0, 24]).expect("sent");
    assert_eq!(client.payload()[1..3], 1153_u16.to_le_bytes());
}

#[test]
fn held_replies_leave_when_they_are_published_and_share_flushes() {
    let server = TestServer::start(Duration::from_millis(5));
    let clients: Vec<_> = (0..32)
        .map(|_| {
            let mut client = server.client();
            std::thread::spawn(move || {
                for _ in 0..20 {
                    client.query_drop("commit").expect("committed");
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().expect("no panic"));
    let flushes = server.stub.flushes.load(Ordering::Relaxed);
    assert!((20..400).contains(&flushes), "640 commits took {flushes} flushes");
    assert!(server.workers.total() <= 4, "no client waits on a thread");
}

/// I4: an OK was sent with the rows of the command's next statement, because there were many of them.
#[test]
fn a_large_answer_takes_no_ok_along_that_is_held() {
    let server = TestServer::start(Duration::from_millis(300));
    let mut raw = RawClient::login(&server);
    raw.stream.write_all(&packet(0, b"\x03commit-and-big 2000")).expect("sent");
    assert_eq!(raw.payload()[0], 0);
    assert!(server.stub.is_all_published(), "the OK leaves when its commit is durable");
}

#[test]
fn pipelined_commands_are_answered_in_order() {
    let server = TestServer::start(Duration::from_millis(1));
    let mut raw = RawClient::login(&server);
    let commands = ["commit", "SELECT 1", "commit", "commit", "SELECT 2"];
    let bytes: Vec<u8> =
        commands.iter().flat_map(|sql| packet(0, &[b"\x03", sql.as_bytes()].concat())).collect();
    raw.stream.write_all(&bytes).expect("sent");
    assert_eq!(raw.payload()[0], 0);
    for (expected, oks) in [(b'1', 2), (b'2', 0)] {
        let mut last = Vec::new();
        // Column count, definition, EOF, row, EOF.
        for n in 0..5 {
            let payload = raw.payload();
            if n == 3 {
                last = payload;
            }
        }
        assert_eq!(last, [1, expected]);
        (0..oks).for_each(|_| assert_eq!(raw.payload()[0], 0));
    }
}

#[test]
fn blocked_workers_do_not_hold_up_others() {
    let server = TestServer::start(Duration::ZERO);
    let blocked: Vec<_> = (0..12)
        .map(|_| {
            let mut client = server.client();
            std::thread::spawn(move || client.query_drop("block 400").expect("unblocked"))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    let mut client = server.client();
    assert_eq!(client.query_first("SELECT 1").expect("a row"), Some(1));
    assert!(begun.elapsed() < Duration::from_millis(250), "{:?}", begun.elapsed());
    blocked.into_iter().for_each(|client| client.join().expect("no panic"));
}

#[test]
fn a_panic_and_vanishing_clients_end_only_themselves() {
    let server = TestServer::start(Duration::from_millis(20));
    let mut client = server.client();
    assert!(server.client().query_drop("boom").is_err());
    for sql in ["commit", "big 50000", "SELECT 1", "block 30"] {
        let mut raw = RawClient::login(&server);
        raw.stream.write_all(&packet(0, &[b"\x03", sql.as_bytes()].concat())).expect("sent");
        raw.stream.shutdown(Shutdown::Both).expect("shut");
    }
    wait_until("their sessions are dropped", || server.stub.open.load(Ordering::Relaxed) == 1);
    assert_eq!(client.query_first("SELECT 1").expect("a row"), Some(1));
    assert!(server.status.get(Counter::AbortedClients) >= 4);
}

/// Found by a test that hung: the statements of a client that was faster than the greeting were run by the
/// accepting thread, which a panic ended.
#[test]
fn clients_that_do_not_wait_for_the_greeting_do_not_keep_others_out() {
    let server = TestServer::start(Duration::ZERO);
    let eager: Vec<TcpStream> = ["boom", "block 1000", "boom", "block 1000"]
        .into_iter()
        .map(|sql| {
            let mut stream = TcpStream::connect(server.address).expect("connected");
            let command = packet(0, &[b"\x03", sql.as_bytes()].concat());
            stream.write_all(&[login_packet(), command].concat()).expect("sent");
            stream
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(server.client().query_first("SELECT 1").expect("a row"), Some(1));
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    drop(eager);
}

#[test]
fn foreign_bytes_are_refused_and_truncated_handshakes_time_out() {
    let server = TestServer::start(Duration::ZERO);
    server.globals.set("connect_timeout", &VarValue::UInt(2)).expect("dynamic");
    let silent = TcpStream::connect(server.address).expect("connected");
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 300], &packet(1, b"short"), &packet(7, &[0; 40])] {
        let mut stream = TcpStream::connect(server.address).expect("connected");
        stream.write_all(bytes).expect("sent");
        let mut all = Vec::new();
        // The greeting, an error, the end; or a reset, because the server does not read the rest.
        let _ = stream.read_to_end(&mut all);
    }
    let begun = Instant::now();
    let mut all = Vec::new();
    let _ = (&silent).read_to_end(&mut all);
    assert!(begun.elapsed() < Duration::from_secs(4));
    assert_eq!(all[4], 10, "only the greeting came");
    wait_until("they are gone", || server.status.get(Counter::ThreadsConnected) == 0);
    let mut raw = RawClient::login(&server);
    for garbage in
        [&b""[..], b"\x17\x01", b"\x09x", b"\xff", b"\x17\x09\0\0\0\0\x01\0\0\0", b"\x1c\x01\0\0\0\x01\0\0\0"]
    {
        raw.stream.write_all(&packet(0, garbage)).expect("sent");
        let payload = raw.payload();
        assert!(payload[0] == 0xff || garbage == b"\x09x", "{garbage:?} got {payload:?}");
    }
    raw.stream.write_all(&packet(0, b"\x0e")).expect("sent");
    assert_eq!(raw.payload()[0], 0, "the connection lives");
}

#[test]
fn limits_of_connections_and_idle_time_hold() {
    let server = TestServer::start(Duration::ZERO);
    server.globals.set("max_connections", &VarValue::UInt(10)).expect("dynamic");
    let clients: Vec<_> = (0..11).map(|_| server.client()).collect();
    let error = mysql::Conn::new(server.options()).expect_err("one too many").to_string();
    assert!(error.contains("1040") || error.contains("Too many connections"), "{error}");
    drop(clients);
    wait_until("they are gone", || server.status.get(Counter::ThreadsConnected) == 0);
    server.globals.set("wait_timeout", &VarValue::UInt(1)).expect("dynamic");
    let mut idle = RawClient::login(&server);
    let begun = Instant::now();
    assert_eq!(idle.stream.read(&mut [0; 10]).expect("the end"), 0);
    assert!((900..3000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

#[test]
fn the_command_line_clients_work() {
    if Command::new("mariadb").arg("--version").output().is_err() {
        eprintln!("mariadb is not installed");
        return;
    }
    let server = TestServer::start(Duration::ZERO);
    let socket = format!("--socket={}", server.socket().display());
    let run = |program: &str, args: &[&str]| {
        let out = Command::new(program)
            .args(["--no-defaults", "-uroot", &socket])
            .args(args)
            .output()
            .expect("runs");
        (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    assert_eq!(run("mariadb", &["-N", "-e", "SELECT 7, 'seven'"]), (true, "7\tseven\n".to_owned()));
    assert_eq!(run("mariadb", &["-N", "-e", "two"]), (true, "1\n2\n".to_owned()));
    assert!(run("mariadb-admin", &["ping"]).1.contains("alive"));
    let status = run("mariadb-admin", &["status"]).1;
    assert!(status.starts_with("Uptime: ") && status.contains("Queries per second avg"), "{status}");
    assert!(run("mariadb-admin", &["shutdown"]).0);
    let server = server.server.expect("running");
    server.wait_for_stop_request();
    assert!(server.stop(Duration::from_secs(5)));
}

/// Found by reading: a session whose own commit was already acknowledged left the flush of other transactions
/// that it had ordered to the next commit.
#[test]
fn a_caller_that_orders_for_others_leads() {
    let server = TestServer::start(Duration::from_millis(1));
    let mut client = server.client();
    client.query_drop("order-other").expect("ordered");
    wait_until("it is published", || server.stub.is_all_published());
}

/// Found by counting instructions under valgrind: a worker was replaced during a long statement, and was no
/// longer needed after it. It went to sleep although no leader had flushed the transaction that it had
/// ordered.
#[test]
fn a_worker_that_is_not_needed_leads_before_it_sleeps() {
    let server = TestServer::start(Duration::ZERO);
    let stall_ms = server.globals.uint(VarId::ThreadPoolStallLimit);
    let mut client = server.client();
    let slow = std::thread::spawn(move || client.query_drop(format!("slow-commit {}", stall_ms * 6)));
    wait_until("it is answered", || slow.is_finished());
    slow.join().expect("no panic").expect("acknowledged");
}

#[test]
fn a_stop_is_bounded_whatever_statements_do() {
    let mut server = TestServer::start(Duration::ZERO);
    let mut client = server.client();
    let hung = std::thread::spawn(move || client.query_drop("hang"));
    wait_until("it runs", || server.status.get(Counter::ThreadsRunning) == 1);
    let (begun, stopped) = (Instant::now(), server.server.take().expect("running"));
    assert!(!stopped.stop(Duration::from_millis(200)), "a statement goes on");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    server.stub.hangs.store(false, Ordering::Relaxed);
    hung.join().expect("no panic").expect_err("the connection was cut");
}

/// Found by reading: a panic between incrementing and decrementing a gauge left it wrong forever.
#[test]
fn gauges_survive_panics() {
    let server = TestServer::start(Duration::ZERO);
    for _ in 0..3 {
        assert!(server.client().query_drop("boom").is_err());
    }
    wait_until("nothing runs", || server.status.get(Counter::ThreadsRunning) == 0);
    wait_until("they are gone", || server.status.get(Counter::ThreadsConnected) == 0);
}

/// Found by reading: connections that never logged in occupied all slots for connect_timeout.
#[test]
fn half_open_logins_take_nobodys_place() {
    let server = TestServer::start(Duration::ZERO);
    server.globals.set("max_connections", &VarValue::UInt(10)).expect("dynamic");
    server.globals.set("connect_timeout", &VarValue::UInt(3600)).expect("dynamic");
    let silent: Vec<TcpStream> =
        (0..300).map(|_| TcpStream::connect(server.address).expect("connected")).collect();
    wait_until("the oldest are gone", || server.status.get(Counter::ThreadsConnected) <= 128);
    let mut clients: Vec<_> = (0..10).map(|_| guest(&server).expect("a place")).collect();
    let error = guest(&server).expect_err("none is left").to_string();
    assert!(error.contains("1040"), "{error}");
    // One additional slot for an administrator.
    clients.push(server.client());
    assert!(mysql::Conn::new(server.options()).is_err());
    drop(clients);
    drop(silent);
    wait_until("they are gone", || server.status.get(Counter::ThreadsConnected) == 0);
}

/// Connects from another address of this host.
fn connect_from(address: &str, server: &TestServer) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let source = SocketAddr::new(address.parse().expect("an address"), 0);
    socket.bind(&source.into()).expect("bound");
    socket.connect(&server.address.into()).expect("connected");
    socket.into()
}

/// Ends hanging statements, also if the test fails, because dropping the server waits for them.
struct Unhang<'s>(&'s TestServer);

impl Drop for Unhang<'_> {
    fn drop(&mut self) {
        self.0.stub.hangs.store(false, Ordering::Relaxed);
    }
}

/// Found by adversarial testing: a slot was freed only when a worker had time for it, and meanwhile clients
/// were refused with error 1040.
#[test]
fn half_open_logins_end_while_all_workers_are_busy() {
    let server = TestServer::with_workers(Duration::ZERO, 3);
    server.globals.set("max_connections", &VarValue::UInt(10)).expect("dynamic");
    let unhang = Unhang(&server);
    let busy: Vec<_> = (0..3)
        .map(|_| {
            let mut client = server.client();
            std::thread::spawn(move || client.query_drop("hang").expect("answered"))
        })
        .collect();
    wait_until("no worker is left", || server.status.get(Counter::ThreadsRunning) == 3);
    let mut silent: Vec<RawClient> = Vec::new();
    for n in 0..600 {
        let stream = TcpStream::connect(server.address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        let mut client = RawClient { stream };
        assert_eq!(client.payload()[0], 10, "number {n} is greeted");
        silent.push(client);
    }
    assert!(server.status.get(Counter::ThreadsConnected) <= 3 + 128);
    drop(unhang);
    busy.into_iter().for_each(|client| client.join().expect("no panic"));
    // The newest connection, which has not timed out yet, can log in.
    let mut newest = silent.pop().expect("many");
    newest.stream.write_all(&login_packet()).expect("sent");
    assert_eq!(newest.payload()[0], 0);
}

#[test]
fn half_open_logins_of_one_address_keep_out_no_other() {
    let server = TestServer::start(Duration::ZERO);
    server.globals.set("max_connections", &VarValue::UInt(10)).expect("dynamic");
    let stream = connect_from("127.0.0.3", &server);
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    let mut slow = RawClient { stream };
    assert_eq!(slow.payload()[0], 10);
    let silent: Vec<TcpStream> = (0..400).map(|_| connect_from("127.0.0.2", &server)).collect();
    wait_until("they have ended each other", || server.status.get(Counter::AbortedConnects) >= 200);
    slow.stream.write_all(&login_packet()).expect("sent");
    assert_eq!(slow.payload()[0], 0, "it is let in, although no other client has waited for longer");
    drop(silent);
}

fn guest(server: &TestServer) -> mysql::Result<mysql::Conn> {
    mysql::Conn::new(server.options().user(Some("guest")))
}

#[test]
fn an_account_may_be_limited_and_made_to_run_a_statement_first() {
    let server = TestServer::start(Duration::ZERO);
    server.globals.set("max_user_connections", &VarValue::UInt(2)).expect("dynamic");
    let first = guest(&server).expect("a place");
    let mut second = guest(&server).expect("a place");
    let error = guest(&server).expect_err("too many").to_string();
    assert!(error.contains("1203") && error.contains("User guest already has more than"), "{error}");
    let _administrators: Vec<_> = (0..3).map(|_| server.client()).collect();
    // The session keeps its own slot.
    second.change_user(mysql::ChangeUserOpts::new().with_user(Some("guest".into()))).expect("still there");
    drop(first);
    let retry = || guest(&server).is_ok();
    wait_until("its place is free", retry);

    server.globals.set("init_connect", &VarValue::text("commit")).expect("dynamic");
    wait_until("init_connect is run", retry);
    assert!(server.stub.is_all_published(), "the login's answer waits for what init_connect committed");
    server.globals.set("init_connect", &VarValue::text("fail")).expect("dynamic");
    drop(server.client());
    wait_until("its place is free", || {
        let error = guest(&server).expect_err("init_connect failed").to_string();
        error.contains("1184") && error.contains("init_connect command failed")
    });
    assert!(server.said().contains("init_connect query failed: Table 'test.t' doesn't exist"));
}

#[test]
fn only_the_unix_socket_is_secure_enough() {
    let server = TestServer::start(Duration::ZERO);
    server.globals.set("require_secure_transport", &VarValue::Bool(true)).expect("dynamic");
    let error = mysql::Conn::new(server.options()).expect_err("not secure").to_string();
    assert!(error.contains("1045"), "{error}");
    let socket = server.socket().to_string_lossy().into_owned();
    let options = mysql::OptsBuilder::new().socket(Some(socket)).user(Some("root"));
    mysql::Conn::new(options).expect("secure");
}

/// Found by reading: a name of 120 KB, including line ends, was written to the error log.
#[test]
fn a_failed_login_writes_one_short_line() {
    let server = TestServer::start(Duration::ZERO);
    let name = format!("{}\nnext line", "x".repeat(100_000));
    assert!(mysql::Conn::new(server.options().user(Some(name))).is_err());
    assert!(mysql::Conn::new(server.options().user(Some("a\nb"))).is_err());
    wait_until("both are logged", || server.said().lines().count() == 2);
    let said = server.said();
    assert!(said.lines().all(|line| line.contains("Access denied") && line.len() < 400), "{said}");
    assert!(said.contains("'a?b'"), "{said}");
}

#[test]
fn a_port_that_is_taken_but_not_open_refuses() {
    let mut endpoints = cohort_server::Endpoints::new();
    let address = endpoints.bind_tcp("127.0.0.1", 0, 10).expect("a port")[0];
    let scratch = tempfile::tempdir().expect("made");
    let path = scratch.path().join("socket");
    endpoints.bind_unix(&path, 10).expect("a socket");
    let refused = std::io::ErrorKind::ConnectionRefused;
    assert_eq!(TcpStream::connect(address).expect_err("the endpoint is closed").kind(), refused);
    let unix = std::os::unix::net::UnixStream::connect(&path);
    assert_eq!(unix.expect_err("the endpoint is closed").kind(), refused);
}
