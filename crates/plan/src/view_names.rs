//! Names used in the query of a view.

use cohort_catalog::View;
use cohort_sql::ast;
use cohort_types::SqlResult;

use crate::view::view_query;

/// Returns the base tables and views that a view's text names: schema, name and alias.
pub fn named_tables(view: &View) -> SqlResult<Vec<(String, String, String)>> {
    let mut looks = UsedNames::default();
    view_query(view)?.rename(&mut looks);
    Ok(looks.tables)
}

/// Names used in a query.
#[derive(Default)]
pub struct UsedNames {
    /// Schema, name and alias of each table.
    pub tables: Vec<(String, String, String)>,
    pub variable: bool,
    pub json_table: bool,
}

impl ast::Rename for UsedNames {
    fn json_table(&mut self) {
        self.json_table = true;
    }

    fn table(&mut self, table: &mut ast::TableFactor) {
        let alias = table.alias.clone().unwrap_or_else(|| table.name.name.clone());
        self.tables.push((table.name.db.clone().unwrap_or_default(), table.name.name.clone(), alias));
    }

    fn variable(&mut self) {
        self.variable = true;
    }
}
