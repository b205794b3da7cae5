-- What sql_mode makes of statements and of SHOW CREATE.
create database sm character set utf8mb4;
use sm;
create table w (id int primary key, o int, v int);
insert into w values (1,1,1),(2,2,2),(3,3,3);
-- ONLY_FULL_GROUP_BY.
set sql_mode='only_full_group_by';
select count(*), id from w;
select id, count(*) from w group by v;
select v + 1, count(*) from w group by v;
select v, count(*) from w group by v + 1;
select v + 1, count(*) from w group by v + 1;
select v as x, count(*) from w group by x;
create view merged as select id, o, v from w;
select id, v from merged group by v order by v;
select merged.id, count(*) from merged;
select t.v, t.id from (select id, v from w) t group by t.v order by t.v;
select t.v, t.id from (select id, v from w limit 9) t group by t.v;
select v, sum(id) over (order by v) from w group by v order by v;
select sum(id) over (), count(*) from w;
drop view merged;
select 1, count(*) from w;
select count(*), (select id from w limit 1) s from w;
select v, count(*) from w group by v order by id;
select v from w having count(*) > 1;
select count(*) from w order by id;
select max(v) + id from w;
select max(v) + 1 from w;
select sum(v) over () s, id from w;
select sum(v) over () s, id from w group by v;
select * from w group by id;
select (select count(*) from w b where b.id = a.v) s from w a group by a.v;
select case v when 1 then id else 2 end c from w group by v;
select id from w group by 1;
select v, group_concat(id order by o) g from w group by v;
select t1.v from w t1 join w t2 on t1.id = t2.id group by t2.v;
insert into w select count(*) + 100, id, 1 from w;
-- REAL_AS_FLOAT.
set sql_mode='real_as_float';
create table r (a real, b double);
show create table r;
set sql_mode='';
create table r2 (a real);
show create table r2;
-- IGNORE_SPACE.
select count (*) from w;
create table count (a int);
drop table count;
create table count(a int);
create table max (max int);
select max from max;
drop table max;
select concat ('a','b') c, left ('abc', 1) l, date_format ('2001-01-01','%Y') y;
set sql_mode='ignore_space';
select count (*) from w;
select sum (v) s from w;
create table count (a int);
select q.now from (select 1 as now) q;
-- SHOW CREATE.
set sql_mode='';
create table p (a int primary key);
create table s (a int auto_increment primary key comment 'x', b varchar(10) character set latin1 collate latin1_bin not null default 'it''s \\ x', c timestamp null on update current_timestamp, d int as (f + 1) virtual, e varchar(5) as ('q"w') stored, key k1(b), unique(c), key k2(b(3)), f int default (1+2), `q"u` int, g int, constraint fk foreign key (g) references p(a), constraint cc check (b <> 'x')) engine=innodb comment='it''s' row_format=dynamic;
create view sv as select a, 'x' as `y"z`, b like 'x\\y' l from s;
create sequence sq;
set sql_mode='no_key_options';
show create table s;
set sql_mode='no_field_options';
show create table s;
set sql_mode='no_table_options';
show create table s;
show create sequence sq;
set sql_mode='ansi_quotes';
show create table s;
show create view sv;
show create database sm;
show create sequence sq;
set sql_mode='ansi';
show create table s;
show create view sv;
set sql_mode='oracle';
show create table s;
show create view sv;
show create sequence sq;
set sql_mode=default;
set sql_quote_show_create=0;
show create view sv;
set sql_quote_show_create=1;
-- Unknown options.
create table i (a int) x=1;
set sql_mode='ignore_bad_table_options';
create table i (a int) x=1 y='z';
show warnings;
drop table i;
-- Zero dates in descriptions.
set sql_mode='';
create table z (id int, d date not null default '0000-00-00', t timestamp not null default '0000-00-00 00:00:00', x datetime default '2001-00-00');
insert into z(id) values (1);
create table y (a int);
insert into y values (1);
create table y0 (a int);
set sql_mode='strict_trans_tables,no_zero_date,no_zero_in_date';
-- differs: a warning of the conversion stands before the error there
alter table z add nd date not null;
-- differs: a warning of the conversion stands before the error there
alter table z add e int;
-- differs: a warning of the conversion stands before the error there
alter table z modify id bigint;
-- differs: a warning of the conversion stands before the error there
create table z2 like z;
insert into z(id) values (77);
insert into z(id,d) values (77,'2001-01-01');
insert into z(id,d,t,x) values (77,'2001-01-01','2001-01-01','2001-01-01');
alter table y add d date not null;
alter table y add d datetime not null first;
alter table y add d3 time not null, add d4 year not null;
alter table y0 add d date not null;
show create table y0;
-- differs: a warning of the conversion stands before the error there
alter table y0 alter d set default '0000-00-00';
-- differs: a warning of the conversion stands before the error there
alter table y0 alter d set default '2001-00-01';
set sql_mode='no_zero_date,no_zero_in_date';
alter table y add d date not null;
insert into z(id) values (5);
show warnings;
set sql_mode='strict_trans_tables,no_zero_in_date';
alter table y add dz date not null;
select count(*) from y;
set sql_mode=default;
-- A column is changed twice through a view, too.
create table tw (c1 int, c2 int);
create view tv1 (a, b) as select c1, c2 from tw;
create view tv2 (a, b) as select c2, c2 from tw;
set sql_mode='simultaneous_assignment';
update tv1 set a = 10, a = b + 1;
update tv2 set a = 10, b = 20;
update tw x, tw y set x.c1 = 1, y.c1 = 2;
update tv1 set a = b, b = a;
update tw set c1 = 1, c1 = 2;
set sql_mode=default;
drop database sm;
