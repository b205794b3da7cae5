//! MATCH .. AGAINST: finds the FULLTEXT index on exactly these columns.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{Expr, SearchMode, WordSource, match_against};
use cohort_sql::ast;
use cohort_types::{SqlError, SqlResult};

use super::{Binder, Relation};

fn no_index() -> SqlError {
    SqlError::no_full_text_index()
}

fn wrong_columns() -> SqlError {
    SqlError::wrong_arguments("MATCH")
}

impl Binder<'_> {
    pub(super) fn match_against(
        &self,
        columns: &[ast::Expr],
        text: &ast::Expr,
        mode: ast::MatchMode,
    ) -> SqlResult<Expr> {
        let mode = match mode {
            ast::MatchMode::Natural => SearchMode::Natural,
            ast::MatchMode::Boolean => SearchMode::Boolean,
            ast::MatchMode::Expansion => return Err(SqlError::not_supported("WITH QUERY EXPANSION")),
        };
        let text = self.expression(text)?;
        if !text.columns().is_empty() {
            return Err(SqlError::wrong_arguments("AGAINST"));
        }
        let mut bound: Vec<Expr> = Vec::with_capacity(columns.len());
        let mut wanted = Vec::with_capacity(columns.len());
        let mut base: Option<(usize, Arc<Table>)> = None;
        for column in columns {
            let column = self.expression(column)?;
            let Expr::Column(reference) = &column else { return Err(wrong_columns()) };
            let (first, table, n) = self.base_column(reference.ordinal)?;
            let is_other = |known: &(usize, Arc<Table>)| known.0 != first;
            if base.as_ref().is_some_and(is_other) {
                return Err(wrong_columns());
            }
            base = Some((first, table));
            // A column named twice counts once.
            if !wanted.contains(&n) {
                wanted.push(n);
                bound.push(column);
            }
        }
        let (_, base) = base.ok_or_else(no_index)?;
        let has_just_these = |index: &&cohort_catalog::Index| {
            index.kind.has_words()
                && !index.ignored
                && index.columns.len() == wanted.len()
                && index.columns.iter().all(|part| wanted.contains(&part.column))
        };
        let index = base.indexes.iter().find(has_just_these).ok_or_else(no_index)?;
        let source = WordSource {
            engine: Arc::from(base.engine.as_str()),
            index: index.id,
            rows: base.rows().id,
            collation: base.columns[index.columns[0].column].ty.collation,
        };
        match_against(bound, text, mode, source)
    }

    /// Finds the base table column with this number, here or in an outer query. Returns the number of the
    /// table's first column, the table, and the ordinal. Looks through views and derived tables that are
    /// merged.
    fn base_column(&self, number: usize) -> SqlResult<(usize, Arc<Table>, usize)> {
        let mut binder = self;
        while !binder.scope.holds(number) {
            binder = binder.outer.ok_or_else(wrong_columns)?;
        }
        let table = &binder.scope.tables[binder.scope.table_of(number)];
        let n = number - table.first_slot;
        match (&table.relation, &table.merged) {
            (Relation::Base(base), _) => Ok((table.first_slot, Arc::clone(base), n)),
            (_, Some(merged)) => merged[n].base.clone().ok_or_else(wrong_columns),
            _ => Err(no_index()),
        }
    }
}
