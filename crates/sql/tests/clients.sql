-- mariadb command line client, start-up and completion
select @@version_comment limit 1;
select DATABASE(), USER() limit 1;
select USER();
SELECT DATABASE();
select @@character_set_client, @@character_set_connection, @@character_set_server, @@character_set_database limit 1;
show databases;
show tables;
select @@sql_mode;
help 'contents';
-- connectors
SET NAMES utf8mb4;
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci';
SET AUTOCOMMIT = 0;
SET autocommit=1, sql_mode = concat(@@sql_mode,',STRICT_TRANS_TABLES');
SELECT @@max_allowed_packet,@@system_time_zone,@@time_zone,@@auto_increment_increment,@@tx_isolation AS tx_isolation;
SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout;
/* mysql-connector-java-8.0.33 (Revision: 7d6b0800528b6b25c68b52dc10d6c1c8429c100c) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@sql_mode AS sql_mode;
SHOW VARIABLES WHERE Variable_name IN ('max_allowed_packet','system_time_zone','time_zone','auto_increment_increment');
SHOW VARIABLES LIKE 'max_allowed_packet';
SHOW SESSION VARIABLES LIKE 'lower_case_table_names';
SHOW GLOBAL STATUS LIKE 'Binlog_group_commits';
SHOW WARNINGS;
SELECT @@session.tx_read_only;
SELECT VERSION();
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SET SESSION TRANSACTION READ WRITE;
SET character_set_results = NULL;
SET wait_timeout=28800;
ROLLBACK;
select 1;
SELECT 'x' AS some_label;
select @@global.wait_timeout, @@max_allowed_packet, @@socket;
SELECT CAST('test plain returns' AS CHAR(60)) AS anon_1;
SELECT CONNECTION_ID();
SHOW FULL TABLES FROM `test`;
SHOW CREATE TABLE `sbtest1`;
SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'test' AND TABLE_NAME = 't' ORDER BY ORDINAL_POSITION;
select schema_name from information_schema.schemata;
SELECT table_name, table_rows FROM information_schema.TABLES WHERE table_schema = DATABASE();
-- mariadb-admin, mariadb-slap
show processlist;
kill 7;
flush privileges;
flush tables;
show /*!50002 GLOBAL */ status;
show /*!40003 GLOBAL */ variables;
DROP SCHEMA IF EXISTS `mysqlslap`;
CREATE SCHEMA `mysqlslap`;
use `mysqlslap`;
set storage_engine=`innodb`;
CREATE TABLE `t1` (intcol1 INT(32) ,charcol1 VARCHAR(128));
INSERT INTO t1 VALUES (1804289383,'mxvtvmC9127qJNm06sGB8R92q2j7vTiiITRDGXM9ZLzkdekbWtmXKwZ2qG1llkRw5m9DHOFilEREk3q7oce8O3BEJC0woJsm6uzFAEynLH2xCsw1KQ1lT4zg9rdxBL');
SELECT intcol1,charcol1 FROM t1;
UPDATE t1 SET intcol1 = 1,charcol1 = 'x' WHERE id = '5';
CREATE TABLE `t1` (id serial,intcol1 INT(32) ,charcol1 VARCHAR(128));
create table t1 (id int(11) not null auto_increment primary key, value int) engine=innodb;
-- sysbench
CREATE TABLE sbtest1(
  id INTEGER NOT NULL AUTO_INCREMENT,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  PRIMARY KEY (id)
) /*! ENGINE = innodb */ ;
CREATE TABLE sbtest1(id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, KEY xid (id)) /*! ENGINE = rocksdb */ MAX_ROWS = 1000;
INSERT INTO sbtest1(k, c, pad) VALUES(501, 'a', 'b'),(502, 'c', 'd');
CREATE INDEX k_1 ON sbtest1(k);
SELECT c FROM sbtest1 WHERE id=?;
SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?;
SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?;
SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c;
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c;
UPDATE sbtest1 SET k=k+1 WHERE id=?;
UPDATE sbtest1 SET c=? WHERE id=?;
DELETE FROM sbtest1 WHERE id=?;
INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?);
BEGIN;
COMMIT;
        CREATE TABLE IF NOT EXISTS sbtest1 (
          id INTEGER NOT NULL,
          k INTEGER DEFAULT '0' NOT NULL,
          PRIMARY KEY (id));
INSERT INTO sbtest1 VALUES(1,1),(2,2);
        SELECT id, k, c, pad
          FROM sbtest1
          WHERE k IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
        SELECT count(k)
          FROM sbtest1
          WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ? OR k BETWEEN ? AND ?;
ANALYZE TABLE sbtest1;
SELECT AVG(id) FROM (SELECT * FROM sbtest1 FORCE KEY (PRIMARY) LIMIT 10) t;
SELECT COUNT(*) FROM (SELECT * FROM sbtest1 WHERE k LIKE '%0%' LIMIT 10) t;
SET tmp_table_size=2*1024*1024*1024;
DROP TABLE IF EXISTS sbtest1;
-- mariadb-dump, what it asks
/*!40100 SET @@SQL_MODE='' */;
/*!40103 SET TIME_ZONE='+00:00' */;
SET SESSION character_set_results = 'binary';
/*!80000 SET SESSION information_schema_stats_expiry=0 */;
SELECT LOGFILE_GROUP_NAME, FILE_NAME, TOTAL_EXTENTS, INITIAL_SIZE, ENGINE, EXTRA FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'UNDO LOG' AND FILE_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IN (SELECT DISTINCT LOGFILE_GROUP_NAME FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'DATAFILE' AND TABLESPACE_NAME IN (SELECT DISTINCT TABLESPACE_NAME FROM INFORMATION_SCHEMA.PARTITIONS WHERE TABLE_SCHEMA IN ('test'))) GROUP BY LOGFILE_GROUP_NAME, FILE_NAME, ENGINE, TOTAL_EXTENTS, INITIAL_SIZE ORDER BY LOGFILE_GROUP_NAME;
SHOW VARIABLES LIKE 'ndbinfo\_version';
SHOW CREATE DATABASE IF NOT EXISTS `test`;
FLUSH /*!40101 LOCAL */ TABLES;
FLUSH TABLES WITH READ LOCK;
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */;
SHOW STATUS LIKE 'binlog_snapshot_%';
SELECT BINLOG_GTID_POS('b.000001', '4');
UNLOCK TABLES;
SAVEPOINT sp;
ROLLBACK TO SAVEPOINT sp;
RELEASE SAVEPOINT sp;
show table status like 't';
SET SQL_QUOTE_SHOW_CREATE=1;
show fields from `t`;
show triggers like 't';
SHOW FUNCTION STATUS WHERE Db = 'test';
SELECT engine, table_type FROM INFORMATION_SCHEMA.TABLES WHERE table_schema = DATABASE() AND table_name = 't';
SELECT column_name, extra, generation_expression, data_type FROM information_schema.columns WHERE table_schema=schema() AND table_name='t' ORDER BY ordinal_position;
SELECT /*!40001 SQL_NO_CACHE */ `id`, `v` FROM `t`;
SHOW SLAVE STATUS;
SHOW MASTER STATUS;
LOCK TABLES `t` READ /*!32311 LOCAL */;
select count(*) from mysql.proc;
-- mariadb-dump, what it writes
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY, NOTE_VERBOSITY=0 */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `test` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */;
DROP TABLE IF EXISTS `t`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `t` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `v` varchar(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL COMMENT 'it''s',
  `ts` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  `d` decimal(10,2) unsigned zerofill DEFAULT 00000001.50,
  `e` enum('a','b''c') NOT NULL DEFAULT 'a',
  `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),
  `u` char(36) DEFAULT uuid(),
  `g` int(11) GENERATED ALWAYS AS (`id` + 1) VIRTUAL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`v`(10)),
  KEY `k` (`d`,`e`) USING BTREE,
  CONSTRAINT `fk` FOREIGN KEY (`id`) REFERENCES `p` (`id`) ON DELETE CASCADE,
  CONSTRAINT `ck` CHECK (`d` > 0)
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci ROW_FORMAT=DYNAMIC COMMENT='x';
/*!40101 SET character_set_client = @saved_cs_client */;
LOCK TABLES `t` WRITE;
/*!40000 ALTER TABLE `t` DISABLE KEYS */;
INSERT INTO `t` VALUES
(1,'a\'b','2024-01-01 00:00:00',00000001.50,'a',NULL,_binary 'x\0y',2),
(2,NULL,'2024-01-01 00:00:00',-1.50,'b\'c','{\"a\": 1}',0x41,3);
/*!40000 ALTER TABLE `t` ENABLE KEYS */;
UNLOCK TABLES;
CHANGE MASTER TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=4;
SET GLOBAL gtid_slave_pos='0-1-5';
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*M!100616 SET NOTE_VERBOSITY=@OLD_NOTE_VERBOSITY */;
-- mariadb-binlog, what it writes
/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;
/*!40019 SET @@session.max_delayed_threads=0*/;
/*!50003 SET @OLD_COMPLETION_TYPE=@@COMPLETION_TYPE,COMPLETION_TYPE=0*/;
BINLOG '
ZxQBZg8BAAAA/AAAAAABAAAAAAQAMTAuMTEuMTktTWFyaWFEQi0wK2RlYjEydTEtbG9nAAAAAAAA
'/*!*/;
/*!100101 SET @@session.skip_parallel_replication=0*//*!*/;
/*!100001 SET @@session.gtid_domain_id=0*//*!*/;
/*!100001 SET @@session.server_id=1*//*!*/;
/*!100001 SET @@session.gtid_seq_no=1*//*!*/;
use `test`/*!*/;
SET TIMESTAMP=1711346791/*!*/;
SET @@session.pseudo_thread_id=4/*!*/;
SET @@session.foreign_key_checks=1, @@session.sql_auto_is_null=0, @@session.unique_checks=1, @@session.autocommit=1, @@session.check_constraint_checks=1, @@session.sql_if_exists=0, @@session.explicit_defaults_for_timestamp=1, @@session.system_versioning_insert_history=0/*!*/;
SET @@session.sql_mode=1411383296/*!*/;
SET @@session.auto_increment_increment=1, @@session.auto_increment_offset=1/*!*/;
SET @@session.character_set_client=utf8mb3,@@session.collation_connection=33,@@session.collation_server=45/*!*/;
SET @@session.lc_time_names=0/*!*/;
SET @@session.collation_database=DEFAULT/*!*/;
create table t (a int primary key, b varchar(20))
/*!*/;
START TRANSACTION
/*!*/;
COMMIT/*!*/;
ROLLBACK /* added by mysqlbinlog */;
/*!50003 SET COMPLETION_TYPE=@OLD_COMPLETION_TYPE*/;
/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=0*/;
XA START X'61',X'62',1/*!*/;
XA END X'61',X'62',1/*!*/;
XA PREPARE X'61',X'62',1/*!*/;
-- replicas and python mysql-replication
SET @master_heartbeat_period= 4294967296;
SET @master_binlog_checksum= @@global.binlog_checksum;
SET @master_binlog_checksum='NONE';
SELECT @master_binlog_checksum;
SELECT UNIX_TIMESTAMP();
SELECT @@GLOBAL.SERVER_ID;
SELECT @@GLOBAL.COLLATION_SERVER;
SELECT @@GLOBAL.TIME_ZONE;
SELECT @@global.gtid_domain_id;
SET @mariadb_slave_capability=4;
SET @slave_connect_state='0-1-5', @slave_gtid_strict_mode=1, @slave_gtid_ignore_duplicates=0;
SET @slave_uuid = '7fae6b0e-0000-11ee';
SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM';
SHOW MASTER STATUS;
SHOW BINLOG EVENTS IN 'b.000001' FROM 4 LIMIT 100;
SHOW SLAVE HOSTS;
SET @rpl_semi_sync_slave= 1;
SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Rpl_semi_sync_master_status';
SELECT COLUMN_NAME, COLLATION_NAME, CHARACTER_SET_NAME, COLUMN_COMMENT, COLUMN_TYPE, COLUMN_KEY, ORDINAL_POSITION, DATA_TYPE, CHARACTER_OCTET_LENGTH FROM information_schema.columns WHERE table_schema = 'd' AND table_name = 't' ORDER BY ORDINAL_POSITION;
CHECKSUM TABLE t1, t2 EXTENDED;
CREATE TABLE adddate(a INT);
