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
