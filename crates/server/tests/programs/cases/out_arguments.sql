==== OUT and INOUT parameters of functions
create table t (a int, b int)//
create table l (m varchar(20))//
insert into t values (1, 1), (2, 2)//
create function g(out a int) returns int begin set a = 5; return 9; end//
create function inc(inout a int) returns int begin set a = a + 1; return a; end//
create function w(out a int) returns int begin set a = 5; insert into l values ('w'); return 9; end//
create function two(inout a int, inout b int) returns int begin set a = a + 1, b = b + 1; return a + b; end//
create function s4(out a varchar(4)) returns int begin set a = 'abcd'; return 1; end//
create function fails(out a int) returns int begin set a = 5; signal sqlstate '45000'; return 9; end//
create function mixed(OUT a INT, InOut b INT, IN c INT, d INT) returns int return c + d//
show create function mixed//
select specific_name, ordinal_position, parameter_mode, parameter_name, dtd_identifier from information_schema.parameters where specific_schema = 'd' order by 1, 2//
select name, param_list from mysql.proc where db = 'd' order by name//
create function f(inout a int, out a int) returns int return 1//
set @a = 1, @b = 2//
set @r = mixed(@a, @b, 3, 4)//
select @r, @a, @b//
set @r = g(@a)//
select @r, @a//
set @r = inc(@b)//
select @r, @b//
do inc(@b), inc(@b)//
select @b//
set @r = inc(@b) + @b//
select @r, @b//
set @r = @b + inc(@b)//
select @r, @b//
set @r = two(@b, @b)//
select @r, @b//
set @n = null//
set @r = inc(@n)//
select @r, @n//
set @r = inc(@undefined)//
select @r, @undefined//
set @s = 'abc'//
set @r = inc(@s)//
select @r, @s//
set @r = g(1)//
set @r = mixed(@a, 2, 3, 4)//
set @r = g(@a + 1)//
set @r = g(null)//
set @r = g(@@sql_mode)//
set @r = g(g(@a))//
set @r = w(1)//
select count(*) from l//
set @a = 1//
-- differs: an error of DO is an error
do fails(@a)//
set @r = fails(@a)//
select @a//
set @r = if(g(@a), 2, 3)//
select @r, @a//
set @r = (select g(@a))//
set @r = (select inc(@a) from t limit 1)//
select @r, @a//
set max_error_count = g(@a)//
select @@max_error_count//
set max_error_count = 64//
select g(@a)//
select 1 from dual where g(@a)//
select g(@a) into @z//
select (select g(@a))//
select g(a) from t//
-- differs: MariaDB adds the error again
select count(*) from t group by g(@a)//
select a from t order by g(@a)//
select t.a from t join t s on g(@a) = 0//
values (g(@a))//
select g(@a) union select 1//
select w(@a)//
select count(*) from l//
insert into t values (g(@a), 1)//
insert into t select g(@a), 1//
update t set a = g(@a)//
update t set a = a where g(@a) = 0//
delete from t where a = g(@a)//
replace into t values (inc(@a), @a)//
replace into t select inc(@a), 0 from t limit 2//
select * from t//
update t, l set t.b = inc(@a)//
delete t from t, t s where inc(@a) = 0//
create view v as select g(@a)//
create view v as select inc(1) as q//
select * from v//
set @r = (select q from v)//
create table x (a int default (g(@a)))//
create table x (a int, b int as (inc(a)))//
create event e on schedule every inc(@a) day do select 1//
prepare s from 'set @r = inc(?)'//
set @z = 1//
execute s using @z//
select @r, @z//
execute s using @z//
select @r, @z//
-- differs: a placeholder receives no value
execute s using 5//
prepare s from 'do inc(?)'//
execute s using @z//
select @z//
execute immediate 'set @r = inc(?)' using @z//
select @r, @z//
execute immediate 'select inc(?)' using @z//
==== OUT and INOUT parameters of functions in bodies
create table t (a int, b int)//
create function inc(inout a int) returns int begin set a = a + 1; return a; end//
create function two(inout a int, inout b int) returns int begin set a = a + 1, b = b + 1; return a + b; end//
create function s4(out a varchar(4)) returns int begin set a = 'abcd'; return 1; end//
begin not atomic declare x, y int default 1; set y = inc(x); select x, y; set y = inc(x) + x; select x, y; set y = x + inc(x); select x, y; if inc(x) > 2 then select 'yes', x; end if; while inc(x) < 9 do select x; end while; select x; case inc(x) when 10 then select '10', x; else select 'else', x; end case; end//
begin not atomic declare x int default 1; declare y int default inc(x); select x, y; set y = two(x, x); select x, y; set x = inc(x); select x; set @u = inc(x); select @u, x; do inc(x); select x; select inc(x); end//
begin not atomic declare x int default 1; declare c cursor for select inc(x) as z; open c; end//
begin not atomic declare x int default 1; select inc(x) into x; end//
begin not atomic declare x int default 1; insert into t values (inc(x), 1); end//
begin not atomic declare x int default 1; set x = inc(1); end//
begin not atomic declare x int default 1; set x = inc(x + 1); end//
begin not atomic declare x int default 1; set x = (select inc(x)); select x; end//
begin not atomic declare x int default 1; for r in (select inc(x) as q) do select r.q; end for; end//
-- differs: an error of DO is an error
begin not atomic declare s varchar(2); do s4(s); end//
-- differs: an error of DO is an error
begin not atomic declare x tinyint; do s4(x); end//
-- differs: an error of DO is an error
begin not atomic declare s varchar(2); declare continue handler for sqlexception begin get diagnostics condition 1 @m = message_text; select @m; end; do s4(s); select s; set @q = s4(s); select s; end//
begin not atomic declare r row(a int, b int) default row(1, 2); declare x int; set x = inc(r.a); select r.a, x; end//
create procedure p(inout z int) begin declare y int; set y = inc(z); select y, z; set y = two(z, @k); select y, z, @k; end//
create function twice(inout z int) returns int begin declare y int; set y = inc(z); return y + inc(z); end//
set @k = 3, @z = 1//
call p(@z)//
select @z, @k//
set @r = twice(@z)//
select @r, @z//
set @r = twice(@z) + inc(@z) + twice(@z)//
select @r, @z//
begin not atomic declare a, b int default 1; set a = inc(b) + twice(b) + b; select a, b; end//
call p(inc(@z))//
create procedure q(z int) select z//
call q(inc(@z))//
select @z//
create trigger tr before insert on t for each row set new.b = inc(new.a)//
insert into t values (10, 10)//
select * from t//
drop trigger tr//
create trigger tr after insert on t for each row set @q = inc(new.a)//
insert into t values (20, 10)//
select * from t//
drop trigger tr//
create trigger tr before update on t for each row set new.b = inc(old.a)//
update t set b = 7//
drop trigger tr//
create trigger tr before update on t for each row begin declare x int default old.a; set new.b = inc(x) * 100 + x; end//
update t set b = 7//
select * from t//
begin not atomic declare x int default 3; execute immediate 'set @r = inc(?)' using x; select x; end//
==== OUT arguments in statements that send no rows of their own
create table l (a int)//
create function g(out x int) returns int no sql begin set x = 7; return x; end//
create function inc(inout x int) returns int no sql begin set x = x + 1; return x; end//
set @x = 3//
create table ct as select g(@x) as a//
select @x, a from ct//
create or replace table ct as select inc(@x) as a from seq_1_to_3//
select @x//
select a from ct//
begin not atomic declare v int default 1; create or replace table ct as select inc(v) as a from seq_1_to_2; select v; end//
select a from ct//
show tables where g(@x) > 1//
select @x//
begin not atomic declare v int; show variables where g(@x) = 1 and variable_name = 'autocommit'; end//
create table dt (a int default (g(@x)))//
handler l open//
handler l read first where g(@x)//
handler l close//
kill g(@x)//
explain select g(@x)//
analyze select g(@x)//
