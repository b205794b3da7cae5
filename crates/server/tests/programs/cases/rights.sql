==== Names of columns that an account may not use
create table t (a int, b int, c int)//
create table u (a int, z int)//
create table w (z2 int, y int)//
create view v as select a, b from t//
create view m as select * from w//
create or replace user poor@localhost//
grant select (a) on d.t to poor@localhost//
grant select (a), insert (a), update (a) on d.u to poor@localhost//
grant select on d.w to poor@localhost//
grant select (a) on d.v to poor@localhost//
grant select (y) on d.m to poor@localhost//
B as poor: select nope from t//
B: select b from t//
B: select a from t where nope = 1//
B: select a from t order by nope//
B: select a from t group by nope//
B: select t.nope from t//
B: select nope.a from t//
B: select x.nope from w, t x//
B: select w.nope from w, t//
B: select nope from w, t//
B: select nope from t, u//
B: select nope from (select a from t) x, t//
B: select nope from (select a from t) x//
B: select nope from v//
B: select b from v//
B: select nope from m//
B: select z2 from w where nope = 1//
B: select nope from w//
B: select count(nope) from t//
B: select count(*) over (partition by nope) from t//
B: select group_concat(a order by nope) from t//
B: select a from t having nope//
B: select a from t having b//
B: select a from t join w on nope = 1//
B: select a from t union select nope from u//
B: explain select nope from t//
B: prepare s from 'select nope from t'//
B: select default(nope) from t//
B: with x as (select nope from t) select * from x//
B: select a from t, json_table(nope, '$[*]' columns (x int path '$')) j//
B: select a, (select b) from t//
B: select a from t x where exists (select 1 from w where x.b = 1)//
B: update u set nope = 1//
B: update u set z = 1//
B: update u set a = nope//
B: update u set a = z//
B: update u set a = 1 where nope = 1//
B: update u set a = default(nope)//
B: update u, w set u.nope = 1//
B: update u, w set u.z = 1//
B: insert into u (nope) values (1)//
B: insert into u (z) values (1)//
B: insert into u (a) values (nope)//
B: insert into u (a) values (z)//
B: insert into u set nope = 1//
B: insert into u (a) select nope from w//
-- differs: another clause in the message
B: select a from t join w using (b)//
-- differs: in a subquery, too, an unknown column is refused like a known one
B: select (select nope from t) from w//
-- differs: in a subquery, too, an unknown column is refused like a known one
B: select a from t x where exists (select 1 from w where x.nope = 1)//
-- differs: in USING, too, an unknown column is refused like a known one
B: select a from t join w using (nope)//
create procedure p() select nope from t//
create procedure q() sql security invoker select nope from t//
grant execute on procedure d.p to poor@localhost//
grant execute on procedure d.q to poor@localhost//
B: call d.p()//
B: call d.q()//
drop user poor@localhost//
==== The definer of an event
create or replace user poor@localhost//
grant select on d.* to poor@localhost//
B as poor: create definer = root@localhost event e on schedule every 1 day do select 1//
B: create definer = root@localhost event nosuch.e on schedule every 1 day do select 1//
B: create event e on schedule every 1 day do select 1//
B: create definer = poor@localhost event e on schedule every 1 day do select 1//
B: create definer = current_user event e on schedule every 1 day do select 1//
B: create definer = nobody@localhost event if not exists e on schedule every 1 day do select 1//
B: create or replace definer = root@localhost event e on schedule every 1 day do select 1//
B: alter definer = root@localhost event e enable//
B: create definer = root@localhost procedure e() select 1//
B: create definer = root@localhost trigger e before insert on t for each row set @a = 1//
drop user poor@localhost//
