//! WITH: named queries that FROM may use as if they were derived tables.

use cohort_sql::ast;
use cohort_types::SqlResult;

use crate::bind::not_supported;

/// The common tables in sight, innermost last.
#[derive(Clone, Default)]
pub(super) struct CommonTables<'q> {
    tables: Vec<&'q ast::CommonTable>,
}

/// A common table's query with the common tables that it sees.
pub(super) type Found<'q> = (&'q ast::Query, CommonTables<'q>);

impl<'q> CommonTables<'q> {
    /// With those of an inner WITH.
    pub(super) fn with<'n>(&self, with: Option<&'n ast::With>) -> SqlResult<CommonTables<'n>>
    where
        'q: 'n,
    {
        let mut tables: Vec<&'n ast::CommonTable> = self.tables.clone();
        if let Some(with) = with {
            if with.recursive {
                return Err(not_supported("WITH RECURSIVE"));
            }
            tables.extend(&with.tables);
        }
        Ok(CommonTables { tables })
    }

    /// A common table by name, and the names of its columns. It sees those before it.
    pub(super) fn find(&self, name: &str) -> Option<(Found<'q>, &'q [String])> {
        let at = self.tables.iter().rposition(|t| t.name.eq_ignore_ascii_case(name))?;
        let table = self.tables[at];
        let before = CommonTables { tables: self.tables[..at].to_vec() };
        Some(((&table.query, before), &table.columns))
    }
}
