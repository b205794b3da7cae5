//! The functions that compute the rows of information_schema.

use super::schema_table::RowsOf;
use super::{
    commit_stages, events, foreign, innodb_tables, routines, rows_server, rows_tables, system_variables,
    transactions, triggers, view,
};

/// Returns the function that computes a table's rows. Tables about features that do not exist here are empty.
pub(super) fn rows_of(table: &str) -> RowsOf {
    match table {
        "SCHEMATA" => rows_tables::schemata,
        "TABLES" => rows_tables::tables,
        "COLUMNS" => rows_tables::columns,
        "STATISTICS" => rows_tables::statistics,
        "KEY_COLUMN_USAGE" => rows_tables::key_column_usage,
        "TABLE_CONSTRAINTS" => rows_tables::table_constraints,
        "REFERENTIAL_CONSTRAINTS" => foreign::referential_constraints,
        "INNODB_SYS_FOREIGN" => foreign::innodb_sys_foreign,
        "INNODB_SYS_FOREIGN_COLS" => foreign::innodb_sys_foreign_cols,
        "CHECK_CONSTRAINTS" => rows_tables::check_constraints,
        "VIEWS" => view::rows,
        "ROUTINES" => routines::routines,
        "PARAMETERS" => routines::parameters,
        "TRIGGERS" => triggers::rows,
        "EVENTS" => events::rows,
        "PARTITIONS" => rows_tables::partitions,
        "ENGINES" => rows_server::engines,
        "PROCESSLIST" => rows_server::processlist,
        "CHARACTER_SETS" => rows_server::character_sets,
        "COLLATIONS" => rows_server::collations,
        "COLLATION_CHARACTER_SET_APPLICABILITY" => rows_server::applicability,
        "GLOBAL_STATUS" => rows_server::global_status,
        "SESSION_STATUS" => rows_server::session_status,
        "GLOBAL_VARIABLES" => rows_server::global_variables,
        "SESSION_VARIABLES" => rows_server::session_variables,
        "APPLICABLE_ROLES" => rows_server::applicable_roles,
        "ENABLED_ROLES" => rows_server::enabled_roles,
        "USER_PRIVILEGES" => rows_server::user_privileges,
        "SCHEMA_PRIVILEGES" => rows_server::schema_privileges,
        "TABLE_PRIVILEGES" => rows_server::table_privileges,
        "COLUMN_PRIVILEGES" => rows_server::column_privileges,
        "SYSTEM_VARIABLES" => system_variables::rows,
        "COHORT_COMMIT_STAGES" => commit_stages::rows,
        "INNODB_TRX" => transactions::transactions,
        "INNODB_LOCKS" => transactions::locks,
        "INNODB_LOCK_WAITS" => transactions::lock_waits,
        "INNODB_BUFFER_POOL_STATS" => innodb_tables::buffer_pool_stats,
        "INNODB_BUFFER_PAGE" | "INNODB_BUFFER_PAGE_LRU" => innodb_tables::buffer_pages,
        "INNODB_METRICS" => innodb_tables::metrics,
        "INNODB_SYS_TABLES" => innodb_tables::sys_tables,
        "INNODB_SYS_TABLESPACES" => innodb_tables::sys_tablespaces,
        "INNODB_SYS_TABLESTATS" => innodb_tables::sys_tablestats,
        "INNODB_SYS_INDEXES" => innodb_tables::sys_indexes,
        "INNODB_SYS_FIELDS" => innodb_tables::sys_fields,
        "PLUGINS" | "ALL_PLUGINS" => super::plugins::rows,
        _ => |_, _, _| Ok(Vec::new()),
    }
}
