//! Changes of the `mysql` tables that show accounts: `global_priv`, `user`, `db`, `tables_priv`,
//! `columns_priv`, `procs_priv`, `roles_mapping`, `proxies_priv`.
//!
//! These tables are virtual: reads generate them from the catalog. Tools written for MariaDB
//! (`mariadb-secure-installation`) change them nevertheless. A change of their rows is therefore translated
//! into the equivalent account statements, which run one after the other:
//!
//! ```text
//! UPDATE mysql.global_priv SET .. WHERE ..
//!   -> SELECT *, new values FROM mysql.global_priv WHERE ..     the affected rows and their new values
//!   -> ALTER USER .., GRANT .., REVOKE ..                       `statements`
//!   -> each with its own privilege checks, commit and binary log event
//! ```
//!
//! A stored table of the same name, which a dump creates, replaces a virtual table: `replaced`.
//!
//! # Differences to MariaDB
//! The change takes effect immediately, without FLUSH PRIVILEGES. The session needs the privileges of the
//! account statements in addition to those on the table, so no account can grant itself a privilege that it
//! lacks. Deleting a row of `global_priv` also removes all privileges of the account.
//!
//! # On failure
//! Statements before the failed one stay in effect, like changes of MariaDB's non-transactional tables.
//!
//! # Missing
//! Joined changes, RETURNING and ON DUPLICATE KEY UPDATE return error 1235. A privilege on a table that does
//! not exist cannot be inserted (1146).

mod description;
mod grants;
mod replaced;
mod replaced_programs;
mod statements;
mod tables;

use cohort_plan::ParamSource;
use cohort_protocol::{NullSink, ResultSink};
use cohort_session::access::check_grants;
use cohort_session::{Job, SessionState, row_target};
use cohort_sql::ast::{
    Assignment, Delete, Expr, Insert, InsertSource, Limit, OrderItem, Query, QueryBody, Select, SelectItem,
    Statement, TableRef, Update,
};
use cohort_sql::{ParseOptions, Plannable};
use cohort_types::{ErrorCode, Level, Privilege, SqlError, SqlResult, Value, Warning};

use self::grants::GrantRows;
pub(crate) use self::tables::AccountTable;
use self::tables::{Row, SCHEMA};
use crate::session::Session;

/// Returns the account table that a statement changes, `None` if it changes another table or none.
pub(crate) fn changed_by(session: &SessionState, statement: &Statement) -> Option<AccountTable> {
    let name = row_target(&statement.plannable()?)?;
    // This runs at each execution of a prepared statement; most return at the schema check.
    let schema = name.db.as_deref().or(session.current_schema.as_deref()).filter(|name| *name == SCHEMA)?;
    let (_, table) = AccountTable::ALL.iter().find(|(known, _)| *known == name.name)?;
    let is_hidden = session.temporary.find(schema, &name.name).is_some()
        || session.db.virtual_table(schema, &name.name).is_none();
    (!is_hidden).then_some(*table)
}

impl Session {
    /// Runs an INSERT, UPDATE or DELETE on an account table.
    pub(crate) fn change_account_table(
        &mut self,
        table: AccountTable,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        cohort_query::guards::check_read_only(&self.state)?;
        if self.trx.may_only_read(false) {
            return Err(SqlError::read_only_transaction());
        }
        let changed = match statement.plannable() {
            Some(Plannable::Delete(delete)) => self.delete_account_rows(table, delete, job)?,
            Some(Plannable::Update(update)) => self.update_account_rows(table, update, job)?,
            Some(Plannable::Insert(insert)) => self.insert_account_rows(table, insert, job)?,
            Some(Plannable::Query(_)) | None => unreachable!("found by changed_by"),
        };
        self.state.settings.env.row_count = changed as i64;
        self.send_ok(job.more, changed, 0, "", sink);
        Ok(())
    }

    fn delete_account_rows(&mut self, table: AccountTable, delete: &Delete, job: &Job<'_>) -> SqlResult<u64> {
        if !delete.targets.is_empty() || !delete.returning.is_empty() {
            return Err(SqlError::not_supported("joined changes and RETURNING of tables of accounts"));
        }
        check_grants(&self.state, Privilege::Delete, SCHEMA, table.name())?;
        let asked = Asked {
            from: &delete.from,
            new: &[],
            filter: &delete.filter,
            order_by: &delete.order_by,
            limit: &delete.limit,
        };
        let rows = self.account_rows(table, asked, job)?;
        for (row, _) in &rows {
            let catalog = self.state.db.catalog();
            let list = match GrantRows::of(table) {
                Some(rows) => statements::changed_grants(&catalog, rows, Some(row), None)?,
                None if table.has_programs() => statements::program_removal(row),
                None => statements::removal(&catalog, row),
            };
            self.run_all(&list)?;
        }
        Ok(rows.len() as u64)
    }

    fn update_account_rows(&mut self, table: AccountTable, update: &Update, job: &Job<'_>) -> SqlResult<u64> {
        if table == AccountTable::User {
            let is_name =
                |column: &str| ["Host", "User"].iter().any(|known| known.eq_ignore_ascii_case(column));
            let mut columns = update.assignments.iter().map(|assignment| &assignment.column.name);
            if let Some(column) = columns.find(|column| !is_name(column)) {
                return Err(SqlError::column_not_updatable(column));
            }
        }
        check_grants(&self.state, Privilege::Update, SCHEMA, table.name())?;
        let values: Vec<Expr> = update.assignments.iter().map(|it| it.value.clone()).collect();
        let asked = Asked {
            from: &update.tables,
            new: &values,
            filter: &update.filter,
            order_by: &update.order_by,
            limit: &update.limit,
        };
        let mut changed = 0;
        for (old, new_values) in self.account_rows(table, asked, job)? {
            if table.has_programs() {
                return Err(SqlError::target_not_updatable(table.name(), "UPDATE"));
            }
            let new = assigned(&old, &update.assignments, new_values)?;
            if new != old {
                self.apply_new_row(table, Some(&old), &new)?;
                changed += 1;
            }
        }
        Ok(changed)
    }

    fn insert_account_rows(&mut self, table: AccountTable, insert: &Insert, job: &Job<'_>) -> SqlResult<u64> {
        let has_rows = table != AccountTable::User && !table.has_programs();
        if !insert.on_duplicate.is_empty() || !insert.returning.is_empty() || !has_rows {
            return Err(SqlError::not_supported("this INSERT into a table of accounts"));
        }
        check_grants(&self.state, Privilege::Insert, SCHEMA, table.name())?;
        if insert.replace {
            check_grants(&self.state, Privilege::Delete, SCHEMA, table.name())?;
        }
        let names = self.account_columns(table);
        let columns: Vec<&str> = match insert.columns.is_empty() {
            true => names.clone(),
            false => insert.columns.iter().map(String::as_str).collect(),
        };
        let place = |column: &&str| {
            let place = names.iter().position(|known| known.eq_ignore_ascii_case(column));
            place.ok_or_else(|| SqlError::unknown_column(column, table.name()))
        };
        let places = columns.iter().map(place).collect::<SqlResult<Vec<usize>>>()?;
        let mut changed = 0;
        for (n, values) in self.inserted_values(&insert.source, job)?.into_iter().enumerate() {
            if values.len() != places.len() {
                return Err(SqlError::value_count(n as u64 + 1));
            }
            let mut new = Row { values: vec![Value::text(""); names.len()], names: names.clone() };
            for (place, value) in places.iter().zip(values) {
                new.values[*place] = value;
            }
            let replaced = (insert.replace && self.has_account_row(table, &new)).then(|| new.clone());
            match self.apply_new_row(table, replaced.as_ref(), &new) {
                Err(error) if insert.ignore && error.code == ErrorCode::DupEntry => {
                    self.diagnostics.push(Warning { level: Level::Warning, error });
                }
                outcome => {
                    outcome?;
                    changed += 1;
                }
            }
        }
        Ok(changed)
    }

    /// Returns the rows that an INSERT adds. DEFAULT is an empty value.
    fn inserted_values(&mut self, source: &InsertSource, job: &Job<'_>) -> SqlResult<Vec<Vec<Value>>> {
        let rows = match source {
            InsertSource::Query(query) => return self.query_rows(query, job),
            InsertSource::Values(rows) => rows,
        };
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let value = |expr: &Expr| match expr {
                Expr::Default(None) => Ok(Value::text("")),
                expr => self.eval_alone(expr, job),
            };
            found.push(row.iter().map(value).collect::<SqlResult<_>>()?);
        }
        Ok(found)
    }

    /// Returns whether a table has a row with the key of this one.
    fn has_account_row(&self, table: AccountTable, row: &Row) -> bool {
        let catalog = self.state.db.catalog();
        let account = catalog.accounts.get(&row.account());
        account.is_some_and(|account| GrantRows::of(table).is_none_or(|rows| (rows.has)(account, row)))
    }

    fn apply_new_row(&mut self, table: AccountTable, old: Option<&Row>, new: &Row) -> SqlResult<()> {
        let described = match table {
            AccountTable::GlobalPriv => Some(self.described_account(new)?),
            _ => None,
        };
        let catalog = self.state.db.catalog();
        let list = match (&described, GrantRows::of(table)) {
            (Some(described), _) => statements::new_account_row(&catalog, old, described)?,
            (None, Some(rows)) => statements::changed_grants(&catalog, rows, old, Some(new))?,
            (None, None) => statements::renaming(old, new),
        };
        self.run_all(&list)
    }

    fn account_columns(&self, table: AccountTable) -> Vec<&'static str> {
        let found = self.state.db.virtual_tables.find(SCHEMA, table.name());
        let columns = found.expect("the tables of accounts are there");
        columns.columns().iter().map(|column| column.name).collect()
    }

    /// Returns the rows that a change affects, each with its new values.
    fn account_rows(
        &mut self,
        table: AccountTable,
        asked: Asked<'_>,
        job: &Job<'_>,
    ) -> SqlResult<Vec<(Row, Vec<Value>)>> {
        let names = self.account_columns(table);
        let rows = self.query_rows(&asked.query(), job)?;
        let split = |mut values: Vec<Value>| {
            let new = values.split_off(names.len());
            (Row { names: names.clone(), values }, new)
        };
        Ok(rows.into_iter().map(split).collect())
    }

    /// Runs account statements as if the client had sent them. The server generated their text, so they are
    /// parsed, and logged for replicas, without the SQL modes that affect parsing.
    fn run_all(&mut self, texts: &[String]) -> SqlResult<()> {
        let kept = (self.state.settings.env.sql_mode, self.state.settings.parse);
        let own = (cohort_ddl::mode_of_own_texts(kept.0), ParseOptions::default());
        (self.state.settings.env.sql_mode, self.state.settings.parse) = own;
        let outcome = self.run_own(texts);
        (self.state.settings.env.sql_mode, self.state.settings.parse) = kept;
        outcome
    }

    fn run_own(&mut self, texts: &[String]) -> SqlResult<()> {
        for text in texts {
            let parsed = cohort_sql::parse_own(text)?;
            let (text, source) = (text.as_bytes(), ParamSource::Literals);
            let job = Job { text, param_at: &[], params: &[], source, more: false };
            // The client gets one reply for the change, none for its account statements.
            self.run_statement(&parsed.statement, &job, None, &mut NullSink)?;
        }
        Ok(())
    }
}

/// Parts of the SELECT that finds the rows to change.
struct Asked<'s> {
    from: &'s TableRef,
    new: &'s [Expr],
    filter: &'s Option<Expr>,
    order_by: &'s [OrderItem],
    limit: &'s Option<Limit>,
}

impl Asked<'_> {
    fn query(&self) -> Query {
        let value = |expr: &Expr| SelectItem::Expr { expr: expr.clone(), alias: None, text: String::new() };
        let items = std::iter::once(SelectItem::Wildcard).chain(self.new.iter().map(value)).collect();
        let select =
            Select { from: Some(self.from.clone()), filter: self.filter.clone(), ..Select::of(items) };
        Query {
            order_by: self.order_by.to_vec(),
            limit: self.limit.clone(),
            ..Query::of(QueryBody::Select(Box::new(select)))
        }
    }
}

/// Returns the row after its assignments.
fn assigned(old: &Row, assignments: &[Assignment], values: Vec<Value>) -> SqlResult<Row> {
    let mut new = old.clone();
    for (Assignment { column, .. }, value) in assignments.iter().zip(values) {
        let place = new.names.iter().position(|known| known.eq_ignore_ascii_case(&column.name));
        let place = place.ok_or_else(|| SqlError::unknown_column(&column.name, "UPDATE"))?;
        // Columns of these tables are texts.
        new.values[place] = Value::text(value.to_text());
    }
    let as_texts = |row: &Row| row.names.iter().map(|name| row.text(name)).collect::<Vec<_>>();
    if as_texts(&new) == as_texts(old) { Ok(old.clone()) } else { Ok(new) }
}
