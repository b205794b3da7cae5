//! Shared by the replication tests: a passive replica, and the comparison of two servers' rows.

#![allow(dead_code)] // each test file uses only a part

pub mod dump_client;

use crate::support::{Cohort, Maria};

/// Compares all tables of both servers with CHECKSUM TABLE.
pub fn assert_equal(cohort: &Cohort, replica: &Maria) {
    replica.wait_for(&cohort.sql("SELECT @@gtid_binlog_pos"));
    let tables = cohort.sql(
        "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables \
         WHERE table_schema IN ('sb', 'shop') ORDER BY 1",
    );
    assert!(!tables.is_empty());
    let list = tables.lines().collect::<Vec<_>>().join(", ");
    assert_eq!(cohort.sql(&format!("CHECKSUM TABLE {list}")), replica.sql(&format!("CHECKSUM TABLE {list}")));
    for table in tables.lines() {
        let create = format!("SHOW CREATE TABLE {table}");
        let columns =
            |text: String| text.replace("ENGINE=ROCKSDB", "ENGINE=InnoDB").matches("\\n  `").count();
        assert_eq!(columns(cohort.sql(&create)), columns(replica.sql(&create)), "{table}");
    }
}
