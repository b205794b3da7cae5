# Names of keys and constraints within one ALTER TABLE: they are those of the table as it was.

# What is dropped goes before anything is added, also by DROP CONSTRAINT.
> CREATE TABLE p (id INT PRIMARY KEY, a INT, KEY (a))
OK
> CREATE TABLE t (x INT, y INT, CONSTRAINT f FOREIGN KEY (x) REFERENCES p (id), CONSTRAINT c CHECK (y > 1), UNIQUE u (y))
OK
> ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (x) REFERENCES p (a), DROP CONSTRAINT f
ERROR 1005 (HY000): Can't create table `test`.`t` (errno: 121 "Duplicate key on write or update")
> ALTER TABLE t DROP FOREIGN KEY f, ADD CONSTRAINT f FOREIGN KEY (x) REFERENCES p (a)
ERROR 1005 (HY000): Can't create table `test`.`t` (errno: 121 "Duplicate key on write or update")
> ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (x) REFERENCES p (a)
ERROR 1005 (HY000): Can't create table `test`.`t` (errno: 121 "Duplicate key on write or update")
> ALTER TABLE t ADD CONSTRAINT c CHECK (y > 2), DROP CONSTRAINT c
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t ADD UNIQUE u (y, x), DROP CONSTRAINT u
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t ADD CONSTRAINT d CHECK (x > 0), DROP CONSTRAINT d
ERROR 1091 (42000): Can't DROP CONSTRAINT `d`; check that it exists
> ALTER TABLE t ADD CONSTRAINT IF NOT EXISTS d CHECK (x > 0), DROP CONSTRAINT IF EXISTS d
OK (Records: 0  Duplicates: 0  Warnings: 1)
- Note | 1091 | Can't DROP CONSTRAINT `d`; check that it exists
> ALTER TABLE t ADD CONSTRAINT IF NOT EXISTS d CHECK (x > 7), DROP CONSTRAINT d
OK (Records: 0  Duplicates: 0  Warnings: 1)
- Note | 1826 | Duplicate CHECK constraint name 'd'
> SET foreign_key_checks = 0
OK
> ALTER TABLE t DROP FOREIGN KEY f, ADD CONSTRAINT f FOREIGN KEY (x) REFERENCES p (a)
ERROR 1826 (HY000): Duplicate FOREIGN KEY constraint name 'test/f'
> SET foreign_key_checks = 1
OK
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `x` int(11) DEFAULT NULL,
    `y` int(11) DEFAULT NULL,
    UNIQUE KEY `u` (`y`,`x`),
    KEY `f` (`x`),
    CONSTRAINT `f` FOREIGN KEY (`x`) REFERENCES `p` (`id`),
    CONSTRAINT `c` CHECK (`y` > 2)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY IF NOT EXISTS (x) REFERENCES p (a), DROP FOREIGN KEY f
OK (Records: 0  Duplicates: 0  Warnings: 1)
- Note | 1061 | Duplicate key name 'f'
> ALTER TABLE t DROP CONSTRAINT c, DROP CONSTRAINT c
ERROR 1091 (42000): Can't DROP CONSTRAINT `c`; check that it exists
> ALTER TABLE t DROP CONSTRAINT f
ERROR 1091 (42000): Can't DROP CONSTRAINT `f`; check that it exists
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `x` int(11) DEFAULT NULL,
    `y` int(11) DEFAULT NULL,
    UNIQUE KEY `u` (`y`,`x`),
    KEY `f` (`x`),
    CONSTRAINT `c` CHECK (`y` > 2)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t, p
OK

# A constraint is a unique key, a primary one, a CHECK or a foreign key.
> CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY k (b), UNIQUE u (b))
OK
> ALTER TABLE t DROP CONSTRAINT k
ERROR 1091 (42000): Can't DROP CONSTRAINT `k`; check that it exists
> ALTER TABLE t DROP CONSTRAINT IF EXISTS k
OK (Records: 0  Duplicates: 0  Warnings: 1)
- Note | 1091 | Can't DROP CONSTRAINT `k`; check that it exists
> ALTER TABLE t RENAME KEY u TO v, DROP CONSTRAINT v
ERROR 1091 (42000): Can't DROP CONSTRAINT `v`; check that it exists
> ALTER TABLE t RENAME KEY u TO v, DROP CONSTRAINT IF EXISTS u
ERROR 1176 (42000): Key 'u' doesn't exist in table 't'
> ALTER TABLE t DROP CONSTRAINT u, DROP CONSTRAINT `PRIMARY`
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) NOT NULL,
    `b` int(11) DEFAULT NULL,
    KEY `k` (`b`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK

# Keys exchange names, and go round.
> CREATE TABLE t (a INT, b INT, UNIQUE u (a), KEY v (b), KEY k1 (a), KEY k2 (b), KEY k3 (a, b))
OK
- Note | 1831 | Duplicate index `k2`. This is deprecated and will be disallowed in a future release
> INSERT INTO t VALUES (1, 1), (2, 1)
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> ALTER TABLE t RENAME KEY u TO v, RENAME KEY v TO u
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t RENAME KEY k1 TO k2, RENAME KEY k2 TO k3, RENAME KEY k3 TO k1
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    `b` int(11) DEFAULT NULL,
    UNIQUE KEY `v` (`a`),
    KEY `u` (`b`),
    KEY `k2` (`a`),
    KEY `k3` (`b`),
    KEY `k1` (`a`,`b`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> ALTER TABLE t RENAME KEY k1 TO k2, DROP KEY k2
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t RENAME KEY k2 TO k9, RENAME KEY k9 TO k8
ERROR 1176 (42000): Key 'k9' doesn't exist in table 't'
> ALTER TABLE t RENAME KEY k2 TO k9, RENAME KEY k2 TO k8
ERROR 1176 (42000): Key 'k2' doesn't exist in table 't'
> ALTER TABLE t RENAME KEY k2 TO k9, ALTER INDEX k9 IGNORED
ERROR 1176 (42000): Key 'k9' doesn't exist in table 't'
> ALTER TABLE t RENAME KEY k2 TO k9, ALTER INDEX k2 IGNORED
ERROR 1176 (42000): Key 'k2' doesn't exist in table 't'
> ALTER TABLE t RENAME KEY k2 TO k9, ALTER INDEX IF EXISTS k2 IGNORED
ERROR 1176 (42000): Key 'k2' doesn't exist in table 't'
> ALTER TABLE t RENAME KEY k2 TO k9, RENAME KEY IF EXISTS k2 TO k8
ERROR 1176 (42000): Key 'k2' doesn't exist in table 't'
> ALTER TABLE t RENAME KEY k2 TO k3, RENAME KEY k3 TO k2, ALTER INDEX k3 IGNORED
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t RENAME KEY k2 TO k3
ERROR 1061 (42000): Duplicate key name 'k3'
> ALTER TABLE t RENAME KEY k2 TO `PRIMARY`
ERROR 1280 (42000): Incorrect index name 'PRIMARY'
> ALTER TABLE t ADD KEY k5 (b, a), RENAME KEY k5 TO k6
ERROR 1176 (42000): Key 'k5' doesn't exist in table 't'
> ALTER TABLE t ADD KEY k5 (b, a), ALTER KEY k5 IGNORED
ERROR 1176 (42000): Key 'k5' doesn't exist in table 't'
> ALTER TABLE t RENAME KEY k2 TO k5, ADD KEY IF NOT EXISTS k2 (a)
OK (Records: 0  Duplicates: 0  Warnings: 1)
- Note | 1061 | Duplicate key name 'k2'
> ALTER TABLE t RENAME KEY k5 TO k6, ADD KEY IF NOT EXISTS k6 (a)
ERROR 1061 (42000): Duplicate key name 'k6'
> ALTER TABLE t DROP KEY k5, ADD KEY IF NOT EXISTS k5 (a)
OK (Records: 0  Duplicates: 0  Warnings: 1)
- Note | 1061 | Duplicate key name 'k5'
> ALTER TABLE t DROP KEY k3, RENAME KEY IF EXISTS k3 TO k4
ERROR 1176 (42000): Key 'k3' doesn't exist in table 't'
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    `b` int(11) DEFAULT NULL,
    UNIQUE KEY `v` (`a`),
    KEY `u` (`b`),
    KEY `k3` (`a`,`b`) IGNORED
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK
> CREATE TABLE t (a INT PRIMARY KEY)
OK
> ALTER TABLE t RENAME KEY `PRIMARY` TO k
ERROR 1280 (42000): Incorrect index name 'PRIMARY'
> DROP TABLE t
OK

# Keys go by the names of their columns: one that is dropped and comes anew is in the keys that it was in.
> CREATE TABLE t (a INT, b INT, c INT, KEY kb (b), UNIQUE u (b, c), KEY kab (a, b DESC))
OK
> INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP COLUMN b, ADD COLUMN b INT DEFAULT 7
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT a, b, c FROM t FORCE INDEX (u) WHERE b = 7 ORDER BY c
a | b | c
1 | 7 | 1
2 | 7 | 2
> SELECT a, b, c FROM t FORCE INDEX (kb) WHERE b < 7
a | b | c
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    `c` int(11) DEFAULT NULL,
    `b` int(11) DEFAULT 7,
    UNIQUE KEY `u` (`b`,`c`),
    KEY `kb` (`b`),
    KEY `kab` (`a`,`b` DESC)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> ALTER TABLE t DROP COLUMN b, ADD COLUMN B VARCHAR(10) DEFAULT 'xyz01' FIRST
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `B` varchar(10) DEFAULT 'xyz01',
    `a` int(11) DEFAULT NULL,
    `c` int(11) DEFAULT NULL,
    UNIQUE KEY `u` (`B`(4),`c`),
    KEY `kb` (`B`(4)),
    KEY `kab` (`a`,`B`(4) DESC)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> SELECT a FROM t FORCE INDEX (kb) WHERE b = 'xyz01' ORDER BY a
a
1
2
> ALTER TABLE t DROP COLUMN b, ADD COLUMN b VARCHAR(3)
ERROR 1089 (HY000): Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys
> ALTER TABLE t DROP COLUMN b, RENAME COLUMN c TO b
ERROR 1072 (42000): Key column 'B' doesn't exist in table
> ALTER TABLE t DROP KEY u, DROP COLUMN b, CHANGE c b BIGINT
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    `b` bigint(20) DEFAULT NULL,
    KEY `kab` (`a`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK
> CREATE TABLE t (a INT, b VARCHAR(20), KEY k (b), FULLTEXT w (b))
OK
> INSERT INTO t VALUES (1, 'one'), (2, 'two')
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP COLUMN b, ADD COLUMN b TEXT DEFAULT 'hello world'
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT a FROM t WHERE MATCH (b) AGAINST ('world' IN BOOLEAN MODE) ORDER BY a
a
1
2
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    `b` text DEFAULT 'hello world',
    KEY `k` (`b`(20)),
    FULLTEXT KEY `w` (`b`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK
> CREATE TABLE t (a INT, b INT, UNIQUE u (b))
OK
> INSERT INTO t VALUES (1, 1), (2, 2)
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP COLUMN b, ADD COLUMN b INT DEFAULT 5
ERROR 1062 (23000): Duplicate entry '5' for key 'u'
> ALTER TABLE t DROP COLUMN b, ADD COLUMN b INT
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
a | b
1 | NULL
2 | NULL
> INSERT INTO t VALUES (3, 1), (4, 1)
ERROR 1062 (23000): Duplicate entry '1' for key 'u'
> DROP TABLE t
OK

# So it is with a primary key.
> CREATE TABLE t (id INT PRIMARY KEY, b INT, KEY (b))
OK
> INSERT INTO t VALUES (7, 1), (8, 2)
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP COLUMN id, ADD COLUMN id BIGINT NOT NULL FIRST
ERROR 1089 (HY000): Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys
> ALTER TABLE t DROP COLUMN id, ADD COLUMN id INT FIRST
ERROR 1062 (23000): Duplicate entry '0' for key 'PRIMARY'
> ALTER TABLE t DROP COLUMN id, ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY FIRST
ERROR 1068 (42000): Multiple primary key defined
> ALTER TABLE t DROP COLUMN id, ADD COLUMN id INT AUTO_INCREMENT FIRST
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> INSERT INTO t (b) VALUES (3)
OK 1 id 3
> SELECT * FROM t
id | b
1 | 1
2 | 2
3 | 3
> SELECT id FROM t WHERE b = 2
id
2
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `id` int(11) NOT NULL AUTO_INCREMENT,
    `b` int(11) DEFAULT NULL,
    PRIMARY KEY (`id`),
    KEY `b` (`b`)
  ) ENGINE=REFERENCE AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DELETE FROM t WHERE id > 1
OK 2
> ALTER TABLE t DROP COLUMN id, ADD COLUMN id INT UNSIGNED NOT NULL
OK 1 (Records: 1  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
b | id
1 | 0
> INSERT INTO t VALUES (5, 0)
ERROR 1062 (23000): Duplicate entry '0' for key 'PRIMARY'
> ALTER TABLE t DROP COLUMN id, RENAME COLUMN b TO id
OK 1 (Records: 1  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `id` int(11) DEFAULT NULL,
    KEY `b` (`id`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK
> CREATE TABLE t (a INT, b INT, c INT, PRIMARY KEY (a, b))
OK
> INSERT INTO t VALUES (1, 1, 1), (1, 2, 2), (2, 3, 3)
OK 3 (Records: 3  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP COLUMN b, ADD COLUMN b INT NOT NULL DEFAULT 9
ERROR 1062 (23000): Duplicate entry '1-9' for key 'PRIMARY'
> ALTER TABLE t DROP COLUMN a, ADD COLUMN a INT NOT NULL DEFAULT 9
OK 3 (Records: 3  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
b | c | a
1 | 1 | 9
2 | 2 | 9
3 | 3 | 9
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `b` int(11) NOT NULL,
    `c` int(11) DEFAULT NULL,
    `a` int(11) NOT NULL DEFAULT 9,
    PRIMARY KEY (`a`,`b`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> ALTER TABLE t DROP COLUMN b, ADD COLUMN d INT
ERROR 1072 (42000): Key column 'b' doesn't exist in table
> DROP TABLE t
OK

# A foreign key stays with its columns.
> CREATE TABLE p (id INT PRIMARY KEY)
OK
> CREATE TABLE t (x INT, FOREIGN KEY (x) REFERENCES p (id))
OK
> ALTER TABLE t DROP COLUMN x, ADD COLUMN x INT DEFAULT 1
ERROR 1828 (HY000): Cannot drop column 'x': needed in a foreign key constraint 'test/t_ibfk_1'
> ALTER TABLE t DROP FOREIGN KEY t_ibfk_1, DROP COLUMN x, ADD COLUMN x INT DEFAULT 1
OK (Records: 0  Duplicates: 0  Warnings: 0)
> DROP TABLE t, p
OK

# A CHECK of the table goes with the last column that it reads.
> CREATE TABLE t (a INT, b INT, c INT, CHECK (1), CHECK (b > 0), CONSTRAINT x CHECK (b > c), CHECK (a > 0))
OK
> INSERT INTO t VALUES (1, 2, 1)
OK 1
> ALTER TABLE t DROP COLUMN b
ERROR 1054 (42S22): Unknown column 'b' in 'CHECK'
> ALTER TABLE t RENAME COLUMN b TO z, DROP COLUMN c
ERROR 1054 (42S22): Unknown column 'c' in 'CHECK'
> ALTER TABLE t DROP CONSTRAINT x, DROP COLUMN b, ADD COLUMN b INT DEFAULT -1
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    `c` int(11) DEFAULT NULL,
    `b` int(11) DEFAULT -1,
    CONSTRAINT `CONSTRAINT_3` CHECK (`a` > 0)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> ALTER TABLE t ADD CONSTRAINT x CHECK (b < c)
OK 1 (Records: 1  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP COLUMN c, DROP COLUMN b
OK (Records: 0  Duplicates: 0  Warnings: 0)
> INSERT INTO t VALUES (0)
ERROR 4025 (23000): CONSTRAINT `CONSTRAINT_3` failed for `test`.`t`
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `a` int(11) DEFAULT NULL,
    CONSTRAINT `CONSTRAINT_3` CHECK (`a` > 0)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK
> CREATE TABLE t (a INT CHECK (a > 0), b INT CHECK (b > a))
OK
> ALTER TABLE t DROP COLUMN a
ERROR 1054 (42S22): Unknown column 'a' in 'CHECK'
> ALTER TABLE t DROP COLUMN b
OK (Records: 0  Duplicates: 0  Warnings: 0)
> DROP TABLE t
OK
