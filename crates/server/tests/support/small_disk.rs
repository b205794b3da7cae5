//! A small file system without root privileges: in memory, in a mount namespace of the current user.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The namespace and its file system exist as long as the process that holds them. That process exits when
/// its standard input is closed.
pub struct SmallDisk {
    holder: Child,
    mount: PathBuf,
}

impl SmallDisk {
    /// Mounts an empty file system on an empty directory. Returns `None`, with a message, where users may not
    /// create namespaces.
    pub fn new(mount: &Path, mebibytes: u32) -> Option<SmallDisk> {
        std::fs::create_dir(mount).expect("a mount point");
        let script = format!(
            "mount -t tmpfs -o size={mebibytes}m none '{}' && echo mounted && exec cat >/dev/null",
            mount.display()
        );
        let holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut disk = SmallDisk { holder: holder.ok()?, mount: mount.to_owned() };
        let mut said = String::new();
        let out = disk.holder.stdout.take().expect("piped");
        let read = BufReader::new(out).read_line(&mut said);
        if read.is_err() || said.trim() != "mounted" {
            println!("skipped: this user may not have a mount name space of his own");
            return None;
        }
        Some(disk)
    }

    /// Returns a command that runs a program inside the namespace.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--mount", "--preserve-credentials"]);
        command.args([&format!("--target={}", self.holder.id()), "--", program]);
        command
    }

    /// Returns the path of the file system from outside of the namespace.
    pub fn path(&self) -> PathBuf {
        let inside = self.mount.strip_prefix("/").expect("an absolute path");
        Path::new(&format!("/proc/{}/root", self.holder.id())).join(inside)
    }

    /// Fills the remaining space with a file that is not the server's.
    pub fn fill(&self) {
        let file = self.path().join("other.file");
        let filled = Command::new("dd")
            .args(["if=/dev/zero", &format!("of={}", file.display()), "bs=64k"])
            .stderr(Stdio::null())
            .status();
        assert!(!filled.expect("dd runs").success(), "it ends when there is no space");
    }

    pub fn make_room(&self) {
        std::fs::remove_file(self.path().join("other.file")).expect("it is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The file system disappears with the last process of the namespace.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
