//! Prometheus and its checker read what the server exports, the rules and the dashboard of
//! packaging/prometheus.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::{Cohort, free_port, run, text, wait_until};
use crate::web::get;

fn packaged(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus").join(name)
}

/// A process, killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn prometheus_accepts_the_metrics_the_rules_and_the_dashboard() {
    let port = free_port();
    let server = Cohort::new(&[&format!("--metrics-port={port}"), "--log-bin"]);
    server.sql(
        "CREATE TABLE test.t (id INT PRIMARY KEY); INSERT INTO test.t VALUES (1); INSERT INTO test.t VALUES (2);
         SELECT * FROM test.t; UPDATE test.t SET id = 3 WHERE id = 1; DELETE FROM test.t",
    );
    // The text, by promtool's rules for names and types. Two names are those of earlier versions.
    let metrics = get(port, "/metrics", "").body;
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool; ./x test installs prometheus");
    check.stdin.take().expect("piped").write_all(metrics.as_bytes()).expect("read");
    let output = check.wait_with_output().expect("ended");
    let said = text(&output);
    let complaints: Vec<&str> = said.lines().filter(|line| !line.contains("cohort_global_status")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    let rules = run("promtool", &["check", "rules", &packaged("cohort.rules.yml").display().to_string()]);
    assert!(rules.status.success(), "{}", text(&rules));
    // Bounded labels: a family has at most a series for each kind of statement and bucket.
    assert!(metrics.lines().count() < 5000, "{}", metrics.lines().count());
    for line in metrics.lines().filter(|line| line.contains("kind=")) {
        assert!(!line.contains("test.t") && !line.contains("root"), "{line}");
    }

    // A real Prometheus evaluates every query of the dashboard, and the rules.
    let (folder, own_port) = (tempfile::tempdir().expect("made"), free_port());
    let config = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\nscrape_configs:\n  - job_name: cohort\n    \
         static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n",
        packaged("cohort.rules.yml").canonicalize().expect("there").display()
    );
    let file = folder.path().join("prometheus.yml");
    std::fs::write(&file, config).expect("written");
    let _prometheus = Running(
        Command::new("prometheus")
            .args([
                &format!("--config.file={}", file.display()),
                &format!("--web.listen-address=127.0.0.1:{own_port}"),
            ])
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus; ./x test installs it"),
    );
    let api = |path: &str| -> serde_json::Value {
        let found = std::panic::catch_unwind(|| get(own_port, path, "Connection: close\r\n"));
        found.map_or(serde_json::Value::Null, |answer| unchunked(&answer.body, &answer.head))
    };
    let query = |expression: &str| api(&format!("/api/v1/query?query={}", encoded(expression)));
    wait_until("two scrapes", || {
        query("count_over_time(cohort_uptime_seconds[1m])")["data"]["result"][0]["value"][1]
            .as_str()
            .is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count >= 3))
    });
    let dashboard = std::fs::read_to_string(packaged("grafana-dashboard.json")).expect("there");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let mut count = 0;
    for target in targets {
        let expression = target["expr"].as_str().expect("a query");
        let filled =
            expression.replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$job", ".*");
        let found = query(&filled);
        assert_eq!(found["status"], "success", "{filled}: {found}");
        assert!(
            found["data"]["result"].as_array().is_some_and(|series| !series.is_empty()),
            "no series: {filled}"
        );
        count += 1;
    }
    assert!(count > 40, "{count}");
    wait_until("the rules are evaluated", || {
        let found = api("/api/v1/rules");
        let rules = found["data"]["groups"][0]["rules"].as_array().cloned().unwrap_or_default();
        rules.len() > 10 && rules.iter().all(|rule| rule["health"] == "ok")
    });
}

/// Returns the JSON of a body, which may be chunked.
fn unchunked(body: &str, head: &str) -> serde_json::Value {
    let mut text = String::new();
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        let mut rest = body;
        while let Some((size, after)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            let Some(chunk) = after.get(..size).filter(|chunk| !chunk.is_empty()) else { break };
            text.push_str(chunk);
            rest = after.get(size + 2..).unwrap_or_default();
        }
    } else {
        text.push_str(body);
    }
    serde_json::from_str(&text).unwrap_or(serde_json::Value::Null)
}

fn encoded(text: &str) -> String {
    let of = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => (byte as char).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(of).collect()
}
