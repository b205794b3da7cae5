# Types and character sets of definitions: members that come twice, DEFAULT collations, declarations that
# contradict each other, lengths of computed texts; and what PREPARE takes. The answers are MariaDB's.

> USE test
OK
> create table twice (a enum('x', 'y', 'X'))
ERROR 1291 (HY000): Column 'a' has duplicated value 'x' in ENUM
> create table twice (a set('x', 'y', 'y'))
ERROR 1291 (HY000): Column 'a' has duplicated value 'y' in SET
> set sql_mode = ''
OK
> create table twice (a enum('x', 'y', 'X', 'Y', 'x'), b set('p', 'q', 'p'))
OK
- Note | 1291 | Column 'a' has duplicated value 'x' in ENUM
- Note | 1291 | Column 'a' has duplicated value 'y' in ENUM
- Note | 1291 | Column 'a' has duplicated value 'X' in ENUM
- Note | 1291 | Column 'b' has duplicated value 'p' in SET
> select column_type from information_schema.columns where table_schema = 'test' and table_name = 'twice'
column_type
enum('x','y','X','Y','x')
set('p','q','p')
> insert into twice values ('x', 'q'), (3, 'p'), ('Y', 4)
OK 3 (Records: 3  Duplicates: 0  Warnings: 0)
> select a, a + 0, b, b + 0 from twice order by a
a | a + 0 | b | b + 0
x | 1 | q | 2
y | 2 | p | 4
X | 3 | p | 1
> set sql_mode = default
OK
> create table c1 (a char(10) collate default, b varchar(5) character set latin1 collate default, c text unicode) character set utf8mb4 collate utf8mb4_bin
OK
> show create table c1
Table | Create Table
c1 | CREATE TABLE `c1` (
    `a` char(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL,
    `b` varchar(5) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
    `c` text CHARACTER SET ucs2 COLLATE ucs2_general_ci DEFAULT NULL
  ) ENGINE=REFERENCE DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
> create table c2 (a char(10)) character set latin1 collate default
OK
> show create table c2
Table | Create Table
c2 | CREATE TABLE `c2` (
    `a` char(10) DEFAULT NULL
  ) ENGINE=REFERENCE DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci
> create table c3 (a char) character set latin1 character set latin2
ERROR 1302 (HY000): Conflicting declarations: 'CHARACTER SET latin1' and 'CHARACTER SET latin2'
> create table c3 (a char) character set latin1 charset = latin1
OK
> create table r (b1 varchar(1), b2 varchar(2), a5 varchar(5), c2 varchar(2), c5 varchar(5), t text)
OK
> insert into r values ('a', 'a', 'aaaaa', 'xy', 'vwxyz', 'a')
OK 1
> create table r2 as select replace('a', b2, c2) x1, replace('a', b1, c2) x2, replace(a5, b2, c5) x3, replace(a5, 'abc', c2) x4, replace('abc', 'bb', 'x') x5, replace(a5, 'a', '') x6, replace(a5, t, c5) x7 from r
OK 1 (Records: 1  Duplicates: 0  Warnings: 0)
> select * from r2
x1 | x2 | x3 | x4 | x5 | x6 | x7
xy | xy | vwxyzvwxyzvwxyzvwxyzvwxyz | aaaaa | abc |  | vwxyzvwxyzvwxyzvwxyzvwxyz
> select column_name, column_type from information_schema.columns where table_schema = 'test' and table_name = 'r2' order by 1
column_name | column_type
x1 | varchar(2)
x2 | varchar(2)
x3 | varchar(25)
x4 | varchar(10)
x5 | varchar(3)
x6 | varchar(5)
x7 | varchar(25)
> select * from (((select 1 a) t))
a
1
> select * from ((((select 1 a union select 2)) t))
a
1
2
> select * from ((select 1 a) t join (select 2 b) u)
a | b
1 | 2
> prepare p from 'lock tables r write'
OK (Statement prepared)
> execute p
OK
> insert into r2 (x1) values ('no')
ERROR 1100 (HY000): Table 'r2' was not locked with LOCK TABLES
> unlock tables
OK
