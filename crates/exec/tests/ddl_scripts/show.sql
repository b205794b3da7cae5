# SHOW and information_schema.

> CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT UNSIGNED DEFAULT 0, c CHAR(10) NOT NULL DEFAULT '', v VARCHAR(20), d DECIMAL(10,2) DEFAULT 1.5, ts TIMESTAMP, ts2 TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, dt DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), e ENUM('a','b') DEFAULT 'b', s SET('x','y'), b BIT(4) DEFAULT b'101', bl BLOB, tx TEXT, KEY (k), UNIQUE uk (c,v), KEY (v(5)), y YEAR DEFAULT 2001, f FLOAT DEFAULT 1.25, j JSON, ex VARCHAR(40) DEFAULT (uuid())) COMMENT 'hi'
OK
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `id` int(11) NOT NULL AUTO_INCREMENT,
    `k` int(10) unsigned DEFAULT 0,
    `c` char(10) NOT NULL DEFAULT '',
    `v` varchar(20) DEFAULT NULL,
    `d` decimal(10,2) DEFAULT 1.50,
    `ts` timestamp NULL DEFAULT NULL,
    `ts2` timestamp NULL DEFAULT NULL ON UPDATE current_timestamp(),
    `dt` datetime(3) DEFAULT current_timestamp(3),
    `e` enum('a','b') DEFAULT 'b',
    `s` set('x','y') DEFAULT NULL,
    `b` bit(4) DEFAULT b'101',
    `bl` blob DEFAULT NULL,
    `tx` text DEFAULT NULL,
    `y` year(4) DEFAULT 2001,
    `f` float DEFAULT 1.25,
    `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),
    `ex` varchar(40) DEFAULT uuid(),
    PRIMARY KEY (`id`),
    UNIQUE KEY `uk` (`c`,`v`),
    KEY `k` (`k`),
    KEY `v` (`v`(5))
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='hi'
> SHOW COLUMNS FROM t
Field | Type | Null | Key | Default | Extra
id | int(11) | NO | PRI | NULL | auto_increment
k | int(10) unsigned | YES | MUL | 0 | 
c | char(10) | NO | MUL |  | 
v | varchar(20) | YES | MUL | NULL | 
d | decimal(10,2) | YES |  | 1.50 | 
ts | timestamp | YES |  | NULL | 
ts2 | timestamp | YES |  | NULL | on update current_timestamp()
dt | datetime(3) | YES |  | current_timestamp(3) | 
e | enum('a','b') | YES |  | b | 
s | set('x','y') | YES |  | NULL | 
b | bit(4) | YES |  | b'101' | 
bl | blob | YES |  | NULL | 
tx | text | YES |  | NULL | 
y | year(4) | YES |  | 2001 | 
f | float | YES |  | 1.25 | 
j | longtext | YES |  | NULL | 
ex | varchar(40) | YES |  | uuid() | 
> SHOW FULL COLUMNS FROM t LIKE 'e%'
Field | Type | Collation | Null | Key | Default | Extra | Privileges | Comment
e | enum('a','b') | utf8mb4_general_ci | YES |  | b |  | select,insert,update,references | 
ex | varchar(40) | utf8mb4_general_ci | YES |  | uuid() |  | select,insert,update,references | 
> DESCRIBE t k
Field | Type | Null | Key | Default | Extra
k | int(10) unsigned | YES | MUL | 0 | 
> SHOW INDEX FROM t
Table | Non_unique | Key_name | Seq_in_index | Column_name | Collation | Cardinality | Sub_part | Packed | Null | Index_type | Comment | Index_comment | Ignored
t | 0 | PRIMARY | 1 | id | A | 0 | NULL | NULL |  | BTREE |  |  | NO
t | 0 | uk | 1 | c | A | 0 | NULL | NULL |  | BTREE |  |  | NO
t | 0 | uk | 2 | v | A | 0 | NULL | NULL | YES | BTREE |  |  | NO
t | 1 | k | 1 | k | A | 0 | NULL | NULL | YES | BTREE |  |  | NO
t | 1 | v | 1 | v | A | 0 | 5 | NULL | YES | BTREE |  |  | NO
> SHOW INDEX FROM t WHERE Key_name = 'uk'
Table | Non_unique | Key_name | Seq_in_index | Column_name | Collation | Cardinality | Sub_part | Packed | Null | Index_type | Comment | Index_comment | Ignored
t | 0 | uk | 1 | c | A | 0 | NULL | NULL |  | BTREE |  |  | NO
t | 0 | uk | 2 | v | A | 0 | NULL | NULL | YES | BTREE |  |  | NO
> CREATE TABLE u (a INT(5) ZEROFILL, b BOOL, c DECIMAL, d FLOAT(7,3), e DOUBLE UNSIGNED DEFAULT 3.25, g TIME(2) DEFAULT '10:11:12.5', h DATETIME DEFAULT '2020-01-02', i TIMESTAMP DEFAULT '2020-01-02 03:04:05', j BIGINT UNSIGNED DEFAULT 18446744073709551615, k SET('a','b') DEFAULT 'a,b', l VARBINARY(10) DEFAULT 'ab', m BLOB DEFAULT 'x', n INT INVISIBLE, o INT DEFAULT (1+2), p VARCHAR(10) DEFAULT CONCAT('a','b'), q INT COMMENT 'it''s', r TEXT CHARACTER SET latin1, w VARCHAR(5) COLLATE utf8mb4_bin) ROW_FORMAT=DYNAMIC STATS_PERSISTENT=1 AUTO_INCREMENT=7 MAX_ROWS=10
OK
> SHOW CREATE TABLE u
Table | Create Table
u | CREATE TABLE `u` (
    `a` int(5) unsigned zerofill DEFAULT NULL,
    `b` tinyint(1) DEFAULT NULL,
    `c` decimal(10,0) DEFAULT NULL,
    `d` float(7,3) DEFAULT NULL,
    `e` double unsigned DEFAULT 3.25,
    `g` time(2) DEFAULT '10:11:12.50',
    `h` datetime DEFAULT '2020-01-02 00:00:00',
    `i` timestamp NULL DEFAULT '2020-01-02 03:04:05',
    `j` bigint(20) unsigned DEFAULT 18446744073709551615,
    `k` set('a','b') DEFAULT 'a,b',
    `l` varbinary(10) DEFAULT 'ab',
    `m` blob DEFAULT 'x',
    `n` int(11) INVISIBLE DEFAULT NULL,
    `o` int(11) DEFAULT (1 + 2),
    `p` varchar(10) DEFAULT concat('a','b'),
    `q` int(11) DEFAULT NULL COMMENT 'it''s',
    `r` text CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
    `w` varchar(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci MAX_ROWS=10 STATS_PERSISTENT=1 ROW_FORMAT=DYNAMIC
> SHOW TABLES
Tables_in_test
t
u
> SHOW FULL TABLES LIKE 't%'
Tables_in_test (t%) | Table_type
t | BASE TABLE
> SHOW TABLES WHERE Tables_in_test > 't'
Tables_in_test
u
> SHOW TABLES FROM nowhere
ERROR 1049 (42000): Unknown database 'nowhere'
> SHOW COLUMNS FROM nothing
ERROR 1146 (42S02): Table 'test.nothing' doesn't exist
> SHOW DATABASES
Database
information_schema
mysql
performance_schema
test
> SHOW DATABASES LIKE 't%'
Database (t%)
test
> SHOW CREATE DATABASE test
Database | Create Database
test | CREATE DATABASE `test` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */
> SHOW ENGINES
Engine | Support | Comment | Transactions | XA | Savepoints
REFERENCE | DEFAULT | Transactions and row locks; redo and binary log in one log | YES | YES | YES
> SHOW CHARACTER SET LIKE 'utf8mb4'
Charset | Description | Default collation | Maxlen
utf8mb4 | UTF-8 Unicode | utf8mb4_general_ci | 4
> SHOW COLLATION WHERE Charset = 'ascii'
Collation | Charset | Id | Default | Compiled | Sortlen
ascii_general_ci | ascii | 11 | Yes | Yes | 1
ascii_bin | ascii | 65 |  | Yes | 1
ascii_general_nopad_ci | ascii | 1035 |  | Yes | 1
ascii_nopad_bin | ascii | 1089 |  | Yes | 1
> SHOW VARIABLES LIKE 'autocommit'
Variable_name | Value
autocommit | ON
> SHOW GLOBAL VARIABLES WHERE Variable_name = 'log_bin'
Variable_name | Value
log_bin | ON
> SHOW STATUS LIKE 'Binlog_commits'
Variable_name | Value
Binlog_commits | 2
> SHOW BINARY LOGS
Log_name | File_size
binlog.000001 | 1616
> SHOW BINLOG EVENTS LIMIT 5
Log_name | Pos | Event_type | Server_id | End_log_pos | Info
binlog.000001 | 4 | Format_desc | 1 | 256 | Server ver: 10.11.99-MariaDB-cohort-log, Binlog ver: 4
binlog.000001 | 256 | Gtid_list | 1 | 285 | []
binlog.000001 | 285 | Binlog_checkpoint | 1 | 325 | binlog.000001
binlog.000001 | 325 | Gtid | 1 | 367 | GTID 0-1-1
binlog.000001 | 367 | Query | 1 | 925 | use `test`; CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT UNSIGNED DEFAULT 0, c CHAR(10) NOT NULL DEFAULT '', v VARCHAR(20), d DECIMAL(10,2) DEFAULT 1.5, ts TIMESTAMP, ts2 TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, dt DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), e ENUM('a','b') DEFAULT 'b', s SET('x','y'), b BIT(4) DEFAULT b'101', bl BLOB, tx TEXT, KEY (k), UNIQUE uk (c,v), KEY (v(5)), y YEAR DEFAULT 2001, f FLOAT DEFAULT 1.25, j JSON, ex VARCHAR(40) DEFAULT (uuid())) COMMENT 'hi'
> SHOW BINLOG EVENTS IN 'nothing'
ERROR 1220 (HY000): Error when executing command SHOW BINLOG EVENTS: Could not find target log
> SHOW MASTER STATUS
File | Position | Binlog_Do_DB | Binlog_Ignore_DB
binlog.000001 | 1616 |  | 
> FLUSH BINARY LOGS
OK
> SHOW BINARY LOGS
Log_name | File_size
binlog.000001 | 1660
binlog.000002 | 339
> PURGE BINARY LOGS TO 'binlog.000002'
OK
> SHOW BINARY LOGS
Log_name | File_size
binlog.000002 | 339
> SHOW SLAVE HOSTS
Server_id | Host | Port | Master_id
> SHOW TRIGGERS
Trigger | Event | Table | Statement | Timing | Created | sql_mode | Definer | character_set_client | collation_connection | Database Collation
> SHOW PROCEDURE STATUS
Db | Name | Type | Definer | Modified | Created | Security_type | Comment | character_set_client | collation_connection | Database Collation
> CHECK TABLE t, nothing
Table | Op | Msg_type | Msg_text
test.t | check | status | OK
test.nothing | check | Error | Table 'test.nothing' doesn't exist
test.nothing | check | status | Operation failed
> ANALYZE TABLE t
Table | Op | Msg_type | Msg_text
test.t | analyze | status | OK
> USE information_schema
OK
> SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM TABLES WHERE TABLE_SCHEMA = 'test'
TABLE_SCHEMA | TABLE_NAME | ENGINE
test | t | REFERENCE
test | u | REFERENCE
> SELECT COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, COLUMN_TYPE, COLUMN_KEY, EXTRA FROM COLUMNS WHERE TABLE_NAME = 't' AND TABLE_SCHEMA = 'test' ORDER BY ORDINAL_POSITION
COLUMN_NAME | COLUMN_DEFAULT | IS_NULLABLE | DATA_TYPE | CHARACTER_MAXIMUM_LENGTH | NUMERIC_PRECISION | NUMERIC_SCALE | DATETIME_PRECISION | COLUMN_TYPE | COLUMN_KEY | EXTRA
id | NULL | NO | int | NULL | 10 | 0 | NULL | int(11) | PRI | auto_increment
k | 0 | YES | int | NULL | 10 | 0 | NULL | int(10) unsigned | MUL | 
c | '' | NO | char | 10 | NULL | NULL | NULL | char(10) | MUL | 
v | NULL | YES | varchar | 20 | NULL | NULL | NULL | varchar(20) | MUL | 
d | 1.50 | YES | decimal | NULL | 10 | 2 | NULL | decimal(10,2) |  | 
ts | NULL | YES | timestamp | NULL | NULL | NULL | 0 | timestamp |  | 
ts2 | NULL | YES | timestamp | NULL | NULL | NULL | 0 | timestamp |  | on update current_timestamp()
dt | current_timestamp(3) | YES | datetime | NULL | NULL | NULL | 3 | datetime(3) |  | 
e | 'b' | YES | enum | 1 | NULL | NULL | NULL | enum('a','b') |  | 
s | NULL | YES | set | 3 | NULL | NULL | NULL | set('x','y') |  | 
b | b'101' | YES | bit | NULL | 4 | NULL | NULL | bit(4) |  | 
bl | NULL | YES | blob | 65535 | NULL | NULL | NULL | blob |  | 
tx | NULL | YES | text | 65535 | NULL | NULL | NULL | text |  | 
y | 2001 | YES | year | NULL | NULL | NULL | NULL | year(4) |  | 
f | 1.25 | YES | float | NULL | 12 | NULL | NULL | float |  | 
j | NULL | YES | longtext | 4294967295 | NULL | NULL | NULL | longtext |  | 
ex | uuid() | YES | varchar | 40 | NULL | NULL | NULL | varchar(40) |  | 
> SELECT COUNT(*) FROM COLUMNS WHERE TABLE_NAME = 'TABLES'
COUNT(*)
23
> SELECT SCHEMA_NAME FROM information_schema.schemata ORDER BY 1
SCHEMA_NAME
information_schema
mysql
performance_schema
test
> SELECT CONSTRAINT_NAME, CONSTRAINT_TYPE FROM TABLE_CONSTRAINTS
CONSTRAINT_NAME | CONSTRAINT_TYPE
PRIMARY | PRIMARY KEY
uk | UNIQUE
j | CHECK
> SELECT USER, COMMAND FROM PROCESSLIST
USER | COMMAND
root | Query
> SELECT TABLE_SCHEMA, TABLE_NAME, DEFINER, SECURITY_TYPE FROM VIEWS
TABLE_SCHEMA | TABLE_NAME | DEFINER | SECURITY_TYPE
mysql | user | root@localhost | INVOKER
> SELECT * FROM VIEWS WHERE TABLE_SCHEMA = 'test'
TABLE_CATALOG | TABLE_SCHEMA | TABLE_NAME | VIEW_DEFINITION | CHECK_OPTION | IS_UPDATABLE | DEFINER | SECURITY_TYPE | CHARACTER_SET_CLIENT | COLLATION_CONNECTION | ALGORITHM
> DROP DATABASE information_schema
ERROR 1044 (42000): Access denied for user 'root'@'localhost' to database 'information_schema'

# The logs of MariaDB are there, empty; tables of information_schema say how they would be made.
> SHOW CREATE TABLE mysql.general_log
Table | Create Table
general_log | CREATE TABLE `general_log` (
    `event_time` timestamp(6) NOT NULL DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6),
    `user_host` mediumtext NOT NULL,
    `thread_id` bigint(21) unsigned NOT NULL,
    `server_id` int(10) unsigned NOT NULL,
    `command_type` varchar(64) NOT NULL,
    `argument` mediumtext NOT NULL
  ) ENGINE=CSV DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci COMMENT='General log'
> SELECT COUNT(*) FROM mysql.slow_log
COUNT(*)
0
> CREATE TABLE IF NOT EXISTS mysql.general_log (a INT)
OK
- Note | 1050 | Table 'general_log' already exists
> SHOW CREATE TABLE information_schema.SCHEMATA
Table | Create Table
SCHEMATA | CREATE TEMPORARY TABLE `SCHEMATA` (
    `CATALOG_NAME` varchar(512) NOT NULL,
    `SCHEMA_NAME` varchar(64) NOT NULL,
    `DEFAULT_CHARACTER_SET_NAME` varchar(32) NOT NULL,
    `DEFAULT_COLLATION_NAME` varchar(64) NOT NULL,
    `SQL_PATH` varchar(512),
    `SCHEMA_COMMENT` varchar(1024) NOT NULL
  ) ENGINE=MEMORY DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci

# What a dump says of a JSON column is a JSON column.
> CREATE TABLE test.dumped (`j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)))
OK
> SELECT DATA_TYPE, COLUMN_TYPE FROM information_schema.columns WHERE TABLE_NAME = 'dumped'
DATA_TYPE | COLUMN_TYPE
longtext | longtext
> SHOW CREATE TABLE test.dumped
Table | Create Table
dumped | CREATE TABLE `dumped` (
    `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`))
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> CREATE TABLE test.other (`l` longtext CHECK (json_valid(`l`)))
OK
> DROP TABLE test.dumped
OK
> SHOW COLUMNS FROM information_schema.nonesuch
ERROR 1109 (42S02): Unknown table 'nonesuch' in information_schema
> SHOW CREATE TABLE information_schema.nonesuch
ERROR 1109 (42S02): Unknown table 'nonesuch' in information_schema
> SELECT * FROM INFORMATION_SCHEMA.NoneSuch
ERROR 1109 (42S02): Unknown table 'NoneSuch' in information_schema
