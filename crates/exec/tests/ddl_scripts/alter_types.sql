# ALTER TABLE and what columns become: character sets, JSON.

# The character set of the table is that of columns which the statement adds, wherever it stands.
> CREATE TABLE t (a VARCHAR(10), b TEXT) CHARSET=latin1
OK
> ALTER TABLE t ADD COLUMN c VARCHAR(10), ADD COLUMN d VARCHAR(5) COLLATE utf8mb4_bin, DEFAULT CHARSET=utf8mb4, MODIFY a VARCHAR(20)
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` varchar(20) DEFAULT NULL,
    `b` text CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
    `c` varchar(10) DEFAULT NULL,
    `d` varchar(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, DEFAULT CHARSET=latin1, ADD COLUMN e TEXT COLLATE utf8mb4_bin
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL,
    `b` mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL,
    `c` varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL,
    `d` varchar(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL,
    `e` text CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL
  ) ENGINE=REFERENCE DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci
> ALTER TABLE t CHARSET=utf8mb4, CHARSET=latin1
ERROR 1302 (HY000): Conflicting declarations: 'CHARACTER SET utf8mb4' and 'CHARACTER SET latin1'
> DROP TABLE t
OK

# Converted to binary, columns are of the binary types.
> CREATE TABLE t (a VARCHAR(10) DEFAULT 'ä', b TEXT DEFAULT 'ö', c CHAR(5), d ENUM('a','b'), e TINYTEXT, f MEDIUMTEXT, g LONGTEXT, h SET('x','y'), j JSON, k CHAR(3) NOT NULL DEFAULT 'x', l VARCHAR(20) CHARACTER SET latin1, KEY (a), KEY (b(10)), KEY (c))
OK
> INSERT INTO t VALUES ('ä', 'ö', 'x', 'a', 't', 'm', 'l', 'x', '{}', 'm', 'ä')
OK 1
> ALTER TABLE t CONVERT TO CHARACTER SET binary
OK 1 (Records: 1  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` varbinary(10) DEFAULT 'ä',
    `b` blob DEFAULT 'ö',
    `c` binary(5) DEFAULT NULL,
    `d` enum('a','b') DEFAULT NULL,
    `e` tinyblob DEFAULT NULL,
    `f` mediumblob DEFAULT NULL,
    `g` longblob DEFAULT NULL,
    `h` set('x','y') DEFAULT NULL,
    `j` longblob DEFAULT NULL CHECK (json_valid(`j`)),
    `k` binary(3) NOT NULL DEFAULT 'x\0\0',
    `l` varbinary(20) DEFAULT NULL,
    KEY `a` (`a`),
    KEY `b` (`b`(10)),
    KEY `c` (`c`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=binary
> SELECT HEX(a), HEX(b), HEX(c), HEX(d), HEX(k), HEX(l) FROM t FORCE INDEX (c) WHERE c = 'x\0\0\0\0'
HEX(a) | HEX(b) | HEX(c) | HEX(d) | HEX(k) | HEX(l)
C3A4 | C3B6 | 7800000000 | 61 | 6D0000 | E4
> INSERT INTO t (j, c) VALUES ('x', 'y')
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> INSERT INTO t (j, c) VALUES ('1', 'y')
OK 1
> SELECT HEX(a), HEX(b), HEX(c), HEX(k) FROM t WHERE c = 'y\0\0\0\0'
HEX(a) | HEX(b) | HEX(c) | HEX(k)
C3A4 | C3B6 | 7900000000 | 780000
> ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` varbinary(10) DEFAULT 'ä',
    `b` blob DEFAULT 'ö',
    `c` binary(5) DEFAULT NULL,
    `d` enum('a','b') CHARACTER SET binary DEFAULT NULL,
    `e` tinyblob DEFAULT NULL,
    `f` mediumblob DEFAULT NULL,
    `g` longblob DEFAULT NULL,
    `h` set('x','y') CHARACTER SET binary DEFAULT NULL,
    `j` longblob DEFAULT NULL CHECK (json_valid(`j`)),
    `k` binary(3) NOT NULL DEFAULT 'x\0\0',
    `l` varbinary(20) DEFAULT NULL,
    KEY `a` (`a`),
    KEY `b` (`b`(10)),
    KEY `c` (`c`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK
> CREATE TABLE t (a VARCHAR(10), FULLTEXT (a))
OK
> ALTER TABLE t CONVERT TO CHARACTER SET binary
ERROR 1283 (HY000): Column 'a' cannot be part of FULLTEXT index
> DROP TABLE t
OK
> CREATE TABLE t (a VARCHAR(20000)) CHARSET=latin1
OK
> ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4
ERROR 1074 (42000): Column length too big for column 'a' (max = 16383); use BLOB or TEXT instead
> DROP TABLE t
OK

# JSON NOT NULL does not take the empty text that other columns have without a default.
> CREATE TABLE t (a INT PRIMARY KEY, j JSON NOT NULL)
OK
> INSERT IGNORE INTO t VALUES (1, NULL)
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> INSERT IGNORE INTO t (a) VALUES (2)
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> INSERT IGNORE INTO t VALUES (6, '{}'), (7, NULL), (8, '[]')
OK 2 (Records: 2  Duplicates: 0  Warnings: 3)
- Warning | 1048 | Column 'j' cannot be null
- Note | 4037 | Unexpected end of JSON text in argument 1 to function 'json_valid'
- Warning | 4025 | CONSTRAINT `t.j` failed for `test`.`t`
> UPDATE IGNORE t SET j = NULL WHERE a = 6
OK (Rows matched: 0  Changed: 0  Warnings: 3)
- Warning | 1048 | Column 'j' cannot be null
- Note | 4037 | Unexpected end of JSON text in argument 1 to function 'json_valid'
- Warning | 4025 | CONSTRAINT `t.j` failed for `test`.`t`
> INSERT IGNORE INTO t SELECT 9, NULL
OK (Records: 0  Duplicates: 0  Warnings: 3)
- Warning | 1048 | Column 'j' cannot be null
- Note | 4037 | Unexpected end of JSON text in argument 1 to function 'json_valid'
- Warning | 4025 | CONSTRAINT `t.j` failed for `test`.`t`
> SET sql_mode = ''
OK
> INSERT INTO t VALUES (1, '{}'), (2, NULL)
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> INSERT INTO t (a) VALUES (3)
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> INSERT INTO t VALUES (4, DEFAULT)
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> REPLACE INTO t (a) VALUES (6)
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> INSERT INTO t VALUES (6, '[]') ON DUPLICATE KEY UPDATE j = NULL
ERROR 1048 (23000): Column 'j' cannot be null
> UPDATE t SET j = NULL WHERE a = 6
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> SET sql_mode = DEFAULT
OK
> SELECT * FROM t
a | j
6 | {}
8 | []
> DROP TABLE t
OK

# Rows that were there when such a column came have it; whoever changes them must fill it.
> CREATE TABLE t (a INT)
OK
> INSERT INTO t VALUES (1)
OK 1
> ALTER TABLE t ADD COLUMN j JSON NOT NULL
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t FORCE
OK 1 (Records: 1  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
a | j
1 | 
> UPDATE t SET a = 2
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> UPDATE t SET a = 2, j = '[]'
OK 1 (Rows matched: 1  Changed: 1  Warnings: 0)
> DROP TABLE t
OK

# A CHECK that is written for a JSON column stands instead of its own.
> CREATE TABLE t (a INT, j JSON CHECK (a > 0), k JSON DEFAULT '[1, 2]' CHECK (JSON_LENGTH(k) > 1), l JSON CHECK (JSON_VALID(l)), m JSON CHECK (JSON_VALID(m) AND a > 0))
OK
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (`a` > 0),
    `k` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '[1, 2]' CHECK (json_length(`k`) > 1),
    `l` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`l`)),
    `m` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`m`) and `a` > 0)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> INSERT INTO t (a, j) VALUES (1, 'x')
OK 1
> INSERT INTO t (a, j) VALUES (0, '1')
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> INSERT INTO t (a, k) VALUES (1, '[1]')
ERROR 4025 (23000): CONSTRAINT `t.k` failed for `test`.`t`
> INSERT INTO t (a, l) VALUES (1, 'x')
ERROR 4025 (23000): CONSTRAINT `t.l` failed for `test`.`t`
> INSERT INTO t (a, m) VALUES (1, 'x')
ERROR 4025 (23000): CONSTRAINT `t.m` failed for `test`.`t`
> ALTER TABLE t MODIFY j JSON
ERROR 4025 (23000): CONSTRAINT `t.j` failed for `test`.`t`
> UPDATE t SET j = '"x"'
OK 1 (Rows matched: 1  Changed: 1  Warnings: 0)
> ALTER TABLE t MODIFY j JSON
OK 1 (Records: 1  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),
    `k` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '[1, 2]' CHECK (json_length(`k`) > 1),
    `l` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`l`)),
    `m` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`m`) and `a` > 0)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK

# A column is changed once; without its default it has NULL, if it may.
> CREATE TABLE t (a INT DEFAULT 1, b INT, c INT DEFAULT (a + 1), d INT NOT NULL DEFAULT 4, e TIMESTAMP NULL)
OK
> ALTER TABLE t MODIFY a BIGINT, MODIFY a INT
ERROR 1054 (42S22): Unknown column 'a' in 't'
> ALTER TABLE t MODIFY a BIGINT, CHANGE a f INT
ERROR 1054 (42S22): Unknown column 'a' in 't'
> ALTER TABLE t MODIFY a BIGINT, ALTER a SET DEFAULT 3
ERROR 1054 (42S22): Unknown column 'a' in 't'
> ALTER TABLE t ALTER a SET DEFAULT 3, MODIFY a BIGINT
ERROR 1054 (42S22): Unknown column 'a' in 't'
> ALTER TABLE t RENAME COLUMN a TO f, ALTER f SET DEFAULT 3
ERROR 1054 (42S22): Unknown column 'f' in 't'
> ALTER TABLE t ADD COLUMN f INT, MODIFY f BIGINT
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t ALTER a DROP DEFAULT, ALTER c DROP DEFAULT, ALTER d DROP DEFAULT, ALTER e DROP DEFAULT
OK (Records: 0  Duplicates: 0  Warnings: 0)
> INSERT INTO t (d) VALUES (1)
OK 1
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    `b` int(11) DEFAULT NULL,
    `c` int(11) DEFAULT NULL,
    `d` int(11) NOT NULL,
    `e` timestamp NULL DEFAULT NULL,
    `f` bigint(20) DEFAULT NULL
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK

# NULL for a column of the primary key says nothing, digits of ON UPDATE are those of the column.
> CREATE TABLE t (a INT NULL DEFAULT NULL, b INT DEFAULT NULL, d DATETIME(3) ON UPDATE CURRENT_TIMESTAMP, e DATETIME ON UPDATE CURRENT_TIMESTAMP(6), PRIMARY KEY (a, b))
OK
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) NOT NULL,
    `b` int(11) NOT NULL,
    `d` datetime(3) DEFAULT NULL ON UPDATE current_timestamp(3),
    `e` datetime DEFAULT NULL ON UPDATE current_timestamp(),
    PRIMARY KEY (`a`,`b`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> ALTER TABLE t DROP PRIMARY KEY, MODIFY a INT NULL, ADD PRIMARY KEY (a)
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP COLUMN a, ADD COLUMN a INT NULL FIRST
OK (Records: 0  Duplicates: 0  Warnings: 0)
> INSERT INTO t (a) VALUES (NULL)
ERROR 1364 (HY000): Field 'b' doesn't have a default value
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) NOT NULL,
    `b` int(11) NOT NULL,
    `d` datetime(3) DEFAULT NULL ON UPDATE current_timestamp(3),
    `e` datetime DEFAULT NULL ON UPDATE current_timestamp(),
    PRIMARY KEY (`a`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> ALTER TABLE t MODIFY d DATE ON UPDATE CURRENT_TIMESTAMP
ERROR 1294 (HY000): Invalid ON UPDATE clause for 'd' column
> DROP TABLE t
OK

# Who does not see a column does not give it a value.
> CREATE TABLE t (a INT, b INT NOT NULL INVISIBLE)
ERROR 4108 (HY000): Invisible column `b` must have a default value
> CREATE TABLE t (a INT, b INT INVISIBLE, PRIMARY KEY (b))
ERROR 4108 (HY000): Invisible column `b` must have a default value
> CREATE TABLE t (a INT, b INT NOT NULL INVISIBLE DEFAULT 3, c INT INVISIBLE AUTO_INCREMENT PRIMARY KEY, d INT)
OK
> ALTER TABLE t ADD COLUMN e INT NOT NULL INVISIBLE
ERROR 4108 (HY000): Invisible column `e` must have a default value
> ALTER TABLE t ALTER b DROP DEFAULT
ERROR 4108 (HY000): Invisible column `b` must have a default value
> ALTER TABLE t MODIFY b INT NOT NULL INVISIBLE
ERROR 4108 (HY000): Invisible column `b` must have a default value
> DROP TABLE t
OK
