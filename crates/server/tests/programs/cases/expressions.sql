==== Stored functions in WHERE of SHOW
create table t1 (a int)//
create table t2 (b int)//
create table calls (n int)//
create function is2(s varchar(64)) returns int return s like '%2'//
create function cnt() returns int begin insert into calls values (1); return 1; end//
create function num() returns int return (select count(*) from calls)//
show tables where is2(tables_in_d)//
show full tables where is2(tables_in_d) and table_type = 'BASE TABLE'//
show columns from t1 where is2(field)//
show columns from t1 where not is2(field)//
show databases where is2(`database`)//
show databases where d.is2(`database`) or `database` = 'd'//
show function status where db = 'd' and is2(name) and created is null//
show procedure status where is2(name)//
show triggers where is2(`trigger`)//
show events where is2(name)//
show variables where is2(variable_name) and variable_name like 'server_i%'//
show status where is2(variable_name) and variable_name = 'x'//
show collation where is2(collation) and charset = 'utf8mb3' and id = 1//
show character set where is2(charset) and charset = 'ucs2'//
show index from t1 where is2(key_name)//
show table status where is2(name) and engine = 'x'//
show engines where is2(engine)//
show tables where cnt()//
-- differs: MariaDB evaluates the condition twice
select count(*) from calls//
show tables where num() = (select count(*) from calls)//
show tables where nosuch(1)//
show tables where is2()//
show tables where exists (select 1 from t1)//
begin not atomic declare x varchar(64) default 't2'; show tables where tables_in_d = x and is2(x); end//
create procedure p(v varchar(9)) show tables where is2(tables_in_d) and tables_in_d = v//
call p('t2')//
call p('t1')//
lock tables t1 read//
show tables where is2(tables_in_d)//
show tables where num() = 0//
unlock tables//
prepare s from 'show tables where is2(tables_in_d) and tables_in_d <> ?'//
execute s using 'x'//
create user poor@localhost//
grant select on d.t1 to poor@localhost//
B as poor: show tables where is2(tables_in_d)//
grant execute on function d.is2 to poor@localhost//
B: show tables where is2(tables_in_d)//
B: show tables where is2(tables_in_d) or 1//
drop user poor@localhost//
==== Aggregates outside of queries
create table t1 (a int)//
insert into t1 values (1), (2)//
create function f(x int) returns int return x + 1//
do sum(1)//
do count(*)//
do f(sum(1))//
do (select sum(a) from t1)//
do 1, max(2)//
do row_number() over ()//
-- differs: another clause in the message
do default(a)//
-- differs: another clause in the message
do a//
do values(a)//
do (1, 2)//
do *//
set @a = count(*)//
set @a = sum(1) + 1//
set @a = f(max(1))//
set @a = (select max(a) from t1)//
select @a//
set @a = group_concat('x')//
set @a = row_number() over ()//
-- differs: another clause in the message
set @a = a//
set @a = (1, 2)//
set @a = (select 1, 2)//
set @a = (select a from t1)//
set max_error_count = count(*)//
set max_error_count = max(5)//
set max_error_count = (select max(10))//
select @@max_error_count//
set max_error_count = (select 1, 2)//
set max_error_count = row_number() over ()//
set @@sql_mode = group_concat('x')//
create procedure p(x int) select x//
call p(sum(1))//
call p(count(*))//
call p((select count(*) from t1))//
call p(row_number() over ())//
-- differs: a note about the place
begin not atomic declare x int default sum(1); select x; end//
begin not atomic declare x int; set x = count(*); select x; end//
begin not atomic declare x int; set x = max(x); select x; end//
begin not atomic if count(*) then select 1; end if; end//
begin not atomic declare x int default 3; while max(x) > 1 do set x = x - 1; end while; select x; end//
begin not atomic case sum(1) when 1 then select 'one'; end case; end//
begin not atomic do sum(1); end//
begin not atomic set @x = sum(1); end//
create function g() returns int return count(*)//
select g()//
-- differs: the default is checked when it is evaluated
create function g2() returns int begin declare x int default sum(1); return x; end//
-- differs: the default is checked when it is evaluated
select g2()//
begin not atomic declare c cursor (p int) for select p; declare x int; open c(sum(1)); fetch c into x; select x; end//
signal sqlstate '45000' set message_text = sum(1)//
begin not atomic declare m text default 'a'; signal sqlstate '45000' set message_text = m; end//
execute immediate concat('select ', count(*))//
prepare s from concat('select ', count(*))//
execute immediate 'select ?' using sum(1)//
kill sum(1)//
set statement max_statement_time = sum(1) for select 1//
get diagnostics condition sum(1) @x = message_text//
purge binary logs before sum(1)//
set @@timestamp = sum(1)//
create trigger tr before insert on t1 for each row set new.a = sum(new.a)//
insert into t1 values (5)//
create trigger tr2 before insert on t1 for each row set @c = count(*)//
insert into t1 values (6)//
drop trigger if exists tr//
drop trigger if exists tr2//
-- differs: MariaDB adds an error
create event e on schedule every sum(1) day do select 1//
-- differs: MariaDB adds an error
create event e on schedule at max(now()) do select 1//
select a from t1 limit 1//
return sum(1)//
values (sum(1))//
insert into t1 values (sum(1))//
insert into t1 set a = count(*)//
update t1 set a = sum(1)//
delete from t1 where sum(a)//
==== INTO in a part of a set operation
(select 1 from dual into @v) intersect (select 1 from dual)//
(select 1 from dual into @v) union (select 1 from dual)//
select 1 union (select 2 into @v)//
select 1 union select 2 limit 1 into @v//
select @v//
