-- The schema `sys`. `system_tables.rs` runs these statements; it makes two views of each: `TIME(x)`, `BYTES(x)`
-- and `TEXT(x)` are formatted in the one, and plain in the other, whose name begins with `x$`.

CREATE FUNCTION format_bytes(bytes TEXT) RETURNS TEXT DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN CASE
  WHEN bytes IS NULL THEN NULL
  WHEN bytes + 0 >= 1 << 40 THEN CONCAT(ROUND(bytes / (1 << 40), 2), ' TiB')
  WHEN bytes + 0 >= 1 << 30 THEN CONCAT(ROUND(bytes / (1 << 30), 2), ' GiB')
  WHEN bytes + 0 >= 1 << 20 THEN CONCAT(ROUND(bytes / (1 << 20), 2), ' MiB')
  WHEN bytes + 0 >= 1 << 10 THEN CONCAT(ROUND(bytes / (1 << 10), 2), ' KiB')
  ELSE CONCAT(ROUND(bytes), ' bytes')
END;

CREATE FUNCTION format_time(picoseconds TEXT) RETURNS TEXT DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN CASE
  WHEN picoseconds IS NULL THEN NULL
  WHEN picoseconds + 0 >= 3600e12 THEN CONCAT(ROUND(picoseconds / 3600e12, 2), ' h')
  WHEN picoseconds + 0 >= 60e12 THEN CONCAT(ROUND(picoseconds / 60e12, 2), ' m')
  WHEN picoseconds + 0 >= 1e12 THEN CONCAT(ROUND(picoseconds / 1e12, 2), ' s')
  WHEN picoseconds + 0 >= 1e9 THEN CONCAT(ROUND(picoseconds / 1e9, 2), ' ms')
  WHEN picoseconds + 0 >= 1e6 THEN CONCAT(ROUND(picoseconds / 1e6, 2), ' us')
  WHEN picoseconds + 0 >= 1e3 THEN CONCAT(ROUND(picoseconds / 1e3, 2), ' ns')
  ELSE CONCAT(ROUND(picoseconds), ' ps')
END;

CREATE FUNCTION format_statement(statement LONGTEXT) RETURNS LONGTEXT DETERMINISTIC NO SQL SQL SECURITY INVOKER
RETURN IF(CHAR_LENGTH(statement) > 64, CONCAT(LEFT(statement, 30), ' ... ', RIGHT(statement, 30)), statement);

CREATE VIEW version AS
SELECT '1.0' AS sys_version, VERSION() AS mysql_version;

CREATE VIEW statement_analysis AS
SELECT TEXT(DIGEST_TEXT) AS query, SCHEMA_NAME AS db,
  IF(SUM_NO_INDEX_USED + SUM_NO_GOOD_INDEX_USED > 0, '*', '') AS full_scan,
  COUNT_STAR AS exec_count, SUM_ERRORS AS err_count, SUM_WARNINGS AS warn_count,
  TIME(SUM_TIMER_WAIT) AS total_latency, TIME(MAX_TIMER_WAIT) AS max_latency, TIME(AVG_TIMER_WAIT) AS avg_latency,
  TIME(SUM_LOCK_TIME) AS lock_latency,
  SUM_ROWS_SENT AS rows_sent, ROUND(SUM_ROWS_SENT / GREATEST(COUNT_STAR, 1)) AS rows_sent_avg,
  SUM_ROWS_EXAMINED AS rows_examined, ROUND(SUM_ROWS_EXAMINED / GREATEST(COUNT_STAR, 1)) AS rows_examined_avg,
  SUM_ROWS_AFFECTED AS rows_affected, ROUND(SUM_ROWS_AFFECTED / GREATEST(COUNT_STAR, 1)) AS rows_affected_avg,
  SUM_CREATED_TMP_TABLES AS tmp_tables, SUM_CREATED_TMP_DISK_TABLES AS tmp_disk_tables,
  SUM_SORT_ROWS AS rows_sorted, SUM_SORT_MERGE_PASSES AS sort_merge_passes,
  DIGEST AS digest, FIRST_SEEN AS first_seen, LAST_SEEN AS last_seen
FROM performance_schema.events_statements_summary_by_digest
ORDER BY SUM_TIMER_WAIT DESC;

CREATE VIEW schema_table_statistics AS
SELECT OBJECT_SCHEMA AS table_schema, OBJECT_NAME AS table_name, TIME(SUM_TIMER_WAIT) AS total_latency,
  COUNT_FETCH AS rows_fetched, TIME(SUM_TIMER_FETCH) AS fetch_latency,
  COUNT_INSERT AS rows_inserted, TIME(SUM_TIMER_INSERT) AS insert_latency,
  COUNT_UPDATE AS rows_updated, TIME(SUM_TIMER_UPDATE) AS update_latency,
  COUNT_DELETE AS rows_deleted, TIME(SUM_TIMER_DELETE) AS delete_latency
FROM performance_schema.table_io_waits_summary_by_table
ORDER BY COUNT_STAR DESC;

CREATE VIEW schema_index_statistics AS
SELECT OBJECT_SCHEMA AS table_schema, OBJECT_NAME AS table_name, INDEX_NAME AS index_name,
  COUNT_FETCH AS rows_selected, TIME(SUM_TIMER_FETCH) AS select_latency
FROM performance_schema.table_io_waits_summary_by_index_usage
WHERE INDEX_NAME IS NOT NULL
ORDER BY COUNT_FETCH DESC;

CREATE VIEW schema_unused_indexes AS
SELECT OBJECT_SCHEMA AS object_schema, OBJECT_NAME AS object_name, INDEX_NAME AS index_name
FROM performance_schema.table_io_waits_summary_by_index_usage
WHERE INDEX_NAME IS NOT NULL AND INDEX_NAME <> 'PRIMARY' AND COUNT_STAR = 0
  AND OBJECT_SCHEMA NOT IN ('mysql', 'sys')
ORDER BY OBJECT_SCHEMA, OBJECT_NAME;

CREATE VIEW x$schema_flattened_keys AS
SELECT TABLE_SCHEMA AS table_schema, TABLE_NAME AS table_name, INDEX_NAME AS index_name,
  MAX(NON_UNIQUE) AS non_unique, MAX(SUB_PART IS NOT NULL) AS subpart_exists,
  GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX SEPARATOR ',') AS index_columns
FROM information_schema.STATISTICS
WHERE INDEX_TYPE = 'BTREE' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
GROUP BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME;

CREATE VIEW schema_redundant_indexes AS
SELECT less.table_schema, less.table_name, less.index_name AS redundant_index_name,
  less.index_columns AS redundant_index_columns, less.non_unique AS redundant_index_non_unique,
  more.index_name AS dominant_index_name, more.index_columns AS dominant_index_columns,
  more.non_unique AS dominant_index_non_unique,
  IF(less.subpart_exists OR more.subpart_exists, 1, 0) AS subpart_exists,
  CONCAT('ALTER TABLE `', less.table_schema, '`.`', less.table_name, '` DROP INDEX `', less.index_name, '`')
    AS sql_drop_index
FROM x$schema_flattened_keys less
JOIN x$schema_flattened_keys more USING (table_schema, table_name)
WHERE less.index_name <> more.index_name AND less.index_name <> 'PRIMARY'
  AND (
    less.index_columns = more.index_columns
      AND (less.non_unique > more.non_unique
        OR less.non_unique = more.non_unique AND (more.index_name = 'PRIMARY' OR less.index_name > more.index_name))
    OR LOCATE(CONCAT(less.index_columns, ','), more.index_columns) = 1 AND less.non_unique = 1
    OR LOCATE(CONCAT(more.index_columns, ','), less.index_columns) = 1 AND more.non_unique = 0
  );

CREATE VIEW innodb_lock_waits AS
SELECT r.trx_wait_started AS wait_started, TIMEDIFF(NOW(), r.trx_wait_started) AS wait_age,
  TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) AS wait_age_secs,
  wanted.lock_table AS locked_table, wanted.lock_index AS locked_index, wanted.lock_type AS locked_type,
  r.trx_id AS waiting_trx_id, r.trx_started AS waiting_trx_started, TIMEDIFF(NOW(), r.trx_started) AS waiting_trx_age,
  r.trx_rows_locked AS waiting_trx_rows_locked, r.trx_rows_modified AS waiting_trx_rows_modified,
  r.trx_mysql_thread_id AS waiting_pid, TEXT(r.trx_query) AS waiting_query,
  wanted.lock_id AS waiting_lock_id, wanted.lock_mode AS waiting_lock_mode,
  b.trx_id AS blocking_trx_id, b.trx_mysql_thread_id AS blocking_pid, TEXT(b.trx_query) AS blocking_query,
  held.lock_id AS blocking_lock_id, held.lock_mode AS blocking_lock_mode,
  b.trx_started AS blocking_trx_started, TIMEDIFF(NOW(), b.trx_started) AS blocking_trx_age,
  b.trx_rows_locked AS blocking_trx_rows_locked, b.trx_rows_modified AS blocking_trx_rows_modified,
  CONCAT('KILL QUERY ', b.trx_mysql_thread_id) AS sql_kill_blocking_query,
  CONCAT('KILL ', b.trx_mysql_thread_id) AS sql_kill_blocking_connection
FROM information_schema.INNODB_LOCK_WAITS w
JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id
JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id
JOIN information_schema.INNODB_LOCKS held ON held.lock_id = w.blocking_lock_id
JOIN information_schema.INNODB_LOCKS wanted ON wanted.lock_id = w.requested_lock_id
ORDER BY r.trx_wait_started;

CREATE VIEW schema_table_lock_waits AS
SELECT wanted.OBJECT_SCHEMA AS object_schema, wanted.OBJECT_NAME AS object_name,
  wanted.OWNER_THREAD_ID AS waiting_thread_id, w.PROCESSLIST_ID AS waiting_pid,
  CONCAT(w.PROCESSLIST_USER, '@', w.PROCESSLIST_HOST) AS waiting_account,
  wanted.LOCK_TYPE AS waiting_lock_type, wanted.LOCK_DURATION AS waiting_lock_duration,
  TEXT(w.PROCESSLIST_INFO) AS waiting_query, w.PROCESSLIST_TIME AS waiting_query_secs,
  held.OWNER_THREAD_ID AS blocking_thread_id, b.PROCESSLIST_ID AS blocking_pid,
  CONCAT(b.PROCESSLIST_USER, '@', b.PROCESSLIST_HOST) AS blocking_account,
  held.LOCK_TYPE AS blocking_lock_type, held.LOCK_DURATION AS blocking_lock_duration,
  CONCAT('KILL QUERY ', b.PROCESSLIST_ID) AS sql_kill_blocking_query,
  CONCAT('KILL ', b.PROCESSLIST_ID) AS sql_kill_blocking_connection
FROM performance_schema.metadata_locks wanted
JOIN performance_schema.metadata_locks held ON held.OBJECT_TYPE = wanted.OBJECT_TYPE
  AND held.OBJECT_SCHEMA = wanted.OBJECT_SCHEMA AND held.OBJECT_NAME = wanted.OBJECT_NAME
JOIN performance_schema.threads w ON w.THREAD_ID = wanted.OWNER_THREAD_ID
JOIN performance_schema.threads b ON b.THREAD_ID = held.OWNER_THREAD_ID
WHERE wanted.OBJECT_TYPE = 'TABLE' AND wanted.LOCK_STATUS = 'PENDING' AND held.LOCK_STATUS = 'GRANTED'
  AND held.OWNER_THREAD_ID <> wanted.OWNER_THREAD_ID;

CREATE VIEW processlist AS
SELECT t.THREAD_ID AS thd_id, t.PROCESSLIST_ID AS conn_id,
  IF(t.TYPE = 'BACKGROUND', SUBSTRING_INDEX(t.NAME, '/', -1), CONCAT(t.PROCESSLIST_USER, '@', t.PROCESSLIST_HOST)) AS user,
  t.PROCESSLIST_DB AS db, t.PROCESSLIST_COMMAND AS command, t.PROCESSLIST_STATE AS state, t.PROCESSLIST_TIME AS time,
  TEXT(t.PROCESSLIST_INFO) AS current_statement,
  BYTES(m.CURRENT_NUMBER_OF_BYTES_USED) AS current_memory,
  a.ATTR_VALUE AS program_name
FROM performance_schema.threads t
LEFT JOIN performance_schema.memory_summary_by_thread_by_event_name m ON m.THREAD_ID = t.THREAD_ID
LEFT JOIN performance_schema.session_connect_attrs a
  ON a.PROCESSLIST_ID = t.PROCESSLIST_ID AND a.ATTR_NAME = 'program_name'
ORDER BY t.PROCESSLIST_TIME DESC;

CREATE VIEW session AS
SELECT * FROM SELF(processlist) WHERE conn_id IS NOT NULL AND command <> 'Daemon';

CREATE VIEW user_summary AS
SELECT a.user, COALESCE(s.statements, 0) AS statements, TIME(COALESCE(s.latency, 0)) AS statement_latency,
  TIME(COALESCE(s.latency / NULLIF(s.statements, 0), 0)) AS statement_avg_latency,
  COALESCE(s.scans, 0) AS table_scans, a.current_connections, a.total_connections, a.unique_hosts,
  BYTES(COALESCE(m.memory, 0)) AS current_memory
FROM (SELECT USER AS user, SUM(CURRENT_CONNECTIONS) AS current_connections,
    SUM(TOTAL_CONNECTIONS) AS total_connections, COUNT(DISTINCT HOST) AS unique_hosts
  FROM performance_schema.accounts GROUP BY USER) a
LEFT JOIN (SELECT USER AS user, SUM(COUNT_STAR) AS statements, SUM(SUM_TIMER_WAIT) AS latency,
    SUM(SUM_NO_INDEX_USED + SUM_NO_GOOD_INDEX_USED) AS scans
  FROM performance_schema.events_statements_summary_by_user_by_event_name GROUP BY USER) s ON s.user = a.user
LEFT JOIN (SELECT USER AS user, SUM(CURRENT_NUMBER_OF_BYTES_USED) AS memory
  FROM performance_schema.memory_summary_by_user_by_event_name GROUP BY USER) m ON m.user = a.user
ORDER BY s.latency DESC;

CREATE VIEW host_summary AS
SELECT a.host, COALESCE(s.statements, 0) AS statements, TIME(COALESCE(s.latency, 0)) AS statement_latency,
  TIME(COALESCE(s.latency / NULLIF(s.statements, 0), 0)) AS statement_avg_latency,
  COALESCE(s.scans, 0) AS table_scans, a.current_connections, a.total_connections, a.unique_users,
  BYTES(COALESCE(m.memory, 0)) AS current_memory
FROM (SELECT HOST AS host, SUM(CURRENT_CONNECTIONS) AS current_connections,
    SUM(TOTAL_CONNECTIONS) AS total_connections, COUNT(DISTINCT USER) AS unique_users
  FROM performance_schema.accounts GROUP BY HOST) a
LEFT JOIN (SELECT HOST AS host, SUM(COUNT_STAR) AS statements, SUM(SUM_TIMER_WAIT) AS latency,
    SUM(SUM_NO_INDEX_USED + SUM_NO_GOOD_INDEX_USED) AS scans
  FROM performance_schema.events_statements_summary_by_host_by_event_name GROUP BY HOST) s ON s.host = a.host
LEFT JOIN (SELECT HOST AS host, SUM(CURRENT_NUMBER_OF_BYTES_USED) AS memory
  FROM performance_schema.memory_summary_by_host_by_event_name GROUP BY HOST) m ON m.host = a.host
ORDER BY s.latency DESC;

CREATE VIEW memory_global_by_current_bytes AS
SELECT EVENT_NAME AS event_name, BYTES(CURRENT_NUMBER_OF_BYTES_USED) AS current_alloc,
  BYTES(HIGH_NUMBER_OF_BYTES_USED) AS high_alloc
FROM performance_schema.memory_summary_global_by_event_name
WHERE CURRENT_NUMBER_OF_BYTES_USED > 0
ORDER BY CURRENT_NUMBER_OF_BYTES_USED DESC;

CREATE VIEW memory_global_total AS
SELECT BYTES(SUM(CURRENT_NUMBER_OF_BYTES_USED)) AS total_allocated
FROM performance_schema.memory_summary_global_by_event_name;

CREATE VIEW memory_by_user_by_current_bytes AS
SELECT IF(USER IS NULL, 'background', USER) AS user, BYTES(SUM(CURRENT_NUMBER_OF_BYTES_USED)) AS current_allocated,
  BYTES(MAX(CURRENT_NUMBER_OF_BYTES_USED)) AS current_max_alloc
FROM performance_schema.memory_summary_by_user_by_event_name
GROUP BY 1
ORDER BY SUM(CURRENT_NUMBER_OF_BYTES_USED) DESC;

CREATE VIEW io_global_by_file_by_bytes AS
SELECT FILE_NAME AS file, COUNT_READ AS count_read, BYTES(SUM_NUMBER_OF_BYTES_READ) AS total_read,
  BYTES(IFNULL(SUM_NUMBER_OF_BYTES_READ / NULLIF(COUNT_READ, 0), 0)) AS avg_read,
  COUNT_WRITE AS count_write, BYTES(SUM_NUMBER_OF_BYTES_WRITE) AS total_written,
  BYTES(IFNULL(SUM_NUMBER_OF_BYTES_WRITE / NULLIF(COUNT_WRITE, 0), 0)) AS avg_write,
  BYTES(SUM_NUMBER_OF_BYTES_READ + SUM_NUMBER_OF_BYTES_WRITE) AS total,
  IFNULL(ROUND(100 - (SUM_NUMBER_OF_BYTES_READ / NULLIF(SUM_NUMBER_OF_BYTES_READ + SUM_NUMBER_OF_BYTES_WRITE, 0)) * 100, 2), 0) AS write_pct
FROM performance_schema.file_summary_by_instance
ORDER BY SUM_NUMBER_OF_BYTES_READ + SUM_NUMBER_OF_BYTES_WRITE DESC;

CREATE VIEW io_global_by_file_by_latency AS
SELECT FILE_NAME AS file, COUNT_STAR AS total, TIME(SUM_TIMER_WAIT) AS total_latency,
  COUNT_READ AS count_read, TIME(SUM_TIMER_READ) AS read_latency,
  COUNT_WRITE AS count_write, TIME(SUM_TIMER_WRITE) AS write_latency,
  COUNT_MISC AS count_misc, TIME(SUM_TIMER_MISC) AS misc_latency
FROM performance_schema.file_summary_by_instance
ORDER BY SUM_TIMER_WAIT DESC;

CREATE VIEW metrics AS
SELECT LOWER(VARIABLE_NAME) AS Variable_name, VARIABLE_VALUE AS Variable_value, 'Global Status' AS Type, 'YES' AS Enabled
FROM performance_schema.global_status
UNION ALL
SELECT NAME, COUNT, CONCAT('InnoDB Metrics - ', SUBSYSTEM), IF(ENABLED, 'YES', 'NO')
FROM information_schema.INNODB_METRICS
UNION ALL
SELECT 'memory_current_allocated', SUM(CURRENT_NUMBER_OF_BYTES_USED), 'Performance Schema', 'YES'
FROM performance_schema.memory_summary_global_by_event_name
UNION ALL
SELECT 'NOW()', NOW(3), 'System Time', 'YES'
UNION ALL
SELECT 'UNIX_TIMESTAMP()', ROUND(UNIX_TIMESTAMP(NOW(3)), 3), 'System Time', 'YES'
ORDER BY Type, Variable_name;
