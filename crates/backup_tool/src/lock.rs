//! Locks: `prune` and `verify --remove-damaged` delete chunks; `take`, `restore` and `verify` rely on chunks
//! that exist. Any number of the latter may run at the same time, and a command that deletes runs alone.
//!
//! A command writes its lock first and then lists the others', so of two commands that begin at the same time
//! at least one sees the other. A lock whose process no longer runs on this machine is removed. Other locks
//! that were left by a killed command are removed by `--unlock`.
//!
//! In a repository without room for a lock, a command that deletes marks it by an empty object, so that it
//! can make room. Such a lock names no holder: if its command is killed, only `--unlock` removes it.

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::hex;
use crate::key::random;
use crate::object::Kind;
use crate::repository::Repository;
use crate::store::Put;

const FOLDER: &str = "locks";

/// Use of the repository by the holder of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Adds chunks, and relies on those that exist.
    Adds,
    /// Deletes chunks.
    Deletes,
    /// Reads chunks.
    Reads,
}

/// The contents of a lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Holder {
    r#use: Use,
    command: String,
    host: String,
    /// Boot and process namespace: process numbers mean the same where these are the same.
    machine: String,
    process: u32,
    /// Start time of the process in clock ticks since the boot.
    started: String,
    #[serde(with = "crate::moment")]
    since: jiff::Timestamp,
}

impl Holder {
    fn this(command: &str, r#use: Use) -> Holder {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Holder {
            r#use,
            command: command.to_owned(),
            host: host.trim().to_owned(),
            machine: machine(),
            process: std::process::id(),
            started: started(std::process::id()).unwrap_or_default(),
            since: jiff::Timestamp::now(),
        }
    }

    /// Returns whether the process is known to have ended.
    fn has_ended(&self) -> bool {
        let is_here = !self.machine.is_empty() && self.machine == machine();
        let process = rustix::process::Pid::from_raw(self.process as i32);
        let (true, Some(process)) = (is_here, process) else { return false };
        // Without a /proc that shows the process, only its number is known.
        match (rustix::process::test_kill_process(process), started(self.process)) {
            (Err(rustix::io::Errno::SRCH), _) => true,
            (_, Some(started)) => started != self.started,
            (_, None) => false,
        }
    }
}

/// Identifies this machine and its process numbers; empty if /proc does not show it.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    match (boot.trim(), namespace.as_os_str().is_empty()) {
        ("", _) | (_, true) => String::new(),
        (boot, false) => format!("{boot} {}", namespace.display()),
    }
}

/// Returns the start time of a process, field 22 of its `stat`.
fn started(process: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

/// A lock that this process holds; dropped, it is removed.
pub struct Lock<'a> {
    repository: &'a Repository,
    name: String,
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // If it fails, the next command removes the lock, because this process has ended.
        let _ = self.repository.store().delete(&self.name);
    }
}

impl<'a> Lock<'a> {
    /// Takes a lock for a command that only reads: commands that delete wait for its end. It waits for none
    /// of them, because the lock of a machine that was lost must not prevent a restore. `None` if the
    /// repository cannot be written.
    pub fn read(repository: &'a Repository, command: &str) -> Result<Option<Lock<'a>>> {
        match Lock::write(repository, command, Use::Reads) {
            Err(Failure::Failed(_)) => Ok(None),
            taken => taken.map(Some),
        }
    }

    fn write(repository: &'a Repository, command: &str, r#use: Use) -> Result<Lock<'a>> {
        let holder = serde_json::to_vec(&Holder::this(command, r#use)).expect("all keys are strings");
        let new_name = || format!("{FOLDER}/{}", hex::encode(&random::<8>()));
        let name = new_name();
        match repository.write(Kind::Lock, &name, &holder) {
            Ok(_) => Ok(Lock { repository, name }),
            Err(failure @ Failure::Failed(_)) if r#use == Use::Deletes => {
                let name = new_name();
                match repository.store().put(&name, &[]) {
                    Ok(Put::Created) => Ok(Lock { repository, name }),
                    _ => Err(failure),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// Takes a lock, or fails with the command that holds a conflicting one.
    pub fn take(repository: &'a Repository, command: &str, r#use: Use) -> Result<Lock<'a>> {
        let lock = Lock::write(repository, command, r#use)?;
        for (name, other) in holders(repository)? {
            if name == lock.name {
                continue;
            }
            let Some(other) = other else {
                return Err(Failure::Busy(format!(
                    "repository {}: a command that deletes uses it. If it was killed, remove its lock with \
                     `cohort-backup prune --unlock`",
                    repository.store().place()
                )));
            };
            if r#use != Use::Deletes && other.r#use != Use::Deletes {
                continue;
            }
            if other.has_ended() {
                repository.store().delete(&name)?;
                continue;
            }
            return Err(Failure::Busy(format!(
                "repository {}: `{}` uses it since {} (process {} on {}). If that process no longer runs, remove its \
                 lock with `cohort-backup prune --unlock`",
                repository.store().place(),
                other.command,
                other.since.strftime("%F %T UTC"),
                other.process,
                other.host,
            )));
        }
        Ok(lock)
    }
}

/// Removes all locks, and returns their number.
pub fn remove_all(repository: &Repository) -> Result<usize> {
    let mut names = Vec::new();
    repository.store().list(FOLDER, |lock| names.push(lock.name))?;
    names.iter().try_for_each(|name| repository.store().delete(name))?;
    Ok(names.len())
}

/// Returns the locks; an empty one has no holder.
fn holders(repository: &Repository) -> Result<Vec<(String, Option<Holder>)>> {
    let mut names = Vec::new();
    repository.store().list(FOLDER, |lock| names.push((lock.name, lock.bytes)))?;
    let mut holders = Vec::new();
    for (name, bytes) in names {
        if bytes == 0 {
            holders.push((name, None));
            continue;
        }
        // A lock may go away meanwhile.
        let Some(contents) = repository.read(Kind::Lock, &name)? else { continue };
        let holder = serde_json::from_slice(&contents).map_err(|error| {
            Failure::Damaged(format!(
                "'{name}': {error}; remove the locks with `cohort-backup prune --unlock`"
            ))
        })?;
        holders.push((name, Some(holder)));
    }
    Ok(holders)
}
