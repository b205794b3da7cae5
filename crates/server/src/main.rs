//! `cohortd`: reads options, opens the data directory and sockets, and runs the server until a signal or
//! SHUTDOWN stops it.

use std::fmt::Display;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use cohort_base::ConnectionId;
use cohort_commit::{ApplyStop, Converted, Coordinator, parse_time};
use cohort_config::{Build, Globals, Options, StartupRequest, Status, VERSION, VarId, VarValue};
use cohort_exec::Origin;
use cohort_server::archive;
use cohort_server::binlog_watch;
use cohort_server::cloned;
use cohort_server::datadir::{self, Datadir};
use cohort_server::descriptors::DescriptorLimits;
use cohort_server::kept_statistics::KeptStatistics;
use cohort_server::metrics::{MetricsEndpoint, MetricsListeners};
use cohort_server::signals::{self, Signal};
use cohort_server::storage::{self, StorageOptions, StorageStatus};
use cohort_server::systemd::Notifier;
use cohort_server::{
    CatalogAccounts, Endpoints, ErrorLog, Server, ServerOptions, SqlBackend, Tls, WorkerLimits, Workers,
    flush_watch, init_file, machine, pid_file, system_tables,
};
use cohort_vfs::{CountFs, SharedClock, World};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Requests huge pages from the kernel: queries over many rows would otherwise spend time on page table
/// walks. An idle server uses 14 MiB more memory with them (docs/lab/measurements.txt). The environment
/// variable `_RJEM_MALLOC_CONF` overrides this setting.
// SAFETY: jemalloc reads its configuration, a C string, through the pointer of this name.
#[unsafe(export_name = "_rjem_malloc_conf")]
static MALLOC_CONF: &[u8; 11] = b"thp:always\0";

/// The build of this program. `./x` sets the revision; other builds have none.
const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    revision: option_env!("COHORT_REVISION"),
    features: if cfg!(feature = "rocksdb") { &["rocksdb"] } else { &[] },
};

/// Time for statements to end after a stop was requested, and again after they were killed.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    signals::block();
    machine::keep_files_private();
    let options = match cohort_config::load(&arguments(), &BUILD) {
        Ok(StartupRequest::Run(options)) => options,
        Ok(StartupRequest::Print(text)) => {
            return print(&text);
        }
        Err(error) => {
            if let Ok(log) = ErrorLog::open(None, World::real().clock) {
                error.message.lines().for_each(|line| log.error(format_args!("{line}")));
                log.error(format_args!("Aborting"));
            }
            return ExitCode::from(error.exit_code as u8);
        }
    };
    match run(&options) {
        Ok(Ended::ForGood) => ExitCode::SUCCESS,
        Ok(Ended::ToRestart) => restart(),
        Err(Failed) => ExitCode::FAILURE,
    }
}

/// How the server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    ForGood,
    /// CLONE INSTANCE has replaced the data.
    ToRestart,
}

/// Starts this program again, as this process: whatever supervises it sees no end.
fn restart() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_else(|_| name.clone().into());
    let failed = std::process::Command::new(program).arg0(name).args(arguments).exec();
    eprintln!("cohortd: the server could not start again: {failed}. Start it: the data are replaced then");
    ExitCode::FAILURE
}

/// Returns why this program could not start again, for example because its user may not read an option file.
fn restart_obstacle() -> Option<String> {
    cohort_config::load(&arguments(), &BUILD).err().map(|error| error.message)
}

fn arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Prints a text. A reader that ends early, such as `head`, is no error.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprintln!("cohortd: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// A failed start or stop. The reason is already in the error log.
struct Failed;

fn run(options: &Options) -> Result<Ended, Failed> {
    let real = World::real();
    let world = World { fs: CountFs::shared(real.fs), ..real };
    let globals = Arc::new(Globals::new());
    options.apply(&globals);
    let stderr = ErrorLog::open(None, world.clock.clone()).map_err(|_| Failed)?;
    let refuse = |what: &dyn Display| {
        stderr.error(format_args!("{what}"));
        stderr.error(format_args!("Aborting"));
        Failed
    };
    if let Some(user) = &options.user {
        if options.initialize {
            // The parent directory may belong to root, so the directory is created first and then given to
            // the user.
            let path = PathBuf::from(text(&globals, VarId::Datadir));
            machine::make_directory_of(&path, user)
                .map_err(|e| refuse(&format!("{}: {e}", path.display())))?;
        }
        machine::become_user(user).map_err(|e| {
            refuse(&format!("Can't run as user '{user}': {e}. Create it (useradd --system {user}), or name another with --user"))
        })?;
    }
    let failpoint = match std::env::var("COHORT_FAILPOINT") {
        Ok(text) => match StorageOptions::parse_failpoint(&text) {
            Some(failpoint) => Some(failpoint),
            None => return Err(refuse(&format!("COHORT_FAILPOINT={text} is no failpoint"))),
        },
        Err(_) => None,
    };

    // Nothing is changed until everything that can be refused has been checked.
    let path = PathBuf::from(text(&globals, VarId::Datadir));
    if options.initialize || options.convert_log_layout || options.apply_archive.is_some() {
        stderr.install();
    }
    if options.initialize {
        let done = initialize(&path, &world, &globals, options, &stderr);
        return done.map(|()| Ended::ForGood).map_err(|e| refuse(&e));
    }
    if globals.flag(VarId::ArchiveSync) && text(&globals, VarId::ArchiveTo).is_empty() {
        return Err(refuse(&storage::SYNC_WITHOUT_ARCHIVE));
    }
    let inspected = datadir::inspect(&path).map_err(|e| refuse(&e))?;
    globals.put(VarId::Hostname, &VarValue::text(&machine::host_name()));
    let logs = [options.log_bin.clone().unwrap_or_default(), cohort_replica::relay_base_name(&globals)];
    let inspected = inspected.with_logs(logs.to_vec());
    cohort_replica::check_relay_log(&globals, &path, options.log_bin.as_deref(), &[])
        .map_err(|e| refuse(&e))?;
    let tmpdir = text(&globals, VarId::Tmpdir);
    if !path.join(&tmpdir).is_dir() {
        return Err(refuse(&format!(
            "There is no directory '{tmpdir}' for temporary files: create it, or give another one with --tmpdir"
        )));
    }
    let storage_options = StorageOptions { log_bin: options.log_bin.clone(), failpoint, layout: None };
    if options.convert_log_layout {
        let datadir = inspected.take().map_err(|e| refuse(&e))?;
        let done = storage::convert_layout(datadir.path(), &world, &globals, &storage_options, &stderr);
        let what = match done.map_err(|e| refuse(&e))? {
            Converted::Done => "was converted to",
            Converted::Nothing => "already has",
        };
        let layout = storage::layout(&globals);
        stderr.note(format_args!("Data directory '{}' {what} log_layout={layout}", path.display()));
        return Ok(Ended::ForGood);
    }
    if let Some(dir) = &options.apply_archive {
        let stop = archive_stop(options).map_err(|e| refuse(&e))?;
        // The restored server archives when it serves.
        globals.put(VarId::ArchiveTo, &VarValue::text(""));
        globals.put(VarId::ArchiveSync, &VarValue::Bool(false));
        let datadir = inspected.take_as_it_is().map_err(|e| refuse(&e))?;
        let done = storage::apply_archive(datadir.path(), dir, &world, &globals, stop, &stderr);
        let report = done.map_err(|e| refuse(&e))?;
        datadir.end_backup().map_err(|e| refuse(&e))?;
        print(&report);
        return Ok(Ended::ForGood);
    }
    let sockets = Sockets {
        clients: bind(&globals, &path).map_err(|e| refuse(&e))?,
        metrics: bind_metrics(&globals).map_err(|e| refuse(&e))?,
        tls: None,
    };
    let datadir = inspected.take().map_err(|e| refuse(&e))?;
    put_facts(&globals, options, &datadir);
    let log = open_log(&globals, &datadir, &world).map_err(|e| {
        let file = datadir.path().join(text(&globals, VarId::LogError));
        refuse(&format!(
            "Can't open the error log '{}': {e}. Give another file with --log-error",
            file.display()
        ))
    })?;
    log.install();

    log.note(format_args!("Starting Cohort {} ({VERSION}) as process {}", BUILD.text(), std::process::id()));
    bound_by_descriptors(&globals, &log);
    let signals = Signals::listen(&log).map_err(|e| refuse(&e))?;
    options.warnings.iter().for_each(|warning| log.warning(format_args!("{warning}")));
    if !options.without_effect.is_empty() {
        log.note(format_args!("Options that have no effect here: {}", options.without_effect.join(", ")));
    }
    if machine::is_root() {
        log.warning(format_args!("The server runs as root. Start it as a dedicated user, or give --user"));
    }
    warn_of_risks(&globals, &log);
    let tls = Tls::open(&globals).map_err(|error| {
        log.error(format_args!("Failed to setup SSL"));
        refuse(&format!("SSL error: {error}"))
    })?;
    let sockets = Sockets { tls: tls.map(Arc::new), ..sockets };
    let ended = serve(&world, &globals, &storage_options, &datadir, sockets, &log, &signals);
    match ended {
        // Threads of the failed start may still write: the next process moves the files.
        Err(Failed) if cloned::undo(datadir.path(), world.clock.wall_us(), &log) => Ok(Ended::ToRestart),
        ended => ended,
    }
}

/// Creates a data directory and runs the statements of `init_file` in it.
fn initialize(
    path: &Path,
    world: &World,
    globals: &Arc<Globals>,
    options: &Options,
    log: &ErrorLog,
) -> Result<(), String> {
    let statements = read_init_file(globals, Path::new(""))?;
    let new = datadir::create(path).map_err(|e| e.to_string())?;
    let datadir = new.datadir();
    storage::initialize(datadir.path(), world, globals).map_err(|e| e.to_string())?;
    let Some((file, statements)) = statements else {
        new.finish().map_err(|e| e.to_string())?;
        log.note(format_args!("Data directory '{}' was created; root has no password", path.display()));
        return Ok(());
    };
    put_facts(globals, options, datadir);
    // Nothing of this is replicated.
    let storage_options = StorageOptions { log_bin: None, failpoint: None, layout: None };
    let storage = storage::open(datadir.path(), world, globals, &storage_options, log);
    let storage = storage.map_err(|e| e.to_string())?;
    let commit = Arc::clone(&storage.commit);
    let backend = SqlBackend::new(storage, world, globals, &Arc::new(Status::default()), log);
    let done = init_file::run(&backend, ConnectionId(1), &statements, Origin::Server);
    drop(backend);
    commit.close().map_err(|e| e.to_string())?;
    done.map_err(|why| {
        format!(
            "'{}' of init_file failed: {why}. Remove what is in '{}' before you repeat --initialize",
            file.display(),
            path.display()
        )
    })?;
    new.finish().map_err(|e| e.to_string())?;
    log.note(format_args!(
        "Data directory '{}' was created, '{}' was executed",
        path.display(),
        file.display()
    ));
    Ok(())
}

/// Returns the timeline and the stop of `--apply-archive`.
fn archive_stop(options: &Options) -> Result<(Option<u32>, ApplyStop), String> {
    let stop = match (&options.stop_time, &options.stop_gtid) {
        (Some(_), Some(_)) => return Err("--stop-time and --stop-gtid exclude each other".to_owned()),
        (Some(time), None) => ApplyStop::Time(parse_time(time).ok_or_else(|| {
            format!("--stop-time={time} is no time: write it as YYYY-MM-DD HH:MM:SS[.ffffff], in UTC")
        })?),
        (None, Some(gtid)) => {
            ApplyStop::Gtid(gtid.parse().map_err(|error| format!("--stop-gtid={gtid}: {error}"))?)
        }
        (None, None) => ApplyStop::End,
    };
    let timeline = options
        .stop_timeline
        .as_ref()
        .map(|text| text.parse().map_err(|_| format!("--stop-timeline={text} is no number of a timeline")));
    Ok((timeline.transpose()?, stop))
}

/// Reads the statements of `init_file`, if it is set.
fn read_init_file(globals: &Globals, folder: &Path) -> Result<Option<(PathBuf, Vec<u8>)>, String> {
    let name = text(globals, VarId::InitFile);
    if name.is_empty() {
        return Ok(None);
    }
    let file = folder.join(name);
    let statements = std::fs::read(&file);
    let statements = statements.map_err(|e| format!("Can't read '{}' of init_file: {e}", file.display()))?;
    Ok(Some((file, statements)))
}

/// Signal handling, which differs between the start and the running server.
struct Signals(Arc<OnceLock<Running>>);

/// The parts of the running server that signals act on.
struct Running {
    stop: Box<dyn Fn() + Send + Sync>,
    commit: Arc<Coordinator>,
    /// Weak: signals must not keep the backend alive after the server has dropped it at its stop.
    backend: Weak<SqlBackend>,
}

impl Signals {
    fn listen(log: &ErrorLog) -> std::io::Result<Signals> {
        let running: Arc<OnceLock<Running>> = Arc::default();
        let (own, log) = (Arc::clone(&running), log.clone());
        signals::listen(move |signal| match (signal, own.get()) {
            (Signal::Stop, Some(running)) => (running.stop)(),
            (Signal::Stop, None) => {
                log.note(format_args!("The server was stopped during its start; the next start repeats it"));
                machine::end_process(0);
            }
            (Signal::Flush, Some(running)) => flush_logs(&log, running),
            (Signal::Flush, None) => reopen(&log),
            (Signal::Meaningless(name), _) => {
                log.note(format_args!("{name} was received and ignored"));
            }
        })?;
        Ok(Signals(running))
    }
}

/// Durations of the phases of the start, for the error log.
struct Phases {
    clock: SharedClock,
    began_ns: u64,
    last_ns: u64,
    durations: String,
}

impl Phases {
    fn begin(clock: SharedClock) -> Phases {
        let now_ns = clock.monotonic_ns();
        Phases { clock, began_ns: now_ns, last_ns: now_ns, durations: String::new() }
    }

    /// Ends the phase that began at the previous call.
    fn end(&mut self, name: &str) {
        let now_ns = self.clock.monotonic_ns();
        let separator = if self.durations.is_empty() { "" } else { ", " };
        self.durations += &format!("{separator}{name} {:.3} s", (now_ns - self.last_ns) as f64 / 1e9);
        self.last_ns = now_ns;
    }

    fn seconds(&self) -> f64 {
        (self.last_ns - self.began_ns) as f64 / 1e9
    }
}

/// All listening sockets, with the protocol of each.
struct Sockets {
    clients: Endpoints,
    metrics: Option<MetricsListeners>,
    /// TLS context of client connections.
    tls: Option<Arc<Tls>>,
}

fn serve(
    world: &World,
    globals: &Arc<Globals>,
    storage_options: &StorageOptions,
    datadir: &Datadir,
    sockets: Sockets,
    log: &ErrorLog,
    signals: &Signals,
) -> Result<Ended, Failed> {
    let refuse = |what: &dyn Display| {
        log.error(format_args!("{what}"));
        log.error(format_args!("Aborting"));
        Failed
    };
    let status = Arc::new(Status::default());
    let workers = Arc::new(Workers::new(worker_limits(globals)));
    let notifier = Notifier::from_environment();
    let mut phases = Phases::begin(world.clock.clone());
    log.note(format_args!("Opening and recovering '{}'", datadir.path().display()));
    let busy = notifier.busy("Opening and recovering").map_err(|e| refuse(&e))?;
    let storage = storage::open(datadir.path(), world, globals, storage_options, log);
    let storage = storage.map_err(|e| refuse(&e))?;
    phases.end("storage");
    let commit = Arc::clone(&storage.commit);
    status.register(Box::new(StorageStatus {
        commit: Arc::clone(&commit),
        engines: storage.engines.clone(),
        locks: Arc::clone(&storage.locks),
    }));
    flush_watch::apply_threshold(&commit, globals);
    flush_watch::start(&commit, log.clone()).map_err(|e| refuse(&e))?;
    let catalog = Arc::clone(&storage.catalog);
    let backend = Arc::new(SqlBackend::new(storage, world, globals, &status, log));
    backend.set_workers(Arc::clone(&workers));
    backend.read_words().map_err(|e| refuse(&e))?;
    cloned::opened(&backend, datadir.path(), log);
    let accounts = Arc::new(CatalogAccounts {
        catalog,
        commit: Arc::clone(&commit),
        usages: backend.account_usages(),
        globals: Arc::clone(globals),
    });
    match backend.drop_orphans() {
        Ok(0) => {}
        Ok(orphans) => log.note(format_args!("{orphans} index trees left by a crash were freed")),
        Err(error) => {
            return Err(refuse(&format!("Cannot free index trees left by a crash: {error}")));
        }
    }
    backend.load_event_runs().map_err(|error| refuse(&format!("Cannot read the runs of events: {error}")))?;
    phases.end("catalog");
    let mut server = Server::start(ServerOptions {
        globals: Arc::clone(globals),
        status: Arc::clone(&status),
        backend: backend.clone(),
        accounts,
        workers,
        tls: sockets.tls.clone(),
        clock: world.clock.clone(),
        rng: world.rng.clone(),
        log: log.clone(),
    })
    .map_err(|e| refuse(&e))?;
    if sockets.tls.is_some() {
        globals.put(VarId::HaveSsl, &VarValue::text("YES"));
    }
    backend.on_flush_ssl(sockets.tls);
    let request_stop = server.stop_requester();
    backend.on_shutdown(Box::new(request_stop.clone()));
    backend.on_restart(Box::new(restart_obstacle));
    let pid_file = PathBuf::from(text(globals, VarId::PidFile));
    let has_pid_file = match pid_file::write(&pid_file, datadir.path()) {
        Ok(()) => true,
        // On a full disk the server must start, for reading and for the purge that frees space.
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            log.warning(format_args!("Cannot write the pid file: {error}"));
            false
        }
        Err(error) => {
            let file = pid_file.display();
            return Err(refuse(&format!(
                "Can't write the pid file '{file}': {error}. Give another one with --pid-file"
            )));
        }
    };
    let next_id = Box::new(server.connection_ids());
    let replicas = backend.open_replicas(world, datadir.path(), log, next_id);
    let replicas = replicas.map_err(|e| refuse(&format!("Can't open the replica side: {e}")))?;
    let running = Running {
        stop: Box::new(request_stop),
        commit: Arc::clone(&commit),
        backend: Arc::downgrade(&backend),
    };
    system_tables::create_missing(&backend, server.connection_ids()(), log);
    system_tables::create_sys(&backend, server.connection_ids()(), datadir.path(), log);
    cloned::run_statements(&backend, server.connection_ids()(), datadir.path(), log)
        .map_err(|e| refuse(&e))?;
    cloned::accepted(datadir.path(), log);
    // A signal ends the process while the file runs: nothing is served yet, and a start recovers.
    if let Some((file, statements)) = read_init_file(globals, datadir.path()).map_err(|e| refuse(&e))?
        && let Err(why) = init_file::run(&backend, server.connection_ids()(), &statements, Origin::Server)
    {
        log.error(format_args!("'{}' of init_file ended early: {why}", file.display()));
    }
    // From here on commits may wait for the archive.
    if let Err(error) = archive::start(&commit, globals) {
        log.error(format_args!("The log is not archived: {error}"));
    }
    assert!(signals.0.set(running).is_ok(), "the server starts once");
    let statistics = KeptStatistics::load(&backend, globals, datadir.path(), log);
    let metrics = start_metrics(sockets.metrics, &server, &backend, world, datadir.path());
    let metrics = metrics.map_err(|e| refuse(&e))?;
    server.listen(sockets.clients).map_err(|e| refuse(&e))?;
    drop(busy);
    notifier.ready();
    phases.end("services");
    log.note(format_args!("The start took {:.3} s: {}", phases.seconds(), phases.durations));
    log.note(format_args!(
        "ready for connections.\nVersion: '{VERSION}'  socket: '{}'  port: {}  Cohort",
        text(globals, VarId::Socket),
        globals.uint(VarId::Port)
    ));

    if !globals.flag(VarId::SkipSlaveStart) {
        replicas.start_all();
    }
    let events_stop = Arc::new(AtomicBool::new(false));
    let next_id = Box::new(server.connection_ids());
    if let Err(error) = backend.start_events(log, next_id, &events_stop) {
        log.error(format_args!("Event Scheduler: it does not run: {error}"));
    }
    expire_binlog(&backend, log);
    if let Err(error) = binlog_watch::start(&commit, globals, log.clone()) {
        log.warning(format_args!("Old binary log files are not verified: {error}"));
    }
    backend.pool_dump().started();
    server.wait_for_stop_request();
    log.note(format_args!("Normal shutdown"));
    let ended = if backend.restarts() { Ended::ToRestart } else { Ended::ForGood };
    if ended == Ended::ForGood {
        notifier.stopping();
    }
    events_stop.store(true, Ordering::Release);
    replicas.close();
    drop(replicas);
    backend.kill_all();
    if !server.stop(STOP_PATIENCE) {
        let text = "Statements went on after they were killed. The process ends as after a crash: what was \
                    acknowledged is in the log, and the next start recovers";
        log.error(format_args!("{text}"));
        machine::end_process(1);
    }
    drop(metrics);
    statistics.save(&backend, log);
    backend.pool_dump().stopping();
    drop(backend);
    let closed = commit.close();
    if has_pid_file {
        pid_file::remove(&pid_file);
    }
    match closed {
        Ok(()) => {
            log.note(format_args!("Shutdown complete"));
            Ok(ended)
        }
        Err(error) => Err(refuse(&format!("The shutdown was not clean; the next start recovers: {error}"))),
    }
}

fn text(globals: &Globals, id: VarId) -> String {
    globals.text(id).as_deref().unwrap_or("").to_owned()
}

/// Minimum number of workers: one can serve clients while another leads a flush.
const WORKERS_MIN: usize = 2;

fn worker_limits(globals: &Globals) -> WorkerLimits {
    let active = match globals.uint(VarId::ThreadPoolSize) as usize {
        // Housekeeping adds a worker while flushes take long.
        0 => machine::cores().max(WORKERS_MIN),
        given => given,
    };
    WorkerLimits {
        active,
        total_max: (globals.uint(VarId::ThreadPoolMaxThreads) as usize).max(active),
        stack_bytes: globals.uint(VarId::ThreadStack) as usize,
        idle: Duration::from_secs(globals.uint(VarId::ThreadPoolIdleTimeout)),
    }
}

/// Opens all sockets, or none on error.
fn bind(globals: &Globals, datadir: &Path) -> Result<Endpoints, String> {
    let mut endpoints = Endpoints::new();
    let backlog = globals.uint(VarId::BackLog) as i32;
    if !globals.flag(VarId::SkipNetworking) {
        let port = globals.uint(VarId::Port) as u16;
        let given = globals.text(VarId::BindAddress);
        let addresses = match given.as_deref() {
            None | Some("" | "*") => "::",
            Some(list) => list,
        };
        for address in addresses.split(',').map(str::trim) {
            let bound = match endpoints.bind_tcp(address, port, backlog) {
                // This machine has no IPv6.
                Err(_) if address == "::" && given.is_none() => endpoints.bind_tcp("0.0.0.0", port, backlog),
                other => other,
            };
            bound.map_err(|e| {
                let cure = match e.kind() {
                    std::io::ErrorKind::AddrNotAvailable => {
                        "No interface of this machine has the address: change --bind-address".to_owned()
                    }
                    _ => format!(
                        "Do you already have another server running on port: {port} ? Stop it, or give another port with \
                         --port"
                    ),
                };
                format!("Can't start server: Bind on TCP/IP port {port} of '{address}': {e}. {cure}")
            })?;
        }
    }
    let socket = text(globals, VarId::Socket);
    if !socket.is_empty() {
        let path = datadir.join(&socket);
        // If the data directory does not exist yet, binding a socket inside it would have to create it.
        if path.parent().is_some_and(Path::exists) {
            endpoints.bind_unix(&path, backlog).map_err(|e| {
                format!(
                    "Can't start server : Bind on unix socket '{}': {e}. Do you already have another server running on \
                     socket: {socket} ? Stop it, or give another socket with --socket",
                    path.display()
                )
            })?;
        } else {
            return Err(format!(
                "Can't start server : Bind on unix socket '{}': its directory does not exist; give another one with \
                 --socket",
                path.display()
            ));
        }
    }
    Ok(endpoints)
}

/// Opens the socket of the metrics endpoint, unless it is off.
fn bind_metrics(globals: &Globals) -> Result<Option<MetricsListeners>, String> {
    let port = globals.uint(VarId::MetricsPort) as u16;
    if port == 0 {
        return Ok(None);
    }
    let host = text(globals, VarId::MetricsBindAddress);
    let bound = MetricsListeners::bind(&host, port);
    bound.map(Some).map_err(|e| {
        format!(
            "Can't start server: Bind of the metrics endpoint on port {port} of '{host}': {e}. Give another port with \
             --metrics-port, or another address with --metrics-bind-address"
        )
    })
}

fn start_metrics(
    listeners: Option<MetricsListeners>,
    server: &Server,
    backend: &SqlBackend,
    world: &World,
    datadir: &Path,
) -> std::io::Result<Option<MetricsEndpoint>> {
    let Some(listeners) = listeners else { return Ok(None) };
    let addresses = listeners.addresses();
    let files = (world.fs.clone(), datadir);
    let endpoint = MetricsEndpoint::start(listeners, server, backend, files)?;
    for address in addresses {
        backend.error_log().note(format_args!("console and metrics on http://{address}/"));
    }
    Ok(Some(endpoint))
}

fn put_facts(globals: &Globals, options: &Options, datadir: &Datadir) {
    let path = datadir.path();
    let put = |id, value: &str| globals.put(id, &VarValue::text(value));
    put(VarId::Datadir, &format!("{}/", path.display()));
    put(VarId::ServerUid, datadir.identity());
    put(VarId::VersionComment, &format!("Cohort {}", BUILD.version));
    put(VarId::VersionSourceRevision, BUILD.revision.unwrap_or_default());
    put(VarId::SystemTimeZone, &machine::time_zone());
    put(VarId::Socket, &path.join(text(globals, VarId::Socket)).display().to_string());
    let pid_file = match text(globals, VarId::PidFile) {
        empty if empty.is_empty() => format!("{}.pid", machine::host_name()),
        given => given,
    };
    let pid_file = path.join(pid_file);
    put(VarId::PidFile, &pid_file.display().to_string());
    put(VarId::LogError, &options.log_error.file(&pid_file));
    if let Some(base) = &options.log_bin {
        let base = path.join(base);
        put(VarId::LogBinBasename, &base.display().to_string());
        put(VarId::LogBinIndex, &format!("{}.index", base.display()));
    }
    let relay = path.join(cohort_replica::relay_base_name(globals));
    put(VarId::RelayLogBasename, &relay.display().to_string());
    put(VarId::RelayLogIndex, &format!("{}.index", relay.display()));
    globals.put(VarId::ThreadPoolSize, &VarValue::UInt(worker_limits(globals).active as u64));
}

/// Raises the limit of open files, and reduces `max_connections` to what the limit allows.
fn bound_by_descriptors(globals: &Globals, log: &ErrorLog) {
    let (wanted, connections) = (globals.uint(VarId::OpenFilesLimit), globals.uint(VarId::MaxConnections));
    let files = machine::open_files(wanted);
    globals.put(VarId::OpenFilesLimit, &VarValue::UInt(files));
    let limits = DescriptorLimits::of(files, connections, globals.uint(VarId::MetricsPort) > 0);
    cohort_vfs::keep_descriptors_from(limits.kept_from);
    if files < wanted.max(limits.wanted) {
        let request = wanted.max(limits.wanted);
        log.warning(format_args!(
            "Could not increase number of max_open_files to more than {files} (request: {request})"
        ));
    }
    if limits.connections < connections {
        globals.put(VarId::MaxConnections, &VarValue::UInt(limits.connections));
        log.warning(format_args!(
            "Changed limits: max_open_files: {files}  max_connections: {} (was {connections})",
            limits.connections
        ));
    }
}

fn open_log(globals: &Globals, datadir: &Datadir, world: &World) -> std::io::Result<ErrorLog> {
    let name = text(globals, VarId::LogError);
    let path = (!name.is_empty()).then(|| datadir.path().join(name));
    ErrorLog::open(path.as_deref(), world.clock.clone())
}

fn warn_of_risks(globals: &Globals, log: &ErrorLog) {
    let risky = VarId::shown().filter(|id| id.setting().may_lose_data.is_some() && !globals.is_default(*id));
    for setting in risky.map(VarId::setting) {
        let what = setting.may_lose_data.unwrap_or_default();
        log.warning(format_args!("{} may lose data: {what}", setting.name));
    }
}

/// Starts the thread that removes expired binlog files.
fn expire_binlog(backend: &SqlBackend, log: &ErrorLog) {
    let (expiry, own_log) = (backend.binlog_expiry(), log.clone());
    // The thread ends with the process.
    let started = std::thread::Builder::new().name("expire".into()).spawn(move || expiry.run(&own_log));
    if let Err(error) = started {
        log.warning(format_args!("Cannot remove old binary log files: {error}"));
    }
}

fn reopen(log: &ErrorLog) {
    if let Err(error) = log.reopen() {
        log.error(format_args!("Can't reopen the error log: {error}"));
    }
}

fn flush_logs(log: &ErrorLog, running: &Running) {
    reopen(log);
    if let Some(backend) = running.backend.upgrade() {
        backend.reopen_statement_logs();
    }
    if let Err(error) = running.commit.rotate_binlog() {
        log.error(format_args!("Can't begin a new binary log file: {error}"));
    }
}
