//! The receiver (I/O thread): receives a source's events and writes them to the relay log.
//!
//! # States
//! ```text
//! Preparing -> Connecting --logged in, dump begun--> Yes --connection lost--> Connecting -> ...
//!      \-> No: STOP SLAVE, KILL, the end of START SLAVE UNTIL, or an error that a retry does not cure
//! ```
//!
//! # Where it continues
//! After the last group that was completely received and written. Events that are only buffered when the
//! thread ends are fetched again. So is a group whose end did not arrive: the applier rolls it back when it
//! reads the source's format description in the middle of a group.
//!
//! # On failure
//! After a network failure, or if the source closes the connection, it reconnects, and if that fails too,
//! retries after `MASTER_CONNECT_RETRY` seconds. On a full disk it waits. Anything else (other errors of the
//! source, damaged events, our own server id) stops it with MariaDB's error number.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cohort_base::{ConnectionId, Gtid};
use cohort_binlog::event::{
    CHECKSUM_LEN, Event, EventHeader, GtidListEvent, crc_of_event, flags, split_event,
};
use cohort_binlog::{BinlogError, Checksum, EventType, GtidState};
use cohort_config::VarId;
use cohort_exec::{Command, Database, ProcessIdentity};
use cohort_vfs::is_no_space;

use crate::connection::{Connection, IoRunning, ThreadError};
use crate::group::{Groups, Part};
use crate::link::{Link, LinkError, Row};
use crate::marker::{Marker, Stop};
use crate::place::SourcePlace;
use crate::relay::RelayWriter;
use crate::replica_log::ReplicaLog;
use crate::settings::{SourceSettings, UseGtid};

/// master_retry_count.
pub const RETRIES_MAX: u32 = 100_000;
/// Maximum length of a source's file name, which is stored and becomes part of each transaction's redo.
const FILE_NAME_BYTES_MAX: usize = 512;
/// Pause between two attempts to write to a full disk.
const FULL_DISK_PAUSE: Duration = Duration::from_secs(1);

/// Everything that the receiver needs.
pub struct Receiver {
    pub connection: Arc<Connection>,
    pub settings: SourceSettings,
    pub db: Arc<Database>,
    pub id: ConnectionId,
    pub log: ReplicaLog,
    /// GTID position of a START SLAVE UNTIL for both threads; the source stops there.
    pub until: Option<Vec<Gtid>>,
}

/// How one connection ended.
enum Ended {
    /// On request.
    Stopped,
    /// By an error that a retry may cure.
    Lost(ThreadError),
    /// By an error that a retry does not cure.
    Failed(ThreadError),
}

impl From<BinlogError> for Ended {
    fn from(error: BinlogError) -> Ended {
        let text = format!("Relay log write failure: could not queue event from master; {error}");
        Ended::Failed(ThreadError::new(1595, text))
    }
}

fn fatal(what: impl std::fmt::Display) -> Ended {
    Ended::Failed(ThreadError::new(1593, format!("Fatal error: {what}")))
}

fn damaged(what: impl std::fmt::Display) -> Ended {
    let text = format!("Relay log write failure: could not queue event from master; {what}");
    Ended::Failed(ThreadError::new(1595, text))
}

/// Errors of a source that is shutting down, or that has no connection slot at the moment.
const PASSING: [u16; 6] = [1040, 1053, 1159, 1161, 1317, 1927];

fn lost(error: LinkError) -> Ended {
    match error {
        LinkError::Gone(what) => Ended::Lost(ThreadError::new(2013, what)),
        LinkError::Refused(error) if PASSING.contains(&error.code) => {
            Ended::Lost(ThreadError::new(error.code.into(), error.message))
        }
        LinkError::Refused(error) => Ended::Failed(ThreadError::new(error.code.into(), error.message)),
        LinkError::TooLarge => Ended::Failed(ThreadError::new(1153, LinkError::TooLarge.to_string())),
    }
}

impl Receiver {
    /// Runs the thread.
    pub fn run(self) {
        let identity = ProcessIdentity { user: "system user".to_owned(), ..ProcessIdentity::default() };
        let process = self.db.processes.register(self.id, identity, self.db.clock.wall_us());
        process.set_command(Command::SlaveIo, self.db.clock.wall_us());
        let stopper = Arc::downgrade(&self.connection);
        process.set_closer(Some(Box::new(move |_| {
            if let Some(connection) = stopper.upgrade() {
                connection.ask_to_stop(true, false);
            }
        })));
        self.connection.io.lock().process = Some(Arc::clone(&process));
        let ended = self.follow();
        {
            let mut io = self.connection.io.lock();
            if let Ended::Failed(error) | Ended::Lost(error) = ended {
                self.log.error(&self.connection.name, format_args!("Slave I/O: {}", error.text));
                io.error = error;
            }
            io.running = IoRunning::No;
            io.state = "";
            io.socket = None;
            io.process = None;
        }
        process.set_closer(None);
        self.db.processes.remove(self.id);
        self.connection.is_semi_sync.store(false, Ordering::Release);
        self.connection.notify();
    }

    /// Connects, and reconnects after each loss.
    fn follow(&self) -> Ended {
        let connection = &self.connection;
        let place = connection.io.lock().whole.clone();
        let own = cohort_base::ServerId(self.own_id());
        let begun =
            self.despite_full_disk(|| RelayWriter::begin(&connection.relay, own, self.now_s(), &place));
        let mut writer = match begun {
            Ok(writer) => writer,
            Err(ended) => return ended,
        };
        let mut tries = 0;
        loop {
            let mut was_connected = false;
            let ended = self.serve(&mut writer, &mut was_connected);
            if connection.io_stops() {
                return Ended::Stopped;
            }
            let Ended::Lost(error) = ended else { return ended };
            let reconnects = was_connected;
            tries = if was_connected { 0 } else { tries + 1 };
            {
                let mut io = connection.io.lock();
                io.socket = None;
                io.running = IoRunning::Connecting;
                if !reconnects {
                    io.error = error.clone();
                }
            }
            if tries > RETRIES_MAX {
                return Ended::Lost(error);
            }
            if reconnects {
                self.log
                    .note(&connection.name, format_args!("Slave I/O thread: {}; reconnecting", error.text));
                connection.io_state("Reconnecting after a failed master event read");
            } else {
                self.log.warning(&connection.name, format_args!("Slave I/O: {}", error.text));
                let pause = Duration::from_secs(self.settings.connect_retry_s.into());
                connection.pause(pause, Connection::io_stops);
            }
            if connection.io_stops() {
                return Ended::Stopped;
            }
        }
    }

    /// Retries an operation that needs disk space while the disk is full. Meanwhile the source keeps its
    /// events.
    fn despite_full_disk<T>(&self, mut act: impl FnMut() -> Result<T, BinlogError>) -> Result<T, Ended> {
        let connection = &self.connection;
        let mut is_logged = false;
        loop {
            match act() {
                Err(BinlogError::Io { source, path, .. }) if is_no_space(&source) => {
                    if !is_logged {
                        let text = format_args!(
                            "Disk is full writing '{}'. Waiting for someone to free space",
                            path.display()
                        );
                        self.log.warning(&connection.name, text);
                        connection.io_state("Waiting for someone to free space");
                        is_logged = true;
                    }
                    connection.pause(FULL_DISK_PAUSE, Connection::io_stops);
                    if connection.io_stops() {
                        return Err(Ended::Stopped);
                    }
                }
                outcome => {
                    if is_logged {
                        connection.io_state("Waiting for master to send event");
                    }
                    return Ok(outcome?);
                }
            }
        }
    }

    fn own_id(&self) -> u32 {
        self.db.globals.uint(VarId::ServerId) as u32
    }

    fn now_s(&self) -> u32 {
        (self.db.clock.wall_us() / 1_000_000) as u32
    }

    /// Serves one connection from beginning to end.
    fn serve(&self, writer: &mut RelayWriter, was_connected: &mut bool) -> Ended {
        match self.try_serve(writer, was_connected) {
            Ok(()) => Ended::Stopped,
            Err(ended) => ended,
        }
    }

    fn try_serve(&self, writer: &mut RelayWriter, was_connected: &mut bool) -> Result<(), Ended> {
        let connection = &self.connection;
        let timeout_s = self.db.globals.uint(VarId::SlaveNetTimeout);
        let timeout = Duration::from_secs(timeout_s.max(1));
        connection.io.lock().running = IoRunning::Connecting;
        connection.io_state("Connecting to master");
        let connected = |socket| {
            connection.io.lock().socket = Some(socket);
            if connection.io_stops() {
                connection.ask_to_stop(true, false);
            }
        };
        let opened = Link::open(&self.settings, timeout, connected, || connection.io_stops());
        let mut link = opened.map_err(|error| self.connect_error(&error))?;
        connection.io_state("Checking master version");
        check_version(link.version())?;
        let (checksum, is_semi_sync) = self.introduce(&mut link, timeout_s)?;
        if is_semi_sync {
            // Must be done before the source gets an acknowledgement.
            self.despite_full_disk(|| connection.relay.arm())?;
        }
        connection.io_state("Registering slave on master");
        let host = self.db.globals.text(VarId::ReportHost);
        let port = match self.db.globals.uint(VarId::ReportPort) {
            0 => self.db.globals.uint(VarId::Port),
            port => port,
        };
        let host = host.as_deref().unwrap_or("");
        link.register(self.own_id(), host, port as u16).map_err(lost)?;
        connection.io_state("Requesting binlog dump");
        let place = connection.io.lock().whole.clone();
        let bytes_max = self.db.globals.uint(VarId::SlaveMaxAllowedPacket) as usize;
        let annotate = self.db.globals.flag(VarId::ReplicateAnnotateRowEvents);
        link.begin_dump(self.own_id(), (&place.file, place.position), annotate, bytes_max).map_err(lost)?;
        {
            let mut io = connection.io.lock();
            io.running = IoRunning::Yes;
            io.error = ThreadError::default();
            io.read = place.clone();
        }
        connection.is_semi_sync.store(is_semi_sync, Ordering::Release);
        connection.io_state("Waiting for master to send event");
        self.log.note(
            &connection.name,
            format_args!(
                "Slave I/O thread: connected to master '{}@{}:{}', replication starts at {}",
                self.settings.user,
                self.settings.host,
                self.settings.port,
                match self.settings.use_gtid {
                    UseGtid::No => format!("file '{}', position {}", place.file, place.position),
                    _ => format!("GTID position '{}'", self.start_position()),
                }
            ),
        );
        let marker = Marker::new(&connection.relay);
        let mut stream = Stream {
            receiver: self,
            marker: &marker,
            writer,
            checksum,
            groups: Groups::default(),
            gtid: None,
            place,
            arrived: Arrived::default(),
            is_semi_sync,
            has_come_on: false,
            has_gtids: self.settings.use_gtid != UseGtid::No,
            type_max: usize::MAX,
            is_until_reached: false,
        };
        let taken = std::thread::scope(|scope| {
            if is_semi_sync {
                let thread = std::thread::Builder::new().name("slave-mark".to_owned());
                let started = thread.spawn_scoped(scope, || self.mark(&marker));
                started.map_err(|error| fatal(format_args!("Can't create a new thread ({error})")))?;
            }
            let _stop = Stop(&marker);
            stream.take_all(&mut link)
        });
        let ended = match taken {
            // The applier gets everything received, even while the source is disconnected.
            Err(Ended::Lost(error)) => stream.flush().and(Err(Ended::Lost(error))),
            ended => ended,
        };
        stream.end();
        // A source that ends each dump right at its beginning is retried after a pause.
        *was_connected = stream.has_come_on;
        ended
    }

    /// Runs the thread that marks acknowledged positions.
    fn mark(&self, marker: &Marker<'_>) {
        if let Err(error) = marker.run() {
            let text = format_args!("The marks of the relay log cannot be written: {error}");
            self.log.error(&self.connection.name, text);
        }
    }

    fn connect_error(&self, error: &LinkError) -> Ended {
        let number = match error {
            LinkError::Refused(error) => error.code.into(),
            _ => 2003,
        };
        let what = match error {
            LinkError::Gone(what) => format!("Can't connect to server on '{}' ({what})", self.settings.host),
            other => other.to_string(),
        };
        let text = format!(
            "error connecting to master '{}@{}:{}' - retry-time: {}  maximum-retries: {RETRIES_MAX}  message: {what}",
            self.settings.user, self.settings.host, self.settings.port, self.settings.connect_retry_s
        );
        Ended::Lost(ThreadError::new(number, text))
    }

    /// Returns the GTID position at which the source must begin.
    fn start_position(&self) -> String {
        self.connection.io.lock().gtids.position_text()
    }

    /// Exchanges the settings that precede a dump. Returns how events are framed before the first format
    /// description, and whether the source is semi-synchronous.
    fn introduce(&self, link: &mut Link, net_timeout_s: u64) -> Result<(Checksum, bool), Ended> {
        let own_id = self.own_id();
        // Event timestamps are from the source's clock. If the source does not report its time, the clocks
        // are assumed equal.
        let here_s: u64 = self.now_s().into();
        let there_s = match link.query("SELECT UNIX_TIMESTAMP()") {
            Ok(rows) => value(&rows, 0).and_then(|seconds| seconds.parse().ok()),
            Err(LinkError::Refused(_)) => None,
            Err(error) => return Err(lost(error)),
        };
        self.connection.compare_clocks(here_s, there_s.unwrap_or(here_s));
        let rows = link.query("SHOW VARIABLES LIKE 'SERVER_ID'").map_err(lost)?;
        let id: u32 = value(&rows, 1).and_then(|id| id.parse().ok()).unwrap_or(0);
        if id == own_id {
            return Err(fatal(
                "The slave I/O thread stops because master and slave have equal MariaDB server ids; these ids must be \
                 different for replication to work (or the --replicate-same-server-id option must be used on slave but \
                 this does not always make sense; please check the manual before using it).",
            ));
        }
        self.connection.io.lock().master_server_id = id;
        let heartbeat_ns = self.settings.heartbeat(net_timeout_s).as_nanos();
        link.query(&format!("SET @master_heartbeat_period={heartbeat_ns}")).map_err(lost)?;
        // A source without checksums does not know this variable.
        let checksum = match link.query("SET @master_binlog_checksum=@@global.binlog_checksum") {
            Ok(_) => {
                let rows = link.query("SELECT @master_binlog_checksum").map_err(lost)?;
                if value(&rows, 0).as_deref() == Some("CRC32") { Checksum::Crc32 } else { Checksum::None }
            }
            Err(LinkError::Refused(error)) if error.code == 1193 => Checksum::None,
            Err(error) => return Err(lost(error)),
        };
        link.query("SET @mariadb_slave_capability=4").map_err(lost)?;
        if self.settings.use_gtid != UseGtid::No {
            let strict = u8::from(self.db.globals.flag(VarId::GtidStrictMode));
            let ignores = u8::from(self.db.globals.flag(VarId::GtidIgnoreDuplicates));
            link.query("SELECT @@GLOBAL.gtid_domain_id").map_err(|error| match error {
                LinkError::Refused(error) => fatal(format_args!(
                    "The slave I/O thread stops because master does not support MariaDB global transaction id. A fatal \
                     error is encountered when it tries to SELECT @@GLOBAL.gtid_domain_id. Error: {}",
                    error.message
                )),
                other => lost(other),
            })?;
            for sql in [
                format!("SET @slave_connect_state='{}'", self.start_position()),
                format!("SET @slave_gtid_strict_mode={strict}"),
                format!("SET @slave_gtid_ignore_duplicates={ignores}"),
            ] {
                link.query(&sql).map_err(lost)?;
            }
            if let Some(until) = &self.until {
                let until: Vec<String> = until.iter().map(ToString::to_string).collect();
                link.query(&format!("SET @slave_until_gtid='{}'", until.join(","))).map_err(lost)?;
            }
        }
        let mut is_semi_sync = false;
        if self.db.globals.flag(VarId::RplSemiSyncSlaveEnabled) {
            let rows = link.query("SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'").map_err(lost)?;
            if !rows.is_empty() {
                link.query("SET @rpl_semi_sync_slave=1").map_err(lost)?;
                is_semi_sync = true;
            }
        }
        Ok((checksum, is_semi_sync))
    }
}

/// Refuses sources whose binary log has an older format, and servers of an unknown kind.
fn check_version(version: &str) -> Result<(), Ended> {
    let digits = version.bytes().take_while(u8::is_ascii_digit).count();
    match version[..digits].parse::<u32>() {
        Ok(4..) => Ok(()),
        Ok(3) => {
            let text = "Relay log write failure: could not queue event from master";
            Err(Ended::Failed(ThreadError::new(1595, text)))
        }
        _ => Err(fatal(format_args!("Master reported unrecognized MariaDB version: {version}"))),
    }
}

fn value(rows: &[Row], column: usize) -> Option<String> {
    let value = rows.first()?.get(column)?.as_ref()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Progress covered by buffered events. It becomes valid once the buffer is written.
#[derive(Default)]
struct Arrived {
    whole: Option<SourcePlace>,
    gtids: Vec<Gtid>,
}

/// Writes the events of one connection to the relay log.
struct Stream<'r> {
    receiver: &'r Receiver,
    marker: &'r Marker<'r>,
    writer: &'r mut RelayWriter,
    checksum: Checksum,
    groups: Groups,
    /// GTID of the open group.
    gtid: Option<Gtid>,
    place: SourcePlace,
    arrived: Arrived,
    is_semi_sync: bool,
    /// A complete group or a heartbeat arrived.
    has_come_on: bool,
    /// All groups of the source have GTIDs.
    has_gtids: bool,
    /// Highest event type in the source's format.
    type_max: usize,
    /// The source has sent everything up to START SLAVE UNTIL.
    is_until_reached: bool,
}

impl Stream<'_> {
    fn take_all(&mut self, link: &mut Link) -> Result<(), Ended> {
        loop {
            if self.receiver.connection.io_stops() {
                return Ok(());
            }
            if !link.has_waiting() {
                self.flush()?;
            }
            let packet = link.next_event().map_err(|error| match error {
                LinkError::Refused(error) if error.code == 1236 => {
                    let text = format!(
                        "Got fatal error 1236 from master when reading data from binary log: '{}'",
                        error.message
                    );
                    Ended::Failed(ThreadError::new(1236, text))
                }
                // In the middle of a dump every error but this one may be temporary.
                LinkError::Refused(error) if error.code != 1041 => {
                    Ended::Lost(ThreadError::new(error.code.into(), error.message))
                }
                other => lost(other),
            })?;
            let Some(packet) = packet else {
                return Err(Ended::Lost(ThreadError::new(2013, "the source ended the dump")));
            };
            let (wants_reply, event) = match (self.is_semi_sync, packet) {
                (true, [0xef, wanted, event @ ..]) => (*wanted == 1, event),
                (true, _) => return Err(damaged("a semi-synchronous source's event lacks its header")),
                (false, event) => (false, event),
            };
            self.take(event)?;
            if self.is_until_reached {
                return self.flush();
            }
            if wants_reply {
                // Events must be durable before they are acknowledged.
                self.sync()?;
                link.acknowledge(&self.place.file, self.place.position).map_err(lost)?;
                self.marker.note(self.writer.place());
                self.receiver.connection.counts.replies.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Writes the buffer.
    fn flush(&mut self) -> Result<(), Ended> {
        self.receiver.despite_full_disk(|| self.writer.flush())?;
        self.written();
        self.await_room();
        Ok(())
    }

    /// Writes the buffer and makes it durable.
    fn sync(&mut self) -> Result<(), Ended> {
        self.receiver.despite_full_disk(|| self.writer.sync())?;
        self.written();
        Ok(())
    }

    /// Publishes the progress: all buffered events are in the relay log.
    fn written(&mut self) {
        self.receiver.connection.has_received();
        let mut io = self.receiver.connection.io.lock();
        if let Some(place) = self.arrived.whole.take() {
            io.whole = place;
        }
        self.arrived.gtids.drain(..).for_each(|gtid| io.gtids.update(gtid));
    }

    /// Ends the connection. Events that cannot be written now are fetched again.
    fn end(&mut self) {
        match self.writer.flush() {
            Ok(()) => self.written(),
            Err(_) => self.writer.discard(),
        }
    }

    /// Waits for `relay_log_space_limit`.
    fn await_room(&mut self) {
        let receiver = self.receiver;
        let connection = &receiver.connection;
        let limit = receiver.db.globals.uint(VarId::RelayLogSpaceLimit);
        if limit == 0 || connection.relay.bytes() <= limit {
            return;
        }
        connection.io_state("Waiting for the slave SQL thread to free enough relay log space");
        // A group larger than the limit must be received nevertheless.
        while connection.relay.bytes() > limit && !connection.io_stops() && !self.applier_waits() {
            connection.relay.await_purge(Duration::from_millis(50));
        }
        connection.io_state("Waiting for master to send event");
    }

    /// Returns whether the applier has processed everything received.
    fn applier_waits(&self) -> bool {
        let sql = self.receiver.connection.sql.lock();
        sql.is_running && sql.waits_for_more
    }

    /// Processes one event.
    fn take(&mut self, event: &[u8]) -> Result<(), Ended> {
        let receiver = self.receiver;
        let connection = &receiver.connection;
        let header = EventHeader::decode(event).map_err(damaged)?;
        if header.event_len as usize != event.len() {
            return Err(damaged("the length of an event is not that of its packet"));
        }
        // The applier would treat it as an event of this server.
        if header.flags & flags::RELAY_LOG != 0 {
            return Err(damaged("an event of a relay log"));
        }
        let checksum = match header.kind {
            EventType::FORMAT_DESCRIPTION => Checksum::Crc32,
            _ => self.checksum,
        };
        let (_, body) = split_event(event, checksum).map_err(|what| {
            let text =
                format!("Replication event checksum verification failed while reading from network: {what}");
            Ended::Failed(ThreadError::new(1743, text))
        })?;
        connection.counts.received_bytes.fetch_add(event.len() as u64, Ordering::Relaxed);
        if header.kind == EventType::HEARTBEAT {
            self.has_come_on = true;
            connection.io.lock().heartbeats += 1;
            return Ok(());
        }
        self.forget_unfinished(&header, body)?;
        if usize::from(header.kind.0) > self.type_max {
            let name = header.kind.name();
            return Err(damaged(format_args!("a {name} event, which the source's format does not have")));
        }
        if header.kind == EventType::GTID && self.groups.is_open() {
            return Err(damaged("a group begins before the one before it has ended"));
        }
        let is_inside = self.groups.is_open();
        let part = self.groups.see(&header, body).map_err(damaged)?;
        let needs_group =
            !matches!(part, Part::Gtid(..) | Part::Outside) && header.kind != EventType::INCIDENT;
        if self.has_gtids && !is_inside && needs_group {
            return Err(damaged("an event belongs to no group"));
        }
        // The end position of a ROTATE event lies in the file that it leaves.
        if header.kind != EventType::ROTATE {
            self.place.pass(&header);
        }
        match part {
            Part::Gtid(_, gtid) => {
                self.gtid = Some(gtid);
                self.has_gtids = true;
            }
            Part::End(_) => {
                self.has_come_on = true;
                self.arrived.whole = Some(self.place.clone());
                self.arrived.gtids.extend(self.gtid.take());
            }
            Part::Begin | Part::Inside | Part::Outside => {}
        }
        connection.io.lock().read.clone_from(&self.place);
        self.write(event, &header, body)
    }

    /// Processes events outside of groups that change the state: the start of a file, a rotation, the end of
    /// UNTIL.
    fn forget_unfinished(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), Ended> {
        match header.kind {
            EventType::FORMAT_DESCRIPTION => {
                let Event::FormatDescription(format) = Event::decode(header.kind, body).map_err(damaged)?
                else {
                    return Err(damaged("a format description that is none"));
                };
                // Every known version begins with a digit. Others may use another format.
                if !format.server_version.first().is_some_and(u8::is_ascii_digit) {
                    return Err(damaged("a format description of no known version"));
                }
                if let Some(kind) = format.differing_type() {
                    return Err(damaged(format_args!("{} events have another format there", kind.name())));
                }
                self.checksum = format.checksum;
                self.type_max = format.post_header_lengths.len();
                self.groups.abandon();
                self.gtid = None;
            }
            EventType::ROTATE => {
                let Event::Rotate(rotate) = Event::decode(header.kind, body).map_err(damaged)? else {
                    return Err(damaged("a rotate event that is none"));
                };
                if rotate.name.len() > FILE_NAME_BYTES_MAX {
                    return Err(damaged("the name of a file is too long"));
                }
                let file = String::from_utf8_lossy(&rotate.name).into_owned();
                self.place = SourcePlace { file, position: rotate.position };
                self.arrived.whole = Some(self.place.clone());
            }
            EventType::GTID_LIST if self.receiver.until.is_some() => {
                if let Event::GtidList(list) = Event::decode(header.kind, body).map_err(damaged)? {
                    self.is_until_reached = list.flags & GtidListEvent::UNTIL_REACHED != 0;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, event: &[u8], header: &EventHeader, body: &[u8]) -> Result<(), Ended> {
        match (header.kind, self.checksum) {
            // Events in the relay log have checksums, whatever the source sends.
            (EventType::FORMAT_DESCRIPTION, Checksum::None) => {
                let mut event = event.to_vec();
                let end = event.len() - CHECKSUM_LEN;
                event[end - 1] = Checksum::Crc32 as u8;
                let crc = crc_of_event(&event[..end]);
                event[end..].copy_from_slice(&crc.to_le_bytes());
                self.writer.append(&event)
            }
            (EventType::FORMAT_DESCRIPTION, _) | (_, Checksum::Crc32) => self.writer.append(event),
            (_, Checksum::None) => self.writer.append_plain(header, body),
        }
        if self.writer.is_full() {
            self.flush()?;
        }
        let globals = &self.receiver.db.globals;
        let most = match globals.uint(VarId::MaxRelayLogSize) {
            0 => globals.uint(VarId::MaxBinlogSize),
            most => most,
        };
        let is_asked = || self.receiver.connection.rotates_relay.swap(false, Ordering::AcqRel);
        if !self.groups.is_open() && (self.writer.file_bytes() > most || is_asked()) {
            let now_s = self.receiver.now_s();
            self.receiver.despite_full_disk(|| self.writer.rotate(now_s, &self.place))?;
            self.written();
        }
        Ok(())
    }
}

/// Returns the GTID state that a receiver begins with.
pub fn start_gtids(use_gtid: UseGtid, applied: &[Gtid], logged: &GtidState, own_id: u32) -> GtidState {
    match use_gtid {
        UseGtid::CurrentPos => current_position(applied, logged, own_id),
        UseGtid::SlavePos | UseGtid::No => GtidState::from_list(applied),
    }
}

/// Returns `gtid_current_pos`: the applied position, advanced by this server's own later transactions.
pub fn current_position(applied: &[Gtid], logged: &GtidState, own_id: u32) -> GtidState {
    let mut state = GtidState::from_list(applied);
    for gtid in logged.position().into_iter().filter(|gtid| gtid.server.0 == own_id) {
        if state.last_in(gtid.domain).is_none_or(|last| last.seq_no < gtid.seq_no) {
            state.remove(gtid.domain);
            state.update(gtid);
        }
    }
    state
}
