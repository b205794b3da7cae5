//! The statements of the console. They run in the session of the account that has logged in, so its rights,
//! and those alone, decide what they show. Nothing else is ever run: parameters are words of a list, or
//! digits.

use crate::http::Request;

/// A statement of an endpoint, with its key in the answer.
pub(crate) struct Query {
    pub key: &'static str,
    /// `{digest}` and `{order}` are replaced by [`filled`].
    pub sql: &'static str,
}

const fn query(key: &'static str, sql: &'static str) -> Query {
    Query { key, sql }
}

/// Settings of a console's session: no statement of it runs long, or waits long for a lock.
pub const SESSION_SETTINGS: [&str; 3] =
    ["SET max_statement_time = 5", "SET lock_wait_timeout = 2", "SET time_zone = '+00:00'"];

/// Columns of a list of statements.
macro_rules! statement_columns {
    () => {
        "SCHEMA_NAME, DIGEST, LEFT(DIGEST_TEXT, 2000) AS DIGEST_TEXT, EVENT_NAME, LEVEL, CALLS, ERRORS, SUM_US, \
         P50_US, P99_US, MAX_US, LOCK_WAIT_US, COMMIT_WAIT_US, ROWS_SENT, ROWS_EXAMINED, ROWS_AFFECTED, \
         NO_INDEX_USED, CREATED_TMP_DISK_TABLES, LAST_SEEN FROM information_schema.COHORT_STATEMENTS"
    };
}

pub(crate) const STATEMENTS: &[Query] =
    &[query("statements", concat!("SELECT ", statement_columns!(), " ORDER BY {order} DESC LIMIT 100"))];

/// Statements of a list of digests, which follows.
pub(crate) const STATEMENTS_OF: &str =
    concat!("SELECT ", statement_columns!(), " WHERE LEVEL = 'TOP' AND DIGEST IN ");

pub(crate) const STATEMENT: &[Query] =
    &[query("statement", "SELECT * FROM information_schema.COHORT_STATEMENTS WHERE DIGEST = '{digest}'")];

pub(crate) const SESSIONS: &[Query] = &[
    query(
        "sessions",
        "SELECT ID, USER, HOST, DB, COMMAND, TIME_MS, STATE, LEFT(INFO, 2000) AS INFO, QUERY_ID, EXAMINED_ROWS, MEMORY_USED \
         FROM information_schema.PROCESSLIST ORDER BY COMMAND IN ('Sleep', 'Daemon'), TIME_MS DESC LIMIT 500",
    ),
    query(
        "transactions",
        "SELECT trx_mysql_thread_id AS thread, trx_id, trx_state, TIMESTAMPDIFF(SECOND, trx_started, NOW()) AS seconds, \
         trx_rows_modified, trx_rows_locked, trx_isolation_level FROM information_schema.INNODB_TRX LIMIT 500",
    ),
    ROW_WAITS,
    METADATA,
];

const ROW_WAITS: Query = query(
    "row_waits",
    "SELECT r.trx_mysql_thread_id AS waiting, b.trx_mysql_thread_id AS blocking, l.lock_table, l.lock_index, l.lock_mode, \
     l.lock_data, TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) AS seconds, LEFT(r.trx_query, 500) AS waiting_query, \
     LEFT(b.trx_query, 500) AS blocking_query \
     FROM information_schema.INNODB_LOCK_WAITS w JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id \
     JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id \
     JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id LIMIT 500",
);

/// Metadata locks of the objects that a session waits for.
const METADATA: Query = query(
    "metadata_locks",
    "SELECT t.PROCESSLIST_ID AS thread, m.OBJECT_TYPE, m.OBJECT_SCHEMA, m.OBJECT_NAME, m.LOCK_TYPE, m.LOCK_STATUS \
     FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID \
     WHERE EXISTS (SELECT 1 FROM performance_schema.metadata_locks p WHERE p.LOCK_STATUS = 'PENDING' \
     AND p.OBJECT_TYPE = m.OBJECT_TYPE AND p.OBJECT_SCHEMA <=> m.OBJECT_SCHEMA AND p.OBJECT_NAME <=> m.OBJECT_NAME) \
     ORDER BY m.OBJECT_SCHEMA, m.OBJECT_NAME, m.LOCK_STATUS LIMIT 500",
);

pub(crate) const LOCKS: &[Query] =
    &[ROW_WAITS, METADATA, query("engine_status", "SHOW ENGINE INNODB STATUS")];

pub(crate) const REPLICATION: &[Query] = &[
    query("sources", "SHOW ALL SLAVES STATUS"),
    query("binlog", "SHOW MASTER STATUS"),
    query("replicas", "SHOW SLAVE HOSTS"),
    query(
        "positions",
        "SELECT @@gtid_binlog_pos AS gtid_binlog_pos, @@gtid_slave_pos AS gtid_slave_pos, @@gtid_current_pos AS gtid_current_pos, \
         @@gtid_domain_id AS gtid_domain_id, @@server_id AS server_id",
    ),
    query(
        "semi_sync",
        "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME LIKE 'Rpl_semi_sync%'",
    ),
];

pub(crate) const STORAGE: &[Query] = &[
    query(
        "tables",
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH, DATA_FREE \
         FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'PERFORMANCE_SCHEMA' ORDER BY DATA_LENGTH + INDEX_LENGTH DESC LIMIT 200",
    ),
    query(
        "indexes",
        "SELECT OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME, COUNT_READ, COUNT_WRITE \
         FROM performance_schema.table_io_waits_summary_by_index_usage WHERE INDEX_NAME IS NOT NULL \
         ORDER BY COUNT_READ + COUNT_WRITE DESC LIMIT 200",
    ),
    query("userstat", "SELECT @@userstat AS userstat"),
    query("binlogs", "SHOW BINARY LOGS"),
];

pub(crate) const SETTINGS: &[Query] = &[query(
    "settings",
    "SELECT VARIABLE_NAME, GLOBAL_VALUE, DEFAULT_VALUE, GLOBAL_VALUE_ORIGIN, READ_ONLY, VARIABLE_COMMENT \
     FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE IS NOT NULL \
     AND GLOBAL_VALUE_ORIGIN <> 'COMPILE-TIME' AND NOT GLOBAL_VALUE <=> DEFAULT_VALUE ORDER BY VARIABLE_NAME",
)];

pub(crate) const ERRORS: &[Query] = &[query(
    "errors",
    "SELECT LOGGED, PRIO, SUBSYSTEM, LEFT(DATA, 4000) AS DATA FROM performance_schema.error_log ORDER BY LOGGED DESC LIMIT 500",
)];

/// Orders of the list of statements, as words of the query.
const ORDERS: [(&str, &str); 6] = [
    ("time", "SUM_US"),
    ("p99", "P99_US"),
    ("examined", "ROWS_EXAMINED"),
    ("calls", "CALLS"),
    ("errors", "ERRORS"),
    ("lock", "LOCK_WAIT_US"),
];

/// Returns the text of a statement with the request's parameters; `None` if they are not valid.
pub(crate) fn filled(sql: &str, request: &Request) -> Option<String> {
    let mut text = sql.to_owned();
    if text.contains("{order}") {
        let word = request.parameter("order").unwrap_or("time");
        let (_, column) = ORDERS.iter().find(|(known, _)| *known == word)?;
        text = text.replace("{order}", column);
    }
    if text.contains("{digest}") {
        let digest = request.parameter("digest")?;
        let is_hex = digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        text = text.replace("{digest}", is_hex.then_some(digest)?);
    }
    Some(text)
}
