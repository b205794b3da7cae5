//! `mysql.general_log` and `mysql.slow_log`: tables that MariaDB's tools expect, for example a dump of all
//! databases. They contain the newest entries under `log_output=TABLE`. TRUNCATE empties them; other changes
//! fail with errors 1556, 1580.

use std::sync::Arc;

use cohort_config::VarId;
use cohort_session::access::{check_statement, check_table};
use cohort_session::{
    LogTableUse, SessionState, StatementContext, StatementLog, StatementTraits, VirtualColumn,
    VirtualDefinition, VirtualTable, WantedNames, changed_names, row_target,
};
use cohort_sql::ast::{ObjectName, Statement};
use cohort_types::{Collation, ColumnType, SqlError, SqlResult, TypeKind, Value};

/// A log table.
struct LogTable {
    log: StatementLog,
    name: &'static str,
    columns: Vec<VirtualColumn>,
    create: &'static str,
}

const GENERAL_LOG: &str = "CREATE TABLE `general_log` (
  `event_time` timestamp(6) NOT NULL DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6),
  `user_host` mediumtext NOT NULL,
  `thread_id` bigint(21) unsigned NOT NULL,
  `server_id` int(10) unsigned NOT NULL,
  `command_type` varchar(64) NOT NULL,
  `argument` mediumtext NOT NULL
) ENGINE=CSV DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci COMMENT='General log'";

const SLOW_LOG: &str = "CREATE TABLE `slow_log` (
  `start_time` timestamp(6) NOT NULL DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6),
  `user_host` mediumtext NOT NULL,
  `query_time` time(6) NOT NULL,
  `lock_time` time(6) NOT NULL,
  `rows_sent` bigint(20) unsigned NOT NULL,
  `rows_examined` bigint(20) unsigned NOT NULL,
  `db` varchar(512) NOT NULL,
  `last_insert_id` int(11) NOT NULL,
  `insert_id` int(11) NOT NULL,
  `server_id` int(10) unsigned NOT NULL,
  `sql_text` mediumtext NOT NULL,
  `thread_id` bigint(21) unsigned NOT NULL,
  `rows_affected` bigint(20) unsigned NOT NULL
) ENGINE=CSV DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci COMMENT='Slow log'";

/// Returns the errors of statements that would change or lock a log table, if the account has the privilege
/// for the statement, which has these traits.
pub fn check_log_tables(
    session: &SessionState,
    statement: &Statement,
    traits: &StatementTraits,
) -> SqlResult<()> {
    let is_log = |name: &ObjectName| {
        matches!(name.name.as_str(), "general_log" | "slow_log")
            && name.db.as_deref().or(session.current_schema.as_deref()) == Some("mysql")
            && session.temporary.find("mysql", &name.name).is_none()
    };
    let globals = &session.db.globals;
    let is_logging = |name: &ObjectName| {
        let log = if name.name == "slow_log" { VarId::LogSlowQuery } else { VarId::GeneralLog };
        globals.flag(log) && globals.value(VarId::LogOutput).to_string().contains("TABLE")
    };
    for table_use in traits.log_tables {
        let error = match (table_use, statement) {
            (LogTableUse::Rows(needed), _) => {
                let target = statement.plannable().and_then(|change| row_target(&change));
                let Some(name) = target.filter(|name| is_log(name)) else { continue };
                check_table(session, *needed, "mysql", &name.name)?;
                return Err(cannot_lock());
            }
            (LogTableUse::Locks, Statement::LockTables(tables))
                if tables.iter().any(|table| is_log(&table.table)) =>
            {
                cannot_lock()
            }
            // Without logging to the table, ALTER TABLE has no effect, as on other virtual tables.
            (LogTableUse::Definition(_), Statement::AlterTable(alter)) if !is_logging(&alter.table) => {
                continue;
            }
            (LogTableUse::Definition(verb), _) if changed_names(statement).tables.into_iter().any(is_log) => {
                in_use(verb)
            }
            _ => continue,
        };
        check_statement(session, statement)?;
        return Err(error);
    }
    Ok(())
}

fn cannot_lock() -> SqlError {
    SqlError::cannot_lock_log_table()
}

fn in_use(what: &str) -> SqlError {
    SqlError::log_table_in_use(what)
}

/// Returns both log tables.
pub(super) fn log_tables() -> [Arc<dyn VirtualTable>; 2] {
    let time = |name, kind| column(name, ColumnType::temporal(kind, 6));
    let text =
        |name| column(name, ColumnType::string(TypeKind::MediumText, 0, Collation::UTF8MB3_GENERAL_CI));
    let word = |name, length| {
        column(name, ColumnType::string(TypeKind::VarChar, length, Collation::UTF8MB3_GENERAL_CI))
    };
    let big = |name, digits| column(name, ColumnType::int(TypeKind::BigInt, Some(digits), true));
    let int = |name| column(name, ColumnType::int(TypeKind::Int, Some(11), false));
    let server = || column("server_id", ColumnType::int(TypeKind::Int, Some(10), true));
    let general = vec![
        time("event_time", TypeKind::Timestamp),
        text("user_host"),
        big("thread_id", 21),
        server(),
        word("command_type", 64),
        text("argument"),
    ];
    let slow = vec![
        time("start_time", TypeKind::Timestamp),
        text("user_host"),
        time("query_time", TypeKind::Time),
        time("lock_time", TypeKind::Time),
        big("rows_sent", 20),
        big("rows_examined", 20),
        word("db", 512),
        int("last_insert_id"),
        int("insert_id"),
        server(),
        text("sql_text"),
        big("thread_id", 21),
        big("rows_affected", 20),
    ];
    [
        Arc::new(LogTable {
            log: StatementLog::General,
            name: "general_log",
            columns: general,
            create: GENERAL_LOG,
        }),
        Arc::new(LogTable { log: StatementLog::Slow, name: "slow_log", columns: slow, create: SLOW_LOG }),
    ]
}

fn column(name: &'static str, ty: ColumnType) -> VirtualColumn {
    VirtualColumn { name, ty, nullable: false }
}

impl VirtualDefinition for LogTable {
    fn schema(&self) -> &'static str {
        "mysql"
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[VirtualColumn] {
        &self.columns
    }
}

impl VirtualTable for LogTable {
    fn rows(&self, _: &WantedNames, ctx: &mut StatementContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        Ok(ctx.db.log_rows.rows(self.log))
    }

    fn create_text(&self) -> String {
        self.create.to_owned()
    }
}
