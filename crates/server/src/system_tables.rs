//! The stored tables of the schema `mysql`.

use cohort_base::ConnectionId;
use cohort_exec::{Origin, STORED_TABLES, create_text_of_mysql};

use crate::error_log::ErrorLog;
use crate::init_file;
use crate::sql_backend::SqlBackend;

/// Creates the tables that are missing: all in a new data directory or in one of an earlier build, and those
/// that an administrator has dropped. Without room for them the server starts, too.
pub fn create_missing(backend: &SqlBackend, id: ConnectionId, log: &ErrorLog) {
    let db = backend.database();
    let catalog = db.catalog();
    let missing = STORED_TABLES.iter().filter(|name| catalog.table("mysql", name).is_none());
    let texts: Vec<&str> = missing.map(|name| create_text_of_mysql(name)).collect();
    if !texts.is_empty() && catalog.schemas.contains_key("mysql") {
        // Replicas have these tables by themselves.
        let text = format!("SET sql_log_bin = 0, sql_mode = ''; USE mysql; {}", texts.join(";\n"));
        if let Err(why) = init_file::run(backend, id, text.as_bytes(), Origin::Setup) {
            log.warning(format_args!("Tables of the schema mysql could not be created: {why}"));
        }
    }
    let replaced = db.replaced_tables();
    if !replaced.is_empty() {
        let names: Vec<&str> = replaced.iter().map(|name| &*name.table).collect();
        log.warning(format_args!(
            "A dump has replaced tables of the schema mysql ({}). What they contain about accounts is not in \
             effect until FLUSH PRIVILEGES is executed",
            names.join(", ")
        ));
    }
}
