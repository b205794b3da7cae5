//! The table of statements: one row for each kind. A new kind must fill in every column.

use cohort_config::Counter;
use cohort_types::Privilege as P;

use super::LogTableUse::*;
use super::{
    AtPrepare, Conditions, Exception, Exceptions, ImplicitCommit, ProgramRule, StatementTraits, Writes,
};

macro_rules! statements {
    ($(
        $kind:ident [$($counter:ident)*] $commit:ident $conditions:ident $writes:ident $prepare:ident
        $program:ident [$($exception:ident),*] $($log_tables:expr)?;
    )*) => {
        /// The kind of a statement: a row of the table of statements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum StatementKind {
            $($kind,)*
        }

        impl StatementKind {
            /// All kinds, in the order of the table.
            pub const ALL: &'static [StatementKind] = &[$(StatementKind::$kind,)*];
        }

        pub(super) static TABLE: &[StatementTraits] = &[$(
            StatementTraits {
                counters: &[$(Counter::$counter,)*],
                commit: ImplicitCommit::$commit,
                conditions: Conditions::$conditions,
                writes: Writes::$writes,
                prepare: AtPrepare::$prepare,
                programs: ProgramRule::$program,
                exceptions: Exceptions::of(&[$(Exception::$exception,)*]),
                log_tables: &[$($log_tables)?],
            },
        )*];
    };
}

// Columns: kind, counters, implicit commit, conditions of the previous statement, changed data, checks at
// PREPARE, use in stored programs, exceptions, use of the log tables.
statements! {
    // Queries and row changes.
    Select                  [ComSelect]                 Keeps   Old     Nothing    Planned   NoResultSet
                                                        [Cursor];
    SelectInto              [ComSelect]                 Keeps   Old     Nothing    Planned   Anywhere
                                                        [Cursor];
    SelectIntoFile          [ComSelect]                 Keeps   Cleared Nothing    Nothing   Anywhere
                                                        [Cursor];
    Do                      [ComDo]                     Keeps   Old     Nothing    Nothing   Anywhere    [];
    HandlerOpen             [ComHaOpen]                 Keeps   Cleared Nothing    Nothing   Never
                                                        [NotUnderLocks];
    HandlerRead             [ComHaRead]                 Keeps   Cleared Nothing    Nothing   Never
                                                        [NotUnderLocks];
    HandlerClose            [ComHaClose]                Keeps   Cleared Nothing    Nothing   Never
                                                        [NotUnderLocks];
    Insert                  [ComInsert]                 Keeps   Cleared Rows       Planned   Anywhere
                                                        [BulkAtOnce] Rows(P::Insert);
    InsertSelect            [ComInsertSelect]           Keeps   Cleared Rows       Planned   Anywhere
                                                        [RowOne] Rows(P::Insert);
    Replace                 [ComReplace]                Keeps   Cleared Rows       Planned   Anywhere
                                                        [BulkAtOnce] Rows(P::Insert);
    ReplaceSelect           [ComReplaceSelect]          Keeps   Cleared Rows       Planned   Anywhere
                                                        [RowOne] Rows(P::Insert);
    Update                  [ComUpdate]                 Keeps   Cleared Rows       Planned   Anywhere
                                                        [BulkEach] Rows(P::Update);
    UpdateJoined            [ComUpdateMulti]            Keeps   Cleared Rows       Planned   Anywhere
                                                        [BulkEach] Rows(P::Update);
    Delete                  [ComDelete]                 Keeps   Cleared Rows       Planned   Anywhere
                                                        [BulkEach] Rows(P::Delete);
    DeleteJoined            [ComDeleteMulti]            Keeps   Cleared Rows       Planned   Anywhere
                                                        [] Rows(P::Delete);
    LoadData                [ComLoad]                   Keeps   Cleared Rows       Nothing   Never       [];
    // Databases, tables, views.
    CreateDatabase          [ComCreateDb]               Commits Cleared Objects    Nothing   NoCommit    [];
    AlterDatabase           [ComAlterDb]                Commits Cleared Objects    Nothing   Anywhere    [];
    DropDatabase            [ComDropDb]                 Commits Cleared Objects    Nothing   NoCommit    [];
    CreateTable             [ComCreateTable]            Commits Cleared Objects    Checked   NoCommit    [];
    CreateTemporaryTable    [ComCreateTemporaryTable]   Keeps   Cleared Objects    Checked   Anywhere
                                                        [Temporary];
    CreateSequence          [ComCreateSequence]         Commits Cleared Objects    Checked   NoCommit    [];
    CreateTemporarySequence [ComCreateSequence]         Commits Cleared Objects    Checked   Anywhere
                                                        [Temporary];
    AlterTable              [ComAlterTable]             Commits Cleared Objects    Nothing   NoCommit
                                                        [MaybeTemporary] Definition("ALTER");
    AlterSequence           [ComAlterSequence]          Commits Cleared Objects    Nothing   NoCommit
                                                        [MaybeTemporary];
    DropTable               [ComDropTable]              Commits Cleared Objects    Nothing   NoCommit
                                                        [MaybeTemporary] Definition("DROP");
    DropTemporaryTable      [ComDropTemporaryTable]     Keeps   Cleared Objects    Nothing   Anywhere
                                                        [Temporary] Definition("DROP");
    DropSequence            [ComDropSequence]           Commits Cleared Objects    Nothing   NoCommit
                                                        [MaybeTemporary] Definition("DROP");
    DropTemporarySequence   [ComDropSequence]           Keeps   Cleared Objects    Nothing   Anywhere
                                                        [Temporary] Definition("DROP");
    DropView                [ComDropView]               Commits Cleared Objects    Nothing   NoCommit
                                                        [MaybeTemporary, NotUnderLocks] Definition("DROP");
    CreateView              [ComCreateView]             Commits Cleared Objects    Nothing   NoCommit
                                                        [NotUnderLocks];
    AlterView               [ComCreateView]             Commits Cleared Objects    Nothing   Never
                                                        [NotUnderLocks];
    RenameTable             [ComRenameTable]            Commits Cleared Objects    Nothing   NoCommit
                                                        [MaybeTemporary, NotUnderLocks];
    Truncate                [ComTruncate]               Commits Cleared Objects    Nothing   NoCommit
                                                        [MaybeTemporary];
    CreateIndex             [ComCreateIndex]            Commits Cleared Objects    Nothing   NoCommit
                                                        [MaybeTemporary];
    DropIndex               [ComDropIndex]              Commits Cleared Objects    Nothing   NoCommit
                                                        [MaybeTemporary];
    // Transactions and locks.
    Begin                   [ComBegin]                  Commits Old     Nothing    Nothing   NoCommit
                                                        [BareOk];
    BeginReadWrite          [ComBegin]                  Commits Old     ServerOnly Nothing   NoCommit
                                                        [BareOk];
    Commit                  [ComCommit]                 Keeps   Old     Nothing    Nothing   NoCommit    [];
    Rollback                [ComRollback]               Keeps   Old     Nothing    Nothing   NoCommit    [];
    Savepoint               [ComSavepoint]              Keeps   Old     Nothing    Nothing   Anywhere
                                                        [BareOk];
    RollbackTo              [ComRollbackToSavepoint]    Keeps   Old     Nothing    Nothing   Anywhere
                                                        [BareOk];
    ReleaseSavepoint        [ComReleaseSavepoint]       Keeps   Old     Nothing    Nothing   Anywhere
                                                        [BareOk];
    LockTables              [ComLockTables]             Commits Cleared Nothing    Nothing   Never
                                                        [] Locks;
    UnlockTables            [ComUnlockTables]           Keeps   Old     Nothing    Nothing   Never       [];
    XaStart                 [ComXaStart]                Keeps   Cleared Nothing    Nothing   Anywhere    [];
    XaEnd                   [ComXaEnd]                  Keeps   Cleared Nothing    Nothing   Anywhere    [];
    XaPrepare               [ComXaPrepare]              Keeps   Cleared Nothing    Nothing   Anywhere    [];
    XaCommit                [ComXaCommit]               Keeps   Cleared Nothing    Nothing   Anywhere    [];
    XaRollback              [ComXaRollback]             Keeps   Cleared Nothing    Nothing   Anywhere    [];
    XaRecover               [ComXaRecover]              Keeps   Cleared Nothing    Nothing   Anywhere    [];
    // The session.
    Set                     [ComSetOption]              Keeps   Old     Nothing    Nothing   Anywhere
                                                        [BareOk, ExpiredPassword];
    SetPassword             [ComSetOption]              Commits Old     ServerOnly Nothing   NoPassword
                                                        [BareOk, ExpiredPassword];
    SetStatement            []                          Nested  Cleared Nothing    Nested    Nested
                                                        [BareOk];
    WithLockWait            []                          Nested  Cleared Nothing    Nested    Never
                                                        [BareOk];
    Prepare                 [ComPrepareSql ComStmtPrepare]
                                                        Keeps   Cleared Nothing    Refused   NoFunction
                                                        [RowOne, ExpiredPassword];
    Execute                 [ComExecuteSql ComStmtExecute]
                                                        Keeps   Cleared Nothing    Refused   NoFunction
                                                        [RowOne, BareOk, ExpiredPassword];
    ExecuteImmediate        [ComExecuteImmediate ComStmtPrepare ComStmtExecute ComStmtClose]
                                                        Keeps   Cleared Nothing    Refused   NoFunction
                                                        [RowOne, BareOk];
    Deallocate              [ComDeallocSql ComStmtClose]Keeps   Old     Nothing    Refused   NoFunction
                                                        [ExpiredPassword];
    Use                     [ComChangeDb]               Keeps   Old     Nothing    Nothing   Never       [];
    Kill                    [ComKill]                   Keeps   Old     Nothing    Nothing   Anywhere    [];
    GetDiagnostics          [ComGetDiagnostics]         Keeps   Kept    Nothing    Nothing   Anywhere    [];
    // Stored programs.
    CreateProcedure         [ComCreateProcedure]        Commits Old     Objects    Nothing   NoCreate
                                                        [NotUnderLocks];
    CreateFunction          [ComCreateFunction]         Commits Old     Objects    Nothing   NoCreate
                                                        [NotUnderLocks];
    AlterProcedure          [ComAlterProcedure]         Commits Old     Objects    Nothing   NoAlter
                                                        [NotUnderLocks];
    AlterFunction           [ComAlterFunction]          Commits Old     Objects    Nothing   NoAlter
                                                        [NotUnderLocks];
    DropProcedure           [ComDropProcedure]          Commits Old     Objects    Nothing   NoAlter
                                                        [NotUnderLocks];
    DropFunction            [ComDropFunction]           Commits Old     Objects    Nothing   NoAlter
                                                        [NotUnderLocks];
    CreateTrigger           [ComCreateTrigger]          Commits Cleared Objects    Nothing   NoCreate    [];
    DropTrigger             [ComDropTrigger]            Commits Cleared Objects    Nothing   NoCommit    [];
    CreateEvent             [ComCreateEvent]            Commits Old     Objects    Nothing   NoEventBody
                                                        [NotUnderLocks];
    AlterEvent              [ComAlterEvent]             Commits Old     Objects    Nothing   NoCommit
                                                        [NotUnderLocks];
    AlterEventBody          [ComAlterEvent]             Commits Old     Objects    Nothing   NoEventBody
                                                        [NotUnderLocks];
    DropEvent               [ComDropEvent]              Commits Old     Objects    Nothing   NoCommit
                                                        [NotUnderLocks];
    // Rejected as not supported, before any other check.
    Call                    [ComCallProcedure]          Keeps   Old     Nothing    Nothing   Anywhere    [];
    Compound                [ComCompoundSql]            Keeps   Old     Nothing    Nothing   Anywhere    [];
    Signal                  [ComSignal]                 Keeps   Old     Nothing    Nothing   Anywhere    [];
    Resignal                [ComResignal]               Keeps   Old     Nothing    Nothing   Anywhere    [];
    // Descriptions of statements and tables.
    Describe                [ComShowFields]             Keeps   Cleared Nothing    Nothing   NoResultSet [];
    Explain                 []                          Keeps   Cleared Nothing    Explained NoResultSet [];
    Help                    [ComHelp]                   Keeps   Cleared Nothing    Nothing   Never       [];
    // Administration.
    Flush                   [ComFlush]                  Commits Cleared Nothing    Nothing   NoFunction  [];
    ResetMaster             [ComReset]                  Commits Cleared Nothing    Nothing   NoFunction  [];
    PurgeTo                 [ComPurge]                  Keeps   Cleared Nothing    Nothing   Anywhere    [];
    PurgeBefore             [ComPurgeBeforeDate]        Keeps   Cleared Nothing    Nothing   Anywhere    [];
    Binlog                  [ComBinlog]                 Keeps   Cleared ServerOnly Nothing   Anywhere    [];
    CheckTable              [ComCheck]                  Commits Cleared Nothing    Nothing   Never
                                                        [MaybeTemporary];
    CheckProgram            [ComCheck]                  Keeps   Cleared Nothing    Nothing   Never       [];
    AnalyzeTable            [ComAnalyze]                Commits Cleared ServerOnly Nothing   NoResultSet
                                                        [MaybeTemporary];
    OptimizeTable           [ComOptimize]               Commits Cleared Objects    Nothing   NoResultSet
                                                        [MaybeTemporary];
    RepairTable             [ComRepair]                 Commits Cleared Objects    Nothing   NoResultSet
                                                        [MaybeTemporary];
    ChecksumTable           [ComChecksum]               Keeps   Cleared Nothing    Nothing   NoResultSet
                                                        [MaybeTemporary];
    BackupStage             [ComBackup]                 Commits Cleared Nothing    Nothing   Never       [];
    BackupLock              [ComBackupLock]             Commits Cleared Nothing    Nothing   Never       [];
    BackupUnlock            [ComBackupLock]             Commits Cleared Nothing    Nothing   Never       [];
    BackupServer            [ComBackup]                 Commits Cleared Nothing    Nothing   Never       [];
    Clone                   [ComClone]                  Commits Cleared Nothing    Nothing   Never       [];
    InstallPlugin           [ComInstallPlugin]          Commits Cleared Nothing    Nothing   NoCommit    [];
    UninstallPlugin         [ComUninstallPlugin]        Commits Cleared Nothing    Nothing   NoCommit    [];
    Shutdown                [ComShutdown]               Keeps   Cleared Nothing    Nothing   Anywhere    [];
    // Replication.
    ChangeMaster            [ComChangeMaster]           Keeps   Cleared Nothing    Nothing   Anywhere    [];
    StartSlave              [ComStartSlave]             Keeps   Cleared Nothing    Nothing   Anywhere    [];
    StartAllSlaves          [ComStartAllSlaves]         Keeps   Cleared Nothing    Nothing   Anywhere    [];
    StopSlave               [ComStopSlave]              Keeps   Cleared Nothing    Nothing   Anywhere    [];
    StopAllSlaves           [ComStopAllSlaves]          Keeps   Cleared Nothing    Nothing   Anywhere    [];
    ResetSlave              [ComReset]                  Commits Cleared Nothing    Nothing   NoFunction  [];
    // Accounts.
    CreateUser              [ComCreateUser]             Commits Cleared Objects    Nothing   NoCommit    [];
    CreateRole              [ComCreateRole]             Commits Cleared Objects    Nothing   NoCommit    [];
    DropRole                [ComDropRole]               Commits Cleared Objects    Nothing   NoCommit    [];
    AlterUser               [ComAlterUser]              Commits Cleared Objects    Nothing   NoCommit    [];
    DropUser                [ComDropUser]               Commits Cleared Objects    Nothing   NoCommit    [];
    RenameUser              [ComRenameUser]             Commits Cleared Objects    Nothing   NoCommit    [];
    Grant                   [ComGrant]                  Commits Cleared Objects    Nothing   NoCommit    [];
    GrantRole               [ComGrantRole]              Commits Cleared Objects    Nothing   NoCommit    [];
    Revoke                  [ComRevoke]                 Commits Cleared Objects    Nothing   NoCommit    [];
    RevokeRole              [ComRevokeRole]             Commits Cleared Objects    Nothing   NoCommit    [];
    RevokeAll               [ComRevokeAll]              Commits Cleared Objects    Nothing   NoCommit    [];
    // SHOW.
    ShowDatabases           [ComShowDatabases]          Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowTables              [ComShowTables]             Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowTableStatus         [ComShowTableStatus]        Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowOpenTables          [ComShowOpenTables]         Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowColumns             [ComShowFields]             Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowIndex               [ComShowKeys]               Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowCreateDatabase      [ComShowCreateDb]           Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowCreateTable         [ComShowCreateTable]        Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowCreateSequence      [ComShowCreateTable]        Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowCreateView          [ComShowCreateTable]        Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowCreateUser          [ComShowCreateUser]         Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowCreateProcedure     [ComShowCreateProc]         Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowCreateFunction      [ComShowCreateFunc]         Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowCreateTrigger       [ComShowCreateTrigger]      Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowCreateEvent         [ComShowCreateEvent]        Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowCreatePackage       [ComShowCreatePackage]      Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowCreatePackageBody   [ComShowCreatePackageBody]  Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowVariables           [ComShowVariables]          Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowStatus              [ComShowStatus]             Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowProcessList         [ComShowProcesslist]        Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowEngines             [ComShowStorageEngines]     Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowEngine              [ComShowEngineStatus]       Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowWarnings            [ComShowWarnings]           Keeps   Kept    Nothing    Nothing   NoResultSet [];
    ShowErrors              [ComShowErrors]             Keeps   Kept    Nothing    Nothing   NoResultSet [];
    ShowCountWarnings       [ComSelect]                 Keeps   Kept    Nothing    Warnings  NoResultSet [];
    ShowCountErrors         [ComSelect]                 Keeps   Kept    Nothing    Errors    NoResultSet [];
    ShowBinaryLogs          [ComShowBinlogs]            Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowBinlogEvents        [ComShowBinlogEvents]       Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowRelaylogEvents      [ComShowRelaylogEvents]     Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowMasterStatus        [ComShowBinlogStatus]       Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowSlaveHosts          [ComShowSlaveHosts]         Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowExplain             [ComShowExplain]            Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowSlaveStatus         [ComShowSlaveStatus]        Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowGrants              [ComShowGrants]             Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowCharacterSet        [ComShowCharsets]           Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowCollation           [ComShowCollations]         Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowPrivileges          [ComShowPrivileges]         Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowPlugins             [ComShowPlugins]            Keeps   Cleared Nothing    Nothing   Anywhere    [];
    ShowUsage               [ComShowGeneric]            Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowTriggers            [ComShowTriggers]           Keeps   Cleared Nothing    Listed    Anywhere    [];
    ShowEvents              [ComShowEvents]             Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowProcedureStatus     [ComShowProcedureStatus]    Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowFunctionStatus      [ComShowFunctionStatus]     Keeps   Cleared Nothing    Listed    NoResultSet [];
    ShowPackageStatus       [ComShowPackageStatus]      Keeps   Cleared Nothing    Nothing   NoResultSet [];
    ShowProfiles            [ComShowProfiles]           Keeps   Cleared Nothing    Nothing   Anywhere    [];
    ShowProfile             [ComShowProfile]            Keeps   Cleared Nothing    Nothing   Anywhere    [];
}
