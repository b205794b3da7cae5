# Definitions of stored programs.

> CREATE DATABASE d1
OK 1
> USE d1
OK
> SET GLOBAL log_bin_trust_function_creators = 1
OK
> CREATE TABLE t1 (a INT, b INT)
OK
> CREATE TABLE t2 (a INT)
OK
> CREATE VIEW v1 AS SELECT * FROM t1
OK
> CREATE SEQUENCE s1
OK
> CREATE TEMPORARY TABLE tt (a INT)
OK
# Routines.
> CREATE PROCEDURE p1() SELECT 1
OK
> CREATE PROCEDURE P1() SELECT 1
ERROR 1304 (42000): PROCEDURE P1 already exists
> CREATE PROCEDURE IF NOT EXISTS P1() SELECT 1
OK
- Note | 1304 | PROCEDURE P1 already exists
> CREATE FUNCTION p1(a INT) RETURNS VARCHAR(20) DETERMINISTIC RETURN a
OK
> SHOW CREATE FUNCTION P1
Function | sql_mode | Create Function | character_set_client | collation_connection | Database Collation
p1 | STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION | CREATE DEFINER=`root`@`localhost` FUNCTION `p1`(a INT) RETURNS varchar(20) CHARSET utf8mb4 COLLATE utf8mb4_general_ci
      DETERMINISTIC
  RETURN a | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
> CREATE OR REPLACE PROCEDURE P1(in a int, out b varchar(10) charset latin1 ) COMMENT 'it''s' SQL SECURITY INVOKER READS SQL DATA DETERMINISTIC  begin /* hi */ select a; end
OK
> SHOW CREATE PROCEDURE p1
Procedure | sql_mode | Create Procedure | character_set_client | collation_connection | Database Collation
P1 | STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION | CREATE DEFINER=`root`@`localhost` PROCEDURE `P1`(in a int, out b varchar(10) charset latin1 )
      READS SQL DATA
      DETERMINISTIC
      SQL SECURITY INVOKER
      COMMENT 'it''s'
  begin /* hi */ select a; end | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
> CREATE OR REPLACE PROCEDURE IF NOT EXISTS p1() SELECT 1
ERROR 1221 (HY000): Incorrect usage of OR REPLACE and IF NOT EXISTS
> CREATE PROCEDURE nodb.p1() SELECT 1
ERROR 1049 (42000): Unknown database 'nodb'
> CREATE DEFINER=nouser@'%' PROCEDURE p2() SELECT 1 /* tail */
OK
- Note | 1449 | The user specified as a definer ('nouser'@'%') does not exist
> SHOW CREATE PROCEDURE p2
Procedure | sql_mode | Create Procedure | character_set_client | collation_connection | Database Collation
p2 | STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION | CREATE DEFINER=`nouser`@`%` PROCEDURE `p2`()
  SELECT 1 /* tail */ | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
> CREATE FUNCTION concat(a INT) RETURNS INT NO SQL RETURN 1
OK
- Note | 1585 | This function 'concat' has the same name as a native function
> CREATE AGGREGATE FUNCTION fa(a INT) RETURNS ENUM('x','y') CHARSET latin1 NO SQL BEGIN FETCH GROUP NEXT ROW; RETURN a; END
OK
> SHOW CREATE FUNCTION fa
Function | sql_mode | Create Function | character_set_client | collation_connection | Database Collation
fa | STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION | CREATE DEFINER=`root`@`localhost` AGGREGATE FUNCTION `fa`(a INT) RETURNS enum('x','y') CHARSET latin1 COLLATE latin1_swedish_ci
      NO SQL
  BEGIN FETCH GROUP NEXT ROW; RETURN a; END | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
> ALTER PROCEDURE p1 COMMENT 'y' SQL SECURITY DEFINER NO SQL
OK
> ALTER PROCEDURE nop COMMENT 'y'
ERROR 1305 (42000): PROCEDURE d1.nop does not exist
> ALTER FUNCTION nodb.f COMMENT 'y'
ERROR 1305 (42000): FUNCTION nodb.f does not exist
> SHOW CREATE PROCEDURE p1
Procedure | sql_mode | Create Procedure | character_set_client | collation_connection | Database Collation
P1 | STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION | CREATE DEFINER=`root`@`localhost` PROCEDURE `P1`(in a int, out b varchar(10) charset latin1 )
      NO SQL
      DETERMINISTIC
      COMMENT 'y'
  begin /* hi */ select a; end | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
> SHOW CREATE PROCEDURE nop
ERROR 1305 (42000): PROCEDURE nop does not exist
> SHOW CREATE FUNCTION nodb.nop
ERROR 1305 (42000): FUNCTION nop does not exist
> SELECT db, name, type, sql_data_access, is_deterministic, security_type, param_list, returns, body, definer, comment, aggregate FROM mysql.proc WHERE db = 'd1'
db | name | type | sql_data_access | is_deterministic | security_type | param_list | returns | body | definer | comment | aggregate
d1 | concat | FUNCTION | NO_SQL | NO | DEFINER | a INT | int(11) | RETURN 1 | root@localhost |  | NONE
d1 | fa | FUNCTION | NO_SQL | NO | DEFINER | a INT | enum('x','y') CHARSET latin1 COLLATE latin1_swedish_ci | BEGIN FETCH GROUP NEXT ROW; RETURN a; END | root@localhost |  | GROUP
d1 | p1 | FUNCTION | CONTAINS_SQL | YES | DEFINER | a INT | varchar(20) CHARSET utf8mb4 COLLATE utf8mb4_general_ci | RETURN a | root@localhost |  | NONE
d1 | P1 | PROCEDURE | NO_SQL | YES | DEFINER | in a int, out b varchar(10) charset latin1  |  | begin /* hi */ select a; end | root@localhost | y | NONE
d1 | p2 | PROCEDURE | CONTAINS_SQL | NO | DEFINER |  |  | SELECT 1 /* tail */ | nouser@% |  | NONE
> SELECT ROUTINE_NAME, ROUTINE_TYPE, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, CHARACTER_SET_NAME, DTD_IDENTIFIER, ROUTINE_DEFINITION, SQL_DATA_ACCESS, DEFINER FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'd1'
ROUTINE_NAME | ROUTINE_TYPE | DATA_TYPE | CHARACTER_MAXIMUM_LENGTH | CHARACTER_OCTET_LENGTH | NUMERIC_PRECISION | CHARACTER_SET_NAME | DTD_IDENTIFIER | ROUTINE_DEFINITION | SQL_DATA_ACCESS | DEFINER
concat | FUNCTION | int | NULL | NULL | 10 | NULL | int(11) | RETURN 1 | NO SQL | root@localhost
fa | FUNCTION | enum | 1 | 1 | NULL | latin1 | enum('x','y') | BEGIN FETCH GROUP NEXT ROW; RETURN a; END | NO SQL | root@localhost
p1 | FUNCTION | varchar | 20 | 80 | NULL | utf8mb4 | varchar(20) | RETURN a | CONTAINS SQL | root@localhost
P1 | PROCEDURE |  | NULL | NULL | NULL | NULL | NULL | begin /* hi */ select a; end | NO SQL | root@localhost
p2 | PROCEDURE |  | NULL | NULL | NULL | NULL | NULL | SELECT 1 /* tail */ | CONTAINS SQL | nouser@%
> SELECT SPECIFIC_NAME, ORDINAL_POSITION, PARAMETER_MODE, PARAMETER_NAME, DATA_TYPE, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, CHARACTER_SET_NAME, DTD_IDENTIFIER, ROUTINE_TYPE FROM information_schema.PARAMETERS WHERE SPECIFIC_SCHEMA = 'd1'
SPECIFIC_NAME | ORDINAL_POSITION | PARAMETER_MODE | PARAMETER_NAME | DATA_TYPE | CHARACTER_OCTET_LENGTH | NUMERIC_PRECISION | CHARACTER_SET_NAME | DTD_IDENTIFIER | ROUTINE_TYPE
concat | 0 | NULL | NULL | int | NULL | 10 | NULL | int(11) | FUNCTION
concat | 1 | IN | a | int | NULL | 10 | NULL | int(11) | FUNCTION
fa | 0 | NULL | NULL | enum | 1 | NULL | latin1 | enum('x','y') | FUNCTION
fa | 1 | IN | a | int | NULL | 10 | NULL | int(11) | FUNCTION
p1 | 0 | NULL | NULL | varchar | 80 | NULL | utf8mb4 | varchar(20) | FUNCTION
p1 | 1 | IN | a | int | NULL | 10 | NULL | int(11) | FUNCTION
P1 | 1 | IN | a | int | NULL | 10 | NULL | int(11) | PROCEDURE
P1 | 2 | OUT | b | varchar | 10 | NULL | latin1 | varchar(10) | PROCEDURE
> DROP PROCEDURE nop
ERROR 1305 (42000): PROCEDURE d1.nop does not exist
> DROP PROCEDURE IF EXISTS nodb.nop
OK
- Note | 1305 | PROCEDURE nodb.nop does not exist
> DROP FUNCTION nop
ERROR 1305 (42000): FUNCTION d1.nop does not exist
> DROP PROCEDURE P1
OK
> CREATE PROCEDURE information_schema.x() SELECT 1
ERROR 1044 (42000): Access denied for user 'root'@'localhost' to database 'information_schema'
> DROP PROCEDURE information_schema.x
ERROR 1305 (42000): PROCEDURE information_schema.x does not exist
> CREATE PROCEDURE `q `() SELECT 1
ERROR 1458 (42000): Incorrect routine name 'q '
> CREATE DEFINER=CURRENT_ROLE PROCEDURE q() SELECT 1
ERROR 1446 (0L000): Invalid definer
> SHOW PROCEDURE CODE p2
ERROR 1289 (HY000): The 'SHOW PROCEDURE|FUNCTION CODE' feature is disabled; you need MariaDB built with '--with-debug' to have it working
> ALTER DATABASE d1 COMMENT 'keeps its contents'
OK 1
> SELECT name FROM mysql.proc WHERE db = 'd1'
name
concat
fa
p1
p2
> SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'
OK
> CREATE PROCEDURE "q""x"() COMMENT 'a''\b' SELECT "a"
OK
> SET sql_mode = DEFAULT
OK
> SHOW CREATE PROCEDURE `q"x`
Procedure | sql_mode | Create Procedure | character_set_client | collation_connection | Database Collation
q"x | ANSI_QUOTES,NO_BACKSLASH_ESCAPES | CREATE DEFINER="root"@"localhost" PROCEDURE "q""x"()
      COMMENT 'a''\\b'
  SELECT "a" | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
> SET GLOBAL log_bin_trust_function_creators = 0
OK
# Triggers.
> CREATE TRIGGER a1 BEFORE INSERT ON v1 FOR EACH ROW SET @a = 1
ERROR 1347 (HY000): 'd1.v1' is not of type 'BASE TABLE'
> CREATE TRIGGER a1 BEFORE INSERT ON tt FOR EACH ROW SET @a = 1
ERROR 1361 (HY000): Trigger's 'tt' is a view, temporary table or sequence
> CREATE TRIGGER a1 BEFORE INSERT ON s1 FOR EACH ROW SET @a = 1
ERROR 1361 (HY000): Trigger's 's1' is a view, temporary table or sequence
> CREATE TRIGGER a1 BEFORE INSERT ON nope FOR EACH ROW SET @a = 1
ERROR 1146 (42S02): Table 'd1.nope' doesn't exist
> CREATE TRIGGER nodb.a1 BEFORE INSERT ON t1 FOR EACH ROW SET @a = 1
ERROR 1146 (42S02): Table 'nodb.t1' doesn't exist
> CREATE TRIGGER test.a1 BEFORE INSERT ON d1.t1 FOR EACH ROW SET @a = 1
ERROR 1435 (HY000): Trigger in wrong schema
> CREATE TRIGGER a1 BEFORE INSERT ON mysql.proc FOR EACH ROW SET @a = 1
ERROR 1465 (HY000): Triggers can not be created on system tables
> CREATE TRIGGER a1 BEFORE INSERT ON information_schema.TABLES FOR EACH ROW SET @a = 1
ERROR 1044 (42000): Access denied for user 'root'@'localhost' to database 'information_schema'
> create /* c */ trigger   a1 before insert on   `t1`  for each row set @a = 1 /* tail */
OK
> CREATE TRIGGER a1 BEFORE INSERT ON t2 FOR EACH ROW SET @a = 1
ERROR 1359 (HY000): Trigger 'd1.a1' already exists
> CREATE TRIGGER IF NOT EXISTS a1 AFTER INSERT ON t2 FOR EACH ROW SET @a = 1
OK
- Note | 1359 | Trigger 'd1.a1' already exists
> CREATE OR REPLACE TRIGGER a1 AFTER INSERT ON t2 FOR EACH ROW SET @a = 1
ERROR 1360 (HY000): Trigger does not exist
> CREATE OR REPLACE TRIGGER a1 AFTER DELETE ON t1 FOR EACH ROW SET @a = 1
OK
> CREATE TRIGGER a2 AFTER DELETE ON t1 FOR EACH ROW FOLLOWS nope SET @a = 2
ERROR 4031 (HY000): Referenced trigger 'nope' for the given action time and event type does not exist
> CREATE TRIGGER a2 BEFORE DELETE ON t1 FOR EACH ROW FOLLOWS a1 SET @a = 2
ERROR 4031 (HY000): Referenced trigger 'a1' for the given action time and event type does not exist
> CREATE TRIGGER a2 AFTER DELETE ON t1 FOR EACH ROW PRECEDES a1 /* c */ SET @a = 2
OK
> CREATE DEFINER=nope@x TRIGGER A1 AFTER DELETE ON t1 FOR EACH ROW FOLLOWS a2  SET @a = 3
OK
- Note | 1449 | The user specified as a definer ('nope'@'x') does not exist
> SELECT TRIGGER_NAME, ACTION_ORDER, EVENT_MANIPULATION, ACTION_TIMING, ACTION_STATEMENT, DEFINER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'd1'
TRIGGER_NAME | ACTION_ORDER | EVENT_MANIPULATION | ACTION_TIMING | ACTION_STATEMENT | DEFINER
a2 | 1 | DELETE | AFTER | SET @a = 2 | root@localhost
A1 | 2 | DELETE | AFTER | SET @a = 3 | nope@x
a1 | 3 | DELETE | AFTER | SET @a = 1 | root@localhost
> RENAME TABLE t1 TO test.t1
ERROR 1435 (HY000): Trigger in wrong schema
> ALTER TABLE t1 RENAME test.t1
ERROR 1435 (HY000): Trigger in wrong schema
> ALTER TABLE t1 ADD c INT, RENAME `x``y`
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'd1'
TRIGGER_NAME | EVENT_OBJECT_TABLE
a2 | x`y
A1 | x`y
a1 | x`y
> RENAME TABLE `x``y` TO t1
OK
> CREATE TABLE t3 LIKE t1
OK
> SHOW TRIGGERS LIKE 't3'
Trigger | Event | Table | Statement | Timing | Created | sql_mode | Definer | character_set_client | collation_connection | Database Collation
> TRUNCATE t1
OK
> DROP TRIGGER a1
OK
> DROP TRIGGER a1
ERROR 1360 (HY000): Trigger does not exist
> DROP TRIGGER IF EXISTS a1
OK
- Note | 1360 | Trigger does not exist
> SHOW CREATE TRIGGER a1
ERROR 1360 (HY000): Trigger does not exist
> SELECT TRIGGER_NAME, ACTION_ORDER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'd1'
TRIGGER_NAME | ACTION_ORDER
a2 | 1
A1 | 2
> CREATE OR REPLACE TABLE t1 (a INT)
OK
> SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'd1'
COUNT(*)
0
> LOCK TABLES t2 WRITE
OK
> CREATE TRIGGER a1 BEFORE INSERT ON t2 FOR EACH ROW SET @a = 1
OK
> CREATE PROCEDURE q() SELECT 1
ERROR 1192 (HY000): Can't execute the given command because you have active locked tables or an active transaction
> DROP PROCEDURE p2
ERROR 1192 (HY000): Can't execute the given command because you have active locked tables or an active transaction
> CREATE EVENT q ON SCHEDULE EVERY 1 DAY DO SELECT 1
ERROR 1192 (HY000): Can't execute the given command because you have active locked tables or an active transaction
> UNLOCK TABLES
OK
> DROP TABLE t2
OK
> SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'd1'
COUNT(*)
0
> SHOW TRIGGERS FROM nodb
ERROR 1049 (42000): Unknown database 'nodb'
# Events.
> SET GLOBAL event_scheduler = ON
OK
> SET time_zone = '+02:00'
OK
> CREATE EVENT e1 ON SCHEDULE EVERY 1 HOUR STARTS '2030-01-01' DO SELECT 1
OK
> CREATE EVENT E1 ON SCHEDULE EVERY 1 HOUR DO SELECT 1
ERROR 1537 (HY000): Event 'E1' already exists
> CREATE EVENT IF NOT EXISTS E1 ON SCHEDULE EVERY 1 HOUR STARTS '2030-01-01' DO SELECT 1
OK
- Note | 1537 | Event 'E1' already exists
> CREATE EVENT e2 ON SCHEDULE AT '1999-01-01' DO SELECT 1
OK
- Note | 1588 | Event execution time is in the past and ON COMPLETION NOT PRESERVE is set. The event was dropped immediately after creation
> CREATE EVENT e2 ON SCHEDULE AT '1999-01-01' ON COMPLETION PRESERVE DO SELECT 1
OK
- Note | 1544 | Event execution time is in the past. Event has been disabled
> CREATE EVENT e3 ON SCHEDULE AT '2040-01-01' DO SELECT 1
ERROR 1525 (HY000): Incorrect AT value: '2040-01-01'
> CREATE EVENT e3 ON SCHEDULE AT NULL DO SELECT 1
ERROR 1525 (HY000): Incorrect AT value: 'NULL'
> CREATE EVENT e3 ON SCHEDULE AT 'abc' DO SELECT 1
ERROR 1525 (HY000): Incorrect AT value: 'abc'
> CREATE EVENT e3 ON SCHEDULE EVERY '1:30' HOUR_MINUTE STARTS '2030-01-01 10:00:00' ENDS '2030-02-01' DISABLE ON SLAVE COMMENT 'x''y' DO begin end /* d */
OK
> CREATE EVENT e4 ON SCHEDULE EVERY 0 HOUR DO SELECT 1
ERROR 1542 (HY000): INTERVAL is either not positive or too big
> CREATE EVENT e4 ON SCHEDULE EVERY 1 MICROSECOND DO SELECT 1
ERROR 1235 (42000): This version of MariaDB doesn't yet support 'MICROSECOND'
> CREATE EVENT e4 ON SCHEDULE EVERY 1 HOUR STARTS '2030-01-02' ENDS '2030-01-01' DO SELECT 1
ERROR 1543 (HY000): ENDS is either invalid or before STARTS
> CREATE EVENT e4 ON SCHEDULE EVERY NULL HOUR DO SELECT 1
ERROR 1525 (HY000): Incorrect INTERVAL value: 'NULL'
> CREATE EVENT e4 ON SCHEDULE EVERY 200000000000 YEAR DO SELECT 1
ERROR 1542 (HY000): INTERVAL is either not positive or too big
> CREATE EVENT e4 ON SCHEDULE EVERY (SELECT 1 + 1) WEEK STARTS '2030-01-01' DO SELECT 1
OK
> CREATE EVENT e5 ON SCHEDULE EVERY '1 2:3:4' DAY_SECOND STARTS '2030-01-01' DO SELECT 1
OK
> CREATE EVENT e6 ON SCHEDULE EVERY '2-3' YEAR_MONTH STARTS '2030-01-01' DO SELECT 1
OK
> CREATE EVENT nodb.e ON SCHEDULE EVERY 1 DAY DO SELECT 1
ERROR 1049 (42000): Unknown database 'nodb'
> CREATE EVENT information_schema.e ON SCHEDULE EVERY 1 DAY DO SELECT 1
ERROR 1044 (42000): Access denied for user 'root'@'localhost' to database 'information_schema'
> ALTER EVENT nope DISABLE
ERROR 1539 (HY000): Unknown event 'nope'
> ALTER EVENT e1 RENAME TO E1
ERROR 1551 (HY000): Same old and new event name
> ALTER EVENT e1 RENAME TO E1x
OK
> ALTER EVENT e1x RENAME TO e2
ERROR 1537 (HY000): Event 'e2' already exists
> ALTER EVENT e1x DISABLE
OK
> ALTER EVENT e1x ON SCHEDULE AT '1999-01-01'
ERROR 1589 (HY000): Event execution time is in the past and ON COMPLETION NOT PRESERVE is set. The event was not changed. Specify a time in the future
> ALTER EVENT e1x ON SCHEDULE AT '2035-01-01' ON COMPLETION PRESERVE ENABLE COMMENT 'z' DO SELECT 77
OK
> DROP EVENT nope
ERROR 1539 (HY000): Unknown event 'nope'
> DROP EVENT IF EXISTS nope
OK
- Note | 1305 | Event nope does not exist
> SET time_zone = '+00:00'
OK
> SHOW CREATE EVENT e3
Event | sql_mode | time_zone | Create Event | character_set_client | collation_connection | Database Collation
e3 | STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION | +02:00 | CREATE DEFINER=`root`@`localhost` EVENT `e3` ON SCHEDULE EVERY '1:30' HOUR_MINUTE STARTS '2030-01-01 10:00:00' ENDS '2030-02-01 00:00:00' ON COMPLETION NOT PRESERVE DISABLE ON SLAVE COMMENT 'x''y' DO begin end /* d */ | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
> SHOW CREATE EVENT E1X
Event | sql_mode | time_zone | Create Event | character_set_client | collation_connection | Database Collation
E1x | STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION | +02:00 | CREATE DEFINER=`root`@`localhost` EVENT `E1x` ON SCHEDULE AT '2035-01-01 00:00:00' ON COMPLETION PRESERVE ENABLE COMMENT 'z' DO SELECT 77 | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
> SHOW CREATE EVENT nope
ERROR 1539 (HY000): Unknown event 'nope'
> SHOW EVENTS
Db | Name | Definer | Time zone | Type | Execute at | Interval value | Interval field | Starts | Ends | Status | Originator | character_set_client | collation_connection | Database Collation
d1 | E1x | root@localhost | +02:00 | ONE TIME | 2035-01-01 00:00:00 | NULL | NULL | NULL | NULL | ENABLED | 1 | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
d1 | e2 | root@localhost | +02:00 | ONE TIME | 1999-01-01 00:00:00 | NULL | NULL | NULL | NULL | DISABLED | 1 | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
d1 | e3 | root@localhost | +02:00 | RECURRING | NULL | '1:30' | HOUR_MINUTE | 2030-01-01 10:00:00 | 2030-02-01 00:00:00 | SLAVESIDE_DISABLED | 1 | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
d1 | e4 | root@localhost | +02:00 | RECURRING | NULL | 2 | WEEK | 2030-01-01 00:00:00 | NULL | ENABLED | 1 | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
d1 | e5 | root@localhost | +02:00 | RECURRING | NULL | '1 2:3:4' | DAY_SECOND | 2030-01-01 00:00:00 | NULL | ENABLED | 1 | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
d1 | e6 | root@localhost | +02:00 | RECURRING | NULL | '2-3' | YEAR_MONTH | 2030-01-01 00:00:00 | NULL | ENABLED | 1 | utf8mb4 | utf8mb4_general_ci | utf8mb4_general_ci
> SELECT name, execute_at, interval_value, interval_field, starts, ends, status, on_completion FROM mysql.event WHERE db = 'd1'
name | execute_at | interval_value | interval_field | starts | ends | status | on_completion
E1x | 2034-12-31 22:00:00 | NULL | NULL | NULL | NULL | ENABLED | PRESERVE
e2 | 1998-12-31 22:00:00 | NULL | NULL | NULL | NULL | DISABLED | PRESERVE
e3 | NULL | 90 | HOUR_MINUTE | 2030-01-01 08:00:00 | 2030-01-31 22:00:00 | SLAVESIDE_DISABLED | DROP
e4 | NULL | 14 | WEEK | 2029-12-31 22:00:00 | NULL | ENABLED | DROP
e5 | NULL | 93784 | DAY_SECOND | 2029-12-31 22:00:00 | NULL | ENABLED | DROP
e6 | NULL | 27 | YEAR_MONTH | 2029-12-31 22:00:00 | NULL | ENABLED | DROP
> SELECT EVENT_NAME, EXECUTE_AT, STARTS, ENDS FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'd1'
EVENT_NAME | EXECUTE_AT | STARTS | ENDS
E1x | 2035-01-01 00:00:00 | NULL | NULL
e2 | 1999-01-01 00:00:00 | NULL | NULL
e3 | NULL | 2030-01-01 10:00:00 | 2030-02-01 00:00:00
e4 | NULL | 2030-01-01 00:00:00 | NULL
e5 | NULL | 2030-01-01 00:00:00 | NULL
e6 | NULL | 2030-01-01 00:00:00 | NULL
# A database's programs go with it.
> CREATE OR REPLACE DATABASE d1
OK 2
> SELECT name FROM mysql.proc WHERE db = 'd1'
name
> CREATE PROCEDURE d1.p() SELECT 1
OK
> CREATE EVENT d1.e ON SCHEDULE EVERY 1 DAY DO SELECT 1
OK
> DROP DATABASE d1
OK
> SELECT name FROM mysql.event WHERE db = 'd1'
name
> CREATE DATABASE d1
OK 1
> SHOW CREATE PROCEDURE d1.p
ERROR 1305 (42000): PROCEDURE p does not exist
> DROP FUNCTION foo
ERROR 1305 (42000): FUNCTION (UDF) foo does not exist
> DROP FUNCTION IF EXISTS foo
OK
- Note | 1305 | FUNCTION (UDF) foo does not exist
> DROP PROCEDURE foo
ERROR 1046 (3D000): No database selected
> DROP DATABASE d1
OK
# Privileges on routines.
> CREATE DATABASE d5
OK 1
> CREATE PROCEDURE d5.p() SELECT 1
OK
> CREATE FUNCTION d5.f() RETURNS INT NO SQL RETURN 1
OK
> CREATE USER u1@localhost
OK
> CREATE ROLE r1
OK
> GRANT EXECUTE ON PROCEDURE d5.P TO u1@localhost
OK
> GRANT EXECUTE ON PROCEDURE d5.nop TO u1@localhost
ERROR 1305 (42000): FUNCTION or PROCEDURE nop does not exist
> GRANT SELECT ON PROCEDURE d5.p TO u1@localhost
ERROR 1144 (42000): Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used
> GRANT EXECUTE ON FUNCTION d5.p TO u1@localhost
ERROR 1305 (42000): FUNCTION or PROCEDURE p does not exist
> GRANT ALTER ROUTINE ON FUNCTION d5.f TO u1@localhost WITH GRANT OPTION
OK
> GRANT ALL ON FUNCTION d5.f TO r1
OK
> SHOW GRANTS FOR u1@localhost
Grants for u1@localhost
GRANT USAGE ON *.* TO `u1`@`localhost`
GRANT EXECUTE ON PROCEDURE `d5`.`p` TO `u1`@`localhost`
GRANT ALTER ROUTINE ON FUNCTION `d5`.`f` TO `u1`@`localhost` WITH GRANT OPTION
> SHOW GRANTS FOR r1
Grants for r1
GRANT USAGE ON *.* TO `r1`
GRANT EXECUTE, ALTER ROUTINE ON FUNCTION `d5`.`f` TO `r1`
> SELECT Db, User, Routine_name, Routine_type, Proc_priv FROM mysql.procs_priv
Db | User | Routine_name | Routine_type | Proc_priv
d5 | r1 | f | FUNCTION | Execute,Alter Routine
d5 | u1 | p | PROCEDURE | Execute
d5 | u1 | f | FUNCTION | Alter Routine,Grant
> REVOKE ALTER ROUTINE ON PROCEDURE d5.p FROM u1@localhost
OK
> REVOKE EXECUTE ON PROCEDURE d5.p FROM u1@localhost
OK
> REVOKE EXECUTE ON PROCEDURE d5.p FROM u1@localhost
ERROR 1403 (42000): There is no such grant defined for user 'u1' on host 'localhost' on routine 'p'
> REVOKE EXECUTE ON PROCEDURE d5.nop FROM u1@localhost
ERROR 1403 (42000): There is no such grant defined for user 'u1' on host 'localhost' on routine 'nop'
> REVOKE EXECUTE ON FUNCTION d5.f FROM nou@localhost
ERROR 1141 (42000): There is no such grant defined for user 'nou' on host 'localhost'
> GRANT EXECUTE ON PROCEDURE d5.p TO u1@localhost
OK
> DROP PROCEDURE d5.p
OK
> CREATE OR REPLACE FUNCTION d5.f() RETURNS INT NO SQL RETURN 2
OK
> SHOW GRANTS FOR u1@localhost
Grants for u1@localhost
GRANT USAGE ON *.* TO `u1`@`localhost`
GRANT ALTER ROUTINE ON FUNCTION `d5`.`f` TO `u1`@`localhost` WITH GRANT OPTION
> SET GLOBAL automatic_sp_privileges = 0
OK
> DROP FUNCTION d5.f
OK
> SHOW GRANTS FOR u1@localhost
Grants for u1@localhost
GRANT USAGE ON *.* TO `u1`@`localhost`
GRANT ALTER ROUTINE ON FUNCTION `d5`.`f` TO `u1`@`localhost` WITH GRANT OPTION
> SET GLOBAL automatic_sp_privileges = 1
OK
> DROP USER u1@localhost
OK
> DROP ROLE r1
OK
> DROP DATABASE d5
OK
