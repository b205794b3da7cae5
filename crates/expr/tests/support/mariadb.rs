//! A real MariaDB with its own data directory, queried through its client program.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::world;

/// Maximum time of a start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running `mariadbd` on a Unix socket; killed on drop.
pub struct Maria {
    child: Child,
    folder: tempfile::TempDir,
}

fn program(name: &str, folder: &Path) -> Command {
    let places = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(Path::new);
    let found = places.iter().map(|place| place.join(name)).find(|path| path.exists());
    let mut command = Command::new(found.expect("MariaDB is installed; ./x test installs it"));
    command.env("TMPDIR", folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Maria {
    pub fn new() -> Maria {
        let folder = tempfile::tempdir().expect("a folder");
        let id = Command::new("id").arg("-un").output().expect("runs").stdout;
        let common = [
            "--no-defaults".to_owned(),
            format!("--datadir={}", folder.path().join("data").display()),
            format!("--user={}", String::from_utf8_lossy(&id).trim()),
            "--innodb-log-file-size=8M".to_owned(),
            "--innodb-use-native-aio=0".to_owned(),
        ];
        let made = program("mariadb-install-db", folder.path())
            .args(&common)
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .status()
            .expect("runs");
        assert!(made.success(), "a data directory is made");
        let child = program("mariadbd", folder.path())
            .args(&common)
            .arg(format!("--socket={}", folder.path().join("sock").display()))
            .args(["--skip-networking", "--innodb-buffer-pool-size=32M", "--character-set-server=utf8mb4"])
            .spawn()
            .expect("runs");
        let maria = Maria { child, folder };
        let end = Instant::now() + PATIENCE;
        while !maria.run("CREATE DATABASE IF NOT EXISTS test; SELECT 'ready';").contains("ready") {
            assert!(Instant::now() < end, "MariaDB does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        let made = maria.run(&format!("USE test; SET time_zone='+00:00'; {}", world::SQL));
        assert!(!made.contains("ERROR"), "{made}");
        maria
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }

    /// Returns the output of the client, including errors and warnings.
    pub fn run(&self, sql: &str) -> String {
        let path = self.folder.path().join("printed");
        let out = std::fs::File::create(&path).expect("a file");
        let mut child = program("mariadb", self.folder.path())
            .args(["--no-defaults", "-uroot", "--default-character-set=utf8mb4", "-N", "--batch"])
            .args(["--force", "--unbuffered", "--show-warnings"])
            .arg(format!("--socket={}", self.socket().display()))
            .stdin(Stdio::piped())
            .stderr(out.try_clone().expect("a second handle"))
            .stdout(out)
            .spawn()
            .expect("runs");
        // A client that failed to connect has closed its input; its output shows the reason.
        let _ = child.stdin.take().expect("piped").write_all(sql.as_bytes());
        child.wait().expect("ended");
        String::from_utf8_lossy(&std::fs::read(&path).expect("it printed")).into_owned()
    }

    /// Returns results for the row of h in the format of the golden files.
    pub fn answers(&self, expressions: &[String]) -> Vec<String> {
        const MARK: &str = "@@mark@@";
        let mut sql = "USE test; SET time_zone = '+00:00', timestamp = 1700000000.123456;\n".to_owned();
        for expression in expressions {
            sql.push_str(&format!("SELECT '{MARK}';\nSELECT {expression} FROM h;\n"));
        }
        let printed = self.run(&sql);
        printed.split(&format!("{MARK}\n")).skip(1).map(written).collect()
    }
}

/// Formats a result as `value`, TAB, `W1292 text | N1105 text`, or as `ERROR number (SQLSTATE): text`.
fn written(printed: &str) -> String {
    let mut value = "";
    let mut warnings = Vec::new();
    for line in printed.lines() {
        if let Some(error) = line.strip_prefix("ERROR ") {
            let (code, text) = error.split_once(" at line ").unwrap_or((error, ": "));
            let text = text.split_once(": ").map_or("", |(_, text)| text);
            return format!("ERROR {code}: {text}");
        }
        let warning = ["Warning", "Note", "Error"].iter().find_map(|level| {
            let rest = line.strip_prefix(level)?.strip_prefix(" (Code ")?;
            let (code, text) = rest.split_once("): ")?;
            Some(format!("{}{code} {text}", &level[..1]))
        });
        match warning {
            Some(warning) => warnings.push(warning),
            None => value = line,
        }
    }
    if warnings.is_empty() { value.to_owned() } else { format!("{value}\t{}", warnings.join(" | ")) }
}

impl Drop for Maria {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
