//! FLUSH, PURGE, table maintenance, replication statements.

use super::{Expr, ObjectName};

/// FLUSH [NO_WRITE_TO_BINLOG | LOCAL] ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flush {
    /// NO_WRITE_TO_BINLOG or LOCAL.
    pub local: bool,
    pub targets: Vec<FlushTarget>,
}

/// Object of FLUSH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushTarget {
    /// TABLES [list]. An empty list means all tables.
    Tables {
        names: Vec<ObjectName>,
        lock: FlushLock,
    },
    /// LOGS: all logs.
    Logs,
    /// BINARY LOGS [DELETE_DOMAIN_ID = (list)].
    BinaryLogs {
        delete_domains: Option<Vec<u32>>,
    },
    EngineLogs,
    ErrorLogs,
    GeneralLogs,
    SlowLogs,
    RelayLogs,
    Privileges,
    /// [GLOBAL | SESSION] STATUS.
    Status,
    Hosts,
    QueryCache,
    UserResources,
    /// Any other known word, in upper case. It has no effect.
    Other(String),
}

/// Additional clause of FLUSH TABLES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushLock {
    None,
    WithReadLock,
    ForExport,
}

/// Stage of BACKUP STAGE, in order. Stages may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackupStage {
    /// Excludes other backups.
    Start,
    /// Flushes the tables of engines without transactions, of which there are none.
    Flush,
    /// Blocks changes of definitions.
    BlockDdl,
    /// Blocks commits.
    BlockCommit,
    End,
}

impl BackupStage {
    /// All stages.
    pub const ALL: [BackupStage; 5] = [
        BackupStage::Start,
        BackupStage::Flush,
        BackupStage::BlockDdl,
        BackupStage::BlockCommit,
        BackupStage::End,
    ];

    /// Returns the keyword.
    pub fn name(self) -> &'static str {
        match self {
            BackupStage::Start => "START",
            BackupStage::Flush => "FLUSH",
            BackupStage::BlockDdl => "BLOCK_DDL",
            BackupStage::BlockCommit => "BLOCK_COMMIT",
            BackupStage::End => "END",
        }
    }
}

/// BACKUP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backup {
    Stage(BackupStage),
    Lock(ObjectName),
    Unlock,
    Server(BackupServer),
    /// BACKUP SERVER PROVEN: a backup with this identifier was restored and checked.
    Proven(String),
}

/// BACKUP SERVER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupServer {
    pub target: BackupTarget,
    /// The backup that an incremental one continues: its directory, or its identifier if the target is the
    /// client.
    pub parent: Option<String>,
}

/// Destination of BACKUP SERVER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupTarget {
    /// A new or empty directory of the server's host.
    Directory(String),
    /// The client, as a result set.
    Stream,
}

/// CLONE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloneServer {
    /// CLONE LOCAL DATA DIRECTORY: this server, into a new directory.
    Local {
        directory: String,
    },
    Instance(CloneInstance),
}

/// CLONE INSTANCE: another server, into a new directory, or in place of the data of this one.
#[derive(Clone, PartialEq, Eq)]
pub struct CloneInstance {
    pub user: String,
    pub host: String,
    pub port: u16,
    pub password: String,
    pub directory: Option<String>,
    /// REQUIRE SSL, REQUIRE NO SSL.
    pub ssl: Option<bool>,
}

/// Shows no password.
impl std::fmt::Debug for CloneInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CloneInstance { user, host, port, directory, ssl, .. } = self;
        write!(f, "CloneInstance({user:?}@{host:?}:{port}, {directory:?}, {ssl:?})")
    }
}

/// PURGE BINARY LOGS.
#[derive(Clone, Debug, PartialEq)]
pub enum PurgeBinaryLogs {
    To(String),
    Before(Expr),
}

/// CHECK, ANALYZE, OPTIMIZE, REPAIR, CHECKSUM TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMaintenance {
    pub kind: MaintenanceKind,
    /// NO_WRITE_TO_BINLOG or LOCAL.
    pub local: bool,
    /// CHECK VIEW, REPAIR VIEW.
    pub of_views: bool,
    pub names: Vec<ObjectName>,
    /// QUICK, FAST, EXTENDED, FOR UPGRADE, PERSISTENT FOR ..., upper case, in the order written.
    pub options: Vec<String>,
}

/// Kind of table maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceKind {
    Check,
    Analyze,
    Optimize,
    Repair,
    Checksum,
}

/// CHANGE MASTER ['name'] TO option = value, ...
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeMaster {
    pub connection: Option<String>,
    /// Names in upper case. A word such as SLAVE_POS is a text literal; so is a list of numbers, as `1,2`.
    pub options: Vec<(String, Expr)>,
}

/// START and STOP SLAVE.
#[derive(Clone, Debug, PartialEq)]
pub struct SlaveControl {
    /// ALL SLAVES.
    pub all: bool,
    pub connection: Option<String>,
    /// IO_THREAD. If neither is set, both threads are meant.
    pub io_thread: bool,
    /// SQL_THREAD.
    pub sql_thread: bool,
    /// UNTIL option = value, ...
    pub until: Vec<(String, Expr)>,
}

/// INSTALL or UNINSTALL of a PLUGIN, or of all plugins of a SONAME.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    pub installs: bool,
    /// IF NOT EXISTS, IF EXISTS.
    pub if_not: bool,
    /// Name of the plugin; `None` is all plugins of the library.
    pub name: Option<String>,
    /// Name of the library; `None` for UNINSTALL PLUGIN, which names only the plugin.
    pub library: Option<String>,
}
