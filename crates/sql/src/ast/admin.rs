//! FLUSH, PURGE, table maintenance, statements of replication.

use super::{Expr, ObjectName};

/// FLUSH [NO_WRITE_TO_BINLOG | LOCAL] ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flush {
    /// NO_WRITE_TO_BINLOG or LOCAL.
    pub local: bool,
    pub targets: Vec<FlushTarget>,
}

/// What FLUSH flushes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushTarget {
    /// TABLES [list]; empty list: all.
    Tables {
        names: Vec<ObjectName>,
        lock: FlushLock,
    },
    /// LOGS: every log.
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
    /// Any other known word, upper case: without effect.
    Other(String),
}

/// What FLUSH TABLES adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushLock {
    None,
    WithReadLock,
    ForExport,
}

/// What BACKUP STAGE enters, in this order; stages may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackupStage {
    /// Nobody else makes a backup.
    Start,
    /// Tables of engines without transactions are at rest: there are none.
    Flush,
    /// No definition changes.
    BlockDdl,
    /// Nothing commits.
    BlockCommit,
    End,
}

impl BackupStage {
    /// Every stage.
    pub const ALL: [BackupStage; 5] = [
        BackupStage::Start,
        BackupStage::Flush,
        BackupStage::BlockDdl,
        BackupStage::BlockCommit,
        BackupStage::End,
    ];

    /// As it is written.
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
    pub names: Vec<ObjectName>,
    /// QUICK, FAST, EXTENDED, FOR UPGRADE, PERSISTENT FOR ..., upper case, in the order written.
    pub options: Vec<String>,
}

/// Which maintenance.
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
    /// Names in upper case; a word such as SLAVE_POS is a text literal, and so is a list of numbers: `1,2`.
    pub options: Vec<(String, Expr)>,
}

/// START and STOP SLAVE.
#[derive(Clone, Debug, PartialEq)]
pub struct SlaveControl {
    /// ALL SLAVES.
    pub all: bool,
    pub connection: Option<String>,
    /// IO_THREAD (neither: both).
    pub io_thread: bool,
    /// SQL_THREAD.
    pub sql_thread: bool,
    /// UNTIL option = value, ...
    pub until: Vec<(String, Expr)>,
}

/// INSTALL and UNINSTALL of a PLUGIN or of all in a SONAME.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    pub installs: bool,
    /// IF NOT EXISTS, IF EXISTS.
    pub if_not: bool,
    /// None: all in the library.
    pub name: Option<String>,
    /// None: that of the plugin, which goes.
    pub library: Option<String>,
}
