//! CLONE: a copy of this server or of another one, as a directory in which a server starts.
//!
//! # Concepts
//! CLONE LOCAL is BACKUP SERVER TO a new directory. CLONE INSTANCE receives the stream of another server's
//! backup (`cohort_clone`) on a thread of its own; the statement's fiber waits for it, shows the progress,
//! and passes on KILL and `max_statement_time`, which end the connection to the *donor*. With DATA DIRECTORY
//! the clone lies in a new directory. Without it the clone lies within the data directory, and takes the
//! place of the data at the next start, which the statement requests ([`replace`] has the steps, and what a
//! crash leaves).
//!
//! # Before anything is copied
//! The donor is in `clone_valid_donor_list`; it has the same version, so files of one are files of the other;
//! to replace the data, the layout and the name of the binary log are those of the donor, because the options
//! of this server stay. Engines are compared with the manifest, before the clone becomes valid.
//!
//! # Replication
//! The clone is at the donor's position. The first start in it runs [`replace::STATEMENTS`]: they set
//! `gtid_slave_pos`, and the connections of a replica whose data are replaced are made again, with their
//! passwords, in place of the donor's.
//!
//! # TLS
//! It is required unless the statement has REQUIRE NO SSL: a clone is all rows and password hashes. The donor
//! proves with the hash of the password that the certificate is its own. No key of TLS is in the stream.
//!
//! # On failure
//! The directory is removed, and the old data are as they were: renaming the clone is the last step. If the
//! server cannot start with the clone, it starts with the old data again ([`replace::undo`]).

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cohort_backup_format::{Manifest, UNFINISHED};
use cohort_base::Gtid;
use cohort_clone::client::{Account, Client, Stopper, Tls, quoted, text_of};
use cohort_clone::{Failure, Receiver, Target, discard, replace, stream};
use cohort_config::{VERSION, VarId, VarValue};
use cohort_locks::Sleeper;
use cohort_protocol::ResultSink;
use cohort_session::files::{check_secure, file_error, files};
use cohort_session::{CloneReport, CloneStage, Job};
use cohort_sql::ast::{BackupServer, BackupTarget, CloneInstance, CloneServer};
use cohort_types::{ErrorCode, SqlError, SqlResult};
use parking_lot::Mutex;

use crate::session::Session;

const STATE: &str = "Cloning";
const LOCAL: &str = "LOCAL INSTANCE";
/// Query for the properties that must be equal.
const FACTS: &str = "SELECT @@version, @@version_comment";
const SETTINGS: &str = "SELECT @@log_layout, COALESCE(@@log_bin_basename, '')";
const EXPECTED: &str = "SHOW GLOBAL STATUS LIKE 'Cohort_backup_expected_bytes'";

/// State that the thread and the statement share.
struct Shared {
    is_interrupted: AtomicBool,
    received: AtomicU64,
    expected: AtomicU64,
    /// End the connections to the donor.
    stoppers: Mutex<Vec<Stopper>>,
    done: Mutex<Option<SqlResult<Manifest>>>,
    sleeper: Arc<dyn Sleeper>,
}

impl Shared {
    fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::Relaxed);
        self.stoppers.lock().iter().for_each(Stopper::stop);
    }

    fn give(&self, stopper: Stopper) {
        let mut stoppers = self.stoppers.lock();
        if self.is_interrupted.load(Ordering::Relaxed) {
            stopper.stop();
        }
        stoppers.push(stopper);
    }
}

/// One CLONE INSTANCE, for its thread.
struct Copy {
    account: Account,
    place: PathBuf,
    /// The clone replaces the data: layout and name of the binary log that the donor must have.
    own: Option<[String; 2]>,
    version: [String; 2],
    engines: Vec<String>,
    db: Arc<cohort_session::Database>,
    shared: Arc<Shared>,
}

impl Copy {
    fn enter(&self, stage: CloneStage) {
        let now_us = self.db.clock.wall_us();
        self.db.clones.change(|report| report.enter(stage, now_us));
    }

    /// Copies the donor. The clone is complete and durable then.
    fn run(&self) -> SqlResult<Manifest> {
        let donor = |failure: Failure| SqlError::clone_donor(failure);
        let own = |failure: Failure| SqlError::clone_failed(failure);
        let mut client =
            Client::connect_stoppable(&self.account, |stopper| self.shared.give(stopper)).map_err(donor)?;
        self.check_donor(&mut client)?;
        let target = Target::open(&self.place).map_err(own)?;
        let outcome = self.fill(&mut client, &target);
        if outcome.is_err() {
            // If it cannot be removed, no server starts in it.
            discard(&self.place);
        }
        outcome
    }

    fn check_donor(&self, client: &mut Client) -> SqlResult<()> {
        let mut row = |sql: &str| -> SqlResult<[String; 2]> {
            let row = client.row(sql).map_err(SqlError::clone_donor)?;
            let [first, second] = &row[..] else {
                return Err(SqlError::clone_donor("it sent a row of another form"));
            };
            Ok([text_of(first).into_owned(), text_of(second).into_owned()])
        };
        let version = row(FACTS)?;
        if version != self.version {
            return Err(SqlError::clone_donor_version(&version.join(" "), &self.version.join(" ")));
        }
        let Some(own) = &self.own else { return Ok(()) };
        let [layout, log_bin] = row(SETTINGS)?;
        let log_bin = last_part(&log_bin);
        for (name, donor, own) in [("log_layout", &layout, &own[0]), ("log_bin", &log_bin, &own[1])] {
            if donor != own {
                return Err(SqlError::clone_config(name, donor, own));
            }
        }
        Ok(())
    }

    fn fill(&self, client: &mut Client, target: &Target) -> SqlResult<Manifest> {
        let own = |failure: Failure| SqlError::clone_failed(failure);
        let (shared, is_own) = (&self.shared, Cell::new(false));
        let mut receiver = Receiver::new(target);
        let mut has_begun = false;
        let received = stream(client, None, &mut |name, offset, bytes| {
            let mut take = || {
                if !std::mem::replace(&mut has_begun, true) {
                    target.begin(0)?;
                    self.enter(CloneStage::FileCopy);
                    self.expect()?;
                }
                receiver.add(name, offset, bytes)
            };
            take().inspect_err(|_| is_own.set(true))?;
            shared.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            match shared.is_interrupted.load(Ordering::Relaxed) {
                true => Err(Failure::Failed("it was interrupted".to_owned())),
                false => Ok(()),
            }
        });
        received.map_err(|failure| match is_own.get() {
            true => own(failure),
            false => SqlError::clone_donor(failure),
        })?;
        self.enter(CloneStage::FileSync);
        let manifest = receiver.finish().map_err(own)?;
        if let Some(missing) = manifest.engines.iter().find(|name| !self.engines.contains(name)) {
            return Err(SqlError::clone_engine_missing(missing));
        }
        // As late as possible: CHANGE MASTER may have run meanwhile.
        let replica = self.db.replica.read().clone().filter(|_| self.own.is_some());
        let connections = replica.map_or_else(Vec::new, |replica| replica.again());
        let statements = statements(&manifest, &connections);
        target.write(replace::STATEMENTS, &statements).map_err(own)?;
        let more = [replace::STATEMENTS, replace::REPORT, UNFINISHED];
        let now_us = self.db.clock.wall_us();
        self.db.clones.change(|report| {
            describe(report, &manifest);
            report.stages[CloneStage::FileCopy as usize].received = shared.received.load(Ordering::Relaxed);
        });
        let mut report = self.db.clones.last().unwrap_or_default();
        report.enter(CloneStage::Restart, now_us);
        target.write(replace::REPORT, &report.encode()).map_err(own)?;
        let files = manifest.files.iter().map(|file| file.path.as_str());
        target.finish(files.chain(more)).map_err(own)?;
        Ok(manifest)
    }

    /// Asks the donor how much it will send, and looks for the space. A donor that does not say is no
    /// failure.
    fn expect(&self) -> Result<(), Failure> {
        let mut expected = 0;
        let second = Client::connect_stoppable(&self.account, |stopper| self.shared.give(stopper));
        if let Ok(mut second) = second
            && let Ok(row) = second.row(EXPECTED)
        {
            expected = row.get(1).and_then(|cell| text_of(cell).parse().ok()).unwrap_or(0);
        }
        self.shared.expected.store(expected, Ordering::Relaxed);
        self.db.clones.change(|report| report.stages[CloneStage::FileCopy as usize].expected = expected);
        match self.db.fs.free_bytes(&self.place) {
            Ok(free) if free < expected => {
                Err(Failure::Refused(SqlError::clone_disk_space(expected, free).message.to_string()))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the last part of a path.
fn last_part(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Puts what a manifest says into a report.
fn describe(report: &mut CloneReport, manifest: &Manifest) {
    if let Some(binlog) = &manifest.binlog {
        report.binlog = (binlog.file.clone(), binlog.offset);
    }
    report.gtids = position(manifest);
}

/// Returns the position up to which a clone has the transactions of all domains: those that the donor has
/// logged, and those that it has applied as a replica.
fn position(manifest: &Manifest) -> String {
    let mut newest: Vec<Gtid> = Vec::new();
    for text in [&manifest.gtid_binlog_pos, &manifest.gtid_current_pos] {
        for gtid in cohort_session::parse_gtids(text).unwrap_or_default() {
            match newest.iter_mut().find(|known| known.domain == gtid.domain) {
                Some(known) if known.seq_no >= gtid.seq_no => {}
                Some(known) => *known = gtid,
                None => newest.push(gtid),
            }
        }
    }
    newest.sort_by_key(|gtid| gtid.domain);
    newest.iter().map(Gtid::to_string).collect::<Vec<_>>().join(",")
}

/// Returns the statements of the first start in a clone.
fn statements(manifest: &Manifest, connections: &[String]) -> String {
    let mut text = "SET sql_mode = '';\n".to_owned();
    if !connections.is_empty() {
        for source in &manifest.sources {
            // A crash may repeat it.
            text += &format!(
                "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1617 BEGIN END; RESET SLAVE {} ALL; END;\n",
                quoted(&source.connection)
            );
        }
    }
    // A replica's clone has the position of the replica.
    if !connections.is_empty() || manifest.sources.is_empty() {
        text += &format!("SET GLOBAL gtid_slave_pos = '{}';\n", position(manifest));
    }
    connections.iter().for_each(|statement| text += &format!("{statement};\n"));
    text
}

impl Session {
    /// Runs CLONE. Its privileges were checked.
    pub(crate) fn clone_server(
        &mut self,
        clone: &CloneServer,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        match clone {
            CloneServer::Local { directory } => {
                let place = self.new_directory(directory)?;
                self.begin_clone(LOCAL, &place.display().to_string())?;
                let target = BackupTarget::Directory(place.display().to_string());
                let outcome = self.back_up_server(&BackupServer { target, parent: None }, job, sink);
                if let Ok(manifest) = Manifest::read(&place) {
                    self.state.db.clones.change(|report| describe(report, &manifest));
                }
                self.end_clone(outcome)
            }
            CloneServer::Instance(instance) => {
                let restarts = self.clone_instance(instance)?;
                self.state.settings.env.row_count = 0;
                self.send_ok(job.more, 0, 0, "", sink);
                if let Some(callbacks) = self.state.db.callbacks.read().as_ref().filter(|_| restarts) {
                    callbacks.request_restart();
                }
                Ok(())
            }
        }
    }

    fn begin_clone(&self, source: &str, destination: &str) -> SqlResult<()> {
        let db = &self.state.db;
        let now_us = db.clock.wall_us();
        let mut report = CloneReport {
            connection: self.state.info.id.0,
            begin_us: now_us,
            source: source.to_owned(),
            destination: destination.to_owned(),
            ..CloneReport::default()
        };
        report.enter(CloneStage::DropData, now_us);
        match db.clones.begin(report) {
            true => Ok(()),
            false => Err(SqlError::clone_in_progress()),
        }
    }

    fn end_clone<T>(&self, outcome: SqlResult<T>) -> SqlResult<T> {
        let db = &self.state.db;
        let error =
            outcome.as_ref().err().map(|error| (u32::from(error.number()), error.message.to_string()));
        db.clones.change(|report| report.end(db.clock.wall_us(), error));
        outcome
    }

    /// Checks a directory that must not exist: errors 1525, 1007, 1290.
    fn new_directory(&self, name: &str) -> SqlResult<PathBuf> {
        let server = files(&self.state)?;
        let path = Path::new(name);
        if !path.is_absolute() || path.components().any(|part| part == std::path::Component::ParentDir) {
            return Err(SqlError::wrong_literal("path", name));
        }
        let path: PathBuf = path.components().collect();
        if self.state.db.fs.exists(&path) {
            return Err(SqlError::database_exists(name));
        }
        let parent = path.parent().unwrap_or(Path::new("/"));
        let real = server.real(parent).map_err(|error| {
            file_error(ErrorCode::CantCreateFile, &format!("Can't create/write to file '{name}'"), &error)
        })?;
        check_secure(&self.state, &*server, parent)?;
        if server.real(server.datadir()).is_ok_and(|datadir| real.starts_with(datadir)) {
            return Err(SqlError::wrong_literal("path", name));
        }
        Ok(real.join(path.file_name().unwrap_or_default()))
    }

    /// Checks that the data can be replaced: error 3869. Returns layout and name of the binary log, which the
    /// donor must have, too.
    fn replaceable(&self, datadir: &Path) -> SqlResult<[String; 2]> {
        let server = files(&self.state)?;
        let text = |id: VarId| match self.state.db.globals.value(id) {
            VarValue::Text(text) => text.to_string(),
            _ => String::new(),
        };
        if !text(VarId::ArchiveTo).is_empty() {
            return Err(SqlError::clone_sys_config(
                "archive_to is set, and another server's log does not continue it",
            ));
        }
        let callbacks = self.state.db.callbacks.read().clone();
        if let Some(obstacle) = callbacks.and_then(|callbacks| callbacks.restart_obstacle()) {
            return Err(SqlError::clone_sys_config(format_args!(
                "the server could not start again with its options: {obstacle}"
            )));
        }
        for (name, base) in
            [("log_bin", text(VarId::LogBinBasename)), ("relay_log", text(VarId::RelayLogBasename))]
        {
            let folder = Path::new(&base).parent().and_then(|folder| server.real(folder).ok());
            if !base.is_empty() && folder.as_deref() != Some(datadir) {
                return Err(SqlError::clone_sys_config(format_args!(
                    "{name} is outside of the data directory: use DATA DIRECTORY"
                )));
            }
        }
        Ok([text(VarId::LogLayout), last_part(&text(VarId::LogBinBasename))])
    }

    /// Runs CLONE INSTANCE. Returns whether the server has to start again.
    fn clone_instance(&mut self, instance: &CloneInstance) -> SqlResult<bool> {
        let db = Arc::clone(&self.state.db);
        let donor = format!("{}:{}", instance.host, instance.port);
        let listed = db.globals.text(VarId::CloneValidDonorList).unwrap_or_default();
        if !listed.split(',').any(|known| known.trim().eq_ignore_ascii_case(&donor)) {
            return Err(SqlError::clone_sys_config(format_args!(
                "{donor} is not found in clone_valid_donor_list: {listed}"
            )));
        }
        let server = files(&self.state)?;
        let datadir = server.real(server.datadir()).map_err(|error| SqlError::clone_failed(&error))?;
        let (new, own) = match &instance.directory {
            Some(name) => (Some(self.new_directory(name)?), None),
            None => (None, Some(self.replaceable(&datadir)?)),
        };
        let destination = new.as_ref().map_or(LOCAL.to_owned(), |place| place.display().to_string());
        self.begin_clone(&donor, &destination)?;
        let outcome = self.copy_instance(instance, new, own, &datadir);
        self.end_clone(outcome)
    }

    fn copy_instance(
        &mut self,
        instance: &CloneInstance,
        new: Option<PathBuf>,
        own: Option<[String; 2]>,
        datadir: &Path,
    ) -> SqlResult<bool> {
        let db = Arc::clone(&self.state.db);
        let failed = |error: std::io::Error| SqlError::clone_failed(&error);
        let replaces = new.is_none();
        let place = new.map_or_else(|| replace::place(datadir).map_err(failed), Ok)?;
        let made = place.clone();
        let shared = Arc::new(Shared {
            is_interrupted: AtomicBool::new(false),
            received: AtomicU64::new(0),
            expected: AtomicU64::new(0),
            stoppers: Mutex::default(),
            done: Mutex::default(),
            sleeper: db.locks.sleeper(),
        });
        let tls = if instance.ssl == Some(false) { Tls::Never } else { Tls::Required };
        let copy = Copy {
            account: Account {
                host: Some(instance.host.clone()),
                port: instance.port,
                user: instance.user.clone(),
                password: instance.password.clone(),
                tls,
                // Without a password there is no proof, so such an account needs REQUIRE NO SSL.
                proves_certificate: tls == Tls::Required,
                ..Account::default()
            },
            place,
            own,
            version: [
                VERSION.to_owned(),
                db.globals.text(VarId::VersionComment).unwrap_or_default().to_string(),
            ],
            engines: db.engines.iter().map(|engine| engine.name().to_owned()).collect(),
            db: Arc::clone(&db),
            shared: Arc::clone(&shared),
        };
        self.process().set_state(STATE);
        let run = move || {
            let done = copy.run();
            *copy.shared.done.lock() = Some(done);
            copy.shared.sleeper.wake();
        };
        let started = std::thread::Builder::new().name("clone".to_owned()).spawn(run);
        started.map_err(|error| file_error(ErrorCode::OutOfResources, "Can't start a thread", &error))?;
        self.begin_deadline();
        let outcome = self.await_clone(&shared, &made);
        self.end_deadline();
        outcome?;
        if replaces {
            // The point of no return.
            replace::commit(datadir).map_err(failed)?;
        }
        Ok(replaces)
    }

    fn await_clone(&self, shared: &Arc<Shared>, place: &Path) -> SqlResult<Manifest> {
        let db = &self.state.db;
        let mut killed = None;
        loop {
            self.await_thread(&shared.sleeper, &mut killed, || shared.done.lock().is_some());
            if killed.is_some() {
                shared.interrupt();
            }
            let received = shared.received.load(Ordering::Relaxed);
            let progress = (received, shared.expected.load(Ordering::Relaxed));
            self.process().set_progress(progress, db.clock.monotonic_ns());
            db.clones.change(|report| report.stages[CloneStage::FileCopy as usize].received = received);
            match (shared.done.lock().take(), killed.take()) {
                (None, still) => killed = still,
                (Some(done), None) => return done,
                (Some(done), Some(error)) => {
                    if done.is_ok() {
                        // It was complete too late. What cannot be removed is a clone that nothing refers to.
                        discard(place);
                    }
                    return Err(error);
                }
            }
        }
    }
}
