==== The negation of a large integer
create table n (u bigint unsigned, i bigint)//
insert into n values (9223372036854775808, -9223372036854775808), (9223372036854775809, 5)//
select -u from n where u = 9223372036854775808//
select -u from n where u = 9223372036854775809//
select -(u + 0) from n where u = 9223372036854775809//
select -i from n where i < 0//
select -(i + 0) from n where i < 0//
select -cast(9223372036854775809 as unsigned), -(9223372036854775808 + 1), -(9223372036854775808 + 0)//
select -cast(-9223372036854775808 as signed), -(~0), -(1 << 63), -((1 << 63) + 1)//
select -(9223372036854775807 + 0), -(5 - 10), - -9223372036854775808//
select -0x8000000000000000, -b'1'//
create table made as select -cast(9223372036854775809 as unsigned) a, -cast(5 as unsigned) b, -u d from n limit 0//
select column_name, column_type from information_schema.columns where table_schema = 'd' and table_name = 'made' order by column_name//
begin not atomic declare u bigint unsigned default 9223372036854775808; declare x bigint; set x = -u; select x; end//
begin not atomic declare i bigint default -9223372036854775808; declare exit handler for 1690 select 'handled'; set i = -i; select i; end//
-- differs: the negation of a variable is an integer
begin not atomic declare u bigint unsigned default 9223372036854775809; select -u; end//
==== Dates and times in integer arithmetic
create table t (u bigint unsigned, ti time, d date, dt datetime, ts timestamp, y year)//
insert into t values (3, '00:00:05', '2020-01-01', '2020-01-01 10:00:00', '2020-01-01 10:00:00', 2020)//
select u - ti, u - d, u - dt from t//
-- differs: TIMESTAMP has a sign
select u - ts from t//
select ts + u from t//
select ti - u, d - u, dt - u, ti + u, d + u, dt + u, u * ti, u * d from t//
select cast(3 as unsigned) - cast('10:00:00' as time), cast(3 as unsigned) - date'2020-01-01'//
select 3 - ti, 3 - d, 3 - dt, y - d, d - y, ti - d, -dt - u, u - (-dt) from t//
select u - y from t//
select 3 - y from t//
select y - u, y + u from t//
select u - timestamp'2020-01-01 10:00:00.5', u - time'10:00:00.5' from t//
update t set u = 18446744073709551615//
select u - d from t//
select d - u from t//
select u + d from t//
select u * d from t//
create table made as select u - ti a, ti - u b, d + u c, u * dt e, y - u f, d - d g, u - 1 h from t limit 0//
select column_name, column_type from information_schema.columns where table_schema = 'd' and table_name = 'made' order by column_name//
begin not atomic declare ti time default '10:00:00'; declare u bigint unsigned default 3; declare d date default '2020-01-01'; declare x bigint; select u - ti, ti - u, d - u, u - d; set x = u - d; select x; end//
==== Boolean variables as texts
set autocommit = 1, sql_log_bin = 0//
select concat(@@autocommit), @@autocommit, @@autocommit + 1, concat(@@sql_log_bin, '|', @@unique_checks)//
select @@autocommit = 'ON', @@autocommit = '1', @@autocommit = 1, @@autocommit like 'O%', @@autocommit in ('1')//
select length(@@autocommit), upper(@@autocommit), lpad(@@sql_log_bin, 4, '-'), replace(@@autocommit, 'N', 'x'), hex(@@autocommit)//
select cast(@@autocommit as char), cast(@@autocommit as signed), find_in_set(@@autocommit, '1,ON'), elt(@@autocommit, 'a')//
select group_concat(@@autocommit), max(@@autocommit), if(@@autocommit, 'y', 'n'), substring(@@sql_log_bin, 2)//
begin not atomic declare s varchar(9); declare i int; set s = @@autocommit, i = @@autocommit; select s, i; set s = concat(@@autocommit); select s; end//
create function f(s varchar(9)) returns varchar(19) deterministic return concat('[', s, ']')//
select f(@@autocommit), f(concat(@@autocommit))//
-- differs: IFNULL takes the number
select ifnull(@@autocommit, 'a')//
set @v = @@autocommit//
select @v, concat(@v)//
==== Hexadecimal literals as arguments
create procedure p(a int, b varchar(10), c decimal(10,2), d double, e bigint unsigned, f bit(16)) select a, hex(b), c, d, e, f + 0//
call p(0x41, 0x41, 0x41, 0x41, 0x41, 0x41)//
call p(b'1000001', b'1000001', b'1000001', b'1000001', b'1000001', b'1000001')//
call p(1, x'41', 0, 0, 0xFFFFFFFFFFFFFFFF, 0)//
create procedure outer_p(x int) begin call p(0x41, 0x41, 0x41, 0x41, 0x41, 0x41); call p(x, 0x42, b'1', x, 0, 0x100); end//
call outer_p(0x43)//
create function fi(a int) returns int deterministic return a//
create function fd(a decimal(10,1)) returns varchar(20) deterministic return a//
create function fv(a varchar(10)) returns varchar(20) deterministic return hex(a)//
create function fg(a int) returns int begin declare x int default a; return x + 1; end//
select fi(0x41), fi(b'1000001'), fd(0x41), fv(0x41), fg(0x41), fi(0x41 + 0)//
select fi(x'41')//
select 1 where fi(0x41) = 65//
create table t (a int)//
insert into t values (fi(0x41))//
create trigger t_insert before insert on t for each row set new.a = fi(0x42)//
insert into t values (1)//
select * from t//
==== Digits of DOUBLE and FLOAT variables
create procedure p() begin declare v1 double(10,3) default 100; declare v2 float(7,2) default 1.5; declare v3 double default 0.1; set @s = concat('#', v1, '#', v2, '#', v3); select @s, length(v1), v1, v2; end//
call p()//
create function f(x double(10,2)) returns varchar(40) deterministic return concat(x, '|', x + 1)//
select f(1), f(1.005), f(NULL)//
==== CASE over a decimal
begin not atomic case 1.5 when '1.5' then select 'text'; else select 'no'; end case; end//
begin not atomic case '1.50' when 1.5 then select 'number'; else select 'no'; end case; end//
begin not atomic case 2 when 1.5 then select '1.5'; when 2.0 then select '2.0'; else select 'no'; end case; end//
begin not atomic case 1.5e0 when 2 then select 'two'; when 1.5 then select '1.5'; else select 'no'; end case; end//
-- differs: MariaDB rounds a decimal operand for an integer
begin not atomic case 1.5 when 2 then select 'two'; when 1.5 then select '1.5'; else select 'no'; end case; end//
