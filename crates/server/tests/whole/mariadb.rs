//! A real MariaDB on a data directory of its own: what Cohort is compared to.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mysql::{Conn, OptsBuilder};

use crate::cohort::{run, text};

/// A running `mariadbd`, on a Unix socket only; killed when dropped.
pub struct MariaDb {
    child: Child,
    pub socket: PathBuf,
    pub datadir: PathBuf,
}

impl MariaDb {
    pub fn start(folder: &Path) -> MariaDb {
        let datadir = folder.join("mariadb");
        let user = String::from_utf8_lossy(&run("id", &["-un"]).stdout).trim().to_owned();
        let own = [format!("--datadir={}", datadir.display()), format!("--user={user}")];
        let made = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal"])
            .args(&own)
            // A mariadbd that starts removes the temporary tables of every other one in the same directory.
            .env("TMPDIR", folder)
            .output()
            .expect("MariaDB is installed");
        assert!(made.status.success(), "{}", text(&made));
        let socket = folder.join("mariadb.sock");
        let log = folder.join("mariadb.err");
        let child = Command::new(server_program())
            .arg("--no-defaults")
            .args(own)
            .env("TMPDIR", folder)
            .arg(format!("--socket={}", socket.display()))
            .args(["--skip-networking", "--log-bin=binlog", "--server-id=7", "--binlog-format=ROW"])
            // Nothing here is about its durability.
            .args(["--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).expect("a log file"))
            .spawn()
            .expect("MariaDB starts");
        let server = MariaDb { child, socket, datadir };
        let end = Instant::now() + Duration::from_secs(60);
        while Conn::new(server.options()).is_err() {
            let said = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < end, "MariaDB does not answer: {}", said());
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    pub fn options(&self) -> OptsBuilder {
        let socket = self.socket.to_str().expect("a path of ASCII");
        OptsBuilder::new().socket(Some(socket)).user(Some("root")).prefer_socket(false)
    }

    pub fn client(&self) -> Conn {
        Conn::new(self.options()).expect("a connection")
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn server_program() -> PathBuf {
    let places = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(Path::new);
    let found = places.iter().map(|place| place.join("mariadbd")).find(|path| path.exists());
    found.expect("MariaDB is installed; ./x test installs it")
}
