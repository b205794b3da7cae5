//! Who gets in and what binds them: Cohort and a real MariaDB are asked the same, with MariaDB's client.

#[path = "support/certificates.rs"]
mod certificates;
#[path = "support/mod.rs"]
mod support;

use certificates::Certificates;
use support::{Cohort, Maria, run, text};

/// The two servers, reached in the same way.
struct Both {
    certificates: Certificates,
    cohort: Cohort,
    maria: Maria,
}

impl Both {
    fn new() -> Both {
        let certificates = Certificates::new();
        let own = certificates.server_options();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let (cohort, maria) = (Cohort::new(&own), Maria::source(&own));
        let both = Both { certificates, cohort, maria };
        // MariaDB's first start makes them.
        both.as_root("DROP USER IF EXISTS ''@localhost");
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

    /// What both say to the same; they must say the same.
    fn answer(&self, user: &str, options: &[&str], statements: &str) -> (bool, String) {
        let [ours, theirs] =
            self.ports().map(|port| ask(&[format!("--port={port}")], user, options, statements));
        assert_eq!(ours, theirs, "{user} {options:?}: {statements}");
        ours
    }

    /// Over the Unix sockets.
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
    // Nobody fits: MariaDB chooses the words by the name, so as not to tell.
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
