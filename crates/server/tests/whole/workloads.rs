//! sysbench and the other clients of Debian's packages, unmodified.

use std::fmt::Write as _;

use crate::scale::long_or;
use crate::support::{Cohort, run, text};

const WORKLOADS: [&str; 10] = [
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

/// Runs a workload. Returns the number of events.
fn sysbench(server: &Cohort, workload: &str, arguments: &[&str]) -> u64 {
    let port = format!("--mysql-port={}", server.port);
    let own = [workload, "--mysql-host=127.0.0.1", "--mysql-user=root", "--mysql-db=test", &port];
    let output = run("sysbench", &[&own[..], arguments].concat());
    let said = text(&output);
    assert!(is_fine(output.status, &said), "{workload} {arguments:?}: {said:.3000}");
    let events = said.lines().find_map(|line| line.trim().strip_prefix("total number of events:"));
    events.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// Returns whether a run succeeded. Ignored errors are deadlocks, which occur on MariaDB, too.
fn is_fine(status: std::process::ExitStatus, said: &str) -> bool {
    let is_wrong =
        |line: &str| line.contains("FATAL") || (line.contains("error") && !line.contains("ignored errors:"));
    status.success() && !said.lines().any(is_wrong)
}

#[test]
fn sysbench_runs_all_of_its_workloads_at_every_number_of_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Cohort::start(folder.path(), "data", &["--max-connections=600"]);
    // A limited number of events for at most three seconds; in the long run, ten seconds.
    let share = long_or(["--time=10", "--events=0"], ["--time=3", "--events=1500"]);
    let mut done = String::new();
    for mode in ["--db-ps-mode=auto", "--db-ps-mode=disable"] {
        let tables = ["--tables=2", "--table-size=5000", mode];
        sysbench(&server, "oltp_read_write", &[&tables[..], &["prepare"]].concat());
        for threads in ["--threads=1", "--threads=64", "--threads=512"] {
            for workload in WORKLOADS {
                let events = sysbench(
                    &server,
                    workload,
                    &[&tables[..], &[threads, share[0], share[1], "run"]].concat(),
                );
                writeln!(done, "{mode} {threads} {workload}: {events}").expect("memory");
                assert!(events > 0, "{done}");
            }
        }
        sysbench(&server, "oltp_read_write", &[&tables[..], &["cleanup"]].concat());
        for threads in ["--threads=1", "--threads=64", "--threads=512"] {
            for command in ["prepare", "run", "cleanup"] {
                sysbench(&server, "bulk_insert", &[mode, threads, share[0], share[1], command]);
            }
        }
    }
    println!("{done}");
    assert_eq!(server.tool("mariadb", &["-N", "-e", "SHOW TABLES FROM test"]), (true, String::new()));
    server.stop();
}

#[test]
fn mariadb_slap_as_its_manual_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let create = "CREATE TABLE t1 (id INT AUTO_INCREMENT PRIMARY KEY, value INT)";
    let made = server.tool("mariadb", &["test", "-e", create]);
    assert!(made.0, "{}", made.1);
    let common = ["--concurrency=50", "--number-of-queries=10000"];
    let insert = "--query=INSERT INTO t1 (id,value) VALUES(NULL,1)";
    let slapped =
        server.tool("mariadb-slap", &[&common[..], &["--create-schema=test", "--no-drop", insert]].concat());
    assert!(slapped.0, "{}", slapped.1);
    let count = server.tool("mariadb", &["-N", "-e", "SELECT COUNT(*), MAX(id) >= 10000 FROM test.t1"]);
    assert_eq!(count, (true, "10000\t1\n".to_owned()));
    for kind in ["mixed", "write", "read", "key", "update"] {
        let kind = format!("--auto-generate-sql-load-type={kind}");
        let arguments = ["--auto-generate-sql", &kind, "--auto-generate-sql-add-autoincrement"];
        let slapped =
            server.tool("mariadb-slap", &[&common[..1], &arguments, &["--number-of-queries=2000"]].concat());
        assert!(slapped.0, "{kind}: {}", slapped.1);
    }
    let plain = server.tool("mariadb-slap", &[&common[..], &["--auto-generate-sql"]].concat());
    assert!(plain.0, "{}", plain.1);
}
