//! Common drivers over TLS with verification of the server: they must connect if they trust the certificate
//! authority, and refuse otherwise. Once connected, they call procedures with result sets, OUT parameters and
//! errors, each in its own way.
//!
//! These tests need packages from the network, so `./x test` omits them. `./x drivers` downloads the packages
//! and runs the tests. MariaDB's own C client is tested in `tls.rs`.

#[path = "../support/certificates.rs"]
mod certificates;
#[path = "../support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use certificates::Certificates;
use mysql::prelude::Queryable;
use support::{Cohort, text};

/// Returns the directory into which `./x drivers` has put the packages.
fn packages() -> PathBuf {
    std::env::var_os("COHORT_DRIVERS").expect("./x drivers says where the packages are").into()
}

fn source(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/drivers").join(name)
}

/// The procedures that drivers call.
const PROCEDURES: [&str; 4] = [
    "CREATE PROCEDURE test.answer(IN a INT, INOUT b INT, OUT c VARCHAR(20)) \
     BEGIN SELECT a * 6 AS a; SET b = b + a, c = a; END",
    "CREATE PROCEDURE test.refuse() SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 5001, MESSAGE_TEXT = 'no'",
    "GRANT EXECUTE ON test.* TO driver",
    // MySQL's driver reads the parameters from the definition.
    "GRANT SELECT ON mysql.proc TO driver",
];

/// Has a driver log in to a server whose certificate was signed by `ca.pem`, with either authority. `client`
/// gets the port and the file of an authority. `called` is what the driver reads from the procedure.
fn verifies(called: &str, client: impl Fn(u16, &Path) -> Command) {
    let certificates = Certificates::new();
    let options = certificates.server_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Cohort::new(&options);
    server.sql("CREATE USER driver IDENTIFIED BY 'secret' REQUIRE SSL");
    let mut root = server.in_test();
    PROCEDURES.iter().for_each(|sql| root.query_drop(sql).expect(sql));
    let attempt = |authority: &str| {
        let output = client(server.port, &certificates.path(authority)).output().expect("the driver runs");
        (output.status.success(), text(&output))
    };
    let (is_in, said) = attempt("ca.pem");
    assert!(is_in && said.contains("encrypted TLS_"), "{said}");
    assert!(said.contains(&format!("called {called}\n")) && said.contains("refused 5001"), "{said}");
    let (is_in, said) = attempt("other-ca.pem");
    assert!(!is_in && !said.contains("encrypted"), "{said}");
    let lower = said.to_lowercase();
    let words = ["certificate", "trust anchor", "unknownissuer"];
    assert!(words.iter().any(|word| lower.contains(word)), "it fails for another reason: {said}");
}

/// Starts a proxy to the server that changes its greeting to version 11.4. Drivers do not ask older servers
/// for the proof.
fn as_newer(port: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let own = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("accepted");
            std::thread::spawn(move || relay(client, port));
        }
    });
    own
}

fn relay(mut client: TcpStream, port: u16) {
    let mut server = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    let mut greeting = vec![0; 4];
    server.read_exact(&mut greeting).expect("a greeting");
    greeting.resize(4 + usize::from(greeting[0]), 0);
    server.read_exact(&mut greeting[4..]).expect("a greeting");
    let at = greeting.windows(6).position(|bytes| bytes == b"10.11.").expect("the version");
    greeting[at..at + 6].copy_from_slice(b"11.4.9");
    client.write_all(&greeting).expect("sent");
    let (mut from, mut to) = (client.try_clone().expect("another"), server.try_clone().expect("another"));
    // Either end may close the connection at any time.
    let up = std::thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(std::net::Shutdown::Both);
    up.join().expect("ended");
}

/// Has a driver log in without an authority to a server with a self-signed certificate.
fn is_proven_to(client: impl Fn(u16) -> Command) {
    let server = Cohort::new(&[]);
    server.sql("CREATE USER driver IDENTIFIED BY 'secret' REQUIRE SSL");
    let attempt = |port: u16| {
        let output = client(port).output().expect("the driver runs");
        (output.status.success(), text(&output))
    };
    let newer = as_newer(server.port);
    for method in ["", "IDENTIFIED VIA ed25519 USING PASSWORD('secret')"] {
        if !method.is_empty() {
            server.sql(&format!("ALTER USER driver {method}"));
        }
        let (is_in, said) = attempt(newer);
        assert!(is_in && said.contains("encrypted TLS_"), "{method}: {said}");
    }
    // A server with a certificate signed by an authority sends no proof, and is not trusted.
    let certificates = Certificates::new();
    let options = certificates.server_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let other = Cohort::new(&options);
    other.sql("CREATE USER driver IDENTIFIED BY 'secret' REQUIRE SSL");
    let (is_in, said) = attempt(as_newer(other.port));
    assert!(!is_in && !said.contains("encrypted"), "{said}");
}

fn python(driver: &'static str) {
    verifies("42 12 7", |port, ca| {
        let mut command = Command::new(packages().join("python/bin/python"));
        command.arg(source("client.py")).args([driver, &port.to_string()]).arg(ca);
        command
    });
}

fn node(driver: &'static str) {
    verifies("42 7 48", |port, ca| {
        let mut command = Command::new("node");
        command.env("NODE_PATH", packages().join("node/node_modules"));
        command.arg(source("client.js")).args([driver, &port.to_string()]).arg(ca);
        command
    });
}

#[test]
#[ignore = "needs packages: ./x drivers"]
fn node_mariadb_is_given_the_proof() {
    is_proven_to(|port| {
        let mut command = Command::new("node");
        command.env("NODE_PATH", packages().join("node/node_modules"));
        command.arg(source("client.js")).args(["mariadb", &port.to_string(), "-"]);
        command
    });
}

#[test]
#[ignore = "needs packages: ./x drivers"]
fn java_mariadb_is_given_the_proof() {
    is_proven_to(|port| {
        let folder = packages().join("java");
        let mut command = Command::new("java");
        command.arg("-cp").arg(format!("{0}:{0}/*", folder.display()));
        command.args(["Client", "mariadb", &port.to_string(), "-"]);
        command
    });
}

fn java(driver: &'static str) {
    verifies("42 12 7", |port, ca| {
        let store = ca.with_extension("p12");
        let made = Command::new("keytool")
            .args(["-importcert", "-noprompt", "-alias", "ca", "-storepass", "changeit", "-file"])
            .arg(ca)
            .arg("-keystore")
            .arg(&store)
            .output()
            .expect("keytool is part of the JDK");
        assert!(made.status.success(), "{}", text(&made));
        let folder = packages().join("java");
        let mut command = Command::new("java");
        command.arg("-cp").arg(format!("{0}:{0}/*", folder.display()));
        command.args(["Client", driver, &port.to_string()]).arg(store);
        command
    });
}

#[test]
#[ignore = "needs packages: ./x drivers"]
fn python_pymysql() {
    python("pymysql");
}

#[test]
#[ignore = "needs packages: ./x drivers"]
fn python_mysql_connector() {
    python("connector-pure");
}

#[test]
#[ignore = "needs packages: ./x drivers"]
fn node_mysql2() {
    node("mysql2");
}

#[test]
#[ignore = "needs packages: ./x drivers"]
fn node_mariadb() {
    node("mariadb");
}

#[test]
#[ignore = "needs packages: ./x drivers"]
fn go_sql_driver() {
    verifies("42 7 48", |port, ca| {
        let mut command = Command::new(packages().join("go-client"));
        command.arg(port.to_string()).arg(ca);
        command
    });
}

#[test]
#[ignore = "needs packages: ./x drivers"]
fn java_mariadb() {
    java("mariadb");
}

#[test]
#[ignore = "needs packages: ./x drivers"]
fn java_mysql() {
    java("mysql");
}
