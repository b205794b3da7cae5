==== LOCK TABLES locks the functions that triggers and views call
create table t1 (a int)//
create table t2 (a int)//
insert into t1 values (1)//
create function f1() returns int return (select max(a) from t1)//
create trigger tr before insert on t2 for each row set new.a = f1()//
create view v as select f1() as q//
lock tables t2 write//
-- differs: MariaDB adds that the function was not dropped
B: drop function f1//
-- differs: MariaDB adds an unknown database
B: create or replace function f1() returns int return 7//
insert into t2 values (0)//
select * from t2//
unlock tables//
lock tables v read//
-- differs: MariaDB adds that the function was not dropped
B: drop function f1//
select * from v//
unlock tables//
B: drop function f1//
==== Tables that only programs name stay usable for others
create table t2 (a int)//
create table lg (m int)//
create table t1 (a int)//
insert into t1 values (1)//
create trigger tr before insert on t2 for each row insert into lg values (new.a + (select max(a) from t1))//
lock tables t2 write//
B: select count(*) from lg//
B: insert into lg values (100)//
B: insert into t1 values (5)//
B: select count(*) from t2//
B: alter table lg add b int//
B: drop table t1//
insert into t2 values (1)//
select * from lg//
drop table lg//
alter table lg add c int//
unlock tables//
B: select * from lg//
lock tables t2 read//
-- differs: MariaDB names another table
insert into t2 values (1)//
select * from lg//
B: insert into lg values (7)//
unlock tables//
==== Which table the errors of LOCK TABLES name
create table t2 (a int)//
create table lg (m int)//
create table t1 (a int)//
create table t3 (a int)//
insert into t1 values (1)//
create trigger tr before insert on t2 for each row insert into lg values (new.a)//
create function f1() returns int return (select max(a) from t1)//
create function seldom_writes() returns int begin if 1 = 0 then insert into t3 values (1); end if; return (select max(a) from t1); end//
create view v as select f1() as q//
lock tables lg read//
insert into t2 values (1)//
select * from v//
select f1()//
unlock tables//
lock tables t3 read, t1 read//
select seldom_writes()//
select f1()//
unlock tables//
lock tables t1 read//
select seldom_writes()//
unlock tables//
lock tables v read//
select * from v//
select f1()//
unlock tables//
==== FLUSH TABLES of names locks as LOCK TABLES does
create table t1 (a int)//
create view v as select * from t1//
flush tables nothing with read lock//
flush tables t1, t1 with read lock//
flush tables v with read lock//
select * from v//
B: insert into t1 values (1)//
unlock tables//
create temporary table tt (a int)//
flush tables tt with read lock//
select * from t1//
flush tables t1 with read lock//
insert into t1 values (1)//
flush tables t1 with read lock//
unlock tables//
==== Views and functions that use sequences
create sequence s//
create view v as select nextval(s) as n//
create function f() returns bigint return nextval(s)//
create view vf as select f() as n//
lock tables v read//
select * from v//
B: select nextval(s)//
unlock tables//
lock tables v write//
select * from v//
unlock tables//
lock tables vf read//
select * from vf//
unlock tables//
==== Programs and tables that the session itself has locked
create table t (a int primary key, b int)//
create table u (a int)//
create table w (a int)//
insert into t values (1, 10), (2, 20)//
create function rd() returns int return (select max(a) from t)//
create function wr(x int) returns int begin insert into t (a, b) values (x, x); return x; end//
create function rw(x int) returns int begin update t set b = b + 1 where a = x; return (select b from t where a = x); end//
create function other() returns int return (select count(*) from u)//
create procedure pr() select max(a) from t//
create procedure pw(x int) insert into t values (x, 0)//
create procedure pu() select count(*) from u//
create procedure pddl() alter table t add c int//
create procedure plock() lock tables u write//
create procedure pcommit() begin insert into t values (90, 0); commit; start transaction; insert into t values (91, 0); end//
create view v as select rd() as m//
create view vt as select * from t//
create trigger tr after insert on u for each row insert into w values (new.a + rd())//
lock tables t write//
select rd()//
select wr(3)//
select rw(3)//
select other()//
call pr()//
call pw(4)//
call pu()//
select * from v//
select * from vt//
select count(*) from t where a = rd()//
select count(*) from t x//
insert into t select rd() + 1, 0//
insert into t values (rd() + 1, 0)//
update t set b = rd()//
call plock()//
create temporary table tt (a int)//
insert into tt values (rd())//
insert into tt select a from t//
select * from tt order by a//
set @x = rd()//
do wr(50)//
select @x//
unlock tables//
lock tables t read//
select rd()//
select wr(100)//
select rw(1)//
call pr()//
call pw(101)//
set @x = rd()//
select * from vt//
insert into tt values (rd())//
call pddl()//
unlock tables//
lock tables t write//
call pddl()//
select * from t where a = 1//
unlock tables//
lock tables t as x read, t as y write//
select count(*) from t as x//
select rd()//
select wr(200)//
call pr()//
select count(*) from t//
unlock tables//
lock tables t as x write, t read//
select rd()//
unlock tables//
lock tables u write//
insert into u values (1)//
select * from w//
select rd()//
select wr(300)//
insert into w values (5)//
B: insert into t (a, b) values (900, 0)//
unlock tables//
lock tables u write, w write//
insert into u values (2)//
select wr(301)//
select * from w//
unlock tables//
lock tables u read//
insert into u values (3)//
unlock tables//
lock tables u write, t write//
insert into u values (4)//
select wr(302)//
drop trigger tr//
create trigger tr after insert on u for each row insert into t (a) values (new.a)//
insert into u values (700)//
unlock tables//
lock tables v read//
select * from v//
select rd()//
select * from t//
unlock tables//
lock tables vt write//
insert into vt (a, b) values (400, 1)//
select count(*) from vt//
select rd()//
select count(*) from t//
unlock tables//
lock tables u write//
drop function other//
-- differs: MariaDB adds another error
create function other() returns int return 4//
-- differs: MariaDB adds another error
create procedure px() select 1//
-- differs: MariaDB adds another error
drop procedure px//
-- differs: MariaDB adds another error
alter procedure pr comment 'x'//
create trigger tr2 before insert on t for each row set new.b = 1//
create trigger tr2 before insert on u for each row set new.a = 1//
insert into u values (8)//
drop trigger tr2//
create event e on schedule every 1 year do select 1//
unlock tables//
lock tables t write//
call pcommit()//
select max(a) from t//
insert into t (a) values (999)//
unlock tables//
==== Others define the programs that a session under LOCK TABLES uses
create table t (a int primary key)//
create table u (a int)//
create function rd() returns int return (select count(*) from t)//
create procedure pr() select rd()//
create procedure pw() insert into t values (7)//
create trigger tr before insert on u for each row set new.a = rd()//
create view v as select rd() as m//
lock tables t write//
select rd()//
B: drop procedure pw//
call pw()//
B: create procedure pw() insert into t values (8)//
call pw()//
B: create or replace procedure pr() select 'new'//
call pr()//
select rd()//
B&: create or replace function rd() returns int return (select max(a) from t)//
select rd()//
select rd()//
unlock tables//
B?//
select rd()//
lock tables u write//
insert into u values (0)//
B&: drop trigger tr//
insert into u values (0)//
unlock tables//
B?//
insert into u values (0)//
select * from u//
B&: lock tables t write, u write//
B?//
select rd()//
call pr()//
B: unlock tables//
start transaction//
select rd()//
B&: drop function rd//
select rd()//
insert into u values (3)//
commit//
B?//
call pr()//
lock tables u write, t read//
-- differs: MariaDB adds another error
create function rd() returns int return (select count(*) from t)//
select rd()//
unlock tables//
create function rd() returns int return (select count(*) from t)//
lock tables t read, u write//
select rd()//
C: insert into t values (55)//
C: select rd()//
C: call pr()//
unlock tables//
==== Two sessions, programs and locked tables
create table t (a int primary key)//
create table u (a int primary key)//
create function ft() returns int begin insert into t select count(*) + 1 from t; return (select count(*) from t); end//
create function fu() returns int begin insert into u select count(*) + 1 from u; return (select count(*) from u); end//
create procedure both() begin select ft(); select fu(); end//
lock tables t write//
B: lock tables u write//
select ft()//
B: select fu()//
select fu()//
B: select ft()//
call both()//
B: call both()//
unlock tables//
B: unlock tables//
call both()//
B: call both()//
flush tables with read lock//
select ft()//
B: select ft()//
call both()//
unlock tables//
flush tables t with read lock//
select ft()//
B: select ft()//
unlock tables//
set autocommit = 0//
select ft()//
lock tables t read//
select ft()//
select count(*) from t//
unlock tables//
set autocommit = 1//
==== A table that is locked under two names
create table t (a int primary key)//
create function wr(x int) returns int begin insert into t values (x); return x; end//
lock tables t as x write, t read//
select wr(1)//
unlock tables//
lock tables t write, t as x read//
select wr(1)//
unlock tables//
lock tables t as x write, t as y read//
select wr(2)//
unlock tables//
create table u (a int primary key)//
create trigger u_insert before insert on u for each row insert into t values (new.a + 10)//
lock tables u write, t read//
insert into u values (1)//
select wr(3)//
unlock tables//
lock tables u as q write, u read, t read//
insert into u values (2)//
unlock tables//
select * from t order by a//
