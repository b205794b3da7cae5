//! Connected readers: registered replicas and running dumps.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use cohort_base::{BinlogPos, ConnectionId, ServerId};
use cohort_binlog::{BinlogFileWriter, GtidState};
use cohort_commit::Coordinator;
use cohort_protocol::RegisterReplica;
use parking_lot::Mutex;

use super::semi_sync::{SemiSync, SemiSyncLog};

/// A replica as it registered itself: a row of SHOW SLAVE HOSTS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaHost {
    pub server_id: u32,
    /// `report_host`, or empty.
    pub host: String,
    /// `report_user`, or empty.
    pub user: String,
    /// `report_password`, or empty.
    pub password: String,
    pub port: u16,
}

/// First byte of an acknowledgement.
const ACKNOWLEDGEMENT: u8 = 0xef;

/// Why a dump must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WhyEnd {
    /// It need not end.
    GoesOn,
    /// The connection was closed or killed.
    Gone,
    /// A replica with the same server_id has connected.
    SameServerId,
}

/// A running dump, as seen by other threads.
#[derive(Debug)]
pub struct DumpHandle {
    server_id: u32,
    connection: ConnectionId,
    why: AtomicU8,
    /// Ends of groups whose acknowledgement was requested and has not arrived, in order.
    asked: Mutex<VecDeque<BinlogPos>>,
}

impl DumpHandle {
    /// Returns why the dump must end, if it must.
    pub fn why_end(&self) -> WhyEnd {
        match self.why.load(Ordering::Acquire) {
            0 => WhyEnd::GoesOn,
            1 => WhyEnd::Gone,
            _ => WhyEnd::SameServerId,
        }
    }

    /// Records that an acknowledgement is requested.
    pub(crate) fn ask(&self, end: BinlogPos) {
        self.asked.lock().push_back(end);
    }

    /// Returns whether a requested acknowledgement is pending.
    pub(crate) fn is_asked(&self) -> bool {
        !self.asked.lock().is_empty()
    }

    /// Returns the full position of an acknowledgement, whose offset is modulo 2^32. Returns `None` if it was
    /// not requested.
    fn answered(&self, file: u32, offset: u64) -> Option<BinlogPos> {
        let mut asked = self.asked.lock();
        let is_it = |end: &BinlogPos| end.file == file && end.offset as u32 == offset as u32;
        let at = asked.iter().position(is_it)?;
        asked.drain(..=at).next_back()
    }
}

#[derive(Default)]
struct Connected {
    hosts: BTreeMap<ConnectionId, ReplicaHost>,
    dumps: Vec<Arc<DumpHandle>>,
    /// Number of registrations so far.
    registrations: u64,
}

/// The source side of replication in one server.
pub struct Source {
    commit: Arc<Coordinator>,
    server_id: ServerId,
    connected: Mutex<Connected>,
    semi_sync: Arc<SemiSync>,
}

impl Source {
    /// Creates a source on top of the commit path.
    pub fn new(commit: Arc<Coordinator>, server_id: ServerId, log: SemiSyncLog) -> Source {
        let semi_sync = SemiSync::new(Arc::downgrade(&commit), log);
        commit.set_replica_gate(semi_sync.clone());
        Source { commit, server_id, connected: Mutex::default(), semi_sync }
    }

    /// Returns the semi-synchronous part.
    pub fn semi_sync(&self) -> &Arc<SemiSync> {
        &self.semi_sync
    }

    /// Processes an acknowledgement of a semi-synchronous replica: `ef | position u64 | file name`. Returns
    /// false if the payload is something else.
    pub fn take_acknowledgement(&self, handle: &DumpHandle, payload: &[u8]) -> bool {
        let Some((&ACKNOWLEDGEMENT, rest)) = payload.split_first() else { return false };
        let Some((offset, name)) = rest.split_first_chunk::<8>() else { return false };
        let name = String::from_utf8_lossy(name);
        let file = self.files().and_then(|files| files.name().number(&name));
        if let Some(file) = file
            && let Some(end) = handle.answered(file, u64::from_le_bytes(*offset))
        {
            self.semi_sync.acknowledge(end);
        }
        true
    }

    /// Returns the binary log, or `None` if it is disabled.
    pub fn files(&self) -> Option<Arc<BinlogFileWriter>> {
        self.commit.binlog_files()
    }

    /// Returns the id of this server.
    pub fn server_id(&self) -> ServerId {
        self.server_id
    }

    /// Returns the GTID state of everything durable. It includes unpublished transactions, because a replica
    /// may already have them.
    pub fn logged(&self) -> GtidState {
        self.commit.binlog_status().map_or_else(GtidState::default, |(_, gtids)| gtids)
    }

    /// Returns the number of registrations since the server started.
    pub fn registrations(&self) -> u64 {
        self.connected.lock().registrations
    }

    /// Registers a replica: COM_REGISTER_SLAVE.
    pub fn register(&self, connection: ConnectionId, replica: &RegisterReplica<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let host = ReplicaHost {
            server_id: replica.server_id,
            host: text(replica.host),
            user: text(replica.user),
            password: text(replica.password),
            port: replica.port,
        };
        let mut connected = self.connected.lock();
        connected.registrations += 1;
        connected.hosts.retain(|_, other| other.server_id != host.server_id);
        connected.hosts.insert(connection, host);
    }

    /// Removes the registration of a connection that ended.
    pub fn forget(&self, connection: ConnectionId) {
        self.connected.lock().hosts.remove(&connection);
    }

    /// Returns the registered replicas, sorted by server_id.
    pub fn hosts(&self) -> Vec<ReplicaHost> {
        let mut hosts: Vec<ReplicaHost> = self.connected.lock().hosts.values().cloned().collect();
        hosts.sort_by_key(|host| host.server_id);
        hosts
    }

    /// Begins a dump. Ends an older dump of the same replica.
    pub fn begin_dump(&self, server_id: u32, connection: ConnectionId) -> Arc<DumpHandle> {
        let handle = Arc::new(DumpHandle {
            server_id,
            connection,
            why: AtomicU8::new(WhyEnd::GoesOn as u8),
            asked: Mutex::default(),
        });
        let mut connected = self.connected.lock();
        for other in connected.dumps.iter().filter(|other| server_id != 0 && other.server_id == server_id) {
            other.why.store(WhyEnd::SameServerId as u8, Ordering::Release);
        }
        connected.dumps.push(handle.clone());
        drop(connected);
        self.interrupt();
        handle
    }

    /// Removes a dump that has ended.
    pub fn end_dump(&self, handle: &Arc<DumpHandle>) {
        self.connected.lock().dumps.retain(|other| !Arc::ptr_eq(other, handle));
    }

    /// Asks a dump to end.
    pub fn end(&self, handle: &DumpHandle) {
        let _ = handle.why.compare_exchange(
            WhyEnd::GoesOn as u8,
            WhyEnd::Gone as u8,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        self.interrupt();
    }

    /// Returns the connections with a running dump.
    pub fn dumps(&self) -> Vec<ConnectionId> {
        self.connected.lock().dumps.iter().map(|dump| dump.connection).collect()
    }

    fn interrupt(&self) {
        if let Some(files) = self.files() {
            files.tail().interrupt();
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.semi_sync.end();
    }
}
