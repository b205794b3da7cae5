==== Temporary tables with the names of account tables
create temporary table mysql.user (a int)//
insert into mysql.user values (1)//
select * from mysql.user//
update mysql.user set a = 2//
select a from mysql.user//
delete from mysql.user//
create user u1@localhost//
select count(*) from mysql.user//
grant select on d.* to u1@localhost//
show grants for u1@localhost//
drop user u1@localhost//
drop temporary table mysql.user//
create temporary table mysql.db (a int, b int)//
insert into mysql.db values (1, 2), (3, 4)//
replace into mysql.db values (5, 6)//
update mysql.db set b = 0 where a = 1//
delete from mysql.db where a = 3//
select * from mysql.db order by a//
truncate table mysql.db//
select * from mysql.db//
alter table mysql.db add c int//
show index from mysql.db//
show columns from mysql.db//
drop table mysql.db//
select count(*) >= 0 from mysql.db//
create temporary table mysql.proc (a int)//
insert into mysql.proc values (7)//
create procedure p() select * from mysql.proc//
call p()//
select * from mysql.proc//
update mysql.proc set a = a + 1//
call p()//
drop procedure p//
lock tables mysql.proc write//
insert into mysql.proc values (8)//
select * from mysql.proc//
unlock tables//
lock tables mysql.proc read//
insert into mysql.proc values (9)//
unlock tables//
drop table mysql.proc//
call p()//
select count(*) from mysql.proc where db = 'd'//
create temporary table mysql.event (a int)//
create event e on schedule every 1 year do select 1//
select * from mysql.event//
insert into mysql.event values (1)//
delete from mysql.event//
drop event e//
drop temporary table mysql.event//
create temporary table mysql.global_priv (host char(255), user char(128), priv longtext)//
create user u2@localhost//
insert into mysql.global_priv values ('localhost', 'u3', '{}')//
select count(*) from mysql.global_priv//
show create user u3@localhost//
delete from mysql.global_priv//
show create user u2@localhost//
drop temporary table mysql.global_priv//
drop user u2@localhost//
-- differs: a note about the engine
create temporary table mysql.tables_priv like mysql.db//
create temporary table mysql.tables_priv (a int)//
insert into mysql.tables_priv values (1)//
select * from mysql.tables_priv//
drop temporary table if exists mysql.tables_priv//
drop temporary table if exists mysql.tables_priv//
create temporary table mysql.procs_priv select 1 as x//
select * from mysql.procs_priv//
insert into mysql.procs_priv values (2)//
insert into mysql.procs_priv select x + 1 from mysql.procs_priv//
flush privileges//
select * from mysql.procs_priv//
drop table mysql.procs_priv//
use mysql//
create temporary table columns_priv (a int)//
insert into columns_priv values (1)//
select * from columns_priv//
begin not atomic insert into columns_priv values (2); update columns_priv set a = a + 1; delete from columns_priv where a = 2; select * from columns_priv; end//
create function d.f() returns int begin insert into mysql.columns_priv values (10); return (select count(*) from mysql.columns_priv); end//
select d.f()//
select * from columns_priv//
drop table columns_priv//
-- differs: the table does not exist here
select d.f()//
use d//
create temporary table mysql.roles_mapping (a int)//
insert into mysql.roles_mapping values (1)//
create role r1//
grant r1 to root@localhost//
select * from mysql.roles_mapping//
update mysql.roles_mapping, (select 1) q set a = 3//
delete mysql.roles_mapping from mysql.roles_mapping//
select * from mysql.roles_mapping//
drop role r1//
alter table mysql.roles_mapping rename to d.other//
insert into other values (5)//
select * from other//
drop table other//
create temporary table mysql.time_zone_name (Name char(64), Time_zone_id int)//
insert into mysql.time_zone_name values ('x', 1)//
select * from mysql.time_zone_name//
select * from mysql.time_zone_name//
analyze table mysql.time_zone_name//
check table mysql.time_zone_name//
optimize table mysql.time_zone_name//
drop temporary table mysql.time_zone_name//
create temporary table mysql.slow_log (a int)//
insert into mysql.slow_log values (1)//
select * from mysql.slow_log//
drop temporary table mysql.slow_log//
create temporary table mysql.user (a int)//
prepare s from 'insert into mysql.user values (?)'//
execute s using 3//
select * from mysql.user//
drop temporary table mysql.user//
-- differs: accounts have other errors
execute s using 4//
create temporary table mysql.db (a int)//
prepare s from 'delete from mysql.db where a = ?'//
execute s using 3//
create view d.v as select * from mysql.db//
handler mysql.db open as h//
handler h read first//
handler h close//
rename table mysql.db to d.x2//
drop temporary table if exists mysql.db//
drop temporary table if exists d.x2//
create trigger tr before insert on mysql.db for each row set @a = 1//
create temporary table mysql.gtid_slave_pos (a int)//
insert into mysql.gtid_slave_pos values (1)//
select * from mysql.gtid_slave_pos//
drop temporary table mysql.gtid_slave_pos//
