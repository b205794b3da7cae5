-- Definitions of columns and keys: what is refused, what is made of them, and in which order keys stand.
create database ck character set utf8mb4;
use ck;
-- Keys.
create table t1 (a text, key(a));
show create table t1;
create table t2 (a tinytext, b blob, key(a), key(b));
show create table t2;
create table t3 (a text, primary key(a));
-- differs: a note stands before the error there
create table t4 (a text, b int, key(b,a));
create table k (id int primary key, a varchar(10), b varchar(10), n int, unique k1(a(3)), unique k2(b), key k0(n), unique k3(n));
show create table k;
insert into k values (1,'abcd','x',0),(2,'zzz','y',5);
insert into k values (3,'abce','y',9) on duplicate key update n=n+1;
select * from k order by id;
alter table k add unique k5(id), add unique k6(a(2)), add key kx(b(2));
show create table k;
create table pk (c varchar(20), key(c(5)));
alter table pk modify c int;
show create table pk;
create table pk2 (c varchar(20), key(c(5)));
alter table pk2 modify c varchar(4);
show create table pk2;
-- differs: warnings of the engine stand beside the error there
create table g (a int, key gen_clust_index(a));
-- Names.
-- differs: warnings of the engine stand beside the error there
create table x1 (DB_ROW_ID int);
-- differs: warnings of the engine stand beside the error there
create table x2 (db_trx_id int);
create table x3 (a int, constraint `x ` check (a>0));
show create table x3;
create table x4 (a int, unique cc(a), constraint cc check (a>1));
-- Attributes.
create table c1 (a int check (a>1) default 0);
create table c2 (a int check (a>1) check (a>2));
create table c3 (a int comment 'x' check (a>1), b int as (a) stored unique check (b>1));
create table c4 (a enum(0x61,'b'), s set(x'61',b'1100010'));
show create table c4;
create table c5 (a blob(4294967296));
create table c6 (a timestamp(6) default current_timestamp(6) on update current_timestamp(3));
create table c7 (a timestamp(6) default current_timestamp, b datetime(3) on update now());
show create table c7;
set sql_mode='';
create table c8 (a varchar(16384), b varbinary(70000));
show create table c8;
set sql_mode=default;
create table c9 (a varchar(16384));
-- Expressions.
create table e1 (a int default (a+1));
create table e2 (a int default (b+1), b int default (a+1));
create table e3 (a int default (b+1), b int default 3);
insert into e3 values ();
select * from e3;
create table ag (id int auto_increment primary key);
alter table ag add g int as (id+1) virtual;
insert into ag(id) values (4);
select * from ag;
alter table ag add check (id<>5);
alter table ag add h int as (id+1) stored;
alter table ag add i int default (id+1);
create table v1 (a int, b int as (a+1) virtual, c int as (a) stored);
alter table v1 modify b int;
alter table v1 modify b int as (a+1) stored;
alter table v1 modify a int as (1) virtual;
alter table v1 modify c int;
show create table v1;
create table s1 (d datetime, g varchar(20) as (dayname(d)) stored);
create table s2 (d datetime, g varchar(20) as (date_format(d,'%Y')) stored);
create table s3 (d datetime, g int as (week(d)) stored);
create table s4 (d datetime, g int as (week(d,1)) stored);
create table s5 (a int, g datetime as (from_unixtime(a)) stored);
create table s6 (d datetime, g varchar(20) as (date_format(d,'%Y')) virtual, key(g));
create table s7 (d datetime, check (monthname(d) <> 'May'));
create table s8 (d datetime, g varchar(20) as (date_format(d,'%Y')) virtual);
insert into s8(d) values ('2021-02-03');
select * from s8;
create table ts (c datetime null);
insert into ts values (null);
alter table ts modify c timestamp not null default current_timestamp;
select c > '2020-01-01' from ts;
create table l (a int);
create or replace table l like l;
create table if not exists l like l;
-- Foreign keys.
create table p (a int primary key);
create table ch (a int, foreign key (a) references p(a));
set foreign_key_checks=0;
alter table ch modify a varchar(20);
alter table ch modify a bigint;
alter table ch modify a int(5);
alter table p modify a bigint;
alter table ch change a b int;
drop table p;
create table px (a bigint primary key);
rename table px to p;
alter table px rename p;
set foreign_key_checks=1;
create table p (a bigint primary key);
create table p (a int primary key);
-- CHECK OPTION looks at the whole row.
create table a1 (id int auto_increment primary key, v int);
create view uv as select * from a1 where id < 20 with check option;
insert into uv(v) values (1);
select * from uv;
-- FULLTEXT.
create table ft (id int primary key, a text, fulltext(a));
insert into ft values (1,'foo mysql sql'),(2,'other words');
select id from ft where match(a) against('*sql' in boolean mode);
-- Moments of definitions are those of the session.
set time_zone='+05:00';
create table z (a timestamp not null default '2020-01-01 00:00:00');
show create table z;
set time_zone='-02:00';
show create table z;
insert into z values (default);
select distinct a, default(a) from z;
set time_zone=default;
-- AUTO_INCREMENT with NULL behind it leaves the column nullable, before it not; a NULL is then kept as one.
create table an (a tinyint auto_increment null, unique(a));
show create table an;
insert into an values (null), (5), (0), (default);
insert into an () values ();
insert into an select null;
select * from an order by a;
update an set a=null where a=5;
select count(*), max(a) from an;
show columns from an;
create table an2 select * from an;
show create table an2;
alter table an modify a int auto_increment null;
select count(*), count(a) from an;
-- differs: its NULLs get numbers, where MariaDB refuses
alter table an modify a int null auto_increment;
create table an3 (a tinyint null auto_increment, unique(a));
show create table an3;
create table an4 (a tinyint auto_increment null primary key);
show create table an4;
create table an5 (a tinyint auto_increment null default null, b int, key(a));
insert into an5 (b) values (1);
select * from an5;
create table an6 (a int auto_increment null default 1, key(a));
create table an7 (a int auto_increment default null, key(a));
-- USING is kept and shown.
create table ku (a int, b int, key x using hash (a), unique y (b) using btree, key z (a,b) using btree comment 'q', key p (b,a));
show create table ku;
alter table ku add c int, drop key x, add key w using hash (c), rename key y to yy;
create index i1 using btree on ku (c, a);
create index i2 on ku (c desc, b) using hash;
create index i3 on ku (c desc, b) using btree;
show create table ku;
create table ku2 like ku;
show create table ku2;
set sql_mode='no_key_options';
show create table ku2;
set sql_mode=default;
create temporary table ku3 (a int primary key, b int, key(b) using hash);
show create table ku3;
create table ku4 (a int, key (a) using rtree);
-- _rowid is the only column of the first unique key, if it is an integer.
create table ro (a int unique not null, b int);
insert into ro values (3, 4), (7, 8);
select _rowid from ro order by _rowid;
select ro._ROWID + 1, a from ro where _rowid = 3;
update ro set b = 5 where _rowid = 3;
update ro set _rowid = 9 where b = 8;
insert into ro (_rowid) values (1);
select _rowid as x, b from ro group by _rowid having x > 1 order by x;
select x._rowid from ro x join ro y on x.a = y.a order by 1;
select _rowid from ro x, ro y;
select _rowid from (select * from ro) q;
create view rov as select _rowid from ro;
select * from rov order by 1;
create table ro2 (id int, b char(3) primary key);
select _rowid from ro2;
create table ro3 (id int, b int, primary key (id, b), unique (b));
select _rowid from ro3;
create table ro4 (id bigint unsigned primary key, _rowid int);
insert into ro4 values (1, 2);
select _rowid from ro4;
create table ro5 (a year primary key, b bit(3) not null unique);
insert into ro5 values (2000, 1);
select _rowid from ro5;
create table ro6 (a int, b int not null, c int not null unique, unique (b));
insert into ro6 values (1, 2, 3);
select _rowid from ro6;
create table ro7 (a int unique, b decimal(3) primary key);
select _rowid from ro7;
-- A default that loses something on its way into the column.
create table dn (a decimal default 9.9, b int default 1, c decimal(3,1) default 1.26, d double default 1.25, h decimal(5,2) default '1.234');
alter table dn add q decimal default 8.8;
alter table dn alter a set default 3.3;
create table dn2 (f date default 20010101101010, g datetime default '2001-01-01 10:10:10.5', h time default '10:10:10.7');
-- How many characters fit into a text.
create table le (a text character set ucs2, b tinytext character set utf8mb4, c mediumtext character set utf32, d blob, e char(5) character set ucs2, f longtext character set utf16);
select column_name, character_maximum_length, character_octet_length from information_schema.columns where table_schema='ck' and table_name='le' order by 1;
drop database ck;
