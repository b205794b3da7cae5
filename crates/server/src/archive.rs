//! The process that stores the archive of the log: `cohort-backup archive`.
//!
//! The client of the object store and its runtime are in that process, not in the server. The server starts
//! one while `archive_to` is set, and none otherwise. It writes frames to its standard input and reads frames
//! from its standard output (docs/backup-format.md); lines of its standard error go to the error log.
//!
//! # Threads
//! One thread lets commits go on that have waited for `archive_sync_timeout`.
//!
//! The archive thread runs `Coordinator::run_archive`: it starts the process, sends, and starts it again
//! after an error. Two threads for each process read its output and its errors; they end with it.
//!
//! # On failure
//! A process that ends, or takes nothing, is an error of the archive, never of the server. At its stop the
//! server closes the input, waits, and then kills the process. If the server is killed, the process finds the
//! end of its input.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use cohort_backup_format::Frame;
use cohort_commit::{ArchiveLink, Coordinator};
use cohort_config::{Globals, VarId};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::epoll::wait_writable;
use crate::storage;

const PROGRAM: &str = "cohort-backup";
/// Time that a process has to end by itself.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// Time in which a process that has closed its input says why.
const SAID_PATIENCE: Duration = Duration::from_secs(1);
/// Pause between two looks at a process, and at whether a write goes on.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Starts the archive thread, if `archive_to` is set, and lets commits wait for it if `archive_sync` says so.
/// It ends when the commit path is closed. Called before clients can connect.
pub fn start(commit: &Arc<Coordinator>, globals: &Globals) -> io::Result<()> {
    let text = |id| globals.text(id).map_or(String::new(), |text| text.to_string());
    let (to, key_file) = (text(VarId::ArchiveTo), text(VarId::ArchiveKeyFile));
    if to.is_empty() {
        return Ok(());
    }
    let watched = Arc::clone(commit);
    let watch = Builder::new().name("archive sync".into()).stack_size(128 << 10);
    watch.spawn(move || watched.watch_archive_sync())?;
    let commit = Arc::clone(commit);
    commit.archive().begin();
    let own = Arc::clone(&commit);
    let started = Builder::new().name("archive".into()).spawn(move || {
        let _end = End(Arc::clone(&own));
        own.run_archive(&mut || Ok(Box::new(Process::start(&to, &key_file)?)));
    });
    if started.is_err() {
        commit.archive().end();
    }
    started.map(drop)?;
    commit.set_archive_sync(storage::archive_sync(globals));
    Ok(())
}

/// Records the end of the thread, also after a panic.
struct End(Arc<Coordinator>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.archive().end();
    }
}

/// A running process.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    frames: Receiver<io::Result<Frame>>,
    /// Nothing is expected of it any more.
    has_failed: bool,
}

impl Process {
    fn start(to: &str, key_file: &str) -> io::Result<Process> {
        let own = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(PROGRAM)));
        let program = own.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(PROGRAM));
        let mut command = Command::new(&program);
        command.arg("archive").arg(format!("--repository={to}"));
        if !key_file.is_empty() {
            command.arg(format!("--key-file={key_file}"));
        }
        // A group of its own: an interrupt of the terminal is for the server, which ends the process later.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let spawned = command.spawn();
        let mut child = spawned
            .map_err(|error| io::Error::new(error.kind(), format!("{} {error}", program.display())))?;
        let (sender, frames) = channel();
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        Builder::new().name("archive output".into()).spawn(move || {
            loop {
                let frame = Frame::read(&mut output).transpose().unwrap_or_else(ended);
                let is_over = frame.is_err();
                if sender.send(frame).is_err() || is_over {
                    return;
                }
            }
        })?;
        let errors = BufReader::new(child.stderr.take().expect("piped"));
        Builder::new().name("archive errors".into()).spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                log::warn!("{PROGRAM}: {line}");
            }
        })?;
        let input = child.stdin.take().expect("piped");
        let flags = fcntl_getfl(&input)?;
        fcntl_setfl(&input, flags | OFlags::NONBLOCK)?;
        Ok(Process { child, input: Some(input), frames, has_failed: false })
    }

    fn write(&mut self, mut rest: &[u8], goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        let input = self.input.as_mut().expect("open while frames are sent");
        while !rest.is_empty() {
            match input.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_writable(input.as_fd(), LOOK_AGAIN)?;
                    if !goes_on() {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn ended() -> io::Result<Frame> {
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process has ended"))
}

impl ArchiveLink for Process {
    fn send(&mut self, frame: &[u8], goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        let Err(error) = self.write(frame, goes_on) else { return Ok(()) };
        self.has_failed = true;
        // The process may have said why it takes nothing.
        if error.kind() == io::ErrorKind::BrokenPipe {
            while let Ok(Ok(frame)) = self.frames.recv_timeout(SAID_PATIENCE) {
                if let Frame::Error(text) = frame {
                    return Err(io::Error::other(text));
                }
            }
        }
        Err(error)
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<Frame>> {
        match self.frames.recv_timeout(patience) {
            Ok(frame) => {
                self.has_failed |= frame.is_err();
                frame.map(Some)
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => ended().map(Some),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        let deadline = Instant::now() + if self.has_failed { Duration::ZERO } else { END_PATIENCE };
        loop {
            match self.child.try_wait() {
                Ok(Some(_)) => return,
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK_AGAIN),
                _ => break,
            }
        }
        // It may have ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
