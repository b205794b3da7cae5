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
