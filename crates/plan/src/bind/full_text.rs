//! MATCH .. AGAINST: which FULLTEXT index has just these columns.

use std::sync::Arc;

use cohort_catalog::IndexKind;
use cohort_expr::{Expr, SearchMode, WordSource, match_against};
use cohort_sql::ast;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use super::{Binder, Relation, not_supported};

fn no_index() -> SqlError {
    let text = "Can't find FULLTEXT index matching the column list";
    SqlError::new(ErrorCode::FtMatchingKeyNotFound, text)
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
            ast::MatchMode::Expansion => return Err(not_supported("WITH QUERY EXPANSION")),
        };
        let mut bound = Vec::with_capacity(columns.len());
        let mut slots = Vec::with_capacity(columns.len());
        for column in columns {
            let ast::Expr::Column(name) = column else { return Err(no_index()) };
            bound.push(self.expression(column)?);
            slots.push(self.scope.column(name, self.clause)?);
        }
        let table = &self.scope.tables[self.scope.table_of(slots[0])];
        let Relation::Base(base) = &table.relation else { return Err(no_index()) };
        let ordinal = |slot: usize| slot.checked_sub(table.first_slot).filter(|n| *n < table.columns.len());
        let wanted: Option<Vec<usize>> = slots.iter().map(|slot| ordinal(*slot)).collect();
        let wanted = wanted.ok_or_else(no_index)?;
        let has_just_these = |index: &&cohort_catalog::Index| {
            index.kind == IndexKind::FullText
                && !index.ignored
                && index.columns.len() == wanted.len()
                && index.columns.iter().all(|part| wanted.contains(&part.column))
        };
        let index = base.indexes.iter().find(has_just_these).ok_or_else(no_index)?;
        let source = WordSource {
            engine: Arc::from(base.engine.as_str()),
            index: index.id,
            rows: base.clustered().id,
            collation: base.columns[index.columns[0].column].ty.collation,
        };
        match_against(bound, self.expression(text)?, mode, source)
    }
}
