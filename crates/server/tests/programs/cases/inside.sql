==== KILL in functions
create table t (a int)//
create function f9() returns int begin kill query 999999; return 1; end//
select f9()//
create function f10() returns int begin declare continue handler for sqlexception begin end; kill query 999999; return 1; end//
select f10()//
create function f11() returns int begin declare continue handler for sqlexception begin end; kill query connection_id(); insert into t values (99); return 1; end//
-- differs: MariaDB repeats the error
select f11()//
select count(*) from t//
create table u (a int)//
create trigger tr before insert on u for each row kill query connection_id()//
-- differs: MariaDB repeats the error
insert into u values (1)//
select count(*) from u//
==== Variables that functions may not set
create function f1() returns int begin set sql_log_bin = 0; return 1; end//
select f1()//
create function f2() returns int begin declare continue handler for 1695 return 2; set sql_log_bin = 0; return 1; end//
select f2()//
create function f3() returns int begin set gtid_domain_id = 3; return 1; end//
select f3()//
create function f4() returns int begin set gtid_seq_no = 3; return 1; end//
select f4()//
create function f5() returns int begin set skip_replication = 1; return 1; end//
select f5()//
create function f6() returns int begin set binlog_format = 'STATEMENT'; return 1; end//
select f6()//
create function f7() returns int begin set autocommit = 0; return 1; end//
create function f8() returns int begin declare continue handler for sqlexception begin end; set timestamp = 1; return 1; end//
-- differs: refused, and no handler lets the function go on
select f8()//
==== UPDATE IGNORE fires AFTER triggers for rows that stay
create table t (a int primary key, b int, unique (b))//
create table lg (v varchar(30))//
insert into t values (1, 1), (2, 2), (3, 3)//
create trigger tb before update on t for each row insert into lg values (concat('b', old.a, '->', new.a, '/', new.b))//
create trigger ta after update on t for each row insert into lg values (concat('a', old.a, '->', new.a, '/', new.b))//
update ignore t set a = 2 where a = 1//
update ignore t set b = b + 1 order by a//
select * from lg//
delete from lg//
insert ignore into t values (1, 9) on duplicate key update b = 3//
update ignore t, (select 1 as q) d set t.b = 3 where t.a = 1//
select * from lg//
create table p (a int primary key)//
insert into p values (3)//
create table c (a int primary key, b int, foreign key (b) references p (a))//
insert into c values (1, null), (3, null)//
create trigger tc after update on c for each row insert into lg values (concat('c', old.a, '/', ifnull(new.b, 'null')))//
update ignore c set b = a//
select * from lg//
select * from c//
==== Expressions that may call no stored function
create function f1(x int) returns int return x//
create function fs() returns varchar(20) return 'select 1'//
create event e2 on schedule every 1 day starts now() + interval f1(1) hour do select 1//
create event e4 on schedule every f1(1) day do select 1//
create event e5 on schedule every 1 day ends now() + interval f1(1) day do select 1//
create event e6 on schedule every 1 day do select 1//
alter event e6 on schedule every f1(2) day//
drop event e6//
execute immediate fs()//
execute immediate (select 'select 1')//
execute immediate 'select ?' using f1(1)//
prepare s from fs()//
prepare s from 'select ?'//
execute s using f1(1)//
execute s using (select 1)//
kill query f1(999999)//
kill (select 999999)//
create function kf() returns int begin kill query f1(999999); return 1; end//
select kf()//
set statement max_statement_time = f1(1) for select 1//
set statement max_statement_time = (select 1) for select 1//
==== Errors in functions of views do not name what they use
create user poor@localhost//
create table sec (a int)//
create function own() returns int sql security invoker return (select max(a) from sec)//
create sql security invoker view vi as select own() as x//
create view vd as select own() as x//
grant select on vi to poor@localhost//
grant select on vd to poor@localhost//
grant execute on function own to poor@localhost//
-- differs: MariaDB lists the hidden error among the conditions
B as poor: select * from vi//
B as poor: select own()//
B as poor: select * from vd//
drop table sec//
-- differs: MariaDB lists the hidden error among the conditions
select * from vd//
drop user poor@localhost//
