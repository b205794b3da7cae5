//! Clients over TLS: MariaDB's client, and a raw client that breaks the rules.

#[path = "support/certificates.rs"]
mod certificates;
#[path = "support/mod.rs"]
mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use certificates::Certificates;
use cohort_protocol::{NativePassword, Scramble, certificate_proof};
use cohort_tls::{Connector, TlsSettings, TlsStream};
use support::{Cohort, run, text, wait_until};

/// Starts a server that offers TLS.
fn server(certificates: &Certificates, options: &[&str]) -> Cohort {
    let own = certificates.server_options();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    Cohort::new(&[&own, options].concat())
}

/// Runs statements with MariaDB's client over TCP. Returns whether all succeeded, and the output.
fn ask(server: &Cohort, options: &[&str], statements: &str) -> (bool, String) {
    let port = format!("--port={}", server.port);
    let always = ["--no-defaults", "-N", "--host=127.0.0.1", &port, "--max-allowed-packet=64M"];
    let output = run("mariadb", &[&always, options, &["-e", statements]].concat());
    (output.status.success(), text(&output).trim().to_owned())
}

const CIPHER: &str = "SHOW STATUS LIKE 'Ssl_cipher'";

#[test]
fn clients_encrypt_and_verify_the_server() {
    let certificates = Certificates::new();
    let server = server(&certificates, &[]);
    let ca = certificates.option("ssl-ca", "ca.pem");
    let verified = ["--user=root", "--ssl", &ca, "--ssl-verify-server-cert"];
    let (is_in, said) = ask(&server, &verified, "SHOW STATUS LIKE 'Ssl_version'; SELECT @@have_ssl");
    assert!(is_in && said.contains("TLSv1.3") && said.contains("YES"), "{said}");
    let old = ["--user=root", "--ssl", "--tls-version=TLSv1.2"];
    let (is_in, said) = ask(&server, &old, CIPHER);
    assert!(is_in && said.contains("ECDHE-ECDSA-AES"), "{said}");
    // The server's certificate is not signed by this authority.
    let other = certificates.option("ssl-ca", "other-ca.pem");
    let (is_in, said) = ask(&server, &["--user=root", "--ssl", &other, "--ssl-verify-server-cert"], CIPHER);
    assert!(!is_in && said.contains("2026"), "{said}");
    // Unencrypted connections still work.
    let (is_in, said) = ask(&server, &["--user=root", "--skip-ssl"], CIPHER);
    assert!(is_in && said == "Ssl_cipher", "{said:?}");
    let (_, said) = ask(&server, &verified, "SHOW GLOBAL STATUS LIKE 'Ssl%accepts'");
    assert!(said.contains("Ssl_finished_accepts\t3"), "{said}");
    let (_, said) = ask(&server, &verified, "SHOW STATUS LIKE 'Ssl_server_not_after'");
    assert!(said.ends_with("GMT"), "{said}");
}

#[test]
fn large_statements_and_results_go_both_ways_compressed_too() {
    let certificates = Certificates::new();
    let server = server(&certificates, &["--max-allowed-packet=64M"]);
    server.sql("CREATE TABLE test.t (id INT PRIMARY KEY AUTO_INCREMENT, a LONGTEXT)");
    let file = certificates.path("rows");
    let line = "x".repeat(1000) + "\n";
    std::fs::write(&file, line.repeat(20_000)).expect("written");
    for extra in [&[][..], &["--compress"]] {
        let options = [&["--user=root", "--ssl", "--local-infile=1"], extra].concat();
        let load = format!(
            "TRUNCATE test.t; LOAD DATA LOCAL INFILE '{}' INTO TABLE test.t (a); SELECT COUNT(*), SUM(LENGTH(a)) \
             FROM test.t; INSERT INTO test.t(a) SELECT REPEAT('y', 30000000); SELECT MD5(REPEAT('y', 30000000)) = \
             MD5(a) FROM test.t ORDER BY id DESC LIMIT 1",
            file.display()
        );
        let (is_fine, said) = ask(&server, &options, &load);
        assert!(is_fine && said.ends_with("20000\t20000000\n1"), "{said:.300}");
        let (is_fine, said) = ask(&server, &options, "SELECT a FROM test.t");
        assert!(is_fine);
        assert_eq!(said.len(), 20_000 * 1001 + 30_000_000);
    }
}

#[test]
fn only_encrypted_connections_or_the_socket_where_that_is_required() {
    let certificates = Certificates::new();
    let server = server(&certificates, &[]);
    server.sql("SET GLOBAL require_secure_transport=1");
    let (is_in, said) = ask(&server, &["--user=root", "--skip-ssl"], CIPHER);
    assert!(!is_in && said.contains("1045"), "{said}");
    assert!(ask(&server, &["--user=root", "--ssl"], CIPHER).0);
    let socket = format!("--socket={}", server.socket.display());
    let output = run("mariadb", &["--no-defaults", "--user=root", "--skip-ssl", &socket, "-e", CIPHER]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn clients_certificates_come_from_the_authority_and_are_not_revoked() {
    let certificates = Certificates::new();
    let crl = certificates.option("ssl-crl", "crl.pem");
    let server = server(&certificates, &[&crl]);
    let with = |name: &str| {
        let cert = certificates.option("ssl-cert", &format!("{name}.pem"));
        let key = certificates.option("ssl-key", &format!("{name}.key"));
        ask(&server, &["--user=root", "--ssl", &cert, &key], "SELECT 'in'")
    };
    let (is_in, said) = with("client");
    assert!(is_in && said == "in", "{said}");
    for name in ["stranger", "expired", "revoked"] {
        let (is_in, said) = with(name);
        assert!(!is_in, "{name}: {said}");
    }
    wait_until("the error log has the reasons", || {
        ["UnknownIssuer", "expired", "Revoked"].iter().all(|why| server.log().contains(why))
    });
    // No account requires a certificate.
    assert!(ask(&server, &["--user=root", "--ssl"], CIPHER).0);
}

#[test]
fn flush_ssl_reads_the_files_again_and_keeps_the_old_ones_after_an_error() {
    let certificates = Certificates::new();
    let server = server(&certificates, &[]);
    let trusts = |ca: &str| {
        let ca = certificates.option("ssl-ca", ca);
        ask(&server, &["--user=root", "--ssl", &ca, "--ssl-verify-server-cert"], CIPHER).0
    };
    assert!(trusts("ca.pem"));
    std::fs::write(certificates.path("server.pem"), "nothing").expect("written");
    let (is_fine, said) = ask(&server, &["--user=root"], "FLUSH SSL");
    assert!(
        !is_fine && said.contains("ERROR 1105 (HY000)") && said.contains("Failed to refresh SSL"),
        "{said}"
    );
    assert!(trusts("ca.pem"), "those from before count");
    certificates.replace_server();
    assert!(trusts("ca.pem"), "the new ones are not loaded yet");
    let (is_fine, said) = ask(&server, &["--user=root"], "FLUSH SSL");
    assert!(is_fine, "{said}");
    assert!(!trusts("ca.pem") && trusts("other-ca.pem"));
    let (_, said) = ask(&server, &["--user=root"], "CREATE USER guest; SELECT 1");
    assert_eq!(said, "1");
    let (is_fine, said) = ask(&server, &["--user=guest"], "FLUSH SSL");
    assert!(!is_fine && said.contains("RELOAD"), "{said}");
}

#[test]
fn unsupported_options_refuse_the_start() {
    let certificates = Certificates::new();
    let [_, cert, key] = certificates.server_options();
    let other_key = certificates.option("ssl-key", "client.key");
    let missing = certificates.option("ssl-cert", "missing.pem");
    for (options, why) in [
        (vec![cert.as_str(), &other_key], "SSL error"),
        (vec![missing.as_str(), &key], "missing.pem"),
        (vec![cert.as_str(), &key, "--tls-version=TLSv1.1"], "no TLS version is left"),
        (vec![cert.as_str(), &key, "--ssl-cipher=NULL-MD5"], "no cipher suite is left"),
        (vec!["--ssl-ca=/nowhere"], "ssl_cert and ssl_key are not both set"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let refusal = Cohort::try_start(folder.path(), "data", &options).err().expect("refused");
        assert!(refusal.said.contains("Failed to setup SSL") && refusal.said.contains(why), "{refusal:?}");
    }
    let plain = Cohort::new(&[&cert, &key, "--skip-ssl"]);
    assert_eq!(plain.sql("SELECT @@have_ssl"), "DISABLED");
}

#[test]
fn a_server_without_files_makes_its_certificate_itself_and_proves_it() {
    let server = Cohort::new(&[]);
    let (is_in, said) =
        ask(&server, &["--user=root", "--ssl"], "SHOW STATUS LIKE 'Ssl_version'; SELECT @@have_ssl");
    assert!(is_in && said.contains("TLSv1.3") && said.contains("YES"), "{said}");
    // No authority has signed it.
    let (is_in, said) = ask(&server, &["--user=root", "--ssl", "--ssl-verify-server-cert"], "DO 1");
    assert!(!is_in && said.contains("2026"), "{said}");
    server.sql("CREATE USER guest IDENTIFIED BY 'secret'");
    // Returns the text in the OK packet of a login.
    let said = |user: &str, password: &[u8]| {
        let mut socket = greeted(&server);
        let mut tls = records();
        let mut first = Caught(packet(1, &tls_request(CAPABILITIES | SSL)));
        tls.flush(&mut first).expect("caught");
        socket.write_all(&first.0).expect("sent");
        // Replies to the request to switch plugins, which repeats the scramble of the greeting.
        let login = [&tls_request(CAPABILITIES | SSL)[..], user.as_bytes(), b"\0\0no_such_plugin\0"].concat();
        tls.write(&mut socket, &packet(2, &login)).expect("taken");
        let switch = read_at_least(&mut tls, &mut socket, 47);
        let plugin = b"\xfemysql_native_password\0";
        assert!(switch[4..].starts_with(plugin), "{switch:x?}");
        let scramble = Scramble(switch[4 + plugin.len()..][..20].try_into().expect("20 bytes"));
        tls.write(&mut socket, &packet(4, &scramble.answer(password))).expect("taken");
        let ok = read_at_least(&mut tls, &mut socket, 11);
        assert_eq!(ok[4], 0, "{ok:x?}");
        let shown = tls.peer_der().expect("a certificate").to_vec();
        (ok[11..].to_vec(), scramble, shown)
    };
    let (text, scramble, shown) = said("guest", b"secret");
    let stored = NativePassword::of(b"secret");
    assert!(text.ends_with(certificate_proof(stored.bytes(), &scramble, &shown).as_bytes()), "{text:x?}");
    let (text, ..) = said("root", b"");
    assert_eq!(text, b"", "there is nothing that only the two know");
    // FLUSH SSL creates another certificate.
    server.sql("FLUSH SSL");
    let (text, scramble, other) = said("guest", b"secret");
    assert_ne!(shown, other);
    assert!(text.ends_with(certificate_proof(stored.bytes(), &scramble, &other).as_bytes()), "{text:x?}");
    // A certificate signed by an authority needs no proof.
    let certificates = Certificates::new();
    let server = self::server(&certificates, &[]);
    let (is_in, said) = ask(&server, &["--user=root", "--ssl"], "SHOW STATUS LIKE 'Ssl_server_not_after'");
    assert!(is_in && said.contains("GMT"), "{said}");
}

const SSL: u32 = 1 << 11;
/// Protocol 4.1, secure connection, plugins.
const CAPABILITIES: u32 = 1 << 9 | 1 << 15 | 1 << 19;

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

fn tls_request(capabilities: u32) -> Vec<u8> {
    let mut request = capabilities.to_le_bytes().to_vec();
    request.extend_from_slice(&[0, 0, 0, 1, 45]);
    request.extend_from_slice(&[0; 23]);
    request
}

/// Returns the reply of root, which has no password, to any greeting.
fn login() -> Vec<u8> {
    [&tls_request(CAPABILITIES | SSL)[..], b"root\0\0mysql_native_password\0"].concat()
}

fn query(sql: &str) -> Vec<u8> {
    packet(0, &[b"\x03", sql.as_bytes()].concat())
}

/// Opens a connection and reads the greeting.
fn greeted(server: &Cohort) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    let mut header = [0; 4];
    stream.read_exact(&mut header).expect("a header");
    let mut greeting = vec![0; usize::from(header[0])];
    stream.read_exact(&mut greeting).expect("a greeting");
    assert_eq!(greeting[0], 10);
    stream
}

fn records() -> TlsStream {
    let connector = Connector::new(&TlsSettings::default(), false).expect("a context");
    connector.connect("localhost", Vec::new()).expect("a name")
}

/// Reads plaintext until it has at least `bytes` bytes.
fn read_at_least(tls: &mut TlsStream, socket: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let (mut got, mut buffer) = (Vec::new(), [0; 5000]);
    while got.len() < bytes {
        let received = tls.read(socket, &mut buffer).expect("read");
        assert!(received.bytes > 0, "the end after {} bytes", got.len());
        got.extend_from_slice(&buffer[..received.bytes]);
    }
    got
}

/// Collects the bytes written.
struct Caught(Vec<u8>);

impl Write for Caught {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn plain_bytes_after_the_tls_request_are_never_a_packet() {
    let certificates = Certificates::new();
    let server = server(&certificates, &[]);
    // A man in the middle injects a login and a statement.
    let mut socket = greeted(&server);
    let request = packet(1, &tls_request(CAPABILITIES | SSL));
    let injected = [request, packet(2, &login()), query("CREATE SCHEMA injected")].concat();
    socket.write_all(&injected).expect("sent");
    let mut rest = Vec::new();
    // An alert, or nothing; never a plain packet. A reset if the server has not read everything.
    match socket.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert!(rest.is_empty() || rest[0] == 0x15, "{rest:x?}");
    assert!(!server.sql("SHOW SCHEMAS").contains("injected"));
    // Before a valid handshake, the same injection makes it fail.
    let mut socket = greeted(&server);
    let mut tls = records();
    let mut hello = Caught(Vec::new());
    tls.flush(&mut hello).expect("caught");
    let request = packet(1, &tls_request(CAPABILITIES | SSL));
    socket.write_all(&[request, packet(2, &login()), hello.0].concat()).expect("sent");
    let ended = tls.read(&mut socket, &mut [0; 100]);
    assert!(ended.is_err() || ended.is_ok_and(|received| received.bytes == 0));
}

#[test]
fn records_may_come_in_any_pieces_and_hold_any_packets() {
    let certificates = Certificates::new();
    let server = server(&certificates, &[]);
    // The request and the first handshake message in one write.
    let mut socket = greeted(&server);
    let mut tls = records();
    let mut first = Caught(packet(1, &tls_request(CAPABILITIES | SSL)));
    tls.flush(&mut first).expect("caught");
    socket.write_all(&first.0).expect("sent");
    assert_eq!(tls.write(&mut socket, &packet(2, &login())).expect("taken"), login().len() + 4);
    let ok = read_at_least(&mut tls, &mut socket, 7);
    assert_eq!(ok[4], 0, "{ok:x?}");
    // Thousands of statements that ignore record boundaries, at first byte by byte.
    let statements = query("DO 1").repeat(20_000);
    let mut caught = Caught(Vec::new());
    let mut sent = 0;
    while sent < statements.len() {
        sent += tls.write(&mut caught, &statements[sent..]).expect("taken");
    }
    socket.set_nodelay(true).expect("set");
    let (slow, fast) = caught.0.split_at(300);
    slow.iter().for_each(|byte| socket.write_all(&[*byte]).expect("sent"));
    let mut writer = socket.try_clone().expect("another");
    let fast = fast.to_vec();
    let writing = std::thread::spawn(move || writer.write_all(&fast).expect("sent"));
    // Each reply is an OK packet of 7 bytes after its header.
    let answers = read_at_least(&mut tls, &mut socket, 20_000 * 11);
    writing.join().expect("written");
    assert_eq!(answers.len(), 20_000 * 11);
    assert!(answers.chunks(11).all(|answer| answer[..5] == [7, 0, 0, 1, 0]));
}

#[test]
fn a_client_that_takes_nothing_gets_all_when_it_does() {
    let certificates = Certificates::new();
    let server = server(&certificates, &[]);
    let mut socket = greeted(&server);
    let mut tls = records();
    socket.write_all(&packet(1, &tls_request(CAPABILITIES | SSL))).expect("sent");
    tls.write(&mut socket, &packet(2, &login())).expect("taken");
    read_at_least(&mut tls, &mut socket, 11);
    // More than all buffers on the way hold, in replies that are complete before they are sent.
    let statement = query("SELECT REPEAT('x', 1000000)");
    let count = 40;
    for _ in 0..count {
        tls.write(&mut socket, &statement).expect("taken");
    }
    std::thread::sleep(Duration::from_millis(500));
    let got = read_at_least(&mut tls, &mut socket, count * 1_000_000);
    assert!(got.len() > count * 1_000_000);
    let x = got.iter().filter(|byte| **byte == b'x').count();
    assert!(x >= count * 1_000_000 - 1_000_000, "{x}");
}

#[test]
fn endless_handshakes_are_ended_and_block_no_client() {
    let certificates = Certificates::new();
    let server = server(&certificates, &["--connect-timeout=2"]);
    let began = Instant::now();
    let mut half_open: Vec<TcpStream> = (0..200)
        .map(|n| {
            let mut socket = greeted(&server);
            socket.write_all(&packet(1, &tls_request(CAPABILITIES | SSL))).expect("sent");
            // Some send the beginning of a record only.
            if n % 2 == 0 {
                socket.write_all(&[0x16, 3, 1, 2, 0, 1]).expect("sent");
            }
            socket
        })
        .collect();
    assert!(ask(&server, &["--user=root", "--ssl"], CIPHER).0, "others get in meanwhile");
    for socket in &mut half_open {
        let mut rest = Vec::new();
        // A reset is an end, too.
        let _ = socket.read_to_end(&mut rest);
    }
    assert!(began.elapsed() < Duration::from_secs(30));
    wait_until("they are gone", || server.sql("SELECT COUNT(*) FROM information_schema.processlist") == "1");
}

/// Checks that a client over TLS is served. Returns the time that took.
fn good_client(server: &Cohort) -> Duration {
    let began = Instant::now();
    let (is_in, said) = ask(server, &["--user=root", "--ssl"], CIPHER);
    assert!(is_in, "{said}");
    began.elapsed()
}

#[test]
fn half_open_handshakes_are_bounded_and_block_no_client() {
    let certificates = Certificates::new();
    let server = server(&certificates, &["--connect-timeout=5"]);
    let request = packet(1, &tls_request(CAPABILITIES | SSL));
    let mut hello = Caught(Vec::new());
    records().flush(&mut hello).expect("caught");
    let (begun, whole) = (&hello.0[..hello.0.len() / 2], &hello.0[..]);
    // The points at which a stranger may stop sending: nothing, the request, half of a ClientHello, a
    // complete one, more than any.
    let much = vec![0x16; 20_000];
    let depths: [&[&[u8]]; 5] =
        [&[], &[&request], &[&request, begun], &[&request, whole], &[&request, &much]];
    good_client(&server);
    let before_kib = server.resident_kib();
    let (mut sockets, mut slowest, mut largest_kib) = (Vec::new(), Duration::ZERO, before_kib);
    for wave in 0..4 {
        for n in 0..500 {
            // A server with too many of them refuses strangers at once.
            let Ok(mut socket) = TcpStream::connect(("127.0.0.1", server.port)) else { continue };
            for part in depths[n % depths.len()] {
                let _ = socket.write_all(part);
            }
            sockets.push(socket);
        }
        slowest = slowest.max(good_client(&server));
        largest_kib = largest_kib.max(server.resident_kib());
        let held: usize =
            server.sql("SELECT COUNT(*) FROM information_schema.processlist").parse().expect("a number");
        assert!(held < 1000, "wave {wave}: {held} are kept");
    }
    let grown_kib = largest_kib.saturating_sub(before_kib);
    println!("slowest good client {slowest:?}, grown by {grown_kib} KiB under {} strangers", sockets.len());
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    assert!(grown_kib < 100 << 10, "{grown_kib} KiB");
    // All of them end, whatever they send next.
    for socket in &mut sockets {
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("settable");
        let mut rest = Vec::new();
        match socket.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
    wait_until("they are gone", || server.sql("SELECT COUNT(*) FROM information_schema.processlist") == "1");
}
