//! Clients of MariaDB as Debian packages them, unmodified, against the real server: sysbench, mariadb-slap, mariadb-binlog.

#![cfg(feature = "rocksdb")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server on a data directory of its own.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(datadir: &Path, port: u16) -> Server {
        let log = std::fs::File::create(datadir.with_extension("err")).expect("a log file");
        let child = Command::new(env!("CARGO_BIN_EXE_cohortd"))
            .arg("--no-defaults")
            .arg(format!("--datadir={}", datadir.display()))
            .args(["--bind-address=127.0.0.1", "--max-connections=600", &format!("--port={port}")])
            .arg(format!("--socket={}", datadir.with_extension("sock").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("starts");
        let server = Server { child, port };
        let start = Instant::now();
        while !server.client("mariadb-admin", &["ping"]).0 {
            if start.elapsed() > Duration::from_secs(30) {
                let log = std::fs::read_to_string(datadir.with_extension("err")).unwrap_or_default();
                panic!("the server does not answer: {log} {:?}", server.client("mariadb-admin", &["ping"]));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Runs one of MariaDB's clients; whether it succeeded, and what it said.
    fn client(&self, program: &str, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(program)
            .args(["--no-defaults", "--host=127.0.0.1", "--user=root", &format!("--port={}", self.port)])
            .args(arguments)
            .output()
            .expect("the client is installed");
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    }

    fn sql(&self, statements: &str) -> String {
        let (is_fine, text) = self.client("mariadb", &["-N", "-e", statements]);
        assert!(is_fine, "{statements}: {text}");
        text
    }

    fn sysbench(&self, workload: &str, arguments: &[&str]) {
        let output = Command::new("sysbench")
            .arg(workload)
            .args(["--mysql-host=127.0.0.1", "--mysql-user=root", "--mysql-db=test"])
            .arg(format!("--mysql-port={}", self.port))
            .args(arguments)
            .output()
            .expect("sysbench is installed");
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !text.contains("FATAL"), "{workload} {arguments:?}: {text:.2000}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn sysbench_runs_all_of_its_workloads() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let server = Server::start(&folder.path().join("data"), 33_861);
    let tables = ["--tables=2", "--table-size=1000"];
    server.sysbench("oltp_read_write", &[&tables[..], &["prepare"]].concat());
    let workloads = [
        "oltp_insert",
        "oltp_delete",
        "oltp_update_index",
        "oltp_update_non_index",
        "oltp_write_only",
        "oltp_read_write",
        "oltp_read_only",
        "oltp_point_select",
        "select_random_points",
        "select_random_ranges",
    ];
    for mode in ["--db-ps-mode=auto", "--db-ps-mode=disable"] {
        for workload in workloads {
            server.sysbench(workload, &[&tables[..], &[mode, "--threads=8", "--time=1", "run"]].concat());
        }
    }
    server.sysbench("oltp_point_select", &[&tables[..], &["--threads=512", "--time=1", "run"]].concat());
    server.sysbench("oltp_read_write", &[&tables[..], &["cleanup"]].concat());
    server.sysbench("bulk_insert", &["--threads=2", "prepare"]);
    server.sysbench("bulk_insert", &["--threads=2", "--time=1", "run"]);
    server.sysbench("bulk_insert", &["--threads=2", "cleanup"]);
}

#[test]
fn mariadb_slap_loads_and_a_played_back_binlog_gives_the_same_rows() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let server = Server::start(&folder.path().join("data"), 33_862);
    server.sql("CREATE TABLE test.t1 (id INT AUTO_INCREMENT PRIMARY KEY, value INT)");
    let (is_fine, text) = server.client(
        "mariadb-slap",
        &[
            "--create-schema=test",
            "--no-drop",
            "--concurrency=50",
            "--number-of-queries=2000",
            "--query=INSERT INTO t1 (id,value) VALUES(NULL,1)",
        ],
    );
    assert!(is_fine, "{text}");
    assert_eq!(server.sql("SELECT COUNT(*) FROM test.t1").trim(), "2000");
    let (is_fine, text) =
        server.client("mariadb-slap", &["--auto-generate-sql", "--concurrency=8", "--number-of-queries=200"]);
    assert!(is_fine, "{text}");
    server.sql(
        "CREATE TABLE test.t2 (a VARCHAR(30) PRIMARY KEY, b DECIMAL(10,3), c DATETIME(3), d BLOB, KEY (b));
         INSERT INTO test.t2 VALUES ('x', 1.5, '2026-01-02 03:04:05.678', 0x00ff), ('ä', NULL, NULL, '');
         UPDATE test.t2 SET b = b + 1; DELETE FROM test.t2 WHERE a = 'ä'; FLUSH BINARY LOGS",
    );
    let checksum = "CHECKSUM TABLE test.t1, test.t2";
    let expected = server.sql(checksum);

    let copy = Server::start(&folder.path().join("copy"), 33_863);
    let log = folder.path().join("data/binlog.000001");
    let played = Command::new("sh")
        .arg("-c")
        .arg(format!(
            "mariadb-binlog --no-defaults --verify-binlog-checksum {} | mariadb --no-defaults --host=127.0.0.1 --user=root --port={}",
            log.display(),
            copy.port
        ))
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success() && text.is_empty(), "{text}");
    assert_eq!(copy.sql(checksum), expected);
}
