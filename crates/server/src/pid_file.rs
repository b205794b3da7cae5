//! The file with the server's process ID (`pid_file`).
//!
//! It is written before clients are served, and removed at a stop. The file of another running server is
//! neither overwritten nor removed, because its service manager finds it by that file. Within the data
//! directory a file of another server is left over from a crash: the directory's lock excludes a second
//! server.

use std::fs;
use std::io;
use std::path::Path;

/// Programs whose pid files are kept while they run.
const SERVERS: &[&str] = &["cohortd", "mariadbd", "mysqld"];

/// Writes the file.
pub fn write(file: &Path, datadir: &Path) -> io::Result<()> {
    match running_server(file) {
        Some(pid) if file.parent() != Some(datadir) => {
            let why = format!("it belongs to the running server with process ID {pid}");
            Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
        }
        _ => fs::write(file, format!("{}\n", std::process::id())),
    }
}

/// Removes the file if it is still this server's.
pub fn remove(file: &Path) {
    if process_id(file) == Some(std::process::id()) {
        // It may have been removed by hand meanwhile.
        let _ = fs::remove_file(file);
    }
}

/// Returns the process of another server that the file names.
fn running_server(file: &Path) -> Option<u32> {
    let pid = process_id(file).filter(|pid| *pid != std::process::id())?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    SERVERS.contains(&name.trim_end()).then_some(pid)
}

/// Returns the process that the file names. Devices and pipes are not read.
fn process_id(file: &Path) -> Option<u32> {
    let is_small = fs::metadata(file).is_ok_and(|it| it.is_file() && it.len() < 100);
    is_small.then(|| fs::read_to_string(file).ok()?.trim().parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_its_server_while_that_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        // Any program of the name counts as a server.
        for (name, is_server) in [("mariadbd", true), ("other", false)] {
            let (file, datadir) = (at("pid"), at("data"));
            fs::copy("/bin/sleep", at(name)).expect("copied");
            let mut running = std::process::Command::new(at(name)).arg("60").spawn().expect("started");
            let started = || fs::read_to_string(format!("/proc/{}/comm", running.id())).ok();
            while started().as_deref().map(str::trim_end) != Some(name) {
                std::thread::yield_now();
            }
            fs::write(&file, format!("{}\n", running.id())).expect("written");
            assert_eq!(write(&file, &datadir).is_err(), is_server, "{name}");
            assert_eq!(process_id(&file) == Some(running.id()), is_server, "{name}: the file is kept");
            remove(&file);
            assert_eq!(file.exists(), is_server, "{name}");
            // In the data directory it is a file from before a crash.
            fs::write(&file, format!("{}\n", running.id())).expect("written");
            write(&file, folder.path()).expect("written");
            running.kill().expect("killed");
            running.wait().expect("ended");
            fs::write(&file, format!("{}\n", running.id())).expect("written");
            write(&file, &datadir).expect("the other server has ended");
            remove(&file);
            assert!(!file.exists());
        }
    }
}
