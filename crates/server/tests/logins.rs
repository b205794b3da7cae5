//! Logins and account restrictions: the same requests are sent to Cohort and to a real MariaDB with MariaDB's
//! client.

#[path = "support/certificates.rs"]
mod certificates;
#[path = "support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use certificates::Certificates;
use mysql::Conn;
use mysql::prelude::Queryable;
use support::{Cohort, Maria, run, text};

/// The two servers, with the same connection options.
struct Both {
    certificates: Certificates,
    cohort: Cohort,
    maria: Maria,
}

impl Both {
    fn new() -> Both {
        Both::with(&[])
    }

    /// Starts both servers. `theirs` are options for MariaDB only, for plugins that are built into Cohort.
    fn with(theirs: &[&str]) -> Both {
        let certificates = Certificates::new();
        let own = certificates.server_options();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let (cohort, maria) = (Cohort::new(&own), Maria::source(&[&own[..], theirs].concat()));
        let both = Both { certificates, cohort, maria };
        // MariaDB's installation creates these accounts and grants.
        both.as_root("DROP USER IF EXISTS ''@localhost");
        both.maria.sql("DELETE FROM mysql.db; FLUSH PRIVILEGES");
        both
    }

    fn ports(&self) -> [u16; 2] {
        [self.cohort.port, self.maria.port]
    }

    fn as_root(&self, statements: &str) {
        for port in self.ports() {
            let (is_fine, said) = ask(&[format!("--port={port}")], "root", &[], statements);
            assert!(is_fine, "{statements}: {said}");
        }
    }

    /// Returns the reply, which must be the same from both servers.
    fn answer(&self, user: &str, options: &[&str], statements: &str) -> (bool, String) {
        let [ours, theirs] =
            self.ports().map(|port| ask(&[format!("--port={port}")], user, options, statements));
        assert_eq!(ours, theirs, "{user} {options:?}: {statements}");
        ours
    }

    /// Returns the reply over the Unix sockets, which must be the same from both servers.
    fn local_answer(&self, user: &str, options: &[&str], statements: &str) -> (bool, String) {
        let sockets = [&self.cohort.socket, &self.maria.socket];
        let [ours, theirs] =
            sockets.map(|socket| ask(&[format!("--socket={}", socket.display())], user, options, statements));
        assert_eq!(ours, theirs, "{user} {options:?} over the socket: {statements}");
        ours
    }
}

fn ask(place: &[String], user: &str, options: &[&str], statements: &str) -> (bool, String) {
    let (place, user) = (&place[0], format!("--user={user}"));
    let host = if place.starts_with("--port") { vec!["--host=127.0.0.1"] } else { vec![] };
    let always = ["--no-defaults", "-N", place, &user];
    let output = run("mariadb", &[&always, &host[..], options, &["-e", statements]].concat());
    (output.status.success(), text(&output).trim().to_owned())
}

#[test]
fn ed25519_opens_as_in_mariadb() {
    let both = Both::with(&["--plugin-load-add=auth_ed25519"]);
    let key = "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY";
    both.as_root(&format!(
        "CREATE USER k IDENTIFIED VIA ed25519 USING PASSWORD('secret'); \
         CREATE USER h IDENTIFIED VIA ed25519 USING '{key}'; \
         CREATE USER two IDENTIFIED VIA mysql_native_password USING PASSWORD('old') OR ed25519 USING PASSWORD('new'); \
         CREATE USER owt IDENTIFIED VIA ed25519 USING PASSWORD('new') OR mysql_native_password USING PASSWORD('old')"
    ));
    for (user, password, opens) in [
        ("k", "secret", true),
        ("k", "Secret", false),
        ("h", "secret", true),
        ("h", "other", false),
        ("two", "old", true),
        ("two", "new", true),
        ("two", "other", false),
        ("owt", "old", true),
        ("owt", "new", true),
        ("owt", "other", false),
    ] {
        let option = format!("--password={password}");
        let (is_in, said) = both.answer(user, &[&option], "SELECT CURRENT_USER()");
        assert_eq!(is_in, opens, "{user} {password}: {said}");
    }
    let (is_in, _) = both.answer("k", &["--skip-password"], "SELECT 1");
    assert!(!is_in, "without a password");
    for shown in ["SHOW CREATE USER k", "SHOW CREATE USER h", "SHOW CREATE USER two", "SHOW GRANTS FOR k"] {
        assert!(both.answer("root", &[], shown).0);
    }
    for wrong in ["short", &"x".repeat(42), &"x".repeat(44)] {
        let create = format!("CREATE USER w IDENTIFIED VIA ed25519 USING '{wrong}'");
        assert!(!both.answer("root", &[], &create).0, "{wrong}");
    }
    assert!(both.answer("root", &[], "ALTER USER k IDENTIFIED VIA ed25519 USING PASSWORD('next')").0);
    assert!(both.answer("k", &["--password=next"], "SELECT 1").0);
    assert!(!both.answer("k", &["--password=secret"], "SELECT 1").0);
}

#[test]
fn accounts_ask_for_encryption_and_certificates() {
    let both = Both::new();
    both.as_root(
        "CREATE USER plain; CREATE USER s REQUIRE SSL; CREATE USER x REQUIRE X509; \
         CREATE USER su REQUIRE SUBJECT '/C=DE/O=Cohort/CN=client' AND ISSUER '/O=Cohort/CN=ca'; \
         CREATE USER wrong REQUIRE SUBJECT '/C=DE/O=Cohort/CN=another'; \
         CREATE USER ci REQUIRE CIPHER 'TLS_AES_256_GCM_SHA384'; CREATE USER co REQUIRE CIPHER 'RC4-MD5'",
    );
    let cert = both.certificates.option("ssl-cert", "client.pem");
    let key = both.certificates.option("ssl-key", "client.key");
    let mut entered = Vec::new();
    for user in ["plain", "s", "x", "su", "wrong", "ci", "co"] {
        for options in [&["--skip-ssl"][..], &["--ssl"], &["--ssl", &cert, &key]] {
            entered.push(both.answer(user, options, "SELECT 'in'").0);
        }
    }
    let [yes, no] = [true, false];
    let expected = [
        [yes, yes, yes],
        [no, yes, yes],
        [no, no, yes],
        [no, no, yes],
        [no, no, no],
        [no, yes, yes],
        [no, no, no],
    ];
    assert_eq!(entered, expected.concat());
}

#[test]
fn locked_accounts_and_expired_passwords() {
    let both = Both::new();
    both.as_root(
        "CREATE USER locked IDENTIFIED BY 'x' ACCOUNT LOCK; CREATE USER expired IDENTIFIED BY 'x' PASSWORD EXPIRE; \
         CREATE USER fresh IDENTIFIED BY 'x' PASSWORD EXPIRE INTERVAL 1 DAY",
    );
    assert!(!both.answer("locked", &["-px"], "SELECT 1").0);
    assert!(!both.answer("locked", &["-pwrong"], "SELECT 1").0);
    both.as_root("ALTER USER locked ACCOUNT UNLOCK");
    assert!(both.answer("locked", &["-px"], "SELECT 1").0);
    assert!(both.answer("fresh", &["-px"], "SELECT 1").0);
    for statement in ["SELECT 1", "SHOW GRANTS", "USE mysql", "ALTER USER expired IDENTIFIED BY 'y'", "DO 1"]
    {
        let (is_fine, said) = both.answer("expired", &["-px"], statement);
        assert!(!is_fine && said.contains("1820"), "{statement}: {said}");
    }
    assert!(both.answer("expired", &["-px"], "SET autocommit=1").0);
    let (is_fine, said) = both.answer("expired", &["-px"], "SET PASSWORD = PASSWORD('y'); SELECT 'changed'");
    assert!(is_fine && said == "changed", "{said}");
    assert!(both.answer("expired", &["-py"], "SELECT 1").0);
}

#[test]
fn limits_of_accounts() {
    let both = Both::new();
    both.as_root(
        "CREATE TABLE test.t (a INT); \
         CREATE USER asks WITH MAX_QUERIES_PER_HOUR 3; CREATE USER writes WITH MAX_UPDATES_PER_HOUR 2; \
         CREATE USER comes WITH MAX_CONNECTIONS_PER_HOUR 2; CREATE USER slow WITH MAX_STATEMENT_TIME 0.5; \
         CREATE USER never WITH MAX_USER_CONNECTIONS -1; GRANT INSERT ON test.t TO writes",
    );
    assert!(both.answer("asks", &[], "DO 1; DO 2").0);
    let (is_fine, said) = both.answer("asks", &[], "DO 1; DO 2");
    assert!(!is_fine && said.contains("'max_queries_per_hour' resource (current value: 3)"), "{said}");
    both.as_root("FLUSH USER_RESOURCES");
    assert!(both.answer("asks", &[], "DO 1; DO 2").0);
    let insert = "INSERT INTO test.t VALUES (1)";
    assert!(both.answer("writes", &[], &format!("{insert}; {insert}; DO 1; DO 2")).0);
    let (is_fine, said) = both.answer("writes", &[], &format!("DO 1; {insert}"));
    assert!(!is_fine && said.contains("'max_updates_per_hour'"), "{said}");
    assert!(both.answer("comes", &[], "DO 1").0 && both.answer("comes", &[], "DO 1").0);
    assert!(!both.answer("comes", &[], "DO 1").0);
    let (is_fine, said) = both.answer("slow", &[], "SELECT @@max_statement_time; SELECT SLEEP(0)");
    assert!(is_fine && said.starts_with("0.5"), "{said}");
}

#[test]
fn methods_and_networks() {
    let both = Both::new();
    let me = text(&run("id", &["-un"]));
    let me = me.trim();
    both.as_root(
        "CREATE USER either IDENTIFIED VIA unix_socket OR mysql_native_password USING PASSWORD('x'); \
         CREATE USER near@'127.0.0.0/255.0.0.0' IDENTIFIED BY 'x'; CREATE USER far@'10.0.0.0/255.0.0.0'; \
         CREATE USER nobody_here IDENTIFIED VIA unix_socket",
    );
    assert!(both.answer("either", &["-px"], "SELECT CURRENT_USER()").0);
    assert!(!both.answer("either", &["-py"], "SELECT 1").0);
    assert!(!both.local_answer("either", &[], "SELECT 1").0, "the system knows {me} by another name");
    assert!(both.answer("near", &["-px"], "SELECT CURRENT_USER()").0);
    // No account matches. MariaDB derives the error text from the name, in order not to reveal this.
    for port in both.ports() {
        assert!(!ask(&[format!("--port={port}")], "far", &[], "SELECT 1").0);
    }
    assert!(!both.local_answer("nobody_here", &[], "SELECT 1").0);
    both.as_root(&format!("CREATE OR REPLACE USER '{me}'@'%' IDENTIFIED VIA unix_socket"));
    if me != "root" {
        assert!(both.local_answer(me, &[], "SELECT CURRENT_USER()").0);
    }
    both.as_root("ALTER USER root@localhost IDENTIFIED VIA mysql_native_password OR unix_socket");
    assert!(both.local_answer("root", &[], "SELECT CURRENT_USER()").0);
}

#[test]
fn too_many_wrong_passwords_block_an_account() {
    let both = Both::new();
    both.as_root("CREATE USER careless IDENTIFIED BY 'x'; SET GLOBAL max_password_errors = 2");
    for _ in 0..2 {
        assert!(!both.answer("careless", &["-pwrong"], "SELECT 1").0);
    }
    let (is_in, said) = both.answer("careless", &["-px"], "SELECT 1");
    assert!(!is_in && said.contains("4150"), "{said}");
    both.as_root("FLUSH PRIVILEGES");
    assert!(both.answer("careless", &["-px"], "SELECT 1").0);
}

#[test]
fn privileges_of_a_role_apply_while_it_is_set() {
    let both = Both::new();
    both.as_root(
        "CREATE DATABASE d; CREATE TABLE d.t (a INT, b INT); CREATE TABLE d.u (a INT); INSERT INTO d.t VALUES (1, 2); \
         CREATE ROLE reader; CREATE ROLE writer; CREATE ROLE columns; GRANT reader TO writer; \
         GRANT SELECT ON d.* TO reader; GRANT INSERT ON d.t TO writer; GRANT SELECT (a), UPDATE (b) ON d.t TO columns; \
         CREATE USER one; GRANT writer TO one; GRANT columns TO one; CREATE USER two; GRANT reader TO two; \
         SET DEFAULT ROLE reader FOR two; CREATE USER three; CREATE USER four; GRANT writer TO four WITH ADMIN OPTION; \
         CREATE USER five",
    );
    let mut allowed = Vec::new();
    for user in ["one", "two", "three"] {
        for role in ["NONE", "reader", "writer", "columns"] {
            for statement in [
                "SELECT a FROM d.t",
                "SELECT * FROM d.t",
                "SELECT a FROM d.u",
                "INSERT INTO d.t VALUES (5, 6)",
                "UPDATE d.t SET b = 1 WHERE a = 77",
                "UPDATE d.t SET a = 1 WHERE b = 77",
                "DELETE FROM d.t",
                "SHOW TABLES FROM d",
                "SHOW GRANTS",
                "SELECT CURRENT_ROLE()",
                "USE d",
            ] {
                let sql = format!("SET ROLE {role}; {statement}");
                allowed.push(both.answer(user, &["--skip-ssl"], &sql).0);
            }
        }
        // With the role that is active after the login.
        both.answer(user, &["--skip-ssl"], "SELECT CURRENT_ROLE(); SELECT a FROM d.u");
    }
    assert!(allowed.iter().filter(|is| **is).count() > 20, "{allowed:?}");
    for (user, statement) in [
        ("three", "GRANT reader TO five"),
        ("four", "GRANT writer TO five"),
        ("four", "GRANT reader TO five"),
        ("five", "SET ROLE writer; SELECT a FROM d.t LIMIT 1"),
        ("four", "REVOKE writer FROM five"),
        ("five", "SET ROLE writer"),
        ("one", "CREATE ROLE other"),
        ("one", "DROP ROLE reader"),
        ("one", "SHOW GRANTS FOR writer"),
        ("one", "SHOW GRANTS FOR reader"),
        ("three", "SHOW GRANTS FOR reader"),
        ("three", "SET DEFAULT ROLE reader"),
        ("one", "SET DEFAULT ROLE writer"),
        ("one", "SELECT CURRENT_ROLE(); SELECT a FROM d.u"),
        ("two", "SET DEFAULT ROLE writer FOR one"),
    ] {
        both.answer(user, &["--skip-ssl"], statement);
    }
    // Revoking from a role affects the accounts that have the role.
    both.as_root("REVOKE SELECT ON d.* FROM reader");
    both.answer("two", &["--skip-ssl"], "SELECT a FROM d.t");
    both.as_root("DROP ROLE writer");
    both.answer("one", &["--skip-ssl"], "SELECT CURRENT_ROLE()");
}

#[test]
fn a_reset_of_the_connection_lifts_no_restriction() {
    let server = Cohort::new(&[]);
    server.sql(
        "CREATE USER expired IDENTIFIED BY 'x' PASSWORD EXPIRE; CREATE USER asks WITH MAX_QUERIES_PER_HOUR 2; \
         CREATE ROLE r; CREATE USER one; GRANT r TO one; SET DEFAULT ROLE r FOR one",
    );
    let code = |result: mysql::Result<()>| match result {
        Err(mysql::Error::MySqlError(error)) => error.code,
        other => panic!("{other:?}"),
    };
    let mut client = Conn::new(server.options().user(Some("asks"))).expect("logged in");
    let used = (0..10).find(|_| client.query_drop("DO 1").is_err()).expect("an end");
    assert!(used <= 2);
    client.reset().expect("reset");
    assert_eq!(code(client.query_drop("DO 1")), 1226);
    assert_eq!(code(client.exec_drop("DO 1", ())), 1226);
    // The driver reads settings itself when it connects, which an expired password forbids.
    let (is_in, said) = ask(&[format!("--port={}", server.port)], "expired", &["-px"], "SELECT 1");
    assert!(!is_in && said.contains("1820"), "{said}");
    let mut client = Conn::new(server.options().user(Some("one"))).expect("logged in");
    client.reset().expect("reset");
    assert_eq!(client.query_first("SELECT CURRENT_ROLE()").expect("a row"), Some("r".to_owned()));
}

/// Only the password itself may be changed, whatever privileges the account has.
#[test]
fn commands_of_an_account_whose_password_has_expired_are_refused() {
    let server = Cohort::new(&["--log-bin=bin", "--server-id=1"]);
    server.sql("CREATE TABLE test.t (id INT)");
    server.sql("CREATE USER expired PASSWORD EXPIRE");
    server.sql("GRANT ALL ON *.* TO expired");
    let logged_in = || {
        let mut stream = greeted(server.port);
        let head = [&(CAPABILITIES | WITH_DATABASE).to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
        let login = [&head[..], b"expired\0\0test\0mysql_native_password\0"].concat();
        stream.write_all(&packet(1, &login)).expect("taken");
        assert_eq!(read_packet(&mut stream).expect("an answer").1[0], 0);
        stream
    };
    let answer = |stream: &mut TcpStream, command: &[u8]| {
        stream.write_all(&packet(0, command)).expect("taken");
        let (_, reply) = read_packet(stream).expect("an answer");
        (reply[0] == 0xff).then(|| u16::from_le_bytes([reply[1], reply[2]]))
    };
    let dump = [&[18, 4, 0, 0, 0, 0, 0, 99, 0, 0, 0][..], b"bin.000001"].concat();
    let register = [&[21, 99, 0, 0, 0][..], &[0; 13]].concat();
    let change_user = [&b"\x11root\0\0\0\x2d\0"[..], b"mysql_native_password\0"].concat();
    let refused: [(&str, &[u8]); 18] = [
        ("COM_INIT_DB", b"\x02test"),
        ("COM_QUERY", b"\x03SELECT 1"),
        ("COM_FIELD_LIST", b"\x04t\0"),
        ("COM_REFRESH", b"\x07\x01"),
        ("COM_SHUTDOWN", b"\x08"),
        ("COM_STATISTICS", b"\x09"),
        ("COM_PROCESS_INFO", b"\x0a"),
        ("COM_PROCESS_KILL", b"\x0c\x63\0\0\0"),
        ("COM_DEBUG", b"\x0d"),
        ("COM_CHANGE_USER", &change_user),
        ("COM_BINLOG_DUMP", &dump),
        ("COM_REGISTER_SLAVE", &register),
        ("COM_STMT_PREPARE", b"\x16SELECT 1"),
        ("COM_STMT_RESET", b"\x1a\x01\0\0\0"),
        ("COM_SET_OPTION", b"\x1b\0\0"),
        ("COM_STMT_FETCH", b"\x1c\x01\0\0\0\x01\0\0\0"),
        ("COM_RESET_CONNECTION", b"\x1f"),
        ("a command that is none", b"\x63"),
    ];
    for (name, command) in refused {
        assert_eq!(answer(&mut logged_in(), command), Some(1820), "{name}");
    }
    let mut stream = logged_in();
    assert_eq!(answer(&mut stream, b"\x0e"), None, "COM_PING");
    assert_eq!(answer(&mut stream, b"\x1f"), Some(1820), "a refusal leaves the password expired");
    assert_eq!(answer(&mut stream, b"\x03SET PASSWORD = PASSWORD('new')"), None);
    assert_eq!(answer(&mut stream, b"\x1f"), None, "COM_RESET_CONNECTION");
    assert_eq!(answer(&mut stream, b"\x02test"), None, "COM_INIT_DB");
}

/// Reads a packet and its sequence number. Returns `None` if the server has closed the connection.
fn read_packet(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((head[3], payload))
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

/// Logs in with this reply to any request, with a statement after each reply. Returns the first byte of the
/// server's last packet.
fn attack(port: u16, user: &str, plugin: &[u8], answer: &[u8]) -> Option<u8> {
    const STATEMENT: &[u8] = b"\x03INSERT INTO test.hit VALUES (1)";
    /// Protocol 4.1, secure connection, plugins.
    const CAPABILITIES: u32 = 1 << 9 | 1 << 15 | 1 << 19;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("settable");
    read_packet(&mut stream).expect("a greeting");
    let head = [&CAPABILITIES.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
    let login = [&head[..], user.as_bytes(), &[0, answer.len() as u8], answer, plugin, &[0]].concat();
    // The server may already have closed the connection.
    let _ = stream.write_all(&[packet(1, &login), packet(0, STATEMENT)].concat());
    for _ in 0..5 {
        let (sequence, reply) = read_packet(&mut stream)?;
        if reply.first() != Some(&0xfe) {
            return reply.first().copied();
        }
        let _ = stream.write_all(&[packet(sequence.wrapping_add(1), answer), packet(0, STATEMENT)].concat());
    }
    panic!("{user} is asked for ever");
}

#[test]
fn wrong_answers_of_every_kind_open_nothing() {
    let server = Cohort::new(&[]);
    server.sql("CREATE TABLE test.hit (n INT)");
    server.sql("CREATE USER native IDENTIFIED BY 'secret'");
    server.sql("CREATE USER signing IDENTIFIED VIA ed25519 USING PASSWORD('secret')");
    server.sql("CREATE USER either IDENTIFIED VIA unix_socket OR mysql_native_password USING PASSWORD('a') OR ed25519 USING \
         PASSWORD('b')");
    server.sql("CREATE USER invalid IDENTIFIED VIA ed25519 USING 'invalid'");
    let long = [b'x'; 300];
    let plugins: [&[u8]; 7] = [
        b"mysql_native_password",
        b"client_ed25519",
        b"mysql_clear_password",
        b"caching_sha2_password",
        b"unix_socket",
        b"",
        &long,
    ];
    for user in ["native", "signing", "either", "invalid", "stranger", "root", ""] {
        for plugin in plugins {
            for bytes in [0, 1, 19, 20, 21, 32, 63, 64, 65, 250] {
                // From other hosts root has no account; from this host it has no password.
                if user == "root" && bytes == 0 {
                    continue;
                }
                let last = attack(server.port, user, plugin, &vec![7; bytes]);
                let plugin = String::from_utf8_lossy(plugin);
                assert!(matches!(last, None | Some(0xff)), "{user} by {plugin} with {bytes}: {last:?}");
            }
        }
    }
    assert_eq!(server.sql("SELECT COUNT(*) FROM test.hit"), "0");
    let (is_in, said) =
        ask(&[format!("--port={}", server.port)], "signing", &["--password=secret"], "SELECT 1");
    assert!(is_in, "{said}");
}

/// Protocol 4.1, secure connection, plugins.
const CAPABILITIES: u32 = 1 << 9 | 1 << 15 | 1 << 19;
const WITH_DATABASE: u32 = 1 << 3;
const LENENC_ANSWER: u32 = 1 << 21;
const ATTRIBUTES: u32 = 1 << 20;
const HIT: &[u8] = b"\x03INSERT INTO test.hit VALUES (1)";

/// Opens a connection and reads the greeting.
fn greeted(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("settable");
    read_packet(&mut stream).expect("a greeting");
    stream
}

/// Encodes a length as in the protocol.
fn lenenc(n: usize) -> Vec<u8> {
    match n {
        0..=250 => vec![n as u8],
        251..=0xffff => [&[0xfc][..], &(n as u16).to_le_bytes()].concat(),
        _ => [&[0xfd][..], &(n as u32).to_le_bytes()[..3]].concat(),
    }
}

/// Sends these bytes followed by a statement. Returns `None` if the server sends nothing, else the first byte
/// of its last packet.
fn last_word(stream: &mut TcpStream, payload: &[u8]) -> Option<u8> {
    // The server may already have closed the connection.
    let _ = stream.write_all(&[packet(1, payload), packet(0, HIT), packet(2, HIT)].concat());
    let mut last = None;
    for _ in 0..4 {
        let Some((_, reply)) = read_packet(stream) else { return last };
        last = reply.first().copied();
        if last != Some(0xfe) {
            return last;
        }
    }
    last
}

#[test]
fn handshake_responses_of_every_length_open_nothing() {
    let server = Cohort::new(&[]);
    server.sql("CREATE TABLE test.hit (n INT)");
    server.sql("CREATE USER fuzz IDENTIFIED BY 'secret'");
    let lengths =
        [0, 1, 19, 20, 21, 32, 64, 127, 128, 129, 250, 251, 252, 255, 256, 1000, 65_535, 65_536, 200_000];
    let head = |capabilities: u32| [&capabilities.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
    let plugin = b"mysql_native_password\0";
    let all = CAPABILITIES | WITH_DATABASE | LENENC_ANSWER | ATTRIBUTES;
    let attack = |payload: &[u8]| {
        let last = last_word(&mut greeted(server.port), payload);
        assert!(matches!(last, None | Some(0xff | 0xfe)), "{last:?} for {} bytes", payload.len());
    };
    for n in lengths {
        let long = vec![b'x'; n];
        // Each field with this length, and each length announced without the field.
        for (user, answer, database, plugin, attributes) in [
            (&long[..], &[7; 20][..], &b"test"[..], &plugin[..], &[][..]),
            (b"fuzz", &long, b"test", plugin, &[]),
            (b"fuzz", &[7; 20], &long, plugin, &[]),
            (b"fuzz", &[7; 20], b"test", &long, &[]),
            (b"fuzz", &[7; 20], b"test", plugin, &long),
        ] {
            let fields = [
                &lenenc(answer.len())[..],
                answer,
                database,
                &[0],
                plugin,
                &lenenc(attributes.len()),
                attributes,
            ];
            attack(&[&head(all)[..], user, &[0], &fields.concat()].concat());
        }
        for length in [lenenc(n), vec![0xfb], vec![0xff], vec![0xfe, 255, 255, 255, 255, 255, 255, 255, 255]]
        {
            attack(&[&head(all)[..], b"fuzz\0", &length].concat());
            attack(&[&head(all)[..], b"fuzz\0", &[20], &[7; 20], b"test\0", plugin, &length].concat());
            attack(&[&head(CAPABILITIES)[..], b"fuzz\0", &length, &[7; 20]].concat());
        }
    }
    // A complete response, truncated at every byte, and with each capability bit inverted.
    let answer = [&[20][..], &[7; 20]].concat();
    let attributes = [&lenenc(8)[..], &[3], b"key", &[3], b"abc"].concat();
    let rest = [b"fuzz\0", &answer[..], b"test\0", plugin, &attributes].concat();
    let whole = [&head(all)[..], &rest].concat();
    (0..=whole.len()).for_each(|n| attack(&whole[..n]));
    // Except the bit for TLS, after which the server expects more, and the bit for compression, which changes
    // the framing.
    for bit in (0..32).filter(|bit| ![5, 11].contains(bit)) {
        attack(&[&head(all ^ 1 << bit)[..], &rest].concat());
    }
    assert_eq!(server.sql("SELECT COUNT(*) FROM test.hit"), "0");
    let (is_in, said) = ask(&[format!("--port={}", server.port)], "fuzz", &["--password=secret"], "SELECT 1");
    assert!(is_in, "{said}");
}

/// A logged-in client asks to become another user, with statements after each wrong reply.
#[test]
fn a_failed_change_of_user_grants_no_privileges() {
    let server = Cohort::new(&[]);
    server.sql("CREATE TABLE test.hit (n INT)");
    server.sql("CREATE USER low; CREATE USER admin IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO admin");
    server.sql(
        "CREATE USER signing IDENTIFIED VIA ed25519 USING PASSWORD('secret'); GRANT ALL ON *.* TO signing",
    );
    let head = [&CAPABILITIES.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
    let login = [&head[..], b"low\0", &[0], b"mysql_native_password\0"].concat();
    for user in ["admin", "signing", "root", "stranger", "", "low\u{7f}", &"x".repeat(300)] {
        for bytes in [0, 1, 19, 20, 21, 32, 64, 250] {
            // From this host root has no password; from other hosts it has no account.
            if user == "root" && bytes == 0 {
                continue;
            }
            let answer = vec![7; bytes];
            let mut stream = greeted(server.port);
            stream.write_all(&packet(1, &login)).expect("sent");
            let (_, ok) = read_packet(&mut stream).expect("low is let in");
            assert_eq!(ok.first(), Some(&0));
            let change = [
                b"\x11",
                user.as_bytes(),
                &[0, bytes as u8],
                &answer,
                b"test\0\x2d\0mysql_native_password\0",
            ]
            .concat();
            let _ = stream.write_all(&[packet(0, &change), packet(0, HIT)].concat());
            let mut last = None;
            for _ in 0..5 {
                let Some((sequence, reply)) = read_packet(&mut stream) else { break };
                last = reply.first().copied();
                if last != Some(0xfe) {
                    break;
                }
                let _ =
                    stream.write_all(&[packet(sequence.wrapping_add(1), &answer), packet(0, HIT)].concat());
            }
            assert!(matches!(last, None | Some(0xff | 0xfe)), "{user} with {bytes}: {last:?}");
        }
    }
    assert_eq!(server.sql("SELECT COUNT(*) FROM test.hit"), "0");
    assert_eq!(server.sql("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'admin'"), "0");
}

/// Returns the share of pairs in which the first value is larger; ties count half.
fn dominance(first: &[Duration], second: &[Duration]) -> f64 {
    let pairs = first.iter().flat_map(|a| second.iter().map(move |b| (a, b)));
    let score = |(a, b): (&Duration, &Duration)| match a.cmp(b) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 1.0,
    };
    pairs.map(score).sum::<f64>() / (first.len() * second.len()) as f64
}

/// The time of a refusal must not reveal whether the account exists.
#[test]
fn refusals_take_as_long_whether_the_account_is_there_or_not() {
    let server = Cohort::new(&["--max-password-errors=4294967295"]);
    server.sql("CREATE USER present IDENTIFIED BY 'secret'");
    for n in 0..200 {
        server.sql(&format!("CREATE USER other{n} IDENTIFIED BY 'secret'"));
    }
    let head = [&CAPABILITIES.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
    let refused = |user: &str| {
        let response = [&head[..], user.as_bytes(), &[0, 20], &[7; 20], b"mysql_native_password\0"].concat();
        let mut stream = greeted(server.port);
        let began = std::time::Instant::now();
        stream.write_all(&packet(1, &response)).expect("sent");
        let (_, reply) = read_packet(&mut stream).expect("an answer");
        assert_eq!(reply.first(), Some(&0xff));
        began.elapsed()
    };
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..1200 {
        times[n % 2].push(refused(["present", "missing"][n % 2]));
    }
    let share = dominance(&times[0], &times[1]);
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let [present, missing] = &mut times;
    println!("present {:?}, missing {:?}, longer in {share:.3} of pairs", median(present), median(missing));
    assert!((0.3..0.7).contains(&share), "the duration of a refusal reveals an account: {share:.3}");
}

/// Returns the server's requests to a client without a password: the plugins it asks for, and the error.
fn asked(port: u16, user: &str) -> String {
    let mut stream = greeted(port);
    let head = [&CAPABILITIES.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
    let login = [&head[..], user.as_bytes(), b"\0\0mysql_native_password\0"].concat();
    stream.write_all(&packet(1, &login)).expect("sent");
    let mut said = String::new();
    loop {
        let (sequence, reply) = read_packet(&mut stream).expect("an answer");
        match reply[0] {
            0xfe => {
                let plugin = reply[1..].split(|byte| *byte == 0).next().unwrap_or_default();
                said += &format!("{} ", String::from_utf8_lossy(plugin));
                stream.write_all(&packet(sequence.wrapping_add(1), b"")).expect("sent");
            }
            0xff => return said + &u16::from_le_bytes([reply[1], reply[2]]).to_string(),
            other => panic!("{user} got {other}"),
        }
    }
}

#[test]
fn the_login_does_not_reveal_which_accounts_exist() {
    let server = Cohort::new(&[]);
    for n in 0..6 {
        server.sql(&format!("CREATE USER native_{n} IDENTIFIED BY 'secret'"));
        server.sql(&format!("CREATE USER signing_{n} IDENTIFIED VIA ed25519 USING PASSWORD('secret')"));
        server.sql(&format!("CREATE USER local_{n} IDENTIFIED VIA unix_socket"));
    }
    let of_somebody = ["native_1", "signing_1", "local_1"].map(|user| asked(server.port, user));
    assert_eq!(of_somebody, ["1045", "client_ed25519 1045", "1698"]);
    let unknown: Vec<String> = (0..60).map(|n| asked(server.port, &format!("nobody_{n}"))).collect();
    for kind in &of_somebody {
        assert!(unknown.contains(kind), "only existing accounts get {kind}: {unknown:?}");
    }
    let once_more: Vec<String> = (0..60).map(|n| asked(server.port, &format!("nobody_{n}"))).collect();
    assert_eq!(unknown, once_more, "the replies are the same each time");
    // Creating an account changes the replies for few missing names, and likewise for existing ones.
    server.sql("CREATE USER one_more IDENTIFIED BY 'secret'");
    let after: Vec<String> = (0..60).map(|n| asked(server.port, &format!("nobody_{n}"))).collect();
    let changed = unknown.iter().zip(&after).filter(|(before, after)| before != after).count();
    assert!(changed < 20, "{changed} of 60");
}

#[test]
fn an_anonymous_account_matches_no_other_account() {
    let server = Cohort::new(&[]);
    server.sql("CREATE USER boss IDENTIFIED BY 'secret'; CREATE USER ''@localhost");
    // The anonymous account of this host takes precedence over the named account for any host.
    let place = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(server.port);
    let options = || place.clone().prefer_socket(false);
    server.sql("DROP USER ''@localhost");
    let mut boss = Conn::new(options().user(Some("boss")).pass(Some("secret"))).expect("the boss");
    server.sql("CREATE USER ''@localhost");
    let mut stranger = Conn::new(options().user(Some("boss"))).expect("anybody");
    let accounts: String = stranger.query_first("SELECT CURRENT_USER()").expect("asked").expect("a row");
    assert_eq!(accounts, "@localhost");
    let seen: Vec<u64> = stranger.query("SELECT id FROM information_schema.processlist").expect("asked");
    assert_eq!(seen, [u64::from(stranger.connection_id())]);
    for sql in ["KILL {}", "KILL QUERY {}"] {
        let killed = stranger.query_drop(sql.replace("{}", &boss.connection_id().to_string()));
        assert!(format!("{killed:?}").contains("1095"), "{killed:?}");
    }
    let explained = stranger.query_drop(format!("SHOW EXPLAIN FOR {}", boss.connection_id()));
    assert!(format!("{explained:?}").contains("1227"), "{explained:?}");
    boss.query_drop("DO 1").expect("the boss goes on");
    // The name does not make it a thread of the server, either.
    server
        .sql("CHANGE MASTER TO master_host='127.0.0.1', master_port=1, master_connect_retry=60; START SLAVE");
    let threads = server.sql("SELECT id FROM information_schema.processlist WHERE user = 'system user'");
    let thread = threads.lines().next().expect("a replica has threads").to_owned();
    let mut system = Conn::new(options().user(Some("system user"))).expect("anybody");
    let seen: Vec<u64> = system.query("SELECT id FROM information_schema.processlist").expect("asked");
    assert_eq!(seen, [u64::from(system.connection_id())]);
    let killed = system.query_drop(format!("KILL {thread}"));
    assert!(format!("{killed:?}").contains("1095"), "{killed:?}");
    let mut again = Conn::new(options().user(Some("boss"))).expect("anybody");
    again.query_drop(format!("KILL {}", stranger.connection_id())).expect("they are the same");
}

#[test]
fn only_administrators_see_the_server_status() {
    let server = Cohort::new(&[]);
    server.sql("CREATE USER guest");
    for (user, last) in [("root", 0xfe), ("guest", 0xff)] {
        let mut stream = greeted(server.port);
        let head = [&CAPABILITIES.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
        let login = [&head[..], user.as_bytes(), b"\0\0mysql_native_password\0"].concat();
        stream.write_all(&packet(1, &login)).expect("sent");
        assert_eq!(read_packet(&mut stream).expect("an answer").1[0], 0);
        // COM_DEBUG.
        stream.write_all(&packet(0, b"\x0d")).expect("sent");
        assert_eq!(read_packet(&mut stream).expect("an answer").1[0], last, "{user}");
        // COM_REFRESH, with supported and unsupported bits.
        for bits in [1, 8, 32, 64] {
            stream.write_all(&packet(0, &[0x07, bits])).expect("sent");
            let answer = read_packet(&mut stream).expect("an answer").1[0];
            assert_eq!(answer, if user == "root" { 0 } else { 0xff }, "{user} {bits}");
        }
    }
}

#[test]
fn files_are_shown_with_the_privilege_and_to_everybody_only() {
    use std::os::unix::fs::PermissionsExt;
    let server = Cohort::new(&[]);
    server.sql("CREATE USER guest");
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).display().to_string();
    for (name, mode) in [("public", 0o644), ("private", 0o640)] {
        std::fs::write(path(name), name).expect("writable");
        std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).expect("its owner may");
    }
    let place = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(server.port);
    let loaded = |user: &str, name: &str| -> Option<String> {
        let options = place.clone().prefer_socket(false).user(Some(user));
        let mut client = mysql::Conn::new(options).expect("it may log in");
        let asked = format!("SELECT LOAD_FILE('{}')", path(name));
        client.query_first::<Option<String>, _>(asked).expect("an answer").expect("a row")
    };
    assert_eq!(loaded("root", "public").as_deref(), Some("public"));
    assert_eq!(loaded("root", "private"), None);
    assert_eq!(loaded("guest", "public"), None);
}

#[test]
fn an_administrator_can_log_in_under_any_load() {
    let server = Cohort::new(&[]);
    server.sql(
        "CREATE USER guest; CREATE DATABASE open; CREATE TABLE open.t (a INT); GRANT ALL ON open.* TO guest",
    );
    let place = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(server.port);
    let options = || place.clone().prefer_socket(false);
    let waiters = std::thread::scope(|scope| {
        let mut waiters = Vec::new();
        for (hold, waits, release) in [
            ("FLUSH TABLES WITH READ LOCK", "CREATE USER waits", "UNLOCK TABLES"),
            ("FLUSH TABLES WITH READ LOCK", "DROP DATABASE open", "UNLOCK TABLES"),
            (
                "LOCK TABLES mysql.global_priv WRITE, mysql.db WRITE",
                "ALTER USER guest ACCOUNT UNLOCK",
                "UNLOCK TABLES",
            ),
            ("BACKUP STAGE START; BACKUP STAGE BLOCK_COMMIT", "CREATE USER waits", "BACKUP STAGE END"),
            ("LOCK TABLES mysql.user READ", "DO 1", "UNLOCK TABLES"),
        ] {
            server.sql("CREATE DATABASE IF NOT EXISTS open; DROP USER IF EXISTS waits");
            let mut holder = Conn::new(options().user(Some("root"))).expect("root");
            hold.split("; ").for_each(|sql| holder.query_drop(sql).unwrap_or_else(|e| panic!("{sql}: {e}")));
            let mut waiter = Conn::new(options().user(Some("root"))).expect("root");
            let is_there = waiter.connection_id();
            let waiting = scope.spawn(move || drop(waiter.query_drop(waits)));
            support::wait_until("the other statement waits, or has gone through", || {
                let running = format!(
                    "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {is_there} AND command = 'Query'"
                );
                waiting.is_finished() || holder.query_first::<u64, _>(running).expect("asked") == Some(1)
            });
            waiters.push(waiting);
            for (user, schema) in [("guest", None), ("guest", Some("open")), ("root", Some("open"))] {
                let mut other = Conn::new(options().user(Some(user)).db_name(schema))
                    .unwrap_or_else(|error| panic!("{user} during {hold}: {error}"));
                let rows: Vec<u8> = other.query("SELECT 1").expect("asked");
                assert_eq!(rows, [1]);
            }
            holder.query_drop(release).expect("released");
        }
        waiters.into_iter().map(|waiter| waiter.join().expect("ended")).count()
    });
    assert_eq!(waiters, 5);
}
