//! Replication over TLS in both directions: Cohort as a replica of MariaDB, and MariaDB as a replica of
//! Cohort.

#[path = "support/certificates.rs"]
mod certificates;
#[path = "support/mod.rs"]
mod support;

use certificates::Certificates;
use support::{Cohort, Maria, wait_until};

/// Returns a CHANGE MASTER with TLS, the authority, and verification of the host name.
fn change_master(certificates: &Certificates, port: u16, ca: &str) -> String {
    format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='replica', master_password='secret', \
         master_connect_retry=1, master_use_gtid=slave_pos, master_ssl=1, master_ssl_verify_server_cert=1, \
         master_ssl_ca='{}'",
        certificates.path(ca).display()
    )
}

/// Rows in several records, and one row longer than a record.
const ROWS: &str = "CREATE TABLE test.t (id INT PRIMARY KEY, a LONGTEXT);
    INSERT INTO test.t SELECT seq, REPEAT(seq, 20) FROM test.seq_1_to_5000;
    INSERT INTO test.t VALUES (0, REPEAT('long', 1000000))";
const SUM: &str = "SELECT COUNT(*), SUM(CRC32(a)) FROM test.t";

#[test]
fn cohort_follows_mariadb_over_tls() {
    let certificates = Certificates::new();
    let own = certificates.server_options();
    let options: Vec<&str> = own.iter().map(String::as_str).chain(["--server-id=7"]).collect();
    let source = Maria::source(&options);
    source.sql("SET sql_log_bin=0; CREATE USER replica@localhost IDENTIFIED BY 'secret' REQUIRE SSL; GRANT REPLICATION SLAVE ON *.* TO replica@localhost");
    let replica = Cohort::new(&["--server-id=8"]);
    // With another authority the source is not trusted, and the replica keeps trying to connect.
    replica.sql(&change_master(&certificates, source.port, "other-ca.pem"));
    replica.sql("START SLAVE");
    wait_until("the error is shown", || replica.replica_field("Last_IO_Errno") == "2026");
    assert!(replica.replica_field("Last_IO_Error").contains("UnknownIssuer"), "{}", replica.replica_status());
    replica.sql("STOP SLAVE");
    // The account requires TLS.
    replica.sql("CHANGE MASTER TO master_ssl=0");
    replica.sql("START SLAVE");
    wait_until("it is refused", || replica.replica_field("Last_IO_Errno") == "1045");
    replica.sql("STOP SLAVE");
    replica.sql(&change_master(&certificates, source.port, "ca.pem"));
    replica.sql("START SLAVE");
    source.sql(ROWS);
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!(replica.sql(SUM), source.sql(SUM));
    assert_eq!(replica.replica_field("Master_SSL_Allowed"), "Yes");
}

#[test]
fn a_source_without_tls_is_refused_when_it_is_asked_for() {
    let certificates = Certificates::new();
    let source = Cohort::new(&["--server-id=7", "--skip-ssl"]);
    let replica = Cohort::new(&["--server-id=8"]);
    replica.sql(&change_master(&certificates, source.port, "ca.pem"));
    replica.sql("START SLAVE");
    wait_until("the error is shown", || replica.replica_field("Last_IO_Errno") == "2026");
    let error = replica.replica_field("Last_IO_Error");
    assert!(error.contains("the server does not support it"), "{error}");
}

#[test]
fn a_source_proves_its_own_certificate_with_the_password() {
    let certificates = Certificates::new();
    let source = Cohort::new(&["--server-id=7"]);
    source.sql(
        "CREATE USER native IDENTIFIED BY 'secret' REQUIRE SSL; GRANT REPLICATION SLAVE ON *.* TO native",
    );
    source.sql("CREATE USER signing IDENTIFIED VIA ed25519 USING PASSWORD('secret'); GRANT REPLICATION SLAVE ON *.* TO signing");
    source.sql("CREATE USER open; GRANT REPLICATION SLAVE ON *.* TO open");
    let replica = Cohort::new(&["--server-id=8"]);
    let follow = |port: u16, user: &str, password: &str| {
        replica.sql("STOP SLAVE");
        replica.sql(&format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='{user}', \
             master_password='{password}', master_connect_retry=1, master_use_gtid=slave_pos, master_ssl=1, \
             master_ssl_verify_server_cert=1"
        ));
        replica.sql("START SLAVE");
    };
    let mut rows = 0;
    source.sql("CREATE TABLE test.t (a INT)");
    for user in ["native", "signing"] {
        follow(source.port, user, "secret");
        source.sql("INSERT INTO test.t VALUES (1)");
        replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
        rows += 1;
        assert_eq!(replica.sql("SELECT COUNT(*) FROM test.t"), rows.to_string(), "{user}");
    }
    // An account without a password shares no secret with the source, and a certificate of another authority
    // comes without proof.
    let own = certificates.server_options();
    let options: Vec<&str> = own.iter().map(String::as_str).chain(["--server-id=9"]).collect();
    let other = Cohort::new(&options);
    let (is_fine, said) = other.tool(
        "mariadb",
        &[
            "--ssl",
            "-e",
            "CREATE USER native IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO native",
        ],
    );
    assert!(is_fine, "{said}");
    for (port, user, password) in [(source.port, "open", ""), (other.port, "native", "secret")] {
        follow(port, user, password);
        wait_until("it is not trusted", || replica.replica_field("Last_IO_Errno") == "2026");
        let error = replica.replica_field("Last_IO_Error");
        assert!(error.contains("The certificate is NOT trusted"), "{error}");
    }
}

#[test]
fn mariadb_follows_cohort_over_tls_semi_synchronously() {
    let certificates = Certificates::new();
    let own = certificates.server_options();
    let options: Vec<&str> = own.iter().map(String::as_str).chain(["--server-id=7"]).collect();
    let source = Cohort::new(&options);
    source
        .sql("CREATE USER replica@'%' IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO replica@'%'");
    source.sql("SET GLOBAL require_secure_transport=1; SET GLOBAL rpl_semi_sync_master_enabled=1");
    let replica = Maria::new(&["--server-id=8", "--rpl-semi-sync-slave-enabled=1"]);
    replica.sql(&change_master(&certificates, source.port, "ca.pem"));
    replica.sql("START SLAVE");
    replica.wait_until_connected();
    let sql = |statements: &str| {
        let (is_fine, text) = source.tool("mariadb", &["-N", "--ssl", "-e", statements]);
        assert!(is_fine, "{text}");
        text.trim().to_owned()
    };
    sql(ROWS);
    replica.wait_for(&sql("SELECT @@gtid_binlog_pos"));
    assert_eq!(sql(SUM), replica.sql(SUM));
    let acknowledged = sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_yes_tx'");
    assert!(!acknowledged.ends_with("\t0"), "{acknowledged}");
}

#[test]
fn a_replica_refuses_certificates_that_do_not_hold() {
    let certificates = Certificates::new();
    let replica = Cohort::new(&["--server-id=8"]);
    for (name, why) in [("expired", "Expired"), ("elsewhere", "not valid for name"), ("revoked", "Revoked")] {
        let cert = certificates.option("ssl-cert", &format!("{name}.pem"));
        let key = certificates.option("ssl-key", &format!("{name}.key"));
        let source = Cohort::new(&["--server-id=7", &cert, &key]);
        replica.sql(&change_master(&certificates, source.port, "ca.pem"));
        replica.sql(&format!("CHANGE MASTER TO master_ssl_crl='{}'", certificates.path("crl.pem").display()));
        replica.sql("START SLAVE");
        wait_until("the error is shown", || replica.replica_field("Last_IO_Errno") == "2026");
        let error = replica.replica_field("Last_IO_Error");
        assert!(error.to_lowercase().contains(&why.to_lowercase()), "{name}: {error}");
        replica.sql("STOP SLAVE");
    }
}
