//! The stored tables of the schema `mysql`, and the schema `sys`.

use std::path::Path;

use cohort_base::ConnectionId;
use cohort_config::VarId;
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
        let text = format!(
            "SET sql_log_bin = 0, sql_mode = '', transaction_read_only = 0; USE mysql; {}",
            texts.join(";\n")
        );
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

/// Views and functions of `sys`.
const SYS: &str = include_str!("sys.sql");
/// Exists in a data directory that has had a schema `sys`. It contains [`BEGUN`] while the schema is made.
const SYS_MARK: &str = "cohort.sys";
const BEGUN: &str = "begun\n";

/// Creates the schema `sys` in a data directory that has never had one. It is not logged: replicas have their
/// own. A schema of this name that exists stays as it is, and one that was dropped stays dropped. A crash
/// meanwhile leaves a mark from which the next start knows that the schema is incomplete. A backup does not
/// contain the mark, so a restored server without `sys` gets it again.
pub fn create_sys(backend: &SqlBackend, id: ConnectionId, datadir: &Path, log: &ErrorLog) {
    let db = backend.database();
    let mark = datadir.join(SYS_MARK);
    let found = std::fs::read_to_string(&mark).ok();
    let is_incomplete = found.as_deref() == Some(BEGUN);
    if !db.globals.flag(VarId::SysSchema) || (found.is_some() && !is_incomplete) {
        return;
    }
    let write_mark = |text: &str| {
        let written = std::fs::File::create(&mark).and_then(|mut file| {
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()
        });
        written
            .inspect_err(|why| log.warning(format_args!("'{}' could not be written: {why}", mark.display())))
    };
    let exists = db.catalog().schemas.contains_key("sys");
    if is_incomplete || !exists {
        if write_mark(BEGUN).is_err() {
            return;
        }
        let drop = "SET sql_log_bin = 0, transaction_read_only = 0; DROP DATABASE IF EXISTS sys;\n";
        let made = init_file::run(backend, id, format!("{drop}{}", sys_text()).as_bytes(), Origin::Setup);
        if let Err(why) = made {
            log.warning(format_args!("The schema sys could not be created: {why}"));
            if let Err(why) = init_file::run(backend, id, drop.as_bytes(), Origin::Setup) {
                log.warning(format_args!("The incomplete schema sys could not be dropped: {why}"));
            }
            return;
        }
    }
    // A failure was logged. The next start makes the schema again.
    let _ = write_mark("");
}

/// Returns the statements that create `sys`. A view with formatted columns has a variant without formats.
fn sys_text() -> String {
    let mut out = String::from(
        "SET sql_log_bin = 0, sql_mode = '', transaction_read_only = 0; CREATE DATABASE sys; USE sys;\n",
    );
    let statements = SYS.split("\n\n").map(str::trim);
    for statement in statements.filter(|text| !text.is_empty() && !text.starts_with("--")) {
        let Some(view) = statement.strip_prefix("CREATE VIEW ") else {
            out += statement;
            out.push('\n');
            continue;
        };
        let formatted = ["TIME(", "BYTES(", "TEXT("].iter().any(|format| view.contains(format));
        let is_of_view = view.contains("SELF(processlist)");
        let begin = "CREATE SQL SECURITY INVOKER VIEW ";
        let shown = view
            .replace("TIME(", "sys.format_time(")
            .replace("BYTES(", "sys.format_bytes(")
            .replace("TEXT(", "sys.format_statement(")
            .replace("SELF(processlist)", "processlist");
        out += &format!("{begin}{shown}\n");
        if formatted || is_of_view {
            let plain = view
                .replace("TIME(", "(")
                .replace("BYTES(", "(")
                .replace("TEXT(", "(")
                .replace("SELF(processlist)", "x$processlist");
            out += &format!("{begin}x${plain}\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_views_have_plain_variants() {
        let text = sys_text();
        for part in [
            "VIEW statement_analysis AS\nSELECT sys.format_statement(DIGEST_TEXT) AS query",
            "VIEW x$statement_analysis AS\nSELECT (DIGEST_TEXT) AS query",
            "VIEW session AS\nSELECT * FROM processlist",
            "VIEW x$session AS\nSELECT * FROM x$processlist",
            "VIEW schema_unused_indexes AS",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("VIEW x$schema_unused_indexes") && !text.contains("SELF("));
    }
}
