//! FLUSH, RESET, PURGE, BINLOG, table maintenance, replication statements.

use cohort_types::{SqlError, SqlResult, Value};

use super::Parser;
use crate::ast::{
    Account, Backup, BackupServer, BackupStage, BackupTarget, ChangeMaster, CheckedKind, CloneInstance,
    CloneServer, Expr, Flush, FlushLock, FlushTarget, Literal, MaintenanceKind, Plugin, Program,
    PurgeBinaryLogs, RoutineKind, SlaveControl, Statement, TableMaintenance,
};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn admin(&mut self, word: &str) -> SqlResult<Statement> {
        self.advance();
        match word {
            "FLUSH" => self.flush(),
            "RESET" => self.reset(),
            "PURGE" => self.purge(),
            "BINLOG" => {
                let text = self.expr()?;
                if self.kind() == Kind::Comma {
                    return Err(self.unsupported("BINLOG with fragments"));
                }
                Ok(Statement::Binlog(text))
            }
            "SHUTDOWN" => {
                if self.is("WAIT") {
                    return Err(self.unsupported("SHUTDOWN WAIT"));
                }
                Ok(Statement::Shutdown)
            }
            "CHANGE" => self.change_master(),
            "CLONE" => self.clone_server(),
            "BACKUP" => Ok(Statement::Backup(self.backup()?)),
            _ => Ok(Statement::StopSlave(self.slave_control()?)),
        }
    }

    /// Parses INSTALL or UNINSTALL.
    pub(super) fn plugin(&mut self, word: &str) -> SqlResult<Statement> {
        self.advance();
        let installs = word == "INSTALL";
        if self.eat_word("SONAME") {
            let library = Some(self.text()?);
            return Ok(Statement::Plugin(Plugin { installs, if_not: false, name: None, library }));
        }
        self.expect_word("PLUGIN")?;
        let if_not = self.eat_word("IF");
        if if_not && installs {
            self.expect_word("NOT")?;
        }
        if if_not {
            self.expect_word("EXISTS")?;
        }
        let name = Some(self.name()?);
        let library = match installs {
            true => {
                self.expect_word("SONAME")?;
                Some(self.text()?)
            }
            false => None,
        };
        Ok(Statement::Plugin(Plugin { installs, if_not, name, library }))
    }

    // ---- FLUSH

    fn flush(&mut self) -> SqlResult<Statement> {
        let local = self.eat_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if self.is_any(&["TABLES", "TABLE"]) {
            self.advance();
            let targets = vec![self.flush_tables()?];
            return Ok(Statement::Flush(Flush { local, targets }));
        }
        let targets = self.list(Self::flush_target)?;
        Ok(Statement::Flush(Flush { local, targets }))
    }

    fn flush_tables(&mut self) -> SqlResult<FlushTarget> {
        let names =
            if self.at_end() || self.is_any(&["WITH", "FOR"]) { Vec::new() } else { self.object_names()? };
        let lock = match () {
            () if self.eat_words(&["WITH", "READ", "LOCK"]) => FlushLock::WithReadLock,
            () if self.eat_words(&["FOR", "EXPORT"]) => FlushLock::ForExport,
            () => FlushLock::None,
        };
        if self.is_all(&["AND", "DISABLE"]) {
            return Err(self.unsupported("AND DISABLE CHECKPOINT"));
        }
        Ok(FlushTarget::Tables { names, lock })
    }

    fn flush_target(&mut self) -> SqlResult<FlushTarget> {
        Ok(match () {
            () if self.eat_words(&["BINARY", "LOGS"]) => {
                FlushTarget::BinaryLogs { delete_domains: self.delete_domains()? }
            }
            () if self.eat_words(&["ENGINE", "LOGS"]) => FlushTarget::EngineLogs,
            () if self.eat_words(&["ERROR", "LOGS"]) => FlushTarget::ErrorLogs,
            () if self.eat_words(&["GENERAL", "LOGS"]) => FlushTarget::GeneralLogs,
            () if self.eat_words(&["SLOW", "LOGS"]) => FlushTarget::SlowLogs,
            () if self.eat_words(&["RELAY", "LOGS"]) => FlushTarget::RelayLogs,
            () if self.eat_word("LOGS") => FlushTarget::Logs,
            () if self.eat_word("PRIVILEGES") => FlushTarget::Privileges,
            () if self.eat_words(&["GLOBAL", "STATUS"]) || self.eat_words(&["SESSION", "STATUS"]) => {
                FlushTarget::Status
            }
            () if self.eat_word("STATUS") => FlushTarget::Status,
            () if self.eat_word("HOSTS") => FlushTarget::Hosts,
            () if self.eat_words(&["QUERY", "CACHE"]) => FlushTarget::QueryCache,
            () if self.eat_word("USER_RESOURCES") => FlushTarget::UserResources,
            () if self.is_any(&[
                "DES_KEY_FILE",
                "MASTER",
                "SLAVE",
                "SSL",
                "THREADS",
                "CHANGED_PAGE_BITMAPS",
                "INDEX_STATISTICS",
                "TABLE_STATISTICS",
                "USER_STATISTICS",
                "CLIENT_STATISTICS",
                "USER_VARIABLES",
            ]) =>
            {
                FlushTarget::Other(self.upper_word()?)
            }
            () => return Err(self.error()),
        })
    }

    /// Parses [DELETE_DOMAIN_ID = ([number [, number] ...])].
    fn delete_domains(&mut self) -> SqlResult<Option<Vec<u32>>> {
        if !self.eat_word("DELETE_DOMAIN_ID") {
            return Ok(None);
        }
        self.expect(Kind::Equal)?;
        self.expect(Kind::LeftParen)?;
        let mut domains = Vec::new();
        while self.kind() != Kind::RightParen {
            if !domains.is_empty() {
                self.expect(Kind::Comma)?;
            }
            if self.kind() != Kind::Integer {
                return Err(self.error());
            }
            let token = self.advance();
            let digits = String::from_utf8_lossy(self.bytes(token)).into_owned();
            let number = digits.parse().unwrap_or(u64::MAX);
            domains.push(u32::try_from(number).map_err(|_| SqlError::gtid_domain_too_large(number))?);
        }
        self.expect(Kind::RightParen)?;
        Ok(Some(domains))
    }

    // ---- BACKUP

    fn backup(&mut self) -> SqlResult<Backup> {
        if self.eat_word("LOCK") {
            return Ok(Backup::Lock(self.object_name()?));
        }
        if self.eat_word("UNLOCK") {
            return Ok(Backup::Unlock);
        }
        if self.eat_word("SERVER") {
            if self.eat_word("PROVEN") {
                return self.text().map(Backup::Proven);
            }
            return self.backup_server().map(Backup::Server);
        }
        self.expect_word("STAGE")?;
        let name = self.name()?;
        let stage = BackupStage::ALL.into_iter().find(|stage| stage.name().eq_ignore_ascii_case(&name));
        stage.map(Backup::Stage).ok_or_else(|| SqlError::backup_unknown_stage(&name))
    }

    /// Parses the rest of BACKUP SERVER TO 'directory' [1 CONCURRENT], as a later MariaDB has it, or of
    /// BACKUP SERVER TO STREAM, with INCREMENTAL FROM if there is one.
    fn backup_server(&mut self) -> SqlResult<BackupServer> {
        self.expect_word("TO")?;
        let target = self.backup_target()?;
        let parent = match self.eat_word("INCREMENTAL") {
            true => {
                self.expect_word("FROM")?;
                Some(self.text()?)
            }
            false => None,
        };
        Ok(BackupServer { target, parent })
    }

    fn backup_target(&mut self) -> SqlResult<BackupTarget> {
        if self.eat_word("STREAM") {
            return Ok(BackupTarget::Stream);
        }
        let directory = self.text()?;
        if self.token().kind == Kind::Integer {
            let threads = self.number()?;
            self.expect_word("CONCURRENT")?;
            if threads != 1 {
                return Err(SqlError::not_supported("BACKUP SERVER with several threads"));
            }
        }
        Ok(BackupTarget::Directory(directory))
    }

    // ---- CLONE

    /// Parses the rest of CLONE LOCAL DATA DIRECTORY [=] 'dir', or of CLONE INSTANCE FROM user@host:port
    /// IDENTIFIED BY 'password' [DATA DIRECTORY [=] 'dir'] [REQUIRE [NO] SSL].
    fn clone_server(&mut self) -> SqlResult<Statement> {
        if self.eat_word("LOCAL") {
            let directory = self.data_directory()?.ok_or_else(|| self.error())?;
            return Ok(Statement::Clone(CloneServer::Local { directory }));
        }
        self.expect_words(&["INSTANCE", "FROM"])?;
        let Account::Named { user, host } = self.account()? else { return Err(self.error()) };
        self.expect(Kind::Colon)?;
        let port = match u16::try_from(self.number()?) {
            Ok(port) if port > 0 => port,
            _ => return Err(self.error()),
        };
        self.expect_words(&["IDENTIFIED", "BY"])?;
        let password = self.text()?;
        let directory = self.data_directory()?;
        let ssl = match self.eat_word("REQUIRE") {
            true => {
                let is_forbidden = self.eat_word("NO");
                self.expect_word("SSL")?;
                Some(!is_forbidden)
            }
            false => None,
        };
        let instance = CloneInstance { user, host, port, password, directory, ssl };
        Ok(Statement::Clone(CloneServer::Instance(instance)))
    }

    /// Parses DATA DIRECTORY [=] 'dir', if it is there.
    fn data_directory(&mut self) -> SqlResult<Option<String>> {
        if !self.eat_word("DATA") {
            return Ok(None);
        }
        self.expect_word("DIRECTORY")?;
        self.eat(Kind::Equal);
        self.text().map(Some)
    }

    // ---- RESET, PURGE

    fn reset(&mut self) -> SqlResult<Statement> {
        if self.eat_word("MASTER") {
            let to = if self.eat_word("TO") { Some(self.number()?) } else { None };
            return Ok(Statement::ResetMaster { to });
        }
        if self.eat_words(&["QUERY", "CACHE"]) {
            let targets = vec![FlushTarget::QueryCache];
            return Ok(Statement::Flush(Flush { local: true, targets }));
        }
        self.expect_any(&["SLAVE", "REPLICA"])?;
        let connection = if self.kind() == Kind::Text { Some(self.text()?) } else { None };
        let all = self.eat_word("ALL");
        Ok(Statement::ResetSlave { connection, all })
    }

    fn purge(&mut self) -> SqlResult<Statement> {
        self.expect_any(&["BINARY", "MASTER"])?;
        self.expect_word("LOGS")?;
        let purge = if self.eat_word("TO") {
            PurgeBinaryLogs::To(self.text()?)
        } else {
            self.expect_word("BEFORE")?;
            PurgeBinaryLogs::Before(self.expr()?)
        };
        Ok(Statement::PurgeBinaryLogs(purge))
    }

    // ---- table maintenance

    pub(super) fn maintenance(&mut self, word: &str) -> SqlResult<Statement> {
        self.advance();
        if word == "CHECK"
            && let Some(kind) = self.checked_kind()
        {
            let name = self.object_name()?;
            return Ok(Statement::Program(Box::new(Program::Check { kind, name })));
        }
        let may_be_logged = !matches!(word, "CHECK" | "CHECKSUM");
        let local = may_be_logged && self.eat_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if word == "ANALYZE" && !local && !self.is_any(&["TABLE", "TABLES"]) {
            return self.analyze_statement();
        }
        let of_views = matches!(word, "CHECK" | "REPAIR") && self.eat_any(&["VIEW", "VIEWS"]);
        if !of_views {
            self.expect_any(&["TABLE", "TABLES"])?;
        }
        let kind = match word {
            "CHECK" => MaintenanceKind::Check,
            "ANALYZE" => MaintenanceKind::Analyze,
            "OPTIMIZE" => MaintenanceKind::Optimize,
            "REPAIR" => MaintenanceKind::Repair,
            _ => MaintenanceKind::Checksum,
        };
        let names = self.object_names()?;
        let mut options = Vec::new();
        while !self.at_end() {
            if of_views && self.eat_words(&["FROM", "MYSQL"]) {
                continue;
            }
            if self.eat_words(&["PERSISTENT", "FOR"]) {
                self.persistent_parts()?;
                continue;
            }
            let allowed = [
                "QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM", "FORCE", "FOR", "UPGRADE",
                "ALL", "WAIT", "NOWAIT",
            ];
            if !self.is_any(&allowed) {
                return Err(self.error());
            }
            if self.is_any(&["WAIT", "NOWAIT"]) {
                self.ddl_wait()?;
                continue;
            }
            options.push(self.upper_word()?);
        }
        Ok(Statement::TableMaintenance(TableMaintenance { kind, local, of_views, names, options }))
    }

    /// Parses the kind of program after CHECK, if there is one.
    fn checked_kind(&mut self) -> Option<CheckedKind> {
        let kinds = [
            ("PROCEDURE", CheckedKind::Routine(RoutineKind::Procedure)),
            ("FUNCTION", CheckedKind::Routine(RoutineKind::Function)),
            ("TRIGGER", CheckedKind::Trigger),
        ];
        kinds.into_iter().find(|(word, _)| self.eat_word(word)).map(|(_, kind)| kind)
    }

    /// Skips ALL, or COLUMNS (..) INDEXES (..), which select statistics to store. The server stores none.
    fn persistent_parts(&mut self) -> SqlResult<()> {
        if self.eat_word("ALL") {
            return Ok(());
        }
        for word in ["COLUMNS", "INDEXES"] {
            self.expect_word(word)?;
            if self.eat_word("ALL") {
                continue;
            }
            self.expect(Kind::LeftParen)?;
            if self.kind() != Kind::RightParen {
                self.list(Self::name)?;
            }
            self.expect(Kind::RightParen)?;
        }
        Ok(())
    }

    // ---- replication

    fn change_master(&mut self) -> SqlResult<Statement> {
        self.expect_word("MASTER")?;
        let connection = if self.kind() == Kind::Text { Some(self.text()?) } else { None };
        self.expect_word("TO")?;
        let options = self.list(Self::replication_option)?;
        Ok(Statement::ChangeMaster(ChangeMaster { connection, options }))
    }

    /// Parses `NAME = value`.
    fn replication_option(&mut self) -> SqlResult<(String, Expr)> {
        if !self.is_name_at(0)
            && !self.is_any(&[
                "MASTER_SSL_VERIFY_SERVER_CERT",
                "MASTER_DEMOTE_TO_SLAVE",
                "MASTER_DEMOTE_TO_REPLICA",
                "IGNORE_DOMAIN_IDS",
                "DO_DOMAIN_IDS",
            ])
        {
            return Err(self.error());
        }
        let name = self.upper_word()?;
        self.expect(Kind::Equal)?;
        if self.kind() == Kind::Word {
            let word = self.upper_word()?;
            return Ok((name, Expr::Literal(Literal::fixed(Value::text(word)))));
        }
        if self.kind() == Kind::LeftParen {
            return Ok((name, Expr::Literal(Literal::fixed(Value::text(self.numbers()?)))));
        }
        Ok((name, self.expr()?))
    }

    /// Parses `(number, ...)` or `()` and returns the numbers separated by commas.
    fn numbers(&mut self) -> SqlResult<String> {
        self.expect(Kind::LeftParen)?;
        let mut numbers = Vec::new();
        while self.kind() != Kind::RightParen {
            if !numbers.is_empty() {
                self.expect(Kind::Comma)?;
            }
            if self.kind() != Kind::Integer {
                return Err(self.error());
            }
            let token = self.advance();
            numbers.push(String::from_utf8_lossy(self.bytes(token)).into_owned());
        }
        self.expect(Kind::RightParen)?;
        Ok(numbers.join(","))
    }

    /// Parses the part after START.
    pub(super) fn start_slave(&mut self) -> SqlResult<Statement> {
        Ok(Statement::StartSlave(self.slave_control()?))
    }

    fn slave_control(&mut self) -> SqlResult<SlaveControl> {
        let mut control = SlaveControl {
            all: false,
            connection: None,
            io_thread: false,
            sql_thread: false,
            until: Vec::new(),
        };
        if self.eat_words(&["ALL", "SLAVES"]) || self.eat_words(&["ALL", "REPLICAS"]) {
            control.all = true;
            return Ok(control);
        }
        self.expect_any(&["SLAVE", "REPLICA"])?;
        if self.kind() == Kind::Text {
            control.connection = Some(self.text()?);
        }
        if self.is_any(&["IO_THREAD", "SQL_THREAD"]) {
            self.list(|p| {
                if p.eat_word("IO_THREAD") {
                    control.io_thread = true;
                } else {
                    p.expect_word("SQL_THREAD")?;
                    control.sql_thread = true;
                }
                Ok(())
            })?;
        }
        if self.eat_word("UNTIL") {
            control.until = self.list(Self::replication_option)?;
        }
        Ok(control)
    }
}
