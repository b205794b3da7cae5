//! `--binlog-do-db` and `--binlog-ignore-db`: the databases whose changes are logged.
//!
//! Row changes are filtered by the database of their table, statements by the database in their event. If
//! both options are given, only the first one counts, as in MariaDB.

use cohort_config::{Globals, VarId};

/// Filter by database. Without lists it passes everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinlogFilter {
    only: Vec<String>,
    not: Vec<String>,
}

impl BinlogFilter {
    /// Builds the filter from the options, which are comma-separated names.
    pub fn of(globals: &Globals) -> BinlogFilter {
        let list = |id| {
            let text = globals.text(id).unwrap_or_default();
            text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        BinlogFilter { only: list(VarId::BinlogDoDb), not: list(VarId::BinlogIgnoreDb) }
    }

    /// Returns whether changes in this database are logged; always true without a database.
    pub fn lets_pass(&self, schema: &str) -> bool {
        if schema.is_empty() {
            return true;
        }
        match self.only.is_empty() {
            true => !self.not.iter().any(|name| name == schema),
            false => self.only.iter().any(|name| name == schema),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn do_db_decides_over_ignore_db() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        let filter = BinlogFilter { only: names(&["a"]), not: names(&["a", "b"]) };
        assert!(filter.lets_pass("a") && !filter.lets_pass("c") && filter.lets_pass(""));
        let filter = BinlogFilter { only: Vec::new(), not: names(&["b"]) };
        assert!(filter.lets_pass("a") && !filter.lets_pass("b"));
        assert!(BinlogFilter::default().lets_pass("x"));
    }
}
