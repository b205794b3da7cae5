//! SHOW, DESCRIBE, EXPLAIN, HELP.

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use crate::ast::{ExplainFormat, Limit, ObjectName, Show, ShowFilter, Statement, VariableScope};
use crate::lexer::Kind;

/// The tables of `userstat`.
const USAGE: [&str; 4] = ["CLIENT_STATISTICS", "INDEX_STATISTICS", "TABLE_STATISTICS", "USER_STATISTICS"];

impl Parser<'_> {
    pub(super) fn show(&mut self) -> SqlResult<Statement> {
        self.advance();
        let show = self.show_what()?;
        Ok(Statement::Show(Box::new(show)))
    }

    fn show_what(&mut self) -> SqlResult<Show> {
        let full = self.eat_word("FULL");
        if full && !self.is_any(&["TABLES", "COLUMNS", "FIELDS", "PROCESSLIST", "TRIGGERS"]) {
            return Err(self.error());
        }
        if self.eat_words(&["COUNT"]) {
            return self.show_count();
        }
        if self.kind() != Kind::Word {
            return Err(self.error());
        }
        let start = self.at;
        let word = self.upper_word()?;
        match word.as_str() {
            "DATABASES" | "SCHEMAS" => Ok(Show::Databases { filter: self.show_filter()? }),
            "TABLES" | "TRIGGERS" | "EVENTS" => self.show_of_database(&word, full),
            "TABLE" => {
                self.expect_word("STATUS")?;
                let db = self.show_db()?;
                Ok(Show::TableStatus { db, filter: self.show_filter()? })
            }
            "OPEN" => {
                self.expect_word("TABLES")?;
                let db = self.show_db()?;
                Ok(Show::OpenTables { db, filter: self.show_filter()? })
            }
            "COLUMNS" | "FIELDS" => {
                let table = self.show_table()?;
                Ok(Show::Columns { full, table, filter: self.show_filter()? })
            }
            "INDEX" | "INDEXES" | "KEYS" => {
                let table = self.show_table()?;
                Ok(Show::Index { table, filter: self.show_filter()? })
            }
            "CREATE" => self.show_create(),
            "GLOBAL" => self.show_scoped(VariableScope::Global),
            "SESSION" | "LOCAL" => self.show_scoped(VariableScope::Session),
            "VARIABLES" | "STATUS" => {
                self.at = start;
                self.show_scoped(VariableScope::Unspecified)
            }
            "PROCESSLIST" => Ok(Show::ProcessList { full }),
            "WARNINGS" => Ok(Show::Warnings { limit: self.limit()? }),
            "ERRORS" => Ok(Show::Errors { limit: self.limit()? }),
            "GRANTS" => Ok(Show::Grants(if self.eat_word("FOR") { Some(self.account()?) } else { None })),
            "PRIVILEGES" => Ok(Show::Privileges),
            "PLUGINS" => Ok(Show::Plugins { filter: self.show_filter()? }),
            "PROFILES" => Ok(Show::Profiles),
            "PROFILE" => self.show_profile(),
            "COLLATION" => Ok(Show::Collation { filter: self.show_filter()? }),
            "CHARSET" => Ok(Show::CharacterSet { filter: self.show_filter()? }),
            "CHARACTER" | "CHAR" => {
                self.expect_word("SET")?;
                Ok(Show::CharacterSet { filter: self.show_filter()? })
            }
            "PROCEDURE" | "FUNCTION" | "PACKAGE" => self.show_routine_status(&word),
            "STORAGE" => {
                self.expect_word("ENGINES")?;
                Ok(Show::Engines)
            }
            "ENGINES" => Ok(Show::Engines),
            "ENGINE" => self.show_engine(),
            _ => self.show_replication(&word, start),
        }
    }

    /// Parses COUNT(*) WARNINGS | ERRORS, after COUNT.
    fn show_count(&mut self) -> SqlResult<Show> {
        self.expect(Kind::LeftParen)?;
        self.expect(Kind::Star)?;
        self.expect(Kind::RightParen)?;
        if self.eat_word("WARNINGS") {
            return Ok(Show::CountWarnings);
        }
        self.expect_word("ERRORS")?;
        Ok(Show::CountErrors)
    }

    fn show_of_database(&mut self, word: &str, full: bool) -> SqlResult<Show> {
        let db = self.show_db()?;
        let filter = self.show_filter()?;
        Ok(match word {
            "TABLES" => Show::Tables { full, db, filter },
            "TRIGGERS" => Show::Triggers { db, filter },
            _ => Show::Events { db, filter },
        })
    }

    fn show_routine_status(&mut self, word: &str) -> SqlResult<Show> {
        if word == "PACKAGE" {
            self.eat_word("BODY");
        }
        if self.eat_word("CODE") {
            self.object_name()?;
            return Err(SqlError::routine_code_disabled());
        }
        self.expect_word("STATUS")?;
        let filter = self.show_filter()?;
        Ok(match word {
            "PROCEDURE" => Show::ProcedureStatus { filter },
            "FUNCTION" => Show::FunctionStatus { filter },
            _ => Show::PackageStatus { filter },
        })
    }

    fn show_engine(&mut self) -> SqlResult<Show> {
        let name = self.name_or_text()?;
        if !self.is_any(&["STATUS", "MUTEX", "LOGS"]) {
            return Err(self.error());
        }
        Ok(Show::Engine { name, what: self.upper_word()? })
    }

    /// Parses SHOW statements of logs and replicas. `word` is the keyword at `start`.
    fn show_replication(&mut self, word: &str, start: usize) -> SqlResult<Show> {
        match word {
            "BINARY" => {
                self.expect_word("LOGS")?;
                Ok(Show::BinaryLogs)
            }
            "MASTER" if self.eat_word("LOGS") => Ok(Show::BinaryLogs),
            "MASTER" => {
                self.expect_word("STATUS")?;
                Ok(Show::MasterStatus)
            }
            "BINLOG" if self.eat_word("STATUS") => Ok(Show::MasterStatus),
            "BINLOG" => {
                self.expect_word("EVENTS")?;
                let (log, from, limit) = self.log_events()?;
                Ok(Show::BinlogEvents { log, from, limit })
            }
            "RELAYLOG" => {
                let connection = if self.kind() == Kind::Text { Some(self.text()?) } else { None };
                self.expect_word("EVENTS")?;
                let (log, from, limit) = self.log_events()?;
                Ok(Show::RelaylogEvents { connection, log, from, limit })
            }
            "SLAVE" | "REPLICA" if self.eat_word("HOSTS") => Ok(Show::SlaveHosts),
            "SLAVE" | "REPLICA" => {
                let connection = if self.kind() == Kind::Text { Some(self.text()?) } else { None };
                self.expect_word("STATUS")?;
                Ok(Show::SlaveStatus { all: false, connection })
            }
            "ALL" => {
                self.expect_any(&["SLAVES", "REPLICAS"])?;
                self.expect_word("STATUS")?;
                Ok(Show::SlaveStatus { all: true, connection: None })
            }
            "EXPLAIN" => {
                let format = self.explain_format_if_any()?;
                self.expect_word("FOR")?;
                Ok(Show::Explain { format, connection: self.expr()? })
            }
            "ANALYZE" => {
                let format = match self.explain_format_if_any()? {
                    ExplainFormat::Json => ExplainFormat::AnalyzeJson,
                    _ => ExplainFormat::Analyze,
                };
                self.expect_word("FOR")?;
                Ok(Show::Explain { format, connection: self.expr()? })
            }
            "AUTHORS" | "CONTRIBUTORS" => Err(self.unsupported(&format!("SHOW {word}"))),
            _ => match USAGE.iter().find(|table| **table == word) {
                Some(table) => {
                    let filter = if self.is_any(&["WHERE"]) { self.show_filter()? } else { None };
                    Ok(Show::Usage { table, filter })
                }
                None => Err(self.error_at(start)),
            },
        }
    }

    fn log_events(&mut self) -> SqlResult<(Option<String>, Option<u64>, Option<Limit>)> {
        let log = if self.eat_word("IN") { Some(self.text()?) } else { None };
        let from = if self.eat_word("FROM") { Some(self.number()?) } else { None };
        Ok((log, from, self.limit()?))
    }

    /// Parses the measures, FOR QUERY n and LIMIT.
    fn show_profile(&mut self) -> SqlResult<Show> {
        const MEASURES: [&str; 9] =
            ["ALL", "BLOCK IO", "CONTEXT SWITCHES", "CPU", "IPC", "MEMORY", "PAGE FAULTS", "SOURCE", "SWAPS"];
        let mut measures = Vec::new();
        loop {
            let words = |name: &'static str| name.split(' ').collect::<Vec<_>>();
            let found = MEASURES.into_iter().find(|name| self.eat_words(&words(name)));
            let Some(measure) = found else { break };
            measures.push(measure);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        let statement = if self.eat_words(&["FOR", "QUERY"]) { Some(self.number()?) } else { None };
        Ok(Show::Profile { measures, statement, limit: self.limit()? })
    }

    fn show_scoped(&mut self, scope: VariableScope) -> SqlResult<Show> {
        if self.eat_word("VARIABLES") {
            return Ok(Show::Variables { scope, filter: self.show_filter()? });
        }
        self.expect_word("STATUS")?;
        Ok(Show::Status { scope, filter: self.show_filter()? })
    }

    fn show_create(&mut self) -> SqlResult<Show> {
        let word = self.upper_word()?;
        match word.as_str() {
            "DATABASE" | "SCHEMA" => {
                let if_not_exists = self.eat_words(&["IF", "NOT", "EXISTS"]);
                Ok(Show::CreateDatabase { if_not_exists, name: self.name()? })
            }
            "TABLE" => Ok(Show::CreateTable(self.object_name()?)),
            "SEQUENCE" => Ok(Show::CreateSequence(self.object_name()?)),
            "VIEW" => Ok(Show::CreateView(self.object_name()?)),
            "USER" => Ok(Show::CreateUser(if self.at_end() { None } else { Some(self.user()?) })),
            "PACKAGE" => {
                let body = self.eat_word("BODY");
                let kind = if body { "PACKAGE BODY" } else { "PACKAGE" }.to_string();
                Ok(Show::CreateOther { kind, name: self.object_name()? })
            }
            "PROCEDURE" | "FUNCTION" | "TRIGGER" | "EVENT" => {
                Ok(Show::CreateOther { kind: word, name: self.object_name()? })
            }
            _ => Err(self.error_at(self.at - 1)),
        }
    }

    /// Parses FROM or IN with a database.
    fn show_db(&mut self) -> SqlResult<Option<String>> {
        if self.eat_any(&["FROM", "IN"]) { self.name().map(Some) } else { Ok(None) }
    }

    /// Parses FROM or IN with a table, and then FROM or IN with its database.
    fn show_table(&mut self) -> SqlResult<ObjectName> {
        self.expect_any(&["FROM", "IN"])?;
        let mut table = self.object_name()?;
        if let Some(db) = self.show_db()? {
            table.db = Some(db);
        }
        Ok(table)
    }

    fn show_filter(&mut self) -> SqlResult<Option<ShowFilter>> {
        if self.eat_word("LIKE") {
            return Ok(Some(ShowFilter::Like(self.text()?)));
        }
        if self.eat_word("WHERE") {
            return Ok(Some(ShowFilter::Where(self.expr()?)));
        }
        Ok(None)
    }

    // ---- DESCRIBE, EXPLAIN, ANALYZE, HELP

    pub(super) fn explain(&mut self) -> SqlResult<Statement> {
        self.advance();
        let format = match () {
            () if self.eat_word("EXTENDED") => {
                self.eat_word("ALL");
                ExplainFormat::Extended
            }
            () if self.eat_word("PARTITIONS") => ExplainFormat::Partitions,
            () => self.explain_format_if_any()?,
        };
        if self.explainable() {
            let statement = Box::new(self.statement()?);
            return Ok(Statement::Explain { format, statement });
        }
        if self.eat_words(&["FOR", "CONNECTION"]) {
            let connection = self.expr()?;
            return Ok(Statement::Show(Box::new(Show::Explain { format, connection })));
        }
        if format != ExplainFormat::Traditional {
            return Err(self.error());
        }
        let table = self.object_name()?;
        let column = if self.at_end() { None } else { Some(self.name_or_text()?) };
        Ok(Statement::Describe { table, column })
    }

    fn explain_format_if_any(&mut self) -> SqlResult<ExplainFormat> {
        match self.is("FORMAT") && self.peek(1).kind == Kind::Equal {
            true => self.explain_format(),
            false => Ok(ExplainFormat::Traditional),
        }
    }

    fn explain_format(&mut self) -> SqlResult<ExplainFormat> {
        self.advance();
        self.advance();
        let from = self.at;
        let format =
            if self.kind() == Kind::Text { self.text()?.to_ascii_uppercase() } else { self.upper_word()? };
        match format.as_str() {
            "JSON" => Ok(ExplainFormat::Json),
            "TREE" => Ok(ExplainFormat::Tree),
            "TRADITIONAL" => Ok(ExplainFormat::Traditional),
            _ => Err(self.error_at(from)),
        }
    }

    fn explainable(&self) -> bool {
        self.kind() == Kind::LeftParen
            || self.is_any(&["SELECT", "WITH", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"])
    }

    /// Parses the part after ANALYZE, if it is not ANALYZE TABLE.
    pub(super) fn analyze_statement(&mut self) -> SqlResult<Statement> {
        let mut format = ExplainFormat::Analyze;
        if self.is("FORMAT") && self.peek(1).kind == Kind::Equal {
            format = match self.explain_format()? {
                ExplainFormat::Json => ExplainFormat::AnalyzeJson,
                _ => ExplainFormat::Analyze,
            };
        }
        if !self.explainable() {
            return Err(self.error());
        }
        let statement = Box::new(self.statement()?);
        Ok(Statement::Explain { format, statement })
    }

    pub(super) fn help(&mut self) -> SqlResult<Statement> {
        self.advance();
        Ok(Statement::Help(self.name_or_text()?))
    }
}
