==== Local variables in every statement
create table t(a int primary key, b varchar(20))//
insert into t values(1,'one'),(2,'two'),(3,null)//
begin not atomic declare x int default 5; declare y varchar(7) default 'abc'; declare z decimal(5,2) default 1.5; create table c1 select x, y, z, x+1 as w, a from t where a < x; end//
show create table c1//
select * from c1//
begin not atomic declare x bigint unsigned default 5; declare y date default '2020-01-01'; declare d double default 3; create or replace table c1 as select x, y, d, concat(y,x) as k; show create table c1; end//
begin not atomic declare x int default 5; create temporary table c2 as select x as q; select * from c2; drop temporary table c2; end//
create function f1() returns int begin declare x int default 7; declare y varchar(3) default 'qq'; create temporary table c3 as select x, y; return (select x from c3); end//
select f1()//
show create table c3//
drop temporary table c3//
begin not atomic declare x int default 2; declare y int default 1; set @a = x + y; set x = @a + 1; select x, @a; set session max_error_count = x + 10; select @@max_error_count; set @@max_error_count = 64; end//
begin not atomic declare x int default 2; insert into t values (x+10, x), (x+11, concat(x,'q')); insert into t set a = x+20, b = x; insert into t select a + x * 100, b from t where a <= x; replace into t values (x, 'rep'); update t set b = x where a = x + 10; delete from t where a = x + 11; select * from t; insert into t values(x, x) on duplicate key update b = concat(b, x, values(b)); select * from t where a = x; end//
begin not atomic declare x int default 1; select a from t order by a limit x; select a from t order by a limit x, x; update t set b = 'lim' order by a limit x; delete from t order by a limit x; select * from t order by a; end//
begin not atomic declare x int default -1; select a from t order by a limit x; end//
begin not atomic declare x int default null; select a from t order by a limit x; end//
begin not atomic declare x varchar(10) default '2'; select a from t order by a limit x; end//
begin not atomic declare x decimal(5,2) default 2; select a from t order by a limit x; end//
begin not atomic declare x bigint unsigned default 1; select a from t order by a limit x; end//
begin not atomic declare x int default -1; delete from t order by a limit x; end//
begin not atomic declare x int default -1; update t set b = 1 order by a limit x; end//
begin not atomic declare x varchar(10) default 't'; show tables where tables_in_d1 = x; end//
begin not atomic declare x varchar(10) default 't'; show tables like x; end//
begin not atomic declare x varchar(30) default 'max_error_count'; show variables where variable_name = x; show status where variable_name = x; end//
begin not atomic declare x varchar(30) default 'd1'; show databases where `database` = x;  end//
begin not atomic declare x varchar(30) default 't'; show table status where name = x and 1=0;  end//
begin not atomic declare x int default 3; do x + 1, sleep(x-3); end//
begin not atomic declare x int default connection_id(); kill query x; select 1; end//
begin not atomic declare x varchar(20) default 'hello'; declare n int default 4000; signal sqlstate '45000' set message_text = x, mysql_errno = n; end//
begin not atomic declare x int default 1; declare y varchar(10); declare c cursor (p int, q varchar(3)) for select concat(b, q, p) from t where a > p order by a; open c(x + 1, 'abc'); fetch c into y; select y; close c; open c(0, 'abcdef'); fetch c into y; select y; end//
begin not atomic declare x int default 1; declare y int default 2; prepare s from 'select ? + ? as r'; execute s using x, y; execute s using x + 1, y * 2; end//
begin not atomic declare x varchar(30) default 'select 4711 as r'; prepare s from x; execute s; execute immediate x; execute immediate concat('select ', '?') using x; end//
begin not atomic declare x int default 1; create view v1 as select x; end//
begin not atomic declare x int default 1; create view v1 as select a from t where a = x; end//
create procedure cp(in a int, inout b varchar(5), out c decimal(4,1)) begin set b = concat(b, a), c = a / 3; end//
begin not atomic declare x int default 1; declare y varchar(10) default 'long'; declare z double; call cp(x + 4, y, z); select x, y, z; call cp(x, @uu, @zz); select @uu, @zz; end//
begin not atomic declare x int default 1; call cp(x, x + 1, x); end//
begin not atomic declare x int default 2; select a, (select max(a) from t s where s.a < t.a + x) m from t where a in (x, x+1) group by a having a >= x order by x, a; end//
-- differs: the column of VALUES has another name
begin not atomic declare x int default 2; select x union select x + 1 order by 1 limit x; with c as (select x as q) select * from c; values (x), (x+1); end//
begin not atomic declare x int default 2; select json_table.* from json_table('[1,2,3]', '$[*]' columns (v int path '$')) json_table where v > x; end//
begin not atomic declare x int default 2; select a, sum(a) over (order by a rows x preceding) from t; end//
-- differs: LIMIT of GROUP_CONCAT takes literals only
begin not atomic declare x int default 2; select group_concat(a order by a separator '-' limit x) from t; end//
begin not atomic declare x int default 2; alter table t auto_increment = x; end//
begin not atomic declare x int default 2; handler t open; handler t read `PRIMARY` = (x); handler t read first limit x; handler t close; end//
begin not atomic declare x int default 1; lock tables t read; unlock tables; set transaction isolation level read committed; end//
-- differs: a number is no time
begin not atomic declare x int default 1; purge binary logs before x; end//
begin not atomic declare x varchar(10) default 'abc'; select a into @q from t where b = x; select load_file(x), x into @a, @b; end//
begin not atomic declare x char(5) default 'ab'; select concat('[', x, ']'); create or replace table c5 as select x, now() as n; show create table c5; end//
begin not atomic declare x type of t.b; declare r row type of t; set x = 'typ'; select * into r from t order by a limit 1; create or replace table c6 as select x, r.a, r.b; show create table c6; end//
-- differs: ENUM, SET and TEXT variables make columns of these types
begin not atomic declare x enum('p','q') default 'q'; declare s set('a','b') default 'a,b'; declare b bit(5) default 3; declare y year default 2020; declare tm time(3) default '10:11:12.5'; declare dt datetime(6) default '2020-01-02 03:04:05'; declare ts timestamp(2) default '2020-01-02 03:04:05'; declare f float default 1.5; declare ti tinyint default 3; declare mi mediumint unsigned default 4; declare bl blob default 'x'; declare tx text default 'y'; declare bi binary(4) default 'z'; declare vb varbinary(9) default 'z'; declare bo bool default true; declare js json default '{}'; declare un uuid; declare i6 inet6; create or replace table c7 as select x, s, b, y, tm, dt, ts, f, ti, mi, bl, tx, bi, vb, bo, js, un, i6; show create table c7; select x, s, b, y, tm, dt, ts, f, ti, mi, bl, tx, bi, vb, bo, js, un, i6; end//
-- differs: ZEROFILL is kept
begin not atomic declare x int unsigned zerofill default 5; declare y varchar(5) character set latin1 collate latin1_bin default 'y'; create or replace table c8 as select x, y, coalesce(x, 1) c, if(x, y, y) i; show create table c8; end//
begin not atomic declare x int default 5; create or replace table c9 (k int default 3, x varchar(10)) as select x, x + 1 as m union all select 1, 2; show create table c9; select * from c9; end//
create procedure lp(n int) begin declare i int default 0; while i < n do create or replace table ca as select i as v, n; insert into ca values (i * 2, i); set i = i + 1; end while; end//
call lp(3)//
select * from ca//
==== SHOW and LIMIT with local variables
create table t (a int primary key, b varchar(20))//
insert into t values (1, 'one'), (2, 'two'), (3, null)//
begin not atomic declare x varchar(10) default 'a'; show columns from t where field = x; end//
begin not atomic declare x int default 1; select 1/0; show warnings limit x; show warnings limit 1, x; end//
begin not atomic declare x int default -1; select 1/0; show warnings limit x; end//
begin not atomic declare x int default -2; update t set b = 'all' limit x; delete from t where a > 1 order by a limit x; select * from t; end//
prepare s from 'delete from t limit ?'//
set @n = '0'//
execute s using @n//
set @n = null//
execute s using @n//
set @n = 'x'//
execute s using @n//
select count(*) from t//
set @n = '1'//
execute s using @n//
select count(*) from t//
==== Variables and parameters have the collation of the database, results of functions that of a literal
alter database d character set utf8mb4 collate utf8mb4_unicode_ci//
use d//
create table t (a varchar(9), b varchar(9) collate utf8mb4_bin)//
insert into t values ('ss', 'ss')//
create procedure p(x varchar(9)) select count(*), collation(x), coercibility(x) from t where a = x//
call p('ss')//
call p('ß')//
create function f(x varchar(9)) returns int reads sql data return (select count(*) from t where a = x)//
select f('ss'), f('SS')//
create function g() returns varchar(9) deterministic return 'ss'//
create function h() returns varchar(9) character set utf8mb4 collate utf8mb4_general_ci deterministic return 'ss'//
select coercibility(g()), collation(g()), coercibility(h()), collation(h())//
select count(*) from t where b = g()//
select count(*) from t where a = h()//
select b in (g(), h()), a in (g(), h()), concat(g(), a), greatest(b, h()) from t//
select b from t union select g()//
select g() = h()//
alter database d collate utf8mb4_bin//
use d//
call p('ß')//
create procedure q() begin declare x varchar(5) default 'a'; declare y text default 'A'; declare z varchar(5) collate utf8mb4_general_ci default 'a'; if x = 'A' then select 'equal'; end if; case x when 'A' then select 'equal'; else select 'other'; end case; select x union select y; select collation(x), collation(y), collation(z), x = y, z = 'A'; end//
call q()//
create trigger tg before insert on t for each row begin declare x varchar(5) default 'A'; if new.a = 'a' and x = 'a' then set new.a = 'EQ'; end if; end//
insert into t values ('a', 'a')//
select * from t//
begin not atomic declare x varchar(5) default 'a'; select x = 'A', collation(x), coercibility(x); end//
set collation_connection = utf8mb4_general_ci//
begin not atomic declare x varchar(5) default 'a'; select x = 'A', collation(x); end//
set names latin1//
create procedure l() begin declare y varchar(9); set y = (select a from t where a = 'ss'); select collation(y); insert into t values (y, y); end//
call l()//
select count(*) from t where a = 'ss'//
create database if not exists dlatin character set latin1//
use dlatin//
set names utf8mb4//
create procedure m() begin declare y varchar(9); set y = 'ж'; select y; end//
call m()//
drop database dlatin//
==== Hexadecimal literals are numbers in numeric variables; a variable is NULL after a failed assignment
create procedure p() begin declare a int; declare b int default b'101'; declare c varchar(5) default 0x41; declare d decimal(5,1); set a = 0x41; set d = x'0a'; select a, b, c, d; end//
call p()//
create function f() returns int deterministic return 0x41//
create function g() returns varchar(5) deterministic return 0x41//
select f(), g()//
create table t (a int, b varchar(5))//
create trigger tb before insert on t for each row set new.a = 0x41, new.b = 0x41//
insert into t values (1, 'x')//
select * from t//
create procedure q() begin declare a int default 5; declare continue handler for sqlexception begin end; set a = 9223372036854775807 + a; select a; set a = 7; set a = (select 1 union select 2); select a; set a = 8; set a = 'abc'; select a; end//
call q()//
==== Rows as arguments of scalar parameters
create function f(a int) returns int return a//
create function g(a varchar(10)) returns int return 1//
create procedure p(a int) select a//
select f(row(10, 20))//
select g(row(1, 2))//
call p((1, 2))//
call p(row(1, 2))//
begin not atomic declare r row(a int, b int) default row(1, 2); call p(r); end//
begin not atomic declare r row(a int, b int) default row(1, 2); declare exit handler for 4078 select 'handled'; call p(r); end//
