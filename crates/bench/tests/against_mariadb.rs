//! Tests of the program as a user runs it, with the system's MariaDB.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cohort-bench")).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).expect("a folder").next().is_none()
}

/// Returns a folder on a disk: the default folder for temporary files is in memory on some machines.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a folder")
}

#[test]
fn measures_reads_and_writes_and_counts_flushes() {
    let (servers, kept) = (folder(), folder());
    let json = kept.path().join("results.json");
    let output = bench(&[
        "run",
        "point_select",
        "update_index",
        "write_only",
        "large",
        "--large=2",
        "--idle=20",
        "--servers=mariadb",
        "--seconds=0.5",
        "--warm=0.2",
        "--repeats=2",
        "--clients=8",
        "--disk=real,2000",
        "--tables=2",
        "--rows=500",
        &format!("--dir={}", servers.path().display()),
        &format!("--json={}", json.display()),
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("| point_select | 8 |"), "{}", text(&output.stdout));
    assert!(is_empty(servers.path()), "the servers' folders are removed");

    let results: Value = serde_json::from_slice(&std::fs::read(json).expect("kept")).expect("JSON");
    let cases = results["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), (3 + 2) * 2);
    for case in cases {
        let samples = case["samples"][0].as_array().expect("samples of the only server");
        assert_eq!(samples.len(), 2);
        for sample in samples {
            let number = |name: &str| sample[name].as_f64();
            assert!(number("per_second") > Some(5.0), "{case}");
            assert!(number("p50_us") <= number("p99_us"), "{case}");
            if case["workload"] != "point_select" {
                // MariaDB flushes the engine's log and the binary log, and occasionally other files.
                assert!(number("flushes_per_group").is_some_and(|n| n > 1.0 && n < 20.0), "{case}");
                let slow = case["disk"] == "2000us";
                assert!(!slow || number("flush_us") >= Some(2000.0), "{case}");
                assert!(!slow || number("p50_us") >= Some(4000.0), "{case}");
            }
        }
    }

    let again = bench(&["report", kept.path().join("results.json").to_str().expect("a plain path")]);
    assert_eq!(text(&again.stdout), text(&output.stdout));
}

#[test]
fn a_server_that_does_not_start_is_named_and_its_log_kept() {
    let dir = folder();
    let fake = dir.path().join("cohortd");
    std::fs::write(&fake, "#!/bin/sh\necho no luck today\nexit 3\n").expect("written");
    let mut permissions = std::fs::metadata(&fake).expect("there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&fake, permissions).expect("made a program");
    let output = bench(&[
        "run",
        "insert",
        "--servers=cohort",
        &format!("--cohortd={}", fake.display()),
        &format!("--dir={}", dir.path().display()),
    ]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty(), "no figures");
    assert!(said.contains("cohort: ") && said.contains("exit code 3"), "{said}");
    let log = said.trim().rsplit(' ').next().expect("a path comes last");
    assert_eq!(std::fs::read_to_string(log).expect("kept"), "no luck today\n");
    std::fs::remove_file(log).expect("removed");
}
