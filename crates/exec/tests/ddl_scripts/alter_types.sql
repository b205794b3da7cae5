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
