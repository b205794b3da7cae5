//! Transactions, LOCK TABLES, XA, PREPARE, USE, KILL.

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use crate::ast::{
    AccessMode, Begin, Completion, ConditionInfo, Expr, GetDiagnostics, Kill, KillTarget, LockTable,
    PrepareSource, Statement, StatementInfo, TableLockMode, Target, Using, Xa, XaId,
};
use crate::lexer::Kind;
use crate::literal;

impl Parser<'_> {
    pub(super) fn transaction_statement(&mut self, word: &str) -> SqlResult<Statement> {
        self.advance();
        match word {
            "BEGIN" => {
                self.eat_word("WORK");
                Ok(Statement::Begin(Begin::default()))
            }
            "START" => self.start(),
            "COMMIT" => {
                self.eat_word("WORK");
                Ok(Statement::Commit(self.completion()?))
            }
            "ROLLBACK" => self.rollback(),
            "SAVEPOINT" => Ok(Statement::Savepoint(self.name()?)),
            "RELEASE" => {
                self.expect_word("SAVEPOINT")?;
                Ok(Statement::ReleaseSavepoint(self.name()?))
            }
            "LOCK" => self.lock_tables(),
            "UNLOCK" => {
                self.expect_any(&["TABLES", "TABLE"])?;
                Ok(Statement::UnlockTables)
            }
            _ => self.xa(),
        }
    }

    fn start(&mut self) -> SqlResult<Statement> {
        if !self.eat_word("TRANSACTION") {
            return self.start_slave();
        }
        let mut begin = Begin::default();
        if !self.at_end() {
            self.list(|p| {
                if p.eat_words(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
                    begin.consistent_snapshot = true;
                } else {
                    let mode = p.access_mode()?;
                    if begin.access.is_some_and(|before| before != mode) {
                        return Err(p.error());
                    }
                    begin.access = Some(mode);
                }
                Ok(())
            })?;
        }
        Ok(Statement::Begin(begin))
    }

    /// Parses READ ONLY or READ WRITE.
    pub(super) fn access_mode(&mut self) -> SqlResult<AccessMode> {
        self.expect_word("READ")?;
        if self.eat_word("ONLY") {
            return Ok(AccessMode::ReadOnly);
        }
        self.expect_word("WRITE")?;
        Ok(AccessMode::ReadWrite)
    }

    fn completion(&mut self) -> SqlResult<Completion> {
        let mut completion = Completion::default();
        if self.eat_word("AND") {
            completion.chain = Some(!self.eat_word("NO"));
            self.expect_word("CHAIN")?;
        }
        if self.eat_words(&["NO", "RELEASE"]) {
            completion.release = Some(false);
        } else if completion.chain != Some(true) && self.eat_word("RELEASE") {
            completion.release = Some(true);
        }
        Ok(completion)
    }

    fn rollback(&mut self) -> SqlResult<Statement> {
        self.eat_word("WORK");
        if self.eat_word("TO") {
            self.eat_word("SAVEPOINT");
            return Ok(Statement::RollbackTo(self.name()?));
        }
        Ok(Statement::Rollback(self.completion()?))
    }

    fn lock_tables(&mut self) -> SqlResult<Statement> {
        self.expect_any(&["TABLES", "TABLE"])?;
        let tables = self.list(|p| {
            let table = p.object_name()?;
            let alias = p.alias()?;
            let mode = match () {
                () if p.eat_words(&["READ", "LOCAL"]) => TableLockMode::ReadLocal,
                () if p.eat_word("READ") => TableLockMode::Read,
                () => {
                    p.eat_word("LOW_PRIORITY");
                    p.expect_word("WRITE")?;
                    p.eat_word("CONCURRENT");
                    TableLockMode::Write
                }
            };
            Ok(LockTable { table, alias, mode })
        })?;
        self.ddl_wait()?;
        Ok(Statement::LockTables(tables))
    }

    // ---- XA

    fn xa(&mut self) -> SqlResult<Statement> {
        let word = self.upper_word()?;
        let xa = match word.as_str() {
            "START" | "BEGIN" => {
                let xid = self.xa_id()?;
                let join = self.eat_word("JOIN");
                let resume = !join && self.eat_word("RESUME");
                Xa::Start { xid, join, resume }
            }
            "END" => {
                let xid = self.xa_id()?;
                let suspend = self.eat_word("SUSPEND");
                if suspend {
                    self.eat_words(&["FOR", "MIGRATE"]);
                }
                Xa::End { xid, suspend }
            }
            "PREPARE" => Xa::Prepare(self.xa_id()?),
            "COMMIT" => Xa::Commit { xid: self.xa_id()?, one_phase: self.eat_words(&["ONE", "PHASE"]) },
            "ROLLBACK" => Xa::Rollback(self.xa_id()?),
            "RECOVER" => {
                let mut sql_format = false;
                if self.eat_word("FORMAT") {
                    self.expect(Kind::Equal)?;
                    let format = self.text()?;
                    sql_format = format.eq_ignore_ascii_case("SQL");
                    if !sql_format && !format.eq_ignore_ascii_case("RAW") {
                        return Err(SqlError::unknown_xa_recover_format(&format));
                    }
                }
                Xa::Recover { sql_format }
            }
            _ => return Err(self.error_at(self.at - 1)),
        };
        Ok(Statement::Xa(xa))
    }

    fn xa_id(&mut self) -> SqlResult<XaId> {
        let gtrid = self.xa_part()?;
        let mut xid = XaId { gtrid, bqual: Vec::new(), format_id: 1 };
        if self.eat(Kind::Comma) {
            xid.bqual = self.xa_part()?;
            if self.eat(Kind::Comma) {
                let from = self.at;
                let number = i32::try_from(self.number()?).map_err(|_| self.error_at(from))?;
                xid.format_id = number.unsigned_abs();
            }
        }
        Ok(xid)
    }

    fn xa_part(&mut self) -> SqlResult<Vec<u8>> {
        let token = self.token();
        let bytes = match token.kind {
            Kind::Text => literal::text(self.bytes(token), self.options.mode),
            Kind::Hex | Kind::Bits => match literal::literal_value(self.sql, token, self.options) {
                Some(cohort_types::Value::Str(text)) => text.bytes,
                _ => return Err(self.error()),
            },
            _ => return Err(self.error()),
        };
        self.advance();
        if bytes.len() > 64 {
            return Err(self.error());
        }
        Ok(bytes)
    }

    // ---- prepared statements

    pub(super) fn prepared_statement(&mut self, word: &str) -> SqlResult<Statement> {
        self.advance();
        match word {
            "PREPARE" => {
                let name = self.name()?;
                self.expect_word("FROM")?;
                Ok(Statement::Prepare { name, source: self.prepare_source()? })
            }
            "EXECUTE" if self.eat_word("IMMEDIATE") => {
                let source = self.expr()?;
                Ok(Statement::ExecuteImmediate { source, using: self.using()? })
            }
            "EXECUTE" => {
                let name = self.name()?;
                Ok(Statement::Execute { name, using: self.using()? })
            }
            _ => {
                self.expect_word("PREPARE")?;
                Ok(Statement::Deallocate(self.name()?))
            }
        }
    }

    fn prepare_source(&mut self) -> SqlResult<PrepareSource> {
        let alone = |p: &Self, ahead| matches!(p.peek(ahead).kind, Kind::End | Kind::Semicolon);
        if self.kind() == Kind::Text && alone(self, 1) {
            return Ok(PrepareSource::Text(self.text_bytes()?));
        }
        if self.kind() == Kind::AtName && alone(self, 1) {
            return Ok(PrepareSource::UserVariable(self.user_variable()?));
        }
        Ok(PrepareSource::Expr(self.expr()?))
    }

    fn using(&mut self) -> SqlResult<Vec<Using>> {
        let ends = |p: &Self| matches!(p.peek(1).kind, Kind::End | Kind::Semicolon | Kind::Comma);
        let item = |p: &mut Self| match () {
            () if p.is("DEFAULT") && ends(p) => {
                p.advance();
                Ok(Using::Default)
            }
            () if p.is("IGNORE") && ends(p) => {
                p.advance();
                Ok(Using::Ignore)
            }
            () => p.expr().map(Using::Expr),
        };
        if self.eat_word("USING") { self.list(item) } else { Ok(Vec::new()) }
    }

    // ---- USE, KILL

    pub(super) fn use_statement(&mut self) -> SqlResult<Statement> {
        self.advance();
        Ok(Statement::Use(self.database_name()?))
    }

    /// Parses GET [CURRENT] DIAGNOSTICS.
    pub(super) fn get_diagnostics(&mut self) -> SqlResult<Statement> {
        self.advance();
        self.eat_word("CURRENT");
        self.expect_word("DIAGNOSTICS")?;
        if !self.eat_word("CONDITION") {
            let items = self.diagnostics_items(StatementInfo::of_word)?;
            return Ok(Statement::GetDiagnostics(GetDiagnostics::Statement(items)));
        }
        let at_number = self.error();
        let number = self.primary_expr()?;
        match &number {
            Expr::Literal(_) | Expr::Param(_) | Expr::UserVariable(_) | Expr::SystemVariable { .. } => {}
            Expr::Column(column) => {
                return Err(SqlError::unknown_column(&column.name, "GET DIAGNOSTICS"));
            }
            _ => return Err(at_number),
        }
        let items = self.diagnostics_items(ConditionInfo::of_word)?;
        Ok(Statement::GetDiagnostics(GetDiagnostics::Condition { number, items }))
    }

    /// Parses `target = NAME, ..`.
    fn diagnostics_items<T>(&mut self, named: impl Fn(&str) -> Option<T>) -> SqlResult<Vec<(Target, T)>> {
        self.list(|p| {
            let target = p.target()?;
            p.expect(Kind::Equal)?;
            let name = String::from_utf8_lossy(p.bytes(p.token())).to_ascii_uppercase();
            let Some(item) = named(&name) else { return Err(p.error()) };
            p.advance();
            Ok((target, item))
        })
    }

    pub(super) fn kill(&mut self) -> SqlResult<Statement> {
        self.advance();
        let soft = self.eat_word("SOFT");
        if !soft {
            self.eat_word("HARD");
        }
        let query = self.eat_word("QUERY");
        if !query {
            self.eat_word("CONNECTION");
        }
        let target = match () {
            () if query && self.eat_word("ID") => KillTarget::QueryId(self.expr()?),
            () if query && self.eat_word("USER") => KillTarget::QueriesOf(self.account()?),
            () if query => KillTarget::Query(self.expr()?),
            () if self.eat_word("USER") => KillTarget::ConnectionsOf(self.account()?),
            () => KillTarget::Connection(self.expr()?),
        };
        Ok(Statement::Kill(Kill { hard: !soft, target }))
    }
}
