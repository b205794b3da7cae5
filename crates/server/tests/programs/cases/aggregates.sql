==== Aggregate functions
create table t(g int, a int, b varchar(20))//
insert into t values(1,1,'one'),(1,2,'two'),(2,3,null),(2,null,'x'),(3,7,'seven')//
create aggregate function asum(x int) returns int begin declare s int default 0; declare continue handler for not found return s; loop fetch group next row; set s = s + ifnull(x, 0); end loop; end//
show create function asum//
select g, asum(a) from t group by g//
select asum(a) from t//
select asum(a) from t where 1=0//
select asum(a), count(*) from t where g > 10//
select g, asum(a) from t where g > 10 group by g//
-- differs: HAVING may aggregate by a program
select g, asum(a) s from t group by g having asum(a) > 3 order by asum(a) desc//
select g, asum(a) from t group by g with rollup//
select asum(a) + sum(a), asum(a * 2), asum(1) from t//
select asum(a) from t group by g order by g limit 1//
select (select asum(a) from t s where s.g = t.g) from t group by g//
select asum(distinct a) from t//
select asum(a, a) from t//
select asum() from t//
select asum(x.a) from t x join t y on x.g = y.g//
select g from t where asum(a) > 1//
select asum(asum(a)) from t//
select sum(asum(a)) from t//
select asum(sum(a)) from t//
-- differs: another error
select asum(a) over () from t//
-- differs: another error
select asum(a) over (partition by g) from t//
select asum(5)//
-- differs: DO and SET may aggregate, as with SUM
do asum(5)//
-- differs: DO and SET may aggregate, as with SUM
set @x = asum(5)//
select asum(a) into @y from t//
select @y//
select asum(b) from t//
select asum('12x'), asum(99999999999)//
select if(1, asum(a), 2), case when asum(a) > 3 then 'y' end, concat(asum(a)) from t//
-- differs: expressions of programs may aggregate by a program
begin not atomic declare v int; set v = asum(3); select v; select asum(a) into v from t; select v; end//
create view va as select g, asum(a) as s from t group by g//
select * from va//
select s from va where s > 3//
insert into t select 9, asum(a), 'ins' from t//
select * from t where g = 9//
update t set a = asum(a)//
delete from t where asum(a) = 1//
delete from t where g = 9//
create table ct as select g, asum(a) as s from t group by g//
show create table ct//
select t.*, asum(a) from t//
set sql_mode = concat(@@sql_mode, ',only_full_group_by')//
select g, asum(a) from t//
set sql_mode = default//
create aggregate function afirst(x varchar(20)) returns varchar(50) begin fetch group next row; return x; end//
-- differs: the first RETURN ends a group
select g, afirst(b) from t group by g//
select afirst(b) from t where 1=0//
create aggregate function anofetch(x int) returns int return x//
create aggregate function anofetch(x int) returns int begin return x; end//
create aggregate function atwo(x int, y varchar(10)) returns varchar(200) begin declare r varchar(200) default ''; declare n int default 0; declare continue handler for not found return concat(r, '/', n, '/', ifnull(x,'N'), ifnull(y,'N')); set r = concat('[', ifnull(x,'N'), ']'); loop fetch group next row; set n = n + 1; set r = concat(r, ifnull(x,'N'), ':', ifnull(y,'N'), ';'); end loop; end//
-- differs: after the last row the parameters keep its values
select g, atwo(a, b) from t group by g//
select atwo(a, b) from t where 1=0//
create aggregate function anoh(x int) returns int begin declare s int default 0; loop fetch group next row; set s = s + x; end loop; end//
select anoh(a) from t//
create aggregate function aexit(x int) returns int begin declare s int default 0; begin declare exit handler for not found begin end; loop fetch group next row; set s = s + 1; end loop; end; return s; end//
select g, aexit(a) from t group by g//
select aexit(a) from t where 0//
create aggregate function aearly(x int) returns int begin declare s int default 0; declare continue handler for not found return -1; fetch group next row; if x > 1 then return x; end if; fetch group next row; return x; end//
-- differs: the first RETURN ends a group
select g, aearly(a) from t group by g//
create aggregate function aerr(x int) returns int begin declare continue handler for not found return 1; loop fetch group next row; if x = 2 then signal sqlstate '45000' set message_text = 'two'; end if; end loop; end//
select g, aerr(a) from t group by g//
select g, aerr(a) from t where g > 1 group by g//
create table lg(v int)//
create aggregate function awr(x int) returns int begin declare n int default 0; declare continue handler for not found return n; loop fetch group next row; set n = n + 1; insert into lg values (x); end loop; end//
-- differs: MariaDB leaves notes without an error
select g, awr(a) from t group by g//
select * from lg//
select awr(a) from lg x join t//
create aggregate function aread(x int) returns int begin declare n int default 0; declare continue handler for not found return n; loop fetch group next row; set n = n + (select count(*) from lg where v = x); end loop; end//
select aread(a) from t//
create function fnorm(x int) returns int begin fetch group next row; return x; end//
create procedure pnorm() begin fetch group next row; end//
create procedure pp() begin select g, asum(a) from t group by g; end//
call pp()//
call pp()//
create aggregate procedure px() select 1//
create aggregate function anoend(x int) returns int begin declare n int default 0; declare continue handler for not found set n = n + 1; fetch group next row; fetch group next row; fetch group next row; set x = 100; fetch group next row; return n; end//
-- differs: FETCH after the last row raises NOT FOUND again
select g, anoend(a) from t group by g//
create aggregate function aset(x int) returns int begin declare n int default 0; declare continue handler for not found return n; loop fetch group next row; set n = n + x; set x = 1000; end loop; end//
select g, aset(a) from t where a is not null group by g//
drop function asum//
select asum(a) from t//
select is_deterministic, data_type, routine_type, routine_definition from information_schema.routines where routine_schema='d1' and routine_name='afirst'//
create aggregate function arec(x int) returns int begin declare n int default 0; declare continue handler for not found return n; loop fetch group next row; set n = n + arec(x); end loop; end//
-- differs: one condition less
select arec(a) from t//
create table ts(g int, a int)//
create trigger trs before insert on ts for each row set new.a = (select aexit(a) from t)//
insert into ts values (1,1)//
select * from ts//
prepare s from 'select g, aset(a) from t where a > ? group by g'//
set @p = 0//
execute s using @p//
execute s using @p//
select g, aexit(a) as n from t group by g union select 1, aexit(a) from t order by n, g//
select aexit(a) from t group by g having count(*) > 1 order by g//
select distinct aexit(a) from t group by g//
select group_concat(n) from (select aexit(a) as n from t group by g) d//
-- differs: an aggregate in a subquery belongs to the query of its columns
select g, (select aexit(t.a)) from t group by g//
select exists(select aexit(a) from t where 0)//
create aggregate function asstr(x varchar(100)) returns text begin declare r text default ''; declare continue handler for not found return r; loop fetch group next row; set r = concat(r, ifnull(x, '-'), ','); end loop; end//
select asstr(b) from t//
select asstr(a), asstr(now() > 0), asstr(1.50), asstr(cast('2020-01-01' as date)), asstr(b) from t//
