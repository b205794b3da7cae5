==== trap 1: handlers that fail, handlers in loops, cursors of inner blocks
create table t (a int primary key)//
insert into t values (1), (2), (3)//
create procedure p() begin declare exit handler for sqlexception begin select 'outer', (select count(*) from t); end; begin declare continue handler for 1062 begin insert into t values (2); select 'not reached'; end; insert into t values (1); select 'not reached'; end; end//
call p()//
create procedure q() begin declare i, n int default 0; declare continue handler for 1062 set n = n + 1; declare continue handler for sqlexception set n = n + 100; while i < 5 do set i = i + 1; insert into t values (i); if i = 4 then signal sqlstate '45000'; end if; end while; select i, n; end//
call q()//
create procedure r() begin declare exit handler for sqlstate '45001' begin select 'left'; end; begin declare x int; declare c cursor for select a from t order by a; open c; fetch c into x; begin declare d cursor for select a from t; open d; signal sqlstate '45001'; end; end; end//
call r()//
call r()//
==== trap 4: tables that change between the rounds of a loop
create table t (a int)//
insert into t values (1)//
create procedure named() begin declare i int default 0; declare v bigint; while i < 4 do select max(a) into v from t; select v; case i when 0 then alter table t add b int first; when 1 then drop table t; create table t (a bigint primary key); insert into t values (5000000000); when 2 then drop table t; create view t as select 11 as a; else select 'end'; end case; set i = i + 1; end while; end//
call named()//
call named()//
==== trap 4: SELECT * of a table that changes
create table t (a int)//
insert into t values (1)//
create procedure p() begin select * from t; alter table t add b int default 7; select * from t; end//
call p()//
==== trap 4: a table that changes under an open cursor
create table t (a int, b int)//
insert into t values (1, 10), (2, 20), (3, 30)//
create procedure cursors() begin declare x int; declare c cursor for select a from t order by a; open c; fetch c into x; select x; alter table t drop column b; fetch c into x; select x; drop table t; fetch c into x; select x; close c; open c; end//
call cursors()//
==== trap 4: a temporary table hides the table in some calls
create table t (a int)//
insert into t values (1)//
create procedure hidden() begin select a from t; end//
call hidden()//
create temporary table t (a varchar(9))//
insert into t values ('own')//
call hidden()//
drop temporary table t//
call hidden()//
create procedure hides() begin select a from t; create temporary table t (a int); insert into t values (77); select a from t; drop temporary table t; select a from t; end//
call hides()//
call hides()//
create function reads() returns int return (select max(a) from t)//
select reads()//
create temporary table t (a int)//
insert into t values (99)//
select reads()//
drop temporary table t//
select reads()//
==== trap 5: types of variables
set sql_mode = 'STRICT_TRANS_TABLES'//
create procedure p() begin declare x tinyint; declare y char(4) default 'ab'; declare z int default 5; declare continue handler for sqlexception select 'handled', x; set x = 300; set x = 12; set x = 'no number'; begin declare z int default z + 1; select z; end; select concat('[', y, ']'), x; case z when 1 then select 1; end case; end//
call p()//
set sql_mode = ''//
call p()//
create table t (x int, y int)//
insert into t values (1, 2)//
create procedure same() begin declare x int default 9; select x, t.x, y from t where t.x <> x; end//
call same()//
==== trap 6: a function for each row, under both isolation levels; a function that writes, in SELECT
create table t (a int)//
insert into t values (1), (2), (3)//
create table lg (n int auto_increment primary key, v int)//
create function counts() returns int return (select count(*) from t)//
create function writes(x int) returns int begin insert into lg (v) values (x); return x; end//
set transaction isolation level read committed//
begin//
select a, counts() from t order by a//
B: insert into t values (4)//
select a, counts() from t order by a//
commit//
set transaction isolation level repeatable read//
begin//
select a, counts() from t order by a//
B: insert into t values (5)//
select a, counts() from t order by a//
commit//
select a, writes(a) from t order by a//
select v from lg order by n//
select a from t where writes(a) > 3 order by a//
select count(*) from lg//
begin//
select writes(100)//
rollback//
select count(*) from lg//
set autocommit = 0//
select writes(101)//
B: select count(*) from lg where v = 101//
rollback//
set autocommit = 1//
start transaction read only//
select writes(102)//
rollback//
select writes(a) from t where a = (select max(v) from lg)//
==== trap 7: triggers and functions that come back to the changed table
create table t (a int)//
create table u (a int)//
create function f() returns int return (select count(*) from t)//
create procedure p(out n int) set n = f()//
create trigger tr before insert on t for each row begin declare n int; call p(n); set new.a = n; end//
insert into t values (1), (2)//
select * from t//
create procedure w() insert into t values (9)//
create trigger tu before insert on u for each row call w()//
insert into u values (1)//
select * from t, u//
create trigger tw after insert on t for each row insert into u values (1)//
insert into u values (2)//
insert into t values (3)//
update t set a = f()//
delete from t where f() > 0//
==== trap 8: counters and clocks inside of bodies and after them
create table t (n int auto_increment primary key, v int)//
create table u (n int auto_increment primary key, v int)//
insert into u (v) values (0), (0), (0)//
create trigger tr after insert on t for each row insert into u (v) values (new.v)//
create function f() returns bigint begin insert into u (v) values (1); return last_insert_id(); end//
insert into t (v) values (5), (6)//
select last_insert_id(), row_count()//
insert into t (v) values (7)//
select row_count()//
select last_insert_id()//
select f(), last_insert_id()//
select last_insert_id()//
create procedure p() begin insert into t (v) values (8); select last_insert_id(), row_count(); update t set v = 0; select row_count(); select sql_calc_found_rows n from t limit 1; select found_rows(); end//
call p()//
select row_count()//
select last_insert_id(), found_rows()//
create function delayed_clock() returns int begin declare a, b datetime(6); set a = now(6); do sleep(0.01); set b = now(6); return a = b; end//
select delayed_clock()//
create procedure slowly() begin declare a, b datetime(6); set a = now(6); do sleep(0.01); set b = now(6); select a = b, sysdate(6) > b; end//
call slowly()//
select count(distinct u) from (select uuid() as u from t) d, (select f()) e//
==== trap 9: what failures inside of bodies undo
create table t (a int primary key, b int)//
create table lg (v varchar(20))//
create table child (a int, foreign key (a) references t (a))//
insert into t values (1, 1), (2, 2)//
create procedure p() begin declare continue handler for 1062 insert into lg values ('twice'); insert into t values (3, 3), (1, 9); insert ignore into t values (1, 9), (4, 4); select row_count(); end//
call p()//
select * from t//
select * from lg//
create procedure fk() begin declare continue handler for 1452 insert into lg values ('no parent'); insert into child values (1), (77); insert ignore into child values (1), (77); select count(*) from child; end//
call fk()//
create procedure lt() begin declare continue handler for 1205 insert into lg values ('waited'); insert into lg values ('before'); update t set b = 10 where a = 1; insert into lg values ('after'); end//
B: begin//
B: update t set b = 5 where a = 1//
begin//
call lt()//
commit//
select * from lg//
create function fl() returns int begin declare continue handler for 1205 return 0; insert into lg values ('function'); update t set b = 10 where a = 1; return 1; end//
-- differs: MariaDB has the error twice
select fl()//
B: rollback//
select * from lg//
create procedure dl() begin declare continue handler for 1213 select 'victim'; update t set b = b + 1 where a = 1; select 'goes on', count(*) from lg; end//
begin//
insert into lg values ('undone')//
update t set b = 0 where a = 2//
B: begin//
B: update t set b = b + 1 where a = 1//
B: insert into t select a + 100, b from t where a > 2//
B&: update t set b = b + 1 where a = 2//
call dl()//
B?//
commit//
B: commit//
select * from lg where v = 'undone'//
==== trap 10: transactions and cursors
create table t (a int primary key)//
insert into t values (1), (2), (3)//
create procedure p() begin declare x int; declare c cursor for select a from t order by a; open c; fetch c into x; insert into t values (x + 10); commit; fetch c into x; insert into t values (x + 10); rollback; fetch c into x; select x; close c; end//
call p()//
select * from t//
set autocommit = 0//
call p()//
select * from t//
rollback//
set autocommit = 1//
select * from t//
delete from t where a > 3//
create procedure inside() insert into t values (50)//
xa start 'x'//
call inside()//
call p()//
xa end 'x'//
call inside()//
xa rollback 'x'//
select * from t//
==== trap 11: time limits (KILL, and limits with handlers, which MariaDB may miss: programs/limits.rs)
create procedure spin() begin while true do set @r = 1; end while; end//
create procedure empty_loop() begin l: loop iterate l; end loop; end//
create procedure many() begin declare i int default 0; while i < 100 do do sleep(0.01); set i = i + 1; end while; select 'not reached'; end//
create function fspin() returns int begin while true do set @r = 1; end while; return 1; end//
-- differs: MariaDB has no note about the place
set statement max_statement_time = 0.2 for call spin()//
-- differs: MariaDB has no note about the place
set statement max_statement_time = 0.2 for call empty_loop()//
-- differs: MariaDB has no note about the place
set statement max_statement_time = 0.2 for select fspin()//
-- differs: the limit counts for the whole CALL
set statement max_statement_time = 0.2 for call many()//
==== trap 12: depth
set max_sp_recursion_depth = 255//
create procedure deep(n int) begin if n > 0 then call deep(n - 1); else select 'bottom'; end if; end//
call deep(10)//
set max_sp_recursion_depth = 3//
call deep(4)//
call deep(3)//
set max_sp_recursion_depth = 0//
call deep(1)//
create function rec(n int) returns int return if(n > 0, rec(n - 1), 0)//
-- differs: MariaDB adds an error
select rec(1)//
create procedure a234567890123456789012345678901234567890123456789012345678901234() select 'sixty-four'//
call a234567890123456789012345678901234567890123456789012345678901234()//
create procedure a2345678901234567890123456789012345678901234567890123456789012345() select 'too long'//
==== trap 16: IGNORE, and an inner failure after many rows
create table t (a int primary key, b int)//
create table lg (v int)//
create trigger tr after insert on t for each row begin insert into lg values (new.a); if new.a = 3 then signal sqlstate '45000' set message_text = 'three'; end if; end//
insert into t values (1, 1), (2, 2), (3, 3), (4, 4)//
select count(*) from t//
select count(*) from lg//
insert ignore into t values (1, 1), (2, 2), (3, 3), (4, 4)//
select count(*) from t//
select count(*) from lg//
create table big (n int)//
insert into big select seq from seq_1_to_2000//
create trigger trb before update on big for each row begin if old.n = 1999 then signal sqlstate '45000' set message_text = 'late'; end if; set new.n = old.n + 1; end//
update big set n = 0 order by n//
select count(*), sum(n) from big//
create function late(x int) returns int begin insert into lg values (x); if x = 1999 then signal sqlstate '45000' set message_text = 'late'; end if; return x; end//
select sum(late(n)) from big//
select count(*) from lg//
create procedure goes_on() begin declare continue handler for sqlexception begin end; insert into lg select late(n) from big; select count(*) from lg; insert into lg values (1); end//
call goes_on()//
select count(*) from lg//
==== trap 17: DDL of bodies, variables as literals
create procedure p(x int, y varchar(20)) begin create table made as select x as n, y as s; create table two (a int default 5, b varchar(20) default 'it''s'); insert into made values (x + 1, concat(y, '!')); select * from made; show create table made; drop table two; end//
call p(7, 'o''clock')//
drop table made//
call p(null, null)//
==== Bad input: objects that are gone
create user gone_definer@localhost//
create definer = gone_definer@localhost procedure p() select 1//
create definer = gone_definer@localhost function f() returns int return 1//
create table t (a int)//
create definer = gone_definer@localhost trigger tr before insert on t for each row set new.a = 1//
create definer = gone_definer@localhost view v as select 1//
drop user gone_definer@localhost//
call p()//
select f()//
insert into t values (1)//
-- differs: a view without tables needs no definer
select * from v//
drop trigger tr//
insert into t values (2)//
create procedure u() begin select * from nowhere; end//
call u()//
create procedure w() begin declare x type of nowhere.a; select x; end//
call w()//
create procedure c() begin declare k cursor for select * from nowhere; open k; end//
call c()//
call nothing()//
select nothing()//
==== BEFORE triggers of inserts see NULL in columns without a value
create table t (id int primary key, s varchar(10) not null, d varchar(10) not null default 'dd', n int not null, v int default 7, t timestamp not null default '2001-01-01 00:00:00', e enum('x', 'y') not null, seen varchar(200))//
create trigger tb before insert on t for each row begin if new.id = 2 then set new.s = 'set', new.n = 5; end if; set new.seen = concat_ws('|', ifnull(new.s, 'NULL'), ifnull(new.d, 'NULL'), ifnull(new.n, 'NULL'), ifnull(new.v, 'NULL'), ifnull(new.e, 'NULL'), new.t is null); end//
insert into t (id) values (1)//
insert into t (id) values (2)//
insert into t (id, e) values (2, 'x')//
delete from t//
insert into t (id, e, s) values (2, 'x', null)//
replace into t (id, e, s) values (2, 'y', null)//
insert into t (id, e, s) values (3, 'x', default)//
insert into t (id, e, s, n, t) values (3, 'x', 'q', 1, null)//
insert into t (id, e) select 4, 'x'//
insert into t (id, e) values (5, 'x'), (6, 'y')//
insert ignore into t (id, e) values (7, 'x'), (8, 'y')//
insert into t (id, e) values (2, 'x') on duplicate key update n = 4//
update t set s = null//
update ignore t set s = null, d = default, n = default//
select id, s, d, n, v, e, t = '2001-01-01', seen from t//
select '2\\t\\\\N\\t\\\\N\\t\\\\N\\t\\\\N\\t\\\\N\\t\\\\N\\n1\\n3\\tq' into outfile '../columns.txt' fields escaped by ''//
delete from t//
load data infile '../columns.txt' into table t (id, s, d, n, v, t, e)//
load data infile '../columns.txt' ignore into table t (id, s, d, n, v, t, e)//
select id, s, d, n, v, e, t = '2001-01-01', seen from t//
set sql_mode = ''//
delete from t//
load data infile '../columns.txt' into table t (id, s, d, n, v, t, e)//
select id, s, d, n, v, e, t = '2001-01-01', seen from t//
delete from t//
load data infile '../columns.txt' into table t (id, @a) set e = 'y'//
load data infile '../columns.txt' replace into table t (id, @a) set s = default, e = 'y'//
select id, s, d, n, v, e, t = '2001-01-01', seen from t//
delete from t//
insert into t () values ()//
insert into t (id, s) select 4, null//
insert into t (id, s) values (5, null), (6, null)//
select id, s, d, n, v, e, t = '2001-01-01', seen from t//
==== REPLACE counts a changed row once unless triggers see its deletion
create table r (id int primary key, w int)//
create trigger tr after insert on r for each row set @x = concat(@x, new.w)//
set @x = ''//
replace into r values (1, 5), (1, 5), (1, 6), (2, 6)//
select @x//
create trigger tu before update on r for each row set @x = concat(@x, 'u')//
replace into r values (1, 6), (1, 7), (2, 6)//
select @x//
create trigger td before delete on r for each row set @x = concat(@x, 'd')//
replace into r values (1, 7), (1, 8), (2, 6)//
select @x//
==== BEFORE triggers of inserts whose values call functions, defaults that read what is left to the trigger
create table t (id int primary key, s varchar(10) not null, seen varchar(20))//
create trigger tb before insert on t for each row begin set new.seen = ifnull(new.s, 'NULL'); set new.s = ifnull(new.s, 'set'); end//
create function f(x int) returns int return x//
insert into t (id) values (f(2))//
insert into t (id) values ((select 3))//
replace into t (id) values (f(4))//
set sql_mode = ''//
insert into t (id) values (f(5)), (f(6))//
select * from t//
set sql_mode = default//
create table dd (a int not null, y int not null default (a + 1), z int default (a * 2))//
create trigger ddb before insert on dd for each row set new.a = ifnull(new.a, 4)//
insert into dd () values ()//
insert into dd (z) values (f(1))//
insert into dd (y) values (5)//
select * from dd//
==== A decimal below 0 does not fit UNSIGNED
create table u (a int unsigned, b decimal(5,1) unsigned)//
insert into u (a) values (-0.4)//
insert into u (a) values ('-0.4'), (-0.4e0), (0.4 - 0.4)//
create procedure p() begin declare x int unsigned default 7; declare d decimal(5,2) default -0.4; declare continue handler for sqlexception begin get diagnostics condition 1 @e = mysql_errno; end; set @e = 0; set x = d; select x, @e; end//
call p()//
set sql_mode = ''//
insert into u values (-0.4, -0.04)//
select * from u//
create procedure q() begin declare x int unsigned default 7; declare d decimal(5,2) default -0.4; set x = d; select x; set x = -0.4; select x; end//
call q()//
