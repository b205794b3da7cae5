//! Drivers that people use, over TLS with verification of the server: let in where the authority is the one
//! they trust, and kept away by themselves where it is another.
//!
//! They need packages from a network, so `./x test` leaves them out: `./x drivers` gets the packages and runs
//! them. MariaDB's own client, which is C, is in `tls.rs`.

#[path = "../support/certificates.rs"]
mod certificates;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use certificates::Certificates;
use support::{Cohort, text};

/// Where `./x drivers` has put what the drivers need.
fn packages() -> PathBuf {
    std::env::var_os("COHORT_DRIVERS").expect("./x drivers says where the packages are").into()
}

fn source(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/drivers").join(name)
}

/// Has a driver log in to a server whose certificate comes from `ca.pem`, with either authority. `client`
/// gets port and the file of an authority.
fn verifies(client: impl Fn(u16, &Path) -> Command) {
    let certificates = Certificates::new();
    let options = certificates.server_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Cohort::new(&options);
    server.sql("CREATE USER driver IDENTIFIED BY 'secret' REQUIRE SSL");
    let attempt = |authority: &str| {
        let output = client(server.port, &certificates.path(authority)).output().expect("the driver runs");
        (output.status.success(), text(&output))
    };
    let (is_in, said) = attempt("ca.pem");
    assert!(is_in && said.contains("encrypted TLS_"), "{said}");
    let (is_in, said) = attempt("other-ca.pem");
    assert!(!is_in && !said.contains("encrypted"), "{said}");
    let lower = said.to_lowercase();
    let words = ["certificate", "trust anchor", "unknownissuer"];
    assert!(words.iter().any(|word| lower.contains(word)), "it fails for another reason: {said}");
}

fn python(driver: &'static str) {
    verifies(|port, ca| {
        let mut command = Command::new(packages().join("python/bin/python"));
        command.arg(source("client.py")).args([driver, &port.to_string()]).arg(ca);
        command
    });
}

fn node(driver: &'static str) {
    verifies(|port, ca| {
        let mut command = Command::new("node");
        command.env("NODE_PATH", packages().join("node/node_modules"));
        command.arg(source("client.js")).args([driver, &port.to_string()]).arg(ca);
        command
    });
}

fn java(driver: &'static str) {
    verifies(|port, ca| {
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
    verifies(|port, ca| {
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
