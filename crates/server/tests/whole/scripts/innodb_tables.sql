-- What information_schema says of tables and indexes under InnoDB's names.
create table a (id int primary key, b int, c varchar(10), key (b), unique u (c, b));
create table k (x int, y int, key (y, x)) row_format=compressed;
create table l (p bigint unsigned not null, q date, primary key (q, p));
select name, flag > 0, n_cols, zip_page_size, space_type from information_schema.innodb_sys_tables where name like concat(database(), '/%') order by name;
select t.name, i.name, i.type, i.n_fields, i.merge_threshold from information_schema.innodb_sys_indexes i join information_schema.innodb_sys_tables t on t.table_id = i.table_id where t.name like concat(database(), '/%') order by t.name, i.name;
select t.name, i.name, f.name, f.pos from information_schema.innodb_sys_fields f join information_schema.innodb_sys_indexes i on i.index_id = f.index_id join information_schema.innodb_sys_tables t on t.table_id = i.table_id where t.name like concat(database(), '/%') order by t.name, i.name, f.pos;
select t.name, s.page_size > 0, s.file_size >= 0 from information_schema.innodb_sys_tablespaces s join information_schema.innodb_sys_tables t on t.space = s.space where t.name like concat(database(), '/a') order by t.name;
select s.name, s.autoinc from information_schema.innodb_sys_tablestats s where s.name like concat(database(), '/%') order by s.name;
select pool_id, pool_size > 0, free_buffers >= 0, database_pages >= 0 from information_schema.innodb_buffer_pool_stats;
select name, subsystem, type from information_schema.innodb_metrics where name in ('lock_row_lock_waits', 'buffer_pool_reads') order by name;
describe information_schema.innodb_cmp;
describe information_schema.innodb_cmpmem;
describe information_schema.innodb_metrics;
describe information_schema.key_caches;
show status like 'innodb_page_size';
drop table a, k, l;
