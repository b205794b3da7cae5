//! BACKUP SERVER: a backup of the running server, into a directory or as a result set.
//!
//! # Concepts
//! The backup runs on a thread of its own, because it reads and writes files for long. The statement's fiber
//! waits for it, shows its progress in the process list, and passes on KILL, `max_statement_time` and the
//! loss of the client.
//!
//! With TO STREAM the thread puts pieces of files into a queue of [`QUEUE_PIECES`], and waits while it is
//! full. The fiber sends one row for each: `file`, `offset`, `data`. So a client that reads slowly slows the
//! backup down, and the server keeps a few MiB for it at most. The last rows are the manifest. A client that
//! reads nothing is disconnected after `net_write_timeout`, as for every result.
//!
//! # Incremental backups
//! INCREMENTAL FROM names the directory of the backup that is continued, which must be there with all its
//! files; for a stream it names the identifier in its manifest, because the client has the files.
//!
//! # Privileges
//! A backup contains every row and every password hash. TO a directory needs RELOAD and FILE, and a directory
//! that `secure_file_priv` allows. TO STREAM writes no file of the server; it needs RELOAD, and SELECT on all
//! databases, which shows the same rows and hashes.
//!
//! # On failure
//! An incomplete directory is removed. A stream ends with an error, without a manifest.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cohort_backup_format::{MANIFEST, Manifest, SourcePosition};
use cohort_commit::{
    BackupControl, BackupError, BackupRequest, BackupSink, DirectorySink, PIECE_BYTES, ParentBackup,
    ReplicaPositions, ServerIdentity,
};
use cohort_config::{VERSION, VarId, VarValue};
use cohort_expr::SessionHooks as _;
use cohort_locks::{KillFlag, Sleeper};
use cohort_protocol::{ColumnFlags, ColumnMeta, ResultHead, ResultSink, TypeCode};
use cohort_session::Job;
use cohort_session::files::{check_secure, file_error, files, place};
use cohort_sql::ast::{BackupServer, BackupTarget};
use cohort_trx::lock_error;
use cohort_types::{Collation, ErrorCode, SqlError, SqlResult, Value};
use cohort_vfs::OpenMode;
use parking_lot::{Condvar, Mutex};

use crate::session::Session;

/// Maximum number of pieces that wait for the client.
const QUEUE_PIECES: usize = 4;
/// Time between two looks at KILL and at the progress.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// State in the process list.
const STATE: &str = "Backing up";
/// The file that makes a directory a data directory.
const VERSION_FILE: &str = "cohort.version";

/// A piece of a file.
struct Piece {
    file: String,
    offset: u64,
    bytes: Vec<u8>,
}

/// State that the backup's thread and the statement share.
struct Shared {
    control: BackupControl,
    state: Mutex<State>,
    /// Notifies the thread: the queue has space.
    has_space: Condvar,
    /// The statement's wait slot.
    sleeper: Arc<dyn Sleeper>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Piece>,
    done: Option<Result<Manifest, BackupError>>,
}

impl Shared {
    /// Adds a piece. Waits for space in the queue first, but not for long: the error is `WouldBlock` then.
    fn push(&self, file: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.queue.len() >= QUEUE_PIECES {
            self.has_space.wait_for(&mut state, LOOK_AGAIN);
        }
        if state.queue.len() >= QUEUE_PIECES {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        state.queue.push_back(Piece { file: file.to_owned(), offset, bytes: bytes.to_vec() });
        drop(state);
        self.sleeper.wake();
        Ok(())
    }

    fn has_work(&self) -> bool {
        let state = self.state.lock();
        !state.queue.is_empty() || state.done.is_some()
    }
}

/// Sends the files to the client.
struct StreamSink {
    to: Arc<Shared>,
    /// Number of bytes of the manifest that are in the queue.
    manifest: usize,
}

impl BackupSink for StreamSink {
    fn write(&mut self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.to.push(path, offset, bytes)
    }

    fn finish(&mut self, manifest: &Manifest) -> io::Result<()> {
        let text = manifest.encode();
        while let Some(left) = text.as_bytes().get(self.manifest..).filter(|left| !left.is_empty()) {
            let piece = &left[..left.len().min(PIECE_BYTES)];
            self.to.push(MANIFEST, self.manifest as u64, piece)?;
            self.manifest += piece.len();
        }
        Ok(())
    }
}

impl Session {
    /// Runs BACKUP SERVER. Its privileges were checked.
    pub(crate) fn back_up_server(
        &mut self,
        BackupServer { target, parent }: &BackupServer,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let parent = parent.as_deref().map(|parent| self.parent_backup(parent, target)).transpose()?;
        let shared = Arc::new(Shared {
            control: BackupControl::default(),
            state: Mutex::default(),
            has_space: Condvar::new(),
            sleeper: self.state.db.locks.sleeper(),
        });
        let (to, label): (Box<dyn BackupSink + Send>, String) = match target {
            BackupTarget::Directory(name) => {
                let (sink, path) = self.directory_sink(name)?;
                (Box::new(sink), format!("'{}'", path.display()))
            }
            BackupTarget::Stream => {
                let head = ResultHead { status: self.status_for(job.more), warnings: 0 };
                sink.start(&columns(), head);
                (
                    Box::new(StreamSink { to: Arc::clone(&shared), manifest: 0 }),
                    format!("connection {}", self.state.info.id),
                )
            }
        };
        self.process().set_state(STATE);
        self.start_backup(&shared, to, label, parent)?;
        self.begin_deadline();
        let rows = self.await_backup(&shared, sink);
        self.end_deadline();
        let rows = rows?;
        match target {
            BackupTarget::Directory(_) => {
                self.state.settings.env.row_count = 0;
                self.send_ok(job.more, 0, 0, "", sink);
            }
            BackupTarget::Stream => {
                (self.state.settings.env.found_rows, self.state.settings.env.row_count) = (rows, -1);
                self.finish_rows(self.status_for(job.more), 0, sink);
            }
        }
        Ok(())
    }

    /// Checks the directory, and begins the backup in it.
    fn directory_sink(&self, name: &str) -> SqlResult<(DirectorySink, PathBuf)> {
        let server = files(&self.state)?;
        let path = place(&*server, name, None);
        let failed = |error: &io::Error| {
            let what = format!("Can't create/write to file '{}'", path.display());
            file_error(ErrorCode::CantCreateFile, &what, error)
        };
        // The target may be a symbolic link; a new one is where its parent is.
        let parent = path.parent().unwrap_or(Path::new("/"));
        let real = match server.real(&path) {
            Ok(real) => {
                check_secure(&self.state, &*server, &real)?;
                Ok(real)
            }
            Err(_) => server.real(parent).map(|parent| parent.join(path.file_name().unwrap_or_default())),
        };
        let real = real.map_err(|error| failed(&error))?;
        check_secure(&self.state, &*server, parent)?;
        let datadir = server.real(server.datadir()).map_err(|error| failed(&error))?;
        if real.starts_with(&datadir) || datadir.starts_with(&real) {
            return Err(SqlError::backup_in_datadir(path.display()));
        }
        let sink =
            DirectorySink::new(self.state.db.fs.clone(), &real).map_err(|error| match error.kind() {
                io::ErrorKind::DirectoryNotEmpty => SqlError::backup_directory_not_empty(path.display()),
                _ => failed(&error),
            })?;
        Ok((sink, path))
    }

    /// Finds the backup that an incremental one continues.
    fn parent_backup(&self, name: &str, target: &BackupTarget) -> SqlResult<ParentBackup> {
        if *target == BackupTarget::Stream {
            return Ok(ParentBackup { id: name.to_owned(), ..ParentBackup::default() });
        }
        let server = files(&self.state)?;
        let path = place(&*server, name, None);
        check_secure(&self.state, &*server, &path)?;
        let manifest = Manifest::read(&path).map_err(|error| SqlError::backup_failed(&error))?;
        for entry in &manifest.files {
            let file = path.join(&entry.path);
            let found = self.state.db.fs.open(&file, OpenMode::Read).and_then(|file| file.len());
            if !found.is_ok_and(|bytes| bytes == entry.size) {
                return Err(SqlError::backup_failed(format_args!(
                    "'{}' is missing or has another length than its manifest says: take a full backup",
                    file.display()
                )));
            }
        }
        let files = manifest.files.into_iter().map(|entry| (entry.path, entry.size)).collect();
        Ok(ParentBackup { id: manifest.id, cut_lsn: manifest.cut_lsn, files })
    }

    /// Starts the thread.
    fn start_backup(
        &self,
        shared: &Arc<Shared>,
        mut to: Box<dyn BackupSink + Send>,
        label: String,
        parent: Option<ParentBackup>,
    ) -> SqlResult<()> {
        let (db, shared) = (Arc::clone(&self.state.db), Arc::clone(shared));
        let text = |id: VarId| db.globals.text(id).map_or(String::new(), |text| text.to_string());
        let server = ServerIdentity {
            version: VERSION.to_owned(),
            uuid: text(VarId::ServerUid),
            id: db.globals.uint(VarId::ServerId) as u32,
        };
        let run = move || {
            let bytes_per_s = || db.globals.uint(VarId::BackupMibPerS) << 20;
            // Determined before the order stage is held: a connection's locks are held while it waits for
            // that.
            let replica = db.replica.read().clone();
            let reports = replica.map_or_else(Vec::new, |replica| replica.reports());
            let sources: Vec<SourcePosition> = reports
                .into_iter()
                .map(|report| SourcePosition { connection: report.name, ..SourcePosition::default() })
                .collect();
            let positions = |_: &str| {
                let callbacks = db.callbacks.read().clone();
                let position = callbacks.and_then(|callbacks| callbacks.variable(VarId::GtidCurrentPos));
                let gtid_current_pos = match position {
                    Some(VarValue::Text(text)) => text.to_string(),
                    _ => String::new(),
                };
                ReplicaPositions { gtid_current_pos, sources: sources.clone() }
            };
            let request = BackupRequest {
                label: &label,
                server,
                files: vec![(VERSION_FILE.to_owned(), b"cohort 1\n".to_vec())],
                bytes_per_s: &bytes_per_s,
                positions: &positions,
                control: &shared.control,
                parent,
            };
            let done = db.commit.back_up(&request, &mut *to);
            // Removes an incomplete directory before the statement returns.
            drop(to);
            shared.state.lock().done = Some(done);
            shared.sleeper.wake();
        };
        let started = std::thread::Builder::new().name("backup".to_owned()).spawn(run);
        started
            .map(drop)
            .map_err(|error| file_error(ErrorCode::OutOfResources, "Can't start a thread", &error))
    }

    /// Waits until the thread of the statement has work for it, or for [`LOOK_AGAIN`]. Sets the error of KILL
    /// or of the time limit, once: the thread ends soon after.
    pub(super) fn await_thread(
        &self,
        sleeper: &Arc<dyn Sleeper>,
        killed: &mut Option<SqlError>,
        has_work: impl Fn() -> bool,
    ) {
        let no_kill = KillFlag::default();
        let kill = if killed.is_none() { &self.state.kill } else { &no_kill };
        let slept = self.state.db.locks.sleep_until(Arc::clone(sleeper), LOOK_AGAIN, kill, has_work);
        if killed.is_none() {
            *killed = slept.map_err(lock_error).and_then(|_| self.state.check_interrupt()).err();
        }
    }

    /// Waits for the end of the backup, and sends the pieces of a stream. Returns the number of rows.
    fn await_backup(&self, shared: &Arc<Shared>, sink: &mut dyn ResultSink) -> SqlResult<u64> {
        let db = &self.state.db;
        let (mut rows, mut killed) = (0, None);
        loop {
            self.await_thread(&shared.sleeper, &mut killed, || shared.has_work());
            if killed.is_some() || sink.has_hung_up() {
                shared.control.is_interrupted.store(true, Ordering::Relaxed);
            }
            let (copied, expected) = (&shared.control.copied, &shared.control.expected);
            let progress = (copied.load(Ordering::Relaxed), expected.load(Ordering::Relaxed));
            self.process().set_progress(progress, db.clock.monotonic_ns());
            let (pieces, done) = {
                let mut state = shared.state.lock();
                // After the queue, so that nothing of a complete stream is left.
                let pieces = std::mem::take(&mut state.queue);
                (pieces, state.done.take())
            };
            shared.has_space.notify_all();
            for piece in pieces {
                if killed.is_none() {
                    sink.row(&[
                        Value::text(piece.file),
                        Value::UInt(piece.offset),
                        Value::binary(piece.bytes),
                    ]);
                    rows += 1;
                }
            }
            match (done, killed.take()) {
                (None, still) => killed = still,
                (Some(Ok(_)), None) => return Ok(rows),
                (Some(Ok(_)), Some(error)) => return Err(error),
                (Some(Err(BackupError::Interrupted)), error) => {
                    return Err(error.unwrap_or_else(SqlError::interrupted));
                }
                (Some(Err(error)), _) => return Err(SqlError::backup_failed(&error)),
            }
        }
    }
}

/// Returns the columns of a stream.
fn columns() -> [ColumnMeta; 3] {
    let of = |name: &str, type_code, length, collation, flags| ColumnMeta {
        flags: ColumnFlags(flags),
        ..ColumnMeta::expression(name, type_code, length, collation)
    };
    let not_null = ColumnFlags::NOT_NULL.0;
    let file = ColumnMeta { flags: ColumnFlags(not_null), ..ColumnMeta::text("file", 1024) };
    let number = not_null | ColumnFlags::UNSIGNED.0 | ColumnFlags::BINARY.0;
    let blob = not_null | ColumnFlags::BLOB.0 | ColumnFlags::BINARY.0;
    [
        file,
        of("offset", TypeCode::LongLong, 20, Collation::BINARY, number),
        of("data", TypeCode::LongBlob, u32::MAX, Collation::BINARY, blob),
    ]
}
