# ALTER TABLE: what is instant, what builds keys, what copies; the rows stay what they were.

> CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(20) DEFAULT 'x', KEY kb (b))
OK
> INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 20, NULL)
OK 3 (Records: 3  Duplicates: 0  Warnings: 0)
> ALTER TABLE t ADD COLUMN d INT NOT NULL DEFAULT 7
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t ADD e INT, ADD f DATETIME DEFAULT '2020-01-02'
OK (Records: 0  Duplicates: 0  Warnings: 0)
> INSERT INTO t (a, b) VALUES (4, 40)
OK 1
> SELECT * FROM t
a | b | c | d | e | f
1 | 10 | one | 7 | NULL | 2020-01-02 00:00:00
2 | 20 | two | 7 | NULL | 2020-01-02 00:00:00
3 | 20 | NULL | 7 | NULL | 2020-01-02 00:00:00
4 | 40 | x | 7 | NULL | 2020-01-02 00:00:00
> ALTER TABLE t ADD g VARCHAR(10) AFTER a, ADD h INT FIRST
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
h | a | g | b | c | d | e | f
NULL | 1 | NULL | 10 | one | 7 | NULL | 2020-01-02 00:00:00
NULL | 2 | NULL | 20 | two | 7 | NULL | 2020-01-02 00:00:00
NULL | 3 | NULL | 20 | NULL | 7 | NULL | 2020-01-02 00:00:00
NULL | 4 | NULL | 40 | x | 7 | NULL | 2020-01-02 00:00:00
> ALTER TABLE t DROP g, DROP h, DROP e, DROP f
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t MODIFY b BIGINT NOT NULL, CHANGE c cc VARCHAR(30)
OK 4 (Records: 4  Duplicates: 0  Warnings: 0)
> SELECT * FROM t WHERE b = 20
a | b | cc | d
2 | 20 | two | 7
3 | 20 | NULL | 7
> ALTER TABLE t ADD UNIQUE (b)
ERROR 1062 (23000): Duplicate entry '20' for key 'b'
> CREATE INDEX kc ON t (cc, d)
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT a, cc FROM t WHERE cc > 'o' ORDER BY cc
a | cc
1 | one
2 | two
4 | x
> ALTER TABLE t MODIFY cc VARCHAR(30) NOT NULL
ERROR 1265 (01000): Data truncated for column 'cc' at row 3
> SELECT a FROM t WHERE cc IS NULL
a
3
> ALTER TABLE t DROP PRIMARY KEY, ADD UNIQUE ub (a, b)
OK 4 (Records: 4  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
a | b | cc | d
1 | 10 | one | 7
2 | 20 | two | 7
3 | 20 | NULL | 7
4 | 40 | x | 7
> ALTER TABLE t ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST
OK 4 (Records: 4  Duplicates: 0  Warnings: 0)
> SELECT * FROM t ORDER BY id
id | a | b | cc | d
1 | 1 | 10 | one | 7
2 | 2 | 20 | two | 7
3 | 3 | 20 | NULL | 7
4 | 4 | 40 | x | 7
> INSERT INTO t (a, b) VALUES (5, 50)
OK 1 id 5
> SELECT id, a FROM t WHERE a = 5
id | a
5 | 5
> ALTER TABLE t RENAME COLUMN a TO aa, RENAME INDEX ub TO uc
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP nope
ERROR 1091 (42000): Can't DROP COLUMN `nope`; check that it exists
> ALTER TABLE t DROP INDEX nope
ERROR 1091 (42000): Can't DROP INDEX `nope`; check that it exists
> ALTER TABLE t DROP INDEX IF EXISTS nope
OK (Records: 0  Duplicates: 0  Warnings: 1)
- Note | 1091 | Can't DROP INDEX `nope`; check that it exists
> ALTER TABLE t ADD aa INT
ERROR 1060 (42S21): Duplicate column name 'aa'
> ALTER TABLE t ADD COLUMN IF NOT EXISTS aa INT
OK (Records: 0  Duplicates: 0  Warnings: 1)
- Note | 1060 | Duplicate column name 'aa'
> ALTER TABLE t MODIFY nope INT
ERROR 1054 (42S22): Unknown column 'nope' in 't'
> ALTER TABLE t MODIFY cc TINYINT
ERROR 1292 (22007): Truncated incorrect INTEGER value: 'one'
> ALTER TABLE t CONVERT TO CHARACTER SET latin1
OK 5 (Records: 5  Duplicates: 0  Warnings: 0)
> SELECT cc FROM t
cc
one
two
NULL
x
NULL
> DROP INDEX kc ON t
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t COMMENT 'hello', AUTO_INCREMENT = 100
OK (Records: 0  Duplicates: 0  Warnings: 0)
> INSERT INTO t (aa, b) VALUES (6, 60)
OK 1 id 100
> SELECT id FROM t WHERE aa = 6
id
100
> ALTER TABLE t RENAME TO u, ENGINE=MyISAM
OK 6 (Records: 6  Duplicates: 0  Warnings: 1)
- Note | 1266 | Using storage engine REFERENCE for table 't'
> SELECT COUNT(*) FROM u
COUNT(*)
6
> ALTER TABLE u DROP id, DROP aa, DROP b, DROP cc, DROP d
ERROR 1090 (42000): You can't delete all columns with ALTER TABLE; use DROP TABLE instead
> DROP TABLE u
OK

# A primary key that is added again is the one that was there.
> CREATE TABLE t (id INT, a INT, PRIMARY KEY (id DESC), KEY (a))
OK
> INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)
OK 3 (Records: 3  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id), ALGORITHM=INSTANT
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE t DROP PRIMARY KEY, ADD COLUMN x INT DEFAULT 5 FIRST, CHANGE id id2 INT, ADD PRIMARY KEY (id2), ADD KEY (x)
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT * FROM t FORCE INDEX (PRIMARY)
x | id2 | a
5 | 1 | 1
5 | 2 | 2
5 | 3 | 3
> SELECT id2 FROM t FORCE INDEX (a) WHERE a > 0
id2
1
2
3
> SELECT id2 FROM t FORCE INDEX (x) WHERE x = 5
id2
1
2
3
> ALTER TABLE t DROP PRIMARY KEY, MODIFY id2 INT NOT NULL AUTO_INCREMENT PRIMARY KEY
OK 3 (Records: 3  Duplicates: 0  Warnings: 0)
> SELECT COUNT(*) FROM t FORCE INDEX (PRIMARY)
COUNT(*)
3
> CHECK TABLE t EXTENDED
Table | Op | Msg_type | Msg_text
test.t | check | status | OK
> DROP TABLE t
OK

# Names of what is dropped or renamed are those that the columns had.
> CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT AS (a + 1) STORED, c INT, KEY k (a), CHECK (c > a))
OK
> INSERT INTO t (id, a, c) VALUES (1, 10, 100)
OK 1
> ALTER TABLE t RENAME COLUMN a TO c, RENAME COLUMN c TO a
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
id | c | b | a
1 | 10 | 11 | 100
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `id` int(11) NOT NULL,
    `c` int(11) DEFAULT NULL,
    `b` int(11) GENERATED ALWAYS AS (`c` + 1) STORED,
    `a` int(11) DEFAULT NULL,
    PRIMARY KEY (`id`),
    KEY `k` (`c`),
    CONSTRAINT `CONSTRAINT_1` CHECK (`a` > `c`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> ALTER TABLE t CHANGE a c INT, CHANGE c a INT FIRST
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
a | id | b | c
10 | 1 | 11 | 100
> ALTER TABLE t RENAME COLUMN a TO x, RENAME COLUMN x TO y
ERROR 1054 (42S22): Unknown column 'x' in 't'
> ALTER TABLE t ADD COLUMN x INT AFTER c, DROP COLUMN c
ERROR 1054 (42S22): Unknown column 'c' in 't'
> DROP TABLE t
OK
> CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)
OK
> INSERT INTO t VALUES (1, 10, 100)
OK 1
> ALTER TABLE t RENAME COLUMN a TO b, DROP COLUMN b
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
id | b
1 | 10
> ALTER TABLE t ADD COLUMN b INT DEFAULT 7 FIRST, ADD COLUMN d INT DEFAULT 8 AFTER b, DROP COLUMN b
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SELECT * FROM t
b | d | id
7 | 8 | 1
> ALTER TABLE t RENAME COLUMN b TO d, RENAME COLUMN d TO e, ADD KEY (d)
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE t
Table | Create Table
t | CREATE TABLE `t` (
    `d` int(11) DEFAULT 7,
    `e` int(11) DEFAULT 8,
    `id` int(11) NOT NULL,
    PRIMARY KEY (`id`),
    KEY `d` (`d`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
> DROP TABLE t
OK
