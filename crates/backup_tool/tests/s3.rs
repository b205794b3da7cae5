//! Repositories in a real server of S3, which `./x backup-s3` installs (`COHORT_MOTO`).

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Fake, assert_restored, files};

/// The server; dropped, it is stopped.
struct S3 {
    process: Child,
    port: u16,
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl S3 {
    fn start() -> S3 {
        let program = std::env::var_os("COHORT_MOTO").expect("COHORT_MOTO: run ./x backup-s3");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|s| s.local_addr()).expect("a port").port();
        let process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = S3 { process, port };
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Sends a request, whose signature moto does not check, and returns the reply.
    fn request(&self, request: &str) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).expect("connected");
        const KEY: &str = "AWS4-HMAC-SHA256 Credential=key/20261128/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
        let headers = format!("Host: 127.0.0.1\r\nAuthorization: {KEY}\r\nContent-Length: 0");
        let text = format!("{request} HTTP/1.0\r\n{headers}\r\n\r\n");
        socket.write_all(text.as_bytes()).expect("sent");
        let mut reply = String::new();
        socket.read_to_string(&mut reply).expect("a reply");
        reply
    }
}

#[test]
#[ignore = "needs a server of S3: ./x backup-s3"]
fn a_backup_goes_round_through_s3() {
    let server = S3::start();
    assert!(server.request("PUT /backups").starts_with("HTTP/1.1 200"), "the bucket");
    let folder = tempfile::tempdir().expect("a directory");
    Fake::new(files(1)).write(&folder.path().join("data"));
    let run = |arguments: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_cohort-backup"))
            .arg("--json")
            .args(arguments.split_whitespace())
            .current_dir(folder.path())
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_ENDPOINT", format!("http://127.0.0.1:{}", server.port))
            .output()
            .expect("the program");
        let value: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        (output.status.code().expect("it ended"), value)
    };
    let place = "s3://backups/some/where --key-file key";
    assert_eq!(run(&format!("list {place}")).0, 4, "it is not a repository");
    assert_eq!(run(&format!("init {place}")).0, 0);
    assert_eq!(run("init s3://backups/some/where --key-file key2").0, 4);
    let (code, first) = run(&format!("take {place} --from data"));
    assert_eq!(code, 0, "{first}");
    let (code, second) = run(&format!("take {place} --from data"));
    assert_eq!((code, &second["backup"]["added_bytes"]), (0, &Value::from(0)), "{second}");
    assert_eq!(run(&format!("restore {place} --to new")).0, 0);
    assert_restored(&folder.path().join("new"), &files(1));
    let (code, pruned) = run(&format!("prune {place} --keep 1"));
    assert_eq!((code, &pruned["deleted"][0]), (0, &first["backup"]["name"]));

    // A chunk that another client has removed.
    let listed = server.request("GET /backups?list-type=2&prefix=some/where/chunks/");
    let name = listed.split("<Key>").nth(1).and_then(|rest| rest.split('<').next()).expect("a chunk");
    let deleted = server.request(&format!("DELETE /backups/{name}"));
    assert!(deleted.starts_with("HTTP/1.1 204"), "{deleted}");
    let (code, verified) = run(&format!("verify {place}"));
    assert_eq!(code, 3, "{name}: {verified}");
    assert!(name.ends_with(verified["findings"][0]["object"].as_str().expect("a name")), "{verified}");
    fs::remove_dir_all(folder.path().join("new")).expect("removed");
    assert_eq!(run(&format!("restore {place} --to new")).0, 3);
    assert_eq!(run(&format!("take {place} --from data")).0, 0);
    assert_eq!(run(&format!("verify {place}")).0, 0);
}
