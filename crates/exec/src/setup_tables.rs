//! UPDATE of `performance_schema.setup_%`: which statements are kept one by one.
//!
//! Consumers of statements can be switched. Everything else that these tables list is always measured, so an
//! UPDATE that would change it is rejected, and one that changes nothing is accepted: tools turn on what they
//! need.

use cohort_observe::Consumer;
use cohort_protocol::ResultSink;
use cohort_session::access::check_grants;
use cohort_session::{Job, SessionState, row_target};
use cohort_sql::Plannable;
use cohort_sql::ast::{ColumnRef, Expr, Query, QueryBody, Select, SelectItem, Statement, Update};
use cohort_types::{Privilege, SqlError, SqlResult, Value};

use crate::session::Session;

const SCHEMA: &str = "performance_schema";

/// The consumers that can be switched.
pub(crate) const CONSUMERS: [(&str, Consumer); 3] = [
    ("events_statements_current", Consumer::Current),
    ("events_statements_history", Consumer::History),
    ("events_statements_history_long", Consumer::HistoryLong),
];

/// Tables of which rows may be updated, with the columns that may be named.
const TABLES: [(&str, &[&str]); 5] = [
    ("setup_actors", &["ENABLED", "HISTORY"]),
    ("setup_consumers", &["ENABLED"]),
    ("setup_instruments", &["ENABLED", "TIMED"]),
    ("setup_objects", &["ENABLED", "TIMED"]),
    ("threads", &["INSTRUMENTED", "HISTORY"]),
];

/// Returns the table of `performance_schema` that an UPDATE changes, if its rows may be updated.
pub(crate) fn updated_by<'s>(
    session: &SessionState,
    statement: &'s Statement,
) -> Option<(&'static str, &'s Update)> {
    let plannable = statement.plannable()?;
    let Plannable::Update(update) = plannable else { return None };
    let name = row_target(&plannable)?;
    let schema = name.db.as_deref().or(session.current_schema.as_deref());
    schema.filter(|schema| schema.eq_ignore_ascii_case(SCHEMA))?;
    let known = TABLES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name.name))?;
    Some((known.0, update))
}

impl Session {
    /// Runs an UPDATE of such a table.
    pub(crate) fn update_setup(
        &mut self,
        (table, update): (&'static str, &Update),
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        check_grants(&self.state, Privilege::Update, SCHEMA, table)?;
        let columns =
            TABLES.iter().find(|(known, _)| *known == table).map_or(&[][..], |(_, columns)| columns);
        let mut items = Vec::new();
        let item = |expr| SelectItem::Expr { expr, alias: None, text: String::new() };
        for assignment in &update.assignments {
            let name = &assignment.column.name;
            if !columns.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                return Err(SqlError::column_not_updatable(name));
            }
            items.push(item(Expr::Column(assignment.column.clone())));
            items.push(item(assignment.value.clone()));
        }
        if table == "setup_consumers" {
            let name = ColumnRef { db: None, table: None, name: "NAME".to_owned() };
            items.push(item(Expr::Column(name)));
        }
        let select =
            Select { from: Some(update.tables.clone()), filter: update.filter.clone(), ..Select::of(items) };
        let query = Query {
            order_by: update.order_by.clone(),
            limit: update.limit.clone(),
            ..Query::of(QueryBody::Select(Box::new(select)))
        };
        let mut changed = 0;
        for (n, row) in self.query_rows(&query, job)?.into_iter().enumerate() {
            let (pairs, rest) = row.split_at(2 * update.assignments.len());
            for (assignment, pair) in update.assignments.iter().zip(pairs.chunks(2)) {
                let (old, new) = (pair[0].to_text(), pair[1].to_text().to_ascii_uppercase());
                if !matches!(new.as_str(), "YES" | "NO") || pair[1].is_null() {
                    return Err(SqlError::data_truncated(&assignment.column.name, n as u64 + 1));
                }
                if new != old {
                    self.switch(table, rest.first(), new == "YES")?;
                    changed += 1;
                }
            }
        }
        self.state.settings.env.row_count = changed as i64;
        self.send_ok(job.more, changed, 0, "", sink);
        Ok(())
    }

    fn switch(&self, table: &str, name: Option<&Value>, is_on: bool) -> SqlResult<()> {
        let name = name.map(Value::to_text);
        let consumer = CONSUMERS.iter().find(|(known, _)| Some(*known) == name.as_deref());
        let Some((_, consumer)) = consumer else {
            let what = name.as_deref().unwrap_or(table);
            return Err(SqlError::not_supported(&format!("switching {what} on or off")));
        };
        self.state.db.events.set(*consumer, is_on);
        Ok(())
    }
}
