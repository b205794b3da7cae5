//! INSERT, REPLACE, UPDATE, DELETE, DO.

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use crate::ast::{
    Assignment, Delete, Expr, Insert, InsertSource, ObjectName, Query, QueryBody, SelectItem, Statement,
    TableFactor, TableRef, Update,
};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn insert(&mut self) -> SqlResult<Statement> {
        let replace = self.is("REPLACE");
        self.advance();
        if !(replace && self.is("HIGH_PRIORITY")) {
            self.eat_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"]);
        }
        let ignore = !replace && self.eat_word("IGNORE");
        self.eat_word("INTO");
        let table = self.object_name()?;
        let partitions = if self.eat_word("PARTITION") { self.paren_list(Self::name)? } else { Vec::new() };
        let mut columns = Vec::new();
        if self.kind() == Kind::LeftParen && !self.query_follows(1) {
            columns = self.insert_columns()?;
        }
        let source = if self.eat_any(&["VALUES", "VALUE"]) {
            let rows = self.list(Self::insert_row)?;
            match self.set_operator().is_some() || self.is_any(&["ORDER", "LIMIT"]) {
                true => InsertSource::Query(Box::new(self.query_of_values(rows)?)),
                false => InsertSource::Values(rows),
            }
        } else if columns.is_empty() && self.eat_word("SET") {
            let (names, values) =
                self.list(Self::assignment)?.into_iter().map(|a| (a.column.name, a.value)).unzip();
            columns = names;
            InsertSource::Values(vec![values])
        } else {
            if !self.query_follows(0) {
                return Err(self.error());
            }
            InsertSource::Query(Box::new(self.nameless(Self::query)?))
        };
        let mut on_duplicate = Vec::new();
        if !replace && self.eat_words(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            self.in_on_duplicate = true;
            on_duplicate = self.list(Self::assignment)?;
            self.in_on_duplicate = false;
        }
        let returning = self.returning()?;
        Ok(Statement::Insert(Box::new(Insert {
            replace,
            ignore,
            table,
            partitions,
            columns,
            source,
            on_duplicate,
            returning,
        })))
    }

    /// Parses the rest of a query that starts with the rows of an INSERT.
    fn query_of_values(&mut self, rows: Vec<Vec<Expr>>) -> SqlResult<Query> {
        if rows.iter().flatten().any(|value| matches!(value, Expr::Default(None))) {
            return Err(SqlError::not_allowed_here("default"));
        }
        self.nameless(|p| {
            let body = p.set_operations(QueryBody::Values(rows))?;
            p.finish_query(None, body)
        })
    }

    fn insert_columns(&mut self) -> SqlResult<Vec<String>> {
        self.expect(Kind::LeftParen)?;
        if self.eat(Kind::RightParen) {
            return Ok(Vec::new());
        }
        let columns = self.list(|p| Ok(p.column_ref()?.name))?;
        self.expect(Kind::RightParen)?;
        Ok(columns)
    }

    fn insert_row(&mut self) -> SqlResult<Vec<Expr>> {
        self.expect(Kind::LeftParen)?;
        if self.eat(Kind::RightParen) {
            return Ok(Vec::new());
        }
        let row = self.list(Self::value_or_default)?;
        self.expect(Kind::RightParen)?;
        Ok(row)
    }

    /// Parses an expression or DEFAULT.
    fn value_or_default(&mut self) -> SqlResult<Expr> {
        if self.is("DEFAULT") && self.peek(1).kind != Kind::LeftParen {
            self.advance();
            return Ok(Expr::Default(None));
        }
        if self.is("IGNORE") {
            return Err(self.unsupported("IGNORE as a value"));
        }
        self.expr()
    }

    pub(super) fn assignment(&mut self) -> SqlResult<Assignment> {
        let column = self.column_ref()?;
        if !self.eat(Kind::Equal) {
            self.expect(Kind::Assign)?;
        }
        let value = self.value_or_default()?;
        Ok(Assignment { column, value })
    }

    fn returning(&mut self) -> SqlResult<Vec<SelectItem>> {
        if self.eat_word("RETURNING") { self.list(Self::select_item) } else { Ok(Vec::new()) }
    }

    pub(super) fn update(&mut self) -> SqlResult<Statement> {
        self.advance();
        self.eat_word("LOW_PRIORITY");
        let ignore = self.eat_word("IGNORE");
        let tables = self.table_refs()?;
        if self.is_all(&["FOR", "PORTION"]) {
            return Err(self.unsupported("FOR PORTION OF"));
        }
        self.expect_word("SET")?;
        let assignments = self.list(Self::assignment)?;
        let filter = self.filter()?;
        let order_by = self.order_by()?;
        let limit = self.change_limit()?;
        Ok(Statement::Update(Box::new(Update { ignore, tables, assignments, filter, order_by, limit })))
    }

    fn filter(&mut self) -> SqlResult<Option<Expr>> {
        if self.eat_word("WHERE") { self.expr().map(Some) } else { Ok(None) }
    }

    pub(super) fn delete(&mut self) -> SqlResult<Statement> {
        self.advance();
        let (mut ignore, mut quick) = (false, false);
        loop {
            match () {
                () if self.eat_word("LOW_PRIORITY") => {}
                () if self.eat_word("QUICK") => quick = true,
                () if self.eat_word("IGNORE") => ignore = true,
                () => break,
            }
        }
        let (targets, from) =
            if self.eat_word("FROM") { self.delete_from()? } else { self.delete_targets_first()? };
        if self.is_all(&["FOR", "PORTION"]) {
            return Err(self.unsupported("FOR PORTION OF"));
        }
        let filter = self.filter()?;
        let (order_by, limit, returning) = if targets.is_empty() {
            (self.order_by()?, self.change_limit()?, self.returning()?)
        } else {
            (Vec::new(), None, Vec::new())
        };
        Ok(Statement::Delete(Box::new(Delete {
            ignore,
            quick,
            targets,
            from,
            filter,
            order_by,
            limit,
            returning,
        })))
    }

    /// Parses the tables of `DELETE FROM t ...` or `DELETE FROM t, u USING refs`.
    fn delete_from(&mut self) -> SqlResult<(Vec<ObjectName>, TableRef)> {
        let start = self.at;
        let targets = self.list(Self::delete_target)?;
        if self.eat_word("USING") {
            return Ok((targets, self.table_refs()?));
        }
        if targets.len() > 1 || self.tokens[self.at - 1].kind == Kind::Star {
            return Err(self.error());
        }
        self.at = start;
        let name = self.object_name()?;
        let partitions = if self.eat_word("PARTITION") { self.paren_list(Self::name)? } else { Vec::new() };
        let table = TableFactor { name, alias: None, index_hints: Vec::new(), partitions };
        Ok((Vec::new(), TableRef::Table(Box::new(table))))
    }

    /// Parses the tables of `DELETE t, u FROM refs`.
    fn delete_targets_first(&mut self) -> SqlResult<(Vec<ObjectName>, TableRef)> {
        let targets = self.list(Self::delete_target)?;
        self.expect_word("FROM")?;
        Ok((targets, self.table_refs()?))
    }

    /// Parses `t`, `db.t` or `t.*`.
    fn delete_target(&mut self) -> SqlResult<ObjectName> {
        let mut name = ObjectName { db: None, name: self.name()? };
        while self.eat(Kind::Dot) {
            if self.eat(Kind::Star) {
                break;
            }
            let table = self.name_after_dot()?;
            name = ObjectName { db: Some(name.name), name: table };
        }
        Ok(name)
    }

    pub(super) fn do_statement(&mut self) -> SqlResult<Statement> {
        self.advance();
        Ok(Statement::Do(self.list(Self::expr)?))
    }
}
