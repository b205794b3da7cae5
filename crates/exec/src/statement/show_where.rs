//! WHERE of SHOW with subqueries and stored functions.
//!
//! SHOW evaluates other conditions itself. A condition that runs statements is planned, with its privileges
//! and locks, as that of a query over the rows of the listing.

use cohort_info::Listing;
use cohort_plan::calls_back;
use cohort_session::Job;
use cohort_sql::ast::{self, Expr, Query, QueryBody, Select, SelectItem, TableRef};
use cohort_types::{SqlResult, Value};

use crate::session::Session;

/// The column with the number of the row.
const ROW: &str = "\0row";
/// The name of the listing.
const LISTING: &str = "SHOW";

/// Splits a SHOW whose WHERE calls back into one without WHERE and the condition.
pub(crate) fn calling_back(show: &ast::Show) -> Option<(ast::Show, Expr)> {
    cohort_info::without_where(show).filter(|(_, condition)| calls_back(condition))
}

impl Session {
    /// Keeps the rows of a listing for which a condition holds.
    pub(super) fn keep_rows(
        &mut self,
        listing: &mut Listing,
        condition: Expr,
        job: &Job<'_>,
    ) -> SqlResult<()> {
        let found = self.query_listing(&query_over(listing, condition), job)?;
        let mut rows = std::mem::take(&mut listing.rows);
        let number = |row: &Vec<Value>| match row.first() {
            Some(Value::Int(n)) => usize::try_from(*n).ok(),
            _ => None,
        };
        let mut numbers: Vec<usize> = found.iter().filter_map(number).collect();
        numbers.sort_unstable();
        listing.rows = numbers.into_iter().map(|n| std::mem::take(&mut rows[n])).collect();
        Ok(())
    }
}

/// Returns `SELECT row FROM (VALUES ..) AS SHOW (row, ..) WHERE condition`.
fn query_over(listing: &Listing, condition: Expr) -> Query {
    let literal = |value: Value| Expr::Literal(ast::Literal::fixed(value));
    let names = listing.meta().into_iter().map(|column| column.name);
    let columns: Vec<String> = std::iter::once(ROW.to_owned()).chain(names).collect();
    let row = |(n, row): (usize, &Vec<Value>)| {
        let values = row.iter().cloned().map(literal);
        std::iter::once(literal(Value::Int(n as i64))).chain(values).collect::<Vec<Expr>>()
    };
    let mut rows: Vec<Vec<Expr>> = listing.rows.iter().enumerate().map(row).collect();
    // VALUES has at least one row.
    let is_empty = rows.is_empty();
    if is_empty {
        rows.push(columns.iter().map(|_| literal(Value::Null)).collect());
    }
    let number = ast::ColumnRef { db: None, table: Some(LISTING.to_owned()), name: ROW.to_owned() };
    let item = SelectItem::Expr { expr: Expr::Column(number), alias: None, text: String::new() };
    let from = TableRef::Derived {
        query: Box::new(Query::of(QueryBody::Values(rows))),
        alias: LISTING.to_owned(),
        columns,
    };
    let select = Select { from: Some(from), filter: Some(condition), ..Select::of(vec![item]) };
    let mut query = Query::of(QueryBody::Select(Box::new(select)));
    if is_empty {
        query.limit = Some(ast::Limit { count: literal(Value::Int(0)), offset: None, with_ties: false });
    }
    query
}
