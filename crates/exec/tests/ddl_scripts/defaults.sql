# What DEFAULT may compute: a value for the row, of the session and the time, too, but not of files, locks and
# the last statement. The answers are MariaDB's.

> USE test
OK
> CREATE TABLE t (d VARCHAR(100) DEFAULT (last_insert_id()))
ERROR 1901 (HY000): Function or expression 'last_insert_id()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (row_count()))
ERROR 1901 (HY000): Function or expression 'row_count()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (found_rows()))
ERROR 1901 (HY000): Function or expression 'found_rows()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (sleep(0)))
ERROR 1901 (HY000): Function or expression 'sleep()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (benchmark(1,1)))
ERROR 1901 (HY000): Function or expression 'benchmark()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (get_lock('a',0)))
ERROR 1901 (HY000): Function or expression 'get_lock()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (release_lock('a')))
ERROR 1901 (HY000): Function or expression 'release_lock()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (release_all_locks()))
ERROR 1901 (HY000): Function or expression 'release_all_locks()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (is_free_lock('a')))
ERROR 1901 (HY000): Function or expression 'is_free_lock()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (is_used_lock('a')))
ERROR 1901 (HY000): Function or expression 'is_used_lock()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (load_file('/etc/hosts')))
ERROR 1901 (HY000): Function or expression 'load_file()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (master_pos_wait('a',1)))
ERROR 1901 (HY000): Function or expression 'master_pos_wait()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (master_gtid_wait('0-1-1')))
ERROR 1901 (HY000): Function or expression 'master_gtid_wait()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (binlog_gtid_pos('a',1)))
ERROR 1901 (HY000): Function or expression 'binlog_gtid_pos()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (name_const('a',1)))
ERROR 1901 (HY000): Function or expression 'name_const()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (d VARCHAR(100) DEFAULT (CONCAT('a', LOAD_FILE('/etc/hosts'))))
ERROR 1901 (HY000): Function or expression 'load_file()' cannot be used in the DEFAULT clause of `d`
> CREATE TABLE t (a INT, b VARBINARY(8) DEFAULT (random_bytes(8)), u VARCHAR(100) DEFAULT (user()), n DOUBLE DEFAULT (rand()))
OK
> ALTER TABLE t ADD d LONGTEXT DEFAULT (load_file('/etc/hosts'))
ERROR 1901 (HY000): Function or expression 'load_file()' cannot be used in the DEFAULT clause of `d`
> ALTER TABLE t ALTER u SET DEFAULT (load_file('/etc/hosts'))
ERROR 1901 (HY000): Function or expression 'load_file()' cannot be used in the DEFAULT clause of `u`
> ALTER TABLE t ADD CHECK (random_bytes(1) = 'a')
ERROR 1901 (HY000): Function or expression 'random_bytes()' cannot be used in the CHECK clause of `CONSTRAINT_1`
> DROP TABLE t
OK
