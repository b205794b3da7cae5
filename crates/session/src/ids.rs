//! Generators of table and index ids.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use cohort_base::{IndexId, TableId};
use cohort_catalog::{Catalog, CatalogChange};

/// Generates ids. The catalog records ids of committed statements. Ids of statements that have not committed
/// are known only here, and after a crash nothing refers to them.
#[derive(Debug, Default)]
pub struct Ids {
    table: AtomicU64,
    index: AtomicU32,
}

impl Ids {
    /// Returns a new table id.
    pub fn table(&self, catalog: &Catalog) -> TableId {
        self.table.fetch_max(catalog.next_table.0, Ordering::Relaxed);
        TableId(self.table.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns a new index id.
    pub fn index(&self, catalog: &Catalog) -> IndexId {
        self.index.fetch_max(catalog.next_index.0, Ordering::Relaxed);
        IndexId(self.index.fetch_add(1, Ordering::Relaxed))
    }

    /// Marks an index id as used, because a crash left data in that index. The engine has freed it, but may
    /// refuse to load into it before its next checkpoint.
    pub fn pass(&self, index: IndexId) {
        self.index.fetch_max(index.0 + 1, Ordering::Relaxed);
    }

    /// Returns the catalog change that records the newest ids.
    pub fn change(&self) -> CatalogChange {
        CatalogChange::NextIds {
            table: TableId(self.table.load(Ordering::Relaxed)),
            index: IndexId(self.index.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_start_where_the_catalog_stands_and_never_repeat() {
        let catalog = Catalog { next_table: TableId(5), next_index: IndexId(40), ..Catalog::default() };
        let ids = Ids::default();
        assert_eq!([ids.table(&catalog), ids.table(&catalog)], [TableId(5), TableId(6)]);
        assert_eq!([ids.index(&catalog), ids.index(&catalog)], [IndexId(40), IndexId(41)]);
        ids.pass(IndexId(7));
        assert_eq!(ids.change(), CatalogChange::NextIds { table: TableId(7), index: IndexId(42) });
    }
}
