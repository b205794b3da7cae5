# How pages lie on disk: which options go together, what is shown of them, and what they cost to change. All
# answers are MariaDB's.

> CREATE TABLE a (id INT PRIMARY KEY) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4
OK
> CREATE TABLE b (id INT PRIMARY KEY) KEY_BLOCK_SIZE=8
OK
> CREATE TABLE c (id INT PRIMARY KEY) PAGE_COMPRESSED=1 page_compression_level=9 COMMENT='x'
OK
> CREATE TABLE d (id INT PRIMARY KEY) `page_compressed`='yes' ROW_FORMAT=COMPACT KEY_BLOCK_SIZE=0
OK
> CREATE TABLE e (id INT PRIMARY KEY) PAGE_COMPRESSED=Off
OK
> SHOW CREATE TABLE c
Table | Create Table
c | CREATE TABLE `c` (
    `id` int(11) NOT NULL,
    PRIMARY KEY (`id`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='x' `PAGE_COMPRESSED`='1' `page_compression_level`='9'
> SHOW CREATE TABLE d
Table | Create Table
d | CREATE TABLE `d` (
    `id` int(11) NOT NULL,
    PRIMARY KEY (`id`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci ROW_FORMAT=COMPACT `page_compressed`='yes'
> SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = 'test'
table_name | row_format | create_options
a | Compressed | row_format=COMPRESSED key_block_size=4
b | Compressed | key_block_size=8
c | Dynamic | `PAGE_COMPRESSED`='1' `page_compression_level`='9'
d | Compact | row_format=COMPACT `page_compressed`='yes'
e | Dynamic | `PAGE_COMPRESSED`='Off'
> CREATE TABLE n (id INT) PAGE_COMPRESSED=2
ERROR 1912 (HY000): Incorrect value '2' for option 'PAGE_COMPRESSED'
> CREATE TABLE n (id INT) PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL=0
ERROR 1912 (HY000): Incorrect value '0' for option 'PAGE_COMPRESSION_LEVEL'
> CREATE TABLE n (id INT) PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL=10
ERROR 1912 (HY000): Incorrect value '10' for option 'PAGE_COMPRESSION_LEVEL'
> CREATE TABLE n (id INT) PAGE_COMPRESSED=on
ERROR 1064 (42000): You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version for the right syntax to use near 'on' at line 1
> CREATE TABLE n (id INT) PAGE_COMPRESSION_LEVEL=3
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SHOW WARNINGS
Level | Code | Message
Warning | 140 | InnoDB: PAGE_COMPRESSION_LEVEL requires PAGE_COMPRESSED
Error | 1005 | Can't create table `test`.`n` (errno: 140 "Wrong create options")
Warning | 1030 | Got error 140 "Wrong create options" from storage engine REFERENCE
> CREATE TABLE n (id INT) PAGE_COMPRESSED=1 ROW_FORMAT=COMPRESSED
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SHOW WARNINGS
Level | Code | Message
Warning | 140 | InnoDB: PAGE_COMPRESSED table can't have ROW_TYPE=COMPRESSED
Error | 1005 | Can't create table `test`.`n` (errno: 140 "Wrong create options")
Warning | 1030 | Got error 140 "Wrong create options" from storage engine REFERENCE
> CREATE TABLE n (id INT) PAGE_COMPRESSED=1 ROW_FORMAT=REDUNDANT
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SHOW WARNINGS
Level | Code | Message
Warning | 140 | InnoDB: PAGE_COMPRESSED table can't have ROW_TYPE=REDUNDANT
Error | 1005 | Can't create table `test`.`n` (errno: 140 "Wrong create options")
Warning | 1030 | Got error 140 "Wrong create options" from storage engine REFERENCE
> CREATE TABLE n (id INT) PAGE_COMPRESSED=1 KEY_BLOCK_SIZE=8
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SHOW WARNINGS
Level | Code | Message
Warning | 140 | InnoDB: PAGE_COMPRESSED table can't have key_block_size
Error | 1005 | Can't create table `test`.`n` (errno: 140 "Wrong create options")
Warning | 1030 | Got error 140 "Wrong create options" from storage engine REFERENCE
> CREATE TABLE n (id INT) ENCRYPTED=YES
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SHOW WARNINGS
Level | Code | Message
Warning | 140 | InnoDB: ENCRYPTION_KEY_ID 1 not available
Error | 1005 | Can't create table `test`.`n` (errno: 140 "Wrong create options")
Warning | 1030 | Got error 140 "Wrong create options" from storage engine REFERENCE
> CREATE TABLE n (id INT) ENCRYPTED=yes ENCRYPTION_KEY_ID=7
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SHOW WARNINGS
Level | Code | Message
Warning | 140 | InnoDB: ENCRYPTION_KEY_ID 7 not available
Error | 1005 | Can't create table `test`.`n` (errno: 140 "Wrong create options")
Warning | 1030 | Got error 140 "Wrong create options" from storage engine REFERENCE
> CREATE TABLE n (id INT) ENCRYPTED=NO
OK
> ALTER TABLE n ENCRYPTED=YES
ERROR 1478 (HY000): Table storage engine 'REFERENCE' does not support the create option 'ENCRYPTION_KEY_ID'
> DROP TABLE n
OK
> CREATE TABLE n (id INT) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=3
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SHOW WARNINGS
Level | Code | Message
Warning | 1478 | InnoDB: invalid KEY_BLOCK_SIZE = 3. Valid values are [1, 2, 4, 8, 16]
Error | 1005 | Can't create table `test`.`n` (errno: 140 "Wrong create options")
Warning | 1030 | Got error 140 "Wrong create options" from storage engine REFERENCE
> CREATE TABLE n (id INT) ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=8
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SHOW WARNINGS
Level | Code | Message
Warning | 1478 | InnoDB: cannot specify ROW_FORMAT = DYNAMIC with KEY_BLOCK_SIZE.
Error | 1005 | Can't create table `test`.`n` (errno: 140 "Wrong create options")
Warning | 1030 | Got error 140 "Wrong create options" from storage engine REFERENCE
> CREATE TABLE n (id INT) ROW_FORMAT=FIXED
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SHOW WARNINGS
Level | Code | Message
Warning | 1478 | InnoDB: invalid ROW_FORMAT specifier.
Error | 1005 | Can't create table `test`.`n` (errno: 140 "Wrong create options")
Warning | 1030 | Got error 140 "Wrong create options" from storage engine REFERENCE
> CREATE TEMPORARY TABLE n (id INT) ROW_FORMAT=COMPRESSED
ERROR 4047 (HY000): InnoDB refuses to write tables with ROW_FORMAT=COMPRESSED or KEY_BLOCK_SIZE.
> CREATE TEMPORARY TABLE n (id INT) PAGE_COMPRESSED=1
OK
> DROP TABLE n
OK
> CREATE TABLE n (id INT) ENGINE=MyISAM PAGE_COMPRESSED=1
ERROR 1911 (HY000): Unknown option 'PAGE_COMPRESSED'
> ALTER TABLE a KEY_BLOCK_SIZE=3
ERROR 1478 (HY000): Table storage engine 'REFERENCE' does not support the create option 'KEY_BLOCK_SIZE'
> SHOW WARNINGS
Level | Code | Message
Warning | 1478 | InnoDB: invalid KEY_BLOCK_SIZE = 3. Valid values are [1, 2, 4, 8, 16]
Error | 1478 | Table storage engine 'REFERENCE' does not support the create option 'KEY_BLOCK_SIZE'
> ALTER TABLE a PAGE_COMPRESSED=1
ERROR 1478 (HY000): Table storage engine 'REFERENCE' does not support the create option 'PAGE_COMPRESSED'
> SHOW WARNINGS
Level | Code | Message
Warning | 140 | InnoDB: PAGE_COMPRESSED table can't have ROW_TYPE=COMPRESSED
Error | 1478 | Table storage engine 'REFERENCE' does not support the create option 'PAGE_COMPRESSED'
> ALTER TABLE e PAGE_COMPRESSION_LEVEL=3
ERROR 1478 (HY000): Table storage engine 'REFERENCE' does not support the create option 'PAGE_COMPRESSION_LEVEL'
> SHOW WARNINGS
Level | Code | Message
Warning | 140 | InnoDB: PAGE_COMPRESSION_LEVEL requires PAGE_COMPRESSED
Error | 1478 | Table storage engine 'REFERENCE' does not support the create option 'PAGE_COMPRESSION_LEVEL'
> ALTER TABLE e PAGE_COMPRESSED=1, ALGORITHM=INSTANT
ERROR 1846 (0A000): ALGORITHM=INSTANT is not supported. Reason: Changing table options requires the table to be rebuilt. Try ALGORITHM=INPLACE
> ALTER TABLE e ROW_FORMAT=COMPRESSED, ALGORITHM=NOCOPY
ERROR 1846 (0A000): ALGORITHM=NOCOPY is not supported. Reason: Changing table options requires the table to be rebuilt. Try ALGORITHM=INPLACE
> ALTER TABLE e PAGE_COMPRESSED=0, ALGORITHM=INSTANT
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE c PAGE_COMPRESSION_LEVEL=3, ALGORITHM=INSTANT
OK (Records: 0  Duplicates: 0  Warnings: 0)
> ALTER TABLE c PAGE_COMPRESSED=DEFAULT PAGE_COMPRESSION_LEVEL=DEFAULT
OK (Records: 0  Duplicates: 0  Warnings: 0)
> SHOW CREATE TABLE c
Table | Create Table
c | CREATE TABLE `c` (
    `id` int(11) NOT NULL,
    PRIMARY KEY (`id`)
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='x'
> SET innodb_strict_mode = OFF
OK
> CREATE TABLE f (id INT) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=3
OK
- Warning | 1478 | InnoDB: ignoring KEY_BLOCK_SIZE=3.
> SHOW WARNINGS
Level | Code | Message
Warning | 1478 | InnoDB: ignoring KEY_BLOCK_SIZE=3.
> CREATE TABLE g (id INT) ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=8
OK
- Warning | 1478 | InnoDB: ignoring KEY_BLOCK_SIZE=8 unless ROW_FORMAT=COMPRESSED.
> SHOW WARNINGS
Level | Code | Message
Warning | 1478 | InnoDB: ignoring KEY_BLOCK_SIZE=8 unless ROW_FORMAT=COMPRESSED.
> CREATE TABLE h (id INT) ROW_FORMAT=PAGE
OK
- Warning | 1478 | InnoDB: assuming ROW_FORMAT=DYNAMIC.
> SHOW WARNINGS
Level | Code | Message
Warning | 1478 | InnoDB: assuming ROW_FORMAT=DYNAMIC.
> CREATE TEMPORARY TABLE i (id INT) ROW_FORMAT=COMPRESSED
OK
- Warning | 1478 | InnoDB: ROW_FORMAT=COMPRESSED is ignored for TEMPORARY TABLE.
- Warning | 1478 | InnoDB: assuming ROW_FORMAT=DYNAMIC.
> SHOW WARNINGS
Level | Code | Message
Warning | 1478 | InnoDB: ROW_FORMAT=COMPRESSED is ignored for TEMPORARY TABLE.
Warning | 1478 | InnoDB: assuming ROW_FORMAT=DYNAMIC.
> CREATE TABLE n (id INT) PAGE_COMPRESSED=1 ROW_FORMAT=COMPRESSED
ERROR 1005 (HY000): Can't create table `test`.`n` (errno: 140 "Wrong create options")
> SET innodb_strict_mode = ON, innodb_compression_default = ON
OK
> CREATE TABLE k (id INT)
OK
> SHOW CREATE TABLE k
Table | Create Table
k | CREATE TABLE `k` (
    `id` int(11) DEFAULT NULL
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci `PAGE_COMPRESSED`='ON'
> CREATE TABLE l (id INT) ROW_FORMAT=COMPRESSED
ERROR 1005 (HY000): Can't create table `test`.`l` (errno: 140 "Wrong create options")
> CREATE TABLE l (id INT) ROW_FORMAT=COMPRESSED PAGE_COMPRESSED=0
OK
> CREATE TABLE m LIKE k
OK
> SET innodb_compression_default = OFF
OK
> SHOW CREATE TABLE m
Table | Create Table
m | CREATE TABLE `m` (
    `id` int(11) DEFAULT NULL
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci `PAGE_COMPRESSED`='ON'
