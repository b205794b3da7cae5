# Databases and tables come and go; names, notes and errors are MariaDB's.

> CREATE DATABASE d COLLATE latin1_bin
OK 1
> CREATE DATABASE d
ERROR 1007 (HY000): Can't create database 'd'; database exists
> CREATE DATABASE IF NOT EXISTS d
OK
- Note | 1007 | Can't create database 'd'; database exists
> USE d
OK
> CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT UNSIGNED DEFAULT 0, c CHAR(10) NOT NULL DEFAULT '', KEY (k)) ENGINE=InnoDB
OK
- Note | 1266 | Using storage engine REFERENCE for table 't'
> CREATE TABLE t (a INT)
ERROR 1050 (42S01): Table 't' already exists
> CREATE TABLE IF NOT EXISTS t (a INT)
OK
- Note | 1050 | Table 't' already exists
> INSERT INTO t (k) VALUES (1), (2)
OK 2 id 1 (Records: 2  Duplicates: 0  Warnings: 0)
> INSERT INTO t (k) VALUES (3)
OK 1 id 3
> SELECT * FROM t
id | k | c
1 | 1 | 
2 | 2 | 
3 | 3 | 
> TRUNCATE TABLE t
OK
> INSERT INTO t (k) VALUES (4)
OK 1 id 1
> SELECT * FROM t
id | k | c
1 | 4 | 
> RENAME TABLE t TO u, u TO v
OK
> SELECT * FROM t
ERROR 1146 (42S02): Table 'd.t' doesn't exist
> SELECT * FROM v
id | k | c
1 | 4 | 
> CREATE TABLE w LIKE v
OK
> SELECT * FROM w
id | k | c
> DROP TABLE nothing
ERROR 1051 (42S02): Unknown table 'd.nothing'
> DROP TABLE IF EXISTS nothing, w
OK
- Note | 1051 | Unknown table 'd.nothing'
> DROP TABLE v, nothing
ERROR 1051 (42S02): Unknown table 'd.nothing'
> DROP DATABASE d
OK
> SELECT DATABASE()
DATABASE()
NULL
> DROP DATABASE d
ERROR 1008 (HY000): Can't drop database 'd'; database doesn't exist
> DROP DATABASE IF EXISTS d
OK
- Note | 1008 | Can't drop database 'd'; database doesn't exist
> CREATE TABLE t (a INT)
ERROR 1046 (3D000): No database selected

# Definitions that are refused.

> USE test
OK
> CREATE TABLE t (a INT, A INT)
ERROR 1060 (42S21): Duplicate column name 'A'
> CREATE TABLE t (a INT, KEY (b))
ERROR 1072 (42000): Key column 'b' doesn't exist in table
> CREATE TABLE t (a INT, KEY (a, a))
ERROR 1060 (42S21): Duplicate column name 'a'
> CREATE TABLE t (a INT, KEY x (a), KEY x (a))
ERROR 1061 (42000): Duplicate key name 'x'
> CREATE TABLE t (a INT PRIMARY KEY, b INT, PRIMARY KEY (b))
ERROR 1068 (42000): Multiple primary key defined
> CREATE TABLE t (a INT NULL PRIMARY KEY)
OK
> DROP TABLE t
OK
> CREATE TABLE t (a INT AUTO_INCREMENT)
ERROR 1075 (42000): Incorrect table definition; there can be only one auto column and it must be defined as a key
> CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b INT AUTO_INCREMENT, KEY (b))
ERROR 1075 (42000): Incorrect table definition; there can be only one auto column and it must be defined as a key
> CREATE TABLE t (a VARCHAR(10) AUTO_INCREMENT PRIMARY KEY)
ERROR 1063 (42000): Incorrect column specifier for column 'a'
> CREATE TABLE t (a INT DEFAULT 'x')
ERROR 1067 (42000): Invalid default value for 'a'
> CREATE TABLE t (a TINYINT DEFAULT 300)
ERROR 1067 (42000): Invalid default value for 'a'
> CREATE TABLE t (a VARCHAR(2) DEFAULT 'abc')
ERROR 1067 (42000): Invalid default value for 'a'
> CREATE TABLE t (a INT NOT NULL DEFAULT NULL)
ERROR 1067 (42000): Invalid default value for 'a'
> CREATE TABLE t (a INT ON UPDATE CURRENT_TIMESTAMP)
ERROR 1294 (HY000): Invalid ON UPDATE clause for 'a' column
> CREATE TABLE t (a TEXT, PRIMARY KEY (a))
ERROR 1170 (42000): BLOB/TEXT column 'a' used in key specification without a key length
> CREATE TABLE long_key (a TEXT, KEY (a))
OK
- Note | 1071 | Specified key was too long; max key length is 3072 bytes
> DROP TABLE long_key
OK
> CREATE TABLE t (a INT, KEY (a(3)))
ERROR 1089 (HY000): Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys
> CREATE TABLE long_key (a VARCHAR(1000), UNIQUE (a))
OK
> DROP TABLE long_key
OK
> CREATE TABLE t (a VARCHAR(20000))
ERROR 1074 (42000): Column length too big for column 'a' (max = 16383); use BLOB or TEXT instead
> CREATE TABLE t (a CHAR(300))
ERROR 1074 (42000): Column length too big for column 'a' (max = 255); use BLOB or TEXT instead
> CREATE TABLE t (a DECIMAL(66))
ERROR 1426 (42000): Too big precision specified for 'a'. Maximum is 65
> CREATE TABLE t (a INT) ENGINE=nonsense
ERROR 1286 (42000): Unknown storage engine 'nonsense'
> CREATE TABLE t (a INT) CHARACTER SET klingon
ERROR 1115 (42000): Unknown character set: 'klingon'
> CREATE TABLE nowhere.t (a INT)
ERROR 1049 (42000): Unknown database 'nowhere'

> CREATE DATABASE d8
OK 1
> USE d8
OK
> CREATE TABLE p (id INT PRIMARY KEY)
OK
> CREATE TABLE ca (x INT, FOREIGN KEY (x) REFERENCES p (id))
OK
> CREATE TABLE z (x INT, CONSTRAINT cb_ibfk_1 FOREIGN KEY (x) REFERENCES p (id))
OK
> RENAME TABLE ca TO cb
ERROR 1050 (42S01): Table './d8/cb' already exists
> ALTER TABLE ca RENAME TO cb
ERROR 1050 (42S01): Table './d8/cb' already exists
> ALTER TABLE ca ADD y INT, RENAME TO cb
ERROR 1050 (42S01): Table './d8/cb' already exists
> RENAME TABLE ca TO cc
OK
> SHOW CREATE TABLE cc
Table | Create Table
cc | CREATE TABLE `cc` (
    `x` int(11) DEFAULT NULL,
    KEY `x` (`x`),
    CONSTRAINT `cc_ibfk_1` FOREIGN KEY (`x`) REFERENCES `p` (`id`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> CREATE DATABASE d9
OK 1
> CREATE TABLE d9.y (x INT, CONSTRAINT same FOREIGN KEY (x) REFERENCES d8.p (id))
OK
> CREATE TABLE y (x INT, CONSTRAINT same FOREIGN KEY (x) REFERENCES p (id))
OK
> RENAME TABLE d9.y TO d8.y2
ERROR 1050 (42S01): Table './d8/y2' already exists
> ALTER TABLE y RENAME TO d9.y2
ERROR 1050 (42S01): Table './d9/y2' already exists
> RENAME TABLE y TO d9.y3
ERROR 1050 (42S01): Table './d9/y3' already exists
> SHOW TABLES
Tables_in_d8
cc
p
y
z
> RENAME TABLE cc TO tmp, z TO cc, tmp TO z
OK
> SHOW CREATE TABLE cc
Table | Create Table
cc | CREATE TABLE `cc` (
    `x` int(11) DEFAULT NULL,
    KEY `cb_ibfk_1` (`x`),
    CONSTRAINT `cb_ibfk_1` FOREIGN KEY (`x`) REFERENCES `p` (`id`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> SHOW CREATE TABLE z
Table | Create Table
z | CREATE TABLE `z` (
    `x` int(11) DEFAULT NULL,
    KEY `x` (`x`),
    CONSTRAINT `z_ibfk_1` FOREIGN KEY (`x`) REFERENCES `p` (`id`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP DATABASE d9
OK 1
> DROP DATABASE d8
OK 4
