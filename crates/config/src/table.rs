//! The table of all settings. Names, bounds and words are MariaDB's. Where a default differs from MariaDB's,
//! the description says so.

use cohort_types::{Charset, Collation, Privilege};

use crate::inert::with_inert_settings;
use crate::setting::Acts::{Global, Plan, Session, Statement};
use crate::setting::{Kind, Setting};

macro_rules! settings {
    ($($id:ident = $setting:expr;)*) => {
        /// A setting. Code on hot paths reads values by this identifier instead of the name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        #[allow(missing_docs)]
        pub enum VarId { $($id,)* }

        impl VarId {
            /// All settings, in table order.
            pub const ALL: &[VarId] = &[$(VarId::$id,)*];
        }

        pub(crate) static SETTINGS: &[Setting] = &[$($setting,)*];
    };
}

const U32: u64 = u32::MAX as u64;
const YEAR: u64 = 31_536_000;
const WORDS_YES: &str = "YES";
const WORDS_NO: &str = "NO";

const fn flag(default: bool) -> Kind {
    Kind::Bool { default }
}

const fn num(default: u64, min: u64, max: u64) -> Kind {
    Kind::Int { default, min, max, block: 1 }
}

const fn blocks(default: u64, min: u64, max: u64, block: u64) -> Kind {
    Kind::Int { default, min, max, block }
}

const fn real(default: f64, min: f64, max: f64) -> Kind {
    Kind::Double { default, min, max }
}

const fn word(default: usize, members: &'static [&'static str]) -> Kind {
    Kind::Enum { default, members }
}

/// Returns the index of a word among the members.
const fn place(word: &str, members: &[&str]) -> usize {
    let mut n = 0;
    while n < members.len() {
        let (member, word) = (members[n].as_bytes(), word.as_bytes());
        let mut same = 0;
        while same < word.len() && same < member.len() && member[same] == word[same] {
            same += 1;
        }
        if same == word.len() && same == member.len() {
            return n;
        }
        n += 1;
    }
    panic!("the word is not among the members");
}

const fn set(default: u64, members: &'static [&'static str]) -> Kind {
    Kind::Set { default, members }
}

const fn text(default: &'static str) -> Kind {
    Kind::Text { default: Some(default) }
}

const fn path(default: &'static str) -> Kind {
    Kind::Path { default: Some(default) }
}

const NULL_TEXT: Kind = Kind::Text { default: None };

/// The words of sql_mode. Bit n of the value in the binary log is word n.
const SQL_MODES: &[&str] = &[
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "IGNORE_BAD_TABLE_OPTIONS",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "POSTGRESQL",
    "ORACLE",
    "MSSQL",
    "DB2",
    "MAXDB",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "NO_FIELD_OPTIONS",
    "MYSQL323",
    "MYSQL40",
    "ANSI",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "NO_AUTO_CREATE_USER",
    "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "EMPTY_STRING_IS_NULL",
    "SIMULTANEOUS_ASSIGNMENT",
    "TIME_ROUND_FRACTIONAL",
];
const SQL_MODE_DEFAULT: u64 = 1 << 21 | 1 << 26 | 1 << 28 | 1 << 30;
pub(crate) const CHARSETS: &[&str] = &Charset::NAMES;
pub(crate) const COLLATIONS: &[&str] = &Collation::NAMES;
const ISOLATION: &[&str] = &["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"];
const CHECKSUMS: &[&str] = &["NONE", "CRC32"];
/// MariaDB's locales, by number.
#[rustfmt::skip]
const LOCALES: &[&str] = &[
    "en_US", "en_GB", "ja_JP", "sv_SE", "de_DE", "fr_FR", "ar_AE", "ar_BH", "ar_JO", "ar_SA", "ar_SY",
    "be_BY", "bg_BG", "ca_ES", "cs_CZ", "da_DK", "de_AT", "es_ES", "et_EE", "eu_ES", "fi_FI", "fo_FO",
    "gl_ES", "gu_IN", "he_IL", "hi_IN", "hr_HR", "hu_HU", "id_ID", "is_IS", "it_CH", "ko_KR", "lt_LT",
    "lv_LV", "mk_MK", "mn_MN", "ms_MY", "nb_NO", "nl_NL", "pl_PL", "pt_BR", "pt_PT", "ro_RO", "ru_RU",
    "ru_UA", "sk_SK", "sl_SI", "sq_AL", "sr_RS", "ta_IN", "te_IN", "th_TH", "tr_TR", "uk_UA", "ur_PK",
    "vi_VN", "zh_CN", "zh_TW", "ar_DZ", "ar_EG", "ar_IN", "ar_IQ", "ar_KW", "ar_LB", "ar_LY", "ar_MA",
    "ar_OM", "ar_QA", "ar_SD", "ar_TN", "ar_YE", "de_BE", "de_CH", "de_LU", "en_AU", "en_CA", "en_IN",
    "en_NZ", "en_PH", "en_ZA", "en_ZW", "es_AR", "es_BO", "es_CL", "es_CO", "es_CR", "es_DO", "es_EC",
    "es_GT", "es_HN", "es_MX", "es_NI", "es_PA", "es_PE", "es_PR", "es_PY", "es_SV", "es_US", "es_UY",
    "es_VE", "fr_BE", "fr_CA", "fr_CH", "fr_LU", "it_IT", "nl_BE", "no_NO", "sv_FI", "zh_HK", "el_GR",
    "rm_CH", "ka_GE",
];
const ON_OFF_DEMAND: &[&str] = &["OFF", "ON", "DEMAND"];
const TLS_VERSIONS: &[&str] = &["TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
/// TLSv1.2 and TLSv1.3.
const TLS_VERSIONS_DEFAULT: u64 = 1 << 2 | 1 << 3;
const ALTER: &[&str] = &["DEFAULT", "COPY", "INPLACE", "NOCOPY", "INSTANT"];

const INNODB: &str = "no equivalent in the B+tree engine";
const NOT_DONE: &str = "a feature of InnoDB that Cohort does not have";
const MYISAM: &str = "Cohort has no MyISAM or Aria tables";
const QUERY_CACHE: &str = "Cohort has no query cache";
const BUFFERS: &str = "memory is allocated when a statement needs it";
const OPTIMIZER: &str = "Cohort's optimizer chooses among other plans";
const POOL: &str = "one pool of workers serves all connections; see thread_pool_size";
const REPLICA: &str = "Cohort's replicas have no such feature";
const LOG_FILES: &str = "statements are logged whole, by their duration and by the rows that they read";
const NO_COMPRESSION: &str = "there are no compressed columns";
const NO_DELAYED: &str = "INSERT DELAYED is an ordinary INSERT";
const NO_ENCRYPTION: &str = "files are not encrypted";
const FULLTEXT_DEFAULTS: &str =
    "words are indexed as by InnoDB's defaults: of 3 to 84 characters, without its stopwords";
const NO_FULLTEXT: &str = "for MyISAM's full-text indexes; Cohort's are like InnoDB's with default settings";
const NO_GALERA: &str = "Cohort has no Galera clusters";
const NO_PERFORMANCE_SCHEMA: &str = "the performance schema has no tables of fixed size";
const NO_PLUGINS: &str = "there are no plugins";
const NO_TRACE: &str = "there is no trace";
const NO_VERSIONING: &str = "there are no system-versioned tables";
const DEADLOCKS: &str = "deadlocks are detected at once";

/// Reasons of settings that only affect how results are found. Setting them gives no warning, because the
/// results are the same.
pub(crate) const TUNING: &[&str] = &[INNODB, MYISAM, QUERY_CACHE, BUFFERS, OPTIMIZER, POOL, DEADLOCKS];

with_inert_settings! { settings! {
    // --- Durable commit path
    SyncBinlog = Setting::global("sync_binlog", num(1, 0, U32)).admin(Privilege::BinlogAdmin)
        .doc("1: a commit is acknowledged after it is on disk. MariaDB's default is 0.").no_effect("every commit is acknowledged after it is on disk, as with 1");
    FlushLogAtTrxCommit = Setting::global("flush_log_at_trx_commit", num(1, 0, 3))
        .doc("1: a commit is acknowledged after its log record is on disk.").no_effect("every commit is acknowledged after it is on disk, as with 1");
    InnodbFlushLogAtTrxCommit = Setting::global("innodb_flush_log_at_trx_commit", num(1, 0, 3))
        .doc("MariaDB's name of flush_log_at_trx_commit.").alias(VarId::FlushLogAtTrxCommit).no_effect("every commit is acknowledged after it is on disk, as with 1");
    EarlyLockRelease = Setting::global("early_lock_release", flag(true)).acts(Global).internal()
        .doc("Release row locks when a transaction is ordered, before the disk flush. No query returns a change that a crash can undo.");
    SessionsMemoryMax = Setting::global("sessions_memory_max", num(0, 0, u64::MAX)).acts(Global)
        .doc("Memory limit for the statements, prepared statements, transactions and user variables of all sessions, and for the cached plans. A statement that exceeds it fails with error 1041. 0: half of the memory of the machine or control group.").unit("bytes");
    StatementsMemoryMax = Setting::global("statements_memory_max", num(16 << 20, 0, 1 << 32)).read_only()
        .doc("Memory for the statistics of statements by digest (information_schema.COHORT_STATEMENTS). When it is full, the least used statements are merged into one row. 0: count statements by kind only.").unit("bytes");
    StatementSamples = Setting::global("statement_samples", flag(true)).acts(Statement)
        .doc("Keep an example of each statement for information_schema.COHORT_STATEMENTS, with secrets masked.");
    StatementStatisticsKept = Setting::global("statement_statistics_kept", flag(false)).read_only()
        .doc("Keep the statistics of statements over a restart, in the file statement_statistics.bin of the data directory. It is written at a clean stop, without examples and plans. After a crash the statistics of the last clean stop are read.");
    SysSchema = Setting::global("sys_schema", flag(true)).read_only()
        .doc("Create the schema sys in a data directory that has never had one. A schema of this name that exists is never changed, and one that was dropped is not created again.");
    CohortTrace = Setting::both("cohort_trace", flag(false)).acts(Session).no_option()
        .doc("Keep the durations of a statement and of the steps of its commit for information_schema.COHORT_TRACE, which the session's next statement reads: SET STATEMENT cohort_trace=1 FOR ...");
    CohortRoutineLines = Setting::global("cohort_routine_lines", flag(false)).acts(Global)
        .doc("Count the executions and the time of each line of stored programs: information_schema.ROUTINE_LINES. Setting it removes all counts. While it is on, programs run slower.");
    Userstat = Setting::global("userstat", flag(false)).acts(Statement)
        .doc("Count statements by account and connection, and the rows that they read and change by table and index: USER_STATISTICS, CLIENT_STATISTICS, TABLE_STATISTICS, INDEX_STATISTICS in information_schema, table_io_waits_summary_by_table and the sums of statements by account in performance_schema.");
    LogLayout = Setting::global("log_layout", word(0, &["shared", "separate"])).read_only()
        .doc("shared: one log for the binary log and all engines; a group of commits needs one flush. separate: one log for each engine in addition to the binary log, which decides; a group needs two flushes. Fixed when the data directory is created; cohortd --convert-log-layout changes it.");
    BinlogGroupCommitSyncEngine = Setting::global("binlog_group_commit_sync_engine", flag(true)).acts(Global).admin(Privilege::BinlogAdmin)
        .doc("With log_layout=separate. ON: sync the engines' logs once for each group of commits. OFF: also once for each transaction when it is prepared, as servers did before group commit. OFF makes nothing safer.");
    BinlogGroupCommitOverlap = Setting::global("binlog_group_commit_overlap", word(2, &["OFF", "ON", "AUTO"])).acts(Global).admin(Privilege::BinlogAdmin).internal()
        .doc("With log_layout=separate: sync the engines' logs for the next group of commits while the binary log is synced for the previous one. AUTO: only if the binary log is on a separate device.");
    ArchiveTo = Setting::global("archive_to", text("")).read_only()
        .doc("Repository to which the log is archived as it grows, as a URL or directory that cohort-backup knows. Empty: there is no archive.");
    ArchiveKeyFile = Setting::global("archive_key_file", path("")).read_only()
        .doc("Key file of the repository of archive_to, if it is encrypted.");
    ArchiveTimeout = Setting::global("archive_timeout", num(1000, 10, 3_600_000)).read_only()
        .doc("Age at which the newest part of the log is sent to the archive, even if it is small.").unit("milliseconds");
    ArchiveBacklogMax = Setting::global("archive_backlog_max", blocks(16 << 30, 64 << 20, 1 << 50, 1 << 20)).read_only()
        .doc("Log that is kept while the repository of archive_to does not take it. Beyond it the archive is given up, with an error in the error log, and has a gap; transactions do not wait.").unit("bytes");
    ArchiveSync = Setting::global("archive_sync", flag(false)).acts(Global)
        .doc("A commit waits until the repository of archive_to has it, so that it is not lost with this machine. When a commit has waited for archive_sync_timeout, commits go on without it until the archive has caught up; both are logged. Needs archive_to.");
    ArchiveSyncTimeout = Setting::global("archive_sync_timeout", num(10_000, 1, YEAR * 1000)).acts(Global)
        .doc("Longest wait of a commit with archive_sync.").unit("milliseconds");
    LogSegmentSize = Setting::global("log_segment_size", blocks(64 << 20, 1 << 20, 4 << 30, 1 << 20)).read_only()
        .doc("Size of a segment of the log. Fixed when the data directory is created.").unit("bytes");
    CheckpointBytesMax = Setting::global("checkpoint_bytes_max", blocks(512 << 20, 16 << 20, 1 << 40, 1 << 20)).acts(Global)
        .doc("A checkpoint begins when this much redo is only in the log, or earlier: after 256 MiB of redo for InnoDB tables, or rocksdb_write_buffer_size for RocksDB tables.").unit("bytes");
    AdaptiveFlushGroups = Setting::global("adaptive_flush_groups", flag(true)).acts(Global).internal()
        .doc("Keep a flush group open for transactions that are about to commit, if that is expected to save time, or while workers have other clients to serve.");
    InnodbLogFileBuffering = Setting::global("innodb_log_file_buffering", flag(false)).acts(Global)
        .doc("ON: write the log through the operating system's page cache. OFF: bypass it if the file system allows. A change applies to segments that are prepared later.");
    SlowFlushWarningMs = Setting::global("slow_flush_warning_ms", num(1000, 0, YEAR * 1000)).acts(Global).internal()
        .doc("A flush of the log that takes at least this long is counted in Cohort_slow_flushes and logged, at most once every ten seconds. 0: never.").unit("milliseconds");
    BinlogCommitWaitCount = Setting::global("binlog_commit_wait_count", num(0, 0, u64::MAX)).acts(Global).admin(Privilege::BinlogAdmin)
        .doc("A flush waits until its group has this many transactions, or binlog_commit_wait_usec have passed. 0: no wait.");
    BinlogCommitWaitUsec = Setting::global("binlog_commit_wait_usec", num(100_000, 0, u64::MAX)).acts(Global).admin(Privilege::BinlogAdmin)
        .doc("Longest wait for binlog_commit_wait_count.").unit("microseconds");

    // --- Binary log
    LogBin = Setting::fact("log_bin", flag(true)).doc("Whether the server writes a binary log. The options are --log-bin[=NAME] and --skip-log-bin. On by default, unlike in MariaDB.")
        .may_lose_data("without it there is no point-in-time recovery: if the disk is lost, all changes since the last backup are lost");
    LogBinBasename = Setting::fact("log_bin_basename", NULL_TEXT).computed().doc("Directory and base name of the binary log files.");
    LogBinIndex = Setting::global("log_bin_index", Kind::Path { default: None }).read_only().doc("The file that lists the binary log files.");
    LogBinCompress = Setting::global("log_bin_compress", flag(false)).acts(Statement).admin(Privilege::BinlogAdmin).doc("Compress statements and row events of at least log_bin_compress_min_len bytes.");
    LogBinCompressMinLen = Setting::global("log_bin_compress_min_len", num(256, 10, 1024)).acts(Statement).admin(Privilege::BinlogAdmin).doc("Smallest statement or row event to compress.").unit("bytes");
    AutomaticSpPrivileges = Setting::global("automatic_sp_privileges", flag(true)).acts(Statement).doc("Grant the creator of a routine EXECUTE and ALTER ROUTINE on it, and revoke all privileges on a routine that is dropped.");
    LogBinTrustFunctionCreators = Setting::global("log_bin_trust_function_creators", flag(false)).acts(Statement).admin(Privilege::BinlogAdmin).doc("Allow functions and triggers that are unsafe for the binary log, and their creation without SUPER.");
    BinlogFormat = Setting::both("binlog_format", word(2, &["MIXED", "STATEMENT", "ROW"])).acts(Statement).admin(Privilege::BinlogAdmin).session_admin(Privilege::BinlogAdmin).doc("How changes are logged. STATEMENT logs INSERT, REPLACE, UPDATE and DELETE as text if they are deterministic; everything else is logged as rows. MariaDB's default is MIXED.");
    BinlogRowImage = Setting::both("binlog_row_image", word(2, &["MINIMAL", "NOBLOB", "FULL"])).acts(Statement).admin(Privilege::BinlogAdmin).session_admin(Privilege::BinlogAdmin).doc("Which columns row events contain.");
    BinlogRowMetadata = Setting::global("binlog_row_metadata", word(0, &["NO_LOG", "MINIMAL", "FULL"])).acts(Statement).admin(Privilege::BinlogAdmin).doc("How much column metadata the table map events contain.");
    BinlogChecksum = Setting::global("binlog_checksum", word(1, CHECKSUMS)).acts(Global).doc("Checksum of each event. A change starts a new file.");
    BinlogAnnotateRowEvents = Setting::both("binlog_annotate_row_events", flag(true)).acts(Statement).admin(Privilege::BinlogAdmin).session_admin(Privilege::BinlogAdmin).doc("Write the text of the statement before its row events.");
    BinlogCacheSize = Setting::global("binlog_cache_size", blocks(1 << 20, 4096, u64::MAX, 4096)).acts(Statement).admin(Privilege::BinlogAdmin).doc("Row events of a transaction beyond this size are written to a temporary file before the commit. Applies to later sessions. MariaDB's default is 32K.").unit("bytes");
    BinlogRowEventMaxSize = Setting::global("binlog_row_event_max_size", blocks(8192, 256, U32 - 255, 256)).read_only().doc("Maximum size of a row event. A single larger row has an event of its own.").unit("bytes");
    BinlogStmtCacheSize = Setting::inert("binlog_stmt_cache_size", blocks(32768, 4096, u64::MAX, 4096), "all engines here are transactional").admin(Privilege::BinlogAdmin).doc("Cache for statements on non-transactional tables.").unit("bytes");
    BinlogFileCacheSize = Setting::inert("binlog_file_cache_size", blocks(16384, 8192, u64::MAX, 4096), "the files are read through the operating system's cache").admin(Privilege::BinlogAdmin).doc("Read buffer for binary log files.").unit("bytes");
    MaxBinlogSize = Setting::global("max_binlog_size", blocks(1 << 30, 4096, 1 << 30, 4096)).acts(Global).admin(Privilege::BinlogAdmin).doc("A binary log file larger than this is closed, and the next one is started.").unit("bytes");
    MaxBinlogCacheSize = Setting::global("max_binlog_cache_size", blocks(u64::MAX - 4095, 4096, u64::MAX, 4096)).acts(Statement).admin(Privilege::BinlogAdmin).doc("A transaction whose events exceed this size fails with error 1197. Applies to later sessions.").unit("bytes");
    ExpireLogsDays = Setting::global("expire_logs_days", real(10.0, 0.0, 99.0)).acts(Statement).admin(Privilege::BinlogAdmin).doc("Binary log files older than this are removed; 0 keeps them. MariaDB's default is 0.").unit("days");
    BinlogExpireLogsSeconds = Setting::global("binlog_expire_logs_seconds", num(864_000, 0, 8_553_600)).acts(Statement).admin(Privilege::BinlogAdmin).doc("Age at which binary log files are removed; 0: never. expire_logs_days is the same age in days: each of the two sets the other.").unit("seconds");
    MaxBinlogTotalSize = Setting::global("max_binlog_total_size", num(0, 0, u64::MAX)).acts(Statement).admin(Privilege::BinlogAdmin).doc("The oldest binary log files are removed while all files together are larger than this. 0: no limit.").unit("bytes");
    InitRplRole = Setting::global("init_rpl_role", word(0, &["MASTER", "SLAVE"])).read_only()
        .doc("SLAVE: a start after a crash removes the transactions that no replica had acknowledged under `AFTER_SYNC` from binary log and engines, so that this server can replicate from the one that was promoted.");
    SlaveConnectionsNeededForPurge = Setting::global("slave_connections_needed_for_purge", num(0, 0, U32)).acts(Statement).admin(Privilege::BinlogAdmin).doc("No file is removed by age or size while fewer replicas are connected. A file that a connected replica reads is never removed. MariaDB's default is 1.");
    BinlogDirectNonTransactionalUpdates = Setting::both("binlog_direct_non_transactional_updates", flag(false)).admin(Privilege::BinlogAdmin).session_admin(Privilege::BinlogAdmin).no_effect("all engines here are transactional").doc("Write changes of non-transactional tables at once.");
    BinlogOptimizeThreadScheduling = Setting::inert("binlog_optimize_thread_scheduling", flag(true), "no thread sleeps per commit here").read_only().doc("Wake commit threads cheaply.");
    BinlogAlterTwoPhase = Setting::both("binlog_alter_two_phase", flag(false)).no_effect("ALTER TABLE is logged in one event").doc("Log ALTER TABLE in two events.");
    MasterVerifyChecksum = Setting::global("master_verify_checksum", flag(false)).admin(Privilege::ReplicationMasterAdmin).doc("Check checksums when events are read for a replica.").no_effect("checksums are always checked");
    BackupMibPerS = Setting::global("backup_mib_per_s", num(200, 0, 1 << 20)).acts(Statement)
        .doc("Maximum rate of `BACKUP SERVER`. A change applies to the running backup. 0: no limit.").unit("MiB per second");
    CloneValidDonorList = Setting::global("clone_valid_donor_list", text("")).acts(Statement).only(Privilege::CloneAdmin)
        .doc("Servers from which `CLONE INSTANCE` may copy: `host:port`, separated by commas. Empty: none.");
    BinlogVerifyMibPerS = Setting::global("binlog_verify_mib_per_s", num(16, 0, 1 << 20)).read_only()
        .doc("Rate at which older binary log files are read and their checksums verified, once after each start, in the background. Damage is logged. 0: do not verify.").unit("MiB per second");
    BinlogDoDb = Setting::global("binlog_do_db", text("")).read_only().hidden().doc("Log only changes of this database. May be given several times.");
    BinlogIgnoreDb = Setting::global("binlog_ignore_db", text("")).read_only().hidden().doc("Do not log changes of this database. May be given several times.");
    SqlLogBin = Setting::both("sql_log_bin", flag(true)).acts(Statement).admin(Privilege::BinlogAdmin).session_admin(Privilege::BinlogAdmin).no_option().doc("OFF: the session's changes are not written to the binary log.");
    EncryptBinlog = Setting::global("encrypt_binlog", flag(false)).refused(NO_ENCRYPTION).read_only().doc("Encrypt binary log files.");
    ReadBinlogSpeedLimit = Setting::inert("read_binlog_speed_limit", num(0, 0, u64::MAX), REPLICA).admin(Privilege::ReplicationSlaveAdmin).doc("KiB per second a replica reads.");

    // --- Replication identity and GTIDs
    ServerId = Setting::both("server_id", num(1, 1, U32)).acts(Statement).admin(Privilege::ReplicationMasterAdmin).session_admin(Privilege::BinlogReplay).doc("Number of this server in replication. Every event contains it.");
    ServerUid = Setting::fact("server_uid", text("")).doc("Identity of this data directory.");
    GtidDomainId = Setting::both("gtid_domain_id", num(0, 0, U32)).acts(Statement).admin(Privilege::ReplicationMasterAdmin).session_admin(Privilege::BinlogReplay).doc("Domain of the transactions that start on this server.");
    GtidSeqNo = Setting::session("gtid_seq_no", num(0, 0, u64::MAX)).acts(Session).session_admin(Privilege::BinlogReplay).computed().doc("Sequence number of the next transaction. 0: the next free one.");
    GtidStrictMode = Setting::global("gtid_strict_mode", flag(false)).acts(Statement).admin(Privilege::ReplicationSlaveAdmin).doc("Reject transactions whose sequence number is not higher than the last one of the domain.");
    GtidBinlogPos = Setting::fact("gtid_binlog_pos", text("")).computed().doc("Last GTID of each domain in the binary log.");
    GtidBinlogState = Setting::global("gtid_binlog_state", text("")).acts(Global).admin(Privilege::ReplicationMasterAdmin).no_option().computed().doc("Last GTID of each domain and server in the binary log.");
    GtidCurrentPos = Setting::fact("gtid_current_pos", text("")).computed().doc("gtid_binlog_pos and gtid_slave_pos together.");
    GtidSlavePos = Setting::global("gtid_slave_pos", text("")).acts(Global).admin(Privilege::ReplicationSlaveAdmin).no_option().computed().doc("Last GTID of each domain that was applied as a replica.");
    GtidIgnoreDuplicates = Setting::global("gtid_ignore_duplicates", flag(false)).acts(Statement).admin(Privilege::ReplicationSlaveAdmin).doc("Skip GTIDs that another source delivered.");
    GtidPosAutoEngines = Setting::inert("gtid_pos_auto_engines", text(""), "the position is kept in the commit record").admin(Privilege::ReplicationSlaveAdmin).no_option().doc("Engines with their own position table.");
    GtidCleanupBatchSize = Setting::inert("gtid_cleanup_batch_size", num(64, 0, i32::MAX as u64), "the position is kept in the commit record").admin(Privilege::ReplicationSlaveAdmin).doc("Rows to clean at once in the position table.");
    LastGtid = Setting::session("last_gtid", text("")).read_only().computed().doc("GTID of the session's last transaction.");
    RplSemiSyncMasterEnabled = Setting::global("rpl_semi_sync_master_enabled", flag(false)).acts(Global).admin(Privilege::ReplicationMasterAdmin).doc("Wait for a replica's acknowledgement before a commit becomes visible.");
    RplSemiSyncMasterTimeout = Setting::global("rpl_semi_sync_master_timeout", num(10_000, 0, u64::MAX)).acts(Global).admin(Privilege::ReplicationMasterAdmin).doc("Longest wait for a replica's acknowledgement.").unit("milliseconds");
    RplSemiSyncMasterWaitPoint = Setting::global("rpl_semi_sync_master_wait_point", word(1, &["AFTER_SYNC", "AFTER_COMMIT"])).acts(Global).admin(Privilege::ReplicationMasterAdmin).doc("When a commit waits: before it becomes visible (AFTER_SYNC) or after (AFTER_COMMIT).");
    RplSemiSyncMasterWaitNoSlave = Setting::global("rpl_semi_sync_master_wait_no_slave", flag(true)).acts(Global).admin(Privilege::ReplicationMasterAdmin).doc("Wait even when no replica is connected.");
    RplSemiSyncSlaveEnabled = Setting::global("rpl_semi_sync_slave_enabled", flag(false)).acts(Statement).admin(Privilege::ReplicationSlaveAdmin).doc("Send acknowledgements to the source.");
    SlaveParallelThreads = Setting::global("slave_parallel_threads", num(0, 0, 16383)).acts(Statement).admin(Privilege::ReplicationSlaveAdmin).doc("Threads that apply transactions in parallel.");
    SlaveParallelMode = Setting::global("slave_parallel_mode", word(3, &["none", "minimal", "conservative", "optimistic", "aggressive"])).acts(Statement).admin(Privilege::ReplicationSlaveAdmin).doc("Which transactions may be applied in parallel.");
    SlaveNetTimeout = Setting::global("slave_net_timeout", num(60, 1, YEAR)).acts(Statement).admin(Privilege::ReplicationSlaveAdmin).doc("A replica reconnects after it has received nothing from its source for this time.").unit("seconds");
    SlaveMaxAllowedPacket = Setting::global("slave_max_allowed_packet", blocks(1 << 30, 1024, 1 << 30, 1024)).acts(Statement).admin(Privilege::ReplicationSlaveAdmin).doc("Largest event that a replica accepts.").unit("bytes");
    SlaveExecMode = Setting::global("slave_exec_mode", word(0, &["STRICT", "IDEMPOTENT"])).acts(Statement).admin(Privilege::ReplicationSlaveAdmin).doc("Whether missing or duplicate rows stop a replica.");
    SlaveRunTriggersForRbr = Setting::global("slave_run_triggers_for_rbr", word(0, &["NO", "YES", "LOGGING", "ENFORCE"])).acts(Statement).admin(Privilege::ReplicationSlaveAdmin).doc("Whether a replica runs the triggers of its tables for row events. YES and LOGGING: if the tables have no triggers on the source. ENFORCE: always. The binary log of the replica has their changes in each case, as in MariaDB.");
    SlaveSkipErrors = Setting::global("slave_skip_errors", text("OFF")).read_only().doc("Errors that do not stop a replica.");
    LogSlaveUpdates = Setting::global("log_slave_updates", flag(false)).read_only().doc("Write replicated changes to this server's binary log.");
    RelayLog = Setting::global("relay_log", path("")).read_only().doc("Base name of relay log files.");
    RelayLogRecovery = Setting::inert("relay_log_recovery", flag(false), REPLICA).admin(Privilege::ReplicationSlaveAdmin).doc("Fetch the relay logs again after a crash.");
    SyncRelayLog = Setting::inert("sync_relay_log", num(10_000, 0, U32), REPLICA).admin(Privilege::ReplicationSlaveAdmin).doc("Events between flushes of the relay log.");
    SyncMasterInfo = Setting::inert("sync_master_info", num(10_000, 0, U32), REPLICA).admin(Privilege::ReplicationSlaveAdmin).doc("Events between flushes of master.info.");
    ReplicateAnnotateRowEvents = Setting::global("replicate_annotate_row_events", flag(true)).read_only().doc("Ask the source for statement texts.");
    ReportHost = Setting::global("report_host", path("")).read_only().doc("Host name to report to a source.");
    SkipSlaveStart = Setting::global("skip_slave_start", flag(false)).read_only().hidden().doc("Do not start replication when the server starts.");
    SkipReplication = Setting::session("skip_replication", flag(false)).acts(Statement).doc("Mark the session's events so that replicas may skip them.");
    SkipParallelReplication = Setting::session("skip_parallel_replication", flag(false)).acts(Statement).doc("Mark the session's transactions so that replicas apply them alone.");
    PseudoSlaveMode = Setting::session("pseudo_slave_mode", flag(false)).doc("The session replays the output of mariadb-binlog.").no_effect("every session can replay the output of mariadb-binlog");

    // --- Storage
    DefaultStorageEngine = Setting::both("default_storage_engine", text("InnoDB")).acts(Statement).doc("Engine of CREATE TABLE without ENGINE.");
    StorageEngine = Setting::both("storage_engine", text("InnoDB")).doc("Old name of default_storage_engine.").alias(VarId::DefaultStorageEngine);
    DefaultTmpStorageEngine = Setting::both("default_tmp_storage_engine", NULL_TEXT).doc("Engine of CREATE TEMPORARY TABLE without ENGINE.").no_effect("temporary tables use the default engine");
    EnforceStorageEngine = Setting::both("enforce_storage_engine", NULL_TEXT).session_super().doc("The only engine that CREATE TABLE may use.").no_effect("one engine is offered");
    RocksdbBlockCacheSize = Setting::global("rocksdb_block_cache_size", blocks(512 << 20, 1 << 20, 1 << 44, 1024)).read_only().doc("Memory for blocks of data files.").unit("bytes");
    RocksdbWriteBufferSize = Setting::global("rocksdb_write_buffer_size", blocks(16 << 20, 1 << 20, 1 << 40, 1024)).read_only().doc("Amount of changes in memory that starts a checkpoint of the engine.").unit("bytes");
    RocksdbMaxBackgroundJobs = Setting::global("rocksdb_max_background_jobs", num(2, 1, 64)).read_only().doc("Threads for flushes and compactions.");
    InnodbLockWaitTimeout = Setting::both("innodb_lock_wait_timeout", num(50, 0, 100_000_000)).acts(Statement).doc("Longest wait for a row lock. Afterwards the statement fails with error 1205.").unit("seconds");
    LockWaitTimeout = Setting::both("lock_wait_timeout", num(86_400, 0, YEAR)).acts(Statement).doc("Longest wait for a metadata lock. Afterwards the statement fails with error 1205.").unit("seconds");
    InnodbAutoincLockMode = Setting::inert("innodb_autoinc_lock_mode", num(1, 0, 2), "numbers are handed out without a table lock").read_only().doc("How AUTO_INCREMENT values are locked.");
    InnodbRollbackOnTimeout = Setting::inert("innodb_rollback_on_timeout", flag(false), "a lock wait timeout rolls back the statement").read_only().doc("A lock wait timeout rolls back the transaction.");
    InnodbForcePrimaryKey = Setting::global("innodb_force_primary_key", flag(false)).acts(Statement).doc("Require a primary key, or a unique key without NULL, in CREATE and ALTER TABLE.");
    InnodbPrintAllDeadlocks = Setting::global("innodb_print_all_deadlocks", flag(false)).acts(Statement).doc("Write every deadlock to the error log, as SHOW ENGINE INNODB STATUS shows the last one.");
    InnodbSnapshotIsolation = Setting::both("innodb_snapshot_isolation", flag(false)).acts(Statement).doc("Locking reads and writes fail with error 1020 if the row was changed after the transaction's read view was created.");
    InnodbStrictMode = Setting::both("innodb_strict_mode", flag(true)).acts(Statement).doc("Inconsistent table options are an error, not a warning.");
    InnodbCompressionAlgorithm = Setting::global("innodb_compression_algorithm", word(1, &["none", "zlib"])).acts(Global).doc("Compression of pages that are written later, for tables with PAGE_COMPRESSED.");
    InnodbCompressionLevel = Setting::global("innodb_compression_level", num(6, 0, 9)).acts(Global).doc("Compression level of zlib for tables without PAGE_COMPRESSION_LEVEL.");
    InnodbCompressionDefault = Setting::both("innodb_compression_default", flag(false)).acts(Statement).doc("Create tables with PAGE_COMPRESSED unless CREATE TABLE says otherwise.");
    InnodbFilePerTable = Setting::inert("innodb_file_per_table", flag(true), INNODB).doc("One file per table.");
    InnodbBufferPoolSize = Setting::global("innodb_buffer_pool_size", blocks(128 << 20, 2 << 20, u64::MAX, 1 << 20)).acts(Global).doc("Size of the page cache of InnoDB tables.").unit("bytes");
    InnodbBufferPoolDumpAtShutdown = Setting::global("innodb_buffer_pool_dump_at_shutdown", flag(true)).acts(Statement).doc("Save the list of the pages in the buffer pool at a shutdown.");
    InnodbBufferPoolDumpNow = Setting::global("innodb_buffer_pool_dump_now", flag(false)).acts(Global).doc("ON: save the list of the pages in the buffer pool now. The value stays OFF.");
    InnodbBufferPoolDumpPct = Setting::global("innodb_buffer_pool_dump_pct", num(25, 1, 100)).acts(Statement).doc("Percentage of the pages to save, the most recently used first.").unit("percent");
    InnodbBufferPoolFilename = Setting::global("innodb_buffer_pool_filename", text("ib_buffer_pool")).read_only().doc("File with the list of pages, in the data directory. The format is not MariaDB's; a list of MariaDB is ignored.");
    InnodbBufferPoolLoadAbort = Setting::global("innodb_buffer_pool_load_abort", flag(false)).acts(Global).doc("ON: stop reading the saved pages. The value stays OFF.");
    InnodbBufferPoolLoadAtStartup = Setting::global("innodb_buffer_pool_load_at_startup", flag(true)).read_only().doc("Read the saved pages after a start, while clients are served.");
    InnodbBufferPoolLoadNow = Setting::global("innodb_buffer_pool_load_now", flag(false)).acts(Global).doc("ON: read the saved pages now. The value stays OFF.");
    InnodbRollbackSegments = Setting::global("innodb_rollback_segments", num(8, 1, 128)).acts(Global).doc("Number of rollback segments for new transactions.");
    InnodbUndoLogs = Setting::global("innodb_undo_logs", num(8, 1, 128)).doc("Old name of innodb_rollback_segments.").alias(VarId::InnodbRollbackSegments);
    InnodbBufferPoolInstances = Setting::inert("innodb_buffer_pool_instances", num(1, 0, 64), INNODB).read_only().hidden().doc("Parts of InnoDB's page cache.");
    InnodbLogFileSize = Setting::inert("innodb_log_file_size", blocks(96 << 20, 1 << 20, u64::MAX, 4096), INNODB).doc("Size of InnoDB's redo log.").unit("bytes");
    InnodbLogFilesInGroup = Setting::inert("innodb_log_files_in_group", num(1, 1, 100), INNODB).read_only().hidden().doc("Files of InnoDB's redo log.");
    InnodbLogBufferSize = Setting::inert("innodb_log_buffer_size", blocks(16 << 20, 1 << 18, 1 << 31, 4096), INNODB).read_only().doc("InnoDB's log buffer.").unit("bytes");
    InnodbLogGroupHomeDir = Setting::inert("innodb_log_group_home_dir", path("./"), NOT_DONE).read_only().doc("Directory of InnoDB's redo log.");
    InnodbDataHomeDir = Setting::inert("innodb_data_home_dir", path(""), NOT_DONE).read_only().doc("Directory of InnoDB's system tablespace.");
    InnodbDataFilePath = Setting::inert("innodb_data_file_path", text("ibdata1:12M:autoextend"), INNODB).read_only().doc("Files of InnoDB's system tablespace.");
    InnodbFlushMethod = Setting::inert("innodb_flush_method", word(0, &["O_DIRECT", "fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT_NO_FSYNC"]), INNODB).read_only().doc("How InnoDB writes files.");
    InnodbFlushNeighbors = Setting::inert("innodb_flush_neighbors", num(1, 0, 2), INNODB).doc("Write neighbouring pages together.");
    InnodbFlushLogAtTimeout = Setting::inert("innodb_flush_log_at_timeout", num(1, 0, 2700), INNODB).doc("Seconds between background flushes.").unit("seconds");
    InnodbIoCapacity = Setting::inert("innodb_io_capacity", num(200, 100, U32), INNODB).doc("Page writes per second in the background.");
    InnodbIoCapacityMax = Setting::inert("innodb_io_capacity_max", num(U32, 100, U32), INNODB).doc("Page writes per second under pressure.");
    InnodbReadIoThreads = Setting::inert("innodb_read_io_threads", num(4, 1, 64), INNODB).doc("Threads for page reads.");
    InnodbWriteIoThreads = Setting::inert("innodb_write_io_threads", num(4, 1, 64), INNODB).doc("Threads for page writes.");
    InnodbPurgeThreads = Setting::inert("innodb_purge_threads", num(4, 1, 32), INNODB).doc("Threads for purge.");
    InnodbThreadConcurrency = Setting::inert("innodb_thread_concurrency", num(0, 0, 1000), INNODB).hidden().doc("Threads inside InnoDB.");
    InnodbDoublewrite = Setting::inert("innodb_doublewrite", flag(true), INNODB).read_only().doc("Torn page protection of InnoDB.");
    InnodbPageSize = Setting::inert("innodb_page_size", num(16_384, 4096, 65_536), INNODB).read_only().doc("InnoDB's page size.").unit("bytes");
    InnodbOpenFiles = Setting::inert("innodb_open_files", num(2000, 0, i64::MAX as u64), INNODB).read_only().doc("Open files of InnoDB.");
    InnodbAdaptiveHashIndex = Setting::inert("innodb_adaptive_hash_index", flag(false), INNODB).doc("Hash index on hot pages.");
    InnodbStatsOnMetadata = Setting::inert("innodb_stats_on_metadata", flag(false), INNODB).doc("Refresh statistics when metadata is read.");
    InnodbDefaultRowFormat = Setting::inert("innodb_default_row_format", word(2, &["redundant", "compact", "dynamic"]), INNODB).doc("Row format of InnoDB tables.");
    InnodbFileFormat = Setting::inert("innodb_file_format", text("Barracuda"), INNODB).hidden().doc("File format of InnoDB tables.");
    InnodbLargePrefix = Setting::inert("innodb_large_prefix", flag(true), INNODB).hidden().doc("Long index prefixes in InnoDB.");
    InnodbUndoTablespaces = Setting::inert("innodb_undo_tablespaces", num(0, 0, 127), INNODB).read_only().doc("InnoDB undo files.");
    InnodbTempDataFilePath = Setting::inert("innodb_temp_data_file_path", text("ibtmp1:12M:autoextend"), INNODB).read_only().doc("InnoDB's temporary tablespace.");
    InnodbSortBufferSize = Setting::inert("innodb_sort_buffer_size", num(1 << 20, 65_536, 64 << 20), INNODB).read_only().doc("Buffer of InnoDB index creation.").unit("bytes");
    KeyBufferSize = Setting::inert("key_buffer_size", blocks(128 << 20, 0, u64::MAX, 4096), MYISAM).doc("MyISAM's index cache.").unit("bytes");
    MyisamSortBufferSize = Setting::inert("myisam_sort_buffer_size", num(134_216_704, 4096, u64::MAX), MYISAM).doc("Buffer of MyISAM index creation.").unit("bytes");
    MyisamRecoverOptions = Setting::inert("myisam_recover_options", text("BACKUP,QUICK"), MYISAM).read_only().doc("Repair of MyISAM tables.");
    AriaPagecacheBufferSize = Setting::inert("aria_pagecache_buffer_size", num(128 << 20, 0, u64::MAX), MYISAM).read_only().doc("Aria's page cache.").unit("bytes");
    ConcurrentInsert = Setting::inert("concurrent_insert", word(1, &["NEVER", "AUTO", "ALWAYS"]), MYISAM).doc("MyISAM inserts during reads.");
    DelayKeyWrite = Setting::inert("delay_key_write", word(0, &["ON", "OFF", "ALL"]), MYISAM).doc("MyISAM index writes.");
    BulkInsertBufferSize = Setting::both("bulk_insert_buffer_size", num(8 << 20, 0, u64::MAX)).no_effect(MYISAM).doc("Buffer of MyISAM bulk inserts.").unit("bytes");
    ForeignKeyChecks = Setting::both("foreign_key_checks", flag(true)).acts(Statement).no_option().doc("Check foreign keys.");
    UniqueChecks = Setting::both("unique_checks", flag(true)).no_option().no_effect("unique keys are always checked").doc("Check unique keys of secondary indexes.");
    CheckConstraintChecks = Setting::both("check_constraint_checks", flag(true)).acts(Statement).no_option().doc("Check CHECK constraints.");
    ReadOnly = Setting::global("read_only", flag(false)).acts(Statement).only(Privilege::ReadOnlyAdmin).doc("Reject changes by accounts without the privilege READ ONLY ADMIN.");
    TransactionIsolation = Setting::both("transaction_isolation", word(2, ISOLATION)).acts(Session).doc("Isolation level of new transactions.");
    TxIsolation = Setting::both("tx_isolation", word(2, ISOLATION)).no_option().alias(VarId::TransactionIsolation).doc("Old name of transaction_isolation.");
    TransactionReadOnly = Setting::both("transaction_read_only", flag(false)).acts(Session).doc("New transactions are read-only.");
    TxReadOnly = Setting::both("tx_read_only", flag(false)).no_option().alias(VarId::TransactionReadOnly).doc("Old name of transaction_read_only.");
    CompletionType = Setting::both("completion_type", word(0, &["NO_CHAIN", "CHAIN", "RELEASE"])).acts(Statement).doc("What COMMIT and ROLLBACK also do: CHAIN starts a new transaction, RELEASE disconnects.");
    Autocommit = Setting::both("autocommit", flag(true)).acts(Session).doc("Commit each statement that is not part of an explicit transaction.");
    InTransaction = Setting::session("in_transaction", num(0, 0, 1)).read_only().computed().doc("Whether the session is in a transaction.");
    TransactionAllocBlockSize = Setting::both("transaction_alloc_block_size", num(8192, 1024, 128 << 20)).no_effect(BUFFERS).doc("Memory unit of a transaction.").unit("bytes");
    TransactionPreallocSize = Setting::both("transaction_prealloc_size", num(4096, 1024, 128 << 20)).no_effect(BUFFERS).doc("Memory of a transaction.").unit("bytes");
    PerformanceSchema = Setting::global("performance_schema", flag(true)).read_only().doc("Collect statistics of statements by digest. OFF: count statements by kind only. MariaDB's default is OFF.");

    // --- SQL
    SqlMode = Setting::both("sql_mode", set(SQL_MODE_DEFAULT, SQL_MODES)).acts(Plan).doc("Strictness and dialect of SQL.");
    OldMode = Setting::both("old_mode", set(8, &["NO_DUP_KEY_WARNINGS_WITH_IGNORE", "NO_PROGRESS_INFO", "ZERO_DATE_TIME_CAST", "UTF8_IS_UTF8MB3", "IGNORE_INDEX_ONLY_FOR_JOIN", "COMPAT_5_1_CHECKSUM"])).doc("Behaviour of older versions of MariaDB.").no_effect("as with the default");
    SqlNotes = Setting::both("sql_notes", flag(true)).acts(Statement).no_option().doc("Count notes as warnings.");
    SqlWarnings = Setting::both("sql_warnings", flag(false)).no_option().doc("Single-row INSERT says when there are warnings.").no_effect("as with OFF");
    SqlSafeUpdates = Setting::both("sql_safe_updates", flag(false)).acts(Plan).doc("Reject DELETE without a key in WHERE, and UPDATE without a key or a LIMIT.");
    SqlAutoIsNull = Setting::both("sql_auto_is_null", flag(false)).no_option().no_effect("`IS NULL` never finds the last row").doc("`WHERE auto_increment IS NULL` finds the last row.");
    SqlBigSelects = Setting::both("sql_big_selects", flag(true)).no_option().no_effect("statements are not rejected for their size").doc("Allow SELECTs that read more than max_join_size rows.");
    SqlBufferResult = Setting::both("sql_buffer_result", flag(false)).no_option().no_effect(BUFFERS).doc("Store results in temporary tables before they are sent.");
    SqlIfExists = Setting::both("sql_if_exists", flag(false)).no_option().no_effect("IF EXISTS must be written").doc("ALTER, RENAME and DROP imply IF EXISTS.");
    SqlLogOff = Setting::both("sql_log_off", flag(false)).acts(Statement).session_super().no_option().doc("Do not write the session's statements to the general log.");
    SqlQuoteShowCreate = Setting::both("sql_quote_show_create", flag(true)).acts(Statement).no_option().doc("Quote names in SHOW CREATE.");
    SqlSelectLimit = Setting::both("sql_select_limit", num(u64::MAX, 0, u64::MAX)).acts(Statement).no_option().doc("Maximum number of rows of a SELECT without LIMIT.");
    MaxJoinSize = Setting::both("max_join_size", num(u64::MAX, 1, u64::MAX)).no_effect("statements are not rejected for their size").doc("Maximum number of rows that a SELECT may read.");
    AutoIncrementIncrement = Setting::both("auto_increment_increment", num(1, 1, 65_535)).acts(Statement).doc("Step of AUTO_INCREMENT values.");
    AutoIncrementOffset = Setting::both("auto_increment_offset", num(1, 1, 65_535)).acts(Statement).doc("First AUTO_INCREMENT value.");
    LastInsertId = Setting::session("last_insert_id", num(0, 0, u64::MAX)).acts(Session).computed().doc("First AUTO_INCREMENT value of the last INSERT.");
    Identity = Setting::session("identity", num(0, 0, u64::MAX)).computed().alias(VarId::LastInsertId).doc("Another name of last_insert_id.");
    InsertId = Setting::session("insert_id", num(0, 0, u64::MAX)).acts(Session).computed().doc("AUTO_INCREMENT value of the next INSERT.");
    Timestamp = Setting::session("timestamp", real(0.0, 0.0, 2_147_483_647.0)).acts(Session).computed().doc("The session's clock. 0: the real one.").unit("seconds");
    PseudoThreadId = Setting::session("pseudo_thread_id", num(0, 0, u64::MAX)).acts(Statement).session_admin(Privilege::BinlogReplay).computed().doc("Connection number in the events of this session.");
    RandSeed1 = Setting::session("rand_seed1", num(0, 0, u64::MAX)).doc("State of RAND().").no_effect("RAND() without a seed is not repeatable");
    RandSeed2 = Setting::session("rand_seed2", num(0, 0, u64::MAX)).doc("State of RAND().").no_effect("RAND() without a seed is not repeatable");
    ErrorCount = Setting::session("error_count", num(0, 0, u64::MAX)).read_only().computed().doc("Errors of the last statement.");
    WarningCount = Setting::session("warning_count", num(0, 0, u64::MAX)).read_only().computed().doc("Conditions of the last statement.");
    MaxErrorCount = Setting::both("max_error_count", num(64, 0, 65_535)).acts(Statement).doc("Maximum number of conditions kept for SHOW WARNINGS.");
    NoteVerbosity = Setting::both("note_verbosity", set(5, &["basic", "unusable_keys", "explain"])).no_effect("all notes are sent").doc("Which notes are sent.");
    GroupConcatMaxLen = Setting::both("group_concat_max_len", num(1 << 20, 4, 1 << 30)).acts(Plan).doc("Longest result of GROUP_CONCAT.").unit("bytes");
    DivPrecisionIncrement = Setting::both("div_precision_increment", num(4, 0, 38)).acts(Plan).doc("Number of digits that `/` adds to the result.");
    DefaultWeekFormat = Setting::both("default_week_format", num(0, 0, 7)).acts(Plan).doc("Mode of WEEK().");
    MaxStatementTime = Setting::both("max_statement_time", real(0.0, 0.0, YEAR as f64)).acts(Statement).doc("A statement that runs longer is stopped. 0: no limit.").unit("seconds");
    MaxSessionMemUsed = Setting::both("max_session_mem_used", num(i64::MAX as u64, 8192, u64::MAX)).acts(Statement).doc("Memory limit for a session's statements, transaction and user variables, and separately for its prepared statements. A statement that exceeds it fails with error 1290.").unit("bytes");
    MaxSortLength = Setting::both("max_sort_length", num(1024, 64, 8 << 20)).no_effect("whole values are compared").doc("Number of bytes of a value that ORDER BY compares.").unit("bytes");
    MaxRecursiveIterations = Setting::both("max_recursive_iterations", num(1000, 0, U32)).acts(Statement).doc("Maximum number of iterations of a recursive CTE.");
    MaxSpRecursionDepth = Setting::both("max_sp_recursion_depth", num(0, 0, 255)).acts(Statement).doc("Maximum depth of recursive calls of a procedure.");
    MaxUserConnections = Setting::both("max_user_connections", num(0, 0, i32::MAX as u64)).acts(Statement).session_read_only().doc("Maximum number of connections of one account. Administrators have no limit. 0: no limit; no account can have one.");
    MaxPreparedStmtCount = Setting::global("max_prepared_stmt_count", num(16_382, 0, U32)).acts(Statement).doc("Maximum number of prepared statements of all sessions.");
    MaxDigestLength = Setting::global("max_digest_length", num(1024, 0, 1 << 20)).read_only().doc("Maximum length of a normalized statement, in bytes of its tokens: two for a token, four and its length for an identifier. Longer ones are cut.").unit("bytes");
    ExplicitDefaultsForTimestamp = Setting::both("explicit_defaults_for_timestamp", flag(true)).doc("ON: TIMESTAMP columns are like others. OFF: they have MariaDB's old implicit defaults.").no_effect("as with ON");
    TimeZone = Setting::both("time_zone", text("SYSTEM")).acts(Plan).no_option().doc("Time zone of the session. The option is --default-time-zone.");
    SystemTimeZone = Setting::fact("system_time_zone", text("UTC")).doc("Time zone of the machine.");
    LcTimeNames = Setting::both("lc_time_names", word(0, LOCALES)).acts(Plan).doc("Language of the names of days and months.");
    LcMessages = Setting::both("lc_messages", word(0, &["en_US"])).acts(Statement).doc("Language of messages.");
    LcMessagesDir = Setting::inert("lc_messages_dir", path(""), "messages are built in").read_only().doc("Directory of messages.");
    CharacterSetServer = Setting::both("character_set_server", word(place("utf8mb4", CHARSETS), CHARSETS)).acts(Statement).doc("Character set of new databases. MariaDB's default is latin1, Debian's utf8mb4.");
    CollationServer = Setting::both("collation_server", word(place("utf8mb4_general_ci", COLLATIONS), COLLATIONS)).acts(Statement).doc("Collation of new databases.");
    CharacterSetClient = Setting::both("character_set_client", word(place("utf8mb4", CHARSETS), CHARSETS)).acts(Plan).no_option().doc("Character set of statements.");
    CharacterSetConnection = Setting::both("character_set_connection", word(place("utf8mb4", CHARSETS), CHARSETS)).acts(Statement).no_option().doc("Character set of literals.");
    CharacterSetResults = Setting::both("character_set_results", Kind::Text { default: Some("utf8mb4") }).acts(Statement).no_option().doc("Character set of results. NULL: no conversion.");
    CharacterSetDatabase = Setting::both("character_set_database", word(place("utf8mb4", CHARSETS), CHARSETS)).acts(Statement).no_option().doc("Character set of the current database.");
    CharacterSetFilesystem = Setting::both("character_set_filesystem", word(place("binary", CHARSETS), CHARSETS)).acts(Statement).doc("Character set of file names.");
    CharacterSetSystem = Setting::fact("character_set_system", word(place("utf8mb3", CHARSETS), CHARSETS)).doc("Character set of names.");
    CharacterSetsDir = Setting::inert("character_sets_dir", path(""), "character sets are built in").read_only().doc("Directory of character sets.");
    CollationConnection = Setting::both("collation_connection", word(place("utf8mb4_general_ci", COLLATIONS), COLLATIONS)).acts(Plan).no_option().doc("Collation of literals.");
    CollationDatabase = Setting::both("collation_database", word(place("utf8mb4_general_ci", COLLATIONS), COLLATIONS)).acts(Statement).no_option().doc("Collation of the current database.");
    LowerCaseTableNames = Setting::global("lower_case_table_names", num(0, 0, 2)).read_only().refused("names of tables are case-sensitive").doc("Always 0: names of tables are case-sensitive.");
    LowerCaseFileSystem = Setting::fact("lower_case_file_system", flag(false)).doc("Whether the file system ignores case.");
    DatetimeFormat = Setting::fact("datetime_format", text("%Y-%m-%d %H:%i:%s")).doc("Unused, as in MariaDB.");
    DateFormat = Setting::fact("date_format", text("%Y-%m-%d")).doc("Unused, as in MariaDB.");
    TimeFormat = Setting::fact("time_format", text("%H:%i:%s")).doc("Unused, as in MariaDB.");
    EventScheduler = Setting::global("event_scheduler", word(0, &["OFF", "ON", "DISABLED"])).acts(Statement).doc("Run events. DISABLED is possible only at the start.");
    InnodbInstantAlterColumnAllowed = Setting::global("innodb_instant_alter_column_allowed", word(2, &["never", "add_last", "add_drop_reorder"])).acts(Statement).doc("Which column changes leave the rows as they are: none; columns added at the end; or columns added anywhere, dropped or moved.");
    InnodbOnlineAlterLogMaxSize = Setting::global("innodb_online_alter_log_max_size", num(134217728, 65536, 18446744073709551615)).acts(Statement).doc("Space for the changes that other sessions make during an index build. If they exceed it, the build fails.");
    AlterAlgorithm = Setting::both("alter_algorithm", word(0, ALTER)).no_effect("the server chooses the cheapest way").doc("How ALTER TABLE works.");
    OldAlterTable = Setting::both("old_alter_table", word(0, ALTER)).no_effect("the server chooses the cheapest way").alias(VarId::AlterAlgorithm).doc("Old name of alter_algorithm.");
    Profiling = Setting::both("profiling", flag(false)).acts(Statement).no_option().doc("Record the durations of statements for SHOW PROFILES.");
    ProfilingHistorySize = Setting::both("profiling_history_size", num(15, 0, 100)).acts(Statement).doc("Number of statements that SHOW PROFILES shows.");
    OptimizerSwitch = Setting::both("optimizer_switch", text("index_merge=off,index_condition_pushdown=on,mrr=off,derived_merge=on,semijoin=on,join_cache_hashed=on")).no_effect(OPTIMIZER).doc("Strategies of the optimizer.");
    OptimizerSearchDepth = Setting::both("optimizer_search_depth", num(62, 0, 62)).no_effect(OPTIMIZER).doc("Tables whose order is searched at once.");
    OptimizerPruneLevel = Setting::both("optimizer_prune_level", num(2, 0, 2)).no_effect(OPTIMIZER).doc("Leave out unlikely plans.");
    OptimizerTrace = Setting::both("optimizer_trace", word(0, &["enabled=off", "enabled=on"])).acts(Plan).doc("Keep the decisions of the planner about a statement for information_schema.OPTIMIZER_TRACE.");
    OptimizerTraceMaxMemSize = Setting::both("optimizer_trace_max_mem_size", num(1048576, 0, 18446744073709551615)).acts(Statement).doc("Maximum length of the text in information_schema.OPTIMIZER_TRACE; at most 16 MiB.").unit("bytes");
    OptimizerUseConditionSelectivity = Setting::both("optimizer_use_condition_selectivity", num(4, 1, 5)).no_effect(OPTIMIZER).doc("How conditions are estimated.");
    UseStatTables = Setting::both("use_stat_tables", word(4, &["NEVER", "COMPLEMENTARY", "PREFERABLY", "COMPLEMENTARY_FOR_QUERIES", "PREFERABLY_FOR_QUERIES"])).no_effect(OPTIMIZER).doc("Use tables of statistics.");
    EqRangeIndexDiveLimit = Setting::both("eq_range_index_dive_limit", num(200, 0, U32)).no_effect(OPTIMIZER).doc("Ranges that are estimated one by one.");
    JoinBufferSize = Setting::both("join_buffer_size", num(262_144, 128, u64::MAX)).acts(Statement).doc("Memory of a join before it uses files in tmpdir. Applies if it is larger than tmp_memory_table_size.").unit("bytes");
    SortBufferSize = Setting::both("sort_buffer_size", num(2 << 20, 1024, u64::MAX)).acts(Statement).doc("Memory of a sort before it uses files in tmpdir.").unit("bytes");
    ReadBufferSize = Setting::both("read_buffer_size", num(131_072, 8192, i32::MAX as u64)).no_effect(BUFFERS).doc("Buffer of a table scan.").unit("bytes");
    ReadRndBufferSize = Setting::both("read_rnd_buffer_size", num(262_144, 1, i32::MAX as u64)).no_effect(BUFFERS).doc("Buffer of reading rows after a sort.").unit("bytes");
    TmpTableSize = Setting::both("tmp_table_size", num(16 << 20, 0, u64::MAX)).acts(Statement).doc("Memory for the values of a session's temporary tables; further values are stored in a file, keys stay in memory. Also the memory of a grouping, DISTINCT, set operation, join or derived table before it uses files in tmpdir.").unit("bytes");
    TmpMemoryTableSize = Setting::both("tmp_memory_table_size", num(16 << 20, 0, u64::MAX)).alias(VarId::TmpTableSize).doc("MariaDB's other name of tmp_table_size.").unit("bytes");
    TmpDiskTableSize = Setting::both("tmp_disk_table_size", num(u64::MAX, 1024, u64::MAX)).acts(Statement).doc("Maximum size of the file of a session's temporary tables. A statement that exceeds it fails with error 1021.").unit("bytes");
    MaxHeapTableSize = Setting::both("max_heap_table_size", num(16 << 20, 16_384, u64::MAX)).no_effect(BUFFERS).doc("Size of MEMORY tables.").unit("bytes");
    QueryAllocBlockSize = Setting::both("query_alloc_block_size", num(32_768, 1024, U32)).no_effect(BUFFERS).doc("Memory unit of a statement.").unit("bytes");
    QueryPreallocSize = Setting::both("query_prealloc_size", num(32_768, 1024, U32)).no_effect(BUFFERS).doc("Memory of a statement.").unit("bytes");
    PreloadBufferSize = Setting::both("preload_buffer_size", num(32_768, 1024, 1 << 30)).no_effect(MYISAM).doc("Buffer of LOAD INDEX.").unit("bytes");
    QueryCacheType = Setting::both("query_cache_type", word(0, ON_OFF_DEMAND)).no_effect(QUERY_CACHE).doc("Use of the query cache.");
    QueryCacheSize = Setting::inert("query_cache_size", num(0, 0, u64::MAX), QUERY_CACHE).doc("Size of the query cache.").unit("bytes");
    QueryCacheLimit = Setting::inert("query_cache_limit", num(1 << 20, 0, U32), QUERY_CACHE).doc("Largest cached result.").unit("bytes");
    QueryCacheMinResUnit = Setting::inert("query_cache_min_res_unit", num(4096, 0, U32), QUERY_CACHE).doc("Unit of the query cache.").unit("bytes");
    TableOpenCache = Setting::inert("table_open_cache", num(2000, 10, 1 << 20), "tables are shared by all sessions").doc("Open tables.");
    TableDefinitionCache = Setting::inert("table_definition_cache", num(400, 400, 2 << 20), "all definitions are in memory").doc("Table definitions in memory.");
    LocalInfile = Setting::global("local_infile", flag(true)).acts(Statement).doc("Allow LOAD DATA LOCAL.");
    SecureFilePriv = Setting::global("secure_file_priv", Kind::Path { default: None }).read_only().doc("The only directory that LOAD DATA INFILE and SELECT INTO OUTFILE may use. Empty: any.");
    SlowQueryLog = Setting::both("slow_query_log", flag(false)).acts(Statement).doc("Log statements that take longer than long_query_time.");
    LogSlowQuery = Setting::both("log_slow_query", flag(false)).alias(VarId::SlowQueryLog).doc("Newer name of slow_query_log.");
    SlowQueryLogFile = Setting::global("slow_query_log_file", path("")).acts(Global).doc("File of the slow query log, relative to the data directory. Empty: the host's name with the suffix -slow.log.");
    LogSlowQueryFile = Setting::global("log_slow_query_file", path("")).alias(VarId::SlowQueryLogFile).doc("Newer name of slow_query_log_file.");
    LogSlowQueryTime = Setting::both("log_slow_query_time", real(10.0, 0.0, YEAR as f64)).alias(VarId::LongQueryTime).unit("seconds").doc("Newer name of long_query_time.");
    LongQueryTime = Setting::both("long_query_time", real(10.0, 0.0, YEAR as f64)).acts(Statement).doc("A statement that takes longer is slow.").unit("seconds");
    LogQueriesNotUsingIndexes = Setting::both("log_queries_not_using_indexes", flag(false)).acts(Statement).doc("Log statements that read a whole table as slow.");
    LogSlowVerbosity = Setting::both("log_slow_verbosity", set(0, &["innodb", "query_plan", "explain", "engine", "warnings", "full"])).acts(Statement).doc("What an entry of the slow query log also contains: QUERY_PLAN, EXPLAIN (with measured rows, as in ANALYZE), WARNINGS, or FULL for all. INNODB and ENGINE add nothing.");
    LogSlowMaxWarnings = Setting::both("log_slow_max_warnings", num(10, 0, 1000)).acts(Statement).doc("Maximum number of warnings in an entry of the slow query log, with log_slow_verbosity=WARNINGS.");
    GeneralLog = Setting::global("general_log", flag(false)).acts(Statement).doc("Log all statements and connections.");
    GeneralLogFile = Setting::global("general_log_file", path("")).acts(Global).doc("File of the general log, relative to the data directory. Empty: the host's name with the suffix .log.");
    LogOutput = Setting::global("log_output", set(2, &["NONE", "FILE", "TABLE"])).acts(Statement).doc("Destination of the slow query log and the general log. TABLE: mysql.slow_log and mysql.general_log, which keep the newest entries in memory. NONE: neither log is written.");
    LogWarnings = Setting::both("log_warnings", num(2, 0, U32)).doc("Verbosity of the error log.").no_effect("the error log is short");
    ProgressReportTime = Setting::both("progress_report_time", num(5, 0, U32)).no_effect("progress is in SHOW PROCESSLIST").doc("Seconds between progress reports to the client.").unit("seconds");

    // --- Connections
    Port = Setting::global("port", num(3306, 0, 65_535)).read_only().doc("TCP port.");
    BindAddress = Setting::global("bind_address", Kind::Text { default: None }).read_only().doc("Addresses to listen on, separated by commas. Unset or *: all.");
    MetricsPort = Setting::global("metrics_port", num(0, 0, 65_535)).read_only()
        .doc("TCP port of the console and of /metrics for Prometheus, over HTTP and HTTPS. 0: off.");
    MetricsBindAddress = Setting::global("metrics_bind_address", text("127.0.0.1")).read_only()
        .doc("Address or host name that metrics_port listens on.");
    MetricsLogin = Setting::global("metrics_login", flag(true)).read_only()
        .doc("Require a login for /metrics and the figures of the console from other addresses than loopback: by account, or by the token of metrics_token_file. OFF: any client that can connect can read all counters. Statements, sessions, settings and KILL always require a login by account.");
    MetricsTokenFile = Setting::global("metrics_token_file", path("")).read_only()
        .doc("File with the token that a scraper presents as Authorization: Bearer, relative to the data directory. It is read at each request. Empty: there is no token.");
    MetricsDigests = Setting::global("metrics_digests", num(0, 0, 50)).acts(Statement)
        .doc("Number of statements of which /metrics has figures of their own, labelled by DIGEST: those with most time. 0: none. Each adds six series.");
    MetricsHosts = Setting::global("metrics_hosts", text("")).read_only()
        .doc("Host names under which metrics_port may be addressed, separated by commas, in addition to localhost and IP addresses. A request for another host is rejected with status 421.");
    MetricsHistory = Setting::global("metrics_history", flag(true)).read_only()
        .doc("While metrics_port is set: record the figures of the console for 24 hours, in memory and in the file metrics_history.bin of the data directory.");
    Socket = Setting::global("socket", path("/run/mysqld/mysqld.sock")).read_only().doc("Unix socket, relative to the data directory.");
    SkipNetworking = Setting::global("skip_networking", flag(false)).read_only().doc("Listen on the Unix socket only.");
    SkipNameResolve = Setting::global("skip_name_resolve", flag(false)).read_only().doc("ON: accounts match addresses only, and 127.0.0.1 is not localhost. OFF: a loopback address is localhost; other names are never looked up.");
    SkipGrantTables = Setting::global("skip_grant_tables", flag(false)).read_only().doc("Every user may do everything.").no_effect("accounts are always checked");
    BackLog = Setting::global("back_log", num(1024, 0, 65_535)).read_only().doc("Connections the kernel queues. MariaDB's default is 80 or more.");
    MaxConnections = Setting::global("max_connections", num(151, 10, 100_000)).acts(Statement).admin(Privilege::ConnectionAdmin).doc("Maximum number of connections. One more is reserved for an administrator.");
    MaxConnectErrors = Setting::inert("max_connect_errors", num(100, 1, U32), "hosts are never blocked").admin(Privilege::ConnectionAdmin).doc("Failures until a host is blocked.");
    MaxDelayedThreads = Setting::both("max_delayed_threads", num(20, 0, 16_384)).no_effect("INSERT DELAYED is an ordinary INSERT").doc("Threads for INSERT DELAYED; played back binlogs set it.");
    SystemVersioningInsertHistory = Setting::both("system_versioning_insert_history", flag(false)).no_effect("there are no system-versioned tables").doc("Whether history rows may be inserted; played back binlogs set it.");
    ConnectTimeout = Setting::global("connect_timeout", num(10, 2, YEAR)).acts(Statement).admin(Privilege::ConnectionAdmin).doc("Time in which a client must log in.").unit("seconds");
    WaitTimeout = Setting::both("wait_timeout", num(28_800, 1, YEAR)).acts(Statement).doc("An idle connection is closed after this time.").unit("seconds");
    InteractiveTimeout = Setting::both("interactive_timeout", num(28_800, 1, YEAR)).acts(Statement).doc("wait_timeout of interactive clients.").unit("seconds");
    IdleTransactionTimeout = Setting::both("idle_transaction_timeout", num(0, 0, YEAR)).acts(Statement).doc("An idle connection with an open transaction is closed after this time. 0: never.").unit("seconds");
    IdleReadonlyTransactionTimeout = Setting::both("idle_readonly_transaction_timeout", num(0, 0, YEAR)).acts(Statement).doc("An idle connection whose transaction has only read is closed after this time, if idle_transaction_timeout is 0. 0: never.").unit("seconds");
    IdleWriteTransactionTimeout = Setting::both("idle_write_transaction_timeout", num(0, 0, YEAR)).acts(Statement).doc("An idle connection whose transaction has written is closed after this time, if idle_transaction_timeout is 0. 0: never.").unit("seconds");
    NetReadTimeout = Setting::both("net_read_timeout", num(30, 1, YEAR)).acts(Statement).doc("How long the server waits for the rest of a packet before it closes the connection.").unit("seconds");
    NetWriteTimeout = Setting::both("net_write_timeout", num(60, 1, YEAR)).acts(Statement).doc("How long the server waits for a client to read before it closes the connection.").unit("seconds");
    NetBufferLength = Setting::both("net_buffer_length", blocks(16_384, 1024, 1 << 20, 1024)).session_read_only().no_effect(BUFFERS).doc("Initial size of a connection's buffers.").unit("bytes");
    NetRetryCount = Setting::both("net_retry_count", num(10, 1, U32)).no_effect("reads are retried by epoll").doc("Retries of a read.");
    MaxAllowedPacket = Setting::both("max_allowed_packet", blocks(16 << 20, 1024, 1 << 30, 1024)).acts(Statement).session_read_only().doc("Largest statement or value.").unit("bytes");
    TcpNodelay = Setting::both("tcp_nodelay", flag(true)).no_effect("always on").doc("Send without delay.");
    TcpKeepaliveTime = Setting::global("tcp_keepalive_time", num(0, 0, 2_147_483)).doc("Idle time before the first keep-alive probe. 0: the operating system's.").unit("seconds").no_effect("the operating system's value applies");
    InitConnect = Setting::global("init_connect", text("")).acts(Statement).admin(Privilege::ConnectionAdmin).doc("A statement that the server runs first in every connection of an account without SUPER. If it fails, the connection is closed.");
    InitFile = Setting::global("init_file", path("")).read_only().doc("File of statements, separated by semicolons, that the server runs before it accepts connections, and at the end of --initialize. The first error is logged and ends it.");
    ThreadHandling = Setting::global("thread_handling", word(1, &["one-thread-per-connection", "pool-of-threads", "no-threads"])).read_only().doc("Always a thread pool.").no_effect(POOL);
    ThreadPoolSize = Setting::global("thread_pool_size", num(0, 0, 100_000)).admin(Privilege::ConnectionAdmin).read_only().doc("Number of workers that serve connections. 0: one for each processor, at least two, and one more while flushes take longer than 1 ms.");
    ThreadPoolMaxThreads = Setting::global("thread_pool_max_threads", num(1000, 1, 65_536)).acts(Global).admin(Privilege::ConnectionAdmin).doc("Maximum number of workers when many of them wait for slow clients or the disk.");
    ThreadPoolIdleTimeout = Setting::global("thread_pool_idle_timeout", num(60, 1, U32)).acts(Global).admin(Privilege::ConnectionAdmin).doc("An idle additional worker ends after this time.").unit("seconds");
    ThreadPoolStallLimit = Setting::global("thread_pool_stall_limit", num(100, 1, U32)).acts(Statement).admin(Privilege::ConnectionAdmin).doc("If a statement runs longer than this, another worker serves the other clients. MariaDB's default is 500.").unit("milliseconds");
    ThreadPoolSpinUs = Setting::global("thread_pool_spin_us", num(30, 0, 1000)).acts(Statement).admin(Privilege::ConnectionAdmin)
        .doc("How long a worker that serves one client polls for its next request before it sleeps. 0: it does not poll.").unit("microseconds");
    ThreadCacheSize = Setting::inert("thread_cache_size", num(256, 0, 16_384), POOL).doc("Threads that are kept.");
    ThreadStack = Setting::global("thread_stack", blocks(2 << 20, 128 << 10, 1 << 30, 1024)).read_only().doc("Stack that nested statements may use. Each worker and each statement that waits for a lock has a stack of this size, with a reserve and a guard page. MariaDB's default is 292K.").unit("bytes");
    ExtraPort = Setting::inert("extra_port", num(0, 0, 65_535), POOL).read_only().doc("Second port.");
    ExtraMaxConnections = Setting::inert("extra_max_connections", num(1, 1, 100_000), POOL).admin(Privilege::ConnectionAdmin).doc("Connections of the second port.");
    SecureAuth = Setting::inert("secure_auth", flag(true), "Cohort has no old password format").admin(Privilege::ConnectionAdmin).doc("Refuse old passwords.");
    OldPasswords = Setting::both("old_passwords", flag(false)).no_effect("Cohort has no old password format").doc("Make old passwords.");
    DefaultAuthenticationPlugin = Setting::fact("default_authentication_plugin", text("mysql_native_password")).hidden().doc("How clients log in.");
    RequireSecureTransport = Setting::global("require_secure_transport", flag(false)).acts(Statement).doc("Reject connections that use neither TLS nor the Unix socket.");
    Ssl = Setting::global("ssl", flag(true)).read_only().hidden().doc("Offer TLS.");
    SslCa = Setting::global("ssl_ca", path("")).read_only().doc("PEM file with the certificate authorities of clients' certificates.");
    SslCapath = Setting::global("ssl_capath", path("")).read_only().doc("Directory with files like that of ssl_ca.");
    SslCert = Setting::global("ssl_cert", path("")).read_only().doc("PEM file with the server's certificate and its chain. Without it the server generates a self-signed certificate. FLUSH SSL reads all files again.");
    SslKey = Setting::global("ssl_key", path("")).read_only().doc("PEM file with the certificate's private key, not encrypted. One file may contain both.");
    SslCrl = Setting::global("ssl_crl", path("")).read_only().doc("PEM file with revoked certificates of clients. It must contain a list of every authority.");
    SslCrlpath = Setting::global("ssl_crlpath", path("")).read_only().doc("Directory with files like that of ssl_crl.");
    SslCipher = Setting::global("ssl_cipher", text("")).read_only().doc("Cipher suites by OpenSSL's names, separated by colons. Empty: all that the server supports.");
    TlsVersion = Setting::global("tls_version", set(TLS_VERSIONS_DEFAULT, TLS_VERSIONS)).read_only().doc("TLS versions to offer. 1.0 and 1.1 are not supported.");
    SessionTrackSchema = Setting::both("session_track_schema", flag(true)).acts(Statement).doc("Report the current database to clients.");
    SessionTrackStateChange = Setting::both("session_track_state_change", flag(false)).acts(Statement).doc("Report changes of the session's state to clients.");
    SessionTrackSystemVariables = Setting::both("session_track_system_variables", text("autocommit,character_set_client,character_set_connection,character_set_results,time_zone")).acts(Statement).doc("Report changes of these variables to clients. `*`: all.");
    SessionTrackTransactionInfo = Setting::both("session_track_transaction_info", word(0, &["OFF", "STATE", "CHARACTERISTICS"])).acts(Session).doc("Report the transaction's state to clients.");
    ExternalUser = Setting::session("external_user", NULL_TEXT).read_only().doc("User of an external authentication.");
    ProxyUser = Setting::session("proxy_user", NULL_TEXT).read_only().doc("User of a proxy.");

    // --- Audit
    ServerAuditLogging = Setting::global("server_audit_logging", flag(false)).acts(Global).doc("Write the audit log, in the format of MariaDB's plugin server_audit, which is built in.");
    ServerAuditEvents = Setting::global("server_audit_events", set(0, &["CONNECT", "QUERY", "TABLE", "QUERY_DDL", "QUERY_DML", "QUERY_DCL", "QUERY_DML_NO_SELECT"])).acts(Global).doc("Events to log. Empty: all. QUERY_DDL and the others select kinds of statements by their first words.");
    ServerAuditInclUsers = Setting::global("server_audit_incl_users", text("")).acts(Global).doc("Users whose statements are logged, separated by commas. Empty: all except those of server_audit_excl_users. Connections of all users are logged.");
    ServerAuditExclUsers = Setting::global("server_audit_excl_users", text("")).acts(Global).doc("Users whose statements are not logged.");
    ServerAuditOutputType = Setting::global("server_audit_output_type", word(1, &["syslog", "file"])).acts(Global).doc("Destination: a file, or syslog at /dev/log.");
    ServerAuditFilePath = Setting::global("server_audit_file_path", text("server_audit.log")).acts(Global).doc("File of the audit log, relative to the data directory. In a directory, the file's name is server_audit.log.");
    ServerAuditFileRotateSize = Setting::global("server_audit_file_rotate_size", num(1_000_000, 100, i64::MAX as u64)).acts(Global).doc("The file is rotated when it reaches this size.").unit("bytes");
    ServerAuditFileRotations = Setting::global("server_audit_file_rotations", num(9, 0, 999)).acts(Global).doc("Number of rotated files to keep. 0: the file is never rotated.");
    ServerAuditFileRotateNow = Setting::global("server_audit_file_rotate_now", flag(false)).acts(Global).doc("ON: rotate the file now. The value stays OFF.");
    ServerAuditQueryLogLimit = Setting::global("server_audit_query_log_limit", num(1024, 0, i32::MAX as u64)).acts(Global).doc("Maximum length of a statement's text. 0: no limit.").unit("bytes");
    ServerAuditMode = Setting::global("server_audit_mode", num(0, 0, 1)).doc("How statements are numbered.").no_effect("the log numbers statements itself in both modes");
    ServerAuditSyslogFacility = Setting::global("server_audit_syslog_facility", word(0, &["LOG_USER", "LOG_MAIL", "LOG_DAEMON", "LOG_AUTH", "LOG_SYSLOG", "LOG_LPR", "LOG_NEWS", "LOG_UUCP", "LOG_CRON", "LOG_AUTHPRIV", "LOG_FTP", "LOG_LOCAL0", "LOG_LOCAL1", "LOG_LOCAL2", "LOG_LOCAL3", "LOG_LOCAL4", "LOG_LOCAL5", "LOG_LOCAL6", "LOG_LOCAL7"])).acts(Global).doc("Facility of syslog lines.");
    ServerAuditSyslogPriority = Setting::global("server_audit_syslog_priority", word(6, &["LOG_EMERG", "LOG_ALERT", "LOG_CRIT", "LOG_ERR", "LOG_WARNING", "LOG_NOTICE", "LOG_INFO", "LOG_DEBUG"])).acts(Global).doc("Priority of syslog lines.");
    ServerAuditSyslogIdent = Setting::global("server_audit_syslog_ident", text("mysql-server_auditing")).acts(Global).doc("Tag at the start of each syslog line.");
    ServerAuditSyslogInfo = Setting::global("server_audit_syslog_info", text("")).acts(Global).doc("Text before each event in syslog.");

    // --- Files and process
    Datadir = Setting::global("datadir", path("/var/lib/cohort/")).read_only().doc("Data directory.");
    Basedir = Setting::global("basedir", path("/usr")).read_only().doc("Directory of the installation.").no_effect("nothing is read from there");
    Tmpdir = Setting::global("tmpdir", path("/tmp")).read_only().doc("Directory for temporary files of large sorts, joins and groupings, and of temporary tables.");
    PluginDir = Setting::global("plugin_dir", path("")).read_only().no_effect("there are no plugins").doc("Directory of plugins.");
    PidFile = Setting::global("pid_file", path("")).read_only().doc("File with the server's process ID.");
    LogError = Setting::global("log_error", path("")).read_only().doc("Error log file. A name without a suffix gets .err. Without a value: the path of pid_file with the suffix .err. Without the option, or with skip_log_error: standard error.");
    OpenFilesLimit = Setting::global("open_files_limit", num(0, 0, U32)).read_only().doc("Maximum number of open files. 0: as many as allowed. At the start `max_connections` is lowered to what this allows; 32 files are reserved for logs and checkpoints.");
    CoreFile = Setting::inert("core_file", flag(false), "the system decides").read_only().doc("Write a core file.");
    LargePages = Setting::inert("large_pages", flag(false), "memory is the allocator's").read_only().doc("Use large pages.");
    LockedInMemory = Setting::fact("locked_in_memory", flag(false)).doc("Whether memory is locked.");
    LargeFilesSupport = Setting::fact("large_files_support", flag(true)).doc("Always.");
    SkipExternalLocking = Setting::inert("skip_external_locking", flag(true), MYISAM).read_only().doc("Do not lock MyISAM files.");
    Hostname = Setting::fact("hostname", text("")).doc("Name of the machine.");
    License = Setting::fact("license", text("Apache-2.0")).doc("Licence of the server.");
    ProtocolVersion = Setting::fact("protocol_version", num(10, 10, 10)).doc("Protocol of clients.");
    Version = Setting::fact("version", text(crate::VERSION)).doc("Version of the server.");
    VersionComment = Setting::fact("version_comment", text("Cohort")).doc("Name of the server.");
    VersionCompileMachine = Setting::fact("version_compile_machine", text(std::env::consts::ARCH)).doc("Processor architecture.");
    VersionCompileOs = Setting::fact("version_compile_os", text("Linux")).doc("Operating system.");
    VersionSslLibrary = Setting::fact("version_ssl_library", text("rustls 0.23 (ring)")).doc("TLS library.");
    VersionMallocLibrary = Setting::fact("version_malloc_library", text("jemalloc")).doc("Allocator.");
    VersionSourceRevision = Setting::fact("version_source_revision", text("")).doc("Revision of the source.");
    HaveCompress = Setting::fact("have_compress", text(WORDS_YES)).doc("Compressed protocol.");
    HaveCrypt = Setting::fact("have_crypt", text(WORDS_NO)).doc("ENCRYPT().");
    HaveDynamicLoading = Setting::fact("have_dynamic_loading", text(WORDS_NO)).doc("Plugins.");
    HaveGeometry = Setting::fact("have_geometry", text(WORDS_NO)).doc("Geometry types.");
    HaveOpenssl = Setting::fact("have_openssl", text(WORDS_YES)).doc("The value of have_ssl, for clients that look for this name. The TLS library is not OpenSSL.");
    HaveProfiling = Setting::fact("have_profiling", text("YES")).doc("Profiling.");
    HaveQueryCache = Setting::fact("have_query_cache", text(WORDS_NO)).doc("Query cache.");
    HaveRtreeKeys = Setting::fact("have_rtree_keys", text(WORDS_NO)).doc("Spatial indexes.");
    HaveSsl = Setting::fact("have_ssl", text("DISABLED")).doc("YES: the server offers TLS. DISABLED: skip_ssl is set.");
    HaveSymlink = Setting::fact("have_symlink", text(WORDS_YES)).doc("Symbolic links.");
} }
